"""The visited set of one bucket, as two files on the local disk of whoever runs the task, mapped into its memory.

One file is an array of states, the other an open-addressing table of positions, as in the memory of the native engine.
They may be larger than memory: the system keeps as much of them there as it has room for.

These files are a cache of what the store says. A task takes the files of its bucket for itself, by giving them a name
of its own, and gives them back when it ends in order. If they are not there, since the bucket's last task ran elsewhere
or died, the task makes the set from the levels in the store. If they are of an earlier level, it adds the levels since
then; if of a later one, it cuts them. So every task begins with exactly the states of the levels before, whatever
became of the last one, and `remaking` says what that took.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import cast

import attrs
import numpy as np

from isr_check.engine import Failed
from isr_check.native.actions import DECISIONS
from isr_check.native.buffers import FULLEST, Numbers, Words, address
from isr_check.native.kernels import BATCH, Job
from isr_pipeline import store
from isr_pipeline.mapped_files import RECORD_FILE, DiskRoom, MappedFile
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

CHUNK = 1 << 16
"""States that are added between two checks for room."""
SMALLEST = 1 << 14
LOCAL = "SPARK_LOCAL_DIRS"
"""What names the executor's local folders (spark.local.dir) in the environment of Spark's Python processes."""


def local_folder(spec: KernelSpec, bucket: int) -> Path:
    """The local folder for the sets of an exploration: this process's own, or one of those of its executor."""
    folders = [spec.scratch] if spec.scratch else os.environ.get(LOCAL, tempfile.gettempdir()).split(",")
    return Path(folders[bucket % len(folders)]) / f"insync-{spec.run}"


@attrs.frozen
class _StoredTable:
    """What the last task of a bucket left: a table of so many places, with all states up to a level."""

    level: int
    states: int
    size: int


_NOTHING = _StoredTable(-1, 0, 0)


