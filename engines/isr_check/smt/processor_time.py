"""z3, asked for so many seconds of processor time.

Its own limit is by the clock, so a busy machine would give up where a quiet one proves.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Protocol

SHORTEST = 0.01
"""Seconds between two looks at the processor time; a process that others keep waiting is looked at more often."""


class Solver(Protocol):
    """What is used of a solver of z3."""

    def check(self, *assumptions: object) -> object: ...
    def interrupt(self) -> None: ...


def check(solver: Solver, seconds: float, assumptions: Sequence[object] = ()) -> str:
    """What a solver says of its assertions: 'unsat', 'sat', or 'unknown' after so much of this process's time."""
    end, has_answer = time.process_time() + seconds, threading.Event()

    def interrupt() -> None:
        while not has_answer.wait(max(SHORTEST, end - time.process_time())):
            if time.process_time() >= end:
                solver.interrupt()

    watch = threading.Thread(target=interrupt, name="insync-solver-limit", daemon=True)
    watch.start()
    try:
        return str(solver.check(*assumptions))
    finally:
        has_answer.set()
        watch.join()
