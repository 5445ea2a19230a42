"""Bytes in flight: what clients have sent and not been answered, and what they were answered and have not taken.

A connection whose client does not read is not read either, so what one connection can hold is bounded. All of them
together are bounded, too: beyond that the connection is closed that holds much and has not moved for long. So the
memory that clients can take does not grow with their number, and who reads what he asked for is not the one to go.

What clients send is counted when it arrives, before anybody reads it: who is not served any further may have sent more.

Kafka mutes a connection while it answers, sends records from their files, and bounds requests in memory where it is
asked to (queued.max.request.bytes). Here requests of one connection overlap, and an answer is built in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from isr_broker.core.messages import Millis

MOST_UNSENT: Final = 1 << 20
"""Bytes of answers that a connection may not have taken when its next request is served."""

MOST_UNANSWERED: Final = 16 << 20
"""Bytes of requests of a connection that wait for their answers when the next one is served."""

_SHARE: Final = 16
"""A consumer's fetch gets one part in so many of what is left in all."""
_LEAST_FETCH: Final = 1 << 20

OF_A_CONNECTION: Final = 1 << 14
"""Bytes of a connection that holds nothing: its tasks and buffers."""
OF_TLS: Final = 1 << 18
"""Bytes of the buffer that each connection with TLS has besides (asyncio's SSLProtocol.max_size)."""
PACE: Final = 100_000
"""Bytes a second of who moves: a connection that sends or takes less grows older all the same."""
FREE: Final = 1 << 14
"""Bytes of requests and answers that count against nobody while half of all is held beyond them."""
MUCH: Final = 8 << 20
"""Bytes that are worth giving back to the system once they are free; of less than that others have a use."""


@attrs.define(eq=False)
class Holder:
    """A connection, and the bytes that are there for it; `abort` closes it at once, `wake` says that it may have room.

    - `own`: of the connection itself; `questions`: of what its open fetch asks about.
    - `partial`: what has arrived and is not served yet; `requests`: of those that are not answered.
    - `answers`: made, and not taken; `fetches`: how many fetches have no answer that was taken.
    - `moved_at`: until when it has kept moving: it sent or took as much as `PACE` asks for.
    """

    abort: Callable[[], None]
    wake: Callable[[], None]
    moved_at: Millis
    own: int = 0
    questions: int = 0
    partial: int = 0
    requests: int = 0
    answers: int = 0
    fetches: int = 0
    is_open: bool = True

    @property
    def size(self) -> int:
        """All its bytes."""
        return self.own + self.questions + self.partial + self.requests + self.answers

    def moves(self, size: int, now: Millis) -> None:
        """It has sent or taken some bytes: a few of them count for a moment only."""
        self.moved_at = min(now, self.moved_at + 1_000 * size // PACE)

    @property
    def excess(self) -> int:
        """Bytes beyond what each may have."""
        return max(self.size - self.own - FREE, 0)

    def age(self, now: Millis) -> Millis:
        """For how long it has not moved; 1 for who moves."""
        return now - self.moved_at + 1

    def has_room(self, size: int, is_fetch: bool) -> bool:
        """Whether its next request, of so many bytes, is served now."""
        if is_fetch and self.fetches:
            return False
        return self.answers <= MOST_UNSENT and (not self.requests or self.requests + size <= MOST_UNANSWERED)


@attrs.define
class Flow:
    """The bytes in flight of all connections of a broker, at most `limit`; `peak`: the most since some were given back.

    Sizes of requests are with the four bytes that say how long they are.
    """

    limit: int
    now: Callable[[], Millis]
    log: Callable[[str], None]
    size: int = 0
    peak: int = 0
    holders: set[Holder] = attrs.field(factory=set[Holder])

    def open(self, abort: Callable[[], None], wake: Callable[[], None], own: int = OF_A_CONNECTION) -> Holder:
        """A new connection, which has so many bytes by itself."""
        holder = Holder(abort, wake, self.now(), own)
        self.holders.add(holder)
        self._grows(own)
        return holder

    def close(self, holder: Holder) -> None:
        """A connection is gone, and all that was there for it."""
        if holder.is_open:
            holder.is_open = False
            self.holders.discard(holder)
            self.size -= holder.size
            holder.wake()

    def has_shrunk(self) -> bool:
        """Whether there is much less than there was, since this was last so."""
        if self.peak - self.size < MUCH:
            return False
        self.peak = self.size
        return True

    def arrives(self, holder: Holder, size: int) -> None:
        """Some bytes of requests."""
        if holder.size == holder.own:
            # Until now it held nothing, for however long.
            holder.moved_at = self.now()
        holder.moves(size, self.now())
        if holder.is_open:
            holder.partial += size
            self._grows(size)

    def ends(self, holder: Holder, size: int) -> None:
        """So much of what has arrived has no answer, and is done with: a message of a broker."""
        if holder.is_open:
            self.size -= size
            holder.partial -= size

    def admits(self, holder: Holder, size: int, is_fetch: bool) -> None:
        """A request of so many bytes, which has arrived and for which there is room, is served."""
        holder.moved_at = self.now()
        if holder.is_open:
            holder.partial -= size
            holder.requests += size
            holder.fetches += is_fetch

    def holds(self, holder: Holder, size: int) -> None:
        """Its fetch, of which there is one at a time, asks about so much that has to be remembered until it is over."""
        if holder.is_open:
            holder.questions += size
            self._grows(size)

    def answers(self, holder: Holder, request: int, answer: int) -> None:
        """A request of so many bytes has an answer of so many."""
        if not holder.answers:
            # What it could not take before there was anything is not its fault.
            holder.moved_at = self.now()
        if holder.is_open:
            holder.requests -= request
            holder.answers += answer
            holder.wake()
            self._grows(answer - request)

    def sends(self, holder: Holder, size: int) -> None:
        """Some bytes of an answer were taken."""
        holder.moves(size, self.now())
        if holder.is_open:
            holder.answers -= size
            self.size -= size
            holder.wake()

    def has_sent(self, holder: Holder, is_fetch: bool) -> None:
        """An answer was taken as a whole."""
        holder.fetches -= is_fetch
        holder.moved_at = self.now()
        if holder.is_open and is_fetch:
            self.size -= holder.questions
            holder.questions = 0
        holder.wake()

    def room(self) -> int:
        """Bytes of records for a consumer's next fetch: the less is left in all the less, but always a batch."""
        return max((self.limit - self.size) // _SHARE, _LEAST_FETCH)

    def _worst(self, now: Millis) -> Holder:
        """Who takes most from others: bytes, by how long it has not moved.

        What each may have is free, as long as half of all is held beyond that. Else there are too many who hold little,
        and whoever has more is not why there is no room.
        """
        is_held_by_few = 2 * sum(holder.excess for holder in self.holders) >= self.limit
        return max(self.holders, key=lambda h: ((h.excess if is_held_by_few else 0) * h.age(now), h.size * h.age(now)))

    def _grows(self, size: int) -> None:
        self.size += size
        self.peak = max(self.peak, self.size)
        while self.size > self.limit and self.holders:
            now = self.now()
            worst = self._worst(now)
            self.log(
                f"{self.size:,} bytes are in flight: a connection that holds {worst.size:,} of them, and has not moved "
                f"for {(now - worst.moved_at) / 1000:.1f} s, is closed"
            )
            self.close(worst)
            worst.abort()
