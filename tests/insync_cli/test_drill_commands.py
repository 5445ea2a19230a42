"""`insync drill --commands`: what to type for each step, and for what is to be set before.

Without this a runbook would be right, and a line under it would do another thing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from insync_cli.main import main

TEXT = """\
Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=1
\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:
"""
PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1, 3]}]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "topics.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(folder: Path, text: str) -> list[tuple[str, list[str]]]:
    """The steps, each with its commands."""
    file = folder / "drill.json"
    main(
        ["drill", "--describe", "topics.txt", "--kafka", "4.1", "--elr", "on", text, "--commands", "--json", str(file)]
    )
    return [(s["says"], s["commands"]) for s in json.loads(file.read_text(encoding="utf-8"))["commands"]]


@pytest.mark.parametrize(
    ("step", "commands"),
    [
        ("stop 3", ["kafka-server-stop.sh  # on broker 3"]),
        (
            "roll 2 wait in-sync",
            [
                "kafka-server-stop.sh  # on broker 2",
                "kafka-server-start.sh -daemon server.properties  # on broker 2",
                "kafka-topics.sh --bootstrap-server HOST:9092 --describe --under-replicated-partitions"
                "  # until it prints nothing",
            ],
        ),
        (
            "reassign plan.json",
            ["kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --reassignment-json-file plan.json --execute"],
        ),
        (
            "cancel plan.json",
            ["kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --reassignment-json-file plan.json --cancel"],
        ),
        (
            "wait reassigned",
            ["kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --list  # until it names no partition"],
        ),
        (
            "set t min.insync.replicas=1",
            [
                "kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type topics --entity-name t "
                "--add-config min.insync.replicas=1"
            ],
        ),
        (
            "set default min.insync.replicas=1",
            [
                "kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type brokers --entity-default "
                "--add-config min.insync.replicas=1"
            ],
        ),
        (
            "elect preferred",
            ["kafka-leader-election.sh --bootstrap-server HOST:9092 --election-type preferred --all-topic-partitions"],
        ),
    ],
)
def test_a_step_and_its_commands(folder: Path, step: str, commands: list[str]) -> None:
    assert typed(folder, step) == [(step, commands)]


def test_what_is_set_before_comes_first_and_a_destroyed_disk_has_no_tool(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (before, commands), (destroyed, nothing) = typed(folder, "destroy 3")
    assert before.startswith("Before the first step, min.insync.replicas=2 on t: only while all replicas are in sync")
    assert commands[0].endswith("--entity-name t --add-config min.insync.replicas=2")
    assert (destroyed, nothing) == ("destroy 3: no tool of Kafka's does it", [])
    said = capsys.readouterr().out
    assert "     $ kafka-configs.sh" in said
    main(["drill", "--describe", "topics.txt", "--kafka", "4.1", "--elr", "on", "--plain", "destroy 3"])
    assert "kafka-configs.sh" not in capsys.readouterr().out
