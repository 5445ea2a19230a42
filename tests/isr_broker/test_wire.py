"""The wire: every served version is answered, and nothing that is sent does harm.

Without these, a mangled frame could end the process or take its memory, and a version that ApiVersions advertises
could be one that no handler reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import cast
from uuid import UUID

import attrs
import pytest
from kio.index import load_request_schema
from kio.serial import entity_reader
from tests.support.clusters import QUICK, Cluster

from isr_broker.core.message_json import PEER_API, BadMessage, decode
from isr_broker.core.messages import BrokerId, Error, Message, TopicPartition
from isr_broker.core.record_batch import new_batch
from isr_broker.core.replica_state import Leading
from isr_broker.core.stamps import Stamped
from isr_broker.core.topics import uuid_of
from isr_broker.runtime import Address, Runtime
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.wire import protocol
from isr_broker.wire.decoder import MOST_ITEMS, BadFrame, Plain
from isr_broker.wire.group_requests import GroupRequests
from isr_broker.wire.requests import Requests

VERSIONS = [(key, version) for key, (low, high) in protocol.SERVED_VERSIONS.items() for version in range(low, high + 1)]
PARTITION = {"partition": 0, "partition_index": 0, "index": 0, "fetch_offset": 0, "partition_max_bytes": 100}
TOPIC_ID = 4
"""Of the topic `t`, the offset at which it is created here."""
FIELDS: protocol.Answer = {
    "acks": -1,
    "timeout": 100,
    "max_wait": 100,
    "replica_id": -1,
    "group_id": "g",
    "topic_names": ["other"],
    "resources": [{"resource_type": 2, "resource_name": "t"}],
    "groups": [{"group_id": "g"}],
    "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": new_batch(b"x")}]}],
    "topics": [{"name": "t", "topic": "t", "num_partitions": 1, "replication_factor": 1, "partitions": [PARTITION]}],
}


def fields_of(key: int) -> protocol.Answer:
    """The fields; DescribeGroups has names where others have groups, DescribeLogDirs numbers for partitions."""
    if key == protocol.DESCRIBE_GROUPS:
        return {"groups": ["g"]}
    return FIELDS if key != protocol.DESCRIBE_LOG_DIRS else {"topics": [{"topic": "t", "partitions": [0, 1]}]}


BROKERS_ASK = (
    protocol.FETCH,
    protocol.OFFSET_FOR_LEADER_EPOCH,
    protocol.ALTER_PARTITION,
    protocol.BROKER_REGISTRATION,
    protocol.BROKER_HEARTBEAT,
)
MEMBERS = [{"broker_id": 1, "broker_epoch": 1}, {"broker_id": 2, "broker_epoch": 1}]
ASKED: protocol.Answer = {**PARTITION, "new_isr": [1, 2], "new_isr_with_epochs": MEMBERS}
OF_BROKERS: protocol.Answer = {
    "broker_id": 2,
    "replica_id": 2,
    "replica_state": {"replica_id": 2, "replica_epoch": 1},
    "incarnation_id": bytes(15) + b"\1",
    "cluster_id": "insync",
    "log_dirs": [bytes(14) + b"\1\0"],
    "features": [{"name": "eligible.leader.replicas.version", "min_supported_version": 0, "max_supported_version": 1}],
    "listeners": [{"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}],
    "max_wait": 100,
    "max_bytes": 1_000,
    "session_id": 0,
    "session_epoch": 0,
    "topics": [{"topic": "t", "topic_id": uuid_of(TOPIC_ID), "partitions": [ASKED]}],
    protocol.HEADER_TAGS: {10_000: b'[["t", 0, "2.1:1", {"2.1": 1}]]', 10_001: b"[2]"},
}
"""Requests of a broker that has no replica here."""


class Nowhere:
    requests: Requests

    def send(self, to: BrokerId, address: Address, source: BrokerId, message: Message | Stamped) -> None:
        raise AssertionError("there is one broker")

    def answer(self, to: BrokerId, answer: Message | Stamped) -> None:
        self.requests.answers_broker(to, answer)

    def leaves(self, partition: TopicPartition) -> None:
        pass

    def stopped(self, why: str) -> None:
        raise AssertionError(why)

    def log(self, line: str) -> None:
        pass


def one_broker(made_of: type[Runtime] = Runtime, changed: Mapping[str, str] | None = None) -> Requests:
    """A broker with a topic, and no sockets."""
    base = Settings(auto_create_topics_enable=False, offsets_topic_num_partitions=1, offsets_topic_replication_factor=1)
    settings = Settings.from_properties({**base.properties(), **(changed or {})})
    nowhere = Nowhere()
    runtime = made_of(1, settings, MemoryDisk(), ("here", 1), ("here", 1), nowhere)
    runtime.start(1, 0, with_controller=True)
    for now in range(0, 10_000, 100):
        runtime.tick(now)
    requests = nowhere.requests = Requests(runtime, GroupRequests(runtime))
    frame = protocol.ask(protocol.CREATE_TOPICS, 5, 1, "test", FIELDS)
    assert said(requests, frame) is not None
    assert said(requests, protocol.ask(protocol.FIND_COORDINATOR, 0, 1, "test", FIELDS)) is not None
    while runtime.deadline() == 0:
        runtime.tick(10_200)
    assert [isinstance(r.role, Leading) for r in runtime.node.replicas.values()] == [True, True]
    return requests


@pytest.fixture
def alone() -> Requests:
    return one_broker()


def said(requests: Requests, frame: bytes, now: int = 10_000) -> bytes | None:
    """The answer to a frame, if there is one by now."""
    request = protocol.parse(frame[4:])
    if isinstance(request, protocol.UnsupportedRequest):
        return protocol.answer_to_unsupported(request)
    answers: list[bytes] = []

    def reply(fields: protocol.Answer | None) -> None:
        if fields is not None:
            answers.append(protocol.answer(request.key, request.version, request.correlation, fields))

    requests.serve(request, now, reply)
    requests.runtime.tick(now + 200)
    return answers[0] if answers else None


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_every_served_version_is_read_and_answered(alone: Requests, key: int, version: int) -> None:
    frame = protocol.ask(key, version, 77, "test", fields_of(key))
    answer = said(alone, frame)
    assert answer is not None
    assert struct.unpack(">ii", answer[:8]) == (len(answer) - 4, 77)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_request_is_read_as_the_codec_reads_it(key: int, version: int) -> None:
    frame = protocol.ask(key, version, 77, "test", fields_of(key))[4:]
    schema = load_request_schema(key, version)
    _, size = entity_reader(schema.__header_schema__)(frame, 0)
    theirs, _ = entity_reader(schema)(frame, size)
    ours = protocol.parse(frame)
    assert isinstance(ours, protocol.Request)
    compare(ours.body.values, theirs)


@pytest.mark.parametrize(("key", "version"), [(k, v) for k, v in VERSIONS if k in BROKERS_ASK])
def test_a_stranger_that_asks_as_a_broker_is_answered(alone: Requests, key: int, version: int) -> None:
    node = alone.runtime.node
    assert node.partitions[TopicPartition("t", 0)].topic_id == TOPIC_ID
    frame = said(alone, protocol.ask(key, version, 77, "broker-2-x", OF_BROKERS))
    assert frame is not None
    answer = protocol.parse_answer(key, version, frame[4:])
    assert answer.correlation == 77
    found = [answer.body, *(p for t in answer.body.all("topics") for p in t.all("partitions"))]
    found += [p for t in answer.body.all("responses") for p in t.all("partitions")]
    errors = {p.number("error_code", 0) for p in found} - {0}
    wanted = {
        protocol.FETCH: {Error.NOT_LEADER_OR_FOLLOWER if version >= 12 else Error.INVALID_REQUEST},
        protocol.OFFSET_FOR_LEADER_EPOCH: {Error.NOT_LEADER_OR_FOLLOWER} if version >= 3 else set[Error](),
        protocol.ALTER_PARTITION: {Error.STALE_BROKER_EPOCH},
        protocol.BROKER_REGISTRATION: {Error.INVALID_REGISTRATION} if version < 2 else set[Error](),
        protocol.BROKER_HEARTBEAT: {Error.BROKER_ID_NOT_REGISTERED},
    }[key]
    assert errors == {error.value for error in wanted}


def compare(ours: Plain, theirs: object) -> None:
    match ours:
        case dict():
            for name, value in ours.items():
                compare(value, getattr(theirs, name))
        case list():
            assert isinstance(theirs, tuple)
            for one, other in zip(ours, cast("tuple[object, ...]", theirs), strict=True):
                compare(one, other)
        case bytes() if theirs is None or isinstance(theirs, UUID):
            assert ours == (bytes(16) if theirs is None else theirs.bytes)
        case _ if isinstance(theirs, timedelta):
            assert timedelta(milliseconds=cast("int", ours)) == theirs
        case _:
            assert ours == theirs


def test_unknown_tagged_fields_are_skipped() -> None:
    frame = protocol.ask(
        protocol.API_VERSIONS, 3, 1, "test", {"client_software_name": "x", "client_software_version": "y"}
    )
    assert frame[-1:] == b"\0"
    tagged = frame[4:-1] + b"\x01\x63\x02ab"
    request = protocol.parse(tagged)
    assert isinstance(request, protocol.Request)
    assert request.body.text("client_software_name") == "x"


def test_librdkafka_may_ask_for_all_topics_with_a_null_that_is_too_long(alone: Requests) -> None:
    frame = struct.pack(">hhih", protocol.METADATA, 9, 3, 7) + b"rdkafka" + bytes.fromhex("000000000001000000")
    request = protocol.parse(frame)
    assert isinstance(request, protocol.Request)
    assert not request.body.has("topics")


@pytest.mark.parametrize("claimed", [2**31 - 1, 10_000_000, 50])
def test_no_length_is_believed_that_the_frame_does_not_have(claimed: int) -> None:
    frame = struct.pack(">hhihi", protocol.METADATA, 0, 1, -1, claimed) + b"\0\1t"
    with pytest.raises(BadFrame, match="a length of"):
        protocol.parse(frame)


def test_a_frame_of_more_items_than_a_client_could_mean_is_refused() -> None:
    """Two bytes are a topic without a name: 600 KB of them would be 58 MB of objects."""

    def frame(topics: int) -> bytes:
        count = topics + 1
        varint = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
        body = varint + b"\1\0" * topics + bytes(4)
        return struct.pack(">hhih", protocol.METADATA, 9, 1, -1) + b"\0" + body

    assert isinstance(protocol.parse(frame(MOST_ITEMS)), protocol.Request)
    with pytest.raises(BadFrame, match="more than 50,000 items"):
        protocol.parse(frame(MOST_ITEMS + 1))


def test_apis_are_advertised_as_they_are_served() -> None:
    assert set(protocol.ADVERTISED) == set(protocol.SERVED_VERSIONS)
    assert protocol.ADVERTISED[protocol.PRODUCE][0] == 0, "or older librdkafka turns compression off (KAFKA-18659)"


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(alone: Requests) -> None:
    answer = said(alone, struct.pack(">ihhih", 12, protocol.API_VERSIONS, 99, 5, -1) + b"\0\0")
    assert answer is not None
    assert struct.unpack(">iih", answer[:10])[1:] == (5, protocol.UNSUPPORTED_VERSION)


def test_other_unknown_requests_have_no_answer(alone: Requests) -> None:
    assert said(alone, struct.pack(">ihhi", 8, 999, 0, 5)) is None
    assert said(alone, struct.pack(">ihhi", 8, protocol.FETCH, 99, 5)) is None


# Fuzzing


def mangled(chance: random.Random, frame: bytes) -> bytes:
    """A frame with a few bytes changed, cut, doubled or put in."""
    data = bytearray(frame)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data)) if data else 0
        match chance.randrange(5):
            case 0:
                data[at : at + 1] = bytes([chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))])
            case 1:
                del data[at:]
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(9))
            case 3:
                del data[at : at + chance.randrange(9)]
            case _:
                data[at:at] = data[at : at + 20]
    return bytes(data)


def fuzz(requests: Requests, count: int, seed: int) -> tuple[int, int]:
    """How many mangled frames were requests all the same, and how many were refused."""
    chance = random.Random(seed)
    # The topic must stay: without it, most requests would go no further than its name.
    others: protocol.Answer = {**FIELDS, "topics": [{"name": "other"}]}
    ask = {k: others if k == protocol.DELETE_TOPICS else fields_of(k) for k, _ in VERSIONS}
    # So must the broker.
    ask[protocol.UNREGISTER_BROKER] = {"broker_id": 2**30}
    frames = [protocol.ask(k, v, 1, "test", ask[k])[4:] for k, v in VERSIONS]
    frames += [protocol.ask(k, v, 1, "broker-2-x", OF_BROKERS)[4:] for k, v in VERSIONS if k in BROKERS_ASK]
    taken = refused = 0
    for number in range(count):
        frame = chance.randbytes(chance.randrange(60)) if number % 20 == 0 else mangled(chance, chance.choice(frames))
        try:
            said(requests, b"\0\0\0\0" + frame, 10_000 + number)
            taken += 1
        except BadFrame:
            refused += 1
    return taken, refused


@pytest.mark.long
@pytest.mark.parametrize("frames", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mangled_frames_are_requests_or_bad_frames_and_nothing_else(alone: Requests, frames: int) -> None:
    taken, refused = fuzz(alone, frames, 1)
    assert taken > frames // 20
    assert refused > frames // 20
    assert said(alone, protocol.ask(protocol.METADATA, 9, 1, "test", FIELDS), 10**6) is not None, "it still serves"
    assert TopicPartition("t", 0) in alone.runtime.node.replicas


def test_mangled_messages_of_brokers_are_messages_or_bad() -> None:
    chance = random.Random(3)
    for _ in range(2_000):
        frame = struct.pack(">hhi", PEER_API, 0, 30) + chance.randbytes(40)
        with pytest.raises(BadMessage):
            decode(frame, "")


# On a socket


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1, QUICK) as running:
        yield running


def connected(cluster: Cluster) -> socket.socket:
    return socket.create_connection(("127.0.0.1", cluster.ports[1]), timeout=5)


def serves(connection: socket.socket) -> bool:
    connection.sendall(protocol.ask(protocol.API_VERSIONS, 0, 9, "test", {}))
    head = connection.recv(8, socket.MSG_WAITALL)
    body = connection.recv(int.from_bytes(head[:4], "big") - 4, socket.MSG_WAITALL) if len(head) == 8 else b""
    return len(body) > 10


@pytest.mark.sockets
@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ihhi", 8, 999, 0, 5),
        struct.pack(">ihhi", 8, PEER_API, 0, 4),
        protocol.ask(protocol.FETCH, 12, 1, "x", {})[:-1] + b"\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["negative", "huge", "short", "unknown API", "no message", "mangled", "HTTP"],
)
def test_a_bad_frame_closes_its_connection_and_harms_no_other(cluster: Cluster, bad: bytes) -> None:
    with connected(cluster) as good, connected(cluster) as other:
        assert serves(good)
        other.sendall(bad)
        assert other.recv(1) == b"", "closed"
        assert serves(good)


@pytest.mark.sockets
def test_a_frame_that_is_not_finished_keeps_nobody_waiting(cluster: Cluster) -> None:
    with connected(cluster) as slow, connected(cluster) as good:
        slow.sendall(struct.pack(">i", 1000) + b"only the beginning")
        assert serves(good)


@pytest.mark.sockets
def test_answers_come_in_the_order_of_the_requests_even_if_one_is_parked(cluster: Cluster) -> None:
    parked = {"topics": [{"topic": "none", "partitions": [PARTITION]}], "max_wait": 300, "replica_id": -1}
    with connected(cluster) as connection:
        for correlation, (key, fields) in enumerate([(protocol.FETCH, parked), (protocol.API_VERSIONS, {})]):
            connection.sendall(protocol.ask(key, 4 if key == protocol.FETCH else 0, correlation, "test", fields))
        seen: list[int] = []
        for _ in range(2):
            size, correlation = struct.unpack(">ii", connection.recv(8, socket.MSG_WAITALL))
            connection.recv(size - 4, socket.MSG_WAITALL)
            seen.append(correlation)
        assert seen == [0, 1]


def no_client(cluster: Cluster) -> bool:
    """Whether no task is left that reads from a connection, or writes to one."""
    tasks = asyncio.all_tasks(cluster.loop)
    return not any(name in repr(task) for task in tasks for name in ("Server._accept()", "_answer_in_order()"))


@pytest.mark.sockets
def test_a_client_that_says_no_more_keeps_no_task(cluster: Cluster) -> None:
    """Half-closed, in the middle of a frame or while a fetch of it is parked, so that its answer is nobody's."""
    parked = {"topics": [{"topic": "none", "partitions": [PARTITION]}], "max_wait": 60_000, "replica_id": -1}
    for last in (protocol.ask(protocol.FETCH, 4, 1, "test", parked), struct.pack(">i", 1000) + b"the beginning", b""):
        with connected(cluster) as connection:
            assert serves(connection)
            assert not no_client(cluster)
            connection.sendall(last)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1_000):
                pass
    cluster.wait(lambda: no_client(cluster), "the tasks of three connections have ended", 10)


