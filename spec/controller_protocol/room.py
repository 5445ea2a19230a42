"""Room, where controllers are a quorum: the milestones of a behaviour that has room for the faults, and their bounds.

A verdict is worth something only where this behaviour is among those explored: the faults that were asked for happen,
a later controller is elected, and commits. Where there is a partition, a change of its metadata that this controller
decides is committed, every broker is back, and a record is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from controller_protocol.state import State
from isr_lang import (
    Bool,
    Design,
    Property,
    Step,
    Struct,
    Value,
    action,
    define,
    exists,
    initial,
    largest,
    sometimes,
    var,
    when,
)
from isr_lang.instance import check_constants
from isr_protocol.replication import leader_appends
from isr_protocol.state import CRASHES, LOSSY_CRASHES, SESSIONS_LOST, UNNOTICED, Offset, PartitionEpoch, Replica
from kraft_protocol.abstract_quorum import AbstractQuorum, Position, Term
from kraft_protocol.state import LOST_DISKS, Voter

# Of the quorum alone


class Observed(AbstractQuorum):
    """The state with history variables that no guard reads."""

    faults_over: Bool = var("every fault has happened")
    term_then: Term = var("the last epoch of a leader when they had")
    quorum_committed_then: Position = var("how many records of the quorum were committed then")


def begins_unobserved(new: Observed) -> Step:
    """Of the quorum nothing has come about yet."""
    return (~new.faults_over, new.term_then == 0, new.quorum_committed_then == 0)


@initial
def nothing_yet(new: Observed) -> Step:
    """Nothing has come about yet."""
    return begins_unobserved(new)


@define
def faults_have_happened(s: Observed) -> Bool:
    """Every fault that was asked for has happened."""
    return s.lost_disks == LOST_DISKS


@sometimes
def all_faults_happen(s: Observed) -> Bool:
    """Every fault that was asked for happens."""
    return s.faults_over | faults_have_happened(s)


@sometimes
def controller_is_elected_after_them(s: Observed) -> Bool:
    """A voter of the quorum leads a later epoch after the last fault."""
    return s.faults_over & exists(s.quorum_leaders.has(v) & (s.term_then < s.term[v]) for v in Voter.all())


@define
def later_controller_has_committed(s: Observed) -> Bool:
    """A record of a later epoch than that of the last fault is committed."""
    n = s.quorum_committed.length()
    return s.faults_over & (s.quorum_committed_then < n) & (s.term_then < s.quorum_committed[n - 1])


@sometimes
def controller_commits_after_them(s: Observed) -> Bool:
    """That leader commits a record of its epoch."""
    return later_controller_has_committed(s)


def follows(old: Observed, new: Observed, over: Bool) -> Step:
    """The history variables of the quorum follow the state before the step; in it the faults are `over`, or not."""
    last = largest((when(old.quorum_leaders.has(v), old.term[v], 0) for v in Voter.all()), or_else=0)
    return (
        new.faults_over == (old.faults_over | over),
        new.term_then == when(over, last, old.term_then),
        new.quorum_committed_then == when(over, old.quorum_committed.length(), old.quorum_committed_then),
    )


@action
def observes(old: Observed, new: Observed) -> Step:
    """Taken with every step."""
    return follows(old, new, ~old.faults_over & faults_have_happened(old))


OF_QUORUM = (all_faults_happen, controller_is_elected_after_them, controller_commits_after_them)

# With a partition


class ObservedPartition(State, Observed):
    """The same of a partition and its controllers."""

    change_then: PartitionEpoch = var("the partition epoch that brokers could hear of before that commit")
    committed_then: Offset = var("how many records of the partition were committed when the faults had happened")


@initial
def nothing_of_partition_yet(new: ObservedPartition) -> Step:
    """Nothing has come about yet."""
    return (*begins_unobserved(new), new.change_then == 0, new.committed_then == 0)


@define
def faults_of_all_have_happened(s: ObservedPartition) -> Bool:
    """Every fault that was asked for has happened, to controllers and to brokers."""
    of_brokers = (s.crashes == CRASHES) & (s.lossy_crashes == LOSSY_CRASHES)
    others = (s.sessions_lost == SESSIONS_LOST) & (s.unnoticed == UNNOTICED)
    return (s.lost_disks == LOST_DISKS) & of_brokers & others


@sometimes
def everybody_returns_after_them(s: ObservedPartition) -> Bool:
    """Every broker is back after the last fault."""
    return s.faults_over & (s.alive == Replica.all())


@define
def later_controller_has_changed_it(s: ObservedPartition) -> Bool:
    """Brokers can hear of a change of the partition that was not committed before that leader's first record."""
    return later_controller_has_committed(s) & (s.change_then < s.controller_partition_epoch)


