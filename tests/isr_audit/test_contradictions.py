"""What was told of the release and of eligible leader replicas, and cannot all be so: a note, and nothing survives.

Without this a text whose feature is at level 0 and whose partitions have an Elr would be judged as the one or the
other, and `--kafka 3.5 --elr on` would say that a power loss is survived which no 3.5 survives.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from insync_cli.main import main
from isr_audit.answers import read_table
from isr_audit.audit import AnswerSource, audit_rows, no_exploration
from isr_audit.cluster import Cluster
from isr_audit.descriptions import read_description
from isr_audit.releases import release_of, running

pytestmark = pytest.mark.long

WELL = (
    "Topic: t\tTopicId: a\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
)
PLAIN = WELL.replace("\tElr: \tLastKnownElr: ", "")
ELIGIBLE = WELL.replace("Isr: 1,2,3\tElr: ", "Isr: 1,2\tElr: 3")
ZOOKEEPER = "broker.id=1\nzookeeper.connect=z:2181\n"


def features(release: str, level: str = "") -> str:
    """What kafka-features.sh prints: metadata.version, and eligible leader replicas where a level is given."""
    text = f"Feature: metadata.version\tFinalizedVersionLevel: {release}\tEpoch: 1\n"
    more = f"Feature: eligible.leader.replicas.version\tFinalizedVersionLevel: {level}\tEpoch: 1\n"
    return text + (more if level else "")


def read(text: str) -> Cluster:
    cluster = read_description(text, "file")
    assert cluster is not None
    return cluster


CONTRADICTIONS = [
    (features("4.1-IV1", "0") + ELIGIBLE, None, None, "is at level 0, but t-0 has Elr 3"),
    (
        features("3.5-IV2", "1") + ELIGIBLE,
        None,
        None,
        "the release is 3.5, and eligible leader replicas begin with 3.7",
    ),
    (features("3.5-IV2", "1") + PLAIN, None, None, "the release is 3.5, and eligible leader replicas begin with 3.7"),
    (features("3.9-IV0", "1") + WELL, None, None, "is at level 1, which begins with 4.0, but the release is 3.9"),
    (features("3.5-IV2") + ELIGIBLE, None, None, "t-0 has Elr 3, but the release is 3.5"),
    (WELL, "3.5", True, "--elr on, but the release is 3.5, and eligible leader replicas begin with 3.7"),
    (PLAIN, "3.5", True, "--elr on, but the release is 3.5, and eligible leader replicas begin with 3.7"),
    (PLAIN, "2.0", True, "--elr on, but the release is 2.0, and eligible leader replicas begin with 3.7"),
    (WELL, "3.5", None, "--kafka 3.5, but Elr was told of t-0"),
    (WELL, "2.0", None, "--kafka 2.0, but Elr was told of t-0"),
    (features("4.1-IV1", "1") + WELL, None, False, "--elr off, but eligible.leader.replicas.version is at level 1"),
    (features("4.1-IV1", "0") + WELL, None, True, "is at level 0, but --elr on"),
    (ELIGIBLE, "4.1", False, "--elr off, but t-0 has Elr 3"),
    (features("3.3-IV3") + PLAIN, "4.1", None, "--kafka 4.1, but metadata.version tells 3.3"),
    (PLAIN + ZOOKEEPER + "inter.broker.protocol.version=2.6\n", "3.8", None, "but inter.broker.protocol.version tells"),
    (WELL + ZOOKEEPER, None, None, "1 has zookeeper.connect without process.roles, but Elr was told of t-0"),
    (features("3.9-IV0") + PLAIN + ZOOKEEPER, None, None, "without process.roles, but metadata.version was told"),
    (PLAIN + ZOOKEEPER, "3.9", True, "without process.roles, but --elr on"),
    (PLAIN + ZOOKEEPER, "4.0", None, "without process.roles, but the release is 4.0"),
]


@pytest.mark.parametrize(("text", "release", "elr", "says"), CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_what_contradicts_itself_is_a_note_and_nothing_survives(
    text: str, release: str | None, elr: bool | None, says: str
) -> None:
    cluster = read(text)
    runs = running(cluster, release_of(release) if release is not None else None, elr)
    assert any(says in note and note.endswith("what survives is UNKNOWN") for note in runs.notes)
    rows = audit_rows(cluster, runs, AnswerSource(read_table(), no_exploration))
    assert "survives" not in {line.verdict for row in rows for line in row.lines}


CONSISTENT = [
    (features("4.1-IV1", "1") + ELIGIBLE, None, None),
    (features("4.1-IV1", "1") + WELL, "4.1.1", True),
    (features("4.1-IV1", "0") + WELL, None, None),
    (features("4.0-IV3", "0") + WELL, "4.1.1", None),
    (features("3.9-IV0") + WELL, "3.9.1", None),
    (features("3.5-IV2") + WELL, None, None),
    (WELL, "4.1.1", False),
    (PLAIN, "3.8", True),
    (PLAIN + ZOOKEEPER, "3.8", None),
    (features("3.9-IV0") + WELL + "process.roles=broker\n" + ZOOKEEPER, None, None),
]


@pytest.mark.parametrize(("text", "release", "elr"), CONSISTENT, ids=range(len(CONSISTENT)))
def test_what_may_be_so_is_no_contradiction(text: str, release: str | None, elr: bool | None) -> None:
    runs = running(read(text), release_of(release) if release is not None else None, elr)
    assert not runs.doubt
    assert "contradicts" not in " ".join(runs.notes)


@pytest.mark.parametrize(
    ("text", "release", "elr", "kraft", "says"),
    [
        (PLAIN, "4.1", False, False, "--kraft off, but the release is 4.1"),
        (WELL, "3.9", None, False, "--kraft off, but Elr was told of t-0"),
        (PLAIN, "3.9", True, False, "--kraft off, but --elr on"),
        (PLAIN + ZOOKEEPER, "3.9", False, True, "1 has zookeeper.connect without process.roles, but --kraft on"),
        (PLAIN, "2.8", None, True, "--kraft on, but the release is 2.8, and KRaft is for production from 3.3 on"),
        (PLAIN, "3.7", False, True, ""),
        (PLAIN + ZOOKEEPER, "3.7", None, False, ""),
        (PLAIN, "2.8", None, False, ""),
    ],
)
def test_who_says_whether_there_is_kraft_is_believed_and_contradicted(
    text: str, release: str, elr: bool | None, kraft: bool, says: str
) -> None:
    runs = running(read(text), release_of(release), elr, kraft)
    assert any(says in note and note.endswith("what survives is UNKNOWN") for note in runs.notes) == bool(says)
    assert bool(runs.doubt) == bool(says)
    assert "whether there is ZooKeeper was not told" not in " ".join(runs.notes)
    assert says or runs.design == ("kraft-3.5" if kraft else "kip-497")


def test_what_only_one_side_loses_is_not_said_to_be_lost() -> None:
    """One power loss loses without eligible leader replicas, and not with them; two lose either way."""
    cluster = read(features("4.1-IV1", "0") + ELIGIBLE)
    (row,) = audit_rows(cluster, running(cluster), AnswerSource(read_table(), no_exploration))
    verdicts = {line.fault.name: line.verdict for line in row.lines if line.acks == "all"}
    assert verdicts["one-power-loss"] == "UNKNOWN"
    assert verdicts["two-power-losses"] == "MAY BE LOST"


def test_the_command_says_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topics.txt"
    file.write_text(WELL, encoding="utf-8")
    assert main(["audit", "--describe", str(file), "--kafka", "3.5", "--elr", "on", "--json", "-"]) == 20
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert sum("contradicts itself" in note for note in notes) == 2
    assert main(["audit", "--describe", str(file), "--kafka", "3.5", "--elr", "on"]) == 20
    assert "eligible leader replicas not known" in capsys.readouterr().out


def test_a_release_that_was_said_beside_another_in_the_description_is_a_note() -> None:
    """Without it somebody would read of 4.2 what they run as 4.4, and see no word of that."""
    (note,) = (
        n for n in running(read(features("4.4-IV0", "1") + WELL), release_of("4.2")).notes if "--kafka says" in n
    )
    assert note == "--kafka says 4.2, and metadata.version of the description 4.4: everything here is judged by --kafka"
    same = running(read(features("4.2-IV0", "1") + WELL), release_of("4.2.1"))
    assert not [n for n in same.notes if "--kafka says" in n]
