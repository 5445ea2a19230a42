"""Unclean recovery, the second part of KIP-966, which no release of Kafka has: what it would lose, and what save.

When ISR and ELR are empty, today's Kafka waits for who led last (PartitionChangeBuilder.canElectLastKnownLeader). The
KIP's second part asks replicas for the epoch of their last record and for their log end, and elects the longest log.
Whom the controller waits for is `unclean.recovery.strategy`:

- Balanced: all that were in ISR or ELR since the ISR fell below the minimum (LastKnownElr), whoever else answers;
- Aggressive: as soon as nobody of ISR or ELR is available, whoever answers in time;
- Manual: nobody is elected until somebody decides.

LastKnownElr is made as Kafka 4.3.1 would make it were useLastKnownLeaderInBalancedRecovery false, which no other class
of kafka-metadata sets (PartitionChangeBuilder.maybePopulateTargetElr). The rest restates the KIP's text from memory.
Asking and electing are one step: an answer of a broker that has stopped since is taken for none.
"""

from __future__ import annotations

import attrs

from isr_lang import (
    NONE,
    Bool,
    Design,
    Set,
    Step,
    action,
    assume,
    define,
    exists,
    forall,
    initial,
    sometimes_step,
    step,
    when,
)
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.quorum import votes_for
from isr_protocol.designs.wider_state import Recovering, last_leader_is_remembered
from isr_protocol.elections import available, electable
from isr_protocol.faults import struck
from isr_protocol.membership import elects, elr_beside, isr_without
from isr_protocol.promises.safety import (
    acked_survives,
    clean_election,
    committed_on_new_leader,
    leaders_complete,
    strong_isr,
)
from isr_protocol.state import MIN_INSYNC, UNCLEAN, Record, Replica, State, holds


@define
def nobody_is_awaited(s: State, r: Replica) -> Bool:
    """No single replica is waited for when ISR and ELR are empty."""
    return Bool.false


_STRATEGY = assume(~UNCLEAN, otherwise="--unclean on has no place here: unclean.recovery.strategy stands in its place")

MANUAL = (
    attrs.evolve(KIP_966, assumptions=(*KIP_966.assumptions, _STRATEGY))
    .replacing(
        "recovery-manual",
        "KIP-966 with unclean.recovery.strategy=Manual, which Kafka has not: with ISR and ELR empty nobody is elected",
        because="a partition without a leader loses nothing that is on a disk; who led last may lack what others have.",
        last_hope=nobody_is_awaited,
    )
    .without("controller_elects_last_known_leader", "controller_elects_unclean")
    .with_defaults(replicas=2, epochs=2, isr_changes=6)
)


# Whom to ask: LastKnownElr.


@initial
def nobody_to_ask(new: Recovering) -> Step:
    """All are in the ISR."""
    return (new.last_known_elr == blank(new.last_known_elr),)


@define
def to_be_asked(s: Recovering, isr: Set[Replica], elr: Set[Replica]) -> Set[Replica]:
    """LastKnownElr beside a new ISR and ELR: nobody at the minimum, else whoever was in one of the three and left.

    PartitionChangeBuilder.maybePopulateTargetElr (4.3.1).
    """
    left = (s.controller_isr | s.controller_elr | s.last_known_elr) - isr - elr
    return when(isr.size() >= MIN_INSYNC, blank(s.last_known_elr), left)


@action
def leaves(old: Recovering, new: Recovering, r: Replica) -> Step:
    """Taken where the controller takes a broker out of the ISR."""
    isr = isr_without(old, r)
    return (new.last_known_elr == to_be_asked(old, isr, elr_beside(old, isr)),)


@action
def leaves_to_successor(old: Recovering, new: Recovering, r: Replica, successor: Replica) -> Step:
    """The same, where another takes over."""
    isr = isr_without(old, r)
    chosen = when(isr.is_empty(), Set.of(successor), isr)
    return (new.last_known_elr == to_be_asked(old, chosen, elr_beside(old, chosen)),)


@action
def changes_isr(old: Recovering, new: Recovering, leader: Replica) -> Step:
    """Taken where the controller accepts a leader's proposal."""
    isr = old.alter_isr[leader]
    return (new.last_known_elr == to_be_asked(old, isr, elr_beside(old, isr)),)


@action
def is_elected(old: Recovering, new: Recovering, r: Replica) -> Step:
    """Taken where a replica is elected for which the partition waited."""
    isr = when(old.controller_isr.is_empty(), Set.of(r), old.controller_isr)
    return (new.last_known_elr == to_be_asked(old, isr, elr_beside(old, isr)),)


@action
def is_struck(old: Recovering, new: Recovering, r: Replica) -> Step:
    """Taken where a broker registers; if it is struck from ISR and ELR, it is one to be asked."""
    asked = to_be_asked(old, old.controller_isr.excluding(r), old.controller_elr.excluding(r))
    return (new.last_known_elr == when(struck(old, r), asked, old.last_known_elr),)


# The recovery.


@define
def waits_for(s: Recovering) -> Set[Replica]:
    """Balanced: a recovery waits for the answers of all that LastKnownElr names."""
    return s.last_known_elr


