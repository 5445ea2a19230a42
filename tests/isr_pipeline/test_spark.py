"""Exploration by Spark gives the same answers as by one process, whichever of its processes is killed.

Without these, what works in one process (test_spark_buckets) could fail or miscount once Spark ships the tasks.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from tests.support.expected import outcome, table
from tests.support.models import copies, two_phase_commit
from tests.support.sparks import answer, require_spark, spark

from isr_check import native
from isr_check.engine import Failed, Limits, Progress
from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_pipeline import store
from isr_pipeline.explore import explore
from isr_pipeline.locations import Location
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
FIVE = Instance(two_phase_commit.DESIGN, {"rms": 5})
INSYNC = str(Path(sys.executable).with_name("insync"))
VIOLATED = next((run, said) for run, said, _ in table() if len(said.violated) > 3 and said.distinct > 10_000)


@pytest.mark.parametrize(
    "partitions", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(7, marks=pytest.mark.slow)]
)
def test_spark_says_what_is_expected_of_every_engine(partitions: int) -> None:
    spark()
    run, said = VIOLATED
    found = explore(run.instance(), partitions=partitions, handover=1250)
    assert outcome(found) == said
    assert answer(found) == answer(native.explore(run.instance()))


def test_symmetry_and_paths_by_tasks() -> None:
    spark()
    instance = Instance(copies.DESIGN, {"nodes": 3, "length": 1, "gossip": True})
    found = explore(instance, partitions=2, handover=30, symmetry=True)
    assert answer(found) == answer(native.explore(instance, symmetry=True))
    assert any(f.path for f in found.findings)


def descendants(process: int) -> list[int]:
    """The processes that it and its children started."""
    parents = dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    children = [child for child, parent in parents.items() if parent == process]
    return [*children, *(d for c in children for d in descendants(c))]


def python_workers() -> list[int]:
    """Spark's processes that run Python tasks: Java starts one process, and that starts these."""

    def command(process: int) -> str:
        try:
            return Path(f"/proc/{process}/cmdline").read_text()
        except OSError:
            return ""

    everybody = [p for p in descendants(os.getpid()) if "pyspark.daemon" in command(p)]
    return [p for p in everybody if not descendants(p)]


def test_workers_killed_in_mid_run_cost_time_and_nothing_else(tmp_path: Path) -> None:
    spark()
    killed = list[int]()

    def kill(at: Progress) -> None:
        if at.depth in (5, 8) and len(killed) < at.depth - 3:
            for worker in python_workers():
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)

    found = explore(FIVE, (), None, kill, folder=tmp_path, partitions=2, handover=100)
    assert len(killed) >= 2
    assert answer(found) == answer(native.explore(FIVE))


def test_asked_to_stop_while_spark_is_at_work(tmp_path: Path) -> None:
    spark()
    at = list[Progress]()
    limits = Limits(stop=lambda: bool(at) and at[-1].depth >= 6)
    found = explore(FIVE, (), limits, at.append, folder=tmp_path, partitions=2, handover=100)
    assert not found.complete
    assert len(found.levels) >= 6
    whole = explore(FIVE, folder=tmp_path, resume=True, handover=1 << 60)
    assert answer(whole) == answer(native.explore(FIVE))


def test_a_task_that_fails_says_one_line(tmp_path: Path) -> None:
    spark()
    explore(FIVE, (), Limits(max_states=1000), folder=tmp_path, partitions=1, handover=1 << 60)
    last = store.Store(Location.of(tmp_path)).commits()[-1]
    file = Path(last.file(Location.of(tmp_path), 0).path)
    content = bytearray(file.read_bytes())
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 255
    file.write_bytes(content)
    with pytest.raises(Failed) as failed:
        explore(FIVE, folder=tmp_path, resume=True, handover=0)
    assert str(failed.value).startswith("isr_check.engine.BadCheckpoint: ")
    assert "\n" not in str(failed.value)
    assert "was changed or damaged after it was written" in str(failed.value)


