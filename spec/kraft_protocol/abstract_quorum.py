"""The quorum without its messages: what a replicated log is to who builds on it, in eight actions.

A voter enters a later epoch, supports another, or is elected by a majority that is up to date. A leader appends and
commits. A follower takes over the leader's log, or a part of it. A disk is lost. There are no messages, no pre-votes
and no snapshots. `kraft_protocol.refinement` holds the protocol at message grain to this one, step by step.

An election is one step here: the vote that makes the majority elects. That the nominee learns of it later is not seen.
What the leader of an epoch has written stays available, for a follower may append what was sent before the leader was
deposed.

The numbers in brackets are the rules that re-implementations often miss, listed in kraft_model.
"""

from __future__ import annotations

from isr_lang import (
    NONE,
    Bool,
    Design,
    Map,
    Maybe,
    Number,
    Property,
    Seq,
    Set,
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
    when,
)
from isr_lang.blank import blank
from kraft_protocol.state import DYNAMIC, LOST_DISKS, LostDisks, Voter

TERMS = bound("terms", "epochs of the quorum after the first", default=1, low=1, high=5)
METADATA_LOG = bound("metadata_log", "records that fit into the quorum's log", default=2, low=1, high=8)


class Term(Number, high=TERMS):
    """An epoch of the quorum. At most one voter leads in each."""


class Position(Number, high=METADATA_LOG):
    """A position in the quorum's log; as an end, the position after the last record."""


class AbstractQuorum(Struct):
    """What every voter has on its disk, and what a leader knows."""

    term: Map[Voter, Term] = var("the epoch of each voter")
    support: Map[Voter, Maybe[Voter]] = var("whom it supports in that epoch, itself included")
    quorum_leaders: Set[Voter] = var("who leads its epoch, as far as it knows")
    quorum_log: Map[Voter, Seq[Position, Term]] = var(
        "the records of each voter, each the epoch in which it was written"
    )
    quorum_end: Map[Voter, Position] = var("offsets below it are known by a leader to be committed")
    quorum_committed: Seq[Position, Term] = var("all that any leader committed", ghost=True)
    lost_disks: LostDisks = var("disks lost so far")
    strangers: Set[Voter] = var("voters whose disk is another than the voter set has", when=DYNAMIC)


class Quorum(AbstractQuorum):
    """The same with what was written in each epoch."""

    written_logs: Map[Term, Map[Voter, Seq[Position, Term]]] = var("the log of who led each epoch, when it led last")


@initial
def nobody_leads(new: Quorum) -> Step:
    """Every voter has an empty disk."""
    return (
        new.term == blank(new.term),
        new.support == blank(new.support),
        new.quorum_leaders == blank(new.quorum_leaders),
        new.quorum_log == blank(new.quorum_log),
        new.quorum_end == blank(new.quorum_end),
        new.quorum_committed == blank(new.quorum_committed),
        new.lost_disks == 0,
        new.strangers == blank(new.strangers),
        new.written_logs == blank(new.written_logs),
    )


# Definitions


@define
def end(s: AbstractQuorum, r: Voter) -> Position:
    """Where the voter's next record goes."""
    return s.quorum_log[r].length()


@define
def last_term(s: AbstractQuorum, r: Voter) -> Term:
    """The epoch of the last record, 0 of an empty log."""
    return when(end(s, r) == 0, blank(s.term[r]), s.quorum_log[r][end(s, r) - 1])


@define
def covers(s: AbstractQuorum, nominee: Voter, r: Voter) -> Bool:
    """(3) The nominee's log is not behind that of r: the epoch of the last record decides first, then the length."""
    own, of_nominee = last_term(s, r), last_term(s, nominee)
    return (own < of_nominee) | ((own == of_nominee) & (end(s, r) <= end(s, nominee)))


@define
def is_free(s: AbstractQuorum, r: Voter, v: Voter, t: Term) -> Bool:
    """(2) The voter may support v in this epoch: it is in an earlier one, or in this one, and supports nobody else.

    (10) Another disk of a voter supports nobody.
    """
    free = (s.term[r] < t) | ((s.term[r] == t) & ((s.support[r] == NONE) | (s.support[r] == v)))
    return free & ~s.strangers.has(r)


def is_majority(voters: Set[Voter]) -> Bool:
    return voters.size() + voters.size() > Voter.all().size()


def no_end(old: AbstractQuorum, *voters: Voter) -> Map[Voter, Position]:
    """These voters know of no commit: they do not lead, or do not lead any more."""
    ends = old.quorum_end
    for v in voters:
        ends = ends.put(v, 0)
    return ends


# Epochs and elections


def enters(old: AbstractQuorum, new: AbstractQuorum, r: Voter, t: Term) -> Step:
    """The voter is in this epoch, and does not lead it."""
    return (
        old.term[r] <= t,
        new.term[r] == t,
        new.quorum_leaders == old.quorum_leaders.excluding(r),
        new.quorum_end[r] == 0,
    )


