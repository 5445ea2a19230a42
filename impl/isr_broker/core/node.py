"""A broker: its registration and session, the metadata it knows, and the replicas that it holds.

`handle(node, input, now)`. The node routes: what is for a replica goes to that replica, and waits in its inbox while
the replica awaits the disk, so that a replica sees its inputs one at a time and in order. It decides nothing about
replication itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import attrs
from immutables import Map

from isr_broker.core import replica as replicas
from isr_broker.core.effects import (
    CONTROLLER,
    AnswerConsume,
    AnswerDelete,
    AnswerFetch,
    AnswerProduce,
    CheckpointWatermarks,
    DamageAlarm,
    DeleteLog,
    Effect,
    Halt,
    OpenLog,
    Send,
    SetAside,
    StopProcess,
    Took,
)
from isr_broker.core.elections import Brokers, available
from isr_broker.core.inputs import (
    Appended,
    Consume,
    DeleteRecords,
    DiskFailed,
    EpochAssigned,
    LearnMetadata,
    LogDamaged,
    LogOpened,
    NodeInput,
    Produce,
    Received,
    ReplicaInput,
    Retained,
    ShutDown,
    Start,
    Tick,
    Truncated,
    Withdrawal,
)
from isr_broker.core.leader import steps_down
from isr_broker.core.messages import (
    NO_BROKER_EPOCH,
    AlterPartitionResponse,
    BrokerId,
    BrokerMetadata,
    BrokerRegistered,
    Error,
    FetchMetadata,
    FetchRequest,
    FetchResponse,
    Heartbeat,
    HeartbeatAnswer,
    Metadata,
    Millis,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    PartitionMetadata,
    RegisterBroker,
    TopicPartition,
    lost_metadata,
    removed_partition,
    unregistration,
)
from isr_broker.core.replica_state import Replica
from isr_broker.core.truncation import refuses_to_say
from isr_broker.core.watermark import fetch_refusal, refuses_fetch
from isr_broker.settings import MAX_LONG, Settings

Inbox = tuple[ReplicaInput, ...]


class Phase(Enum):
    """The life of a broker (BrokerLifecycleManager, BrokerState)."""

    LOADING = "its logs are being recovered"
    REGISTERING = "it asks the controller for a broker epoch"
    RUNNING = "it is registered, fenced or not"
    SHUTTING_DOWN = "it has asked to stop, and waits to be relieved"
    STOPPED = "it has ended"


@attrs.frozen
class Damage:
    """A damaged log: whether it was so when the process started, and its topic, 0 unless a checksum says which."""

    at_start: bool
    topic_id: int = 0


@attrs.frozen(kw_only=True)
class Node:
    """One broker.

    - `start`: what the process was started with.
    - `broker_epoch`: the epoch under which the controller registered this process, -1 before that (broker_epoch).
    - `fenced`: whether the controller's last answer said that this broker has no session.
    - `metadata_offset`, `brokers`, `partitions`: the cluster metadata learned so far, and up to which offset, which the
      controller's `metadata_life` has written.
    - `replicas`: the replicas whose logs are open.
    - `inboxes`: for each replica that waits for the disk, the inputs that arrived meanwhile, oldest first.
    - `wake`: when each replica next wants a Tick.
    - `opening`: partitions whose logs are being opened; their replicas are not in `replicas` yet.
    - `offline`: the partitions whose logs are damaged. Such a log counts for nothing, and this broker neither leads nor
      follows there. `offline_changes` counts what changed.
    - `topic_ids`: the topic id of each open log (partition.metadata), 0 if the log has none. A log of a topic that the
      metadata had, and have no more, is removed. A log of which they know nothing is set aside. `certain_ids`: where a
      checksum says that the id is as it was written.
    - `registration_deadline`: when it ends if it is not registered by then; `registration_error`: the last refusal.
    - `unregistered_since`: since when the controller answers that it knows no registration of this broker.
    """

    me: BrokerId
    settings: Settings = attrs.field(repr=False)
    phase: Phase = Phase.LOADING
    start: Start | None = None
    broker_epoch: int = -1
    fenced: bool = True
    metadata_offset: int = 0
    metadata_life: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    replicas: Map[TopicPartition, Replica] = attrs.field(factory=Map[TopicPartition, Replica])
    inboxes: Map[TopicPartition, Inbox] = attrs.field(factory=Map[TopicPartition, Inbox])
    wake: Map[TopicPartition, Millis] = attrs.field(factory=Map[TopicPartition, Millis])
    opening: frozenset[TopicPartition] = frozenset()
    topic_ids: Map[TopicPartition, int] = attrs.field(factory=Map[TopicPartition, int])
    certain_ids: frozenset[TopicPartition] = frozenset()
    offline: Map[TopicPartition, Damage] = attrs.field(factory=Map[TopicPartition, Damage])
    offline_changes: int = 0
    registration_deadline: Millis = MAX_LONG
    registration_error: Error = Error.NONE
    unregistered_since: Millis = MAX_LONG
    next_call: Millis = 0
    next_poll: Millis = 0
    next_checkpoint: Millis = 0


@attrs.frozen
class NodeStep:
    """The node from now on, and what it asks for, in order."""

    core: Node
    effects: tuple[Effect, ...] = ()


def handle(node: Node, node_input: NodeInput, now: Millis) -> NodeStep:
    """One input of a broker."""
    if node.phase is Phase.STOPPED:
        return NodeStep(node)
    match node_input:
        case Start():
            node = attrs.evolve(node, start=node_input, phase=Phase.REGISTERING)
            node = attrs.evolve(
                node,
                next_checkpoint=now + node.settings.replica_high_watermark_checkpoint_interval_ms,
                registration_deadline=now + node.settings.initial_broker_registration_timeout_ms,
            )
            return _calls(node, now)
        case LogOpened():
            return _add_replica(node, node_input, now)
        case LogDamaged():
            at_start = node.phase is Phase.LOADING
            step = _goes_offline(node, node_input.partition, at_start, node_input.topic_id)
            return step if at_start else _then(step, _polls, now)
        case Appended() | Truncated() | EpochAssigned() | Retained():
            return _tell_replica(node, node_input.partition, node_input, now)
        case DiskFailed():
            step = _tell_replica(node, node_input.partition, node_input, now)
            stopped = attrs.evolve(step.core, phase=Phase.STOPPED)
            return NodeStep(stopped, (*step.effects, Halt(f"{node_input.partition}: {node_input.why}")))
        case Produce() | Consume() | Withdrawal() | DeleteRecords():
            return _tell_replica(node, node_input.partition, node_input, now)
        case ShutDown() if node.broker_epoch < 0:
            return _ends_unregistered(node)
        case ShutDown():
            return _calls(attrs.evolve(node, phase=Phase.SHUTTING_DOWN), now)
        case Tick():
            return _ticks(node, node_input.partition, now)
        case Received():
            return _deliver_message(node, node_input, now)


def deadline(node: Node) -> Millis | None:
    """When the node next wants a Tick; 0 for at once."""
    if node.phase in (Phase.LOADING, Phase.STOPPED):
        return None
    return min(own_deadline(node), min(node.wake.values(), default=MAX_LONG))


def own_deadline(node: Node) -> Millis:
    """When the broker itself wants a Tick, whatever its replicas want."""
    call = min(node.next_call, node.registration_deadline if node.broker_epoch < 0 else node.next_poll)
    return min(call, node.next_checkpoint)


# Replicas and their inboxes.


def _tell_replica(node: Node, tp: TopicPartition, replica_input: ReplicaInput, now: Millis) -> NodeStep:
    """Tell a replica, or put it into its inbox while the disk is busy or others wait; one step of one replica at most.

    What waits is told at the next Ticks, one by one.
    """
    replica = node.replicas.get(tp)
    if replica is None:
        return NodeStep(node, _without_replica(node, replica_input))
    inbox = node.inboxes.get(tp, ())
    if not isinstance(replica_input, replicas.DISK_DONE) and (replica.pending_operation is not None or inbox):
        return NodeStep(_with(node, replica, (*inbox, replica_input)))
    return _takes_step(node, replica, replica_input, inbox, now)


def _takes_step(node: Node, replica: Replica, replica_input: ReplicaInput, inbox: Inbox, now: Millis) -> NodeStep:
    step = replicas.handle(replica, replica_input, now)
    effects: tuple[Effect, ...] = step.effects
    if step.action is not None:
        effects = (Took(action=step.action, partition=replica.partition, replica=node.me), *effects)
    return NodeStep(_with(node, step.core, inbox), effects)


def _with(node: Node, replica: Replica, inbox: Inbox) -> Node:
    tp = replica.partition
    due = 0 if inbox and replica.pending_operation is None else replicas.deadline(replica)
    inboxes = node.inboxes
    if inbox:
        inboxes = inboxes.set(tp, inbox)
    elif tp in inboxes:
        inboxes = inboxes.delete(tp)
    wake = node.wake
    if due is not None:
        wake = wake.set(tp, due)
    elif tp in wake:
        wake = wake.delete(tp)
    return attrs.evolve(node, replicas=node.replicas.set(tp, replica), inboxes=inboxes, wake=wake)


def error_without_replica(node: Node, tp: TopicPartition) -> Error:
    """Why a broker without a replica does not answer: its log is damaged, another broker has the partition, or nobody.

    Who hears that another has it looks into the metadata again, and asks there (ReplicaManager.getPartitionOrError).
    """
    if tp in node.offline:
        return Error.KAFKA_STORAGE_ERROR
    return Error.NOT_LEADER_OR_FOLLOWER if tp in node.partitions else Error.UNKNOWN_TOPIC_OR_PARTITION


def _without_replica(node: Node, replica_input: ReplicaInput) -> tuple[Effect, ...]:
    """The answer of a broker that holds no replica of the partition."""
    match replica_input:
        case Produce(request=request, partition=tp):
            return (AnswerProduce(request=request, partition=tp, error=error_without_replica(node, tp)),)
        case Consume(request=request, partition=tp):
            return (AnswerConsume(request=request, partition=tp, error=error_without_replica(node, tp)),)
        case DeleteRecords(request=request, partition=tp):
            return (AnswerDelete(request=request, partition=tp, error=error_without_replica(node, tp)),)
        case FetchRequest(partition=tp, replica=to):
            refusal = fetch_refusal(node.me, replica_input, error_without_replica(node, tp))
            return (AnswerFetch(to=to, response=refusal),)
        case OffsetForLeaderEpochRequest(partition=tp):
            return (refuses_to_say(node.me, replica_input, error_without_replica(node, tp)),)
        case _:
            return ()


def _add_replica(node: Node, opened_log: LogOpened, now: Millis) -> NodeStep:
    """The log of a replica is open; what the node knows of the partition by now it learns at once."""
    replica = Replica(
        partition=opened_log.partition,
        me=node.me,
        broker_epoch=node.broker_epoch,
        settings=node.settings,
        log=opened_log.log,
        high_watermark=min(opened_log.high_watermark, opened_log.log.end),
    )
    node = _with(attrs.evolve(node, opening=node.opening - {opened_log.partition}), replica, ())
    node = attrs.evolve(
        node,
        topic_ids=node.topic_ids.set(opened_log.partition, opened_log.topic_id),
        certain_ids=node.certain_ids | ({opened_log.partition} if opened_log.is_certain else set()),
    )
    metadata = node.partitions.get(opened_log.partition)
    if node.phase is not Phase.LOADING and (metadata is None or not _may_be_here(node, metadata)):
        is_deleted = opened_log.log.start == opened_log.log.end
        return _opens(_drops(node, opened_log.partition, is_deleted), [metadata] if metadata is not None else [])
    return NodeStep(node) if metadata is None else _tell_replica(node, opened_log.partition, _news(node, metadata), now)


def _is_of_another_topic(node: Node, metadata: PartitionMetadata) -> bool:
    """The log here is of a topic of the same name that was deleted since (partition.metadata)."""
    found = node.topic_ids.get(metadata.partition, 0)
    return found not in (0, metadata.topic_id)


def _may_be_here(node: Node, metadata: PartitionMetadata) -> bool:
    """The log here is of this topic, and this broker a replica."""
    return node.me in metadata.replicas and not _is_of_another_topic(node, metadata)


def _is_deleted(node: Node, before: PartitionMetadata | None) -> bool:
    """The log here is of a topic that the metadata had: so it was deleted (KafkaRaftServer: a RemoveTopicRecord).

    Else the metadata may have been lost, not the topic (LogManager.isStrayKraftReplica).
    """
    return before is not None and node.topic_ids.get(before.partition, 0) in (0, before.topic_id)


def _drops(node: Node, tp: TopicPartition, is_deleted: bool) -> NodeStep:
    """The topic is no more: whoever waits is told, and the log is removed (ReplicaManager.stopPartitions) or set aside.

    It is removed only where it is known to be deleted (`is_deleted`).
    """
    step = _leaves(node, tp)
    return _also(step, NodeStep(step.core, (DeleteLog(tp) if is_deleted else SetAside(tp),)))


def _leaves(node: Node, tp: TopicPartition) -> NodeStep:
    """There is no replica here any more, and whoever waits for it is told."""
    waiting: list[Effect] = []
    waiting += steps_down(node.replicas[tp])
    for told in node.inboxes.get(tp, ()):
        waiting += _without_replica(node, told)
    held, ids = node.replicas.delete(tp), node.topic_ids.delete(tp)
    wake = node.wake.delete(tp) if tp in node.wake else node.wake
    inboxes = node.inboxes.delete(tp) if tp in node.inboxes else node.inboxes
    certain = node.certain_ids - {tp}
    node = attrs.evolve(node, replicas=held, topic_ids=ids, certain_ids=certain, wake=wake, inboxes=inboxes)
    return NodeStep(node, tuple(waiting))


def _goes_offline(node: Node, tp: TopicPartition, at_start: bool, topic_id: int = 0) -> NodeStep:
    """A log is damaged: the replica is none any more, and the controller is told, so that another leads.

    ReplicaManager.handleLogDirFailure; here it is one log, and not all in a directory.
    """
    damage = Damage(at_start, node.topic_ids.get(tp, 0) if tp in node.certain_ids else topic_id)
    node = attrs.evolve(node, offline=node.offline.set(tp, damage), offline_changes=node.offline_changes + 1)
    return _leaves(node, tp) if tp in node.replicas else NodeStep(node)


def _alarms(step: NodeStep, tp: TopicPartition, why: str) -> NodeStep:
    """The disk gave back what is written there, so only the core knows that it cannot be right: it says so."""
    return NodeStep(step.core, (*step.effects, DamageAlarm(tp, why)))


def _begins_anew(node: Node, metadata: PartitionMetadata) -> bool:
    """Nobody counts on a damaged log: it is of a topic that is no more, or another leads and has all of it.

    A log that was damaged when the process started has answered nobody in this life. So no leader takes the new one for
    the old, for it is of a later broker epoch (KIP-903). If it was damaged later, the process has to start once more.
    """
    damage = node.offline[metadata.partition]
    if node.me not in metadata.replicas or damage.topic_id not in (0, metadata.topic_id):
        return True
    counts = node.me in metadata.isr | metadata.elr or metadata.leader in (None, node.me)
    return damage.at_start and not counts


def _sets_aside(node: Node, tp: TopicPartition) -> NodeStep:
    """A damaged log is set aside, and the replica is offline no more."""
    node = attrs.evolve(node, offline=node.offline.delete(tp), offline_changes=node.offline_changes + 1)
    return NodeStep(node, (SetAside(tp),))


def _compares_log(node: Node, metadata: PartitionMetadata, before: PartitionMetadata | None, behind: bool) -> NodeStep:
    """Whether a log here may be that of a partition as the metadata have it now; `before` is as they had it.

    Whom a reassignment has removed counts for nothing from that record on, so that log goes, too
    (ReplicaManager.applyDelta, LogManager.isStrayKraftReplica).
    """
    tp, step = metadata.partition, NodeStep(node)
    replica = node.replicas.get(tp)
    if replica is not None and metadata.replicas and node.me not in metadata.replicas:
        step = _drops(node, tp, _is_deleted(node, before) or node.topic_ids.get(tp, 0) == metadata.topic_id)
    elif replica is not None and (not metadata.replicas or _is_of_another_topic(node, metadata)):
        is_deleted = _is_deleted(node, before)
        if not is_deleted and tp not in node.certain_ids and node.me in metadata.isr | metadata.elr:
            # The file that says the topic has no checksum, and this broker is in sync: so the file may be damaged, and
            # the log of this topic. With a checksum it is another topic's: a broker is in the first in-sync set of a
            # topic before it hears of it, and has then no record of it.
            step = _alarms(_goes_offline(node, tp, behind), tp, "it says another topic")
        else:
            step = _drops(node, tp, is_deleted)
    elif replica is not None and replica.log.epochs.latest() > metadata.leader_epoch:
        # It has records of an epoch that there never was: one of them is damaged, or the metadata are too old.
        epoch = replica.log.epochs.latest()
        step = _alarms(_goes_offline(node, tp, behind), tp, f"it has records of leader epoch {epoch}, which never was")
    if tp in step.core.offline and _begins_anew(step.core, metadata):
        step = _also(step, _sets_aside(step.core, tp))
    return step


def _opens(step: NodeStep, partitions: Iterable[PartitionMetadata]) -> NodeStep:
    """Have the logs opened of partitions that are to be here and are not."""
    node = step.core
    absent = [
        p
        for p in partitions
        if node.me in p.replicas
        and p.partition not in node.replicas
        and p.partition not in node.opening
        and p.partition not in node.offline
    ]
    node = attrs.evolve(node, opening=node.opening | {p.partition for p in absent})
    return NodeStep(node, (*step.effects, *(OpenLog(p.partition, p.topic_id) for p in absent)))


def _news(node: Node, metadata: PartitionMetadata) -> LearnMetadata:
    """Metadata of a partition, with who of its replicas cannot join at the moment (Partition.isReplicaIsrEligible)."""
    if not node.settings.insync_design.keeps_out_fenced:
        return LearnMetadata(metadata=metadata)
    away = frozenset(r for r in metadata.replicas if not available(node.brokers, r))
    return LearnMetadata(metadata=metadata, ineligible=away)


# Messages.


def _deliver_message(node: Node, delivery: Received, now: Millis) -> NodeStep:
    match delivery.message:
        case FetchRequest() as fetch:
            return _fetched(node, fetch, now)
        case FetchResponse() | AlterPartitionResponse() | OffsetForLeaderEpochResponse() as answer:
            return _tell_replica(node, answer.partition, answer, now)
        case OffsetForLeaderEpochRequest() as asks:
            return _tell_replica(node, asks.partition, asks, now)
        case BrokerRegistered() as answer:
            return _registered(node, answer, now)
        case HeartbeatAnswer() as answer:
            return _take_heartbeat_answer(node, answer, now)
        case Metadata() as news:
            return _learns(node, news, now)
        case _:
            return NodeStep(node)


def _fetched(node: Node, fetch: FetchRequest, now: Millis) -> NodeStep:
    """A follower's fetch; not one of an incarnation that this broker knows to be over (updateFetchStateOrThrow)."""
    known, replica = node.brokers.get(fetch.replica), node.replicas.get(fetch.partition)
    compares = node.settings.insync_design.compares_broker_epochs
    if compares and replica is not None and known is not None and NO_BROKER_EPOCH != fetch.broker_epoch < known.epoch:
        return NodeStep(node, (refuses_fetch(replica, fetch, Error.NOT_LEADER_OR_FOLLOWER),))
    return _tell_replica(node, fetch.partition, fetch, now)


