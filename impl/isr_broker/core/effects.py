"""What a core asks of its driver. Nothing of it is done until an input says so; order within one step is kept.

| effect | of the model's action | answered by |
|---|---|---|
| `AppendLog` | (before) leader_appends, follower_appends | `Appended`, `DiskFailed` |
| `TruncateLog` | (before) follower_truncates, becomes_follower (before KIP-101) | `Truncated`, `DiskFailed` |
| `AdvanceLogStart` | none: the model's logs have no start | `Retained`, `DiskFailed` |
| `AssignEpoch` | (before) becomes_leader | `EpochAssigned`, `DiskFailed` |
| `AnswerFetch` | leader_answers_fetch, leader_answers_diverging | - |
| `AnswerProduce` | whatever moves the watermark (`acked`) | - |
| `AnswerConsume` | consumer_reads | - |
| `AnswerDelete` | none: the model's logs have no start | - |
| `Send` | the request or answer that the action puts in flight | whatever comes back, if anything does |
| `AppendMetadata` | every action of the controller that changes the metadata | `Written` |
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import (
    BrokerId,
    Error,
    FetchResponse,
    LeaderEpoch,
    Message,
    MetadataRecord,
    Offset,
    TopicPartition,
)

CONTROLLER: Final[BrokerId] = -1
"""Where messages to the controller go."""


@attrs.frozen(kw_only=True)
class Slice:
    """Whole batches of a log from one offset on, to be read when the answer is sent.

    At least one batch, if there is one below `up_to`, however large; then as many as fit into `max_bytes`.
    """

    offset: Offset
    up_to: Offset
    max_bytes: int


# To the disk.


@attrs.frozen(kw_only=True)
class AppendLog:
    """Write batches, stamped with offset and epoch, at the log end; flush them as well if `flush`."""

    partition: TopicPartition
    records: bytes
    flush: bool = False


@attrs.frozen(kw_only=True)
class TruncateLog:
    """Cut the log, and its leader epochs, at the offset; with `anew` it has nothing, and starts there."""

    partition: TopicPartition
    offset: Offset
    anew: bool = False


@attrs.frozen(kw_only=True)
class AdvanceLogStart:
    """Forget what is before the offset, as the leader has (UnifiedLog.maybeIncrementLogStartOffset)."""

    partition: TopicPartition
    offset: Offset


@attrs.frozen(kw_only=True)
class AssignEpoch:
    """Note durably that the leader epoch starts at the offset (LeaderEpochFileCache.assign)."""

    partition: TopicPartition
    epoch: LeaderEpoch
    start: Offset


@attrs.frozen
class OpenLog:
    """Open the log of a partition, creating it for this topic if there is none; answered by LogOpened."""

    partition: TopicPartition
    topic_id: int = 0


@attrs.frozen
class DeleteLog:
    """Remove the log of a partition whose topic was deleted; nobody waits for it."""

    partition: TopicPartition


@attrs.frozen
class SetAside:
    """Give the log of a partition a name that ends in -stray; nobody waits for it (LogManager.logStrayDirName)."""

    partition: TopicPartition


@attrs.frozen
class DamageAlarm:
    """Tell an operator that a log, which can be read, cannot be right; its replica is offline."""

    partition: TopicPartition
    why: str


@attrs.frozen
class CheckpointWatermarks:
    """Write the high watermarks of all replicas (replication-offset-checkpoint)."""

    watermarks: tuple[tuple[TopicPartition, Offset], ...]


@attrs.frozen
class StopProcess:
    """Flush and close all logs, leave the mark of a clean shutdown with this broker epoch, and end."""

    broker_epoch: int
    watermarks: CheckpointWatermarks


@attrs.frozen
class Halt:
    """End at once, leaving no mark: the disk has failed (Kafka halts when its last log directory does)."""

    why: str


@attrs.frozen
class PartitionHalt:
    """Not an order but a note for people: this follower asks no more until it hears of a new leader epoch.

    If its log `is_damaged` the replica is to go offline.
    """

    partition: TopicPartition
    why: str
    is_damaged: bool = False


# To other brokers.


@attrs.frozen
class Send:
    """Send a message to a broker, or to CONTROLLER."""

    to: BrokerId
    message: Message


@attrs.frozen(kw_only=True)
class AnswerFetch:
    """Answer a follower, with the records of the slice put into the response when it leaves."""

    to: BrokerId
    response: FetchResponse
    records: Slice | None = None


# To clients.


@attrs.frozen(kw_only=True)
class AnswerProduce:
    """Answer a producer: the offset of its first record, or an error."""

    request: int
    partition: TopicPartition
    error: Error = Error.NONE
    offset: Offset = -1


@attrs.frozen(kw_only=True)
class AnswerConsume:
    """Answer a consumer: records below the watermark, or an error."""

    request: int
    partition: TopicPartition
    error: Error = Error.NONE
    records: Slice | None = None
    high_watermark: Offset = -1


@attrs.frozen(kw_only=True)
class AnswerDelete:
    """Answer who wanted records forgotten: where every log starts by now, or an error."""

    request: int
    partition: TopicPartition
    error: Error = Error.NONE
    low_watermark: Offset = -1


# Of the controller.


@attrs.frozen(kw_only=True)
class AppendMetadata:
    """Make records of the metadata durable; `offset` is that after the last of them."""

    offset: int
    records: tuple[MetadataRecord, ...]


@attrs.frozen(kw_only=True)
class Took:
    """Not an order but a note: this action of the protocol was taken, for traces and tests."""

    action: str
    partition: TopicPartition
    replica: BrokerId


DiskOperation: TypeAlias = AppendLog | TruncateLog | AssignEpoch
ReplicaEffect: TypeAlias = (
    DiskOperation | AdvanceLogStart | PartitionHalt | Send | AnswerFetch | AnswerProduce | AnswerConsume | AnswerDelete
)
Effect: TypeAlias = (
    ReplicaEffect
    | OpenLog
    | DeleteLog
    | SetAside
    | DamageAlarm
    | CheckpointWatermarks
    | StopProcess
    | Halt
    | AppendMetadata
    | Took
)
