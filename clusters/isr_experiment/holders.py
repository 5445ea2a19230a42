"""What each broker held, and when, as lines of the history: was enough of them what was acknowledged on (check 27)?

The brokers' own traces say it (docs/trace-format.md, of Apache Kafka's docs/kafka-trace.md); their clock is that of the
history. A trace names a batch by
offset and leader epoch and not by its values: these are known from the logs at the end. Of a value that is gone from
them it was, most likely, the last batch that was appended at its offset before it was acknowledged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import Event, Life
from isr_experiment.recorder import PARTITION, Recorder
from isr_validate.kafka_trace import FORMAT as KAFKA_FORMAT

MS = 1_000_000
US = 1_000


@attrs.frozen
class AppendNote:
    """A broker has appended these records, each as offset and leader epoch; or its log ends at `end` from now on."""

    at: int
    """In nanoseconds of the run; not after the disk has said so."""
    broker: str
    appended: tuple[tuple[int, int], ...]
    end: int | None = None


def trace_notes(lives: Iterable[Life], began: int) -> Iterator[AppendNote]:
    """What the traces of the partition say, a broker after the other; `began` is when the history did."""
    ends: dict[str, int] = {}
    for life in lives:
        unit = US if life.header.get("format") == KAFKA_FORMAT else MS
        for event in life.events:
            says = event.says
            if says.get("partition") != PARTITION or life.node == "controller":
                continue
            at, end = cast("int", says["at"]) * unit - began, ends.get(life.node, 0)
            # A start may find what a killed process had no time to tell of.
            new = tuple(_records(says.get("wrote"))) or tuple(r for r in _records(says.get("log")) if r[0] >= end)
            now = _end(event, new[-1][0] + 1 if new else end)
            if now < end:
                yield AppendNote(at, life.node, (), now)
            if new:
                yield AppendNote(at, life.node, new)
            ends[life.node] = now


def _records(rows: Json) -> Iterator[tuple[int, int]]:
    """Offset and leader epoch of each record of some batches."""
    for row in cast("list[list[int]]", rows) if isinstance(rows, list) else []:
        offset, epoch, count = row[:3]
        yield from ((offset + n, epoch) for n in range(count))


def _end(event: Event, otherwise: int) -> int:
    """Where the log ends after a line: as its snapshot says, or what a start has found."""
    if "log" in event.says:
        return max((offset + 1 for offset, _ in _records(event.says["log"])), default=0)
    state = event.says.get("state", {"log_end": event.says.get("log_end")})
    end = state.get("log_end") if isinstance(state, dict) else None
    return end if isinstance(end, int) else otherwise


def values_of(
    wrote: Iterable[AppendNote],
    log_values: Mapping[tuple[int, int], int],
    acknowledgements: Iterable[tuple[int, int, int]],
) -> dict[tuple[int, int], int]:
    """The value of each record by offset and leader epoch: as `log_values` in the logs at the end; else, of a value
    that was acknowledged (`acknowledgements`: value, offset, when), the last record that anybody had appended there by
    then, and that is no
    value's that was acknowledged before. No two are the same record, so each value gets one."""
    since: dict[int, dict[int, int]] = {}
    for one in wrote:
        for offset, epoch in one.appended:
            epochs = since.setdefault(offset, {})
            epochs[epoch] = min(one.at, epochs.get(epoch, one.at))
    values, there = dict(log_values), set(log_values.values())
    for value, offset, at in sorted(acknowledgements, key=lambda one: one[2]):
        left = {e: began for e, began in since.get(offset, {}).items() if began <= at and (offset, e) not in values}
        if left and value not in there:
            values[offset, max(left, key=left.__getitem__)] = value
    return values


def note_holders(recorder: Recorder, lives: Iterable[Life], log_values: Mapping[tuple[int, int], int]) -> None:
    """The history of a run that is over, with what its brokers held from when on."""
    told = list(trace_notes(lives, recorder.began))
    acked = [(value, offset, recorder.acked[value]) for value, offset in recorder.offsets.items()]
    known = values_of(told, log_values, acked)
    new = [(one.at, text) for one in told for text in _lines(one, known)]
    written = Path(recorder.path).read_text(encoding="utf-8").splitlines()
    old = [(cast("int", json.loads(line)["time"]), line) for line in written[1:]]
    lines = [line for _, line in sorted([*new, *old], key=lambda timed: timed[0])]
    Path(recorder.path).write_text("\n".join([written[0], *lines]) + "\n", encoding="utf-8")


def _lines(one: AppendNote, values: Mapping[tuple[int, int], int]) -> Iterator[str]:
    about = {"time": max(0, one.at), "node": f"broker {one.broker}", "partition": PARTITION}
    if one.end is not None:
        yield json.dumps({"f": "truncate", **about, "offset": one.end})
    for offset, epoch in one.appended:
        if (value := values.get((offset, epoch))) is not None:
            yield json.dumps({"f": "append", **about, "offset": offset, "value": value})
