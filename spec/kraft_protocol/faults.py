"""Faults: voters crash, lose their disks, fail at what cannot be, and start again."""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Step, action, define, exists
from isr_lang.blank import blank
from kraft_protocol.messages import names_impossible_leader
from kraft_protocol.state import (
    DYNAMIC,
    EPOCHS,
    LOG,
    LOST_DISKS,
    RESTARTS,
    Answer,
    Request,
    State,
    Voter,
    electors,
    is_only_voter,
    log_end,
)
from kraft_protocol.voter import (
    VoterState,
    becomes,
    candidate,
    commits_alone,
    first_of,
    follower,
    new_leader,
    resigned,
    stopped,
    unchanged,
)


@action
def voter_crashes(old: State, new: State, r: Voter) -> Step:
    """A process ends, and its disk stays."""
    return (
        old.alive.has(r),
        old.restarts < RESTARTS,
        new.alive == old.alive.excluding(r),
        new.restarts == old.restarts + 1,
        *becomes(old, new, r, stopped(old, r)),
    )


@action
def voter_loses_disk(old: State, new: State, r: Voter) -> Step:
    """A process ends, and its disk is gone: log and quorum-state. It comes back with an empty one (KAFKA-14077).

    (10) That has a directory id of its own, and is formatted without voters.
    """
    n = attrs.evolve(
        stopped(old, r),
        epoch=blank(old.epoch[r]),
        vote=blank(old.vote[r]),
        leader=blank(old.leader[r]),
        log=blank(old.log[r]),
        vote_directory=blank(old.vote_directory[r]),
        voters_at=blank(old.voters_at[r]),
        log_start=blank(old.log_start[r]),
    )
    return (
        old.alive.has(r),
        old.lost_disks < LOST_DISKS,
        new.alive == old.alive.excluding(r),
        new.lost_disks == old.lost_disks + 1,
        new.directory[r] == old.directory[r] + 1,
        *becomes(old, new, r, n),
    )


@action
def voter_fails_at_answer(old: State, new: State, r: Voter, q: Voter) -> Step:
    """An answer names an impossible leader, and the process of r ends. Its disk stays.

    The IllegalStateException of maybeTransition leaves KafkaRaftClient.poll, and KafkaRaftClientDriver.doWork takes it
    for a fatal fault. Only lost disks make such a leader possible.
    """
    return (
        r != q,
        old.alive.has(r),
        old.answer[r][q] != Answer.NONE,
        names_impossible_leader(old, r, q),
        new.alive == old.alive.excluding(r),
        *becomes(old, new, r, stopped(old, r)),
    )


@action
def voter_fails_at_request(old: State, new: State, r: Voter, leader: Voter) -> Step:
    """A Begin- or EndQuorumEpoch of the own epoch names another leader than the one that r knows: its process ends."""
    begins, ends = old.request[leader][r] == Request.BEGIN, old.request[leader][r] == Request.END
    return (
        r != leader,
        old.alive.has(r),
        begins | ends,
        old.answer[leader][r] == Answer.NONE,
        old.epoch[leader] == old.epoch[r],
        old.leader[r] != NONE,
        old.leader[r] != leader,
        new.alive == old.alive.excluding(r),
        *becomes(old, new, r, stopped(old, r)),
    )


@define
def is_former_leader(s: State, r: Voter) -> Bool:
    """(7) By its quorum-state the voter leads its epoch, so it starts as one that resigned (KAFKA-10527)."""
    return s.leader[r] == r


def starts(old: State, new: State, r: Voter, former_leader: VoterState) -> Step:
    """A process starts with what is on its disk; who led its epoch, as this says."""
    leader, alone = old.leader[r], is_only_voter(old, r)
    is_reachable = ~DYNAMIC | exists(leader == q for q in electors(old, r))
    n = first_of(
        unchanged(old, r),
        (alone, new_leader(old, r, old.epoch[r] + 1)),
        (is_former_leader(old, r), former_leader),
        ((old.vote[r] == r) & (leader == NONE), candidate(old, r, old.epoch[r])),
        ((leader != NONE) & is_reachable, follower(old, r, old.epoch[r], leader)),
    )
    return (
        ~old.alive.has(r),
        ~alone | ((old.epoch[r] < EPOCHS) & (log_end(old, r) < LOG)),
        new.alive == old.alive.including(r),
        *becomes(old, new, r, n),
        *commits_alone(old, new, r, n),
    )


@action
def voter_starts(old: State, new: State, r: Voter) -> Step:
    """A process starts with what is on its disk: who stood for election still stands, who followed still follows.

    Who followed somebody that is not in its voter set does not know where that is, and an only voter leads at once.
    QuorumState.initialize, KafkaRaftClient.initialize.
    """
    return starts(old, new, r, resigned(old, r))
