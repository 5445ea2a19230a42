"""How the partitions are now: without a leader, under the minimum, under-replicated, led by another than preferred; and
what an unclean election of each replica that is out of sync would lose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias

import attrs

from isr_audit.cluster import MIN_INSYNC, Cluster, Partition


class Trouble(IntEnum):
    """What is wrong with a partition now, worst first."""

    OFFLINE = 0
    UNDER_MINIMUM = 1
    UNDER_REPLICATED = 2
    UNKNOWN = 3
    REASSIGNING = 4
    NOT_PREFERRED = 5


WORDS = {
    Trouble.OFFLINE: "OFFLINE",
    Trouble.UNDER_MINIMUM: "UNDER MINIMUM",
    Trouble.UNDER_REPLICATED: "UNDER-REPLICATED",
    Trouble.UNKNOWN: "UNKNOWN",
    Trouble.REASSIGNING: "being reassigned",
    Trouble.NOT_PREFERRED: "leader not preferred",
}


@attrs.frozen
class Candidate:
    """A replica that only an unclean election would elect, and what that would drop, by the ends of the logs now.

    `lacks`: how many offsets it is behind the longest log that was told; `bytes_short` the same by the sizes of logs.
    Both are None where its own log, or any other, was not told. `remembered`: replicas whose logs were told earlier
    only, which counts. `unheard`: those that are not told at all, and may have more. Equal ends may hide logs that
    differ: the ends do not tell.
    """

    replica: int
    lacks: int | None
    bytes_short: int | None
    unheard: tuple[int, ...]
    remembered: tuple[int, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether anything is told of what it lacks."""
        return self.lacks is not None or self.bytes_short is not None

    @property
    def says(self) -> str:
        if self.lacks is not None:
            loss = (
                "no offset of the logs that were told" if not self.lacks else f"the last {_many(self.lacks, 'record')}"
            )
        elif self.bytes_short is not None:
            loss = f"about {self.bytes_short:,} bytes" if self.bytes_short else "nothing by the sizes of the logs"
        else:
            return f"what electing {self.replica} uncleanly would lose is not known: where the logs end was not told"
        then = f" (with the log of {_ids(self.remembered)} as it was at an earlier look)" if self.remembered else ""
        more = f", and what only {_ids(self.unheard)} may have" if self.unheard else ""
        return f"electing {self.replica} uncleanly would lose {loss}{then}{more}"


@attrs.frozen
class Condition:
    """The worst that is wrong with a partition, in a sentence; `candidates` for an unclean election."""

    partition: Partition
    trouble: Trouble
    says: str
    candidates: tuple[Candidate, ...] = ()


Ends: TypeAlias = Mapping[tuple[str, int], Mapping[int, int]]
"""Of partitions, by topic and number, the ends of their replicas' logs."""


def ends_of(cluster: Cluster, before: Ends) -> Ends:
    """The ends that are told now, and those of earlier looks where a log is not told now, while something is wrong."""
    broken = [p for p in cluster.partitions if not p.whole]
    return {(p.topic, p.number): {**before.get((p.topic, p.number), {}), **p.ends} for p in broken}


def conditions(cluster: Cluster, before: Ends | None = None) -> list[Condition]:
    """Every partition with which something is wrong, worst first; `before`: where logs ended at earlier looks."""
    worst_of_each = [
        c
        for t in cluster.topics
        for minimum in [cluster.min_insync(t) if cluster.is_known(t, MIN_INSYNC) else None]
        for p in t.partitions
        for c in _of(p, minimum)
    ]
    with_candidates = [
        attrs.evolve(c, candidates=candidates(p, cluster.living, (before or {}).get((p.topic, p.number), {})))
        for c in worst_of_each
        for p in (c.partition,)
    ]
    return sorted(with_candidates, key=lambda c: (c.trouble, c.partition.topic, c.partition.number))


def candidates(
    p: Partition, living: tuple[int, ...] | None = None, before: Mapping[int, int] | None = None
) -> tuple[Candidate, ...]:
    """The living replicas out of ISR and ELR, those that would lose least first; none where those were not read."""
    if {"Isr", "Elr"} & set(p.unread_columns):
        return ()
    clean = {*p.isr, *(p.elr or ())}
    out = [r for r in p.replicas if r not in clean and r not in p.offline and (living is None or r in living)]
    found = [_candidate(p, r, before or {}) for r in out]
    return tuple(sorted(found, key=lambda c: (not c.is_known, c.lacks is None, c.lacks or 0, c.bytes_short or 0)))


def _candidate(p: Partition, replica: int, before: Mapping[int, int]) -> Candidate:
    def short(by_replica: Mapping[int, int]) -> int | None:
        return max(by_replica.values()) - by_replica[replica] if len(by_replica) > 1 else None

    ends = {r: end for r, end in {**before, **p.ends}.items() if r in p.replicas}
    lacks = short(ends) if replica in p.ends else None
    bytes_short = short(p.sizes) if replica in p.sizes else None
    by = ends if lacks is not None else p.sizes
    remembered = tuple(r for r in p.replicas if r in by and r not in p.ends) if lacks is not None else ()
    return Candidate(replica, lacks, bytes_short, tuple(r for r in p.replicas if r not in by), remembered)


WHO_IS_IN_SYNC: Final = frozenset(("Replicas", "Isr", "Adding Replicas", "Observers"))
"""The columns that say who is in sync, and who ought to be."""


def _of(p: Partition, minimum: int | None) -> Iterator[Condition]:
    """`minimum` is None where it was not told. What was not read of the partition is said, never taken to be well."""
    out = [r for r in p.members if r not in p.isr]
    in_sync = WHO_IS_IN_SYNC.isdisjoint(p.unread_columns)
    few = in_sync and minimum is not None and len(p.isr) < min(minimum, len(p.members))
    doubts = [f"what it has as {column} was not told, or makes no sense" for column in p.unread_columns]
    if p.leader is None and "Leader" not in p.unread_columns:
        yield Condition(p, Trouble.OFFLINE, "; ".join((f"nobody leads: {_wait_sentence(p)}", *doubts)))
    elif few:
        says = f"{_many(len(p.isr), 'replica')} in sync of {minimum} required: writes with acks=all are refused"
        yield Condition(p, Trouble.UNDER_MINIMUM, "; ".join((says, *doubts)))
    elif out and in_sync:
        doubts += ["whether writes are refused is not known, for min.insync.replicas was not told"] * (minimum is None)
        yield Condition(p, Trouble.UNDER_REPLICATED, "; ".join((f"not in sync: {_with_offline(out, p)}", *doubts)))
    elif doubts:
        yield Condition(p, Trouble.UNKNOWN, "; ".join(doubts))
    elif p.adding or p.removing:
        changes = [(p.adding, "added"), (p.removing, "removed")]
        yield Condition(p, Trouble.REASSIGNING, ", ".join(f"{_ids(r)} to be {verb}" for r, verb in changes if r))
    elif p.replicas and p.leader != p.replicas[0]:
        yield Condition(p, Trouble.NOT_PREFERRED, f"{p.leader} leads; {p.replicas[0]} is preferred")


def _with_offline(replicas: list[int], p: Partition) -> str:
    return " ".join(f"{r} (offline)" if r in p.offline else str(r) for r in replicas)


def _wait_sentence(p: Partition) -> str:
    """Whose return would end it without a loss."""
    if "Isr" in p.unread_columns:
        return "who is in sync was not told"
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
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
