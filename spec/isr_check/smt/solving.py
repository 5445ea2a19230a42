"""The solver itself: one question, a time limit, and what it says. The strategy is here and nowhere else."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import cast

import attrs
import z3  # type: ignore[import-untyped]

from isr_check.smt.logic import Term, Truth, Whole, term

MEGABYTES = 2000
"""Of memory, for one question at a time."""


@attrs.frozen(eq=False)
class Answer:
    """'unsat', 'sat' or 'unknown'; of 'unsat' the named assertions that it needs, of 'sat' how things are."""

    status: str
    seconds: float
    core: tuple[str, ...] = ()
    value: Callable[[Truth | Whole], bool | int] | None = None
    reason: str = ""


def ask(assertions: Sequence[tuple[str, Term]], seconds: float, core: bool = False, find: bool = False) -> Answer:
    """Whether all of these can hold at once; `find` asks for a state rather than for a proof.

    With quantifiers, first by instantiation at the terms that occur alone, which proves quickly or gives up; then with
    instantiation by models, which can find a state.
    """
    began = time.monotonic()
    quantified = any(_quantified(t) for _, t in assertions)
    answer = Answer("unknown", 0.0)
    for by_models in (False, True) if quantified and not find else (True,):
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        answer = _once(assertions, left, core, quantified, by_models)
        if answer.status == "unsat" or (answer.status == "sat" and (by_models or not quantified)):
            break
    return attrs.evolve(answer, seconds=time.monotonic() - began)


def _once(
    assertions: Sequence[tuple[str, Term]], seconds: float, core: bool, quantified: bool, by_models: bool
) -> Answer:
    solver = z3.SimpleSolver() if quantified else z3.Solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.set("max_memory", MEGABYTES)
    if quantified:
        solver.set("auto_config", False)
        solver.set("mbqi", by_models)
    for name, assertion in assertions:
        if core:
            solver.assert_and_track(assertion, z3.Bool(f"{name}#"))
        else:
            solver.add(assertion)
    status = str(solver.check())
    if status == "unsat":
        names = {str(c)[:-1] for c in solver.unsat_core()} if core else set[str]()
        return Answer(status, 0.0, tuple(n for n, _ in assertions if n in names))
    if status == "sat":
        model = solver.model()
        return Answer(status, 0.0, value=lambda t: _read(model, t))
    return Answer(status, 0.0, reason=str(solver.reason_unknown()))


def _quantified(t: Term) -> bool:
    return bool(z3.Probe("has-quantifiers")(_goal(t)))


def _goal(t: Term) -> object:
    goal = z3.Goal()
    goal.add(t)
    return goal


def _read(model: object, value: Truth | Whole) -> bool | int:
    if isinstance(value, bool | int):
        return value
    found = cast("z3.ModelRef", model).eval(term(value), model_completion=True)
    if z3.is_int_value(found):
        return cast("int", found.as_long())
    return bool(z3.is_true(found))
