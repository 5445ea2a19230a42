"""One process per broker: a cluster of ours, and what is common to every kind of system under test.

The first broker has the controller; SIGTERM stops a broker in order, SIGKILL at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from isr_broker.storage.meta_properties import new_id
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.ports import HOST

Address: TypeAlias = tuple[str, int]
STARTS_WITHIN: Final = 60.0
STOPS_WITHIN: Final = 60.0


class Mishap(Exception):
    """A process did not do what it was started for; the message says which and why."""


def python_module(name: str) -> list[str]:
    """What runs a module of ours as a program. It imports no module of the current folder (-P)."""
    return [sys.executable, "-P", "-m", name]


def nothing(line: str) -> None:
    """Nobody reads."""


@attrs.define(eq=False)
class Process:
    """A node's process, and the thread that reads what it says; `name` is what it calls itself, `broker 1`."""

    name: str
    process: subprocess.Popen[str]
    tell: Callable[[str], None]
    last: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=60))
    wakeup: threading.Event = attrs.field(factory=threading.Event)
    listens: bool = False
    reader: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read_output, daemon=True)
        self.reader.start()

    def _read_output(self) -> None:
        """Every line it prints, with the node's name before it if it is not there already."""
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                said = line.rstrip("\n")
                self.last.append(said)
                self.tell(said if self.name in said[:30] else f"{time.strftime('%H:%M:%S')} {self.name}: {said}")
                if f"{self.name} listens" in said:
                    self.listens = True
                    self.wakeup.set()
        self.wakeup.set()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        return self.process.poll()


