"""One process per broker. The first broker has the controller; SIGTERM stops a broker in order, SIGKILL at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from isr_cluster.identity import CONTROLLER_BROKER

HOST: Final = "127.0.0.1"
STARTS_WITHIN: Final = 60.0
STOPS_WITHIN: Final = 60.0


class Mishap(Exception):
    """A process did not do what it was started for; the message says which and why."""


def nothing(line: str) -> None:
    """Nobody reads."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind((HOST, 0))
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def in_use(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((HOST, port))
        except OSError:
            return True
    return False


@attrs.define(eq=False)
class Process:
    """A broker's process, and the thread that reads what it says."""

    broker: int
    process: subprocess.Popen[str]
    tell: Callable[[str], None]
    last: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=5))
    heard: threading.Event = attrs.field(factory=threading.Event)
    listens: bool = False
    reader: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        """Every line it prints, with the broker's name before it if it is not there already."""
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                said = line.rstrip("\n")
                self.last.append(said)
                name = f"broker {self.broker}"
                self.tell(said if name in said[:30] else f"{time.strftime('%H:%M:%S')} {name}: {said}")
                if f"{name} listens" in said:
                    self.listens = True
                    self.heard.set()
        self.heard.set()

    @property
    def ended(self) -> int | None:
        """Its exit code, None while it runs."""
        return self.process.poll()


@attrs.define
class Processes:
    """Brokers 1, 2, ... on `ports`, with their data below `root`; what they print goes to `tell`.

    `properties` are settings by Kafka's names, `cluster` the name of the cluster, which their data carry. `own` are
    settings of single brokers, `hosts` where a broker listens if not on HOST, `advertised` where it is found if not
    there, and `inside` what its command line begins with (such as the entry into a namespace of its own).
    """

    root: Path
    ports: Mapping[int, int]
    properties: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cluster: str = "insync"
    tell: Callable[[str], None] = nothing
    running: dict[int, Process] = attrs.field(factory=dict[int, Process])
    own: Mapping[int, Mapping[str, str]] = attrs.field(factory=dict[int, Mapping[str, str]])
    hosts: Mapping[int, str] = attrs.field(factory=dict[int, str])
    advertised: Mapping[int, tuple[str, int]] = attrs.field(factory=dict[int, tuple[str, int]])
    inside: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict[int, tuple[str, ...]])

    def found_at(self, broker: int) -> tuple[str, int]:
        """The address that a broker advertises."""
        return self.advertised.get(broker, (self.hosts.get(broker, HOST), self.ports[broker]))

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return ",".join(f"{host}:{port}" for host, port in map(self.found_at, self.ports))

    def start(self, broker: int) -> None:
        """Start a broker and wait until it listens; Mishap if it ends instead."""
        command = [*self.inside.get(broker, ()), sys.executable, "-m", "isr_broker"]
        command += ["--id", str(broker), "--host", self.hosts.get(broker, HOST), "--port", str(self.ports[broker])]
        command += ["--data", str(self.root / str(broker)), "--cluster", self.cluster, "--tied"]
        command += ["--controller", "{}:{}".format(*self.found_at(CONTROLLER_BROKER))]
        command += ["--advertise", "{}:{}".format(*self.advertised[broker])] if broker in self.advertised else []
        settings = {**self.properties, **self.own.get(broker, {})}
        command += [f"{name}={value}" for name, value in settings.items()]
        # Tied, so that none outlives whoever started it, however that ends. Of a session of its own, so that Ctrl-C
        # reaches whoever started it, who then stops the brokers in order.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        started = self.running[broker] = Process(broker, process, self.tell)
        if not started.heard.wait(STARTS_WITHIN):
            raise Mishap(f"broker {broker} does not listen after {STARTS_WITHIN:.0f} s")
        if not started.listens:
            code = process.wait()
            del self.running[broker]
            said = started.last[-1].removeprefix("isr_broker: ") if started.last else f"exit code {code}"
            raise Mishap(f"broker {broker} did not start: {said}")

    def start_all(self) -> None:
        """Start every broker, that of the controller first."""
        for broker in self.ports:
            self.start(broker)

    def stop(self, broker: int, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, and give the exit code; one that does not end in time is killed."""
        stopped = self.running.pop(broker)
        if stopped.ended is None:
            stopped.process.send_signal(number)
        try:
            code = stopped.process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            stopped.process.kill()
            code = stopped.process.wait()
        stopped.reader.join(5)
        if stopped.process.stdin is not None:
            stopped.process.stdin.close()
        return code

    def kill(self, broker: int) -> None:
        """As a power switch, except that the system keeps what was written."""
        self.stop(broker, signal.SIGKILL)

    def pause(self, broker: int) -> None:
        """The process does nothing until `resume`, and does not know."""
        self.running[broker].process.send_signal(signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """It goes on."""
        self.running[broker].process.send_signal(signal.SIGCONT)

    def stop_all(self) -> dict[int, int]:
        """Stop every broker in order, that of the controller last, for the others need it; their exit codes."""
        return {broker: self.stop(broker) for broker in sorted(self.running, reverse=True)}

    def kill_all(self) -> None:
        """Kill whatever still runs."""
        for broker in list(self.running):
            self.kill(broker)

    def ended(self) -> dict[int, int]:
        """The brokers that ended without having been asked, and their exit codes."""
        found = {broker: process.ended for broker, process in self.running.items()}
        return {broker: code for broker, code in found.items() if code is not None}
