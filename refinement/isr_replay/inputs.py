"""The inputs of the cores, one function each: what is told to whom, and what must then be so.

A function gives `None` where the core takes no action; then the core must be as it was. What the environment has to
choose (whose clock, which order, how much is lost) are parameters. `table` says which action each of these leads to.
"""

from __future__ import annotations

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER, Send
from isr_broker.core.inputs import Consume, LogOpened, Produce, Received, ShutDown, Start, Tick
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    BrokerRegistered,
    ElectPreferredLeader,
    Error,
    FetchRequest,
    FetchResponse,
    Heartbeat,
    HeartbeatAnswer,
    RegisterBroker,
)
from isr_broker.core.node import Node
from isr_broker.core.replica_state import Leading, Replica, leading
from isr_broker.settings import Settings
from isr_replay import canonical_form
from isr_replay.core_driver import CoreFailed, Done, Ruled, asked_to, found, news_for, ruled, told
from isr_replay.system_state import TP, Answered, Asked, Broker, Decided, Proposed, batch_of, record_in


def taken(before: Broker, done: Done) -> Done | None:
    """The input's outcome, or None if no action was taken; then nothing else may have happened either."""
    done.broker = done.rested
    if done.action is not None:
        return done
    if done.broker != before or done.acked:
        raise CoreFailed(f"broker {before.me} took no action and yet is another: {_difference(before, done.broker)}")
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


def fetch_sent(done: Done) -> Asked | None:
    """The fetch that the step puts in flight, if it does."""
    found = [Asked(s.to, s.message) for s in done.sent if isinstance(s.message, FetchRequest)]
    return found[-1] if found else None


def answer_sent(done: Done) -> Answered:
    """The answer to the fetch that the step takes."""
    (answer,) = [s.message for s in done.sent if isinstance(s.message, FetchResponse)]
    return Answered(answer)


def proposal_sent(before: Broker, done: Done) -> Proposed:
    """The AlterPartition that the step puts in flight, and who would join by it."""
    (request,) = [s.message for s in done.sent if isinstance(s.message, AlterPartitionRequest)]
    isr = _leading(before).isr
    return Proposed(canonical_form.proposal(request, isr), min(request.members - isr, default=None))


# A broker's replica.


def produced(broker: Broker, record: int, acks: int) -> Done | None:
    """A producer's record arrives."""
    return taken(broker, told(broker, Produce(request=record, partition=TP, records=batch_of(record), acks=acks)))


def fetched(leader: Broker, asked: Asked) -> Done | None:
    """A follower's fetch arrives."""
    return taken(leader, told(leader, Received(asked.request.replica, asked.request)))


def answered(follower: Broker, answer: Answered) -> Done | None:
    """The answer to a fetch arrives."""
    return taken(follower, told(follower, Received(answer.response.leader, answer.response)))


def heard(leader: Broker, decided: Decided) -> Done | None:
    """The answer to an AlterPartition arrives."""
    return taken(leader, told(leader, Received(CONTROLLER, decided.response)))


def ticked(broker: Broker) -> Done | None:
    """Whatever the replica wants to do at once."""
    return taken(broker, told(broker, Tick()))


def ticked_for(leader: Broker, follower: BrokerId) -> Done | None:
    """What the leader does at once, if of those whom it may propose this follower comes first.

    A core takes the lowest of the ids, which are only names.
    """
    role = _leading(leader)
    if follower not in role.joining or leader.node is None:
        return None
    alone = attrs.evolve(role, joining=frozenset({follower}))
    done = ticked(attrs.evolve(leader, node=canonical_form.with_role(leader.node, alone)))
    if done is not None and done.broker.node is not None:
        after = _leading(done.broker)
        others = role.joining - alone.joining
        node = canonical_form.with_role(done.broker.node, attrs.evolve(after, joining=after.joining | others))
        done.broker = attrs.evolve(done.broker, node=canonical_form.node(node))
    return done


