"""Fetch sessions, and fetches of followers: what is said, what is left out, and what is refused (KIP-227)."""

from __future__ import annotations

import random
from typing import cast

import pytest
from tests.test_broker_wire import mangled, one_broker

from isr_broker import fetch_sessions, wire
from isr_broker.decoder import BadFrame
from isr_broker.fetch_sessions import EVICTION_MS, Part, Session, SessionCache
from isr_broker.fetcher import Fetcher
from isr_broker.messages import (
    EpochEnd,
    Error,
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from isr_broker.record_batch import new_batch
from isr_broker.requests import Requests
from isr_broker.settings import Settings
from isr_broker.stamps import Stamp, Stamped, bare
from isr_broker.wire import Answer, Fields


class Client:
    """Asks one broker, of which it takes the clock along."""

    def __init__(self, requests: Requests, version: int = 12) -> None:
        self.requests, self.version, self.now = requests, version, 20_000
        self.waiting: list[Fields] = []

    def ask(self, key: int, version: int, fields: Answer) -> Fields | None:
        """The answer, if there is one at once."""
        found: list[Fields] = []
        request = wire.parse(wire.ask(key, version, 1, "test", fields)[4:])
        assert isinstance(request, wire.Request)

        def reply(said: Answer | None) -> None:
            if said is not None:
                frame = wire.answer(key, version, 1, said)
                (found if not returned else self.waiting).append(wire.answered(key, version, frame[4:]).body)

        returned = False
        self.requests.serve(request, self.now, reply)
        returned = True
        return found[0] if found else None

    def fetch(self, session: int, epoch: int, *wanted: tuple[int, int], wait: int = 0, **more: object) -> Fields | None:
        """Fetch partitions of `t`, each as number and offset."""
        partitions = [{"partition": p, "fetch_offset": o, "partition_max_bytes": 10_000} for p, o in wanted]
        named = {"topic_id": self.topic_id} if self.version >= 13 else {"topic": "t"}
        topics = [{**named, "partitions": partitions}] if wanted else []
        fields = {"session_id": session, "session_epoch": epoch, "topics": topics, "max_wait": wait, "max_bytes": 10**6}
        return self.ask(wire.FETCH, self.version, fields | more)

    @property
    def topic_id(self) -> bytes:
        return self.requests.admin.topics.uuid("t")

    def produce(self, partition: int, value: bytes = b"x") -> None:
        rows = [{"index": partition, "records": new_batch(value)}]
        fields: Answer = {"acks": 1, "timeout": 1000, "topic_data": [{"name": "t", "partition_data": rows}]}
        assert self.ask(wire.PRODUCE, 8, fields) is not None
        self.tick()

    def tick(self, later: int = 0) -> None:
        self.now += later
        while (at := self.requests.runtime.deadline()) is not None and at <= self.now:
            self.requests.runtime.tick(self.now)


@pytest.fixture
def client() -> Client:
    """A client of a broker that has the topic `t` with three partitions."""
    client = Client(one_broker())
    topics = [{"name": "t", "num_partitions": 3, "replication_factor": 1}]
    client.ask(wire.DELETE_TOPICS, 1, {"topic_names": ["t"], "timeout": 100})
    client.ask(wire.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100})
    client.tick(100)
    return client


def rows(answer: Fields | None) -> dict[int, tuple[int, bool]]:
    """Of each partition that an answer names, its error and whether it has records."""
    assert answer is not None
    assert answer.number("error_code", 0) == 0
    found = [p for t in answer.all("responses") for p in t.all("partitions")]
    return {p.number("partition_index"): (p.number("error_code"), bool(p.data("records"))) for p in found}


