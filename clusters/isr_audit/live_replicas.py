"""What confluent-kafka does not ask of a cluster, asked with kafka-python: which features are on, who is in the
eligible leader replicas, where each replica's log ends, and its bytes.

Logs and eligible leader replicas are asked only of partitions with which something is wrong. DescribeLogDirs tells
bytes: its offset lag is against the replica's own watermark (ReplicaManager.getLogEndOffsetLag), so it is 0 however far
the replica is behind. Where a log ends, a broker tells to ListOffsets from replica -2 (DEBUGGING_REPLICA_ID of
ListOffsetsRequest), also when it does not lead (ReplicaManager.fetchOffset).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, Protocol, TypedDict, cast

import attrs

from isr_audit.cluster import ELR_FEATURE, METADATA_FEATURE, Cluster, Partition
from isr_audit.releases import release_of_level
from isr_audit.voters import KRAFT_FEATURE

DEBUGGING_REPLICA: Final = -2
LATEST: Final = -1
NO_ERROR: Final = 0
PATIENCE_MS: Final = 10_000
Place = tuple[str, int]
"""A topic and the number of a partition."""


class Feature(TypedDict, total=False):
    """The least and the most level that is on; there is none where it is off."""

    finalized: tuple[int, int]


class PartitionInfo(TypedDict):
    """A partition as DescribeTopicPartitions tells it; no eligible leader replicas are None."""

    partition_index: int
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None


class TopicInfo(TypedDict):
    name: str
    partitions: list[PartitionInfo]


class PartitionDescription(TypedDict):
    topics: list[TopicInfo]
    next_cursor: dict[str, object] | None


class LogSize(TypedDict):
    partition_index: int
    partition_size: int
    is_future_key: bool


class LogTopic(TypedDict):
    name: str
    partitions: list[LogSize]


class LogDir(TypedDict):
    error_code: int
    topics: list[LogTopic]


class BrokerLogs(TypedDict):
    broker: int
    log_dirs: list[LogDir]


class Reassignment(TypedDict):
    """The replicas of a partition that is reassigned now, as ListPartitionReassignments tells them."""

    adding_replicas: list[int]
    removing_replicas: list[int]


class Voter(TypedDict):
    replica_id: int


class QuorumPartition(TypedDict):
    current_voters: list[Voter]


class QuorumTopic(TypedDict):
    partitions: list[QuorumPartition]


class Quorum(TypedDict):
    """The controllers as DescribeQuorum tells them."""

    topics: list[QuorumTopic]


class Offsets(Protocol):
    """A partition in the answer to ListOffsets."""

    partition_index: int
    error_code: int
    offset: int


class OffsetsOfTopic(Protocol):
    name: str
    partitions: list[Offsets]


class ListedOffsets(Protocol):
    topics: list[OffsetsOfTopic]


class Manager(Protocol):
    """The connections of an admin client: the only way to ask one broker for what is usually asked of leaders."""

    def send(self, request: object, broker: int) -> Awaitable[ListedOffsets]: ...
    def run(self, coroutine: Callable[[], Awaitable[ListedOffsets]]) -> ListedOffsets: ...


class Admin(Protocol):
    """What is used of kafka-python's KafkaAdminClient, which is not typed."""

    def describe_features(self) -> dict[str, Feature]: ...
    def describe_topic_partitions(
        self, topics: Sequence[str], most: int, cursor: dict[str, object] | None
    ) -> PartitionDescription: ...
    def describe_metadata_quorum(self) -> Quorum: ...
    def list_partition_reassignments(self) -> Mapping[Place, Reassignment]: ...
    def describe_log_dirs(
        self, topic_partitions: Mapping[str, Sequence[int]], brokers: Sequence[int]
    ) -> list[BrokerLogs]: ...
    def close(self) -> None: ...


AT_A_TIME: Final = 2000
"""Partitions in one answer of DescribeTopicPartitions, which is a broker's default limit."""


