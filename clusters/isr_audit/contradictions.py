"""What was told of the release and of eligible leader replicas, and cannot all be so.

Nobody told which of it is of now. So each is a sentence for a note, and nothing is said to survive that depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isr_audit.cluster import ELR_FEATURE, METADATA_FEATURE, Cluster, Release, release_text

SINCE_ELR: Final[Release] = (3, 7)
"""The first release whose metadata have eligible leader replicas (PartitionChangeRecord: 3.7.0 has them, 3.6.0 not)."""
SINCE_FEATURE: Final[Release] = (4, 0)
"""The first release with the feature (EligibleLeaderReplicasVersion: 3.9.0-rc2 has none)."""
SINCE_COLUMN: Final[Release] = (3, 8)
"""The first release whose brokers tell Elr (docs/audit.md)."""
SINCE_KRAFT: Final[Release] = (3, 3)
"""The first release with KRaft for production (KIP-833)."""
WITHOUT_ZOOKEEPER: Final[Release] = (4, 0)


def eligibility_contradictions(
    cluster: Cluster, release: Release | None, elr: bool | None, exact: Release | None
) -> Iterator[str]:
    """Of eligible leader replicas: `release` and `elr` are of the command line, `exact` is the release that counts."""
    on, off = list(_on(cluster, elr)), list(_off(cluster, elr))
    if on and off:
        yield f"{' and '.join(off)}, but {' and '.join(on)}"
    if on and exact is not None and exact[:2] < SINCE_ELR:
        since = "and eligible leader replicas begin with 3.7"
        yield f"{' and '.join(on)}, but the release is {release_text(exact)}, {since}"
    elif _level(cluster) not in ("", "0") and exact is not None and exact[:2] < SINCE_FEATURE:
        level = f"{ELR_FEATURE} is at level {_level(cluster)}, which begins with 4.0"
        yield f"{level}, but the release is {release_text(exact)}"
    column = _column(cluster)
    if column and release is not None and release[:2] < SINCE_COLUMN:
        yield f"--kafka {release_text(release)}, but {column}"


def zookeeper_contradictions(
    cluster: Cluster, elr: bool | None, kraft: bool | None, exact: Release | None
) -> Iterator[str]:
    """Of ZooKeeper, where something else tells that there is none. `kraft` is of the command line, too."""
    brokers = [b for b, c in cluster.brokers.items() if _is_set(c.get("zookeeper.connect")) and not _has_role(c)]
    with_zookeeper = [
        *(["--kraft off"] if kraft is False else []),
        *(f"{b} has zookeeper.connect without process.roles" for b in brokers),
    ]
    without = [
        *(["--kraft on"] if kraft else []),
        *([f"{METADATA_FEATURE} was told, which there is with KRaft only"] * (METADATA_FEATURE in cluster.features)),
        *filter(None, [_column(cluster)]),
        *_on(cluster, elr),
        *([f"the release is {release_text(exact)}"] if exact is not None and exact >= WITHOUT_ZOOKEEPER else []),
        *(f"{b} has process.roles" for b, c in cluster.brokers.items() if _has_role(c)),
    ]
    if with_zookeeper and without:
        yield f"{with_zookeeper[0]}, but {without[0]}"
    if kraft and exact is not None and exact[:2] < SINCE_KRAFT:
        yield f"--kraft on, but the release is {release_text(exact)}, and KRaft is for production from 3.3 on"


def _on(cluster: Cluster, elr: bool | None) -> Iterator[str]:
    """What tells that eligible leader replicas are on."""
    if elr:
        yield "--elr on"
    if _level(cluster) not in ("", "0"):
        yield f"{ELR_FEATURE} is at level {_level(cluster)}"
    members = next((p for p in cluster.partitions if p.elr), None)
    if members is not None:
        yield f"{members.name} has Elr {','.join(map(str, members.elr or ()))}"


def _off(cluster: Cluster, elr: bool | None) -> Iterator[str]:
    """What tells that they are off."""
    if elr is False:
        yield "--elr off"
    if _level(cluster) == "0":
        yield f"{ELR_FEATURE} is at level 0"


def _level(cluster: Cluster) -> str:
    return cluster.features.get(ELR_FEATURE, "")


def _column(cluster: Cluster) -> str:
    """Who told Elr, even that it is empty; nothing where nobody did."""
    name = next((p.name for p in cluster.partitions if p.elr is not None), "")
    return f"Elr was told of {name}, which brokers of 3.8 or later with KRaft do" if name else ""


def _is_set(value: str | None) -> bool:
    return value not in (None, "", "null")


def _has_role(settings: Mapping[str, str]) -> bool:
    return _is_set(settings.get("process.roles"))
