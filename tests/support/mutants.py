"""Traces with one thing changed: a line left out, doubled, swapped with its neighbour, or one field altered.

Lines are chosen over all kinds of events alike, fields over all that a line of that kind has, at any depth. The lines
are then numbered anew, and the clock of the life set right, so that it takes more than counting to notice.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import TypeAlias, cast

import attrs

from isr_broker.snapshot import Json
from isr_broker.trace_reader import BadTrace, Event, Life
from isr_validate import Level, validate

Lines: TypeAlias = "list[dict[str, Json]]"
Path: TypeAlias = "tuple[str | int, ...]"

KINDS = ("delete", "double", "swap", "alter")


@attrs.frozen
class Mutant:
    """What was changed, where: the kind of line, and of an altered field its name."""

    kind: str
    line: str
    field: str
    lives: tuple[Life, ...]


def what(says: Mapping[str, Json]) -> str:
    """The kind of a line: its action, or the input that took none."""
    return str(says.get("action", says.get("input")))


def with_lines(life: Life, lines: Lines) -> Life:
    """The life with other lines, numbered anew."""
    events: list[Event] = []
    for n, line in enumerate(lines, 1):
        clock = {**cast("dict[str, int]", line["clock"]), life.name: n}
        says = {**line, "n": n, "clock": cast("Json", clock)}
        events.append(Event(life.name, n, clock, says))
    return Life(life.name, life.header, tuple(events), False)


def altered(value: Json, chance: Random) -> Json:
    """Another value of the same kind, or something for nothing."""
    match value:
        case None:
            return chance.choice([0, 1, 2])
        case bool():
            return not value
        case int():
            return value + chance.choice([-1, 1])
        case str():
            return "NOT_LEADER_OR_FOLLOWER" if value == "NONE" else "NONE" if value.isupper() else f"{value}x"
        case list():
            return value[1:] if value else [1]
        case _:
            return None


def places(says: Mapping[str, Json]) -> list[Path]:
    """Every field of a line with a value that is not an object or a list of lists, but for its number."""
    found: list[Path] = []

    def look(value: Json, path: Path) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                look(inner, (*path, name))
        elif isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
            for n, inner in enumerate(value):
                look(inner, (*path, n))
        elif path != ("n",):
            found.append(path)

    look(dict(says), ())
    return found


def named(path: Path) -> str:
    """A field's name, whatever its place in a list and whichever broker's entry."""
    parts = [str(part) for part in path if not isinstance(part, int)]
    return ".".join("*" if part[:1].isdigit() or part.startswith("controller.") else part for part in parts)


def change(line: dict[str, Json], path: Path, chance: Random) -> None:
    """Alter the field."""
    holder = cast("dict[str | int, Json]", line)
    for part in path[:-1]:
        holder = cast("dict[str | int, Json]", holder[part])
    holder[path[-1]] = altered(holder[path[-1]], chance)


def mutants(lives: tuple[Life, ...], chance: Random, kind: str) -> Iterator[Mutant]:
    """Without end; each kind of line is as likely as any other."""
    by_kind: dict[str, list[tuple[int, int]]] = {}
    for place, life in enumerate(lives):
        for n, event in enumerate(life.events):
            by_kind.setdefault(what(event.says), []).append((place, n))
    while True:
        line = chance.choice(sorted(by_kind))
        place, n = chance.choice(by_kind[line])
        life = lives[place]
        lines = [dict(e.says) for e in life.events]
        field = ""
        if kind == "delete":
            del lines[n]
        elif kind == "double":
            lines.insert(n, copy.deepcopy(lines[n]))
        elif kind == "swap":
            if n + 1 == len(lines):
                continue
            lines[n], lines[n + 1] = lines[n + 1], lines[n]
        else:
            lines[n] = copy.deepcopy(lines[n])
            path = chance.choice(places(lines[n]))
            field = named(path)
            change(lines[n], path, chance)
        if not lines:
            continue
        try:
            made = with_lines(life, lines)
        except (TypeError, ValueError, KeyError):
            continue
        yield Mutant(kind, line, field, (*lives[:place], made, *lives[place + 1 :]))


def verdict(mutant: Mutant, level: Level = Level.FULL) -> str:
    """`rejected`, `no trace`, `unknown` or `accepted`."""
    try:
        done = validate(mutant.lives, level)
    except BadTrace:
        return "no trace"
    if done.rejected is not None:
        return "rejected"
    return "accepted" if done.unknown is None else "unknown"


def as_lines(life: Life) -> bytes:
    """The life as a file."""
    return b"".join(
        json.dumps(line).encode() + b"\n" for line in [dict(life.header), *(dict(e.says) for e in life.events)]
    )
