"""Before KIP-595: a follower asks where its last epoch ends before it fetches, as each design of that time did."""

from __future__ import annotations

import attrs
import pytest
from tests.support.brokers import SETTINGS, TP, answer, fetch, leader_of, log, metadata, replica, tell

from isr_broker.core.effects import Send
from isr_broker.core.inputs import LearnMetadata, Tick
from isr_broker.core.leader import is_in_sync
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    UNDEFINED_EPOCH_END,
    EpochEnd,
    Error,
    FetchRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from isr_broker.core.replica_state import Replica, Step
from isr_broker.designs import KIP_101, KIP_279, KIP_320, KIP_320_FIRST_TRY, KIP_966, Design
from isr_broker.settings import Settings

ASKING = [KIP_101, KIP_279, KIP_320]


def settings(design: Design) -> Settings:
    return attrs.evolve(SETTINGS, insync_design=design)


def follower(design: Design, view: LogView, epoch: int = 2, watermark: int = 0) -> Step:
    """Broker 2 learns that 1 leads."""
    core = replica(2, view, settings(design), watermark)
    return tell(core, LearnMetadata(metadata=metadata(1, epoch)))


def sent(step: Step) -> OffsetForLeaderEpochRequest | FetchRequest:
    (message,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(message, OffsetForLeaderEpochRequest | FetchRequest)
    return message


def question(offset: int, last_epoch: int, epoch: int = 2) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        partition=TP, replica=2, leader_epoch=epoch, offset=offset, last_epoch=last_epoch
    )


def ends(core: Replica, end: EpochEnd, epoch: int = 2, error: Error = Error.NONE) -> OffsetForLeaderEpochResponse:
    """Broker 1's answer to the question that the follower has asked."""
    return OffsetForLeaderEpochResponse(
        partition=TP,
        leader=1,
        leader_epoch=epoch,
        offset=core.log.end,
        last_epoch=core.log.last_epoch,
        error=error,
        ends=end,
    )


