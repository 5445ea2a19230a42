"""What the runs of a cell add up to, and what all cells do: the one document that reports are made from.

`document` is `experiment.json` (schema `insync/experiment/1`, docs/experiment.md); times in it are seconds of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs

from isr_experiment.cells import LAG_MS, SESSION_MS, Cell, Expected
from isr_experiment.model import Predicted
from isr_experiment.run import Options, Result
from isr_experiment.stage import Struck

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
    return result.traced is not None and not result.traced.accepted


@attrs.frozen(kw_only=True)
class Concluded:
    """A cell with its runs."""

    cell: Cell
    results: tuple[Result, ...]
    predicted: Predicted | None
    wanted: int

    @property
    def valid(self) -> list[Result]:
        """The runs whose faults bit."""
        return [r for r in self.results if not r.invalid]

    @property
    def lost(self) -> int:
        """Acknowledged values that are gone, of all runs."""
        return sum(r.whole.lost for r in self.results)

    @property
    def lost_unacknowledged(self) -> int:
        """Values that somebody read and that are gone, though their producer was told nothing, of all runs."""
        return sum(r.whole.lost_unacknowledged for r in self.results)

    @property
    def verdict(self) -> Verdict:
        """The worst that can be said. A loss counts in a run that is not valid, too."""
        measured, bug = self.lost > 0, self.cell.expected is Expected.CAUGHT
        if not bug and any(map(rejected, self.results)):
            return Verdict.REJECTED
        if self.cell.expected is Expected.NOTHING and (measured or any(r.violated for r in self.results)):
            return Verdict.LOST
        if len(self.valid) < self.wanted:
            return Verdict.INVALID
        if self.cell.expected is Expected.LOSS and not all(r.whole.lost for r in self.valid):
            return Verdict.NO_LOSS
        if bug and not any(r.whole.lost or r.violated or rejected(r) for r in self.valid):
            return Verdict.NOT_CAUGHT
        if self.predicted is not None and self.predicted.loses is None:
            return Verdict.INVALID
        if self.predicted is not None and self.predicted.loses is not measured:
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


def totals(cells: Sequence[Concluded]) -> Totals:
    """Sums over all runs; only valid ones count for the bound."""
    every = [r for c in cells for r in c.results]
    safe = [r for c in cells if c.cell.expected is Expected.NOTHING for r in c.results]
    honest = [r for c in cells if c.cell.expected is not Expected.CAUGHT for r in c.results]
    traced = [r.traced for r in honest if r.traced is not None]
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
        dropped=sum(r.dropped for r in every),
        events=sum(t.events for t in traced),
        rejected=sum(not t.accepted for t in traced),
        validated=len(traced),
    )


def worst(cells: Sequence[Concluded]) -> Verdict:
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


def rates(done: Concluded) -> tuple[Rate, Rate, Rate]:
    """The three of Jepsen's table, each with its own whole: acknowledged of what was attempted, lost of what was
    acknowledged, found of what was not."""
    wholes = [r.whole for r in done.results]
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
    name: str, says: str, cells: Sequence[Concluded], options: Options, command: Sequence[str], cut_short: bool
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


def _cell(done: Concluded) -> dict[str, object]:
    cell = done.cell
    return {
        "name": cell.name,
        "design": cell.design,
        "settings": {"acks": cell.acks, "min_insync": cell.min_insync, "unclean": cell.unclean, "flush": cell.flush},
        "properties": cell.properties(),
        "expected": cell.expected.value,
        "because": cell.because,
        "verdict": done.verdict.value,
        "lost": done.lost,
        "lost_unacknowledged": done.lost_unacknowledged,
        "rates": [attrs.asdict(rate) for rate in rates(done)],
        "timed": cell.timed,
        "model": None if done.predicted is None else attrs.asdict(done.predicted),
        "runs": [run(r) for r in done.results],
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
        "faults": [_fault(s, silence) for s, silence in zip(r.struck, r.silences, strict=True)],
        "changes": {"leaders": r.leaders, "epochs": r.epochs, "isrs": r.isrs},
        "dropped": r.dropped,
        "controller": [
            {"at": _seconds(s.at), "leader": s.leader, "epoch": s.epoch, "isr": s.isr, "elr": s.elr} for s in r.seen
        ],
        "windows": [{**attrs.asdict(w), "at": _seconds(w.at)} for w in r.windows],
        "leaderless": [[_seconds(a), _seconds(b)] for a, b in r.leaderless],
        "waits": [attrs.asdict(w) for w in r.waits],
        "dumped": r.dumped,
        "checks": {"verdict": r.verdict, **r.words},
        "consumer_resets": r.resets,
        "traces": None if r.traced is None else attrs.asdict(r.traced),
    }


def _fault(struck: Struck, silence: int) -> dict[str, object]:
    return {
        "kind": struck.kind,
        "began": _seconds(struck.began),
        "healed": None if struck.healed is None else _seconds(struck.healed),
        "in_sync_again": None if struck.ended is None else _seconds(struck.ended),
        "hit": struck.hit,
        "needs": list(struck.needs),
        "evidence": struck.evidence,
        "bit": struck.bit,
        "silence": _seconds(silence),
    }


def _seconds(ns: int) -> float:
    return round(ns / NS, 3)


def availability(cells: Sequence[Concluded]) -> list[Mapping[str, object]]:
    """One row per run and fault: how long nobody led from its beginning on, and how long nothing was acknowledged."""
    rows: list[Mapping[str, object]] = []
    for done in cells:
        settings = done.cell.properties()
        for r in done.results:
            for struck, silence in zip(r.struck, r.silences, strict=True):
                began, until = struck.began, struck.began if struck.ended is None else struck.ended
                spans = ((max(a, began), min(b, until)) for a, b in r.leaderless)
                moves = [s.at for s in r.seen if began < s.at <= until]
                rows.append(
                    {
                        "cell": done.cell.name,
                        "fault": struck.kind,
                        "session_seconds": int(settings["broker.session.timeout.ms"]) / 1000,
                        "lag_seconds": int(settings["replica.lag.time.max.ms"]) / 1000,
                        "leaderless_seconds": _seconds(sum(max(0, b - a) for a, b in spans)),
                        "decided_after_seconds": _seconds(moves[0] - began) if moves else None,
                        "silent_seconds": _seconds(silence),
                    }
                )
    return rows
