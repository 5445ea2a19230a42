"""A standalone cluster of processes on this machine: a master, two workers, and executors that share only files.

Without these, a task could depend on the driver's memory or modules, which executors on other machines do not have.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sparks import cluster, environment, require_spark

from isr_check import native
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1800)]
INSYNC = str(Path(sys.executable).with_name("insync"))


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with two workers of one core each."""
    require_spark()
    with cluster(tmp_path, 2) as url:
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
    assert ended.returncode == 23, ended.stderr  # one record cannot diverge
    said = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    found = native.explore(Instance(DESIGNS["kip-966"], said["bounds"]))
    assert (said["stats"]["distinct"], said["stats"]["generated"]) == (found.distinct, found.generated)
    assert said["coverage"]["actions"] == found.steps_by_action
    traced = {line["name"]: line["depth"] for line in said["properties"] if line["depth"] is not None}
    assert traced == {f.name: len(f.path.steps) for f in found.findings if f.path}
    executors = {path.parent.name for path in (tmp_path / "work").glob("app-*/*/stderr")}
    assert len(executors) == 2
