"""One solver for many questions, where every bound is given: it reads the hypotheses once and keeps what it learns."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from collections.abc import Sequence

from isr_check.smt.induction import INITIAL, Induction, Obligation, Query
from isr_check.smt.processor_time import check
from isr_check.smt.solver import MEGABYTES, Answer
from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, z3


class Finite:
    """A way to prove the obligations of one induction that is tried first (obligations.Attempt)."""

    def __init__(self, induction: Induction) -> None:
        self.induction = induction
        self._solver: StandingSolver | None = None

    def decide(self, obligation: Obligation, query: Query, seconds: float, with_core: bool = False) -> Answer:
        """Whether the goal follows; 'unknown' if `with_core`, because this solver cannot name one."""
        if with_core or obligation.kind == INITIAL:
            return Answer("unknown", 0.0, reason="not of this kind")
        began, known = time.process_time(), self.induction.hypotheses
        if self._solver is None:  # made late, by the process that asks
            bounds = [logic.term(x) for x in self.induction.translation.assumptions]
            self._solver = StandingSolver(self._with_definitions([*bounds, *(x for _, x in known)]))
        extra = [x for _, x in query.hypotheses[len(known) :]]
        status = self._solver.ask(self._with_definitions([*extra, logic.term(logic.not_(query.goal))]), seconds)
        return Answer(status, time.process_time() - began)

    def _with_definitions(self, terms: Sequence[Term]) -> list[Term]:
        return [*terms, *self.induction.translation.defining(terms, terms)]


class StandingSolver:
    """A solver that keeps some assertions; each question adds others for itself."""

    def __init__(self, assertions: Sequence[Term]) -> None:
        self._solver = z3.SimpleSolver()
        self._solver.set("max_memory", MEGABYTES)
        for assertion in assertions:
            self._solver.add(assertion)

    def ask(self, assertions: Sequence[Term], seconds: float) -> str:
        """Whether these assertions and those held are satisfiable: 'unsat', 'sat' or 'unknown'."""
        self._solver.push()
        try:
            for assertion in assertions:
                self._solver.add(assertion)
            return check(self._solver, seconds)
        finally:
            self._solver.pop()
