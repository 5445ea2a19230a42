"""Reading requests by Kafka's schemas, from bytes that anybody may have sent.

The schemas are the codec's (`kio`); its own reader is not used here, because it reserves memory for as many elements as
a frame claims to have, and ends the process when there is none. This one believes no length that exceeds the frame,
takes no more items of a request than a client could mean, and skips tagged fields that it does not know, as Kafka does
(KIP-482).
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from types import NoneType
from typing import ClassVar, Final, TypeAlias, cast, get_args, get_type_hints

import attrs
from kio.static.protocol import Entity

Plain: TypeAlias = "int | float | str | bytes | list[Plain] | dict[str, Plain] | None"


class BadFrame(ValueError):
    """Bytes that are no request of a served version; the connection is closed."""


@attrs.frozen
class Field:
    """A field of an entity: its primitive type, what it holds, whether many of it, whether it may be null or left out.

    `tag` is its number if it is a tagged field; `default` the schema's, or else an empty value.
    """

    name: str
    kind: str | None
    holds: type[Entity] | None
    array: bool
    nullable: bool
    tag: int | None
    default: object


@attrs.frozen(eq=False)
class Structure:
    """An entity that the codec has not, by its fields; it has tagged fields, as all that is newer has (KIP-482)."""

    fields: tuple[Field, ...]
    __flexible__: ClassVar[bool] = True


Schema: TypeAlias = "type[Entity] | Structure"


@cache
def shape(cls: Hashable) -> tuple[Field, ...]:
    """The fields of an entity, in their order."""
    if isinstance(cls, Structure):
        return cls.fields
    hints = cast("dict[str, object]", get_type_hints(cls))
    fields = cast("dict[str, dataclasses.Field[object]]", getattr(cls, "__dataclass_fields__", {}))
    entity_fields: list[Field] = []
    for name, field in fields.items():
        if name.startswith("__"):
            continue
        options = [hints[name], *get_args(hints[name])]
        entities = [o for o in (*options, *(a for o in options for a in get_args(o))) if dataclasses.is_dataclass(o)]
        array = any(getattr(o, "__origin__", None) is tuple for o in options)
        metadata = cast("Mapping[str, object]", field.metadata)
        entity_fields.append(
            Field(
                name=name,
                kind=cast("str | None", metadata.get("kafka_type")),
                holds=cast("type[Entity]", entities[0]) if entities else None,
                array=array,
                nullable=NoneType in options,
                tag=cast("int | None", metadata.get("tag")),
                default=() if array and field.default is dataclasses.MISSING else _default(field, bool(entities)),
            )
        )
    return tuple(entity_fields)


def _default(field: dataclasses.Field[object], is_entity: bool) -> object:
    """The default of the schema; else nothing, in the form in which it can be written."""
    if field.default is not dataclasses.MISSING:
        return field.default
    return {} if is_entity else _NOTHING.get(cast("str", field.metadata.get("kafka_type")), 0)


_NOTHING: Final[dict[str, object]] = {"string": "", "bytes": b"", "records": None, "uuid": None, "datetime_i64": None}


FIXED_SIZE_TYPES: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "bool": "?",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""Types of fixed size, with their letters in `struct`."""
_FIXED_SIZE_STRUCTS: Final = {kind: struct.Struct(f">{letter}") for kind, letter in FIXED_SIZE_TYPES.items()}
_UUID_BYTES: Final = 16
_LONGEST_VARINT: Final = 5
LONGEST_TEXT: Final = 2**15 - 1
"""Bytes of a text in every version, as Kafka's generated readers have it."""


MAX_INT: Final = 2**31 - 1
MOST_ITEMS: Final = 50_000
"""In all arrays of a request, and tagged fields, together: two bytes can be one, which takes a hundred times as much.

Half a second of a processor, for most requests. An answer is from a broker that was asked, and has as many as it needs.
"""


@attrs.define
class Cursor:
    """Bytes, and how far they have been read; `items_left` is how many items of arrays may still come."""

    data: bytes
    at: int = 0
    items_left: int = MAX_INT

    def passes(self, size: int) -> int:
        """Where the next bytes begin, which are then behind."""
        at = self.at
        if size < 0 or at + size > len(self.data):
            raise BadFrame(f"at byte {at}: {size} bytes are wanted, {len(self.data) - at} are left")
        self.at = at + size
        return at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        at = self.passes(size)
        return self.data[at : at + size]

    def skips_zero(self) -> bool:
        """Whether the next byte is a zero, which is then read: of no tagged fields, most often."""
        if self.at < len(self.data) and self.data[self.at] == 0:
            self.at += 1
            return True
        return False

    def number(self, kind: struct.Struct) -> int | float:
        """The next number of fixed size."""
        return cast("tuple[int | float]", kind.unpack_from(self.data, self.passes(kind.size)))[0]

    def varint(self) -> int:
        """The next unsigned number of variable size."""
        if self.at < len(self.data) and (byte := self.data[self.at]) < 0x80:
            self.at += 1
            return byte
        value = 0
        for place in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise BadFrame(f"at byte {self.at}: a number that does not end")

    def length(self, flexible: bool, legacy: str) -> int:
        """The length of what follows, -1 for null; never more than there is."""
        length = self.varint() - 1 if flexible else int(self.number(_FIXED_SIZE_STRUCTS[legacy]))
        if length > len(self.data) - self.at or length < -1:
            raise BadFrame(f"at byte {self.at}: a length of {length}, {len(self.data) - self.at} bytes are left")
        return length