def _registered(node: Node, answer: BrokerRegistered, now: Millis) -> NodeStep:
    """The controller has registered the broker: from here on it is an incarnation, fenced, and asks for metadata.

    Broker epochs grow, so a late answer to a registration that was sent before the last one says nothing.
    """
    expected = node.start is not None and answer.incarnation == node.start.incarnation
    if expected and answer.error is Error.OFFSET_OUT_OF_RANGE and node.start is not None:
        why = lost_metadata(f"broker {node.me} has read", node.start.position.offset)
        return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (Halt(why),))
    if expected and answer.error is Error.INCONSISTENT_CLUSTER_ID:
        return _is_elsewhere(node)
    if expected and answer.error is not Error.NONE and node.broker_epoch < 0:
        return NodeStep(attrs.evolve(node, registration_error=answer.error))
    if not expected or answer.error is not Error.NONE or answer.broker_epoch <= node.broker_epoch:
        return NodeStep(node)
    phase = Phase.RUNNING if node.phase is Phase.REGISTERING else node.phase
    held = node.replicas
    for tp, replica in node.replicas.items():
        held = held.set(tp, attrs.evolve(replica, broker_epoch=answer.broker_epoch))
    node = attrs.evolve(node, broker_epoch=answer.broker_epoch, phase=phase, replicas=held)
    return _then(_calls(node, now), _polls, now)


