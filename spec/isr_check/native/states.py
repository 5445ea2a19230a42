"""Some of the reachable states themselves, for whoever looks for what they have in common."""

from __future__ import annotations

from isr_check.engine import TYPE_OK, Limits
from isr_check.native.layout import SLACKS
from isr_check.native.search import Means, Overflow, Search
from isr_check.reference import State
from isr_lang import Instance


def states(instance: Instance, limits: Limits, few: int) -> list[State]:
    """Of the states that an exploration within the limits reaches, at most `few`, spread over all of its levels."""
    for slack in SLACKS:
        search = Search(instance, (TYPE_OK,), slack, Means(workers=1), None)
        search.limits = limits
        try:
            search.run()
            return _chosen(search, few)
        except Overflow:
            continue
        finally:
            search.space.close(keep=False)
    raise AssertionError("with the last slack an exploration ends")


def _chosen(search: Search, few: int) -> list[State]:
    every = max(1, -(-search.distinct // few))
    found: list[State] = []
    position = 0
    for level in search.levels:
        for start, end in level:
            rows = search.space.rows(search.workers[0], (start, end))
            for i in range(-position % every, end - start, every):
                found.append(search.layout.unpack(tuple(int(w) for w in rows[i])))
            position += end - start
    return found
