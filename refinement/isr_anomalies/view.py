"""The view of one partition: which value is at which offset, the version order, and what was known at each line."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import cached_property
from typing import NamedTuple

from isr_anomalies.history import WHOLE, Batch, Partition, Scan, Send
from isr_anomalies.operations import NEVER, Claims, Value


class LargestOffsets:
    """The largest offset known at each line (or time): the maximum over the completions before it."""

    def __init__(self, observations: list[tuple[int, int]]) -> None:
        observations.sort()
        self.keys: list[int] = []
        self.offsets: list[int] = []
        largest = -1
        for key, offset in observations:
            if offset > largest:
                largest = offset
                self.keys.append(key)
                self.offsets.append(offset)

    def before(self, key: int) -> int:
        """The largest offset known before a line, -1 if none was."""
        at = bisect_left(self.keys, key)
        return self.offsets[at - 1] if at else -1

    def since(self, offset: int) -> int:
        """The first line at which an offset of at least this was known; NEVER if none was."""
        at = bisect_left(self.offsets, offset)
        return self.keys[at] if at < len(self.keys) else NEVER


class MissingValue(NamedTuple):
    """A value that was committed, and that the last complete read which had to return it did not: `scan`."""

    send: Send
    scan: Scan
    offset: int | None
    """Where it was: as acknowledged, or else as read; None if nobody was told."""
    read: int | None
    """The first line at which a reader got it, None if none did."""

    @property
    def acknowledged(self) -> bool:
        """Whether its producer was told that it is written; if not, a read proves that it was."""
        return self.send.outcome == "ok"


class _Absent(NamedTuple):
    """A committed value that the last complete read did not return."""

    send: Send
    reads: list[tuple[Batch, int]]
    """The polls that returned it, with its offset."""
    places: set[int]
    """Where it was: as acknowledged, and as read."""
    first: int | None
    """The line at which somebody first had read it."""
    scan: Scan | None
    """The last complete read that had to return it."""


class View:
    """A partition with its version order: offset -> values, from committed sends and from all polls."""

    def __init__(self, partition: Partition, claims: Claims) -> None:
        self.partition = partition
        self.claims = claims
        self.name = partition.name
        self.sends: list[Send] = partition.sends
        self.batches: list[Batch] = partition.batches
        self.at: dict[int, Value] = {}
        self.line_of: dict[int, int] = {}
        """Offset -> the line that first told its value."""
        self.clashes: dict[int, dict[Value, int]] = {}
        """Offset -> the lines that told each of its values, where there are several."""
        self.offset_of: dict[Value, int] = {}
        self.copies: dict[Value, set[int]] = {}
        """Values at several offsets."""
        self.polled: set[Value] = set()
        self._read_operations()

    def _read_operations(self) -> None:
        for send in self.sends:
            if send.committed and send.offset is not None:
                self._place(send.offset, send.value, send.completed)
        seen = self.polled
        at, offset_of = self.at, self.offset_of
        for batch in self.batches:
            for offset, value, _ in batch.records:
                seen.add(value)
                # most records were reported before and add nothing
                if at.get(offset, WHOLE) != value or offset_of.get(value) != offset or offset not in at:
                    self._place(offset, value, batch.completed)

    def _place(self, offset: int, value: Value, line: int) -> None:
        if offset not in self.at:
            self.at[offset] = value
            self.line_of[offset] = line
        elif self.at[offset] != value:
            clash = self.clashes.setdefault(offset, {self.at[offset]: self.line_of[offset]})
            clash.setdefault(value, line)
        first = self.offset_of.setdefault(value, offset)
        if first != offset:
            self.copies.setdefault(value, {first}).add(offset)

    @cached_property
    def offsets(self) -> list[int]:
        """Every offset that is known to hold something, in order."""
        return sorted(self.at)

    @cached_property
    def index(self) -> dict[int, int]:
        """The place of each offset in the version order."""
        return {offset: n for n, offset in enumerate(self.offsets)}

    @cached_property
    def send_of(self) -> dict[Value, Send]:
        """The send of each value; of several sends the one that was most likely done."""
        sends: dict[Value, Send] = {}
        rank = {"ok": 2, "info": 1, "fail": 0}
        for send in self.sends:
            other = sends.get(send.value)
            if other is None or rank[send.outcome] > rank[other.outcome]:
                sends[send.value] = send
        return sends

    @cached_property
    def known_offsets(self) -> LargestOffsets:
        """The largest offset known at each line: acknowledged, with any acks, or read."""
        return LargestOffsets([(line, offset) for line, _, offset, _ in self._telling])

    @cached_property
    def surely_known(self) -> LargestOffsets:
        """The largest offset at each line that is promised to stay: acknowledged with acks=all, or read."""
        return LargestOffsets([(line, offset) for line, _, offset, sure in self._telling if sure])

    @cached_property
    def known_at(self) -> LargestOffsets:
        """The largest offset known at each time."""
        return LargestOffsets([(time, offset) for _, time, offset, _ in self._telling])

    @cached_property
    def _telling(self) -> list[tuple[int, int, int, bool]]:
        observations = [
            (s.completed, s.completed_at, s.offset, s.acks == "all")
            for s in self.sends
            if s.outcome == "ok" and s.offset is not None
        ]
        for batch in self.batches:
            if batch.records:
                observations.append((batch.completed, batch.completed_at, max(r[0] for r in batch.records), True))
        return observations

    @cached_property
    def scans(self) -> list[Scan]:
        """Complete reads: final reads, and consumers that sought to the beginning and reached the largest offset known.

        Where retention deletes records, the beginning is wherever the log begins then. Nobody says where that is, so
        such a read starts at the first offset that it returned, and did not look below.
        """
        complete_reads = list(self.partition.scans)
        by_stint: dict[int, list[Batch]] = {}
        wanted = {rewind.stint for rewind in self.partition.rewinds}
        for batch in self.batches:
            if batch.stint in wanted and batch.outcome == "ok" and not batch.during_rebalance:
                by_stint.setdefault(batch.stint, []).append(batch)
        for rewind in self.partition.rewinds:
            batches = by_stint.get(rewind.stint, [])
            values = {offset: value for batch in batches for offset, value, _ in batch.records}
            if values and max(values) >= self.known_offsets.before(rewind.invoked):
                done = max(batch.completed for batch in batches)
                start = min(values) if self.claims.retention else 0
                complete_reads.append(Scan(rewind.invoked, done, start, max(values) + 1, values, None))
        return complete_reads

    @cached_property
    def last_scan(self) -> Scan | None:
        """The complete read that began last."""
        return self._latest_first[0] if self.scans else None

    @cached_property
    def _latest_first(self) -> list[Scan]:
        return sorted(self.scans, key=lambda scan: -scan.invoked)

    def later_scan(self, offset: int, line: int) -> Scan | None:
        """The last complete read that began after a line and looked at an offset: its start is not above it."""
        return next((scan for scan in self._latest_first if scan.invoked > line and scan.start <= offset), None)

    @cached_property
    def losses(self) -> list[MissingValue]:
        """The values that are lost: acknowledged, or read by somebody, and absent from the last complete read that had
        to return them.

        A complete read has to return a value that was acknowledged or read before it began, or at whose offset it went
        past. Nothing is lost that somebody got by a poll which began after that read did.
        """
        found = [self._loss(absent) for absent in self._absent]
        return [one for one in found if one is not None]

    @cached_property
    def values_below_scans(self) -> list[Send]:
        """The committed values that no complete read had to return, as each that might have begins above them.

        Their offsets are not looked at, so of these values there is no verdict. An offset that nobody was told may be
        anywhere: only a final read from 0 has to return such a value.
        """
        return [absent.send for absent in self._absent if self._is_below_scans(absent)]

    @cached_property
    def _absent(self) -> list[_Absent]:
        """The committed values that the last complete read did not return."""
        last = self.last_scan
        there = set(last.values.values()) if last else set[Value]()
        absent = [s for v, s in self.send_of.items() if s.committed and v not in there] if last else []
        read = self._read_of({send.value for send in absent})
        return [self._looked_for(send, read.get(send.value, [])) for send in absent]

    def _read_of(self, values: set[Value]) -> dict[Value, list[tuple[Batch, int]]]:
        """For each of these values the polls that returned it, with its offset."""
        polls: dict[Value, list[tuple[Batch, int]]] = {}
        for batch in self.batches if values else ():
            for offset, value, _ in batch.records if batch.outcome != "fail" else ():
                if value in values:
                    polls.setdefault(value, []).append((batch, offset))
        return polls

    def _looked_for(self, send: Send, reads: list[tuple[Batch, int]]) -> _Absent:
        places = {offset for _, offset in reads}
        if send.offset is not None:
            places.add(send.offset)
        first = min((batch.completed for batch, _ in reads), default=None)
        known_since = min(send.completed if send.outcome == "ok" else NEVER, NEVER if first is None else first)

        def demands(scan: Scan) -> bool:
            if not places:  # then only a final read is known to go far enough
                return (
                    known_since < scan.invoked and scan.start == 0 and any(scan is one for one in self.partition.scans)
                )
            passed = scan.completed > send.invoked and any(scan.start <= place < scan.end for place in places)
            return passed or (known_since < scan.invoked and any(scan.start <= place for place in places))

        return _Absent(send, reads, places, first, next(filter(demands, self._latest_first), None))

    def _is_below_scans(self, absent: _Absent) -> bool:
        last, places = self.last_scan, absent.places
        if last is None or (not places and absent.send.outcome != "ok") or absent.scan is not None:
            return False
        if any(batch.invoked > last.invoked for batch, _ in absent.reads):
            return False
        if not places:
            return absent.send.completed < last.invoked
        return any(scan.start > max(places) for scan in self.scans)

    def _loss(self, absent: _Absent) -> MissingValue | None:
        send, scan, places = absent.send, absent.scan, absent.places
        if scan is None or any(scan.values.get(place, WHOLE) == send.value for place in places):
            return None
        if any(batch.invoked > scan.invoked for batch, _ in absent.reads):
            return None
        offset = send.offset if send.offset is not None else min(places, default=None)
        return MissingValue(send, scan, offset, absent.first)

    @cached_property
    def unseen_sends(self) -> list[Send]:
        """Sends that were acknowledged before the last complete read began, and whose value nobody ever read.

        None of them is below all complete reads that had to return it.
        """
        last, below = self.last_scan, {send.value for send in self.values_below_scans}
        acked = [send for send in self.sends if last and send.outcome == "ok" and send.completed < last.invoked]
        return [send for send in acked if send.value not in self.polled and send.value not in below]

    @cached_property
    def unchecked_values(self) -> int:
        """How many acknowledged values nobody read, as no complete read was late and long enough."""
        last, beyond = self.last_scan, max((scan.end for scan in self.scans), default=0)
        unread = [s for s in self.sends if s.outcome == "ok" and s.value not in self.polled]
        return sum(last is None or (s.completed >= last.invoked and (s.offset or beyond) >= beyond) for s in unread)

    @cached_property
    def read_beyond(self) -> bool:
        """Whether a consumer read beyond every complete read after the last of them had begun."""
        last, beyond = self.last_scan, max((scan.end for scan in self.scans), default=0)
        later = [b for b in self.batches if b.records and (last is None or b.completed >= last.invoked)]
        return any(batch.records[-1][0] >= beyond for batch in later)

    @cached_property
    def reads_below_scans(self) -> int:
        """How many offsets a poll read before the last complete read began, and no complete read that began later."""
        last = self.last_scan
        if last is None or last.start == 0:
            return 0
        polls = [batch for batch in self.batches if batch.stint != WHOLE and batch.outcome != "fail"]
        early = [batch for batch in polls if batch.completed < last.invoked]
        below = {(offset, batch.completed) for batch in early for offset, _, _ in batch.records if offset < last.start}
        return len({offset for offset, line in below if self.later_scan(offset, line) is None})

    @cached_property
    def attempts(self) -> Counter[Value]:
        """How often each value was sent, without sends that surely failed."""
        return Counter(send.value for send in self.sends if send.outcome != "fail")