EMPTY, FULL = (0, False), (0, True)


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_a_session_is_told_what_is_new_and_nothing_else(client: Client, version: int) -> None:
    client.version = version
    client.produce(1)
    first = client.fetch(0, 0, (0, 0), (1, 0), (2, 0))
    assert rows(first) == {0: EMPTY, 1: FULL, 2: EMPTY}, "the first answer names all"
    assert first is not None
    session = first.number("session_id")
    assert session > 0
    assert rows(client.fetch(session, 1, (1, 1))) == {}, "only what was read is said, and nothing is new"
    client.produce(2)
    assert rows(client.fetch(session, 2)) == {2: FULL}
    assert rows(client.fetch(session, 3)) == {2: FULL}, "it did not say that it has that"
    forgotten = [{"topic_id": client.topic_id, "topic": "t", "partitions": [2]}]
    assert rows(client.fetch(session, 4, forgotten_topics_data=forgotten)) == {}
    client.produce(0)
    assert rows(client.fetch(session, 5, (1, 1), (0, 0))) == {0: FULL}


def test_a_watermark_that_moved_is_told_once(client: Client) -> None:
    first = client.fetch(0, 0, (0, 1))
    assert rows(first) == {0: (Error.OFFSET_OUT_OF_RANGE.value, False)}
    assert first is not None
    session = first.number("session_id")
    assert rows(client.fetch(session, 1)) == {0: (Error.OFFSET_OUT_OF_RANGE.value, False)}, "errors are told again"
    client.produce(0)
    answer = client.fetch(session, 2)
    assert rows(answer) == {0: EMPTY}
    assert answer is not None
    assert answer.all("responses")[0].all("partitions")[0].number("high_watermark") == 1
    assert rows(client.fetch(session, 3)) == {}


@pytest.mark.parametrize("version", [12, 17])
def test_a_fetch_that_is_out_of_order_or_of_no_session_is_refused(client: Client, version: int) -> None:
    client.version = version

    def error(session: int, epoch: int, *wanted: tuple[int, int]) -> int:
        answer = client.fetch(session, epoch, *wanted)
        assert answer is not None
        assert not answer.all("responses")
        return answer.number("error_code")

    first = client.fetch(0, 0, (0, 0))
    assert first is not None
    session = first.number("session_id")
    assert error(session + 1, 1) == Error.FETCH_SESSION_ID_NOT_FOUND.value
    assert error(session, 2) == Error.INVALID_FETCH_SESSION_EPOCH.value
    assert error(session, 1) == 0
    assert error(session, 1) == Error.INVALID_FETCH_SESSION_EPOCH.value
    client.version = 13 if version == 12 else 12
    assert error(session, 2) == Error.FETCH_SESSION_TOPIC_ID_ERROR.value
    client.version = version
    assert rows(client.fetch(session, -1, (0, 0))) == {0: EMPTY}, "the last fetch of a session is full"
    assert error(session, 2) == Error.FETCH_SESSION_ID_NOT_FOUND.value


def test_a_parked_fetch_of_a_session_is_answered_by_the_first_record(client: Client) -> None:
    first = client.fetch(0, 0, (0, 0), (1, 0))
    assert first is not None
    session = first.number("session_id")
    assert client.fetch(session, 1, wait=500) is None
    client.produce(1)
    assert [rows(answer) for answer in client.waiting] == [{1: FULL}]
    client.waiting.clear()
    assert client.fetch(session, 2, (1, 1), wait=500) is None
    asked = client.requests.runtime.requests
    client.tick(499)
    assert not client.waiting, "the other partition's question stayed with its replica"
    client.tick(2)
    assert [rows(answer) for answer in client.waiting] == [{}]
    assert client.requests.runtime.requests == asked
    assert client.fetch(session, 3, wait=500) is None
    asked = client.requests.runtime.requests
    assert client.fetch(session, 4, (0, 0), (1, 1), wait=500) is None
    assert client.requests.runtime.requests == asked, "nor is a question asked twice that is said twice"


