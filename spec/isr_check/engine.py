"""What every engine is asked and what it answers.

An engine is one function `explore(instance, wanted, limits, progress) -> Exploration`. All engines answer
alike, to the number: the search is breadth first, level by level; it ends at the end of a level, when
the space is exhausted, every wanted property is decided, or a limit is hit; a counterexample is the least of
the shortest ones, comparing (initial state, then steps) by the order of actions and parameters in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from isr_lang import Instance, Property

TYPE_OK = "type-ok"
DEADLOCK = "deadlock"


class Unsound(ValueError):
    """What is asked cannot be answered in the way that is asked for: one sentence."""


class BadCheckpoint(ValueError):
    """A checkpoint that cannot be gone on from: one sentence."""


class Unavailable(RuntimeError):
    """An engine needs something that is not installed: one sentence, which names it."""


class Failed(RuntimeError):
    """What an engine runs on let it down: one sentence."""


class Verdict(StrEnum):
    """What is said of a property, from strongest to weakest. The same words everywhere.

    PROVED: for every value of the bounds left open. HOLDS: every state within the bounds was seen. BOUNDED: all
    behaviours up to a length. SAMPLED: only random walks were seen. BUDGETED: a limit ended the search. UNKNOWN: the
    engine cannot say. TOO_SMALL: nothing is violated, but the bounds leave no room for the faults asked for. VACUOUS:
    what the property speaks about never happens. VIOLATED: there is a counterexample. ERROR: a bug in insync.
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
    """None: no limit. `stop` is asked between levels and now and then within one (an interrupt)."""

    max_states: int | None = None
    max_seconds: float | None = None
    stop: Callable[[], bool] = lambda: False


@attrs.frozen
class Path:
    """A behaviour by name: the parameters of the initial condition, then (action, parameters) per step.

    With `loop` it never ends: after its last step it is again in the state that it was in after so many steps,
    and goes on as it did then; after all of its steps, it stays where it is.
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
    """Over all states expanded and all parameters: how often the guard let through, how often it said no."""

    action: str
    index: int
    text: str
    passed: int
    refused: int


@attrs.frozen
class Progress:
    """`depth` is the level being expanded, `frontier` its size; `state_bytes` is what a state takes, if known."""

    depth: int
    frontier: int
    distinct: int
    generated: int
    seconds: float
    state_bytes: float = 0.0
    on_disk: bool = False


@attrs.frozen
class Exploration:
    """`complete`: every reachable state was seen. `depth`: steps of the longest shortest path seen.

    By symmetry one state per orbit is seen and counted; `unreduced` is how many the orbits have together.
    `stopped` says what ended it early, if it was neither a limit nor that all is decided.
    """

    findings: tuple[Finding, ...]
    complete: bool
    distinct: int
    generated: int
    depth: int
    seconds: float
    levels: tuple[int, ...]
    taken: dict[str, int]
    guards: tuple[GuardCount, ...]
    unreduced: int | None = None
    stopped: str = ""

    def finding(self, name: str) -> Finding:
        return next(f for f in self.findings if f.name == name)


def silent(_: Progress) -> None:
    """For who wants to know the end only."""


Engine = Callable[[Instance, tuple[str, ...], Limits, Callable[[Progress], None]], Exploration]

CHECKED = ("always", "step", "sometimes", "sometimes-step")


def selected(instance: Instance, wanted: tuple[str, ...]) -> list[Property]:
    """The properties to check: those named, or all that can be decided while exploring."""
    return [p for p in instance.properties if p.kind in CHECKED and (not wanted or p.name in wanted)]


def awaited(instance: Instance, wanted: tuple[str, ...]) -> list[Property]:
    """The liveness properties to decide, which takes a complete exploration first: those named."""
    return [p for p in instance.properties if p.kind == "eventually" and p.name in wanted]
