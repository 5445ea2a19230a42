"""Mutants of a design: drop one guard, explore again, and see which promise notices.

Dropping a guard only adds behaviour, so a probe (`sometimes`) cannot notice; promises about states and steps
and type-ok can. Only promises that the design itself keeps at these bounds are asked. A guard that the
settings decide anyway makes no mutant: it is `settled`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import reduce
from multiprocessing import get_context
from typing import cast

import attrs

from isr_check.engine import TYPE_OK, Engine, Exploration, Limits, Path, Verdict
from isr_check.explorer import explore as reference
from isr_check.reference import Evaluator, State
from isr_lang import Action, Design, Instance, Node, Property, Value, Where, text
from isr_lang.nodes import apply, literal
from isr_lang.types import BOOL

EVERY_PROMISE = "every-promise"
ROOM = 20
"""A mutant may have this many times the states of the design before it is given up as undecided."""


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    SETTLED = "settled"
    UNDECIDED = "undecided"


@attrs.frozen
class Mutant:
    """The design less guard `index` of an action; `guard` is its text."""

    action: str
    index: int
    guard: str


@attrs.frozen
class Outcome:
    """`killers`: the promises broken by the last step of the shortest such behaviour, `depth` its steps.

    `distinct` is how many states the mutant has as far as it was explored.
    """

    mutant: Mutant
    fate: Fate
    killers: tuple[str, ...] = ()
    depth: int | None = None
    distinct: int = 0


@attrs.frozen(eq=False)
class Campaign:
    """One design at some constants and the promises it keeps there; how its mutants are explored."""

    design: Design
    constants: dict[str, Value]
    engine: Engine
    kept: tuple[str, ...]
    limits: Limits

    def run(self, mutant: Mutant) -> Outcome:
        """What became of one mutant."""
        mutated = without_guard(self.design, mutant)
        instance = self._instance(mutated)
        if _same_action(self._instance(self.design), instance, mutant.action):
            return Outcome(mutant, Fate.SETTLED)
        promise = one_promise(
            [p for p in instance.design.properties if p.name in self.kept], mutated.initial.where
        )
        asked = self._instance(attrs.evolve(mutated, properties=(promise,)))
        found = self._explored(asked)
        broken = [f for f in found.findings if f.verdict is Verdict.VIOLATED and f.path is not None]
        if not broken:
            return Outcome(
                mutant, Fate.SURVIVED if found.complete else Fate.UNDECIDED, distinct=found.distinct
            )
        first = min(broken, key=lambda f: len(cast("Path", f.path).steps))
        path = cast("Path", first.path)
        killers = (TYPE_OK,) if first.name == TYPE_OK else broken_by(instance, path, self.kept)
        return Outcome(mutant, Fate.KILLED, killers, len(path.steps), found.distinct)

    def _explored(self, mutant: Instance) -> Exploration:
        wanted = (EVERY_PROMISE, TYPE_OK)
        try:
            return self.engine(mutant, wanted, self.limits, lambda _: None)
        except OverflowError:  # far out of range, where only unbounded numbers can follow
            return reference(mutant, wanted, self.limits)

    def _instance(self, design: Design) -> Instance:
        """A variant of the design, which may have lost the only mention of a constant."""
        known = {c.name for c in design.constants()}
        return Instance(design, {name: v for name, v in self.constants.items() if name in known})


def mutants(design: Design) -> list[Mutant]:
    """One per guard, in the order of the model."""
    return [Mutant(a.name, i, text(g.condition)) for a in design.actions for i, g in enumerate(a.guards)]


def without_guard(design: Design, mutant: Mutant) -> Design:
    def less(action: Action) -> Action:
        guards = action.guards[: mutant.index] + action.guards[mutant.index + 1 :]
        return attrs.evolve(action, guards=guards)

    changed = tuple(less(a) if a.name == mutant.action else a for a in design.actions)
    return attrs.evolve(design, actions=changed)


def campaign(
    instance: Instance, engine: Engine, limits: Limits, names: tuple[str, ...] = ()
) -> tuple[Campaign, Exploration]:
    """The campaign for a design and the exploration of the design itself; `names` restricts the promises."""
    promises = tuple(p.name for p in instance.properties if p.kind in ("always", "step"))
    wanted = (*(n for n in promises if not names or n in names), TYPE_OK)
    found = engine(instance, wanted, limits, lambda _: None)
    kept = tuple(f.name for f in found.findings if f.verdict is Verdict.EXHAUSTED)
    room = max(ROOM * found.distinct, 1000)
    states = room if limits.max_states is None else min(room, limits.max_states)
    within = attrs.evolve(limits, max_states=states)
    return Campaign(instance.design, instance.constants, engine, kept, within), found


_current: Campaign | None = None


def _run(mutant: Mutant) -> Outcome:
    assert _current is not None, "forked after the campaign was set"
    return _current.run(mutant)


def outcomes(job: Campaign, workers: int = 1) -> Iterator[Outcome]:
    """The outcome of every mutant in the order of the model, whatever the number of processes.

    A design cannot be sent to another process (it is a graph of shared nodes), so the processes are forks of
    this one.
    """
    every = mutants(job.design)
    if workers == 1:
        yield from map(job.run, every)
        return
    global _current
    _current = job
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        yield from pool.map(_run, every)


def one_promise(properties: list[Property], where: Where) -> Property:
    """All promises as one about steps: the search may end as soon as any of them is broken."""
    conditions: list[Node] = [literal(True, BOOL)]
    for p in properties:
        condition = p.condition if p.kind == "step" else after(p.condition)
        conditions.append(apply("implies", p.when, condition) if p.when is not None else condition)
    together = reduce(lambda a, b: apply("and", a, b), conditions)
    return Property(EVERY_PROMISE, "step", together, "Every promise at once.", where)


def after(node: Node) -> Node:
    """A condition over a state, asked of the state after the step."""
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
    """All states of a behaviour given by names."""
    states = [next(s for p, s in evaluator.initial_states() if p == path.initial)]
    names = [a.name for a in evaluator.instance.actions]
    for action, parameters in path.steps:
        steps = evaluator.successors(states[-1])
        states.append(next(s for i, p, s in steps if names[i] == action and p == parameters))
    return states


def _same_action(one: Instance, other: Instance, name: str) -> bool:
    """Whether the settings make two versions of an action the same."""
    before, after_ = (next((a for a in i.actions if a.name == name), None) for i in (one, other))
    if before is None or after_ is None:
        return before is after_
    return [g.condition for g in before.guards] == [g.condition for g in after_.guards]
