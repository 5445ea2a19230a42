"""What the controller decides, as it decides it: its log on disk is read again and again, and nobody is asked."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import attrs

from isr_broker.core.message_json import BadMessage, record_of
from isr_broker.core.messages import PartitionMetadata, TopicPartition
from isr_cluster.kafka_metadata import KafkaDecisions
from isr_experiment.recorder import PARTITION

EVERY = 0.02
_TP = TopicPartition(PARTITION.rpartition("-")[0], int(PARTITION.rpartition("-")[2]))


@attrs.frozen
class Seen:
    """The partition from `at` on, in nanoseconds of the run, at most `EVERY` late."""

    at: int
    leader: int | None
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]


@attrs.define(eq=False)
class Watch:
    """Looks again and again in a thread; `seen` is everything that was decided about the partition."""

    began: int
    every: float = EVERY
    """Seconds between two looks."""
    seen: list[Seen] = attrs.field(factory=list[Seen])
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
    def now(self) -> Seen | None:
        """The partition as it is."""
        return self.seen[-1] if self.seen else None

    def changes(self, since: int = 0, until: int | None = None) -> tuple[int, int, int]:
        """How many other leaders, other leader epochs and other ISRs there were in a stretch of time."""
        leaders = epochs = isrs = 0
        led: int | None = None
        last: Seen | None = None
        for seen in self.seen:
            within = since <= seen.at and (until is None or seen.at <= until)
            if last is not None and within:
                epochs += seen.epoch != last.epoch
                isrs += seen.isr != last.isr
                leaders += seen.leader is not None and led is not None and seen.leader != led
            led = seen.leader if seen.leader is not None else led
            last = seen
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
                self.seen.append(Seen(at, record.leader, record.leader_epoch, isr, elr))
        return len(whole) + 1 if whole else 0


@attrs.define(eq=False, kw_only=True)
class KafkaWatch(LogWatch):
    """Apache Kafka's `__cluster_metadata`, which its controller writes some 20 ms after it has decided."""

    decisions: KafkaDecisions = attrs.field(factory=lambda: KafkaDecisions(_TP))

    def _takes(self, data: bytes, at: int) -> int:
        decided, size = self.decisions.take(data)
        self.seen += [Seen(at, d.leader, d.epoch, d.isr, d.elr) for d in decided]
        return size
