"""Answers that Kafka's own tests and its clients' test suites expect: AlterPartition, epochs before roles, time."""

from __future__ import annotations

import struct
from random import Random

import attrs
import pytest
from immutables import Map
from tests.isr_broker.test_fetch import Client
from tests.isr_broker.test_leader import decided, proposal
from tests.isr_broker.test_wire import one_broker
from tests.support.brokers import (
    SETTINGS,
    TP,
    answer,
    fetch,
    follower_of,
    leader_of,
    log,
    metadata,
    replica,
    tell,
)

from isr_broker import topic_configs
from isr_broker.core import controller as controllers
from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AnswerConsume, AnswerFetch, Send
from isr_broker.core.elections import alter
from isr_broker.core.inputs import Consume, LearnMetadata, Received, Tick, Written
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    AlterTopicConfigs,
    BrokerMetadata,
    CreatePartitions,
    CreateTopic,
    EpochEnd,
    Error,
    ToController,
    TopicPartition,
)
from isr_broker.core.producers import admission_of
from isr_broker.core.record_batch import batch_around, crc32c, new_batch, stamped
from isr_broker.core.replica_state import Step, leading
from isr_broker.designs import KIP_966
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.log import Log
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer

# AlterPartition, at the leader


def expansion() -> Step:
    """A leader alone in the ISR asks to add broker 2."""
    core = leader_of(log(0), isr=(1, 3), watermark=0, minimum=1)
    core = tell(core, fetch(2, 1, last_epoch=0)).core
    return tell(core, Tick(), 1)


@pytest.mark.parametrize("error", [Error.STALE_BROKER_EPOCH, Error.UNKNOWN_SERVER_ERROR, Error.NOT_CONTROLLER])
def test_an_error_that_is_not_about_the_request_has_the_same_request_sent_again(error: Error) -> None:
    step = expansion()
    core = tell(step.core, decided(step, error), 10).core
    assert tell(core, Tick(), 59).effects == ()
    again = proposal(tell(core, Tick(), 60))
    assert attrs.evolve(again, attempt=1) == attrs.evolve(proposal(step), attempt=1)
    assert again.attempt == proposal(step).attempt + 1


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(1, 1), (0, -1)])
def test_an_answer_of_another_epoch_is_ignored(leader_epoch: int, partition_epoch: int) -> None:
    step = expansion()
    core = tell(step.core, proposal(step).answer(Error.NONE, leader_epoch, partition_epoch)).core
    assert leading(core).isr == {1, 3}
    assert leading(core).pending is not None


def test_an_isr_that_was_so_already_is_adopted_in_the_same_partition_epoch() -> None:
    step = expansion()
    core = tell(step.core, proposal(step).answer(Error.NONE, 0, 0)).core
    assert leading(core).isr == frozenset({1, 2, 3})
    assert core.partition_epoch == 0


# AlterPartition, at the controller

BROKERS = Map({b: BrokerMetadata(broker=b, epoch=b, fenced=False) for b in (1, 2, 3)})


def asks(
    isr: tuple[tuple[int, int], ...],
    *,
    leader: int = 1,
    broker_epoch: int = 1,
    leader_epoch: int = 4,
    partition_epoch: int = 7,
) -> AlterPartitionRequest:
    return AlterPartitionRequest(
        partition=TP,
        leader=leader,
        broker_epoch=broker_epoch,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        isr=isr,
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (asks(((1, 1), (2, 2))), Error.NONE),
        (asks(((1, -1), (2, -1))), Error.NONE),
        (asks(((1, 1), (2, 9))), Error.INELIGIBLE_REPLICA),
        (asks(((1, 1), (2, 2), (2, 2))), Error.INVALID_REQUEST),
        (asks(((1, 1), (4, 4))), Error.INVALID_REQUEST),
        (asks(((2, 2),)), Error.INVALID_REQUEST),
        (asks(((2, 2),), leader=2, broker_epoch=2), Error.INVALID_REQUEST),
        (asks(((1, 1),), leader_epoch=5), Error.NOT_CONTROLLER),
        (asks(((1, 1),), partition_epoch=8), Error.NOT_CONTROLLER),
        (asks(((1, 1),), leader_epoch=3), Error.FENCED_LEADER_EPOCH),
        (asks(((1, 1),), partition_epoch=6), Error.INVALID_UPDATE_VERSION),
        (asks(((1, 1),), broker_epoch=0), Error.STALE_BROKER_EPOCH),
    ],
)
def test_the_controller_judges_an_alter_partition_as_kafkas_does(request_: AlterPartitionRequest, error: Error) -> None:
    """ReplicationControlManager.validateAlterPartitionData, ineligibleReplicasForIsr."""
    old = metadata(1, epoch=4, isr=(1, 3), version=7)
    assert alter(old, request_, None, BROKERS, KIP_966)[0] is error


