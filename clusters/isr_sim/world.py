"""Time, chance and the network around brokers as they run: each a `Runtime`, on a disk in memory.

Everything that happens is an event in one queue, ordered by time and then by the order in which it was caused. Chance
comes from one generator with one seed. A process takes what arrives in turns, as the server's loop does, and the world
is what a `Runtime` needs of one: `Outside`, the disk, the clock, and who is told of each step (`Steps`).
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable
from random import Random
from typing import Final, Protocol, TypeAlias

import attrs

from isr_broker.core.controller_state import Controller, ControllerStep
from isr_broker.core.effects import (
    CONTROLLER,
    AdvanceLogStart,
    AppendLog,
    AssignEpoch,
    DiskOperation,
    Effect,
    Took,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Appended,
    ControllerInput,
    EpochAssigned,
    LogOpened,
    NodeInput,
    Received,
    Retained,
    Tick,
    Truncated,
)
from isr_broker.core.log_view import LogView
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    Error,
    FetchRequest,
    FetchResponse,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Metadata,
    Millis,
    OffsetForLeaderEpochResponse,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.node import Node, NodeStep, Phase
from isr_broker.core.stamps import Stamp, Stamped, bare
from isr_broker.core.topics import random_topic_id
from isr_broker.environment import Address, Steps
from isr_broker.runtime import ClientAnswer, ClientRequest, Runtime
from isr_broker.settings import Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Survival
from isr_broker.storage.meta_properties import Claim, NotOurs, claim, new_id
from isr_broker.storage.metadata_log import DamagedMetadata
from isr_sim.damage import archive_files
from isr_sim.host import Host, MachineDeath

Event: TypeAlias = tuple[Millis, int, Callable[[], object]]
"""When, in which order among those of the same time, and what happens."""

Turn: TypeAlias = Callable[[Runtime, Millis], object]
"""What a process does in one turn, with the time of its clock."""

STRANGE: Final = 1_000_000
"""The incarnations of processes that are not of this cluster begin here."""

APART: Final[BrokerId] = 0
"""The broker that has the controller and no replica, unless the controller is with another broker."""


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

    def note_opened_log(self, broker: BrokerId, tp: TopicPartition, log: LogView, records: bytes) -> None:
        """A log was found on the disk, or made, with these batches."""
        ...

    def note_disk_operation(self, broker: BrokerId, operation: DiskOperation, log: LogView) -> None:
        """A disk operation was reported done to the broker's core; the log as it is since."""
        ...

    def note_retention(self, tp: TopicPartition, topic_id: int, log: LogView) -> None:
        """Some broker has removed what is too old, by itself; the log as it is since, and of which topic."""
        ...

    def check_message(self, host: Host, message: Message) -> None:
        """A process answers another one."""
        ...

    def check_controller(self, host: Host, core: Controller, by_clock: bool) -> None:
        """A controller, or what passes for one, has taken an input: a Tick if it is `by_clock`."""
        ...

    def check_news(self, host: Host, news: Metadata) -> None:
        """A broker, or what passes for one, has taken news of a controller."""
        ...

    def check_metadata_log(self, world: World) -> None:
        """A process with the controller has found its metadata log."""
        ...

    def note_refusal(self, host: Host, why: str) -> None:
        """A process does not start on what is on its disk."""
        ...

    def check_step(self, world: World) -> None:
        """A core took an input."""
        ...


@attrs.frozen
class Reply:
    """What a client is answered: the answer, the records that come with it, and the id of the topic that answered."""

    answer: ClientAnswer
    records: bytes = b""
    topic_id: int = 0


@attrs.frozen(kw_only=True)
class Weather:
    """How the network and the disks behave, in probabilities and milliseconds.

    `disk_ms` is the most that a process is held up when it has used its disk. `tells` is how often the sender of a
    message that found nobody is told so, as by a connection that breaks.
    """

    loss: float = 0.01
    twice: float = 0.01
    slow: float = 0.02
    quick_ms: Millis = 8
    slow_ms: Millis = 1_500
    disk_ms: Millis = 3
    tells: float = 0.5


FAIR = Weather(loss=0.0, twice=0.0, slow=0.0)


