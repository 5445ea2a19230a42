"""`insync drill` from end to end: the decision, exit codes for scripts, files, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from insync_cli.main import main

pytestmark = pytest.mark.long

TOPICS = """\
Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: 11\tReplicas: 11,12,13\tIsr: 11,12,13\tElr: \tLastKnownElr:\x20
"""


def drill(tmp_path: Path, *more: str, topics: str = TOPICS) -> int:
    file = tmp_path / "topics.txt"
    file.write_text(topics, encoding="utf-8")
    return main(["drill", "--describe", str(file), "--kafka", "4.1", "--elr", "on", "--plain", *more])


@pytest.mark.parametrize(
    ("steps", "code", "decision"),
    [
        (("stop", "13"), 0, "YES: no acknowledged record of 1 partition is lost"),
        (("stop 13; stop 12",), 1, "NOT NOW: nothing is lost"),
        (("destroy 11 12 13",), 12, "NO: acknowledged records of 1 of 1 partition"),
        (("drain 11",), 20, "UNKNOWN: 1 of 1 partition"),
        (("controller stop 1",), 20, "UNKNOWN: 1 of 1 partition"),
        (("partition 13; heal 13",), 0, "YES: no acknowledged record of 1 partition is lost"),
    ],
)
def test_the_decision_comes_first_and_is_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: tuple[str, ...], code: int, decision: str
) -> None:
    assert drill(tmp_path, *steps) == code
    text = capsys.readouterr()
    assert text.err == ""
    assert text.out.startswith(decision)
    assert len(text.out.splitlines()) <= 25


GAP = "1 partition has no leader until the session of a broker ends (broker.session.timeout.ms, 9 s by default): t-0"


@pytest.mark.parametrize(
    ("steps", "code", "is_said"),
    [
        ("kill 11", 0, True),
        ("destroy 11", 0, True),
        ("pause 11", 0, True),
        ("stop 11", 0, False),
        ("kill 13", 0, False),
        ("destroy 11 12 13", 12, False),
    ],
)
def test_who_has_no_leader_until_a_session_ends_is_said_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: str, code: int, *, is_said: bool
) -> None:
    """It was "all take writes throughout" of `kill 11`."""
    files = [tmp_path / f"drill.{form}" for form in ("json", "md", "html")]
    options = [w for name, f in zip(("--json", "--markdown", "--html"), files, strict=True) for w in (name, str(f))]
    assert drill(tmp_path, steps, *options) == code
    said = [" ".join(capsys.readouterr().out.split()), *(f.read_text(encoding="utf-8") for f in files)]
    assert [GAP in text for text in said] == [is_said] * 4
    assert [("throughout" in text) for text in said] == [steps == "stop 11"] * 4
    assert [("acks=all may wait" in text) for text in said] == [steps == "kill 13"] * 4
    waiting = json.loads(said[1])["awaiting_session"]
    assert waiting == (["t-0"] if code or is_said else [])


@pytest.mark.parametrize(("more", "code"), [((), 20), (("--kraft", "on"), 0), (("--kraft", "off"), 20)])
def test_who_has_kraft_can_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], code: int
) -> None:
    """Without a server.properties it was always UNKNOWN: ZooKeeper is taken, which is not carried."""
    file = tmp_path / "topics.txt"
    file.write_text(TOPICS.replace("\tElr: \tLastKnownElr:\x20", ""), encoding="utf-8")
    asked = ["--describe", str(file), "--kafka", "3.7", "--elr", "off", "--plain", *more, "stop 13"]
    assert main(["drill", *asked]) == code
    assert ("--kraft on or off tells it" in capsys.readouterr().out) == (not more)


def test_a_gap_is_said_beside_what_stands_still(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = TOPICS + TOPICS.replace("Topic: t\t", "Topic: u\t").replace("TopicId: x", "TopicId: y").replace(
        "Leader: 11\tReplicas: 11,12,13\tIsr: 11,12,13", "Leader: 11\tReplicas: 11,12,13\tIsr: 11,12"
    )
    assert drill(tmp_path, "kill 11", topics=other) == 1
    assert f"Beside that {GAP}" in " ".join(capsys.readouterr().out.split())


def test_what_to_wait_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(tmp_path, "stop", "11", topics=TOPICS.replace("Isr: 11,12,13", "Isr: 11,12")) == 1
    assert "Wait until these are in sync, then ask again: t-0 (13)" in capsys.readouterr().out


def test_the_story_and_a_better_order_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill(tmp_path, "replace 11; replace 12; replace 13", "--json", str(tmp_path / "drill.json")) == 12
    text = capsys.readouterr().out
    assert "How t-0 may lose a record" in text
    assert "is gone with its disk" in text
    assert 'each start: "replace 11; wait in-sync; replace 12; wait in-sync; replace 13; wait in-sync"' in " ".join(
        text.split()
    )
    report = json.loads((tmp_path / "drill.json").read_text(encoding="utf-8"))
    assert report["schema"] == "insync/drill/1"
    assert report["exit_code"] == 12
    assert report["partitions"][0]["outcomes"][0]["records"] == "safe"
    assert report["mended"]["steps"][1] == "wait in-sync"


def test_a_ticket_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ticket, page = tmp_path / "drill.md", tmp_path / "drill.html"
    assert drill(tmp_path, "destroy 11 12 13", "--markdown", str(ticket), "--html", str(page)) == 12
    text = ticket.read_text(encoding="utf-8")
    assert "NO: acknowledged records of 1 of 1 partition" in text
    assert "| 1 destroy 11 12 13 |" in text
    assert "1. now: " in text
    assert "| t | 1 | 0 | 0 | 0 |" in text
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "disk gone" in html
    capsys.readouterr()
    assert drill(tmp_path, "stop", "13", "--html", str(tmp_path / "topics.txt")) == 64
    assert "is read, and would be replaced" in capsys.readouterr().err


def test_a_start_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was "a replica stays away", and no other runbook was better."""
    assert drill(tmp_path, "destroy 11; roll 12 wait in-sync") == 20
    said = " ".join(capsys.readouterr().out.split())
    assert "a wait does not end, without 'start 11' before it" in said
    assert '"destroy 11; start 11; wait in-sync; roll 12 wait in-sync"' in said
    away = TOPICS.replace("Isr: 11,12,13", "Isr: 11,12").replace("LastKnownElr:\x20", "LastKnownElr: \tOffline: 13")
    assert drill(tmp_path, "roll 12 wait in-sync; stop 11", topics=away) == 20
    assert "a wait does not end, for a replica stays away" in " ".join(capsys.readouterr().out.split())


