"""Fetch sessions, and fetches of followers: what is said, what is left out, and what is refused (KIP-227)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs
import pytest
from immutables import Map
from tests.isr_broker.test_wire import one_broker

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import Error, Heartbeat, RegisterBroker, TopicPartition
from isr_broker.core.record_batch import new_batch
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.topics import Topics, uuid_of
from isr_broker.wire import fetch_questions, fetch_sessions, protocol
from isr_broker.wire.fetch_sessions import EVICTION_MS, Part, Session, SessionCache
from isr_broker.wire.protocol import Answer, Fields
from isr_broker.wire.requests import Requests


class Client:
    """Asks one broker, of which it takes the clock along."""

    def __init__(self, requests: Requests, version: int = 12) -> None:
        self.requests, self.version, self.now = requests, version, 20_000
        self.waiting: list[Fields] = []

    def ask(self, key: int, version: int, fields: Answer) -> Fields | None:
        """The answer, if there is one at once."""
        found: list[Fields] = []
        request = protocol.parse(protocol.ask(key, version, 1, "test", fields)[4:])
        assert isinstance(request, protocol.Request)

        def reply(said: Answer | None) -> None:
            if said is not None:
                frame = protocol.answer(key, version, 1, said)
                (found if not returned else self.waiting).append(protocol.parse_answer(key, version, frame[4:]).body)

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
        return self.ask(protocol.FETCH, self.version, {"min_bytes": 1} | fields | more)

    @property
    def topic_id(self) -> bytes:
        return self.requests.admin.topics.uuid("t")

    def produce(self, partition: int, value: bytes = b"x") -> None:
        rows = [{"index": partition, "records": new_batch(value)}]
        fields: Answer = {"acks": 1, "timeout": 1000, "topic_data": [{"name": "t", "partition_data": rows}]}
        assert self.ask(protocol.PRODUCE, 8, fields) is not None
        self.tick()

    def tick(self, later: int = 0) -> None:
        self.now += later
        while (at := self.requests.runtime.deadline()) is not None and at <= self.now:
            self.requests.runtime.tick(self.now)
        self.requests.fetches.tick(self.now)


@pytest.fixture
def client() -> Client:
    """A client of a broker that has the topic `t` with three partitions."""
    client = Client(one_broker())
    topics = [{"name": "t", "num_partitions": 3, "replication_factor": 1}]
    client.ask(protocol.DELETE_TOPICS, 1, {"topic_names": ["t"], "timeout": 100})
    client.ask(protocol.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100})
    client.tick(100)
    return client


def rows(answer: Fields | None) -> dict[int, tuple[int, bool]]:
    """Of each partition that an answer names, its error and whether it has records."""
    assert answer is not None
    assert answer.number("error_code", 0) == 0
    found = [p for t in answer.all("responses") for p in t.all("partitions")]
    return {p.number("partition_index"): (p.number("error_code"), bool(p.data("records"))) for p in found}


EMPTY, FULL = (0, False), (0, True)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
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
    client.ask(protocol.DELETE_TOPICS, 1, {"topic_names": ["t"], "timeout": 100})
    topics = [{"name": "t", "num_partitions": 3, "replication_factor": 1}]
    client.ask(protocol.CREATE_TOPICS, 5, {"topics": topics, "timeout": 100})
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

    (replica, *_) = (r for tp, r in client.requests.runtime.node.replicas.items() if tp == TopicPartition("t", 0))
    assert error(replica.leader_epoch) == 0
    assert error(replica.leader_epoch + 1) == Error.UNKNOWN_LEADER_EPOCH.value
    assert replica.leader_epoch == 0 or error(replica.leader_epoch - 1) == Error.FENCED_LEADER_EPOCH.value


def test_before_it_has_learned_of_any_topic_a_broker_knows_those_of_its_logs(client: Client) -> None:
    topic_id, runtime = client.topic_id, client.requests.runtime
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}
    client.version = 17

    def fetched(uuid: bytes) -> dict[int, tuple[int, bool]]:
        return rows(client.fetch(0, -1, topics=[{"topic_id": uuid, "partitions": [asked]}]))

    known = runtime.node
    runtime.node = attrs.evolve(known, partitions=Map(), brokers=Map())
    assert fetched(topic_id) == {0: EMPTY}
    assert fetched(uuid_of(999)) == {0: (Error.UNKNOWN_TOPIC_ID.value, False)}
    runtime.node = attrs.evolve(known, partitions=Map())
    assert fetched(topic_id) == {0: (Error.UNKNOWN_TOPIC_ID.value, False)}, "it has learned that there is none"


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


# Consumers that want more than a record (DelayedFetch)


SIZE = len(new_batch(b"x"))


def sizes(client: Client) -> list[dict[int, int]]:
    """Of each fetch that was answered meanwhile, how many bytes each partition has."""
    found = [
        {
            p.number("partition_index"): len(p.data("records") or b"")
            for t in a.all("responses")
            for p in t.all("partitions")
        }
        for a in client.waiting
    ]
    client.waiting.clear()
    return found


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_fetch_waits_until_there_are_as_many_bytes_as_it_asks_for(client: Client, epoch: int) -> None:
    client.produce(0)
    least = 3 * SIZE
    assert client.fetch(0, epoch, (0, 0), (1, 0), (2, 0), wait=500, min_bytes=least) is None
    client.produce(1)
    client.tick(100)
    assert sizes(client) == [], "two batches are too few"
    client.produce(0)
    assert sizes(client) == [{0: 2 * SIZE, 1: SIZE, 2: 0}]
    assert client.fetch(0, epoch, (0, 0), (1, 0), wait=500, min_bytes=least) is not None, "now it is there at once"


def test_what_there_is_is_told_when_the_wait_is_over(client: Client) -> None:
    client.produce(0)
    assert client.fetch(0, -1, (0, 0), (1, 0), wait=500, min_bytes=10_000) is None
    client.tick(300)
    client.produce(0)
    client.tick(199)
    assert sizes(client) == []
    client.tick(2)
    assert sizes(client) == [{0: 2 * SIZE, 1: 0}]


def test_a_replica_that_was_asked_for_more_and_has_no_more_has_waited_long_enough(client: Client) -> None:
    client.produce(0)
    assert client.fetch(0, -1, (0, 0), wait=500, min_bytes=10_000) is None
    client.tick(499)
    assert sizes(client) == []
    client.tick(1)
    assert sizes(client) == [{0: SIZE}]


@pytest.mark.long
def test_an_answer_that_is_full_asks_no_further_replica(client: Client) -> None:
    """All but the first record count against the limit (KIP-74)."""
    client.produce(0)
    client.produce(1)
    assert rows(client.fetch(0, -1, (0, 0), (1, 0), max_bytes=SIZE)) == {0: FULL, 1: EMPTY}
    assert rows(client.fetch(0, -1, (2, 0), (1, 0), (0, 0), max_bytes=1)) == {2: EMPTY, 1: FULL, 0: EMPTY}
    assert rows(client.fetch(0, -1, (0, 0), (1, 0), max_bytes=2 * SIZE)) == {0: FULL, 1: FULL}


def test_an_error_and_a_wish_for_nothing_are_not_kept_waiting(client: Client) -> None:
    client.produce(0)
    assert rows(client.fetch(0, -1, (0, 0), (1, 7), wait=500, min_bytes=10_000))[1] == (
        Error.OFFSET_OUT_OF_RANGE.value,
        False,
    )
    assert rows(client.fetch(0, -1, (1, 0), wait=500, min_bytes=0)) == {1: EMPTY}
    assert rows(client.fetch(0, -1, (0, 0), wait=500, min_bytes=10_000, max_bytes=SIZE)) == {0: FULL}, (
        "nobody waits for more than it would be given"
    )


def test_a_session_whose_client_did_not_take_what_it_was_told_is_told_again_at_once(client: Client) -> None:
    client.produce(0)
    first = client.fetch(0, 0, (0, 0), (1, 0), wait=0)
    assert first is not None
    session = first.number("session_id")
    assert client.fetch(session, 1, wait=500, min_bytes=2 * SIZE) is None
    client.produce(1)
    assert sizes(client) == [{0: SIZE, 1: SIZE}]
    assert rows(client.fetch(session, 2, wait=500)) == {0: FULL, 1: FULL}


def test_a_consumer_is_asked_for_more_only_when_the_watermark_moves(client: Client) -> None:
    client.produce(0)
    assert client.fetch(0, -1, (0, 0), wait=10_000, min_bytes=10_000) is None
    asked = client.requests.runtime.requests
    for _ in range(20):
        client.tick(100)
    assert client.requests.runtime.requests == asked


@attrs.define
class Pair:
    """Broker 1 leads two partitions of `pair`, which broker 2, of which only the messages are real, follows."""

    client: Client
    broker_epoch: int
    session: int = 0
    epoch: int = 0

    def fetch(self, *wanted: tuple[int, int], wait: int = 500) -> Fields | None:
        partitions = [
            {
                "partition": number,
                "fetch_offset": offset,
                "partition_max_bytes": 10_000,
                "current_leader_epoch": (epoch := self.replica(number)[0].leader_epoch),
                "last_fetched_epoch": epoch if offset else -1,
            }
            for number, offset in wanted
        ]
        uuid = Topics().of(self.client.requests.runtime.node.partitions).uuid("pair")
        fields: Answer = {
            "replica_state": {"replica_id": 2, "replica_epoch": self.broker_epoch},
            "session_id": self.session,
            "session_epoch": self.epoch,
            "topics": [{"topic_id": uuid, "partitions": partitions}] if wanted else [],
            "max_wait": wait,
            "max_bytes": 10**6,
            "min_bytes": 1,
        }
        self.epoch += 1
        return self.client.ask(protocol.FETCH, 17, fields)

    def answers(self) -> list[dict[int, int]]:
        """The watermarks that were told since the last time, answer by answer."""
        told, self.client.waiting = self.client.waiting, []
        return [
            {
                p.number("partition_index"): p.number("high_watermark")
                for t in a.all("responses")
                for p in t.all("partitions")
            }
            for a in told
        ]

    def replica(self, number: int) -> tuple[Replica, Leading]:
        replica = self.client.requests.runtime.node.replicas[TopicPartition("pair", number)]
        assert isinstance(replica.role, Leading)
        return replica, replica.role

    def produce(self, number: int) -> None:
        rows = [{"index": number, "records": new_batch(b"x")}]
        fields: Answer = {"acks": 1, "timeout": 1000, "topic_data": [{"name": "pair", "partition_data": rows}]}
        assert self.client.ask(protocol.PRODUCE, 8, fields) is not None
        self.client.tick()


HASTY = {"broker.session.timeout.ms": "1000000000", "replica.lag.time.max.ms": "3000"}
"""Who lags is out after three seconds, and no session ends."""


@pytest.fixture
def pair() -> Pair:
    return made_pair()


def made_pair(changed: Mapping[str, str] | None = None) -> Pair:
    """Its session is open, and both partitions are idle."""
    client = Client(one_broker(changed=changed), 17)
    runtime = client.requests.runtime
    request = RegisterBroker(broker=2, incarnation=7, host="there", port=2, cluster=runtime.cluster)
    runtime.receive_messages([(2, CONTROLLER, request)], client.now)
    client.tick()
    epoch = runtime.node.brokers[2].epoch
    beat = Heartbeat(broker=2, broker_epoch=epoch, metadata_offset=runtime.node.metadata_offset)
    runtime.receive_messages([(2, CONTROLLER, beat)], client.now)
    client.tick()
    places = [{"partition_index": n, "broker_ids": [1, 2]} for n in range(2)]
    topics = [{"name": "pair", "num_partitions": -1, "replication_factor": -1, "assignments": places}]
    assert client.ask(protocol.CREATE_TOPICS, 5, {"topics": topics, "timeout": 1000}) is not None
    client.tick(100)
    found = Pair(client, epoch)
    assert found.fetch((0, 0), (1, 0)) is None
    client.tick(500)
    (answer,) = client.waiting
    found.session = answer.number("session_id")
    assert found.answers() == [{0: 0, 1: 0}], "a full answer names all"
    return found


def test_idle_partitions_of_a_follower_wake_no_replica_and_tell_none(pair: Pair) -> None:
    before = [pair.replica(n)[0] for n in range(2)]
    for _ in range(3):
        assert pair.fetch() is None
        assert all(pair.replica(n)[0] is before[n] for n in range(2)), "it would change nothing"
        woken = [pair.client.requests.runtime.node.wake[pair.replica(n)[0].partition] for n in range(2)]
        assert min(woken) > pair.client.now + 500, "the next is the look for members that lag"
        assert pair.client.requests.fetches.deadline() == pair.client.now + 500
        pair.client.tick(499)
        assert pair.answers() == []
        pair.client.tick(1)
        assert pair.answers() == [{}]
    assert [len(role.fetches) for _, role in map(pair.replica, range(2))] == [1, 1]


def test_beside_a_busy_partition_an_idle_one_is_asked_about_again(pair: Pair) -> None:
    """Each fetch is answered early, by the other partition; the leader still has to hear of both."""
    assert pair.fetch() is None
    began, offset = pair.client.now, 0
    while pair.client.now < began + 1_000:
        pair.client.tick(100)
        pair.produce(0)
        assert [set(answer) for answer in pair.answers()] == [{0}]
        offset += 1
        assert pair.fetch((0, offset)) is None
    pair.produce(1)
    assert pair.replica(1)[1].followers[2].fetched_at >= began + 1_000 - 500


def test_a_leader_that_appends_after_a_rest_counts_from_when_it_was_last_asked() -> None:
    """A follower that still asks has caught up just now; one that has been silent for long is out soon."""
    pair = made_pair(HASTY)
    for number, silence in ((0, 300), (1, 10_000)):
        for _ in range(5):
            assert pair.fetch() is None
            pair.client.tick(500)
        asked = pair.client.now - 500
        pair.client.tick(silence)
        assert pair.replica(number)[1].followers[2].caught_up_at != asked
        pair.produce(number)
        assert pair.replica(number)[1].followers[2].caught_up_at == asked
        pair.client.tick(2_000)
        assert pair.replica(number)[1].isr == (frozenset({1, 2}) if silence < 500 else frozenset({1}))
        assert pair.fetch((number, 1)) is None
        pair.client.tick(500)
        pair.answers()


def test_a_leader_hears_each_time_from_a_follower_that_may_join() -> None:
    pair = made_pair(HASTY)
    pair.produce(0)
    pair.client.tick(10_000)
    assert pair.replica(0)[1].isr == frozenset({1})
    assert pair.fetch((0, 0)) is not None
    assert pair.fetch((0, 1)) is None
    pair.client.tick(100)
    assert pair.replica(0)[1].isr == frozenset({1, 2})


def test_a_follower_that_was_fenced_joins_again_though_it_asks_for_nothing_else(pair: Pair) -> None:
    assert pair.fetch() is None
    while pair.replica(0)[1].isr == frozenset({1, 2}):
        pair.client.tick(500)
    runtime = pair.client.requests.runtime
    beat = Heartbeat(broker=2, broker_epoch=pair.broker_epoch, metadata_offset=runtime.node.metadata_offset)
    runtime.receive_messages([(2, CONTROLLER, beat)], pair.client.now)
    pair.client.tick(100)
    assert pair.replica(0)[1].isr == frozenset({1})
    assert pair.fetch() is None
    pair.client.tick(100)
    assert pair.replica(0)[1].isr == frozenset({1, 2})


def never_rests(replica: Replica, follower: int) -> bool:
    return False


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_a_leader_that_hears_later_knows_no_less(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against one that hears of every fetch: the same ISR, watermarks and answers, and times no earlier than those."""
    told: list[list[object]] = []
    times: list[list[int]] = []
    for rests in (True, False):
        chance, pair, ends = Random(seed), made_pair(HASTY), {0: 0, 1: 0}
        if not rests:
            monkeypatch.setattr(fetch_questions, "_rests", never_rests)
        said, heard, now = list[object](), list[int](), list[tuple[int, int]]()
        for _ in range(60):
            number = chance.randrange(2)
            match chance.choice(("fetch", "fetch", "wait", "long", "produce")):
                case "fetch" if pair.client.requests.fetches.deadline() is None:
                    said.append(pair.fetch(*now))
                    now = []
                case "wait":
                    pair.client.tick(chance.randint(1, 500))
                case "long":
                    pair.client.tick(chance.choice((600, 1_000, 4_000)))
                case "produce":
                    pair.produce(number)
                    ends[number] += 1
                    now = [(n, e) for n, e in now if n != number] + [(number, ends[number])]
                    caught = pair.replica(number)[1].followers[2].caught_up_at
                    assert caught is not None
                    heard.append(caught)
                case _:
                    pass
            said += [pair.answers(), [(r.high_watermark, role.isr) for r, role in map(pair.replica, range(2))]]
        told.append(said)
        times.append(heard)
    assert told[0] == told[1]
    assert all(0 <= late - early < 500 for late, early in zip(*times, strict=True))


def test_a_watermark_that_moves_while_a_fetch_is_parked_is_told_when_it_ends(pair: Pair) -> None:
    assert pair.fetch() is None
    pair.produce(0)
    assert pair.answers() == [{0: 0}]
    assert pair.fetch((0, 1)) is None
    assert pair.replica(0)[0].high_watermark == 1
    pair.client.tick(500)
    assert pair.answers() == [{0: 1}]
    assert pair.fetch() is None
    pair.client.tick(500)
    assert pair.answers() == [{}], "once"


def test_a_follower_in_need_of_nothing_waits_for_nothing(pair: Pair) -> None:
    assert pair.fetch(wait=0) is not None
    assert pair.client.requests.fetches.deadline() is None
