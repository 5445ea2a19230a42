"""Requests of clients: from the fields of Kafka's protocol to inputs of the cores, and back. docs: KafkaApis.

A request may concern many partitions. It is answered when the last of them is, except a fetch (`fetch_requests`), which
is answered as soon as any has something to say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.effects import AnswerDelete, AnswerProduce
from isr_broker.core.inputs import DeleteRecords, Produce
from isr_broker.core.messages import (
    BrokerId,
    Error,
    FetchResponse,
    Message,
    Millis,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from isr_broker.core.record_batch import HEADER_BYTES, codec_at, is_transactional
from isr_broker.core.stamps import Stamped, bare
from isr_broker.runtime import ClientAnswer, ClientRequest, Runtime
from isr_broker.storage.offsets_topic import TOPIC
from isr_broker.wire import protocol
from isr_broker.wire.admin_requests import AdminRequests
from isr_broker.wire.broker_requests import BrokerRequests
from isr_broker.wire.cluster_requests import ClusterRequests
from isr_broker.wire.controller_channels import ELR, ELR_LEVEL
from isr_broker.wire.epoch_requests import EpochRequests
from isr_broker.wire.fetch_requests import FetchRequests
from isr_broker.wire.group_requests import GroupRequests
from isr_broker.wire.leader_hints import PRODUCE_ERRORS, SINCE_PRODUCE, endpoints, leader_hint
from isr_broker.wire.offset_requests import OffsetRequests
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.reassignment_requests import ReassignmentRequests
from isr_broker.wire.turns import Turns

Reply: TypeAlias = Callable[[Answer | None], None]
"""Takes the fields of the answer, or None where none is wanted (acks=0)."""

_IDS_PER_LIFE: Final = 1 << 24
_SINCE_LEVEL_0: Final = 4
"""The first version of ApiVersions whose readers know of a feature at level 0."""


@attrs.define
class Requests:
    """The handlers of one broker."""

    runtime: Runtime
    groups: GroupRequests
    admin: AdminRequests = attrs.field(init=False)
    fetches: FetchRequests = attrs.field(init=False)
    epochs: EpochRequests = attrs.field(init=False)
    offsets: OffsetRequests = attrs.field(init=False)
    brokers: BrokerRequests = attrs.field(init=False)
    cluster: ClusterRequests = attrs.field(init=False)
    reassignments: ReassignmentRequests = attrs.field(init=False)
    turns: Turns = attrs.field(factory=Turns)
    producer_ids: int = 0

    def __attrs_post_init__(self) -> None:
        self.admin = AdminRequests(self.runtime, self.turns)
        self.fetches = FetchRequests(self.runtime, lambda: self.admin.topics)
        self.epochs = EpochRequests(self.runtime)
        self.offsets = OffsetRequests(self.runtime)
        self.brokers = BrokerRequests(self.runtime)
        self.cluster = ClusterRequests(self.runtime)
        self.reassignments = ReassignmentRequests(self.runtime, self.turns, self.admin.each)

    def answers_broker(self, to: BrokerId, envelope: Message | Stamped) -> None:
        """A core here has answered another broker."""
        match bare(envelope):
            case FetchResponse():
                self.fetches.questions.core_answer(to, envelope)
            case OffsetForLeaderEpochResponse():
                self.epochs.take_answer(to, envelope)
            case _:
                self.brokers.take_answer(to, envelope)

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """Answer a request, now or later."""
        body = request.body
        match request.key:
            case key if self.groups.serves(key):
                self.groups.serve(request, now, reply)
            case protocol.API_VERSIONS:
                reply({"api_keys": protocol.api_keys(), **self._features(request.version)})
            case key if self.cluster.serves(key):
                self.cluster.serve(request, now, reply)
            case key if self.reassignments.serves(key):
                self.reassignments.serve(request, now, reply)
            case key if self.admin.serves(key):
                self.admin.serve(request, now, reply)
            case protocol.PRODUCE:
                self._produce(request, now, reply)
            case protocol.DELETE_RECORDS:
                self._delete_records(body, now, reply)
            case protocol.FETCH:
                self.fetches.serve(request, now, reply)
            case key if self.brokers.serves(key):
                self.brokers.serve(request, now, reply)
            case protocol.OFFSET_FOR_LEADER_EPOCH if body.number("replica_id") >= 0:
                self.epochs.serve(request, now, reply)
            case protocol.LIST_OFFSETS:
                self.turns.begin(self.offsets.list_offsets(body, request.version, reply))
            case protocol.OFFSET_FOR_LEADER_EPOCH:
                self.turns.begin(self.offsets.epoch_ends(body, reply))
            case protocol.INIT_PRODUCER_ID:
                reply(self._producer_id(body))
            case _:
                raise AssertionError(f"API {request.key} is advertised but not served")

    def _features(self, version: int) -> Answer:
        """The one feature of Kafka's that is here, in designs that have it: the ELR (EligibleLeaderReplicasVersion).

        Before version 4 none is told that may be at level 0 (ApiVersionsResponse.maybeFilterSupportedFeatureKeys).
        """
        if not self.runtime.settings.insync_design.eligible_leader_replicas:
            return {}
        supported: list[Answer] = [{"name": ELR, "min_version": 0, "max_version": ELR_LEVEL}]
        return {
            "supported_features": supported if version >= _SINCE_LEVEL_0 else [],
            "finalized_features_epoch": self.runtime.node.metadata_offset,
            "finalized_features": [{"name": ELR, "min_version_level": ELR_LEVEL, "max_version_level": ELR_LEVEL}],
        }

    # Records

    def _produce(self, request: Request, now: Millis, reply: Reply) -> None:
        """Produce: every partition is answered by its replica's core; with acks=0 nobody is."""
        body = request.body
        acks, timeout = body.number("acks"), body.number("timeout")
        records_by_partition: dict[TopicPartition, bytes] = {}
        for topic in body.all("topic_data"):
            for p in topic.all("partition_data"):
                records_by_partition[TopicPartition(topic.text("name"), p.number("index"))] = p.data("records") or b""
        answers: dict[TopicPartition, Answer] = {}
        expected, without_id = len(records_by_partition), not body.has("transactional_id")
        if acks == 0:
            reply(None)

        def collect_answer(tp: TopicPartition, answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AnswerProduce)
            answers[tp] = {"index": tp.partition, "error_code": answer.error.value, "base_offset": answer.offset}
            if acks != 0 and len(answers) == expected:
                leaders = self._add_leader_hints(answers) if request.version >= SINCE_PRODUCE else []
                reply({"responses": _by_topic(answers, "partition_responses"), "node_endpoints": leaders})

        if without_id and any(_is_transactional(records) for records in records_by_partition.values()):
            for tp in records_by_partition:
                collect_answer(tp, AnswerProduce(request=0, partition=tp, error=_NO_TRANSACTION), b"")
            return
        for tp, records in records_by_partition.items():
            error = self._refusal_at_door(tp, records, request.version)
            if error is not Error.NONE:
                collect_answer(tp, AnswerProduce(request=0, partition=tp, error=error), b"")
                continue
            told = Produce(request=0, partition=tp, records=records, acks=acks, timeout_ms=timeout)
            self.runtime.ask(_request_maker(told), partial(collect_answer, tp), now)
        if not records_by_partition and acks != 0:
            reply({"responses": []})

    def _add_leader_hints(self, answers: dict[TopicPartition, Answer]) -> list[Answer]:
        """Name the leaders beside the answers of those who do not lead, and say where they are (KIP-951)."""
        node = self.runtime.node
        hints = {tp: leader_hint(node, tp) for tp, said in answers.items() if said["error_code"] in PRODUCE_ERRORS}
        answers.update({tp: {**answers[tp], "current_leader": hint} for tp, hint in hints.items()})
        return endpoints(node, (cast("int", hint["leader_id"]) for hint in hints.values()))

    def _refusal_at_door(self, tp: TopicPartition, records: bytes, version: int) -> Error:
        """Why records of a client are not even shown to a replica, of which a request may name very many."""
        if tp.topic == TOPIC:
            return Error.INVALID_TOPIC_EXCEPTION
        if not self._is_there(tp):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        too_new = version < _WITH_ZSTD and len(records) >= HEADER_BYTES and codec_at(records) == _ZSTD
        return Error.UNSUPPORTED_COMPRESSION_TYPE if too_new else Error.NONE

    def _is_there(self, tp: TopicPartition) -> bool:
        """The partition is known here, or has a replica."""
        return tp in self.runtime.node.replicas or tp in self.runtime.node.partitions

    def _delete_records(self, body: Fields, now: Millis, reply: Reply) -> None:
        """DeleteRecords: each partition's leader forgets what is before an offset (KIP-107; ReplicaManager)."""
        timeout = body.number("timeout")
        offsets = {
            TopicPartition(topic.text("name"), p.number("partition_index")): p.number("offset")
            for topic in body.all("topics")
            for p in topic.all("partitions")
        }
        answers: dict[TopicPartition, Answer] = {}

        def collect_answer(tp: TopicPartition, answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AnswerDelete)
            low, error = answer.low_watermark, answer.error.value
            answers[tp] = {"partition_index": tp.partition, "low_watermark": low, "error_code": error}
            if len(answers) == len(offsets):
                reply({"topics": _by_topic(answers, "partitions")})

        for tp, offset in offsets.items():
            internal = tp.topic == TOPIC
            if internal or not self._is_there(tp):
                error = Error.INVALID_TOPIC_EXCEPTION if internal else Error.UNKNOWN_TOPIC_OR_PARTITION
                collect_answer(tp, AnswerDelete(request=0, partition=tp, error=error), b"")
                continue
            told = DeleteRecords(request=0, partition=tp, offset=offset, timeout_ms=timeout)
            self.runtime.ask(_request_maker(told), partial(collect_answer, tp), now)
        if not offsets:
            reply({"topics": []})

    # Producers

    def _producer_id(self, body: Fields) -> Answer:
        """A new producer identity, unique because a broker epoch is (KIP-98); no transactions."""
        if body.has("transactional_id") or self.runtime.node.broker_epoch < 0:
            return {"error_code": _COORDINATOR_NOT_AVAILABLE, "producer_id": -1, "producer_epoch": -1}
        self.producer_ids += 1
        identity = self.runtime.node.broker_epoch * _IDS_PER_LIFE + self.producer_ids
        return {"error_code": 0, "producer_id": identity, "producer_epoch": 0}


