"""The strategy by which a solver is asked for a goal: with which hypotheses, with which options, and for how long.

A solver that is given all hypotheses drowns in instances of quantifiers. So each part of a goal is first asked with few
hypotheses: those that are not about sequences, the conjunct itself, and the lemmas that the conjunct names. Of these,
at first only those about the goal's own sequences are used. Leaving a hypothesis out is always sound.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, cast

import attrs

from isr_check.smt.equal_goals import Sameness
from isr_check.smt.induction import RANGES, Induction, Named, Obligation, Query
from isr_check.smt.solver import MEGABYTES, Answer, Proof
from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, conjuncts, identity, plus, z3
from isr_check.smt.terms.shapes import NAMED, OF_MANY
from isr_check.smt.terms.values import Items, Table, Value
from isr_lang.promises import ANY_NUMBER
from isr_lang.types import SortType

Setting = dict[str, object]
Label = tuple[int, int]
"""An attempt: its number in the plan, and the number of the witness (`_witnesses`)."""

# Options of z3. Both instantiate quantifiers at the terms that occur; neither is better everywhere.
WAYS: tuple[Setting, ...] = (
    {"arith.solver": 2, "case_split": 3, "delay_units": True, "qi.eager_threshold": 100.0},
    {"case_split": 3, "delay_units": True, "qi.eager_threshold": 100.0},
)
PLAIN: Setting = {"auto_config": False, "mbqi": False}
FIRST, SECOND = 1.5, 4.0
"""Seconds for one question in the first and the second round; in the third it gets the whole limit."""

MARK = "in view"
SOME = "some"

NONE, SMALL, ALL = range(3)
"""Which lemmas about elements without a name to use: none, those that are not about sequences, or all."""


@attrs.frozen(eq=False)
class _Selection:
    """A choice of hypotheses.

    `strict`: no lemmas about other sequences of the goal's families. `others`: which lemmas about elements without a
    name (NONE, SMALL, ALL). `compared`: with axioms about the sizes of sets. `first`: tried in the first round already.
    `witnessed`: also tried with each witness that the lemmas give.
    """

    strict: bool
    others: int
    compared: bool
    first: bool
    witnessed: bool = False


SELECTIONS = (_Selection(True, ALL, True, True), _Selection(False, ALL, True, False))
SELECTIONS_OF_MANY = (
    _Selection(True, NONE, False, True, witnessed=True),
    _Selection(False, NONE, False, True, witnessed=True),
    _Selection(False, SMALL, False, True),
    _Selection(True, NONE, True, True, witnessed=True),
    _Selection(False, ALL, False, False),
    _Selection(False, SMALL, True, True),
    _Selection(False, ALL, True, False),
)


@attrs.frozen(eq=False)
class _Lemma:
    """A hypothesis, and the sequences that it is about.

    `small`: it is about no sequence. `others`: it is about elements that have no name.
    """

    name: str
    term: Term
    about: frozenset[str]
    small: bool
    others: bool


class Strategy:
    """A way to prove the obligations of one induction; made once and shared by all of them.

    `hints`: conjunct -> action -> names of the lemmas to try first (isr_lang.Conjunct.by).
    """

    def __init__(
        self, induction: Induction, hints: Mapping[str, Mapping[str, Sequence[str]]], exchange: bool = True
    ) -> None:
        """With `exchange`, only one of several goals is asked that differ in names of elements only (equal_goals)."""
        self.induction, self.hints, self.exchange = induction, hints, exchange
        types = induction.design.types()
        self.sorts = [t for t in types if isinstance(t, SortType) and t.symmetric and t not in induction.apart]
        self.many = bool(induction.goals.sorts)
        self._about: dict[int, tuple[Term, frozenset[str]]] = {}
        self.lemmas = [self._lemma(name, x) for name, x in induction.hypotheses]
        self._after: dict[tuple[str, int], list[Term]] = {}
        self._worked: dict[tuple[str, str | None], dict[Label, None]] = {}
        self.order = [c.name for c in induction.conjuncts]

    def decide(self, obligation: Obligation, query: Query, seconds: float, core: bool = False) -> Answer:
        """Whether every part of the goal follows: 'unsat' if so, else 'unknown'."""
        began, used, proofs = time.monotonic(), dict[str, None](), list[Proof]()
        same, proved = self._sameness(obligation, query), set[bytes]()
        for goal in conjuncts(query.goal):
            key = same.key(goal) if same else b""
            if same and key in proved:
                continue
            answer = self._goal(obligation, attrs.evolve(query, goal=goal), seconds, core)
            if answer.status != "unsat":
                return attrs.evolve(answer, seconds=time.monotonic() - began)
            proved.add(key)
            used |= dict.fromkeys(answer.core)
            proofs += answer.proofs
        return Answer("unsat", time.monotonic() - began, tuple(used), proofs=tuple(proofs))

    def _sameness(self, obligation: Obligation, query: Query) -> Sameness | None:
        """The exchanges that leave the hypotheses the same: of elements of one sort that the parameters do not name."""
        design, translation = self.induction.design, self.induction.translation
        action = design.initial if obligation.action is None else design.action_named(obligation.action)
        others: list[str] = []
        for sort in self.sorts:
            named = {query.choice.values.get(n) for n, t in action.parameters if t == sort}
            free = [name for k, name in enumerate(translation.shapes.names(sort)) if k not in named]
            others = max(others, free, key=len)  # within one sort only
        return Sameness(others, translation.axioms) if self.exchange and len(others) > 1 else None

    def _goal(self, obligation: Obligation, query: Query, seconds: float, core: bool) -> Answer:
        """Try to prove one part. An attempt that proved another part is tried first, and then its next witness."""
        hopeless: set[Label] = set()
        answer = Answer("unknown", 0.0, reason="no attempt")
        worked = self._worked.setdefault((obligation.conjunct, obligation.action), {})
        near = [(number, k + more) for number, k in reversed(worked) for more in (0, 1)]
        again = [(SECOND, near)] if worked and self.many else []
        rungs: list[tuple[float, Sequence[Label] | None]] = [(r, None) for r in (FIRST, SECOND) if r < seconds]
        for rung, only in (*again, *rungs, (seconds, None)):
            for label, narrow, assertions in self._attempts(obligation, query, only):
                if label in hopeless or (rung == FIRST and not narrow):
                    continue
                for way in WAYS[:1] if rung == FIRST else WAYS:
                    answer = _ask(assertions, rung, way)
                    if answer.status == "unsat":
                        worked.pop(label, None)
                        worked[label] = None
                        proof = Proof(query.goal, tuple(assertions), {**PLAIN, **way}, answer.seconds)
                        needed = _ask(assertions, 10 * seconds, way, core=True).core if core else ()
                        return attrs.evolve(answer, core=needed, proofs=(proof,))
                if "quantifiers" in answer.reason:
                    hopeless.add(label)  # it has seen all instances that there are, and more time makes no more
        return answer

    def _attempts(
        self, obligation: Obligation, query: Query, only: Sequence[Label] | None = None
    ) -> Iterator[tuple[Label, bool, list[Named]]]:
        """The attempts, each once: label, whether it is for the first round, and assertions with the denied goal.

        First the lemmas that the conjunct names, then these with each witness, then more lemmas. `only` restricts the
        attempts to these labels.
        """
        tried: set[tuple[frozenset[int], bool, bool]] = set()
        every = tuple(dict.fromkeys(lemma.name for lemma in self.lemmas))
        own, hinted = self._hinted(obligation)
        passes = ((own, False), (own or [hinted], True), ([hinted, every], False))
        ways = SELECTIONS_OF_MANY if self.many else SELECTIONS
        plan = [(names, way, witnessed) for sets, witnessed in passes for names, way in product(sets, ways)]
        for number, (names, way, witnessed) in enumerate(plan):
            if (witnessed and not way.witnessed) or (only is not None and all(number != n for n, _ in only)):
                continue
            hypotheses = self._selected(obligation, query, names, way)
            key = frozenset(identity(x) for _, x in hypotheses), way.compared, witnessed
            if key in tried:
                continue
            tried.add(key)
            if not witnessed:
                yield (number, 0), way.first and names is not every, self._asked(query, hypotheses, way.compared)
                continue
            for k, x in enumerate(self._witnesses(obligation, query, names)):
                if only is None or (number, k) in only:
                    yield (number, k), True, self._asked(query, (*hypotheses, (SOME, x)), way.compared)

    def _selected(
        self, obligation: Obligation, query: Query, names: Sequence[str], way: _Selection
    ) -> tuple[Named, ...]:
        """The hypotheses of an attempt: small lemmas, lemmas of these names, guards, and conjuncts after the step."""
        guards = query.hypotheses[len(self.lemmas) :]
        about = self._sequences(query.goal).union(*(self._sequences(x) for _, x in guards))
        families = {_family(f) for f in about}
        chosen = {obligation.conjunct, RANGES, *names}
        after = [(f"{n}'", x) for n in names if n.endswith("'") for x in self._later(n[:-1], obligation, query)]
        return (
            *(
                (x.name, x.term)
                for x in self.lemmas
                if (not x.others or way.others == ALL or (way.others == SMALL and x.small))
                and (x.small or (x.name in chosen and not (way.strict and _elsewhere(x.about, about, families))))
            ),
            *guards,
            *((n, x) for n, x in after if way.others == ALL or not logic.about_others(x)),
        )

    def _asked(self, query: Query, hypotheses: tuple[Named, ...], compared: bool) -> list[Named]:
        asked = self.induction.assertions(attrs.evolve(query, hypotheses=hypotheses), compared=compared)
        return [*asked, *((MARK, x) for x in _marks(query))]

    def _witnesses(self, obligation: Obligation, query: Query, names: Sequence[str]) -> Iterator[Term]:
        """The witnesses that the conjunct and the lemmas give, one at a time (Induction.witnesses)."""
        conjuncts = {c.name: c for c in self.induction.conjuncts}
        goals = conjuncts | {p.name: p for p in self.induction.design.properties}
        known = [(conjuncts[n], query.old) for n in (obligation.conjunct, *names) if n in conjuncts]
        if query.new is not None:
            known += [(conjuncts[n[:-1]], query.new) for n in names if n.endswith("'")]
        if obligation.conjunct in goals:
            yield from self.induction.witnesses(goals[obligation.conjunct], query.choice, known)

    def _hinted(self, obligation: Obligation) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """The lemmas that the conjunct names: for this action and for any action, as a list; and all of them."""
        hints = self.hints.get(obligation.conjunct, {})
        many = tuple(hints.get(ANY_NUMBER, ())) if self.many else ()
        own = [(*hints[action], *many) for action in (obligation.action or obligation.kind, "*") if action in hints]
        named = (n for key, names in hints.items() if self.many or key != ANY_NUMBER for n in names)
        return own, tuple(n for n in named if not n.endswith("'"))

    def _later(self, name: str, obligation: Obligation, query: Query) -> list[Term]:
        """A conjunct after the step as hypotheses. It must come before the goal's conjunct; a promise may use any.

        Raises ValueError otherwise, because the proof would be circular.
        """
        earlier = self.order
        if obligation.conjunct in earlier:
            earlier = earlier[: earlier.index(obligation.conjunct)]
        if query.new is None or name not in earlier:
            raise ValueError(f"{obligation.conjunct} cannot use {name} after the step: it does not come earlier")
        key = name, id(query.new)
        if key not in self._after:
            conjunct = next(c for c in self.induction.conjuncts if c.name == name)
            self._after[key] = self.induction.facts(conjunct, query.new)
        return self._after[key]

    def _lemma(self, name: str, x: Term) -> _Lemma:
        about = self._sequences(x)
        return _Lemma(name, x, about, not about, logic.about_others(x))

    def _sequences(self, x: Term) -> frozenset[str]:
        """The names of the sequences whose items occur in a term."""
        if identity(x) not in self._about:
            found, seen, stack = set[str](), set[int](), [cast("Any", x)]
            while stack:
                t = stack.pop()
                if t.get_id() in seen:
                    continue
                seen.add(t.get_id())
                if z3.is_app(t) and t.num_args() and t.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                    found |= _sequence(str(t.decl().name()), t.children())
                stack += [t.body()] if z3.is_quantifier(t) else t.children()
            self._about[identity(x)] = x, frozenset(found)
        return self._about[identity(x)][1]


def _sequence(function: str, args: Sequence[Any]) -> set[str]:
    """The sequence whose items are the function's values, named by family and elements; empty if it has no items."""
    family, *rest = function.split(OF_MANY)
    if len(args) == len(rest):
        return set()
    elements = "".join(f"[{a if z3.is_int_value(a) else '?'}]" for a in args[: len(rest)])
    return {f"{family}{elements}{''.join(rest)}"}


