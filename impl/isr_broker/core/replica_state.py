"""The state of one replica: its log as it knows it, its watermark, whom it believes to lead, and its part in that.

Everything here is a value; `leader` and `follower` say how it changes. Beside each field stands the variable of the
model that it is the concrete form of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
from immutables import Map

from isr_broker.core.effects import ReplicaEffect
from isr_broker.core.inputs import Consume, LearnMetadata, Produce
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    NO_EPOCH,
    AlterPartitionRequest,
    BrokerId,
    FetchRequest,
    FetchResponse,
    LeaderEpoch,
    Millis,
    Offset,
    OffsetForLeaderEpochRequest,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.settings import Settings

# A leader.


@attrs.frozen(kw_only=True)
class Follower:
    """What a leader knows of a follower in its epoch (Kafka: Replica.stateSnapshot).

    - `end`: where it fetched last, None before it did (follower_end).
    - `broker_epoch`: its incarnation then (follower_broker_epoch).
    - `caught_up_at`: when it last had everything, None if never in this epoch (lastCaughtUpTimeMs); no variable of
      the model, where whoever is not at the log end may count as lagging.
    - `fetched_at`, `leader_end_then`: when it fetched last, and where the leader's log ended then.
    - `log_start`: where its log started then, -1 before it fetched.
    """

    end: Offset | None = None
    broker_epoch: int = -1
    caught_up_at: Millis | None = None
    fetched_at: Millis = 0
    leader_end_then: Offset = 0
    log_start: Offset = -1


@attrs.frozen(kw_only=True)
class PendingIsr:
    """An ISR that the leader has proposed and not yet seen decided (pending_isr; PendingExpandIsr, PendingShrinkIsr).

    `in_flight` is whether an answer is still to come (alter); without one only newer metadata settles it (5).
    """

    request: AlterPartitionRequest
    sent_at: Millis
    in_flight: bool = True

    @property
    def isr(self) -> frozenset[BrokerId]:
        """The proposed ISR."""
        return self.request.members


@attrs.frozen(kw_only=True)
class Waiting:
    """A producer with acks=all, waiting until the watermark reaches `end` (DelayedProduce)."""

    request: int
    first: Offset
    end: Offset
    deadline: Millis


@attrs.frozen(kw_only=True)
class WaitingDeletion:
    """Who wants records forgotten, waiting until every log starts at `offset` or later (DelayedDeleteRecords)."""

    request: int
    offset: Offset
    deadline: Millis


@attrs.frozen
class ParkedFetch:
    """A follower's fetch that waits for records (DelayedFetch)."""

    request: FetchRequest
    deadline: Millis


@attrs.frozen
class ParkedConsume:
    """A consumer's fetch that waits for the watermark (DelayedFetch)."""

    request: Consume
    deadline: Millis


@attrs.frozen(kw_only=True)
class Leading:
    """What only a leader has.

    - `isr`: the ISR that it takes to be committed (isr), `pending` what it has asked for (pending_isr, alter).
    - `followers`: every other replica (follower_end, follower_broker_epoch).
    - `epoch_start`: where its epoch starts in its log (start_of_own_epoch).
    - `min_insync_replicas`, `max_message_bytes`: what the topic's settings and the broker's come to.
    - `ineligible`: who may not join now, being fenced or shutting down as far as this broker knows (KIP-841).
    - `attempts`: how many AlterPartition requests it has sent in this epoch, those sent again included.
    - `joining`: followers whose last fetch allows them to be proposed.
    - `next_lag_check`: when the ISR is next looked at for members that lag (the isr-expiration task).
    """

    isr: frozenset[BrokerId]
    followers: Map[BrokerId, Follower]
    epoch_start: Offset
    min_insync_replicas: int
    max_message_bytes: int
    next_lag_check: Millis
    pending: PendingIsr | None = None
    attempts: int = 0
    ineligible: frozenset[BrokerId] = frozenset()
    joining: frozenset[BrokerId] = frozenset()
    waiting: tuple[Waiting, ...] = ()
    fetches: tuple[ParkedFetch, ...] = ()
    deletions: tuple[WaitingDeletion, ...] = ()


# A follower.


@attrs.frozen(kw_only=True)
class Following:
    """What only a follower has: the question that is in flight (fetch and its fields), and when to try again.

    `truncating`: it must find its truncation point before it fetches (truncating; before KIP-595). `halts`: it asks no
    more in this leader epoch (AbstractFetcherThread.markPartitionFailed).
    """

    fetch: FetchRequest | OffsetForLeaderEpochRequest | None = None
    truncating: bool = False
    halts: bool = False
    sent_at: Millis = 0
    retry_at: Millis = 0


