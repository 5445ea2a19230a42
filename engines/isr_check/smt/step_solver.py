"""One solver for many questions about one step: which goals can fail under which hypotheses."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from isr_check.smt.processor_time import check
from isr_check.smt.solver import MEGABYTES
from isr_check.smt.terms.logic import Term, Truth, Whole, z3

Read = Callable[[Truth | Whole], bool | int]


@attrs.frozen(eq=False)
class SolverAnswer:
    """The answer: 'unsat' with the assumptions that it needs, 'sat' with the values found, or 'unknown'."""

    status: str
    used_assumptions: tuple[str, ...] = ()
    value: Read | None = None


class Incremental:
    """A solver that asserts `always` once. Assumptions have names, and each question says which of them it makes."""

    def __init__(self, always: Sequence[Term], seconds: float) -> None:
        self.solver: Any = z3.Solver()
        self.solver.set("max_memory", MEGABYTES)
        self.seconds = seconds
        for x in always:
            self.solver.add(x)
        self._names: dict[str, Any] = {}

    def assume(self, assumptions: Mapping[str, Term]) -> None:
        """Add assumptions by name."""
        for name, x in assumptions.items():
            self._names[name] = z3.Bool(f"{name}?")
            self.solver.add(z3.Implies(self._names[name], x))

    def fails(self, goals: Collection[Term], assuming: Collection[str]) -> SolverAnswer:
        """Whether one of the goals can fail under these assumptions: 'sat' if it can, 'unsat' if none can."""
        self.solver.push()
        self.solver.add(z3.Not(z3.And(list(goals))))
        found = self._check(assuming)
        self.solver.pop()
        return found

    def _check(self, assuming: Collection[str]) -> SolverAnswer:
        status = check(self.solver, self.seconds, [self._names[n] for n in assuming])
        if status == "sat":
            model = self.solver.model()
            return SolverAnswer(status, value=lambda t: _read_model(model, t))
        core = {str(c)[:-1] for c in self.solver.unsat_core()} if status == "unsat" else set[str]()
        return SolverAnswer(status, tuple(n for n in assuming if n in core))

    def smaller_core(self, goal: Term, core: Sequence[str], end: float) -> list[str]:
        """A smaller part of `core` under which the goal still cannot fail; the last assumptions are dropped first."""
        assumptions = list(core)
        for name in reversed(core):
            if time.process_time() > end:
                break
            fewer = [n for n in assumptions if n != name]
            if self.fails([goal], fewer).status == "unsat":
                assumptions = fewer
        return assumptions


def _read_model(model: Any, value: Truth | Whole) -> bool | int:
    if isinstance(value, bool | int):
        return value
    found = model.eval(value, model_completion=True)
    return int(found.as_long()) if z3.is_int_value(found) else bool(z3.is_true(found))
