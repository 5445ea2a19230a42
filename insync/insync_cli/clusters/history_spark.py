"""`insync history --engine spark`: the same checks of files that are too large for one process."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.exits import Inconclusive, InputError, UsageError
from isr_anomalies import Claims
from isr_check.engine import Failed, Unavailable

if TYPE_CHECKING:
    from isr_anomalies import Anomaly
    from isr_pipeline.histories import Checked

SPARK = "spark"
ONLY = ("master", "workers", "out", "memory")
"""Options for this engine alone."""


def add_options(p: options.Parser) -> None:
    group = p.add_argument_group("large histories (docs/pipeline.md)")
    group.add_argument("--engine", choices=("local", SPARK), default="local", help="who checks (default local)")
    group.add_argument("--master", metavar="URL", help="spark://host:7077, sc://host; default: this machine alone")
    group.add_argument("--workers", type=options.positive, metavar="N", help="tasks at once on this machine")
    group.add_argument("--memory", type=options.size, metavar="SIZE", help="of Java, such as 2G")
    group.add_argument("--out", metavar="DIR", help="keep the tables of operations, anomalies, witnesses, availability")


def check(given: Namespace) -> None:
    """UsageError for options that say nothing without this engine."""
    for name in ONLY:
        if getattr(given, name) is not None and given.engine != SPARK:
            raise UsageError(f"--{name} is for --engine {SPARK}")


def checked(
    files: Sequence[Path], wanted: tuple[Anomaly, ...], claims: Callable[[Claims | None], Claims], given: Namespace
) -> list[Checked]:
    """All files, each a history of its own, in the same jobs."""
    from isr_pipeline import session

    for path in files:
        if path.suffix == ".edn":
            raise UsageError(f"{path}: Spark reads JSON lines and Parquet; --engine local reads EDN")
    out = cast("str | None", given.out)
    folder = terminal.make_folder(Path(out)) if out else None
    try:
        session.check()
        from isr_pipeline.histories import Unreadable, check_files
        from isr_pipeline.histories.tables import write

        workers, memory = cast("int | None", given.workers), cast("int | None", given.memory)
        try:
            with session.running(cast("str | None", given.master), workers=workers, memory=memory) as spark:
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
