"""At the end of every test whose brokers are processes: no broker has a request without an answer, or a stray task.

Whoever ends a cluster of ours (`Processes.kill_all`, `stop_all`) has each broker say what it holds first.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable
from typing import Final, TypeVar

from isr_cluster.processes import Process, Processes

T = TypeVar("T")

SETTLES_WITHIN: Final = 40.0
"""Seconds. A consumer's fetch may be parked for as long as it asked for; what is left after that was forgotten."""

_HOLDS: Final = re.compile(r"holds (?P<requests>\d+) requests, \d+ connections, (?P<tasks>\d+) tasks more")


def held(process: Process) -> str:
    """What a broker says that it still holds; empty if it holds nothing, or is not there to be asked."""
    process.last.clear()
    process.process.send_signal(signal.SIGUSR1)
    end = time.monotonic() + 5
    while time.monotonic() < end and process.exit_code is None:
        for line in list(process.last):
            found = _HOLDS.search(line)
            if found is not None:
                return "" if found["requests"] == found["tasks"] == "0" else line
        time.sleep(0.01)
    return ""


def leaks(processes: Processes, seconds: float = SETTLES_WITHIN) -> list[str]:
    """What brokers that run still hold once they have had time."""
    end = time.monotonic() + seconds
    while True:
        running = [p for node, p in processes.running.items() if node in processes.ports and p.exit_code is None]
        found = [line for line in map(held, running) if line]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def _checked(ends: Callable[[Processes], T]) -> Callable[[Processes], T]:
    def checked(self: Processes) -> T:
        # A test that has failed already may leave anything behind.
        found = [] if sys.exc_info()[0] is not None else leaks(self)
        said = ends(self)
        assert not found, f"a broker still holds something for clients that are gone: {found}"
        return said

    return checked


def install() -> None:
    """Once in each process of tests."""
    Processes.kill_all = _checked(Processes.kill_all)  # type: ignore[assignment, method-assign]
    Processes.stop_all = _checked(Processes.stop_all)  # type: ignore[assignment, method-assign]
