"""Liveness in its plainest form: the oracle that isr_check.liveness and the native engine are compared with.

It uses sets and dictionaries of states, Tarjan's algorithm, and the definition of fairness, word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs
import numpy as np

from isr_check.engine import Finding, Verdict
from isr_check.lasso import finding_for
from isr_check.liveness import GOAL, STRONG, UNFAIR, Labels, LassoSearch, Positions, Region, Stem
from isr_check.reference import Evaluator, State
from isr_lang import Instance, Property

Step = tuple[int, State]
"""The label of an action's instance and the state it leads to."""


def decide(instance: Instance, p: Property) -> Finding:
    """The verdict on a liveness property, by the definitions; a violation has the same lasso as from every engine."""
    graph = Graph.of(instance, p)
    behind, states = lasso_search(graph, p)
    found = finding_for(p, behind)
    violated = bool(graph.fair(states))
    assert violated is (found.verdict is Verdict.VIOLATED), "the two ways to decide liveness differ"
    return found


@attrs.frozen(eq=False)
class Graph:
    """All reachable states with the length of the shortest path to each, and every step that changes a state."""

    instance: Instance
    evaluator: Evaluator
    depth: dict[State, int]
    steps: dict[State, list[Step]]
    labels: Labels

    @staticmethod
    def of(instance: Instance, p: Property) -> Graph:
        evaluator, labels = Evaluator(instance), Labels.of(instance, p)
        number = {name: i for i, name in enumerate(labels.action_instances)}
        names = [a.name for a in instance.actions]
        depth = dict.fromkeys((s for _, s in evaluator.initial_states()), 0)
        steps: dict[State, list[Step]] = {}
        queue = list(depth)
        for state in queue:
            steps[state] = []
            for action, parameters, successor in evaluator.successors(state):
                if successor != state:
                    steps[state].append((number[names[action], parameters], successor))
                if successor not in depth:
                    depth[successor] = depth[state] + 1
                    queue.append(successor)
        return Graph(instance, evaluator, depth, steps, labels)

    def region(self, p: Property) -> dict[State, int]:
        """The states between trigger and goal, with the length of the shortest stem to each."""
        trigger, goal = self.evaluator.leads(p)
        begins = {s: d for s, d in self.depth.items() if trigger(s) and not goal(s)}
        distance: dict[State, int] = {}
        level = 0
        ahead: set[State] = set()
        while ahead or level <= max(begins.values(), default=-1):
            here = (ahead | {s for s, d in begins.items() if d == level}) - distance.keys()
            distance |= dict.fromkeys(here, level)
            ahead = {t for s in here for _, t in self.steps[s] if not goal(t)} - distance.keys()
            level += 1
        return distance

    def fair(self, region: Iterable[State]) -> list[set[State]]:
        """The greatest sets within the region in which a fair behaviour can stay."""
        fair_sets: list[set[State]] = []
        todo = [set(region)]
        while todo:
            among = todo.pop()
            for component in tarjan(among, lambda s: [t for _, t in self.steps[s]]):
                forbidden = self.forbidden_states(component)
                if not forbidden:
                    fair_sets.append(component)
                elif component - forbidden:
                    todo.append(component - forbidden)
        return fair_sets

    def forbidden_states(self, component: set[State]) -> set[State]:
        """The states that fairness forbids to a behaviour that stays in the component."""
        enabled = {s: {label for label, _ in self.steps[s]} for s in component}
        taken = {label for s in component for label, t in self.steps[s] if t in component}
        for label, demand in enumerate(self.labels.fairness.tolist()):
            there = {s for s in component if label in enabled[s]}
            if demand == UNFAIR or label in taken or not there:
                continue
            if demand == STRONG or there == component:
                return there
        return set()


def tarjan(states: set[State], successors: Callable[[State], Sequence[State]]) -> list[set[State]]:
    """Strongly connected components within the states."""
    index: dict[State, int] = {}
    low: dict[State, int] = {}
    stack: list[State] = []
    waiting: set[State] = set()
    components: list[set[State]] = []
    for root in states:
        if root in index:
            continue
        calls = [(root, iter(successors(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        waiting.add(root)
        while calls:
            state, rest = calls[-1]
            target = next((t for t in rest if t in states and (t not in index or t in waiting)), None)
            if target is None:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[state])
                if low[state] == index[state]:
                    component: set[State] = set()
                    while state not in component:
                        component.add(stack.pop())
                    components.append(component)
                    waiting -= component
            elif target in index:
                low[state] = min(low[state], index[target])
            else:
                index[target] = low[target] = len(index)
                stack.append(target)
                waiting.add(target)
                calls.append((target, iter(successors(target))))
    return components


def lasso_search(graph: Graph, p: Property) -> tuple[LassoSearch, list[State]]:
    """The region as the arrays that all engines make, and its states in the order of their numbers."""
    trigger, _ = graph.evaluator.leads(p)
    distance = graph.region(p)
    states = sorted(distance, key=lambda s: distance[s])
    number = {s: i for i, s in enumerate(states)}
    levels = [sum(d < level for d in distance.values()) for level in range(max(distance.values(), default=-1) + 2)]
    rows = [
        [(label, number.get(t, GOAL)) for label, t in graph.steps[s] if t in number or graph.labels.fairness[label]]
        for s in states
    ]
    flat = [step for row in rows for step in row]
    region = Region(
        graph.labels,
        tuple(levels),
        np.array([trigger(s) and graph.depth[s] == distance[s] for s in states], dtype=np.bool_),
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array([t for _, t in flat], dtype=np.int32),
        np.array([label for label, _ in flat], dtype=np.int32),
    )

    def least_path(ends: Positions, level: int) -> Stem:
        return _least_path(graph, {states[i]: i for i in ends.tolist()}, level)

    return LassoSearch(region, least_path, any(map(trigger, graph.depth))), states


def _least_path(graph: Graph, ends: dict[State, int], level: int) -> Stem:
    ahead = [set(ends)]
    for depth in range(level - 1, -1, -1):
        at = [s for s, d in graph.depth.items() if d == depth]
        ahead.append({s for s in at if any(t in ahead[-1] for _, t in graph.steps[s])})
    initial, state = next((p, s) for p, s in graph.evaluator.initial_states() if s in ahead[-1])
    steps: list[int] = []
    for states in ahead[-2::-1]:
        label, state = next((label, t) for label, t in graph.steps[state] if t in states)
        steps.append(label)
    return initial, tuple(graph.labels.action_instances[label] for label in steps), ends[state]
