"""What a controller does when it becomes active, and when it is deposed, on the quorum alone: what its records are for.

A controller that finds an empty log when it becomes active writes the bootstrap metadata before anything else. One that
is deposed goes back to its snapshot in memory, which has to be of the last stable offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from controller_protocol.state import has_committed_in_term, is_active
from isr_lang import (
    Bool,
    Choice,
    Design,
    Map,
    Property,
    Set,
    Step,
    action,
    always,
    define,
    exists,
    forall,
    initial,
    sometimes,
    sometimes_step,
    step,
    var,
    when,
)
from isr_lang.blank import blank
from kraft_protocol.abstract_quorum import (
    QUORUM_PROMISES,
    AbstractQuorum,
    Position,
    Term,
    appends,
    commits,
    end,
    follows,
    is_elected,
    last_term,
    later_leader_commits,
)
from kraft_protocol.state import Voter


class Kind(Choice):
    """What a record is: of a leader that begins, of the voters, the bootstrap metadata, or any other metadata."""

    LEADER_CHANGE: ClassVar[Kind]
    VOTERS: ClassVar[Kind]
    BOOTSTRAP: ClassVar[Kind]
    METADATA: ClassVar[Kind]


class Activation(AbstractQuorum):
    """The quorum with what its records are, and what controllers have in memory."""

    kind: Map[Voter, Map[Position, Kind]] = var("what each record of each log is")
    has_replayed: Set[Voter] = var("controllers that have ever replayed metadata (LogReplayTracker of 4.0)")
    stable_end: Map[Voter, Position] = var("the last stable offset of each active controller")
    snapshot_end: Map[Voter, Position] = var("the offset of its snapshot in memory")
    fatal_faults: Set[Voter] = var("controllers that found no snapshot to go back to")


@initial
def no_records(new: Activation) -> Step:
    """Every voter has an empty disk."""
    return (
        new.term == blank(new.term),
        new.support == blank(new.support),
        new.quorum_leaders == blank(new.quorum_leaders),
        new.quorum_log == blank(new.quorum_log),
        new.quorum_end == blank(new.quorum_end),
        new.quorum_committed == blank(new.quorum_committed),
        new.lost_disks == 0,
        new.strangers == blank(new.strangers),
        new.kind == blank(new.kind),
        new.has_replayed == blank(new.has_replayed),
        new.stable_end == blank(new.stable_end),
        new.snapshot_end == blank(new.snapshot_end),
        new.fatal_faults == blank(new.fatal_faults),
    )


# The quorum


def writes(old: Activation, new: Activation, c: Voter, kind: Kind) -> Step:
    """The leader appends a record of this kind."""
    return (*appends(old, new, c), new.kind[c][end(old, c)] == kind)


def reverts(old: Activation, new: Activation, c: Voter) -> Step:
    """If it was active, the controller goes back to the snapshot in memory of its last stable offset.

    QuorumController.renounce, OffsetControlManager.deactivate, SnapshotRegistry.revertToSnapshot.
    """
    lacks_snapshot = is_active(old, c) & (old.snapshot_end[c] != old.stable_end[c])
    return (new.fatal_faults == when(lacks_snapshot, old.fatal_faults.including(c), old.fatal_faults),)


@action
def controller_is_elected(old: Activation, new: Activation, v: Voter, q: Voter, t: Term) -> Step:
    """A controller is elected by a majority that is up to date."""
    return (v != q, t <= old.term[v] + 1, *is_elected(old, new, v, q, t), *reverts(old, new, q))


@action
def leader_begins_term(old: Activation, new: Activation, c: Voter) -> Step:
    """A new leader appends its LeaderChange."""
    return (last_term(old, c) != old.term[c], *writes(old, new, c, Kind.LEADER_CHANGE))


@action
def follower_copies_log(old: Activation, new: Activation, f: Voter, v: Voter) -> Step:
    """A follower has all that the leader has, and has replayed what of it is metadata."""
    log, kinds = old.quorum_log[v], old.kind[v]
    has_metadata = exists((kinds[o] == Kind.BOOTSTRAP) for o in Position.below(log.length()))
    return (
        f != v,
        old.quorum_leaders.has(v),
        old.term[f] <= old.term[v],
        last_term(old, v) == old.term[v],
        (old.quorum_log[f] != log) | (old.term[f] != old.term[v]),
        *follows(old, new, f, old.term[v], log),
        new.kind[f] == kinds,
        new.has_replayed == when(has_metadata, old.has_replayed.including(f), old.has_replayed),
        *reverts(old, new, f),
    )


@define
def is_control(s: Activation, c: Voter, n: Position) -> Bool:
    """The last of the first n records of the log is a control record, which is none of the controller's."""
    kind = s.kind[c][n - 1]
    return (kind == Kind.LEADER_CHANGE) | (kind == Kind.VOTERS)


