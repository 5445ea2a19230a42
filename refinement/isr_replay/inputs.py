"""The inputs of the cores, one function each.

A function returns None if the core takes no action; it then checks that the core has not changed. Choices of the
environment are parameters: whose timer fires, the order of assignment, how much of a log is lost. `action_table` says
which action of the model each input is.
"""

from __future__ import annotations

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER, Send
from isr_broker.core.inputs import Consume, LogOpened, Produce, Received, ShutDown, Start, Tick
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterTopicConfigs,
    BrokerId,
    BrokerRegistered,
    ElectPreferredLeader,
    Error,
    FetchRequest,
    FetchResponse,
    Heartbeat,
    HeartbeatAnswer,
    ReassignPartition,
    RegisterBroker,
)
from isr_broker.core.node import Node
from isr_broker.core.replica_state import Leading, Replica, leading
from isr_broker.settings import Settings
from isr_replay import canonical_form
from isr_replay.core_driver import (
    BrokerOutcome,
    ControllerOutcome,
    CoreFailed,
    metadata_for,
    recovered_log,
    run_broker,
    run_controller,
    send_to_controller,
)
from isr_replay.system_state import (
    MARK_LOST,
    TP,
    AlterAnswered,
    AlterRequested,
    Broker,
    FetchAnswered,
    FetchRequested,
    batch_of,
    record_in,
)


def with_action(before: Broker, outcome: BrokerOutcome) -> BrokerOutcome | None:
    """The outcome of an input, with the broker in canonical form; None if no action was taken.

    CoreFailed if no action was taken and the broker has changed or acknowledged a record all the same.
    """
    outcome.broker = outcome.canonical
    if outcome.action is not None:
        return outcome
    if outcome.broker != before or outcome.acked:
        raise CoreFailed(f"broker {before.me} took no action and yet is another: {_difference(before, outcome.broker)}")
    return None


def _difference(old: Broker, new: Broker) -> str:
    before, after = old.replica, new.replica
    if before is None or after is None or before == after:
        return f"{old} became {new}"
    fields = [a.name for a in attrs.fields(type(before)) if getattr(before, a.name) != getattr(after, a.name)]
    return ", ".join(f"{name} was {getattr(before, name)} and is {getattr(after, name)}" for name in fields)


def _replica(broker: Broker) -> Replica:
    assert broker.replica is not None
    return broker.replica


def _leading(broker: Broker) -> Leading:
    return leading(_replica(broker))


# Messages that a step sends.


def fetch_sent(outcome: BrokerOutcome) -> FetchRequested | None:
    """The fetch that this step sends, None if it sends none."""
    found = [FetchRequested(s.to, s.message) for s in outcome.sends if isinstance(s.message, FetchRequest)]
    return found[-1] if found else None


def answer_sent(outcome: BrokerOutcome) -> FetchAnswered:
    """The answer to the fetch that this step takes."""
    (answer,) = [s.message for s in outcome.sends if isinstance(s.message, FetchResponse)]
    return FetchAnswered(answer)


def proposal_sent(before: Broker, outcome: BrokerOutcome) -> AlterRequested:
    """The AlterPartition that this step sends, and the broker that would join by it."""
    (request,) = [s.message for s in outcome.sends if isinstance(s.message, AlterPartitionRequest)]
    isr = _leading(before).isr
    return AlterRequested(canonical_form.canonical_alter(request, isr), min(request.members - isr, default=None))


# A broker's replica.


def produce(broker: Broker, record: int, acks: int) -> BrokerOutcome | None:
    """A producer's record arrives."""
    return with_action(
        broker, run_broker(broker, Produce(request=record, partition=TP, records=batch_of(record), acks=acks))
    )


def deliver_fetch(leader: Broker, fetch: FetchRequested) -> BrokerOutcome | None:
    """A follower's fetch arrives."""
    return with_action(leader, run_broker(leader, Received(fetch.request.replica, fetch.request)))


def deliver_fetch_answer(follower: Broker, answer: FetchAnswered) -> BrokerOutcome | None:
    """The answer to a fetch arrives."""
    return with_action(follower, run_broker(follower, Received(answer.response.leader, answer.response)))


def deliver_alter_answer(leader: Broker, deliver_alter_partition: AlterAnswered) -> BrokerOutcome | None:
    """The answer to an AlterPartition arrives."""
    return with_action(leader, run_broker(leader, Received(CONTROLLER, deliver_alter_partition.response)))


def tick(broker: Broker) -> BrokerOutcome | None:
    """The broker ticks, with no timer due: it does what it wants to do at once."""
    return with_action(broker, run_broker(broker, Tick()))