def test_a_topic_that_is_created_again_is_not_read_under_its_old_id(client: Client) -> None:
    client.version = 17
    client.produce(0)
    old = client.topic_id
    first = client.fetch(0, 0, (0, 1))
    assert first is not None
    client.ask(wire.DELETE_TOPICS, 1, {"topic_names": ["t"], "timeout": 100})
    topics = [{"name": "t", "num_partitions": 3, "replication_factor": 1}]
    client.ask(wire.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100})
    client.tick(100)
    client.produce(0)
    client.produce(0)
    assert client.topic_id != old
    assert rows(client.fetch(first.number("session_id"), 1)) == {0: (Error.UNKNOWN_TOPIC_ID.value, False)}


def test_a_consumer_that_believes_in_another_leader_epoch_is_told(client: Client) -> None:
    def error(epoch: int) -> int:
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100, "current_leader_epoch": epoch}
        answer = client.fetch(0, -1, topics=[{"topic": "t", "partitions": [asked]}])
        return rows(answer)[0][0]

    (replica, *_) = (r for tp, r in client.requests.runtime.node.held.items() if tp == TopicPartition("t", 0))
    assert error(replica.leader_epoch) == 0
    assert error(replica.leader_epoch + 1) == Error.UNKNOWN_LEADER_EPOCH.value
    assert replica.leader_epoch == 0 or error(replica.leader_epoch - 1) == Error.FENCED_LEADER_EPOCH.value


# The cache


def session_of(size: int, replica: int = -1) -> Session:
    session = Session(replica)
    session.parts |= {("t", n): Part("t", n, 0, 0, -1, -1) for n in range(size)}
    return session


def test_the_cache_is_bounded_and_gives_way_by_age_and_privilege_and_size() -> None:
    cache = SessionCache(2)

    def admitted(session: Session, now: int) -> bool:
        cache.admits(session, now)
        return session.id in cache.sessions

    small, large = session_of(1), session_of(5)
    assert admitted(small, 0)
    assert admitted(large, 0)
    assert small.id != large.id
    assert not admitted(session_of(9), 10), "the others are young"
    follower = session_of(2, replica=2)
    assert admitted(follower, 10), "a follower takes the place of a client at once"
    assert small.id not in cache.sessions
    cache.continues(large, EVICTION_MS)
    cache.continues(follower, EVICTION_MS)
    assert not admitted(session_of(4), EVICTION_MS + 20), "neither of the least client"
    assert admitted(session_of(6), EVICTION_MS + 20), "a larger one takes the place of a smaller that is not young"
    assert large.id not in cache.sessions
    assert admitted(session_of(1), 3 * EVICTION_MS), "and anybody that of one not used for long"
    assert len(cache.sessions) == 2
    assert not admitted(session_of(0), 9 * EVICTION_MS), "an empty fetch needs none"


def test_no_session_is_given_beyond_the_partitions_that_all_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    cache = SessionCache(100)
    for _ in range(4):
        cache.admits(session_of(4), 0)
    assert len(cache.sessions) == 2
    grown = next(iter(cache.sessions.values()))
    grown.parts |= session_of(9).parts
    cache.continues(grown, 1)
    assert grown.id not in cache.sessions


# A follower and its leader


TP = TopicPartition("t", 0)
IDS: dict[str, bytes] = {"t": b"t" * 16}


def fetcher() -> Fetcher:
    return Fetcher(2, 1, Settings(), lambda topic: IDS.get(topic, bytes(16)))


def fetch_of(partition: int = 0, offset: int = 5, epoch: int = 3) -> FetchRequest:
    return FetchRequest(
        partition=TopicPartition("t", partition),
        replica=2,
        broker_epoch=77,
        leader_epoch=epoch,
        offset=offset,
        last_epoch=2,
        max_wait_ms=500,
    )


def asked(of: Fetcher) -> wire.Request:
    frame = of.next()
    assert frame is not None
    request = wire.parse(frame[4:])
    assert isinstance(request, wire.Request)
    return request


