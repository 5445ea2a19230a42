"""Fetch sessions (KIP-227): what a client or follower fetches, remembered, so that only what changes need be said.

A session's requests are numbered (its epoch); one that is out of order is refused, and the client begins again with a
full fetch. The cache is bounded: a follower's session may take the place of a client's, a larger one that of a smaller,
any that of one not used for two minutes (FetchSessionCacheShard.tryEvict).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum
from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import BrokerId, Error, FetchRequest, Millis, Offset, TopicPartition
from isr_broker.core.stamps import Stamp
from isr_broker.wire.protocol import Answer, Fields

NO_SESSION: Final = 0
"""The session id of whoever has none (INVALID_SESSION_ID)."""
FINAL_EPOCH: Final = -1
"""The epoch of a fetch that ends its session, and of one that wants none."""
INITIAL_EPOCH: Final = 0
_MAX_INT: Final = 2**31 - 1

EVICTION_MS: Final[Millis] = 120_000
"""How long a session is safe from others (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS)."""

MOST_PARTITIONS: Final = 200_000
"""In all sessions together, a kilobyte each; a session that would need more is not given."""

Key: TypeAlias = tuple[str | bytes, int]
"""A partition as requests name it: by its topic's name, or id from version 13 on, and its number."""


Reply: TypeAlias = Callable[[Answer], None]
"""Sends the answer to a fetch, by its fields."""

Position: TypeAlias = tuple[object, object]
"""Watermark and log start of a partition."""


@attrs.frozen
class PartAnswer:
    """What a replica has answered for one partition: the fields of the wire, and how many bytes of records they have.

    `news`: it must be sent, having records, an error, a stamp, or something else that the one who fetches acts on.
    """

    fields: Answer
    size: int = 0
    news: bool = False
    stamp: Stamp | None = None

    @property
    def watermark(self) -> int:
        """The watermark that it tells."""
        watermark = self.fields["high_watermark"]
        return watermark if isinstance(watermark, int) else -1

    @property
    def position(self) -> Position:
        """The position that it tells."""
        return self.fields["high_watermark"], self.fields["log_start_offset"]


@attrs.define(eq=False)
class Part:
    """One partition of a session: what is fetched of it, and how far that is.

    - `question`: which question its replica has, None if it has none or has answered.
    - `question_number`, `waits_until`: of a consumer's question the partition that it is of, its number there, and
      until when its replica waits. It may be the question of an earlier fetch.
    - `request`: what its replica is asked for a follower, the last time at `question_at`.
    - `more_than`: the watermark above which its replica was asked for more than its answer has, 0 if it was not.
    - `answer`: what its replica has answered, until that is sent.
    - `position`: what was sent last, None after an error, and before there was an answer.
    """

    topic: str | bytes
    number: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int
    log_start: Offset = 0
    stamp: Stamp | None = None
    request: FetchRequest | None = None
    question: object | None = None
    question_number: tuple[TopicPartition, int] | None = None
    waits_until: Millis = 0
    question_at: Millis = 0
    more_than: Offset = 0
    answer: PartAnswer | None = None
    position: Position | None = None

    @property
    def key(self) -> Key:
        """Its name in requests."""
        return self.topic, self.number

    def same_as(self, other: Part) -> bool:
        """Nothing else is asked."""
        return (self.offset, self.max_bytes, self.leader_epoch, self.last_epoch, self.log_start, self.stamp) == (
            other.offset,
            other.max_bytes,
            other.leader_epoch,
            other.last_epoch,
            other.log_start,
            other.stamp,
        )


class Stage(Enum):
    """How far a fetch is that is not yet answered (`fetch_requests` has the way of a fetch)."""

    LOOKS = "replicas are asked what there is at once"
    ASKS = "replicas are asked to answer when there is more"
    WAITS = "all are asked"


@attrs.define(eq=False, kw_only=True)
class Fetch:
    """A fetch until its answer is sent.

    - `full`: its answer names every partition.
    - `broker_epoch`: of a follower; `rack`: of a consumer.
    - `limit`, `least`: the most bytes that it gets, and how many a consumer's waits for.
    - `wait`, `until`: how long it waits, and so until when.
    - `due`: it is to be answered, at the end of this turn.
    - `hints`: its answer names the leader where somebody else leads (KIP-951).
    """

    reply: Reply
    full: bool
    broker_epoch: int
    rack: str
    limit: int
    least: int
    wait: Millis
    until: Millis
    stage: Stage
    due: bool = False
    hints: bool = False


