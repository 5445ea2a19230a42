"""Membership: who is in sync, and who leads.

The leader asks the controller to change the in-sync set (AlterPartition); the controller alone changes it, also when it
loses a broker. How brokers come to know it is in isr_protocol.metadata.

The numbers in brackets are the rules that re-implementations often miss, listed in isr_model.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Set, Step, action, define, forall, when
from isr_lang.blank import blank
from isr_protocol.replication import acknowledged, advanced_watermark, commits, replicated
from isr_protocol.state import (
    EPOCHS,
    ISR_CHANGES,
    MIN_INSYNC,
    Alter,
    BrokerEpoch,
    Replica,
    State,
    leads,
    log_end,
    start_of_own_epoch,
)

# The leader asks for another in-sync set.


@define
def free_to_ask(s: State, leader: Replica) -> Bool:
    """The replica leads and nothing that it asked is undecided as far as it knows."""
    return leads(s, leader) & s.pending_isr[leader].is_empty() & (s.alter[leader] == Alter.NONE)


def asks(old: State, new: State, leader: Replica, isr: Set[Replica], joiner: BrokerEpoch) -> Step:
    """AlterPartition: another in-sync set for the metadata that the leader knows."""
    return (
        new.alter[leader] == Alter.REQUESTED,
        new.alter_isr[leader] == isr,
        new.alter_leader_epoch[leader] == old.leader_epoch[leader],
        new.alter_partition_epoch[leader] == old.partition_epoch[leader],
        new.alter_broker_epoch[leader] == joiner,
    )


def no_alter(new: State, leader: Replica) -> Step:
    """No AlterPartition of the leader is in flight."""
    return (
        new.alter[leader] == Alter.NONE,
        new.alter_isr[leader] == blank(new.controller_isr),
        new.alter_leader_epoch[leader] == 0,
        new.alter_partition_epoch[leader] == 0,
        new.alter_broker_epoch[leader] == 0,
    )


@define
def all_lag(s: State, leader: Replica, lagging: Set[Replica]) -> Bool:
    """None of them was seen at the leader's log end (time may then have run out for it)."""
    return forall(s.follower_end[leader][f] != log_end(s, leader) for f in lagging)


@action
def leader_proposes_shrink(old: State, new: State, leader: Replica, lagging: Set[Replica]) -> Step:
    """A leader asks to drop the members that lag, all in one request.

    Lagging: not seen at the log end within replica.lag.time.max.ms. Partition.maybeShrinkIsr.
    """
    isr = old.isr[leader] - lagging
    return (
        free_to_ask(old, leader),
        ~lagging.is_empty(),
        lagging <= old.isr[leader].excluding(leader),
        all_lag(old, leader, lagging),
        new.pending_isr[leader] == isr,
        *asks(old, new, leader, isr, blank(new.broker_epoch[leader])),
    )


@define
def caught_up(s: State, leader: Replica, f: Replica) -> Bool:
    """The follower was seen at or past the leader's watermark in this epoch; with OWN_VIEW, nor is it away.

    Partition.isReplicaIsrEligible (4.3.1) also asks for its broker epoch, at which here the controller looks.
    """
    seen = s.follower_end[leader][f]
    return (seen != NONE) & (s.high_watermark[leader] <= seen.or_else(0)) & ~s.known_away[leader].has(f)


@define
def past_epoch_start(s: State, leader: Replica, f: Replica) -> Bool:
    """(4) The follower was seen at or past the start of the leader's epoch.

    At the watermark alone it may lack records that an earlier leader committed (KAFKA-7128).
    """
    return start_of_own_epoch(s, leader) <= s.follower_end[leader][f].or_else(0)


@action
def leader_proposes_expansion(old: State, new: State, leader: Replica, f: Replica) -> Step:
    """A leader asks to add a follower that has caught up; from now on it counts for the watermark (1).

    Kafka asks only while it handles the follower's fetch, and looks at its own metadata first
    (isReplicaIsrEligible, here with OWN_VIEW); the controller looks again. Partition.maybeExpandIsr, isFollowerInSync.
    """
    isr = old.isr[leader].including(f)
    return (
        free_to_ask(old, leader),
        ~old.isr[leader].has(f),
        caught_up(old, leader, f),
        past_epoch_start(old, leader, f),
        new.pending_isr[leader] == isr,
        *asks(old, new, leader, isr, old.follower_broker_epoch[leader][f]),
    )


# The controller decides.


@define
def current(s: State, leader: Replica) -> Bool:
    """The request is from the elected leader in its epoch and about the metadata as it is."""
    return (
        (s.controller_leader == leader)
        & (s.alter_leader_epoch[leader] == s.controller_epoch)
        & (s.alter_partition_epoch[leader] == s.controller_partition_epoch)
    )


