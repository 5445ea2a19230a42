"""Plain lines: one send or one poll without special fields. Almost all lines of a long history are plain.

A plain line is read into one object, by types that C checks, and an operation of plain lines is one tuple from there to
the checks. What isr_anomalies says of other lines is said there alone; `line_of` refuses them, and every wrong line.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Generic, Literal, TypeVar

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
    SentRecord,
    Value,
)

Natural = Annotated[int, Meta(ge=0)]
Word = Annotated[str, Meta(min_length=1)]
Nothing = Annotated[list[str], Meta(max_length=0)]
Pair = tuple[Natural, int | str | None]
Triple = tuple[Natural, int | str | None, int]
R = TypeVar("R", Pair, Triple)


class PlainFields(Struct, Generic[R], gc=False):
    """The fields of a plain line, as docs/history.md has them, and those that must be empty; others do not count."""

    type: Literal["invoke", "ok", "fail", "info"]
    f: Literal["produce", "poll"]
    process: int | str
    time: Natural
    id: int | str | None = None
    partition: Word | UnsetType = UNSET
    value: int | str | UnsetType | None = UNSET
    offset: Natural | None = None
    records: dict[str, list[R]] | None = None
    acks: Literal["0", "1", "all"] | None = None
    group: str | None = None
    error: None = None
    seek: None = None
    unseen: None = None
    partitions: Nothing | UnsetType = UNSET
    rebalanced: Nothing | UnsetType = UNSET
    diverged: Nothing | UnsetType = UNSET
    settings: UnsetType = UNSET


Line = PlainFields[Pair] | PlainFields[Triple]
Invocation = tuple[int, Line]
"""An invocation: its number as a line, and the line."""
Sending = tuple[int, int, int, int, str, int | str | None, Outcome, str, Value, int | None, str]
"""An operation of one send: lines and times of invocation and completion, process, token, outcome; partition, value,
offset, acks."""
Polling = tuple[int, int, int, int, str, int | str | None, Outcome, dict[str, list[Record]], str]
"""An operation of one poll: the same, its records, its group."""

_without_epochs = msgspec.json.Decoder(PlainFields[Pair]).decode
_with_epochs = msgspec.json.Decoder(PlainFields[Triple]).decode
_Wrong = (msgspec.MsgspecError, UnicodeError, RecursionError)


def line_of(text: str) -> Line | None:
    """The line, if it is plain."""
    try:
        return _without_epochs(text)
    except _Wrong:
        with suppress(*_Wrong):
            return _with_epochs(text)
    return None


def _records(plain_line: Line) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    given: dict[str, list[Pair]] | dict[str, list[Triple]] = plain_line.records or {}
    for name, some in given.items():
        found[name] = [(one[0], one[1], one[2] if len(one) == 3 else NO_EPOCH) for one in some]
    return found


def begins(plain_line: Line) -> bool:
    """Whether this is a whole invocation."""
    if plain_line.type != "invoke" or plain_line.offset is not None or plain_line.records:
        return False
    return plain_line.f == "poll" or (plain_line.partition is not UNSET and plain_line.value is not UNSET)


def operation_of_lines(invocation: Invocation, line: int, plain_line: Line) -> Sending | Polling | None:
    """The operation of two lines; None if something is unusual about it."""
    at, first = invocation
    if first.f != plain_line.f or plain_line.type == "invoke" or plain_line.time < first.time:
        return None
    if first.group and plain_line.group and first.group != plain_line.group:
        return None
    if first.acks and plain_line.acks and first.acks != plain_line.acks:
        return None
    if plain_line.f == "poll":
        records, group = (
            _records(first if plain_line.records is None else plain_line),
            plain_line.group or first.group or "",
        )
        return (
            at,
            line,
            first.time,
            plain_line.time,
            str(plain_line.process),
            plain_line.id,
            plain_line.type,
            records,
            group,
        )
    offset, where, what = plain_line.offset, first.partition, first.value
    if plain_line.partition is UNSET:
        if plain_line.value not in (UNSET, None, what):
            return None
    elif plain_line.partition != where or plain_line.value != what:
        return None
    if where is UNSET or what is UNSET:
        return None
    acks = plain_line.acks or first.acks or ""
    return (
        at,
        line,
        first.time,
        plain_line.time,
        str(plain_line.process),
        plain_line.id,
        plain_line.type,
        where,
        what,
        offset,
        acks,
    )


def event(invocation: Invocation) -> Event:
    """The invocation as isr_anomalies has it."""
    line, plain_line = invocation
    micro: tuple[Micro, ...] = ()
    if plain_line.partition is not UNSET and plain_line.value is not UNSET and plain_line.f == "produce":
        micro = (SentRecord(plain_line.partition, plain_line.value, plain_line.offset),)
    elif plain_line.records is not None and plain_line.f == "poll":
        micro = (Polled(_records(plain_line)),)
    extra = (
        None
        if plain_line.acks is plain_line.group is None
        else Extra(acks=plain_line.acks, group=plain_line.group or "")
    )
    return Event(
        line, plain_line.type, plain_line.f, str(plain_line.process), plain_line.time, plain_line.id, micro, extra
    )
