"""Mutants of a design: drop one guard, explore again, and see which promise is broken.

Dropping a guard only adds behaviours, so no probe (`sometimes`) can notice it; promises about states and steps and
type-ok can. One choice of constants is seldom enough. So a mutant is explored at one choice after another, until it
breaks a promise that the design itself keeps at that choice. A guard that the settings make true at every choice
changes nothing when it is dropped: it is `settled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import reduce
from multiprocessing import get_context
from typing import TypeVar, cast

import attrs

from isr_check.engine import TYPE_OK, Engine, Exploration, Limits, Path, Verdict
from isr_check.explorer import explore as reference
from isr_check.reference import Evaluator, State
from isr_lang import Action, Design, Instance, Node, Property, Value, Where, text
from isr_lang.nodes import apply, literal
from isr_lang.types import BOOL

T = TypeVar("T")
R = TypeVar("R")

EVERY_PROMISE = "every-promise"
ROOM, ROOM_OF_LARGE, LARGE = 20, 2, 10_000_000
"""A mutant that exceeds ROOM times the states of the design is given up as undecided. If that is more than LARGE, the
limit is LARGE, or ROOM_OF_LARGE times the states of the design if that is more."""


class Fate(StrEnum):
    """The fates of a mutant, the strongest first. Of its fates at several choices of constants the strongest counts."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNDECIDED = "undecided"
    SETTLED = "settled"


@attrs.frozen
class Mutant:
    """The design without guard number `index` of an action; `guard` is its text."""

    action: str
    index: int
    guard: str


@attrs.frozen
class Baseline:
    """The design itself at one choice of constants: which promises it keeps there, and how many states it has."""

    kept: tuple[str, ...]
    complete: bool
    distinct: int


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

    def baseline(self, choice: int) -> Baseline:
        """Explore the design itself at one choice of constants; the caller demands that this was `complete`."""
        instance = self._instance(self.design, choice)
        promises = tuple(p.name for p in instance.properties if p.kind in ("always", "step"))
        found = self.engine(instance, (*promises, TYPE_OK), self.limits, lambda _: None)
        kept = tuple(f.name for f in found.findings if f.verdict is Verdict.HOLDS)
        return Baseline(kept, found.complete, found.distinct)

    def run(self, mutant: Mutant, known: Sequence[Baseline]) -> Outcome:
        """The outcome of one mutant: at the first choice of constants that kills it, or else the strongest of all."""
        mutated = without_guard(self.design, mutant)
        worst = Outcome(mutant, Fate.SETTLED)
        for choice, baseline in enumerate(known):
            outcome = self._run(mutant, mutated, choice, baseline)
            if outcome.fate is Fate.KILLED:
                return outcome
            if (_RANK[outcome.fate], -outcome.distinct) < (_RANK[worst.fate], -worst.distinct):
                worst = outcome
        return worst

    def _run(self, mutant: Mutant, mutated: Design, choice: int, baseline: Baseline) -> Outcome:
        promise = one_promise([p for p in mutated.properties if p.name in baseline.kept], mutated.initial.where)
        asked = self._instance(attrs.evolve(mutated, properties=(promise,)), choice)
        if _same_action(self._instance(self.design, choice), asked, mutant.action):
            return Outcome(mutant, Fate.SETTLED, choice=choice)
        found = self._explored(asked, baseline)
        broken = [f for f in found.findings if f.verdict is Verdict.VIOLATED and f.path is not None]
        if not broken:
            fate = Fate.SURVIVED if found.complete else Fate.UNDECIDED
            return Outcome(mutant, fate, choice=choice, distinct=found.distinct)
        first = min(broken, key=lambda f: len(cast("Path", f.path).steps))
        path, full = cast("Path", first.path), self._instance(mutated, choice)
        killers = (TYPE_OK,) if first.name == TYPE_OK else broken_by(full, path, baseline.kept)
        return Outcome(mutant, Fate.KILLED, killers, len(path.steps), choice, found.distinct)

    def _explored(self, mutant: Instance, baseline: Baseline) -> Exploration:
        wanted, room = (EVERY_PROMISE, TYPE_OK), room_for(baseline.distinct)
        given = self.limits.max_states
        limits = attrs.evolve(self.limits, max_states=room if given is None else min(room, given))
        try:
            return self.engine(mutant, wanted, limits, lambda _: None)
        except OverflowError:  # far out of range, where only unbounded numbers can follow
            return reference(mutant, wanted, limits)

    def _instance(self, design: Design, choice: int) -> Instance:
        """The design or a mutant of it at a choice; a mutant may have lost the only mention of a constant."""
        known = {c.name for c in design.constants()}
        return Instance(design, {name: v for name, v in self.choices[choice].items() if name in known})


_RANK = {fate: rank for rank, fate in enumerate(Fate)}


def room_for(distinct: int) -> int:
    """How many states a mutant may have, by the number of the design's own."""
    return max(1000, min(ROOM * distinct, LARGE), ROOM_OF_LARGE * distinct)


def mutants(design: Design) -> list[Mutant]:
    """The mutants of a design, one for each guard, in the order of the model."""
    return [Mutant(a.name, i, text(g.condition)) for a in design.actions for i, g in enumerate(a.guards)]


def without_guard(design: Design, mutant: Mutant) -> Design:
    def less(action: Action) -> Action:
        guards = action.guards[: mutant.index] + action.guards[mutant.index + 1 :]
        return attrs.evolve(action, guards=guards)

    changed = tuple(less(a) if a.name == mutant.action else a for a in design.actions)
    return attrs.evolve(design, actions=changed)


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


def outcomes(job: Campaign, known: Sequence[Baseline], workers: int = 1) -> Iterator[Outcome]:
    """The outcome of every mutant in the order of the model, whatever the number of processes."""
    yield from _shared(job, known, _outcome, mutants(job.design), workers)


def _shared(
    job: Campaign, known: Sequence[Baseline], function: Callable[[T], R], items: Sequence[T], workers: int
) -> Iterator[R]:
    """Apply the function to the items in `workers` processes; results come in the order of the items.

    A design is a graph of shared nodes and cannot be sent to another process. So the processes are forks of this one.
    A fork of a process with threads can hang, so this process must have none: it leaves all exploration to the others.
    """
    global _current
    _current = job, known
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


def after(node: Node) -> Node:
    """A condition over one state, restated of the state after a step."""
    args = tuple(after(a) for a in node.args)
    if node.op in ("variable", "call"):
        return Node(node.op, args, (node.attr[0], True), node.type)
    return Node(node.op, args, node.attr, node.type)


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


def _same_action(one: Instance, other: Instance, name: str) -> bool:
    """Whether an action is the same in two instances, after the settings are folded in."""
    before, after_ = (next((a for a in i.actions if a.name == name), None) for i in (one, other))
    if before is None or after_ is None:
        return before is after_
    return [g.condition for g in before.guards] == [g.condition for g in after_.guards]
