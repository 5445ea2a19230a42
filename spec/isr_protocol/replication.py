"""Replication: a leader appends, followers pull, and what every in-sync replica holds is committed.

The numbers in brackets are the rules that re-implementations often miss, listed in isr_model.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Map, Maybe, Seq, Set, Step, action, define, exists, smallest, when
from isr_lang.blank import blank
from isr_protocol.state import (
    ACKS,
    LOG,
    MIN_INSYNC,
    OWN_VIEW,
    PRODUCERS_WAIT,
    RECORDS,
    Acks,
    Fetch,
    LeaderEpoch,
    Offset,
    Record,
    Replica,
    State,
    end_of_epoch,
    enough,
    epoch_not_above,
    larger,
    leads,
    log_end,
    maximal_isr,
    smaller,
)

# The leader: append, and commit what every replica of the maximal in-sync set holds.


def about_to_join(ends: Map[Replica, Maybe[Offset]], away: Set[Replica]) -> Set[Replica]:
    """Whom a leader waits for before it joins: heard of in this epoch, and not away by the leader's own metadata.

    Only with OWN_VIEW. Kafka stops waiting for one that was not caught up for replica.lag.time.max.ms; here that time
    never passes, so that with OWN_VIEW every wait of Kafka's is kept, and without it none.
    Partition.maybeIncrementLeaderHW, shouldWaitForReplicaToJoinIsr (4.3.1).
    """
    return Replica.all().where(lambda f: OWN_VIEW & (ends[f] != NONE) & ~away.has(f))


def replicated(
    old: State,
    leader: Replica,
    end: Offset,
    ends: Map[Replica, Maybe[Offset]],
    members: Set[Replica],
    away: Set[Replica] | None = None,
) -> Offset:
    """(1) The smallest log end over the members, the leader's being `end`; one not heard of holds nothing."""
    counted = members | about_to_join(ends, old.known_away[leader] if away is None else away)
    return smallest((when(q == leader, end, ends[q].or_else(0)) for q in counted), or_else=old.high_watermark[leader])


