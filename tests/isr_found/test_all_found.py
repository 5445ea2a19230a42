"""`insync found --all`: one verdict of all runs, what was expected of them, and the lines that GitHub shows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from insync_cli.conformance import annotations
from insync_cli.main import main
from isr_found import BUGS, Outcome, Reproduction, StoryRun

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
STORY = "insync.found.classes.Story"
ON_CLASSES = [bug for bug in BUGS.values() if "classes" in bug.places]
RUNS = sum(1 + len(bug.other_ways) for bug in ON_CLASSES)


def outcomes(monkeypatch: pytest.MonkeyPatch, usual: Outcome, **others: Outcome) -> None:
    """Every bug ends so, but for those named, in each of their ways; `-` of a name is `_`."""

    def stand_in(reproduction: Reproduction, *_: object) -> StoryRun:
        outcome = others.get(reproduction.bug.name.replace("-", "_"), usual)
        verdict = {"outcome": outcome.name, "story": STORY, "control": False, "release": "4.4.0"}
        program = (
            f"print('what happened'); print('verdict: ' + {json.dumps(verdict)!r}); raise SystemExit({outcome.value})"
        )
        return StoryRun([sys.executable, "-c", program], STORY, "4.4.0", control=False, patience=60)

    monkeypatch.setattr(Reproduction, "story_run", stand_in)


LOST, HELD, NOT_TRIED = Outcome.LOST, Outcome.HELD, Outcome.NOT_TRIED


@pytest.mark.parametrize(
    ("usual", "one", "words", "code", "verdict"),
    [
        (LOST, LOST, "", 12, "VIOLATED"),
        (HELD, LOST, "", 12, "VIOLATED"),
        (HELD, HELD, "", 0, "HOLDS"),
        (HELD, NOT_TRIED, "", 30, "UNKNOWN"),
        (LOST, NOT_TRIED, "", 12, "VIOLATED"),
        (HELD, HELD, "--expect fixed", 0, "AS EXPECTED"),
        (HELD, LOST, "--expect fixed", 22, "UNEXPECTED"),
        (HELD, NOT_TRIED, "--expect fixed", 30, "UNKNOWN"),
        (LOST, LOST, "--expect lost", 0, "AS EXPECTED"),
        (LOST, HELD, "--expect lost", 22, "UNEXPECTED"),
        (LOST, NOT_TRIED, "--expect lost", 30, "UNKNOWN"),
    ],
)
def test_one_run_decides_the_verdict_of_all(
    usual: Outcome,
    one: Outcome,
    words: str,
    code: int,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes(monkeypatch, usual, overtaken_request=one)
    assert main(["found", "--all", "--on", "classes", "--quiet", *words.split()]) == code
    line = capsys.readouterr().out.strip()
    assert line.startswith(f"insync found --all: {verdict} - of {RUNS} runs ")
    assert line.endswith("not shown on classes: removed-replica, removed-directory, raised-min-insync")


def test_every_bug_is_run_in_every_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outcomes(monkeypatch, HELD)
    assert main(["found", "--all", "--quiet", "--json", str(tmp_path / "found.json")]) == 0
    report = json.loads((tmp_path / "found.json").read_text())
    ran = [(run["bug"], run["way"], run["on"]) for run in report["runs"]]
    assert ran == [(b.name, way, b.places[0]) for b in BUGS.values() for way in (None, *b.other_ways)]
    assert report["not_shown_there"] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--all kept-positions", "--all runs every bug in every way, and takes no BUG"),
        ("--all --way fewer", "takes no --way"),
        ("--all --unit", "takes no --unit"),
        ("--expect fixed", "--expect goes with --all"),
        ("kept-positions --expect fixed", "--expect goes with --all"),
        ("--all --expect mended", "invalid choice: 'mended'"),
    ],
)
def test_what_does_not_go_together_is_refused(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found", *words.split()]) == 64
    assert sentence in capsys.readouterr().err


def test_github_is_shown_what_was_not_expected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes(monkeypatch, HELD, overtaken_request=LOST, kept_positions=NOT_TRIED)
    file = tmp_path / "found.json"
    assert main(["found", "--all", "--on", "classes", "--expect", "fixed", "--quiet", "--json", str(file)]) == 22
    capsys.readouterr()
    assert annotations.main([str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "::warning title=insync found%3A kept-positions::it could not be tried: what happened",
        "::error title=insync found%3A overtaken-request::LOST, and not as expected%0Awhat happened",
    ]


def test_github_is_shown_each_difference_and_its_way_is_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, trace = tmp_path / "conform.json", tmp_path / "difference.itf.json"
    naive = f"{sys.executable} {ROOT / 'docs' / 'examples' / 'naive_isr.py'}"
    words = ["--replicas", "2", "--crashes", "0", "--first", "--quiet", "--save", str(trace), "--json", str(report)]
    assert main(["conform", "--sut", naive, *words]) == 12
    assert annotations.main([str(report)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error")]
    assert "inconsistent state after 3 steps%0Ahigh_watermark[r1]: the model has 0, the system 1%0A" in line
    assert main(["show", str(trace), "--plain"]) == 0
    assert "kip-966, 4 steps" in capsys.readouterr().out
    cores = f"{sys.executable} -m isr_conform.core_sut"
    assert main(["conform", "--sut", cores, "--replicas", "2", "--sample", "1", "--quiet", "--save", str(trace)]) == 0
    assert not trace.exists(), "a difference of before is left"


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "insync/check/1"}'])
def test_what_is_no_report_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_text(text)
    assert annotations.main([str(tmp_path / "report.json")]) == 65
    assert "report.json" in capsys.readouterr().err


SCRIPT = ROOT / ".ci" / "kafka"
STAND_IN = """#!/usr/bin/env bash
# An insync whose verbs end as FOUND and CONFORM say.
while [ $# -gt 0 ]; do
    case $1 in
    conform) code=$CONFORM verb=conform text='{"schema": "insync/conform/1", "examples": []}' ;;
    found) code=$FOUND verb=found text='{"schema": "insync/found-all/1", "runs": []}' ;;
    --json) echo "$text" >"$2" ;;
    esac
    shift
