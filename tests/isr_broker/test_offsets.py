"""ListOffsets and OffsetForLeaderEpoch as Kafka's own tests have them, and who is asked where there is no replica.

ListOffsetsRequestTest, LogOffsetTest, OffsetsForLeaderEpochRequestTest, PartitionTest; ReplicaManagerTest for brokers
that hold no replica.
"""

from __future__ import annotations

import attrs
import pytest
from tests.isr_broker.test_fetch import Client
from tests.isr_broker.test_wire import asked, one_broker
from tests.support import clients
from tests.support.clusters import Cluster

from isr_broker.core.log_view import Epochs, EpochStart
from isr_broker.core.messages import Error, PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import new_batch
from isr_broker.core.replica_state import Following, Replica, leading
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer, Fields
from isr_broker.wire.requests import Requests

TP = TopicPartition("t", 0)
ELSEWHERE = TopicPartition("u", 0)
LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
NEWEST_VERSION = protocol.SERVED_VERSIONS[protocol.LIST_OFFSETS][1]

Row = tuple[int, int, int, int]
"""Error code, offset, timestamp, leader epoch."""


def with_replica(requests: Requests, change: Replica) -> None:
    node = requests.runtime.node
    requests.runtime.node = attrs.evolve(node, replicas=node.replicas.set(change.partition, change))


def replica_of(requests: Requests) -> Replica:
    return requests.runtime.node.replicas[TP]


def broker_with_records() -> Requests:
    """A leader of epoch 0 with three records at 1000, 2000 and 3000, of which all are committed."""
    requests = one_broker()
    for time in (1_000, 2_000, 3_000):
        batch = new_batch(bytes([12, 0, 0, 0, 1, 0, 0]), timestamp=time)
        topic = {"name": "t", "partition_data": [{"index": 0, "records": batch}]}
        said = asked(requests, protocol.PRODUCE, 8, {"acks": 1, "timeout": 100, "topic_data": [topic]})
        assert [p.number("error_code") for t in said.all("responses") for p in t.all("partition_responses")] == [0]
    assert replica_of(requests).high_watermark == 3
    return requests


def new_leader(requests: Requests, watermark: int, epoch: int = 5) -> None:
    """The replica leads in a later epoch, the start of which its watermark has not reached."""
    before = replica_of(requests)
    log = attrs.evolve(before.log, epochs=before.log.epochs.assign(epoch, before.log.end))
    metadata = attrs.evolve(before.metadata, leader_epoch=epoch) if before.metadata else None
    role = attrs.evolve(leading(before), epoch_start=log.end)
    with_replica(requests, attrs.evolve(before, log=log, metadata=metadata, role=role, high_watermark=watermark))
    assert replica_of(requests).leader_epoch == epoch


def offset(requests: Requests, at: int, version: int = NEWEST_VERSION, replica: int = -1, epoch: int = -1) -> Row:
    partition: Answer = {"partition_index": 0, "timestamp": at, "current_leader_epoch": epoch}
    fields: Answer = {"replica_id": replica, "topics": [{"name": "t", "partitions": [partition]}]}
    ((row,),) = [t.all("partitions") for t in asked(requests, protocol.LIST_OFFSETS, version, fields).all("topics")]
    return (row.number("error_code"), row.number("offset"), row.number("timestamp"), row.number("leader_epoch"))


def test_each_special_timestamp_says_its_offset_and_epoch() -> None:
    requests = broker_with_records()
    rows = {at: offset(requests, at) for at in (LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, TIERED, PENDING)}
    assert rows == {
        LATEST: (0, 3, -1, 0),
        EARLIEST: (0, 0, -1, 0),
        NEWEST: (0, 2, 3_000, 0),
        EARLIEST_LOCAL: (0, 0, -1, 0),
        TIERED: (0, -1, -1, -1),
        PENDING: (0, -1, -1, -1),
    }
    assert offset(requests, 1_001) == (0, 1, 2_000, 0)
    assert offset(requests, 3_001) == (0, -1, -1, -1), "nothing is so late, and nothing has an epoch"


