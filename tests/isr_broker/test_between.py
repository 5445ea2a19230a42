"""What brokers say to each other in Kafka's protocol, as another codec reads it."""

# A client library without complete types is the second codec here.
# pyright: basic

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import attrs
import pytest
from kafka.protocol.consumer import FetchRequest as TheirRequest  # type: ignore[import-untyped]
from kafka.protocol.consumer import FetchResponse as TheirResponse
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from tests.isr_broker.test_wire import TOPIC_ID, mangled, one_broker
from tests.support.clients import Confluent, create_topic
from tests.support.clusters import QUICK, Cluster

from isr_broker.conversations import ControllerPlaces, Conversation
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerRegistered,
    EpochEnd,
    Error,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Millis,
    OffsetForLeaderEpochResponse,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.stamps import Stamp, Stamped, bare
from isr_broker.core.topics import uuid_of
from isr_broker.designs import DESIGNS
from isr_broker.runtime import NO_CLUSTER_ID, Runtime
from isr_broker.server import Server
from isr_broker.wire import protocol
from isr_broker.wire.broker_requests import BrokerRequests
from isr_broker.wire.controller_channels import AlterPartitions, Lifecycle
from isr_broker.wire.decoder import BadFrame, Cursor, tagged_fields
from isr_broker.wire.fetcher import Fetcher
from isr_broker.wire.protocol import Answer

pytestmark = pytest.mark.sockets

THEIR_REQUEST: Any = TheirRequest[17]
THEIR_RESPONSE: Any = TheirResponse[17]

# A captured exchange


@attrs.frozen
class Tap:
    """A conversation that keeps its frames."""

    says: Conversation[Parcel]
    asks: list[bytes] = attrs.field(factory=list[bytes])
    hears: list[bytes] = attrs.field(factory=list[bytes])

    def next(self) -> bytes | None:
        """The next request, kept."""
        frame = self.says.next()
        if frame is not None:
            self.asks.append(frame)
        return frame

    def take_answer(self, frame: bytes) -> list[Parcel]:
        """The answer, kept."""
        self.hears.append(frame)
        return self.says.take_answer(frame)

    def take_loss(self) -> list[Parcel]:
        """Nothing is kept of that."""
        return self.says.take_loss()


@attrs.frozen
class Capture:
    """The conversations of one broker, with its leader 1 and the controller; and what was said while all was idle."""

    fetch: Tap
    idle: Tap
    alter: Tap
    lives: Tap


def tap(server: Server, kind: str) -> Tap:
    """From now on frames are kept of one conversation."""
    channels = {key: c for key, c in server.channels.items() if isinstance(key, tuple) and key[0] == kind}
    channel = next(c for key, c in channels.items() if kind != "fetch" or key[1] == 1)
    channel.says = tapped = Tap(channel.says)
    return tapped


@pytest.fixture(scope="module")
def captured() -> Iterator[Capture]:
    """Three brokers, what broker 2 says and hears while a topic idles, is written to, and loses a member."""
    with Cluster(3) as cluster:
        create_topic(cluster.bootstrap, "warm", 6, 2)
        cluster.in_sync("warm")

        def lose_and_regain() -> None:
            cluster.kill(3)
            cluster.wait(lambda: all(len(p.isr) == 2 for p in cluster.partitions("warm")), "broker 3 is out")
            cluster.start(3)
            cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions("warm")), "broker 3 is back")

        lose_and_regain()
        server = cluster.servers[2]

        async def taps() -> tuple[Tap, Tap, Tap]:
            return tap(server, "fetch"), tap(server, "alter"), tap(server, "lives")

        fetch, alter, lives = cluster.do(taps())
        cluster.wait(lambda: len(fetch.hears) > 15, "a while has passed")
        idle = Tap(fetch.says, list(fetch.asks), list(fetch.hears))
        led = next(n for n in range(6) if cluster.leader("warm", n) == 1)
        producer = Confluent(cluster.bootstrap, {"acks": "all"})
        producer.send("warm", b"captured", led)
        assert producer.producer.flush(20) == 0
        lose_and_regain()
        cluster.wait(lambda: bool(alter.hears) and bool(lives.hears), "broker 2 asked to have it back")
        yield Capture(fetch, idle, alter, lives)


def test_fetches_of_followers_are_fetches_to_another_codec(captured: Capture) -> None:
    seen = {"records": 0, "named": 0}
    for frame in captured.fetch.asks:
        request = THEIR_REQUEST.decode(frame, header=True, framed=True)
        assert (request.replica_state.replica_id, request.replica_id) == (2, -1)
        assert request.replica_state.replica_epoch > 0
        for topic in request.topics:
            for p in topic.partitions:
                seen["named"] += 1
                assert p.current_leader_epoch >= 0
                assert p.fetch_offset >= 0
    for frame in captured.fetch.hears:
        response = THEIR_RESPONSE.decode(frame, header=True)
        assert response.error_code == 0 or response.responses == []
        for topic in response.responses:
            assert isinstance(topic.topic_id, UUID)
            seen["records"] += sum(b"captured" in bytes(p.records or b"") for p in topic.partitions)
    assert seen["records"] >= 1
    assert seen["named"] >= 1