@sometimes
def controller_changes_it_after_them(s: ObservedPartition) -> Bool:
    """That leader commits a change of the partition's metadata."""
    return later_controller_has_changed_it(s)


@sometimes
def record_commits_after_them(s: ObservedPartition) -> Bool:
    """After that every broker is up, and a record is committed that was not when the faults had happened."""
    more = s.committed_then < s.committed.length()
    return later_controller_has_changed_it(s) & (s.alive == Replica.all()) & more


@action
def observes_partition(old: ObservedPartition, new: ObservedPartition) -> Step:
    """The same of a partition."""
    over = ~old.faults_over & faults_have_happened(old)
    later = later_controller_has_committed(old)
    return (
        *follows(old, new, over),
        new.change_then == when(later, old.change_then, old.controller_partition_epoch),
        new.committed_then == when(over, old.committed.length(), old.committed_then),
    )


OF_PARTITION = (
    *OF_QUORUM,
    controller_changes_it_after_them,
    everybody_returns_after_them,
    record_commits_after_them,
)
MILESTONES = OF_PARTITION
"""The last one of those of a design is what is asked; those before it lead there."""


def has_partition(design: Design) -> bool:
    return issubclass(design.state, State)


def milestones_of(design: Design) -> tuple[Property, ...]:
    """Those of a design without a partition, or without clients that write, end sooner."""
    if not has_partition(design):
        return OF_QUORUM
    return OF_PARTITION if leader_appends in design.actions else OF_PARTITION[:-1]


def watched_state(state: type[Struct]) -> type[Struct]:
    """The state of a design with the history variables, whatever variables of its own it has."""
    watched: type[Struct] = ObservedPartition if issubclass(state, State) else Observed
    return cast("type[Struct]", type("Watched", (watched, state), {"__annotations__": {}}))


def observed(design: Design) -> Design:
    """The design, watched for its milestones."""
    state, milestones = watched_state(design.state), milestones_of(design)
    if not has_partition(design):
        return design.observed(state, nothing_yet, observes, milestones)
    whole = design.observed(state, nothing_of_partition_yet, observes_partition, milestones)
    return whole.replacing(
        whole.name,
        whole.summary,
        because="brokers have faults, too",
        faults_have_happened=faults_of_all_have_happened,
    )


FAULTS_OF_BROKERS = ("crashes", "lossy_crashes", "sessions_lost", "unnoticed")
FAULTS = (*FAULTS_OF_BROKERS, "lost_disks")


def larger(design: Design, constants: Mapping[str, Value]) -> dict[str, Value]:
    """Bounds with room for the faults, each at least what it is there.

    The partition is created, a leader begins, and decides. A fault of a broker takes three records more: it is fenced,
    registers, and is unfenced.
    """
    faults = sum(cast("int", constants.get(name, 0)) for name in FAULTS_OF_BROKERS)
    least = {"terms": 1, "metadata_log": 3 + 3 * faults, "isr_changes": 1 + faults, "log": 1}
    bounds = {c.name: min(least[c.name], c.high) for c in design.constants() if c.name in least}
    return {name: max(cast("int", constants[name]), value) for name, value in bounds.items()}


def following(design: Design, constants: Mapping[str, Value]) -> Mapping[str, Value]:
    """What is given, and bounds with room for the faults, where these are not the design's own."""
    complete, own = check_constants(design, constants), check_constants(design, {})
    if all(complete[name] == own[name] for name in FAULTS if name in own):
        return constants
    return {**larger(design, complete), **constants}
