"""Where a run takes place: the brokers, the network between them, and what can be done to both.

A schedule strikes (`begins`), does what it likes, and heals. Each fault is kept with the evidence that it took effect:
processes that died or stood still, bytes that were dropped or slowed, bytes that a power failure took, changes of the
leader and of the ISR while it lasted. One that has none of the evidence it needs did not bite.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.processes import Mishap, System
from isr_experiment.network import CLIENTS, Network, Node, Way
from isr_experiment.power import Tail, lose_power, record_of
from isr_experiment.recorder import Recorder
from isr_experiment.watch import Watch

HEALS_WITHIN = 90.0


class Cut(Exception):
    """The run is to end here: somebody asked, or its time is over."""


class RunStuck(Exception):
    """What had to come did not; the run cannot go on, and shows nothing."""


@attrs.define(eq=False)
class FaultRecord:
    """One fault: when, of what kind, whom it hit, and what shows that it did."""

    kind: str
    began: int
    needs: tuple[str, ...]
    ways: set[Way] = attrs.field(factory=set[Way])
    evidence: dict[str, int] = attrs.field(factory=dict[str, int])
    hit: list[str] = attrs.field(factory=list[str])
    healed_at: int | None = None
    in_sync_at: int | None = None
    """When every replica was in sync again."""
    before: dict[Way, int] = attrs.field(factory=dict[Way, int])
    delayed_before: dict[Way, int] = attrs.field(factory=dict[Way, int])

    @property
    def bit(self) -> bool:
        """All of the evidence that this kind of fault needs is there."""
        return all(self.evidence.get(name, 0) > 0 for name in self.needs)

    def adds(self, name: str, count: int = 1) -> None:
        """More evidence."""
        self.evidence[name] = self.evidence.get(name, 0) + count


@attrs.define(eq=False)
class Stage:
    """One run. `over` is set when it is to end early, `until` when it must have ended."""

    root: Path
    processes: System
    network: Network
    watch: Watch
    recorder: Recorder
    replicas: tuple[int, ...]
    until: float
    over: threading.Event
    cannot: frozenset[str] = frozenset()
    """The faults (`isr_cluster.system_description.FAULTS`) that the system cannot have."""
    faults: list[FaultRecord] = attrs.field(factory=list[FaultRecord])
    paused_brokers: set[int] = attrs.field(factory=set[int])
    down: set[int] = attrs.field(factory=set[int])

    # Time

    def sleep(self, seconds: float) -> None:
        """Wait; Cut if the run ends meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.over.wait(min(left, 0.2)) or time.monotonic() > self.until:
                raise Cut

    def waits(self, until: Callable[[], bool], what: str, seconds: float = HEALS_WITHIN) -> None:
        """Until it is so; Stuck if it is not in time."""
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                raise RunStuck(f"not in {seconds:.0f} s: {what}")
            self.sleep(0.05)

    def acknowledges(self, count: int, seconds: float) -> None:
        """Until so many more writes are acknowledged, or so long."""
        wanted, end = len(self.recorder.acked) + count, time.monotonic() + seconds
        while len(self.recorder.acked) < wanted and time.monotonic() < end:
            self.sleep(0.05)

    def phase(self, name: str) -> None:
        """From here on the schedule does something else."""
        self.recorder.phase(name)

    # Who is who

    @property
    def leader(self) -> int:
        """Who leads, or led last."""
        for seen in reversed(self.watch.observations):
            if seen.leader is not None:
                return seen.leader
        return self.replicas[0]

    @property
    def followers(self) -> tuple[int, ...]:
        """The other replicas."""
        led = self.leader
        return tuple(r for r in self.replicas if r != led)

    @property
    def brokers(self) -> tuple[int, ...]:
        """All, the controller's first."""
        return tuple(dict.fromkeys((CONTROLLER_BROKER, *self.replicas)))

    def isr(self) -> set[int]:
        """The ISR as the controller has it; empty if nobody leads."""
        now = self.watch.now
        return set(now.isr) if now is not None else set()

    def leads(self) -> int | None:
        """Who leads now."""
        return self.watch.now.leader if self.watch.now is not None else None

    def whole(self) -> bool:
        """A leader, and every replica in sync."""
        return self.leads() is not None and self.isr() == set(self.replicas)

    # Faults

    def begins(self, kind: str, *needs: str, survivable: bool = False) -> FaultRecord:
        """A fault of this kind; what is done from here on until it heals belongs to it."""
        at = self.recorder.says("fault", what=kind, survivable=survivable)
        strike = FaultRecord(
            kind,
            at,
            needs,
            before=dict(self.network.dropped_bytes()),
            delayed_before=dict(self.network.delayed_bytes()),
        )
        self.faults.append(strike)
        return strike

    @property
    def fault(self) -> FaultRecord:
        """The last fault that began."""
        return self.faults[-1]

    def cuts(self, sources: Iterable[Node], targets: Iterable[Node], both: bool = True) -> None:
        """Nothing comes from these to those; nor the other way, unless told."""
        sources, targets = tuple(sources), tuple(targets)
        for source in sources:
            for target in targets:
                if source != target:
                    for way in ((source, target), (target, source)) if both else ((source, target),):
                        self.network.cut(*way)
                        self.fault.ways.add(way)
        self.fault.hit.append(f"{'links' if both else 'one-way links'} {_names(sources)} / {_names(targets)}")

    def slows(self, sources: Iterable[Node], targets: Iterable[Node], seconds: float) -> None:
        """Whatever comes from these to those takes longer."""
        sources, targets = tuple(sources), tuple(targets)
        for source in sources:
            for target in targets:
                if source != target:
                    self.network.slow(source, target, seconds)
                    self.fault.ways.add((source, target))
        self.fault.hit.append(f"links {_names(sources)} > {_names(targets)}, {seconds:g} s late")

    def kills(self, broker: int) -> None:
        """SIGKILL; the system keeps what was written."""
        self._note_down(broker, "SIGKILL", "killed" if self.processes.kill(broker) else "")

    def stops(self, broker: int) -> None:
        """SIGTERM, and the orderly end."""
        self._note_down(broker, "SIGTERM", "" if self.processes.stop(broker) else "stopped")

    def _note_down(self, broker: int, how: str, evidence: str) -> None:
        self.down.add(broker)
        self.paused_brokers.discard(broker)
        self.fault.hit.append(f"broker {broker}: {how}")
        if evidence:
            self.fault.adds(evidence)

    def cuts_power(self, broker: int, tail: Tail = Tail.LOST) -> None:
        """SIGKILL, and what was not flushed is gone."""
        if broker in self.processes.running:
            self.kills(broker)
        folder = self.processes.logs(broker)
        if folder is None:
            raise RunStuck("a power failure needs to know where the logs are")
        lost = lose_power(folder, record_of(self.root, broker), tail)
        self.fault.hit.append(f"broker {broker}: {lost.bytes} bytes lost ({tail.name.lower()} tail)")
        self.fault.adds("bytes lost", lost.bytes)

    def pauses(self, broker: int) -> None:
        """The process stands still."""
        stands_still = self.processes.pause(broker)
        self.paused_brokers.add(broker)
        self.fault.hit.append(f"broker {broker}: SIGSTOP")
        if stands_still:
            self.fault.adds("paused")

    def fills_disk(self, broker: int) -> None:
        """No file of the broker can grow past the size of its log: the system refuses, as it does where no space is."""
        folder = self.processes.logs(broker)
        logs = [path.stat().st_size for path in folder.glob("*/*.log")] if folder is not None else []
        pid, most = self.processes.running[broker].process.pid, max(logs, default=0) + 4_096
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        self.fault.hit.append(f"broker {broker}: no file beyond {most} bytes")

    def ended_by_itself(self) -> None:
        """Brokers that halted since; evidence of a full disk."""
        for broker, code in self.processes.early_exits().items():
            self.processes.stop(broker)
            self.down.add(broker)
            self.fault.hit.append(f"broker {broker} halted, exit code {code}")
            self.fault.adds("halted")

    def starts(self, broker: int) -> None:
        """A broker that was down runs again."""
        try:
            self.processes.start(broker)
        except Mishap as mishap:
            raise RunStuck(str(mishap)) from None
        self.down.discard(broker)

    def resumes(self) -> None:
        """Whoever stood still goes on."""
        for broker in sorted(self.paused_brokers):
            self.processes.resume(broker)
        self.paused_brokers.clear()

    def mends(self) -> None:
        """Links are mended, and nothing else is."""
        self._counts()
        self.network.mend()

    def heals(self) -> None:
        """Links are mended and brokers run; back when every replica is in sync."""
        self.mends()
        self.resumes()
        for broker in sorted(self.down):
            self.starts(broker)
        self._serve()
        now = self.recorder.now()
        for fault in self.faults:
            fault.healed_at = fault.healed_at if fault.healed_at is not None else now
        self.waits(self.whole, "every replica is in sync again")
        self.recorder.says("heal", what="every replica is in sync again")
        self._note_recovery()

    def _serve(self) -> None:
        """Every broker that runs serves: one that a schedule started without waiting may not, yet."""
        try:
            for broker in list(self.processes.running):
                self.processes.awaits(broker)
        except Mishap as mishap:
            raise RunStuck(str(mishap)) from None

    def _counts(self) -> None:
        """The bytes that the open faults cost."""
        dropped, delayed = self.network.dropped_bytes(), self.network.delayed_bytes()
        for fault in self.faults:
            if fault.healed_at is None and fault.ways:
                for name, now, then in (("dropped", dropped, fault.before), ("delayed", delayed, fault.delayed_before)):
                    count = sum(now.get(way, 0) - then.get(way, 0) for way in fault.ways)
                    if count > 0:
                        fault.evidence[name] = count

    def _note_recovery(self) -> None:
        now = self.recorder.now()
        for fault in self.faults:
            if fault.in_sync_at is None:
                fault.in_sync_at = now
                leaders, _, isrs = self.watch.changes(fault.began, now)
                fault.evidence["leader changes"], fault.evidence["isr changes"] = leaders, isrs


def _names(nodes: Iterable[Node]) -> str:
    return ",".join("clients" if node == CLIENTS else str(node) for node in nodes)
