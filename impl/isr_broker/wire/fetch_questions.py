"""The questions of fetches to the cores of replicas: one for each partition, and what its answer says on the wire.

A consumer's question is a `Consume`; a core that is to wait parks it, and is asked again when it had too little. A
follower's is a `FetchRequest`; a core parks it until the next fetch of the same session replaces it. A fetch with a
replica id is a follower's: its leader's core takes it, or refuses it if it is from no follower.

A follower that asks the same again is not put to each core: that would wake all of them to change nothing. A replica
that is at rest, with all its records committed and the follower in sync, hears of it before it appends the next record,
and no sooner (`catch_up`). While traces are written each replica is told, and answers, for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from isr_broker.core.effects import AnswerConsume
from isr_broker.core.inputs import Consume
from isr_broker.core.messages import (
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    FetchResponse,
    Message,
    Millis,
    Offset,
    TopicPartition,
)
from isr_broker.core.node import Node
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.stamps import Stamp, Stamped, bare, stamp_of, with_stamp
from isr_broker.core.topics import Topics, topic_id_of
from isr_broker.runtime import ClientAnswer, Runtime
from isr_broker.settings import RACK_AWARE
from isr_broker.wire.fetch_sessions import Fetch, Part, PartAnswer, Session, Stage

_UNTIL_REPLACED: Final[Millis] = 2**31 - 1
"""How long a replica parks a question that the next fetch of its session replaces."""


@attrs.frozen(eq=False)
class Asker:
    """The partition of a session that the next answer of a replica to a follower belongs to."""

    session: Session
    part: Part


@attrs.define
class FetchQuestions:
    """The questions that the replicas of one broker have.

    - `takes`: what is done with the answer of a replica.
    - `askers`: whose question it is, by follower and partition.
    """

    runtime: Runtime
    topics: Callable[[], Topics]
    takes: Callable[[Session, Part, PartAnswer], None]
    askers: dict[tuple[BrokerId, TopicPartition], Asker] = attrs.field(
        factory=dict[tuple[BrokerId, TopicPartition], Asker]
    )

    def ask(self, session: Session, part: Part, fetch: Fetch, size: int, now: Millis) -> None:
        """Put a question for at most `size` bytes to a replica, or answer in its place that it cannot be asked."""
        tp = self._partition(part)
        if tp is None:
            part.answer = part_answer(part, Error.UNKNOWN_TOPIC_ID)
        elif session.is_privileged:
            self._ask_for_follower(session, part, fetch, tp, now)
        else:
            self._ask_for_consumer(session, part, fetch, tp, size, now)

    def core_answer(self, to: BrokerId, envelope: Message | Stamped) -> None:
        """The core of a replica has answered a follower; only the answer to its last question is taken."""
        response = bare(envelope)
        assert isinstance(response, FetchResponse)
        asker = self.askers.get((to, response.partition))
        if asker is None or asker.part.request is None:
            return
        request = asker.part.request
        question = (request.leader_epoch, request.offset, request.last_epoch)
        if question != (response.leader_epoch, response.offset, response.last_epoch):
            return
        del self.askers[to, response.partition]
        answer = part_answer(
            asker.part,
            response.error,
            response.high_watermark if response.error is Error.NONE else -1,
            self.runtime.node.replicas.get(response.partition),
            records=response.records,
            diverging=response.diverging,
            stamp=stamp_of(envelope),
        )
        self.takes(asker.session, asker.part, answer)

    # Consumers

    def _ask_for_consumer(
        self, session: Session, part: Part, fetch: Fetch, tp: TopicPartition, size: int, now: Millis
    ) -> None:
        replica = self.runtime.node.replicas.get(tp)
        if replica is None and tp not in self.runtime.node.partitions:
            # No replica need be asked: a request may name very many that are not there.
            part.answer = part_answer(part, Error.UNKNOWN_TOPIC_OR_PARTITION)
            return
        error = _epoch_error(replica, part)
        reader = preferred_read_replica(self.runtime.node, replica, fetch.rack, part.offset) if replica else None
        if error is not Error.NONE or reader is not None:
            watermark = replica.high_watermark if replica else -1
            part.answer = part_answer(part, error, watermark, reader=reader)
            return
        wait = 0 if fetch.stage is Stage.LOOKS else fetch.wait
        question = Consume(request=0, partition=tp, offset=part.offset, max_bytes=size, max_wait_ms=wait)
        self._consume(session, part, question, now)

    def ask_for_more(self, session: Session, part: Part, fetch: Fetch, now: Millis) -> None:
        """What there is of a partition is too little: its replica is asked once more, to answer when there is more."""
        tp, answer = self._partition(part), part.answer
        if tp is None or answer is None or fetch.due:
            return
        room = fetch.limit - (session.size - answer.size)
        question = Consume(
            request=0,
            partition=tp,
            offset=part.offset,
            max_bytes=min(part.max_bytes, max(room, 1)),
            max_wait_ms=max(fetch.until - now, 0),
            known_watermark=answer.watermark,
        )
        self._consume(session, part, question, now)

    def _consume(self, session: Session, part: Part, question: Consume, now: Millis) -> None:
        part.question, part.more_than = object(), question.known_watermark
        part.waits_until = now + question.max_wait_ms
        then = partial(self._take_records, session, part, part.question)
        number = self.runtime.ask(lambda number: attrs.evolve(question, request=number), then, now)
        part.question_number = question.partition, number

    def take_back(self, part: Part) -> tuple[TopicPartition, int] | None:
        """A consumer's question is none any more; which one it was, for its replica is still to hear that."""
        if part.question is None or part.question_number is None:
            return None
        part.question = None
        return part.question_number

    def _take_records(
        self, session: Session, part: Part, question: object, answer: ClientAnswer, records: bytes
    ) -> None:
        assert isinstance(answer, AnswerConsume)
        if part.question is not question:
            return
        replica = self.runtime.node.replicas.get(answer.partition)
        self.takes(session, part, part_answer(part, answer.error, answer.high_watermark, replica, records=records))

    # Followers

    def _ask_for_follower(self, session: Session, part: Part, fetch: Fetch, tp: TopicPartition, now: Millis) -> None:
        part.question, part.question_at = object(), now
        self.askers[session.replica, tp] = Asker(session, part)
        if part.request is None or part.request.broker_epoch != fetch.broker_epoch:
            part.request = FetchRequest(
                partition=tp,
                replica=session.replica,
                broker_epoch=fetch.broker_epoch,
                leader_epoch=part.leader_epoch,
                offset=part.offset,
                last_epoch=part.last_epoch,
                log_start=part.log_start,
                max_wait_ms=fetch.wait if part.stamp is not None else _UNTIL_REPLACED,
                max_bytes=part.max_bytes,
            )
        self.runtime.receive_messages([(session.replica, self.runtime.me, with_stamp(part.request, part.stamp))], now)

    def repeats(self, session: Session, part: Part, fetch: Fetch, now: Millis) -> bool:
        """Whether a replica that has a follower's question gets it again, to hear that the follower is still there."""
        if not session.is_privileged or part.stamp is not None or now - part.question_at < fetch.wait:
            return False
        request = part.request
        if request is None or request.broker_epoch != fetch.broker_epoch:
            return True
        replica, broker = (
            self.runtime.node.replicas.get(request.partition),
            self.runtime.node.brokers.get(session.replica),
        )
        is_over = broker is not None and fetch.broker_epoch < broker.epoch
        rests = replica is not None and _rests(replica, session.replica)
        asker = self.askers.get((session.replica, request.partition))
        return is_over or not rests or asker is None or asker.part is not part

    def catch_up(self, tp: TopicPartition) -> None:
        """A replica is about to append: now it hears which of its followers have asked again, and when they did.

        From here on it counts how long a follower has not been at the log end (Replica.updateFetchStateOrThrow).
        """
        replica = self.runtime.node.replicas.get(tp)
        if replica is None or not isinstance(replica.role, Leading):
            return
        for follower in replica.role.followers:
            asker = self.askers.get((follower, tp))
            if asker is None:
                continue
            session, part = asker.session, asker.part
            if part.request is None or session.parts.get(part.key) is not part:
                continue
            if part.stamp is None and session.used_at - part.question_at >= session.wait:
                part.question_at = session.used_at
                self.runtime.receive_messages([(follower, self.runtime.me, part.request)], session.used_at)

    # Where a replica has not answered

    def moved_position(self, part: Part) -> PartAnswer | None:
        """A watermark or log start that has moved, for a follower whose question is parked with its leader.

        FetchSession.CachedPartition.maybeUpdateResponseData.
        """
        if part.question is None or part.request is None or part.stamp is not None:
            return None
        replica = self.runtime.node.replicas.get(part.request.partition)
        if replica is None or part.position == (replica.high_watermark, replica.log.start):
            return None
        if not isinstance(replica.role, Leading) or part.request not in [p.request for p in replica.role.fetches]:
            # It waits for the disk, or is refused: whether the follower has the beginning of this log is not known.
            return None
        return part_answer(part, Error.NONE, replica.high_watermark, replica)

    def empty_answer(self, part: Part) -> PartAnswer:
        """A partition that a full answer has to name, though its replica has not answered, or there was no room."""
        tp = self._partition(part)
        replica = self.runtime.node.replicas.get(tp) if tp is not None else None
        return part_answer(part, Error.NONE, replica.high_watermark if replica else -1, replica)

    # Names

    def _partition(self, part: Part) -> TopicPartition | None:
        """Which partition a name or an id means now; None if there is no such id."""
        name = part.topic if isinstance(part.topic, str) else self.topic_name(part.topic)
        return TopicPartition(name, part.number) if isinstance(part.topic, str) or name else None

    def topic_name(self, uuid: bytes) -> str:
        """The topic with an id; before this broker has learned of any, as its logs have it (PartitionMetadataFile)."""
        name, topic_id = self.topics().name(uuid), topic_id_of(uuid)
        if name or not topic_id or self.runtime.knows_itself():
            return name
        return next((tp.topic for tp, of_log in self.runtime.node.topic_ids.items() if of_log == topic_id), "")


