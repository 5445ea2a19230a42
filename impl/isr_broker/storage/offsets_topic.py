"""Committed offsets as records of the topic __consumer_offsets, in Kafka's form (OffsetCommitKey, OffsetCommitValue).

A group belongs to one partition of the topic, and the leader of that partition coordinates it. What was committed is
thus as durable as any acknowledged write, and the next leader finds it in its log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from operator import mul
from sys import byteorder
from typing import Final, TypeAlias

from isr_broker.core.messages import Millis, Offset, TopicPartition
from isr_broker.core.record_batch import BadBatch, batch_around, batches, key_and_value, record_places, varint

TOPIC: Final = "__consumer_offsets"

Committed: TypeAlias = dict[str, dict[TopicPartition, tuple[Offset, str]]]
"""By group and partition: the offset, and what the group's member wrote beside it. No group is without any."""

News: TypeAlias = Mapping[TopicPartition, tuple[Offset, str] | None]
"""What a group has committed now; None of a partition of which it has nothing any more."""

_KEY_BEGINS: Final = struct.pack(">h", 1)
_VALUE: Final = 3
_MOST: Final = 2**31


@cache
def _powers(bits: int) -> list[int]:
    """The powers of 31 for a text of less than so many bits of units of UTF-16."""
    return list(accumulate(range(1 << bits), lambda power, _: power * 31 % (2 * _MOST), initial=1))


def partition_of(group: str, partitions: int) -> int:
    """To which partition of the topic a group belongs (GroupMetadataManager.partitionFor, String.hashCode)."""
    units = memoryview(group.encode("utf-16-le" if byteorder == "little" else "utf-16-be", "surrogatepass")).cast("H")
    code = sum(map(mul, reversed(units), _powers(len(units).bit_length()))) % (2 * _MOST)
    signed = code - 2 * _MOST if code >= _MOST else code
    return (0 if signed == -_MOST else abs(signed)) % partitions


def batch_of(group: str, new: News, now: Millis) -> bytes:
    """A batch with one record for each offset, without a value where it is to be forgotten."""
    records: list[bytes] = []
    for number, (tp, said) in enumerate(new.items()):
        key = _KEY_BEGINS + _text(group) + _text(tp.topic) + struct.pack(">i", tp.partition)
        value = varint(-1)
        if said is not None:
            body = struct.pack(">hqi", _VALUE, said[0], -1) + _text(said[1]) + struct.pack(">q", now)
            value = varint(len(body)) + body
        inner = b"\0" + varint(0) + varint(number) + varint(len(key)) + key + value + varint(0)
        records.append(varint(len(inner)) + inner)
    return batch_around(b"".join(records), count=len(records), timestamp=now)


def take(committed: Committed, group: str, new: News) -> None:
    """What a group has committed counts from now on."""
    offsets = committed.setdefault(group, {})
    for tp, said in new.items():
        if said is None:
            offsets.pop(tp, None)
        else:
            offsets[tp] = said
    if not offsets:
        del committed[group]


def learn(committed: Committed, log: bytes, before: Callable[[str, News], None] | None = None) -> Offset:
    """Take what batches of a partition say, the last word of each; where the log goes on after them, 0 for none.

    `before` hears of each first. BadBatch where a record is none of this topic.
    """
    end = 0
    for batch in batches(log):
        for at in record_places(log, batch):
            key, value = key_and_value(log, at)
            if key is not None and key[:2] == _KEY_BEGINS:
                try:
                    group, news = _commit(key, value)
                except (struct.error, UnicodeDecodeError) as error:
                    raise BadBatch(f"at byte {at}: no committed offset: {error}") from error
                if before is not None:
                    before(group, news)
                take(committed, group, news)
        end = batch.next_offset
    return end


def _commit(key: bytes, value: bytes | None) -> tuple[str, News]:
    """The group of a record, and what it has committed."""
    group, after = _read_text(key, 2)
    topic, after = _read_text(key, after)
    (partition,) = struct.unpack_from(">i", key, after)
    row = None if value is None else (int(struct.unpack_from(">q", value, 2)[0]), _read_text(value, 14)[0])
    return group, {TopicPartition(topic, partition): row}


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size
