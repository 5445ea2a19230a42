"""What a log needs of a disk: the interface, so that tests and the simulator can put a treacherous one there.

`disk_files` has the real one, the only module that opens files; `disk_memory` its twin, which can lose what was not
flushed. Paths are relative to the data directory, with `/`. Every operation may raise OSError, and then it is not known
how much of it was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class File(Protocol):
    """An open file, written only at its end."""

    def append(self, data: bytes) -> None:
        """Write at the end; durable after `flush`."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """What is there, up to `size` bytes."""
        ...

    def size(self) -> int:
        """The number of bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Cut at the size; durable after `flush`."""
        ...

    def flush(self) -> None:
        """Make the contents durable (fsync)."""
        ...

    def close(self) -> None:
        """Give the file back; says nothing about what is durable."""
        ...


class Disk(Protocol):
    """A data directory."""

    def open(self, path: str) -> File:
        """Open a file, empty if there was none; its name is durable after `flush_folder`."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder, if there is none; its name is durable after `flush_folder` of the one it is in."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, over whatever had it; durable after `flush_folder`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder, if there is one; durable after `flush_folder`."""
        ...

    def flush_folder(self, path: str) -> None:
        """Make durable which names are in a folder (fsync of the folder)."""
        ...

    def together(self, doings: Sequence[Callable[[], T]]) -> list[T]:
        """Do several things that have no file in common, in any order; back when all are done.

        A disk can flush many files in hardly more time than one.
        """
        ...


ROOT = ""
"""The data directory itself."""


def folder_of(path: str) -> str:
    """The folder that a path is in."""
    return path.rpartition("/")[0]
