"""One voter of the metadata quorum: `started`, and `handle(voter, input)`; KRaft as values (KIP-595, KIP-996).

One input is one action of the model `kraft`. The voters are fixed; the log has no snapshots. Time is its driver's: it
says when a timer has run out, and that a request is lost.

Kafka: KafkaRaftClient, QuorumState, and the classes below EpochState. The numbers in brackets are rules of
`kraft_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import attrs
from immutables import Map

from isr_broker.core.effects import Slice
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error, LeaderEpoch, Offset
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
    VoterId,
)
from isr_broker.core.record_batch import batches, stamped
from isr_broker.core.voter_state import (
    AnswerQuorumFetch,
    AppendLeaderChange,
    AppendQuorumLog,
    EndProcess,
    Failure,
    Nominee,
    OpenRequest,
    Part,
    Propose,
    QuorumFollower,
    QuorumLeader,
    QuorumState,
    RequestArrived,
    RequestExpired,
    Resigned,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TruncateQuorumLog,
    Unattached,
    Voter,
    VoterEffect,
    VoterInput,
    VoterStep,
)

FETCH_BYTES: Final = 8 * 1024 * 1024
"""controller.quorum.fetch.max.bytes has this default; at least one batch is sent, however large."""

RequestMaker: TypeAlias = Callable[[Voter], QuorumRequest]


def started(me: VoterId, voters: frozenset[VoterId], quorum: QuorumState, log: LogView) -> VoterStep:
    """A process starts with what is on its disk: who stood for election still stands, who followed still follows.

    (7) Who led its epoch has resigned. Model: voter_starts. QuorumState.initialize.
    """
    voter = Voter(me=me, voters=voters, quorum=quorum, log=log)
    if quorum.leader == me:
        return _resigns(voter)
    if quorum.leader is not None:
        return _follows(voter, quorum.epoch, quorum.leader)
    return _stands(voter, quorum.epoch) if quorum.vote == me else VoterStep(voter)


def handle(voter: Voter, voter_input: VoterInput) -> VoterStep:
    """One input of one voter, which is one action of the protocol or none."""
    match voter_input:
        case Signal.TIMER:
            return _timer(voter)
        case Signal.RESIGN:
            return _resigns(voter) if isinstance(voter.part, QuorumLeader) else VoterStep(voter)
        case Propose(records):
            return _appends(voter, records)
        case RequestArrived():
            return _request(voter, voter_input)
        case ResponseArrived():
            return _response(voter, voter_input)
        case RequestExpired(to):
            lost = voter.requests.get(to)
            return _asks(voter, {to: lost.request}) if lost is not None else VoterStep(voter)


def _timer(voter: Voter) -> VoterStep:
    """The timer of its part has run out. pollUnattached, pollFollowerAsVoter, pollCandidate, pollResigned, pollLeader.

    Model: voter_stands, prospective_gives_up, resigned_stands, leader_resigns.
    """
    match voter.part:
        case Nominee(pre_vote=True):
            return _back(voter, _asks_for_pre_votes)
        case Resigned():
            return _asks_for_pre_votes(_in_epoch(voter, voter.epoch + 1), voter.quorum)
        case QuorumLeader():
            return _resigns(voter)
        case _:
            return _asks_for_pre_votes(voter)


# Transitions (QuorumState)


def _asks(voter: Voter, requests: dict[VoterId, QuorumRequest]) -> VoterStep:
    """The voter has sent these requests, each of which replaces an open one to the same voter."""
    open_requests, effects = voter.requests, list[VoterEffect]()
    for number, (to, request) in enumerate(sorted(requests.items()), voter.request_count + 1):
        open_requests = open_requests.set(to, OpenRequest(number, request))
        effects.append(SendRequest(to=to, number=number, request=request))
    count = voter.request_count + len(requests)
    return VoterStep(attrs.evolve(voter, requests=open_requests, request_count=count), tuple(effects))


def _others(voter: Voter) -> Iterable[VoterId]:
    return voter.voters - {voter.me}


def _enters(
    voter: Voter,
    part: Part,
    make_request: RequestMaker | None = None,
    whom: Iterable[VoterId] = (),
    before: QuorumState | None = None,
    first: tuple[VoterEffect, ...] = (),
) -> VoterStep:
    """(9) The voter plays this part now. It drops its requests, and sends this one to each that is to be asked.

    `before`: its quorum-state as it is on disk, if `voter` has a new one; `first`: what else is for the disk.
    """
    entered = attrs.evolve(voter, part=part, requests=Map())
    step = _asks(entered, {} if make_request is None else {q: make_request(entered) for q in whom})
    saves = () if before is None or before == voter.quorum else (SaveQuorumState(voter.quorum),)
    return VoterStep(step.voter, (*saves, *first, *step.effects))


def _in_epoch(voter: Voter, epoch: LeaderEpoch, vote: VoterId | None = None, leader: VoterId | None = None) -> Voter:
    return attrs.evolve(voter, quorum=QuorumState(epoch=epoch, vote=vote, leader=leader))


def _unattached(voter: Voter, epoch: LeaderEpoch) -> VoterStep:
    """In a later epoch, without a vote and without a leader."""
    return _enters(_in_epoch(voter, epoch), Unattached(), before=voter.quorum)


def _follows(voter: Voter, epoch: LeaderEpoch, leader: VoterId) -> VoterStep:
    """It fetches from the leader. Within an epoch its vote stays."""
    vote = voter.quorum.vote if epoch == voter.epoch else None
    follower = _in_epoch(voter, epoch, vote, leader)
    return _enters(follower, QuorumFollower(), _fetch, (leader,), before=voter.quorum)


def _asks_for_pre_votes(voter: Voter, before: QuorumState | None = None) -> VoterStep:
    """It asks the others whether they would vote for it, and keeps epoch, vote and leader (transitionToProspective)."""
    part = Nominee(pre_vote=True, granting=frozenset({voter.me}))
    return _enters(voter, part, _vote_request, _others(voter), before)


def _stands(voter: Voter, epoch: LeaderEpoch) -> VoterStep:
    """It votes for itself, and asks the others to (transitionToCandidate)."""
    part = Nominee(pre_vote=False, granting=frozenset({voter.me}))
    return _enters(_in_epoch(voter, epoch, vote=voter.me), part, _vote_request, _others(voter), voter.quorum)


def _leads(voter: Voter, granting: frozenset[VoterId]) -> VoterStep:
    """(8) It appends its LeaderChange, and knows no watermark until it has committed that (onBecomeLeader)."""
    end, epoch = voter.log.end, voter.epoch
    leader = attrs.evolve(
        _in_epoch(voter, epoch, leader=voter.me), high_watermark=None, log=_with_epoch(voter.log, epoch, end + 1)
    )
    appends = (AppendLeaderChange(epoch=epoch, offset=end, granting=granting),)
    return _enters(leader, QuorumLeader(), _begin, _others(voter), voter.quorum, appends)


def _resigns(voter: Voter) -> VoterStep:
    """(7) It says so to the others, and stays the leader of its epoch. Model: leader_resigns."""
    resigned = attrs.evolve(_in_epoch(voter, voter.epoch, leader=voter.me), high_watermark=None)
    return _enters(resigned, Resigned(), _end, _others(voter), voter.quorum)


def _back(voter: Voter, alone: Callable[[Voter], VoterStep]) -> VoterStep:
    """It was not encouraged to stand: it follows its leader again, or is `alone` where it knows none."""
    leader = voter.quorum.leader
    return _follows(voter, voter.epoch, leader) if leader is not None else alone(voter)


def _ends(voter: Voter, failure: Failure) -> VoterStep:
    return VoterStep(voter, (EndProcess(failure),))


def _with_epoch(log: LogView, epoch: LeaderEpoch, end: Offset) -> LogView:
    """The log after this leader has appended up to `end`."""
    epochs = log.epochs.cut(log.end)
    if epochs.latest() < epoch:
        epochs = epochs.assign(epoch, log.end)
    return attrs.evolve(log, end=end, flushed=end, epochs=epochs)


# Requests that a voter sends


def _vote_request(voter: Voter) -> VoteRequest:
    assert isinstance(voter.part, Nominee)
    return VoteRequest(
        epoch=voter.epoch,
        nominee=voter.me,
        last_epoch=voter.last_epoch,
        log_end=voter.log.end,
        pre_vote=voter.part.pre_vote,
    )


def _begin(voter: Voter) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(epoch=voter.epoch, leader=voter.me)


def _end(voter: Voter) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(epoch=voter.epoch, leader=voter.me)


def _fetch(voter: Voter) -> QuorumFetchRequest:
    return QuorumFetchRequest(epoch=voter.epoch, replica=voter.me, last_epoch=voter.last_epoch, log_end=voter.log.end)


# A request arrives


def _request(voter: Voter, message: RequestArrived) -> VoterStep:
    match message.request:
        case VoteRequest() as vote:
            return _answers_vote(voter, message, vote)
        case QuorumFetchRequest() as fetch:
            return _answers_fetch(voter, message, fetch)
        case BeginQuorumEpochRequest(epoch=epoch, leader=leader) | EndQuorumEpochRequest(epoch=epoch, leader=leader):
            return _hears_leader(voter, message, epoch, leader)


def _answers(step: VoterStep, message: RequestArrived, response: QuorumResponse) -> VoterStep:
    answer = SendResponse(to=message.sender, number=message.number, response=response)
    return VoterStep(step.voter, (*step.effects, answer))


def up_to_date(voter: Voter, request: VoteRequest) -> bool:
    """(3) The log of the nominee is not behind: the epoch of the last record decides first, then the length."""
    return (voter.last_epoch, voter.log.end) <= (request.last_epoch, request.log_end)


def grants_pre_vote(voter: Voter, request: VoteRequest) -> bool:
    """(6) Neither a leader grants a pre-vote, nor a follower that has fetched from its leader."""
    content = isinstance(voter.part, QuorumLeader) or (
        isinstance(voter.part, QuorumFollower) and voter.part.has_fetched
    )
    return not content and up_to_date(voter, request)


def grants_vote(voter: Voter, request: VoteRequest) -> bool:
    """(2) One vote an epoch, none where a leader of it is known, and none to a log that is behind.

    To whom it voted already, it says so again. QuorumState.unattachedOrProspectiveCanGrantVote.
    """
    if not isinstance(voter.part, Unattached) and not (isinstance(voter.part, Nominee) and voter.part.pre_vote):
        return False
    if voter.quorum.vote is not None or voter.quorum.leader is not None:
        return voter.quorum.vote == request.nominee
    return up_to_date(voter, request)


def _answers_vote(voter: Voter, message: RequestArrived, request: VoteRequest) -> VoterStep:
    """(6) A later epoch is taken over first, of a pre-vote, too. handleVoteRequest.

    Model: voter_answers_pre_vote, voter_answers_vote.
    """
    if request.epoch < voter.epoch:
        error = Error.FENCED_LEADER_EPOCH
        return _answers(
            VoterStep(voter), message, VoteResponse(error=error, epoch=voter.epoch, leader=voter.quorum.leader)
        )
    step = _unattached(voter, request.epoch) if request.epoch > voter.epoch else VoterStep(voter)
    if request.pre_vote:
        vote_granted = grants_pre_vote(step.voter, request)
    else:
        vote_granted = grants_vote(step.voter, request)
        if vote_granted and step.voter.quorum.vote is None:
            step = _votes(step.voter, request.nominee)
    after = step.voter
    return _answers(
        step, message, VoteResponse(epoch=after.epoch, leader=after.quorum.leader, vote_granted=vote_granted)
    )


def _votes(voter: Voter, nominee: VoterId) -> VoterStep:
    """Its vote is on disk before anybody hears of it.

    Who asks for pre-votes itself counts them anew, and asks those again of which it has the answers
    (QuorumState.prospectiveAddVotedState makes another ProspectiveState).
    """
    after_vote = attrs.evolve(voter, quorum=attrs.evolve(voter.quorum, vote=nominee))
    step = VoterStep(after_vote)
    if isinstance(voter.part, Nominee):
        anew = attrs.evolve(after_vote, part=Nominee(pre_vote=True, granting=frozenset({voter.me})))
        step = _asks(anew, {q: _vote_request(anew) for q in _others(anew) if q not in anew.requests})
    return VoterStep(step.voter, (SaveQuorumState(after_vote.quorum), *step.effects))


def _hears_leader(voter: Voter, message: RequestArrived, epoch: LeaderEpoch, leader: VoterId) -> VoterStep:
    """It hears who leads, or who has led. handleBeginQuorumEpochRequest, handleEndQuorumEpochRequest.

    Model: voter_answers_begin, voter_answers_end, voter_fails_at_request.
    """
    leader_here = voter.quorum.leader
    if epoch < voter.epoch:
        error = Error.FENCED_LEADER_EPOCH
        return _answers(
            VoterStep(voter), message, QuorumEpochResponse(error=error, epoch=voter.epoch, leader=leader_here)
        )
    if epoch == voter.epoch and leader_here is not None and leader_here != leader:
        return _ends(voter, Failure.IMPOSSIBLE_LEADER)
    step = VoterStep(voter) if epoch == voter.epoch and leader_here is not None else _follows(voter, epoch, leader)
    return _answers(step, message, QuorumEpochResponse(epoch=epoch, leader=leader))


def continues(voter: Voter, request: QuorumFetchRequest) -> bool:
    """(4) The follower's log, as its fetch describes it, is a prefix of the leader's (validateOffsetAndEpoch)."""
    if request.log_end == 0:
        return True
    ends = voter.log.epochs.end_of(request.last_epoch, voter.log.end)
    return ends.epoch == request.last_epoch and request.log_end <= ends.end


def majority_end(voter: Voter, ends: Map[VoterId, Offset]) -> Offset:
    """The largest end that a majority of the voters has reached, the leader included."""
    log_ends = sorted((voter.log.end if q == voter.me else ends.get(q, 0) for q in voter.voters), reverse=True)
    return log_ends[len(log_ends) // 2]


def may_commit(voter: Voter, up_to: Offset) -> bool:
    """(1) The last record that becomes committed is of the leader's own epoch (maybeUpdateHighWatermark)."""
    return up_to > (voter.high_watermark or 0) and voter.log.epochs.last_before(up_to) == voter.epoch


