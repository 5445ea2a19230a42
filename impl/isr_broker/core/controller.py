"""The controller: sessions of brokers, the metadata of partitions, and who leads them.

`handle(controller, input, now)`. `elections` decides about one partition; this module keeps the state, the sessions and
the placement of new replicas.

A decision is in the controller's state at once, but nobody is told of it before its records are durable. Answers wait
for `Written` (Kafka: the deferred events of QuorumController), and metadata is handed out only while no record is on
its way to the disk. Otherwise a controller that crashed could have told of a decision that it then forgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
from immutables import Map

from isr_broker import topic_configs
from isr_broker.core.effects import AppendMetadata, Effect, Send, Took
from isr_broker.core.elections import (
    Brokers,
    Change,
    alter,
    available,
    departs,
    elects_unclean,
    moves,
    relievable,
    returns,
    struck,
)
from isr_broker.core.inputs import ControllerInput, Received, Tick, Written
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    AlterTopicConfigs,
    BrokerId,
    BrokerMetadata,
    BrokerRegistered,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectPreferredLeader,
    ElectUncleanLeader,
    Error,
    FetchMetadata,
    FromController,
    Heartbeat,
    HeartbeatAnswer,
    Metadata,
    MetadataRecord,
    MetadataSnapshot,
    Millis,
    PartitionMetadata,
    RegisterBroker,
    TopicPartition,
    removed,
)
from isr_broker.core.topics import may_be_called
from isr_broker.settings import Settings

Key = TopicPartition | BrokerId


@attrs.frozen(kw_only=True)
class Controller:
    """The controller's state.

    - `offset` and `written`: the end of the metadata log, and how much of it is durable.
    - `brokers` and `partitions`: the metadata (fenced, shutting_down, broker_epoch; controller_leader, controller_isr
      and the others of the model), `changed` when each of them changed last.
    - `whole_until`: what was removed before this offset is forgotten, so who knows less than that is told everything.
    - `contacts`: when each broker with a session was heard last.
    - `due`: partitions to look at again at once: without a leader, or with a replica that shuts down.
    - `refused`: the AlterPartition that was refused last; it dies with the process, as the connections do on which
      copies of it may still be on their way.
    - `reconfigured`: the controller started with other settings than the topics have that have none of their own.
    - `held`: answers that wait for the metadata log; `parked`: brokers that wait for news.
    - `read`: up to where each broker has read the metadata log, as far as it has said so to this process.
    """

    settings: Settings = attrs.field(repr=False)
    offset: int = 0
    written: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    changed: Map[Key, int] = attrs.field(factory=Map[Key, int])
    whole_until: int = 0
    contacts: Map[BrokerId, Millis] = attrs.field(factory=Map[BrokerId, Millis])
    due: frozenset[TopicPartition] = frozenset()
    refused: Map[TopicPartition, AlterPartitionRequest] = attrs.field(
        factory=Map[TopicPartition, AlterPartitionRequest]
    )
    reconfigured: bool = False
    held: tuple[tuple[int, Send], ...] = ()
    parked: Map[BrokerId, FetchMetadata] = attrs.field(factory=Map[BrokerId, FetchMetadata])
    read: Map[BrokerId, int] = attrs.field(factory=Map[BrokerId, int])
    next_balance: Millis = 0


@attrs.frozen
class ControllerStep:
    """The controller from now on, and what it asks for."""

    core: Controller
    effects: tuple[Effect, ...] = ()


def recovered(settings: Settings, records: Iterable[MetadataRecord], now: Millis) -> Controller:
    """The controller as its durable metadata log has it; every session begins anew.

    Its last life may have ended between the record that a broker shuts down and those that relieve it.
    """
    controller = applied(Controller(settings=settings, next_balance=next_balance_after(settings, now)), tuple(records))
    contacts = {b: now for b, broker in controller.brokers.items() if not broker.fenced}
    leaving = {b for b, broker in controller.brokers.items() if broker.shutting_down and not broker.fenced}
    due = frozenset(tp for tp, p in controller.partitions.items() if p.leader is None or leaving & set(p.replicas))
    changed = any(_configured(controller, p) != p for p in controller.partitions.values())
    return attrs.evolve(
        controller,
        written=controller.offset,
        contacts=Map(contacts),
        due=due,
        reconfigured=changed,
        read=Map(dict.fromkeys(controller.brokers, 0)),
    )


def next_balance_after(settings: Settings, now: Millis) -> Millis:
    return now + 1000 * settings.leader_imbalance_check_interval_seconds


# The metadata log.


def applied(controller: Controller, records: tuple[MetadataRecord, ...]) -> Controller:
    brokers, partitions, changed = controller.brokers, controller.partitions, controller.changed
    offset, whole_until = controller.offset, controller.whole_until
    for record in records:
        offset += 1
        match record:
            case MetadataSnapshot():
                offset = whole_until = record.offset
                brokers = Map({b.broker: b for b in record.brokers})
                partitions = Map({p.partition: p for p in record.partitions})
                keys: list[Key] = [*brokers, *partitions]
                changed = Map(dict.fromkeys(keys, offset))
            case PartitionMetadata():
                if record.replicas:
                    partitions = partitions.set(record.partition, record)
                elif record.partition in partitions:
                    partitions = partitions.delete(record.partition)
                changed = changed.set(record.partition, offset)
            case BrokerMetadata():
                brokers = brokers.set(record.broker, record)
                changed = changed.set(record.broker, offset)
    return attrs.evolve(
        controller, brokers=brokers, partitions=partitions, changed=changed, offset=offset, whole_until=whole_until
    )


def snapshot(controller: Controller) -> MetadataSnapshot:
    """What may stand in the place of all its records."""
    return MetadataSnapshot(
        offset=controller.offset,
        brokers=tuple(b for _, b in sorted(controller.brokers.items())),
        partitions=tuple(p for _, p in sorted(controller.partitions.items())),
    )


def _forgets(controller: Controller) -> Controller:
    """The log begins with a snapshot: nobody needs to know any longer what was removed before it."""
    there = {
        key: at for key, at in controller.changed.items() if key in controller.brokers or key in controller.partitions
    }
    return attrs.evolve(controller, changed=Map(there), whole_until=controller.offset)


def decides(
    controller: Controller,
    records: Iterable[MetadataRecord],
    changes: Iterable[Change] = (),
    answers: Iterable[Send] = (),
) -> ControllerStep:
    """Write records and the partitions of changes, note the actions, and answer when all of it is durable."""
    notes: list[Effect] = []
    changed: list[MetadataRecord] = list(records)
    due = set(controller.due)
    for change in changes:
        tp = change.partition.partition
        notes.append(Took(action=change.action, partition=tp, replica=change.replica))
        if change.partition != controller.partitions.get(tp):
            changed.append(change.partition)
        if change.partition.leader is None:
            due.add(tp)
    controller = applied(attrs.evolve(controller, due=frozenset(due)), tuple(changed))
    if changed:
        notes.append(AppendMetadata(offset=controller.offset, records=tuple(changed)))
    held = (*controller.held, *((controller.offset, answer) for answer in answers))
    step = released(attrs.evolve(controller, held=held))
    return ControllerStep(step.core, (*notes, *step.effects))


def released(controller: Controller) -> ControllerStep:
    """What may be said by now: answers whose records are durable, and news to brokers that wait for some."""
    said: list[Effect] = [answer for offset, answer in controller.held if offset <= controller.written]
    controller = attrs.evolve(controller, held=tuple(h for h in controller.held if h[0] > controller.written))
    if controller.written < controller.offset:
        return ControllerStep(controller, tuple(said))
    for source, request in sorted(controller.parked.items()):
        if request.offset < controller.offset:
            said.append(Send(source, news_since(controller, request.offset)))
            controller = attrs.evolve(controller, parked=controller.parked.delete(source))
    return ControllerStep(controller, tuple(said))


def news_since(controller: Controller, since: int) -> Metadata:
    """Everything that changed after an offset, as it is now; or everything there is."""
    whole = since < controller.whole_until
    new = [key for key, offset in controller.changed.items() if whole or offset > since]
    return Metadata(
        since=since,
        offset=controller.offset,
        whole=whole,
        brokers=tuple(controller.brokers[b] for b in sorted(k for k in new if not isinstance(k, TopicPartition))),
        partitions=tuple(
            controller.partitions.get(tp) or removed(tp)
            for tp in sorted(k for k in new if isinstance(k, TopicPartition))
        ),
    )


def answers(controller: Controller, to: BrokerId, message: FromController) -> ControllerStep:
    return decides(controller, (), (), (Send(to, message),))


MOST_PARTITIONS: Final = 10_000
"""In one request, as in Kafka (ReplicationControlManager.MAX_RECORDS_PER_BATCH)."""


def handle(controller: Controller, told: ControllerInput, now: Millis) -> ControllerStep:
    """One input of the controller."""
    match told:
        case Tick():
            return _ticks(controller, now)
        case Written(offset, compacted):
            controller = attrs.evolve(controller, written=max(controller.written, offset))
            return released(_forgets(controller) if compacted else controller)
        case Received(source, AlterPartitionRequest() as request):
            return _alters(controller, source, request)
        case Received(source, RegisterBroker() as request):
            return _registers(controller, source, request, now)
        case Received(source, Heartbeat() as request):
            return _heartbeat(controller, source, request, now)
        case Received(source, FetchMetadata() as request):
            read = controller.read.set(source, request.offset)
            return released(attrs.evolve(controller, read=read, parked=controller.parked.set(source, request)))
        case Received(source, CreateTopic() as request):
            return _creates(controller, source, request)
        case Received(source, CreatePartitions() as request):
            return _creates_partitions(controller, source, request)
        case Received(source, AlterTopicConfigs() as request):
            return _alters_configs(controller, source, request)
        case Received(source, DeleteTopic() as request):
            return _deletes(controller, source, request)
        case Received(source, ElectPreferredLeader() | ElectUncleanLeader() as request):
            return _elects(controller, source, request)
        case Received():
            return ControllerStep(controller)


def deadline(controller: Controller) -> Millis:
    """When the controller next wants a Tick; 0 for at once."""
    if controller.due or controller.reconfigured:
        return 0
    timeout = controller.settings.broker_session_timeout_ms
    return min([controller.next_balance, *(contact + timeout for contact in controller.contacts.values())])


# Requests.


def _alters(controller: Controller, source: BrokerId, request: AlterPartitionRequest) -> ControllerStep:
    """A leader asks for another ISR. Model: controller_accepts_, _refuses_, _rejects_stale_alter_partition."""
    old = controller.partitions.get(request.partition)
    refused = controller.refused.get(request.partition)
    error, change = alter(old, request, refused, controller.brokers, controller.settings.insync_design)
    if error is Error.INELIGIBLE_REPLICA and change is not None:  # not again for a copy, which may be an older one
        controller = attrs.evolve(controller, refused=controller.refused.set(request.partition, request))
    new = old if change is None else change.partition
    answer = request.answer(error) if new is None else request.answer(error, new.leader_epoch, new.partition_epoch)
    return decides(controller, (), () if change is None else (change,), (Send(source, answer),))


def _registers(controller: Controller, source: BrokerId, request: RegisterBroker, now: Millis) -> ControllerStep:
    """A broker starts. One that still has a session must wait until that ends, except with ZooKeeper.

    ClusterControlManager.registerBroker. Model: broker_restarts, broker_restarts_unnoticed.
    """
    broker, design = request.broker, controller.settings.insync_design
    known = controller.brokers.get(broker)
    if known is not None and known.incarnation == request.incarnation:
        answer = BrokerRegistered(broker=broker, incarnation=request.incarnation, broker_epoch=known.epoch)
        return answers(controller, source, answer)
    unnoticed = known is not None and not known.fenced
    if unnoticed and not design.sessions_outlive_restarts:
        error = Error.DUPLICATE_BROKER_REGISTRATION
        answer = BrokerRegistered(broker=broker, incarnation=request.incarnation, error=error)
        return answers(controller, source, answer)
    clean = known is not None and known.epoch == request.previous_broker_epoch
    registered = BrokerMetadata(
        broker=broker,
        epoch=controller.offset + 1,
        incarnation=request.incarnation,
        fenced=not unnoticed,
        host=request.host,
        port=request.port,
        rack=request.rack,
    )
    changes = [
        Change(struck(partition, broker, clean or unnoticed, design), "broker_restarts", broker)
        for partition in _partitions_of(controller, broker)
    ]
    answer = BrokerRegistered(broker=broker, incarnation=request.incarnation, broker_epoch=registered.epoch)
    step = decides(controller, (registered,), changes, (Send(source, answer),))
    if not unnoticed:
        return step
    return attrs.evolve(step, core=attrs.evolve(step.core, contacts=step.core.contacts.set(broker, now)))


def _heartbeat(controller: Controller, source: BrokerId, request: Heartbeat, now: Millis) -> ControllerStep:
    """A broker is heard: its session goes on, begins, or ends in order (BrokerHeartbeatManager)."""
    broker = controller.brokers.get(request.broker)
    if broker is None or broker.epoch != request.broker_epoch:
        answer = HeartbeatAnswer(
            broker=request.broker, broker_epoch=request.broker_epoch, error=Error.STALE_BROKER_EPOCH
        )
        return answers(controller, source, answer)
    controller = attrs.evolve(controller, read=controller.read.set(broker.broker, request.metadata_offset))
    if not broker.fenced:
        controller = attrs.evolve(controller, contacts=controller.contacts.set(broker.broker, now))
    if request.wants_to_shut_down and not broker.fenced:
        return _shuts_down(controller, source, broker)
    may_stop = request.wants_to_shut_down
    if broker.fenced and not may_stop and request.metadata_offset >= broker.epoch:
        return _unfences(controller, source, broker, now)
    answer = HeartbeatAnswer(
        broker=broker.broker, broker_epoch=broker.epoch, fenced=broker.fenced, may_shut_down=may_stop
    )
    return answers(controller, source, answer)


def _unfences(controller: Controller, source: BrokerId, broker: BrokerMetadata, now: Millis) -> ControllerStep:
    """A broker has caught up with the metadata and gets a session.

    Model: controller_unfences, controller_elects_returned, controller_elects_last_known_leader.
    """
    back = attrs.evolve(broker, fenced=False, shutting_down=False)
    changes = [
        returns(partition, broker.broker, controller.settings.insync_design)
        or Change(partition, "controller_unfences", broker.broker)
        for partition in _partitions_of(controller, broker.broker)
    ]
    controller = attrs.evolve(controller, contacts=controller.contacts.set(broker.broker, now))
    answer = HeartbeatAnswer(broker=broker.broker, broker_epoch=broker.epoch, fenced=False)
    return decides(controller, (back,), changes, (Send(source, answer),))


def _shuts_down(controller: Controller, source: BrokerId, broker: BrokerMetadata) -> ControllerStep:
    """A broker wants to stop: it is relieved first (at the next Tick), and may go when nothing depends on it.

    Model: broker_asks_to_shut_down; then broker_shuts_down, with which it is fenced.
    """
    mine = _partitions_of(controller, broker.broker)
    held_up = any(relievable(p, broker.broker, controller.settings.insync_design) for p in mine)
    held_up = held_up or not _others_have_read(controller, broker, mine)
    if not broker.shutting_down:
        asks = attrs.evolve(broker, shutting_down=True)
        changes = [Change(p, "broker_asks_to_shut_down", broker.broker) for p in mine]
        answer = HeartbeatAnswer(broker=broker.broker, broker_epoch=broker.epoch, fenced=False)
        due = controller.due | {p.partition for p in mine}
        return decides(attrs.evolve(controller, due=due), (asks,), changes, (Send(source, answer),))
    answer = HeartbeatAnswer(
        broker=broker.broker, broker_epoch=broker.epoch, fenced=not held_up, may_shut_down=not held_up
    )
    if held_up:
        return answers(controller, source, answer)
    return _fences(controller, broker, (Send(source, answer),))


def _others_have_read(controller: Controller, broker: BrokerMetadata, mine: Sequence[PartitionMetadata]) -> bool:
    """Every other broker with a session has read what became of a broker's partitions, and that it stops.

    Else clients would be sent to it after it is gone (BrokerHeartbeatManager.calculateNextBrokerState). To the model,
    where news arrive or do not, a broker may go at once; so whoever steps the cores has nobody said to have read less.
    """
    about: list[Key] = [broker.broker, *(p.partition for p in mine)]
    decided = max(controller.changed.get(key, 0) for key in about)
    others = (b for b in controller.brokers if b != broker.broker and available(controller.brokers, b))
    return all(controller.read.get(b, decided) >= decided for b in others)


def _creates(controller: Controller, source: BrokerId, request: CreateTopic) -> ControllerStep:
    """A topic is created; its replicas are placed on registered brokers, those with a session first (createTopics)."""
    settings = controller.settings
    copies = request.replication_factor if request.replication_factor != -1 else settings.default_replication_factor
    error = Error.NONE
    if not may_be_called(request.topic):
        error = Error.INVALID_TOPIC_EXCEPTION
    elif any(tp.topic == request.topic for tp in controller.partitions):
        error = Error.TOPIC_ALREADY_EXISTS
    elif not all(_assignable(controller, replicas) for replicas in request.assignments):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    elif not 1 <= (len(request.assignments) or request.partitions) <= MOST_PARTITIONS:
        error = Error.INVALID_PARTITIONS
    elif not request.assignments and not _placeable(controller, copies):
        error = Error.INVALID_REPLICATION_FACTOR
    if error is not Error.NONE or request.only_asks:
        return answers(controller, source, AdminAnswer(request=request.request, error=error))
    configs = dict(request.configs)
    if request.min_insync_replicas is not None:
        configs[topic_configs.MIN_ISR] = str(request.min_insync_replicas)
    if request.unclean_leader_election is not None:
        configs[topic_configs.UNCLEAN] = str(request.unclean_leader_election).lower()
    topic_id = controller.offset + 1
    answer = Send(source, AdminAnswer(request=request.request, topic_id=topic_id))
    replicas = request.assignments or _placed(controller, request.partitions, copies)
    return decides(
        controller, _new_partitions(controller, request.topic, topic_id, 0, replicas, configs), (), (answer,)
    )


def _new_partitions(
    controller: Controller,
    topic: str,
    topic_id: int,
    first: int,
    placement: Sequence[tuple[BrokerId, ...]],
    configs: Mapping[str, str],
) -> list[PartitionMetadata]:
    """Partitions from number `first` on. Replicas whose broker has no session are not in the ISR from the beginning."""
    records: list[PartitionMetadata] = []
    for number, replicas in enumerate(placement, first):
        there = [r for r in replicas if available(controller.brokers, r)]
        records.append(
            PartitionMetadata(
                partition=TopicPartition(topic, number),
                replicas=replicas,
                isr=frozenset(there),
                leader=there[0],
                min_insync_replicas=topic_configs.minimum(configs, controller.settings),
                unclean_leader_election=topic_configs.unclean(configs, controller.settings),
                topic_id=topic_id,
                configs=tuple(sorted(configs.items())),
            )
        )
    return records


def _assignable(controller: Controller, replicas: tuple[BrokerId, ...]) -> bool:
    """Nobody twice, all of them registered, and one of them with a session."""
    there = any(available(controller.brokers, r) for r in replicas)
    return there and len(replicas) == len(set(replicas)) and all(r in controller.brokers for r in replicas)


def _placeable(controller: Controller, copies: int) -> bool:
    """There are so many registered brokers, and one of them has a session (StripedReplicaPlacer)."""
    return 1 <= copies <= len(controller.brokers) and any(available(controller.brokers, b) for b in controller.brokers)


def _placed(controller: Controller, partitions: int, copies: int) -> list[tuple[BrokerId, ...]]:
    """The replicas of new partitions; brokers without a session come last, and only where there are too few others."""
    there = sorted(b for b in controller.brokers if available(controller.brokers, b))
    away = sorted(b for b in controller.brokers if b not in there)
    chosen = placed(there, partitions, min(copies, len(there)), len(controller.partitions))
    more = copies - min(copies, len(there))
    return [(*replicas, *(away[(n + i) % len(away)] for i in range(more))) for n, replicas in enumerate(chosen)]


def _creates_partitions(controller: Controller, source: BrokerId, request: CreatePartitions) -> ControllerStep:
    """A topic gets more partitions, with as many replicas as its first has (createPartitions)."""
    old = [p for _, p in sorted(controller.partitions.items()) if p.partition.topic == request.topic]
    more, error = request.count - len(old), Error.NONE
    if not old:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif more < 1 or more > MOST_PARTITIONS:
        error = Error.INVALID_PARTITIONS
    elif request.assignments and (
        len(request.assignments) != more
        or not all(_assignable(controller, r) and len(r) == len(old[0].replicas) for r in request.assignments)
    ):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    elif not request.assignments and not _placeable(controller, len(old[0].replicas)):
        error = Error.INVALID_REPLICATION_FACTOR
    answer = AdminAnswer(request=request.request, error=error)
    if error is not Error.NONE or request.only_asks:
        return answers(controller, source, answer)
    replicas = request.assignments or _placed(controller, more, len(old[0].replicas))
    records = _new_partitions(controller, request.topic, old[0].topic_id, len(old), replicas, dict(old[0].configs))
    return decides(controller, records, (), (Send(source, answer),))


def _alters_configs(controller: Controller, source: BrokerId, request: AlterTopicConfigs) -> ControllerStep:
    """Settings of a topic change. Where unclean election is allowed now, partitions without a leader may get one."""
    old = [p for _, p in sorted(controller.partitions.items()) if p.partition.topic == request.topic]
    error = Error.NONE if old else Error.UNKNOWN_TOPIC_OR_PARTITION
    answer = AdminAnswer(request=request.request, error=error)
    if not old or request.only_asks:
        return answers(controller, source, answer)
    configs = {} if request.replaces else dict(old[0].configs)
    for name, value in request.changes:
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value
    new = [_configured(controller, attrs.evolve(p, configs=tuple(sorted(configs.items())))) for p in old]
    leaderless = {p.partition for p in new if p.leader is None}
    controller = attrs.evolve(controller, due=controller.due | leaderless)
    return decides(controller, [p for p, q in zip(new, old, strict=True) if p != q], (), (Send(source, answer),))


def _configured(controller: Controller, partition: PartitionMetadata) -> PartitionMetadata:
    """A partition with what its topic's settings and the controller's come to; in the same partition epoch."""
    configs = dict(partition.configs)
    return attrs.evolve(
        partition,
        min_insync_replicas=topic_configs.minimum(configs, controller.settings),
        unclean_leader_election=topic_configs.unclean(configs, controller.settings),
    )


def _deletes(controller: Controller, source: BrokerId, request: DeleteTopic) -> ControllerStep:
    """A topic is no more, and its brokers remove the logs (deleteTopics)."""
    gone = sorted(tp for tp in controller.partitions if tp.topic == request.topic)
    error = Error.NONE if gone else Error.UNKNOWN_TOPIC_OR_PARTITION
    refused = controller.refused
    if not controller.settings.insync_design.refusals_outlive_topics:
        # A topic of the same name begins with the same epochs, and its first request would count as an overtaken copy.
        refused = Map({tp: request for tp, request in refused.items() if tp not in gone})
    controller = attrs.evolve(controller, due=controller.due - set(gone), refused=refused)
    return decides(
        controller, map(removed, gone), (), (Send(source, AdminAnswer(request=request.request, error=error)),)
    )


def _elects(
    controller: Controller, source: BrokerId, request: ElectPreferredLeader | ElectUncleanLeader
) -> ControllerStep:
    """An admin wants the preferred leader back, or any leader (electLeaders).

    Model: controller_moves_leadership, controller_elects_unclean.
    """
    partition, error = controller.partitions.get(request.partition), Error.NONE
    unclean = isinstance(request, ElectUncleanLeader)
    change: Change | None = None
    if partition is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader is not None and (unclean or partition.leader == partition.replicas[0]):
        error = Error.ELECTION_NOT_NEEDED
    elif unclean:
        change = elects_unclean(attrs.evolve(partition, unclean_leader_election=True), controller.brokers)
        if change is not None:
            asked = attrs.evolve(change.partition, unclean_leader_election=partition.unclean_leader_election)
            change = attrs.evolve(change, partition=asked)
        error = Error.NONE if change else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    else:
        change = moves(partition, partition.replicas[0], controller.brokers)
        error = Error.NONE if change else Error.PREFERRED_LEADER_NOT_AVAILABLE
    answer = Send(source, AdminAnswer(request=request.request, error=error))
    return decides(controller, (), () if change is None else (change,), (answer,))


# Time.


def _partitions_of(controller: Controller, broker: BrokerId) -> list[PartitionMetadata]:
    return [p for _, p in sorted(controller.partitions.items()) if broker in p.replicas]


def _fences(controller: Controller, broker: BrokerMetadata, answers: Iterable[Send] = ()) -> ControllerStep:
    """A broker has no session from now on; all its partitions do without it, in one change.

    Model: controller_fences_outsider, _follower, _leader, _last_leader.
    """
    gone = attrs.evolve(broker, fenced=True)
    brokers = controller.brokers.set(broker.broker, gone)
    design = controller.settings.insync_design
    changes = [departs(p, broker.broker, brokers, design) for p in _partitions_of(controller, broker.broker)]
    contacts = controller.contacts
    if broker.broker in contacts:
        contacts = contacts.delete(broker.broker)
    return decides(attrs.evolve(controller, contacts=contacts), (gone,), changes, answers)


def _ticks(controller: Controller, now: Millis) -> ControllerStep:
    """One thing that is due: a session that ended, partitions that need a leader or lose one, leadership to balance."""
    if controller.reconfigured:
        new = [(_configured(controller, p), p) for _, p in sorted(controller.partitions.items())]
        return decides(attrs.evolve(controller, reconfigured=False), [p for p, q in new if p != q])
    timeout = controller.settings.broker_session_timeout_ms
    ended = sorted(b for b, contact in controller.contacts.items() if contact + timeout <= now)
    if ended:
        return _fences(controller, controller.brokers[ended[0]])
    if controller.due:
        changes = [c for c in (_due_change(controller, tp) for tp in sorted(controller.due)) if c is not None]
        again = frozenset(c.partition.partition for c in changes)
        return decides(attrs.evolve(controller, due=again), (), changes)
    if controller.next_balance > now:
        return ControllerStep(controller)
    controller = attrs.evolve(controller, next_balance=next_balance_after(controller.settings, now))
    if not controller.settings.auto_leader_rebalance_enable:
        return ControllerStep(controller)
    moved = (moves(p, p.replicas[0], controller.brokers) for _, p in sorted(controller.partitions.items()))
    return decides(controller, (), [m for m in moved if m is not None])


def _due_change(controller: Controller, tp: TopicPartition) -> Change | None:
    """What to do at once about a partition: relieve a replica whose broker shuts down, or find a leader."""
    partition, design = controller.partitions[tp], controller.settings.insync_design
    for replica in partition.replicas:
        broker = controller.brokers.get(replica)
        leaves = broker is not None and broker.shutting_down and not broker.fenced
        if leaves and relievable(partition, replica, design):
            return departs(partition, replica, controller.brokers, design)
    for replica in partition.replicas:
        if available(controller.brokers, replica):
            change = returns(partition, replica, design)
            if change is not None:
                return change
    return elects_unclean(partition, controller.brokers)


def placed(brokers: Sequence[BrokerId], partitions: int, copies: int, start: int) -> list[tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first; `start` says with whom to begin.

    The followers of one broker's partitions are spread over the others (StripedReplicaPlacer, without racks).
    """
    count = len(brokers)
    assert 1 <= copies <= count
    placement: list[tuple[BrokerId, ...]] = []
    for partition in range(start, start + partitions):
        shift = (partition // count) % max(1, count - 1)
        leader = partition % count
        followers = [(leader + 1 + (shift + i) % max(1, count - 1)) % count for i in range(copies - 1)]
        placement.append(tuple(brokers[b] for b in (leader, *followers)))
    return placement
