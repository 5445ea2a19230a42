"""Requests of clients: from the fields of Kafka's protocol to inputs of the cores, and back. docs: KafkaApis.

A request may concern many partitions. It is answered when the last of them is, except a fetch (`fetch_requests`), which
is answered as soon as any has something to say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import attrs

from isr_broker.core.effects import AnswerDelete
from isr_broker.core.inputs import DeleteRecords
from isr_broker.core.messages import (
    BrokerId,
    Error,
    FetchResponse,
    Message,
    Millis,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from isr_broker.core.stamps import Stamped, bare
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.storage.offsets_topic import TOPIC
from isr_broker.wire import protocol
from isr_broker.wire.admin_requests import AdminRequests
from isr_broker.wire.broker_requests import BrokerRequests
from isr_broker.wire.cluster_requests import ClusterRequests
from isr_broker.wire.controller_channels import ELR, ELR_LEVEL
from isr_broker.wire.epoch_requests import EpochRequests
from isr_broker.wire.fetch_requests import FetchRequests
from isr_broker.wire.group_requests import OF_MANY, GroupRequests
from isr_broker.wire.offset_requests import OffsetRequests
from isr_broker.wire.produce_requests import ProduceRequests, by_topic, is_there, request_maker
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.reassignment_requests import ReassignmentRequests
from isr_broker.wire.turns import Gate, Turns

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
    produces: ProduceRequests = attrs.field(init=False)
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
        self.produces = ProduceRequests(self.runtime)
        self.fetches = FetchRequests(self.runtime, lambda: self.admin.topics)
        self.fetches.later = self.turns.begin
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

    def serve(self, request: Request, now: Millis, reply: Reply, gate: Gate | None = None) -> None:
        """Answer a request, now or later; the gate is closed while nothing that follows it may be served."""
        body = request.body
        match request.key:
            case protocol.PRODUCE:
                self.turns.begin(self.produces.produce(request, now, reply), gate)
            case protocol.FETCH:
                self.turns.begin(self.fetches.serve(request, now, reply, gate), gate)
            case key if key in OF_MANY:
                self.turns.begin(self.groups.serve_many(request, now, reply), gate)
            case key if self.groups.serves(key):
                self.groups.serve(request, now, reply)
            case protocol.API_VERSIONS:
                reply({"api_keys": protocol.api_keys(), **self._features(request.version)})
            case key if self.cluster.serves(key):
                self.cluster.serve(request, now, reply)
            case key if self.reassignments.serves(key):
                self.reassignments.serve(request, now, reply)
            case key if self.admin.serves(key):
                self.admin.serve(request, now, reply, gate)
            case protocol.DESCRIBE_LOG_DIRS:
                reply({"error_code": 0, "results": [self._log_dir(body)]})
            case protocol.DELETE_RECORDS:
                self._delete_records(body, now, reply)
            case key if self.brokers.serves(key):
                self.brokers.serve(request, now, reply)
            case protocol.OFFSET_FOR_LEADER_EPOCH if body.number("replica_id") >= 0:
                self.epochs.serve(request, now, reply)
            case protocol.LIST_OFFSETS:
                self.turns.begin(self.offsets.list_offsets(body, request.version, reply), gate)
            case protocol.OFFSET_FOR_LEADER_EPOCH:
                self.turns.begin(self.offsets.epoch_ends(body, reply), gate)
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
                reply({"topics": by_topic(answers, "partitions")})

        for tp, offset in offsets.items():
            internal = tp.topic == TOPIC
            if internal or not is_there(self.runtime.node, tp):
                error = Error.INVALID_TOPIC_EXCEPTION if internal else Error.UNKNOWN_TOPIC_OR_PARTITION
                collect_answer(tp, AnswerDelete(request=0, partition=tp, error=error), b"")
                continue
            told = DeleteRecords(request=0, partition=tp, offset=offset, timeout_ms=timeout)
            self.runtime.ask(request_maker(told), partial(collect_answer, tp), now)
        if not offsets:
            reply({"topics": []})

    def _log_dir(self, body: Fields) -> Answer:
        """DescribeLogDirs: the one data directory, and the size of each log in it (KIP-113)."""
        wanted = {(t.text("topic"), n) for t in body.all("topics") for n in t.numbers("partitions")}
        topics: dict[str, list[Answer]] = {}
        for tp, log in sorted(self.runtime.logs.logs.items()):
            if not body.has("topics") or (tp.topic, tp.partition) in wanted:
                size = sum(segment.size for segment in log.segments)
                replica = self.runtime.node.replicas.get(tp)
                lag = 0 if replica is None else max(replica.high_watermark - log.view.end, 0)
                row: Answer = {"partition_index": tp.partition, "partition_size": size, "offset_lag": lag}
                topics.setdefault(tp.topic, []).append({**row, "is_future_key": False})
        listed = [{"name": name, "partitions": rows} for name, rows in topics.items()]
        return {"error_code": 0, "log_dir": "data", "topics": listed}

    # Producers

    def _producer_id(self, body: Fields) -> Answer:
        """A new producer identity, unique because a broker epoch is (KIP-98); no transactions.

        An id without its epoch, and an empty transactional id, are no question (TransactionCoordinator).
        """
        has_id, has_epoch = body.number("producer_id", -1) != -1, body.number("producer_epoch", -1) != -1
        is_empty = body.has("transactional_id") and not body.text("transactional_id")
        if has_id != has_epoch or is_empty:
            return {"error_code": Error.INVALID_REQUEST.value, "producer_id": -1, "producer_epoch": -1}
        if body.has("transactional_id") or self.runtime.node.broker_epoch < 0:
            return {"error_code": _COORDINATOR_NOT_AVAILABLE, "producer_id": -1, "producer_epoch": -1}
        self.producer_ids += 1
        identity = self.runtime.node.broker_epoch * _IDS_PER_LIFE + self.producer_ids
        return {"error_code": 0, "producer_id": identity, "producer_epoch": 0}


_COORDINATOR_NOT_AVAILABLE: Final = 15


def as_frame(
    request: Request, over: Callable[[], bool], say: Callable[[bytes], None], fail: Callable[[str], None]
) -> Reply:
    """Takes the fields of the answer and says it as a frame, which is empty where none is wanted, unless `over`.

    `fail` is told why none can be written. Whoever gives the fields may be a timer, and has more to do than this.
    """

    def reply(fields: Answer | None) -> None:
        if over():
            return
        try:
            frame = (
                b"" if fields is None else protocol.answer(request.key, request.version, request.correlation, fields)
            )
        except protocol.UnwritableAnswer as error:
            fail(str(error))
        else:
            say(frame)

    return reply
