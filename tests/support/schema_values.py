"""Random values of fields of Kafka's requests, by its schemas: what is usual, and what somebody might not expect."""

from __future__ import annotations

from random import Random
from typing import Final

import attrs
from kio.static.protocol import Entity

from isr_broker.core.record_batch import batch_around, crc32c, new_batch, varint
from isr_broker.wire.decoder import FIXED_SIZE_TYPES, Field, shape
from isr_broker.wire.protocol import Answer

_NAMES: Final = ("t", "other", "a.b", "", "..", "x" * 249, "x" * 300, "ä", "n0", "n1", "n2", "n3", "g", "1", "2", "3")
_LONG: Final = (1_000, 32_700, 2**15 - 1)
"""Lengths of texts of which some answers have no room for more; one more is no text of Kafka's."""
_NUMBERS: Final = (-2, -1, 0, 1, 2, 3, 5, 10, 100, 1_000, 100_000)
_BITS: Final = {"b": 7, "h": 15, "i": 31, "q": 63, "H": 16, "I": 32}


@attrs.define
class Values:
    """Random values of fields, by Kafka's schemas."""

    chance: Random

    def entity(self, schema: type[Entity], most: int) -> Answer:
        """Fields of an entity, with up to so many items in an array."""
        fields = (field for field in shape(schema) if field.tag is None or self.chance.random() < 0.5)
        return {field.name: self.value(field, most) for field in fields}

    def value(self, field: Field, most: int) -> object:
        """A value of a field."""
        if field.nullable and self.chance.random() < 0.1:
            return None
        if not field.array:
            return self.one(field, most)
        count = self.chance.randint(0, most)
        if self.chance.random() < 0.3:
            return [self.one(field, 2)] * count
        return [self.one(field, max(1, most // 10)) for _ in range(count)]

    def one(self, field: Field, most: int) -> object:
        """One value, not an array of them."""
        if field.holds is not None:
            return self.entity(field.holds, most)
        match field.kind:
            case "string":
                return self.text(field.name)
            case "records":
                return self.records()
            case "bytes":
                return self.chance.randbytes(self.chance.choice((0, 1, 50)))
            case "uuid":
                return self.chance.choice((bytes(16), self.chance.randbytes(16), b"insync\0\0" + bytes(7) + b"\5"))
            case "bool":
                return self.chance.random() < 0.5
            case "float64":
                return self.chance.random()
            case kind:
                return self.number(field.name, FIXED_SIZE_TYPES[kind or ""])

    def text(self, name: str) -> str:
        """A name, often of what is there, and now and then one that is as long as a text may be."""
        if name == "member_id" and self.chance.random() < 0.5:
            return ""
        if self.chance.random() < 0.02:
            return "x" * self.chance.choice(_LONG)
        return "t" if self.chance.random() < 0.3 else self.chance.choice(_NAMES)

    def number(self, name: str, letter: str) -> int:
        """A number of a size; times to wait are short, so that not all clients only wait."""
        if name in ("max_wait", "timeout", "rebalance_timeout"):
            return self.chance.choice((-1, 0, 1, 100))
        if name == "session_timeout" and self.chance.random() < 0.7:
            return 10_000
        if name in ("partition_index", "index", "partition", "acks") and self.chance.random() < 0.7:
            return self.chance.choice((-1, 0, 1))
        bits = _BITS[letter]
        most, least = (1 << bits) - 1, -(1 << bits) if letter.islower() else 0
        number = self.chance.choice((*_NUMBERS, most, least))
        return min(max(number, least), most)

    def records(self) -> bytes:
        """A batch, or what is none."""
        good = bytearray(
            new_batch(self.chance.randbytes(self.chance.choice((1, 100))), self.chance.choice((1, 3, 300)))
        )
        match self.chance.randrange(6):
            case 0:
                return bytes(good)
            case 1:
                # So large that what follows it is looked at in a later turn.
                return new_batch(self.chance.randbytes(200_000))
            case 2:
                return self.late()
            case 3:
                return batch_around(b"\xff" * self.chance.choice((39, 10_000)), self.chance.choice((1, 30_000_000)))
            case 4:
                good[self.chance.randrange(21, len(good))] = self.chance.choice((0, 1, 0x7F, 0x80, 0xFF))
                good[17:21] = crc32c(bytes(good[21:])).to_bytes(4, "big")
                return bytes(good)
            case _:
                return self.chance.randbytes(self.chance.choice((0, 10, 100)))

    def late(self) -> bytes:
        """Records at the ends of time, or beyond."""
        base, delta = self.chance.choice(((2**63 - 1, 0), (2**63 - 1, 1), (-(2**63), -1), (-1, 2**62), (0, -5)))
        inner = b"\0" + varint(delta) + varint(0) + b"\1" + varint(1) + b"v" + b"\0"
        return batch_around(varint(len(inner)) + inner, 1, base)
