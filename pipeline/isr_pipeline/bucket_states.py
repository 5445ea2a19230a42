"""The visited set of one bucket, as two files that a task maps into its memory.

One file is an array of states, the other an open-addressing table of positions, as in the memory of the native engine.
They may be larger than memory: the system keeps as much of them there as it has room for. If the last task did not
close them properly, they are rebuilt from the states of all levels. So every task begins with exactly the states of the
levels before, whatever became of the last one.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import cast

import numpy as np

from isr_check.native.actions import FOUND
from isr_check.native.kernels import BATCH, Job
from isr_check.native.memory import FULLEST, Numbers, Words, address
from isr_pipeline import store
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

CHUNK = 1 << 16
"""States that are added between two checks for room."""
SMALLEST = 1 << 14


class MappedFile:
    """A file of 64-bit words in memory."""

    def __init__(self, path: Path, count: int) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        if os.fstat(self.file).st_size < count * 8:
            os.ftruncate(self.file, count * 8)
        self.words = np.frombuffer(mmap.mmap(self.file, count * 8), dtype=np.uint64)

    def close(self) -> None:
        self.words = np.zeros(0, dtype=np.uint64)
        os.close(self.file)


class BucketStates:
    """The set of a bucket before a level, with `before` states. It is locked until it is closed."""

    def __init__(self, spec: KernelSpec, hand: KernelWorker, bucket: int, level: int, before: int) -> None:
        self.spec, self.hand, self.bucket, self.level, self.before = spec, hand, bucket, level, before
        self.folder = Path(spec.folder) / "sets"
        self.folder.mkdir(exist_ok=True)
        self._lock = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._closed = self._path("json")
        size = self._size_if_closed()
        self._closed.unlink(missing_ok=True)
        if size:
            self._map(size, before + 1 + CHUNK)
            self.next = before + 1
        else:
            self._rebuild()

    def _path(self, kind: str) -> Path:
        return self.folder / f"bucket-{self.bucket:04d}.{kind}"

    def _size_if_closed(self) -> int:
        """The size of the table, if the set was closed properly with the expected number of states; else 0."""
        try:
            said = cast("dict[str, int]", json.loads(self._closed.read_text(encoding="utf-8")))
            return said["size"] if said["states"] == self.before else 0
        except (OSError, ValueError, KeyError):
            return 0

    def _map(self, size: int, rows: int) -> None:
        self.size = size
        self.states = MappedFile(self._path("states"), rows * self.spec.words)
        self.rows = rows
        self.table = MappedFile(self._path("table"), size)

    def _rebuild(self) -> None:
        for kind in ("states", "table"):
            self._path(kind).unlink(missing_ok=True)
        size = SMALLEST
        while size * FULLEST < self.before + CHUNK:
            size *= 2
        self._map(size, self.before + 1 + CHUNK)
        self.next = 1
        into = self.all_states()
        for level in range(self.level):
            path = store.part(self.spec.folder, level, self.bucket)
            for block in store.read_states(path, self.spec.words) if path.exists() else ():
                into[self.next : self.next + len(block)] = block
                self.next += len(block)
        assert self.next == self.before + 1, "the levels have the states that were counted"
        self._rebuild_table()

    def all_states(self) -> Words:
        return self.states.words[: self.rows * self.spec.words].reshape(-1, self.spec.words)

    def _rebuild_table(self) -> None:
        worker = self.hand.worker
        worker.next = self.next
        self._attach()
        self.hand.run("index", 1, self.next)

    def _attach(self) -> None:
        places = [(Job.STATES, self.states.words), (Job.TABLE, self.table.words)]
        self.hand.worker.set([(place, address(words)) for place, words in places])
        self.hand.worker.set([(Job.MASK, self.size - 1)])

    def absorb(self, states: Words) -> None:
        """Add the states that are new."""
        worker = self.hand.worker
        for start in range(0, len(states), CHUNK):
            end = min(start + CHUNK, len(states))
            self._make_room(end - start)
            self._attach()
            self.hand.source(states)
            worker.next, worker.limit = self.next, self.rows
            with self.hand.spent.timed("absorb"):
                self.hand.run("absorb", start, end)
            self.next = worker.next

    def _make_room(self, more: int) -> None:
        if self.next + more > self.rows:
            self.states.close()
            self.rows = max(2 * self.rows, self.next + more)
            self.states = MappedFile(self._path("states"), self.rows * self.spec.words)
        if self.next + more + BATCH > self.size * FULLEST:
            self.table.close()
            self._path("table").unlink()
            self.size *= 4 if self.size < 1 << 20 else 2
            self.table = MappedFile(self._path("table"), self.size)
            self._rebuild_table()

    def places(self, states: Words) -> Numbers:
        """The positions of these states in the set, from 1 on; 0 for a state that is not in it."""
        found = np.zeros(len(states), dtype=np.int64)
        self._attach()
        self.hand.worker.set([(Job.RESULTS, address(found))])
        self.hand.source(states)
        self.hand.run("locate", 0, len(states))
        return found

    # what is new

    @property
    def new(self) -> int:
        return self.next - 1 - self.before

    def decided_checks(self, wanted: int) -> int:
        """The checks that a new state decides."""
        worker = self.hand.worker
        worker.report[FOUND] = 0
        if wanted or self.spec.ranged:
            self.hand.source(self.all_states())
            with self.hand.spent.timed("check"):
                self.hand.run("check", self.before + 1, self.next, wanted)
        return int(worker.report[FOUND])

    def orbits(self) -> int:
        """How many states the orbits of the new states have; 0 without symmetry."""
        if not self.spec.symmetric:
            return 0
        self.hand.worker.set([(Job.SUM, 0)])
        self.hand.source(self.all_states())
        with self.hand.spent.timed("check"):
            self.hand.run("orbits", self.before + 1, self.next)
        return int(self.hand.worker.job[Job.SUM])

    def keep(self) -> None:
        """Write the new states to the file of the level."""
        if self.new:
            path = store.part(self.spec.folder, self.level, self.bucket)
            with self.hand.spent.timed("files"):
                store.write_states(path, self.all_states()[self.before + 1 : self.next])

    def __enter__(self) -> BucketStates:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.states.close()
        self.table.close()
        if kind is None:
            self._closed.write_text(json.dumps({"states": self.next - 1, "size": self.size}), encoding="utf-8")
        os.close(self._lock)
