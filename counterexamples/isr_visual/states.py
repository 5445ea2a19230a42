"""States between their two forms: tuples of the engines, and ITF expressions by the name of the variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypedDict

from isr_lang import Instance
from isr_trace.codec import Json, encode
from isr_trace.diff import between
from isr_trace.replay import Values
from isr_trace.trace import resolve_type


class ChangeLine(TypedDict):
    """One changed cell, as the JSON reports have it."""

    path: str
    before: str
    after: str


def changed_cells(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[ChangeLine]:
    """The cells in which two states differ."""
    found = (c for name in new for c in between(name, old.get(name), new[name]))
    return [ChangeLine(path=c.path, before=c.before, after=c.after) for c in found]


def expressions(instance: Instance, state: Values, names: Collection[str] = ()) -> dict[str, Json]:
    """The variables of a state, or those of these names, as ITF expressions."""
    pairs = zip(instance.variables, state, strict=True)
    return {v.name: encode(x, resolve_type(v.type, instance)) for v, x in pairs if not names or v.name in names}
