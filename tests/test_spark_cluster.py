"""A standalone cluster of processes on this machine: a master, two workers, and executors that share only files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from tests.sparks import require_spark

from isr_check import native
from isr_designs import DESIGNS
from isr_lang import Instance
from isr_pipeline import session
from isr_pipeline.explore import QUICKLY

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
SPARK = Path(pyspark.__file__).parent
INSYNC = str(Path(sys.executable).with_name("insync"))
PATIENCE = 300.0
"""Seconds until a process must have said what is waited for, on a machine that has other things to do."""


def started(closing: ExitStack, folder: Path, name: str, *arguments: str) -> Path:
    """A process of the cluster, which ends with the test; returns the file with what it says."""
    jars = str(SPARK / "jars" / "*")
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    main = f"org.apache.spark.deploy.{name}.{name.capitalize()}"
    command = [session.java(), *QUICKLY.split(), "-Xmx256m", "-cp", jars, main, *arguments, "--webui-port", "0"]
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=said, stderr=said)
    closing.callback(process.wait)
    closing.callback(process.terminate)
    return log


def environment() -> dict[str, str]:
    """Everybody is on this machine alone; a worker must be told where Spark is, and for which Scala it was made."""
    scala = next((SPARK / "jars").glob("scala-library-*.jar")).stem.removeprefix("scala-library-").rpartition(".")[0]
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_PUBLIC_DNS": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **here, "SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": scala}


def found_in(log: Path, pattern: str) -> str:
    until = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))):
        assert time.monotonic() < until, log.read_text(encoding="utf-8", errors="replace")
        time.sleep(0.1)
    return found[0]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with two workers of one core each."""
    require_spark()
    with ExitStack() as closing:
        log = started(closing, tmp_path, "master", "--host", "127.0.0.1", "--port", "0")
        url = found_in(log, r"spark://127\.0\.0\.1:\d+")
        each = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), url]
        workers = [started(closing, tmp_path, "worker", *each) for _ in range(2)]
        for worker in workers:
            found_in(worker, "Successfully registered with master")
        yield url


def test_two_executors_say_what_the_native_engine_says(master: str, tmp_path: Path) -> None:
    run = f"kip-966 --replicas 2 --engine spark --master {master} --partitions 2 --handover 700 --memory 512M --quiet"
    ended = subprocess.run(
        [INSYNC, "check", *run.split(), "--out", "out"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    found = native.explore(Instance(DESIGNS["kip-966"], {"replicas": 2}))
    assert (said["stats"]["distinct"], said["stats"]["generated"]) == (found.distinct, found.generated)
    assert said["coverage"]["actions"] == found.taken
    traced = {line["name"]: line["depth"] for line in said["properties"] if line["depth"] is not None}
    assert traced == {f.name: len(f.path.steps) for f in found.findings if f.path}
    executors = {path.parent.name for path in (tmp_path / "work").glob("app-*/*/stderr")}
    assert len(executors) == 2