def names(request: wire.Request) -> list[int]:
    return [p.number("partition") for t in request.body.all("topics") for p in t.all("partitions")]


def answer(request: wire.Request, session: int, *partitions: Answer, **more: object) -> bytes:
    topics = [{"topic_id": IDS["t"], "partitions": list(partitions)}] if partitions else []
    fields = {"session_id": session, "responses": topics, **more}
    return wire.answer(request.key, request.version, request.correlation, fields)[4:]


def said(partition: int, watermark: int = 0, **more: object) -> Answer:
    return {"partition_index": partition, "high_watermark": watermark, "error_code": 0, "records": b"", **more}


def test_a_follower_says_who_it_is_and_then_only_what_changes() -> None:
    one = fetcher()
    assert one.next() is None
    for partition in range(3):
        one.put(fetch_of(partition))
    first = asked(one)
    assert (first.version, first.client) == (17, "broker-2-fetcher-1")
    state = first.body.part("replica_state")
    assert (state.number("replica_id"), state.number("replica_epoch")) == (2, 77)
    assert (first.body.number("session_id"), first.body.number("session_epoch")) == (0, 0)
    assert names(first) == [0, 1, 2]
    row = first.body.all("topics")[0].all("partitions")[0]
    told = ("current_leader_epoch", "fetch_offset", "last_fetched_epoch", "partition_max_bytes")
    assert [row.number(name) for name in told] == [3, 5, 2, 1_048_576]

    found = one.answered(answer(first, 9, said(0, 5), said(1, 5), said(2, 5, records=new_batch(b"x"))))
    assert [cast("FetchResponse", bare(m)).high_watermark for _, _, m in found] == [5, 5, 5], "the first watermark"
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    second = asked(one)
    assert (second.body.number("session_id"), second.body.number("session_epoch")) == (9, 1)
    assert names(second) == []
    forgotten = second.body.all("forgotten_topics_data")
    assert [t.numbers("partitions") for t in forgotten] == [[2]], "whose records are still being written"
    assert one.answered(answer(second, 9, said(1, 5))) == [], "nothing new is no answer to a core"
    one.put(fetch_of(2, 6))
    third = asked(one)
    assert (names(third), third.body.number("session_epoch")) == ([2], 2)
    one.drop(TopicPartition("t", 0))
    assert len(one.answered(answer(third, 9))) == 0
    assert [t.numbers("partitions") for t in asked(one).body.all("forgotten_topics_data")] == [[0]]


@pytest.mark.parametrize("error", [Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH])
def test_a_follower_whose_session_is_over_begins_again_with_everything(error: Error) -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    one.answered(answer(asked(one), 9))
    assert names(again := asked(one)) == []
    assert one.answered(answer(again, 0, error_code=error.value)) == []
    full = asked(one)
    assert (names(full), full.body.number("session_epoch")) == ([0, 1], 0)
    with pytest.raises(BadFrame):
        one.answered(answer(full, 0, error_code=error.value))


def test_what_is_in_flight_is_lost_with_the_connection_and_everything_is_asked_again() -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.answered(answer(asked(one), 9))
    asked(one)
    assert one.broken() == [(2, 1, fetch_of(0))]
    assert one.next() is None
    one.put(fetch_of(0))
    assert asked(one).body.number("session_epoch") == 0


def test_a_follower_is_told_where_its_log_parts_and_of_errors() -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    parts = said(0, diverging_epoch={"epoch": 1, "end_offset": 3})
    fenced = said(1, -1, error_code=Error.FENCED_LEADER_EPOCH.value)
    (_, _, first), (_, _, second) = one.answered(answer(asked(one), 9, parts, fenced))
    expected = {"partition": TP, "leader": 1, "leader_epoch": 3, "offset": 5, "last_epoch": 2}
    assert first == FetchResponse(**expected, diverging=EpochEnd(1, 3))  # type: ignore[arg-type]
    assert second == FetchResponse(
        **expected | {"partition": TopicPartition("t", 1)},  # type: ignore[arg-type]
        error=Error.FENCED_LEADER_EPOCH,
    )


