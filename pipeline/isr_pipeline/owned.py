"""The visited set of one bucket: two files that are mapped into the memory of whoever owns it for a while.

The files are those of the native engine's memory, an array of states and an open-addressing table of positions. Being
files, they may be larger than memory: the system keeps of them what there is room for. They are made again from the
states of all levels whenever their last owner did not close them in order, so that whatever becomes of a task, the
next one begins with exactly the states of the levels before.
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
from isr_pipeline.kit import Hand, Kit

CHUNK = 1 << 16
"""States added before it is seen to that there is room for so many more."""
SMALLEST = 1 << 14


class Mapped:
    """A file of 64-bit words in memory."""

    def __init__(self, path: Path, count: int) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        if os.fstat(self.file).st_size < count * 8:
            os.ftruncate(self.file, count * 8)
        self.words = np.frombuffer(mmap.mmap(self.file, count * 8), dtype=np.uint64)

    def close(self) -> None:
        self.words = np.zeros(0, dtype=np.uint64)
        os.close(self.file)


class Owned:
    """The set of a bucket before the level, which has `before` states; nobody else has it until it is closed."""

    def __init__(self, kit: Kit, hand: Hand, bucket: int, level: int, before: int) -> None:
        self.kit, self.hand, self.bucket, self.level, self.before = kit, hand, bucket, level, before
        self.folder = Path(kit.folder) / "sets"
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
            self._make_again()

    def _path(self, kind: str) -> Path:
        return self.folder / f"bucket-{self.bucket:04d}.{kind}"

    def _size_if_closed(self) -> int:
        """Of the table, if the set was closed with as many states as it must have now."""
        try:
            said = cast("dict[str, int]", json.loads(self._closed.read_text(encoding="utf-8")))
            return said["size"] if said["states"] == self.before else 0
        except (OSError, ValueError, KeyError):
            return 0

    def _map(self, size: int, rows: int) -> None:
        self.size = size
        self.states = Mapped(self._path("states"), rows * self.kit.words)
        self.rows = rows
        self.table = Mapped(self._path("table"), size)

    def _make_again(self) -> None:
        for kind in ("states", "table"):
            self._path(kind).unlink(missing_ok=True)
        size = SMALLEST
        while size * FULLEST < self.before + CHUNK:
            size *= 2
        self._map(size, self.before + 1 + CHUNK)
        self.next = 1
        into = self.all_states()
        for level in range(self.level):
            path = store.part(self.kit.folder, level, self.bucket)
            for block in store.read_states(path, self.kit.words) if path.exists() else ():
                into[self.next : self.next + len(block)] = block
                self.next += len(block)
        assert self.next == self.before + 1, "the levels have the states that were counted"
        self._index()

    def all_states(self) -> Words:
        return self.states.words[: self.rows * self.kit.words].reshape(-1, self.kit.words)

    def _index(self) -> None:
        worker = self.hand.worker
        worker.next = self.next
        self._attach()
        self.hand.run("index", 1, self.next)

    def _attach(self) -> None:
        places = [(Job.STATES, self.states.words), (Job.TABLE, self.table.words)]
        self.hand.worker.set([(place, address(words)) for place, words in places])
        self.hand.worker.set([(Job.MASK, self.size - 1)])

    def absorb(self, states: Words) -> None:
        """Add those that are not there yet."""
        worker = self.hand.worker
        for start in range(0, len(states), CHUNK):
            end = min(start + CHUNK, len(states))
            self._make_room(end - start)
            self._attach()
            self.hand.source(states)
            worker.next, worker.limit = self.next, self.rows
            with self.hand.spent.spending("absorb"):
                self.hand.run("absorb", start, end)
            self.next = worker.next

    def _make_room(self, more: int) -> None:
        if self.next + more > self.rows:
            self.states.close()
            self.rows = max(2 * self.rows, self.next + more)
            self.states = Mapped(self._path("states"), self.rows * self.kit.words)
        if self.next + more + BATCH > self.size * FULLEST:
            self.table.close()
            self._path("table").unlink()
            self.size *= 4 if self.size < 1 << 20 else 2
            self.table = Mapped(self._path("table"), self.size)
            self._index()

    def places(self, states: Words) -> Numbers:
        """Where these states are, from 1 on; 0 for one that is not there."""
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

    def checked(self, wanted: int) -> int:
        """The checks that a new state decides."""
        worker = self.hand.worker
        worker.report[FOUND] = 0
        if wanted or self.kit.ranged:
            self.hand.source(self.all_states())
            with self.hand.spent.spending("check"):
                self.hand.run("check", self.before + 1, self.next, wanted)
        return int(worker.report[FOUND])

    def orbits(self) -> int:
        """By symmetry, how many states the orbits of the new ones have."""
        if not self.kit.symmetric:
            return 0
        self.hand.worker.set([(Job.SUM, 0)])
        self.hand.source(self.all_states())
        with self.hand.spent.spending("check"):
            self.hand.run("orbits", self.before + 1, self.next)
        return int(self.hand.worker.job[Job.SUM])

    def keep(self) -> None:
        """Write the new states as those of the level."""
        if self.new:
            path = store.part(self.kit.folder, self.level, self.bucket)
            with self.hand.spent.spending("files"):
                store.write_states(path, self.all_states()[self.before + 1 : self.next])

    def __enter__(self) -> Owned:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.states.close()
        self.table.close()
        if kind is None:
            self._closed.write_text(json.dumps({"states": self.next - 1, "size": self.size}), encoding="utf-8")
        os.close(self._lock)
