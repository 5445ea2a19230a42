"""Where results last: a folder of any store that Arrow can write, by one interface.

    Location.of("s3://bucket/prefix")     also gs://, abfs://, hdfs://, file:// and paths of this machine

The interface is what an object store can do: put, read, list, delete. Nothing is renamed, locked, mapped, appended.
What writes a file in pieces names it by a number that nobody else has; the name counts when something sealed says it.
Only on a machine's own disks, whose files come to be in pieces, does `put` write beside the place and rename.

Where a store refuses, `StoreRefused` says so in one sentence that names the file, on the driver and in tasks alike.

Options of a store, such as its endpoint, stand in the query of the URL, as pyarrow.fs.FileSystem.from_uri takes them.
Credentials come from there, or from where Arrow looks for them: the environment, a profile, the role of the machine.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Generator, Iterable
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
CREDENTIALS = "its credentials were not found or not accepted, or do not allow this"
REFUSALS = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "ACCESS_DENIED": CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": CREDENTIALS,
    "NETWORK_CONNECTION": "nobody answers at the endpoint of this store",
}
"""What Amazon's library calls a mistake, and what is said of it."""


class StoreRefused(OSError):
    """What a store refused and why, in one sentence."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


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
    def of(place: str | Path | Location) -> Location:
        """The location of a URL or of a path here; Unavailable if Arrow has no such store."""
        if isinstance(place, Location):
            return place
        at = urlsplit(str(place))
        if isinstance(place, Path) or "://" not in place:
            return Location("", str(Path(place).absolute()))
        if at.scheme == "file":
            return Location("", unquote(at.path).rstrip("/") or "/")
        if at.scheme not in SCHEMES or not (at.netloc or at.scheme == "hdfs"):
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise Unavailable(f"{_without_secrets(place)} is no store; there are {known}")
        options = [at.query] if at.query else []
        if at.scheme == "s3" and "allow_delayed_open" not in at.query:
            options.append("allow_delayed_open=true")  # what is small is then put by one request
        query = f"?{'&'.join(options)}" if options else ""
        root = f"{at.scheme}://{at.netloc}/{query}"
        filesystem(root)
        return Location(root, unquote(at.path).strip("/"))

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path.rpartition("/")[2]

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

    @contextmanager
    def _file_system(self) -> Generator[tuple[FileSystem, str], None, None]:
        """The file system and the path there. What it refuses becomes Refused, FileNotFoundError by this name."""
        try:
            try:
                yield self._at()
            except FileNotFoundError:
                self._look_for_bucket()
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except (StoreRefused, FileNotFoundError):
            raise
        except OSError as problem:
            raise StoreRefused(errno.EIO, refusal(problem), str(self)) from None

    def _look_for_bucket(self) -> None:
        """OSError if there is no such bucket: a store says of a file there only that it is not found."""
        if not self.here:
            system, base = filesystem(self.root)
            system.get_file_info(fs.FileSelector(base.rstrip("/"), allow_not_found=False, recursive=False))

    def put(self, content: bytes) -> None:
        """Write a file in one piece, whole or not at all where the store can. Who reads it must know whether it is."""
        if not self.here:
            with self.open_for_writing() as file:
                file.write(content)
            return
        path = Path(self.path)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with attrs.evolve(self, path=str(beside)).open_for_writing() as file:
            file.write(content)
        beside.replace(path)

    @contextmanager
    def open_for_writing(self) -> Generator[BinaryIO, None, None]:
        """A file to be written from begin to end."""
        with self._file_system() as (system, path):
            if self.here:
                system.create_dir(str(Path(path).parent), recursive=True)
            with system.open_output_stream(path) as file:
                yield file

    @contextmanager
    def open_for_reading(self) -> Generator[BinaryIO, None, None]:
        """A file to be read at any place; FileNotFoundError if there is none."""
        with self._file_system() as (system, path), system.open_input_file(path) as file:
            yield file

    def read(self) -> bytes:
        with self.open_for_reading() as file:
            return file.read()

    def size(self) -> int:
        """The bytes of this file; FileNotFoundError if there is none."""
        with self.open_for_reading() as file:
            return file.seek(0, os.SEEK_END)

    def files(self) -> dict[str, int]:
        """The sizes in bytes of all files in this folder and those below, by path from here; empty if there is none."""
        if self.here and not Path(self.path).is_dir():
            return {}
        with self._file_system() as (system, path):
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
            if not found:
                self._look_for_bucket()
        begin = len(path) + 1
        return {entry.path[begin:]: entry.size for entry in sorted(found, key=_path) if entry.is_file}

    def delete(self) -> None:
        """Remove this file; nothing happens if there is none."""
        with suppress(FileNotFoundError), self._file_system() as (system, path):
            system.delete_file(path)

    def delete_folder(self) -> None:
        """Remove all files in this folder and below, and the folders of a store that has folders."""
        _several(lambda name: (self / name).delete(), self.files())
        system, path = self._at()
        with suppress(OSError):  # an object store may have none
            system.delete_dir(path)

    # for what knows no other paths than those of this machine

    @contextmanager
    def output_folder(self) -> Generator[Path, None, None]:
        """A folder whose files are here in the end, however the block ends: this one, or one of this machine."""
        if self.here:
            yield Path(self.path)
            return
        with tempfile.TemporaryDirectory(prefix="insync-") as folder:
            output = Path(folder)
            try:
                yield output
            finally:
                names = [str(file.relative_to(output)) for file in output.rglob("*") if file.is_file()]
                _several(lambda name: (self / name).put((output / name).read_bytes()), names)

    @contextmanager
    def fetched(self) -> Generator[Path, None, None]:
        """A folder with the files that are here: this one, or one of this machine for as long as the block takes."""
        if self.here:
            yield Path(self.path)
            return

        def fetch(name: str) -> None:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes((self / name).read())

        with tempfile.TemporaryDirectory(prefix="insync-") as folder:
            _several(fetch, self.files())
            yield Path(folder)


def _several(work: Callable[[str], object], names: Iterable[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as beside:
        list(beside.map(work, names))


def refusal(problem: OSError) -> str:
    """Why a store refused: in plain words where its library's are none, otherwise its first line."""
    said = first_line(problem)
    return next((plain for word, plain in REFUSALS.items() if word in said), said)


def _path(entry: _Entry) -> str:
    return entry.path
