"""Reassignment, a replica at a time: found in today's Kafka, and what would mend it.

A partition loses a replica and gets one again (kafka-reassign-partitions.sh). It is not the first partition of its
topic, and the first one keeps its replicas: of those the controller takes the upper bound of min.insync.replicas for
all partitions (ReplicationControlManager.getTopicEffectiveMinIsr, 4.3.1), while a leader takes it of its own
partition's (Partition.effectiveMinIsr). Left out: to remove the leader, to move several replicas at once, and a
reassignment that has to wait.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Map, Set, Step, action, define, initial, when
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.wider_state import Reassigned
from isr_protocol.elections import available
from isr_protocol.membership import elr_beside, metadata_changes
from isr_protocol.metadata import News, follows
from isr_protocol.promises.safety import (
    acked_survives,
    acks_meet_minimum,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
    weak_isr,
)
from isr_protocol.replication import takes
from isr_protocol.state import EPOCHS, MIN_INSYNC, Fetch, Replica


@initial
def assigned_to_all(new: Reassigned, first: Replica) -> Step:
    """Every broker has a replica."""
    none = blank(new.controller_isr)
    return (
        new.replicas == Replica.all(),
        new.own_replicas == Map.build(Replica, lambda r: when(r == first, Replica.all(), none)),
    )


def removes(old: Reassigned, new: Reassigned, r: Replica, elr: Set[Replica]) -> Step:
    """The controller takes a replica away, in a new leader epoch of the same leader."""
    remaining_replicas = old.replicas.excluding(r)
    return (
        old.controller_leader != NONE,
        old.controller_leader != r,
        old.replicas.has(r),
        remaining_replicas <= old.controller_isr,
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, old.controller_isr.excluding(r), elr),
        new.controller_epoch == old.controller_epoch + 1,
        new.replicas == remaining_replicas,
    )


@action
def controller_removes_replica(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """The controller takes a replica away; the ELR is made of the old ISR, whoever is a replica.

    At once if all others are in sync. PartitionChangeBuilder.completeReassignmentIfNeeded, maybePopulateTargetElr,
    triggerLeaderEpochBumpForReplicaReassignmentIfNeeded (4.3.1).
    """
    return removes(old, new, r, elr_beside(old, old.controller_isr.excluding(r)))


@action
def controller_removes_replica_from_elr(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """The controller takes a replica away, out of the ELR, too."""
    return removes(old, new, r, elr_beside(old, old.controller_isr.excluding(r)).excluding(r))


@action
def controller_adds_replica(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """The controller gives the partition one more replica, which has yet to join the ISR."""
    return (
        old.controller_leader != NONE,
        ~old.replicas.has(r),
        *metadata_changes(old, new, old.controller_isr, elr_beside(old, old.controller_isr)),
        new.replicas == old.replicas.including(r),
    )


@action
def replica_is_deleted(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """A broker learns that it has no replica any more, and deletes its log (ReplicaManager.stopPartitions)."""
    empty = blank(old.log[r])
    return (
        old.alive.has(r),
        ~old.replicas.has(r),
        (old.leader[r] != NONE) | (old.log[r] != empty),
        *follows(old, new, r, empty, Fetch.NONE, News(blank(old.controller_leader), old.controller_epoch)),
        new.log[r] == empty,
        new.high_watermark[r] == 0,
        new.own_replicas[r] == blank(old.replicas),
    )


@define
def enough_of_own_replicas(s: Reassigned, leader: Replica, members: Set[Replica]) -> Bool:
    """The set has min.insync.replicas members, or as many as the leader knows replicas."""
    return (members.size() >= MIN_INSYNC) | (members.size() >= s.own_replicas[leader].size())


@define
def may_advance_by_own_replicas(s: Reassigned, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by that number."""
    return enough_of_own_replicas(s, leader, isr)


@define
def enough_of_replicas(s: Reassigned, leader: Replica, members: Set[Replica]) -> Bool:
    """The set has min.insync.replicas members, or as many as there are replicas by the newest metadata."""
    return (members.size() >= MIN_INSYNC) | (members.size() >= s.replicas.size())


