"""Refutations, made smaller and written as SMT-LIB text that any other solver can read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from isr_check.smt.induction import GOAL, NamedTerm
from isr_check.smt.processor_time import Solver, check
from isr_check.smt.solver import MEGABYTES, Proof
from isr_check.smt.strategy import MARK
from isr_check.smt.terms.logic import Term, children, identity, z3

PATIENCE = 5.0
"""The limit of a smaller question is this many times the seconds of the one it is made from, but at least this."""

HEADER = "(set-logic ALL)"
FOOTER = "(check-sat)\n"


class _Solver(Solver, Protocol):
    """The part of z3's class Solver that is used here."""

    def set(self, name: str, value: object, /) -> None: ...
    def add(self, x: Term, /) -> None: ...
    def assert_and_track(self, x: Term, name: Term, /) -> None: ...
    def unsat_core(self) -> Iterable[object]: ...


def smaller(proof: Proof) -> tuple[Proof, bool]:
    """The same refutation from fewer assertions, and whether the solver used the denied goal.

    The solver says which assertions it used. Some help only by the terms that they mention. So the marks stay if they
    are needed, and everything stays if the smaller question is not refuted again. The goal always stays.
    """
    limit = PATIENCE * max(1.0, proof.seconds)
    core_assertions = _core(proof, limit)
    if core_assertions is None:
        return proof, True
    goal_used = any(name == GOAL and i in core_assertions for i, (name, _) in enumerate(proof.assertions))
    kept = [(i, x) for i, x in enumerate(proof.assertions) if i in core_assertions or x[0] == GOAL]
    marks = [(i, x) for i, x in enumerate(proof.assertions) if x[0] == MARK and i not in core_assertions]
    for chosen in (kept, sorted([*kept, *marks], key=_place)):
        made = Proof(proof.goal, tuple(x for _, x in chosen), proof.way, 0.0)
        began = time.process_time()
        if refuted(made, limit):
            return Proof(made.goal, made.assertions, made.way, time.process_time() - began), goal_used
    return proof, goal_used


def _place(item: tuple[int, NamedTerm]) -> int:
    return item[0]


def refuted(proof: Proof, seconds: float) -> bool:
    """Whether the solver refutes these assertions again."""
    solver = _solver(proof.way)
    for _, x in proof.assertions:
        solver.add(x)
    return check(solver, seconds) == "unsat"


def _core(proof: Proof, seconds: float) -> set[int] | None:
    """The places of the assertions that the solver uses; None if there was no time to find out."""
    solver = _solver(proof.way)
    for i, (_, x) in enumerate(proof.assertions):
        solver.assert_and_track(x, z3.Bool(f"used#{i}"))
    if check(solver, seconds) != "unsat":
        return None
    return {int(str(c).partition("#")[2]) for c in solver.unsat_core()}


def _solver(way: Mapping[str, object]) -> _Solver:
    solver = cast("_Solver", z3.SimpleSolver())
    solver.set("max_memory", MEGABYTES)
    for name, value in way.items():
        solver.set(name, value)
    return solver


def formula(t: Term) -> str:
    """One term as text."""
    return str(z3.ExprRef.sexpr(t))


def query_text(assertions: Sequence[tuple[str, str, Term]]) -> str:
    """A query as SMT-LIB text, of assertions (kind, name, term); the goal is denied."""
    declared = dict.fromkeys(d for _, _, t in assertions for d in declarations(t))
    lines = [HEADER, *declared]
    for kind, name, t in assertions:
        lines += [f"; {kind} {name}".rstrip(), f"(assert {_assertion_text(kind, t)})"]
    return "\n".join([*lines, FOOTER])


def declarations(t: Term) -> Iterator[str]:
    """The declarations of all symbols that occur."""
    waiting, visited = [t], set[int]()
    while waiting:
        x = waiting.pop()
        if identity(x) in visited:
            continue
        visited.add(identity(x))
        if z3.is_quantifier(x):
            waiting.append(cast("Term", z3.QuantifierRef.body(x)))
            continue
        if z3.is_app(x) and z3.ExprRef.decl(x).kind() == z3.Z3_OP_UNINTERPRETED:
            yield str(z3.ExprRef.decl(x).sexpr())
        waiting += children(x)


def _assertion_text(kind: str, t: Term) -> str:
    """An assertion as text. `certify` can see from it that a goal is denied, and that a mark says nothing else."""
    if kind == "mark":
        return f"(|{MARK}| {formula(children(t)[0])})"
    return f"(not {formula(t)})" if kind == GOAL else formula(t)