def test_steps_that_do_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of `wait 30` it was that no partition is touched, as if another might be."""
    racks = tmp_path / "racks.txt"
    racks.write_text("11 a\n12 a\n13 a\n14 b\n", encoding="utf-8")
    for steps, says in (
        ("wait 30", "do nothing to any broker"),
        ("lose-rack b", "touch no partition that was"),
    ):
        assert drill(tmp_path, "--racks", str(racks), steps) == 0
        assert capsys.readouterr().out.startswith(f"YES: the steps {says}")


def test_advice_does_not_wait_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was `replace 11; wait in-sync; wait in-sync; ...`."""
    assert drill(tmp_path, "replace 11; wait in-sync; replace 12; replace 13") == 12
    said = " ".join(capsys.readouterr().out.split())
    assert '"replace 11; wait in-sync; replace 12; wait in-sync; replace 13; wait in-sync"' in said


PROPOSALS = """{"summary": {"numReplicaMovements": 1}, "proposals": [{"topicPartition": {"hash": 0, "partition": 0,
"topic": "t"}, "oldLeader": 11, "oldReplicas": [11, 12, 13], "newReplicas": [11, 12, 14]}], "version": 1}"""


def test_proposals_of_cruise_control_are_a_reassignment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(PROPOSALS, encoding="utf-8")
    assert drill(tmp_path, f"reassign {plan}; wait reassigned; stop 13", "--seconds", "600") == 0
    assert drill(tmp_path, f"reassign {plan}; cancel {plan}; wait reassigned", "--seconds", "600") == 0
    plan.write_text('{"summary": {}, "goalSummary": [], "version": 1}', encoding="utf-8")
    capsys.readouterr()
    assert drill(tmp_path, f"reassign {plan}") == 65
    assert "where verbose=true and json=true are asked for" in capsys.readouterr().err


