"""Mistakes planted in Kafka's own classes, to see that the comparison with the model finds them.

Each makes one method of one class answer the same whatever it is asked, or do something more when it is done. The
class is changed as byte code (ByteBuddy) and comes before Kafka's on the class path; no source of Kafka's is copied.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from isr_kafka.compile import build
from isr_kafka.jars import classpath, jars, release_of, tools
from isr_kafka.programs import Unavailable, java
from isr_kafka.system import SOURCES, Kafka

CONTROLLER: Final = "org.apache.kafka.controller"


@attrs.frozen
class Mistake:
    """One method that answers the same whatever it is asked, or does something more before it is done or after."""

    name: str
    type: str
    method: str
    answers: str
    says: str
    """What becomes wrong, and since when Kafka has it right where it once was wrong."""
    bounds: Mapping[str, int] = attrs.field(factory=lambda: {"replicas": 2})
    """Bounds of the model within which that shows."""
    design: str = "kip-966"
    """The design with which unchanged Kafka agrees within these bounds."""
    properties: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """Properties of the adapter with which that shows."""
    edges: int | None = None
    """How many edges of each action are drawn by chance, where it does not take all of them to see it."""
    walks: int | None = None
    """How many walks are taken instead, where the model within these bounds is large."""


AT_WORK: Final = {"replicas": 2, "sessions_lost": 0, "epochs": 1, "isr_changes": 2, "log": 1, "records": 1}
SETTINGS_CHANGE: Final = {**AT_WORK, "reassignments": 0, "minimum_changes": 1}
SOMEBODY_REASSIGNS: Final = {**AT_WORK, "reassignments": 1, "min_insync": 1}
REQUEST_COPIED: Final = {**AT_WORK, "reassignments": 0, "min_insync": 1, "sessions_lost": 1, "copies": 1}
ANSWER_FIRST: Final = {**AT_WORK, "reassignments": 0, "min_insync": 1, "isr_changes": 3, "late_news": 1}
SNAPSHOT_LOADED: Final = {**AT_WORK, "reassignments": 0, "min_insync": 1, "snapshots_loaded": 1}
UNCLEAN_SWITCHED: Final = {**AT_WORK, "reassignments": 0, "min_insync": 1, "sessions_lost": 1, "unclean_switches": 1}
REASSIGNS_TWICE: Final = {**AT_WORK, "reassignments": 2, "isr_changes": 3}
DISK_REPLACED: Final = {**AT_WORK, "isr_changes": 3}

ONE_OF_EACH: Final = (
    "crashes",
    "sessions_lost",
    "shutdowns",
    "disks_replaced",
    "minimum_changes",
    "late_news",
    "copies",
)
ALL_AT_ONCE: Final = {
    **AT_WORK,
    **dict.fromkeys(ONE_OF_EACH, 1),
    **{"replicas": 3, "spares": 1, "reassignments": 2, "epochs": 3, "isr_changes": 8, "unclean_switches": 1},
}

MISTAKES: Final = (
    Mistake(
        "follower-always-in-sync",
        "kafka.cluster.Partition",
        "isFollowerInSync",
        "true",
        "a follower behind the watermark, or before the leader's epoch (KAFKA-7128), is proposed",
        {"replicas": 2, "crashes": 0, "min_insync": 1},
    ),
    Mistake(
        "commits-under-min-isr",
        "kafka.cluster.Partition",
        "isUnderMinIsr",
        "nothing",
        "the watermark moves while the ISR is under the minimum (KAFKA-15583, mended in 3.7)",
    ),
    Mistake(
        "any-leader-epoch",
        "kafka.cluster.Partition",
        "checkCurrentLeaderEpoch",
        "no error",
        "a fetch of another leader epoch is answered (KIP-320)",
        {"replicas": 2, "crashes": 0, "epochs": 2, "sessions_lost": 0},
        "kafka-keeps-positions",
    ),
    Mistake(
        "refusal-forgotten",
        "kafka.cluster.Partition",
        "handleAlterPartitionError",
        "nothing",
        "a leader whose proposal is ineligible keeps counting it",
    ),
    Mistake(
        "everybody-lags",
        "kafka.cluster.Partition",
        "isFollowerOutOfSync",
        "true",
        "a follower at the leader's log end is dropped from the ISR",
    ),
    Mistake(
        "committed-isr-only",
        "org.apache.kafka.server.partition.PendingExpandIsr",
        "maximalIsr",
        "isr",
        "a proposed member does not count for the watermark (KIP-497's maximal ISR)",
        {"replicas": 2, "crashes": 0, "min_insync": 1},
    ),
    Mistake(
        "any-partition-epoch",
        f"{CONTROLLER}.ReplicationControlManager",
        "validateAlterPartitionData",
        "no error",
        "the controller accepts an AlterPartition about older metadata",
    ),
    Mistake(
        "everybody-eligible",
        f"{CONTROLLER}.ReplicationControlManager",
        "ineligibleReplicasForIsr",
        "empty list",
        "the controller lets a fenced broker (KIP-841) or another incarnation (KIP-903) into the ISR",
    ),
    Mistake(
        "restart-unnoticed",
        f"{CONTROLLER}.ReplicationControlManager",
        "handleBrokerShutdown",
        "nothing",
        "a broker that may have lost its log stays in the ISR and the ELR (KIP-966)",
    ),
    Mistake(
        "any-leader",
        f"{CONTROLLER}.PartitionChangeBuilder",
        "isValidNewLeader",
        "true",
        "a replica outside of the ISR, or without a session, is elected",
    ),
    Mistake(
        "no-eligible-leaders",
        f"{CONTROLLER}.PartitionChangeBuilder",
        "maybePopulateTargetElr",
        "nothing",
        "a member that leaves an ISR under the minimum is not remembered (KIP-966's ELR)",
    ),
    Mistake(
        "never-truncates",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        "truncateTo",
        "nothing",
        "a follower keeps records that its leader does not have",
    ),
    Mistake(
        "watermark-not-taken",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        "maybeUpdateHighWatermark",
        "empty",
        "a follower does not take over the leader's watermark",
    ),
    Mistake(
        "acknowledged-on-stepping-down",
        "kafka.cluster.Partition",
        "checkEnoughReplicasReachOffset",
        "then acknowledges",
        "a producer whose leader has stepped down hears that its record is safe",
        {"replicas": 2, "crashes": 0},
    ),
    Mistake(
        "commits-for-a-stranger",
        "kafka.cluster.Partition",
        "checkCurrentLeaderEpoch",
        "then commits",
        "a fetch of another epoch is refused, and the watermark moves to the end of the log",
        {"replicas": 2, "crashes": 0},
    ),
    Mistake(
        "no-mark-of-a-clean-stop",
        "org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler",
        "write",
        "nothing",
        "a broker that stops in order leaves no .kafka_cleanshutdown (KIP-966)",
        {"replicas": 2, "crashes": 0, "shutdowns": 1},
    ),
    Mistake(
        "clean-stop-not-told",
        "org.apache.kafka.storage.internals.log.LogManager",
        "readBrokerEpochFromCleanShutdownFiles",
        "no number",
        "a broker that had stopped in order registers as if it had lost records (KIP-966)",
        {"replicas": 2, "crashes": 0, "shutdowns": 1},
    ),
    Mistake(
        "epoch-ends-later",
        "kafka.server.ReplicaManager",
        "lastOffsetForLeaderEpoch",
        "then ends later",
        "OffsetForLeaderEpoch tells of one record more than an epoch has",
        {"replicas": 2, "crashes": 0},
        properties={"insync.apis": "true"},
    ),
    Mistake(
        "shrink-throws",
        "kafka.cluster.Partition",
        "maybeShrinkIsr",
        "throws",
        "a leader fails where it should propose a smaller ISR",
        {"replicas": 2, "crashes": 0},
    ),
    Mistake(
        "never-truncates-epochs",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        "truncateTo",
        "nothing",
        "a follower keeps records, and the epochs of records, that its leader does not have",
        {"replicas": 2, "crashes": 0, "sessions_lost": 0, "epochs": 2, "records": 2, "log": 2},
        "kafka-keeps-positions",
    ),
    Mistake(
        "minimum-not-applied",
        "kafka.server.TopicConfigHandler",
        "processConfigChanges",
        "nothing",
        "a broker that hears of another min.insync.replicas does not apply it to its log",
        SETTINGS_CHANGE,
        "kafka-4.4",
    ),
    Mistake(
        "elr-not-emptied",
        f"{CONTROLLER}.ConfigurationControlManager",
        "createClearElrRecordsAsNeeded",
        "empty list",
        "the ELR stays as it is when min.insync.replicas is set (KIP-966)",
        SETTINGS_CHANGE,
        "kafka-4.4",
    ),
    Mistake(
        "never-completes",
        f"{CONTROLLER}.PartitionReassignmentReplicas",
        "maybeCompleteReassignment",
        "empty",
        "a reassignment stays under way when all that it waits for are in sync (KIP-455)",
        SOMEBODY_REASSIGNS,
        "kafka-4.4",
    ),
    Mistake(
        "removed-keeps-its-log",
        "org.apache.kafka.storage.internals.log.LogManager",
        "asyncDelete",
        "nothing",
        "a broker that has no replica any more keeps its log",
        SOMEBODY_REASSIGNS,
        "kafka-4.4",
    ),
    Mistake(
        "answers-of-any-epoch",
        "kafka.server.AbstractFetcherThread",
        "$anonfun$processFetchRequest$8",
        "true",
        "a follower takes the answer to a fetch of an earlier leader epoch (KAFKA-18991, mended in 3.9.1 and 4.0.1)",
        REASSIGNS_TWICE,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "cancelled-into-the-isr",
        f"{CONTROLLER}.PartitionReassignmentRevert",
        "isr",
        "replicas",
        "whoever was a replica before a reassignment is in sync when that is cancelled, whatever it lacks",
        REASSIGNS_TWICE,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "cancelled-without-who-lags",
        f"{CONTROLLER}.PartitionReassignmentRevert",
        "replicas",
        "isr",
        "who is not in sync when a reassignment is cancelled is no replica any more",
        REASSIGNS_TWICE,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "elr-cleared-in-the-log-only",
        f"{CONTROLLER}.ReplicationControlManager",
        "replay(ClearElrRecord)",
        "nothing",
        "the controller writes that the ELR is empty, and goes on with the one that it had",
        SETTINGS_CHANGE,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "never-sent-again",
        "org.apache.kafka.clients.ClientResponse",
        "wasDisconnected",
        "nothing",
        "a request to the controller that is out of time is taken for answered, and fails for want of an answer",
        REQUEST_COPIED,
        "kafka-4.4",
    ),
    Mistake(
        "directory-not-told",
        "kafka.server.ReplicaManager",
        "maybeUpdateTopicAssignment",
        "nothing",
        "the controller never hears that a replica is in a new directory (KIP-858)",
        DISK_REPLACED,
        "kafka-4.4-new-directory",
    ),
    Mistake(
        "any-directory",
        f"{CONTROLLER}.ClusterControlManager",
        "hasOnlineDir",
        "true",
        "a replica leads from a directory that its broker does not have, as far as the controller knows (KIP-858)",
        {**DISK_REPLACED, "isr_changes": 4},
        "kafka-4.4-new-directory",
    ),
    Mistake(
        "never-unclean",
        f"{CONTROLLER}.ConfigurationControlManager",
        "uncleanLeaderElectionEnabledForTopic",
        "nothing",
        "nobody is elected where unclean.leader.election.enable was switched on while nobody led",
        UNCLEAN_SWITCHED,
        "kafka-4.4",
    ),
    Mistake(
        "older-version-taken",
        "kafka.cluster.Partition",
        "makeLeader",
        "first forgets its version",
        "a leader that knows a version from an answer goes back to the older one that its metadata bring",
        {**ANSWER_FIRST, "old_metadata": 1},
        "kafka-4.4",
        edges=25,
    ),
    Mistake(
        "snapshot-not-read",
        "org.apache.kafka.image.loader.MetadataLoader",
        "handleLoadSnapshot",
        "nothing",
        "a broker that is given a snapshot of the metadata goes by what it has",
        SNAPSHOT_LOADED,
        "kafka-4.4",
        edges=25,
    ),
    Mistake(
        "unclean-keeps-the-isr",
        f"{CONTROLLER}.PartitionChangeBuilder",
        "build",
        "then keeps the ISR",
        "who is elected from outside of the ISR has the members of before beside it, whose logs it will not have",
        UNCLEAN_SWITCHED,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "unclean-in-the-same-epoch",
        "org.apache.kafka.metadata.PartitionRegistration",
        "merge",
        "then keeps the epoch",
        "who is elected from outside of the ISR leads in the epoch of the leader before it",
        UNCLEAN_SWITCHED,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "unclean-and-nothing-to-recover",
        f"{CONTROLLER}.PartitionChangeBuilder",
        "build",
        "then recovers nothing",
        "the record of an unclean election has no LeaderRecoveryState (KIP-704)",
        UNCLEAN_SWITCHED,
        "kafka-4.4",
        edges=15,
    ),
    Mistake(
        "unclean-outsider",
        f"{CONTROLLER}.PartitionChangeBuilder",
        "build",
        "then goes outside",
        "a broker without a replica is elected",
        ALL_AT_ONCE,
        "kafka-4.4",
        walks=60,
    ),
)


def mistake_named(name: str) -> Mistake:
    """The mistake of this name."""
    return next(mistake for mistake in MISTAKES if mistake.name == name)


def plant(kafka: Kafka, mistake: Mistake, folder: Path) -> Path:
    """The folder, in which the changed class lies now; Unavailable if this release has no such method."""
    kafka_jars = jars(kafka.release, kafka.home)
    planter = build([SOURCES / "plant"], kafka.release, kafka.home, beside=tools())
    path = classpath(planter, tools(), kafka_jars)
    command = [java(), "-cp", path, "insync.plant.Plant", str(folder), mistake.type, mistake.method, mistake.answers]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        raise Unavailable(
            f"{mistake.name} cannot be planted in Kafka {release_of(kafka_jars)}: {ran.stderr.strip()[:300]}"
        )
    return folder


def home_with(kafka: Kafka, mistake: Mistake, home: Path) -> Path:
    """A Kafka at `home`, as somebody would have built it: the same jars, one of which has the mistake."""
    (home / "libs").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        planted_folder = plant(kafka, mistake, Path(work))
        entry = mistake.type.replace(".", "/") + ".class"
        for jar in jars(kafka.release, kafka.home):
            copy = home / "libs" / jar.name
            with zipfile.ZipFile(jar) as old:
                if entry not in old.namelist():
                    shutil.copy(jar, copy)
                    continue
                with zipfile.ZipFile(copy, "w") as new:
                    for item in old.infolist():
                        content = (planted_folder / entry).read_bytes() if item.filename == entry else old.read(item)
                        new.writestr(item, content)
    return home
