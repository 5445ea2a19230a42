"""What becomes of one acknowledged record while people work at a cluster: a design made of another one.

Of the other design this one keeps the controller, and of its state only the variables of `Fate`. Its actions are
taken over by a rule, `projection`: an update of another variable is left out, and so is a guard that reads one, or a
bound. To leave out a guard lets more happen. So every step that the other design can take is a step here, or none at
all, and epochs and versions have no bound.

Messages are not kept. In their place stand four actions that let more happen, too:

- a record is acknowledged once, at any time, on any set of disks that has all members of the ISR and the ELR
- whoever runs may copy it, or not
- the leader may drop any members from the ISR, at any time
- it may add a follower, which has the record if it was acknowledged before

A member that lost its disk, and has not registered again, may have been counted for an acknowledgement. The record
stands for each record, since nothing here depends on another one. What is safe here is therefore safe in the other
design, for any number of records, epochs and changes. What is lost here need not be (`tests/isr_drill/test_cover.py`).

Only a leader acknowledges, or asks for another ISR. These are the `believers`: whoever has run since the drill began,
whoever was elected while it ran, and the elected leader that is down, whose last request may be on its way. A leader
counts, and adds, whom it has heard, so both ran at the same time. Who did not is one of the `strays`. Of these a leader
counts only whom it knew before the drill. Then all `first` members have the record, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import attrs

from isr_lang import (
    NONE,
    Action,
    Bool,
    Choice,
    Design,
    Map,
    Maybe,
    Number,
    Set,
    Step,
    Struct,
    Update,
    action,
    always,
    bound,
    define,
    exists,
    initial,
    sometimes,
    var,
    variables_in,
    when,
)
from isr_lang.blank import blank
from isr_protocol.elections import relievable
from isr_protocol.membership import elr_beside
from isr_protocol.state import FLUSH, MIN_INSYNC, UNCLEAN, Flush, Replica, State

PHASES = bound("phases", "phases of a runbook", default=1, high=99)


class Phase(Number, high=PHASES):
    """How many phases of the runbook have begun."""


class Happening(Choice):
    """What a phase does to brokers, or waits for."""

    NOTHING: ClassVar[Happening]
    STOP: ClassVar[Happening]
    KILL: ClassVar[Happening]
    POWER_LOSS: ClassVar[Happening]
    DESTROY: ClassVar[Happening]
    PAUSE: ClassVar[Happening]
    START: ClassVar[Happening]
    WAIT: ClassVar[Happening]
    ELECT: ClassVar[Happening]
    SET: ClassVar[Happening]
    REASSIGN: ClassVar[Happening]
    WAIT_REASSIGNED: ClassVar[Happening]
    RESUME: ClassVar[Happening]
    CANCEL: ClassVar[Happening]


class Fate(Struct):
    """The partition's metadata, the brokers, the disks that have the record, and how far the runbook is."""

    alive: Set[Replica] = var("brokers whose process runs")
    asleep: Set[Replica] = var("brokers whose process runs and has been paused")
    controller_leader: Maybe[Replica] = var("the elected leader")
    controller_isr: Set[Replica] = var("the in-sync replicas (ISR)")
    controller_elr: Set[Replica] = var("the eligible leader replicas (ELR)")
    last_known_leader: Maybe[Replica] = var("who led when the ISR became empty")
    fenced: Set[Replica] = var("brokers without a session")
    shutting_down: Set[Replica] = var("brokers in controlled shutdown")
    clean_shutdown: Set[Replica] = var("brokers that are down and left the mark of a clean shutdown")
    acked: Bool = var("the record was acknowledged")
    holders: Set[Replica] = var("disks that have the record, once it was acknowledged")
    wounds: Set[Replica] = var("brokers that are down and have lost what their disk had")
    believers: Set[Replica] = var("who may believe that it leads, or is down and may have asked for an ISR")
    first: Set[Replica] = var("the ISR and the ELR when the drill began")
    strays: Set[Replica] = var("brokers that no leader can have heard since then, or since they started")
    kinds: Map[Phase, Happening] = var("the runbook: what each phase does, from 1 on")
    targets: Map[Phase, Set[Replica]] = var("the runbook: the brokers to which it does so")
    phase: Phase = var("phases of the runbook that have begun")
    to_do: Set[Replica] = var("brokers to which the present phase has yet to happen")


