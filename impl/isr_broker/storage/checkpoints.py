"""Small files that are replaced as a whole: checkpoints as text, and the mark of a clean shutdown.

A checkpoint is written to a temporary file, flushed, renamed over the old one, and the folder flushed, so that after a
crash either the old one is there or the new one. Its last line is a CRC-32C of whose it is, broker and cluster, and of
the lines before; Kafka's have none. One that cannot be read, or that its CRC does not fit, counts as missing, and so
does that of another broker: whoever asks must be safe without (a watermark or recovery point of 0, leader epochs found
again in the records).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

from isr_broker.core.log_view import EpochStart
from isr_broker.core.messages import MetadataPosition, Offset, TopicPartition
from isr_broker.core.record_batch import crc32c
from isr_broker.storage.disk import ROOT, Disk, folder_of
from isr_broker.storage.owner import owner_of

WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
EPOCHS: Final = "leader-epoch-checkpoint"
POSITION: Final = "metadata-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
TEMPORARY: Final = ".tmp"
_VERSION: Final = "1"
_WITHOUT_CRC: Final = "0"
"""The version of checkpoints that have no CRC yet: Kafka's."""


def replace(disk: Disk, path: str, contents: bytes, in_place: bool = False) -> None:
    """Put a whole file in the place of another, or of none (Utils.atomicMoveWithFallback).

    `in_place` is what must not be done: a crash may then leave half of it (designs.PLANTED).
    """
    if in_place:
        _overwrite(disk, path, contents)
        return
    temporary = path + TEMPORARY
    disk.remove(temporary)
    file = disk.open(temporary)
    try:
        file.append(contents)
        file.flush()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.flush_folder(folder_of(path))


def _overwrite(disk: Disk, path: str, contents: bytes) -> None:
    file = disk.open(path)
    try:
        file.truncate(0)
        file.append(contents)
        file.flush()
    finally:
        file.close()
    disk.flush_folder(folder_of(path))


def contents(disk: Disk, path: str) -> bytes | None:
    """A whole file, None if there is none."""
    if not disk.exists(path):
        return None
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _rows(disk: Disk, path: str, trusts: bool = False) -> list[list[str]] | None:
    """The rows of a checkpoint: a version, their number, then each of them (CheckpointFile), and their CRC.

    `trusts` is what must not be done: the CRC is not compared (designs.PLANTED).
    """
    text = contents(disk, path)
    if text is None:
        return None
    lines = text.decode("utf-8", "replace").split("\n")
    if len(lines) < 3 or lines[-1] != "":
        return None
    if lines[0] == _VERSION and (trusts or f"{lines[-2]}\n" == _crc_line(disk, text[: -len(lines[-2]) - 1])):
        del lines[-2]
    elif lines[0] != _WITHOUT_CRC:
        return None
    rows = [line.split(" ") for line in lines[2:-1]]
    return rows if lines[1] == str(len(rows)) else None


def _write(disk: Disk, path: str, rows: list[str], in_place: bool, has_crc: bool = True) -> None:
    version = _VERSION if has_crc else _WITHOUT_CRC
    text = "".join(f"{line}\n" for line in (version, str(len(rows)), *rows)).encode()
    replace(disk, path, text + (_crc_line(disk, text).encode() if has_crc else b""), in_place)


def _crc_line(disk: Disk, text: bytes) -> str:
    return f"crc32c {crc32c(owner_of(disk) + text):08x}\n"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def is_whole(disk: Disk, path: str) -> bool:
    """There is no such checkpoint, or it can be read: what replacing it atomically is for."""
    return not disk.exists(path) or _rows(disk, path) is not None


def write_offsets(
    disk: Disk,
    path: str,
    offsets: Iterable[tuple[TopicPartition, Offset]],
    in_place: bool = False,
    topics: Mapping[TopicPartition, str] | None = None,
) -> None:
    """One offset per partition (OffsetCheckpointFile), and of which topic it is, in text, where `topics` has that.

    An older file, put in the place of a newer one, may be from before a topic was deleted and made again.
    """
    known = topics or {}
    rows = [f"{tp.topic} {tp.partition} {offset} {known.get(tp, '')}".rstrip(" ") for tp, offset in sorted(offsets)]
    _write(disk, path, rows, in_place)


