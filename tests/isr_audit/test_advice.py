"""Advice that can be followed: what to type, at which level, in which order, and when not.

Without these an operator would be told a setting that Kafka refuses, an order that stops writes, or a known bug's way.
"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from tests.isr_audit.test_decision import ELR, audit_of, topic

from insync_cli.clusters.audit_text import lines_to_type, plans
from isr_audit.advice import RAISE_BUG, AdviceStep, wider_assignment
from isr_audit.audit import SINGLE, SURVIVES
from isr_audit.cluster import Cluster, Partition, Topic

pytestmark = pytest.mark.long

OFF = "Feature: metadata.version\tFinalizedVersionLevel: {}\tEpoch: 1\nFeature: eligible.leader.replicas.version\t\
FinalizedVersionLevel: 0\tEpoch: 1\n"


def steps(text: str, release: str | None = None) -> list[AdviceStep]:
    """Those of the last plan, which is the one against everything."""
    found = [steps for _, _, steps in plans(audit_of(text, release))]
    return found[-1] if found else []


def commands(text: str, release: str | None = None) -> list[str]:
    return [c for step in steps(text, release) for c in step.commands]


def test_a_larger_minimum_is_set_of_the_topic_and_never_of_a_broker() -> None:
    (command,) = commands(ELR + topic("t", "1,2,3", 1))
    assert command == (
        "kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type topics --entity-name t "
        "--add-config min.insync.replicas=2"
    )
    (step,) = steps(ELR + topic("t", "1,2,3", 1))
    assert "not of single brokers: with eligible leader replicas Kafka refuses those" in step.says


def test_a_raise_beside_its_bug_says_when() -> None:
    (step,) = steps(ELR + topic("t", "1,2,3", 1))
    assert f"the bug {RAISE_BUG}: raise it only while all replicas are in sync" in step.says
    assert "docs/raise-min-insync.md" in step.says
    without = steps(topic("t", "1,2,3", 1), "4.1.0")
    assert without
    wait, raise_step = steps(ELR + topic("t", "1,2,3", 1, isr="1,3"))
    assert wait.says.startswith("NOT NOW: wait until all replicas are in sync")
    assert "--under-replicated-partitions" in wait.commands[0]
    assert "min.insync.replicas=2" in raise_step.commands[0]


def test_a_single_replica_is_told_more_replicas_and_never_to_flush() -> None:
    text = ELR + topic("t", "1", 1) + topic("u", "1,2,3", 2)
    audit = audit_of(text)
    (row,) = (r for r in audit.rows if r.topics[0].name == "t")
    assert row.plan is not None
    assert row.plan.settings == ("replication factor 3", "min.insync.replicas=2")
    assert not any("flush" in s for line in row.lines if line.change for s in line.change.settings)
    first, second = steps(text)
    assert json.loads(first.file)["partitions"] == [{"topic": "t", "partition": 0, "replicas": [1, 2, 3]}]
    assert [c.rsplit(" ", 1)[1] for c in first.commands] == ["--execute", "--verify"]
    assert "min.insync.replicas=2" in second.commands[0], "after the replicas are there, or writes would stop"


def test_the_smallest_upgrade_that_helps() -> None:
    """2.0 loses by a crash what 2.1 keeps, and 4.1 would be far."""
    audit = audit_of(topic("t", "1,2,3", 2).replace("\tElr: ", ""), "2.0")
    (row,) = audit.rows
    against, change = row.plans[0]
    assert (against, change.settings) == ("one crash", ("Kafka 2.1",))
    assert change.answer.question.design == "kip-320"
    first = next(step for _, _, found in plans(audit) for step in found)
    assert first.says.startswith("Upgrade to Kafka 2.1 or later")


def test_a_release_that_has_eligible_leader_replicas_is_told_to_turn_them_on() -> None:
    (step,) = steps(OFF.format("4.1-IV1") + topic("t", "1,2,3", 2))
    assert step.commands == (
        "kafka-features.sh --bootstrap-server HOST:9092 upgrade --feature eligible.leader.replicas.version=1",
    )


def test_the_minimum_is_raised_before_eligible_leader_replicas_are_on() -> None:
    """With them raising it has a bug, and without it that bug loses nothing."""
    found = steps(OFF.format("4.1-IV1") + topic("t", "1,2,3", 1))
    words = [s.commands[0] for s in found]
    assert "min.insync.replicas=2" in words[0]
    assert "--feature" in words[1]


def test_no_advice_is_to_stop_all_writes_by_one_broker_where_another_helps() -> None:
    for release in ("2.0", "3.9"):
        (row,) = audit_of(topic("t", "1,2,3", 2).replace("\tElr: ", ""), release).rows
        assert not any("min.insync.replicas=3" in c.settings for _, c in row.plans)


def test_old_tools_ask_zookeeper() -> None:
    text = topic("t", "1,2,3", 1, more=",unclean.leader.election.enable=true").replace("\tElr: ", "")
    old, new = commands(text, "2.0"), commands(text, "2.8")
    assert any("--zookeeper HOST:2181 --alter --entity-type topics" in c for c in old)
    assert not any("--zookeeper" in c for c in new)


@pytest.mark.parametrize("text", [ELR + topic("t", "1,2,3", 1), topic("t", "1,2,3", 1), topic("t", "1", 1)])
@pytest.mark.parametrize("release", ["2.0", "2.8", "3.9", "4.1"])
def test_a_plan_keeps_what_every_single_failure_would_lose(text: str, release: str) -> None:
    """By runs that were made: the plan's own kind of topic survives each of them."""
    from isr_audit.answers import read_table
    from isr_audit.audit import AnswerSource, line_of, no_exploration

    for row in audit_of(text, release).rows:
        if row.plan is not None:
            answers = AnswerSource(read_table(), no_exploration)
            assert {line_of(row.plan.to, "all", fault, answers).verdict for fault in SINGLE} == {SURVIVES}


