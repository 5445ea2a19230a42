"""Whether two instances do the same, as far as any action or property can tell: a bisimulation, found side by side.

A step is a function of the state, the action and its parameters. So both are walked through together from each initial
state, with the same action and parameters in both. They are equivalent if in each pair of states that is met both can
take the same steps, every property says the same of both, and so do the ghosts: the history that only properties read,
which hold of an empty history, too. Other values that nothing reads may differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import itemgetter

from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance, Property

Pair = tuple[State, State]
Taken = tuple[int, Parameters, State]
"""A step: the number of the action, its parameters, the state that it leads to."""


class Original:
    """An instance that others are compared with, one after another; what it does in a state is evaluated once."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.evaluator = instance, Evaluator(instance)
        self._states: dict[State, State] = {}
        self._taken: dict[State, list[Taken]] = {}

    def steps(self, state: State, *, keep: bool) -> list[Taken]:
        """The steps from a state; `keep` them for the next time if the state is one of the instance's own."""
        taken = self._taken.get(state)
        if taken is None:
            taken = list(self.evaluator.successors(state))
            if keep:  # one object for each state: they are many
                own = self._states.setdefault
                taken = self._taken[own(state, state)] = [(action, values, own(x, x)) for action, values, x in taken]
        return taken


def equivalent(one: Original, other: Instance, most: int) -> bool:
    """Whether the two are equivalent; False if that takes more than `most` pairs of states to find out.

    Both have the same actions, with the same parameters, and the same properties.
    """
    return _alongside(_Walk(one, other), most)


def simulates(one: Original, other: Instance, most: int) -> bool:
    """Whether `one` can take every step of `other` beside it, so that `other` is `one` with steps left out.

    That is a simulation: as for `equivalent`, but `one` may have steps that `other` has not.
    """
    return _alongside(_Simulation(one, other), most)


def _alongside(walk: _Walk, most: int) -> bool:
    todo = deque(walk.initial())
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
    def __init__(self, one: Original, other: Instance) -> None:
        self.one, self.mine, self.other = one, one.evaluator, Evaluator(other)
        self.ghosts = [i for i, v in enumerate(other.variables) if v.ghost]
        same = _same_ground(one.instance, other)
        pairs = zip(one.instance.actions, other.actions, strict=True)
        self.differing = [i for i, (mine, theirs) in enumerate(pairs) if not same or mine.action is not theirs.action]
        self.on_states: list[tuple[Callable[..., bool], Callable[..., bool]]] = []
        self.on_steps: list[tuple[Callable[..., bool], Callable[..., bool]]] = []
        for mine, theirs in zip(_tests(self.mine), _tests(self.other), strict=True):
            if mine[0].kind.endswith("step"):
                self.on_steps += zip(mine[1], theirs[1], strict=True)
            else:
                self.on_states += zip(mine[1], theirs[1], strict=True)

    def initial(self) -> list[Pair]:
        both = zip(self.mine.initial_states(), self.other.initial_states(), strict=True)
        return [(a, b) for (_, a), (_, b) in both]

    def alike(self, pair: Pair) -> bool:
        """Whether every property of states and every ghost says the same of both."""
        a, b = pair
        return a == b or (
            self.mine.in_range(a) == self.other.in_range(b)
            and all(a[i] == b[i] for i in self.ghosts)
            and all(bool(mine(a)) == bool(theirs(b)) for mine, theirs in self.on_states)
        )

    def steps(self, pair: Pair) -> list[Pair] | None:
        """The pairs that a step of both leads to; None if one can take another step, or a property tells them apart."""
        a, b = pair
        reached = self.matched(self.one.steps(a, keep=True), self.others(b))
        if reached is None:
            return None
        if all((a == b and x == y) or self.same_said((a, b), (x, y)) for x, y in reached):
            return reached
        return None

    def others(self, state: State) -> list[Taken]:
        """The steps of the other from a state: those by actions that both have are what they are in the original."""
        taken = [step for step in self.one.steps(state, keep=False) if step[0] not in self.differing]
        for i in self.differing:
            taken += [(i, values, x) for values, x in self.other.actions[i](state, self.other.false)]
        return sorted(taken, key=itemgetter(0))

    def matched(self, mine: list[Taken], theirs: list[Taken]) -> list[Pair] | None:
        """What the steps lead to side by side; None if they are not the same."""
        if [(action, values) for action, values, _ in mine] != [(action, values) for action, values, _ in theirs]:
            return None
        return [(x, y) for (_, _, x), (_, _, y) in zip(mine, theirs, strict=True)]

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


def _same_ground(one: Instance, other: Instance) -> bool:
    """Whether an action that both have means the same in both: constants and initial values are the same.

    A mutant may have lost the only mention of a constant.
    """
    given = other.constants
    return one.design.initial is other.design.initial and all(given.get(c, v) == v for c, v in one.constants.items())