BEFORE: Final = State()
"""The other design's state before a step, for its definitions; of its variables only those of `Fate` are left."""
NOW: Final = Fate()
"""The state before a step."""


# The projection.


def projection(action: Action, state: type[Struct] = Fate) -> Action:
    """The action on the variables of `state` alone; TypeError where an update of one of these reads another."""
    names = {v.name for v in state.variables()}
    guards = tuple(g for g in action.guards if variables_in(g.condition) <= names)
    updates = tuple(u for u in (*action.updates, *beliefs(action)) if u.variable in names)
    for u in updates:
        if beside := variables_in(u.value).union(*map(variables_in, u.path)) - names:
            raise TypeError(f"{action.name} computes {u.variable} of {', '.join(sorted(beside))}")
    return attrs.evolve(action, guards=guards, updates=updates)


def beliefs(action: Action) -> Iterator[Update]:
    """What a change of the partition's metadata does to `believers` and `strays`.

    A request from before the change is refused, so who asked and is down counts no more. Who is elected while it runs
    counts, and hears all that run. Once the record is acknowledged only the elected leader counts. (A start need not
    change the metadata.)
    """
    values = {u.variable: u.value for u in action.updates if not u.path}
    if "controller_isr" not in values or action.name == "broker_restarts":
        return
    lasting = when(NOW.acked, in_office(NOW), NOW.believers) & NOW.alive
    if "controller_leader" in values:
        leader = Maybe[Replica](values["controller_leader"])
        elected = Replica.all().where(lambda r: (leader == r) & NOW.alive.has(r))
        yield Update("believers", (), (elected | when(NOW.acked, blank(elected), lasting)).node)
        yield Update("strays", (), when(elected.is_empty(), NOW.strays, NOW.strays - NOW.alive).node)
    else:
        yield Update("believers", (), lasting.node)


@define
def in_office(s: Fate) -> Set[Replica]:
    """The elected leader, if it knows that it leads, or knew it before its process ended."""
    return s.believers.where(lambda r: s.controller_leader == r)


CONTROLLER: Final = (
    *("controller_fences_outsider", "controller_fences_follower", "controller_fences_leader"),
    *("controller_fences_last_leader", "controller_unfences", "controller_elects_returned"),
    *("controller_elects_last_known_leader", "controller_elects_unclean", "broker_shuts_down"),
)
"""The actions that are taken over as they are, where a design has them."""
RESTLESS: Final = ("controller_moves_leadership",)
"""What happens, too, unless everybody keeps up and leaders stay."""


@define
def leaves(s: Fate, r: Replica) -> Bool:
    """The controller may do without the broker: it is down, or paused, or asked to shut down."""
    return ~s.fenced.has(r) & (~s.alive.has(r) | s.asleep.has(r) | relievable(BEFORE, r))


# In place of messages.


@define
def countable(s: Fate, disks: Set[Replica]) -> Set[Replica]:
    """Whose disks a leader may count of these: not those of strays, unless it knows no more than before the drill."""
    return when(s.first <= disks, disks, disks - s.strays)


@define
def led_last(s: Fate) -> Set[Replica]:
    """Who led when the ISR became empty: what an earlier leader acknowledges late, it has, or had it."""
    return Replica.all().where(lambda r: s.last_known_leader == r)


@action
def record_is_acknowledged(old: Fate, new: Fate, copies: Set[Replica]) -> Step:
    """A producer is told that its record is safe: all members have it, or had it until they lost their disk."""
    members = old.controller_isr | old.controller_elr
    return (
        ~old.acked,
        ~members.is_empty(),
        ((members | led_last(old)) - old.wounds) <= copies,
        ~(copies & old.alive & old.believers).is_empty(),
        countable(old, copies | old.wounds).size() >= MIN_INSYNC,
        new.acked,
        new.holders == copies,
        new.believers == in_office(old),
    )


