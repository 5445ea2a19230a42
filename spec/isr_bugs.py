"""Single rules taken out: each part here is a bug that Kafka had, or would have without the rule."""

from __future__ import annotations

from isr_lang import NONE, Bool, Maybe, Set, Step, action, define, when
from isr_replication import continues, takes, waits
from isr_state import (
    CONSUMERS,
    FOLLOWER_READS,
    Fetch,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    log_end,
    smaller,
)
from isr_zookeeper import answers_epoch_end, follows_up, makes_follower


@define
def committed_isr_only(s: State, leader: Replica) -> Set[Replica]:
    """The leader counts only the in-sync set that it knows to be committed."""
    return s.isr[leader]


@define
def current_by_leader_epoch(s: State, leader: Replica) -> Bool:
    """The request is from the elected leader in its epoch; of which metadata it speaks, nobody asks."""
    return (s.controller_leader == leader) & (s.alter_leader_epoch[leader] == s.controller_epoch)


@action
def consumer_is_reset(old: State, new: State, r: Replica) -> Step:
    """A consumer past the watermark of the replica it asks is out of range, and starts again from there."""
    return (
        CONSUMERS > 0,
        old.alive.has(r),
        (old.leader[r] == r) | (FOLLOWER_READS & (old.leader[r] != NONE)),
        old.high_watermark[r] < old.position,
        new.position == old.high_watermark[r],
        new.consumed == old.consumed.take(old.high_watermark[r]),
    )


def answers_diverging(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """The leader's answer to a fetch that diverges, as in leader_answers_diverging."""
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~continues(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@action
def leader_answers_diverging_and_counts(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells a follower where their logs part, and takes the fetch offset as acknowledged (KAFKA-13141)."""
    offset = smaller(old.fetch_offset[follower], log_end(old, leader))
    return (
        *answers_diverging(old, new, leader, follower),
        new.follower_end[leader][follower] == Maybe.of(offset),
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
    )


@action
def leader_answers_diverging_with_watermark(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells a follower where their logs part, and its watermark with it."""
    waiting = waits(old, leader, follower)
    return (
        *answers_diverging(old, new, leader, follower),
        new.fetch_watermark[follower] == when(waiting, old.high_watermark[leader], 0),
    )


@action
def follower_raises_watermark_first(old: State, new: State, follower: Replica) -> Step:
    """A follower takes the watermark of a diverging answer before it has truncated (KAFKA-14704)."""
    known = smaller(old.fetch_watermark[follower], log_end(old, follower))
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        old.high_watermark[follower] < known,
        new.high_watermark[follower] == known,
    )


@action
def becomes_follower_truncating_for_a_new_leader(old: State, new: State, r: Replica) -> Step:
    """A replica learns of a new epoch; it truncates only if the leader is another one (KAFKA-7164)."""
    asks = (old.controller_leader != NONE) & (log_end(old, r) > 0) & (old.leader[r] != old.controller_leader)
    return (
        *makes_follower(old, new, r, old.log[r], when(asks, Fetch.ASKED, Fetch.REQUESTED)),
        new.truncating == when(asks, old.truncating.including(r), old.truncating.excluding(r)),
    )


@action
def no_start_of_epoch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader answers where an epoch ends only if it wrote in it or later (KAFKA-7415)."""
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.ASKED,
        takes(old, leader, follower),
        follows_up(old, leader, old.fetch_last_epoch[follower]),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )
