"""Five ways in which a broker once lost or corrupted what was acknowledged, with the switches that bring them back."""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Callable

import attrs
import pytest
from tests.isr_broker.test_log import FOLDER, SMALL
from tests.support.brokers import SETTINGS, TP, answer, batch_at, fetch, follower_of, leader_of, log, tell

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import (
    CONTROLLER,
    AdvanceLogStart,
    AnswerFetch,
    AppendLog,
    CheckpointWatermarks,
    Send,
    TruncateLog,
)
from isr_broker.core.inputs import Appended, Consume, Produce, Received, Truncated, Written
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerMetadata,
    CreateTopic,
    DeleteTopic,
    EpochEnd,
    Error,
    MetadataPosition,
    MetadataRecord,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.replica_state import leading
from isr_broker.designs import KIP_966, PLANTED, Design
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import CLEAN_SHUTDOWN, LOG_STARTS, RECOVERY_POINTS, WATERMARKS, read_offsets
from isr_broker.storage.disk import ROOT
from isr_broker.storage.disk_memory import Everything, Fault, Hook, Image, MemoryDisk, Nothing, Survival
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.metadata_end import END
from isr_broker.storage.metadata_log import NAME, DamagedMetadata, MetadataLog
from isr_broker.wire.groups import Groups, Member
from isr_broker.wire.protocol import Answer


def using(design: Design, settings: Settings = SETTINGS) -> Settings:
    return attrs.evolve(settings, insync_design=design)


# 1: a follower above the leader's log end


def fetched_past_the_end(design: Design) -> AnswerFetch:
    """Who leads ends at 3; an empty follower that starts at 24 fetches, and is outside the ISR."""
    core = leader_of(log(0, 0, 0), epoch=1, isr=(1, 3), settings=using(design), watermark=3)
    step = tell(core, fetch(2, 24, epoch=1))
    (effect,) = (e for e in step.effects if isinstance(e, AnswerFetch))
    assert (2 in leading(step.core).joining) == (effect.response.error is Error.NONE)
    return effect


def test_a_fetch_past_the_leaders_end_is_out_of_range_and_acknowledges_nothing() -> None:
    response = fetched_past_the_end(KIP_966).response
    assert response.error is Error.OFFSET_OUT_OF_RANGE
    assert response.diverging == EpochEnd(-1, 3)
    assert fetched_past_the_end(PLANTED["acknowledges-past-end"]).response.error is Error.NONE


def test_a_follower_that_is_out_of_range_cuts_to_the_leaders_end() -> None:
    core = follower_of(1, LogView(start=24, end=24), watermark=24)
    out = attrs.evolve(answer(24), error=Error.OFFSET_OUT_OF_RANGE, diverging=EpochEnd(-1, 3), log_start=2)
    step = tell(core, out)
    assert (step.core.log.start, step.core.log.end, step.core.high_watermark) == (3, 3, 3)
    assert Send(1, attrs.evolve(fetch(2, 3), log_start=3)) in step.effects


def started_late(design: Design) -> tuple[LogDirectory, MemoryDisk]:
    """A log whose first segment begins at 20, as its checkpoint says, and ends at 24."""
    disk, settings = MemoryDisk(), using(design, SMALL)
    logs = LogDirectory(disk, settings)
    logs.load()
    logs.open(TP, 1)
    logs.perform(TruncateLog(partition=TP, offset=20, anew=True))
    for offset in range(20, 24):
        done = logs.perform(AppendLog(partition=TP, records=batch_at(offset, epoch=1), flush=True))
        assert isinstance(done, Appended)
    logs.checkpoint(CheckpointWatermarks(((TP, 24),)))
    assert read_offsets(disk, LOG_STARTS) == {TP: 20}
    return logs, disk


@pytest.mark.parametrize(("design", "start"), [(KIP_966, 10), (PLANTED["cut-keeps-start"], 20)])
def test_a_cut_below_the_first_segment_restarts_the_log_at_the_cut(design: Design, start: int) -> None:
    logs, _ = started_late(design)
    done = logs.perform(TruncateLog(partition=TP, offset=10))
    assert isinstance(done, Truncated)
    assert (done.log.start, done.log.end) == (start, start)


