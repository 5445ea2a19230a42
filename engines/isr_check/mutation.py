"""Mutants of a design: drop one part of an action, explore again, and see which promise is broken.

A part is a guard, an assignment (the variable then stays as it was), or a term of a definition that actions call: one
operand of a conjunction or of a union of sets, wherever in the definition it stands. The promises keep the definitions
as they were. Dropping a guard only adds behaviours, so no probe (`sometimes`) can notice it; promises about states and
steps and type-ok can. Dropping another part may take behaviours away, so there the probes are asked, too.

One choice of constants is seldom enough. So a mutant is explored at one choice after another, until it breaks a promise
that the design itself keeps at that choice. A part that the settings decide at every choice changes nothing when it is
dropped: it is `settled`.

Many assignments only blank a value that nothing reads any more. So a mutant without an assignment is first walked
through side by side with the design, at the choices small enough for that; if nothing can tell the two apart there, it
is `equivalent`, and not explored any further. Others only hold something up, or count a budget. So what no promise of
safety notices is asked the promises of liveness. If it keeps those, too, it is compared with the design once more: if
the design can take each of its steps, or promises about states see nothing in it that they do not see in the design, it
is `narrower`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import cached_property, reduce
from multiprocessing import get_context
from typing import TypeVar, cast

import attrs

from isr_check.engine import TYPE_OK, Engine, Exploration, Limits, Path, Unsound, Verdict
from isr_check.equivalence import Original, equivalent, simulates
from isr_check.native.states import values
from isr_check.reference import Evaluator, State
from isr_lang import Action, Definition, Design, Instance, Node, Property, Update, Value, Where, text
from isr_lang.instance import reads
from isr_lang.nodes import after, apply, literal
from isr_lang.override import Override, called_definitions
from isr_lang.types import BOOL

T = TypeVar("T")
R = TypeVar("R")
Comparison = Callable[["Own", Instance, int], bool]

EVERY_PROMISE = "every-promise"
PROMISES = ("always", "step")
ROOM, ROOM_OF_LARGE, LARGE = 20, 2, 10_000_000
"""A mutant that exceeds ROOM times the states of the design is given up as undecided. If that is more than LARGE, the
limit is LARGE, or ROOM_OF_LARGE times the states of the design if that is more."""
COMPARISON_LIMIT = 40_000
"""A mutant is compared with the design at the choices where the design has at most so many states."""
MANY = 1_000_000


class Fate(StrEnum):
    """The fates of a mutant, the strongest first. Of its fates at several choices of constants the strongest counts."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    NARROWER = "narrower"
    EQUIVALENT = "equivalent"
    SETTLED = "settled"


class Part(StrEnum):
    """What may be dropped."""

    GUARD = "guard"
    TERM = "term"
    ASSIGNMENT = "assignment"


@attrs.frozen
class Mutant:
    """The design without part number `index` of an action or, of a term, of the definition `action`.

    `guard` is the text of the part. A term that stands in a definition twice is dropped where it stands first.
    """

    action: str
    index: int
    guard: str
    part: Part = Part.GUARD

    @property
    def listed_as(self) -> str:
        """How a list of reasons names the part: an assignment by what is assigned, any other by its text."""
        return self.guard.partition(" == ")[0] if self.part is Part.ASSIGNMENT else self.guard


@attrs.frozen
class Baseline:
    """The design itself at one choice of constants: which promises it keeps there, and how many states it has.

    `witnessed_probes`: the probes of which it has a witness. `comes`: the promises of liveness that it keeps.
    """

    promises: tuple[str, ...]
    complete: bool
    distinct: int
    witnessed_probes: tuple[str, ...] = ()
    comes: tuple[str, ...] = ()


@attrs.frozen
class Outcome:
    """The fate of a mutant. `killers`: the promises that its shortest counterexample breaks, in `depth` steps.

    `choice` is the number of the choice of constants that decided the fate, and `distinct` counts the states of the
    mutant that were explored there.
    """

    mutant: Mutant
    fate: Fate
    killers: tuple[str, ...] = ()
    depth: int | None = None
    choice: int = 0
    distinct: int = 0


