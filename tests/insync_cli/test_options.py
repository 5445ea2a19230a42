"""Options are the fields of a class: their defaults are those that run, and Kafka's own spellings are taken."""

import os
from pathlib import Path

import attrs
import pytest

from insync_cli import options
from insync_cli.exits import UsageError
from insync_cli.main import main
from insync_cli.options import Usage, arguments, choice, flag, group, natural, option, positive, repeated_option, switch

USAGE = Usage("walk", "Walks.", "insync walk")


@attrs.frozen(kw_only=True)
class Inner:
    steps: int = option("N", "at most", positive, 20)
    seed: int | None = option("N", "other walks", natural, rival="chance")
    lucky: bool = flag("no seed at all", rival="chance")


@attrs.frozen(kw_only=True)
class Options:
    files: tuple[Path, ...] = arguments("FILE", "what to read", Path)
    inner: Inner = group(Inner, "walking")
    symmetry: bool = switch("orbits", default=False)
    level: str = choice(("full", "events"), "how much", "full")
    only: tuple[str, ...] = repeated_option("NAME", "this one", str)


def read(*words: str) -> Options:
    return options.read_options(Options, USAGE, words)


def test_the_defaults_of_the_fields_are_the_defaults() -> None:
    assert read() == Options() == Options(inner=Inner(steps=20, seed=None))


def test_words_become_values_where_they_are_read() -> None:
    given = read("a", "b", "--steps", "3", "--seed", "0", "--symmetry", "on", "--only", "x", "--only=y")
    inner = Inner(steps=3, seed=0)
    assert given == Options(files=(Path("a"), Path("b")), inner=inner, symmetry=True, only=("x", "y"))


def test_help_tells_each_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read("--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "walking: --steps N at most (default 20)" in said
    assert "--level {full,events} how much (default full)" in said
    assert "--symmetry on|off orbits (default off)" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--steps", "0"), "--steps: a whole number from 1, not 0"),
        (("--seed", "1", "--lucky"), "not allowed with argument --seed"),
        (("--levle", "full"), "there is no option --levle; did you mean '--level'?"),
        (("--symmetry", "perhaps"), "invalid choice: 'perhaps' (on or off)"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match="walk") as raised:
        read(*words)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("--acks -1", "--acks all"), ("--unclean true", "--unclean on"), ("--unclean=false", "--unclean off")],
)
def test_kafkas_own_spellings_are_taken(theirs: str, ours: str) -> None:
    def world(words: str) -> options.World:
        return options.read_options(options.World, Usage("check", "", ""), ["kip-966", *words.split()])

    assert world(theirs) == world(ours)
    world(theirs).instance()


def test_more_workers_than_the_machine_can_use_are_refused(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "careful", "--workers", "100000"]) == 64
    cores = os.cpu_count() or 1
    assert f"on this machine, which has {cores} cores, not 100000" in capsys.readouterr().err


def test_help_without_a_design_says_whose_default_it_is(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--tickets N Tickets on the roll (default 3, 2 of hasty, 1 to 200)" in said


def test_no_colour_where_the_environment_asks_for_none(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(["designs"])
    assert "\x1b[" in capsys.readouterr().out
    main(["designs", "--plain"])
    assert "\x1b[" not in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["designs"])
    assert "\x1b[" not in capsys.readouterr().out
