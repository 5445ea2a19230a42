"""The high watermark: how a leader advances it, and the answers to fetches and to consumers that depend on it.

`leader` and `follower` build their actions from these functions. Consumers read below the watermark of a leader, or of
a follower (KIP-392), and are parked here until it moves (DelayedFetch).
"""

from __future__ import annotations

import attrs

from isr_broker.core.effects import AnswerConsume, AnswerFetch, AnswerProduce, ReplicaEffect, Slice
from isr_broker.core.inputs import Consume
from isr_broker.core.messages import (
    NO_EPOCH,
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    FetchResponse,
    LeaderEpoch,
    Millis,
    Offset,
)
from isr_broker.core.replica_state import (
    Follower,
    ParkedConsume,
    Replica,
    Step,
    leading,
    with_consumer,
    without_consumers,
)

# What is committed.


def maximal_isr(replica: Replica) -> frozenset[BrokerId]:
    """The committed ISR and what was asked to be added to it: all that may be in sync by now (1) (KIP-497)."""
    now = leading(replica)
    if now.pending is None or not replica.settings.insync_design.counts_maximal_isr:
        return now.isr
    return now.isr | now.pending.isr


def may_commit(replica: Replica, isr: frozenset[BrokerId]) -> bool:
    """The watermark is held while the committed ISR is under the minimum (2) (KAFKA-15583; isUnderMinIsr)."""
    needs = replica.settings.insync_design.watermark_needs_minimum
    return not needs or len(isr) >= leading(replica).min_insync_replicas


def is_caught_up(replica: Replica, follower: Follower, now: Millis) -> bool:
    """At the log end, or there not longer ago than replica.lag.time.max.ms (Replica.isCaughtUp)."""
    if follower.end == replica.log.end:
        return True
    at, longest = follower.caught_up_at, replica.settings.replica_lag_time_max_ms
    return at is not None and now - at <= longest


def advance_watermark(replica: Replica, isr: frozenset[BrokerId], members: frozenset[BrokerId], now: Millis) -> Offset:
    """The watermark after it moved as far as it may; it never goes down (Partition.maybeIncrementLeaderHW).

    It also waits for caught-up, eligible followers that are about to join (shouldWaitForReplicaToJoinIsr), which the
    model leaves out; `insync.waits.for.joiners` switches it.
    """
    if not may_commit(replica, isr):
        return replica.high_watermark
    state, up_to = leading(replica), replica.log.end
    for broker, follower in state.followers.items():
        joins = (
            replica.settings.insync_waits_for_joiners
            and broker not in state.ineligible
            and is_caught_up(replica, follower, now)
        )
        if broker in members or joins:
            up_to = min(up_to, follower.end or 0)
    return max(replica.high_watermark, up_to)


def commits(replica: Replica, members: frozenset[BrokerId], watermark: Offset) -> tuple[Replica, list[ReplicaEffect]]:
    """The watermark is at `watermark` now: producers are answered, and consumers that waited for it.

    (7) While the maximal set is under the minimum the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND
    (Partition.checkEnoughReplicasReachOffset). Model: commits, acknowledged.
    """
    state, effects = leading(replica), list[ReplicaEffect]()
    enough = len(members) >= state.min_insync_replicas
    for waiting in state.waiting:
        if waiting.end <= watermark:
            error = Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            offset = waiting.first if enough else -1
            effects.append(
                AnswerProduce(request=waiting.request, partition=replica.partition, error=error, offset=offset)
            )
    if effects:
        state = attrs.evolve(state, waiting=tuple(w for w in state.waiting if w.end > watermark))
        replica = attrs.evolve(replica, role=state)
    replica, read = moves(replica, watermark)
    return replica, effects + read


def moves(replica: Replica, watermark: Offset) -> tuple[Replica, list[ReplicaEffect]]:
    """The watermark is at `watermark` now: consumers that waited for it are answered."""
    if watermark != replica.high_watermark:
        replica = attrs.evolve(replica, high_watermark=watermark)
    if not replica.consumers:
        return replica, []
    rest, ready = without_consumers(replica, lambda c: watermark > max(c.request.offset, c.request.known_watermark))
    return rest, [records_for(replica, c.request) for c in ready]


# Answers.


def readable(replica: Replica) -> Offset:
    """Up to where consumers may read: the watermark."""
    above = replica.settings.insync_design.read_above_watermark
    return replica.log.end if above else replica.high_watermark


def records_for(replica: Replica, consume: Consume) -> AnswerConsume:
    up_to = readable(replica)
    news = consume.offset < up_to
    records = Slice(offset=consume.offset, up_to=up_to, max_bytes=consume.max_bytes) if news else None
    return AnswerConsume(request=consume.request, partition=replica.partition, records=records, high_watermark=up_to)


