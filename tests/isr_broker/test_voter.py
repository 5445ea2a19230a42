"""The voter's core where small worlds of the model seldom come: logs that part, late answers, and order."""

import attrs
from immutables import Map

from isr_broker.core.log_view import LogView
from isr_broker.core.messages import EpochEnd, Error
from isr_broker.core.quorum_messages import QuorumFetchRequest, QuorumFetchResponse, VoteRequest, VoteResponse
from isr_broker.core.record_batch import batches, new_batch, stamped
from isr_broker.core.voter import handle, started
from isr_broker.core.voter_state import (
    AnswerQuorumFetch,
    EndProcess,
    Failure,
    Nominee,
    OpenRequest,
    Propose,
    QuorumFollower,
    QuorumLeader,
    QuorumState,
    RequestArrived,
    RequestExpired,
    ResponseArrived,
    SaveQuorumState,
    SendRequest,
    SendResponse,
    Signal,
    TruncateQuorumLog,
    Voter,
    VoterEffect,
    fixed_voters,
)

THREE = frozenset({1, 2, 3})


def log_of(*epochs: int) -> LogView:
    """A log whose records were written in these epochs."""
    data = b"".join(stamped(new_batch(b""), offset, epoch) for offset, epoch in enumerate(epochs))
    return LogView().appended(batches(data), flushed=True)


def follower(*epochs: int, watermark: int | None = None) -> Voter:
    """Voter 1, which follows voter 2 in epoch 4 and waits for the answer to its fetch."""
    voter = started(1, None, fixed_voters(THREE), QuorumState(epoch=4, leader=2), log_of(*epochs)).voter
    assert isinstance(voter.part, QuorumFollower)
    return attrs.evolve(voter, high_watermark=watermark)


def leader(*epochs: int) -> Voter:
    """Voter 1, which leads epoch 4, and has this log."""
    quorum = QuorumState(epoch=4, leader=1)
    return Voter(me=1, sets=fixed_voters(THREE), quorum=quorum, log=log_of(*epochs), part=QuorumLeader())


def heard(end: int, catch_up_ends: int) -> QuorumLeader:
    """What a leader knows after voter 2 has fetched here, and has not caught up yet."""
    return QuorumLeader(ends=Map({2: end}), directories=Map({2: None}), catch_up_ends=Map({2: catch_up_ends}))


def after_answer(
    voter: Voter, diverging: EpochEnd | None = None, high_watermark: int | None = None
) -> tuple[VoterEffect, ...]:
    """What a follower asks for when the leader has answered its fetch."""
    response = QuorumFetchResponse(epoch=4, leader=2, diverging=diverging, high_watermark=high_watermark)
    number = voter.requests[2].number
    return handle(voter, ResponseArrived(sender=2, number=number, response=response)).effects


def after_fetch(voter: Voter, last_epoch: int, log_end: int) -> tuple[Voter, QuorumFetchResponse]:
    """A leader after a fetch of voter 2, and what it answers."""
    fetch = QuorumFetchRequest(epoch=4, replica=2, last_epoch=last_epoch, log_end=log_end)
    step = handle(voter, RequestArrived(sender=2, number=7, request=fetch))
    (answer,) = step.effects
    assert isinstance(answer, AnswerQuorumFetch | SendResponse)
    assert isinstance(answer.response, QuorumFetchResponse)
    return step.voter, answer.response


def test_a_follower_cuts_to_the_smaller_of_two_ends() -> None:
    """(5) Its epoch 1 ends before the leader's does, and its epoch 3 the leader does not have."""
    assert after_answer(follower(1, 3), diverging=EpochEnd(1, 2))[0] == TruncateQuorumLog(1)
    assert after_answer(follower(1, 1, 3), diverging=EpochEnd(1, 1))[0] == TruncateQuorumLog(1)
    assert after_answer(follower(1, 1, 3), diverging=EpochEnd(2, 2))[0] == TruncateQuorumLog(2)


def test_a_follower_ends_rather_than_cut_below_its_watermark() -> None:
    expected = (EndProcess(Failure.TRUNCATION_BELOW_WATERMARK),)
    assert after_answer(follower(1, 1, 3, watermark=2), diverging=EpochEnd(1, 1)) == expected
    assert after_answer(follower(1, 1, 3, watermark=1), diverging=EpochEnd(1, 1))[0] == TruncateQuorumLog(1)


def test_a_follower_ends_rather_than_take_a_smaller_watermark() -> None:
    """FollowerState.updateHighWatermark: the update is not monotonic."""
    assert after_answer(follower(1, 1, watermark=2), high_watermark=1) == (EndProcess(Failure.WATERMARK_BACK),)
    assert isinstance(after_answer(follower(1, 1, watermark=1), high_watermark=1)[0], SendRequest)