@pytest.mark.parametrize(
    ("at", "first"), [(LATEST, 1), (EARLIEST, 1), (NEWEST, 7), (EARLIEST_LOCAL, 8), (TIERED, 9), (PENDING, 11)]
)
def test_a_special_timestamp_is_refused_to_versions_before_its_own(at: int, first: int) -> None:
    requests = broker_with_records()
    for version in range(1, NEWEST_VERSION + 1):
        error = Error.NONE if version >= first else Error.UNSUPPORTED_VERSION
        assert offset(requests, at, version)[0] == error.value, version


def test_a_negative_time_that_means_nothing_is_refused() -> None:
    assert offset(broker_with_records(), -7)[0] == Error.UNSUPPORTED_VERSION.value


def test_the_epoch_of_the_earliest_offset_is_that_of_its_record_and_of_the_latest_that_of_the_leader() -> None:
    requests = broker_with_records()
    new_leader(requests, 3)
    assert offset(requests, EARLIEST) == (0, 0, -1, 0)
    assert offset(requests, LATEST) == (0, 3, -1, 5)
    later = attrs.evolve(replica_of(requests).log, epochs=Epochs((EpochStart(5, 3),)))
    with_replica(requests, attrs.evolve(replica_of(requests), log=later))
    assert offset(requests, EARLIEST) == (0, 0, -1, -1), "the epoch in which the log starts is not noted"


def test_a_time_below_the_watermark_is_answered_before_the_watermark_reaches_the_epoch() -> None:
    """PartitionTest.testFetchOffsetForTimestampEpochValidation..., testOffsetNotAvailable...; KIP-207."""
    requests = broker_with_records()
    new_leader(requests, 2)
    assert offset(requests, 2_000) == (0, 1, 2_000, 0)
    assert offset(requests, EARLIEST) == (0, 0, -1, 0)
    for at in (LATEST, NEWEST, 2_001, 9_000):
        assert offset(requests, at) == (Error.OFFSET_NOT_AVAILABLE.value, -1, -1, -1), at
        if at != NEWEST:
            assert offset(requests, at, 4)[0] == 5, "LEADER_NOT_AVAILABLE before version 5"
    for at in (LATEST, NEWEST, 2_001):
        assert offset(requests, at, replica=2)[0] == 0, "another broker may know of what is not committed"


def test_a_broker_and_a_tool_are_told_the_log_end_and_the_tool_by_any_replica() -> None:
    requests = broker_with_records()
    with_replica(requests, attrs.evolve(replica_of(requests), high_watermark=1))
    assert [offset(requests, LATEST, replica=r)[1] for r in (-1, -2, 2)] == [1, 3, 3]
    assert [offset(requests, 3_000, replica=r)[1] for r in (-1, -2, 2)] == [-1, 2, 2]
    with_replica(requests, attrs.evolve(replica_of(requests), role=Following()))
    assert offset(requests, LATEST, replica=-2)[:2] == (0, 3)
    for replica in (-1, 2):
        assert offset(requests, LATEST, replica=replica)[0] == Error.NOT_LEADER_OR_FOLLOWER.value
    for epoch, error in ((0, Error.NONE), (1, Error.UNKNOWN_LEADER_EPOCH)):
        assert offset(requests, LATEST, replica=-2, epoch=epoch)[0] == error.value


def test_a_partition_that_is_named_twice_is_refused_once() -> None:
    """ListOffsetsRequest.duplicatePartitions."""
    twice = [{"partition_index": 0, "timestamp": at, "current_leader_epoch": -1} for at in (LATEST, EARLIEST)]
    fields: Answer = {"replica_id": -1, "topics": [{"name": "t", "partitions": twice}]}
    (topic,) = asked(broker_with_records(), protocol.LIST_OFFSETS, 5, fields).all("topics")
    assert [p.number("error_code") for p in topic.all("partitions")] == [Error.INVALID_REQUEST.value]


