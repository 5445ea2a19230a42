"""Reassignment that takes its time: when is it complete? Three answers of Kafka's.

A reassignment adds replicas and removes others (KIP-455). The controller writes down both, lets the new ones catch up,
and completes it in the first record that allows it: the removed are replicas and members no more. What has to be in
sync by then is PartitionReassignmentReplicas.maybeCompleteReassignment, which changed twice (KAFKA-15665, KAFKA-19975).

Left out: to cancel a reassignment, or to replace it by another; one replica at a time is added, and one removed. What
is asked is who is a member, so nothing is written, members leave by losing their session only, and leadership moves
only with its loss or with a reassignment. Who is removed leaves the ELR, too (elr-of-replicas), so that no other bug
shows.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Map, Maybe, Set, Step, action, always, define, initial, step, when
from isr_lang.blank import blank
from isr_protocol.designs.removed_replica import ELR_OF_REPLICAS
from isr_protocol.designs.wider_state import Moving
from isr_protocol.elections import available
from isr_protocol.membership import current, elects, eligible, elr_beside, metadata_changes, replies
from isr_protocol.promises.safety import (
    elected_is_available,
    epochs_only_grow,
    fenced_out_of_isr,
    isr_and_elr_apart,
    isr_grows_back,
    isr_shrinks_to_one,
    leader_in_isr,
    one_leader_per_epoch,
)
from isr_protocol.state import MIN_INSYNC, Alter, Fetch, Replica


def assigned(new: Moving, first: Replica, replicas: Set[Replica]) -> Step:
    """These brokers have a replica, in sync, and one of them leads; no reassignment is under way."""
    nobody, follows = blank(new.controller_isr), replicas.excluding(first)
    return (
        new.replicas == replicas,
        new.own_replicas == Map.build(Replica, lambda r: when(r == first, replicas, nobody)),
        new.adding == nobody,
        new.removing == nobody,
        new.leader == Map.build(Replica, lambda r: when(replicas.has(r), Maybe.of(first), NONE)),
        new.isr == Map.build(Replica, lambda r: when(r == first, replicas, nobody)),
        new.fetch == Map.build(Replica, lambda r: when(follows.has(r), Fetch.REQUESTED, Fetch.NONE)),
        new.fetch_to == Map.build(Replica, lambda r: when(follows.has(r), Maybe.of(first), NONE)),
        new.controller_isr == replicas,
    )


@initial
def one_spare(new: Moving, first: Replica, spare: Replica) -> Step:
    """All brokers, or all but one, have a replica, in sync; one of them leads."""
    everybody = Replica.all()
    return assigned(new, first, when(spare == first, everybody, everybody.excluding(spare)))


# When it is complete: by the ISR, the replicas with those that are added, and both halves of the change.


@define
def completes(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """With all target replicas in sync (3.8.0 to 4.2.2)."""
    return (replicas - removing) <= isr


@define
def completes_with_added(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """With all that it adds in sync, and at least one of those that stay (3.3.0 to 3.7.1)."""
    return (adding <= isr) & ~(isr - removing).is_empty()


@define
def completes_with_added_or_all(
    s: Moving, isr: Set[Replica], replicas: Set[Replica], adding: Set[Replica], removing: Set[Replica]
) -> Bool:
    """With all that it adds in sync or, where there will be fewer replicas, with all that stay (from 4.3.0 on)."""
    fewer = adding.size() < removing.size()
    all_that_stay = (replicas - removing) <= isr
    return (adding <= isr) & ~(isr - removing).is_empty() & (~fewer | all_that_stay)


# The controller's steps.


def begins(old: Moving, joins: Set[Replica], leaves: Set[Replica]) -> Step:
    """Somebody asks for other replicas: one more, one fewer, or one in another's place."""
    return (
        old.controller_leader != NONE,
        (old.adding | old.removing).is_empty(),
        ~(joins | leaves).is_empty(),
        joins.size() <= 1,
        leaves.size() <= 1,
        (joins & old.replicas).is_empty(),
        leaves <= old.replicas,
        ~((old.replicas | joins) - leaves).is_empty(),
    )


def ends(
    old: Moving, new: Moving, isr: Set[Replica], replicas: Set[Replica], removing: Set[Replica], leader: Replica
) -> Step:
    """The removed are replicas no more, in a new leader epoch; one that led is replaced by a member that stays.

    PartitionChangeBuilder.completeReassignmentIfNeeded, triggerLeaderEpochBumpForReplicaReassignmentIfNeeded (4.3.1).
    In 4.3.1 the removed stay in the ELR (maybePopulateTargetElr, found/removed-replica): here they leave it.
    """
    remaining_isr = isr - removing
    stays = old.controller_leader == leader
    return (
        remaining_isr.has(leader),
        stays | (available(old, leader) & removing.has(old.controller_leader.or_else(leader))),
        *elects(old, new, leader, remaining_isr, elr_beside(old, remaining_isr) - removing),
        new.replicas == replicas - removing,
        new.adding == blank(old.adding),
        new.removing == blank(old.removing),
    )


@action
def controller_starts_reassignment(old: Moving, new: Moving, joins: Set[Replica], leaves: Set[Replica]) -> Step:
    """A reassignment begins, and has to wait.

    ReplicationControlManager.changePartitionReassignment.
    """
    isr, replicas = old.controller_isr, old.replicas | joins
    return (
        *begins(old, joins, leaves),
        ~completes(old, isr, replicas, joins, leaves),
        *metadata_changes(old, new, isr, elr_beside(old, isr)),
        new.replicas == replicas,
        new.adding == joins,
        new.removing == leaves,
    )


