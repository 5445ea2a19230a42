"""Why the quorum without messages keeps its promises: an inductive invariant, and what is proved by it.

The argument is that of Raft, as conjuncts:

1. Whoever led an epoch has a majority that is *bound* to it: each is in a later epoch, or supports it in that one.
   Two majorities have a voter in common, so nobody else is ever elected there (one-leader-ever).
2. In an epoch of which there is a record nobody is elected any more but who wrote it (records-close-their-epoch).
3. A log with a record of an epoch has all that the leader of that epoch had before that record
   (records-are-their-leaders).
4. A majority has all that is committed, and has come to its last epoch (majority-keeps-committed).
5. One of these voted for whoever was elected later, and its log was not ahead. So each later leader has all that is
   committed (leaders-are-complete), and no follower cuts off any of it.

No conjunct says that somebody exists. Of any number of voters a solver would have to find out whom that means. What a
leader wrote is kept in `written_logs` by its name, and majorities meet.

Assumed: a fixed set of voters, and the steps of `abstract_quorum`. A disk may be lost where voters have directory ids:
whoever lost one is a stranger then, who supports nobody and counts for no commit. `refinement` says how the protocol at
message grain is held to these steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isr_lang import NONE, Bool, Conjunct, Count, Design, Seq, Set, always, define, forall
from kraft_protocol.abstract_quorum import (
    METADATA_LOG,
    TERMS,
    Position,
    Quorum,
    Term,
    covers,
    end,
    has_written,
    is_majority,
    last_term,
    leader_knows_what_is_committed,
    leaders_have_committed,
    one_leader_a_term,
    one_vote_a_term,
    quorum_logs_match,
    quorum_only_grows,
)
from kraft_protocol.state import LOST_DISKS, VOTERS, Voter


@define
def has_led(s: Quorum, v: Voter, t: Term) -> Bool:
    """The voter leads this epoch, or has written a record in it."""
    return has_written(s, v, t) | (s.quorum_leaders.has(v) & (s.term[v] == t))


def bound_to(s: Quorum, v: Voter, t: Term) -> Set[Voter]:
    """Who will support nobody else in this epoch: it supports v there, or is in a later one, or lost its disk."""
    return Voter.all().where(lambda p: (s.term[p] > t) | ((s.term[p] == t) & (s.support[p] == v)) | s.strangers.has(p))


@always
def terms_fit(s: Quorum) -> Bool:
    """No voter is in an epoch beyond the last."""
    return forall(s.term[r] <= TERMS for r in Voter.all())


@always
def leaders_bind_a_majority(s: Quorum) -> Bool:
    """Whoever led an epoch has a majority that supports nobody else there."""
    return forall(has_led(s, v, t).implies(is_majority(bound_to(s, v, t))) for v in Voter.all() for t in Term.all())


@always
def one_leader_ever(s: Quorum) -> Bool:
    """No two voters led one epoch, not even one after the other."""
    return forall(
        (has_led(s, v, t) & has_led(s, q, t)).implies(v == q)
        for v in Voter.all()
        for q in Voter.all()
        for t in Term.all()
    )


@always
def strangers_support_nobody(s: Quorum) -> Bool:
    """(10) Whoever came back with another disk than the voter set has supports nobody."""
    return forall(s.strangers.has(r).implies(s.support[r] == NONE) for r in Voter.all())


# Logs


def log_written(s: Quorum, v: Voter, t: Term) -> Seq[Position, Term]:
    return s.written_logs[t][v]


def written_end(s: Quorum, v: Voter, t: Term) -> Position:
    return log_written(s, v, t).length()


@always
def records_in_order(s: Quorum) -> Bool:
    """A log has records of epochs that its voter was in, in the order of these."""
    return forall(
        (s.quorum_log[r][p] > 0)
        & (s.quorum_log[r][p] <= s.term[r])
        & (o <= p).implies(s.quorum_log[r][o] <= s.quorum_log[r][p])
        for r in Voter.all()
        for p in Position.below(end(s, r))
        for o in Position.below(end(s, r))
    )


@always
def written_in_order(s: Quorum) -> Bool:
    """So has what a leader wrote, with what it had before."""
    return forall(
        has_led(s, v, t).implies(
            forall(
                (log_written(s, v, t)[p] > 0)
                & (log_written(s, v, t)[p] <= t)
                & (o <= p).implies(log_written(s, v, t)[o] <= log_written(s, v, t)[p])
                for p in Position.below(written_end(s, v, t))
                for o in Position.below(written_end(s, v, t))
            )
        )
        for v in Voter.all()
        for t in Term.all()
    )


@always
def leaders_have_what_they_wrote(s: Quorum) -> Bool:
    """Whoever led an epoch has come so far, and has all that it wrote there as long as it is in that epoch.

    (10) Unless its disk is lost.
    """
    return forall(
        has_led(s, v, t).implies(
            (t > 0)
            & (~s.strangers.has(v)).implies(
                (t <= s.term[v]) & (s.term[v] == t).implies(s.quorum_log[v] == log_written(s, v, t))
            )
        )
        for v in Voter.all()
        for t in Term.all()
    )


@always
def leaders_note_what_they_write(s: Quorum) -> Bool:
    """What was written in a leader's epoch is what it has."""
    return forall(s.quorum_leaders.has(r).implies(s.quorum_log[r] == log_written(s, r, s.term[r])) for r in Voter.all())


