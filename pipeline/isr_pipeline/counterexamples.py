"""Counterexamples of a finished search, from the files of its levels: backwards by tasks, forwards in this process.

Backwards, each state is marked with the findings that it leads to in the remaining number of steps. The marked states
of a level are files, and targets are compared a few million at a time, so memory limits no counterexample. Forwards,
the least of the shortest paths is followed through the marked states, as in isr_check.native.traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as Folder

import attrs
import numpy as np

from isr_check.engine import Path
from isr_check.native.memory import Words
from isr_check.native.traces import Aim, Marked, forwards
from isr_check.reference import Evaluator
from isr_pipeline import store
from isr_pipeline.arrow_rows import FOUND, Batches, numbers
from isr_pipeline.search import Search
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

SLICE = 1 << 22
"""Targets that are compared at a time."""


def file_of(folder: str | Folder, level: int, bucket: int) -> Folder:
    """The file of the marked states of a level in a bucket: their words, then the mask."""
    return Folder(folder) / "trace" / f"level={level}" / f"bucket-{bucket:04d}.parquet"


def marked(folder: str | Folder, level: int, bucket: int, words: int) -> Iterator[Marked]:
    path = file_of(folder, level, bucket)
    for block in store.read_states(path, words + 1) if path.exists() else ():
        yield Marked(np.ascontiguousarray(block[:, :words]), np.ascontiguousarray(block[:, words]).view(np.int64))


@attrs.frozen
class MarkStates:
    """A task: mark the states of a level that lead to marked states of the next, or decide a check themselves."""

    spec: KernelSpec
    level: int
    on_states: int
    on_steps: int
    ahead: tuple[int, ...]

    def __call__(self, bucket: int) -> Batches:
        hand, kept, count = KernelWorker(self.spec), list[Words](), 0
        for block in hand.read(self.level, bucket):
            bits = np.zeros(len(block), dtype=np.int64)
            for targets in self._targets():
                aim = Aim(hand.machine.run, hand.worker, targets)
                hand.source(block)
                bits |= aim.masks(0, len(block), self.on_states, self.on_steps)
            (hits,) = bits.nonzero()
            kept.append(np.concatenate([block[hits], bits[hits].view(np.uint64)[:, None]], axis=1))
            count += len(hits)
        if count:
            store.write_states(file_of(self.spec.folder, self.level, bucket), np.concatenate(kept))
        yield numbers(bucket, FOUND, (count,))

    def _targets(self) -> Iterator[Marked]:
        """The marked states of the next level, SLICE at a time; one empty slice if there are none."""
        words = self.spec.words
        held, count = [Marked(np.zeros((0, words), dtype=np.uint64), np.zeros(0, dtype=np.int64))], 0
        for bucket in self.ahead:
            for more in marked(self.spec.folder, self.level + 1, bucket, words):
                if count and count + len(more.states) > SLICE:
                    yield _together(held)
                    held, count = [], 0
                held.append(more)
                count += len(more.states)
        yield _together(held)


def _together(parts: list[Marked]) -> Marked:
    return Marked(np.concatenate([p.states for p in parts]), np.concatenate([p.masks for p in parts]))


def paths(search: Search, found: dict[int, int]) -> dict[int, Path]:
    """For each decided check, by its bit, the least of the shortest paths to it; `found` has the levels of the bits."""
    if not found:
        return {}
    ahead: tuple[int, ...] = ()
    for level in range(max(found.values()), -1, -1):
        on_states, on_steps = search.question.masks([b for b, at in found.items() if at == level])
        commit = search.commits[level]
        runner = search.runner(commit.states)
        mark = MarkStates(search.task_spec(runner), level, on_states, on_steps, ahead)
        answers = runner.each(mark, sorted(commit.sizes))
        ahead = tuple(sorted(bucket for bucket, _, counted in answers if counted[0]))
    evaluator = Evaluator(search.instance)
    return {
        bit: forwards(search, evaluator, bit, level, _MarkedStates(search, bit).among) for bit, level in found.items()
    }


class _MarkedStates:
    """The marked states that lead to one finding, for the level that was asked for last."""

    def __init__(self, search: Search, bit: int) -> None:
        self.search, self.bit, self.level = search, bit, -1
        self.states: dict[int, Words] = {}

    def among(self, words: Words, level: int) -> bool:
        spec = self.search.spec
        if level != self.level:
            self.level, self.states = level, {}
        _, bounds = self.search.hand.by_owner(words.reshape(1, -1), 0, 1)
        bucket = int(np.searchsorted(bounds, 1)) - 1
        if bucket not in self.states:
            none = np.zeros((0, spec.words), dtype=np.uint64)
            blocks = [m.leading_to(self.bit) for m in marked(spec.folder, level, bucket, spec.words)]
            self.states[bucket] = np.concatenate([none, *blocks])
        return bool((self.states[bucket] == words).all(axis=1).any())
