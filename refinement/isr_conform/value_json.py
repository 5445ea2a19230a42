"""Values of the model as plain JSON: the names are those of an ITF trace, without its type tags.

A value of a sort or choice is its name (`"r1"`, `"requested"`). A number is a number, a set is a list in any order, a
sequence is a list, and a map is an object. A `Maybe` that is absent is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias, cast

from isr_broker.snapshot import Json
from isr_lang import Instance, show
from isr_lang.printing import first
from isr_lang.types import (
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    SeqType,
    SetType,
    SortType,
    Type,
    position_in,
)

JsonObject: TypeAlias = "dict[str, Json]"


class InvalidValue(ValueError):
    """JSON that no value of a variable could be; the message says what was expected."""


def to_json(value: object, type: Type) -> Json:
    """A value of the engines as JSON."""
    match type, value:
        case BoolType(), int():
            return bool(value)
        case NumberType(), int():
            return value
        case ((SortType() | ChoiceType()), int()):
            return show(value, type)
        case MaybeType(), int():
            return None if value == 0 else to_json(position_in(value) + first(type.of), type.of)
        case SetType(), int():
            return [to_json(i + first(type.of), type.of) for i in range(value.bit_length()) if value >> i & 1]
        case MapType(), tuple():
            entries = enumerate(cast("tuple[object, ...]", value), first(type.key))
            return {show(key, type.key): to_json(v, type.value) for key, v in entries}
        case SeqType(), tuple():
            return [to_json(v, type.of) for v in cast("tuple[object, ...]", value)]
        case _:
            raise AssertionError(f"{value!r} is not a value of {type}")


def checked_json(value: Json, type: Type, instance: Instance) -> Json:
    """The JSON that a system sent, in the form that `to_json` writes; InvalidValue if it has another shape.

    Sets come back sorted. A number may be out of the model's range: it is then reported as a difference.
    """
    match type:
        case BoolType():
            if isinstance(value, bool):
                return value
        case NumberType():
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        case SortType() | ChoiceType():
            names = [show(i, type) for i in range(instance.positions(type))]
            if isinstance(value, str) and value in names:
                return value
            raise InvalidValue(f"{_short(value)} is none of {', '.join(names)}")
        case MaybeType():
            return None if value is None else checked_json(value, type.of, instance)
        case SetType():
            if isinstance(value, list):
                order = [to_json(i + first(type.of), type.of) for i in range(instance.positions(type.of))]
                return sorted((checked_json(v, type.of, instance) for v in value), key=order.index)
        case SeqType():
            if isinstance(value, list):
                return [checked_json(v, type.of, instance) for v in value]
        case MapType():
            names = [show(i + first(type.key), type.key) for i in range(instance.positions(type.key))]
            if isinstance(value, dict) and set(value) == set(names):
                return {name: checked_json(value[name], type.value, instance) for name in names}
    raise InvalidValue(f"{_short(value)} is no {_kind(type)}")


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


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def state_json(instance: Instance, state: tuple[object, ...]) -> JsonObject:
    """A state by the names of its variables."""
    return {v.name: to_json(value, v.type) for v, value in zip(instance.variables, state, strict=True)}


def parameters_json(instance: Instance, action: str, parameters: tuple[int, ...]) -> JsonObject:
    """The parameters of a step by their names."""
    folded = next(a for a in instance.actions if a.name == action)
    return {name: to_json(v, type) for (name, type), v in zip(folded.parameters, parameters, strict=True)}


def json_text(value: Json) -> str:
    """JSON as text for people: names without quotes, `none` for null.

    A set is shown as a list, for JSON has no sets.
    """
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case str():
            return value
        case list():
            return f"[{', '.join(map(json_text, value))}]"
        case dict():
            return f"({', '.join(f'{k}: {json_text(v)}' for k, v in value.items())})"
        case _:
            return str(value)


def differing_places(name: str, ours: Json, theirs: Json) -> Iterator[tuple[str, Json, Json]]:
    """The places at which two values of a variable differ, down to the keys of its maps, each with both values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from differing_places(f"{name}[{key}]", value, theirs.get(key))
    elif ours != theirs:
        yield name, ours, theirs
