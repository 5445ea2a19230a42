"""Room, as a quorum has it: the milestones of a behaviour that has room for the faults, and the bounds that they need.

A verdict is worth something only where this behaviour is among those explored: a record is committed, the faults that
were asked for happen, everybody is back, a leader is elected in a later epoch, and commits. Where no fault was asked
for, the later leader is elected after that commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from isr_lang import Bool, Design, Step, Struct, Value, action, define, exists, initial, largest, sometimes, var, when
from kraft_protocol.state import (
    CHANGES,
    DYNAMIC,
    LOST_DISKS,
    RESTARTS,
    SNAPSHOTS,
    Epoch,
    Offset,
    State,
    Voter,
    leads,
)


class Observed(State):
    """The state with history variables that no guard reads."""

    commits_early: Bool = var("a record was committed while a fault was still to come")
    faults_over: Bool = var("after that commit every fault has happened")
    epoch_then: Epoch = var("the last epoch that had a leader when they had")
    committed_then: Offset = var("how many records were committed then")


@initial
def nothing_yet(new: Observed) -> Step:
    """Nothing has come about yet."""
    return (~new.commits_early, ~new.faults_over, new.epoch_then == 0, new.committed_then == 0)


@define
def faults_have_happened(s: Observed) -> Bool:
    """Every fault that was asked for has happened, and every change of the voters and every snapshot."""
    faults = (s.restarts == RESTARTS) & (s.lost_disks == LOST_DISKS)
    return faults & (~DYNAMIC | (s.changes == CHANGES)) & (s.snapshots == SNAPSHOTS)


@define
def commits_before_fault(s: Observed) -> Bool:
    """A record is committed, and a fault is still to come, if any was asked for at all."""
    return (s.committed.length() > 0) & (
        ~faults_have_happened(s) | (RESTARTS + LOST_DISKS + when(DYNAMIC, CHANGES, 0) + SNAPSHOTS == 0)
    )


@sometimes
def record_commits_before_them(s: Observed) -> Bool:
    """A record is committed before the last fault."""
    return s.commits_early | commits_before_fault(s)


@sometimes
def all_faults_happen(s: Observed) -> Bool:
    """Every fault that was asked for happens."""
    return s.commits_early & faults_have_happened(s)


@sometimes
def everybody_returns_after_them(s: Observed) -> Bool:
    """Every voter is back after the last fault."""
    return s.faults_over & (s.alive == Voter.all())


@sometimes
def leader_is_elected_after_them(s: Observed) -> Bool:
    """A leader is elected after the last fault, in a later epoch."""
    return s.faults_over & exists(leads(s, r) & (s.epoch[r] > s.epoch_then) for r in Voter.all())


@sometimes
def record_commits_after_them(s: Observed) -> Bool:
    """A record commits after that election."""
    return (
        s.faults_over
        & (s.committed.length() > s.committed_then)
        & (s.committed[s.committed.length() - 1] > s.epoch_then)
    )


@action
def observes(old: Observed, new: Observed) -> Step:
    """Taken with every step: the history variables follow the state before it."""
    over = ~old.faults_over & old.commits_early & faults_have_happened(old)
    last = largest((when(~old.leaders[e].is_empty(), e, 0) for e in Epoch.all()), or_else=0)
    return (
        new.commits_early == (old.commits_early | commits_before_fault(old)),
        new.faults_over == (old.faults_over | over),
        new.epoch_then == when(over, last, old.epoch_then),
        new.committed_then == when(over, old.committed.length(), old.committed_then),
    )


MILESTONES = (
    record_commits_before_them,
    all_faults_happen,
    everybody_returns_after_them,
    leader_is_elected_after_them,
    record_commits_after_them,
)
"""In this order. The last one is what is asked; those before it lead there, and say how far a behaviour came."""

LEAST: Mapping[str, int] = {"epochs": 2, "log": 2}
"""Two elections, and the LeaderChange of each in one log."""


def watched_state(state: type[Struct]) -> type[Struct]:
    """The state of a design with the history variables, whatever variables of its own it has."""
    if issubclass(Observed, state):
        return Observed
    own = {v.name for v in State.variables()}
    more = [v.name for v in Observed.variables() if v.name not in own]
    hints = {name: Observed.__annotations__[name] for name in more}
    return type("Observed", (state,), {"__annotations__": hints, **{name: vars(Observed)[name] for name in more}})


def observed(design: Design) -> Design:
    """The design, watched for its milestones."""
    return design.observed(watched_state(design.state), nothing_yet, observes, MILESTONES)


def larger(constants: Mapping[str, Value]) -> dict[str, Value]:
    """Bounds with room for the faults, each at least what it is among these constants. A change takes a record."""
    least = {**LEAST, "log": LEAST["log"] + (cast("int", constants["changes"]) if constants["dynamic"] else 0)}
    return {name: max(cast("int", constants[name]), value) for name, value in least.items()}
