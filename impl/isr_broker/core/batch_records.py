"""The records of a batch, checked one by one: whether they are whole, in their order, and as many as the header says.

A client may send any bytes with a right CRC. What is taken without a look is later read by whoever asks for a time, and
served to consumers that trust it. Kafka: DefaultRecordBatch.RecordIterator, DefaultRecord.readFrom, LogValidator.

A batch has thousands of records, most of them of one length. So one record is read byte by byte, and those behind it
that are laid out alike are compared column by column, which Python does a hundred times faster.

A batch of 1 MB can have 110,000 records of which none is like the next. So a look stops now and then, and whoever looks
may let others have their turn before it goes on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final, TypeAlias, TypeVar, cast

import attrs

from isr_broker.core.record_batch import HEADER_BYTES, BadBatch, Batch, base_timestamp, zigzag

_FEW: Final = 8
"""So many records are tried first: where they are not alike, little was lost."""
_MOST_ROWS: Final = 512
_ONE_DIGIT: Final = 64
"""Numbers below are written as one byte, which is read here without a call, as that of no key is."""
_NO_KEY: Final = 1
_ASCII, _EVEN = bytes(range(0x80)), bytes(range(0, 0x100, 2))
_FIRST_DIGITS: Final = {more: bytes(value | more for value in range(0, 0x80, 2)) * 10 for more in (0, 0x80)}
"""The first bytes of the numbers from 0 on, as they are written, with and without more to come."""
_LONGEST_PAUSE: Final = 64
_FEW_HEADERS: Final = 64
"""A record with more headers is not compared by columns, of which it would have thousands."""

STEPS: Final = 8_192
"""After so many records that were read one by one, or as much work, a look stops: 10 to 15 ms of a processor."""
_STEPS_PER_COLUMN: Final = 64
"""So many bytes of columns cost as much as one record that is read by itself, or less."""

T = TypeVar("T")
Look: TypeAlias = Generator[None, None, T]
"""Yields where others may have their turn; its value is what has been seen."""


def at_once(look: Look[T]) -> T:
    """All of a look in one turn."""
    while True:
        try:
            next(look)
        except StopIteration as end:
            return cast("T", end.value)


@attrs.frozen
class _Layout:
    """Which bytes of a record are what, counted from its beginning.

    - `time`, `number`: the bytes of its timestamp and of its offset, both relative to the batch.
    - `structure`: the bytes that say how long it and its parts are.
    """

    time: range
    number: range
    structure: Sequence[int]


def newest_timestamp(data: bytes, batch: Batch) -> Look[int]:
    """The largest timestamp of an uncompressed batch; BadBatch where a record is not as the header says it is."""
    at, end = batch.position + HEADER_BYTES, batch.position + batch.size
    after, newest, headers, here = _record(data, at, end, 0)
    yield from _headers(data, here, after, headers)
    number, layout, steps = 1, None, 0
    pause = wait = 0
    while number < batch.count:
        if steps >= STEPS:
            steps = 0
            yield
        length, rows = after - at, min(batch.count - number, (end - after) // (after - at), _MOST_ROWS)
        layout = layout if rows else None
        if layout is None and not wait and rows >= _FEW and headers <= _FEW_HEADERS:
            layout = _layout(data, at)
            if pause and not _alike(data, after, length, layout, number, _FEW):
                layout = None
        while layout is not None and not _alike(data, after, length, layout, number, rows):
            steps += len(layout.structure)
            rows //= 2
            layout = layout if rows else None
        if layout is not None:
            newest = max(newest, _largest(data, after, length, layout, rows))
            at, after, number, pause = after + (rows - 1) * length, after + rows * length, number + rows, 0
            steps += _FEW + (len(layout.structure) + _FEW) * rows // _STEPS_PER_COLUMN
            continue
        if not wait:
            wait = pause = min(2 * pause + 1, _LONGEST_PAUSE)
        wait -= 1
        at, (after, delta, headers, here) = after, _record(data, after, end, number)
        newest, number, steps = max(newest, delta), number + 1, steps + 1
        if headers:
            steps += headers // 2
            yield from _headers(data, here, after, headers)
    if after != end:
        raise BadBatch(f"at byte {after}: {end - after} bytes more than {batch.count} records have")
    return base_timestamp(data, batch) + newest


def _record(data: bytes, at: int, end: int, number: int) -> tuple[int, int, int, int]:
    """A record that has this number in its batch, all of it but its headers.

    Where it ends, its timestamp, relative to the batch's, how many headers it has, and where these begin.
    """
    size, body = zigzag(data, at)
    after = body + size
    if size < 1 or after > end:
        raise BadBatch(f"at byte {at}: a record of {size} bytes, {end - body} are left")
    delta, here = zigzag(data, body + 1)
    if here < after and number < _ONE_DIGIT and data[here] == 2 * number:
        here += 1
    else:
        offset, here = zigzag(data, here)
        if offset != number:
            raise BadBatch(f"at byte {at}: record {number} has offset {offset}")
    if here < after and data[here] == _NO_KEY:
        here += 1
    else:
        key, here = zigzag(data, here)
        here += max(key, 0)
    value, here = zigzag(data, here)
    here += max(value, 0)
    if here == after - 1 and data[here] == 0:
        return after, delta, 0, after
    headers, here = zigzag(data, here)
    if not 0 <= headers <= max(after - here, 0):
        raise BadBatch(f"at byte {at}: {headers} headers in {after - here} bytes")
    if not headers and here != after:
        raise BadBatch(f"at byte {at}: a record of {size} bytes, its parts have {here - body}")
    return after, delta, headers, here


def _headers(data: bytes, here: int, after: int, headers: int) -> Look[None]:
    """Headers that should end where their record does; BadBatch if they do not."""
    for place in range(2 * headers):
        length, here = zigzag(data, here)
        if length < 0 and place % 2 == 0:
            raise BadBatch(f"at byte {here}: a header whose key has {length} bytes")
        here += max(length, 0)
        if here > after:
            break
        if place % STEPS == STEPS - 1:
            yield
    if here != after:
        raise BadBatch(f"at byte {here}: the headers of a record should end at byte {after}")


def _layout(data: bytes, at: int) -> _Layout:
    """How a record is laid out that is known to be whole."""
    _, body = zigzag(data, at)
    _, number_at = zigzag(data, body + 1)
    _, here = zigzag(data, number_at)
    structure, number = [*range(body - at)], range(number_at - at, here - at)
    for _ in ("key", "value"):
        length, past = zigzag(data, here)
        structure += range(here - at, past - at)
        here = past + max(length, 0)
    headers, past = zigzag(data, here)
    structure += range(here - at, past - at)
    for _ in range(2 * headers):
        length, after = zigzag(data, past)
        structure += range(past - at, after - at)
        past = after + max(length, 0)
    return _Layout(range(body + 1 - at, number_at - at), number, structure)


def _alike(data: bytes, at: int, length: int, layout: _Layout, number: int, rows: int) -> bool:
    """Whether so many records from one on are laid out as the one before it, and have the numbers that follow."""
    end = at + rows * length
    for place in layout.structure:
        if data[at + place : end : length] != data[at - length + place : at - length + place + 1] * rows:
            return False
    last = len(layout.number) - 1
    if 2 * (number + rows - 1) >> 7 * (last + 1):
        return False
    for place, column in enumerate(layout.number):
        if data[at + column : end : length] != _numbers(number, rows, place, place == last):
            return False
    for column in layout.time[:-1]:
        if data[at + column : end : length].translate(None, _ASCII) != data[at + column : end : length]:
            return False
    return data[at + layout.time[-1] : end : length].isascii()


def _numbers(first: int, rows: int, place: int, last: bool) -> bytes:
    """One byte of the numbers from `first` on, as they are written, seven bits at a time."""
    more = 0 if last else 0x80
    if place == 0:
        return _FIRST_DIGITS[more][first % 64 : first % 64 + rows]
    column, shift = bytearray(), 7 * place - 1
    value = first >> shift
    while len(column) < rows:
        column += bytes([value & 0x7F | more]) * (((value + 1) << shift) - (first + len(column)))
        value += 1
    return bytes(column[:rows])


def _largest(data: bytes, at: int, length: int, layout: _Layout, rows: int) -> int:
    """The largest timestamp of records that are laid out alike, relative to the batch's."""
    columns = [data[at + place : at + rows * length : length] for place in layout.time]
    if columns[0].translate(None, _EVEN):
        return max(zigzag(bytes(row), 0)[0] for row in zip(*columns, strict=True))
    rest: Sequence[int] = range(rows)
    value = 0
    for column in reversed(columns):
        byte = max(column) if len(rest) == rows else max(column[row] for row in rest)
        value = value << 7 | byte & 0x7F
        if len(columns) > 1:
            rest = [row for row in rest if column[row] == byte]
    return value >> 1
