"""From a run to a trace file and on: show, explain, minimise, sample, export."""

import io
import json
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_trace.itf import read_itf
from isr_trace.trace import Minimisation


@pytest.fixture
def trace(desk: Path, capsys: pytest.CaptureFixture[str]) -> str:
    main(["check", "hasty", "--property", "closed-is-done", "--out", "out", "--quiet"])
    capsys.readouterr()
    return "out/closed-is-done.itf.json"


def test_show_draws_every_step(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", trace]) == 0
    said = capsys.readouterr().out
    assert "hasty: closed-is-done VIOLATED, 2 steps" in said
    assert said.index("T0") < said.index("T1") < said.index("T2")


@pytest.mark.parametrize(("option", "begins"), [("--mermaid", "sequenceDiagram"), ("--plantuml", "@startuml")])
def test_show_writes_sequence_diagrams(
    trace: str, capsys: pytest.CaptureFixture[str], option: str, begins: str
) -> None:
    assert main(["show", trace, option]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_show_walks_through_a_trace(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\nl\nq\nnever asked for\n"))
    assert main(["show", trace, "--interactive"]) == 0
    said = capsys.readouterr().out
    assert said.index("T0 of 2 > ") < said.index("T1 of 2 > ") < said.index("T2 of 2 > ")
    assert said.count(" > ") == 3


def test_a_walk_ends_where_nobody_answers(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["show", trace, "--interactive"]) == 0


@pytest.mark.parametrize("also", ["--mermaid", "--plantuml", "--json -"])
def test_a_walk_has_the_terminal_to_itself(trace: str, capsys: pytest.CaptureFixture[str], also: str) -> None:
    assert main(["show", trace, "--interactive", *also.split()]) == 64
    assert capsys.readouterr().err.count("\n") == 1


def test_what_was_found_breadth_first_is_known_to_be_shortest(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_itf(Path(trace)).minimisation == Minimisation(2, 2, True)
    assert main(["show", trace]) == 0
    assert "2 steps, and no shorter trace exists" in capsys.readouterr().out


def test_explain_names_the_part_that_fails_and_its_values(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", trace]) == 0
    said = capsys.readouterr().out
    assert "closed-is-done fails after T2" in said
    assert "served == drawn  fails  served = 1, drawn = 0" in said


def test_minimise_leaves_out_what_was_not_needed(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["minimise", trace, "--out", "short.itf.json"]) == 0
    assert "no shorter one exists; written to short.itf.json" in capsys.readouterr().out
    assert main(["minimise", trace]) == 0
    beside = Path("out/closed-is-done.minimal.itf.json")
    assert beside.read_text() == Path("short.itf.json").read_text()


def test_a_place_that_cannot_be_written_is_64(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    for command in (
        f"minimise {trace} --out file/short.itf.json",
        "sample careful --out file/below",
        "export careful --tla file/below",
        "designs --json file/below.json",
    ):
        assert main(command.split()) == 64
        assert "insync: cannot write " in capsys.readouterr().err


def test_samples_are_the_same_for_the_same_seed_and_break_nothing(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a", "b"):
        assert main(["sample", "hasty", "--count", "2", "--seed", "7", "--out", folder]) == 0
    first, second = ([p.read_text() for p in sorted((desk / f).iterdir())] for f in ("a", "b"))
    assert first == second
    capsys.readouterr()
    assert main(["sample", "hasty", "--steps", "3", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert all(0 < len(s["steps"]) <= 3 for s in report["samples"])
    assert main(["show", report["samples"][0]["file"]]) == 0


def test_a_design_without_behaviour_has_no_samples(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "empty"]) == 20
    assert "no passing behaviour" in capsys.readouterr().err


def test_export_writes_the_module_and_its_configurations(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "careful", "--tla", "tla", "--tickets", "2"]) == 0
    assert all(Path(line).exists() for line in capsys.readouterr().out.splitlines())
    assert "MODULE Careful" in (desk / "tla" / "Careful.tla").read_text()
    assert "Tickets = 2" in (desk / "tla" / "Careful.cfg").read_text()


def test_export_writes_murphi_at_the_bounds_given(desk: Path) -> None:
    assert main(["export", "careful", "--murphi", "careful.m", "--tickets", "2"]) == 0
    assert "startstate" in (desk / "careful.m").read_text().lower()
    assert main(["export", "careful", "--murphi", "careful.m/below.m"]) == 64


def test_export_wants_to_know_what(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "careful"]) == 64
    assert "--tla DIR" in capsys.readouterr().err
