"""`--without ACTION`: the design less some actions, and every file that comes from it says so."""

import json
from pathlib import Path

import pytest
from tests.support.models.ticket_desk import CAREFUL, HASTY

from insync_cli.main import main
from isr_trace.itf import read_itf


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; nothing is on stdout."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err.removeprefix("insync: ").rstrip("\n")


@pytest.mark.parametrize("verb", ["check", "sample", "mutate", "export"])
@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("drawz", "careful has no action 'drawz'; did you mean 'draws'?"),
        ("serves_anyone", "careful has no action 'serves_anyone'; did you mean 'serves'?"),
        ("zzz", "; its actions are draws, serves, hurries, jams, closes, reopens"),
    ],
)
def test_an_action_that_does_not_exist_is_refused(
    desk: Path, capsys: pytest.CaptureFixture[str], verb: str, action: str, says: str
) -> None:
    assert main([verb, "careful", "--without", action]) == 64
    assert says in sentence(capsys)


def test_what_the_action_would_have_done_is_not_explored(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "hasty", "--property", "never-ahead", "--quiet"]) == 12
    assert main(["check", "hasty", "--property", "never-ahead", "--quiet", "--without", "serves"]) == 0
    capsys.readouterr()
    assert main(["check", "careful", "--without", "jams", "--without", "draws"]) == 0
    said = capsys.readouterr().out
    assert "without   draws, jams" in said
    assert "action draws" not in said


def test_run_json_has_the_actions_left_out_among_the_bounds(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "careful", "--without", "jams", "--without", "draws", "--without", "jams"]
    main([*words, "--out", "less", "--quiet"])
    main(["check", "careful", "--out", "whole", "--quiet"])
    less, whole = (json.loads((desk / f / "run.json").read_text()) for f in ("less", "whole"))
    assert less["bounds"] == {**whole["bounds"], "without": "draws jams"}
    assert less["command"][: len(words) + 1] == ["insync", *words]
    assert less["model_hash"] == CAREFUL.without("draws", "jams").model_hash() != whole["model_hash"]


def test_the_same_question_about_less_has_a_folder_of_its_own(desk: Path) -> None:
    main(["check", "careful", "--quiet"])
    main(["check", "careful", "--quiet", "--without", "jams"])
    assert len(list((desk / "runs").iterdir())) == 2


@pytest.fixture
def trace(desk: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    main(["check", "hasty", "--property", "closed-is-done", "--without", "jams", "--out", "out", "--quiet"])
    capsys.readouterr()
    return desk / "out" / "closed-is-done.itf.json"


def test_a_trace_says_what_was_left_out(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(trace.read_text())["#meta"]["without"] == ["jams"]
    assert read_itf(trace, HASTY.without("jams").model_hash()).without == ("jams",)
    assert main(["show", str(trace)]) == 0
    assert "  without jams\n" in capsys.readouterr().out
    assert main(["show", str(trace), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["bounds"]["without"] == "jams"


def test_explain_and_minimise_run_it_on_the_same_design(trace: Path) -> None:
    assert main(["explain", str(trace)]) == 0
    assert main(["minimise", str(trace), "--out", "short.itf.json", "--quiet"]) == 0
    assert read_itf(Path("short.itf.json")).without == ("jams",)
    assert main(["explain", "short.itf.json"]) == 0


@pytest.mark.parametrize(
    ("without", "says"),
    [
        (None, "this is a trace of another version of hasty"),
        (["draws"], "this is a trace of another version of hasty"),
        (["jam"], "hasty has no action 'jam'; did you mean 'jams'?"),
        ("jams", "#meta.without should be a list"),
        ([1], "an item of #meta.without should be a string"),
    ],
)
def test_a_trace_that_leaves_out_something_else_is_refused(
    trace: Path, capsys: pytest.CaptureFixture[str], without: object, says: str
) -> None:
    whole = json.loads(trace.read_text())
    whole["#meta"]["without"] = without
    if without is None:
        del whole["#meta"]["without"]
    trace.write_text(json.dumps(whole))
    assert main(["explain", str(trace)]) == 65
    assert says in sentence(capsys)


def test_a_trace_whose_left_out_action_is_gone_is_shown_all_the_same(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace.write_text(trace.read_text().replace('"without": ["jams"]', '"without": ["tears"]'))
    assert main(["show", str(trace)]) == 65
    said = capsys.readouterr()
    assert "T1  closes()" in said.out
    assert "hasty has no action 'tears'" in said.err
    assert "it is shown as it was written" in said.err


def test_samples_and_exports_are_of_what_is_left(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "careful", "--without", "jams", "--out", "samples", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bounds"]["without"] == "jams"
    assert "jams" not in report["taken"]
    assert all(read_itf(Path(s["file"])).without == ("jams",) for s in report["samples"])
    assert main(["export", "careful", "--without", "jams", "--murphi", "careful.m", "--json", "report.json"]) == 0
    assert json.loads((desk / "report.json").read_text())["bounds"]["without"] == "jams"
    text = (desk / "careful.m").read_text()
    assert 'rule "closes' in text
    assert 'rule "jams' not in text


def test_mutants_are_of_what_is_left(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "known.toml").write_text(
        '[[guard]]\ndesign = "careful"\naction = "jams"\nguard = "gone"\nreason = "it is left out"\n'
    )
    main(["mutate", "careful", "--without", "jams", "--redundant", "known.toml", "--workers", "1", "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    assert report["choices"][0]["bounds"]["without"] == "jams"
    assert "jams" not in {m["action"] for m in report["mutants"]}
    assert report["stale"] == [], "what is known of an action left out is not outdated"
