"""A log that a leader's followers copy, small enough to check by eye; any live replica may be elected.

A record is acknowledged once every member of the in-sync set has it, and a member that is behind may be put
out of the set. So a record is lost when the set shrinks to the leader, the leader goes down, and a replica
that never had the record is elected: the design `unclean`. In `clean` only members of the set are elected,
and one record is safe (two are not: nothing is truncated here).

Not modelled: messages, epochs, truncation.
"""

from isr_lang import (
    Bool,
    Design,
    Map,
    Maybe,
    Number,
    Seq,
    Set,
    Sort,
    Step,
    Struct,
    action,
    always,
    bound,
    define,
    exists,
    forall,
    initial,
    sometimes,
    step,
    var,
)
from isr_lang.blank import blank

REPLICAS = bound("replicas", "Copies of the log.", default=2, low=1, high=4)
RECORDS = bound("records", "Records that are written.", default=1, low=1, high=3)


class Replica(Sort, size=REPLICAS, prefix="r"):
    """Who has a copy."""


class Offset(Number, high=RECORDS):
    """A position in the log."""


class Record(Number, high=RECORDS):
    """The name of a record: how many were written before it."""


class State(Struct):
    log: Map[Replica, Seq[Offset, Record]] = var("What each replica holds.")
    high_watermark: Map[Replica, Offset] = var("How many records each replica knows to be on all in sync.")
    alive: Set[Replica] = var("Who is up.")
    leader: Maybe[Replica] = var("Who leads.")
    isr: Set[Replica] = var("Who is in sync.")
    acked: Set[Record] = var("What was acknowledged.", ghost=True)
    next: Record = var("The record that is written next.")


@initial
def start(new: State, first: Replica) -> Step:
    """Everything is empty, everyone is up and in sync, and one of them leads."""
    return (
        new.log == blank(new.log),
        new.high_watermark == blank(new.high_watermark),
        new.alive == Replica.all(),
        new.leader == first,
        new.isr == Replica.all(),
        new.acked == blank(new.acked),
        new.next == 0,
    )


@define
def end(s: State, r: Replica) -> Offset:
    """The end of the replica's log."""
    return s.log[r].length()


@define
def holds(s: State, r: Replica, m: Record) -> Bool:
    """The record is in the replica's log."""
    return exists(s.log[r][o] == m for o in Offset.below(end(s, r)))


@define
def leads(s: State, r: Replica) -> Bool:
    """The replica leads and is up."""
    return (s.leader == r) & s.alive.has(r)


@action
def leader_appends(old: State, new: State, r: Replica) -> Step:
    """The leader `r` writes the next record at the end of its log."""
    return (
        leads(old, r),
        old.next < RECORDS,
        new.log[r] == old.log[r].append(old.next),
        new.next == old.next + 1,
    )


@action
def follower_copies(old: State, new: State, f: Replica, r: Replica) -> Step:
    """The follower `f` copies one record from the leader `r`."""
    return (
        leads(old, r),
        old.alive.has(f),
        f != r,
        end(old, f) < end(old, r),
        new.log[f] == old.log[f].append(old.log[r][end(old, f)]),
    )


@action
def high_watermark_advances(old: State, new: State, r: Replica) -> Step:
    """Everyone in sync has the next record, so the leader `r` acknowledges it."""
    hw = old.high_watermark[r]
    return (
        leads(old, r),
        hw < end(old, r),
        forall(end(old, f) > hw for f in old.isr),
        new.high_watermark[r] == hw + 1,
        new.acked == old.acked.including(old.log[r][hw]),
    )


@action
def leader_shrinks_isr(old: State, new: State, r: Replica, f: Replica) -> Step:
    """The leader `r` puts `f`, which is behind, out of the in-sync set."""
    return (leads(old, r), old.isr.has(f), end(old, f) < end(old, r), new.isr == old.isr.excluding(f))


@action
def replica_crashes(old: State, new: State, r: Replica) -> Step:
    """The replica `r` goes down."""
    return (old.alive.has(r), new.alive == old.alive.excluding(r))


@action
def replica_restarts(old: State, new: State, r: Replica) -> Step:
    """The replica `r` comes back with what it had."""
    return (~old.alive.has(r), new.alive == old.alive.including(r))


def elected(old: State, new: State, r: Replica) -> Step:
    return (
        old.alive.has(r),
        exists((old.leader == d) & ~old.alive.has(d) for d in Replica.all()),
        new.leader == r,
    )


@action
def replica_elected(old: State, new: State, r: Replica) -> Step:
    """The leader is down, so the replica `r`, which is in sync, leads."""
    return (*elected(old, new, r), old.isr.has(r))


@action
def any_replica_elected(old: State, new: State, r: Replica) -> Step:
    """The leader is down, so the replica `r` leads, in sync or not."""
    return (*elected(old, new, r), new.isr == Set.of(r))


@always
def acked_survives(s: State) -> Bool:
    """Whoever leads has every record that was acknowledged."""
    return forall((leads(s, r) & s.acked.has(m)).implies(holds(s, r, m)) for r in Replica.all() for m in Record.all())


@step
def logs_only_grow(old: State, new: State) -> Bool:
    """No replica ever loses a record."""
    return forall(old.log[r].is_prefix_of(new.log[r]) for r in Replica.all())


@sometimes
def all_hold_everything(s: State) -> Bool:
    """Every replica can have every record."""
    return forall(holds(s, r, m) for r in Replica.all() for m in Record.below(RECORDS))


CLEAN = Design(
    "clean",
    "Only replicas in sync are elected.",
    State,
    start,
    (
        leader_appends,
        follower_copies,
        high_watermark_advances,
        leader_shrinks_isr,
        replica_crashes,
        replica_restarts,
        replica_elected,
    ),
    (acked_survives, logs_only_grow, all_hold_everything),
)

UNCLEAN = CLEAN.replacing(
    "unclean",
    "Any replica that is up is elected.",
    because="nobody in sync may be left",
    replica_elected=any_replica_elected,
)