def test_runbooks_and_racks_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "racks.txt").write_text("11 a\n12: b  # the other\n13=a\n", encoding="utf-8")
    (tmp_path / "zone.toml").write_text('steps = ["lose-rack a"]\n', encoding="utf-8")
    racks = ("--racks", str(tmp_path / "racks.txt"))
    assert drill(tmp_path, *racks, str(tmp_path / "zone.toml")) == 12
    (tmp_path / "steps.txt").write_text("lose-rack b\nstart 12\n", encoding="utf-8")
    assert drill(tmp_path, *racks, str(tmp_path / "steps.txt")) == 0
    assert "lose-rack b" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("stpo", "13"), 64, "there is no step 'stpo'; did you mean 'stop'"),
        (("stop", "14"), 64, "there is no broker 14"),
        (("missing.toml",), 65, "cannot read missing.toml"),
        (("stop", "13", "--racks", "missing.txt"), 65, "cannot read missing.txt"),
        (("stop", "13", "--topic", "tt"), 64, "there is no topic 'tt'"),
    ],
)
def test_mistakes_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, sentence: str
) -> None:
    assert drill(tmp_path, *words) == code
    text = capsys.readouterr()
    assert sentence in text.err
    assert len(text.err.splitlines()) == 1
    assert text.out == ""


def test_a_bad_line_of_racks_or_of_a_runbook_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "racks.txt").write_text("11\n", encoding="utf-8")
    assert drill(tmp_path, "stop", "13", "--racks", str(tmp_path / "racks.txt")) == 65
    assert "line 1: a line has a broker and its rack" in capsys.readouterr().err
    (tmp_path / "steps.txt").write_text("begin 12\n", encoding="utf-8")
    assert drill(tmp_path, str(tmp_path / "steps.txt")) == 65
    assert "there is no step 'begin'" in capsys.readouterr().err


def test_a_reassignment_is_read_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [11, 12, 14]}]}', encoding="utf-8")
    assert drill(tmp_path, f"reassign {plan}; wait reassigned; stop 13", "--seconds", "600") == 0
    assert "YES: no acknowledged record of 1 partition is lost" in capsys.readouterr().out
    plan.write_text("{}", encoding="utf-8")
    assert drill(tmp_path, f"reassign {plan}") == 65
    assert "has no list of partitions" in capsys.readouterr().err


MOVE = '{{"version": 1, "partitions": [{{"topic": "{}", "partition": {}, "replicas": [11, 12]}}]}}'
TWO = TOPICS + TOPICS.replace("Topic: t\t", "Topic: u\t").replace("TopicId: x", "TopicId: y")


