"""What a broker needs of the world around it: `server` is it, for sockets and a clock, and the simulator's world.

Beside it a broker needs a disk (`storage.disk`) and is told the time with every input.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from isr_broker.core.controller_state import ControllerStep
from isr_broker.core.inputs import ControllerInput, LogOpened, NodeInput
from isr_broker.core.messages import BrokerId, Message, Millis, TopicPartition
from isr_broker.core.node import Node, NodeStep
from isr_broker.core.stamps import Stamp, Stamped

Address: TypeAlias = tuple[str, int]


class Outside(Protocol):
    """What a broker needs of the world."""

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Send a message to another broker, or lose it."""
        ...

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """Answer another broker's request, on the connection on which it came."""
        ...

    def leaves(self, partition: TopicPartition) -> None:
        """This broker no longer asks whomever it did about a partition."""
        ...

    def stopped(self, why: str) -> None:
        """The broker has ended."""
        ...

    def log(self, line: str) -> None:
        """Something a person may want to know."""
        ...


class Steps(Protocol):
    """Who is told of each step of a core, before it has any effect: a trace, or the simulator."""

    def note_opened_log(self, opened_log: LogOpened, records: bytes, at: Millis) -> None:
        """A log was found on the disk when the process started, with these batches."""
        ...

    def node_stepped(self, before: Node, node_input: NodeInput, step: NodeStep, at: Millis) -> None:
        """The broker's core has taken an input; its effects are not yet performed."""
        ...

    def controller_stepped(self, controller_input: ControllerInput, step: ControllerStep, at: Millis) -> None:
        """The controller has taken an input; its effects are not yet performed."""
        ...

    def stamped(self, message: Message) -> Message | Stamped:
        """The message as it leaves."""
        ...

    def hears(self, stamp: Stamp) -> None:
        """A message with this stamp arrives; the next step is about it."""
        ...
