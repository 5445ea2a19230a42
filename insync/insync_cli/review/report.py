"""`insync report`: one page for a design review, with everything it links to in one folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import attrs

from insync_cli import options, registry, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.families import families, family_of
from insync_cli.model import check, guards
from insync_cli.options import Usage, flag, group, option, repeated_option
from insync_cli.progress import interruptible
from insync_cli.review import matrix
from insync_cli.review.report_pages import (
    GALLERY,
    MATRIX,
    TODAY,
    Shelf,
    cell_pages,
    check_answer,
    check_words,
    played_scene,
    story,
    together,
    witness_pages,
)
from insync_cli.terminal import QuietOutput
from insync_cli.tracefiles import CHECKOUT, CORPUS, corpus
from insync_cli.version import version
from insync_cli.view import pages, scenes
from isr_report.markdown import markdown
from isr_report.material import QUESTIONS, Alternative, IncludedReport, Material, Question, Story, claims, questions
from isr_report.matrix.coverage import coverage
from isr_report.matrix.grid import Matrix, read_matrix
from isr_report.matrix.plan import Plan
from isr_report.matrix.since import Since, since
from isr_report.report import claims_text, page
from isr_report.sections.conformance import REPLAY
from isr_report.sections.distance import LOSING
from isr_report.sections.overview import summary_line
from isr_report.traceability import TraceabilityTable, trace_to_sources
from isr_trace.cases import Case, load_cases
from isr_trace.itf import read_itf, write_text
from isr_trace.trace import TraceError

EXAMPLE = """\
insync report --out report
insync report --out report --matrix runs/matrix --include prove.json --include mutate.json --include replay.json
insync report --out report --since last-report
insync report --out report --plan plan.toml --questions questions.toml"""
QUICK_DESIGNS = ("kafka-0.8", "kip-966")
QUICK_FAULTS = ("none", "crash", "power", "power-twice", "three-crash", "three-crash-and-power")
QUICK_SETTINGS = ("acks",)
TRACE = "trace.itf.json"
SIDE_BY_SIDE = "jepsen-2013"
DRAWING_SUFFIX = ".svg"
BROKER, TESTS = ("impl/isr_broker",), "tests"
"""Where the functions and the tests are to which promises are traced."""
READERS = {"consumers": 1, "follower_reads": True}
EVERYTHING = (READERS, {**READERS, "unclean": True}, {**READERS, "shutdowns": 1})
"""The settings at one of which every action and promise of today's design exists."""


