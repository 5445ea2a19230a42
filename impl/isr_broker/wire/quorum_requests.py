"""What voters of the metadata quorum say to each other: messages of cores, and Kafka's protocol (KIP-595, KIP-996).

Vote with pre-votes, BeginQuorumEpoch, EndQuorumEpoch, and Fetch and FetchSnapshot of `__cluster_metadata`, in both
directions; and the answer to DescribeQuorum; AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter (KIP-853). Kafka:
RaftUtil, and the handlers of KafkaRaftClient, whose checks of a request are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from isr_broker.core.messages import EpochEnd, Error, Millis, Offset, error_of
from isr_broker.core.quorum_messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    SnapshotId,
    VoteRequest,
    VoteResponse,
    VoterId,
)
from isr_broker.core.record_batch import BadBatch, batches, whole_batches
from isr_broker.core.voter import FETCH_BYTES
from isr_broker.core.voter_state import AddVoter, ChangeVoters, RemoveVoter, UpdateVoter
from isr_broker.environment import Address
from isr_broker.wire import protocol
from isr_broker.wire.control_records import node_of, voter_sets
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import NOBODY, Answer, Fields, Request, number_of

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = bytes(15) + b"\1"
"""Uuid.METADATA_TOPIC_ID."""

SERVED_VERSIONS: Final[dict[int, tuple[int, int]]] = {
    protocol.FETCH: (12, 18),
    protocol.API_VERSIONS: protocol.SERVED_VERSIONS[protocol.API_VERSIONS],
    protocol.VOTE: (0, 2),
    protocol.BEGIN_QUORUM_EPOCH: (0, 1),
    protocol.END_QUORUM_EPOCH: (0, 1),
    protocol.DESCRIBE_QUORUM: (0, 2),
    protocol.FETCH_SNAPSHOT: (0, 1),
    protocol.DESCRIBE_CLUSTER: (1, 2),
}
"""The versions that a voter serves, by API key. Fetch before 12 has no epoch of the last record (KIP-595)."""

CHANGES: Final[dict[int, tuple[int, int]]] = {
    protocol.ADD_RAFT_VOTER: (0, 1),
    protocol.REMOVE_RAFT_VOTER: (0, 0),
    protocol.UPDATE_RAFT_VOTER: (0, 0),
}
"""What one whose voters change serves, too."""

ASKED_VERSIONS: Final = {
    protocol.FETCH: 17,
    protocol.VOTE: 2,
    protocol.BEGIN_QUORUM_EPOCH: 1,
    protocol.END_QUORUM_EPOCH: 1,
    protocol.FETCH_SNAPSHOT: 1,
}
"""The versions in which a voter asks: those of Kafka 4.0, which every later release serves."""

FETCH_WAIT: Final[Millis] = 500
"""How long a fetch waits at the leader for records (KafkaRaftClient.MAX_FETCH_WAIT_MS)."""
CONTROLLERS: Final = 2
"""What DescribeCluster asks about and tells of (EndpointType)."""
_UNKNOWN: Final = -1
_NOT_TOLD: Final = 2**63 - 1
"""The high watermark of a fetch whose sender does not say what it knows (KIP-1166)."""


@attrs.frozen(kw_only=True)
class Quorum:
    """Who the voters are, where each is found, and of which cluster; `directory` is the id of this voter's.

    Voters that change are `dynamic`. Then `places` are those that are known so far, with servers to ask for the leader,
    which have negative numbers, as in Kafka.
    """

    me: VoterId
    cluster: str
    directory: bytes
    listener: str
    places: Mapping[VoterId, Address]
    dynamic: bool = False

    def place_in(self, endpoints: Sequence[tuple[str, str, int]]) -> Address | None:
        """Where somebody with these endpoints is found, by the listener of controllers, or else the first."""
        named = [place for place in endpoints if place[0] == self.listener] or [*endpoints]
        return named[0][1:] if named else None


class RefusedAnswer(Exception):
    """An answer that says nothing of epoch and leader, but an error of the whole request, which the message names."""


# Requests


_KEYS: Final[dict[type[QuorumRequest], int]] = {
    VoteRequest: protocol.VOTE,
    BeginQuorumEpochRequest: protocol.BEGIN_QUORUM_EPOCH,
    EndQuorumEpochRequest: protocol.END_QUORUM_EPOCH,
    QuorumFetchRequest: protocol.FETCH,
    FetchSnapshotRequest: protocol.FETCH_SNAPSHOT,
}


def key_of(request: QuorumRequest) -> int:
    """The API key of a request."""
    return _KEYS[type(request)]


def request_frame(
    quorum: Quorum,
    to: VoterId,
    correlation: int,
    request: QuorumRequest,
    successors: Sequence[VoterId] = (),
    position: int = 0,
) -> bytes:
    """The frame of a request to another voter.

    `successors` are the voters that a leader which has resigned would have for its successor, the best first.
    `position`: how much there is of a snapshot already.
    """
    key = key_of(request)
    client = f"voter-{quorum.me}"
    fields = _fields(quorum, to, request, successors)
    if isinstance(request, FetchSnapshotRequest):
        fields = _snapshot_fields(quorum, request, position)
    return protocol.ask(key, ASKED_VERSIONS[key], correlation, client, fields)


def _snapshot_fields(quorum: Quorum, request: FetchSnapshotRequest, position: int) -> Answer:
    partition = {
        "partition": 0,
        "current_leader_epoch": request.epoch,
        "snapshot_id": {"end_offset": request.snapshot.end, "epoch": request.snapshot.epoch},
        "position": position,
        "replica_directory_id": quorum.directory,
    }
    topics = [{"name": TOPIC, "partitions": [partition]}]
    return {"cluster_id": quorum.cluster, "replica_id": request.replica, "max_bytes": FETCH_BYTES, "topics": topics}


def _fields(quorum: Quorum, to: VoterId, request: QuorumRequest, successors: Sequence[VoterId]) -> Answer:
    match request:
        case VoteRequest():
            partition: Answer = {
                "replica_epoch": request.epoch,
                "replica_id": request.nominee,
                "replica_directory_id": quorum.directory,
                "last_offset_epoch": request.last_epoch,
                "last_offset": request.log_end,
                "pre_vote": request.pre_vote,
                "voter_directory_id": request.voter_directory,
            }
            return {"cluster_id": quorum.cluster, "voter_id": to, "topics": _topics(partition)}
        case BeginQuorumEpochRequest():
            partition = {"leader_id": request.leader, "leader_epoch": request.epoch}
            endpoints = _leader_endpoints(quorum, request.leader)
            return {
                "cluster_id": quorum.cluster,
                "voter_id": to,
                "topics": _topics(partition),
                "leader_endpoints": endpoints,
            }
        case EndQuorumEpochRequest():
            partition = {
                "leader_id": request.leader,
                "leader_epoch": request.epoch,
                "preferred_candidates": [{"candidate_id": voter} for voter in successors],
                "preferred_successors": list(successors),
            }
            endpoints = _leader_endpoints(quorum, request.leader)
            return {"cluster_id": quorum.cluster, "topics": _topics(partition), "leader_endpoints": endpoints}
        case QuorumFetchRequest():
            partition = {
                "partition": 0,
                "current_leader_epoch": request.epoch,
                "fetch_offset": request.log_end,
                "last_fetched_epoch": request.last_epoch,
                "replica_directory_id": quorum.directory,
            }
            return {
                "cluster_id": quorum.cluster,
                "replica_state": {"replica_id": request.replica},
                "max_wait": FETCH_WAIT,
                "max_bytes": FETCH_BYTES,
                "topics": [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
            }
        case FetchSnapshotRequest():
            return {}


def _topics(partition: Answer) -> list[Answer]:
    return [{"topic_name": TOPIC, "partitions": [{"partition_index": 0, **partition}]}]


def _leader_endpoints(quorum: Quorum, leader: VoterId) -> list[Answer]:
    return [{"name": quorum.listener, "host": host, "port": port} for host, port in _places(quorum, leader)]


@attrs.frozen(kw_only=True)
class Question:
    """A request of another voter, or an observer's fetch, as it came.

    - `wait`: how long it may wait for an answer with news. `watermark`: the high watermark that its sender knows.
    - `position`, `most`: from where on a snapshot is to be sent, and how many bytes of it.
    - `successors`: those of an EndQuorumEpoch, the best first. `place`: where the leader is that says so.
    """

    sender: VoterId
    request: QuorumRequest
    wait: Millis = 0
    watermark: Offset | None = None
    position: int = 0
    most: int = FETCH_BYTES
    successors: tuple[VoterId, ...] = ()
    place: Address | None = None


def question_of(quorum: Quorum, request: Request) -> Question | Error:
    """What a request of the quorum asks; an error of the whole request where it is not for this voter or none."""
    body = request.body
    if body.has("cluster_id") and body.text("cluster_id") != quorum.cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    partition = _partition(body, request.key == protocol.FETCH)
    if partition is None:
        return Error.INVALID_REQUEST
    match request.key:
        case protocol.VOTE:
            return _vote(quorum, partition)
        case protocol.FETCH:
            return _fetch(quorum, body, partition)
        case protocol.FETCH_SNAPSHOT:
            return _fetch_snapshot(quorum, body, partition)
        case _:
            leader, epoch = partition.number("leader_id"), partition.number("leader_epoch")
            if leader < 0 or leader == quorum.me or not (quorum.dynamic or leader in quorum.places):
                return Error.INVALID_REQUEST
            place = quorum.place_in(node_of(body, "leader_endpoints").endpoints)
            if request.key == protocol.BEGIN_QUORUM_EPOCH:
                return Question(sender=leader, request=BeginQuorumEpochRequest(epoch=epoch, leader=leader), place=place)
            return Question(
                sender=leader,
                place=place,
                request=EndQuorumEpochRequest(epoch=epoch, leader=leader),
                successors=_successors(partition),
            )


def is_for(quorum: Quorum, request: Request) -> bool:
    """Whether a request names this voter as the one that it is for, or names none (isValidVoterKey).

    Where voters are known by their disks, the core looks at those.
    """
    voter = request.body.number("voter_id")
    partition = _partition(request.body, fetches=False) or Fields({})
    directory = partition.data("voter_directory_id") or bytes(16)
    return voter == NOBODY or (voter == quorum.me and (quorum.dynamic or directory in (bytes(16), quorum.directory)))


def _partition(body: Fields, fetches: bool) -> Fields | None:
    """The one partition that a request or an answer is about (hasValidTopicPartition)."""
    topics = body.all("topics") or body.all("responses")
    if len(topics) != 1 or len(partitions := topics[0].all("partitions")) != 1:
        return None
    topic, partition = topics[0], partitions[0]
    if fetches and not topic.text("topic"):
        is_right = topic.data("topic_id") == TOPIC_ID
    else:
        is_right = TOPIC in (topic.text("topic") if fetches else topic.text("topic_name"), topic.text("name"))
    number = next((name for name in ("partition", "index") if name in partition.values), "partition_index")
    return partition if is_right and partition.number(number) == 0 else None


def _vote(quorum: Quorum, partition: Fields) -> Question | Error:
    epoch, nominee = partition.number("replica_epoch"), partition.number("replica_id")
    last_epoch, log_end = partition.number("last_offset_epoch"), partition.number("last_offset")
    pre_vote = partition.number("pre_vote", 0) == 1
    if min(nominee, last_epoch, log_end) < 0 or last_epoch > epoch or (last_epoch == epoch and not pre_vote):
        return Error.INVALID_REQUEST
    if nominee == quorum.me:
        return Error.INVALID_REQUEST
    if not quorum.dynamic and nominee not in quorum.places:
        return Error.INCONSISTENT_VOTER_SET
    of_voter = partition.data("voter_directory_id") or bytes(16)
    vote = VoteRequest(
        epoch=epoch,
        nominee=nominee,
        last_epoch=last_epoch,
        log_end=log_end,
        pre_vote=pre_vote,
        nominee_directory=_directory(quorum, partition),
        voter_directory=(quorum.directory if of_voter == bytes(16) else of_voter) if quorum.dynamic else None,
    )
    return Question(sender=nominee, request=vote)


def _directory(quorum: Quorum, partition: Fields) -> bytes | None:
    """The disk of who asks, where that counts."""
    return partition.data("replica_directory_id") or bytes(16) if quorum.dynamic else None


def _fetch(quorum: Quorum, body: Fields, partition: Fields) -> Question | Error:
    replica = body.part("replica_state").number("replica_id", body.number("replica_id"))
    epoch, log_end = partition.number("current_leader_epoch"), partition.number("fetch_offset")
    last_epoch, wait = partition.number("last_fetched_epoch"), body.number("max_wait")
    if min(log_end, last_epoch, wait) < 0 or last_epoch > epoch:
        return Error.INVALID_REQUEST
    watermark = partition.number("high_watermark", _NOT_TOLD)
    fetch = QuorumFetchRequest(
        epoch=epoch, replica=replica, last_epoch=last_epoch, log_end=log_end, directory=_directory(quorum, partition)
    )
    return Question(
        sender=replica,
        request=fetch,
        wait=wait,
        watermark=None if watermark == _NOT_TOLD else watermark,
    )


def _fetch_snapshot(quorum: Quorum, body: Fields, partition: Fields) -> Question | Error:
    replica, epoch, snapshot = body.number("replica_id"), partition.number("current_leader_epoch"), _snapshot(partition)
    position, most = partition.number("position"), min(FETCH_BYTES, body.number("max_bytes"))
    if snapshot is None or min(epoch, position) < 0 or most < 1:
        return Error.INVALID_REQUEST
    request = FetchSnapshotRequest(
        epoch=epoch, replica=replica, snapshot=snapshot, directory=_directory(quorum, partition)
    )
    return Question(sender=replica, request=request, position=position, most=most)


def _snapshot(partition: Fields) -> SnapshotId | None:
    found = partition.part("snapshot_id")
    end, epoch = found.number("end_offset"), found.number("epoch")
    return SnapshotId(epoch, end) if min(end, epoch) >= 0 else None


def _successors(partition: Fields) -> tuple[VoterId, ...]:
    candidates = partition.all("preferred_candidates")
    return tuple(each.number("candidate_id") for each in candidates) or tuple(partition.numbers("preferred_successors"))


# Answers


def answer_to(quorum: Quorum, response: QuorumResponse) -> Answer:
    """The fields of an answer, in any version."""
    leader = number_of(response.leader)
    common: Answer = {"partition_index": 0, "error_code": response.error.value}
    endpoints = [{"node_id": leader, "host": host, "port": port} for host, port in _places(quorum, leader)]
    if isinstance(response, QuorumFetchResponse):
        partition: Answer = {
            **common,
            "high_watermark": _UNKNOWN if response.high_watermark is None else response.high_watermark,
            "log_start_offset": 0,
            "current_leader": {"leader_id": leader, "leader_epoch": response.epoch},
            "records": response.records,
            "aborted_transactions": None,
        }
        if response.diverging is not None:
            ends = {"epoch": response.diverging.epoch, "end_offset": response.diverging.end}
            partition = {**partition, "diverging_epoch": ends}
        if response.snapshot is not None:
            partition = {**partition, "snapshot_id": _snapshot_fields_of(response.snapshot)}
        topic = {"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}
        return {"responses": [topic], "node_endpoints": endpoints}
    if isinstance(response, FetchSnapshotResponse):
        return part_of_snapshot(quorum, response, 0, 0, FETCH_BYTES)
    partition = {**common, "leader_id": leader, "leader_epoch": response.epoch}
    if isinstance(response, VoteResponse):
        partition = {**partition, "vote_granted": response.vote_granted}
    return {"topics": _topics(partition), "node_endpoints": endpoints}


def part_of_snapshot(quorum: Quorum, response: FetchSnapshotResponse, size: int, position: int, most: int) -> Answer:
    """The answer with a part of a snapshot, of which `size` is all; `response` has all of it from the position on."""
    leader = number_of(response.leader)
    partition = {
        "index": 0,
        "error_code": response.error.value,
        "snapshot_id": _snapshot_fields_of(response.snapshot or SnapshotId(0, 0)),
        "current_leader": {"leader_id": leader, "leader_epoch": response.epoch},
        "size": size,
        "position": position,
        "unaligned_records": response.contents[:most],
    }
    endpoints = [{"node_id": leader, "host": host, "port": port} for host, port in _places(quorum, leader)]
    topics = [{"name": TOPIC, "partitions": [partition]}]
    return {"error_code": 0, "topics": topics, "node_endpoints": endpoints}


def _snapshot_fields_of(snapshot: SnapshotId) -> Answer:
    return {"end_offset": snapshot.end, "epoch": snapshot.epoch}


def _places(quorum: Quorum, leader: VoterId) -> list[Address]:
    return [quorum.places[leader]] if leader in quorum.places else []


def response_of(key: int, body: Fields) -> QuorumResponse:
    """What an answer says.

    RefusedAnswer for an error of the whole request, BadFrame for an answer that is none.
    """
    if error := body.number("error_code", 0):
        raise RefusedAnswer(protocol.ERROR_NAMES.get(error, str(error)))
    partition = _partition(body, key == protocol.FETCH)
    if partition is None:
        raise BadFrame(f"an answer of API {key} that is not about {TOPIC}")
    error_here = error_of(partition.number("error_code", 0))
    if key == protocol.FETCH:
        return _fetch_response(partition, error_here)
    if key == protocol.FETCH_SNAPSHOT:
        return _snapshot_response(partition, error_here)
    epoch, leader = partition.number("leader_epoch"), _voter(partition.number("leader_id"))
    if key == protocol.VOTE:
        vote_granted = partition.number("vote_granted", 0) == 1
        return VoteResponse(error=error_here, epoch=epoch, leader=leader, vote_granted=vote_granted)
    return QuorumEpochResponse(error=error_here, epoch=epoch, leader=leader)


def leader_place(quorum: Quorum, body: Fields) -> tuple[VoterId, Address] | None:
    """Where the leader is that an answer names, if it says so."""
    for node in body.all("node_endpoints"):
        if node.number("node_id") >= 0 and node.number("node_id") != quorum.me and node.text("host"):
            return node.number("node_id"), (node.text("host"), node.number("port"))
    return None


def _voter(number: int) -> VoterId | None:
    return None if number < 0 else number


def _snapshot_response(partition: Fields, error: Error) -> FetchSnapshotResponse:
    current = partition.part("current_leader")
    return FetchSnapshotResponse(
        error=error,
        epoch=current.number("leader_epoch"),
        leader=_voter(current.number("leader_id")),
        snapshot=_snapshot(partition) if error is Error.NONE else None,
        contents=partition.data("unaligned_records") or b"",
    )


def size_of_snapshot(body: Fields) -> int:
    """How many bytes the snapshot has of which an answer has a part."""
    partition = _partition(body, fetches=False)
    return 0 if partition is None else partition.number("size", 0)


def _fetch_response(partition: Fields, error: Error) -> QuorumFetchResponse:
    current, ends = partition.part("current_leader"), partition.part("diverging_epoch")
    watermark, epoch = partition.number("high_watermark"), ends.number("epoch")
    records = whole_batches(partition.data("records") or b"")
    return QuorumFetchResponse(
        error=error,
        epoch=current.number("leader_epoch"),
        leader=_voter(current.number("leader_id")),
        high_watermark=None if watermark < 0 else watermark,
        diverging=EpochEnd(epoch, ends.number("end_offset")) if epoch >= 0 else None,
        records=records,
        voters=voter_sets(records),
        snapshot=_snapshot(partition),
    )


def continues_log(records: bytes, end: Offset) -> bool:
    """Whether batches are as they were written, and continue a log that ends there."""
    try:
        for batch in batches(records, check=True):
            if batch.base_offset != end:
                return False
            end = batch.next_offset
    except BadBatch:
        return False
    return True


# Voters change


def change_of(quorum: Quorum, request: Request) -> ChangeVoters | Error:
    """What an AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter asks for."""
    body = request.body
    if body.has("cluster_id") and body.text("cluster_id") != quorum.cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    voter, node = body.number("voter_id"), node_of(body, "listeners")
    if voter < 0 or node.directory == bytes(16):
        return Error.INVALID_REQUEST
    match request.key:
        case protocol.REMOVE_RAFT_VOTER:
            return RemoveVoter(voter, node.directory)
        case _ if quorum.place_in(node.endpoints) is None:
            return Error.INVALID_REQUEST
        case protocol.ADD_RAFT_VOTER:
            return AddVoter(voter, node)
        case _:
            return UpdateVoter(voter, node)


# DescribeQuorum


@attrs.frozen(kw_only=True)
class ReplicaProgress:
    """How far a voter is, as its leader knows it; times in milliseconds since 1970, -1 for unknown."""

    voter: VoterId
    directory: bytes | None = None
    log_end: Offset | None
    fetched_at: Millis = -1
    caught_up_at: Millis = -1


def description(
    quorum: Quorum,
    response: QuorumResponse,
    watermark: Offset | None,
    voters: Sequence[ReplicaProgress],
    observers: Sequence[ReplicaProgress] = (),
) -> Answer:
    """The answer to DescribeQuorum: of a leader with the voters, of anybody else with the error and the leader."""
    leader = number_of(response.leader)

    def rows_of(replicas: Sequence[ReplicaProgress]) -> list[Answer]:
        return [
            {
                "replica_id": each.voter,
                "replica_directory_id": each.directory,
                "log_end_offset": _UNKNOWN if each.log_end is None else each.log_end,
                "last_fetch_timestamp": each.fetched_at,
                "last_caught_up_timestamp": each.caught_up_at,
            }
            for each in replicas
        ]

    rows = rows_of(voters)
    partition: Answer = {
        "error_code": response.error.value,
        "error_message": None,
        "leader_id": leader,
        "leader_epoch": response.epoch,
        "high_watermark": _UNKNOWN if watermark is None else watermark,
        "current_voters": rows,
        "observers": rows_of(observers),
    }
    nodes = [
        {"node_id": each.voter, "listeners": [{"name": quorum.listener, "host": host, "port": port}]}
        for each in voters
        for host, port in _places(quorum, each.voter)
    ]
    return {"error_message": None, "topics": _topics(partition), "nodes": nodes if rows else []}


def cast_of(quorum: Quorum, voters: Iterable[VoterId], leader: VoterId | None) -> Answer:
    """The answer to DescribeCluster about controllers: who they are, and who leads (KIP-919)."""
    return {
        "error_message": None,
        "endpoint_type": CONTROLLERS,
        "cluster_id": quorum.cluster,
        "controller_id": number_of(leader),
        "brokers": [
            {"broker_id": voter, "host": host, "port": port, "rack": None}
            for voter in sorted(voters)
            for host, port in _places(quorum, voter)
        ],
        "cluster_authorized_operations": -(2**31),
    }
