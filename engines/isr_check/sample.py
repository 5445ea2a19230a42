"""Behaviours to read, from seeded random walks.

A sample shows what a design does when nothing goes wrong, so it never takes a step that breaks a property; what looks
for such steps is isr_check.simulation. The same seed gives the same behaviours on any machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random

import attrs

from isr_check.engine import Path
from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance

LONGEST = 12
WALKS_PER_SAMPLE = 8

Step = tuple[str, Parameters]


@attrs.frozen
class Samples:
    """The chosen behaviours. `steps_by_action`: how often each action occurs in them. `missing`: actions in none."""

    paths: tuple[Path, ...]
    steps_by_action: dict[str, int]
    missing: tuple[str, ...]


def sample(
    instance: Instance,
    evaluator: Evaluator,
    seed: int,
    n: int,
    longest: int = LONGEST,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Samples:
    """At most `n` different behaviours of at most `longest` steps that break no property, chosen to show many actions.

    More walks are made than asked for. Those are kept that add most pairs of successive actions.
    """
    walker = _Walker(instance, evaluator, Random(seed))
    walks: list[Path | None] = []
    for done in range(n * WALKS_PER_SAMPLE):
        progress(done, n * WALKS_PER_SAMPLE)
        walks.append(walker.walk(longest))
    candidates = list(dict.fromkeys(w for w in walks if w is not None and w.steps))
    selection: list[Path] = []
    pairs_covered: set[tuple[str, str]] = set()
    while candidates and len(selection) < n:
        best = max(candidates, key=lambda w: len(_pairs(w) - pairs_covered))
        candidates.remove(best)
        selection.append(best)
        pairs_covered |= _pairs(best)
    counts = Counter(name for path in selection for name, _ in path.steps)
    taken = {a.name: counts[a.name] for a in instance.actions}
    return Samples(tuple(selection), taken, tuple(name for name, count in taken.items() if not count))


def _pairs(path: Path) -> set[tuple[str, str]]:
    """The pairs of successive actions in a behaviour, and each action alone."""
    names = ["", *(name for name, _ in path.steps)]
    return {("", name) for name in names[1:]} | set(pairwise(names))


class _Walker:
    def __init__(self, instance: Instance, evaluator: Evaluator, random: Random) -> None:
        self.instance, self.evaluator, self.random = instance, evaluator, random
        tests = [(p, evaluator.test(p)) for p in instance.properties]
        self.on_states: list[Callable[..., bool]] = [t for p, t in tests if p.kind == "always"]
        self.on_steps: list[Callable[..., bool]] = [t for p, t in tests if p.kind == "step"]
        self.action_counts: Counter[int] = Counter()

    def walk(self, longest: int) -> Path | None:
        """One behaviour; it ends early where no passing step leads to a state that is new to it."""
        starts = [(p, s) for p, s in self.evaluator.initial_states() if self.passes(None, s)]
        if not starts:
            return None
        initial, state = self.random.choice(starts)
        visited, steps = {state}, list[Step]()
        while len(steps) < longest:
            options: dict[int, list[tuple[Parameters, State]]] = {}
            for action, parameters, successor in self.evaluator.successors(state):
                if successor not in visited and self.passes(state, successor):
                    options.setdefault(action, []).append((parameters, successor))
            if not options:
                break
            weights = [1 / (1 + self.action_counts[action]) ** 2 for action in options]
            action = self.random.choices(list(options), weights)[0]
            parameters, state = self.random.choice(options[action])
            self.action_counts[action] += 1
            visited.add(state)
            steps.append((self.instance.actions[action].name, tuple(parameters)))
        return Path(tuple(initial), tuple(steps))

    def passes(self, before: State | None, state: State) -> bool:
        """Whether no property is broken by reaching this state."""
        good = self.evaluator.in_range(state) and all(test(state) for test in self.on_states)
        return good and (before is None or all(test(before, state) for test in self.on_steps))