@attrs.frozen(eq=False)
class Campaign:
    """A design, the choices of constants at which to explore its mutants, and how to explore them."""

    design: Design
    choices: tuple[Mapping[str, Value], ...]
    engine: Engine
    limits: Limits
    parts: tuple[Part, ...] = (Part.GUARD,)
    orbits: Engine | None = None
    """The engine that sees one state of each orbit; it raises Unsound where there are none.

    It has more to compile. So it is asked where the design has more than MANY states; and not of liveness.
    """
    share: tuple[int, int] = (1, 1)
    """(k, n): of n equal shares of the mutants the kth, which is every nth from the kth on."""
    _own: dict[int, Own] = attrs.field(factory=dict[int, "Own"], init=False, repr=False)

    def mutants(self) -> list[Mutant]:
        first, shares = self.share
        return mutants(self.design, self.parts)[first - 1 :: shares]

    def baseline(self, choice: int) -> Baseline:
        """Explore the design itself at one choice of constants; the caller demands that this was `complete`."""
        instance = self._instance(self.design, choice)
        promises = tuple(p.name for p in instance.properties if p.kind in PROMISES)
        probes = () if self.parts == (Part.GUARD,) else _probes(instance)
        live = _live(instance) if Part.ASSIGNMENT in self.parts else ()
        found = self.engine(instance, (*promises, *probes, *live, TYPE_OK), self.limits, lambda _: None)
        held = tuple(f.name for f in found.findings if f.verdict is Verdict.HOLDS)
        kept = tuple(name for name in held if name not in (*probes, *live))
        met, comes = (tuple(name for name in held if name in those) for those in (probes, live))
        return Baseline(kept, found.complete, found.distinct, met, comes)

    def run(self, mutant: Mutant, design_baselines: Sequence[Baseline]) -> Outcome:
        """The outcome of one mutant: at the first choice of constants that kills it, or else the strongest of all.

        What only a probe notices at one choice, a promise may yet break at another; the large ones are not asked.
        """
        mutated = without_part(self.design, mutant)
        if mutant.part is Part.ASSIGNMENT and (same := self._same(mutant, mutated, design_baselines)) is not None:
            return same
        worst = Outcome(mutant, Fate.SETTLED)
        for choice, baseline in enumerate(design_baselines):
            if worst.fate is Fate.KILLED and baseline.distinct > COMPARISON_LIMIT:
                continue
            outcome = self._run(mutant, mutated, choice, baseline)
            if outcome.fate is Fate.KILLED and outcome.depth is not None:
                return outcome
            if (_RANK[outcome.fate], -outcome.distinct) < (_RANK[worst.fate], -worst.distinct):
                worst = outcome
        if mutant.part is not Part.ASSIGNMENT or worst.fate is not Fate.SURVIVED:
            return worst
        return (
            self._starvation(mutant, mutated, design_baselines)
            or self._narrower(mutant, mutated, design_baselines)
            or worst
        )

    def _starvation(self, mutant: Mutant, mutated: Design, design_baselines: Sequence[Baseline]) -> Outcome | None:
        """The outcome of a mutant in which something never comes to pass that does in the design."""
        for choice, baseline in enumerate(design_baselines):
            if not baseline.comes:
                continue
            limits = attrs.evolve(self.limits, max_states=room_for(baseline.distinct))
            found = self.engine(self._instance(mutated, choice), baseline.comes, limits, lambda _: None)
            broken = [f for f in found.findings if f.verdict is Verdict.VIOLATED and f.path is not None]
            if broken:
                depth = min(len(cast("Path", f.path).steps) for f in broken)
                return Outcome(mutant, Fate.KILLED, tuple(f.name for f in broken), depth, choice, found.distinct)
        return None

    def _narrower(self, mutant: Mutant, mutated: Design, design_baselines: Sequence[Baseline]) -> Outcome | None:
        """The outcome of a mutant that shows promises nothing that the design does not, at any choice small enough.

        Either what promises read has only values that it has there, or the design can take each of its steps beside it.
        """
        return self._comparison(mutant, mutated, design_baselines, _shows_no_more, Fate.NARROWER)

    def _same(self, mutant: Mutant, mutated: Design, design_baselines: Sequence[Baseline]) -> Outcome | None:
        """The outcome of a mutant that nothing can tell from the design at any choice small enough to compare them."""
        return self._comparison(mutant, mutated, design_baselines, equivalent, Fate.EQUIVALENT)

    def _comparison(
        self, mutant: Mutant, mutated: Design, design_baselines: Sequence[Baseline], alike: Comparison, fate: Fate
    ) -> Outcome | None:
        largest_choice = None
        for choice, baseline in enumerate(design_baselines):
            if baseline.distinct > COMPARISON_LIMIT:
                continue
            if choice not in self._own:
                self._own[choice] = Own(self._instance(self.design, choice))
            own, other = self._own[choice], self._instance(mutated, choice)
            if _unchanged(own.instance, other, mutant):
                continue
            if not alike(own, other, room_for(baseline.distinct)):
                return None
            if largest_choice is None or baseline.distinct > design_baselines[largest_choice].distinct:
                largest_choice = choice
        if largest_choice is None:
            return None
        return Outcome(mutant, fate, choice=largest_choice, distinct=design_baselines[largest_choice].distinct)

    def _run(self, mutant: Mutant, mutated: Design, choice: int, baseline: Baseline) -> Outcome:
        promise = one_promise([p for p in mutated.properties if p.name in baseline.promises], mutated.initial.where)
        asked = self._instance(attrs.evolve(mutated, properties=(promise,)), choice)
        if _unchanged(self._instance(self.design, choice), asked, mutant):
            return Outcome(mutant, Fate.SETTLED, choice=choice)
        exploration = self._explored(asked, baseline)
        violations = [f for f in exploration.findings if f.verdict is Verdict.VIOLATED and f.path is not None]
        if not violations:
            if unmet := self._unmet_probes(mutant, mutated, choice, baseline) if exploration.complete else ():
                return Outcome(mutant, Fate.KILLED, unmet, None, choice, exploration.distinct)
            fate = Fate.SURVIVED if exploration.complete else Fate.UNDECIDED
            return Outcome(mutant, fate, choice=choice, distinct=exploration.distinct)
        first = min(violations, key=lambda f: len(cast("Path", f.path).steps))
        path, full = cast("Path", first.path), self._instance(mutated, choice)
        killers = (TYPE_OK,) if first.name == TYPE_OK else broken_by(full, path, baseline.promises)
        return Outcome(mutant, Fate.KILLED, killers, len(path.steps), choice, exploration.distinct)

    def _unmet_probes(self, mutant: Mutant, mutated: Design, choice: int, baseline: Baseline) -> tuple[str, ...]:
        """The probes of which the design has a witness, and the mutant, explored to the end, has none."""
        if mutant.part is Part.GUARD or not baseline.witnessed_probes:
            return ()
        found = self._search(self._instance(mutated, choice), baseline, baseline.witnessed_probes, self.limits)
        return tuple(f.name for f in found.findings if f.verdict is Verdict.VACUOUS)

    def _explored(self, mutant: Instance, baseline: Baseline) -> Exploration:
        property_names, room = (EVERY_PROMISE, TYPE_OK), room_for(baseline.distinct)
        given = self.limits.max_states
        limits = attrs.evolve(self.limits, max_states=room if given is None else min(room, given))
        return self._search(mutant, baseline, property_names, limits)

    def _search(
        self, mutant: Instance, baseline: Baseline, property_names: tuple[str, ...], limits: Limits
    ) -> Exploration:
        """Explore, many states by symmetry where that is sound; `distinct` counts states all the same."""
        if self.orbits is not None and baseline.distinct > MANY:
            try:
                found = self.orbits(mutant, property_names, limits, lambda _: None)
                return attrs.evolve(found, distinct=found.states_in_orbits or found.distinct)
            except Unsound:
                pass
        return self.engine(mutant, property_names, limits, lambda _: None)

    def _instance(self, design: Design, choice: int) -> Instance:
        """The design or a mutant of it at a choice; a mutant may have lost the only mention of a constant."""
        known = {c.name for c in design.constants()}
        return Instance(design, {name: v for name, v in self.choices[choice].items() if name in known})


