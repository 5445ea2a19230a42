"""What the controller has decided, counted from its log: elections, and changes of the ISR."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import attrs

from isr_broker.core.messages import BrokerId, PartitionMetadata, TopicPartition
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.metadata_log import NAME, records_in


@attrs.frozen
class Changes:
    """How often a partition changed: new leader epochs, so many of them with another leader, and other ISRs."""

    epochs: int
    leaders: int
    isrs: int


def changes(data: Path, tp: TopicPartition) -> Changes:
    """The changes of one partition since it was created, from the data directory of the controller's broker.

    The log may be written while it is read: a torn end is left out.
    """
    disk = RealDisk(data)
    file = disk.open(NAME)
    try:
        history = [r for r in records_in(file)[0] if isinstance(r, PartitionMetadata) and r.partition == tp]
    finally:
        file.close()
    pairs = list(pairwise(history))
    led: list[BrokerId] = [r.leader for r in history if r.leader is not None]
    return Changes(
        epochs=sum(a.leader_epoch != b.leader_epoch for a, b in pairs),
        leaders=sum(a != b for a, b in pairwise(led)),
        isrs=sum(a.isr != b.isr for a, b in pairs),
    )