class BucketStates:
    """The set of a bucket before a level, with `before` states. Nobody else has its files until it is closed.

    `spare`: bytes that it leaves free on the disk where it can (see DiskRoom).
    """

    def __init__(
        self, spec: KernelSpec, hand: KernelWorker, bucket: int, level: int, before: int, spare: int = 0
    ) -> None:
        self.spec, self.hand, self.bucket, self.level, self.before = spec, hand, bucket, level, before
        self.name, self.remaking = store.new_name(), store.Remaking()
        home = local_folder(spec, bucket)
        home.mkdir(parents=True, exist_ok=True)
        self._room, self._files = DiskRoom(home, level, spare), dict[str, MappedFile]()
        self._shared = home / f"bucket-{bucket:04d}"
        self._own = home / f"{self._shared.name}.{os.getpid()}.{self.name:x}"
        self._remove_left_over(home)
        try:
            self._shared.rename(self._own)
        except OSError:
            self._room.found_for(self._own.mkdir)
        start_time = time.monotonic()
        try:
            with hand.time_spent.measure("remake"):
                read = self._open(self._read_record())
        except BaseException:
            self._give_up()
            raise
        if read is not None:
            self.remaking = store.Remaking(1, read, time.monotonic() - start_time)

    def _remove_left_over(self, home: Path) -> None:
        """Remove the files of tasks of this bucket whose processes have ended without removing them."""
        for folder in home.glob(f"{self._shared.name}.*"):
            try:
                os.kill(int(folder.name.split(".")[1]), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)
            except OSError:
                continue

    def _path(self, kind: str) -> Path:
        return self._own / kind

    def _read_record(self) -> _StoredTable:
        try:
            said = cast("dict[str, int]", json.loads(self._path(RECORD_FILE).read_text(encoding="utf-8")))
            return _StoredTable(said["level"], said["states"], said["size"])
        except (OSError, ValueError, KeyError):
            return _NOTHING

    @property
    def states(self) -> MappedFile:
        return self._files["states"]

    @property
    def table(self) -> MappedFile:
        return self._files["table"]

    def _map_states(self, rows: int) -> None:
        """Map the array with space for so many states. Room on the disk is asked for when they come."""
        self.rows = rows
        self._map("states", rows * self.spec.words)

    def _map_table(self, size: int) -> None:
        """Map a table of so many places, all of which have room on the disk."""
        self.size = size
        self._map("table", size)
        self.table.have(size)

    def _map(self, kind: str, count: int) -> None:
        if kind in self._files:
            self._files[kind].close()
        self._files[kind] = MappedFile(self._path(kind), count, self._room)

    def _open(self, record: _StoredTable) -> int | None:
        """Map the set as it was before the level; how many states were read from the store, None if all was there."""
        rows = self.before + 1 + CHUNK
        if record.states == self.before:
            self._map_states(rows)
            self._map_table(record.size or SMALLEST)
            self.next = self.before + 1
            return None
        present_count = min(record.states, self.before)
        size = record.size or SMALLEST
        while size * FULLEST < self.before + min(self.before, CHUNK):
            size *= 2
        anew = present_count < record.states or size != record.size
        if anew:
            self._path("table").unlink(missing_ok=True)
        self._map_states(rows)
        self._map_table(size)
        self.next = present_count + 1
        if present_count < self.before:
            self._read(record.level + 1)
        if self.next != self.before + 1:
            raise Failed(f"{self.spec.place} does not have the {self.before} states that bucket {self.bucket} had")
        self._index(1 if anew else present_count + 1)
        return self.before - present_count

    def _read(self, first: int) -> None:
        """Add the states of the levels from the first on, as the store has them."""
        self.states.have((self.before + 1) * self.spec.words)
        into, place = self.all_states()[: self.before + 1], self.spec.place
        for level in range(first, self.level):
            commit = store.Store(place).commit_of(level)
            if self.bucket not in commit.names:
                continue
            for block in store.read_states(commit.file(place, self.bucket), self.spec.words):
                end = self.next + len(block)
                into[self.next : end] = block[: max(0, len(into) - self.next)]
                self.next = end

    def all_states(self) -> Words:
        return self.states.words[: self.rows * self.spec.words].reshape(-1, self.spec.words)

    def _index(self, first: int) -> None:
        """Enter the positions of the states from the first on into the table."""
        self.hand.worker.next = self.next
        self._attach()
        self.hand.run("index", first, self.next)

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
            with self.hand.time_spent.measure("absorb"):
                self.hand.run("absorb", start, end)
            self.next = worker.next

    def _make_room(self, more: int) -> None:
        if self.next + more > self.rows:
            self._map_states(max(2 * self.rows, self.next + more))
        self.states.have((self.next + more) * self.spec.words)
        if self.next + more + BATCH > self.size * FULLEST:
            self.table.close()
            self._path("table").unlink()
            self._map_table(self.size * (4 if self.size < 1 << 20 else 2))
            self._index(1)

    def places(self, states: Words) -> Numbers:
        """The positions of these states in the set, from 1 on; 0 for a state that is not in it."""
        positions = np.zeros(len(states), dtype=np.int64)
        self._attach()
        self.hand.worker.set([(Job.RESULTS, address(positions))])
        self.hand.source(states)
        self.hand.run("locate", 0, len(states))
        return positions

    # what is new

    @property
    def new(self) -> int:
        return self.next - 1 - self.before

    def decided_checks(self, check_mask: int) -> int:
        """The checks that a new state decides."""
        worker = self.hand.worker
        worker.report[DECISIONS] = 0
        if check_mask or self.spec.checks_ranges:
            self.hand.source(self.all_states())
            with self.hand.time_spent.measure("check"):
                self.hand.run("check", self.before + 1, self.next, check_mask)
        return int(worker.report[DECISIONS])

    def orbits(self) -> int:
        """How many states the orbits of the new states have; 0 without symmetry."""
        if not self.spec.symmetric:
            return 0
        self.hand.worker.set([(Job.SUM, 0)])
        self.hand.source(self.all_states())
        with self.hand.time_spent.measure("check"):
            self.hand.run("orbits", self.before + 1, self.next)
        return int(self.hand.worker.job[Job.SUM])

    def keep(self) -> None:
        """Write the new states to a file of the level, which counts once a commit has its name."""
        if self.new:
            file = store.part(self.spec.place, self.level, self.bucket, self.name)
            with self.hand.time_spent.measure("files"):
                store.write_states(file, self.all_states()[self.before + 1 : self.next])

    def __enter__(self) -> BucketStates:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._give_up()
            return
        self._close()
        said = {"level": self.level, "states": self.next - 1, "size": self.size}
        try:
            self._path(RECORD_FILE).write_text(json.dumps(said), encoding="utf-8")
            self._own.rename(self._shared)
        except (
            OSError
        ):  # another attempt has given back its own, which is as good, or the disk is full to the last byte
            self._give_up()

    def _close(self) -> None:
        for file in self._files.values():
            file.close()

    def _give_up(self) -> None:
        self._close()  # or the disk would not get its room back
        with suppress(OSError):
            shutil.rmtree(self._own)
