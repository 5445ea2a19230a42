"""The strategy by which a solver is asked for a goal: with which hypotheses, with which options, and for how long.

A solver that is given all hypotheses drowns in instances of quantifiers. So each part of a goal is first asked with few
hypotheses: those that are not about sequences, the conjunct itself, and the lemmas that the conjunct names. Of these,
at first only those about the goal's own sequences are used. Leaving a hypothesis out is always sound. Before all that
comes what refuted this part in an earlier proof, if it is known (`cores`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import Any, cast

import attrs

from isr_check.smt.cores import GUARDS, Core, Cores
from isr_check.smt.equal_goals import Sameness
from isr_check.smt.induction import INITIAL, RANGES, Induction, NamedTerm, Obligation, Query, Witness
from isr_check.smt.processor_time import check
from isr_check.smt.solver import MEGABYTES, Answer, Proof
from isr_check.smt.terms import logic
from isr_check.smt.terms.logic import Term, conjuncts, identity, plus, z3
from isr_check.smt.terms.shapes import OF_MANY, WRITTEN_ELEMENTS
from isr_check.smt.terms.values import Items, Table, Value
from isr_lang.promises import ANY_NUMBER
from isr_lang.types import SortType

Setting = dict[str, object]
Label = tuple[int, int]
"""An attempt: its number in the plan, and the number of the witness (`Strategy.witnesses`)."""

# Options of z3. Both instantiate quantifiers at the terms that occur; neither is better everywhere.
WAYS: tuple[Setting, ...] = (
    {"arith.solver": 2, "case_split": 3, "delay_units": True, "qi.eager_threshold": 100.0},
    {"case_split": 3, "delay_units": True, "qi.eager_threshold": 100.0},
)
PLAIN: Setting = {"auto_config": False, "mbqi": False}
FIRST, SECOND = 1.5, 4.0
"""Seconds of processor time for one question in the first and the second round; the third has the whole limit."""

MARK = "in view"
SOME = "some"

NONE, SMALL, ALL = range(3)
"""Which lemmas about elements without a name to use: none, those that are not about sequences, or all."""


@attrs.frozen(eq=False)
class _Selection:
    """A choice of hypotheses.

    `strict`: no lemmas about other sequences of the goal's families. `others`: which lemmas about elements without a
    name (NONE, SMALL, ALL). `with_sizes`: with axioms about the sizes of sets. `first`: tried in the first round
    already. `witnessed`: also tried with each witness that the lemmas give. `only_named`: no lemma that the conjunct
    does not name, which are few, so that it takes no time to see that they do not suffice.
    """

    strict: bool
    others: int
    with_sizes: bool
    first: bool
    witnessed: bool = False
    only_named: bool = False


SELECTIONS = (_Selection(True, ALL, True, True), _Selection(False, ALL, True, False))
SELECTIONS_OF_MANY = (
    _Selection(False, ALL, True, True, only_named=True),
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


@attrs.frozen(eq=False)
class _Attempt:
    """Assertions with the denied goal, and whether they are few enough for the first round.

    `named_by`: the properties that say that the element exists to which a naming gives a name.
    """

    label: Label
    narrow: bool
    assertions: list[NamedTerm]
    named_by: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class _PartDecisions:
    """What is known of the parts of one query: the answers to those that are proved, and whose cores are stale."""

    query: Query | None
    with_core: bool
    proved: dict[int, Answer] = attrs.field(factory=dict[int, Answer])
    stale: set[int] = attrs.field(factory=set[int])


class Strategy:
    """A way to prove the obligations of one induction; made once and shared by all of them.

    `hints`: conjunct -> action -> names of the lemmas to try first (isr_lang.Conjunct.by). `cores`: what to begin with.
    """

    def __init__(
        self,
        induction: Induction,
        hints: Mapping[str, Mapping[str, Sequence[str]]],
        exchange: bool = True,
        cores: Cores | None = None,
    ) -> None:
        """With `exchange`, only one of several goals is asked that differ in names of elements only (equal_goals)."""
        self.induction, self.hints, self.exchange = induction, hints, exchange
        self.cores = cores or Cores()
        types = induction.design.types()
        self.sorts = [t for t in types if isinstance(t, SortType) and t.symmetric and t not in induction.apart]
        self.many = bool(induction.goals.sorts)
        self._about: dict[int, tuple[Term, frozenset[str]]] = {}
        self._after: dict[tuple[str, int], list[Term]] = {}
        self._successful_labels: dict[tuple[str, str | None], dict[Label, None]] = {}
        self.order = [c.name for c in induction.conjuncts]
        self._before: dict[str, list[NamedTerm]] = {}
        for name, x in induction.hypotheses:
            self._before.setdefault(name, []).append((name, x))
        self._last = _PartDecisions(None, False)

    @cached_property
    def lemmas(self) -> list[_Lemma]:
        """The hypotheses, looked at once; who knows a core of every part need not look at all."""
        return [self._lemma(name, x) for name, x in self.induction.hypotheses]

    def decide(self, obligation: Obligation, query: Query, seconds: float, with_core: bool = False) -> Answer:
        """Whether every part of the goal follows: 'unsat' if so, else 'unknown'."""
        if (self._last.query, self._last.with_core) != (query, with_core):
            self._last = _PartDecisions(query, with_core)
        began, core_names, proofs = time.process_time(), dict[str, None](), list[Proof]()
        same, proved = self._sameness(obligation, query), set[bytes]()
        for number, goal in enumerate(conjuncts(query.goal)):
            key = same.key(goal) if same else b""
            if same and key in proved:
                continue
            answer = self._part(obligation, attrs.evolve(query, goal=goal), number, seconds, with_core)
            if answer.status != "unsat":
                return attrs.evolve(answer, seconds=time.process_time() - began)
            proved.add(key)
            core_names |= dict.fromkeys(answer.used_names)
            proofs += answer.proofs
        return Answer("unsat", time.process_time() - began, tuple(core_names), proofs=tuple(proofs))

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

    def _part(self, obligation: Obligation, part: Query, number: int, seconds: float, with_core: bool) -> Answer:
        """The answer to one part. One that is known is given again; of a stale core nothing is asked twice."""
        last = self._last
        if number in last.proved:
            return last.proved[number]
        answer = None if number in last.stale else self._answer_from_core(obligation, part, number, with_core)
        if answer is None:
            last.stale.add(number)
            answer = self._goal(obligation, part, seconds, with_core)
        if answer.status == "unsat":
            answer = attrs.evolve(answer, proofs=tuple(attrs.evolve(p, part=number) for p in answer.proofs))
            last.proved[number] = answer
        return answer

    # what was learnt

    def question(self, obligation: Obligation, query: Query) -> str:
        """The name of a question in a file of cores: it says how many elements there are, and no design."""
        sizes = ("any" if self.many else self.induction.translation.shapes.size(s) for s in self.sorts)
        where = f"{obligation.kind} {obligation.conjunct} / {obligation.action or obligation.kind}"
        return f"{','.join(map(str, sizes))}: {where}({query.choice.text()})"

    def count_unlearnt(self, obligation: Obligation) -> tuple[int, int]:
        """How long an obligation takes: the parts of which no core is known, and all parts."""
        parts = [len(conjuncts(q.goal)) for q in obligation.queries]
        asked = zip(obligation.queries, parts, strict=True)
        return sum(self.cores.missing(self.question(obligation, q), n) for q, n in asked), sum(parts)

    def _answer_from_core(self, obligation: Obligation, query: Query, number: int, with_core: bool) -> Answer | None:
        """The answer to one part by what refuted it before: that, the same with all guards, all of the same names.

        Guards change places where a design has one more than that of which the core was learnt. What costs least is
        tried first of all cores, for each may be of another design.
        """
        stored_cores = self.cores.of(self.question(obligation, query), number)
        guarded = [self._with_all_guards(c, obligation, query) for c in stored_cores]
        for cores, wider, limit in (
            (stored_cores, False, SECOND),
            (guarded, False, SECOND),
            (stored_cores, True, FIRST),
        ):
            for core in cores:
                assertions = self.core_assertions(obligation, query, core, wider)
                answer = Answer("unknown", 0.0) if assertions is None else ask(assertions, limit, WAYS[core.way])
                if assertions is not None and answer.status == "unsat":
                    named_by = core.some[0] if core.some else ()
                    known = None if wider else core
                    return _refuted(query, assertions, WAYS[core.way], answer, with_core, known, named_by)
        return None

    def _with_all_guards(self, core: Core, obligation: Obligation, query: Query) -> Core:
        every = tuple(range(len(self.formulas(obligation, query, GUARDS))))
        return attrs.evolve(core, uses=(*((n, places) for n, places in core.uses if n != GUARDS), (GUARDS, every)))

    def core_assertions(
        self, obligation: Obligation, query: Query, core: Core, wider: bool = False
    ) -> list[NamedTerm] | None:
        """The assertions that a core names, with the denied goal; None if it names what there is not."""
        hypotheses: list[NamedTerm] = []
        try:
            for name, places in core.uses:
                every = self.formulas(obligation, query, name)
                hypotheses += every if wider else [every[k] for k in places]
            if core.some is not None:
                names, number = core.some
                witness, _ = next(islice(self.witnesses(obligation, query, names), number, None))
                hypotheses.append((SOME, witness.term))
        except (IndexError, StopIteration, ValueError):
            return None
        return self._assertions(query, hypotheses, core.sizes or wider, core.view or wider)

    def formulas(self, obligation: Obligation, query: Query, name: str) -> list[NamedTerm]:
        """The hypotheses of one name, as cores call them; ValueError if the name would make the proof circular."""
        if name == GUARDS:
            return list(query.hypotheses[0 if obligation.kind == INITIAL else len(self.induction.hypotheses) :])
        if name.endswith("'"):
            return [(name, x) for x in self._later(name[:-1], obligation, query)]
        return [] if obligation.kind == INITIAL else self._before.get(name, [])

    # what is tried otherwise

    def _goal(self, obligation: Obligation, query: Query, seconds: float, with_core: bool) -> Answer:
        """Try to prove one part. An attempt that proved another part is tried first, and then its next witness."""
        hopeless: set[Label] = set()
        answer = Answer("unknown", 0.0, reason="no attempt")
        successful_labels = self._successful_labels.setdefault((obligation.conjunct, obligation.action), {})
        near = [(number, k + more) for number, k in reversed(successful_labels) for more in (0, 1)]
        again = [(SECOND, near)] if successful_labels and self.many else []
        rungs: list[tuple[float, Sequence[Label] | None]] = [(r, None) for r in (FIRST, SECOND) if r < seconds]
        for rung, only in (*again, *rungs, (seconds, None)):
            for attempt in self._attempts(obligation, query, only):
                if attempt.label in hopeless or (rung == FIRST and not attempt.narrow):
                    continue
                for way in WAYS[:1] if rung == FIRST else WAYS:
                    answer = ask(attempt.assertions, rung, way)
                    if answer.status == "unsat":
                        successful_labels.pop(attempt.label, None)
                        successful_labels[attempt.label] = None
                        return _refuted(query, attempt.assertions, way, answer, with_core, named_by=attempt.named_by)
                if "quantifiers" in answer.reason:
                    hopeless.add(attempt.label)  # it has seen all instances that there are, and more time makes no more
        return answer

    def _attempts(
        self, obligation: Obligation, query: Query, only: Sequence[Label] | None = None
    ) -> Iterator[_Attempt]:
        """The attempts, each once.

        First the lemmas that the conjunct names, then these with each witness, then more lemmas. `only` restricts the
        attempts to these labels.
        """
        tried_keys: set[tuple[frozenset[int], bool, bool]] = set()
        every = tuple(dict.fromkeys(lemma.name for lemma in self.lemmas))
        own, hinted = self._hinted_lemmas(obligation)
        passes = ((own, False), (own or [hinted], True), ([hinted, every], False))
        ways = SELECTIONS_OF_MANY if self.many else SELECTIONS
        plan = [(names, way, witnessed) for sets, witnessed in passes for names, way in product(sets, ways)]
        for number, (names, way, witnessed) in enumerate(plan):
            if (witnessed and not way.witnessed) or (only is not None and all(number != n for n, _ in only)):
                continue
            hypotheses = self._select_hypotheses(obligation, query, names, way)
            key = frozenset(identity(x) for _, x in hypotheses), way.with_sizes, witnessed
            if key in tried_keys:
                continue
            tried_keys.add(key)
            if not witnessed:
                assertions = self._assertions(query, hypotheses, way.with_sizes)
                yield _Attempt((number, 0), way.first and names is not every, assertions)
                continue
            known = (obligation.conjunct, *names)
            for k, (w, named_by) in enumerate(self.witnesses(obligation, query, known)):
                if only is None or (number, k) in only:
                    assertions = self._assertions(query, (*hypotheses, (SOME, w.term)), way.with_sizes)
                    yield _Attempt((number, k), True, assertions, named_by)

    def _select_hypotheses(
        self, obligation: Obligation, query: Query, names: Sequence[str], way: _Selection
    ) -> tuple[NamedTerm, ...]:
        """The hypotheses of an attempt: small lemmas, lemmas of these names, guards, and conjuncts after the step."""
        guards = self.formulas(obligation, query, GUARDS)
        about = self._sequences(query.goal).union(*(self._sequences(x) for _, x in guards))
        families = {_family(f) for f in about}
        chosen_names = {obligation.conjunct, RANGES, *names}
        after = [(n, x) for n in names if n.endswith("'") for x in self._later(n[:-1], obligation, query)]
        return (
            *(
                (x.name, x.term)
                for x in (() if obligation.kind == INITIAL else self.lemmas)
                if (not x.others or way.others == ALL or (way.others == SMALL and x.small))
                and (
                    (x.small and not way.only_named)
                    or (x.name in chosen_names and not (way.strict and _elsewhere(x.about, about, families)))
                )
            ),
            *guards,
            *((n, x) for n, x in after if way.others == ALL or not logic.about_others(x)),
        )

    def _assertions(
        self, query: Query, hypotheses: Sequence[NamedTerm], with_sizes: bool, view: bool = True
    ) -> list[NamedTerm]:
        asked = self.induction.assertions(attrs.evolve(query, hypotheses=tuple(hypotheses)), with_sizes=with_sizes)
        return [*asked, *((MARK, x) for x in _marks(query))] if view else asked

    def witnesses(
        self, obligation: Obligation, query: Query, names: Sequence[str]
    ) -> Iterator[tuple[Witness, tuple[str, ...]]]:
        """The witnesses that conjuncts give (with a stroke: after the step), each with the names of its own ones.

        At the start no conjunct is known: what it says there is the goal itself.
        """
        if obligation.kind == INITIAL:
            return
        conjuncts = {c.name: c for c in self.induction.conjuncts}
        goals = conjuncts | {p.name: p for p in self.induction.design.properties}
        before = [n for n in names if n in conjuncts]
        after = [n for n in names if n.endswith("'")]
        for name in after:
            self._later(name[:-1], obligation, query)
        known = [(conjuncts[n], query.old) for n in before]
        known += [(conjuncts[n[:-1]], query.new) for n in after if query.new is not None]
        if obligation.conjunct in goals:
            for w in self.induction.witnesses(goals[obligation.conjunct], query.choice, known):
                yield w, tuple(dict.fromkeys((*before, *after)[i] for i in w.of))

    def _hinted_lemmas(self, obligation: Obligation) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
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
            sequences, visited, stack = set[str](), set[int](), [cast("Any", x)]
            while stack:
                t = stack.pop()
                if t.get_id() in visited:
                    continue
                visited.add(t.get_id())
                if z3.is_app(t) and t.num_args() and t.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                    sequences |= _sequence(str(t.decl().name()), t.children())
                stack += [t.body()] if z3.is_quantifier(t) else t.children()
            self._about[identity(x)] = x, frozenset(sequences)
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
    marks: list[Term] = []

    def visit(value: Value) -> None:
        if isinstance(value, tuple):
            for part in value:
                visit(part)
        elif isinstance(value, Table):
            for k in range(WRITTEN_ELEMENTS):
                visit(value.at(k))
        elif isinstance(value, Items) and callable(value.items) and not isinstance(value.length, int):
            for at in (value.length, plus(value.length, -1)):
                item = value.items(at)
                if z3.is_expr(item) and z3.is_int(item):
                    marks.append(mark(item))

    for value in query.old.values():
        visit(value)
    return marks


def ask(assertions: Sequence[NamedTerm], seconds: float, way: Setting, with_core: bool = False) -> Answer:
    """Whether z3 refutes the assertions with these options: 'unsat' or 'unknown'."""
    began = time.process_time()
    solver = z3.SimpleSolver()
    solver.set("max_memory", MEGABYTES)
    for name, value in {**PLAIN, **way}.items():
        solver.set(name, value)
    for name, assertion in assertions:
        if with_core:
            solver.assert_and_track(assertion, z3.Bool(f"{name}#{identity(assertion)}"))
        else:
            solver.add(assertion)
    status = check(solver, seconds)
    core_names = tuple(dict.fromkeys(str(c).rpartition("#")[0] for c in solver.unsat_core())) if with_core else ()
    # With these options z3 does not check a model against quantifiers, so a state that it finds is only a candidate.
    reason = "" if status == "unsat" else str(solver.reason_unknown() if status == "unknown" else "quantifiers")
    return Answer("unsat" if status == "unsat" else "unknown", time.process_time() - began, core_names, reason=reason)


def _refuted(
    query: Query,
    assertions: Sequence[NamedTerm],
    way: Setting,
    answer: Answer,
    with_core: bool,
    stored_core: Core | None = None,
    named_by: tuple[str, ...] = (),
) -> Answer:
    """The answer with its proof and, if `with_core`, with the names of the assertions that z3 used."""
    proof = Proof(query.goal, tuple(assertions), {**PLAIN, **way}, answer.seconds, named_by=named_by, core=stored_core)
    needed = ask(assertions, 10 * max(answer.seconds, 1.0), way, with_core=True).used_names if with_core else ()
    return attrs.evolve(answer, used_names=needed, proofs=(proof,))
