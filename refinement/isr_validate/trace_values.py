"""JSON in the lines of a trace, as objects, numbers, batches and messages; a wrong type reads as empty or 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from isr_broker.snapshot import Json

Fields: TypeAlias = Mapping[str, Json]
Row: TypeAlias = tuple[int, ...]
"""A batch: offset, leader epoch, number of records, CRC, producer id, producer epoch, first sequence number."""


def fields(value: Json) -> Fields:
    """An object; an empty one if the value is none."""
    return value if isinstance(value, dict) else {}


def number(value: Json, otherwise: int = 0) -> int:
    """A number; `otherwise` if the value is none."""
    return value if isinstance(value, int) else otherwise


def numbers(value: Json) -> list[int]:
    """A list of numbers; whatever in it is no number is left out."""
    return [v for v in value if isinstance(v, int)] if isinstance(value, list) else []


def rows(value: Json) -> list[Row]:
    """A list of batches."""
    return [tuple(numbers(row)) for row in value] if isinstance(value, list) else []


@attrs.frozen
class SentMessage:
    """A message that a line has sent; `says` are its fields."""

    id: str
    source: str
    to: str
    kind: str
    says: Fields


def sent_messages(source: str, entries: Json) -> list[SentMessage]:
    """The messages that a line has sent."""
    messages: list[SentMessage] = []
    for one in entries if isinstance(entries, list) else []:
        for kind, value in fields(one).items():
            if kind not in ("id", "to"):
                messages.append(
                    SentMessage(str(fields(one).get("id")), source, str(fields(one).get("to")), kind, fields(value))
                )
    return messages
