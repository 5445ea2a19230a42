"""`insync show TRACE... --html FILE`: which model, which case and which other design belong to a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import registry
from insync_cli.exits import UsageError
from insync_cli.families import family_of
from insync_cli.progress import Tell, silent, telling
from insync_cli.terminal import count
from insync_cli.tracefiles import replayable, saying_which
from insync_cli.view.remedy import Remedy, at, mender, remedy
from isr_check import reference
from isr_check.engine import Verdict
from isr_trace.cases import Case, load_cases
from isr_trace.itf import itf_text, write_text
from isr_trace.replay import Evaluator, Replay, run_of
from isr_trace.trace import Trace, TraceError
from isr_visual.document import Document, Model, document
from isr_visual.page import page
from isr_visual.roles import ROOM
from isr_visual.strip import Strip

if TYPE_CHECKING:
    from isr_lang import Design, Value

CASES = "cases.toml"


def write_page(
    traces: Sequence[tuple[Path, Trace, str]], target: Path, against: str | None, tell: Tell = silent
) -> str:
    """Write the page of traces, each with its file and why the model of today cannot vouch for it, if so; says what
    was written. `tell`: how many of several are made, or how far the one is."""
    try:
        text = page_of(traces, against, tell)
        write_text(target, text)
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    size = len(text.encode()) // 1000
    return f"{target}: {count(len(traces), 'trace')}, {size} KB; any browser opens it, offline"


def page_of(traces: Sequence[tuple[Path, Trace, str]], against: str | None = None, tell: Tell = silent) -> str:
    """The page of traces as text, which loads nothing; TraceError where one cannot be shown."""
    each, within = (silent, tell) if len(traces) == 1 else (tell, silent)
    documents = [
        (trace_document(path, trace, mismatch, against, tell=within), itf_text(trace))
        for path, trace, mismatch in telling(traces, "traces", each)
    ]
    first = documents[0][0]
    title = first["case"]["title"] if first["case"] is not None else first["story"]["headline"] or first["name"]
    return page(documents, title if len(documents) == 1 else f"{len(documents)} traces")


def trace_document(
    path: Path,
    trace: Trace,
    mismatch: str = "",
    against: str | None = None,
    settings: Mapping[str, Value] | None = None,
    tell: Tell = silent,
) -> Document:
    """The document of a trace file, with the model where there is one of today's version; `settings` are those of the
    design to compare with, where they differ."""
    case = case_of(path, trace)
    name = path.resolve().parent.name if case is not None else path.name.removesuffix(".json").removesuffix(".itf")
    with saying_which(path):
        model = None if trace.foreign or mismatch else _model(path, trace, case, against, settings or {})
        known = model.against if model is not None and against is None else None
        todo = what_to_do(path, trace, model.evaluator, known) if model is not None else None
        now = (todo.says, todo.commands) if todo is not None else None
        return document(trace, name, model=model, mismatch=mismatch, case=case, todo=now, tell=tell)


def case_of(path: Path, trace: Trace) -> Case | None:
    """The historic bug whose folder the file is in, if the trace is of it."""
    folder = path.resolve().parent
    try:
        found = [c for c in load_cases(folder.parent / CASES).cases if c.name == folder.name]
    except TraceError:  # it is in no corpus
        return None
    about = (trace.design, trace.property_name)
    return next((c for c in found if (c.design, c.property_name) == about), None)


def strip_of(trace: Trace, evaluator: reference.Evaluator | None) -> dict[str, dict[str, list[bool | None]]]:
    """What every promise says of every state, for `--json`; nothing where the model is not at hand or another."""
    if evaluator is None:
        return {}  # it is shown as it was written
    states = run_of(trace, Replay(evaluator)).states
    return {"properties": {p["name"]: p["holds"] for p in Strip(evaluator).over(states)}}


def _model(path: Path, trace: Trace, case: Case | None, against: str | None, settings: Mapping[str, Value]) -> Model:
    _, evaluator = replayable(path)
    design = evaluator.instance.design
    more, subject = roomier(design, trace.constants), family_of(design).subject
    if against is not None:
        other = registry.design_named(against)
        check_family(other, design)
        return Model(evaluator, more, at(other, {**trace.constants, **settings}, trace.without), subject)
    return Model(evaluator, more, mending_evaluator(trace, evaluator, case, settings), subject)


def check_family(other: Design, design: Design) -> None:
    """UsageError where the schedule of one design means nothing in the other, for that is a model of another kind."""
    if family_of(other) is not family_of(design):
        raise UsageError(
            f"--against {other.name}: it is of another family than {design.name}, and has no such steps "
            f"(insync designs {design.name})"
        )


def mending_evaluator(
    trace: Trace, evaluator: Evaluator, case: Case | None, settings: Mapping[str, Value]
) -> Evaluator | None:
    """The design and settings that keep the promise under these steps: of a curated case the fix, if it has one."""
    if case is None:
        return mender(trace, evaluator)
    by = case.fixed_by
    if by is None:
        return None
    return at(registry.design_named(by.design), {**trace.constants, **by.settings, **settings}, trace.without)


def what_to_do(path: Path, trace: Trace, evaluator: Evaluator, known_fix: Evaluator | None = None) -> Remedy | None:
    """What somebody can do about the promise that breaks in a trace of ours, in the file; None where none does.

    `evaluator`: its design at its bounds. `known_fix`: the design that mends it, where that is known already.
    """
    if trace.verdict != Verdict.VIOLATED:
        return None
    there = known_fix if known_fix is not None else mending_evaluator(trace, evaluator, case_of(path, trace), {})
    return remedy(trace, evaluator, there if there is not None else mender(trace, evaluator))


def roomier(design: Design, constants: Mapping[str, Value]) -> reference.Evaluator:
    """The design with more room at the bounds that only end the explored world."""
    limits = {c.name: c.high for c in design.constants()}
    more = {n: v + ROOM[n] if n in ROOM and isinstance(v, int) and v < limits[n] else v for n, v in constants.items()}
    return reference.Evaluator(registry.instance_of(design, more))