def _is_elsewhere(node: Node) -> NodeStep:
    """The controller is that of another cluster. It takes this broker never, so the process ends."""
    mine = node.start.cluster if node.start is not None else ""
    why = f"the controller is of another cluster than {mine}, to which the data belong (INCONSISTENT_CLUSTER_ID)"
    return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (Halt(why),))


def _take_heartbeat_answer(node: Node, answer: HeartbeatAnswer, now: Millis) -> NodeStep:
    """The controller has answered a heartbeat.

    If it knows a later registration of this broker, another process has taken its place, and this one ends. If it knows
    none, somebody has unregistered the broker, which then has no session until it is started again. Of that the broker
    hears with the metadata. If it does not, for as long as a session, the controller has lost its metadata.
    """
    if answer.broker_epoch == node.broker_epoch and answer.error is Error.INCONSISTENT_CLUSTER_ID:
        return _is_elsewhere(node)
    if answer.broker_epoch == node.broker_epoch and answer.error is Error.STALE_BROKER_EPOCH:
        why = f"broker {node.me} was registered again, or the controller has lost its metadata.log"
        return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (Halt(why),))
    if answer.broker_epoch == node.broker_epoch and answer.error is Error.BROKER_ID_NOT_REGISTERED:
        return _is_unregistered(node, now)
    if answer.broker_epoch != node.broker_epoch or answer.error is not Error.NONE:
        return NodeStep(node)
    node = attrs.evolve(node, fenced=answer.fenced, unregistered_since=MAX_LONG)
    if answer.may_shut_down and node.phase is Phase.SHUTTING_DOWN:
        return _stops(node, node.broker_epoch)
    return NodeStep(node)


