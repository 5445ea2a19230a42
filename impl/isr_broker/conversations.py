"""What is said on connections to other brokers, without the connections: one request at a time, and its answer.

In Kafka's protocol are the fetches of followers, one conversation per leader, and what a broker asks the controller for
itself and for its replicas. Everything else is `peers`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

import attrs

from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    FetchRequest,
    Heartbeat,
    Message,
    Millis,
    OffsetForLeaderEpochRequest,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.stamps import Stamped, bare
from isr_broker.environment import Address
from isr_broker.settings import Settings
from isr_broker.wire.controller_channels import AlterPartitions, Lifecycle
from isr_broker.wire.fetcher import Fetcher

P = TypeVar("P")


class Conversation(Protocol[P]):
    """Messages of cores become requests, and answers become messages of cores, each in its parcel."""

    def next(self) -> bytes | None:
        """The next request, a frame with its length; None while there is nothing to ask."""
        ...

    def take_answer(self, frame: bytes) -> list[P]:
        """The answer to it, without its length, as messages; BadFrame if it is none."""
        ...

    def take_loss(self) -> list[P]:
        """The connection is lost, and with it these messages, to which no answer will come."""
        ...


class ControllerConversation(Conversation[Parcel], Protocol):
    """One with a controller, of which there are several: `elsewhere` is where it is, if the last answer said so."""

    elsewhere: Address | None

    def is_waiting(self) -> bool:
        """Whether there is something to say."""
        ...

    def again(self) -> None:
        """What has no answer is to be said again."""
        ...


@attrs.define
class ControllerPlaces:
    """Where the controllers are, and `at` which of them the active one was heard, or is to be sought."""

    places: tuple[Address, ...]
    at: Address

    def leaves(self, address: Address, elsewhere: Address | None) -> bool:
        """It is not there, but elsewhere if somebody said so, else maybe at the next place; False if that is known."""
        if address != self.at:
            return False
        following = self.places[(self.places.index(address) + 1) % len(self.places)]
        self.at = elsewhere if elsewhere in self.places and elsewhere != address else following
        return True


@attrs.frozen
class Place:
    """Where a conversation is held: its connection's name, and how long an answer may take."""

    key: Hashable
    says: Conversation[Parcel]
    patience: Millis


@attrs.define
class Conversations:
    """All conversations of one broker of `cluster`; `topic_id` knows the ids of topics."""

    me: BrokerId
    settings: Settings
    cluster: str
    topic_id: Callable[[str], bytes]
    fetchers: dict[tuple[BrokerId, Address], Fetcher] = attrs.field(factory=dict[tuple[BrokerId, Address], Fetcher])
    alters: AlterPartitions = attrs.field(init=False)
    lifecycle: Lifecycle = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.alters = AlterPartitions(self.me, self.cluster, self.topic_id)
        self.lifecycle = Lifecycle(self.me, self.cluster, self.settings.insync_design.eligible_leader_replicas)

    def takes(self, to: BrokerId, address: Address, envelope: Message | Stamped) -> Place | None:
        """Say a message in its conversation, and where that is; None if it belongs to none."""
        settings = self.settings
        match bare(envelope):
            case FetchRequest(partition=tp) | OffsetForLeaderEpochRequest(partition=tp):
                fetcher = self.fetchers.get((to, address))
                if fetcher is None:
                    fetcher = self.fetchers[to, address] = Fetcher(self.me, to, settings, self.cluster, self.topic_id)
                self.leaves(tp, fetcher)
                fetcher.put(envelope)
                patience = settings.replica_socket_timeout_ms + settings.replica_fetch_wait_max_ms
                return Place(("fetch", to, address), fetcher, patience)
            case AlterPartitionRequest():
                self.alters.put(envelope)
                return Place(("alter", address), self.alters, settings.controller_socket_timeout_ms)
            case RegisterBroker() | Heartbeat():
                self.lifecycle.put(envelope)
                # A heartbeat without an answer leaves time for another one (KAFKA-14392).
                return Place(("lives", address), self.lifecycle, max(1, settings.broker_session_timeout_ms // 2))
            case _:
                return None

    def leaves(self, tp: TopicPartition, stays: Fetcher | None = None) -> None:
        """A partition is no longer asked about, but maybe with one leader."""
        for fetcher in self.fetchers.values():
            if fetcher is not stays:
                fetcher.drop(tp)
