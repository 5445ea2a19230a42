"""Where results last: a folder of any store that Arrow can write, by one interface.

    Location.of("s3://bucket/prefix")     also gs://, abfs://, hdfs://, file:// and paths of this machine

The interface is what an object store can do: put, read, list, delete. Nothing is renamed, locked, mapped, appended.
What writes a file in pieces names it by a number that nobody else has; the name counts when something sealed says it.

Options of a store, such as its endpoint, stand in the query of the URL, as pyarrow.fs.FileSystem.from_uri takes them.
Credentials come from there, or from where Arrow looks for them: the environment, a profile, the role of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

import attrs
import pyarrow as pa
from pyarrow import fs

from isr_check.engine import Unavailable

SCHEMES = ("s3", "gs", "abfs", "hdfs", "file")
AT_ONCE = 8
"""Requests to a store at a time."""


class _Entry(Protocol):
    path: str
    size: int
    is_file: bool


class FileSystem(Protocol):
    """The part of pyarrow.fs.FileSystem that is used here."""

    def open_input_file(self, path: str) -> BinaryIO: ...
    def open_output_stream(self, path: str) -> BinaryIO: ...
    def create_dir(self, path: str, *, recursive: bool) -> None: ...
    def delete_dir(self, path: str) -> None: ...
    def delete_file(self, path: str) -> None: ...
    def get_file_info(self, selector: object) -> list[_Entry]: ...


_from_uri = cast("Callable[[str], tuple[FileSystem, str]]", vars(fs)["FileSystem"].from_uri)
_local = cast("Callable[[], FileSystem]", vars(fs)["LocalFileSystem"])


@cache
def filesystem(root: str) -> tuple[FileSystem, str]:
    """The file system of a store, and the path of its root there; made once in a process."""
    if not root:
        return _local(), ""
    try:
        return _from_uri(root)
    except (pa.ArrowException, OSError, ValueError, ImportError) as problem:
        raise Unavailable(f"{_without_secrets(root)} is no store: {first_line(problem)}") from None


def first_line(problem: BaseException) -> str:
    """What a problem says, without the lines that follow; its class if it says nothing."""
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def _without_secrets(url: str) -> str:
    """The URL without its query, and without a key and its secret before the name of a bucket."""
    at = urlsplit(url)
    name = at.netloc.rpartition("@")[2] if ":" in at.netloc.rpartition("@")[0] else at.netloc
    return f"{at.scheme}://{name}{at.path}"


@attrs.frozen
class Location:
    """A folder or file of a store. `root`: the URL of the store, empty for the disks of this machine."""

    root: str
    path: str

    @staticmethod
    def of(given: str | Path) -> Location:
        """The location of a URL or of a path here; Unavailable if Arrow has no such store."""
        at = urlsplit(str(given))
        if isinstance(given, Path) or "://" not in given:
            return Location("", str(Path(given).absolute()))
        if at.scheme == "file":
            return Location("", unquote(at.path).rstrip("/") or "/")
        if at.scheme not in SCHEMES or not (at.netloc or at.scheme == "hdfs"):
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise Unavailable(f"{_without_secrets(given)} is no store; there are {known}")
        options = [at.query] if at.query else []
        if at.scheme == "s3" and "allow_delayed_open" not in at.query:
            options.append("allow_delayed_open=true")  # what is small is then put by one request
        query = f"?{'&'.join(options)}" if options else ""
        root = f"{at.scheme}://{at.netloc}/{query}"
        filesystem(root)
        return Location(root, unquote(at.path).strip("/"))

    @property
    def here(self) -> bool:
        """Whether this is a path of the machine's own file systems."""
        return not self.root

    def __truediv__(self, name: str) -> Location:
        return attrs.evolve(self, path=f"{self.path.rstrip('/')}/{name}" if self.path else name)

    def __str__(self) -> str:
        return self.path if self.here else f"{_without_secrets(self.root).rstrip('/')}/{self.path}"

    def _at(self) -> tuple[FileSystem, str]:
        system, base = filesystem(self.root)
        return system, self.path if self.here else f"{base.rstrip('/')}/{self.path}".rstrip("/")

    def put(self, content: bytes) -> None:
        """Write a file in one piece. Who reads it must know by its content whether it is whole."""
        with self.written() as file:
            file.write(content)

    @contextmanager
    def written(self) -> Generator[BinaryIO, None, None]:
        """A file to be written from begin to end."""
        system, path = self._at()
        if self.here:
            system.create_dir(str(Path(path).parent), recursive=True)
        with system.open_output_stream(path) as file:
            yield file

    @contextmanager
    def opened(self) -> Generator[BinaryIO, None, None]:
        """A file to be read at any place; FileNotFoundError if there is none."""
        system, path = self._at()
        with system.open_input_file(path) as file:
            yield file

    def read(self) -> bytes:
        with self.opened() as file:
            return file.read()

    def files(self) -> dict[str, int]:
        """The sizes in bytes of all files in this folder and those below, by path from here; empty if there is none."""
        system, path = self._at()
        selector = fs.FileSelector(path, allow_not_found=True, recursive=True)
        begin = len(path) + 1
        found = system.get_file_info(selector)
        return {entry.path[begin:]: entry.size for entry in sorted(found, key=_path) if entry.is_file}

    def delete(self) -> None:
        """Remove this file; nothing happens if there is none."""
        system, path = self._at()
        with suppress(FileNotFoundError):
            system.delete_file(path)

    def delete_folder(self) -> None:
        """Remove all files in this folder and below, and the folders of a store that has folders."""
        with ThreadPoolExecutor(AT_ONCE) as beside:
            list(beside.map(Location.delete, [self / name for name in self.files()]))
        system, path = self._at()
        with suppress(OSError):  # an object store may have none
            system.delete_dir(path)


def _path(entry: _Entry) -> str:
    return entry.path
