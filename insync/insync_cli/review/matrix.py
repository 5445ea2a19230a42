"""`insync matrix`: every design at every setting under every fault budget, a run file and a verdict for each cell."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from insync_cli import options, places, registry, runfile, terminal
from insync_cli.exits import Exit, Inconclusive, InputError, UsageError, did_you_mean
from insync_cli.families import family_of
from insync_cli.omissions import omissions_text
from insync_cli.on_spark import SPARK
from insync_cli.options import Usage, design_name, group, option, repeated_option
from insync_cli.own_premises import own_premises
from insync_cli.progress import Ticker, interruptible
from insync_cli.review import matrix_spark
from insync_cli.room_line import notice_line, precursor_line, room_line
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import save
from insync_cli.version import version
from insync_cli.workers import forks
from isr_check.engine import Engine, Exploration, Finding, Limits, Verdict, silent
from isr_check.worth import without_premises
from isr_report.matrix.grid import (
    SCHEMA,
    CellEntry,
    DesignEntry,
    FaultEntry,
    Matrix,
    PromiseEntry,
    parsed_matrix,
    read_matrix,
    verdict_of,
)
from isr_report.matrix.plan import STANDARD, Cell, Plan, assignments, cells, check_plan, load_plan
from isr_trace.trace import TraceError

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Design, Instance
    from isr_pipeline.locations import Location

EXAMPLE = """\
insync matrix
insync matrix --design kip-966 --fault power --out runs/matrix
insync matrix --plan mine.toml --json -"""
FILE = "matrix.json"
PARTIAL = "matrix.partial.json"
"""The cells of a run that was stopped. What was there before stays."""
FOLDER: Path | Location = Path("runs/matrix")
WORDS = {"HOLDS": "holds", "TOO SMALL": "too small", "VACUOUS": "nothing", "VIOLATED": "LOST", "BUDGETED": "?"}
BROKEN_WORD = "BROKEN"
ANSWERS = {Verdict.HOLDS, Verdict.BOUNDED, Verdict.PROVED, Verdict.VIOLATED}
LONGEST = 1_000_000
"""More steps than any witness has."""


USAGE = Usage("matrix", "The guarantees: designs x settings x fault budgets, each cell a run.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    plan: Path = option("FILE", "another plan than the standard one", Path, STANDARD)
    designs: tuple[str, ...] = repeated_option("D", "only this design", design_name, name="design")
    own: options.OwnDesigns = group(options.OwnDesigns)
    faults: tuple[str, ...] = repeated_option("F", "only under this fault of the plan", str, name="fault")
    out: Path | Location = option("DIR", f"where {FILE} and the runs go; may be s3://...", places.place, FOLDER)
    running: options.RunningEach = group(options.RunningEach, "running")
    master: str | None = option("URL", "with --engine spark; without it, this machine alone", str)
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation.output.check()
    if invocation.master is not None and invocation.running.engine != SPARK:
        raise UsageError(f"--master is for --engine {SPARK}")
    plan = plan_of(invocation.plan, invocation.designs, invocation.faults)
    if not any(next(cells(plan, registry.design_named(name)), None) for name in plan.designs):
        raise UsageError(f"no cell is left of the plan: {' and '.join(plan.designs)} has none of these faults")
    folder = places.make_folder(invocation.out)
    check_folder(folder, plan)
    matrix = make_matrix(plan, invocation.running, invocation.output, folder, invocation.master)
    rest_text = left_out_of(invocation.plan, plan, len(matrix["cells"]))

    def details(out: Console) -> None:
        show(out, matrix)
        out.print(f"\nwritten to {folder}/{FILE}, a run file and the counterexamples beside it", soft_wrap=True)

    invocation.output.answer(matrix, details, f"{result_line(matrix)}{'; ' if rest_text else ''}{rest_text}")
    return exit_code(matrix)


def exit_code(matrix: Matrix) -> Exit:
    """As `check` has it of its weakest cell, where no cell decides the first promise. A loss is an answer: 0."""
    verdicts = {p["verdict"] for c in matrix["cells"] for p in c["promises"]}
    if Verdict.ERROR in verdicts:
        return Exit.INTERNAL
    if verdicts & {Verdict.BUDGETED, Verdict.SAMPLED, Verdict.UNKNOWN}:
        return Exit.INCONCLUSIVE
    about = {entry["verdict"] for entry in first_promise(matrix)}
    if about & ANSWERS:
        return Exit.HOLDS
    return Exit.TOO_SMALL if about == {Verdict.TOO_SMALL} else Exit.UNCOVERED


def first_promise(matrix: Matrix) -> list[PromiseEntry]:
    """What each cell that asks it says of the promise that the matrix is about."""
    promise = next(iter(matrix["promises"]), "")
    return [entry for cell in matrix["cells"] if (entry := verdict_of(cell, promise))]


def plan_of(file: Path = STANDARD, designs: Sequence[str] = (), faults: Sequence[str] = ()) -> Plan:
    """The plan in a file, reduced to the designs and faults that were chosen."""
    try:
        plan = load_plan(file)
    except TraceError as problem:
        raise InputError(str(problem)) from None
    for name in tuple(designs) or plan.designs:
        check_promise(plan, registry.design_named(name))
    strangers = [
        d for d in (*plan.own_bounds, *(d for f in plan.faults for d in f.designs)) if d not in registry.designs()
    ]
    try:
        check_plan(plan, map(registry.design_named, dict.fromkeys((*plan.designs, *designs))), file)
    except TraceError as problem:
        raise InputError(str(problem)) from None
    if strangers:
        raise InputError(f"{file}: there is no design '{strangers[0]}'{did_you_mean(strangers[0], registry.designs())}")
    known = [f.name for f in plan.faults]
    strange = next((f for f in faults if f not in known), None)
    if strange:
        raise UsageError(
            f"there is no fault '{strange}' in the plan{did_you_mean(strange, known)}; it has {', '.join(known)}"
        )
    return attrs.evolve(
        plan,
        designs=tuple(designs) or plan.designs,
        faults=tuple(f for f in plan.faults if not faults or f.name in faults),
    )


def left_out_of(file: Path, plan: Plan, cell_count: int) -> str:
    """How many designs and faults of the plan in the file were not asked for, and how many cells are impossible."""
    whole = load_plan(file)
    impossible = (
        sum(sum(1 for _ in assignments(plan, registry.design_named(name))) for name in plan.designs) - cell_count
    )
    designs, faults = (
        set(whole.designs) - set(plan.designs),
        {f.name for f in whole.faults} - {f.name for f in plan.faults},
    )
    return omissions_text(
        (len(designs), "other design", " of the plan"),
        (len(faults), "other fault", " of the plan"),
        (impossible, "cell", " whose settings contradict each other"),
    )


def check_promise(plan: Plan, design: Design) -> None:
    """UsageError where the design lacks the first promise of the plan, which the cells and the last line are about."""
    first = plan.promises[0]
    if first not in {p.name for p in design.properties}:
        raise UsageError(
            f"{design.name} does not promise {first}, which this matrix is about; "
            f"'insync check {design.name}' asks what it promises"
        )


def questions(plan: Plan) -> list[tuple[Cell, Instance]]:
    """Every cell with the model that answers it."""
    return [pair for name in plan.designs for pair in cells(plan, registry.design_named(name))]


def check_folder(folder: Path | Location, plan: Plan) -> None:
    """UsageError where the folder has a matrix with cells that this one lacks: it would be overwritten by a part."""
    file = folder / FILE
    try:
        found = read_matrix(file) if isinstance(file, Path) else parsed_matrix(file.read().decode(), str(file))
        before = {c["name"] for c in found["cells"]}
    except (TraceError, OSError, UnicodeDecodeError):
        return  # there is none, or none that can be read
    lost = len(before - {cell.name for cell, _ in questions(plan)})
    if lost:
        raise UsageError(
            f"{file} has {terminal.count(lost, 'cell')} that this run would not make, and would be replaced; "
            "choose another folder with --out"
        )


def make_matrix(
    plan: Plan, running: options.RunningEach, output: QuietOutput, out: Path | Location, master: str | None = None
) -> Matrix:
    """Run every cell; the document is written into the folder, too. Inconclusive if Ctrl-C, TERM or HUP ends it."""
    with places.local_folder(out) as folder:
        return _explore_plan(plan, Cells(running, out if running.engine == SPARK else folder), output, folder, master)


def _explore_plan(plan: Plan, explore: Cells, output: QuietOutput, folder: Path, master: str | None) -> Matrix:
    every = questions(plan)
    entries: list[CellEntry] = []
    shortest: dict[str, int] = {}
    try:
        with output.ticker() as ticker, interruptible():
            answers = shared(every, explore, master, ticker)
            for (cell, instance), (entry, witnesses) in zip(every, answers, strict=True):
                entries.append(entry)
                ticker.count(len(entries), len(every), "cells")
                new = [f for f in witnesses if f.path and len(f.path.steps) < shortest.get(f.name, LONGEST)]
                for name, path in save(instance, new, folder / cell.name).items():
                    line = next(p for p in entry["promises"] if p["name"] == name)
                    line["trace"], shortest[name] = str(path.relative_to(folder)), line["depth"] or 0
    except KeyboardInterrupt:
        terminal.write_json(str(folder / PARTIAL), document(plan, entries))
        told = f"stopped after {len(entries)} of {terminal.count(len(every), 'cell')}"
        raise Inconclusive(f"{told}, which are in {explore.folder / PARTIAL}") from None
    found = document(plan, entries)
    terminal.write_json(str(folder / FILE), found)
    return found


def document(plan: Plan, entries: list[CellEntry]) -> Matrix:
    """The matrix document of these cells."""
    designs = [registry.design_named(name) for name in plan.designs]
    promise_docs = {p.name: p.doc for design in reversed(designs) for p in design.properties}
    return Matrix(
        schema=SCHEMA,
        version=version(),
        designs=[DesignEntry(name=d.name, summary=d.summary) for d in designs],
        promises={name: promise_docs.get(name, "") for name in (*plan.promises, *plan.probes)},
        settings={name: list(values) for name, values in plan.settings.items()},
        faults=[FaultEntry(name=f.name, says=f.says, count=f.count, recommended=f.is_recommended) for f in plan.faults],
        usual=dict(plan.usual),
        client=dict(plan.client),
        cells=entries,
    )


@attrs.frozen
class Cells:
    """How cells are explored, and where their files go."""

    running: options.RunningEach
    folder: Path | Location
    version: str = attrs.field(factory=version)
    """Which insync this is; where it is not installed, Python cannot tell."""

    def __call__(self, cell: Cell, instance: Instance) -> tuple[CellEntry, list[Finding]]:
        with places.local_folder(self.folder) as folder:
            return explored(cell, instance, self.running, folder, self.version)


_job: tuple[Sequence[tuple[Cell, Instance]], Cells] | None = None


def shared(
    every: Sequence[tuple[Cell, Instance]], explore: Cells, master: str | None, ticker: Ticker
) -> Iterator[tuple[CellEntry, list[Finding]]]:
    """All cells in order, by several processes, which are forks of this one: an instance cannot be sent to another."""
    global _job
    running = explore.running
    if running.engine == SPARK:
        folder = explore.folder.absolute() if isinstance(explore.folder, Path) else explore.folder
        there = attrs.evolve(explore, running=attrs.evolve(running, engine=None), folder=folder)
        yield from matrix_spark.sweep_cells([cell for cell, _ in every], there, master, running.workers, ticker)
        return
    workers = running.workers or os.cpu_count() or 1
    if workers == 1:
        yield from (explore(cell, instance) for cell, instance in every)
        return
    _job = every, explore
    with forks(min(workers, len(every) or 1)) as pool:
        yield from pool.map(_explored, range(len(every)))


def _explored(n: int) -> tuple[CellEntry, list[Finding]]:
    assert _job is not None, "forked after the job was set"
    every, explore = _job
    return explore(*every[n])


def explored(
    cell: Cell, instance: Instance, running: options.RunningEach, folder: Path, version: str
) -> tuple[CellEntry, list[Finding]]:
    """One cell: its run file and counterexamples, in its own folder; and what its probes found."""
    engine = running.engine_name
    explore, workers = registry.engine_named(engine, 1)  # one process per cell, one worker in each
    place = terminal.make_folder(folder / cell.name)
    limits = Limits(running.max_states, running.max_seconds)
    family = family_of(instance.design)
    of_own = own_premises(instance.design, cell.property_names)
    probes = (*family.probes(cell.property_names), *of_own.values())
    probed, wanted = instance.promising(*probes), (*cell.property_names, *(p.name for p in probes))
    if cell.fewer_states and {"symmetry", "reduction"} <= set(inspect.signature(explore).parameters):
        explore = cast("Engine", partial(cast("Callable[..., Exploration]", explore), symmetry=True, reduction=True))
    result = explore(probed, wanted, limits, silent)
    judge, _ = registry.engine_named(registry.default_engine(), workers)
    result = without_premises(result, cell.property_names, of_own)
    worth = family.worth(instance, result, cell.property_names, judge, limits)
    result, notice = family.noticing(instance, worth.exploration, cell.property_names)
    broken = [f for f in result.findings if f.verdict is Verdict.VIOLATED]
    trace_paths = save(instance, broken, place)
    answer = runfile.run_file(
        instance,
        result,
        command=cell.command,
        version=version,
        engine=engine,
        workers=workers,
        findings=result.findings,
        traces={name: str(path.relative_to(folder)) for name, path in trace_paths.items()},
        room=room_line(worth.room),
        precursor=precursor_line(worth.precursor),
        notice=notice_line(notice),
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
        complete=result.complete,
        promises=[
            PromiseEntry(
                name=line["name"], kind=line["kind"], verdict=line["verdict"], depth=line["depth"], trace=line["trace"]
            )
            for line in answer["properties"]
        ],
    )
    return entry, [f for f in result.findings if f.kind.startswith("sometimes") and f.path is not None]


def show(out: Console, matrix: Matrix) -> None:
    """A table per fault: a row per design, a column per setting, and what happens to what was acknowledged."""
    promise = next(iter(matrix["promises"]), "")
    for fault in matrix["faults"]:
        here = [c for c in matrix["cells"] if c["fault"] == fault["name"]]
        columns = list(dict.fromkeys(column_name(c) for c in here))
        out.print(f"\n{fault['name']}: {fault['says']}", style="bold")
        rows = [
            (design["name"], *(word(here, design["name"], column, promise) for column in columns), "")
            for design in matrix["designs"]
            if any(c["design"] == design["name"] for c in here)
        ]
        terminal.print_table(out, (promise, *columns, ""), rows)


def column_name(cell: CellEntry) -> str:
    """`1/off/all`: the settings in the order of the plan."""
    return "/".join(cell["settings"].values())


def word(here: list[CellEntry], design: str, column: str, promise: str) -> str:
    """`holds`, `LOST 6` with the steps, `BROKEN_WORD` where only other promises fail."""
    cell = next((c for c in here if c["design"] == design and column_name(c) == column), None)
    promise_entry = verdict_of(cell, promise) if cell is not None else None
    if cell is None or promise_entry is None:
        return ""
    if promise_entry["verdict"] == Verdict.VIOLATED:
        return f"{WORDS[Verdict.VIOLATED]} {promise_entry['depth']}"
    others = any(p["verdict"] == Verdict.VIOLATED for p in cell["promises"])
    return BROKEN_WORD if others else WORDS.get(promise_entry["verdict"], promise_entry["verdict"])


def result_line(matrix: Matrix) -> str:
    """What the cells say of the first promise, each verdict with its count, so that none passes for another."""
    promise = next(iter(matrix["promises"]), "")
    entries = first_promise(matrix)
    count = Counter(entry["verdict"] for entry in entries)
    total, states = len(matrix["cells"]), sum(c["distinct"] for c in matrix["cells"])
    of = "" if len(entries) == total else f" of the {len(entries)} that ask it"
    others = [f"{word} in {n}" for word, n in sorted(count.items()) if word != Verdict.VIOLATED]
    verdicts = ", ".join([f"violated in {count[Verdict.VIOLATED]}{of}", *others])
    cells = terminal.count(total, "cell")
    return f"insync matrix: {cells}, {states:,} states, {promise} {verdicts}"
