"""Memory of the native engine's workers.

Without this, two threads could write to one cache line. Answers would stay right, and every worker would be slower.
"""

from __future__ import annotations

import attrs

from isr_check.native.memory import LINE, Worker, address, apart


@attrs.frozen
class Sizes:
    words: int = 3
    cells: int = 50
    most: int = 100
    guards: int = 7


def lines(worker: Worker) -> set[int]:
    """The cache lines that a worker's counters and its job are in."""
    arrays = (worker.refused, worker.taken, worker.report, worker.job)
    return {at // (8 * LINE) for a in arrays for at in range(address(a), address(a) + a.nbytes)}


def test_arrays_that_stand_together_are_zero_and_apart() -> None:
    counts = [1, LINE, LINE + 1, 3]
    arrays = apart(counts)
    assert [len(a) for a in arrays] == counts
    for value, array in enumerate(arrays, 1):
        assert not array.any()
        array[:] = value
    assert [set(a.tolist()) for a in arrays] == [{1}, {2}, {3}, {4}]
    assert all(address(a) % (8 * LINE) == 0 for a in arrays)


def test_no_two_workers_write_to_one_cache_line() -> None:
    workers = [Worker(Sizes(), 22, (0, 0)) for _ in range(3)]
    seen = [lines(w) for w in workers]
    assert len(set[int]().union(*seen)) == sum(len(s) for s in seen)
