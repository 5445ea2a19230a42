"""Requests about topics and settings: what there is, and what an admin wants changed. docs: KafkaApis, ControllerApis.

A change is the controller's to make; a request that names several things is answered when it has decided on all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Final, TypeAlias

import attrs

from isr_broker import topic_configs
from isr_broker.core.messages import (
    Admin,
    AdminAnswer,
    AlterTopicConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectPreferredLeader,
    ElectUncleanLeader,
    Error,
    Millis,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.topics import Topics, may_be_called, uuid_of
from isr_broker.runtime import ClientAnswer
from isr_broker.setting_docs import DOCUMENTATION, WITHOUT_EFFECT
from isr_broker.settings import Settings
from isr_broker.storage.offsets_topic import TOPIC
from isr_broker.wire import protocol
from isr_broker.wire.admin_host import AdminHost
from isr_broker.wire.admin_refusals import (
    change_of,
    refused_alterations,
    refused_creations,
    refused_deletions,
    refused_extensions,
)
from isr_broker.wire.auto_creation import AutoCreation
from isr_broker.wire.protocol import Answer, Fields, Request, number_of
from isr_broker.wire.turns import Gate, Turns, Work

LEADER_NOT_AVAILABLE: Final = 5
INVALID_REQUEST: Final = 42
UNKNOWN_TOPIC_ID: Final = 100
_ABSENT: Final = Error.UNKNOWN_TOPIC_OR_PARTITION
_SERVED_APIS: Final = {
    protocol.METADATA,
    protocol.CREATE_TOPICS,
    protocol.DELETE_TOPICS,
    protocol.DESCRIBE_CONFIGS,
    protocol.ELECT_LEADERS,
    protocol.ALTER_CONFIGS,
    protocol.INCREMENTAL_ALTER_CONFIGS,
    protocol.CREATE_PARTITIONS,
    protocol.DESCRIBE_TOPIC_PARTITIONS,
}
MOST_DESCRIBED: Final = 2_000
"""Partitions in one answer (max.request.partition.size.limit)."""

_ASKS_AT_ONCE: Final = 50
"""Questions to the controller in one turn."""
_CREATED_AT_ONCE: Final = 10
_DESCRIBED_AT_ONCE: Final = 20
_WITH_CONFIGS: Final = 5
"""The first version of CreateTopics whose answer has the settings of topics."""

_BROKER, _TOPIC = 4, 2
_PREFERRED: Final = 0
_ELECTIONS: Final[Mapping[int, type[ElectPreferredLeader | ElectUncleanLeader]]] = {
    _PREFERRED: ElectPreferredLeader,
    1: ElectUncleanLeader,
}
"""ElectionType."""


@attrs.define
class AdminRequests:
    """The handlers of one broker, or controller; topics `of_others` are those that brokers of Kafka keep, if any."""

    runtime: AdminHost
    turns: Turns
    of_others: Collection[str] = ()
    index: Topics = attrs.field(factory=Topics)
    auto_creation: AutoCreation = attrs.field(factory=AutoCreation)

    @property
    def topics(self) -> Topics:
        """What this broker knows of topics now."""
        return self.index.of(self.runtime.node.partitions)

    def serves(self, key: int) -> bool:
        """Whether an API is about topics or settings."""
        return key in _SERVED_APIS

    def serve(self, request: Request, now: Millis, reply: Callable[[Answer], None], gate: Gate | None = None) -> None:
        """Answer a request, now or when the controller has."""
        body = request.body
        match request.key:
            case protocol.METADATA:
                reply(self._metadata(request, now))
            case protocol.CREATE_TOPICS:
                self._create(request, now, reply)
            case protocol.DELETE_TOPICS:
                self._delete(body, now, reply)
            case protocol.DESCRIBE_CONFIGS:
                self.turns.begin(self._configs(body, reply), gate)
            case protocol.ELECT_LEADERS:
                self._elect(body, now, reply)
            case protocol.ALTER_CONFIGS | protocol.INCREMENTAL_ALTER_CONFIGS:
                self._alter_configs(request, now, reply)
            case protocol.CREATE_PARTITIONS:
                self._create_partitions(body, now, reply)
            case _:
                reply(self._partitions(body))

    def each(self, requests: Sequence[Admin], now: Millis, then: Callable[[list[AdminAnswer]], None]) -> None:
        """Ask the controller for each of several things; `then` gets its answers in their order."""
        self.turns.begin(self._asks(requests, now, then))

    def _asks(
        self,
        requests: Sequence[Admin],
        now: Millis,
        then: Callable[[list[AdminAnswer]], None],
        at_once: int = _ASKS_AT_ONCE,
    ) -> Work:
        answers: dict[int, AdminAnswer] = {}

        def collect_answer(number: int, answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AdminAnswer)
            answers[number] = answer
            if len(answers) == len(requests):
                then([answers[n] for n in range(len(requests))])

        for first in range(0, len(requests), at_once):
            if first:
                now = yield
            some = enumerate(requests[first : first + at_once], first)
            self.runtime.ask_all(((partial(_with_number, make), partial(collect_answer, n)) for n, make in some), now)
        if not requests:
            then([])

    # What there is

    def _partition(self, p: PartitionMetadata) -> Answer:
        """A partition as this broker knows it, with those that may lead though they are not in sync (KIP-966)."""
        brokers = self.runtime.node.brokers
        return {
            "error_code": 0 if p.leader is not None else LEADER_NOT_AVAILABLE,
            "partition_index": p.partition.partition,
            "leader_id": number_of(p.leader),
            "leader_epoch": p.leader_epoch,
            "replica_nodes": p.replicas,
            "isr_nodes": sorted(p.isr),
            "eligible_leader_replicas": sorted(p.elr),
            "last_known_elr": [] if p.last_known_leader is None else [p.last_known_leader],
            "offline_replicas": [r for r in p.replicas if r not in brokers or brokers[r].fenced],
        }

    def _metadata(self, request: Request, now: Millis) -> Answer:
        """Brokers and topics as this broker knows them; an unknown topic is created if client and settings agree."""
        node, body, topics = self.runtime.node, request.body, self.topics
        every = not body.all("topics") if request.version == 0 else not body.has("topics")
        may_create = body.number("allow_auto_topic_creation", 1) and self.runtime.settings.auto_create_topics_enable
        topic_rows: list[Answer] = []
        new_names: list[str] = []
        for topic in [Fields({"name": n}) for n in topics.by_name] if every else _once(body.all("topics")):
            uuid = topic.data("topic_id") or b""
            by_id = any(uuid) or not topic.has("name")
            name = topics.name(uuid) if by_id else topic.text("name")
            there, error = topics.by_name.get(name), 0
            if there is None and by_id:
                error = UNKNOWN_TOPIC_ID
            elif there is None and not may_be_called(name):
                # Without this error a producer asks for ever.
                error = Error.INVALID_TOPIC_EXCEPTION.value
            elif there is None:
                error = LEADER_NOT_AVAILABLE if may_create else _ABSENT.value
                new_names += [name] if may_create else []
            topic_rows.append(
                {
                    "error_code": error,
                    "name": None if by_id and request.version >= 12 and not name else name,
                    "topic_id": uuid if by_id else topics.uuid(name),
                    "is_internal": name == TOPIC,
                    "partitions": [self._partition(p) for p in there or ()],
                }
            )
        self._auto_create(new_names, now)
        alive = [b for _, b in sorted(node.brokers.items()) if not b.fenced]
        # Some clients take an empty list to mean that every broker is gone, and never ask again.
        brokers = alive or [b for b in node.brokers.values() if b.broker == self.runtime.me]
        return {
            "brokers": [{"node_id": b.broker, "host": b.host, "port": b.port, "rack": b.rack or None} for b in brokers],
            "cluster_id": self.runtime.cluster,
            "controller_id": brokers[0].broker if brokers else -1,
            "topics": topic_rows,
        }

    def _auto_create(self, names: Sequence[str], now: Millis) -> None:
        """Have some of the topics created that a client has asked for and that are not there."""
        new_names, partitions = self.auto_creation.begin(names), self.runtime.settings.num_partitions
        requests = [CreateTopic(request=0, topic=name, partitions=partitions) for name in new_names]
        if requests:
            self.turns.begin(self._asks(requests, now, partial(self._has_created, new_names), _CREATED_AT_ONCE))

    def _has_created(self, names: Sequence[str], answers: list[AdminAnswer]) -> None:
        for name in names:
            self.auto_creation.end(name)

    def _partitions(self, body: Fields) -> Answer:
        """DescribeTopicPartitions: so many partitions in the order of their names, and where to go on (KIP-966)."""
        topics, cursor = self.topics, body.part("cursor")
        named = [t.text("name") for t in body.all("topics")]
        names = sorted({*named} or topics.by_name)
        is_elsewhere = bool(named) and cursor.text("topic_name") not in named
        if body.has("cursor") and (is_elsewhere or cursor.number("partition_index") < 0):
            refused: list[Answer] = [{"error_code": INVALID_REQUEST, "name": name, "partitions": []} for name in named]
            return {"topics": refused, "next_cursor": None}
        begin = (cursor.text("topic_name"), cursor.number("partition_index", 0))
        remaining = min(max(body.number("response_partition_limit", MOST_DESCRIBED), 1), MOST_DESCRIBED)
        topic_rows: list[Answer] = []
        after: Answer | None = None
        for name in (n for n in names if n >= begin[0]):
            there = topics.by_name.get(name)
            rest = [p for p in there or () if (name, p.partition.partition) >= begin]
            if remaining == 0:
                # KRaftMetadataCache.describeTopicResponse: whether there is such a topic or not.
                after = {"topic_name": name, "partition_index": 0}
                break
            topic_rows.append(
                {
                    "error_code": 0 if there else _no_topic(name).value,
                    "name": name,
                    "topic_id": topics.uuid(name),
                    "is_internal": name == TOPIC,
                    "partitions": [self._partition(p) for p in rest[:remaining]],
                }
            )
            if len(rest) > remaining:
                after = {"topic_name": name, "partition_index": rest[remaining].partition.partition}
                break
            remaining -= len(rest)
        return {"topics": topic_rows, "next_cursor": after}

    def _configs(self, body: Fields, reply: Callable[[Answer], None]) -> Work:
        """DescribeConfigs; what is named twice is described once."""
        documents = body.number("include_documentation", 0) == 1
        named = {(r.number("resource_type"), r.text("resource_name")): r for r in body.all("resources")}
        rows: list[Answer] = []
        for resource in named.values():
            rows.append(self._config(resource, documents))
            if len(rows) % _DESCRIBED_AT_ONCE == 0:
                yield
        reply({"results": rows})

    def _config(self, resource: Fields, documents: bool) -> Answer:
        """DescribeConfigs: of a topic, or of this broker; with documentation if it is asked for (KIP-569)."""
        kind, name = resource.number("resource_type"), resource.text("resource_name")
        setting_names = set(resource.texts("configuration_keys")) if resource.has("configuration_keys") else None
        error, why, configs = 0, "", list[Answer]()
        topic = self.topics.by_name.get(name)
        if kind == _TOPIC and topic is not None:
            configs = described_topic(topic[0].configs, self.runtime.settings)
        elif kind == _TOPIC:
            said = _no_topic(name)
            error, why = said.value, f"there {'is' if said is _ABSENT else 'can be'} no topic {name!r}"
        elif kind == _BROKER and not name:
            # The settings of all brokers that were changed while they run (ConfigHelper): here none can be.
            pass
        elif kind == _BROKER and name == str(self.runtime.me):
            configs = described_broker(self.runtime.settings)
        else:
            error, why = INVALID_REQUEST, f"broker {self.runtime.me} describes topics and itself"
        return {
            "error_code": error,
            "error_message": why or None,
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                c if documents else {**c, "documentation": None}
                for c in configs
                if setting_names is None or c["name"] in setting_names
            ],
        }

    # What an admin wants changed

    def _create(self, request: Request, now: Millis, reply: Callable[[Answer], None]) -> None:
        """CreateTopics; settings of a topic's own may be given as far as `topic_configs` takes them."""
        body, settings = request.body, self.runtime.settings
        topics = body.all("topics")
        # Topics that are alike have the same settings, which are described once.
        configs = (
            cache(partial(described_topic, settings=settings)) if request.version >= _WITH_CONFIGS else _no_configs
        )
        refusals = refused_creations(topics, settings, set(self.topics.by_name), self.of_others)
        good = [topic for topic, refusal in zip(topics, refusals, strict=True) if refusal is None]

        def send_reply(answers: list[AdminAnswer]) -> None:
            said = iter(answers)
            rows: dict[str, Answer] = {}
            for topic, refusal in zip(topics, refusals, strict=True):
                row = _created_topic(topic, next(said), configs) if refusal is None else refusal.fields()
                rows[topic.text("name")] = {"name": topic.text("name"), **row}
            reply({"topics": list(rows.values())})

        self.each([self._creation(topic, body) for topic in good], now, send_reply)

    def _creation(self, topic: Fields, body: Fields) -> CreateTopic:
        configs = {c.text("name"): c.text("value") for c in topic.all("configs")}
        assignments = {a.number("partition_index"): tuple(a.numbers("broker_ids")) for a in topic.all("assignments")}
        partitions = topic.number("num_partitions")
        return CreateTopic(
            request=0,
            topic=topic.text("name"),
            partitions=self.runtime.settings.num_partitions if partitions == -1 else partitions,
            replication_factor=topic.number("replication_factor"),
            # A partition that is left out is one without replicas, which the controller refuses.
            assignments=tuple(assignments.get(number, ()) for number in range(len(assignments))),
            only_asks=bool(body.number("validate_only", 0)),
            configs=tuple(sorted(configs.items())),
        )

    def _create_partitions(self, body: Fields, now: Millis, reply: Callable[[Answer], None]) -> None:
        """CreatePartitions: more partitions for existing topics."""
        topics = body.all("topics")
        refusals = refused_extensions(topics, set(self.topics.by_name))
        requests = [
            CreatePartitions(
                request=0,
                topic=topic.text("name"),
                count=topic.number("count"),
                assignments=tuple(tuple(a.numbers("broker_ids")) for a in topic.all("assignments")),
                only_asks=bool(body.number("validate_only", 0)),
            )
            for topic, refusal in zip(topics, refusals, strict=True)
            if refusal is None
        ]

        def send_reply(answers: list[AdminAnswer]) -> None:
            said = iter(answers)
            rows: dict[str, Answer] = {}
            for topic, refusal in zip(topics, refusals, strict=True):
                row = _error(next(said).error.value) if refusal is None else refusal.fields()
                rows[topic.text("name")] = {"name": topic.text("name"), **row}
            reply({"results": list(rows.values())})

        self.each(requests, now, send_reply)

    def _alter_configs(self, request: Request, now: Millis, reply: Callable[[Answer], None]) -> None:
        """IncrementalAlterConfigs, AlterConfigs: settings of topics that change while they are in use."""
        body, every = request.body, request.key == protocol.ALTER_CONFIGS
        resources = body.all("resources")
        refusals = refused_alterations(resources, every)
        good = [resource for resource, refusal in zip(resources, refusals, strict=True) if refusal is None]
        requests = [
            AlterTopicConfigs(
                request=0,
                topic=resource.text("resource_name"),
                changes=tuple(change_of(config) for config in resource.all("configs")),
                replaces=every,
                only_asks=bool(body.number("validate_only", 0)),
            )
            for resource in good
        ]

        def send_reply(answers: list[AdminAnswer]) -> None:
            said = iter(answers)
            resource_rows: list[Answer] = []
            for resource, refusal in zip(resources, refusals, strict=True):
                error = _error(next(said).error.value) if refusal is None else refusal.fields()
                kind, name = resource.number("resource_type"), resource.text("resource_name")
                resource_rows.append({"resource_type": kind, "resource_name": name, **error})
            reply({"responses": resource_rows})

        self.each(requests, now, send_reply)

    def _delete(self, body: Fields, now: Millis, reply: Callable[[Answer], None]) -> None:
        """DeleteTopics, by name or, since version 6, by id."""
        topics = self.topics
        topic_fields = body.all("topics") or [Fields({"name": name}) for name in body.texts("topic_names")]
        refusals = refused_deletions(topic_fields)
        good = [topic for topic, refusal in zip(topic_fields, refusals, strict=True) if refusal is None]
        names = [t.text("name") if t.has("name") else topics.name(t.data("topic_id") or b"") for t in good]

        def send_reply(answers: list[AdminAnswer]) -> None:
            topic_rows: list[Answer] = []
            for topic, refusal in zip(topic_fields, refusals, strict=True):
                if refusal is not None:
                    row: Answer = {"name": topic.text("name") if topic.has("name") else None, **refusal.fields()}
                    topic_rows.append({**row, "topic_id": topic.data("topic_id") or bytes(16)})
            for topic, name, answer in zip(good, names, answers, strict=True):
                by_id = not topic.has("name")
                uuid = topic.data("topic_id") if by_id else topics.uuid(name)
                error = UNKNOWN_TOPIC_ID if by_id and not name else answer.error.value
                topic_rows.append({"name": name if name or not by_id else None, "topic_id": uuid, **_error(error)})
            reply({"responses": topic_rows})

        self.each([DeleteTopic(request=0, topic=name) for name in names], now, send_reply)

    def _elect(self, body: Fields, now: Millis, reply: Callable[[Answer], None]) -> None:
        """ElectLeaders: the preferred ones, or any (KIP-460); without partitions, wherever there is a need."""
        every = not body.has("topic_partitions")
        partitions = [
            TopicPartition(topic.text("topic"), n)
            for topic in body.all("topic_partitions")
            for n in topic.numbers("partitions")
        ]
        if every:
            partitions = [p.partition for there in self.topics.by_name.values() for p in there]
        make = _ELECTIONS.get(body.number("election_type", _PREFERRED))
        if make is None:
            # ReplicationControlManager.electionType: any other number might pass for an unclean election.
            wrong = [(tp.topic, {"partition_id": tp.partition, **_error(INVALID_REQUEST)}) for tp in partitions]
            results = [{"topic": topic, "partition_result": [row]} for topic, row in wrong]
            reply({"error_code": INVALID_REQUEST, "replica_election_results": results})
            return

        def send_reply(answers: list[AdminAnswer]) -> None:
            rows_by_topic: dict[str, list[Answer]] = {}
            for tp, answer in zip(partitions, answers, strict=True):
                if not every or answer.error is not Error.ELECTION_NOT_NEEDED:
                    said = {"partition_id": tp.partition, **_error(answer.error.value)}
                    rows_by_topic.setdefault(tp.topic, []).append(said)
            results = [{"topic": topic, "partition_result": said} for topic, said in rows_by_topic.items()]
            reply({"error_code": 0, "replica_election_results": results})

        self.each([make(request=0, partition=tp) for tp in partitions], now, send_reply)


