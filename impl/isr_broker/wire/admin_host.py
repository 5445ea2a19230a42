"""Who answers admins: a broker, or the active controller of a quorum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from immutables import Map

from isr_broker.core.messages import Admin, BrokerId, BrokerMetadata, Millis, PartitionMetadata, TopicPartition
from isr_broker.runtime import Then
from isr_broker.settings import Settings


class View(Protocol):
    """The cluster as somebody knows it."""

    @property
    def brokers(self) -> Map[BrokerId, BrokerMetadata]:
        """All that are registered."""
        ...

    @property
    def partitions(self) -> Map[TopicPartition, PartitionMetadata]:
        """Those of all topics."""
        ...


class AdminHost(Protocol):
    """What the handlers of admins need of a process."""

    @property
    def me(self) -> BrokerId:
        """Its number."""
        ...

    @property
    def cluster(self) -> str:
        """The id of the cluster."""
        ...

    @property
    def settings(self) -> Settings:
        """Those of a broker."""
        ...

    @property
    def node(self) -> View:
        """What it knows."""
        ...

    def ask(self, make: Callable[[int], Admin], then: Then, now: Millis) -> object:
        """Ask the controller something under a new number; `then` gets its answer."""
        ...

    def ask_all(self, asks: Iterable[tuple[Callable[[int], Admin], Then]], now: Millis) -> None:
        """Ask the controller for several things."""
        ...
