"""Membership: who is in sync, who leads, and how brokers come to know it.

The leader asks the controller to change the in-sync set (AlterPartition); the controller alone changes it,
also when it loses a broker; every broker learns the metadata at its own pace, and may skip what is overtaken.

The numbers in brackets are the rules that re-implementations often miss, listed in isr_model.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Seq, Set, Step, action, define, exists, forall, when
from isr_lang.blank import blank
from isr_replication import acknowledged, advanced, commits, last_epoch_in, replicated, takes
from isr_state import (
    EPOCHS,
    ISR_CHANGES,
    MIN_INSYNC,
    OWN_VIEW,
    PRODUCERS_WAIT,
    Alter,
    BrokerEpoch,
    Fetch,
    Offset,
    Record,
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
    """The follower was seen at or past the leader's watermark in this epoch."""
    seen = s.follower_end[leader][f]
    return (seen != NONE) & (s.high_watermark[leader] <= seen.or_else(0))


@define
def past_epoch_start(s: State, leader: Replica, f: Replica) -> Bool:
    """(4) The follower was seen at or past the start of the leader's epoch.

    At the watermark alone it may lack records that an earlier leader committed (KAFKA-7128).
    """
    return start_of_own_epoch(s, leader) <= s.follower_end[leader][f].or_else(0)


@define
def there(s: State, leader: Replica, f: Replica) -> Bool:
    """The leader's own metadata says nothing against the follower (with OWN_VIEW; else it is not asked).

    Partition.isReplicaIsrEligible (4.3.1), but for the broker epoch, at which the controller looks.
    """
    return ~s.known_away[leader].has(f)


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
        there(old, leader, f),
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
    watermark = advanced(old, leader, up_to, isr)
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


# Brokers learn the metadata, each at its own pace.


def away(s: State) -> Set[Replica]:
    """Brokers that the newest metadata calls fenced or shutting down."""
    return s.fenced | s.shutting_down


@define
def behind(s: State, r: Replica) -> Bool:
    """A living replica does not know the elected leader and its epoch."""
    return s.alive.has(r) & ((s.leader_epoch[r] != s.controller_epoch) | (s.leader[r] != s.controller_leader))


@define
def request_lives(s: State, r: Replica) -> Bool:
    """A request of the replica is on its way to a leader that would still take it."""
    question = (s.fetch[r] == Fetch.REQUESTED) | (s.fetch[r] == Fetch.ASKED)
    return question & exists(takes(s, q, r) for q in Replica.all().excluding(r))


def fetch_in_new_epoch(
    old: State, new: State, r: Replica, asks: Bool, log: Seq[Offset, Record], message: Fetch
) -> Step:
    """The first fetch of the new epoch, if the replica asks anybody; answers of older epochs are dropped.

    A request that an older leader may yet take stays on its way, and follower_sends_fetch follows it.
    """
    kept, end, last = request_lives(old, r), log.length(), last_epoch_in(old, log)
    return (
        new.fetch[r] == when(kept, old.fetch[r], when(asks, message, Fetch.NONE)),
        new.fetch_to[r] == when(kept, old.fetch_to[r], when(asks, old.controller_leader, NONE)),
        new.fetch_epoch[r] == when(kept, old.fetch_epoch[r], when(asks, old.controller_epoch, 0)),
        new.fetch_offset[r] == when(kept, old.fetch_offset[r], when(asks, end, 0)),
        new.fetch_last_epoch[r] == when(kept, old.fetch_last_epoch[r], when(asks, last, 0)),
        new.fetch_record[r] == NONE,
        new.fetch_watermark[r] == 0,
    )


def answer_lapses(old: State, new: State, r: Replica) -> Step:
    """An answer to an AlterPartition says nothing new to who knows newer metadata; a request stays on its way."""
    kept = old.alter[r] == Alter.REQUESTED
    return (new.alter[r] == when(kept, old.alter[r], Alter.NONE),)


