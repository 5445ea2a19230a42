"""The real disk: the one module of the broker that opens files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from isr_broker.storage.disk import T

_FLUSHES: Final = 32
"""At a time."""


class RealFile:
    """A file of the operating system, by its descriptor; `note_durable_size` is told how much of it is durable."""

    def __init__(self, path: Path, note_durable_size: Callable[[int], None] | None = None) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._end = os.fstat(self._fd).st_size
        self._note_durable_size = note_durable_size

    def append(self, data: bytes) -> None:
        """Write at the end, however often the system must be asked."""
        left = memoryview(data)
        while left:
            written = os.pwrite(self._fd, left, self._end)
            self._end += written
            left = left[written:]

    def read(self, position: int, size: int) -> bytes:
        """What is there, up to `size` bytes."""
        return os.pread(self._fd, size, position)

    def size(self) -> int:
        """The number of bytes."""
        return self._end

    def truncate(self, size: int) -> None:
        """Cut at the size."""
        os.ftruncate(self._fd, size)
        self._end = size

    def flush(self) -> None:
        """Make the contents durable."""
        os.fsync(self._fd)
        if self._note_durable_size is not None:
            self._note_durable_size(self._end)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


class InUse(Exception):
    """Another process has the data directory."""


def open_data_directory(path: str, flush_record: str = "") -> RealDisk:
    """A data directory for this process alone, as long as it lives (LogManager's .lock).

    A log is an open file, so the process takes all the files that it may have. Into the file `flush_record`, if one is
    named, goes a line `size path` for each flush: SIGKILL takes nothing from a system's cache, a power failure all that
    was not flushed, and by these lines the one can be made of the other.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    disk = RealDisk(Path(path), flush_record)
    lock = os.open(disk.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise InUse(f"{path} is in use by another broker") from error
    return disk


def open_folder(path: str) -> RealDisk:
    """Any folder, made if there is none."""
    return RealDisk(Path(path))


class RealDisk:
    """A folder of the operating system as a data directory."""

    def __init__(self, root: Path, flush_record: str = "") -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self._record: int | None = None
        if flush_record:
            self._record = os.open(flush_record, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def open(self, path: str) -> RealFile:
        """Open a file, empty if there was none."""
        if self._record is None:
            return RealFile(self.root / path)
        record = self._record
        return RealFile(self.root / path, lambda size: _whole(record, f"{size} {path}\n"))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return (self.root / path).exists()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return (self.root / path).is_dir()

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(self.root / folder))
        return []

    def make_folder(self, path: str) -> None:
        """Make a folder, if there is none."""
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        os.replace(self.root / old, self.root / new)

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder, if there is one."""
        found = self.root / path
        if found.is_dir():
            found.rmdir()
        else:
            found.unlink(missing_ok=True)

    def together(self, doings: Sequence[Callable[[], T]]) -> list[T]:
        """In as many threads as it takes to keep the disk busy; they wait for it, and share nothing else."""
        if len(doings) < 2:
            return [doing() for doing in doings]
        with ThreadPoolExecutor(min(len(doings), _FLUSHES)) as threads:
            return [future.result() for future in [threads.submit(doing) for doing in doings]]

    def flush_folder(self, path: str) -> None:
        """Make durable which names are in a folder."""
        fd = os.open(self.root / path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _whole(fd: int, line: str) -> None:
    """One write, so that a line is there or not."""
    os.write(fd, line.encode())
