"""A log on disk: segments of record batches, and the leader epochs beside them.

Every operation gives back what a core needs to know (`LogView`). What makes a crash at any moment harmless:

- the start of an epoch is durable before the first batch of that epoch is written, so the file is never behind the log;
- a segment is flushed before the next one begins, so only the last one can lack what was not flushed;
- old segments are removed from the front, each of them for good before the next, so what is left has no gap;
- truncation goes from the end to the front and is flushed, so what was cut does not come back (Kafka leaves this to
  the operating system; a replica could then return with records that it had already replaced);
- opening stops at the first batch that is not whole, and removes everything after it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Self

import attrs

from isr_broker.core.effects import Slice
from isr_broker.core.log_view import Epochs, LogView, Producers, with_batch
from isr_broker.core.messages import LeaderEpoch, Millis, Offset
from isr_broker.core.record_batch import BadBatch, Stamp, batches
from isr_broker.core.topics import FILE, file_of, has_checksum, in_file
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, TEMPORARY, contents, read_epochs, write_epochs
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.owner import owner_of
from isr_broker.storage.segment import SUFFIX, Segment, file_name, is_file_name


def identity(disk: Disk, folder: str) -> tuple[int, bool]:
    """The topic id that the folder of a log says, 0 for none, and whether with a checksum."""
    noted = contents(disk, f"{folder}/{FILE}")
    return in_file(noted, owner_of(disk)), has_checksum(noted)


def _segment_names(disk: Disk, folder: str) -> list[str]:
    return [name for name in disk.names(folder) if is_file_name(name) and not disk.is_folder(f"{folder}/{name}")]


def segment_bases(disk: Disk, folder: str) -> list[Offset]:
    """The base offset of each segment of a log, in order."""
    return [int(name.removesuffix(SUFFIX)) for name in _segment_names(disk, folder)]


def _foreign_names(disk: Disk, folder: str) -> list[str]:
    """What is in the folder of a log and is not the broker's."""
    own = {FILE, EPOCHS, EPOCHS + TEMPORARY, *_segment_names(disk, folder)}
    return [name for name in disk.names(folder) if name not in own]


def has_a_log(disk: Disk, folder: str) -> bool:
    """Whether a folder has a file of a log, and so is not only called like the folder of one."""
    return FILE in disk.names(folder) or bool(_segment_names(disk, folder))


def is_left_over(disk: Disk, folder: str) -> bool:
    """Whether a folder has nothing but what the log of a broker has, and no byte of a record.

    A crash leaves it so where a log was just made, before it said its topic.
    """
    if _foreign_names(disk, folder):
        return False
    for name in _segment_names(disk, folder):
        file = disk.open(f"{folder}/{name}")
        try:
            if file.size():
                return False
        finally:
            file.close()
    return True


