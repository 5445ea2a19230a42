"""What the groups of one partition of `__consumer_offsets` have committed: read from its log, written, and kept short.

A new leader reads the log a piece at a time, so that nobody else waits for it (Kafka's CoordinatorLoaderImpl reads in
a thread of its own). Kafka compacts the topic (LogCleaner), and what is read stays little more than the last word on
each offset. Logs here have no gaps: when a log has grown long its leader writes all that counts once more, at the end,
and has what is before that forgotten, as DeleteRecords does. While a commit is on its way nobody knows what counts, and
a copy of the old value after it would be the last word; so copies wait for those, and commits that come meanwhile wait
for the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

import attrs

from isr_broker.core.effects import AnswerProduce, Slice
from isr_broker.core.inputs import DeleteRecords, Produce
from isr_broker.core.messages import Error, LeaderEpoch, Millis, Offset, TopicPartition
from isr_broker.core.record_batch import BadBatch
from isr_broker.core.replica_state import Replica
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.storage.offsets_topic import Committed, News, batch_of, learn, take
from isr_broker.wire.group_room import GroupRoom, growth

COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16

Then: TypeAlias = Callable[[int], None]
"""Takes the error code of what was to be written, 0 if it counts."""

_COMMITS_WITHIN: Final[Millis] = 5_000
"""offsets.commit.timeout.ms."""

PIECE_BYTES: Final = 65_536
"""Of a log that is read, in one turn; Kafka's offsets.load.buffer.size is 5 MiB, in another thread."""

LONG: Final = 20_000
"""Records beyond twice those that count, after which these are written once more."""

_COPIES_AT_ONCE: Final = 500
"""Offsets that are written once more in one turn, where a batch counts as ten besides."""

_COPY_BYTES: Final = 100_000
"""What a batch of copies has at most, but for one record: less than what any topic takes by default."""


