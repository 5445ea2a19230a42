"""Unit tests of `found/upstream`: what each bug breaks, on a class of Kafka by itself, in Kafka's own style.

    from isr_found.units import UNITS, UnitReproduction

    assert set(UNITS["overtaken-request"].messages.values()) == {
        "A request must not be accepted after a copy of it was rejected ==> expected: not equal but was: <NONE>"
    }
    run = UnitReproduction("overtaken-request", fix="refusal-in-new-version")

Each test fails on released Kafka by one assertion, whose message stands here. Another failure is no verdict.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs

from isr_found import JAVA_ROOT, JVM, StoryReproduction, StoryRun, write_fix
from isr_kafka import Unavailable, build, classpath, jars, java
from isr_kafka.jars import UNIT_TESTS, unit_tests

RUNNER: Final = "insync.found.units.UnitTests"
"""The class that runs them and says the verdict."""
SOURCES: Final = JAVA_ROOT.parent / "upstream" / "src" / "test" / "java"
"""The tests, in Kafka's packages."""
UNIT_PATIENCE_S: Final = 900.0
"""Seconds after which they are ended: many times what they take. Mockito is slow where others use the machine."""
CONTROLLER: Final = "org.apache.kafka.controller."


@attrs.frozen
class UnitTests:
    """The tests of one bug, `Class#method`, each with the message it fails with; and the fix with which all pass."""

    messages: Mapping[str, str]
    fix: str


UNITS: Final = {
    "removed-replica": UnitTests(
        {
            f"{CONTROLLER}PartitionChangeBuilderReassignmentTest"
            "#testEligibleLeaderReplicas_CompletedReassignmentRemovesReplicaFromElr": (
                "A replica which the reassignment removes must not be in the ELR"
                " ==> expected: <[1, 3]> but was: <[1, 2, 3]>"
            ),
            f"{CONTROLLER}PartitionChangeBuilderReassignmentTest"
            "#testEligibleLeaderReplicas_CancelledReassignmentRemovesReplicaFromElr": (
                "A replica which the cancelled reassignment had added must not be in the ELR"
                " ==> expected: <[]> but was: <[3]>"
            ),
            f"{CONTROLLER}ReplicationControlManagerReassignmentTest"
            "#testEligibleLeaderReplicas_ReplicaAddedAgainIsNotElected": (
                "A replica which has not been in sync since it was added must not be elected"
                " ==> expected: <-1> but was: <2>"
            ),
        },
        "elr-of-replicas",
    ),
    "removed-directory": UnitTests(
        {
            f"{CONTROLLER}ReplicationControlManagerLogDirsTest"
            "#testEligibleLeaderReplicas_BrokerWithoutEarlierLogDirIsStruck": (
                "A broker which lacks a log directory that it had must not stay in the ELR"
                " ==> expected: <[]> but was: <[1]>"
            ),
            f"{CONTROLLER}ReplicationControlManagerLogDirsTest"
            "#testEligibleLeaderReplicas_BrokerWithoutLogDirOfReplicaIsNotElected": (
                "A replica whose log directory is gone must not be elected from the ELR ==> expected: <-1> but was: <1>"
            ),
        },
        "mark-of-all-directories",
    ),
    "kept-positions": UnitTests(
        {
            "kafka.cluster.PartitionHighWatermarkTest"
            "#testHighWatermarkDoesNotMoveByFetchesOfEarlierEpochIfAnotherReplicaLed": (
                "The high watermark must not move before the follower has fetched in the new leader epoch"
                " ==> expected: <0> but was: <1>"
            ),
        },
        "positions-reset-after-gap",
    ),
    "overtaken-request": UnitTests(
        {
            f"{CONTROLLER}ReplicationControlManagerAlterPartitionTest"
            "#testEarlierCopyOfRejectedAlterPartitionIsRejected": (
                "A request must not be accepted after a copy of it was rejected ==> expected: not equal but was: <NONE>"
            ),
        },
        "refusal-in-new-version",
    ),
    "raised-min-insync": UnitTests(
        {
            "kafka.server.metadata.BrokerMetadataPublisherOrderTest#testConfigurationIsAppliedBeforeTopics": (
                "The configuration in a delta must be applied before its topics"
                " ==> expected: <kafka.server.metadata.DynamicConfigPublisher> but was: <kafka.server.ReplicaManager>"
            ),
            f"{CONTROLLER}ReplicationControlManagerMinIsrTest"
            "#testEligibleLeaderReplicas_AlterPartitionFromBeforeMinIsrIncrease": (
                "A request from before min.insync.replicas was raised must not put a replica into the ELR"
                " ==> expected: <[]> but was: <[2]>"
            ),
        },
        "minimum-in-new-version",
    ),
    "forgotten-proposal": UnitTests(
        {
            f"kafka.cluster.PartitionHighWatermarkTest#{method}": (
                "The high watermark must not move past a replica whose AlterPartition is in flight"
                " ==> expected: <0> but was: <1>"
            )
            for method in (
                "testMetadataOfSamePartitionEpochKeepIsrExpandInFlight",
                "testMetadataOfSamePartitionEpochKeepIsrExpandAfterShrink",
            )
        },
        "proposal-kept",
    ),
}
"""By the name of the bug."""


@attrs.define
class UnitReproduction(StoryReproduction):
    """A bug's tests on Kafka `UNIT_TESTS`, with a fix or without; each line is what one of them does."""

    bug: str
    fix: str | None = None

    def story_run(self, stack: ExitStack) -> StoryRun:
        if not SOURCES.is_dir():
            raise Unavailable("the unit tests are Java in found/upstream of the repository, which is not here")
        kafka_jars, more = jars(UNIT_TESTS), unit_tests()
        roots = [JAVA_ROOT / "common", JAVA_ROOT / "units", *([JAVA_ROOT / "fixes"] if self.fix else []), SOURCES]
        classes = build(roots, UNIT_TESTS, beside=more)
        path = classpath(classes, kafka_jars, more)
        if self.fix:
            changed = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="insync-fix-")))
            write_fix(self.fix, changed, path)
            path = classpath(changed, classes, kafka_jars, more)
        tests = [word for pair in UNITS[self.bug].messages.items() for word in pair]
        command = [java(), *JVM, "-cp", path, RUNNER, *tests]
        return StoryRun(command, RUNNER, UNIT_TESTS, control=False, patience=UNIT_PATIENCE_S)
