"""Manners on long work: what is stopped keeps what it has, nothing is left running, and nothing good is overwritten.

Without these, Ctrl-C after an hour would lose the hour's results, leave workers behind that hold the processors, or
let a partial matrix replace a whole one.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from insync_cli import options, registry
from insync_cli.main import main
from insync_cli.model import guards
from insync_cli.progress import Ticker, interruptible
from insync_cli.review import matrix
from insync_cli.review import report as review
from insync_cli.workers import forks
from isr_report.matrix.grid import read_matrix

pytestmark = pytest.mark.processes

TOP = Path(__file__).resolve().parents[2]
MATRIX = ["matrix", "--design", "kip-966", "--fault", "crash"]


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is no checkout."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """The exit code of a command that somebody stops by Ctrl-C when it tells of its progress for the third time.

    Who is started in the background of a shell ignores SIGINT, and so would the command; here it is heard.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    told = itertools.count(1)
    count = Ticker.count

    def tell(
        self: Ticker, done: int, total: int | None, what: str, *, grows: bool = False, share: float | None = None
    ) -> None:
        count(self, done, total, what, grows=grows, share=share)
        if next(told) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Ticker, "count", tell)
    yield lambda *words: main(words)
    signal.signal(signal.SIGINT, before)


def report(file: Path) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(file.read_text()))


# What is stopped keeps what it has


