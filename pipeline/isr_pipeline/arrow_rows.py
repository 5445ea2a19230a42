"""The rows of Arrow batches that tasks exchange: a bucket, and packed states for it or numbers about it.

A block of states is one value, so the price that Spark takes for a row is paid once for thousands of states. All
batches have the same schema, because Spark demands that of what a task yields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from isr_check.native.buffers import Numbers, Words

STATES, EXPANSION, FINDINGS, TIMES, REMAKES = 0, 1, 2, 3, 4
"""The kinds of rows: states for a bucket; counts of the expansion of a bucket; counts of its new states and the name of
their file; time spent; what a visited set that was made again had to read, and the nanoseconds that it took."""
_NAMES = {"bucket": pa.int32(), "kind": pa.int32(), "payload": pa.binary()}
SCHEMA = pa.schema([pa.field(name, type, nullable=False) for name, type in _NAMES.items()])
DDL = "bucket int not null, kind int not null, payload binary not null"
"""The schema of the rows, as Spark writes it."""
PIECE = 1 << 17
"""The most bytes of states in a row: what Java's collector still treats as an ordinary object."""

Batches = Iterator[pa.RecordBatch]
Answer = tuple[int, int, Numbers]
"""A row of numbers: its bucket, its kind, and the numbers."""


class _Value(Protocol):
    def as_buffer(self) -> bytes: ...


class _Column(Protocol):
    def __iter__(self) -> Iterator[_Value]: ...
    def to_pylist(self) -> list[int]: ...


_batch = cast("Callable[..., pa.RecordBatch]", pa.RecordBatch.from_arrays)  # pyright: ignore[reportUnknownMemberType]
_from_buffers = cast("Callable[..., object]", pa.Array.from_buffers)  # pyright: ignore[reportUnknownMemberType]
_buffer = cast("Callable[[object], object]", pa.py_buffer)


def numbers(bucket: int, kind: int, values: Iterable[int]) -> pa.RecordBatch:
    """A batch with one row of numbers."""
    payload = np.fromiter(values, dtype=np.int64).tobytes()
    return pa.RecordBatch.from_pylist([{"bucket": bucket, "kind": kind, "payload": payload}], schema=SCHEMA)


def states(sorted_states: Words, bounds: Numbers) -> pa.RecordBatch:
    """Rows with the states of each bucket, of at most PIECE bytes; those of bucket b begin at bounds[b]."""
    width = 8 * sorted_states.shape[1]
    step = max(1, PIECE // width)
    starts, owners = list[int](), list[int]()
    for owner in range(len(bounds) - 1):
        cuts = range(int(bounds[owner]), int(bounds[owner + 1]), step)
        starts += cuts
        owners += [owner] * len(cuts)
    offsets = np.array([*starts, bounds[-1]], dtype=np.int64) * width
    assert offsets[-1] < 1 << 31, "offsets have 32 bits"
    buffers = [None, _buffer(offsets.astype(np.int32)), _buffer(sorted_states)]
    payloads = _from_buffers(pa.binary(), len(owners), buffers)
    kinds = np.full(len(owners), STATES, dtype=np.int32)
    return _batch([pa.array(np.array(owners, dtype=np.int32)), pa.array(kinds), payloads], schema=SCHEMA)


def rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, memoryview]]:
    """Bucket, kind and payload of each row; nothing is copied."""
    buckets, kinds, payloads = (cast("_Column", batch.column(i)) for i in range(len(_NAMES)))
    for bucket, kind, payload in zip(buckets.to_pylist(), kinds.to_pylist(), payloads, strict=True):
        yield bucket, kind, memoryview(payload.as_buffer())


def answers(batches: Batches) -> list[Answer]:
    """The rows of numbers in these batches."""
    return [(b, kind, as_numbers(payload)) for batch in batches for b, kind, payload in rows(batch)]


def as_numbers(payload: bytes | bytearray | memoryview) -> Numbers:
    return np.frombuffer(payload, dtype=np.int64)


def as_states(payload: memoryview, words: int) -> Words:
    return np.frombuffer(payload, dtype=np.uint64).reshape(-1, words)


def parts(batch: pa.RecordBatch) -> list[int]:
    """The numbers in the first column of a batch of Spark's `range`."""
    return cast("_Column", batch.column(0)).to_pylist()
