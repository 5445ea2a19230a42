"""Log directories that fail while their broker goes on (KIP-858): two reports of Kafka 3.7.0, and what mended them.

The broker tells the controller which of its directories has failed, and the controller takes leadership and membership
from the replicas that it knows to be in it. For the one partition of the model that is what it does when it fences the
broker; so here a replica in a failed directory is not alive, and fenced once the controller has heard. Its log is in
the failed directory still, and is back with it: nothing is lost. Left out: more than two directories per broker.
"""

from __future__ import annotations

from isr_lang import Bool, Design, Step, action, always, forall, initial, when
from isr_lang.blank import blank
from isr_protocol.designs.history import KRAFT_3_5
from isr_protocol.designs.wider_state import Directories
from isr_protocol.faults import stops
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    strong_isr,
    weak_isr,
)
from isr_protocol.state import CRASHES, Offset, Replica


@initial
def all_in_reach(new: Directories) -> Step:
    """Every directory works, and every replica is where the controller takes it to be."""
    nobody = blank(new.controller_isr)
    return (new.dark == nobody, new.moving == nobody, new.misplaced == nobody, new.told == nobody)


def directory_of_replica_fails(old: Directories, new: Directories, r: Replica, checkpoint: Offset) -> Step:
    """The directory with the replica's log and its checkpoint fails; the broker goes on without the replica.

    ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure (3.7.0, read).
    """
    return (
        old.crashes < CRASHES,
        *stops(old, new, r),
        checkpoint <= old.high_watermark[r],
        new.high_watermark[r] == checkpoint,
        new.crashes == old.crashes + 1,
        new.dark == old.dark.including(r),
    )


@action
def directory_fails(old: Directories, new: Directories, r: Replica, checkpoint: Offset) -> Step:
    """A directory fails; a replica that was on its way to another is where it was, and the controller is told so.

    ReplicaAlterLogDirsThread.removePartitions sends the first assignment again (3.7.1, read).
    """
    return (*directory_of_replica_fails(old, new, r, checkpoint), new.moving == old.moving.excluding(r))


@action
def directory_fails_untold(old: Directories, new: Directories, r: Replica, checkpoint: Offset) -> Step:
    """A directory fails; of a replica that was on its way to another the controller is told nothing.

    ReplicaAlterLogDirsThread.removePartitions reverts an assignment that is queued, and none that the controller has
    acknowledged (3.7.0, read).
    """
    return (
        *directory_of_replica_fails(old, new, r, checkpoint),
        new.moving == old.moving.excluding(r),
        new.misplaced == when(old.moving.has(r), old.misplaced.including(r), old.misplaced),
    )


@action
def directory_is_repaired(old: Directories, new: Directories, r: Replica) -> Step:
    """The directory is back with all that is in it, and so is the replica once its broker has started again."""
    return (
        old.dark.has(r),
        old.fenced.has(r),
        new.dark == old.dark.excluding(r),
    )


@action
def in_reach(old: Directories, new: Directories, r: Replica) -> Step:
    """Taken where a broker restarts: its directory works."""
    return (~old.dark.has(r),)


@action
def replica_is_recreated(old: Directories, new: Directories, r: Replica) -> Step:
    """The broker makes the replica again in a directory that works, with nothing in it.

    ReplicaManager.getOrCreatePartition compares topic ids, and a partition whose log is gone has none, so it is taken
    for one of another topic (3.7.0, read). That a log is then made elsewhere is from the report: Kafka 3.7.0's
    Partition.createLogInAssignedDirectoryId (read) makes none while the assigned directory is known to be offline.
    The controller's answer is read: handleAssignReplicasToDirs (3.7.0) makes a leader of a member that is online again.
    """
    return (
        old.dark.has(r),
        old.fenced.has(r),
        new.dark == old.dark.excluding(r),
        new.alive == old.alive.including(r),
        new.log[r] == blank(old.log[r]),
        new.high_watermark[r] == 0,
    )


