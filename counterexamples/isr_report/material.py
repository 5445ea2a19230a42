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
from isr_report.traceability import TraceabilityTable
from isr_trace.cases import Case
from isr_trace.trace import Trace, TraceError

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
class CheckAnswer:
    """The run that answers a question, with the promise that it asked; `page`: its counterexample, empty where none."""

    promise: str
    run: Control
    page: str


@attrs.frozen
class Story:
    case: Case
    trace: Trace
    page: str
    itf: str
    bug_run: Control
    fix_run: Control | None


@attrs.frozen
class Together:
    """A schedule under two designs: `there` is what the second one allows of it, and `upto[i]` how many of its
    steps were possible after step i; `refusals[i]` names the guard that refused the step, or is empty."""

    here: Trace
    there: Trace
    here_label: str
    there_label: str
    upto: tuple[int, ...]
    refusals: tuple[str, ...]
    page: str


@attrs.frozen
class PlayedScene:
    """`beside`: the schedule under the other design or settings that the scene names, if it names any."""

    scene: Scene
    trace: Trace
    page: str
    beside: Together | None


class IncludedReport(TypedDict):
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
    """`graphs`: drawings as SVG files, each with its text; `traceability` is None outside of a checkout, `since`
    without an earlier report. `checks`: the answers by the checks of the questions that have one.
    """

    matrix: Matrix
    folder: str
    pages: Mapping[str, str]
    stories: Sequence[Story]
    scenes: Sequence[PlayedScene]
    together: Together | None
    included_reports: Sequence[IncludedReport]
    graphs: Sequence[tuple[str, str]]
    redundant: Sequence[tuple[str, str, str, str]]
    assumptions: str
    bounds: Mapping[str, str]
    version: str
    model_hash: str
    hashes: Mapping[str, str]
    covered: Mapping[str, Covered]
    traceability: TraceabilityTable | None
    since: Since | None
    alternatives: Sequence[Alternative]
    questions: Sequence[Question]
    checks: Mapping[str, CheckAnswer] = attrs.field(factory=dict[str, "CheckAnswer"])


def target(m: Material, trace: str) -> str:
    """Where a trace of the matrix is shown: its page, or else its file."""
    return m.pages.get(trace, f"{m.folder}/{trace}")


def states_of(cell: CellEntry) -> str:
    """How many states were seen; by symmetry and reduction one may stand for many."""
    return f"{cell['distinct']:,} states{' up to symmetry and reduction' if '--symmetry' in cell['command'] else ''}"


@attrs.frozen
class Question:
    """`holds`: the answer where the promise holds. It is answered by the cell of a design, settings and a fault, by
    the run that shows the bug of a `case`, or by a run of its own: `check` is what stands after `insync check`.

    `subject`: what the questions of its family are about, empty of those of the standard file.
    """

    asks: str
    holds: str
    design: str = ""
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    fault: str = ""
    promise: str = ""
    case: str = ""
    check: str = ""
    subject: str = ""

    @property
    def breaks(self) -> str:
        """The answer where it is broken."""
        return {"Yes": "No", "No": "Yes"}[self.holds]

    def story(self, stories: Sequence[Story]) -> Story | None:
        """The case that answers it, if it is asked of one that was told."""
        return next((s for s in stories if s.case.name == self.case), None)

    def cell(self, matrix: Matrix) -> CellEntry | None:
        """The cell that answers it, if there is one."""
        return next((c for c in matrix["cells"] if self._asks_of(c)), None)

    def _asks_of(self, cell: CellEntry) -> bool:
        return (cell["design"], cell["fault"]) == (self.design, self.fault) and cell["settings"] == self.settings


CELL_KEYS = ("design", "settings", "fault", "promise")
"""What a question needs that neither a case nor a check answers."""


def questions(path: Path = QUESTIONS, subject: str = "") -> list[Question]:
    """The questions in a file; TraceError with one sentence for whatever is wrong with it."""
    try:
        top = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise TraceError(f"{path}: not TOML: {problem}") from None
    entries = top.get("question")
    if not isinstance(entries, list):
        raise TraceError(f"{path}: there is no [[question]] in it")
    listed = [_question(path, n, e) for n, e in enumerate(cast("list[object]", entries), 1)]
    return [attrs.evolve(q, subject=subject) for q in listed]


def _question(path: Path, number: int, entry: object) -> Question:
    place = f"{path}: question {number}"
    if not isinstance(entry, dict):
        raise TraceError(f"{place} is not a table")
    e = cast("dict[str, object]", entry)
    by_cell = () if "case" in e or "check" in e else CELL_KEYS
    missing = [key for key in ("asks", "holds", *by_cell) if key not in e]
    if missing:
        others = "" if missing[0] in ("asks", "holds") else ", a case or a check"
        raise TraceError(f"{place} needs {missing[0]!r}{others}")
    if e["holds"] not in ("Yes", "No"):
        raise TraceError(f"{place}: 'holds' is Yes or No, the answer where the promise holds")
    settings = e.get("settings", {})
    if not isinstance(settings, dict):
        raise TraceError(f"{place}: 'settings' is not a table")
    return Question(
        asks=str(e["asks"]),
        holds=str(e["holds"]),
        design=str(e.get("design", "")),
        settings={str(k): str(v) for k, v in cast("dict[str, object]", settings).items()},
        fault=str(e.get("fault", "")),
        promise=str(e.get("promise", "")),
        case=str(e.get("case", "")),
        check=str(e.get("check", "")),
    )


def claims(material: Material) -> list[Claim]:
    """Everything that the report says of a run: the cells of the matrix, both sides of every control, and the checks
    of questions."""
    claim_list: list[Claim] = []
    for cell in material.matrix["cells"]:
        expects = {p["name"]: p["verdict"] for p in cell["promises"]}
        claim_list.append(Claim(cell["name"], " ".join(cell["command"]), expects, f"{material.folder}/{cell['run']}"))
    for story in material.stories:
        for control, which in ((story.bug_run, "broken"), (story.fix_run, "mended")):
            if control is not None:
                expects = {story.case.property_name: control.verdict}
                claim_list.append(Claim(f"{story.case.name}, {which}", control.command, expects, control.run))
    for q in material.questions:
        if (answer := material.checks.get(q.check)) is not None:
            claim_list.append(Claim(q.asks, answer.run.command, {answer.promise: answer.run.verdict}, answer.run.run))
    return claim_list
