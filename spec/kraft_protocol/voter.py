"""What becomes of one voter: the transitions of QuorumState, as values.

A step of the model is one input of one voter. `VoterState` is all that this voter has after it, so an action says which
one it becomes, and `becomes` says so to the language. What a voter then sends, it sends in the same step, for
KafkaRaftClient is polled until it is at rest.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from isr_lang import Bool, Map, Maybe, Seq, Set, Step, define, when
from isr_lang.blank import blank
from isr_lang.expr import Expr
from kraft_protocol.state import (
    Answer,
    Directory,
    Epoch,
    Offset,
    Request,
    Role,
    State,
    Voter,
    VoterSet,
    electors,
    end_of_voters,
    is_only_voter,
    log_end,
    voter_set,
)

V = TypeVar("V", bound=Expr)


@attrs.frozen
class Requests:
    """The requests of one voter by whom it asks, and the answers to them."""

    kind: Map[Voter, Request]
    answer: Map[Voter, Answer]
    epoch: Map[Voter, Epoch]
    leader: Map[Voter, Maybe[Voter]]
    record: Map[Voter, Maybe[Epoch]]
    voters: Map[Voter, VoterSet]
    log: Map[Voter, Seq[Offset, Epoch]]
    last_epoch: Map[Voter, Epoch]
    end: Map[Voter, Offset]
    watermark: Map[Voter, Maybe[Offset]]


@attrs.frozen
class VoterState:
    """One voter after a step."""

    role: Role
    epoch: Epoch
    vote: Maybe[Voter]
    vote_directory: Directory
    leader: Maybe[Voter]
    log: Seq[Offset, Epoch]
    voters_at: Map[Offset, VoterSet]
    log_start: Offset
    fetching_snapshot: Offset
    high_watermark: Maybe[Offset]
    has_fetched: Bool
    granting: Set[Voter]
    rejecting: Set[Voter]
    follower_end: Map[Voter, Maybe[Offset]]
    follower_directory: Map[Voter, Directory]
    awaited_end: Map[Voter, Maybe[Offset]]
    requests: Requests


def unchanged(old: State, r: Voter) -> VoterState:
    """The voter as it is."""
    requests = Requests(
        old.request[r],
        old.answer[r],
        old.answer_epoch[r],
        old.answer_leader[r],
        old.answer_record[r],
        old.answer_voters[r],
        old.answer_log[r],
        old.answer_last_epoch[r],
        old.answer_end[r],
        old.answer_watermark[r],
    )
    return VoterState(
        old.role[r],
        old.epoch[r],
        old.vote[r],
        old.vote_directory[r],
        old.leader[r],
        old.log[r],
        old.voters_at[r],
        old.log_start[r],
        old.fetching_snapshot[r],
        old.high_watermark[r],
        old.has_fetched.has(r),
        old.granting[r],
        old.rejecting[r],
        old.follower_end[r],
        old.follower_directory[r],
        old.awaited_end[r],
        requests,
    )


# Requests


def others(old: State, r: Voter) -> Set[Voter]:
    """The other voters, as far as r knows."""
    return electors(old, r).excluding(r)


def requests_to(old: State, r: Voter, kind: Request, asked_voters: Set[Voter]) -> Requests:
    """A request of this kind to each of these voters, none to the others, and no answers (resetConnections)."""
    return Requests(
        Map.build(Voter, lambda q: when(asked_voters.has(q), kind, Request.NONE)),
        blank(old.answer[r]),
        blank(old.answer_epoch[r]),
        blank(old.answer_leader[r]),
        blank(old.answer_record[r]),
        blank(old.answer_voters[r]),
        blank(old.answer_log[r]),
        blank(old.answer_last_epoch[r]),
        blank(old.answer_end[r]),
        blank(old.answer_watermark[r]),
    )


def no_requests(old: State, r: Voter) -> Requests:
    return requests_to(old, r, Request.NONE, blank(old.granting[r]))


def next_request(old: State, r: Voter, q: Voter, kind: Request) -> VoterState:
    """The voter has handled the answer of q, and asks it this."""
    n = unchanged(old, r)
    slots = n.requests
    return attrs.evolve(
        n,
        requests=Requests(
            slots.kind.put(q, kind),
            slots.answer.put(q, Answer.NONE),
            slots.epoch.put(q, 0),
            slots.leader.put(q, blank(n.leader)),
            slots.record.put(q, blank(slots.record[q])),
            slots.voters.put(q, blank(slots.voters[q])),
            slots.log.put(q, blank(slots.log[q])),
            slots.last_epoch.put(q, 0),
            slots.end.put(q, 0),
            slots.watermark.put(q, blank(n.high_watermark)),
        ),
    )


# Transitions


def in_role(old: State, r: Voter, role: Role, requests: Requests | None = None) -> VoterState:
    """(9) The voter enters this role. Of its former one nothing stays, and its requests are dropped."""
    return attrs.evolve(
        unchanged(old, r),
        role=role,
        has_fetched=Bool.false,
        granting=blank(old.granting[r]),
        rejecting=blank(old.rejecting[r]),
        follower_end=blank(old.follower_end[r]),
        follower_directory=blank(old.follower_directory[r]),
        awaited_end=blank(old.awaited_end[r]),
        fetching_snapshot=blank(old.fetching_snapshot[r]),
        requests=no_requests(old, r) if requests is None else requests,
    )


def unattached(old: State, r: Voter, epoch: Epoch) -> VoterState:
    """In a later epoch, without a vote and without a leader."""
    return attrs.evolve(
        in_role(old, r, Role.UNATTACHED),
        epoch=epoch,
        vote=blank(old.vote[r]),
        vote_directory=blank(old.vote_directory[r]),
        leader=blank(old.leader[r]),
    )


@define
def vote_of_follower(s: State, r: Voter) -> Maybe[Voter]:
    """Within an epoch the vote of a voter stays when it hears who leads (QuorumState.transitionToFollower)."""
    return s.vote[r]


def follower(old: State, r: Voter, epoch: Epoch, leader: Maybe[Voter]) -> VoterState:
    """It fetches from the leader."""
    fetches = requests_to(old, r, Request.FETCH, Voter.all().where(lambda q: leader == q))
    return attrs.evolve(
        in_role(old, r, Role.FOLLOWER, fetches),
        epoch=epoch,
        leader=leader,
        vote=when(epoch == old.epoch[r], vote_of_follower(old, r), blank(old.vote[r])),
        vote_directory=when(epoch == old.epoch[r], old.vote_directory[r], blank(old.vote_directory[r])),
    )


def prospective(old: State, r: Voter) -> VoterState:
    """It asks the others whether they would vote for it, and keeps epoch, vote and leader."""
    asks = requests_to(old, r, Request.PRE_VOTE, others(old, r))
    return attrs.evolve(in_role(old, r, Role.PROSPECTIVE, asks), granting=Set.of(r))


def candidate(old: State, r: Voter, epoch: Epoch) -> VoterState:
    """It votes for itself, and asks the others to."""
    asks = requests_to(old, r, Request.VOTE, others(old, r))
    return attrs.evolve(
        in_role(old, r, Role.CANDIDATE, asks),
        epoch=epoch,
        vote=Maybe.of(r),
        vote_directory=old.directory[r],
        leader=blank(old.leader[r]),
        granting=Set.of(r),
    )


def new_leader(old: State, r: Voter, epoch: Epoch) -> VoterState:
    """(8) It appends its LeaderChange, and knows no watermark until it has committed that.

    In one batch with that it appends the voter set with which it was formatted, where the log has none yet. An only
    voter has committed them at once. LeaderState.appendStartOfEpochControlRecords, updateLocalState.
    """
    begins = requests_to(old, r, Request.BEGIN, others(old, r))
    end = log_end(old, r)
    with_voters = old.voters_at[r].put(end, voter_set(old, r))
    return attrs.evolve(
        in_role(old, r, Role.LEADER, begins),
        epoch=epoch,
        vote=blank(old.vote[r]),
        vote_directory=blank(old.vote_directory[r]),
        leader=Maybe.of(r),
        high_watermark=when(is_only_voter(old, r), Maybe.of(end + 1), blank(old.high_watermark[r])),
        log=old.log[r].append(epoch),
        voters_at=when(end_of_voters(old, r) == 0, with_voters, old.voters_at[r]),
    )


def resigned(old: State, r: Voter) -> VoterState:
    """(7) It says so to the others, and stays the leader of its epoch: it neither votes in it nor leads in it."""
    ends = requests_to(old, r, Request.END, others(old, r))
    return attrs.evolve(
        in_role(old, r, Role.RESIGNED, ends),
        vote=blank(old.vote[r]),
        vote_directory=blank(old.vote_directory[r]),
        leader=Maybe.of(r),
        high_watermark=blank(old.high_watermark[r]),
    )


def stopped(old: State, r: Voter) -> VoterState:
    """What is on its disk stays."""
    return attrs.evolve(in_role(old, r, Role.UNATTACHED), high_watermark=blank(old.high_watermark[r]))


def cut(voters_at: Map[Offset, VoterSet], end: Offset) -> Map[Offset, VoterSet]:
    """(11) The voter sets of the records before this offset. Whoever truncates others takes them back."""
    return Map.build(Offset, lambda o: when(o < end, voters_at[o], blank(voters_at[o])))


# Cases


def either(condition: Bool, a: V, b: V) -> V:
    return a if a is b else when(condition, a, b)


def choice_of_requests(condition: Bool, a: Requests, b: Requests) -> Requests:
    return Requests(
        either(condition, a.kind, b.kind),
        either(condition, a.answer, b.answer),
        either(condition, a.epoch, b.epoch),
        either(condition, a.leader, b.leader),
        either(condition, a.record, b.record),
        either(condition, a.voters, b.voters),
        either(condition, a.log, b.log),
        either(condition, a.last_epoch, b.last_epoch),
        either(condition, a.end, b.end),
        either(condition, a.watermark, b.watermark),
    )


def choice(condition: Bool, a: VoterState, b: VoterState) -> VoterState:
    """The first where the condition holds, the second elsewhere."""
    return VoterState(
        either(condition, a.role, b.role),
        either(condition, a.epoch, b.epoch),
        either(condition, a.vote, b.vote),
        either(condition, a.vote_directory, b.vote_directory),
        either(condition, a.leader, b.leader),
        either(condition, a.log, b.log),
        either(condition, a.voters_at, b.voters_at),
        either(condition, a.log_start, b.log_start),
        either(condition, a.fetching_snapshot, b.fetching_snapshot),
        either(condition, a.high_watermark, b.high_watermark),
        either(condition, a.has_fetched, b.has_fetched),
        either(condition, a.granting, b.granting),
        either(condition, a.rejecting, b.rejecting),
        either(condition, a.follower_end, b.follower_end),
        either(condition, a.follower_directory, b.follower_directory),
        either(condition, a.awaited_end, b.awaited_end),
        choice_of_requests(condition, a.requests, b.requests),
    )


def first_of(otherwise: VoterState, *cases: tuple[Bool, VoterState]) -> VoterState:
    """The case of the first condition that holds."""
    for condition, case in reversed(cases):
        otherwise = choice(condition, case, otherwise)
    return otherwise


# Steps


def becomes_but_for_requests(old: State, new: State, r: Voter, n: VoterState) -> Step:
    """Everything of `becomes` but the requests, and the answers to them."""
    return (
        new.role[r] == n.role,
        new.epoch[r] == n.epoch,
        new.vote[r] == n.vote,
        new.vote_directory[r] == n.vote_directory,
        new.leader[r] == n.leader,
        new.log[r] == n.log,
        new.voters_at[r] == n.voters_at,
        new.log_start[r] == n.log_start,
        new.fetching_snapshot[r] == n.fetching_snapshot,
        new.high_watermark[r] == n.high_watermark,
        new.has_fetched == when(n.has_fetched, old.has_fetched.including(r), old.has_fetched.excluding(r)),
        new.granting[r] == n.granting,
        new.rejecting[r] == n.rejecting,
        new.follower_end[r] == n.follower_end,
        new.follower_directory[r] == n.follower_directory,
        new.awaited_end[r] == n.awaited_end,
        new.leaders
        == when(n.role == Role.LEADER, old.leaders.put(n.epoch, old.leaders[n.epoch].including(r)), old.leaders),
    )


def becomes(old: State, new: State, r: Voter, n: VoterState) -> Step:
    """The voter is n after the step, and nobody else changes."""
    return (
        *becomes_but_for_requests(old, new, r, n),
        new.request[r] == n.requests.kind,
        new.answer[r] == n.requests.answer,
        new.answer_epoch[r] == n.requests.epoch,
        new.answer_leader[r] == n.requests.leader,
        new.answer_record[r] == n.requests.record,
        new.answer_voters[r] == n.requests.voters,
        new.answer_log[r] == n.requests.log,
        new.answer_last_epoch[r] == n.requests.last_epoch,
        new.answer_end[r] == n.requests.end,
        new.answer_watermark[r] == n.requests.watermark,
    )


def before_and(old: State, voters_at: Map[Offset, VoterSet]) -> Map[Offset, VoterSet]:
    """What was committed before keeps its voter sets. A log that begins later has forgotten some of them."""
    end = old.committed.length()
    return Map.build(Offset, lambda o: when(o < end, old.committed_voters[o], voters_at[o]))


def commits(old: State, new: State, log: Seq[Offset, Epoch], voters_at: Map[Offset, VoterSet], end: Offset) -> Step:
    """The records of this log before this offset are committed, as far as they are not yet."""
    more = end > old.committed.length()
    return (
        new.committed == when(more, log.take(end), old.committed),
        new.committed_voters == when(more, before_and(old, cut(voters_at, end)), old.committed_voters),
    )


def commits_alone(old: State, new: State, r: Voter, n: VoterState) -> Step:
    """An only voter that leads has committed its whole log."""
    alone = is_only_voter(old, r) & (n.role == Role.LEADER)
    return commits(old, new, n.log, n.voters_at, when(alone, n.log.length(), blank(log_end(old, r))))