@define
def may_commit(s: State, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held while the committed in-sync set is under the minimum (KAFKA-15583, since 3.7).

    Example: ISR {1}, ELR {2}, and the leader proposes {1, 3}: it would commit with 3 while the controller may
    elect 2, of which the leader knows nothing.
    """
    return isr.size() >= MIN_INSYNC


@define
def may_advance(s: State, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The leader holds its watermark while its in-sync set is under the minimum (Partition.isUnderMinIsr)."""
    return may_commit(s, isr)


@define
def enough_on_news(s: State, leader: Replica, members: Set[Replica]) -> Bool:
    """(7) The same number in the step in which the leader learns the controller's newest metadata."""
    return members.size() >= MIN_INSYNC


@define
def may_advance_on_news(s: State, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The same rule in the step in which the leader learns the controller's newest metadata."""
    return may_commit(s, isr)


def advanced_watermark(old: State, leader: Replica, up_to: Offset, isr: Set[Replica], *, news: bool = False) -> Offset:
    """The watermark after it may move up to `up_to`, by `news` of the controller; a leader's never goes down."""
    was, rule = old.high_watermark[leader], may_advance_on_news if news else may_advance
    return when(rule(old, leader, isr), larger(was, up_to), was)


def commits(old: State, new: State, leader: Replica, watermark: Offset, log: Seq[Offset, Record] | None = None) -> Step:
    """The leader's watermark becomes `watermark`, and what is below it is committed."""
    records = old.log[leader] if log is None else log
    return (
        new.high_watermark[leader] == watermark,
        new.committed == when(watermark > old.committed.length(), records.take(watermark), old.committed),
    )


def acknowledged(
    old: State,
    leader: Replica,
    watermark: Offset,
    maximal: Set[Replica],
    log: Seq[Offset, Record] | None = None,
    written_in: Seq[Record, LeaderEpoch] | None = None,
    *,
    news: bool = False,
) -> Set[Record]:
    """The records whose producers get their acknowledgement when the watermark passes them.

    (7) None while the maximal set is under the minimum: the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND. Only the
    leader that appended a record has its producer waiting: with PRODUCERS_WAIT as long as it does not step down, as
    in Kafka; else only in the epoch in which it appended.
    Partition.checkEnoughReplicasReachOffset, DelayedProduce.tryComplete.
    """
    records = old.log[leader] if log is None else log
    epochs = old.written_in if written_in is None else written_in
    rule = enough_on_news if news else enough
    answers_now = (ACKS == Acks.ALL) & rule(old, leader, maximal)

    def waiting(m: Record) -> Bool:
        led_on = leads(old, leader) & (old.leading_since[leader] <= epochs[m])
        return when(PRODUCERS_WAIT, led_on, epochs[m] == old.leader_epoch[leader])

    return Record.all().where(
        lambda m: (
            answers_now
            & exists((records[o] == m) & (old.high_watermark[leader] <= o) for o in Offset.below(watermark))
            & waiting(m)
        )
    )


@action
def leader_appends(old: State, new: State, leader: Replica) -> Step:
    """A producer's record reaches a leader, which appends it in its own epoch.

    (7) With acks=all it is refused before the append while the committed in-sync set is under the
    minimum (NOT_ENOUGH_REPLICAS). With acks=1 the append is the acknowledgement. ReplicaManager.appendRecords,
    Partition.appendRecordsToLeader.
    """
    record, log = old.written_in.length(), old.log[leader].append(old.written_in.length())
    epochs = old.written_in.append(old.leader_epoch[leader])
    members = maximal_isr(old, leader)
    up_to = replicated(old, leader, log_end(old, leader) + 1, old.follower_end[leader], members)
    watermark = advanced_watermark(old, leader, up_to, old.isr[leader])
    at_once = Record.all().where(lambda m: (ACKS == Acks.LEADER) & (m == record))
    return (
        leads(old, leader),
        log_end(old, leader) < LOG,
        record < RECORDS,
        (ACKS != Acks.ALL) | enough(old, leader, old.isr[leader]),
        new.log[leader] == log,
        new.written_in == epochs,
        *commits(old, new, leader, watermark, log),
        new.acked == old.acked | at_once | acknowledged(old, leader, watermark, members, log, epochs),
    )


# Replication: the follower asks from its log end, which is its acknowledgement; the leader answers.


@define
def may_fetch(s: State, follower: Replica) -> Bool:
    """The replica is alive and no fetch of its present epoch is in flight; one of an older epoch is given up."""
    return s.alive.has(follower) & (
        (s.fetch[follower] == Fetch.NONE) | (s.fetch_epoch[follower] != s.leader_epoch[follower])
    )


def last_epoch_in(old: State, log: Seq[Offset, Record]) -> LeaderEpoch:
    """The leader epoch of a log's last record, 0 for an empty log."""
    end = log.length()
    return when(end == 0, blank(old.controller_epoch), old.written_in[log[end - 1]])


def sends(
    old: State,
    new: State,
    follower: Replica,
    leader: Maybe[Replica],
    log: Seq[Offset, Record],
    message: Fetch,
) -> Step:
    """The follower's question: where its log ends, in which epoch that was written, in which epoch it asks."""
    return (
        new.fetch[follower] == message,
        new.fetch_to[follower] == leader,
        new.fetch_epoch[follower] == old.leader_epoch[follower],
        new.fetch_offset[follower] == log.length(),
        new.fetch_last_epoch[follower] == last_epoch_in(old, log),
        new.fetch_record[follower] == NONE,
        new.fetch_watermark[follower] == 0,
    )


@action
def follower_sends_fetch(old: State, new: State, follower: Replica, leader: Replica) -> Step:
    """A follower sends its first fetch in an epoch; from then on every answer makes it send the next.

    The request names the current leader epoch and the epoch of the last record (KIP-320, KIP-595). A fetch that
    Kafka would park until there is news is one that is answered later. AbstractFetcherThread.maybeFetch.
    """
    return (
        may_fetch(old, follower),
        follower != leader,
        old.leader[follower] == leader,
        *sends(old, new, follower, Maybe.of(leader), old.log[follower], Fetch.REQUESTED),
    )


@define
def takes(s: State, leader: Replica, follower: Replica) -> Bool:
    """(3) The follower's request is for this leader, which leads in the very epoch that the request names.

    In another epoch the leader would answer FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, and nothing would change.
    """
    return leads(s, leader) & (s.fetch_to[follower] == leader) & (s.fetch_epoch[follower] == s.leader_epoch[leader])


@define
def continues(s: State, leader: Replica, follower: Replica) -> Bool:
    """The follower's log, as its fetch describes it, is a prefix of the leader's (KIP-595)."""
    epoch = s.fetch_last_epoch[follower]
    return (s.fetch_offset[follower] == 0) | (
        (epoch_not_above(s, leader, epoch) == epoch) & (s.fetch_offset[follower] <= end_of_epoch(s, leader, epoch))
    )


@define
def waits(s: State, leader: Replica, follower: Replica) -> Bool:
    """The follower will read the leader's answer: it is still in the epoch of its fetch."""
    return s.fetch_epoch[follower] == s.leader_epoch[follower]


def answers(old: State, new: State, leader: Replica, follower: Replica, watermark: Offset) -> Step:
    """One record, if there is one at the fetch offset, and the watermark; dropped if nobody waits for it."""
    offset = old.fetch_offset[follower]
    record = when(offset < log_end(old, leader), Maybe.of(old.log[leader][offset]), NONE)
    waiting = waits(old, leader, follower)
    return (
        new.fetch[follower] == when(waiting, Fetch.ANSWERED, Fetch.NONE),
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == when(waiting, old.fetch_epoch[follower], 0),
        new.fetch_offset[follower] == 0,
        new.fetch_last_epoch[follower] == 0,
        new.fetch_record[follower] == when(waiting, record, NONE),
        new.fetch_watermark[follower] == when(waiting, watermark, 0),
    )


@action
def leader_answers_fetch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader takes a follower's fetch as its acknowledgement, moves the watermark, and answers.

    ReplicaManager.fetchMessages, Partition.updateFollowerFetchState, Partition.maybeIncrementLeaderHW.
    """
    ends = old.follower_end[leader].put(follower, Maybe.of(old.fetch_offset[follower]))
    members = maximal_isr(old, leader)
    up_to = replicated(old, leader, log_end(old, leader), ends, members)
    watermark = advanced_watermark(old, leader, up_to, old.isr[leader])
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        continues(old, leader, follower),
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, members),
        *answers(old, new, leader, follower, watermark),
    )


def answers_epoch_end(
    old: State, new: State, leader: Replica, follower: Replica, end: Offset, epoch: LeaderEpoch
) -> Step:
    """The leader names an epoch and where it ends, if somebody waits for it."""
    waiting = waits(old, leader, follower)
    return (
        new.fetch[follower] == when(waiting, Fetch.DIVERGED, Fetch.NONE),
        new.fetch_to[follower] == NONE,
        new.fetch_epoch[follower] == when(waiting, old.fetch_epoch[follower], 0),
        new.fetch_offset[follower] == when(waiting, end, 0),
        new.fetch_last_epoch[follower] == when(waiting, epoch, 0),
    )


@action
def leader_answers_diverging(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells a follower where their logs part; such a fetch acknowledges nothing (3).

    It names its largest epoch that is not above the follower's and where that ends. Partition.readRecords,
    lastOffsetForLeaderEpoch (KIP-595); KIP-279's rule.
    """
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~continues(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@action
def follower_appends(old: State, new: State, follower: Replica) -> Step:
    """A follower appends what it was sent, takes over the leader's watermark, even a lower one, and asks for more.

    ReplicaFetcherThread.processPartitionData.
    """
    record = old.fetch_record[follower]
    log = when(record == NONE, old.log[follower], old.log[follower].append(record.or_else(0)))
    known = smaller(old.fetch_watermark[follower], log.length())
    return (
        old.fetch[follower] == Fetch.ANSWERED,
        new.log[follower] == log,
        new.high_watermark[follower] == known,
        *sends(old, new, follower, old.leader[follower], log, Fetch.REQUESTED),
    )


@action
def follower_truncates(old: State, new: State, follower: Replica) -> Step:
    """A follower cuts its log where it parts from the leader's, as far as it can tell, and asks again.

    AbstractFetcherThread.truncateOnFetchResponse, getOffsetTruncationState.
    """
    own = end_of_epoch(old, follower, old.fetch_last_epoch[follower])
    point = smaller(old.fetch_offset[follower], own)
    log = old.log[follower].take(point)
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        new.log[follower] == log,
        new.high_watermark[follower] == smaller(old.high_watermark[follower], point),
        *sends(old, new, follower, old.leader[follower], log, Fetch.REQUESTED),
    )
