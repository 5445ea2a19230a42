"""Kafka as it is released, with all that was found in it, and what people do to a cluster while it runs.

`kip-966` is the protocol as it is meant. A release of Kafka does more: it keeps its followers' positions when a leader
is elected again (`leader_bugs`), forgets a proposal when metadata arrive (`forgotten_proposal`), sends a request again
(`leader_bugs`), applies a new min.insync.replicas late (`raised_minimum`), and leaves who is removed in the ELR
(`removed_replica`). Here these pieces are one design, and each thing that people do has a budget: with none of it
the design is Kafka at rest. The mended design has every mend of those files, and should lose nothing at the same
bounds. It also takes a target in place of another as it was asked for. Releases before 4.3 are in `earlier_releases`.

People do five things. They reassign: any replicas at once, also in place of a reassignment that is under way, and they
cancel. They set min.insync.replicas. They switch unclean.leader.election.enable. They put an empty disk into a broker
that is down, or start it without one of its log directories. A network does two: a leader sends an AlterPartition
again, or has an answer before its metadata bring what it says. Restarts, elections and lost sessions are those of
`kip-966`.

Left out: that anything but a proposal completes a reassignment that has to wait, and one that is asked for while nobody
leads; a directory that fails while its broker goes on (`directories`). The partition is not 0 of its topic: the
controller bounds the minimum by the number of partition 0's replicas, and those are enough here
(ReplicationControlManager.getTopicEffectiveMinIsr, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from isr_lang import (
    NONE,
    Action,
    Bool,
    Design,
    Map,
    Number,
    Set,
    Step,
    action,
    always,
    bound,
    define,
    forall,
    initial,
    smallest,
    step,
    var,
    when,
)
from isr_lang.blank import blank
from isr_lang.override import DefinitionFunction
from isr_model import KIP_966
from isr_protocol.designs.cleared_elr import ELR_KEPT_BELOW_MINIMUM
from isr_protocol.designs.forgotten_proposal import (
    PROPOSAL_KEPT,
    forgets_proposal,
    has_read,
    leader_has_read,
    leader_hears_known_version,
    leader_hears_known_version_and_waits_on,
)
from isr_protocol.designs.leader_bugs import (
    KAFKA_RESETS_POSITIONS,
    REFUSAL_IN_NEW_VERSION,
    becomes_leader_with,
    controller_refuses_later_copy,
    controller_refuses_later_copy_in_new_version,
    hears_what_it_waits_for,
)
from isr_protocol.designs.old_metadata import (
    WithImage,
    has_passed_image,
    image_is_delayed,
    leader_has_passed_image,
    no_image,
    with_old_metadata,
)
from isr_protocol.designs.raised_minimum import (
    MINIMUM_IN_NEW_VERSION,
    broker_learns_minimum,
    controller_sets_minimum,
    controller_sets_minimum_in_new_version,
    elr_beside_of_minimum,
    keeps_elr_below_minimum,
    leader_learns_minimum,
    learns_minimum,
)
from isr_protocol.designs.reassignment import assigned, completes_with_added_or_all
from isr_protocol.designs.removed_replica import (
    ELR_OF_REPLICAS,
    awaited_replica,
    electable_replica,
    elects_replica,
    follows_as_replica,
    forgets_replicas,
    leader_learns_replicas,
    learns_replicas,
    replica_is_deleted,
    takes_from_replica,
)
from isr_protocol.designs.wider_state import Minimum, members_are_replicas
from isr_protocol.elections import available, elects_from_outside
from isr_protocol.membership import current, eligible, elr_beside, metadata_changes, replies
from isr_protocol.metadata import becomes_leader, leader_learns_brokers
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.promises.safety import (
    acked_survives,
    acks_meet_minimum,
    clean_election,
    committed_on_new_leader,
    elected_from_outside,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
    weak_isr,
)
from isr_protocol.state import ACKS, EPOCHS, MIN_INSYNC, UNCLEAN, Acks, Alter, Offset, Replica, leads, log_end

REASSIGNMENTS = bound("reassignments", "reassignments that are begun or cancelled", default=0, high=3, budget=True)
MINIMUM_CHANGES = bound("minimum_changes", "changes of min.insync.replicas", default=0, high=2, budget=True)
DISKS_REPLACED = bound("disks_replaced", "brokers that are down and get an empty disk", default=0, high=2, budget=True)
DIRECTORIES_REMOVED = bound(
    "directories_removed", "log directories that a broker which is down starts without", default=0, high=2, budget=True
)
UNCLEAN_SWITCHES = bound(
    "unclean_switches", "switches of unclean.leader.election.enable", default=0, high=2, budget=True
)
COPIES = bound("copies", "AlterPartition requests that are sent again", default=0, high=2, budget=True)
LATE_NEWS = bound(
    "late_news", "answers that a leader has before the metadata of the same change", default=0, high=2, budget=True
)
SNAPSHOTS_LOADED = bound(
    "snapshots_loaded", "snapshots of the metadata that a leader loads", default=0, high=2, budget=True
)
SPARES = bound("spares", "brokers without a replica at first, where anybody reassigns", default=1, high=3)
LEAST_REPLICAS = bound("least_replicas", "replicas that every reassignment asks for at least", default=1, low=1, high=7)


class Reassignments(Number, high=REASSIGNMENTS):
    """How many reassignments were begun or cancelled."""


class MinimumChanges(Number, high=MINIMUM_CHANGES):
    """How often min.insync.replicas was set."""


class DisksReplaced(Number, high=DISKS_REPLACED):
    """How many brokers got an empty disk."""


class DirectoriesRemoved(Number, high=DIRECTORIES_REMOVED):
    """How many brokers lost a log directory from log.dirs."""


class UncleanSwitches(Number, high=UNCLEAN_SWITCHES):
    """How often unclean.leader.election.enable was switched."""


class Copies(Number, high=COPIES):
    """How many requests were sent again."""


class LateNews(Number, high=LATE_NEWS):
    """How many versions of the partition a leader has heard late."""


class SnapshotsLoaded(Number, high=SNAPSHOTS_LOADED):
    """How many snapshots told a leader a version that it knew."""


def smaller_minimum(minimum: Minimum, replicas: Set[Replica]) -> Minimum:
    """The minimum, or the number of replicas if there are fewer (Partition.effectiveMinIsr)."""
    number = smallest((n for n in Minimum.all().where(lambda n: replicas.size() == n)), or_else=minimum)
    return when(number < minimum, number, minimum)


class Operations(WithImage):
    """The state of a cluster at which people work: assignment and configuration change, and messages arrive twice."""

    reassignments: Reassignments = var("reassignments so far that were begun or cancelled")
    minimum_changes: MinimumChanges = var("changes so far of min.insync.replicas")
    disks_replaced: DisksReplaced = var("empty disks so far")
    directories_removed: DirectoriesRemoved = var("log directories so far that a broker starts without")
    unclean_switches: UncleanSwitches = var("switches so far of unclean.leader.election.enable")
    unclean_enabled: Bool = var("unclean.leader.election.enable, as the controller has it")
    copies: Copies = var("requests so far that were sent again")
    late_news: LateNews = var("versions so far that a leader knew from an answer when its metadata brought them")
    snapshots_loaded: SnapshotsLoaded = var(
        "snapshots so far that told a leader a version which it knew", when=SNAPSHOTS_LOADED > 0
    )
    least: Minimum = var("the least number of logs that an acknowledgement has taken so far")


@initial
def at_rest(new: Operations, first: Replica, spares: Set[Replica]) -> Step:
    """All brokers have a replica, in sync, or with reassignments all but the spares; nobody has done anything yet."""
    nobody, everybody = blank(new.controller_isr), Replica.all()
    some_are = (REASSIGNMENTS > 0) & (spares.size() <= SPARES) & ~spares.has(first)
    others = when(some_are, everybody - spares, everybody)
    return (
        *assigned(new, first, others),
        new.minimum == Minimum.of(MIN_INSYNC),
        new.own_minimum == Map.build(Replica, lambda r: Minimum.of(MIN_INSYNC)),
        new.ahead == nobody,
        new.heard_of == Map.build(Replica, lambda r: nobody),
        new.reassignments == 0,
        new.minimum_changes == 0,
        new.disks_replaced == 0,
        new.directories_removed == 0,
        new.unclean_switches == 0,
        new.unclean_enabled == UNCLEAN,
        new.copies == 0,
        new.late_news == 0,
        new.snapshots_loaded == 0,
        *no_image(new),
        new.least == smaller_minimum(Minimum.of(MIN_INSYNC), others),
    )


# What a leader and the controller reckon with.


def as_many(s: Operations, members: Set[Replica], minimum: Minimum, replicas: Set[Replica]) -> Bool:
    """The set has min.insync.replicas members, or as many as there are replicas (Partition.effectiveMinIsr)."""
    return (members.size() >= minimum) | (members.size() >= replicas.size())


@define
def enough_of_own(s: Operations, leader: Replica, members: Set[Replica]) -> Bool:
    """(7) By the leader's own configuration and assignment."""
    return as_many(s, members, s.own_minimum[leader], s.own_replicas[leader])


