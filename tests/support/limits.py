"""What a run is given that is not to have all of this machine: a small disk, and little memory. Only root can."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

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
