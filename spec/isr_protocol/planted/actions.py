"""What a broker does that has one of the bugs of planted.bugs: the actions and definitions that differ from today's."""

from __future__ import annotations

from isr_lang import NONE, Bool, Maybe, Set, Step, action, define, exists, when
from isr_lang.blank import blank
from isr_protocol.designs.early_watermark import answers_diverging
from isr_protocol.designs.zookeeper import follows_up
from isr_protocol.elections import available, departs
from isr_protocol.faults import stops, struck
from isr_protocol.membership import current, elects, elr_beside, isr_without, metadata_changes, no_alter, replies
from isr_protocol.replication import (
    acknowledged,
    advanced_watermark,
    answers_epoch_end,
    commits,
    continues,
    replicated,
    takes,
    waits,
)
from isr_protocol.state import (
    CONSUMERS,
    EPOCHS,
    FOLLOWER_READS,
    ISR_CHANGES,
    LOSSY_CRASHES,
    Alter,
    Fetch,
    Offset,
    Replica,
    State,
    end_of_epoch,
    leads,
    log_end,
    maximal_isr,
    smaller,
)

# Replication.


@define
def nothing_later_before(s: State, leader: Replica, follower: Replica) -> Bool:
    """No later epoch starts before the fetch offset; whether the leader has the follower's epoch, nobody asks."""
    epoch = s.fetch_last_epoch[follower]
    return (s.fetch_offset[follower] == 0) | (s.fetch_offset[follower] <= end_of_epoch(s, leader, epoch))


@action
def leader_answers_next_start(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader answers a fetch that diverges with where the next epoch starts (before KIP-279)."""
    epoch = old.fetch_last_epoch[follower]
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~continues(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@action
def leader_answers_known_epoch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells where the logs part only if it wrote in the follower's epoch or later (KAFKA-7415)."""
    return (
        *answers_diverging(old, new, leader, follower),
        follows_up(old, leader, old.fetch_last_epoch[follower]),
    )


@action
def leader_knows_no_epoch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader has not noted the start of its epoch, and knows none from the follower's on; that uses its watermark."""
    waiting = waits(old, leader, follower)
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~continues(old, leader, follower),
        ~follows_up(old, leader, old.fetch_last_epoch[follower]),
        new.fetch[follower] == when(waiting, Fetch.UNDEFINED, Fetch.NONE),
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == when(waiting, old.fetch_epoch[follower], 0),
        new.fetch_offset[follower] == 0,
        new.fetch_last_epoch[follower] == 0,
    )


@action
def leader_counts_refused_fetch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader refuses a fetch from another epoch, and takes its offset as an acknowledgement all the same."""
    end = smaller(old.fetch_offset[follower], log_end(old, leader))
    ends, members = old.follower_end[leader].put(follower, Maybe.of(end)), maximal_isr(old, leader)
    up_to = replicated(old, leader, log_end(old, leader), ends, members)
    watermark = advanced_watermark(old, leader, up_to, old.isr[leader])
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        leads(old, leader) & (old.fetch_to[follower] == leader),
        old.fetch_epoch[follower] != old.leader_epoch[leader],
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, members),
        new.fetch[follower] == Fetch.NONE,
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == 0,
        new.fetch_offset[follower] == 0,
        new.fetch_last_epoch[follower] == 0,
    )


@action
def consumer_reads_anything(old: State, new: State, r: Replica) -> Step:
    """A consumer reads the next record from a replica, whether that is below the watermark or not."""
    return (
        CONSUMERS > 0,
        old.alive.has(r),
        (old.leader[r] == r) | (FOLLOWER_READS & (old.leader[r] != NONE)),
        old.position < log_end(old, r),
        new.position == old.position + 1,
        new.consumed == old.consumed.append(old.log[r][old.position]),
    )


# Membership and elections.


@action
def controller_rejects_and_leader_forgets(old: State, new: State, leader: Replica) -> Step:
    """To a stale AlterPartition the controller's answer makes the leader stop counting whom it had proposed."""
    return (old.alter[leader] == Alter.REQUESTED, ~current(old, leader), *replies(old, new, leader, Alter.REFUSED))


@action
def leader_forgets_request(old: State, new: State, leader: Replica) -> Step:
    """A leader gets no answer in time, and stops counting whom it proposed; the request may yet be accepted."""
    return (
        old.alter[leader] == Alter.REQUESTED,
        leads(old, leader) & ~old.pending_isr[leader].is_empty(),
        new.pending_isr[leader] == blank(new.controller_isr),
    )


@action
def controller_replaces_leader_by_anybody(old: State, new: State, r: Replica, successor: Replica) -> Step:
    """The controller fences the leader, or relieves it, and elects any available replica."""
    isr = isr_without(old, r)
    new_isr = when(isr.is_empty(), Set.of(successor), isr)
    return (
        *departs(old, new, r),
        old.controller_leader == r,
        successor != r,
        available(old, successor),
        *elects(old, new, successor, new_isr, elr_beside(old, new_isr)),
    )


@action
def controller_fences_very_last_leader(old: State, new: State, r: Replica) -> Step:
    """The controller fences or relieves the leader, and nobody at all is available."""
    isr = isr_without(old, r)
    return (
        *departs(old, new, r),
        old.controller_leader == r,
        ~exists(available(old, q) for q in Replica.all().excluding(r)),
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, isr, elr_beside(old, isr)),
        new.controller_leader == NONE,
        new.controller_epoch == old.controller_epoch + 1,
        new.last_known_leader == when(isr.is_empty(), Maybe.of(r), NONE),
    )


@define
def led_last(s: State, r: Replica) -> Bool:
    """This replica led last, whoever else may be eligible."""
    return s.last_known_leader == r


# Disks.


def restarts(old: State, new: State, r: Replica, elr: Set[Replica]) -> Step:
    """A broker starts and registers, as in broker_restarts, and this is the ELR if it is struck; its mark is left."""
    strikes, version = struck(old, r), old.controller_partition_epoch
    return (
        old.fenced.has(r),
        ~old.alive.has(r),
        ~strikes | (version < ISR_CHANGES),
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
        new.shutting_down == old.shutting_down.excluding(r),
        *no_alter(new, r),
        new.controller_partition_epoch == when(strikes, version + 1, version),
        new.controller_isr == when(strikes, old.controller_isr.excluding(r), old.controller_isr),
        new.controller_elr == when(strikes, elr, old.controller_elr),
    )


@action
def broker_restarts_keeping_mark(old: State, new: State, r: Replica) -> Step:
    """A broker starts and leaves the mark of its last clean shutdown where it is."""
    return restarts(old, new, r, old.controller_elr.excluding(r))


@action
def broker_restarts_in_elr(old: State, new: State, r: Replica) -> Step:
    """A broker without the mark of a clean shutdown starts, and stays in the ELR."""
    return (
        *restarts(old, new, r, old.controller_elr),
        new.clean_shutdown == old.clean_shutdown.excluding(r),
    )


@action
def broker_loses_power_unflushed(old: State, new: State, r: Replica, survivors: Offset, checkpoint: Offset) -> Step:
    """A broker dies with its page cache, in which the log is although it was to be flushed before it counts."""
    return (
        old.lossy_crashes < LOSSY_CRASHES,
        *stops(old, new, r),
        survivors < log_end(old, r),
        checkpoint <= smaller(old.high_watermark[r], survivors),
        new.log[r] == old.log[r].take(survivors),
        new.high_watermark[r] == checkpoint,
        new.lossy_crashes == old.lossy_crashes + 1,
    )
