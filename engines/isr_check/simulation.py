"""A search for violations by seeded random walks, where there are too many states to see them all.

Walk number n of a seed is the same walk in every engine and on any machine, because all of them draw from the same
`Dice`: first one of the initial states, then at each state one of the enabled actions, and one of the action's steps.
A walk ends after LONGEST_WALK steps, at a state without a next one, or at one that violates `type-ok`. This is the
reference; the same at native speed is isr_check.native.simulation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from isr_check.engine import (
    DEADLOCK,
    TYPE_OK,
    Exploration,
    Finding,
    Limits,
    Path,
    Progress,
    Verdict,
    liveness_properties,
    names_to_check,
    properties_to_check,
    silent,
)
from isr_check.reference import Evaluator, Parameters, State
from isr_check.walk_estimate import WalkEstimate
from isr_lang import Instance

LONGEST_WALK = 100
TELL_EVERY = 0.2
WORD = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = 31

Step = tuple[str, Parameters]


def mix_word(word: int) -> int:
    """A bijection of 64-bit words, each bit of whose result depends on every bit of the word."""
    for shift, factor in ROUNDS:
        word = (word ^ word >> shift) * factor & WORD
    return word ^ word >> LAST_SHIFT


class Dice:
    """The random numbers of one walk, by splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""

    def __init__(self, seed: int, walk: int) -> None:
        self.state = mix_word(mix_word(seed & WORD) + walk & WORD)

    def below(self, count: int) -> int:
        """One of 0..count-1, all equally probable but for a part in 2**32; count is less than 2**32."""
        self.state = self.state + GAMMA & WORD
        return (mix_word(self.state) >> 32) * count >> 32


class Walks:
    """What random walks have found so far: the counterexample or witness of each decided property, and counts."""

    def __init__(self, instance: Instance, property_names: tuple[str, ...]) -> None:
        self.instance = instance
        self.properties, self.liveness_properties = (
            properties_to_check(instance, property_names),
            liveness_properties(instance, property_names),
        )
        self.names, self.requested_names = names_to_check(self.properties, property_names)
        self.evidence: dict[str, Path] = {}
        self.steps_by_action: Counter[int] = Counter()
        self.distinct = self.generated = self.deepest = 0
        self.walks_made: int = 0
        self.meetings = self.once = self.twice = 0
        self.is_estimate = False

    def is_decided(self) -> bool:
        return bool(self.requested_names) and self.requested_names <= set(self.evidence)

    def progress(self, seconds: float) -> Progress:
        return Progress(self.deepest, 1, self.distinct, self.generated, seconds)

    def exploration(self, seconds: float, *, enough: bool) -> Exploration:
        """The answer; `enough`: all walks that were asked for were made."""
        findings: list[Finding] = []
        absence = Verdict.UNKNOWN if TYPE_OK in self.evidence else Verdict.SAMPLED if enough else Verdict.BUDGETED
        for name, kind in self.names:
            path = self.evidence.get(name)
            if path is not None:
                sampled = kind.startswith("sometimes")
                findings.append(Finding(name, kind, Verdict.SAMPLED if sampled else Verdict.VIOLATED, path))
            elif name in self.requested_names:
                findings.append(Finding(name, kind, absence))
        findings += [Finding(p.name, p.kind, Verdict.UNKNOWN) for p in self.liveness_properties]
        steps_by_action = {a.name: self.steps_by_action[i] for i, a in enumerate(self.instance.actions)}
        return Exploration(
            tuple(findings),
            complete=False,
            distinct=self.distinct,
            generated=self.generated,
            depth=self.deepest,
            seconds=seconds,
            levels=(),
            steps_by_action=steps_by_action,
            guards=(),
            is_estimate=self.is_estimate,
            estimate=self.estimate(),
        )

    def estimate(self) -> WalkEstimate | None:
        """How much these walks have not met; None where they met nothing."""
        if not self.meetings:
            return None
        return WalkEstimate(self.walks_made, self.meetings, self.distinct, self.once, self.twice)


def simulate(
    instance: Instance,
    property_names: tuple[str, ...],
    walks: int,
    seed: int,
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = silent,
) -> Exploration:
    """Make random walks instead of exploring all states; a promise that none of the `walks` breaks is SAMPLED.

    A counterexample is the walk as it was made, not a shortest one.
    """
    limits, start = limits or Limits(), time.monotonic()
    search = Simulation(instance, property_names)
    reports = 0
    while search.walks_made < walks and not search.is_decided() and not limits.stop():
        elapsed = time.monotonic() - start
        if limits.max_seconds is not None and elapsed >= limits.max_seconds:
            break
        if limits.max_states is not None and search.distinct >= limits.max_states:
            break
        if elapsed > reports * TELL_EVERY:
            reports += 1
            progress(search.progress(elapsed))
        search.walk(Dice(seed, search.walks_made))
    return search.exploration(time.monotonic() - start, enough=search.walks_made == walks)


class Simulation(Walks):
    """Random walks by the reference evaluator."""

    def __init__(self, instance: Instance, property_names: tuple[str, ...]) -> None:
        super().__init__(instance, property_names)
        self.evaluator = Evaluator(instance)
        self.walks_by_state: Counter[State] = Counter()

    def walk(self, dice: Dice) -> None:
        self.walks_made += 1
        starts = self.evaluator.initial_states()
        if not starts:
            return
        initial, state = starts[dice.below(len(starts))]
        steps: list[Step] = []
        before: State | None = None
        walk_states: set[State] = set()
        while True:
            if state not in walk_states:
                walk_states.add(state)
                self.count_meeting(state)
            self.look(before, state, initial, steps)
            if not self.evaluator.in_range(state):
                break
            options: dict[int, list[tuple[Parameters, State]]] = {}
            for action, parameters, successor in self.evaluator.successors(state):
                self.generated += 1
                options.setdefault(action, []).append((parameters, successor))
            if not options:
                self.decide(DEADLOCK, initial, steps)
            if not options or len(steps) == LONGEST_WALK:
                break
            action = list(options)[dice.below(len(options))]
            before = state
            parameters, state = options[action][dice.below(len(options[action]))]
            self.steps_by_action[action] += 1
            steps.append((self.instance.actions[action].name, tuple(parameters)))
        self.deepest = max(self.deepest, len(steps))

    def count_meeting(self, state: State) -> None:
        """Count that one more walk meets this state."""
        self.meetings += 1
        self.walks_by_state[state] += 1
        n = self.walks_by_state[state]
        self.distinct = len(self.walks_by_state)
        self.once += (n == 1) - (n == 2)
        self.twice += (n == 2) - (n == 3)

    def look(self, before: State | None, state: State, initial: Parameters, steps: list[Step]) -> None:
        """Test the undecided properties on this state, unless an earlier walk met it, and on the step to it."""
        new = self.walks_by_state[state] == 1
        if not self.evaluator.in_range(state):
            if new:
                self.decide(TYPE_OK, initial, steps)
            return
        for p in self.properties:
            if p.name in self.evidence:
                continue
            seek = p.kind.startswith("sometimes")
            if p.kind in ("always", "sometimes"):
                if new and self.evaluator.holds(p, state) is seek:
                    self.decide(p.name, initial, steps)
            elif before is not None and self.evaluator.holds(p, before, state) is seek:
                self.decide(p.name, initial, steps)

    def decide(self, name: str, initial: Parameters, steps: list[Step]) -> None:
        if name in dict(self.names):
            self.evidence.setdefault(name, Path(tuple(initial), tuple(steps)))
