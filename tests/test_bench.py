"""Every bench says how it is called, and refuses what it does not know, before it measures anything.

Without these a bench that cannot start is noticed only when somebody wants its figures.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"
BENCHES = sorted(path.name for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))

pytestmark = pytest.mark.long


def status(monkeypatch: pytest.MonkeyPatch, script: Path, word: str) -> object:
    """With which status a bench ends that has this word alone on its command line."""
    monkeypatch.setattr(sys, "argv", [str(script), word])
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    return end.value.code


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_says_how_it_is_called(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, BENCH / name, "--help") == 0
    assert capsys.readouterr().out.startswith(f"usage: {name}")


@pytest.mark.parametrize("name", ["engines.py", "spark.py"])
def test_a_part_that_a_bench_does_not_have_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, BENCH / name, "equalty") == 2
    assert "'equalty' is none of" in capsys.readouterr().err


def test_a_bench_that_takes_help_for_a_part_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake that bench/spark.py had."""
    script = tmp_path / "late.py"
    script.write_text("import sys\n{}[sys.argv[1]]\n", encoding="utf-8")
    with pytest.raises(KeyError):
        status(monkeypatch, script, "--help")