def _answers_fetch(voter: Voter, message: RequestArrived, fetch: QuorumFetchRequest) -> VoterStep:
    """A fetch that fits the leader's log acknowledges all before its offset. tryCompleteFetchRequest.

    Whoever does not lead that epoch answers with an error. Model: leader_answers_fetch.
    """
    if not isinstance(voter.part, QuorumLeader) or fetch.epoch != voter.epoch:
        return _answers(VoterStep(voter), message, _refused_fetch(voter, fetch))
    if not continues(voter, fetch):
        diverging = voter.log.epochs.end_of(fetch.last_epoch, voter.log.end)
        response = _fetch_response(voter, voter.high_watermark)
        return _answers(VoterStep(voter), message, attrs.evolve(response, diverging=diverging))
    ends = voter.part.ends.set(fetch.replica, fetch.log_end)
    up_to = majority_end(voter, ends)
    watermark = up_to if may_commit(voter, up_to) else voter.high_watermark
    leader = attrs.evolve(voter, part=QuorumLeader(ends=ends), high_watermark=watermark)
    read = Slice(offset=fetch.log_end, up_to=voter.log.end, max_bytes=FETCH_BYTES)
    response = _fetch_response(leader, watermark)
    answer = AnswerQuorumFetch(to=message.sender, number=message.number, response=response, slice=read)
    return VoterStep(leader, (answer,))