def test_an_idle_session_names_nothing(captured: Capture) -> None:
    asks = [THEIR_REQUEST.decode(frame, header=True, framed=True) for frame in captured.idle.asks]
    hears = [THEIR_RESPONSE.decode(frame, header=True) for frame in captured.idle.hears]
    sessions = {request.session_id for request in asks}
    assert 0 not in sessions
    assert len(asks) >= 4
    assert sum(len(request.topics) for request in asks[-5:]) == 0
    assert sum(len(response.responses) for response in hears[-5:]) == 0
    assert max(map(len, captured.idle.asks[-5:])) < 120


@pytest.mark.parametrize("key", [protocol.ALTER_PARTITION, protocol.BROKER_HEARTBEAT])
def test_what_the_controller_is_asked_is_read_alike_by_the_codec(captured: Capture, key: int) -> None:
    theirs: Any
    said: Any
    said_to = captured.alter if key == protocol.ALTER_PARTITION else captured.lives
    assert said_to.hears
    for asks, hears in zip(said_to.asks, said_to.hears, strict=False):
        request = protocol.parse(asks[4:])
        assert isinstance(request, protocol.Request)
        assert request.key == key
        schema = load_request_schema(request.key, request.version)
        # The codec's reader does not skip unknown tagged fields of a header, as KIP-482 has it.
        cursor = Cursor(asks, 12)
        cursor.take(cursor.length(flexible=False, legacy="int16"))
        tagged_fields(cursor)
        theirs, read = entity_reader(schema)(asks, cursor.at)
        assert cursor.at + read == len(asks)
        assert theirs.broker_id == 2
        answers = load_response_schema(request.key, request.version)
        _, size = entity_reader(answers.__header_schema__)(hears, 0)
        said, read = entity_reader(answers)(hears, size)
        assert size + read == len(hears)
        assert int(said.error_code) == protocol.parse_answer(request.key, request.version, hears).body.number(
            "error_code"
        )
        if key == protocol.ALTER_PARTITION:
            rows = [p for topic in theirs.topics for p in topic.partitions]
            assert all(m.broker_epoch > 0 for p in rows for m in p.new_isr_with_epochs)
            assert {p.partition_index for t in said.topics for p in t.partitions} <= {p.partition_index for p in rows}


def test_a_follower_of_before_kip_595_asks_another_broker_where_its_epoch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Message] = []
    real = Fetcher.take_answer

    def spied(fetcher: Fetcher, frame: bytes) -> list[Parcel]:
        found = real(fetcher, frame)
        said.extend(bare(sent) for _, _, sent in found)
        return found

    monkeypatch.setattr(Fetcher, "take_answer", spied)
    with Cluster(3, attrs.evolve(QUICK, insync_design=DESIGNS["kip-101"])) as cluster:
        create_topic(cluster.bootstrap, "t", 2, 2)
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("t", [b"x"] * 3)
        cluster.kill(3)
        cluster.wait(lambda: all(len(p.isr) == 2 for p in cluster.partitions("t")), "broker 3 is out")
        cluster.start(3)
        cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions("t")), "broker 3 is back")
    ends = [m.ends for m in said if isinstance(m, OffsetForLeaderEpochResponse) and m.error is Error.NONE]
    assert EpochEnd(0, 3) in ends


# To the controller and back


