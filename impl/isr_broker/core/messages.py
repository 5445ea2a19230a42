"""What brokers and the controller say to each other; the values that travel, without their encoding.

A message may be late, lost, or arrive twice. An answer therefore repeats what it answers, and who gets one that it no
longer waits for drops it. Offsets are those of Kafka: the position after the last record is the log end offset.
"""

from __future__ import annotations

from enum import Enum
from functools import total_ordering
from typing import Final, TypeAlias

import attrs


class Error(Enum):
    """Kafka's error codes, as far as they are answered here (org.apache.kafka.common.protocol.Errors)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    INVALID_COMMIT_OFFSET_SIZE = 28
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_PRODUCER_ID_MAPPING = 49
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INCONSISTENT_VOTER_SET = 94
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    INVALID_UPDATE_VERSION = 95
    INVALID_RECORD = 87
    UNKNOWN_TOPIC_ID = 100
    BROKER_ID_NOT_REGISTERED = 102
    DUPLICATE_BROKER_REGISTRATION = 101
    INCONSISTENT_CLUSTER_ID = 104
    UNSUPPORTED_ENDPOINT_TYPE = 115
    MISMATCHED_ENDPOINT_TYPE = 114
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGISTRATION = 119
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108


def error_of(code: int) -> Error:
    """The error with a code that somebody sent; UNKNOWN_SERVER_ERROR for one that is not answered here."""
    return _ERRORS.get(code, Error.UNKNOWN_SERVER_ERROR)


_ERRORS: Final = {error.value: error for error in Error}


BrokerId: TypeAlias = int
Offset: TypeAlias = int
LeaderEpoch: TypeAlias = int
Millis: TypeAlias = int

NO_EPOCH: Final = -1
"""The leader epoch of nothing: of the last record of an empty log, of a replica that has not learned any."""

NO_BROKER_EPOCH: Final = -1
"""The broker epoch of a follower whose version of Fetch does not say it (before KIP-903)."""


@total_ordering
@attrs.frozen(cache_hash=True)
class TopicPartition:
    """One partition of a topic; a broker holds at most one replica of it.

    In order of the topic's name, then of the number. Idle brokers sort thousands of these all the time, for which the
    order that attrs makes takes four times as long.
    """

    topic: str
    partition: int

    def __lt__(self, other: TopicPartition) -> bool:
        if self.topic == other.topic:
            return self.partition < other.partition
        return self.topic < other.topic

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@attrs.frozen
class EpochEnd:
    """A leader epoch and the offset at which it ends in somebody's log (OffsetForLeaderEpoch's answer)."""

    epoch: LeaderEpoch
    end: Offset


UNDEFINED_EPOCH_END: Final = EpochEnd(NO_EPOCH, -1)
"""The answer of a leader that knows no epoch from the asked one on (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)."""

# Between replicas of a partition.


@attrs.frozen(kw_only=True, cache_hash=True)
class FetchRequest:
    """A follower asks from its log end, which is its acknowledgement of everything before it (KIP-227's Fetch).

    `leader_epoch` is the one it is in (KIP-320), `last_epoch` that of its last record (KIP-595), `broker_epoch` its
    incarnation (KIP-903), `log_start` where its log starts (KIP-107). Model: the request of follower_sends_fetch.
    """

    partition: TopicPartition
    replica: BrokerId
    broker_epoch: int
    leader_epoch: LeaderEpoch
    offset: Offset
    last_epoch: LeaderEpoch
    log_start: Offset = 0
    max_wait_ms: Millis = 0
    max_bytes: int = 1_048_576

    def answer(
        self,
        leader: BrokerId,
        *,
        error: Error = Error.NONE,
        diverging: EpochEnd | None = None,
        records: bytes = b"",
        high_watermark: Offset = 0,
        log_start: Offset = 0,
    ) -> FetchResponse:
        """The answer of a leader to this."""
        return FetchResponse(
            partition=self.partition,
            leader=leader,
            leader_epoch=self.leader_epoch,
            offset=self.offset,
            last_epoch=self.last_epoch,
            error=error,
            diverging=diverging,
            records=records,
            high_watermark=high_watermark,
            log_start=log_start,
        )


@attrs.frozen(kw_only=True)
class _LeaderAnswer:
    """What a leader's answers repeat of the question, and whether it was taken."""

    partition: TopicPartition
    leader: BrokerId
    leader_epoch: LeaderEpoch
    offset: Offset
    last_epoch: LeaderEpoch
    error: Error = Error.NONE


@attrs.frozen(kw_only=True)
class FetchResponse(_LeaderAnswer):
    """A leader's answer: batches from the offset asked for and its watermark, or where the logs part, or an error.

    `leader`, `leader_epoch`, `offset` and `last_epoch` repeat the request: without the last, a late divergence from
    before a truncation would pass for the answer to the fetch after it. Model: the answers of leader_answers_fetch
    and leader_answers_diverging; `log_start`, the first offset that the leader still has, is outside of it.
    """

    diverging: EpochEnd | None = None
    records: bytes = b""
    high_watermark: Offset = 0
    log_start: Offset = 0


@attrs.frozen(kw_only=True, cache_hash=True)
class OffsetForLeaderEpochRequest:
    """A follower asks, before it fetches, where the epoch of its last record ends in the leader's log (KIP-101).

    `leader_epoch` is the one it is in (KIP-320), `last_epoch` the one it asks about, `offset` its log end, which no
    leader looks at. Designs since KIP-595 do not ask. Model: follower_asks_for_epoch_end.
    """

    partition: TopicPartition
    replica: BrokerId
    leader_epoch: LeaderEpoch
    offset: Offset
    last_epoch: LeaderEpoch

    def answer(
        self, leader: BrokerId, ends: EpochEnd | None, error: Error = Error.NONE
    ) -> OffsetForLeaderEpochResponse:
        """The answer of a leader to this."""
        return OffsetForLeaderEpochResponse(
            partition=self.partition,
            leader=leader,
            leader_epoch=self.leader_epoch,
            offset=self.offset,
            last_epoch=self.last_epoch,
            error=error,
            ends=ends,
        )


@attrs.frozen(kw_only=True)
class OffsetForLeaderEpochResponse(_LeaderAnswer):
    """Where the epoch ends, or `UNDEFINED_EPOCH_END`; what was asked is repeated. Model: leader_answers_epoch_end."""

    ends: EpochEnd | None = None


# Between a leader and the controller.


@attrs.frozen(kw_only=True)
class AlterPartitionRequest:
    """A leader asks for another ISR of the metadata it knows (KIP-497, KIP-903).

    `isr` has each proposed member with its broker epoch as the leader saw it, -1 if it did not look. `attempt` counts
    what the leader has sent in its epoch: a request is sent again when no answer comes, and the copies may overtake
    each other (docs/adr/0007).
    """

    partition: TopicPartition
    leader: BrokerId
    broker_epoch: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]
    attempt: int = 1

    @property
    def members(self) -> frozenset[BrokerId]:
        """The proposed ISR."""
        return frozenset(member for member, _ in self.isr)

    def answer(
        self, error: Error, new_leader_epoch: LeaderEpoch | None = None, new_partition_epoch: int | None = None
    ) -> AlterPartitionResponse:
        """The controller's answer to this: an error, or the epochs of the partition from now on."""
        answer = AlterPartitionResponse(
            partition=self.partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            attempt=self.attempt,
            error=error,
        )
        if error is not Error.NONE:
            return answer
        return attrs.evolve(
            answer,
            new_leader_epoch=self.leader_epoch if new_leader_epoch is None else new_leader_epoch,
            new_partition_epoch=self.partition_epoch + 1 if new_partition_epoch is None else new_partition_epoch,
        )


