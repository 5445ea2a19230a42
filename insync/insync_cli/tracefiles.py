"""Between runs and trace files: a finding's path becomes a file, a file becomes a trace of a known design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from insync_cli.exits import InputError, UsageError
from isr_check.engine import Finding
from isr_check.reference import Evaluator
from isr_trace.itf import read_itf, write_itf
from isr_trace.replay import record
from isr_trace.trace import Trace, TraceError

if TYPE_CHECKING:
    from rich.console import Console

    from isr_lang import Instance


def save(instance: Instance, finding: Finding, folder: Path) -> Path:
    """The counterexample or witness of a finding as `<folder>/<property>.itf.json`."""
    assert finding.path is not None, "only a finding with a path has a trace"
    path = folder / f"{finding.name}.itf.json"
    trace = record(
        Evaluator(instance),
        finding.path.initial,
        finding.path.steps,
        property_name=finding.name,
        verdict=finding.verdict.value,
    )
    try:
        write_itf(trace, path)
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    return path


def load(path: Path) -> Trace:
    """The trace in a file, whoever wrote it; InputError when it is none."""
    try:
        return read_itf(path)
    except TraceError as problem:
        raise InputError(str(problem)) from None


def print_short(out: Console, path: Path) -> None:
    """The steps with what they changed, the last scene, and why the property fails there."""
