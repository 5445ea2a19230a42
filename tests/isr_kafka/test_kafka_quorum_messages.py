"""The frames of a voter as Kafka's own message classes read and write them."""

from __future__ import annotations

from collections.abc import Generator
from subprocess import Popen

import pytest
from tests.isr_broker.test_quorum_requests import ONE, TWO
from tests.support.kafka_programs import kafka_program

from isr_broker.core.messages import EpochEnd, Error
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
)
from isr_broker.core.record_batch import new_batch, stamped
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer
from isr_broker.wire.quorum_requests import (
    ASKED_VERSIONS,
    SERVED_VERSIONS,
    ReplicaProgress,
    answer_to,
    cast_of,
    description,
    key_of,
    request_frame,
)
from isr_kafka.system import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.processes]


class Messages:
    """Kafka's generated classes in a process of its own."""

    def __init__(self, process: Popen[str]) -> None:
        self.process = process

    def reads(self, key: int, version: int, kind: str, frame: bytes) -> str:
        """The message as text, after it was written again to the same bytes, with nothing left over."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{key} {version} {kind} {frame[4:].hex()}\n")
        self.process.stdin.flush()
        body, left, text = self.process.stdout.readline().rstrip("\n").split(" ", 2)
        assert left == "0"
        assert frame.hex().endswith(body)
        return text


@pytest.fixture(scope="module")
def kafka(newest: Kafka) -> Generator[Messages]:
    """The newest release's."""
    with kafka_program("insync.metadata.Messages", newest.release) as process:
        yield Messages(process)


REQUESTS: list[tuple[QuorumRequest, str]] = [
    (
        VoteRequest(epoch=7, nominee=1, last_epoch=6, log_end=99, pre_vote=True),
        "replicaEpoch=7, replicaId=1, replicaDirectoryId=AAECAwQFBgcICQoLDA0ODw, "
        "voterDirectoryId=AAAAAAAAAAAAAAAAAAAAAA, lastOffsetEpoch=6, lastOffset=99, preVote=true",
    ),
    (BeginQuorumEpochRequest(epoch=7, leader=1), "leaderId=1, leaderEpoch=7)])], leaderEndpoints=[LeaderEndpoint("),
    (EndQuorumEpochRequest(epoch=7, leader=1), "preferredCandidates=[ReplicaInfo(candidateId=3,"),
    (
        QuorumFetchRequest(epoch=7, replica=1, last_epoch=6, log_end=99),
        "currentLeaderEpoch=7, fetchOffset=99, lastFetchedEpoch=6,",
    ),
]


@pytest.mark.parametrize(("request_", "text"), REQUESTS, ids=[type(r).__name__ for r, _ in REQUESTS])
def test_kafka_reads_what_a_voter_asks(kafka: Messages, request_: QuorumRequest, text: str) -> None:
    key = key_of(request_)
    said = kafka.reads(key, ASKED_VERSIONS[key], "request", request_frame(ONE, 2, 5, request_, (3, 2)))
    assert text in said
    assert "clusterId='c'" in said


ANSWERS: list[tuple[int, QuorumResponse, str]] = [
    (
        protocol.VOTE,
        VoteResponse(epoch=7, leader=None, vote_granted=True),
        "leaderId=-1, leaderEpoch=7, voteGranted=true",
    ),
    (
        protocol.BEGIN_QUORUM_EPOCH,
        QuorumEpochResponse(error=Error.FENCED_LEADER_EPOCH, epoch=7, leader=2),
        "errorCode=74, leaderId=2, leaderEpoch=7",
    ),
    (protocol.END_QUORUM_EPOCH, QuorumEpochResponse(epoch=7, leader=2), "errorCode=0, leaderId=2, leaderEpoch=7"),
    (
        protocol.FETCH,
        QuorumFetchResponse(epoch=7, leader=2, high_watermark=4, records=stamped(new_batch(b"x"), 4, 7)),
        "highWatermark=4, lastStableOffset=-1, logStartOffset=0, divergingEpoch=EpochEndOffset(epoch=-1, "
        "endOffset=-1), currentLeader=LeaderIdAndEpoch(leaderId=2, leaderEpoch=7)",
    ),
    (
        protocol.FETCH,
        QuorumFetchResponse(epoch=7, leader=2, diverging=EpochEnd(5, 3)),
        "divergingEpoch=EpochEndOffset(epoch=5, endOffset=3)",
    ),
]


@pytest.mark.parametrize(("key", "response", "text"), ANSWERS)
def test_kafka_reads_what_a_voter_answers(kafka: Messages, key: int, response: QuorumResponse, text: str) -> None:
    low, high = SERVED_VERSIONS[key]
    for version in range(low, high + 1):
        said = kafka.reads(key, version, "answer", protocol.answer(key, version, 3, answer_to(TWO, response)))
        assert text in said


def test_kafka_reads_how_the_quorum_is_described(kafka: Messages) -> None:
    voters = [ReplicaProgress(voter=q, log_end=10 * q, fetched_at=5, caught_up_at=4) for q in (1, 2, 3)]
    answers: list[tuple[int, Answer, str]] = [
        (
            protocol.DESCRIBE_QUORUM,
            description(TWO, QuorumEpochResponse(epoch=7, leader=2), 9, voters),
            "logEndOffset=30, lastFetchTimestamp=5, lastCaughtUpTimestamp=4",
        ),
        (protocol.DESCRIBE_CLUSTER, cast_of(TWO, {1, 2, 3}, 2), "clusterId='c', controllerId=2"),
        (
            protocol.API_VERSIONS,
            {"api_keys": protocol.api_keys(SERVED_VERSIONS)},
            "apiKey=52, minVersion=0, maxVersion=2",
        ),
    ]
    for key, fields, text in answers:
        version = SERVED_VERSIONS[key][1]
        assert text in kafka.reads(key, version, "answer", protocol.answer(key, version, 3, fields))
