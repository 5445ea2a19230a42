"""Kafka's wire protocol: frames to requests and answers to frames, for every version that is served.

With `decoder` and `encoder` the one place that knows the codec (`kio`, generated from Kafka's own schemas). Inside the
broker a request is read by field names (`Fields`) and an answer is a mapping of field names, so one handler serves all
versions: what a version does not have is dropped, what it has and the handler did not say gets the schema's default or
an empty value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeAlias, cast

import attrs
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from isr_broker.wire.decoder import MOST_ITEMS, BadFrame, Cursor, Plain, entity, tagged_fields
from isr_broker.wire.encoder import Answer as Answer
from isr_broker.wire.encoder import tags, writer

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
INIT_PRODUCER_ID: Final = 22
OFFSET_FOR_LEADER_EPOCH: Final = 23
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
DESCRIBE_LOG_DIRS: Final = 35
CREATE_PARTITIONS: Final = 37
DELETE_GROUPS: Final = 42
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
OFFSET_DELETE: Final = 47
VOTE: Final = 52
BEGIN_QUORUM_EPOCH: Final = 53
END_QUORUM_EPOCH: Final = 54
DESCRIBE_QUORUM: Final = 55
ALTER_PARTITION: Final = 56
FETCH_SNAPSHOT: Final = 59
ENVELOPE: Final = 58
DESCRIBE_CLUSTER: Final = 60
BROKER_REGISTRATION: Final = 62
BROKER_HEARTBEAT: Final = 63
UNREGISTER_BROKER: Final = 64
ALLOCATE_PRODUCER_IDS: Final = 67
ASSIGN_REPLICAS_TO_DIRS: Final = 73
DESCRIBE_TOPIC_PARTITIONS: Final = 75
ADD_RAFT_VOTER: Final = 80
REMOVE_RAFT_VOTER: Final = 81
UPDATE_RAFT_VOTER: Final = 82

SERVED_VERSIONS: Final[dict[int, tuple[int, int]]] = {
    PRODUCE: (3, 12),
    FETCH: (4, 18),
    LIST_OFFSETS: (1, 11),
    METADATA: (0, 12),
    OFFSET_COMMIT: (2, 8),
    OFFSET_FETCH: (1, 8),
    FIND_COORDINATOR: (0, 4),
    JOIN_GROUP: (0, 5),
    HEARTBEAT: (0, 4),
    LEAVE_GROUP: (0, 4),
    SYNC_GROUP: (0, 5),
    DESCRIBE_GROUPS: (0, 6),
    LIST_GROUPS: (0, 5),
    API_VERSIONS: (0, 4),
    CREATE_TOPICS: (2, 7),
    DELETE_TOPICS: (1, 6),
    DELETE_RECORDS: (0, 2),
    INIT_PRODUCER_ID: (0, 4),
    OFFSET_FOR_LEADER_EPOCH: (2, 4),
    DESCRIBE_CONFIGS: (1, 4),
    ALTER_CONFIGS: (0, 2),
    DESCRIBE_LOG_DIRS: (1, 4),
    CREATE_PARTITIONS: (0, 3),
    DELETE_GROUPS: (0, 2),
    ELECT_LEADERS: (0, 2),
    INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    LIST_PARTITION_REASSIGNMENTS: (0, 0),
    OFFSET_DELETE: (0, 0),
    ALTER_PARTITION: (2, 3),
    BROKER_REGISTRATION: (0, 4),
    BROKER_HEARTBEAT: (0, 1),
    DESCRIBE_CLUSTER: (0, 2),
    UNREGISTER_BROKER: (0, 0),
    DESCRIBE_TOPIC_PARTITIONS: (0, 0),
}
"""The versions that are served, by API key."""

ADVERTISED: Final = {**SERVED_VERSIONS, PRODUCE: (0, 12)}
"""What ApiVersions says. With Produce from 3 on, older librdkafka would turn compression off (KAFKA-18659)."""

UNSUPPORTED_VERSION: Final = 35
ERROR_NAMES: Final = {int(error.value): error.name.upper() for error in ErrorCode}
"""Kafka's names of errors, by their codes."""


NOBODY: Final = -1
"""What Kafka's fields have where they name no node."""


def number_of(node: int | None) -> int:
    """A node's number as a field has it."""
    return NOBODY if node is None else node


