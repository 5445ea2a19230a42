"""The bugs that were found here in Apache Kafka: listed, refused politely, and reproduced on Kafka's own code."""

import subprocess
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_broker.core.messages import TopicPartition
from isr_cluster.kafka import write_decisions
from isr_found import BUGS, JAVA_ROOT, JVM, METADATA, Outcome, Reproduction, Trial, our_classes
from isr_kafka import Unavailable, classpath, jars, java, javac, tools
from isr_kafka.system import DRIVEN_RELEASES
from isr_validate import Level, Validation, read_traces, validate

FOLDER = JAVA_ROOT.parent
RELEASES = ("4.4.0", "4.3.1")
PLACES_OF = [(bug.name, place) for bug in BUGS.values() for place in bug.places]
FIXES = [(bug.name, fix) for bug in BUGS.values() for fix in bug.fixes]
FIXES_ON = [(bug.name, fix, place) for bug in BUGS.values() for fix in bug.fixes for place in bug.places]

QUESTIONS = ("What is lost", "Under which settings", "How one would notice")


@pytest.fixture
def kafka() -> None:
    """Skips, visibly, where there is no Java or no way to Kafka's jars."""
    try:
        _ = java(), javac(), tools(), [jars(release) for release in RELEASES]
    except Unavailable as missing:
        pytest.skip(str(missing))


def ways() -> list[tuple[str, str, str]]:
    return [(bug.name, way, place) for bug in BUGS.values() for way in bug.other_ways for place in bug.places]


def outcome_of(bug: str, trial: Trial) -> Outcome | None:
    reproduction = Reproduction(BUGS[bug], trial)
    for line in reproduction.lines():
        print(line)
    return reproduction.outcome


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_has_a_page_and_a_reproduction_in_each_place(bug: str) -> None:
    assert (FOLDER / bug / "README.md").is_file()
    for place in BUGS[bug].places:
        for scenario in (BUGS[bug].scenario, *BUGS[bug].other_ways.values()):
            assert (JAVA_ROOT / place / "insync" / "found" / place / f"{scenario}.java").is_file()


@pytest.mark.parametrize("fix", [fix for _, fix in FIXES])
def test_each_fix_is_one_that_our_java_can_make(fix: str) -> None:
    assert f'"{fix}"' in (JAVA_ROOT / "fixes" / "insync" / "found" / "fix" / "Fix.java").read_text(encoding="utf-8")


def test_the_bugs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found"]) == 0
    said = capsys.readouterr().out
    assert all(bug in said for bug in BUGS)


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_its_case_opens_with_what_an_operator_asks(capsys: pytest.CaptureFixture[str], bug: str) -> None:
    assert main(["show", bug, "--plain"]) == 0
    opening, _, story = capsys.readouterr().out.partition("\n\n")
    asked = [line.partition(":")[0] for line in opening.splitlines() if line.partition(":")[0] in QUESTIONS]
    assert asked == list(QUESTIONS)
    assert "VIOLATED" in story.splitlines()[0]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("kept-position", "did you mean 'kept-positions'?"),
        ("overtaken-request --fix positions-reset", "overtaken-request has no fix 'positions-reset'"),
        ("raised-min-insync --on classes", "raised-min-insync is shown on brokers only"),
        ("removed-replica --way fewr", "removed-replica has no way 'fewr'; did you mean 'fewer'?"),
        ("kept-positions --way fewer", "kept-positions has no way 'fewer'"),
        ("kept-positions --on cluster", "invalid choice: 'cluster'"),
    ],
)
def test_what_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], command: str, sentence: str) -> None:
    assert main(["found", *command.split()]) == 64
    assert sentence in capsys.readouterr().err


def test_without_java_it_could_not_be_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INSYNC_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["found", "kept-positions"]) == 30
    assert "is missing" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("bug", "on"), PLACES_OF)