def _is_unregistered(node: Node, now: Millis) -> NodeStep:
    """The controller knows no registration of this broker, by the metadata of which it is registered or is not.

    If it is to stop nobody else will relieve it, and nothing depends on it (BrokerServer.shutdown waits five minutes).
    """
    if node.me not in node.brokers:
        return _stops(node, node.broker_epoch) if node.phase is Phase.SHUTTING_DOWN else NodeStep(node)
    since = min(node.unregistered_since, now)
    node = attrs.evolve(node, unregistered_since=since)
    if now - since < node.settings.broker_session_timeout_ms:
        return NodeStep(node)
    why = lost_metadata(f"broker {node.me} has read", node.metadata_offset)
    return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (Halt(why),))


def _learns(node: Node, news: Metadata, now: Millis) -> NodeStep:
    """Newer metadata: each replica that it is about learns it, and a new replica gets a log (BrokerMetadataPublisher).

    Model: the replica's becomes_leader, becomes_follower, leader_learns_isr.
    """
    if not news.since <= node.metadata_offset < news.offset:
        return NodeStep(node)
    if news.whole or (news.since == 0 and news.offset >= node.broker_epoch):
        # All that there is, and not only what is new. Logs of topics that were deleted while this broker was away are
        # among the others: it never heard of those topics (LogManager.isStrayKraftReplica).
        gone = {*node.partitions, *node.replicas, *node.offline} - {p.partition for p in news.partitions}
        away = set(node.brokers) - {b.broker for b in news.brokers}
        news = attrs.evolve(
            news,
            partitions=(*news.partitions, *map(removed_partition, sorted(gone))),
            brokers=(*news.brokers, *map(unregistration, sorted(away))),
        )
    behind = node.metadata_offset < node.broker_epoch
    before, brokers, partitions = node.partitions, node.brokers, node.partitions
    for broker in news.brokers:
        if broker.epoch >= 0:
            brokers = brokers.set(broker.broker, broker)
        elif broker.broker in brokers:
            brokers = brokers.delete(broker.broker)
    for partition in news.partitions:
        if partition.replicas:
            partitions = partitions.set(partition.partition, partition)
        elif partition.partition in partitions:
            partitions = partitions.delete(partition.partition)
    node = attrs.evolve(
        node, metadata_offset=news.offset, metadata_life=news.life, brokers=brokers, partitions=partitions
    )
    effects: list[Effect] = []
    for p in news.partitions:
        step = _compares_log(node, p, before.get(p.partition), behind)
        node = step.core
        effects += step.effects
    step = _opens(NodeStep(node), news.partitions)
    node = step.core
    effects += step.effects
    told = {p.partition for p in news.partitions if node.me in p.replicas}
    told |= _led_with(node, {b.broker for b in news.brokers})
    for tp in sorted(tp for tp in told if tp in node.replicas):
        step = _tell_replica(node, tp, _news(node, partitions[tp]), now)
        node = step.core
        effects += step.effects
    step = NodeStep(node, tuple(effects))
    step = _then(step, _polls, now)
    return _then(step, _calls, now) if behind and step.core.metadata_offset >= step.core.broker_epoch else step


