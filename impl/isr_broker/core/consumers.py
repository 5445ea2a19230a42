"""Consumers, who read below the watermark of a leader, or of a follower (KIP-392), and wait for it (DelayedFetch)."""

from __future__ import annotations

import attrs

from isr_broker.core.effects import AnswerConsume, ReplicaEffect
from isr_broker.core.inputs import Consume
from isr_broker.core.messages import Error, Millis
from isr_broker.core.replica_state import ParkedConsume, Replica, Step
from isr_broker.core.watermark import readable, records_for


def consumer_reads(replica: Replica, consume: Consume, now: Millis) -> Step:
    """A consumer reads below the watermark, or waits for it; past the log end it is out of range.

    Of a follower it waits for the watermark that this follower knows, which lags: so one that came from the leader is
    not sent back. Partition.fetchRecords up to HIGH_WATERMARK.
    """
    if not replica.log.start <= consume.offset <= replica.log.end:
        return Step(replica, (_refusal(replica, consume, Error.OFFSET_OUT_OF_RANGE),))
    up_to = readable(replica)
    if consume.max_wait_ms > 0 and up_to <= max(consume.offset, consume.seen):
        parked = ParkedConsume(consume, now + consume.max_wait_ms)
        return Step(attrs.evolve(replica, consumers=(*replica.consumers, parked)))
    return Step(replica, (records_for(replica, consume),), "consumer_reads" if consume.offset < up_to else None)


def waited(replica: Replica, now: Millis) -> tuple[Replica, list[ReplicaEffect]]:
    """Those who have waited long enough are given what there is."""
    late = [c for c in replica.consumers if c.deadline <= now]
    if not late:
        return replica, []
    rest = tuple(c for c in replica.consumers if c.deadline > now)
    return attrs.evolve(replica, consumers=rest), [records_for(replica, c.request) for c in late]


def sent_away(replica: Replica) -> list[ReplicaEffect]:
    """Answers for those who wait for a replica that is to be another's follower, or a leader, from now on."""
    return [_refusal(replica, c.request, Error.NOT_LEADER_OR_FOLLOWER) for c in replica.consumers]


def _refusal(replica: Replica, consume: Consume, error: Error) -> AnswerConsume:
    return AnswerConsume(
        request=consume.request, partition=replica.partition, error=error, high_watermark=replica.high_watermark
    )