def test_what_is_written_after_a_cut_below_the_start_survives_a_crash() -> None:
    logs, disk = started_late(KIP_966)
    logs.perform(TruncateLog(partition=TP, offset=10))
    logs.perform(AppendLog(partition=TP, records=batch_at(10, epoch=2), flush=True))
    disk.crash(Nothing())
    _, (opened,) = LogDirectory(disk, SMALL).load()
    assert (opened.log.start, opened.log.end) == (10, 11)


# 2: a damaged metadata log

RECORDS: list[MetadataRecord] = [BrokerMetadata(broker=n, epoch=n, host="h" * 20) for n in range(1, 6)]


def written_metadata() -> MemoryDisk:
    disk = MemoryDisk()
    made, _ = MetadataLog.open(disk)
    for record in RECORDS:
        made.append((record,))
    disk.crash(Nothing())
    return disk


def untold(disk: MemoryDisk) -> MemoryDisk:
    """The crash came before the last record was noted at its end, and so before anybody was told of it."""
    image = disk.image(END)
    image.settle(image.durable[: image.durable.rindex(b"\n", 0, -1) + 1])
    return disk


def flipped(disk: MemoryDisk, at: int) -> None:
    image = disk.image(NAME)
    contents = bytearray(image.durable)
    contents[at] ^= 1
    image.settle(bytes(contents))


def test_one_flipped_bit_anywhere_in_the_metadata_log_refuses_the_start_and_cuts_nothing() -> None:
    size = len(written_metadata().image(NAME).durable)
    for at in range(size):
        disk = written_metadata()
        flipped(disk, at)
        with pytest.raises(DamagedMetadata, match=r"metadata\.log: the record at byte \d+"):
            MetadataLog.open(disk)
        assert len(disk.image(NAME).durable) == size


def test_a_torn_last_record_of_the_metadata_log_is_cut() -> None:
    whole = written_metadata().image(NAME).durable
    last = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for torn in (*(whole[:end] for end in range(last, len(whole) - 1)), whole[: last + 5] + bytes(16)):
        disk = untold(written_metadata())
        disk.image(NAME).settle(torn)
        _, found = MetadataLog.open(disk)
        assert found == RECORDS[:-1]
        assert disk.image(NAME).durable == whole[:last]


def test_the_planted_bug_cuts_durable_metadata_away() -> None:
    disk = written_metadata()
    flipped(disk, 60)
    _, found = MetadataLog.open(disk, cuts=PLANTED["cuts-damaged-metadata"].cuts_damaged_metadata)
    assert found == []


# 3: a clean mark over a log that has become shorter


def stopped_in_order(design: Design) -> MemoryDisk:
    disk = MemoryDisk()
    logs = LogDirectory(disk, using(design, SMALL))
    logs.load()
    logs.open(TP, 1)
    for offset in range(6):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset)))
    logs.close(7, CheckpointWatermarks(((TP, 6),)))
    disk.crash(Nothing())
    assert disk.exists(CLEAN_SHUTDOWN)
    return disk


def _shorter(disk: MemoryDisk) -> None:
    last = max(n for n in disk.names(FOLDER) if n.endswith(".log") and disk.image(f"{FOLDER}/{n}").durable)
    image = disk.image(f"{FOLDER}/{last}")
    image.settle(image.durable[:-1])


def _bit_of_a_header(disk: MemoryDisk) -> None:
    image = disk.image(f"{FOLDER}/{0:020d}.log")
    image.settle(b"\x01" + image.durable[1:])


def _no_folder(disk: MemoryDisk) -> None:
    for name in disk.names(FOLDER):
        disk.remove(f"{FOLDER}/{name}")
    disk.remove(FOLDER)


