"""A stepped broker: a real broker process that takes one step when the driver commands it, and none by itself.

Sockets, frames, runtime and disk are those of every broker (`isr_broker.server`). Three things differ:

- The time is always NOW. A timer fires only if the driver moves a time in the core back before it lets the core tick
  (`isr_replay.canonical_form` has the functions for that).
- A message that arrives is kept until the driver delivers it.
- Work that the disk would do later is done at once.

The driver sends its commands through a pipe. Fetches, AlterPartitions and their answers are Kafka's, in sessions and on
connections as always. Registrations, heartbeats and metadata cross in frames of our own
(`isr_broker.core.message_json`), because the driver may drop each of them alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import TypeAlias

import attrs

from isr_broker.core.controller import controller_from_records
from isr_broker.core.controller_state import Controller
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
from isr_broker.runtime import Address, AnswersOfController, ClientRequest, Runtime, Then
from isr_broker.server import Server
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import open_data_directory
from isr_broker.storage.log_directory import LogDirectory
from isr_broker.storage.metadata_log import MetadataLog
from isr_replay.system_state import NOW

Mail: TypeAlias = tuple[BrokerId, BrokerId, Message]
"""The source, the receiver, and the message."""


@attrs.frozen(kw_only=True)
class ProcessStart:
    """What a process is started with. The controller has a process of its own, without a broker in it."""

    me: BrokerId
    settings: Settings
    data: str
    address: Address
    controller_at: Address

    @property
    def is_controller(self) -> bool:
        """Whether this process is the controller's."""
        return self.address == self.controller_at


@attrs.frozen(kw_only=True)
class CommandReply:
    """The answer to a command: its value, and the messages sent and actions taken since the last answer."""

    value: object
    sent_messages: tuple[tuple[BrokerId, Message], ...]
    actions: tuple[str, ...]


@attrs.frozen(kw_only=True)
class ProcessMemory:
    """The cores in the memory of a process, and how far its clients are answered."""

    node: Node
    controller: Controller | None
    requests: int
    waiting: frozenset[int]
    """`requests` counts the requests of clients; `waiting` has the numbers of those without an answer."""


