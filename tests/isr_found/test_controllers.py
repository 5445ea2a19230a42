"""Faults of Kafka's quorum that lose no record: listed, refused politely, and shown on controllers."""

import json
import re
import sys
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_found import JAVA_ROOT, Outcome, StoryRun
from isr_found.controllers import FAULTS, Controllers, QuorumReproduction
from isr_kafka import Unavailable, jars, java, javac
from isr_kafka.node import NodeFiles


def test_each_fault_has_a_page_with_its_commands() -> None:
    for name in FAULTS:
        page = (JAVA_ROOT.parent / name / "README.md").read_text(encoding="utf-8")
        assert f"insync found {name} " in page
        assert f"insync found {name} --control" in page


SECTIONS = (
    "Steps",
    "Expected",
    "Actual",
    "Root cause",
    "Proposed change",
    "What an operator can alert on",
    "Likelihood",
    "Not tried",
)
FIELDS = ("Type", "Priority", "Affects versions", "Features", "Components", "Environment", "Related")


def releases_run(line: str) -> set[str]:
    """The releases that a line names before it speaks of byte code."""
    return set(re.findall(r"\d\.\d\.\d", line.partition(". In byte code")[0].partition(". 3.9 ")[0]))


@pytest.mark.parametrize("name", FAULTS)
def test_a_ticket_says_what_its_page_says_and_that_no_change_was_tried(name: str) -> None:
    ticket, page = ((JAVA_ROOT.parent / name / f"{which}.md").read_text("utf-8") for which in ("TICKET", "README"))
    lines = ticket.splitlines()
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == list(SECTIONS)
    assert [field for field in FIELDS if not any(line.startswith(f"| {field} | ") for line in lines)] == []
    (affected,) = (line for line in lines if line.startswith("| Affects versions | "))
    (told,) = (line for line in page.splitlines() if line.startswith("| affected | "))
    assert releases_run(affected) == releases_run(told) != set()
    assert "This was not tried." in ticket
    assert "There is no" in ticket
    assert "](" not in ticket, "a link into this repository leads nowhere in Apache's tracker"
    assert "insync" not in ticket.lower()
    listed = (JAVA_ROOT.parent / "README.md").read_text("utf-8")
    assert re.search(rf"^\| [A-D]\. \[{name}\]\({name}/TICKET.md\) \| `insync found {name}` \|", listed, re.MULTILINE)


def test_the_faults_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["found", "--json", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in FAULTS)
    report = json.loads((tmp_path / "found.json").read_text())
    assert [fault["name"] for fault in report["faults"]] == list(FAULTS)


@pytest.mark.parametrize(
    "words", ["--on brokers", "--way fewer", "--fixed", "--fix elr-of-replicas", "--unit", "--kafka-home ."]
)
def test_what_a_fault_has_not_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found", "removed-voter", *words.split()]) == 64
    option = words.split()[0]
    assert f"removed-voter is shown on controllers of a release, and takes no {option}" in capsys.readouterr().err


def test_a_name_that_is_nearly_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["found", "removed-voters"]) == 64
    assert "did you mean 'removed-voter'?" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("outcome", "code", "sentence"),
    [
        (Outcome.FAULT, 12, "VIOLATED - the process of the active controller ends"),
        (Outcome.HELD, 0, "HOLDS - it does not come to that"),
        (Outcome.NOT_TRIED, 30, "UNKNOWN - it could not be tried: what happened"),
    ],
)
def test_the_verdict_is_told(
    outcome: Outcome,
    code: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stand_in(*_: object) -> StoryRun:
        verdict = {"outcome": outcome.name, "story": "removed-voter", "control": False, "release": "4.4.0"}
        said = (
            f"print('what happened'); print('verdict: ' + {json.dumps(verdict)!r}); raise SystemExit({outcome.value})"
        )
        return StoryRun([sys.executable, "-c", said], "removed-voter", "4.4.0", control=False, patience=60)

    monkeypatch.setattr(QuorumReproduction, "story_run", stand_in)
    assert main(["found", "removed-voter", "--quiet"]) == code
    assert capsys.readouterr().out.strip() == f"insync found removed-voter: {sentence}"


@pytest.mark.sockets
def test_a_node_is_known_by_its_lines(tmp_path: Path) -> None:
    files = NodeFiles(release="4.4.0", folder=tmp_path, program="java", path="", noting=False)
    quorum = Controllers.of(2, tmp_path, files)
    for line in ("1: one two", "2: one two", "1: two three", "1: three"):
        quorum.tell(f"12:00:00 broker {line}")
    assert quorum.log_of(1, "two") == ["one two", "two three"]
    assert quorum.log_of(1, "two", since=1) == ["two three"]
    assert quorum.log_of(1, "two", "three") == ["two three"]
    assert not quorum.log_of(2, "three")


@pytest.fixture
def kafka() -> None:
    """Skips, visibly, where there is no Java or no way to Kafka's jars."""
    try:
        _ = java(), javac(), jars("4.4.0")
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.usefixtures("kafka")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_shows_on_controllers_and_not_without_its_condition(name: str, control: bool) -> None:
    reproduction = QuorumReproduction(FAULTS[name], "4.4.0", control)
    for line in reproduction.lines():
        print(line)
    assert reproduction.outcome is (Outcome.HELD if control else Outcome.FAULT)