@pytest.mark.parametrize("harm", [_shorter, _bit_of_a_header, _no_folder])
def test_damage_found_under_a_clean_mark_is_an_unclean_stop(harm: Callable[[MemoryDisk], None]) -> None:
    for design, clean in ((KIP_966, -1), (PLANTED["trusts-clean-mark"], 7)):
        disk = stopped_in_order(design)
        harm(disk)
        assert LogDirectory(disk, using(design, SMALL)).load()[0] == clean
    assert LogDirectory(stopped_in_order(KIP_966), SMALL).load()[0] == 7


# 4: a refusal that outlives its topic


def answer_after_recreation(design: Design) -> Error:
    """The answer to a leader's first request about a topic that was made again, whose second one had been refused."""
    brokers = [BrokerMetadata(broker=b, epoch=b, fenced=False) for b in (1, 2)]
    core = controller_from_records(using(design), brokers, 0)

    def told(message: Received) -> AlterPartitionResponse | None:
        nonlocal core
        step = controllers.handle(core, message, 0)
        after = controllers.handle(step.core, Written(step.core.offset), 0)
        core = after.core
        said = [e.message for e in (*step.effects, *after.effects) if isinstance(e, Send)]
        return next((m for m in said if isinstance(m, AlterPartitionResponse)), None)

    create = CreateTopic(request=1, topic=TP.topic, assignments=((1, 2),))
    told(Received(1, create))
    asks = AlterPartitionRequest(
        partition=TP, leader=1, broker_epoch=1, leader_epoch=0, partition_epoch=0, isr=((1, 1), (2, 2))
    )
    core = attrs.evolve(core, brokers=core.brokers.set(2, attrs.evolve(brokers[1], fenced=True)))
    refused = told(Received(1, attrs.evolve(asks, attempt=2)))
    assert refused is not None
    assert refused.error is Error.INELIGIBLE_REPLICA
    core = attrs.evolve(core, brokers=core.brokers.set(2, brokers[1]))
    told(Received(1, DeleteTopic(request=2, topic=TP.topic)))
    told(Received(1, create))
    answered = told(Received(1, asks))
    assert answered is not None
    return answered.error


def test_a_refusal_is_forgotten_with_its_topic() -> None:
    assert answer_after_recreation(KIP_966) is Error.NONE
    assert answer_after_recreation(PLANTED["refusals-outlive-topics"]) is Error.INVALID_UPDATE_VERSION


# 5: errors of the disk in a running broker


@attrs.define
class Elsewhere:
    """What a runtime sends and says."""

    answers: list[object] = attrs.field(factory=list[object])
    lines: list[str] = attrs.field(factory=list[str])
    ended: str = ""

    def send(self, to: int, address: object, source: int, message: object) -> None:
        """Lost."""

    def answer(self, to: int, answer: object) -> None:
        """Kept."""
        self.answers.append(answer)

    def leaves(self, partition: TopicPartition) -> None:
        """Nobody is asked."""

    def stopped(self, why: str) -> None:
        """Why it ended."""
        self.ended = why

    def log(self, line: str) -> None:
        """Kept."""
        self.lines.append(line)


def running() -> tuple[Runtime, Elsewhere, MemoryDisk]:
    """A broker with its controller that leads one partition."""
    disk, outside = MemoryDisk(), Elsewhere()
    runtime = Runtime(1, Settings(), disk, ("h", 1), ("h", 1), outside)
    runtime.start(1, 0, with_controller=True)
    for now in range(0, 100, 10):
        runtime.tick(now)
    made: list[ClientAnswer] = []
    runtime.ask(lambda n: CreateTopic(request=n, topic=TP.topic), lambda a, _: made.append(a), 100)
    for now in range(100, 200, 10):
        runtime.tick(now)
    assert len(made) == 1
    return runtime, outside, disk


def test_a_controller_that_is_back_knows_where_brokers_listen_before_its_own_is_registered() -> None:
    """Its own broker waits until the session of its process before is over; until then nobody would hear any news."""
    runtime, _, disk = running()
    assert runtime.controller is not None
    registers = RegisterBroker(
        broker=2,
        incarnation=7,
        host="there",
        port=9,
        cluster=runtime.controller.cluster,
        position=MetadataPosition(),
    )
    runtime.receive_messages([(2, CONTROLLER, registers)], 300)
    back = Runtime(1, Settings(), disk, ("h", 1), ("h", 1), Elsewhere())
    back.start(2, 400, with_controller=True)
    assert back.node.brokers.get(2) is None
    assert back.address_of(2) == ("there", 9)
    assert back.address_of(3) is None


