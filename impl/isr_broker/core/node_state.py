"""The state of one broker as a value; `node` says how it changes."""

from __future__ import annotations

from enum import Enum

import attrs
from immutables import Map

from isr_broker.core.effects import Effect
from isr_broker.core.elections import Brokers
from isr_broker.core.inputs import ReplicaInput, Start
from isr_broker.core.messages import BrokerId, BrokerMetadata, Millis, PartitionMetadata, TopicPartition
from isr_broker.core.replica_state import Replica
from isr_broker.settings import Settings

Inbox = tuple[ReplicaInput, ...]


class Phase(Enum):
    """The life of a broker (BrokerLifecycleManager, BrokerState)."""

    LOADING = "its logs are being recovered"
    REGISTERING = "it asks the controller for a broker epoch"
    RUNNING = "it is registered, fenced or not"
    SHUTTING_DOWN = "it has asked to stop, and waits to be relieved"
    STOPPED = "it has ended"


@attrs.frozen(kw_only=True)
class Node:
    """One broker.

    - `start`: what it was started with; `broker_epoch` its incarnation as the controller counts (broker_epoch).
    - `fenced`: whether it has a session, as far as it knows.
    - `metadata_offset`, `brokers`, `partitions`: the metadata that it has learned, whoever it is about.
    - `held`: its replicas; `inboxes` what waits for those that await the disk; `wake` when each wants a Tick.
    - `opening`: replicas whose log is being opened; `topic_ids` whose logs those of the others are, 0 if unknown.
    """

    me: BrokerId
    settings: Settings = attrs.field(repr=False)
    phase: Phase = Phase.LOADING
    start: Start | None = None
    broker_epoch: int = -1
    fenced: bool = True
    metadata_offset: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    held: Map[TopicPartition, Replica] = attrs.field(factory=Map[TopicPartition, Replica])
    inboxes: Map[TopicPartition, Inbox] = attrs.field(factory=Map[TopicPartition, Inbox])
    wake: Map[TopicPartition, Millis] = attrs.field(factory=Map[TopicPartition, Millis])
    opening: frozenset[TopicPartition] = frozenset()
    topic_ids: Map[TopicPartition, int] = attrs.field(factory=Map[TopicPartition, int])
    next_call: Millis = 0
    next_poll: Millis = 0
    next_checkpoint: Millis = 0


@attrs.frozen
class NodeStep:
    """The node from now on, and what it asks for, in order."""

    core: Node
    effects: tuple[Effect, ...] = ()
