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
    Sent,
    Value,
)

Natural = Annotated[int, Meta(ge=0)]
Word = Annotated[str, Meta(min_length=1)]
Nothing = Annotated[list[str], Meta(max_length=0)]
Pair = tuple[Natural, int | str | None]
Triple = tuple[Natural, int | str | None, int]
R = TypeVar("R", Pair, Triple)


class Told(Struct, Generic[R], gc=False):
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


Line = Told[Pair] | Told[Triple]
Begun = tuple[int, Line]
"""An invocation: its number as a line, and the line."""
Sending = tuple[int, int, int, int, str, int | str | None, Outcome, str, Value, int | None, str]
"""An operation of one send: lines and times of invocation and completion, process, token, outcome; partition, value,
offset, acks."""
Polling = tuple[int, int, int, int, str, int | str | None, Outcome, dict[str, list[Record]], str]
"""An operation of one poll: the same, its records, its group."""

_without_epochs = msgspec.json.Decoder(Told[Pair]).decode
_with_epochs = msgspec.json.Decoder(Told[Triple]).decode
_Wrong = (msgspec.MsgspecError, UnicodeError, RecursionError)


def line_of(text: str) -> Line | None:
    """The line, if it is plain."""
    try:
        return _without_epochs(text)
    except _Wrong:
        with suppress(*_Wrong):
            return _with_epochs(text)
    return None


def _records(told: Line) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    given: dict[str, list[Pair]] | dict[str, list[Triple]] = told.records or {}
    for name, some in given.items():
        found[name] = [(one[0], one[1], one[2] if len(one) == 3 else NO_EPOCH) for one in some]
    return found


def begins(told: Line) -> bool:
    """Whether this is a whole invocation."""
    return told.type == "invoke" and (told.f == "poll" or (told.partition is not UNSET and told.value is not UNSET))


def ended(begun: Begun, line: int, told: Line) -> Sending | Polling | None:
    """The operation of two lines; None if something is unusual about it."""
    at, first = begun
    if first.f != told.f or told.type == "invoke" or told.time < first.time:
        return None
    if told.f == "poll":
        records, group = _records(first if told.records is None else told), told.group or first.group or ""
        return at, line, first.time, told.time, str(told.process), told.id, told.type, records, group
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
        micro = (Polled(_records(told)),)
    extra = None if told.acks is told.group is None else Extra(acks=told.acks, group=told.group or "")
    return Event(line, told.type, told.f, str(told.process), told.time, told.id, micro, extra)