@define
def may_advance_of_own(s: Operations, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) By the leader's own configuration and assignment."""
    return enough_of_own(s, leader, isr)


@define
def enough_of_news(s: Operations, leader: Replica, members: Set[Replica]) -> Bool:
    """(7) On news: by the assignment that they bring, and the configuration from before (`raised_minimum`)."""
    return as_many(s, members, s.own_minimum[leader], s.replicas)


@define
def may_advance_of_news(s: Operations, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) On news, by the same."""
    return enough_of_news(s, leader, isr)


@define
def enough_of_newest(s: Operations, leader: Replica, members: Set[Replica]) -> Bool:
    """(7) On news: by the assignment and the configuration that they bring."""
    return as_many(s, members, s.minimum, s.replicas)


@define
def elr_of(s: Operations, isr: Set[Replica], replicas: Set[Replica]) -> Set[Replica]:
    """The ELR beside a new ISR and a new assignment: who is no replica any more may stay in it, as in Kafka's code."""
    return elr_beside(s, isr)


@define
def elr_within(s: Operations, isr: Set[Replica], replicas: Set[Replica]) -> Set[Replica]:
    """The ELR beside a new ISR and a new assignment: replicas only."""
    return elr_beside(s, isr) & replicas


@action
def becomes_leader_keeping_positions(old: Operations, new: Operations, r: Replica) -> Step:
    """A replica learns that it leads in a new epoch; if it led before, it keeps the positions of the replicas."""
    return becomes_leader_with(old, new, r, leads(old, r), old.replicas)


