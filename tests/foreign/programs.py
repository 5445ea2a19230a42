"""What suites need of this machine: programs, a folder for what is fetched, and an end for what hangs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from isr_kafka.programs import cache_folder


class Missing(Exception):
    """A suite cannot be run here; the message is one sentence that says what is missing."""


def foreign_folder(suite: str) -> Path:
    """Where a suite's sources, programs and logs are: outside of the repository, in INSYNC_CACHE if that is set."""
    folder = cache_folder("foreign") / suite
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def program(name: str, what_for: str, package: str) -> str:
    """Where a program is; Missing says which Debian package has it."""
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name}, which {what_for}, is missing (Debian: apt-get install {package})")
    return found


@attrs.frozen
class Ran:
    """A process that has ended: its exit code, None if it had to be killed, and what it said."""

    code: int | None
    said: str

    @property
    def last(self) -> str:
        """The last line that says something."""
        return next((line.strip() for line in reversed(self.said.splitlines()) if line.strip()), "")


def run(
    command: Sequence[str],
    seconds: float,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    line: Callable[[str], None] | None = None,
) -> Ran:
    """Run a command, kill it and all that it started after so many seconds, and give what it printed.

    `line` is told each line as it comes. `environment` is added to that of this process.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    said, late = list[str](), threading.Event()

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def too_late() -> None:
        late.set()
        kill()

    timer = threading.Timer(seconds, too_late)
    timer.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as given:
            given.write(stdin)
        for each in process.stdout:
            said.append(each)
            if line is not None:
                line(each)
        code = process.wait()
    finally:
        timer.cancel()
        kill()
    return Ran(None if late.is_set() else code, "".join(said))
