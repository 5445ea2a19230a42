"""Room, as Kafka's replication has it: the milestones of a behaviour that has room, and the bounds that faults need.

A checker that stops at its bounds says that nothing was lost, and is right, when it never came to the election in which
the record would have been lost. So a verdict is worth something only where this behaviour is among those explored:
every fault budget is spent; after that a leader is elected; after that a follower joins the in-sync set again; and
a record commits that was not committed at that election. `observed` is a design with history variables that notice
these four. MILESTONES are properties that name them in order, with what leads from one to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import attrs

from isr_lang import (
    Bool,
    Choice,
    Design,
    Property,
    Set,
    Step,
    Struct,
    Value,
    action,
    define,
    exists,
    initial,
    sometimes,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.instance import check_constants
from isr_protocol.promises.safety import leads_now
from isr_protocol.state import (
    CRASHES,
    LOSSY_CRASHES,
    RECORDS,
    REPLICAS,
    SESSIONS_LOST,
    SHUTDOWNS,
    UNNOTICED,
    LeaderEpoch,
    Offset,
    Replica,
    State,
    log_end,
)


class Stage(Choice):
    """How far the behaviour has come, as of its last step but one."""

    FAULTS: ClassVar[Stage]
    SPENT: ClassVar[Stage]
    ELECTED: ClassVar[Stage]
    REJOINED: ClassVar[Stage]


class Observed(State):
    """The state with history variables that no guard reads: how far a behaviour has come towards spending its room."""

    stage: Stage = var("what has come about already")
    epoch_then: LeaderEpoch = var("the controller's leader epoch when the last budget was spent")
    committed_then: Offset = var("how many records were committed when a leader was elected after that")
    in_sync_since: Set[Replica] = var("who has been in the in-sync set ever since a leader was elected after that")


@initial
def unobserved(new: Observed) -> Step:
    """Nothing has come about yet."""
    return (
        new.stage == Stage.FAULTS,
        new.epoch_then == 0,
        new.committed_then == 0,
        new.in_sync_since == blank(new.in_sync_since),
    )


@define
def crashes_happen(s: Observed) -> Bool:
    """Every crash that was asked for has happened."""
    return (s.crashes == CRASHES) & (s.lossy_crashes == LOSSY_CRASHES)


@define
def budgets_are_spent(s: Observed) -> Bool:
    """Every fault that was asked for has happened."""
    others = (s.sessions_lost == SESSIONS_LOST) & (s.unnoticed == UNNOTICED) & (s.shutdowns == SHUTDOWNS)
    return crashes_happen(s) & others


@define
def leader_is_new(s: Observed) -> Bool:
    """Whoever leads now was elected after the last fault."""
    return exists(leads_now(s, r) & (s.leader_epoch[r] > s.epoch_then) for r in Replica.all())


@define
def follower_has_rejoined(s: Observed) -> Bool:
    """Somebody is in the in-sync set who was not in it since that election; a single replica has nobody to wait for."""
    return ~(s.controller_isr <= s.in_sync_since) | (REPLICAS == 1)


@define
def rejoined(s: Observed) -> Bool:
    """A follower has joined the in-sync set after that election, now or before."""
    return (s.stage == Stage.REJOINED) | ((s.stage == Stage.ELECTED) & follower_has_rejoined(s))


@sometimes
def power_is_lost(s: Observed) -> Bool:
    """Every crash that loses what was not flushed happens."""
    return s.lossy_crashes == LOSSY_CRASHES


@sometimes
def all_crashes_happen(s: Observed) -> Bool:
    """Every crash that was asked for happens."""
    return crashes_happen(s)


@sometimes
def all_faults_happen(s: Observed) -> Bool:
    """Every fault that was asked for happens."""
    return budgets_are_spent(s)


@sometimes
def record_is_left_after_them(s: Observed) -> Bool:
    """There is still a record to be committed: one that is not produced yet, or one that somebody has."""
    before = (s.stage == Stage.FAULTS) | (s.stage == Stage.SPENT)
    committed = when(before, s.committed.length(), s.committed_then)
    held = exists((log_end(s, r) > committed) & (before | leads_now(s, r)) for r in Replica.all())
    return (s.written_in.length() < RECORDS) | held


@sometimes
def everybody_returns_after_them(s: Observed) -> Bool:
    """Every broker is back after the last fault."""
    return budgets_are_spent(s) & (s.alive == Replica.all())


@sometimes
def leader_is_elected_after_them(s: Observed) -> Bool:
    """A leader is elected after the last fault."""
    return (s.stage != Stage.FAULTS) & (leader_is_new(s) | (s.stage != Stage.SPENT))


@sometimes
def follower_is_out_after_them(s: Observed) -> Bool:
    """After that election somebody is not in the in-sync set, and so can join it."""
    return rejoined(s) | ((s.stage == Stage.ELECTED) & (s.in_sync_since & s.controller_isr != Replica.all()))


@sometimes
def follower_rejoins_after_them(s: Observed) -> Bool:
    """A follower joins the in-sync set after that election."""
    return rejoined(s)


@sometimes
def record_awaits_commit_after_them(s: Observed) -> Bool:
    """That leader has a record that was not committed when it was elected."""
    return rejoined(s) & exists(leads_now(s, r) & (log_end(s, r) > s.committed_then) for r in Replica.all())


@sometimes
def record_is_replicated_after_them(s: Observed) -> Bool:
    """The in-sync followers have that record."""
    return rejoined(s) & (s.controller_isr <= Replica.all().where(lambda r: log_end(s, r) > s.committed_then))


@sometimes
def record_commits_after_them(s: Observed) -> Bool:
    """A record commits after that election."""
    return rejoined(s) & (s.committed.length() > s.committed_then)


@action
def observes(old: Observed, new: Observed) -> Step:
    """Taken with every step: the history variables follow the state before it."""
    faults_end = (old.stage == Stage.FAULTS) & budgets_are_spent(old)
    elected = (old.stage == Stage.SPENT) & leader_is_new(old)
    joined = (old.stage == Stage.ELECTED) & follower_has_rejoined(old)
    return (
        new.stage
        == when(faults_end, Stage.SPENT, when(elected, Stage.ELECTED, when(joined, Stage.REJOINED, old.stage))),
        new.epoch_then == when(faults_end, old.controller_epoch, old.epoch_then),
        new.committed_then
        == when((old.stage == Stage.FAULTS) | (old.stage == Stage.SPENT), old.committed.length(), old.committed_then),
        new.in_sync_since
        == when(
            elected,
            old.controller_isr,
            when(old.stage == Stage.ELECTED, old.in_sync_since & old.controller_isr, old.in_sync_since),
        ),
    )


MILESTONES = (
    record_is_left_after_them,
    power_is_lost,
    all_crashes_happen,
    all_faults_happen,
    everybody_returns_after_them,
    leader_is_elected_after_them,
    follower_is_out_after_them,
    follower_rejoins_after_them,
    record_awaits_commit_after_them,
    record_is_replicated_after_them,
    record_commits_after_them,
)
"""In this order. The last one is what is asked; those before it lead there, and say how far a behaviour came."""


@define
def nobody_leaves(s: Observed) -> Bool:
    """In a design without a moving in-sync set there is nothing to join again."""
    return s.in_sync_since == s.in_sync_since


def watched_state(state: type[Struct]) -> type[Struct]:
    """The state of a design with the history variables, whatever variables of its own it has."""
    if issubclass(Observed, state):
        return Observed
    more = [v.name for v in Observed.variables() if v.name not in {own.name for own in State.variables()}]
    hints = {name: Observed.__annotations__[name] for name in more}
    return type("Observed", (state,), {"__annotations__": hints, **{name: vars(Observed)[name] for name in more}})


OF_RECORDS = {
    p.name for p in (record_awaits_commit_after_them, record_is_replicated_after_them, record_commits_after_them)
}


def _without_records(milestone: Property) -> Property:
    """The milestone in a design in which nothing is written: that a follower joins again is all to wait for."""
    if milestone.name not in OF_RECORDS:
        return milestone
    return attrs.evolve(milestone, condition=follower_rejoins_after_them.condition)


def observed(design: Design) -> Design:
    """The design, watched for MILESTONES."""
    watched_design = design.observed(watched_state(design.state), unobserved, observes, MILESTONES)
    if not any(u.variable == "written_in" for a in design.actions for u in a.updates):
        watched_design = attrs.evolve(
            watched_design, properties=tuple(map(_without_records, watched_design.properties))
        )
    if any(u.variable == "controller_isr" for a in design.actions for u in a.updates):
        return watched_design
    return watched_design.replacing(
        design.name, design.summary, because="its quorum does not move", follower_has_rejoined=nobody_leaves
    )


# Bounds that follow the faults


def larger(design: Design, constants: Mapping[str, Value]) -> dict[str, Value]:
    """Bounds with room for the fault budgets among these constants (all are given), each at least what it is there.

    A fault may cost a change of the leader, and the last one two: to nobody and back. A change of the leader costs one
    of the partition's metadata, and so does the return of who left the in-sync set.
    """
    faults = sum(cast("int", constants[c.name]) for c in design.constants() if c.budget)
    wanted = {"epochs": 1 + faults, "isr_changes": 2 + 2 * max(1, faults)}
    return {
        c.name: max(cast("int", constants[c.name]), min(wanted[c.name], c.high))
        for c in design.constants()
        if c.name in wanted
    }


def following(design: Design, constants: Mapping[str, Value]) -> dict[str, Value]:
    """What is given, and bounds that follow the fault budgets where those, or the replicas, are not the design's own.

    A bound that is given stays as it is. At its own budgets a design has bounds of its own.
    """
    complete, own = check_constants(design, constants), check_constants(design, {})
    budgets = [c.name for c in design.constants() if c.budget]
    if all(complete[name] == own[name] for name in (*budgets, "replicas")):
        return dict(constants)
    return {**larger(design, complete), **constants}
