"""States in files: for checkpoints, and for states that do not fit into memory.

An archive only grows, by whole files (*segments*), each known by its hash. So a checkpoint is a small file that names
segments. It is written beside the old one and then takes its name. A segment that was being written when the process
died is not named by any checkpoint, so it does no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import attrs
import numpy as np
from numpy.typing import NDArray

from isr_check.engine import BadCheckpoint

SCHEMA = "insync/checkpoint/1"
NAME = "checkpoint.json"
PIECE = 1 << 24
"""Bytes written, read or hashed at a time."""

Words = NDArray[np.uint64]
Json = dict[str, object]


@attrs.frozen
class Segment:
    file: str
    count: int
    sha256: str


class Archive:
    """States by position, 0 first, in the files of one folder."""

    def __init__(self, folder: Path, words: int, segments: Iterable[Segment] = ()) -> None:
        self.folder, self.words = folder, words
        self.segments: list[Segment] = []
        self.size = 0
        self._serial = 0
        self._dropped_segments: list[Segment] = []
        self._begins: list[int] = []
        self._files: list[int] = []
        for segment in segments:
            self._open(segment)

    def _open(self, segment: Segment) -> None:
        self._files.append(os.open(self.folder / segment.file, os.O_RDONLY))
        self._begins.append(self.size)
        self.segments.append(segment)
        self.size += segment.count
        self._serial = max(self._serial, 1 + int(segment.file.removeprefix("states-").removesuffix(".bin")))

    def drop(self, segments: int) -> None:
        """Forget all but the first so many segments; the others' files stay until `save` has named the rest."""
        while len(self.segments) > segments:
            os.close(self._files.pop())
            self._begins.pop()
            self._dropped_segments.append(self.segments.pop())
            self.size -= self._dropped_segments[-1].count

    def append(self, blocks: Iterable[Words]) -> None:
        """Write the rows of the blocks to one more segment; no segment if there are none."""
        name = f"states-{self._serial:06d}.bin"
        digest, count = hashlib.sha256(), 0
        with open(self.folder / name, "wb") as file:
            for block in blocks:
                for start in range(0, len(block), PIECE // (8 * self.words)):
                    piece = block[start : start + PIECE // (8 * self.words)]
                    data = np.ascontiguousarray(piece).reshape(-1).data.cast("B")
                    digest.update(data)
                    file.write(data)
                count += len(block)
            file.flush()
            os.fsync(file.fileno())
        if count:
            self._open(Segment(name, count, digest.hexdigest()))
        else:
            (self.folder / name).unlink()

    def read(self, start: int, into: Words) -> None:
        """Read as many states as `into` has rows, from position `start` on."""
        rows_read, row = 0, 8 * self.words
        while rows_read < len(into):
            i = bisect_right(self._begins, start + rows_read) - 1
            inside = start + rows_read - self._begins[i]
            count = min(len(into) - rows_read, self.segments[i].count - inside)
            data = into[rows_read : rows_read + count].reshape(-1).data.cast("B")
            offset = 0
            while offset < len(data):
                got = os.preadv(self._files[i], [data[offset : offset + PIECE]], inside * row + offset)
                if got == 0:
                    raise BadCheckpoint(f"{self.folder / self.segments[i].file} is shorter than it was")
                offset += got
            rows_read += count

    def verify(self) -> None:
        """Compare every file with its hash; BadCheckpoint if one differs."""
        for segment, file in zip(self.segments, self._files, strict=True):
            digest, left, offset = hashlib.sha256(), segment.count * self.words * 8, 0
            while left and (data := os.pread(file, min(left, PIECE), offset)):
                digest.update(data)
                offset, left = offset + len(data), left - len(data)
            if digest.hexdigest() != segment.sha256:
                raise BadCheckpoint(f"{self.folder / segment.file} was changed or damaged after it was written")

    def sweep(self) -> None:
        """Remove the files of what was dropped."""
        for segment in self._dropped_segments:
            (self.folder / segment.file).unlink()
        self._dropped_segments = []

    def close(self) -> None:
        for file in self._files:
            os.close(file)
        self._files = []


def fresh(folder: Path, words: int) -> Archive:
    """Make an empty archive; an earlier one in the folder is removed."""
    discard(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Archive(folder, words)


def discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def save(archive: Archive, content: Json) -> None:
    """Write a checkpoint: the names of the archive's segments, and `content`, all else that a resume needs."""
    body = {**content, "schema": SCHEMA, "segments": [attrs.astuple(s) for s in archive.segments]}
    text = json.dumps(body, sort_keys=True)
    part = archive.folder / f"{NAME}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"sha256": _hash(text), "checkpoint": text}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(archive.folder / NAME)
    directory = os.open(archive.folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    archive.sweep()


def read_checkpoint(folder: Path) -> Json:
    """The content of the checkpoint in a folder; BadCheckpoint if it is missing, damaged or of another version."""
    file = folder / NAME
    try:
        outer = cast("Json", json.loads(file.read_text(encoding="utf-8")))
        text = cast("str", outer["checkpoint"])
        if outer["sha256"] != _hash(text):
            raise BadCheckpoint(f"{file} was changed or damaged after it was written")
        content = cast("Json", json.loads(text))
    except FileNotFoundError:
        raise BadCheckpoint(f"there is no checkpoint in {folder}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        if isinstance(problem, BadCheckpoint):
            raise
        raise BadCheckpoint(f"{file} is not a checkpoint") from None
    if content.get("schema") != SCHEMA:
        raise BadCheckpoint(f"{file} was written by another version")
    return content


def reopen(folder: Path, words: int, content: Json) -> Archive:
    """The archive of a checkpoint; segments that it does not name are removed. BadCheckpoint if one is damaged."""
    segments = [Segment(*entry) for entry in cast("list[tuple[str, int, str]]", content["segments"])]
    kept = {s.file for s in segments}
    for file in folder.glob("states-*.bin"):
        if file.name not in kept:
            file.unlink()
    try:
        archive = Archive(folder, words, segments)
    except OSError as problem:
        raise BadCheckpoint(f"{problem.filename} is missing") from None
    archive.verify()
    return archive


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
