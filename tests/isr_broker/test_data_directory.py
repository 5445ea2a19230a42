"""Checkpoints, the mark of a clean shutdown, and disks that fail."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from tests.isr_broker.test_log import FOLDER, SMALL, TP, Share
from tests.support.brokers import batch_at as batch

from isr_broker.core.effects import AppendLog, CheckpointWatermarks, TruncateLog
from isr_broker.core.inputs import Appended, DiskFailed
from isr_broker.core.topics import FILE
from isr_broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    EPOCHS,
    RECOVERY_POINTS,
    WATERMARKS,
    leave_clean_shutdown,
    read_offsets,
    replace,
    take_clean_shutdown,
    write_offsets,
)
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import Everything, Fault, MemoryDisk, Nothing
from isr_broker.storage.log_directory import LogDirectory

# Checkpoints


def directory(disk: Disk) -> LogDirectory:
    return LogDirectory(disk, SMALL)


def filled(disk: Disk, flush: bool = True) -> LogDirectory:
    logs = directory(disk)
    logs.load()
    logs.open(TP, 1)
    for offset in range(6):
        done = logs.perform(AppendLog(partition=TP, records=batch(offset, epoch=offset // 2), flush=flush))
        assert isinstance(done, Appended)
    logs.checkpoint(CheckpointWatermarks(((TP, 4),)))
    return logs


NONSENSE = [None, b"", b"1\n0\n", b"0\n2\nt 0 5\n", b"0\n1\nt 0 x\n", b"0\n1\nt 0 5", b"\xff\x00", b"0\n1\nt -1 5\n"]


@pytest.mark.parametrize("text", NONSENSE)
@pytest.mark.parametrize("name", [RECOVERY_POINTS, WATERMARKS, f"{FOLDER}/{EPOCHS}"])
def test_a_checkpoint_that_is_missing_or_nonsense_costs_no_record(name: str, text: bytes | None) -> None:
    disk = MemoryDisk()
    filled(disk)
    disk.crash(Nothing())
    if text is None:
        disk.remove(name)
    else:
        replace(disk, name, text)
    _, (opened,) = directory(disk).load()
    assert opened.log.end == 6
    assert [(e.epoch, e.start) for e in opened.log.epochs.entries] == [(0, 0), (1, 2), (2, 4)]
    assert opened.high_watermark == (0 if name == WATERMARKS else 4)


def test_stale_checkpoints_are_harmless() -> None:
    disk = MemoryDisk()
    logs = filled(disk)
    stale = {n: disk.image(n).copy() for n in (RECOVERY_POINTS, WATERMARKS, f"{FOLDER}/{EPOCHS}")}
    logs.perform(AppendLog(partition=TP, records=batch(6, epoch=5), flush=True))
    logs.checkpoint(CheckpointWatermarks(((TP, 7),)))
    disk.crash(Everything())
    for name, image in stale.items():
        replace(disk, name, bytes(image.visible_bytes))
    _, (opened,) = directory(disk).load()
    assert (opened.log.end, opened.high_watermark) == (7, 4)
    assert opened.log.epochs.latest() == 5


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.95])
def test_a_recovery_point_is_never_past_what_is_durable(share: float) -> None:
    # Or a batch that was torn below it would be taken for whole: its CRC is not looked at.
    disk = MemoryDisk()
    logs = filled(disk)
    logs.perform(TruncateLog(partition=TP, offset=0))
    logs.perform(AppendLog(partition=TP, records=batch(0, epoch=9)))
    disk.crash(Share(1, share, zeros=99))
    _, (opened,) = directory(disk).load()
    assert opened.log.end == 0


@pytest.mark.parametrize("rest", [None, b"version"])
def test_a_log_that_is_made_where_a_removed_one_left_its_folder_says_its_topic(rest: bytes | None) -> None:
    """Else its records would be of no topic, and nobody could read them after the next start."""
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    if rest is not None:
        replace(disk, f"{FOLDER}/{FILE}", rest)
    logs = directory(disk)
    logs.open(TP, 7)
    logs.perform(AppendLog(partition=TP, records=batch(0, epoch=0), flush=True))
    disk.crash(Nothing())
    _, (opened,) = directory(disk).load()
    assert (opened.topic_id, opened.log.end) == (7, 1)


def test_a_watermark_past_the_log_is_cut_to_it() -> None:
    disk = MemoryDisk()
    filled(disk, flush=False)
    write_offsets(disk, WATERMARKS, [(TP, 6)])
    disk.crash(Nothing())
    _, (opened,) = directory(disk).load()
    assert opened.log.end < 6
    assert opened.high_watermark == opened.log.end


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_a_checkpoint_is_the_old_one_or_the_new_one_whenever_the_power_fails(share: float) -> None:
    disk = MemoryDisk()
    write_offsets(disk, WATERMARKS, [(TP, 1)])
    pictures: list[MemoryDisk] = []
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    write_offsets(disk, WATERMARKS, [(TP, 2)])
    disk.hook = None
    assert len(pictures) >= 4
    for picture in [*pictures, disk]:
        picture.crash(Share(share, share))
        assert read_offsets(picture, WATERMARKS) in ({TP: 1}, {TP: 2})
    assert read_offsets(disk, WATERMARKS) == {TP: 2}


# The mark of a clean shutdown


def test_the_mark_carries_the_broker_epoch_and_is_gone_before_a_log_is_opened() -> None:
    disk = MemoryDisk()
    filled(disk).close(17, CheckpointWatermarks(((TP, 6),)))
    disk.crash(Nothing())
    seen: list[bool] = []

    def watch(now: MemoryDisk, operation: str, path: str) -> None:
        if path.startswith(FOLDER):
            crashed = now.copy()
            crashed.crash(Nothing())
            seen.append(crashed.exists(CLEAN_SHUTDOWN))

    disk.hook = watch
    epoch, (opened,) = directory(disk).load()
    assert (epoch, opened.log.end, opened.high_watermark) == (17, 6, 6)
    assert seen
    assert not any(seen)
    assert directory(disk).load()[0] == -1, "the next start is not after a clean shutdown"


def test_everything_is_durable_before_the_mark_is_there() -> None:
    disk = MemoryDisk()
    logs = filled(disk, flush=False)
    pictures: list[MemoryDisk] = []
    disk.hook = lambda now, operation, path: pictures.append(now.copy())
    logs.close(17, CheckpointWatermarks(((TP, 6),)))
    ends = set[tuple[bool, int]]()
    for picture in [*pictures, disk]:
        picture.crash(Nothing())
        epoch, (opened,) = directory(picture).load()
        ends.add((epoch == 17, opened.log.end))
    assert {end for marked, end in ends if marked} == {6}
    assert (False, 6) in ends
    assert any(end < 6 for _, end in ends), "or nothing was at stake"


@pytest.mark.parametrize("text", [b"", b"{", b"7", b'{"version": 0}'])
def test_a_mark_that_names_no_epoch_is_none_or_unclean(text: bytes) -> None:
    disk = MemoryDisk()
    replace(disk, CLEAN_SHUTDOWN, text)
    assert take_clean_shutdown(disk) in (None, -1)
    assert not disk.exists(CLEAN_SHUTDOWN)
    leave_clean_shutdown(disk, 3)
    assert take_clean_shutdown(disk) == 3


# Failing disks


def once(error: int, operation: str, written: int = 0) -> Callable[[MemoryDisk, str, str], Fault | None]:
    left = [1]

    def hook(disk: MemoryDisk, doing: str, path: str) -> Fault | None:
        if doing == operation and path.endswith(".log") and left[0]:
            left[0] = 0
            return Fault(OSError(error, "planted"), written)
        return None

    return hook


@pytest.mark.parametrize(
    ("error", "operation"), [(errno.ENOSPC, "append"), (errno.EIO, "append"), (errno.EIO, "flush")]
)
@pytest.mark.parametrize("written", [0, 1, 40, 61])
def test_a_failed_write_is_reported_and_recovered_from(error: int, operation: str, written: int) -> None:
    disk = MemoryDisk()
    logs = filled(disk)
    disk.hook = once(error, operation, written)
    done = logs.perform(AppendLog(partition=TP, records=batch(6, epoch=2), flush=True))
    assert isinstance(done, DiskFailed)
    disk.crash(Everything())
    _, (opened,) = directory(disk).load()
    assert opened.log.end in ((6,) if operation == "append" else (6, 7))


def test_a_failed_truncation_is_reported() -> None:
    disk = MemoryDisk()
    logs = filled(disk)
    disk.hook = once(errno.EIO, "truncate")
    assert isinstance(logs.perform(TruncateLog(partition=TP, offset=5)), DiskFailed)
