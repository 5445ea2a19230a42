"""Metadata: every broker learns who leads, in which epoch and with which in-sync set, each at its own pace.

What is overtaken may be skipped. The numbers in brackets are the rules that re-implementations often miss, listed in
isr_model.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Maybe, Seq, Set, Step, action, define, exists, when
from isr_lang.blank import blank
from isr_protocol.replication import acknowledged, advanced_watermark, commits, last_epoch_in, replicated, takes
from isr_protocol.state import (
    OWN_VIEW,
    PRODUCERS_WAIT,
    Alter,
    Fetch,
    LeaderEpoch,
    Offset,
    Record,
    Replica,
    State,
    leads,
    log_end,
)


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


@attrs.frozen
class News:
    """What a broker learns: a leader, or that there is none, and its epoch."""

    leader: Maybe[Replica]
    epoch: LeaderEpoch


def newest(s: State) -> News:
    """What the controller decided last."""
    return News(s.controller_leader, s.controller_epoch)


def fetch_in_new_epoch(
    old: State, new: State, r: Replica, asks: Bool, log: Seq[Offset, Record], message: Fetch, news: News | None = None
) -> Step:
    """The first fetch of the new epoch, if the replica asks anybody; answers of older epochs are dropped.

    A request that an older leader may yet take stays on its way, and follower_sends_fetch follows it.
    """
    keeps_request, end, last = request_lives(old, r), log.length(), last_epoch_in(old, log)
    news = news or newest(old)
    return (
        new.fetch[r] == when(keeps_request, old.fetch[r], when(asks, message, Fetch.NONE)),
        new.fetch_to[r] == when(keeps_request, old.fetch_to[r], when(asks, news.leader, NONE)),
        new.fetch_epoch[r] == when(keeps_request, old.fetch_epoch[r], when(asks, news.epoch, 0)),
        new.fetch_offset[r] == when(keeps_request, old.fetch_offset[r], when(asks, end, 0)),
        new.fetch_last_epoch[r] == when(keeps_request, old.fetch_last_epoch[r], when(asks, last, 0)),
        new.fetch_record[r] == NONE,
        new.fetch_watermark[r] == 0,
    )


def answer_lapses(old: State, new: State, r: Replica) -> Step:
    """An answer to an AlterPartition says nothing new to who knows newer metadata; a request stays on its way."""
    kept = old.alter[r] == Alter.REQUESTED
    return (new.alter[r] == when(kept, old.alter[r], Alter.NONE),)


def takes_over(old: State, new: State, r: Replica, news: News | None = None) -> Step:
    """The replica takes over leader and leader epoch; if it leads, also who is away, and since when it leads."""
    news = news or newest(old)
    elected = news.leader == r
    since = when(leads(old, r), old.leading_since[r], news.epoch)
    return (
        new.leader[r] == news.leader,
        new.leader_epoch[r] == news.epoch,
        new.pending_isr[r] == blank(new.controller_isr),
        new.leading_since[r] == when(elected, since, 0),
        new.known_away[r] == when(elected, away(old), blank(new.fenced)),
        *answer_lapses(old, new, r),
    )


def enters_epoch(old: State, new: State, r: Replica, news: News | None = None) -> Step:
    """The replica takes over leader and leader epoch, and forgets what it knew as a leader.

    Kafka's keeps its followers' positions if it led before (Replica.resetReplicaState), even past another
    leader's epoch: see kafka-keeps-positions in isr_protocol.designs.leader_bugs.
    """
    return (
        *takes_over(old, new, r, news),
        new.follower_end[r] == blank(new.follower_end[r]),
        new.follower_broker_epoch[r] == blank(new.follower_broker_epoch[r]),
    )


def answers_who_waited(old: State, new: State, r: Replica, watermark: Offset, isr: Set[Replica]) -> Step:
    """A leader that is elected again answers the producers that waited for it since an epoch before."""
    answered = acknowledged(old, r, watermark, isr, news=True)
    return (new.acked == when(PRODUCERS_WAIT, old.acked | answered, old.acked),)


@action
def becomes_leader(old: State, new: State, r: Replica) -> Step:
    """A replica learns that it leads in a new epoch; alone in the in-sync set, it commits its whole log.

    Partition.makeLeader.
    """
    isr = old.controller_isr
    up_to = when(isr == Set.of(r), log_end(old, r), old.high_watermark[r])
    watermark = advanced_watermark(old, r, up_to, isr, news=True)
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


def follows(
    old: State, new: State, r: Replica, log: Seq[Offset, Record], message: Fetch, news: News | None = None
) -> Step:
    """The replica follows another leader from now on, and asks it something first, or has none."""
    news = news or newest(old)
    return (
        *enters_epoch(old, new, r, news),
        new.isr[r] == blank(new.controller_isr),
        new.partition_epoch[r] == 0,
        *fetch_in_new_epoch(old, new, r, news.leader != NONE, log, message, news),
    )


def makes_follower(old: State, new: State, r: Replica, log: Seq[Offset, Record], message: Fetch) -> Step:
    """The replica learns of another leader, and asks it something first, or that there is none."""
    return (behind(old, r), old.controller_leader != r, *follows(old, new, r, log, message))


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
    watermark = advanced_watermark(old, leader, up_to, isr, news=True)
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
        new.acked == old.acked | acknowledged(old, leader, watermark, isr, news=True),
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
