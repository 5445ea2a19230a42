"""A cluster as it was described: topics with their settings and partitions, brokers with their racks, versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import attrs

MIN_INSYNC: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
FLUSH: Final = "flush.messages"
FLUSH_TIME: Final = "flush.ms"
RETENTION: Final = "retention.ms"
CLEANUP: Final = "cleanup.policy"
ELR_FEATURE: Final = "eligible.leader.replicas.version"
METADATA_FEATURE: Final = "metadata.version"

OF_BROKER: Final[Mapping[str, str]] = {
    MIN_INSYNC: MIN_INSYNC,
    UNCLEAN: UNCLEAN,
    FLUSH: "log.flush.interval.messages",
    FLUSH_TIME: "log.flush.interval.ms",
    RETENTION: "log.retention.ms",
    CLEANUP: "log.cleanup.policy",
}
"""A topic's setting, and the broker's that holds where the topic has none of its own."""
NEVER: Final = 2**63 - 1
"""Kafka's default of flush.messages and flush.ms."""
KAFKA_DEFAULTS: Final[Mapping[str, str]] = {MIN_INSYNC: "1", OF_BROKER[FLUSH]: str(NEVER)}
"""What a broker has by a file without the setting. Of unclean election that depends on the release."""


class Contradiction(ValueError):
    """Two descriptions of one thing that cannot both be of now: one sentence with the places of both."""


EVERY: Final = "every broker"
"""The name of settings that every broker has which tells none of its own: those of a resource that makes them all."""
ONE_SNAPSHOT: Final = "give one snapshot of one cluster"


Release: TypeAlias = tuple[int, ...]
"""The numbers of a release of Kafka, as many as were told."""


def release_text(release: Release) -> str:
    """`(4, 1, 1)` as 4.1.1."""
    return ".".join(map(str, release))


@attrs.frozen
class Partition:
    """`leader` is None where there is none; `elr` and `last_known_elr` are None where nobody told them.
    Replicas in the order of assignment.

    `ends` are the log end offsets of the replicas that told theirs, `sizes` the bytes of their logs. `adding` and
    `removing` are those of a reassignment that goes on, `observers` and `offline` those of Confluent's tools.
    `unread_columns`: the columns that are not there, or whose text makes no sense; what they stand for is not known.
    `source`: the place of its description, for messages.
    """

    topic: str
    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    ends: Mapping[int, int] = attrs.field(factory=dict[int, int])
    sizes: Mapping[int, int] = attrs.field(factory=dict[int, int])
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    observers: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    unread_columns: tuple[str, ...] = ()
    last_known_elr: tuple[int, ...] | None = None
    source: str = attrs.field(default="", eq=False)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def members(self) -> tuple[int, ...]:
        """The replicas that ought to be in sync: not those on their way, nor observers, which never are by design."""
        return tuple(r for r in self.replicas if r not in self.adding and (r not in self.observers or r in self.isr))

    @property
    def whole(self) -> bool:
        """Whether it has a leader and all its replicas are in sync."""
        return self.leader is not None and not self.unread_columns and set(self.members) <= set(self.isr)

    @property
    def is_described(self) -> bool:
        """Whether more is told of it than the sizes of its logs."""
        return bool(self.replicas or self.unread_columns)

    @property
    def state(self) -> str:
        """In words, for a message."""
        leader = (
            "Leader none" if self.leader is None and "Leader" not in self.unread_columns else f"Leader {self.leader}"
        )
        elr = f", Elr {_numbers_text(self.elr)}" if self.elr else ""
        return f"{leader}, Replicas {_numbers_text(self.replicas)}, Isr {_numbers_text(self.isr)}{elr}"


