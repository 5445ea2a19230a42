"""A power failure on real files: what a killed broker had not flushed is taken from its logs.

SIGKILL alone loses nothing, for the system still writes its cache. The broker notes each flush (`insync.flush.record`;
Apache Kafka's nodes do so in `insync.node.Flushed`); every segment is cut back to what its last flush made durable.
Other files are as they are: ours are flushed before they get their names (`isr_broker.storage.checkpoints`,
`isr_broker.storage.metadata_log`); Kafka cuts its leader epochs to what is left of the log.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import attrs


class Tail(Enum):
    """What becomes of the bytes that were not flushed."""

    LOST = "all of them are gone"
    TORN = "a first part of them was written, the last batch of it in part, and zeros after that"


@attrs.frozen
class PowerLoss:
    """What a power failure took: bytes, and from how many segments."""

    bytes: int
    segments: int


def record_of(root: Path, broker: int) -> Path:
    """Where a broker notes what its flushes made durable."""
    return root / f"flushed-{broker}"


def durable(record: Path) -> dict[str, int]:
    """How much of each file the last flush made durable."""
    durable_sizes: dict[str, int] = {}
    if record.exists():
        for line in record.read_text(encoding="utf-8").splitlines():
            size, _, path = line.partition(" ")
            durable_sizes[path] = int(size)
    return durable_sizes


def lose_power(data: Path, record: Path, tail: Tail = Tail.LOST) -> PowerLoss:
    """Cut the segments of a broker that does not run."""
    flushed = durable(record)
    lost_bytes = segments = 0
    for path in sorted(data.glob("*/*.log")):
        size = path.stat().st_size
        durable_size = min(size, flushed.get(path.relative_to(data).as_posix(), 0))
        if durable_size == size:
            continue
        lost_bytes += size - durable_size
        segments += 1
        with path.open("r+b") as file:
            if tail is Tail.TORN:
                half = durable_size + (size - durable_size) // 2
                file.truncate(half)
                file.seek(half)
                file.write(bytes(min(64, size - half)))
            else:
                file.truncate(durable_size)
    return PowerLoss(lost_bytes, segments)