def _led_with(node: Node, brokers: set[BrokerId]) -> set[TopicPartition]:
    """The partitions to be led here that have a replica on one of the brokers.

    A replica may not lead yet: it hears who is fenced while it waits for its disk, or would begin with what it was told
    before. Kafka's leader asks its metadata each time (Partition.isReplicaIsrEligible).
    """
    if not brokers:
        return set()
    there = ((tp, node.partitions.get(tp)) for tp in node.replicas)
    return {tp for tp, p in there if p is not None and p.leader == node.me and not brokers.isdisjoint(p.replicas)}


# Time.


def _then(step: NodeStep, more: Callable[[Node, Millis], NodeStep], now: Millis) -> NodeStep:
    return _also(step, more(step.core, now))


def _also(step: NodeStep, after: NodeStep) -> NodeStep:
    return NodeStep(after.core, (*step.effects, *after.effects))


def _calls(node: Node, now: Millis) -> NodeStep:
    """Register, or show the controller that this broker lives."""
    start = node.start
    assert start is not None
    node = attrs.evolve(node, next_call=now + node.settings.broker_heartbeat_interval_ms)
    if node.broker_epoch < 0:
        request = RegisterBroker(
            broker=node.me,
            incarnation=start.incarnation,
            previous_broker_epoch=start.previous_broker_epoch,
            host=start.host,
            port=start.port,
            rack=start.rack,
            cluster=start.cluster,
            directory=start.directory,
            peer_host=start.peer_host,
            peer_port=start.peer_port,
            position=start.position,
        )
        return NodeStep(node, (Send(CONTROLLER, request),))
    heartbeat = Heartbeat(
        broker=node.me,
        broker_epoch=node.broker_epoch,
        metadata_offset=node.metadata_offset,
        wants_to_shut_down=node.phase is Phase.SHUTTING_DOWN,
    )
    return NodeStep(node, (Send(CONTROLLER, heartbeat),))


