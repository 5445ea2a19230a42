"""What is so in a design, by its graph as written: states, verdicts and futures in plain sets and dictionaries.

It shares nothing with the engines: neither the folding nor the values, only what the language traced. TLC shares as
little; `tests/support/tlc_answers.py` asks it the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs
from tests.support.interpreter import Friendly, Scope, State, World

from isr_check.engine import DEADLOCK, TYPE_OK, Path
from isr_lang import Action, Instance, Node, Property

Key = tuple[Friendly, ...]
Label = tuple[str, tuple[Friendly, ...]]
"""An action with its parameters."""


@attrs.frozen
class Answers:
    """What two checkers are compared by.

    `lengths` has the length of the shortest counterexample or witness of every property that has one, type-ok and
    deadlock with them. `failing_futures` are the futures that fail. `states`, `steps` and `depth` are of the whole
    design, None where not all was seen. Behind a state that breaks type-ok nothing is looked for.
    """

    lengths: Mapping[str, int]
    failing_futures: frozenset[str]
    states: int | None
    steps: int | None
    depth: int | None

    @property
    def type_ok(self) -> int | None:
        return self.lengths.get(TYPE_OK)


class TooLarge(Exception):
    """More states than were allowed."""


class Unfolded:
    """All states of a design within its ranges, and what is decided on the way."""

    def __init__(self, world: World, most: int) -> None:
        self.world = world
        self.names = [v.name for v in world.design.variables]
        self.properties = [p for p in world.design.properties if self.is_promised(p)]
        self.lengths: dict[str, int] = {}
        self.states: dict[Key, State] = {}
        self.edges: dict[Key, list[tuple[Label, Key]]] = {}
        self.steps = self.depth = 0
        self.most = most
        self.explore()

    def is_promised(self, p: Property) -> bool:
        return p.when is None or self.value(p.when, {}, {})

    def value(self, node: Node, old: State, new: State) -> Friendly:
        return Scope(self.world, old, new, {}).value(node)

    def note(self, name: str, length: int) -> None:
        self.lengths.setdefault(name, length)

    def explore(self) -> None:
        level = [s for state in self.world.each_initial_state() if (s := self.add(state, 0)) is not None]
        while level:
            ahead: list[Key] = []
            for key in level:
                ahead += self.expand(key)
            self.depth += bool(ahead)
            level = ahead

    def add(self, state: State, depth: int) -> Key | None:
        """The state's key if it is new and within the ranges of its variables."""
        key = tuple(state[name] for name in self.names)
        if self.world.left_out:
            self.note(TYPE_OK, depth)
            return None
        if key in self.states:
            return None
        if not all(self.world.is_in_range(v.type, state[v.name]) for v in self.world.design.variables):
            self.note(TYPE_OK, depth)
            return None
        self.states[key] = state
        if len(self.states) > self.most:
            raise TooLarge
        for p in self.properties:
            if p.kind in ("always", "sometimes") and p.name not in self.lengths:
                self.decide(p, state, {}, depth)
        return key

    def decide(self, p: Property, old: State, new: State, length: int) -> None:
        if self.value(p.condition, old, new) is p.kind.startswith("sometimes"):
            self.note(p.name, length)

    def expand(self, key: Key) -> list[Key]:
        old, ahead = self.states[key], list[Key]()
        edges = self.edges[key] = []
        is_stuck = True
        for action, parameters, new in self.world.successors(old):
            is_stuck = False
            leaves_out = bool(self.world.left_out)
            if (added := self.add(new, self.depth + 1)) is not None:
                ahead.append(added)
            target = tuple(new[name] for name in self.names)
            if target in self.states and not leaves_out:
                self.steps += 1
                edges.append(((action, parameters), target))
                for p in self.properties:
                    if p.kind in ("step", "sometimes-step") and p.name not in self.lengths:
                        self.decide(p, old, new, self.depth + 1)
        if is_stuck:
            self.note(DEADLOCK, self.depth)
        return ahead

    def answers(self) -> Answers:
        if TYPE_OK in self.lengths:
            return Answers(self.lengths, frozenset(), None, None, None)
        failing_futures = frozenset(p.name for p in self.properties if p.kind == "eventually" and self.can_fail(p))
        return Answers(self.lengths, failing_futures, len(self.states), self.steps, self.depth)

    # the future

    def can_fail(self, p: Property) -> bool:
        """Whether some fair behaviour has the trigger and never the goal from there on."""
        assert p.trigger is not None
        goal = {k for k, s in self.states.items() if self.value(p.condition, s, {})}
        waiting = {k for k, s in self.states.items() if k not in goal and self.value(p.trigger, s, {})}
        moves = {k: [(label, t) for label, t in edges if t != k] for k, edges in self.edges.items()}
        without = {k: [t for _, t in steps if t not in goal] for k, steps in moves.items()}
        return self.can_stay(reachable(waiting, without), moves, p)

    def can_stay(self, region: set[Key], moves: Mapping[Key, list[tuple[Label, Key]]], p: Property) -> bool:
        """Whether a behaviour can stay in the region for ever without being unfair."""
        for part in components(region, {k: [t for _, t in moves[k] if t in region] for k in region}):
            enabled = {k: {label for label, _ in moves[k]} for k in part}
            labels = set[Label]().union(*enabled.values())
            idle = labels - {label for k in part for label, t in moves[k] if t in part}
            for label in idle:
                there = {k for k in part if label in enabled[k]}
                if label[0] in p.strongly_fair:
                    if self.can_stay(part - there, moves, p):
                        return True
                    break
                if label[0] in p.fair and there == part:
                    break
            else:
                return True
        return False


