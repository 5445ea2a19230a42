"""What Apache Kafka's controller has decided about one partition, from the log `__cluster_metadata` on its disk.

The records are KRaft's (metadata/src/main/resources/common/metadata of Kafka's sources): TopicRecord (2) names the
topic's id, PartitionRecord (3) creates the partition, PartitionChangeRecord (5) changes it; one that names a leader, be
it the same, raises the leader epoch (PartitionRegistration.merge).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import HEADER_BYTES, BadBatch, header, zigzag
from isr_broker.wire.decoder import BadFrame, Cursor, tagged_fields

METADATA_LOG: Final = "__cluster_metadata-0/00000000000000000000.log"

_TOPIC: Final = 2
_PARTITION: Final = 3
_CHANGE: Final = 5


@attrs.frozen
class Decided:
    """A partition as the controller has it."""

    leader: int | None
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]


@attrs.define
class KafkaDecisions:
    """Follows one partition through the log; `take` gives what is new in the next bytes of it."""

    partition: TopicPartition
    now: Decided | None = None
    _topic_id: bytes | None = None

    def take(self, data: bytes) -> tuple[list[Decided], int]:
        """The decisions in the whole batches at the beginning of the bytes, and how many bytes these batches are."""
        found: list[Decided] = []
        position = 0
        while len(data) - position >= HEADER_BYTES:
            try:
                batch = header(data, position)
            except BadBatch:
                break
            if position + batch.size > len(data):
                break
            if not batch.control:  # Raft's own
                for value in _values(data, position, batch.count):
                    if self._takes(value) and self.now is not None:
                        found.append(self.now)
            position += batch.size
        return found, position

    def _takes(self, value: bytes) -> bool:
        """Whether a record is about the partition."""
        cursor = Cursor(value, 0)
        try:
            cursor.varint()  # the version of the frame
            kind, version = cursor.varint(), cursor.varint()
            if kind == _TOPIC:
                if cursor.take(cursor.varint() - 1).decode() == self.partition.topic:
                    self._topic_id = cursor.take(16)
            elif kind in (_PARTITION, _CHANGE):
                number, topic = _int(cursor), cursor.take(16)
                if topic == self._topic_id and number == self.partition.partition:
                    self.now = _created(cursor, version) if kind == _PARTITION else self._changed(cursor)
                    return True
        except (BadFrame, UnicodeDecodeError):
            return False
        return False

    def _changed(self, cursor: Cursor) -> Decided | None:
        told: dict[int, tuple[int, ...]] = {}
        tagged_fields(cursor, lambda tag, of: told.__setitem__(tag, _tagged(tag, of)))
        if self.now is None:
            return None
        leader, epoch = self.now.leader, self.now.epoch
        if 1 in told:
            leader, epoch = _node(told[1][0]), epoch + 1
        return Decided(leader, epoch, told.get(0, self.now.isr), told.get(6, self.now.elr))


def _tagged(tag: int, cursor: Cursor) -> tuple[int, ...]:
    """Of a PartitionChangeRecord: 0 is the ISR, 1 the leader, 6 the ELR."""
    return (_int(cursor),) if tag == 1 else _ints(cursor) if tag in (0, 6) else ()


def _created(cursor: Cursor, version: int) -> Decided:
    _ints(cursor)  # the replicas
    isr = _ints(cursor)
    _ints(cursor)  # those that are removed
    _ints(cursor)  # those that are added
    leader, epoch, _ = _int(cursor), _int(cursor), _int(cursor)
    if version >= 1:
        cursor.take(16 * max(0, cursor.varint() - 1))  # directories
    told: dict[int, tuple[int, ...]] = {}
    tagged_fields(cursor, lambda tag, of: told.__setitem__(tag, _ints(of) if tag == 1 else ()))
    return Decided(_node(leader), epoch, isr, told.get(1, ()))


def _node(number: int) -> int | None:
    return None if number < 0 else number


def _int(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(4), "big", signed=True)


def _ints(cursor: Cursor) -> tuple[int, ...]:
    return tuple(sorted(_int(cursor) for _ in range(cursor.varint() - 1)))


def _values(data: bytes, position: int, count: int) -> Iterator[bytes]:
    """The values of the records of a batch without compression."""
    at = position + HEADER_BYTES
    for _ in range(count):
        size, at = zigzag(data, at)
        after, at = at + size, at + 1
        for _ in range(2):  # timestamp and offset
            _, at = zigzag(data, at)
        key, at = zigzag(data, at)
        length, at = zigzag(data, at + max(0, key))
        yield data[at : at + length]
        at = after
