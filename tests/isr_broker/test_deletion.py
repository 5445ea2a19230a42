"""What a client wants forgotten: records before an offset, groups, and what groups have committed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial

import attrs
import confluent_kafka
import pytest
from tests.isr_broker.test_fetch import Client
from tests.isr_broker.test_wire import one_broker
from tests.support import clients
from tests.support.brokers import TP, answer, fetch, follower_of, leader_of, log, metadata, replica, tell
from tests.support.clusters import Cluster

from isr_broker.core.effects import AdvanceLogStart, AnswerDelete, Send
from isr_broker.core.inputs import DeleteRecords, LearnMetadata, Retained, Tick
from isr_broker.core.messages import Error, FetchRequest, TopicPartition
from isr_broker.core.replica_state import Replica, Step
from isr_broker.storage.offsets_topic import Committed, batch_of, learn
from isr_broker.wire import protocol
from isr_broker.wire.groups import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, Group, Groups, Member
from isr_broker.wire.protocol import Answer, Fields

# Records: the cores


def told(step: Step) -> list[tuple[Error, int]]:
    return [(e.error, e.low_watermark) for e in step.effects if isinstance(e, AnswerDelete)]


def deletes(core: Replica, offset: int, now: int = 0) -> Step:
    """The leader is asked, and its disk does at once what it asks for."""
    step = tell(core, DeleteRecords(request=1, partition=TP, offset=offset, timeout_ms=1_000), now)
    for effect in step.effects:
        if isinstance(effect, AdvanceLogStart):
            done = tell(step.core, Retained(partition=TP, log=step.core.log.started(effect.offset)), now)
            step = attrs.evolve(done, effects=(*step.effects, *done.effects))
    return step


def leading() -> Replica:
    """Ten records, of which eight are committed; both followers have fetched."""
    core = leader_of(log(*[0] * 10), watermark=8)
    for follower in (2, 3):
        core = tell(core, fetch(follower, 8, 0)).core
    return core


def starts(core: Replica, follower: int, at: int) -> Step:
    return tell(core, attrs.evolve(fetch(follower, 8, 0), log_start=at))


def test_the_answer_waits_until_every_log_starts_there() -> None:
    step = deletes(leading(), 5)
    assert (step.core.log.start, step.core.high_watermark, told(step)) == (5, 8, [])
    step = starts(step.core, 2, 5)
    assert told(step) == []
    step = starts(step.core, 3, 4)
    assert told(step) == [], "it starts before"
    step = starts(step.core, 3, 5)
    assert told(step) == [(Error.NONE, 5)]
    assert told(starts(step.core, 3, 5)) == [], "once"
    assert told(deletes(step.core, 4)) == [(Error.NONE, 5)], "that is gone already"


def test_all_that_is_committed_goes_and_nothing_beyond() -> None:
    step = deletes(leading(), -1)
    assert step.core.log.start == 8
    for offset in (9, -2):
        step = deletes(leading(), offset)
        assert (step.core.log.start, told(step)) == (0, [(Error.OFFSET_OUT_OF_RANGE, -1)])


def test_who_has_no_session_is_not_waited_for() -> None:
    step = starts(deletes(leading(), 5).core, 2, 5)
    news = LearnMetadata(metadata=metadata(1, 0, isr=(1, 2), version=1), ineligible=frozenset({3}))
    assert told(tell(step.core, news)) == [(Error.NONE, 5)]


def test_who_waits_is_told_in_time_and_when_another_leads() -> None:
    step = deletes(leading(), 5, now=100)
    late = tell(step.core, Tick(), 1_100)
    assert told(late) == [(Error.REQUEST_TIMED_OUT, -1)]
    assert late.core.log.start == 5
    assert told(tell(step.core, LearnMetadata(metadata=metadata(2, 1)))) == [(Error.NOT_LEADER_OR_FOLLOWER, -1)]
    assert told(tell(replica(2), DeleteRecords(request=1, partition=TP, offset=0))) == [
        (Error.NOT_LEADER_OR_FOLLOWER, -1)
    ]


def test_a_follower_says_where_its_log_will_start() -> None:
    core = follower_of(1, log(*[0] * 8))
    step = tell(core, attrs.evolve(answer(8, watermark=8, last_epoch=0), log_start=5))
    (asked,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(asked, FetchRequest)
    assert asked.log_start == 5


# Groups and offsets


def member(name: str, topic: str) -> Member:
    wants = struct.pack(">hih", 0, 1, len(topic)) + topic.encode() + struct.pack(">i", 0)
    return Member(identity=name, protocols={"range": wants}, session_ms=10, rebalance_ms=10, heard_at=0)


def test_a_group_with_members_is_not_deleted_and_one_of_other_members_keeps_its_offsets() -> None:
    groups = Groups(0, {"g": {TopicPartition("t", 0): (1, "")}})
    assert (groups.may_be_deleted("g"), groups.may_lose_offsets("g")) == (0, 0)
    assert groups.may_be_deleted("h") == groups.may_lose_offsets("h") == GROUP_ID_NOT_FOUND
    groups.groups["g"] = Group(kind="consumer", protocol="range", members={"a": member("a", "u")})
    assert (groups.may_be_deleted("g"), groups.may_lose_offsets("g")) == (NON_EMPTY_GROUP, 0)
    assert groups.reads("g", {"t", "u"}) == {"u"}
    groups.groups["g"].members["b"] = Member(
        identity="b", protocols={"range": b"?"}, session_ms=1, rebalance_ms=1, heard_at=0
    )
    assert groups.reads("g", {"t"}) == {"t"}, "nobody knows what it reads"
    groups.groups["g"].kind = "connect"
    assert groups.may_lose_offsets("g") == NON_EMPTY_GROUP


def test_a_record_without_a_value_forgets_what_was_committed() -> None:
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    text = batch_of("g", {here: (1, ""), there: (2, "")}, 5) + batch_of("g", {here: None}, 6)
    known = Committed()
    learn(known, text)
    assert known == {"g": {there: (2, "")}}
    learn(known, batch_of("g", {here: (3, "n"), there: None}, 7))
    assert known == {"g": {here: (3, "n")}}
    learn(known, batch_of("g", {here: None}, 8))
    assert known == {}
    ((key, value),) = clients.kafka_python_records(batch_of("g", {here: None}, 6))
    assert key[:2] == b"\0\1"
    assert not value


def deletion(client: Client, key: int, fields: Answer) -> Fields:
    said = client.ask(key, 0, fields)
    if said is None:
        client.tick(10)
        (said,) = client.waiting
        client.waiting = []
    return said


def test_deletions_are_answered_each_with_its_error() -> None:
    client = Client(one_broker())
    commits: Answer = {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    }
    deletion(client, protocol.OFFSET_DELETE, {"group_id": "g", "topics": []})
    assert client.ask(protocol.OFFSET_COMMIT, 2, commits) is not None
    offsets: Answer = {
        "group_id": "g",
        "topics": [{"name": n, "partitions": [{"partition_index": 0}]} for n in ("t", "nowhere")],
    }
    said = deletion(client, protocol.OFFSET_DELETE, offsets)
    codes = {t.text("name"): t.all("partitions")[0].number("error_code") for t in said.all("topics")}
    assert (said.number("error_code"), codes) == (0, {"t": 0, "nowhere": Error.UNKNOWN_TOPIC_OR_PARTITION.value})
    assert deletion(client, protocol.OFFSET_DELETE, offsets).number("error_code") == GROUP_ID_NOT_FOUND
    assert client.ask(protocol.OFFSET_COMMIT, 2, commits) is not None
    for code in (0, GROUP_ID_NOT_FOUND):
        said = deletion(client, protocol.DELETE_GROUPS, {"groups_names": ["g", "h"]})
        assert {r.text("group_id"): r.number("error_code") for r in said.all("results")} == {
            "g": code,
            "h": GROUP_ID_NOT_FOUND,
        }
    records: Answer = {
        "timeout": 1000,
        "topics": [
            {"name": n, "partitions": [{"partition_index": 0, "offset": 0}]}
            for n in ("t", "nowhere", "__consumer_offsets")
        ],
    }
    said = deletion(client, protocol.DELETE_RECORDS, records)
    rows = {t.text("name"): t.all("partitions")[0] for t in said.all("topics")}
    assert {name: row.number("error_code") for name, row in rows.items()} == {
        "t": 0,
        "nowhere": Error.UNKNOWN_TOPIC_OR_PARTITION.value,
        "__consumer_offsets": Error.INVALID_TOPIC_EXCEPTION.value,
    }


# Real clients


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        clients.create_topic(running.bootstrap, "t", 1, 2)
        running.in_sync("t")
        producer = clients.Confluent(running.bootstrap, {"acks": "all"})
        producer.send_all("t", [b"%d" % number for number in range(20)])
        yield running


@pytest.mark.sockets
def test_confluent_deletes_records_everywhere(cluster: Cluster) -> None:
    assert clients.confluent_delete_records(cluster.bootstrap, "t", 12) == 12

    def start(broker: int) -> int:
        return cluster.servers[broker].runtime.node.replicas[TP].log.start

    assert [start(broker) for broker in cluster.servers] == [12, 12, 12], "the answer waited for them"
    with pytest.raises(confluent_kafka.KafkaException, match="OFFSET_OUT_OF_RANGE"):
        clients.confluent_delete_records(cluster.bootstrap, "t", 21)
    clients.Confluent(cluster.bootstrap, {"acks": "all"}).send_all("t", [b"more"])
    assert clients.confluent_read(cluster.bootstrap, "t", 9, settings={"auto.offset.reset": "earliest"})[0] == b"12"


@pytest.mark.sockets
def test_confluent_deletes_a_group_that_everybody_left(cluster: Cluster) -> None:
    clients.confluent_group(cluster.bootstrap, "leaves", "t", 3)
    cluster.wait(partial(_left, cluster), "it has left")
    clients.confluent_delete_group(cluster.bootstrap, "leaves")
    assert clients.confluent_group_state(cluster.bootstrap, "leaves") == "DEAD"
    with pytest.raises(confluent_kafka.KafkaException, match="GROUP_ID_NOT_FOUND"):
        clients.confluent_delete_group(cluster.bootstrap, "leaves")


def _left(cluster: Cluster) -> bool:
    return clients.confluent_group_state(cluster.bootstrap, "leaves") == "EMPTY"