def with_replicas(cluster: Cluster, bootstrap: str, client: Mapping[str, str]) -> Cluster:
    """The cluster with what it tells of its features and replicas, and a note on what it does not.

    `client` are settings of librdkafka.
    """
    try:
        from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]
        from kafka.errors import KafkaError  # type: ignore[import-untyped]
    except ImportError:
        return _with_note(cluster, "features and the ends of logs were not asked for: kafka-python is not installed")
    silence()
    make = cast("Callable[..., Admin]", KafkaAdminClient)
    try:
        admin_client = make(
            bootstrap_servers=bootstrap.split(","),
            bootstrap_timeout_ms=PATIENCE_MS,
            request_timeout_ms=PATIENCE_MS,
            **python_settings(client),
        )
    except (KafkaError, UntranslatedSetting, OSError, ValueError, AssertionError) as problem:
        return _with_note(cluster, f"features and the ends of logs were not asked for: {_reason(problem)}")
    with closing(admin_client) as admin:
        for what, ask in QUESTIONS:
            try:
                cluster = ask(cluster, admin)
            except (KafkaError, OSError) as problem:
                cluster = _with_note(cluster, f"{what} not told: {_reason(problem)}")
    return cluster


def _with_note(cluster: Cluster, note: str) -> Cluster:
    return attrs.evolve(cluster, notes=(*cluster.notes, note))


def silence() -> None:
    """What the client logs is told in a note, where it matters."""
    log = logging.getLogger("kafka")
    log.addHandler(logging.NullHandler())
    log.propagate = False


def _reason(problem: Exception) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__


# Each question


def _features(cluster: Cluster, admin: Admin) -> Cluster:
    features = admin.describe_features()
    feature_levels = {name: levels["finalized"][1] for name, levels in features.items() if "finalized" in levels}
    level_texts = {name: str(level) for name, level in feature_levels.items()}
    for name in (ELR_FEATURE, KRAFT_FEATURE):
        if name in features:
            level_texts.setdefault(name, "0")  # a feature that is off has no finalized level
    if METADATA_FEATURE in feature_levels:
        level_texts[METADATA_FEATURE] = ".".join(map(str, release_of_level(feature_levels[METADATA_FEATURE])))
    return attrs.evolve(cluster, features={**cluster.features, **level_texts})


def _voters(cluster: Cluster, admin: Admin) -> Cluster:
    """Who votes, where metadata have a version, and so a quorum: with ZooKeeper they have none."""
    if METADATA_FEATURE not in cluster.features:
        return cluster
    partitions = [p for topic in admin.describe_metadata_quorum()["topics"] for p in topic["partitions"]]
    voters = frozenset(voter["replica_id"] for p in partitions for voter in p["current_voters"])
    return attrs.evolve(cluster, voters=voters or None)


def _reassignments(cluster: Cluster, admin: Admin) -> Cluster:
    """Who is being added, and so need not be in sync yet."""
    if all(p.whole for p in cluster.partitions):
        return cluster
    by_place = {(topic, number): change for (topic, number), change in admin.list_partition_reassignments().items()}

    def with_change(p: Partition) -> Partition:
        change = by_place.get((p.topic, p.number))
        if change is None:
            return p
        adding, removing = tuple(change["adding_replicas"]), tuple(change["removing_replicas"])
        return attrs.evolve(p, adding=adding, removing=removing)

    with_changes = _map_partitions(cluster, with_change)
    return attrs.evolve(
        with_changes,
        topics=tuple(
            attrs.evolve(t, replicas=min((len(p.members) for p in t.partitions), default=t.replicas))
            for t in with_changes.topics
        ),
    )


