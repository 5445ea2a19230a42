"""The model of a drill in which replicas and min.insync.replicas change: `record_fate` made of Kafka as released.

Of its bugs two belong to what people do, and stay: who is removed stays in the ELR, and a leader may go by an old
min.insync.replicas for as long as it likes. The others are left out, as in any drill.

A reassignment is complete by another rule in 3.3, 3.8 and 4.3 (`isr_protocol.designs.reassignment`). Which one runs is
not always told, so it may complete where one rule lets it, and go on where another does not.

Fewer disks with the record are worse, whatever follows. So it is acknowledged on as few as may be, and is copied to
nobody but to a follower that joins the ISR.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_drill import record_fate
from isr_drill.record_fate import (
    CONTROLLER,
    HAPPENINGS,
    NOW,
    RESTLESS,
    Fate,
    Happening,
    Phase,
    absent,
    absent_or_cut_off,
    by_order,
    countable,
    extended_action,
    idle,
    in_office,
    leaves,
    led_last,
    projection,
    starts_when_due,
    stops_when_due,
    waits_for_session,
)
from isr_lang import (
    NONE,
    Action,
    Bool,
    Design,
    Set,
    Step,
    action,
    define,
    exists,
    initial,
    sometimes,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.override import DefinitionFunction
from isr_protocol.designs.forgotten_proposal import PROPOSAL_KEPT
from isr_protocol.designs.history import isr_keeps_last, never_struck, no_elr
from isr_protocol.designs.leader_bugs import KAFKA_RESETS_POSITIONS, REFUSAL_IN_NEW_VERSION
from isr_protocol.designs.reassignment import completes as completes_with_all
from isr_protocol.designs.reassignment import completes_with_added, completes_with_added_or_all
from isr_protocol.designs.releases import (
    Operations,
    completes,
    reassigned_to,
    target_of,
    under_way,
    with_mends,
)
from isr_protocol.designs.wider_state import Minimum, Moving
from isr_protocol.elections import available
from isr_protocol.membership import elr_beside
from isr_protocol.state import Replica

WITH_ELR: Final = "kafka-4.4-as-people-change-it"
WITHOUT_ELR: Final = "kafka-4.4-without-elr"
BEFORE_3_8: Final = "kafka-3.5-without-elr"


class Changes(Fate):
    """The fate of a record, of a partition whose replicas and minimum change. Replicas are here brokers that have one,
    had one, or may get one."""

    replicas: Set[Replica] = var("who has a replica of the partition, as the controller assigned it")
    adding: Set[Replica] = var("replicas that a reassignment adds")
    removing: Set[Replica] = var("replicas that it removes once it is complete")
    minimum: Minimum = var("min.insync.replicas, as the controller has it")
    least: Minimum = var("the least min.insync.replicas by which a leader may go")
    strangers: Set[Replica] = var("who was removed, and has not joined the ISR since")


WIDE: Final = Operations()
"""Kafka's state before a step, for its definitions."""


# The protocol's part of what stands in place of messages; the design restates what it calls.


def lets_in(old: Operations, r: Replica) -> Step:
    """The leader may propose a replica, and the controller take it."""
    isr = old.controller_isr.including(r)
    return (
        ~in_office(NOW).is_empty(),
        old.replicas.has(r),
        ~(old.controller_isr | NOW.strays).has(r),
        (isr & (old.fenced | old.shutting_down)).is_empty(),
    )


@action
def isr_grows(old: Operations, new: Operations, r: Replica) -> Step:
    """A replica joins the ISR, which completes no reassignment."""
    isr = old.controller_isr.including(r)
    return (
        *lets_in(old, r),
        ~completes(old, isr, old.adding, old.removing, old.replicas),
        new.controller_isr == isr,
        new.controller_elr == elr_beside(old, isr),
    )