@attrs.define
class CommittedOffsets:
    """Of one partition, in one leader epoch of this broker.

    - `committed`: what counts, `count` offsets; `room` is for those of all partitions.
    - `read`: up to where the log has been read, of `end`.
    - `commits`: how many are on their way; `waiting` are those that come after the copies.
    - `long`: the log has grown long. `copies` are those that are still to be written, `copying` are on their way,
      `whole` if none has failed; the last ones begin at `since`.
    """

    runtime: Runtime
    partition: TopicPartition
    epoch: LeaderEpoch
    read: Offset
    end: Offset
    committed: Committed = attrs.field(factory=Committed)
    room: GroupRoom = attrs.field(factory=GroupRoom)
    count: int = 0
    commits: int = 0
    waiting: list[tuple[str, News, Then]] = attrs.field(factory=list[tuple[str, News, Then]])
    long: bool = False
    copies: Iterator[tuple[str, News]] | None = None
    copying: int = 0
    whole: bool = True
    is_given_up: bool = False
    since: Offset = -1

    @classmethod
    def of(cls, runtime: Runtime, replica: Replica, room: GroupRoom) -> CommittedOffsets:
        """Of a replica that leads, and all of whose log is committed; nothing of it is read yet."""
        return cls(runtime, replica.partition, replica.leader_epoch, replica.log.start, replica.log.end, room=room)

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted."""
        return 0 if not self.is_loaded or (self.long and not self.commits) else None

    def tick(self, now: Millis) -> None:
        """Some more is read, or written once more; OSError or BadBatch where the disk does not give it back."""
        if not self.is_loaded:
            self._reads()
        elif self.long and not self.commits:
            self._writes_again(now)

    def given_up(self) -> None:
        """Another broker coordinates from now on: whoever waits is told."""
        self.is_given_up = True
        self.room.forget(self.committed)
        waiting, self.waiting = self.waiting, []
        for _, _, then in waiting:
            then(NOT_COORDINATOR)

    # Reading

    @property
    def is_loaded(self) -> bool:
        """Whether the log has been read."""
        return self.read >= self.end

    def _reads(self) -> None:
        """Read some more of the log; OSError or BadBatch where the disk does not give it back."""
        wanted = Slice(offset=self.read, up_to=self.end, max_bytes=PIECE_BYTES)
        found = self.runtime.logs.read(self.partition, wanted)
        if not found:
            raise BadBatch(f"{self.partition} has nothing at offset {self.read}, though it ends at {self.end}")
        self.read = learn(self.committed, found, self._note_size)
        if self.is_loaded:
            self.count = sum(map(len, self.committed.values()))
            self._looks_how_long()

    # Writing

    def write(self, group: str, new: News, now: Millis, then: Then) -> None:
        """Write what a group has committed, or has no more; it counts only when it is everywhere in sync."""
        if self.long:
            self.waiting.append((group, new, then))
            return
        records = batch_of(group, new, now)
        self.commits += 1

        def finish_write(error: Error) -> None:
            self.commits -= 1
            if error is Error.NONE:
                self._counts(group, new)
            then(_AS_COORDINATOR.get(error, error.value))
            self._looks_how_long()

        self._produces(records, now, finish_write)

    def _produces(self, records: bytes, now: Millis, then: Callable[[Error], None]) -> None:
        produce = Produce(request=0, partition=self.partition, records=records, acks=-1, timeout_ms=_COMMITS_WITHIN)

        def take_answer(answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AnswerProduce)
            then(answer.error)

        self.runtime.ask(lambda number: attrs.evolve(produce, request=number), take_answer, now)

    def _note_size(self, group: str, new: News) -> None:
        if not self.is_given_up:
            self.room.add(group, growth(self.committed, group, new))

    def _counts(self, group: str, new: News) -> None:
        self._note_size(group, new)
        before = len(self.committed.get(group, ()))
        take(self.committed, group, new)
        self.count += len(self.committed.get(group, ())) - before

    # Keeping the log short

    def _looks_how_long(self) -> None:
        replica = self.runtime.node.replicas.get(self.partition)
        if replica is not None and not self.long and not self.copying:
            self.long = replica.log.end - max(replica.log.start, self.since) > LONG + 2 * self.count

    def _writes_again(self, now: Millis) -> None:
        """Write some of what counts once more, and after the last of it the commits that have waited."""
        if self.copies is None:
            # No commit is on its way: what counts is all in the log before here, and nothing else there does.
            self.since, self.whole = self.runtime.node.replicas[self.partition].log.end, True
            self.copies = _batches(self.committed)
        cost = 0
        for group, new in self.copies:
            self.copying += 1
            self._produces(batch_of(group, new, now), now, partial(self._written_again, now))
            cost += 10 + len(new)
            if cost > _COPIES_AT_ONCE:
                return
        self.long, self.copies, waiting = False, None, self.waiting
        self.waiting = []
        for group, new, then in waiting:
            self.write(group, new, now, then)
        self._forgets(now)

    def _written_again(self, now: Millis, error: Error) -> None:
        self.copying -= 1
        self.whole = self.whole and error is Error.NONE
        self._forgets(now)

    def _forgets(self, now: Millis) -> None:
        """Once all copies are everywhere in sync what is before them goes; if one is not, it stays until the next."""
        if self.copies is None and not self.copying and self.whole:
            told = DeleteRecords(request=0, partition=self.partition, offset=self.since, timeout_ms=_COMMITS_WITHIN)
            self.runtime.ask(lambda number: attrs.evolve(told, request=number), _nothing, now)


def _batches(committed: Committed) -> Iterator[tuple[str, News]]:
    """All that counts, a batch at a time."""
    return ((group, some) for group, offsets in committed.items() for some in batches_of(group, offsets))


def batches_of(group: str, news: News) -> Iterator[News]:
    """What one group has committed now, as much at a time as any topic takes in a batch."""
    some, size = dict[TopicPartition, tuple[Offset, str] | None](), 0
    for tp, row in news.items():
        more = 100 + 4 * (len(group) + len(tp.topic) + len(row[1] if row is not None else ""))
        if some and size + more > _COPY_BYTES:
            yield some
            some, size = {}, 0
        some[tp] = row
        size += more
    yield some


def _nothing(answer: ClientAnswer, records: bytes) -> None:
    """Nobody waits."""


_AS_COORDINATOR: Final = {
    Error.NOT_LEADER_OR_FOLLOWER: NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: NOT_COORDINATOR,
    Error.UNKNOWN_TOPIC_OR_PARTITION: COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: COORDINATOR_NOT_AVAILABLE,
}
"""What a commit that was not written is called (GroupMetadataManager.storeOffsets)."""
