"""Time, chance and the network: events in order, hosts that take them, and what their effects set off.

Everything that happens is an event in one queue, ordered by time and then by the order in which it was caused. Chance
comes from one generator with one seed.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable
from random import Random
from typing import Protocol, TypeAlias

import attrs

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.controller import Controller, recovered
from isr_broker.core.effects import (
    CONTROLLER,
    AdvanceLogStart,
    AnswerConsume,
    AnswerFetch,
    AnswerProduce,
    AppendLog,
    AppendMetadata,
    AssignEpoch,
    CheckpointWatermarks,
    DeleteLog,
    DiskOperation,
    Effect,
    Halt,
    OpenLog,
    Send,
    StopProcess,
    Took,
    TruncateLog,
)
from isr_broker.core.inputs import (
    ControllerInput,
    DiskDone,
    DiskFailed,
    LogOpened,
    NodeInput,
    Received,
    ShutDown,
    Start,
    Tick,
    Written,
)
from isr_broker.core.messages import BrokerId, Message, MetadataRecord, Millis, TopicPartition
from isr_broker.settings import Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import Everything, Survival
from isr_broker.storage.log_directory import LogDirectory
from isr_sim.host import Host

Event: TypeAlias = tuple[Millis, int, Callable[[], object]]
"""When, in which order among those of the same time, and what happens."""

Answer: TypeAlias = AnswerProduce | AnswerConsume


class Digest(Protocol):
    """A hash that grows."""

    def update(self, data: bytes, /) -> None:
        """Take more in."""
        ...

    def hexdigest(self) -> str:
        """What it is so far."""
        ...


class Watcher(Protocol):
    """Who looks at each step: the invariants."""

    def starts(self, broker: BrokerId, disk: Disk) -> None:
        """A process is about to load what is on its disk."""
        ...

    def opened(self, broker: BrokerId, tp: TopicPartition, records: bytes) -> None:
        """A log was found on the disk with these batches."""
        ...

    def changed(self, broker: BrokerId, operation: DiskOperation) -> None:
        """A disk operation was reported done to the broker's core."""
        ...

    def stepped(self, world: World) -> None:
        """A core took an input."""
        ...


class Client(Protocol):
    """A producer or consumer."""

    def answered(self, world: World, answer: Answer, records: bytes) -> None:
        """A broker's answer has arrived."""
        ...


@attrs.frozen(kw_only=True)
class Weather:
    """How the network and the disks behave, in probabilities and milliseconds."""

    loss: float = 0.01
    twice: float = 0.01
    slow: float = 0.02
    quick_ms: Millis = 8
    slow_ms: Millis = 1_500
    disk_ms: Millis = 3


FAIR = Weather(loss=0.0, twice=0.0, slow=0.0)


