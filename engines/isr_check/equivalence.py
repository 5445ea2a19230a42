"""Whether two instances do the same, as far as any action or property can tell: a bisimulation, found side by side.

A step is a function of the state, the action and its parameters. So both are walked through together from each initial
state, with the same action and parameters in both. They are equivalent if in each pair of states that is met both can
take the same steps, every property says the same of both, and so do the ghosts: the history that only properties read,
which hold of an empty history, too. Other values that nothing reads may differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from operator import itemgetter

from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance, Node
from isr_lang.instance import reads

Pair = tuple[State, State]
Step = tuple[int, Parameters, State]
"""A step: the number of the action, its parameters, the state that it leads to."""
_Test = tuple[frozenset[int], Callable[..., bool], Callable[..., bool]]
"""The places of the variables that a property reads, and what it says of the one and of the other."""
NOWHERE = frozenset[int]()


class Original:
    """An instance that others are compared with, one after another; what it does in a state is evaluated once."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.evaluator = instance, Evaluator(instance)
        places = {v.name: i for i, v in enumerate(instance.variables)}
        self.everything = frozenset(places.values())

        @cache
        def places_read(node: Node) -> frozenset[int]:
            return frozenset(places[name] for name in reads(node, instance))

        self.places_read = places_read
        """The places of the variables that a condition reads."""
        self.guarded = [NOWHERE.union(*(self.places_read(g.condition) for g in a.guards)) for a in instance.actions]
        """The same for each action's guards."""
        self._states: dict[State, State] = {}
        self._steps: dict[State, list[Step]] = {}

    def steps(self, state: State) -> list[Step]:
        """The steps from one of its states."""
        own_steps = self._steps.get(state)
        if own_steps is None:
            own = self._states.setdefault  # one object for each state: they are many
            own_steps = [(action, values, own(x, x)) for action, values, x in self.evaluator.successors(state)]
            self._steps[own(state, state)] = own_steps
        return own_steps


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
    visited = set(todo)
    if not all(map(walk.alike, todo)):
        return False
    while todo:
        reached = walk.steps(todo.popleft())
        if reached is None:
            return False
        new = set(reached) - visited
        if len(visited) + len(new) > most or not all(map(walk.alike, new)):
            return False
        visited |= new
        todo += new
    return True


class _Walk:
    """What is the same in two states need not be evaluated twice: only what reads a variable in which they differ."""

    def __init__(self, one: Original, other: Instance) -> None:
        self.one, self.mine, self.other = one, one.evaluator, Evaluator(other)
        self.ghosts = [i for i, v in enumerate(other.variables) if v.ghost]
        same = _same_ground(one.instance, other)
        pairs = list(zip(one.instance.actions, other.actions, strict=True))
        self.differing = [i for i, (mine, theirs) in enumerate(pairs) if not same or mine.action is not theirs.action]
        self.on_states, self.on_steps = list[_Test](), list[_Test]()
        for i, p in enumerate(other.properties):
            tests = self.on_steps if p.kind.endswith("step") else self.on_states
            for mine, theirs in zip(_tests_of(i, self.mine), _tests_of(i, self.other), strict=True):
                known = same and mine[0] is theirs[0]
                tests.append((one.places_read(mine[0]) if known else one.everything, mine[1], theirs[1]))

    def initial(self) -> list[Pair]:
        both = zip(self.mine.initial_states(), self.other.initial_states(), strict=True)
        return [(a, b) for (_, a), (_, b) in both]

    def alike(self, pair: Pair) -> bool:
        """Whether every property of states and every ghost says the same of both."""
        a, b = pair
        apart = _apart(a, b)
        return not apart or (
            apart.isdisjoint(self.ghosts)
            and self.mine.in_range(a) == self.other.in_range(b)
            and all(bool(mine(a)) == bool(theirs(b)) for read, mine, theirs in self.on_states if read & apart)
        )

    def steps(self, pair: Pair) -> list[Pair] | None:
        """The pairs that a step of both leads to; None if one can take another step, or a property tells them apart."""
        mine = self.one.steps(pair[0])
        reached = self.successor_pairs(mine, self.others(pair, mine))
        if reached is None:
            return None
        before = _apart(*pair)
        return reached if all(self.same_said(pair, after, before | _apart(*after)) for after in reached) else None

    def others(self, pair: Pair, mine: list[Step]) -> list[Step]:
        """The steps of the other from its state."""
        a, b = pair
        if a == b:  # those by actions that both have are what they are in the original
            taken = [step for step in mine if step[0] not in self.differing]
            for i in self.differing:
                taken += [(i, values, x) for values, x in self.other.actions[i](b, self.other.false)]
            return sorted(taken, key=itemgetter(0))
        apart, here = _apart(a, b), {action for action, _, _ in mine}
        return [
            (i, values, x)
            for i, action in enumerate(self.other.actions)
            if i in here or i in self.differing or self.one.guarded[i] & apart
            for values, x in action(b, self.other.false)
        ]

    def successor_pairs(self, mine: list[Step], theirs: list[Step]) -> list[Pair] | None:
        """What the steps lead to side by side; None if they are not the same."""
        if [(action, values) for action, values, _ in mine] != [(action, values) for action, values, _ in theirs]:
            return None
        return [(x, y) for (_, _, x), (_, _, y) in zip(mine, theirs, strict=True)]

    def same_said(self, before: Pair, after: Pair, apart: frozenset[int]) -> bool:
        """Whether every property of steps says the same of both."""
        (a, b), (x, y) = before, after
        return not apart or all(
            bool(mine(a, x)) == bool(theirs(b, y)) for read, mine, theirs in self.on_steps if read & apart
        )


class _Simulation(_Walk):
    def successor_pairs(self, mine: list[Step], theirs: list[Step]) -> list[Pair] | None:
        """What each step of the other leads to in both; None if this one cannot take it."""
        known = {(action, parameters): x for action, parameters, x in mine}
        if any((action, parameters) not in known for action, parameters, _ in theirs):
            return None
        return [(known[action, parameters], y) for action, parameters, y in theirs]


def _tests_of(i: int, evaluator: Evaluator) -> list[tuple[Node, Callable[..., bool]]]:
    """What property i asks: of liveness, whether it is triggered and whether its goal is reached."""
    p = evaluator.instance.properties[i]
    if p.trigger is None:
        return [(p.condition, evaluator.test(p))]
    return list(zip((p.trigger, p.condition), evaluator.leads(p), strict=True))


def _apart(a: State, b: State) -> frozenset[int]:
    """The places of the variables in which two states differ."""
    return NOWHERE if a == b else frozenset(i for i, (v, w) in enumerate(zip(a, b, strict=True)) if v != w)


def _same_ground(one: Instance, other: Instance) -> bool:
    """Whether an action that both have means the same in both: constants and initial values are the same.

    A mutant may have lost the only mention of a constant.
    """
    given = other.constants
    return one.design.initial is other.design.initial and all(given.get(c, v) == v for c, v in one.constants.items())