USAGE = Usage("report", "One page for a design review, made from run files and traces only.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    out: Path = option("DIR", "the folder to make", Path, Path("report"))
    matrix: Path | None = option(
        "DIR", "what insync matrix made; without it, a matrix is made now, which takes up to an hour", Path
    )
    plan: Path | None = option("FILE", "another plan of the matrix than the standard one", Path)
    questions: Path = option("FILE", "other questions than the standard ones", Path, QUESTIONS)
    quick: bool = flag(f"only {' and '.join(QUICK_DESIGNS)}: a small matrix with acks=all, and their stories; minutes")
    cases: Path = option("DIR", "the corpus of stories", Path, CORPUS)
    include: tuple[Path, ...] = repeated_option(
        "FILE",
        "JSON of prove, mutate, replay, conform, validate, kills or experiment, or the SVG of prove --graph",
        Path,
    )
    since: Path | None = option("DIR", "an earlier report: what has changed since", Path)
    no_pages: bool = flag("cells link to their trace files, not to pages")
    gallery: bool = flag(f"stories and scenes on one page, {GALLERY}, which takes less room")
    running: options.RunningEach = group(options.RunningEach, "running")
    output: QuietOutput = group(QuietOutput)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    invocation = attrs.evolve(invocation, cases=corpus(invocation.cases))
    output = invocation.output
    output.check()
    if invocation.quick and invocation.matrix is not None:
        raise UsageError("--quick makes a small matrix; with --matrix there is one already")
    if invocation.plan is not None and (invocation.quick or invocation.matrix is not None):
        other = "--quick has a plan of its own" if invocation.quick else "with --matrix there is a matrix already"
        raise UsageError(f"--plan says which matrix is made; {other}")
    try:
        read = inputs(invocation)
        folder = terminal.make_folder(invocation.out)
        with interruptible():
            material = gather_material(invocation, read, folder)
        write_text(folder / "index.html", page(material))
        write_text(folder / "report.md", markdown(material))
        write_text(folder / "claims.json", claims_text(material))
    except TraceError as problem:
        raise InputError(str(problem)) from None
    output.write(json.loads(claims_text(material)))
    if output.for_people:
        cells, stories, scenes = len(material.matrix["cells"]), len(material.stories), len(material.scenes)
        counted = f"{cells} cells, {stories} stories, {scenes} scenes"
        result = f"insync report: {folder}/index.html, {counted}, {len(claims(material))} claims with a command"
        for line in (summary_line(material, design, LOSING) for design in QUICK_DESIGNS):
            if line and not output.quiet:
                output.console().print(line, soft_wrap=True)
        output.console().print(result, soft_wrap=True)
    return Exit.HOLDS


@attrs.frozen
class Inputs:
    """What a report is made from, read before anything is run: a mistake in it costs no hours."""

    cases: Sequence[Case]
    before: Matrix | None
    plan: Plan
    questions: Sequence[Question]
    included_reports: Sequence[tuple[Path, dict[str, object]]]
    graphs: Sequence[tuple[str, str]]


def inputs(invocation: Options) -> Inputs:
    """Everything that was named; UsageError or InputError for what is not there or not what it should be."""
    if not invocation.cases.is_dir():
        raise UsageError(f"there is no folder {invocation.cases} with a corpus of cases (--cases)")
    cases = load_cases(invocation.cases / pages.CASES).cases
    cases = tuple(c for c in cases if c.design in QUICK_DESIGNS) if invocation.quick else cases
    for case in cases:
        read_itf(invocation.cases / case.name / TRACE)
    if invocation.matrix is not None:
        read_matrix(invocation.matrix / matrix.FILE)
    reports = [p for p in invocation.include if p.suffix != DRAWING_SUFFIX]
    plan = matrix.plan_of() if invocation.plan is None else matrix.plan_of(invocation.plan)
    return Inputs(
        cases,
        earlier(invocation.since),
        quick(plan) if invocation.quick else plan,
        all_questions(invocation),
        [(p, included_report(p)) for p in reports],
        [drawing(p) for p in invocation.include if p.suffix == DRAWING_SUFFIX],
    )


def all_questions(invocation: Options) -> list[Question]:
    """The questions of the file, and of each family its own where nobody named other questions.

    `--quick` asks of no other family, for each of these questions is a run. UsageError for a check that is none.
    """
    asks = questions(invocation.questions)
    if invocation.questions == QUESTIONS and not invocation.quick:
        own = [(family.questions, family.subject) for family in families()]
        asks += [question for path, subject in own if path is not None for question in questions(path, subject)]
    for question in asks:
        if question.check:
            options.read_options(check.Options, check.USAGE, check_words(question)[1:])
    return asks


def quick(plan: Plan) -> Plan:
    """A plan of minutes: the first design and today's, with acks=all, under few faults."""
    faults = tuple(f for f in plan.faults if f.name in QUICK_FAULTS)
    settings = {**plan.settings, **{n: (plan.usual[n],) for n in QUICK_SETTINGS if n in plan.usual}}
    return attrs.evolve(plan, designs=QUICK_DESIGNS, faults=faults, settings=settings)


def gather_material(invocation: Options, read: Inputs, folder: Path) -> Material:
    """Everything that the page shows; what is not there yet is run, or made, now."""
    cell_matrix = matrix_of(invocation, read.plan, folder / MATRIX)
    shelf = Shelf(folder, invocation.gallery)
    with invocation.output.ticker() as ticker:
        stories = [
            story(case, invocation.cases, invocation.running, shelf)
            for case in ticker.count_each(read.cases, len(read.cases), "stories, both controls run again")
        ]
    with invocation.output.ticker() as ticker:
        page_links = (
            {}
            if invocation.no_pages
            else {**cell_pages(cell_matrix, folder, ticker), **witness_pages(cell_matrix, folder)}
        )
    with invocation.output.ticker() as ticker:
        with_check = [question for question in read.questions if question.check]
        checks = {
            question.check: check_answer(question, number, invocation.running, shelf)
            for number, question in enumerate(ticker.count_each(with_check, len(with_check), "questions, each run"), 1)
        }
    reports = [copy_report(path, report, folder) for path, report in read.included_reports]
    today = registry.design_named(TODAY)
    played_scenes = [played_scene(s, shelf) for s in scenes.read_scenes()]
    shelf.close()
    return Material(
        matrix=cell_matrix,
        folder=MATRIX,
        pages=page_links,
        stories=stories,
        scenes=played_scenes,
        together=next((together(s) for s in stories if s.case.name == SIDE_BY_SIDE), None),
        included_reports=reports,
        graphs=list(read.graphs),
        redundant=redundant(cell_matrix),
        assumptions=family_of(today).omissions(),
        bounds={c.doc: bounds_said(cell_matrix, c.name) for c in today.constants() if not c.names and not c.budget},
        version=version(),
        model_hash=today.model_hash(),
        hashes={name: design.model_hash() for name, design in registry.designs().items()},
        questions=read.questions,
        checks=checks,
        covered=coverage(cell_matrix, folder / MATRIX),
        traceability=traceability(reports),
        since=since_then(read.before, cell_matrix),
        alternatives=alternatives(cell_matrix, stories),
    )


def redundant(cell_matrix: Matrix) -> list[tuple[str, str, str, str]]:
    """The guards of today's design that are known to be redundant, if that design is in the matrix at all."""
    if TODAY not in (d["name"] for d in cell_matrix["designs"]):
        return []
    return [(TODAY, *guard, reason) for guard, reason in guards.redundant(None, TODAY).items()]


def earlier(place: Path | None) -> Matrix | None:
    """The matrix of an earlier report, or of the folder that insync matrix made."""
    if place is None:
        return None
    return read_matrix((place / MATRIX if (place / MATRIX).is_dir() else place) / matrix.FILE)


def since_then(before: Matrix | None, cell_matrix: Matrix) -> Since | None:
    return since(before, cell_matrix) if before is not None else None


def alternatives(cell_matrix: Matrix, stories: Sequence[Story]) -> list[Alternative]:
    """The designs that Kafka never shipped, each with the story about it if there is one."""
    line = {*matrix.plan_of().designs, *(d["name"] for d in cell_matrix["designs"])}
    story_designs = [(s, s.case.design) for s in stories]
    fixing_designs = {s.case.fixed_by.design for s in stories if s.case.fixed_by is not None}
    return [
        Alternative(
            design=d.name,
            summary=d.summary,
            because=d.because,
            based_on=d.based_on.name if d.based_on is not None else "",
            story=next((s for s, name in story_designs if name == d.name), None),
        )
        for d in registry.designs().values()
        if d.name not in line and d.expected and d.name not in fixing_designs
    ]


def traceability(reports: Sequence[IncludedReport]) -> TraceabilityTable | None:
    """Promises traced to tests, where this runs in a checkout."""
    if not all((CHECKOUT / place).is_dir() for place in (*BROKER, TESTS)):
        return None
    killed_actions, replayed = dict[str, list[str]](), dict[str, int]()
    for r in (i["report"] for i in reports if i["report"].get("design") == TODAY):
        for line in cast("list[dict[str, object]]", r.get("mutants") or []):
            for promise in cast("list[str]", line["killers"]):
                killed_actions.setdefault(promise, []).append(str(line["action"]))
        if r.get("schema") == REPLAY:
            for action, counts in cast("dict[str, dict[str, int]]", r["actions"]).items():
                replayed[action] = replayed.get(action, 0) + counts["replayed"]
    instances = [registry.instance_of(registry.design_named(TODAY), settings) for settings in EVERYTHING]
    return trace_to_sources(instances, CHECKOUT, BROKER, TESTS, killers=killed_actions, replayed=replayed)


def matrix_of(invocation: Options, plan: Plan, place: Path) -> Matrix:
    """The matrix that was named, copied into the report; or one made now."""
    if invocation.matrix is None:
        matrix.check_folder(terminal.make_folder(place), plan)
        return matrix.make_matrix(plan, invocation.running, invocation.output, place)
    if invocation.matrix.resolve() != place.resolve():
        shutil.copytree(invocation.matrix, place, dirs_exist_ok=True)
    return read_matrix(place / matrix.FILE)


def drawing(path: Path) -> tuple[str, str]:
    """The name and the text of a drawing that `insync prove --graph` made."""
    try:
        return path.name, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read: {problem}") from None


def included_report(path: Path) -> dict[str, object]:
    """A report of another verb, as JSON."""
    try:
        report = cast("object", json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as problem:
        raise InputError(f"{path}: cannot be read as JSON: {problem}") from None
    table = cast("dict[str, object]", report) if isinstance(report, dict) else {}
    if not str(table.get("schema", "")).startswith("insync/"):
        raise UsageError(f"{path} is not a report of insync's: it names no schema")
    return table


def copy_report(path: Path, report: dict[str, object], folder: Path) -> IncludedReport:
    """The report of another verb, copied into the folder of this one."""
    name = f"included/{path.parent.name}-{path.name}"
    write_text(folder / name, json.dumps(report, indent=1))
    return IncludedReport(file=name, report=report)


def bounds_said(cell_matrix: Matrix, name: str) -> str:
    """The values of one bound in all cells, as a list in words."""
    values = {c["constants"].get(name) for c in cell_matrix["cells"]}
    return ", ".join(sorted(str(v) for v in values if v is not None))