@action
def voter_enters_term(old: Quorum, new: Quorum, r: Voter, t: Term) -> Step:
    """A voter hears of a later epoch, or stops leading its own."""
    return (
        (old.term[r] < t) | old.quorum_leaders.has(r),
        *enters(old, new, r, t),
        new.support[r] == when(old.term[r] == t, old.support[r], blank(old.support[r])),
    )


@action
def voter_supports(old: Quorum, new: Quorum, r: Voter, v: Voter, t: Term) -> Step:
    """A voter supports itself, or another whose log is not behind, which is no majority yet, or is one already."""
    return (
        is_free(old, r, v, t),
        (r == v) | ((old.term[v] == t) & (old.support[v] == v) & covers(old, v, r)),
        *enters(old, new, r, t),
        new.support[r] == v,
    )


def is_elected(old: AbstractQuorum, new: AbstractQuorum, v: Voter, q: Voter, t: Term) -> Step:
    """The vote of q makes a majority for v, with v itself and those that support it in this epoch already."""
    supporters = Voter.all().where(lambda p: (p == v) | (p == q) | ((old.term[p] == t) & (old.support[p] == v)))
    return (
        t > 0,
        ~(old.quorum_leaders.has(v) & (old.term[v] == t)),
        is_free(old, v, v, t),
        is_free(old, q, v, t),
        covers(old, v, q),
        is_majority(supporters),
        new.term == old.term.put(v, t).put(q, t),
        new.support == old.support.put(v, Maybe.of(v)).put(q, Maybe.of(v)),
        new.quorum_leaders == old.quorum_leaders.excluding(q).including(v),
        new.quorum_end == no_end(old, v, q),
    )


@action
def voter_is_elected(old: Quorum, new: Quorum, v: Voter, q: Voter, t: Term) -> Step:
    """A voter leads an epoch by a majority that is up to date; q votes last. (8) It knows of no commit."""
    return (
        *is_elected(old, new, v, q, t),
        new.written_logs == old.written_logs.put(t, old.written_logs[t].put(v, old.quorum_log[v])),
    )


# The log


def appends(old: AbstractQuorum, new: AbstractQuorum, r: Voter) -> Step:
    """The voter leads, and appends a record of its epoch."""
    return (
        old.quorum_leaders.has(r),
        end(old, r) < METADATA_LOG,
        new.quorum_log[r] == old.quorum_log[r].append(old.term[r]),
    )


@action
def leader_writes(old: Quorum, new: Quorum, r: Voter) -> Step:
    """A leader appends a record."""
    t, log = old.term[r], old.quorum_log[r].append(old.term[r])
    return (*appends(old, new, r), new.written_logs == old.written_logs.put(t, old.written_logs[t].put(r, log)))


def shares(log: Seq[Position, Term], other: Seq[Position, Term], n: Position) -> Bool:
    """The first n records of both logs are the same, and both have so many."""
    return (n <= log.length()) & log.take(n).is_prefix_of(other)


def follows(old: AbstractQuorum, new: AbstractQuorum, f: Voter, t: Term, log: Seq[Position, Term]) -> Step:
    """The follower is in this epoch, in which it does not lead, and has this log."""
    return (
        ~(old.quorum_leaders.has(f) & (old.term[f] == t)),
        *enters(old, new, f, t),
        new.support[f] == when(old.term[f] == t, old.support[f], blank(old.support[f])),
        new.quorum_log[f] == log,
    )


@define
def has_written(s: Quorum, v: Voter, t: Term) -> Bool:
    """The voter has written a record in this epoch."""
    log = s.written_logs[t][v]
    return (log.length() > 0) & (log[log.length() - 1] == t)


@action
def follower_copies(old: Quorum, new: Quorum, f: Voter, v: Voter, t: Term, n: Position) -> Step:
    """A follower has the first n records of who leads its epoch, or led it, and at least those that it shared before.

    (4) What it has beyond them it truncates.
    """
    log = old.written_logs[t][v]
    return (
        f != v,
        has_written(old, v, t),
        ~shares(old.quorum_log[f], log, n + 1),
        n <= log.length(),
        *follows(old, new, f, t, log.take(n)),
    )


@action
def follower_cuts(old: Quorum, new: Quorum, f: Voter, v: Voter, t: Term, n: Position) -> Step:
    """(5) A follower truncates some of what it does not share with who leads its epoch, or led it."""
    log = old.written_logs[t][v]
    return (
        f != v,
        has_written(old, v, t),
        ~shares(old.quorum_log[f], log, n),
        n < end(old, f),
        *follows(old, new, f, t, old.quorum_log[f].take(n)),
    )


@define
def may_commit_up_to(s: AbstractQuorum, r: Voter, n: Position) -> Bool:
    """(1) A majority in the leader's epoch has its first n records, and the last of them is of that epoch."""
    own = s.quorum_log[r]
    holders = Voter.all().where(
        lambda q: (s.term[q] == s.term[r]) & own.take(n).is_prefix_of(s.quorum_log[q]) & ~s.strangers.has(q)
    )
    return (n > 0) & (n <= own.length()) & (own[n - 1] == s.term[r]) & is_majority(holders)


