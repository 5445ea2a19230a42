"""Counterexamples from the levels alone: backwards by sets of states, then forwards along the least path.

A search keeps no parents. So one sweep backwards through the levels marks each state with the findings that it reaches
in exactly the remaining number of steps. A finding is one bit, so one sweep serves all findings. Forwards, the
reference evaluator begins at the first marked initial state and always takes the first step to a marked state of the
next level. With symmetry orbits are marked, but the path forwards has real states: it is the same as without symmetry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from isr_check.engine import Path
from isr_check.native.actions import Check
from isr_check.native.buffers import FULLEST, Numbers, Table, Words, Worker, address
from isr_check.native.kernels import Job
from isr_check.native.layout import Layout
from isr_check.native.machine import Kernel
from isr_check.native.search import Search
from isr_check.native.space import BLOCK
from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance

APART = 62
"""A mask bit that is no check's, for paths to given states."""


class MarkedLevel:
    """States of one level, and for each a mask of the findings that it leads to."""

    def __init__(self, states: Words, masks: Numbers) -> None:
        self.states, self.masks = states, masks

    def leading_to(self, bit: int) -> Words:
        chosen: Words = self.states[(self.masks >> bit & 1) == 1]
        return chosen


class Packed(Protocol):
    """What `forwards` needs of a search: the instance, its packed layout, and representatives."""

    @property
    def instance(self) -> Instance: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def on_steps(self) -> list[Check]: ...
    def representative(self, words: Words) -> Words: ...


class Aim:
    """A worker's kernels, prepared to find steps to the states in `ahead`."""

    def __init__(self, run: Mapping[str, Kernel], worker: Worker, ahead: MarkedLevel) -> None:
        self.run, self.worker = run, worker
        self.later = int(np.bitwise_or.reduce(ahead.masks)) if len(ahead.masks) else 0
        self._targets = np.zeros((len(ahead.states) + 1, ahead.states.shape[1]), dtype=np.uint64)
        self._targets[1:] = ahead.states
        self._masks = np.concatenate([np.zeros(1, dtype=np.int64), ahead.masks])
        size = 16
        while size * FULLEST < len(self._targets):
            size *= 2
        self._table = Table(size)
        worker.set([(Job.TABLE, address(self._table.entries)), (Job.MASK, size - 1)])
        worker.set([(Job.TARGETS, address(self._targets)), (Job.TARGET_MASKS, address(self._masks))])
        worker.set([(Job.STATES, address(self._targets))])
        worker.run(run["index"], 1, len(self._targets), 0)

    def masks(self, start: int, end: int, on_states: int, on_steps: int) -> Numbers:
        """For each of the states start..end of SOURCE, a mask of the findings that it decides or leads to."""
        results = np.zeros(end - start, dtype=np.int64)
        self.worker.set([(Job.RESULTS, address(results))])
        self.worker.run(self.run["mark"], start, end, on_steps)
        bits: Numbers = results & (self.later | on_steps)
        if on_states:
            self.worker.run(self.run["check"], start, end, on_states)
            bits |= results & on_states
        return bits


def paths(search: Search, levels_by_check: dict[int, int]) -> dict[int, Path]:
    """By the bit of each decided check the least shortest path to it; `levels_by_check` has the checks' levels."""
    if not levels_by_check:
        return {}
    marked = _backwards(search, levels_by_check)
    evaluator = Evaluator(search.instance)
    return {bit: _forwards(search, evaluator, bit, level, marked) for bit, level in levels_by_check.items()}


def least_path(search: Search, targets: Words, level: int) -> Path:
    """The least of the shortest paths to any of these states, which are all of one level."""
    marked = [MarkedLevel(targets, np.full(len(targets), 1 << APART, dtype=np.int64))]
    for before in range(level - 1, -1, -1):
        marked.append(_mark_level(search, before, [], marked[-1]))
    return _forwards(search, Evaluator(search.instance), APART, level, marked[::-1])


def _backwards(search: Search, levels_by_check: dict[int, int]) -> list[MarkedLevel]:
    last = max(levels_by_check.values())
    marked_levels: list[MarkedLevel] = []
    ahead = MarkedLevel(np.zeros((0, search.layout.words), dtype=np.uint64), np.zeros(0, dtype=np.int64))
    for level in range(last, -1, -1):
        ahead = _mark_level(search, level, [b for b, at in levels_by_check.items() if at == level], ahead)
        marked_levels.append(ahead)
    return marked_levels[::-1]


def _mark_level(search: Search, level: int, here: list[int], ahead: MarkedLevel) -> MarkedLevel:
    on_states, on_steps = search.question.masks(here)
    worker = search.workers[0]
    before = worker.job.copy(), worker.refusals.copy(), worker.steps_by_action.copy(), worker.next
    aim = Aim(search.machine.run, worker, ahead)
    rows: list[Words] = []
    masks: list[Numbers] = []
    for span in search.space.parts(level, BLOCK):
        bits = aim.masks(*search.space.place(worker, span), on_states, on_steps)
        (hits,) = bits.nonzero()
        rows.append(search.space.rows(worker, span)[hits])
        masks.append(bits[hits])
    worker.job[:], worker.refusals[:], worker.steps_by_action[:], worker.next = before
    return MarkedLevel(np.concatenate(rows), np.concatenate(masks))


def _forwards(search: Search, evaluator: Evaluator, bit: int, level: int, marked_levels: list[MarkedLevel]) -> Path:
    ways = [marked_levels[i].leading_to(bit) for i in range(level + 1)]

    def among(words: Words, at: int) -> bool:
        return bool((ways[at] == words).all(axis=1).any())

    return forwards(search, evaluator, bit, level, among)


def forwards(packed: Packed, evaluator: Evaluator, bit: int, level: int, among: Callable[[Words, int], bool]) -> Path:
    """The least path to a state or step that decides the check; `among` says whether a state of a level is marked."""

    def leads(state: State, at: int) -> bool:
        try:
            words = packed.layout.pack(state)
        except AssertionError:
            return False
        return among(packed.representative(np.array(words, dtype=np.uint64)), at)

    names = [a.name for a in packed.instance.actions]
    initial, state = next((p, s) for p, s in evaluator.initial_states() if leads(s, 0))
    steps: list[tuple[str, Parameters]] = []
    for at in range(1, level + 1):
        action, parameters, state = next(s for s in evaluator.successors(state) if leads(s[2], at))
        steps.append((names[action], parameters))
    step = next((c for c in packed.on_steps if c.bit == bit), None)
    if step is not None:
        for action, parameters, successor in evaluator.successors(state):
            if evaluator.holds(step.property, state, successor) is step.seek and evaluator.in_range(successor):
                steps.append((names[action], parameters))
                break
    return Path(initial, tuple(steps))
