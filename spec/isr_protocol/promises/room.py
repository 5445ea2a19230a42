"""Room, as Kafka's replication has it: the milestones of a behaviour that has room, and the bounds that faults need.

A checker that stops at its bounds says that nothing was lost, and is right, when it never came to the election in which
the record would have been lost. So a verdict is worth something only where this behaviour is among those explored:
every fault budget is spent; after that a leader is elected; after that a follower joins the in-sync set again; and
a record commits that was not committed at that election. `observed` is a design with history variables that notice
these four. MILESTONES are properties that name them in order, with what leads from one to the next.

Settings are asked for like faults. What they allow (`allowances`) is to come about no later than that election, each in
a behaviour of its own. `stories` has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import attrs

from isr_lang import (
    NONE,
    Bool,
    Choice,
    Count,
    Design,
    Property,
    Set,
    Step,
    Struct,
    Value,
    action,
    bound,
    count,
    define,
    exists,
    initial,
    sometimes,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.declare import Action
from isr_lang.expr import wrap
from isr_lang.instance import check_constants
from isr_lang.nodes import Node, literal
from isr_lang.override import DefinitionFunction, definition_of
from isr_lang.types import BOOL
from isr_protocol.promises.allowances import Allowance, allowances
from isr_protocol.promises.safety import acked_survives, leaders_complete, leads_now
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
    Record,
    Replica,
    State,
    holds,
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
    allowance_met: Bool = var("what the setting allows has come about, if a setting is asked for")


@initial
def unobserved(new: Observed) -> Step:
    """Nothing has come about yet."""
    return (
        new.stage == Stage.FAULTS,
        new.epoch_then == 0,
        new.committed_then == 0,
        new.in_sync_since == blank(new.in_sync_since),
        new.allowance_met == Bool.false,
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
def before_last_fault(s: Observed) -> Bool:
    """A fault that was asked for is still to come, if any was asked for at all."""
    faults = CRASHES + LOSSY_CRASHES + SESSIONS_LOST + UNNOTICED + SHUTDOWNS
    return ~budgets_are_spent(s) | (faults == 0)


@define
def allowance_is_met(s: Observed) -> Bool:
    """What the setting allows comes about in this state. Where no setting is asked about, nothing has to."""
    return Bool.true


@define
def allowance_is_an_action(s: Observed) -> Bool:
    """The action itself says that it is taken; no state does."""
    return Bool.false


@define
def record_is_early(s: Observed) -> Bool:
    """Before the last fault a record is acknowledged that is not committed."""
    early = s.acked & Record.all().where(
        lambda m: ~exists(s.committed[o] == m for o in Offset.below(s.committed.length()))
    )
    return before_last_fault(s) & ~early.is_empty()


def held_by_fewer(minimum: int) -> DefinitionFunction:
    """A definition: before the last fault a record is acknowledged that fewer logs hold than this."""

    @define
    def record_is_held_by_fewer(s: Observed) -> Bool:
        """Before the last fault a record is acknowledged that fewer logs hold than the design's own minimum."""
        few = exists(s.acked.has(m) & (count(holds(s, r, m) for r in Replica.all()) < minimum) for m in Record.all())
        return before_last_fault(s) & few

    return record_is_held_by_fewer


@define
def noticed_budgets_are_spent(s: Observed) -> Bool:
    """Every fault that was asked for has happened, but for those that nobody notices: these take no leader away."""
    others = (s.sessions_lost == SESSIONS_LOST) & (s.shutdowns == SHUTDOWNS)
    return crashes_happen(s) & others


def operations_of(design: Design) -> dict[str, Count]:
    """The budgets that a design has beside those of faults, by the name of the variable that counts them."""
    of_faults = {v.name for v in State.variables()}
    return {
        c.name: bound(c.name, c.doc, default=cast("int", c.default), low=c.low, high=c.high, budget=True)
        for c in design.constants()
        if c.budget and c.name not in of_faults
    }


def operations_are_done(s: Struct, budgets: Mapping[str, Count]) -> Bool:
    """All that was asked for beside faults has come about: what people do, and messages that arrive twice or late."""
    done = Bool.true
    for name, budget in budgets.items():
        done &= cast("Count", getattr(s, name)) == budget
    return done


