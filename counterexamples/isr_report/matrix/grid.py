"""What was found in the cells of the guarantees matrix: one JSON document that names the run file of each cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from isr_lang import Value
from isr_trace.trace import TraceError

SCHEMA = "insync/matrix/5"
VIOLATED = "VIOLATED"


class PromiseEntry(TypedDict):
    """`trace` is relative to the folder of the matrix; `depth`: the steps of the counterexample or witness."""

    name: str
    kind: str
    verdict: str
    depth: int | None
    trace: str | None


class CellEntry(TypedDict):
    """`run` is the cell's run.json, relative to the folder of the matrix."""

    name: str
    design: str
    model_hash: str
    settings: dict[str, str]
    fault: str
    constants: dict[str, Value]
    run: str
    command: list[str]
    distinct: int
    generated: int
    depth: int
    seconds: float
    complete: bool
    promises: list[PromiseEntry]


class DesignEntry(TypedDict):
    name: str
    summary: str


class FaultEntry(TypedDict):
    """`count`: how many faults it is; `recommended`: tried with three replicas, at the settings that Kafka's
    documentation recommends."""

    name: str
    says: str
    count: int
    recommended: bool


class Matrix(TypedDict):
    """`client` and `usual` are those of the plan; a probe has a trace in the cell where its witness is shortest."""

    schema: str
    version: str
    designs: list[DesignEntry]
    promises: dict[str, str]
    settings: dict[str, list[str]]
    faults: list[FaultEntry]
    usual: dict[str, str]
    client: dict[str, str]
    cells: list[CellEntry]


def verdict_of(cell: CellEntry, promise: str) -> PromiseEntry | None:
    """What the cell says of a promise; None where nothing is promised at its settings."""
    return next((p for p in cell["promises"] if p["name"] == promise), None)


def violated(cell: CellEntry) -> list[PromiseEntry]:
    """The promises that the cell breaks, in the order of the plan; what is reached is no promise."""
    return [p for p in cell["promises"] if p["verdict"] == VIOLATED]


def is_probe(entry: PromiseEntry) -> bool:
    """Whether it says that something can happen; all else is a promise."""
    return entry["kind"].startswith("sometimes")


def parsed_matrix(text: str, name: str) -> Matrix:
    """The matrix in the text of a file; TraceError, with the name of the file, when it is none."""
    try:
        document = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        raise TraceError(f"{name}: not a matrix: it is not JSON") from None
    if not isinstance(document, dict) or cast("Mapping[str, object]", document).get("schema") != SCHEMA:
        raise TraceError(f"{name}: not a matrix: its schema is not {SCHEMA}")
    return cast("Matrix", document)


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file; TraceError when it is none, or names a run that is not there."""
    try:
        matrix = parsed_matrix(path.read_text(encoding="utf-8"), str(path))
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path}: not a matrix: it is not JSON") from None
    for cell in matrix["cells"]:
        named = [cell["run"], *(p["trace"] for p in cell["promises"] if p["trace"])]
        missing = [name for name in named if not (path.parent / name).is_file()]
        if missing:
            raise TraceError(f"{path}: the cell {cell['name']} names {missing[0]}, which is not there")
    return matrix
