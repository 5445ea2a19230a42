"""The controller's records on disk: one line each, with its CRC-32C before it, flushed before anybody is told.

What is appended together is there as a whole or not at all, as a batch of Kafka's: half of a decision would be one that
nobody took. A line that begins with `+` is not the last of its batch.

A log that has grown long is replaced, all at once, by one with a single line, which begins with `=`: a snapshot.

Kafka: the __cluster_metadata log and its snapshots, as its only replica.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.controller_state import Controller, apply_records, end_of_log, has
from isr_broker.core.message_json import BadMessage, record_line, record_of
from isr_broker.core.messages import NOTHING_READ, ControllerLife, MetadataPosition, MetadataRecord, MetadataSnapshot
from isr_broker.core.record_batch import crc32c
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import replace
from isr_broker.storage.disk import ROOT, Disk, File
from isr_broker.storage.metadata_end import END, EndFile

NAME: Final = "metadata.log"
_MORE: Final = b"+"
_WHOLE: Final = b"="
_END: Final = b"\n"


class DamagedMetadata(Exception):
    """A record that was durable cannot be read, or is not there; the message names the file, and the byte."""


def records_in(file: File) -> tuple[list[MetadataRecord], int]:
    """The records in order, and where the whole ones end; DamagedMetadata if one is not whole and yet not torn.

    Whatever is neither whole nor torn was durable once, and others have been told of it.
    """
    text, good, at = file.read(0, file.size()), 0, 0
    records: list[MetadataRecord] = []
    batch: list[MetadataRecord] = []
    while at < len(text):
        end = text.find(_END, at)
        ends = end >= 0
        line = text[at : end if ends else len(text)]
        record = _record_in(line)
        if ends and record is not None:
            batch.append(record)
            more, at = line.startswith(_MORE), end + 1
            if not more:
                records += batch
                batch, good = [], at
        elif not ends and _is_torn(line):
            break
        else:
            raise DamagedMetadata(f"{NAME}: the record at byte {at} is damaged, {len(text) - at} bytes before its end")
    return records, good


def _is_torn(tail: bytes) -> bool:
    """Whether what stands behind the last end of a line may be a write that a crash has torn: a first part of its line.

    A snapshot is never written a part at a time. Nor is a whole record with one other byte behind it a first part: that
    byte was the end of its line.
    """
    is_snapshot = tail.startswith(_WHOLE)
    has_damaged_end = _record_in(tail[:-1]) is not None
    return not is_snapshot and not has_damaged_end


def _record_in(line: bytes) -> MetadataRecord | None:
    """The record of a line without its end; None if there is none."""
    crc, _, body = line.removeprefix(_MORE).removeprefix(_WHOLE).partition(b" ")
    if crc != b"%08x" % crc32c(body):
        return None
    try:
        return record_of(body)
    except BadMessage:
        return None


@attrs.define
class MetadataLog:
    """The records, in order; `growth` is how many bytes of them have come after the last snapshot.

    `end` is the end of the log. It stands in a file of its own, too (`metadata_end`), so that a log that is missing,
    older, or ends early is no log of a cluster that has just begun.
    """

    disk: Disk
    file: File
    end_file: EndFile
    growth: int
    end: MetadataPosition = NOTHING_READ

    @classmethod
    def open(cls, disk: Disk, cuts: bool = False, begins: bool = False) -> tuple[MetadataLog, list[MetadataRecord]]:
        """The log, with what was found in it; a torn last record is cut off.

        DamagedMetadata if another record is damaged: without what comes after it the controller would give epochs a
        second time. The same if the log lacks what was durable. `cuts` and `begins` are what must not be done
        (designs.PLANTED): with the second one a log that lacks something is taken for that of a new cluster.
        """
        last_end = None if begins else EndFile.read(disk)
        if last_end is not None and last_end.offset and not disk.exists(NAME) and not cuts:
            raise DamagedMetadata(f"{NAME} is missing, and {_remedy(last_end)}")
        file = disk.open(NAME)
        disk.flush_folder(ROOT)
        try:
            records, good = records_in(file)
        except DamagedMetadata:
            if not cuts:
                raise
            records, good = [], 0
        there = apply_records(Controller(settings=Settings()), tuple(records))
        if last_end is not None and not has(there, last_end) and not cuts:
            raise DamagedMetadata(f"{NAME} ends at record {there.offset} or is another's, and {_remedy(last_end)}")
        file.truncate(good)
        file.flush()
        begun = records and isinstance(records[0], MetadataSnapshot)
        growth, end = good - (len(_line(records[0])) if begun else 0), end_of_log(there)
        return cls(disk, file, EndFile.open(disk, end), growth, end), records

    def append(self, records: tuple[MetadataRecord, ...]) -> None:
        """Write records, all of them durable when this returns."""
        said = [_line(record) for record in records]
        added = b"".join((*(_MORE + line for line in said[:-1]), *said[-1:]))
        self.file.append(added)
        self.file.flush()
        self.growth += len(added)
        lives = [record.life for record in records if isinstance(record, ControllerLife)]
        self.end = MetadataPosition(self.end.offset + len(records), [self.end.life, *lives][-1])
        self.end_file.note(self.end)

    def compact(self, snapshot: MetadataSnapshot) -> None:
        """Put a snapshot in the place of all records; a crash leaves either the one or the others."""
        self.file.close()
        replace(self.disk, NAME, _line(snapshot))
        self.file, self.growth = self.disk.open(NAME), 0
        self.end_file.begin_anew(self.end)


def _remedy(last_end: MetadataPosition) -> str:
    return (
        f"{END} says that {last_end.offset} records were durable: put the newest {NAME} back; for a new cluster remove"
        " the data directories of all brokers"
    )


def _line(record: MetadataRecord) -> bytes:
    body = record_line(record)
    return b"%s%08x %s\n" % (_WHOLE if isinstance(record, MetadataSnapshot) else b"", crc32c(body), body)