@define
def caught_up_by_fetch(s: Operations, leader: Replica, f: Replica) -> Bool:
    """The follower has fetched in this epoch, from the watermark or past it, and is not away.

    A position that is kept makes no member: a leader asks while it handles a fetch (Partition.maybeExpandIsr).
    """
    seen = s.follower_end[leader][f].or_else(0)
    return s.heard_of[leader].has(f) & (s.high_watermark[leader] <= seen) & ~s.known_away[leader].has(f)


@action
def hears_of(old: Operations, new: Operations, leader: Replica, follower: Replica) -> Step:
    """Taken where a leader takes a fetch for an acknowledgement."""
    return (new.heard_of[leader] == old.heard_of[leader].including(follower),)


@action
def has_heard_of_nobody(old: Operations, new: Operations, r: Replica) -> Step:
    """Taken where a broker enters an epoch, or stops."""
    return (new.heard_of[r] == blank(old.replicas),)


# Reassignment.


@define
def under_way(s: Operations) -> Bool:
    """A reassignment is under way."""
    return ~(s.adding | s.removing).is_empty()


@define
def completes(
    s: Operations, isr: Set[Replica], adding: Set[Replica], removing: Set[Replica], replicas: Set[Replica]
) -> Bool:
    """Such an ISR completes a reassignment, if there is one; `replicas` are all, with those that it adds.

    Kafka looks for those added in the ISR less those removed. In `reassignment` nobody is both.
    """
    some = ~(adding | removing).is_empty()
    return some & completes_with_added_or_all(s, isr - removing, replicas, adding, removing)


@define
def keeps_minimum(s: Operations, isr: Set[Replica], removing: Set[Replica], replicas: Set[Replica]) -> Bool:
    """Where a reassignment completes, the minimum is left in sync, or all that stay, or nobody in sync goes."""
    left = isr - removing
    return (left.size() >= s.minimum) | ((replicas - removing) <= left) | (isr <= left)


@define
def completes_at_minimum(
    s: Operations, isr: Set[Replica], adding: Set[Replica], removing: Set[Replica], replicas: Set[Replica]
) -> Bool:
    """Such an ISR completes a reassignment, and that takes nobody out of it under min.insync.replicas."""
    return completes(s, isr, adding, removing, replicas) & keeps_minimum(s, isr, removing, replicas)


