"""Seeded random walks: behaviours to read, and a search for violations where there are too many states.

A *sample* shows what a design does when nothing goes wrong, so it never takes a step that breaks a property. A
*simulation* looks for such steps. The same seed gives the same behaviours on any machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random

import attrs

from isr_check.engine import (
    DEADLOCK,
    TYPE_OK,
    Exploration,
    Finding,
    Limits,
    Path,
    Progress,
    Verdict,
    awaited,
    selected,
)
from isr_check.reference import Evaluator, Parameters, State
from isr_lang import Instance

LONGEST = 12
LONGEST_WALK = 100
TELL_EVERY = 0.2
WALKS_PER_SAMPLE = 8

Step = tuple[str, Parameters]


@attrs.frozen
class Samples:
    """The chosen behaviours; `taken`: how often each action occurs in them; `missing`: actions in none of them."""

    paths: tuple[Path, ...]
    taken: dict[str, int]
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
    left = list(dict.fromkeys(w for w in walks if w is not None and w.steps))
    chosen: list[Path] = []
    shown: set[tuple[str, str]] = set()
    while left and len(chosen) < n:
        best = max(left, key=lambda w: len(_pairs(w) - shown))
        left.remove(best)
        chosen.append(best)
        shown |= _pairs(best)
    counts = Counter(name for path in chosen for name, _ in path.steps)
    taken = {a.name: counts[a.name] for a in instance.actions}
    return Samples(tuple(chosen), taken, tuple(name for name, count in taken.items() if not count))


def _pairs(path: Path) -> set[tuple[str, str]]:
    """The pairs of successive actions in a behaviour, and each action alone."""
    names = ["", *(name for name, _ in path.steps)]
    return {("", name) for name in names[1:]} | set(pairwise(names))


class _Walker:
    def __init__(self, instance: Instance, evaluator: Evaluator, random: Random) -> None:
        self.instance, self.evaluator, self.random = instance, evaluator, random
        tests = list(zip(instance.properties, evaluator.properties, strict=True))
        self.on_states: list[Callable[..., bool]] = [t for p, t in tests if p.kind == "always"]
        self.on_steps: list[Callable[..., bool]] = [t for p, t in tests if p.kind == "step"]
        self.seen: Counter[int] = Counter()

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
            weights = [1 / (1 + self.seen[action]) ** 2 for action in options]
            action = self.random.choices(list(options), weights)[0]
            parameters, state = self.random.choice(options[action])
            self.seen[action] += 1
            visited.add(state)
            steps.append((self.instance.actions[action].name, tuple(parameters)))
        return Path(tuple(initial), tuple(steps))

    def passes(self, before: State | None, state: State) -> bool:
        """Whether no property is broken by reaching this state."""
        good = self.evaluator.in_range(state) and all(test(state) for test in self.on_states)
        return good and (before is None or all(test(before, state) for test in self.on_steps))


def simulate(
    instance: Instance,
    wanted: tuple[str, ...],
    walks: int,
    seed: int,
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Make random walks instead of exploring all states; a promise that none of the `walks` breaks is SAMPLED.

    A walk draws one of the enabled actions, then its parameters. It ends after LONGEST_WALK steps, or at a state
    without a next one. A counterexample is the walk as it was made, not a shortest one.
    """
    limits, start, random = limits or Limits(), time.monotonic(), Random(seed)
    search = _Simulation(instance, wanted)
    done = told = 0
    while done < walks and not search.decided() and not limits.stop():
        elapsed = time.monotonic() - start
        if limits.max_seconds is not None and elapsed >= limits.max_seconds:
            break
        if limits.max_states is not None and len(search.seen) >= limits.max_states:
            break
        if elapsed > told * TELL_EVERY:
            told += 1
            progress(Progress(search.deepest, 1, len(search.seen), search.generated, elapsed))
        search.walk(random)
        done += 1
    return search.exploration(time.monotonic() - start, enough=done == walks)


class _Simulation:
    def __init__(self, instance: Instance, wanted: tuple[str, ...]) -> None:
        self.instance, self.evaluator = instance, Evaluator(instance)
        self.properties, self.awaited = selected(instance, wanted), awaited(instance, wanted)
        self.names = [(p.name, p.kind) for p in self.properties]
        self.names += [(TYPE_OK, "always")] * (not wanted or TYPE_OK in wanted)
        self.names += [(DEADLOCK, "always")] * (DEADLOCK in wanted)
        self.found: dict[str, Path] = {}
        self.seen: set[State] = set()
        self.taken: Counter[int] = Counter()
        self.generated = self.deepest = 0

    def decided(self) -> bool:
        return bool(self.names) and len(self.found) == len(self.names)

    def walk(self, random: Random) -> None:
        starts = self.evaluator.initial_states()
        if not starts:
            return
        initial, state = random.choice(starts)
        steps: list[Step] = []
        before: State | None = None
        while True:
            self.look(before, state, initial, steps)
            options: dict[int, list[tuple[Parameters, State]]] = {}
            for action, parameters, successor in self.evaluator.successors(state):
                self.generated += 1
                options.setdefault(action, []).append((parameters, successor))
            if not options:
                self.decide(DEADLOCK, initial, steps)
            if not options or len(steps) == LONGEST_WALK:
                break
            action = random.choice(list(options))
            before = state
            parameters, state = random.choice(options[action])
            self.taken[action] += 1
            steps.append((self.instance.actions[action].name, tuple(parameters)))
        self.deepest = max(self.deepest, len(steps))

    def look(self, before: State | None, state: State, initial: Parameters, steps: list[Step]) -> None:
        """Test the undecided properties on this state and on the step to it."""
        new = state not in self.seen
        self.seen.add(state)
        if new and not self.evaluator.in_range(state):
            self.decide(TYPE_OK, initial, steps)
        for p in self.properties:
            if p.name in self.found:
                continue
            seek = p.kind.startswith("sometimes")
            if p.kind in ("always", "sometimes"):
                if new and self.evaluator.holds(p, state) is seek:
                    self.decide(p.name, initial, steps)
            elif before is not None and self.evaluator.holds(p, before, state) is seek:
                self.decide(p.name, initial, steps)

    def decide(self, name: str, initial: Parameters, steps: list[Step]) -> None:
        if name in dict(self.names):
            self.found.setdefault(name, Path(tuple(initial), tuple(steps)))

    def exploration(self, seconds: float, *, enough: bool) -> Exploration:
        findings: list[Finding] = []
        for name, kind in self.names:
            path = self.found.get(name)
            verdict = Verdict.SAMPLED if enough or path is not None else Verdict.BUDGETED
            if path is not None and not kind.startswith("sometimes"):
                verdict = Verdict.VIOLATED
            findings.append(Finding(name, kind, verdict, path))
        findings += [Finding(p.name, p.kind, Verdict.UNKNOWN) for p in self.awaited]
        taken = {a.name: self.taken[i] for i, a in enumerate(self.instance.actions)}
        return Exploration(tuple(findings), False, len(self.seen), self.generated, self.deepest, seconds, (), taken, ())
