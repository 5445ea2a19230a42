"""The rows that tasks exchange (a history, a key within it, and a payload), and the tables that they keep in files.

Thousands of operations travel as one payload, so the price that Spark takes for a row is paid once for all of them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from isr_anomalies.read_json import paused_garbage_collection
from isr_pipeline.locations import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
Numbers = NDArray[np.int64]
Column = NDArray[np.int64] | NDArray[np.object_]

FEW, PER_TASK = 16, 4
"""More parts than FEW are divided PER_TASK to a task, because every task costs some hundredths of a second."""
FULL = 8 << 20
"""The payloads of a batch, in bytes."""
DDL = "history int, key string, payload binary"


def schema(**types: pa.DataType) -> pa.Schema:
    """The schema of a table with these columns."""
    return pa.schema(list(types.items()))


SCHEMA = schema(history=pa.int32(), key=pa.string(), payload=pa.binary())


class Row(NamedTuple):
    history: int
    key: str
    payload: bytes


class _Table(Protocol):
    """The part of the interface of pyarrow.Table that is used here."""

    column_names: list[str]

    def column(self, i: str) -> _Values: ...


class _Values(Protocol):
    def to_pylist(self) -> list[object]: ...
    def to_numpy(self, zero_copy_only: bool = True) -> Column: ...


class _Groups(Protocol):
    def applyInArrow(self, func: Callable[[pa.Table], pa.Table], schema: str) -> DataFrame: ...


_read_table = cast("Callable[..., _Table]", vars(pq)["read_table"])
_write_table = cast("Callable[..., None]", vars(pq)["write_table"])
_from_pydict = cast("Callable[..., pa.Table]", pa.Table.from_pydict)  # pyright: ignore[reportUnknownMemberType]


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table with SCHEMA, which all tasks exchange."""
    histories, keys, payloads = tuple(zip(*rows, strict=True)) or ((), (), ())
    return _from_pydict({"history": histories, "key": keys, "payload": payloads}, schema=SCHEMA)


def payloads(group: pa.Table) -> tuple[int, str, list[bytes]]:
    """The history and the key that all rows of a group share, and their payloads."""
    given = cast("_Table", group)
    history, key = given.column("history").to_pylist()[0], given.column("key").to_pylist()[0]
    return cast("int", history), cast("str", key), cast("list[bytes]", given.column("payload").to_pylist())


def numbers(batch: pa.RecordBatch, columns: int) -> list[Numbers]:
    """The first `columns` columns of a batch, which must be numbers."""
    return [cast("_Values", batch.column(n)).to_numpy(zero_copy_only=False).astype(np.int64) for n in range(columns)]


@attrs.frozen
class _Each(Generic[T]):
    work: Callable[[T], Iterator[Row]]
    parts: tuple[T, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in cast("list[int]", cast("_Values", batch.column(0)).to_pylist()):
                with paused_garbage_collection():
                    for rows in _together(self.work(self.parts[number])):
                        yield from table(rows).to_batches()


def _together(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """As many rows at a time as have FULL bytes, because every batch has its price, however small it is."""
    some, size = list[Row](), 0
    for row in rows:
        some.append(row)
        size += len(row.payload)
        if size >= FULL:
            yield some
            some, size = [], 0
    if some:
        yield some


def each(spark: SparkSession, work: Callable[[T], Iterator[Row]], parts: Sequence[T]) -> DataFrame:
    """Run `work` on each part, and return its rows."""
    return part_numbers(spark, len(parts)).mapInArrow(_Each(work, tuple(parts)), DDL)


def part_numbers(spark: SparkSession, parts: int) -> DataFrame:
    """The numbers of this many parts, divided among as many tasks as these are worth."""
    return spark.range(0, parts, 1, max(1, min(parts, FEW), parts // PER_TASK))


@attrs.frozen
class _GroupedFrame:
    work: Callable[[int, str, list[bytes]], Iterator[Row]]

    def __call__(self, group: pa.Table) -> pa.Table:
        with paused_garbage_collection():
            return table(self.work(*payloads(group)))


def each_group(frame: DataFrame, work: Callable[[int, str, list[bytes]], Iterator[Row]]) -> DataFrame:
    """Run `work` on the payloads of each history and key, and return its rows."""
    task = _GroupedFrame(work)

    def group(of: pa.Table) -> pa.Table:
        return task(of)

    return cast("_Groups", frame.groupBy("history", "key")).applyInArrow(group, DDL)


def collect_rows(frame: DataFrame) -> list[Row]:
    return [Row(row[0], row[1], bytes(row[2])) for row in frame.collect()]


def file_of(folder: Location, kind: str, history: int, key: str) -> Location:
    """The file of the table of a key. Names of partitions may have any characters and any length."""
    name = quote(key, safe="")
    if len(name) > 100:
        from hashlib import sha256

        name = sha256(key.encode()).hexdigest()
    return folder / kind / f"{history:05}-{name}.parquet"


def keep(file: Location, columns: Mapping[str, object], schema: pa.Schema) -> None:
    """Write a table completely or not at all, because a task may be done twice, or half."""
    content = io.BytesIO()
    _write_table(_from_pydict(columns, schema=schema), content, compression="zstd")
    file.put(content.getvalue())


def read_columns(file: Location, names: Sequence[str]) -> dict[str, Column]:
    """Read these columns of a table that `keep` has written."""
    with file.open_for_reading() as stream:
        found = _read_table(stream, columns=list(names), partitioning=None)
    return {name: found.column(name).to_numpy(False) for name in names}


def rows_of(file: Location) -> Iterator[Row]:
    """The rows of a table with SCHEMA that `keep` has written."""
    at = read_columns(file, SCHEMA.names)
    for history, key, payload in zip(*(at[name].tolist() for name in SCHEMA.names), strict=True):
        yield Row(history, key, payload)