def some_go(s: Operations, replicas: Set[Replica]) -> Bool:
    """Some replica is none in this assignment."""
    return ~(s.replicas <= replicas)


def reassigned_to(old: Operations, new: Operations, isr: Set[Replica], replicas: Set[Replica], leader: Replica) -> Step:
    """The assignment is `replicas`, and no reassignment is under way; the leader epoch is new where a replica is gone.

    The leader stays if it is in this ISR; else another member leads. PartitionChangeBuilder.tryElection,
    triggerLeaderEpochBumpForReplicaReassignmentIfNeeded (4.3.1).
    """
    epoch, goes = old.controller_epoch, some_go(old, replicas)
    stays, least = old.controller_leader == leader, smaller_minimum(old.minimum, replicas)
    leaves = ~isr.has(old.controller_leader.or_else(leader))
    return (
        isr.has(leader),
        stays | (available(old, leader) & leaves),
        ~goes | (epoch < EPOCHS),
        *metadata_changes(old, new, isr, elr_of(old, isr, replicas)),
        new.controller_leader == leader,
        new.controller_epoch == when(goes, epoch + 1, epoch),
        new.last_known_leader == NONE,
        new.replicas == replicas,
        new.adding == blank(old.adding),
        new.removing == blank(old.removing),
        new.least == when(least < old.least, least, old.least),
    )


def counts_reassignment(old: Operations, new: Operations) -> Step:
    """One of the reassignments of the budget, while somebody leads."""
    return (
        old.reassignments < REASSIGNMENTS,
        new.reassignments == old.reassignments + 1,
        old.controller_leader != NONE,
    )


def asks_for(old: Operations, new: Operations, target: Set[Replica]) -> Step:
    """Somebody asks for other replicas."""
    return (*counts_reassignment(old, new), target.size() >= LEAST_REPLICAS, target != old.replicas)


@define
def added_by(s: Operations, target: Set[Replica]) -> Set[Replica]:
    """Who is added once such a target is asked for: if it adds nobody itself, whoever was being added before.

    ReplicationControlManager.changePartitionReassignment sets neither field where it is empty (3.9.1 to 4.4.0).
    """
    joins = target - s.replicas
    return when(joins.is_empty(), s.adding, joins)


@define
def removed_by(s: Operations, target: Set[Replica]) -> Set[Replica]:
    """Who is removed once such a target is asked for: if it removes nobody itself, whoever was being removed before."""
    leaves = s.replicas - target
    return when(leaves.is_empty(), s.removing, leaves)


@define
def added_by_target(s: Operations, target: Set[Replica]) -> Set[Replica]:
    """Who is added once such a target is asked for: all of it that was no replica before the first reassignment."""
    return target - (s.replicas - s.adding)


@define
def removed_by_target(s: Operations, target: Set[Replica]) -> Set[Replica]:
    """Who is removed once such a target is asked for: whoever is not in it."""
    return s.replicas - target


def target_of(old: Operations, target: Set[Replica]) -> tuple[Set[Replica], Set[Replica], Set[Replica]]:
    """All replicas, those added and those removed, once such a target is asked for."""
    return old.replicas | target, added_by(old, target), removed_by(old, target)


@action
def controller_starts_reassignment(old: Operations, new: Operations, target: Set[Replica]) -> Step:
    """Somebody asks for other replicas, and that has to wait.

    What is under way already is not written again (PartitionChangeBuilder.build); an order of replicas is none here.
    """
    replicas, adding, removing = target_of(old, target)
    isr = old.controller_isr
    return (
        *asks_for(old, new, target),
        (replicas != old.replicas) | (adding != old.adding) | (removing != old.removing),
        ~completes(old, isr, adding, removing, replicas),
        *metadata_changes(old, new, isr, elr_of(old, isr, replicas)),
        new.replicas == replicas,
        new.adding == adding,
        new.removing == removing,
    )


@action
def controller_reassigns_at_once(old: Operations, new: Operations, target: Set[Replica], leader: Replica) -> Step:
    """Somebody asks for other replicas, and the in-sync set is such that the same record completes it."""
    replicas, adding, removing = target_of(old, target)
    isr = old.controller_isr
    return (
        *asks_for(old, new, target),
        completes(old, isr, adding, removing, replicas),
        *reassigned_to(old, new, isr - removing, replicas - removing, leader),
    )