def _fetch_response(voter: Voter, watermark: Offset | None) -> QuorumFetchResponse:
    return QuorumFetchResponse(epoch=voter.epoch, leader=voter.quorum.leader, high_watermark=watermark)


def _refused_fetch(voter: Voter, fetch: QuorumFetchRequest) -> QuorumFetchResponse:
    """KafkaRaftClient.validateLeaderOnlyRequest."""
    if fetch.epoch < voter.epoch:
        error = Error.FENCED_LEADER_EPOCH
    elif fetch.epoch > voter.epoch:
        error = Error.UNKNOWN_LEADER_EPOCH
    else:
        error = Error.NOT_LEADER_OR_FOLLOWER
    return attrs.evolve(_fetch_response(voter, None), error=error)


def _appends(voter: Voter, records: bytes) -> VoterStep:
    """A leader appends batches in its epoch; nobody else does. Model: leader_appends. maybeAppendBatches."""
    if not isinstance(voter.part, QuorumLeader):
        return VoterStep(voter)
    appended = stamped(records, voter.log.end, voter.epoch)
    log = _with_epoch(voter.log, voter.epoch, list(batches(appended))[-1].next_offset)
    return VoterStep(attrs.evolve(voter, log=log), (AppendQuorumLog(appended),))


# An answer comes back