def _numbers_text(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


@attrs.frozen
class Topic:
    """`configs` are the topic's own; `replicas` is its replication factor, of its partitions the least.

    `inheritance`: what else a running cluster told of its settings, which the broker that answered has, and others may
    not.
    `has_heading`: whether whoever described it told its settings that are not Kafka's defaults. `count`: how many
    partitions it has by its heading, None where all are told. `topic_id` is "" where it was not told. `source`: the
    place of its heading, for messages. `resource`: the KafkaTopic that describes it, "" where none does.
    `has_own_configs`: whether its own settings were told apart from those that its brokers have. A heading does not.
    """

    name: str
    replicas: int
    partitions: tuple[Partition, ...] = ()
    configs: Mapping[str, str] = attrs.field(factory=dict[str, str])
    has_heading: bool = True
    count: int | None = None
    topic_id: str = ""
    source: str = attrs.field(default="", eq=False)
    inheritance: Mapping[str, str] = attrs.field(factory=dict[str, str])
    resource: str = ""
    has_own_configs: bool = False

    @property
    def holders(self) -> tuple[int, ...]:
        """The brokers that lead a partition of it or hold a replica, by their ids."""
        ids = {b for p in self.partitions for b in (*p.replicas, *p.isr, p.leader) if b is not None}
        return tuple(sorted(ids))

    @property
    def gap(self) -> str:
        """What of its partitions was not told, or cannot be; nothing where it has all that its heading says, from 0
        on, and nobody told of another."""
        number = sum(p.is_described for p in self.partitions)
        if self.resource and not number:
            return "how its partitions are now was not told (kafka-topics.sh tells it)"
        if not self.has_heading and not number:
            return "only its settings, or the sizes of its logs, were told (kafka-topics.sh tells its partitions)"
        if not self.has_heading and not self.has_own_configs:
            return "its heading was not told, so neither its settings nor how many partitions it has"
        if self.count == 0:
            return "how many partitions it has was not told"
        if self.count is None and not self.replicas:
            return "its replication factor was not told"
        beyond = next((p for p in self.partitions if self._is_beyond(p)), None)
        if beyond is not None:
            what = "was told" if beyond.is_described else "has a log"
            if self.count is None:
                return f"all its partitions were told, but also {beyond.name} {what}"
            return f"its heading says PartitionCount {self.count}, numbered from 0 on, but {beyond.name} {what}"
        return f"{number} of {self.count} partitions were told" if self.count and number < self.count else ""

    def _is_beyond(self, p: Partition) -> bool:
        """Whether a partition is none of those that the heading counts. Where all are described, no other can be."""
        return not p.is_described if self.count is None else p.number >= self.count


@attrs.frozen
class Cluster:
    """`brokers`: the settings of each, by its id or by the file that told them; `dynamic`: those that kafka-configs
    told of single brokers, `defaults`: of all brokers. Both win over `brokers`, as in Kafka (DynamicBrokerConfig).

    `racks` and `living` are those that were told, None where nobody said who is alive; `notes` say what was not told,
    `missing` what may tell of partitions and was not understood, `omissions` the topics that nobody asked about.
    `partial`: those of `brokers` of whom single settings were told, so that what is not there is not told.
    `has_quorum`: somebody saw controllers with a quorum, so no ZooKeeper. `voters`: the quorum's, where it told them.
    """

    topics: tuple[Topic, ...] = ()
    brokers: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict[str, Mapping[str, str]])
    defaults: Mapping[str, str] = attrs.field(factory=dict[str, str])
    features: Mapping[str, str] = attrs.field(factory=dict[str, str])
    racks: Mapping[int, str] = attrs.field(factory=dict[int, str])
    living: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    dynamic: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict[str, Mapping[str, str]])
    missing: tuple[str, ...] = ()
    omissions: tuple[str, ...] = ()
    partial: frozenset[str] = frozenset()
    has_quorum: bool = False
    voters: frozenset[int] | None = None

    def find_topic(self, topic: str) -> Topic | None:
        return next((t for t in self.topics if t.name == topic), None)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(p for t in self.topics for p in t.partitions)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The brokers that were told of, alive or by what they hold."""
        return tuple(sorted({*(self.living or ()), *(b for t in self.topics for b in t.holders)}))

    @property
    def gaps(self) -> tuple[str, ...]:
        """What may hide a partition, a sentence each: with one of these nobody can say that all partitions are well."""
        return tuple(dict.fromkeys((*(f"{t.name}: {t.gap}" for t in self.topics if t.gap), *self.missing)))

    def broker_values(self, setting: str) -> tuple[str, ...]:
        """The values of a broker's setting, each once; brokers should agree, and may not.

        What was set of one broker wins over what was set of all, and that over a broker's file. A file without the
        setting means Kafka's default, where another broker has a value.
        """
        default = self.defaults.get(setting)
        names = list(dict.fromkeys((*self.brokers, *self.dynamic)))
        values = [self._broker_value(b, setting, default) for b in names] or [default]
        if any(v is not None for v in values) and self._has_default(setting):
            values.append(KAFKA_DEFAULTS.get(setting))
        return tuple(dict.fromkeys(v for v in values if v is not None))

    def _has_default(self, setting: str) -> bool:
        """Whether a broker has Kafka's default, for its file has no value. A file of controllers alone says nothing."""
        default = self.defaults.get(setting)
        whole = ((b, c) for b, c in self.brokers.items() if b not in self.partial)
        brokers = (b for b, c in whole if c.get("process.roles", "broker") != "controller")
        return any(self._broker_value(b, setting, default) is None for b in brokers)

    def _broker_value(self, broker: str, setting: str, default: str | None) -> str | None:
        own = self.dynamic.get(broker, {}).get(setting, default)
        return self.brokers.get(broker, self.brokers.get(EVERY, {})).get(setting) if own is None else own

    def values(self, topic: Topic, setting: str) -> tuple[str, ...]:
        """What is told of a topic's setting: its own value, else those of the brokers."""
        if setting in topic.configs:
            return (topic.configs[setting],)
        inheritance = [topic.inheritance[setting]] if setting in topic.inheritance else []
        return tuple(dict.fromkeys((*self.broker_values(OF_BROKER[setting]), *inheritance)))

    def silent_brokers(self, topic: Topic, setting: str) -> tuple[int, ...]:
        """The brokers of a topic that have not told the setting and may have another value than is told, by their ids.

        There are none where the topic has its own value, where one is told of all brokers, and where the weakest value
        is told of any. Where nobody told any, a topic's heading says that it is Kafka's default. Of a running cluster
        only brokers that live are asked, and count.
        """
        name = OF_BROKER[setting]
        if setting in topic.configs or name in self.defaults:
            return ()
        values = self.values(topic, setting)
        if any(_is_weakest(setting, v) for v in values) or (not values and topic.has_heading):
            return ()
        return tuple(b for b in self._living(topic.holders) if not self._is_whole(b) and not self._tells(b, name))

    def _living(self, brokers: Iterable[int]) -> list[int]:
        """Those of whom something may be told: of a running cluster those that live."""
        return [b for b in brokers if self.living is None or b in self.living]

    def _is_whole(self, broker: int) -> bool:
        """Whether all settings of a broker's file were told, so that what is not there is Kafka's default."""
        return EVERY in self.brokers or (str(broker) in self.brokers and str(broker) not in self.partial)

    def _tells(self, broker: int, setting: str) -> bool:
        """Whether a value of a broker's own was told."""
        return self._broker_value(str(broker), setting, None) is not None

    def brokers_without(self, setting: str) -> tuple[int, ...]:
        """The brokers of all topics of which no value was told; of a running cluster those that live."""
        ids = sorted({b for t in self.topics for b in t.holders})
        return tuple(b for b in self._living(ids) if setting not in self.defaults and not self._tells(b, setting))

    def is_known(self, topic: Topic, setting: str) -> bool:
        """Whether a topic's setting is told by all who have a part of it, or is Kafka's default by its heading, or by
        brokers without it."""
        if self.silent_brokers(topic, setting):
            return False
        values = self.values(topic, setting)
        if values:
            return all(_is_value(setting, v) for v in values)
        return topic.has_heading or bool(self.brokers.keys() - self.partial)

    def min_insync(self, topic: Topic) -> int:
        """The least that is told and can be; Kafka's default is 1."""
        return min((n for n in _numbers(self.values(topic, MIN_INSYNC)) if n), default=1)

    def unclean(self, topic: Topic, *, default: bool = False) -> bool:
        """Whether any value that is told is true."""
        values = self.values(topic, UNCLEAN)
        by_default = not values or (UNCLEAN not in topic.configs and self._has_default(OF_BROKER[UNCLEAN]))
        return any(v.lower() == "true" for v in values) or (default and by_default)

    def flushed(self, topic: Topic) -> bool:
        """Whether every record is on disk before it is acknowledged: flush.messages=1 on every broker.

        Anything above 1, and flush.ms, leave records that were acknowledged and not flushed.
        """
        values = self.values(topic, FLUSH)
        return bool(values) and all((number_of(v) or 2) <= 1 for v in values)

    def in_rack(self, topic: Topic) -> int:
        """Of the replicas of a partition, the most that are in one rack; 0 where a replica's rack was not told."""
        if not all(r in self.racks for p in topic.partitions for r in p.replicas):
            return 0
        together = (Counter(self.racks[r] for r in p.replicas) for p in topic.partitions)
        return max((most for racks in together for most in racks.values()), default=0)

    def disagreeing(self) -> tuple[str, ...]:
        """The settings on which brokers disagree; the weakest value is taken."""
        return tuple(
            OF_BROKER[name] for name in (MIN_INSYNC, UNCLEAN, FLUSH) if len(self.broker_values(OF_BROKER[name])) > 1
        )


