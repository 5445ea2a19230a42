"""The evidence that an anomaly needs: without it there is no verdict on the anomaly.

Either the history has nothing that the anomaly speaks of (vacuous), or it does not say enough to exclude it (unknown).
Each function looks at the view of one partition, or at the whole history. It returns the reason why there is no
verdict, or None if the evidence is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isr_anomalies import cycles, replicas, values
from isr_anomalies.history import WHOLE, History
from isr_anomalies.results import NoVerdict
from isr_anomalies.view import View


def _vacuous(why: str, when: Callable[[View], bool]) -> Callable[[View], NoVerdict | None]:
    return lambda view: None if when(view) else NoVerdict(True, why)


def why_no_loss_verdict(view: View) -> NoVerdict | None:
    """Needs a complete read that began after everything was acknowledged, and below all of it."""
    return _no_scan(view) or _below_scans(view, len(view.values_below_scans))


def whether_unseen(view: View) -> NoVerdict | None:
    """The same, but for values that somebody read."""
    unread = [send for send in view.values_below_scans if send.value not in view.polled]
    return _no_scan(view) or _below_scans(view, len(unread))


def _below_scans(view: View, count: int) -> NoVerdict | None:
    if not count:
        return None
    many = f"{count} values of {view.name} are" if count > 1 else f"a value of {view.name} is"
    return NoVerdict(
        False,
        f"{many} below the start of its complete reads, or at an offset that nobody was told: none had to return it",
    )


def _no_scan(view: View) -> NoVerdict | None:
    if not any(send.committed for send in view.sends):
        return NoVerdict(True, "nothing was acknowledged")
    if not view.scans:
        return NoVerdict(False, f"no complete final read of {view.name}")
    if view.unchecked_values:
        many = (
            f"{view.unchecked_values} values of {view.name}" if view.unchecked_values > 1 else f"a value of {view.name}"
        )
        return NoVerdict(False, f"{many} acknowledged after its last complete read began, and read by nobody")
    return None


def no_later_scan(view: View) -> NoVerdict | None:
    """Needs a complete read that began after other reads, and went as far as they did."""
    if not view.polled:
        return NoVerdict(True, "nothing was read")
    last = view.last_scan
    if last is None:
        return NoVerdict(False, f"no complete final read of {view.name}")
    if view.read_beyond:
        return NoVerdict(False, f"no complete read of {view.name} went as far as others had read")
    if view.reads_below_scans:
        many = f"{view.reads_below_scans} offsets" if view.reads_below_scans > 1 else "an offset"
        return NoVerdict(False, f"no complete read of {view.name} looked again at {many} below its start")
    early = [batch for batch in view.batches if batch.records and batch.completed < last.invoked]
    if any(view.later_scan(max(record[0] for record in batch.records), batch.completed) for batch in early):
        return None
    return NoVerdict(True, "nothing was read before the last complete read that it looked at")


def gaps(view: View) -> NoVerdict | None:
    """Needs a complete read that lists control records, if there may be any."""
    if not any(scan.start < scan.end for scan in view.scans):
        if view.at and not view.scans:
            return NoVerdict(False, f"no complete final read of {view.name}")
        return NoVerdict(True, "no complete read looked at any offset" if view.at else "nothing is there")
    why = f"gaps of {view.name} may be control records: its final read does not list them"
    return NoVerdict(False, why) if values.gaps_unexplained(view) else None


def where_it_is(view: View) -> NoVerdict | None:
    """Needs the logs of replicas, and a complete read that shows whether values are gone."""
    if not view.partition.dumps:
        why = f"values of {view.name} are gone, and no replica's log is here"
        return (
            NoVerdict(False, why)
            if view.losses or view.unseen_sends
            else NoVerdict(True, "no replica's log in this history")
        )
    missing = why_no_loss_verdict(view)
    return NoVerdict(missing.vacuous, f"whether anything is gone: {missing.why}") if missing else None


def contract(view: View) -> NoVerdict | None:
    """Needs the appends of nodes, and min.insync.replicas."""
    if not view.partition.log_reports:
        return NoVerdict(True, "no node's own log of appends in this history")
    if not any(send.outcome == "ok" and send.acks == "all" for send in view.sends):
        return NoVerdict(True, "nothing was acknowledged with acks=all")
    return NoVerdict(False, "min_insync is not said") if view.claims.min_insync is None else None


def _successive(view: View) -> bool:
    stints: set[tuple[str, int]] = set()
    for batch in view.batches:
        if batch.stint != WHOLE and batch.records and batch.outcome == "ok":
            if (batch.process, batch.stint) in stints:
                return True
            stints.add((batch.process, batch.stint))
    return False


def _several_polled(view: View) -> bool:
    return any(len(batch.records) > 1 and batch.stint != WHOLE for batch in view.batches)


def _offset_of_ack(view: View) -> bool:
    return any(send.outcome == "ok" and send.offset is not None for send in view.sends)


def _several_sent(view: View) -> bool:
    ops = [send.op for send in view.sends if send.outcome == "ok" and send.offset is not None]
    return len(set(ops)) < len(ops)


def _ghosts_possible(view: View) -> bool:
    return bool(view.polled) and any(send.outcome == "info" for send in view.sends)


def _reads_and_sends(view: View) -> bool:
    ops = {send.op for send in view.sends}
    return any(batch.records and batch.op in ops for batch in view.batches)


def _polls_with_records(view: View) -> bool:
    return any(batch.records and batch.outcome == "ok" and batch.stint != WHOLE for batch in view.batches)


def _logs_to_compare(view: View) -> bool:
    """Whether two replicas in sync show their logs, and at least one has something below both high watermarks."""
    dumps = [dump for dump in replicas.last_dumps(view) if dump.in_sync]
    below = min((dump.high_watermark for dump in dumps), default=0)
    starts = [record[0] for dump in dumps for record in dump.records] + [row[1] for d in dumps for row in d.epochs]
    return len(dumps) > 1 and any(start < below for start in starts)


def single_steps(history: History) -> NoVerdict | None:
    """Needs operations of several steps: without them a cycle of offsets and reads is impossible."""
    return None if any(map(cycles.several_steps, history.operations)) else NoVerdict(True, NO_STEPS)


NO_STEPS: Final = "no operation of several steps was done"
READ: Final = _vacuous("nothing was read", lambda view: bool(view.polled))
POLLED: Final = _vacuous("no consumer polled twice in a row", _successive)
KNOWN_OFFSETS: Final = _vacuous("no offset is known", lambda view: bool(view.at))
ACKED: Final = _vacuous("no acknowledgement says an offset", _offset_of_ack)
BOTH: Final = _vacuous("no operation both sends and polls a partition", _reads_and_sends)
INSIDE_POLL: Final = _vacuous("no operation polled two records", _several_polled)
INSIDE_SEND: Final = _vacuous("no operation got two offsets of a partition", _several_sent)
SUBSCRIBED: Final = _vacuous("nobody subscribed", lambda view: any(b.subscribed and b.records for b in view.batches))
POLLS: Final = _vacuous("no poll returned a record", _polls_with_records)
UNKNOWN_SENDS: Final = _vacuous("no send has an unknown outcome, or nothing was read", _ghosts_possible)
EPOCHS: Final = _vacuous("no poll says leader epochs", replicas.has_epochs)
TWO_LOGS: Final = _vacuous("not two replicas in sync that show what they have committed", _logs_to_compare)
