"""The options of `check` for large models: symmetry, memory, resume, simulation.

Without these, an interrupted run of hours could not be resumed, or a simulation could pass for an exploration of all
states, and nobody would notice before somebody needs it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from insync_cli.main import main
from insync_cli.progress import Ticker
from isr_check.engine import Progress

pytestmark = pytest.mark.explores


def checked(command: str) -> tuple[int, dict[str, object]]:
    code = main(["check", *command.split(), "--out", "out"])
    return code, cast("dict[str, object]", json.loads(Path("out/run.json").read_text(encoding="utf-8")))


def stats(run: dict[str, object]) -> dict[str, object]:
    return cast("dict[str, object]", run["stats"])


SMALL = "kip-966 --replicas 2 --isr-changes 3"
"""There is room for an election and a rejoin, so no run looks for bounds that would have it."""


def test_symmetry_says_how_much_it_saved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, whole = checked("kip-966 --engine native --log 1 --records 1")
    assert code == 23  # one record cannot diverge
    capsys.readouterr()
    code, reduced = checked("kip-966 --engine native --log 1 --records 1 --symmetry on")
    assert code == 23
    assert stats(reduced)["unreduced"] == stats(whole)["distinct"]
    assert cast("int", stats(whole)["distinct"]) > 4.5 * cast("int", stats(reduced)["distinct"])
    assert reduced["properties"] == whole["properties"]
    assert "times fewer states than" in capsys.readouterr().out


def test_liveness_by_symmetry_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "kip-966", "--symmetry", "on", "--property", "leader-is-elected"]) == 64
    assert "--symmetry on is unsound for liveness (leader-is-elected)" in capsys.readouterr().err


def test_an_interrupted_run_is_resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, whole = checked(f"{SMALL} --engine native")
    code, cut = checked(f"{SMALL} --engine native --max-states 500")
    assert code == 20
    assert "to go on from here, add: --resume out" in capsys.readouterr().out
    assert cast("int", stats(cut)["distinct"]) < cast("int", stats(whole)["distinct"])
    code, resumed = checked(f"{SMALL} --engine native --resume out --workers 1")
    assert code == 0
    assert not Path("out/checkpoint").exists()
    assert resumed["coverage"] == whole["coverage"]
    assert stats(resumed)["distinct"] == stats(whole)["distinct"]


def test_without_out_a_resumed_run_answers_beside_its_checkpoint(folder: Path) -> None:
    checked(f"{SMALL} --engine native --max-states 500")
    assert main(["check", *SMALL.split(), "--engine", "native", "--resume", "out", "--quiet"]) == 0
    assert json.loads(Path("out/run.json").read_text(encoding="utf-8"))["verdict"] != "BUDGETED"


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (f"{SMALL} --engine native --resume nowhere", 65, "there is no checkpoint in nowhere/checkpoint"),
        ("kip-966 --engine native --replicas 2 --isr-changes 2 --resume out", 65, "is of isr_changes 3, not 2"),
        (f"{SMALL} --engine reference --resume out", 64, "--resume needs --engine native"),
        (f"{SMALL} --seed 3", 64, "--seed chooses the walks of --simulate"),
        (f"{SMALL} --simulate 3 --symmetry on", 64, "--simulate walks"),
        (f"{SMALL} --simulate 3 --engine spark", 64, "--simulate is for native and reference"),
        (f"{SMALL} --symmetry maybe", 64, "invalid choice: 'maybe'"),
        ("kip-966 --replicas 1 --min-insync 1 --symmetry on", 64, "no symmetric sort of two or more"),
    ],
)
def test_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str], command: str, code: int, sentence: str) -> None:
    checked(f"{SMALL} --engine native --max-states 500")
    capsys.readouterr()
    assert main(["check", *command.split()]) == code
    assert sentence in capsys.readouterr().err


def test_too_little_memory_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = checked("kip-966 --engine native --memory 1M")
    assert code == 20
    said = capsys.readouterr()
    assert "stopped by the memory limit of 1 MB after" in said.out.splitlines()[-1]


def test_a_simulation_says_how_many_walks_and_which(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, run = checked("careful --simulate 30 --seed 4")
    assert code == 20
    assert (run["verdict"], run["seed"], stats(run)["walks"]) == ("SAMPLED", 4, 30)
    out = capsys.readouterr().out
    assert "insync check careful: SAMPLED(30, seed 4) - 30 random walks through" in out
    assert "no violation in 30 walks" in out


def test_a_simulation_says_how_much_it_has_probably_not_met(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says it in the line that is quoted, or few walks would read like HOLDS."""
    _, few = checked("careful --simulate 4")
    out = capsys.readouterr().out
    estimate = cast("dict[str, float]", stats(few)["estimate"])
    assert estimate["walks"] == 4
    share = f"about {100 * estimate['new_share']:.0f}% new"
    assert estimate["new_share"] == round(estimate["once"] / estimate["meetings"], 9) > 0.1
    assert f"(one more is {share}), and" in out.splitlines()[-1]
    assert f"no violation in 4 walks; one more is {share}" in out
    assert f"so {share[:-4]} of what one more walk meets is new" in out
    assert f"at least {estimate['least_states']:,} states, by estimate, and these met {stats(few)['distinct']}" in out
    assert "does not say that a promise holds" in out
    _, many = checked("careful --simulate 2000")
    assert cast("dict[str, float]", stats(many)["estimate"])["new_share"] == 0
    assert "(one more is about 0% new)" in capsys.readouterr().out.splitlines()[-1]
    checked("careful")
    assert "one more" not in capsys.readouterr().out


