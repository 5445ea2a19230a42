"""The records of `__cluster_metadata`, read and written as Kafka does (MetadataRecordSerde, KIP-631).

A record is three unsigned numbers of variable size (1 for this frame, the number of its type, its version), and its
fields. The schemas stand here as data, and tests compare them with those of Kafka's generated classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, cast

import attrs
from kio.static.protocol import Entity

from isr_broker.wire.decoder import BadFrame, Cursor, Field, Plain, Structure, entity
from isr_broker.wire.encoder import Answer, varint, writer

_FRAME_VERSION: Final = 1
_EMPTY: Final[Mapping[str, object]] = {"string": "", "bytes": b"", "uuid": bytes(16), "bool": False}
_OF_ITS_KIND: Final = object()
"""The default of most columns: nothing, in the form in which a value of this kind can be nothing."""


class BadRecord(ValueError):
    """Bytes that are no metadata record of a known type and version."""


@attrs.frozen
class Column:
    """A field of a record, from version `since` on; `tag` is its number if it is a tagged field.

    `kind` is Kafka's name of its type, or the columns of which each of its parts has one. `default` is what a reader
    takes where a tagged field is not there, or a writer where it is not named.
    """

    name: str
    kind: str | tuple[Column, ...]
    array: bool = False
    nullable: bool = False
    since: int = 0
    tag: int | None = None
    default: object = _OF_ITS_KIND

    def field(self, version: int) -> Field:
        """The field in this version of the record."""
        kind = self.kind if isinstance(self.kind, str) else None
        parts = None if isinstance(self.kind, str) else cast("type[Entity]", _structure(self.kind, version))
        default = self.default
        if default is _OF_ITS_KIND:
            default = () if self.array else _EMPTY.get(kind or "", 0)
        return Field(self.name, kind, parts, self.array, self.nullable, self.tag, default)


@attrs.frozen
class RecordType:
    """A type of record: its number, its name without the end `Record`, its newest version, its columns."""

    number: int
    name: str
    newest: int
    columns: tuple[Column, ...]


@attrs.frozen
class MetadataRecord:
    """One record: its type's name, its version, and its fields as mappings, numbers, texts, bytes and lists."""

    name: str
    version: int
    fields: Mapping[str, Plain]


def _list(name: str, kind: str | tuple[Column, ...], since: int = 0, tag: int | None = None) -> Column:
    return Column(name, kind, array=True, since=since, tag=tag)


def _optional(name: str, kind: str, tag: int, since: int = 0) -> Column:
    """A list that is null where a record says nothing of it."""
    return Column(name, kind, array=True, nullable=True, since=since, tag=tag, default=None)


_END_POINT: Final = (
    *(Column("name", "string"), Column("host", "string")),
    *(Column("port", "uint16"), Column("security_protocol", "int16")),
)
_FEATURE: Final = (
    Column("name", "string"),
    Column("min_supported_version", "int16"),
    Column("max_supported_version", "int16"),
)
_QUOTA_OF: Final = (Column("entity_type", "string"), Column("entity_name", "string", nullable=True))

