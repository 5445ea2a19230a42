"""Progress on stderr: what it says, how often, and that an estimate is called one."""

import io
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.broker_traces import simulate_traced, write_trace

from insync_cli.main import main
from insync_cli.progress import REDRAW_EVERY, Brake, Stage, Tell, Ticker, estimate, fitting, human_size, two_digits
from insync_cli.terminal import Output
from isr_check.engine import Progress

CORPUS = Path(__file__).resolve().parents[2] / "counterexamples" / "cases"


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


def test_the_page_about_the_work_is_told_once_and_what_is_beside_it_each_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    ticker = Ticker(quiet=False, plain=True, clock=clock)
    for done in (3, 4):
        clock.now += 10
        ticker(Progress(5, 100, 1_000, 3_000, 1.0, beside=(f"{done} of 8 tasks",), page="http://driver:4040"))
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "http://driver:4040" in line] == said[:1]
    assert [("3 of 8 tasks" in line, "4 of 8 tasks" in line) for line in said[1:]] == [(True, False), (False, True)]
    assert all(" in this process · " in line for line in said[1:]), "it is not the memory of those who do the work"


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
        ticker(Progress(depth, size, 4_000, 9_000, 10.0))
    line = fitting(ticker.parts(Progress(8, 800, 4_000, 9_000, 10.0)), width)
    assert len(line) <= width
    assert line.startswith("depth 8")
    assert re.search(r" · estimate \d+ s more$", line)
    assert (" states in all" in line) == (width > 40)


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