def entity(cursor: Cursor, cls: Schema) -> dict[str, Plain]:
    """An entity as a mapping: numbers (times in milliseconds), strings, bytes, lists and mappings."""
    return _reader(cls)(cursor)


Read: TypeAlias = Callable[[Cursor], Plain]
"""Reads a value."""
Step: TypeAlias = Callable[[Cursor, dict[str, Plain]], None]
"""Reads one field, or several, into a mapping."""


@cache
def _reader(cls: Schema) -> Callable[[Cursor], dict[str, Plain]]:
    """What reads an entity; made once, for most of a request is the same every time."""
    flexible, steps, numbers = cls.__flexible__, list[Step](), list[Field]()
    tagged: dict[int, tuple[str, Read]] = {}
    for field in shape(cls):
        if field.tag is not None:
            tagged[field.tag] = field.name, _field(field, flexible)
        elif field.kind in FIXED_SIZE_TYPES and not field.array:
            numbers.append(field)
        else:
            steps += [_numbers(numbers)] if numbers else []
            numbers = []
            steps.append(_field_step(field.name, _field(field, flexible)))
    steps += [_numbers(numbers)] if numbers else []

    def read(cursor: Cursor) -> dict[str, Plain]:
        values: dict[str, Plain] = {}
        for step in steps:
            step(cursor, values)
        if flexible and not cursor.skips_zero():
            tagged_fields(cursor, lambda tag, inner: _tagged(values, tagged.get(tag), inner))
        return values

    return read


def tagged_fields(cursor: Cursor, tell: Callable[[int, Cursor], None] | None = None) -> None:
    """The tagged fields at the end of an entity; each counts as an item, for it takes two bytes and may be kept."""
    count = cursor.varint()
    if count:
        _count_items(cursor, count)
    for _ in range(count):
        tag, size = cursor.varint(), cursor.varint()
        inner = Cursor(cursor.take(size), items_left=cursor.items_left)
        if tell is not None:
            tell(tag, inner)
            cursor.items_left = inner.items_left


def _tagged(values: dict[str, Plain], field: tuple[str, Read] | None, cursor: Cursor) -> None:
    if field is not None:
        values[field[0]] = field[1](cursor)


def _numbers(fields: list[Field]) -> Step:
    """Fields of fixed size that follow each other."""
    layout = struct.Struct(">" + "".join(FIXED_SIZE_TYPES[field.kind or ""] for field in fields))
    names, size = [field.name for field in fields], layout.size

    def step(cursor: Cursor, values: dict[str, Plain]) -> None:
        at = cursor.passes(size)
        values.update(zip(names, layout.unpack_from(cursor.data, at), strict=True))

    return step


def _field_step(name: str, read: Read) -> Step:
    def step(cursor: Cursor, values: dict[str, Plain]) -> None:
        values[name] = read(cursor)

    return step


def _field(field: Field, flexible: bool) -> Read:
    one = _one(field, flexible)
    if field.array:
        return _array(field, one, flexible)
    if field.holds is None or not field.nullable:
        return one
    return lambda cursor: None if cursor.number(_FIXED_SIZE_STRUCTS["int8"]) < 0 else one(cursor)


def _array(field: Field, one: Read, flexible: bool) -> Read:
    def read(cursor: Cursor) -> Plain:
        count = cursor.length(flexible, "int32")
        if count < 0:
            return _checked_null(cursor, field)
        _count_items(cursor, count)
        return [one(cursor) for _ in range(count)]

    return read


def _count_items(cursor: Cursor, count: int) -> None:
    cursor.items_left -= count
    if cursor.items_left < 0:
        raise BadFrame(f"at byte {cursor.at}: more than {MOST_ITEMS:,} items in one frame")


def _one(field: Field, flexible: bool) -> Read:
    kind = field.kind or ""
    if field.holds is not None:
        return _reader(field.holds)
    if kind in _FIXED_SIZE_STRUCTS:
        return lambda cursor: cursor.number(_FIXED_SIZE_STRUCTS[kind])
    if kind == "uuid":
        return lambda cursor: cursor.take(_UUID_BYTES)
    legacy = "int16" if kind == "string" else "int32"

    def read(cursor: Cursor) -> Plain:
        length = cursor.length(flexible, legacy)
        if length < 0:
            return _checked_null(cursor, field)
        if length > LONGEST_TEXT and kind == "string":
            raise BadFrame(
                f"at byte {cursor.at}: {field.name} has {length} bytes, {LONGEST_TEXT} are the most of a text"
            )
        data = cursor.take(length)
        return _text(cursor, data) if kind == "string" else data

    return read


def _text(cursor: Cursor, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadFrame(f"at byte {cursor.at}: {error}") from error


def _checked_null(cursor: Cursor, field: Field) -> Plain:
    if not field.nullable:
        raise BadFrame(f"at byte {cursor.at}: {field.name} must not be null")
    return None
