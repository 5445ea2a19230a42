"""Produce: every partition is answered by its replica's core, which looks at each record. docs: handleProduceRequest.

A request may have 100 MB of records of nine bytes, which take many seconds to look at. So its partitions are handed
over in turns, and a large batch is looked at in turns before it is. What else its connection asks waits until all of
them are: batches of a producer stay in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Final, TypeAlias, cast

import attrs

from isr_broker.core.batch_records import Look
from isr_broker.core.effects import AnswerProduce
from isr_broker.core.inputs import Produce
from isr_broker.core.messages import Error, Millis, TopicPartition
from isr_broker.core.node import Node
from isr_broker.core.producers import Verdict, look_at
from isr_broker.core.record_batch import HEADER_BYTES, codec_at, is_transactional
from isr_broker.core.replica_state import Leading
from isr_broker.runtime import ClientAnswer, ClientRequest, Runtime
from isr_broker.storage.offsets_topic import TOPIC
from isr_broker.wire.leader_hints import PRODUCE_ERRORS, SINCE_PRODUCE, endpoints, leader_hint
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.turns import Work

Reply: TypeAlias = Callable[[Answer | None], None]

AT_ONCE: Final = 1 << 17
"""Bytes of records that are looked at in one turn: 20 ms at most. A larger batch is looked at in turns of its own."""
_OF_A_PARTITION: Final = 1 << 12
"""What a partition counts as beside its records: it has an append, and a flush where that is wanted."""
OF_A_REFUSAL: Final = 1 << 7
"""What one counts as that is not even shown to a replica."""

_NO_TRANSACTION: Final = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
"""Records of a transaction in a request that names none (KafkaApis.handleProduceRequest)."""
_ZSTD: Final = 4
_WITH_ZSTD: Final = 7
"""The first version of Produce that may have records that zstd compressed (ProduceRequest.validateRecords)."""


@attrs.frozen
class ProduceRequests:
    """The handler of one broker."""

    runtime: Runtime

    def produce(self, request: Request, now: Millis, reply: Reply) -> Work:
        """Hand over each partition's records; with acks=0 nobody is answered."""
        body = request.body
        acks, timeout = body.number("acks"), body.number("timeout")
        records_by_partition = _records(body)
        answers: dict[TopicPartition, Answer] = {}

        def collect_answer(tp: TopicPartition, answer: ClientAnswer, records: bytes) -> None:
            assert isinstance(answer, AnswerProduce)
            replica = self.runtime.node.replicas.get(tp)
            start = -1 if replica is None or answer.error is not Error.NONE else replica.log.start
            said: Answer = {"error_code": answer.error.value, "base_offset": answer.offset, "log_start_offset": start}
            answers[tp] = {"index": tp.partition, **said}
            if acks != 0 and len(answers) == len(records_by_partition):
                leaders: Answer = self._leaders(answers) if request.version >= SINCE_PRODUCE else {}
                reply({"responses": by_topic(answers, "partition_responses"), **leaders})

        transactional = any(_is_transactional(records) for records in records_by_partition.values())
        without_id, size = not body.has("transactional_id"), 0
        for tp, records in records_by_partition.items():
            if size >= AT_ONCE:
                size = 0
                now = yield
            error = _NO_TRANSACTION if transactional and without_id else self._refusal(tp, records, request.version)
            if error is not Error.NONE:
                collect_answer(tp, AnswerProduce(request=0, partition=tp, error=error), b"")
                size += OF_A_REFUSAL
                continue
            verdict = None
            if len(records) > AT_ONCE and self._leads(tp):
                now, verdict = yield from _in_turns(look_at(records), now)
            size += len(records) + _OF_A_PARTITION
            produce = Produce(request=0, partition=tp, records=records, acks=acks, timeout_ms=timeout, verdict=verdict)
            self.runtime.ask(request_maker(produce), partial(collect_answer, tp), now)
        if acks == 0 or not records_by_partition:
            reply(None if acks == 0 else {"responses": []})

    def _leads(self, tp: TopicPartition) -> bool:
        replica = self.runtime.node.replicas.get(tp)
        return replica is not None and isinstance(replica.role, Leading)

    def _leaders(self, answers: dict[TopicPartition, Answer]) -> Answer:
        """Name the leaders beside the answers of those who do not lead, and say where they are (KIP-951)."""
        node = self.runtime.node
        hints = {tp: leader_hint(node, tp) for tp, said in answers.items() if said["error_code"] in PRODUCE_ERRORS}
        if not hints:
            return {}
        answers.update({tp: {**answers[tp], "current_leader": hint} for tp, hint in hints.items()})
        return {"node_endpoints": endpoints(node, (cast("int", hint["leader_id"]) for hint in hints.values()))}

    def _refusal(self, tp: TopicPartition, records: bytes, version: int) -> Error:
        """Why records of a client are not even shown to a replica, of which a request may name very many."""
        if tp.topic == TOPIC:
            return Error.INVALID_TOPIC_EXCEPTION
        if not is_there(self.runtime.node, tp):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        too_new = version < _WITH_ZSTD and len(records) >= HEADER_BYTES and codec_at(records) == _ZSTD
        return Error.UNSUPPORTED_COMPRESSION_TYPE if too_new else Error.NONE


def _records(body: Fields) -> dict[TopicPartition, bytes]:
    return {
        TopicPartition(topic.text("name"), p.number("index")): p.data("records") or b""
        for topic in body.all("topic_data")
        for p in topic.all("partition_data")
    }


def _in_turns(look: Look[Verdict], now: Millis) -> Generator[None, Millis, tuple[Millis, Verdict]]:
    """A look, which lets others have their turn; the time when it is over, and its verdict."""
    while True:
        try:
            next(look)
        except StopIteration as end:
            return now, cast("Verdict", end.value)
        now = yield


def _is_transactional(records: bytes) -> bool:
    """The batch says that it belongs to a transaction (RequestUtils.hasTransactionalRecords)."""
    return len(records) >= HEADER_BYTES and is_transactional(records)


def is_there(node: Node, tp: TopicPartition) -> bool:
    """The partition is known to a broker, or has a replica there."""
    return tp in node.replicas or tp in node.partitions


def request_maker(request: ClientRequest) -> Callable[[int], ClientRequest]:
    """The request, to be given a number."""
    return lambda number: attrs.evolve(request, request=number)


def by_topic(answers: dict[TopicPartition, Answer], inner: str, name: str = "name") -> list[Answer]:
    """Answers about partitions, as fields by their topics, in their order."""
    topics: dict[str, list[Answer]] = {}
    for tp, answer in sorted(answers.items(), key=lambda item: (item[0].topic, item[0].partition)):
        topics.setdefault(tp.topic, []).append(answer)
    return [{name: topic, inner: partitions} for topic, partitions in topics.items()]