@attrs.define(eq=False)
class Session:
    """What one client or follower fetches; with id 0, by a single request.

    `epoch` is that of the next request, `wait` how long the last one waits, `fetch` the one that is open. `parts` in
    the order in which they are served, whoever had records last. `size`: bytes of records that wait to be sent.
    `owner`: the connection of a client that fetched last, None once it is gone.
    """

    replica: BrokerId
    id: int = NO_SESSION
    epoch: int = 1
    by_id: bool = False
    wait: Millis = 0
    created_at: Millis = 0
    used_at: Millis = 0
    parts: dict[Key, Part] = attrs.field(factory=dict[Key, Part])
    fetch: Fetch | None = None
    size: int = 0
    owner: Hashable | None = None

    @property
    def is_privileged(self) -> bool:
        """A follower's."""
        return self.replica >= 0

    @property
    def is_asking(self) -> bool:
        """Not all replicas have been asked yet what its fetch asks."""
        return self.fetch is not None and self.fetch.stage is not Stage.WAITS

    def update(self, body: Fields, stamps: dict[tuple[str, int], Stamp], name: Callable[[bytes], str]) -> list[Part]:
        """What a request adds, changes, and forgets; the parts that are there no more."""
        old_parts: list[Part | None] = []
        for part in parts_of(body, stamps, name):
            old_part = self.parts.get(part.key)
            if old_part is not None:
                part.position = old_part.position
            if old_part is None or not old_part.same_as(part):
                old_parts.append(old_part)
                self.parts[part.key] = part
        for topic in body.all("forgotten_topics_data"):
            old_parts += [self.parts.pop((_topic(topic), number), None) for number in topic.numbers("partitions")]
        for old_part in old_parts:
            self._forgets(old_part)
        return [part for part in old_parts if part is not None]

    def puts(self, part: Part, answer: PartAnswer | None) -> None:
        """A replica's answer waits to be sent, or does not any more."""
        self._forgets(part)
        self.size += 0 if answer is None else answer.size
        part.answer = answer

    def _forgets(self, part: Part | None) -> None:
        self.size -= 0 if part is None or part.answer is None else part.answer.size

    def last(self, part: Part) -> None:
        """Whoever had records is served after the others next time."""
        if self.parts.get(part.key) is part:
            self.parts[part.key] = self.parts.pop(part.key)


def parts_of(body: Fields, stamps: dict[tuple[str, int], Stamp], name: Callable[[bytes], str]) -> Iterator[Part]:
    """The partitions that a request names."""
    for topic in body.all("topics"):
        key = _topic(topic)
        topic_name = (name(key) if isinstance(key, bytes) else key) if stamps else ""
        for p in topic.all("partitions"):
            number = p.number("partition")
            yield Part(
                topic=key,
                number=number,
                offset=p.number("fetch_offset"),
                max_bytes=p.number("partition_max_bytes"),
                leader_epoch=p.number("current_leader_epoch"),
                last_epoch=p.number("last_fetched_epoch"),
                log_start=p.number("log_start_offset"),
                stamp=stamps.get((topic_name, number)),
            )


def _topic(topic: Fields) -> str | bytes:
    uuid = topic.data("topic_id")
    return topic.text("topic") if uuid is None else uuid


@attrs.define
class SessionCache:
    """The sessions of one broker; `first` is where its session ids begin, another in each life."""

    slots: int
    first: int = 1
    sessions: dict[int, Session] = attrs.field(factory=dict[int, Session])
    id_count: int = 0
    is_over: Callable[[Session], None] = lambda _: None

    def find(self, session_id: int, epoch: int, by_id: bool) -> Session | Error:
        """The session that a request continues, or why it cannot (FetchManager.newContext)."""
        session = self.sessions.get(session_id)
        if session is None:
            return Error.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return Error.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return Error.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def continues(self, session: Session, now: Millis) -> None:
        """A request of the session was taken; one without partitions is over, as is one when there are too many."""
        session.epoch, session.used_at = session.epoch % _MAX_INT + 1, now
        if not session.parts or self._partitions() > MOST_PARTITIONS:
            self.ends(session.id)

    def ends(self, session_id: int) -> None:
        """The session is no more, which `is_over` is told."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self.is_over(session)

    def admits(self, session: Session, now: Millis) -> None:
        """Give a session its id, if there is room or somebody has to make room."""
        if not session.parts or self._partitions() + len(session.parts) > MOST_PARTITIONS:
            return
        if len(self.sessions) >= self.slots and not self._evicts(session, now):
            return
        while session.id == NO_SESSION or session.id in self.sessions:
            session.id = (self.first + self.id_count) % _MAX_INT + 1
            self.id_count += 1
        session.created_at = session.used_at = now
        self.sessions[session.id] = session

    def _partitions(self) -> int:
        return sum(len(s.parts) for s in self.sessions.values())

    def _evicts(self, new_session: Session, now: Millis) -> bool:
        if not self.sessions:
            return False
        oldest = min(self.sessions.values(), key=lambda s: s.used_at)
        if now - oldest.used_at > EVICTION_MS:
            self.ends(oldest.id)
            return True
        # A session is safe from larger ones while it is young, and a client's never from a follower's.
        least = min(self._evictable(new_session, now), key=_weight, default=None)
        if least is None or _weight(least) >= _weight(new_session):
            return False
        self.ends(least.id)
        return True

    def _evictable(self, new_session: Session, now: Millis) -> Iterable[Session]:
        return (
            s
            for s in self.sessions.values()
            if now - s.created_at > EVICTION_MS or (new_session.is_privileged and not s.is_privileged)
        )


def _weight(session: Session) -> tuple[bool, int]:
    return session.is_privileged, len(session.parts)
