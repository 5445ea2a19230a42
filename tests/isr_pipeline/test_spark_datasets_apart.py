"""Histories, sweeps, traces and logs of brokers on a cluster that shares nothing but a store (support/apart.py).

Without these, a job could need a file that only one machine of a cluster has, or code that is installed on none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.support.apart import Apart
from tests.support.apart import apart as cluster_apart
from tests.support.broker_traces import simulate_traced, write_trace
from tests.support.histories import judged
from tests.support.planted_anomalies import PLANTED
from tests.support.random_histories import Log
from tests.support.sparks import none_running

from insync_cli.main import main
from isr_pipeline import session
from isr_pipeline.histories import check_files, chunks, jobs
from isr_pipeline.sweeps import sweep
from isr_pipeline.trace_replays import validate_folder

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1800)]

SMALL = ["--replicas", "2", "--records", "1", "--log", "1", "--epochs", "1", "--isr-changes", "1", "--crashes", "0"]
OWN = """
from isr_protocol.by_name import DESIGNS
MINE = DESIGNS["kip-966"].replacing("mine", "The same by another name.", because="It is a test.")
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """The cluster, with a session that all verbs use."""
    none_running()
    with cluster_apart(tmp_path_factory.mktemp("cluster")) as made, session.running(made.master):
        yield made


def active() -> SparkSession:
    found = SparkSession.getActiveSession()
    assert found is not None
    return found


def test_histories_are_judged_as_by_one_process(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    stories = [story().lines for name, story, _ in PLANTED if "cycle" in name or name == "lost-write"]
    stories += [Log(Random(seed)).run(100) for seed in range(2)]
    files = [apart.place(f"told/{number}.jsonl") for number in range(len(stories))]
    for file, lines in zip(files, stories, strict=True):
        file.put("\n".join(lines).encode())
    monkeypatch.setattr(chunks.chunks_of, "__defaults__", (3000,))  # so that pairs begin in one piece, end in another
    monkeypatch.setattr(jobs, "LINES_PER_BUCKET", 100)
    found = check_files(active(), files, apart.place("told-tables"))
    for one, lines in zip(found, stories, strict=True):
        assert one.answer == judged(lines), one.path
        assert one.quotes.items() <= dict(enumerate(lines, 1)).items()
    left = {name.split("/")[0] for name in apart.place("told-tables").files()}
    assert {"operations", "shares"} <= left


def test_the_verb_reads_and_writes_a_store(apart: Apart, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = PLANTED[2][1]().lines
    apart.place("verb/history.jsonl").put("\n".join(lines).encode())
    asked = ["history", apart.store("verb/history.jsonl"), "--engine", "spark", "--master", apart.master, "--quiet"]
    assert main(asked) == 64
    assert "--master needs --out, where executors leave files" in capsys.readouterr().err
    assert main([*asked, "--out", apart.store("verb/tables")]) == 12
    (tmp_path / "history.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert main(["history", str(tmp_path / "history.jsonl"), "--quiet"]) == 12
    said = [
        json.loads(text) for text in (apart.place("verb/history.json").read(), (tmp_path / "history.json").read_text())
    ]
    assert {**said[0], "command": "", "history": ""} == {**said[1], "command": "", "history": ""}
    kinds = {name.split("/")[0] for name in apart.place("verb/tables").files()}
    assert kinds == {"operations", "anomalies.parquet", "witnesses.parquet", "availability.parquet"}


def test_traces_of_a_design_of_ones_own_are_the_same_files(apart: Apart, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    asked = ["traces", "mine", "--design-file", str(tmp_path / "own.py"), *SMALL, "--count", "6", "--steps", "10"]
    asked += ["--parts", "2", "--quiet"]
    there = apart.place("traces")
    assert main([*asked, "--out", str(tmp_path / "here")]) == 0
    assert main([*asked, "--out", apart.store("traces"), "--engine", "spark", "--master", apart.master]) == 0
    names = sorted(str(file.relative_to(tmp_path / "here")) for file in tmp_path.glob("here/**/*") if file.is_file())
    assert len(names) == 6 + 2
    assert list(there.files()) == names
    assert all((there / name).read() == (tmp_path / "here" / name).read_bytes() for name in names)


def test_traces_are_replayed(apart: Apart) -> None:
    asked = ["traces", "kip-966", *SMALL, "--count", "4", "--steps", "10", "--parts", "2", "--replay", "--quiet"]
    assert main([*asked, "--out", apart.store("replays"), "--engine", "spark", "--master", apart.master]) == 0
    assert sorted(apart.place("replays/replayed").files()) == ["part-00000.parquet", "part-00001.parquet"]


def test_a_matrix(apart: Apart, tmp_path: Path) -> None:
    small = ["matrix", "--design", "kafka-0.8", "--fault", "crash", "--quiet"]
    assert main([*small, "--workers", "1", "--out", str(tmp_path)]) == 0
    assert main([*small, "--engine", "spark", "--master", apart.master, "--out", apart.store("matrix")]) == 0
    there = apart.place("matrix")
    assert list(there.files()) == sorted(str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file())
    made, here = (json.loads(text) for text in ((there / "matrix.json").read(), (tmp_path / "matrix.json").read_text()))
    for cell in (*made["cells"], *here["cells"]):
        del cell["seconds"]
    assert made == here


def test_folders_of_logs_are_validated(apart: Apart, tmp_path: Path) -> None:
    write_trace(tmp_path, simulate_traced(1))
    for run in ("one", "two"):
        for file in tmp_path.iterdir():
            (apart.place("logs") / run / file.name).put(file.read_bytes())
    (apart.place("logs") / "bad" / "1.1.jsonl").put(b"{\n")
    rows = sweep(active(), validate_folder, [apart.store(f"logs/{run}") for run in ("one", "two", "bad")])
    assert [row["verdict"] for row in rows] == ["accepted", "accepted", "bad"]
    assert rows[0] == {**validate_folder(str(tmp_path)), "folder": rows[0]["folder"]}
