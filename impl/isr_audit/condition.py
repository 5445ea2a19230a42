"""How the partitions are now: without a leader, under the minimum, under-replicated, led by another than preferred."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import attrs

from isr_audit.cluster import Cluster, Partition


class Trouble(IntEnum):
    """What is wrong with a partition now, worst first."""

    OFFLINE = 0
    UNDER_MINIMUM = 1
    UNDER_REPLICATED = 2
    NOT_PREFERRED = 3


WORDS = {
    Trouble.OFFLINE: "OFFLINE",
    Trouble.UNDER_MINIMUM: "UNDER MINIMUM",
    Trouble.UNDER_REPLICATED: "UNDER-REPLICATED",
    Trouble.NOT_PREFERRED: "leader not preferred",
}


@attrs.frozen
class Condition:
    """The worst that is wrong with a partition, in a sentence."""

    partition: Partition
    trouble: Trouble
    says: str


def conditions(cluster: Cluster) -> list[Condition]:
    """Every partition with which something is wrong, worst first."""
    found = [c for t in cluster.topics for p in t.partitions for c in _of(p, cluster.min_insync(t))]
    return sorted(found, key=lambda c: (c.trouble, c.partition.topic, c.partition.number))


def _of(p: Partition, minimum: int) -> Iterator[Condition]:
    out = [r for r in p.replicas if r not in p.isr]
    if p.leader is None:
        yield Condition(p, Trouble.OFFLINE, f"nobody leads: {_awaited(p)}")
    elif len(p.isr) < min(minimum, len(p.replicas)):
        says = f"{_many(len(p.isr), 'replica')} in sync of {minimum} required: writes with acks=all are refused"
        yield Condition(p, Trouble.UNDER_MINIMUM, says)
    elif out:
        yield Condition(p, Trouble.UNDER_REPLICATED, f"not in sync: {_ids(out)}")
    elif p.replicas and p.leader != p.replicas[0]:
        yield Condition(p, Trouble.NOT_PREFERRED, f"{p.leader} leads; {p.replicas[0]} is preferred")


def _awaited(p: Partition) -> str:
    """Whose return would end it without a loss."""
    if p.isr:
        return f"it waits for {_ids(p.isr)}, of the ISR"
    if p.elr:
        return f"it waits for {_ids(p.elr)}, of the ELR"
    return (
        "ISR and ELR are empty, so the last known leader or an operator has to decide"
        if p.elr is not None
        else ("the ISR is empty, and it was not told whether there are eligible leader replicas")
    )


def _ids(replicas: tuple[int, ...] | list[int]) -> str:
    return " ".join(map(str, replicas))


def _many(n: int, thing: str) -> str:
    return f"{n} {thing}{'' if n == 1 else 's'}"
