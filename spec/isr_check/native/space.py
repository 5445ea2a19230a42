"""Where the states are: in memory, and when that is full, in files.

In memory, states are found by the table of the visited set. Outside, memory holds the *candidates* only, what
was found since the last look; when they fill it, or the level ends, all files are read once, and what is in
them is struck out. What remains is new, and becomes one more file. So memory bounds the speed but not the size
of an exploration, and a disk is read in order only.

A position is one in memory until the states move out, and one in the archive from then on.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from isr_check.native import archive
from isr_check.native.archive import Archive, Json
from isr_check.native.kernels import BATCH, Job, Program
from isr_check.native.machine import Machine
from isr_check.native.memory import FULLEST, Marks, States, Table, Words, Worker, address, resident, scarce
from isr_check.native.team import Span, Team, spans

CHUNK = 4096
"""States expanded, or otherwise looked at, by one call."""
BLOCK = 16 * CHUNK
"""The same where that is quick."""
OTHER = 48 << 20
"""Bytes that the process may yet need for anything but states: better machine code, reports."""
LEAST = 4 << 20
"""Bytes for candidates below which it makes no sense to go on."""


class Full(Exception):
    """There is no room for states, neither in memory nor outside: why."""


class Space:
    """The states of one exploration, `levels` of them, `todo` of the last one and `fresh` ones of the next."""

    def __init__(
        self, program: Program, machine: Machine, actions: int, threads: int, budget: int | None, folder: Path | None
    ) -> None:
        self.program, self.machine, self.budget = program, machine, budget
        self.words = program.layout.words
        self.base = resident() + OTHER
        self.states = States(self.words, threads)
        self.workers = [Worker(program, actions, b) for b in self.states.bounds]
        self.team = Team(self.workers)
        self.levels: list[list[Span]] = []
        self.todo: deque[Span] = deque()
        self.fresh: list[Span] = []
        self.starts = [w.first for w in self.workers]
        self.outside = False
        self.archive: Archive | None = None
        self._home, self._own_home = folder, folder is None
        self._kept: list[tuple[int, int, int]] = []  # what of memory is in the archive: start, end, where
        self._buffers = [np.zeros((0, self.words), dtype=np.uint64) for _ in self.workers]
        size = 1 << 14
        while size * FULLEST < 2 * program.most:
            size *= 2
        self._allocate(size)

    @property
    def found(self) -> int:
        """States found in memory; outside, candidates."""
        return sum(w.next - w.first for w in self.workers)

    @property
    def distinct(self) -> int:
        return self.archive.size if self.outside and self.archive else self.found

    @property
    def state_bytes(self) -> float:
        """Bytes per state at a table that is neither new nor full."""
        return self.words * 8 + 8 / (FULLEST * 0.75)

    # levels

    def begin_level(self) -> None:
        self.todo = spans(self.levels[-1], CHUNK)
        self.fresh, self.starts = [], [w.next for w in self.workers]

    def end_level(self) -> list[Span]:
        """The states found in this level."""
        if self.outside:
            self.flush()
        else:
            self.fresh += [(s, w.next) for s, w in zip(self.starts, self.workers, strict=True) if w.next > s]
        return _merged(self.fresh)

    def place(self, worker: Worker, span: Span) -> Span:
        """Where the worker's kernels find the states of a span, short enough for its buffer."""
        if not self.outside:
            worker.set([(Job.SOURCE, address(self.states.array))])
            return span
        rows = self.rows(worker, span)
        worker.set([(Job.SOURCE, address(rows))])
        return 0, len(rows)

    def rows(self, worker: Worker, span: Span) -> Words:
        """The states of a span; outside, until the worker's next one."""
        start, end = span
        if not self.outside:
            return self.states.at(slice(start, end))
        at = self.workers.index(worker)
        if len(self._buffers[at]) < end - start:
            self._buffers[at] = np.zeros((max(BLOCK, end - start), self.words), dtype=np.uint64)
        rows: Words = self._buffers[at][: end - start]
        assert self.archive is not None
        self.archive.read(start, rows)
        return rows

    # room

    def make_room(self) -> None:
        """Let the workers add states: the more the better, and less than what they may add unseen. Or Full."""
        few = len(self.workers) * 4 * (self.program.most + BATCH)
        while not self.outside and self._room() < few:
            size = self.table.size * (4 if self.table.size < 1 << 22 else 2)
            more = (size - self.table.size + few * self.words) * 8
            if self.table.room - self.found < few and self._affords(more):
                self._allocate(size)
                self._index()
            else:
                self._move_out()
        if self.outside and self._packed(few):
            self.flush()
            if self._packed(few):
                raise Full("the memory limit")
        quota = self._room() // len(self.workers)
        for worker in self.workers:
            worker.limit = min(worker.next + quota, worker.last)

    def _room(self) -> int:
        room = self.table.room - self.found
        if self.outside or self.budget is None:
            return 0 if self.crowded() and not self.outside else room
        return min(room, (self.budget - self._held()) // (8 * self.words))

    def _packed(self, few: int) -> bool:
        """Whether some worker could add too few candidates."""
        least = self.program.most + BATCH
        return self._room() < few or any(w.last - w.next < least for w in self.workers)

    def _held(self) -> int:
        return self.base + 8 * (self.table.size + self.words * self.found)

    def _affords(self, more: int) -> bool:
        return not scarce(more) and (self.budget is None or self._held() + more <= self.budget)

    def crowded(self) -> bool:
        """Whether the machine is short of memory."""
        return scarce(0)

    def _allocate(self, size: int) -> None:
        self.table = Table(0)
        self.table = Table(size)
        for worker in self.workers:
            worker.set([
                (Job.STATES, address(self.states.array)),
                (Job.TABLE, address(self.table.entries)),
                (Job.MASK, size - 1),
            ])  # fmt: skip

    def _index(self) -> None:
        def enter(worker: Worker, span: Span) -> None:
            worker.run(self.machine.run["index"], *span, 0)

        self.team.share(spans([(w.first, w.next) for w in self.workers], BLOCK), enter)

    # outside

    def _archive(self) -> Archive:
        if self.archive is None:
            if self._home is None:
                self._home = Path(tempfile.mkdtemp(prefix="insync-"))
            self.archive = archive.fresh(self._home, self.words)
        return self.archive

    def _keep(self) -> None:
        """See that the archive has all states of memory."""
        kept, base = self._archive(), self._archive().size
        ends = {w.first: w.first for w in self.workers}
        for start, end, _ in self._kept:
            first = max(f for f in ends if f <= start)
            ends[first] = max(ends[first], end)
        new = [(ends[w.first], w.next) for w in self.workers if w.next > ends[w.first]]
        kept.append(self.states.at(slice(*span)) for span in new)
        for start, end in new:
            self._kept.append((start, end, base))
            base += end - start

    def in_archive(self, positions: Iterable[Span]) -> list[Span]:
        """Where the archive has spans, which it has whole."""
        if self.outside:
            return _merged(positions)
        result: list[Span] = []
        for start, end in positions:
            for begin, until, base in self._kept:
                low, high = max(start, begin), min(end, until)
                if low < high:
                    result.append((low - begin + base, high - begin + base))
        return _merged(result)

    def _move_out(self) -> None:
        self._keep()
        new = [(s, w.next) for s, w in zip(self.starts, self.workers, strict=True) if w.next > s]
        self.levels = [self.in_archive(level) for level in self.levels]
        self.todo = spans(self.in_archive(self.todo), CHUNK)
        self.fresh = self.in_archive([*self.fresh, *new])
        used = 8 * (self.table.size + self.words * self.found)
        self._settle_outside(used // 2 if self.budget is None else self.budget - self.base)

    def _settle_outside(self, room: int) -> None:
        """Use so many bytes of memory for candidates."""
        self.outside, self._kept = True, []
        buffers = len(self.workers) * BLOCK * self.words * 8
        if room - buffers < LEAST:
            raise Full("the memory limit")
        most, size = max(_candidates(1 << bits, room - buffers, self.words) for bits in range(14, 40))
        self.states = States(self.words, len(self.workers), most // len(self.workers) + 1)
        for worker, bounds in zip(self.workers, self.states.bounds, strict=True):
            worker.move(bounds)
        self.starts = [w.first for w in self.workers]
        self._allocate(size)

    def flush(self) -> None:
        """Strike out the candidates that are in the archive, and add the others to it."""
        known = self._archive()
        marks: Marks = np.zeros(len(self.states.array) // self.words, dtype=np.uint8)
        for worker in self.workers:
            worker.set([(Job.RESULTS, address(marks))])
        self.team.share(spans([(0, known.size)], BLOCK), partial(self._strike))
        for worker in self.workers:
            worker.set([(Job.RESULTS, 0)])
        before = known.size
        known.append(self._survivors(marks))
        if known.size > before:
            self.fresh.append((before, known.size))
        self.table.clear()
        for worker in self.workers:
            worker.next = worker.first

    def _strike(self, worker: Worker, span: Span) -> None:
        worker.run(self.machine.run["strike"], *self.place(worker, span), 0)

    def _survivors(self, marks: Marks) -> Iterator[Words]:
        for worker in self.workers:
            for start in range(worker.first, worker.next, BLOCK):
                chosen = slice(start, min(start + BLOCK, worker.next))
                yield self.states.at(chosen)[marks[chosen] == 0]

    # checkpoints

    def save(self, content: Json) -> None:
        """A checkpoint of this moment, at which no worker is at work."""
        if self.outside:
            self.flush()
        else:
            self._keep()
        new = [] if self.outside else [(s, w.next) for s, w in zip(self.starts, self.workers, strict=True)]
        known = {
            "levels": [self.in_archive(level) for level in self.levels],
            "todo": self.in_archive(self.todo),
            "fresh": self.in_archive([*self.fresh, *new]),
        }
        archive.save(self._archive(), {**content, **known})

    def restore(self, known: Archive, levels: list[list[Span]], todo: list[Span], fresh: list[Span]) -> None:
        """The states of a checkpoint, in memory if they fit."""
        self.archive = known
        size = self.table.size
        while size * FULLEST < known.size * 1.2:
            size *= 2
        first, shift = self.workers[0], 0
        if self._affords(8 * (size + self.words * known.size)) and known.size < first.last - first.first:
            known.read(0, self.states.at(slice(first.first, first.first + known.size)))
            first.next, shift = first.first + known.size, first.first
            self._kept = [(first.first, first.next, 0)]
            self._allocate(size)
            self._index()
        else:
            held = scarce_room() if self.budget is None else self.budget - self.base
            self._settle_outside(held)
        self.starts = [w.next for w in self.workers]
        self.levels = [[(s + shift, e + shift) for s, e in level] for level in levels]
        self.todo = spans([(s + shift, e + shift) for s, e in todo], CHUNK)
        self.fresh = [(s + shift, e + shift) for s, e in fresh]

    def close(self, *, keep: bool) -> None:
        self.team.close()
        if self.archive is not None:
            self.archive.close()
        if self._home is not None and (self._own_home or not keep):
            archive.discard(self._home)


def scarce_room() -> int:
    """Bytes for candidates on a machine that is short of memory."""
    return 1 << 28


def _candidates(size: int, room: int, words: int) -> tuple[int, int]:
    """How many candidates a table of the size serves in so many bytes; and the size."""
    return min(int(size * FULLEST), (room - 8 * size) // (8 * words + 1)), size


def _merged(positions: Iterable[Span]) -> list[Span]:
    """The same positions in as few spans as possible, in order."""
    result: list[Span] = []
    for start, end in sorted(p for p in positions if p[0] < p[1]):
        if result and result[-1][1] == start:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result
