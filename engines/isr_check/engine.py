"""What every engine is asked and what it answers.

An engine is one function `explore(instance, property_names, limits, progress) -> Exploration`. All engines answer
alike, to the number. The search is breadth first, level by level. It ends after a level, when all states were
seen or every wanted property is decided; a limit may end it earlier, within a level. A counterexample is the least
of the shortest ones, comparing (initial state, then steps) by the order of actions and parameters in the model.

`type-ok`, that every variable has a value of its type, is always asked, whatever `property_names` says; its finding is
there if it was asked for or is violated. A state that violates it is counted, but nothing else is asked of it or of a
step to it, and no engine takes a step from it: a search ends with the level at which there is one, and is not
`complete`. What is undecided then is UNKNOWN. So everything that is asked may take ranges for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum

import attrs

from isr_check.walk_estimate import WalkEstimate
from isr_lang import Instance, Property

TYPE_OK = "type-ok"
DEADLOCK = "deadlock"


class Unsound(ValueError):
    """The way of answering does not fit the question, so its answer could be wrong: one sentence says why."""


class BadCheckpoint(ValueError):
    """A checkpoint from which no exploration can resume: one sentence says why."""


class Unavailable(RuntimeError):
    """An engine needs something that is not installed: one sentence, which names it."""


class Failed(RuntimeError):
    """A system under an engine failed, such as Spark or a disk: one sentence says how."""


class Verdict(StrEnum):
    """The verdict on a property, in the same words everywhere.

    PROVED: it holds for every value of the bounds left open. HOLDS: every state within the bounds was seen. BOUNDED:
    all behaviours up to some length were seen. SAMPLED: only random walks were seen. BUDGETED: a limit ended the
    search. UNKNOWN: the engine cannot say. TOO_SMALL: it is not violated, but the bounds leave no room for the faults
    asked for, would miss a known mistake, or end where harm begins. VACUOUS: what the property speaks about never
    happens. VIOLATED: there is a counterexample. ERROR: a bug in insync.
    """

    PROVED = "PROVED"
    HOLDS = "HOLDS"
    BOUNDED = "BOUNDED"
    SAMPLED = "SAMPLED"
    BUDGETED = "BUDGETED"
    UNKNOWN = "UNKNOWN"
    TOO_SMALL = "TOO SMALL"
    VACUOUS = "VACUOUS"
    VIOLATED = "VIOLATED"
    ERROR = "ERROR"


@attrs.frozen
class Limits:
    """When to end an exploration early; None is no limit.

    `stop` is asked between levels and now and then within one; true ends the exploration (Ctrl-C).
    """

    max_states: int | None = None
    max_seconds: float | None = None
    stop: Callable[[], bool] = lambda: False


@attrs.frozen
class Path:
    """A behaviour by name: the parameters of the initial condition, then (action, parameters) per step.

    With `loop` it never ends: its last step leads back to the state after the first `loop` steps, from which it goes
    round again. If `loop` is the number of all steps, it stays in its last state for ever (it stutters).
    """

    initial: tuple[int, ...]
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    loop: int | None = None


@attrs.frozen
class Finding:
    """The verdict on one property; `path` is its counterexample, or for a `sometimes` its witness."""

    name: str
    kind: str
    verdict: Verdict
    path: Path | None = None


@attrs.frozen
class GuardCount:
    """How often a guard was decisive, over all states expanded and all parameters of its action.

    `refusals`: the guards before it held and it did not. `passes`: it held, as did those before it. `index` counts the
    action's guards as they are written.
    """

    action: str
    index: int
    text: str
    passes: int
    refusals: int


@attrs.frozen
class Progress:
    """How far an exploration is: `depth` is the level being expanded, `frontier` the number of its states.

    `distinct` states were found by `generated` steps so far. `state_bytes` is the memory per state, 0 if unknown;
    `on_disk`: states are kept in files by now. `beside` has what else the engine tells, a few words each; `page` is the
    address of a page about the work, empty if there is none.
    """

    depth: int
    frontier: int
    distinct: int
    generated: int
    seconds: float
    state_bytes: float = 0.0
    on_disk: bool = False
    beside: tuple[str, ...] = ()
    page: str = ""


@attrs.frozen
class Exploration:
    """The result of an exploration. `complete`: every reachable state was seen.

    `distinct` states were found by `generated` steps. `depth` is the number of the last level, which is the distance
    of the farthest state from the initial states. `levels` has the number of states at each distance, `steps_by_action`
    the number of steps by action. With symmetry one state per orbit is seen and counted; `states_in_orbits` is how many
    states the orbits have together. `stopped` says what ended the exploration early, if that was neither a limit nor
    that every wanted property was decided. `is_estimate`: `distinct` is an estimate, as random walks give it of many
    states. `estimate`: of random walks, how much they have not met.
    """

    findings: tuple[Finding, ...]
    complete: bool
    distinct: int
    generated: int
    depth: int
    seconds: float
    levels: tuple[int, ...]
    steps_by_action: dict[str, int]
    guards: tuple[GuardCount, ...]
    states_in_orbits: int | None = None
    stopped: str = ""
    is_estimate: bool = False
    estimate: WalkEstimate | None = None

    def finding(self, name: str) -> Finding:
        return next(f for f in self.findings if f.name == name)


def silent(_: Progress) -> None:
    """Report no progress."""


Engine = Callable[[Instance, tuple[str, ...], Limits, Callable[[Progress], None]], Exploration]

CHECKED_KINDS = ("always", "step", "sometimes", "sometimes-step")


def names_to_check(
    properties: Sequence[Property], property_names: tuple[str, ...]
) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """(name, kind) of all that is decided while exploring; and those of the names for which an exploration goes on."""
    names = [(p.name, p.kind) for p in properties] + [(TYPE_OK, "always")]
    names += [(DEADLOCK, "always")] * (DEADLOCK in property_names)
    unasked = {p.name for p in properties if p.optional}
    unasked |= {TYPE_OK} if property_names and TYPE_OK not in property_names else set[str]()
    return names, frozenset(name for name, _ in names) - unasked


def is_decided(requested_names: frozenset[str], decided_names: Collection[str]) -> bool:
    """Whether an exploration may end: all that was asked for is decided, or type-ok is violated."""
    return TYPE_OK in decided_names or (bool(requested_names) and requested_names <= set(decided_names))


def verdict(kind: str, *, has_evidence: bool, complete: bool, typed: bool) -> Verdict:
    """The verdict on a property; `typed`: type-ok is not violated."""
    sometimes = kind.startswith("sometimes")
    if has_evidence:
        return Verdict.HOLDS if sometimes else Verdict.VIOLATED
    if not typed:
        return Verdict.UNKNOWN
    if not complete:
        return Verdict.BUDGETED
    return Verdict.VACUOUS if sometimes else Verdict.HOLDS


def properties_to_check(instance: Instance, property_names: tuple[str, ...]) -> list[Property]:
    """The properties to decide while exploring: those in `property_names` about states and steps, or all of these."""
    return [
        p for p in instance.properties if p.kind in CHECKED_KINDS and (not property_names or p.name in property_names)
    ]


def liveness_properties(instance: Instance, property_names: tuple[str, ...]) -> list[Property]:
    """The liveness properties in `property_names`; they are decided after a complete exploration only."""
    return [p for p in instance.properties if p.kind == "eventually" and p.name in property_names]
