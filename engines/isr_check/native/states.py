"""Reachable states for a search for invariants: a sample of them, and the properties that all of them satisfy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import numpy as np

from isr_check.engine import TYPE_OK, Limits
from isr_check.native.buffers import Words
from isr_check.native.layout import SLACKS
from isr_check.native.search import Means, Overflow, Search
from isr_check.native.space import BLOCK, Full
from isr_check.reference import State
from isr_lang import Instance

T = TypeVar("T")


class _StateSearch(Search):
    """A search for states only, without counterexamples."""

    def complete(self) -> bool:
        """Explore; true if all states were seen, or enough of them to decide every property."""
        try:
            return self._search() or self.is_decided()
        except Full:
            return False


def states(instance: Instance, limits: Limits, few: int) -> list[State]:
    """At most `few` of the states that an exploration within the limits reaches, spread evenly over all its levels."""

    def sample_states(search: _StateSearch) -> list[State]:
        search.complete()
        return _spread(search, few)

    return _explored(instance, (TYPE_OK,), limits, sample_states)


def values(instance: Instance, variables: Collection[str], limits: Limits) -> set[State] | None:
    """What these variables are, in the order of the state, in all reachable states; None if the limits end it."""
    places = [i for i, v in enumerate(instance.variables) if v.name in variables]

    def collect_values(search: _StateSearch) -> set[State] | None:
        if not search.complete() or search.is_decided():
            return None
        layout = search.layout
        mask = [0] * layout.words
        for cell, place in zip(layout.cells, layout.places, strict=True):
            mask[cell.word] |= cell.mask << cell.shift if place.variable in variables else 0
        kept, found = np.array(mask, dtype=np.uint64), set[tuple[int, ...]]()
        for rows in _rows(search):
            found.update(map(tuple, np.unique(rows & kept, axis=0).tolist()))
        return {tuple(state[i] for i in places) for state in map(layout.unpack, found)}

    return _explored(instance, (TYPE_OK,), limits, collect_values)


def holding(instance: Instance, property_names: tuple[str, ...], limits: Limits) -> tuple[list[str], bool]:
    """The properties that no state seen within the limits violates, and whether all states were seen."""

    def unviolated_properties(search: _StateSearch) -> tuple[list[str], bool]:
        complete = search.complete()
        return [
            name
            for bit, (name, _) in enumerate(search.names)
            if bit not in search.levels_by_check and name in search.question.requested_names
        ], complete

    return _explored(instance, property_names, limits, unviolated_properties)


def _explored(
    instance: Instance, property_names: tuple[str, ...], limits: Limits, look: Callable[[_StateSearch], T]
) -> T:
    for slack in SLACKS:
        search = _StateSearch(instance, property_names, slack, Means(), None)
        search.limits = limits
        try:
            return look(search)
        except Overflow:
            continue
        finally:
            search.space.close(keep=False)
    raise AssertionError("with the last slack an exploration ends")


def _spread(search: Search, few: int) -> list[State]:
    every = max(1, -(-search.distinct // few))
    sampled_states: list[State] = []
    position = 0
    for rows in _rows(search):
        for i in range(-position % every, len(rows), every):
            sampled_states.append(search.layout.unpack(tuple(int(w) for w in rows[i])))
        position += len(rows)
    return sampled_states


def _rows(search: Search) -> Iterator[Words]:
    """The packed states of all levels, a row each, block by block."""
    for level in range(len(search.levels)):
        for span in search.space.parts(level, BLOCK):
            yield search.space.rows(search.workers[0], span)
