"""What voters say to each other, as frames of Kafka's protocol and back, in every version; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isr_broker.core.messages import EpochEnd, Error
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    SnapshotId,
    VoteRequest,
    VoteResponse,
)
from isr_broker.core.record_batch import new_batch, stamped, whole_batches
from isr_broker.wire import protocol
from isr_broker.wire.decoder import Plain
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.quorum_channel import QuorumChannel, RequestLost
from isr_broker.wire.quorum_requests import (
    ASKED_VERSIONS,
    SERVED_VERSIONS,
    Question,
    Quorum,
    RefusedAnswer,
    answer_to,
    continues_log,
    is_for,
    key_of,
    question_of,
    request_frame,
    response_of,
)

PLACES = {1: ("a", 9093), 2: ("b", 9093), 3: ("c", 9094)}
ONE = Quorum(me=1, cluster="c", directory=bytes(range(16)), listener="CONTROLLER", places=PLACES)
TWO = attrs.evolve(ONE, me=2, directory=bytes(range(16, 32)))

EPOCHS, OFFSETS, VOTERS = st.integers(1, 2**31 - 1), st.integers(0, 2**62), st.sampled_from([1, 2, 3])

REQUESTS: st.SearchStrategy[QuorumRequest] = st.one_of(
    st.builds(
        VoteRequest,
        epoch=EPOCHS,
        nominee=st.just(1),
        last_epoch=st.just(0),
        log_end=OFFSETS,
        pre_vote=st.booleans(),
    ),
    st.builds(BeginQuorumEpochRequest, epoch=EPOCHS, leader=st.just(1)),
    st.builds(EndQuorumEpochRequest, epoch=EPOCHS, leader=st.just(1)),
    st.builds(QuorumFetchRequest, epoch=EPOCHS, replica=st.just(1), last_epoch=st.just(1), log_end=OFFSETS),
)
ERRORS = st.sampled_from([Error.NONE, Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER])
RECORDS = st.lists(st.binary(max_size=50), max_size=3).map(
    lambda values: b"".join(stamped(new_batch(value), n, 1) for n, value in enumerate(values))
)
COMMON = {"error": ERRORS, "epoch": EPOCHS, "leader": st.none() | VOTERS}
RESPONSES: Mapping[int, st.SearchStrategy[QuorumResponse]] = {
    protocol.VOTE: st.builds(VoteResponse, **COMMON, vote_granted=st.booleans()),
    protocol.BEGIN_QUORUM_EPOCH: st.builds(QuorumEpochResponse, **COMMON),
    protocol.END_QUORUM_EPOCH: st.builds(QuorumEpochResponse, **COMMON),
    protocol.FETCH: st.builds(
        QuorumFetchResponse,
        **COMMON,
        high_watermark=st.none() | OFFSETS,
        diverging=st.none() | st.builds(EpochEnd, EPOCHS, OFFSETS),
        records=RECORDS,
    ),
}


def arrived(frame: bytes) -> Request:
    request = protocol.parse(frame[4:], SERVED_VERSIONS)
    assert isinstance(request, Request)
    return request


def asked(request: QuorumRequest, successors: tuple[int, ...] = ()) -> Request:
    """A request of voter 1 as it arrives at voter 2."""
    return arrived(request_frame(ONE, 2, 7, request, successors))


@given(REQUESTS)
def test_a_request_arrives_as_it_was_meant(request: QuorumRequest) -> None:
    there = asked(request)
    question = question_of(TWO, there)
    assert isinstance(question, Question)
    assert (question.sender, question.request) == (1, request)
    assert is_for(TWO, there)


@given(st.data())
def test_an_answer_arrives_as_it_was_meant_in_every_version(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(RESPONSES)))
    low, high = SERVED_VERSIONS[key]
    response, version = data.draw(RESPONSES[key]), data.draw(st.integers(low, high))
    frame = protocol.answer(key, version, 3, answer_to(TWO, response))
    body = protocol.parse_answer(key, version, frame[4:]).body
    assert response_of(key, body) == response


def test_who_should_lead_next_is_told_in_either_version() -> None:
    question = question_of(TWO, asked(EndQuorumEpochRequest(epoch=3, leader=1), (3, 2)))
    assert isinstance(question, Question)
    assert question.successors == (3, 2)
    partition = {"partition_index": 0, "leader_id": 1, "leader_epoch": 3, "preferred_successors": [3, 2]}
    fields = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [partition]}]}
    question = question_of(TWO, arrived(protocol.ask(protocol.END_QUORUM_EPOCH, 0, 1, "", fields)))
    assert isinstance(question, Question)
    assert question.successors == (3, 2)


def vote(**fields: int) -> Fields:
    good: dict[str, Plain] = {"partition_index": 0, "replica_epoch": 3, "replica_id": 1}
    good |= {"last_offset_epoch": 2, "last_offset": 5}
    return Fields({"topics": [{"topic_name": "__cluster_metadata", "partitions": [{**good, **fields}]}]})


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, None),
        ({"last_offset_epoch": 3}, Error.INVALID_REQUEST),
        ({"last_offset_epoch": 3, "pre_vote": 1}, None),
        ({"last_offset_epoch": 4, "pre_vote": 1}, Error.INVALID_REQUEST),
        ({"last_offset": -1}, Error.INVALID_REQUEST),
        ({"replica_id": 2}, Error.INVALID_REQUEST),
        ({"replica_id": 4}, Error.INCONSISTENT_VOTER_SET),
        ({"partition_index": 1}, Error.INVALID_REQUEST),
    ],
)
def test_a_vote_that_no_voter_would_ask_for_is_refused(fields: dict[str, int], error: Error | None) -> None:
    question = question_of(TWO, Request(protocol.VOTE, 2, 1, "", vote(**fields)))
    assert (question if isinstance(question, Error) else None) == error


def test_a_request_of_another_cluster_topic_or_voter_is_refused() -> None:
    request = VoteRequest(epoch=3, nominee=1, last_epoch=0, log_end=0, pre_vote=False)
    assert question_of(attrs.evolve(TWO, cluster="d"), asked(request)) is Error.INCONSISTENT_CLUSTER_ID
    assert not is_for(attrs.evolve(TWO, me=3), asked(request))
    fetch = QuorumFetchRequest(epoch=3, replica=1, last_epoch=0, log_end=0)
    topics = [{"topic": "t", "topic_id": bytes(15) + b"\2", "partitions": [{"partition": 0}]}]
    for version in (12, 13):
        frame = protocol.ask(protocol.FETCH, version, 1, "", {"topics": topics, "max_wait": 0})
        assert question_of(TWO, arrived(frame)) is Error.INVALID_REQUEST
    assert isinstance(question_of(TWO, asked(fetch)), Question)


def test_a_broker_that_fetches_is_an_observer() -> None:
    """In an old version its number stands elsewhere, and the topic has its name."""
    partition = {"partition": 0, "current_leader_epoch": 2, "fetch_offset": 4, "last_fetched_epoch": 2}
    topics = [{"topic": "__cluster_metadata", "partitions": [partition]}]
    frame = protocol.ask(protocol.FETCH, 12, 1, "", {"replica_id": 9, "topics": topics, "max_wait": 50})
    question = question_of(TWO, arrived(frame))
    fetch = QuorumFetchRequest(epoch=2, replica=9, last_epoch=2, log_end=4)
    assert question == Question(sender=9, request=fetch, wait=50)


def test_what_answers_say_beside_the_protocol_is_an_error_of_the_request() -> None:
    with pytest.raises(RefusedAnswer, match="INCONSISTENT_CLUSTER_ID"):
        response_of(protocol.VOTE, Fields({"error_code": 104}))
    partition: Answer = {"partition_index": 0, "snapshot_id": {"end_offset": 5, "epoch": 2}}
    topic = {"topic_id": bytes(15) + b"\1", "partitions": [partition]}
    frame = protocol.answer(protocol.FETCH, 17, 1, {"responses": [topic]})
    body = protocol.parse_answer(protocol.FETCH, 17, frame[4:]).body
    response = response_of(protocol.FETCH, body)
    assert isinstance(response, QuorumFetchResponse)
    assert response.snapshot == SnapshotId(epoch=2, end=5)


def test_a_batch_that_a_fetch_has_cut_is_left_out() -> None:
    two = stamped(new_batch(b"a"), 0, 1) + stamped(new_batch(b"b"), 1, 1)
    first = len(two) // 2
    assert [len(whole_batches(two[:at])) for at in (0, 5, first - 1, first, first + 20, len(two))] == [
        *(0, 0, 0, first, first, 2 * first)
    ]
    assert continues_log(two, 0)
    assert not continues_log(two, 1)
    assert not continues_log(two[:-3] + b"abc", 0)


# One request at a time


def answered(channel: QuorumChannel, response: QuorumResponse, correlation: int) -> list[object]:
    assert channel.in_flight is not None
    key = key_of(channel.in_flight.request)
    frame = protocol.answer(key, ASKED_VERSIONS[key], correlation, answer_to(TWO, response))
    return list(channel.take_answer(frame[4:]))


def test_a_channel_asks_the_newest_and_knows_what_was_lost() -> None:
    channel = QuorumChannel(ONE, 2)
    assert channel.next() is None
    begin = BeginQuorumEpochRequest(epoch=3, leader=1)
    channel.put(1, begin)
    channel.put(2, attrs.evolve(begin, epoch=4))
    assert channel.next() is not None
    channel.put(3, attrs.evolve(begin, epoch=5))
    (answer,) = answered(channel, QuorumEpochResponse(epoch=4, leader=1), 1)
    assert getattr(answer, "number", None) == 2
    assert channel.take_loss() == [RequestLost(2, 3)], "it could not be sent"
    channel.put(4, begin)
    assert channel.next() is not None
    channel.put(5, begin)
    assert channel.take_loss() == [RequestLost(2, 4)]
    assert channel.waiting is not None, "the newer one is still to be sent"
