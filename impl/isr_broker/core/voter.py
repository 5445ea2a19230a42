"""One voter of the metadata quorum: `started`, and `handle(voter, input)`; KRaft as values (KIP-595, KIP-996).

One input is one action of the model `kraft`, or of `kraft-853` where voters change. Time is its driver's: it says when
a timer has run out, and that a request is lost.

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
from isr_broker.core.messages import EpochEnd, Error, LeaderEpoch, Offset
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    DirectoryId,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    SnapshotId,
    VoteRequest,
    VoteResponse,
    VoterId,
    VoterNode,
    VoterSet,
)
from isr_broker.core.record_batch import batches, stamped
from isr_broker.core.voter_state import (
    AddVoter,
    AnswerFetchSnapshot,
    AnswerQuorumFetch,
    AppendLeaderChange,
    AppendQuorumLog,
    AppendVoters,
    ChangeVoters,
    EndProcess,
    Failure,
    InstallSnapshot,
    KeepSnapshot,
    LeaderFound,
    Nominee,
    OpenRequest,
    Part,
    Propose,
    QuorumFollower,
    QuorumLeader,
    QuorumState,
    RefuseChange,
    RemoveVoter,
    RequestArrived,
    RequestExpired,
    Resigned,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TakeSnapshot,
    TruncateQuorumLog,
    Unattached,
    UpdateVoter,
    Voter,
    VoterEffect,
    VoterInput,
    VoterSets,
    VoterStep,
    names,
)

FETCH_BYTES: Final = 8 * 1024 * 1024
"""controller.quorum.fetch.max.bytes has this default; at least one batch is sent, however large."""

RequestMaker: TypeAlias = Callable[[Voter, VoterId], QuorumRequest]


def started(
    me: VoterId,
    directory: DirectoryId | None,
    sets: VoterSets,
    quorum: QuorumState,
    log: LogView,
    snapshot: SnapshotId | None = None,
) -> VoterStep:
    """A process starts with what is on its disk: who stood for election still stands, who followed still follows.

    (7) Who led its epoch has resigned. An only voter leads at once, and who followed somebody that is not among the
    voters does not know where that is. Model: voter_starts. QuorumState.initialize.
    """
    voter = Voter(me=me, directory=directory, sets=sets, quorum=quorum, log=log, snapshot=snapshot)
    if voter.is_alone:
        return _leads_alone(voter, voter.epoch + 1)
    if quorum.leader == me:
        return _resigns(voter)
    if quorum.leader is not None:
        return _follows(voter, quorum.epoch, quorum.leader) if quorum.leader in voter.voters else VoterStep(voter)
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
        case LeaderFound(epoch, leader):
            return _finds(voter, epoch, leader)
        case TakeSnapshot(end):
            return _takes_snapshot(voter, end)
        case AddVoter() | RemoveVoter() | UpdateVoter():
            return _changes(voter, voter_input)


def _timer(voter: Voter) -> VoterStep:
    """The timer of its part has run out. pollUnattached, pollFollowerAsVoter, pollCandidate, pollResigned, pollLeader.

    Model: voter_stands, prospective_gives_up, resigned_stands, leader_resigns.
    """
    match voter.part:
        case Nominee(pre_vote=True):
            return _back(voter, _asks_for_pre_votes)
        case Resigned() if voter.is_alone:
            return _leads_alone(voter, voter.epoch + 2)
        case Resigned() if voter.votes:
            return _asks_for_pre_votes(_in_epoch(voter, voter.epoch + 1), voter.quorum)
        case Resigned():
            return _unattached(voter, voter.epoch + 1)
        case QuorumLeader():
            return _resigns(voter)
        case _ if voter.is_alone:
            return _leads_alone(voter, voter.epoch + 1)
        case _:
            return _asks_for_pre_votes(voter) if voter.votes else VoterStep(voter)


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
    step = _asks(entered, {} if make_request is None else {q: make_request(entered, q) for q in whom})
    saves = () if before is None or before == voter.quorum else (SaveQuorumState(voter.quorum),)
    return VoterStep(step.voter, (*saves, *first, *step.effects))


def _in_epoch(voter: Voter, epoch: LeaderEpoch, leader: VoterId | None = None) -> Voter:
    return attrs.evolve(voter, quorum=QuorumState(epoch=epoch, leader=leader))


def _unattached(voter: Voter, epoch: LeaderEpoch) -> VoterStep:
    """In a later epoch, without a vote and without a leader."""
    return _enters(_in_epoch(voter, epoch), Unattached(), before=voter.quorum)


def _follows(voter: Voter, epoch: LeaderEpoch, leader: VoterId) -> VoterStep:
    """It fetches from the leader. Within an epoch its vote stays."""
    before = voter.quorum if epoch == voter.epoch else QuorumState(epoch=epoch)
    follower = attrs.evolve(voter, quorum=attrs.evolve(before, leader=leader))
    return _enters(
        follower, QuorumFollower(), lambda entered, to: fetch_request(entered), (leader,), before=voter.quorum
    )


def _asks_for_pre_votes(voter: Voter, before: QuorumState | None = None) -> VoterStep:
    """It asks the others whether they would vote for it, and keeps epoch, vote and leader (transitionToProspective)."""
    part = Nominee(pre_vote=True, granting=frozenset({voter.me}))
    return _enters(voter, part, _vote_request, _others(voter), before)


def _stands(voter: Voter, epoch: LeaderEpoch) -> VoterStep:
    """It votes for itself, and asks the others to (transitionToCandidate)."""
    part = Nominee(pre_vote=False, granting=frozenset({voter.me}))
    quorum = QuorumState(epoch=epoch, vote=voter.me, vote_directory=voter.directory)
    return _enters(attrs.evolve(voter, quorum=quorum), part, _vote_request, _others(voter), voter.quorum)


def _leads(voter: Voter, epoch: LeaderEpoch, granting: frozenset[VoterId]) -> VoterStep:
    """(8) It appends its LeaderChange, and knows no watermark until it has committed that (onBecomeLeader).

    The voters with which its disk was formatted come with that, where the log has none. Who is alone has committed
    them at once. appendStartOfEpochControlRecords.
    """
    sets, dynamic = voter.sets, voter.directory is not None
    first_voters = sets.first if dynamic and not sets.records else None
    appends = AppendLeaderChange(
        epoch=epoch, offset=voter.log.end, voters=sets.last, granting=granting, first_voters=first_voters
    )
    leader = attrs.evolve(
        _in_epoch(voter, epoch, leader=voter.me),
        high_watermark=appends.end if voter.is_alone else None,
        log=_with_epoch(voter.log, epoch, appends.end),
        sets=sets if first_voters is None else sets.appended(((appends.end - 1, first_voters),)),
    )
    return _enters(leader, QuorumLeader(), _begin, _others(voter), voter.quorum, (appends,))


def _leads_alone(voter: Voter, epoch: LeaderEpoch) -> VoterStep:
    """An only voter has all votes."""
    return _leads(voter, epoch, frozenset({voter.me}))


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


def _vote_request(voter: Voter, to: VoterId) -> VoteRequest:
    assert isinstance(voter.part, Nominee)
    return VoteRequest(
        epoch=voter.epoch,
        nominee=voter.me,
        last_epoch=voter.last_epoch,
        log_end=voter.log.end,
        pre_vote=voter.part.pre_vote,
        nominee_directory=voter.directory,
        voter_directory=voter.sets.last[to].directory,
    )


def _begin(voter: Voter, to: VoterId) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(epoch=voter.epoch, leader=voter.me)


def _end(voter: Voter, to: VoterId) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(epoch=voter.epoch, leader=voter.me)


def fetch_request(voter: Voter) -> QuorumFetchRequest:
    """What a voter asks of its leader next, and an observer of anybody who may know the leader."""
    return QuorumFetchRequest(
        epoch=voter.epoch,
        replica=voter.me,
        last_epoch=voter.last_epoch,
        log_end=voter.log.end,
        directory=voter.directory,
    )


# A request arrives


def _request(voter: Voter, message: RequestArrived) -> VoterStep:
    match message.request:
        case VoteRequest() as vote:
            return _answers_vote(voter, message, vote)
        case QuorumFetchRequest() as fetch:
            return _answers_fetch(voter, message, fetch)
        case FetchSnapshotRequest() as fetch:
            return _answers_fetch_snapshot(voter, message, fetch)
        case BeginQuorumEpochRequest(epoch=epoch, leader=leader) | EndQuorumEpochRequest(epoch=epoch, leader=leader):
            return _hears_leader(voter, message, epoch, leader)


def _answers(step: VoterStep, message: RequestArrived, response: QuorumResponse) -> VoterStep:
    answer = SendResponse(to=message.sender, number=message.number, response=response)
    return VoterStep(step.voter, (*step.effects, answer))


def up_to_date(voter: Voter, request: VoteRequest) -> bool:
    """(3) The log of the nominee is not behind: the epoch of the last record decides first, then the length."""
    return (voter.last_epoch, voter.log.end) <= (request.last_epoch, request.log_end)


def is_asked(voter: Voter, request: VoteRequest) -> bool:
    """(10) The nominee asks the disk that this voter has, and no former one of its node (isValidVoterKey)."""
    return request.voter_directory == voter.directory


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
        return (voter.quorum.vote, voter.quorum.vote_directory) == (request.nominee, request.nominee_directory)
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
    if not is_asked(voter, request):
        error, state = Error.INVALID_VOTER_KEY, step.voter.quorum
        return _answers(step, message, VoteResponse(error=error, epoch=state.epoch, leader=state.leader))
    if request.pre_vote:
        vote_granted = grants_pre_vote(step.voter, request)
    else:
        vote_granted = grants_vote(step.voter, request)
        if vote_granted and step.voter.quorum.vote is None:
            step = _votes(step.voter, request)
    after = step.voter
    return _answers(
        step, message, VoteResponse(epoch=after.epoch, leader=after.quorum.leader, vote_granted=vote_granted)
    )


def _votes(voter: Voter, request: VoteRequest) -> VoterStep:
    """Its vote is on disk before anybody hears of it.

    Who asks for pre-votes itself counts them anew, and asks those again of which it has the answers
    (QuorumState.prospectiveAddVotedState makes another ProspectiveState).
    """
    quorum = attrs.evolve(voter.quorum, vote=request.nominee, vote_directory=request.nominee_directory)
    after_vote = attrs.evolve(voter, quorum=quorum)
    step = VoterStep(after_vote)
    if isinstance(voter.part, Nominee):
        anew = attrs.evolve(after_vote, part=Nominee(pre_vote=True, granting=frozenset({voter.me})))
        step = _asks(anew, {q: _vote_request(anew, q) for q in _others(anew) if q not in anew.requests})
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
    ends = _end_of(voter, request.last_epoch)
    return ends.epoch == request.last_epoch and request.log_end <= ends.end


def _end_of(voter: Voter, epoch: LeaderEpoch) -> EpochEnd:
    """Where an epoch ends in its log. Before all records is what the snapshot has, and be that none.

    KafkaRaftLog.endOffsetForEpoch. Model: epoch_not_above, end_of_epoch.
    """
    end = voter.log.epochs.end_of(epoch, voter.log.end)
    is_before = all(entry.epoch > epoch for entry in voter.log.epochs.entries)
    return end if voter.snapshot is None or not is_before else EpochEnd(voter.snapshot.epoch, end.end)


def needs_snapshot(voter: Voter, request: QuorumFetchRequest) -> bool:
    """The follower's log ends before the leader's begins, or in another epoch (validateOffsetAndEpoch)."""
    snapshot = voter.snapshot
    if snapshot is None or snapshot.end == 0:
        return False
    is_other = request.log_end == snapshot.end and request.last_epoch != snapshot.epoch
    return request.log_end < snapshot.end or is_other or request.last_epoch < snapshot.epoch


def majority_end(voter: Voter, part: QuorumLeader) -> Offset:
    """The largest end that a majority of the voters has reached, the leader included if it is one (13).

    (10) A fetch of another disk of a voter acknowledges nothing for that.
    """

    def end(q: VoterId, node: VoterNode) -> Offset:
        if q == voter.me:
            return voter.log.end if names(node, voter.directory) else 0
        return part.ends.get(q, 0) if names(node, part.directories.get(q)) else 0

    log_ends = sorted((end(q, node) for q, node in voter.sets.last.items()), reverse=True)
    return log_ends[len(log_ends) // 2]


def may_commit(voter: Voter, up_to: Offset) -> bool:
    """(1) The last record that becomes committed is of the leader's own epoch (maybeUpdateHighWatermark)."""
    return up_to > (voter.high_watermark or 0) and voter.log.epochs.last_before(up_to) == voter.epoch


