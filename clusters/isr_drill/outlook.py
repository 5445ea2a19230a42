"""What the next deed at each broker does: it is restarted in order, or it is gone with its disk.

Each is a drill of the partitions that have a replica there, from the state that the cluster is in now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from isr_audit.cluster import Cluster, Partition
from isr_audit.releases import Running
from isr_drill.drill import STOPPED, Explorations, PartitionDrill, Records, drill
from isr_drill.quorum import quorum_of
from isr_drill.runbook import Surroundings, read_runbook

RESTART: Final = "stop {0}; start {0}"
FAILURE: Final = "destroy {0}"


@attrs.frozen
class Deed:
    """What a deed at one broker does to partitions, by their names, as its drill says: `loses` has those that may lose
    a record, `stops` those that may have no leader or refuse writes, `unknown` those that cannot be decided. `because`:
    why the first is unknown. `already`: those of `stops` that are no better before the deed. `is_partial`: not every
    partition was told, so the deed may hit another."""

    loses: tuple[str, ...]
    stops: tuple[str, ...]
    unknown: tuple[str, ...]
    because: str = ""
    already: tuple[str, ...] = ()
    is_partial: bool = False

    @property
    def is_harmless(self) -> bool:
        """Whether its drill says YES."""
        return not (self.loses or self.stops or self.unknown or self.is_partial)

    @property
    def is_no_worse(self) -> bool:
        """Whether it only stops what stands still already."""
        return (
            bool(self.stops)
            and set(self.stops) <= set(self.already)
            and not (self.loses or self.unknown or self.is_partial)
        )


@attrs.frozen
class Outlook:
    """A broker that runs, as far as was told: how it is restarted now, and how it fails next."""

    broker: int
    restart: Deed
    failure: Deed


def outlooks(cluster: Cluster, runs: Running, seconds: float) -> Iterator[Outlook]:
    """Each broker that runs. `seconds`: for each class of partitions, at most."""
    explorations = Explorations(seconds)
    for broker in running_brokers(cluster):
        here = with_replicas_on(cluster, broker)
        restart, failure = (deed(here, runs, form, broker, explorations, cluster.gaps) for form in (RESTART, FAILURE))
        yield Outlook(broker, restart, failure)


def running_brokers(cluster: Cluster) -> list[int]:
    """Who lives, where that was told; else who is in some ISR."""
    if cluster.living is not None:
        return sorted(cluster.living)
    return sorted({broker for p in cluster.partitions if p.leader is not None for broker in p.isr})


def with_replicas_on(cluster: Cluster, broker: int) -> Cluster:
    """The cluster with only those partitions of which the broker has a replica, or may have one."""

    def is_here(p: Partition) -> bool:
        return broker in p.replicas or not p.replicas

    topics = (attrs.evolve(t, partitions=tuple(filter(is_here, t.partitions))) for t in cluster.topics)
    return attrs.evolve(cluster, topics=tuple(topics))


def deed(
    cluster: Cluster, runs: Running, form: str, broker: int, explorations: Explorations, gaps: Sequence[str]
) -> Deed:
    """What these steps do, of that broker. `gaps`: what may hide a partition."""
    around = Surroundings({broker}, cluster.racks, [t.name for t in cluster.topics], quorum=quorum_of(cluster))
    whole = drill(cluster, runs, read_runbook(form.format(broker), around), explorations)
    loses, stopped = whole.with_records(Records.MAY_BE_LOST), whole.with_service(*STOPPED)
    unsure = whole.with_records(Records.UNKNOWN)
    reasons = (o.because for p in unsure for o in p.outcomes if o.because)
    because = next(reasons, "")
    if gaps:
        because = because or f"not every partition was told: {gaps[0]}"
    return Deed(
        names(loses),
        names(stopped),
        names(unsure),
        because,
        names(p for p in stopped if is_no_better_before(p)),
        bool(gaps),
    )


def names(partitions: Iterable[PartitionDrill]) -> tuple[str, ...]:
    return tuple(p.partition.name for p in partitions)


def is_no_better_before(p: PartitionDrill) -> bool:
    """Whether it stands still before the first step, and as badly as after any."""
    return p.outcomes[0].service in STOPPED and p.outcomes[0].service <= min(o.service for o in p.outcomes)
