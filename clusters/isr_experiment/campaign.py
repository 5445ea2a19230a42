"""A whole experiment: its cells, each as often as wanted, with every result written as soon as there is one."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from isr_experiment import conclusions
from isr_experiment.catalogue import Experiment
from isr_experiment.cell_run import Options, Result, conduct
from isr_experiment.cells import Cell
from isr_experiment.conclusions import CellConclusion
from isr_experiment.model import Prediction, prediction
from isr_experiment.page import page
from isr_experiment.systems import SystemUnderTest
from isr_experiment.timeline import timeline

FILE = "experiment.json"
PAGE = "experiment.html"


def folder_name(cell: Cell, number: int) -> str:
    """Readable, and a name of a folder everywhere."""
    return f"{re.sub(r'[^a-z0-9.]+', '-', cell.name.lower()).strip('-')}-{number}"


def lacking(
    experiment: Experiment, system: SystemUnderTest, first: int = 0, only: Sequence[str] = ()
) -> dict[str, str]:
    """The cells that a system cannot run, each with the reason."""
    cells = [cell for cell in experiment.cells(first) if not only or cell.name in only]
    return {cell.name: why for cell in cells if (why := system.lacks(cell))}


def stands(cell: Cell, left_out: Container[str]) -> bool:
    """Whether a cell is run: one that stands in for another only where that is left out."""
    return not cell.instead_of or cell.instead_of in left_out


def perform_experiment(
    experiment: Experiment,
    out: Path,
    runs: int,
    options: Options,
    command: Sequence[str],
    over: threading.Event,
    tell: Callable[[str], None],
    first: int = 0,
    only: Sequence[str] = (),
    ask_model: bool = True,
    style: str = "",
) -> list[CellConclusion]:
    """Every cell in every round, until there are so many valid runs of each, or half as many more were tried.

    `style` is the style sheet of the page. An earlier experiment's answer in the folder goes first: it would stand
    beside the runs of this one until the last of them is over.
    """
    for earlier in (FILE, PAGE):
        (out / earlier).unlink(missing_ok=True)
    left_out = lacking(experiment, options.system, first, only)
    for name, why in left_out.items():
        tell(f"left out: {name}: {why}")
    cells = [cell for cell in experiment.cells(first) if not only or cell.name in only]
    names = [cell.name for cell in cells if cell.name not in left_out and (cell.name in only or stands(cell, left_out))]
    results: dict[str, list[Result]] = {name: [] for name in names}
    latest: dict[str, Cell] = {}

    def write_conclusions(predictions: Mapping[str, Prediction | None]) -> list[CellConclusion]:
        concluded_cells = [
            CellConclusion(
                cell=cell, results=tuple(results[name]), prediction=predictions.get(name), required_runs=runs
            )
            for name, cell in latest.items()
        ]
        document = conclusions.document(
            experiment.name, experiment.says, concluded_cells, options, command, over.is_set()
        )
        document["left_out"] = left_out
        document["availability"] = conclusions.availability(concluded_cells)
        (out / FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (out / PAGE).write_text(page(document, style), encoding="utf-8")
        return concluded_cells

    began, whole = time.monotonic(), runs * len(names)
    for turn in range(runs + (runs + 1) // 2):
        for cell in experiment.cells(first + turn):
            if cell.name not in results or over.is_set():
                continue
            if sum(not r.invalid for r in results[cell.name]) >= runs:
                continue
            latest[cell.name] = cell
            name = folder_name(cell, first + turn)
            result = conduct(cell, first + turn, out / name, options, over, tell)
            results[cell.name].append(result)
            _keep(out / name, result)
            tell(_result_line(result))
            tell(_progress_line(sum(map(len, results.values())), whole, time.monotonic() - began))
    cell_predictions: dict[str, Prediction | None] = {}
    cell_conclusions = write_conclusions(cell_predictions)
    for name, cell in latest.items() if ask_model else ():
        if over.is_set():
            break
        tell(f"the model is asked about {name}")
        cell_predictions[name] = prediction(cell, over.is_set)
        cell_conclusions = write_conclusions(cell_predictions)
    return cell_conclusions


def _keep(folder: Path, result: Result) -> None:
    run = conclusions.run(result)
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    (folder / "timeline.svg").write_text(timeline(run), encoding="utf-8")


def _progress_line(run_count: int, whole: int, seconds: float) -> str:
    """How many runs are done, and how long the others take if none of them is invalid and they take as long."""
    if run_count >= whole:
        return f"{run_count} runs are done"
    left = seconds / run_count * (whole - run_count)
    told = f"{left / 60:.0f} min" if left >= 100 else f"{left:.0f} s"
    return f"{run_count} of {whole} runs are done; estimate {told} more"


def _result_line(r: Result) -> str:
    whole, traces = r.whole, ""
    more = f", read though never acknowledged and lost {n:,}" if (n := whole.lost_unacknowledged) else ""
    if r.trace_verdict is not None:
        verdict = "accepted" if r.trace_verdict.accepted else f"REJECTED ({r.trace_verdict.why})"
        traces = f", {r.trace_verdict.events:,} events {verdict}"
    return (
        f"{r.cell} #{r.number}: attempted {whole.attempted:,}, acknowledged {whole.acknowledged:,}, "
        f"lost {whole.lost:,}{more}, there without acknowledgement {whole.recovered:,}; "
        f"leader x{r.leaders}, ISR x{r.isrs}, {r.dropped_bytes:,} bytes dropped; "
        f"checks {' '.join([r.verdict, *r.violated])}{traces}; {r.seconds:.0f} s; "
        f"{f'INVALID: {chr(59).join(r.invalid)}' if r.invalid else 'valid'}"
    )
