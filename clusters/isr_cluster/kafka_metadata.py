"""What Apache Kafka's controller has decided, from the log `__cluster_metadata` on its disk.

The records are KRaft's (metadata/src/main/resources/common/metadata of Kafka's sources): TopicRecord (2) names the
topic's id, PartitionRecord (3) creates the partition, PartitionChangeRecord (5) changes it; one that names a leader, be
it the same, raises the leader epoch (PartitionRegistration.merge). RegisterBrokerRecord (0) begins a broker's session,
BrokerRegistrationChangeRecord (17) changes whether it is fenced or shutting down.
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
_BROKER_CHANGE: Final = 17
_BROKER: Final = 0


@attrs.frozen
class PartitionDecision:
    """A partition as the controller has it; `version` is its partition epoch, `last_known` the last known ELR.

    `replicas` are in the order in which they are preferred as leaders; the ISR and the others in that of their ids.
    """

    leader: int | None
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    version: int = 0
    last_known: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()


@attrs.define
class KafkaDecisions:
    """Follows one partition through the log; `take` gives what is new in the next bytes of it."""

    partition: TopicPartition
    now: PartitionDecision | None = None
    _topic_id: bytes | None = None

    def take(self, data: bytes) -> tuple[list[PartitionDecision], int]:
        """The decisions in the whole batches at the beginning of the bytes, and how many bytes these batches are."""
        new_decisions: list[PartitionDecision] = []
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
                    if self.takes(value) and self.now is not None:
                        new_decisions.append(self.now)
            position += batch.size
        return new_decisions, position

    def takes(self, value: bytes) -> bool:
        """Whether a record is about the partition, which is then as it says."""
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
                    self.now = _new_partition(cursor, version) if kind == _PARTITION else self._apply_change(cursor)
                    return True
        except (BadFrame, UnicodeDecodeError):
            return False
        return False

    def _apply_change(self, cursor: Cursor) -> PartitionDecision | None:
        fields: dict[int, tuple[int, ...]] = {}
        tagged_fields(cursor, lambda tag, of: fields.__setitem__(tag, _tagged(tag, of)))
        if self.now is None:
            return None
        leader, epoch = self.now.leader, self.now.epoch
        if 1 in fields:
            leader, epoch = _node(fields[1][0]), epoch + 1
        return PartitionDecision(
            leader,
            epoch,
            fields.get(0, self.now.isr),
            fields.get(6, self.now.elr),
            self.now.version + 1,
            fields.get(7, self.now.last_known),
            fields.get(2, self.now.replicas),
        )


@attrs.frozen
class Session:
    """A broker as the controller has it: its broker epoch, and whether it is fenced or shutting down."""

    broker: int
    epoch: int
    fenced: bool
    shutting_down: bool


@attrs.define
class KafkaSessions:
    """Follows all brokers through the log."""

    now: dict[int, Session] = attrs.field(factory=dict[int, Session])

    def takes(self, value: bytes) -> Session | None:
        """The broker that a record is about, as it is after it; None for a record about something else."""
        cursor = Cursor(value, 0)
        try:
            cursor.varint()
            kind, version = cursor.varint(), cursor.varint()
            if kind == _BROKER:
                session = _registered(cursor, version)
            elif kind == _BROKER_CHANGE:
                session = self._apply_change(cursor)
            else:
                return None
        except (BadFrame, UnicodeDecodeError):
            return None
        self.now[session.broker] = session
        return session

    def _apply_change(self, cursor: Cursor) -> Session:
        broker, epoch = _int(cursor), _long(cursor)
        told: dict[int, int] = {}
        tagged_fields(cursor, lambda tag, of: told.__setitem__(tag, _byte(of) if tag in (0, 1) else 0))
        old = self.now.get(broker, Session(broker, epoch, fenced=True, shutting_down=False))
        fenced = {1: True, -1: False}.get(told.get(0, 0), old.fenced)
        return Session(broker, epoch, fenced, old.shutting_down or told.get(1, 0) == 1)


def _registered(cursor: Cursor, version: int) -> Session:
    broker = _int(cursor)
    if version >= 2:
        cursor.take(1)  # a broker of ZooKeeper that migrates
    cursor.take(16)  # its incarnation
    epoch = _long(cursor)
    for _ in range(cursor.varint() - 1):  # its addresses
        for _ in range(2):
            cursor.take(cursor.varint() - 1)
        cursor.take(4)  # port and protocol
        tagged_fields(cursor)
    for _ in range(cursor.varint() - 1):  # its features
        cursor.take(cursor.varint() - 1)
        cursor.take(4)
        tagged_fields(cursor)
    cursor.take(max(0, cursor.varint() - 1))  # its rack
    return Session(broker, epoch, bool(_byte(cursor)), bool(_byte(cursor)) if version >= 1 else False)


def decisions(data: bytes, partition: TopicPartition) -> Iterator[PartitionDecision | Session]:
    """Everything that a log says of one partition and of the brokers, in its order."""
    follows, sessions = KafkaDecisions(partition), KafkaSessions()
    for value in values(data):
        known = dict(sessions.now)
        if follows.takes(value) and follows.now is not None:
            yield follows.now
        elif (session := sessions.takes(value)) is not None and known.get(session.broker) != session:
            yield session


def values(data: bytes) -> Iterator[bytes]:
    """The records of the whole batches at the beginning of the bytes, but for Raft's own."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        try:
            batch = header(data, position)
        except BadBatch:
            return
        if position + batch.size > len(data):
            return
        if not batch.control:
            yield from _values(data, position, batch.count)
        position += batch.size


def _tagged(tag: int, cursor: Cursor) -> tuple[int, ...]:
    """Of a PartitionChangeRecord: 0 is the ISR, 1 the leader, 2 the replicas, 6 the ELR, 7 the last known ELR."""
    if tag == 1:
        return (_int(cursor),)
    return _ids_in_order(cursor) if tag == 2 else _ints(cursor) if tag in (0, 6, 7) else ()


def _new_partition(cursor: Cursor, version: int) -> PartitionDecision:
    replicas = _ids_in_order(cursor)
    isr = _ints(cursor)
    _ints(cursor)  # those that are removed
    _ints(cursor)  # those that are added
    leader, epoch, number = _int(cursor), _int(cursor), _int(cursor)
    if version >= 1:
        cursor.take(16 * max(0, cursor.varint() - 1))  # directories
    told: dict[int, tuple[int, ...]] = {}
    tagged_fields(cursor, lambda tag, of: told.__setitem__(tag, _ints(of) if tag in (1, 2) else ()))
    return PartitionDecision(_node(leader), epoch, isr, told.get(1, ()), number, told.get(2, ()), replicas)


def _node(number: int) -> int | None:
    return None if number < 0 else number


def _byte(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(1), "big", signed=True)


def _long(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(8), "big", signed=True)


def _int(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(4), "big", signed=True)


def _ids_in_order(cursor: Cursor) -> tuple[int, ...]:
    return tuple(_int(cursor) for _ in range(cursor.varint() - 1))


def _ints(cursor: Cursor) -> tuple[int, ...]:
    return tuple(sorted(_ids_in_order(cursor)))


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
