"""Sweeps: many independent questions as one Spark job, a task for each question."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

import attrs
import pyarrow as pa

from isr_pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Q = TypeVar("Q")
A = TypeVar("A")
DDL = "number long, answer binary"
SCHEMA = pa.schema(list({"number": cast("pa.DataType", pa.int64()), "answer": pa.binary()}.items()))


class _Numbers(Protocol):
    def to_pylist(self) -> list[int]: ...


_from_pydict = cast("Callable[..., pa.RecordBatch]", pa.RecordBatch.from_pydict)  # pyright: ignore[reportUnknownMemberType]


@attrs.frozen
class _Answering(Generic[Q, A]):
    work: Callable[[Q], A]
    questions: tuple[Q, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in cast("_Numbers", batch.column(0)).to_pylist():
                answer = pickle.dumps(self.work(self.questions[number]))
                yield _from_pydict({"number": [number], "answer": [answer]}, schema=SCHEMA)


def sweep(
    spark: SparkSession,
    work: Callable[[Q], A],
    questions: Sequence[Q],
    *,
    most: int = 1000,
    what: str = "questions",
    tell: session.Tell = session.silent,
) -> list[A]:
    """The answers of `work` to the questions, in their order, by at most `most` tasks. Failed if a task fails.

    `work`, questions and answers are pickled; a function of a module is pickled by its name. If an executor dies, its
    task is done again: whatever `work` writes must be the same the second time. `what` the questions are is the name of
    the job, and `tell` hears how many of its tasks are done.
    """
    if not questions:
        return []
    tasks = min(len(questions), most)
    with session.plainly(), session.watch_jobs(spark, f"{len(questions):,} {what}", tell):
        frame = spark.range(0, len(questions), 1, tasks).mapInArrow(_Answering(work, tuple(questions)), DDL)
        found = {int(row[0]): bytes(row[1]) for row in frame.collect()}
    return [cast("A", pickle.loads(found[number])) for number in range(len(questions))]