@pytest.mark.parametrize("operation", ["append", "flush", "rename", "flush_folder"])
def test_a_checkpoint_that_cannot_be_written_ends_the_process(operation: str) -> None:
    runtime, outside, disk = running()

    def full(_: MemoryDisk, doing: str, path: str) -> Fault | None:
        broken = doing == operation and ("checkpoint" in path or not path)
        return Fault(OSError(errno.ENOSPC, "no space left")) if broken else None

    disk.hook = full
    runtime.tick(10_000)
    assert not runtime.running
    assert outside.ended.startswith("halted: ")


def with_a_record(runtime: Runtime, disk: MemoryDisk) -> Image:
    """The broker has a committed record; the contents of the segment that has it."""
    runtime.logs.perform(AppendLog(partition=TP, records=batch_at(0), flush=True))
    replica = runtime.node.replicas[TP]
    there = attrs.evolve(replica, log=runtime.logs.logs[TP].view, high_watermark=1)
    runtime.node = attrs.evolve(runtime.node, replicas=runtime.node.replicas.set(TP, there))
    return disk.image(f"{TP}/{0:020d}.log")


def test_a_damaged_batch_is_answered_with_a_storage_error_and_leaks_no_request() -> None:
    runtime, outside, disk = running()
    image = with_a_record(runtime, disk)
    image.settle(bytes(len(image.durable)))
    said: list[ClientAnswer] = []
    runtime.ask(lambda n: Consume(request=n, partition=TP, offset=0), lambda a, _: said.append(a), 300)
    assert [getattr(a, "error", None) for a in said] == [Error.KAFKA_STORAGE_ERROR]
    assert runtime.waiting == {}
    assert runtime.running
    assert outside.ended == ""


# What nobody waits for is forgotten; timers


def test_a_produce_with_acks_0_leaves_nothing_behind() -> None:
    runtime, _, _ = running()
    for _ in range(3):
        runtime.ask(
            lambda n: Produce(request=n, partition=TP, records=batch_at(0), acks=0), lambda answer, records: None, 300
        )
    assert runtime.waiting == {}


def test_failed_joins_and_groups_that_everybody_left_are_forgotten() -> None:
    groups, said = Groups(0), list[Answer]()
    stranger = Member(identity="nobody", protocols={"range": b""}, session_ms=10, rebalance_ms=10, heard_at=0)
    groups.join("g", "consumer", stranger, "c", 0, said.append)
    assert said[0]["error_code"] == 25
    assert groups.groups == {}
    groups.join("g", "consumer", attrs.evolve(stranger, identity=""), "c", 0, said.append)
    (member,) = groups.groups["g"].members
    assert groups.leave("g", [(member, "")], 1) == [0]
    assert groups.groups == {}


def test_the_heap_of_timers_says_what_the_node_says() -> None:
    runtime, _, _ = running()
    for now in range(300, 60_000, 137):
        assert runtime.deadline() == min(
            nodes.deadline(runtime.node) or 0, controllers.deadline(runtime.controller) if runtime.controller else now
        )
        runtime.tick(now)


# A topic made again


def with_a_log_at(offset: int) -> tuple[MemoryDisk, LogDirectory]:
    """The log of topic 1 begins at an offset, has one record, and is in the checkpoints."""
    disk = MemoryDisk()
    logs = LogDirectory(disk, Settings())
    logs.load()
    logs.open(TP, 1)
    logs.perform(TruncateLog(partition=TP, offset=offset, anew=True))
    logs.perform(AppendLog(partition=TP, records=batch_at(offset), flush=True))
    logs.checkpoint(CheckpointWatermarks(((TP, offset + 1),)))
    return disk, logs


