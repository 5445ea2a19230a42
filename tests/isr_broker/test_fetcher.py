"""A follower's side of a fetch session: what it says and is told, and what it does when that goes wrong (KIP-227)."""

from __future__ import annotations

import random
from typing import cast

import pytest
from tests.isr_broker.test_wire import mangled

from isr_broker.core.messages import (
    EpochEnd,
    Error,
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from isr_broker.core.record_batch import new_batch
from isr_broker.core.stamps import Stamp, Stamped, bare
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.fetcher import Fetcher
from isr_broker.wire.protocol import Answer

TP = TopicPartition("t", 0)
IDS: dict[str, bytes] = {"t": b"t" * 16}


def fetcher() -> Fetcher:
    return Fetcher(2, 1, Settings(), "", lambda topic: IDS.get(topic, bytes(16)))


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


def asked(of: Fetcher) -> protocol.Request:
    frame = of.next()
    assert frame is not None
    request = protocol.parse(frame[4:])
    assert isinstance(request, protocol.Request)
    return request


def names(request: protocol.Request) -> list[int]:
    return [p.number("partition") for t in request.body.all("topics") for p in t.all("partitions")]


def answer(request: protocol.Request, session: int, *partitions: Answer, **more: object) -> bytes:
    topics = [{"topic_id": IDS["t"], "partitions": list(partitions)}] if partitions else []
    fields = {"session_id": session, "responses": topics, **more}
    return protocol.answer(request.key, request.version, request.correlation, fields)[4:]


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

    found = one.take_answer(answer(first, 9, said(0, 5), said(1, 5), said(2, 5, records=new_batch(b"x"))))
    assert [cast("FetchResponse", bare(m)).high_watermark for _, _, m in found] == [5, 5, 5], "the first watermark"
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    second = asked(one)
    assert (second.body.number("session_id"), second.body.number("session_epoch")) == (9, 1)
    assert names(second) == []
    forgotten = second.body.all("forgotten_topics_data")
    assert [t.numbers("partitions") for t in forgotten] == [[2]], "whose records are still being written"
    assert one.take_answer(answer(second, 9, said(1, 5))) == [], "nothing new is no answer to a core"
    one.put(fetch_of(2, 6))
    third = asked(one)
    assert (names(third), third.body.number("session_epoch")) == ([2], 2)
    one.drop(TopicPartition("t", 0))
    assert len(one.take_answer(answer(third, 9))) == 0
    assert [t.numbers("partitions") for t in asked(one).body.all("forgotten_topics_data")] == [[0]]


@pytest.mark.parametrize("error", [Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH])
def test_a_follower_whose_session_is_over_begins_again_with_everything(error: Error) -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    one.take_answer(answer(asked(one), 9))
    assert names(again := asked(one)) == []
    assert one.take_answer(answer(again, 0, error_code=error.value)) == []
    full = asked(one)
    assert (names(full), full.body.number("session_epoch")) == ([0, 1], 0)
    with pytest.raises(BadFrame):
        one.take_answer(answer(full, 0, error_code=error.value))


def test_what_is_in_flight_is_lost_with_the_connection_and_everything_is_asked_again() -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.take_answer(answer(asked(one), 9))
    asked(one)
    assert one.take_loss() == [(2, 1, fetch_of(0))]
    assert one.next() is None
    one.put(fetch_of(0))
    assert asked(one).body.number("session_epoch") == 0


def test_a_follower_is_told_where_its_log_parts_and_of_errors() -> None:
    one = fetcher()
    one.put(fetch_of(0))
    one.put(fetch_of(1))
    parts = said(0, diverging_epoch={"epoch": 1, "end_offset": 3})
    fenced = said(1, -1, error_code=Error.FENCED_LEADER_EPOCH.value)
    (_, _, first), (_, _, second) = one.take_answer(answer(asked(one), 9, parts, fenced))
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
    assert one.take_answer(answer(request, 9, said(0, 5))) == [], "the leader's core has not answered"
    again = asked(one)
    back = {protocol.HEADER_TAGS: {10_000: b'[["t", 0, "1.1:9", {"1.1": 4}]]'}}
    ((_, _, found),) = one.take_answer(answer(again, 9, said(0, 5), **back))
    assert isinstance(found, Stamped)
    assert found.stamp == Stamp("1.1:9", {"1.1": 4})


def test_a_follower_asks_where_an_epoch_ends_before_it_fetches() -> None:
    one = fetcher()
    asks = OffsetForLeaderEpochRequest(partition=TP, replica=2, leader_epoch=3, offset=5, last_epoch=2)
    one.put(fetch_of(1))
    one.put(asks)
    request = asked(one)
    assert request.key == protocol.OFFSET_FOR_LEADER_EPOCH
    row = {"partition": 0, "error_code": 0, "leader_epoch": 1, "end_offset": 4}
    fields = {"topics": [{"topic": "t", "partitions": [row]}]}
    frame = protocol.answer(request.key, request.version, request.correlation, fields)[4:]
    expected = OffsetForLeaderEpochResponse(
        partition=TP, leader=1, leader_epoch=3, offset=5, last_epoch=2, ends=EpochEnd(1, 4)
    )
    assert one.take_answer(frame) == [(1, 2, expected)]
    assert asked(one).key == protocol.FETCH


@pytest.mark.long
def test_a_mangled_answer_is_an_answer_or_a_bad_frame() -> None:
    chance, outcomes = random.Random(4), {"answers": 0, "bad": 0}
    for _ in range(3_000):
        one = fetcher()
        one.put(fetch_of(0))
        parts = said(0, 7, diverging_epoch={"epoch": 1, "end_offset": 3}, records=b"records")
        frame = mangled(
            chance, answer(asked(one), 9, parts, **{protocol.HEADER_TAGS: {10_000: b'[["t", 0, "1", {}]]'}})
        )
        try:
            one.take_answer(frame)
            outcomes["answers"] += 1
        except BadFrame:
            outcomes["bad"] += 1
    assert min(outcomes.values()) > 300


def test_an_answer_about_a_topic_that_was_deleted_is_not_told_to_its_namesake() -> None:
    """The new topic's first question equals the old one's: the old records would become the new topic's."""
    ids = {"t": b"a" * 16}
    one = Fetcher(2, 1, Settings(), "", lambda topic: ids.get(topic, bytes(16)))
    first = fetch_of(0, offset=0, epoch=0)
    one.put(first)
    before = asked(one)
    one.drop(TP)
    ids["t"] = b"b" * 16
    one.put(first)
    old: list[Answer] = [{"topic_id": b"a" * 16, "partitions": [said(0, 1, records=new_batch(b"old"))]}]
    fields = {"session_id": 9, "responses": old}
    assert one.take_answer(protocol.answer(before.key, before.version, before.correlation, fields)[4:]) == []
    again = asked(one)
    assert [t.data("topic_id") for t in again.body.all("topics")] == [b"b" * 16]
    assert [t.data("topic_id") for t in again.body.all("forgotten_topics_data")] == [b"a" * 16]


def test_a_topic_whose_id_is_learned_later_is_asked_about_again() -> None:
    ids: dict[str, bytes] = {}
    one = Fetcher(2, 1, Settings(), "", lambda topic: ids.get(topic, bytes(16)))
    one.put(fetch_of(0))
    before = asked(one)
    ids["t"] = b"t" * 16
    unknown: list[Answer] = [{"topic_id": bytes(16), "partitions": [said(0, error_code=Error.UNKNOWN_TOPIC_ID.value)]}]
    fields = {"session_id": 9, "responses": unknown}
    assert one.take_answer(protocol.answer(before.key, before.version, before.correlation, fields)[4:]) == []
    assert [t.data("topic_id") for t in asked(one).body.all("topics")] == [b"t" * 16]