@attrs.define
class System:
    """A cluster under test: brokers 1, 2, ... on `ports`, each a process in the foreground, with data below `root`.

    What they print goes to `tell`. `properties` are settings by Kafka's names, `cluster` the id of the cluster, which
    their data carry. `own` are settings of single brokers, `hosts` where a broker listens if not on HOST, `advertised`
    where it is found if not there, and `inside` what its command line begins with (such as the entry into a namespace
    of its own). A kind of system says what starts a broker, and what it has to do otherwise than by a signal.
    """

    root: Path
    ports: Mapping[int, int]
    properties: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cluster: str = attrs.field(factory=new_id)
    tell: Callable[[str], None] = nothing
    running: dict[int, Process] = attrs.field(factory=dict[int, Process])
    own: Mapping[int, Mapping[str, str]] = attrs.field(factory=dict[int, Mapping[str, str]])
    hosts: Mapping[int, str] = attrs.field(factory=dict[int, str])
    advertised: Mapping[int, Address] = attrs.field(factory=dict[int, Address])
    inside: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict[int, tuple[str, ...]])

    def listens_at(self, broker: int) -> Address:
        """The address that a broker binds."""
        return self.hosts.get(broker, HOST), self.ports[broker]

    def found_at(self, broker: int) -> Address:
        """The address that a broker advertises."""
        return self.advertised.get(broker, self.listens_at(broker))

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return ",".join(f"{host}:{port}" for host, port in map(self.found_at, self.ports))

    def data(self, broker: int) -> Path:
        """The folder with a broker's logs."""
        return self.root / str(broker)

    def logs(self, broker: int) -> Path | None:
        """The folder with a folder for each of its partitions, in Kafka's format; None if nobody knows."""
        return self.data(broker)

    def name(self, broker: int) -> str:
        """What a node calls itself."""
        return f"broker {broker}"

    # What a kind of system says

    def command(self, broker: int) -> list[str]:
        """What runs a broker in the foreground; whatever it needs on the disk is there afterwards."""
        raise NotImplementedError

    def serves(self, broker: int) -> bool:
        """Whether a broker that was started answers by now."""
        raise NotImplementedError

    def reason(self, lines: Sequence[str]) -> str:
        """Why a broker has ended, of the last lines that it printed."""
        return lines[-1]

    # What is done to a broker

    def start(self, broker: int) -> None:
        """Have a broker's process run; `awaits` waits until it serves."""
        command = [*self.inside.get(broker, ()), *self.command(broker)]
        # Its input ends with whoever started it, so that a broker that looks at it outlives nobody. Of a session of its
        # own, so that Ctrl-C reaches whoever started it, who then stops the brokers in order.
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise Mishap(f"{self.name(broker)} did not start: {command[0]}: {error.strerror or error}") from None
        self.running[broker] = Process(self.name(broker), process, self.tell)

    def awaits(self, broker: int) -> None:
        """Wait until a broker that was started serves; Mishap if it ends instead."""
        started, until = self.running[broker], time.monotonic() + STARTS_WITHIN
        while not self.serves(broker):
            if (code := started.exit_code) is not None:
                started.reader.join(5)
                del self.running[broker]
                said = self.reason(list(started.last)) if started.last else f"exit code {code}"
                raise Mishap(f"{self.name(broker)} did not start: {said}")
            if time.monotonic() > until:
                raise Mishap(f"{self.name(broker)} does not listen after {STARTS_WITHIN:.0f} s")
            if started.wakeup.wait(0.05):
                time.sleep(0.01)

    def start_all(self) -> None:
        """Start every broker, and wait until all of them serve."""
        for broker in self.ports:
            self.start(broker)
        for broker in self.ports:
            self.awaits(broker)

    def stop(self, broker: int, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal, wait for the end, and give the exit code; one that does not end in time is killed."""
        stopped = self.running.pop(broker)
        if stopped.exit_code is None:
            self.ends(broker, stopped.process, number)
        try:
            code = stopped.process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            stopped.process.kill()
            code = stopped.process.wait()
        stopped.reader.join(5)
        if stopped.process.stdin is not None:
            stopped.process.stdin.close()
        return code

    def ends(self, broker: int, process: subprocess.Popen[str], number: signal.Signals) -> None:
        """Ask a process to end, in order or at once."""
        process.send_signal(number)

    def kill(self, broker: int) -> bool:
        """As a power switch, except that the system keeps what was written; whether that is what ended it."""
        return self.stop(broker, signal.SIGKILL) == -signal.SIGKILL

    def pause(self, broker: int) -> bool:
        """The process does nothing until `resume`, and does not know; whether it stands still."""
        process = self.running[broker].process
        process.send_signal(signal.SIGSTOP)
        return _state(process.pid) == "T"

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

    def early_exits(self) -> dict[int, int]:
        """The brokers that ended without having been asked, and their exit codes."""
        found = {broker: process.exit_code for broker, process in self.running.items()}
        return {broker: code for broker, code in found.items() if code is not None}


def apart(ports: Mapping[int, int], controller: int) -> dict[int, dict[str, str]]:
    """Settings of brokers that listen for clients on `ports`, and for each other and the controller elsewhere.

    Brokers tell each other, with their registration, which free ports they have. All of it is on HOST.
    """
    protocols = ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "BROKERS", "CONTROLLER"))
    common = {
        "inter.broker.listener.name": "BROKERS",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": protocols,
    }
    listeners = {b: f"PLAINTEXT://{HOST}:{port},BROKERS://{HOST}:0" for b, port in ports.items()}
    listeners[CONTROLLER_BROKER] += f",CONTROLLER://{HOST}:{controller}"
    return {broker: {"listeners": named, **common} for broker, named in listeners.items()}


@attrs.define
class UnderControllers(System):
    """Brokers of any kind under our controllers, if there are `controllers` of a quorum, by their numbers.

    Each of these is a process of its own that `controller_program` runs.
    """

    controllers: Mapping[int, Address] = attrs.field(factory=dict[int, Address])
    controller_program: Sequence[str] = attrs.field(factory=lambda: python_module("isr_broker.controller"))

    @property
    def quorum(self) -> str:
        """These controllers as a setting."""
        return ",".join(f"{voter}@{host}:{port}" for voter, (host, port) in self.controllers.items())

    def name(self, broker: int) -> str:
        """What a node calls itself."""
        return f"voter {broker}" if broker in self.controllers else f"broker {broker}"

    def controller_command(self, number: int, properties: Mapping[str, str]) -> list[str]:
        """What runs a controller with these settings; its folder is formatted once, by the same without them."""
        command = [*self.controller_program, "--id", str(number), "--data", str(self.data(number))]
        command += ["--cluster", self.cluster]
        if not self.data(number).exists():
            subprocess.run([*command, "--format"], check=True, capture_output=True)
        settings = {**properties, **self.own.get(number, {}), "controller.quorum.voters": self.quorum}
        return [*command, "--tied", *(f"{name}={value}" for name, value in settings.items())]

    def start_all(self) -> None:
        """Start every broker, all controllers of a quorum first, and wait until all of them serve."""
        for nodes in (self.controllers, self.ports):
            for node in nodes:
                self.start(node)
            for node in nodes:
                self.awaits(node)

    def stop_all(self) -> dict[int, int]:
        """Stop every broker in order, and then the controllers of a quorum; their exit codes."""
        running = sorted(self.running, key=lambda node: (node in self.controllers, -node))
        return {node: self.stop(node) for node in running}


@attrs.define
class Processes(UnderControllers):
    """Our brokers. Ctrl-C of whoever started them does not reach them, and they end with it, however that ends.

    `controller` is where the controller listens, if that is not where its broker does.
    """

    controller: Address | None = None

    def command(self, broker: int) -> list[str]:
        """The broker as a program (`python -m isr_broker`), or the controller."""
        if broker in self.controllers:
            return self.controller_command(broker, self.properties)
        host, port = self.listens_at(broker)
        places = self.controllers.values() or (self.controller or self.found_at(CONTROLLER_BROKER),)
        command = [*python_module("isr_broker"), "--id", str(broker), "--host", host, "--port", str(port)]
        command += ["--data", str(self.data(broker)), "--cluster", self.cluster, "--tied"]
        command += ["--controller", ",".join(f"{at}:{number}" for at, number in places)]
        command += ["--advertise", "{}:{}".format(*self.advertised[broker])] if broker in self.advertised else []
        settings = {**self.properties, **self.own.get(broker, {})}
        return [*command, *(f"{name}={value}" for name, value in settings.items())]

    def start(self, broker: int) -> None:
        """Start a broker and wait until it listens, which takes a part of a second; Mishap if it ends instead."""
        super().start(broker)
        self.awaits(broker)

    def serves(self, broker: int) -> bool:
        """It says that it listens."""
        return self.running[broker].listens

    def reason(self, lines: Sequence[str]) -> str:
        """Its last line, without its name."""
        return lines[-1].removeprefix("isr_broker: ").removeprefix("isr_broker.controller: ")

    def start_all(self) -> None:
        """Start every broker, that of the controller first, or all controllers of a quorum."""
        for broker in (*self.controllers, *self.ports):
            self.start(broker)


def _state(pid: int) -> str:
    """The state of a process, once it has settled: T stands still."""
    path, state = Path(f"/proc/{pid}/stat"), ""
    for _ in range(100):
        state = path.read_text().rpartition(")")[2].split()[0] if path.exists() else "X"
        if state in "TX":
            return state
        time.sleep(0.01)
    return state
