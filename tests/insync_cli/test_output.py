"""What a person reads: every claim no stronger than the verdict, and what was left out is said."""

import json
from pathlib import Path

import pytest

from insync_cli.main import main


def said(capsys: pytest.CaptureFixture[str], command: str) -> list[str]:
    """The lines on stdout, each with single spaces; nothing is on stderr."""
    main(command.split())
    captured = capsys.readouterr()
    assert captured.err == ""
    return [" ".join(line.split()) for line in captured.out.splitlines()]


def test_a_known_failure_is_still_a_violation_and_says_why_it_is_expected(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, "check hasty")
    reason = "a ticket may be served before it is drawn"
    assert f"VIOLATED never-ahead always in 1 step; expected: {reason}" in lines
    assert "VIOLATED closed-is-done always in 2 steps" in lines


def test_a_counterexample_is_shown_with_what_changed_and_why_it_fails(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, "check hasty --out out")
    assert "T1 serves()" in lines
    assert "served 0 -> 1" in lines
    assert "served <= drawn fails served = 1, drawn = 0" in lines
    assert "whole trace of never-ahead: insync show out/never-ahead.itf.json" in lines
    assert "whole trace of closed-is-done: insync show out/closed-is-done.itf.json" in lines
    assert lines[-1].startswith("insync check hasty: VIOLATED - never-ahead, closed-is-done violated")


@pytest.mark.usefixtures("desk")
def test_a_folder_keeps_no_trace_that_its_last_run_did_not_find() -> None:
    """An earlier counterexample of a promise that holds now would be taken for this run's."""
    out = Path("out")
    main(["check", "hasty", "--out", "out", "--quiet"])
    assert (out / "never-ahead.itf.json").exists()
    main(["check", "careful", "--out", "out", "--quiet"])
    assert not (out / "never-ahead.itf.json").exists()
    for count in (3, 1):
        main(f"sample careful --count {count} --out out --quiet".split())
        assert len(list(out.glob("sample-*"))) == count


def test_probes_are_reached_and_promises_hold(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "check careful")
    assert "HOLDS crowd sometimes witness in 3 steps" in lines
    assert lines[-1] == (
        "insync check careful: HOLDS - 4 promises hold in every reachable state; 2 probes reached; "
        "not judged: 1 liveness promise"
    )


def test_what_was_not_checked_and_what_is_off_is_said(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "check careful --calls 0")
    assert lines[lines.index("Off at these settings") + 1 :][:2] == [
        "properties everybody-served",
        "actions serves, reopens",
    ]
    lines = said(capsys, "check careful --reopen on")
    assert lines[lines.index("Not checked (liveness: name them, or --liveness on)") + 1] == "everybody-served"
    assert "properties closed-is-done" in lines
    assert not any("closed-is-done always" in line for line in lines)


def test_an_action_that_is_never_enabled_and_a_probe_without_witness_are_findings(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, "check careful --tickets 2")
    assert "VACUOUS crowd sometimes no witness in the whole space" in lines
    found = lines[lines.index("Never exercised at these bounds") + 1]
    assert found == ("action hurries is never enabled, because this never holds: old.served + RUSH < old.drawn")
    assert "; 1 probe not reached;" in lines[-1]


def test_a_guard_that_never_refuses_is_a_finding(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "check careful --tickets 1 --rush 1 --calls 0 --paper-jams 0")
    assert "a guard of closes never refuses: old.open" not in lines
    lines = said(capsys, "check empty --paper-jams 1")
    assert "Never exercised at these bounds" not in lines


def test_a_truncated_run_never_says_never(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "check careful --max-states 5")
    assert not any("never " in line or "hold" in line for line in lines)
    assert "BUDGETED never-back always no violation so far" in lines
    assert "BUDGETED crowd sometimes no witness so far" in lines
    assert "coverage is not judged: not every state was seen" in lines
    assert "stopped by --max-states 5 after" in lines[-1]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("--memory 1K", "the memory limit of 1 KB"), ("--max-seconds 0.000001", "--max-seconds 1e-06")],
)
def test_the_limit_that_ended_a_run_is_named(
    desk: Path, capsys: pytest.CaptureFixture[str], limit: str, reason: str
) -> None:
    assert f"stopped by {reason} after" in said(capsys, f"check careful {limit}")[-1]


@pytest.mark.processes
def test_quiet_is_one_line(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("check", "mutate", "sample"):
        lines = said(capsys, f"{verb} careful --quiet")
        assert len(lines) == 1
        assert lines[0].startswith(f"insync {verb} careful: ")


@pytest.mark.processes
def test_json_on_stdout_is_alone_there(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "hasty", "--out", "out"])
    capsys.readouterr()
    trace = "out/never-ahead.itf.json"
    for command, schema in (
        ("check hasty", "run"),
        ("designs", "designs"),
        ("designs hasty", "designs"),
        (f"show {trace}", "show"),
        (f"explain {trace}", "explain"),
        (f"minimise {trace}", "minimise"),
        ("sample careful", "sample"),
        ("export careful --tla tla", "export"),
        ("mutate careful", "mutate"),
    ):
        main([*command.split(), "--json", "-"])
        assert json.loads(capsys.readouterr().out)["schema"] == f"insync/{schema}/{2 if schema == 'run' else 1}"


def test_an_expectation_that_is_not_met_is_named(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "check careful --quiet --expect never-ahead=VIOLATED")
    assert lines[0] == "expected never-ahead=VIOLATED, but it is HOLDS"


def test_a_log_has_no_escape_codes(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "hasty", "--plain"])
    assert "\x1b" not in capsys.readouterr().out