@define
def may_recover(s: Recovering) -> Bool:
    """Balanced: ISR and ELR are empty."""
    return (s.controller_isr | s.controller_elr).is_empty()


@action
def controller_recovers(old: Recovering, new: Recovering, leader: Replica, answered: Set[Replica]) -> Step:
    """The controller elects the longest of the logs of which brokers told it: the latest last epoch, then the end.

    KIP-966, unclean recovery (GetReplicaLogInfo); in no release of Kafka.
    """
    return (
        old.controller_leader == NONE,
        may_recover(old),
        answered.has(leader),
        waits_for(old) <= answered,
        answered <= old.alive,
        forall(available(old, q) & votes_for(old, leader, q) for q in answered),
        *elects(old, new, leader, Set.of(leader), blank(old.controller_elr)),
        new.last_known_elr == blank(old.last_known_elr),
    )


@define
def waits_for_nobody(s: Recovering) -> Set[Replica]:
    """Aggressive: whoever answers in time is enough."""
    return blank(s.last_known_elr)


@define
def nobody_eligible_is_available(s: Recovering) -> Bool:
    """Aggressive: nobody can be elected from ISR or ELR now."""
    return ~exists(electable(s, q, s.controller_isr, s.controller_elr) for q in Replica.all())


@define
def waits_for_all(s: Recovering) -> Set[Replica]:
    """Every replica of the partition has to answer."""
    return Replica.all()


# What a recovery should keep.


def is_recovered(old: State, new: State, r: Replica) -> Bool:
    """The replica is newly elected, from outside ISR and ELR."""
    outside = ~(old.controller_isr | old.controller_elr).has(r)
    return (old.controller_leader != r) & (new.controller_leader == r) & outside


@step
def recovery_keeps_what_is_left(old: State, new: State) -> Bool:
    """Who is elected from outside ISR and ELR has every acknowledged record that any replica has, dead ones included.

    Else to wait for that replica would have saved the record. KIP-966 promises no such thing.
    """
    return forall(
        (is_recovered(old, new, r) & old.acked.has(m) & holds(old, q, m)).implies(holds(old, r, m))
        for r in Replica.all()
        for q in Replica.all()
        for m in Record.all()
    )


@step
def recovery_keeps_last_leaders_records(old: State, new: State) -> Bool:
    """Who is elected from outside ISR and ELR has every acknowledged record that the last leader has.

    Else today's election of the last known leader would have saved the record.
    """
    return forall(
        (is_recovered(old, new, r) & (old.last_known_leader == q) & old.acked.has(m) & holds(old, q, m)).implies(
            holds(old, r, m)
        )
        for r in Replica.all()
        for q in Replica.all()
        for m in Record.all()
    )


@sometimes_step
def replica_is_recovered(old: State, new: State) -> Bool:
    """A replica is elected from outside ISR and ELR."""
    return exists(is_recovered(old, new, r) for r in Replica.all())


RECOVERIES = (recovery_keeps_what_is_left, recovery_keeps_last_leaders_records, replica_is_recovered)


def _recovering() -> Design:
    wider = MANUAL.in_state(Recovering, nobody_to_ask).extending(
        controller_fences_follower=leaves,
        controller_fences_leader=leaves_to_successor,
        controller_fences_last_leader=leaves,
        controller_accepts_alter_partition=changes_isr,
        controller_elects_returned=is_elected,
        broker_restarts=is_struck,
    )
    # The longest log may be another's than the last leader's; what is promised of it instead is RECOVERIES.
    kept = tuple(p for p in wider.properties if p.name != clean_election.name)
    return attrs.evolve(wider, properties=kept).promising(last_leader_is_remembered, *RECOVERIES)


BALANCED = (
    _recovering()
    .replacing(
        "recovery-balanced",
        "KIP-966 with unclean.recovery.strategy=Balanced, which Kafka has not: the longest log of whoever was eligible",
        because="who led last may have lost what another still has.",
    )
    .adding(controller_recovers)
    .with_defaults(lossy_crashes=1)
)

ASKS_ALL = BALANCED.replacing(
    "recovery-asks-all",
    "recovery-balanced where the controller waits for all replicas to answer: proposed here",
    because="a replica that left the ISR in time is not among those to be asked, and may have what they have lost.",
    waits_for=waits_for_all,
)

AGGRESSIVE = (
    BALANCED.replacing(
        "recovery-aggressive",
        "KIP-966 with unclean.recovery.strategy=Aggressive, which Kafka has not: the longest log of those at hand",
        because="nobody eligible is available, and the partition shall not wait for one.",
        waits_for=waits_for_nobody,
        may_recover=nobody_eligible_is_available,
    )
    .with_defaults(min_insync=1, crashes=0, lossy_crashes=0, sessions_lost=1, isr_changes=4)
    .failing(
        "a broker that is at hand leads, while one that has the record is away",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        strong_isr,
        recovery_keeps_what_is_left,
        recovery_keeps_last_leaders_records,
    )
)

DESIGNS = (MANUAL, BALANCED, ASKS_ALL, AGGRESSIVE)
