"""Counterexamples of a finished search, from the files of its levels: backwards by tasks, forwards in this process.

Backwards, each state is marked with the findings that it leads to in the remaining number of steps. The marked states
of a level are files, and targets are compared a few million at a time, so memory limits no counterexample. Forwards,
the least of the shortest paths is followed through the marked states, as in isr_check.native.traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import numpy as np

from isr_check.engine import Path
from isr_check.native.buffers import Words
from isr_check.native.traces import Aim, MarkedLevel, forwards
from isr_check.reference import Evaluator
from isr_pipeline import store
from isr_pipeline.arrow_rows import FINDINGS, Answer, Batches, numbers
from isr_pipeline.locations import Location
from isr_pipeline.search import Search
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

SLICE = 1 << 22
"""Targets that are compared at a time."""


Names = Mapping[int, int]
"""The names of the files of a level, by bucket."""


def file_of(place: Location, level: int, bucket: int, name: int) -> Location:
    """The file of the marked states of a level in a bucket: their words, then the mask."""
    return store.part(place, level, bucket, name, "trace")


def marked_states(place: Location, level: int, bucket: int, names: Names, words: int) -> Iterator[MarkedLevel]:
    for block in store.read_states(file_of(place, level, bucket, names[bucket]), words + 1) if bucket in names else ():
        yield MarkedLevel(np.ascontiguousarray(block[:, :words]), np.ascontiguousarray(block[:, words]).view(np.int64))


@attrs.frozen
class MarkStates:
    """A task: mark the states of a level that lead to marked states of the next, or decide a check themselves."""

    spec: KernelSpec
    level: int
    on_states: int
    on_steps: int
    names: Names
    ahead: Names

    def __call__(self, bucket: int) -> Batches:
        hand, marked_blocks, count = KernelWorker(self.spec), list[Words](), 0
        for block in hand.read(self.level, bucket, self.names[bucket]):
            bits = np.zeros(len(block), dtype=np.int64)
            for targets in self._targets():
                aim = Aim(hand.machine.run, hand.worker, targets)
                hand.source(block)
                bits |= aim.masks(0, len(block), self.on_states, self.on_steps)
            (hits,) = bits.nonzero()
            marked_blocks.append(np.concatenate([block[hits], bits[hits].view(np.uint64)[:, None]], axis=1))
            count += len(hits)
        name = store.new_name()
        if count:
            store.write_states(file_of(self.spec.place, self.level, bucket, name), np.concatenate(marked_blocks))
        yield numbers(bucket, FINDINGS, (count, name))

    def _targets(self) -> Iterator[MarkedLevel]:
        """The marked states of the next level, SLICE at a time; one empty slice if there are none."""
        words = self.spec.words
        batch, count = [MarkedLevel(np.zeros((0, words), dtype=np.uint64), np.zeros(0, dtype=np.int64))], 0
        for bucket in self.ahead:
            for more in marked_states(self.spec.place, self.level + 1, bucket, self.ahead, words):
                if count and count + len(more.states) > SLICE:
                    yield _together(batch)
                    batch, count = [], 0
                batch.append(more)
                count += len(more.states)
        yield _together(batch)


def _together(parts: list[MarkedLevel]) -> MarkedLevel:
    return MarkedLevel(np.concatenate([p.states for p in parts]), np.concatenate([p.masks for p in parts]))


def paths(search: Search, levels_by_check: dict[int, int]) -> dict[int, Path]:
    """By the bit of each decided check the least of the shortest paths to it; `levels_by_check` has the levels."""
    if not levels_by_check:
        return {}
    ahead: Names = {}
    at_level = dict[int, Names]()
    for level in range(max(levels_by_check.values()), -1, -1):
        on_states, on_steps = search.question.masks([b for b, at in levels_by_check.items() if at == level])
        commit = search.commits[level]
        runner = search.runner(commit.states)
        mark = MarkStates(search.task_spec(runner), level, on_states, on_steps, commit.names, ahead)
        answers = runner.each(mark, sorted(commit.sizes), f"counterexamples, level {level}")
        ahead = {bucket: int(counted[1]) for bucket, _, counted in sorted(answers, key=_bucket) if counted[0]}
        at_level[level] = ahead
    evaluator = Evaluator(search.instance)
    return {
        bit: forwards(search, evaluator, bit, level, _MarkedStates(search, bit, at_level).among)
        for bit, level in levels_by_check.items()
    }


def _bucket(answer: Answer) -> int:
    return answer[0]


class _MarkedStates:
    """The marked states that lead to one finding, for the level that was asked for last."""

    def __init__(self, search: Search, bit: int, names: Mapping[int, Names]) -> None:
        self.search, self.bit, self.names, self.level = search, bit, names, -1
        self.states: dict[int, Words] = {}

    def among(self, words: Words, level: int) -> bool:
        spec = self.search.spec
        if level != self.level:
            self.level, self.states = level, {}
        _, bounds = self.search.hand.by_owner(words.reshape(1, -1), 0, 1)
        bucket = int(np.searchsorted(bounds, 1)) - 1
        if bucket not in self.states:
            none = np.zeros((0, spec.words), dtype=np.uint64)
            here = marked_states(spec.place, level, bucket, self.names[level], spec.words)
            blocks = [m.leading_to(self.bit) for m in here]
            self.states[bucket] = np.concatenate([none, *blocks])
        return bool((self.states[bucket] == words).all(axis=1).any())
