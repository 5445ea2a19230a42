"""The tasks of a level: expand the states of a bucket, and add the states that were found for a bucket to its set."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import attrs
import numpy as np

from isr_check.native.actions import DECISIONS, OVERFLOW
from isr_check.native.buffers import FULLEST, Numbers, Table, Words, address
from isr_check.native.kernels import BATCH, Job
from isr_pipeline.arrow_rows import (
    EXPANSION,
    FINDINGS,
    REMAKES,
    STATES,
    TIMES,
    Batches,
    as_numbers,
    as_states,
    numbers,
    rows,
    states,
)
from isr_pipeline.bucket_states import BucketStates
from isr_pipeline.task_kernels import KernelSpec, KernelWorker

SLOTS = 1 << 20
"""The size of the table with which a task drops duplicates among its own states before it sends them."""


@attrs.frozen
class ExpandStates:
    """A task: expand the states of a level in a bucket, and send the successors to the buckets that own them.

    `names` has the names of the level's files by bucket. `check_mask`: the mask of the checks of steps.
    """

    spec: KernelSpec
    level: int
    check_mask: int
    names: Mapping[int, int]

    def __call__(self, bucket: int) -> Batches:
        hand = KernelWorker(self.spec)
        worker, words = hand.worker, self.spec.words
        size = SLOTS
        while size * FULLEST < 4 * (self.spec.most + BATCH):
            size *= 2
        room = int(size * FULLEST)
        table, successors = Table(size), np.empty((room + 2, words), dtype=np.uint64)
        places = [(Job.STATES, address(successors)), (Job.TABLE, address(table.entries)), (Job.MASK, size - 1)]
        worker.set(places)
        worker.next, worker.limit = 1, room
        for block in hand.read(self.level, bucket, self.names[bucket]):
            start = 0
            while start < len(block):
                hand.source(block)
                with hand.time_spent.measure("expand"):
                    stopped = hand.run("expand", start, len(block), self.check_mask)
                worker.expansions += stopped - start
                start = stopped
                if start < len(block):
                    yield from send(hand, successors, worker.next)
                    table.clear()
                    worker.next = 1
        yield from send(hand, successors, worker.next)
        report = (worker.expansions, worker.report[DECISIONS], worker.report[OVERFLOW], hand.sent_count)
        yield numbers(
            bucket, EXPANSION, (*map(int, report), *worker.steps_by_action.tolist(), *worker.refusals.tolist())
        )
        yield numbers(bucket, TIMES, hand.time_spent.numbers())


def send(hand: KernelWorker, successors: Words, end: int) -> Batches:
    """Rows with the states from 1 to `end`, for the buckets that own them."""
    if end > 1:
        hand.sent_count += end - 1
        yield states(*hand.by_owner(successors, 1, end))


@attrs.frozen
class AddStates:
    """A task: add states to the sets of their buckets, and count and check those that are new.

    `before`: how many states each bucket has had. `check_mask`: the mask of the checks of states. `spare`: bytes of
    each local disk that sets leave to what Spark will write there for the next level.
    """

    spec: KernelSpec
    level: int
    check_mask: int
    before: Mapping[int, int]
    spare: int = 0

    def __call__(self, batches: Batches) -> Batches:
        with ExitStack() as closing:
            sets: dict[int, BucketStates] = {}
            for batch in batches:
                for bucket, kind, payload in rows(batch):
                    if kind != STATES:
                        yield numbers(bucket, kind, as_numbers(payload).tolist())
                        continue
                    if bucket not in sets:
                        sets[bucket] = closing.enter_context(self._set(bucket))
                    sets[bucket].absorb(as_states(payload, self.spec.words))
            for bucket, bucket_set in sets.items():
                bucket_set.keep()
                bucket_row = (
                    bucket_set.new,
                    bucket_set.decided_checks(self.check_mask),
                    bucket_set.orbits(),
                    bucket_set.name,
                )
                yield numbers(bucket, FINDINGS, bucket_row)
                if bucket_set.remaking.buckets:
                    yield numbers(
                        bucket, REMAKES, (bucket_set.remaking.states, round(1e9 * bucket_set.remaking.seconds))
                    )
                yield numbers(bucket, TIMES, bucket_set.hand.time_spent.numbers())

    def _set(self, bucket: int) -> BucketStates:
        before = self.before.get(bucket, 0)
        return BucketStates(self.spec, KernelWorker(self.spec), bucket, self.level, before, self.spare)


@attrs.frozen
class ExpansionReport:
    """The sum of EXPANSION rows; `sent_count` counts the states that were sent to their buckets."""

    states: int
    decided_mask: int
    overflow: bool
    sent_count: int
    steps_by_action: tuple[int, ...]
    refusals: tuple[int, ...]


def sum_reports(spec: KernelSpec, reports: list[Numbers]) -> ExpansionReport:
    table = np.array(reports, dtype=np.int64).reshape(-1, 4 + max(1, spec.actions) + max(1, spec.guards))
    total = table.sum(axis=0).tolist()
    decided = int(np.bitwise_or.reduce(table[:, 1])) if len(table) else 0
    taken, refused = total[4 : 4 + spec.actions], total[4 + max(1, spec.actions) :]
    return ExpansionReport(total[0], decided, bool(total[2]), total[3], tuple(taken), tuple(refused))