def _arrived_twice(leader: Broker, follower: BrokerId) -> Done | None:
    """The fetch that the leader took last from a follower outside its ISR arrives a second time."""
    replica, role = _replica(leader), _leading(leader)
    known = role.followers[follower]
    if known.end is None or follower in role.isr:
        return None
    request = FetchRequest(
        partition=TP,
        replica=follower,
        broker_epoch=known.broker_epoch,
        leader_epoch=replica.leader_epoch,
        offset=known.end,
        last_epoch=replica.log.epochs.last_before(known.end),
        max_bytes=replica.settings.replica_fetch_max_bytes,
    )
    return told(leader, Received(follower, request))


def _moved(leader: Broker, done: Done) -> bool:
    return _replica(done.broker).high_watermark != _replica(leader).high_watermark or done.acked != 0


def reminded(leader: Broker, follower: BrokerId) -> Done | None:
    """A follower's last fetch arrives a second time, which only reminds the leader of it, and then the leader ticks."""
    done = _arrived_twice(leader, follower)
    return None if done is None or _moved(leader, done) else ticked_for(done.rested, follower)


def commits_first(leader: Broker, follower: BrokerId) -> bool:
    """Whether the leader would move its watermark if the follower's last fetch arrived a second time."""
    done = _arrived_twice(leader, follower)
    return done is not None and _moved(leader, done)


def looked_for_lag(leader: Broker, lagging: frozenset[BrokerId]) -> Done | None:
    """The leader looks at its ISR when these followers have not been at the log end for long."""
    assert leader.node is not None
    old = attrs.evolve(leader, node=canonical_form.aged_followers(leader.node, lagging))
    done = told(old, Tick())
    if done.action is None:
        done.broker = _restored(done.rested, leader, lagging)
    else:
        done.broker = _restored(done.broker, leader, lagging)
    return taken(leader, done)


def _restored(broker: Broker, before: Broker, lagging: frozenset[BrokerId]) -> Broker:
    """Whether a follower ever caught up is what it was: only its age was made up."""
    node, replica = broker.node, broker.replica
    if node is None or replica is None or not isinstance(replica.role, Leading):
        return broker
    followers = replica.role.followers
    for member in lagging:
        caught_up = _leading(before).followers[member].caught_up_at
        followers = followers.set(member, attrs.evolve(followers[member], caught_up_at=caught_up))
    replica = attrs.evolve(replica, role=attrs.evolve(replica.role, followers=followers))
    return attrs.evolve(broker, node=attrs.evolve(node, held=node.held.set(TP, replica)))


def waited_for_answer(follower: Broker) -> Done | None:
    """The follower has waited long enough for an answer."""
    assert follower.node is not None
    return taken(follower, told(attrs.evolve(follower, node=canonical_form.aged_fetch(follower.node)), Tick()))


def learned(core: Controller, broker: Broker) -> Done | None:
    """The broker asks the controller for newer metadata, and gets it; if its log is not open yet, it is opened."""
    news = Received(CONTROLLER, news_for(core, broker))
    assert broker.node is not None
    if broker.replica is None and TP in broker.node.opening:
        opened = LogOpened(partition=TP, log=found(broker.log), high_watermark=broker.checkpoint)
        done = told(broker, news, opened)
    else:
        done = told(broker, news)
    if done.action is None and broker.replica is not None:
        # It may know more of others now, which is in no variable.
        done.broker = done.rested
        return taken(broker, done) if _without_look(done.broker) != _without_look(broker) else None
    return taken(broker, done)


def _without_look(broker: Broker) -> Replica:
    """The replica, but for whom it believes to be fenced, which it learns together with whatever is new."""
    replica = _replica(broker)
    if not isinstance(replica.role, Leading):
        return replica
    return attrs.evolve(replica, role=attrs.evolve(replica.role, ineligible=frozenset()))


