"""Sweeps on Spark: the matrix is the one that processes of this machine make, and a failure is one sentence.

Without these, a matrix from a cluster could differ from the one that is published, cell by cell.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import sleep
from typing import cast

import pytest
from tests.support.sparks import spark

from insync_cli.main import main
from isr_check.engine import Failed
from isr_pipeline import session
from isr_pipeline.sweeps import sweep
from isr_report.matrix.grid import Matrix, read_matrix

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
SMALL = ["--design", "kafka-0.8", "--fault", "crash", "--quiet"]


def untimed(folder: Path) -> tuple[Matrix, dict[str, object]]:
    """The matrix and all files beside it, less how long each cell took and who explored it."""
    matrix = read_matrix(folder / "matrix.json")
    files: dict[str, object] = {}
    for path in sorted(folder.rglob("*.json")):
        table = cast("dict[str, object]", json.loads(path.read_text(encoding="utf-8")))
        if path.name == "run.json":
            stats = cast("dict[str, object]", table["stats"])
            table["stats"] = {name: stats[name] for name in ("distinct", "generated", "depth")}
        if path.name != "matrix.json":
            files[str(path.relative_to(folder))] = table
    for cell in matrix["cells"]:
        cell["seconds"] = 0
    return matrix, files


def test_the_matrix_is_the_same_as_by_processes(tmp_path: Path) -> None:
    spark()
    one, many = tmp_path / "one", tmp_path / "many"
    assert main(["matrix", *SMALL, "--workers", "1", "--out", str(one)]) == 0
    assert main(["matrix", *SMALL, "--engine", "spark", "--out", str(many)]) == 0
    local, large = untimed(one), untimed(many)
    assert large[0] == local[0]
    assert large[1].keys() == local[1].keys()
    for name, table in large[1].items():
        assert table == local[1][name], name
    verdicts = {p["verdict"] for cell in large[0]["cells"] for p in cell["promises"]}
    assert "VIOLATED" in verdicts
    assert len(verdicts) > 1


def test_a_session_on_another_master_is_not_taken_for_the_one_asked_for() -> None:
    """A test of a cluster once ran on this machine alone, and was green."""
    spark()
    asked = pytest.raises(
        Failed, match=r"this process has a session on local\[2\S*; end it before one on spark://nowhere:1"
    )
    with asked, session.running("spark://nowhere:1"):
        pass
    for same in (None, "local[2]", "local"):
        with session.running(same) as found:
            assert found is spark()


def test_answers_come_in_the_order_of_the_questions() -> None:
    assert sweep(spark(), str, range(20), most=3) == [str(n) for n in range(20)]
    assert sweep(spark(), str, list[int]()) == []


def test_while_tasks_run_it_is_told_how_many_are_done_and_the_job_has_a_name() -> None:
    heard: list[tuple[str, int, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        heard.append((what, done, total))

    sweep(spark(), sleep, [0.7] * 8, what="naps", tell=tell)
    assert heard
    assert {(what, total) for what, _, total in heard} == {("tasks: 8 naps", 8)}
    assert {done for _, done, _ in heard} & set(range(1, 8))
    assert spark().sparkContext.getLocalProperty("spark.job.description") == "insync: 8 naps"


def test_a_task_that_fails_says_its_last_line() -> None:
    with pytest.raises(Failed, match="invalid literal for int"):
        sweep(spark(), int, ["1", "x"])


def test_master_is_for_spark_alone(tmp_path: Path) -> None:
    assert main(["matrix", *SMALL, "--master", "local[1]", "--out", str(tmp_path)]) == 64