# What is being written.


@attrs.frozen
class ProducerAppend:
    """A producer's records are on their way to the disk; `first` is the offset they got."""

    produce: Produce
    first: Offset


@attrs.frozen
class FollowerAppend:
    """A leader's records are on their way to the disk."""

    response: FetchResponse


@attrs.frozen
class FollowerTruncation:
    """The log is being cut where it parts from the leader's.

    - `again`: the logs may part earlier still, so the follower asks again before it fetches (KIP-279).
    - `to_watermark`: it is cut at the replica's own watermark, because the leader does not know its epoch.
    - `anew`: the log end was outside the leader's log, so the follower moves to the leader's start or end; no action of
      the model, whose logs have no start.
    - `batches`: what is appended then, where the leader's log starts within a batch.
    """

    point: Offset
    again: bool = False
    to_watermark: bool = False
    anew: bool = False
    batches: FetchResponse | None = None


@attrs.frozen
class EnteringEpoch:
    """The log is being prepared for a new epoch: its start noted by a leader, or cut by a follower before KIP-101."""

    news: LearnMetadata


PendingOperation: TypeAlias = ProducerAppend | FollowerAppend | FollowerTruncation | EnteringEpoch


@attrs.frozen(kw_only=True)
class Replica:
    """One replica of a partition on one broker (Kafka: Partition).

    - `log`: what it knows of its log (log), `high_watermark` what it knows to be committed (high_watermark).
    - `metadata`: the partition as it last learned it (leader, leader_epoch, partition_epoch), None before it did.
    - `partition_epoch`: the newest of which it knows, from metadata or from the answer to its own request.
    - `role`: as leader or follower; None before it learned whom to follow.
    - `pending_operation`: the disk operation that is not yet reported; until it is, the replica takes no other input.
    - `consumers`: fetches of consumers that wait for the watermark; `consumers_until`: the first of their deadlines.
    """

    partition: TopicPartition
    me: BrokerId
    broker_epoch: int
    settings: Settings = attrs.field(repr=False)
    log: LogView = attrs.field(factory=LogView)
    high_watermark: Offset = 0
    metadata: PartitionMetadata | None = None
    partition_epoch: int = -1
    role: Leading | Following | None = None
    pending_operation: PendingOperation | None = None
    consumers: tuple[ParkedConsume, ...] = ()
    consumers_until: Millis | None = None

    @property
    def leader(self) -> BrokerId | None:
        """Whom this replica believes to lead."""
        return self.metadata.leader if self.metadata else None

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The leader epoch that this replica last learned."""
        return self.metadata.leader_epoch if self.metadata else NO_EPOCH


@attrs.frozen
class Step:
    """What came of one input: the replica from now on, what it asks for, and which action of the model it was.

    `action` is None where the model sees nothing: an input that only asked the disk, or that nobody waited for.
    """

    core: Replica
    effects: tuple[ReplicaEffect, ...] = ()
    action: str | None = None


def leading(replica: Replica) -> Leading:
    """Its part as a leader; only called where it is one."""
    assert isinstance(replica.role, Leading), f"{replica.partition}: broker {replica.me} does not lead"
    return replica.role


def following(replica: Replica) -> Following:
    """Its part as a follower; only called where it is one."""
    assert isinstance(replica.role, Following), f"{replica.partition}: broker {replica.me} does not follow"
    return replica.role


def with_consumer(replica: Replica, consumer: ParkedConsume) -> Replica:
    """One more waits for the watermark."""
    until = replica.consumers_until
    until = consumer.deadline if until is None else min(until, consumer.deadline)
    return attrs.evolve(replica, consumers=(*replica.consumers, consumer), consumers_until=until)


def without_consumers(replica: Replica, leaves: Callable[[ParkedConsume], bool]) -> tuple[Replica, list[ParkedConsume]]:
    """The replica for which these wait no more, and who they are, in their order."""
    leavers, rest = list[ParkedConsume](), list[ParkedConsume]()
    for consumer in replica.consumers:
        (leavers if leaves(consumer) else rest).append(consumer)
    if not leavers:
        return replica, leavers
    until = min((consumer.deadline for consumer in rest), default=None)
    return attrs.evolve(replica, consumers=tuple(rest), consumers_until=until), leavers


def flushes(replica: Replica, end: Offset) -> bool:
    """Whether an append up to `end` is forced to disk before it counts (log.flush.interval.messages)."""
    due = end - replica.log.flushed >= replica.settings.log_flush_interval_messages
    return due and not replica.settings.insync_design.ack_before_flush
