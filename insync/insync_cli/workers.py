"""Processes that share the work of a verb, and that do not outlive it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from types import FrameType

LOOKS_EVERY = 0.2
"""Seconds between two looks of a worker at whether its parent is still there."""


@contextmanager
def forks(workers: int) -> Generator[ProcessPoolExecutor]:
    """So many forks of this process, which have what it has in memory.

    They end with it, however it ends: they are killed when an exception (a Ctrl-C) leaves the block, and each ends by
    itself when it has another parent, so that a KILL of this process leaves none behind. Ctrl-C and HUP, which a
    terminal sends to all of them, are for this process to act on.
    """
    pool = ProcessPoolExecutor(workers, get_context("fork"), initializer=_follow, initargs=(os.getpid(),))
    try:
        with deferred_signals():
            pool.submit(_nothing)  # whereupon it makes all of its processes
        yield pool
    except BaseException:
        for child in active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def deferred_signals() -> Generator[None]:
    """Signals wait until the block is over: Python drops an exception that a handler raises in the middle of a fork."""
    came: list[int] = []

    def wait(number: int, _: FrameType | None) -> None:
        came.append(number)

    try:
        before = {n: signal.signal(n, wait) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    except ValueError:  # only the main thread may listen for signals
        before = {}
    try:
        yield
    finally:
        for awaited, handler in before.items():
            signal.signal(awaited, handler if handler is not None else signal.SIG_DFL)
    for number in came[:1]:
        signal.raise_signal(number)


def _nothing() -> None:
    """The first task of a pool."""


def _follow(parent: int) -> None:
    """In a worker: end when the parent does, and leave signals from the terminal to it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOKS_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