@attrs.frozen(kw_only=True)
class AlterPartitionResponse:
    """The controller's answer; `leader_epoch`, `partition_epoch` and `attempt` repeat the request's.

    Without an error `new_leader_epoch` and `new_partition_epoch` are those of the partition after the decision. The
    partition epoch is the request's own where the ISR was that already, so that no record was written.
    """

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    partition_epoch: int
    attempt: int = 1
    error: Error = Error.NONE
    new_leader_epoch: LeaderEpoch = NO_EPOCH
    new_partition_epoch: int = -1


# Between a broker and the controller.


@attrs.frozen
class MetadataPosition:
    """Up to where the metadata log was read: an offset, and the life of the controller that wrote the record there.

    (0, 0) for nothing. Two logs that have the same life at an offset are the same up to there, as with Raft's terms.
    """

    offset: int = 0
    life: int = 0


NOTHING_READ: Final = MetadataPosition()


@attrs.frozen(kw_only=True)
class RegisterBroker:
    """A starting broker registers; `incarnation` is unique to the process (KIP-631).

    `previous_broker_epoch` is that of its last life if that ended with a clean shutdown, else -1 (KIP-966). `cluster`
    is the id of the cluster that its data belong to (KIP-78), `directory` that of its data directory, which no other
    broker has (KIP-858). Clients find it at `host`, brokers at `peer_host`, which is empty if that is the same.
    `position` is up to where its earlier lives have read the metadata log, as far as its disk remembers.
    """

    broker: BrokerId
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


@attrs.frozen(kw_only=True)
class BrokerRegistered:
    """The answer to a registration: the broker epoch, or why not."""

    broker: BrokerId
    incarnation: int
    broker_epoch: int = -1
    error: Error = Error.NONE