def test_with_traces_every_message_has_its_stamp_and_every_answer_is_told() -> None:
    one, stamp = fetcher(), Stamp("2.1:7", {"2.1": 3})
    one.put(Stamped(fetch_of(0), stamp))
    request = asked(one)
    assert "10000" in str(request.tags)
    assert one.answered(answer(request, 9, said(0, 5))) == [], "the leader's core has not answered"
    again = asked(one)
    back = {wire.HEADER_TAGS: {10_000: b'[["t", 0, "1.1:9", {"1.1": 4}]]'}}
    ((_, _, found),) = one.answered(answer(again, 9, said(0, 5), **back))
    assert isinstance(found, Stamped)
    assert found.stamp == Stamp("1.1:9", {"1.1": 4})


def test_a_follower_asks_where_an_epoch_ends_before_it_fetches() -> None:
    one = fetcher()
    asks = OffsetForLeaderEpochRequest(partition=TP, replica=2, leader_epoch=3, offset=5, last_epoch=2)
    one.put(fetch_of(1))
    one.put(asks)
    request = asked(one)
    assert request.key == wire.OFFSET_FOR_LEADER_EPOCH
    row = {"partition": 0, "error_code": 0, "leader_epoch": 1, "end_offset": 4}
    fields = {"topics": [{"topic": "t", "partitions": [row]}]}
    frame = wire.answer(request.key, request.version, request.correlation, fields)[4:]
    expected = OffsetForLeaderEpochResponse(
        partition=TP, leader=1, leader_epoch=3, offset=5, last_epoch=2, ends=EpochEnd(1, 4)
    )
    assert one.answered(frame) == [(1, 2, expected)]
    assert asked(one).key == wire.FETCH


def test_a_mangled_answer_is_an_answer_or_a_bad_frame() -> None:
    chance, outcomes = random.Random(4), {"answers": 0, "bad": 0}
    for _ in range(3_000):
        one = fetcher()
        one.put(fetch_of(0))
        parts = said(0, 7, diverging_epoch={"epoch": 1, "end_offset": 3}, records=b"records")
        frame = mangled(chance, answer(asked(one), 9, parts, **{wire.HEADER_TAGS: {10_000: b'[["t", 0, "1", {}]]'}}))
        try:
            one.answered(frame)
            outcomes["answers"] += 1
        except BadFrame:
            outcomes["bad"] += 1
    assert min(outcomes.values()) > 300


# A fetch that says it is a follower's


def follower(client: Client, replica: int, version: int) -> int:
    """The error that a fetch gets that is from this replica."""
    client.version = version
    state: Answer = {"replica_id": replica, "replica_epoch": 10**6}
    return rows(client.fetch(0, 0, (0, 0), wait=500, replica_id=replica, replica_state=state))[0][0]


@pytest.mark.parametrize("replica", [0, 1, 2])
def test_who_is_no_follower_gets_nothing_as_one(client: Client, replica: int) -> None:
    client.produce(0)
    for version in (12, 14, 15, 17):
        assert follower(client, replica, version) == Error.NOT_LEADER_OR_FOLLOWER.value
    for version in (4, 11):
        assert follower(client, replica, version) == Error.INVALID_REQUEST.value, "it cannot be told of divergence"
    assert rows(client.fetch(0, -1, (0, 0))) == {0: FULL}, "as a consumer it may read"


def test_without_a_free_slot_everybody_fetches_in_full() -> None:
    requests = one_broker()
    requests.fetches.cache.slots = 0
    client = Client(requests)
    for _ in range(2):
        first = client.fetch(0, 0, (0, 0))
        assert first is not None
        assert (first.number("session_id"), rows(first)) == (0, {0: EMPTY})
