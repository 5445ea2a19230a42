"""The controller: sessions of brokers, the metadata of partitions, and who leads them.

`handle(controller, input, now)`. `elections` decides about one partition, `topic_changes` about topics;
`controller_state` is what the controller knows. This module has the sessions of brokers and what is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from immutables import Map

from isr_broker.core.controller_state import (
    Controller,
    ControllerStep,
    Key,
    answers,
    apply_records,
    brokers_for,
    decides,
    forgets,
    has,
    is_observer,
    release_answers,
    with_settings,
)
from isr_broker.core.effects import Halt, Send
from isr_broker.core.elections import (
    Change,
    alter,
    available,
    departs,
    elects_anybody,
    moves,
    partition_after_restart,
    relievable,
    returns,
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
    Heartbeat,
    HeartbeatAnswer,
    ListReassignments,
    MetadataRecord,
    Millis,
    PartitionMetadata,
    ReassignPartition,
    RegisterBroker,
    TopicPartition,
    UnregisterBroker,
    lost_metadata,
    unregistration,
)
from isr_broker.core.reassignments import controller_accepts_and_completes, lists_reassignments, reassigns
from isr_broker.core.topic_changes import alters_configs, creates_partitions, creates_topic, deletes_topic
from isr_broker.settings import Settings


def controller_from_records(
    settings: Settings, records: Iterable[MetadataRecord], now: Millis, cluster: str = ""
) -> Controller:
    """The controller as its durable metadata log has it; every session begins anew.

    Its last life may have ended between the record that a broker shuts down and those that relieve it.
    """
    return controller_begins(apply_records(Controller(settings=settings, cluster=cluster), tuple(records)), now)


def controller_begins(controller: Controller, now: Millis) -> Controller:
    """The same of brokers and partitions that are known already."""
    contacts = {b: now for b, broker in controller.brokers.items() if not broker.fenced}
    leaving = {b for b, broker in controller.brokers.items() if broker.shutting_down and not broker.fenced}
    due = frozenset(tp for tp, p in controller.partitions.items() if p.leader is None or leaving & set(p.replicas))
    settings_changed = any(with_settings(controller, p) != p for p in controller.partitions.values())
    return attrs.evolve(
        controller,
        durable_offset=controller.offset,
        next_balance=next_balance_after(controller.settings, now),
        contacts=Map(contacts),
        due=due,
        settings_changed=settings_changed,
        read=Map(dict.fromkeys(controller.brokers, 0)),
    )


def next_balance_after(settings: Settings, now: Millis) -> Millis:
    return now + 1000 * settings.leader_imbalance_check_interval_seconds


def handle(controller: Controller, controller_input: ControllerInput, now: Millis) -> ControllerStep:
    """One input of the controller."""
    match controller_input:
        case Tick():
            return _ticks(controller, now)
        case Written(offset, compacted):
            controller = attrs.evolve(controller, durable_offset=max(controller.durable_offset, offset))
            return release_answers(forgets(controller) if compacted else controller)
        case Received(source, AlterPartitionRequest() as request):
            return _alters(controller, source, request)
        case Received(source, RegisterBroker() as request):
            return _registers(controller, source, request, now)
        case Received(source, Heartbeat() as request):
            return _heartbeat(controller, source, request, now)
        case Received(source, FetchMetadata() as request):
            return _reads(controller, source, request)
        case Received(source, CreateTopic() as request):
            return creates_topic(controller, source, request)
        case Received(source, CreatePartitions() as request):
            return creates_partitions(controller, source, request)
        case Received(source, AlterTopicConfigs() as request):
            return alters_configs(controller, source, request)
        case Received(source, DeleteTopic() as request):
            return deletes_topic(controller, source, request)
        case Received(source, UnregisterBroker() as request):
            return _unregisters(controller, source, request)
        case Received(source, ReassignPartition() as request):
            return reassigns(controller, source, request)
        case Received(source, ListReassignments() as request):
            return lists_reassignments(controller, source, request)
        case Received(source, ElectPreferredLeader() | ElectUncleanLeader() as request):
            return _elects(controller, source, request)
        case Received():
            return ControllerStep(controller)


def deadline(controller: Controller) -> Millis:
    """When the controller next wants a Tick; 0 for at once."""
    if controller.due or controller.settings_changed:
        return 0
    timeout = controller.settings.broker_session_timeout_ms
    return min([controller.next_balance, *(contact + timeout for contact in controller.contacts.values())])


# Requests.


def _alters(controller: Controller, source: BrokerId, request: AlterPartitionRequest) -> ControllerStep:
    """A leader asks for another ISR, which may complete a reassignment.

    If that makes another broker the leader the error is NEW_LEADER_ELECTED, and the change is made all the same.
    Model: controller_accepts_, _refuses_, _rejects_stale_alter_partition, controller_accepts_and_completes.
    """
    old = controller.partitions.get(request.partition)
    refused = controller.refused_requests.get(request.partition)
    brokers = brokers_for(controller, request.partition)
    error, change = alter(old, request, refused, brokers, controller.settings.insync_design)
    if error is Error.INELIGIBLE_REPLICA and change is not None:  # and not that a copy was dropped
        controller = attrs.evolve(
            controller, refused_requests=controller.refused_requests.set(request.partition, request)
        )
    if old is not None and error is Error.NONE:
        completion = controller_accepts_and_completes(
            old, request.members, request.leader, brokers, controller.settings.insync_design
        )
        change = completion or change
        error = Error.NEW_LEADER_ELECTED if completion and completion.partition.leader != old.leader else Error.NONE
    new = old if change is None else change.partition
    answer = request.answer(error) if new is None else request.answer(error, new.leader_epoch, new.partition_epoch)
    return decides(controller, (), () if change is None else (change,), (Send(source, answer),))


def _registers(controller: Controller, source: BrokerId, request: RegisterBroker, now: Millis) -> ControllerStep:
    """A broker starts. One of another cluster is refused, and one with the data directory of another broker.

    One whose last process still has a session, or has been heard for as long as one lasts, must wait until that is
    over, except with ZooKeeper.

    ClusterControlManager.registerBroker. Model: broker_restarts, broker_restarts_unnoticed.
    """
    broker, design = request.broker, controller.settings.insync_design

    def refuse(error: Error) -> ControllerStep:
        return answers(
            controller, source, BrokerRegistered(broker=broker, incarnation=request.incarnation, error=error)
        )

    if request.cluster != controller.cluster and not design.no_cluster_id_check:
        return refuse(Error.INCONSISTENT_CLUSTER_ID)
    previous_registration = controller.brokers.get(broker)
    if previous_registration is not None and previous_registration.incarnation == request.incarnation:
        answer = BrokerRegistered(
            broker=broker, incarnation=request.incarnation, broker_epoch=previous_registration.epoch
        )
        return answers(controller, source, answer)
    has_session = previous_registration is not None and not previous_registration.fenced
    if (has_session or _is_heard(controller, broker, now)) and not design.sessions_outlive_restarts:
        return refuse(Error.DUPLICATE_BROKER_REGISTRATION)
    others = (b for number, b in controller.brokers.items() if number != broker)
    if request.directory and any(b.directory == request.directory for b in others):
        return refuse(Error.INVALID_REGISTRATION)
    if not has(controller, request.position) or request.previous_broker_epoch > controller.offset:
        # Its log has decisions that this controller never made, or has forgotten.
        return refuse(Error.OFFSET_OUT_OF_RANGE)
    clean = previous_registration is not None and previous_registration.epoch == request.previous_broker_epoch
    registered = BrokerMetadata(
        broker=broker,
        epoch=controller.offset + 1,
        incarnation=request.incarnation,
        fenced=not has_session,
        host=request.host,
        port=request.port,
        rack=request.rack,
        directory=request.directory,
        peer_host=request.peer_host,
        peer_port=request.peer_port,
    )
    changes = [
        Change(partition_after_restart(partition, broker, clean or has_session, design), "broker_restarts", broker)
        for partition in _partitions_of(controller, broker)
    ]
    answer = BrokerRegistered(broker=broker, incarnation=request.incarnation, broker_epoch=registered.epoch)
    if broker in controller.offline:
        controller = attrs.evolve(controller, offline=controller.offline.delete(broker))
    step = decides(controller, (registered,), changes, (Send(source, answer),))
    if not has_session:
        return step
    return attrs.evolve(step, core=attrs.evolve(step.core, contacts=step.core.contacts.set(broker, now)))


def _is_heard(controller: Controller, broker: BrokerId, now: Millis) -> bool:
    """A process that is registered with this number has sent a heartbeat, and is not silent for as long as a session.

    It may be fenced: it has yet to read the metadata, or was silent before (BrokerHeartbeatTracker.hasValidSession).
    """
    timeout = controller.settings.broker_session_timeout_ms
    return broker in controller.contacts and now < controller.contacts[broker] + timeout


def _reads(controller: Controller, source: BrokerId, request: FetchMetadata) -> ControllerStep:
    """A broker asks for news; one that has read what this controller does not have has seen it lose records.

    A broker of this very epoch was registered here, so what it has read was durable here: nothing more is decided.
    """
    broker = controller.brokers.get(request.broker)
    if not has(controller, request.position):
        if broker is None or broker.epoch != request.broker_epoch:
            return ControllerStep(controller)
        return ControllerStep(
            controller, (Halt(lost_metadata(f"broker {request.broker} has read", request.position.offset)),)
        )
    read = controller.read.set(source, request.offset)
    controller = attrs.evolve(controller, read=read, waiting_brokers=controller.waiting_brokers.set(source, request))
    if broker is None or broker.epoch != request.broker_epoch:
        return release_answers(controller)
    controller = attrs.evolve(controller, observers=controller.observers | {request.broker})
    number, _ = controller.offline.get(request.broker, (0, frozenset[TopicPartition]()))
    if request.offline_changes < number or not (request.offline or number):
        return release_answers(controller)
    now_offline = (request.offline_changes, frozenset(request.offline))
    controller = attrs.evolve(controller, offline=controller.offline.set(request.broker, now_offline))
    changes = [_without_offline(controller, tp, request.broker) for tp in sorted(request.offline)]
    due = controller.due | {tp for tp, p in controller.partitions.items() if p.leader is None}
    return decides(attrs.evolve(controller, due=due), (), [change for change in changes if change is not None])


def _without_offline(controller: Controller, tp: TopicPartition, broker: BrokerId) -> Change | None:
    """What becomes of a partition whose log on a broker is damaged, as if that broker were fenced (KIP-858).

    Where others are in sync nobody counts on that log, so it leaves the ELR, too. Model: controller_fences_...
    """
    old, design = controller.partitions.get(tp), controller.settings.insync_design
    if old is None or broker not in old.replicas:
        return None
    if broker in old.isr or broker == old.leader:
        change = departs(old, broker, brokers_for(controller, tp), design)
        if change.partition.leader is not None:
            partition = attrs.evolve(change.partition, elr=change.partition.elr - {broker})
            change = attrs.evolve(change, partition=partition)
        return change if change.partition != old else None
    if broker in old.elr and old.leader is not None:
        partition = attrs.evolve(old, elr=old.elr - {broker}, partition_epoch=old.partition_epoch + 1)
        return Change(partition, "controller_fences_outsider", broker)
    return None


def _heartbeat(controller: Controller, source: BrokerId, request: Heartbeat, now: Millis) -> ControllerStep:
    """A broker is heard: its session goes on, begins, or ends in order (BrokerHeartbeatManager).

    It begins for one that has read all up to its registration, in the log of this controller and in no other: had this
    one lost records, it would elect a broker by metadata that are no longer so.
    """
    broker = controller.brokers.get(request.broker)
    if broker is None or broker.epoch != request.broker_epoch:
        error = Error.BROKER_ID_NOT_REGISTERED if broker is None else Error.STALE_BROKER_EPOCH
        answer = HeartbeatAnswer(broker=request.broker, broker_epoch=request.broker_epoch, error=error)
        return answers(controller, source, answer)
    controller = attrs.evolve(controller, read=controller.read.set(broker.broker, request.metadata_offset))
    # A fenced one that is to stop is let go: its number is free, as after any stop in order.
    goes = broker.fenced and request.wants_to_shut_down
    contacts = controller.contacts
    contacts = _without(contacts, broker.broker) if goes else contacts.set(broker.broker, now)
    controller = attrs.evolve(controller, contacts=contacts)
    if request.wants_to_shut_down and not broker.fenced:
        return _shuts_down(controller, source, broker)
    may_stop = request.wants_to_shut_down
    knows_log = request.reads_log or is_observer(controller, broker)
    caught_up = request.metadata_offset >= broker.epoch and knows_log
    if broker.fenced and not may_stop and caught_up:
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
    _, offline = controller.offline.get(broker.broker, (0, frozenset[TopicPartition]()))
    changes = [
        (partition.partition not in offline and returns(partition, broker.broker, controller.settings.insync_design))
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


def _unregisters(controller: Controller, source: BrokerId, request: UnregisterBroker) -> ControllerStep:
    """A broker is gone for good: its partitions do without it, and its number is free (handleBrokerUnregistered).

    If it comes back it counts as one that did not stop in order. To the model it is fenced, and then crashed.
    """
    broker = controller.brokers.get(request.broker)
    if broker is None:
        error = Error.BROKER_ID_NOT_REGISTERED
        return answers(controller, source, AdminAnswer(request=request.request, error=error))
    answer = Send(source, AdminAnswer(request=request.request))
    return _fences(controller, broker, (answer,), unregistration(broker.broker))


def _others_have_read(controller: Controller, broker: BrokerMetadata, mine: Sequence[PartitionMetadata]) -> bool:
    """Every other broker with a session has read what became of a broker's partitions, and that it stops.

    Else clients would be sent to it after it is gone (BrokerHeartbeatManager.calculateNextBrokerState). To the model,
    where news arrive or do not, a broker may go at once; so whoever steps the cores has nobody said to have read less.
    """
    about: list[Key] = [broker.broker, *(p.partition for p in mine)]
    decided = max(controller.change_offsets.get(key, 0) for key in about)
    others = (b for b in controller.brokers if b != broker.broker and available(controller.brokers, b))
    return all(controller.read.get(b, decided) >= decided for b in others)


def _elects(
    controller: Controller, source: BrokerId, request: ElectPreferredLeader | ElectUncleanLeader
) -> ControllerStep:
    """An admin wants the preferred leader back, or any leader (electLeaders).

    Model: controller_moves_leadership, controller_elects_unclean; controller_elects_returned and
    controller_elects_last_known_leader, where one of these can be had before anybody.
    """
    partition, error = controller.partitions.get(request.partition), Error.NONE
    brokers = brokers_for(controller, request.partition)
    unclean = isinstance(request, ElectUncleanLeader)
    change: Change | None = None
    if partition is None:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader is not None and (unclean or partition.leader == partition.replicas[0]):
        error = Error.ELECTION_NOT_NEEDED
    elif unclean:
        may = attrs.evolve(partition, unclean_leader_election=True)
        change = elects_anybody(may, brokers, controller.settings.insync_design)
        if change is not None:
            asked = attrs.evolve(change.partition, unclean_leader_election=partition.unclean_leader_election)
            change = attrs.evolve(change, partition=asked)
        error = Error.NONE if change else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    else:
        change = moves(partition, partition.replicas[0], brokers)
        error = Error.NONE if change else Error.PREFERRED_LEADER_NOT_AVAILABLE
    answer = Send(source, AdminAnswer(request=request.request, error=error))
    return decides(controller, (), () if change is None else (change,), (answer,))


# Time.


def _partitions_of(controller: Controller, broker: BrokerId) -> list[PartitionMetadata]:
    return [p for _, p in sorted(controller.partitions.items()) if broker in p.replicas]


def _fences(
    controller: Controller,
    broker: BrokerMetadata,
    answers: Iterable[Send] = (),
    record: BrokerMetadata | None = None,
) -> ControllerStep:
    """A broker has no session from now on; all its partitions do without it, in one change.

    `record` is what becomes of its registration, if that is not only that it is fenced.

    Model: controller_fences_outsider, _follower, _leader, _last_leader.
    """
    fenced_broker = attrs.evolve(broker, fenced=True)
    after = attrs.evolve(controller, brokers=controller.brokers.set(broker.broker, fenced_broker))
    design, mine = controller.settings.insync_design, _partitions_of(controller, broker.broker)
    changes = [departs(p, broker.broker, brokers_for(after, p.partition), design) for p in mine]
    controller = attrs.evolve(controller, contacts=_without(controller.contacts, broker.broker))
    return decides(controller, (record or fenced_broker,), changes, answers)


def _without(contacts: Map[BrokerId, Millis], broker: BrokerId) -> Map[BrokerId, Millis]:
    return contacts.delete(broker) if broker in contacts else contacts


def _ticks(controller: Controller, now: Millis) -> ControllerStep:
    """One thing that is due: a silent broker, partitions that need a leader or lose one, leadership to balance."""
    if controller.settings_changed:
        new = [(with_settings(controller, p), p) for _, p in sorted(controller.partitions.items())]
        return decides(attrs.evolve(controller, settings_changed=False), [p for p, q in new if p != q])
    timeout = controller.settings.broker_session_timeout_ms
    ended = sorted(b for b, contact in controller.contacts.items() if contact + timeout <= now)
    if ended and controller.brokers[ended[0]].fenced:
        return ControllerStep(attrs.evolve(controller, contacts=_without(controller.contacts, ended[0])))
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
    moved = (moves(p, p.replicas[0], brokers_for(controller, tp)) for tp, p in sorted(controller.partitions.items()))
    return decides(controller, (), [m for m in moved if m is not None])


def _due_change(controller: Controller, tp: TopicPartition) -> Change | None:
    """What to do at once about a partition: relieve a replica whose broker shuts down, or find a leader."""
    partition, brokers = controller.partitions[tp], brokers_for(controller, tp)
    design = controller.settings.insync_design
    for replica in partition.replicas:
        broker = controller.brokers.get(replica)
        leaves = broker is not None and broker.shutting_down and not broker.fenced
        if leaves and relievable(partition, replica, design):
            return departs(partition, replica, brokers, design)
    return elects_anybody(partition, brokers, design)
