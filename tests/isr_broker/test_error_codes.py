"""Error codes as Kafka 4.3.1 has them, each read in its sources: the docstrings say where.

`one_broker` has the topic `t`, of one partition, and one broker, number 1.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest
from tests.isr_broker.test_limits import asked_in_turns
from tests.isr_broker.test_wire import asked, one_broker

from isr_broker.core.messages import Error
from isr_broker.core.record_batch import new_batch
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer
from isr_broker.wire.requests import Requests

NONE, INVALID = Error.NONE.value, Error.INVALID_REQUEST.value
UNKNOWN, BAD_NAME = Error.UNKNOWN_TOPIC_OR_PARTITION.value, Error.INVALID_TOPIC_EXCEPTION.value
NOT_AVAILABLE = 15


@pytest.fixture(scope="module")
def alone() -> Requests:
    requests = one_broker()
    topic = {"name": "more", "num_partitions": 3, "replication_factor": 1}
    asked(requests, protocol.CREATE_TOPICS, 5, {"timeout": 1_000, "topics": [topic]})
    while requests.runtime.deadline() == 0:
        requests.runtime.tick(10_200)
    return requests


def cursor(topic: str, partition: int) -> Answer:
    return {"topic_name": topic, "partition_index": partition}


Row: TypeAlias = tuple[str, int, list[int]]
PAGES: list[tuple[list[str], Answer | None, int, list[Row], tuple[str, int] | None]] = [
    (["t", "more"], None, 2_000, [("more", NONE, [0, 1, 2]), ("t", NONE, [0])], None),
    (["more"], cursor("more", 1), 2_000, [("more", NONE, [1, 2])], None),
    (["more"], cursor("more", 9), 2_000, [("more", NONE, [])], None),
    (["more"], cursor("more", -1), 2_000, [("more", INVALID, [])], None),
    (["t", "more"], cursor("s", 0), 2_000, [("t", INVALID, []), ("more", INVALID, [])], None),
    ([], cursor("s", -1), 2_000, [], None),
    ([], cursor("s", 0), 2_000, [("t", NONE, [0])], None),
    (["a/b", "."], None, 2_000, [(".", BAD_NAME, []), ("a/b", BAD_NAME, [])], None),
    (["nowhere"], None, 2_000, [("nowhere", UNKNOWN, [])], None),
    (["more", "t"], None, 3, [("more", NONE, [0, 1, 2])], ("t", 0)),
    (["more", "zz"], None, 3, [("more", NONE, [0, 1, 2])], ("zz", 0)),
    (["more", "z/z"], None, 3, [("more", NONE, [0, 1, 2])], ("z/z", 0)),
    (["more", "aa"], None, 3, [("aa", UNKNOWN, []), ("more", NONE, [0, 1, 2])], None),
    (["more"], None, -5, [("more", NONE, [0])], ("more", 1)),
]


@pytest.mark.parametrize(("topics", "begin", "limit", "rows", "after"), PAGES)
def test_partitions_are_described_page_by_page(
    alone: Requests,
    topics: list[str],
    begin: Answer | None,
    limit: int,
    rows: list[Row],
    after: tuple[str, int] | None,
) -> None:
    """DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.describeTopicResponse."""
    names: list[Answer] = [{"name": name} for name in topics]
    fields: Answer = {"topics": names, "response_partition_limit": limit, "cursor": begin}
    said = asked(alone, protocol.DESCRIBE_TOPIC_PARTITIONS, 0, fields)
    described = [
        (t.text("name"), t.number("error_code"), [p.number("partition_index") for p in t.all("partitions")])
        for t in said.all("topics")
        if t.text("name") != "__consumer_offsets"
    ]
    assert described == rows
    goes_on = said.part("next_cursor")
    assert (after is None) == (not said.has("next_cursor"))
    assert after in (None, (goes_on.text("topic_name"), goes_on.number("partition_index")))


@pytest.mark.parametrize(
    ("transactional_id", "producer", "epoch", "error"),
    [
        (None, -1, -1, NONE),
        (None, 5, 3, NONE),
        (None, 5, -1, INVALID),
        (None, -1, 5, INVALID),
        ("", -1, -1, INVALID),
        ("x", 5, -1, INVALID),
        ("x", -1, -1, NOT_AVAILABLE),
    ],
)
def test_a_producer_asks_for_an_id(
    alone: Requests, transactional_id: str | None, producer: int, epoch: int, error: int
) -> None:
    """KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId."""
    asks: Answer = {"transactional_id": transactional_id, "producer_id": producer, "producer_epoch": epoch}
    said = asked(alone, protocol.INIT_PRODUCER_ID, 4, {"transaction_timeout": 1_000, **asks})
    assert said.number("error_code") == error
    assert (said.number("producer_id") >= 0) == (error == NONE)
    assert said.number("producer_epoch") == (0 if error == NONE else -1)


@pytest.mark.parametrize(("kind", "error"), [(0, NONE), (1, NOT_AVAILABLE), (2, INVALID), (7, INVALID), (-1, INVALID)])
def test_a_coordinator_of_each_kind_is_asked_for(alone: Requests, kind: int, error: int) -> None:
    """KafkaApis.getCoordinator (share groups since version 6), FindCoordinatorRequest.CoordinatorType.forId."""
    several = asked_in_turns(alone, protocol.FIND_COORDINATOR, 4, {"key_type": kind, "coordinator_keys": ["g", "h"]})
    assert [c.number("error_code") for c in several.all("coordinators")] == [error, error]
    one = asked_in_turns(alone, protocol.FIND_COORDINATOR, 3, {"key_type": kind, "key": "g"})
    assert one.number("error_code") == error
    assert one.number("node_id") == (1 if error == NONE else -1)


@pytest.mark.parametrize(
    ("kind", "name", "error", "has_settings"),
    [
        (2, "t", NONE, True),
        (2, "nowhere", UNKNOWN, False),
        (2, "a/b", BAD_NAME, False),
        (2, "", BAD_NAME, False),
        (4, "1", NONE, True),
        (4, "", NONE, False),
        (4, "2", INVALID, False),
        (4, "x", INVALID, False),
        (77, "x", INVALID, False),
    ],
)
def test_settings_of_each_kind_of_thing_are_asked_for(
    alone: Requests, kind: int, name: str, error: int, has_settings: bool
) -> None:
    """ConfigHelper.describeConfigs. The broker without a name has what was changed of all while they run: nothing."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    (said,) = asked_in_turns(alone, protocol.DESCRIBE_CONFIGS, 4, {"resources": [resource]}).all("results")
    assert (said.number("error_code"), bool(said.all("configs"))) == (error, has_settings)
    assert said.has("error_message") == (error != NONE)


@pytest.mark.parametrize(("version", "replica", "compared"), [(12, -1, False), (12, 2, True), (17, -1, False)])
def test_the_cluster_of_a_consumers_fetch_is_not_compared(
    alone: Requests, version: int, replica: int, compared: bool
) -> None:
    """KafkaApis.handleFetchRequest does not look at it; KafkaRaftClient does, and a leader here for followers."""
    rows: list[Answer] = [{"index": 0, "records": new_batch(b"x")}]
    asked_in_turns(alone, protocol.PRODUCE, 8, {"acks": 1, "topic_data": [{"name": "t", "partition_data": rows}]})
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1_000}
    topic = {"topic": "t", "topic_id": alone.admin.topics.uuid("t"), "partitions": [partition]}
    session = {"session_id": 0, "session_epoch": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1_000}
    fields = {"cluster_id": "another", "replica_id": replica, "topics": [topic], **session}
    said = asked_in_turns(alone, protocol.FETCH, version, fields)
    assert (said.number("error_code") == Error.INCONSISTENT_CLUSTER_ID.value) == compared
    records = [p.data("records") for t in said.all("responses") for p in t.all("partitions")]
    assert bool(records and records[0]) != compared
