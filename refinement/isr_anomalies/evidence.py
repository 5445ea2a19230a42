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


def no_scan(view: View) -> NoVerdict | None:
    """Needs a complete read that began after everything was acknowledged."""
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
    earlier = any(batch.records and batch.completed < last.invoked for batch in view.batches)
    return None if earlier else NoVerdict(True, "nothing was read before the last complete read")


def gaps(view: View) -> NoVerdict | None:
    """Needs a complete read that lists control records, if there may be any."""
    if not view.scans:
        return (
            NoVerdict(False, f"no complete final read of {view.name}")
            if view.at
            else NoVerdict(True, "nothing is there")
        )
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
    missing = no_scan(view)
    return NoVerdict(missing.vacuous, f"whether anything is gone: {missing.why}") if missing else None


def contract(view: View) -> NoVerdict | None:
    """Needs the appends of nodes, and min.insync.replicas."""
    if not view.partition.log_reports:
        return NoVerdict(True, "no node's own log of appends in this history")
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


def _several_sent(view: View) -> bool:
    return len({send.op for send in view.sends}) < len(view.sends)


def _unknown_sends(view: View) -> bool:
    return any(send.outcome == "info" for send in view.sends)


def _reads_and_sends(view: View) -> bool:
    ops = {send.op for send in view.sends}
    return any(batch.op in ops for batch in view.batches)


def single_steps(history: History) -> NoVerdict | None:
    """Needs operations of several steps: without them a cycle of offsets and reads is impossible."""
    return None if cycles.several_steps(history) else NoVerdict(True, "no operation of several steps")


READ: Final = _vacuous("nothing was read", lambda view: bool(view.polled))
POLLED: Final = _vacuous("no consumer polled twice in a row", _successive)
KNOWN_OFFSETS: Final = _vacuous("no offset is known", lambda view: bool(view.at))
ACKED: Final = _vacuous("no acknowledgement says an offset", lambda v: any(s.offset is not None for s in v.sends))
BOTH: Final = _vacuous("no operation both sends and polls a partition", _reads_and_sends)
INSIDE_POLL: Final = _vacuous("no operation polled two records", _several_polled)
INSIDE_SEND: Final = _vacuous("no operation sends twice to a partition", _several_sent)
SUBSCRIBED: Final = _vacuous("nobody subscribed", lambda view: any(b.subscribed and b.records for b in view.batches))
POLLS: Final = _vacuous("no poll names a partition", lambda view: any(b.stint != WHOLE for b in view.batches))
UNKNOWN_SENDS: Final = _vacuous("no send has an unknown outcome", _unknown_sends)
EPOCHS: Final = _vacuous("no poll says leader epochs", replicas.has_epochs)
TWO_LOGS: Final = _vacuous(
    "not two replicas in sync that show their logs",
    lambda view: sum(dump.in_sync for dump in replicas.last_dumps(view)) > 1,
)