def test_an_unchanged_isr_writes_no_record() -> None:
    old = metadata(1, epoch=4, isr=(1, 3), version=7)
    assert alter(old, asks(((1, 1), (3, 3))), None, BROKERS, KIP_966) == (Error.NONE, None)


def test_a_minimum_above_the_replication_factor_counts_as_that() -> None:
    assert metadata(1, minimum=7).effective_min_isr == 3
    core = leader_of(log(0), isr=(1, 2, 3), minimum=7)
    assert leading(core).min_insync_replicas == 3


# Epochs before roles


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(2, Error.FENCED_LEADER_EPOCH), (4, Error.UNKNOWN_LEADER_EPOCH), (3, Error.NOT_LEADER_OR_FOLLOWER)],
)
def test_an_epoch_is_judged_before_the_role(epoch: int, error: Error) -> None:
    core = follower_of(3, log(0), epoch=3)
    (said,) = (e for e in tell(core, fetch(1, 1, epoch=epoch)).effects if isinstance(e, AnswerFetch))
    assert said.response.error is error


def test_a_parked_fetch_is_fenced_when_its_epoch_is_over() -> None:
    core = leader_of(log(0), epoch=3)
    parked = tell(core, attrs.evolve(fetch(2, 1, last_epoch=0, epoch=3), max_wait_ms=500))
    assert [e for e in parked.effects if isinstance(e, AnswerFetch)] == []
    step = tell(parked.core, LearnMetadata(metadata=metadata(2, 4, version=1)))
    assert [e.response.error for e in step.effects if isinstance(e, AnswerFetch)] == [Error.FENCED_LEADER_EPOCH]


# Consumers and producers


def test_a_consumer_parked_above_a_cut_is_out_of_range() -> None:
    settings = attrs.evolve(SETTINGS, insync_follower_reads=True)
    core = tell(replica(2, log(0, 0, 0), settings, 3), LearnMetadata(metadata=metadata(1, 1))).core
    core = tell(core, Consume(request=5, partition=TP, offset=3, max_wait_ms=1_000)).core
    assert len(core.consumers) == 1
    told = attrs.evolve(answer(3, epoch=1, last_epoch=0), diverging=EpochEnd(0, 1))
    step = tell(core, told)
    said = [(e.request, e.error) for e in step.effects if isinstance(e, AnswerConsume)]
    assert said == [(5, Error.OFFSET_OUT_OF_RANGE)]
    assert step.core.consumers == ()


def test_a_control_batch_of_a_client_is_refused() -> None:
    batch = bytearray(new_batch(b"x"))
    assert admission_of(LogView().producers, bytes(batch), 1_000).error is Error.NONE
    struct.pack_into(">h", batch, 21, 1 << 5)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    assert admission_of(LogView().producers, bytes(batch), 1_000).error is Error.INVALID_RECORD


# Time


def record(delta: int, number: int) -> bytes:
    inner = bytes([0, delta << 1, number << 1, 1, 0, 0])
    return bytes([len(inner) << 1]) + inner


def timed(disk: MemoryDisk) -> Log:
    """Records at 1000, 1010, 1020 in one batch, at 1005 in the next, and one at 2000 in a segment of its own."""
    made = Log.create(disk, str(TP), Settings(log_segment_bytes=170))
    for records, at, newest in (
        (record(0, 0) + record(10, 1) + record(20, 2), 1_000, 1_020),
        (record(0, 0), 1_005, 1_005),
        (record(0, 0), 2_000, 2_000),
    ):
        count = len(records) // len(record(0, 0))
        batch = bytearray(batch_around(records, count=count, timestamp=at))
        struct.pack_into(">q", batch, 35, newest)
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
        made.append(stamped(bytes(batch), made.view.end, 0))
    assert len(made.segments) == 2
    return made


