"""What becomes of single files of a disk: one is gone, empty, shorter, older, another broker's, or has another bit.

Which promise may be broken by it depends on what the file is for (`Purpose`). Only a segment has records, so only there
a copy of them is lost. Every other file is there to speed up a start or to say whose the data are. Without it, or with
another one in its place, a broker may start, or refuse to and name the file; it may not lose a record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Final

import attrs

from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.topics import FILE as PARTITION_METADATA
from isr_broker.storage.checkpoints import TEMPORARY
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.metadata_log import NAME as METADATA_LOG
from isr_broker.storage.owner import META_PROPERTIES
from isr_broker.storage.segment import SUFFIX

SCARCE: Final = 4
"""How many earlier versions of a file are kept."""


class Purpose(Enum):
    """What a file is for."""

    RECORDS = "a segment of a log"
    METADATA = "the controller's log"
    IDENTITY = "whose data these are: meta.properties, partition.metadata"
    CHECKPOINT = "what makes a start quick: checkpoints, the mark of a clean shutdown"


class Damage(Enum):
    """What becomes of a file."""

    ABSENT = "it is not there"
    EMPTY = "it is there, with nothing in it"
    SHORTER = "its end is missing"
    OLDER = "it is as it was when the process ended some time before"
    FLIP = "one bit is another"
    FOREIGN = "it is that of another broker"


def purpose(path: str) -> Purpose:
    """What a file is for, by its path."""
    name = path.rpartition("/")[2]
    if path == METADATA_LOG:
        return Purpose.METADATA
    if name in (META_PROPERTIES, PARTITION_METADATA):
        return Purpose.IDENTITY
    return Purpose.RECORDS if name.endswith(SUFFIX) else Purpose.CHECKPOINT


def files(disk: MemoryDisk, role: Purpose) -> list[str]:
    """The files of a disk for one purpose, in their order: not what is temporary, nor what was set aside."""
    named = (path for path, image in sorted(disk.names_now.items()) if image is not None)
    used = (path for path in named if "/" not in path or partition_of(path) is not None)
    return [path for path in used if purpose(path) is role and not path.endswith(TEMPORARY)]


Archive = dict[str, list[bytes]]
"""Of each file its last few versions that differ, the newest last."""


def archive_files(versions: Archive, disk: MemoryDisk, damages: Mapping[str, FileDamage]) -> None:
    """Note how each small file is now, but for damaged ones; segments have their older versions in themselves."""
    for path, image in disk.names_now.items():
        is_damaged = path in damages and image is not None and damages[path].after == image.durable
        if image is None or is_damaged or purpose(path) is Purpose.RECORDS:
            continue
        known = versions.setdefault(path, [])
        if not known or known[-1] != image.durable:
            known.append(image.durable)
            del known[:-SCARCE]


def contents_after(
    path: str, contents: bytes, how: Damage, versions: Archive, chance: Random, others: Sequence[bytes] = ()
) -> bytes | None:
    """The contents of a file after damage, None for no file. What cannot be damaged so is as it was.

    `others` is what the file is at other brokers.
    """
    match how:
        case Damage.ABSENT:
            return None
        case Damage.EMPTY:
            return b""
        case Damage.SHORTER:
            return contents[: chance.randrange(len(contents))] if contents else contents
        case Damage.OLDER if purpose(path) is Purpose.RECORDS:
            return contents[: chance.choice(_ends(contents))]
        case Damage.OLDER:
            return chance.choice([version for version in versions.get(path, ()) if version != contents] or [contents])
        case Damage.FLIP:
            return _with_flip(contents, _bit(path, contents, chance)) if contents else contents
        case Damage.FOREIGN:
            return chance.choice([other for other in others if other != contents] or [contents])


def _bit(path: str, contents: bytes, chance: Random) -> int:
    """One bit of a file; of one that people can read often one that makes another number of a number."""
    is_text = purpose(path) is not Purpose.RECORDS
    digits = [bit for bit in _low_bits(contents) if _keeps_digit(contents, bit)] if is_text else []
    return chance.choice(digits) if digits and chance.random() < 0.5 else chance.randrange(8 * len(contents))


def _low_bits(contents: bytes) -> Iterator[int]:
    return (8 * at + low for at, byte in enumerate(contents) if chr(byte) in "0123456789" for low in range(4))


def _keeps_digit(contents: bytes, bit: int) -> bool:
    return (contents[bit // 8] ^ 1 << bit % 8) <= ord("9")


def _with_flip(contents: bytes, bit: int) -> bytes:
    at = bit // 8
    return contents[:at] + bytes([contents[at] ^ 1 << bit % 8]) + contents[at + 1 :]


@attrs.frozen
class FileDamage:
    """What became of one file: its contents `before` and `after`, None for no file."""

    how: Damage
    before: bytes
    after: bytes | None

    def repair(self, now: bytes | None) -> bytes:
        """The file as an operator puts it right who has a copy: with what was written since, if only one bit was."""
        if self.how is not Damage.FLIP or now is None or len(now) < len(self.before):
            return self.before
        bits = zip(self.before, self.after or b"", strict=False)
        at = next((at for at, (one, other) in enumerate(bits) if one != other), 0)
        return now[:at] + self.before[at : at + 1] + now[at + 1 :]

    def after_another(self, later: FileDamage) -> FileDamage:
        """What became of a file in all that was damaged twice, and not put right in between."""
        return attrs.evolve(later, how=Damage.OLDER, before=self.before) if self.after == later.before else later


def spoil_file(
    disk: MemoryDisk, path: str, how: Damage, versions: Archive, chance: Random, others: Sequence[bytes] = ()
) -> FileDamage | None:
    """Damage a file of a disk that nobody uses; None where that changes nothing."""
    before = disk.image(path).durable
    after = contents_after(path, before, how, versions, chance, others)
    if after == before:
        return None
    if after is None:
        disk.lose(path)
    else:
        disk.put(path, after)
    return FileDamage(how, before, after)


def _ends(contents: bytes) -> list[int]:
    """Where the batches of a segment begin and end."""
    ends = [0]
    with contextlib.suppress(BadBatch):
        ends += [batch.position + batch.size for batch in batches(contents)]
    return ends


def partition_of(path: str) -> TopicPartition | None:
    """The partition in whose folder a file is; None outside of all."""
    topic, _, number = path.rpartition("/")[0].rpartition("-")
    return TopicPartition(topic, int(number)) if topic and number.isdigit() else None
