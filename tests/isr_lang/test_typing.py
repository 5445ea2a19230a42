"""What the types can see, both type checkers see: tests/typing/mistakes.py is rejected line by line.

Nothing else in these files is rejected, so that a mistake cannot hide behind another message.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import cast

import pytest

from isr_lang import Design, Instance

pytestmark = pytest.mark.processes

HERE = Path(__file__).resolve().parents[1]
CASES = HERE / "typing"
Lines = dict[str, set[int]]


@pytest.fixture(scope="module")
def rejected_by_mypy() -> Lines:
    """The lines with an error, by name of the file."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(HERE.parent / "pyproject.toml")]
    files = sorted(map(str, CASES.glob("*.py")))
    run = subprocess.run(command + files, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: Lines = {}
    for file, line in re.findall(r"^(.+?):(\d+): error:", run.stdout, re.MULTILINE):
        found.setdefault(Path(file).name, set()).add(int(line))
    return found


@pytest.fixture(scope="module")
def rejected_by_pyright() -> Lines:
    """The lines with an error, by name of the file."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    run = subprocess.run([*command, "-p", str(CASES)], capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    report = json.loads(run.stdout[run.stdout.index("{") :])
    assert report["summary"]["filesAnalyzed"] == len(list(CASES.glob("*.py")))
    found: Lines = {}
    for diagnostic in cast("list[dict[str, object]]", report["generalDiagnostics"]):
        start = cast("dict[str, dict[str, int]]", diagnostic["range"])["start"]
        found.setdefault(Path(str(diagnostic["file"])).name, set()).add(start["line"] + 1)
    return found


def marked(*marks: str) -> set[int]:
    lines = (CASES / "mistakes.py").read_text(encoding="utf-8").splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith(tuple(f"  # {m}" for m in marks))}


def test_mypy_rejects_every_mistake_and_nothing_else(rejected_by_mypy: Lines) -> None:
    assert rejected_by_mypy == {"mistakes.py": marked("reject", "reject by mypy")}


def test_pyright_rejects_every_mistake_and_nothing_else(rejected_by_pyright: Lines) -> None:
    assert rejected_by_pyright == {"mistakes.py": marked("reject")}


def test_there_are_mistakes() -> None:
    assert len(marked("reject")) > 60
    assert len(marked("reject by mypy")) == 2


def test_what_the_checkers_accept_is_a_model() -> None:
    design = run_path(str(CASES / "accepted.py"))["DESIGN"]
    assert isinstance(design, Design)
    assert Instance(design).actions
