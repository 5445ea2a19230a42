"""A follower's core, and the leader epochs by which it finds where its log parts from the leader's."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.brokers import (
    SETTINGS,
    TP,
    answer,
    batch_at,
    fetch,
    follower_of,
    leader_of,
    log,
    metadata,
    produce,
    replica,
    tell,
)

from isr_broker.core import replica as replicas
from isr_broker.core.effects import AdvanceLogStart, AnswerConsume, AnswerFetch, AppendLog, PartitionHalt, Send, Slice
from isr_broker.core.inputs import Consume, LearnMetadata, Tick
from isr_broker.core.log_view import Epochs, LogView
from isr_broker.core.messages import EpochEnd, Error, FetchRequest, FetchResponse
from isr_broker.core.record_batch import new_batch, stamped
from isr_broker.core.replica_state import Replica, Step, following
from isr_broker.designs import ZOOKEEPER

FOLLOWER_READS = attrs.evolve(SETTINGS, insync_follower_reads=True)


def asked(step: Step) -> FetchRequest:
    (message,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(message, FetchRequest)
    return message


def test_a_new_follower_fetches_from_its_log_end_and_names_its_last_epoch() -> None:
    step = tell(replica(2, log(0, 3)), LearnMetadata(metadata=metadata(1, 4)))
    assert step.action == "becomes_follower"
    assert asked(step) == fetch(2, 2, last_epoch=3, epoch=4)


def test_its_log_grows_only_when_the_write_is_reported_and_then_it_asks_on() -> None:
    core, records = follower_of(1), stamped(new_batch(b"x"), 0, 0)
    step = replicas.handle(core, answer(0, records, watermark=1), 0)
    assert (step.core.log, step.core.high_watermark) == (core.log, 0)
    assert [type(e) for e in step.effects] == [AppendLog]
    done = tell(core, answer(0, records, watermark=1))
    assert done.action == "follower_appends"
    assert (done.core.log.end, done.core.high_watermark) == (1, 1)
    assert asked(done) == fetch(2, 1, last_epoch=0)


def test_it_takes_over_even_a_lower_watermark_and_never_one_past_its_log() -> None:
    core = follower_of(1, log(0, 0), watermark=2)
    assert tell(core, answer(2, watermark=1, last_epoch=0)).core.high_watermark == 1
    assert tell(core, answer(2, watermark=9, last_epoch=0)).core.high_watermark == 2


@pytest.mark.parametrize(
    "stale",
    [answer(1), answer(0, epoch=1), answer(0, leader=3), answer(0, last_epoch=0)],
    ids=["offset", "epoch", "leader", "last epoch"],
)
def test_an_answer_to_another_question_is_dropped(stale: FetchResponse) -> None:
    core = follower_of(1)
    assert tell(core, stale) == Step(core)


def test_after_an_error_it_asks_again_later() -> None:
    core = tell(follower_of(1), attrs.evolve(answer(0), error=Error.UNKNOWN_LEADER_EPOCH), 5).core
    assert following(core).fetch is None
    assert replicas.deadline(core) == 5 + SETTINGS.replica_fetch_backoff_ms
    assert tell(core, Tick(), 2_000).action == "follower_sends_fetch"


def test_a_lost_fetch_is_sent_again() -> None:
    core = follower_of(1)
    assert replicas.deadline(core) == SETTINGS.replica_socket_timeout_ms
    assert asked(tell(core, Tick(), 30_000)) == fetch(2, 0)


def test_it_cuts_at_the_lesser_end_of_the_epoch_and_takes_no_watermark_with_it() -> None:
    core = follower_of(1, log(0, 0, 1, 1), epoch=3, watermark=4)
    diverging = attrs.evolve(answer(4, epoch=3, watermark=9, last_epoch=1), diverging=EpochEnd(0, 3))
    step = tell(core, diverging)
    assert step.action == "follower_truncates"
    assert (step.core.log.end, step.core.high_watermark) == (2, 2), "its own epoch 0 ends before the leader's"


def test_a_divergence_that_comes_twice_cuts_once() -> None:
    core = follower_of(1, log(0, 2), epoch=3)
    diverging = attrs.evolve(answer(2, epoch=3, last_epoch=2), diverging=EpochEnd(0, 1))
    core = tell(core, diverging).core
    core = tell(core, answer(1, stamped(new_batch(b"x"), 1, 3), epoch=3, last_epoch=0)).core
    assert core.log.end == 2, "where it was when it was told that it diverged, but with the leader's record"
    assert tell(core, diverging) == Step(core)


@pytest.mark.parametrize("damage", [21, 40, 61], ids=str)
def test_damaged_records_are_not_written(damage: int) -> None:
    records = bytearray(stamped(new_batch(b"x"), 0, 0))
    records[damage] ^= 8
    step = tell(follower_of(1), answer(0, bytes(records)))
    assert step.core.log.end == 0
    assert not step.effects


def sends(step: Step) -> int:
    return sum(isinstance(e, Send) for e in step.effects)


def is_halted(step: Step) -> bool:
    """It says so, asks nobody, and wants no Tick; whatever else comes of this leader epoch changes nothing."""
    told = any(isinstance(e, PartitionHalt) for e in step.effects)
    quiet = not sends(step) and not sends(tell(step.core, Tick(), 10**6))
    return told and quiet and replicas.deadline(step.core) is None


def test_a_follower_that_is_fenced_waits_for_the_next_leader_epoch() -> None:
    """AbstractFetcherThreadTest.testFencedFetch; onPartitionFenced."""
    core = follower_of(1, log(0), epoch=3)
    step = tell(core, attrs.evolve(answer(1, last_epoch=0, epoch=3), error=Error.FENCED_LEADER_EPOCH))
    assert is_halted(step)
    again = tell(step.core, LearnMetadata(metadata=metadata(3, 4)), 5)
    assert asked(again).leader_epoch == 4
    other = tell(core, attrs.evolve(answer(1, last_epoch=0, epoch=3), error=Error.UNKNOWN_LEADER_EPOCH), 7)
    assert replicas.deadline(other.core) == 7 + SETTINGS.replica_fetch_backoff_ms, "its leader is behind it"


@pytest.mark.parametrize(
    "records",
    [
        batch_at(1, epoch=3) + batch_at(1, epoch=3),
        batch_at(2, epoch=3) + batch_at(1, epoch=3),
        batch_at(0, epoch=3),
        batch_at(1, epoch=3) + batch_at(2, epoch=2),
    ],
)
def test_offsets_or_epochs_that_go_back_halt_the_partition(records: bytes) -> None:
    """AbstractFetcherThreadTest.testFetcherThreadHandlingPartitionFailureDuringAppending; no CRC covers the two."""
    core = follower_of(1, log(2), epoch=3)
    step = tell(core, answer(1, records, last_epoch=2, epoch=3))
    assert is_halted(step)
    assert step.core.log == core.log


def test_a_record_whose_leader_epoch_became_larger_is_copied_anew_once_nobody_counts_on_it() -> None:
    """The leader has no record of epoch 2 before one of epoch 1; one bit of a header says so, and no CRC covers it."""
    core = tell(replica(2, log(0, 1, 2, 2)), LearnMetadata(metadata=metadata(1, 3, isr=(1, 3)))).core
    step = tell(core, answer(4, batch_at(4, epoch=1), last_epoch=2, epoch=3))
    assert step.core.log.end == 2
    assert (asked(step).offset, asked(step).last_epoch) == (2, 1)
    assert step.action is None, "the model has no such log"
    step = tell(step.core, answer(2, batch_at(2, epoch=1), last_epoch=1, epoch=3))
    assert (step.core.log.end, step.core.log.last_epoch) == (3, 1)


@pytest.mark.parametrize("elr", [frozenset({2}), frozenset[int]()])
def test_it_goes_offline_first_while_it_is_in_sync_or_may_lead(elr: frozenset[int]) -> None:
    """Cut, it could be elected without committed records."""
    isr = (1, 3) if elr else (1, 2, 3)
    news = attrs.evolve(metadata(1, 3, isr=isr), elr=elr)
    core = tell(replica(2, log(0, 1, 2, 2)), LearnMetadata(metadata=news)).core
    step = tell(core, answer(4, batch_at(4, epoch=1), last_epoch=2, epoch=3))
    assert is_halted(step)
    assert [e.is_damaged for e in step.effects if isinstance(e, PartitionHalt)] == [True]
    assert step.core.log == core.log


def test_only_batches_up_to_the_followers_epoch_are_appended() -> None:
    """AbstractFetcherThreadTest.testReplicateBatchesUpToLeaderEpoch (KAFKA-18723)."""
    core = follower_of(1, epoch=3)
    later = batch_at(2, epoch=4)
    step = tell(core, answer(0, batch_at(0, epoch=2) + batch_at(1, epoch=3) + later, epoch=3, watermark=3))
    assert (step.core.log.end, step.core.high_watermark) == (2, 2)
    assert asked(step).offset == 2
    nothing = tell(step.core, answer(2, later, epoch=3, last_epoch=3), 9)
    assert (nothing.core.log.end, sends(nothing)) == (2, 0)
    assert replicas.deadline(nothing.core) == 9 + SETTINGS.replica_fetch_backoff_ms, "not at once, again and again"


def test_an_empty_log_takes_the_whole_batch_in_which_its_leaders_log_starts() -> None:
    """Partition.appendRecordsToFollowerOrFutureReplica: UnexpectedAppendOffsetException of an empty log."""
    core = follower_of(1, LogView(start=2, end=2), epoch=3, watermark=2)
    step = tell(core, attrs.evolve(answer(2, batch_at(0, epoch=3, count=4), epoch=3, watermark=4), log_start=2))
    assert (step.core.log.end, step.core.high_watermark, step.action) == (4, 4, "follower_appends")
    assert AdvanceLogStart(partition=TP, offset=2) in step.effects
    full = follower_of(1, log(3, 3), epoch=3)
    assert is_halted(tell(full, answer(2, batch_at(0, epoch=3, count=4), epoch=3, last_epoch=3)))


def test_before_kip_101_it_cuts_at_its_own_watermark_before_it_fetches() -> None:
    older = attrs.evolve(SETTINGS, insync_design=ZOOKEEPER)
    core = replica(2, log(0, 0), older, watermark=1)
    step = tell(core, LearnMetadata(metadata=metadata(1, 1)))
    assert step.action == "becomes_follower"
    assert step.core.log.end == 1


def test_it_learns_that_there_is_no_leader_and_asks_nobody() -> None:
    step = tell(follower_of(1), LearnMetadata(metadata=metadata(None, 1)))
    assert not step.effects
    assert replicas.deadline(step.core) is None


# Two logs find where they part, whatever their histories: KIP-101, KIP-279, KIP-595


def records_of(leader: Replica, offset: int, epochs: list[int]) -> bytes:
    return stamped(new_batch(b"x"), offset, epochs[offset]) if offset < leader.log.end else b""


EPOCHS = st.lists(st.integers(0, 5), max_size=6).map(lambda epochs: sorted(epochs))


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs that replication could have made: in each epoch one replica begins with what it has and appends."""
    logs: list[list[int]] = [[]]
    for epoch in range(draw(st.integers(1, 5))):
        copied = draw(st.sampled_from(logs))
        begins = copied[: draw(st.integers(0, len(copied)))]
        logs.append(begins + [epoch] * draw(st.integers(0, 2)))
    follows = draw(st.sampled_from(logs))
    return draw(st.sampled_from(logs)), follows[: draw(st.integers(0, len(follows)))]


