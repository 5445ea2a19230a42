"""Reading requests by Kafka's schemas, from bytes that anybody may have sent.

The schemas are the codec's (`kio`); its own reader is not used here, because it reserves memory for as many elements as
a frame claims to have, and ends the process when there is none. This one believes no length that exceeds the frame,
and skips tagged fields that it does not know, as Kafka does (KIP-482).
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from types import NoneType
from typing import Final, TypeAlias, cast, get_args, get_type_hints

import attrs
from kio.static.protocol import Entity

Plain: TypeAlias = "int | float | str | bytes | list[Plain] | dict[str, Plain] | None"


class BadFrame(ValueError):
    """Bytes that are no request of a served version; the connection is closed."""


@attrs.frozen
class Field:
    """A field of an entity: its primitive type, what it holds, whether many of it, whether it may be null or left out.

    `tag` is its number if it is a tagged field, `optional` whether the schema has a default for it.
    """

    name: str
    kind: str | None
    holds: type[Entity] | None
    array: bool
    nullable: bool
    optional: bool
    tag: int | None


@cache
def shape(cls: Hashable) -> tuple[Field, ...]:
    """The fields of an entity of the codec, in their order."""
    hints = cast("dict[str, object]", get_type_hints(cls))
    fields = cast("dict[str, dataclasses.Field[object]]", getattr(cls, "__dataclass_fields__", {}))
    found: list[Field] = []
    for name, field in fields.items():
        if name.startswith("__"):
            continue
        options = [hints[name], *get_args(hints[name])]
        nested = [o for o in (*options, *(a for o in options for a in get_args(o))) if dataclasses.is_dataclass(o)]
        metadata = cast("Mapping[str, object]", field.metadata)
        found.append(
            Field(
                name=name,
                kind=cast("str | None", metadata.get("kafka_type")),
                holds=cast("type[Entity]", nested[0]) if nested else None,
                array=any(getattr(o, "__origin__", None) is tuple for o in options),
                nullable=NoneType in options,
                optional=field.default is not dataclasses.MISSING,
                tag=cast("int | None", metadata.get("tag")),
            )
        )
    return tuple(found)


_FIXED: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
    "uint32": struct.Struct(">I"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
    "error_code": struct.Struct(">h"),
    "timedelta_i32": struct.Struct(">i"),
    "timedelta_i64": struct.Struct(">q"),
    "datetime_i64": struct.Struct(">q"),
}
_UUID_BYTES: Final = 16
_LONGEST_VARINT: Final = 5


@attrs.define
class Cursor:
    """Bytes, and how far they have been read."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size < 0 or self.at + size > len(self.data):
            raise BadFrame(f"at byte {self.at}: {size} bytes are wanted, {len(self.data) - self.at} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, kind: struct.Struct) -> int | float:
        """The next number of fixed size."""
        return cast("tuple[int | float]", kind.unpack(self.take(kind.size)))[0]

    def varint(self) -> int:
        """The next unsigned number of variable size."""
        value = 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise BadFrame(f"at byte {self.at}: a number that does not end")

    def length(self, flexible: bool, legacy: str) -> int:
        """The length of what follows, -1 for null; never more than there is."""
        length = self.varint() - 1 if flexible else int(self.number(_FIXED[legacy]))
        if length > len(self.data) - self.at or length < -1:
            raise BadFrame(f"at byte {self.at}: a length of {length}, {len(self.data) - self.at} bytes are left")
        return length


def entity(cursor: Cursor, cls: type[Entity]) -> dict[str, Plain]:
    """An entity as a mapping: numbers (times in milliseconds), strings, bytes, lists and mappings."""
    flexible, found = cls.__flexible__, dict[str, Plain]()
    fields = shape(cls)
    for field in fields:
        if field.tag is None:
            found[field.name] = _field(cursor, field, flexible)
    if flexible:
        tagged = {field.tag: field for field in fields if field.tag is not None}
        tagged_fields(cursor, lambda tag, inner: _tagged(found, tagged.get(tag), inner))
    return found


def tagged_fields(cursor: Cursor, tell: Callable[[int, Cursor], None] | None = None) -> None:
    """The tagged fields at the end of an entity."""
    for _ in range(cursor.varint()):
        tag, size = cursor.varint(), cursor.varint()
        inner = Cursor(cursor.take(size))
        if tell is not None:
            tell(tag, inner)


def _tagged(found: dict[str, Plain], field: Field | None, cursor: Cursor) -> None:
    if field is not None:
        found[field.name] = _field(cursor, field, flexible=True)


def _field(cursor: Cursor, field: Field, flexible: bool) -> Plain:
    if not field.array and field.holds is not None and field.nullable and cursor.number(_FIXED["int8"]) < 0:
        return None
    if not field.array:
        return _one(cursor, field, flexible)
    count = cursor.length(flexible, "int32")
    if count < 0:
        return _checked_null(cursor, field)
    return [_one(cursor, field, flexible) for _ in range(count)]


def _one(cursor: Cursor, field: Field, flexible: bool) -> Plain:
    if field.holds is not None:
        return entity(cursor, field.holds)
    kind = field.kind or ""
    if kind in _FIXED:
        return cursor.number(_FIXED[kind])
    if kind == "uuid":
        return cursor.take(_UUID_BYTES)
    length = cursor.length(flexible, "int16" if kind == "string" else "int32")
    if length < 0:
        return _checked_null(cursor, field)
    data = cursor.take(length)
    if kind != "string":
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadFrame(f"at byte {cursor.at}: {error}") from error


def _checked_null(cursor: Cursor, field: Field) -> Plain:
    if not field.nullable:
        raise BadFrame(f"at byte {cursor.at}: {field.name} must not be null")
    return None