def _family(name: str) -> str:
    return name.partition("[")[0]


def _elsewhere(lemma: frozenset[str], goal: frozenset[str], families: set[str]) -> bool:
    """Whether a lemma is about another sequence of one of the goal's families, that of another element."""
    return any(_family(f) in families and f not in goal for f in lemma)


def _marks(query: Query) -> list[Term]:
    """The ends of all sequences, to be marked: the solver instantiates quantifiers only at terms that occur."""
    mark = z3.Function(MARK, z3.IntSort(), z3.BoolSort())
    found: list[Term] = []

    def visit(value: Value) -> None:
        if isinstance(value, tuple):
            for part in value:
                visit(part)
        elif isinstance(value, Table):
            for k in range(NAMED):
                visit(value.at(k))
        elif isinstance(value, Items) and callable(value.items) and not isinstance(value.length, int):
            for at in (value.length, plus(value.length, -1)):
                item = value.items(at)
                if z3.is_expr(item) and z3.is_int(item):
                    found.append(mark(item))

    for value in query.old.values():
        visit(value)
    return found


def _ask(assertions: Sequence[Named], seconds: float, way: Setting, core: bool = False) -> Answer:
    began = time.monotonic()
    solver = z3.SimpleSolver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.set("max_memory", MEGABYTES)
    for name, value in {**PLAIN, **way}.items():
        solver.set(name, value)
    for name, assertion in assertions:
        if core:
            solver.assert_and_track(assertion, z3.Bool(f"{name}#{identity(assertion)}"))
        else:
            solver.add(assertion)
    status = str(solver.check())
    used = tuple(dict.fromkeys(str(c).rpartition("#")[0] for c in solver.unsat_core())) if core else ()
    # With these options z3 does not check a model against quantifiers, so a state that it finds is only a candidate.
    reason = "" if status == "unsat" else str(solver.reason_unknown() if status == "unknown" else "quantifiers")
    return Answer("unsat" if status == "unsat" else "unknown", time.monotonic() - began, used, reason=reason)
