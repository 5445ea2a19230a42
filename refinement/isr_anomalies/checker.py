"""The checker: from a history to a verdict on each anomaly.

Partitions are checked one by one, and their results merged. `check_partition` needs nothing but its partition, and
results can be merged in any order, so partitions can be checked anywhere. Cycles, progress and availability need the
whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

import attrs

from isr_anomalies import times, values
from isr_anomalies.catalogue import ANOMALIES, Anomaly
from isr_anomalies.cycles import Order, all_edges, order_of
from isr_anomalies.history import History, Partition
from isr_anomalies.operations import Claims, Value
from isr_anomalies.results import Counts, Judgement, NoVerdict, Part, Tally, Verdict
from isr_anomalies.times import SECOND, Availability
from isr_anomalies.view import View


@attrs.frozen
class PartitionResult:
    """The result of one partition. `lag` is the worst lag, and the last with its time, in nanoseconds."""

    parts: dict[str, Part]
    counts: Counts
    order: Order
    lag: tuple[int, int, int] | None


@attrs.frozen
class Answer:
    """The verdicts on one history, in the order of the catalogue."""

    judgements: tuple[Judgement, ...]
    counts: Counts
    fates: dict[str, int]
    """How many values were lost, unseen, duplicate, reordered, or read and then lost."""
    lag: tuple[int, int] | None
    """The worst lag and the last, in nanoseconds."""
    availability: Availability
    operations: int
    partitions: int

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if any anomaly is, else UNKNOWN if any is; VACUOUS if all are that can be VIOLATED, or none can."""
        words = {judgement.verdict for judgement in self.judgements}
        if {judgement.verdict for judgement in self.judgements if judgement.can_fail} <= {Verdict.VACUOUS}:
            return Verdict.VACUOUS
        for word in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.PERMITTED):
            if word in words:
                return word
        return Verdict.HOLDS


def check_partition(
    partition: Partition,
    claims: Claims,
    anomalies: Iterable[Anomaly] = ANOMALIES,
    report_progress: Callable[[], None] = lambda: None,
) -> PartitionResult:
    """Check one partition for the wanted anomalies; `report_progress` is called after each of them."""
    view = View(partition, claims)
    parts: dict[str, Part] = {}
    for anomaly in anomalies:
        if anomaly.find is not None:
            part = parts[anomaly.name] = Part(missing=anomaly.missing(view) if anomaly.missing else None)
            for finding in anomaly.find(view):
                part.tally.add(finding)
        report_progress()
    lags = list(times.lags(view))
    lag = None if not lags else (max(lag for _, lag, _ in lags), *max((at, lag) for at, lag, _ in lags))
    return PartitionResult(parts, values.counts(view), order_of(view), lag)


def lost_values(history: History) -> frozenset[Value]:
    """The values of all partitions that were acknowledged or read, and are gone: those that lost-write counts."""
    views = (View(partition, history.claims) for partition in history.partitions.values())
    return frozenset(gone.send.value for view in views for gone in view.losses)


def merge(anomaly: Anomaly, parts: Iterable[Part]) -> Part:
    """The results of one anomaly merged: unknown if any partition is, vacuous only if all are."""
    tally = Tally()
    reasons: list[NoVerdict | None] = []
    for part in parts:
        tally.merge(part.tally)
        reasons.append(part.missing)
    unknown = [reason for reason in reasons if reason is not None and not reason.vacuous]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if unknown[1:] else ""
        return Part(tally, NoVerdict(False, min(reason.why for reason in unknown) + more))
    vacuous = [reason for reason in reasons if reason is not None]
    if len(vacuous) == len(reasons):
        return Part(tally, min(vacuous) if vacuous else NoVerdict(True, "no partition at all"))
    return Part(tally)


