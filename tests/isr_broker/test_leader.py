"""A leader's core: the rules that re-implementations often miss, each as a claim. docs: isr_broker.core.leader."""

from __future__ import annotations

import attrs
import pytest
from tests.support.brokers import SETTINGS, TP, fetch, leader_of, log, metadata, produce, replica, tell

from isr_broker.core import replica as replicas
from isr_broker.core.effects import AnswerConsume, AnswerFetch, AnswerProduce, AppendLog, AssignEpoch, Send, Slice
from isr_broker.core.inputs import Consume, LearnMetadata, Tick
from isr_broker.core.messages import AlterPartitionRequest, AlterPartitionResponse, EpochEnd, Error
from isr_broker.core.record_batch import batches, stamped
from isr_broker.core.replica_state import Leading, Replica, Step, leading
from isr_broker.core.watermark import maximal_isr
from isr_broker.designs import KRAFT_3_5


def errors(step: Step) -> list[Error]:
    return [e.error for e in step.effects if isinstance(e, AnswerProduce)]


def proposal(step: Step) -> AlterPartitionRequest:
    (request,) = (
        e.message for e in step.effects if isinstance(e, Send) and isinstance(e.message, AlterPartitionRequest)
    )
    return request


def decided(step: Step, error: Error = Error.NONE) -> AlterPartitionResponse:
    return proposal(step).answer(error)


def all_fetch(core: Replica, offset: int, epoch: int = 0) -> Replica:
    for follower in (2, 3):
        core = tell(core, fetch(follower, offset, last_epoch=epoch if offset else -1, epoch=epoch)).core
    return core


def asks_to_add(core: Replica, follower: int, offset: int) -> Step:
    """The follower fetches at the offset, and the leader proposes it."""
    fetched = tell(core, fetch(follower, offset, last_epoch=0 if offset else -1)).core
    return tell(fetched, Tick())


# Appending and committing


def test_the_log_grows_only_when_the_write_is_reported() -> None:
    core = leader_of()
    step = replicas.handle(core, produce(), 0)
    assert step.core.log == core.log
    assert step.action is None
    assert isinstance(step.effects[0], AppendLog)
    assert tell(core, produce()).action == "leader_appends"


def test_a_replica_takes_nothing_else_while_the_disk_is_busy() -> None:
    step = replicas.handle(leader_of(), produce(), 0)
    with pytest.raises(AssertionError, match="while the disk is busy"):
        replicas.handle(step.core, fetch(2, 0), 0)
    assert replicas.deadline(step.core) is None


def test_an_acknowledgement_waits_for_the_smallest_log_end_of_the_isr() -> None:
    core = tell(leader_of(), produce()).core
    one = tell(core, fetch(2, 1, last_epoch=0))
    assert one.core.high_watermark == 0
    assert not errors(one)
    both = tell(one.core, fetch(3, 1, last_epoch=0))
    assert both.core.high_watermark == 1
    assert errors(both) == [Error.NONE]


def test_the_minimum_is_asked_before_the_append() -> None:
    refused = tell(leader_of(isr=(1,)), produce())
    assert errors(refused) == [Error.NOT_ENOUGH_REPLICAS]
    assert refused.core.log.end == 0


def test_with_acks_one_the_minimum_is_not_asked_and_the_append_is_the_acknowledgement() -> None:
    step = tell(leader_of(isr=(1,)), produce(acks=1))
    assert errors(step) == [Error.NONE]
    assert step.core.log.end == 1


def test_the_watermark_is_held_while_the_committed_isr_is_under_the_minimum() -> None:
    assert tell(leader_of(isr=(1,)), produce(acks=1)).core.high_watermark == 0


def test_before_kip_966_it_was_not_held() -> None:
    older = attrs.evolve(SETTINGS, insync_design=KRAFT_3_5)
    assert tell(leader_of(isr=(1,), settings=older), produce(acks=1)).core.high_watermark == 1