def _commits(voter: Voter, part: QuorumLeader) -> Voter:
    """The leader with what it knows of the others, and all committed that a majority has by that."""
    up_to = majority_end(voter, part)
    return attrs.evolve(voter, part=part, high_watermark=up_to if may_commit(voter, up_to) else voter.high_watermark)


def is_heard(voter: Voter, fetch: QuorumFetchRequest) -> bool:
    """The leader notes where who fetches is, unless another disk of the same node is a voter."""
    node = voter.sets.last.get(fetch.replica)
    return node is None or names(node, fetch.directory)


def _hears_fetch(voter: Voter, part: QuorumLeader, fetch: QuorumFetchRequest) -> QuorumLeader:
    """Where a follower fetched, and whether it has caught up now or before (ReplicaState.updateFollowerState).

    It has at the leader's end, or at what was that when it fetched last. Model: awaited_end_after_fetch.
    """
    f = fetch.replica
    is_known = f in part.ends and part.directories[f] == fetch.directory
    has_caught_up = fetch.log_end >= voter.log.end or (is_known and fetch.log_end >= part.catch_up_ends.get(f, 0))
    caught_up = part.catch_up_ends.delete(f) if f in part.catch_up_ends else part.catch_up_ends
    return QuorumLeader(
        ends=part.ends.set(f, fetch.log_end),
        directories=part.directories.set(f, fetch.directory),
        catch_up_ends=caught_up if has_caught_up else part.catch_up_ends.set(f, voter.log.end),
    )


