"""`insync report`: one page for a design review, with everything it links to in one folder."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from insync_cli import old_options as options
from insync_cli import registry, terminal
from insync_cli.exits import Exit, InputError, UsageError
from insync_cli.model import guards
from insync_cli.review import matrix
from insync_cli.review.report_pages import MATRIX, TODAY, cell_pages, played, story, together, witness_pages
from insync_cli.version import version
from insync_cli.view import pages, scenes
from isr_report.conformance import REPLAY
from isr_report.coverage import coverage
from isr_report.grid import Matrix, read_matrix
from isr_report.markdown import markdown
from isr_report.material import Alternative, Included, Material, Story, claims
from isr_report.report import claims_text, page
from isr_report.since import Since, since
from isr_report.traceability import Traced, resolved
from isr_trace.cases import load_cases
from isr_trace.itf import write_text
from isr_trace.trace import TraceError

EXAMPLE = """\
insync report --out report
insync report --out report --matrix runs/matrix --include prove.json --include mutate.json --include replay.json
insync report --out report --since last-report"""
CORPUS = "counterexamples"
SIDE_BY_SIDE = "jepsen-2013"
DRAWN = ".svg"
BROKER, TESTS = ("impl/isr_broker",), "tests"
"""Where the functions and the tests are to which promises are traced."""
READERS = {"consumers": 1, "follower_reads": True}
EVERYTHING = (READERS, {**READERS, "unclean": True})
"""The settings at one of which every action and promise of today's design exists."""


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
        help="JSON of prove, mutate, replay, conform, validate, kills or experiment, or the SVG of prove --graph; "
        "repeatable",
    )
    p.add_argument("--since", metavar="DIR", help="an earlier report: what has changed since")
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
        write_text(folder / "report.md", markdown(material))
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
    before = earlier(cast("str | None", given.since))
    found = matrix_of(given, folder / MATRIX)
    corpus = Path(cast("str", given.cases))
    told = [story(case, corpus, given, folder) for case in load_cases(corpus / pages.CASES).cases]
    today = registry.design_named(TODAY)
    extra = [Path(name) for name in cast("list[str]", given.include)]
    reports = [included(path, folder) for path in extra if path.suffix != DRAWN]
    return Material(
        matrix=found,
        folder=MATRIX,
        pages={} if given.no_pages else {**cell_pages(found, folder, given), **witness_pages(found, folder)},
        stories=told,
        scenes=[played(s, folder) for s in scenes.loaded()],
        together=next((together(s) for s in told if s.case.name == SIDE_BY_SIDE), None),
        included=reports,
        graphs=[drawing(path) for path in extra if path.suffix == DRAWN],
        redundant=[(TODAY, *guard, reason) for guard, reason in guards.redundant(None, TODAY).items()],
        assumptions=not_modelled(),
        bounds={c.doc: bounds_said(found, c.name) for c in today.constants() if not c.names and not c.budget},
        version=version(),
        model_hash=today.model_hash(),
        hashes={name: design.model_hash() for name, design in registry.designs().items()},
        covered=coverage(found, folder / MATRIX),
        traced=traced(reports),
        since=since_then(before, found),
        alternatives=alternatives(found, told),
    )


def earlier(chosen: str | None) -> Matrix | None:
    """The matrix of an earlier report, or of the folder that insync matrix made."""
    if chosen is None:
        return None
    place = Path(chosen)
    return read_matrix((place / MATRIX if (place / MATRIX).is_dir() else place) / matrix.FILE)


def since_then(before: Matrix | None, found: Matrix) -> Since | None:
    return since(before, found) if before is not None else None


def alternatives(found: Matrix, told: Sequence[Story]) -> list[Alternative]:
    """The designs beside the line of those that were, each with the story about it."""
    line = {d["name"] for d in found["designs"]}
    broken = [(s, s.case.design) for s in told]
    mended = {s.case.fixed_by.design for s in told if s.case.fixed_by is not None}
    return [
        Alternative(
            design=d.name,
            summary=d.summary,
            because=d.because,
            based_on=d.based_on.name if d.based_on is not None else "",
            story=next((s for s, name in broken if name == d.name), None),
        )
        for d in registry.designs().values()
        if d.name not in line and d.expected and d.name not in mended
    ]


def traced(reports: Sequence[Included]) -> Traced | None:
    """Promises traced to tests, where this runs in a checkout."""
    root = Path(__file__).resolve().parent.parent.parent
    if not all((root / place).is_dir() for place in (*BROKER, TESTS)):
        return None
    killed, replayed = dict[str, list[str]](), dict[str, int]()
    for r in (i["report"] for i in reports if i["report"].get("design") == TODAY):
        for line in cast("list[dict[str, object]]", r.get("mutants") or []):
            for promise in cast("list[str]", line["killers"]):
                killed.setdefault(promise, []).append(str(line["action"]))
        if r.get("schema") == REPLAY:
            for action, counts in cast("dict[str, dict[str, int]]", r["actions"]).items():
                replayed[action] = replayed.get(action, 0) + counts["replayed"]
    instances = [registry.instance_of(registry.design_named(TODAY), settings) for settings in EVERYTHING]
    return resolved(instances, root, BROKER, TESTS, killed=killed, replayed=replayed)


def matrix_of(given: Namespace, place: Path) -> Matrix:
    chosen = cast("str | None", given.matrix)
    if chosen is None:
        return matrix.made(matrix.plan_given(given), given, terminal.make_folder(place))
    read_matrix(Path(chosen) / matrix.FILE)
    if Path(chosen).resolve() != place.resolve():
        shutil.copytree(chosen, place, dirs_exist_ok=True)
    return read_matrix(place / matrix.FILE)


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
