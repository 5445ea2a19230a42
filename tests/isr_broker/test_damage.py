"""Damage of every kind in every file of a data directory, on disks in memory: which one wins, and what is refused.

`test_damaged_disks` has the same on processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import attrs
import pytest
from tests.isr_broker.test_data_directory import directory, filled
from tests.isr_broker.test_log import FOLDER, SMALL
from tests.isr_broker.test_losses import Elsewhere, running, with_a_record
from tests.support.brokers import SETTINGS, TP, batch_at

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller, end_of_log, has
from isr_broker.core.effects import (
    AdvanceLogStart,
    AnswerConsume,
    AnswerProduce,
    AppendLog,
    CheckpointWatermarks,
    DamageAlarm,
    Effect,
    Halt,
    OpenLog,
    PartitionHalt,
    Send,
    SetAside,
    Slice,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Consume,
    LogDamaged,
    LogOpened,
    NodeInput,
    Produce,
    Received,
    Retained,
    Start,
    Tick,
    Written,
)
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    BrokerMetadata,
    BrokerRegistered,
    ControllerLife,
    CreateTopic,
    Error,
    FetchMetadata,
    Heartbeat,
    Metadata,
    MetadataPosition,
    MetadataRecord,
    PartitionMetadata,
    RegisterBroker,
    TopicPartition,
    removed_partition,
)
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.topics import FILE, file_of, has_checksum, in_file, random_topic_id, topic_id_of, uuid_of
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    EPOCHS,
    LOG_STARTS,
    POSITION,
    RECOVERY_POINTS,
    WATERMARKS,
    read_epochs,
    read_offsets,
    read_position,
    take_clean_shutdown,
    write_position,
)
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing
from isr_broker.storage.log import Log
from isr_broker.storage.log_directory import STRAY, LogDirectory, name_out_of_use
from isr_broker.storage.meta_properties import Claim, NotOurs, claim
from isr_broker.storage.metadata_end import END, EndFile
from isr_broker.storage.metadata_log import NAME, DamagedMetadata, MetadataLog
from isr_broker.storage.owner import META_PROPERTIES

BROKER, CONTROLLER = 2, -1


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def stopped(start: int = 0) -> MemoryDisk:
    """A broker that was stopped in order: a log of six records, some of them deleted, all committed."""
    disk = MemoryDisk()
    logs = filled(disk)
    if start:
        logs.perform(AdvanceLogStart(partition=TP, offset=start))
    write_position(disk, MetadataPosition(9, 7))
    logs.close(17, CheckpointWatermarks(((TP, 6),)))
    disk.crash(Nothing())
    return disk


# Checkpoints


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (WATERMARKS, partial(read_offsets, path=WATERMARKS)),
        (RECOVERY_POINTS, partial(read_offsets, path=RECOVERY_POINTS)),
        (LOG_STARTS, partial(read_offsets, path=LOG_STARTS)),
        (f"{FOLDER}/{EPOCHS}", partial(read_epochs, path=f"{FOLDER}/{EPOCHS}")),
        (POSITION, read_position),
        (CLEAN_SHUTDOWN, take_clean_shutdown),
    ],
)
def test_a_checkpoint_with_one_flipped_bit_says_what_it_said_or_nothing(
    name: str, read: Callable[[MemoryDisk], object]
) -> None:
    whole = stopped(1).image(name).durable
    right = read(stopped(1))
    nothing: tuple[object, ...] = ({}, None, MetadataPosition())
    for bit in range(8 * len(whole)):
        disk = stopped(1)
        disk.image(name).settle(flipped(whole, bit))
        assert read(disk) in (right, *nothing), bit
    assert right not in nothing


@pytest.mark.parametrize("name", [WATERMARKS, RECOVERY_POINTS, LOG_STARTS, f"{FOLDER}/{EPOCHS}", CLEAN_SHUTDOWN])
def test_whatever_bit_of_a_checkpoint_flips_no_record_is_out_of_reach(name: str) -> None:
    whole = stopped().image(name).durable
    for bit in range(8 * len(whole)):
        disk = stopped()
        disk.image(name).settle(flipped(whole, bit))
        logs = directory(disk)
        _, (opened,) = logs.load()
        assert (opened.log.start, opened.log.end, logs.damages()) == (0, 6, []), bit
        assert opened.high_watermark in (0, 6)


@pytest.mark.parametrize("name", [RECOVERY_POINTS, CLEAN_SHUTDOWN])
def test_a_mark_of_a_clean_shutdown_counts_only_beside_its_own_recovery_points(name: str) -> None:
    older, disk = stopped(), stopped()
    logs = directory(disk)
    assert logs.load()[0] == 17
    logs.perform(AppendLog(partition=TP, records=batch_at(6, epoch=3)))
    logs.close(18, CheckpointWatermarks(((TP, 7),)))
    disk.crash(Nothing())
    disk.image(name).settle(older.image(name).durable)
    assert directory(disk).load()[0] == -1


def test_checkpoints_from_before_they_had_a_checksum_are_read() -> None:
    disk = stopped()
    disk.image(WATERMARKS).settle(b"0\n1\nt 0 5\n")
    assert read_offsets(disk, WATERMARKS) == {TP: 5}


# Logs that lack what was durable


def _first_segment_missing(disk: MemoryDisk) -> None:
    disk.remove(f"{FOLDER}/{0:020d}.log")


def _last_segment_missing(disk: MemoryDisk) -> None:
    disk.remove(f"{FOLDER}/{3:020d}.log")


def _shorter(disk: MemoryDisk) -> None:
    image = disk.image(f"{FOLDER}/{3:020d}.log")
    image.settle(image.durable[:-1])


def _older(disk: MemoryDisk) -> None:
    image = disk.image(f"{FOLDER}/{3:020d}.log")
    image.settle(image.durable[: len(image.durable) // 2])


def _no_topic(disk: MemoryDisk) -> None:
    disk.image(f"{FOLDER}/{FILE}").settle(b"")


def _no_topic_file(disk: MemoryDisk) -> None:
    disk.remove(f"{FOLDER}/{FILE}")


HARMS = [_first_segment_missing, _last_segment_missing, _shorter, _older, _no_topic, _no_topic_file]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("harm", HARMS)
def test_a_log_that_lacks_what_was_durable_is_left_as_it_is_and_named(
    harm: Callable[[MemoryDisk], None], clean: bool
) -> None:
    disk = stopped()
    if not clean:
        disk.remove(CLEAN_SHUTDOWN)
    before = {n: disk.image(f"{FOLDER}/{n}").durable for n in disk.names(FOLDER)}
    harm(disk)
    names = {n: disk.image(f"{FOLDER}/{n}").durable for n in disk.names(FOLDER)}
    (file,) = (name for name in before if names.get(name) != before[name])
    logs = directory(disk)
    assert logs.load() == (-1, [])
    (damaged,) = logs.damages()
    assert damaged.partition == TP
    assert file in damaged.why
    assert (LOG_STARTS in damaged.why) == (harm is _first_segment_missing), "an older one looks the same"
    assert {n: bytes(disk.image(f"{FOLDER}/{n}").visible_bytes) for n in disk.names(FOLDER)} == names
    again = directory(disk)
    assert again.load() == (-1, [])
    logs.close(18, CheckpointWatermarks(()))
    assert not disk.exists(CLEAN_SHUTDOWN), "not every log is as it was"
    name = logs.set_aside(TP)
    assert name.endswith(STRAY)
    assert disk.names(name) == sorted(names)
    assert directory(disk).load() == (-1, [])
    assert directory(disk).damages() == []


@pytest.mark.parametrize(("harm", "what"), [(_no_topic, "says no topic"), (_no_topic_file, "is missing")])
def test_a_log_of_which_two_files_are_damaged_names_both(harm: Callable[[MemoryDisk], None], what: str) -> None:
    """A segment that nobody can put right is no harm, if the other file says that the topic is no more."""
    disk = stopped()
    _shorter(disk)
    harm(disk)
    logs = directory(disk)
    assert logs.load() == (-1, [])
    (damaged,) = logs.damages()
    assert f"{FOLDER}/{3:020d}.log" in damaged.why
    assert f"{FOLDER}/{FILE} {what}" in damaged.why


def test_a_log_that_could_not_be_read_is_offline_for_as_long_as_it_is_damaged() -> None:
    disk = stopped()
    logs = directory(disk)
    logs.load()
    image = disk.image(f"{FOLDER}/{0:020d}.log")
    good = image.durable
    image.settle(flipped(good, 8 * (len(good) - 1)))
    with pytest.raises(BadBatch):
        logs.read(TP, Slice(offset=0, up_to=6, max_bytes=10**6))
    logs.take_offline(TP, "it cannot be read")
    disk.crash(Nothing())
    again = directory(disk.copy())
    assert again.load() == (-1, [])
    assert len(again.damages()) == 1
    disk.image(f"{FOLDER}/{0:020d}.log").settle(good)
    healed = directory(disk)
    _, (opened,) = healed.load()
    assert (opened.log.end, healed.damages()) == (6, []), "it could not be read once"


@pytest.mark.parametrize("change", ["retention", "deletion", "truncation", "anew"])
def test_a_crash_while_a_log_becomes_shorter_is_no_damage(change: str) -> None:
    disk, pictures = MemoryDisk(), list[MemoryDisk]()
    logs = filled(disk)
    logs.perform(AppendLog(partition=TP, records=batch_at(6, epoch=3), flush=True))
    logs.checkpoint(CheckpointWatermarks(((TP, 7),)))
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    match change:
        case "retention":
            logs.settings = attrs.evolve(SMALL, log_retention_bytes=0)
            assert [type(done) for done in logs.retain(0, {TP: 7})] == [Retained]
        case "deletion":
            logs.perform(AdvanceLogStart(partition=TP, offset=5))
        case "truncation":
            logs.perform(TruncateLog(partition=TP, offset=2))
        case _:
            logs.perform(TruncateLog(partition=TP, offset=40, anew=True))
    disk.hook = None
    assert len(pictures) > 4
    for picture in [*pictures, disk]:
        for survival in (Nothing(), Everything()):
            crashed = picture.copy()
            crashed.crash(survival)
            found = directory(crashed)
            _, opened = found.load()
            assert (len(opened), found.damages()) == (1, [])


# What is read


def test_no_flipped_bit_in_a_segment_is_read() -> None:
    """Whatever is read is as it was written, its leader epoch too, which no CRC covers."""
    written = [batch_at(0, epoch=2, count=2), batch_at(2, epoch=2), batch_at(3, epoch=6, count=3)]
    starts, read = {0: 0, 2: len(written[0]), 3: len(written[0] + written[1])}, 0
    disk = MemoryDisk()
    log = Log.create(disk, FOLDER, Settings())
    log.append(b"".join(written), flush=True)
    image = disk.image(f"{FOLDER}/{0:020d}.log")
    whole = image.durable
    for bit in range(8 * len(whole)):
        image.settle(flipped(whole, bit))
        for offset, start in starts.items():
            try:
                found = log.read(Slice(offset=offset, up_to=6, max_bytes=10**6))
            except BadBatch:
                continue
            assert found, "or a client would wait for ever"
            assert whole[start:].startswith(found)
            read += 1
    assert read > 1_000, "what is behind the flipped bit"


@pytest.mark.parametrize(("epoch", "damaged"), [(2, False), (3, False), (4, True), (-(1 << 31), True)])
def test_a_log_in_which_an_epoch_goes_back_is_damaged(epoch: int, damaged: bool) -> None:
    """What was copied from it would be cut by nobody: a leader looks for an epoch among those that grow."""
    disk = MemoryDisk()
    logs = LogDirectory(disk, Settings())
    logs.load()
    logs.open(TP, 1)
    for offset, written in enumerate((2, 2, 3)):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset, epoch=written), flush=True))
    image = disk.image(f"{TP}/{0:020d}.log")
    at = len(image.durable) // 3 + 12
    image.settle(image.durable[:at] + epoch.to_bytes(4, "big", signed=True) + image.durable[at + 4 :])
    logs.checkpoint(CheckpointWatermarks(()))
    found = LogDirectory(disk, Settings())
    found.load()
    assert bool(found.damages()) == damaged


def test_a_read_gives_batches_as_far_as_it_has_room_and_one_however_large() -> None:
    log = Log.create(MemoryDisk(), FOLDER, Settings())
    written = [batch_at(o, count=1) for o in range(9)]
    for data in written:
        log.append(data)
    size = len(written[0])
    for room in (0, 1, size - 1, size, size + 1, 3 * size, 3 * size + 60, 100 * size):
        found = log.read(Slice(offset=4, up_to=8, max_bytes=room))
        assert found == b"".join(written[4 : min(8, 4 + max(1, room // size))])
    assert log.read(Slice(offset=8, up_to=8, max_bytes=100)) == b""


def test_a_record_is_not_found_by_its_time_in_a_damaged_batch() -> None:
    disk = MemoryDisk()
    log = Log.create(disk, FOLDER, Settings())
    log.append(batch_at(0), flush=True)
    image = disk.image(f"{FOLDER}/{0:020d}.log")
    image.settle(flipped(image.durable, 8 * (len(image.durable) - 1)))
    with pytest.raises(BadBatch):
        log.first_record_since(0)


# Names that are set aside


def test_a_log_that_is_set_aside_has_a_name_of_its_own_that_no_disk_refuses() -> None:
    disk, long = MemoryDisk(), TopicPartition("x" * 249, 12)
    first = name_out_of_use(long, 2**127 + 1, disk, STRAY)
    assert len(first) == 255
    disk.make_folder(first)
    second = name_out_of_use(long, 2**127 + 1, disk, STRAY)
    assert second != first
    assert len(second) == 255


@pytest.mark.parametrize("kind", [MemoryDisk, RealDisk])
def test_a_folder_is_renamed_with_all_that_is_in_it(kind: type[MemoryDisk | RealDisk], tmp_path: Path) -> None:
    disk = MemoryDisk() if kind is MemoryDisk else RealDisk(tmp_path)
    logs = LogDirectory(disk, SMALL)
    logs.load()
    logs.open(TP, 5)
    logs.perform(AppendLog(partition=TP, records=batch_at(0), flush=True))
    names = disk.names(FOLDER)
    name = logs.set_aside(TP)
    assert disk.names(name) == names
    assert not disk.exists(FOLDER)
    opened = logs.open(TP, 5)
    assert isinstance(opened, LogOpened)
    assert opened.log.end == 0


# The controller's log


def test_the_metadata_log_is_refused_without_what_was_durable_and_the_end_file_alone_is_made_again() -> None:
    disk = MemoryDisk()
    log, _ = MetadataLog.open(disk)
    log.append((ControllerLife(7), BrokerMetadata(broker=1, epoch=2)))
    log.append((BrokerMetadata(broker=2, epoch=3),))
    assert EndFile.read(disk) == MetadataPosition(3, 7)
    end = disk.image(END).durable
    for bit in range(8 * len(end)):
        damaged = disk.copy()
        damaged.image(END).settle(flipped(end, bit))
        assert len(MetadataLog.open(damaged)[1]) == 3, "the log wins"
        assert EndFile.read(damaged) == MetadataPosition(3, 7)
    other = MemoryDisk()
    MetadataLog.open(other)[0].append((ControllerLife(8), *(BrokerMetadata(broker=n, epoch=n) for n in range(9))))
    disk.image(NAME).settle(bytes(other.image(NAME).visible_bytes))
    with pytest.raises(DamagedMetadata, match="or is another's"):
        MetadataLog.open(disk)


LIVES: tuple[MetadataRecord, ...] = (
    ControllerLife(70),
    BrokerMetadata(broker=1, epoch=2, fenced=False),
    BrokerMetadata(broker=2, epoch=3, fenced=False),
    ControllerLife(71),
    PartitionMetadata(
        partition=TP, replicas=(1, 2), isr=frozenset({1, 2}), leader=1, topic_id=5, min_insync_replicas=2
    ),
)


def with_lives() -> Controller:
    return controller_from_records(SETTINGS, LIVES, 0)


@pytest.mark.parametrize(
    ("position", "there"),
    [
        ((0, 0), True),
        ((3, 70), True),
        ((4, 71), True),
        ((5, 71), True),
        ((5, 70), False),
        ((6, 71), False),
        ((3, 1), False),
    ],
)
def test_what_a_broker_has_read_is_there_or_it_is_refused(position: tuple[int, int], there: bool) -> None:
    core, read = with_lives(), MetadataPosition(*position)
    assert has(core, read) == there
    assert end_of_log(core) == MetadataPosition(5, 71)
    polled = controllers.handle(
        core, Received(2, FetchMetadata(broker=2, broker_epoch=3, offset=read.offset, life=read.life)), 0
    )
    halts = [effect for effect in polled.effects if isinstance(effect, Halt)]
    assert bool(halts) != there
    assert all("broker 2 has read the controller's metadata.log" in effect.why for effect in halts)
    asks = RegisterBroker(broker=3, incarnation=1, position=read)
    step = controllers.handle(core, Received(3, asks), 0)
    step = controllers.handle(step.core, Written(step.core.offset), 0) if there else step
    (answer,) = (e.message for e in step.effects if isinstance(e, Send) and isinstance(e.message, BrokerRegistered))
    assert answer.error is (Error.NONE if there else Error.OFFSET_OUT_OF_RANGE)


@pytest.mark.parametrize(("life", "elected"), [(70, True), (69, False)])
def test_a_broker_of_an_earlier_life_has_a_session_only_after_it_said_in_which_log_it_has_read(
    life: int, elected: bool
) -> None:
    """A heartbeat says an offset alone: by that a log that had lost records, and grown since, would pass for whole."""
    core = with_lives()
    fenced = attrs.evolve(core.brokers[2], fenced=True)
    nobody = attrs.evolve(core.partitions[TP], leader=None, isr=frozenset[int](), elr=frozenset({2}))
    core = attrs.evolve(core, brokers=core.brokers.set(2, fenced), partitions=core.partitions.set(TP, nobody))
    beat = Received(2, Heartbeat(broker=2, broker_epoch=3, metadata_offset=3))
    unasked = controllers.handle(core, beat, 0).core
    assert unasked.brokers[2].fenced
    assert unasked.partitions[TP].leader is None
    polled = controllers.handle(unasked, Received(2, FetchMetadata(broker=2, broker_epoch=3, offset=3, life=life)), 0)
    assert any(isinstance(effect, Halt) for effect in polled.effects) != elected
    again = controllers.handle(polled.core, beat, 0).core
    assert again.brokers[2].fenced != elected
    assert again.partitions[TP].leader == (2 if elected else None)


def test_a_broker_epoch_that_the_controller_never_gave_is_refused() -> None:
    asks = RegisterBroker(broker=3, incarnation=1, previous_broker_epoch=6)
    step = controllers.handle(with_lives(), Received(3, asks), 0)
    (answer,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(answer, BrokerRegistered)
    assert answer.error is Error.OFFSET_OUT_OF_RANGE


def test_a_broker_that_is_refused_for_what_it_has_read_ends_and_names_the_file() -> None:
    node = nodes.handle(nodes.Node(me=2, settings=SETTINGS), Start(7, position=MetadataPosition(8, 70)), 0).core
    answer = BrokerRegistered(broker=2, incarnation=7, error=Error.OFFSET_OUT_OF_RANGE)
    step = nodes.handle(node, Received(CONTROLLER, answer), 0)
    (halt,) = step.effects
    assert isinstance(halt, Halt)
    assert "metadata.log up to record 8" in halt.why


def test_a_controller_that_lacks_what_its_own_broker_has_read_does_not_start() -> None:
    runtime, _, disk = running()
    runtime.tick(10_000)
    assert read_position(disk).offset > 3
    for name in (NAME, END):
        disk.remove(name)
    again = Runtime(1, Settings(), disk, ("h", 1), ("h", 1), Elsewhere())
    with pytest.raises(DamagedMetadata, match=r"metadata\.log up to record \d+, and it is not there"):
        again.start(2, 0, with_controller=True)


def test_data_of_which_nobody_knows_whose_they_are_are_refused() -> None:
    disk = stopped()
    with pytest.raises(NotOurs, match=f"{META_PROPERTIES} is missing"):
        claim(disk, Claim(2, "c"))
    claim(MemoryDisk(), Claim(2, "c"))


# Topic ids


def test_topic_ids_are_random_and_come_from_where_chance_is() -> None:
    one, other = Random(1), Random(1)
    ids = [random_topic_id(one.getrandbits) for _ in range(200)]
    assert ids == [random_topic_id(other.getrandbits) for _ in range(200)]
    assert len(set(ids)) == 200
    for topic_id in ids:
        assert topic_id_of(uuid_of(topic_id)) == topic_id
        assert uuid_of(topic_id)[6] >> 4 == 4, "version 4"
        assert b"topic_id: -" not in file_of(topic_id)
    runtime, _, _ = running()
    runtime.topic_ids = lambda: ids[7]
    said: list[ClientAnswer] = []
    runtime.ask(lambda n: CreateTopic(request=n, topic="u", topic_id=3), lambda a, _: said.append(a), 300)
    assert runtime.controller is not None
    assert runtime.controller.partitions[TopicPartition("u", 0)].topic_id == ids[7], "and not from who asks"


# A replica whose log is damaged


def metadata(
    leader: int | None, isr: tuple[int, ...], elr: tuple[int, ...] = (), topic_id: int = 5, epoch: int = 9
) -> PartitionMetadata:
    return PartitionMetadata(
        partition=TP,
        replicas=(1, 2, 3),
        isr=frozenset(isr),
        elr=frozenset(elr),
        leader=leader,
        leader_epoch=epoch,
        topic_id=topic_id,
    )


def started(*found: LogOpened | LogDamaged) -> nodes.Node:
    """A broker that is registered, and has read nothing yet."""
    node = nodes.Node(me=BROKER, settings=SETTINGS)
    for each in found:
        node = nodes.handle(node, each, 0).core
    node = nodes.handle(node, Start(7), 0).core
    return nodes.handle(node, Received(CONTROLLER, BrokerRegistered(broker=2, incarnation=7, broker_epoch=4)), 0).core


def learns(node: nodes.Node, partition: PartitionMetadata, offset: int = 5) -> nodes.NodeStep:
    news = Metadata(since=0, offset=offset, partitions=(partition,))
    return nodes.handle(node, Received(CONTROLLER, news), 0)


def polls(effects: tuple[Effect, ...]) -> list[tuple[TopicPartition, ...]]:
    return [e.message.offline for e in effects if isinstance(e, Send) and isinstance(e.message, FetchMetadata)]


@pytest.mark.parametrize(
    ("partition", "anew"),
    [
        (metadata(1, (1, 3)), True),
        (metadata(1, (1, 2)), False),
        (metadata(1, (1,), (2,)), False),
        (metadata(None, (), (1, 3)), False),
        (metadata(BROKER, (2,)), False),
    ],
)
def test_a_log_that_was_found_damaged_is_set_aside_once_another_leads_and_nobody_counts_on_it(
    partition: PartitionMetadata, anew: bool
) -> None:
    step = learns(started(LogDamaged(partition=TP, why="cut")), partition)
    asked = [e for e in step.effects if isinstance(e, SetAside | OpenLog)]
    assert asked == ([SetAside(TP), OpenLog(TP, 5)] if anew else [])
    assert polls(step.effects) == [() if anew else (TP,)]


@pytest.mark.parametrize(("topic_id", "anew"), [(4, True), (5, False), (0, False)])
def test_a_damaged_log_of_another_topic_is_set_aside_though_this_broker_is_in_sync(topic_id: int, anew: bool) -> None:
    """A topic made again counts on its first brokers, of which none has a record: else nobody could be elected."""
    damage = LogDamaged(partition=TP, why="cut", topic_id=topic_id)
    step = learns(started(damage), metadata(None, (), (1, BROKER, 3)))
    asked = [e for e in step.effects if isinstance(e, SetAside | OpenLog)]
    assert asked == ([SetAside(TP), OpenLog(TP, 5)] if anew else [])


def test_a_log_that_is_damaged_while_the_process_runs_waits_for_the_next_one() -> None:
    """Its leader may still count on what this life has acknowledged (KIP-903)."""
    step = learns(started(LogOpened(partition=TP, log=LogView(end=3), topic_id=5)), metadata(BROKER, (1, 2, 3)))
    step = nodes.handle(step.core, LogDamaged(partition=TP, why="a bit"), 0)
    assert polls(step.effects) == [(TP,)]
    for question, kind in (
        (Produce(request=1, partition=TP, records=b""), AnswerProduce),
        (Consume(request=2, partition=TP, offset=0), AnswerConsume),
    ):
        (answer,) = nodes.handle(step.core, question, 0).effects
        assert isinstance(answer, kind)
        assert answer.error is Error.KAFKA_STORAGE_ERROR
    news = Metadata(since=5, offset=6, partitions=(metadata(1, (1, 3), epoch=10),))
    later = nodes.handle(step.core, Received(CONTROLLER, news), 0)
    assert not [e for e in later.effects if isinstance(e, SetAside | OpenLog)]
    gone = Metadata(since=5, offset=6, partitions=(removed_partition(TP),))
    assert SetAside(TP) in nodes.handle(step.core, Received(CONTROLLER, gone), 0).effects, "never deleted"


@pytest.mark.parametrize(("isr", "offline"), [((1, 2, 3), True), ((1, 3), False)])
def test_a_log_of_an_unknown_topic_is_set_aside_but_where_the_controller_counts_on_it(
    isr: tuple[int, ...], offline: bool
) -> None:
    """With one flipped bit in `partition.metadata` an empty log would be in sync, and could be elected."""
    node = started(LogOpened(partition=TP, log=LogView(end=3), topic_id=4))
    step = learns(node, metadata(1, isr, topic_id=5))
    assert (TP in step.core.offline) == offline
    asked = [e for e in step.effects if isinstance(e, SetAside | OpenLog)]
    assert asked == ([] if offline else [SetAside(TP), OpenLog(TP, 5)])


def test_a_log_that_is_certainly_of_another_topic_is_set_aside_though_the_controller_counts_on_the_broker() -> None:
    """A topic is made again while a broker is away, which is in its first in-sync set: it has no record of it."""
    node = started(LogOpened(partition=TP, log=LogView(end=3), topic_id=4, is_certain=True))
    step = learns(node, metadata(1, (1, 2, 3), topic_id=5))
    assert TP not in step.core.offline
    assert [e for e in step.effects if isinstance(e, SetAside | OpenLog)] == [SetAside(TP), OpenLog(TP, 5)]
    assert TP not in step.core.certain_ids


def test_with_one_flipped_bit_a_log_says_no_topic() -> None:
    whole = file_of(random_topic_id(Random(3).getrandbits))
    assert has_checksum(whole)
    assert in_file(whole) != 0
    for bit in range(8 * len(whole)):
        assert in_file(flipped(whole, bit)) == 0
    for end in range(len(whole)):
        assert in_file(whole[:end]) == 0 or not has_checksum(whole[:end])


def test_a_log_with_an_epoch_that_there_never_was_is_damaged() -> None:
    view = LogView().appended(batches(batch_at(0, epoch=130)))
    step = learns(started(LogOpened(partition=TP, log=view, topic_id=5)), metadata(1, (1, 2, 3)))
    assert TP in step.core.offline
    assert TP not in step.core.replicas
    (alarm,) = (e for e in step.effects if isinstance(e, DamageAlarm))
    assert "leader epoch 130" in alarm.why


def asks_for(effect: Effect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core asks for this effect, once."""
    original = nodes.handle

    def asks(node: nodes.Node, node_input: NodeInput, now: int) -> nodes.NodeStep:
        return nodes.NodeStep(node, (effect,)) if isinstance(node_input, Consume) else original(node, node_input, now)

    monkeypatch.setattr(nodes, "handle", asks)
    said: list[ClientAnswer] = []
    runtime.ask(lambda n: Consume(request=n, partition=TP, offset=0), lambda a, _: said.append(a), 300)


