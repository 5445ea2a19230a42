"""Broker processes under the control of a driver: it starts and kills them, sends commands and reads their memory.

Each process is a `stepped_broker`. A message crosses its socket as soon as it is sent, and then waits in the receiving
process until the driver delivers it. So after each command the driver knows every message that is under way, and no
process does anything by itself.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final, TypeVar, cast

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import AlterPartitionResponse, BrokerId, FetchResponse, Message
from isr_broker.settings import Settings
from isr_cluster.ports import HOST
from isr_processes.stepped_broker import CommandReply, Mail, ProcessMemory, ProcessStart, run_stepped_broker

M = TypeVar("M")
Context: Final = multiprocessing.get_context("forkserver")
Context.set_forkserver_preload(["isr_processes.stepped_broker"])
_SAFE_PATH: Final = "PYTHONSAFEPATH"
PATIENCE: Final = 60.0
NO_NUMBER: Final = -1
"""The number of a message to a process that does not run: it cannot be delivered."""
NOTICE_SECONDS: Final = 0.08
"""Seconds to wait after a kill, until all other processes have noticed that their connections are closed."""


class ProcessStuck(Exception):
    """A process does not do what the driver waits for; the message says which process, and what."""


def unchanged(value: M) -> M:
    """The identity function, by name, so that another process can import it."""
    return value


@attrs.define(eq=False)
class BrokerProcess:
    """A process, the number of messages sent to it so far, and the number that the driver has seen arrive."""

    who: BrokerId
    process: ForkServerProcess
    pipe: Connection
    expected: int = 0
    arrivals: int = 0

    def receive(self) -> CommandReply:
        """The answer to the last command; ProcessStuck if it does not come within PATIENCE seconds."""
        try:
            if self.pipe.poll(PATIENCE):
                return cast("CommandReply", self.pipe.recv())
        except (EOFError, OSError):
            raise ProcessStuck(f"the process of {name(self.who)} has ended") from None
        raise ProcessStuck(f"the process of {name(self.who)} does not answer")


@attrs.frozen
class WaitingMessage:
    """A message that has arrived at a process and waits there; `number` is its place in the order of arrival."""

    at: BrokerId
    number: int
    source: BrokerId
    message: Message


def _start_fork_server() -> None:
    """Start what forks the processes, if it does not run yet: it imports no module of the current folder (-P)."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def name(who: BrokerId) -> str:
    """A process, as error messages name it."""
    return "the controller" if who == CONTROLLER else f"broker {who}"


