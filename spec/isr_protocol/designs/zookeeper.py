"""The ZooKeeper era: what leaders and followers did before AlterPartition and before truncation on fetch.

The leader writes the in-sync set itself, conditionally on ZooKeeper's version (here: the partition epoch). A
new follower finds its truncation point first, by its own watermark or by asking for the end of its last
epoch, and fetches then. Fetches carry no epoch before KIP-320.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Maybe, Set, Step, action, define, when
from isr_protocol.membership import (
    all_lag,
    caught_up,
    no_alter,
    past_epoch_start,
)
from isr_protocol.metadata import makes_follower
from isr_protocol.replication import (
    acknowledged,
    advanced_watermark,
    answers_epoch_end,
    commits,
    may_fetch,
    replicated,
    sends,
    takes,
    waits,
)
from isr_protocol.state import (
    ISR_CHANGES,
    UNNOTICED,
    Fetch,
    LeaderEpoch,
    Offset,
    Replica,
    State,
    end_of_epoch,
    epoch_at,
    epoch_not_above,
    last_epoch,
    leads,
    log_end,
    smaller,
)

# The leader writes the in-sync set.


@define
def knows_version(s: State, leader: Replica) -> Bool:
    """The replica leads, and ZooKeeper's version of the metadata is the one it knows: its write will succeed."""
    return leads(s, leader) & (s.partition_epoch[leader] == s.controller_partition_epoch)


def writes_isr(old: State, new: State, leader: Replica, isr: Set[Replica]) -> Step:
    """A conditional write of the in-sync set; the watermark moves under the new one."""
    up_to = replicated(old, leader, log_end(old, leader), old.follower_end[leader], isr)
    watermark = advanced_watermark(old, leader, up_to, isr)
    return (
        knows_version(old, leader),
        old.controller_partition_epoch < ISR_CHANGES,
        new.controller_isr == isr,
        new.controller_partition_epoch == old.controller_partition_epoch + 1,
        new.isr[leader] == isr,
        new.partition_epoch[leader] == old.partition_epoch[leader] + 1,
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, isr),
    )


@action
def leader_shrinks_isr(old: State, new: State, leader: Replica, lagging: Set[Replica]) -> Step:
    """A leader drops the members that lag. Partition.maybeShrinkIsr, ReplicationUtils.updateLeaderAndIsr."""
    return (
        ~lagging.is_empty(),
        lagging <= old.isr[leader].excluding(leader),
        all_lag(old, leader, lagging),
        *writes_isr(old, new, leader, old.isr[leader] - lagging),
    )


@action
def leader_expands_isr(old: State, new: State, leader: Replica, f: Replica) -> Step:
    """A leader adds a follower that has caught up. Partition.maybeExpandIsr."""
    return (
        ~old.isr[leader].has(f),
        caught_up(old, leader, f),
        past_epoch_start(old, leader, f),
        *writes_isr(old, new, leader, old.isr[leader].including(f)),
    )


# Fetches without the epoch of the last record: only the offset can be out of range.


@define
def in_range(s: State, leader: Replica, follower: Replica) -> Bool:
    """The fetch offset is not past the leader's log end; whether the logs agree below it, nobody asks."""
    return s.fetch_offset[follower] <= log_end(s, leader)