def _response(voter: Voter, message: ResponseArrived) -> VoterStep:
    """Answers to requests that were given up change nothing. What an answer says of epoch and leader goes first.

    handleResponse, maybeHandleCommonResponse.
    """
    request, response = voter.requests.get(message.sender), message.response
    if request is None or request.number != message.number:
        return VoterStep(voter)
    if _is_impossible(voter, response):
        return _ends(voter, Failure.IMPOSSIBLE_LEADER)
    is_news = voter.quorum.leader is None and response.leader is not None
    if response.epoch > voter.epoch or (response.epoch == voter.epoch and is_news):
        leader = response.leader
        return _unattached(voter, response.epoch) if leader is None else _follows(voter, response.epoch, leader)
    waiting = attrs.evolve(voter, requests=voter.requests.delete(message.sender))
    match response:
        case VoteResponse(error=Error.NONE, vote_granted=vote_granted):
            return _counts(waiting, message.sender, vote_granted)
        case QuorumFetchResponse():
            return _takes_fetch(waiting, message.sender, response)
        case _:
            return VoterStep(waiting)


def _is_impossible(voter: Voter, response: QuorumResponse) -> bool:
    """It names this voter, which does not lead, or another leader of its epoch than it knows (hasConsistentLeader)."""
    if response.leader is None or response.epoch < voter.epoch:
        return False
    if response.leader == voter.me and not isinstance(voter.part, QuorumLeader):
        return response.epoch > voter.epoch or voter.quorum.leader != voter.me
    return response.epoch == voter.epoch and voter.quorum.leader not in (None, response.leader)