@action
def isr_grows_and_completes(old: Operations, new: Operations, r: Replica, leader: Replica) -> Step:
    """A replica joins the ISR, and that completes the reassignment (`controller_accepts_and_completes`)."""
    isr = old.controller_isr.including(r)
    return (
        *lets_in(old, r),
        completes(old, isr, old.adding, old.removing, old.replicas),
        *reassigned_to(old, new, isr - old.removing, old.replicas - old.removing, leader),
    )


def shrinks(old: Changes, new: Changes, lagging: Set[Replica]) -> Step:
    """The leader drops members, and never itself."""
    isr = old.controller_isr - lagging
    return (
        ~lagging.is_empty(),
        lagging <= old.controller_isr,
        ~exists((old.controller_leader == r) & lagging.has(r) for r in Replica.all()),
        ~in_office(old).is_empty(),
        (isr & (old.fenced | old.shutting_down)).is_empty(),
        new.controller_isr == isr,
        new.controller_elr == elr_beside(WIDE, isr),
    )


@action
def isr_shrinks(old: Changes, new: Changes, lagging: Set[Replica]) -> Step:
    """Members leave the ISR, for they lag."""
    return shrinks(old, new, lagging)


@action
def isr_loses_absent(old: Changes, new: Changes, lagging: Set[Replica]) -> Step:
    """Members leave the ISR that do not run: whoever runs keeps up with a leader that is heard."""
    return (lagging <= absent(old), *shrinks(old, new, lagging))


@action
def isr_loses_cut_off(old: Changes, new: Changes, lagging: Set[Replica]) -> Step:
    """The same of a runbook that cuts brokers off."""
    return (lagging <= absent_or_cut_off(old), *shrinks(old, new, lagging))


# The record.


def acknowledges(old: Changes, new: Changes, copies: Set[Replica]) -> Step:
    """The record is on the disks of all members, and on as few others as may be."""
    eligible = when(old.least < old.minimum, blank(old.controller_elr), old.controller_elr - old.strangers)
    members = (old.controller_isr | eligible | led_last(old)) - old.wounds
    disks = countable(old, copies | old.wounds)
    fewest = (copies == members) | (disks.size() == old.least) | (copies.size() == 1)
    return (
        ~old.acked,
        ~(old.controller_isr | old.controller_elr).is_empty(),
        ~(old.alive & old.believers).is_empty(),
        members <= copies,
        ~copies.is_empty(),
        disks.size() >= old.least,
        fewest,
        new.acked,
        new.holders == copies,
        new.believers == in_office(old),
    )


@action
def record_is_acknowledged(old: Changes, new: Changes, copies: Set[Replica]) -> Step:
    """A producer is told that its record is safe.

    All members have it, or had it until they lost their disk. A leader that may go by a lower minimum than the
    controller waits for nobody in the ELR, and none waits there for who is no replica. A leader whose ISR is under its
    minimum acknowledges only what it might have before, when more were in the ISR (before 3.7:
    `record_is_acknowledged_under_minimum`).
    """
    return (old.least <= old.controller_isr.size(), *acknowledges(old, new, copies))


@action
def record_is_acknowledged_under_minimum(old: Changes, new: Changes, copies: Set[Replica]) -> Step:
    """The same, where those count for the minimum, too, that are about to join the ISR (before 3.7)."""
    return acknowledges(old, new, copies)


@action
def joins_with_record(old: Changes, new: Changes, r: Replica) -> Step:
    """Taken where a replica joins the ISR: it has what was acknowledged before, unless its disk is gone meanwhile."""
    has = old.acked & ~old.wounds.has(r)
    return (new.holders == when(has, old.holders.including(r), old.holders),)


@action
def joins(old: Changes, new: Changes, r: Replica) -> Step:
    """Taken with that: it is no stranger any more."""
    return (new.strangers == old.strangers.excluding(r),)


@action
def removed_become_strangers(old: Changes, new: Changes, r: Replica) -> Step:
    """Taken where a replica joins, and others are removed."""
    return (new.strangers == (old.strangers | old.removing).excluding(r),)


