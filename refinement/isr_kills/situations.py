"""Situations that chance in the simulator does not make: damaged disks, logs that start late, topics made again.

Each is built from the broker's own parts and ends with one question. The layer "crash points" asks them after its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
from immutables import Map

from isr_broker.core import controller as controllers
from isr_broker.core import replica as replicas
from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AnswerFetch, AppendLog, CheckpointWatermarks, Send, Slice, TruncateLog
from isr_broker.core.inputs import Received, Truncated, Written
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterTopicConfigs,
    BrokerId,
    BrokerMetadata,
    CreateTopic,
    DeleteTopic,
    Error,
    FetchRequest,
    Message,
    PartitionMetadata,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.record_batch import BadBatch, new_batch, stamped
from isr_broker.core.replica_state import Follower, Leading, Replica
from isr_broker.core.stamps import Stamped
from isr_broker.designs import Design
from isr_broker.environment import Address
from isr_broker.runtime import Runtime
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import LOG_STARTS
from isr_broker.storage.disk_memory import Fault, MemoryDisk, Nothing
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.metadata_log import NAME, DamagedMetadata, MetadataLog

_TP: Final = TopicPartition("t", 0)
_EPOCH: Final = 7


def _directory_with_log(settings: Settings, first: int, end: int) -> tuple[LogDirectory, MemoryDisk]:
    """A log directory with one log, which starts at `first` and ends at `end`."""
    disk = MemoryDisk()
    logs = LogDirectory(disk, settings)
    logs.load()
    logs.open(_TP, 1)
    logs.perform(TruncateLog(partition=_TP, offset=first, anew=True))
    for offset in range(first, end):
        logs.perform(AppendLog(partition=_TP, records=stamped(new_batch(b"x"), offset, 0), flush=True))
    return logs, disk


def follower_past_the_end_is_no_acknowledgement(settings: Settings) -> bool:
    """An empty follower that starts at 24 fetches from a leader whose log ends at 3."""
    role = Leading(
        isr=frozenset({1}),
        followers=Map({2: Follower()}),
        epoch_start=3,
        min_insync_replicas=1,
        max_message_bytes=settings.message_max_bytes,
        next_lag_check=1_000,
    )
    leader = Replica(
        partition=_TP, me=1, broker_epoch=1, settings=settings, log=LogView(end=3), high_watermark=3, role=role
    )
    fetch = FetchRequest(partition=_TP, replica=2, broker_epoch=2, leader_epoch=-1, offset=24, last_epoch=-1)
    step = replicas.handle(leader, fetch, 0)
    answers = [e.response.error for e in step.effects if isinstance(e, AnswerFetch)]
    return answers == [Error.OFFSET_OUT_OF_RANGE]


def cut_below_the_start_restarts_the_log(settings: Settings) -> bool:
    """A log of offsets 20 to 24 is cut at 10, and ends there."""
    logs, _ = _directory_with_log(settings, 20, 24)
    done = logs.perform(TruncateLog(partition=_TP, offset=10))
    return isinstance(done, Truncated) and (done.log.start, done.log.end) == (10, 10)


def durable_metadata_survives(settings: Settings) -> bool:
    """A bit in the middle of the metadata log flips: the log refuses to open, and loses nothing."""
    disk = MemoryDisk()
    log, _ = MetadataLog.open(disk)
    for broker in range(1, 5):
        log.append((BrokerMetadata(broker=broker, epoch=broker),))
    disk.crash(Nothing())
    image = disk.image(NAME)
    size, middle = len(image.durable), len(image.durable) // 2
    image.settle(image.durable[:middle] + bytes([image.durable[middle] ^ 1]) + image.durable[middle + 1 :])
    try:
        MetadataLog.open(disk, settings.insync_design.cuts_damaged_metadata)
    except DamagedMetadata:
        return len(disk.image(NAME).durable) == size
    return False


def shortened_log_is_unclean(settings: Settings) -> bool:
    """After an orderly end a log loses its last byte, and the stop no longer counts as clean."""
    logs, disk = _directory_with_log(settings, 0, 4)
    logs.close(_EPOCH, CheckpointWatermarks(((_TP, 4),)))
    disk.crash(Nothing())
    image = disk.image(f"{_TP}/{0:020d}.log")
    image.settle(image.durable[:-1])
    return LogDirectory(disk, settings).load()[0] == -1


def refusal_ends_with_its_topic(settings: Settings) -> bool:
    """A leader's request is refused; its topic is made again, and the same request is valid and accepted."""
    two = BrokerMetadata(broker=2, epoch=2, fenced=False)
    core = controller_from_records(settings, (BrokerMetadata(broker=1, epoch=1, fenced=False), two), 0)
    create = CreateTopic(request=1, topic=_TP.topic, assignments=((1, 2),))
    asks = AlterPartitionRequest(
        partition=_TP, leader=1, broker_epoch=1, leader_epoch=0, partition_epoch=0, isr=((1, 1), (2, 2))
    )
    core, _ = _controller_after(core, create)
    core, _ = _controller_after(attrs.evolve(core, brokers=core.brokers.set(2, attrs.evolve(two, fenced=True))), asks)
    core, _ = _controller_after(
        attrs.evolve(core, brokers=core.brokers.set(2, two)), DeleteTopic(request=2, topic=_TP.topic)
    )
    core, _ = _controller_after(core, create)
    _, errors = _controller_after(core, asks)
    return errors == [Error.NONE]


