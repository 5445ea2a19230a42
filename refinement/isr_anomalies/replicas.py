"""What the replicas themselves say: anomalies of dumps and node logs, each a function of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from isr_anomalies.operations import NEVER, NO_EPOCH, Dump, HeldRecord, Value
from isr_anomalies.results import Finding
from isr_anomalies.view import View


def last_dumps(view: View) -> list[Dump]:
    """The last dump of each replica."""
    return list({dump.replica: dump for dump in view.partition.dumps}.values())


def ack_then_gone(view: View) -> Iterator[Finding]:
    """23: where each lost or unseen value is: on no replica, on a few, or on the leader, which does not serve it."""
    dumps = last_dumps(view)
    values = {dump.replica: {value for _, value, _ in dump.records} for dump in dumps}
    lost = {gone.send.value: gone.send for gone in view.losses} | {send.value: send for send in view.unseen_sends}
    for send in lost.values() if dumps else ():
        holders = [dump for dump in dumps if send.value in values[dump.replica]]
        if not holders:
            where = "on no replica: gone"
        elif any(dump.leader for dump in holders):
            where = "on the leader: undelivered, not gone"
        else:
            few = "a minority" if 2 * len(holders) < len(dumps) else "a majority, but not the leader"
            where = f"only on {', '.join(dump.replica for dump in holders)}, {few}"
        lines = ((send.completed if send.completed != NEVER else send.invoked), *(dump.line for dump in dumps))
        permitted = send.acks != "all" or view.claims.unclean
        yield Finding(permitted, lines, view.name, f"value {send.value!r} is {where}", len(dumps) - len(holders))


def replica_divergence(view: View) -> Iterator[Finding]:
    """24: two replicas in sync differ below both high watermarks, in records or in their epoch caches."""
    dumps = [dump for dump in last_dumps(view) if dump.in_sync]
    below = min((dump.high_watermark for dump in dumps), default=0)
    for one, two in combinations(dumps, 2):
        logs = [{offset: (value, epoch) for offset, value, epoch in dump.records} for dump in (one, two)]
        begin = max(min(log, default=0) for log in logs)
        differ = [o for o in sorted({*logs[0], *logs[1]}) if begin <= o < below and logs[0].get(o) != logs[1].get(o)]
        caches = [[row for row in dump.epochs if row[1] < below] for dump in (one, two)]
        if differ or caches[0] != caches[1]:
            what = f"at offset {differ[0]}" if differ else "in their epoch caches"
            says = f"{one.replica} and {two.replica} differ {what}, below the high watermark {below}"
            yield Finding(False, (one.line, two.line), view.name, says, len(differ) or 1)


def acks_contract(view: View) -> Iterator[Finding]:
    """27: acknowledged with acks=all while fewer than min.insync.replicas nodes held it."""
    need = view.claims.min_insync
    if need is None or not view.partition.log_reports:
        return
    acked = sorted((s for s in view.sends if s.outcome == "ok" and s.acks == "all"), key=lambda s: s.completed)
    reports = iter(sorted(view.partition.log_reports, key=lambda held: held.line))
    report = next(reports, None)
    logs: dict[str, list[HeldRecord]] = {}
    holders: dict[Value, set[str]] = {}
    for send in acked:
        while report is not None and report.line < send.completed:
            _hold(report, logs.setdefault(report.node, []), holders)
            report = next(reports, None)
        having = holders.get(send.value, set[str]())
        if len(having) < need:
            on = ", ".join(sorted(having)) or "nobody"
            says = f"value {send.value!r} was acknowledged when {on} had it, and min.insync.replicas is {need}"
            yield Finding(False, (send.completed,), view.name, says, need - len(having))


def _hold(report: HeldRecord, log: list[HeldRecord], holders: dict[Value, set[str]]) -> None:
    """Apply a report, an append or a truncation, to a node's log; both remove what was at this offset or later."""
    while log and log[-1].offset >= report.offset:
        holders[log.pop().value].discard(report.node)
    if not report.truncates:
        log.append(report)
        holders.setdefault(report.value, set()).add(report.node)


def has_epochs(view: View) -> bool:
    """Whether any poll said the leader epoch of a record."""
    return any(batch.records and batch.records[0][2] != NO_EPOCH for batch in view.batches)