def said(core: Replica, asked: OffsetForLeaderEpochRequest) -> tuple[Error, EpochEnd | None, str | None]:
    step = tell(core, asked)
    (message,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(message, OffsetForLeaderEpochResponse)
    return message.error, message.ends, step.action


# A follower


@pytest.mark.parametrize("design", ASKING, ids=lambda d: d.name)
def test_a_new_follower_asks_where_its_last_epoch_ends_unless_its_log_is_empty(design: Design) -> None:
    assert sent(follower(design, log(0, 1))) == question(2, last_epoch=1)
    assert isinstance(sent(follower(design, LogView())), FetchRequest)


def test_since_kip_595_it_fetches_at_once() -> None:
    assert isinstance(sent(follower(KIP_966, log(0, 1))), FetchRequest)
    assert isinstance(sent(follower(KIP_320_FIRST_TRY, log(0, 1))), FetchRequest)


def test_it_asks_again_when_no_answer_comes_or_an_error() -> None:
    core = follower(KIP_320, log(0, 1)).core
    late = tell(core, Tick(), 1_000_000)
    assert (late.action, sent(late)) == ("follower_asks_for_epoch_end", question(2, last_epoch=1))
    refused = tell(core, ends(core, UNDEFINED_EPOCH_END, error=Error.NOT_LEADER_OR_FOLLOWER)).core
    again = tell(refused, Tick(), 1_000_000)
    assert (again.action, sent(again)) == ("follower_asks_for_epoch_end", question(2, last_epoch=1))


@pytest.mark.parametrize("design", ASKING, ids=lambda d: d.name)
def test_it_cuts_where_the_leader_says_and_fetches(design: Design) -> None:
    core = follower(design, log(0, 1, 1)).core
    step = tell(core, ends(core, EpochEnd(1, 2)))
    assert step.action == "follower_truncates"
    assert step.core.log.end == 2
    assert sent(step) == fetch(2, 2, last_epoch=1, epoch=2)


def test_an_epoch_that_it_has_not_makes_it_ask_again_and_only_since_kip_279() -> None:
    """The leader has nothing of epoch 2, and ends epoch 1 at 4; of the follower's epoch 2 only the start is cut."""
    for design, told, asks in ((KIP_279, EpochEnd(1, 4), True), (KIP_101, EpochEnd(2, 4), False)):
        core = follower(design, log(0, 2, 2), epoch=3).core
        step = tell(core, ends(core, told, epoch=3))
        assert isinstance(sent(step), OffsetForLeaderEpochRequest) == asks
        assert step.core.log.end == (1 if asks else 3)


def test_where_the_leader_knows_no_such_epoch_it_cuts_at_its_own_watermark() -> None:
    core = follower(KIP_101, log(0, 1, 1), watermark=1).core
    step = tell(core, ends(core, UNDEFINED_EPOCH_END))
    assert (step.action, step.core.log.end) == ("follower_truncates_to_watermark", 1)
    assert isinstance(sent(step), FetchRequest)


@pytest.mark.parametrize(("design", "taken"), [(KIP_101, True), (KIP_279, True), (KIP_320, False)])
def test_an_answer_of_another_epoch_is_taken_before_kip_320(design: Design, taken: bool) -> None:
    core = follower(design, log(0, 1, 1)).core
    step = tell(core, ends(core, EpochEnd(1, 2), epoch=1))
    assert (step.core.log.end == 2) == taken


def test_an_answer_to_a_fetch_is_none_to_the_question() -> None:
    core = follower(KIP_279, log(0, 1)).core
    assert tell(core, answer(2, last_epoch=1, epoch=2)) == Step(core)


# A leader


def leader(design: Design, *epochs: int, epoch: int = 4) -> Replica:
    return leader_of(log(*epochs), epoch, settings=settings(design))


def test_a_leader_names_its_largest_epoch_that_is_not_above_since_kip_279() -> None:
    asked = question(9, last_epoch=2, epoch=4)
    assert said(leader(KIP_279, 0, 1, 3), asked) == (Error.NONE, EpochEnd(1, 2), "leader_answers_epoch_end")
    assert said(leader(KIP_101, 0, 1, 3), asked) == (Error.NONE, EpochEnd(2, 2), "leader_answers_epoch_end")


def test_a_leader_that_has_not_noted_its_epoch_knows_no_later_one() -> None:
    asked = question(9, last_epoch=3, epoch=4)
    assert said(leader(KIP_101, 0, 1), asked) == (Error.NONE, UNDEFINED_EPOCH_END, "leader_answers_undefined_epoch")
    assert said(leader(KIP_279, 0, 1), asked) == (Error.NONE, EpochEnd(1, 2), "leader_answers_epoch_end")


def test_a_question_of_another_epoch_is_refused_since_kip_320() -> None:
    asked = question(1, last_epoch=0, epoch=3)
    assert said(leader(KIP_320, 0), asked)[0] is Error.FENCED_LEADER_EPOCH
    assert said(leader(KIP_279, 0), asked)[0] is Error.NONE
    assert said(follower(KIP_279, log(0)).core, asked)[0] is Error.NOT_LEADER_OR_FOLLOWER


def test_a_question_acknowledges_nothing() -> None:
    core = leader(KIP_320, 0)
    assert tell(core, question(1, last_epoch=0, epoch=4)).core == core


@pytest.mark.parametrize(
    ("design", "joins"), [(KIP_279, True), (KIP_320, False), (KIP_320_FIRST_TRY, False)], ids=lambda d: str(d)
)
def test_who_may_join_below_the_start_of_the_epoch(design: Design, joins: bool) -> None:
    """At the watermark 1, in an epoch that starts at 2; the first try at KIP-320 waits for the leader's watermark."""
    core = leader_of(log(0, 0), 4, isr=(1, 2), settings=settings(design), watermark=1)
    core = tell(core, fetch(3, 1, last_epoch=0, epoch=4)).core
    assert is_in_sync(core, 3) == joins
