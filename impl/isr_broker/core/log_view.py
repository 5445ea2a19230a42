"""What a core knows of a log: where it starts and ends, its leader epochs and its producers; not the records.

The log itself (`log`) makes these values, and every report of a finished disk operation brings the newest one.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from immutables import Map

from isr_broker.core.leader_epochs import Epochs
from isr_broker.core.messages import LeaderEpoch, Millis, Offset
from isr_broker.core.record_batch import Batch

REMEMBERED = 5
"""Batches remembered per producer (ProducerStateEntry.NUM_BATCHES_TO_RETAIN)."""


@attrs.frozen
class Sent:
    """One batch that a producer has sent: its sequence numbers and where it begins."""

    first_sequence: int
    last_sequence: int
    offset: Offset


@attrs.frozen
class Producer:
    """A producer with an identity (KIP-98): its epoch, its last batches, the newest last, and the time of that."""

    epoch: int
    sent: tuple[Sent, ...]
    newest: Millis = -1

    @property
    def next_sequence(self) -> int:
        """The sequence number that must come next."""
        return (self.sent[-1].last_sequence + 1) & 0x7FFFFFFF


Producers = Map[int, Producer]


def with_batch(producers: Producers, batch: Batch) -> Producers:
    """The producers after one more batch (ProducerStateManager.update)."""
    if not batch.idempotent:
        return producers
    known = producers.get(batch.producer_id)
    earlier = known.sent if known is not None and known.epoch == batch.producer_epoch else ()
    sent = (*earlier, Sent(batch.base_sequence, batch.last_sequence, batch.base_offset))[-REMEMBERED:]
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
        """After the log was cut at `end`; which producers remain only the log can say."""
        end = max(end, self.start)
        return attrs.evolve(
            self,
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