def _answers_fetch(voter: Voter, message: RequestArrived, fetch: QuorumFetchRequest) -> VoterStep:
    """A fetch that fits the leader's log acknowledges all before its offset. tryCompleteFetchRequest.

    Whoever does not lead that epoch answers with an error. (13) A leader that is no voter resigns once that is
    committed (RemoveVoterHandler.highWatermarkUpdated). Model: leader_answers_fetch.
    """
    if not isinstance(voter.part, QuorumLeader) or fetch.epoch != voter.epoch:
        return _answers(VoterStep(voter), message, _refused_fetch(voter, fetch))
    if needs_snapshot(voter, fetch):
        response = _fetch_response(voter, voter.high_watermark)
        return _answers(VoterStep(voter), message, attrs.evolve(response, snapshot=voter.snapshot))
    if not continues(voter, fetch):
        diverging = _end_of(voter, fetch.last_epoch)
        response = _fetch_response(voter, voter.high_watermark)
        return _answers(VoterStep(voter), message, attrs.evolve(response, diverging=diverging))
    part = _hears_fetch(voter, voter.part, fetch) if is_heard(voter, fetch) else voter.part
    leader = _commits(voter, part)
    read = Slice(offset=fetch.log_end, up_to=voter.log.end, max_bytes=FETCH_BYTES)
    response = _fetch_response(leader, leader.high_watermark)
    answer = AnswerQuorumFetch(to=message.sender, number=message.number, response=response, slice=read)
    has_committed_more = leader.high_watermark != voter.high_watermark
    if has_committed_more and not leader.votes and leader.sets.end <= (leader.high_watermark or 0):
        step = _resigns(leader)
        return VoterStep(step.voter, (answer, *step.effects))
    return VoterStep(leader, (answer,))