@action
def record_is_copied(old: Fate, new: Fate, r: Replica) -> Step:
    """A follower that lacks the record fetches it."""
    return (
        old.acked,
        old.alive.has(r),
        ~old.holders.has(r),
        ~old.holders.is_empty(),
        new.holders == old.holders.including(r),
    )


def isr_becomes(old: Fate, new: Fate, isr: Set[Replica]) -> Step:
    """The controller accepts the leader's proposal (`controller_accepts_alter_partition`)."""
    return (
        ~in_office(old).is_empty(),
        (isr & (old.fenced | old.shutting_down)).is_empty(),
        new.controller_isr == isr,
        new.controller_elr == elr_beside(BEFORE, isr),
    )


@action
def isr_grows(old: Fate, new: Fate, r: Replica) -> Step:
    """A follower joins the ISR, with what was acknowledged before."""
    return (
        ~(old.controller_isr | old.strays).has(r),
        old.acked.implies((old.holders | old.wounds).has(r)),
        *isr_becomes(old, new, old.controller_isr.including(r)),
    )


def shrinks(old: Fate, new: Fate, lagging: Set[Replica]) -> Step:
    """The leader drops members, and never itself."""
    return (
        ~lagging.is_empty(),
        lagging <= old.controller_isr,
        ~exists((old.controller_leader == r) & lagging.has(r) for r in Replica.all()),
        *isr_becomes(old, new, old.controller_isr - lagging),
    )


@action
def isr_shrinks(old: Fate, new: Fate, lagging: Set[Replica]) -> Step:
    """Members leave the ISR, for they lag."""
    return shrinks(old, new, lagging)


@define
def absent(s: Fate) -> Set[Replica]:
    """Who may lag where all that run keep up: who is down, paused or cut off."""
    return (s.controller_isr - s.alive) | s.asleep


@define
def absent_or_cut_off(s: Fate) -> Set[Replica]:
    """The same, and all where the leader is cut off: it may reach the controller, and nobody else."""
    is_cut = exists((s.controller_leader == r) & s.asleep.has(r) for r in Replica.all())
    return when(is_cut, Replica.all(), absent(s))


@action
def isr_loses_absent(old: Fate, new: Fate, lagging: Set[Replica]) -> Step:
    """Members leave the ISR that do not run: whoever runs keeps up with a leader that is heard."""
    return (lagging <= absent(old), *shrinks(old, new, lagging))


@action
def isr_loses_cut_off(old: Fate, new: Fate, lagging: Set[Replica]) -> Step:
    """The same of a runbook that cuts brokers off. One that stands still asks for nothing."""
    return (lagging <= absent_or_cut_off(old), *shrinks(old, new, lagging))


# What the runbook does.


@define
def due(s: Fate, kind: Happening, r: Replica) -> Bool:
    """The present phase does this to the broker, and has not done it yet."""
    return (s.kinds[s.phase] == kind) & s.to_do.has(r)


def after_end(old: Fate, r: Replica) -> Set[Replica]:
    """The believers once a process has ended: of who is down the elected leader stays one, for it may have asked."""
    return when(old.controller_leader == r, old.believers, old.believers.excluding(r))


@action
def broker_is_killed(old: Fate, new: Fate, r: Replica) -> Step:
    """The process ends, and its disk keeps what it has."""
    return (
        due(old, Happening.KILL, r),
        old.alive.has(r),
        new.alive == old.alive.excluding(r),
        new.asleep == old.asleep.excluding(r),
        new.believers == after_end(old, r),
        new.to_do == old.to_do.excluding(r),
    )


@action
def power_fails(old: Fate, new: Fate, r: Replica, loses: Bool) -> Step:
    """The machine loses its power, and perhaps what was not flushed, unless the broker was down in order."""
    return (
        due(old, Happening.POWER_LOSS, r),
        loses.implies((FLUSH == Flush.NEVER) & ~old.clean_shutdown.has(r)),
        new.alive == old.alive.excluding(r),
        new.asleep == old.asleep.excluding(r),
        new.believers == after_end(old, r),
        new.holders == when(loses, old.holders.excluding(r), old.holders),
        new.wounds == when(loses, old.wounds.including(r), old.wounds),
        new.to_do == old.to_do.excluding(r),
    )