@always
def supported_are_there(s: Quorum) -> Bool:
    """Whoever is supported in an epoch has come so far."""
    return forall(
        ((s.support[r] == v) & ~s.strangers.has(v)).implies(s.term[r] <= s.term[v])
        for r in Voter.all()
        for v in Voter.all()
    )


def closed_to(s: Quorum, v: Voter, t: Term) -> Set[Voter]:
    """Who will not support v in this epoch: it supports another there, or is in a later one, or lost its disk."""
    return Voter.all().where(
        lambda p: (
            (s.term[p] > t) | ((s.term[p] == t) & (s.support[p] != NONE) & (s.support[p] != v)) | s.strangers.has(p)
        )
    )


@always
def records_close_their_epoch(s: Quorum) -> Bool:
    """In an epoch of which there is a record nobody is elected any more but who wrote it."""
    return forall(
        (s.quorum_log[r][o] == t).implies(has_written(s, v, t) | is_majority(closed_to(s, v, t)))
        for v in Voter.all()
        for r in Voter.all()
        for t in Term.all()
        for o in Position.below(end(s, r))
    )


@always
def written_close_their_epoch(s: Quorum) -> Bool:
    """So it is where a leader has such a record, or had it when it led."""
    return forall(
        has_led(s, q, u).implies(
            forall(
                (log_written(s, q, u)[o] == t).implies(has_written(s, v, t) | is_majority(closed_to(s, v, t)))
                for o in Position.below(written_end(s, q, u))
            )
        )
        for v in Voter.all()
        for q in Voter.all()
        for t in Term.all()
        for u in Term.all()
    )


def begins_as_written(s: Quorum, log: Seq[Position, Term], length: Position, v: Voter, t: Term) -> Bool:
    """A log of this length has, below a record of the epoch, what the voter that led it wrote there."""
    return forall(
        ((o <= p) & (log[p] == t)).implies((p < written_end(s, v, t)) & (log[o] == log_written(s, v, t)[o]))
        for p in Position.below(length)
        for o in Position.below(length)
    )


def matches_written(s: Quorum, log: Seq[Position, Term], length: Position, v: Voter, t: Term) -> Bool:
    """A log of this length agrees with what that voter wrote below a record of one epoch at one position."""
    return forall(
        ((o <= p) & (p < written_end(s, v, t)) & (log[p] == log_written(s, v, t)[p])).implies(
            log[o] == log_written(s, v, t)[o]
        )
        for p in Position.below(length)
        for o in Position.below(length)
    )


@always
def records_are_their_leaders(s: Quorum) -> Bool:
    """A log with a record of an epoch has all that the leader of that epoch had before that record."""
    return forall(
        has_led(s, v, t).implies(begins_as_written(s, s.quorum_log[r], end(s, r), v, t))
        for v in Voter.all()
        for r in Voter.all()
        for t in Term.all()
    )