@action
def controller_cancels_reassignment(old: Operations, new: Operations, leader: Replica) -> Step:
    """Somebody cancels: who was added is no replica any more, and a member no more.

    PartitionReassignmentRevert, ReplicationControlManager.cancelPartitionReassignment.
    """
    return (
        *counts_reassignment(old, new),
        under_way(old),
        *reassigned_to(old, new, old.controller_isr - old.adding, old.replicas - old.adding, leader),
    )


@action
def goes_on(old: Operations, new: Operations, leader: Replica) -> Step:
    """Taken where the controller accepts a proposal that completes nothing."""
    return (~completes(old, old.alter_isr[leader], old.adding, old.removing, old.replicas),)


@action
def controller_accepts_and_completes(old: Operations, new: Operations, leader: Replica, successor: Replica) -> Step:
    """The controller accepts a leader's proposal, and that completes the reassignment, in the same record.

    A leader hears that its proposal was accepted only where its epoch stays (ReplicationControlManager.alterPartition).
    """
    isr, replicas = old.alter_isr[leader], old.replicas - old.removing
    return (
        old.alter[leader] == Alter.REQUESTED,
        current(old, leader),
        eligible(old, leader),
        completes(old, isr, old.adding, old.removing, old.replicas),
        *reassigned_to(old, new, isr - old.removing, replicas, successor),
        *replies(old, new, leader, when(some_go(old, replicas), Alter.NONE, Alter.ACCEPTED)),
    )


# The other things that people do.


@action
def counts_minimum(old: Operations, new: Operations, value: Minimum) -> Step:
    """One of the changes of min.insync.replicas of the budget."""
    least = smaller_minimum(value, old.replicas)
    return (
        old.minimum_changes < MINIMUM_CHANGES,
        new.minimum_changes == old.minimum_changes + 1,
        new.least == when(least < old.least, least, old.least),
    )


@action
def is_ahead(old: Operations, new: Operations, leader: Replica) -> Step:
    """Taken with the answer that an in-sync set was accepted, where the metadata may bring it later."""
    return (new.ahead == when(LATE_NEWS > 0, old.ahead.including(leader), old.ahead),)


@action
def counts_news(old: Operations, new: Operations, leader: Replica) -> Step:
    """One of the late versions of the budget."""
    return (old.late_news < LATE_NEWS, new.late_news == old.late_news + 1)


def loads_snapshot(old: Operations, new: Operations, leader: Replica) -> Step:
    """A leader that waits for an answer loads a snapshot of the metadata, with the version that it knows.

    It is told of it again: TopicsDelta.replay(TopicRecord) compares what a snapshot brings with no partitions at all,
    so that all of the leader's are changes (TopicDelta.localChanges; MetadataLoader.handleLoadSnapshot, 4.3.1, read).
    """
    return (
        old.snapshots_loaded < SNAPSHOTS_LOADED,
        leads(old, leader),
        ~old.pending_isr[leader].is_empty(),
        old.partition_epoch[leader] == old.controller_partition_epoch,
        new.ahead == old.ahead.excluding(leader),
        new.snapshots_loaded == old.snapshots_loaded + 1,
    )


@action
def leader_loads_snapshot(old: Operations, new: Operations, leader: Replica) -> Step:
    """A leader loads a snapshot with the version that it knows, and forgets what it has proposed since.

    As `leader_hears_known_version`, and no answer has to be first.
    """
    return (*loads_snapshot(old, new, leader), *forgets_proposal(old, new, leader))


@action
def leader_loads_snapshot_and_waits_on(old: Operations, new: Operations, leader: Replica) -> Step:
    """A leader loads a snapshot with the version that it knows: nothing else changes."""
    return loads_snapshot(old, new, leader)


@action
def counts_copy(old: Operations, new: Operations, leader: Replica) -> Step:
    """One of the copies of the budget."""
    return (old.copies < COPIES, new.copies == old.copies + 1)


def log_is_gone(old: Operations, new: Operations, r: Replica) -> Step:
    """A broker that is down has its log no more; it comes back under the same number (node.id).

    That does not happen to as many as there were logs of an acknowledged record: what is lost then, no protocol
    promises.
    """
    disks = DisksReplaced.all().where(lambda n: n <= old.disks_replaced).size()
    directories = DirectoriesRemoved.all().where(lambda n: n < old.directories_removed).size()
    return (
        ~old.alive.has(r),
        old.fenced.has(r),
        old.replicas.has(r),
        disks + directories < old.least,
        new.log[r] == blank(old.log[r]),
        new.high_watermark[r] == 0,
    )


