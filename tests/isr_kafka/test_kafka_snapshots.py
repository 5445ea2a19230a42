"""What a snapshot tells Kafka's brokers, and the log of metadata does not: `leader_loads_snapshot` rests on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_kafka import classpath, jars, java
from isr_kafka.compile import build
from isr_kafka.system import Kafka

JAVA = Path(__file__).parent / "java"


def test_kafka_is_not_driven_along_a_setting_in_which_a_design_is_known_to_differ(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["conform", "kafka-4.4", "--sut", "kafka", "--replicas", "2", "--own-view", "on"]
    assert main(command) == Exit.USAGE
    assert "--sut kafka is not driven along kafka-4.4 with --own-view on, for its leaders" in capsys.readouterr().err


@pytest.mark.kafka
@pytest.mark.processes
def test_a_snapshot_tells_a_leader_what_it_knows_and_nobody_that_its_replica_is_gone(newest: Kafka) -> None:
    """TopicsDelta.replay(TopicRecord) compares the partitions of a snapshot with none, whatever the broker knew."""
    path = classpath(build([JAVA], newest.release), jars(newest.release))
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, "insync.metadata.Snapshots"]
    assert subprocess.check_output(command, text=True, timeout=120).splitlines() == [
        "1 log nothing: leads [], follows [], deletes []",
        "1 snapshot nothing: leads [topic-0], follows [], deletes []",
        "3 log removed: leads [], follows [], deletes [topic-0]",
        "3 snapshot removed: leads [], follows [], deletes []",
    ]
