"""Why an anomaly cannot be judged: the history has nothing of the kind (vacuous), or does not say enough (unknown).

Each is a function of one partition's view, or of the whole history; None means that it can be judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isr_anomalies import cycles, replicas, values
from isr_anomalies.index import WHOLE, History
from isr_anomalies.results import Lack
from isr_anomalies.view import View


def _vacuous(why: str, when: Callable[[View], bool]) -> Callable[[View], Lack | None]:
    return lambda view: None if when(view) else Lack(True, why)


def no_scan(view: View) -> Lack | None:
    """Whether committed values were looked for."""
    if not any(send.committed for send in view.sends):
        return Lack(True, "nothing was acknowledged")
    if not view.scans:
        return Lack(False, f"no complete final read of {view.name}")
    if view.not_looked_for:
        many = f"{view.not_looked_for} values of {view.name}" if view.not_looked_for > 1 else f"a value of {view.name}"
        return Lack(False, f"{many} acknowledged after its last complete read began, and read by nobody")
    return None


def no_later_scan(view: View) -> Lack | None:
    """Whether what was read was read again."""
    if not view.polled:
        return Lack(True, "nothing was read")
    last = view.last_scan
    if last is None:
        return Lack(False, f"no complete final read of {view.name}")
    if view.read_beyond:
        return Lack(False, f"no complete read of {view.name} went as far as others had read")
    earlier = any(batch.records and batch.completed < last.invoked for batch in view.batches)
    return None if earlier else Lack(True, "nothing was read before the last complete read")


def gaps(view: View) -> Lack | None:
    """Whether gaps are known to be no control records."""
    if not view.scans:
        return Lack(False, f"no complete final read of {view.name}") if view.at else Lack(True, "nothing is there")
    why = f"gaps of {view.name} may be control records: its final read does not list them"
    return Lack(False, why) if values.gaps_unexplained(view) else None


def where_it_is(view: View) -> Lack | None:
    """Where gone values are, if it is known that any are gone."""
    if not view.partition.dumps:
        why = f"values of {view.name} are gone, and no replica's log is here"
        return Lack(False, why) if view.gone else Lack(True, "no replica's log in this history")
    lack = no_scan(view)
    return Lack(lack.vacuous, f"whether anything is gone: {lack.why}") if lack else None


def contract(view: View) -> Lack | None:
    """Whether nodes told what they held, and how many had to."""
    if not view.partition.held:
        return Lack(True, "no node's own log of appends in this history")
    return Lack(False, "min_insync is not said") if view.claims.min_insync is None else None


def _successive(view: View) -> bool:
    seen: set[tuple[str, int]] = set()
    for batch in view.batches:
        if batch.stint != WHOLE and batch.records and batch.outcome == "ok":
            if (batch.process, batch.stint) in seen:
                return True
            seen.add((batch.process, batch.stint))
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


def single_steps(history: History) -> Lack | None:
    """Whether a cycle of offsets and reads alone is possible."""
    return None if cycles.several_steps(history) else Lack(True, "no operation of several steps")


READ: Final = _vacuous("nothing was read", lambda view: bool(view.polled))
POLLED: Final = _vacuous("no consumer polled twice in a row", _successive)
PLACED: Final = _vacuous("no offset is known", lambda view: bool(view.at))
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
