"""Liveness on the command line: what is decided when, and how a lasso is kept and shown."""

import json
from pathlib import Path
from typing import cast

import pytest

from insync_cli.main import main
from isr_trace.itf import read_itf


def said(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str]:
    """The exit code and what is printed, with single spaces."""
    capsys.readouterr()
    code = main(command.split())
    printed = capsys.readouterr()
    return code, "\n".join(" ".join(line.split()) for line in (printed.out + printed.err).splitlines())


def trace_of(folder: Path) -> Path:
    return folder / "everybody-served.itf.json"


def test_a_default_run_only_states_liveness(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "check careful")
    assert code == 0
    assert "Not checked (liveness: name them, or --liveness on)\neverybody-served" in out


def test_liveness_on_checks_all_of_it(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "check careful --liveness on")
    assert code == 13
    assert "VIOLATED everybody-served eventually" in out
    assert "HOLDS never-ahead always" in out


def test_a_liveness_promise_that_holds_says_of_what(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "check hasty --property everybody-served")
    assert code == 0
    line = "insync check hasty: HOLDS - everybody-served holds of every fair behaviour; not judged: 3 other promises"
    assert out.endswith(line)


def test_a_budget_leaves_liveness_undecided(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "check careful --property everybody-served --max-states 5")
    assert code == 20
    assert "undecided before every state and every step is known" in out


def test_a_lasso_is_stored_with_its_loop_and_shown(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "check hasty --property everybody-served --unfair serves --out found")
    assert code == 13
    trace = read_itf(trace_of(Path("found")))
    assert trace.unfair == ("serves",)
    assert trace.loop == len(trace.states) - 1
    assert "and so it stays for ever" in out
    code, shown = said(capsys, f"show {trace_of(Path('found'))}")
    assert code == 0
    assert "not fair: serves" in shown
    assert "and so it stays for ever: T0 again and again, and no fair action could change it" in shown


def test_the_run_file_says_which_fairness_was_changed(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "check careful --property everybody-served --unfair serves --strong draws --json found.json")
    found = cast("dict[str, dict[str, object]]", json.loads(Path("found.json").read_text(encoding="utf-8")))
    assert found["bounds"]["unfair"] == "serves"
    assert found["bounds"]["strong"] == "draws"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--unfair servs", "careful has no action that is taken to be fair 'servs'; did you mean 'serves'?"),
        ("--unfair draws", "careful has no action that is taken to be fair 'draws'"),
        ("--strong drawz", "careful has no action 'drawz'; did you mean 'draws'?"),
    ],
)
def test_fairness_of_what_is_not_there_is_refused(
    desk: Path, capsys: pytest.CaptureFixture[str], options: str, sentence: str
) -> None:
    code, out = said(capsys, f"check careful {options}")
    assert code == 64
    assert sentence in out


@pytest.mark.parametrize("option", ["--simulate 5", "--symmetry on"])
def test_what_cannot_decide_liveness_is_refused(desk: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    code, out = said(capsys, f"check careful --property everybody-served {option}")
    assert code == 64
    assert "liveness (everybody-served)" in out


def test_what_goes_round_is_explained_and_not_minimised(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "check careful --property everybody-served --out found")
    code, out = said(capsys, f"explain {trace_of(Path('found'))}")
    assert code == 0
    assert "Why that is fair" in out
    code, out = said(capsys, f"minimise {trace_of(Path('found'))}")
    assert code == 65
    assert "only one that ends is made shorter" in out
