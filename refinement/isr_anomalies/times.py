"""Lag, progress and availability: how long things took. Times are nanoseconds of the history's own clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import attrs

from isr_anomalies.history import WHOLE, History
from isr_anomalies.operations import NEVER, Claims, Fault
from isr_anomalies.results import Finding, NoVerdict
from isr_anomalies.view import View

SECOND: Final = 1_000_000_000
WINDOWS: Final = 600
"""The most windows of a history; longer histories have longer windows."""


def seconds(ns: int) -> str:
    """Nanoseconds for people."""
    return f"{ns / SECOND:.3f} s"


def lags(view: View) -> Iterator[tuple[int, int, int]]:
    """For each poll that names this partition: its begin, its least lag, and its line.

    A poll that ends at an offset lags by the time since a larger one was known to exist.
    """
    position: dict[tuple[str, int], int] = {}
    for batch in view.batches:
        if batch.outcome != "ok" or batch.stint == WHOLE:
            continue
        key = (batch.process, batch.stint)
        end = batch.records[-1][0] if batch.records else position.get(key)
        if end is not None:
            position[key] = end
            since = view.known_at.since(end + 1)
            yield batch.invoked_at, max(0, batch.invoked_at - since), batch.completed


def realtime_lag(view: View) -> Iterator[Finding]:
    """18: a poll was further behind than the limit; without a limit this is a figure only."""
    limit = view.claims.max_lag
    for _, lag, line in lags(view) if limit is not None else ():
        if limit is not None and lag > limit:
            yield Finding(False, (line,), view.name, f"a poll was {seconds(lag)} behind", lag)


@attrs.frozen
class Window:
    """The outcomes of sends in a window of time."""

    begin: int
    acked: int
    failed: int
    unknown: int


@attrs.frozen
class Availability:
    """The availability figures of one history, in nanoseconds."""

    acked: int
    errors: dict[str, int]
    p50: int
    p99: int
    longest: int
    around: tuple[tuple[int, str, int], ...]
    """For each fault: its line, its name, and the longest time without an acknowledgement around it."""
    first_ack: tuple[tuple[int, str, int | None], ...]
    """For each fault and healing: its line, its name, and the time until the next acknowledgement."""
    width: int
    windows: tuple[Window, ...]


def availability(history: History) -> Availability:
    """29: acknowledgements, errors and latencies, and the stretches without any acknowledgement."""
    sends = [op for op in history.operations if op.f in ("produce", "txn")]
    acks = sorted(op.completed_at for op in sends if op.outcome == "ok")
    took = sorted(op.completed_at - op.invoked_at for op in sends if op.outcome == "ok")
    errors = Counter(op.extra.error or op.outcome for op in sends if op.outcome != "ok")
    begin = min((op.invoked_at for op in sends), default=0)
    asked = [begin, *acks, max((op.invoked_at for op in sends), default=begin)]
    silences = [(one, two) for one, two in pairwise(sorted(asked)) if two > one]
    faults = [fault for fault in history.faults if not fault.heals]
    around = tuple((f.line, f.what, silence_around(f, silences)) for f in faults)
    first = tuple((f.line, f.what, _until(f.time, acks)) for f in history.faults)
    width = max(SECOND, (history.ends_at - begin) // WINDOWS)
    ends = Counter(
        (op.outcome, (op.completed_at - begin) // width) for op in sends if op.completed_at != NEVER
    )  # what never ended is in no window
    numbers = range((history.ends_at - begin) // width + 1) if sends else range(0)
    windows = (Window(begin + n * width, ends["ok", n], ends["fail", n], ends["info", n]) for n in numbers)
    p50, p99 = (took[len(took) * per // 100] if took else 0 for per in (50, 99))
    longest = max((two - one for one, two in silences), default=0)
    return Availability(len(acks), dict(errors), p50, p99, longest, around, first, width, tuple(windows))


def silence_around(fault: Fault, silences: list[tuple[int, int]]) -> int:
    """The longer of two silences: the one in which the fault happened, and the next."""
    at = bisect_right(silences, (fault.time, NEVER))
    return max((two - one for one, two in silences[max(0, at - 1) : at + 1]), default=0)


def _until(time: int, acks: list[int]) -> int | None:
    at = bisect_left(acks, time)
    return acks[at] - time if at < len(acks) else None


def unavailable(history: History, claims: Claims) -> Iterator[Finding]:
    """29: no acknowledgement for longer than the limit; without a limit this is a figure only."""
    if claims.max_unavailable is None:
        return
    sends = [op for op in history.operations if op.f in ("produce", "txn")]
    acks = sorted((op.completed_at, op.completed) for op in sends if op.outcome == "ok")
    if sends:
        first, last = sends[0], max(sends, key=lambda op: op.invoked_at)
        marks = sorted([(first.invoked_at, first.invoked), *acks, (last.invoked_at, last.invoked)])
        yield from too_long(marks, claims.max_unavailable)


def too_long(marks: Iterable[tuple[int, int]], limit: int) -> Iterator[Finding]:
    """A finding for each two neighbouring marks (a time and its line) that are farther apart than the limit."""
    for (one, line), (two, other) in pairwise(marks):
        if two - one > limit:
            yield Finding(False, (line, other), "", f"no acknowledgement for {seconds(two - one)}", two - one)


def windows_to_progress(faults: list[Fault], ends_at: int, claims: Claims) -> list[tuple[Fault, int]]:
    """The windows in which progress is promised: after each healing, and each fault that leaves enough alive.

    A window counts only if it ends before the next fault and before the end of the history.
    """
    ends = [fault.time for fault in faults[1:]] + [ends_at]
    windows = [(f, f.time + claims.progress_within, end) for f, end in zip(faults, ends, strict=False)]
    return [(f, until) for f, until, end in windows if (f.heals or f.survivable) and until <= end]


Progress = list[tuple[Fault, int, int]]
"""For each window: the fault before it, the sends that were invoked in it, and those that were acknowledged."""


def _progress(history: History, claims: Claims) -> Progress:
    sends = [op for op in history.operations if op.f in ("produce", "txn")]
    acks = sorted(op.completed_at for op in sends if op.outcome == "ok" and op.completed_at != NEVER)
    asked = sorted(op.invoked_at for op in sends)
    windows = windows_to_progress(history.faults, history.ends_at, claims)
    return [(f, _within(asked, f.time, until), _within(acks, f.time, until)) for f, until in windows]


def progress(history: History, claims: Claims) -> Iterator[Finding]:
    """28: too few acknowledgements in time after a healing, although clients asked for them."""
    yield from too_little(_progress(history, claims), claims)


def too_little(windows: Progress, claims: Claims) -> Iterator[Finding]:
    """A finding for each window in which clients sent something and too few sends were acknowledged."""
    for fault, asked, got in windows:
        if asked and got < claims.progress_acks:
            says = f"{got} acknowledged within {seconds(claims.progress_within)} of {fault.what}"
            yield Finding(False, (fault.line,), "", says, claims.progress_acks - got)


def progress_undecided(history: History, claims: Claims) -> NoVerdict | None:
    """No verdict if there are no faults, or if no window is long enough and has sends in it."""
    return no_verdict_on_progress(history.faults, _progress(history, claims), claims)


def no_verdict_on_progress(faults: list[Fault], windows: Progress, claims: Claims) -> NoVerdict | None:
    """The same as `progress_undecided`, for windows that were counted already."""
    if not faults:
        return NoVerdict(True, "no faults in this history")
    if any(asked for _, asked, _ in windows):
        return None
    return NoVerdict(False, f"no {seconds(claims.progress_within)} after a healing in which clients sent anything")


def _within(times: list[int], begin: int, end: int) -> int:
    return bisect_right(times, end) - bisect_left(times, begin)
