"""What a core knows of a log: where it starts and ends, its leader epochs and its producers; not the records.

The leader epochs of a log are its history in a few numbers (KIP-101, KIP-279; LeaderEpochFileCache).

The log itself (`log`) makes these values, and every report of a finished disk operation brings the newest one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import takewhile

import attrs
from immutables import Map

from isr_broker.core.messages import NO_EPOCH, EpochEnd, LeaderEpoch, Millis, Offset
from isr_broker.core.record_batch import Batch


@attrs.frozen(order=True)
class EpochStart:
    """One entry: the epoch, and the offset of its first record, or where that will go."""

    epoch: LeaderEpoch
    start: Offset


@attrs.frozen
class Epochs:
    """Entries with growing epochs and growing starts; a log's history in a few numbers."""

    entries: tuple[EpochStart, ...] = ()

    def assign(self, epoch: LeaderEpoch, start: Offset) -> Epochs:
        """With the start of an epoch noted; entries that contradict it are gone (LeaderEpochFileCache.assign).

        Of an epoch that is already the last, the earlier start stays.
        """
        if self.entries and self.entries[-1].epoch == epoch and self.entries[-1].start <= start:
            return self
        kept = tuple(e for e in self.entries if e.epoch < epoch and e.start < start)
        return Epochs((*kept, EpochStart(epoch, start)))

    def cut(self, end: Offset) -> Epochs:
        """Without the entries that start at or past a log end: also what a leader opened without appending."""
        return Epochs(tuple(takewhile(lambda e: e.start < end, self.entries)))

    def from_start(self, start: Offset) -> Epochs:
        """Of a log that starts at an offset: the epoch that it starts in starts there (truncateFromStartAsyncFlush)."""
        later = tuple(e for e in self.entries if e.start > start)
        before = self.entries[: len(self.entries) - len(later)]
        return Epochs((*(EpochStart(e.epoch, start) for e in before[-1:]), *later)) if before else self

    def latest(self) -> LeaderEpoch:
        """The last epoch noted, whether or not it has records; NO_EPOCH if none."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def at(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record at an offset, or of the first that is known; NO_EPOCH if none is."""
        first = self.entries[0].epoch if self.entries else NO_EPOCH
        return next((entry.epoch for entry in reversed(self.entries) if entry.start <= offset), first)

    def next_start(self, offset: Offset) -> Offset:
        """Where the next epoch starts, after that of an offset; past every offset if it is the last."""
        return next((entry.start for entry in self.entries if entry.start > offset), sys.maxsize)

    def last_before(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record before the offset: of a log's last record, given its end. NO_EPOCH if none."""
        return self.cut(offset).latest()

    def end_of(self, epoch: LeaderEpoch, log_end: Offset) -> EpochEnd:
        """The largest epoch not above the asked one, and where it ends (KIP-279; endOffsetFor).

        Below every epoch known, the asked one ends where the first known one starts. Above every one, it is the last
        one known, to the log end; Kafka answers UNDEFINED there, which cannot come up once fetches are fenced, since a
        leader has noted its own epoch.
        """
        floor = [e for e in self.entries if e.epoch <= epoch]
        above = [e for e in self.entries if e.epoch > epoch]
        end = above[0].start if above else log_end
        return EpochEnd(floor[-1].epoch if floor else epoch, end)


BATCHES_PER_PRODUCER = 5
"""Batches remembered per producer (ProducerStateEntry.NUM_BATCHES_TO_RETAIN)."""


@attrs.frozen
class SentBatch:
    """One batch that a producer has sent: its sequence numbers and where it begins."""

    first_sequence: int
    last_sequence: int
    offset: Offset


@attrs.frozen
class Producer:
    """A producer with an identity (KIP-98): its epoch, its last batches, the newest last, and the time of that."""

    epoch: int
    batches: tuple[SentBatch, ...]
    newest: Millis = -1

    @property
    def next_sequence(self) -> int:
        """The sequence number that must come next."""
        return (self.batches[-1].last_sequence + 1) & 0x7FFFFFFF


Producers = Map[int, Producer]


def with_batch(producers: Producers, batch: Batch) -> Producers:
    """The producers after one more batch (ProducerStateManager.update)."""
    if not batch.idempotent:
        return producers
    known = producers.get(batch.producer_id)
    earlier = known.batches if known is not None and known.epoch == batch.producer_epoch else ()
    sent = (*earlier, SentBatch(batch.base_sequence, batch.last_sequence, batch.base_offset))[-BATCHES_PER_PRODUCER:]
    return producers.set(batch.producer_id, Producer(batch.producer_epoch, sent, batch.max_timestamp))


@attrs.frozen(kw_only=True)
class LogView:
    """A log as seen from a core.

    - `start` and `end`: the offset of the first record and the one after the last (LEO).
    - `flushed`: what is below it is on disk whatever happens (the recovery point).
    - `epochs`: where each leader epoch starts.
    - `producers`: the last batches of each producer, to recognise what is sent again.
    """

    start: Offset = 0
    end: Offset = 0
    flushed: Offset = 0
    epochs: Epochs = attrs.field(factory=Epochs)
    producers: Producers = attrs.field(factory=Producers)

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The leader epoch of the last record; model: last_epoch."""
        return self.epochs.last_before(self.end)

    def appended(self, new: Iterable[Batch], flushed: bool = False) -> LogView:
        """After the batches, which continue the log, were appended.

        An epoch that was opened at the log end without an append is forgotten first: a batch of an earlier epoch may
        now come there (a leader's own epoch comes back with its first batch).
        """
        end, epochs, producers = self.end, self.epochs.cut(self.end), self.producers
        for batch in new:
            assert batch.base_offset >= end, f"a batch at {batch.base_offset} in a log that ends at {end}"
            if batch.leader_epoch > epochs.latest():
                epochs = epochs.assign(batch.leader_epoch, batch.base_offset)
            end, producers = batch.next_offset, with_batch(producers, batch)
        return attrs.evolve(self, end=end, epochs=epochs, producers=producers, flushed=end if flushed else self.flushed)

    def truncated(self, end: Offset, producers: Producers) -> LogView:
        """After the log was cut at `end`; which producers remain only the log can say.

        A cut below the start leaves an empty log that starts at the cut (UnifiedLog.truncateTo).
        """
        return attrs.evolve(
            self,
            start=min(self.start, end),
            end=end,
            flushed=min(self.flushed, end),
            epochs=self.epochs.cut(end),
            producers=producers,
        )

    def started(self, start: Offset) -> LogView:
        """After everything before an offset was forgotten (UnifiedLog.maybeIncrementLogStartOffset)."""
        start = min(max(start, self.start), self.end)
        return attrs.evolve(self, start=start, epochs=self.epochs.from_start(start))

    def without_idle(self, since: Millis) -> LogView:
        """After producers were forgotten of which nothing is newer (ProducerStateManager.removeExpiredProducers).

        Of a producer that says no time nothing is known.
        """
        idle = [number for number, producer in self.producers.items() if 0 <= producer.newest < since]
        if not idle:
            return self
        return attrs.evolve(self, producers=Producers({n: p for n, p in self.producers.items() if n not in idle}))
