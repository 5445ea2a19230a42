"""Raft's own records in `__cluster_metadata`: control records, which have their type in the key (ControlRecordType)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kio.schema.leader_change_message.v0.data import LeaderChangeMessage

from isr_broker.core.messages import LeaderEpoch, Millis, Offset
from isr_broker.core.quorum_messages import VoterId
from isr_broker.core.record_batch import (
    batch_around,
    batches,
    encoded_record,
    key_and_value,
    record_places,
    stamped,
)
from isr_broker.wire.encoder import writer

_LEADER_CHANGE: Final = 2
_KRAFT_VERSION: Final = 5
_KEY_VERSION: Final = 0


def leader_change(
    leader: VoterId,
    voters: Iterable[VoterId],
    granting: Iterable[VoterId],
    epoch: LeaderEpoch,
    offset: Offset,
    wall: Millis,
) -> bytes:
    """A batch with the first record of a leader's epoch, as Kafka writes it with voters that do not change.

    `wall` is its time, in milliseconds since 1970.
    """
    value = bytearray()
    fields = {
        "version": 0,
        "leader_id": leader,
        "voters": [{"voter_id": voter} for voter in sorted(voters)],
        "granting_voters": [{"voter_id": voter} for voter in sorted(granting)],
    }
    writer(LeaderChangeMessage)(value, fields)
    record = encoded_record(bytes(value), key=_key(_LEADER_CHANGE))
    return stamped(batch_around(record, timestamp=wall, control=True), offset, epoch)


def is_leader_change(key: bytes | None) -> bool:
    """Whether a record of a control batch is the first of a leader's epoch."""
    return key == _key(_LEADER_CHANGE)


def kraft_version(records: bytes) -> int:
    """The largest `kraft.version` that whole batches set; 0 if none does, and then the voters never change."""
    levels = [0]
    for batch in batches(records):
        if batch.control:
            for at in record_places(records, batch):
                key, value = key_and_value(records, at)
                if key == _key(_KRAFT_VERSION) and value is not None:
                    levels.append(int.from_bytes(value[2:4], "big", signed=True))
    return max(levels)


def _key(number: int) -> bytes:
    return _KEY_VERSION.to_bytes(2, "big") + number.to_bytes(2, "big")
