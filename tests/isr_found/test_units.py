"""Unit tests for Kafka and tickets: complete, of one mind with each other, and each test fails for its own reason.

Without these a ticket shows a test that is not the one that runs, or a failure of any kind counts as the bug.
"""

import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from insync_cli.main import main
from isr_found import BUGS, JAVA_ROOT, Outcome, StoryRun
from isr_found.units import RUNNER, SOURCES, UNITS, UnitReproduction
from isr_kafka import Unavailable, jars, java, javac, maven
from isr_kafka.jars import UNIT_TESTS, unit_tests

FOLDER = JAVA_ROOT.parent
UPSTREAM = FOLDER / "upstream"
SIMULATION = "org.apache.kafka.controller.ReplicationSimulationTest"
HOLDS_AS_RELEASED = f"{SIMULATION}#testRestartWhileAlterPartitionIsSent"
SECTIONS = (
    "Steps",
    "Expected",
    "Actual",
    "Root cause",
    "Unit test",
    "Proposed change",
    "Compatibility",
    "What an operator can alert on",
    "Likelihood",
)
FIELDS = ("Type", "Priority", "Affects versions", "Components", "Environment", "Related")
BLOCK = re.compile(r"^```java\n(.*?)^```", re.MULTILINE | re.DOTALL)


def source(test: str) -> str:
    """The file of a test, `Class#method`."""
    return (SOURCES / (test.partition("#")[0].replace(".", "/") + ".java")).read_text(encoding="utf-8")


def ticket(bug: str) -> str:
    return (FOLDER / bug / "TICKET.md").read_text(encoding="utf-8")


def section(bug: str, name: str) -> str:
    return re.split(r"^## .*\n", ticket(bug).split(f"\n## {name}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_each_bug_has_unit_tests_and_a_fix_for_them() -> None:
    assert set(UNITS) == set(BUGS)
    assert all(units.fix in BUGS[bug].fixes for bug, units in UNITS.items())


@pytest.mark.parametrize("bug", BUGS)
def test_a_ticket_has_all_that_a_committer_asks_for(bug: str) -> None:
    lines = ticket(bug).splitlines()
    assert lines[0].startswith("# ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == list(SECTIONS)
    assert all(section(bug, name).strip() for name in SECTIONS)
    assert [field for field in FIELDS if not any(line.startswith(f"| {field} | ") for line in lines)] == []
    assert "metadata.version" in ticket(bug)
    assert BLOCK.search(section(bug, "Unit test"))
    assert "```" in section(bug, "Proposed change")
    assert sum(line.startswith("Found by ") for line in lines) == 1
    assert "](" not in ticket(bug), "a link into this repository leads nowhere in Apache's tracker"
    assert "insync" not in ticket(bug).lower().replace("min.insync.replicas", "")
    attached = re.findall(r"`(\w+)\.java`", section(bug, "Unit test"))
    assert set(attached) - {"ReplicationControlTestContext"} == {
        re.split(r"[.#]", test)[-2] for test in UNITS[bug].messages
    }


@pytest.mark.parametrize("bug", BUGS)
def test_the_unit_test_of_a_ticket_is_the_one_that_runs(bug: str) -> None:
    text = section(bug, "Unit test")
    sources = [source(test) for test in UNITS[bug].messages]
    for block in BLOCK.findall(text):
        for method in re.split(r"\n\n(?=/\*\*|@Test|private )", block.rstrip("\n")):
            assert any(textwrap.indent(method, "    ") in file for file in sources), method
    for test, message in UNITS[bug].messages.items():
        assert f" {test.partition('#')[2]}()" in source(test)
        assert f'"{message.partition(" ==> ")[0]}"' in source(test)
        assert f"    {message}\n" in text


def test_the_tickets_stand_in_an_order() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \d\. \[[^\]]*\]\(([a-z-]+)/TICKET\.md\)", page, re.MULTILINE)
    assert sorted(listed) == sorted(BUGS)


def test_the_project_makes_each_fix() -> None:
    project = (UPSTREAM / "pom.xml").read_text(encoding="utf-8")
    match = re.search(r"<fixes>(.*)</fixes>", project)
    assert match is not None
    assert sorted(match[1].split(",")) == sorted(units.fix for units in UNITS.values())
    assert f"<kafka.version>{UNIT_TESTS}</kafka.version>" in project


def test_the_patch_for_another_release_fits_the_simulation() -> None:
    patch = (UPSTREAM / "kafka-4.4.0.patch").read_text(encoding="utf-8")
    for file in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        name, _, rest = file.partition("\n")
        text = (SOURCES / name).read_text(encoding="utf-8")
        for hunk in re.split(r"^@@.*\n", rest, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            assert text.count("".join(line[1:] for line in lines if line[0] in " -")) == 1, hunk
            assert text.count("".join(line[1:] for line in lines if line[0] in " +")) == 0, hunk


@pytest.mark.parametrize("option", ["--control", "--on brokers", "--way fewer", "--kafka 4.4.0", "--kafka-home libs"])
def test_it_takes_no_other_kind_of_run(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["found", "removed-replica", "--unit", *option.split()]) == 64
    assert f"takes no {option.split()[0]}" in capsys.readouterr().err


def test_a_fix_of_another_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found", "removed-replica", "--unit", "--fix", "positions-reset"]) == 64
    assert "removed-replica has no fix 'positions-reset'" in capsys.readouterr().err


def test_without_java_they_could_not_be_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INSYNC_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["found", "kept-positions", "--unit"]) == 30
    assert "is missing" in capsys.readouterr().out


def verdict(outcome: str) -> str:
    words = f'"outcome": "{outcome}", "story": "{RUNNER}", "control": false, "release": "{UNIT_TESTS}"'
    return f"verdict: {{{words}}}"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("outcome", "ending", "code", "sentence"),
    [
        ("LOST", 41, 12, "VIOLATED - a unit test fails, for the reason that it names"),
        ("HELD", 42, 0, "HOLDS - its unit tests pass"),
        ("NOT_TRIED", 43, 30, "UNKNOWN - it could not be tried: a line"),
        ("LOST", 1, 30, "UNKNOWN - it could not be tried: its process said LOST and ended with exit code 1"),
        ("HELD", 0, 30, "UNKNOWN - it could not be tried: its process said HELD and ended with exit code 0"),
    ],
)
def test_the_command_answers_by_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: str,
    ending: int,
    code: int,
    sentence: str,
) -> None:
    program = f"print('a line'); print({verdict(outcome)!r}); raise SystemExit({ending})"

    def stand_in(*_: object) -> StoryRun:
        return StoryRun([sys.executable, "-c", program], RUNNER, UNIT_TESTS, control=False, patience=60)

    monkeypatch.setattr(UnitReproduction, "story_run", stand_in)
    assert main(["found", "kept-positions", "--unit", "--quiet"]) == code
    assert capsys.readouterr().out.strip() == f"insync found kept-positions --unit: {sentence}"


