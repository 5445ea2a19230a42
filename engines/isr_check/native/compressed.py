"""States in fewer bytes: the memory of the visited set that compressed_layout.py describes, and how it grows.

A larger table takes the place of the smaller one: the segments move from the last to the first, each to where it stands
in the larger table, and only one of them is in memory twice. Where a dictionary is full, its words get new numbers, and
all roots are made anew on the way. That happens while no worker runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from isr_check.native.buffers import Numbers, Words, Worker, address, physical_memory, zeros
from isr_check.native.compressed_layout import BUCKET, EXPANDED_BIT, KERNELS, SEGMENTS, Field, Roots, Shape, Task, field
from isr_check.native.kernels import Job
from isr_check.native.machine import Machine
from isr_check.native.team import Span, Team, spans

FULLEST = 0.9
"""The greatest share of a table's entries that may be in use."""
LOOSE = 0.75
"""The same of a dictionary's, as long as the bits of an entry allow it a larger one."""
GROWTHS = (1.5, 1.25, 1.1)
"""By how much a table grows: the first of these that memory allows."""
SMALLEST = 1 << 11
"""The fewest buckets of a segment: so many that no segment is much fuller than the others."""
FEWEST = 1 << 10
"""The smallest dictionary."""
PLENTY = 1 << 17
"""A dictionary so large that it is seldom full; the bits of an entry that are left are used for that."""
LEVELS = 10
"""The bits of an entry that are then left for levels."""
BUCKETS = 1 << 13
"""How many buckets one call of a kernel reads."""
ROWS = 1 << 11
"""How many states one call of a kernel takes in."""

Read = Callable[[Worker, Span], Words]
"""A function that has the states of a span, one row each, until the worker asks for others."""


