"""Anomalies of what became of a value: each a function of one partition. Sources: `catalogue`."""

from __future__ import annotations

from collections.abc import Iterator

from isr_anomalies.history import WHOLE, Batch, Scan, Send
from isr_anomalies.operations import NEVER, NO_EPOCH, Value
from isr_anomalies.results import Counts, Finding
from isr_anomalies.view import View


def inconsistent_offset(view: View) -> Iterator[Finding]:
    """1: one offset is associated with two or more values."""
    for offset, values in view.clashes.items():
        names = ", ".join(repr(value) for value in values)
        lines = tuple(sorted(set(values.values())))
        kept = [v for v in values if v in view.polled or (v in view.send_of and view.send_of[v].acks == "all")]
        permitted = view.claims.unclean or len(kept) < 2  # an acknowledgement by fewer than all promises no place
        yield Finding(permitted, lines, view.name, f"offset {offset} holds {names}", len(values))


def duplicate(view: View) -> Iterator[Finding]:
    """2: one value at two or more offsets."""
    for value, offsets in view.copies.items():
        if value is None:
            continue
        places = sorted(offsets)
        lines = tuple(sorted({view.line_of[offset] for offset in places}))
        says = f"value {value!r} is at offsets {', '.join(map(str, places))}"
        sent_again = view.attempts[value] >= len(places)  # by the application, which no broker can know
        yield Finding(sent_again or not view.claims.idempotence, lines, view.name, says, len(places))


def _may_be_lost(view: View, send: Send) -> bool:
    return send.acks != "all" or view.claims.unclean


def lost_write(view: View) -> Iterator[Finding]:
    """3: acknowledged, or read by somebody, and absent from a complete read that had to return it."""
    for send, scan, offset, read in view.losses:
        # what was read is below the high watermark, whatever its producer waited for
        permitted = view.claims.unclean if read is not None else _may_be_lost(view, send)
        size = 1 if offset is None else max(1, abs(scan.end - offset))
        yield Finding(permitted, _lines(send, scan, read), view.name, _loss_text(send, scan, offset, read), size)


def _loss_text(send: Send, scan: Scan, offset: int | None, read: int | None) -> str:
    acked = send.outcome == "ok"
    at = "" if offset is None else f" at offset {offset}"
    if read is not None:
        was = f"was {'acknowledged and ' if acked else ''}read{at}{'' if acked else ', though never acknowledged'}"
    else:
        was = "was acknowledged" if offset is None else f"got offset {offset}"
    return f"value {send.value!r} {was}, a complete read went to {scan.end - 1} without it"


def unseen_values(view: View) -> Iterator[Finding]:
    """4: acknowledged before the last complete read began, and polled by nobody."""
    last = view.last_scan
    for send in view.unseen_sends:
        if last is not None:
            says = f"value {send.value!r} was acknowledged, and nobody ever read it"
            yield Finding(_may_be_lost(view, send), _lines(send, last), view.name, says, 1)


def _lines(send: Send, scan: Scan, read: int | None = None) -> tuple[int, ...]:
    acked = send.completed if send.completed != NEVER else send.invoked
    return (acked, scan.completed) if read is None else tuple(sorted({acked, read, scan.completed}))


def aborted_read(view: View) -> Iterator[Finding]:
    """5 (G1a): the value of a send that surely failed is returned by a poll that is ok."""
    failed = {value: send for value, send in view.send_of.items() if send.outcome == "fail" and value in view.polled}
    for batch in view.batches if failed else ():
        for offset, value, _ in batch.records if batch.outcome == "ok" else ():
            if value in failed:
                send = failed.pop(value)
                says = f"value {value!r} of a failed send was read at offset {offset}"
                yield Finding(False, (send.completed, batch.completed), view.name, says, 1)


def precommitted_read(view: View) -> Iterator[Finding]:
    """6: a transaction polls what it sends itself."""
    own: dict[int, set[Value]] = {}
    reading = {batch.op for batch in view.batches}
    for send in view.sends if reading else ():
        if send.op in reading:
            own.setdefault(send.op, set()).add(send.value)
    for batch in view.batches if own else ():
        for offset, value, _ in batch.records:
            if value in own.get(batch.op, ()):
                says = f"value {value!r} was polled at offset {offset} by the transaction that sends it"
                line = batch.completed if batch.completed != NEVER else batch.invoked
                yield Finding(view.claims.isolation != "read_committed", (line,), view.name, says, 1)


