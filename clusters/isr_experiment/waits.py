"""How long writes waited, phase by phase: until they were acknowledged, and until a majority had what the leader had.

The second is what a majority quorum adds on the same run, as the brokers' traces tell who had what and when
(`holders`), less the fetch by which a leader hears of it. It begins with the append, for a producer that waits for
acknowledgements holds its next writes back, whatever those wait for. Without traces it is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import cast

import attrs

from isr_experiment.recorder import Recorder

MS = 1e6
_NEVER = 1 << 62


@attrs.frozen(kw_only=True)
class Spread:
    """Of so many writes, in milliseconds."""

    writes: int
    p50: float
    p99: float
    longest: float


@attrs.frozen(kw_only=True)
class Waits:
    """Of the writes that were sent in a phase; None where there are none, or where nobody knows."""

    phase: str
    acknowledged: Spread | None
    majority: Spread | None


def spread(times: Iterable[int]) -> Spread | None:
    """From nanoseconds; percentiles are the smallest value that so many percent do not exceed."""
    ordered = sorted(times)
    if not ordered:
        return None
    p50, p99 = (ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] for percent in (50, 99))
    return Spread(writes=len(ordered), p50=_ms(p50), p99=_ms(p99), longest=_ms(ordered[-1]))


def _ms(ns: int) -> float:
    return round(ns / MS, 1)


def majority_took(history: Path, replicas: int) -> dict[int, int]:
    """How long after the first replica a majority of so many had each value, in nanoseconds, where the history says."""
    since: dict[int, dict[str, int]] = {}
    for text in history.read_text(encoding="utf-8").splitlines()[1:]:
        if '"f": "append"' not in text:
            continue
        line = cast("dict[str, object]", json.loads(text))
        at = since.setdefault(cast("int", line["value"]), {})
        at.setdefault(str(line["node"]), cast("int", line["time"]))
    enough = replicas // 2 + 1
    ordered = {value: sorted(at.values()) for value, at in since.items() if len(at) >= enough}
    return {value: times[enough - 1] - times[0] for value, times in ordered.items()}


def waits(recorder: Recorder, took: Mapping[int, int]) -> Sequence[Waits]:
    """A row for each phase, by when the writes were sent."""
    rows: list[Waits] = []
    marks = recorder.marks or [("run", 0)]
    for (phase, began), (_, ended) in pairwise([*marks, ("", _NEVER)]):
        send_times = {v: at for v, at in recorder.send_times.items() if began <= at < ended}
        rows.append(
            Waits(
                phase=phase,
                acknowledged=spread(recorder.acked[v] - at for v, at in send_times.items() if v in recorder.acked),
                majority=spread(took[v] for v in send_times if v in took),
            )
        )
    return rows
