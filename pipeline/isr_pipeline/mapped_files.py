"""Files on local disks that are mapped into memory, and how room is made for them where a disk is full.

Of a mapped file only what the disk has given room for is written to: a process that writes to more is killed (SIGBUS).
Where a disk has no room left, visited sets that no task has in use are removed. They are a cache of the store, and a
task that finds none makes its set again.

Buckets have their turns in the same order at every level. So the set that was given back last is needed last, and is
removed first. To remove the one that was used least recently would be to remove the next one that is needed.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np

from isr_check.engine import Failed

RECORD_FILE = "said.json"
"""The file in which the last task of a bucket has said which states the set has. It is there once the set is."""
STEP = 1 << 18
"""Bytes for which a disk is asked at a time, at least."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskRoom:
    """The room on the disk of a folder with visited sets, as a task at a level sees it.

    `spare`: bytes that are left free for what Spark itself will write there (at most half of the disk), as long as
    there are sets to be removed instead.
    """

    def __init__(self, home: Path, level: int, spare: int) -> None:
        self.home, self.level, self.spare = home, level, spare

    def take(self, file: int, begin: int, end: int) -> None:
        """Have the disk give room for these bytes of a file; Failed if it has none without sets that are in use."""
        while self._short_of(end - begin) and self._remove_one():
            pass
        self.found_for(lambda: os.posix_fallocate(file, begin, end - begin))

    def found_for(self, work: Callable[[], object]) -> None:
        """Do what takes room on the disk, and remove sets until it can be done; Failed if it cannot be done without."""
        while True:
            try:
                work()
                return
            except OSError as problem:
                if problem.errno not in FULL:
                    raise
                if not self._remove_one():
                    raise Failed(self._full()) from None

    def _short_of(self, more: int) -> bool:
        disk = os.statvfs(self.home)
        return (disk.f_bavail * disk.f_frsize) - more < min(self.spare, disk.f_blocks * disk.f_frsize // 2)

    def _remove_one(self) -> bool:
        """Remove a set that no task has in use; whether there was one."""
        for folder in sorted(self._idle(), key=self._turn):
            gone = folder.with_name(f"{folder.name}.{os.getpid()}.gone")  # nobody takes it while it is being removed
            with suppress(OSError):
                folder.rename(gone)
                shutil.rmtree(gone)
                return True
        return False

    def _idle(self) -> list[Path]:
        """The sets that no task has in use: of this search, and of others whose executor was the same."""
        return [folder for folder in self.home.parent.glob("insync-*/bucket-*") if "." not in folder.name]

    def _turn(self, folder: Path) -> tuple[bool, bool, int]:
        """Least for the set that is needed last: first those of other searches, and of buckets that went elsewhere."""
        try:
            said = cast("dict[str, int]", json.loads((folder / RECORD_FILE).read_text(encoding="utf-8")))
            given_back = (folder / RECORD_FILE).stat().st_mtime_ns
        except (OSError, ValueError):
            return False, False, 0
        return folder.parent == self.home, said.get("level", -1) >= self.level - 1, -given_back

    def _full(self) -> str:
        return (
            f"{self.home.parent} has no room left for a visited set, and no other one to remove; more --partitions "
            "make the sets smaller"
        )


class MappedFile:
    """A file of 64-bit words in memory: space for `count`, of which those that were asked for have room on the disk."""

    def __init__(self, path: Path, count: int, room: DiskRoom) -> None:
        self.room = room
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.disk_bytes = os.fstat(self.file).st_size
        """Bytes that have room on the disk; the file has this size when it is closed."""
        if self.disk_bytes < count * 8:
            os.ftruncate(self.file, count * 8)
        self.words = np.frombuffer(mmap.mmap(self.file, count * 8), dtype=np.uint64)

    def have(self, count: int) -> None:
        """Have room on the disk for the first `count` words; Failed if there is none."""
        if count * 8 > self.disk_bytes:
            end = min(8 * len(self.words), -(-8 * count // STEP) * STEP)
            self.room.take(self.file, self.disk_bytes, end)
            self.disk_bytes = end

    def close(self) -> None:
        if self.file >= 0:
            self.words = np.zeros(0, dtype=np.uint64)
            os.ftruncate(self.file, self.disk_bytes)
            os.close(self.file)
            self.file = -1
