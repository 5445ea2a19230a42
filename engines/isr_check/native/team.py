"""A team of threads that share work. Kernels run without Python's global lock, so processes are not needed.

The work is a queue of spans of states, and every worker takes one span after the other. Which worker gets which span is
chance, so nothing that is reported may depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from isr_check.native.buffers import Worker

Span = tuple[int, int]
Work = Callable[[Worker, Span], Span | None]
"""Do a span. A part that is returned is put back into the queue, and this worker takes nothing more from it."""


def spans(ranges: Iterable[Span], length: int) -> deque[Span]:
    return deque((s, min(s + length, end)) for start, end in ranges for s in range(start, end, length))


class Team:
    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(len(workers)) if len(workers) > 1 else None

    def share(self, todo: deque[Span], work: Work) -> None:
        """Work until the queue is empty or every worker has put something back. The first worker is this thread."""
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
