"""Where each leader epoch starts in a log (KIP-101, KIP-279; LeaderEpochFileCache), as a value."""

from __future__ import annotations

from itertools import takewhile

import attrs

from isr_broker.core.messages import NO_EPOCH, EpochEnd, LeaderEpoch, Offset


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

    def last_before(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record before the offset: of a log's last record, given its end. NO_EPOCH if none."""
        return self.cut(offset).latest()

    def start_of(self, epoch: LeaderEpoch, or_else: Offset) -> Offset:
        """Where an epoch starts, or where it would."""
        return next((e.start for e in self.entries if e.epoch == epoch), or_else)

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