def _ends_unregistered(node: Node) -> NodeStep:
    """A broker that is to stop and was never registered stops at once: nothing depends on it (BrokerLifecycleManager).

    It has changed no log, so if its last life ended in order this one does, too.
    """
    return _stops(node, node.start.previous_broker_epoch if node.start is not None else -1)


def _stops(node: Node, epoch: int) -> NodeStep:
    """The process ends in order, with the mark of a life of this broker epoch."""
    last = CheckpointWatermarks(watermarks(node.replicas.values()))
    return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (StopProcess(epoch, last),))


def _gives_up(node: Node) -> NodeStep:
    """The broker was not registered in time, and ends (BrokerLifecycleManager.RegistrationTimeoutEvent)."""
    limit = f"{node.settings.initial_broker_registration_timeout_ms} ms (initial.broker.registration.timeout.ms)"
    answer = "the controller did not answer"
    if node.registration_error is not Error.NONE:
        answer = f"the controller answered {node.registration_error.name}"
    if node.registration_error is Error.DUPLICATE_BROKER_REGISTRATION:
        answer += ", for another process has this number"
    if node.registration_error is Error.INVALID_REGISTRATION:
        answer += ", for another broker has this data directory"
    why = f"broker {node.me} was not registered within {limit}: {answer}"
    return NodeStep(attrs.evolve(node, phase=Phase.STOPPED), (Halt(why),))