@always
def written_are_their_leaders(s: Quorum) -> Bool:
    """So has what a later leader had when it led."""
    return forall(
        (has_led(s, v, t) & has_led(s, q, u)).implies(
            begins_as_written(s, log_written(s, q, u), written_end(s, q, u), v, t)
        )
        for v in Voter.all()
        for q in Voter.all()
        for t in Term.all()
        for u in Term.all()
    )


@always
def logs_match_what_was_written(s: Quorum) -> Bool:
    """A log and what a leader wrote agree below a record of one epoch at one position."""
    return forall(
        has_led(s, v, t).implies(matches_written(s, s.quorum_log[r], end(s, r), v, t))
        for v in Voter.all()
        for r in Voter.all()
        for t in Term.all()
    )


@always
def written_match(s: Quorum) -> Bool:
    """So does what two leaders wrote."""
    return forall(
        (has_led(s, v, t) & has_led(s, q, u)).implies(
            matches_written(s, log_written(s, q, u), written_end(s, q, u), v, t)
        )
        for v in Voter.all()
        for q in Voter.all()
        for t in Term.all()
        for u in Term.all()
    )


def arrivals(s: Quorum, t: Term) -> Set[Voter]:
    """Who has come to this epoch, or lost its disk."""
    return Voter.all().where(lambda p: (t <= s.term[p]) | s.strangers.has(p))


@always
def records_are_of_reached_epochs(s: Quorum) -> Bool:
    """A majority has come to the epoch of the last record of each log."""
    return forall((end(s, r) > 0).implies(is_majority(arrivals(s, last_term(s, r)))) for r in Voter.all())


@always
def supported_are_not_behind(s: Quorum) -> Bool:
    """Whoever is supported has a log that is not behind, until it or another has written in that epoch."""
    return forall(
        ((s.term[r] == s.term[v]) & (s.support[r] == v) & ~s.strangers.has(v)).implies(
            covers(s, v, r) | has_written(s, v, s.term[v]) | is_majority(closed_to(s, v, s.term[v]))
        )
        for r in Voter.all()
        for v in Voter.all()
    )


# What is committed


def last_committed(s: Quorum) -> Term:
    """The epoch of the last record that is committed, if there is any."""
    return s.quorum_committed[s.quorum_committed.length() - 1]


@always
def leaders_are_complete(s: Quorum) -> Bool:
    """Whoever led the epoch of the last committed record, or a later one, had all that is committed."""
    return forall(
        (has_led(s, v, t) & (s.quorum_committed.length() > 0) & (last_committed(s) <= t)).implies(
            s.quorum_committed.is_prefix_of(log_written(s, v, t))
        )
        for v in Voter.all()
        for t in Term.all()
    )


def keeping(s: Quorum) -> Set[Voter]:
    """Who has all that is committed, and has come to its last epoch; and who lost its disk, and so elects nobody."""
    return Voter.all().where(
        lambda p: (
            ((last_committed(s) <= s.term[p]) & s.quorum_committed.is_prefix_of(s.quorum_log[p])) | s.strangers.has(p)
        )
    )


@always
def majority_keeps_committed(s: Quorum) -> Bool:
    """A majority has all that is committed, and has come to its last epoch."""
    return (s.quorum_committed.length() > 0).implies(is_majority(keeping(s)))


@always
def known_is_there(s: Quorum) -> Bool:
    """What a leader takes for committed is in its log."""
    return forall(s.quorum_end[r] <= end(s, r) for r in Voter.all())


@always
def later_logs_are_complete(s: Quorum) -> Bool:
    """A log with a record of a later epoch than what is committed has all of that, and one of that epoch and so long.

    It is said of every record, for a follower may copy a part of a log.
    """
    n = s.quorum_committed.length()
    return forall(
        (
            (n > 0)
            & ((last_committed(s) < s.quorum_log[v][p]) | ((last_committed(s) == s.quorum_log[v][p]) & (n <= p + 1)))
        ).implies(s.quorum_committed.is_prefix_of(s.quorum_log[v]))
        for v in Voter.all()
        for p in Position.below(end(s, v))
    )


