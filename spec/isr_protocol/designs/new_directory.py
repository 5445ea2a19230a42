"""Kafka as it is released, where an empty disk has a directory id of its own.

`kafka-4.4` lets a broker come back with an empty disk under the directory id of the one before. That is so where
somebody puts the old meta.properties back. A disk that kafka-storage.sh formats has another id, and so has a folder
that a broker finds empty beside others. The controller then takes the replica to be in a directory that its broker does
not have. It elects nobody there (LeaderAcceptor.test, ClusterControlManager.hasOnlineDir). The broker tells it of the
directory that it has made its replica in, and that is a new version of the partition
(ReplicaManager.maybeUpdateTopicAssignment, ReplicationControlManager.handleAssignReplicasToDirs, 4.3.1).

`kafka-4.2` has the same, and there such a version empties the ELR (`earlier_releases`).

With `--new-directories off` it is kafka-4.4. It is no design of `insync designs`, so name this file: `--design-file`.
Left out: a replica that a reassignment adds to a broker with several directories, which the controller does not choose.
"""

from __future__ import annotations

from isr_lang import Design
from isr_protocol.designs.earlier_releases import KAFKA_4_0
from isr_protocol.designs.releases import KAFKA_4_4, KAFKA_4_4_MENDED
from isr_protocol.designs.replica_directory import knowing_directories


def with_new_directories(design: Design, name: str, summary: str) -> Design:
    """The same design, with an empty disk by default."""
    because = "a disk that is formatted anew has a directory id that the controller does not know."
    made = knowing_directories(design, name, summary, because)
    return made.with_defaults(reassignments=0, disks_replaced=1, crashes=1)


KAFKA_4_4_NEW_DIRECTORY = with_new_directories(
    KAFKA_4_4, "kafka-4.4-new-directory", "kafka-4.4 where an empty disk has a directory id of its own"
)
KAFKA_4_4_MENDED_NEW_DIRECTORY = with_new_directories(
    KAFKA_4_4_MENDED,
    "kafka-4.4-mended-new-directory",
    "kafka-4.4-mended where an empty disk has a directory id of its own",
)
KAFKA_4_0_NEW_DIRECTORY = with_new_directories(
    KAFKA_4_0, "kafka-4.0-new-directory", "kafka-4.0 where an empty disk has a directory id of its own"
)
