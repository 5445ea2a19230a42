"""OffsetForLeaderEpoch of followers: each question is answered by its replica's core (KIP-101)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from isr_broker.core.messages import (
    BrokerId,
    Error,
    Message,
    Millis,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from isr_broker.core.stamps import Stamp, Stamped, bare, stamp_of, stamp_tags, stamps_in, with_stamp
from isr_broker.runtime import Runtime
from isr_broker.wire.cluster_ids import names_another_cluster
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Request

Reply: TypeAlias = Callable[[Answer], None]
AnswerHandler: TypeAlias = Callable[[OffsetForLeaderEpochResponse, Stamp | None], None]


@attrs.define
class EpochRequests:
    """Where epochs end, as followers ask a broker; `waits` has who asked, by follower and partition."""

    runtime: Runtime
    waits: dict[tuple[BrokerId, TopicPartition], AnswerHandler] = attrs.field(
        factory=dict[tuple[BrokerId, TopicPartition], AnswerHandler]
    )

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """A follower asks where epochs end; every partition is answered by its replica's core (KIP-101)."""
        source, stamps = request.body.number("replica_id"), stamps_in(request.tags)
        if names_another_cluster(request, self.runtime.cluster):
            reply(_refusal(request, Error.INCONSISTENT_CLUSTER_ID))
            return
        answers: dict[TopicPartition, tuple[OffsetForLeaderEpochResponse, Stamp | None]] = {}
        partitions: list[TopicPartition] = []

        def collect_answer(response: OffsetForLeaderEpochResponse, stamp: Stamp | None) -> None:
            answers[response.partition] = (response, stamp)
            if len(answers) == len(partitions):
                reply(_epoch_ends(answers))

        questions: list[tuple[OffsetForLeaderEpochRequest, Stamp | None]] = []
        for topic in request.body.all("topics"):
            for p in topic.all("partitions"):
                tp = TopicPartition(topic.text("topic"), p.number("partition"))
                ask = OffsetForLeaderEpochRequest(
                    partition=tp,
                    replica=source,
                    leader_epoch=p.number("current_leader_epoch"),
                    offset=-1,
                    last_epoch=p.number("leader_epoch"),
                )
                questions.append((ask, stamps.get((tp.topic, tp.partition))))
        partitions += {ask.partition for ask, _ in questions}
        self.waits |= dict.fromkeys(((source, tp) for tp in partitions), collect_answer)
        # In one turn: what follows a turn would take longer, for thousands of partitions, than all the answers.
        parcels = [(source, self.runtime.me, with_stamp(ask, stamp)) for ask, stamp in questions]
        if parcels:
            self.runtime.receive_messages(parcels, now)
        if not partitions:
            reply({"topics": []})

    def take_answer(self, to: BrokerId, envelope: Message | Stamped) -> None:
        """The core of a replica has said where an epoch ends."""
        response = bare(envelope)
        assert isinstance(response, OffsetForLeaderEpochResponse)
        then = self.waits.pop((to, response.partition), None)
        if then is not None:
            then(response, stamp_of(envelope))


def _refusal(request: Request, error: Error) -> Answer:
    """The error for each partition: the answer has none for all of them."""
    topics: list[Answer] = []
    for topic in request.body.all("topics"):
        numbers = (p.number("partition") for p in topic.all("partitions"))
        nowhere = [{"partition": n, "error_code": error.value, "leader_epoch": -1, "end_offset": -1} for n in numbers]
        topics.append({"topic": topic.text("topic"), "partitions": nowhere})
    return {"topics": topics}


def _epoch_ends(answers: dict[TopicPartition, tuple[OffsetForLeaderEpochResponse, Stamp | None]]) -> Answer:
    topics: dict[str, list[Answer]] = {}
    for tp, (response, _) in answers.items():
        ends = response.ends
        topics.setdefault(tp.topic, []).append(
            {
                "partition": tp.partition,
                "error_code": response.error.value,
                "leader_epoch": -1 if ends is None else ends.epoch,
                "end_offset": -1 if ends is None else ends.end,
            }
        )
    stamps = {(tp.topic, tp.partition): stamp for tp, (_, stamp) in answers.items() if stamp is not None}
    return {"topics": [{"topic": t, "partitions": p} for t, p in topics.items()], HEADER_TAGS: stamp_tags(stamps)}