def test_the_graph_answers_questions_in_sql(tmp_path: Path) -> None:
    """The same numbers as from the reference evaluator's states and steps."""
    session = spark()
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2, "isr_changes": 1, "crashes": 0, "min_insync": 2})
    found = explore(instance, ("type-ok",), folder=tmp_path, partitions=2, handover=200, graph=True)
    evaluator, names = Evaluator(instance), [v.name for v in instance.variables]
    todo = [state for _, state in evaluator.initial_states()]
    states, taken = dict.fromkeys(todo), Counter[str]()
    while todo:
        for action, _, successor in evaluator.successors(todo.pop()):
            taken[instance.actions[action].name] += 1
            if successor not in states:
                states[successor] = None
                todo.append(successor)
    at = {name: names.index(name) for name in ("controller_epoch", "controller_isr", "leader_epoch")}
    few = Counter(s[at["controller_epoch"]] for s in states if bin(int(str(s[at["controller_isr"]]))).count("1") < 2)
    for name in ("states", "edges"):
        session.read.parquet(str(tmp_path / "graph" / name)).createOrReplaceTempView(name)
    asked = "SELECT controller_epoch, count(*) FROM states WHERE size(controller_isr) < 2 GROUP BY controller_epoch"
    assert {row[0]: row[1] for row in session.sql(asked).collect()} == few
    asked = (
        "SELECT action, count(*) FROM edges JOIN states a ON a.id = source JOIN states b ON b.id = target GROUP BY 1"
    )
    assert {row[0]: row[1] for row in session.sql(asked).collect()} == taken
    asked = "SELECT count(*) FROM states WHERE leader_epoch['r2'] > 0"
    epochs = [s[at["leader_epoch"]] for s in states]
    at_least_one = [cast("tuple[int, ...]", e)[1] > 0 for e in epochs]
    assert session.sql(asked).collect()[0][0] == sum(at_least_one)
    assert found.distinct == len(states)
    asked = ";".join(re.findall(r"```sql\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL))
    answers = [session.sql(question).collect() for question in asked.split(";") if question.strip()]
    assert len(answers) > 3
    assert answers[0]  # the others need not find anything in a model this small; they are understood


# Other processes

RUN = "kip-966 --replicas 2 --epochs 1 --isr-changes 3 --engine spark --partitions 2 --handover 300 --quiet"


def expected_run() -> dict[str, object]:
    found = native.explore(Instance(DESIGNS["kip-966"], {"replicas": 2, "isr_changes": 3}))
    return {
        "distinct": found.distinct,
        "generated": found.generated,
        "depth": found.depth,
        "taken": found.steps_by_action,
    }


def said(folder: Path) -> dict[str, object]:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    stats = {name: run["stats"][name] for name in ("distinct", "generated", "depth")}
    return {**stats, "taken": run["coverage"]["actions"]}


def test_the_driver_killed_in_mid_run_then_resume(tmp_path: Path) -> None:
    require_spark()
    driver = subprocess.Popen([INSYNC, "check", *RUN.split(), "--out", "out"], cwd=tmp_path)
    commits = tmp_path / "out" / "spark" / "commits"
    while not (commits / "0007.json").exists():
        assert driver.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    children = descendants(driver.pid)
    driver.kill()
    driver.wait()
    wait_until_gone(children)
    assert len(list(commits.glob("*.json"))) < 16
    resumed = subprocess.run(
        [INSYNC, "check", *RUN.replace("300", "1000000").split(), "--resume", "out"], cwd=tmp_path, check=False
    )
    assert resumed.returncode == 23  # one record cannot diverge
    assert said(tmp_path / "out") == expected_run()


def wait_until_gone(processes: list[int]) -> None:
    """Java ends when who started it does, and its workers with it."""
    until = time.monotonic() + 120
    while any(Path(f"/proc/{p}").exists() and "Z (" not in state_of(p) for p in processes):
        assert time.monotonic() < until, "processes of Spark were left over"
        time.sleep(0.1)


def state_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/status").read_text().partition("State:")[2].strip()
    except OSError:
        return "Z ("