@action
def leader_answers_out_of_range(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader refuses a fetch past its log end (OFFSET_OUT_OF_RANGE); the follower will go back to there.

    ReplicaFetcherThread.handleOffsetOutOfRange.
    """
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~in_range(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, log_end(old, leader), old.fetch_last_epoch[follower]),
    )


# Truncation before the first fetch.


@action
def becomes_follower_truncating(old: State, new: State, r: Replica) -> Step:
    """A replica learns of another leader, and asks it for the end of its last epoch before it fetches."""
    asks = (old.controller_leader != NONE) & (log_end(old, r) > 0)
    return (
        *makes_follower(old, new, r, old.log[r], when(asks, Fetch.ASKED, Fetch.REQUESTED)),
        new.truncating == when(asks, old.truncating.including(r), old.truncating.excluding(r)),
    )


@action
def becomes_follower_at_watermark(old: State, new: State, r: Replica) -> Step:
    """A replica learns of another leader, and cuts its log at its own watermark, which may lag.

    ReplicaManager.makeFollowers before KIP-101.
    """
    log = old.log[r].take(old.high_watermark[r])
    return (*makes_follower(old, new, r, log, Fetch.REQUESTED), new.log[r] == log)


@action
def follower_sends_fetch_when_truncated(old: State, new: State, follower: Replica, leader: Replica) -> Step:
    """A follower that knows its truncation point asks its leader for what comes after its log end."""
    return (
        may_fetch(old, follower),
        follower != leader,
        old.leader[follower] == leader,
        ~old.truncating.has(follower),
        *sends(old, new, follower, Maybe.of(leader), old.log[follower], Fetch.REQUESTED),
    )


@action
def follower_asks_for_epoch_end(old: State, new: State, follower: Replica, leader: Replica) -> Step:
    """A truncating follower asks its leader where the epoch of its last record ends (OffsetsForLeaderEpoch)."""
    return (
        may_fetch(old, follower),
        follower != leader,
        old.leader[follower] == leader,
        old.truncating.has(follower),
        *sends(old, new, follower, Maybe.of(leader), old.log[follower], Fetch.ASKED),
    )


@action
def leader_answers_epoch_end(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader answers with its largest epoch that is not above the asked one, and where that ends (KIP-279)."""
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.ASKED,
        takes(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@define
def follows_up(s: State, leader: Replica, epoch: LeaderEpoch) -> Bool:
    """The leader can answer: it wrote last in the asked epoch, or has a later one."""
    return (log_end(s, leader) > 0) & (epoch <= last_epoch(s, leader))


@action
def leader_answers_next_epoch_start(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader answers where the first epoch above the asked one starts, else its log end (KIP-101).

    It says nothing of whether it knows the asked epoch at all, and the follower cuts there and fetches.
    """
    epoch = old.fetch_last_epoch[follower]
    return (
        old.fetch[follower] == Fetch.ASKED,
        takes(old, leader, follower),
        follows_up(old, leader, epoch),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@action
def leader_answers_undefined_epoch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader knows no epoch from the asked one on (UNDEFINED_EPOCH_OFFSET); the follower will use its watermark."""
    waiting = waits(old, leader, follower)
    return (
        old.fetch[follower] == Fetch.ASKED,
        takes(old, leader, follower),
        ~follows_up(old, leader, old.fetch_last_epoch[follower]),
        new.fetch[follower] == when(waiting, Fetch.UNDEFINED, Fetch.NONE),
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == when(waiting, old.fetch_epoch[follower], 0),
        new.fetch_offset[follower] == 0,
        new.fetch_last_epoch[follower] == 0,
    )


def cuts(old: State, new: State, follower: Replica, point: Offset, then: Fetch) -> Step:
    """The follower's log ends at the point from now on, and it asks what it has to ask next."""
    log = old.log[follower].take(point)
    return (
        new.log[follower] == log,
        new.high_watermark[follower] == smaller(old.high_watermark[follower], point),
        *sends(old, new, follower, old.leader[follower], log, then),
    )


@action
def follower_truncates_by_epoch(old: State, new: State, follower: Replica) -> Step:
    """A follower cuts its log at the end of the named epoch, in the leader's log or its own, whichever is less.

    It asks again if it does not know that epoch itself (KIP-279).
    """
    epoch = old.fetch_last_epoch[follower]
    point = smaller(old.fetch_offset[follower], end_of_epoch(old, follower, epoch))
    done = (epoch_not_above(old, follower, epoch) == epoch) | (point == 0)
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        new.truncating == when(done, old.truncating.excluding(follower), old.truncating),
        *cuts(old, new, follower, point, when(done, Fetch.REQUESTED, Fetch.ASKED)),
    )


@action
def follower_truncates_to_offset(old: State, new: State, follower: Replica) -> Step:
    """A follower cuts its log at the offset that it was told (KIP-101)."""
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        new.truncating == old.truncating.excluding(follower),
        *cuts(old, new, follower, smaller(old.fetch_offset[follower], log_end(old, follower)), Fetch.REQUESTED),
    )


@action
def follower_truncates_to_watermark(old: State, new: State, follower: Replica) -> Step:
    """A follower whose epoch the leader does not know cuts its log at its own watermark (KIP-101)."""
    return (
        old.fetch[follower] == Fetch.UNDEFINED,
        new.truncating == old.truncating.excluding(follower),
        *cuts(old, new, follower, old.high_watermark[follower], Fetch.REQUESTED),
    )


# Fetches without an epoch (before KIP-320).


@define
def takes_any_epoch(s: State, leader: Replica, follower: Replica) -> Bool:
    """The follower's request is for this broker, and the broker leads, in whatever epoch."""
    return leads(s, leader) & (s.fetch_to[follower] == leader)


@define
def waits_for_leader(s: State, leader: Replica, follower: Replica) -> Bool:
    """The follower still fetches from this broker, in whatever epoch, and from where it asked.

    AbstractFetcherThread.processFetchRequest: the partition may have been truncated or re-added meanwhile.
    """
    fetching = s.fetch[follower] == Fetch.REQUESTED
    return (
        (s.leader[follower] == leader)
        & (s.fetch_offset[follower] == log_end(s, follower))
        & (fetching != s.truncating.has(follower))
    )


@define
def watermark_in_own_epoch(s: State, leader: Replica) -> Bool:
    """The leader's watermark has reached its own epoch: it is at its log end or at a record of that epoch."""
    watermark = s.high_watermark[leader]
    return (watermark == log_end(s, leader)) | (epoch_at(s, leader, watermark) == s.leader_epoch[leader])


@define
def past_epoch_start_of_leader(s: State, leader: Replica, f: Replica) -> Bool:
    """Not the follower but the leader's watermark must have reached the epoch (the first attempt at KIP-320)."""
    return watermark_in_own_epoch(s, leader) | (s.follower_end[leader][f] == NONE)


# Sessions in ZooKeeper.


@action
def broker_restarts_unnoticed(old: State, new: State, r: Replica) -> Step:
    """A broker is back before anybody noticed that it was away; whatever it lost, it stays in the ISR.

    KAFKA-7235: the controller sees the same brokers as before. KIP-380 lets it notice by the broker epoch, later.
    It learns its leadership again, in the same epoch, when the controller next sends LeaderAndIsr.
    """
    return (
        old.unnoticed < UNNOTICED,
        ~(old.alive | old.fenced).has(r),
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        new.clean_shutdown == old.clean_shutdown.excluding(r),
        new.unnoticed == old.unnoticed + 1,
        *no_alter(new, r),
    )