@action
def disk_is_replaced(old: Operations, new: Operations, r: Replica) -> Step:
    """A broker that is down gets an empty disk: its log is gone, and so is the mark of a clean shutdown.

    CleanShutdownFileHandler; `previousBrokerEpoch` is then -1.
    """
    return (
        old.disks_replaced < DISKS_REPLACED,
        *log_is_gone(old, new, r),
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        new.disks_replaced == old.disks_replaced + 1,
    )


@define
def marks_left(s: Operations, r: Replica) -> Set[Replica]:
    """Who has the mark of a clean shutdown once a directory is gone: it is in every directory that is left, too.

    LogManager.readBrokerEpochFromCleanShutdownFiles goes through those of log.dirs (4.3.1, read).
    """
    return s.clean_shutdown


@define
def marks_of_all(s: Operations, r: Replica) -> Set[Replica]:
    """Who has the mark, if it takes every directory that the controller knows a replica of the broker to be in."""
    return s.clean_shutdown.excluding(r)


@action
def directory_is_removed(old: Operations, new: Operations, r: Replica) -> Step:
    """A broker that is down is to start without the directory with the log, which is taken out of log.dirs.

    Its other directories have the mark of a clean shutdown. It makes the replica again in one of them
    (Partition.createLogInAssignedDirectoryId).
    """
    return (
        old.directories_removed < DIRECTORIES_REMOVED,
        *log_is_gone(old, new, r),
        new.clean_shutdown == marks_left(old, r),
        new.directories_removed == old.directories_removed + 1,
    )


@action
def controller_switches_unclean_election(old: Operations, new: Operations) -> Step:
    """Somebody sets unclean.leader.election.enable to what it is not.

    Nobody is elected with that: the controller looks for partitions without a leader each
    unclean.leader.election.interval.ms (QuorumController, 4.3.1).
    """
    return (
        old.unclean_switches < UNCLEAN_SWITCHES,
        new.unclean_switches == old.unclean_switches + 1,
        new.unclean_enabled == ~old.unclean_enabled,
    )


@action
def elects_as_enabled(old: Operations, new: Operations, leader: Replica) -> Step:
    """Taken with an unclean election, where the setting is on from the start."""
    return (old.unclean_enabled,)


@action
def controller_elects_unclean_since_switched(old: Operations, new: Operations, leader: Replica) -> Step:
    """The same election, where the setting was switched on."""
    return (
        UNCLEAN_SWITCHES > 0,
        ~UNCLEAN,
        old.unclean_enabled,
        old.replicas.has(leader),
        *elects_from_outside(old, new, leader),
    )


# What is promised.


@always
def leader_is_replica(s: Operations) -> Bool:
    """Whoever is elected has a replica."""
    return forall((s.controller_leader == r).implies(s.replicas.has(r)) for r in Replica.all())


@always
def reassignment_can_complete(s: Operations) -> Bool:
    """A reassignment that is under way would be complete with all replicas in sync.

    Else it waits for ever, until somebody asks for another one or cancels.
    """
    return under_way(s).implies(completes(s, s.replicas, s.adding, s.removing, s.replicas))


@step
def completion_keeps_minimum(old: Operations, new: Operations) -> Bool:
    """To complete a reassignment takes nobody out of the ISR under min.insync.replicas, unless all that are left are in
    sync: who else is missing had failed before.

    Else writes are refused that were taken a moment before, or would be from now on (KAFKA-15665). Cancelling is not
    completing.
    """
    gone, left = old.replicas - new.replicas, new.controller_isr
    kept = (left.size() >= old.minimum) | (left == new.replicas) | (old.controller_isr & gone).is_empty()
    return (gone <= old.adding) | kept


@step
def reassignment_is_not_held_up(old: Operations, new: Operations) -> Bool:
    """A proposal that brings in sync all that a reassignment adds completes it, unless there will be fewer replicas, or
    too few in sync.

    Who stays and is out of sync may never be back (KAFKA-19975).
    """
    proposal = (new.controller_epoch == old.controller_epoch) & (new.controller_isr != old.controller_isr)
    added = ~new.adding.is_empty() & (new.adding <= (new.controller_isr - new.removing))
    enough_are_left = keeps_minimum(new, new.controller_isr, new.removing, new.replicas)
    return ~(proposal & added & (new.removing.size() <= new.adding.size()) & enough_are_left)


