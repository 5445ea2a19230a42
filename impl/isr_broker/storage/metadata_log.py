"""The controller's records on disk: one line each, with its CRC-32C before it, flushed before anybody is told.

Kafka: the __cluster_metadata log, as its only replica.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.message_json import BadMessage, record_line, record_of
from isr_broker.core.messages import MetadataRecord
from isr_broker.core.record_batch import crc32c
from isr_broker.storage.disk import ROOT, Disk, File

NAME: Final = "metadata.log"


class DamagedMetadata(Exception):
    """A record that was durable cannot be read; the message names the file and the byte."""


def records_in(file: File) -> tuple[list[MetadataRecord], int]:
    """The records in order, and where the whole ones end; DamagedMetadata if one is not whole and yet not torn.

    A write that a crash has torn leaves some first part of its last line, and no end of a line after that. Whatever
    else is not whole was durable once, and others have been told of it.
    """
    text, good = file.read(0, file.size()), 0
    records: list[MetadataRecord] = []
    while good < len(text):
        end = text.find(b"\n", good)
        record = _record_in(text[good : end if end >= 0 else len(text)])
        if end >= 0 and record is not None:
            records.append(record)
            good = end + 1
        elif end < 0 and record is None and _record_in(text[good:-1]) is None:
            break
        else:
            raise DamagedMetadata(
                f"{NAME}: the record at byte {good} is damaged, {len(text) - good} bytes before its end"
            )
    return records, good


def _record_in(line: bytes) -> MetadataRecord | None:
    """The record of a line without its end; None if there is none."""
    crc, _, body = line.partition(b" ")
    if crc != b"%08x" % crc32c(body):
        return None
    try:
        return record_of(body)
    except BadMessage:
        return None


@attrs.define
class MetadataLog:
    """The records, in order."""

    file: File

    @classmethod
    def open(cls, disk: Disk, cuts: bool = False) -> tuple[MetadataLog, list[MetadataRecord]]:
        """The log, with what was found in it; a torn last record is cut off.

        DamagedMetadata if another record is damaged: without what comes after it the controller would give epochs a
        second time. `cuts` is what must not be done (designs.PLANTED).
        """
        file = disk.open(NAME)
        disk.flush_folder(ROOT)
        try:
            records, good = records_in(file)
        except DamagedMetadata:
            if not cuts:
                raise
            records, good = [], 0
        file.truncate(good)
        file.flush()
        return cls(file), records

    def append(self, records: tuple[MetadataRecord, ...]) -> None:
        """Write records, all of them durable when this returns."""
        lines = [record_line(record) for record in records]
        self.file.append(b"".join(b"%08x %s\n" % (crc32c(line), line) for line in lines))
        self.file.flush()
