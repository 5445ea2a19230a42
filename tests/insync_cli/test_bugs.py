"""`insync bugs`: the list of the audit, by release, name and ticket."""

import json
from typing import cast

import pytest

from insync_cli.clusters.bugs import BugLine
from insync_cli.main import main
from insync_cli.tracefiles import tickets
from isr_audit.bugs import bugs, elsewhere


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, BugLine]:
    assert main(["bugs", *words, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    return {line["name"]: line for line in cast("list[BugLine]", report["bugs"])}


def test_without_a_release_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = lines(capsys)
    assert list(listed) == [bug.name for bug in bugs()]
    assert listed["hw-truncation-loss"]["releases"] == "from 0.8 to before 0.11 with ZooKeeper"
    assert listed["unnoticed-bounce-7235"]["releases"] == "from 0.8 to before 2.2.0 with ZooKeeper"
    assert listed["back-before-fenced-18106"]["releases"] == "from 3.3.0 to before 4.0.0 with KRaft"
    assert all(line["releases"] and not line["runs"] for line in listed.values())


@pytest.mark.parametrize(
    ("words", "has", "lacks"),
    [
        (["--kafka", "3.7.0"], ["recreated-replica-16234", "kept-positions", "fenced-rejoin"], ["removed-replica"]),
        (["--kafka", "3.7.1"], ["kept-positions"], ["recreated-replica-16234", "removed-replica"]),
        (["--kafka", "3.7.1", "--elr", "on"], ["removed-replica"], ["last-replica-standing", "fenced-rejoin"]),
        (["--kafka", "4.4.0"], ["removed-replica", "last-replica-standing"], ["fenced-rejoin"]),
        (["--kafka", "4.4.0", "--elr", "off"], ["last-replica-standing"], ["removed-replica"]),
        (["--kafka", "0.8.2"], ["jepsen-2013", "skipped-truncation-7164"], ["kept-positions"]),
    ],
)
def test_a_release_has_what_it_may_run(
    words: list[str], has: list[str], lacks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = lines(capsys, *words)
    assert set(has) <= set(listed)
    assert not set(lacks) & set(listed)


def test_what_has_to_run_is_said_where_not_all_has_the_bug(capsys: pytest.CaptureFixture[str]) -> None:
    listed = lines(capsys, "--kafka", "3.9.1")
    assert listed["fenced-rejoin"]["runs"] == ["with ZooKeeper"]
    assert listed["overtaken-request"]["runs"] == ["with KRaft, without eligible leader replicas"]
    assert listed["kept-positions"]["runs"] == []
    assert listed["kept-positions"]["evidence"].startswith("by reading from 0.9.0.0 on, run on ")


@pytest.mark.parametrize("case", [c for c in tickets() if any(k.startswith("KAFKA-") for k in tickets()[c])])
def test_the_ticket_of_a_case_finds_it_in_the_list_or_the_reason_that_it_is_not(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket = next(key for key in tickets()[case] if key.startswith("KAFKA-"))
    assert main(["bugs", ticket.lower(), "--plain"]) == 0
    assert case in capsys.readouterr().out
    assert case in {bug.name for bug in bugs()} | {c.name for c in elsewhere()}


def test_show_finds_the_case_of_a_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "kafka-16234", "--plain"]) == 0
    assert capsys.readouterr().out.startswith("kafka-16234: acked-survives VIOLATED")
    assert main(["show", "KAFKA-1211"]) == 65
    assert "KAFKA-1211 has 2 cases: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["KAFKA-99999"], "there is no bug 'KAFKA-99999' in the list, and no ticket"),
        (["kept-position"], "did you mean 'kept-positions'?"),
        (["--kafka", "4x"], "a release of Kafka such as 4.1.1, not 4x"),
        (["--kafka", "0.7"], "nothing is known of Kafka 0.7: the list begins with 0.8"),
        (["--elr", "on"], "--elr goes with --kafka"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bugs", *words]) == 64
    assert said in capsys.readouterr().err