def tick_proposing(leader: Broker, follower: BrokerId) -> BrokerOutcome | None:
    """The leader ticks, with this follower as the only one that it may propose to join.

    A core proposes the lowest id among them. In the model any of them may be proposed, because ids are only names.
    """
    role = _leading(leader)
    if follower not in role.joining or leader.node is None:
        return None
    alone = attrs.evolve(role, joining=frozenset({follower}))
    outcome = tick(attrs.evolve(leader, node=canonical_form.with_role(leader.node, alone)))
    if outcome is not None and outcome.broker.node is not None:
        after = _leading(outcome.broker)
        others = role.joining - alone.joining
        node = canonical_form.with_role(outcome.broker.node, attrs.evolve(after, joining=after.joining | others))
        outcome.broker = attrs.evolve(outcome.broker, node=canonical_form.node(node))
    return outcome


def _deliver_again(leader: Broker, follower: BrokerId) -> BrokerOutcome | None:
    """The last fetch of a follower outside the ISR arrives a second time; None if there was none."""
    replica, role = _replica(leader), _leading(leader)
    follower_state = role.followers.get(follower)
    if follower_state is None or follower_state.end is None or follower in role.isr:
        return None
    request = FetchRequest(
        partition=TP,
        replica=follower,
        broker_epoch=follower_state.broker_epoch,
        leader_epoch=replica.leader_epoch,
        offset=follower_state.end,
        last_epoch=replica.log.epochs.last_before(follower_state.end),
        max_bytes=replica.settings.replica_fetch_max_bytes,
    )
    return run_broker(leader, Received(follower, request))


def _commits(leader: Broker, outcome: BrokerOutcome) -> bool:
    return _replica(outcome.broker).high_watermark != _replica(leader).high_watermark or outcome.acked != 0


def repeat_fetch_and_tick(leader: Broker, follower: BrokerId) -> BrokerOutcome | None:
    """The last fetch of a follower arrives again, so that the leader may propose it again, and the leader ticks.

    None if that fetch would also move the high watermark.
    """
    done = _deliver_again(leader, follower)
    return None if done is None or _commits(leader, done) else tick_proposing(done.canonical, follower)


def repeated_fetch_commits(leader: Broker, follower: BrokerId) -> bool:
    """Whether the leader would move its high watermark if the follower's last fetch arrived a second time."""
    done = _deliver_again(leader, follower)
    return done is not None and _commits(leader, done)


def check_lag(leader: Broker, lagging: frozenset[BrokerId]) -> BrokerOutcome | None:
    """The leader checks its ISR for lag, when these followers have not been caught up for too long."""
    assert leader.node is not None
    old = attrs.evolve(leader, node=canonical_form.with_lagging_followers(leader.node, lagging))
    outcome = run_broker(old, Tick())
    if outcome.action is None:
        outcome.broker = _with_caught_up_times(outcome.canonical, leader, lagging)
    else:
        outcome.broker = _with_caught_up_times(outcome.broker, leader, lagging)
    return with_action(leader, outcome)


def _with_caught_up_times(broker: Broker, before: Broker, lagging: frozenset[BrokerId]) -> Broker:
    """The broker with the times of its followers as they were before `check_lag` moved them back."""
    node, replica = broker.node, broker.replica
    if node is None or replica is None or not isinstance(replica.role, Leading):
        return broker
    followers = replica.role.followers
    for member in lagging:
        caught_up = _leading(before).followers[member].caught_up_at
        followers = followers.set(member, attrs.evolve(followers[member], caught_up_at=caught_up))
    replica = attrs.evolve(replica, role=attrs.evolve(replica.role, followers=followers))
    return attrs.evolve(broker, node=attrs.evolve(node, replicas=node.replicas.set(TP, replica)))


def time_out_fetch(follower: Broker) -> BrokerOutcome | None:
    """The follower's fetch times out."""
    assert follower.node is not None
    return with_action(
        follower, run_broker(attrs.evolve(follower, node=canonical_form.with_fetch_timed_out(follower.node)), Tick())
    )


def deliver_metadata(core: Controller, broker: Broker) -> BrokerOutcome | None:
    """The broker asks the controller for newer metadata and gets it. If its log is not open yet, it is opened first."""
    partition = core.partitions[TP]
    if broker.me not in partition.replicas:
        outcome = _learns_of_no_replica(core, broker)
        removed_in = partition.leader_epoch
    else:
        outcome, removed_in = _learns_of_replica(core, broker), 0
    if outcome is not None:
        newest = broker.minimum if removed_in else _minimum_known(core, broker)
        outcome.broker = attrs.evolve(outcome.broker, removed_in=removed_in, minimum=newest)
        return outcome
    if broker.minimum == _minimum_known(core, broker) or _is_behind(core, broker):
        return None
    return BrokerOutcome(attrs.evolve(broker, minimum=partition.min_insync_replicas), ["broker_learns_minimum"])