def test_where_the_total_grows_the_least_is_told_and_an_estimate_once_it_grows_more_slowly() -> None:
    stage, total = Stage("states", 0.0), 1
    said: list[str] = []
    for done, found in zip(range(sum(BELL)), (n for level in pairwise(BELL) for n in spread(*level)), strict=False):
        total += found
        stage.at(done + 1, total, grows=True)
        said.append(stage.parts(float(done + 1))[1])
    assert said[len(said) // 8].startswith("at least ")
    assert {line.split()[0] for line in said[-len(said) // 4 : -1]} == {"estimate"}
    late = len(said) * 3 // 4
    guess = seconds_of(said[late])
    assert 0.5 * (len(said) - late) < guess < 2 * (len(said) - late)


def test_where_things_are_not_alike_the_share_of_the_work_tells_how_long_the_rest_takes() -> None:
    stage = Stage("obligations decided", 0.0)
    stage.at(2, 488, share=0.25)
    assert stage.parts(10.0) == ["2 of 488 obligations decided", "estimate 30 s more"]


def spread(states: int, found: int) -> list[int]:
    """How many states each state of a level adds to the next."""
    return [found * (i + 1) // states - found * i // states for i in range(states)]


def seconds_of(told: str) -> float:
    """`estimate 12 min more` in seconds."""
    number, unit = told.split()[-3:-1]
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


@pytest.mark.parametrize("width", [80, 60])
def test_work_that_tells_how_far_it_is_has_an_estimate_for_each_of_its_stages(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, clock = Terminal(), Clock()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width, 24)))
    ticker = Ticker(quiet=False, plain=False, clock=clock)
    with ticker.meanwhile(
        "reading a-history-with-a-long-name-that-alone-would-fill-a-line-of-a-narrow-terminal"
    ) as tell:
        clock.now = 4.0
        time.sleep(2 * REDRAW_EVERY)
        tell("bytes of a-history-with-a-long-name-that-alone-would-fill-a-line-of-a-narrow-terminal", 20, 80)
        clock.now = 8.0
        time.sleep(2 * REDRAW_EVERY)
        tell("anomalies looked for", 0, 29)
        clock.now = 10.0
        tell("anomalies looked for", 10, 30)
        time.sleep(2 * REDRAW_EVERY)
    lines = [line.rstrip() for line in screen.getvalue().split("\r") if line.strip()]
    assert max(map(len, lines)) < width
    assert lines[0].startswith("reading a-history")
    assert any(re.match(r"20 of 80 bytes of a-h.+ · estimate 12 s more$", line) for line in lines)
    assert lines[-1] == "10 of 30 anomalies looked for · estimate 4 s more"


def test_what_is_counted_anew_has_a_clock_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    ticker = Ticker(quiet=False, plain=True, clock=clock)
    for second, done in ((10, 50), (20, 99), (30, 1), (40, 11)):
        clock.now = float(second)
        ticker.count(done, 100, "states looked at")
    assert capsys.readouterr().err.splitlines()[-1] == "11 of 100 states looked at · estimate 81 s more"


class Told:
    """A ticker that keeps what it is told, and draws nothing."""

    def __init__(self) -> None:
        self.stages: dict[str, list[tuple[int, int | None]]] = {}

    def __enter__(self) -> "Told":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, at: Progress) -> None:
        self.count(at.distinct, None, "states")

    def count(self, done: int, total: int | None, what: str, *, grows: bool = False) -> None:
        self.stages.setdefault(what.split(" of ")[0].split(" about ")[0], []).append((done, total))

    @contextmanager
    def meanwhile(self, _: str) -> Generator[Tell]:
        def tell(what: str, done: int, total: int | None = None, /) -> None:
            self.count(done, total, what)

        yield tell

    def count_each(self, things: Iterable[object], total: int | None, what: str) -> Iterator[object]:
        for n, thing in enumerate(things, 1):
            self.count(n, total, what)
            yield thing

    def close(self) -> None:
        """Nothing was drawn."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.chdir(tmp_path)
    found = Told()

    def ticker(_: Output) -> Told:
        return found

    monkeypatch.setattr(Output, "ticker", ticker)
    return found


HISTORY = """\
{"type": "invoke", "f": "produce", "process": 1, "time": 10, "partition": "t-0", "value": 7}
{"type": "ok", "f": "produce", "process": 1, "time": 20, "offset": 0}
{"type": "invoke", "f": "poll", "process": "c", "time": 30}
{"type": "ok", "f": "poll", "process": "c", "time": 40, "records": {"t-0": [[0, 7, 1]]}}
"""


def rising(stages: list[tuple[int, int | None]]) -> bool:
    """Whether the first of a stage that was counted rises to about its end, and the end is known from its beginning."""
    done, ends = [d for d, _ in stages], {total for _, total in stages}
    return done == sorted(done) and len(ends) == 1 and None not in ends


def test_a_history_is_read_by_its_size_and_judged_question_by_question(told: Told) -> None:
    Path("h.jsonl").write_text(HISTORY, encoding="utf-8")
    assert main(["history", "h.jsonl", "--quiet"]) in (0, 20)
    assert set(told.stages) == {"bytes", "questions"}
    assert all(rising(stage) for stage in told.stages.values())
    assert told.stages["bytes"][-1] == (len(HISTORY), len(HISTORY))
    assert told.stages["questions"][-1][0] == told.stages["questions"][-1][1]


@pytest.mark.long
def test_a_trace_of_brokers_is_validated_line_by_line(told: Told) -> None:
    logs = Path("logs")
    logs.mkdir()
    write_trace(logs, simulate_traced(1))
    assert main(["validate", str(logs), "--quiet"]) == 0
    lines = told.stages["lines explained"]
    assert rising(lines)
    assert lines[-1][0] == lines[-1][1]
    assert lines[-1][0] > 300
    assert rising(told.stages["files read"])


@pytest.mark.long
def test_a_page_and_its_trace_say_how_far_they_are(told: Told) -> None:
    main(["show", "jepsen-2013", "--html", "p.html"])
    assert set(told.stages) == {"steps left out for a trial", "states asked who could be elected"}
    assert all(rising(stage) for stage in told.stages.values())
    told.stages.clear()
    main(["show", "jepsen-2013", "hw-truncation-loss", "--html", "p.html"])
    assert told.stages == {"traces": [(0, 2), (1, 2)]}


def test_minimising_says_how_far_each_of_its_parts_is(told: Told) -> None:
    file = CORPUS / "jepsen-2013" / "trace.itf.json"
    trace = json.loads(file.read_text(encoding="utf-8"))
    del trace["#meta"]["minimised"]
    Path("long.itf.json").write_text(json.dumps(trace), encoding="utf-8")
    assert main(["minimise", "long.itf.json", "--quiet"]) == 0
    assert {"states, at most, looked at from the start", "steps moved to calmer places"} <= set(told.stages)
    assert all(done <= (total or 0) for stage in told.stages.values() for done, total in stage)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("driven", "what"),
    [("", "edges driven"), ("--edges 9", "sampled edges driven"), ("--sample 20", "walks driven")],
)
def test_a_system_under_test_is_driven_with_the_end_in_sight(driven: str, what: str, told: Told) -> None:
    sut = shlex.quote(f"{shlex.quote(sys.executable)} -m isr_conform.core_sut")
    bounds = "--replicas 2 --crashes 0 --isr-changes 1 --patience 500 --quiet"
    assert main(shlex.split(f"conform --sut {sut} {bounds} {driven}")) == 0
    assert rising(told.stages[what])
    assert len(told.stages[what]) > 2
    assert told.stages[what][-1][0] <= (told.stages[what][-1][1] or 0)


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("graph kip-966 --replicas 1 --min-insync 1 --crashes 0 --json g.json", "states explored"),
        ("sample kip-966 --replicas 1 --min-insync 1 --count 1 --quiet", "random walks"),
        (
            "check kip-966 --replicas 2 --isr-changes 3 --property acked-survives --quiet --out r",
            "states, at most, looked at: do the bounds leave room?",
        ),
    ],
)
def test_other_verbs_count_what_they_do(command: str, what: str, told: Told) -> None:
    assert main(command.split()) == 0
    assert told.stages[what][0][0] <= told.stages[what][-1][0]
    assert None not in {total for _, total in told.stages[what]}
