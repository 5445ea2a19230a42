"""Plain lines: one send or one poll without special fields. Almost all lines of a long history are plain.

A plain line is read into one object, by types that C checks, and an operation of plain lines is one tuple from there to
the checks. What isr_anomalies says of other lines is said there alone; `line_of` refuses them, and every wrong line.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from isr_anomalies.operations import (
    NO_EPOCH,
    Event,
    Extra,
    Micro,
    Outcome,
    Polled,
    Record,
    Sent,
    Value,
)

Natural = Annotated[int, Meta(ge=0)]
Word = Annotated[str, Meta(min_length=1)]
Given = dict[str, list[tuple[Natural, int | str | None]]]


class Line(Struct, gc=False, forbid_unknown_fields=True):
    """The fields of a plain line, as docs/history.md has them."""

    type: Literal["invoke", "ok", "fail", "info"]
    f: Literal["produce", "poll"]
    process: int | str
    time: Natural
    id: int | str | None = None
    key: int | str | None = None
    partition: Word | UnsetType = UNSET
    value: int | str | UnsetType | None = UNSET
    offset: Natural | None = None
    records: Given | None = None
    acks: Literal["0", "1", "all"] | None = None


Begun = tuple[int, Line]
"""An invocation: its number as a line, and the line."""
Sending = tuple[int, int, int, int, str, int | str | None, Outcome, str, Value, int | None, str]
"""An operation of one send: lines and times of invocation and completion, process, token, outcome; partition, value,
offset, acks."""
Polling = tuple[int, int, int, int, str, int | str | None, Outcome, dict[str, list[Record]]]
"""An operation of one poll: the same, and its records."""

_decode = msgspec.json.Decoder(Line).decode


def line_of(text: str) -> Line | None:
    """The line, if it is plain."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _records(given: Given) -> dict[str, list[Record]]:
    return {name: [(offset, value, NO_EPOCH) for offset, value in found] for name, found in given.items()}


def begins(told: Line) -> bool:
    """Whether this is a whole invocation."""
    return told.type == "invoke" and (told.f == "poll" or (told.partition is not UNSET and told.value is not UNSET))


def ended(begun: Begun, line: int, told: Line) -> Sending | Polling | None:
    """The operation of two lines; None if something is unusual about it."""
    at, first = begun
    if first.f != told.f or told.type == "invoke" or told.time < first.time:
        return None
    if told.f == "poll":
        records = _records((first.records if told.records is None else told.records) or {})
        return at, line, first.time, told.time, str(told.process), told.id, told.type, records
    offset, where, what = told.offset, first.partition, first.value
    if told.partition is UNSET:
        offset = first.offset if offset is None else offset
    elif told.partition != where or told.value != what:
        return None
    if where is UNSET or what is UNSET:
        return None
    acks = told.acks or first.acks or ""
    return at, line, first.time, told.time, str(told.process), told.id, told.type, where, what, offset, acks


def event(begun: Begun) -> Event:
    """The invocation as isr_anomalies has it."""
    line, told = begun
    micro: tuple[Micro, ...] = ()
    if told.partition is not UNSET and told.value is not UNSET and told.f == "produce":
        micro = (Sent(told.partition, told.value, told.offset),)
    elif told.records is not None and told.f == "poll":
        micro = (Polled(_records(told.records)),)
    extra = None if told.acks is None else Extra(acks=told.acks)
    return Event(line, told.type, told.f, str(told.process), told.time, told.id, micro, extra)