@action
def replica_moves(old: Directories, new: Directories, r: Replica) -> Step:
    """A copy in another directory has caught up, and the controller has acknowledged that the replica is there.

    ReplicaAlterLogDirsThread.maybePromoteFutureReplica: assigned first, promoted after (3.7.0, read).
    """
    return (old.alive.has(r), ~(old.moving | old.misplaced).has(r), new.moving == old.moving.including(r))


@action
def replica_is_promoted(old: Directories, new: Directories, r: Replica) -> Step:
    """The copy takes the place of the log: the replica is where the controller takes it to be."""
    return (old.moving.has(r), old.alive.has(r), new.moving == old.moving.excluding(r))


@action
def known_where_it_is(old: Directories, new: Directories, r: Replica) -> Step:
    """Taken where the controller takes a replica away: it takes it to be in the directory that has failed."""
    return (~old.misplaced.has(r),)


@action
def controller_hears_of_directory(old: Directories, new: Directories, r: Replica) -> Step:
    """The controller hears of a failed directory in which it knows no replica: it changes nothing.

    ReplicationControlManager.handleDirectoriesOffline goes through directoriesToPartitions (3.7.0, read).
    """
    return ((old.dark & old.misplaced).has(r), ~old.told.has(r), new.told == old.told.including(r))


@always
def failed_directory_does_not_lead(s: Directories) -> Bool:
    """Once its broker has told of the failed directory, a replica in it does not lead: the partition would be stuck."""
    return forall((s.controller_leader == r).implies(~s.told.has(r)) for r in Replica.all())


@always
def replicas_are_where_assigned(s: Directories) -> Bool:
    """A replica is in the directory in which the controller takes it to be, or on its way there."""
    return s.misplaced.is_empty()


def _directories() -> Design:
    wider = KRAFT_3_5.in_state(Directories, all_in_reach).extending(broker_restarts=in_reach)
    return wider.promising(failed_directory_does_not_lead, replicas_are_where_assigned).with_defaults(
        replicas=2, epochs=2, isr_changes=5
    )


DIRECTORY_OUT_OF_REACH = (
    _directories()
    .replacing(
        "directory-out-of-reach",
        "kraft-3.5 where a log directory may fail, and a replica in it waits until it is repaired",
        because="the log is in the failed directory, and nowhere else.",
    )
    .adding(directory_fails, directory_is_repaired)
    .with_defaults(sessions_lost=1)
)

KAFKA_16234 = (
    DIRECTORY_OUT_OF_REACH.replacing(
        "kafka-16234",
        "directory-out-of-reach where the broker makes the replica again, empty, in another directory",
        because="the last member of the ISR comes back without its log, and is trusted.",
    )
    .adding(replica_is_recreated)
    .with_defaults(sessions_lost=0)
    .failing(
        "a replica that was made again leads without the records that are in the failed directory",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        strong_isr,
        weak_isr,
    )
)

ASSIGNMENT_REVERTED = (
    DIRECTORY_OUT_OF_REACH.replacing(
        "assignment-reverted",
        "directory-out-of-reach where replicas move between directories, as in Kafka since 3.7.1",
        because="a replica that did not get to the other directory is assigned to the first one again.",
    )
    .extending(
        controller_fences_outsider=known_where_it_is,
        controller_fences_follower=known_where_it_is,
        controller_fences_leader=known_where_it_is,
        controller_fences_last_leader=known_where_it_is,
    )
    .adding(replica_moves, replica_is_promoted, controller_hears_of_directory)
    .with_defaults(sessions_lost=0)
)

KAFKA_16297 = ASSIGNMENT_REVERTED.replacing(
    "kafka-16297",
    "assignment-reverted where the controller goes on to take such a replica to be in the other directory",
    because="it then hears of a failed directory in which it knows no replica, and elects nobody.",
    directory_fails=directory_fails_untold,
).failing(
    "the partition is led by a replica in a failed directory",
    failed_directory_does_not_lead,
    replicas_are_where_assigned,
)

DESIGNS = (KAFKA_16234, DIRECTORY_OUT_OF_REACH, KAFKA_16297, ASSIGNMENT_REVERTED)
