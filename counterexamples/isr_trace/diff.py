"""What changed between two states, to the cell: works on ITF expressions, so on any model and any program's.

`log[r1] + m2`, `isr - r3`, `high_watermark[r2]: 0 -> 1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import attrs

from isr_lang.types import Type
from isr_trace.codec import Json, encode
from isr_trace.trace import Trace

Plain = str | tuple["Plain", ...] | dict[str, "Plain"]
"""A value as text, an ordered collection, or something indexed."""


@attrs.frozen
class Change:
    """One cell. `before` is empty where something was added, `after` where something was taken away."""

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.path} + {self.after}"
        return f"{self.path}: {self.before} -> {self.after}" if self.after else f"{self.path} - {self.before}"


def expression(trace: Trace, index: int, name: str) -> Json:
    """The value of a variable in a state as an ITF expression; None when the state does not have it."""
    return as_expression(trace.states[index].get(name), trace.variables.get(name))


def as_expression(value: object, type: Type | None) -> Json:
    """A value of the engines as an ITF expression; one of another program, which has no type, is one already."""
    return value if type is None else encode(value, type)


def changes(trace: Trace, index: int) -> list[Change]:
    """What step `index` (counted from 1) changed, in the order of the variables."""
    found: list[Change] = []
    for name in trace.variables:
        found += between(name, expression(trace, index - 1, name), expression(trace, index, name))
    return found


def between(path: str, before: Json, after: Json) -> Iterator[Change]:
    """The differing cells of two ITF expressions."""
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return
    old, new = _by_index(before), _by_index(after)
    if old is not None and new is not None:
        for key in dict.fromkeys((*old, *new)):
            yield from between(path + key, old.get(key), new.get(key))
        return
    old_set, new_set = _members(before), _members(after)
    if old_set is not None and new_set is not None:
        removals = ", ".join(member for member in old_set if member not in new_set)
        come = ", ".join(member for member in new_set if member not in old_set)
        if removals and come:
            yield Change(path, text_of(before), text_of(after))
        elif removals or come:
            yield Change(path, removals, come)
        return
    old_list, new_list = sequence(before), sequence(after)
    if old_list is not None and new_list is not None:
        yield from _cells(path, old_list, new_list)
        return
    yield Change(path, "" if before is None else text_of(before), "" if after is None else text_of(after))


def _cells(path: str, old: list[Json], new: list[Json]) -> Iterator[Change]:
    for i, (a, b) in enumerate(zip(old, new, strict=False)):
        yield from between(f"{path}[{i}]", a, b)
    yield from (Change(path, text_of(item), "") for item in old[len(new) :])
    yield from (Change(path, "", text_of(item)) for item in new[len(old) :])


def _tagged(value: Json, tag: str) -> list[Json] | None:
    inner = cast("Mapping[str, Json]", value).get(tag) if isinstance(value, dict) else None
    return cast("list[Json]", inner) if isinstance(inner, list) else None


def _by_index(value: Json) -> dict[str, Json] | None:
    """The cells of a map by `[key]`, those of a record by `.field`."""
    entries = _tagged(value, "#map")
    if entries is not None:
        pairs = [cast("list[Json]", e) for e in entries if isinstance(e, list)]
        return {f"[{text_of(p[0])}]": p[1] for p in pairs if len(p) == 2}
    if isinstance(value, dict):
        record = cast("dict[str, Json]", value)
        if not _variant(record) and not any(key.startswith("#") for key in record):
            return {f".{key}": v for key, v in record.items()}
    return None


def _label(cell: str) -> str:
    return cell[1:-1] if cell.startswith("[") else cell[1:]


def _variant(value: Json) -> bool:
    return isinstance(value, dict) and set(cast("dict[str, Json]", value)) == {"tag", "value"}


def _members(value: Json) -> list[str] | None:
    members = _tagged(value, "#set")
    return [text_of(m) for m in members] if members is not None else None


def sequence(value: Json) -> list[Json] | None:
    return cast("list[Json]", value) if isinstance(value, list) else _tagged(value, "#tup")


def text_of(value: Json) -> str:
    """An ITF expression as people write it: r1, {r1, r2}, (r1: [m1, m2]), none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value or '""'
    items = sequence(value)
    if items is not None:
        return "[" + ", ".join(map(text_of, items)) + "]"
    members = _members(value)
    if members is not None:
        return "{" + ", ".join(members) + "}"
    if _variant(value):
        variant = cast("dict[str, Json]", value)
        tag, inner = text_of(variant["tag"]), text_of(variant["value"])
        return "none" if tag == "None" else inner if tag == "Some" else f"{tag}({inner})"
    cells = _by_index(value)
    if cells is not None:
        return "(" + ", ".join(f"{_label(key)}: {text_of(v)}" for key, v in cells.items()) + ")"
    if isinstance(value, dict):
        record = cast("dict[str, Json]", value)
        return str(record.get("#bigint", record.get("#unserializable", record)))
    return str(value)


def plain(value: Json) -> Plain:
    """An ITF expression as Python collections of text, for drawing."""
    cells = _by_index(value)
    if cells is not None:
        return {_label(key): plain(v) for key, v in cells.items()}
    members = _members(value)
    if members is not None:
        return tuple(members)
    items = sequence(value)
    return tuple(plain(i) for i in items) if items is not None else text_of(value)
