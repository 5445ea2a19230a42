"""`insync matrix`: every design at every setting under every fault budget, a run file and a verdict for each cell."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import registry, runfile, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.progress import Brake, Ticker
from insync_cli.review import matrix_spark
from insync_cli.tracefiles import save
from insync_cli.version import version
from isr_check.engine import Finding, Limits, Verdict
from isr_report.grid import SCHEMA, CellEntry, DesignEntry, FaultEntry, Matrix, PromiseEntry, verdict_of
from isr_report.plan import STANDARD, Cell, Plan, cells, load_plan
from isr_trace.trace import TraceError

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Instance

EXAMPLE = """\
insync matrix
insync matrix --design kip-966 --fault power --out runs/matrix
insync matrix --plan mine.toml --json -"""
FILE = "matrix.json"
FOLDER = "runs/matrix"
WORDS = {"EXHAUSTED": "holds", "VIOLATED": "LOST", "BUDGETED": "?"}
BROKEN = "BROKEN"
LONGEST = 1_000_000
"""More steps than any witness has."""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("matrix", "The guarantees: designs x settings x fault budgets, each cell a run.", EXAMPLE)
    p.add_argument("--plan", metavar="FILE", help=f"another plan than the standard one ({STANDARD.name})")
    p.add_argument("--design", action="append", default=[], metavar="D", dest="chosen", help="only these; repeatable")
    p.add_argument("--fault", action="append", default=[], metavar="F", help="only under these; repeatable")
    p.add_argument("--out", metavar="DIR", default=FOLDER, help=f"where {FILE} and the runs go (default {FOLDER})")
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_running()
    p.add_argument("--master", metavar="URL", help="with --engine spark; default: this machine alone")
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    terminal.check_json_target(cast("str | None", given.json))
    if given.master is not None and given.engine != matrix_spark.SPARK:
        raise UsageError(f"--master is for --engine {matrix_spark.SPARK}")
    folder = terminal.make_folder(Path(cast("str", given.out)))
    found = made(plan_given(given), given, folder)

    def details(out: Console) -> None:
        show(out, found)
        out.print(f"\nwritten to {folder}/{FILE}, a run file and the counterexamples beside it", soft_wrap=True)

    terminal.answer(given, found, details, result_line(found))
    undecided = any(p["verdict"] == Verdict.BUDGETED for c in found["cells"] for p in c["promises"])
    return Exit.INCONCLUSIVE if undecided else Exit.HOLDS


def plan_given(given: Namespace) -> Plan:
    """The plan, less what was not chosen."""
    import attrs

    chosen, faults = cast("list[str]", given.chosen), cast("list[str]", given.fault)
    try:
        plan = load_plan(Path(given.plan) if given.plan else STANDARD)
    except TraceError as problem:
        raise InputError(str(problem)) from None
    for name in (*plan.designs, *chosen):
        registry.design_named(name)
    known = [f.name for f in plan.faults]
    strange = next((f for f in faults if f not in known), None)
    if strange:
        raise UsageError(f"there is no fault '{strange}' in the plan; it has {', '.join(known)}")
    return attrs.evolve(
        plan,
        designs=tuple(chosen) or plan.designs,
        faults=tuple(f for f in plan.faults if not faults or f.name in faults),
    )


def made(plan: Plan, given: Namespace, folder: Path) -> Matrix:
    """Run every cell; the document is written into the folder, too."""
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    designs = [registry.design_named(name) for name in plan.designs]
    every = [pair for design in designs for pair in cells(plan, design)]
    done: list[CellEntry] = []
    shortest: dict[str, int] = {}
    for (cell, instance), (entry, witnesses) in zip(every, shared(every, given, folder), strict=True):
        ticker.count(len(done) + 1, len(every), "cells")
        done.append(entry)
        new = [f for f in witnesses if f.path and len(f.path.steps) < shortest.get(f.name, LONGEST)]
        for name, path in save(instance, new, folder / cell.name).items():
            line = next(p for p in entry["promises"] if p["name"] == name)
            line["trace"], shortest[name] = str(path.relative_to(folder)), line["depth"] or 0
    ticker.close()
    promised = {p.name: p.doc for design in reversed(designs) for p in design.properties}
    matrix = Matrix(
        schema=SCHEMA,
        version=version(),
        designs=[DesignEntry(name=d.name, summary=d.summary) for d in designs],
        promises={name: promised.get(name, "") for name in (*plan.promises, *plan.probes)},
        settings={name: list(values) for name, values in plan.settings.items()},
        faults=[FaultEntry(name=f.name, says=f.says, count=f.count) for f in plan.faults],
        usual=dict(plan.usual),
        client=dict(plan.client),
        cells=done,
    )
    terminal.write_json(str(folder / FILE), matrix)
    return matrix


_job: tuple[Sequence[tuple[Cell, Instance]], Namespace, Path] | None = None


def shared(
    every: Sequence[tuple[Cell, Instance]], given: Namespace, folder: Path
) -> Iterator[tuple[CellEntry, list[Finding]]]:
    """All cells in order, by several processes, which are forks of this one: an instance cannot be sent to another."""
    global _job
    if given.engine == matrix_spark.SPARK:
        yield from matrix_spark.swept([cell for cell, _ in every], given, folder, explored)
        return
    _job = every, given, folder
    workers = cast("int | None", given.workers) or os.cpu_count() or 1
    if workers == 1:
        yield from map(_explored, range(len(every)))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        yield from pool.map(_explored, range(len(every)))


def _explored(n: int) -> tuple[CellEntry, list[Finding]]:
    assert _job is not None, "forked after the job was set"
    every, given, folder = _job
    return explored(*every[n], given, folder)


def explored(cell: Cell, instance: Instance, given: Namespace, folder: Path) -> tuple[CellEntry, list[Finding]]:
    """One cell: its run file and counterexamples, in its own folder; and what its probes found."""
    engine = cast("str | None", given.engine) or registry.default_engine()
    explore, workers = registry.engine_named(engine, 1)  # one process per cell, one worker in each
    place = terminal.make_folder(folder / cell.name)
    with Brake() as brake:
        limits = Limits(cast("int | None", given.max_states), cast("float | None", given.max_seconds), brake)
        found = explore(instance, cell.wanted, limits, lambda _: None)
    broken = [f for f in found.findings if f.verdict is Verdict.VIOLATED]
    saved = save(instance, broken, place)
    answer = runfile.run_file(
        instance,
        found,
        command=cell.command,
        version=version(),
        engine=engine,
        workers=workers,
        findings=found.findings,
        traces={name: str(path.relative_to(folder)) for name, path in saved.items()},
    )
    terminal.write_json(str(place / "run.json"), answer)
    entry = CellEntry(
        name=cell.name,
        design=cell.design,
        model_hash=answer["model_hash"],
        settings=dict(cell.settings),
        fault=cell.fault,
        constants=dict(instance.constants),
        run=f"{cell.name}/run.json",
        command=cell.command,
        distinct=answer["stats"]["distinct"],
        generated=answer["stats"]["generated"],
        depth=answer["stats"]["depth"],
        seconds=answer["stats"]["seconds"],
        complete=found.complete,
        promises=[
            PromiseEntry(
                name=line["name"], kind=line["kind"], verdict=line["verdict"], depth=line["depth"], trace=line["trace"]
            )
            for line in answer["properties"]
        ],
    )
    return entry, [f for f in found.findings if f.kind.startswith("sometimes") and f.path is not None]


def show(out: Console, found: Matrix) -> None:
    """A table per fault: a row per design, a column per setting, and what happens to what was acknowledged."""
    promise = next(iter(found["promises"]), "")
    for fault in found["faults"]:
        here = [c for c in found["cells"] if c["fault"] == fault["name"]]
        columns = list(dict.fromkeys(column_name(c) for c in here))
        out.print(f"\n{fault['name']}: {fault['says']}", style="bold")
        rows = [
            (design["name"], *(word(here, design["name"], column, promise) for column in columns), "")
            for design in found["designs"]
            if any(c["design"] == design["name"] for c in here)
        ]
        terminal.print_table(out, (promise, *columns, ""), rows)


def column_name(cell: CellEntry) -> str:
    """`1/off/all`: the settings in the order of the plan."""
    return "/".join(cell["settings"].values())


def word(here: list[CellEntry], design: str, column: str, promise: str) -> str:
    """`holds`, `LOST 6` with the steps, `BROKEN` where only other promises fail."""
    cell = next((c for c in here if c["design"] == design and column_name(c) == column), None)
    said = verdict_of(cell, promise) if cell is not None else None
    if cell is None or said is None:
        return ""
    if said["verdict"] == Verdict.VIOLATED:
        return f"{WORDS[Verdict.VIOLATED]} {said['depth']}"
    others = any(p["verdict"] == Verdict.VIOLATED for p in cell["promises"])
    return BROKEN if others else WORDS.get(said["verdict"], said["verdict"])


def result_line(found: Matrix) -> str:
    total, lost = len(found["cells"]), 0
    promise = next(iter(found["promises"]), "")
    for cell in found["cells"]:
        said = verdict_of(cell, promise)
        lost += said is not None and said["verdict"] == Verdict.VIOLATED
    states = sum(c["distinct"] for c in found["cells"])
    return f"insync matrix: {total} cells, {states:,} states, {promise} violated in {lost}"