@pytest.mark.parametrize(
    ("time", "offset"),
    [(0, 0), (1_000, 0), (1_001, 1), (1_010, 1), (1_011, 2), (1_020, 2), (1_021, 4), (2_000, 4), (2_001, None)],
)
def test_the_first_record_that_is_not_before_a_time(time: int, offset: int | None) -> None:
    found = timed(MemoryDisk()).first_record_since(time)
    assert (None if found is None else found.offset) == offset


def test_a_record_is_found_by_its_time_without_reading_what_comes_before() -> None:
    """By the index, also where timestamps go back now and then; the same record as from the beginning."""
    disk, chance = MemoryDisk(), Random(1)
    made = Log.create(disk, str(TP), Settings(log_index_interval_bytes=500))
    times: list[int] = []
    for number in range(400):
        times.append(1_000 + 10 * number - chance.choice((0, 0, 0, 95)))
        made.append(stamped(batch_around(record(0, 0), timestamp=times[-1]), number, 0))
    bytes_read = [0]

    def counted(path: str, found: bytes) -> bytes:
        bytes_read[0] += len(found)
        return found

    disk.reads = counted
    for time in (*range(900, 5_100, 33), times[399]):
        bytes_read[0] = 0
        found = made.first_record_since(time)
        assert (found.offset if found else None) == next((n for n, at in enumerate(times) if at >= time), None)
        assert bytes_read[0] < 3_000, "of 28,000"


def test_the_record_with_the_largest_timestamp() -> None:
    found = timed(MemoryDisk()).newest_record()
    assert found is not None
    assert (found.offset, found.timestamp) == (4, 2_000)
    assert Log.create(MemoryDisk(), "t-1", Settings()).newest_record() is None


# Settings that change, partitions that are added, brokers that are away


def controller_of(settings: Settings, fenced: tuple[int, ...] = ()) -> Controller:
    brokers = [BrokerMetadata(broker=b, epoch=b, fenced=b in fenced) for b in (1, 2, 3)]
    return controller_from_records(settings, brokers, 0)


def admin(core: Controller, request: ToController) -> tuple[Controller, Error]:
    step = controllers.handle(core, Received(9, request), 0)
    after = controllers.handle(step.core, Written(step.core.offset), 0)
    (said,) = (e.message for e in (*step.effects, *after.effects) if isinstance(e, Send))
    assert isinstance(said, AdminAnswer)
    return after.core, said.error


def test_a_topic_is_created_with_a_smaller_isr_while_a_broker_is_fenced() -> None:
    core, error = admin(
        controller_of(Settings(), (1,)), CreateTopic(request=1, topic="u", partitions=3, replication_factor=3)
    )
    assert error is Error.NONE
    for partition in core.partitions.values():
        assert set(partition.replicas) == {1, 2, 3}
        assert partition.isr == {2, 3}
        assert partition.leader in partition.isr
    everybody_away = controller_of(Settings(), (1, 2, 3))
    asks_one = CreateTopic(request=1, topic="u", replication_factor=1)
    assert admin(everybody_away, asks_one)[1] is Error.INVALID_REPLICATION_FACTOR
    assert admin(core, CreateTopic(request=1, topic="v", replication_factor=4))[1] is Error.INVALID_REPLICATION_FACTOR


def test_settings_of_a_topic_change_while_it_is_in_use() -> None:
    core, _ = admin(controller_of(Settings()), CreateTopic(request=1, topic="u", replication_factor=3))
    tp = TopicPartition("u", 0)
    before = core.partitions[tp]
    change = AlterTopicConfigs(request=2, topic="u", changes=(("min.insync.replicas", "2"),))
    core, error = admin(core, change)
    assert error is Error.NONE
    after = core.partitions[tp]
    assert (after.min_insync_replicas, after.leader_epoch) == (2, before.leader_epoch)
    unclean = AlterTopicConfigs(
        request=3, topic="u", changes=(("unclean.leader.election.enable", "true"),), replaces=True
    )
    core, _ = admin(core, unclean)
    assert (core.partitions[tp].min_insync_replicas, core.partitions[tp].unclean_leader_election) == (1, True)
    assert admin(core, attrs.evolve(change, topic="v"))[1] is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_takes_a_smaller_minimum_at_once_and_commits() -> None:
    core = leader_of(log(0), isr=(1,), watermark=0, minimum=2)
    assert core.high_watermark == 0
    step = tell(core, LearnMetadata(metadata=metadata(1, 0, (1,), minimum=1)))
    assert leading(step.core).min_insync_replicas == 1
    assert step.core.high_watermark == 1


