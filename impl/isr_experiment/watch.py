"""What the controller decides, as it decides it: its log on disk is read again and again, and nobody is asked."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import attrs

from isr_broker.core.message_json import BadMessage, record_of
from isr_broker.core.messages import PartitionMetadata, TopicPartition
from isr_broker.storage.metadata_log import NAME
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
    """Reads the controller's log in a thread; `seen` is everything that it said of the partition."""

    data: Path
    began: int
    seen: list[Seen] = attrs.field(factory=list[Seen])
    _position: int = 0
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
        while not self._over.wait(EVERY):
            self._look()
        self._look()

    def _look(self) -> None:
        path = self.data / NAME
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole, _, _ = text.rpartition(b"\n")
        at = time.monotonic_ns() - self.began
        for line in whole.split(b"\n") if whole else []:
            try:
                record = record_of(line.partition(b" ")[2])
            except (BadMessage, json.JSONDecodeError):
                continue
            if isinstance(record, PartitionMetadata) and record.partition == _TP:
                isr, elr = tuple(sorted(record.isr)), tuple(sorted(record.elr))
                self.seen.append(Seen(at, record.leader, record.leader_epoch, isr, elr))
        self._position += len(whole) + 1 if whole else 0

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
