"""Metadata records as Kafka's own classes write and read them: schemas and bytes, in both directions."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Generator, Sequence
from subprocess import Popen

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.kafka_programs import kafka_program

from isr_broker.wire.decoder import Plain
from isr_broker.wire.metadata_records import TYPES, Column, RecordType, decode, encode
from isr_kafka.system import Kafka

KINDS = {"bool": "BOOLEAN"}

pytestmark = [pytest.mark.kafka, pytest.mark.processes]


class Serializer:
    """Kafka's MetadataRecordSerde in a process of its own."""

    def __init__(self, process: Popen[str]) -> None:
        self.process = process
        self.schemas = list(iter(self.line, "end"))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def reads(self, data: bytes) -> tuple[bytes, dict[str, object]]:
        """The bytes that Kafka writes of the record which it reads in these, and the record as JSON."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{data.hex()}\n")
        self.process.stdin.flush()
        written, _, text = self.line().partition(" ")
        return bytes.fromhex(written), json.loads(text)


@pytest.fixture(scope="module")
def kafka(newest: Kafka) -> Generator[Serializer]:
    """The newest release's."""
    with kafka_program("insync.metadata.Records", newest.release) as process:
        yield Serializer(process)


def schema_text(columns: Sequence[Column], version: int) -> str:
    """The fields of a record as the process writes Kafka's."""
    here = [c for c in columns if c.since <= version]
    plain = [_column_text(c, version) for c in here if c.tag is None]
    tagged = [
        f"{c.tag} {_column_text(c, version)}" for c in sorted(here, key=lambda c: c.tag or 0) if c.tag is not None
    ]
    return f"({''.join(plain + tagged)})"


def _column_text(column: Column, version: int) -> str:
    kind = column.kind
    of = KINDS.get(kind, kind.upper()) if isinstance(kind, str) else schema_text(kind, version)
    return f"{column.name} {'[]' if column.array else ''}{of}{'?' if column.nullable else ''},"


def test_every_schema_is_that_of_kafka(kafka: Serializer) -> None:
    """The newest release has the types, versions and fields that are listed, and no others."""
    ours = [
        f"schema {t.number} {t.name}Record {v} {schema_text(t.columns, v)}" for t in TYPES for v in range(t.newest + 1)
    ]
    assert ours == kafka.schemas


def values(column: Column, version: int) -> st.SearchStrategy[object]:
    """Values that a field may have."""
    kind = column.kind
    numbers = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
    one: st.SearchStrategy[object]
    if not isinstance(kind, str):
        one = fields(kind, version)
    elif kind in numbers:
        one = st.integers(-(2 ** numbers[kind]), 2 ** numbers[kind] - 1)
    else:
        one = {
            "uint16": st.integers(0, 2**16 - 1),
            "bool": st.booleans(),
            "float64": st.floats(allow_nan=False),
            "uuid": st.binary(min_size=16, max_size=16),
            "bytes": st.binary(max_size=200),
            "string": st.text(st.characters(codec="utf-8"), max_size=200),
        }[kind]
    some = st.lists(one, max_size=5) if column.array else one
    return st.none() | some if column.nullable else some


def fields(columns: Sequence[Column], version: int) -> st.SearchStrategy[dict[str, object]]:
    """Values of all fields, of which tagged ones may be left out."""
    here = [c for c in columns if c.since <= version]
    needed = {c.name: values(c, version) for c in here if c.tag is None}
    return st.fixed_dictionaries(needed, optional={c.name: values(c, version) for c in here if c.tag is not None})


@st.composite
def records(draw: st.DrawFn) -> tuple[RecordType, int, dict[str, object]]:
    kind = draw(st.sampled_from(TYPES))
    version = draw(st.integers(0, kind.newest))
    return kind, version, draw(fields(kind.columns, version))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=records())
def test_kafka_writes_the_bytes_and_reads_the_record(
    kafka: Serializer, record: tuple[RecordType, int, dict[str, object]]
) -> None:
    kind, version, said = record
    data = encode(kind.name, version, said)
    written, read = kafka.reads(data)
    assert written == data
    decoded = decode(data)
    assert (decoded.name, decoded.version) == (kind.name, version)
    assert {name: decoded.fields[name] for name in said} == said
    for column in kind.columns:
        if column.name in said and column.kind in ("int32", "string", "uuid", "int16", "bool"):
            is_left_out = column.tag is not None and (said[column.name] or None) == (
                column.field(version).default or None
            )
            assert is_left_out or read[camel(column.name)] == as_json(decoded.fields[column.name], str(column.kind))


def camel(name: str) -> str:
    """`broker_id` as Kafka's JSON has it."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def as_json(value: Plain, kind: str) -> object:
    """A value as Kafka's JSON has it: identifiers in their 22 characters."""
    if isinstance(value, list):
        return [as_json(each, kind) for each in value]
    if kind == "uuid" and isinstance(value, bytes):
        return urlsafe_b64encode(value).decode().rstrip("=")
    return value
