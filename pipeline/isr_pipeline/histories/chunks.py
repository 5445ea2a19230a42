"""Files of a history in pieces that tasks read on their own: each knows the number of its first line.

A piece of JSON lines begins and ends at the end of a line; a piece of Parquet is one row group, each row a line.
Columns of Parquet are named as the fields of docs/history.md are; what is nested is JSON text, or nested as Parquet has
it. Files must be where every executor can read them: in a store, or in a folder that all of them see.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import BinaryIO, Protocol, cast

import attrs
import pyarrow.parquet as pq

from isr_anomalies import MalformedHistory
from isr_anomalies.read_json import parse_object
from isr_pipeline.histories.rows import Row
from isr_pipeline.locations import Location

SIZE = 16 << 20
"""The approximate size of a piece of JSON lines, in bytes."""
LOOK = 1 << 16
"""Bytes that are read at a time to find the end of a line."""
JSON_COLUMNS = frozenset({"records", "ops", "partitions", "rebalanced", "diverged", "unseen", "epochs", "settings"})
"""Columns whose values may be JSON text."""

Object = dict[str, object]


@attrs.frozen
class Chunk:
    """Bytes [begin, end) of a file, or its row group `begin`, of which `line` is the first."""

    history: int
    file: Location
    begin: int
    end: int
    line: int = 1
    lines: int = 0
    parquet: bool = False


class _Group(Protocol):
    num_rows: int


class _Meta(Protocol):
    num_row_groups: int

    def row_group(self, i: int) -> _Group: ...


class _Rows(Protocol):
    def to_pylist(self) -> list[Object]: ...


class _File(Protocol):
    metadata: _Meta

    def read_row_group(self, i: int) -> _Rows: ...


_parquet_file = cast("Callable[[BinaryIO], _File]", vars(pq)["ParquetFile"])


def chunks_of(history: int, place: Location, size: int = SIZE) -> list[Chunk]:
    """The pieces of a file, or of a folder of Parquet files as Spark writes it.

    Pieces of JSON lines have no line numbers yet, because tasks count their lines.
    """
    inside = [name for name in place.files() if name.endswith(".parquet")]
    if inside or place.path.endswith(".parquet"):
        names = sorted(inside, key=lambda name: name.split("/"))
        return _row_groups(history, [place / name for name in names] or [place])
    cuts = [0]
    with place.open_for_reading() as file:
        length = file.seek(0, os.SEEK_END)
        while cuts[-1] + size < length:
            cuts.append(_line_end(file, cuts[-1] + size - 1))
    if cuts[-1] < length or length == 0:
        cuts.append(length)
    return [Chunk(history, place, begin, end) for begin, end in pairwise(cuts)]


def _line_end(file: BinaryIO, at: int) -> int:
    """Where the line ends that has this byte."""
    file.seek(at)
    while block := file.read(LOOK):
        if (end := block.find(b"\n")) >= 0:
            return at + end + 1
        at += len(block)
    return at


def _row_groups(history: int, files: list[Location]) -> list[Chunk]:
    pieces: list[Chunk] = []
    line = 1
    for file in files:
        with file.open_for_reading() as stream:
            meta = _parquet_file(stream).metadata
        for group in range(meta.num_row_groups):
            rows = meta.row_group(group).num_rows
            pieces.append(Chunk(history, file, group, group + 1, line, rows, parquet=True))
            line += rows
    return pieces


def count(chunk: Chunk) -> Iterator[Row]:
    """The number of lines in a piece of JSON lines."""
    data = _bytes(chunk)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    yield Row(chunk.history, str(chunk.begin), lines.to_bytes(8, "little"))


def number_lines(chunks: list[Chunk], counts: dict[tuple[int, int], int]) -> list[Chunk]:
    """The pieces with the numbers of their first lines; `counts` has lines by history and begin of a piece."""
    pieces: list[Chunk] = []
    line: dict[int, int] = {}
    for chunk in chunks:
        if chunk.parquet:
            pieces.append(chunk)
        else:
            first, lines = line.get(chunk.history, 1), counts[chunk.history, chunk.begin]
            pieces.append(attrs.evolve(chunk, line=first, lines=lines))
            line[chunk.history] = first + lines
    return pieces


def _bytes(chunk: Chunk) -> bytes:
    with chunk.file.open_for_reading() as file:
        file.seek(chunk.begin)
        return file.read(chunk.end - chunk.begin)


def texts(chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Every line as text, with its number; Malformed if it is no text."""
    if chunk.parquet:
        for line, table in objects(chunk):
            yield line, json.dumps(table)
        return
    try:
        text = _bytes(chunk).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedHistory(0, "not text in UTF-8") from None
    yield from enumerate(text.split("\n"), chunk.line)


def objects(chunk: Chunk) -> Iterator[tuple[int, Object]]:
    """Every line that is not empty as an object, with its number; Malformed if it is none."""
    if not chunk.parquet:
        for line, text in texts(chunk):
            if text.strip():
                yield line, parse_object(line, text)
        return
    with chunk.file.open_for_reading() as stream:
        rows = _parquet_file(stream).read_row_group(chunk.begin).to_pylist()
    for line, row in enumerate(rows, chunk.line):
        yield line, {name: _unpack_cell(line, name, value) for name, value in row.items() if value is not None}


def _unpack_cell(line: int, name: str, value: object) -> object:
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise MalformedHistory(line, f"the column {name} is not JSON") from None