class Own(Original):
    """The design itself at one choice of constants, few enough states to compare mutants with."""

    @cached_property
    def visible_values(self) -> set[State]:
        """What promises about states read, as it is in its states; empty if they break type-ok."""
        return values(self.instance, self.read_variables, Limits()) or set()

    @cached_property
    def read_variables(self) -> set[str]:
        """The variables that promises about states read."""
        promises = [p for p in self.instance.properties if p.kind == "always"]
        return set[str]().union(*(reads(p.condition, self.instance) for p in promises))


def _shows_no_more(own: Own, other: Instance, most: int) -> bool:
    return _among(own, other, most) or simulates(own, other, most)


def _among(own: Own, other: Instance, most: int) -> bool:
    """Whether the other shows promises about states only what its own design shows them, too."""
    found = values(other, own.read_variables, Limits(max_states=most))
    return found is not None and found <= own.visible_values


def _probes(instance: Instance) -> tuple[str, ...]:
    return tuple(p.name for p in instance.properties if p.kind.startswith("sometimes"))


def _live(instance: Instance) -> tuple[str, ...]:
    return tuple(p.name for p in instance.properties if p.kind == "eventually")


_RANK = {fate: rank for rank, fate in enumerate(Fate)}


def room_for(distinct: int) -> int:
    """How many states a mutant may have, by the number of the design's own."""
    return max(1000, min(ROOM * distinct, LARGE), ROOM_OF_LARGE * distinct)


