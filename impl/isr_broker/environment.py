"""What a broker needs of the world around it; `server` is it, for sockets and a clock."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from isr_broker.core.messages import BrokerId, Message, TopicPartition
from isr_broker.core.stamps import Stamped

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
