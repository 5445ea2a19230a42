"""The core driver: gives inputs to a core, and does at once what the core asks of disk and metadata log.

One call is one input together with the reports of the disk that follow from it. That is one action of the model: until
the report comes a replica takes no other input, and no other part of the system sees the work in progress.
"""

from __future__ import annotations

import attrs

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import (
    CONTROLLER,
    AnswerConsume,
    AnswerFetch,
    AnswerProduce,
    AppendLog,
    AppendMetadata,
    AssignEpoch,
    CheckpointWatermarks,
    DeleteLog,
    Effect,
    Halt,
    OpenLog,
    PartitionHalt,
    Send,
    SetAside,
    StopProcess,
    Took,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Appended,
    ControllerInput,
    EpochAssigned,
    LogOpened,
    NodeInput,
    Received,
    Tick,
    Truncated,
    Written,
)
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import BrokerId, Error, FetchMetadata, Metadata
from isr_broker.core.record_batch import batches
from isr_replay import canonical_form
from isr_replay.system_state import NOW, Broker, record_in


class CoreFailed(Exception):
    """A core did something that no action of the model can be; the message says what."""


@attrs.define
class BrokerOutcome:
    """The outcome of an input of a broker: the broker after it, the actions taken, and the messages and answers
    sent."""

    broker: Broker
    actions: list[str] = attrs.field(factory=list[str])
    sends: list[Send] = attrs.field(factory=list[Send])
    acked: int = 0
    consumed: list[AnswerConsume] = attrs.field(factory=list[AnswerConsume])
    stopped: bool = False

    @property
    def action(self) -> str | None:
        """The action that was taken, None if none was; CoreFailed if there was more than one."""
        if len(self.actions) > 1:
            raise CoreFailed(f"one input took {' and '.join(self.actions)}")
        return self.actions[0] if self.actions else None

    @property
    def canonical(self) -> Broker:
        """The broker with its core in canonical form."""
        node = self.broker.node
        return self.broker if node is None else attrs.evolve(self.broker, node=canonical_form.node(node))


def run_broker(broker: Broker, *inputs: NodeInput, opens: bool = True) -> BrokerOutcome:
    """Give these inputs to a broker, one after the other.

    If `opens` is true, a log that it asks for is opened at once.
    """
    outcome, todo = BrokerOutcome(broker), list(inputs)
    while todo:
        node = outcome.broker.node
        assert node is not None
        step = nodes.handle(node, todo.pop(0), NOW)
        outcome.broker = attrs.evolve(outcome.broker, node=step.core)
        todo[:0] = [answer for effect in step.effects for answer in _perform_effect(outcome, effect, opens)]
    return outcome


def _perform_effect(outcome: BrokerOutcome, effect: Effect, opens: bool) -> list[NodeInput]:
    """Do what an effect asks for, and return the reports of the disk."""
    broker = outcome.broker
    match effect:
        case Took(action=action):
            outcome.actions.append(action)
        case Send():
            outcome.sends.append(effect)
        case AnswerFetch(to=to, response=response, records=wanted):
            records = b"" if wanted is None else broker.log[wanted.offset]
            outcome.sends.append(Send(to, attrs.evolve(response, records=records)))
        case AnswerProduce(request=request, error=Error.NONE):
            outcome.acked |= 1 << request
        case AnswerConsume():
            outcome.consumed.append(effect)
        case AppendLog(partition=tp, records=records):
            new = tuple(records[b.position : b.position + b.size] for b in batches(records, check=True))
            outcome.broker = attrs.evolve(broker, log=broker.log + new)
            return [Appended(partition=tp, log=_view(broker).appended(batches(records)))]
        case TruncateLog(partition=tp, offset=offset):
            outcome.broker = attrs.evolve(broker, log=broker.log[:offset])
            view = _view(broker)
            return [Truncated(partition=tp, log=view.truncated(offset, view.producers))]
        case AssignEpoch(partition=tp, epoch=epoch, start=start):
            view = _view(broker)
            return [EpochAssigned(partition=tp, log=attrs.evolve(view, epochs=view.epochs.assign(epoch, start)))]
        case OpenLog(tp):
            return (
                [LogOpened(partition=tp, log=recovered_log(broker.log), high_watermark=broker.checkpoint)]
                if opens
                else []
            )
        case StopProcess(broker_epoch=epoch, watermarks=watermarks):
            marks = dict(watermarks.watermarks)
            mark = next(iter(marks.values()), broker.checkpoint)
            outcome.broker = attrs.evolve(broker, node=None, clean=epoch, checkpoint=mark, removed_in=0)
            outcome.stopped = True
        case DeleteLog() | SetAside():
            outcome.actions.append("replica_is_deleted")
            outcome.broker = attrs.evolve(broker, log=(), checkpoint=0)
        case Halt(why):
            raise CoreFailed(f"broker {broker.me} halts: {why}")
        case AppendMetadata():
            raise CoreFailed("a broker writes no metadata")
        case AnswerProduce() | CheckpointWatermarks() | PartitionHalt():
            pass
        case _:
            raise CoreFailed(f"broker {broker.me} asks for {effect}")
    return []


def _view(broker: Broker) -> LogView:
    assert broker.replica is not None
    return broker.replica.log


def recovered_log(log: tuple[bytes, ...]) -> LogView:
    """What a core knows of a log that was just opened: everything is recovered from the records."""
    return LogView().appended(batches(b"".join(log)))


def records(broker: Broker) -> tuple[int, ...]:
    """The records of the model in the broker's log."""
    return tuple(record_in(batch) for batch in broker.log)


# The controller.


@attrs.define
class ControllerOutcome:
    """The outcome of an input of the controller: its core after it, the actions taken, and the messages sent."""

    core: Controller
    took: list[Took] = attrs.field(factory=list[Took])
    sends: list[Send] = attrs.field(factory=list[Send])

    @property
    def canonical(self) -> Controller:
        """The controller in canonical form."""
        return canonical_form.controller(self.core)


def run_controller(core: Controller, *inputs: ControllerInput) -> ControllerOutcome:
    """Give these inputs to the controller, one after the other; its metadata log is written at once."""
    outcome, todo = ControllerOutcome(core), list(inputs)
    while todo:
        step = controllers.handle(outcome.core, todo.pop(0), NOW)
        outcome.core = step.core
        for effect in step.effects:
            match effect:
                case Took():
                    outcome.took.append(effect)
                case Send():
                    outcome.sends.append(effect)
                case AppendMetadata(offset=offset):
                    todo.insert(0, Written(offset))
                case _:
                    raise CoreFailed(f"the controller asks for {effect}")
    return outcome


def send_to_controller(core: Controller, source: BrokerId, message: Send) -> ControllerOutcome:
    """Give the controller a message that a broker has sent."""
    assert message.to == CONTROLLER
    return run_controller(core, _receipt(source, message))


def _receipt(source: BrokerId, message: Send) -> Received:
    return Received(source, message.message)


def metadata_for(core: Controller, broker: Broker) -> Metadata:
    """The controller's answer when this broker asks for newer metadata."""
    assert broker.node is not None
    polled = run_broker(attrs.evolve(broker, node=attrs.evolve(broker.node, next_poll=NOW)), Tick())
    poll = next(s for s in polled.sends if isinstance(s.message, FetchMetadata))
    answer = send_to_controller(core, broker.me, poll).sends
    news = [s.message for s in answer if isinstance(s.message, Metadata)]
    if len(news) != 1:
        raise CoreFailed(f"the controller answers a question for metadata with {answer}")
    return news[0]
