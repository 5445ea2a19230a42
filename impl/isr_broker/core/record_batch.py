"""Record batches of version 2 as opaque bytes: the header is read and checked, the records never are.

Format: KIP-98, org.apache.kafka.common.record.DefaultRecordBatch. Offsets in bytes:

    0 base offset i64 | 8 length i32 | 12 partition leader epoch i32 | 16 magic i8 | 17 CRC u32 | 21 attributes i16
    23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64 | 43 producer id i64
    51 producer epoch i16 | 53 base sequence i32 | 57 count i32 | 61 records

The CRC-32C covers everything from the attributes on, so a leader stamps offset and epoch without computing it again,
and a flipped bit in those two is not its business: recovery looks at their order instead.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, cast

import attrs
import google_crc32c

from isr_broker.core.messages import LeaderEpoch, Offset

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_FRONT: Final = struct.Struct(">qiibIhi")
HEADER_BYTES: Final = _HEADER.size
BASE_OFFSET_BYTES: Final = 8
LENGTH_ENDS: Final = 12
"""The length field counts what comes after itself."""

CRC_FROM: Final = 21
_CRC_AT, _NEWEST_AT = 17, 35
MAGIC: Final = 2
_NO_PRODUCER: Final = -1
_TRANSACTIONAL: Final = 1 << 4
_CONTROL: Final = 1 << 5
_CODEC: Final = 0b111
_APPEND_TIME: Final = 1 << 3
_SHIFTS: Final = range(7, 64, 7)
"""A number of 64 bits has ten bytes at most, seven bits at a time (ByteUtils.readVarlong)."""

# The extension has no type stubs.
crc32c = cast("Callable[[bytes], int]", google_crc32c.value)  # pyright: ignore[reportUnknownMemberType]


class BadBatch(ValueError):
    """Bytes that are no valid record batch; the message says what is wrong and at which byte."""


@attrs.frozen
class Batch:
    """The header of one batch, as far as a broker needs it, and where it stands in the bytes it was read from."""

    position: int
    size: int
    base_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    attributes: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> Offset:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        """The offset after the last record."""
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """The producer's sequence number of the last record; numbers start again after 2**31 - 1."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def idempotent(self) -> bool:
        """It is from a producer with an identity (KIP-98), and is not a control batch."""
        return self.producer_id != _NO_PRODUCER and not self.control

    @property
    def control(self) -> bool:
        """Its records are marks of a coordinator, not a producer's."""
        return bool(self.attributes & _CONTROL)

    @property
    def transactional(self) -> bool:
        """Its records belong to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def append_time(self) -> bool:
        """Its timestamps are a broker's and not the producer's (LogAppendTime)."""
        return bool(self.attributes & _APPEND_TIME)

    @property
    def codec(self) -> int:
        """How its records are compressed: 0 not at all, then gzip, snappy, lz4, zstd; nobody knows 5 to 7."""
        return self.attributes & _CODEC

    @property
    def compressed(self) -> bool:
        """Its records cannot be read without a codec."""
        return bool(self.codec)


def header(data: bytes | memoryview, position: int) -> Batch:
    """The header at a position; BadBatch if there is none, or what it says cannot be."""
    left = len(data) - position
    if left < HEADER_BYTES:
        raise BadBatch(f"at byte {position}: {left} bytes are left, a header has {HEADER_BYTES}")
    fields = cast("tuple[int, ...]", _HEADER.unpack_from(data, position))
    base, length, epoch, magic, crc, attributes, delta, _, newest, producer, producer_epoch, sequence, count = fields
    size = length + LENGTH_ENDS
    if magic != MAGIC:
        raise BadBatch(f"at byte {position}: magic {magic}, not {MAGIC}")
    if size < HEADER_BYTES:
        raise BadBatch(f"at byte {position}: a length of {length} is less than a header")
    if base < 0 or delta < 0 or count < 0 or count > delta + 1:
        raise BadBatch(f"at byte {position}: {count} records, offsets {base} to {base + delta}")
    return Batch(position, size, base, epoch, crc, attributes, delta, newest, producer, producer_epoch, sequence, count)


def front_of(header_bytes: bytes, expected: Offset, at: int) -> tuple[int, LeaderEpoch, int, Offset]:
    """Size, leader epoch and CRC of the batch with these first bytes, and the offset after it.

    BadBatch if it does not begin at the offset `expected`, or is none; `at` is for the message. The rest of the header
    is left out, for every batch of every read is looked at.
    """
    if len(header_bytes) < HEADER_BYTES:
        raise BadBatch(f"at byte {at}: {len(header_bytes)} bytes are left, a header has {HEADER_BYTES}")
    base, length, epoch, magic, crc, _, delta = cast("tuple[int, ...]", _FRONT.unpack_from(header_bytes))
    if base != expected or magic != MAGIC or length < HEADER_BYTES - LENGTH_ENDS or delta < 0:
        raise BadBatch(f"at byte {at}: no batch of offset {expected}, but of {base}")
    return length + LENGTH_ENDS, epoch, crc, base + delta + 1


def batches(data: bytes | memoryview, check: bool = False) -> Iterator[Batch]:
    """The batches that fill the bytes, with their CRC if asked; BadBatch where one is torn or wrong."""
    position = 0
    while position < len(data):
        batch = header(data, position)
        if position + batch.size > len(data):
            raise BadBatch(f"at byte {position}: {batch.size} bytes long, {len(data) - position} are there")
        if check and crc_of(data, batch) != batch.crc:
            raise BadBatch(f"at byte {position}: CRC {crc_of(data, batch):08x}, the header says {batch.crc:08x}")
        yield batch
        position += batch.size


def whole_batches(data: bytes) -> bytes:
    """As many whole batches as the bytes begin with; a fetch may end within one (KIP-74)."""
    end = 0
    while end + LENGTH_ENDS <= len(data):
        size = LENGTH_ENDS + int.from_bytes(data[end + BASE_OFFSET_BYTES : end + LENGTH_ENDS], "big")
        if end + size > len(data):
            break
        end += size
    return data[:end]


@attrs.frozen
class Stamp:
    """Where a record is, its timestamp and its leader epoch."""

    offset: Offset
    timestamp: int
    epoch: LeaderEpoch


def records_in(data: bytes, batch: Batch) -> Iterator[Stamp]:
    """The records of a batch with their timestamps; of a compressed one the batch stands for its records.

    A compressed batch is taken for one record at its base offset with its largest timestamp: the broker has no codecs.
    """
    if batch.compressed or batch.append_time:
        yield Stamp(batch.base_offset, batch.max_timestamp, batch.leader_epoch)
        return
    base = base_timestamp(data, batch)
    for at in record_places(data, batch):
        delta, inner = zigzag(data, at + 1)
        number, _ = zigzag(data, inner)
        yield Stamp(batch.base_offset + number, base + delta, batch.leader_epoch)


def record_places(data: bytes, batch: Batch) -> Iterator[int]:
    """Where each record of an uncompressed batch begins, behind its size; BadBatch where a size cannot be.

    Else a log with such a record would be read for ever: going back, or as often as the header says.
    """
    at, end = batch.position + HEADER_BYTES, batch.position + batch.size
    for _ in range(batch.count):
        size, at = zigzag(data, at)
        if size < 1 or at + size > end:
            raise BadBatch(f"at byte {at}: a record of {size} bytes, {end - at} are left")
        yield at
        at += size


def key_and_value(data: bytes, at: int) -> tuple[bytes | None, bytes | None]:
    """The key and the value of the record that begins there, as `record_places` says it; None for null."""
    _, at = zigzag(data, at + 1)
    _, at = zigzag(data, at)
    size, at = zigzag(data, at)
    key, at = (None, at) if size < 0 else (data[at : at + size], at + size)
    size, at = zigzag(data, at)
    return key, None if size < 0 else data[at : at + size]


def base_timestamp(data: bytes, batch: Batch) -> int:
    """The timestamp from which those of the records are counted."""
    return int.from_bytes(data[batch.position + 27 : batch.position + 35], "big", signed=True)


def zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of variable size, seven bits at a time, and where it ends; BadBatch if it does not."""
    try:
        value = data[at]
        if value >= 0x80:
            value &= 0x7F
            for shift in _SHIFTS:
                at += 1
                value |= (data[at] & 0x7F) << shift
                if data[at] < 0x80:
                    break
            else:
                raise BadBatch(f"at byte {at}: a number that does not end")
    except IndexError:
        raise BadBatch(f"at byte {at}: a number that does not end") from None
    return value >> 1 ^ -(value & 1), at + 1