def _fetch_response(voter: Voter, watermark: Offset | None) -> QuorumFetchResponse:
    return QuorumFetchResponse(epoch=voter.epoch, leader=voter.quorum.leader, high_watermark=watermark)


def _refused_fetch(voter: Voter, fetch: QuorumFetchRequest) -> QuorumFetchResponse:
    return attrs.evolve(_fetch_response(voter, None), error=_not_of_leader(voter, fetch.epoch))


def _not_of_leader(voter: Voter, epoch: LeaderEpoch) -> Error:
    """KafkaRaftClient.validateLeaderOnlyRequest."""
    if epoch < voter.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.UNKNOWN_LEADER_EPOCH if epoch > voter.epoch else Error.NOT_LEADER_OR_FOLLOWER


def _appends(voter: Voter, records: bytes) -> VoterStep:
    """A leader appends batches in its epoch; nobody else does. Model: leader_appends. maybeAppendBatches."""
    if not isinstance(voter.part, QuorumLeader):
        return VoterStep(voter)
    appended = stamped(records, voter.log.end, voter.epoch)
    log = _with_epoch(voter.log, voter.epoch, list(batches(appended))[-1].next_offset)
    return VoterStep(_commits(attrs.evolve(voter, log=log), voter.part), (AppendQuorumLog(appended),))


