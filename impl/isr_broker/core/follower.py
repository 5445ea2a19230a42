"""A follower: fetches from its log end, appends what it is sent, and cuts what the leader does not have.

Each function is one action of the model, under its name, and says where Kafka does it.
"""

from __future__ import annotations

import attrs

from isr_broker.core.effects import AdvanceLogStart, AppendLog, PartitionHalt, ReplicaEffect, Send, TruncateLog
from isr_broker.core.inputs import Appended, LearnMetadata, Truncated
from isr_broker.core.messages import (
    UNDEFINED_EPOCH_END,
    EpochEnd,
    Error,
    FetchRequest,
    FetchResponse,
    LeaderEpoch,
    Millis,
    Offset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.replica_state import (
    EnteringEpoch,
    FollowerAppend,
    FollowerTruncation,
    Following,
    Replica,
    Step,
    flushes,
    following,
)
from isr_broker.core.truncation import asks_again, truncation_point
from isr_broker.core.watermark import moves, without_unreadable
from isr_broker.designs import Truncation


def _sends(
    replica: Replica, now: Millis, truncating: bool = False, log_start: Offset = 0
) -> tuple[Replica, tuple[ReplicaEffect, ...]]:
    """The question: where the log ends, in which epoch that was written, in which epoch it is asked.

    Model: sends. KIP-320, KIP-595; KIP-903 for the broker epoch. `truncating`: first where that epoch ends (KIP-101).
    `log_start`: where the log starts as soon as the disk has done what it is asked for before.
    """
    if replica.leader is None:
        return attrs.evolve(replica, role=Following()), ()
    if truncating:
        asks = OffsetForLeaderEpochRequest(
            partition=replica.partition,
            replica=replica.me,
            leader_epoch=replica.leader_epoch,
            offset=replica.log.end,
            last_epoch=replica.log.last_epoch,
        )
        return attrs.evolve(replica, role=Following(fetch=asks, truncating=True, sent_at=now)), (
            Send(replica.leader, asks),
        )
    fetch = FetchRequest(
        partition=replica.partition,
        replica=replica.me,
        broker_epoch=replica.broker_epoch,
        leader_epoch=replica.leader_epoch,
        offset=replica.log.end,
        last_epoch=replica.log.last_epoch,
        log_start=max(replica.log.start, log_start),
        max_wait_ms=replica.settings.replica_fetch_wait_max_ms,
        max_bytes=replica.settings.replica_fetch_max_bytes,
    )
    return attrs.evolve(replica, role=Following(fetch=fetch, sent_at=now)), (Send(replica.leader, fetch),)


def follower_sends_fetch(replica: Replica, now: Millis) -> Step:
    """A follower asks without having got an answer: after an error, or when one does not come.

    AbstractFetcherThread.maybeFetch, maybeTruncate.
    """
    truncating = following(replica).truncating
    replica, effects = _sends(replica, now, truncating)
    return Step(replica, effects, "follower_asks_for_epoch_end" if truncating else "follower_sends_fetch")


def waits(replica: Replica, answer: FetchResponse | OffsetForLeaderEpochResponse) -> bool:
    """The answer is to the very question for which this follower waits; any other is dropped.

    Before KIP-320 an answer does not tell the epoch: it is taken if it is from the leader and from the log end.
    """
    fetch, fences = following(replica).fetch, replica.settings.insync_design.fences_fetches
    if fetch is None or isinstance(fetch, FetchRequest) != isinstance(answer, FetchResponse):
        return False
    if answer.leader != replica.leader or (fences and answer.leader_epoch != fetch.leader_epoch):
        return False
    return (answer.offset, answer.last_epoch) == (fetch.offset, fetch.last_epoch)


def follower_gets_answer(replica: Replica, answer: FetchResponse | OffsetForLeaderEpochResponse, now: Millis) -> Step:
    """An answer arrives: what it brings is sent to the disk first, unless it brings nothing."""
    if not waits(replica, answer):
        return Step(replica)
    if isinstance(answer, FetchResponse) and answer.error is Error.OFFSET_OUT_OF_RANGE:
        return _out_of_range(replica, answer, now)
    if answer.error is Error.FENCED_LEADER_EPOCH and replica.settings.insync_design.fences_fetches:
        return _halts(replica, "the leader is in a later epoch")
    if answer.error is not Error.NONE:
        return _tries_later(replica, now)
    if isinstance(answer, OffsetForLeaderEpochResponse):
        return _cuts(replica, answer.ends) if answer.ends is not None else _tries_later(replica, now)
    if answer.diverging is not None:
        # What else a diverging answer may carry is ignored: there is no watermark below a divergence (KAFKA-14704).
        if replica.settings.insync_design.watermark_of_diverging:
            known = max(replica.high_watermark, min(answer.high_watermark, replica.log.end))
            replica = attrs.evolve(replica, high_watermark=known)
        return _cuts(replica, answer.diverging)
    if not answer.records:
        return follower_appends(attrs.evolve(replica, pending_operation=FollowerAppend(answer)), None, now)
    return _takes_batches(replica, answer, now)


def _takes_batches(replica: Replica, answer: FetchResponse, now: Millis) -> Step:
    """What the leader sent is written if its CRCs are right, as far as it is of this epoch (KAFKA-18723).

    Damaged records are asked for again. Offsets or leader epochs that go back, which no CRC covers, halt the partition
    (UnifiedLog.append: OffsetsOutOfOrderException, UnexpectedAppendOffsetException). Kafka does not look at the epochs.
    """
    try:
        fetched_batches = list(batches(answer.records, check=True))
    except BadBatch:
        return _tries_later(replica, now)
    log, design, first = replica.log, replica.settings.insync_design, fetched_batches[0]
    if log.start == log.end and first.base_offset < log.end <= first.last_offset:
        # The leader's log starts within this batch: an empty log takes the whole of it.
        awaited = FollowerTruncation(first.base_offset, anew=True, batches=answer)
        anew = TruncateLog(partition=replica.partition, offset=first.base_offset, anew=True)
        return Step(attrs.evolve(replica, pending_operation=awaited), (anew,))
    expected, epoch, size = log.end, log.last_epoch, 0
    if design.truncation is Truncation.ON_FETCH and first.base_offset == expected and first.leader_epoch < epoch:
        return _has_damaged_epoch(replica, first.leader_epoch)
    for batch in fetched_batches:
        if design.fences_fetches and batch.leader_epoch > replica.leader_epoch:
            break
        if batch.base_offset < expected:
            return _halts(replica, f"offset {batch.base_offset} comes where {expected} was to come")
        if design.truncation is Truncation.ON_FETCH and batch.leader_epoch < epoch:
            return _halts(replica, f"leader epoch {batch.leader_epoch} comes after {epoch}")
        expected, epoch, size = batch.next_offset, batch.leader_epoch, batch.position + batch.size
    if not size:
        return _tries_later(replica, now)
    write = AppendLog(partition=replica.partition, records=answer.records[:size], flush=flushes(replica, expected))
    return Step(attrs.evolve(replica, pending_operation=FollowerAppend(answer)), (write,))


def _has_damaged_epoch(replica: Replica, epoch: LeaderEpoch) -> Step:
    """The leader goes on in an earlier epoch than this log's last, so it has no later one before: one here is damaged.

    The log is cut before that, but not while somebody counts on it. Then it is offline, and the next start finds it
    neither in the ISR nor in the ELR.
    """
    if replica.metadata is None or replica.me in replica.metadata.isr | replica.metadata.elr:
        why = f"leader epoch {epoch} follows {replica.log.last_epoch}, so one in this log is damaged"
        halt = PartitionHalt(replica.partition, why, is_damaged=True)
        return Step(attrs.evolve(replica, role=Following(halts=True)), (halt,))
    point = next(entry.start for entry in replica.log.epochs.entries if entry.epoch > epoch)
    return Step(
        attrs.evolve(replica, pending_operation=FollowerTruncation(point, anew=True)),
        (TruncateLog(partition=replica.partition, offset=point),),
    )


def _halts(replica: Replica, why: str) -> Step:
    """Nothing that this leader epoch brings can be taken; the follower waits for the next (markPartitionFailed)."""
    return Step(attrs.evolve(replica, role=Following(halts=True)), (PartitionHalt(replica.partition, why),))


def _out_of_range(replica: Replica, answer: FetchResponse, now: Millis) -> Step:
    """The follower's log end is outside the leader's log (AbstractFetcherThread.fetchOffsetAndTruncate).

    Where the leader's log ends below it, the follower cuts to that end; where the leader's log starts above it, the
    follower begins anew at that start. No action of the model, whose logs have no start.
    """
    ends = answer.diverging.end if answer.diverging is not None else replica.log.end
    if ends < replica.log.end:
        cut, anew = ends, False
    elif answer.log_start > replica.log.end:
        cut, anew = answer.log_start, True
    else:
        return _tries_later(replica, now)
    awaited = FollowerTruncation(cut, anew=True)
    return Step(
        attrs.evolve(replica, pending_operation=awaited),
        (TruncateLog(partition=replica.partition, offset=cut, anew=anew),),
    )


def _tries_later(replica: Replica, now: Millis) -> Step:
    """Nothing was learned; ask again after replica.fetch.backoff.ms."""
    again = Following(
        retry_at=now + replica.settings.replica_fetch_backoff_ms, truncating=following(replica).truncating
    )
    return Step(attrs.evolve(replica, role=again))


def _cuts(replica: Replica, leader_epoch_end: EpochEnd) -> Step:
    point = truncation_point(replica, leader_epoch_end)
    awaited = FollowerTruncation(
        point, asks_again(replica, leader_epoch_end, point), leader_epoch_end == UNDEFINED_EPOCH_END
    )
    return Step(
        attrs.evolve(replica, pending_operation=awaited), (TruncateLog(partition=replica.partition, offset=point),)
    )


def follower_appends(replica: Replica, report: Appended | None, now: Millis) -> Step:
    """What the follower was sent is in its log; it takes over the leader's watermark, even a lower one, and asks on.

    ReplicaFetcherThread.processPartitionData.
    """
    assert isinstance(replica.pending_operation, FollowerAppend)
    log = replica.log if report is None else report.log
    response = replica.pending_operation.response
    watermark = max(log.start, min(response.high_watermark, log.end))
    start = min(response.log_start, watermark)
    advance = (AdvanceLogStart(partition=replica.partition, offset=start),) if start > log.start else ()
    replica, read = moves(attrs.evolve(replica, log=log, pending_operation=None), watermark)
    replica, effects = _sends(replica, now, log_start=start)
    return Step(replica, (*read, *advance, *effects), "follower_appends")


def follower_truncates(replica: Replica, report: Truncated, now: Millis) -> Step:
    """The follower has cut its log where it parts from the leader's, and asks again.

    AbstractFetcherThread.truncateOnFetchResponse, truncateToEpochEndOffsets. Model: follower_truncates_to_watermark
    where the leader did not know the epoch; none where the log begins anew, for the model's have no start.
    """
    assert isinstance(replica.pending_operation, FollowerTruncation)
    truncation = replica.pending_operation
    watermark = max(report.log.start, min(replica.high_watermark, report.log.end))
    cut = attrs.evolve(replica, log=report.log, high_watermark=watermark, pending_operation=None)
    cut, read = without_unreadable(cut)
    if truncation.batches is not None:
        step = _takes_batches(cut, truncation.batches, now)
        return attrs.evolve(step, effects=(*read, *step.effects))
    replica, effects = _sends(cut, now, truncating=truncation.again)
    effects = (*read, *effects)
    if truncation.anew:
        return Step(replica, effects)
    return Step(
        replica, effects, "follower_truncates_to_watermark" if truncation.to_watermark else "follower_truncates"
    )


def follower_enters_epoch(replica: Replica, news: LearnMetadata, now: Millis) -> Step:
    """A replica learns of another leader; before KIP-101 it first cuts its log at its own, lagging, watermark."""
    if replica.settings.insync_design.truncation is not Truncation.TO_WATERMARK:
        return becomes_follower(replica, news, now)
    cut = TruncateLog(partition=replica.partition, offset=replica.high_watermark)
    return Step(attrs.evolve(replica, pending_operation=EnteringEpoch(news)), (cut,))


def becomes_follower(replica: Replica, news: LearnMetadata, now: Millis) -> Step:
    """A replica learns of another leader and fetches from it, or that there is none; its log stays as it is.

    Partition.makeFollower. Between KIP-101 and KIP-595 it asks first where the epoch of its last record ends.
    """
    asks = replica.settings.insync_design.truncation is Truncation.BEFORE_FETCH and replica.log.end > 0
    replica = attrs.evolve(
        replica,
        metadata=news.metadata,
        partition_epoch=news.metadata.partition_epoch,
        role=Following(),
        pending_operation=None,
    )
    replica, effects = _sends(replica, now, truncating=asks)
    return Step(replica, effects, "becomes_follower")


def next_deadline(replica: Replica) -> Millis | None:
    """When the follower next wants a Tick; None while it has nobody to ask."""
    state = following(replica)
    if replica.leader is None or state.halts:
        return None
    if state.fetch is None:
        return state.retry_at
    parked = state.fetch.max_wait_ms if isinstance(state.fetch, FetchRequest) else 0
    return state.sent_at + replica.settings.replica_socket_timeout_ms + parked


def on_tick(replica: Replica, now: Millis) -> Step:
    """It is time to ask, again or at last."""
    due = next_deadline(replica)
    return follower_sends_fetch(replica, now) if due is not None and due <= now else Step(replica)
