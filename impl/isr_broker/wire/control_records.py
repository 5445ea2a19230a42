"""Raft's own records in `__cluster_metadata`: control records, which have their type in the key (ControlRecordType)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from immutables import Map
from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage
from kio.schema.leader_change_message.v1.data import LeaderChangeMessage as LeaderChangeOfDirectories
from kio.schema.snapshot_footer_record.v0.data import SnapshotFooterRecord
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord
from kio.schema.voters_record.v0.data import VotersRecord

from isr_broker.core.messages import LeaderEpoch, Millis, Offset
from isr_broker.core.quorum_messages import VoterId, VoterNode, VoterSet
from isr_broker.core.record_batch import (
    batch_around,
    batches,
    encoded_record,
    key_and_value,
    record_places,
    stamped,
)
from isr_broker.wire.decoder import Cursor, Schema, entity
from isr_broker.wire.encoder import Answer, writer
from isr_broker.wire.protocol import Fields

_LEADER_CHANGE: Final = 2
_SNAPSHOT_HEADER: Final = 3
_SNAPSHOT_FOOTER: Final = 4
_KRAFT_VERSION: Final = 5
_VOTERS: Final = 6
_KEY_VERSION: Final = 0
_NO_DIRECTORY: Final = bytes(16)
KRAFT_VERSION_1: Final = {"min_supported_version": 0, "max_supported_version": 1}
"""The versions of the log that a voter here knows (SupportedVersionRange of kraft.version)."""


def leader_change(
    leader: VoterId,
    voters: VoterSet,
    granting: Iterable[VoterId],
    epoch: LeaderEpoch,
    offset: Offset,
    wall: Millis,
    first_voters: VoterSet | None = None,
) -> bytes:
    """A batch with the first record of a leader's epoch, and with the `first_voters` of the log behind that.

    `wall` is its time, in milliseconds since 1970. LeaderState.appendStartOfEpochControlRecords.
    """
    directories = {voter: node.directory for voter, node in voters.items()}
    has_directories = any(directories.values())

    def rows(ids: Iterable[VoterId]) -> list[Answer]:
        return [{"voter_id": q, "voter_directory_id": directories.get(q) or _NO_DIRECTORY} for q in sorted(ids)]

    fields = {
        "version": int(has_directories),
        "leader_id": leader,
        "voters": rows(voters),
        "granting_voters": rows(granting),
    }
    schema: Schema = LeaderChangeOfDirectories if has_directories else LeaderChangeMessage
    records = [(_LEADER_CHANGE, schema, fields), *(_voters(first_voters) if first_voters is not None else ())]
    return stamped(_batch(records, wall), offset, epoch)


def voters_batch(voters: VoterSet, epoch: LeaderEpoch, offset: Offset, wall: Millis) -> bytes:
    """A batch with a voter set."""
    return stamped(_batch(_voters(voters)[1:], wall), offset, epoch)


def checkpoint(voters: VoterSet, contents: bytes, epoch: LeaderEpoch, wall: Millis, newest: Millis = 0) -> bytes:
    """A snapshot: its header, with that the voters, if there are any, then batches, and its footer.

    The offsets in it count from 0, and its last record in the log was written at `newest`. RecordsSnapshotWriter.
    """
    header = {"version": 0, "last_contained_log_timestamp": newest}
    first: list[_Record] = [(_SNAPSHOT_HEADER, SnapshotHeaderRecord, header), *(_voters(voters) if voters else ())]
    last: list[_Record] = [(_SNAPSHOT_FOOTER, SnapshotFooterRecord, {"version": 0})]
    return stamped(_batch(first, wall) + contents + _batch(last, wall), 0, epoch)


_Record: TypeAlias = tuple[int, Schema, Answer]


def _voters(voters: VoterSet) -> list[_Record]:
    """The version of the log in which voters change, and the voters."""
    rows: list[Answer] = [
        {
            "voter_id": voter,
            "voter_directory_id": node.directory or _NO_DIRECTORY,
            "endpoints": [{"name": name, "host": host, "port": port} for name, host, port in node.endpoints],
            "k_raft_version_feature": KRAFT_VERSION_1,
        }
        for voter, node in sorted(voters.items())
    ]
    return [
        (_KRAFT_VERSION, KRaftVersionRecord, {"version": 0, "k_raft_version": 1}),
        (_VOTERS, VotersRecord, {"version": 0, "voters": rows}),
    ]


def _batch(records: list[_Record], wall: Millis) -> bytes:
    out = bytearray()
    for number, (kind, schema, fields) in enumerate(records):
        value = bytearray()
        writer(schema)(value, fields)
        out += encoded_record(bytes(value), number, key=_key(kind))
    return batch_around(bytes(out), len(records), timestamp=wall, control=True)


def is_leader_change(key: bytes | None) -> bool:
    """Whether a record of a control batch is the first of a leader's epoch."""
    return key == _key(_LEADER_CHANGE)


def kraft_version(records: bytes) -> int:
    """The largest `kraft.version` that whole batches set; 0 if none does, and then the voters never change."""
    versions = (int.from_bytes(value[2:4], "big", signed=True) for _, value in _of_kind(records, _KRAFT_VERSION))
    return max(versions, default=0)


def voter_sets(records: bytes) -> tuple[tuple[Offset, VoterSet], ...]:
    """The voter sets in whole batches, each with the offset of its record; BadFrame if one cannot be read."""
    return tuple((offset, _voter_set(value)) for offset, value in _of_kind(records, _VOTERS))


def _voter_set(value: bytes) -> VoterSet:
    rows = Fields(entity(Cursor(value), VotersRecord)).all("voters")
    return Map({row.number("voter_id"): node_of(row, "endpoints") for row in rows})


def node_of(row: Fields, endpoints: str) -> VoterNode:
    """A voter as a record or a request has it, with its endpoints in the field of this name."""
    places = tuple((each.text("name"), each.text("host"), each.number("port")) for each in row.all(endpoints))
    return VoterNode(row.data("voter_directory_id") or _NO_DIRECTORY, places)


def _of_kind(records: bytes, kind: int) -> Iterator[tuple[Offset, bytes]]:
    """The values of the control records of a kind, with their offsets."""
    for batch in batches(records):
        if batch.control:
            for offset, at in enumerate(record_places(records, batch), batch.base_offset):
                key, value = key_and_value(records, at)
                if key == _key(kind) and value is not None:
                    yield offset, value


def _key(number: int) -> bytes:
    return _KEY_VERSION.to_bytes(2, "big") + number.to_bytes(2, "big")
