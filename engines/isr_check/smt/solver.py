"""One question to z3 with a time limit, and its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from isr_check.smt.cores import Core, Learnt
from isr_check.smt.processor_time import check
from isr_check.smt.terms.logic import Term, Truth, Whole, z3

NamedTerm = tuple[str, Term]
"""The name and the formula of an assertion; several formulas may share a name."""

WAYS: tuple[tuple[float, dict[str, bool]], ...] = (
    (0.5, {"auto_config": False, "mbqi": False}),
    (0.5, {"auto_config": False, "mbqi": True, "ematching": False}),
    (1.0, {"auto_config": False, "mbqi": True}),
)
"""Options of z3 that treat quantifiers differently, each with its share of the time. Only the last can find states."""

MEGABYTES = 2000
"""Megabytes of memory for one question."""


@attrs.frozen(eq=False)
class Proof:
    """Assertions that are unsatisfiable, so that the goal follows, and the options of z3 with which it said so.

    `part` is the number of the goal among the parts of its question. `named_by`: the properties that say that the
    element exists to which a naming gives a name. `core`: the stored core of which the assertions were made.
    """

    goal: Term
    assertions: tuple[NamedTerm, ...]
    way: Mapping[str, object]
    seconds: float
    part: int = 0
    named_by: tuple[str, ...] = ()
    core: Core | None = None


@attrs.frozen(eq=False)
class Answer:
    """The answer of z3: 'unsat', 'sat' or 'unknown', which has a `reason`.

    With 'unsat', `used_names` are the assertions that z3 used, if they were asked for. With 'sat', `value` gives the
    value of a term in the state found. `proofs` are those of the goal's parts, where several were asked. `learnt` are
    cores that were not known before.
    """

    status: str
    seconds: float
    used_names: tuple[str, ...] = ()
    value: Callable[[Truth | Whole], bool | int] | None = None
    reason: str = ""
    proofs: tuple[Proof, ...] = ()
    learnt: tuple[Learnt, ...] = ()


def ask(assertions: Sequence[NamedTerm], seconds: float, with_core: bool = False, find: bool = False) -> Answer:
    """Whether these assertions are satisfiable; `find` asks for a state rather than for a proof.

    Quantifiers are first instantiated at the terms that occur, which proves quickly or gives up; then where a model
    needs it, which can find a state.
    """
    began = time.process_time()
    quantified = z3.Probe("has-quantifiers")(_goal(assertions)) > 0
    ways = WAYS[-1:] if find or not quantified else WAYS
    answer = Answer("unknown", 0.0, reason="no time")
    for i, (share, options) in enumerate(ways):
        left = seconds - (time.process_time() - began)
        if left <= 0:
            break
        limit = left if i == len(ways) - 1 else min(left, seconds * share)
        answer = _once(assertions, limit, with_core, options if quantified else None)
        if answer.status != "unknown" and (answer.status == "unsat" or i == len(ways) - 1):
            break
    return attrs.evolve(answer, seconds=time.process_time() - began)


def _once(assertions: Sequence[NamedTerm], seconds: float, with_core: bool, options: dict[str, bool] | None) -> Answer:
    solver = z3.Solver() if options is None else z3.SimpleSolver()
    solver.set("max_memory", MEGABYTES)
    for name, value in (options or {}).items():
        solver.set(name, value)
    groups: dict[str, list[Term]] = {}
    for name, assertion in assertions:
        groups.setdefault(name, []).append(assertion)
        if not with_core:
            solver.add(assertion)
    if with_core:
        for name, parts in groups.items():
            solver.assert_and_track(z3.And(parts), f"{name}#")
    status = check(solver, seconds)
    if status == "unsat":
        names = {str(c)[:-1] for c in solver.unsat_core()} if with_core else set[str]()
        return Answer(status, 0.0, tuple(n for n in groups if n in names))
    if status == "sat":
        model = solver.model()
        return Answer(status, 0.0, value=lambda t: _read_model(model, t))
    return Answer(status, 0.0, reason=str(solver.reason_unknown()))


def _goal(assertions: Sequence[NamedTerm]) -> Any:
    goal = z3.Goal()
    for _, t in assertions:
        goal.add(t)
    return goal


def _read_model(model: Any, value: Truth | Whole) -> bool | int:
    if isinstance(value, bool | int):
        return value
    found = model.eval(value, model_completion=True)
    return int(found.as_long()) if z3.is_int_value(found) else bool(z3.is_true(found))
