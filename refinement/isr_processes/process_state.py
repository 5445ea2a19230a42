"""Real broker processes as one state of the model: their memories, their files, and the messages between them.

The abstraction function is that of the replay (`isr_replay.abstraction`). Cores are copied out of the processes; logs,
checkpoints and the marks of clean shutdowns are read from their files. The driver itself keeps the messages in flight
and what clients were answered.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import attrs
from immutables import Map

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    BrokerId,
    BrokerRegistered,
    CreateTopic,
    FetchMetadata,
    FetchRequest,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Metadata,
    Millis,
    RegisterBroker,
)
from isr_broker.core.node import Node
from isr_broker.core.record_batch import batches
from isr_broker.core.replica_state import Leading
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import CLEAN_SHUTDOWN, WATERMARKS, read_offsets
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.segment import file_name
from isr_broker.wire.protocol import Answer, Fields
from isr_cluster.admin import Admin
from isr_cluster.ports import HOST, free_ports
from isr_lang import Instance
from isr_processes.process_control import BrokerProcesses, ProcessStuck, WaitingMessage, name, unchanged
from isr_processes.stepped_broker import ProcessMemory
from isr_replay import canonical_form
from isr_replay.core_driver import records
from isr_replay.core_system import Cores, check_cores
from isr_replay.system_state import (
    NOW,
    TP,
    AlterAnswered,
    AlterRequested,
    Broker,
    FetchAnswered,
    FetchRequested,
    History,
)

M = TypeVar("M", bound=Message)
PATIENCE: Final = 60.0
NO_TIMEOUT_MS: Final = 10_000_000
"""A timeout of connections that no run is long enough to reach."""
CREATE_TOPICS: Final = 19


class CannotDrive(Exception):
    """The driver cannot bring the processes to this step; the message says why. This is no difference."""


class StepRefused(Exception):
    """The processes do not take this step; the message says what they did instead. This is a difference."""


class ProcessSystem:
    """The processes of one run, the messages in flight between them, and the history of the model's clients."""

    def __init__(self, instance: Instance) -> None:
        check_cores(instance, processes=True)
        self.n = int(instance.constants["replicas"])
        self.ids = tuple(range(1, self.n + 1))
        self.cores = Cores(instance, self.ids, own_look=False)
        self.root = Path(tempfile.mkdtemp(prefix="insync-processes-"))
        self.processes = BrokerProcesses(self.root, {}, {})
        self.pool = ThreadPoolExecutor(16)
        self.runs = 0
        self.order: tuple[BrokerId, ...] = self.ids
        """The order of the replicas in the assignment of the partition."""
        self._reset_run()

    def _reset_run(self) -> None:
        self.epochs: dict[BrokerId, list[int]] = {b: [] for b in self.ids}
        self.fetches: dict[BrokerId, tuple[FetchRequested | FetchAnswered, WaitingMessage] | None] = dict.fromkeys(
            self.ids
        )
        self.alters: dict[BrokerId, tuple[AlterRequested | AlterAnswered, WaitingMessage] | None] = dict.fromkeys(
            self.ids
        )
        self.produced: dict[int, tuple[BrokerId, int, Future[Fields]]] = {}
        self.last_fetch: dict[tuple[BrokerId, BrokerId], WaitingMessage] = {}
        """The last fetch that was delivered, by leader and follower."""
        self.history = History()

    def close(self) -> None:
        """Kill all processes and delete their data."""
        self.processes.kill_all()
        self.pool.shutdown(wait=True)
        shutil.rmtree(self.root, ignore_errors=True)

    # Messages and clients

    def sent_message(self, kind: type[M], at: BrokerId, source: BrokerId) -> tuple[WaitingMessage, M] | None:
        """The last message of a kind that this step has sent from `source` to `at`."""
        for one in reversed(self.processes.new_messages):
            if isinstance(one.message, kind) and (one.at, one.source) == (at, source):
                return one, one.message
        return None

    def deliver(self, kind: type[M], at: BrokerId, source: BrokerId) -> M:
        """Deliver that message at once; StepRefused if this step sent none."""
        found = self.sent_message(kind, at, source)
        if found is None:
            raise StepRefused(f"{name(source)} sends {name(at)} no {kind.__name__}")
        self.processes.deliver(found[0])
        return found[1]

    def expect_action(self, action: str) -> None:
        """StepRefused unless the cores have taken exactly this action since the last call."""
        took = self.processes.pop_actions()
        if took != [action]:
            raise StepRefused(f"{' and '.join(took) or 'no action'} was taken")

    def ask_as_client(self, broker: BrokerId, key: int, version: int, fields: Answer) -> tuple[int, Future[Fields]]:
        """Send a request of Kafka's protocol as a client: its number at the broker, and the answer to come."""

        def talk() -> Fields:
            with Admin((HOST, self.processes.ports[broker]), PATIENCE) as admin:
                return admin.ask(key, version, fields)

        model_epoch = self.processes.memory(broker).requests + 1
        future = self.pool.submit(talk)
        self.processes.call(broker, "clients", model_epoch)
        return model_epoch, future

    # A fresh cluster

    def start_cluster(self, first: BrokerId) -> None:
        """Start a cluster with empty disks: all brokers have a session, and know a topic whose leader is `first`."""
        self.processes.kill_all()
        self._reset_run()
        shutil.rmtree(self.root / str(self.runs), ignore_errors=True)
        self.runs += 1
        root = self.root / str(self.runs)
        who = (CONTROLLER, *self.ids)
        settings = {b: self.settings_of(self.cores.of_brokers) for b in self.ids}
        settings[CONTROLLER] = self.settings_of(self.cores.settings)
        self.processes = BrokerProcesses(root, dict(zip(who, free_ports(len(who)), strict=True)), settings)
        self.processes.start(CONTROLLER)
        for broker in self.ids:
            self.processes.start(broker)
            self.register(broker)
            self.deliver(FetchMetadata, CONTROLLER, broker)
            self.deliver(Metadata, broker, CONTROLLER)
            self.deliver(Heartbeat, CONTROLLER, broker)
            self.deliver(HeartbeatAnswer, broker, CONTROLLER)
        order = [first, *(b for b in self.ids if b != first)]
        self._create(first, order)
        self.order = tuple(order)
        self.processes.pop_actions()
        for broker in order:
            self.processes.new_messages.clear()
            self.fetch_metadata(broker)
            self.fetches[broker] = self.sent_fetch(broker)
        self.processes.pop_actions()
        self.processes.new_messages.clear()

    def settings_of(self, settings: Settings) -> Settings:
        """The settings of a process. It writes a trace, which a test validates, and its connections never time out.

        With traces on, every answer to a fetch has a stamp, so that the follower's core is told of each one.
        """
        return attrs.evolve(
            settings,
            insync_trace_dir=str(self.root / str(self.runs) / "traces"),
            replica_socket_timeout_ms=NO_TIMEOUT_MS,
            controller_socket_timeout_ms=NO_TIMEOUT_MS,
        )

    def tick_controller(self, prepare: Callable[..., object], *arguments: object, ticks: bool = True) -> None:
        """Prepare the controller's core (with another order of assignment, say), tick it, and restore the order."""
        self.processes.tick_controller(
            prepare, *arguments, ticks=ticks, restore=partial(with_assignment, order=self.order) if ticks else unchanged
        )

    def register(self, broker: BrokerId) -> None:
        """Register a process that has started with the controller, and note its broker epoch."""
        self.deliver(RegisterBroker, CONTROLLER, broker)
        self.deliver(BrokerRegistered, broker, CONTROLLER)
        self.epochs[broker].append(self.processes.memory(broker).node.broker_epoch)

    def _create(self, at: BrokerId, order: list[BrokerId]) -> None:
        on = [{"partition_index": 0, "broker_ids": order}]
        topic = {"name": TP.topic, "num_partitions": -1, "replication_factor": -1, "configs": [], "assignments": on}
        _, future = self.ask_as_client(at, CREATE_TOPICS, 4, {"topics": [topic], "timeout": 60_000})
        self.deliver(CreateTopic, CONTROLLER, at)
        self.deliver(AdminAnswer, at, CONTROLLER)
        code = future.result(PATIENCE).all("topics")[0].number("error_code")
        if code:
            raise ProcessStuck(f"the topic is not created, error {code}")

    def fetch_metadata(self, broker: BrokerId) -> None:
        """Let a broker ask for metadata and deliver the answer; StepRefused if it does not ask or is not answered."""
        self.processes.tick(broker, due_to_poll)
        self.deliver(FetchMetadata, CONTROLLER, broker)
        self.deliver(Metadata, broker, CONTROLLER)

    # Messages that a step has sent

    def sent_fetch(self, follower: BrokerId) -> tuple[FetchRequested, WaitingMessage] | None:
        """The fetch that this step has sent, None if it sent none."""
        for one in reversed(self.processes.new_messages):
            if isinstance(one.message, FetchRequest) and one.source == follower:
                return FetchRequested(one.at, one.message), one
        return None

    def sent_proposal(self, leader: BrokerId, isr: frozenset[BrokerId]) -> tuple[AlterRequested, WaitingMessage]:
        """The AlterPartition that this step has sent, from a leader whose committed ISR is `isr`."""
        found = self.sent_message(AlterPartitionRequest, CONTROLLER, leader)
        if found is None:
            raise StepRefused("it sends no AlterPartition")
        arrived, request = found
        numbered = tuple((m, self.model_epoch(m, seen)) for m, seen in request.isr)
        joins = min(request.members - isr, default=None)
        return AlterRequested(canonical_form.canonical_alter(attrs.evolve(request, isr=numbered), isr), joins), arrived

    # The state

    def model_epoch(self, broker: BrokerId, epoch: int) -> int:
        """A broker epoch as the model numbers it: how often the broker had registered before."""
        return self.epochs[broker].index(epoch) if epoch >= 0 else -1

    def disk(self, broker: BrokerId) -> RealDisk:
        """The data directory of a broker."""
        return RealDisk(self.processes.folder(broker))

    def segment(self, broker: BrokerId) -> Path:
        """The file of the broker's log."""
        return self.processes.folder(broker) / str(TP) / file_name(0)

    def log(self, broker: BrokerId) -> tuple[bytes, ...]:
        """The batches in that file."""
        path = self.segment(broker)
        data = path.read_bytes() if path.exists() else b""
        return tuple(data[b.position : b.position + b.size] for b in batches(data, check=True))

    def broker(self, me: BrokerId, memory: ProcessMemory | None) -> Broker:
        """A broker as the abstraction function takes it; ProcessStuck if core and file disagree about the log."""
        log, disk = self.log(me), self.disk(me)
        checkpoint = read_offsets(disk, WATERMARKS).get(TP, 0)
        incarnation = len(self.epochs[me]) - 1
        if memory is None:
            return Broker(me, None, log, checkpoint, incarnation, incarnation if disk.exists(CLEAN_SHUTDOWN) else -1)
        replica = memory.node.replicas.get(TP)
        if replica is not None and replica.log.end != len(log):
            raise ProcessStuck(
                f"{name(me)} believes that its log ends at {replica.log.end}, and its file at {len(log)}"
            )
        return Broker(me, self._with_model_epochs(memory.node), log, checkpoint, incarnation)

    def _with_model_epochs(self, node: Node) -> Node:
        replica = node.replicas.get(TP)
        if replica is None or not isinstance(replica.role, Leading):
            return node
        seen = replica.role.followers.items()
        followers = Map({m: attrs.evolve(f, broker_epoch=self.model_epoch(m, f.broker_epoch)) for m, f in seen})
        return canonical_form.with_role(node, attrs.evolve(replica.role, followers=followers))

    def bits(self) -> int:
        """The state of the model that processes, files, messages and history stand for, packed."""
        processes, view = self.processes, self.cores.view
        memory = {b: processes.memory(b) if b in processes.running else None for b in self.ids}
        core = processes.memory(CONTROLLER).controller
        assert core is not None
        total = view.controller(core)
        for me in self.ids:
            broker = self.broker(me, memory[me])
            self._note_committed(broker)
            fetch, alter = self.fetches[me], self.alters[me]
            total += view.broker(broker) + view.fetch(me, None if fetch is None else fetch[0])
            total += view.alter(me, None if alter is None else alter[0])
        self._note_acknowledged(memory)
        return total + view.history(self.history)

    def _note_committed(self, broker: Broker) -> None:
        replica, history = broker.replica, self.history
        if replica is not None and isinstance(replica.role, Leading):
            mark = replica.high_watermark
            if mark > len(history.committed):
                self.history = attrs.evolve(history, committed=records(broker)[:mark])

    def _note_acknowledged(self, memory: dict[BrokerId, ProcessMemory | None]) -> None:
        """Note which records were acknowledged to their producers."""
        for record, (broker, model_epoch, future) in list(self.produced.items()):
            there = memory[broker]
            if there is None:
                del self.produced[record]
            elif model_epoch not in there.waiting:
                del self.produced[record]
                said = future.result(PATIENCE).all("responses")[0].all("partition_responses")[0]
                if said.number("error_code") == 0:
                    self.history = attrs.evolve(self.history, acked=self.history.acked | 1 << record)


