"""Promises that break on the way of a stored trace, in the states in which the system was found to be.

A system that takes the steps of a counterexample conforms, and its state breaks the promise as the model's does. A
promise may read variables that the system does not tell. Of those the model's values are taken, and they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from isr_check.reference import Evaluator, State
from isr_lang import Instance, Property, reads

KINDS: Final = ("always", "step")
"""Of the promises that a state, or a step between two, can break."""


@attrs.frozen(kw_only=True)
class BrokenPromise:
    """A promise that was kept before this step, counted from 1 as the trace has it; 0 is the initial state.

    `from_system`: the variables that it reads and that the system tells. `from_model`: the others that it reads.
    """

    promise: str
    doc: str
    step: int
    step_text: str
    from_system: tuple[str, ...]
    from_model: tuple[str, ...]


class PromiseWatch:
    """The promises of a design that have not broken yet."""

    def __init__(self, instance: Instance, system_variables: Sequence[str]) -> None:
        self._evaluator, self._system_variables = Evaluator(instance), frozenset(system_variables)
        self._instance = instance
        self._remaining_promises = [p for p in instance.properties if p.kind in KINDS]

    def begins(self, state: State) -> list[BrokenPromise]:
        """The promises that the initial state breaks."""
        return list(
            self._breaches([p for p in self._remaining_promises if p.kind == "always"], state, None, 0, "the beginning")
        )

    def steps(self, old: State, new: State, step: int, step_text: str) -> list[BrokenPromise]:
        """The promises that break in this step, or in the state after it."""
        return list(self._breaches(list(self._remaining_promises), old, new, step, step_text))

    def _breaches(
        self, promises: Sequence[Property], old: State, new: State | None, step: int, step_text: str
    ) -> Iterator[BrokenPromise]:
        for p in promises:
            is_kept = (
                self._evaluator.holds(p, old, new)
                if p.kind == "step"
                else self._evaluator.holds(p, old if new is None else new)
            )
            if is_kept:
                continue
            self._remaining_promises.remove(p)
            read = reads(p.condition, self._instance)
            names = [v.name for v in self._instance.variables if v.name in read]
            yield BrokenPromise(
                promise=p.name,
                doc=p.summary,
                step=step,
                step_text=step_text,
                from_system=tuple(n for n in names if n in self._system_variables),
                from_model=tuple(n for n in names if n not in self._system_variables),
            )