@attrs.define
class Ear(Runtime):
    """A broker with a controller, that keeps what it is told instead of taking it, once it is to."""

    keeps: bool = False
    told: list[Message | Stamped] = attrs.field(factory=list[Message | Stamped])

    def receive_messages(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Kept, or taken."""
        if self.keeps:
            self.told += [sent for _, _, sent in parcels]
        else:
            Runtime.receive_messages(self, parcels, now)


def controller() -> tuple[BrokerRequests, Ear]:
    """A controller's handlers, and the ear of its core."""
    runtime = one_broker(Ear).runtime
    assert isinstance(runtime, Ear)
    runtime.keeps = True
    return BrokerRequests(runtime), runtime


def passed(
    serves: BrokerRequests, ear: Ear, frame: bytes | None, *answers: Message | Stamped
) -> tuple[list[Message | Stamped], bytes]:
    """What a request's frame comes to at the controller, and the frame of its answers."""
    assert frame is not None
    request = protocol.parse(frame[4:])
    assert isinstance(request, protocol.Request)
    found: list[bytes] = []
    serves.serve(
        request,
        0,
        lambda said: found.append(protocol.answer(request.key, request.version, request.correlation, said)[4:]),
    )
    for answer in answers:
        assert not found, "answered before all of it is decided"
        serves.take_answer(2, answer)
    told, ear.told = ear.told, []
    return told, found[0]


STAMP = Stamp("2.1:5", {"2.1": 4, "controller.1": 2})
BACK = Stamp("controller.1:3", {"controller.1": 3})


def alter(partition: int, attempt: int, error: Error) -> tuple[AlterPartitionRequest, AlterPartitionResponse]:
    tp = TopicPartition("t", partition)
    request = AlterPartitionRequest(
        partition=tp, leader=2, broker_epoch=9, leader_epoch=4, partition_epoch=6, isr=((1, 5), (2, 9)), attempt=attempt
    )
    return request, request.answer(error)


@pytest.mark.parametrize(
    "error", [Error.NONE, Error.INELIGIBLE_REPLICA, Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION]
)
def test_alter_partition_arrives_with_its_attempts_and_each_partition_is_answered(error: Error) -> None:
    serves, ear = controller()
    asks = AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
    (first, yes), (second, no) = alter(0, 1, Error.NONE), alter(1, 7, error)
    asks.put(Stamped(first, STAMP))
    asks.put(second)
    told, frame = passed(serves, ear, asks.next(), Stamped(yes, BACK), no)
    assert told == [Stamped(first, STAMP), second]
    assert [sent for _, _, sent in asks.take_answer(frame)] == [Stamped(yes, BACK), no]
    assert asks.next() is None
    accepted = protocol.parse_answer(protocol.ALTER_PARTITION, 3, frame).body.all("topics")[0].all("partitions")[0]
    assert (accepted.numbers("isr"), accepted.number("partition_epoch")) == ([1, 2], 7)


def test_a_stale_broker_epoch_is_an_error_of_the_whole_request() -> None:
    serves, ear = controller()
    asks = AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
    (first, one), (second, two) = (alter(n, 1, Error.STALE_BROKER_EPOCH) for n in range(2))
    asks.put(first)
    asks.put(second)
    _, frame = passed(serves, ear, asks.next(), one, two)
    body = protocol.parse_answer(protocol.ALTER_PARTITION, 3, frame).body
    assert (body.number("error_code"), body.all("topics")) == (Error.STALE_BROKER_EPOCH.value, [])
    assert [sent for _, _, sent in asks.take_answer(frame)] == [one, two]


def test_an_unknown_topic_is_answered_without_asking_the_core() -> None:
    serves, ear = controller()
    asks = AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(999))
    request, _ = alter(0, 1, Error.NONE)
    asks.put(request)
    told, frame = passed(serves, ear, asks.next())
    assert told == []
    ((_, _, answer),) = asks.take_answer(frame)
    assert bare(answer) == alter(0, 1, Error.UNKNOWN_TOPIC_ID)[1]


def test_a_leader_that_asks_again_before_it_was_sent_is_heard_once() -> None:
    serves, ear = controller()
    asks = AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
    asks.put(alter(0, 1, Error.NONE)[0])
    asks.put(alter(0, 2, Error.NONE)[0])
    told, _ = passed(serves, ear, asks.next(), alter(0, 2, Error.NONE)[1])
    assert told == [alter(0, 2, Error.NONE)[0]]


def test_registration_and_heartbeats_arrive_as_they_were_sent() -> None:
    serves, ear = controller()
    lives = Lifecycle(2, NO_CLUSTER_ID)
    register = RegisterBroker(
        broker=2,
        incarnation=2**61 + 5,
        previous_broker_epoch=3,
        host="h",
        port=65_535,
        rack="here",
        cluster=NO_CLUSTER_ID,
        directory="4L6g3nShT-eMCtK--X86sw",
    )
    lives.put(Stamped(register, STAMP))
    registered = BrokerRegistered(broker=2, incarnation=2**61 + 5, broker_epoch=8)
    told, frame = passed(serves, ear, lives.next(), Stamped(registered, BACK))
    assert told == [Stamped(register, STAMP)]
    assert [sent for _, _, sent in lives.take_answer(frame)] == [Stamped(registered, BACK)]
    for answer in (
        HeartbeatAnswer(broker=2, broker_epoch=8, fenced=False),
        HeartbeatAnswer(broker=2, broker_epoch=8, fenced=True, may_shut_down=True),
        HeartbeatAnswer(broker=2, broker_epoch=8, error=Error.STALE_BROKER_EPOCH),
    ):
        beat = Heartbeat(broker=2, broker_epoch=8, metadata_offset=12, wants_to_shut_down=answer.may_shut_down)
        lives.put(beat)
        told, frame = passed(serves, ear, lives.next(), answer)
        assert told == [beat]
        assert lives.take_answer(frame) == [(-1, 2, answer)]


