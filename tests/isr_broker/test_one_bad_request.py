"""What one request can do to others where its own answer, or the rest of its work, cannot be had: nothing.

Without these a text that is too long for its answer, or a number too large for its batch, ended the broker, because it
was met in a timer; and one commit with such a name kept all later ones of its partition waiting.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Generator

import pytest
from tests.isr_broker.test_wire import asked, one_broker
from tests.support.clusters import QUICK, Cluster

from isr_broker.core.batch_records import at_once
from isr_broker.core.messages import Error
from isr_broker.core.producers import look_at
from isr_broker.core.record_batch import batch_around, batches, encoded_record, varint
from isr_broker.server import Server
from isr_broker.settings import Settings
from isr_broker.storage.offsets_topic import partition_of
from isr_broker.wire import protocol
from isr_broker.wire.admin_requests import AdminRequests
from isr_broker.wire.decoder import LONGEST_TEXT, BadFrame
from isr_broker.wire.group_requests import GroupRequests, a_few_at_a_time
from isr_broker.wire.protocol import Answer, Response, UnwritableAnswer
from isr_broker.wire.turns import Gate, Turns, Work
from isr_cluster.ports import HOST

LATEST = 2**63 - 1


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    alone = {"default.replication.factor": "1", "min.insync.replicas": "1", "offsets.topic.replication.factor": "1"}
    with Cluster(1, Settings.from_properties({**QUICK.properties(), **alone})) as one:
        topics = [{"name": "t", "num_partitions": 2, "replication_factor": 1}]
        assert answer_of(one.ports[1], protocol.CREATE_TOPICS, 2, {"topics": topics, "timeout": 5_000})
        one.in_sync("t", 1)
        yield one


def answer_of(
    port: int, key: int, version: int, fields: Answer, client: str = "test", seconds: float = 20
) -> Response | None:
    """The answer to one request, None where the connection is closed instead; TimeoutError if neither comes."""
    with socket.create_connection((HOST, port), timeout=seconds) as connection:
        connection.sendall(protocol.ask(key, version, 1, client, fields))
        stream = connection.makefile("rb")
        size = stream.read(4)
        return protocol.parse_answer(key, version, stream.read(int.from_bytes(size, "big"))) if size else None


def serves(cluster: Cluster) -> bool:
    """Whether the broker still answers, and its timers still run."""
    server = cluster.servers[1]
    found = answer_of(cluster.ports[1], protocol.API_VERSIONS, 0, {})
    return found is not None and server.runtime.running and not server.why


# Answers that cannot be written


def test_a_text_that_has_no_place_in_an_answer_is_said_to_whoever_writes_it() -> None:
    with pytest.raises(UnwritableAnswer, match="the answer to API 11, version 0, cannot be written"):
        protocol.answer(protocol.JOIN_GROUP, 0, 1, {"member_id": "x" * (LONGEST_TEXT + 1)})
    assert protocol.answer(protocol.JOIN_GROUP, 0, 1, {"member_id": "x" * LONGEST_TEXT})


@pytest.mark.sockets
def test_a_members_answer_that_cannot_be_written_closes_its_connection_alone(cluster: Cluster) -> None:
    """A member's id is its client's id and more; the answer is written by a timer."""

    def joins(client: str) -> Response | None:
        rows = [{"name": "range", "metadata": b""}]
        fields: Answer = {"session_timeout": 10_000, "member_id": "", "protocol_type": "consumer", "protocols": rows}
        return answer_of(cluster.ports[1], protocol.JOIN_GROUP, 0, {"group_id": f"g{len(client)}", **fields}, client)

    def until_there(client: str) -> int:
        for _ in range(100):
            answer = joins(client)
            if answer is None or answer.body.number("error_code") not in (14, 15, 16):
                return -100 if answer is None else answer.body.number("error_code")
            answer_of(cluster.ports[1], protocol.FIND_COORDINATOR, 0, {"key": "g"})
            time.sleep(0.05)
        raise AssertionError("no coordinator was found")

    assert until_there("c" * 100) == 0
    assert until_there("c" * 32_760) == -100
    assert serves(cluster)


@pytest.mark.sockets
def test_a_sentence_does_not_repeat_all_that_was_asked(cluster: Cluster) -> None:
    def topic(name: str, value: str) -> Answer:
        configs = [{"name": "min.insync.replicas", "value": value}]
        return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}

    fields = {"topics": [topic("good", "1"), topic("bad", "x" * 32_740)], "timeout": 5_000}
    answer = answer_of(cluster.ports[1], protocol.CREATE_TOPICS, 2, fields)
    assert answer is not None
    errors = {row.text("name"): Error(row.number("error_code")).name for row in answer.body.all("topics")}
    assert errors == {"good": "NONE", "bad": "INVALID_CONFIG"}


# Work that fails in a later turn


def test_an_error_in_a_later_turn_is_of_its_request_alone() -> None:
    def work(number: int) -> Work:
        yield
        raise OverflowError(str(number))

    turns, failures = Turns(), list[Exception]()
    turns.begin(work(1), Gate(fails=failures.append))
    turns.tick(0)
    assert [str(error) for error in failures] == ["1"]
    assert turns.deadline() is None
    turns.begin(work(2))
    with pytest.raises(OverflowError, match="2"):
        turns.tick(0)


@pytest.mark.sockets
def test_a_request_that_fails_between_its_questions_to_the_controller_ends_no_broker(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds up nothing that follows it, so its connection is not closed; but for long it ended the broker."""

    def fails(*_: object) -> Work:
        yield
        raise OverflowError("planted")

    said = list[str]()

    def log(_: Server, line: str) -> None:
        said.append(line)

    monkeypatch.setattr(Server, "log", log)
    monkeypatch.setattr(AdminRequests, "_asks", fails)
    fields = {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}], "timeout": 500}
    with pytest.raises(TimeoutError):
        answer_of(cluster.ports[1], protocol.CREATE_TOPICS, 2, fields, seconds=0.5)
    cluster.wait(lambda: any("never answered" in line and "planted" in line for line in said), "it is said")
    monkeypatch.undo()
    assert serves(cluster)