@pytest.mark.parametrize(
    ("topic", "number", "options", "code", "says"),
    [
        (
            "zz",
            0,
            "",
            20,
            "UNKNOWN: not every partition was told, and the steps may touch another: reassign plan.json: ",
        ),
        ("t", 7, "", 65, "reassign plan.json: there is no t-7; t has 1 described"),
        ("u", 0, "", 0, "YES: "),
        ("u", 0, "--topic t", 20, "it moves u-0, of a topic that was not asked about"),
        ("u", 7, "--topic t", 20, "it moves u-7, of a topic that was not asked about"),
        ("zz", 0, "--topic t", 20, "it moves zz-0, of which nothing was described"),
    ],
)
def test_a_move_of_what_nobody_described_is_not_safe(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    topic: str,
    number: int,
    options: str,
    code: int,
    says: str,
) -> None:
    """It was "YES: the steps touch no partition that was described"."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_text(MOVE.format(topic, number), encoding="utf-8")
    assert drill(tmp_path, "reassign plan.json; wait reassigned", *options.split(), topics=TWO) == code
    text = capsys.readouterr()
    assert says in " ".join((text.err if code == 65 else text.out).split())


def test_a_majority_of_controllers_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = tmp_path / "server.properties"
    voters = ",".join(f"{i}@c{i}:9093" for i in (100, 101, 102))
    properties.write_text(f"node.id=11\nprocess.roles=broker\ncontroller.quorum.voters={voters}\n", encoding="utf-8")
    told = ("--describe", str(properties))
    assert drill(tmp_path, "controller stop 100; stop 13", *told) == 0
    assert drill(tmp_path, "controller destroy 100; stop 13", *told) == 20
    assert "votes again" in " ".join(capsys.readouterr().out.split())


def test_without_a_cluster_there_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drill", "stop", "3"]) == 64
    assert "give --describe FILE or --bootstrap" in capsys.readouterr().err


MORE = TOPICS.replace("PartitionCount: 1", "PartitionCount: 4")
NO_TOPIC = TOPICS + "\tTopic:\tPartition: 0\tLeader: 13\tReplicas: 13\tIsr: 13\n"


@pytest.mark.parametrize(
    ("topics", "steps", "said"),
    [
        (MORE, "stop 13", "1 of 4 partitions were told"),
        (MORE, "wait 5", "1 of 4 partitions were told"),
        (NO_TOPIC, "stop 13", "the steps may touch another"),
    ],
)
def test_what_was_not_told_is_unknown(
    topics: str, steps: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drill(tmp_path, steps, topics=topics) == 20
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("UNKNOWN: not every partition was told")
    assert said in text


def test_what_may_be_lost_of_what_was_told_is_said_all_the_same(tmp_path: Path) -> None:
    assert drill(tmp_path, "destroy 11 12 13", topics=MORE) == 12


@pytest.mark.parametrize(
    ("racks", "code", "said"),
    [
        ("11 a\n12 b\n", 64, "the rack of broker 13 was not told, and may be 'a'"),
        ("11 a\n12 b\n13 a\n12 a\n", 65, "line 4: broker 12 was in rack b before"),
        ("11 a\n12 a\n13 a\n", 12, ""),
    ],
)
def test_racks_are_told_of_everybody_and_once(
    racks: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "racks.txt"
    file.write_text(racks, encoding="utf-8")
    assert drill(tmp_path, "lose-rack a", "--racks", str(file)) == code
    assert said in capsys.readouterr().err


def test_what_a_disk_is_taken_to_have_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    down = TOPICS.replace("Leader: 11", "Leader: none").replace("Isr: 11,12,13\tElr: ", "Isr: \tElr: 11")
    assert drill(tmp_path, "start 11", topics=down) == 0
    assert "its disk is taken to have what it acknowledged" in " ".join(capsys.readouterr().out.split())
    drill(tmp_path, "stop 11; start 11")
    assert "its disk is taken" not in capsys.readouterr().out


STANDS_STILL = """Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: 1\tLastKnownElr: 1
"""


@pytest.mark.parametrize(
    ("steps", "code"),
    [("start 1", 0), ("start 1 2 3; wait in-sync", 0), ("stop 1; start 1", 1), ("start 1; stop 1", 1)],
)
def test_a_broker_may_be_started_where_nobody_leads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: str, code: int
) -> None:
    """It was "wait until these are in sync" of the very broker that has to start."""
    file = tmp_path / "topics.txt"
    file.write_text(STANDS_STILL, encoding="utf-8")
    assert main(["drill", "--kafka", "4.4.0", "--elr", "on", "--plain", "--describe", str(file), steps]) == code
    said = " ".join(capsys.readouterr().out.split())
    assert ("1 has no leader or cannot take writes already, and may go on so: t-0" in said) == (steps == "start 1")
    assert ("all take writes in the end" in said) == (steps == "start 1 2 3; wait in-sync")
    assert ("Wait until these are in sync" in said) == bool(code)
