"""What an operator sees first: the decision, in few lines, in colours, with the names of the own brokers.

Without these an answer would drown in its reasons again, or a story would speak of brokers that nobody has.
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from insync_cli.clusters import audit_short, audit_text
from insync_cli.clusters.audit import show
from insync_cli.main import main
from isr_audit.answers import read_table
from isr_audit.audit import MAY_BE_LOST, SURVIVES, AnswerSource, no_exploration
from isr_audit.descriptions import read_description
from isr_audit.questions import CRASH, DISK, NOTHING, POWER
from isr_audit.releases import release_of, running
from isr_audit.report import Audit, audit_now, with_rows

pytestmark = pytest.mark.long

ELR = (
    "Feature: metadata.version\tFinalizedVersionLevel: 4.1-IV1\tEpoch: 1\n"
    "Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: 1\tEpoch: 1\n"
)
STORED = read_table()


def topic(name: str, replicas: str, minimum: int, isr: str = "", more: str = "", count: int = 1) -> str:
    leader = (isr or replicas).split(",", maxsplit=1)[0]
    lines = [
        f"Topic: {name}\tPartitionCount: {count}\tReplicationFactor: {replicas.count(',') + 1}\t"
        f"Configs: min.insync.replicas={minimum}{more}"
    ]
    lines += [
        f"\tTopic: {name}\tPartition: {n}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr or replicas}\tElr: "
        for n in range(count)
    ]
    return "\n".join(lines) + "\n"


def audit_of(text: str, release: str | None = None, elr: bool | None = None) -> Audit:
    cluster = read_description(text, "file")
    assert cluster is not None
    runs = running(cluster, release_of(release) if release else None, elr)
    return with_rows(audit_now(cluster, runs), AnswerSource(list(STORED), no_exploration))


def printed(audit: Audit, width: int = 110, *, coloured: bool = False) -> str:
    out = Console(file=StringIO(), width=width, highlight=False, markup=False, force_terminal=coloured,
                  color_system="standard" if coloured else None)  # fmt: skip
    show(out, audit)
    assert isinstance(out.file, StringIO)
    return out.file.getvalue()


THREE = ELR + topic("payments", "4,5,6", 2) + topic("clicks", "5,4,6", 1) + topic("views", "6,5,4", 1)


def test_three_topics_are_twelve_lines_and_the_decision_is_the_first() -> None:
    lines = printed(audit_of(THREE)).splitlines()
    assert len(lines) <= 12
    assert lines[0] == "AT RISK: 2 of 3 topics may lose records by one failure"
    (clicks,) = (line for line in lines if line.startswith("clicks"))
    assert clicks.split("  ")[0] == "clicks, views"
    assert clicks.endswith("min.insync.replicas=2")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (ELR + topic("t", "1,2,3", 2), "FINE: by the model"),
        (ELR + topic("t", "1,2,3", 1), "AT RISK: 1 of 1 topic"),
        (ELR + topic("t", "1,2,3", 2, isr="1,2"), "AT RISK: 0 of 1 topic may lose records by one failure; 1 partition"),
        (ELR + topic("t", "1,2,3", 2, isr="1"), "BROKEN NOW: 1 partition without a leader, or refusing writes"),
        (ELR + topic("t", "1,2,3,4", 2), "FINE: by the model"),
        (ELR + topic("t", "1,2,3,4,5,6", 2), "UNKNOWN: whether one failure loses something was not decided of t"),
        (ELR + topic("t", "1,2,3", 2).splitlines()[1], "UNKNOWN: not every partition was told"),
    ],
)
def test_the_decision_is_that_of_the_exit_code(tmp_path: Path, text: str, begins: str) -> None:
    audit = audit_of(text)
    assert printed(audit).startswith(begins)
    words = {0: "FINE", 1: "AT RISK", 2: "BROKEN NOW", 20: "UNKNOWN"}
    assert begins.startswith(words[audit_short.exit_code(audit)])


@pytest.mark.parametrize("width", [80, 110, 200])
def test_however_much_is_wrong_it_is_25_lines(width: int) -> None:
    many = "".join(topic(f"a-topic-with-a-long-name-{n}", "1,2,3", 1 + n % 3, "1,2", f",flush.ms={n}", 9)
                   for n in range(60))  # fmt: skip
    missing = "Topic: gone\tPartition: 1\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    odd = "".join(topic(f"r{n}", ",".join(map(str, range(1, n + 1))), n) for n in range(1, 6))
    for text in (many, many + missing + odd, ELR + many + odd, odd):
        said = printed(audit_of(text), width)
        assert len(said.splitlines()) <= 25, said


def test_partitions_with_one_trouble_are_one_line_with_the_broker_that_is_missing() -> None:
    said = printed(audit_of(ELR + topic("t", "1,2,3", 2, isr="1,2", count=300)))
    assert "UNDER-REPLICATED 300 partitions: t-0, t-1, t-2 and 297 more; broker 3 is missing from 300" in said


def test_what_is_off_has_its_colour() -> None:
    offline = topic("t", "1,2,3", 1).replace("Leader: 1", "Leader: none")
    said = printed(audit_of(ELR + offline), coloured=True)
    red = r"\x1b\[1;31m"
    assert re.search(rf"{red}BROKEN NOW", said)
    assert re.search(rf"{red}OFFLINE\x1b\[0m t-0", said)
    assert re.search(rf"{red}MAY BE LOST", said)
    assert re.search(r"\x1b\[32msurvives", said)


def test_one_line_says_what_is_not_judged() -> None:
    said = printed(audit_of(THREE))
    assert said.count("Not judged: ") == 1
    for word in ("clients", "transactions", "tiered storage", "compaction"):
        assert word in said


def test_a_story_is_told_of_a_partition_that_there_is_and_says_what_it_leaves_out() -> None:
    audit = audit_of(THREE)
    row = next(r for r in audit.rows if r.topics[0].name == "clicks")
    line = row.line("all", POWER)
    assert line.answer is not None
    steps = audit_text.steps_told(line.answer, audit_text.example_of(row))
    text = " ".join(steps)
    assert "roker 5 lost power" in text, "who leads clicks-0"
    assert not re.search(r"\br\d\b", text)
    told = [int(m[1]) for m in (re.match(r"T(\d+): ", s) for s in steps) if m]
    for before, after, sentence in zip([0, *told], told, steps, strict=False):
        gap = after - before > 1
        assert gap == ("left out" in sentence), sentence
    assert "told of clicks-0" in audit_text.loss_title(row, line)


def test_acks_1_is_lost_even_if_nothing_fails() -> None:
    audit = audit_of(THREE)
    (row,) = (r for r in audit.rows if r.topics[0].name == "payments")
    cells = list(audit_text.table(row))
    assert cells[0][:2] == ("acks=all", SURVIVES)
    assert cells[0][2].startswith("if nothing fails")
    lost = next(c for c in cells if c[0] == "acks=1" and c[1] == MAY_BE_LOST)
    assert lost[2].startswith("even if nothing fails")
    assert "With acks=1 records of all topics may be lost even if nothing fails" in printed(audit)


def test_a_lost_disk_is_a_fault_of_its_own_and_flushing_does_not_help() -> None:
    for replicas, minimum, flush, lost in (("1", 1, ",flush.messages=1", True), ("1,2,3", 2, "", False),
                                           ("1,2,3", 1, ",flush.messages=1", True)):  # fmt: skip
        (row,) = audit_of(ELR + topic("t", replicas, minimum, more=flush)).rows
        assert row.line("all", DISK).verdict == (MAY_BE_LOST if lost else SURVIVES)
        if flush:
            assert row.line("all", POWER).verdict == SURVIVES
        assert row.at_risk is lost


def test_four_and_five_replicas_have_verdicts_where_a_proof_or_a_loss_is_known() -> None:
    for replicas, minimum in (("1,2,3,4", 2), ("1,2,3,4,5", 3), ("1,2,3,4,5", 4)):
        (row,) = audit_of(ELR + topic("t", replicas, minimum)).rows
        assert {row.line("all", fault).verdict for fault in (NOTHING, CRASH)} == {SURVIVES}
        assert "proved for any number of replicas" in row.line("all", CRASH).because
    (loose,) = audit_of(ELR + topic("t", "1,2,3,4,5", 1)).rows
    assert loose.line("all", POWER).verdict == MAY_BE_LOST
    (unclean,) = audit_of(ELR + topic("t", "1,2,3,4,5,6", 3, more=",unclean.leader.election.enable=true")).rows
    assert unclean.line("all", CRASH).verdict not in (SURVIVES, MAY_BE_LOST), "the proof is without unclean election"


def test_details_and_commands_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_text(THREE, encoding="utf-8")
    command = ["audit", "--describe", str(tmp_path / "t.txt")]
    assert main(command) == 1
    short, _, ending = capsys.readouterr().out.strip().rpartition("\n")
    assert "$ " not in short
    assert main([*command, "--commands"]) == 1
    assert "$ kafka-configs.sh" in capsys.readouterr().out
    assert main([*command, "--details"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(short)
    assert said.strip().endswith(ending)
    assert "$ insync check" in said
