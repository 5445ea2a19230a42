"""Requests about reassignments: to begin and cancel them, and which are under way (KIP-455). docs: ControllerApis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import (
    Admin,
    AdminAnswer,
    BrokerId,
    Error,
    ListReassignments,
    Millis,
    PartitionMetadata,
    Reassignments,
    ReassignPartition,
    TopicPartition,
)
from isr_broker.runtime import ClientAnswer
from isr_broker.wire import protocol
from isr_broker.wire.admin_host import AdminHost
from isr_broker.wire.protocol import Answer, Fields, Request
from isr_broker.wire.turns import Turns, Work

AskEach: TypeAlias = Callable[[Sequence[Admin], Millis, Callable[[list[AdminAnswer]], None]], None]
"""Asks the controller for each of several things, a few in a turn, and hands over its answers in their order."""

_SERVED_APIS: Final = (protocol.ALTER_PARTITION_REASSIGNMENTS, protocol.LIST_PARTITION_REASSIGNMENTS)

MOST_REASSIGNED: Final = 10_000
"""Partitions in one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""


@attrs.define
class ReassignmentRequests:
    """The handlers of one broker, or controller."""

    runtime: AdminHost
    turns: Turns
    ask_each: AskEach

    def serves(self, key: int) -> bool:
        """Whether an API is about reassignments."""
        return key in _SERVED_APIS

    def serve(self, request: Request, now: Millis, reply: Callable[[Answer], None]) -> None:
        """Answer a request when the controller has."""
        if request.key == protocol.ALTER_PARTITION_REASSIGNMENTS:
            self._alter(request.body, now, reply)
        else:
            self._list(request.body, now, reply)

    def _alter(self, body: Fields, now: Millis, reply: Callable[[Answer], None]) -> None:
        """AlterPartitionReassignments: each partition is decided by itself, in the order in which they are named."""
        allows = bool(body.number("allow_replication_factor_change", 1))
        requests = [
            ReassignPartition(
                request=0,
                partition=TopicPartition(topic.text("name"), p.number("partition_index")),
                replicas=tuple(p.numbers("replicas")) if p.has("replicas") else None,
                allows_other_factor=allows,
            )
            for topic in body.all("topics")
            for p in topic.all("partitions")
        ]

        def send_reply(answers: list[AdminAnswer]) -> None:
            rows: dict[str, list[Answer]] = {}
            for request, answer in zip(requests, answers, strict=True):
                error = answer.error
                row = {"partition_index": request.partition.partition, "error_code": error.value}
                text = None if error is Error.NONE else _sentence(request, error)
                rows.setdefault(request.partition.topic, []).append({**row, "error_message": text})
            responses = [{"name": topic, "partitions": partitions} for topic, partitions in rows.items()]
            reply({"error_code": 0, "responses": responses, "allow_replication_factor_change": allows})

        if len(requests) > MOST_REASSIGNED:
            send_reply([AdminAnswer(request=0, error=Error.POLICY_VIOLATION)] * len(requests))
        else:
            self.ask_each(requests, now, send_reply)

    def _list(self, body: Fields, now: Millis, reply: Callable[[Answer], None]) -> None:
        """ListPartitionReassignments: those that are named, or all; the controller is asked page by page."""
        names = {(t.text("name"), n) for t in body.all("topics") for n in t.numbers("partition_indexes")}
        rows: dict[str, list[Answer]] = {}
        every = not body.has("topics")

        def ask(after: TopicPartition | None, now: Millis) -> None:
            self.runtime.ask(lambda number: ListReassignments(request=number, after=after), take_page, now)

        def take_page(answer: ClientAnswer, records: bytes) -> None:
            if not isinstance(answer, Reassignments):
                assert isinstance(answer, AdminAnswer)
                reply({"error_code": answer.error.value, "error_message": answer.error.name, "topics": []})
                return
            for p in answer.partitions:
                if every or (p.partition.topic, p.partition.partition) in names:
                    rows.setdefault(p.partition.topic, []).append(_under_way(p))
            if answer.are_more:
                self.turns.begin(ask_next(answer.partitions[-1].partition))
                return
            listed = [{"name": topic, "partitions": partitions} for topic, partitions in rows.items()]
            reply({"error_code": 0, "topics": listed})

        def ask_next(after: TopicPartition) -> Work:
            now = yield
            ask(after, now)

        ask(None, now)


def _under_way(p: PartitionMetadata) -> Answer:
    """A partition; whoever was added and is removed again, for a new target, is only shown as removed, as in Kafka."""
    return {
        "partition_index": p.partition.partition,
        "replicas": p.replicas,
        "adding_replicas": [r for r in p.adding_replicas if r not in p.removing_replicas],
        "removing_replicas": p.removing_replicas,
    }


def _sentence(request: ReassignPartition, error: Error) -> str:
    """Why a partition is not reassigned."""
    tp, replicas = request.partition, request.replicas
    match error:
        case Error.UNKNOWN_TOPIC_OR_PARTITION:
            return f"there is no partition {tp}"
        case Error.NO_REASSIGNMENT_IN_PROGRESS:
            return f"no reassignment of {tp} is under way"
        case Error.INVALID_REPLICATION_FACTOR:
            return f"{tp} would have another number of replicas, {len(replicas or ())}, which is not allowed"
        case Error.INVALID_REPLICA_ASSIGNMENT if replicas is None:
            return f"{tp} cannot go back, for all in sync were added: it would take an unclean election"
        case Error.INVALID_REPLICA_ASSIGNMENT:
            return f"{tp} needs replicas on registered brokers, on each one at most: {_short(replicas or ())}"
        case Error.POLICY_VIOLATION:
            return f"a request reassigns {MOST_REASSIGNED:,} partitions at most"
        case _:
            return error.name


def _short(replicas: Sequence[BrokerId]) -> str:
    return f"[{', '.join(map(str, replicas[:10]))}{', ...' if len(replicas) > 10 else ''}]"
