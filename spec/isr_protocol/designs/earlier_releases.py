"""Kafka before 4.3: `releases` with the bugs of that time that are mended since; and without eligible leader replicas.

A reassignment was complete when all target replicas were in sync (KAFKA-19975). And with eligible leader replicas a
broker that told of the directory of a replica emptied the ELR: ReplicationControlManager.handleAssignReplicasToDirs
built its record without saying that there is one (4.0.0 and 4.1.1, read; 4.0.0 to 4.2.2, run; mended in 4.3.0).

In `kafka-4.2` an empty disk therefore has a directory id of its own, as `kafka-storage.sh format` makes it. With
`--new-directories off` it has the one before, and nobody tells of anything.

Left out: a replica that is put into another directory while its broker runs, which empties the ELR just so.
"""

from __future__ import annotations

import attrs

from isr_lang import Design, Step, action
from isr_lang.blank import blank
from isr_protocol.designs.history import isr_keeps_last, never_struck, no_elr
from isr_protocol.designs.reassignment import completes as completes_with_all
from isr_protocol.designs.releases import (
    KAFKA_4_4,
    REMOVED_IS_ELECTED,
    reassignment_can_complete,
    stays_eligible,
)
from isr_protocol.designs.replica_directory import (
    WithDirectories,
    knowing_directories,
    learns_directory,
)
from isr_protocol.state import Replica


@action
def controller_learns_directory_and_empties_elr(old: WithDirectories, new: WithDirectories, r: Replica) -> Step:
    """A broker tells in which directory a replica is, and nobody is eligible any more who is not in sync.

    PartitionChangeBuilder.maybeUpdateRecordElr.
    """
    return learns_directory(old, new, r, blank(old.controller_elr))


_WITH_ALL = KAFKA_4_4.replacing(
    "kafka-4.2",
    "Kafka 4.1 and 4.2 as they are released, with eligible leader replicas",
    because="a reassignment was complete when all target replicas were in sync (KAFKA-19975).",
    completes_with_added_or_all=completes_with_all,
)

KAFKA_4_2 = (
    knowing_directories(_WITH_ALL, _WITH_ALL.name, _WITH_ALL.summary, "it is the release before with its directories.")
    .replacing(
        _WITH_ALL.name,
        _WITH_ALL.summary,
        because="a reassignment was complete when all target replicas were in sync (KAFKA-19975), and a broker that "
        "told of a directory emptied the ELR.",
        controller_learns_directory=controller_learns_directory_and_empties_elr,
    )
    .failing(
        REMOVED_IS_ELECTED,
        *(KAFKA_4_4.property_named(name) for name, why in KAFKA_4_4.expected.items() if why == REMOVED_IS_ELECTED),
    )
)


def without_elr(design: Design, name: str, summary: str, because: str) -> Design:
    """The design where eligible.leader.replicas.version is 0: nobody is eligible who is not in sync.

    FeatureControlManager.isElrFeatureEnabled, which PartitionChangeBuilder and ReplicationControlManager go by.
    """
    kept = tuple(p for p in design.properties if p.name != stays_eligible.name)
    return (
        attrs.evolve(design, properties=kept)
        .replacing(
            name,
            summary,
            because=because,
            elr_beside_of_minimum=no_elr,
            isr_without=isr_keeps_last,
            struck=never_struck,
        )
        .without("controller_elects_last_known_leader")
    )


KAFKA_4_4_NO_ELR = without_elr(
    KAFKA_4_4,
    "kafka-4.4-no-elr",
    "Kafka 4.3 and 4.4 as they are released, without eligible leader replicas",
    because="a cluster from before 4.1 has the feature only once somebody finalizes it (docs/versions.md).",
).failing(KAFKA_4_4.expected[reassignment_can_complete.name], reassignment_can_complete)

KAFKA_4_0 = without_elr(
    _WITH_ALL,
    "kafka-4.0",
    "Kafka 4.0 as it is released, and 4.1 and 4.2 without eligible leader replicas",
    because="the feature is on by default only from 4.1 on (docs/versions.md).",
)

DESIGNS = (KAFKA_4_2, KAFKA_4_0, KAFKA_4_4_NO_ELR)
