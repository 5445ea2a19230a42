"""All logs of a broker in one data directory: what a driver does with the cores' disk effects.

`load` at the start, then `perform` for each effect, `read` for each slice of an answer, `close` at the end. An
operation that fails is reported as `DiskFailed`; nothing is tried again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from isr_broker.core.effects import (
    AdvanceLogStart,
    AppendLog,
    AssignEpoch,
    CheckpointWatermarks,
    DiskOperation,
    Slice,
    TruncateLog,
)
from isr_broker.core.inputs import (
    Appended,
    DiskDone,
    DiskFailed,
    EpochAssigned,
    LogDamaged,
    LogOpened,
    Retained,
    Truncated,
)
from isr_broker.core.messages import Millis, Offset, TopicPartition
from isr_broker.core.record_batch import BadBatch, leader_epoch_of
from isr_broker.core.topics import may_be_called, text_of, uuid_of
from isr_broker.settings import MAX_INT, Settings
from isr_broker.storage.checkpoints import (
    LOG_STARTS,
    RECOVERY_POINTS,
    WATERMARKS,
    leave_clean_shutdown,
    read_topic_offsets,
    take_clean_shutdown,
    write_offsets,
)
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.dropped_records import note_dropped
from isr_broker.storage.log import Log, identity, is_left_over
from isr_broker.storage.offsets_topic import TOPIC

_FOLDER: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>0|[1-9][0-9]{0,9})")
_DELETED_FOLDER: Final = re.compile(r"[a-zA-Z0-9._-]*-\d+\.[0-9a-f]{32}(-\d+)?-delete")


STRAY: Final = "-stray"
DELETION: Final = "-delete"
_LONGEST_NAME: Final = 255


def name_out_of_use(tp: TopicPartition, topic_id: int, disk: Disk, ending: str) -> str:
    """The name of a log that nobody opens any more: the partition's, the topic's id and the ending, within 255 bytes.

    LogManager.logStrayDirName and logDeleteDirName, where any unique id is in the middle. Each further log of one topic
    gets a number.
    """
    number = 0
    while True:
        end = f"-{tp.partition}.{uuid_of(topic_id).hex()}{f'-{number}' if number else ''}{ending}"
        name = tp.topic[: _LONGEST_NAME - len(end)] + end
        if not disk.exists(name):
            return name
        number += 1


def log_folders(disk: Disk) -> dict[TopicPartition, str]:
    """The folders at the root that are called as the log of a partition is.

    Nothing else there is a log, and it is left alone: a file of such a name, or a folder that no partition can have.
    """
    found = {name: match for name in disk.names(ROOT) if (match := _FOLDER.fullmatch(name))}
    partitions = {TopicPartition(match["topic"], int(match["partition"])): name for name, match in found.items()}
    return {
        tp: name
        for tp, name in partitions.items()
        if may_be_called(tp.topic) and tp.partition <= MAX_INT and disk.is_folder(name)
    }


@attrs.define
class LogDirectory:
    """The logs of one broker (LogManager).

    `points`, `starts` and `watermarks` are the checkpoints as they are on disk. No point may ever be past what is
    durable, or a log that a crash has torn would be taken for damaged. So both are written again, before anything else,
    when a log has become shorter or starts earlier. Before segments are removed a log's start is written: so a log
    whose first segment is missing is no log that starts there. `topics` are the ids of the logs' topics in text, as
    rows of checkpoints have them: one of an earlier topic of the same name says nothing. `disputes` are logs of which a
    row says another topic than `partition.metadata`: either may be older, so that file is not certain.
    """

    disk: Disk
    settings: Settings
    logs: dict[TopicPartition, Log] = attrs.field(factory=dict[TopicPartition, Log])
    points: dict[TopicPartition, Offset] = attrs.field(factory=dict[TopicPartition, Offset])
    starts: dict[TopicPartition, Offset] = attrs.field(factory=dict[TopicPartition, Offset])
    watermarks: dict[TopicPartition, Offset] = attrs.field(factory=dict[TopicPartition, Offset])
    topics: dict[TopicPartition, str] = attrs.field(factory=dict[TopicPartition, str])
    disputes: set[TopicPartition] = attrs.field(factory=set[TopicPartition])

    def load(self) -> tuple[int, list[LogOpened]]:
        """Recover every log that is there; the broker epoch of the last life if that ended with a clean shutdown.

        -1 if it did not. The mark is removed before anything is opened (LogManager.loadLogs). It says that every log is
        as the recovery points have it. Where one is missing or shorter the disk has lost records since, and the stop
        counts as unclean: else the controller would take this broker for one that has all that it acknowledged
        (KIP-966). The same where its epochs are not those that it noted: some of its records are others. A log that
        lacks what was durable, or whose topic nobody can tell, is left as it is (`damages`). Only what a crash leaves
        of a log that was just made is removed.
        """
        mark = take_clean_shutdown(self.disk, keep=self.settings.insync_design.keep_clean_mark)
        for name in filter(_DELETED_FOLDER.fullmatch, self.disk.names(ROOT)):
            self._remove_folder(name)
        names = log_folders(self.disk)
        identities = self._identities(names)
        points = self.points = self._of_these_topics(RECOVERY_POINTS)
        starts = self.starts = self._of_these_topics(LOG_STARTS, self.settings.insync_design.trusts_log_start)
        watermarks = self.watermarks = self._of_these_topics(WATERMARKS)
        trusts = self.settings.insync_design.trusts_clean_mark
        if mark is not None and points.keys() != names.keys() and not trusts:
            mark = None

        # It may be of a topic that was deleted since, and would pass for one of the same name.
        unknown = {tp for tp, (topic_id, _) in identities.items() if topic_id == 0}
        known = {tp for tp in names if points.get(tp) or starts.get(tp)}
        left_over = {tp for tp in unknown - known if is_left_over(self.disk, names[tp])}
        if unknown:
            mark = None

        def recover_log(tp: TopicPartition) -> Log:
            durable = points.get(tp, 0)
            return Log.open(
                self.disk,
                names[tp],
                self.settings,
                starts.get(tp, 0),
                0 if trusts else durable,
                starts.get(tp),
                has_topic=tp not in unknown or tp in left_over,
            )

        opened_logs: list[LogOpened] = []
        logs = self.disk.together([partial(recover_log, tp) for tp in names])
        for tp, log in zip(names, logs, strict=True):
            self.logs[tp] = log
            topic_id, is_certain = identities[tp]
            if tp in left_over and not log.damage:
                self.delete(tp)
                continue
            if log.damage or (log.has_other_epochs and not trusts):
                mark = None
            if log.damage:
                continue
            watermark = max(log.view.start, min(watermarks.get(tp, 0), log.view.end))
            sure = is_certain and tp not in self.disputes
            opened_logs.append(
                LogOpened(partition=tp, log=log.view, high_watermark=watermark, topic_id=topic_id, is_certain=sure)
            )
        if any(self.logs[tp].view.end != point for tp, point in points.items() if tp in self.logs) and not trusts:
            mark = None
        self._lower_points()
        return -1 if mark is None else mark, opened_logs

    def _identities(self, names: Mapping[TopicPartition, str]) -> dict[TopicPartition, tuple[int, bool]]:
        """Of which topic each log is, 0 if nobody knows, and whether that is certain."""
        in_order = self.disk.together([partial(identity, self.disk, name) for name in names.values()])
        identities = dict(zip(names, in_order, strict=True))
        self.topics = {tp: text_of(topic_id) for tp, (topic_id, _) in identities.items() if topic_id}
        return identities

    def _of_these_topics(self, path: str, trusts: bool = False) -> dict[TopicPartition, Offset]:
        """A checkpoint without what it says of earlier topics of the same names.

        Where nobody knows the topic of a log, it is kept as the recovery points have it, else as the starts.
        """
        offsets: dict[TopicPartition, Offset] = {}
        for tp, (offset, topic) in read_topic_offsets(self.disk, path, trusts).items():
            if not topic or self.topics.setdefault(tp, topic) == topic:
                offsets[tp] = offset
            else:
                self.disputes.add(tp)
        return offsets

    def damages(self) -> list[LogDamaged]:
        """The logs of which nothing counts."""
        damaged = [(tp, log, identity(self.disk, log.folder)) for tp, log in sorted(self.logs.items()) if log.damage]
        return [
            LogDamaged(partition=tp, why=log.damage, topic_id=topic_id if is_certain and tp not in self.disputes else 0)
            for tp, log, (topic_id, is_certain) in damaged
        ]

    def open(self, tp: TopicPartition, topic_id: int) -> LogOpened | DiskFailed:
        """The log of a partition, created for this topic if there is none."""
        try:
            if tp not in self.logs:
                self._forget(tp)
            log = self.logs.get(tp) or Log.create(self.disk, str(tp), self.settings, topic_id)
            own_id, is_certain = identity(self.disk, log.folder)
        except OSError as error:
            return DiskFailed(partition=tp, why=str(error))
        self.logs[tp] = log
        self.topics[tp] = text_of(own_id) if own_id else ""
        return LogOpened(partition=tp, log=log.view, topic_id=own_id, is_certain=is_certain)

    def delete(self, tp: TopicPartition) -> None:
        """Remove the log of a partition, under another name first (LogManager.asyncDelete).

        A crash in between leaves no log of which files are missing, which would count as damaged. What cannot be
        renamed or removed is removed at the next start.
        """
        name = self._take_out_of_use(tp, DELETION)
        if name:
            self._remove_folder(name)

    def _remove_folder(self, name: str) -> None:
        """Remove the folder of a log that nobody opens any more; where that fails, the next start does."""
        with contextlib.suppress(OSError):
            for file in self.disk.names(name):
                self.disk.remove(f"{name}/{file}")
            self.disk.remove(name)
            self.disk.flush_folder(ROOT)

    def set_aside(self, tp: TopicPartition) -> str:
        """Give the log of a partition another name, which is returned; nobody opens it any more.

        What cannot be renamed is found, and renamed, at the next start; the name is empty then.
        """
        return self._take_out_of_use(tp, STRAY)

    def _take_out_of_use(self, tp: TopicPartition, ending: str) -> str:
        """Close the log of a partition and rename its folder, durably; empty if there is none or that fails."""
        log = self.logs.pop(tp, None)
        if log is None:
            return ""
        log.close()
        name = name_out_of_use(tp, log.topic_id(), self.disk, ending)
        try:
            self.disk.rename(log.folder, name)
            self.disk.flush_folder(ROOT)
        except OSError:
            return ""
        return name

    def perform(self, operation: DiskOperation | AdvanceLogStart) -> DiskDone:
        """Do what a replica asked of the disk, and say that it is done, or that it failed."""
        tp, log = operation.partition, self.logs[operation.partition]
        try:
            match operation:
                case AppendLog(records=records, flush=flush):
                    return Appended(partition=tp, log=log.append(records, flush))
                case AdvanceLogStart(offset=offset):
                    self._note_starts({tp: offset} if log.has_segments_before(offset) else {})
                    return Retained(partition=tp, log=log.advance_start(offset))
                case TruncateLog(offset=offset, anew=anew):
                    if self.settings.insync_dropped_records and not anew:
                        note_dropped(self.disk, tp, log, offset)
                    self._lower_point(tp, 0 if anew else offset)
                    self._note_starts({tp: offset} if anew else {})
                    done = Truncated(partition=tp, log=log.begin_anew(offset) if anew else log.truncate(offset))
                    self._lower_points()
                    return done
                case AssignEpoch(epoch=epoch, start=start):
                    return EpochAssigned(partition=tp, log=log.assign_epoch(epoch, start))
        except (OSError, BadBatch) as error:
            return DiskFailed(partition=tp, why=str(error))

    def begins_epoch(self, write: AppendLog) -> bool:
        """Whether an append has to note the start of an epoch first, durably, and so takes long."""
        return leader_epoch_of(write.records) > self.logs[write.partition].view.epochs.latest()

    def perform_all(self, operations: Sequence[DiskOperation]) -> list[DiskDone]:
        """Operations on several logs, as they come when a broker fails that led them all."""
        return self.disk.together([partial(self.perform, operation) for operation in operations])

    def retain(self, wall: Millis, watermarks: Mapping[TopicPartition, Offset]) -> Iterator[Retained | DiskFailed]:
        """Old segments go, and producers that have been idle for long are forgotten (LogManager.cleanupLogs).

        `wall` is the time that producers write into batches. Not of the committed offsets of groups, which Kafka
        compacts.
        """
        settings = self.settings
        since = wall - settings.log_retention_ms if settings.log_retention_ms >= 0 else -1
        logs = {tp: self.logs[tp] for tp in watermarks if tp in self.logs and tp.topic != TOPIC}
        starts = {
            tp: log.retention_start(since, settings.log_retention_bytes, watermarks[tp]) for tp, log in logs.items()
        }
        later = {tp: start for tp, start in starts.items() if start > logs[tp].view.start}
        self._note_starts(later)
        for tp, log in logs.items():
            before = log.view
            try:
                if tp in later:
                    log.advance_start(later[tp])
            except (OSError, BadBatch) as error:
                yield DiskFailed(partition=tp, why=str(error))
                continue
            log.view = log.view.without_idle(wall - settings.producer_id_expiration_ms)
            if log.view is not before:
                yield Retained(partition=tp, log=log.view)

    def read(self, tp: TopicPartition, log_slice: Slice) -> bytes:
        """The batches of a slice; OSError or BadBatch where the disk does not give them back as they were written."""
        return self.logs[tp].read(log_slice)

    def files_of(self, tp: TopicPartition) -> list[str]:
        """The files that say what a log has, and of which topic it is."""
        log = self.logs.get(tp)
        return log.files() if log is not None else []

    def take_offline(self, tp: TopicPartition, why: str) -> None:
        """The log of a partition is damaged: nothing of it counts."""
        if tp in self.logs:
            self.logs[tp].damage = why

    def _write(self, path: str, offsets: Iterable[tuple[TopicPartition, Offset]]) -> None:
        """Write a checkpoint, each row with the topic of its log."""
        write_offsets(self.disk, path, offsets, self.settings.insync_design.checkpoint_in_place, self.topics)

    def checkpoint(self, effect: CheckpointWatermarks) -> None:
        """Write the watermarks, and with them how much of each log is durable and where it starts."""
        self._write(WATERMARKS, effect.watermarks)
        self.watermarks = dict(effect.watermarks)
        self._checkpoint_logs()

    def _forget(self, tp: TopicPartition) -> None:
        """Take out of the checkpoints what they say of a deleted topic, before one of the same name has a log.

        Else, after a crash, the new log would count as committed and as durable up to where the old one was, and as
        removed up to where that started.
        """
        if tp in self.watermarks:
            watermarks = tuple((known, offset) for known, offset in self.watermarks.items() if known != tp)
            self.checkpoint(CheckpointWatermarks(watermarks))
        elif tp in self.points or tp in self.starts:
            self._checkpoint_logs()

    def _lower_points(self) -> None:
        """Write the checkpoints if, on disk, a recovery point is past what is durable or a start past the log's.

        LogManager.truncateTo. A start that is too high would make the next start of the process drop the records
        below it.
        """
        views = {tp: log.view for tp, log in self.logs.items() if not log.damage}
        past_flushed = any(point > views[tp].flushed for tp, point in self.points.items() if tp in views)
        past_start = any(start > views[tp].start for tp, start in self.starts.items() if tp in views)
        if past_flushed or past_start:
            self._checkpoint_logs()

    def _lower_point(self, tp: TopicPartition, offset: Offset) -> None:
        """Write that no more than that is durable, before it is so: a log that ends earlier would count as damaged."""
        if self.points.get(tp, 0) > offset:
            self.points = {**self.points, tp: offset}
            self._write(RECOVERY_POINTS, self.points.items())

    def _note_starts(self, later: Mapping[TopicPartition, Offset]) -> None:
        """Write where logs are to start, before what is below that is removed."""
        if later:
            self.starts = {**self.starts, **later}
            self._write(LOG_STARTS, self.starts.items())

    def _checkpoint_logs(self) -> None:
        """Write the recovery points and starts; of a damaged log they stay as they are."""
        offline = {tp for tp, log in self.logs.items() if log.damage}
        points = {tp: log.view.flushed for tp, log in self.logs.items() if tp not in offline}
        points |= {tp: point for tp, point in self.points.items() if tp in offline}
        self._write(RECOVERY_POINTS, points.items())
        self.points = points
        starts = {tp: log.view.start for tp, log in self.logs.items() if tp not in offline}
        starts |= {tp: start for tp, start in self.starts.items() if tp in offline}
        self._write(LOG_STARTS, starts.items())
        self.starts = starts

    def close(self, broker_epoch: int, watermarks: CheckpointWatermarks) -> None:
        """The orderly end: flush everything, write every checkpoint, and only then leave the mark.

        With a damaged log there is none: it says that every log is as it was. Model: broker_shuts_down.
        """
        whole = [log for log in self.logs.values() if not log.damage]
        for log in whole:
            log.flush()
        self.checkpoint(watermarks)
        if len(whole) == len(self.logs):
            leave_clean_shutdown(self.disk, broker_epoch)
        for log in self.logs.values():
            log.close()