def new_minimum_clears_the_elr(settings: Settings) -> bool:
    """Somebody lowers min.insync.replicas while a replica is out of sync and in the ELR: it is nobody's hope then."""
    records = (
        BrokerMetadata(broker=1, epoch=1, fenced=False),
        BrokerMetadata(broker=2, epoch=2, fenced=False),
        PartitionMetadata(
            partition=_TP,
            replicas=(1, 2),
            isr=frozenset({1}),
            elr=frozenset({2}),
            leader=1,
            min_insync_replicas=2,
            topic_id=3,
            configs=(("min.insync.replicas", "2"),),
        ),
    )
    core = controller_from_records(settings, records, 0)
    lower = AlterTopicConfigs(request=1, topic=_TP.topic, changes=(("min.insync.replicas", "1"),))
    core, _ = _controller_after(core, lower)
    return core.partitions[_TP].min_insync_replicas == 1 and not core.partitions[_TP].elr


def absent_metadata_ends_the_start(settings: Settings) -> bool:
    """The metadata log of a controller that has told of records is not there: it refuses to start."""
    disk = MemoryDisk()
    log, _ = MetadataLog.open(disk)
    log.append((BrokerMetadata(broker=1, epoch=1),))
    disk.crash(Nothing())
    disk.lose(NAME)
    try:
        MetadataLog.open(disk, begins=settings.insync_design.starts_without_metadata)
    except DamagedMetadata as error:
        return NAME in str(error)
    return False


def damaged_start_is_none(settings: Settings) -> bool:
    """After an orderly end a bit of log-start-offset-checkpoint flips: the log starts where it did, or is offline."""
    logs, disk = _directory_with_log(settings, 0, 4)
    logs.close(_EPOCH, CheckpointWatermarks(((_TP, 4),)))
    disk.crash(Nothing())
    at = disk.image(LOG_STARTS).durable.index(b"t 0 0") + 4
    disk.flip(LOG_STARTS, 8 * at + 1)
    return all(opened.log.start == 0 for opened in LogDirectory(disk, settings).load()[1])


def damaged_batch_is_not_sent(settings: Settings) -> bool:
    """A bit in a record flips while the broker runs: whoever reads it is given nothing."""
    logs, disk = _directory_with_log(settings, 0, 4)
    path = f"{_TP}/{0:020d}.log"
    disk.flip(path, 8 * len(disk.image(path).durable) - 1)
    try:
        logs.read(_TP, Slice(offset=3, up_to=4, max_bytes=1_000))
    except BadBatch:
        return True
    return False


def other_cluster_is_refused(settings: Settings) -> bool:
    """A broker registers that says it is of another cluster."""
    core = controller_from_records(settings, (), 0, "ours")
    step = controllers.handle(core, Received(1, RegisterBroker(broker=1, incarnation=1, cluster="theirs")), 0)
    return 1 not in step.core.brokers


def unwritten_checkpoint_ends_the_broker(settings: Settings) -> bool:
    """A broker whose disk has no room for its checkpoint ends, and is not half there."""
    disk = MemoryDisk()
    runtime = Runtime(1, settings, disk, ("here", 1), ("here", 1), _Nobody())
    runtime.start(1, 0, with_controller=True)
    disk.hook = lambda now, doing, path: Fault(OSError("no room")) if "checkpoint" in path else None
    for now in range(0, 20_000, 1_000):
        runtime.tick(now)
    return not runtime.running


class _Nobody:
    """The world of a broker that is alone."""

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Nobody hears."""

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """Nobody has asked."""

    def leaves(self, partition: TopicPartition) -> None:
        """Nobody is asked."""

    def stopped(self, why: str) -> None:
        """It runs no more."""

    def log(self, line: str) -> None:
        """Nobody reads."""


def _controller_after(core: Controller, message: Message) -> tuple[Controller, list[Error]]:
    """The controller after a message of broker 1, and what it answers to an AlterPartition."""
    step = controllers.handle(core, Received(1, message), 0)
    written = controllers.handle(step.core, Written(step.core.offset), 0)
    sent = [e.message for e in (*step.effects, *written.effects) if isinstance(e, Send)]
    return written.core, [m.error for m in sent if isinstance(m, AlterPartitionResponse)]


SITUATIONS: Final[dict[str, Callable[[Settings], bool]]] = {
    "follower-past-the-end": follower_past_the_end_is_no_acknowledgement,
    "cut-below-the-start": cut_below_the_start_restarts_the_log,
    "damaged-metadata": durable_metadata_survives,
    "shortened-log": shortened_log_is_unclean,
    "topic-made-again": refusal_ends_with_its_topic,
    "unwritten-checkpoint": unwritten_checkpoint_ends_the_broker,
    "new-minimum": new_minimum_clears_the_elr,
    "absent-metadata": absent_metadata_ends_the_start,
    "damaged-log-start": damaged_start_is_none,
    "damaged-batch": damaged_batch_is_not_sent,
    "another-cluster": other_cluster_is_refused,
}
"""By name: does the broker with these settings what it must?"""


def broken_in_a_situation(design: Design) -> str | None:
    """The first situation that the design does not stand; None if it stands all."""
    settings = Settings(insync_design=design)
    return next((name for name, stands in SITUATIONS.items() if not stands(settings)), None)
