"""What a core can be told: one value per input, with the action of the protocol that it leads to.

Beside these, the messages of `messages` are inputs of whoever receives them. An input that only asks for a disk
operation is no action yet; the action is taken when the operation is reported done. Who has been told something that it
cannot use any more (an answer to a request that it gave up) changes nothing.

| input | action of the model |
|---|---|
| `Produce` | leader_appends, when its `Appended` comes |
| `FetchRequest` | leader_answers_fetch or leader_answers_diverging |
| `OffsetForLeaderEpochRequest` | leader_answers_epoch_end, leader_answers_undefined_epoch (before KIP-595) |
| `OffsetForLeaderEpochResponse` | follower_truncates, follower_truncates_to_watermark (before KIP-595) |
| `FetchResponse` | follower_appends or follower_truncates, at once or when its `Appended` or `Truncated` comes |
| `LearnMetadata` | becomes_leader (when its `EpochAssigned` comes), becomes_follower, leader_learns_isr |
| `AlterPartitionResponse` | leader_adopts_isr, leader_rolls_back |
| `Tick` of a replica | leader_proposes_shrink, leader_proposes_expansion, follower_sends_fetch |
| `Consume` | consumer_reads |
| `DeleteRecords`, `Retained` | none: the model's logs have no start |
| `LogDamaged` | none: the model's disks keep what was flushed |
| `AlterPartitionRequest` | controller_accepts_ / controller_refuses_ / controller_rejects_stale_alter_partition |
| `Heartbeat` | controller_unfences, controller_elects_returned, ..., broker_asks_to_shut_down |
| `RegisterBroker` | broker_restarts |
| `Tick` of the controller | controller_fences_..., controller_elects_..., controller_moves_leadership |
| a crash, a restart | broker_crashes, broker_loses_power, broker_shuts_down: the driver's doing |
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    NOTHING_READ,
    AlterPartitionResponse,
    BrokerId,
    FetchRequest,
    FetchResponse,
    LeaderEpoch,
    Message,
    MetadataPosition,
    Millis,
    Offset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.producers import Verdict

# From clients.


@attrs.frozen(kw_only=True)
class Produce:
    """A producer's batches (record batch v2, one after the other) for one partition; `acks` is 0, 1 or -1 for all.

    `verdict` is that on its records, where somebody has looked at them already, in turns. Without it the core looks.
    """

    request: int
    partition: TopicPartition
    records: bytes
    acks: int = -1
    timeout_ms: Millis = 30_000
    verdict: Verdict | None = None


@attrs.frozen(kw_only=True)
class Consume:
    """A consumer's fetch; `leader_epoch` is that in which it believes the replica to lead, None if it does not say.

    What is below `known_watermark` was found too little to be worth an answer: it waits until there is more than that.
    """

    request: int
    partition: TopicPartition
    offset: Offset
    max_wait_ms: Millis = 0
    max_bytes: int = 1_048_576
    leader_epoch: LeaderEpoch | None = None
    known_watermark: Offset = 0


@attrs.frozen(kw_only=True)
class Withdrawal:
    """Whoever asked for records is gone, and its question with it. Kafka keeps it until its time is over."""

    request: int
    partition: TopicPartition


@attrs.frozen(kw_only=True)
class DeleteRecords:
    """A client wants the records below an offset forgotten, or all that are committed (-1; DeleteRecords, KIP-107).

    No action of the model, whose logs have no start.
    """

    request: int
    partition: TopicPartition
    offset: Offset
    timeout_ms: Millis = 30_000


# From the metadata.


@attrs.frozen(kw_only=True)
class LearnMetadata:
    """The broker has learned newer metadata of a partition, and who of its replicas may not be in sync now."""

    metadata: PartitionMetadata
    ineligible: frozenset[BrokerId] = frozenset()


# From the disk; `log` is the log as it is after the operation.


@attrs.frozen(kw_only=True)
class Appended:
    """The batches of an `AppendLog` are written, and flushed if that was asked."""

    partition: TopicPartition
    log: LogView


@attrs.frozen(kw_only=True)
class Truncated:
    """A `TruncateLog` is done."""

    partition: TopicPartition
    log: LogView


@attrs.frozen(kw_only=True)
class EpochAssigned:
    """The start of a leader epoch of an `AssignEpoch` is on disk."""

    partition: TopicPartition
    log: LogView


@attrs.frozen(kw_only=True)
class Retained:
    """Old segments are gone, or idle producers forgotten; of its own accord, or as an `AdvanceLogStart` asked.

    No action of the model, whose logs have no start. It never waits its turn: the log is so already.
    """

    partition: TopicPartition
    log: LogView


@attrs.frozen(kw_only=True)
class DiskFailed:
    """A disk operation failed: the log of the partition cannot be trusted any more, and its replica goes offline.

    Kafka: KafkaStorageException, LogDirFailureChannel.
    """

    partition: TopicPartition
    why: str = ""


@attrs.frozen(kw_only=True)
class LogOpened:
    """The log of a partition is open, with the watermark that was checkpointed, and of which topic it is.

    `is_certain`: a checksum says that the topic id is the one that was written.
    """

    partition: TopicPartition
    log: LogView
    high_watermark: Offset = 0
    topic_id: int = 0
    is_certain: bool = False


@attrs.frozen(kw_only=True)
class LogDamaged:
    """The log of a partition is not as it was written: its replica is offline, until another has all of it.

    Kafka: KafkaStorageException, and an offline log directory. `topic_id`: of which topic it is, 0 unless a checksum
    says so.
    """

    partition: TopicPartition
    why: str = ""
    topic_id: int = 0


@attrs.frozen
class Written:
    """The metadata log is durable up to this offset (the controller's `AppendMetadata` is done).

    `compacted`: it begins with a snapshot of that offset now.
    """

    offset: int
    compacted: bool = False


# From the driver.


@attrs.frozen
class Tick:
    """It is the time that was asked for; one thing that is due happens, and the next deadline says if there is more.

    To a node a driver may say whose turn it is, having looked it up (`node.wake`).
    """

    partition: TopicPartition | None = None


@attrs.frozen
class Start:
    """The process starts. The logs that were found are recovered by now, each of them told as a `LogOpened`.

    `position`: up to where the metadata log was read before, as far as the disk remembers.
    """

    incarnation: int
    previous_broker_epoch: int = -1
    host: str = ""
    port: int = 0
    rack: str = ""
    cluster: str = ""
    directory: str = ""
    peer_host: str = ""
    peer_port: int = 0
    position: MetadataPosition = NOTHING_READ


@attrs.frozen
class ShutDown:
    """The process is asked to stop in order."""


@attrs.frozen
class Received:
    """A message from another broker, the controller (CONTROLLER) or an admin."""

    source: BrokerId
    message: Message


DiskDone: TypeAlias = Appended | Truncated | EpochAssigned | Retained | DiskFailed
ReplicaInput: TypeAlias = (
    Produce
    | Consume
    | Withdrawal
    | DeleteRecords
    | FetchRequest
    | FetchResponse
    | OffsetForLeaderEpochRequest
    | OffsetForLeaderEpochResponse
    | LearnMetadata
    | AlterPartitionResponse
    | DiskDone
    | Tick
)
NodeInput: TypeAlias = (
    Start
    | Received
    | Produce
    | Consume
    | Withdrawal
    | DeleteRecords
    | LogOpened
    | LogDamaged
    | DiskDone
    | ShutDown
    | Tick
)
ControllerInput: TypeAlias = Received | Written | Tick