@define
def may_advance_by_replicas(s: Reassigned, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by that number."""
    return enough_of_replicas(s, leader, isr)


@define
def takes_from_replica(s: Reassigned, leader: Replica, follower: Replica) -> Bool:
    """(3) The request is for this leader in its epoch, and from whom the leader knows as a replica."""
    return takes(s, leader, follower) & s.own_replicas[leader].has(follower)


@define
def electable_replica(s: Reassigned, r: Replica, isr: Set[Replica], elr: Set[Replica]) -> Bool:
    """The broker is available, a replica now, and in the ISR or, when nobody is, in the ELR."""
    return available(s, r) & s.replicas.has(r) & (isr.has(r) | (isr.is_empty() & elr.has(r)))


@define
def awaited_replica(s: Reassigned, r: Replica) -> Bool:
    """The partition has no leader, and this replica may lead."""
    eligible = s.controller_isr.has(r) | (s.controller_isr.is_empty() & s.controller_elr.has(r))
    return (s.controller_leader == NONE) & s.replicas.has(r) & eligible


@action
def learns_replicas(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """Taken where a replica becomes leader (Partition.updateAssignmentAndIsr)."""
    return (new.own_replicas[r] == old.replicas,)


@action
def leader_learns_replicas(old: Reassigned, new: Reassigned, leader: Replica) -> Step:
    """Taken with whatever brings a leader newer metadata."""
    return (new.own_replicas[leader] == old.replicas,)


@action
def follows_as_replica(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """Only a replica follows; it knows of no others."""
    return (old.replicas.has(r), new.own_replicas[r] == blank(old.replicas))


@action
def elects_replica(old: Reassigned, new: Reassigned, leader: Replica) -> Step:
    """Not even an unclean election takes who is no replica (PartitionChangeBuilder.electAnyLeader: targetReplicas)."""
    return (old.replicas.has(leader),)


@action
def forgets_replicas(old: Reassigned, new: Reassigned, r: Replica) -> Step:
    """Taken where a process ends."""
    return (new.own_replicas[r] == blank(old.replicas),)


def _reassigned() -> Design:
    wider = KIP_966.in_state(Reassigned, assigned_to_all).extending(
        becomes_leader=learns_replicas,
        leader_learns_isr=leader_learns_replicas,
        becomes_follower=follows_as_replica,
        broker_crashes=forgets_replicas,
        broker_loses_power=forgets_replicas,
        broker_shuts_down=forgets_replicas,
        controller_elects_unclean=elects_replica,
    )
    # A partition of one replica acknowledges what one log holds, and means to; and who was removed deletes its log
    # before a leader that has yet to hear of it takes it out of its own in-sync set.
    not_meant = (acks_meet_minimum.name, weak_isr.name)
    return attrs.evolve(wider, properties=tuple(p for p in wider.properties if p.name not in not_meant))


KAFKA_REMOVED_REPLICA = (
    _reassigned()
    .replacing(
        "kafka-removed-replica",
        "KIP-966 where replicas are removed and added, and one that was removed stays in the ELR, as in Kafka's code",
        because="when it is added again it is elected without the records that a leader committed meanwhile.",
        enough=enough_of_own_replicas,
        may_advance=may_advance_by_own_replicas,
        enough_on_news=enough_of_replicas,
        may_advance_on_news=may_advance_by_replicas,
        takes=takes_from_replica,
        electable=electable_replica,
        awaited=awaited_replica,
    )
    .adding(controller_removes_replica, controller_adds_replica, replica_is_deleted)
    .with_defaults(replicas=2, crashes=0, sessions_lost=1, epochs=2, isr_changes=3)
    .failing(
        "who was removed is elected from the ELR when it is added again, and lacks what was committed without it",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        maximal_isr_covers,
        strong_isr,
    )
)

ELR_OF_REPLICAS = KAFKA_REMOVED_REPLICA.replacing(
    "elr-of-replicas",
    "kafka-removed-replica where who is removed leaves the ELR, too: proposed here",
    because="only a replica can have what is committed.",
    controller_removes_replica=controller_removes_replica_from_elr,
).with_defaults(isr_changes=4)

DESIGNS = (KAFKA_REMOVED_REPLICA, ELR_OF_REPLICAS)