@step(when=DISKS_REPLACED + DIRECTORIES_REMOVED > 0)
def empty_is_no_member(old: Operations, new: Operations) -> Bool:
    """A broker that comes back empty is in no set, once something is committed."""
    back = new.alive - old.alive
    empty = Replica.all().where(lambda r: log_end(new, r) == 0)
    return (new.committed.length() > 0).implies((back & empty & (new.controller_isr | new.controller_elr)).is_empty())


@always(when=ACKS == Acks.ALL)
def committed_is_acknowledged(s: Operations) -> Bool:
    """What a leader has committed of its own epoch is acknowledged: its producer does not wait for ever.

    Once it leads no more, or in another epoch, the producer was told so (NOT_LEADER_OR_FOLLOWER), or waits.
    """
    return forall(
        (leads(s, r) & (o < s.high_watermark[r]) & (s.written_in[s.log[r][o]] == s.leader_epoch[r])).implies(
            s.acked.has(s.log[r][o])
        )
        for r in Replica.all()
        for o in Offset.all()
    )


@step
def stays_eligible(old: Operations, new: Operations) -> Bool:
    """Who was in ISR or ELR is so still, unless something took that away.

    That is: an ISR at the minimum, which needs nobody else; a start after an unclean stop; a reassignment; an election
    of who was in neither. Who led last counts while nobody is in either.
    """
    members, newest = old.controller_isr | old.controller_elr, new.controller_isr | new.controller_elr
    started = (new.alive - old.alive) - old.clean_shutdown
    return (
        ((members - newest - started) & new.replicas).is_empty()
        | (new.controller_isr.size() >= new.minimum)
        | elected_from_outside(old, new)
    )


# The designs.


def _operations() -> Design:
    own = {u.variable for u in at_rest.updates}
    kept = tuple(u for u in KIP_966.initial.updates if u.variable not in own)
    start = attrs.evolve(at_rest, updates=(*kept, *at_rest.updates))
    # Two speak of a leader's own replicas and minimum, which change here, and one of the ISR before the election: a
    # proposal may bring in a member, complete a reassignment, and so elect it.
    not_meant = (acks_meet_minimum.name, weak_isr.name, clean_election.name)
    return attrs.evolve(
        KIP_966,
        state=Operations,
        initial=start,
        properties=tuple(p for p in KIP_966.properties if p.name not in not_meant),
        assumptions=KIP_966.assumptions[:1],
    )


_AS_WELL: Mapping[str, tuple[Action, ...]] = {
    "leader_answers_fetch": (hears_of,),
    "becomes_leader": (learns_replicas, learns_minimum, has_read, has_heard_of_nobody, has_passed_image),
    "becomes_follower": (follows_as_replica, learns_minimum, has_read, has_heard_of_nobody, has_passed_image),
    "leader_learns_isr": (leader_learns_replicas, leader_learns_minimum, leader_has_read, leader_has_passed_image),
    "leader_learns_brokers": (leader_has_passed_image,),
    "broker_learns_minimum": (has_passed_image,),
    "replica_is_deleted": (has_read, has_heard_of_nobody, has_passed_image),
    "broker_crashes": (forgets_replicas, has_read, has_heard_of_nobody, has_passed_image),
    "broker_loses_power": (forgets_replicas, has_read, has_heard_of_nobody, has_passed_image),
    "broker_shuts_down": (forgets_replicas, has_read, has_heard_of_nobody, has_passed_image),
    "broker_restarts": (learns_minimum,),
    "leader_adopts_isr": (is_ahead,),
    "leader_hears_known_version": (counts_news, leader_has_passed_image),
    "leader_loads_snapshot": (leader_has_passed_image,),
    "controller_accepts_alter_partition": (goes_on,),
    "controller_elects_unclean": (elects_replica, elects_as_enabled),
    "controller_sets_minimum": (counts_minimum,),
    "controller_refuses_later_copy": (counts_copy,),
}
"""What an action does to the variables that this state has beyond the others."""


