"""Mistakes planted in Kafka's controllers, to see that the comparison with controllers on a quorum finds them.

They are planted as those of `mistakes`, and driven by walks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_kafka.mistakes import CONTROLLER, Mistake

BOUNDS: Final[Mapping[str, int]] = {
    "voters": 3,
    "replicas": 2,
    "metadata_log": 4,
    "isr_changes": 2,
    "crashes": 1,
    "epochs": 1,
    "log": 1,
    "records": 1,
}
FEW: Final[Mapping[str, int]] = {**BOUNDS, "metadata_log": 3, "isr_changes": 1, "crashes": 0}
"""Fewer steps of brokers, so that walks go on to what is asked of a controller that is deposed."""


def _mistake(
    name: str, type_name: str, method: str, answers: str, says: str, bounds: Mapping[str, int] = BOUNDS
) -> Mistake:
    return Mistake(name, type_name, method, answers, says, bounds, "kraft-controllers")


MISTAKES: Final = (
    _mistake(
        "never-renounces",
        f"{CONTROLLER}.QuorumController",
        "renounce",
        "nothing",
        "a controller that hears of another leader stays active",
    ),
    _mistake(
        "never-reverts",
        "org.apache.kafka.timeline.SnapshotRegistry",
        "revertToSnapshot",
        "nothing",
        "a deposed controller keeps in memory what was not committed",
    ),
    _mistake(
        "never-answers",
        "org.apache.kafka.deferred.DeferredEventQueue",
        "completeUpTo",
        "nothing",
        "an AlterPartition that was committed is not answered",
    ),
    _mistake(
        "requests-kept",
        "org.apache.kafka.deferred.DeferredEventQueue",
        "failAll",
        "nothing",
        "who asked a controller that was deposed is not told to ask another",
        FEW,
    ),
    _mistake(
        "session-never-ends",
        f"{CONTROLLER}.BrokerHeartbeatTracker",
        "isExpired",
        "nothing",
        "no broker is ever fenced for its silence",
    ),
    _mistake(
        "any-partition-epoch",
        f"{CONTROLLER}.ReplicationControlManager",
        "validateAlterPartitionData",
        "no error",
        "an active controller accepts an AlterPartition about other metadata",
    ),
)
