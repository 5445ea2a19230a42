"""Depth first over (line, state of an owner), with a memo: is there a run of the model that says all these lines?

Each replica, and the controller's ruling of each partition, is searched alone: what ties them is what they tell each
other, and that is told at every level (`lines`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

import attrs

from isr_validate.trace_lines import Line
from isr_validate.verdict import Way

S = TypeVar("S", bound=Hashable)


class Steps(Protocol[S]):
    """What an owner may have become with a line. `bounded`: not every hidden step was tried."""

    outside: dict[int, str]
    bounded: bool

    def first(self) -> S:
        """Before its first line."""
        ...

    def after(self, line: Line, state: S, ways: list[Way], /) -> Iterator[S]:
        """Every state after a line, the likeliest first; how it fails is added to `ways`."""
        ...


@attrs.define
class Budget:
    """How many states may yet be tried, by all searches together."""

    left: int


@attrs.frozen
class Found:
    """What came of a search: how many of the lines are explained, and whether the budget was spent before it was known.

    `ways`: how the line after them fails, from each state that was possible there; `states` those states.
    `widest`: the most states that were possible at one line; `counts`: how many lines had more than one successor.
    """

    explained: int
    spent: bool
    tried: int
    widest: int
    ways: tuple[Way, ...] = ()
    states: tuple[object, ...] = ()


@attrs.define
class _Open(Generic[S]):
    """A state at a line, and what is left to try after it."""

    at: int
    state: S
    rest: Iterator[S]
    ways: list[Way]
    led: bool = False


def search(steps: Steps[S], chain: list[Line], budget: Budget) -> Found:
    """The first run that is found, else the longest part of one."""
    seen: list[set[S]] = [set() for _ in range(len(chain) + 1)]
    failed: list[tuple[S, list[Way]]] = []
    tried, furthest = 0, 0
    stack: list[_Open[S]] = []

    def opened(at: int, state: S) -> _Open[S]:
        ways: list[Way] = []
        return _Open(at, state, steps.after(chain[at], state, ways), ways)

    if chain:
        stack.append(opened(0, steps.first()))
    while stack and budget.left > 0:
        top = stack[-1]
        following = next(top.rest, None)
        if following is None:
            stack.pop()
            if not top.led and top.at == furthest:
                failed.append((top.state, top.ways))
            continue
        top.led = True
        if following in seen[top.at + 1]:
            continue
        seen[top.at + 1].add(following)
        budget.left -= 1
        tried += 1
        if top.at + 1 > furthest:
            furthest, failed = top.at + 1, []
        if furthest == len(chain):
            break
        stack.append(opened(top.at + 1, following))
    widest = max(map(len, seen))
    if furthest == len(chain):
        return Found(furthest, False, tried, widest)
    ways = tuple(way for _, found in failed for way in found)
    return Found(furthest, bool(stack) or steps.bounded, tried, widest, ways, tuple(s for s, _ in failed))