@pytest.mark.sockets
def test_a_client_that_takes_no_answers_is_read_no_further(cluster: Cluster) -> None:
    """Or the answers to whatever it sends would be kept for it, without bound."""
    questions = 100 * protocol.ask(protocol.API_VERSIONS, 0, 1, "test", {})
    with connected(cluster) as good, connected(cluster) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(2)
        sent, most = 0, 20_000_000  # what the system's buffers take of questions and answers is a quarter of that
        with contextlib.suppress(TimeoutError):
            while sent < most:
                sent += slow.send(questions)
        assert sent < most
        assert serves(good)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    cluster.wait(lambda: no_client(cluster), "the tasks of both connections have ended", 10)


def asked(requests: Requests, key: int, version: int, fields: protocol.Answer) -> protocol.Fields:
    frame = said(requests, protocol.ask(key, version, 1, "test", fields))
    assert frame is not None
    return protocol.parse_answer(key, version, frame[4:]).body


@pytest.mark.parametrize(("design", "level"), [("kip-966", [1]), ("kip-903", [])])
def test_the_elr_is_a_feature_of_designs_that_have_it(design: str, level: list[int]) -> None:
    """Before version 4 none is told that may be at level 0 (ApiVersionsResponse.maybeFilterSupportedFeatureKeys)."""
    requests = one_broker(changed={"insync.design": design})
    for version, told in ((3, []), (4, level)):
        said = asked(requests, protocol.API_VERSIONS, version, {})
        assert [f.number("max_version") for f in said.all("supported_features")] == told
        assert [f.number("max_version_level") for f in said.all("finalized_features")] == level
        assert said.number("finalized_features_epoch") == (requests.runtime.node.metadata_offset if level else -1)


