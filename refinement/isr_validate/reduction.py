"""A rejected trace made small: the least that is still rejected at the same kind of line, for the same reason.

First what is not among the causes of the line; then whole lives, partitions, and what clients asked; then lines, by
delta debugging (ddmin: Zeller and Hildebrandt 2002). What received a line that is gone goes with it. The lines that are
left are numbered anew, so the result is a trace again. A simulated run is made small before that (`rerunning`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from time import process_time
from typing import TypeAlias

import attrs

from isr_broker.trace_reader import BadTrace, Event, Life
from isr_validate.line_values import mails
from isr_validate.trace_lines import Level
from isr_validate.validator import validate
from isr_validate.verdict import Rejected, Validated

Key: TypeAlias = tuple[str, int]
"""A line: its life, and its number there."""

Judge: TypeAlias = Callable[[Sequence[Life]], Validated]


@attrs.define
class Shrinking:
    """What is wanted, and how often it may yet be tried."""

    judge: Judge
    wanted: tuple[str, ...]
    tries: int
    until: float
    done: int = 0

    @property
    def over(self) -> bool:
        """Enough was tried."""
        return self.done >= self.tries or process_time() > self.until

    def same(self, lives: Sequence[Life]) -> bool:
        """Rejected in the same way."""
        self.done += 1
        try:
            no = self.judge(lives).rejected
        except BadTrace:
            return False
        return no is not None and kind_of(no) == self.wanted


@attrs.frozen
class Shrunk:
    """What is left, how many lines there were, and how often it took to try."""

    lives: tuple[Life, ...]
    lines: int
    before: int
    tries: int


def kind_of(no: Rejected) -> tuple[str, ...]:
    """What makes two rejections the same: the action, the reason without its numbers, and which variables differ."""
    why = re.sub(r"\S*\d\S*", "#", no.why)
    return (no.action, why, *sorted(no.differences))


def shrink(lives: Sequence[Life], no: Rejected, judge: Judge, tries: int = 400, seconds: float = 60) -> Shrunk:
    """The trace made small; as it was if nothing can be left out, or the processor's seconds are over."""
    work = Shrinking(judge, kind_of(no), tries, process_time() + seconds)
    now = tuple(lives)
    before = sum(len(life.events) for life in now)
    last = next((e for life in now if life.name == no.life for e in life.events if e.number == no.line - 1), None)
    if last is not None:
        past = {(name, n) for name, count in last.clock.items() for n in range(1, count + 1)}
        now = _less(work, now, [key for key in _keys(now) if key not in past])
        for group in _groups(now, last):
            now = _less(work, now, group)
        now = _ddmin(work, now)
    return Shrunk(now, sum(len(life.events) for life in now), before, work.done)


def _keys(lives: Iterable[Life]) -> list[Key]:
    return [(life.name, event.number) for life in lives for event in life.events]


def _less(work: Shrinking, lives: tuple[Life, ...], gone: Iterable[Key]) -> tuple[Life, ...]:
    """Without these lines, if it is still rejected alike."""
    dropped = with_receivers(lives, set(gone))
    if not dropped or len(dropped) == sum(len(life.events) for life in lives):
        return lives
    smaller = without(lives, dropped)
    return smaller if work.same(smaller) else lives


def _groups(lives: tuple[Life, ...], last: Event) -> list[list[Key]]:
    """Whole lives, all that is about another partition, and each client's requests."""
    events = [event for life in lives for event in life.events]
    groups = [[(e.life, e.number) for e in life.events] for life in lives if life.name != last.life]
    about = last.says.get("partition")
    groups.append([(e.life, e.number) for e in events if e.says.get("partition", about) != about])
    for kind in ("Consume", "Produce"):
        idle = [(e.life, e.number) for e in events if e.says.get("input") == kind and "action" not in e.says]
        groups += [idle, [(e.life, e.number) for e in events if e.says.get("input") == kind]]
    return groups


def _ddmin(work: Shrinking, lives: tuple[Life, ...]) -> tuple[Life, ...]:
    """Ever smaller parts are left out, the latest first, until no single line can be, or the tries are spent."""
    size = max(1, sum(len(life.events) for life in lives) // 2)
    while not work.over:
        keys = _keys(lives)
        shorter = False
        end = len(keys)
        while end > 0 and not work.over:
            smaller = _less(work, lives, keys[max(0, end - size) : end])
            if smaller is not lives:
                lives, shorter = smaller, True
                keys = _keys(lives)
                end = min(end, len(keys))
            else:
                end -= size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return lives


def with_receivers(lives: Iterable[Life], gone: set[Key]) -> set[Key]:
    """And the lines that received what those have sent, and so on."""
    sent_by: dict[str, Key] = {}
    received: dict[Key, str] = {}
    for life in lives:
        for event in life.events:
            key = (event.life, event.number)
            for mail in mails(event.life, event.says.get("sent")):
                sent_by[mail.id] = key
            if "received" in event.says:
                received[key] = str(event.says["received"])
    all_gone, more = set(gone), True
    while more:
        more = False
        for key, message in received.items():
            if key not in all_gone and sent_by.get(message) in all_gone:
                all_gone.add(key)
                more = True
    return all_gone


def without(lives: Iterable[Life], gone: set[Key]) -> tuple[Life, ...]:
    """The trace without these lines, numbered anew; lives without any are gone."""
    kept: dict[str, list[int]] = {}
    for life in lives:
        kept[life.name] = [event.number for event in life.events if (event.life, event.number) not in gone]
    place = {name: _counts(numbers) for name, numbers in kept.items()}
    found: list[Life] = []
    for life in lives:
        if not kept[life.name]:
            continue
        events: list[Event] = []
        for event in life.events:
            if (event.life, event.number) in gone:
                continue
            clock = {name: place[name](count) for name, count in event.clock.items() if name in place}
            clock = {name: count for name, count in clock.items() if count}
            number = len(events) + 1
            clock[life.name] = number
            events.append(Event(life.name, number, clock, {**event.says, "n": number, "clock": dict(clock)}))
        found.append(Life(life.name, life.header, tuple(events), False))
    return tuple(found)


def _counts(numbers: Sequence[int]) -> Callable[[int], int]:
    return lambda count: bisect_right(numbers, count)


def judged_at(level: Level) -> Judge:
    """As `insync validate` judges."""
    return lambda lives: validate(lives, level)
