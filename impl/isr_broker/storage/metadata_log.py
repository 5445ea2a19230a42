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


def records_in(file: File) -> tuple[list[MetadataRecord], int]:
    """The records in order, and where the whole ones end."""
    text, good = file.read(0, file.size()), 0
    records: list[MetadataRecord] = []
    while (end := text.find(b"\n", good)) >= 0:
        crc, _, line = text[good:end].partition(b" ")
        if crc != b"%08x" % crc32c(line):
            break
        try:
            records.append(record_of(line))
        except BadMessage:
            break
        good = end + 1
    return records, good


@attrs.define
class MetadataLog:
    """The records, in order."""

    file: File

    @classmethod
    def open(cls, disk: Disk) -> tuple[MetadataLog, list[MetadataRecord]]:
        """The log, with what was found in it; a torn end is cut off."""
        file = disk.open(NAME)
        disk.flush_folder(ROOT)
        records, good = records_in(file)
        file.truncate(good)
        file.flush()
        return cls(file), records

    def append(self, records: tuple[MetadataRecord, ...]) -> None:
        """Write records, all of them durable when this returns."""
        lines = [record_line(record) for record in records]
        self.file.append(b"".join(b"%08x %s\n" % (crc32c(line), line) for line in lines))
        self.file.flush()
