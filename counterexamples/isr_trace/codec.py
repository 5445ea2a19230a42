"""Types and values as JSON: ITF expressions, and the table of types under `#meta` that explains them.

A number is plain, or {"#bigint": "..."} beyond what a double holds; sorts and choices are strings as people
write them; a set is {"#set": [...]}, a map {"#map": [[k, v], ...]}, a sequence a list, a maybe the variant
{"tag": "None"|"Some", "value": ...}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from isr_lang import show
from isr_lang.nodes import Node, literal
from isr_lang.printing import first
from isr_lang.types import (
    BOOL,
    COUNT,
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
    maybe_of,
    position_in,
)
from isr_trace.trace import TraceError

Json = object
EXACT_IN_A_DOUBLE = 2**53 - 1


# JSON as it comes from a file, one sentence for whatever does not fit


def table(value: Json, what: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TraceError(f"{what} should be an object")
    return cast("dict[str, Json]", value)


def items(value: Json, what: str) -> list[Json]:
    if not isinstance(value, list):
        raise TraceError(f"{what} should be a list")
    return cast("list[Json]", value)


def word(value: Json, what: str) -> str:
    if not isinstance(value, str):
        raise TraceError(f"{what} should be a string")
    return value


def whole(value: Json, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TraceError(f"{what} should be a whole number")
    return value


# types


def scalars(types: Iterator[Type]) -> dict[str, Json]:
    """The scalar types among and below these, by name, with their sizes."""
    entries: dict[str, Json] = {}
    for type in types:
        match type:
            case NumberType():
                high = _size(type.high) if type.high is not None else None
                entries[type.name] = {"kind": "number", "low": type.low, "high": high}
            case SortType():
                entries[type.name] = {
                    "kind": "sort",
                    "prefix": type.prefix,
                    "size": _size(type.size),
                    "symmetric": type.symmetric,
                }
            case ChoiceType():
                entries[type.name] = {"kind": "choice", "members": list(type.members)}
            case MaybeType() | SetType():
                entries |= scalars(iter((type.of,)))
            case MapType():
                entries |= scalars(iter((type.key, type.value)))
            case SeqType():
                entries |= scalars(iter((type.index, type.of)))
            case BoolType():
                pass
    return entries


def _size(node: Node) -> int:
    assert node.op == "literal", "sizes are resolved before a trace is made"
    return cast("int", node.attr)


def scalar_from(name: str, value: Json) -> Scalar:
    entry = table(value, f"type {name}")
    match entry.get("kind"):
        case "number":
            high = entry.get("high")
            top = literal(whole(high, f"high of {name}"), COUNT) if high is not None else None
            return NumberType(name, whole(entry.get("low"), f"low of {name}"), top)
        case "sort":
            size = literal(whole(entry.get("size"), f"size of {name}"), COUNT)
            prefix = word(entry.get("prefix"), f"prefix of {name}")
            return SortType(name, size, entry.get("symmetric") is True, prefix)
        case "choice":
            members = items(entry.get("members"), f"members of {name}")
            return ChoiceType(name, tuple(word(m, f"a member of {name}") for m in members))
        case kind:
            raise TraceError(f"type {name} has the unknown kind {kind!r}")


def type_from(text: str, scalar_types: Mapping[str, Scalar]) -> Type:
    """The type that `Map[Replica, Seq[Offset, Record]]` stands for."""
    name, bracket, rest = text.partition("[")
    if not bracket:
        if name != "Bool" and name not in scalar_types:
            raise TraceError(f"the type {name} is not explained")
        return BOOL if name == "Bool" else scalar_types[name]
    if not rest.endswith("]"):
        raise TraceError(f"'{text}' is not a type")
    parts = [type_from(part, scalar_types) for part in _split(rest[:-1])]
    match name, parts:
        case "Maybe", [BoolType() | NumberType() | SortType() | ChoiceType() as of]:
            return MaybeType(of)
        case "Set", [BoolType() | NumberType() | SortType() | ChoiceType() as of]:
            return SetType(of)
        case "Map", [BoolType() | NumberType() | SortType() | ChoiceType() as key, value]:
            return MapType(key, value)
        case "Seq", [NumberType() as index, BoolType() | NumberType() | SortType() | ChoiceType() as of]:
            return SeqType(index, of)
        case _:
            raise TraceError(f"'{text}' is not a type")


def _split(text: str) -> Iterator[str]:
    """The parts between the commas that are in no bracket."""
    depth, start = 0, 0
    for i, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    yield text[start:].strip()


# values


def encode(value: object, type: Type) -> Json:
    """A value of the engines as an ITF expression."""
    match type, value:
        case BoolType(), int():
            return bool(value)
        case NumberType(), int():
            return value if abs(value) <= EXACT_IN_A_DOUBLE else {"#bigint": str(value)}
        case ((SortType() | ChoiceType()), int()):
            return show(value, type)
        case MaybeType(), int():
            if value == 0:
                return {"tag": "None", "value": {"#tup": []}}
            return {"tag": "Some", "value": encode(position_in(value) + first(type.of), type.of)}
        case SetType(), int():
            members = (i for i in range(value.bit_length()) if value >> i & 1)
            return {"#set": [encode(i + first(type.of), type.of) for i in members]}
        case MapType(), tuple():
            entries = enumerate(cast("tuple[object, ...]", value), first(type.key))
            return {"#map": [[encode(k, type.key), encode(v, type.value)] for k, v in entries]}
        case SeqType(), tuple():
            return [encode(v, type.of) for v in cast("tuple[object, ...]", value)]
        case _:
            raise AssertionError(f"{value!r} is not a value of {type}")


def decode(value: Json, type: Type) -> object:
    """The value that `encode` made the expression from; TraceError if it is not of the type."""
    match type:
        case BoolType() | NumberType() | SortType() | ChoiceType():
            return _scalar(value, type)
        case MaybeType():
            variant = table(value, f"a {type}")
            if variant.get("tag") == "None":
                return 0
            if variant.get("tag") != "Some":
                raise TraceError(f"{excerpt(value)} is not a {type}")
            return maybe_of(_scalar(variant.get("value"), type.of) - first(type.of))
        case SetType():
            members = items(table(value, f"a {type}").get("#set"), f"the members of a {type}")
            return sum(1 << position for position in {_position(m, type.of) for m in members})
        case MapType():
            return _map(value, type)
        case SeqType():
            return tuple(_scalar(item, type.of) for item in items(value, f"a {type}"))


def _map(value: Json, type: MapType) -> tuple[object, ...]:
    entries = items(table(value, f"a {type}").get("#map"), f"the entries of a {type}")
    values: list[object] = []
    for i, entry in enumerate(entries):
        pair = items(entry, f"an entry of a {type}")
        if len(pair) != 2 or _position(pair[0], type.key) != i:
            raise TraceError(f"a {type} should have one value per key, in the order of the keys")
        values.append(decode(pair[1], type.value))
    return tuple(values)


def _position(value: Json, type: Scalar) -> int:
    position = _scalar(value, type) - first(type)
    beyond = isinstance(type, NumberType) and type.high is not None and position > _size(type.high) - type.low
    if position < 0 or beyond:
        raise TraceError(f"{excerpt(value)} is out of the range of {type}")
    return position


def _scalar(value: Json, type: Scalar) -> int:
    raw_value = value  # the patterns below narrow `value` to what a type checker cannot name
    match type, raw_value:
        case BoolType(), bool():
            return raw_value
        case NumberType(), int() if not isinstance(raw_value, bool):
            return raw_value
        case NumberType(), dict():
            digits = cast("dict[str, Json]", raw_value).get("#bigint")
            if isinstance(digits, str) and re.fullmatch("-?[0-9]{1,1000}", digits):
                return int(digits)
        case SortType(), str():
            number = raw_value.removeprefix(type.prefix)
            plain = re.fullmatch("[1-9][0-9]{0,8}", number) is not None
            if plain and raw_value == type.prefix + number and int(number) <= _size(type.size):
                return int(number) - 1
        case ChoiceType(), str():
            names = [show(i, type) for i in range(len(type.members))]
            if raw_value in names:
                return names.index(raw_value)
        case _:
            pass
    raise TraceError(f"{excerpt(value)} is not a {type}")


def excerpt(value: Json) -> str:
    """Enough of a piece of JSON to recognise it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