@pytest.mark.parametrize(("kind", "name"), [(2, "t"), (4, "1")])
def test_settings_are_documented_for_who_asks(alone: Requests, kind: int, name: str) -> None:
    changes: protocol.Answer = {
        "resources": [
            {"resource_type": 2, "resource_name": "t", "configs": [{"name": "flush.ms", "value": "9", "operation": 0}]}
        ]
    }
    asked(alone, protocol.INCREMENTAL_ALTER_CONFIGS, 0, changes)
    for wanted in (True, False):
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        fields = {"resources": [resource], "include_documentation": wanted}
        (found,) = asked(alone, protocol.DESCRIBE_CONFIGS, 4, fields).all("results")
        assert len(found.all("configs")) > 5
        assert {bool(c.text("documentation")) for c in found.all("configs")} == {wanted}


@pytest.mark.parametrize(("epoch", "error"), [(-1, Error.NONE), (0, Error.NONE), (1, Error.UNKNOWN_LEADER_EPOCH)])
def test_list_offsets_checks_the_epoch_that_the_client_knows(alone: Requests, epoch: int, error: Error) -> None:
    partition = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": -1}
    fields = {"replica_id": -1, "topics": [{"name": "t", "partitions": [partition]}]}
    ((found,),) = [t.all("partitions") for t in asked(alone, protocol.LIST_OFFSETS, 5, fields).all("topics")]
    assert found.number("error_code") == error.value


