"""A run of acknowledged writes while brokers are killed, paused, stopped and started: what was lost, doubled, moved.

Three processes with real files. The writer sends numbered values with acks=all and idempotence; the faults strike the
leader, its followers and the controller. At the end everything runs, an ordinary client reads the partition from the
beginning, the cluster stops in order, and the three logs on disk are compared byte by byte.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path
from typing import Final

import attrs
from tests.support.clusters import three_processes
from tests.support.writers import WRITERS, read

from isr_broker.core.messages import TopicPartition
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.log import Log
from isr_broker.wire import protocol
from isr_cluster.admin import Admin, PartitionSeen, RequestRefused
from isr_cluster.changes import changes
from isr_cluster.ports import HOST
from isr_cluster.processes import Processes

TOPIC: Final = "t"
ALL: Final = (
    "kill the leader",
    "pause a follower",
    "kill a follower",
    "pause the leader",
    "stop the leader in order",
    "kill the controller",
)
"""The faults, in the order in which they strike, again and again."""


@attrs.frozen(kw_only=True)
class Verdict:
    """What came of a run. `late` are acknowledged values that stand after later ones, `unacked` values that are there
    although nobody was told; `gap` the longest time without an acknowledgement, in seconds, if the client says when."""

    client: str
    attempted: int
    acked: int
    errors: tuple[str, ...]
    lost: tuple[bytes, ...]
    doubled: tuple[bytes, ...]
    late: tuple[bytes, ...]
    unacked: int
    same_logs: bool
    faults: dict[str, int]
    epochs: int
    leaders: int
    isrs: int
    gap: float | None
    seconds: float

    @property
    def good(self) -> bool:
        """Every acknowledged write is there, once, in order, on all replicas alike."""
        return not (self.lost or self.doubled or self.late) and self.same_logs

    def __str__(self) -> str:
        faults = ", ".join(f"{name} x{count}" for name, count in self.faults.items())
        gap = "" if self.gap is None else f"longest gap {self.gap:.1f} s, "
        return (
            f"{self.client}: attempted {self.attempted:,}, acknowledged {self.acked:,}, given up {len(self.errors)}, "
            f"lost {len(self.lost)}, doubled {len(self.doubled)}, out of order {len(self.late)}, "
            f"there without acknowledgement {self.unacked}; logs {'equal' if self.same_logs else 'DIFFERENT'}; "
            f"{self.leaders} changes of the leader, {self.epochs} epochs, {self.isrs} changes of the ISR; "
            f"{gap}{self.seconds:.0f} s in all; {faults}"
        )


@attrs.define
class Faults:
    """The faults, one after the other, in a thread of their own; `happened` counts them."""

    processes: Processes
    kinds: tuple[str, ...]
    calm: float
    """Seconds between a recovery and the next fault."""
    happened: dict[str, int] = attrs.field(factory=dict[str, int])
    over: threading.Event = attrs.field(factory=threading.Event)
    failure: list[BaseException] = attrs.field(factory=list[BaseException])
    thread: threading.Thread | None = None

    def begin(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """Let the present fault heal, and no other begin."""
        self.over.set()
        assert self.thread is not None
        self.thread.join(120)
        if self.failure:
            raise self.failure[0]

    def _run(self) -> None:
        try:
            for kind in cycle(self.kinds):
                if self.over.wait(self.calm):
                    return
                self._strike(kind)
                self.happened[kind] = self.happened.get(kind, 0) + 1
                healed(self.processes)
        except BaseException as error:
            self.failure.append(error)

    def _strike(self, kind: str) -> None:
        seen = partition(self.processes)
        assert seen is not None
        assert seen.leader is not None
        follower = next(r for r in seen.replicas if r != seen.leader and r != 1)
        match kind:
            case "pause a follower" | "pause the leader":
                victim = seen.leader if kind == "pause the leader" else follower
                self.processes.pause(victim)
                time.sleep(2.0)
                self.processes.resume(victim)
            case "stop the leader in order":
                assert self.processes.stop(seen.leader) == 0, "an orderly stop"
                self.processes.start(seen.leader)
            case _:
                victim = {"kill the leader": seen.leader, "kill a follower": follower}.get(kind, 1)
                self.processes.kill(victim)
                time.sleep(1.0)
                self.processes.start(victim)


def partition(processes: Processes) -> PartitionSeen | None:
    """The partition as some broker knows it, None if none answers or it is not there."""
    for broker in processes.running:
        try:
            with Admin((HOST, processes.ports[broker]), 2.0) as admin:
                return next((p for p in admin.partitions() if p.topic == TOPIC), None)
        except RequestRefused:
            continue
    return None


def waited(until: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Until it is so; AssertionError if it never is."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, f"not in {seconds:.0f} s: {what}"
        time.sleep(0.05)


def healed(processes: Processes) -> None:
    """Every broker runs, and every replica is in sync."""

    def well() -> bool:
        seen = partition(processes)
        return seen is not None and seen.leader is not None and len(seen.isr) == 3

    waited(well, "every replica is in sync again")


def log_end(processes: Processes) -> int:
    """Where the partition ends for consumers."""
    seen = partition(processes)
    assert seen is not None
    assert seen.leader is not None
    with Admin((HOST, processes.ports[seen.leader])) as admin:
        asked = {"partition_index": 0, "timestamp": -1}
        topics = [{"name": TOPIC, "partitions": [asked]}]
        said = admin.ask(protocol.LIST_OFFSETS, 4, {"replica_id": -1, "isolation_level": 0, "topics": topics})
    return said.all("topics")[0].all("partitions")[0].number("offset")


def ready(processes: Processes) -> None:
    """The topic is made, and every replica of it in sync."""

    def made() -> bool:
        try:
            with Admin((HOST, processes.ports[1])) as admin:
                admin.create(TOPIC, 1, 3, {"min.insync.replicas": "2"})
        except RequestRefused:
            return False
        return True

    waited(made, "the topic is created")
    healed(processes)


def endure(root: Path, client: str, writes: int, per_second: float, kinds: tuple[str, ...] = ALL) -> Verdict:
    """At least so many writes with that client at that pace, until each fault has struck; all files go to `root`."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "brokers.log").open("w") as lines:
        processes = three_processes(root, tell=lambda line: print(line, file=lines, flush=True))
        try:
            processes.start_all()
            ready(processes)
            return _run(processes, root, client, writes, per_second, kinds)
        finally:
            processes.kill_all()