class Compressed:
    """States as roots, with room for `expected` of them. `affords` says whether they may take so many bytes."""

    def __init__(self, words: int, team: Team, expected: int, affords: Callable[[int], bool]) -> None:
        self.words, self.team, self.affords = words, team, affords
        self.machine = Machine(Roots(words).text(), (*KERNELS, "insert"))
        self.machine.improve()
        self.shape = np.zeros(field(words, Field.WORDS), dtype=np.int64)
        self.segment = max(SMALLEST, int((expected + 2 * ROWS) / (SEGMENTS * BUCKET * FULLEST)) + 1)
        self.level, self.is_expanded = 0, False
        size = physical_memory() // 8
        while True:
            try:
                self.entries = zeros(size)
                break
            except OSError:
                size //= 2
        self.dictionaries, self._full = [zeros(size) for size in self._sizes(ROWS, LOOSE)], LOOSE
        self._describe()
        workers = len(team.workers)
        self._tasks = [np.zeros(len(Task), dtype=np.int64) for _ in range(workers)]
        self._rows = [np.zeros((BUCKETS * BUCKET, words), dtype=np.uint64) for _ in range(workers)]
        self._slots = [np.zeros(BUCKETS * BUCKET, dtype=np.int64) for _ in range(workers)]
        self._added = [0] * workers

    # sizes

    @property
    def buckets(self) -> int:
        return SEGMENTS * self.segment

    @property
    def bytes(self) -> int:
        """Bytes of memory of the table and the dictionaries."""
        return self._bytes(self.segment, [len(d) for d in self.dictionaries])

    def _bytes(self, segment: int, sizes: list[int]) -> int:
        return 8 * (BUCKET * segment * SEGMENTS + sum(sizes))

    @property
    def states_added(self) -> int:
        """How many states `absorb` has added."""
        return sum(self._added)

    def _fits(self, sizes: list[int], levels: int) -> bool:
        """Whether roots by dictionaries of these sizes, with so many bits for levels, leave an entry's highest bit."""
        return sum(size.bit_length() - 1 for size in sizes) + levels <= 63

    def _sizes(self, least: int, full: float) -> list[int]:
        """The sizes of dictionaries that will not be fuller than that with so many words more."""
        sizes = list[int]()
        for w in range(self.words):
            size, count = FEWEST, int(self.shape[field(w, Field.COUNT)])
            while size * full < count + least:
                size *= 2
            sizes.append(size)
        while (small := min(sizes)) < PLENTY and self._fits([*sizes, 2], LEVELS):
            sizes[sizes.index(small)] = 2 * small
        return sizes

    def room(self, states: int) -> int:
        """How many states may be added to so many without making room."""
        sizes = [len(d) for d in self.dictionaries]
        if not self._fits(sizes, self._level_bits):
            return 0
        words = (int(size * self._full) - int(self.shape[field(w, Field.COUNT)]) for w, size in enumerate(sizes))
        return min(int(BUCKET * self.buckets * FULLEST) - states, *words)

    @property
    def _level_bits(self) -> int:
        return (self.level + 1).bit_length()

    def make_room(self, states: int, least: int) -> bool:
        """Room for at least so many more states; false if memory or the bits of an entry do not allow it."""
        sizes, self._full = self._sizes(least, LOOSE / 1.5), LOOSE
        if not self._fits(sizes, self._level_bits):
            sizes, self._full = self._sizes(least, FULLEST), FULLEST
            if not self._fits(sizes, self._level_bits):
                return False
        needed = int((states + least) / (SEGMENTS * BUCKET * FULLEST)) + 1
        grown = [max(needed, int(self.segment * by)) for by in GROWTHS]
        for segment in grown if needed > self.segment else [self.segment]:
            moving = 8 * BUCKET * self.segment
            if self.affords(self._bytes(segment, sizes) + moving):
                self._grow(segment, sizes)
                return True
        return False

    def _grow(self, segment: int, sizes: list[int]) -> None:
        """Make the table and the dictionaries as large as this."""
        old, before = self.shape.copy(), self.dictionaries
        new_numbers: list[Numbers] = []
        self.dictionaries = list[Words]()
        for w, (dictionary, size) in enumerate(zip(before, sizes, strict=True)):
            if size != len(dictionary):
                dictionary, numbers = self._resize_dictionary(w, dictionary, size)
                old[field(w, Field.MOVED)] = address(numbers)
                new_numbers.append(numbers)
            self.dictionaries.append(dictionary)
        smaller, self.segment = BUCKET * self.segment, segment
        self._describe()
        larger_segment = BUCKET * segment
        for s in range(SEGMENTS - 1, -1, -1):
            moving = self.entries[s * smaller : (s + 1) * smaller].copy()
            self.entries[s * larger_segment : (s + 1) * larger_segment] = 0
            self.team.share(spans([(0, smaller)], BUCKETS * BUCKET), partial(self._rehash, old, moving))

    def _rehash(self, old: Numbers, moving: Words, worker: Worker, span: Span) -> None:
        self._run(worker, "rehash", {Task.OLD: address(old), Task.SOURCE: address(moving)}, span)

    def _resize_dictionary(self, w: int, dictionary: Words, size: int) -> tuple[Words, Numbers]:
        """A dictionary of another size with the same words, and their numbers in it by those that they had."""
        other, numbers = zeros(size), np.zeros(len(dictionary), dtype=np.int64)
        alone = np.zeros(field(1, Field.WORDS), dtype=np.int64)
        alone[[field(0, Field.WORDS), field(0, Field.MASK)]] = address(other), size - 1
        task = {Task.SHAPE: address(alone), Task.SOURCE: address(dictionary), Task.OUT: address(numbers)}
        self._run(self.team.workers[0], "renumber", task, (0, len(dictionary)))
        assert alone[field(0, Field.COUNT)] == self.shape[field(w, Field.COUNT)], "a word was lost, or is twice there"
        return other, numbers

    # what kernels read

    def _describe(self) -> None:
        """Write the shape, as segments and dictionaries are now."""
        shift = 0
        for w, dictionary in enumerate(self.dictionaries):
            bits = len(dictionary).bit_length() - 1
            self.shape[field(w, Field.WORDS)] = address(dictionary)
            self.shape[field(w, Field.MASK)] = len(dictionary) - 1
            self.shape[field(w, Field.SHIFT)] = shift
            shift += bits
        self.shape[Shape.ROOTS] = (1 << min(shift, 63)) - 1  # of more bits there is no room, and nothing is added
        self.shape[Shape.SEGMENT] = self.segment
        self.add_to(self.level, is_expanded=self.is_expanded)

    def _stage(self, level: int) -> int:
        """The bits of an entry of this level, without those of its root and whether it is done."""
        return (level + 1) << int(self.shape[Shape.ROOTS]).bit_length()

    def add_to(self, level: int, *, is_expanded: bool = False) -> None:
        """States that are new from now on are of this level; `is_expanded` if they are expanded already."""
        self.level, self.is_expanded = level, is_expanded
        if self._fits([len(d) for d in self.dictionaries], self._level_bits):
            self.shape[Shape.STAGE] = self._stage(level) - (EXPANDED_BIT if is_expanded else 0)

    def direct(self, worker: Worker) -> None:
        """Let the worker's kernels add states here."""
        worker.set([(Job.INSERT, self.machine.address("insert")), (Job.STATES, address(self.shape))])
        worker.set([(Job.TABLE, address(self.entries)), (Job.MASK, self.buckets)])

    def _run(self, worker: Worker, kernel: str, fields: dict[Task, int], span: Span) -> int:
        task = self._tasks[self.team.workers.index(worker)]
        task[[Task.SHAPE, Task.TABLE, Task.BUCKETS]] = address(self.shape), address(self.entries), self.buckets
        task[[Task.START, Task.END, Task.COUNT]] = *span, 0
        for place, value in fields.items():
            task[place] = value
        self.machine.run[kernel](address(task))
        return int(task[Task.COUNT])

    # states

    def absorb(self, read: Read, ranges: Iterable[Span], level: int, *, is_expanded: bool) -> bool:
        """Add the states of these spans as a level's; false if there was no room."""
        self.add_to(level, is_expanded=is_expanded)
        todo = spans(ranges, ROWS)
        while todo:
            if self.room(self.states_added) < ROWS and not self.make_room(self.states_added, ROWS):
                return False
            room, part = self.room(self.states_added), deque[Span]()
            while todo and (size := todo[0][1] - todo[0][0]) <= room:
                part.append(todo.popleft())
                room -= size
            self.team.share(part, partial(self._absorb, read))
        return True

    def _absorb(self, read: Read, worker: Worker, span: Span) -> None:
        rows = read(worker, span)
        added = self._run(worker, "absorb", {Task.SOURCE: address(rows)}, (0, len(rows)))
        self._added[self.team.workers.index(worker)] += added

    def parts(self) -> Iterator[Span]:
        """The buckets of the table, in spans that `gather` takes."""
        yield from spans([(0, self.buckets)], BUCKETS)

    def gather(self, worker: Worker, span: Span, level: int, is_expanded: bool | None = None) -> Words:
        """The states of a level in these buckets, one row each, until the worker asks for others.

        `is_expanded` chooses those that are expanded, or those that are not.
        """
        at = self.team.workers.index(worker)
        wanted = self._stage(level) - (EXPANDED_BIT if is_expanded else 0)
        chosen = (-1 if is_expanded is not None else EXPANDED_BIT - 1) & ~int(self.shape[Shape.ROOTS])
        found = {Task.OUT: address(self._rows[at]), Task.SLOTS: address(self._slots[at])}
        count = self._run(worker, "gather", {**found, Task.FILTER: chosen, Task.WANTED: wanted}, span)
        rows: Words = self._rows[at][:count]
        return rows

    def finish(self, worker: Worker, count: int) -> None:
        """Set the first so many of the states that the worker has gathered done."""
        slots = self._slots[self.team.workers.index(worker)]
        self._run(worker, "finish", {Task.SLOTS: address(slots)}, (0, count))

    def blocks(self, level: int, is_expanded: bool | None = None) -> Iterator[Words]:
        """All states that `gather` chooses, by the first worker."""
        for span in self.parts():
            rows = self.gather(self.team.workers[0], span, level, is_expanded)
            if len(rows):
                yield rows
