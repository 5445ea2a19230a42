"""Whose data a folder holds: one cluster's, with one folder per broker."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.meta_properties import OURS, Claim, read_claim
from isr_broker.storage.metadata_log import NAME as METADATA_LOG
from isr_broker.storage.owner import META_PROPERTIES

CONTROLLER_BROKER: Final = 1
"""The broker that has the controller, too."""


FIRST_CONTROLLER: Final = 101
"""The number of the first controller of a quorum, which no broker has."""


class OtherData(Exception):
    """The folder holds something else; the message says what."""


def folders(root: Path, brokers: int) -> dict[int, Path]:
    """One data directory per broker, by its number."""
    return {broker: root / str(broker) for broker in range(1, brokers + 1)}


def controller_numbers(count: int) -> range:
    """The numbers of so many controllers of a quorum."""
    return range(FIRST_CONTROLLER, FIRST_CONTROLLER + count)


def cluster_of(root: Path, brokers: int, ours: bool = True, controllers: int = 0) -> str | None:
    """The cluster whose data the folder holds, None if it holds none yet; OtherData if it is not of so many brokers,
    or of another system than ours (or than Apache Kafka, where `ours` is not).

    `controllers` is how many there are of a quorum, each with a folder of its own."""
    if not root.exists():
        return None
    if not root.is_dir():
        raise OtherData(f"{root} is a file, not a folder")
    expected = {path.name: broker for broker, path in folders(root, brokers).items()}
    expected |= {str(number): number for number in controller_numbers(controllers)}
    single = root / str(CONTROLLER_BROKER) / METADATA_LOG
    if controllers and single.exists():
        raise OtherData(f"{root} holds data of a cluster with one controller, {single}; give a new folder")
    there = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    claims = {path: read_claim(RealDisk(path)) if path.is_dir() else None for path in there}
    folder_claims: dict[Path, Claim] = {path: claim for path, claim in claims.items() if claim is not None}
    strange = [path.name for path in there if path.name not in expected or any(path.iterdir())]
    if strange and not folder_claims:
        raise OtherData(f"{root} holds {strange[0]}, which is no broker's data; give a new folder")
    ids = {claim.cluster for claim in folder_claims.values()}
    if len(ids) > 1:
        whose = ", ".join(f"{path.name} of {claim.cluster}" for path, claim in folder_claims.items())
        raise OtherData(f"{root} holds data of several clusters: {whose}")
    for path, claim in folder_claims.items():
        if _of_kafka(path) is (ours or expected.get(path.name) in controller_numbers(controllers)):
            whose = "Apache Kafka" if ours else "insync's own broker"
            raise OtherData(f"{root} holds data of {whose}; give a new folder, or another --system")
        if path.name not in expected:
            raise OtherData(f"{root} holds the data of broker {path.name}, but there are to be {brokers} brokers")
        if claim.broker != expected[path.name]:
            raise OtherData(f"{path} is the data of broker {claim.broker}, not of broker {path.name}")
    return next(iter(ids), None)


def _of_kafka(folder: Path) -> bool:
    """Whether Apache Kafka has formatted a folder: it gives each an id (KIP-858), and no name as ours does."""
    text = (folder / META_PROPERTIES).read_text(encoding="utf-8")
    return "directory.id=" in text and OURS not in text.splitlines()
