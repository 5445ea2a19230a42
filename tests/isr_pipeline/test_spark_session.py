"""What is said when Spark cannot run here, and when what runs on it fails: one sentence that names what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from insync_cli import places
from insync_cli.main import main
from isr_check.engine import Unavailable
from isr_pipeline import session

pytestmark = pytest.mark.processes

CHECK = ["check", "kip-966", "--replicas", "2", "--engine", "spark", "--out", "out"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def a_java(folder: Path, version: str) -> None:
    """A program that says it is Java of this version."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)


def test_without_java_the_package_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert main(CHECK) == 64
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "there is none on the PATH (Debian: openjdk-17-jre-headless)" in said
    assert not (folder / "out" / "spark").exists()


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", "8"), ("11.0.22", "11"), ("nothing", "0")])
def test_java_that_is_too_old_is_refused(
    version: str, major: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_java(folder, version)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    with pytest.raises(Unavailable, match=rf"needs Java 17 or newer, and .*java is {major} \(Debian: "):
        session.java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_java_that_is_new_enough_is_taken(version: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_java(folder, version)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    assert session.java() == str(folder / "bin" / "java")


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "msgspec"])
def test_without_pyspark_the_extra_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name == missing else ModuleSpec(name, None)

    monkeypatch.setattr(session, "find_spec", found)
    assert main(CHECK) == 64
    assert f"needs {missing}, which is not installed: pip install 'insync[spark]'" in capsys.readouterr().err


def test_without_pyarrow_a_store_is_refused_and_a_path_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(_: str) -> None:
        """No module of any name."""

    monkeypatch.setattr(places, "find_spec", found)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["history", "s3://bucket/history.jsonl"]) == 64
    assert "s3:// needs pyarrow, which is not installed: pip install 'insync[spark]'" in capsys.readouterr().err
    (folder / "history.jsonl").write_text("", encoding="utf-8")
    assert main(["history", "history.jsonl", "--quiet"]) == main(["history", f"file://{folder}/history.jsonl"]) == 21


def test_spark_connect_needs_no_java_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    session.check("sc://host")
    with pytest.raises(Unavailable, match="needs Java"):
        session.check("spark://host:7077")


def test_a_server_of_spark_connect_that_does_not_answer_is_one_sentence() -> None:
    """In a process of its own: one in which a session runs already uses that."""
    asked = ["matrix", "--design", "kafka-0.8", "--fault", "crash", "--engine", "spark", "--quiet"]
    command = [sys.executable, "-m", "insync_cli.main", *asked, "--master", "sc://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 20
    assert done.stderr.count("\n") == 1
    assert "there is no session at sc://127.0.0.1:1: connection refused" in done.stderr


def test_the_engine_is_known_without_importing_what_it_needs() -> None:
    script = "import sys, isr_pipeline.explore; sys.exit(any(m in sys.modules for m in ('pyspark', 'pyarrow', 'py4j')))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--engine native --master local", "--master is for --engine spark"),
        ("--partitions 3", "--partitions is for --engine spark"),
        ("--engine spark --graph", "--graph is for --engine spark with --out DIR or --store URL"),
        ("--store s3://bucket/run", "--store is for --engine spark"),
        ("--engine spark --store ftp://host/run", "ftp://host/run is no store; there are s3://, gs://"),
        ("--engine reference --resume out", "--resume needs --engine native or spark"),
        ("--engine spark --property healthy-partition-commits", "is a liveness property, and Spark decides none"),
        ("--engine spark --partitions 5000", "5000 partitions are too many; 4096 at most"),
    ],
)
def test_options_that_mean_nothing_together(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "kip-966", "--replicas", "2", *given.split()]) == 64
    assert said in capsys.readouterr().err


def test_resuming_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CHECK[:-2], "--resume", "nowhere"]) == 65
    says = capsys.readouterr().err
    assert "there is no exploration by Spark in " in says
    assert says.endswith("nowhere/spark\n")


FROM_A_TASK = """\
Job aborted due to stage failure: Task 1 in stage 4.0 failed 4 times, most recent failure: Lost task 1.3: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
  File "tasks.py", line 7, in expand
    raise ValueError("what is wrong")
ValueError: what is wrong

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Driver stacktrace:"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FROM_A_TASK, "ValueError: what is wrong"),
        ("Oops: Python worker exited unexpectedly (crashed)\n\tat x", "Python worker exited unexpectedly"),
        ("An error occurred while calling o1.x.\n: java.lang.Oops: not here\n\tat y", "java.lang.Oops: not here"),
        ("[PATH_NOT_FOUND] Path does not exist\nand more", "[PATH_NOT_FOUND] Path does not exist"),
        ("", "no reason was given"),
    ],
)  # fmt: skip
def test_of_what_failed_the_last_line_is_told(text: str, line: str) -> None:
    assert session.last_line(text) == line


def test_the_code_that_executors_get_is_all_of_it_and_nothing_else() -> None:
    code = session.own_code()
    assert {"isr_pipeline/tasks.py", "isr_check/native/kernels.py", "isr_lang/__init__.py", "isr_model.py"} <= set(code)
    assert all(name.startswith(("isr_", "insync_cli/")) and name.endswith(".py") for name in code)
    assert Path(str(session.__file__)) == code["isr_pipeline/session.py"]


@pytest.mark.parametrize("master", ["spark://host:7077", "sc://host", "yarn", "k8s://https://host"])
def test_what_is_no_cluster_is_this_machine_alone(master: str) -> None:
    assert not session.alone(master)
    assert session.alone(None)
    assert session.alone("local[2]")
