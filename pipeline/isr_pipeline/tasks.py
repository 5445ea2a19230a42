"""What is done in tasks: expand the states of a bucket, and own what others found for it. Arrow batches in, and out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import attrs
import numpy as np

from isr_check.native.actions import FOUND as DECIDED
from isr_check.native.actions import OVERFLOW
from isr_check.native.kernels import BATCH, Job
from isr_check.native.memory import FULLEST, Numbers, Table, Words, address
from isr_pipeline.kit import Hand, Kit
from isr_pipeline.owned import Owned
from isr_pipeline.rows import EXPANDED, FOUND, SPENT, STATES, Batches, as_numbers, as_states, numbers, rows, states

SLOTS = 1 << 20
"""Of the table by which a task finds its own duplicates before it sends them."""


@attrs.frozen
class Expand:
    """The successors of the states of one level; `wanted`: the checks of steps to make."""

    kit: Kit
    level: int
    wanted: int

    def __call__(self, bucket: int) -> Batches:
        hand = Hand(self.kit)
        worker, words = hand.worker, self.kit.words
        size = SLOTS
        while size * FULLEST < 4 * (self.kit.most + BATCH):
            size *= 2
        room = int(size * FULLEST)
        table, found = Table(size), np.empty((room + 2, words), dtype=np.uint64)
        places = [(Job.STATES, address(found)), (Job.TABLE, address(table.entries)), (Job.MASK, size - 1)]
        worker.set(places)
        worker.next, worker.limit = 1, room
        for block in hand.read(self.level, bucket):
            start = 0
            while start < len(block):
                hand.source(block)
                with hand.spent.spending("expand"):
                    stopped = hand.run("expand", start, len(block), self.wanted)
                worker.expanded += stopped - start
                start = stopped
                if start < len(block):
                    yield from send(hand, found, worker.next)
                    table.clear()
                    worker.next = 1
        yield from send(hand, found, worker.next)
        report = (worker.expanded, worker.report[DECIDED], worker.report[OVERFLOW], hand.sent)
        yield numbers(bucket, EXPANDED, (*map(int, report), *worker.taken.tolist(), *worker.refused.tolist()))
        yield numbers(bucket, SPENT, hand.spent.numbers())


def send(hand: Hand, found: Words, end: int) -> Batches:
    """The states from 1 on, for the buckets that own them."""
    if end > 1:
        hand.sent += end - 1
        yield states(*hand.dealt(found, 1, end))


@attrs.frozen
class Own:
    """The states of a level that are new: `before` says how many each bucket has; `wanted`: checks of states."""

    kit: Kit
    level: int
    wanted: int
    before: Mapping[int, int]

    def __call__(self, batches: Batches) -> Batches:
        with ExitStack() as closing:
            sets: dict[int, Owned] = {}
            for batch in batches:
                for bucket, kind, payload in rows(batch):
                    if kind != STATES:
                        yield numbers(bucket, kind, as_numbers(payload).tolist())
                        continue
                    if bucket not in sets:
                        owned = Owned(self.kit, Hand(self.kit), bucket, self.level, self.before.get(bucket, 0))
                        sets[bucket] = closing.enter_context(owned)
                    sets[bucket].absorb(as_states(payload, self.kit.words))
            for bucket, owned in sets.items():
                owned.keep()
                yield numbers(bucket, FOUND, (owned.new, owned.checked(self.wanted), owned.orbits()))
                yield numbers(bucket, SPENT, owned.hand.spent.numbers())


@attrs.frozen
class Expanded:
    """What EXPANDED rows say together; `sent`: how many states went to owners."""

    states: int
    decided: int
    overflow: bool
    sent: int
    taken: tuple[int, ...]
    refused: tuple[int, ...]


def expanded(kit: Kit, reports: list[Numbers]) -> Expanded:
    table = np.array(reports, dtype=np.int64).reshape(-1, 4 + max(1, kit.actions) + max(1, kit.guards))
    total = table.sum(axis=0).tolist()
    decided = int(np.bitwise_or.reduce(table[:, 1])) if len(table) else 0
    taken, refused = total[4 : 4 + kit.actions], total[4 + max(1, kit.actions) :]
    return Expanded(total[0], decided, bool(total[2]), total[3], tuple(taken), tuple(refused))
