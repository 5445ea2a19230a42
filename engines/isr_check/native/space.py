"""The place of the states: in memory, when that is full in fewer bytes, and when that is full, too, in files.

In memory, states are found by the table of the visited set. When there is no room for a larger one, states are
*compressed* (compressed.py), if that is worth having. When they do not fit so either, they move *outside*, to files of
an archive. From then on memory holds *candidates* only: states found since the archive was last read. When candidates
fill the memory, or the level ends, the whole archive is read once and known candidates are struck out. The others are
new, and become one more file. So memory limits the speed but not the size of an exploration, and the disk is read in
order only.

A position counts in memory until the states move outside, and in the archive from then on. Compressed states have no
positions: `LEVEL * level + b` is the bucket b of their table, for the states of that level in it. In `levels` a
compressed level has as many positions as states, but they only count.
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
from isr_check.native.buffers import FULLEST, Marks, States, Table, Words, Worker, address, resident, scarce
from isr_check.native.compressed import Compressed, Read
from isr_check.native.kernels import BATCH, Job, Program
from isr_check.native.machine import Machine
from isr_check.native.team import Span, Team, spans

CHUNK = 4096
"""How many states one call of a kernel expands or checks."""
BLOCK = 16 * CHUNK
"""How many states one call of a quick kernel reads."""
OTHER = 48 << 20
"""Bytes that the process may yet need for other things than states: optimised machine code, reports."""
LEAST = 4 << 20
"""The fewest bytes for candidates with which an exploration goes on outside."""
LEVEL = 1 << 40
"""More than a table has buckets."""
WORTH = 0.6
"""The most bytes that compressed states may take, as a part of what they take otherwise."""


class Full(Exception):
    """There is no room for more states, neither in memory nor outside; the text says what ran out."""


class Space:
    """The states of one exploration, as spans of positions.

    `levels` has the spans of every level, `todo` those of the last level that are not expanded yet, and `fresh` those
    of the next level that are known so far. `budget` is the limit of memory in bytes, None for what the machine has.
    """

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
        self.table = Table(0)
        self.fresh: list[Span] = []
        self.starts = [w.first for w in self.workers]
        self.outside = False
        self.compressed: Compressed | None = None
        self._earlier = 0  # the states that no worker counts: those that were there when they were compressed
        self._before = 0  # the states of all levels but the next
        self._solid = list[list[Span]]()  # the levels of compressed states that the archive has for good
        self._solid_segments = 0
        self.archive: Archive | None = None
        self._home, self._own_home = folder, folder is None
        self._archived_spans: list[tuple[int, int, int]] = []  # what of memory is in the archive: start, end, where
        self._buffers = [np.zeros((0, self.words), dtype=np.uint64) for _ in self.workers]
        size = 1 << 14
        while size * FULLEST < 2 * program.most:
            size *= 2
        self._allocate(size)

    @property
    def states_in_memory(self) -> int:
        """The number of states in memory; outside, the number of candidates."""
        return self._earlier + sum(w.next - w.first for w in self.workers)

    @property
    def distinct(self) -> int:
        return self.archive.size if self.outside and self.archive else self.states_in_memory

    @property
    def state_bytes(self) -> float:
        """Bytes of memory per state, when the table is three quarters as full as it may be."""
        if self.compressed is not None:
            return self.compressed.bytes / self.states_in_memory
        return self.words * 8 + 8 / (FULLEST * 0.75)

    # levels

    def begin_level(self) -> None:
        last = len(self.levels) - 1
        self.todo = self.parts(last, CHUNK)
        self.fresh, self.starts = [], [w.next for w in self.workers]
        self._before = self.states_in_memory
        if self.compressed is not None:
            self.compressed.add_to(last + 1)

    def end_level(self) -> list[Span]:
        """The spans of the states that are new since `begin_level`."""
        if self.compressed is not None:
            return _compressed_level(len(self.levels), self.states_in_memory - self._before)
        if self.outside:
            self.flush()
        else:
            self.fresh += self._new()
        return _merge_spans(self.fresh)

    def _new(self) -> list[Span]:
        """The spans in memory of the states that are new since `begin_level`."""
        return [(s, w.next) for s, w in zip(self.starts, self.workers, strict=True) if w.next > s]

    def parts(self, level: int, length: int) -> deque[Span]:
        """The states of a level in spans for `place` and `rows`, each of at most `length` states in memory or files."""
        if self.compressed is None:
            return spans(self.levels[level], length)
        return deque((LEVEL * level + start, LEVEL * level + end) for start, end in self.compressed.parts())

    def place(self, worker: Worker, span: Span, *, todo: bool = False) -> Span:
        """Put the states of a span where the worker's kernels read them (SOURCE), and return their span there.

        With `todo` those that have been expanded may be left out.
        """
        if not self.outside and self.compressed is None:
            worker.set([(Job.SOURCE, address(self.states.array))])
            return span
        rows = self.rows(worker, span, todo=todo)
        worker.set([(Job.SOURCE, address(rows))])
        return 0, len(rows)

    def rows(self, worker: Worker, span: Span, *, todo: bool = False) -> Words:
        """The states of a span, one row each; not in arrays, only until the worker asks for the next span."""
        if self.compressed is not None:
            level, start = divmod(span[0], LEVEL)
            buckets = start, span[1] - LEVEL * level
            return self.compressed.gather(worker, buckets, level, False if todo else None)
        return self._from_archive(worker, span) if self.outside else self._from_memory(worker, span)

    def rest(self, worker: Worker, span: Span, expansions: int, of: int) -> Span | None:
        """What is left of a span when so many of the states that `place` gave have been expanded."""
        if self.compressed is not None:
            self.compressed.finish(worker, expansions)
            return span if expansions < of else None
        return (span[0] + expansions, span[1]) if expansions < of else None

    def _from_memory(self, _: Worker, span: Span) -> Words:
        return self.states.at(slice(*span))

    def _from_archive(self, worker: Worker, span: Span) -> Words:
        start, end = span
        at = self.workers.index(worker)
        if len(self._buffers[at]) < end - start:
            self._buffers[at] = np.zeros((max(BLOCK, end - start), self.words), dtype=np.uint64)
        rows: Words = self._buffers[at][: end - start]
        assert self.archive is not None
        self.archive.read(start, rows)
        return rows

    # room

    def make_room(self) -> None:
        """Give every worker a limit up to which it may add states; Full if there is no room.

        A full table is replaced by a larger one. If memory does not allow that, states are compressed, or move outside,
        or candidates are flushed.
        """
        few = len(self.workers) * 4 * (self.program.most + BATCH)
        while not self.outside and self._room() < few:
            if not (self._grow(few) if self.compressed is None else self._grow_compressed(few)):
                self._move_out()
        if self.outside and self._packed(few):
            self.flush()
            if self._packed(few):
                raise Full("the memory limit")
        quota = self._room() // len(self.workers)
        for worker in self.workers:
            if self.compressed is not None:
                self.compressed.direct(worker)
            worker.limit = min(worker.next + quota, worker.last)

    def _grow(self, few: int) -> bool:
        """Make the table larger, or compress the states; false if memory does not allow either."""
        size = self.table.size * (4 if self.table.size < 1 << 22 else 2)
        more = (size - self.table.size + few * self.words) * 8
        if self.table.room - self.states_in_memory < few and self._affords(more):
            self._allocate(size)
            self._index()
            return True
        self.table = Table(0)
        return self._compress(self._from_memory, self.levels, [*self.todo], [*self.fresh, *self._new()])

    def _grow_compressed(self, few: int) -> bool:
        assert self.compressed is not None
        if not self.compressed.make_room(self.states_in_memory, few):
            return False
        self.todo = self.parts(len(self.levels) - 1, CHUNK)
        return True

    def _room(self) -> int:
        if self.compressed is not None:
            return 0 if self.budget is None and self.is_crowded() else self.compressed.room(self.states_in_memory)
        room = self.table.room - self.states_in_memory
        if self.outside or self.budget is None:
            return 0 if self.is_crowded() and not self.outside else room
        return min(room, (self.budget - self._bytes_held()) // (8 * self.words))

    def _packed(self, few: int) -> bool:
        """Whether a worker has too little room to expand even one state."""
        least = self.program.most + BATCH
        return self._room() < few or any(w.last - w.next < least for w in self.workers)

    def _bytes_held(self) -> int:
        return self.holding(0 if self.compressed is not None else self.states_in_memory)

    def holding(self, states: int) -> int:
        """The bytes that the process holds with so many states in arrays."""
        compressed = self.compressed.bytes if self.compressed is not None else 0
        return self.base + compressed + 8 * (self.table.size + self.words * states)

    def _affords(self, more: int) -> bool:
        return not scarce(more) and (self.budget is None or self._bytes_held() + more <= self.budget)

    def _affords_compressed(self, size: int) -> bool:
        """Whether compressed states may take so many bytes."""
        return self._affords(size - (self.compressed.bytes if self.compressed is not None else 0))

    def is_crowded(self) -> bool:
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

    # in fewer bytes

    def _compress(self, read: Read, levels: list[list[Span]], todo: list[Span], fresh: list[Span]) -> bool:
        """Compress these states, `todo` being part of the last level; false if there is no room or it gains little."""
        last, sizes = len(levels) - 1, [_size(level) for level in levels]
        count = sum(sizes) + _size(fresh)
        states = Compressed(self.words, self.team, count, self._affords_compressed)
        most = WORTH * self.state_bytes * count
        if states.bytes > most or not self._affords(states.bytes):
            return False
        parts = [(todo, last, False), *((level, at, True) for at, level in enumerate(levels)), (fresh, last + 1, False)]
        for part, level, done in parts:  # of the last level, those that are not expanded come first, and stay so
            if not states.absorb(read, part, level, is_expanded=done) or states.bytes > most:
                return False
        assert states.states_added == count, f"{count} states have {states.states_added} roots"
        self.compressed, self._earlier = states, count
        self.states, self._archived_spans = States(self.words, len(self.workers), 1), []
        for worker in self.workers:
            worker.move((0, LEVEL))
        self.levels = [_compressed_level(level, size) for level, size in enumerate(sizes)]
        self.todo, self.fresh, self.starts = self.parts(last, CHUNK), [], [w.first for w in self.workers]
        self._before = sum(sizes)
        states.add_to(last + 1)
        return True

    def _dump(self) -> tuple[list[list[Span]], list[Span], list[Span]]:
        """Write compressed states to the archive: where the levels are, what of the last is not expanded, the next.

        Levels that are complete stay there. The other two are written again by the next dump.
        """
        assert self.compressed is not None
        states, state_archive, last = self.compressed, self._archive(), len(self.levels) - 1
        state_archive.drop(self._solid_segments)

        def write_level(level: int, is_expanded: bool | None = None) -> list[Span]:
            before = state_archive.size
            state_archive.append(states.blocks(level, is_expanded))
            return _merge_spans([(before, state_archive.size)])

        self._solid += [write_level(level) for level in range(len(self._solid), last)]
        self._solid_segments = len(state_archive.segments)
        done, todo, fresh = write_level(last, True), write_level(last, False), write_level(last + 1)
        return [*self._solid, _merge_spans([*done, *todo])], todo, fresh

    def spare(self) -> None:
        """Arrays for other states beside the compressed ones, which nothing is added to any more."""
        assert self.compressed is not None
        states, self._earlier = self.compressed, self.states_in_memory
        room = states.bytes // 2 if self.budget is None else self.budget - self._bytes_held()
        self._arrange(max(room, LEAST))

    def leave(self) -> bool:
        """Move to files, so that memory is free for other things; false if there is no room for the states."""
        try:
            self._move_out()
        except (Full, OSError):
            return False
        return True

    # outside

    def _archive(self) -> Archive:
        if self.archive is None:
            if self._home is None:
                self._home = Path(tempfile.mkdtemp(prefix="insync-"))
            self.archive = archive.fresh(self._home, self.words)
        return self.archive

    def _keep(self) -> None:
        """Write the states in memory that the archive does not have yet to the archive."""
        state_archive, base = self._archive(), self._archive().size
        ends = {w.first: w.first for w in self.workers}
        for start, end, _ in self._archived_spans:
            first = max(f for f in ends if f <= start)
            ends[first] = max(ends[first], end)
        new = [(ends[w.first], w.next) for w in self.workers if w.next > ends[w.first]]
        state_archive.append(self.states.at(slice(*span)) for span in new)
        for start, end in new:
            self._archived_spans.append((start, end, base))
            base += end - start

    def in_archive(self, positions: Iterable[Span]) -> list[Span]:
        """The positions in the archive of these spans, all of whose states it has."""
        if self.outside:
            return _merge_spans(positions)
        result: list[Span] = []
        for start, end in positions:
            for begin, until, base in self._archived_spans:
                low, high = max(start, begin), min(end, until)
                if low < high:
                    result.append((low - begin + base, high - begin + base))
        return _merge_spans(result)

    def _move_out(self) -> None:
        if self.compressed is not None:
            byte_count = self.compressed.bytes
            self.levels, todo, self.fresh = self._dump()
            self.todo = spans(todo, CHUNK)
            self.compressed, self._earlier = None, 0
            for worker in self.workers:
                worker.set([(Job.INSERT, 0)])
        else:
            byte_count = 8 * (self.table.size + self.words * self.states_in_memory)
            self._keep()
            self.levels = [self.in_archive(level) for level in self.levels]
            self.todo = spans(self.in_archive(self.todo), CHUNK)
            self.fresh = self.in_archive([*self.fresh, *self._new()])
        self._settle_outside(byte_count // 2 if self.budget is None else self.budget - self.base)

    def _settle_outside(self, room: int) -> None:
        """Use `room` bytes of memory for candidates from now on; Full if they are too few."""
        self.outside, self._archived_spans = True, []
        buffers = len(self.workers) * BLOCK * self.words * 8
        if room - buffers < LEAST:
            raise Full("the memory limit")
        self._arrange(room - buffers)

    def _arrange(self, room: int) -> None:
        """Use `room` bytes of memory for the array of states and its table."""
        most, size = max(_candidates(1 << bits, room, self.words) for bits in range(14, 40))
        self.states = States(self.words, len(self.workers), most // len(self.workers) + 1)
        for worker, bounds in zip(self.workers, self.states.bounds, strict=True):
            worker.move(bounds)
        self.starts = [w.first for w in self.workers]
        self._allocate(size)

    def flush(self) -> None:
        """Strike out the candidates that are in the archive, and append the others to it."""
        state_archive = self._archive()
        marks: Marks = np.zeros(len(self.states.array) // self.words, dtype=np.uint8)
        for worker in self.workers:
            worker.set([(Job.RESULTS, address(marks))])
        self.team.share(spans([(0, state_archive.size)], BLOCK), partial(self._strike))
        for worker in self.workers:
            worker.set([(Job.RESULTS, 0)])
        before = state_archive.size
        state_archive.append(self._survivors(marks))
        if state_archive.size > before:
            self.fresh.append((before, state_archive.size))
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
        """Write a checkpoint; no worker may be running."""
        if self.compressed is not None:
            levels, todo, fresh = self._dump()
        else:
            if self.outside:
                self.flush()
            else:
                self._keep()
            levels, todo = [self.in_archive(level) for level in self.levels], self.in_archive(self.todo)
            fresh = self.in_archive([*self.fresh, *([] if self.outside else self._new())])
        archive.save(self._archive(), {**content, "levels": levels, "todo": todo, "fresh": fresh})

    def restore(self, state_archive: Archive, levels: list[list[Span]], todo: list[Span], fresh: list[Span]) -> None:
        """Take the states of a checkpoint, into memory if they fit."""
        self.archive = state_archive
        size = self.table.size
        while size * FULLEST < state_archive.size * 1.2:
            size *= 2
        first, shift = self.workers[0], 0
        if (
            self._affords(8 * (size + self.words * state_archive.size))
            and state_archive.size < first.last - first.first
        ):
            state_archive.read(0, self.states.at(slice(first.first, first.first + state_archive.size)))
            first.next, shift = first.first + state_archive.size, first.first
            self._archived_spans = [(first.first, first.next, 0)]
            self._allocate(size)
            self._index()
        elif self._compress(self._from_archive, levels, todo, fresh):
            return
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
    """Bytes for candidates if there is no budget and the states of a checkpoint do not fit into memory."""
    return 1 << 28


def _candidates(size: int, room: int, words: int) -> tuple[int, int]:
    """How many candidates fit into `room` bytes together with a table of this size; and the size."""
    return min(int(size * FULLEST), (room - 8 * size) // (8 * words + 1)), size


def _size(positions: Iterable[Span]) -> int:
    return sum(end - start for start, end in positions)


def _compressed_level(level: int, states: int) -> list[Span]:
    """A level of so many compressed states."""
    return [(LEVEL * level, LEVEL * level + states)] if states else []


def _merge_spans(positions: Iterable[Span]) -> list[Span]:
    """The same positions, in order and in as few spans as possible."""
    result: list[Span] = []
    for start, end in sorted(p for p in positions if p[0] < p[1]):
        if result and result[-1][1] == start:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result
