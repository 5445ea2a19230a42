"""What tasks spend processor time on: it tells whether kernels, files, or everything around them are worth a look."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from isr_check.native.memory import Numbers

ON = ("expand", "deal", "absorb", "check", "files", "task")
"""Kernels by what they do, reading and writing files, and all of a task together, handing over its rows included."""


class Spent:
    """Nanoseconds by what they were spent on, since this was made."""

    def __init__(self) -> None:
        self._begun = time.process_time_ns()
        self.on: dict[str, int] = {on: 0 for on in ON}

    @contextmanager
    def spending(self, on: str) -> Generator[None, None, None]:
        start = time.process_time_ns()
        try:
            yield
        finally:
            self.on[on] += time.process_time_ns() - start

    def numbers(self) -> list[int]:
        self.on["task"] = time.process_time_ns() - self._begun
        return list(self.on.values())


def seconds(reports: list[Numbers]) -> dict[str, float]:
    """Of all reports together."""
    total = np.array(reports, dtype=np.int64).reshape(-1, len(ON)).sum(axis=0)
    return {on: round(int(ns) / 1e9, 6) for on, ns in zip(ON, total, strict=True)}
