"""`insync history --engine spark`: the same checks of files that are too large for one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from insync_cli import terminal
from insync_cli.exits import Inconclusive, InputError, UsageError
from insync_cli.options import choice, option, size, workers_at_most
from isr_anomalies import Claims
from isr_check.engine import Failed, Unavailable

if TYPE_CHECKING:
    from isr_anomalies import Anomaly
    from isr_pipeline.histories import Checked

SPARK = "spark"


@attrs.frozen(kw_only=True)
class OnSpark:
    """For files that are too large for one process."""

    engine: str = choice(("local", SPARK), "who checks", "local")
    master: str | None = option("URL", "spark://host:7077, sc://host; without it, this machine alone", str)
    workers: int | None = option("N", "tasks at once on this machine", workers_at_most)
    memory: int | None = option("SIZE", "of Java, such as 2G", size)
    out: Path | None = option("DIR", "keep the tables of operations, anomalies, witnesses, availability", Path)


def check(given: OnSpark) -> None:
    """UsageError for options that say nothing without this engine."""
    only = {"master": given.master, "workers": given.workers, "out": given.out, "memory": given.memory}
    for name, value in only.items():
        if value is not None and given.engine != SPARK:
            raise UsageError(f"--{name} is for --engine {SPARK}")


def checked(
    files: Sequence[Path], wanted: tuple[Anomaly, ...], claims: Callable[[Claims | None], Claims], given: OnSpark
) -> list[Checked]:
    """All files, each a history of its own, in the same jobs."""
    from isr_pipeline import session

    for path in files:
        if path.suffix == ".edn":
            raise UsageError(f"{path}: Spark reads JSON lines and Parquet; --engine local reads EDN")
    folder = terminal.make_folder(given.out) if given.out else None
    try:
        session.check()
        from isr_pipeline.histories import Unreadable, check_files
        from isr_pipeline.histories.tables import write

        try:
            with session.running(given.master, workers=given.workers, memory=given.memory) as spark:
                found = check_files(spark, files, folder, wanted, claims)
        except Unreadable as problem:
            raise InputError(str(problem)) from None
        if folder is not None:
            write(folder, found)
    except Unavailable as problem:
        raise UsageError(str(problem)) from None
    except Failed as problem:
        raise Inconclusive(str(problem)) from None
    except OSError as problem:
        raise InputError(f"cannot read {problem.filename}: {terminal.reason(problem)}") from None
    return found
