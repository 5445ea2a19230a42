"""Where a verb reads and writes: a path of this machine, or a place in a store, such as s3://bucket/prefix.

A store needs pyarrow; a path needs nothing. Every mistake becomes one sentence.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TextIO, cast
from urllib.parse import unquote, urlsplit

import attrs

from insync_cli import terminal
from insync_cli.exits import UsageError
from isr_check.engine import Unavailable

if TYPE_CHECKING:
    from isr_pipeline.locations import Location

AHEAD = 8 << 20
"""Bytes that are read at a time from a store."""
PROBE = ".insync-can-write"


def place(word: str) -> Path | Location:
    """What a word of the command line names; UsageError where it is no store, or one that needs what is not there."""
    if "://" not in word:
        return Path(word)
    at = urlsplit(word)
    if at.scheme == "file":
        return Path(unquote(at.path))
    if find_spec("pyarrow") is None:
        raise UsageError(f"{at.scheme}:// needs pyarrow, which is not installed: pip install 'insync[spark]'")
    from isr_pipeline.locations import Location

    try:
        return Location.of(word)
    except Unavailable as problem:
        raise UsageError(str(problem)) from None


def make_folder(location: Path | Location, option: str = "--out") -> Path | Location:
    """The folder, known to be writable, and made if it has to be; UsageError otherwise."""
    if isinstance(location, Path):
        return terminal.make_folder(location, option)
    try:
        (location / PROBE).put(b"")
        (location / PROBE).delete()
    except OSError as problem:
        raise UsageError(f"cannot write to {problem}; choose another with {option}") from None
    return location


@contextmanager
def local_folder(location: Path | Location) -> Generator[Path]:
    """A folder of this machine whose files are in the given one in the end."""
    if isinstance(location, Path):
        yield location
        return
    try:
        with location.output_folder() as folder:
            yield folder
    except OSError as problem:
        raise UsageError(f"cannot write to {problem}") from None


@contextmanager
def text_of(location: Path | Location) -> Generator[TextIO]:
    """A file as text in UTF-8; OSError where it cannot be read."""
    if isinstance(location, Path):
        with location.open(encoding="utf-8") as file:
            yield file
        return
    with location.open_for_reading() as stream:
        yield io.TextIOWrapper(io.BufferedReader(cast("io.RawIOBase", stream), AHEAD), encoding="utf-8")


def files_of(location: Path | Location, ending: str) -> list[Path | Location]:
    """The files in a folder whose names end so, by name; of what is no folder, itself."""
    if isinstance(location, Path):
        return [*sorted(location.glob(f"*{ending}"))] if location.is_dir() else [location]
    inside = location.files()
    return [location / name for name in inside if name.endswith(ending) and "/" not in name] if inside else [location]


def bytes_of(location: Path | Location) -> bytes:
    return location.read_bytes() if isinstance(location, Path) else location.read()


def size(location: Path | Location) -> int:
    """The bytes of a file."""
    return location.stat().st_size if isinstance(location, Path) else location.size()


def suffix(location: Path | Location) -> str:
    """What the name ends with: `.jsonl`."""
    return PurePosixPath(location.name).suffix


def with_suffix(location: Path | Location, ending: str) -> Path | Location:
    """The file of the same name with another ending."""
    if isinstance(location, Path):
        return location.with_suffix(ending)
    return attrs.evolve(location, path=str(PurePosixPath(location.path).with_suffix(ending)))


def write_json(location: Path | Location, value: object) -> None:
    """UsageError where it cannot be written."""
    if isinstance(location, Path):
        terminal.write_json(str(location), value)
        return
    try:
        location.put(terminal.json_text(value).encode())
    except OSError as problem:
        raise UsageError(f"cannot write {problem}") from None