@pytest.mark.long
@settings(deadline=None)
@given(two_logs())
def test_a_follower_ends_with_the_leaders_log_whatever_it_had(logs: tuple[list[int], list[int]]) -> None:
    leads, follows = logs
    leader = leader_of(log(*leads), epoch=6)
    follower = follower_of(1, log(*follows), epoch=6)
    for _ in range(30):
        question = following(follower).fetch
        assert question is not None
        (said,) = (e for e in tell(leader, question).effects if isinstance(e, AnswerFetch))
        records = records_of(leader, said.response.offset, leads) if said.records else b""
        follower = tell(follower, attrs.evolve(said.response, records=records)).core
    # Of an epoch that two logs have they have the same records, so the epochs say it all.
    assert follower.log.end == leader.log.end
    assert follower.log.epochs == leader.log.epochs.cut(leader.log.end)


@settings(deadline=None)
@given(EPOCHS, st.integers(0, 7))
def test_the_end_of_an_epoch_is_where_the_next_one_starts(epochs: list[int], asked_for: int) -> None:
    view = log(*epochs)
    found = view.epochs.end_of(asked_for, view.end)
    below = [e for e in epochs if e <= asked_for]
    assert found.end == len(below)
    assert found.epoch == (below[-1] if below else asked_for)


def test_an_epoch_that_was_opened_without_an_append_is_forgotten_by_the_next_record() -> None:
    view = attrs.evolve(log(3), epochs=log(3).epochs.assign(5, 1))
    core = tell(replica(2, view), LearnMetadata(metadata=metadata(1, 6))).core
    question = following(core).fetch
    assert question is not None
    assert question.last_epoch == 3, "the epoch of its last record, not the one it opened"
    core = tell(core, answer(1, stamped(new_batch(b"x"), 1, 3), epoch=6, last_epoch=3)).core
    assert core.log.epochs == log(3, 3).epochs


