"""Sharing work among threads. Kernels run outside Python's lock, so threads are enough.

What is shared is a queue of spans of states; every worker takes one after the other. Which worker gets which
span is chance, so nothing that is reported may depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from isr_check.native.memory import Worker

Span = tuple[int, int]
Work = Callable[[Worker, Span], Span | None]
"""Do a span, or part of it: what is left is put back, and the worker rests until everybody does."""


def spans(ranges: Iterable[Span], length: int) -> deque[Span]:
    return deque((s, min(s + length, end)) for start, end in ranges for s in range(start, end, length))


class Team:
    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(len(workers)) if len(workers) > 1 else None

    def share(self, todo: deque[Span], work: Work) -> None:
        """Until nothing is left to do, or all workers rest. The first worker is the calling thread."""
        helpers = self.workers[1 : len(todo)] if self._pool else []
        assert self._pool is not None or not helpers
        going = [self._pool.submit(_take_turns, w, todo, work) for w in helpers] if self._pool else []
        try:
            _take_turns(self.workers[0], todo, work)
        finally:
            for helper in going:
                helper.result()

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()


def _take_turns(worker: Worker, todo: deque[Span], work: Work) -> None:
    while True:
        try:
            span = todo.popleft()
        except IndexError:
            return
        rest = work(worker, span)
        if rest is not None:
            todo.appendleft(rest)
            return