# Snapshots


def _takes_snapshot(voter: Voter, end: Offset) -> VoterStep:
    """Its log begins later, and of the voter sets before only the last is kept. Model: voter_takes_snapshot."""
    if not voter.log.start < end <= (voter.high_watermark or 0):
        return VoterStep(voter)
    snapshot = SnapshotId(max(voter.log.epochs.last_before(end), 0), end)
    sets = voter.sets.from_start(end)
    taken = attrs.evolve(voter, snapshot=snapshot, log=voter.log.started(end), sets=sets)
    return VoterStep(taken, (KeepSnapshot(snapshot, voter.sets.cut(end).last),))


def _answers_fetch_snapshot(voter: Voter, message: RequestArrived, fetch: FetchSnapshotRequest) -> VoterStep:
    """A leader sends the snapshot that was asked for, if it has no later one. Model: leader_answers_fetch_snapshot."""
    response = FetchSnapshotResponse(epoch=voter.epoch, leader=voter.quorum.leader)
    if not isinstance(voter.part, QuorumLeader) or fetch.epoch != voter.epoch:
        error = _not_of_leader(voter, fetch.epoch)
        return _answers(VoterStep(voter), message, attrs.evolve(response, error=error))
    if voter.snapshot != fetch.snapshot:
        error = Error.SNAPSHOT_NOT_FOUND
        return _answers(VoterStep(voter), message, attrs.evolve(response, error=error))
    response = attrs.evolve(response, snapshot=voter.snapshot, voters=voter.sets.cut(fetch.snapshot.end).last)
    return VoterStep(voter, (AnswerFetchSnapshot(to=message.sender, number=message.number, response=response),))


def _installs(voter: Voter, leader: VoterId, response: FetchSnapshotResponse, request: QuorumRequest) -> VoterStep:
    """A follower has the snapshot in place of its log, or hears that it is gone, and fetches on.

    Model: follower_takes_snapshot. handleFetchSnapshotResponse.
    """
    snapshot, effects = response.snapshot, tuple[VoterEffect, ...]()
    is_answer = response.epoch == voter.epoch and response.error in (Error.NONE, Error.SNAPSHOT_NOT_FOUND)
    if not is_answer:
        return _asks(voter, {leader: request})
    if snapshot is not None:
        if (snapshot.epoch, snapshot.end) <= (voter.last_epoch, voter.log.end):
            return _ends(voter, Failure.SNAPSHOT_BEHIND)
        sets = attrs.evolve(voter.sets, records=())
        if voter.directory is not None:
            sets = sets.appended(((snapshot.end - 1, response.voters or VoterSet()),))
        voter = attrs.evolve(
            voter,
            log=LogView(start=snapshot.end, end=snapshot.end, flushed=snapshot.end),
            snapshot=snapshot,
            sets=sets,
            high_watermark=snapshot.end,
        )
        effects = (InstallSnapshot(snapshot, response.contents),)
    voter = attrs.evolve(voter, part=QuorumFollower(has_fetched=True))
    step = _asks(voter, {leader: fetch_request(voter)})
    return VoterStep(step.voter, (*effects, *step.effects))