def test_checkpoints_of_a_deleted_topic_say_nothing_of_the_next_of_its_name() -> None:
    disk, logs = with_a_log_at(20)
    logs.delete(TP)
    logs.open(TP, 2)
    logs.perform(AppendLog(partition=TP, records=batch_at(0), flush=True))
    disk.crash(Everything())
    (found,) = LogDirectory(disk, Settings()).load()[1]
    assert (found.topic_id, found.log.start, found.log.end, found.high_watermark) == (2, 0, 1, 0)


class Death(BaseException):
    """The process or the machine dies before an operation of its disk."""


def death_after(operations: int) -> Hook:
    """A disk whose process dies after so many operations."""
    numbers = itertools.count()
    return lambda disk, operation, path: Fault(Death()) if next(numbers) >= operations else None


@pytest.mark.parametrize("survival", [Everything(), Nothing()])
def test_a_log_that_is_deleted_while_the_broker_dies_is_whole_or_gone(survival: Survival) -> None:
    """File by file it would lack what had been durable, and be offline for good (LogManager.asyncDelete renames it)."""
    for last in itertools.count(1):
        disk, logs = with_a_log_at(20)
        logs.perform(AppendLog(partition=TP, records=batch_at(21), flush=True))
        disk.hook = death_after(last)
        with contextlib.suppress(Death):
            logs.delete(TP)
            assert last > 5, "the folder has four files"
            break
        disk.hook = None
        disk.crash(survival)
        directory = LogDirectory(disk, Settings())
        opened = directory.load()[1]
        assert directory.damages() == []
        assert [(o.log.start, o.log.end) for o in opened] in ([(20, 22)], [])
        assert [name for name in disk.names(ROOT) if name.endswith(("-delete", "-stray"))] == []


def with_an_older_file(name: str, after: Callable[[MemoryDisk], None] = lambda disk: None) -> LogDirectory:
    """A topic was deleted and made again; then one checkpoint is as it was in the time of the first."""
    disk, logs = with_a_log_at(2)
    older = bytes(disk.image(name).visible_bytes)
    logs.delete(TP)
    logs.open(TP, 2)
    for offset in range(5):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset), flush=True))
    logs.close(7, CheckpointWatermarks(((TP, 1),)))
    disk.crash(Everything())
    after(disk)
    disk.put(name, older)
    return LogDirectory(disk, Settings())


@pytest.mark.parametrize("name", [WATERMARKS, LOG_STARTS, RECOVERY_POINTS])
def test_a_checkpoint_from_before_a_topic_was_made_again_says_nothing_of_it(name: str) -> None:
    """Its watermark may be above what is committed, its start above records that nobody has removed."""
    logs = with_an_older_file(name)
    clean, (opened,) = logs.load()
    assert (opened.topic_id, opened.log.start, opened.log.end) == (2, 0, 5)
    assert opened.high_watermark == (0 if name == WATERMARKS else 1)
    assert (clean == -1) == (name == RECOVERY_POINTS)


@pytest.mark.parametrize("name", [LOG_STARTS, RECOVERY_POINTS])
def test_it_says_nothing_either_when_the_file_with_the_topic_is_put_right_later(name: str) -> None:
    noted = list[bytes]()

    def spoils(disk: MemoryDisk) -> None:
        noted.append(disk.image(f"{TP}/partition.metadata").durable)
        disk.put(f"{TP}/partition.metadata", b"")

    logs = with_an_older_file(name, spoils)
    assert logs.load() == (-1, [])
    logs.checkpoint(CheckpointWatermarks(()))
    disk = logs.disk
    assert isinstance(disk, MemoryDisk)
    disk.put(f"{TP}/partition.metadata", noted[0])
    _, (opened,) = LogDirectory(disk, Settings()).load()
    assert (opened.topic_id, opened.log.start, opened.log.end) == (2, 0, 5)