def test_an_alarm_of_a_log_that_can_be_read_names_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator puts right what is named; of a log that nobody names the replica would be offline for good."""
    runtime, outside, disk = running()
    with_a_record(runtime, disk)
    asks_for(DamageAlarm(TP, "it says another topic"), runtime, monkeypatch)
    (line,) = (line for line in outside.lines if line.startswith("ALARM"))
    assert f"{TP}/partition.metadata" in line
    assert f"{TP}/{0:020d}.log" in line


def offline_at(core: Controller, broker: int, *offline: TopicPartition, number: int = 1) -> Controller:
    epoch = core.brokers[broker].epoch
    poll = FetchMetadata(
        broker=broker, broker_epoch=epoch, offset=core.offset, life=71, offline=offline, offline_changes=number
    )
    step = controllers.handle(core, Received(broker, poll), 0)
    return controllers.handle(step.core, Written(step.core.offset), 0).core


def test_another_leads_where_the_leader_says_that_its_log_is_damaged_and_it_is_elected_by_nobody() -> None:
    core = offline_at(with_lives(), 1, TP)
    assert (core.partitions[TP].leader, core.partitions[TP].isr) == (2, frozenset({2}))
    late = offline_at(core, 1, number=0)
    assert late.offline == core.offline, "an older message"
    core = offline_at(core, 2, TP)
    last = core.partitions[TP]
    assert (last.leader, len(last.isr), last.elr) == (None, 0, frozenset({2})), "its log is all that is left"
    for now in range(1, 4):
        core = controllers.handle(core, Tick(), now).core
    assert core.partitions[TP].leader is None
    registered = controllers.handle(core, Received(2, RegisterBroker(broker=2, incarnation=5)), 10**6)
    assert registered.core.offline[2] == (1, frozenset({TP})), "it has a session"
    fenced = attrs.evolve(core, brokers=core.brokers.set(2, attrs.evolve(core.brokers[2], fenced=True)))
    asks = RegisterBroker(broker=2, incarnation=5, previous_broker_epoch=3)
    again = controllers.handle(fenced, Received(2, asks), 10**6)
    core = controllers.handle(again.core, Written(again.core.offset), 0).core
    beat = Heartbeat(broker=2, broker_epoch=core.brokers[2].epoch, metadata_offset=core.offset)
    core = controllers.handle(core, Received(2, beat), 0).core
    assert core.partitions[TP].leader == 2, "the next life has found nothing wrong with it"


def test_a_follower_that_finds_its_own_log_damaged_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, _, disk = running()
    with_a_record(runtime, disk)
    asks_for(PartitionHalt(TP, "an epoch went back", is_damaged=True), runtime, monkeypatch)
    assert TP in runtime.node.offline


def test_a_runtime_that_reads_a_damaged_batch_says_so_and_another_would_lead() -> None:
    runtime, _, disk = running()
    image = with_a_record(runtime, disk)
    image.settle(flipped(image.durable, 8 * (len(image.durable) - 1)))
    said: list[ClientAnswer] = []
    for number in range(2):
        runtime.ask(lambda n: Consume(request=n, partition=TP, offset=0), lambda a, _: said.append(a), 300 + number)
    assert [getattr(a, "error", None) for a in said] == [Error.KAFKA_STORAGE_ERROR] * 2
    assert TP in runtime.node.offline
    assert runtime.controller is not None
    assert runtime.controller.partitions[TP].leader is None