def ids_text(brokers: Sequence[int]) -> str:
    """`broker 1`, `brokers 1 2 3`, or the first of many."""
    more = f" and {len(brokers) - MOST_BROKERS} more" if brokers[MOST_BROKERS:] else ""
    return f"broker{'s' if brokers[1:] else ''} {' '.join(map(str, brokers[:MOST_BROKERS]))}{more}"


MOST_BROKERS: Final = 6
"""So many brokers are named; the rest are counted."""


def number_of(text: str) -> int | None:
    """A whole number as Kafka's tools print it; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


LONGEST_NUMBER: Final = 19
"""The digits of Java's largest long."""


def _numbers(values: Iterable[str]) -> list[int]:
    return [n for n in map(number_of, values) if n is not None]


def _is_value(setting: str, value: str) -> bool:
    """Whether a setting that answers depend on can have this value: `${MIN_ISR}` is none, and neither is 0."""
    if setting == UNCLEAN:
        return value.lower() in ("true", "false")
    return bool(number_of(value)) if setting in (MIN_INSYNC, FLUSH) else True


def _is_weakest(setting: str, value: str) -> bool:
    """Whether no value of a setting that answers depend on keeps less."""
    if setting == UNCLEAN:
        return value.lower() == "true"
    number = number_of(value)
    return number is not None and (number == 1 if setting == MIN_INSYNC else setting == FLUSH and number > 1)


