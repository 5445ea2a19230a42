"""Real broker processes under the driver's hand: started, killed, told what to do next, and asked what they know.

Every message crosses a socket as soon as it is sent, and waits where it has arrived. So after each command the driver
knows all that is under way, and nothing else happens.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final, TypeVar, cast

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import AlterPartitionResponse, BrokerId, FetchResponse, Message
from isr_broker.settings import Settings
from isr_processes.stepped_broker import Inside, Mail, Reply, Start, run

M = TypeVar("M")
Context: Final = multiprocessing.get_context("forkserver")
Context.set_forkserver_preload(["isr_processes.stepped_broker"])
HOST: Final = "127.0.0.1"
PATIENCE: Final = 60.0
NOWHERE: Final = -1
"""The number of a message that was sent to a process that is not there."""
UNNOTICED: Final = 0.08
"""Seconds in which every connection to a process that was killed has been seen to end, and given up."""


class Stuck(Exception):
    """A process does not do what the driver waits for: which, and what."""


def same(value: M) -> M:
    """What it was."""
    return value


@attrs.define(eq=False)
class Machine:
    """A process; `mail` is what has arrived there, `known` how much of that the driver has looked at."""

    who: BrokerId
    process: ForkServerProcess
    pipe: Connection
    expected: int = 0
    known: int = 0
    mail: list[Mail] = attrs.field(factory=list[Mail])

    def heard(self) -> Reply:
        """The next answer."""
        try:
            if self.pipe.poll(PATIENCE):
                return cast("Reply", self.pipe.recv())
        except (EOFError, OSError):
            raise Stuck(f"the process of {name(self.who)} has ended") from None
        raise Stuck(f"the process of {name(self.who)} does not answer")


@attrs.frozen
class Arrived:
    """A message that waits at a process, by its number there."""

    at: BrokerId
    number: int
    source: BrokerId
    message: Message


def name(who: BrokerId) -> str:
    """A process for people."""
    return "the controller" if who == CONTROLLER else f"broker {who}"


@attrs.define(eq=False)
class Machines:
    """The controller's process and those of the brokers that run, with their data below `root`.

    `fresh` are the messages that arrived since the driver last took them out.
    """

    root: Path
    ports: Mapping[BrokerId, int]
    settings: Mapping[BrokerId, Settings]
    running: dict[BrokerId, Machine] = attrs.field(factory=dict[BrokerId, Machine])
    fresh: list[Arrived] = attrs.field(factory=list[Arrived])
    took: list[str] = attrs.field(factory=list[str])
    newest: dict[tuple[BrokerId, BrokerId, type[Message]], int] = attrs.field(
        factory=dict[tuple[BrokerId, BrokerId, type[Message]], int]
    )
    """The last request of a kind from somebody to somebody, by its number there: no other can be answered."""

    def start(self, who: BrokerId) -> None:
        """Start a process, and wait until it listens; its port may be somebody else's for a moment."""
        end = time.monotonic() + PATIENCE
        while (problem := self._started(who)) is not None:
            if time.monotonic() > end:
                raise Stuck(f"{name(who)} does not start: {problem.lower()}")
            time.sleep(0.1)

    def _started(self, who: BrokerId) -> str | None:
        """Why it did not start, None if it did."""
        ours, theirs = Context.Pipe()
        start = Start(
            me=0 if who == CONTROLLER else who,
            settings=self.settings[who],
            data=str(self.folder(who)),
            address=(HOST, self.ports[who]),
            controller_at=(HOST, self.ports[CONTROLLER]),
        )
        process = Context.Process(target=run, args=(start, theirs), daemon=True)
        process.start()
        theirs.close()
        machine = Machine(who, process, ours)
        reply = machine.heard()
        if reply.value is not None:
            process.join()
            process.close()
            ours.close()
            return str(reply.value)
        self.running[who] = machine
        self._noted(who, reply)
        return None

    def folder(self, who: BrokerId) -> Path:
        """Where a process has its data."""
        return self.root / ("controller" if who == CONTROLLER else str(who))

    def call(self, who: BrokerId, do: str, *given: object, mute: bool = False) -> object:
        """Have a process do something, and wait until all that it sent has arrived."""
        machine = self.running[who]
        machine.pipe.send((do, *given))
        reply = machine.heard()
        self._noted(who, reply, mute)
        return reply.value

    def _noted(self, source: BrokerId, reply: Reply, mute: bool = False) -> None:
        self.took += reply.took
        for to, message in reply.sent:
            if mute and isinstance(message, FetchResponse | AlterPartitionResponse):
                continue  # nobody is on the line
            if to in self.running:
                self.running[to].expected += 1
            else:
                self.fresh.append(Arrived(to, NOWHERE, source, message))
        for machine in self.running.values():
            if machine.expected > machine.known:
                self._look(machine)

    def _look(self, machine: Machine) -> None:
        machine.pipe.send(("mail", machine.expected))
        reply = machine.heard()
        mail = cast("list[Mail]", reply.value)
        for number, (source, _, message) in enumerate(mail[machine.known :], machine.known):
            self.fresh.append(Arrived(machine.who, number, source, message))
            self.newest[source, machine.who, type(message)] = number
        machine.known = machine.expected
        if reply.sent or reply.took:
            self._noted(machine.who, reply)

    def take(self, arrived: Arrived, again: bool = False) -> None:
        """A message is taken where it waits; `again`: not for the first time."""
        last = self.newest[arrived.source, arrived.at, type(arrived.message)]
        self.call(arrived.at, "take", arrived.number, mute=again or arrived.number != last)

    def tick(self, who: BrokerId, made: Callable[..., object], *given: object, restored: object = same) -> None:
        """The core of a broker ticks once, made old before by `made(core, *given)`."""
        self.call(who, "tick", partial(_made, made, given), restored)

    def rule(self, made: Callable[..., object], *given: object, ticks: bool = True, restored: object = same) -> None:
        """The controller's core is made old in the same way, and ticks once if it is to."""
        self.call(CONTROLLER, "rule", partial(_made, made, given), ticks, restored)

    def inside(self, who: BrokerId) -> Inside:
        """What is in the memory of a process."""
        return cast("Inside", self.call(who, "inside"))

    def kill(self, who: BrokerId) -> None:
        """A process is gone at once; the system keeps what it had written."""
        machine = self.running.pop(who)
        machine.process.kill()
        self._gone(machine)

    def ended(self, who: BrokerId) -> None:
        """Wait for a process that ends by itself."""
        machine = self.running.pop(who)
        machine.process.join(PATIENCE)
        if machine.process.exitcode != 0:
            machine.process.kill()
            raise Stuck(f"the process of {name(who)} ended with {machine.process.exitcode}")
        self._gone(machine)

    def _gone(self, machine: Machine) -> None:
        machine.process.join()
        machine.process.close()
        machine.pipe.close()
        time.sleep(UNNOTICED)

    def took_since(self) -> list[str]:
        """The actions that were taken since this was last asked."""
        took, self.took = self.took, []
        return took

    def kill_all(self) -> None:
        """No process is left."""
        for machine in self.running.values():
            machine.process.kill()
        for machine in self.running.values():
            machine.process.join()
            machine.process.close()
            machine.pipe.close()
        self.running.clear()
        self.fresh.clear()
        self.took.clear()


def _made(made: Callable[..., object], given: tuple[object, ...], core: object) -> object:
    return made(core, *given)