def codec_at(data: bytes) -> int:
    """How the records of the first batch are compressed."""
    return data[CRC_FROM + 1] & _CODEC


def is_transactional(data: bytes) -> bool:
    """The first batch belongs to a transaction."""
    return bool(data[CRC_FROM + 1] & _TRANSACTIONAL)


def leader_epoch_of(data: bytes) -> LeaderEpoch:
    """The leader epoch of the first batch."""
    return int.from_bytes(data[12:16], "big", signed=True)


def crc_of(data: bytes | memoryview, batch: Batch) -> int:
    """The CRC-32C of a batch as it is."""
    return crc32c(bytes(data[batch.position + CRC_FROM : batch.position + batch.size]))


def is_whole(data: bytes, size: int) -> bool:
    """The CRC of the first batch, of so many bytes, is that of its header; nothing else of the header is read."""
    return crc32c(data[CRC_FROM:size]) == int.from_bytes(data[_CRC_AT:CRC_FROM], "big")


def stamped(data: bytes, offset: Offset, epoch: LeaderEpoch, newest: int | None = None) -> bytes:
    """A producer's batches with their offsets, from `offset` on, and the leader epoch in which they are appended.

    `newest` is the largest timestamp of the one batch, where its header says another (LogValidator, setMaxTimestamp).
    Model: leader_appends writes its record in the leader's own epoch.
    """
    out = bytearray(data)
    if newest is not None:
        struct.pack_into(">q", out, _NEWEST_AT, newest)
        struct.pack_into(">I", out, _CRC_AT, crc32c(bytes(out[CRC_FROM:])))
    for batch in batches(data):
        struct.pack_into(">q", out, batch.position, offset)
        struct.pack_into(">i", out, batch.position + LENGTH_ENDS, epoch)
        offset += batch.last_offset_delta + 1
    return bytes(out)