@attrs.frozen(kw_only=True)
class Heartbeat:
    """A broker keeps its session alive, says how much of the metadata it knows and whether it wants to stop.

    One that `reads_log` fetches the controllers' log itself. So what it has read is in that log, whoever leads.
    """

    broker: BrokerId
    broker_epoch: int
    metadata_offset: int
    wants_to_shut_down: bool = False
    reads_log: bool = False


@attrs.frozen(kw_only=True)
class HeartbeatAnswer:
    """Whether the broker is fenced, and whether it may stop now."""

    broker: BrokerId
    broker_epoch: int
    fenced: bool = True
    may_shut_down: bool = False
    error: Error = Error.NONE


@attrs.frozen(kw_only=True)
class FetchMetadata:
    """A broker asks for what changed after the metadata offset that it knows; parked until something has.

    `life` is the controller's life at that offset. `offline` are the partitions whose logs here are damaged, and
    `offline_changes` how often these have changed since the broker was registered.
    """

    broker: BrokerId
    broker_epoch: int
    offset: int
    life: int = 0
    offline: tuple[TopicPartition, ...] = ()
    offline_changes: int = 0

    @property
    def position(self) -> MetadataPosition:
        """Up to where the broker has read."""
        return MetadataPosition(self.offset, self.life)


@attrs.frozen(kw_only=True, cache_hash=True)
class PartitionMetadata:
    """One partition as the controller has it (PartitionRegistration): who leads, in which epochs, who is in sync.

    `topic_id` is unique to the topic, so that a topic of the same name is another one.
    `configs` are the topic's own settings by Kafka's names. `min_insync_replicas` and `unclean_leader_election` are
    what these and the controller's settings come to.
    While a reassignment is under way `replicas` has those who are added and those who are removed, too. Who is in both
    was added for a target that is none any more.
    Without replicas, the partition is gone (RemoveTopicRecord).
    """

    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    isr: frozenset[BrokerId]
    leader: BrokerId | None
    leader_epoch: LeaderEpoch = 0
    partition_epoch: int = 0
    elr: frozenset[BrokerId] = frozenset()
    last_known_leader: BrokerId | None = None
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    topic_id: int = 0
    configs: tuple[tuple[str, str], ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, or the replication factor if that is smaller (Partition.effectiveMinIsr)."""
        return min(self.min_insync_replicas, len(self.replicas))


@attrs.frozen(kw_only=True, cache_hash=True)
class BrokerMetadata:
    """One broker as the controller has it (BrokerRegistration); the broker epoch is where it was registered.

    Without an epoch it is registered no more (UnregisterBrokerRecord).
    """

    broker: BrokerId
    epoch: int
    incarnation: int = 0
    fenced: bool = True
    shutting_down: bool = False
    host: str = ""
    port: int = 0
    rack: str = ""
    directory: str = ""
    peer_host: str = ""
    peer_port: int = 0


def unregistration(broker: BrokerId) -> BrokerMetadata:
    """The record of a broker that is registered no more."""
    return BrokerMetadata(broker=broker, epoch=-1)


def peer_address(broker: BrokerMetadata | RegisterBroker) -> tuple[str, int]:
    """Where brokers find a broker."""
    return (broker.peer_host, broker.peer_port) if broker.peer_host else (broker.host, broker.port)


def removed_partition(tp: TopicPartition) -> PartitionMetadata:
    """The record of a partition that is no more."""
    return PartitionMetadata(partition=tp, replicas=(), isr=frozenset(), leader=None)


@attrs.frozen
class ControllerLife:
    """The controller's process has started; the records from this one on are those of this life.

    A life is unique to its process. Kafka: the leader epoch of a batch of __cluster_metadata.
    """

    life: int


@attrs.frozen(kw_only=True)
class MetadataSnapshot:
    """All brokers and partitions at an offset, in the place of every record up to there (KIP-630).

    `lives` has the offset and the number of each life of the controller.
    """

    offset: int
    brokers: tuple[BrokerMetadata, ...] = ()
    partitions: tuple[PartitionMetadata, ...] = ()
    lives: tuple[MetadataPosition, ...] = ()


def lost_metadata(reader: str, offset: int) -> str:
    """The sentence about a metadata log that does not have what somebody has read."""
    return (
        f"{reader} the controller's metadata.log up to record {offset}, and it is not there: that file is missing,"
        " older or ends early; put the newest one back and start the controller again"
    )


MetadataRecord: TypeAlias = PartitionMetadata | BrokerMetadata | MetadataSnapshot | ControllerLife
"""A record of the metadata log: the whole new value of one partition or broker, or of all; or a life that begins."""


@attrs.frozen(kw_only=True)
class Metadata:
    """What changed since the offset asked for, as it is at `offset`, which the controller's `life` has written.

    With `whole` it names all that there is: what was removed before is forgotten, and whoever has more removes it.
    """

    since: int
    offset: int
    brokers: tuple[BrokerMetadata, ...] = ()
    partitions: tuple[PartitionMetadata, ...] = ()
    whole: bool = False
    life: int = 0


@attrs.frozen(kw_only=True)
class CreateTopic:
    """An admin asks for a topic (CreateTopics); `replication_factor` -1 means the default.

    `assignments`: the replicas of each partition, the preferred leader first, if the admin chooses them. With
    `only_asks` nothing is created, and the answer says whether it would have been. `topic_id` is drawn by whoever hands
    the request to the controller's core, which has no chance of its own; 0 has it take the metadata offset.
    """

    request: int
    topic: str
    partitions: int = 1
    replication_factor: int = -1
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    only_asks: bool = False
    min_insync_replicas: int | None = None
    unclean_leader_election: bool | None = None
    configs: tuple[tuple[str, str], ...] = ()
    topic_id: int = 0


@attrs.frozen(kw_only=True)
class CreatePartitions:
    """An admin wants a topic to have `count` partitions, more than it has (CreatePartitions, KIP-195).

    `assignments`: the replicas of each new partition, if the admin chooses them. With `only_asks` nothing is created.
    """

    request: int
    topic: str
    count: int
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    only_asks: bool = False


@attrs.frozen(kw_only=True)
class AlterTopicConfigs:
    """An admin changes settings of a topic while it is in use (IncrementalAlterConfigs, KIP-339; AlterConfigs).

    `changes` has a setting's new value, or None where the topic is to have none of its own. With `replaces` the topic
    has no other settings of its own from then on. With `only_asks` nothing is changed.
    """

    request: int
    topic: str
    changes: tuple[tuple[str, str | None], ...] = ()
    replaces: bool = False
    only_asks: bool = False


@attrs.frozen(kw_only=True)
class DeleteTopic:
    """An admin wants a topic gone (DeleteTopics)."""

    request: int
    topic: str


@attrs.frozen(kw_only=True)
class ElectPreferredLeader:
    """An admin asks that the first replica of a partition leads again (ElectLeaders, KIP-460)."""

    request: int
    partition: TopicPartition


@attrs.frozen(kw_only=True)
class ElectUncleanLeader:
    """An admin asks that anybody leads, since nobody eligible is there; whatever the topic's setting says."""

    request: int
    partition: TopicPartition


@attrs.frozen(kw_only=True)
class ReassignPartition:
    """An admin wants a partition to have these replicas, the preferred leader first (AlterPartitionReassignments).

    None cancels what is under way. Without `allows_other_factor` there have to be as many as there would be now.
    """

    request: int
    partition: TopicPartition
    replicas: tuple[BrokerId, ...] | None
    allows_other_factor: bool = True


@attrs.frozen(kw_only=True)
class ListReassignments:
    """An admin asks what is under way: the first partitions after one (ListPartitionReassignments)."""

    request: int
    after: TopicPartition | None = None


@attrs.frozen(kw_only=True)
class Reassignments:
    """Partitions whose reassignment is under way, in their order; `are_more` says to ask again after the last."""

    request: int
    partitions: tuple[PartitionMetadata, ...] = ()
    are_more: bool = False


@attrs.frozen(kw_only=True)
class UnregisterBroker:
    """An admin says that a broker is gone for good (UnregisterBroker, KIP-631)."""

    request: int
    broker: BrokerId


@attrs.frozen(kw_only=True)
class AdminAnswer:
    """The answer to an admin's request; of a topic that was created its id, and how many partitions and replicas."""

    request: int
    error: Error = Error.NONE
    topic_id: int = 0
    partitions: int = -1
    replication_factor: int = -1


Admin: TypeAlias = (
    CreateTopic
    | CreatePartitions
    | AlterTopicConfigs
    | DeleteTopic
    | ElectPreferredLeader
    | ElectUncleanLeader
    | UnregisterBroker
    | ReassignPartition
    | ListReassignments
)
"""What admins ask the controller, and AdminAnswer answers, or Reassignments."""
ToController: TypeAlias = AlterPartitionRequest | RegisterBroker | Heartbeat | FetchMetadata | Admin
FromController: TypeAlias = (
    AlterPartitionResponse | BrokerRegistered | HeartbeatAnswer | Metadata | AdminAnswer | Reassignments
)
BetweenReplicas: TypeAlias = FetchRequest | FetchResponse | OffsetForLeaderEpochRequest | OffsetForLeaderEpochResponse
Message: TypeAlias = BetweenReplicas | ToController | FromController