def consume_counts(view: View) -> Iterator[Finding]:
    """17: a value consumed more than once by the subscribers of one group."""
    first: dict[tuple[str, int], Batch] = {}
    consumptions: dict[tuple[str, int], int] = {}
    for batch in view.batches:
        if batch.subscribed and batch.outcome == "ok" and batch.stint != WHOLE:
            for offset, _, _ in batch.records:
                key = (batch.group, offset)
                before = first.setdefault(key, batch)
                if before is not batch:
                    consumptions[key] = consumptions.get(key, 1) + 1
                    if consumptions[key] == 2:
                        says = f"group {batch.group!r} consumed offset {offset} again"
                        lines = (before.completed, batch.completed)
                        yield Finding(not view.claims.exactly_once, lines, view.name, says, 1)


def phantom(view: View) -> Iterator[Finding]:
    """21: a value that nobody sent to this partition, or bytes that nobody wrote."""
    known = view.send_of
    strange = {value for value in view.polled if value is None or value not in known}
    for batch in view.batches if strange else ():
        for offset, value, _ in batch.records:
            if value in strange:
                strange.discard(value)
                says = "damaged bytes" if value is None else f"value {value!r}, which nobody sent,"
                line = batch.completed if batch.completed != NEVER else batch.invoked
                yield Finding(False, (line,), view.name, f"{says} at offset {offset}", 1)


def read_then_lost(view: View) -> Iterator[Finding]:
    """22: what a consumer got is absent, or replaced, in a complete read that began later."""
    last = view.last_scan
    lost_offsets: set[int] = set()
    for batch in view.batches if last else ():
        if last is None or batch.completed >= last.invoked or batch.outcome == "fail":
            continue
        for offset, value, _ in batch.records:
            scan = last if offset >= last.start else view.later_scan(offset, batch.completed)
            if scan is None or offset in lost_offsets:
                continue
            values = scan.values
            if offset not in values or values[offset] != value:
                lost_offsets.add(offset)
                now = f"value {values[offset]!r} is there" if offset in values else "it is gone"
                says = f"value {value!r} was read at offset {offset}, and later {now}"
                yield Finding(view.claims.unclean, (batch.completed, scan.completed), view.name, says, 1)


def offset_gap(view: View) -> Iterator[Finding]:
    """25: a complete read has no record at an offset that no control record takes up."""
    for scan in view.scans:
        if scan.unseen is None and view.partition.transactional:
            continue
        taken = scan.unseen or frozenset()
        if len(scan.values) == scan.end - scan.start and not taken:
            continue
        missing = [o for o in range(scan.start, scan.end) if o not in scan.values and o not in taken]
        if missing:
            says = f"nothing at offset {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
            yield Finding(False, (scan.completed,), view.name, says, len(missing))


def gaps_unexplained(view: View) -> bool:
    """Whether a complete read has gaps, and the history does not say that they are control records."""
    return view.partition.transactional and any(
        scan.unseen is None and len(scan.values) < scan.end - scan.start for scan in view.scans
    )


def truncation_unnoticed(view: View) -> Iterator[Finding]:
    """26: a consumer goes on across an epoch that replaced what it had read, and was not told (KIP-320)."""
    starts = epoch_starts(view)
    last: dict[tuple[str, int], tuple[int, int, Batch]] = {}
    for batch in view.batches:
        if batch.stint == WHOLE or not batch.records or batch.records[0][2] == NO_EPOCH:
            continue
        key = (batch.process, batch.stint)
        if key in last:
            offset, epoch, before = last[key]
            first, _, new = batch.records[0]
            replaced = [e for e, start in starts.items() if epoch < e <= new and start <= offset]
            if first > offset and (replaced or new < epoch):
                why = f"epoch {min(replaced)} began no later" if replaced else f"epoch {new} follows at {first}"
                says = f"process {batch.process} had offset {offset} of epoch {epoch}, and {why}"
                yield Finding(False, (before.completed, batch.completed), view.name, says, 1)
        if batch.outcome == "ok":
            last[key] = (batch.records[-1][0], batch.records[-1][2], batch)


def epoch_starts(view: View) -> dict[int, int]:
    """Leader epoch -> the least offset that anybody knows of it, from polls and from epoch caches."""
    starts: dict[int, int] = {}
    for batch in view.batches:
        for offset, _, epoch in batch.records:
            if epoch != NO_EPOCH and offset < starts.get(epoch, NEVER):
                starts[epoch] = offset
    for dump in view.partition.dumps:
        for epoch, start in dump.epochs:
            starts[epoch] = min(start, starts.get(epoch, NEVER))
    return starts


def counts(view: View) -> Counts:
    """How many sends had which fate."""
    outcomes = [send.outcome for send in view.sends]
    losses = [gone.acknowledged for gone in view.losses]
    return Counts(
        attempted=len(outcomes),
        acked=outcomes.count("ok"),
        failed=outcomes.count("fail"),
        unknown=outcomes.count("info"),
        recovered=sum(send.outcome == "info" and send.value in view.polled for send in view.sends),
        read=len(view.polled),
        lost=losses.count(True),
        lost_unacknowledged=losses.count(False),
    )
