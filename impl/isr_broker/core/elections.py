"""Who is in sync and who leads, as the controller decides it: each function is one change of one partition.

A change is the partition as it is from then on, with the name of the model's action, or None where nothing changes.
A leader is chosen from the ISR or, when that is empty, from the ELR, among brokers that have a session and are not
shutting down, the first in the order of assignment (PartitionChangeBuilder.electAnyLeader).
"""

from __future__ import annotations

import attrs
from immutables import Map

from isr_broker.core.messages import AlterPartitionRequest, BrokerId, BrokerMetadata, Error, PartitionMetadata
from isr_broker.designs import Design

Brokers = Map[BrokerId, BrokerMetadata]


@attrs.frozen
class Change:
    """A partition from now on, the action that changed it, and the replica it is about."""

    partition: PartitionMetadata
    action: str
    replica: BrokerId


def available(brokers: Brokers, replica: BrokerId) -> bool:
    """The broker has a session and is not shutting down."""
    broker = brokers.get(replica)
    return broker is not None and not broker.fenced and not broker.shutting_down


def electable(brokers: Brokers, replica: BrokerId, isr: frozenset[BrokerId], elr: frozenset[BrokerId]) -> bool:
    """The broker is available and in the ISR or, when nobody is, in the ELR (isValidNewLeader)."""
    return available(brokers, replica) and (replica in isr or (not isr and replica in elr))


def elr_beside(old: PartitionMetadata, isr: frozenset[BrokerId], design: Design) -> frozenset[BrokerId]:
    """The ELR beside a new ISR: nobody at the minimum, else whoever was in ISR or ELR and is not in the ISR now.

    PartitionChangeBuilder.maybePopulateTargetElr; none before KIP-966.
    """
    if not design.eligible_leader_replicas or len(isr) >= old.effective_min_isr:
        return frozenset()
    return (old.elr | old.isr) - isr


def isr_without(old: PartitionMetadata, replica: BrokerId, design: Design) -> frozenset[BrokerId]:
    """The ISR when a broker is gone; empty only where there is an ELR to fall back on (KIP-966)."""
    left = old.isr - {replica}
    return left if left or design.eligible_leader_replicas else old.isr


def _next_version(old: PartitionMetadata, isr: frozenset[BrokerId], elr: frozenset[BrokerId]) -> PartitionMetadata:
    """A new version of the partition's metadata. Model: metadata_changes."""
    return attrs.evolve(old, isr=isr, elr=elr, partition_epoch=old.partition_epoch + 1)


def _elects(
    old: PartitionMetadata, leader: BrokerId, isr: frozenset[BrokerId], elr: frozenset[BrokerId]
) -> PartitionMetadata:
    """A replica leads in a new leader epoch. Model: elects."""
    new = _next_version(old, isr, elr)
    return attrs.evolve(new, leader=leader, leader_epoch=old.leader_epoch + 1, last_known_leader=None)


def elects_for_assignment(
    old: PartitionMetadata, new: PartitionMetadata, brokers: Brokers, design: Design
) -> PartitionMetadata:
    """`new`, which has other replicas and another ISR than `old`, as its next version: with ELR, leader and epochs.

    Members of the ELR are replicas. Kafka leaves who is removed there (found/removed-replica). The leader stays if it
    is a member, for one that shuts down is relieved by a step of its own; else it is the first of the replicas that may
    lead. Its epoch grows where anybody is no replica any more. PartitionChangeBuilder.build,
    triggerLeaderEpochBumpForReplicaReassignmentIfNeeded.
    """

    def elr_of(isr: frozenset[BrokerId]) -> frozenset[BrokerId]:
        elr = elr_beside(attrs.evolve(old, replicas=new.replicas), isr, design)
        return elr if design.keeps_removed_in_elr else elr & set(new.replicas)

    isr, leader = new.isr, old.leader
    if leader is not None and leader not in isr:
        leader = next((r for r in new.replicas if electable(brokers, r, isr, elr_of(isr))), None)
        if leader is not None and not isr:
            isr = frozenset({leader})
    fewer = not set(old.replicas) <= set(new.replicas)
    return attrs.evolve(
        new,
        isr=isr,
        elr=elr_of(isr),
        leader=leader,
        leader_epoch=old.leader_epoch + int(fewer or leader != old.leader),
        partition_epoch=old.partition_epoch + 1,
        last_known_leader=None if leader is not None or isr else old.last_known_leader or old.leader,
    )


