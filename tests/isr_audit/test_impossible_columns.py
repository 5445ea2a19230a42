"""Columns that cannot be so, a heading that its partitions belie, an unknown release, and properties as Java has them.

Without this a cluster whose brokers are told to be offline would be "all in sync", and unclean election would be off
where the file that turns it on is written as Java allows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from insync_cli.main import main
from isr_audit.descriptions import read_description

WELL = (
    "Topic: t\tTopicId: a\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: {}\n"
)


def audited(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, release: str = "4.4.0") -> tuple[int, str]:
    """The exit code, and all that is said."""
    file = tmp_path / "topics.txt"
    file.write_text(text, encoding="utf-8")
    code = main(["audit", "--describe", str(file), "--kafka", release, "--elr", "on", "--plain"])
    return code, " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("\tOffline: 2,3", "what it has as Isr was not told, or makes no sense"),
        ("\tOffline: 3", "what it has as Isr was not told, or makes no sense"),
        ("\tOffline: 9", "what it has as Offline was not told, or makes no sense"),
        ("\tObservers: 9", "what it has as Observers was not told, or makes no sense"),
        ("\tAdding Replicas: 9", "what it has as Adding Replicas was not told, or makes no sense"),
        ("\tRemoving Replicas: 9", "what it has as Removing Replicas was not told, or makes no sense"),
        ("\tAdding Replicas: \tRemoving Replicas: 9", "what it has as Removing Replicas was not told"),
    ],
)
def test_who_is_no_replica_or_is_down_is_never_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, says: str
) -> None:
    """`Offline: 2,3` of a partition with all three in sync was fine, exit code 0."""
    code, text = audited(tmp_path, capsys, WELL.format(columns))
    assert code == 20
    assert says in text
    assert text.endswith("; UNKNOWN: 1 partition")
    file = str(tmp_path / "topics.txt")
    assert main(["drill", "--describe", file, "--kafka", "4.4.0", "--elr", "on", "stop", "3"]) == 20


def test_a_heading_with_a_larger_replication_factor_is_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = audited(tmp_path, capsys, WELL.format("").replace("Factor: 3", "Factor: 4"))
    assert code in (1, 20)
    assert "t: its heading says ReplicationFactor 4, but a partition has 3 replicas" in text
    assert "what was not told" in text.rpartition("UNKNOWN: ")[2]


@pytest.mark.parametrize("factor", [1, 2])
def test_a_smaller_one_counts_and_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], factor: int) -> None:
    """Kafka 2.5 prints it so while replicas are added, and has no column for these."""
    code, text = audited(tmp_path, capsys, WELL.format("").replace("Factor: 3", f"Factor: {factor}"))
    assert "UNKNOWN" not in text.rpartition("insync audit:")[2]
    assert (
        f"its heading says ReplicationFactor {factor}, but a partition has 3 replicas, perhaps some to be added" in text
    )
    assert code == (1 if factor == 1 else 0), "judged as so few replicas"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (WELL.format(""), "4.4.0"),
        (WELL.format("\tAdding Replicas: 3\tRemoving Replicas: 1").replace("Factor: 3", "Factor: 2"), "4.4.0"),
        (WELL.format("").replace("Isr: 1,2,3", "Isr: 1,2").replace("\tElr", "\tOffline: 3\tElr"), "4.4.0"),
    ],
)
def test_what_may_be_so_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, release: str) -> None:
    code, said = audited(tmp_path, capsys, text, release)
    assert code in (0, 1)
    assert "UNKNOWN:" not in said


@pytest.mark.parametrize("release", ["4.5", "9.9.9"])
def test_nothing_is_said_to_survive_in_a_release_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    code, text = audited(tmp_path, capsys, WELL.format(""), release)
    assert code == 20
    assert f"the release is {release}, and 4.4 is the newest whose design is known, so what survives is UNKNOWN" in text
    assert text.endswith("; UNKNOWN: 1 topic")


@pytest.mark.parametrize(
    "written",
    [
        "unclean.leader.election.enable=true",
        "unclean.leader.election.enable: true",
        "unclean.leader.election.enable true",
        "  unclean.leader.election.enable\t=\ttrue",
        "unclean.leader.\\\n    election.enable=true",
        "unclean.leader.election.enable=\\\n\\\n    true",
        "unclean.leader.election.enabl\\u0065=true",
        "unclean.leader.election.enable=\\u0074rue",
        "unclean\\.leader.election.enable = true",
        "# a comment goes on nowhere \\\nunclean.leader.election.enable=true",
        "log.dir=a\\\\\nunclean.leader.election.enable=true",
    ],
)
def test_a_property_is_read_as_java_reads_it(written: str) -> None:
    cluster = read_description(f"node.id=1\nprocess.roles=broker\n{written}\nlog.dirs=/x\n", "file")
    assert cluster is not None
    assert cluster.brokers["1"]["unclean.leader.election.enable"] == "true"
    assert cluster.brokers["1"]["log.dirs"] == "/x"


def test_a_property_that_continues_another_is_none_and_lines_keep_their_numbers() -> None:
    text = "node.id=1\nlog.dirs=/a\\\n  unclean.leader.election.enable=true\nnode.id=1\nlog.dirs=/b\n"
    cluster = read_description(text, "file")
    assert cluster is not None
    assert "unclean.leader.election.enable" not in cluster.brokers["1"]
    assert cluster.notes == ("file, line 5: log.dirs for a second time, and the last counts",)