@action
def disk_is_destroyed(old: Fate, new: Fate, r: Replica) -> Step:
    """The machine is gone with its disk: what comes back under its number is empty."""
    return (
        due(old, Happening.DESTROY, r),
        new.alive == old.alive.excluding(r),
        new.asleep == old.asleep.excluding(r),
        new.believers == after_end(old, r),
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        new.holders == old.holders.excluding(r),
        new.wounds == old.wounds.including(r),
        new.to_do == old.to_do.excluding(r),
    )


@action
def broker_is_paused(old: Fate, new: Fate, r: Replica) -> Step:
    """The process stands still (SIGSTOP, a long collection of garbage), or nobody hears it: its session may be lost
    from now on."""
    return (
        due(old, Happening.PAUSE, r),
        old.alive.has(r),
        new.asleep == old.asleep.including(r),
        new.to_do == old.to_do.excluding(r),
    )


@action
def broker_resumes(old: Fate, new: Fate, r: Replica) -> Step:
    """A paused process goes on, or the network is mended."""
    return (
        due(old, Happening.START, r) | due(old, Happening.RESUME, r),
        old.asleep.has(r),
        new.asleep == old.asleep.excluding(r),
        new.to_do == old.to_do.excluding(r),
    )


@action
def stops_when_due(old: Fate, new: Fate, r: Replica) -> Step:
    """Taken where a broker asks to shut down."""
    return (due(old, Happening.STOP, r), new.to_do == old.to_do.excluding(r))


@define
def is_led(s: Fate) -> Bool:
    """The elected leader runs."""
    return exists((s.controller_leader == r) & s.alive.has(r) for r in Replica.all())


@action
def starts_when_due(old: Fate, new: Fate, r: Replica) -> Step:
    """Taken where a broker registers again: what it had before counts for nobody who looks from now on."""
    return (
        due(old, Happening.START, r),
        new.wounds == old.wounds.excluding(r),
        new.believers == old.believers.excluding(r),
        new.strays == when(is_led(old), old.strays.excluding(r), old.strays.including(r)),
        new.to_do == old.to_do.excluding(r),
    )


@action
def is_ordered(old: Fate, new: Fate, leader: Replica) -> Step:
    """Taken where an operator asks for an unclean election."""
    return (old.kinds[old.phase] == Happening.ELECT,)


@action
def next_phase_begins(old: Fate, new: Fate, phase: Phase) -> Step:
    """The runbook goes on where the phase before has happened to all; a wait is over with all replicas in sync."""
    return (
        phase == old.phase + 1,
        old.kinds[phase] != Happening.NOTHING,
        old.to_do.is_empty(),
        (old.kinds[phase] == Happening.WAIT).implies(old.controller_isr == Replica.all()),
        new.phase == phase,
        new.to_do == old.targets[phase],
    )


@action
def phase_is_moot(old: Fate, new: Fate, r: Replica) -> Step:
    """There is nothing to do at a broker: it is down already, or runs."""
    down, stopping = ~old.alive.has(r), old.shutting_down.has(r)
    running = old.alive.has(r) & ~old.asleep.has(r) & ~stopping
    return (
        (due(old, Happening.STOP, r) & (down | stopping | old.asleep.has(r)))
        | ((due(old, Happening.KILL, r) | due(old, Happening.PAUSE, r)) & down)
        | (due(old, Happening.START, r) & running)
        | (due(old, Happening.RESUME, r) & ~old.asleep.has(r)),
        new.to_do == old.to_do.excluding(r),
    )


HAPPENINGS: Final = (
    broker_is_killed,
    power_fails,
    disk_is_destroyed,
    broker_is_paused,
    broker_resumes,
    next_phase_begins,
    phase_is_moot,
)


# What is asked of each state.


@always
def record_stays(s: Fate) -> Bool:
    """An acknowledged record is on some disk, and whoever runs and leads has it."""
    leads_without = exists((s.controller_leader == r) & s.alive.has(r) & ~s.holders.has(r) for r in Replica.all())
    return s.acked.implies(~s.holders.is_empty() & ~leads_without)


