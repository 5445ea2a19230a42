"""What is on file about the parts of a design: at which bounds to drop them, and which are redundant, and why."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import registry, terminal
from insync_cli.exits import InputError, UsageError
from insync_cli.tracefiles import CHECKOUT
from isr_check.mutation import Part

if TYPE_CHECKING:
    from isr_lang import Design, Value

REDUNDANT = "docs/redundant-guards.toml"
BOUNDS = "docs/mutation-bounds.toml"

Guard = tuple[str, str]
"""The name of an action or, of a term, of a definition, and one of its parts, as it is listed."""

HOLDERS = {Part.GUARD: "action", Part.TERM: "definition", Part.ASSIGNMENT: "action"}


def redundant(file: Path | None, design: str, part: Part = Part.GUARD) -> dict[Guard, str]:
    """The reason for each part of the design that is listed as redundant. Without a file, the list of the checkout."""
    path = file or on_file(REDUNDANT)
    reasons: dict[Guard, str] = {}
    holder = HOLDERS[part]
    for entry in entries(path, part.value):
        words = [entry.get(key) for key in ("design", holder, part.value, "reason")]
        if not all(isinstance(word, str) and word for word in words):
            holders, parts = (f"{'an' if word[0] in 'aeiou' else 'a'} {word}" for word in (holder, part.value))
            raise InputError(f"{path}: every [[{part}]] has a design, {holders}, {parts} and a reason")
        if words[0] == design:
            reasons[cast("str", words[1]), cast("str", words[2])] = cast("str", words[3])
    return reasons


def choices(file: Path | None, design: Design) -> list[Mapping[str, Value]]:
    """The constants at which to drop the guards of a design, in the order of the file; else its defaults."""
    path = file or on_file(BOUNDS)
    bounds: list[Mapping[str, Value]] = []
    for entry in entries(path, "bounds"):
        name, constants = entry.get("design"), entry.get("constants")
        if not isinstance(name, str) or not isinstance(constants, dict):
            raise InputError(f"{path}: every [[bounds]] has a design and a table of constants")
        if name == design.name:
            typed_constants = cast("dict[str, Value]", constants)
            try:
                registry.instance_of(design, typed_constants)
            except UsageError as problem:
                raise InputError(f"{path}: {problem}") from None
            bounds.append(typed_constants)
    return bounds or [{}]


def on_file(name: str) -> Path | None:
    """The file of this name, here or in the checkout (or wheel) of this code; None, with a warning, in neither."""
    for folder in (Path(), CHECKOUT):
        if (folder / name).exists():
            return folder / name
    print(f"insync: there is no {name} here: nothing is taken from it", file=sys.stderr)
    return None


def entries(path: Path | None, key: str) -> list[dict[str, object]]:
    """The tables under one key of a TOML file; an empty list where there is no file."""
    if path is None:
        return []
    try:
        table = cast("dict[str, object]", tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {terminal.reason(problem)}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InputError(f"{path}: not TOML: {problem}") from None
    listed = table.get(key, [])
    tables = cast("list[object]", listed) if isinstance(listed, list) else [listed]
    return [cast("dict[str, object]", entry) if isinstance(entry, dict) else {} for entry in tables]
