"""`insync bugs`: the list of the audit, by release, name and ticket."""

import json
from typing import cast

import pytest

from insync_cli.clusters.audit_text import bug_lines
from insync_cli.clusters.bugs import BugLine
from insync_cli.main import main
from insync_cli.tracefiles import tickets
from isr_audit.bugs import bugs, elsewhere
from isr_audit.descriptions import read_description
from isr_audit.releases import release_of, running
from isr_audit.report import Audit


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


@pytest.mark.parametrize(
    ("release", "nearest"),
    [
        ("9.9.9", "4.4"),
        ("3.10.1", "3.9"),
        ("2.9", "2.8"),
        ("1.7.0", "1.1"),
        ("4.4.0", ""),
        ("3.9.1", ""),
        ("0.11.0", ""),
    ],
)
def test_a_release_that_is_not_known_is_said(release: str, nearest: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It was listed without a word."""
    assert main(["bugs", "--kafka", release, "--json", "-"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    says = f"Kafka {release} is not known, and {nearest} is the nearest that is: the list has what was not mended there"
    assert notes == ([says] if nearest else [])
    assert main(["bugs", "--kafka", release, "--plain"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (f"note: {says}" in said) == (f"of Kafka {release}, which is not known;" in said) == bool(nearest)


PLAIN = (
    "Topic: t\tTopicId: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
)


def audit_of(text: str, release: str | None = None) -> Audit:
    """An audit without rows, for its bugs."""
    cluster = read_description(text, "file")
    assert cluster is not None
    return Audit(cluster, running(cluster, release_of(release) if release is not None else None), ())


@pytest.mark.parametrize("release", ["3.3", "3.4.1", "3.5", "3.8", "3.9", "3.9.1"])
def test_an_audit_that_was_not_told_of_zookeeper_lists_the_bugs_of_either(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as `insync bugs`, with what has to run; one that was told lists its own."""
    listed = {k.bug.name: (k.evidence, list(k.worlds)) for k in audit_of(PLAIN, release).bugs}
    assert listed == {n: (line["evidence"], line["runs"]) for n, line in lines(capsys, "--kafka", release).items()}
    assert listed["forgotten-proposal"][1] == ["with KRaft, without eligible leader replicas"]
    told = {k.bug.name: k.worlds for k in audit_of(PLAIN + "broker.id=1\nzookeeper.connect=z:2181\n", release).bugs}
    assert "fenced-rejoin" in told
    assert not {"forgotten-proposal", "overtaken-request"} & told.keys()
    assert not any(told.values())


def test_an_audit_that_was_not_told_the_release_lists_all_bugs() -> None:
    """A release that was not told may be any; with eligible leader replicas it is taken to be 4.1 or later."""
    assert [k.bug for k in audit_of(PLAIN).bugs] == list(bugs())
    of_kraft = {k.bug.name for k in audit_of(PLAIN + "node.id=1\nprocess.roles=broker\n").bugs}
    assert {"forgotten-proposal", "back-before-fenced-18106", "raised-min-insync"} <= of_kraft
    assert not {"fenced-rejoin", "jepsen-2013"} & of_kraft


def test_the_words_of_an_audit_say_what_has_to_run() -> None:
    (line,) = (x for x in bug_lines(audit_of(PLAIN, "3.8")) if x.startswith("overtaken-request"))
    assert ", only with KRaft, without eligible leader replicas; insync found overtaken-request)" in line


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
        (["--kafka", "3.5", "--elr", "on"], "Kafka 3.5 has no eligible leader replicas, which begin with 3.7"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bugs", *words]) == 64
    assert said in capsys.readouterr().err
