"""One segment of a log: a file of batches, one after the other, and where some of them begin.

The index is in memory only: opening a log reads every header anyway, which finds the producers' last batches and the
leader epochs again, and with them the index. So there is no index file that could be wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

import attrs

from isr_broker.core.log_view import Epochs
from isr_broker.core.messages import NO_EPOCH, LeaderEpoch, Millis, Offset
from isr_broker.core.record_batch import (
    CRC_FROM,
    HEADER_BYTES,
    BadBatch,
    Batch,
    Stamp,
    batches,
    crc32c,
    crc_of,
    front_of,
    header,
    records_in,
)
from isr_broker.storage.disk import Disk, File

SUFFIX: Final = ".log"
_FILE_NAME: Final = re.compile(r"[0-9]{20}\.log")
_CHUNK: Final = 1 << 20


def file_name(base_offset: Offset) -> str:
    """The name of a segment's file: its base offset with twenty digits (LogFileUtils.filenamePrefixFromOffset)."""
    return f"{base_offset:020d}{SUFFIX}"


def is_file_name(name: str) -> bool:
    """Whether a file may be a segment: whatever else is in the folder of a log is not the broker's."""
    return _FILE_NAME.fullmatch(name) is not None


@attrs.define
class Segment:
    """A segment: `base_offset` names it, `size` is where the next batch goes, `newest` the largest timestamp so far.

    `index` has the base offset and position of a batch about every `interval` bytes, and the largest timestamp before
    it (OffsetIndex, TimeIndex). `tail` has those of where the last append began, which followers ask for next.
    """

    base_offset: Offset
    file: File
    interval: int
    size: int = 0
    newest: Millis = -1
    index: list[tuple[Offset, int, Millis]] = attrs.field(factory=list[tuple[Offset, int, Millis]])
    tail: tuple[Offset, int] | None = None

    @classmethod
    def open(cls, disk: Disk, folder: str, base_offset: Offset, interval: int) -> Segment:
        """The segment's file, whatever is in it; `scan` finds out."""
        return cls(base_offset, disk.open(f"{folder}/{file_name(base_offset)}"), interval)

    def append(self, records: bytes) -> None:
        """Write batches at the end."""
        self.file.append(records)
        self.tail = None
        for batch in batches(records):
            self.tail = self.tail or (batch.base_offset, self.size)
            self._note(batch, self.size + batch.position)
        self.size += len(records)

    def _note(self, batch: Batch, position: int) -> None:
        if not self.index or position - self.index[-1][1] >= self.interval:
            self.index.append((batch.base_offset, position, self.newest))
        self.newest = max(self.newest, batch.max_timestamp)

    def scan(self, expected: Offset, checks: bool, least_epoch: LeaderEpoch | None = None) -> Iterator[Batch]:
        """The batches from the beginning, each of which continues the one before; stops at the first that does not.

        It `checks` the CRC of each. A flipped bit in an offset, which no CRC covers, shows in the sequence. So does one
        in a leader epoch, where a `least_epoch` is given, and the epoch goes back. `size` is then the length of what
        is good.
        """
        self.size, self.newest, self.index, self.tail, end = 0, -1, [], None, self.file.size()
        while self.size + HEADER_BYTES <= end:
            try:
                batch = attrs.evolve(header(self.file.read(self.size, HEADER_BYTES), 0), position=self.size)
            except BadBatch:
                return
            if batch.base_offset != expected or self.size + batch.size > end:
                return
            if least_epoch is not None:
                if batch.leader_epoch < least_epoch:
                    return
                least_epoch = batch.leader_epoch
            if checks and self._crc(batch) != batch.crc:
                return
            yield batch
            self._note(batch, self.size)
            self.size += batch.size
            expected = batch.next_offset

    def _crc(self, batch: Batch) -> int:
        whole = self.file.read(batch.position, batch.size)
        return crc_of(whole, attrs.evolve(batch, position=0))

    def position_of(self, offset: Offset) -> int:
        """Where the batch with this offset begins; the end, if it is not in this segment.

        BadBatch if a header on the way does not continue the one before.
        """
        return self._find(offset)[0]

    def _find(self, offset: Offset) -> tuple[int, Offset]:
        """Where the batch with this offset begins, and its base offset."""
        at = bisect_right(self.index, offset, key=lambda entry: entry[0]) - 1
        expected, position = self.index[at][:2] if at >= 0 else (self.base_offset, 0)
        if self.tail is not None and expected < self.tail[0] <= offset:
            expected, position = self.tail
        while position < self.size:
            size, _, _, following = front_of(self.file.read(position, HEADER_BYTES), expected, position)
            if following > offset:
                return position, expected
            position, expected = position + size, following
        if position > self.size:
            raise BadBatch(f"at byte {self.size}: the file ends within the batch before offset {expected}")
        return position, expected

    def read(
        self, offset: Offset, up_to: Offset, max_bytes: int, epochs: Epochs | None = None, sends_any: bool = False
    ) -> bytes:
        """Whole batches from the one with `offset` on that end at or below `up_to`.

        The first is read however large it is, the others as far as `max_bytes` go. BadBatch if one is not as it was
        written: its CRC, or what no CRC covers, its offset and its leader epoch, which is that of `epochs`.
        `sends_any` is what must not be done: no CRC is compared (designs.PLANTED).
        """
        start, expected = self._find(offset)
        if start == self.size:
            raise BadBatch(f"at byte {start}: there is no batch with offset {offset}")
        position, right_epoch, until = start, NO_EPOCH, expected
        fronts: list[tuple[int, int, int, bytes]] = []
        while position < self.size and (not fronts or expected < up_to):
            header_bytes = self.file.read(position, HEADER_BYTES)
            size, epoch, crc, following = front_of(header_bytes, expected, position)
            if fronts and (following > up_to or position + size - start > max_bytes):
                break
            if epochs is not None and expected >= until:
                right_epoch, until = epochs.at(expected), epochs.next_start(expected)
            if epochs is not None and epoch != right_epoch:
                raise BadBatch(f"at byte {position}: leader epoch {epoch} at offset {expected}")
            fronts.append((position - start, size, crc, header_bytes))
            position, expected = position + size, following
        data = self.file.read(start, min(position, self.size) - start)
        if len(data) != position - start:
            raise BadBatch(f"at byte {start}: {len(data)} of {position - start} bytes are there")
        for at, size, crc, header_bytes in fronts:
            is_whole = data.startswith(header_bytes, at) and crc32c(data[at + CRC_FROM : at + size]) == crc
            if not is_whole and not sends_any:
                raise BadBatch(f"at byte {start + at}: a batch that is not as it was written")
        return data if expected <= up_to else b""

    def since(self, time: Millis, start: Offset) -> Stamp | None:
        """The first record from an offset on whose timestamp is not before a time (FileRecords.searchForTimestamp)."""
        at = bisect_left(self.index, time, key=lambda entry: entry[2]) - 1
        position = self.index[at][1] if at >= 0 else 0
        while self.newest >= time and position < self.size:
            batch = header(self.file.read(position, HEADER_BYTES), 0)
            if batch.max_timestamp >= time:
                whole = self.file.read(position, batch.size)
                if crc_of(whole, attrs.evolve(batch, position=0)) != batch.crc:
                    raise BadBatch(f"at byte {position}: the batch of offset {batch.base_offset} is damaged")
                found = next((r for r in records_in(whole, batch) if r.timestamp >= time and r.offset >= start), None)
                if found is not None:
                    return found
            position += batch.size
        return None

    def cut(self, size: int) -> None:
        """Cut the file, durably, and forget what the index says of what is gone."""
        self.file.truncate(size)
        self.file.flush()
        self.size = size
        self.index, self.tail = [entry for entry in self.index if entry[1] < size], None
