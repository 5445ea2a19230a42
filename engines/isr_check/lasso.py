"""The counterexample to a `leads to`: a stem, and a cycle that a fair behaviour can repeat for ever.

The choice among all lassos depends on the model and the region alone, never on the order in which an engine met the
states. The cycle begins at a state where a fair behaviour can stay, and where the state's distance plus the number of
steps enabled by fair actions is least: the cycle has to take or disable each of these. The stem is a shortest one to
such a state; of these, one with its trigger as late as possible, and then the least in the order of the model.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from isr_check.engine import Finding, Path, Verdict
from isr_check.liveness import (
    STRONG,
    UNFAIR,
    WEAK,
    LassoSearch,
    Positions,
    Region,
    Small,
    Stem,
    Truths,
    fair_components,
)
from isr_lang import Property


def finding_for(p: Property, search: LassoSearch) -> Finding:
    """The verdict: VACUOUS if no reachable state has the trigger."""
    if not search.has_trigger:
        return Finding(p.name, p.kind, Verdict.VACUOUS)
    component = fair_components(search.region)
    if not (component >= 0).any():
        return Finding(p.name, p.kind, Verdict.HOLDS)
    return Finding(p.name, p.kind, Verdict.VIOLATED, lasso(search, component))


def lasso(search: LassoSearch, component: Small) -> Path:
    """A behaviour that stays in one of the components; `component` has the number of each state's, -1 for none."""
    region = search.region
    origins = region.origins()
    fair = region.labels.fairness[region.steps] > UNFAIR
    demands: Small = np.bincount(origins[fair], minlength=region.size).astype(np.int32)
    good = component >= 0
    distances = region.distances()
    cost = distances + demands
    best = good & (cost == cost[good].min())
    best &= demands == demands[best].min()
    initial, steps, state = _stem(search, np.flatnonzero(best))
    cycle = _Cycle(region, component).around(state)
    around = tuple(region.labels.action_instances[int(region.steps[s])] for s in cycle)
    return Path(initial, (*steps, *around), len(steps))


def _stem(search: LassoSearch, ends: Positions) -> Stem:
    region = search.region
    level = int(np.searchsorted(np.array(region.levels), int(ends[0]), side="right")) - 1
    ahead: Truths = np.zeros(region.size, dtype=np.bool_)
    ahead[ends] = True
    targets = ends
    while not region.sources[targets].any():
        level -= 1
        first, last = region.levels[level : level + 2]
        steps = slice(int(region.offsets[first]), int(region.offsets[last]))
        hits = (region.targets[steps] >= 0) & ahead[region.targets[steps]]
        origins = np.repeat(np.arange(first, last), np.diff(region.offsets[first : last + 1]))
        targets = np.unique(origins[hits])
        ahead[targets] = True
    initial, before, state = search.least_path(targets[region.sources[targets]], level)
    path = list(before)
    ending = set(ends.tolist())
    while state not in ending:
        level += 1
        step = next(s for s in _steps(region, state) if ahead[region.targets[s]] and _at(region, s, level))
        path.append(region.labels.action_instances[int(region.steps[step])])
        state = int(region.targets[step])
    return initial, tuple(path), state


def _at(region: Region, step: int, level: int) -> bool:
    return region.levels[level] <= int(region.targets[step]) < region.levels[level + 1]


def _steps(region: Region, state: int) -> list[int]:
    """The steps from a state that do not reach the goal."""
    steps = region.of(state)
    return [s for s in range(steps.start, steps.stop) if region.targets[s] >= 0]


class _Cycle:
    """Finds a short cycle from a state of a component that does what fairness demands."""

    def __init__(self, region: Region, component: Small) -> None:
        self.region, self.component = region, component
        self.taken_labels: set[int] = set()

    def around(self, start: int) -> list[int]:
        """The steps of the cycle; none if a fair behaviour can stutter at the state for ever."""
        weak, strong = self.enabled(start, WEAK), self.enabled(start, STRONG)
        while True:
            steps = self.walk(start, weak, strong)
            met = {label for s in steps for label in self.enabled(self.origin(s), STRONG)}
            missed = met - {int(self.region.steps[s]) for s in steps}
            if not missed:
                return steps
            strong |= missed

    def walk(self, start: int, weak: set[int], strong: set[int]) -> list[int]:
        """A walk that meets every demand, the nearest first, and returns to the start."""
        weak, strong, here, path = set(weak), set(strong), start, list[int]()
        while weak or strong:
            for step in self.nearest(here, weak, strong, None):
                path.append(step)
                here = int(self.region.targets[step])
                label = int(self.region.steps[step])
                weak.discard(label)
                strong.discard(label)
                weak &= self.enabled(here, WEAK)
        return path if here == start else path + self.nearest(here, set(), set(), start)

    def nearest(self, start: int, weak: set[int], strong: set[int], end: int | None) -> list[int]:
        """The shortest walk to `end`; if that is None, to a step that meets one more demand.

        A demand is met when the instance is taken; a weak one also where the instance is disabled.
        """
        came: dict[int, int] = {}
        queue, visited = deque([start]), {start}
        while queue:
            state = queue.popleft()
            for step in self.inner(state):
                target, label = int(self.region.targets[step]), int(self.region.steps[step])
                met = label in weak or label in strong
                if target == end or met or (end is None and not weak <= self.enabled(target, WEAK)):
                    return self.back(came, state, start, step)
                if target not in visited:
                    visited.add(target)
                    came[target] = step
                    queue.append(target)
        raise AssertionError("a fair component meets every demand")

    def back(self, came: dict[int, int], state: int, start: int, step: int) -> list[int]:
        steps = [step]
        while state != start:
            steps.append(came[state])
            state = self.origin(came[state])
        return steps[::-1]

    def origin(self, step: int) -> int:
        return int(np.searchsorted(self.region.offsets, step, side="right")) - 1

    def inner(self, state: int) -> list[int]:
        """The steps from a state within its component."""
        same = self.component[state]
        return [s for s in _steps(self.region, state) if self.component[self.region.targets[s]] == same]

    def enabled(self, state: int, demand: int) -> set[int]:
        labels = self.region.steps[self.region.of(state)]
        return set(labels[self.region.labels.fairness[labels] == demand].tolist())