def takes_over(old: State, new: State, r: Replica) -> Step:
    """The replica takes over leader and leader epoch; if it leads, also who is away, and since when it leads."""
    elected = old.controller_leader == r
    since = when(leads(old, r), old.leading_since[r], old.controller_epoch)
    return (
        new.leader[r] == old.controller_leader,
        new.leader_epoch[r] == old.controller_epoch,
        new.pending_isr[r] == blank(new.controller_isr),
        new.leading_since[r] == when(elected, since, 0),
        new.known_away[r] == when(elected, away(old), blank(new.fenced)),
        *answer_lapses(old, new, r),
    )


def enters_epoch(old: State, new: State, r: Replica) -> Step:
    """The replica takes over leader and leader epoch, and forgets what it knew as a leader.

    Kafka's keeps its followers' positions if it led before (Replica.resetReplicaState), even past another
    leader's epoch: see kafka-keeps-positions in isr_bugs.
    """
    return (
        *takes_over(old, new, r),
        new.follower_end[r] == blank(new.follower_end[r]),
        new.follower_broker_epoch[r] == blank(new.follower_broker_epoch[r]),
    )


def answers_who_waited(old: State, new: State, r: Replica, watermark: Offset, isr: Set[Replica]) -> Step:
    """A leader that is elected again answers the producers that waited for it since an epoch before."""
    answered = acknowledged(old, r, watermark, isr)
    return (new.acked == when(PRODUCERS_WAIT, old.acked | answered, old.acked),)


@action
def becomes_leader(old: State, new: State, r: Replica) -> Step:
    """A replica learns that it leads in a new epoch; alone in the in-sync set, it commits its whole log.

    Partition.makeLeader.
    """
    isr = old.controller_isr
    up_to = when(isr == Set.of(r), log_end(old, r), old.high_watermark[r])
    watermark = advanced(old, r, up_to, isr)
    return (
        behind(old, r),
        old.controller_leader == r,
        *enters_epoch(old, new, r),
        new.isr[r] == isr,
        new.partition_epoch[r] == old.controller_partition_epoch,
        *fetch_in_new_epoch(old, new, r, Bool.false, old.log[r], Fetch.NONE),
        *commits(old, new, r, watermark),
        *answers_who_waited(old, new, r, watermark, isr),
    )


def makes_follower(old: State, new: State, r: Replica, log: Seq[Offset, Record], message: Fetch) -> Step:
    """The replica learns of another leader, and asks it something first, or that there is none."""
    return (
        behind(old, r),
        old.controller_leader != r,
        *enters_epoch(old, new, r),
        new.isr[r] == blank(new.controller_isr),
        new.partition_epoch[r] == 0,
        *fetch_in_new_epoch(old, new, r, old.controller_leader != NONE, log, message),
    )


@action
def becomes_follower(old: State, new: State, r: Replica) -> Step:
    """A replica learns of another leader and fetches from it, or that there is none; its log stays as it is.

    Partition.makeFollower.
    """
    return makes_follower(old, new, r, old.log[r], Fetch.REQUESTED)


@action
def leader_learns_isr(old: State, new: State, leader: Replica) -> Step:
    """A leader learns newer metadata of its own epoch, which settles whatever it had asked."""
    isr, end = old.controller_isr, log_end(old, leader)
    up_to = replicated(old, leader, end, old.follower_end[leader], isr, away(old))
    watermark = advanced(old, leader, up_to, isr)
    return (
        leads(old, leader),
        old.leader_epoch[leader] == old.controller_epoch,
        old.partition_epoch[leader] < old.controller_partition_epoch,
        new.known_away[leader] == away(old),
        new.isr[leader] == isr,
        new.pending_isr[leader] == blank(new.controller_isr),
        new.partition_epoch[leader] == old.controller_partition_epoch,
        *answer_lapses(old, new, leader),
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, isr),
    )


@action
def leader_learns_brokers(old: State, new: State, leader: Replica) -> Step:
    """A leader learns who is fenced or shutting down, where that changed nothing for the partition (with OWN_VIEW).

    MetadataCache.isBrokerFenced, isBrokerShuttingDown; the watermark moves with the next fetch or append.
    """
    return (
        OWN_VIEW,
        leads(old, leader),
        old.leader_epoch[leader] == old.controller_epoch,
        old.partition_epoch[leader] == old.controller_partition_epoch,
        old.known_away[leader] != away(old),
        new.known_away[leader] == away(old),
    )
