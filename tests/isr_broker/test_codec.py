"""What is written from a mapping is what the codec's own writer writes, for every schema, and it is read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.protocol import Entity

from isr_broker.wire import protocol
from isr_broker.wire.decoder import FIXED_SIZE_TYPES, Cursor, Field, entity, shape
from isr_broker.wire.encoder import writer
from isr_broker.wire.kafka_brokers import ASKED_VERSIONS
from isr_broker.wire.protocol import FETCH, SERVED_VERSIONS

SCHEMAS = [
    (schema, key, version)
    for key, (low, high) in {**SERVED_VERSIONS, **ASKED_VERSIONS, FETCH: SERVED_VERSIONS[FETCH]}.items()
    for version in range(low, high + 1)
    for schema in (load_request_schema(key, version), load_response_schema(key, version))
]
NAMES = [f"{schema.__name__}-{version}" for schema, _, version in SCHEMAS]
NUMBERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "timedelta_i32": 31, "timedelta_i64": 40}
EPOCH = datetime.fromtimestamp(0, UTC)


def some(chance: Random, cls: type[Entity], all_of_it: bool) -> dict[str, object]:
    """Values for the fields of an entity, or for some of them."""
    return {f.name: value(chance, f, all_of_it) for f in shape(cls) if all_of_it or chance.random() < 0.6}


def value(chance: Random, field: Field, all_of_it: bool) -> object:
    if field.nullable and field.tag is None and field.kind not in FIXED_SIZE_TYPES and chance.random() < 0.2:
        return None
    if field.array:
        return [single(chance, field, all_of_it) for _ in range(chance.choice((0, 1, 1, 3)))]
    return single(chance, field, all_of_it)


def single(chance: Random, field: Field, all_of_it: bool) -> object:
    kind = field.kind or ""
    match kind:
        case _ if field.holds is not None:
            return some(chance, field.holds, all_of_it)
        case "string":
            return "ä" * chance.randrange(200)
        case "bytes" | "records":
            return chance.randbytes(chance.randrange(300))
        case "uuid":
            return chance.randbytes(15) + b"\1"
        case "bool":
            return chance.random() < 0.5
        case "error_code":
            return chance.choice((0, 3, 6, 78))
        case "datetime_i64":
            return chance.randrange(2**40)
        case "uint16":
            return chance.randrange(2**16)
        case _:
            bits = NUMBERS[kind]
            return chance.randrange(-(2**bits), 2**bits)


def theirs(cls: type[Entity], values: protocol.Answer) -> Entity:
    """The codec's object for a mapping."""
    arguments = {f.name: converted(f, values.get(f.name, f.default)) for f in shape(cls)}
    return cast("Callable[..., Entity]", cls)(**arguments)


def converted(field: Field, given: object) -> object:
    holds = field.holds
    if given is None:
        return None
    if field.array:
        items = cast("Sequence[object]", given)
        return tuple(one(field, item) for item in items)
    return given if isinstance(given, holds or ()) else one(field, given)


def one(field: Field, given: object) -> object:
    if field.holds is not None:
        return theirs(field.holds, cast("protocol.Answer", given))
    match field.kind:
        case "error_code":
            return given if isinstance(given, ErrorCode) else ErrorCode(cast("int", given))
        case "timedelta_i32" | "timedelta_i64":
            return given if isinstance(given, timedelta) else timedelta(milliseconds=cast("int", given))
        case "datetime_i64":
            return EPOCH + timedelta(milliseconds=cast("int", given))
        case "uuid":
            return SimpleNamespace(bytes=given)
        case _:
            return given


@pytest.mark.parametrize(("schema", "key", "version"), SCHEMAS, ids=NAMES)
def test_what_is_written_is_what_the_codec_writes_and_is_read_back(
    schema: type[Entity], key: int, version: int
) -> None:
    chance = Random(100 * key + version)
    for turn in range(6):
        values = {} if turn == 0 else some(chance, schema, all_of_it=turn == 1)
        ours, expected = bytearray(), BytesIO()
        writer(schema)(ours, values)
        cast("Callable[[BytesIO, Entity], None]", entity_writer(schema))(expected, theirs(schema, values))
        assert bytes(ours) == expected.getvalue()
        _, size = entity_reader(schema)(bytes(ours), 0)
        assert size == len(ours)
        read = entity(Cursor(bytes(ours)), schema)
        again = bytearray()
        writer(schema)(again, read)
        assert again == ours, "what was read says the same"
