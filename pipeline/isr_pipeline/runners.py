"""The runners of tasks: this process for small levels, Spark for large ones."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import attrs
import pyarrow as pa

from isr_pipeline import session
from isr_pipeline.arrow_rows import DDL, Answer, Batches, answers, as_numbers, parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

LOOK = 0.2
"""The seconds between two checks whether a Spark job is done, and whether to stop it."""
FOR_JOBS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32",
    **{f"spark.sql.{kind}.shuffleDependency.fileCleanup.enabled": "true" for kind in ("classic", "connect")},
}
"""Settings while a job runs. What it shuffles is removed from the executors' disks when it ends; otherwise that would
stay until Java's collector in the driver happens to run, and fill the disks level by level."""

Source = Callable[[int], Batches]
Sink = Callable[[Batches], Batches]


class Stopped(Exception):
    """The search was asked to stop while tasks were running; their work does not count."""


class Runner(Protocol):
    def shuffle(self, source: Source, parts: Sequence[int], sink: Sink, what: str) -> list[Answer]:
        """Run `source` for each of the parts, and `sink` on their rows; all rows of a bucket go to the same `sink`.

        `what` says in a few words for what.
        """
        ...

    def each(self, source: Source, parts: Sequence[int], what: str) -> list[Answer]:
        """Run `source` for each of the parts."""
        ...


class LocalRunner:
    """Runs tasks in this process, one after the other."""

    def shuffle(self, source: Source, parts: Sequence[int], sink: Sink, what: str) -> list[Answer]:
        return answers(sink(chain.from_iterable(map(source, parts))))

    def each(self, source: Source, parts: Sequence[int], what: str) -> list[Answer]:
        return answers(chain.from_iterable(map(source, parts)))


@attrs.frozen
class _Parts:
    """The function of a Spark task: it gets numbers of parts, and runs `source` for these parts."""

    source: Source
    parts: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Batches:
        _settle()
        for batch in batches:
            for number in parts(batch):
                yield from self.source(self.parts[number])


_settle_calls: list[bool] = []


def _settle() -> None:
    """Exempt all modules from the garbage collection that follows every task; done once in each process of Spark."""
    if not _settle_calls:
        _settle_calls.append(True)
        gc.collect()
        gc.freeze()


class SparkRunner:
    """Runs tasks in a Spark session, one job for each call; `stop` is asked while a job runs.

    Spark is asked to have a bucket's rows where its last ones were, since the bucket's visited set is there. What Spark
    heeds is where cached data are. So a table with a row for each bucket is cached, and each shuffle joined with it: a
    task goes to the executor that has the bucket's row, unless that one is gone or busy for longer than
    spark.locality.wait.
    """

    def __init__(self, spark: SparkSession, buckets: int, stop: Callable[[], bool], tick: Callable[[], None]) -> None:
        self.spark, self.buckets, self.stop, self.tick = spark, buckets, stop, tick
        self.homes: DataFrame | None = None

    def shuffle(self, source: Source, parts: Sequence[int], sink: Sink, what: str) -> list[Answer]:
        with self._job_settings():
            spread = self._task_rows(source, parts).repartitionById(self.buckets, "bucket")
            located = spread.join(self._homes(), "bucket").select("bucket", "kind", "payload")
            return self._collect_answers(located.mapInArrow(sink, DDL), what)

    def _homes(self) -> DataFrame:
        if self.homes is None:
            numbers = self.spark.range(0, self.buckets, 1, self.buckets).selectExpr("CAST(id AS int) AS bucket")
            self.homes = numbers.repartitionById(self.buckets, "bucket").persist()
            self.homes.count()
        return self.homes.hint("shuffle_hash")

    def each(self, source: Source, parts: Sequence[int], what: str) -> list[Answer]:
        with self._job_settings():
            return self._collect_answers(self._task_rows(source, parts), what)

    @contextmanager
    def _job_settings(self) -> Generator[None, None, None]:
        """The settings of a job hold from the first line of its plan on: Spark reads some of them there."""
        with session.plainly(), session.use_settings(self.spark, FOR_JOBS):
            yield

    def close(self) -> None:
        """Let go of what is cached for this search."""
        if self.homes is not None:
            with suppress(Exception):  # a session that has died has nothing cached
                self.homes.unpersist()

    def _task_rows(self, source: Source, parts: Sequence[int]) -> DataFrame:
        tasks = self.spark.range(0, len(parts), 1, len(parts))
        return tasks.mapInArrow(_Parts(source, tuple(parts)), DDL)

    def _collect_answers(self, frame: DataFrame, what: str) -> list[Answer]:
        def collect() -> list[Row]:
            session.describe(self.spark, what)
            return frame.collect()

        with ThreadPoolExecutor(1) as beside:
            job = beside.submit(collect)
            self._wait(job)
            found = job.result()
        return [(row[0], row[1], as_numbers(row[2])) for row in found]

    def _wait(self, job: Future[list[Row]]) -> None:
        while True:
            try:
                job.exception(timeout=LOOK)
                return
            except NotYet:
                self.tick()
                if self.stop():
                    self.spark.interruptAll()
                    raise Stopped from None