def _rests(replica: Replica, follower: BrokerId) -> bool:
    """A leader with this follower in sync and nothing to commit: that it asks again changes only when it was heard."""
    role = replica.role
    return isinstance(role, Leading) and follower in role.isr and replica.high_watermark == replica.log.end


def _epoch_error(replica: Replica | None, part: Part) -> Error:
    """A consumer may believe in another leader epoch than this replica does (KIP-320)."""
    if replica is None or part.leader_epoch in (-1, replica.leader_epoch):
        return Error.NONE
    return Error.FENCED_LEADER_EPOCH if part.leader_epoch < replica.leader_epoch else Error.UNKNOWN_LEADER_EPOCH


def part_answer(
    part: Part,
    error: Error,
    watermark: Offset = -1,
    replica: Replica | None = None,
    *,
    records: bytes = b"",
    reader: BrokerId | None = None,
    diverging: EpochEnd | None = None,
    stamp: Stamp | None = None,
) -> PartAnswer:
    """What an answer says of one partition.

    `replica`: whose log start it tells; `reader`: the replica that is to be read instead; `diverging`: where the
    follower's log parts from the leader's.
    """
    fields: dict[str, object] = {
        "partition_index": part.number,
        "error_code": error.value,
        "high_watermark": watermark,
        "last_stable_offset": watermark,
        "log_start_offset": replica.log.start if replica is not None else -1,
        "aborted_transactions": None,
        "records": records,
    }
    if reader is not None:
        fields["preferred_read_replica"] = reader
    if diverging is not None:
        fields["diverging_epoch"] = {"epoch": diverging.epoch, "end_offset": diverging.end}
    silent = error is Error.NONE and not records and reader is None and diverging is None and stamp is None
    return PartAnswer(fields, len(records), news=not silent, stamp=stamp)


def preferred_read_replica(node: Node, replica: Replica, rack: str, offset: Offset) -> BrokerId | None:
    """The follower that a consumer of this rack is sent to; None to stay, at a follower or at its own rack's leader.

    In sync, with a session, and with the offset: of several the one whose log is longest.
    """
    state = replica.role
    if not isinstance(state, Leading) or not rack or node.settings.replica_selector_class != RACK_AWARE:
        return None
    here = {b for b, broker in node.brokers.items() if broker.rack == rack and not broker.fenced}
    if replica.me in here:
        return None
    ends = {b: f.end for b, f in state.followers.items() if b in here & state.isr and f.end is not None}
    able = sorted((end, b) for b, end in ends.items() if replica.log.start <= offset <= end)
    return able[-1][1] if able else None