@define
def moves_stable_end(s: Activation, c: Voter, n: Position) -> Bool:
    """Control records do not move the last stable offset of an active controller, for it has no snapshot of them."""
    return ~is_active(s, c) | ~is_control(s, c, n)


@action
def controller_commits(old: Activation, new: Activation, c: Voter, n: Position) -> Step:
    """A leader commits. It becomes active with the first record of its epoch, with a snapshot in memory of all before.

    QuorumController.claim, OffsetControlManager.activate, handleCommitBatch.
    """
    takes_snapshot = ~is_active(old, c) | ~is_control(old, c, n)
    return (
        *commits(old, new, c, n),
        new.stable_end[c] == when(moves_stable_end(old, c, n), n, old.stable_end[c]),
        new.snapshot_end[c] == when(takes_snapshot, n, old.snapshot_end[c]),
    )


# The controller


@define
def finds_nothing(s: Activation, c: Voter) -> Bool:
    """The controller has replayed no metadata, so that it begins with the bootstrap metadata."""
    return ~exists(s.kind[c][o] == Kind.BOOTSTRAP for o in Position.below(end(s, c)))


@action
def controller_bootstraps(old: Activation, new: Activation, c: Voter) -> Step:
    """An active controller that finds nothing writes the bootstrap metadata (ActivationRecordsGenerator)."""
    return (
        is_active(old, c),
        finds_nothing(old, c),
        *writes(old, new, c, Kind.BOOTSTRAP),
        new.has_replayed == old.has_replayed.including(c),
    )


@action
def controller_writes(old: Activation, new: Activation, c: Voter) -> Step:
    """An active controller writes other metadata."""
    return (is_active(old, c), ~finds_nothing(old, c), *writes(old, new, c, Kind.METADATA))


@action
def leader_changes_voters(old: Activation, new: Activation, c: Voter) -> Step:
    """A leader writes other voters (KIP-853)."""
    return (is_active(old, c), *writes(old, new, c, Kind.VOTERS))


# Promises


@always
def metadata_begin_with_the_bootstrap(s: Activation) -> Bool:
    """In every log the bootstrap metadata stand before all other metadata.

    Without them a cluster has no metadata.version, and features at level 0.
    """
    return forall(
        ((o < end(s, v)) & (s.kind[v][o] == Kind.METADATA)).implies(
            exists((p < o) & (s.kind[v][p] == Kind.BOOTSTRAP) for p in Position.all())
        )
        for v in Voter.all()
        for o in Position.all()
    )


@always
def deposed_find_a_snapshot(s: Activation) -> Bool:
    """A controller that is deposed finds the snapshot in memory of its last stable offset."""
    return s.fatal_faults.is_empty()


@step
def decisions_follow_a_commit(old: Activation, new: Activation) -> Bool:
    """What a controller writes, it writes when a record of its epoch is committed.

    So it hears that it leads after all that was committed before (RaftClient.Listener.handleLeaderChange).
    """
    return forall(
        (
            old.quorum_leaders.has(c)
            & old.quorum_log[c].is_prefix_of(new.quorum_log[c])
            & (end(old, c) < end(new, c))
            & (new.kind[c][end(old, c)] != Kind.LEADER_CHANGE)
        ).implies(has_committed_in_term(old, c))
        for c in Voter.all()
    )