@define
def eligible(s: State, leader: Replica) -> Bool:
    """No proposed member is fenced or shutting down (KIP-841), and none that joins is another incarnation (KIP-903).

    A member that restarted was taken out of the ISR first, so the partition epoch gives it away.
    """
    proposed = s.alter_isr[leader]
    return (proposed & (s.fenced | s.shutting_down)).is_empty() & forall(
        s.alter_broker_epoch[leader] == s.broker_epoch[f] for f in proposed - s.controller_isr
    )


@define
def hears(s: State, leader: Replica) -> Bool:
    """The leader still waits for the answer: it has not learned newer metadata, nor died."""
    return (
        leads(s, leader)
        & (s.leader_epoch[leader] == s.alter_leader_epoch[leader])
        & (s.partition_epoch[leader] == s.alter_partition_epoch[leader])
    )


def replies(old: State, new: State, leader: Replica, answer: Alter) -> Step:
    """The controller's answer, which is dropped if nobody waits for it."""
    _, *rest = no_alter(new, leader)
    return (new.alter[leader] == when(hears(old, leader), answer, Alter.NONE), *rest)


@define
def elr_beside(s: State, isr: Set[Replica]) -> Set[Replica]:
    """The ELR beside a new ISR: nobody at the minimum, else whoever was in ISR or ELR and is not in the ISR now.

    PartitionChangeBuilder.maybePopulateTargetElr.
    """
    return when(isr.size() >= MIN_INSYNC, blank(s.controller_elr), (s.controller_elr | s.controller_isr) - isr)


@define
def isr_without(s: State, r: Replica) -> Set[Replica]:
    """The ISR when a broker is gone; with an ELR to fall back on it may be empty."""
    return s.controller_isr.excluding(r)


def metadata_changes(old: State, new: State, isr: Set[Replica], elr: Set[Replica]) -> Step:
    """The controller writes a new version of the partition's metadata."""
    return (
        old.controller_partition_epoch < ISR_CHANGES,
        new.controller_partition_epoch == old.controller_partition_epoch + 1,
        new.controller_isr == isr,
        new.controller_elr == elr,
    )


def elects(old: State, new: State, leader: Replica, isr: Set[Replica], elr: Set[Replica]) -> Step:
    """The controller makes a replica the leader, in a new leader epoch."""
    return (
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, isr, elr),
        new.controller_leader == leader,
        new.controller_epoch == old.controller_epoch + 1,
        new.last_known_leader == NONE,
    )


@action
def controller_accepts_alter_partition(old: State, new: State, leader: Replica) -> Step:
    """The controller makes a proposed in-sync set the in-sync set.

    ReplicationControlManager.alterPartition.
    """
    isr = old.alter_isr[leader]
    return (
        old.alter[leader] == Alter.REQUESTED,
        current(old, leader),
        eligible(old, leader),
        *metadata_changes(old, new, isr, elr_beside(old, isr)),
        *replies(old, new, leader, Alter.ACCEPTED),
    )


@action
def controller_refuses_alter_partition(old: State, new: State, leader: Replica) -> Step:
    """The controller answers INELIGIBLE_REPLICA: a proposed member is fenced, leaving, or was restarted."""
    return (
        old.alter[leader] == Alter.REQUESTED,
        current(old, leader),
        ~eligible(old, leader),
        *replies(old, new, leader, Alter.REFUSED),
    )


@action
def controller_rejects_stale_alter_partition(old: State, new: State, leader: Replica) -> Step:
    """The controller answers FENCED_LEADER_EPOCH, INVALID_REQUEST or INVALID_UPDATE_VERSION: the metadata has moved on.

    (5) To the leader this is an answer of unknown effect: it keeps the larger set until metadata comes.
    """
    return (old.alter[leader] == Alter.REQUESTED, ~current(old, leader), *no_alter(new, leader))


@action
def leader_adopts_isr(old: State, new: State, leader: Replica) -> Step:
    """A leader learns that its in-sync set was accepted, and moves the watermark under it."""
    isr = old.pending_isr[leader]
    up_to = replicated(old, leader, log_end(old, leader), old.follower_end[leader], isr)
    watermark = advanced_watermark(old, leader, up_to, isr)
    return (
        old.alter[leader] == Alter.ACCEPTED,
        new.isr[leader] == isr,
        new.pending_isr[leader] == blank(new.controller_isr),
        new.partition_epoch[leader] == old.partition_epoch[leader] + 1,
        *no_alter(new, leader),
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, isr),
    )


@action
def leader_rolls_back(old: State, new: State, leader: Replica) -> Step:
    """(5) A leader learns that a proposed member is ineligible, and stops counting it."""
    return (
        old.alter[leader] == Alter.REFUSED,
        new.pending_isr[leader] == blank(new.controller_isr),
        *no_alter(new, leader),
    )