def _polls(node: Node, now: Millis) -> NodeStep:
    """Ask for newer metadata; the controller answers when there is some, and a lost question is asked again."""
    node = attrs.evolve(node, next_poll=now + node.settings.broker_heartbeat_interval_ms)
    poll = FetchMetadata(
        broker=node.me,
        broker_epoch=node.broker_epoch,
        offset=node.metadata_offset,
        life=node.metadata_life,
        offline=tuple(sorted(node.offline)),
        offline_changes=node.offline_changes,
    )
    return NodeStep(node, (Send(CONTROLLER, poll),))


def _ticks(node: Node, tp: TopicPartition | None, now: Millis) -> NodeStep:
    """One thing that is due: a heartbeat, a question for metadata, a checkpoint, or a replica's own."""
    if node.phase is Phase.LOADING:
        return NodeStep(node)
    if node.broker_epoch < 0 and node.registration_deadline <= now:
        return _gives_up(node)
    if node.next_call <= now:
        return _calls(node, now)
    if node.broker_epoch >= 0 and node.next_poll <= now:
        return _polls(node, now)
    if node.next_checkpoint <= now:
        interval = node.settings.replica_high_watermark_checkpoint_interval_ms
        node = attrs.evolve(node, next_checkpoint=now + interval)
        return NodeStep(node, (CheckpointWatermarks(watermarks(node.replicas.values())),))
    if tp is None:
        tp = min(((at, tp) for tp, at in node.wake.items()), default=(0, None))[1]
    if tp is None or node.wake.get(tp, MAX_LONG) > now:
        return NodeStep(node)
    inbox = node.inboxes.get(tp, ())
    return (
        _takes_step(node, node.replicas[tp], inbox[0], inbox[1:], now)
        if inbox
        else _tell_replica(node, tp, Tick(), now)
    )


def watermarks(open_replicas: Iterable[Replica]) -> tuple[tuple[TopicPartition, int], ...]:
    """The high watermark of every replica, as it is checkpointed."""
    return tuple(sorted((r.partition, r.high_watermark) for r in open_replicas))