def with_operations(
    faults: DefinitionFunction, state: type[Struct], budgets: Mapping[str, Count]
) -> DefinitionFunction:
    """A definition: the budgets of faults are spent, and these are."""

    def budgets_and_operations_are_spent(s: Struct) -> Bool:
        """Every fault that was asked for has happened, and all that people were asked to do."""
        of_faults = cast("Bool", wrap(Node("call", (), (definition_of(faults), False), BOOL)))
        return of_faults & operations_are_done(s, budgets)

    budgets_and_operations_are_spent.__annotations__["s"] = state
    return define(budgets_and_operations_are_spent)


def operations_milestone(state: type[Struct], budgets: Mapping[str, Count]) -> Property:
    """The milestone that these budgets are spent."""

    def all_operations_happen(s: Struct) -> Bool:
        """All that was asked for beside faults happens: reassignments, new minimums, empty disks, copies, late news."""
        return operations_are_done(s, budgets)

    all_operations_happen.__annotations__["s"] = state
    return sometimes(all_operations_happen)


@define
def leader_is_new(s: Observed) -> Bool:
    """Whoever leads now was elected after the last fault, and what the setting allows has come about by then."""
    elected = exists(leads_now(s, r) & (s.leader_epoch[r] > s.epoch_then) for r in Replica.all())
    return elected & (s.allowance_met | allowance_is_met(s))


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
def in_sync_set_shrinks_to_one(s: Observed) -> Bool:
    """The in-sync set shrinks to one replica."""
    return s.allowance_met | (s.controller_isr.size() <= 1)


@sometimes
def nobody_leads(s: Observed) -> Bool:
    """The partition is without a leader."""
    return s.allowance_met | (s.controller_leader == NONE)


@sometimes
def switched_action_is_taken(s: Observed) -> Bool:
    """What the settings switch on happens, such as an unclean election."""
    return s.allowance_met


@sometimes
def record_is_acknowledged_by_fewer(s: Observed) -> Bool:
    """Before the last fault a record is acknowledged that fewer replicas hold than the design's own minimum."""
    return s.allowance_met | allowance_is_met(s)


@sometimes
def record_is_acknowledged_early(s: Observed) -> Bool:
    """Before the last fault a record is acknowledged that is not committed."""
    return s.allowance_met | allowance_is_met(s)


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
        new.allowance_met == (old.allowance_met | allowance_is_met(old)),
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
OF_ALLOWANCES = (
    in_sync_set_shrinks_to_one,
    nobody_leads,
    switched_action_is_taken,
    record_is_acknowledged_by_fewer,
    record_is_acknowledged_early,
)
"""Milestones beside those, in the story of an allowance. The first two lead to an unclean election."""


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
    """The design, watched for its milestones."""
    return _observed(design, milestones_of(design, MILESTONES))


def milestones_of(design: Design, milestones: tuple[Property, ...]) -> tuple[Property, ...]:
    """The milestones, and of a design with budgets of its own that these are spent, before it is asked for all."""
    budgets, at = operations_of(design), milestones.index(all_faults_happen)
    if not budgets:
        return milestones
    return (*milestones[:at], operations_milestone(watched_state(design.state), budgets), *milestones[at:])


def _observed(
    design: Design, milestones: tuple[Property, ...], faults: DefinitionFunction = budgets_are_spent
) -> Design:
    state, budgets = watched_state(design.state), operations_of(design)
    watched_design = design.observed(state, unobserved, observes, milestones)
    if budgets or faults is not budgets_are_spent:
        whole = with_operations(faults, state, budgets) if budgets else faults
        watched_design = watched_design.replacing(
            design.name, design.summary, because="it asks for other budgets", budgets_are_spent=whole
        )
    if not any(u.variable == "written_in" for a in design.actions for u in a.updates):
        watched_design = attrs.evolve(
            watched_design, properties=tuple(map(_without_records, watched_design.properties))
        )
    if any(u.variable == "controller_isr" for a in design.actions for u in a.updates):
        return watched_design
    return watched_design.replacing(
        design.name, design.summary, because="its quorum does not move", follower_has_rejoined=nobody_leaves
    )


# What settings allow