def check(
    history: History,
    anomalies: tuple[Anomaly, ...] = ANOMALIES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Answer:
    """Check a history, with its own claims, for the wanted anomalies.

    `progress`: told how many questions are answered, and of how many: each anomaly of each partition, and of the whole.
    """
    claims = history.claims
    total = len(anomalies) * (len(history.partitions) + 1)
    answered = count(1)

    def report_progress() -> None:
        progress(next(answered), total)

    results = [
        check_partition(history.partitions[name], claims, anomalies, report_progress)
        for name in sorted(history.partitions)
    ]
    orders = (result.order for result in results) if needs_graphs(anomalies) else iter(())
    graphs = all_edges(history, orders)
    parts: dict[str, Part] = {}
    for anomaly in anomalies:
        if anomaly.across is not None:
            part = parts[anomaly.name] = Part(
                missing=anomaly.missing_across(history) if anomaly.missing_across else None
            )
            for finding in anomaly.across(history, graphs, claims):
                part.tally.add(finding)
        report_progress()
    return conclude(anomalies, claims, results, parts, times.availability(history), len(history.operations))


def needs_graphs(anomalies: Iterable[Anomaly]) -> bool:
    """Whether any of these is a cycle."""
    return any(anomaly.across is not None and anomaly.number < 28 for anomaly in anomalies)


def conclude(
    anomalies: tuple[Anomaly, ...],
    claims: Claims,
    results: list[PartitionResult],
    across: dict[str, Part],
    figures: Availability,
    operations: int,
) -> Answer:
    """The verdicts, from the results of the partitions and those of the whole history (`across`)."""
    lags = [result.lag for result in results if result.lag is not None]
    lag = (max(worst for worst, _, _ in lags), max((at, last) for _, at, last in lags)[1]) if lags else None
    judgements: list[Judgement] = []
    for anomaly in anomalies:
        if anomaly.across is None:
            part = merge(anomaly, (result.parts[anomaly.name] for result in results))
        else:
            part = across[anomaly.name]
        part.figure = _figure(anomaly, lag, figures)
        judgements.append(_judgement(anomaly, part, claims))
    counts = Counts()
    for result in results:
        counts.merge(result.counts)
    found = {judgement.name: judgement.finding_count for judgement in judgements}
    named = ("lost-write", "unseen", "duplicate", "nonmonotonic-send", "read-then-lost")
    fates = {name: found[name] for name in named if name in found}
    return Answer(tuple(judgements), counts, fates, lag, figures, operations, len(results))


def _figure(anomaly: Anomaly, lag: tuple[int, int] | None, figures: Availability) -> str:
    if anomaly.name == "realtime-lag" and lag is not None:
        return f"worst {times.seconds(lag[0])}, last {times.seconds(lag[1])}"
    if anomaly.name == "unavailability":
        took = f"p50 {figures.p50 / SECOND * 1000:.1f} ms, p99 {figures.p99 / SECOND * 1000:.1f} ms"
        return f"longest without an acknowledgement {times.seconds(figures.longest)}; {took}"
    return ""


def _judgement(anomaly: Anomaly, part: Part, claims: Claims) -> Judgement:
    tally, missing = part.tally, part.missing
    limits = {"realtime-lag": claims.max_lag, "unavailability": claims.max_unavailable}
    if tally.forbidden:
        verdict = Verdict.VIOLATED
    elif missing is not None and not missing.vacuous:
        verdict = Verdict.UNKNOWN
    elif tally.finding_count:
        verdict = Verdict.PERMITTED
    elif missing is not None:
        verdict = Verdict.VACUOUS
    elif anomaly.severity == "figure" and limits[anomaly.name] is None:
        verdict = Verdict.MEASURED
    else:
        verdict = Verdict.HOLDS
    why = missing.why if missing is not None else part.figure
    return Judgement(
        anomaly.number,
        anomaly.name,
        verdict,
        tally.finding_count,
        tally.forbidden,
        tally.largest,
        why,
        tuple(tally.least),
        anomaly.severity == "error" or limits.get(anomaly.name) is not None,
    )
