"""Whose the files of a data directory are, as `meta.properties` says: so no file of another broker passes for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isr_broker.storage.disk import Disk

META_PROPERTIES: Final = "meta.properties"
NODE: Final = "node.id"
CLUSTER: Final = "cluster.id"


def properties_in(text: bytes) -> dict[str, str]:
    """The lines `name=value` of a file, without the spaces around either."""
    pairs = [line.split("=", 1) for line in text.decode("utf-8", "replace").splitlines() if "=" in line]
    return {name.strip(): value.strip() for name, value in pairs}


def owner_of(disk: Disk) -> bytes:
    """The broker and the cluster that a data directory belongs to; empty if nobody has said so."""
    if not disk.exists(META_PROPERTIES):
        return b""
    file = disk.open(META_PROPERTIES)
    try:
        return _owner(properties_in(file.read(0, file.size())))
    finally:
        file.close()


def _owner(properties: Mapping[str, str]) -> bytes:
    return f"{properties.get(NODE, '')} {properties.get(CLUSTER, '')}\n".encode()