def _minimum_known(core: Controller, broker: Broker) -> int:
    """min.insync.replicas by the newest metadata, where somebody changes it."""
    return core.partitions[TP].min_insync_replicas if broker.minimum else 0


def _is_behind(core: Controller, broker: Broker) -> bool:
    """The broker does not know the leader and its epoch as the controller has them."""
    partition, replica = core.partitions[TP], broker.replica
    known = (None, broker.removed_in) if replica is None else (replica.leader, max(0, replica.leader_epoch))
    return known != (partition.leader, partition.leader_epoch)


def _log_report(broker: Broker) -> LogOpened:
    return LogOpened(partition=TP, log=recovered_log(broker.log), high_watermark=broker.checkpoint)


def reads_metadata(core: Controller, broker: Broker) -> Broker:
    """A broker without a replica reads the metadata, which say that it has none."""
    return run_broker(broker, Received(CONTROLLER, metadata_for(core, broker))).canonical


def _learns_of_no_replica(core: Controller, broker: Broker) -> BrokerOutcome | None:
    """The metadata say that the broker has no replica: it deletes the one that it has; None if it has none.

    A log that is not open yet is opened after that. An empty one, of a replica that knows no leader, counts as none.
    """
    node, replica = broker.node, broker.replica
    assert node is not None
    if replica is None and not broker.log:
        knows = attrs.evolve(broker, node=attrs.evolve(node, metadata_offset=canonical_form.READ))
        return with_action(knows, BrokerOutcome(reads_metadata(core, broker)))
    if replica is not None and replica.leader is None and not broker.log:
        return None
    news = Received(CONTROLLER, metadata_for(core, broker))
    return with_action(broker, run_broker(broker, news, *(() if replica is not None else (_log_report(broker),))))


def _learns_of_replica(core: Controller, broker: Broker) -> BrokerOutcome | None:
    news = Received(CONTROLLER, metadata_for(core, broker))
    assert broker.node is not None
    if broker.replica is None and TP in broker.node.opening:
        outcome = run_broker(broker, news, _log_report(broker))
    else:
        outcome = run_broker(broker, news)
    if outcome.action is None and broker.replica is not None:
        # It may know more of other brokers now, which is in no variable of the model.
        outcome.broker = outcome.canonical
        return (
            with_action(broker, outcome)
            if _without_fenced_view(outcome.broker) != _without_fenced_view(broker)
            else None
        )
    return with_action(broker, outcome)


def _without_fenced_view(broker: Broker) -> Replica:
    """The replica without its view of who is fenced, which it learns together with any other news."""
    replica = _replica(broker)
    if not isinstance(replica.role, Leading):
        return replica
    return attrs.evolve(replica, role=attrs.evolve(replica.role, ineligible=frozenset()))


def consume(broker: Broker, position: int) -> tuple[BrokerOutcome, int] | None:
    """A consumer reads one record at this position: the outcome and the record, None if it gets none."""
    ask = Consume(request=0, partition=TP, offset=position, max_bytes=1)
    outcome = with_action(broker, run_broker(broker, ask))
    if outcome is None:
        return None
    (answer,) = outcome.consumed
    if answer.records is None or answer.records.offset != position:
        raise CoreFailed(f"a consumer that asks for {position} is answered {answer}")
    return outcome, record_in(broker.log[position])


# Processes.


def crash(broker: Broker, survivors: int, checkpoint: int) -> Broker:
    """The process crashes: the first `survivors` records of its log are left, and this checkpoint of its watermark."""
    return Broker(broker.me, None, broker.log[:survivors], checkpoint, broker.incarnation, minimum=broker.minimum)


def lose_log(broker: Broker) -> Broker:
    """The broker is down, and its log is gone, and so is the mark of a clean shutdown, if there was one."""
    return attrs.evolve(broker, log=(), checkpoint=0, clean=broker.clean if broker.clean == -1 else MARK_LOST)