@pytest.mark.parametrize(("epoch", "end"), [(0, (0, 3)), (5, (5, 3)), (3, (0, 3)), (6, (-1, -1)), (-1, (-1, -1))])
def test_of_an_epoch_later_than_all_its_own_a_log_says_nothing(epoch: int, end: tuple[int, int]) -> None:
    requests = broker_with_records()
    new_leader(requests, 3)
    partition: Answer = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": -1}
    fields: Answer = {"replica_id": -1, "topics": [{"topic": "t", "partitions": [partition]}]}
    said = asked(requests, protocol.OFFSET_FOR_LEADER_EPOCH, 4, fields).all("topics")
    ((row,),) = [t.all("partitions") for t in said]
    assert (row.number("error_code"), row.number("leader_epoch"), row.number("end_offset")) == (0, *end)


# A broker that holds no replica


def without_replica(topic: str) -> list[tuple[str, Fields | None, str]]:
    """What a broker is asked about a partition, and what it says; `u` is in the metadata and on another broker."""
    requests = one_broker()
    node = requests.runtime.node
    known = PartitionMetadata(
        partition=ELSEWHERE,
        replicas=(2, 3),
        isr=frozenset({2, 3}),
        leader=2,
        topic_id=77,
    )
    requests.runtime.node = attrs.evolve(node, partitions=node.partitions.set(ELSEWHERE, known))
    client = Client(requests)
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100, "current_leader_epoch": -1}
    fetch: Answer = {
        "session_id": 0,
        "session_epoch": -1,
        "max_wait": 0,
        "max_bytes": 100,
        "min_bytes": 1,
        "topics": [{"topic": topic, "partitions": [row]}],
    }
    produced = {"name": topic, "partition_data": [{"index": 0, "records": new_batch(b"x")}]}
    deleted = {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}
    epoch = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": -1}
    time = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": -1}
    ends: Answer = {"topics": [{"topic": topic, "partitions": [epoch]}]}
    return [
        (
            "Produce",
            client.ask(protocol.PRODUCE, 8, {"acks": 1, "timeout": 100, "topic_data": [produced]}),
            "responses",
        ),
        ("Fetch", client.ask(protocol.FETCH, 12, {"replica_id": -1, **fetch}), "responses"),
        ("Fetch of a broker", client.ask(protocol.FETCH, 12, {"replica_id": 2, **fetch}), "responses"),
        ("DeleteRecords", client.ask(protocol.DELETE_RECORDS, 2, {"timeout": 100, "topics": [deleted]}), "topics"),
        (
            "ListOffsets",
            client.ask(protocol.LIST_OFFSETS, 5, {"replica_id": -1, "topics": [{"name": topic, "partitions": [time]}]}),
            "topics",
        ),
        ("OffsetForLeaderEpoch", client.ask(protocol.OFFSET_FOR_LEADER_EPOCH, 4, {"replica_id": -1, **ends}), "topics"),
        (
            "OffsetForLeaderEpoch of a broker",
            client.ask(protocol.OFFSET_FOR_LEADER_EPOCH, 4, {"replica_id": 2, **ends}),
            "topics",
        ),
    ]


@pytest.mark.parametrize(
    ("topic", "error"), [("u", Error.NOT_LEADER_OR_FOLLOWER), ("nowhere", Error.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_where_there_is_no_replica_the_metadata_say_whether_another_broker_has_one(topic: str, error: Error) -> None:
    """ReplicaManager.getPartitionOrError; every request is answered."""
    codes: dict[str, list[int]] = {}
    for name, said, inner in without_replica(topic):
        assert said is not None, f"{name} has no answer"
        rows = [p for t in said.all(inner) for p in (*t.all("partitions"), *t.all("partition_responses"))]
        codes[name] = [row.number("error_code") for row in rows]
    assert codes == {name: [error.value] for name in codes}


@pytest.mark.sockets
def test_an_ordinary_client_is_told_offsets_of_each_kind() -> None:
    """librdkafka's admin asks with version 7 (or later), for the earliest, the latest and the newest record."""
    with Cluster() as cluster:
        clients.create_topic(cluster.bootstrap, "t", 1, 3)
        cluster.in_sync("t")
        producer = clients.Confluent(cluster.bootstrap, {"acks": "all"})
        for number in range(5):
            producer.producer.produce("t", b"%d" % number, partition=0, timestamp=1_000 + number)
        assert producer.producer.flush(20) == 0
        assert clients.confluent_offsets(cluster.bootstrap, "t") == {"earliest": 0, "latest": 5, "newest": 4}
