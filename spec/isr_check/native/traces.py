"""Counterexamples from the levels alone: backwards by sets of states, then forwards along the least path.

One sweep backwards through the levels marks each state with the findings that it leads to in as many steps as
remain; a finding is one bit, so the sweep serves all of them. Forwards the reference evaluator takes, from
the first marked initial state, always the first step to a marked state of the next level. By symmetry it is
orbits that are marked, and the path forwards is one of real states: the same as without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isr_check.engine import Path
from isr_check.native.kernels import Job
from isr_check.native.memory import FULLEST, Numbers, Table, Words, address
from isr_check.native.space import BLOCK
from isr_check.native.team import spans
from isr_check.reference import Evaluator, Parameters, State

if TYPE_CHECKING:
    from isr_check.native.search import Search


APART = 62
"""A bit of a mask that stands for no check."""


class _Marked:
    """The states of one level that lead to findings, and to which."""

    def __init__(self, states: Words, masks: Numbers) -> None:
        self.states, self.masks = states, masks

    def leading_to(self, bit: int) -> Words:
        chosen: Words = self.states[(self.masks >> bit & 1) == 1]
        return chosen


def paths(search: Search, found: dict[int, int]) -> dict[int, Path]:
    """For each decided check, by its bit: the least of the shortest paths to it; `found` has their levels."""
    if not found:
        return {}
    marked = _backwards(search, found)
    evaluator = Evaluator(search.instance)
    return {bit: _forwards(search, evaluator, bit, level, marked) for bit, level in found.items()}


def least_path(search: Search, targets: Words, level: int) -> Path:
    """The least of the shortest paths to any of these states, all of them of one level."""
    marked = [_Marked(targets, np.full(len(targets), 1 << APART, dtype=np.int64))]
    for before in range(level - 1, -1, -1):
        marked.append(_mark_level(search, before, [], marked[-1]))
    return _forwards(search, Evaluator(search.instance), APART, level, marked[::-1])


def _backwards(search: Search, found: dict[int, int]) -> list[_Marked]:
    last = max(found.values())
    marked: list[_Marked] = []
    ahead = _Marked(np.zeros((0, search.layout.words), dtype=np.uint64), np.zeros(0, dtype=np.int64))
    for level in range(last, -1, -1):
        ahead = _mark_level(search, level, [b for b, at in found.items() if at == level], ahead)
        marked.append(ahead)
    return marked[::-1]


def _mark_level(search: Search, level: int, here: list[int], ahead: _Marked) -> _Marked:
    on_states = sum(1 << c.bit for c in search.on_states if c.bit in here)
    if search.marks.type_ok in here:
        on_states |= 1 << search.marks.type_ok
    on_steps = sum(1 << b for b in here) & ~on_states
    later = int(np.bitwise_or.reduce(ahead.masks)) if len(ahead.masks) else 0
    targets = np.zeros((len(ahead.states) + 1, search.layout.words), dtype=np.uint64)
    targets[1:] = ahead.states
    masks = np.concatenate([np.zeros(1, dtype=np.int64), ahead.masks])
    size = 16
    while size * FULLEST < len(targets):
        size *= 2
    table, worker = Table(size), search.workers[0]
    before = worker.job.copy(), worker.refused.copy(), worker.taken.copy(), worker.next
    worker.set([(Job.TABLE, address(table.entries)), (Job.MASK, size - 1)])
    worker.set([(Job.TARGETS, address(targets)), (Job.TARGET_MASKS, address(masks))])
    worker.set([(Job.STATES, address(targets))])
    worker.run(search.machine.run["index"], 1, len(targets), 0)
    rows: list[Words] = []
    kept: list[Numbers] = []
    for span in spans(search.levels[level], BLOCK):
        results = np.zeros(span[1] - span[0], dtype=np.int64)
        worker.set([(Job.RESULTS, address(results))])
        start, end = search.space.place(worker, span)
        worker.run(search.machine.run["mark"], start, end, on_steps)
        bits = results & (later | on_steps)
        if on_states:
            worker.run(search.machine.run["check"], start, end, on_states)
            bits |= results & on_states
        (hits,) = bits.nonzero()
        rows.append(search.space.rows(worker, span)[hits])
        kept.append(bits[hits])
    worker.job[:], worker.refused[:], worker.taken[:], worker.next = before
    return _Marked(np.concatenate(rows), np.concatenate(kept))


def _forwards(search: Search, evaluator: Evaluator, bit: int, level: int, marked: list[_Marked]) -> Path:
    def among(state: State, states: Words) -> bool:
        try:
            words = search.layout.pack(state)
        except AssertionError:
            return False
        return bool((states == search.representative(np.array(words, dtype=np.uint64))).all(axis=1).any())

    ways = [marked[i].leading_to(bit) for i in range(level + 1)]
    initial, state = next((p, s) for p, s in evaluator.initial_states() if among(s, ways[0]))
    steps: list[tuple[str, Parameters]] = []
    for way in ways[1:]:
        action, parameters, state = next(s for s in evaluator.successors(state) if among(s[2], way))
        steps.append((search.instance.actions[action].name, parameters))
    step = next((c for c in search.on_steps if c.bit == bit), None)
    if step is not None:
        for action, parameters, successor in evaluator.successors(state):
            if evaluator.holds(step.property, state, successor) is step.seek:
                steps.append((search.instance.actions[action].name, parameters))
                break
    return Path(initial, tuple(steps))
