"""Reassignment: other brokers are to have a partition's replicas (KIP-455).

The controller writes down who is added and who is removed, and waits until those who are added are in sync. The record
that makes it complete takes those who are removed out of replicas, ISR and ELR, in a new leader epoch.

ReplicationControlManager.changePartitionReassignment, cancelPartitionReassignment; PartitionReassignmentReplicas,
PartitionReassignmentRevert, PartitionChangeBuilder (4.3). Model: isr_protocol.designs.releases, as `kafka-4.4-mended`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from isr_broker.core.controller_state import Controller, ControllerStep, answers, brokers_for, decides
from isr_broker.core.effects import Send
from isr_broker.core.elections import Brokers, Change, available, elects_for_assignment
from isr_broker.core.messages import (
    AdminAnswer,
    BrokerId,
    Error,
    ListReassignments,
    PartitionMetadata,
    Reassignments,
    ReassignPartition,
    TopicPartition,
)
from isr_broker.designs import Design

PAGE: Final = 500
"""Partitions in one answer about what is under way."""


def is_under_way(partition: PartitionMetadata) -> bool:
    """A reassignment of the partition is not complete yet."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def target_replicas(partition: PartitionMetadata) -> tuple[BrokerId, ...]:
    """The replicas once no reassignment is under way, the preferred leader first."""
    return tuple(r for r in partition.replicas if r not in partition.removing_replicas)


def original_replicas(partition: PartitionMetadata) -> tuple[BrokerId, ...]:
    """The replicas if what is under way is cancelled (PartitionReassignmentReplicas.originalReplicas)."""
    return tuple(r for r in partition.replicas if r not in partition.adding_replicas)


def _towards(old: PartitionMetadata, target: tuple[BrokerId, ...]) -> PartitionMetadata:
    """The partition on its way to other replicas, also in place of those to which it was on its way.

    Added is who of the target was no replica before all this, and removed who is not to be one: also a broker that an
    earlier target added. Kafka keeps who was added, or removed, where this target adds, or removes, nobody itself: the
    reassignment then never ends, or removes who is in the target (docs/reports.md).
    """
    leaves = tuple(sorted(set(old.replicas) - set(target)))
    joins = tuple(sorted(set(target) - set(original_replicas(old))))
    return attrs.evolve(old, replicas=(*target, *leaves), adding_replicas=joins, removing_replicas=leaves)


def _without_removed(
    partition: PartitionMetadata, isr: frozenset[BrokerId], design: Design
) -> PartitionMetadata | None:
    """The partition with its target replicas, if such an ISR completes the reassignment.

    All who are added are in it, and somebody who stays. Where there will be fewer replicas than before all of them are
    (KAFKA-19975). It takes nobody out of the ISR under min.insync.replicas, unless all that stay are in it: else writes
    would be refused that were taken a moment before (KAFKA-15665). Kafka has the first of these two rules.
    """
    target, origin = target_replicas(partition), original_replicas(partition)
    remaining_isr = isr - set(partition.removing_replicas)
    if not is_under_way(partition) or not remaining_isr or not remaining_isr >= set(partition.adding_replicas):
        return None
    if len(target) < len(origin) and not remaining_isr >= set(target):
        return None
    done = attrs.evolve(partition, replicas=target, adding_replicas=(), removing_replicas=(), isr=remaining_isr)
    enough = remaining_isr == isr or len(remaining_isr) >= done.effective_min_isr
    return done if enough or design.completes_below_minimum else None


def controller_accepts_and_completes(
    old: PartitionMetadata, isr: frozenset[BrokerId], leader: BrokerId, brokers: Brokers, design: Design
) -> Change | None:
    """The change by which a leader's proposal completes a reassignment, in one record; None where it does not."""
    new = _without_removed(old, isr, design)
    if new is None:
        return None
    return Change(elects_for_assignment(old, new, brokers, design), "controller_accepts_and_completes", leader)


# Requests.


def reassigns(controller: Controller, source: BrokerId, request: ReassignPartition) -> ControllerStep:
    """An admin asks for other replicas of a partition, or cancels what is under way (alterPartitionReassignment)."""
    old = controller.partitions.get(request.partition)
    brokers, design = brokers_for(controller, request.partition), controller.settings.insync_design
    if old is None:
        outcome: Error | Change = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif request.replicas is None:
        outcome = controller_cancels_reassignment(old, brokers, design)
    else:
        outcome = controller_starts_reassignment(old, request, controller.brokers, brokers, design)
    error = outcome if isinstance(outcome, Error) else Error.NONE
    answer = Send(source, AdminAnswer(request=request.request, error=error))
    changes = [outcome] if isinstance(outcome, Change) and outcome.partition != old else []
    return decides(controller, (), changes, (answer,))


def controller_starts_reassignment(
    old: PartitionMetadata, request: ReassignPartition, registered: Brokers, brokers: Brokers, design: Design
) -> Error | Change:
    """A reassignment begins, which may be complete in the same record (changePartitionReassignment).

    `brokers` are those as this partition has them. Model: controller_starts_reassignment, controller_reassigns_at_once.
    """
    target = request.replicas or ()
    if not target or len(set(target)) < len(target) or not all(r in registered for r in target):
        return Error.INVALID_REPLICA_ASSIGNMENT
    if not request.allows_other_factor and len(target) != len(target_replicas(old)):
        return Error.INVALID_REPLICATION_FACTOR
    waiting = _towards(old, target)
    done = _without_removed(waiting, old.isr, design)
    if done is None and waiting == old:
        return Change(old, "controller_starts_reassignment", target[0])
    action = "controller_starts_reassignment" if done is None else "controller_reassigns_at_once"
    return Change(elects_for_assignment(old, done or waiting, brokers, design), action, target[0])


def controller_cancels_reassignment(old: PartitionMetadata, brokers: Brokers, design: Design) -> Error | Change:
    """Who was added is no replica any more, and no member (cancelPartitionReassignment, PartitionReassignmentRevert).

    Where all members are among those, somebody else can lead by an unclean election only, which has to be allowed.
    """
    if not is_under_way(old):
        return Error.NO_REASSIGNMENT_IN_PROGRESS
    isr, replicas = old.isr - set(old.adding_replicas), original_replicas(old)
    if not isr and not (replicas and old.unclean_leader_election):
        return Error.INVALID_REPLICA_ASSIGNMENT
    if not isr and not design.eligible_leader_replicas:
        there = (r for r in replicas if available(brokers, r))
        isr = frozenset({next(there, replicas[0])})
    new = attrs.evolve(old, replicas=replicas, adding_replicas=(), removing_replicas=(), isr=isr)
    return Change(elects_for_assignment(old, new, brokers, design), "controller_cancels_reassignment", replicas[0])


def lists_reassignments(controller: Controller, source: BrokerId, request: ListReassignments) -> ControllerStep:
    """What is under way, from a partition on and so many (listPartitionReassignments)."""
    under_way = _after(controller.partitions.values(), request.after)
    answer = Reassignments(request=request.request, partitions=tuple(under_way[:PAGE]), are_more=len(under_way) > PAGE)
    return answers(controller, source, answer)


def _after(partitions: Iterable[PartitionMetadata], after: TopicPartition | None) -> list[PartitionMetadata]:
    rest = (p for p in partitions if is_under_way(p) and (after is None or p.partition > after))
    return sorted(rest, key=lambda p: p.partition)