def merge_clusters(parts: Iterable[Cluster]) -> Cluster:
    """One cluster of what several files tell; Contradiction where two tell of one thing, and not alike."""
    whole = Cluster()
    for part in parts:
        topics = {t.name: t for t in whole.topics}
        for t in part.topics:
            topics[t.name] = merge_topics(topics[t.name], t) if t.name in topics else t
        whole = Cluster(
            tuple(topics.values()),
            _merge_settings("broker", whole.brokers, part.brokers),
            _union("the default of all brokers", whole.defaults, part.defaults),
            _union("feature", whole.features, part.features),
            {**whole.racks, **part.racks},
            part.living if whole.living is None else whole.living,
            (*whole.notes, *part.notes),
            _merge_settings("broker", whole.dynamic, part.dynamic),
            (*whole.missing, *part.missing),
            partial=_partial(whole, part),
            has_quorum=whole.has_quorum or part.has_quorum,
            voters=part.voters if whole.voters is None else whole.voters,
        )
    return whole


def _partial(one: Cluster, other: Cluster) -> frozenset[str]:
    """Who is partial in both, or in the one that tells of it."""
    return frozenset(
        b for b in one.partial | other.partial if all(b in c.partial for c in (one, other) if b in c.brokers)
    )


def _merge_settings(
    kind: str, one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, str]]:
    return {n: _union(f"{kind} {n}", one.get(n, {}), other.get(n, {})) for n in chain(one, other)}


