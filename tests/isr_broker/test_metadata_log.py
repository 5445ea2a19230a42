"""A metadata log that has grown long begins with a snapshot: nothing is lost, and what was removed is forgotten."""

from __future__ import annotations

import attrs
import pytest
from tests.isr_broker.test_fetch import Client
from tests.isr_broker.test_losses import Elsewhere, flipped
from tests.isr_broker.test_wire import one_broker

from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records, handle
from isr_broker.core.controller_state import Controller, snapshot
from isr_broker.core.effects import Send, SetAside
from isr_broker.core.inputs import LogOpened, Received, Start, Written
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    BrokerMetadata,
    BrokerRegistered,
    FetchMetadata,
    Metadata,
    MetadataRecord,
    MetadataSnapshot,
    PartitionMetadata,
    TopicPartition,
    removed_partition,
)
from isr_broker.runtime import Runtime
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing, Survival
from isr_broker.storage.metadata_log import NAME, DamagedMetadata, MetadataLog
from isr_broker.wire import protocol

TP, GONE = TopicPartition("t", 0), TopicPartition("gone", 0)


def partition(tp: TopicPartition, topic_id: int) -> PartitionMetadata:
    return PartitionMetadata(partition=tp, replicas=(1, 2), isr=frozenset({1, 2}), leader=1, topic_id=topic_id)


RECORDS: tuple[MetadataRecord, ...] = (
    BrokerMetadata(broker=1, epoch=1, fenced=False),
    BrokerMetadata(broker=2, epoch=2, fenced=False),
    partition(TP, 3),
    partition(GONE, 4),
    removed_partition(GONE),
)


def controller(records: tuple[MetadataRecord, ...] = RECORDS) -> Controller:
    return controller_from_records(Settings(), records, 0)


def known(core: Controller) -> tuple[object, ...]:
    return core.offset, core.durable_offset, core.brokers, core.partitions


# The file


def compacted() -> MemoryDisk:
    disk = MemoryDisk()
    log, _ = MetadataLog.open(disk)
    log.append(RECORDS)
    log.compact(snapshot(controller()))
    disk.crash(Nothing())
    return disk


def test_a_controller_finds_in_a_snapshot_what_it_knew_and_goes_on_with_its_offsets() -> None:
    disk = compacted()
    log, found = MetadataLog.open(disk)
    assert [type(r) for r in found] == [MetadataSnapshot]
    assert known(controller_from_records(Settings(), found, 0)) == known(controller())
    assert log.growth == 0
    log.append((partition(TopicPartition("u", 0), 6),))
    again, found = MetadataLog.open(disk)
    assert controller_from_records(Settings(), found, 0).offset == 6
    assert again.growth == log.growth > 0


@pytest.mark.parametrize("survival", [Nothing(), Everything()], ids=["nothing pending", "everything"])
def test_a_crash_while_a_snapshot_takes_its_place_leaves_the_records_or_the_snapshot(survival: Survival) -> None:
    disk, pictures = MemoryDisk(), list[MemoryDisk]()
    log, _ = MetadataLog.open(disk)
    log.append(RECORDS)
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    log.compact(snapshot(controller()))
    disk.hook = None
    assert len(pictures) > 4
    for picture in [*pictures, disk]:
        picture.crash(survival)
        log, found = MetadataLog.open(picture)
        assert known(controller_from_records(Settings(), found, 0)) == known(controller())
        log.compact(snapshot(controller()))
        assert [type(r) for r in MetadataLog.open(picture)[1]] == [MetadataSnapshot]


def test_a_snapshot_that_is_damaged_or_cut_refuses_the_start_and_loses_nothing() -> None:
    """Appends are torn; a snapshot takes its place as a whole, so a part of one is damage."""
    whole = compacted().image(NAME).durable
    for at in range(len(whole)):
        disk = compacted()
        flipped(disk, at)
        with pytest.raises(DamagedMetadata):
            MetadataLog.open(disk)
        assert len(disk.image(NAME).durable) == len(whole)
        if at:
            disk.image(NAME).settle(whole[:at])
            with pytest.raises(DamagedMetadata):
                MetadataLog.open(disk)
            assert disk.image(NAME).durable == whole[:at]


