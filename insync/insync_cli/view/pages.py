"""`insync show TRACE... --html FILE`: which model, which case and which other design belong to a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli import registry
from insync_cli.exits import InputError, UsageError
from insync_cli.terminal import count
from insync_cli.tracefiles import replayable, saying_which
from isr_check.reference import Evaluator
from isr_trace.cases import Case, load_cases
from isr_trace.itf import itf_text, write_text
from isr_trace.replay import Replay, run_of
from isr_trace.trace import Trace, TraceError
from isr_visual.document import Document, Model, document
from isr_visual.page import page
from isr_visual.roles import ROOM
from isr_visual.schedule import counterfactual, kept
from isr_visual.strip import Strip

if TYPE_CHECKING:
    from isr_lang import Design, Value

CASES = "cases.toml"
SAFER: Mapping[str, Value] = {"unclean": False, "acks": "all", "min_insync": 2}
"""Settings as Kafka recommends them."""
OLDEST = "kafka-0.8"
"""The first of the designs that were Kafka's, which are listed from today's on."""


def write_page(shown: Sequence[tuple[Path, Trace, str]], target: Path, against: str | None) -> str:
    """Write the page of traces, each with its file and why the model of today cannot vouch for it, if so; says what
    was written."""
    made = [(described(path, trace, mismatch, against), itf_text(trace)) for path, trace, mismatch in shown]
    first = made[0][0]
    title = first["case"]["title"] if first["case"] is not None else first["story"]["headline"] or first["name"]
    try:
        text = page(made, title if len(made) == 1 else f"{len(made)} traces")
        write_text(target, text)
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    return f"{target}: {count(len(made), 'trace')}, {len(text.encode()) // 1000} KB; any browser opens it, offline"


def described(
    path: Path,
    trace: Trace,
    mismatch: str = "",
    against: str | None = None,
    settings: Mapping[str, Value] | None = None,
) -> Document:
    """The document of a trace file, with the model where there is one of today's version; `settings` are those of the
    design to compare with, where they differ."""
    case = case_of(path, trace)
    name = path.resolve().parent.name if case is not None else path.name.removesuffix(".json").removesuffix(".itf")
    with saying_which(path):
        model = None if trace.foreign or mismatch else _model(path, trace, case, against, settings or {})
        return document(trace, name, model=model, mismatch=mismatch, case=case)


def case_of(path: Path, trace: Trace) -> Case | None:
    """The historic bug whose folder the file is in, if the trace is of it."""
    folder = path.resolve().parent
    try:
        found = [c for c in load_cases(folder.parent / CASES).cases if c.name == folder.name]
    except TraceError:  # it is in no corpus
        return None
    about = (trace.design, trace.property_name)
    return next((c for c in found if (c.design, c.property_name) == about), None)


def strip_of(path: Path, trace: Trace, mismatch: str) -> dict[str, dict[str, list[bool | None]]]:
    """What every promise says of every state, for `--json`; nothing where the model is not at hand or another."""
    if trace.foreign or mismatch:
        return {}
    try:
        _, evaluator = replayable(path)
        states = run_of(trace, Replay(evaluator)).states
    except (InputError, TraceError):
        return {}  # it is shown as it was written
    return {"properties": {p["name"]: p["holds"] for p in Strip(evaluator).over(states)}}


def _model(path: Path, trace: Trace, case: Case | None, against: str | None, given: Mapping[str, Value]) -> Model:
    _, evaluator = replayable(path)
    more = roomier(evaluator.instance.design, trace.constants)
    if against is not None:
        return Model(evaluator, more, _at(registry.design_named(against), {**trace.constants, **given}, trace.without))
    if case is not None:
        by = case.fixed_by
        constants = {**trace.constants, **(by.settings if by is not None else {}), **given}
        other = _at(registry.design_named(by.design), constants, trace.without) if by is not None else None
        return Model(evaluator, more, other)
    return Model(evaluator, more, mender(trace, evaluator))


def mender(trace: Trace, evaluator: Evaluator) -> Evaluator | None:
    """Of a violation that nobody has written about: the nearest settings or design under which the same schedule keeps
    the promise; None if none of those tried does."""
    promised = next((p for p in evaluator.instance.properties if p.name == trace.property_name), None)
    if promised is None or promised.kind not in ("always", "step") or trace.anywhere:
        return None
    states = run_of(trace, Replay(evaluator)).states
    for design, constants in _nearest(evaluator.instance.design, trace.constants):
        try:
            there = _at(design, constants, trace.without)
            if kept(counterfactual(trace, states, evaluator, there), trace.property_name):
                return there
        except (TraceError, UsageError):
            continue  # it cannot be asked there
    return None


def _nearest(design: Design, constants: Mapping[str, Value]) -> Iterator[tuple[Design, Mapping[str, Value]]]:
    """The design at one safer setting each, then at all of them, then those that came after it, the next one first."""
    safer = {n: v for n, v in SAFER.items() if n in constants and constants[n] != v}
    yield from ((design, {**constants, name: value}) for name, value in safer.items())
    if len(safer) > 1:
        yield design, {**constants, **safer}
    names = list(registry.designs())
    later = names[: names.index(design.name)] if design.name in names[: names.index(OLDEST) + 1] else names[:1]
    yield from ((registry.designs()[name], constants) for name in reversed(later))


def _at(design: Design, constants: Mapping[str, Value], without: Sequence[str]) -> Evaluator:
    """Another design at the same bounds, less the same actions where it has them."""
    known = {c.name for c in design.constants()}
    named = {a.name for a in design.actions}
    less = design.without(*(a for a in without if a in named))
    return Evaluator(registry.instance_of(less, {n: v for n, v in constants.items() if n in known}))


def roomier(design: Design, constants: Mapping[str, Value]) -> Evaluator:
    """The design with more room at the bounds that only end the explored world."""
    limits = {c.name: c.high for c in design.constants()}
    more = {n: v + ROOM[n] if n in ROOM and isinstance(v, int) and v < limits[n] else v for n, v in constants.items()}
    return Evaluator(registry.instance_of(design, more))
