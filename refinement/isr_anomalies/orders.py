"""Anomalies of the order of sends and polls: each a function of one partition. Sources: `catalogue`.

A skip or a step back is measured in the version order, where only offsets count that are known to hold something:
control records take up offsets, too, and nobody sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from isr_anomalies.history import WHOLE, Batch, Send
from isr_anomalies.operations import Record
from isr_anomalies.results import Finding
from isr_anomalies.view import View


def _successive(view: View) -> Iterator[tuple[Batch, Batch]]:
    """Pairs of polls, the second of which continues at the position of the first; only a poll that is ok moves it."""
    last: dict[tuple[str, int], Batch] = {}
    for batch in view.batches:
        if batch.stint == WHOLE or not batch.records:
            continue
        key = (batch.process, batch.stint)
        before = last.get(key)
        if before is not None and not batch.during_rebalance:
            yield before, batch
        if batch.outcome == "ok":
            last[key] = batch


def poll_skip(view: View) -> Iterator[Finding]:
    """7: of two successive polls the later one begins more than one record after the end of the earlier."""
    for before, batch in _successive(view):
        ended, begins = before.records[-1][0], batch.records[0][0]
        delta = view.index[begins] - view.index[ended]
        if delta > 1:
            says = f"process {batch.process} polled up to offset {ended}, then from {begins}: {delta - 1} left out"
            yield Finding(batch.subscribed, (before.completed, batch.completed), view.name, says, delta)


def nonmonotonic_poll(view: View) -> Iterator[Finding]:
    """8: of two successive polls the later one begins at or before the end of the earlier."""
    for before, batch in _successive(view):
        ended, begins = before.records[-1][0], batch.records[0][0]
        delta = view.index[begins] - view.index[ended]
        if delta < 1:
            says = f"process {batch.process} polled up to offset {ended}, then from {begins} again"
            yield Finding(batch.subscribed, (before.completed, batch.completed), view.name, says, 1 - delta)


def _inside(view: View) -> Iterator[tuple[Batch, int, int, int]]:
    """Neighbouring records of a batch: the batch, both offsets, and how far apart they are in the version order."""
    index = view.index
    for batch in view.batches:
        records: list[Record] = batch.records
        # most batches have no gap, and one comparison tells that
        if len(records) < 2 or batch.stint == WHOLE or batch.during_rebalance or _dense(records):
            continue
        for (one, _, _), (two, _, _) in pairwise(records):
            delta = index[two] - index[one]
            if delta != 1:
                yield batch, one, two, delta


def _dense(records: list[Record]) -> bool:
    first = records[0][0]
    return all(record[0] == first + n for n, record in enumerate(records))


def int_poll_skip(view: View) -> Iterator[Finding]:
    """9: inside one operation a poll leaves out a record that is there."""
    for batch, one, two, delta in _inside(view):
        if delta > 1:
            says = f"one operation got offset {one} and then {two}: {delta - 1} left out"
            yield Finding(False, (batch.completed,), view.name, says, delta)


def int_nonmonotonic_poll(view: View) -> Iterator[Finding]:
    """10: inside one operation a poll goes back."""
    for batch, one, two, delta in _inside(view):
        if delta < 1:
            yield Finding(
                False, (batch.completed,), view.name, f"one operation got offset {one} and then {two}", -delta
            )


def _sends_with_offset(view: View) -> list[Send]:
    return [s for s in view.sends if s.offset is not None and s.committed]


def nonmonotonic_send(view: View) -> Iterator[Finding]:
    """11: a process's later operation gets a smaller offset than an earlier one.

    Retries without idempotence may reorder what was in flight together, never what was sent after an answer.
    """
    last: dict[str, tuple[int, Send]] = {}
    for send in _sends_with_offset(view):
        offset = send.offset if send.offset is not None else 0
        before = last.get(send.process)
        if before is not None and before[1].op != send.op and offset < before[0]:
            overlap = before[1].completed > send.invoked
            weak = before[1].acks != "all" or view.claims.unclean  # what was acknowledged may be gone
            permitted = weak or (overlap and not view.claims.idempotence)
            says = f"process {send.process} got offset {before[0]}, and {offset} for what it sent later"
            lines = (before[1].completed, send.completed)
            yield Finding(permitted, lines, view.name, says, before[0] - offset)
        if before is None or before[1].op != send.op or offset > before[0]:
            last[send.process] = (offset, send)


def _sends_inside(view: View) -> Iterator[tuple[Send, int, Send, int]]:
    for one, two in pairwise(_sends_with_offset(view)):
        if one.op == two.op and one.offset is not None and two.offset is not None:
            yield one, one.offset, two, two.offset


def int_nonmonotonic_send(view: View) -> Iterator[Finding]:
    """12: inside one operation, sends get falling offsets."""
    for one, low, _, high in _sends_inside(view):
        if high < low:
            says = f"one operation got offset {low} and then {high}"
            yield Finding(False, (one.completed,), view.name, says, low - high)


def int_send_skip(view: View) -> Iterator[Finding]:
    """13: inside one operation, records of others come between; always permitted."""
    for one, low, _, high in _sends_inside(view):
        between = view.index[high] - view.index[low] - 1
        if between > 0:
            says = f"one operation got offsets {low} and {high}, and {between} of others lie between"
            yield Finding(True, (one.completed,), view.name, says, between)


def stale_ack_offset(view: View) -> Iterator[Finding]:
    """19: an acknowledged offset was at or below the largest that was known when the send was invoked."""
    for send in view.sends:
        if send.outcome == "ok" and send.offset is not None:
            known = view.known_offsets.before(send.invoked)
            if send.offset <= known:
                permitted = send.offset > view.surely_known.before(send.invoked) or view.claims.unclean
                says = f"offset {send.offset} was acknowledged, and {known} was known before it was sent"
                yield Finding(permitted, (send.invoked, send.completed), view.name, says, known - send.offset + 1)


def late_ghost(view: View) -> Iterator[Finding]:
    """20: a value of unknown outcome is read at an offset at or below the largest known at its invocation."""
    for send in view.sends:
        if send.outcome == "info" and send.value in view.polled:
            largest_known, offset = view.known_offsets.before(send.invoked), view.offset_of[send.value]
            if offset <= largest_known:
                permitted = offset > view.surely_known.before(send.invoked) or view.claims.unclean
                says = f"value {send.value!r} appeared at offset {offset}, "
                says += f"and {largest_known} was known before it was sent"
                lines = (send.invoked, view.line_of[offset])
                yield Finding(permitted, lines, view.name, says, largest_known - offset + 1)
