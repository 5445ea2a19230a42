"""Where the replicas of a new topic go: round robin, each broker leading as often as any other."""

from __future__ import annotations

from collections.abc import Sequence

from isr_broker.core.messages import BrokerId


def placed(brokers: Sequence[BrokerId], partitions: int, copies: int, start: int) -> list[tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first; `start` says with whom to begin.

    The followers of one broker's partitions are spread over the others (StripedReplicaPlacer, without racks).
    """
    count = len(brokers)
    assert 1 <= copies <= count
    placement: list[tuple[BrokerId, ...]] = []
    for partition in range(start, start + partitions):
        shift = (partition // count) % max(1, count - 1)
        leader = partition % count
        followers = [(leader + 1 + (shift + i) % max(1, count - 1)) % count for i in range(copies - 1)]
        placement.append(tuple(brokers[b] for b in (leader, *followers)))
    return placement
