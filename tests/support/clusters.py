"""Brokers on real sockets for real clients: in one thread of the test's process on disks in memory, or as processes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from isr_broker.core.messages import BrokerId, PartitionMetadata, TopicPartition
from isr_broker.core.replica_state import Leading
from isr_broker.server import Server
from isr_broker.settings import Settings
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import Everything, MemoryDisk
from isr_cluster.ports import free_ports
from isr_cluster.processes import Processes, nothing

T = TypeVar("T")

QUICK = Settings.from_properties(
    {
        "replica.lag.time.max.ms": "1500",
        "replica.fetch.wait.max.ms": "100",
        "replica.fetch.backoff.ms": "50",
        "replica.socket.timeout.ms": "700",
        "controller.socket.timeout.ms": "700",
        "broker.session.timeout.ms": "700",
        "broker.heartbeat.interval.ms": "100",
        "leader.imbalance.check.interval.seconds": "100000",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "group.initial.rebalance.delay.ms": "100",
        "offsets.topic.num.partitions": "3",
    }
)


class Cluster:
    """So many brokers, the first of which has the controller."""

    def __init__(self, brokers: int = 3, settings: Settings = QUICK) -> None:
        self.settings = settings
        self.ports = dict(zip(range(1, brokers + 1), free_ports(brokers), strict=True))
        self.disks: dict[BrokerId, Disk] = {b: MemoryDisk() for b in self.ports}
        self.servers: dict[BrokerId, Server] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Cluster:
        self.thread.start()
        for broker in self.ports:
            self.start(broker)
        self.wait(lambda: len(self.unfenced()) == len(self.ports), "all brokers have a session")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.leaks_nothing()
        for broker in list(self.servers):
            self.kill(broker)
        if error is None:
            self.wait(lambda: not asyncio.all_tasks(self.loop), f"no task is left: {asyncio.all_tasks(self.loop)}", 10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)

    def leaks_nothing(self) -> None:
        """Once clients are gone no broker has a request without an answer, or a task for a connection that is closed.

        A consumer's fetch may be parked for as long as it asked for; what is left after that was forgotten.
        """

        def quiet() -> bool:
            return all(not server.runtime.waiting for server in self.servers.values() if server.runtime.running)

        self.wait(quiet, "no request of a client waits for its answer", 40)
        done = [t for server in self.servers.values() for t in server.connections if t.done()]
        assert not done, "connections that are over are still listed"

    def do(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self, broker: BrokerId) -> None:
        server = Server(
            broker,
            self.settings,
            self.disks[broker],
            ("127.0.0.1", self.ports[broker]),
            ("127.0.0.1", self.ports[1]),
            with_controller=broker == 1,
        )
        self.servers[broker] = server
        self.do(server.start())

    def kill(self, broker: BrokerId) -> None:
        self.do(self.servers.pop(broker).close())
        disk = self.disks[broker]
        if isinstance(disk, MemoryDisk):
            disk.crash(Everything())

    def shut_down(self, broker: BrokerId) -> str:
        server = self.servers.pop(broker)
        self.loop.call_soon_threadsafe(server.shut_down)
        return self.do(server.wait_for_end())

    # What the cluster knows

    def unfenced(self) -> list[BrokerId]:
        controller = self.servers[1].runtime.controller
        assert controller is not None
        node = self.servers[1].runtime.node
        return [b for b, m in controller.brokers.items() if not m.fenced and b in node.brokers]

    def partition(self, topic: str, number: int = 0) -> PartitionMetadata | None:
        controller = self.servers[1].runtime.controller
        assert controller is not None
        return controller.partitions.get(TopicPartition(topic, number))

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        controller = self.servers[1].runtime.controller
        assert controller is not None
        return [p for tp, p in controller.partitions.items() if tp.topic == topic]

    def leads(self, topic: str) -> int:
        """How many partitions have a leader that runs, and knows that it leads."""
        found = 0
        for p in self.partitions(topic):
            server = self.servers.get(p.leader) if p.leader is not None else None
            replica = server.runtime.node.replicas.get(p.partition) if server is not None else None
            found += (
                replica is not None and isinstance(replica.role, Leading) and replica.leader_epoch == p.leader_epoch
            )
        return found

    def leader(self, topic: str, number: int = 0) -> BrokerId:
        partition = self.partition(topic, number)
        assert partition is not None
        assert partition.leader is not None
        return partition.leader

    def wait(self, until: Callable[[], bool], what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, f"not in {seconds} s: {what}"
            time.sleep(0.02)

    def in_sync(self, topic: str, brokers: int = 3) -> None:
        def synced() -> bool:
            partition = self.partition(topic)
            return partition is not None and partition.leader is not None and len(partition.isr) == brokers

        self.wait(synced, f"{brokers} replicas of {topic} are in sync")


def three_processes(root: Path, settings: Settings = QUICK, tell: Callable[[str], None] = nothing) -> Processes:
    """Three brokers, each to be a process of its own, the first of which has the controller."""
    defaults = Settings().properties()
    changed = {n: v for n, v in settings.properties().items() if v != defaults[n]}
    return Processes(root, dict(enumerate(free_ports(3), 1)), changed, tell=tell)