def test_an_epoch_noted_again_keeps_its_first_start() -> None:
    epochs = Epochs().assign(1, 0).assign(4, 7)
    assert epochs.assign(4, 9) == epochs
    assert epochs.assign(5, 7).entries == Epochs().assign(1, 0).assign(5, 7).entries


@pytest.mark.parametrize(
    ("offset", "error", "up_to"), [(0, Error.NONE, 1), (1, Error.NONE, None), (3, Error.OFFSET_OUT_OF_RANGE, None)]
)
def test_a_follower_serves_consumers_below_its_watermark_if_it_may(
    offset: int, error: Error, up_to: int | None
) -> None:
    core = attrs.evolve(follower_of(1, log(0, 0), watermark=1), settings=FOLLOWER_READS)
    step = tell(core, Consume(request=1, partition=TP, offset=offset))
    (said,) = (e for e in step.effects if isinstance(e, AnswerConsume))
    assert (said.error, said.records.up_to if said.records else None) == (error, up_to)
    assert (step.action == "consumer_reads") is (up_to is not None)
    refused = tell(follower_of(1, log(0)), Consume(request=1, partition=TP, offset=0))
    assert [e.error for e in refused.effects if isinstance(e, AnswerConsume)] == [Error.NOT_LEADER_OR_FOLLOWER]