def test_the_minimum_is_asked_again_of_the_maximal_isr_when_the_watermark_covers_the_record() -> None:
    # Possible only before KIP-966, where the watermark moves under the minimum.
    core = tell(leader_of(settings=attrs.evolve(SETTINGS, insync_design=KRAFT_3_5)), produce()).core
    step = tell(core, LearnMetadata(metadata=metadata(1, isr=(1,), version=1)))
    assert step.action == "leader_learns_isr"
    assert errors(step) == [Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_a_leader_alone_in_the_isr_commits_its_whole_log_when_it_becomes_leader() -> None:
    assert leader_of(log(0, 0), epoch=1, isr=(1,), minimum=1).high_watermark == 2
    assert leader_of(log(0, 0), epoch=1, isr=(1,), minimum=2).high_watermark == 0


# Leading a new epoch


def test_the_start_of_an_epoch_is_on_disk_before_the_replica_leads() -> None:
    asked = replicas.handle(replica(view=log(0)), LearnMetadata(metadata=metadata(1, 1)), 0)
    assert asked.effects == (AssignEpoch(partition=TP, epoch=1, start=1),)
    assert not isinstance(asked.core.role, Leading)
    led = tell(replica(view=log(0)), LearnMetadata(metadata=metadata(1, 1)))
    assert led.action == "becomes_leader"
    assert led.core.log.epochs.latest() == 1


def test_a_leader_that_is_elected_again_forgets_where_its_followers_were() -> None:
    core = all_fetch(leader_of(), 0)
    again = tell(core, LearnMetadata(metadata=metadata(1, 1, version=1))).core
    assert [f.end for f in leading(again).followers.values()] == [None, None]


def test_members_of_the_isr_count_as_caught_up_when_an_epoch_begins_and_others_never() -> None:
    core = tell(replica(), LearnMetadata(metadata=metadata(1, isr=(1, 2))), now=77).core
    assert {b: f.caught_up_at for b, f in leading(core).followers.items()} == {2: 77, 3: None}


def test_who_waited_for_a_leader_is_told_when_it_steps_down() -> None:
    core = tell(leader_of(), produce()).core
    step = tell(core, LearnMetadata(metadata=metadata(2, 1, version=1)))
    assert step.action == "becomes_follower"
    assert errors(step) == [Error.NOT_LEADER_OR_FOLLOWER]


def test_metadata_of_an_older_epoch_changes_nothing() -> None:
    core = leader_of(epoch=5)
    assert tell(core, LearnMetadata(metadata=metadata(2, 4, version=9))).core == core


# Fetches


@pytest.mark.parametrize(
    ("epoch", "error"), [(1, Error.FENCED_LEADER_EPOCH), (3, Error.UNKNOWN_LEADER_EPOCH), (2, Error.NONE)]
)
def test_a_fetch_counts_only_in_the_leaders_own_epoch(epoch: int, error: Error) -> None:
    core = leader_of(epoch=2)
    step = tell(core, fetch(2, 0, epoch=epoch))
    (said,) = (e.response.error for e in step.effects if isinstance(e, AnswerFetch))
    assert said is error
    assert (step.core == core) is (error is not Error.NONE)


def test_a_diverging_fetch_is_no_acknowledgement_and_is_told_no_watermark() -> None:
    core = leader_of(log(0, 0, 2), epoch=3, watermark=2)
    step = tell(core, fetch(2, 3, last_epoch=1, epoch=3))
    assert step.action == "leader_answers_diverging"
    (said,) = (e.response for e in step.effects if isinstance(e, AnswerFetch))
    assert said.diverging == EpochEnd(0, 2), "the largest epoch that is not above the follower's (KIP-279)"
    assert said.high_watermark == 0
    assert leading(step.core).followers[2].end is None


def test_a_fetch_of_an_older_incarnation_is_refused() -> None:
    core = tell(leader_of(), fetch(2, 0, broker_epoch=9)).core
    assert tell(core, fetch(2, 0, broker_epoch=8)).core == core


@pytest.mark.parametrize(
    ("by", "epoch", "broker_epoch", "error"),
    [
        (2, -1, 2, Error.NONE),
        (2, 3, -1, Error.NONE),
        (2, -1, -1, Error.NONE),
        (2, 3, 1, Error.NOT_LEADER_OR_FOLLOWER),
        (2, 2, 2, Error.FENCED_LEADER_EPOCH),
        (9, 3, 9, Error.UNKNOWN_LEADER_EPOCH),
        (9, -1, 9, Error.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_follower_of_an_old_version_says_no_epochs_and_is_taken_and_a_stranger_is_not(
    by: int, epoch: int, broker_epoch: int, error: Error
) -> None:
    """PartitionTest.testFetchFromUnrecognizedFollower, testFenceFollowerFetchWithStaleBrokerEpoch."""
    core = leader_of(log(0, 0), epoch=3)
    core = tell(core, fetch(2, 0, epoch=3, broker_epoch=2)).core
    step = tell(core, fetch(by, 1, last_epoch=0, epoch=epoch, broker_epoch=broker_epoch))
    (said,) = (e for e in step.effects if isinstance(e, AnswerFetch))
    assert said.response.error is error
    assert leading(step.core).followers[2].end == (1 if error is Error.NONE else 0), "it counts if it is taken"


def test_a_parked_fetch_has_counted_and_is_answered_by_the_next_append() -> None:
    parked = tell(leader_of(), attrs.evolve(fetch(2, 0), max_wait_ms=500))
    assert not parked.effects
    assert leading(parked.core).followers[2].end == 0
    appended = tell(parked.core, produce())
    assert [e.records is not None for e in appended.effects if isinstance(e, AnswerFetch)] == [True]


def test_a_parked_fetch_is_answered_empty_when_its_time_is_over() -> None:
    parked = tell(leader_of(), attrs.evolve(fetch(2, 0), max_wait_ms=500)).core
    assert replicas.deadline(parked) == 500
    assert [e.records for e in tell(parked, Tick(), 500).effects if isinstance(e, AnswerFetch)] == [None]


# The in-sync set


def test_who_lags_is_dropped_after_the_lag_time_and_in_one_request() -> None:
    core = tell(all_fetch(leader_of(), 0), produce()).core
    assert tell(core, Tick(), 15_000).action is None, "not before replica.lag.time.max.ms"
    step = tell(core, Tick(), 30_001)
    assert step.action == "leader_proposes_shrink"
    assert proposal(step).members == {1}
    assert maximal_isr(step.core) == {1, 2, 3}, "who is being removed still counts"


def test_a_follower_at_the_log_end_never_lags() -> None:
    core = all_fetch(leader_of(), 0)
    assert tell(core, Tick(), 10**9).action is None


def test_who_was_asked_to_join_counts_at_once() -> None:
    step = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    assert step.action == "leader_proposes_expansion"
    assert maximal_isr(step.core) == {1, 2, 3}


def test_a_follower_joins_only_past_the_start_of_the_epoch() -> None:
    core = leader_of(log(0, 0), epoch=1, isr=(1, 2), watermark=1)
    at_watermark = tell(core, fetch(3, 1, last_epoch=0, epoch=1)).core
    assert tell(at_watermark, Tick()).action is None
    at_start = tell(core, fetch(3, 2, last_epoch=0, epoch=1)).core
    assert tell(at_start, Tick()).action == "leader_proposes_expansion"


def test_an_ineligible_follower_is_not_proposed() -> None:
    news = LearnMetadata(metadata=metadata(1, isr=(1, 2)), ineligible=frozenset({3}))
    core = tell(tell(replica(), news).core, fetch(3, 0)).core
    assert tell(core, Tick()).action is None


def test_an_accepted_isr_is_adopted_with_its_partition_epoch() -> None:
    asked = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    step = tell(asked.core, decided(asked))
    assert step.action == "leader_adopts_isr"
    assert leading(step.core).isr == {1, 2, 3}
    assert step.core.partition_epoch == 1
    assert tell(step.core, decided(asked)).core == step.core, "the same answer twice"


def test_only_an_ineligible_replica_rolls_a_proposal_back() -> None:
    asked = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    step = tell(asked.core, decided(asked, Error.INELIGIBLE_REPLICA))
    assert step.action == "leader_rolls_back"
    assert maximal_isr(step.core) == {1, 2}
    assert tell(step.core, Tick()).action is None, "it asks again only when the follower has fetched again"


@pytest.mark.parametrize("error", [Error.INVALID_UPDATE_VERSION, Error.FENCED_LEADER_EPOCH, Error.STALE_BROKER_EPOCH])
def test_any_other_answer_keeps_the_larger_set_until_metadata_comes(error: Error) -> None:
    asked = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    core = tell(asked.core, decided(asked, error)).core
    assert maximal_isr(core) == {1, 2, 3}
    settled = tell(core, LearnMetadata(metadata=metadata(1, isr=(1, 2), version=1))).core
    assert maximal_isr(settled) == {1, 2}


def test_an_unanswered_proposal_is_sent_again_and_only_the_answer_to_the_last_copy_counts() -> None:
    asked = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    core = attrs.evolve(asked.core, role=attrs.evolve(leading(asked.core), next_lag_check=10**9))
    again = tell(core, Tick(), 30_000)
    assert proposal(again) == attrs.evolve(proposal(asked), attempt=2)
    late = tell(again.core, decided(asked, Error.INELIGIBLE_REPLICA))
    assert maximal_isr(late.core) == {1, 2, 3}, "the second copy may yet be accepted"
    assert tell(late.core, decided(again, Error.INELIGIBLE_REPLICA)).action == "leader_rolls_back"


def test_a_late_refusal_of_an_earlier_proposal_says_nothing_of_the_next() -> None:
    asked = asks_to_add(leader_of(isr=(1, 2)), 3, 0)
    rolled_back = tell(asked.core, decided(asked, Error.INELIGIBLE_REPLICA)).core
    next_one = asks_to_add(rolled_back, 3, 0)
    assert maximal_isr(tell(next_one.core, decided(asked, Error.INELIGIBLE_REPLICA)).core) == {1, 2, 3}


def test_the_watermark_waits_for_who_is_about_to_join_but_not_for_the_ineligible() -> None:
    waits = attrs.evolve(SETTINGS, insync_waits_for_joiners=True)
    away = frozenset({3})
    for ineligible, expected in ((frozenset[int](), 0), (away, 1)):
        core = tell(replica(settings=waits), LearnMetadata(metadata=metadata(1, isr=(1, 2)), ineligible=ineligible))
        joined = tell(tell(core.core, fetch(3, 0)).core, produce()).core
        assert tell(joined, fetch(2, 1, last_epoch=0)).core.high_watermark == expected


# Producers with an identity


def test_what_a_producer_sends_again_is_answered_with_its_first_offset_and_not_appended() -> None:
    core = tell(leader_of(), produce(1, acks=1, producer=(7, 0, 0))).core
    again = tell(core, produce(2, acks=1, producer=(7, 0, 0)))
    assert again.core.log.end == 1
    assert [e.offset for e in again.effects if isinstance(e, AnswerProduce)] == [0]


def test_the_last_five_batches_are_remembered() -> None:
    core = leader_of()
    for sequence in range(6):
        core = tell(core, produce(acks=1, producer=(7, 0, sequence))).core
    assert errors(tell(core, produce(acks=1, producer=(7, 0, 1)))) == [Error.NONE]
    assert errors(tell(core, produce(acks=1, producer=(7, 0, 0)))) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        ((7, 0, 2), Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((7, -1, 1), Error.INVALID_PRODUCER_EPOCH),
        ((7, 1, 1), Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((7, 1, 0), Error.NONE),
        ((8, 0, 5), Error.NONE),
    ],
)
def test_sequence_numbers_and_epochs_are_checked(producer: tuple[int, int, int], error: Error) -> None:
    core = tell(leader_of(), produce(acks=1, producer=(7, 0, 0))).core
    assert errors(tell(core, produce(acks=1, producer=producer))) == [error]


def test_a_damaged_batch_is_refused() -> None:
    whole = produce().records
    for position in range(21, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        told = attrs.evolve(produce(), records=bytes(damaged))
        assert errors(tell(leader_of(), told)) == [Error.CORRUPT_MESSAGE], position


def test_stamping_leaves_the_crc_alone() -> None:
    (batch,) = batches(stamped(produce(count=3).records, 41, 5), check=True)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (41, 43, 5)


def test_a_core_is_a_value() -> None:
    one, two = (tell(leader_of(), produce()).core for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != leader_of()


def test_a_consumer_that_has_seen_too_little_waits_for_the_watermark_to_move() -> None:
    core = all_fetch(leader_of(log(0, 0, 0)), 2)
    assert core.high_watermark == 2
    parked = tell(core, Consume(request=1, partition=TP, offset=1, max_wait_ms=500, known_watermark=2))
    assert not parked.effects
    again = tell(parked.core, fetch(2, 2, last_epoch=0))
    assert not any(isinstance(e, AnswerConsume) for e in again.effects), "nothing was committed"
    for follower in (2, 3):
        again = tell(again.core, fetch(follower, 3, last_epoch=0))
    (read,) = (e.records for e in again.effects if isinstance(e, AnswerConsume))
    assert read == Slice(offset=1, up_to=3, max_bytes=1_048_576), "and it gets all of it"