@attrs.define
class Log:
    """The log of one replica (UnifiedLog, LocalLog).

    `view` is what the replica's core knows of it, `has_durable_names` whether its folder and first segment are there
    for good. `damage` says what is wrong with it: then nothing of it counts, and nothing is changed. Else it is empty.
    `has_other_epochs`: the file of the epochs was of another history than the records, which win. `epochs_have_crc`:
    that file is written with a CRC, with which Kafka does not read it.
    """

    epochs_have_crc: ClassVar[bool] = True

    disk: Disk
    folder: str
    settings: Settings
    segments: list[Segment]
    view: LogView
    has_durable_names: bool
    damage: str = ""
    has_other_epochs: bool = False

    @classmethod
    def create(cls, disk: Disk, folder: str, settings: Settings, topic_id: int = 0) -> Self:
        """A new, empty log of a topic, or the one that is there.

        A new one is durable with its first append, as in Kafka: until then a crash may take it, and there is nothing in
        it. A thousand new logs cost no flush this way.
        """
        if disk.exists(folder):
            log = cls.open(disk, folder, settings)
            if topic_id and log.view.end == 0 and not log.topic_id():
                # A crash, or a removal that failed, left no more of it.
                disk.remove(f"{folder}/{FILE}")
                log._identify(topic_id)
            return log
        disk.make_folder(folder)
        segment = Segment.open(disk, folder, 0, settings.log_index_interval_bytes)
        log = cls(disk, folder, settings, [segment], LogView(), has_durable_names=False)
        if topic_id:
            log._identify(topic_id)
        return log

    def _identify(self, topic_id: int) -> None:
        """Note of which topic it is, durably with the first append."""
        self.has_durable_names = False
        identity = self.disk.open(f"{self.folder}/{FILE}")
        identity.append(file_of(topic_id, owner_of(self.disk)))
        identity.close()

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        settings: Settings,
        start: Offset = 0,
        durable: Offset = 0,
        first: Offset | None = None,
        has_topic: bool = True,
    ) -> Self:
        """Recovery: the longest valid prefix of what is there (LogLoader.load, LogSegment.recover).

        Kafka checks the CRC of what is past the recovery point, and takes the rest's headers from index files and
        snapshots. Here headers are all that says how old records are and what producers sent last. So every batch is
        checked. What is below `durable` was on the disk for good, and `first` is the last offset at which the log may
        begin, if that is known; if not, its epochs say so. A log that lacks some of it is damaged, and so is one
        without `has_topic`, of which nobody knows the topic.
        """
        disk.remove(f"{folder}/{EPOCHS}{TEMPORARY}")
        bases = segment_bases(disk, folder)
        base = bases[0] if bases else start
        log = cls(disk, folder, settings, [], LogView(start=max(start, base), end=base), has_durable_names=False)
        log._scan(bases)
        source = LOG_STARTS if first is not None else EPOCHS
        if first is None and bases and not settings.insync_design.epoch_file_behind:
            first = next((entry.start for entry in read_epochs(disk, f"{folder}/{EPOCHS}") or ()), None)
        if first is not None and base > first:
            says = f"{folder} begins at offset {base}, and {first} was its start"
            log.damage = f"{says}: {folder}/{file_name(first)} is missing, or {source} is older"
        elif log.view.end < durable:
            log.damage = log._damage_before(durable)
        if not has_topic:
            # Whoever puts another file right may find that nobody wants the log.
            log.damage = "; ".join(filter(None, (log.damage, log._topic_damage())))
        if log.damage:
            return log
        if log.segments and log.segments[-1].file.size() != log.segments[-1].size:
            log.segments[-1].cut(log.segments[-1].size)
        for base in bases[len(log.segments) :]:
            log._drop(base)
        if log.view.end < start:
            # What is there ends before the log is said to start: none of it counts.
            for segment in log.segments:
                segment.file.close()
                log._drop(segment.base_offset)
            log.segments, log.view = [], LogView(start=start, end=start)
        log.view = log.view.started(start)
        if not log.segments:
            log._roll()
        log.flush()
        if settings.insync_design.epoch_file_behind:
            said = Epochs(read_epochs(disk, f"{folder}/{EPOCHS}") or ())
            log.view = attrs.evolve(log.view, epochs=said.cut(log.view.end))
        log.has_other_epochs = log._differs(Epochs(read_epochs(disk, f"{folder}/{EPOCHS}") or ()))
        log._keep_epochs(log.view.epochs)
        return log

    def _differs(self, epochs: Epochs) -> bool:
        """Whether epochs as a file has them are not those of the records: one of the two is older, or another's.

        The file may have epochs that have no records yet. Where the log starts another file says: it is not compared.
        """
        of_file, of_records = epochs.cut(self.view.end), self.view.epochs.cut(self.view.end)
        start = max([self.view.start, *(entry.start for entry in of_file.entries[:1])])
        return of_file.from_start(start) != of_records.from_start(start)

    def _scan(self, bases: list[Offset]) -> None:
        """Read segments, each of which continues the one before."""
        checks = not self.settings.insync_design.sends_damaged_batches
        for base in bases:
            if base != self.view.end:
                return
            segment = Segment.open(self.disk, self.folder, base, self.settings.log_index_interval_bytes)
            self.segments.append(segment)
            self.view = self.view.appended(segment.scan(base, checks, self.view.epochs.latest()))
            if segment.file.size() != segment.size:
                return

    def _damage_before(self, durable: Offset) -> str:
        """What is wrong with a log that ends before what was durable."""
        if not self.segments:
            return f"{self.folder} has no segment, and {durable} was durable"
        last = self.segments[-1]
        where = f"{self.folder}/{file_name(last.base_offset)} is damaged or cut at byte {last.size}"
        if last.file.size() == last.size:
            where += f", or {self.folder}/{file_name(self.view.end)} is missing"
        return f"{where}, offset {self.view.end}; all up to offset {durable} was durable"

    def _drop(self, base: Offset) -> None:
        self.disk.remove(f"{self.folder}/{base:020d}{SUFFIX}")
        self.disk.flush_folder(self.folder)

    def _keep_epochs(self, epochs: Epochs) -> None:
        """Make the epochs durable. The file is for those who read it; opening a log finds them in the records."""
        path = f"{self.folder}/{EPOCHS}"
        if read_epochs(self.disk, path) != epochs.entries:
            in_place = self.settings.insync_design.checkpoint_in_place
            write_epochs(self.disk, path, epochs.entries, in_place, self.epochs_have_crc)

    def _keep_names(self) -> None:
        """Make a new log's names and topic id durable (LocalLog.flush; UnifiedLog.maybeFlushMetadataFile).

        Before its first record: a log that lost its topic id would pass for one of another topic of the same name.
        """
        if not self.has_durable_names:
            if self.disk.exists(f"{self.folder}/{FILE}"):
                identity = self.disk.open(f"{self.folder}/{FILE}")
                identity.flush()
                identity.close()
            self.disk.flush_folder(self.folder)
            self.disk.flush_folder(ROOT)
            self.has_durable_names = True

    def _roll(self) -> None:
        """Begin a new segment, with everything before it durable (UnifiedLog.roll)."""
        self._keep_names()
        if self.segments:
            self.segments[-1].file.flush()
        segment = Segment.open(self.disk, self.folder, self.view.end, self.settings.log_index_interval_bytes)
        self.segments.append(segment)
        self.disk.flush_folder(self.folder)
        self.view = attrs.evolve(self.view, flushed=self.view.end)

    def append(self, records: bytes, flush: bool = False) -> LogView:
        """Write batches that continue the log; flush them if asked (UnifiedLog.append).

        Model: the log of leader_appends and follower_appends.
        """
        self._keep_names()
        view = self.view.appended(batches(records))
        if view.epochs != self.view.epochs and not self.settings.insync_design.epoch_file_behind:
            self._keep_epochs(view.epochs)
        last = self.segments[-1]
        if last.size and last.size + len(records) > self.settings.log_segment_bytes:
            self._roll()
        self.segments[-1].append(records)
        # A new segment has made durable what was before.
        self.view = view if view.flushed == self.view.flushed else attrs.evolve(view, flushed=self.view.flushed)
        return self.flush() if flush else self.view

    def flush(self) -> LogView:
        """Make everything durable; from here on the recovery point is the log end (UnifiedLog.flush)."""
        self._keep_names()
        self.segments[-1].file.flush()
        self.view = attrs.evolve(self.view, flushed=self.view.end)
        return self.view

    def truncate(self, offset: Offset) -> LogView:
        """Cut the log at the offset, the first of some batch, and its epochs with it (UnifiedLog.truncateTo).

        A cut below the first segment leaves an empty log that starts at the cut. Had it its old start, it would ask its
        leader for records after offsets that it never had. Model: the log of follower_truncates.
        """
        if self.settings.insync_design.cut_keeps_start:
            offset = max(offset, self.view.start)
        elif offset < self.segments[0].base_offset:
            return self.begin_anew(offset)
        while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
            segment = self.segments.pop()
            segment.file.close()
            self._drop(segment.base_offset)
        last = self.segments[-1]
        last.cut(last.position_of(offset) if offset > last.base_offset else 0)
        self.view = self.view.truncated(offset, self._producers())
        self._keep_epochs(self.view.epochs)
        return self.view

    def begin_anew(self, offset: Offset) -> LogView:
        """Forget everything, and start at the offset (UnifiedLog.truncateFullyAndStartAt)."""
        for segment in reversed(self.segments):
            segment.file.close()
            self._drop(segment.base_offset)
        self.segments, self.view = [], LogView(start=offset, end=offset)
        self._roll()
        self._keep_epochs(self.view.epochs)
        return self.view

    def advance_start(self, start: Offset) -> LogView:
        """The log starts at an offset from now on; segments below are removed, but never the last.

        UnifiedLog.maybeIncrementLogStartOffset, deleteLogStartOffsetBreachedSegments.
        """
        self.view = self.view.started(start)
        self._keep_epochs(self.view.epochs)
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.view.start:
            segment = self.segments.pop(0)
            segment.file.close()
            self._drop(segment.base_offset)
        return self.view

    def has_segments_before(self, start: Offset) -> bool:
        """Whether there are segments to be removed when the log starts at an offset."""
        return len(self.segments) > 1 and self.segments[1].base_offset <= start

    def retention_start(self, since: Millis, most_bytes: int, committed: Offset) -> Offset:
        """Where the log is to start: without the oldest segments that have nothing newer, or are too many bytes.

        -1 for any number of bytes. What is not committed stays, and the last segment does, which Kafka would roll
        first (UnifiedLog.deleteOldSegments).
        """
        size = sum(segment.size for segment in self.segments)
        for segment, following in pairwise(self.segments):
            size -= segment.size
            too_old, too_many = 0 <= segment.newest < since, 0 <= most_bytes <= size
            if following.base_offset > committed or not (too_old or too_many):
                return max(segment.base_offset, self.view.start)
        return max(self.segments[-1].base_offset, self.view.start)

    def _producers(self) -> Producers:
        """The producers' last batches as the records have them (ProducerStateManager.truncateAndReload)."""
        producers = Producers()
        for segment in self.segments:
            for batch in segment.scan(segment.base_offset, checks=False):
                producers = with_batch(producers, batch)
        return producers

    def assign_epoch(self, epoch: LeaderEpoch, start: Offset) -> LogView:
        """Note durably where a leader epoch starts. Model: start_of_own_epoch, in becomes_leader."""
        epochs = self.view.epochs.assign(epoch, start)
        self._keep_epochs(epochs)
        self.view = attrs.evolve(self.view, epochs=epochs)
        return self.view

    def read(self, log_slice: Slice) -> bytes:
        """Whole batches, from one segment; BadBatch, which names the file, if they are not as they were written."""
        if log_slice.offset >= self.view.end:
            return b""
        for segment in reversed(self.segments):
            if segment.base_offset <= log_slice.offset:
                try:
                    epochs = None if self.settings.insync_design.epoch_file_behind else self.view.epochs
                    sends_any = self.settings.insync_design.sends_damaged_batches
                    return segment.read(log_slice.offset, log_slice.up_to, log_slice.max_bytes, epochs, sends_any)
                except BadBatch as error:
                    raise BadBatch(f"{self.folder}/{file_name(segment.base_offset)} {error}") from error
        return b""

    def first_record_since(self, time: Millis) -> Stamp | None:
        """The first record whose timestamp is not before a time (UnifiedLog.fetchOffsetByTimestamp).

        Only segments with a timestamp that late are read.
        """
        found = (segment.since(time, self.view.start) for segment in self.segments)
        return next((record for record in found if record is not None), None)

    def newest_record(self) -> Stamp | None:
        """The first record with the largest timestamp (KIP-734); None in an empty log."""
        newest = max((segment.newest for segment in self.segments if segment.size), default=-1)
        return self.first_record_since(newest) if newest >= 0 else None

    def files(self) -> list[str]:
        """The paths of what says of which topic it is, and of its segments."""
        segments = (f"{self.folder}/{file_name(segment.base_offset)}" for segment in self.segments)
        return [f"{self.folder}/{FILE}", *segments]

    def topic_id(self) -> int:
        """Of which topic it is; 0 if nobody has noted that."""
        return identity(self.disk, self.folder)[0]

    def _topic_damage(self) -> str:
        """Why nobody can tell of which topic it is: the file is damaged or missing, for it is there before a record is.

        Kafka has no such log either: it takes one for a stray (LogManager.isStrayKraftReplica). A file that is not the
        broker's is named, for the folder may be somebody else's.
        """
        path, others = f"{self.folder}/{FILE}", _foreign_names(self.disk, self.folder)
        why = f"{path} says no topic" if self.disk.exists(path) else f"{path} is missing"
        return f"{why}, and there is {self.folder}/{others[0]}" if others else why

    def contents(self) -> bytes:
        """Every batch, for tools and tests."""
        return b"".join(segment.file.read(0, segment.size) for segment in self.segments)

    def close(self) -> None:
        """Give the files back."""
        for segment in self.segments:
            segment.file.close()
