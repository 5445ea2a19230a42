"""What the site shows that insync makes: a report, the gallery of all cases, and the model as TLA+."""

import json
import re
import shutil
import sys
from html import escape, unescape
from pathlib import Path, PurePosixPath
from typing import cast
from urllib.parse import unquote

from insync_cli.main import main
from insync_cli.review import matrix
from insync_cli.review.report import quick
from insync_cli.tracefiles import CORPORA
from isr_protocol.by_name import DESIGNS
from isr_report.material import questions
from isr_report.scenes import load_scenes

FOLDER = PurePosixPath("examples")
REPORT = FOLDER / "report"
GALLERY = FOLDER / "gallery.html"
LARGEST = 8_000_000
"""Bytes of all files of the report together."""
MACHINE = re.compile(r"/(home|root|tmp|work)/")
"""A path of somebody's machine."""
PAGE = FOLDER / "README.md"
"""The page that leads to the examples, which come later: MkDocs need not read them."""
LATER = "<!doctype html><meta charset=utf-8><title>insync</title><p>This was left out. <code>make site</code> makes it."


OVERVIEW = """\
# Examples

- [A report](report/index.html), as `insync report` makes it for a design review: the design of 2013 beside today's.
- [All cases](gallery.html): every bug of [a partition's replicas](../counterexamples/cases/README.md) and of
  [the quorum's voters](../counterexamples/quorum_cases/README.md), by family, to walk through.
- [Today's protocol in TLA+](../docs/kip-966.tla.md), as `insync export kip-966 --tla` writes it.

The report and the cases need no network. `insync show jepsen-2013 --html story.html` makes such a page of one case.
"""


class Failed(Exception):
    """A command of insync's did not do what the site needs."""


def insync(*words: str) -> None:
    """A verb, run here; Failed unless it ends well."""
    print(f"$ insync {' '.join(words)}", file=sys.stderr, flush=True)
    if code := main(list(words)):
        raise Failed(f"insync {words[0]} ended with {code}")


def placeholders(folder: Path) -> None:
    """Something where the examples will be, so that MkDocs finds a target for every link."""
    for path in (REPORT / "index.html", GALLERY):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(LATER, encoding="utf-8")


def make(top: Path, site: Path, report: Path) -> None:
    """The examples, into the site; the report is made in a folder of its own, and only if that has not today's."""
    if not (report / "index.html").exists() or differences_from_today(report, top):
        shutil.rmtree(report, ignore_errors=True)
        insync("report", "--quick", "--no-pages", "--gallery", "--out", str(report), "--cases", str(cases(top)))
    if wrong := [*differences_from_today(report, top), *reasons_to_hide(report)]:
        raise Failed("the example report:\n" + "\n".join(wrong))
    shutil.copytree(report, site / REPORT, dirs_exist_ok=True)
    traces = [str(file) for folder in CORPORA for file in sorted((top / folder).glob("*/trace.itf.json"))]
    insync("show", *traces, "--html", str(site / GALLERY), "--plain")


def cases(top: Path) -> Path:
    return top / "counterexamples" / "cases"


def reasons_to_hide(report: Path) -> list[str]:
    """Why a report must not be shown to others: a link that leads nowhere, a machine's path, or too many bytes."""
    files = [path for path in report.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return [
        *(line for page in files if page.suffix == ".html" for line in dead_links(report, page)),
        *(f"{path.name} names a machine" for path in files if MACHINE.search(path.read_text(encoding="utf-8"))),
        *([f"it has {size} bytes, more than {LARGEST}"] if size > LARGEST else []),
    ]


def dead_links(report: Path, page: Path) -> list[str]:
    """The links of a page of the report that lead to no file, or to no trace of the page that they name."""
    dead: list[str] = []
    for link in dict.fromkeys(re.findall(r'href="([^"#][^"]*)"', page.read_text(encoding="utf-8"))):
        path, _, part = unquote(unescape(link)).partition("#")
        target, trace = page.parent / path, re.match(r"trace=(\w+)", part)
        if not target.is_file():
            dead.append(f"{page.relative_to(report).parent / path} is no file of it")
        elif trace and not re.search(rf'"digest": ?"{trace[1]}', target.read_text(encoding="utf-8")):
            dead.append(f"{path} has no trace {trace[1]}")
    return dead


def differences_from_today(report: Path, top: Path) -> list[str]:
    """What a report shows that is not so today: other models, promises, stories, questions or scenes."""
    document = cast("dict[str, list[dict[str, object]]]", json.loads((report / "matrix" / "matrix.json").read_text()))
    hashes = {str(cell["design"]): cell["model_hash"] for cell in document["cells"]}
    promises = {
        str(cell["name"]): {promise["name"] for promise in cast("list[dict[str, str]]", cell["promises"])}
        for cell in document["cells"]
    }
    today = {cell.name: set(cell.property_names) for cell, _ in matrix.questions(quick(matrix.plan_of()))}
    traces = {path.name.removesuffix(".itf.json"): path for path in (report / "cases").glob("*.itf.json")}
    text = (report / "index.html").read_text(encoding="utf-8")
    titles = [*(question.asks for question in questions()), *(scene.title for scene in load_scenes())]
    return [
        *(f"the model of {name}" for name, model in hashes.items() if model != DESIGNS[name].model_hash()),
        *(["the promises of its cells"] if promises != today else []),
        *(
            f"the story {name}"
            for name, path in traces.items()
            if not same_bytes(path, cases(top) / name / "trace.itf.json")
        ),
        *(f"the title: {title}" for title in titles if escape(title) not in text),
        *(["it was made outside of a checkout"] if "Made outside of a checkout" in text else []),
    ]


def same_bytes(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