def test_a_consumer_waits_at_a_follower_for_the_watermark_that_comes_with_a_fetch() -> None:
    core = attrs.evolve(follower_of(1, log(0, 0), watermark=1), settings=FOLLOWER_READS)
    parked = tell(core, Consume(request=1, partition=TP, offset=1, max_wait_ms=500))
    assert not parked.effects
    assert replicas.deadline(parked.core) == 500
    read = tell(parked.core, answer(2, watermark=2, last_epoch=0))
    assert [(e.records, e.high_watermark) for e in read.effects if isinstance(e, AnswerConsume)] == [
        (Slice(offset=1, up_to=2, max_bytes=1_048_576), 2)
    ]
    assert not read.core.consumers
    late = tell(parked.core, Tick(), 500)
    assert [e.records for e in late.effects if isinstance(e, AnswerConsume)] == [None]
    moved = tell(parked.core, LearnMetadata(metadata=metadata(3, 1)))
    assert [e.error for e in moved.effects if isinstance(e, AnswerConsume)] == [Error.NOT_LEADER_OR_FOLLOWER]
    assert not moved.core.consumers


def test_a_replica_that_follows_does_not_append_for_producers() -> None:
    core = follower_of(1)
    assert tell(core, produce()).core == core


def test_what_a_producer_sent_is_known_to_followers_too() -> None:
    core = tell(follower_of(1), answer(0, stamped(new_batch(b"x", producer=(7, 0, 3)), 0, 0))).core
    assert core.log.producers[7].next_sequence == 4
    assert core.log != LogView(end=1)
    assert core.partition == TP