def test_who_takes_the_number_of_the_controllers_broker_is_refused() -> None:
    serves, ear = controller()
    lives = Lifecycle(1, NO_CLUSTER_ID)
    lives.put(Heartbeat(broker=1, broker_epoch=1, metadata_offset=0, wants_to_shut_down=True))
    told, frame = passed(serves, ear, lives.next())
    assert told == []
    assert (
        protocol.parse_answer(protocol.BROKER_HEARTBEAT, 1, frame).body.number("error_code")
        == Error.STALE_BROKER_EPOCH.value
    )


def test_a_mangled_answer_of_the_controller_is_an_answer_or_a_bad_frame() -> None:
    serves, ear = controller()
    chance, outcomes = random.Random(5), {"answers": 0, "bad": 0}
    for _ in range(1_500):
        asks = AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
        request, answer = alter(0, 3, Error.INELIGIBLE_REPLICA)
        asks.put(Stamped(request, STAMP))
        _, frame = passed(serves, ear, asks.next(), Stamped(answer, BACK))
        lives = Lifecycle(2, NO_CLUSTER_ID)
        lives.put(Heartbeat(broker=2, broker_epoch=8, metadata_offset=12))
        _, beat = passed(serves, ear, lives.next(), HeartbeatAnswer(broker=2, broker_epoch=8))
        for says, bad in ((asks, mangled(chance, frame)), (lives, mangled(chance, beat))):
            try:
                says.take_answer(bad)
                outcomes["answers"] += 1
            except BadFrame:
                outcomes["bad"] += 1
    assert min(outcomes.values()) > 300


# Several controllers


def test_who_is_not_the_controller_says_where_it_is_and_what_was_asked_is_asked_there() -> None:
    serves, ear = controller()
    ear.controller, serves.leader_address = None, lambda: ("h", 9)
    lives, asks = Lifecycle(2, NO_CLUSTER_ID), AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
    heartbeat, (first, _) = Heartbeat(broker=2, broker_epoch=9, metadata_offset=1), alter(0, 1, Error.NONE)
    lives.put(heartbeat)
    asks.put(first)
    for says, message in ((lives, heartbeat), (asks, first)):
        assert isinstance(says, Lifecycle | AlterPartitions)
        _, frame = passed(serves, ear, says.next())
        with pytest.raises(BadFrame, match="the controller is elsewhere"):
            says.take_answer(frame)
        assert says.elsewhere == ("h", 9)
        assert not says.is_waiting()
        says.again()
        assert says.is_waiting()
        assert says.next() is not None
        assert [sent for _, _, sent in says.take_loss()] == [message]


def test_what_is_newer_is_asked_and_not_what_had_no_answer() -> None:
    lives, asks = Lifecycle(2, NO_CLUSTER_ID), AlterPartitions(2, NO_CLUSTER_ID, lambda topic: uuid_of(TOPIC_ID))
    old, new = (Heartbeat(broker=2, broker_epoch=9, metadata_offset=n) for n in (1, 2))
    (first, _), (second, _), (other, _) = alter(0, 1, Error.NONE), alter(0, 2, Error.NONE), alter(1, 1, Error.NONE)
    lives.put(old)
    asks.put(first)
    asks.put(other)
    assert lives.next() is not None
    assert asks.next() is not None
    lives.put(new)
    asks.put(second)
    lives.again()
    asks.again()
    assert [sent for _, _, sent in lives.take_loss()] == [new]
    assert [sent for _, _, sent in asks.take_loss()] == [second, other]


def test_a_controller_that_resigns_answers_whoever_waits() -> None:
    serves, _ = controller()
    lives, answers = Lifecycle(2, NO_CLUSTER_ID), list[Answer]()
    lives.put(Heartbeat(broker=2, broker_epoch=9, metadata_offset=1))
    frame = lives.next()
    assert frame is not None
    request = protocol.parse(frame[4:])
    assert isinstance(request, protocol.Request)
    serves.serve(request, 0, answers.append)
    assert not answers
    serves.resigns()
    assert [answer["error_code"] for answer in answers] == [Error.NOT_CONTROLLER.value]
    serves.take_answer(2, HeartbeatAnswer(broker=2, broker_epoch=9))
    assert len(answers) == 1, "and nothing after that"


def test_the_active_controller_is_sought_at_the_place_that_was_named_or_at_the_next() -> None:
    one, two, three = (("h", n) for n in (1, 2, 3))
    places = ControllerPlaces((one, two, three), one)
    assert not places.leaves(two, three), "somebody has found it elsewhere since"
    assert places.at == one
    assert places.leaves(one, three)
    assert places.at == three
    assert places.leaves(three, ("stranger", 1))
    assert places.at == one
    assert places.leaves(one, one), "whoever is asked does not lead"
    assert places.at == two
