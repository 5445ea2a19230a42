"""Houdini: of many candidates, the largest set that is inductive beside the known conjuncts, and what a proof needs.

The algorithm of Flanagan and Leino: drop every candidate that some step can break, until no step breaks what is left.
All bounds are given, so that the solver answers every question quickly and for certain.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from isr_check.smt.induction import Induction, Query
from isr_check.smt.orbits import told_apart
from isr_check.smt.step_solver import Found, Incremental
from isr_check.smt.terms import logic
from isr_check.smt.terms.design_terms import Choice
from isr_check.smt.terms.design_terms import State as Symbols
from isr_check.smt.terms.logic import Term, identity
from isr_check.smt.terms.solver_values import Reader
from isr_lang import Design, Property
from isr_lang import Value as Setting


@attrs.frozen(eq=False)
class InductionFailure:
    """A state that satisfies the known conjuncts, and what fails: in this state, or after a step of `action` from it.

    `conjunct` is the name of the known conjunct or the wanted property.
    """

    conjunct: str
    action: str | None
    state: Mapping[str, object]

    @property
    def name(self) -> str:
        return f"{self.conjunct} / {self.action or 'implies'}"


@attrs.define(eq=False)
class _Step:
    """A step, or with action None the state itself; `known` and `goals` (of candidates) have to hold after it."""

    action: str | None
    new: Symbols
    solver: Incremental
    known: dict[str, Term]
    goals: dict[str, Term] = attrs.field(factory=dict[str, Term])


class Houdini:
    """The steps of a design with all bounds given, from states that satisfy the known conjuncts."""

    def __init__(
        self,
        design: Design,
        constants: Mapping[str, Setting],
        known: Sequence[Property],
        wanted: Sequence[Property],
        seconds: float,
    ) -> None:
        self.induction = Induction(design, constants, known)
        self.known, self.wanted, self.seconds = known, wanted, seconds
        self.candidates: dict[str, Property] = {}
        self._made: list[_Step] | None = None

    # what fails

    def failures(self, assuming: Collection[str]) -> list[InductionFailure]:
        """One case for each known conjunct and wanted property that fails, in a state or after a step."""
        found: list[InductionFailure] = []
        for step in self.steps:
            left: dict[str, Term] = dict(step.known)
            while left:
                answer = step.solver.fails(list(left.values()), assuming)
                failed: list[str] = self._failed(step, left, answer, assuming)
                if not failed:
                    break
                state = self._state(answer)
                found += [InductionFailure(name, step.action, state) for name in failed]
                left = {n: x for n, x in left.items() if n not in failed}
        return found

    def _failed(self, step: _Step, goals: Mapping[str, Term], answer: Found, assuming: Collection[str]) -> list[str]:
        """The goals that fail in the state found; if the solver did not know, those that it cannot prove one by one."""
        if answer.status == "unsat":
            return []
        if answer.value is not None:
            return [n for n, x in goals.items() if not answer.value(x)]
        return [n for n, x in goals.items() if step.solver.fails([x], assuming).status != "unsat"]

    def _state(self, answer: Found) -> dict[str, object]:
        if answer.value is None:
            return {}
        t = self.induction.translation
        types = {v.name: v.type for v in self.induction.design.variables if t.exists[v.name] is not False}
        return Reader(t.shapes, answer.value).state(types, self.induction.old)

    # the steps

    @property
    def steps(self) -> list[_Step]:
        if self._made is None:
            self._made = list(self._steps())
        return self._made

    def _steps(self) -> Iterator[_Step]:
        i = self.induction
        if self.wanted:
            goals = {w.name: logic.term(i.promised(w, i.old)) for w in self.wanted if w.kind == "always"}
            yield _Step(None, i.old, self._solver((), ()), goals)
        for action in i.design.actions:
            for _, guards, new in i.steps(action):
                goals = self._after(self.known, new)
                for w in self.wanted:
                    if w.kind == "step" and (goal := i.promised(w, i.old, new)) is not True:
                        goals[w.name] = logic.term(goal)
                yield _Step(action.name, new, self._solver([x for _, x in guards], goals.values()), goals)

    def _solver(self, guards: Sequence[Term], goals: Collection[Term]) -> Incremental:
        i = self.induction
        query = Query(tuple(i.hypotheses), logic.term(False), i.old, Choice({}, ()), None)
        always = [x for _, x in i.assertions(query)]
        return Incremental([*always, *guards, *i.translation.defining([*guards, *goals])], self.seconds)

    def _after(self, properties: Sequence[Property], new: Symbols) -> dict[str, Term]:
        """The properties after a step, those of them that the step can change."""
        i, found = self.induction, dict[str, Term]()
        for p in properties:
            before, after = (logic.term(i.promised(p, s)) for s in (i.old, new))
            if identity(before) != identity(after) and i.promised(p, new) is not True:
                found[p.name] = after
        return found

    # candidates

    def add(self, candidates: Sequence[Property]) -> None:
        """Add candidates. ValueError if one tells the elements of a sort apart."""
        i = self.induction
        if told_apart(c.condition for c in candidates) - i.apart:
            raise ValueError("a candidate tells the elements of a sort apart")
        terms = {c.name: logic.term(i.promised(c, i.old)) for c in candidates}
        self.candidates |= {c.name: c for c in candidates}
        for step in self.steps:
            step.solver.assume(terms)
            if step.action is not None:
                step.goals |= self._after(candidates, step.new)

    def new_to_the_known(self, candidates: Sequence[Property], most: int) -> list[Property]:
        """The first `most` candidates that do not follow from the known conjuncts and the ranges of types."""
        solver, i = self._solver((), ()), self.induction
        kept: list[Property] = []
        for c in candidates:
            goal = i.promised(c, i.old)
            if goal is not True and solver.fails([logic.term(goal)], ()).status != "unsat":
                kept.append(c)
            if len(kept) >= most:
                break
        return kept

    def follows(self, wanted: Sequence[Property], assuming: Sequence[str]) -> list[str]:
        """The names of those that hold in every state that satisfies the known conjuncts and these candidates."""
        i = self.induction
        goals = {w.name: logic.term(i.promised(w, i.old)) for w in wanted}
        solver = self._solver((), goals.values())
        solver.assume({n: logic.term(i.promised(self.candidates[n], i.old)) for n in assuming})
        return [n for n, goal in goals.items() if solver.fails([goal], assuming).status == "unsat"]

    def inductive(self, end: float) -> list[str] | None:
        """The largest set of candidates that hold at the start and that no step breaks; None if time ran out."""
        return self.largest([n for n, c in self.candidates.items() if self._begins(c)], end)

    def largest(self, candidates: Sequence[str], end: float) -> list[str] | None:
        """The largest set that no step breaks, of candidates that hold at the start; None if time ran out."""
        alive: list[str] = list(candidates)
        steps, quiet = self.steps, 0
        while quiet < len(steps):
            for step in steps:
                before = len(alive)
                while (goals := {n: step.goals[n] for n in alive if n in step.goals}) and time.monotonic() < end:
                    failed: set[str] = set(
                        self._failed(step, goals, step.solver.fails(list(goals.values()), alive), alive)
                    )
                    if not failed:
                        break
                    alive = [n for n in alive if n not in failed]
                quiet = quiet + 1 if len(alive) == before else 0
                if time.monotonic() > end:
                    return None
                if quiet >= len(steps):
                    break
        return alive

    def _begins(self, candidate: Property) -> bool:
        i = self.induction
        t = i.translation
        for choice in t.parameters(i.design.initial, i.apart):
            goal = i.promised(candidate, t.start(choice))
            if goal is True:
                continue
            ranges = [logic.term(x) for x in (*t.assumed, *choice.ranges)]
            if Incremental(ranges, self.seconds).fails([logic.term(goal)], ()).status != "unsat":
                return False
        return True

    # what a proof takes

    def support(self, alive: Sequence[str], end: float) -> tuple[list[str], list[str]]:
        """The candidates that a proof of everything known and wanted needs, and the obligations that still fail.

        The candidates are inductive beside the known conjuncts.
        """
        needed: dict[str, None] = {}
        unproved: dict[str, None] = {}
        for step in self.steps:
            for name, goal in step.known.items():
                if not self._needs(step, goal, alive, needed, end):
                    unproved[f"{name} / {step.action or 'implies'}"] = None
        done = set[str]()
        while (waiting := [n for n in needed if n not in done]) and time.monotonic() < end:
            done.update(waiting)
            for step in self.steps:
                for name in waiting:
                    if name in step.goals and not self._needs(step, step.goals[name], alive, needed, end):
                        unproved[f"{name} / {step.action}"] = None
        if waiting:
            unproved |= dict.fromkeys(f"{n} / no time" for n in waiting)
        return self._fewer(list(needed), end) if not unproved else list(needed), list(unproved)

    def _fewer(self, needed: list[str], end: float) -> list[str]:
        """Drop candidates one by one, the last first, as long as the others are inductive and prove everything."""
        for name in reversed(needed):
            fewer = self.largest([n for n in needed if n != name], end) if name in needed else None
            if fewer is not None and all(self._follows(s, fewer) for s in self.steps):
                needed = fewer
        return needed

    def _follows(self, step: _Step, assuming: Collection[str]) -> bool:
        return not step.known or step.solver.fails(list(step.known.values()), assuming).status == "unsat"

    def _needs(self, step: _Step, goal: Term, alive: Sequence[str], needed: dict[str, None], end: float) -> bool:
        """Add the candidates that a goal needs to `needed`, as few as possible; false if all of them do not suffice."""
        if step.solver.fails([goal], list(needed)).status == "unsat":
            return True
        order = [*needed, *(n for n in alive if n not in needed)]
        found = step.solver.fails([goal], order)
        if found.status != "unsat":
            return False
        needed |= dict.fromkeys(step.solver.needed(goal, found.core, end))
        return True
