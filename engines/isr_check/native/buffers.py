"""Memory that kernels work on: all states, the table of the visited set, and each worker's scratch."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isr_check.native.actions import PLACES
from isr_check.native.kernels import BATCH, TOGETHER, Job
from isr_check.native.machine import Kernel

Words: TypeAlias = NDArray[np.uint64]
Numbers: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.uint8]

NO_RESERVE = 0x4000
"""Linux's MAP_NORESERVE: the address space is reserved now, memory is taken when it is touched."""
FULLEST = 0.7
"""The greatest share of a table's entries that may be in use."""


def zeros(count: int) -> Words:
    """An array of zeros, in huge pages if Linux has them: they make random access faster."""
    size = max(mmap.PAGESIZE, count * 8)
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    if size >= 1 << 22 and hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(area, dtype=np.uint64)[:count]


def physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def scarce(more: int) -> bool:
    """Whether taking so many bytes more would leave less than 1/32 of the memory, or 256 MiB, to everybody else."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        known = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return known["MemAvailable"] - more < max(known["MemTotal"] // 32, 1 << 28)


def resident() -> int:
    """The bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


def address(array: Words | Numbers | Marks) -> int:
    return int(array.ctypes.data)


class States:
    """The array of states found, with a part for each worker (`bounds`); position 0 is not used."""

    def __init__(self, words: int, parts: int, size: int | None = None) -> None:
        self.words = words
        size = size or physical_memory() // (8 * words) + 1
        while True:
            try:
                self.array = zeros((parts * size + 1) * words)
                break
            except OSError:
                size //= 2
        self.bounds = [(1 + p * size, 1 + (p + 1) * size) for p in range(parts)]

    def at(self, positions: Numbers | slice) -> Words:
        """The words of states, one row each."""
        return self.array.reshape(-1, self.words)[positions]


class Table:
    """The open-addressing table of the visited set; its size is a power of two."""

    def __init__(self, size: int) -> None:
        self.entries = zeros(size)
        self.size = size

    def clear(self) -> None:
        self.entries[:] = 0

    @property
    def room(self) -> int:
        return int(self.size * FULLEST)


class Sizes(Protocol):
    """The sizes of the arrays that the kernels of a module need."""

    @property
    def words(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def most(self) -> int: ...
    @property
    def guards(self) -> int: ...


class Worker:
    """What one thread needs to run kernels: a job, counters, scratch arrays, and the bounds of its part of States."""

    def __init__(self, sizes: Sizes, actions: int, bounds: tuple[int, int]) -> None:
        self.move(bounds)
        self.expansions = 0
        cells, batch = TOGETHER * max(1, sizes.cells), TOGETHER * sizes.most + BATCH
        self.refusals = np.zeros(max(1, sizes.guards), dtype=np.int64)
        self.steps_by_action = np.zeros(max(1, actions), dtype=np.int64)
        self.report = np.zeros(PLACES, dtype=np.int64)
        self._scratch = [np.zeros(n, dtype=np.int64) for n in (cells, cells, batch * sizes.words, 2 * batch)]
        self.job = np.zeros(len(Job), dtype=np.int64)
        counters = (self.refusals, self.steps_by_action, self.report)
        self.job[[Job.REFUSED, Job.TAKEN, Job.REPORT]] = [address(a) for a in counters]
        self.job[[Job.CELLS, Job.NEW, Job.OUT, Job.HASHES]] = [address(a) for a in self._scratch]

    def move(self, bounds: tuple[int, int]) -> None:
        """Use another part of the states, which is empty."""
        self.first, self.last = bounds
        self.next = self.limit = self.first

    def set(self, fields: Sequence[tuple[Job, int]]) -> None:
        for place, value in fields:
            self.job[place] = value

    def run(self, kernel: Kernel, start: int, end: int, check_mask: int) -> int:
        """Run a kernel on the states start..end; it adds states up to `limit`. Returns where it stopped."""
        self.set([(Job.START, start), (Job.END, end), (Job.WANTED, check_mask)])
        self.set([(Job.LIMIT, self.limit), (Job.NEXT, self.next)])
        kernel(address(self.job))
        self.next = int(self.job[Job.NEXT])
        return int(self.job[Job.START])