def test_unclean_election_as_a_setting_of_the_controller_reaches_existing_topics_without_one_of_their_own() -> None:
    core, _ = admin(controller_of(Settings()), CreateTopic(request=1, topic="u"))
    own = CreateTopic(request=2, topic="own", configs=(("unclean.leader.election.enable", "false"),))
    core, _ = admin(core, own)
    records = [*core.brokers.values(), *core.partitions.values()]
    again = controller_from_records(Settings(unclean_leader_election_enable=True), records, 0)
    assert controllers.deadline(again) == 0
    step = controllers.handle(again, Tick(), 0)
    assert step.core.partitions[TopicPartition("u", 0)].unclean_leader_election
    assert not step.core.partitions[TopicPartition("own", 0)].unclean_leader_election
    assert controllers.deadline(step.core) > 0


def test_partitions_are_added_to_a_topic() -> None:
    core, _ = admin(controller_of(Settings()), CreateTopic(request=1, topic="u", replication_factor=2))
    core, error = admin(core, CreatePartitions(request=2, topic="u", count=3))
    assert error is Error.NONE
    assert [len(core.partitions[TopicPartition("u", n)].replicas) for n in range(3)] == [2, 2, 2]
    assert len({p.topic_id for p in core.partitions.values()}) == 1
    for count, expected in ((3, Error.INVALID_PARTITIONS), (2, Error.INVALID_PARTITIONS)):
        assert admin(core, CreatePartitions(request=2, topic="u", count=count))[1] is expected
    one = CreatePartitions(request=2, topic="u", count=5, assignments=((1, 2),))
    assert admin(core, one)[1] is Error.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("cleanup.policy", "delete", True),
        ("cleanup.policy", "compact", False),
        ("segment.ms", "1000", True),
        ("segment.ms", "x", False),
        ("min.insync.replicas", "0", False),
        ("min.insync.replicas", "2", True),
        ("unclean.leader.election.enable", "yes", False),
        ("retention.ms", "1", False),
        ("max.message.bytes", "1", True),
        ("max.message.bytes", "-1", False),
        ("nonsense", "1", False),
    ],
)
def test_topic_settings_that_change_nothing_here_are_taken(name: str, value: str, taken: bool) -> None:
    assert (topic_configs.fault(name, value) == "") == taken


def test_the_largest_batch_of_a_topic_is_a_setting_of_its_own_and_of_a_topic_in_use() -> None:
    client = Client(one_broker())

    def produced(size: int) -> int:
        rows = [{"index": 0, "records": new_batch(bytes(size))}]
        fields: Answer = {"acks": 1, "timeout": 1000, "topic_data": [{"name": "own", "partition_data": rows}]}
        said = client.ask(protocol.PRODUCE, 8, fields)
        assert said is not None
        client.tick()
        return said.all("responses")[0].all("partition_responses")[0].number("error_code")

    configs = [{"name": "max.message.bytes", "value": "2000000"}]
    topic = {"name": "own", "num_partitions": 1, "replication_factor": 1, "configs": configs}
    assert client.ask(protocol.CREATE_TOPICS, 5, {"topics": [topic], "timeout": 1000}) is not None
    client.tick(200)
    assert [produced(1_500_000), produced(2_500_000)] == [0, Error.MESSAGE_TOO_LARGE.value]
    changed = [{"name": "max.message.bytes", "config_operation": 0, "value": "1000"}]
    resource = {"resource_type": 2, "resource_name": "own", "configs": changed}
    client.ask(protocol.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    client.tick(200)
    assert [produced(10), produced(1_000)] == [0, Error.MESSAGE_TOO_LARGE.value]