@attrs.frozen
class Story:
    """A behaviour for which bounds are to leave room: a design that is watched, and the milestones that it passes.

    `allowance`: what a setting allows, and is to come about in this one; None in the story of the faults alone.
    """

    design: Design
    milestones: tuple[Property, ...]
    allowance: Allowance | None = None


def stories(design: Design, constants: Mapping[str, Value]) -> tuple[Story, ...]:
    """All that bounds are to leave room for: the faults, and each allowance of the settings with the faults."""
    return (
        Story(observed(design), milestones_of(design, MILESTONES)),
        *(_story(design, a) for a in allowances(design, constants)),
    )


def _story(design: Design, allowance: Allowance) -> Story:
    """The faults, what the setting allows, a new leader, a follower that rejoins.

    It ends without a commit: what is acknowledged by fewer replicas is committed already, and may be the only record.
    """
    after = MILESTONES.index(everybody_returns_after_them)
    faults, rest = MILESTONES[1:after], MILESTONES[after : MILESTONES.index(follower_rejoins_after_them) + 1]
    condition: DefinitionFunction
    if allowance.action:
        shrinks, *comes_about = OF_ALLOWANCES[:3]
        milestones, condition = (shrinks, *faults, *comes_about, *rest), allowance_is_an_action
    elif allowance.is_early:
        milestones, condition = (record_is_acknowledged_early, *faults, *rest), record_is_early
    else:
        milestones, condition = (record_is_acknowledged_by_fewer, *faults, *rest), held_by_fewer(allowance.minimum)
    milestones = milestones_of(design, milestones)
    whole = _observed(design, milestones, noticed_budgets_are_spent)
    whole = whole.replacing(
        whole.name, whole.summary, because="what a setting allows is watched, too", allowance_is_met=condition
    )
    actions = tuple(_with_mark(a) if a.name == allowance.action else a for a in whole.actions)
    return Story(attrs.evolve(whole, actions=actions), milestones, allowance)


def _with_mark(action: Action) -> Action:
    """The action of an observed design, which is itself what the setting allows."""
    true = literal(True, BOOL)
    updates = (attrs.evolve(u, value=true) if u.variable == "allowance_met" else u for u in action.updates)
    return attrs.evolve(action, updates=tuple(updates))


# Bounds that follow the faults

ELECTION = ("epochs", "isr_changes")
"""The bounds of which an election takes one each."""


def larger(design: Design, constants: Mapping[str, Value]) -> dict[str, Value]:
    """Bounds with room for the fault budgets among these constants (all are given), each at least what it is there.

    A fault may cost a change of the leader, and the last one two: to nobody and back. A change of the leader costs one
    of the partition's metadata, and so does the return of who left the in-sync set. What a setting allows costs as
    much: an unclean election is such a change to nobody and back, after an in-sync set that shrank. A reassignment
    changes the leader, too. A design that has no budget for these gets room for one.
    """
    faults = sum(cast("int", constants[c.name]) for c in design.constants() if c.budget)
    faults += any(u.variable == "replicas" for a in design.actions for u in a.updates) and not operations_of(design)
    wanted = {"epochs": 1 + faults, "isr_changes": 2 + 2 * max(1, faults)}
    return {
        c.name: max(cast("int", constants[c.name]), min(wanted[c.name], c.high))
        for c in design.constants()
        if c.name in wanted
    }


def following(design: Design, constants: Mapping[str, Value]) -> dict[str, Value]:
    """What is given, and bounds that follow what is asked for: fault budgets, replicas and settings, where not its own.

    A bound that is given stays as it is. At its own budgets and settings a design has bounds of its own. One that is
    known to break leaders-complete without a fault gets room for one more election, or who lacks a record never leads.
    """
    complete, own = check_constants(design, constants), check_constants(design, {})
    budgets = [c.name for c in design.constants() if c.budget]
    usual = all(complete[name] == own[name] for name in (*budgets, "replicas"))
    bounds = {} if usual and not allowances(design, constants) else larger(design, complete)
    incomplete = leaders_complete.name in design.expected and acked_survives.name not in design.expected
    if incomplete and not any(complete[name] for name in budgets):
        more = {c.name: min(cast("int", own[c.name]) + 1, c.high) for c in design.constants() if c.name in ELECTION}
        bounds = {name: max(value, cast("int", bounds.get(name, 0))) for name, value in more.items()}
    return {**bounds, **constants}
