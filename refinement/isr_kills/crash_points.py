"""Crash points: a log directory is crashed before every write of a short life, and opened again.

The life is always the same: appends in several leader epochs, each flushed at once by the settings, checkpoints, a
clean shutdown, and a second start. Before each operation the disk is copied. Of the copy everything, half or nothing
survives that was not flushed. What the log directory then finds must be what it had promised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from isr_broker.core.effects import AppendLog, AssignEpoch, CheckpointWatermarks
from isr_broker.core.messages import LeaderEpoch, Offset, TopicPartition
from isr_broker.core.record_batch import batches, new_batch, stamped
from isr_broker.core.replica_state import Replica, flushes
from isr_broker.designs import Design
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, RECOVERY_POINTS, WATERMARKS, is_whole
from isr_broker.storage.disk_memory import Everything, Fault, MemoryDisk, Nothing, Survival
from isr_broker.storage.log_directory import LogDirectory

_TP: Final = TopicPartition("t", 0)
_BROKER_EPOCH: Final = 7


class Half:
    """Half of what was pending survives, with zeros after it."""

    def names(self, pending: int) -> int:
        """The first half of the changes of names."""
        return pending // 2

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """The first half of the bytes."""
        return pending // 2, 16


_SURVIVALS: Final[tuple[Survival, ...]] = (Nothing(), Half(), Everything())


@attrs.define
class _Life:
    """The life of a log directory, and what it has promised so far.

    `runs`: the process runs, so that a crash is no clean shutdown.
    """

    settings: Settings
    disk: MemoryDisk = attrs.field(factory=MemoryDisk)
    acknowledged: Offset = 0
    runs: bool = False
    disk_copies: list[tuple[MemoryDisk, Offset, bool]] = attrs.field(factory=list[tuple[MemoryDisk, Offset, bool]])

    def copy_disk(self, disk: MemoryDisk, operation: str, path: str) -> Fault | None:
        """Copy the disk before this operation."""
        self.disk_copies.append((disk.copy(), self.acknowledged, self.runs))
        return None

    def start(self) -> LogDirectory:
        """Open the log directory."""
        logs = LogDirectory(self.disk, self.settings)
        logs.load()
        self.runs = True
        logs.open(_TP, 1)
        return logs

    def append_record(self, logs: LogDirectory, epoch: LeaderEpoch, leads: bool) -> None:
        """Append one record: as a leader, which notes its epoch before, or as a follower.

        The settings decide on the flush.
        """
        view = logs.logs[_TP].view
        if leads:
            logs.perform(AssignEpoch(partition=_TP, epoch=epoch, start=view.end))
        replica = Replica(partition=_TP, me=1, broker_epoch=_BROKER_EPOCH, settings=self.settings, log=view)
        records = stamped(new_batch(b"%03d" % view.end), view.end, epoch)
        logs.perform(AppendLog(partition=_TP, records=records, flush=flushes(replica, view.end + 1)))
        self.acknowledged = view.end + 1

    def shut_down(self, logs: LogDirectory) -> None:
        """Shut down cleanly."""
        self.runs = False
        logs.close(_BROKER_EPOCH, CheckpointWatermarks(((_TP, self.acknowledged),)))

    def run_life(self) -> None:
        """The whole life."""
        self.disk.hook = self.copy_disk
        logs = self.start()
        self.append_record(logs, 0, leads=True)
        self.append_record(logs, 1, leads=False)
        logs.checkpoint(CheckpointWatermarks(((_TP, 1),)))
        self.append_record(logs, 1, leads=False)
        self.shut_down(logs)
        logs = self.start()
        self.append_record(logs, 2, leads=False)
        logs.checkpoint(CheckpointWatermarks(((_TP, 3),)))
        self.append_record(logs, 3, leads=True)
        logs.checkpoint(CheckpointWatermarks(((_TP, 4),)))
        self.disk.hook = None


def first_broken_promise(design: Design) -> tuple[str, int] | None:
    """The first promise that is broken, and the number of the write before which the crash was.

    None if all are kept.
    """
    settings = Settings(insync_design=design, log_flush_interval_messages=1)
    life = _Life(settings)
    life.run_life()
    for number, (picture, acknowledged, runs) in enumerate(life.disk_copies):
        for survival in _SURVIVALS:
            disk = picture.copy()
            disk.crash(survival)
            promise = next(_broken_promises(disk, settings, acknowledged, runs), None)
            if promise is not None:
                return promise, number
    return None


def _broken_promises(disk: MemoryDisk, settings: Settings, acknowledged: Offset, run_bug: bool) -> Iterator[str]:
    """The promises that the contents of a disk break after a crash."""
    paths = (WATERMARKS, RECOVERY_POINTS, LOG_STARTS, f"{_TP}/{EPOCHS}")
    if not all(is_whole(disk, path) for path in paths):
        yield "checkpoints-whole"
    logs = LogDirectory(disk, settings)
    clean, opened = logs.load()
    if run_bug and clean >= 0:
        yield "crash-is-unclean"
    end = max((found.log.end for found in opened), default=0)
    if end < acknowledged:
        yield "flushed-survives"
    for tp, log in logs.logs.items():
        start = dict[LeaderEpoch, Offset]()
        for batch in batches(log.contents()):
            start.setdefault(batch.leader_epoch, batch.base_offset)
        known = {entry.epoch: entry.start for entry in logs.logs[tp].view.epochs.entries}
        if any(known.get(epoch) != start for epoch, start in start.items()):
            yield "epochs-of-records"