def mutants(design: Design, parts: Collection[Part] = (Part.GUARD,)) -> list[Mutant]:
    """The mutants of a design, one for each part of these kinds, in the order of the model, terms last."""
    all_mutants: list[Mutant] = []
    for a in design.actions:
        if Part.GUARD in parts:
            all_mutants += [Mutant(a.name, i, text(g.condition)) for i, g in enumerate(a.guards)]
        if Part.ASSIGNMENT in parts:
            all_mutants += [Mutant(a.name, i, _assignment(u), Part.ASSIGNMENT) for i, u in enumerate(a.updates)]
    if Part.TERM in parts:
        for d in _called_by_actions(design):
            all_mutants += [Mutant(d.name, i, text(term), Part.TERM) for i, (_, term) in enumerate(_terms(d))]
    return all_mutants


def without_part(design: Design, mutant: Mutant) -> Design:
    """The design without one part; what it promises stays what it was."""

    def less(action: Action) -> Action:
        if mutant.part is Part.GUARD:
            return attrs.evolve(action, guards=_but(action.guards, mutant.index))
        return attrs.evolve(action, updates=_but(action.updates, mutant.index))

    if mutant.part is not Part.TERM:
        changed = tuple(less(a) if a.name == mutant.action else a for a in design.actions)
        return attrs.evolve(design, actions=changed)
    whole = _definition(design, mutant.action)
    override = Override({whole: attrs.evolve(whole, body=_less(whole, mutant.index))})
    return attrs.evolve(design, actions=tuple(map(override.action, design.actions)))