def behaviour(world: World, instance: Instance, path: Path) -> list[State]:
    """The states of a path that an engine found; ValueError if the design has no such behaviour."""

    def decoded(action: Action, values: Sequence[int]) -> tuple[Friendly, ...]:
        return tuple(world.decode(t, v) for (_, t), v in zip(action.parameters, values, strict=True))

    chosen = decoded(world.design.initial, path.initial)
    starts = zip(world.parameters(world.design.initial), world.initial_states(), strict=True)
    states = [s for parameters, s in starts if tuple(parameters.values()) == chosen]
    actions = {a.name: a.action for a in instance.actions}
    for name, values in path.steps:
        parameters = decoded(actions[name], values)
        steps = [s for n, p, s in world.successors(states[-1]) if (n, p) == (name, parameters)]
        if not steps:
            raise ValueError(f"{name}{parameters} is not possible in {states[-1]}")
        states.append(steps[0])
    if path.loop is not None and states[-1] != states[path.loop]:
        raise ValueError("the loop does not close")
    return states


def reachable(start: Iterable[Key], moves: Mapping[Key, list[Key]], closed: Collection[Key] = ()) -> set[Key]:
    """Where the moves lead from there, in any number of them and through nothing closed."""
    visited = set(start)
    todo = list(visited)
    while todo:
        for target in moves[todo.pop()]:
            if target not in visited and target not in closed:
                visited.add(target)
                todo.append(target)
    return visited


def components(region: set[Key], moves: Mapping[Key, list[Key]]) -> list[set[Key]]:
    """The strongly connected components, by Kosaraju: backwards from those that a search leaves last."""
    order: list[Key] = []
    visited = set[Key]()
    for root in region:
        calls = [] if root in visited else [(root, iter(moves[root]))]
        visited.add(root)
        while calls:
            key, rest = calls[-1]
            target = next((t for t in rest if t not in visited), None)
            if target is None:
                order.append(key)
                calls.pop()
            else:
                visited.add(target)
                calls.append((target, iter(moves[target])))
    back: dict[Key, list[Key]] = {k: [] for k in region}
    for origin, targets in moves.items():
        for target in targets:
            back[target].append(origin)
    parts: list[set[Key]] = []
    placed = set[Key]()
    for root in reversed(order):
        if root not in placed:
            parts.append(reachable([root], back, placed))
            placed |= parts[-1]
    return parts