@attrs.frozen
class Fields:
    """An entity of a request, read by field names; a field that this version does not have is the default."""

    values: dict[str, Plain]

    def number(self, name: str, default: int = -1) -> int:
        """An integer; a time span in milliseconds; a truth value as 0 or 1."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default

    def text(self, name: str) -> str:
        """A string, empty for null."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def data(self, name: str) -> bytes | None:
        """Bytes, None for null."""
        value = self.values.get(name)
        return value if isinstance(value, bytes) else None

    def all(self, name: str) -> list[Fields]:
        """An array of entities, empty for null."""
        value = self.values.get(name)
        return [Fields(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def numbers(self, name: str) -> list[int]:
        """An array of integers, empty for null."""
        value = self.values.get(name)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []

    def texts(self, name: str) -> list[str]:
        """An array of strings, empty for null."""
        value = self.values.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def uuids(self, name: str) -> list[bytes]:
        """An array of UUIDs, sixteen bytes each; empty for null."""
        value = self.values.get(name)
        return [item for item in value if isinstance(item, bytes)] if isinstance(value, list) else []

    def part(self, name: str) -> Fields:
        """An entity, empty for null."""
        value = self.values.get(name)
        return Fields(value) if isinstance(value, dict) else Fields({})

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None


Tags: TypeAlias = Mapping[int, bytes]
"""Tagged fields of a header that Kafka does not have (KIP-482); whoever does not know them skips them."""

HEADER_TAGS: Final = "header tags"
"""Under this name the fields of a request or an answer may have `Tags`."""


@attrs.frozen
class Request:
    """A request: what it asks, in which version, and by what number its answer is to be known."""

    key: int
    version: int
    correlation: int
    client: str
    body: Fields
    tags: Tags = attrs.field(factory=dict[int, bytes])


@attrs.frozen
class Response:
    """An answer: to which request, and what it says."""

    correlation: int
    body: Fields
    tags: Tags = attrs.field(factory=dict[int, bytes])


@attrs.frozen
class UnsupportedRequest:
    """A request of an API or version that is not served; ApiVersions gets an answer, others a closed connection."""

    key: int
    version: int
    correlation: int


_HEAD: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">i")
_request_schema = cache(load_request_schema)
response_schema = cache(load_response_schema)
"""The codec's form of an answer, by API key and version."""


def parse(
    frame: bytes, served_versions: Mapping[int, tuple[int, int]] = SERVED_VERSIONS
) -> Request | UnsupportedRequest:
    """A frame without its length, in one of these versions; BadFrame if it cannot be read."""
    if len(frame) < _HEAD.size:
        raise BadFrame(f"{len(frame)} bytes are less than a request header")
    key, version, correlation = cast("tuple[int, int, int]", _HEAD.unpack_from(frame))
    low, high = served_versions.get(key, (0, -1))
    if not low <= version <= high:
        return UnsupportedRequest(key, version, correlation)
    schema, cursor = _request_schema(key, version), Cursor(frame, _HEAD.size, MOST_ITEMS)
    # The client's name is written the old way in every version of the header, so that any broker can read it.
    size = cursor.length(flexible=False, legacy="int16")
    client = cursor.take(max(size, 0)).decode(errors="ignore")
    tags = _tags(cursor, schema.__header_schema__)
    # What is left over is ignored, as in Kafka: librdkafka's null for all topics is three bytes too long.
    return Request(key, version, correlation, client, Fields(entity(cursor, schema)), tags)


def parse_answer(key: int, version: int, frame: bytes) -> Response:
    """The frame of an answer without its length; BadFrame if it cannot be read."""
    schema, cursor = response_schema(key, version), Cursor(frame)
    correlation = int.from_bytes(cursor.take(4), "big", signed=True)
    tags = _tags(cursor, schema.__header_schema__)
    return Response(correlation, Fields(entity(cursor, schema)), tags)


def _tags(cursor: Cursor, header: type[Entity]) -> Tags:
    found: dict[int, bytes] = {}
    if header.__flexible__:
        tagged_fields(cursor, lambda tag, inner: found.update({tag: inner.data}))
    return found


class UnwritableAnswer(ValueError):
    """An answer whose fields do not fit their types: a text that is too long for its version, say."""


def answer(key: int, version: int, correlation: int, fields: Answer) -> bytes:
    """The frame of an answer, with its length; UnwritableAnswer where a field has no place in it."""
    schema = response_schema(key, version)
    try:
        return _frame(_LENGTH.pack(correlation), schema.__header_schema__, schema, fields)
    except (struct.error, UnicodeEncodeError, OverflowError) as error:
        raise UnwritableAnswer(f"the answer to API {key}, version {version}, cannot be written: {error}") from error


def answer_to(request: Request, fields: Answer) -> bytes:
    """The frame of the answer to a request."""
    return answer(request.key, request.version, request.correlation, fields)


def ask(key: int, version: int, correlation: int, client: str, fields: Answer) -> bytes:
    """The frame of a request, with its length."""
    schema = _request_schema(key, version)
    name = client.encode()
    head = _HEAD.pack(key, version, correlation) + len(name).to_bytes(2, "big") + name
    return _frame(head, schema.__header_schema__, schema, fields)


def _frame(head: bytes, header: type[Entity], schema: type[Entity], fields: Answer) -> bytes:
    out = bytearray(4) + head
    if header.__flexible__:
        tags(out, sorted(cast("Tags", fields.get(HEADER_TAGS, {})).items()))
    writer(schema)(out, fields)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH.size)
    return bytes(out)


def answer_to_unsupported(
    request: UnsupportedRequest, advertised: Mapping[int, tuple[int, int]] = ADVERTISED
) -> bytes | None:
    """ApiVersions in an unknown version is answered in version 0 (KIP-511); nothing else is."""
    if request.key != API_VERSIONS:
        return None
    fields = {"error_code": UNSUPPORTED_VERSION, "api_keys": api_keys(advertised)}
    return answer(API_VERSIONS, 0, request.correlation, fields)


def api_keys(advertised: Mapping[int, tuple[int, int]] = ADVERTISED) -> list[Answer]:
    """What ApiVersions says."""
    return [
        {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in sorted(advertised.items())
    ]
