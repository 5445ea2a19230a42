"""`insync report`: one page for a design review, with everything it links to in one folder."""

from __future__ import annotations

import json
import shlex
import shutil
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import guards, matrix, options, registry, runfile, scenes, terminal, visual
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.main import version
from insync_cli.progress import Brake, Ticker
from isr_check.engine import Limits
from isr_check.reference import Evaluator
from isr_report.grid import VIOLATED, Matrix, read_matrix
from isr_report.material import Control, Included, Material, Played, Story, Together, claims
from isr_report.report import claims_text, page
from isr_report.scenes import Scene
from isr_trace.cases import Case, load_cases
from isr_trace.itf import read_itf, write_text
from isr_trace.replay import Replay, run_of, trace_of
from isr_trace.trace import Trace, TraceError
from isr_visual.neighbours import BYTES_AT_MOST
from isr_visual.schedule import counterfactual

EXAMPLE = """\
insync report --out report
insync report --out report --matrix runs/matrix --include prove.json --include mutate.json"""
MATRIX, CASES, CELLS = "matrix", "cases", "cells"
CORPUS = "counterexamples"
SIDE_BY_SIDE, TODAY = "jepsen-2013", "kip-966"
DRAWN = ".svg"
ROOM = 40_000
"""Bytes for what else could happen, on the page of a cell."""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("report", "One page for a design review, made from run files and traces only.", EXAMPLE)
    p.add_argument("--out", metavar="DIR", default="report", help="the folder to make (default report)")
    p.add_argument("--matrix", metavar="DIR", help="what insync matrix made (default: it is made now)")
    p.add_argument("--cases", metavar="DIR", default=CORPUS, help=f"the corpus of stories (default {CORPUS})")
    p.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="FILE",
        help="JSON of insync prove or mutate, or the SVG of prove --graph; repeatable",
    )
    p.add_argument("--quiet", action="store_true", help="only the result line")
    p.add_argument("--no-pages", action="store_true", help="cells link to their trace files, not to pages")
    p.add_running()
    p.add_json()
    p.set_defaults(plan=None, chosen=[], fault=[])
    return p.read(argv)


def run(given: Namespace) -> int:
    folder = terminal.make_folder(Path(cast("str", given.out)))
    try:
        material = gathered(given, folder)
        write_text(folder / "index.html", page(material))
        write_text(folder / "claims.json", claims_text(material))
        terminal.write_json(cast("str | None", given.json), json.loads(claims_text(material)))
    except TraceError as problem:
        raise InputError(str(problem)) from None
    if given.json == "-":
        return Exit.HOLDS
    out = terminal.console(plain=cast("bool", given.plain))
    counted = f"{len(material.matrix['cells'])} cells, {len(material.stories)} stories, {len(material.scenes)} scenes"
    out.print(
        f"insync report: {folder}/index.html, {counted}, {len(claims(material))} claims with a command", soft_wrap=True
    )
    return Exit.HOLDS


def gathered(given: Namespace, folder: Path) -> Material:
    """Everything that the page shows; what is not there yet is run, or made, now."""
    found = matrix_of(given, folder / MATRIX)
    corpus = Path(cast("str", given.cases))
    told = [story(case, corpus, given, folder) for case in load_cases(corpus / visual.CASES).cases]
    today = registry.design_named(TODAY)
    extra = [Path(name) for name in cast("list[str]", given.include)]
    return Material(
        matrix=found,
        folder=MATRIX,
        pages={} if given.no_pages else cell_pages(found, folder, given),
        stories=told,
        scenes=[played(s, folder) for s in scenes.loaded()],
        together=next((together(s) for s in told if s.case.name == SIDE_BY_SIDE), None),
        included=[included(path, folder) for path in extra if path.suffix != DRAWN],
        graphs=[drawing(path) for path in extra if path.suffix == DRAWN],
        redundant=[(TODAY, *guard, reason) for guard, reason in guards.redundant(None, TODAY).items()],
        assumptions=not_modelled(),
        bounds={c.doc: bounds_said(found, c.name) for c in today.constants() if not c.names and not c.budget},
        version=version(),
        model_hash=today.model_hash(),
        hashes={name: design.model_hash() for name, design in registry.designs().items()},
    )


def matrix_of(given: Namespace, place: Path) -> Matrix:
    chosen = cast("str | None", given.matrix)
    if chosen is None:
        return matrix.made(matrix.plan_given(given), given, terminal.make_folder(place))
    read_matrix(Path(chosen) / matrix.FILE)
    if Path(chosen).resolve() != place.resolve():
        shutil.copytree(chosen, place, dirs_exist_ok=True)
    return read_matrix(place / matrix.FILE)


def story(case: Case, corpus: Path, given: Namespace, folder: Path) -> Story:
    """A case with its page, its trace, and both of its controls run again."""
    source = corpus / case.name / "trace.itf.json"
    itf, target = f"{CASES}/{case.name}.itf.json", f"{CASES}/{case.name}.html"
    terminal.make_folder(folder / CASES)
    shutil.copyfile(source, folder / itf)
    trace = read_itf(source)
    visual.write_page([(source, trace, "")], folder / target, None)
    found = control(case.command, f"{CASES}/{case.name}-broken.json", given, folder)
    fixed = control(case.fixed_command, f"{CASES}/{case.name}-mended.json", given, folder) if case.fixed_by else None
    return Story(case, trace, target, itf, found, fixed)


