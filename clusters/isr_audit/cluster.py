"""A cluster as it was described: topics with their settings and partitions, brokers with their racks, versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

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


@attrs.frozen
class Partition:
    """`leader` is None where there is none; `elr` is None where nobody told it. Replicas in the order of assignment.

    `ends` are the log end offsets of the replicas that told theirs, `sizes` the bytes of their logs.
    """

    topic: str
    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    ends: Mapping[int, int] = attrs.field(factory=dict[int, int])
    sizes: Mapping[int, int] = attrs.field(factory=dict[int, int])

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def whole(self) -> bool:
        """Whether it has a leader and all its replicas are in sync."""
        return self.leader is not None and set(self.replicas) <= set(self.isr)


@attrs.frozen
class Topic:
    """`configs` are the topic's own; `replicas` is its replication factor, of its partitions the least."""

    name: str
    replicas: int
    partitions: tuple[Partition, ...] = ()
    configs: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen
class Cluster:
    """`brokers`: the settings of each, by its id or by the file that told them; `defaults`: of all brokers.

    `racks` and `living` are those that were told, None where nobody said who is alive; `notes` say what was not told.
    """

    topics: tuple[Topic, ...] = ()
    brokers: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict[str, Mapping[str, str]])
    defaults: Mapping[str, str] = attrs.field(factory=dict[str, str])
    features: Mapping[str, str] = attrs.field(factory=dict[str, str])
    racks: Mapping[int, str] = attrs.field(factory=dict[int, str])
    living: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    def find_topic(self, topic: str) -> Topic | None:
        return next((t for t in self.topics if t.name == topic), None)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(p for t in self.topics for p in t.partitions)

    def broker_values(self, setting: str) -> tuple[str, ...]:
        """The values of a broker's setting, each once; brokers should agree, and may not.

        A broker that does not tell it has the default of all, if that is told.
        """
        default = self.defaults.get(setting)
        values = [c.get(setting, default) for c in self.brokers.values()] or [default]
        return tuple(dict.fromkeys(v for v in values if v is not None))

    def values(self, topic: Topic, setting: str) -> tuple[str, ...]:
        """What is told of a topic's setting: its own value, else those of the brokers."""
        return (topic.configs[setting],) if setting in topic.configs else self.broker_values(OF_BROKER[setting])

    def min_insync(self, topic: Topic) -> int:
        """The least that is told; Kafka's default is 1."""
        return min(_numbers(self.values(topic, MIN_INSYNC)), default=1)

    def unclean(self, topic: Topic, *, default: bool = False) -> bool:
        """Whether any value that is told is true."""
        told = self.values(topic, UNCLEAN)
        return any(v.lower() == "true" for v in told) if told else default

    def flushed(self, topic: Topic) -> bool:
        """Whether every record is on disk before it is acknowledged: flush.messages=1 on every broker.

        Anything above 1, and flush.ms, leave records that were acknowledged and not flushed.
        """
        told = _numbers(self.values(topic, FLUSH))
        return bool(told) and max(told) <= 1

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


def _numbers(values: Iterable[str]) -> list[int]:
    return [int(v) for v in values if v.isdecimal()]


def merge_clusters(parts: Iterable[Cluster]) -> Cluster:
    """One cluster of what several files tell; of a topic's settings and partitions whoever tells them."""
    whole = Cluster()
    for part in parts:
        topics = {t.name: t for t in whole.topics}
        for t in part.topics:
            topics[t.name] = _merge_topics(topics[t.name], t) if t.name in topics else t
        whole = Cluster(
            tuple(topics.values()),
            {**whole.brokers, **{b: {**whole.brokers.get(b, {}), **c} for b, c in part.brokers.items()}},
            {**whole.defaults, **part.defaults},
            {**whole.features, **part.features},
            {**whole.racks, **part.racks},
            part.living if whole.living is None else whole.living,
            (*whole.notes, *part.notes),
        )
    return whole


def _merge_topics(one: Topic, other: Topic) -> Topic:
    partitions: dict[int, Partition] = {}
    for p in (*one.partitions, *other.partitions):
        partitions[p.number] = _completed(partitions[p.number], p) if p.number in partitions else p
    ordered = tuple(partitions[n] for n in sorted(partitions))
    return Topic(one.name, one.replicas or other.replicas, ordered, {**one.configs, **other.configs})


def _completed(one: Partition, other: Partition) -> Partition:
    """A partition that two describe, of which one may know the logs only: who it is assigned to is of the last that
    says so."""
    told = other if other.replicas else one
    elr = one.elr if told.elr is None else told.elr
    return attrs.evolve(told, elr=elr, ends={**one.ends, **other.ends}, sizes={**one.sizes, **other.sizes})