_COORDINATOR_NOT_AVAILABLE: Final = 15

_NO_TRANSACTION: Final = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
"""Records of a transaction in a request that names none (KafkaApis.handleProduceRequest)."""
_ZSTD: Final = 4
_WITH_ZSTD: Final = 7
"""The first version of Produce that may have records that zstd compressed (ProduceRequest.validateRecords)."""


def _is_transactional(records: bytes) -> bool:
    """The batch says that it belongs to a transaction (RequestUtils.hasTransactionalRecords)."""
    return len(records) >= HEADER_BYTES and is_transactional(records)


def as_frame(request: Request, over: Callable[[], bool], say: Callable[[bytes], None]) -> Reply:
    """Takes the fields of the answer and says it as a frame, which is empty where none is wanted, unless `over`."""

    def reply(fields: Answer | None) -> None:
        if not over():
            say(b"" if fields is None else protocol.answer(request.key, request.version, request.correlation, fields))

    return reply


def _request_maker(request: ClientRequest) -> Callable[[int], ClientRequest]:
    """The request, to be given a number."""
    return lambda number: attrs.evolve(request, request=number)


def _by_topic(answers: dict[TopicPartition, Answer], inner: str, name: str = "name") -> list[Answer]:
    topics: dict[str, list[Answer]] = {}
    for tp, said in sorted(answers.items(), key=lambda item: item[0]):
        topics.setdefault(tp.topic, []).append(said)
    return [{name: topic, inner: partitions} for topic, partitions in topics.items()]
