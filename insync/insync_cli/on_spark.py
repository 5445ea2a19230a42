"""How verbs use Spark: its session, how far its tasks are, and each mistake as one sentence."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from insync_cli.exits import Inconclusive, UsageError
from insync_cli.progress import Tell, Ticker
from isr_check.engine import Failed, Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
"""The word for it in --engine."""


@contextmanager
def running(
    ticker: Ticker, master: str | None, workers: int | None, memory: int | None = None
) -> Generator[tuple[SparkSession, Tell]]:
    """A session, and what its jobs tell how many of their tasks are done. Its page is named once, where it has one."""
    from isr_pipeline import session

    try:
        session.check(master)
        session_of = session.running(master, workers=workers, memory=memory)
        with ticker.meanwhile("starting Spark") as tell, session_of as spark:
            ticker.name_page(session.page(spark))
            yield spark, tell
            tell("ending Spark", 0)
    except Unavailable as problem:
        raise UsageError(str(problem)) from None
    except Failed as problem:
        raise Inconclusive(str(problem)) from None
