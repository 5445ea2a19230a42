"""Whose data a data directory holds: the file `meta.properties` (Kafka: MetaProperties, KIP-78, KIP-631)."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Callable
from typing import Final

import attrs

from isr_broker.core.messages import BrokerId
from isr_broker.core.record_batch import crc32c
from isr_broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    LOG_STARTS,
    POSITION,
    RECOVERY_POINTS,
    WATERMARKS,
    contents,
    replace,
)
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.log import has_a_log
from isr_broker.storage.log_directory import log_folders
from isr_broker.storage.metadata_end import END
from isr_broker.storage.metadata_log import NAME
from isr_broker.storage.owner import CLUSTER, META_PROPERTIES, NODE, properties_in

_CRC: Final = "crc32c"
"""The first line has the CRC-32C of all after it. Kafka's file has none, nor has one that somebody has written."""
OURS: Final = "system=insync"
"""The line that Apache Kafka does not write."""


@attrs.frozen
class Claim:
    """Which broker of which cluster the data belong to, and the id of the data directory (KIP-858)."""

    broker: BrokerId
    cluster: str
    directory: str = ""


class NotOurs(Exception):
    """The data are those of another broker or cluster."""


def new_id(bits: Callable[[int], int] = secrets.randbits) -> str:
    """A random id, of a cluster or a directory: a UUID as 22 characters of base64, the first no dash (Uuid).

    `bits` gives so many random bits.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid.UUID(int=bits(128), version=4).bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def read_claim(disk: Disk) -> Claim | None:
    """Whose data there are; None if nobody has said."""
    text = contents(disk, META_PROPERTIES)
    if text is None:
        return None
    values = properties_in(text)
    broker = values.get(NODE, "")
    is_whole = values.get(_CRC) in (None, _crc(text.partition(b"\n")[2]))
    if not broker.isascii() or not broker.isdigit() or not values.get(CLUSTER) or not is_whole:
        raise NotOurs(f"{META_PROPERTIES} of the data directory cannot be read")
    return Claim(int(broker), values[CLUSTER], values.get("directory.id", ""))


def _crc(text: bytes) -> str:
    return f"{crc32c(text):08x}"


_EXAMPLE: Final = "4L6g3nShT-eMCtK--X86sw"


def cluster_in(disk: Disk, cluster: str | None, begins: bool) -> str:
    """The id of the cluster that a data directory is for; NotOurs with a sentence if nobody says which.

    `cluster` is the id that was asked for, if one was. Without it the folder says it, and who `begins` a cluster, the
    broker with the controller, draws one. A folder of an older run may have a name in its place, and keeps it.
    """
    existing_claim = read_claim(disk)
    if existing_claim is not None:
        return existing_claim.cluster if cluster is None else cluster
    if cluster is None and not begins:
        raise NotOurs(
            f"the data directory is new, and nobody says of which cluster; --cluster does, "
            f"and the id is cluster.id in {META_PROPERTIES} of the broker with the controller"
        )
    if cluster is not None and (not cluster.isprintable() or cluster.split() != [cluster]):
        raise NotOurs(f"--cluster {cluster!r}: the id of a cluster is one word, as a new cluster draws it {_EXAMPLE}")
    return cluster or new_id()


_SIGNS: Final = {CLEAN_SHUTDOWN, END, LOG_STARTS, NAME, POSITION, RECOVERY_POINTS, WATERMARKS}
"""Each file that a broker writes at the root and reads again: where there is one, there was a broker."""


def _signs(disk: Disk) -> list[str]:
    """What says that the data directory is not new. A log is there before the first checkpoint is."""
    logs = (name for name in log_folders(disk).values() if has_a_log(disk, name))
    return sorted([*(_SIGNS & {*disk.names(ROOT)}), *logs])


def claim(disk: Disk, mine: Claim) -> Claim:
    """Make the data directory this broker's, if it is nobody's; NotOurs if it is somebody else's. What it says then.

    A directory without an id gets that of `mine`, or else a new one.
    """
    existing_claim = read_claim(disk)
    signs = _signs(disk) if existing_claim is None else []
    if signs:
        raise NotOurs(
            f"{META_PROPERTIES} is missing, and there is {signs[0]}: write it again with the lines version=1,"
            " cluster.id=NAME and node.id=NUMBER of the broker that had this data directory"
        )
    if existing_claim is not None and existing_claim.broker != mine.broker:
        raise NotOurs(
            f"the data directory is that of broker {existing_claim.broker}, not of broker {mine.broker}: "
            f"node.id in {META_PROPERTIES}"
        )
    if existing_claim is not None and existing_claim.cluster != mine.cluster:
        raise NotOurs(
            f"the data directory belongs to the cluster {existing_claim.cluster}, not to {mine.cluster}: "
            f"cluster.id in {META_PROPERTIES}"
        )
    if existing_claim is not None and existing_claim.directory:
        return existing_claim
    whole = attrs.evolve(mine, directory=mine.directory or new_id())
    text = f"version=1\ncluster.id={whole.cluster}\nnode.id={whole.broker}\ndirectory.id={whole.directory}\n{OURS}\n"
    replace(disk, META_PROPERTIES, f"{_CRC}={_crc(text.encode())}\n{text}".encode())
    return whole