TYPES: Final = (
    RecordType(
        *(0, "RegisterBroker", 4),
        (
            Column("broker_id", "int32"),
            Column("is_migrating_zk_broker", "bool", since=2),
            Column("incarnation_id", "uuid"),
            Column("broker_epoch", "int64"),
            _list("end_points", _END_POINT),
            _list("features", _FEATURE),
            Column("rack", "string", nullable=True),
            Column("fenced", "bool", default=True),
            Column("in_controlled_shutdown", "bool", since=1),
            _list("log_dirs", "uuid", since=3, tag=0),
            _optional("cordoned_log_dirs", "uuid", since=4, tag=1),
        ),
    ),
    RecordType(1, "UnregisterBroker", 0, (Column("broker_id", "int32"), Column("broker_epoch", "int64"))),
    RecordType(2, "Topic", 0, (Column("name", "string"), Column("topic_id", "uuid"))),
    RecordType(
        *(3, "Partition", 2),
        (
            Column("partition_id", "int32", default=-1),
            Column("topic_id", "uuid"),
            *(_list(name, "int32") for name in ("replicas", "isr", "removing_replicas", "adding_replicas")),
            *(Column(name, "int32", default=-1) for name in ("leader", "leader_epoch", "partition_epoch")),
            _list("directories", "uuid", since=1),
            Column("leader_recovery_state", "int8", tag=0),
            _optional("eligible_leader_replicas", "int32", since=2, tag=1),
            _optional("last_known_elr", "int32", since=2, tag=2),
        ),
    ),
    RecordType(
        *(4, "Config", 0),
        (
            Column("resource_type", "int8"),
            *(Column("resource_name", "string"), Column("name", "string")),
            Column("value", "string", nullable=True),
        ),
    ),
    RecordType(
        *(5, "PartitionChange", 2),
        (
            Column("partition_id", "int32", default=-1),
            Column("topic_id", "uuid"),
            _optional("isr", "int32", tag=0),
            Column("leader", "int32", tag=1, default=-2),
            _optional("replicas", "int32", tag=2),
            _optional("removing_replicas", "int32", tag=3),
            _optional("adding_replicas", "int32", tag=4),
            Column("leader_recovery_state", "int8", tag=5, default=-1),
            _optional("eligible_leader_replicas", "int32", since=2, tag=6),
            _optional("last_known_elr", "int32", since=2, tag=7),
            _optional("directories", "uuid", since=1, tag=8),
        ),
    ),
    RecordType(7, "FenceBroker", 0, (Column("id", "int32"), Column("epoch", "int64"))),
    RecordType(8, "UnfenceBroker", 0, (Column("id", "int32"), Column("epoch", "int64"))),
    RecordType(9, "RemoveTopic", 0, (Column("topic_id", "uuid"),)),
    RecordType(
        *(10, "DelegationToken", 0),
        (
            *(Column("owner", "string"), Column("requester", "string")),
            _list("renewers", "string"),
            *(Column(name, "int64") for name in ("issue_timestamp", "max_timestamp", "expiration_timestamp")),
            Column("token_id", "string"),
        ),
    ),
    RecordType(
        *(11, "UserScramCredential", 0),
        (
            *(Column("name", "string"), Column("mechanism", "int8")),
            *(Column(name, "bytes") for name in ("salt", "stored_key", "server_key")),
            Column("iterations", "int32"),
        ),
    ),
    RecordType(12, "FeatureLevel", 0, (Column("name", "string"), Column("feature_level", "int16"))),
    RecordType(
        *(14, "ClientQuota", 0),
        (
            _list("entity", _QUOTA_OF),
            *(Column("key", "string"), Column("value", "float64"), Column("remove", "bool")),
        ),
    ),
    RecordType(
        *(15, "ProducerIds", 0),
        (Column("broker_id", "int32"), Column("broker_epoch", "int64"), Column("next_producer_id", "int64")),
    ),
    RecordType(
        *(17, "BrokerRegistrationChange", 3),
        (
            *(Column("broker_id", "int32"), Column("broker_epoch", "int64")),
            Column("fenced", "int8", tag=0),
            Column("in_controlled_shutdown", "int8", since=1, tag=1),
            _list("log_dirs", "uuid", since=2, tag=2),
            _optional("cordoned_log_dirs", "uuid", since=3, tag=3),
        ),
    ),
    RecordType(
        *(18, "AccessControlEntry", 0),
        (
            *(Column("id", "uuid"), Column("resource_type", "int8"), Column("resource_name", "string")),
            *(Column("pattern_type", "int8"), Column("principal", "string"), Column("host", "string")),
            *(Column("operation", "int8"), Column("permission_type", "int8")),
        ),
    ),
    RecordType(19, "RemoveAccessControlEntry", 0, (Column("id", "uuid"),)),
    RecordType(20, "NoOp", 0, ()),
    RecordType(21, "ZkMigrationState", 0, (Column("zk_migration_state", "int8"),)),
    RecordType(22, "RemoveUserScramCredential", 0, (Column("name", "string"), Column("mechanism", "int8"))),
    RecordType(23, "BeginTransaction", 0, (Column("name", "string", nullable=True, tag=0, default=None),)),
    RecordType(24, "EndTransaction", 0, ()),
    RecordType(25, "AbortTransaction", 0, (Column("reason", "string", nullable=True, tag=0, default=None),)),
    RecordType(26, "RemoveDelegationToken", 0, (Column("token_id", "string"),)),
    RecordType(
        *(27, "RegisterController", 0),
        (
            *(Column("controller_id", "int32"), Column("incarnation_id", "uuid"), Column("zk_migration_ready", "bool")),
            *(_list("end_points", _END_POINT), _list("features", _FEATURE)),
        ),
    ),
    RecordType(28, "ClearElr", 0, (Column("topic_name", "string"),)),
    RecordType(29, "UnregisterController", 0, (Column("controller_id", "int32"),)),
)
"""Every type of record up to Kafka 4.4.0 (its metadata/*.json)."""

_BY_NUMBER: Final = {each.number: each for each in TYPES}
_BY_NAME: Final = {each.name: each for each in TYPES}


@cache
def _structure(columns: tuple[Column, ...], version: int) -> Structure:
    return Structure(tuple(column.field(version) for column in columns if column.since <= version))


def decode(data: bytes) -> MetadataRecord:
    """One record; BadRecord with the byte where it is none."""
    cursor = Cursor(data)
    try:
        frame, number, version = cursor.varint(), cursor.varint(), cursor.varint()
        if frame != _FRAME_VERSION:
            raise BadRecord(f"a record in frame version {frame}, not {_FRAME_VERSION}")
        kind = _BY_NUMBER.get(number)
        if kind is None:
            raise BadRecord(f"a record of type {number}, which no release up to 4.4.0 has")
        if version > kind.newest:
            raise BadRecord(f"{kind.name} in version {version}: {kind.newest} is the newest that is known")
        structure = _structure(kind.columns, version)
        fields = {f.name: _plain(f.default) for f in structure.fields if f.tag is not None} | entity(cursor, structure)
    except BadFrame as error:
        raise BadRecord(str(error)) from error
    if cursor.at < len(data):
        raise BadRecord(f"{kind.name}: {len(data) - cursor.at} bytes follow it")
    return MetadataRecord(kind.name, version, fields)


def _plain(default: object) -> Plain:
    return [] if default == () else cast("Plain", default)


def encode(name: str, version: int, fields: Answer) -> bytes:
    """One record of a type and version; what is not named has its default. KeyError for a type that is not there."""
    kind, out = _BY_NAME[name], bytearray()
    for number in (_FRAME_VERSION, kind.number, version):
        varint(out, number)
    writer(_structure(kind.columns, version))(out, fields)
    return bytes(out)