def _eligible(cluster: Cluster, admin: Admin) -> Cluster:
    topic_names = sorted({p.topic for p in cluster.partitions if not p.whole})
    if not topic_names or cluster.features.get(ELR_FEATURE, "0") == "0":
        return cluster
    eligible_replicas: dict[Place, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    cursor: dict[str, object] | None = None
    while True:
        page = admin.describe_topic_partitions(topic_names, AT_A_TIME, cursor)
        for topic in page["topics"]:
            for p in topic["partitions"]:
                eligible, last = tuple(p["eligible_leader_replicas"] or ()), tuple(p["last_known_elr"] or ())
                eligible_replicas[topic["name"], p["partition_index"]] = eligible, last
        cursor = page["next_cursor"]
        if cursor is None:
            return _map_partitions(cluster, lambda p: _with_eligible(p, eligible_replicas.get((p.topic, p.number))))


def _with_eligible(p: Partition, answer: tuple[tuple[int, ...], tuple[int, ...]] | None) -> Partition:
    return p if answer is None else attrs.evolve(p, elr=answer[0], last_known_elr=answer[1])


def _ends(cluster: Cluster, admin: Admin) -> Cluster:
    ends: defaultdict[Place, dict[int, int]] = defaultdict(dict)
    for broker, partitions in _by_broker(cluster):
        for place, end in _ends_at(admin, broker, partitions):
            ends[place][broker] = end
    return _map_partitions(cluster, lambda p: attrs.evolve(p, ends={**p.ends, **ends[p.topic, p.number]}))


def _ends_at(admin: Admin, broker: int, partitions: Iterable[Partition]) -> Iterator[tuple[Place, int]]:
    from kafka.errors import KafkaError
    from kafka.protocol.consumer import ListOffsetsRequest  # type: ignore[import-untyped]

    of_topic = cast("Callable[..., object]", ListOffsetsRequest.ListOffsetsTopic)
    of_partition = cast("Callable[..., object]", ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition)
    named: defaultdict[str, list[object]] = defaultdict(list)
    for p in partitions:
        named[p.topic].append(of_partition(partition_index=p.number, timestamp=LATEST))
    topics = [of_topic(name=name, partitions=asked) for name, asked in named.items()]
    made = cast("Callable[..., object]", ListOffsetsRequest)
    request = made(replica_id=DEBUGGING_REPLICA, isolation_level=0, topics=topics)
    manager: Manager = vars(admin)["_manager"]

    async def send_request() -> ListedOffsets:
        return await manager.send(request, broker)

    try:
        told = manager.run(send_request)
    except (KafkaError, OSError):
        return  # who has just died is not heard, which the candidates say
    for topic in told.topics:
        for told_of in topic.partitions:
            if told_of.error_code == NO_ERROR and told_of.offset >= 0:
                yield (topic.name, told_of.partition_index), told_of.offset


def _sizes(cluster: Cluster, admin: Admin) -> Cluster:
    sizes: defaultdict[Place, dict[int, int]] = defaultdict(dict)
    for broker, partitions in _by_broker(cluster):
        named: defaultdict[str, list[int]] = defaultdict(list)
        for p in partitions:
            named[p.topic].append(p.number)
        for logs in admin.describe_log_dirs(named, [broker]):
            for place, size in sizes_of(logs["log_dirs"]):
                sizes[place][broker] = size
    return _map_partitions(cluster, lambda p: attrs.evolve(p, sizes={**p.sizes, **sizes[p.topic, p.number]}))


def sizes_of(log_dirs: Iterable[LogDir]) -> Iterator[tuple[Place, int]]:
    """Bytes of each log of a broker; a log that is being moved to another directory counts where it is used."""
    for folder in log_dirs:
        for topic in folder["topics"]:
            for p in topic["partitions"]:
                if not p["is_future_key"]:
                    yield (topic["name"], p["partition_index"]), p["partition_size"]


QUESTIONS: Final[tuple[tuple[str, Callable[[Cluster, Admin], Cluster]], ...]] = (
    ("features were", _features),
    ("the voters of the quorum were", _voters),
    ("reassignments were", _reassignments),
    ("eligible leader replicas were", _eligible),
    ("the ends of logs were", _ends),
    ("the sizes of logs were", _sizes),
)


def _by_broker(cluster: Cluster) -> Iterator[tuple[int, list[Partition]]]:
    """Each living broker, with its replicas of partitions with which something is wrong."""
    broken = [p for p in cluster.partitions if not p.whole]
    for broker in cluster.living or ():
        mine = [p for p in broken if broker in p.replicas]
        if mine:
            yield broker, mine


def _map_partitions(cluster: Cluster, change: Callable[[Partition], Partition]) -> Cluster:
    topics = tuple(attrs.evolve(t, partitions=tuple(map(change, t.partitions))) for t in cluster.topics)
    return attrs.evolve(cluster, topics=topics)


# The settings of a client


class UntranslatedSetting(Exception):
    """A setting that kafka-python has not: one sentence says which."""


NAMES: Final[Mapping[str, str]] = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
    "client.id": "client_id",
}
"""librdkafka's names of a client's settings, and kafka-python's."""


def python_settings(client: Mapping[str, str]) -> dict[str, object]:
    """Settings of librdkafka for kafka-python; Untranslated for those of security that it has not."""
    settings: dict[str, object] = {NAMES[name]: value for name, value in client.items() if name in NAMES}
    if client.get("ssl.endpoint.identification.algorithm") == "none":
        settings["ssl_check_hostname"] = False
    for name in client:
        if name.startswith(("ssl.", "sasl.")) and name not in NAMES and name != "ssl.endpoint.identification.algorithm":
            raise UntranslatedSetting(f"kafka-python has no {name}")
    return settings