# Who is told what


def asked(core: Controller, offset: int) -> Metadata:
    step = handle(core, Received(2, FetchMetadata(broker=2, broker_epoch=2, offset=offset)), 0)
    (news,) = [e.message for e in step.effects if isinstance(e, Send)]
    assert isinstance(news, Metadata)
    return news


def test_whoever_knows_less_than_the_snapshot_is_told_everything_and_others_what_is_new() -> None:
    later = (*RECORDS, partition(TopicPartition("u", 0), 6))
    short = handle(controller(later[:5]), Written(5, compacted=True), 0).core
    for core in (
        controller_from_records(Settings(), (snapshot(controller(later[:5])), later[5]), 0),
        attrs.evolve(
            controller(later), change_offsets=short.change_offsets.set(TopicPartition("u", 0), 6), whole_until=5
        ),
    ):
        assert GONE not in core.change_offsets
        behind, beside = asked(core, 4), asked(core, 5)
        assert behind.whole
        assert [p.partition.topic for p in behind.partitions] == ["t", "u"]
        assert [b.broker for b in behind.brokers] == [1, 2]
        assert not beside.whole
        assert [p.partition.topic for p in beside.partitions] == ["u"]
        assert beside.brokers == ()


def test_a_broker_that_was_away_removes_what_the_whole_of_the_metadata_does_not_name() -> None:
    node = nodes.Node(me=2, settings=Settings())
    for tp in (TP, GONE):
        node = nodes.handle(node, LogOpened(partition=tp, log=LogView(end=1)), 0).core
    node = nodes.handle(node, Start(7), 0).core
    node = nodes.handle(node, Received(-1, BrokerRegistered(broker=2, incarnation=7, broker_epoch=5)), 0).core
    some = Metadata(since=0, offset=4, partitions=(partition(TP, 3),))
    assert set(nodes.handle(node, Received(-1, some), 0).core.replicas) == {TP, GONE}, "more may come"
    caught_up = nodes.handle(node, Received(-1, attrs.evolve(some, offset=5)), 0)
    assert set(caught_up.core.replicas) == {TP}, "that was all there is"
    assert SetAside(GONE) in caught_up.effects
    step = nodes.handle(node, Received(-1, attrs.evolve(some, whole=True)), 0)
    assert set(step.core.replicas) == {TP}
    assert SetAside(GONE) in step.effects, "nobody has said that it was deleted"
    step = nodes.handle(step.core, Received(-1, Metadata(since=4, offset=6, whole=True)), 0)
    assert (set(step.core.replicas), set(step.core.partitions)) == (set(), set())


# A broker that runs


def test_a_log_does_not_grow_with_topics_that_come_and_go() -> None:
    limit = 4_000
    client = Client(one_broker(changed={"metadata.log.max.record.bytes.between.snapshots": str(limit)}))
    runtime, sizes = client.requests.runtime, list[int]()
    assert isinstance(runtime.disk, MemoryDisk)
    for number in range(60):
        topics = [{"name": f"topic-{number}", "num_partitions": 2, "replication_factor": 1}]
        assert client.ask(protocol.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100}) is not None
        assert client.ask(protocol.DELETE_TOPICS, 1, {"topic_names": [f"topic-{number}"], "timeout": 100}) is not None
        client.tick(10)
        sizes.append(len(runtime.disk.image(NAME).durable))
    core = runtime.controller
    assert core is not None
    assert max(sizes) < 2 * limit
    assert len(core.change_offsets) < 20
    again = Runtime(1, runtime.settings, runtime.disk.copy(), ("h", 1), ("h", 1), Elsewhere())
    again.start(2, 0, with_controller=True)
    assert again.controller is not None
    assert {tp.topic for tp in again.controller.partitions} == {tp.topic for tp in core.partitions}
    assert again.controller.offset == core.offset + 1, "its life"
