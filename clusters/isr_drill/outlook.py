"""What the next deed at each broker does: it is restarted in order, or it is gone with its disk.

Each is a drill of the partitions that have a replica there, from the state that the cluster is in now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs

from isr_audit.cluster import Cluster
from isr_audit.releases import Running
from isr_drill.drill import Explorations, Outcome, PartitionDrill, Records, Service, drill
from isr_drill.quorum import quorum_of
from isr_drill.runbook import Surroundings, read_runbook

RESTART: Final = "stop {0}; start {0}"
FAILURE: Final = "destroy {0}"
STOPPED: Final = (Service.LEADERLESS, Service.REFUSES)


@attrs.frozen
class Deed:
    """What a deed at one broker does to partitions, by their names: `loses` has those that may lose a record, `stops`
    those that may have no leader or refuse writes, `unknown` those that cannot be decided. Of whom that is said before
    the deed is in none of them. `because`: why the first is unknown."""

    loses: tuple[str, ...]
    stops: tuple[str, ...]
    unknown: tuple[str, ...]
    because: str = ""

    @property
    def is_harmless(self) -> bool:
        return not (self.loses or self.stops or self.unknown)


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
        restart, failure = (deed(here, runs, text.format(broker), explorations) for text in (RESTART, FAILURE))
        yield Outlook(broker, restart, failure)


def running_brokers(cluster: Cluster) -> list[int]:
    """Who lives, where that was told; else who is in some ISR."""
    if cluster.living is not None:
        return sorted(cluster.living)
    return sorted({broker for p in cluster.partitions if p.leader is not None for broker in p.isr})


def with_replicas_on(cluster: Cluster, broker: int) -> Cluster:
    """The cluster with only those partitions of which the broker has a replica."""
    topics = (
        attrs.evolve(t, partitions=tuple(p for p in t.partitions if broker in p.replicas)) for t in cluster.topics
    )
    return attrs.evolve(cluster, topics=tuple(topics))


def deed(cluster: Cluster, runs: Running, text: str, explorations: Explorations) -> Deed:
    """What these steps do."""
    brokers = {broker for p in cluster.partitions for broker in p.replicas}
    around = Surroundings(
        {*brokers, *(cluster.living or ())}, cluster.racks, [t.name for t in cluster.topics], quorum=quorum_of(cluster)
    )
    whole = drill(cluster, runs, read_runbook(text, around), explorations)
    loses = newly(whole.with_records(Records.MAY_BE_LOST), lambda o: o.records is Records.MAY_BE_LOST)
    stops = newly(whole.with_service(*STOPPED), lambda o: o.service in STOPPED)
    unknown = newly(whole.with_records(Records.UNKNOWN), lambda o: o.records is Records.UNKNOWN)
    reasons = (o.because for p in whole.with_records(Records.UNKNOWN) for o in p.outcomes if o.because)
    return Deed(loses, stops, unknown, next(reasons, "") if unknown else "")


def newly(some: Iterable[PartitionDrill], is_so: Callable[[Outcome], bool]) -> tuple[str, ...]:
    """Those of which it was not so before the first step."""
    return tuple(p.partition.name for p in some if not is_so(p.outcomes[0]))