# Voters change


def _finds(voter: Voter, epoch: LeaderEpoch, leader: VoterId | None) -> VoterStep:
    """An observer hears of a later epoch, or who leads its own. Model: observer_finds_leader."""
    is_first = epoch == voter.epoch and leader is not None and voter.quorum.leader is None
    waits = isinstance(voter.part, Unattached | QuorumFollower)
    if voter.votes or not waits or leader == voter.me or not (epoch > voter.epoch or is_first):
        return VoterStep(voter)
    return _unattached(voter, epoch) if leader is None else _follows(voter, epoch, leader)


def _changes(voter: Voter, change: ChangeVoters) -> VoterStep:
    """(12) A leader appends another voter set, if it may: one change at a time. It counts at once, for itself, too.

    Model: leader_adds_voter, leader_removes_voter, leader_updates_voter.
    """
    if not isinstance(voter.part, QuorumLeader):
        return _refuses(voter, Error.NOT_LEADER_OR_FOLLOWER)
    if voter.directory is None:
        return _refuses(voter, Error.UNSUPPORTED_VERSION)
    if not may_change(voter):
        return _refuses(voter, Error.REQUEST_TIMED_OUT)
    match change:
        case AddVoter(v, node):
            if v in voter.voters:
                return _refuses(voter, Error.DUPLICATE_VOTER)
            if not has_caught_up(voter.part, change):
                return _refuses(voter, Error.REQUEST_TIMED_OUT)
            # The ApiVersions that it has to answer takes the place of what it was asked before.
            requests = voter.requests.delete(v) if v in voter.requests else voter.requests
            return _appends_voters(attrs.evolve(voter, requests=requests), voter.sets.last.set(v, node))
        case RemoveVoter(v, directory):
            if not names(voter.sets.last.get(v), directory):
                return _refuses(voter, Error.VOTER_NOT_FOUND)
            is_last = len(voter.voters) == 1
            return (
                _refuses(voter, Error.INVALID_REQUEST) if is_last else _appends_voters(voter, voter.sets.last.delete(v))
            )
        case UpdateVoter(v, node):
            if v == voter.me or not names(voter.sets.last.get(v), node.directory):
                return _refuses(voter, Error.VOTER_NOT_FOUND)
            return _appends_voters(voter, voter.sets.last.set(v, node))


def _appends_voters(voter: Voter, voters: VoterSet) -> VoterStep:
    assert isinstance(voter.part, QuorumLeader)
    end = voter.log.end
    log, sets = _with_epoch(voter.log, voter.epoch, end + 1), voter.sets.appended(((end, voters),))
    appends = AppendVoters(epoch=voter.epoch, offset=end, voters=voters)
    return VoterStep(_commits(attrs.evolve(voter, log=log, sets=sets), voter.part), (appends,))


def may_change(voter: Voter) -> bool:
    """(12) The leader has committed a record of its epoch, and the last voter set in its log."""
    return voter.high_watermark is not None and voter.sets.end <= voter.high_watermark


def has_caught_up(part: QuorumLeader, change: AddVoter) -> bool:
    """The node has fetched with this disk, and has come to the leader's end once (isReplicaCaughtUp)."""
    is_known = change.voter in part.ends and part.directories[change.voter] == change.node.directory
    return is_known and change.voter not in part.catch_up_ends


