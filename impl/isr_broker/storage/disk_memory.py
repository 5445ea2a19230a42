"""A disk in memory that treats its users as badly as a real one may.

Each file has a durable image and the operations on it since the last flush, in order; so have the names. A crash keeps,
of each, some first part (`Survival` chooses which), possibly half of a write, possibly with zeros where data was to
come. Before each operation a hook may make it fail, or look at the disk as it is at that moment.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import attrs

from isr_broker.storage.disk import ROOT, T, folder_of

Operation: TypeAlias = bytes | int
"""An append, or a truncation to a size."""


def _after(image: bytes, operations: list[Operation]) -> bytes:
    out = bytearray(image)
    for operation in operations:
        if isinstance(operation, int):
            del out[operation:]
        else:
            out += operation
    return bytes(out)


@attrs.define
class Image:
    """The contents of one file: what is durable, what was done since, and what its users see."""

    durable: bytes = b""
    pending: list[Operation] = attrs.field(factory=list[Operation])
    visible_bytes: bytearray = attrs.field(factory=bytearray)

    def do(self, operation: Operation) -> None:
        """Append or truncate."""
        self.pending.append(operation)
        if isinstance(operation, int):
            del self.visible_bytes[operation:]
        else:
            self.visible_bytes += operation

    def settle(self, contents: bytes) -> None:
        """From here on this is durable and seen, and nothing is pending."""
        self.durable, self.pending, self.visible_bytes = contents, [], bytearray(contents)

    def copy(self) -> Image:
        """The same, to go its own way."""
        return Image(self.durable, list(self.pending), bytearray(self.visible_bytes))


Names: TypeAlias = dict[str, Image | None]
"""Paths to files; None is a folder."""


class Survival(Protocol):
    """What of the unflushed survives a crash."""

    def names(self, pending: int) -> int:
        """How many of the pending changes of names took place."""
        ...

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """How many of a file's pending bytes were written, and how many zeros come after them."""
        ...


@attrs.frozen
class Everything:
    """The process died, the machine did not: all that was written is there (broker_crashes)."""

    def names(self, pending: int) -> int:
        """All."""
        return pending

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """All."""
        return pending, 0


@attrs.frozen
class Nothing:
    """The power failed, and nothing was written that was not flushed (broker_loses_power)."""

    def names(self, pending: int) -> int:
        """None."""
        return 0

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """None."""
        return 0, 0


@attrs.frozen
class Fault:
    """An operation fails with this error, or the process dies of it; an append after it wrote that many bytes."""

    error: BaseException
    bytes_written: int = 0


Hook: TypeAlias = "Callable[[MemoryDisk, str, str], Fault | None]"
"""Called with the disk, the name of the operation and the path, before anything is done."""


