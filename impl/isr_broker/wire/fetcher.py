"""A follower's fetches from one leader, as one fetch session (FetchSessionHandler, AbstractFetcherThread; KIP-227).

Each replica's core asks for its partition, and waits. Together they are one Fetch at a time; in a session it names the
partitions that ask something else than before, and those that ask nothing any more. A partition that the answer leaves
out, or says nothing new about, goes on waiting, and its core is told nothing. While traces are written every answer has
a stamp, and is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    Message,
    OffsetForLeaderEpochRequest,
    TopicPartition,
    error_of,
)
from isr_broker.core.stamps import Stamp, Stamped, bare, stamp_of, stamps_in, with_stamp, written
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.fetch_sessions import INITIAL_EPOCH, NO_SESSION
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Fields

FETCH_VERSION: Final = 17
EPOCH_VERSION: Final = 4
_MAX_INT: Final = 2**31 - 1
_BEGIN_AGAIN: Final = (
    Error.FETCH_SESSION_ID_NOT_FOUND,
    Error.INVALID_FETCH_SESSION_EPOCH,
    Error.FETCH_SESSION_TOPIC_ID_ERROR,
)


@attrs.frozen
class _Asked:
    """A partition as the leader has it in the session."""

    topic_id: bytes
    sent: Message | Stamped

    @property
    def fetch(self) -> FetchRequest:
        """The question."""
        message = bare(self.sent)
        assert isinstance(message, FetchRequest)
        return message


@attrs.define
class Fetcher:
    """The conversation with one leader. `topic_id` knows the ids of topics, zeros for one that is no more.

    - `wanted`: what cores here ask that leader; `asked`: what the session has; `changed`: where these may differ.
    - `ends`: questions where an epoch ends, which go first (OffsetForLeaderEpoch); `asking` those in flight.
    - `told`: the watermark and log start that each partition's core was told last.
    """

    me: BrokerId
    leader: BrokerId
    settings: Settings
    topic_id: Callable[[str], bytes]
    wanted: dict[TopicPartition, Message | Stamped] = attrs.field(factory=dict[TopicPartition, Message | Stamped])
    asked: dict[TopicPartition, _Asked] = attrs.field(factory=dict[TopicPartition, _Asked])
    changed: dict[TopicPartition, None] = attrs.field(factory=dict[TopicPartition, None])
    ends: dict[TopicPartition, Message | Stamped] = attrs.field(factory=dict[TopicPartition, Message | Stamped])
    asking: dict[TopicPartition, Message | Stamped] | None = None
    told: dict[TopicPartition, tuple[int, int] | None] = attrs.field(
        factory=dict[TopicPartition, tuple[int, int] | None]
    )
    session_id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    correlation: int = 0

    # What cores want

    def put(self, sent: Message | Stamped) -> None:
        """A core asks the leader."""
        message = bare(sent)
        match message:
            case OffsetForLeaderEpochRequest():
                self.drop(message.partition)
                self.ends[message.partition] = sent
            case FetchRequest():
                self.wanted[message.partition] = with_stamp(message, stamp_of(sent))
                self.changed[message.partition] = None
                self.told.setdefault(message.partition, None)
            case _:
                raise AssertionError(f"no question to a leader: {message}")

    def drop(self, tp: TopicPartition) -> None:
        """A core no longer asks this leader."""
        self.ends.pop(tp, None)
        self.told.pop(tp, None)
        if self.wanted.pop(tp, None) is not None:
            self.changed[tp] = None

    # The conversation

    def next(self) -> bytes | None:
        """The next OffsetForLeaderEpoch or Fetch; None while no core asks."""
        self.correlation += 1
        if self.ends:
            self.asking, self.ends = self.ends, {}
            return self._ask(protocol.OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, _epoch_ends_of(self.me, self.asking))
        if not self.wanted:
            return None
        if self.epoch == INITIAL_EPOCH:
            self.asked.clear()
            self.changed = dict.fromkeys(self.wanted)
        forgotten: list[tuple[bytes, int]] = []
        added: list[_Asked] = []
        for tp in self.changed:
            before, wants = self.asked.pop(tp, None), self.wanted.get(tp)
            now = None if wants is None else _Asked(self.topic_id(tp.topic), wants)
            if before is not None and (now is None or now.topic_id != before.topic_id):
                forgotten.append((before.topic_id, tp.partition))
            if now is not None:
                self.asked[tp] = now
                if now != before:
                    added.append(now)
        self.changed.clear()
        return self._ask(protocol.FETCH, FETCH_VERSION, self._fetch(added, forgotten))

    def _ask(self, key: int, version: int, fields: Answer) -> bytes:
        return protocol.ask(key, version, self.correlation, f"broker-{self.me}-fetcher-{self.leader}", fields)

    def _fetch(self, added: list[_Asked], forgotten: list[tuple[bytes, int]]) -> Answer:
        fetch = next(iter(self.asked.values())).fetch
        topics: dict[bytes, list[Answer]] = {}
        for asked in added:
            topics.setdefault(asked.topic_id, []).append(
                {
                    "partition": asked.fetch.partition.partition,
                    "current_leader_epoch": asked.fetch.leader_epoch,
                    "fetch_offset": asked.fetch.offset,
                    "last_fetched_epoch": asked.fetch.last_epoch,
                    "log_start_offset": asked.fetch.log_start,
                    "partition_max_bytes": asked.fetch.max_bytes,
                }
            )
        gone: dict[bytes, list[int]] = {}
        for topic_id, number in forgotten:
            gone.setdefault(topic_id, []).append(number)
        return {
            "replica_state": {"replica_id": self.me, "replica_epoch": fetch.broker_epoch},
            "max_wait": fetch.max_wait_ms,
            "min_bytes": self.settings.replica_fetch_min_bytes,
            "max_bytes": self.settings.replica_fetch_response_max_bytes,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": [{"topic_id": t, "partitions": p} for t, p in topics.items()],
            "forgotten_topics_data": [{"topic_id": t, "partitions": p} for t, p in gone.items()],
            HEADER_TAGS: written(_stamps(asked.sent for asked in added)),
        }

    def answered(self, frame: bytes) -> list[Parcel]:
        """The answer to the last request, as messages for the cores that asked."""
        if self.asking is not None:
            asking, self.asking = self.asking, None
            return self._ends_said(asking, self._response(protocol.OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, frame))
        response = self._response(protocol.FETCH, FETCH_VERSION, frame)
        error = error_of(response.body.number("error_code", 0))
        if error in _BEGIN_AGAIN and self.epoch != INITIAL_EPOCH:
            self._begin_again()
            return []
        if error is not Error.NONE:
            raise BadFrame(f"broker {self.leader} answers a fetch with {error.name}")
        self.session_id = response.body.number("session_id", NO_SESSION)
        self.epoch = INITIAL_EPOCH if self.session_id == NO_SESSION else self.epoch % _MAX_INT + 1
        by_id = {(asked.topic_id, tp.partition): asked for tp, asked in self._named(response.body)}
        stamps, found = stamps_in(response.tags), list[Parcel]()
        for topic in response.body.all("responses"):
            for p in topic.all("partitions"):
                asked = by_id.get((topic.data("topic_id") or b"", p.number("partition_index")))
                if asked is not None and self._is_current(asked):
                    self._says(asked, p, stamps, found)
        return found

    def _is_current(self, asked: _Asked) -> bool:
        """Whether the topic is still the one that was asked about; if not, it is asked about again.

        The first question about a topic that was deleted and created anew is the first one about the old topic: the
        cores could not tell the answers apart, and the old topic's records would be appended to the new one's log.
        """
        tp = asked.fetch.partition
        current = self.topic_id(tp.topic) == asked.topic_id
        if not current:
            self.changed[tp] = None
        return current

    def _named(self, body: Fields) -> Iterable[tuple[TopicPartition, _Asked]]:
        """What was asked about the partitions that an answer may be about."""
        numbers = {p.number("partition_index") for t in body.all("responses") for p in t.all("partitions")}
        return ((tp, asked) for tp, asked in self.asked.items() if tp.partition in numbers) if numbers else ()

    def _response(self, key: int, version: int, frame: bytes) -> protocol.Response:
        response = protocol.answered(key, version, frame)
        if response.correlation != self.correlation:
            raise BadFrame(f"the answer to request {response.correlation}, {self.correlation} is expected")
        return response

    def _says(self, asked: _Asked, said: Fields, stamps: dict[tuple[str, int], Stamp], found: list[Parcel]) -> None:
        """What is said of one partition, unless it is nothing new; whoever was told asks again or not at all."""
        fetch, tp = asked.fetch, asked.fetch.partition
        stamp = stamps.get((tp.topic, tp.partition))
        error, ends = error_of(said.number("error_code", 0)), said.part("diverging_epoch")
        records, watermark = said.data("records") or b"", max(said.number("high_watermark"), 0)
        news = (watermark, max(said.number("log_start_offset"), 0))
        diverging = (
            EpochEnd(ends.number("epoch"), ends.number("end_offset")) if ends.number("end_offset") >= 0 else None
        )
        nothing = error is Error.NONE and diverging is None and not records
        if nothing and stamp is None and (stamp_of(asked.sent) is not None or self.told.get(tp) == news):
            return
        if self.wanted.get(tp) == asked.sent:
            del self.wanted[tp]
            self.changed[tp] = None
            self.told[tp] = news if error is Error.NONE and diverging is None else None
        answer = fetch.answer(
            self.leader,
            error=error,
            diverging=diverging,
            records=records,
            high_watermark=watermark,
            log_start=news[1],
        )
        found.append((self.leader, self.me, with_stamp(answer, stamp)))

    def _ends_said(self, asking: dict[TopicPartition, Message | Stamped], response: protocol.Response) -> list[Parcel]:
        stamps, found = stamps_in(response.tags), list[Parcel]()
        for topic in response.body.all("topics"):
            for p in topic.all("partitions"):
                tp = TopicPartition(topic.text("topic"), p.number("partition"))
                asked = bare(asking[tp]) if tp in asking else None
                if not isinstance(asked, OffsetForLeaderEpochRequest):
                    continue
                error = error_of(p.number("error_code", 0))
                ends = EpochEnd(p.number("leader_epoch"), p.number("end_offset")) if error is Error.NONE else None
                answer = asked.answer(self.leader, ends, error)
                found.append((self.leader, self.me, with_stamp(answer, stamps.get((tp.topic, tp.partition)))))
        return found

    def _begin_again(self) -> None:
        self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH

    def broken(self) -> list[Parcel]:
        """The connection is lost: what cores asked is lost, and so is the session."""
        lost: list[Message | Stamped] = [*self.ends.values(), *(self.asking or {}).values(), *self.wanted.values()]
        self._begin_again()
        self.wanted.clear()
        self.changed.clear()
        self.told.clear()
        self.ends, self.asking = {}, None
        return [(self.me, self.leader, sent) for sent in lost]


def _stamps(sent: Iterable[Message | Stamped]) -> dict[tuple[str, int], Stamp]:
    found: dict[tuple[str, int], Stamp] = {}
    for each in sent:
        message = bare(each)
        if isinstance(each, Stamped) and isinstance(message, FetchRequest | OffsetForLeaderEpochRequest):
            found[message.partition.topic, message.partition.partition] = each.stamp
    return found


def _epoch_ends_of(me: BrokerId, asking: dict[TopicPartition, Message | Stamped]) -> Answer:
    topics: dict[str, list[Answer]] = {}
    for tp, sent in asking.items():
        asked = bare(sent)
        assert isinstance(asked, OffsetForLeaderEpochRequest)
        topics.setdefault(tp.topic, []).append(
            {
                "partition": tp.partition,
                "current_leader_epoch": asked.leader_epoch,
                "leader_epoch": asked.last_epoch,
            }
        )
    return {
        "replica_id": me,
        "topics": [{"topic": t, "partitions": p} for t, p in topics.items()],
        HEADER_TAGS: written(_stamps(asking.values())),
    }
