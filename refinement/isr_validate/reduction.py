"""Reduction of a rejected trace: the fewest lines that are still rejected for the same reason.

Lines that are not among the causes of the rejected one are dropped first; then whole lives, other partitions and the
requests of clients; then single lines, by delta debugging (ddmin: Zeller and Hildebrandt 2002). A line that receives a
message of a dropped line is dropped as well. The remaining lines are numbered anew, so that the result is a trace.

If a simulator made the trace, `reduce_run` first looks for a shorter run with fewer faults that is rejected alike.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import process_time
from typing import TypeAlias

import attrs

from isr_broker.trace_reader import BadTrace, Event, Life, read_lives
from isr_sim.simulate import Config
from isr_sim.traces import again, run_with_traces
from isr_sim.world import FAIR
from isr_validate.trace_lines import Level
from isr_validate.trace_values import sent_messages
from isr_validate.validator import validate
from isr_validate.verdict import Rejection, Validation

Key: TypeAlias = tuple[str, int]
"""A line: its life, and its number there."""

Validator: TypeAlias = Callable[[Sequence[Life]], Validation]


@attrs.define
class Reduction:
    """One reduction: the kind of rejection to keep, and how many validations and seconds it may take."""

    judge: Validator
    kind: tuple[str, ...]
    tries: int
    until: float
    validation_count: int = 0

    @property
    def over(self) -> bool:
        """Whether the validations or the seconds are used up."""
        return self.validation_count >= self.tries or process_time() > self.until

    def same(self, lives: Sequence[Life]) -> bool:
        """Whether these lines are rejected in the same way."""
        self.validation_count += 1
        try:
            no = self.judge(lives).rejected
        except BadTrace:
            return False
        return no is not None and rejection_kind(no) == self.kind


@attrs.frozen
class ReducedTrace:
    """The remaining lines and their number, the number of lines before, and how many validations it took."""

    lives: tuple[Life, ...]
    lines: int
    before: int
    tries: int


def rejection_kind(no: Rejection) -> tuple[str, ...]:
    """What two rejections must share to count as the same: action, reason without numbers, variables that differ."""
    why = re.sub(r"\S*\d\S*", "#", no.why)
    return (no.action, why, *sorted(no.differences))


def reduce_trace(
    lives: Sequence[Life], no: Rejection, judge: Validator, tries: int = 400, seconds: float = 60
) -> ReducedTrace:
    """Reduce a trace that is rejected; it comes back unchanged if nothing can be dropped.

    At most `tries` validations are made, and `seconds` of processor time used.
    """
    work = Reduction(judge, rejection_kind(no), tries, process_time() + seconds)
    now = tuple(lives)
    before = sum(len(life.events) for life in now)
    last = next((e for life in now if life.name == no.life for e in life.events if e.number == no.line - 1), None)
    if last is not None:
        past = {(name, n) for name, count in last.clock.items() for n in range(1, count + 1)}
        now = _without_if_rejected(work, now, [key for key in _keys(now) if key not in past])
        for group in _groups(now, last):
            now = _without_if_rejected(work, now, group)
        now = _ddmin(work, now)
    return ReducedTrace(now, sum(len(life.events) for life in now), before, work.validation_count)


def _keys(lives: Iterable[Life]) -> list[Key]:
    return [(life.name, event.number) for life in lives for event in life.events]


def _without_if_rejected(work: Reduction, lives: tuple[Life, ...], dropped_keys: Iterable[Key]) -> tuple[Life, ...]:
    """The trace without these lines if it is still rejected in the same way, else as it was."""
    dropped = with_receivers(lives, set(dropped_keys))
    if not dropped or len(dropped) == sum(len(life.events) for life in lives):
        return lives
    smaller = without_lines(lives, dropped)
    return smaller if work.same(smaller) else lives


def _groups(lives: tuple[Life, ...], last: Event) -> list[list[Key]]:
    """Groups of lines to drop at once: each life, other partitions, and requests of clients by kind."""
    events = [event for life in lives for event in life.events]
    groups = [[(e.life, e.number) for e in life.events] for life in lives if life.name != last.life]
    about = last.says.get("partition")
    groups.append([(e.life, e.number) for e in events if e.says.get("partition", about) != about])
    for kind in ("Consume", "Produce"):
        idle = [(e.life, e.number) for e in events if e.says.get("input") == kind and "action" not in e.says]
        groups += [idle, [(e.life, e.number) for e in events if e.says.get("input") == kind]]
    return groups


def _ddmin(work: Reduction, lives: tuple[Life, ...]) -> tuple[Life, ...]:
    """Drop ever smaller runs of lines, from the end, until no single line can be dropped or the tries are used up."""
    size = max(1, sum(len(life.events) for life in lives) // 2)
    while not work.over:
        keys = _keys(lives)
        shorter = False
        end = len(keys)
        while end > 0 and not work.over:
            smaller = _without_if_rejected(work, lives, keys[max(0, end - size) : end])
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


def with_receivers(lives: Iterable[Life], dropped_keys: set[Key]) -> set[Key]:
    """These lines, the lines that received their messages, and so on."""
    sent_by: dict[str, Key] = {}
    received_ids: dict[Key, str] = {}
    for life in lives:
        for event in life.events:
            key = (event.life, event.number)
            for mail in sent_messages(event.life, event.says.get("sent")):
                sent_by[mail.id] = key
            if "received" in event.says:
                received_ids[key] = str(event.says["received"])
    all_gone, more = set(dropped_keys), True
    while more:
        more = False
        for key, message in received_ids.items():
            if key not in all_gone and sent_by.get(message) in all_gone:
                all_gone.add(key)
                more = True
    return all_gone


def without_lines(lives: Iterable[Life], dropped_keys: set[Key]) -> tuple[Life, ...]:
    """The trace without these lines, numbered anew, and without lives that have no lines left."""
    kept_numbers: dict[str, list[int]] = {}
    for life in lives:
        kept_numbers[life.name] = [
            event.number for event in life.events if (event.life, event.number) not in dropped_keys
        ]
    place = {name: _counts(numbers) for name, numbers in kept_numbers.items()}
    shorter_lives: list[Life] = []
    for life in lives:
        if not kept_numbers[life.name]:
            continue
        events: list[Event] = []
        for event in life.events:
            if (event.life, event.number) in dropped_keys:
                continue
            clock = {name: place[name](count) for name, count in event.clock.items() if name in place}
            clock = {name: count for name, count in clock.items() if count}
            number = len(events) + 1
            clock[life.name] = number
            events.append(Event(life.name, number, clock, {**event.says, "n": number, "clock": dict(clock)}))
        shorter_lives.append(Life(life.name, life.header, tuple(events), False))
    return tuple(shorter_lives)


def _counts(numbers: Sequence[int]) -> Callable[[int], int]:
    return lambda count: bisect_right(numbers, count)


def validator_at(level: Level) -> Validator:
    """The validator of `insync validate`."""
    return lambda lives: validate(lives, level)


@attrs.frozen
class ReducedRun:
    """A simulated run: its configuration and seed, its trace, and where that is rejected."""

    config: Config
    seed: int
    lives: tuple[Life, ...]
    rejected: Rejection


def reduce_run(lives: tuple[Life, ...], no: Rejection, judge: Validator, tries: int = 40) -> ReducedRun | None:
    """The smallest simulated run that is rejected alike.

    None if no simulator made the trace, or if the same run is accepted by now.
    """
    origin = next((found for life in lives if (found := again(life.header)) is not None), None)
    if origin is None:
        return None
    config, seed = origin
    best = _run_rejected(config, seed, no, judge)
    while best is not None and tries > 0:
        smaller: ReducedRun | None = None
        for candidate in _smaller_configs(best.config):
            tries -= 1
            smaller = _run_rejected(candidate, seed, no, judge)
            if smaller is not None or tries <= 0:
                break
        if smaller is None:
            return best
        best = smaller
    return best


def _run_rejected(config: Config, seed: int, no: Rejection, judge: Validator) -> ReducedRun | None:
    lives = tuple(read_lives(run_with_traces(config, seed).notes))
    rejected = judge(lives).rejected
    if rejected is None or rejection_kind(rejected) != rejection_kind(no):
        return None
    return ReducedRun(config, seed, lives, rejected)


def _smaller_configs(config: Config) -> Iterator[Config]:
    """Configurations with fewer faults or less time, the smallest first."""
    if config.kinds:
        yield attrs.evolve(config, kinds=())
    if config.weather != FAIR:
        yield attrs.evolve(config, weather=FAIR)
    if config.partitions > 1:
        yield attrs.evolve(config, partitions=1)
    half = len(config.kinds) // 2
    if half:
        yield attrs.evolve(config, kinds=config.kinds[:half])
        yield attrs.evolve(config, kinds=config.kinds[half:])
    if config.safety_ms > 250:
        yield attrs.evolve(config, safety_ms=config.safety_ms // 2)
    for kind in config.kinds if half > 1 else ():
        yield attrs.evolve(config, kinds=tuple(k for k in config.kinds if k is not kind))