@always
def not_behind_are_complete(s: Quorum) -> Bool:
    """A log that is not behind one with all that is committed has all of it, too."""
    return forall(
        (
            (s.quorum_committed.length() > 0) & s.quorum_committed.is_prefix_of(s.quorum_log[p]) & covers(s, v, p)
        ).implies(s.quorum_committed.is_prefix_of(s.quorum_log[v]))
        for v in Voter.all()
        for p in Voter.all()
    )


@always
def supported_are_complete(s: Quorum) -> Bool:
    """Whoever is supported by one with all that is committed has all of it, unless nobody else elects it any more."""
    return forall(
        (
            (s.quorum_committed.length() > 0)
            & (s.term[r] == s.term[v])
            & (s.support[r] == v)
            & ~s.strangers.has(v)
            & (last_committed(s) <= s.term[r])
            & s.quorum_committed.is_prefix_of(s.quorum_log[r])
        ).implies(s.quorum_committed.is_prefix_of(s.quorum_log[v]) | is_majority(closed_to(s, v, s.term[v])))
        for r in Voter.all()
        for v in Voter.all()
    )


_LOGS = (
    "records-in-order",
    "written-in-order",
    "leaders-have-what-they-wrote",
    "leaders-note-what-they-write",
)

INVARIANT: tuple[Conjunct, ...] = (
    Conjunct(terms_fit),
    Conjunct(strangers_support_nobody),
    Conjunct(leaders_bind_a_majority, {"*": ("terms-fit",)}),
    Conjunct(one_leader_ever, {"voter_is_elected": ("leaders-bind-a-majority", "strangers-support-nobody"), "*": ()}),
    Conjunct(records_in_order, {"*": ("written-in-order",)}),
    Conjunct(written_in_order, {"*": ("records-in-order", "leaders-have-what-they-wrote")}),
    Conjunct(leaders_have_what_they_wrote, {"*": ("one-leader-ever",)}),
    Conjunct(leaders_note_what_they_write, {"*": ("leaders-have-what-they-wrote",)}),
    Conjunct(supported_are_there),
    Conjunct(
        records_close_their_epoch,
        {
            "follower_copies": ("written-close-their-epoch", *_LOGS),
            "leader_writes": ("leaders-bind-a-majority", "one-leader-ever"),
            "*": ("leaders-have-what-they-wrote",),
        },
    ),
    Conjunct(
        written_close_their_epoch,
        {
            "voter_is_elected": ("records-close-their-epoch", "leaders-have-what-they-wrote"),
            "leader_writes": ("leaders-bind-a-majority", "one-leader-ever", "leaders-note-what-they-write"),
            "*": ("leaders-have-what-they-wrote", "leaders-note-what-they-write"),
        },
    ),
    Conjunct(
        records_are_their_leaders,
        {
            "voter_is_elected": (
                "records-close-their-epoch",
                "leaders-have-what-they-wrote",
                "strangers-support-nobody",
            ),
            "follower_copies": ("written-are-their-leaders", *_LOGS),
            "*": (*_LOGS, "one-leader-ever"),
        },
    ),
    Conjunct(
        written_are_their_leaders,
        {
            "voter_is_elected": (
                "written-close-their-epoch",
                "records-are-their-leaders",
                "leaders-have-what-they-wrote",
                "strangers-support-nobody",
            ),
            "leader_writes": (*_LOGS, "one-leader-ever", "records-are-their-leaders"),
            "*": _LOGS,
        },
    ),
    Conjunct(
        quorum_logs_match,
        {
            "follower_copies": ("logs-match-what-was-written", *_LOGS),
            "*": (*_LOGS, "one-leader-ever", "records-are-their-leaders"),
        },
    ),
    Conjunct(
        logs_match_what_was_written,
        {
            "voter_is_elected": ("quorum-logs-match", "leaders-have-what-they-wrote"),
            "follower_copies": ("written-match", *_LOGS),
            "*": (*_LOGS, "one-leader-ever", "records-are-their-leaders", "written-are-their-leaders"),
        },
    ),
    Conjunct(
        written_match,
        {
            "voter_is_elected": ("logs-match-what-was-written", "leaders-have-what-they-wrote"),
            "*": (*_LOGS, "one-leader-ever", "written-are-their-leaders"),
        },
    ),
    Conjunct(
        records_are_of_reached_epochs,
        {
            "leader_writes": ("leaders-bind-a-majority",),
            "follower_copies": ("leaders-bind-a-majority", "written-in-order"),
            "*": ("records-in-order",),
        },
    ),
    Conjunct(known_is_there),
    Conjunct(
        supported_are_not_behind,
        {
            "follower_copies": ("leaders-bind-a-majority", "supported-are-there"),
            "follower_cuts": ("leaders-bind-a-majority", "supported-are-there"),
            "leader_writes": ("leaders-bind-a-majority", "supported-are-there"),
            "*": ("supported-are-there", "leaders-have-what-they-wrote"),
        },
    ),
    Conjunct(
        leaders_are_complete,
        {
            "voter_is_elected": (
                "strangers-support-nobody",
                "supported-are-there",
                "majority-keeps-committed",
                "supported-are-complete",
                "not-behind-are-complete",
            ),
            "leader_commits": ("one-leader-ever", "leaders-bind-a-majority", *_LOGS),
            "*": _LOGS,
        },
    ),
    Conjunct(
        majority_keeps_committed,
        {
            "leader_commits": ("records-in-order",),
            "*": ("leaders-are-complete", "records-in-order"),
        },
    ),
    Conjunct(
        leader_knows_what_is_committed,
        {
            "leader_commits": (
                "leaders-are-complete",
                "majority-keeps-committed",
                "leaders-note-what-they-write",
            ),
            "*": ("known-is-there",),
        },
    ),
    Conjunct(
        later_logs_are_complete,
        {
            "follower_copies": ("leaders-are-complete", "written-in-order", "leaders-have-what-they-wrote"),
            "leader_writes": ("leaders-are-complete", "leaders-note-what-they-write", "records-in-order"),
            "leader_commits": (
                "records-are-their-leaders",
                "records-are-of-reached-epochs",
                "records-in-order",
                "leaders-note-what-they-write",
            ),
            "*": ("records-in-order",),
        },
    ),
    Conjunct(not_behind_are_complete, {"*": ("records-in-order'", "later-logs-are-complete'")}),
    Conjunct(
        supported_are_complete,
        {
            "*": (
                "supported-are-not-behind'",
                "not-behind-are-complete'",
                "leaders-are-complete'",
                "leaders-have-what-they-wrote'",
            )
        },
    ),
)
"""In this order; a conjunct after a step may be used by those that come after it."""

