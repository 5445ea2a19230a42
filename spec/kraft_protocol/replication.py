"""Replication: a leader appends, followers pull, and what a majority holds of the own epoch is committed.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Map, Maybe, Step, action, count, define, largest, when
from isr_lang.blank import blank
from kraft_protocol.messages import Reply, arrives, comes_back, later_epoch_cases, replies
from kraft_protocol.state import (
    LOG,
    VOTERS,
    WRITES,
    Answer,
    Offset,
    Request,
    Role,
    State,
    Voter,
    end_of_epoch,
    epoch_not_above,
    last_epoch,
    leads,
    log_end,
)
from kraft_protocol.voter import VoterState, becomes, first_of, next_request, unchanged


@action
def leader_appends(old: State, new: State, r: Voter) -> Step:
    """A leader appends a record of a client, and flushes. prepareAppend, maybeAppendBatches."""
    return (
        leads(old, r),
        log_end(old, r) < LOG,
        old.writes < WRITES,
        new.log[r] == old.log[r].append(old.epoch[r]),
        new.writes == old.writes + 1,
    )


# A fetch arrives at the leader


@define
def may_commit(s: State, leader: Voter, up_to: Offset) -> Bool:
    """(1) The last record that becomes committed is of the leader's own epoch (Raft, 5.4.2).

    LeaderState.maybeUpdateHighWatermark: the new watermark is above the start of the epoch.
    """
    return (up_to > 0) & (s.log[leader][up_to - 1] == s.epoch[leader])


@define
def continues(s: State, leader: Voter, f: Voter) -> Bool:
    """(4) The follower's log, as its fetch describes it, is a prefix of the leader's.

    ReplicatedLog.validateOffsetAndEpoch.
    """
    epoch = last_epoch(s, f)
    fits = (epoch_not_above(s, leader, epoch) == epoch) & (log_end(s, f) <= end_of_epoch(s, leader, epoch))
    return (log_end(s, f) == 0) | fits


def majority_end(old: State, leader: Voter, ends: Map[Voter, Maybe[Offset]]) -> Offset:
    """The largest end that a majority has reached, the leader included."""

    def has_majority(o: Offset) -> Bool:
        voters = count(o <= when(q == leader, log_end(old, leader), ends[q].or_else(0)) for q in Voter.all())
        return voters + voters > VOTERS

    return largest((when(has_majority(o), o, 0) for o in Offset.all()), or_else=0)


@action
def leader_answers_fetch(old: State, new: State, r: Voter, f: Voter) -> Step:
    """A fetch arrives: the answer is an error, where to truncate to, or the next record.

    (4) A fetch in the leader's epoch that fits its log acknowledges all before its offset. Whoever does not lead that
    epoch answers with an error, with its own epoch and leader. tryCompleteFetchRequest, LeaderState.updateReplicaState.
    """
    leader_of_epoch = (old.role[r] == Role.LEADER) & (old.epoch[r] == old.epoch[f])
    fits = leader_of_epoch & continues(old, r, f)
    diverges = leader_of_epoch & ~fits
    end, was = log_end(old, f), old.high_watermark[r]
    ends = when(fits, old.follower_end[r].put(f, Maybe.of(end)), old.follower_end[r])
    up_to = majority_end(old, r, ends)
    commits = fits & may_commit(old, r, up_to) & (was.or_else(0) < up_to)
    watermark = when(commits, Maybe.of(up_to), was)
    reply = Reply(
        when(leader_of_epoch, when(fits, Answer.FETCHED, Answer.DIVERGING), Answer.ERROR),
        old.epoch[r],
        old.leader[r],
        when(fits & (end < log_end(old, r)), Maybe.of(old.log[r][end]), blank(old.answer_record[f][r])),
        when(diverges, epoch_not_above(old, r, last_epoch(old, f)), 0),
        when(diverges, end_of_epoch(old, r, last_epoch(old, f)), 0),
        when(leader_of_epoch, watermark, blank(was)),
    )
    n = attrs.evolve(unchanged(old, r), follower_end=ends, high_watermark=watermark)
    return (
        *arrives(old, f, r, Request.FETCH),
        *replies(old, new, r, n, f, reply),
        new.committed == when(commits & (up_to > old.committed.length()), old.log[r].take(up_to), old.committed),
    )


# Its answer comes back


@define
def may_truncate(s: State, r: Voter, end: Offset) -> Bool:
    """(5) A follower that is to truncate below its watermark stops instead (KAFKA-12460). handleFetchResponse."""
    return s.high_watermark[r].or_else(0) <= end


def with_record(old: State, r: Voter, q: Voter) -> VoterState:
    """The follower has appended the record, if there is one, and knows the watermark as far as its log reaches.

    appendAsFollower, updateFollowerHighWatermark.
    """
    record, watermark = old.answer_record[r][q], old.answer_watermark[r][q]
    log = when(record != NONE, old.log[r].append(record.or_else(0)), old.log[r])
    known_end = when(watermark.or_else(0) < log.length(), watermark.or_else(0), log.length())
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH),
        log=log,
        has_fetched=Bool.true,
        high_watermark=when(watermark != NONE, Maybe.of(known_end), old.high_watermark[r]),
    )


def with_shorter_log(old: State, r: Voter, q: Voter) -> VoterState:
    """(5) The follower has truncated to where its log and the leader's part: to the smaller of two ends.

    ReplicatedLog.truncateToEndOffset.
    """
    epoch, end = old.answer_last_epoch[r][q], old.answer_end[r][q]
    own_end = end_of_epoch(old, r, epoch)
    shared = (epoch_not_above(old, r, epoch) == epoch) & (end < own_end)
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH),
        log=old.log[r].take(when(shared, end, own_end)),
        has_fetched=Bool.true,
    )


@action
def follower_takes_fetch(old: State, new: State, r: Voter, q: Voter) -> Step:
    """A follower appends or truncates, and fetches again. handleFetchResponse."""
    kind = old.answer[r][q]
    current = old.answer_epoch[r][q] == old.epoch[r]
    n = first_of(
        next_request(old, r, q, Request.FETCH),
        *later_epoch_cases(old, r, q),
        (current & (kind == Answer.FETCHED), with_record(old, r, q)),
        (current & (kind == Answer.DIVERGING), with_shorter_log(old, r, q)),
    )
    return (
        *comes_back(old, r, q, Request.FETCH),
        (kind != Answer.DIVERGING) | may_truncate(old, r, old.answer_end[r][q]),
        *becomes(old, new, r, n),
    )
