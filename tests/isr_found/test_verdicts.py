"""What `insync found` takes for a verdict: a line and an exit code that are of one mind, and nothing else.

Without it a JVM that ends as a JVM does, of whatever, could be read as a lost record, or as one that is not.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_found import BUGS, JAVA_ROOT, Outcome, Reproduction, StoryRun, Trial
from isr_kafka import Unavailable, jars, java, javac, tools

pytestmark = pytest.mark.processes

STORY = "insync.found.classes.KeptPositions"


def verdict(outcome: str, story: str = STORY, control: bool = False, release: str = "4.4.0") -> str:
    words = {"outcome": outcome, "story": story, "control": control, "release": release}
    return f"print('verdict: ' + {json.dumps(words)!r}, flush=True)"


def ends(code: int) -> str:
    return f"raise SystemExit({code})"


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
LOST, HELD, NOT_TRIED = verdict("LOST"), verdict("HELD"), verdict("NOT_TRIED")

VERDICTS = {
    "lost": ([LOST, ends(41)], Outcome.LOST),
    "held": ([HELD, ends(42)], Outcome.HELD),
    "not tried": ([NOT_TRIED, ends(43)], Outcome.NOT_TRIED),
}

NO_VERDICTS = {
    "throws": (["raise RuntimeError('no such step')"], "exit code 1 and without a verdict: RuntimeError: no such step"),
    "is killed": ([KILLED], "signal 9 and without a verdict"),
    "lost, then killed": ([LOST, KILLED], "said LOST and ended with signal 9"),
    "lost, exit 1": ([LOST, ends(1)], "said LOST and ended with exit code 1"),
    "lost, exit 0": ([LOST, ends(0)], "said LOST and ended with exit code 0"),
    "lost, exit of held": ([LOST, ends(42)], "said LOST and ended with exit code 42"),
    "held, exit 0": ([HELD, ends(0)], "said HELD and ended with exit code 0"),
    "held, then throws": ([HELD, "raise OSError('gone')"], "said HELD and ended with exit code 1: OSError: gone"),
    "lost, then throws": ([LOST, "raise OSError('gone')"], "said LOST and ended with exit code 1: OSError: gone"),
    "prints nothing": ([ends(0)], "exit code 0 and without a verdict"),
    "prints nothing, exit of lost": ([ends(41)], "exit code 41 and without a verdict"),
    "prints nothing, exit of held": ([ends(42)], "exit code 42 and without a verdict"),
    "exits of before": (["print('LOST: the record')", ends(1)], "exit code 1 and without a verdict"),
    "says it and goes on": ([LOST, "print('one more step')", ends(41)], "exit code 41 and without a verdict"),
    "says two": ([LOST, HELD, "print()", ends(42)], "exit code 42 and without a verdict"),
    "says it on stderr": (["import sys; sys.stdout = sys.stderr", LOST, ends(41)], "without a verdict"),
    "another story": ([verdict("LOST", story="insync.found.classes.OvertakenRequest"), ends(41)], "is not that of"),
    "another release": ([verdict("LOST", release="4.3.1"), ends(41)], "is not that of"),
    "the control": ([verdict("LOST", control=True), ends(41)], "is not that of"),
    "no JSON": (["print('verdict: LOST')", ends(41)], "cannot be read"),
    "another word": ([verdict("VIOLATED"), ends(41)], "is not that of"),
    "times out": (["import time", "print('a step', flush=True)", "time.sleep(60)"], "did not end within 1 s"),
    "times out after it": ([LOST, "import time", "time.sleep(60)"], "did not end within 1 s"),
}


def run_of(lines: list[str]) -> StoryRun:
    patience = 1 if "time.sleep(60)" in lines else 60
    return StoryRun([sys.executable, "-c", "\n".join(lines)], STORY, "4.4.0", control=False, patience=patience)


@pytest.mark.parametrize("ending", VERDICTS)
def test_a_line_and_an_exit_code_that_agree_are_the_verdict(ending: str) -> None:
    lines, outcome = VERDICTS[ending]
    run = run_of(["print('a step')", *lines])
    assert list(run.lines()) == ["a step"]
    assert run.outcome is outcome


@pytest.mark.parametrize("ending", NO_VERDICTS)
def test_whatever_else_is_no_verdict(ending: str) -> None:
    lines, sentence = NO_VERDICTS[ending]
    run = run_of(lines)
    with pytest.raises(Unavailable, match=sentence):
        list(run.lines())
    assert run.outcome is None


ANSWERS = {
    "lost": (12, "VIOLATED - an acknowledged record is lost"),
    "held": (0, "HOLDS - no acknowledged record is lost"),
    "not tried": (30, "UNKNOWN - it could not be tried: r2 did not come"),
    "throws": (30, "UNKNOWN - it could not be tried: its process ended with exit code 1 and without a verdict"),
    "lost, exit 1": (30, "UNKNOWN - it could not be tried: its process said LOST and ended with exit code 1"),
    "held, exit 0": (30, "UNKNOWN - it could not be tried: its process said HELD and ended with exit code 0"),
}


@pytest.mark.parametrize("ending", ANSWERS)
def test_the_command_answers_so(
    ending: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = VERDICTS[ending][0] if ending in VERDICTS else NO_VERDICTS[ending][0]
    code, sentence = ANSWERS[ending]

    def stand_in(*_: object) -> StoryRun:
        return run_of(["print('NOT TRIED: r2 did not come')", *lines])

    monkeypatch.setattr(Reproduction, "story_run", stand_in)
    assert main(["found", "kept-positions", "--quiet"]) == code
    said = capsys.readouterr().out
    assert sentence.replace("r2 did", "NOT TRIED: r2 did") in said


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., StoryRun]:
    """A story of Java that ends as one says."""
    try:
        compiler, runtime = javac(), java()
    except Unavailable as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("endings")
    sources = [JAVA_ROOT / "common", Path(__file__).parent / "java"]
    files = [str(path) for source in sources for path in source.rglob("*.java")]
    subprocess.run([compiler, "-d", str(folder), *files], check=True)
    (folder / "kafka").mkdir()
    (folder / "kafka" / "kafka-version.properties").write_text("version=4.4.0\n")

    def ending(name: str, *more: str, option: str = "-Xmx32m", path: Path = folder) -> StoryRun:
        command = [runtime, option, "-Xmx32m", "-cp", str(path), "insync.found.Endings", name, *more]
        return StoryRun(command, "insync.found.Endings", "4.4.0", control=False, patience=60)

    return ending


@pytest.mark.parametrize(
    ("name", "outcome"), [("lost", Outcome.LOST), ("held", Outcome.HELD), ("not tried", Outcome.NOT_TRIED)]
)
def test_a_story_of_java_says_its_verdict(endings: Callable[..., StoryRun], name: str, outcome: Outcome) -> None:
    run = endings(name)
    list(run.lines())
    assert run.outcome is outcome


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("throws", "exit code 1 and without a verdict: .*IllegalStateException: no such step"),
        ("lost, then throws", "exit code 1 and without a verdict: .*IllegalStateException: at the end"),
        ("fails", "exit code 1 and without a verdict: .*StackOverflowError"),
        ("killed", "exit code 137 and without a verdict"),
        ("ends early", "exit code 0 and without a verdict"),
    ],
)
def test_a_story_of_java_that_ends_otherwise_says_none(
    endings: Callable[..., StoryRun], name: str, sentence: str
) -> None:
    with pytest.raises(Unavailable, match=sentence):
        list(endings(name).lines())


def test_a_temporary_folder_that_cannot_be_written_is_no_verdict(endings: Callable[..., StoryRun]) -> None:
    with pytest.raises(Unavailable, match=r"exit code 1 and without a verdict: .*Exception"):
        list(endings("no folder", option="-Djava.io.tmpdir=/dev/null").lines())


def test_a_class_path_without_the_story_is_no_verdict(endings: Callable[..., StoryRun], tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"exit code 1 and without a verdict: .*ClassNotFoundException"):
        list(endings("lost", path=tmp_path).lines())


def test_a_folder_that_vanishes_while_it_is_removed_takes_no_verdict_away(
    endings: Callable[..., StoryRun], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "log").write_text("")
    for folder in (tmp_path / "data", tmp_path / "data"):  # the second time it is gone
        run = endings("folder has vanished", str(folder))
        list(run.lines())
        assert run.outcome is Outcome.HELD
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("broken", ["jar", "folder"])
@pytest.mark.parametrize("on", ["classes", "brokers"])
def test_kafka_without_a_jar_or_a_folder_is_no_verdict(on: str, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        _ = java(), javac(), tools(), jars()
    except Unavailable as missing:
        pytest.skip(str(missing))
    whole = Reproduction.story_run

    def without(self: Reproduction, stack: object) -> StoryRun:
        run = whole(self, stack)  # type: ignore[arg-type]
        command = list(run.command)
        place = command.index("-cp") + 1
        if broken == "jar":
            parts = command[place].split(os.pathsep)
            command[place] = os.pathsep.join(part for part in parts if "kafka-metadata" not in part)
        else:
            command[1:1] = ["-Djava.io.tmpdir=/dev/null"]
            command = ["-Dinsync.folder=/dev/null" if "-Dinsync.folder" in word else word for word in command]
        run.command = command
        return run

    monkeypatch.setattr(Reproduction, "story_run", without)
    reproduction = Reproduction(BUGS["kept-positions"], Trial(on=on))
    with pytest.raises(Unavailable, match=r"exit code 1 and without a verdict: .*(Exception|Error)"):
        list(reproduction.lines())
    assert reproduction.outcome is None