def read_topic_offsets(disk: Disk, path: str, trusts: bool = False) -> dict[TopicPartition, tuple[Offset, str]]:
    """One offset per partition, and its topic in text, which is empty where nobody noted it; none as `read_offsets`."""
    offsets: dict[TopicPartition, tuple[Offset, str]] = {}
    for row in _rows(disk, path, trusts) or []:
        numbers = [_number(text) for text in row[1:3]]
        if len(row) not in (3, 4) or numbers[0] is None or numbers[1] is None:
            return {}
        offsets[TopicPartition(row[0], numbers[0])] = (numbers[1], "".join(row[3:]))
    return offsets


def read_offsets(disk: Disk, path: str, trusts: bool = False) -> dict[TopicPartition, Offset]:
    """One offset per partition, of whatever topic; none if the file is missing or cannot be read."""
    return {tp: offset for tp, (offset, _) in read_topic_offsets(disk, path, trusts).items()}


def write_epochs(
    disk: Disk, path: str, epochs: Iterable[EpochStart], in_place: bool = False, has_crc: bool = True
) -> None:
    """Where each leader epoch starts (LeaderEpochCheckpointFile); Kafka reads it where it has no CRC."""
    _write(disk, path, [f"{e.epoch} {e.start}" for e in epochs], in_place, has_crc)


def read_epochs(disk: Disk, path: str) -> tuple[EpochStart, ...] | None:
    """Where each leader epoch starts; None if the file is missing or cannot be read."""
    rows = _rows(disk, path)
    if rows is None:
        return None
    epoch_starts: list[EpochStart] = []
    for row in rows:
        numbers = [_number(text) for text in row]
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            return None
        epoch_starts.append(EpochStart(numbers[0], numbers[1]))
    return tuple(epoch_starts)


def write_position(disk: Disk, position: MetadataPosition, in_place: bool = False) -> None:
    """Up to where this broker has read the metadata log."""
    _write(disk, POSITION, [f"{position.offset} {position.life}"], in_place)


def read_position(disk: Disk) -> MetadataPosition:
    """Up to where this broker has read the metadata log; nothing if the file is missing or cannot be read."""
    for row in _rows(disk, POSITION) or []:
        numbers = [_number(text) for text in row]
        if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
            return MetadataPosition(numbers[0], numbers[1])
    return MetadataPosition()


def leave_clean_shutdown(disk: Disk, broker_epoch: int) -> None:
    """Leave the mark of a clean shutdown, with the broker epoch that ended with it (CleanShutdownFileHandler).

    Its CRC is that of the epoch, of whose it is and of the recovery points, so that it says nothing beside older ones.
    """
    crc = _crc_of_mark(disk, broker_epoch)
    replace(disk, CLEAN_SHUTDOWN, json.dumps({"version": 0, "brokerEpoch": broker_epoch, "crc32c": crc}).encode())


def _crc_of_mark(disk: Disk, broker_epoch: int) -> str:
    return f"{crc32c(b'%d ' % broker_epoch + owner_of(disk) + (contents(disk, RECOVERY_POINTS) or b'')):08x}"


def take_clean_shutdown(disk: Disk, keep: bool = False) -> int | None:
    """The broker epoch in the mark of a clean shutdown, which is removed for good before this returns.

    Were it removed later, a crash while the logs are loaded would look like a clean shutdown; `keep` is what must not
    be done (designs.PLANTED). None without a mark, or where its CRC does not fit.
    """
    mark_bytes = contents(disk, CLEAN_SHUTDOWN)
    if mark_bytes is None:
        return None
    if not keep:
        disk.remove(CLEAN_SHUTDOWN)
        disk.flush_folder(ROOT)
    try:
        mark = cast("object", json.loads(mark_bytes))
    except ValueError:
        return None
    fields = cast("dict[str, object]", mark) if isinstance(mark, dict) else dict[str, object]()
    epoch = fields.get("brokerEpoch")
    if not isinstance(epoch, int) or fields.get("crc32c") != _crc_of_mark(disk, epoch):
        return None
    return epoch
