"""Where the metadata log ends, in a file beside it: a line for each flush of the log, with its CRC-32C before it.

The log alone cannot say that records are missing at its end: it would be the log of an earlier moment, or of a cluster
that has just begun. A line is written when the records are durable and before anybody is told of them. So the file is
never ahead of the log, and behind it by nothing that anybody knows. Kafka: a quorum of controllers has copies of both.
"""

from __future__ import annotations

from typing import Final

import attrs

from isr_broker.core.messages import MetadataPosition
from isr_broker.core.record_batch import crc32c
from isr_broker.storage.checkpoints import contents, replace
from isr_broker.storage.disk import Disk, File

END: Final = "metadata.end"


@attrs.define
class EndFile:
    """The file, open to be written."""

    disk: Disk
    file: File

    @classmethod
    def read(cls, disk: Disk) -> MetadataPosition | None:
        """The end of the log; None if there is no such file, or no line of it can be read.

        A line that is torn or damaged says nothing, and the one before it less than it might.
        """
        lines = (contents(disk, END) or b"").split(b"\n")
        return next((end for end in map(_position_in, reversed(lines)) if end is not None), None)

    @classmethod
    def open(cls, disk: Disk, end: MetadataPosition) -> EndFile:
        """The file with one line, which says where the log ends."""
        replace(disk, END, _line(end))
        return cls(disk, disk.open(END))

    def note(self, end: MetadataPosition) -> None:
        """The log ends there, durably."""
        self.file.append(_line(end))
        self.file.flush()

    def begin_anew(self, end: MetadataPosition) -> None:
        """One line takes the place of all."""
        self.file.close()
        replace(self.disk, END, _line(end))
        self.file = self.disk.open(END)


def _line(end: MetadataPosition) -> bytes:
    body = b"%d %d" % (end.offset, end.life)
    return b"%08x %s\n" % (crc32c(body), body)


def _position_in(line: bytes) -> MetadataPosition | None:
    crc, _, body = line.partition(b" ")
    if crc != b"%08x" % crc32c(body):
        return None
    offset, _, life = body.partition(b" ")
    return MetadataPosition(int(offset), int(life)) if offset.isdigit() and life.isdigit() else None