@attrs.define
class World:
    """Everything there is in one run."""

    settings: Settings
    random: Random
    hosts: dict[BrokerId, Host]
    watcher: Watcher
    weather: Weather = attrs.field(factory=Weather)
    now: Millis = 0
    queue: list[Event] = attrs.field(factory=list[Event])
    caused: int = 0
    steps: int = 0
    cut: set[tuple[BrokerId, BrokerId]] = attrs.field(factory=set[tuple[BrokerId, BrokerId]])
    lag: dict[tuple[BrokerId, BrokerId], Millis] = attrs.field(factory=dict[tuple[BrokerId, BrokerId], Millis])
    clients: dict[int, Client] = attrs.field(factory=dict[int, Client])
    actions: dict[str, int] = attrs.field(factory=dict[str, int])
    lines: list[str] = attrs.field(factory=list[str])
    keeps_lines: bool = False
    controller: Controller = attrs.field(init=False)
    controller_log: list[MetadataRecord] = attrs.field(factory=list[MetadataRecord])
    controller_life: int = 0
    controller_paused_until: Millis = 0
    controller_alarm: int = 0
    controller_durable_at: Millis = 0
    digest: Digest = attrs.field(factory=hashlib.sha256)

    def __attrs_post_init__(self) -> None:
        self.controller = recovered(self.settings, [], 0)

    # Time

    def after(self, delay: Millis, happens: Callable[[], object]) -> None:
        """Something happens that much later."""
        self.caused += 1
        heapq.heappush(self.queue, (self.now + delay, self.caused, happens))

    def run(self, until: Millis) -> None:
        """Let everything happen up to a time."""
        while self.queue and self.queue[0][0] <= until:
            at, _, happens = heapq.heappop(self.queue)
            self.now = max(self.now, at)
            happens()
        self.now = until

    def note(self, line: str) -> None:
        """One line of the trace."""
        self.digest.update(f"{self.now} {line}\n".encode())
        if self.keeps_lines:
            self.lines.append(f"{self.now:7} {line}")

    @property
    def trace(self) -> str:
        """The hash of everything that was noted."""
        return self.digest.hexdigest()

    # The network

    def send(self, source: BrokerId, to: BrokerId, told: NodeInput) -> None:
        """A message leaves; it arrives late, twice, or not at all, and never at a later process than it was sent to."""
        if (source, to) in self.cut or self.random.random() < self.weather.loss:
            return
        life = self.controller_life if to == CONTROLLER else self.hosts[to].life
        for _ in range(2 if self.random.random() < self.weather.twice else 1):
            self.after(self._delay() + self.lag.get((source, to), 0), lambda: self._arrives(to, life, told))

    def _delay(self) -> Millis:
        slow = self.random.random() < self.weather.slow
        return self.random.randint(1, self.weather.slow_ms if slow else self.weather.quick_ms)

    def _arrives(self, to: BrokerId, life: int, told: NodeInput) -> None:
        if to == CONTROLLER:
            if life == self.controller_life and isinstance(told, Received):
                self.tell_controller(told)
        elif life == self.hosts[to].life:
            self.tell(to, told)

    def answer(self, source: BrokerId, answer: Answer, records: bytes) -> None:
        """An answer leaves for a client."""
        client = self.clients.get(answer.request)
        if client is not None and self.random.random() >= self.weather.loss:
            self.after(self._delay(), lambda: client.answered(self, answer, records))

    # Brokers

    def tell(self, broker: BrokerId, told: NodeInput, done: DiskOperation | None = None) -> None:
        """A broker's core takes an input, now or when its process is no longer paused."""
        host = self.hosts[broker]
        if host.node is None:
            return
        if host.paused_until > self.now:
            self._later(host, host.paused_until - self.now, told, done)
            return
        if done is not None and not isinstance(told, DiskFailed):
            self.watcher.changed(broker, done)
        self.steps += 1
        self.note(f"{broker} {told!r}")
        step = nodes.handle(host.node, told, host.clock.local(self.now))
        host.node = step.core
        try:
            for effect in step.effects:
                self._perform(host, effect)
        except OSError as error:
            # A checkpoint or the orderly end could not be written: the process ends at once, leaving no mark.
            self.note(f"{broker} halts: {error}")
            self.stop(broker, Everything())
        self.watcher.stepped(self)
        self._set_alarm(host)

    def _set_alarm(self, host: Host) -> None:
        at = nodes.deadline(host.node) if host.node is not None else None
        host.alarm += 1
        if at is None:
            return
        alarm = host.alarm

        def rings() -> None:
            if host.alarm == alarm:
                self.tell(host.broker, Tick())

        self.after(max(0, host.clock.true(at) - self.now), rings)

    def _later(self, host: Host, delay: Millis, told: NodeInput, done: DiskOperation | None) -> None:
        """Tell the very process that runs now, if it still does then."""
        life = host.life

        def happens() -> None:
            if life == host.life:
                self.tell(host.broker, told, done)

        self.after(delay, happens)

    def _perform(self, host: Host, effect: Effect) -> None:
        if host.logs is None:
            return
        match effect:
            case Took(action=action, partition=tp):
                self.actions[action] = self.actions.get(action, 0) + 1
                self.note(f"{host.broker} took {action} {tp}")
            case Send(to, message):
                self.send(host.broker, to, Received(host.broker, message))
            case AnswerFetch(to=to, response=response, records=wanted):
                records = host.logs.read(response.partition, wanted) if wanted else b""
                self.send(host.broker, to, Received(host.broker, attrs.evolve(response, records=records)))
            case AnswerProduce():
                self.answer(host.broker, effect, b"")
            case AnswerConsume(partition=tp, records=wanted):
                self.answer(host.broker, effect, host.logs.read(tp, wanted) if wanted else b"")
            case AppendLog() | TruncateLog() | AssignEpoch():
                self._write(host, effect)
            case OpenLog(tp, topic_id):
                self._after_disk(host, host.logs.open(tp, topic_id), None)
            case DeleteLog(tp):
                host.logs.delete(tp)
            case CheckpointWatermarks():
                host.logs.checkpoint(effect)
            case StopProcess(epoch, watermarks):
                host.logs.close(epoch, watermarks)
                self.stop(host.broker, Everything())
            case Halt(why):
                self.note(f"{host.broker} halts: {why}")
                self.stop(host.broker, Everything())
            case AdvanceLogStart() | AppendMetadata():
                raise AssertionError("no log here is old enough to lose its beginning; a broker writes no metadata")

    def _write(self, host: Host, operation: DiskOperation) -> None:
        """Done at once and told later, or done when it is told: a crash may come before, between or after."""
        logs = host.logs
        assert logs is not None
        if self.random.random() < 0.5:
            self._after_disk(host, logs.perform(operation), operation)
            return
        life = host.life

        def happens() -> None:
            if life == host.life and host.logs is logs:
                self.tell(host.broker, logs.perform(operation), operation)

        self.after(self.random.randint(0, self.weather.disk_ms), happens)

    def _after_disk(self, host: Host, told: DiskDone | LogOpened, operation: DiskOperation | None) -> None:
        self._later(host, self.random.randint(0, self.weather.disk_ms), told, operation)

    # Processes

    def start(self, broker: BrokerId) -> None:
        """A process starts and recovers the logs that it finds."""
        host = self.hosts[broker]
        assert host.node is None
        host.life += 1
        host.paused_until = 0
        self.watcher.starts(broker, host.disk)
        host.logs = LogDirectory(host.disk, self.settings)
        clean_epoch, opened = host.logs.load()
        self.note(f"{broker} starts, {'clean' if clean_epoch >= 0 else 'unclean'}")
        host.node = nodes.Node(me=broker, settings=self.settings)
        for found in opened:
            self.watcher.opened(broker, found.partition, host.logs.logs[found.partition].contents())
            self.tell(broker, found)
        self.tell(broker, Start(incarnation=host.life, previous_broker_epoch=clean_epoch))

    def stop(self, broker: BrokerId, survival: Survival) -> None:
        """The process is gone; of its disk survives what survives."""
        host = self.hosts[broker]
        self.note(f"{broker} is gone")
        host.node, host.logs = None, None
        host.life += 1
        host.disk.crash(survival)

    def pause(self, broker: BrokerId, duration: Millis) -> None:
        """The process does nothing for a while, and then goes on as if nothing had been."""
        self.note(f"{broker} pauses for {duration}")
        self.hosts[broker].paused_until = self.now + duration

    def shut_down(self, broker: BrokerId) -> None:
        """The process is asked to stop in order."""
        self.tell(broker, ShutDown())

    # The controller

    def tell_controller(self, told: ControllerInput) -> None:
        """The controller's core takes an input, now or when its process is no longer paused."""
        if self.controller_paused_until > self.now:
            life = self.controller_life

            def later() -> None:
                if life == self.controller_life:
                    self.tell_controller(told)

            self.after(self.controller_paused_until - self.now, later)
            return
        self.steps += 1
        self.note(f"controller {told!r}")
        step = controllers.handle(self.controller, told, self.now)
        self.controller = step.core
        for effect in step.effects:
            self._perform_for_controller(effect)
        self.watcher.stepped(self)
        self.controller_alarm += 1
        alarm = self.controller_alarm

        def rings() -> None:
            if alarm == self.controller_alarm:
                self.tell_controller(Tick())

        self.after(max(0, controllers.deadline(self.controller) - self.now), rings)

    def _perform_for_controller(self, effect: Effect) -> None:
        match effect:
            case Took(action=action, partition=tp, replica=replica):
                self.actions[action] = self.actions.get(action, 0) + 1
                self.note(f"controller took {action} {tp} {replica}")
            case Send(to, message):
                self._tell_broker(to, message)
            case AppendMetadata(offset=offset, records=records):
                life = self.controller_life

                def durable() -> None:
                    if life == self.controller_life:
                        self.controller_log.extend(records)
                        self.tell_controller(Written(offset))

                # A log is written in order.
                at = max(self.controller_durable_at, self.now + self.random.randint(0, self.weather.disk_ms))
                self.controller_durable_at = at
                self.after(at - self.now, durable)
            case _:
                raise AssertionError(f"the controller has no use for {effect}")

    def _tell_broker(self, to: BrokerId, message: Message) -> None:
        if to in self.hosts:
            self.send(CONTROLLER, to, Received(CONTROLLER, message))

    def restart_controller(self) -> None:
        """The controller crashes and is back at once: what was not durable in its log is gone."""
        self.note("controller restarts")
        self.controller_life += 1
        self.controller = recovered(self.settings, self.controller_log, self.now)
        self.tell_controller(Tick())
