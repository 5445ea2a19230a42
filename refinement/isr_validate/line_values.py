"""Values of a trace's lines: objects, numbers, batches, and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from isr_broker.snapshot import Json

Fields: TypeAlias = Mapping[str, Json]
Row: TypeAlias = tuple[int, ...]
"""A batch: offset, epoch, count, CRC, producer id, its epoch, first sequence."""


def fields(value: Json) -> Fields:
    """An object of a line; an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def number(value: Json, otherwise: int = 0) -> int:
    """A number of a line."""
    return value if isinstance(value, int) else otherwise


def numbers(value: Json) -> list[int]:
    """A list of numbers."""
    return [v for v in value if isinstance(v, int)] if isinstance(value, list) else []


def rows(value: Json) -> list[Row]:
    """Batches of a line."""
    return [tuple(numbers(row)) for row in value] if isinstance(value, list) else []


@attrs.frozen
class Mail:
    """A message that a line has sent."""

    id: str
    source: str
    to: str
    kind: str
    says: Fields


def mails(source: str, sent: Json) -> list[Mail]:
    """The messages of a line."""
    found: list[Mail] = []
    for one in sent if isinstance(sent, list) else []:
        for kind, value in fields(one).items():
            if kind not in ("id", "to"):
                found.append(Mail(str(fields(one).get("id")), source, str(fields(one).get("to")), kind, fields(value)))
    return found