def answer_to(replica: Replica, fetch: FetchRequest, diverging: EpochEnd | None = None) -> AnswerFetch:
    tells = replica.settings.insync_design.watermark_of_diverging
    response = fetch.answer(
        replica.me,
        diverging=diverging,
        high_watermark=replica.high_watermark if diverging is None or tells else 0,
        log_start=replica.log.start,
    )
    news = diverging is None and fetch.offset < replica.log.end
    records = Slice(offset=fetch.offset, up_to=replica.log.end, max_bytes=fetch.max_bytes) if news else None
    return AnswerFetch(to=fetch.replica, response=response, records=records)


def refuses_fetch(replica: Replica, fetch: FetchRequest, error: Error) -> AnswerFetch:
    """An error for a follower; to it nothing has changed, and it asks again (no action of the model)."""
    return AnswerFetch(to=fetch.replica, response=fetch.answer(replica.me, error=error, log_start=replica.log.start))


def epoch_error(replica: Replica, epoch: LeaderEpoch) -> Error:
    """Whoever asks believes in another leader epoch than this replica; judged before the role (getLocalLog)."""
    if epoch == replica.leader_epoch:
        return Error.NONE
    return Error.FENCED_LEADER_EPOCH if epoch < replica.leader_epoch else Error.UNKNOWN_LEADER_EPOCH


def without_unreadable(replica: Replica) -> tuple[Replica, list[ReplicaEffect]]:
    """Parked consumers whose offset is no longer in the log are answered OFFSET_OUT_OF_RANGE (DelayedFetch)."""
    log = replica.log
    rest, gone = without_consumers(replica, lambda c: not log.start <= c.request.offset <= log.end)
    return rest, [_refusal(replica, c.request, Error.OFFSET_OUT_OF_RANGE) for c in gone]


def out_of_range(replica: Replica, fetch: FetchRequest) -> AnswerFetch:
    """OFFSET_OUT_OF_RANGE: the fetch offset is outside this log, which starts at `log_start` and ends at `diverging`.

    UnifiedLog.read, LocalLog.read. Kafka's answer has neither bound, and its follower asks for them with ListOffsets
    (AbstractFetcherThread.fetchOffsetAndTruncate).
    """
    answer = fetch.answer(
        replica.me,
        error=Error.OFFSET_OUT_OF_RANGE,
        diverging=EpochEnd(NO_EPOCH, replica.log.end),
        log_start=replica.log.start,
    )
    return AnswerFetch(to=fetch.replica, response=answer)


def fetch_refusal(by: BrokerId, fetch: FetchRequest, error: Error) -> FetchResponse:
    """The answer to a fetch that was not taken, or did not even arrive."""
    return fetch.answer(by, error=error)


def consumer_reads(replica: Replica, consume: Consume, now: Millis) -> Step:
    """A consumer reads below the watermark, or waits for it; past the log end it is out of range.

    Of a follower it waits for the watermark that this follower knows, which lags: so one that came from the leader is
    not sent back. Partition.fetchRecords up to HIGH_WATERMARK.
    """
    if not replica.log.start <= consume.offset <= replica.log.end:
        return Step(replica, (_refusal(replica, consume, Error.OFFSET_OUT_OF_RANGE),))
    up_to = readable(replica)
    if consume.max_wait_ms > 0 and up_to <= max(consume.offset, consume.known_watermark):
        parked = ParkedConsume(consume, now + consume.max_wait_ms)
        return Step(with_consumer(replica, parked))
    return Step(replica, (records_for(replica, consume),), "consumer_reads" if consume.offset < up_to else None)


def answer_late_consumers(replica: Replica, now: Millis) -> tuple[Replica, list[ReplicaEffect]]:
    """Those who have waited long enough are given what there is."""
    if replica.consumers_until is None or replica.consumers_until > now:
        return replica, []
    rest, late = without_consumers(replica, lambda c: c.deadline <= now)
    return rest, [records_for(replica, c.request) for c in late]


def sent_away(replica: Replica) -> list[ReplicaEffect]:
    """Answers for those who wait for a replica that is to be another's follower, or a leader, from now on."""
    return [_refusal(replica, c.request, Error.NOT_LEADER_OR_FOLLOWER) for c in replica.consumers]


def _refusal(replica: Replica, consume: Consume, error: Error) -> AnswerConsume:
    return AnswerConsume(
        request=consume.request, partition=replica.partition, error=error, high_watermark=replica.high_watermark
    )