def test_a_probe_that_is_true_at_the_start_is_not_called_reached(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked("kip-966 --replicas 1 --min-insync 1 --property isr-shrinks-to-one --property record-commits")
    out = capsys.readouterr().out
    assert "true at the start, so nothing had to happen" in out
    assert out.splitlines()[-1].endswith("1 probe reached; 1 probe true at the start")


@pytest.mark.parametrize("workers", [1, 2])
def test_both_engines_that_walk_say_the_same(desk: Path, workers: int) -> None:
    code, run = checked(f"careful --simulate 500 --engine native --workers {workers}")
    again, reference = checked("careful --simulate 500 --engine reference")
    assert (code, run["workers"], reference["workers"]) == (again, workers, 1)
    assert run["coverage"] == reference["coverage"]
    for name in ("distinct", "generated", "depth", "walks"):
        assert stats(run)[name] == stats(reference)[name]


def test_a_simulation_cannot_say_what_must_come_to_pass(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, run = checked("careful --simulate 3 --liveness on")
    assert (code, run["verdict"]) == (20, "UNKNOWN")
    out = capsys.readouterr().out
    assert "walks end, so they say nothing of liveness" in out
    assert "UNKNOWN - everybody-served unknown; 3 random walks through" in out.splitlines()[-1]


def test_what_a_simulation_finds_is_minimised(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked("hasty --simulate 50")
    assert code == 12
    _, whole = checked("hasty")
    assert found["seed"] == 1

    def depths(run: dict[str, object]) -> dict[object, object]:
        lines = cast("list[dict[str, object]]", run["properties"])
        return {line["name"]: line["depth"] for line in lines if line["verdict"] == "VIOLATED"}

    assert depths(found) == depths(whole) != {}


def test_progress_forecasts_memory(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    ticker = Ticker(quiet=False, plain=True, clock=lambda: now[0], memory=1 << 30)
    for depth, size in enumerate([1, 4, 12, 30, 60, 100, 140, 160, 170, 172]):
        now[0] += 10
        ticker(Progress(depth, size, 1000, 5000, now[0], 40.0, on_disk=depth > 8))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("estimate: at 40 bytes a state, 1.0 GB hold about ")
    assert first.endswith("more are compressed, then go to files")
    assert "the rest in files" in last
    assert " states in all, " in last.split("estimate ")[1]
