"""Whether two instances do the same, as far as any action or property can tell: a bisimulation, found side by side.

A step is a function of the state, the action and its parameters. So both are walked through together from each initial
state, with the same action and parameters in both. They are equivalent if in each pair of states that is met both can
take the same steps, every property says the same of both, and so do the ghosts: the history that only properties read,
which hold of an empty history, too. Other values that nothing reads may differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance, Property

Pair = tuple[State, State]
Taken = tuple[int, Parameters, State]
"""A step: the number of the action, its parameters, the state that it leads to."""


def equivalent(one: Instance, other: Instance, most: int) -> bool:
    """Whether the two are equivalent; False if that takes more than `most` pairs of states to find out.

    Both have the same actions, with the same parameters, and the same properties.
    """
    return _alongside(_Walk(Evaluator(one), Evaluator(other)), most)


def simulates(one: Instance, other: Instance, most: int) -> bool:
    """Whether `one` can take every step of `other` beside it, so that `other` is `one` with steps left out.

    That is a simulation: as for `equivalent`, but `one` may have steps that `other` has not.
    """
    return _alongside(_Simulation(Evaluator(one), Evaluator(other)), most)


def _alongside(walk: _Walk, most: int) -> bool:
    todo = deque((a, b) for (_, a), (_, b) in zip(walk.one.initial_states(), walk.other.initial_states(), strict=True))
    met = set(todo)
    if not all(map(walk.alike, todo)):
        return False
    while todo:
        reached = walk.steps(todo.popleft())
        if reached is None:
            return False
        new = set(reached) - met
        if len(met) + len(new) > most or not all(map(walk.alike, new)):
            return False
        met |= new
        todo += new
    return True


class _Walk:
    def __init__(self, one: Evaluator, other: Evaluator) -> None:
        self.one, self.other = one, other
        self.ghosts = [i for i, v in enumerate(one.instance.variables) if v.ghost]
        self.on_states: list[tuple[Callable[..., bool], Callable[..., bool]]] = []
        self.on_steps: list[tuple[Callable[..., bool], Callable[..., bool]]] = []
        for mine, theirs in zip(_tests(one), _tests(other), strict=True):
            if mine[0].kind.endswith("step"):
                self.on_steps += zip(mine[1], theirs[1], strict=True)
            else:
                self.on_states += zip(mine[1], theirs[1], strict=True)

    def alike(self, pair: Pair) -> bool:
        """Whether every property of states and every ghost says the same of both."""
        a, b = pair
        return a == b or (
            self.one.in_range(a) == self.other.in_range(b)
            and all(a[i] == b[i] for i in self.ghosts)
            and all(bool(mine(a)) == bool(theirs(b)) for mine, theirs in self.on_states)
        )

    def steps(self, pair: Pair) -> list[Pair] | None:
        """The pairs that a step of both leads to; None if one can take another step, or a property tells them apart."""
        a, b = pair
        mine, theirs = list(self.one.successors(a)), list(self.other.successors(b))
        reached = self.matched(mine, theirs)
        if reached is None:
            return None
        if all((a == b and x == y) or self.same_said((a, b), (x, y)) for x, y in reached):
            return reached
        return None

    def matched(self, mine: list[Taken], theirs: list[Taken]) -> list[Pair] | None:
        """What the steps lead to side by side; None if they are not the same."""
        if [taken for *taken, _ in mine] != [taken for *taken, _ in theirs]:
            return None
        return [(x, y) for (*_, x), (*_, y) in zip(mine, theirs, strict=True)]

    def same_said(self, before: Pair, after: Pair) -> bool:
        """Whether every property of steps says the same of both."""
        (a, b), (x, y) = before, after
        return all(bool(mine(a, x)) == bool(theirs(b, y)) for mine, theirs in self.on_steps)


class _Simulation(_Walk):
    def matched(self, mine: list[Taken], theirs: list[Taken]) -> list[Pair] | None:
        """What each step of the other leads to in both; None if this one cannot take it."""
        known = {(action, parameters): x for action, parameters, x in mine}
        if any((action, parameters) not in known for action, parameters, _ in theirs):
            return None
        return [(known[action, parameters], y) for action, parameters, y in theirs]


def _tests(evaluator: Evaluator) -> list[tuple[Property, tuple[Callable[..., bool], ...]]]:
    """Each property with what it asks: of liveness, whether it is triggered and whether its goal is reached."""
    properties = evaluator.instance.properties
    return [
        (p, evaluator.leads(p) if p.kind == "eventually" else (test,))
        for p, test in zip(properties, evaluator.properties, strict=True)
    ]
