"""Acknowledgements over time without sorting them in one place: counts by task, gaps by ranges of time.

All figures equal those of isr_anomalies.times, to the number. That takes two passes for percentiles: the first counts
latencies roughly, the second counts those near a percentile exactly.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import attrs
import numpy as np
import pyarrow as pa

from isr_anomalies import Claims
from isr_anomalies.operations import NEVER, Fault
from isr_anomalies.results import Tally
from isr_anomalies.times import SECOND, WINDOWS, Availability, Window, silence_around, too_long, windows_to_progress
from isr_pipeline.histories.rows import (
    DDL,
    Numbers,
    Row,
    collect_rows,
    each,
    numbers,
    part_numbers,
    read_columns,
    table,
)
from isr_pipeline.locations import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_batch = cast("Callable[..., pa.RecordBatch]", pa.RecordBatch.from_arrays)  # pyright: ignore[reportUnknownMemberType]

BITS: Final = 12
"""The first pass counts latencies that have so many leading bits in common as one."""
_COLUMNS: Final = ("f", "outcome", "error", "invoked", "completed", "invoked_at", "completed_at")


class Bucket(NamedTuple):
    """A file of operations."""

    history: int
    file: Location


@attrs.frozen
class AvailabilityQuestion:
    """What to count of a history: around each fault, in each window in which progress is promised."""

    faults: tuple[Fault, ...]
    windows: tuple[tuple[Fault, int], ...]


class Sends(NamedTuple):
    """The sends of a file, as columns."""

    outcome: Numbers
    """The outcome, as text."""
    error: Numbers
    invoked: Numbers
    completed: Numbers
    invoked_at: Numbers
    completed_at: Numbers

    @property
    def ok(self) -> Numbers:
        return cast("Numbers", self.outcome == "ok")


@attrs.define
class Figures:
    """The figures of a file of operations; those of several files can be added."""

    acked: int = 0
    errors: dict[str, tuple[int, int]] = attrs.field(factory=dict[str, tuple[int, int]])
    """For each error: how many sends had it, and the line of the first."""
    begin: int = NEVER
    first: tuple[int, int] = (NEVER, 0)
    """Line and time of the first send."""
    last: tuple[int, int] = (-1, -1)
    """Time and negated line of the latest send; negated, because of several at that time the first line counts."""
    latencies: Counter[int] = attrs.field(factory=Counter[int])
    near: list[tuple[list[int], list[int], list[int]]] = attrs.field(
        factory=list[tuple[list[int], list[int], list[int]]]
    )
    """For each fault the times of acknowledgements near it: the last two up to it, the first two after it, and the
    first that is not before it."""
    progress: list[tuple[int, int]] = attrs.field(factory=list[tuple[int, int]])
    """For each window: sends invoked, sends acknowledged."""

    def add(self, other: Figures) -> None:
        self.acked += other.acked
        for word, (many, line) in other.errors.items():
            had, first = self.errors.get(word, (0, NEVER))
            self.errors[word] = (had + many, min(first, line))
        self.begin, self.first, self.last = (
            min(self.begin, other.begin),
            min(self.first, other.first),
            max(self.last, other.last),
        )
        self.latencies.update(other.latencies)
        if not self.near:
            self.near, self.progress = other.near, other.progress
            return
        self.near = [
            (sorted({*a[0], *b[0]})[-2:], sorted({*a[1], *b[1]})[:2], sorted({*a[2], *b[2]})[:1])
            for a, b in zip(self.near, other.near, strict=True)
        ]
        both = zip(self.progress, other.progress, strict=True)
        self.progress = [(a + c, b + d) for (a, b), (c, d) in both]


def sends_of(file: Location) -> Sends:
    at = read_columns(file, _COLUMNS)
    chosen = (at["f"] == "produce") | (at["f"] == "txn")
    return Sends(*(cast("Numbers", at[name])[chosen] for name in _COLUMNS[1:]))


def leading(values: Numbers) -> Numbers:
    """A key for each value: its leading bits, and how many bits follow them. Keys have the order of the values."""
    shift = np.maximum(0, np.frexp(values.astype(np.float64))[1].astype(np.int64) - BITS)
    return (shift << BITS) | (values >> shift)


@attrs.frozen
class Measure:
    """The first pass over a file of operations: figures, and latencies by leading bits."""

    questions: dict[int, AvailabilityQuestion]

    def __call__(self, bucket: Bucket) -> Iterator[Row]:
        sends, question = sends_of(bucket.file), self.questions[bucket.history]
        acks = np.sort(sends.completed_at[sends.ok])
        took = (sends.completed_at - sends.invoked_at)[sends.ok]
        figures = Figures(acked=len(acks))
        for outcome, error, line in zip(
            *(column[~sends.ok].tolist() for column in (sends.outcome, sends.error, sends.invoked)), strict=True
        ):
            word = str(error or outcome)
            many, first = figures.errors.get(word, (0, NEVER))
            figures.errors[word] = (many + 1, min(first, line))
        if len(sends.invoked):
            figures.begin = int(sends.invoked_at.min())
            figures.first = (int(sends.invoked[0]), int(sends.invoked_at[0]))
            latest = int(sends.invoked_at.argmax())
            figures.last = (int(sends.invoked_at[latest]), -int(sends.invoked[latest]))
        figures.latencies = _value_counts(leading(took))
        marks = np.unique(acks)
        for fault in question.faults:
            after = int(np.searchsorted(marks, fault.time, side="right"))
            since = int(np.searchsorted(marks, fault.time))
            near = marks[max(0, after - 2) : after], marks[after : after + 2], marks[since : since + 1]
            figures.near.append((near[0].tolist(), near[1].tolist(), near[2].tolist()))
        for fault, until in question.windows:
            figures.progress.append(tuple(_within(t, fault.time, until) for t in (sends.invoked_at, acks)))  # type: ignore[arg-type]
        yield Row(bucket.history, "", pickle.dumps(figures))


def _within(times: Numbers, begin: int, end: int) -> int:
    return int(((times >= begin) & (times <= end)).sum())


def _value_counts(values: Numbers) -> Counter[int]:
    found, many = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), many.tolist(), strict=True)))


@attrs.frozen
class Details:
    """What the second pass needs from the first: the width of windows, and which latencies to count exactly."""

    begin: int
    width: int
    exact_keys: tuple[int, ...]


@attrs.frozen
class Detail:
    """The second pass: exact counts of the latencies around the percentiles, and completions by window."""

    of: dict[int, Details]

    def __call__(self, bucket: Bucket) -> Iterator[Row]:
        sends, details = sends_of(bucket.file), self.of[bucket.history]
        took = (sends.completed_at - sends.invoked_at)[sends.ok]
        exact = _value_counts(took[np.isin(leading(took), details.exact_keys)])
        ended = sends.completed_at != NEVER
        at = (sends.completed_at[ended] - details.begin) // details.width
        windows = Counter(zip(sends.outcome[ended].tolist(), at.tolist(), strict=True))
        yield Row(bucket.history, "", pickle.dumps((exact, windows)))


def key_at_rank(counts: Counter[int], rank: int) -> tuple[int, int]:
    """The key at a place in the sorted list of all keys, and the place among the keys equal to it."""
    values = sorted(counts)
    ends = list(accumulate(counts[value] for value in values))
    at = bisect_left(ends, rank + 1)
    return values[at], rank - (ends[at - 1] if at else 0)


class Gaps(NamedTuple):
    """A range of time: its first and last mark (time, line), the longest gap inside, and the gaps that are too long."""

    first: tuple[int, int]
    last: tuple[int, int]
    longest: int
    tally: Tally


Marks = list[tuple[int, int]]


MARKS = "history int, time long, line long, only_limit int"
"""What `Between` takes: a mark, and 1 if it is for LIMIT only."""


@attrs.frozen
class Acks:
    """A task: the acknowledgements of files of operations as marks."""

    buckets: tuple[Bucket, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in cast("list[int]", numbers(batch, 1)[0].tolist()):
                bucket = self.buckets[number]
                sends = sends_of(bucket.file)
                times, lines = sends.completed_at[sends.ok], sends.completed[sends.ok]
                whose, all_ = np.full(len(times), bucket.history, np.int32), np.zeros(len(times), np.int32)
                arrays = [pa.array(column) for column in (whose, times, lines, all_)]
                yield _batch(arrays, names=["history", "time", "line", "only_limit"])


FIGURE, LIMIT = "figure", "limit"
"""Two computations of gaps: for the longest gap, and for gaps over the limit, which also count from the first send."""


@attrs.frozen
class Between:
    """A task: the gaps of each history in a range of time. `limits`: nanoseconds, None for no limit.

    Its rows are MARKS, in order.
    """

    limits: dict[int, int | None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gaps_by_key: dict[tuple[int, str], Gaps] = {}
        for batch in batches:
            histories, times, lines, tags = numbers(batch, 4)
            for history in np.unique(histories).tolist():
                limit = self.limits[history]
                mine = histories == history
                chosen = [(FIGURE, mine & (tags == 0), None)] + ([(LIMIT, mine, limit)] if limit is not None else [])
                for key, rows, most in chosen:
                    if rows.any():
                        new = gaps(times[rows], lines[rows], most)
                        before = gaps_by_key.get((history, key))
                        gaps_by_key[history, key] = join_gaps([before, new], most) if before else new
        for (history, key), one in gaps_by_key.items():
            yield from table([Row(history, key, pickle.dumps(one))]).to_batches()


def gaps(times: Numbers, lines: Numbers, limit: int | None) -> Gaps:
    """The gaps between marks, of which there is at least one; they are in order of time."""
    steps = np.diff(times)
    tally = Tally()
    for n in np.flatnonzero(steps > limit).tolist() if limit is not None else ():
        marks = [(int(times[m]), int(lines[m])) for m in (n, n + 1)]
        for finding in too_long(marks, limit or 0):
            tally.add(finding)
    ends = [(int(times[n]), int(lines[n])) for n in (0, -1)]
    return Gaps(ends[0], ends[1], int(steps.max(initial=0)), tally)


def join_gaps(parts: Sequence[Gaps], limit: int | None) -> Gaps:
    """The gaps of consecutive ranges together, with those between one range and the next."""
    tally, longest = Tally(), max(part.longest for part in parts)
    for part in parts:
        tally.merge(part.tally)
    for one, two in pairwise(parts):
        longest = max(longest, two.first[0] - one.last[0])
        for finding in too_long([one.last, two.first], limit) if limit is not None else ():
            tally.add(finding)
    return Gaps(parts[0].first, parts[-1].last, longest, tally)


class AvailabilityAnswer(NamedTuple):
    """The timing of a history: the figures, the gaps that are too long, and the windows of progress."""

    figures: Availability
    too_long: Tally
    progress: list[tuple[Fault, int, int]]


class JudgementBasis(NamedTuple):
    """What the timing of a history is judged by."""

    claims: Claims
    faults: list[Fault]
    ends_at: int


def availability(
    spark: SparkSession, buckets: list[Bucket], of: dict[int, JudgementBasis]
) -> dict[int, AvailabilityAnswer]:
    """The figures of every history, from the files of its operations."""
    questions = {
        h: AvailabilityQuestion(tuple(g.faults), tuple(windows_to_progress(g.faults, g.ends_at, g.claims)))
        for h, g in of.items()
    }
    totals = {history: Figures() for history in of}
    for row in collect_rows(each(spark, Measure(questions), buckets)):
        totals[row.history].add(cast("Figures", pickle.loads(row.payload)))
    details = {history: _details(totals[history], of[history]) for history in of}
    exact = {history: (Counter[int](), Counter[tuple[str, int]]()) for history in of}
    for row in collect_rows(each(spark, Detail(details), buckets)):
        latencies, windows = cast("tuple[Counter[int], Counter[tuple[str, int]]]", pickle.loads(row.payload))
        exact[row.history][0].update(latencies)
        exact[row.history][1].update(windows)
    between = _gaps(spark, buckets, totals, {history: given.claims.max_unavailable for history, given in of.items()})
    answers: dict[int, AvailabilityAnswer] = {}
    for history, terms in of.items():
        total, found = totals[history], between.get((history, FIGURE))
        longest = 0
        if found is not None:
            longest = max(found.longest, found.first[0] - total.begin)
        limit = between.get((history, LIMIT))
        progress = [(fault, *many) for (fault, _), many in zip(questions[history].windows, total.progress, strict=True)]
        figures = _figures(total, terms, details[history].width, *exact[history], longest)
        answers[history] = AvailabilityAnswer(figures, limit.tally if limit else Tally(), progress)
    return answers


def _details(total: Figures, terms: JudgementBasis) -> Details:
    begin = total.begin if total.begin != NEVER else 0
    wanted = (
        {key_at_rank(total.latencies, total.acked * per // 100)[0] for per in (50, 99)} if total.acked else set[int]()
    )
    return Details(begin, max(SECOND, (terms.ends_at - begin) // WINDOWS), tuple(wanted))


def _figures(
    total: Figures, terms: JudgementBasis, width: int, exact: Counter[int], ends: Counter[tuple[str, int]], longest: int
) -> Availability:
    sends = total.begin != NEVER
    begin = total.begin if sends else 0
    count = range((terms.ends_at - begin) // width + 1) if sends else range(0)
    windows = (Window(begin + n * width, ends["ok", n], ends["fail", n], ends["info", n]) for n in count)
    p50, p99 = (_percentile(total.latencies, exact, total.acked * per // 100) for per in (50, 99))
    around: list[tuple[int, str, int]] = []
    first: list[tuple[int, str, int | None]] = []
    marks = [begin, total.last[0]] if sends else []
    for fault, (up_to, after, since) in zip(terms.faults, total.near, strict=True):
        points = sorted({*up_to, *after, *marks})
        # the first and the last send are marks, too, so keep only the marks next to the fault
        at = sum(point <= fault.time for point in points)
        silences = list(pairwise(points[max(0, at - 2) : at + 2]))
        if not fault.heals:
            around.append((fault.line, fault.what, silence_around(fault, silences)))
        first.append((fault.line, fault.what, since[0] - fault.time if since else None))
    errors = {word: many for word, (many, _) in sorted(total.errors.items(), key=lambda item: item[1][1])}
    return Availability(total.acked, errors, p50, p99, longest, tuple(around), tuple(first), width, tuple(windows))


def _percentile(coarse: Counter[int], exact: Counter[int], rank: int) -> int:
    """The latency at a place in the sorted list: `coarse` says which key it has, `exact` counts that key's values."""
    if not coarse:
        return 0
    leads, within = key_at_rank(coarse, rank)
    values = np.array(sorted(exact), dtype=np.int64)
    mine = Counter({int(value): exact[int(value)] for value in values[leading(values) == leads]})
    return key_at_rank(mine, within)[0]


def _gaps(
    spark: SparkSession, buckets: list[Bucket], totals: dict[int, Figures], limits: dict[int, int | None]
) -> dict[tuple[int, str], Gaps]:
    """The gaps between acknowledgements; the last send is a mark, too, and for LIMIT also the first send."""
    marks = [(h, t.last[0], -t.last[1], 0) for h, t in totals.items() if t.begin != NEVER]
    marks += [(h, t.first[1], t.first[0], 1) for h, t in totals.items() if t.begin != NEVER]
    if not marks:
        return {}
    rows = part_numbers(spark, len(buckets)).mapInArrow(Acks(tuple(buckets)), MARKS)
    rows = rows.union(spark.createDataFrame(marks, MARKS))
    spread = rows.repartitionByRange("history", "time").sortWithinPartitions("history", "time", "line")
    parts: dict[tuple[int, str], list[Gaps]] = {}
    for row in collect_rows(spread.mapInArrow(Between(limits), DDL)):
        parts.setdefault((row.history, row.key), []).append(cast("Gaps", pickle.loads(row.payload)))
    return {
        (history, key): join_gaps(sorted(found, key=lambda one: one.first), limits[history] if key == LIMIT else None)
        for (history, key), found in parts.items()
    }
