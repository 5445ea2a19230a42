"""What a report is made from: what was found, and where its files lie, relative to the report's folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

import attrs

from isr_report.matrix.coverage import Covered
from isr_report.matrix.grid import CellEntry, Matrix
from isr_report.matrix.since import Since
from isr_report.scenes import Scene
from isr_report.traceability import Traced
from isr_trace.cases import Case
from isr_trace.trace import Trace

QUESTIONS = Path(__file__).parent / "questions.toml"


@attrs.frozen
class Control:
    """One run of a negative control: the promise's verdict, and the whole space or the part of it that was needed."""

    design: str
    command: str
    verdict: str
    depth: int | None
    distinct: int
    run: str


@attrs.frozen
class Story:
    case: Case
    trace: Trace
    page: str
    itf: str
    found: Control
    fixed: Control | None


@attrs.frozen
class Played:
    scene: Scene
    trace: Trace
    page: str


@attrs.frozen
class Together:
    """A schedule under two designs: `there` is what the second one allows of it, and `upto[i]` how many of its
    steps were possible after step i; `refused[i]` names the guard that refused the step, or is empty."""

    here: Trace
    there: Trace
    here_label: str
    there_label: str
    upto: tuple[int, ...]
    refused: tuple[str, ...]
    page: str


class Included(TypedDict):
    """A JSON report of another verb, and where its copy lies."""

    file: str
    report: Mapping[str, object]


@attrs.frozen
class Claim:
    """`expects`: the verdict of each promise that the command asks for."""

    says: str
    command: str
    expects: Mapping[str, str]
    run: str


@attrs.frozen
class Alternative:
    """A design that was not taken: what it is, why not, and the story that killed it."""

    design: str
    summary: str
    because: str
    based_on: str
    story: Story | None


@attrs.frozen
class Material:
    """`graphs`: drawings as SVG files, each with its text; `traced` is None outside of a checkout, `since` without an
    earlier report."""

    matrix: Matrix
    folder: str
    pages: Mapping[str, str]
    stories: Sequence[Story]
    scenes: Sequence[Played]
    together: Together | None
    included: Sequence[Included]
    graphs: Sequence[tuple[str, str]]
    redundant: Sequence[tuple[str, str, str, str]]
    assumptions: str
    bounds: Mapping[str, str]
    version: str
    model_hash: str
    hashes: Mapping[str, str]
    covered: Mapping[str, Covered]
    traced: Traced | None
    since: Since | None
    alternatives: Sequence[Alternative]


def target(m: Material, trace: str) -> str:
    """Where a trace of the matrix is shown: its page, or else its file."""
    return m.pages.get(trace, f"{m.folder}/{trace}")


def states_of(cell: CellEntry) -> str:
    """How many states were seen; by symmetry one stands for all that differ in the names of the replicas."""
    return f"{cell['distinct']:,} states{' up to symmetry' if '--symmetry' in cell['command'] else ''}"


@attrs.frozen
class Question:
    """`holds`: the answer where the promise holds."""

    asks: str
    holds: str
    design: str
    settings: Mapping[str, str]
    fault: str
    promise: str

    @property
    def breaks(self) -> str:
        """The answer where it is broken."""
        return {"Yes": "No", "No": "Yes"}[self.holds]

    def cell(self, matrix: Matrix) -> CellEntry | None:
        """The cell that answers it, if there is one."""
        return next((c for c in matrix["cells"] if self._asks_of(c)), None)

    def _asks_of(self, cell: CellEntry) -> bool:
        return (cell["design"], cell["fault"]) == (self.design, self.fault) and cell["settings"] == self.settings


def questions(path: Path = QUESTIONS) -> list[Question]:
    entries = cast("list[dict[str, object]]", tomllib.loads(path.read_text(encoding="utf-8"))["question"])
    return [
        Question(
            str(e["asks"]),
            str(e["holds"]),
            str(e["design"]),
            cast("dict[str, str]", e["settings"]),
            str(e["fault"]),
            str(e["promise"]),
        )
        for e in entries
    ]


def claims(material: Material) -> list[Claim]:
    """Everything that the report says of a run: the cells of the matrix, and both sides of every control."""
    found: list[Claim] = []
    for cell in material.matrix["cells"]:
        expects = {p["name"]: p["verdict"] for p in cell["promises"]}
        found.append(Claim(cell["name"], " ".join(cell["command"]), expects, f"{material.folder}/{cell['run']}"))
    for story in material.stories:
        for control, which in ((story.found, "broken"), (story.fixed, "mended")):
            if control is not None:
                expects = {story.case.property_name: control.verdict}
                found.append(Claim(f"{story.case.name}, {which}", control.command, expects, control.run))
    return found
