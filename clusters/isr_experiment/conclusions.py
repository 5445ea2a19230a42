"""What the runs of a cell add up to, and what all cells do: the one document that reports are made from.

`document` is `experiment.json` (schema `insync/experiment/1`, docs/experiment.md); times in it are seconds of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs

from isr_experiment.cell_run import Options, Result
from isr_experiment.cells import LAG_MS, SESSION_MS, Cell, Expected
from isr_experiment.model import Prediction
from isr_experiment.stage import FaultRecord

SCHEMA = "insync/experiment/1"
NS = 1e9


class Verdict(StrEnum):
    """Of one cell, the good one first."""

    AS_EXPECTED = "AS EXPECTED"
    INVALID = "INVALID"
    """No run, or not enough of them, in which the faults bit, or the model could not say: nothing was shown."""
    NO_LOSS = "NO LOSS"
    """A loss was expected, and a valid run has none."""
    NOT_CAUGHT = "NOT CAUGHT"
    DISAGREES = "DISAGREES"
    """The model predicts something else than was measured."""
    REJECTED = "REJECTED"
    """The model does not allow what the brokers wrote."""
    LOST = "LOST"
    """A loss, or an anomaly that the claims exclude, where none was expected."""


def rejected(result: Result) -> bool:
    """The model does not allow what the brokers of this run wrote."""
    return result.trace_verdict is not None and not result.trace_verdict.accepted


@attrs.frozen(kw_only=True)
class CellConclusion:
    """A cell with its runs."""

    cell: Cell
    results: tuple[Result, ...]
    prediction: Prediction | None
    required_runs: int

    @property
    def valid(self) -> list[Result]:
        """The runs whose faults bit."""
        return [r for r in self.results if not r.invalid]

    @property
    def lost_acknowledged(self) -> int:
        """Acknowledged values that are gone, of all runs."""
        return sum(r.whole.lost for r in self.results)

    @property
    def lost_unacknowledged(self) -> int:
        """Values that somebody read and that are gone, though their producer was told nothing, of all runs."""
        return sum(r.whole.lost_unacknowledged for r in self.results)

    @property
    def verdict(self) -> Verdict:
        """The worst that can be said. A loss counts in a run that is not valid, too."""
        has_loss, bug = self.lost_acknowledged > 0, self.cell.expected is Expected.CAUGHT
        if not bug and any(map(rejected, self.results)):
            return Verdict.REJECTED
        if self.cell.expected is Expected.NOTHING and (has_loss or any(r.violated for r in self.results)):
            return Verdict.LOST
        if len(self.valid) < self.required_runs:
            return Verdict.INVALID
        if self.cell.expected is Expected.LOSS and not all(r.whole.lost for r in self.valid):
            return Verdict.NO_LOSS
        if bug and not any(r.whole.lost or r.violated or rejected(r) for r in self.valid):
            return Verdict.NOT_CAUGHT
        if self.prediction is not None and self.prediction.loses is None:
            return Verdict.INVALID
        if self.prediction is not None and self.prediction.loses is not has_loss:
            return Verdict.DISAGREES
        return Verdict.AS_EXPECTED


@attrs.frozen(kw_only=True)
class Totals:
    """All runs together; of the cells that are to lose nothing, how sure that is; of traces those without a bug."""

    runs: int
    valid: int
    acknowledged: int
    lost: int
    lost_unacknowledged: int
    safe_acknowledged: int
    safe_lost: int
    leaders: int
    isrs: int
    dropped: int
    events: int
    rejected: int
    validated: int

    @property
    def bound(self) -> float | None:
        """With 95 % confidence less than this part of acknowledged writes is lost where nothing was (3/N).

        As if each write were a trial of its own, which those of one run are not; see docs/experiment.md.
        """
        return 3 / self.safe_acknowledged if self.safe_acknowledged and not self.safe_lost else None


def totals(cells: Sequence[CellConclusion]) -> Totals:
    """Sums over all runs; only valid ones count for the bound."""
    every = [r for c in cells for r in c.results]
    safe = [r for c in cells if c.cell.expected is Expected.NOTHING for r in c.results]
    honest = [r for c in cells if c.cell.expected is not Expected.CAUGHT for r in c.results]
    trace_verdicts = [r.trace_verdict for r in honest if r.trace_verdict is not None]
    return Totals(
        runs=len(every),
        valid=sum(not r.invalid for r in every),
        acknowledged=sum(r.whole.acknowledged for r in every),
        lost=sum(r.whole.lost for r in every),
        lost_unacknowledged=sum(r.whole.lost_unacknowledged for r in every),
        safe_acknowledged=sum(r.whole.acknowledged for r in safe if not r.invalid),
        safe_lost=sum(r.whole.lost for r in safe),
        leaders=sum(r.leaders for r in every),
        isrs=sum(r.isrs for r in every),
        dropped=sum(r.dropped_bytes for r in every),
        events=sum(t.events for t in trace_verdicts),
        rejected=sum(not t.accepted for t in trace_verdicts),
        validated=len(trace_verdicts),
    )


def worst(cells: Sequence[CellConclusion]) -> Verdict:
    """Of all cells."""
    order = list(Verdict)
    return max((c.verdict for c in cells), key=order.index, default=Verdict.INVALID)


@attrs.frozen
class Rate:
    """So many of so many; `says` of what."""

    says: str
    part: int
    of: int

    def __str__(self) -> str:
        share = f"{100 * self.part / self.of:.1f} %" if self.of else "none"
        return f"{self.says} {self.part:,} of {self.of:,}, {share}"


def rates(conclusion: CellConclusion) -> tuple[Rate, Rate, Rate]:
    """The three of Jepsen's table, each with its own whole: acknowledged of what was attempted, lost of what was
    acknowledged, found of what was not."""
    wholes = [r.whole for r in conclusion.results]
    attempted, acknowledged = sum(w.attempted for w in wholes), sum(w.acknowledged for w in wholes)
    return (
        Rate("acknowledged of attempted", acknowledged, attempted),
        Rate("lost of acknowledged", sum(w.lost for w in wholes), acknowledged),
        Rate("found of unacknowledged", sum(w.recovered for w in wholes), attempted - acknowledged),
    )


def partition_phase(result: Result) -> tuple[int, int]:
    """Of the schedule of 2013: acknowledged while the network was cut, and lost of these."""
    rows = [f for f in result.fates if f.phase in ("leader alone", "leader gone")]
    return sum(f.acknowledged for f in rows), sum(f.lost for f in rows)


# The document


def document(
    name: str, says: str, cells: Sequence[CellConclusion], options: Options, command: Sequence[str], cut_short: bool
) -> dict[str, object]:
    """Everything, for machines."""
    all_runs = totals(cells)
    return {
        "schema": SCHEMA,
        "experiment": name,
        "says": says,
        "command": list(command),
        "system": options.system.name,
        "network": options.network,
        "writers": list(options.writers),
        "per_second": options.per_second,
        "session_seconds": SESSION_MS / 1000,
        "lag_seconds": LAG_MS / 1000,
        "cut_short": cut_short,
        "verdict": worst(cells).value,
        "totals": {**attrs.asdict(all_runs), "bound": all_runs.bound},
        "cells": [_cell(c) for c in cells],
    }


def _cell(conclusion: CellConclusion) -> dict[str, object]:
    cell = conclusion.cell
    return {
        "name": cell.name,
        "design": cell.design,
        "settings": {"acks": cell.acks, "min_insync": cell.min_insync, "unclean": cell.unclean, "flush": cell.flush},
        "properties": cell.properties(),
        "expected": cell.expected.value,
        "because": cell.because,
        "verdict": conclusion.verdict.value,
        "lost": conclusion.lost_acknowledged,
        "lost_unacknowledged": conclusion.lost_unacknowledged,
        "rates": [attrs.asdict(rate) for rate in rates(conclusion)],
        "timed": cell.shows_waits,
        "model": None if conclusion.prediction is None else attrs.asdict(conclusion.prediction),
        "runs": [run(r) for r in conclusion.results],
    }


def run(r: Result) -> dict[str, object]:
    """One run: `run.json`."""
    return {
        "cell": r.cell,
        "number": r.number,
        "valid": not r.invalid,
        "invalid": list(r.invalid),
        "cut_short": r.cut_short,
        "seconds": round(r.seconds, 1),
        "fates": [{**attrs.asdict(f), "began": _seconds(f.began)} for f in r.fates],
        "faults": [_fault(s, silence) for s, silence in zip(r.faults, r.silences, strict=True)],
        "changes": {"leaders": r.leaders, "epochs": r.epochs, "isrs": r.isrs},
        "dropped": r.dropped_bytes,
        "controller": [
            {"at": _seconds(s.at), "leader": s.leader, "epoch": s.epoch, "isr": s.isr, "elr": s.elr}
            for s in r.observations
        ],
        "windows": [{**attrs.asdict(w), "at": _seconds(w.at)} for w in r.windows],
        "leaderless": [[_seconds(a), _seconds(b)] for a, b in r.leaderless],
        "waits": [attrs.asdict(w) for w in r.waits],
        "dumped": r.dumped_values,
        "checks": {"verdict": r.verdict, **r.words},
        "consumer_resets": r.resets,
        "traces": None if r.trace_verdict is None else attrs.asdict(r.trace_verdict),
    }


def _fault(fault: FaultRecord, silence: int) -> dict[str, object]:
    return {
        "kind": fault.kind,
        "began": _seconds(fault.began),
        "healed": None if fault.healed_at is None else _seconds(fault.healed_at),
        "in_sync_again": None if fault.in_sync_at is None else _seconds(fault.in_sync_at),
        "hit": fault.hit,
        "needs": list(fault.needs),
        "evidence": fault.evidence,
        "bit": fault.bit,
        "silence": _seconds(silence),
    }


def _seconds(ns: int) -> float:
    return round(ns / NS, 3)


def availability(cells: Sequence[CellConclusion]) -> list[Mapping[str, object]]:
    """One row per run and fault: how long nobody led from its beginning on, and how long nothing was acknowledged."""
    rows: list[Mapping[str, object]] = []
    for conclusion in cells:
        settings = conclusion.cell.properties()
        for r in conclusion.results:
            for fault, silence in zip(r.faults, r.silences, strict=True):
                began, until = fault.began, fault.began if fault.in_sync_at is None else fault.in_sync_at
                spans = ((max(a, began), min(b, until)) for a, b in r.leaderless)
                moves = [s.at for s in r.observations if began < s.at <= until]
                rows.append(
                    {
                        "cell": conclusion.cell.name,
                        "fault": fault.kind,
                        "session_seconds": int(settings["broker.session.timeout.ms"]) / 1000,
                        "lag_seconds": int(settings["replica.lag.time.max.ms"]) / 1000,
                        "leaderless_seconds": _seconds(sum(max(0, b - a) for a, b in spans)),
                        "decided_after_seconds": _seconds(moves[0] - began) if moves else None,
                        "silent_seconds": _seconds(silence),
                    }
                )
    return rows