@pytest.mark.parametrize("known_start", [True, False])
def test_a_log_whose_first_segment_is_gone_is_damaged_even_where_no_checkpoint_says_its_start(
    known_start: bool,
) -> None:
    """Else it would pass for one whose first records were removed for their age."""
    disk, settings = MemoryDisk(), Settings(log_segment_bytes=100)
    logs = LogDirectory(disk, settings)
    logs.load()
    logs.open(TP, 1)
    for offset in range(6):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset), flush=True))
    first, second, third = [name for name in disk.names(str(TP)) if name.endswith(".log")][:3]
    logs.perform(AdvanceLogStart(partition=TP, offset=int(second.removesuffix(".log"))))
    logs.checkpoint(CheckpointWatermarks(()))
    assert not disk.exists(f"{TP}/{first}")
    if not known_start:
        disk.remove(LOG_STARTS)
    whole = LogDirectory(disk.copy(), settings)
    (opened,) = whole.load()[1]
    assert (opened.log.start, whole.damages()) == (int(second.removesuffix(".log")), [])
    disk.remove(f"{TP}/{second}")
    spoilt = LogDirectory(disk, settings)
    assert spoilt.load()[1] == []
    assert f"{second} is missing" in spoilt.damages()[0].why
    assert disk.exists(f"{TP}/{third}")


@attrs.frozen
class RecordsFirst:
    """Of what was pending, so many names survive, and all bytes of records; none of what the topic id was noted in."""

    most: int

    def names(self, pending: int) -> int:
        return min(self.most, pending)

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        return (0 if path.endswith("partition.metadata") else pending), 0


@pytest.mark.parametrize("names", range(6))
def test_a_log_with_records_knows_its_topic_after_any_crash(names: int) -> None:
    """Records whose topic nobody knows would pass for those of a topic of the same name that was made since."""
    disk = MemoryDisk()
    logs = LogDirectory(disk, Settings())
    logs.load()
    logs.open(TP, 1)
    logs.perform(AppendLog(partition=TP, records=batch_at(0)))
    disk.crash(RecordsFirst(names))
    (found,) = LogDirectory(disk, Settings()).load()[1]
    assert found.topic_id == 1


@pytest.mark.parametrize("left", [b"", None])
def test_an_empty_log_whose_topic_id_a_crash_took_is_removed(left: bytes | None) -> None:
    disk = MemoryDisk()
    logs = LogDirectory(disk, Settings())
    logs.load()
    logs.open(TP, 1)
    disk.crash(Everything())
    if left is None:
        disk.remove(f"{TP}/partition.metadata")
    else:
        disk.image(f"{TP}/partition.metadata").settle(left)
    assert LogDirectory(disk, Settings()).load() == (-1, [])
    assert not disk.exists(str(TP))


def test_a_request_of_an_admin_whose_answer_is_lost_is_given_up() -> None:
    disk, outside = MemoryDisk(), Elsewhere()
    runtime = Runtime(2, Settings(), disk, ("h", 2), ("elsewhere", 1), outside)
    runtime.start(1, 0, with_controller=False)
    said: list[ClientAnswer] = []
    runtime.ask(lambda n: CreateTopic(request=n, topic=TP.topic), lambda a, _: said.append(a), 100)
    runtime.tick(30_000)
    assert len(runtime.waiting) == 1
    runtime.tick(30_100)
    assert [getattr(a, "error", None) for a in said] == [Error.REQUEST_TIMED_OUT]
    assert runtime.waiting == {}


def test_half_of_a_decision_is_none_when_the_controller_finds_it() -> None:
    """Of two records that were appended together a crash keeps the first alone: as if neither had been written."""
    disk = MemoryDisk()
    log, _ = MetadataLog.open(disk)
    log.append((BrokerMetadata(broker=1, epoch=1),))
    whole = disk.image(NAME).durable
    log.append((BrokerMetadata(broker=2, epoch=2), BrokerMetadata(broker=3, epoch=3)))
    both = disk.image(NAME).durable
    untold(disk)
    for cut in range(len(whole), len(both)):
        disk.image(NAME).settle(both[:cut])
        _, records = MetadataLog.open(disk)
        assert [r.broker for r in records if isinstance(r, BrokerMetadata)] == [1]
        assert disk.image(NAME).durable == whole
    disk.image(NAME).settle(both)
    assert len(MetadataLog.open(disk)[1]) == 3