@pytest.mark.parametrize(
    ("topic", "note", "error"),
    [
        ("t", "n" * 4_096, Error.NONE),
        ("t", "n" * 4_097, Error.OFFSET_METADATA_TOO_LARGE),
        ("nowhere", "", Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_commit_is_refused_for_no_topic_and_with_too_much_beside_it(
    alone: Requests, topic: str, note: str, error: Error
) -> None:
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": note}
    fields: protocol.Answer = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": topic, "partitions": [row]}],
    }
    ((found,),) = [t.all("partitions") for t in asked(alone, protocol.OFFSET_COMMIT, 2, fields).all("topics")]
    assert found.number("error_code") == error.value


@pytest.mark.parametrize(("name", "error"), [("no/topic", Error.INVALID_TOPIC_EXCEPTION), ("none", 3)])
def test_a_name_that_no_topic_can_have_is_told_from_one_that_is_not_there(
    alone: Requests, name: str, error: Error | int
) -> None:
    """A producer that was told that it is not there would ask for ever."""
    (found,) = asked(alone, protocol.METADATA, 9, {"topics": [{"name": name}]}).all("topics")
    assert found.number("error_code") == (error if isinstance(error, int) else error.value)


@pytest.mark.sockets
def test_connections_are_bounded() -> None:
    with Cluster(1, attrs.evolve(QUICK, max_connections=2)) as few:
        with connected(few) as one:
            assert serves(one)
            with connected(few) as two:
                assert serves(two)
                with connected(few) as three:
                    assert three.recv(1) == b"", "closed"
                assert serves(one)
                assert serves(two)
        few.wait(lambda: no_client(few), "both have ended", 10)
        with connected(few) as four:
            assert serves(four)


def test_the_size_of_each_log_is_told_to_an_admin(alone: Requests) -> None:
    asked(alone, protocol.PRODUCE, 8, {"acks": 1, "timeout": 100, "topic_data": FIELDS["topic_data"]})
    for wanted, names in ((None, {"t", "__consumer_offsets"}), ([{"topic": "t", "partitions": [0]}], {"t"})):
        (found,) = asked(alone, protocol.DESCRIBE_LOG_DIRS, 1, {"topics": wanted}).all("results")
        sizes = {t.text("name"): [p.number("partition_size") for p in t.all("partitions")] for t in found.all("topics")}
        assert sizes.keys() == names
        assert sizes["t"] == [len(new_batch(b"x"))]