@pytest.fixture
def kafka() -> None:
    """Skips, visibly, where there is no Java, or no way to the jars."""
    try:
        _ = java(), javac(), maven(), jars(UNIT_TESTS), unit_tests()
    except Unavailable as missing:
        pytest.skip(str(missing))


def outcome_of(bug: str, fix: str | None = None) -> Outcome | None:
    reproduction = UnitReproduction(bug, fix)
    for line in reproduction.lines():
        print(line)
    return reproduction.outcome


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bug", BUGS)
def test_each_fails_for_its_reason_and_passes_with_the_fix(bug: str) -> None:
    assert outcome_of(bug) is Outcome.LOST
    assert outcome_of(bug, UNITS[bug].fix) is Outcome.HELD


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
def test_half_a_fix_is_none() -> None:
    assert outcome_of("raised-min-insync", "configuration-first") is Outcome.LOST


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
def test_another_reason_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    units = UNITS["overtaken-request"]
    other = attrs.evolve(units, messages=dict.fromkeys(units.messages, "another reason"))
    monkeypatch.setitem(UNITS, "overtaken-request", other)
    assert outcome_of("overtaken-request") is Outcome.NOT_TRIED


def results(folder: Path) -> Iterator[tuple[str, str | None]]:
    """The tests of Maven's reports, each with the message it failed with."""
    for report in folder.glob("surefire-reports/TEST-*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            problem = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
            name = f"{case.get('classname')}#{case.get('name')}"
            yield name, None if problem is None else problem.get("message")


def assert_stories(stories: dict[str, str | None]) -> None:
    """The random test of the simulation and a sequence of each bug fail with a story, and one sequence holds."""
    assert stories.pop(HOLDS_AS_RELEASED) is None
    assert len(stories) == 1 + len(set(BUGS) - {"removed-directory"}), "a broker of the simulation has one directory"
    assert [test for test, story in stories.items() if "VIOLATION" not in (story or "")] == []


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(3600)
def test_maven_alone_runs_them_all() -> None:
    messages = {test: message for units in UNITS.values() for test, message in units.messages.items()}
    command = [maven(), "-q", "-B", "clean", "test"]
    released = subprocess.run(command, cwd=UPSTREAM, capture_output=True, text=True)
    outcomes = dict(results(UPSTREAM / "target" / "released"))
    runs = [test for test in outcomes if test.startswith(f"{SIMULATION}#")]
    assert_stories({test: outcomes.pop(test) for test in runs})
    assert outcomes == messages, released.stdout[-4000:]
    assert released.returncode != 0
    fixed = subprocess.run([*command, "-Pfixed"], cwd=UPSTREAM, capture_output=True, text=True)
    assert fixed.returncode == 0, fixed.stdout[-4000:]
    assert dict(results(UPSTREAM / "target" / "fixed")) == dict.fromkeys([*messages, *runs])
    again = [maven(), "-q", "-B", "test", "-Pfixed", "-Dsimulation.seconds=10"]
    twice = subprocess.run(again, cwd=UPSTREAM, capture_output=True, text=True)
    assert twice.returncode == 0, f"a second run changes the classes of the first once more: {twice.stdout[-4000:]}"


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
def test_the_simulation_runs_on_another_release() -> None:
    command = [maven(), "-q", "-B", "clean", "test", "-Pkafka-4.4.0"]
    released = subprocess.run(command, cwd=UPSTREAM, capture_output=True, text=True)
    stories = dict(results(UPSTREAM / "target" / "4.4.0" / "released"))
    assert {test.partition("#")[0] for test in stories} == {SIMULATION}, released.stdout[-4000:]
    assert_stories(stories)
