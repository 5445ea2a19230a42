"""What a task needs to run kernels, as plain data that travels to wherever the task runs; made once per process.

The module's text is in a file of the exploration's folder, which all tasks see. Its machine code is made where it
runs, for the processor there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np

from isr_check.native.kernels import Job, Program
from isr_check.native.machine import Machine
from isr_check.native.memory import Numbers, Words, Worker, address
from isr_pipeline import store
from isr_pipeline.spent import Spent

TEXT = "kernels.ll"


@attrs.frozen
class Kit:
    """`digest` names the text in the file TEXT of the folder; the numbers are sizes of what kernels work on.

    `ranged`: states may have values outside their declared ranges, which is to be looked for. `best`: whether the best
    machine code is worth making.
    """

    folder: str
    digest: str
    kernels: tuple[str, ...]
    words: int
    cells: int
    most: int
    guards: int
    actions: int
    buckets: int
    symmetric: bool
    ranged: bool
    best: bool = False


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def packed(program: Program, folder: Path, actions: int, buckets: int, *, symmetric: bool) -> Kit:
    """The kit for a module, whose text is written to the folder."""
    (folder / TEXT).write_text(program.text, encoding="utf-8")
    return Kit(
        str(folder),
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
    )


_machines: dict[str, Machine] = {}


def machine(kit: Kit) -> Machine:
    """The machine code of the kit; if that is worth the while, the best that can be made, as soon as it is."""
    made = _machines.get(kit.digest)
    if made is None:
        text = (Path(kit.folder) / TEXT).read_text(encoding="utf-8")
        assert digest(text) == kit.digest, f"{kit.folder} belongs to another exploration"
        _machines.clear()  # a process serves one exploration at a time
        made = _machines[kit.digest] = Machine(text, kit.kernels)
    if kit.best:
        made.improve()
    return made


class Hand:
    """One worker with the machine's kernels."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.machine = kit, machine(kit)
        self.worker, self.spent, self.sent = Worker(kit, kit.actions, (1, 1)), Spent(), 0

    def run(self, kernel: str, start: int, end: int, wanted: int = 0) -> int:
        return self.worker.run(self.machine.run[kernel], start, end, wanted)

    def source(self, rows: Words) -> None:
        assert rows.flags.c_contiguous, "kernels read states one after the other"
        self.worker.set([(Job.SOURCE, address(rows))])

    def read(self, level: int, bucket: int) -> Iterator[Words]:
        """The states of a level in a bucket, some at a time."""
        blocks = store.read_states(store.part(self.kit.folder, level, bucket), self.kit.words)
        while True:
            with self.spent.spending("files"):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def dealt(self, states: Words, start: int, end: int) -> tuple[Words, Numbers]:
        """These states in the order of their owners, and where in it those of each owner begin, and the end."""
        worker, counts = self.worker, np.zeros(self.kit.buckets, dtype=np.int64)
        before = worker.job.copy()
        out = np.empty((end - start, self.kit.words), dtype=np.uint64)
        worker.set([(Job.SOURCE, address(states)), (Job.OUT, address(out)), (Job.MASK, self.kit.buckets)])
        worker.set([(Job.RESULTS, address(counts))])
        with self.spent.spending("deal"):
            self.run("tally", start, end)
        bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        places = bounds[:-1].copy()
        worker.set([(Job.RESULTS, address(places))])
        with self.spent.spending("deal"):
            self.run("deal", start, end)
        worker.job[:] = before
        return out, bounds
