"""Values of the model as plain JSON, for whoever speaks no ITF: the same names, nothing tagged.

A sort or choice is its name (`"r1"`, `"requested"`), a number a number, a set a list in any order, a sequence a list, a
map an object, and what may be absent null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias, cast

from isr_broker.snapshot import Json
from isr_lang import Instance, show
from isr_lang.printing import first
from isr_lang.types import BoolType, ChoiceType, MapType, MaybeType, NumberType, SeqType, SetType, SortType, Type

Object: TypeAlias = "dict[str, Json]"


class NoSuchValue(ValueError):
    """JSON that cannot be the value of a variable: the message says what was expected."""


def said(value: object, type: Type) -> Json:
    """A value of the engines as JSON."""
    match type, value:
        case BoolType(), int():
            return bool(value)
        case NumberType(), int():
            return value
        case ((SortType() | ChoiceType()), int()):
            return show(value, type)
        case MaybeType(), int():
            return None if value == 0 else said(value - 1 + first(type.of), type.of)
        case SetType(), int():
            return [said(i + first(type.of), type.of) for i in range(value.bit_length()) if value >> i & 1]
        case MapType(), tuple():
            entries = enumerate(cast("tuple[object, ...]", value), first(type.key))
            return {show(key, type.key): said(v, type.value) for key, v in entries}
        case SeqType(), tuple():
            return [said(v, type.of) for v in cast("tuple[object, ...]", value)]
        case _:
            raise AssertionError(f"{value!r} is not a value of {type}")


def heard(told: Json, type: Type, instance: Instance) -> Json:
    """JSON of somebody else's as `said` would have written it; NoSuchValue if it has another shape.

    A number may be any number: one that the model cannot have differs from the model's.
    """
    match type:
        case BoolType():
            if isinstance(told, bool):
                return told
        case NumberType():
            if isinstance(told, int) and not isinstance(told, bool):
                return told
        case SortType() | ChoiceType():
            names = [show(i, type) for i in range(instance.positions(type))]
            if isinstance(told, str) and told in names:
                return told
            raise NoSuchValue(f"{_short(told)} is none of {', '.join(names)}")
        case MaybeType():
            return None if told is None else heard(told, type.of, instance)
        case SetType():
            if isinstance(told, list):
                order = [said(i + first(type.of), type.of) for i in range(instance.positions(type.of))]
                return sorted((heard(v, type.of, instance) for v in told), key=order.index)
        case SeqType():
            if isinstance(told, list):
                return [heard(v, type.of, instance) for v in told]
        case MapType():
            names = [show(i + first(type.key), type.key) for i in range(instance.positions(type.key))]
            if isinstance(told, dict) and set(told) == set(names):
                return {name: heard(told[name], type.value, instance) for name in names}
    raise NoSuchValue(f"{_short(told)} is no {_kind(type)}")


def _kind(type: Type) -> str:
    match type:
        case BoolType():
            return "true or false"
        case NumberType():
            return "whole number"
        case SetType():
            return f"list of {type.of}, each at most once"
        case SeqType():
            return f"list of {type.of}"
        case MapType():
            return f"object with a value for every {type.key}"
        case _:
            return str(type)


def _short(told: Json) -> str:
    text = json.dumps(told)
    return text if len(text) <= 60 else f"{text[:57]}..."


def state_said(instance: Instance, state: tuple[object, ...]) -> Object:
    """A state by the names of its variables."""
    return {v.name: said(value, v.type) for v, value in zip(instance.variables, state, strict=True)}


def parameters_said(instance: Instance, action: str, parameters: tuple[int, ...]) -> Object:
    """The parameters of a step by their names."""
    folded = next(a for a in instance.actions if a.name == action)
    return {name: said(v, type) for (name, type), v in zip(folded.parameters, parameters, strict=True)}


def written(value: Json) -> str:
    """JSON as people write it: r1, {r1, r2} for a set would need the type, so lists are lists; none for null."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case str():
            return value
        case list():
            return f"[{', '.join(map(written, value))}]"
        case dict():
            return f"({', '.join(f'{k}: {written(v)}' for k, v in value.items())})"
        case _:
            return str(value)


def apart(name: str, ours: Json, theirs: Json) -> Iterator[tuple[str, Json, Json]]:
    """Where two values of a variable differ, down to the keys of its maps: the place, and both values there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from apart(f"{name}[{key}]", value, theirs.get(key))
    elif ours != theirs:
        yield name, ours, theirs