def _no_topic(name: str) -> Error:
    """The error for a topic that is not there: there cannot be one of that name (Topic.validate), or there is none."""
    return _ABSENT if may_be_called(name) else Error.INVALID_TOPIC_EXCEPTION


def _once(topics: Sequence[Fields]) -> list[Fields]:
    """Topics that are named, each once, by name or id (KafkaApis.handleTopicMetadataRequest)."""
    return list({(topic.text("name"), topic.data("topic_id")): topic for topic in topics}.values())


def _with_number(request: Admin, number: int) -> Admin:
    return attrs.evolve(request, request=number)


_ERROR_NAMES: Final = {error.value: error.name for error in Error}


Configs: TypeAlias = Callable[[tuple[tuple[str, str], ...]], list[Answer]]
"""Describes the settings of a topic that has some of its own."""


def _no_configs(own: tuple[tuple[str, str], ...]) -> list[Answer]:
    return []


def _created_topic(topic: Fields, answer: AdminAnswer, configs: Configs) -> Answer:
    """What CreateTopics says of a topic: since version 5 how many partitions, and its settings (KIP-525)."""
    if answer.error is not Error.NONE:
        return _error(answer.error.value)
    own = tuple((c.text("name"), c.text("value")) for c in topic.all("configs"))
    return {
        "error_code": 0,
        "error_message": None,
        "topic_id": uuid_of(answer.topic_id),
        "topic_config_error_code": 0,
        "num_partitions": answer.partitions,
        "replication_factor": answer.replication_factor,
        "configs": configs(own),
    }