def _union(whose: str, one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Both; Contradiction where a setting that counts has two values."""
    for name, value in other.items():
        if one.get(name, value) != value and name in DECISIVE:
            raise Contradiction(f"{whose} has {name}={one[name]} and {name}={value}: {ONE_SNAPSHOT}")
    return {**one, **other}


DECISIVE: Final = frozenset(
    (
        *(MIN_INSYNC, UNCLEAN, FLUSH, OF_BROKER[FLUSH]),
        *("broker.rack", "inter.broker.protocol.version", "process.roles", METADATA_FEATURE, ELR_FEATURE),
    )
)
"""The settings and features on which an answer depends."""


def merge_topics(one: Topic, other: Topic) -> Topic:
    """What two descriptions of a topic tell together; Contradiction where they are not of one moment."""
    if one.topic_id and other.topic_id and one.topic_id != other.topic_id:
        raise Contradiction(
            f"topic {one.name} has TopicId {one.topic_id} ({one.source}) and {other.topic_id} ({other.source}), which "
            f"are two clusters, or a topic that was made again: {ONE_SNAPSHOT}"
        )
    if one.count and other.count and one.count != other.count:
        places = f"{one.count} ({one.source}) and {other.count} ({other.source})"
        raise Contradiction(f"topic {one.name} has PartitionCount {places}: {ONE_SNAPSHOT}")
    partitions: dict[int, Partition] = {}
    for p in (*one.partitions, *other.partitions):
        partitions[p.number] = merge_partitions(partitions[p.number], p) if p.number in partitions else p
    return Topic(
        one.name,
        min((t.replicas for t in (one, other) if t.replicas), default=0),
        tuple(partitions[n] for n in sorted(partitions)),
        _union(f"topic {one.name}", one.configs, other.configs),
        one.has_heading or other.has_heading,
        max((c for c in (one.count, other.count) if c is not None), default=None),
        one.topic_id or other.topic_id,
        one.source or other.source,
        {**one.inheritance, **other.inheritance},
        one.resource or other.resource,
        one.has_own_configs or other.has_own_configs,
    )


def merge_partitions(one: Partition, other: Partition) -> Partition:
    """A partition that two describe, of which one may know the logs only; Contradiction where both know more, and not
    the same."""
    whole = other if other.is_described else one
    if one.is_described and other.is_described and (_moment(one) != _moment(other) or _elrs_differ(one, other)):
        raise Contradiction(
            f"{one.name} is described twice, and not alike: {one.state} ({one.source}), and {other.state} "
            f"({other.source}): {ONE_SNAPSHOT}"
        )
    elr = one.elr if whole.elr is None else whole.elr
    return attrs.evolve(whole, elr=elr, ends={**one.ends, **other.ends}, sizes={**one.sizes, **other.sizes})


def _moment(p: Partition) -> tuple[object, ...]:
    changing = (frozenset(p.adding), frozenset(p.removing), frozenset(p.observers), frozenset(p.offline))
    return (p.leader, p.replicas, frozenset(p.isr), p.unread_columns, *changing)


def _elrs_differ(one: Partition, other: Partition) -> bool:
    return one.elr is not None and other.elr is not None and set(one.elr) != set(other.elr)
