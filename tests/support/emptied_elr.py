"""How a record is lost that two logs hold: the ELR is emptied, and who led last comes back with an empty disk.

A leader is alone in sync, under the minimum, and all its followers are in the ELR with every record. Somebody raises
min.insync.replicas, and that empties the ELR. The leader stops in order, its disk is replaced, and it is elected as the
last known leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BOUNDS: Final[Mapping[str, int]] = {
    "replicas": 3,
    "min_insync": 2,
    "shutdowns": 1,
    "disks_replaced": 1,
    "minimum_changes": 1,
    "epochs": 2,
    "isr_changes": 5,
    "log": 1,
    "records": 1,
    "crashes": 0,
    "reassignments": 0,
    "sessions_lost": 0,
}
LEADER, FOLLOWERS = 0, (1, 2)
BOTH: Final = sum(1 << f for f in FOLLOWERS)
Named = tuple[str, Mapping[str, object]]


def _fetch(follower: int) -> Named:
    return "leader_answers_fetch", {"leader": LEADER, "follower": follower}


TO_THE_ELECTION: Final[tuple[Named, ...]] = (
    ("leader_appends", {"leader": LEADER}),
    *(step for f in FOLLOWERS for step in (_fetch(f), ("follower_appends", {"follower": f}))),
    ("leader_proposes_shrink", {"leader": LEADER, "lagging": BOTH}),
    *(_fetch(f) for f in FOLLOWERS),
    ("controller_accepts_alter_partition", {"leader": LEADER}),
    ("controller_sets_minimum", {"value": 3}),
    ("broker_asks_to_shut_down", {"r": LEADER}),
    ("controller_fences_last_leader", {"r": LEADER}),
    ("broker_shuts_down", {"r": LEADER}),
    ("disk_is_replaced", {"r": LEADER}),
    ("broker_restarts", {"r": LEADER}),
)
"""All steps up to the one in which the controller elects the broker with the empty disk."""
ELECTION: Final[tuple[Named, ...]] = (
    ("controller_elects_last_known_leader", {"r": LEADER}),
    ("becomes_leader", {"r": LEADER}),
)
PLACED: Final[tuple[Named, ...]] = (
    ("controller_unfences", {"r": LEADER}),
    ("becomes_follower", {"r": LEADER}),
    ("controller_learns_directory", {"r": LEADER}),
)
"""What comes before the election where the disk has another directory id."""
