"""What the controller decides, as it decides it: its log on disk is read again and again, and nobody is asked.

Where a system under test keeps no log that can be read here, its brokers are asked (`AskingWatch`), which is later and
may miss what lasts for less than a moment.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import attrs

from isr_broker.core.message_json import BadMessage, record_of
from isr_broker.core.messages import PartitionMetadata, TopicPartition
from isr_cluster.admin import Address, Admin, RequestRefused
from isr_cluster.kafka_metadata import KafkaDecisions
from isr_experiment.recorder import PARTITION

EVERY = 0.02
_TP = TopicPartition(PARTITION.rpartition("-")[0], int(PARTITION.rpartition("-")[2]))


@attrs.frozen
class Observation:
    """The partition from `at` on, in nanoseconds of the run, at most `EVERY` late."""

    at: int
    leader: int | None
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]


@attrs.define(eq=False)
class Watch:
    """Looks again and again in a thread; `observations` is everything that was decided about the partition."""

    began: int
    every: float = EVERY
    """Seconds between two looks."""
    observations: list[Observation] = attrs.field(factory=list[Observation])
    _over: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """No more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._over.wait(self.every):
            self._look()
        self._look()

    def _look(self) -> None:
        raise NotImplementedError

    @property
    def now(self) -> Observation | None:
        """The partition as it is."""
        return self.observations[-1] if self.observations else None

    def changes(self, since: int = 0, until: int | None = None) -> tuple[int, int, int]:
        """How many other leaders, other leader epochs and other ISRs there were in a stretch of time."""
        leaders = epochs = isrs = 0
        last_leader: int | None = None
        last: Observation | None = None
        for observation in self.observations:
            within = since <= observation.at and (until is None or observation.at <= until)
            if last is not None and within:
                epochs += observation.epoch != last.epoch
                isrs += observation.isr != last.isr
                leaders += (
                    observation.leader is not None and last_leader is not None and observation.leader != last_leader
                )
            last_leader = observation.leader if observation.leader is not None else last_leader
            last = observation
        return leaders, epochs, isrs


@attrs.define(eq=False, kw_only=True)
class LogWatch(Watch):
    """Reads a log of the controller as it grows; `path` is its file."""

    path: Path
    _position: int = 0

    def _look(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        self._position += self._takes(data, time.monotonic_ns() - self.began)

    def _takes(self, data: bytes, at: int) -> int:
        """Note what is new; how many bytes are done with."""
        raise NotImplementedError


class OurWatch(LogWatch):
    """Our controller's log: a line of JSON for each record."""

    def _takes(self, data: bytes, at: int) -> int:
        whole, _, _ = data.rpartition(b"\n")
        for line in whole.split(b"\n") if whole else []:
            try:
                record = record_of(line.partition(b" ")[2])
            except (BadMessage, json.JSONDecodeError):
                continue
            if isinstance(record, PartitionMetadata) and record.partition == _TP:
                isr, elr = tuple(sorted(record.isr)), tuple(sorted(record.elr))
                self.observations.append(Observation(at, record.leader, record.leader_epoch, isr, elr))
        return len(whole) + 1 if whole else 0


@attrs.define(eq=False, kw_only=True)
class KafkaWatch(LogWatch):
    """Apache Kafka's `__cluster_metadata`, which its controller writes some 20 ms after it has decided."""

    decisions: KafkaDecisions = attrs.field(factory=lambda: KafkaDecisions(_TP))

    def _takes(self, data: bytes, at: int) -> int:
        decided, size = self.decisions.take(data)
        self.observations += [Observation(at, d.leader, d.epoch, d.isr, d.elr) for d in decided]
        return size


@attrs.define(eq=False, kw_only=True)
class AskingWatch(Watch):
    """Asks the brokers for the partition, all of them by turns; of two answers that of the higher leader epoch holds.

    A change of the ISR within one leader epoch is taken as the broker that leads tells it.
    """

    addresses: Mapping[int, Address]
    """Of one broker alone: it leads whenever anybody does, whatever it calls itself."""
    every: float = 0.1
    _turn: int = 0

    def _look(self) -> None:
        order = sorted(self.addresses)
        latest = self.now
        leader = latest.leader if latest is not None else None
        self._turn += 1
        known = leader if leader is not None and leader in self.addresses else order[0]
        broker = known if self._turn % 2 else order[self._turn // 2 % len(order)]
        try:
            with Admin(self.addresses[broker], 0.5) as admin:
                found = admin.partitions([_TP.topic])
        except RequestRefused:
            return
        for p in found:
            if p.number != _TP.partition:
                continue
            leads, isr = p.leader, tuple(sorted(p.isr))
            if len(order) == 1:
                leads, isr = (None, ()) if leads is None else (order[0], (order[0],))
            seen = Observation(time.monotonic_ns() - self.began, leads, p.leader_epoch, isr, tuple(sorted(p.elr or ())))
            newer = latest is None or seen.epoch > latest.epoch or (seen.epoch == latest.epoch and broker == leads)
            same = latest is not None and attrs.astuple(seen)[1:] == attrs.astuple(latest)[1:]
            if newer and not same:
                self.observations.append(seen)
