"""Between runs and trace files: a finding's path becomes a file, a file becomes a trace of a known design."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypedDict

import attrs

from insync_cli import options, registry
from insync_cli.exits import InputError, UsageError, did_you_mean
from insync_cli.terminal import make_folder
from isr_check.engine import Finding
from isr_check.reference import Evaluator
from isr_trace.cases import CASES, load_cases
from isr_trace.diff import changes
from isr_trace.explain import explain, explanation_lines
from isr_trace.itf import read_itf, write_itf
from isr_trace.lasso import checked_run
from isr_trace.replay import Replay, record
from isr_trace.scene import scene
from isr_trace.show import beat, ending, heading
from isr_trace.trace import FOREIGN, Trace, TraceError, require_version

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Instance, Value

SUFFIX = ".itf.json"
CORPUS = Path(CASES)
"""The folder of cases, in a checkout."""
CORPORA = (CORPUS, Path("counterexamples", "quorum_cases"))
"""The same, and the folder of what was reported of the quorum below the controller."""
CASE_TRACE = "trace.itf.json"
_TOP = Path(__file__).resolve().parents[2]
CHECKOUT = _TOP if (_TOP / CORPUS).is_dir() else Path(__file__).parent / "checkout"
"""The checkout that this code is run from or, of an installed wheel, its copy of those files that verbs read."""


def default_folder(instance: Instance, *question: object) -> str:
    """Below runs/, the same for the same question, so that a repeated run replaces its own files."""
    parts = [instance.design.model_hash(), instance.constants, *question]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    return f"runs/{instance.design.name}-{digest}"


def save(instance: Instance, findings: Iterable[Finding], folder: Path, *, shortest: bool = True) -> dict[str, Path]:
    """The counterexamples and witnesses among the findings, each as `<folder>/<property>.itf.json`, by property.

    Of a property without one the file goes that an earlier run left there. No shorter one exists, if it ends: every
    engine searches breadth first (isr_check.engine). Only a random walk does not.
    """
    evaluator, design = None, instance.design
    unfair, strong = registry.fairness_changed(design)
    trace_paths: dict[str, Path] = {}
    for finding in findings:
        file = folder / f"{finding.name}{SUFFIX}"
        if finding.path is None:
            file.unlink(missing_ok=True)
            continue
        evaluator = evaluator or Evaluator(instance)
        trace = record(
            evaluator,
            finding.path.initial,
            finding.path.steps,
            property_name=finding.name,
            verdict=finding.verdict.value,
            shortest=shortest,
            loop=finding.path.loop,
            without=registry.left_out(design),
        )
        write(attrs.evolve(trace, unfair=unfair, strong=strong), file)
        trace_paths[finding.name] = file
    return trace_paths


def write(trace: Trace, path: Path) -> None:
    make_folder(path.parent)
    try:
        write_itf(trace, path)
    except TraceError as problem:
        raise UsageError(str(problem)) from None


def corpus(folder: Path) -> Path:
    """The folder; where it is the usual one of a checkout, and this is run elsewhere, the one of this code."""
    return CHECKOUT / CORPUS if folder == CORPUS and not folder.is_dir() else folder


@cache
def tickets() -> Mapping[str, tuple[str, ...]]:
    """The cases of the corpus -> where the world knows each from, such as KAFKA-16234."""
    files = [CHECKOUT / folder / "cases.toml" for folder in CORPORA]
    return {case.name: case.tracker for file in files for case in load_cases(file).cases}


def cases_of_ticket(word: str) -> list[str]:
    """The cases that a ticket is about, in whatever case its letters are."""
    return [name for name, keys in tickets().items() if word.upper() in map(str.upper, keys)]


def trace_file(word: str) -> Path:
    """The file that somebody means: a path, or a case of a corpus by its name or its ticket."""
    path = Path(word)
    if path.exists() or path.name != word or path.suffix:
        return path
    corpora = [f for folder in CORPORA for f in (folder, CHECKOUT / folder) if f.is_dir()]

    def file_of(case: str) -> Path | None:
        return next((file for folder in corpora if (file := folder / case / CASE_TRACE).exists()), None)

    if (file := file_of(word)) is not None:
        return file
    names = cases_of_ticket(word)
    if len(names) > 1:
        raise InputError(f"{word} has {len(names)} cases: {', '.join(names)}")
    if names and (file := file_of(names[0])) is not None:
        return file
    cases = {file.parent.name for folder in corpora for file in folder.glob(f"*/{CASE_TRACE}")}
    hint = did_you_mean(word, cases) or (f"; they are {', '.join(sorted(cases))}" if cases else "")
    raise InputError(f"{word}: there is no such file, and no case of this name{hint}")


def check_behaviour(path: Path) -> Evaluator:
    """The model at the bounds of a trace; InputError unless, run again, it does what the trace says, step by step, and
    a loop of it is one that breaks its promise."""
    trace, evaluator = replayable(path)
    with saying_which(path):
        checked_run(trace, Replay(evaluator))
    return evaluator


def load(path: Path) -> Trace:
    """The trace in a file, whoever wrote it; InputError when it is none."""
    try:
        return read_itf(path)
    except TraceError as problem:
        raise InputError(str(problem)) from None


@contextmanager
def saying_which(path: Path) -> Generator[None]:
    """What is wrong with a trace, as a sentence about its file."""
    try:
        yield
    except TraceError as problem:
        raise InputError(f"{path}: {problem}") from None


def missing_file(trace: Trace) -> str:
    """Which file of designs has to be given to play the trace again; nothing where its design is known.

    It is not run because a trace names it: the trace may be from anybody.
    """
    if not trace.design_file or trace.design in registry.designs():
        return ""
    return f"its design {trace.design} is in {trace.design_file}; add {options.OWN_DESIGNS} {quote(trace.design_file)}"


def replayable(path: Path) -> tuple[Trace, Evaluator]:
    """A trace of today's version of a known design, and that design at its bounds; else InputError."""
    trace = load(path)
    with saying_which(path):
        if trace.foreign:
            raise TraceError(FOREIGN)
        if wanted := missing_file(trace):
            raise TraceError(wanted)
        try:
            design = registry.design_of(trace.design, trace.without, trace.unfair, trace.strong)
            require_version(trace, design.model_hash())
            if trace.property_name not in ("", *registry.property_names(design)):
                lemmas = [c.promise for c in registry.invariant_of(design) if c.name == trace.property_name]
                design = registry.promising(design, lemmas)
            return trace, Evaluator(registry.instance_of(design, trace.constants))
        except UsageError as problem:
            raise TraceError(str(problem)) from None


