"""`insync history --engine spark`: the same checks of files that are too large for one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import on_spark, places, terminal
from insync_cli.exits import InputError, UsageError
from insync_cli.options import choice, option, size, workers_at_most
from insync_cli.progress import Ticker
from isr_anomalies import Claims
from isr_pipeline import session

if TYPE_CHECKING:
    from isr_anomalies import Anomaly
    from isr_pipeline.histories import CheckedHistory
    from isr_pipeline.locations import Location


@attrs.frozen(kw_only=True)
class OnSpark:
    """For files that are too large for one process."""

    engine: str = choice(("local", on_spark.SPARK), "who checks", "local")
    master: str | None = option("URL", "spark://host:7077, sc://host; without it, this machine alone", str)
    workers: int | None = option("N", "tasks at once on this machine", workers_at_most)
    memory: int | None = option("SIZE", "of Java, such as 2G", size)
    out: Path | Location | None = option(
        "DIR", "keep tables of operations, anomalies, witnesses, availability; may be s3://...", places.place
    )


def check(spark_options: OnSpark) -> None:
    """UsageError for options that say nothing without this engine, and for a cluster without a place for its files."""
    only = {
        "master": spark_options.master,
        "workers": spark_options.workers,
        "out": spark_options.out,
        "memory": spark_options.memory,
    }
    for name, value in only.items():
        if value is not None and spark_options.engine != on_spark.SPARK:
            raise UsageError(f"--{name} is for --engine {on_spark.SPARK}")
    if spark_options.out is None and not session.alone(spark_options.master):
        raise UsageError(
            "--master needs --out, where executors leave files for each other: a store such as s3://bucket/prefix, "
            "or a folder that all of them have"
        )


def check_histories(
    files: Sequence[Path | Location],
    anomalies: tuple[Anomaly, ...],
    claims: Callable[[Claims | None], Claims],
    spark_options: OnSpark,
    ticker: Ticker,
) -> list[CheckedHistory]:
    """All files, each a history of its own, in the same jobs."""
    for path in files:
        if places.suffix(path) == ".edn":
            raise UsageError(f"{path}: Spark reads JSON lines and Parquet; --engine local reads EDN")
    folder = places.make_folder(spark_options.out) if spark_options.out is not None else None
    try:
        with on_spark.running(ticker, spark_options.master, spark_options.workers, spark_options.memory) as (
            spark,
            tell,
        ):
            from isr_pipeline.histories import Unreadable, check_files
            from isr_pipeline.histories.tables import write
            from isr_pipeline.locations import Location, StoreRefused

            try:
                results = check_files(spark, files, folder, anomalies, claims, tell=tell)
                if folder is not None:
                    write(Location.of(folder), results)
            except (Unreadable, StoreRefused) as problem:
                raise InputError(str(problem)) from None
    except OSError as problem:
        raise InputError(f"cannot read {problem.filename}: {terminal.reason(problem)}") from None
    return results