def commits(old: AbstractQuorum, new: AbstractQuorum, r: Voter, n: Position) -> Step:
    """The leader knows that its first n records are committed."""
    more = n > old.quorum_committed.length()
    return (
        old.quorum_leaders.has(r),
        old.quorum_end[r] < n,
        may_commit_up_to(old, r, n),
        new.quorum_end[r] == n,
        new.quorum_committed == when(more, old.quorum_log[r].take(n), old.quorum_committed),
    )


@action
def leader_commits(old: Quorum, new: Quorum, r: Voter, n: Position) -> Step:
    """A leader commits what a majority has."""
    return commits(old, new, r, n)


# Faults


def forgets(old: AbstractQuorum, new: AbstractQuorum, r: Voter) -> Step:
    """The voter's disk is gone, and it comes back with an empty one (KAFKA-14077)."""
    return (
        old.lost_disks < LOST_DISKS,
        new.lost_disks == old.lost_disks + 1,
        new.strangers == when(DYNAMIC, old.strangers.including(r), old.strangers),
        new.term[r] == 0,
        new.support[r] == blank(old.support[r]),
        new.quorum_leaders == old.quorum_leaders.excluding(r),
        new.quorum_end[r] == 0,
        new.quorum_log[r] == blank(old.quorum_log[r]),
    )


@action
def voter_forgets(old: Quorum, new: Quorum, r: Voter) -> Step:
    """A voter loses its disk."""
    return forgets(old, new, r)


# What is promised


@always
def one_leader_a_term(s: AbstractQuorum) -> Bool:
    """No two voters lead one epoch at a time."""
    return forall(
        (s.quorum_leaders.has(r) & s.quorum_leaders.has(q) & (r != q)).implies(s.term[r] != s.term[q])
        for r in Voter.all()
        for q in Voter.all()
    )


@always
def leaders_have_committed(s: AbstractQuorum) -> Bool:
    """Who leads an epoch after that of the last committed record has all that was ever committed."""
    n = s.quorum_committed.length()
    return forall(
        (s.quorum_leaders.has(r) & (n > 0) & (s.quorum_committed[n - 1] <= s.term[r])).implies(
            s.quorum_committed.is_prefix_of(s.quorum_log[r])
        )
        for r in Voter.all()
    )


@always
def quorum_logs_match(s: AbstractQuorum) -> Bool:
    """Two logs with a record of the same epoch at the same position agree on everything before it."""
    return forall(
        ((o <= p) & (p < end(s, r)) & (p < end(s, q)) & (s.quorum_log[r][p] == s.quorum_log[q][p])).implies(
            s.quorum_log[r][o] == s.quorum_log[q][o]
        )
        for r in Voter.all()
        for q in Voter.all()
        for o in Position.all()
        for p in Position.all()
    )


@step
def one_vote_a_term(old: AbstractQuorum, new: AbstractQuorum) -> Bool:
    """Whom a voter supports in an epoch, it supports as long as it is in that epoch, and it goes back to none.

    (10) Another disk of it is another voter.
    """
    return forall(
        (~new.strangers.has(r)).implies(
            (old.term[r] <= new.term[r])
            & ((old.term[r] == new.term[r]) & (old.support[r] != NONE)).implies(new.support[r] == old.support[r])
        )
        for r in Voter.all()
    )


@step
def quorum_only_grows(old: AbstractQuorum, new: AbstractQuorum) -> Bool:
    """What was committed is neither replaced nor forgotten."""
    return old.quorum_committed.is_prefix_of(new.quorum_committed)


@always
def leader_knows_what_is_committed(s: AbstractQuorum) -> Bool:
    """What a leader takes for committed was committed."""
    return forall(s.quorum_log[r].take(s.quorum_end[r]).is_prefix_of(s.quorum_committed) for r in Voter.all())


@sometimes
def later_leader_commits(s: AbstractQuorum) -> Bool:
    """Records of two epochs are committed."""
    return exists(
        (o < s.quorum_committed.length()) & (s.quorum_committed[o] != s.quorum_committed[0]) for o in Position.all()
    )


QUORUM_PROMISES: tuple[Property, ...] = (
    one_leader_a_term,
    leaders_have_committed,
    quorum_only_grows,
    leader_knows_what_is_committed,
)

ABSTRACT_QUORUM = Design(
    "abstract-quorum",
    "A quorum without messages, as who builds on it sees it",
    Quorum,
    nobody_leads,
    (
        voter_enters_term,
        voter_supports,
        voter_is_elected,
        leader_writes,
        follower_copies,
        follower_cuts,
        leader_commits,
        voter_forgets,
    ),
    (*QUORUM_PROMISES, quorum_logs_match, one_vote_a_term, later_leader_commits),
    defaults={"voters": 3, "terms": 2},
)

DESIGNS = (ABSTRACT_QUORUM,)