def _but(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _assignment(update: Update) -> str:
    path = "".join(f"[{text(n)}]" for n in update.path)
    return f"new.{update.variable}{path} == {text(update.value)}"


def _called_by_actions(design: Design) -> list[Definition]:
    """The definitions that actions call, those called by others first; those of promises alone are left out."""
    conditions = [g.condition for a in design.actions for g in a.guards]
    values = [n for a in design.actions for u in a.updates for n in (*u.path, u.value)]
    used = frozenset[Definition]().union(*map(called_definitions, (*conditions, *values)))
    return [d for d in design.definitions() if d in used]


def _definition(design: Design, name: str) -> Definition:
    return next(d for d in _called_by_actions(design) if d.name == name)


CHAINS = ("and", "union")


def _terms(definition: Definition) -> list[tuple[Node, Node]]:
    """The operands of every conjunction and union in a definition, each with the whole that it is an operand of."""
    terms: dict[tuple[Node, Node], None] = {}

    def visit(node: Node, above: str) -> None:
        if node.op in CHAINS and node.op != above:
            terms.update(dict.fromkeys((node, term) for term in _operands(node, node.op)))
        for n in node.args:
            visit(n, node.op)

    visit(definition.body, "")
    return list(terms)


def _operands(node: Node, op: str) -> list[Node]:
    return [n for a in node.args for n in _operands(a, op)] if node.op == op else [node]


def _less(definition: Definition, index: int) -> Node:
    """The body of a definition without one of its terms."""
    whole, dropped = _terms(definition)[index]
    rest = [n for n in _operands(whole, whole.op) if n is not dropped]
    left = reduce(lambda a, b: apply(whole.op, a, b), rest) if rest else dropped

    def rebuild(node: Node) -> Node:
        if node is whole:
            return left
        return Node(node.op, tuple(map(rebuild, node.args)), node.attr, node.type)

    return rebuild(definition.body)


_current: tuple[Campaign, Sequence[Baseline]] | None = None


def _baseline(choice: int) -> Baseline:
    assert _current is not None, "forked after the campaign was set"
    return _current[0].baseline(choice)


def _outcome(mutant: Mutant) -> Outcome:
    assert _current is not None, "forked after the campaign was set"
    return _current[0].run(mutant, _current[1])


def baselines(job: Campaign, workers: int = 1) -> Iterator[Baseline]:
    """The baseline at every choice of constants, in order."""
    yield from _shared(job, (), _baseline, range(len(job.choices)), workers)


def outcomes(job: Campaign, design_baselines: Sequence[Baseline], workers: int = 1) -> Iterator[Outcome]:
    """The outcome of every mutant in the order of the model, whatever the number of processes."""
    yield from _shared(job, design_baselines, _outcome, job.mutants(), workers)


def _shared(
    job: Campaign, design_baselines: Sequence[Baseline], function: Callable[[T], R], items: Sequence[T], workers: int
) -> Iterator[R]:
    """Apply the function to the items in `workers` processes; results come in the order of the items.

    A design is a graph of shared nodes and cannot be sent to another process. So the processes are forks of this one.
    A fork of a process with threads can hang, so this process must have none: it leaves all exploration to the others.
    """
    global _current
    _current = job, design_baselines
    if workers == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        yield from pool.map(function, items)


def one_promise(properties: list[Property], where: Where) -> Property:
    """All promises joined to one about steps, so that the search ends as soon as any of them is broken."""
    conditions: list[Node] = [literal(True, BOOL)]
    for p in properties:
        condition = p.condition if p.kind == "step" else after(p.condition)
        conditions.append(apply("implies", p.when, condition) if p.when is not None else condition)
    together = reduce(lambda a, b: apply("and", a, b), conditions)
    return Property(EVERY_PROMISE, "step", together, "Every promise at once.", where)


def broken_by(instance: Instance, path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """The promises that do not hold at the end of a behaviour."""
    evaluator = Evaluator(instance)
    states = replay(evaluator, path)
    last, before = states[-1], states[-2] if len(states) > 1 else None

    def holds(p: Property) -> bool:
        if p.kind == "step":
            return before is None or evaluator.holds(p, before, last)
        return evaluator.holds(p, last)

    return tuple(p.name for p in instance.properties if p.name in names and not holds(p))


def replay(evaluator: Evaluator, path: Path) -> list[State]:
    """All states of a behaviour that is given by names of actions."""
    states = [next(s for p, s in evaluator.initial_states() if p == path.initial)]
    names = [a.name for a in evaluator.instance.actions]
    for action, parameters in path.steps:
        steps = evaluator.successors(states[-1])
        states.append(next(s for i, p, s in steps if names[i] == action and p == parameters))
    return states


def _unchanged(before: Instance, after_: Instance, mutant: Mutant) -> bool:
    """Whether the settings, folded in, decide what was dropped."""
    if mutant.part is Part.TERM:
        whole = _definition(before.design, mutant.action)
        return before.body(whole) is before.body(attrs.evolve(whole, body=_less(whole, mutant.index)))
    one, other = (next((a for a in i.actions if a.name == mutant.action), None) for i in (before, after_))
    if one is None or other is None:
        return one is other
    same_guards = [g.condition for g in one.guards] == [g.condition for g in other.guards]
    return same_guards and len(one.updates) == len(other.updates)
