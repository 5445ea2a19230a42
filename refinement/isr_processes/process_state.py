"""Real processes as one state of the model: what is in their memories and files, and what is between them.

The same abstraction as everywhere (`abstraction`): of cores that come out of other processes, and of logs, checkpoints
and marks that are read from their files. The driver knows what is under way, and what clients were told.
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
from isr_cluster.processes import free_ports
from isr_lang import Instance
from isr_processes.process_control import HOST, Arrived, Machines, Stuck, name, same
from isr_processes.stepped_broker import Inside
from isr_replay import canonical_form
from isr_replay.core_driver import records
from isr_replay.core_system import Cores
from isr_replay.system_state import NOW, TP, Answered, Asked, Broker, Decided, History, Proposed

M = TypeVar("M", bound=Message)
PATIENCE: Final = 60.0
PATIENT: Final = 10_000_000
"""Milliseconds."""
CREATE_TOPICS: Final = 19


class Cannot(Exception):
    """The driver cannot bring the processes to this step: the message says why."""


class Refuses(Exception):
    """The processes do not take this step: the message says what they did instead."""


class Steering:
    """The processes of one run, what is under way between them, and how to have them do something."""

    def __init__(self, instance: Instance) -> None:
        self.n = int(instance.constants["replicas"])
        self.ids = tuple(range(1, self.n + 1))
        self.cores = Cores(instance, self.ids, own_look=False)
        self.root = Path(tempfile.mkdtemp(prefix="insync-steered-"))
        self.machines = Machines(self.root, {}, {})
        self.pool = ThreadPoolExecutor(16)
        self.runs = 0
        self.order: tuple[BrokerId, ...] = self.ids
        """In which the brokers were assigned to the topic."""
        self._forget()

    def _forget(self) -> None:
        self.epochs: dict[BrokerId, list[int]] = {b: [] for b in self.ids}
        self.fetches: dict[BrokerId, tuple[Asked | Answered, Arrived] | None] = dict.fromkeys(self.ids)
        self.alters: dict[BrokerId, tuple[Proposed | Decided, Arrived] | None] = dict.fromkeys(self.ids)
        self.produced: dict[int, tuple[BrokerId, int, Future[Fields]]] = {}
        self.last_fetch: dict[tuple[BrokerId, BrokerId], Arrived] = {}
        """By leader and follower the fetch that the leader took last."""
        self.past = History()

    def close(self) -> None:
        """Nothing is left of it."""
        self.machines.kill_all()
        self.pool.shutdown(wait=True)
        shutil.rmtree(self.root, ignore_errors=True)

    # Messages and clients

    def arrived(self, kind: type[M], at: BrokerId, source: BrokerId) -> tuple[Arrived, M] | None:
        """The last message of a kind that this step has brought from somebody to somewhere."""
        for one in reversed(self.machines.fresh):
            if isinstance(one.message, kind) and (one.at, one.source) == (at, source):
                return one, one.message
        return None

    def taken(self, kind: type[M], at: BrokerId, source: BrokerId) -> M:
        """The same, and it is taken at once; Refuses if there is none."""
        found = self.arrived(kind, at, source)
        if found is None:
            raise Refuses(f"{name(source)} sends {name(at)} no {kind.__name__}")
        self.machines.take(found[0])
        return found[1]

    def expect(self, action: str) -> None:
        """This, and nothing else, was taken since the last time; Refuses if not."""
        took = self.machines.took_since()
        if took != [action]:
            raise Refuses(f"{' and '.join(took) or 'no action'} was taken")

    def client(self, broker: BrokerId, key: int, version: int, fields: Answer) -> tuple[int, Future[Fields]]:
        """A client asks a broker through Kafka's protocol; the number of its request there, and what it will hear."""

        def talk() -> Fields:
            with Admin((HOST, self.machines.ports[broker]), PATIENCE) as admin:
                return admin.ask(key, version, fields)

        number = self.machines.inside(broker).requests + 1
        future = self.pool.submit(talk)
        self.machines.call(broker, "clients", number)
        return number, future

    # A fresh cluster

    def begin(self, first: BrokerId) -> None:
        """Processes with empty disks; everybody has a session, and knows a topic that `first` leads."""
        self.machines.kill_all()
        self._forget()
        shutil.rmtree(self.root / str(self.runs), ignore_errors=True)
        self.runs += 1
        root = self.root / str(self.runs)
        who = (CONTROLLER, *self.ids)
        settings = {b: self.real(self.cores.of_brokers) for b in self.ids}
        settings[CONTROLLER] = self.real(self.cores.settings)
        self.machines = Machines(root, dict(zip(who, free_ports(len(who)), strict=True)), settings)
        self.machines.start(CONTROLLER)
        for broker in self.ids:
            self.machines.start(broker)
            self.registered(broker)
            self.taken(FetchMetadata, CONTROLLER, broker)
            self.taken(Metadata, broker, CONTROLLER)
            self.taken(Heartbeat, CONTROLLER, broker)
            self.taken(HeartbeatAnswer, broker, CONTROLLER)
        order = [first, *(b for b in self.ids if b != first)]
        self._create(first, order)
        self.order = tuple(order)
        self.machines.took_since()
        for broker in order:
            self.machines.fresh.clear()
            self.learn(broker)
            self.fetches[broker] = self.fetch_sent(broker)
        self.machines.took_since()
        self.machines.fresh.clear()

    def real(self, settings: Settings) -> Settings:
        """With traces, for then a follower is told every answer; and no connection is given up in real time."""
        return attrs.evolve(
            settings,
            insync_trace_dir=str(self.root / str(self.runs) / "traces"),
            replica_socket_timeout_ms=PATIENT,
            controller_socket_timeout_ms=PATIENT,
        )

    def rule(self, made: Callable[..., object], *given: object, ticks: bool = True) -> None:
        """The controller ticks in another order of assignment, which then is what it was."""
        self.machines.rule(made, *given, ticks=ticks, restored=partial(assigned, order=self.order) if ticks else same)

    def registered(self, broker: BrokerId) -> None:
        """A process that has started is registered."""
        self.taken(RegisterBroker, CONTROLLER, broker)
        self.taken(BrokerRegistered, broker, CONTROLLER)
        self.epochs[broker].append(self.machines.inside(broker).node.broker_epoch)

    def _create(self, at: BrokerId, order: list[BrokerId]) -> None:
        on = [{"partition_index": 0, "broker_ids": order}]
        topic = {"name": TP.topic, "num_partitions": -1, "replication_factor": -1, "configs": [], "assignments": on}
        _, future = self.client(at, CREATE_TOPICS, 4, {"topics": [topic], "timeout": 60_000})
        self.taken(CreateTopic, CONTROLLER, at)
        self.taken(AdminAnswer, at, CONTROLLER)
        code = future.result(PATIENCE).all("topics")[0].number("error_code")
        if code:
            raise Stuck(f"the topic is not created, error {code}")

    def learn(self, broker: BrokerId) -> None:
        """A broker asks for newer metadata, and gets them; Refuses if there are none."""
        self.machines.tick(broker, polling)
        self.taken(FetchMetadata, CONTROLLER, broker)
        self.taken(Metadata, broker, CONTROLLER)

    # What a step has sent

    def fetch_sent(self, follower: BrokerId) -> tuple[Asked, Arrived] | None:
        """The fetch that this step has sent."""
        for one in reversed(self.machines.fresh):
            if isinstance(one.message, FetchRequest) and one.source == follower:
                return Asked(one.at, one.message), one
        return None

    def proposal_sent(self, leader: BrokerId, isr: frozenset[BrokerId]) -> tuple[Proposed, Arrived]:
        """The AlterPartition that this step has sent, of a leader that took this to be the ISR."""
        found = self.arrived(AlterPartitionRequest, CONTROLLER, leader)
        if found is None:
            raise Refuses("it sends no AlterPartition")
        arrived, request = found
        numbered = tuple((m, self.number(m, seen)) for m, seen in request.isr)
        joins = min(request.members - isr, default=None)
        return Proposed(canonical_form.proposal(attrs.evolve(request, isr=numbered), isr), joins), arrived

    # The state

    def number(self, broker: BrokerId, epoch: int) -> int:
        """A broker epoch as the model counts them."""
        return self.epochs[broker].index(epoch) if epoch >= 0 else -1

    def disk(self, broker: BrokerId) -> RealDisk:
        """The data directory of a broker."""
        return RealDisk(self.machines.folder(broker))

    def segment(self, broker: BrokerId) -> Path:
        """The file with the broker's log."""
        return self.machines.folder(broker) / str(TP) / file_name(0)

    def log(self, broker: BrokerId) -> tuple[bytes, ...]:
        """The batches in that file."""
        path = self.segment(broker)
        data = path.read_bytes() if path.exists() else b""
        return tuple(data[b.position : b.position + b.size] for b in batches(data, check=True))

    def broker(self, me: BrokerId, inside: Inside | None) -> Broker:
        """A broker as the abstraction takes it; Stuck if its core believes another log to be on its disk."""
        log, disk = self.log(me), self.disk(me)
        checkpoint = read_offsets(disk, WATERMARKS).get(TP, 0)
        known = len(self.epochs[me]) - 1
        if inside is None:
            return Broker(me, None, log, checkpoint, known, known if disk.exists(CLEAN_SHUTDOWN) else -1)
        replica = inside.node.held.get(TP)
        if replica is not None and replica.log.end != len(log):
            raise Stuck(f"{name(me)} believes that its log ends at {replica.log.end}, and its file at {len(log)}")
        return Broker(me, self._numbered(inside.node), log, checkpoint, known)

    def _numbered(self, node: Node) -> Node:
        replica = node.held.get(TP)
        if replica is None or not isinstance(replica.role, Leading):
            return node
        seen = replica.role.followers.items()
        followers = Map({m: attrs.evolve(f, broker_epoch=self.number(m, f.broker_epoch)) for m, f in seen})
        return canonical_form.with_role(node, attrs.evolve(replica.role, followers=followers))

    def bits(self) -> int:
        """The state of the model in which everything is together."""
        machines, view = self.machines, self.cores.view
        inside = {b: machines.inside(b) if b in machines.running else None for b in self.ids}
        core = machines.inside(CONTROLLER).controller
        assert core is not None
        total = view.controller(core)
        for me in self.ids:
            broker = self.broker(me, inside[me])
            self._committed(broker)
            fetch, alter = self.fetches[me], self.alters[me]
            total += view.broker(broker) + view.fetch(me, None if fetch is None else fetch[0])
            total += view.alter(me, None if alter is None else alter[0])
        self._answered(inside)
        return total + view.history(self.past)

    def _committed(self, broker: Broker) -> None:
        replica, past = broker.replica, self.past
        if replica is not None and isinstance(replica.role, Leading):
            mark = replica.high_watermark
            if mark > len(past.committed):
                self.past = attrs.evolve(past, committed=records(broker)[:mark])

    def _answered(self, inside: dict[BrokerId, Inside | None]) -> None:
        """Which producers were told that their records are there."""
        for record, (broker, number, future) in list(self.produced.items()):
            there = inside[broker]
            if there is None:
                del self.produced[record]
            elif number not in there.waiting:
                del self.produced[record]
                said = future.result(PATIENCE).all("responses")[0].all("partition_responses")[0]
                if said.number("error_code") == 0:
                    self.past = attrs.evolve(self.past, acked=self.past.acked | 1 << record)