FOLLOWS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    one_leader_a_term.name: {"*": ("one-leader-ever", "leaders-note-what-they-write", "terms-fit")},
    leaders_have_committed.name: {"*": ("leaders-are-complete", "leaders-note-what-they-write", "terms-fit")},
    quorum_only_grows.name: {
        "*": (
            "leaders-are-complete",
            "majority-keeps-committed",
            "leaders-note-what-they-write",
        )
    },
}
"""What follows from all conjuncts together, and from which."""

PROMISES: tuple[str, ...] = tuple(
    p.name
    for p in (
        one_leader_a_term,
        one_vote_a_term,
        leaders_have_committed,
        quorum_only_grows,
        leader_knows_what_is_committed,
        quorum_logs_match,
    )
)


def _names(*bounds: Count) -> tuple[str, ...]:
    return tuple(b.node.attr.name for b in bounds)


OPEN: tuple[str, ...] = _names(TERMS, METADATA_LOG)
"""Bounds for every value of which the proof is meant to hold."""

FIXED_CONSTANTS: Mapping[str, int] = {**dict.fromkeys(_names(VOTERS), 3), **dict.fromkeys(_names(LOST_DISKS), 0)}
"""Others that do not have the design's default."""


CORES = Path(__file__).with_name("proof_cores.json")
"""What refuted each question before, with any number of voters."""


def invariant(design: Design) -> tuple[Conjunct, ...]:
    """The conjuncts for a design; none where followers copy otherwise than here."""
    return INVARIANT if issubclass(design.state, Quorum) else ()