def test_more_replicas_keep_their_order_and_spread_over_racks() -> None:
    partitions = tuple(Partition("t", n, 1, (1,), (1,)) for n in range(4))
    cluster = Cluster(
        (Topic("t", 1, partitions, count=4),), racks={1: "a", 2: "a", 3: "b", 4: "c"}, living=(1, 2, 3, 4)
    )
    plan = wider_assignment(cluster.topics, 3, cluster)
    assert plan is not None
    entries = json.loads(json.dumps(plan))["partitions"]
    for entry in entries:
        assert entry["replicas"][0] == 1
        assert {cluster.racks[b] for b in entry["replicas"]} == {"a", "b", "c"}
    assert wider_assignment(cluster.topics, 5, cluster) is None


def test_a_topic_of_strimzi_is_changed_in_its_resource() -> None:
    text = "kind: Kafka\nmetadata: {name: k}\nspec: {kafka: {metadataVersion: 4.1-IV1, config: {}}}\n---\n"
    text += "kind: KafkaTopic\nmetadata: {name: t-1}\nspec: {topicName: t, partitions: 1, replicas: 3}\n"
    found = [s for _, _, steps in plans(audit_of(text, elr=True)) for s in steps]
    assert [c for s in found for c in s.commands] == [
        'kubectl patch kafkatopic t-1 --type merge -p \'{"spec": {"config": {"min.insync.replicas": 2}}}\''
    ]


def test_of_many_topics_the_first_commands_are_shown() -> None:
    text = ELR + "".join(topic(f"t{n}", "1,2,3", 1) for n in range(50)) + topic("one", "1", 1, count=200)
    for _, _, found in plans(audit_of(text)):
        for step in found:
            lines = lines_to_type(step)
            assert len(lines) <= 9
            assert all(len(line) < 2_100 for line in lines)
            assert (len(step.commands) > 6) == (
                lines[-1] == f"# and {len(step.commands) - 6} commands more, which --json has"
            )
            assert (len(step.file) > 2_000) == any("is in the JSON of --json" in line for line in lines)


def test_steps_are_in_order() -> None:
    order = ("--verify", "min.insync.replicas", "--feature")
    found = commands(OFF.format("4.1-IV1") + topic("t", "1", 1) + topic("u", "1,2,3", 2))
    places = [next((n for n, c in enumerate(found) if word in c), None) for word in order]
    numbers = [p for p in places if p is not None]
    assert all(a < b for a, b in pairwise(numbers))
