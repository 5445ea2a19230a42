"""Liveness: whether a fair behaviour can stay away from a goal for ever.

`trigger` leads to `goal` when every fair behaviour reaches the goal from every reachable state with the trigger. A
behaviour may stutter. Fairness is about each *instance* of a fair action, that is, the action with one choice of its
parameters. An instance is *enabled* where its guards hold and it changes the state. Weak fairness: an instance that is
enabled from some point on is taken again and again. Strong fairness: an instance that is enabled again and again is
taken again and again. TLA+ writes this `WF_vars(Act(x))` and `SF_vars(Act(x))` for every x, and so do the exported
modules.

The *region* of a property has the states that can follow its trigger and precede its goal. A counterexample ends in
states of the region that reach each other within it, or in one state for ever. There every weakly fair instance is
taken or somewhere disabled, and every strongly fair one is taken or everywhere disabled.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, TypeAlias, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from isr_check.reference import Parameters, State, parameter_values
from isr_lang import Instance, Property

Positions: TypeAlias = NDArray[np.int64]
Small: TypeAlias = NDArray[np.int32]
Truths: TypeAlias = NDArray[np.bool_]

GOAL = -1
"""The target of a step that reaches the goal."""

UNFAIR, WEAK, STRONG = 0, 1, 2


@attrs.frozen
class Labels:
    """The instances of all actions, numbered in the order of the model; `first[a]` is action a's first."""

    first: tuple[int, ...]
    action_instances: tuple[tuple[str, Parameters], ...]
    fairness: Small

    @staticmethod
    def of(instance: Instance, p: Property) -> Labels:
        first: list[int] = []
        action_instances: list[tuple[str, Parameters]] = []
        fairness: list[int] = []
        for action in instance.actions:
            first.append(len(action_instances))
            action_instances += [(action.name, parameters) for parameters in parameter_values(instance, action)]
            demand = STRONG if action.name in p.strongly_fair else WEAK if action.name in p.fair else UNFAIR
            fairness += [demand] * (len(action_instances) - len(fairness))
        return Labels(tuple(first), tuple(action_instances), np.array(fairness, dtype=np.int32))


@attrs.frozen(eq=False)
class Region:
    """The states of a property's region and the steps between them, as arrays.

    States are numbered by distance, the length of the shortest stem to them: those at distance d are `levels[d]` up to
    `levels[d + 1]`. `sources` are the states at which a shortest stem can have its trigger.

    The steps of state s are at `offsets[s]` up to `offsets[s + 1]`, in the order of the model, each with its target
    (`targets`) and its label (`steps`). No step leads to s itself. Steps to the goal are there if their action is fair:
    they count for what is enabled.
    """

    labels: Labels
    levels: tuple[int, ...]
    sources: Truths
    offsets: Positions
    targets: Small
    steps: Small

    @property
    def size(self) -> int:
        return len(self.sources)

    def origins(self) -> Small:
        """The state that each step leaves."""
        return np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.offsets))

    def distances(self) -> Small:
        return np.repeat(np.arange(len(self.levels) - 1, dtype=np.int32), np.diff(self.levels))

    def of(self, state: int) -> slice:
        return slice(int(self.offsets[state]), int(self.offsets[state + 1]))


Stem = tuple[Parameters, tuple[tuple[str, Parameters], ...], int]
"""The parameters of the initial condition, the steps, and the state of the region in which they end."""


@attrs.frozen(eq=False)
class LassoSearch:
    """A region; `least_path` gives the least of the shortest paths to some of its states, all of one level.

    `has_trigger`: some reachable state has the trigger.
    """

    region: Region
    least_path: Callable[[Positions, int], Stem]
    has_trigger: bool


class _Matrix(Protocol):
    def sum_duplicates(self) -> None: ...


def strong_components(size: int, origins: Small, targets: Small) -> Small:
    """The number of each state's strongly connected component."""
    matrix = cast("Callable[..., _Matrix]", import_module("scipy.sparse").csr_array)
    components = cast("Callable[..., tuple[int, Small]]", import_module("scipy.sparse.csgraph").connected_components)
    offsets = np.zeros(size + 1, dtype=np.int32 if len(targets) < 1 << 31 else np.int64)
    np.cumsum(np.bincount(origins, minlength=size), out=offsets[1:])
    ones = np.ones(len(targets), dtype=np.float64)  # the type that SciPy would otherwise copy it to
    graph = matrix((ones, targets, offsets), shape=(size, size))
    graph.sum_duplicates()  # with two steps between the same states SciPy would not end
    return components(graph, directed=True, connection="strong")[1]


def fair_components(region: Region) -> Small:
    """For each state the strongly connected component in which a fair behaviour can stay, -1 if there is none."""
    origins, targets, steps = region.origins(), region.targets, region.steps
    demands = region.labels.fairness[steps]
    alive: Truths = np.ones(region.size, dtype=np.bool_)
    while True:
        inner = (targets >= 0) & alive[origins]
        inner &= alive[targets]
        component = strong_components(region.size, origins[inner], targets[inner])
        inner &= component[origins] == component[targets]
        asked = alive[origins] & (demands > UNFAIR)
        unfair, offending = _unfair(region, component, origins, inner, asked)
        alive &= ~unfair[component]
        offending &= alive
        if not offending.any():
            return np.where(alive, component, np.int32(-1))
        alive &= ~offending


def _unfair(
    region: Region, component: Small, origins: Small, inner: Truths, fair_steps: Truths
) -> tuple[Truths, Truths]:
    """Per component whether weak fairness forbids staying in it; per state whether strong fairness forbids it."""
    count = int(component.max(initial=-1)) + 1
    sizes = np.bincount(component, minlength=count)
    lone = sizes[component[origins]] == 1
    unfair: Truths = np.zeros(count, dtype=np.bool_)
    unfair[component[origins[fair_steps & lone]]] = True  # never taken there, as steps change the state
    fair_steps = fair_steps & ~lone
    kinds = len(region.labels.action_instances)
    keys = component[origins[fair_steps]].astype(np.int64) * kinds + region.steps[fair_steps]
    enabled, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    never_taken: Truths = np.ones(len(enabled), dtype=np.bool_)
    never_taken[which[inner[fair_steps]]] = False
    places, demands = enabled // kinds, region.labels.fairness[enabled % kinds]
    unfair[places[never_taken & (counts == sizes[places])]] = True  # enabled everywhere, so disabled or taken nowhere
    offending: Truths = np.zeros(region.size, dtype=np.bool_)
    offending[origins[fair_steps][(never_taken & (demands == STRONG))[which]]] = True
    return unfair, offending


__all__ = ["GOAL", "Labels", "LassoSearch", "Region", "State", "fair_components", "strong_components"]