@sometimes
def metadata_are_committed(s: Activation) -> Bool:
    """Other metadata than the bootstrap are committed."""
    return exists(
        s.quorum_leaders.has(v) & (o < s.quorum_end[v]) & (s.kind[v][o] == Kind.METADATA)
        for v in Voter.all()
        for o in Position.all()
    )


ACTIVATION = Design(
    "kraft-activation",
    "Controllers that become active and are deposed, on the quorum alone",
    Activation,
    no_records,
    (
        controller_is_elected,
        leader_begins_term,
        follower_copies_log,
        controller_commits,
        controller_bootstraps,
        controller_writes,
        leader_changes_voters,
    ),
    (
        metadata_begin_with_the_bootstrap,
        deposed_find_a_snapshot,
        decisions_follow_a_commit,
        *QUORUM_PROMISES,
        later_leader_commits,
    ),
    defaults={"voters": 3, "terms": 3, "metadata_log": 4},
)

# Reports


@define
def has_never_replayed(s: Activation, c: Voter) -> Bool:
    """The flag says so, which is never taken back."""
    return ~s.has_replayed.has(c)


FLAG_OUTLIVES = ACTIVATION.replacing(
    "kafka-20839",
    "Controllers whose flag for an empty log outlives that what they wrote is reverted",
    because="LogReplayTracker is no timeline object, and keeps its flag (KAFKA-20839; Kafka 4.0).",
    finds_nothing=has_never_replayed,
).failing("the bootstrap metadata were reverted, and nobody writes them again.", metadata_begin_with_the_bootstrap)


@define
def any_commit_moves_it(s: Activation, c: Voter, n: Position) -> Bool:
    """Control records move the last stable offset, too."""
    return n <= end(s, c)


NO_SNAPSHOT = ACTIVATION.replacing(
    "kafka-17608",
    "Controllers whose last stable offset moves with control records, of which they have no snapshot in memory",
    because="a committed control batch moved it (KAFKA-17608).",
    moves_stable_end=any_commit_moves_it,
).failing("a controller that is deposed after that has nothing to go back to.", deposed_find_a_snapshot)


@define
def is_active_at_once(s: Activation, c: Voter) -> Bool:
    """A leader whose log was empty is active as soon as it has appended its LeaderChange.

    Its listener was at the start of the epoch, for that is offset 0 (ListenerContext.maybeFireLeaderChange).
    """
    was_empty = (end(s, c) > 0) & (s.quorum_log[c][0] == s.term[c])
    return has_committed_in_term(s, c) | (s.quorum_leaders.has(c) & was_empty)


CLAIMS_AT_ONCE = ACTIVATION.replacing(
    "kafka-15345",
    "Controllers that are active as soon as they are elected, where the log is empty",
    because="the listener had to reach the start of the epoch, and not to pass it (KAFKA-15345; before Kafka 3.6).",
    is_active=is_active_at_once,
).failing("the controller decides before anybody has its LeaderChange.", decisions_follow_a_commit)


@sometimes_step
def active_controller_is_deposed(old: Activation, new: Activation) -> Bool:
    """An active controller leads no more."""
    return exists(is_active(old, c) & ~new.quorum_leaders.has(c) for c in Voter.all())


PREMISES: Mapping[str, Property] = {
    metadata_begin_with_the_bootstrap.name: metadata_are_committed,
    deposed_find_a_snapshot.name: active_controller_is_deposed,
    decisions_follow_a_commit.name: metadata_are_committed,
}
"""By the name of the promise: what must happen in some behaviour, or else the promise says nothing."""

DESIGNS = (ACTIVATION, FLAG_OUTLIVES, NO_SNAPSHOT, CLAIMS_AT_ONCE)