def test_simulate_reports_the_seeds_that_it_had(
    away: Path, stopped: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stopped("simulate", "--seeds", "0..99999", "--json", "out.json") == 20
    seeds = cast("int", report(away / "out.json")["seeds"])
    assert 0 < seeds < 100_000
    assert f"stopped after {seeds} of 100000 seeds" in capsys.readouterr().out


def test_replay_reports_the_edges_that_it_had(
    away: Path, stopped: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stopped("replay", "kip-966", "--crashes", "2", "--quiet", "--json", "out.json") == 20
    done = report(away / "out.json")
    assert done["complete"] is False
    assert cast("int", done["states"]) > 0
    assert "stopped by Ctrl-C" in capsys.readouterr().out


def test_conform_reports_the_edges_that_it_had(
    away: Path, stopped: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    sut = f"{sys.executable} -m isr_conform.core_sut"
    assert stopped("conform", "--sut", sut, "--quiet", "--json", "out.json") == 20
    done = report(away / "out.json")
    assert done["complete"] is False
    assert cast("int", done["steps"]) > 0
    assert "stopped by Ctrl-C" in capsys.readouterr().out


def test_traces_keeps_the_parts_that_were_made(
    away: Path, stopped: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    words = [
        "traces",
        "kip-966",
        "--count",
        "40",
        "--steps",
        "4",
        "--parts",
        "40",
        "--out",
        "made",
        "--json",
        "out.json",
    ]
    assert stopped(*words) == 20
    done = report(away / "out.json")
    assert done["complete"] is False
    assert cast("int", done["traces"]) > 0
    assert "after 3 of 40 parts made" in capsys.readouterr().out


def test_prove_reports_the_obligations_that_it_had(away: Path, stopped: Callable[..., int]) -> None:
    small = "--replicas 2 --log 1 --records 1 --epochs 1 --isr-changes 2 --crashes 0 --sessions-lost 0 --consumers 0"
    words = ["--only", "type-ok", "--workers", "1", "--look", "0", "--out", "proof", *small.split()]
    assert stopped("prove", "kip-966", *words) == 20
    verdicts = {
        line["verdict"] for line in cast("list[dict[str, str]]", report(away / "proof/prove.json")["obligations"])
    }
    assert "unknown" in verdicts


def test_matrix_keeps_the_cells_that_it_had_and_the_matrix_that_was_there(
    away: Path, stopped: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path("runs/matrix/matrix.json")
    whole.parent.mkdir(parents=True)
    whole.write_text('{"a matrix": "of yesterday"}')
    assert stopped(*MATRIX, "--quiet", "--workers", "1", "--max-states", "300") == 20
    assert whole.read_text() == '{"a matrix": "of yesterday"}'
    found = report(whole.with_name("matrix.partial.json"))
    assert len(cast("list[object]", found["cells"])) > 0
    assert "which are in runs/matrix/matrix.partial.json" in capsys.readouterr().err


# Nothing good is overwritten, and nothing is begun that must fail


def test_a_part_of_a_matrix_does_not_replace_a_whole_one(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MATRIX, "--fault", "none", "--max-states", "100", "--quiet", "--workers", "1"]) in (0, 20)
    before = Path("runs/matrix/matrix.json").read_text()
    capsys.readouterr()
    assert main(MATRIX) == 64
    assert "that this run would not make, and would be replaced; choose another folder" in capsys.readouterr().err
    assert Path("runs/matrix/matrix.json").read_text() == before
    assert len(read_matrix(Path("runs/matrix/matrix.json"))["cells"]) == 16


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--cases", "nowhere"], 64, "there is no folder nowhere"),
        (["--cases", str(TOP / "docs")], 65, "cases.toml: cannot be read"),
        (
            ["--cases", str(TOP / "counterexamples" / "cases"), "--include", "gone.json"],
            65,
            "gone.json: cannot be read",
        ),
        (
            ["--cases", str(TOP / "counterexamples" / "cases"), "--since", "gone"],
            65,
            "gone/matrix.json: cannot be read",
        ),
        (["--quick", "--matrix", "gone"], 64, "with --matrix there is one already"),
    ],
)
def test_a_report_checks_its_input_before_it_begins(
    away: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    says: str,
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr("insync_cli.review.matrix.make_matrix", work)
    assert main(["report", *words]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert list(away.iterdir()) == []


def test_a_quick_report_is_of_two_designs(away: Path) -> None:
    words = ["--quick", "--cases", str(TOP / "counterexamples" / "cases")]
    read = review.inputs(options.read_options(review.Options, review.USAGE, words))
    assert any(cell.constants["replicas"] == 3 for cell, _ in matrix.questions(read.plan))
    assert read.plan.designs == ("kafka-0.8", "kip-966")
    assert len(matrix.questions(read.plan)) == 30
    assert {case.design for case in read.cases} == {"kafka-0.8", "kip-966"}


def test_mutate_knows_what_is_on_file_from_anywhere(away: Path) -> None:
    assert guards.redundant(None, "kip-966")
    assert guards.choices(None, registry.design_named("kip-966")) != [{}]


def test_mutate_outside_a_checkout_says_what_it_does_not_know(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guards, "CHECKOUT", desk)
    assert main(["mutate", "careful", "--workers", "1", "--quiet"]) == 22
    assert "there is no docs/redundant-guards.toml here: nothing is taken from it" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["replay", "coverage"])
def test_a_design_that_the_broker_does_not_have_is_refused_in_a_sentence(
    away: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert main([verb, "majority", "--replicas", "3"]) == 65
    said = capsys.readouterr().err
    assert "the cores are compared with kip-966, " in said
    assert said.count("\n") == 1


def test_a_full_disk_is_a_sentence(away: Path) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no /dev/full")
    for command in ("designs > /dev/full", "designs --json /dev/full", "show jepsen-2013 --html /dev/full"):
        done = subprocess.run(
            f"{sys.executable} -m insync_cli.main {command}", shell=True, capture_output=True, text=True, env=paths()
        )
        assert done.returncode == 64
        assert done.stderr.lower().endswith("no space left on device\n")
        assert done.stderr.count("\n") == 1
    assert Path("/dev/full").is_char_device(), "a device is written to, not replaced"


# Traces


def test_a_case_is_shown_by_its_name(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "jepsen-2013"]) == 0
    assert "LOST: record 0 was acknowledged" in capsys.readouterr().out
    assert main(["explain", "jepsen-2013"]) == 0
    capsys.readouterr()
    assert main(["show", "jepsen-2014"]) == 65
    assert "no case of this name; did you mean 'jepsen-2013'?" in capsys.readouterr().err


def test_a_tampered_trace_is_shown_by_nobody(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (TOP / "counterexamples/cases/jepsen-2013/trace.itf.json").read_text()
    before, log, after = text.rpartition('"committed": [0]')
    assert log, "the last state has it"
    (away / "t.itf.json").write_text(before + '"committed": []' + after)
    for verb in ("explain", "minimise", "show"):
        assert main([verb, "t.itf.json"]) == 65
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("insync: t.itf.json: ")
    assert main(["show", "t.itf.json", "--html", "t.html"]) == 65
    assert not (away / "t.html").exists()


# No worker outlives its verb


def paths() -> dict[str, str]:
    roots = ("spec", "engines", "impl", "clusters", "refinement", "counterexamples", "pipeline", "insync")
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(TOP / root) for root in roots)}


def family(process: subprocess.Popen[bytes]) -> set[int]:
    """The processes of its session, itself included."""
    found = set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == process.pid and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def waited(for_what: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if for_what():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for processes in /proc")
@pytest.mark.parametrize("verb", ["matrix", "report"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_worker_is_left_behind(away: Path, verb: str, number: signal.Signals) -> None:
    small = {"matrix": MATRIX[1:], "report": ["--quick", "--cases", str(TOP / "counterexamples" / "cases")]}
    command = [sys.executable, "-m", "insync_cli.main", verb, "--out", "out", "--workers", "3", "--quiet", *small[verb]]
    process = subprocess.Popen(
        command, env=paths(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        assert waited(lambda: len(family(process)) == 4, 60), "three workers"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert waited(lambda: not family(process), 5), "somebody is left"
        if number is not signal.SIGKILL:
            assert process.returncode == 20
            assert b"stopped after " in said
            assert list((away / "out").rglob("matrix.partial.json"))
    finally:
        for child in family(process):
            os.kill(child, signal.SIGKILL)
        shutil.rmtree(away / "out", ignore_errors=True)


def test_a_signal_that_comes_while_workers_are_made_is_not_lost() -> None:
    """Without this a TERM in the first moments of `insync matrix` is dropped, and the run goes on to its end."""
    armed = [signal.SIGTERM]

    def comes() -> None:
        if armed:
            signal.raise_signal(armed.pop())

    os.register_at_fork(after_in_parent=comes)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), interruptible(), forks(2) as pool:
        pool.submit(time.sleep, 0.01).result()
    assert not armed
