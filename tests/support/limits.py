"""What a run is given that is not to have all of this machine: a small disk, and little memory. Only root can."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

MEMORY = Path("/sys/fs/cgroup/memory")
"""Where control groups of version 1 limit memory."""


@contextmanager
def small_disk(folder: Path, size: int) -> Generator[None, None, None]:
    """Make the folder a file system of its own of so many bytes, which are in a file beside it. Skips without root."""
    made = shutil.which("mkfs.ext4") or shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if os.geteuid() != 0 or made is None:
        pytest.skip("only root can mount a small disk (mkfs.ext4, mount)")
    folder.mkdir(exist_ok=True)
    image = folder.with_name(f"{folder.name}.img")
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run([made, "-q", "-F", "-m", "0", "-O", "^has_journal", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts no file as a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        image.unlink()


@attrs.frozen
class MemoryGroup:
    """Processes that are given so much memory together, what the system keeps of their files included."""

    folder: Path

    def add(self, process: int) -> None:
        """A process, and those that it will start."""
        (self.folder / "cgroup.procs").write_text(str(process))

    def number(self, name: str) -> int:
        """What the group says of itself, by the name of the file: `memory.failcnt` and others."""
        return int((self.folder / name).read_text())

    def anonymous(self) -> int:
        """Bytes that are no file's."""
        lines = (self.folder / "memory.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("rss "))


@contextmanager
def memory_group(name: str, limit: int) -> Generator[MemoryGroup, None, None]:
    """A group that may have so many bytes. Skips where the system has no such groups of version 1, or not for us."""
    folder = MEMORY / name
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        pytest.skip(f"{MEMORY} gives this user no group of processes")
    try:
        yield MemoryGroup(folder)
    finally:
        for _ in range(100):
            with suppress(OSError):  # until the last of its processes has ended
                folder.rmdir()
                break
            time.sleep(0.1)
