"""Whose data a data directory holds: the file `meta.properties` (Kafka: MetaProperties, KIP-78, KIP-631)."""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.messages import BrokerId
from isr_broker.storage.checkpoints import LOG_STARTS, POSITION, RECOVERY_POINTS, WATERMARKS, contents, replace
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.metadata_end import END

META_PROPERTIES: Final = "meta.properties"


@attrs.frozen
class Claim:
    """Which broker of which cluster the data belong to."""

    broker: BrokerId
    cluster: str


class NotOurs(Exception):
    """The data are those of another broker or cluster."""


def claimed(disk: Disk) -> Claim | None:
    """Whose data there are; None if nobody has said."""
    found = contents(disk, META_PROPERTIES)
    if found is None:
        return None
    pairs = [line.split("=", 1) for line in found.decode("utf-8", "replace").splitlines() if "=" in line]
    values = {name.strip(): value.strip() for name, value in pairs}
    broker = values.get("node.id", "")
    if not broker.isascii() or not broker.isdigit() or not values.get("cluster.id"):
        raise NotOurs(f"{META_PROPERTIES} of the data directory cannot be read")
    return Claim(int(broker), values["cluster.id"])


def claim(disk: Disk, mine: Claim) -> None:
    """Make the data directory this broker's, if it is nobody's; NotOurs if it is somebody else's, or has lost whose."""
    existing_claim = claimed(disk)
    if existing_claim is None:
        signs = sorted({WATERMARKS, RECOVERY_POINTS, LOG_STARTS, POSITION, END} & {*disk.names(ROOT)})
        if signs:
            raise NotOurs(
                f"{META_PROPERTIES} is missing, and there is {signs[0]}: write it again with the lines version=1,"
                " cluster.id=NAME and node.id=NUMBER of the broker that had this data directory"
            )
        text = f"version=1\ncluster.id={mine.cluster}\nnode.id={mine.broker}\n"
        replace(disk, META_PROPERTIES, text.encode())
    elif existing_claim.broker != mine.broker:
        raise NotOurs(f"the data directory is that of broker {existing_claim.broker}, not of broker {mine.broker}")
    elif existing_claim.cluster != mine.cluster:
        raise NotOurs(f"the data directory belongs to the cluster {existing_claim.cluster}, not to {mine.cluster}")