@attrs.define
class MemoryDisk:
    """A data directory in memory.

    - `operations` counts what was written, flushed or renamed.
    - `room`: how many bytes can still be appended until some are given back; None for any number (ENOSPC).
    - `reads`: what a read of a file gives in place of what is there, or raises; of the bytes that were flushed, too.
    """

    names_now: Names = attrs.field(factory=lambda: Names({ROOT: None}))
    names_durable: Names = attrs.field(factory=lambda: Names({ROOT: None}))
    renames: list[tuple[str, Names]] = attrs.field(factory=list[tuple[str, Names]])
    hook: Hook | None = None
    operations: int = 0
    room: int | None = None
    reads: Callable[[str, bytes], bytes] | None = None

    def _before(self, operation: str, path: str) -> Fault | None:
        self.operations += 1
        return self.hook(self, operation, path) if self.hook is not None else None

    def _fails(self, operation: str, path: str) -> None:
        fault = self._before(operation, path)
        if fault is not None:
            raise fault.error

    def _change_names(self, path: str, names: Names) -> None:
        self.names_now = names
        self.renames.append((folder_of(path), names))

    # Disk

    def open(self, path: str) -> MemoryFile:
        """Open a file, empty if there was none."""
        if path not in self.names_now:
            self._fails("create", path)
            if folder_of(path) not in self.names_now:
                raise FileNotFoundError(path)
            self._change_names(path, {**self.names_now, path: Image()})
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return path in self.names_now

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return path in self.names_now and self.names_now[path] is None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        if self.exists(folder) and not self.is_folder(folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", folder)
        return sorted(p.rpartition("/")[2] for p in self.names_now if p != ROOT and folder_of(p) == folder)

    def make_folder(self, path: str) -> None:
        """Make a folder, if there is none."""
        if path not in self.names_now:
            self._fails("make_folder", path)
            self._change_names(path, {**self.names_now, path: None})

    def rename(self, old: str, new: str) -> None:
        """Give a file or a folder another name; a folder's is durable at once, with all that is in it."""
        self._fails("rename", old)
        if self.names_now[old] is None:
            self._rename_folder(old, new)
            return
        names = dict(self.names_now)
        names[new] = names.pop(old)
        self._change_names(new, names)

    def _rename_folder(self, old: str, new: str) -> None:
        def new_path(path: str) -> str:
            return new + path.removeprefix(old) if path == old or path.startswith(f"{old}/") else path

        self.names_now = {new_path(path): image for path, image in self.names_now.items()}
        self.names_durable = {new_path(path): image for path, image in self.names_durable.items()}
        if old not in self.names_durable and new not in self.names_durable:
            self.names_durable[new] = None
        self.renames = [
            (new_path(folder), {new_path(path): image for path, image in names.items()})
            for folder, names in self.renames
        ]

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder, if there is one."""
        if path in self.names_now:
            self._fails("remove", path)
            self._change_names(path, {p: i for p, i in self.names_now.items() if p != path})

    def flush_folder(self, path: str) -> None:
        """Make durable which names are in a folder; changes elsewhere may still be lost."""
        self._fails("flush_folder", path)
        here = {p: i for p, i in self.names_now.items() if p != ROOT and folder_of(p) == path}
        there = {p: i for p, i in self.names_durable.items() if p == ROOT or folder_of(p) != path}
        self.names_durable = {**there, **here}
        self.renames = [(folder, names) for folder, names in self.renames if folder != path]

    def together(self, doings: Sequence[Callable[[], T]]) -> list[T]:
        """One after the other."""
        return [doing() for doing in doings]

    # What happens to it

    def image(self, path: str) -> Image:
        """The contents behind a name."""
        found = self.names_now[path]
        assert found is not None, f"{path} is a folder"
        return found

    def copy(self) -> MemoryDisk:
        """The same disk, to be crashed while this one goes on."""
        copies: dict[int, Image] = {}

        def images(names: Names) -> Names:
            return {p: None if i is None else copies.setdefault(id(i), i.copy()) for p, i in names.items()}

        return MemoryDisk(images(self.names_now), images(self.names_durable), [(f, images(n)) for f, n in self.renames])

    def lose(self, path: str) -> None:
        """A file is gone, durable as it was, and nobody removed it."""
        for names in (self.names_now, self.names_durable, *(names for _, names in self.renames)):
            names.pop(path, None)

    def put(self, path: str, contents: bytes) -> None:
        """A file is there with these contents, and durable, whatever was there before; its folder is there."""
        image = Image(contents, [], bytearray(contents))
        for names in (self.names_now, self.names_durable, *(names for _, names in self.renames)):
            names[path] = image

    def flip(self, path: str, bit: int) -> None:
        """One bit of a file is another one from now on, to whoever reads it and after every crash."""
        image, at, mask = self.image(path), bit // 8, 1 << bit % 8
        image.visible_bytes[at] ^= mask
        if image.durable[at : at + 1]:
            image.durable = image.durable[:at] + bytes([image.durable[at] ^ mask]) + image.durable[at + 1 :]

    def crash(self, survival: Survival) -> None:
        """Everything that was open is gone, and of what was not flushed only what survives is there."""
        rename_count = survival.names(len(self.renames))
        if rename_count == len(self.renames):
            names = self.names_now
        else:
            names = dict(self.names_durable)
            for folder, later in self.renames[:rename_count]:
                outside = {p: i for p, i in names.items() if p == ROOT or folder_of(p) != folder}
                names = {**outside, **{p: i for p, i in later.items() if p != ROOT and folder_of(p) == folder}}
            names = {p: i for p, i in names.items() if p == ROOT or folder_of(p) in names}
        for path, image in names.items():
            if image is not None:
                image.settle(_survivor(image, path, survival))
        self.names_now, self.names_durable, self.renames = names, dict(names), []
        self.hook = self.reads = None


def _survivor(image: Image, path: str, survival: Survival) -> bytes:
    """A file after a crash: its operations up to some byte, then zeros where more was to come."""
    pending = sum(len(o) for o in image.pending if not isinstance(o, int))
    if not image.pending:
        return image.durable
    remaining_bytes, zeros = survival.bytes(path, pending)
    if remaining_bytes >= pending:
        return bytes(image.visible_bytes)
    operations: list[Operation] = []
    for operation in image.pending:
        if isinstance(operation, int):
            operations.append(operation)
        elif remaining_bytes <= 0:
            break
        else:
            operations.append(operation[:remaining_bytes])
            remaining_bytes -= len(operation)
            if remaining_bytes < 0:
                break
    return _after(image.durable, operations) + bytes(zeros)


@attrs.frozen
class MemoryFile:
    """An open file of a MemoryDisk."""

    disk: MemoryDisk
    path: str

    @property
    def _image(self) -> Image:
        return self.disk.image(self.path)

    def append(self, data: bytes) -> None:
        """Write at the end."""
        fault = self.disk._before("append", self.path)  # pyright: ignore[reportPrivateUsage]  # same module
        if fault is not None:
            self._image.do(data[: fault.bytes_written])
            raise fault.error
        room = self.disk.room
        if room is not None:
            self.disk.room = max(0, room - len(data))
            if room < len(data):
                self._image.do(data[:room])
                raise OSError(errno.ENOSPC, "no space left on device")
        self._image.do(data)

    def read(self, position: int, size: int) -> bytes:
        """What is there, up to `size` bytes."""
        found = bytes(self._image.visible_bytes[position : position + size])
        return found if self.disk.reads is None else self.disk.reads(self.path, found)

    def size(self) -> int:
        """The number of bytes."""
        return len(self._image.visible_bytes)

    def truncate(self, size: int) -> None:
        """Cut at the size."""
        self.disk._fails("truncate", self.path)  # pyright: ignore[reportPrivateUsage]  # same module
        self._image.do(size)

    def flush(self) -> None:
        """Make the contents durable."""
        self.disk._fails("flush", self.path)  # pyright: ignore[reportPrivateUsage]  # same module
        image = self._image
        image.durable, image.pending = bytes(image.visible_bytes), []

    def close(self) -> None:
        """Nothing to give back."""
