"""The state graph of the model, and strategies to cover its edges: from saved states, along paths, and by walks.

`ModelGraph` finds states and edges when they are asked for. `UncoveredEdges` plans paths through all edges or a sample
of them; `RandomWalk` chooses one step after the other. Neither knows what is driven along the edges: the caller reports
the edges that could not be passed, and no later path uses them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final

import attrs
import numpy as np

from isr_check.native.steps import Stepper
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_replay.core_system import Labels
from isr_replay.packed_states import WORD, Packing

AT_ONCE: Final = 4096
"""States that the kernel expands in one call."""
NEAR: Final = 3000
"""Pairs of a state and the action before it that a walk searches for a new pair of actions."""
FAR: Final = 20_000
"""States that are searched for the next edge of a sample before the path ends and another begins at a reset."""
RESTS: Final = 8
"""Random steps of a walk after a search that found nothing."""
VAIN: Final = 1000
"""Searches in a row that found nothing, after which the next ones are made rarely."""
LONG_REST: Final = 1024
"""Random steps from then on, until one is found."""

Edge = tuple[int, int]
"""A state, and the label of a step from it."""


class ModelGraph:
    """The states of an instance as integers (`Packing`), with their steps by label.

    Only actions in `action_names` are edges.
    """

    def __init__(self, instance: Instance, packing: Packing, action_names: frozenset[str]) -> None:
        self.instance, self.labels = instance, Labels(instance)
        self._stepper = Stepper(instance, packing.layout)
        self._counts = [name in action_names for name, _ in self.labels.steps]
        self._steps: dict[int, dict[int, int]] = {}
        self.initial = [packing.packed(state) for _, state in Evaluator(instance).initial_states()]

    def steps(self, state: int) -> dict[int, int]:
        """The steps from a state: the state after each label."""
        if state not in self._steps:
            self.expand([state])
        return self._steps[state]

    def expand(self, states: Iterable[int]) -> None:
        """Find the steps of many states in one go, which is faster than one state at a time."""
        new = [state for state in dict.fromkeys(states) if state not in self._steps]
        words = self._stepper.words
        size = words * WORD // 8
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            rows = np.frombuffer(b"".join(s.to_bytes(size, "little") for s in some), dtype="<u8")
            counts, labels, targets = self._stepper.steps(rows.reshape(-1, words).astype(np.uint64))
            packed, at = targets.astype("<u8").tobytes(), 0
            numbers: list[int] = labels.tolist()
            count: int
            for state, count in zip(some, counts.tolist(), strict=True):
                steps = self._steps[state] = {}
                for k in range(at, at + count):
                    if self._counts[numbers[k]]:
                        steps[numbers[k]] = int.from_bytes(packed[k * size : (k + 1) * size], "little")
                at += count

    def explore(
        self,
        most: int | None,
        passable: Callable[[Edge], bool] = lambda _: True,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ReachableStates:
        """The reachable states, breadth first, or the first `most` of them; `progress` hears how many."""
        reachable_states = ReachableStates({state: None for state in self.initial})
        level = list(self.initial)
        while level:
            self.expand(level)
            new: list[int] = []
            for state in level:
                for label, target in self._steps[state].items():
                    if target not in reachable_states.predecessor and passable((state, label)):
                        if most is not None and len(reachable_states.predecessor) >= most:
                            reachable_states.complete = False
                            return reachable_states
                        reachable_states.predecessor[target] = (state, label)
                        new.append(target)
            level = new
            progress(len(reachable_states.predecessor))
        return reachable_states

    def totals(self, reachable_states: ReachableStates, is_asked: Callable[[int], bool]) -> tuple[Counter[str], int]:
        """How many edges each action has in these states, of steps that are is_asked, and how many pairs of actions can
        follow each other there."""
        edges, into = Counter[str](), dict[int, set[str]]()
        for state in reachable_states.predecessor:
            for label, target in self.steps(state).items():
                name = self.labels.name(label)[0]
                edges[name] += is_asked(label)
                into.setdefault(target, set()).add(name)
        pairs = {(a, self.labels.name(b)[0]) for state, names in into.items() for b in self.steps(state) for a in names}
        return edges, len(pairs)


@attrs.define
class ReachableStates:
    """States that were found. `predecessor` has the last edge of a shortest path to each, None for initial states."""

    predecessor: dict[int, Edge | None]
    complete: bool = True

    def path(self, state: int) -> tuple[int, list[int]]:
        """A shortest path to the state: the initial state, and the labels from there."""
        labels: list[int] = []
        while (edge := self.predecessor[state]) is not None:
            state, label = edge
            labels.append(label)
        return state, labels[::-1]


def walked_states(graph: ModelGraph, most_edges: int, longest: int, seed: int) -> ReachableStates:
    """The states that walks of the model come by, until so many edges lead from them.

    Fewer if so many walks in a row as are `VAIN` come by no other state.
    """
    walk, edges, vain = RandomWalk(graph, seed), 0, 0
    predecessor: dict[int, Edge | None] = {}
    while edges < most_edges and vain < VAIN:
        states = len(predecessor)
        edge: Edge | None = None
        state, before = walk.start(), ""
        for _ in range(longest):
            if state not in predecessor:
                predecessor[state] = edge
                edges += len(graph.steps(state))
            label = walk.step(state, before, set())
            if label is None:
                break
            edge = state, label
            state, before = graph.steps(state)[label], graph.labels.name(label)[0]
        vain = 0 if len(predecessor) > states else vain + 1
    return ReachableStates(predecessor, complete=False)


def sample_edges(graph: ModelGraph, reachable_states: ReachableStates, per_action: int, seed: int) -> set[Edge]:
    """Draw so many edges of each action, each edge of an action with the same probability; all if there are fewer."""
    chance, edge_counts, samples = Random(seed), Counter[str](), dict[str, list[Edge]]()
    for state in reachable_states.predecessor:
        for label in graph.steps(state):
            name = graph.labels.name(label)[0]
            edge_counts[name] += 1
            some = samples.setdefault(name, [])
            if len(some) < per_action:
                some.append((state, label))
            elif (place := chance.randrange(edge_counts[name])) < per_action:
                some[place] = (state, label)
    return {edge for some in samples.values() for edge in some}


class SpanningTree:
    """Shortest paths to all states with edges that are left, as one tree, so that none of its edges is gone twice.

    `children` has the labels that lead on from each of its states. Gone depth first, no more states are saved at a time
    than a shortest path has steps, times the steps of a state.
    """

    def __init__(self, reachable_states: ReachableStates, states: Iterable[int]) -> None:
        self.children: dict[int, list[int]] = {}
        for state in states:
            if state not in reachable_states.predecessor:
                continue
            first = state not in self.children
            self.children.setdefault(state, [])
            while first and (edge := reachable_states.predecessor[state]) is not None:
                state, label = edge
                first = state not in self.children
                self.children.setdefault(state, []).append(label)


class UncoveredEdges:
    """The edges that are still to be driven, and paths to the nearest of them.

    These are the edges of all reached states, or only those in `edges`. No path goes over an edge that is
    `blocked_edges`.
    """

    def __init__(self, graph: ModelGraph, reachable_states: ReachableStates, edges: set[Edge] | None = None) -> None:
        self.graph, self.reachable_states = graph, reachable_states
        self.remaining_labels: dict[int, set[int]] = {}
        self.most = None if edges is None else FAR
        if edges is None:
            self.remaining_labels = {
                state: set(steps) for state in reachable_states.predecessor if (steps := graph.steps(state))
            }
        for state, label in sorted(edges or ()):
            self.remaining_labels.setdefault(state, set()).add(label)
        self.blocked_edges: set[Edge] = set()

    def remove_edge(self, edge: Edge, passable: bool) -> None:
        """Note that the edge was tried. If it is not `passable`, no path uses it from now on."""
        state, label = edge
        if not passable:
            self.blocked_edges.add(edge)
        labels = self.remaining_labels.get(state)
        if labels is not None:
            labels.discard(label)
            if not labels:
                del self.remaining_labels[state]

    def next_from(self, state: int) -> int | None:
        """The label of an uncovered edge of this state, preferably one that leads to more of them.

        None if there is none.
        """
        labels = self.remaining_labels.get(state)
        if not labels:
            return None
        steps = self.graph.steps(state)
        return min(
            labels, key=lambda label: (steps[label] == state or steps[label] not in self.remaining_labels, label)
        )

    def begin(self) -> tuple[int, list[int]] | None:
        """An initial state, and a path from it to a state with uncovered edges.

        None if no such state can be reached.
        """
        if self.most is not None:
            for state in self.remaining_labels:
                initial, labels = self.reachable_states.path(state)
                if (way := self._passable_prefix(initial, labels)) is not None:
                    return initial, way
        return self._nearest(self.graph.initial, None)

    def _passable_prefix(self, state: int, labels: list[int]) -> list[int] | None:
        """The part of a path up to the first state with uncovered edges; None if a blocked edge comes before it."""
        for n, label in enumerate(labels):
            if state in self.remaining_labels:
                return labels[:n]
            if (state, label) in self.blocked_edges:
                return None
            state = self.graph.steps(state)[label]
        return labels

    def route(self, state: int) -> list[int] | None:
        """The shortest path from here to a state with uncovered edges.

        None if there is none, or (in a sample) none near.
        """
        found = self._nearest([state], self.most)
        return None if found is None else found[1]

    def _nearest(self, starts: Iterable[int], most: int | None) -> tuple[int, list[int]] | None:
        way: dict[int, Edge | None] = dict.fromkeys(starts)
        queue = deque(way)
        while queue and (most is None or len(way) < most):
            state = queue.popleft()
            if state in self.remaining_labels:
                return ReachableStates(way).path(state)
            for label, target in self.graph.steps(state).items():
                if target not in way and (state, label) not in self.blocked_edges:
                    way[target] = (state, label)
                    queue.append(target)
        return None


@attrs.frozen
class ChosenStep:
    """A step of a walk, with all that decided about it before."""

    chance: tuple[object, ...]
    plan: list[int]
    rests: tuple[int, int]
    edge: Edge
    pair: tuple[str, str]
    is_new_edge: bool
    is_new_pair: bool


class RandomWalk:
    """Walks that head for the nearest pair of consecutive actions not seen yet, and step at random if none is near."""

    def __init__(self, graph: ModelGraph, seed: int) -> None:
        self.graph, self._random = graph, Random(seed)
        self._names = [name for name, _ in graph.labels.steps]
        self.visited_edges: set[Edge] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.times: dict[str, int] = {}
        self._plan: list[int] = []
        self._idle = self._vain_searches = 0
        self._are_new = False, False
        self._last_steps: list[ChosenStep] = []

    def start(self) -> int:
        """An initial state."""
        self._plan = []
        if self._vain_searches < VAIN:
            self._idle = 0
        return self._random.choice(self.graph.initial)

    def steps(self, state: int, before: str, blocked_edges: set[Edge], most: int) -> Iterator[int]:
        """The labels of so many steps, as `step` has them; fewer if a state has no passable one."""
        self._last_steps.clear()
        for _ in range(most):
            chance, plan, rests = self._random.getstate(), list(self._plan), (self._idle, self._vain_searches)
            if (label := self.step(state, before, blocked_edges)) is None:
                return
            name = self._names[label]
            self._last_steps.append(ChosenStep(chance, plan, rests, (state, label), (before, name), *self._are_new))
            yield label
            state, before = self.graph.steps(state)[label], name

    def take_back(self, most: int) -> None:
        """Forget the steps of the last `steps` after so many of them."""
        while len(self._last_steps) > most:
            last = self._last_steps.pop()
            self._random.setstate(last.chance)
            self._plan, (self._idle, self._vain_searches) = last.plan, last.rests
            self.times[last.pair[1]] -= 1
            if last.is_new_edge:
                self.visited_edges.discard(last.edge)
            if last.is_new_pair:
                self.pairs.discard(last.pair)

    def step(self, state: int, before: str, blocked_edges: set[Edge]) -> int | None:
        """The label of the next step, after the action `before`; None if the state has no passable step."""
        options = [label for label in self.graph.steps(state) if (state, label) not in blocked_edges]
        if not options:
            return None
        if (not self._plan or self._plan[0] not in options) and self._idle == 0:
            self._plan = self._find_plan(state, before, blocked_edges)
            self._vain_searches = 0 if self._plan else self._vain_searches + 1
            self._idle = 0 if self._plan else RESTS if self._vain_searches < VAIN else LONG_REST
        self._idle = max(0, self._idle - 1)
        if self._plan and self._plan[0] in options:
            label = self._plan.pop(0)
        else:
            label = self._random.choices(options, [self._weight(state, label, before) for label in options])[0]
        name = self._names[label]
        self._are_new = (state, label) not in self.visited_edges, (before, name) not in self.pairs
        self.visited_edges.add((state, label))
        self.pairs.add((before, name))
        self.times[name] = self.times.get(name, 0) + 1
        return label

    def _find_plan(self, state: int, before: str, blocked_edges: set[Edge]) -> list[int]:
        """The shortest path that ends with a new pair of actions; empty if none is near."""
        names, pairs = self._names, self.pairs
        way: dict[tuple[int, str], tuple[tuple[int, str], int] | None] = {(state, before): None}
        level = [(state, before)]
        while level and len(way) < NEAR:
            self.graph.expand(s for s, _ in level)
            new: list[tuple[int, str]] = []
            for here in level:
                at, last = here
                steps = self.graph.steps(at)
                labels = [label for label in steps if (at, label) not in blocked_edges] if blocked_edges else [*steps]
                self._random.shuffle(labels)
                for label in labels:
                    there = steps[label], names[label]
                    if (last, there[1]) not in pairs:
                        return [*_labels(way, here), label]
                    if there not in way:
                        way[there] = (here, label)
                        new.append(there)
            level = new
        return []

    def _weight(self, state: int, label: int, before: str) -> float:
        name = self._names[label]
        news = (8 if (before, name) not in self.pairs else 1) * (3 if (state, label) not in self.visited_edges else 1)
        return news / (1 + self.times.get(name, 0))


def _labels(way: dict[tuple[int, str], tuple[tuple[int, str], int] | None], here: tuple[int, str]) -> list[int]:
    labels: list[int] = []
    while (edge := way[here]) is not None:
        here, label = edge
        labels.append(label)
    return labels[::-1]
