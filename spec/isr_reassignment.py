"""Reassignment that takes its time: when is it complete? Four answers, three of them Kafka's.

A reassignment adds replicas and removes others (KIP-455). The controller writes down both, lets the new ones catch up, and
completes it in one record: the removed leave replicas, ISR and, here, ELR. What has to be in sync by then is
PartitionReassignmentReplicas.maybeCompleteReassignment, and has changed twice (KAFKA-15665, KAFKA-19975).

Kafka completes in whatever record first allows it; here it is a step of its own. Left out: to cancel a reassignment, or to
replace it by another; one replica at a time is added, and one removed.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Map, Maybe, Set, Step, action, always, define, initial, step, when
from isr_lang.blank import blank
from isr_membership import elr_beside, metadata_changes
from isr_removed_replica import ELR_OF_REPLICAS
from isr_state import EPOCHS, MIN_INSYNC, Fetch, Replica
from isr_wider_state import Moving


@initial
def one_spare(new: Moving, first: Replica, spare: Replica) -> Step:
    """All brokers, or all but one, have a replica, in sync; one of them leads."""
    nobody, everybody = blank(new.controller_isr), Replica.all()
    others = when(spare == first, everybody, everybody.excluding(spare))
    follows = others.excluding(first)
    return (
        new.replicas == others,
        new.own_replicas == Map.build(Replica, lambda r: when(r == first, others, nobody)),
        new.adding == nobody,
        new.removing == nobody,
        new.leader == Map.build(Replica, lambda r: when(others.has(r), Maybe.of(first), NONE)),
        new.isr == Map.build(Replica, lambda r: when(r == first, others, nobody)),
        new.fetch == Map.build(Replica, lambda r: when(follows.has(r), Fetch.REQUESTED, Fetch.NONE)),
        new.fetch_to == Map.build(Replica, lambda r: when(follows.has(r), Maybe.of(first), NONE)),
        new.controller_isr == others,
    )


@define
def target(s: Moving) -> Set[Replica]:
    """The replicas when the reassignment is complete."""
    return s.replicas - s.removing


@define
def under_way(s: Moving) -> Bool:
    """A reassignment has begun and is not complete."""
    return ~(s.adding | s.removing).is_empty()


@define
def all_in_sync(s: Moving) -> Bool:
    """All target replicas are in sync."""
    return target(s) <= s.controller_isr


@define
def completes(s: Moving) -> Bool:
    """Complete with all target replicas in sync (3.8 to 4.1; KAFKA-15665)."""
    return all_in_sync(s)


@define
def completes_with_added(s: Moving) -> Bool:
    """Complete with all that it adds in sync, and at least one of those that stay (3.0 to 3.7)."""
    return (s.adding <= s.controller_isr) & ~(s.controller_isr - s.removing).is_empty()


@define
def completes_with_added_or_all(s: Moving) -> Bool:
    """Complete with all that it adds in sync, or, where there will be fewer replicas, with all (4.3; KAFKA-19975)."""
    fewer = s.adding.size() < s.removing.size()
    return completes_with_added(s) & (~fewer | all_in_sync(s))


@define
def completes_with_minimum(s: Moving) -> Bool:
    """Complete with all that it adds in sync and min.insync.replicas of those that stay, or all of them."""
    stay = s.controller_isr - s.removing
    return completes_with_added(s) & ((stay.size() >= MIN_INSYNC) | all_in_sync(s))


@action
def controller_starts_reassignment(old: Moving, new: Moving, joins: Set[Replica], leaves: Set[Replica]) -> Step:
    """Somebody asks for other replicas: one more, one fewer, or one in another's place.

    ReplicationControlManager.changePartitionReassignment.
    """
    return (
        old.controller_leader != NONE,
        ~under_way(old),
        ~(joins | leaves).is_empty(),
        joins.size() <= 1,
        leaves.size() <= 1,
        (joins & old.replicas).is_empty(),
        leaves <= old.replicas,
        ~((old.replicas | joins) - leaves).is_empty(),
        *metadata_changes(old, new, old.controller_isr, elr_beside(old, old.controller_isr)),
        new.replicas == (old.replicas | joins),
        new.adding == joins,
        new.removing == leaves,
    )


@action
def controller_completes_reassignment(old: Moving, new: Moving, leader: Replica) -> Step:
    """The removed are replicas no more, in a new leader epoch; one that led is replaced by a member that stays.

    PartitionChangeBuilder.completeReassignmentIfNeeded, triggerLeaderEpochBumpForReplicaReassignmentIfNeeded (4.3.1).
    """
    isr = old.controller_isr - old.removing
    return (
        under_way(old),
        completes(old),
        old.controller_leader != NONE,
        isr.has(leader),
        old.removing.has(old.controller_leader.or_else(leader)) | (old.controller_leader == leader),
        ~(old.fenced | old.shutting_down).has(leader),
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, isr, elr_beside(old, isr) - old.removing),
        new.controller_leader == leader,
        new.controller_epoch == old.controller_epoch + 1,
        new.replicas == target(old),
        new.adding == blank(old.adding),
        new.removing == blank(old.removing),
    )


@step
def reassignment_keeps_minimum(old: Moving, new: Moving) -> Bool:
    """To complete a reassignment takes the ISR under min.insync.replicas only where it leaves no more replicas.

    Else writes are refused that were taken a moment before, and what was acknowledged is in fewer logs than
    min.insync.replicas, for who is removed deletes its log (KAFKA-15665).
    """
    kept = new.controller_isr.size()
    enough_left = (kept >= MIN_INSYNC) | (kept >= old.controller_isr.size()) | (new.controller_isr == new.replicas)
    return (under_way(old) & ~under_way(new)).implies(enough_left)


@always
def reassignment_is_not_held_up(s: Moving) -> Bool:
    """A reassignment can be completed when all that it adds are in sync, and min.insync.replicas of those that stay.

    Who stays and is not in sync may never be back, and the replicas to be removed are kept until then (KAFKA-19975).
    """
    ready = (s.adding <= s.controller_isr) & ((s.controller_isr - s.removing).size() >= MIN_INSYNC)
    return (under_way(s) & ready).implies(completes(s))


def _reassigning() -> Design:
    wider = ELR_OF_REPLICAS.without("controller_removes_replica", "controller_adds_replica")
    own = {u.variable for u in one_spare.updates}
    kept = tuple(u for u in wider.initial.updates if u.variable not in own)
    start = attrs.evolve(one_spare, updates=(*kept, *one_spare.updates))
    wider = attrs.evolve(wider, state=Moving, initial=start)
    return wider.adding(controller_starts_reassignment, controller_completes_reassignment).promising(
        reassignment_keeps_minimum, reassignment_is_not_held_up
    )


_SMALL = {"replicas": 3, "crashes": 0, "sessions_lost": 1, "epochs": 1, "isr_changes": 3}

KAFKA_19975 = (
    _reassigning()
    .replacing(
        "kafka-19975",
        "KIP-966 where a reassignment is complete when all target replicas are in sync, as in Kafka 3.8 to 4.1",
        because="it waits for a replica that it neither adds nor removes, and that may never be back.",
    )
    .with_defaults(**_SMALL)
    .failing("who stays and is out of sync holds up a reassignment", reassignment_is_not_held_up)
)

KAFKA_15665 = KAFKA_19975.replacing(
    "kafka-15665",
    "kafka-19975 where a reassignment is complete when all that it adds are in sync, as in Kafka 3.0 to 3.7",
    because="who is removed takes the ISR under min.insync.replicas while another is out of sync.",
    completes=completes_with_added,
).failing("a reassignment takes the ISR under the minimum", reassignment_keeps_minimum)

KAFKA_REASSIGNED_BELOW_MINIMUM = (
    KAFKA_19975.replacing(
        "kafka-reassigned-below-minimum",
        "kafka-19975 where all target replicas have to be in sync only if there will be fewer, as in Kafka 4.3",
        because="a member that is removed may be the only one beside the added while another is out of sync.",
        completes=completes_with_added_or_all,
    )
    .with_defaults(epochs=2, isr_changes=4)
    .failing("a reassignment takes the ISR under the minimum", reassignment_keeps_minimum)
)

REASSIGNED_AT_MINIMUM = KAFKA_19975.replacing(
    "reassigned-at-minimum",
    "kafka-19975 where those that stay have to be min.insync.replicas in sync, or all of them: proposed here",
    because="then no reassignment takes the ISR under the minimum, and none waits for more than that.",
    completes=completes_with_minimum,
).with_defaults(epochs=2, isr_changes=4)