def consumed(broker: Broker, position: int) -> tuple[Done, int] | None:
    """A consumer asks for what comes next, and takes one record of what it gets."""
    ask = Consume(request=0, partition=TP, offset=position, max_bytes=1)
    done = taken(broker, told(broker, ask))
    if done is None:
        return None
    (answer,) = done.consumed
    if answer.records is None or answer.records.offset != position:
        raise CoreFailed(f"a consumer that asks for {position} is answered {answer}")
    return done, record_in(broker.log[position])


# Processes.


def crashed(broker: Broker, survivors: int, checkpoint: int) -> Broker:
    """The process is gone; of its log these records survive, and of its watermarks this one was checkpointed."""
    return Broker(broker.me, None, broker.log[:survivors], checkpoint, broker.incarnation)


def restarted(core: Controller, broker: Broker, settings: Settings) -> tuple[Ruled, Broker] | None:
    """The process starts and registers; None if the controller does not take it yet."""
    started = attrs.evolve(broker, node=Node(me=broker.me, settings=settings))
    start = Start(incarnation=broker.incarnation + 1, previous_broker_epoch=broker.clean)
    done = told(started, start)
    (asks,) = [s for s in done.sent if isinstance(s.message, RegisterBroker)]
    registered = asked_to(canonical_form.before_registration(core, broker.me), broker.me, asks)
    (answer,) = [s.message for s in registered.sent if isinstance(s.message, BrokerRegistered)]
    if answer.error is not Error.NONE:
        if registered.rested != core:
            raise CoreFailed("the controller changes by a registration that it refuses")
        return None
    done = told(done.broker, Received(CONTROLLER, answer))
    broker = attrs.evolve(done.rested, incarnation=answer.broker_epoch, clean=-1)
    return registered, broker


def called(core: Controller, broker: Broker) -> tuple[Ruled, Done]:
    """The broker's heartbeat, after it has learned what it must know by then, and the controller's answer."""
    node = broker.node
    assert node is not None
    if broker.replica is None and node.metadata_offset < node.broker_epoch:
        # Its log is opened later: what it has learned it has not handed on yet.
        done = told(broker, Received(CONTROLLER, news_for(core, broker)), opens=False)
    else:
        done = told(attrs.evolve(broker, node=canonical_form.calling(node)), Tick())
    return _heartbeat(core, done)


def asked_to_stop(core: Controller, broker: Broker) -> tuple[Ruled, Done]:
    """The process is asked to stop, and says so in its heartbeat."""
    return _heartbeat(core, told(broker, ShutDown()))


def _heartbeat(core: Controller, done: Done) -> tuple[Ruled, Done]:
    beats = [s for s in done.sent if isinstance(s.message, Heartbeat)]
    me = done.broker.me
    ruling = asked_to(core, me, beats[-1])
    (answer,) = [s.message for s in ruling.sent if isinstance(s.message, HeartbeatAnswer)]
    return ruling, told(done.broker, Received(CONTROLLER, answer))


# The controller.


def decided(core: Controller, proposed: Proposed) -> tuple[Ruled, AlterPartitionResponse]:
    """An AlterPartition arrives."""
    ruling = asked_to(core, proposed.request.leader, Send(CONTROLLER, proposed.request))
    (answer,) = [s.message for s in ruling.sent if isinstance(s.message, AlterPartitionResponse)]
    return ruling, answer


def lost_session(core: Controller, broker: BrokerId, first: BrokerId) -> Ruled:
    """Nothing was heard of the broker for too long; `first` comes first in the order of assignment."""
    return ruled(canonical_form.aged_session(canonical_form.assigned_first(core, first), broker), Tick())


def due(core: Controller, first: BrokerId) -> Ruled:
    """What the controller has to do at once; `first` comes first in the order of assignment."""
    return ruled(canonical_form.assigned_first(core, first), Tick())


def preferred(core: Controller, leader: BrokerId) -> Ruled:
    """An admin asks that the first replica in the order of assignment leads."""
    ask = Received(CONTROLLER, ElectPreferredLeader(request=0, partition=TP))
    return ruled(canonical_form.assigned_first(core, leader), ask)