def _run(
    processes: Processes, root: Path, client: str, writes: int, per_second: float, kinds: tuple[str, ...]
) -> Verdict:
    writer, faults, began = WRITERS[client](processes.bootstrap, TOPIC), Faults(processes, kinds, 0.8), time.monotonic()
    faults.begin()
    sent, acked_at, known = 0, [began], 0
    while sent < writes or (len(faults.happened) < len(set(kinds)) and not faults.failure):
        writer.send(b"%06d" % sent)
        sent += 1
        time.sleep(max(0.0, began + sent / per_second - time.monotonic()))
        if len(writer.acked) != known:
            known = len(writer.acked)
            acked_at.append(time.monotonic())
    faults.end()
    writer.finish()
    seconds = time.monotonic() - began
    healed(processes)
    found = read(client, processes.bootstrap, TOPIC, log_end(processes))
    codes = processes.stop_all()
    assert set(codes.values()) == {0}, f"orderly stops: {codes}"
    counted = changes(root / "1", TopicPartition(TOPIC, 0))
    lost, doubled, late = judged(writer.acked, found)
    return Verdict(
        client=client,
        attempted=sent,
        acked=len(writer.acked),
        errors=tuple(writer.errors),
        lost=lost,
        doubled=doubled,
        late=late,
        unacked=len(set(found) - set(writer.acked)),
        same_logs=_same_logs(root),
        faults=faults.happened,
        epochs=counted.epochs,
        leaders=counted.leaders,
        isrs=counted.isrs,
        gap=max((b - a for a, b in pairwise(acked_at)), default=None),
        seconds=seconds,
    )


def judged(acked: list[bytes], found: list[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]:
    """What of the acknowledged is lost; what stands twice; what stands after something that was sent later."""
    there, told = set(found), set(acked)
    seen: set[bytes] = set()
    doubled: list[bytes] = []
    late: list[bytes] = []
    largest = b""
    for value in found:
        if value in seen:
            doubled.append(value)
        elif value < largest and value in told:
            late.append(value)
        seen.add(value)
        largest = max(largest, value)
    return tuple(v for v in acked if v not in there), tuple(doubled), tuple(late)


def _same_logs(root: Path) -> bool:
    """Byte for byte, as they are on disk after the orderly end."""
    logs = {Log.open(RealDisk(root / str(broker)), f"{TOPIC}-0", Settings()).contents() for broker in (1, 2, 3)}
    return len(logs) == 1