@action
def replica_is_deleted(old: Changes, new: Changes, r: Replica) -> Step:
    """A broker learns that it has no replica any more, and deletes its log."""
    return (
        old.alive.has(r),
        ~old.replicas.has(r),
        old.holders.has(r),
        new.holders == old.holders.excluding(r),
    )


@define
def may_always_advance(s: Operations, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark moves whatever the ISR is (before KAFKA-15583)."""
    return Bool.true


# What the runbook does.


@action
def reassignment_is_due(old: Changes, new: Changes, target: Set[Replica]) -> Step:
    """Taken where somebody asks for other replicas."""
    return (
        old.kinds[old.phase] == Happening.REASSIGN,
        ~old.to_do.is_empty(),
        target == old.to_do,
        new.to_do == blank(old.to_do),
    )


@action
def others_become_strangers(old: Changes, new: Changes, target: Set[Replica]) -> Step:
    """Taken where that is complete at once."""
    return (new.strangers == old.strangers | (old.replicas - target),)


@action
def reassignment_is_moot(old: Changes, new: Changes) -> Step:
    """The partition has these replicas already."""
    return (
        old.kinds[old.phase] == Happening.REASSIGN,
        ~old.to_do.is_empty(),
        old.to_do == old.replicas,
        ~under_way(WIDE),
        new.to_do == blank(old.to_do),
    )


@action
def cancellation_is_due(old: Changes, new: Changes, leader: Replica) -> Step:
    """Taken where somebody cancels a reassignment; who was added is a stranger from then on."""
    return (
        old.kinds[old.phase] == Happening.CANCEL,
        ~old.to_do.is_empty(),
        new.strangers == old.strangers | old.adding,
        new.to_do == blank(old.to_do),
    )


@action
def cancellation_is_moot(old: Changes, new: Changes) -> Step:
    """There is nothing to cancel; or all members were added, and the controller refuses."""
    return (
        old.kinds[old.phase] == Happening.CANCEL,
        ~old.to_do.is_empty(),
        ~under_way(WIDE) | (old.controller_isr - old.adding).is_empty(),
        new.to_do == blank(old.to_do),
    )


@action
def minimum_is_set(old: Changes, new: Changes, value: Minimum) -> Step:
    """Somebody sets min.insync.replicas, which empties the ELR (`raised_minimum`). The set has as many members."""
    return (
        old.kinds[old.phase] == Happening.SET,
        ~old.to_do.is_empty(),
        old.to_do.size() == value,
        new.minimum == value,
        new.least == when(value < old.least, value, old.least),
        new.controller_elr == blank(old.controller_elr),
        new.last_known_leader == NONE,
        new.to_do == blank(old.to_do),
    )


@action
def next_phase_begins(old: Changes, new: Changes, phase: Phase) -> Step:
    """The runbook goes on where the phase before has happened to all; waits are for the replicas that there are then,
    and for the end of a reassignment."""
    return (
        phase == old.phase + 1,
        old.kinds[phase] != Happening.NOTHING,
        old.to_do.is_empty(),
        (old.kinds[phase] == Happening.WAIT).implies(old.controller_isr == old.replicas),
        (old.kinds[phase] == Happening.WAIT_REASSIGNED).implies(~under_way(WIDE)),
        new.phase == phase,
        new.to_do == old.targets[phase],
    )


# What is asked of each state.


@sometimes
def refuses_writes(s: Changes) -> Bool:
    """A leader refuses records with acks=all."""
    return (s.controller_leader != NONE) & (s.controller_isr.size() < s.minimum)


@sometimes
def at_minimum(s: Changes) -> Bool:
    """The ISR has as few members as it may: writes stop with the next one that fails."""
    return (s.controller_leader != NONE) & (s.controller_isr.size() == s.minimum)


@sometimes
def leaves_the_model(s: Changes) -> Bool:
    """What Kafka does next is not modelled: it is asked to reassign, or to cancel that, while nobody leads or nobody
    can lead then, or to reassign to all that there are while another reassignment is under way; or a stranger may be
    elected that is being added."""
    due = (s.kinds[s.phase] == Happening.REASSIGN) & ~s.to_do.is_empty()
    replicas, adding, removing = target_of(WIDE, s.to_do)
    alike = (replicas == s.replicas) & (adding == s.adding) & (removing == s.removing)
    remaining = s.controller_isr - removing
    stays = exists((s.controller_leader == r) & remaining.has(r) for r in Replica.all())
    at_once = completes(WIDE, s.controller_isr, adding, removing, replicas)
    nobody = at_once & ~stays & ~exists(remaining.has(r) & available(WIDE, r) for r in Replica.all())
    cancels = (s.kinds[s.phase] == Happening.CANCEL) & ~s.to_do.is_empty() & under_way(WIDE)
    kept = s.controller_isr - s.adding
    keeps = exists((s.controller_leader == r) & kept.has(r) for r in Replica.all())
    headless = ~kept.is_empty() & ~keeps & ~exists(kept.has(r) & available(WIDE, r) for r in Replica.all())
    stranger = s.controller_isr.is_empty() & ~(s.controller_elr & s.adding & s.strangers).is_empty()
    return (due & ((s.controller_leader == NONE) | (under_way(WIDE) & (alike | (s.to_do == s.replicas))) | nobody)) | (
        (cancels & ((s.controller_leader == NONE) | headless)) | stranger
    )


# The designs.


@initial
def unchanged(new: Changes) -> Step:
    """All have a replica, and two have to be in sync. A drill begins elsewhere (`isr_drill.situation`)."""
    nobody = blank(new.controller_isr)
    return (
        new.replicas == Replica.all(),
        new.adding == nobody,
        new.removing == nobody,
        new.minimum == 1,
        new.least == 1,
        new.strangers == nobody,
    )


_MENDS: Final = (KAFKA_RESETS_POSITIONS.name, PROPOSAL_KEPT.name, REFUSAL_IN_NEW_VERSION.name)

KAFKA_AS_CHANGED: Final = with_mends(
    WITH_ELR, "kafka-4.4 but for its bugs that have nothing to do with reassignment and configuration", *_MENDS
)
KAFKA_WITHOUT_ELR: Final = KAFKA_AS_CHANGED.replacing(
    WITHOUT_ELR,
    "the same before eligible leader replicas",
    because="the feature may be off.",
    elr_beside_of_minimum=no_elr,
    isr_without=isr_keeps_last,
    struck=never_struck,
).without("controller_elects_last_known_leader")
KAFKA_BEFORE_3_8: Final = KAFKA_WITHOUT_ELR.replacing(
    BEFORE_3_8,
    "the same with the rule of Kafka 3.3 to 3.7 for when a reassignment is complete",
    because="it was complete with all that it adds in sync, and a watermark moved under the minimum.",
    may_advance_of_own=may_always_advance,
    may_advance_of_news=may_always_advance,
)
PROTOCOLS: Final = {d.name: d for d in (KAFKA_AS_CHANGED, KAFKA_WITHOUT_ELR, KAFKA_BEFORE_3_8)}
"""The protocols under which replicas and minimum change, by name."""


# When a reassignment is complete: as soon as one rule says so, or not before both do.


@define
def completes_by_one(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """By the rule of 3.8 or by that of 4.3."""
    both = (s, isr, replicas, adding, removing)
    return completes_with_all(*both) | completes_with_added_or_all(*both)


@define
def completes_by_both(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """By the rule of 3.8 and by that of 4.3."""
    both = (s, isr, replicas, adding, removing)
    return completes_with_all(*both) & completes_with_added_or_all(*both)


@define
def completes_by_one_before_4(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """By the rule of 3.3, by that of 3.8 or by that of 4.3."""
    three = (s, isr, replicas, adding, removing)
    return completes_with_added(*three) | completes_by_one(*three)


@define
def completes_by_all_three(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """By the rules of 3.3, of 3.8 and of 4.3."""
    three = (s, isr, replicas, adding, removing)
    return completes_with_added(*three) & completes_by_both(*three)


def with_rule(design: Design, rule: DefinitionFunction) -> Design:
    """The design with another rule for when a reassignment is complete."""
    return design.replacing(
        f"{design.name}-{rule.__name__}",
        f"{design.name} where a reassignment completes by another rule",
        because="which release runs is not always told.",
        completes_with_added_or_all=rule,
    )


def earliest_and_latest(design: Design) -> tuple[Design, Design]:
    """The designs where a reassignment completes by any rule that may run, and where by all of them."""
    rules = (
        (completes_by_one_before_4, completes_by_all_three)
        if design.name == BEFORE_3_8
        else (completes_by_one, completes_by_both)
    )
    early, late = (with_rule(design, rule) for rule in rules)
    return early, late


def changes_design(design: Design, *, restless: bool, cuts: bool = False) -> Design:
    """A design of `PROTOCOLS` as far as one acknowledged record goes, while a runbook changes replicas and minimum.

    `restless` and `cuts` are as in `fate_design`.
    """
    shrinking = isr_shrinks if restless else isr_loses_cut_off if cuts else isr_loses_absent
    own = (shrinking, isr_grows, isr_grows_and_completes, reassignment_is_moot, cancellation_is_moot, next_phase_begins)

    def wider(base: Design) -> Design:
        whole = base.replacing(
            f"drill-of-{base.name}",
            f"{base.name} as far as one acknowledged record goes, while a runbook is carried out",
            because="a runbook is asked about one cluster, and every step of it counts.",
            leaving=leaves,
        )
        return whole.adding(*own)

    early, late = map(wider, earliest_and_latest(design))

    def of(base: Design, name: str, *extra: Action) -> Action:
        whole = projection(base.action_named(name), Changes)
        for more in extra:
            whole = extended_action(whole, more)
        return whole

    names = {a.name for a in early.actions}
    controller = [of(early, n) for n in (*CONTROLLER, *(RESTLESS if restless else ())) if n in names]
    acknowledgement = (
        attrs.evolve(record_is_acknowledged_under_minimum, name=record_is_acknowledged.name)
        if design.name == BEFORE_3_8
        else record_is_acknowledged
    )
    record = (joins_with_record,) if restless else ()
    runbook = (
        of(early, "broker_asks_to_shut_down", stops_when_due),
        of(early, "broker_restarts", starts_when_due),
        by_order(of(early, "controller_elects_unclean")),
        of(late, "controller_starts_reassignment", reassignment_is_due),
        of(early, "controller_reassigns_at_once", reassignment_is_due, others_become_strangers),
        of(early, "controller_cancels_reassignment", cancellation_is_due),
        minimum_is_set,
        *(of(early, a.name) for a in (reassignment_is_moot, cancellation_is_moot, next_phase_begins)),
        *(a for a in HAPPENINGS if a is not record_fate.next_phase_begins),
    )
    property_design = early.promising(leaves_the_model)
    beyond = property_design.property_named("leaves-the-model")
    return Design(
        early.name,
        early.summary,
        Changes,
        attrs.evolve(unchanged, parameters=idle.parameters, updates=(*idle.updates, *unchanged.updates)),
        (
            *controller,
            of(early, shrinking.name),
            of(late, isr_grows.name, joins, *record),
            of(early, isr_grows_and_completes.name, removed_become_strangers, *record),
            *((acknowledgement, replica_is_deleted) if restless else ()),
            *runbook,
        ),
        (
            *((record_fate.record_stays,) if restless else (record_fate.leaderless, refuses_writes, at_minimum)),
            *(() if restless else (waits_for_session,)),
            beyond,
        ),
        because=early.because,
    )