def _refuses(voter: Voter, error: Error) -> VoterStep:
    return VoterStep(voter, (RefuseChange(error),))


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
        case VoteResponse():
            return _asks_again(waiting, message.sender, request.request)
        case QuorumFetchResponse():
            return _takes_fetch(waiting, message.sender, response)
        case FetchSnapshotResponse():
            return _installs(waiting, message.sender, response, request.request)
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
        return _stands(nominee, voter.epoch + 1) if part.pre_vote else _leads(nominee, voter.epoch, part.granting)
    if is_rejected(nominee, part) and part.pre_vote:
        return _back(nominee, lambda alone: _enters(alone, Unattached()))
    return VoterStep(nominee)


def _asks_again(voter: Voter, sender: VoterId, request: QuorumRequest) -> VoterStep:
    """(10) Another disk of a voter gives no vote. It is asked again, as long as a majority is to be had without it.

    KafkaRaftClient.maybeSendVoteRequests.
    """
    part = voter.part
    assert isinstance(part, Nominee)
    without = attrs.evolve(part, granting=part.granting - {sender}, rejecting=part.rejecting - {sender})
    nominee = attrs.evolve(voter, part=without)
    return VoterStep(nominee) if is_rejected(voter, part) else _asks(nominee, {sender: request})


def is_granted(voter: Voter, part: Nominee) -> bool:
    """More than half of the voters grant it (EpochElection.isVoteGranted)."""
    return 2 * len(part.granting) > len(voter.voters)


def is_rejected(voter: Voter, part: Nominee) -> bool:
    """No majority is left to be had (EpochElection.isVoteRejected)."""
    return 2 * len(part.rejecting) >= len(voter.voters)


def _takes_fetch(voter: Voter, leader: VoterId, response: QuorumFetchResponse) -> VoterStep:
    """A follower appends or truncates, and fetches again. Model: follower_takes_fetch. handleFetchResponse."""
    effects: tuple[VoterEffect, ...] = ()
    if response.error is Error.NONE and response.epoch == voter.epoch and response.snapshot is not None:
        voter = attrs.evolve(voter, part=QuorumFollower(has_fetched=True, snapshot=response.snapshot))
        request = FetchSnapshotRequest(
            epoch=voter.epoch, replica=voter.me, snapshot=response.snapshot, directory=voter.directory
        )
        return _asks(voter, {leader: request})
    if response.error is Error.NONE and response.epoch == voter.epoch:
        if response.diverging is not None:
            if response.diverging.end < (voter.high_watermark or 0):
                return _ends(voter, Failure.TRUNCATION_BELOW_WATERMARK)
            end = truncation_end(voter, response)
            log, effects = voter.log.truncated(end, voter.log.producers), (TruncateQuorumLog(end),)
            sets = voter.sets.cut(end)
            watermark = voter.high_watermark
        else:
            log = voter.log.appended(batches(response.records, check=True), flushed=True)
            effects = (AppendQuorumLog(response.records),) if response.records else ()
            sets = voter.sets.appended(response.voters)
            watermark = known_watermark(voter, response, log.end)
        if (watermark or 0) < (voter.high_watermark or 0):
            return _ends(voter, Failure.WATERMARK_BACK)
        part = QuorumFollower(has_fetched=True)
        voter = attrs.evolve(voter, log=log, sets=sets, high_watermark=watermark, part=part)
    step = _asks(voter, {leader: fetch_request(voter)})
    return VoterStep(step.voter, (*effects, *step.effects))


def truncation_end(voter: Voter, response: QuorumFetchResponse) -> Offset:
    """(5) Where its log and the leader's part: the smaller of two ends (RaftLog.truncateToEndOffset)."""
    assert response.diverging is not None
    own = _end_of(voter, response.diverging.epoch)
    return min(own.end, response.diverging.end) if own.epoch == response.diverging.epoch else own.end


def known_watermark(voter: Voter, response: QuorumFetchResponse, end: Offset) -> Offset | None:
    """The leader's high watermark, as far as the own log reaches (updateFollowerHighWatermark)."""
    return voter.high_watermark if response.high_watermark is None else min(response.high_watermark, end)