@attrs.define
class SteppedRuntime(Runtime):
    """The runtime of a broker, in which messages wait for the driver and time stands still."""

    arrived_parcels: list[Parcel] = attrs.field(factory=list[Parcel])
    actions: list[str] = attrs.field(factory=list[str])
    notify: Callable[[], None] = lambda: None

    def start(self, incarnation: int, now: Millis, with_controller: bool) -> None:
        """Start a broker; or the controller, without a broker."""
        if not with_controller:
            Runtime.start(self, incarnation, now, with_controller)
            return
        self.running = True
        self.metadata_log, records = MetadataLog.open(self.disk)
        self.controller = controller_from_records(self.settings, records, now, self.cluster)
        self.logs = LogDirectory(self.disk, self.settings)
        self.node = Node(me=self.me, settings=self.settings)

    def receive_messages(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Keep the messages that arrived."""
        self.arrived_parcels += parcels
        self.notify()

    def report_undelivered(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Drop messages that could not be sent; the driver decides what is lost."""

    def ask(self, make: Callable[[int], ClientRequest], then: Then, now: Millis) -> int:
        """Take the request of a client at once."""
        number = Runtime.ask(self, make, then, now)
        self.finish_disk_work()
        self.notify()
        return number

    def deliver(self, number: int) -> None:
        """Give one of the messages that arrived to its core."""
        Runtime.receive_messages(self, [self.arrived_parcels[number]], NOW)
        self.finish_disk_work()

    def tick_core(self, prepare: Callable[[Node], Node], restore: Callable[[Node], Node]) -> None:
        """Tick the broker's core once, changed by `prepare` before and by `restore` after."""
        self.node = prepare(self.node)
        self.tell(Tick(), NOW)
        self.node = restore(self.node)
        self.finish_disk_work()

    def tick_controller(
        self, prepare: Callable[[Controller], Controller], tick: bool, restore: Callable[[Controller], Controller]
    ) -> None:
        """Change the controller's core by `prepare`, tick it once if `ticks` is true, and change it by `restore`."""
        assert self.controller is not None
        self.controller = prepare(self.controller)
        if tick:
            self._tell_controller(Tick(), NOW)
            self._drain(NOW)
            self.after_turn(NOW)
        self.controller = restore(self.controller)

    def finish_disk_work(self) -> None:
        """Do now what the disk was to do later."""
        while self._later and self.running:
            for done in self._on_disk([self._later.popleft()]):
                self._step(done, NOW)
        self._drain(NOW)
        self.after_turn(NOW)

    def _note(self, action: str, about: str) -> None:
        self.actions.append(action)


@attrs.define
class SteppedServer(Server):
    """A server on a real socket that takes its commands from a pipe."""

    pipe: Connection = attrs.field(kw_only=True)
    sent_messages: list[tuple[BrokerId, Message]] = attrs.field(factory=list[tuple[BrokerId, Message]])
    commands: list[tuple[Callable[[], bool], Callable[[], object]]] = attrs.field(
        factory=list[tuple[Callable[[], bool], Callable[[], object]]]
    )
    """Commands without an answer: the condition that each waits for, and a function that makes its answer."""
    outstanding: set[tuple[type[Message], BrokerId]] = attrs.field(factory=set[tuple[type[Message], BrokerId]])
    """Kinds of requests without an answer, each with its receiver."""

    @property
    def stepped_runtime(self) -> SteppedRuntime:
        """The runtime in this server."""
        assert isinstance(self.runtime, SteppedRuntime)
        return self.runtime

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """Send a message at once, and report it to the driver.

        Fetches and AlterPartitions go out in Kafka's protocol. Only one request of a kind can be under way to the same
        receiver: a new one is sent on a new connection, and the old one gets no answer any more.
        """
        bare_message = bare(message)
        self.sent_messages.append((to, bare_message))
        if not isinstance(bare_message, FetchRequest | AlterPartitionRequest):
            self.post(to, address, source, message)
            return
        request_kind = (type(bare_message), to)
        channel = self.channels.get(
            ("fetch", to, address) if isinstance(bare_message, FetchRequest) else ("alter", address)
        )
        if request_kind in self.outstanding and channel is not None and channel.task is not None:
            channel.task.cancel()
            channel.task = None
            channel.says.take_loss()
        self.outstanding.add(request_kind)
        Server.send(self, to, address, source, message)

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """Answer a fetch or AlterPartition on its connection; send any other answer as a message of its own."""
        bare_answer, address = bare(answer), self.runtime.address_of(to)
        if isinstance(bare_answer, FetchResponse | AlterPartitionResponse):
            self.sent_messages.append((to, bare_answer))
            Server.answer(self, to, answer)
        elif address is not None:
            self.send(to, address, CONTROLLER if isinstance(bare_answer, AnswersOfController) else self.me, answer)

    def _deliver_answers(self, parcels: list[Parcel]) -> None:
        for source, _, message in parcels:
            fetch = isinstance(bare(message), FetchResponse)
            self.outstanding.discard((FetchRequest if fetch else AlterPartitionRequest, source))
        Server._deliver_answers(self, parcels)

    def _set_timer(self) -> None:
        self._ready.set()  # clients are served at once, and no timer runs

    def listen_to_driver(self) -> None:
        """Read commands from the pipe from now on."""
        self.stepped_runtime.notify = self.answer_ready
        self.pipe.send(self.reply(None))
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), self._read_command)

    def _read_command(self) -> None:
        try:
            name, *arguments = self.pipe.recv()
        except (EOFError, OSError):
            os._exit(0)  # the driver is gone
        runtime = self.stepped_runtime
        match name:
            case "mail":
                (count,) = arguments
                known = len(runtime.arrived_parcels) if count is None else count
                self.commands.append((lambda: len(runtime.arrived_parcels) >= known, lambda: self._mail(known)))
            case "clients":
                (requests,) = arguments
                self.commands.append((lambda: runtime.requests >= requests, lambda: None))
            case _:
                self.commands.append((lambda: True, self._command(name, arguments)))
        self.answer_ready()

    def _command(self, name: str, arguments: list[object]) -> Callable[[], object]:
        runtime = self.stepped_runtime
        actions: dict[str, Callable[..., object]] = {
            "deliver": runtime.deliver,
            "tick": runtime.tick_core,
            "tick controller": runtime.tick_controller,
            "shut down": self.shut_down,
            "memory": self._memory,
        }
        return lambda: actions[name](*arguments)

    def _mail(self, count: int) -> list[Mail]:
        return [(source, to, bare(message)) for source, to, message in self.stepped_runtime.arrived_parcels[:count]]

    def _memory(self) -> ProcessMemory:
        runtime = self.stepped_runtime
        waits = frozenset(runtime.waiting)
        return ProcessMemory(node=runtime.node, controller=runtime.controller, requests=runtime.requests, waiting=waits)

    def answer_ready(self) -> None:
        """Answer the oldest command without an answer, if its condition holds."""
        if self.commands and self.commands[0][0]():
            _, answer = self.commands.pop(0)
            self.pipe.send(self.reply(answer()))

    def reply(self, value: object) -> CommandReply:
        """The answer to a command, with what was sent and taken since the last one."""
        reply = CommandReply(
            value=value, sent_messages=tuple(self.sent_messages), actions=tuple(self.stepped_runtime.actions)
        )
        self.sent_messages.clear()
        self.stepped_runtime.actions.clear()
        return reply


def run_stepped_broker(start: ProcessStart, pipe: Connection) -> None:
    """The main function of the process.

    It ends when it is killed, when the broker has shut down, or with the driver.
    """

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
            pipe.send(CommandReply(value=problem.strerror or str(problem), sent_messages=(), actions=()))
            return
        server.listen_to_driver()
        await server.wait_for_end()

    asyncio.run(go())
