"""For tests of what runs on Spark: Java or a skip, one session for each process of tests, and what is compared."""

from __future__ import annotations

import os

import attrs
import pytest
from pyspark.sql import SparkSession

from isr_check.engine import Exploration, Unavailable
from isr_pipeline import session
from isr_pipeline.explore import IN_MEMORY, SETTINGS


def require_spark() -> None:
    """Skip the calling test without Java; fail it under CI."""
    try:
        session.check()
    except Unavailable as problem:
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
        pytest.skip(str(problem))


FEW = {"spark.sql.shuffle.partitions": "2"}


def spark() -> SparkSession:
    """A session with two tasks at once, started by the first test that asks, ended with this process."""
    require_spark()
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    return session.start(session.local(2), {**session.SETTINGS, **session.LOCALLY, **SETTINGS, **IN_MEMORY, **FEW})


def answer(found: Exploration) -> Exploration:
    """All that an engine says, less how long it took."""
    return attrs.evolve(found, seconds=0)
