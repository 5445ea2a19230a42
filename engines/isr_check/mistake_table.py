"""Known mistakes of a family: designs that break a promise within some bounds, and which of them other bounds notice.

A question notices a mistake where its bounds are no smaller, for then they have the same behaviour. Elsewhere nobody
knows that it does. A mistake that needs a fault, or another setting, says nothing where that is not asked for. A
promise of which no mistake is noticed, though some are known, says too little, whatever it takes to notice one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import attrs

from isr_check.engine import Exploration, Finding, Verdict
from isr_check.family import Notice
from isr_check.worth import PROMISES
from isr_lang import Instance, Value


@attrs.frozen
class Mistake:
    """A design, by name, that breaks the promise of this name within these bounds, in so many steps.

    The design named as `control` has the same bounds, but for `control_bounds`, and keeps the promise for as many
    steps. Of a promise of what comes to pass they are the steps to the loop and around it. `is_shortest`: no fewer
    steps break it. `least`: the least bounds that are enough, each by itself, where those are others.
    """

    design: str
    promise: str
    steps: int
    bounds: Mapping[str, Value]
    control: str
    control_bounds: Mapping[str, Value] = attrs.field(factory=dict[str, Value])
    is_shortest: bool = True
    least: tuple[Mapping[str, Value], ...] = ()

    def least_bounds(self) -> tuple[Mapping[str, Value], ...]:
        """The least bounds that are enough, each by itself."""
        return self.least or (self.bounds,)


def is_setting(value: Value) -> bool:
    """A switch or a choice, which is what is asked, and no size."""
    return isinstance(value, bool | str)


@attrs.frozen
class MistakeTable:
    """The mistakes of a family, and what their bounds mean.

    `faults`: budgets that say what is asked. `exact`: bounds that have to be the same, for more of them is another
    question. `most_unasked`: more than so many are asked for, like a fault. `usual`: what needs more of these does not
    count against a promise of which another mistake is noticed, for it takes more than minutes to explore. In
    somebody's own design it counts.
    """

    mistakes: tuple[Mistake, ...]
    faults: tuple[str, ...]
    exact: tuple[str, ...]
    most_unasked: Mapping[str, int]
    usual: Mapping[str, int]

    def says_something(self, mistake: Mistake, constants: Mapping[str, Value]) -> bool:
        """Whether the faults and settings that the mistake needs are asked for."""
        faults = {**dict.fromkeys(self.faults, 0), **self.most_unasked}
        return any(
            all(n in constants and (not is_setting(v) or constants[n] == v) for n, v in bounds.items())
            and all(_size(bounds, n) <= max(most, _size(constants, n)) for n, most in faults.items())
            for bounds in mistake.least_bounds()
        )

    def is_usual(self, mistake: Mistake) -> bool:
        """Whether usual bounds are enough for it."""
        return any(
            all(_size(bounds, name) <= most for name, most in self.usual.items()) for bounds in mistake.least_bounds()
        )

    def is_noticed(self, mistake: Mistake, constants: Mapping[str, Value]) -> bool:
        """Whether these constants are known to have a behaviour in which it breaks the promise."""
        return any(
            all(
                constants.get(n) == v if is_setting(v) or n in self.exact else _size(bounds, n) <= _size(constants, n)
                for n, v in bounds.items()
            )
            for bounds in mistake.least_bounds()
        )

    def notice(self, constants: Mapping[str, Value], promises: Collection[str], *, is_own: bool = False) -> Notice:
        """What these constants notice of the mistakes that break one of these promises.

        `is_own`: of somebody's own design, of which nobody knows what it breaks. Every mistake counts there, and the
        usual ones count against a promise that none is known to break.
        """
        about = [m for m in self.mistakes if self.says_something(m, constants)]
        rows = [m for m in about if m.promise in promises]
        missing = [m for m in rows if not self.is_noticed(m, constants)]
        safe = {m.promise for m in rows if m not in missing}
        beyond = [m for m in missing if m.promise in safe and not self.is_usual(m) and not is_own]
        without_mistake = tuple(p for p in promises if p not in {m.promise for m in rows})
        others = [m for m in about if self.is_usual(m) and not self.is_noticed(m, constants)]
        of_others = others if is_own and without_mistake else []
        return Notice(
            tuple(dict.fromkeys(m.design for m in rows)),
            tuple(dict.fromkeys(m.design for m in rows if m not in missing)),
            dict(_by_promise([m for m in missing if m not in beyond])),
            dict(_by_promise(beyond)),
            self._enough([*missing, *of_others], constants),
            without_mistake=without_mistake,
            short_of_base=without_mistake if of_others else (),
        )

    def _enough(self, mistakes: Sequence[Mistake], constants: Mapping[str, Value]) -> dict[str, Value]:
        """The least bounds, of those in the way, at which all of these are noticed.

        Where some need other exact bounds than others, all that need the least of these.
        """
        bounds_of_each = [m.least_bounds()[0] for m in mistakes]
        for name in self.exact:
            least = min((_size(b, name) for b in bounds_of_each if name in b), default=0)
            bounds_of_each = [b for b in bounds_of_each if _size(b, name) in (0, least)]
        names = dict.fromkeys(n for b in bounds_of_each for n, value in b.items() if not is_setting(value))
        most = {name: max(_size(b, name) for b in bounds_of_each) for name in names}
        bounds = {n: v if n in self.exact else max(v, _size(constants, n)) for n, v in most.items()}
        return {n: value for n, value in bounds.items() if value != constants[n]}

    def noticing(
        self, instance: Instance, exploration: Exploration, property_names: Sequence[str]
    ) -> tuple[Exploration, Notice | None]:
        """The findings, and what the bounds notice; None where nothing is said to hold.

        A design that is a mistake itself is judged like any other: within small bounds it holds, too.
        """
        names = promises_that_hold(exploration, property_names)
        if not names:
            return exploration, None
        answer = self.notice(instance.constants, names, is_own=bool(instance.design.file))
        return judged_by_notice(exploration, answer), answer


def promises_that_hold(exploration: Exploration, property_names: Sequence[str]) -> list[str]:
    """The names of the promises among these that hold."""
    held = [f.name for f in exploration.findings if f.kind in PROMISES and f.verdict is Verdict.HOLDS]
    return [name for name in held if name in property_names]


def judged_by_notice(exploration: Exploration, answer: Notice) -> Exploration:
    """The exploration; a promise that holds, and would not have noticed a mistake of its own, says too little."""
    small = {*answer.unnoticed_by_promise, *answer.short_of_base}

    def judge(finding: Finding) -> Finding:
        misses = finding.name in small and finding.verdict is Verdict.HOLDS
        return attrs.evolve(finding, verdict=Verdict.TOO_SMALL) if misses else finding

    return attrs.evolve(exploration, findings=tuple(map(judge, exploration.findings)))


def _size(bounds: Mapping[str, Value], name: str) -> int:
    return cast("int", bounds.get(name, 0))


def _by_promise(mistakes: Sequence[Mistake]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for promise in dict.fromkeys(m.promise for m in mistakes):
        yield promise, tuple(m.design for m in mistakes if m.promise == promise)
