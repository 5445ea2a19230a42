"""Retention: old segments go, logs start later, followers follow, and who asks for what is gone begins anew."""

from __future__ import annotations

from functools import partial

import attrs
import confluent_kafka
import pytest
from tests.isr_broker.test_fetch import Client, rows
from tests.isr_broker.test_wire import one_broker
from tests.support.brokers import TP, answer, batch_at, fetch, follower_of, leader_of, log, replica, tell
from tests.support.clients import Confluent, create_topic
from tests.support.clusters import QUICK, Cluster

from isr_broker.core.effects import AdvanceLogStart, AnswerFetch, CheckpointWatermarks, Send, Slice
from isr_broker.core.inputs import Consume, Retained
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error, FetchRequest, TopicPartition
from isr_broker.core.record_batch import batches, new_batch, stamped
from isr_broker.core.replica_state import Replica
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, read_epochs, read_offsets
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing, Survival
from isr_broker.storage.log import Log
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.offsets_topic import TOPIC
from isr_broker.wire import protocol

SMALL = Settings(log_segment_bytes=150, log_index_interval_bytes=70)
DAY = 86_400_000
SIZE = len(new_batch(b"x"))


def grown(disk: MemoryDisk, count: int = 20, at: int = 1_000) -> Log:
    """A log of one-record batches, two to a segment, an epoch for every five and a second between any two."""
    made = Log.create(disk, str(TP), SMALL)
    for offset in range(count):
        made.append(stamped(new_batch(b"x", timestamp=at + 1_000 * offset), offset, offset // 5))
    assert len(made.segments) == count // 2
    return made


def offsets(made: Log) -> list[int]:
    return [batch.base_offset for batch in batches(made.contents())]


# The log


@pytest.mark.parametrize(
    ("since", "most_bytes", "committed", "start"),
    [
        (-1, -1, 20, 0),
        (1_000, -1, 20, 0),
        (2_001, -1, 20, 2),
        (10_000, -1, 20, 8),
        (10_000, -1, 5, 4),
        (10**9, -1, 20, 18),
        (-1, 10**6, 20, 0),
        (-1, 8 * SIZE, 20, 12),
        (-1, 6 * SIZE + 1, 20, 12),
        (-1, 6 * SIZE, 20, 14),
        (-1, 0, 20, 18),
        (2_001, 8 * SIZE, 20, 12),
    ],
)
def test_the_oldest_segments_go_by_age_and_by_size_but_nothing_that_is_not_committed_and_never_the_last(
    since: int, most_bytes: int, committed: int, start: int
) -> None:
    made = grown(MemoryDisk())
    assert made.retention_start(since, most_bytes, committed) == start


def test_what_is_left_is_found_again_and_begins_with_the_epoch_it_is_in() -> None:
    disk = MemoryDisk()
    made = grown(disk)
    view = made.advance_start(8)
    assert offsets(made) == list(range(8, 20))
    assert (view.start, view.end) == (8, 20)
    assert [(e.epoch, e.start) for e in view.epochs.entries] == [(1, 8), (2, 10), (3, 15)]
    assert read_epochs(disk, f"{TP}/{EPOCHS}") == view.epochs.entries
    again = Log.open(disk, str(TP), SMALL, start=0).view
    assert attrs.evolve(again, flushed=view.flushed) == view
    assert made.read(Slice(offset=3, up_to=20, max_bytes=10**6)) == b""


def test_a_start_within_a_segment_keeps_that_segment() -> None:
    disk = MemoryDisk()
    view = grown(disk).advance_start(9)
    again = Log.open(disk, str(TP), SMALL, start=9)
    assert (again.view.start, again.view.epochs) == (9, view.epochs)
    assert offsets(again) == list(range(8, 20))


@pytest.mark.parametrize("survival", [Nothing(), Everything()], ids=["nothing pending", "everything"])
def test_a_crash_while_segments_are_removed_leaves_a_log_without_a_gap(survival: Survival) -> None:
    disk, pictures = MemoryDisk(), list[MemoryDisk]()
    made = grown(disk)
    made.flush()
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    made.advance_start(12)
    assert len(pictures) > 10
    for picture in pictures:
        picture.crash(survival)
        found = Log.open(picture, str(TP), SMALL)
        assert offsets(found) == list(range(found.view.start, 20)), "all of what was flushed and not yet removed"
        assert found.view.start <= 12


def test_a_log_that_begins_anew_has_nothing_but_its_start() -> None:
    disk = MemoryDisk()
    made = grown(disk)
    assert made.begin_anew(100) == LogView(start=100, end=100, flushed=100)
    made.append(batch_at(100, epoch=7))
    made.flush()
    again = Log.open(disk, str(TP), SMALL)
    assert (again.view.start, again.view.end, offsets(again)) == (100, 101, [100])


def test_the_directory_retains_what_is_young_and_the_offsets_of_groups_and_remembers_where_logs_start() -> None:
    settings = attrs.evolve(SMALL, log_retention_ms=DAY)
    disk, groups = MemoryDisk(), TopicPartition(TOPIC, 0)
    logs = LogDirectory(disk, settings)
    for tp in (TP, groups):
        logs.open(tp, 1)
        for offset in range(20):
            logs.logs[tp].append(stamped(new_batch(b"x", timestamp=offset), offset, 0))
    assert list(logs.retain(DAY, {TP: 20, groups: 20})) == []
    (told,) = logs.retain(DAY + 10, {TP: 20, groups: 20})
    assert isinstance(told, Retained)
    assert (told.partition, told.log.start) == (TP, 10)
    assert list(logs.retain(DAY + 10, {TP: 20, groups: 20})) == [], "once"
    logs.checkpoint(CheckpointWatermarks(((TP, 20),)))
    assert read_offsets(disk, LOG_STARTS) == {TP: 10, groups: 0}


def test_a_producer_that_was_idle_for_long_is_forgotten() -> None:
    logs = LogDirectory(MemoryDisk(), attrs.evolve(SMALL, producer_id_expiration_ms=500, log_retention_ms=-1))
    logs.open(TP, 1)
    for offset, (identity, at) in enumerate([(7, 1_000), (8, 1_400), (7, 1_450), (9, -1)]):
        records = new_batch(b"x", timestamp=at, producer=(identity, 0, offset))
        logs.logs[TP].append(stamped(records, offset, 0))
    assert list(logs.retain(1_900, {TP: 4})) == []
    (told,) = logs.retain(1_901, {TP: 4})
    assert isinstance(told, Retained)
    assert set(told.log.producers) == {7, 9}, "of 9 nobody knows when it was here"


# The cores


def shortened(core: Replica, start: int) -> Replica:
    return tell(core, Retained(partition=TP, log=core.log.started(start))).core


def answers(core: Replica, asked: FetchRequest) -> AnswerFetch:
    (said,) = (e for e in tell(core, asked).effects if isinstance(e, AnswerFetch))
    return said


def test_a_leader_tells_where_its_log_starts_and_refuses_what_is_before() -> None:
    core = shortened(leader_of(log(0, 0, 1, 1), epoch=1, watermark=4), 2)
    assert answers(core, fetch(2, 2, last_epoch=0, epoch=1)).response.log_start == 2
    refused = answers(core, fetch(2, 1, last_epoch=0, epoch=1))
    assert (refused.response.error, refused.response.log_start) == (Error.OFFSET_OUT_OF_RANGE, 2)
    after = tell(core, fetch(2, 1, last_epoch=0, epoch=1)).core
    assert after == core, "which is no progress"
    (read,) = tell(core, Consume(request=1, partition=TP, offset=1)).effects
    assert getattr(read, "error", None) is Error.OFFSET_OUT_OF_RANGE


def test_a_follower_starts_where_its_leader_does_as_far_as_it_is_committed() -> None:
    core = follower_of(1, log(0, 0, 0))
    step = tell(core, attrs.evolve(answer(3, last_epoch=0, watermark=2), log_start=3))
    assert [e for e in step.effects if isinstance(e, AdvanceLogStart)] == [AdvanceLogStart(partition=TP, offset=2)]
    assert step.action == "follower_appends"
    again = tell(shortened(step.core, 2), attrs.evolve(answer(3, last_epoch=0, watermark=2), log_start=2))
    assert not any(isinstance(e, AdvanceLogStart) for e in again.effects)


def test_a_follower_that_is_behind_the_start_begins_anew_and_asks_from_there() -> None:
    core = follower_of(1, log(0, 0), epoch=3, watermark=1)
    refusal = attrs.evolve(answer(2, last_epoch=0, epoch=3), error=Error.OFFSET_OUT_OF_RANGE, log_start=50)
    step = tell(core, refusal)
    assert (step.core.log.start, step.core.log.end, step.core.high_watermark) == (50, 50, 50)
    assert step.action is None
    (asked,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(asked, FetchRequest)
    assert (asked.offset, asked.last_epoch) == (50, -1)
    leader = shortened(replica(1, log(*[0] * 60), watermark=60), 40)
    leads = attrs.evolve(leader_of(log(*[0] * 60), epoch=3, watermark=60), log=leader.log)
    assert answers(leads, asked).response.diverging is None, "an empty log parts from none, wherever it starts"


def test_what_is_gone_is_gone_at_once_though_the_replica_waits_for_its_disk() -> None:
    requests = one_broker()
    client = Client(requests)
    runtime = requests.runtime
    tp = TopicPartition("t", 0)
    for _ in range(3):
        client.produce(0)
    held = runtime.node.replicas[tp]
    runtime.node = attrs.evolve(runtime.node, inboxes=runtime.node.inboxes.set(tp, ()))
    runtime.tell(Retained(partition=tp, log=held.log.started(2)), client.now)
    assert runtime.node.replicas[tp].log.start == 2
    assert rows(client.fetch(0, -1, (0, 1))) == {0: (Error.OFFSET_OUT_OF_RANGE.value, False)}
    asked: protocol.Answer = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -2}]}]}
    said = client.ask(protocol.LIST_OFFSETS, 5, {"replica_id": -1, **asked})
    assert said is not None
    assert said.all("topics")[0].all("partitions")[0].number("offset") == 2, "the earliest"