def control(command: str, target: str, given: Namespace, folder: Path) -> Control:
    """Run `insync check ...` of a case; its run file goes into the report's folder."""
    from insync_cli import check

    asked = check.parser(shlex.split(command)[2:])
    design = options.design_given(asked)
    instance = registry.instance_of(design, options.constants_given(asked))
    engine = cast("str | None", given.engine) or registry.default_engine()
    explore, workers = registry.engine_named(engine, cast("int | None", given.workers) or 1)
    wanted = tuple(cast("list[str]", asked.property))
    with Brake() as brake:
        limits = Limits(cast("int | None", given.max_states), cast("float | None", given.max_seconds), brake)
        found = explore(instance, wanted, limits, lambda _: None)
    answer = runfile.run_file(
        instance,
        found,
        command=shlex.split(command),
        version=version(),
        engine=engine,
        workers=workers,
        findings=found.findings,
        traces={},
    )
    terminal.write_json(str(folder / target), answer)
    line = answer["properties"][0]
    return Control(design.name, command, line["verdict"], line["depth"], answer["stats"]["distinct"], target)


def cell_pages(found: Matrix, folder: Path, given: Namespace) -> dict[str, str]:
    """A page for the first promise that each cell breaks; cells whose stories are the same share it."""
    pages, stories = dict[str, str](), dict[object, str]()
    ticker = Ticker(quiet=cast("bool", given.quiet), plain=cast("bool", given.plain))
    broken = [(c, p) for c in found["cells"] for p in c["promises"] if p["verdict"] == VIOLATED and p["trace"]]
    for n, (cell, promise) in enumerate(broken, 1):
        ticker.count(n, len(broken), "counterexamples")
        name = str(promise["trace"])
        source = folder / MATRIX / name
        trace = read_itf(source)
        same = (cell["design"], promise["name"], tuple(trace.step_text(s) for s in trace.steps))
        if same not in stories:
            stories[same] = f"{CELLS}/{cell['name']}-{promise['name']}.html"
            if promise is next(p for p in cell["promises"] if p["verdict"] == VIOLATED):
                page_of_cell(source, trace, folder / stories[same])
            else:
                del stories[same]
        if same in stories:
            pages[name] = stories[same]
    ticker.close()
    return pages


def page_of_cell(source: Path, trace: Trace, target: Path) -> None:
    from isr_trace.itf import itf_text
    from isr_visual.page import page as visual_page

    described = visual.described(source, trace, room=min(ROOM, BYTES_AT_MOST))
    write_text(target, visual_page([(described, itf_text(trace))], f"{trace.design}: {trace.property_name}"))


def played(s: Scene, folder: Path) -> Played:
    trace, target = scenes.trace_of(s), f"scenes/{s.name}.html"
    write_text(folder / target, scenes.page_of(s, trace))
    return Played(s, trace, target)


def together(s: Story) -> Together:
    """The schedule of a story under today's design with its defaults."""
    here = Evaluator(registry.instance_of(registry.design_named(s.case.design), s.trace.constants))
    today = registry.design_named(TODAY)
    kept = {c.name for c in today.constants() if not c.names and c.name not in today.defaults}
    there = Evaluator(registry.instance_of(today, {n: v for n, v in s.trace.constants.items() if n in kept}))
    states = run_of(s.trace, Replay(here)).states
    turns = counterfactual(s.trace, states, here, there)["turns"]
    refused = [t["refused"]["text"] if t["refused"] is not None else "" for t in turns]
    off = {s.action for s in s.trace.steps} & set(there.instance.off_actions)
    refused[1:] = [
        f"{step.action} is switched off at these settings" if step.action in off else said
        for step, said in zip(s.trace.steps, refused[1:], strict=True)
    ]
    replay = Replay(there)
    moves = [m for m, no in zip(run_of(s.trace, Replay(here)).moves, refused[1:], strict=True) if not no]
    run = replay.lenient(tuple(s.trace.initial.values()), moves)
    upto = [i - sum(bool(r) for r in refused[1 : i + 1]) for i in range(len(refused))]
    return Together(
        here=s.trace,
        there=trace_of(run, there.instance),
        here_label=f"{s.case.design}, {settings_said(here)}",
        there_label=f"{TODAY}, {settings_said(there)}",
        upto=tuple(upto),
        refused=tuple(refused),
        page=s.page,
    )


def settings_said(evaluator: Evaluator) -> str:
    constants = evaluator.instance.constants
    return f"min ISR {constants['min_insync']}, unclean {'on' if constants['unclean'] else 'off'}"


def drawing(path: Path) -> tuple[str, str]:
    """What insync prove --graph drew."""
    try:
        return path.name, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from None


def included(path: Path, folder: Path) -> Included:
    try:
        report = cast("dict[str, object]", json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as problem:
        raise InputError(f"{path}: cannot be read as JSON: {problem}") from None
    if not str(report.get("schema", "")).startswith("insync/"):
        raise UsageError(f"{path} is not a report of insync's: it names no schema")
    name = f"included/{path.parent.name}-{path.name}"
    write_text(folder / name, json.dumps(report, indent=1))
    return Included(file=name, report=report)


def not_modelled() -> str:
    """What the model says of itself."""
    from isr_model import __doc__ as said

    text = " ".join((said or "").split())
    start = text.index("Not modelled:")
    return text[start : text.index(" Rules that", start)]


def bounds_said(found: Matrix, name: str) -> str:
    """The values that a bound has in the cells."""
    values = {c["constants"].get(name) for c in found["cells"]}
    return ", ".join(sorted(str(v) for v in values if v is not None))