# A leader asks for another ISR.


def is_overtaken(request: AlterPartitionRequest, refused_request: AlterPartitionRequest, design: Design) -> bool:
    """The request or a later copy of it was refused, so its leader counts on none being accepted (docs/adr/0007)."""
    if not design.drops_overtaken:
        return False
    same = (refused_request.leader_epoch, refused_request.partition_epoch) == (
        request.leader_epoch,
        request.partition_epoch,
    )
    return same and request.attempt <= refused_request.attempt


def alter(
    old: PartitionMetadata | None,
    request: AlterPartitionRequest,
    refused_request: AlterPartitionRequest | None,
    brokers: Brokers,
    design: Design,
) -> tuple[Error, Change | None]:
    """The controller's decision on an AlterPartition: accepted, refused as ineligible, or rejected as stale.

    `refused_request` is the one that was refused last.

    ReplicationControlManager.alterPartition, validateAlterPartitionData, ineligibleReplicasForIsr. Model: current,
    eligible, controller_accepts_alter_partition and its like.
    """
    sender = brokers.get(request.leader)
    if sender is None or sender.epoch != request.broker_epoch:
        return Error.STALE_BROKER_EPOCH, None
    if old is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION, None
    if request.leader_epoch > old.leader_epoch or request.partition_epoch > old.partition_epoch:
        # The leader knows of decisions that this controller has not made.
        return Error.NOT_CONTROLLER, None
    stale = Change(old, "controller_rejects_stale_alter_partition", request.leader)
    if old.leader_epoch != request.leader_epoch:
        return Error.FENCED_LEADER_EPOCH, stale
    if old.leader != request.leader:
        return Error.INVALID_REQUEST, stale
    if old.partition_epoch != request.partition_epoch and not design.no_partition_epoch_check:
        return Error.INVALID_UPDATE_VERSION, stale
    if refused_request is not None and is_overtaken(request, refused_request, design):
        # The refused request itself, a second time: its leader may hear this answer first, and must not wait for news
        # that never come. To an older copy's answer nobody listens.
        again = request.attempt == refused_request.attempt
        return Error.INELIGIBLE_REPLICA if again else Error.INVALID_UPDATE_VERSION, None
    isr = request.members
    if len(isr) != len(request.isr) or not isr <= frozenset(old.replicas) or request.leader not in isr:
        return Error.INVALID_REQUEST, None
    if not _eligible(old, request, brokers, design):
        return Error.INELIGIBLE_REPLICA, Change(old, "controller_refuses_alter_partition", request.leader)
    if isr == old.isr:
        return Error.NONE, None
    new = _next_version(old, isr, elr_beside(old, isr, design))
    return Error.NONE, Change(new, "controller_accepts_alter_partition", request.leader)


def _eligible(old: PartitionMetadata, request: AlterPartitionRequest, brokers: Brokers, design: Design) -> bool:
    """No proposed member is fenced or shutting down (KIP-841), and none that joins is another incarnation (KIP-903).

    A member that restarted was taken out of the ISR first, so the partition epoch gives it away. An epoch of -1 is not
    compared: it is that of requests before version 3.
    """
    if design.keeps_out_fenced and not all(available(brokers, m) for m in request.members):
        return False
    joins = [(m, seen) for m, seen in request.isr if m not in old.isr]
    if not all(m in brokers for m, _ in joins):
        return False
    return not design.compares_broker_epochs or all(seen in (-1, brokers[m].epoch) for m, seen in joins)


# A broker is gone.


