"""Replication: a leader appends, followers pull, and what a majority holds of the own epoch is committed.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Map, Maybe, Step, action, count, define, largest, when
from isr_lang.blank import blank
from kraft_protocol.messages import Reply, arrives, comes_back, later_epoch_cases, replies
from kraft_protocol.state import (
    DYNAMIC,
    LOG,
    WRITES,
    Answer,
    Directory,
    Offset,
    Request,
    Role,
    State,
    Voter,
    VoterSet,
    end_of_epoch,
    end_of_voters,
    epoch_not_above,
    is_voter,
    last_epoch,
    leads,
    log_end,
    members,
    names,
    voter_set,
)
from kraft_protocol.voter import VoterState, becomes, choice, commits, cut, first_of, next_request, resigned, unchanged

# What is committed


@define
def may_commit(s: State, leader: Voter, up_to: Offset) -> Bool:
    """(1) The last record that becomes committed is of the leader's own epoch (Raft, 5.4.2).

    LeaderState.maybeUpdateHighWatermark: the new watermark is above the start of the epoch.
    """
    return (up_to > 0) & (s.log[leader][up_to - 1] == s.epoch[leader])


@define
def counts_itself(entry: Maybe[Directory], d: Directory) -> Bool:
    """(13) A leader counts its own log only if it is in its voter set (KAFKA-16530)."""
    return names(entry, d)


@attrs.frozen
class Acknowledgements:
    """What a leader knows of the logs of the voters in this set: its own end, and where each of the others fetched."""

    voters: VoterSet
    own_end: Offset
    ends: Map[Voter, Maybe[Offset]]
    directories: Map[Voter, Directory]


def majority_end(old: State, leader: Voter, acks: Acknowledgements) -> Offset:
    """The largest end that a majority of the voters has reached, the leader included if it is one.

    (10) A fetch of another disk of a voter acknowledges nothing for that voter. LeaderState.maybeUpdateHighWatermark.
    """

    def counts(q: Voter) -> Bool:
        entry = acks.voters[q]
        own, of_follower = counts_itself(entry, old.directory[leader]), names(entry, acks.directories[q])
        return ~DYNAMIC | when(q == leader, own, of_follower)

    def has_majority(o: Offset) -> Bool:
        voters = count(counts(q) & (o <= when(q == leader, acks.own_end, acks.ends[q].or_else(0))) for q in Voter.all())
        return voters + voters > members(acks.voters).size()

    return largest((when(has_majority(o), o, 0) for o in Offset.all()), or_else=0)


def appends(old: State, new: State, r: Voter, voters: VoterSet, voters_at: Map[Offset, VoterSet]) -> Step:
    """A leader appends a record, after which it has these voters.

    Who is the only voter has committed the record at once, and a smaller voter set may have committed records before
    it. LeaderState.updateLocalState.
    """
    end, was, log = log_end(old, r) + 1, old.high_watermark[r], old.log[r].append(old.epoch[r])
    up_to = majority_end(old, r, Acknowledgements(voters, end, old.follower_end[r], old.follower_directory[r]))
    commits_more = DYNAMIC & ((up_to == end) | may_commit(old, r, up_to)) & (was.or_else(0) < up_to)
    return (
        leads(old, r),
        log_end(old, r) < LOG,
        new.log[r] == log,
        new.voters_at[r] == voters_at,
        new.high_watermark[r] == when(commits_more, Maybe.of(up_to), was),
        *commits(old, new, log, voters_at, when(commits_more, up_to, blank(up_to))),
    )


@action
def leader_appends(old: State, new: State, r: Voter) -> Step:
    """A leader appends a record of a client, and flushes. prepareAppend, maybeAppendBatches."""
    return (
        old.writes < WRITES,
        *appends(old, new, r, voter_set(old, r), old.voters_at[r]),
        new.writes == old.writes + 1,
    )


# A fetch arrives at the leader


@define
def continues(s: State, leader: Voter, f: Voter) -> Bool:
    """(4) The follower's log, as its fetch describes it, is a prefix of the leader's.

    RaftLog.validateOffsetAndEpoch.
    """
    epoch = last_epoch(s, f)
    fits = (epoch_not_above(s, leader, epoch) == epoch) & (log_end(s, f) <= end_of_epoch(s, leader, epoch))
    return (log_end(s, f) == 0) | fits


def is_heard(old: State, leader: Voter, f: Voter) -> Bool:
    """The leader notes where the follower fetched, unless another disk of the same node is a voter.

    In Kafka that one is noted, too, as an observer (LeaderState.getOrCreateReplicaState). Here it has to fetch again
    when the former disk is no voter any more.
    """
    entry = voter_set(old, leader)[f]
    return ~DYNAMIC | (entry == NONE) | names(entry, old.directory[f])


def awaited_end_after_fetch(old: State, leader: Voter, f: Voter) -> Maybe[Offset]:
    """Where the follower has to fetch next to have caught up; none if it has, now or before.

    It has at the leader's end, or at what was that when it fetched last. LeaderState.ReplicaState.updateFollowerState.
    """
    end, awaited = log_end(old, f), old.awaited_end[leader][f]
    is_known = (old.follower_end[leader][f] != NONE) & (old.follower_directory[leader][f] == old.directory[f])
    caught_up = (log_end(old, leader) <= end) | (is_known & (awaited.or_else(0) <= end))
    return when(caught_up, blank(awaited), Maybe.of(log_end(old, leader)))


@define
def is_removed(s: State, leader: Voter, up_to: Offset) -> Bool:
    """(13) The leader is not in its voter set, and that is committed with the records before this offset."""
    return ~is_voter(s, leader) & (end_of_voters(s, leader) <= up_to)


@define
def needs_snapshot(s: State, leader: Voter, f: Voter) -> Bool:
    """The follower's log is empty, or ends before the leader's begins, so it is to fetch the leader's snapshot.

    RaftLog.validateOffsetAndEpoch, KafkaRaftClient.tryCompleteFetchRequest.
    """
    start, end = s.log_start[leader], log_end(s, f)
    epoch = s.log[leader][start - 1]
    return (start > 0) & ((end < start) | ((end == start) & (last_epoch(s, f) != epoch)) | (last_epoch(s, f) < epoch))


def first_kind(otherwise: Answer, *cases: tuple[Bool, Answer]) -> Answer:
    """The answer of the first condition that holds."""
    for condition, case in reversed(cases):
        otherwise = when(condition, case, otherwise)
    return otherwise


@action
def leader_answers_fetch(old: State, new: State, r: Voter, f: Voter) -> Step:
    """A fetch arrives: the answer is an error, where to truncate to, or the next record.

    (4) A fetch in the leader's epoch that fits its log acknowledges all before its offset. Whoever does not lead that
    epoch answers with an error, with its own epoch and leader. (13) A leader that has committed a voter set without
    itself resigns. tryCompleteFetchRequest, LeaderState.updateReplicaState, RemoveVoterHandler.highWatermarkUpdated.
    """
    leader_of_epoch = (old.role[r] == Role.LEADER) & (old.epoch[r] == old.epoch[f])
    snapshot = leader_of_epoch & needs_snapshot(old, r, f)
    fits = leader_of_epoch & ~snapshot & continues(old, r, f)
    diverges = leader_of_epoch & ~snapshot & ~fits
    start = old.log_start[r]
    end, was = log_end(old, f), old.high_watermark[r]
    heard = fits & is_heard(old, r, f)
    ends = when(heard, old.follower_end[r].put(f, Maybe.of(end)), old.follower_end[r])
    directories = when(heard, old.follower_directory[r].put(f, old.directory[f]), old.follower_directory[r])
    awaited_ends = when(heard, old.awaited_end[r].put(f, awaited_end_after_fetch(old, r, f)), old.awaited_end[r])
    up_to = majority_end(old, r, Acknowledgements(voter_set(old, r), log_end(old, r), ends, directories))
    commits_more = fits & may_commit(old, r, up_to) & (was.or_else(0) < up_to)
    watermark = when(commits_more, Maybe.of(up_to), was)
    sends = fits & (end < log_end(old, r))
    reply = Reply(
        first_kind(Answer.ERROR, (snapshot, Answer.SNAPSHOT_ID), (fits, Answer.FETCHED), (diverges, Answer.DIVERGING)),
        old.epoch[r],
        old.leader[r],
        when(sends, Maybe.of(old.log[r][end]), blank(old.answer_record[f][r])),
        when(sends, old.voters_at[r][end], blank(old.answer_voters[f][r])),
        when(diverges, epoch_not_above(old, r, last_epoch(old, f)), 0),
        when(diverges, end_of_epoch(old, r, last_epoch(old, f)), when(snapshot, start, blank(start))),
        when(leader_of_epoch, watermark, blank(was)),
    )
    n = attrs.evolve(
        unchanged(old, r),
        follower_end=ends,
        follower_directory=directories,
        awaited_end=awaited_ends,
        high_watermark=watermark,
    )
    n = choice(commits_more & is_removed(old, r, up_to), resigned(old, r), n)
    return (
        *arrives(old, f, r, Request.FETCH),
        *replies(old, new, r, n, f, reply),
        *commits(old, new, old.log[r], old.voters_at[r], when(commits_more, up_to, blank(up_to))),
    )


# Its answer comes back


@define
def may_truncate(s: State, r: Voter, end: Offset) -> Bool:
    """(5) A follower that is to truncate below its watermark stops instead (KAFKA-12460). handleFetchResponse."""
    return s.high_watermark[r].or_else(0) <= end


def smaller(a: Offset, b: Offset) -> Offset:
    return when(a < b, a, b)


@define
def watermark_of_answer(s: State, r: Voter, q: Voter, end: Offset) -> Maybe[Offset]:
    """The watermark that a follower knows after an answer of q, as far as its log reaches.

    A leader that knows none says nothing of it. updateFollowerHighWatermark.
    """
    answer = s.answer_watermark[r][q]
    return when(answer != NONE, Maybe.of(smaller(answer.or_else(0), end)), s.high_watermark[r])


def with_record(old: State, r: Voter, q: Voter) -> VoterState:
    """The follower has appended the record, if there is one. appendAsFollower."""
    record = old.answer_record[r][q]
    log = when(record != NONE, old.log[r].append(record.or_else(0)), old.log[r])
    with_voters = old.voters_at[r].put(log_end(old, r), old.answer_voters[r][q])
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH),
        log=log,
        voters_at=when(record != NONE, with_voters, old.voters_at[r]),
        has_fetched=Bool.true,
        high_watermark=watermark_of_answer(old, r, q, log.length()),
    )


def with_shorter_log(old: State, r: Voter, q: Voter) -> VoterState:
    """(5) The follower has truncated to where its log and the leader's part: to the smaller of two ends.

    RaftLog.truncateToEndOffset.
    """
    epoch, end = old.answer_last_epoch[r][q], old.answer_end[r][q]
    own_end = end_of_epoch(old, r, epoch)
    shared = (epoch_not_above(old, r, epoch) == epoch) & (end < own_end)
    new_end = when(shared, end, own_end)
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH),
        log=old.log[r].take(new_end),
        voters_at=cut(old.voters_at[r], new_end),
        has_fetched=Bool.true,
    )


def with_snapshot_id(old: State, r: Voter, q: Voter) -> VoterState:
    """The follower fetches that snapshot next (FollowerState.setFetchingSnapshot)."""
    return attrs.evolve(
        next_request(old, r, q, Request.FETCH_SNAPSHOT), fetching_snapshot=old.answer_end[r][q], has_fetched=Bool.true
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
        (current & (kind == Answer.SNAPSHOT_ID), with_snapshot_id(old, r, q)),
    )
    return (
        *comes_back(old, r, q, Request.FETCH),
        (kind != Answer.DIVERGING) | may_truncate(old, r, old.answer_end[r][q]),
        *becomes(old, new, r, n),
    )
