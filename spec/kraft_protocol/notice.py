"""Which known mistakes the bounds of a question notice, so that a promise that holds says what it is worth.

A mistake is a design that breaks a promise within some bounds. The table has the smallest that were tried. The bounds
of a question notice it where they have as many voters, if it needs so many, and nothing else is smaller, for then they
have the same behaviour. A mistake that needs a fault says nothing where that is not asked for. A promise of which no
mistake is noticed, though some are known, says too little, whatever it takes to notice one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import attrs

from isr_check.engine import Exploration, Finding, Verdict
from isr_check.family import Notice
from isr_check.worth import PROMISES
from isr_lang import Instance, Value

FAULTS = ("restarts", "lost_disks")
USUAL_EPOCHS = 2
"""What needs more elections does not count against a promise of which another mistake is noticed: an exploration of so
many takes more than minutes. In somebody's own design it counts."""


@attrs.frozen
class Mistake:
    """A design, by name, that breaks the promise of this name within these bounds."""

    design: str
    promise: str
    bounds: Mapping[str, int]

    def says_something(self, constants: Mapping[str, Value]) -> bool:
        """Whether the faults that it needs are asked for."""
        return all(cast("int", constants[name]) >= self.bounds.get(name, 0) for name in FAULTS)

    @property
    def is_usual(self) -> bool:
        """Whether usual elections are enough for it."""
        return self.bounds["epochs"] <= USUAL_EPOCHS

    def is_noticed(self, constants: Mapping[str, Value]) -> bool:
        """Whether these constants have the behaviour in which it breaks the promise."""
        enough = all(cast("int", constants[name]) >= least for name, least in self.bounds.items())
        return enough and constants["voters"] == self.bounds.get("voters", constants["voters"])


MISTAKES = (
    Mistake("kraft-votes-again", "one-leader-per-epoch", {"voters": 3, "epochs": 1}),
    Mistake("kraft-votes-again", "one-vote-per-epoch", {"epochs": 1}),
    Mistake("kraft-vote-not-flushed", "one-leader-per-epoch", {"voters": 3, "epochs": 1, "restarts": 1}),
    Mistake("kraft-any-fetch", "logs-match", {"voters": 3, "epochs": 2}),
    Mistake("kraft-longer-log", "leaders-complete", {"voters": 3, "epochs": 3, "log": 3}),
    Mistake("kraft-commits-any-epoch", "leaders-complete", {"voters": 3, "epochs": 4, "log": 2}),
    Mistake("kafka-12460", "watermark-within-log", {"voters": 3, "epochs": 2, "lost_disks": 1}),
    Mistake("kraft-end-clears-fetch", "resigned-leader-is-no-obstacle", {"voters": 3, "epochs": 1}),
)
"""By the tests of the counterexamples, and of two voters by their table of runs.

Reports with the same behaviour, or with fewer voters, are left out.
"""


def noticing(
    instance: Instance, exploration: Exploration, property_names: Sequence[str]
) -> tuple[Exploration, Notice | None]:
    """The findings, and what the bounds notice; None where nothing is said to hold.

    A design that is a mistake itself is judged like any other: within small bounds it holds, too.
    """
    held = [f.name for f in exploration.findings if f.kind in PROMISES and f.verdict is Verdict.HOLDS]
    names = [name for name in held if name in property_names]
    if not names:
        return exploration, None
    answer = notice(instance.constants, names, is_own=bool(instance.design.file))
    findings = tuple(_judge(f, answer) for f in exploration.findings)
    return attrs.evolve(exploration, findings=findings), answer


def notice(constants: Mapping[str, Value], promises: Collection[str], *, is_own: bool = False) -> Notice:
    """What these constants notice of the mistakes that break one of these promises.

    `is_own`: of somebody's own design, of which nobody knows what it breaks. Every mistake counts there, and those of
    usual elections count against a promise that none is known to break.
    """
    about = [m for m in MISTAKES if m.says_something(constants)]
    rows = [m for m in about if m.promise in promises]
    missing = [m for m in rows if not m.is_noticed(constants)]
    safe = {m.promise for m in rows if m not in missing}
    beyond = [m for m in missing if m.promise in safe and not m.is_usual and not is_own]
    without_mistake = tuple(p for p in promises if p not in {m.promise for m in rows})
    of_others = [m for m in about if m.is_usual and not m.is_noticed(constants)] if is_own and without_mistake else []
    return Notice(
        tuple(dict.fromkeys(m.design for m in rows)),
        tuple(dict.fromkeys(m.design for m in rows if m not in missing)),
        dict(_by_promise([m for m in missing if m not in beyond])),
        dict(_by_promise(beyond)),
        {n: value for n, value in _enough([*missing, *of_others], constants).items() if value != constants[n]},
        without_mistake=without_mistake,
        short_of_base=without_mistake if of_others else (),
    )


def _by_promise(mistakes: Sequence[Mistake]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for promise in dict.fromkeys(m.promise for m in mistakes):
        yield promise, tuple(m.design for m in mistakes if m.promise == promise)


def _enough(mistakes: Sequence[Mistake], constants: Mapping[str, Value]) -> dict[str, Value]:
    """The least bounds at which all of these are noticed; all that need so many voters need three."""
    names = dict.fromkeys(name for m in mistakes for name in m.bounds)
    least = {name: max(m.bounds.get(name, 0) for m in mistakes) for name in names}
    return {n: v if n == "voters" else max(v, cast("int", constants[n])) for n, v in least.items()}


def _judge(finding: Finding, answer: Notice) -> Finding:
    misses = finding.name in answer.unnoticed_by_promise or finding.name in answer.short_of_base
    if misses and finding.verdict is Verdict.HOLDS:
        return attrs.evolve(finding, verdict=Verdict.TOO_SMALL)
    return finding