@attrs.define(eq=False)
class BrokerProcesses:
    """The processes of the controller and of the brokers that run, with their data directories below `root`.

    `new_messages` are those that arrived since the driver last emptied the list. `actions` are the names of the model's
    actions that the cores have taken since `pop_actions`.
    """

    root: Path
    ports: Mapping[BrokerId, int]
    settings: Mapping[BrokerId, Settings]
    running: dict[BrokerId, BrokerProcess] = attrs.field(factory=dict[BrokerId, BrokerProcess])
    new_messages: list[WaitingMessage] = attrs.field(factory=list[WaitingMessage])
    actions: list[str] = attrs.field(factory=list[str])
    newest_request: dict[tuple[BrokerId, BrokerId, type[Message]], int] = attrs.field(
        factory=dict[tuple[BrokerId, BrokerId, type[Message]], int]
    )
    """The number of the last message of each kind, by source and receiver. An answer to an older request is lost."""

    def start(self, who: BrokerId) -> None:
        """Start a process, and wait until it listens. A port that is in use is tried again until PATIENCE ends."""
        end = time.monotonic() + PATIENCE
        while (problem := self._try_start(who)) is not None:
            if time.monotonic() > end:
                raise ProcessStuck(f"{name(who)} does not start: {problem.lower()}")
            time.sleep(0.1)

    def _try_start(self, who: BrokerId) -> str | None:
        """Start a process once: None if it listens, else the reason why it does not."""
        ours, theirs = Context.Pipe()
        start = ProcessStart(
            me=0 if who == CONTROLLER else who,
            settings=self.settings[who],
            data=str(self.folder(who)),
            address=(HOST, self.ports[who]),
            controller_at=(HOST, self.ports[CONTROLLER]),
        )
        _start_fork_server()
        process = Context.Process(target=run_stepped_broker, args=(start, theirs), daemon=True)
        process.start()
        theirs.close()
        one = BrokerProcess(who, process, ours)
        reply = one.receive()
        if reply.value is not None:
            process.join()
            process.close()
            ours.close()
            return str(reply.value)
        self.running[who] = one
        self._record(who, reply)
        return None

    def folder(self, who: BrokerId) -> Path:
        """The data directory of a process."""
        return self.root / ("controller" if who == CONTROLLER else str(who))

    def call(self, who: BrokerId, do: str, *arguments: object, discard_answers: bool = False) -> object:
        """Send a command to a process, and wait until every message that it caused has arrived."""
        one = self.running[who]
        one.pipe.send((do, *arguments))
        reply = one.receive()
        self._record(who, reply, discard_answers)
        return reply.value

    def _record(self, source: BrokerId, reply: CommandReply, discard_answers: bool = False) -> None:
        self.actions += reply.actions
        for to, message in reply.sent_messages:
            if discard_answers and isinstance(message, FetchResponse | AlterPartitionResponse):
                continue  # the connection on which this answer would go is closed
            if to in self.running:
                self.running[to].expected += 1
            else:
                self.new_messages.append(WaitingMessage(to, NO_NUMBER, source, message))
        for one in self.running.values():
            if one.expected > one.arrivals:
                self._read_mail(one)

    def _read_mail(self, one: BrokerProcess) -> None:
        one.pipe.send(("mail", one.expected))
        reply = one.receive()
        mail = cast("list[Mail]", reply.value)
        for number, (source, _, message) in enumerate(mail[one.arrivals :], one.arrivals):
            self.new_messages.append(WaitingMessage(one.who, number, source, message))
            self.newest_request[source, one.who, type(message)] = number
        one.arrivals = one.expected
        if reply.sent_messages or reply.actions:
            self._record(one.who, reply)

    def deliver(self, message: WaitingMessage, again: bool = False) -> None:
        """Deliver a waiting message to the core of its receiver; `again` if it was delivered before."""
        last = self.newest_request[message.source, message.at, type(message.message)]
        self.call(message.at, "deliver", message.number, discard_answers=again or message.number != last)

    def tick(
        self, who: BrokerId, prepare: Callable[..., object], *arguments: object, restore: object = unchanged
    ) -> None:
        """Tick the core of a broker once, between `prepare(core, *given)` and `restore(core)`.

        The clock of a stepped broker stands still: `prepare` moves stored times back, so that a timer is due.
        """
        self.call(who, "tick", partial(_apply, prepare, arguments), restore)

    def tick_controller(
        self, prepare: Callable[..., object], *arguments: object, ticks: bool = True, restore: object = unchanged
    ) -> None:
        """The same for the controller's core, which ticks only if `ticks` is true."""
        self.call(CONTROLLER, "tick controller", partial(_apply, prepare, arguments), ticks, restore)

    def memory(self, who: BrokerId) -> ProcessMemory:
        """The cores in the memory of a process."""
        return cast("ProcessMemory", self.call(who, "memory"))

    def kill(self, who: BrokerId) -> None:
        """End a process by SIGKILL. What it had written to its files stays there."""
        one = self.running.pop(who)
        one.process.kill()
        self._reap(one)

    def wait_for_exit(self, who: BrokerId) -> None:
        """Wait for a process that shuts down by itself; ProcessStuck if it does not, or fails."""
        one = self.running.pop(who)
        one.process.join(PATIENCE)
        if one.process.exitcode != 0:
            one.process.kill()
            raise ProcessStuck(f"the process of {name(who)} ended with {one.process.exitcode}")
        self._reap(one)

    def _reap(self, one: BrokerProcess) -> None:
        one.process.join()
        one.process.close()
        one.pipe.close()
        time.sleep(NOTICE_SECONDS)

    def pop_actions(self) -> list[str]:
        """The actions that the cores have taken since this was last called."""
        actions, self.actions = self.actions, []
        return actions

    def kill_all(self) -> None:
        """Kill every process."""
        for one in self.running.values():
            one.process.kill()
        for one in self.running.values():
            one.process.join()
            one.process.close()
            one.pipe.close()
        self.running.clear()
        self.new_messages.clear()
        self.actions.clear()


def _apply(prepare: Callable[..., object], arguments: tuple[object, ...], core: object) -> object:
    return prepare(core, *arguments)
