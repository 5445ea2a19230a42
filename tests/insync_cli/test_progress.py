"""Progress on stderr: what it says, how often, and that an estimate is called one."""

import io
import sys
import time

import pytest

from insync_cli.progress import REDRAW_EVERY, Brake, Ticker, estimate, fitting, human_size, two_digits
from isr_check.engine import Progress


class Clock:
    """Seconds that pass only when told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


BELL = [1, 8, 40, 140, 360, 680, 960, 1010, 800, 470, 200, 60, 12]


def test_a_log_gets_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    ticker = Ticker(quiet=False, plain=False, clock=clock)
    for second in range(12):
        clock.now = float(second)
        ticker(Progress(second, 10, 1000, 4000, second + 1.0))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("depth 5 · frontier 10 · 1,000 states · 167 states/s · 75% duplicates · ")


def test_a_terminal_gets_one_line_that_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = Terminal(), Clock()
    monkeypatch.setattr(sys, "stderr", screen)
    ticker = Ticker(quiet=False, plain=False, clock=clock)
    for second in range(3):
        clock.now = second + 1.0
        ticker(Progress(second, 1, 1, 1, 1.0))
    ticker.close()
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().count("depth") == 3
    assert screen.getvalue().endswith(" \r")


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    ticker = Ticker(quiet=True, plain=False, clock=clock)
    clock.now = 100.0
    ticker(Progress(1, 1, 1, 1, 1.0))
    assert capsys.readouterr().err == ""


def test_an_estimate_is_called_one_and_has_two_digits() -> None:
    ticker = Ticker(quiet=True, plain=True)
    for depth, size in enumerate(BELL[:9]):
        ticker(Progress(depth, size, 4000, 9000, 1.0))
    line = ticker.line(Progress(8, 800, 4000, 9000, 1.0))
    assert " · estimate 4,900 states in all" in line or " · estimate 4,800 states in all" in line


def test_the_estimate_is_near_once_the_levels_grow_more_slowly() -> None:
    whole = sum(BELL)
    for seen in (8, 9, 10, 11):
        guess = estimate(BELL[:seen])
        assert guess is not None
        assert 0.6 * whole < guess < 1.6 * whole


def test_there_is_no_estimate_while_growth_does_not_slow_down() -> None:
    assert estimate([2**n for n in range(20)]) is None
    assert estimate(BELL[:5]) is None


def test_memory_is_watched() -> None:
    generous, tight = Brake(1 << 60), Brake(1024)
    assert not generous()
    assert generous.reason is None
    assert tight()
    assert tight.reason == "the memory limit of 1 KB"


@pytest.mark.parametrize(
    ("size", "text"),
    [(512, "512 B"), (2048, "2 KB"), (5 << 20, "5 MB"), (3 << 29, "1.5 GB"), (2 << 40, "2.0 TB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert human_size(size) == text


def test_estimates_are_rounded() -> None:
    assert [two_digits(n) for n in (7, 42, 123_456)] == ["7", "42", "120,000"]


@pytest.mark.parametrize("width", [80, 60, 40])
def test_a_narrow_terminal_still_sees_the_estimate(width: int) -> None:
    ticker = Ticker(quiet=True, plain=True)
    for depth, size in enumerate(BELL[:9]):
        ticker(Progress(depth, size, 400_000, 900_000, 10.0))
    line = fitting(ticker.parts(Progress(8, 800, 400_000, 900_000, 10.0)), width)
    assert len(line) <= width
    assert line.startswith("depth 8")
    assert line.endswith(" states in all")


def test_what_is_counted_says_how_long_the_rest_takes(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    ticker = Ticker(quiet=False, plain=True, clock=clock)
    for done in (1, 2, 3):
        clock.now += 10
        ticker.count(done, 10, "cells")
    assert capsys.readouterr().err.splitlines() == [
        "1 of 10 cells · estimate 90 s more",
        "2 of 10 cells · estimate 80 s more",
        "3 of 10 cells · estimate 70 s more",
    ]


def test_what_tells_nothing_of_itself_has_a_clock_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    ticker = Ticker(quiet=False, plain=True, clock=clock)
    with ticker.meanwhile("checking a history"):
        clock.now = 7.0
        time.sleep(3 * REDRAW_EVERY)
    assert capsys.readouterr().err == "checking a history · 7 s so far\n"
