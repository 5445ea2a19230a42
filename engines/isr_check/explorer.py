"""Breadth-first exploration with the reference evaluator: the search in its plainest form.

States are kept in one dictionary and one list, and each remembers the position of its parent. The steps of a
counterexample are found again by expanding its states, so nothing else is stored.

With symmetry the state of an orbit that is found first stands for all of it, and with a reduction the first of those
that differ in what nothing will read; so a counterexample is the same as without.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from itertools import pairwise

from isr_check.engine import (
    DEADLOCK,
    TYPE_OK,
    Exploration,
    Finding,
    GuardCount,
    Limits,
    Path,
    Progress,
    is_decided,
    liveness_properties,
    names_to_check,
    properties_to_check,
    verdict,
)
from isr_check.reduction import Reduction
from isr_check.reference import Evaluator, Parameters, State, parameter_values
from isr_check.symmetry import Symmetry
from isr_lang import Instance, Property


class _Search:
    def __init__(
        self,
        instance: Instance,
        property_names: tuple[str, ...],
        symmetry: Symmetry | None,
        reduction: Reduction | None,
    ) -> None:
        self.instance, self.symmetry, self.reduction = instance, symmetry, reduction
        self.evaluator = Evaluator(instance)
        self.properties = properties_to_check(instance, property_names)
        self.liveness_properties = liveness_properties(instance, property_names)
        self.names, self.requested_names = names_to_check(self.properties, property_names)
        self.deadlock = DEADLOCK in property_names
        tests = {p.name: self.evaluator.test(p) for p in instance.properties}
        # name, test, and the answer that decides: a witness of 'sometimes', a violation of the others
        decisive = [(p.kind, (p.name, tests[p.name], p.kind.startswith("sometimes"))) for p in self.properties]
        self.on_states = [found for kind, found in decisive if kind in ("always", "sometimes")]
        self.on_steps = [found for kind, found in decisive if kind in ("step", "sometimes-step")]
        self.states: list[State] = []
        self.parents = array("q")
        self.index: dict[State, int] = {}
        # name -> (position of the state, None) or (position of the state before, the step's successor)
        self.evidence: dict[str, tuple[int, State | None]] = {}
        self.steps_by_action = [0] * len(instance.actions)
        self.generated = 0

    def add(self, state: State, parent: int) -> bool:
        known_as = self.reduction.representative(state) if self.reduction else state
        known_as = self.symmetry.representative(known_as) if self.symmetry else known_as
        if known_as in self.index:
            return False
        position = self.index[known_as] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        if not self.evaluator.in_range(state):
            self.evidence.setdefault(TYPE_OK, (position, None))
            return True
        for name, test, seek in self.on_states:
            if name not in self.evidence and bool(test(state)) is seek:
                self.evidence[name] = position, None
        return True

    def expand(self, position: int) -> list[int]:
        state, before, new = self.states[position], self.generated, list[int]()
        for action, _, successor in self.evaluator.successors(state):
            self.generated += 1
            self.steps_by_action[action] += 1
            for name, test, seek in self.on_steps:
                if name in self.evidence or bool(test(state, successor)) is not seek:
                    continue
                if self.evaluator.in_range(successor):
                    self.evidence[name] = position, successor
            if self.add(successor, position):
                new.append(len(self.states) - 1)
        if self.deadlock and self.generated == before and DEADLOCK not in self.evidence:
            self.evidence[DEADLOCK] = position, None
        return new

    def is_decided(self) -> bool:
        return TYPE_OK in self.evidence or (
            not self.liveness_properties and is_decided(self.requested_names, self.evidence)
        )

    def path(self, position: int, last: State | None) -> Path:
        chain = [position]
        while (parent := self.parents[chain[-1]]) >= 0:
            chain.append(parent)
        states = [self.states[i] for i in reversed(chain)] + ([last] if last is not None else [])
        initial = next(p for p, s in self.evaluator.initial_states() if s == states[0])
        steps: list[tuple[str, Parameters]] = []
        evaluator = Evaluator(self.instance)  # one whose guard counts nobody reads
        for old, new in pairwise(states):
            found = next((a, p) for a, p, s in evaluator.successors(old) if s == new)
            steps.append((self.instance.actions[found[0]].name, found[1]))
        return Path(initial, tuple(steps))

    def findings(self, complete: bool) -> tuple[Finding, ...]:
        names = [(n, kind) for n, kind in self.names if n in self.requested_names or n in self.evidence]
        found = [self._finding(name, kind, complete) for name, kind in names]
        return (*found, *(self._liveness(p, complete) for p in self.liveness_properties))

    def _liveness(self, p: Property, complete: bool) -> Finding:
        if not complete:
            return self._finding(p.name, p.kind, complete)
        from isr_check.liveness_reference import decide  # with SciPy, which takes its time to import

        return decide(self.instance, p)

    def _finding(self, name: str, kind: str, complete: bool) -> Finding:
        at, typed = self.evidence.get(name), TYPE_OK not in self.evidence
        worth = verdict(kind, has_evidence=at is not None, complete=complete, typed=typed)
        return Finding(name, kind, worth, self.path(*at) if at is not None else None)

    def guards(self, expansions: int) -> tuple[GuardCount, ...]:
        counts: list[GuardCount] = []
        for base, action in zip(self.evaluator.guard_base, self.instance.actions, strict=True):
            reached = expansions * sum(1 for _ in parameter_values(self.instance, action))
            for i, guard in enumerate(action.guards):
                refused = self.evaluator.false[base + i]
                reached -= refused
                counts.append(GuardCount(action.name, guard.index, guard.name, reached, refused))
        return tuple(counts)


def explore(
    instance: Instance,
    property_names: tuple[str, ...] = (),
    limits: Limits | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    *,
    symmetry: bool = False,
    reduction: bool = False,
) -> Exploration:
    """Explore with the reference evaluator (see isr_check.engine for the contract)."""
    limits = limits or Limits()
    names = Symmetry(instance, property_names) if symmetry else None
    blanks = Reduction(instance, property_names) if reduction else None
    search, start = _Search(instance, property_names, names, blanks), time.monotonic()
    for _, state in search.evaluator.initial_states():
        search.add(state, -1)
    frontier = list(range(len(search.states)))
    levels, expansions, cut = [len(frontier)], 0, False
    while frontier and not cut and not search.is_decided():
        next_frontier: list[int] = []
        for n, position in enumerate(frontier):
            if n % 512 == 0:
                elapsed = time.monotonic() - start
                distinct = len(search.states)
                progress(Progress(len(levels) - 1, len(frontier), distinct, search.generated, elapsed))
                cut = _over(limits, distinct, elapsed)
                if cut:
                    break
            next_frontier += search.expand(position)
            expansions += 1
        frontier = next_frontier
        levels += [len(next_frontier)] if next_frontier else []
    complete = not cut and not frontier and TYPE_OK not in search.evidence
    return Exploration(
        search.findings(complete),
        complete,
        len(search.states),
        search.generated,
        len(levels) - 1,
        time.monotonic() - start,
        tuple(levels),
        {a.name: n for a, n in zip(instance.actions, search.steps_by_action, strict=True)},
        search.guards(expansions),
        sum(map(names.orbit, search.index)) if names else None,
    )


def _over(limits: Limits, distinct: int, elapsed: float) -> bool:
    over_states = limits.max_states is not None and distinct >= limits.max_states
    over_time = limits.max_seconds is not None and elapsed >= limits.max_seconds
    return over_states or over_time or limits.stop()
