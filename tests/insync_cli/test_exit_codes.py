"""The answer as a number: every exit code of `insync check`, and which one wins."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from insync_cli import registry
from insync_cli.main import main
from isr_check.engine import Exploration, Finding, Limits, Progress, Verdict
from isr_check.explorer import explore
from isr_lang import Instance

WORDS = {
    0: ("HOLDS",),
    10: ("VACUOUS",),
    11: ("VIOLATED",),
    12: ("VIOLATED",),
    13: ("VIOLATED",),
    20: ("BUDGETED", "SAMPLED", "UNKNOWN"),
    21: ("VACUOUS", "UNCOVERED"),
}
"""The words of the last line that go with an exit code."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("careful", 0),
        ("careful --property never-ahead", 0),
        ("careful --property roll-used-up", 0),
        ("empty", 10),
        ("careful --deadlock", 11),
        ("careful --property deadlock", 11),
        ("careful --reopen on --deadlock", 0),
        ("hasty", 12),
        ("hasty --property never-ahead", 12),
        ("hasty --deadlock", 12),
        ("hasty --property never-back", 0),
        ("careful --max-states 5", 20),
        ("careful --simulate 3", 20),
        ("careful --simulate 300 --property roll-used-up", 20),
        ("hasty --simulate 50 --property never-ahead", 12),
        ("careful --simulate 3 --property never-ahead --expect never-ahead=SAMPLED", 0),
        ("careful --max-seconds 0.000001", 20),
        ("careful --memory 1K", 20),
        ("careful --property everybody-served", 13),
        ("careful --property never-ahead --property everybody-served", 13),
        ("careful --tickets 2", 0),
        ("careful --tickets 2 --property crowd", 21),
        ("careful --tickets 2 --coverage strict", 21),
        ("careful --tickets 2 --coverage strict --property never-ahead", 21),
        ("careful --coverage strict", 0),
        ("careful --reopen on --property closed-is-done", 21),
        ("careful --expect never-ahead=HOLDS", 0),
        ("hasty --property never-ahead --expect never-ahead=VIOLATED", 0),
        ("hasty --property never-ahead --expect never-ahead=holds", 22),
        ("hasty --property never-back --expect never-ahead=VIOLATED", 0),
        ("hasty --expect never-ahead=VIOLATED", 12),  # closed-is-done fails too, and nobody expects that
        ("hasty --expect never-ahead=VIOLATED --expect closed-is-done=VIOLATED", 0),
        ("careful --tickets 2 --property crowd --expect crowd=VACUOUS", 0),
        ("careful --max-states 5 --expect never-ahead=HOLDS", 22),
        ("no-such-design", 64),
    ],
)
def test_the_exit_code_says_what_was_found(
    desk: Path, capsys: pytest.CaptureFixture[str], command: str, code: int
) -> None:
    assert main(["check", "--quiet", *command.split()]) == code
    if code in WORDS and "--expect" not in command:
        line = capsys.readouterr().out.splitlines()[-1]
        assert line.partition(": ")[2].partition(" - ")[0].partition("(")[0] in WORDS[code]


@pytest.mark.parametrize(("more", "word"), [("", "HOLDS"), ("--property crowd", "VACUOUS")])
def test_a_probe_that_is_not_reached_decides_only_where_it_is_asked_for(
    desk: Path, capsys: pytest.CaptureFixture[str], more: str, word: str
) -> None:
    main(["check", "careful", "--tickets", "2", "--quiet", *more.split()])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(f"insync check careful: {word} - ")
    assert ("; 1 probe not reached" in line) is (word == "HOLDS")


def test_a_probe_that_is_not_reached_hides_no_reason(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def engine(*_: object) -> Exploration:
        findings = (Finding("crowd", "sometimes", Verdict.VACUOUS), Finding("never-ahead", "always", Verdict.TOO_SMALL))
        return Exploration(findings, True, 1, 1, 0, 0.1, (1,), {}, ())

    plant(monkeypatch, engine)
    assert main(["check", "careful", "--quiet", "--out", "here"]) == 23
    assert json.loads((desk / "here" / "run.json").read_text())["verdict"] == "TOO SMALL"


def plant(monkeypatch: pytest.MonkeyPatch, engine: Callable[..., Exploration]) -> None:
    """Let `check` explore with this engine."""

    def named(_name: str, _workers: int | None = None) -> tuple[Callable[..., Exploration], int]:
        return engine, 1

    monkeypatch.setattr(registry, "engine_named", named)


@pytest.mark.parametrize(("verdict", "kind", "code"), [("VIOLATED", "eventually", 13), ("ERROR", "always", 70)])
def test_what_only_later_engines_find_has_its_code(
    desk: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, kind: str, code: int
) -> None:
    def engine(*_: object) -> Exploration:
        finding = Finding("everybody-served", kind, Verdict(verdict))
        return Exploration((finding,), True, 1, 1, 0, 0.1, (1,), {}, ())

    plant(monkeypatch, engine)
    assert main(["check", "careful", "--quiet"]) == code


def test_a_bug_in_insync_is_70_and_says_so(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def engine(*_: object) -> Exploration:
        raise ZeroDivisionError("planted")

    plant(monkeypatch, engine)
    assert main(["check", "careful"]) == 70
    assert "this is a bug in insync (ZeroDivisionError: planted)" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_budgeted_and_keeps_what_was_found(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    def engine(
        instance: Instance, wanted: tuple[str, ...], limits: Limits, progress: Callable[[Progress], None]
    ) -> Exploration:
        signal.raise_signal(number)
        return explore(instance, wanted, limits, progress)

    plant(monkeypatch, engine)
    before = signal.getsignal(number)
    assert main(["check", "careful", "--out", "here"]) == 20
    said = capsys.readouterr().out
    assert "BUDGETED" in said
    assert "stopped by " + ("Ctrl-C" if number == signal.SIGINT else "SIGTERM") in said
    assert "hold" not in said.splitlines()[-1]
    assert (desk / "here" / "run.json").exists()
    assert signal.getsignal(number) == before
