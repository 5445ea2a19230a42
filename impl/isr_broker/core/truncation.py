"""Where two logs part: what a leader says of it, and the offset at which a follower has its log cut, by design.

Since KIP-595 the leader finds out from a fetch. From KIP-101 on the follower asked first, before it fetched
(OffsetForLeaderEpoch), and before that it cut at its own watermark and asked nobody.
"""

from __future__ import annotations

from isr_broker.core.effects import Send
from isr_broker.core.messages import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerId,
    EpochEnd,
    Error,
    FetchRequest,
    LeaderEpoch,
    Offset,
    OffsetForLeaderEpochRequest,
)
from isr_broker.core.replica_state import Replica
from isr_broker.designs import Truncation

# A leader.


def epoch_end(replica: Replica, epoch: LeaderEpoch) -> EpochEnd:
    """Where an epoch ends in the leader's log: that of its largest epoch not above it (KIP-279).

    Before, where the next one starts, without saying whether it has that epoch at all; and UNDEFINED if it wrote last
    in an earlier one and did not note the start of its own (KAFKA-7415). LeaderEpochFileCache.endOffsetFor.
    """
    design, log = replica.settings.insync_design, replica.log
    if not design.notes_epoch_start and log.last_epoch < epoch:
        return UNDEFINED_EPOCH_END
    found = log.epochs.end_of(epoch, log.end)
    return found if design.largest_smaller_epoch else EpochEnd(epoch, found.end)


def parting(replica: Replica, fetch: FetchRequest) -> EpochEnd | None:
    """Where the follower's log, as its fetch describes it, leaves the leader's; None if it is a prefix of it.

    KIP-595. Before, a fetch does not tell, and only an offset past the log end shows that anything is wrong
    (OFFSET_OUT_OF_RANGE).
    """
    if replica.settings.insync_design.truncation is not Truncation.ON_FETCH:
        return EpochEnd(fetch.last_epoch, replica.log.end) if fetch.offset > replica.log.end else None
    if fetch.offset == 0 or fetch.last_epoch == NO_EPOCH:
        return None
    ours = epoch_end(replica, fetch.last_epoch)
    return ours if ours.epoch != fetch.last_epoch or ours.end < fetch.offset else None


def says_epoch_end(
    me: BrokerId, request: OffsetForLeaderEpochRequest, ends: EpochEnd | None, error: Error = Error.NONE
) -> Send:
    """The answer to who asks where an epoch ends."""
    return Send(request.replica, request.answer(me, ends, error))


def refuses_to_say(me: BrokerId, request: OffsetForLeaderEpochRequest, error: Error) -> Send:
    """An error for who asks; it asks again (no action of the model)."""
    return says_epoch_end(me, request, None, error)


# A follower.


def truncation_point(replica: Replica, leader_epoch_end: EpochEnd) -> Offset:
    """Where the logs part, as far as the follower can tell (AbstractFetcherThread.getOffsetTruncationState).

    The named epoch's end in the leader's log or in its own, whichever is less. Before KIP-279: the offset that it was
    told. Its own watermark, if the leader did not know.
    """
    design, log = replica.settings.insync_design, replica.log
    if leader_epoch_end == UNDEFINED_EPOCH_END:
        return replica.high_watermark
    if design.truncation is Truncation.TO_WATERMARK or not design.largest_smaller_epoch:
        return min(leader_epoch_end.end, log.end)
    return min(leader_epoch_end.end, log.epochs.end_of(leader_epoch_end.epoch, log.end).end)


def asks_again(replica: Replica, leader_epoch_end: EpochEnd, point: Offset) -> bool:
    """The follower does not have the named epoch either, so the logs may part earlier (KIP-279)."""
    design, log = replica.settings.insync_design, replica.log
    if design.truncation is not Truncation.BEFORE_FETCH or not design.largest_smaller_epoch or point == 0:
        return False
    return (
        leader_epoch_end != UNDEFINED_EPOCH_END
        and log.epochs.end_of(leader_epoch_end.epoch, log.end).epoch != leader_epoch_end.epoch
    )
