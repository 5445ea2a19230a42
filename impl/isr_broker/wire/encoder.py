"""Writing frames by Kafka's schemas, from mappings of field names, as `decoder` reads them.

The schemas are the codec's (`kio`). Its own writer wants every message as a tree of its objects, which takes longer
than writing it; this one makes, once for each entity, what writes it from a mapping, and is tested to write the same.
A field that the mapping does not name gets the schema's default, or else an empty value; one that this version does
not have is dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Final, TypeAlias, cast

from kio.static.protocol import Entity

from isr_broker.wire.decoder import FIXED_SIZE_TYPES, Field, Schema, shape

Answer: TypeAlias = Mapping[str, object]
Write: TypeAlias = Callable[[bytearray, object], None]
"""Puts a value at the end of a frame."""
Step: TypeAlias = Callable[[bytearray, Answer], None]
"""Puts one field of a mapping, or several, at the end of a frame."""

_NO_UUID: Final = bytes(16)


@cache
def writer(cls: Schema) -> Step:
    """What writes an entity."""
    flexible, steps, numbers, tagged = (
        cls.__flexible__,
        list[Step](),
        list[Field](),
        list[tuple[int, str, Write, bytes]](),
    )
    for field in shape(cls):
        if field.tag is not None:
            tagged.append(
                (field.tag, field.name, _value(field, flexible), _bytes(_value(field, flexible), field.default))
            )
        elif field.kind in FIXED_SIZE_TYPES and not field.array:
            numbers.append(field)
        else:
            if numbers:
                steps.append(_numbers(numbers))
                numbers = []
            steps.append(_one(field, _value(field, flexible)))
    if numbers:
        steps.append(_numbers(numbers))
    tagged.sort(key=lambda each: each[0])

    def write(out: bytearray, values: Answer) -> None:
        for step in steps:
            step(out, values)
        if tagged:
            _tagged(out, tagged, values)
        elif flexible:
            out.append(0)

    return write


def tags(out: bytearray, fields: Sequence[tuple[int, bytes]]) -> None:
    """Tagged fields, in their order (KIP-482)."""
    varint(out, len(fields))
    for tag, value in fields:
        varint(out, tag)
        varint(out, len(value))
        out += value


def varint(out: bytearray, value: int) -> None:
    """An unsigned number of variable size."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _tagged(out: bytearray, fields: Sequence[tuple[int, str, Write, bytes]], values: Answer) -> None:
    """Those tagged fields that are not what whoever does not find them takes them to be."""
    said = [(tag, _bytes(write, values[name]), default) for tag, name, write, default in fields if name in values]
    tags(out, [(tag, data) for tag, data, default in said if data != default])


def _bytes(write: Write, value: object) -> bytes:
    out = bytearray()
    write(out, value)
    return bytes(out)


def _numbers(fields: Sequence[Field]) -> Step:
    """Fields of fixed size that follow each other."""
    layout = struct.Struct(">" + "".join(FIXED_SIZE_TYPES[field.kind or ""] for field in fields))
    wanted = [(field.name, _number(field.default)) for field in fields]

    def step(out: bytearray, values: Answer) -> None:
        get = values.get
        out += layout.pack(*[get(name, default) for name, default in wanted])

    return step


def _number(value: object) -> int:
    """A number as it is written: times in milliseconds, nothing as -1 where it is a time, an error by its code."""
    match value:
        case timedelta():
            return value // timedelta(milliseconds=1)
        case Enum():
            return cast("int", value.value)
        case None:
            return -1
        case _:
            return cast("int", value)


def _one(field: Field, write: Write) -> Step:
    name, default = field.name, _bytes(write, field.default)

    def step(out: bytearray, values: Answer) -> None:
        if name in values:
            write(out, values[name])
        else:
            out += default

    return step


def _value(field: Field, flexible: bool) -> Write:
    each = _entity(field) if field.holds is not None else _primitive(field, flexible)
    return _array(each, flexible) if field.array else each


def _entity(field: Field) -> Write:
    assert field.holds is not None
    inner, marked = writer(field.holds), field.nullable and not field.array and field.tag is None

    def write(out: bytearray, value: object) -> None:
        if marked:
            out += b"\xff" if value is None else b"\x01"
        if value is not None:
            inner(out, cast("Answer", value) if isinstance(value, Mapping) else _as_mapping(value))

    return write


def _as_mapping(value: object) -> Answer:
    """A default of the codec's, as a mapping."""
    kind = cast("type[Entity]", type(value))
    return {field.name: getattr(value, field.name) for field in shape(kind)}


def _array(each: Write, flexible: bool) -> Write:
    def write(out: bytearray, value: object) -> None:
        _length(out, None if value is None else len(cast("Sequence[object]", value)), flexible, "i")
        for item in cast("Sequence[object]", value or ()):
            each(out, item)

    return write


def _length(out: bytearray, length: int | None, flexible: bool, legacy: str) -> None:
    """The length of what follows, None for null."""
    if flexible:
        varint(out, 0 if length is None else length + 1)
    else:
        out += struct.pack(f">{legacy}", -1 if length is None else length)


def _primitive(field: Field, flexible: bool) -> Write:
    match field.kind:
        case "string":
            legacy = "h"
        case "uuid":
            return lambda out, value: out.extend(cast("bytes", value) or _NO_UUID)
        case kind if kind in FIXED_SIZE_TYPES:
            layout = struct.Struct(f">{FIXED_SIZE_TYPES[kind or '']}")
            return lambda out, value: out.extend(layout.pack(_number(value)))
        case _:
            legacy = "i"

    def write(out: bytearray, value: object) -> None:
        data = value.encode() if isinstance(value, str) else cast("bytes | None", value)
        _length(out, None if data is None else len(data), flexible, legacy)
        out.extend(data or b"")

    return write
