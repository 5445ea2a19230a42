"""Proof by induction: initial states satisfy every conjunct, every action preserves it, together they imply.

An obligation is one (conjunct, action). It has a query for each choice of parameters; choices that differ by symmetry
only share one. Each action is translated once. Of a conjunct after a step only the parts are asked that the step can
have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import attrs

from isr_check.engine import TYPE_OK
from isr_check.smt.goals import Existential, Goals
from isr_check.smt.orbits import told_apart
from isr_check.smt.solver import NamedTerm as NamedTerm
from isr_check.smt.terms import logic
from isr_check.smt.terms.design_terms import Choice, Scope, State, Translation
from isr_check.smt.terms.logic import Term, Truth, all_of, identity
from isr_check.smt.terms.shapes import WRITTEN_ELEMENTS
from isr_check.smt.terms.values import Value
from isr_lang import Action, Design, Property
from isr_lang import Value as Setting
from isr_lang.left_out import storing_in_range
from isr_lang.types import SortType

RANGES = "typed"
"""The name of the hypothesis that all values are in range before the step."""
GOAL = "goal"
INITIAL = "initial"
"""The kind of the obligations at the start."""


@attrs.frozen(eq=False)
class Query:
    """The claim that the hypotheses imply the goal; `new` is the state after the step, None without a step."""

    hypotheses: tuple[NamedTerm, ...]
    goal: Term
    old: State
    choice: Choice
    new: State | None


@attrs.frozen(eq=False)
class Obligation:
    """What has to be proved of one conjunct or promise.

    kind: 'initial', it holds at the start; 'preserved', the action preserves it; 'implies', a promise follows from the
    conjuncts. Without queries it is true by evaluation.
    """

    kind: str
    conjunct: str
    action: str | None
    queries: tuple[Query, ...]

    @property
    def name(self) -> str:
        return f"{self.conjunct} / {self.action or self.kind}"


@attrs.frozen(eq=False)
class Witness:
    """A formula that gives a name to an element, and which of the known properties say that it exists."""

    of: tuple[int, ...]
    term: Term


class Induction:
    """The obligations of a design and a list of conjuncts that are to be an inductive invariant together.

    Constants are given by name; None leaves a bound open.
    """

    def __init__(self, design: Design, constants: Mapping[str, Setting | None], conjuncts: Sequence[Property]) -> None:
        design = storing_in_range(design)
        self.translation = Translation(design, constants)
        self.design, self.conjuncts = design, conjuncts
        self.apart = told_apart([*design.roots(), *(c.condition for c in conjuncts)])
        t = self.translation
        sorts = {x for x in design.types() if isinstance(x, SortType) and not t.shapes.few(x)}
        self.goals = Goals(t, frozenset(x for x in sorts if x.symmetric and x not in self.apart))
        self.old = t.state("")
        self.ranges = t.typed(self.old)
        self.hypotheses: list[NamedTerm] = [(RANGES, x) for x in _terms(self.ranges)]
        for c in conjuncts:
            self.hypotheses += [(c.name, x) for x in self.facts(c, self.old)]
        self._hypothesis_ids = {identity(x) for _, x in self.hypotheses}
        self._steps: dict[str, list[tuple[Choice, tuple[NamedTerm, ...], State]]] = {}

    def obligations(
        self, properties: Sequence[Property] = (), only: Collection[str] = (), actions: Collection[str] = ()
    ) -> Iterator[Obligation]:
        """All obligations, action by action: of the conjuncts, and of the promises `properties`.

        `only` (names of conjuncts) and `actions` (names) restrict them.
        """
        selected_conjuncts = [c for c in self.conjuncts if not only or c.name in only]
        typed = not only or TYPE_OK in only
        if not actions:
            yield from self._initial(selected_conjuncts, typed)
        for p in properties:
            if p.kind == "always" and not actions:
                yield self._implied(p)
        for a in self.design.actions:
            if actions and a.name not in actions:
                continue
            steps = self.steps(a)
            if typed:
                yield self._preservation(TYPE_OK, a, steps, None)
            for c in selected_conjuncts:
                yield self._preservation(c.name, a, steps, c)
            for p in properties:
                if p.kind == "step":
                    yield self._of_step(p, a, steps)

    def steps(self, action: Action) -> list[tuple[Choice, tuple[NamedTerm, ...], State]]:
        """The steps of an action, one for each choice of parameters whose guards are not false by evaluation."""
        if action.name not in self._steps:
            possible_steps: list[tuple[Choice, tuple[NamedTerm, ...], State]] = []
            for choice in self.translation.parameters(action, self.apart):
                step = self.translation.step(action, choice, self.old)
                if all(g is not False for _, g in step.guards):
                    guards = [(RANGES, x) for x in _terms(choice.ranges)]
                    guards += [(name, x) for name, g in step.guards for x in _terms([g])]
                    possible_steps.append((choice, tuple(guards), step.new))
            self._steps[action.name] = possible_steps
        return self._steps[action.name]

    def _initial(self, conjuncts: Sequence[Property], typed: bool) -> Iterator[Obligation]:
        t = self.translation
        starts = [(choice, t.start(choice)) for choice in t.parameters(self.design.initial, self.apart)]
        goals: list[tuple[str, list[Truth]]] = []
        if typed:
            goals.append((TYPE_OK, [all_of(t.typed(new)) for _, new in starts]))
        goals += [(c.name, [self.goal_for(c, choice, new) for choice, new in starts]) for c in conjuncts]
        for name, truths in goals:
            queries: list[Query] = []
            for (choice, new), goal in zip(starts, truths, strict=True):
                if goal is not True:
                    ranges = tuple((RANGES, x) for x in _terms(choice.ranges))
                    queries.append(Query(ranges, logic.term(goal), new, choice, None))
            yield Obligation(INITIAL, name, None, tuple(queries))

    def _implied(self, p: Property) -> Obligation:
        nobody = Choice({}, ())
        goal = self._rest(self.goal_for(p, nobody, self.old))
        query = Query(tuple(self.hypotheses), logic.term(goal), self.old, nobody, None)
        return Obligation("implies", p.name, None, () if goal is True else (query,))

    def _preservation(
        self, name: str, a: Action, steps: list[tuple[Choice, tuple[NamedTerm, ...], State]], c: Property | None
    ) -> Obligation:
        queries: list[Query] = []
        for choice, guards, new in steps:
            after = self.goal_for(c, choice, new) if c else all_of(self.translation.typed(new, self.old))
            before = self.goal_for(c, choice, self.old) if c and self.goals.sorts else True
            if (goal := self._rest(after, before)) is not True:
                queries.append(self._query(choice, guards, new, goal))
        return Obligation("preserved", name, a.name, tuple(queries))

    def _of_step(self, p: Property, a: Action, steps: list[tuple[Choice, tuple[NamedTerm, ...], State]]) -> Obligation:
        queries: list[Query] = []
        for choice, guards, new in steps:
            goal = self.goal_for(p, choice, self.old, new)
            if goal is not True:
                queries.append(self._query(choice, guards, new, goal))
        return Obligation("implies", p.name, a.name, tuple(queries))

    def _query(self, choice: Choice, guards: tuple[NamedTerm, ...], new: State, goal: Truth) -> Query:
        return Query((*self.hypotheses, *guards), logic.term(goal), self.old, choice, new)

    def promised_truth(self, p: Property, old: State, new: State | None = None) -> Truth:
        """What a property says of a state or a step; true if the settings do not promise it."""
        there = True if p.when is None else _truth(self.translation.evaluate(p.when, {}))
        if there is False:
            return True
        return logic.implies(there, _truth(self.translation.evaluate(p.condition, old, new)))

    def facts(self, p: Property, state: State) -> list[Term]:
        """The hypotheses that a property gives about a state in which it holds."""
        every = _terms([self.promised_truth(p, state)])
        if not self.goals.sorts:
            return every
        there = True if p.when is None else _truth(self.translation.evaluate(p.when, {}))
        named = [logic.implies(there, x) for x in self.goals.named_facts(p.condition, Scope(state, None, {}))]
        return [*_terms(named), *(x for x in every if logic.about_others(x))]

    def witnesses(
        self, about: Property, choice: Choice, known_properties: Sequence[tuple[Property, State]]
    ) -> Iterator[Witness]:
        """Further hypotheses for a proof of `about`: a known property says that an element exists, which gets a name.

        Each uses one such part, which excludes the others (Goals.witnesses), or two: the first part is about no named
        element, and the second one says that another element exists for that of the first.
        """
        sorts, goals = self.goals.sorts, self.goals
        named_counts = {s: choice.named_elements.get(s, 0) + goals.depth(about.condition, s) for s in sorts}

        def existentials_of(p: Property, state: State, named_counts: Mapping[SortType, int]) -> list[Existential]:
            there = True if p.when is None else _truth(self.translation.evaluate(p.when, {}))
            if there is False or not all(k < WRITTEN_ELEMENTS for k in named_counts.values()):
                return []
            found = goals.witnesses(p.condition, Scope(state, None, {}), named_counts)
            return [attrs.evolve(x, there=logic.and_(there, x.there)) for x in found]

        for i, (p, state) in enumerate(known_properties):
            for x in existentials_of(p, state, named_counts):
                yield Witness((i,), logic.term(x.formula()))
                if not x.about:
                    more = {s: k + 1 for s, k in named_counts.items()}
                    for j, (q, later) in enumerate(known_properties):
                        for ys in alike(existentials_of(q, later, more), len(x.some)):
                            yield Witness((i, j), logic.term(x.formula_with(ys)))

    def goal_for(self, p: Property, choice: Choice, old: State, new: State | None = None) -> Truth:
        """The goal whose proof shows that a property holds of a state or a step; true if it is not promised."""
        if not self.goals.sorts:
            return self.promised_truth(p, old, new)
        there = True if p.when is None else _truth(self.translation.evaluate(p.when, {}))
        if there is False:
            return True
        parts = self.goals.parts(p.condition, Scope(old, new, {}), choice.named_elements)
        return all_of(logic.implies(there, part) for part in parts)

    def _rest(self, goal: Value, premise: Value = True) -> Truth:
        """The parts of the goal that are neither a hypothesis, word for word, nor a part of `premise`."""
        known_too = {identity(x) for x in _terms([_truth(premise)])}
        return all_of(x for x in _terms([_truth(goal)]) if identity(x) not in self._hypothesis_ids | known_too)

    def assertions(
        self, query: Query, using: Collection[str] | None = None, *, with_sizes: bool = True
    ) -> list[NamedTerm]:
        """The assertions that are satisfiable if the goal does not follow: the hypotheses, and the negated goal.

        `using` restricts the conjuncts among the hypotheses. `with_sizes` adds axioms about the sizes of sets in the
        goal and the guards, where sorts have any number of elements.
        """
        t = self.translation
        named_terms: list[NamedTerm] = [("bounds", x) for x in _terms(t.assumptions)]
        left_out = set[str]() if using is None else {c.name for c in self.conjuncts} - set(using)
        named_terms += [(name, x) for name, x in query.hypotheses if name not in left_out]
        named_terms.append((GOAL, logic.term(logic.not_(query.goal))))
        sizes = (
            [query.goal, *(x for _, x in query.hypotheses if identity(x) not in self._hypothesis_ids)]
            if with_sizes
            else []
        )
        return [*named_terms, *(("defined", x) for x in t.defining([x for _, x in named_terms], sizes))]

    def together(self) -> list[NamedTerm]:
        """The assertions that a state with every conjunct satisfies; were they contradictory, anything would follow."""
        return self.assertions(Query(tuple(self.hypotheses), logic.term(False), self.old, Choice({}, ()), None))


def alike(existentials: Sequence[Existential], size: int) -> Iterator[list[Existential]]:
    """Families of `size` parts that differ in one of the elements that they are about, ordered by that element."""
    for place in range(max((len(x.about) for x in existentials), default=0)):
        families: dict[object, dict[int, Existential]] = {}
        for x in existentials:
            key = x.part, x.about[:place], x.about[place + 1 :]
            families.setdefault(key, {})[x.about[place]] = x
        yield from ([family[k] for k in range(size)] for family in families.values() if len(family) >= size)


def _truth(value: Value) -> Truth:
    return cast("Truth", value)


def _terms(truths: Sequence[Value]) -> list[Term]:
    """The parts of the conjunction of these truths, without those that are true by evaluation."""
    joined = all_of(_truth(t) for t in truths)
    return [] if joined is True else logic.conjuncts(logic.term(joined))