def _error(code: int) -> Answer:
    """An error code, and its name for those who read; no text where there is no error."""
    return {"error_code": code, "error_message": _ERROR_NAMES.get(code) if code else None}


_OF_THE_TOPIC, _OF_THE_BROKER, _DEFAULT = 1, 4, 5
"""DescribeConfigsResponse.ConfigSource: DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG."""

_BOOLEAN, _STRING, _LONG = 1, 2, 5
"""DescribeConfigsResponse.ConfigType."""

TOPIC_NAMES: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    "index.interval.bytes": "log.index.interval.bytes",
    "flush.messages": "log.flush.interval.messages",
    "retention.ms": "log.retention.ms",
    "retention.bytes": "log.retention.bytes",
}
"""What a topic's settings are called when they are the broker's (ServerTopicConfigSynonyms)."""


def described_broker(settings: Settings) -> list[Answer]:
    """All settings of the broker."""
    default = Settings().properties()
    return [
        _describe_setting(name, value, _DEFAULT if value == default[name] else _OF_THE_BROKER, DOCUMENTATION[name])
        for name, value in sorted(settings.properties().items())
    ]


def described_topic(own: Iterable[tuple[str, str]], settings: Settings) -> list[Answer]:
    """The settings of a topic: its own, and for the others the broker's."""
    broker = {c["name"]: c for c in described_broker(settings)}
    configs: dict[str, Answer] = {name: {**broker[theirs], "name": name} for name, theirs in TOPIC_NAMES.items()}
    configs |= {
        name: _describe_setting(
            name, value, _OF_THE_TOPIC, DOCUMENTATION.get(TOPIC_NAMES.get(name, ""), WITHOUT_EFFECT)
        )
        for name, value in own
    }
    changeable = set(topic_configs.CHANGEABLE)
    return [{**configs[name], "read_only": name not in changeable} for name in sorted(configs)]


def _describe_setting(name: str, value: str, source: int, documentation: str) -> Answer:
    """One setting; those of a broker can only be read."""
    kind = _BOOLEAN if value in ("true", "false") else _LONG if value.removeprefix("-").isdigit() else _STRING
    return {
        "name": name,
        "value": value,
        "read_only": True,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": kind,
        "documentation": documentation,
    }