def test_a_follower_knows_the_watermark_as_far_as_its_log_reaches() -> None:
    voter = follower(1, 1)
    answer = QuorumFetchResponse(epoch=4, leader=2, high_watermark=5, records=stamped(new_batch(b"", 2), 2, 1))
    after = handle(voter, ResponseArrived(sender=2, number=voter.requests[2].number, response=answer)).voter
    assert (after.log.end, after.high_watermark) == (4, 4)


def test_only_a_log_that_the_leader_has_is_acknowledged() -> None:
    """(4) The follower's last epoch, 3, is none of the leader's, and its epoch 1 ends at 2 there."""
    unmoved, answer = after_fetch(leader(1, 1, 4), last_epoch=3, log_end=2)
    assert (unmoved.part, answer.diverging) == (QuorumLeader(), EpochEnd(1, 2))
    _, answer = after_fetch(leader(1, 4), last_epoch=1, log_end=2)
    assert answer.diverging == EpochEnd(1, 1)
    moved, answer = after_fetch(leader(1, 1, 4), last_epoch=1, log_end=2)
    assert (moved.part, answer.diverging) == (heard(2, catch_up_ends=3), None)


def test_a_leader_commits_what_a_majority_has_and_nothing_of_an_earlier_epoch_alone() -> None:
    """(1) Of three voters two are enough."""
    assert after_fetch(leader(1, 1, 4), last_epoch=1, log_end=2)[0].high_watermark is None
    after, answer = after_fetch(leader(1, 1, 4), last_epoch=4, log_end=3)
    assert (after.high_watermark, answer.high_watermark) == (3, 3)


def test_who_does_not_lead_the_epoch_answers_a_fetch_with_what_it_knows() -> None:
    _, answer = after_fetch(attrs.evolve(leader(1), quorum=QuorumState(epoch=5, leader=1)), last_epoch=1, log_end=1)
    assert (answer.error, answer.epoch, answer.leader) == (Error.FENCED_LEADER_EPOCH, 5, 1)
    _, answer = after_fetch(attrs.evolve(leader(1), quorum=QuorumState(epoch=3, leader=1)), last_epoch=1, log_end=1)
    assert answer.error is Error.UNKNOWN_LEADER_EPOCH
    _, answer = after_fetch(follower(1), last_epoch=1, log_end=1)
    assert (answer.error, answer.leader) == (Error.NOT_LEADER_OR_FOLLOWER, 2)


def test_a_vote_is_on_disk_before_anybody_hears_of_it() -> None:
    """(2) So is an epoch, and a leader's record is in its log before it says that it leads."""
    voter = started(1, None, fixed_voters(THREE), QuorumState(), LogView()).voter
    vote = VoteRequest(epoch=3, nominee=2, last_epoch=0, log_end=0, pre_vote=False)
    effects = handle(voter, RequestArrived(sender=2, number=1, request=vote)).effects
    assert effects[-2] == SaveQuorumState(QuorumState(epoch=3, vote=2))
    assert isinstance(effects[-1], SendResponse)
    candidate = started(1, None, fixed_voters(THREE), QuorumState(epoch=3, vote=1), LogView()).voter
    granted = VoteResponse(epoch=3, leader=None, vote_granted=True)
    wins = ResponseArrived(sender=2, number=candidate.requests[2].number, response=granted)
    kinds = [type(effect).__name__ for effect in handle(candidate, wins).effects]
    assert kinds == ["SaveQuorumState", "AppendLeaderChange", "SendRequest", "SendRequest"]


def test_an_answer_to_a_request_that_was_given_up_changes_nothing() -> None:
    voter = handle(started(1, None, fixed_voters(THREE), QuorumState(), LogView()).voter, Signal.TIMER).voter
    opened = voter.requests[2]
    again = handle(voter, RequestExpired(2))
    assert again.voter.requests[2] == OpenRequest(opened.number + 2, opened.request)
    assert again.effects == (SendRequest(to=2, number=opened.number + 2, request=opened.request),)
    granted = VoteResponse(epoch=0, leader=None, vote_granted=True)
    late = ResponseArrived(sender=2, number=opened.number, response=granted)
    assert handle(again.voter, late).voter == again.voter
    counted = handle(again.voter, attrs.evolve(late, number=opened.number + 2)).voter
    assert isinstance(counted.part, Nominee)
    assert not counted.part.pre_vote
    assert handle(counted, RequestExpired(1)).voter == counted


def test_only_a_leader_appends_and_in_its_own_epoch() -> None:
    batch = new_batch(b"record", 3)
    step = handle(leader(1), Propose(batch))
    assert (step.voter.log.end, step.voter.log.last_epoch) == (4, 4)
    assert handle(follower(1), Propose(batch)).effects == ()
    assert handle(follower(1), Signal.RESIGN).effects == ()