# What makes a core's memory old: functions that another process can find.


def assigned(core: Controller, order: tuple[BrokerId, ...]) -> Controller:
    """The brokers are assigned in this order."""
    partition = attrs.evolve(core.partitions[TP], replicas=order)
    return attrs.evolve(core, partitions=core.partitions.set(TP, partition))


def polling(core: Node) -> Node:
    """It is time to ask for newer metadata."""
    return attrs.evolve(core, next_poll=NOW)


def lagging(core: Node, members: frozenset[BrokerId]) -> Node:
    """It is time to look for members that lag, and these do, and no others."""
    role = core.held[TP].role
    assert isinstance(role, Leading)
    followers = role.followers
    for broker, known in followers.items():
        followers = followers.set(broker, attrs.evolve(known, caught_up_at=NOW))
    return canonical_form.aged_followers(
        canonical_form.with_role(core, attrs.evolve(role, followers=followers)), members
    )


def put_back(core: Node, times: Map[BrokerId, Millis | None]) -> Node:
    """When each follower last had everything is as it was."""
    role = core.held[TP].role
    if not isinstance(role, Leading):
        return core
    followers = Map({b: attrs.evolve(known, caught_up_at=times[b]) for b, known in role.followers.items()})
    return canonical_form.with_role(core, attrs.evolve(role, followers=followers))


def joining(core: Node, members: frozenset[BrokerId]) -> Node:
    """Of those who may join there are only these."""
    role = core.held[TP].role
    if not isinstance(role, Leading):
        return core
    return canonical_form.with_role(
        core, attrs.evolve(role, joining=members - role.pending.isr if role.pending else members)
    )