# Changes to a core before or after it ticks: functions that another process can import by name.


def with_assignment(core: Controller, order: tuple[BrokerId, ...]) -> Controller:
    """The controller's core with this order of the replicas in the assignment."""
    partition = attrs.evolve(core.partitions[TP], replicas=order)
    return attrs.evolve(core, partitions=core.partitions.set(TP, partition))


def due_to_poll(core: Node) -> Node:
    """A broker's core that asks for metadata at its next tick."""
    return attrs.evolve(core, next_poll=NOW)


def with_lagging(core: Node, members: frozenset[BrokerId]) -> Node:
    """A leader's core that checks at its next tick for members that lag, and finds exactly these."""
    role = core.replicas[TP].role
    assert isinstance(role, Leading)
    followers = role.followers
    for broker, known in followers.items():
        followers = followers.set(broker, attrs.evolve(known, caught_up_at=NOW))
    return canonical_form.with_lagging_followers(
        canonical_form.with_role(core, attrs.evolve(role, followers=followers)), members
    )


def with_caught_up_times(core: Node, times: Map[BrokerId, Millis | None]) -> Node:
    """A leader's core with these times at which each follower was last caught up."""
    role = core.replicas[TP].role
    if not isinstance(role, Leading):
        return core
    followers = Map({b: attrs.evolve(known, caught_up_at=times[b]) for b, known in role.followers.items()})
    return canonical_form.with_role(core, attrs.evolve(role, followers=followers))


def with_joining(core: Node, members: frozenset[BrokerId]) -> Node:
    """A leader's core whose candidates for the ISR are only these."""
    role = core.replicas[TP].role
    if not isinstance(role, Leading):
        return core
    return canonical_form.with_role(
        core, attrs.evolve(role, joining=members - role.pending.isr if role.pending else members)
    )
