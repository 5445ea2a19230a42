"""A log directory crashed before every write of a short life: is what is found again what was promised?

One fixed life of two processes: appends in three leader epochs, flushed because the settings say so, checkpoints, an
orderly end, a second start. At each operation the disk is copied and loses nothing, half or all of what is not flushed.
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
    """Half of what was pending, with zeros where more was to come."""

    def names(self, pending: int) -> int:
        """The first half of the changes of names."""
        return pending // 2

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """The first half of the bytes."""
        return pending // 2, 16


_SURVIVALS: Final[tuple[Survival, ...]] = (Nothing(), Half(), Everything())


@attrs.define
class _Life:
    """A process with its log directory, and what has been promised by now."""

    settings: Settings
    disk: MemoryDisk = attrs.field(factory=MemoryDisk)
    acknowledged: Offset = 0
    runs: bool = False
    pictures: list[tuple[MemoryDisk, Offset, bool]] = attrs.field(factory=list[tuple[MemoryDisk, Offset, bool]])

    def looks(self, disk: MemoryDisk, operation: str, path: str) -> Fault | None:
        """The disk as it is before this operation."""
        self.pictures.append((disk.copy(), self.acknowledged, self.runs))
        return None

    def starts(self) -> LogDirectory:
        """Load; from then on a crash is no clean shutdown."""
        logs = LogDirectory(self.disk, self.settings)
        logs.load()
        self.runs = True
        logs.open(_TP)
        return logs

    def appends(self, logs: LogDirectory, epoch: LeaderEpoch, leads: bool) -> None:
        """One record, as a leader, which notes its epoch first, or as a follower; flushed if it is to be."""
        view = logs.logs[_TP].view
        if leads:
            logs.perform(AssignEpoch(partition=_TP, epoch=epoch, start=view.end))
        replica = Replica(partition=_TP, me=1, broker_epoch=_BROKER_EPOCH, settings=self.settings, log=view)
        records = stamped(new_batch(b"%03d" % view.end), view.end, epoch)
        logs.perform(AppendLog(partition=_TP, records=records, flush=flushes(replica, view.end + 1)))
        self.acknowledged = view.end + 1

    def ends(self, logs: LogDirectory) -> None:
        """Stop in order."""
        self.runs = False
        logs.close(_BROKER_EPOCH, CheckpointWatermarks(((_TP, self.acknowledged),)))

    def passes(self) -> None:
        """The whole life."""
        self.disk.hook = self.looks
        logs = self.starts()
        self.appends(logs, 0, leads=True)
        self.appends(logs, 1, leads=False)
        logs.checkpoint(CheckpointWatermarks(((_TP, 1),)))
        self.appends(logs, 1, leads=False)
        self.ends(logs)
        logs = self.starts()
        self.appends(logs, 2, leads=False)
        logs.checkpoint(CheckpointWatermarks(((_TP, 3),)))
        self.appends(logs, 3, leads=True)
        logs.checkpoint(CheckpointWatermarks(((_TP, 4),)))
        self.disk.hook = None


def broken_at_a_crash(design: Design) -> tuple[str, int] | None:
    """The first promise that is broken, and before which write the crash was; None if all are kept."""
    settings = Settings(insync_design=design, log_flush_interval_messages=1)
    life = _Life(settings)
    life.passes()
    for number, (picture, acknowledged, runs) in enumerate(life.pictures):
        for survival in _SURVIVALS:
            disk = picture.copy()
            disk.crash(survival)
            promise = next(_broken(disk, settings, acknowledged, runs), None)
            if promise is not None:
                return promise, number
    return None


def _broken(disk: MemoryDisk, settings: Settings, acknowledged: Offset, ran: bool) -> Iterator[str]:
    """Promises that are broken by what is found on a disk after a crash."""
    paths = (WATERMARKS, RECOVERY_POINTS, LOG_STARTS, f"{_TP}/{EPOCHS}")
    if not all(is_whole(disk, path) for path in paths):
        yield "checkpoints-whole"
    logs = LogDirectory(disk, settings)
    clean, opened = logs.load()
    if ran and clean >= 0:
        yield "crash-is-unclean"
    end = max((found.log.end for found in opened), default=0)
    if end < acknowledged:
        yield "flushed-survives"
    for tp, log in logs.logs.items():
        starts = dict[LeaderEpoch, Offset]()
        for batch in batches(log.contents()):
            starts.setdefault(batch.leader_epoch, batch.base_offset)
        known = {entry.epoch: entry.start for entry in logs.logs[tp].view.epochs.entries}
        if any(known.get(epoch) != start for epoch, start in starts.items()):
            yield "epochs-of-records"
