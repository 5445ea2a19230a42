"""Whose data a data directory holds: the file `meta.properties` (Kafka: MetaProperties, KIP-78, KIP-631)."""

from __future__ import annotations

import base64
import uuid
from typing import Final

import attrs

from isr_broker.core.messages import BrokerId
from isr_broker.storage.checkpoints import contents, replace
from isr_broker.storage.disk import Disk

META_PROPERTIES: Final = "meta.properties"


@attrs.frozen
class Claim:
    """Which broker of which cluster the data belong to."""

    broker: BrokerId
    cluster: str


class NotOurs(Exception):
    """The data are those of another broker or cluster."""


def new_cluster_id() -> str:
    """A random id for a new cluster: a UUID as 22 characters of base64, the first of which is no dash (Uuid)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


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


_EXAMPLE: Final = "4L6g3nShT-eMCtK--X86sw"


def cluster_in(disk: Disk, cluster: str | None, begins: bool) -> str:
    """The id of the cluster that a data directory is for; NotOurs with a sentence if nobody says which.

    `cluster` is the id that was asked for, if one was. Without it the folder says it, and who `begins` a cluster, the
    broker with the controller, draws one. A folder of an older run may have a name in its place, and keeps it.
    """
    existing_claim = claimed(disk)
    if existing_claim is not None:
        return existing_claim.cluster if cluster is None else cluster
    if cluster is None and not begins:
        raise NotOurs(
            f"the data directory is new, and nobody says of which cluster; --cluster does, "
            f"and the id is cluster.id in {META_PROPERTIES} of the broker with the controller"
        )
    if cluster is not None and (not cluster.isprintable() or cluster.split() != [cluster]):
        raise NotOurs(f"--cluster {cluster!r}: the id of a cluster is one word, as a new cluster draws it {_EXAMPLE}")
    return cluster or new_cluster_id()


def claim(disk: Disk, mine: Claim) -> None:
    """Make the data directory this broker's, if it is nobody's; NotOurs if it is somebody else's."""
    existing_claim = claimed(disk)
    if existing_claim is None:
        text = f"version=1\ncluster.id={mine.cluster}\nnode.id={mine.broker}\n"
        replace(disk, META_PROPERTIES, text.encode())
    elif existing_claim.broker != mine.broker:
        raise NotOurs(f"the data directory is that of broker {existing_claim.broker}, not of broker {mine.broker}")
    elif existing_claim.cluster != mine.cluster:
        raise NotOurs(f"the data directory belongs to the cluster {existing_claim.cluster}, not to {mine.cluster}")