@attrs.define
class Process:
    """What one process has outside; what it sends leaves at the end of its turn."""

    world: World
    host: Host
    outbox: list[Callable[[], object]] = attrs.field(factory=list[Callable[[], object]])

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        """A message leaves; who asks may be told that it found nobody."""
        self.outbox.append(lambda: self.world.send(self.host, (source, to, message), tells=True))

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        """An answer leaves, and if it is lost nobody is told."""
        of_broker = isinstance(bare(answer), FetchResponse | OffsetForLeaderEpochResponse)
        source = self.host.broker if of_broker else CONTROLLER
        self.world.watcher.check_message(self.host, bare(answer))
        self.outbox.append(lambda: self.world.send(self.host, (source, to, answer), tells=False))

    def leaves(self, partition: TopicPartition) -> None:
        """Nobody remembers who was asked."""

    def stopped(self, why: str) -> None:
        """The process ends with the turn."""
        self.host.end_reason = why

    def log(self, line: str) -> None:
        """An operator reads what is alarming."""
        if line.startswith("ALARM"):
            self.host.alarms.append(line)


@attrs.define
class Witness:
    """Sees each step of one of a process's cores, and writes its trace, if there is one.

    `pending_operations` are the disk operations whose reports the core awaits, `pending_starts` the logs that were told
    to start later.
    """

    world: World
    host: Host
    trace: Steps | None = None
    pending_operations: dict[TopicPartition, DiskOperation] = attrs.field(factory=dict[TopicPartition, DiskOperation])
    pending_starts: set[TopicPartition] = attrs.field(factory=set[TopicPartition])

    def note_opened_log(self, opened_log: LogOpened, records: bytes, at: Millis) -> None:
        """A log was found when the process started."""
        self._note_log(opened_log, records)
        if self.trace is not None:
            self.trace.note_opened_log(opened_log, records, at)

    def node_stepped(self, before: Node, node_input: NodeInput, step: NodeStep, at: Millis) -> None:
        """A broker's core has taken an input."""
        if self.trace is not None:
            self.trace.node_stepped(before, node_input, step, at)
        broker = self.host.broker
        self.world.note(f"{broker} {node_input!r}")
        match node_input:
            case Appended(partition=tp) | Truncated(partition=tp) | EpochAssigned(partition=tp):
                operation = self.pending_operations.pop(tp)
                if self.host.impostor is None:
                    self.world.watcher.note_disk_operation(broker, operation, node_input.log)
            case LogOpened(partition=tp) if before.phase is not Phase.LOADING:
                self._note_log(node_input, self.host.contents(tp))
            case Retained(partition=tp) if tp in self.pending_starts:
                self.pending_starts.discard(tp)
            case Retained(partition=tp) if self.host.impostor is None:
                self.world.watcher.note_retention(tp, before.topic_ids[tp], node_input.log)
            case Received(message=Metadata() as news):
                self.world.watcher.check_news(self.host, news)
            case _:
                pass
        for effect in step.effects:
            if isinstance(effect, AppendLog | TruncateLog | AssignEpoch):
                self.pending_operations[effect.partition] = effect
            elif isinstance(effect, AdvanceLogStart):
                self.pending_starts.add(effect.partition)
        self._sees(broker, step.effects)

    def _note_log(self, opened_log: LogOpened, records: bytes) -> None:
        """What another machine has in the place of this one is no log of this one."""
        if self.host.impostor is None:
            self.world.watcher.note_opened_log(self.host.broker, opened_log.partition, opened_log.log, records)

    def controller_stepped(self, controller_input: ControllerInput, step: ControllerStep, at: Millis) -> None:
        """The controller has taken an input."""
        if self.trace is not None:
            self.trace.controller_stepped(controller_input, step, at)
        if self.host.impostor is None:
            self.world.controller = step.core
        self.world.watcher.check_controller(self.host, step.core, isinstance(controller_input, Tick))
        self.world.note(f"controller {controller_input!r}")
        self._sees(CONTROLLER, step.effects)

    def _sees(self, who: BrokerId, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, Took):
                self.world.actions[effect.action] = self.world.actions.get(effect.action, 0) + 1
                self.world.note(f"{who} took {effect.action} {effect.partition} {effect.replica}")
        self.world.steps += 1
        self.world.watcher.check_step(self.world)

    def stamped(self, message: Message) -> Message | Stamped:
        """The message with its stamp, if there is a trace."""
        return message if self.trace is None else self.trace.stamped(message)

    def hears(self, stamp: Stamp) -> None:
        """The trace hears it."""
        if self.trace is not None:
            self.trace.hears(stamp)


