"""What a run shows: the fate of every value, the 29 checks, how long nobody served, and whether the model takes the
traces for runs of its own."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

import attrs

from isr_anomalies import Answer, Value, Verdict, check, lost_values, pair_operations, read_json
from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import batches
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.dropped_records import FILE
from isr_broker.storage.log import Log
from isr_broker.trace_reader import BadTrace
from isr_experiment.clients import records_of
from isr_experiment.holders import note_holders
from isr_experiment.recorder import PARTITION, Recorder
from isr_experiment.watch import Observation
from isr_validate import read_traces, validate

SECOND = 1_000_000_000
_NEVER = 1 << 62


@attrs.frozen(kw_only=True)
class Fate:
    """What became of values, in one phase or in all; in Jepsen's terms.

    A value is attempted, or recovered, in the phase in which it was sent, and acknowledged, survived or lost in that in
    which it was acknowledged: a client may be behind.
    """

    phase: str
    began: int
    attempted: int
    acknowledged: int
    survived: int
    """Acknowledged, and there at the end."""
    lost: int
    """Acknowledged, and not there."""
    lost_unacknowledged: int
    """Never acknowledged, but read by somebody, and not there; counted where it was sent."""
    recovered: int
    """Not acknowledged, and there all the same."""


def fates(recorder: Recorder, final_values: Iterable[int] | None, losses: Container[object]) -> list[Fate]:
    """The whole run first, then each phase. `losses` are the values that the history checker calls lost, `final_values`
    those
    of the final read; nothing is lost if nobody could look."""
    there = set(final_values or ())
    acked = recorder.acked
    marks = recorder.marks or [("run", 0)]

    def fate(phase: str, began: int, end: int) -> Fate:
        values = [v for v, at in recorder.send_times.items() if began <= at < end]
        acked_values = [v for v, at in acked.items() if began <= at < end]
        missing_values = [v for v in acked_values if v in losses]
        return Fate(
            phase=phase,
            began=began,
            attempted=len(values),
            acknowledged=len(acked_values),
            survived=len(acked_values) - len(missing_values),
            lost=len(missing_values),
            lost_unacknowledged=sum(v not in acked and v in losses for v in values),
            recovered=sum(v not in acked and v in there for v in values),
        )

    rows = [fate("all", 0, _NEVER)]
    rows += [fate(name, began, ended) for (name, began), (_, ended) in pairwise([*marks, ("", _NEVER)])]
    return rows


@attrs.frozen
class Window:
    """A second: values acknowledged and sent in it, how many of the acknowledged are lost, and how long the
    acknowledged ones had taken, in milliseconds."""

    at: int
    sent: int
    acked: int
    lost: int
    p50: float | None
    p99: float | None


def windows(recorder: Recorder, losses: Container[object]) -> list[Window]:
    """The run, second by second."""
    end = max([*recorder.send_times.values(), *recorder.acked.values(), 0])
    rows: list[Window] = []
    for at in range(0, end + 1, SECOND):
        here = [v for v, told in recorder.acked.items() if at <= told < at + SECOND]
        took = sorted((recorder.acked[v] - recorder.send_times[v]) / 1e6 for v in here)
        gone = sum(v in losses for v in here)
        sent = sum(at <= t < at + SECOND for t in recorder.send_times.values())
        p50, p99 = ((round(took[len(took) * per // 100], 1) if took else None) for per in (50, 99))
        rows.append(Window(at, sent, len(took), gone, p50, p99))
    return rows


def leaderless(observations: Sequence[Observation], end: int) -> list[tuple[int, int]]:
    """When the controller knew no leader."""
    spans: list[tuple[int, int]] = []
    for n, one in enumerate(observations):
        until = observations[n + 1].at if n + 1 < len(observations) else end
        until = min(until, end)
        if one.leader is None and one.at < until:
            if spans and spans[-1][1] == one.at:
                spans[-1] = (spans[-1][0], until)
            else:
                spans.append((one.at, until))
    return spans


def silence_after(recorder: Recorder, began: int, end: int) -> int:
    """The longest time without an acknowledgement that touches a fault, in nanoseconds."""
    marks = sorted([0, *recorder.acked.values(), max([*recorder.send_times.values(), 0])])
    return max((two - one for one, two in pairwise(marks) if two > began and one < end), default=0)


def note_replicas(
    logs: Mapping[int, Path], recorder: Recorder, last: Observation | None, watermark: int
) -> dict[tuple[int, int], int]:
    """The logs of brokers that do not run, which lie in these folders, as lines of the history. The watermark is of
    the final read.

    Gives each value by offset and leader epoch.
    """
    log_values: dict[tuple[int, int], int] = {}
    tp = TopicPartition(PARTITION.rpartition("-")[0], int(PARTITION.rpartition("-")[2]))
    for broker, folder in logs.items():
        disk = RealDisk(folder)
        if not disk.exists(str(tp)):
            continue
        log = Log.open(disk, str(tp), Settings())
        data = log.contents()
        records: list[list[int | None]] = []
        for batch in batches(data):
            one = data[batch.position : batch.position + batch.size]
            records += [[offset, value, batch.leader_epoch] for offset, value in records_of(one)]
        log_values |= {(o, e): v for o, v, e in records if o is not None and v is not None and e is not None}
        recorder.says(
            "replica",
            node=f"broker {broker}",
            partition=PARTITION,
            in_sync=last is not None and broker in last.isr,
            leader=last is not None and broker == last.leader,
            high_watermark=min(watermark, log.view.end),
            records=records,
            epochs=[[e.epoch, e.start] for e in log.view.epochs.entries],
        )
        log.close()
    return log_values


def dumped_values(logs: Mapping[int, Path]) -> frozenset[Value]:
    """The values that brokers wrote down before they cut their logs, as the history has them."""
    values = set[Value]()
    for folder in logs.values():
        path = folder / FILE
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            value = cast("dict[str, object]", json.loads(line)).get("value")
            if isinstance(value, str) and value.isdecimal():
                values.add(int(value))
    return frozenset(values)


def judge_history(history: Path) -> tuple[Answer, frozenset[Value]]:
    """The 29 checks, and the values that they call lost."""
    with history.open(encoding="utf-8") as lines:
        read = pair_operations(read_json(lines))
    return check(read), lost_values(read)


def violated(answer: Answer) -> list[str]:
    """The anomalies that the claims exclude, and that are there."""
    return [j.name for j in answer.judgements if j.verdict is Verdict.VIOLATED]


def by_word(answer: Answer) -> Mapping[str, list[str]]:
    """The names of the anomalies by verdict."""
    words: dict[str, list[str]] = {}
    for judgement in answer.judgements:
        words.setdefault(judgement.verdict.value, []).append(judgement.name)
    return words


@attrs.frozen(kw_only=True)
class TraceVerdict:
    """What the model says of the traces of a run."""

    accepted: bool
    events: int
    steps: int
    outside: int
    why: str = ""


def compare_traces(folder: Path, recorder: Recorder, log_values: Mapping[tuple[int, int], int]) -> TraceVerdict:
    """The traces in a folder, line by line against the model; the history learns from them who held what, and when."""
    try:
        lives = read_traces((file.name, file.read_bytes()) for file in sorted(folder.glob("*.jsonl")))
        note_holders(recorder, lives, log_values)
        validation = validate(lives)
    except BadTrace as problem:
        return TraceVerdict(accepted=False, events=0, steps=0, outside=0, why=str(problem))
    no = validation.rejected
    undecided_reason = f"not decided: {validation.unknown}" if validation.unknown is not None else ""
    return TraceVerdict(
        accepted=validation.accepted,
        events=validation.events,
        steps=sum(validation.steps.values()),
        outside=len(validation.outside),
        why=undecided_reason
        if no is None
        else f"{no.life}.jsonl:{no.line}, {no.action}: {no.why} {'; '.join(no.guards)}",
    )
