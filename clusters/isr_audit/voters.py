"""The controllers of a cluster: who votes, how voters are known, and what an empty disk of one of them is worth."""

from __future__ import annotations

import re
from typing import Final

from isr_audit.cluster import Cluster

VOTERS: Final = "controller.quorum.voters"
KRAFT_FEATURE: Final = "kraft.version"
STATIC_DISK: Final = (
    "a voter of a static quorum that comes back with an empty disk votes again and counts as the one that "
    "it was, so a committed change of the metadata may be forgotten (KAFKA-14077; "
    "insync check kraft-controllers-static --property acked-survives shows it)"
)
DYNAMIC_DISK: Final = (
    "a voter that comes back with an empty disk votes no more until it is added again (KIP-853); format it with "
    "--no-initial-controllers, for --initial-controllers with the same directory id makes it the voter that it was, "
    "and on 4.4.0 and 4.0.1 acknowledged records were lost with that (docs/kraft.md)"
)


def voters_of(cluster: Cluster) -> frozenset[int] | None:
    """The voters, by the settings of a static quorum or as the quorum told them; None where they were not told, or the
    settings differ."""
    sets = {frozenset(int(v) for v in re.findall(r"(?:^|,)(\d{1,9})@", t, re.ASCII)) for t in _static_voters(cluster)}
    return (next(iter(sets)) or None if len(sets) == 1 else None) if sets else cluster.voters


def has_dynamic_voters(cluster: Cluster) -> bool:
    """Whether voters are known by the directory ids of their disks, too (KIP-853)."""
    return cluster.features.get(KRAFT_FEATURE, "0") != "0"


def empty_disk(cluster: Cluster) -> str:
    """What comes of a controller's disk that is lost; "" where nobody told how voters are known."""
    if has_dynamic_voters(cluster):
        return DYNAMIC_DISK
    return STATIC_DISK if KRAFT_FEATURE in cluster.features or _static_voters(cluster) else ""


def _static_voters(cluster: Cluster) -> set[str]:
    """What the settings of brokers say of who votes."""
    return {s[VOTERS].replace(" ", "") for s in (*cluster.brokers.values(), cluster.defaults) if s.get(VOTERS)}