_WITH_TOPIC: Final = (FetchRequest, FetchResponse, AlterPartitionRequest, AlterPartitionResponse)
"""Messages that say on the wire which topic they mean by its id (Fetch from version 13, AlterPartition from 2)."""


def _topic_id(host: Host, who: BrokerId, message: Message) -> int | None:
    """The id of the topic that a process knows by the name in a message: one of another topic is refused.

    `wire.fetcher` and `wire.controller_channels` write the ids, `wire.fetch_requests` and `wire.broker_requests` look
    for them.
    """
    runtime = host.runtime
    if runtime is None or not isinstance(message, _WITH_TOPIC):
        return None
    if who == CONTROLLER:
        known = None if runtime.controller is None else runtime.controller.partitions.get(message.partition)
        return 0 if known is None else known.topic_id
    learned = runtime.node.partitions.get(message.partition)
    return 0 if learned is None else learned.topic_id


@attrs.define
class World:
    """Everything there is in one run.

    `hosts` are the machines with replicas; the controller is with one of them, or on a machine of its own (`apart`).
    `controller` is its core as it was after its last step. `cluster` is the cluster's id; without one data directories
    are nobody's, as in runs of the first version. `ids` is the chance of topic ids, for itself, so that other things go
    as they would with other ids. `end_watcher` is told of each process that ends by itself.
    """

    settings: Settings
    random: Random
    hosts: dict[BrokerId, Host]
    watcher: Watcher
    weather: Weather = attrs.field(factory=Weather)
    apart: bool = True
    cluster: str = ""
    end_watcher: Callable[[Host, str], object] | None = None
    now: Millis = 0
    queue: list[Event] = attrs.field(factory=list[Event])
    event_count: int = 0
    steps: int = 0
    cut: set[tuple[BrokerId, BrokerId]] = attrs.field(factory=set[tuple[BrokerId, BrokerId]])
    lag: dict[tuple[BrokerId, BrokerId], Millis] = attrs.field(factory=dict[tuple[BrokerId, BrokerId], Millis])
    actions: dict[str, int] = attrs.field(factory=dict[str, int])
    lines: list[str] = attrs.field(factory=list[str])
    keeps_lines: bool = False
    digest: Digest = attrs.field(factory=hashlib.sha256)
    ids: Random = attrs.field(factory=lambda: Random(0))
    directory_ids: Random = attrs.field(factory=lambda: Random(1))
    seat: Host = attrs.field(init=False)
    controller: Controller = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.seat = Host(APART) if self.apart else self.hosts[min(self.hosts)]
        self.controller = Controller(settings=self.settings)

    @property
    def machines(self) -> list[Host]:
        """All machines, that of the controller first."""
        return [self.seat, *(host for _, host in sorted(self.hosts.items()) if host is not self.seat)]

    # Time

    def after(self, delay: Millis, happens: Callable[[], object]) -> None:
        """Something happens that much later."""
        self.event_count += 1
        heapq.heappush(self.queue, (self.now + delay, self.event_count, happens))

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

    def _carry(self, source: BrokerId, to: BrokerId, arrives: Callable[[], object]) -> bool:
        """Something is under way: it arrives late, twice, or not at all, which is False."""
        if (source, to) in self.cut or self.random.random() < self.weather.loss:
            return False
        for _ in range(2 if self.random.random() < self.weather.twice else 1):
            slow = self.random.random() < self.weather.slow
            delay = self.random.randint(1, self.weather.slow_ms if slow else self.weather.quick_ms)
            self.after(delay + self.lag.get((source, to), 0), arrives)
        return True

    def send(self, sender: Host, parcel: Parcel, tells: bool) -> None:
        """A message leaves; it never arrives at a later process than it was sent to."""
        source, to, message = parcel
        if self.cluster and to not in self.hosts and to not in (CONTROLLER, self.seat.broker):
            return
        target = self.seat if to == CONTROLLER else self.hosts.get(to, self.seat)
        life, of_sender = target.life, sender.life
        cluster = self._cluster_of(sender)
        topic_id = _topic_id(sender, source, bare(message))

        def report_loss() -> None:
            if tells and sender.life == of_sender and self.random.random() < self.weather.tells:
                self.turn(sender, lambda runtime, now: runtime.report_undelivered([parcel], now))

        def of_its_topic() -> bool:
            return _topic_id(target, to, bare(message)) == topic_id

        def of_its_cluster() -> bool:
            # A registration says of which cluster it is, and the controller's core compares.
            compares = not self.settings.insync_design.no_cluster_id_check
            return self._cluster_of(target) == cluster or isinstance(bare(message), RegisterBroker) or not compares

        def takes(runtime: Runtime, now: Millis) -> None:
            # Whoever was held up compares when it reads: the topic may have been made again since the message came.
            if of_its_topic():
                runtime.receive_messages([parcel], now)
            elif tells:
                self.after(1, report_loss)

        def arrives() -> None:
            if target.alive and not of_its_cluster():
                if isinstance(heartbeat := bare(message), Heartbeat):
                    self._refuses(target, heartbeat)
                elif tells:
                    self.after(1, report_loss)
            elif target.alive and target.life == life and of_its_topic():
                self.turn(target, takes)
            elif tells:
                self.after(1, report_loss)

        if not self._carry(source, to, arrives) and tells:
            self.after(self.settings.replica_socket_timeout_ms, report_loss)

    def _refuses(self, target: Host, heartbeat: Heartbeat) -> None:
        """The answer of a controller of another cluster (`wire.broker_requests`)."""
        answer = HeartbeatAnswer(
            broker=heartbeat.broker, broker_epoch=heartbeat.broker_epoch, error=Error.INCONSISTENT_CLUSTER_ID
        )
        host = self.hosts.get(heartbeat.broker, self.seat)
        arrives = [(CONTROLLER, heartbeat.broker, answer)]
        self._carry(
            CONTROLLER,
            heartbeat.broker,
            lambda: self.turn(host, lambda runtime, now: runtime.receive_messages(arrives, now)),
        )

    def ask(
        self, client: BrokerId, to: BrokerId, make: Callable[[int], ClientRequest], then: Callable[[Reply], object]
    ) -> None:
        """A client asks a broker something; `then` takes the reply, if there is one."""
        host = self.hosts[to]
        life = host.life

        def send_reply(answer: ClientAnswer, records: bytes) -> None:
            tp = getattr(answer, "partition", None)
            node = host.node
            topic_id = 0 if node is None or tp is None else node.topic_ids.get(tp, 0)
            self._carry(to, client, lambda: then(Reply(answer, records, topic_id)))

        def arrives() -> None:
            if host.life == life:
                self.turn(host, lambda runtime, now: runtime.ask(make, send_reply, now))

        self._carry(client, to, arrives)

    # Processes

    def turn(self, host: Host, happens: Turn) -> None:
        """One turn of a process, now or when it is no longer held up; what it sends leaves when the turn ends."""
        runtime, life = host.runtime, host.life
        if runtime is None:
            return
        if host.busy_until > self.now:
            self.after(host.busy_until - self.now, lambda: self.turn(host, happens) if host.life == life else None)
            return
        outside, operations_before = runtime.outside, host.disk.operations
        assert isinstance(outside, Process)
        try:
            happens(runtime, host.clock.local(self.now))
        except MachineDeath as died:
            # Of what it had already given to the network some first part has left.
            self._leave(outside, self.random.randint(0, len(outside.outbox)))
            self.stop(host, died.survival)
            return
        self._leave(outside, len(outside.outbox))
        if host.end_reason:
            why = host.end_reason
            self.note(f"{host.broker} ends: {why}")
            self.stop(host, Everything())
            if self.end_watcher is not None:
                self.end_watcher(host, why)
            return
        if host.disk.operations != operations_before:
            host.busy_until = self.now + self.random.randint(0, self.weather.disk_ms)
        self._set_alarm(host, runtime)

    def _leave(self, outside: Process, count: int) -> None:
        sent, outside.outbox = outside.outbox[:count], []
        for leaves in sent:
            leaves()

    def _set_alarm(self, host: Host, runtime: Runtime) -> None:
        at = runtime.deadline()
        host.alarm += 1
        if at is None:
            return
        alarm = host.alarm

        def rings() -> None:
            if host.alarm == alarm:
                self.turn(host, lambda runtime, now: runtime.tick(now))

        self.after(max(0, host.clock.true(at) - self.now), rings)

    def _steps(self, host: Host, node: BrokerId) -> Steps | None:
        """Where the steps of a core are written down, besides; nowhere."""
        return None

    def start(self, host: Host) -> None:
        """A process starts on what is on its disk; it does not, if it cannot read that."""
        assert host.runtime is None
        governs = host is self.seat
        host.life += 1
        host.busy_until, host.end_reason, host.refusal, host.alarms = 0, "", "", []
        self.watcher.starts(host.broker, host.disk)
        address, at = self._address(host), self._address(self.seat)
        settings = host.settings or self.settings
        runtime = host.runtime = Runtime(host.broker, settings, host.disk, address, at, Process(self, host))
        if self.cluster:
            runtime.cluster = self._cluster_of(host)
        runtime.wall = lambda: self.now + host.wall_ahead
        runtime.topic_ids = lambda: random_topic_id(self.ids.getrandbits)
        runtime.trace = Witness(self, host, self._steps(host, host.broker))
        runtime.controller_trace = Witness(self, host, self._steps(host, CONTROLLER)) if governs else None
        self.note(f"{host.broker} starts")
        self.turn(host, lambda runtime, now: self._begins(host, runtime, now, governs))

    def claims(self, disk: MemoryDisk, broker: BrokerId, cluster: str) -> None:
        """Make a disk a broker's. Its id follows the seed: else damage would strike another bit of it each time."""
        claim(disk, Claim(broker, cluster, new_id(self.directory_ids.getrandbits)))

    def _begins(self, host: Host, runtime: Runtime, now: Millis, governs: bool) -> None:
        try:
            if self.cluster:
                self.claims(host.disk, host.broker, self._cluster_of(host))
            runtime.start(host.life if host.impostor is None else host.life + STRANGE, now, governs)
        except (OSError, DamagedMetadata, NotOurs) as error:
            host.refusal = str(error)
            host.end_reason = f"it cannot start: {error}"
            if isinstance(error, DamagedMetadata):
                self.watcher.note_refusal(host, str(error))
            return
        if governs and runtime.controller is not None and host.impostor is None:
            self.controller = runtime.controller
            self.watcher.check_metadata_log(self)

    def _cluster_of(self, host: Host) -> str:
        """The id of the cluster that a machine belongs to; none in runs of the first version."""
        return host.cluster or self.cluster

    def _address(self, host: Host) -> Address:
        return (f"b{host.broker}", 9092)

    def stop(self, host: Host, survival: Survival) -> None:
        """The process is gone; of its disk survives what survives."""
        self.note(f"{host.broker} is gone")
        self._notes_unreported_starts(host)
        host.runtime, host.end_reason = None, ""
        host.life += 1
        host.disk.crash(survival)
        if self.cluster and host.impostor is None:
            archive_files(host.versions, host.disk, host.damages)

    def _notes_unreported_starts(self, host: Host) -> None:
        """A process that dies while it removes old segments has decided where logs start, and told nobody of it."""
        runtime = host.runtime
        if runtime is None or host.impostor is not None or not hasattr(runtime, "node"):
            return
        for tp, replica in runtime.node.replicas.items():
            log, start = runtime.logs.logs.get(tp), runtime.logs.starts.get(tp, 0)
            if log is not None and start > replica.log.start:
                self.watcher.note_retention(tp, runtime.node.topic_ids[tp], log.view.started(start))

    def pause(self, host: Host, duration: Millis) -> None:
        """The process does nothing for a while, and then goes on as if nothing had been."""
        self.note(f"{host.broker} pauses for {duration}")
        host.busy_until = self.now + duration

    def shut_down(self, host: Host) -> None:
        """The process is asked to stop in order."""
        self.turn(host, lambda runtime, now: runtime.shut_down(now))

    def restart_controller(self) -> None:
        """The controller's process crashes and is back at once: what was not durable in its log is gone."""
        self.note("controller restarts")
        if self.seat.alive:
            self.stop(self.seat, Everything())
        self.start(self.seat)
