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
from isr_broker.core.stamps import Stamp, Stamped, bare, stamp_of, stamp_tags, stamps_in, with_stamp
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import cluster_tags
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
class _SessionPartition:
    """A partition as the leader has it in the session."""

    topic_id: bytes
    envelope: Message | Stamped

    @property
    def fetch(self) -> FetchRequest:
        """The question."""
        message = bare(self.envelope)
        assert isinstance(message, FetchRequest)
        return message


@attrs.define
class Fetcher:
    """The conversation with one leader. `topic_id` knows the ids of topics, zeros for one that is no more.

    - `cluster`: the id of this one, by which a broker of another one at the leader's address refuses.
    - `questions`: what cores here ask that leader; `session_partitions`: what the session has; `changed_partitions`:
      where these may differ.
    - `ends`: questions where an epoch ends, which go first (OffsetForLeaderEpoch); `asking` those in flight.
    - `told_offsets`: the watermark and log start that each partition's core was told last.
    """

    me: BrokerId
    leader: BrokerId
    settings: Settings
    cluster: str
    topic_id: Callable[[str], bytes]
    questions: dict[TopicPartition, Message | Stamped] = attrs.field(factory=dict[TopicPartition, Message | Stamped])
    session_partitions: dict[TopicPartition, _SessionPartition] = attrs.field(
        factory=dict[TopicPartition, _SessionPartition]
    )
    changed_partitions: dict[TopicPartition, None] = attrs.field(factory=dict[TopicPartition, None])
    ends: dict[TopicPartition, Message | Stamped] = attrs.field(factory=dict[TopicPartition, Message | Stamped])
    asking: dict[TopicPartition, Message | Stamped] | None = None
    told_offsets: dict[TopicPartition, tuple[int, int] | None] = attrs.field(
        factory=dict[TopicPartition, tuple[int, int] | None]
    )
    session_id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    correlation: int = 0

    # What cores want

    def put(self, envelope: Message | Stamped) -> None:
        """A core asks the leader."""
        message = bare(envelope)
        match message:
            case OffsetForLeaderEpochRequest():
                self.drop(message.partition)
                self.ends[message.partition] = envelope
            case FetchRequest():
                self.questions[message.partition] = with_stamp(message, stamp_of(envelope))
                self.changed_partitions[message.partition] = None
                self.told_offsets.setdefault(message.partition, None)
            case _:
                raise AssertionError(f"no question to a leader: {message}")

    def drop(self, tp: TopicPartition) -> None:
        """A core no longer asks this leader."""
        self.ends.pop(tp, None)
        self.told_offsets.pop(tp, None)
        if self.questions.pop(tp, None) is not None:
            self.changed_partitions[tp] = None

    # The conversation

    def next(self) -> bytes | None:
        """The next OffsetForLeaderEpoch or Fetch; None while no core asks."""
        self.correlation += 1
        if self.ends:
            self.asking, self.ends = self.ends, {}
            return self._ask(
                protocol.OFFSET_FOR_LEADER_EPOCH, EPOCH_VERSION, _epoch_ends_of(self.me, self.cluster, self.asking)
            )
        if not self.questions:
            return None
        if self.epoch == INITIAL_EPOCH:
            self.session_partitions.clear()
            self.changed_partitions = dict.fromkeys(self.questions)
        forgotten_partitions: list[tuple[bytes, int]] = []
        added: list[_SessionPartition] = []
        for tp in self.changed_partitions:
            before, wants = self.session_partitions.pop(tp, None), self.questions.get(tp)
            now = None if wants is None else _SessionPartition(self.topic_id(tp.topic), wants)
            if before is not None and (now is None or now.topic_id != before.topic_id):
                forgotten_partitions.append((before.topic_id, tp.partition))
            if now is not None:
                self.session_partitions[tp] = now
                if now != before:
                    added.append(now)
        self.changed_partitions.clear()
        return self._ask(protocol.FETCH, FETCH_VERSION, self._fetch(added, forgotten_partitions))

    def _ask(self, key: int, version: int, fields: Answer) -> bytes:
        return protocol.ask(key, version, self.correlation, f"broker-{self.me}-fetcher-{self.leader}", fields)

    def _fetch(self, added: list[_SessionPartition], forgotten_partitions: list[tuple[bytes, int]]) -> Answer:
        fetch = next(iter(self.session_partitions.values())).fetch
        topics: dict[bytes, list[Answer]] = {}
        for session_partition in added:
            topics.setdefault(session_partition.topic_id, []).append(
                {
                    "partition": session_partition.fetch.partition.partition,
                    "current_leader_epoch": session_partition.fetch.leader_epoch,
                    "fetch_offset": session_partition.fetch.offset,
                    "last_fetched_epoch": session_partition.fetch.last_epoch,
                    "log_start_offset": session_partition.fetch.log_start,
                    "partition_max_bytes": session_partition.fetch.max_bytes,
                }
            )
        forgotten_numbers: dict[bytes, list[int]] = {}
        for topic_id, number in forgotten_partitions:
            forgotten_numbers.setdefault(topic_id, []).append(number)
        return {
            "cluster_id": self.cluster,
            "replica_state": {"replica_id": self.me, "replica_epoch": fetch.broker_epoch},
            "max_wait": fetch.max_wait_ms,
            "min_bytes": self.settings.replica_fetch_min_bytes,
            "max_bytes": self.settings.replica_fetch_response_max_bytes,
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "topics": [{"topic_id": t, "partitions": p} for t, p in topics.items()],
            "forgotten_topics_data": [{"topic_id": t, "partitions": p} for t, p in forgotten_numbers.items()],
            HEADER_TAGS: stamp_tags(_stamps(asked.envelope for asked in added)),
        }

    def take_answer(self, frame: bytes) -> list[Parcel]:
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
        by_id = {(asked.topic_id, tp.partition): asked for tp, asked in self._named_partitions(response.body)}
        stamps, parcels = stamps_in(response.tags), list[Parcel]()
        for topic in response.body.all("responses"):
            for p in topic.all("partitions"):
                asked = by_id.get((topic.data("topic_id") or b"", p.number("partition_index")))
                if asked is not None and self._is_current(asked):
                    self._says(asked, p, stamps, parcels)
        return parcels

    def _is_current(self, session_partition: _SessionPartition) -> bool:
        """Whether the topic is still the one that was asked about; if not, it is asked about again.

        The first question about a topic that was deleted and created anew is the first one about the old topic: the
        cores could not tell the answers apart, and the old topic's records would be appended to the new one's log.
        """
        tp = session_partition.fetch.partition
        current = self.topic_id(tp.topic) == session_partition.topic_id
        if not current:
            self.changed_partitions[tp] = None
        return current

    def _named_partitions(self, body: Fields) -> Iterable[tuple[TopicPartition, _SessionPartition]]:
        """What was asked about the partitions that an answer may be about."""
        numbers = {p.number("partition_index") for t in body.all("responses") for p in t.all("partitions")}
        return (
            ((tp, asked) for tp, asked in self.session_partitions.items() if tp.partition in numbers) if numbers else ()
        )

    def _response(self, key: int, version: int, frame: bytes) -> protocol.Response:
        response = protocol.parse_answer(key, version, frame)
        if response.correlation != self.correlation:
            raise BadFrame(f"the answer to request {response.correlation}, {self.correlation} is expected")
        return response

    def _says(
        self,
        session_partition: _SessionPartition,
        partition_data: Fields,
        stamps: dict[tuple[str, int], Stamp],
        parcels: list[Parcel],
    ) -> None:
        """What is said of one partition, unless it is nothing new; whoever was told asks again or not at all."""
        fetch, tp = session_partition.fetch, session_partition.fetch.partition
        stamp = stamps.get((tp.topic, tp.partition))
        error, ends = error_of(partition_data.number("error_code", 0)), partition_data.part("diverging_epoch")
        records, watermark = partition_data.data("records") or b"", max(partition_data.number("high_watermark"), 0)
        news = (watermark, max(partition_data.number("log_start_offset"), 0))
        diverging = (
            EpochEnd(ends.number("epoch"), ends.number("end_offset")) if ends.number("end_offset") >= 0 else None
        )
        nothing = error is Error.NONE and diverging is None and not records
        if (
            nothing
            and stamp is None
            and (stamp_of(session_partition.envelope) is not None or self.told_offsets.get(tp) == news)
        ):
            return
        if self.questions.get(tp) == session_partition.envelope:
            del self.questions[tp]
            self.changed_partitions[tp] = None
            self.told_offsets[tp] = news if error is Error.NONE and diverging is None else None
        answer = fetch.answer(
            self.leader,
            error=error,
            diverging=diverging,
            records=records,
            high_watermark=watermark,
            log_start=news[1],
        )
        parcels.append((self.leader, self.me, with_stamp(answer, stamp)))

    def _ends_said(self, asking: dict[TopicPartition, Message | Stamped], response: protocol.Response) -> list[Parcel]:
        stamps, parcels = stamps_in(response.tags), list[Parcel]()
        for topic in response.body.all("topics"):
            for p in topic.all("partitions"):
                tp = TopicPartition(topic.text("topic"), p.number("partition"))
                request = bare(asking[tp]) if tp in asking else None
                if not isinstance(request, OffsetForLeaderEpochRequest):
                    continue
                error = error_of(p.number("error_code", 0))
                ends = EpochEnd(p.number("leader_epoch"), p.number("end_offset")) if error is Error.NONE else None
                answer = request.answer(self.leader, ends, error)
                parcels.append((self.leader, self.me, with_stamp(answer, stamps.get((tp.topic, tp.partition)))))
        return parcels

    def _begin_again(self) -> None:
        self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH

    def take_loss(self) -> list[Parcel]:
        """The connection is lost: what cores asked is lost, and so is the session."""
        lost_messages: list[Message | Stamped] = [
            *self.ends.values(),
            *(self.asking or {}).values(),
            *self.questions.values(),
        ]
        self._begin_again()
        self.questions.clear()
        self.changed_partitions.clear()
        self.told_offsets.clear()
        self.ends, self.asking = {}, None
        return [(self.me, self.leader, sent) for sent in lost_messages]


def _stamps(envelopes: Iterable[Message | Stamped]) -> dict[tuple[str, int], Stamp]:
    stamps: dict[tuple[str, int], Stamp] = {}
    for each in envelopes:
        message = bare(each)
        if isinstance(each, Stamped) and isinstance(message, FetchRequest | OffsetForLeaderEpochRequest):
            stamps[message.partition.topic, message.partition.partition] = each.stamp
    return stamps


def _epoch_ends_of(me: BrokerId, cluster: str, asking: dict[TopicPartition, Message | Stamped]) -> Answer:
    topics: dict[str, list[Answer]] = {}
    for tp, sent in asking.items():
        request = bare(sent)
        assert isinstance(request, OffsetForLeaderEpochRequest)
        topics.setdefault(tp.topic, []).append(
            {
                "partition": tp.partition,
                "current_leader_epoch": request.leader_epoch,
                "leader_epoch": request.last_epoch,
            }
        )
    return {
        "replica_id": me,
        "topics": [{"topic": t, "partitions": p} for t, p in topics.items()],
        HEADER_TAGS: {**stamp_tags(_stamps(asking.values())), **cluster_tags(cluster)},
    }