def departs(old: PartitionMetadata, replica: BrokerId, brokers: Brokers, design: Design) -> Change:
    """The controller does without a replica: its broker is fenced, or relieved of its duties because it shuts down.

    `brokers` are those after it. ReplicationControlManager.handleBrokerFenced, handleBrokerInControlledShutdown.
    """
    if old.leader != replica:
        if replica not in old.isr:
            return Change(old, "controller_fences_outsider", replica)
        isr = isr_without(old, replica, design)
        return Change(_next_version(old, isr, elr_beside(old, isr, design)), "controller_fences_follower", replica)
    isr, elr = isr_without(old, replica, design), old.elr - {replica}
    for successor in old.replicas:
        outside = design.elect_outside_isr and available(brokers, successor)
        if successor != replica and (outside or electable(brokers, successor, isr, elr)):
            chosen = isr or frozenset({successor})
            new = _elects(old, successor, chosen, elr_beside(old, chosen, design))
            return Change(new, "controller_fences_leader", replica)
    new = attrs.evolve(
        _next_version(old, isr, elr_beside(old, isr, design)),
        leader=None,
        leader_epoch=old.leader_epoch + 1,
        last_known_leader=None if isr else replica,
    )
    return Change(new, "controller_fences_last_leader", replica)


def relievable(old: PartitionMetadata, replica: BrokerId, design: Design) -> bool:
    """Leadership or membership can still be taken from a replica whose broker shuts down."""
    return old.leader == replica or isr_without(old, replica, design) != old.isr


# A broker is back, or has become eligible.


def returns(old: PartitionMetadata, replica: BrokerId, design: Design) -> Change | None:
    """An available replica leads if the partition waited for it, or led last and nobody else may (KIP-966).

    ReplicationControlManager.handleBrokerUnfenced, PartitionChangeBuilder.canElectLastKnownLeader.
    """
    if old.leader is not None:
        return None
    if replica in old.isr or (not old.isr and replica in old.elr):
        isr = old.isr or frozenset({replica})
        return Change(_elects(old, replica, isr, elr_beside(old, isr, design)), "controller_elects_returned", replica)
    gated = not (old.isr or old.elr) or design.ungated_last_leader
    if gated and old.last_known_leader == replica:
        new = _elects(old, replica, frozenset({replica}), frozenset())
        return Change(new, "controller_elects_last_known_leader", replica)
    return None


def elects_anybody(old: PartitionMetadata, brokers: Brokers, design: Design) -> Change | None:
    """A partition without a leader gets one: who is eligible, else who led last, else anybody if that is allowed.

    PartitionChangeBuilder.electAnyLeader.
    """
    for replica in old.replicas:
        change = returns(old, replica, design) if available(brokers, replica) else None
        if change is not None:
            return change
    return elects_unclean(old, brokers)


def elects_unclean(old: PartitionMetadata, brokers: Brokers) -> Change | None:
    """Nobody eligible is available, so any available replica leads, alone, whatever it lacks.

    unclean.leader.election.enable; PartitionChangeBuilder.electAnyLeader. Kafka does this in the step that loses the
    leader; here, as in the model, it follows.
    """
    if not old.unclean_leader_election or old.leader is not None:
        return None
    if any(electable(brokers, r, old.isr, old.elr) for r in old.replicas):
        return None
    for replica in old.replicas:
        if available(brokers, replica):
            new = _elects(old, replica, frozenset({replica}), frozenset())
            return Change(new, "controller_elects_unclean", replica)
    return None


def partition_after_restart(
    old: PartitionMetadata, replica: BrokerId, clean: bool, design: Design
) -> PartitionMetadata:
    """A replica that returns without the mark of a clean shutdown is in neither ISR nor ELR (6) (KIP-966).

    ReplicationControlManager.handleBrokerUncleanShutdown.
    """
    if clean or not design.eligible_leader_replicas or replica not in old.isr | old.elr:
        return old
    return _next_version(old, old.isr - {replica}, old.elr if design.keep_elr else old.elr - {replica})


def moves(old: PartitionMetadata, leader: BrokerId, brokers: Brokers) -> Change | None:
    """Leadership moves to another member of the ISR, which stays as it is (preferred election).

    ReplicationControlManager.electLeaders, maybeBalancePartitionLeaders.
    """
    if old.leader is None or old.leader == leader or not electable(brokers, leader, old.isr, frozenset()):
        return None
    return Change(_elects(old, leader, old.isr, old.elr), "controller_moves_leadership", leader)