def test_an_acknowledged_record_is_lost(bug: str, on: str, release: str) -> None:
    assert outcome_of(bug, Trial(on=on, release=release)) is Outcome.LOST


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("release", [release for release in DRIVEN_RELEASES if release not in RELEASES])
@pytest.mark.parametrize("bug", [bug for bug, on in PLACES_OF if on == "classes"])
def test_it_is_lost_on_the_classes_of_each_other_release(bug: str, release: str) -> None:
    """found/README.md says so, release by release."""
    for way in (None, *BUGS[bug].other_ways):
        assert outcome_of(bug, Trial(on="classes", release=release, way=way)) is Outcome.LOST


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("bug", "way", "on"), ways())
def test_it_is_lost_in_the_other_way_and_neither_without_the_condition_nor_with_a_fix(
    bug: str, way: str, on: str
) -> None:
    assert outcome_of(bug, Trial(on=on, way=way)) is Outcome.LOST
    assert outcome_of(bug, Trial(on=on, way=way, control=True)) is Outcome.HELD
    assert outcome_of(bug, Trial(on=on, way=way, fix=BUGS[bug].fixes[0])) is Outcome.HELD


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("bug", "on"), PLACES_OF)
def test_without_the_condition_it_is_not_lost(bug: str, on: str) -> None:
    assert outcome_of(bug, Trial(on=on, control=True)) is Outcome.HELD


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("bug", "fix", "on"), FIXES_ON)
def test_with_a_fix_it_is_not_lost(bug: str, fix: str, on: str) -> None:
    assert outcome_of(bug, Trial(on=on, fix=fix)) is Outcome.HELD


def trace_of(bug: str, folder: Path, control: bool) -> Validation:
    """What the validator says of the trace of the brokers of one run."""
    trial = Trial(on="brokers", release="4.4.0", control=control, traces=folder)
    assert outcome_of(bug, trial) is (Outcome.HELD if control else Outcome.LOST)
    settings = {"insync.design": "kip-966", "min.insync.replicas": "2"}
    write_decisions(folder / METADATA, folder, TopicPartition("t", 0), settings)
    return validate(
        read_traces((file.name, file.read_bytes()) for file in sorted(folder.glob("*.jsonl"))), Level.EVENTS
    )


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("bug", "place", "why", "differs"),
    [
        (
            "kept-positions",
            ("1.1", "watermark"),
            "the step leads elsewhere in the model",
            {"high_watermark": ("0", "1")},
        ),
        (
            "overtaken-request",
            ("controller.1", "decides"),
            "the controller accepts a proposal that it has refused",
            {"controller_isr": ("(1, 2)", "(1, 2, 3)")},
        ),
    ],
)
def test_the_trace_of_its_brokers_is_rejected(
    tmp_path: Path, bug: str, place: tuple[str, str], why: str, differs: dict[str, tuple[str, str]]
) -> None:
    no = trace_of(bug, tmp_path, control=False).rejected
    assert no is not None
    assert (no.life, no.action) == place
    assert no.why == why
    assert differs.items() <= no.differences.items()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bug", ["kept-positions", "overtaken-request"])
def test_without_the_condition_the_trace_is_accepted(tmp_path: Path, bug: str) -> None:
    done = trace_of(bug, tmp_path, control=True)
    assert done.accepted, done.rejected


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
def test_the_exit_code_says_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found", "kept-positions", "--quiet"]) == 12
    assert main(["found", "kept-positions", "--control", "--quiet"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "insync found kept-positions --on classes: VIOLATED - an acknowledged record is lost"
    assert said[1] == "insync found kept-positions --on classes --control: HOLDS - no acknowledged record is lost"


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("release", RELEASES)
def test_variations_of_what_one_delta_hides_come_out_as_the_page_says(release: str) -> None:
    path = classpath(our_classes("classes", release), jars(release))
    command = [java(), *JVM, "-cp", path, "insync.found.classes.Variations"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(": as expected") == 9
