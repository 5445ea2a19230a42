"""The quorum: the actions of `kraft_protocol.abstract_quorum`, with what the records say.

A follower copies all that its leader has. Of the abstract quorum's steps these are left out: a voter that enters an
epoch in which nobody is elected, a part of a log, and what arrives after its leader was deposed.
"""

from __future__ import annotations

from typing import TypeVar

from controller_protocol.metadata import (
    copies_records,
    has_no_records,
    is_published,
    record_of,
    records,
    replayed_metadata,
)
from controller_protocol.state import State
from isr_lang import Map, Set, Step, action, exists, when
from isr_lang.blank import blank
from isr_lang.expr import Expr
from isr_protocol.membership import hears
from isr_protocol.state import Alter, Replica
from kraft_protocol.abstract_quorum import (
    Position,
    Term,
    appends,
    commits,
    end,
    follows,
    forgets,
    is_elected,
    last_term,
)
from kraft_protocol.state import Voter

V = TypeVar("V", bound=Expr)


def remaining(leaders: Set[Replica], field: Map[Replica, V]) -> Map[Replica, V]:
    """A field of the requests that are left."""
    return Map.build(Replica, lambda r: when(leaders.has(r), blank(field[r]), field[r]))


def steps_down(old: State, new: State, *voters: Voter) -> Step:
    """These controllers hold no request any more: they answer NOT_CONTROLLER, and the brokers ask again."""
    lost = Replica.all().where(lambda r: exists(old.alter_holder[r] == v for v in Set.of(*voters)))
    return (new.alter_holder == remaining(lost, old.alter_holder), new.alter_end == remaining(lost, old.alter_end))


@action
def controller_is_elected(old: State, new: State, v: Voter, q: Voter, t: Term) -> Step:
    """A controller is elected by a majority that is up to date. It is not active yet.

    Sessions are new with it, for nobody else knows when a broker was heard. In place of a leader that did not resign it
    is elected without that one's knowledge.
    """
    return (
        v != q,
        t <= old.term[v] + 1,
        *is_elected(old, new, v, q, t),
        *steps_down(old, new, v, q),
    )


@action
def leader_begins_term(old: State, new: State, c: Voter) -> Step:
    """A new leader appends its LeaderChange, which says nothing of the metadata."""
    return (
        last_term(old, c) != old.term[c],
        *appends(old, new, c),
        *records(new, c, end(old, c), replayed_metadata(old, c)),
    )


@action
def follower_copies_log(old: State, new: State, f: Voter, v: Voter) -> Step:
    """A follower has all that the leader has. A controller that hears of it reverts what was not committed.

    KafkaRaftClient.handleFetchResponse; QuorumController.renounce, OffsetControlManager.deactivate.
    """
    return (
        f != v,
        old.quorum_leaders.has(v),
        old.term[f] <= old.term[v],
        last_term(old, v) == old.term[v],
        (old.quorum_log[f] != old.quorum_log[v]) | (old.term[f] != old.term[v]),
        *follows(old, new, f, old.term[v], old.quorum_log[v]),
        *copies_records(old, new, f, v),
        *steps_down(old, new, f),
    )


def answers(old: State, new: State, leaders: Set[Replica]) -> Step:
    """These leaders are told that their AlterPartition was accepted, if they still wait for that."""
    return (
        new.alter
        == Map.build(
            Replica,
            lambda r: when(leaders.has(r), when(hears(old, r), Alter.ACCEPTED, Alter.NONE), old.alter[r]),
        ),
        new.alter_isr == remaining(leaders, old.alter_isr),
        new.alter_leader_epoch == remaining(leaders, old.alter_leader_epoch),
        new.alter_partition_epoch == remaining(leaders, old.alter_partition_epoch),
        new.alter_broker_epoch == remaining(leaders, old.alter_broker_epoch),
        new.alter_holder == remaining(leaders, old.alter_holder),
        new.alter_end == remaining(leaders, old.alter_end),
        new.alter_term == remaining(leaders, old.alter_term),
    )


@action
def controller_commits(old: State, new: State, c: Voter, n: Position) -> Step:
    """A leader commits its first n records, brokers hear of them, and those who asked for one of them are answered.

    QuorumController.QuorumMetaLogListener.handleCommit, DeferredEventQueue.completeUpTo.
    """
    leaders = Replica.all().where(lambda r: (old.alter_holder[r] == c) & (old.alter_end[r] <= n))
    return (
        *commits(old, new, c, n),
        *is_published(new, record_of(old, c, n - 1)),
        *answers(old, new, leaders),
    )


@action
def controller_forgets(old: State, new: State, r: Voter) -> Step:
    """A controller loses its disk, and comes back with an empty one."""
    return (
        *forgets(old, new, r),
        *has_no_records(old, new, r),
        *steps_down(old, new, r),
    )