@pytest.mark.sockets
def test_a_connection_whose_request_fails_in_a_later_turn_is_given_back(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task of such a connection once waited for a turn that never came."""

    def fails(*_: object) -> Work:
        yield
        raise OverflowError

    server = cluster.servers[1]
    cluster.wait(lambda: not server.connections, "nobody is connected")
    before = server.flow.size
    monkeypatch.setattr(GroupRequests, "serve_many", fails)
    for _ in range(5):
        assert answer_of(cluster.ports[1], protocol.DESCRIBE_GROUPS, 5, {"groups": ["g"]}) is None
    cluster.wait(lambda: not server.connections and server.flow.size == before, "all connections are given back")
    assert serves(cluster)


def times(base: int, *deltas: int) -> bytes:
    """A batch of records at these times."""
    inner = (b"\0" + varint(d) + varint(n) + b"\1" + varint(1) + b"v" + b"\0" for n, d in enumerate(deltas))
    return batch_around(b"".join(varint(len(i)) + i for i in inner), len(deltas), base)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (times(LATEST, 0), "NONE"),
        (times(LATEST, 0, 1), "INVALID_TIMESTAMP"),
        (times(LATEST, LATEST), "INVALID_TIMESTAMP"),
        (times(-LATEST - 1, -1), "INVALID_TIMESTAMP"),
    ],
)
def test_a_time_that_no_batch_can_have(batch: bytes, error: str) -> None:
    (header,) = batches(batch)
    assert at_once(look_at(batch, header)).error.name == error


@pytest.mark.sockets
def test_a_batch_that_is_looked_at_in_a_later_turn(cluster: Cluster) -> None:
    large = batch_around(encoded_record(b"v" * 200_000))
    rows = [{"index": 0, "records": large}, {"index": 1, "records": times(LATEST, 0, 1)}]
    fields = {"acks": -1, "timeout": 5_000, "topic_data": [{"name": "t", "partition_data": rows}]}
    answer = answer_of(cluster.ports[1], protocol.PRODUCE, 7, fields)
    assert answer is not None
    partitions = answer.body.all("responses")[0].all("partition_responses")
    assert [Error(p.number("error_code")).name for p in partitions] == ["NONE", "INVALID_TIMESTAMP"]
    assert partitions[0].number("log_start_offset") == 0
    assert serves(cluster)


# Names


@pytest.mark.parametrize("version", [4, 3])
def test_a_text_has_as_many_bytes_as_in_kafka(version: int) -> None:
    fields = {"coordinator_keys": ["x" * LONGEST_TEXT], "key": "x" * LONGEST_TEXT}
    longest = protocol.parse(protocol.ask(protocol.FIND_COORDINATOR, version, 1, "test", fields)[4:])
    assert isinstance(longest, protocol.Request)
    if version == 4:
        long = protocol.ask(protocol.FIND_COORDINATOR, 4, 1, "test", {"coordinator_keys": ["x" * 40_000]})
        with pytest.raises(BadFrame, match="has 40000 bytes, 32767 are the most of a text"):
            protocol.parse(long[4:])


def test_a_long_name_is_of_the_partition_that_java_says() -> None:
    """String.hashCode of 32,767 times one character, computed by Java's definition, unit by unit."""

    def by_definition(text: str) -> int:
        code = 0
        for unit in memoryview(text.encode("utf-16-le")).cast("H"):
            code = (31 * code + unit) % 2**32
        signed = code - 2**32 if code >= 2**31 else code
        return abs(signed) % 50

    for text in ("", "a", "x" * LONGEST_TEXT, "ä€😀" * 100):
        assert partition_of(text, 50) == by_definition(text)


def test_many_groups_are_asked_about_in_turns() -> None:
    short = list(a_few_at_a_time(map(str, range(2_500))))
    assert [name for name in short if name is not None] == [str(n) for n in range(2_500)]
    assert short.count(None) == 2
    assert list(a_few_at_a_time(["x" * 32_000] * 100)).count(None) == 3


@pytest.mark.parametrize("key", [protocol.FIND_COORDINATOR, protocol.DESCRIBE_GROUPS, protocol.DELETE_GROUPS])
def test_the_rest_of_many_groups_waits_for_its_turn(key: int) -> None:
    requests = one_broker()
    names = [f"g{n}" for n in range(2_500)]
    version = {protocol.FIND_COORDINATOR: 4, protocol.DESCRIBE_GROUPS: 5, protocol.DELETE_GROUPS: 2}[key]
    fields = {"coordinator_keys": names, "groups": names, "groups_names": names}
    request = protocol.parse(protocol.ask(key, version, 1, "test", fields)[4:])
    assert isinstance(request, protocol.Request)
    answers = list[Answer | None]()
    requests.serve(request, 10_000, answers.append)
    turns = 0
    while not answers:
        assert requests.turns.deadline() == 0
        requests.turns.tick(10_000)
        turns += 1
    assert turns == 2
    (answer,) = answers
    assert answer is not None
    frame = protocol.answer(key, version, 1, answer)
    body = protocol.parse_answer(key, version, frame[4:]).body
    assert max(len(body.all(name)) for name in ("coordinators", "groups", "results")) == 2_500


# What Kafka refuses


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"name": "t", "topic_id": b"y" * 16}, "INVALID_REQUEST"),
        ({"name": None, "topic_id": bytes(16)}, "INVALID_REQUEST"),
        ({"name": None, "topic_id": b"y" * 16}, "UNKNOWN_TOPIC_ID"),
    ],
)
def test_topics_that_are_named_twice_or_not_at_all_are_not_deleted(row: Answer, error: str) -> None:
    requests = one_broker()
    (deleted,) = asked(requests, protocol.DELETE_TOPICS, 6, {"topics": [row], "timeout": 100}).all("responses")
    assert deleted.number("error_code") == {"UNKNOWN_TOPIC_ID": 100}.get(error) or Error[error].value
    assert any(tp.topic == "t" for tp in requests.runtime.node.partitions)


