"""The comparison: a majority quorum, as in Raft, on the same logs, fetches and faults.

No in-sync set: a record commits when a majority holds it, and a replica leads only with the votes of a
majority, none of which has a more complete log. 2f+1 replicas survive f failures, against the ISR's f+1.
Voting is one step here, for only its outcome is compared.
"""

from __future__ import annotations

from typing import TypeVar

from isr_lang import Bool, Map, Maybe, Set, Step, action, count, define, forall, largest, when
from isr_lang.blank import blank
from isr_lang.expr import Expr
from isr_protocol.replication import acknowledged, answers, commits, continues, takes
from isr_protocol.state import (
    ACKS,
    EPOCHS,
    ISR_CHANGES,
    LOG,
    RECORDS,
    REPLICAS,
    Acks,
    Fetch,
    Offset,
    Record,
    Replica,
    State,
    larger,
    last_epoch,
    leads,
    log_end,
)

V = TypeVar("V", bound=Expr)


def on_majority(old: State, leader: Replica, end: Offset, ends: Map[Replica, Maybe[Offset]]) -> Offset:
    """The largest log end that a majority has reached, the leader's own being `end`."""

    def has_majority(o: Offset) -> Bool:
        number = count((o <= when(q == leader, end, ends[q].or_else(0))) for q in Replica.all())
        return number + number > REPLICAS

    return largest((when(has_majority(o), o, 0) for o in Offset.all()), or_else=0)


def majority_commits(old: State, leader: Replica, up_to: Offset, own: Bool) -> Offset:
    """The watermark moves only to a record of the leader's own epoch (Raft, section 5.4.2)."""
    was = old.high_watermark[leader]
    return when(own, larger(was, up_to), was)


@action
def leader_appends_for_majority(old: State, new: State, leader: Replica) -> Step:
    """A producer's record reaches a leader, which appends it in its own epoch."""
    record, log = old.written_in.length(), old.log[leader].append(old.written_in.length())
    epochs = old.written_in.append(old.leader_epoch[leader])
    up_to = on_majority(old, leader, log_end(old, leader) + 1, old.follower_end[leader])
    watermark = majority_commits(old, leader, up_to, up_to == log_end(old, leader) + 1)
    at_once = Record.all().where(lambda m: (ACKS == Acks.LEADER) & (m == record))
    return (
        leads(old, leader),
        log_end(old, leader) < LOG,
        record < RECORDS,
        new.log[leader] == log,
        new.written_in == epochs,
        *commits(old, new, leader, watermark, log),
        new.acked == old.acked | at_once | acknowledged(old, leader, watermark, Replica.all(), log, epochs),
    )


@action
def leader_answers_for_majority(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader takes a follower's fetch as its acknowledgement, and commits what a majority holds."""
    ends = old.follower_end[leader].put(follower, Maybe.of(old.fetch_offset[follower]))
    up_to = on_majority(old, leader, log_end(old, leader), ends)
    last = old.written_in[old.log[leader][up_to - 1]]
    watermark = majority_commits(old, leader, up_to, (up_to > 0) & (last == old.leader_epoch[leader]))
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        continues(old, leader, follower),
        new.follower_end[leader] == ends,
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, Replica.all()),
        *answers(old, new, leader, follower, watermark),
    )


@define
def votes_for(s: State, candidate: Replica, voter: Replica) -> Bool:
    """The voter's log is not more complete than the candidate's: not a later last epoch, nor longer in the same."""
    mine, theirs = last_epoch(s, voter), last_epoch(s, candidate)
    return (mine < theirs) | ((mine == theirs) & (log_end(s, voter) <= log_end(s, candidate)))


@action
def majority_elects(old: State, new: State, candidate: Replica, voters: Set[Replica]) -> Step:
    """A majority votes for a candidate, which leads from then on; the voters refuse older leaders."""

    def after(vote: V, as_before: Map[Replica, V]) -> Map[Replica, V]:
        """The voters enter the new epoch with their vote, the others stay as they are."""
        return Map.build(Replica, lambda r: when(voters.has(r), vote, as_before[r]))

    def blank_for_voters(field: Map[Replica, V]) -> Map[Replica, V]:
        """Blank for the voters."""
        return Map.build(Replica, lambda r: when(voters.has(r), blank(field[r]), field[r]))

    return (
        voters <= old.alive,
        voters.has(candidate),
        voters.size() + voters.size() > REPLICAS,
        forall(votes_for(old, candidate, v) for v in voters),
        old.controller_epoch < EPOCHS,
        old.controller_partition_epoch < ISR_CHANGES,
        new.controller_leader == candidate,
        new.controller_epoch == old.controller_epoch + 1,
        new.controller_partition_epoch == old.controller_partition_epoch + 1,
        new.leader == after(Maybe.of(candidate), old.leader),
        new.leader_epoch == after(old.controller_epoch + 1, old.leader_epoch),
        new.leading_since == after(old.controller_epoch + 1, old.leading_since),
        new.follower_end == blank_for_voters(old.follower_end),
        new.follower_broker_epoch == blank_for_voters(old.follower_broker_epoch),
        new.fetch == blank_for_voters(old.fetch),
        new.fetch_to == blank_for_voters(old.fetch_to),
        new.fetch_epoch == blank_for_voters(old.fetch_epoch),
        new.fetch_offset == blank_for_voters(old.fetch_offset),
        new.fetch_last_epoch == blank_for_voters(old.fetch_last_epoch),
        new.fetch_record == blank_for_voters(old.fetch_record),
        new.fetch_watermark == blank_for_voters(old.fetch_watermark),
    )


@action
def broker_rejoins(old: State, new: State, r: Replica) -> Step:
    """A broker starts with the log that it finds on its disk; nobody had to notice that it was away."""
    return (
        ~old.alive.has(r),
        new.alive == old.alive.including(r),
        new.broker_epoch[r] == old.broker_epoch[r] + 1,
    )
