"""Answers that come with the package: what was explored of the usual classes, so that a drill need not do it again.

The table is a JSON file. A class is known by a digest of its settings, its first states and its phases. An entry has
what `isr_drill.drill` asks of both explorations, and the shortest way to the first loss. The table counts only while
the protocols and the coarse models are what they were (`tests/isr_drill/test_answers.py` fails when they are not).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path as File
from typing import Final, TypedDict, cast

from isr_check.engine import Path
from isr_check.reference import State
from isr_drill import changes, exploration, record_fate
from isr_drill.changes import PROTOCOLS
from isr_drill.exploration import Class, Exploration, Explored, Sightings, Way
from isr_protocol.by_name import DESIGNS

SCHEMA: Final = "insync/drill-answers/1"
TABLE: Final = File(__file__).parent / "answers.json"
MODELS: Final = (record_fate, changes, exploration)


class PhaseEntry(TypedDict, total=False):
    """`n` states; `w`: the properties that one of them witnesses."""

    n: int
    w: list[str]


class ExplorationEntry(TypedDict, total=False):
    """`loss`, where there is one: its phase, the number of its first state, the steps, and the last state."""

    phases: list[PhaseEntry]
    states: int
    loss: tuple[int, int, list[tuple[str, list[object]]], list[object]]


class AnswerTable(TypedDict):
    """`models`: by protocol a digest of it and of the coarse models. `answers`: by the digest of a class."""

    schema: str
    models: dict[str, str]
    answers: dict[str, tuple[str, ExplorationEntry, ExplorationEntry]]


def class_digest(of: Class) -> str:
    """The name of a class in the table."""
    return hashlib.sha256(repr(of).encode()).hexdigest()[:20]


@cache
def model_digest(protocol: str) -> str:
    """What the answers of a protocol depend on: the protocol, and the code of the coarse models."""
    design = PROTOCOLS[protocol] if protocol in PROTOCOLS else DESIGNS[protocol]
    code = b"".join(File(str(module.__file__)).read_bytes() for module in MODELS)
    return hashlib.sha256(design.model_hash().encode() + code).hexdigest()[:16]


def stored_answers(file: File = TABLE) -> Mapping[str, tuple[str, ExplorationEntry, ExplorationEntry]]:
    """The entries whose models are what they were, by the digest of a class; each with its protocol."""
    if not file.exists():
        return {}
    table = cast("AnswerTable", json.loads(file.read_text(encoding="utf-8")))
    fresh = {name for name, digest in table["models"].items() if model_digest(name) == digest}
    return {key: entry for key, entry in table["answers"].items() if entry[0] in fresh}


@cache
def _usual() -> Mapping[str, tuple[str, ExplorationEntry, ExplorationEntry]]:
    return stored_answers()


def answer_of(of: Class) -> Explored | None:
    """What was explored of a class, where it is stored."""
    entry = _usual().get(class_digest(of))
    if entry is None:
        return None
    _, starts, _ = of
    return _exploration(entry[1], starts), _exploration(entry[2], starts)


def _exploration(entry: ExplorationEntry, starts: tuple[State, ...]) -> Exploration:
    phases = tuple(Sightings(p.get("n", 0), set(p.get("w", []))) for p in entry.get("phases", []))
    if "loss" in entry:
        phase, start, steps, end = entry["loss"]
        path = Path((), tuple((name, tuple(cast("list[int]", p))) for name, p in steps))
        phases[phase].loss = Way(starts[start], path, cast("State", _tuples(end)))
    return Exploration(phases, True, entry.get("states", 0))


def _tuples(value: object) -> object:
    """JSON's lists as the tuples of a state."""
    return tuple(map(_tuples, cast("list[object]", value))) if isinstance(value, list) else value


def _entry(whole: Exploration, starts: tuple[State, ...]) -> ExplorationEntry:
    entry = ExplorationEntry(phases=[PhaseEntry(n=p.states, w=sorted(p.witnessed)) for p in whole.phases])
    entry["states"] = whole.states
    first = next(((n, p.loss) for n, p in enumerate(whole.phases) if p.loss is not None), None)
    if first is not None:
        phase, way = first
        steps = [(name, list(cast("tuple[object, ...]", parameters))) for name, parameters in way.path.steps]
        entry["loss"] = (phase, starts.index(way.start), steps, list(way.end))
    return entry


def write_table(explored: Iterable[tuple[Class, Explored]], file: File = TABLE) -> int:
    """One line for each class that was explored to its end, in the order of the digests. How many there are."""
    answers = {
        class_digest(key): (key[0].design, _entry(restless, key[1]), _entry(calm, key[1]))
        for key, (restless, calm) in explored
        if restless.complete and calm.complete
    }
    models = {name: model_digest(name) for name in sorted({entry[0] for entry in answers.values()})}
    rows = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(entry, separators=(',', ':'))}" for key, entry in sorted(answers.items())
    )
    head = f'{{\n"schema": {json.dumps(SCHEMA)},\n"models": {json.dumps(models)},\n"answers": {{\n'
    file.write_text(f"{head}{rows}\n}}\n}}\n", encoding="utf-8")
    return len(answers)