def test_a_name_that_stands_twice_is_not_deleted() -> None:
    requests = one_broker()
    rows = [{"name": "t", "topic_id": bytes(16)}] * 2
    responses = asked(requests, protocol.DELETE_TOPICS, 6, {"topics": rows, "timeout": 100}).all("responses")
    assert {Error(r.number("error_code")).name for r in responses} == {"INVALID_REQUEST"}
    assert any(tp.topic == "t" for tp in requests.runtime.node.partitions)


@pytest.mark.parametrize("kind", [2, 7, -1])
def test_an_election_of_an_unknown_type_is_none(kind: int) -> None:
    topics = [{"topic": "t", "partitions": [0]}]
    answer = asked(one_broker(), protocol.ELECT_LEADERS, 2, {"election_type": kind, "topic_partitions": topics})
    (topic,) = answer.all("replica_election_results")
    (partition,) = topic.all("partition_result")
    assert Error(answer.number("error_code")) is Error(partition.number("error_code")) is Error.INVALID_REQUEST


def test_metadata_by_name_and_another_id_are_by_the_id() -> None:
    topics = [{"name": "t", "topic_id": b"y" * 16}]
    (topic,) = asked(one_broker(), protocol.METADATA, 12, {"topics": topics}).all("topics")
    assert topic.number("error_code") == 100


def test_settings_of_a_topic_that_cannot_be() -> None:
    no_configs: list[Answer] = []
    resources: list[Answer] = [{"resource_type": 2, "resource_name": "a/b", "configs": no_configs}]
    (row,) = asked(one_broker(), protocol.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources}).all("responses")
    assert Error(row.number("error_code")) is Error.INVALID_TOPIC_EXCEPTION
