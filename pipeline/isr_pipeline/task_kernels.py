"""The kernels of a task: a description that is sent to the task, and a worker that runs the kernels there.

The text of the LLVM module is a file in the store of the exploration. Each process reads and compiles it once, for the
processor on which it runs. `TimeSpent` counts the processor time of a task by what it was spent on.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import attrs
import numpy as np

from isr_check.engine import BadCheckpoint
from isr_check.native.buffers import Numbers, Words, Worker, address
from isr_check.native.kernels import Job, Program
from isr_check.native.machine import Machine
from isr_pipeline import store
from isr_pipeline.locations import Location


@attrs.frozen
class KernelSpec:
    """What a task needs to know to run kernels, as plain data.

    `place` is the store of the exploration, `digest` that of the kernels' text there. The numbers are sizes of what the
    kernels work on. `checks_ranges`: states may hold values outside their declared ranges, which the kernels look for.
    `run` names the visited sets of this search on local disks, which are in the folder `scratch`; without one, where
    Spark tells its executors to put such files. `best`: whether to optimise the machine code.
    """

    place: Location
    digest: str
    kernels: tuple[str, ...]
    words: int
    cells: int
    most: int
    guards: int
    actions: int
    buckets: int
    symmetric: bool
    checks_ranges: bool
    run: str
    scratch: str = ""
    best: bool = False


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def kernel_spec(program: Program, place: Location, actions: int, buckets: int, *, symmetric: bool) -> KernelSpec:
    """Write the text of a module to the store, and describe its kernels."""
    (place / store.KERNELS).put(program.text.encode())
    return KernelSpec(
        place,
        digest(program.text),
        program.kernels,
        program.words,
        program.cells,
        program.most,
        program.guards,
        actions,
        buckets,
        symmetric,
        program.layout.slack.number > 0,
        f"{store.new_name():016x}",
    )


_machines: dict[str, Machine] = {}


def machine(spec: KernelSpec) -> Machine:
    """The machine code, compiled once in a process; the optimised code if `best`, as soon as it is made."""
    compiled_machine = _machines.get(spec.digest)
    if compiled_machine is None:
        text = _text(spec)
        _machines.clear()  # a process serves one exploration at a time
        compiled_machine = _machines[spec.digest] = Machine(text, spec.kernels)
    if spec.best:
        compiled_machine.improve()
    return compiled_machine


def _text(spec: KernelSpec) -> str:
    try:
        text = (spec.place / store.KERNELS).read().decode()
    except FileNotFoundError:
        raise BadCheckpoint(
            f"{spec.place} is not there for a task: all executors must reach it, as they do a store (--store s3://...)"
        ) from None
    if digest(text) != spec.digest:
        raise BadCheckpoint(f"{spec.place} has the kernels of another exploration")
    return text


class KernelWorker:
    """Runs kernels in this process, and counts the time."""

    def __init__(self, spec: KernelSpec) -> None:
        self.spec, self.machine = spec, machine(spec)
        self.worker, self.time_spent, self.sent_count = Worker(spec, spec.actions, (1, 1)), TimeSpent(), 0

    def run(self, kernel: str, start: int, end: int, check_mask: int = 0) -> int:
        return self.worker.run(self.machine.run[kernel], start, end, check_mask)

    def source(self, rows: Words) -> None:
        assert rows.flags.c_contiguous, "kernels read states one after the other"
        self.worker.set([(Job.SOURCE, address(rows))])

    def read(self, level: int, bucket: int, name: int) -> Iterator[Words]:
        """The states of a level in a bucket, from the file of that name, in blocks."""
        blocks = store.read_states(store.part(self.spec.place, level, bucket, name), self.spec.words)
        while True:
            with self.time_spent.measure("files"):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def by_owner(self, states: Words, start: int, end: int) -> tuple[Words, Numbers]:
        """These states sorted by the buckets that own them, and the bounds of each bucket in that order."""
        worker, counts = self.worker, np.zeros(self.spec.buckets, dtype=np.int64)
        before = worker.job.copy()
        out = np.empty((end - start, self.spec.words), dtype=np.uint64)
        worker.set([(Job.SOURCE, address(states)), (Job.OUT, address(out)), (Job.MASK, self.spec.buckets)])
        worker.set([(Job.RESULTS, address(counts))])
        with self.time_spent.measure("deal"):
            self.run("tally", start, end)
        bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        places = bounds[:-1].copy()
        worker.set([(Job.RESULTS, address(places))])
        with self.time_spent.measure("deal"):
            self.run("deal", start, end)
        worker.job[:] = before
        return out, bounds


ON = ("expand", "deal", "absorb", "check", "files", "remake", "task")
"""The kinds of work in a TimeSpent: kernels by purpose, files of the level, opening visited sets or making them again,
and the whole task, which includes handing over rows."""


class TimeSpent:
    """Nanoseconds of processor time by kind of work, since the object was made."""

    def __init__(self) -> None:
        self._start = time.process_time_ns()
        self.on: dict[str, int] = {on: 0 for on in ON}

    @contextmanager
    def measure(self, on: str) -> Generator[None, None, None]:
        start = time.process_time_ns()
        try:
            yield
        finally:
            self.on[on] += time.process_time_ns() - start

    def numbers(self) -> list[int]:
        self.on["task"] = time.process_time_ns() - self._start
        return list(self.on.values())


def seconds(reports: list[Numbers]) -> dict[str, float]:
    """The seconds in all reports together, by kind of work."""
    total = np.array(reports, dtype=np.int64).reshape(-1, len(ON)).sum(axis=0)
    return {on: round(int(ns) / 1e9, 6) for on, ns in zip(ON, total, strict=True)}
