"""Snapshots: a voter takes one, its log begins later, and a follower that lacks what is before fetches the snapshot.

A snapshot has all records before its end, and of the voter sets only the last (KIP-630, KIP-853). The log in the state
has the records, too, so that promises can speak about them. Nobody reads those before `log_start` but a snapshot.
"""

from __future__ import annotations

import attrs

from isr_lang import Bool, Map, Maybe, Step, action, define, largest, when
from isr_lang.blank import blank
from kraft_protocol.messages import Reply, arrives, comes_back, later_epoch_cases, replies
from kraft_protocol.state import (
    SNAPSHOTS,
    Answer,
    Offset,
    Request,
    Role,
    State,
    Voter,
    VoterSet,
    last_epoch,
    log_end,
)
from kraft_protocol.voter import VoterState, becomes, first_of, next_request, unchanged


@define
def last_voters_before(s: State, r: Voter, end: Offset) -> VoterSet:
    """The last voter set in the log of r before this offset (KRaftControlRecordStateMachine.voterSetAtOffset)."""
    none = blank(s.voters_at[r][Offset.of(0)])
    position = largest((when(s.voters_at[r][o] != none, o + 1, blank(o)) for o in Offset.below(end)), or_else=0)
    return when(position == 0, none, s.voters_at[r][position - 1])


def only_last_before(old: State, r: Voter, end: Offset) -> Map[Offset, VoterSet]:
    """The voter sets in the log of r, of those before this offset only the last.

    VoterSetHistory.truncateOldEntries.
    """
    last = last_voters_before(old, r, end)
    at, none = old.voters_at[r], blank(old.voters_at[r][Offset.of(0)])
    return Map.build(Offset, lambda o: when(o + 1 < end, none, when(o + 1 == end, last, at[o])))


@action
def voter_takes_snapshot(old: State, new: State, r: Voter, end: Offset) -> Step:
    """A voter takes a snapshot of what it knows to be committed, and deletes its log before that.

    KafkaRaftClient.createSnapshot, KRaftControlRecordStateMachine.truncateOldEntries.
    """
    return (
        old.alive.has(r),
        old.snapshots < SNAPSHOTS,
        old.log_start[r] < end,
        end <= old.high_watermark[r].or_else(0),
        new.log_start[r] == end,
        new.voters_at[r] == only_last_before(old, r, end),
        new.snapshots == old.snapshots + 1,
    )


@action
def leader_answers_fetch_snapshot(old: State, new: State, r: Voter, f: Voter) -> Step:
    """A leader sends the snapshot whose id the follower has, if it has no later one. handleFetchSnapshotRequest.

    Without it the answer has nothing (SNAPSHOT_NOT_FOUND), and the follower fetches again.
    """
    leader_of_epoch = (old.role[r] == Role.LEADER) & (old.epoch[r] == old.epoch[f])
    end = old.fetching_snapshot[f]
    sends = leader_of_epoch & (old.log_start[r] == end)
    reply = Reply(
        when(leader_of_epoch, Answer.SNAPSHOT, Answer.ERROR),
        old.epoch[r],
        old.leader[r],
        blank(old.answer_record[f][r]),
        when(sends, last_voters_before(old, r, end), blank(old.answer_voters[f][r])),
        0,
        0,
        blank(old.answer_watermark[f][r]),
        when(sends, old.log[r].take(end), blank(old.log[r])),
    )
    return (*arrives(old, f, r, Request.FETCH_SNAPSHOT), *replies(old, new, r, unchanged(old, r), f, reply))


def with_snapshot(old: State, r: Voter, q: Voter) -> VoterState:
    """The follower has the snapshot in place of its log. RaftLog.truncateToLatestSnapshot, maybeLoadSnapshot."""
    log = old.answer_log[r][q]
    end = log.length()
    only = blank(old.voters_at[r]).put(end - 1, old.answer_voters[r][q])
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH),
        log=log,
        voters_at=only,
        log_start=end,
        high_watermark=Maybe.of(end),
        fetching_snapshot=blank(end),
        has_fetched=Bool.true,
    )


@define
def is_ahead(s: State, r: Voter, q: Voter) -> Bool:
    """The snapshot from q ends behind the log of r. Otherwise the follower stops (truncateToLatestSnapshot)."""
    end = s.answer_log[r][q].length()
    epoch = s.answer_log[r][q][end - 1]
    return (last_epoch(s, r) < epoch) | ((last_epoch(s, r) == epoch) & (log_end(s, r) < end))


@action
def follower_takes_snapshot(old: State, new: State, r: Voter, q: Voter) -> Step:
    """A follower has fetched a snapshot, or was told that it is gone, and fetches on. handleFetchSnapshotResponse."""
    has_one = old.answer_log[r][q].length() > 0
    current = (old.answer_epoch[r][q] == old.epoch[r]) & (old.answer[r][q] == Answer.SNAPSHOT)
    again = attrs.evolve(
        next_request(old, r, q, Request.FETCH), fetching_snapshot=blank(old.fetching_snapshot[r]), has_fetched=Bool.true
    )
    n = first_of(
        next_request(old, r, q, Request.FETCH_SNAPSHOT),
        *later_epoch_cases(old, r, q),
        (current & has_one, with_snapshot(old, r, q)),
        (current, again),
    )
    return (
        *comes_back(old, r, q, Request.FETCH_SNAPSHOT),
        ~(current & has_one) | is_ahead(old, r, q),
        *becomes(old, new, r, n),
    )
