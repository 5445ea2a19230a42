"""Kafka as it is released, where an empty disk has a directory id of its own.

`kafka-4.4` lets a broker come back with an empty disk under the directory id of the one before. That is so where
somebody puts the old meta.properties back. A disk that kafka-storage.sh formats has another id, and so has a folder
that a broker finds empty beside others. The controller then takes the replica to be in a directory that its broker does
not have. It elects nobody there (LeaderAcceptor.test, ClusterControlManager.hasOnlineDir). The broker tells it of the
directory that it has made its replica in, and that is a new version of the partition
(ReplicaManager.maybeUpdateTopicAssignment, ReplicationControlManager.handleAssignReplicasToDirs, 4.3.1).

`kafka-4.2` has the same, and there such a version empties the ELR (`earlier_releases`).

With `--new-directories off` it is kafka-4.4. It is no design of `insync designs`, so name this file: `--design-file`.
Left out: reassignment, after which the controller takes a broker's only directory for the replica's.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Design, Set, Step, action, always, define, forall, initial, switch, var, when
from isr_lang.blank import blank
from isr_protocol.designs.releases import KAFKA_4_4, KAFKA_4_4_MENDED, Operations
from isr_protocol.membership import metadata_changes
from isr_protocol.state import Replica

NEW_DIRECTORIES = switch("new_directories", "an empty disk has a directory id of its own", default=True)


class WithDirectories(Operations):
    """The state where the controller may not know in which directory a replica is."""

    elsewhere: Set[Replica] = var("replicas that the controller takes to be in a directory that their broker has not")


@initial
def everybody_is_at_home(new: WithDirectories) -> Step:
    """Every replica is where the controller takes it to be."""
    return (new.elsewhere == blank(new.elsewhere),)


@action
def is_in_new_directory(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """Taken where a broker gets an empty disk, or starts without a directory."""
    return (new.elsewhere == when(NEW_DIRECTORIES, old.elsewhere.including(r), old.elsewhere),)


def learns_directory(old: WithDirectories, new: WithDirectories, r: Replica, elr: Set[Replica]) -> Step:
    """A broker that has heard of its replica, and so has made a log, tells in which directory that is."""
    has_log = (old.leader[r] != NONE) | (old.leader_epoch[r] > 0)
    return (
        old.elsewhere.has(r),
        old.alive.has(r),
        has_log,
        *metadata_changes(old, new, old.controller_isr, elr),
        new.elsewhere == old.elsewhere.excluding(r),
    )


@action
def controller_learns_directory(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """A broker that has heard of its replica, and so has made a log, tells in which directory that is."""
    return learns_directory(old, new, r, old.controller_elr)


@define
def available_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """The broker has a session and the directory that the controller takes its replica to be in."""
    return ~(s.fenced | s.shutting_down | s.elsewhere).has(r)


@define
def awaited_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """The partition has no leader, and this replica may lead where it is."""
    eligible = s.controller_isr.has(r) | (s.controller_isr.is_empty() & s.controller_elr.has(r))
    return (s.controller_leader == NONE) & s.replicas.has(r) & eligible & ~s.elsewhere.has(r)


@define
def last_hope_in_directory(s: WithDirectories, r: Replica) -> Bool:
    """ISR and ELR are empty, and this replica led last, and is where the controller takes it to be."""
    nobody = (s.controller_isr | s.controller_elr).is_empty()
    return nobody & (s.last_known_leader == r) & ~s.elsewhere.has(r)


@always
def leader_is_placed(s: WithDirectories) -> Bool:
    """Whoever is elected is where the controller takes it to be, or its broker is down."""
    return forall(((s.controller_leader == r) & s.alive.has(r)).implies(~s.elsewhere.has(r)) for r in Replica.all())


def knowing_directories(design: Design, name: str, summary: str, because: str) -> Design:
    """A design of releases, under a name of its own, where an empty disk may have another directory id."""
    return (
        design.in_state(WithDirectories, everybody_is_at_home)
        .replacing(
            name,
            summary,
            because=because,
            available=available_in_directory,
            awaited_replica=awaited_in_directory,
            last_hope=last_hope_in_directory,
        )
        .extending(disk_is_replaced=is_in_new_directory, directory_is_removed=is_in_new_directory)
        .adding(controller_learns_directory)
        .promising(leader_is_placed)
    )


def with_new_directories(design: Design, name: str, summary: str) -> Design:
    """The same design, with an empty disk by default."""
    because = "a disk that is formatted anew has a directory id that the controller does not know."
    made = knowing_directories(design, name, summary, because)
    return made.with_defaults(reassignments=0, disks_replaced=1, crashes=1)


KAFKA_4_4_NEW_DIRECTORY = with_new_directories(
    KAFKA_4_4, "kafka-4.4-new-directory", "kafka-4.4 where an empty disk has a directory id of its own"
)
KAFKA_4_4_MENDED_NEW_DIRECTORY = with_new_directories(
    KAFKA_4_4_MENDED,
    "kafka-4.4-mended-new-directory",
    "kafka-4.4-mended where an empty disk has a directory id of its own",
)