def print_short(out: Console, path: Path, evaluator: Evaluator | None = None) -> None:
    """The steps with what they changed, the last scene, and why the property fails there.

    `evaluator`: the trace's design at its bounds, where somebody has it already.
    """
    trace = load(path)
    out.print()
    beats = range(1, len(trace.states)) if len(trace.states) > 1 and not trace.anywhere else range(len(trace.states))
    for line in (*heading(trace), *(line for i in beats for line in ("", *beat(trace, i, scenes=False)))):
        out.print(line, soft_wrap=True)
    drawn = scene(trace, len(trace.states) - 1)
    out.print("\n".join(["", *(f"  {line}" for line in drawn.lines()), ""]) if drawn else "", soft_wrap=True)
    if trace.loop is not None:
        out.print(ending(trace), "", soft_wrap=True, sep="\n")
        return
    for line in explanation_lines(explain(trace, evaluator or replayable(path)[1])):
        out.print(line, soft_wrap=True)
    out.print()


class ChangeLine(TypedDict):
    path: str
    before: str
    after: str


class StepLine(TypedDict):
    step: int
    action: str
    parameters: str
    changes: list[ChangeLine]


class TraceReport(TypedDict):
    design: str
    model_hash: str
    property: str
    verdict: str
    bounds: dict[str, Value]
    steps: list[StepLine]


def steps_of(trace: Trace) -> TraceReport:
    """A trace as the JSON reports have it: its steps, and what each changed."""
    actions = [(s.action, trace.parameters_text(s)) for s in trace.steps]
    actions = actions or [("", "")] * (len(trace.states) - 1)  # another program does not say what it did
    return TraceReport(
        design=trace.design,
        model_hash=trace.model_hash,
        property=trace.property_name,
        verdict=trace.verdict,
        bounds=registry.world(trace.constants, trace.without, trace.unfair, trace.strong),
        steps=[
            StepLine(
                step=i,
                action=action,
                parameters=parameters,
                changes=[ChangeLine(path=c.path, before=c.before, after=c.after) for c in changes(trace, i)],
            )
            for i, (action, parameters) in enumerate(actions, 1)
        ],
    )
