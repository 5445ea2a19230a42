"""No process of ours runs a module of the folder in which somebody happens to stand.

Python puts that folder first where a module is run as a program (-m, -c), so a file called `json.py` there would be run
in place of Python's. Each process is started in a folder of such traps, of which none may be sprung. Without this,
whoever may write into a folder could run what he likes as whoever starts a cluster there.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.sparks import require_spark
from tests.test_architecture import python_files

from isr_cluster.ports import free_ports

TOP = Path(__file__).resolve().parents[1]
ROOTS = ("spec", "engines", "impl", "clusters", "refinement", "counterexamples", "pipeline", "insync", "bench")
OTHERS = ("attrs", "immutables", "kio", "cattrs", "numpy", "pyarrow", "pyspark", "cloudpickle", "py4j", "sitecustomize")


def unsafe_commands(source: str) -> list[int]:
    """The lines of lists and tuples in which our own Python is started without -P."""
    lines: list[int] = []
    for node in ast.walk(ast.parse(source)):
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        for word, after in pairwise(words):
            starts = isinstance(word, ast.Attribute) and word.attr == "executable"
            if starts and not (isinstance(after, ast.Constant) and after.value == "-P"):
                lines.append(word.lineno)
    return lines


def test_every_python_that_is_started_is_told_not_to_look_into_the_current_folder() -> None:
    assert unsafe_commands('run([sys.executable, "-m", "x"])') == [1]
    assert unsafe_commands('run([sys.executable, "-P", "-m", "x"])') == []
    found = {str(path): unsafe_commands(path.read_text(encoding="utf-8")) for path in python_files(*ROOTS)}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.fixture
def traps(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file for each module of Python's, of ours and of libraries; each notes that it was run."""
    folder, sprung = tmp_path / "traps", tmp_path / "sprung"
    folder.mkdir()
    ours = {path.name for root in ROOTS for path in (TOP / root).glob("*/") if path.name.isidentifier()}
    for name in sorted({*sys.stdlib_module_names, *ours, *OTHERS}):
        note = f"open({str(sprung)!r}, 'a').write({name!r} + chr(10))\nraise SystemExit({name!r})\n"
        (folder / f"{name}.py").write_text(note, encoding="utf-8")
    yield folder
    assert not sprung.exists(), sprung.read_text(encoding="utf-8").split()


def program(folder: Path, module: str) -> list[str]:
    """What runs a module as a console script does: the current folder is not looked into, and nobody says so to it."""
    path = folder / f"run_{module.rpartition('.')[2]}.py"
    path.write_text(f"import runpy\nrunpy.run_module({module!r}, run_name='__main__')\n", encoding="utf-8")
    return [sys.executable, str(path)]


def environment() -> dict[str, str]:
    """Where our packages are; nothing else says that the current folder is not to be looked into."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return {**kept, "PYTHONPATH": os.pathsep.join(str(TOP / root) for root in ROOTS)}


@pytest.mark.processes
@pytest.mark.long
def test_the_traps_are_sprung_where_nothing_is_done_against_them(tmp_path: Path) -> None:
    """Without this the others could pass in a folder that harms nobody."""
    (tmp_path / "random.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    (tmp_path / "isr_broker.py").write_text("raise SystemExit(4)\n", encoding="utf-8")
    for words, code in ((["-c", "import random"], 3), (["-m", "isr_broker"], 4), (["-P", "-c", "import random"], 0)):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment(), check=False)
        assert done.returncode == code


TOPICS = """\
Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:
"""


@pytest.mark.processes
@pytest.mark.long
def test_nothing_is_left_in_the_folder_of_who_only_asks(tmp_path: Path) -> None:
    """It was a folder `.hypothesis`: the codec imports hypothesis where it is installed."""
    topics, folder = tmp_path / "topics.txt", tmp_path / "empty"
    topics.write_text(TOPICS, encoding="utf-8")
    folder.mkdir()
    asked = ["--describe", str(topics), "--kafka", "4.4", "--elr", "on"]
    for words in (["drill", *asked, "stop 1"], ["audit", *asked, "--brokers"], ["topics", "--help"]):
        command = [*program(tmp_path, "insync_cli.main"), *words]
        subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=True)
        assert list(folder.iterdir()) == []
    subprocess.run([sys.executable, "-c", "import kio.static.primitive"], cwd=folder, env=environment(), check=True)
    assert [path.name for path in folder.iterdir()] == [".hypothesis"]


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_a_cluster_comes_up_in_a_folder_of_traps(traps: Path) -> None:
    port, report = free_ports(2)[0], traps.parent / "up.json"
    words = ["cluster", "up", "--brokers", "2", "--data", "data", "--base-port", str(port), "--json", str(report)]
    command = [*program(traps.parent, "insync_cli.main"), *words]
    process = subprocess.Popen(
        command, cwd=traps, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    end = time.monotonic() + 60
    while not report.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert len(json.loads(report.read_text(encoding="utf-8"))["brokers"]) == 2


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_real_broker_processes_are_driven_in_a_folder_of_traps(traps: Path) -> None:
    sut = shlex.join(program(traps.parent, "isr_processes.process_sut"))
    bounds = ["--replicas", "2", "--min-insync", "1", "--sample", "1", "--longest", "3", "--patience", "500"]
    command = [*program(traps.parent, "insync_cli.main"), "conform", "--sut", sut, *bounds, "--json", "-"]
    done = subprocess.run(command, cwd=traps, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["steps"] >= 3


@pytest.mark.spark
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_sparks_workers_run_in_a_folder_of_traps(traps: Path) -> None:
    require_spark()
    path = traps.parent / "adds.py"
    path.write_text(
        "from isr_pipeline import session\n"
        "spark = session.start('local[1]', {'spark.ui.enabled': 'false'})\n"
        "print(spark.sparkContext.parallelize([1, 2]).map(lambda x: x + 1).collect())\n"
        "session.stop(spark)\n",
        encoding="utf-8",
    )
    command = [sys.executable, str(path)]
    done = subprocess.run(command, cwd=traps, env=environment(), capture_output=True, text=True, check=False)
    assert done.stdout == "[2, 3]\n", done.stdout + done.stderr
