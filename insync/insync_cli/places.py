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


def make_folder(given: Path | Location, option: str = "--out") -> Path | Location:
    """The folder, known to be writable, and made if it has to be; UsageError otherwise."""
    if isinstance(given, Path):
        return terminal.make_folder(given, option)
    try:
        (given / PROBE).put(b"")
        (given / PROBE).delete()
    except OSError as problem:
        raise UsageError(f"cannot write to {problem}; choose another with {option}") from None
    return given


@contextmanager
def filled(given: Path | Location) -> Generator[Path]:
    """A folder of this machine whose files are in the given one in the end."""
    if isinstance(given, Path):
        yield given
        return
    try:
        with given.filled() as folder:
            yield folder
    except OSError as problem:
        raise UsageError(f"cannot write to {problem}") from None


@contextmanager
def text_of(given: Path | Location) -> Generator[TextIO]:
    """A file as text in UTF-8; OSError where it cannot be read."""
    if isinstance(given, Path):
        with given.open(encoding="utf-8") as file:
            yield file
        return
    with given.opened() as stream:
        yield io.TextIOWrapper(io.BufferedReader(cast("io.RawIOBase", stream), AHEAD), encoding="utf-8")


def files_of(given: Path | Location, ending: str) -> list[Path | Location]:
    """The files in a folder whose names end so, by name; of what is no folder, itself."""
    if isinstance(given, Path):
        return [*sorted(given.glob(f"*{ending}"))] if given.is_dir() else [given]
    inside = given.files()
    return [given / name for name in inside if name.endswith(ending) and "/" not in name] if inside else [given]


def bytes_of(given: Path | Location) -> bytes:
    return given.read_bytes() if isinstance(given, Path) else given.read()


def size(given: Path | Location) -> int:
    """The bytes of a file."""
    return given.stat().st_size if isinstance(given, Path) else given.size()


def suffix(given: Path | Location) -> str:
    """What the name ends with: `.jsonl`."""
    return PurePosixPath(given.name).suffix


def with_suffix(given: Path | Location, ending: str) -> Path | Location:
    """The file of the same name with another ending."""
    if isinstance(given, Path):
        return given.with_suffix(ending)
    return attrs.evolve(given, path=str(PurePosixPath(given.path).with_suffix(ending)))


def write_json(given: Path | Location, value: object) -> None:
    """UsageError where it cannot be written."""
    if isinstance(given, Path):
        terminal.write_json(str(given), value)
        return
    try:
        given.put(terminal.json_text(value).encode())
    except OSError as problem:
        raise UsageError(f"cannot write {problem}") from None