def restart(core: Controller, broker: Broker, settings: Settings) -> tuple[ControllerOutcome, Broker] | None:
    """The process starts and registers; None if the controller refuses because the old session is still open."""
    started = attrs.evolve(broker, node=Node(me=broker.me, settings=settings))
    start = Start(incarnation=broker.incarnation + 1, previous_broker_epoch=max(-1, broker.clean))
    outcome = run_broker(started, start)
    (asks,) = [s for s in outcome.sends if isinstance(s.message, RegisterBroker)]
    registered = send_to_controller(canonical_form.with_next_broker_epoch(core, broker.me), broker.me, asks)
    (answer,) = [s.message for s in registered.sends if isinstance(s.message, BrokerRegistered)]
    if answer.error is not Error.NONE:
        if registered.canonical != core:
            raise CoreFailed("the controller changes by a registration that it refuses")
        return None
    outcome = run_broker(outcome.broker, Received(CONTROLLER, answer))
    minimum = _minimum_known(registered.core, broker)
    broker = attrs.evolve(outcome.canonical, incarnation=answer.broker_epoch, clean=-1, minimum=minimum)
    return registered, broker


def send_heartbeat(core: Controller, broker: Broker) -> tuple[ControllerOutcome, BrokerOutcome]:
    """The broker sends a heartbeat and is answered.

    Before that it learns the metadata that it needs for its session.
    """
    node = broker.node
    assert node is not None
    if broker.replica is None and node.metadata_offset < node.broker_epoch:
        # Its log is opened later: it has learned the metadata, and its replica has not.
        done = run_broker(broker, Received(CONTROLLER, metadata_for(core, broker)), opens=False)
    else:
        done = run_broker(attrs.evolve(broker, node=canonical_form.with_heartbeat_due(node)), Tick())
    return _heartbeat(core, done)


def ask_to_shut_down(core: Controller, broker: Broker) -> tuple[ControllerOutcome, BrokerOutcome]:
    """The process is asked to shut down, and says so in a heartbeat."""
    return _heartbeat(core, run_broker(broker, ShutDown()))


def _heartbeat(core: Controller, outcome: BrokerOutcome) -> tuple[ControllerOutcome, BrokerOutcome]:
    beats = [s for s in outcome.sends if isinstance(s.message, Heartbeat)]
    me = outcome.broker.me
    ruling = send_to_controller(core, me, beats[-1])
    (answer,) = [s.message for s in ruling.sends if isinstance(s.message, HeartbeatAnswer)]
    return ruling, run_broker(outcome.broker, Received(CONTROLLER, answer))


# The controller.


def deliver_alter_partition(
    core: Controller, proposal: AlterRequested, first: BrokerId
) -> tuple[ControllerOutcome, AlterPartitionResponse]:
    """An AlterPartition arrives at the controller: the outcome there, and the answer.

    `first` is the first replica in the assignment, which leads where the leader is removed.
    """
    ask = Send(CONTROLLER, proposal.request)
    ruling = send_to_controller(canonical_form.with_first_assigned(core, first), proposal.request.leader, ask)
    (answer,) = [s.message for s in ruling.sends if isinstance(s.message, AlterPartitionResponse)]
    return ruling, answer


def expire_session(core: Controller, broker: BrokerId, first: BrokerId) -> ControllerOutcome:
    """The session of a broker ends; `first` is the first replica in the assignment."""
    return run_controller(
        canonical_form.with_session_expired(canonical_form.with_first_assigned(core, first), broker), Tick()
    )


def tick_controller(core: Controller, first: BrokerId) -> ControllerOutcome:
    """The controller ticks and does what is due at once; `first` is the first replica in the assignment."""
    return run_controller(canonical_form.with_first_assigned(core, first), Tick())


def elect_preferred(core: Controller, leader: BrokerId) -> ControllerOutcome:
    """An admin asks for the election of the preferred leader, which is this broker."""
    ask = Received(CONTROLLER, ElectPreferredLeader(request=0, partition=TP))
    return run_controller(canonical_form.with_first_assigned(core, leader), ask)


# What people ask of the controller.


def reassign(core: Controller, target: tuple[BrokerId, ...]) -> ControllerOutcome:
    """An admin asks for these replicas, the preferred leader first.

    Another order of the same replicas would be a change; in the model it is none, so the old order is as the new one.
    """
    ask = Received(CONTROLLER, ReassignPartition(request=0, partition=TP, replicas=target))
    return run_controller(canonical_form.with_order(core, target), ask)


def cancel_reassignment(core: Controller, first: BrokerId) -> ControllerOutcome:
    """An admin cancels the reassignment that is under way; `first` is the first replica in the assignment."""
    ask = Received(CONTROLLER, ReassignPartition(request=0, partition=TP, replicas=None))
    return run_controller(canonical_form.with_first_assigned(core, first), ask)


def set_topic(core: Controller, name: str, value: str) -> ControllerOutcome:
    """An admin gives a setting of the topic another value."""
    ask = Received(CONTROLLER, AlterTopicConfigs(request=0, topic=TP.topic, changes=((name, value),)))
    return run_controller(core, ask)