def _as_well(design: Design, *names: str) -> Design:
    """The design where these actions do that, too."""
    for name in names:
        for extra in _AS_WELL[name]:
            design = design.extending(**{name: extra})
    return design


REMOVED_IS_ELECTED = "who is removed stays in the ELR, and is elected from it when it is added again"

KAFKA_4_4 = with_old_metadata(
    _as_well(
        _operations()
        .adding(
            leader_learns_brokers,
            leader_hears_known_version,
            leader_loads_snapshot,
            image_is_delayed,
            controller_refuses_later_copy,
            controller_sets_minimum,
            broker_learns_minimum,
            replica_is_deleted,
            controller_starts_reassignment,
            controller_reassigns_at_once,
            controller_cancels_reassignment,
            controller_accepts_and_completes,
            disk_is_replaced,
            directory_is_removed,
            controller_switches_unclean_election,
            controller_elects_unclean_since_switched,
        )
        .replacing(
            "kafka-4.4",
            "Kafka 4.3 and 4.4 as they are released, with all that was found in them, and what people do to a cluster",
            because="the protocol as it is meant has none of the ways to lose a record that were found in its code.",
            becomes_leader=becomes_leader_keeping_positions,
            hears=hears_what_it_waits_for,
            enough=enough_of_own,
            may_advance=may_advance_of_own,
            enough_on_news=enough_of_news,
            may_advance_on_news=may_advance_of_news,
            takes=takes_from_replica,
            electable=electable_replica,
            awaited=awaited_replica,
            elr_beside=elr_beside_of_minimum,
            caught_up=caught_up_by_fetch,
        ),
        *_AS_WELL,
    )
    .promising(
        members_are_replicas,
        leader_is_replica,
        reassignment_can_complete,
        completion_keeps_minimum,
        reassignment_is_not_held_up,
        empty_is_no_member,
        committed_is_acknowledged,
        stays_eligible,
    )
    .with_defaults(
        replicas=2, min_insync=2, crashes=0, sessions_lost=1, reassignments=2, epochs=2, isr_changes=6, log=2, records=2
    )
    .failing(
        REMOVED_IS_ELECTED,
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        strong_isr,
        maximal_isr_covers,
        members_are_replicas,
        implements_committed_log,
    )
    .failing("a reassignment that replaces another adds and removes the same replica", reassignment_can_complete)
)

MENDS: Mapping[str, Mapping[str, Action | DefinitionFunction]] = {
    KAFKA_RESETS_POSITIONS.name: {"becomes_leader": becomes_leader},
    PROPOSAL_KEPT.name: {
        "leader_hears_known_version": leader_hears_known_version_and_waits_on,
        "leader_loads_snapshot": leader_loads_snapshot_and_waits_on,
    },
    REFUSAL_IN_NEW_VERSION.name: {"controller_refuses_later_copy": controller_refuses_later_copy_in_new_version},
    MINIMUM_IN_NEW_VERSION.name: {
        "controller_sets_minimum": controller_sets_minimum_in_new_version,
        "enough_of_news": enough_of_newest,
    },
    ELR_OF_REPLICAS.name: {"elr_of": elr_within},
    ELR_KEPT_BELOW_MINIMUM.name: {"keeps_elr": keeps_elr_below_minimum},
    "mark-of-all-directories": {"marks_left": marks_of_all},
    "target-written-whole": {"added_by": added_by_target, "removed_by": removed_by_target},
    "completion-at-minimum": {"completes": completes_at_minimum},
}
"""Which parts of `kafka-4.4` become which: by the design that proposes it against one way to lose a record.

The last three have no designs of their own. The last two lose no record: a reassignment that another replaced never
ends, and one that completes leaves too few in sync for writes.
"""


def with_mends(name: str, summary: str, *mends: str) -> Design:
    """kafka-4.4 with some of MENDS, under a name of its own."""
    parts = {slot: part for mend in mends for slot, part in MENDS[mend].items()}
    because = "nothing should be lost any more at the same bounds; what is lost is new."
    design = KAFKA_4_4.replacing(name, summary, because=because, **parts)
    return with_old_metadata(_as_well(design, *(slot for slot in parts if slot in _AS_WELL)))


KAFKA_4_4_MENDED = with_mends("kafka-4.4-mended", "kafka-4.4 with every mend that is proposed here", *MENDS)

DESIGNS = (KAFKA_4_4, KAFKA_4_4_MENDED)