@sometimes
def leaderless(s: Fate) -> Bool:
    """Nobody leads."""
    return s.controller_leader == NONE


@sometimes
def waits_for_session(s: Fate) -> Bool:
    """The elected leader is down, stands still or is cut off, and the controller has yet to miss it."""
    return exists((s.controller_leader == r) & (~s.alive.has(r) | s.asleep.has(r)) for r in Replica.all())


@sometimes
def refuses_writes(s: Fate) -> Bool:
    """A leader refuses records with acks=all."""
    return (s.controller_leader != NONE) & (s.controller_isr.size() < MIN_INSYNC)


@sometimes
def at_minimum(s: Fate) -> Bool:
    """The ISR has as few members as it may: writes stop with the next one that fails."""
    return (s.controller_leader != NONE) & (s.controller_isr.size() == MIN_INSYNC)


# The designs.


@initial
def idle(new: Fate, first: Replica) -> Step:
    """All replicas run and are in sync, and no runbook is there. A drill begins elsewhere (`isr_drill.situation`)."""
    nobody = blank(new.controller_isr)
    return (
        new.alive == Replica.all(),
        new.asleep == nobody,
        new.controller_leader == first,
        new.controller_isr == Replica.all(),
        new.controller_elr == nobody,
        new.last_known_leader == NONE,
        new.fenced == nobody,
        new.shutting_down == nobody,
        new.clean_shutdown == nobody,
        ~new.acked,
        new.holders == nobody,
        new.wounds == nobody,
        new.believers == Replica.all(),
        new.first == Replica.all(),
        new.strays == nobody,
        new.kinds == blank(new.kinds),
        new.targets == blank(new.targets),
        new.phase == 0,
        new.to_do == nobody,
    )


def extended_action(action: Action, extra: Action) -> Action:
    """The action with the guards and updates of another that has no further parameters."""
    return attrs.evolve(action, guards=(*action.guards, *extra.guards), updates=(*action.updates, *extra.updates))


def by_order(unclean: Action) -> Action:
    """An unclean election whatever the setting is, where an operator asks for it."""
    guards = tuple(g for g in unclean.guards if g.condition is not UNCLEAN.node)
    ordered = extended_action(attrs.evolve(unclean, guards=guards), is_ordered)
    return attrs.evolve(ordered, name="controller_elects_by_order")


def fate_design(design: Design, *, restless: bool, cuts: bool = False) -> Design:
    """A design as far as one acknowledged record goes, while a runbook is carried out.

    `restless`: brokers that run may lag, leaders move, and records are written. Without it who runs keeps up, and only
    the metadata are looked at. `cuts`: whether the runbook cuts brokers off from others.
    """
    shrinking = isr_shrinks if restless else isr_loses_cut_off if cuts else isr_loses_absent
    wider = design.replacing(
        f"drill-of-{design.name}",
        f"{design.name} as far as one acknowledged record goes, while a runbook is carried out",
        because="a runbook is asked about one cluster, and every step of it counts.",
        leaving=leaves,
    ).adding(isr_grows, shrinking)
    names = {a.name for a in wider.actions}
    own = [n for n in (*CONTROLLER, *(RESTLESS if restless else ())) if n in names]
    protocol = [projection(wider.action_named(n)) for n in (*own, isr_grows.name, shrinking.name)]
    asks, starts = (projection(wider.action_named(n)) for n in ("broker_asks_to_shut_down", "broker_restarts"))
    runbook = (
        extended_action(asks, stops_when_due),
        extended_action(starts, starts_when_due),
        by_order(projection(wider.action_named("controller_elects_unclean"))),
        *HAPPENINGS,
    )
    messages = (record_is_acknowledged, record_is_copied) if restless else ()
    return Design(
        wider.name,
        wider.summary,
        Fate,
        idle,
        (*protocol, *messages, *runbook),
        (record_stays,) if restless else (leaderless, refuses_writes, at_minimum, waits_for_session),
        because=wider.because,
    )
