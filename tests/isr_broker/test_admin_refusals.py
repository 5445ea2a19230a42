"""What admins are refused, and with which error: ReplicationControlManagerTest, ControllerApisTest, LogConfigTest.

`one_broker` has the topic `t` and one broker; `controller_of` a controller with three.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import kafka.errors  # type: ignore[import-untyped]
import pytest
from tests.isr_broker.test_answers import admin, controller_of
from tests.isr_broker.test_wire import asked, one_broker
from tests.support import clients
from tests.support.clusters import Cluster

from isr_broker import topic_configs
from isr_broker.core.messages import CreatePartitions, CreateTopic, Error, TopicPartition
from isr_broker.settings import MAX_INT, MAX_LONG, BadSetting, Settings
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer, Fields
from isr_broker.wire.requests import Requests


@pytest.fixture(scope="module")
def alone() -> Requests:
    return one_broker()


def topic(name: str = "new", partitions: int = -1, replicas: int = -1, **more: object) -> Answer:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def chosen(*assignments: tuple[int, list[int]]) -> list[Answer]:
    return [{"partition_index": number, "broker_ids": brokers} for number, brokers in assignments]


def rows(requests: Requests, *topics: Answer, version: int = 7) -> list[Fields]:
    fields: Answer = {"timeout": 1_000, "topics": list(topics), "validate_only": True}
    return asked(requests, protocol.CREATE_TOPICS, version, fields).all("topics")


@pytest.mark.parametrize(
    ("asked_for", "error"),
    [
        (topic(partitions=2, assignments=chosen((0, [1]))), Error.INVALID_REQUEST),
        (topic(replicas=1, assignments=chosen((0, [1]))), Error.INVALID_REQUEST),
        (topic(assignments=chosen((0, [1]), (0, [1]))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((0, [1]), (2, [1]))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((1, [1]))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((0, []))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((0, [1, 1]))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((0, [9]))), Error.INVALID_REPLICA_ASSIGNMENT),
        (topic(assignments=chosen((0, [1]))), Error.NONE),
        (topic(replicas=0), Error.INVALID_REPLICATION_FACTOR),
        (topic(replicas=-2), Error.INVALID_REPLICATION_FACTOR),
        (topic(partitions=0, replicas=0), Error.INVALID_REPLICATION_FACTOR),
        (topic(replicas=2), Error.INVALID_REPLICATION_FACTOR),
        (topic(partitions=0), Error.INVALID_PARTITIONS),
        (topic(partitions=-2), Error.INVALID_PARTITIONS),
        (topic(partitions=10_001), Error.POLICY_VIOLATION),
        (topic("no/name"), Error.INVALID_TOPIC_EXCEPTION),
        (topic("__cluster_metadata"), Error.INVALID_REQUEST),
        (topic("t"), Error.TOPIC_ALREADY_EXISTS),
        (topic("t", replicas=0), Error.TOPIC_ALREADY_EXISTS),
        (topic(configs=[{"name": "segment.ms", "value": None}]), Error.INVALID_CONFIG),
        (topic(configs=[{"name": "segment.ms", "value": "0"}]), Error.INVALID_CONFIG),
        (topic(), Error.NONE),
    ],
)
def test_a_creation_that_contradicts_itself_is_refused_by_name(
    alone: Requests, asked_for: Answer, error: Error
) -> None:
    (row,) = rows(alone, asked_for)
    assert error_of(row) is error
    assert bool(row.text("error_message")) == (error is not Error.NONE)


def error_of(row: Fields) -> Error:
    return Error(row.number("error_code"))


def test_a_topic_that_is_named_twice_is_refused_once_and_others_are_not(alone: Requests) -> None:
    found = {row.text("name"): error_of(row) for row in rows(alone, topic("twice"), topic("once"), topic("twice"))}
    assert found == {"twice": Error.INVALID_REQUEST, "once": Error.NONE}


def test_too_many_partitions_in_one_request_refuse_all_its_topics(alone: Requests) -> None:
    found = {row.text("name"): error_of(row) for row in rows(alone, topic("a", 9_000), topic("b", 1_001))}
    assert found == dict.fromkeys("ab", Error.POLICY_VIOLATION)


def test_a_created_topic_is_told_with_its_partitions_replicas_and_settings(alone: Requests) -> None:
    """KIP-525; also where nothing is created."""
    own = [{"name": "min.insync.replicas", "value": "3"}]
    (row,) = rows(alone, topic(partitions=4, configs=own), version=5)
    assert (row.number("num_partitions"), row.number("replication_factor")) == (4, 1)
    configs = {c.text("name"): c.text("value") for c in row.all("configs")}
    assert (configs["min.insync.replicas"], configs["retention.ms"]) == ("3", "604800000")


@pytest.mark.parametrize(
    ("there", "name", "error"),
    [
        ("a.b", "a_b", Error.INVALID_TOPIC_EXCEPTION),
        ("a_b", "a.b", Error.INVALID_TOPIC_EXCEPTION),
        ("a.b", "a.b", Error.TOPIC_ALREADY_EXISTS),
        ("a.b", "a.c", Error.NONE),
        ("ab", "a.b", Error.NONE),
    ],
)
def test_names_that_differ_in_dots_and_underscores_only_collide(there: str, name: str, error: Error) -> None:
    core, _ = admin(controller_of(Settings()), CreateTopic(request=1, topic=there))
    assert admin(core, CreateTopic(request=2, topic=name))[1] is error


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        (((1, 2), (2, 3)), Error.NONE),
        (((1, 2), (3,)), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1,), (2, 3)), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_of_one_topic_have_as_many_replicas_each(
    assignments: tuple[tuple[int, ...], ...], error: Error
) -> None:
    core, said = admin(controller_of(Settings()), CreateTopic(request=1, topic="u", assignments=assignments))
    assert said is error
    assert (TopicPartition("u", 0) in core.partitions) == (error is Error.NONE)


@pytest.mark.parametrize(
    ("assignments", "fenced", "error"),
    [
        (((1,),), (), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1, 1),), (), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1, 9),), (), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1, 2), (2, 3)), (), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1, 2),), (1, 2), Error.INVALID_REPLICA_ASSIGNMENT),
        (((1, 2),), (1,), Error.NONE),
        ((), (1, 2, 3), Error.INVALID_REPLICATION_FACTOR),
        ((), (1, 2), Error.NONE),
    ],
)
def test_more_partitions_have_the_replicas_of_the_others_and_one_of_them_lives(
    assignments: tuple[tuple[int, ...], ...], fenced: tuple[int, ...], error: Error
) -> None:
    """testCreatePartitions, testCreatePartitionsFailsWhenAllBrokersAreFencedOrInControlledShutdown."""
    core, _ = admin(controller_of(Settings()), CreateTopic(request=1, topic="u", replication_factor=2))
    for broker in fenced:
        core = attrs.evolve(core, brokers=core.brokers.set(broker, attrs.evolve(core.brokers[broker], fenced=True)))
    request = CreatePartitions(request=2, topic="u", count=2, assignments=assignments)
    assert admin(core, request)[1] is error


def extension(requests: Requests, *topics: Answer) -> dict[str, Error]:
    fields: Answer = {"timeout": 1_000, "topics": list(topics), "validate_only": True}
    found = asked(requests, protocol.CREATE_PARTITIONS, 3, fields).all("results")
    return {row.text("name"): error_of(row) for row in found}


def test_an_extension_that_contradicts_itself_is_refused(alone: Requests) -> None:
    assert extension(alone, {"name": "t", "count": 2, "assignments": None}) == {"t": Error.NONE}
    assert extension(alone, {"name": "t", "count": 2, "assignments": []}) == {"t": Error.INVALID_REPLICA_ASSIGNMENT}
    twice: Answer = {"name": "t", "count": 2, "assignments": None}
    assert extension(alone, twice, twice) == {"t": Error.INVALID_REQUEST}


@pytest.mark.parametrize("key", [protocol.ALTER_CONFIGS, protocol.INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize(
    ("resources", "error"),
    [
        ([("t", [("segment.ms", "5")])], Error.NONE),
        ([("t", [("segment.ms", None)])], Error.INVALID_REQUEST),
        ([("t", [("segment.ms", "5"), ("segment.ms", "6")])], Error.INVALID_REQUEST),
        ([("t", [("segment.ms", "5")]), ("t", [("flush.ms", "5")])], Error.INVALID_REQUEST),
        ([("", [("segment.ms", "5")])], Error.INVALID_REQUEST),
        ([("t", [("segment.ms", "x" * 32_000)])], Error.INVALID_CONFIG),
        ([("t", [("min.insync.replicas", str(MAX_INT + 1))])], Error.INVALID_CONFIG),
        ([("nowhere", [("segment.ms", "5")])], Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_settings_that_contradict_themselves_are_refused(
    alone: Requests, key: int, resources: list[tuple[str, list[tuple[str, str | None]]]], error: Error
) -> None:
    listed = [
        {
            "resource_type": 2,
            "resource_name": name,
            "configs": [{"name": n, "value": v, "config_operation": 0} for n, v in configs],
        }
        for name, configs in resources
    ]
    found = asked(alone, key, protocol.SERVED_VERSIONS[key][1], {"resources": listed, "validate_only": True}).all(
        "responses"
    )
    assert [error_of(row) for row in found] == [error] * len(resources)


# Ranges

NUMBERS = {
    "min.insync.replicas": (1, MAX_INT),
    "max.message.bytes": (0, MAX_INT),
    "segment.ms": (1, MAX_LONG),
    "segment.index.bytes": (4, MAX_INT),
    "max.compaction.lag.ms": (1, MAX_LONG),
    "flush.ms": (0, MAX_LONG),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_a_topic_has_the_range_that_it_has_in_kafka(name: str) -> None:
    low, high = NUMBERS[name]
    for value, taken in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        assert (topic_configs.fault(name, str(value)) == "") == taken, value
    for text, taken in ((f" {high} ", True), (f"+{high}", True), ("", False), ("1_0", False), ("٣", False)):
        assert (topic_configs.fault(name, text) == "") == taken, text
    assert topic_configs.fault(name, "9" * 5_000), "Python itself refuses to read so many digits"


def test_a_truth_value_is_read_in_any_case_and_counts_so() -> None:
    assert topic_configs.fault("unclean.leader.election.enable", "TRUE") == ""
    assert topic_configs.unclean({"unclean.leader.election.enable": "TRUE"}, Settings())
    assert Settings.from_properties({"unclean.leader.election.enable": " True "}).unclean_leader_election_enable


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("num.partitions", str(MAX_INT + 1), "at most"),
        ("log.retention.ms", str(MAX_LONG + 1), "at most"),
        ("log.retention.ms", "0", "at least 1, or -1"),
        ("log.retention.bytes", "-2", "at least -1"),
        ("message.max.bytes", "-1", "at least 0"),
        ("socket.request.max.bytes", "0", "at least 1"),
        ("group.initial.rebalance.delay.ms", "-1", "at least 0"),
        ("offsets.topic.replication.factor", "32768", "at most 32767"),
        ("num.partitions", "1_0", "whole number"),
        ("num.partitions", "٣", "whole number"),
        ("num.partitions", "9" * 5_000, "whole number"),
        ("replica.fetch.wait.max.ms", "30001", "at most replica.socket.timeout.ms"),
        ("replica.lag.time.max.ms", "499", "at most replica.lag.time.max.ms"),
    ],
)
def test_a_setting_of_a_broker_that_is_out_of_range_is_refused(name: str, text: str, complaint: str) -> None:
    with pytest.raises(BadSetting, match=complaint):
        Settings.from_properties({name: text})


# Real clients


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.mark.sockets
def test_kafka_python_is_told_that_partitions_differ_in_their_replicas(cluster: Cluster) -> None:
    admin_of = clients.kafka_python_admin(cluster.bootstrap)
    uneven = {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [1, 2], 1: [3]}}
    with pytest.raises(kafka.errors.InvalidReplicationAssignmentError):
        admin_of.create_topics({"uneven": uneven})
    admin_of.close()
