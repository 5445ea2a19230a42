"""A real broker that does nothing by itself: its clock stands, and what arrives waits until the driver says so.

Sockets, frames, runtime and disk are those of every broker (`isr_broker.server`). Three things differ: the time is
always NOW, so a timer fires only if the driver has made a core's memory old before it lets it tick (as in the replay,
`canonical`); messages are kept where they arrive, until they are to be taken; and whatever the disk
has to do later it does at once. The driver talks through a pipe.

Fetches, AlterPartitions and their answers are Kafka's requests and answers, in sessions and on connections as always.
Registrations, heartbeats and metadata cross in frames of our own (`isr_broker.core.message_json`), for they may be
dropped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import TypeAlias

import attrs

from isr_broker.core.controller_state import Controller, recovered
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.inputs import Tick
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    FetchRequest,
    FetchResponse,
    Message,
    Millis,
)
from isr_broker.core.node import Node
from isr_broker.core.stamps import Stamped, bare
from isr_broker.runtime import Address, AnswersOfController, Asked, Runtime, Then
from isr_broker.server import Server
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import open_data_directory
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.metadata_log import MetadataLog
from isr_replay.system_state import NOW

Mail: TypeAlias = tuple[BrokerId, BrokerId, Message]
"""From whom, to whom, and the message."""


@attrs.frozen(kw_only=True)
class Start:
    """What a process is started with. The broker of the controller is nothing but that."""

    me: BrokerId
    settings: Settings
    data: str
    address: Address
    controller_at: Address

    @property
    def is_controller(self) -> bool:
        """Whether this process has the controller."""
        return self.address == self.controller_at


@attrs.frozen(kw_only=True)
class Reply:
    """What a command came to: its value, and what the process has sent and which actions it took since the last one."""

    value: object
    sent: tuple[tuple[BrokerId, Message], ...]
    took: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Inside:
    """What is in the memory of a process."""

    node: Node
    controller: Controller | None
    requests: int
    waiting: frozenset[int]
    """How many requests of clients there were, and which have no answer."""


@attrs.define
class SteppedRuntime(Runtime):
    """A broker as it runs, except that it waits for the driver."""

    arrived: list[Parcel] = attrs.field(factory=list[Parcel])
    took: list[str] = attrs.field(factory=list[str])
    notify: Callable[[], None] = lambda: None

    def start(self, incarnation: int, now: Millis, with_controller: bool) -> None:
        """A broker starts; or the controller, without a broker."""
        if not with_controller:
            Runtime.start(self, incarnation, now, with_controller)
            return
        self.running = True
        self.metadata_log, records = MetadataLog.open(self.disk)
        self.controller = recovered(self.settings, records, now)
        self.logs = LogDirectory(self.disk, self.settings)
        self.node = Node(me=self.me, settings=self.settings)

    def received(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Messages arrived, and are kept."""
        self.arrived += parcels
        self.notify()

    def undelivered(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Messages are lost, and nobody is told."""

    def ask(self, make: Callable[[int], Asked], then: Then, now: Millis) -> None:
        """A client's request is taken as it comes."""
        Runtime.ask(self, make, then, now)
        self.settle()
        self.notify()

    def take(self, number: int) -> None:
        """One of the messages that arrived is taken now."""
        Runtime.received(self, [self.arrived[number]], NOW)
        self.settle()

    def ticks(self, made: Callable[[Node], Node], restored: Callable[[Node], Node]) -> None:
        """The broker's core ticks once, its memory made old before, and put right after."""
        self.node = made(self.node)
        self.tell(Tick(), NOW)
        self.node = restored(self.node)
        self.settle()

    def rules(
        self, made: Callable[[Controller], Controller], ticks: bool, restored: Callable[[Controller], Controller]
    ) -> None:
        """The controller's memory is made old, and put right after it has ticked once, if it is to."""
        assert self.controller is not None
        self.controller = made(self.controller)
        if ticks:
            self._tell_controller(Tick(), NOW)
            self._drain(NOW)
            self.after_turn(NOW)
        self.controller = restored(self.controller)

    def settle(self) -> None:
        """The disk does what it was to do later."""
        while self._later and self.running:
            for done in self._on_disk([self._later.popleft()]):
                self._step(done, NOW)
        self._drain(NOW)
        self.after_turn(NOW)

    def _note(self, action: str, about: str) -> None:
        self.took.append(action)


@attrs.define
class SteppedServer(Server):
    """A server on a real socket, which obeys a pipe."""

    pipe: Connection = attrs.field(kw_only=True)
    sent: list[tuple[BrokerId, Message]] = attrs.field(factory=list[tuple[BrokerId, Message]])
    asked: list[tuple[Callable[[], bool], Callable[[], object]]] = attrs.field(
        factory=list[tuple[Callable[[], bool], Callable[[], object]]]
    )
    """Commands that wait: until when, and what they answer."""
    unanswered: set[tuple[type[Message], BrokerId]] = attrs.field(factory=set[tuple[type[Message], BrokerId]])
    """Requests under way, by their kind and to whom."""

    @property
    def stepped(self) -> SteppedRuntime:
        """What runs in it."""
        assert isinstance(self.runtime, SteppedRuntime)
        return self.runtime

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Send a message at once, and note that: a fetch and an AlterPartition in Kafka's protocol, others one by one.

        One request of a kind is under way to somebody; a new one is sent on a new connection, and the last is lost.
        """
        said = bare(message)
        self.sent.append((to, said))
        if not isinstance(said, FetchRequest | AlterPartitionRequest):
            self.post(to, address, source, message)
            return
        asked = (type(said), to)
        channel = self.channels.get(("fetch", to, address) if isinstance(said, FetchRequest) else ("alter", address))
        if asked in self.unanswered and channel is not None and channel.task is not None:
            channel.task.cancel()
            channel.task = None
            channel.says.broken()
        self.unanswered.add(asked)
        Server.send(self, to, address, source, message)

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """Answer where it was asked; other answers are messages like any other."""
        said, address = bare(answer), self.runtime.address_of(to)
        if isinstance(said, FetchResponse | AlterPartitionResponse):
            self.sent.append((to, said))
            Server.answer(self, to, answer)
        elif address is not None:
            self.send(to, address, CONTROLLER if isinstance(said, AnswersOfController) else self.me, answer)

    def _heard(self, parcels: list[Parcel]) -> None:
        for source, _, message in parcels:
            fetch = isinstance(bare(message), FetchResponse)
            self.unanswered.discard((FetchRequest if fetch else AlterPartitionRequest, source))
        Server._heard(self, parcels)

    def _set_timer(self) -> None:
        self._ready.set()  # clients are served at once, and no timer runs

    def obey(self) -> None:
        """Do what the driver says, once it has said something."""
        self.stepped.notify = self.look
        self.pipe.send(self.reply(None))
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), self._hear)

    def _hear(self) -> None:
        try:
            name, *given = self.pipe.recv()
        except (EOFError, OSError):
            os._exit(0)  # the driver is gone
        runtime = self.stepped
        match name:
            case "mail":
                (count,) = given
                known = len(runtime.arrived) if count is None else count
                self.asked.append((lambda: len(runtime.arrived) >= known, lambda: self._mail(known)))
            case "clients":
                (requests,) = given
                self.asked.append((lambda: runtime.requests >= requests, lambda: None))
            case _:
                self.asked.append((lambda: True, self._done(name, given)))
        self.look()

    def _done(self, name: str, given: list[object]) -> Callable[[], object]:
        runtime = self.stepped
        actions: dict[str, Callable[..., object]] = {
            "take": runtime.take,
            "tick": runtime.ticks,
            "rule": runtime.rules,
            "shut down": self.shut_down,
            "inside": self._inside,
        }
        return lambda: actions[name](*given)

    def _mail(self, count: int) -> list[Mail]:
        return [(source, to, bare(message)) for source, to, message in self.stepped.arrived[:count]]

    def _inside(self) -> Inside:
        runtime = self.stepped
        waits = frozenset(runtime.waiting)
        return Inside(node=runtime.node, controller=runtime.controller, requests=runtime.requests, waiting=waits)

    def look(self) -> None:
        """Answer the command that waits, if it has what it waits for."""
        if self.asked and self.asked[0][0]():
            _, answer = self.asked.pop(0)
            self.pipe.send(self.reply(answer()))

    def reply(self, value: object) -> Reply:
        """The answer to a command."""
        done = Reply(value=value, sent=tuple(self.sent), took=tuple(self.stepped.took))
        self.sent.clear()
        self.stepped.took.clear()
        return done


def run(start: Start, pipe: Connection) -> None:
    """The process: it ends when it is killed, when the broker has stopped in order, or with the driver."""

    async def go() -> None:
        server = SteppedServer(
            start.me,
            start.settings,
            open_data_directory(start.data),
            start.address,
            start.controller_at,
            with_controller=start.is_controller,
            now=lambda: NOW,
            made_of=SteppedRuntime,
            pipe=pipe,
        )
        try:
            await server.start()
        except OSError as problem:
            pipe.send(Reply(value=problem.strerror or str(problem), sent=(), took=()))
            return
        server.obey()
        await server.ended()

    asyncio.run(go())