@action
def controller_reassigns_at_once(
    old: Moving, new: Moving, joins: Set[Replica], leaves: Set[Replica], successor: Replica
) -> Step:
    """A reassignment begins, and is complete in the same record."""
    isr, replicas = old.controller_isr, old.replicas | joins
    return (
        *begins(old, joins, leaves),
        completes(old, isr, replicas, joins, leaves),
        *ends(old, new, isr, replicas, leaves, successor),
    )


@define
def completes_by(s: Moving, isr: Set[Replica]) -> Bool:
    """A reassignment is under way, and such an ISR completes it."""
    under_way = ~(s.adding | s.removing).is_empty()
    return under_way & completes(s, isr, s.replicas, s.adding, s.removing)


@action
def goes_on(old: Moving, new: Moving, leader: Replica) -> Step:
    """Taken where the controller accepts a leader's proposal, which completes nothing."""
    return (~completes_by(old, old.alter_isr[leader]),)


@action
def controller_accepts_and_completes(old: Moving, new: Moving, leader: Replica, successor: Replica) -> Step:
    """The controller accepts a leader's proposal, and that completes the reassignment, in the same record."""
    isr = old.alter_isr[leader]
    return (
        old.alter[leader] == Alter.REQUESTED,
        current(old, leader),
        eligible(old, leader),
        completes_by(old, isr),
        *ends(old, new, isr, old.replicas, old.removing, successor),
        *replies(old, new, leader, Alter.NONE),
    )


# What is promised.


@step
def reassignment_keeps_minimum(old: Moving, new: Moving) -> Bool:
    """To complete a reassignment takes the ISR under min.insync.replicas only where all replicas left are in sync.

    Else writes are refused that were taken a moment before, and what was acknowledged is in fewer logs than
    min.insync.replicas, for who is removed deletes its log (KAFKA-15665).
    """
    left = new.controller_isr.size()
    kept = (left >= MIN_INSYNC) | (left >= old.controller_isr.size()) | (new.controller_isr == new.replicas)
    return (old.replicas <= new.replicas) | kept


@always
def reassignment_is_not_held_up(s: Moving) -> Bool:
    """A reassignment to as many replicas, or more, is complete once all that it adds are in sync.

    Who stays and is out of sync may never be back; until then the replicas to be removed are kept (KAFKA-19975).
    """
    added = ~(s.adding - s.removing).is_empty() & (s.adding <= s.controller_isr)
    return ~(added & (s.removing.size() <= s.adding.size()))


MEMBERSHIP_PROMISES = (
    one_leader_per_epoch,
    leader_in_isr,
    elected_is_available,
    fenced_out_of_isr,
    isr_and_elr_apart,
    epochs_only_grow,
    isr_shrinks_to_one,
    isr_grows_back,
)
"""What is promised of members; the rest speaks of records, or of the ISR before the record that completes."""


def _reassigning() -> Design:
    wider = ELR_OF_REPLICAS.without(
        "controller_removes_replica",
        "controller_adds_replica",
        "leader_appends",
        "leader_proposes_shrink",
        "controller_moves_leadership",
    ).extending(controller_accepts_alter_partition=goes_on)
    own = {u.variable for u in one_spare.updates}
    kept = tuple(u for u in wider.initial.updates if u.variable not in own)
    start = attrs.evolve(one_spare, updates=(*kept, *one_spare.updates))
    wider = attrs.evolve(
        wider, state=Moving, initial=start, properties=tuple(map(wider.restated_property, MEMBERSHIP_PROMISES))
    )
    return wider.adding(
        controller_starts_reassignment, controller_reassigns_at_once, controller_accepts_and_completes
    ).promising(reassignment_keeps_minimum, reassignment_is_not_held_up)


KAFKA_19975 = (
    _reassigning()
    .replacing(
        "kafka-19975",
        "KIP-966 where a reassignment is complete when all target replicas are in sync, as in Kafka 3.8 to 4.2",
        because="it waits for a replica that it neither adds nor removes, and that may never be back.",
    )
    .with_defaults(replicas=3, crashes=0, sessions_lost=1, epochs=1, isr_changes=3)
    .failing("who stays and is out of sync holds up a reassignment", reassignment_is_not_held_up)
)

KAFKA_15665 = KAFKA_19975.replacing(
    "kafka-15665",
    "kafka-19975 where a reassignment is complete when all that it adds are in sync, as in Kafka 3.3 to 3.7",
    because="who is removed takes the ISR under min.insync.replicas while another is out of sync.",
    completes=completes_with_added,
).failing("a reassignment takes the ISR under the minimum", reassignment_keeps_minimum)

REASSIGNED_BY_ADDED = KAFKA_19975.replacing(
    "reassigned-by-added",
    "kafka-19975 where all target replicas have to be in sync only if there will be fewer, as in Kafka 4.3;"
    " its ELR loses who is removed, and that of Kafka 4.3 does not (kafka-4.4)",
    because="as many come as go, and who comes is in sync, so the ISR does not shrink.",
    completes=completes_with_added_or_all,
)

DESIGNS = (KAFKA_15665, KAFKA_19975, REASSIGNED_BY_ADDED)