# A cluster


@pytest.mark.sockets
def test_a_cluster_forgets_and_a_follower_that_was_away_and_a_consumer_begin_where_it_remembers() -> None:
    settings = attrs.evolve(
        QUICK, log_segment_bytes=2_000, log_retention_bytes=6_000, log_retention_check_interval_ms=100
    )
    with Cluster(3, settings) as cluster:
        create_topic(cluster.bootstrap, "t", 1, 2)
        cluster.in_sync("t")
        # Idempotent, or a session that a slow machine loses makes the client send records a second time.
        producer = Confluent(cluster.bootstrap, {"acks": "all", "batch.num.messages": 1, "enable.idempotence": True})
        values = [b"%0100d" % number for number in range(300)]
        producer.send_all("t", values[:10])
        away = next(b for b in (2, 3) if b != cluster.leader("t"))
        cluster.kill(away)
        producer.send_all("t", values[10:])

        def log_of(broker: int) -> LogView:
            return cluster.servers[broker].runtime.node.replicas[TP].log

        def starts_later(broker: int) -> bool:
            return log_of(broker).start > 200

        for broker in cluster.servers:
            cluster.wait(partial(starts_later, broker), "old segments are gone")
        cluster.start(away)
        cluster.in_sync("t")
        leader = cluster.leader("t")
        assert log_of(away).start > 200, "it has never had the rest"
        cluster.wait(lambda: log_of(away).start >= log_of(leader).start, "it starts where its leader does")
        assert log_of(away).end == 300
        reader = confluent_kafka.Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        first, end = reader.get_watermark_offsets(confluent_kafka.TopicPartition("t", 0), timeout=20)
        assert (first > 200, end) == (True, 300)
        reader.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        read = reader.poll(20)
        reader.close()
        assert read is not None
        assert read.error() is None
        offset = read.offset()
        assert offset is not None
        assert offset >= first, "it began again where the log does"
        assert read.value() == values[offset]
