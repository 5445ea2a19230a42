"""Sessions and elections: the controller loses brokers, finds them again, and chooses leaders.

A leader is chosen from the ISR or, when that is empty, from the ELR, among brokers that have a session and are not
shutting down (PartitionChangeBuilder.electAnyLeader). Kafka takes the first in the order of assignment; here
any of them may be chosen, which covers every order.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Maybe, Set, Step, action, define, exists, when
from isr_lang.blank import blank
from isr_protocol.membership import elects, elr_beside, isr_without, metadata_changes
from isr_protocol.state import EPOCHS, SESSIONS_LOST, UNCLEAN, Replica, State


@define
def available(s: State, r: Replica) -> Bool:
    """The broker has a session and is not shutting down."""
    return ~(s.fenced | s.shutting_down).has(r)


@define
def electable(s: State, r: Replica, isr: Set[Replica], elr: Set[Replica]) -> Bool:
    """The broker is available and in the ISR or, when nobody is, in the ELR."""
    return available(s, r) & (isr.has(r) | (isr.is_empty() & elr.has(r)))


@define
def relievable(s: State, r: Replica) -> Bool:
    """The broker asked to shut down, and the controller can still take leadership or membership from it."""
    return s.shutting_down.has(r) & ((s.controller_leader == r) | (isr_without(s, r) != s.controller_isr))


@define
def leaving(s: State, r: Replica) -> Bool:
    """The controller may do without the broker: it is dead, may lose its session, or asked to shut down."""
    return ~s.fenced.has(r) & (~s.alive.has(r) | (s.sessions_lost < SESSIONS_LOST) | relievable(s, r))


def departs(old: State, new: State, r: Replica) -> Step:
    """The broker is fenced, unless it shuts down in order; one that is alive and does not has just lost its session."""
    orderly = old.shutting_down.has(r) & old.alive.has(r)
    lost = old.alive.has(r) & ~orderly
    return (
        leaving(old, r),
        new.fenced == when(orderly, old.fenced, old.fenced.including(r)),
        new.sessions_lost == when(lost, old.sessions_lost + 1, old.sessions_lost),
    )


@action
def controller_fences_outsider(old: State, new: State, r: Replica) -> Step:
    """The controller fences a broker that is not in sync, which changes nothing for the partition."""
    return (*departs(old, new, r), old.controller_leader != r, ~old.controller_isr.has(r))


@action
def controller_fences_follower(old: State, new: State, r: Replica) -> Step:
    """The controller fences a follower, or relieves one that shuts down, and takes it out of the ISR.

    ReplicationControlManager.handleBrokerFenced, handleBrokerInControlledShutdown.
    """
    isr = isr_without(old, r)
    return (
        *departs(old, new, r),
        old.controller_leader != r,
        old.controller_isr.has(r),
        *metadata_changes(old, new, isr, elr_beside(old, isr)),
    )


@action
def controller_fences_leader(old: State, new: State, r: Replica, successor: Replica) -> Step:
    """The controller fences the leader, or relieves one that shuts down, and elects another replica."""
    isr, elr = isr_without(old, r), old.controller_elr.excluding(r)
    new_isr = when(isr.is_empty(), Set.of(successor), isr)
    return (
        *departs(old, new, r),
        old.controller_leader == r,
        successor != r,
        electable(old, successor, isr, elr),
        *elects(old, new, successor, new_isr, elr_beside(old, new_isr)),
    )


@action
def controller_fences_last_leader(old: State, new: State, r: Replica) -> Step:
    """The controller fences or relieves the leader, and nobody can take over: the partition has no leader."""
    isr, elr = isr_without(old, r), old.controller_elr.excluding(r)
    return (
        *departs(old, new, r),
        old.controller_leader == r,
        ~exists(electable(old, q, isr, elr) for q in Replica.all().excluding(r)),
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, isr, elr_beside(old, isr)),
        new.controller_leader == NONE,
        new.controller_epoch == old.controller_epoch + 1,
        new.last_known_leader == when(isr.is_empty(), Maybe.of(r), NONE),
    )


# A broker has its session back.


@define
def returns(s: State, r: Replica) -> Bool:
    """A living broker has no session."""
    return s.fenced.has(r) & s.alive.has(r)


@define
def awaited(s: State, r: Replica) -> Bool:
    """The partition has no leader, and this replica may lead."""
    return (s.controller_leader == NONE) & (
        s.controller_isr.has(r) | (s.controller_isr.is_empty() & s.controller_elr.has(r))
    )


@define
def last_hope(s: State, r: Replica) -> Bool:
    """ISR and ELR are empty, and this replica led last (KIP-966's balanced recovery)."""
    return (s.controller_isr | s.controller_elr).is_empty() & (s.last_known_leader == r)


@action
def controller_unfences(old: State, new: State, r: Replica) -> Step:
    """The controller gives a broker its session back, where that changes nothing for the partition."""
    return (
        returns(old, r),
        ~awaited(old, r),
        ~last_hope(old, r),
        new.fenced == old.fenced.excluding(r),
    )


@action
def controller_elects_returned(old: State, new: State, r: Replica) -> Step:
    """The controller elects a replica for which the partition waited: it is back, or has become eligible."""
    isr = when(old.controller_isr.is_empty(), Set.of(r), old.controller_isr)
    return (
        returns(old, r) | available(old, r),
        awaited(old, r),
        new.fenced == old.fenced.excluding(r),
        *elects(old, new, r, isr, elr_beside(old, isr)),
    )


@action
def controller_elects_last_known_leader(old: State, new: State, r: Replica) -> Step:
    """Nobody is eligible, so the replica that led last leads again, whatever it may have lost.

    PartitionChangeBuilder.canElectLastKnownLeader.
    """
    return (
        returns(old, r) | available(old, r),
        old.controller_leader == NONE,
        last_hope(old, r),
        new.fenced == old.fenced.excluding(r),
        *elects(old, new, r, Set.of(r), blank(old.controller_elr)),
    )


@action
def controller_moves_leadership(old: State, new: State, leader: Replica) -> Step:
    """The controller moves leadership to another member of the ISR, which stays as it is (preferred election)."""
    return (
        old.controller_leader != NONE,
        old.controller_leader != leader,
        electable(old, leader, old.controller_isr, blank(old.controller_elr)),
        *elects(old, new, leader, old.controller_isr, old.controller_elr),
    )


def elects_from_outside(old: State, new: State, leader: Replica) -> Step:
    """Nobody eligible is available, so any available replica leads, alone, whatever it lacks."""
    isr, elr = old.controller_isr, old.controller_elr
    return (
        old.controller_leader == NONE,
        available(old, leader),
        ~exists(electable(old, q, isr, elr) for q in Replica.all()),
        *elects(old, new, leader, Set.of(leader), blank(elr)),
    )


@action
def controller_elects_unclean(old: State, new: State, leader: Replica) -> Step:
    """Nobody eligible is available, so any available replica leads, alone, whatever it lacks.

    Kafka does this in the step that loses the leader; here it follows, one epoch later.
    unclean.leader.election.enable; PartitionChangeBuilder.electAnyLeader.
    """
    return (UNCLEAN, *elects_from_outside(old, new, leader))