done
echo "insync $verb: done"
exit "$code"
"""


@pytest.mark.parametrize(
    ("conform", "found", "code"),
    [(0, 0, 0), (20, 0, 0), (12, 0, 1), (0, 22, 1), (0, 30, 1), (30, 0, 1), (0, 12, 1), (23, 0, 1)],
)
def test_the_action_fails_where_a_verb_does(conform: int, found: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "kafka" / "libs").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "insync").write_text(STAND_IN)
    (tmp_path / "bin" / "insync").chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    summary = tmp_path / "summary.md"
    environment = os.environ | {
        "INSYNC": str(tmp_path / "bin" / "insync"),
        "CONFORM": str(conform),
        "FOUND": str(found),
        "GITHUB_STEP_SUMMARY": str(summary),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    words = [str(SCRIPT), str(tmp_path / "kafka"), "pull-request", "fixed", str(tmp_path / "out")]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert summary.read_text() == "```\ninsync conform: done\ninsync found: done\n```\n"


MAVEN = """#!/usr/bin/env bash
# A Maven whose test ends as RELEASED says or, with all changes, as CHANGED.
folder=$3/target/released ends=$RELEASED
[[ " $* " == *" -P"*fixed" "* ]] && folder=$3/target/fixed ends=$CHANGED
[[ " $* " == *" -Pkafka-4.4.0"* ]] && folder=${folder/target/target/4.4.0}
folder=$folder/surefire-reports
mkdir -p "$folder"
case $ends in
lost) echo "<failure>" >"$folder/TEST-ReplicationSimulationTest.xml" && exit 1 ;;
broken) exit 1 ;;
esac
"""


@pytest.mark.parametrize("version", ["4.3.1", "4.5.0-SNAPSHOT"])
@pytest.mark.parametrize(
    ("released", "changed", "expect", "code", "says"),
    [
        ("holds", "broken", "fixed", 0, "holds"),
        ("lost", "holds", "lost", 0, "lost, with all changes holds"),
        ("lost", "lost", "lost", 1, "lost, with all changes lost"),
        ("lost", "broken", "lost", 1, "lost, with all changes could not be tried"),
        ("lost", "holds", "fixed", 1, "lost"),
        ("holds", "holds", "lost", 1, "holds, with all changes holds"),
        ("broken", "holds", "fixed", 1, "could not be tried"),
        ("broken", "holds", "lost", 1, "could not be tried, with all changes holds"),
    ],
)
def test_the_action_knows_a_simulation_that_fails_from_one_that_does_not_run(
    released: str, changed: str, expect: str, code: int, says: str, version: str, tmp_path: Path
) -> None:
    (tmp_path / "kafka" / "libs").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name, text in (("insync", STAND_IN), ("mvn", MAVEN)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    environment = os.environ | {
        "INSYNC": str(tmp_path / "bin" / "insync"),
        "CONFORM": "0",
        "FOUND": "0",
        "RELEASED": released,
        "CHANGED": changed,
        "KAFKA_VERSION": version,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    words = [str(SCRIPT), "kafka", "pull-request", expect, "out"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == f"simulation of replication: {says}"
    assert (tmp_path / "out" / "reports" / "simulation.txt").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "four words are needed"),
        (["{home}", "pull-request", "mended", "out"], "'mended' is neither lost nor fixed"),
        (["{home}", "nightly", "fixed", "out"], "'nightly' is neither pull-request nor night"),
        (["{home}/libs", "night", "fixed", "out"], "has no libs/"),
    ],
)
def test_the_action_refuses_what_it_cannot_run(words: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    given = [word.format(home=tmp_path) for word in words]
    ran = subprocess.run([str(SCRIPT), *given], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, sentence in ran.stderr) == (64, True)