def _counts(voter: Voter, sender: VoterId, vote_granted: bool) -> VoterStep:
    """A nominee counts: with a majority it goes on, and where none is to be had a prospective voter goes back.

    Model: prospective_counts, candidate_counts. maybeTransitionToCandidate, maybeHandleElectionLoss.
    """
    part = voter.part
    assert isinstance(part, Nominee)
    granting, rejecting = part.granting - {sender}, part.rejecting - {sender}
    part = attrs.evolve(
        part,
        granting=granting | {sender} if vote_granted else granting,
        rejecting=rejecting if vote_granted else rejecting | {sender},
    )
    nominee = attrs.evolve(voter, part=part)
    if is_granted(nominee, part):
        return _stands(nominee, voter.epoch + 1) if part.pre_vote else _leads(nominee, part.granting)
    if is_rejected(nominee, part) and part.pre_vote:
        return _back(nominee, lambda alone: _enters(alone, Unattached()))
    return VoterStep(nominee)


def is_granted(voter: Voter, part: Nominee) -> bool:
    """More than half of the voters grant it (EpochElection.isVoteGranted)."""
    return 2 * len(part.granting) > len(voter.voters)


def is_rejected(voter: Voter, part: Nominee) -> bool:
    """No majority is left to be had (EpochElection.isVoteRejected)."""
    return 2 * len(part.rejecting) >= len(voter.voters)


def _takes_fetch(voter: Voter, leader: VoterId, response: QuorumFetchResponse) -> VoterStep:
    """A follower appends or truncates, and fetches again. Model: follower_takes_fetch. handleFetchResponse."""
    effects: tuple[VoterEffect, ...] = ()
    if response.error is Error.NONE and response.epoch == voter.epoch:
        if response.diverging is not None:
            if response.diverging.end < (voter.high_watermark or 0):
                return _ends(voter, Failure.TRUNCATION_BELOW_WATERMARK)
            end = truncation_end(voter, response)
            log, effects = voter.log.truncated(end, voter.log.producers), (TruncateQuorumLog(end),)
            watermark = voter.high_watermark
        else:
            log = voter.log.appended(batches(response.records, check=True), flushed=True)
            effects = (AppendQuorumLog(response.records),) if response.records else ()
            watermark = known_watermark(voter, response, log.end)
        if (watermark or 0) < (voter.high_watermark or 0):
            return _ends(voter, Failure.WATERMARK_BACK)
        part = QuorumFollower(has_fetched=True)
        voter = attrs.evolve(voter, log=log, high_watermark=watermark, part=part)
    step = _asks(voter, {leader: _fetch(voter)})
    return VoterStep(step.voter, (*effects, *step.effects))


def truncation_end(voter: Voter, response: QuorumFetchResponse) -> Offset:
    """(5) Where its log and the leader's part: the smaller of two ends (ReplicatedLog.truncateToEndOffset)."""
    assert response.diverging is not None
    own = voter.log.epochs.end_of(response.diverging.epoch, voter.log.end)
    return min(own.end, response.diverging.end) if own.epoch == response.diverging.epoch else own.end


def known_watermark(voter: Voter, response: QuorumFetchResponse, end: Offset) -> Offset | None:
    """The leader's high watermark, as far as the own log reaches (updateFollowerHighWatermark)."""
    return voter.high_watermark if response.high_watermark is None else min(response.high_watermark, end)