def encoded_record(value: bytes, number: int = 0, key: bytes | None = None) -> bytes:
    """A record with a value, and with a key or none, without headers, and with this number in its batch."""
    name = varint(-1) if key is None else varint(len(key)) + key
    inner = b"\0\0" + varint(number) + name + varint(len(value)) + value + b"\0"
    return varint(len(inner)) + inner


def varint(number: int) -> bytes:
    """A signed number as `zigzag` reads it."""
    left, out = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def value_of(data: bytes, batch: Batch) -> bytes:
    """The value of the first record of an uncompressed batch."""
    _, at = zigzag(data, batch.position + HEADER_BYTES)
    return key_and_value(data, at)[1] or b""


def new_batch(
    value: bytes,
    count: int = 1,
    timestamp: int = 0,
    producer: tuple[int, int, int] = (_NO_PRODUCER, -1, -1),
) -> bytes:
    """A batch of so many records, the first of which has a value, for tests, the simulator and tools."""
    records = b"".join(encoded_record(b"" if number else value, number) for number in range(count))
    return batch_around(records, count, timestamp, producer)


def batch_around(
    records: bytes,
    count: int = 1,
    timestamp: int = 0,
    producer: tuple[int, int, int] = (_NO_PRODUCER, -1, -1),
    control: bool = False,
) -> bytes:
    """A batch around encoded records; `producer` is id, epoch and sequence."""
    attributes = _CONTROL if control else 0
    tail = struct.pack(">hiqqqhii", attributes, count - 1, timestamp, timestamp, *producer, count) + records
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, MAGIC, crc32c(tail)) + tail
