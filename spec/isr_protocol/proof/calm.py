"""What the steps of a follower's return take besides the invariant (designs.calm has them and the whole argument)."""

from __future__ import annotations

from isr_lang import NONE, Bool, Conjunct, Maybe, always, define, forall
from isr_protocol.promises.safety import leads_now
from isr_protocol.proof.logs import cut, extended, follows
from isr_protocol.state import Alter, Fetch, Replica, State, leads, log_end


@define
def in_touch(s: State, q: Replica, f: Replica) -> Bool:
    """The leader has heard of the other replica in this epoch, and that one is in no later epoch."""
    return (q != f) & leads(s, q) & (leads_now(s, q) | follows(s, f, q)) & (s.follower_end[q][f] != NONE)


@always
def answered_are_heard(s: State) -> Bool:
    """Who has an answer in the leader's epoch was heard of there, where its log ends still."""
    return forall(
        (leads(s, q) & (q != f) & follows(s, f, q) & (s.fetch[f] == Fetch.ANSWERED)).implies(
            (s.follower_end[q][f] == Maybe.of(log_end(s, f))) & (s.follower_broker_epoch[q][f] == s.broker_epoch[f])
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def heard_hold_prefixes(s: State) -> Bool:
    """Whoever the leader has heard of holds a prefix of its log, also with the record that is on its way."""
    return forall(
        in_touch(s, q, f).implies(extended(s, f).is_prefix_of(s.log[q])) for q in Replica.all() for f in Replica.all()
    )


@always
def heard_do_not_diverge(s: State) -> Bool:
    """Nor is it told to cut its log."""
    return forall(in_touch(s, q, f).implies(s.fetch[f] != Fetch.DIVERGED) for q in Replica.all() for f in Replica.all())


@always
def diverging_answers_cut(s: State) -> Bool:
    """An answer that tells a follower to cut makes its log shorter."""
    return forall(
        (leads(s, q) & (q != f) & follows(s, f, q) & (s.fetch[f] == Fetch.DIVERGED)).implies(cut(s, f) < log_end(s, f))
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def proposals_are_undecided(s: State) -> Bool:
    """What a leader proposed and has not seen decided is on its way, answered, or overtaken by newer metadata."""
    return forall(
        (leads(s, q) & ~s.pending_isr[q].is_empty()).implies(
            (s.alter[q] == Alter.REQUESTED).implies(
                (s.alter_leader_epoch[q] == s.leader_epoch[q]) & (s.alter_partition_epoch[q] == s.partition_epoch[q])
            )
            & (leads_now(s, q) & (s.alter[q] == Alter.NONE)).implies(
                s.partition_epoch[q] < s.controller_partition_epoch
            )
        )
        & (leads(s, q) & ((s.alter[q] == Alter.ACCEPTED) | (s.alter[q] == Alter.REFUSED))).implies(
            ~s.pending_isr[q].is_empty()
        )
        for q in Replica.all()
    )


BESIDES: tuple[Conjunct, ...] = (
    Conjunct(proposals_are_undecided),
    Conjunct(answered_are_heard, {"*": ("requests-tell-the-truth",)}),
    Conjunct(
        heard_hold_prefixes,
        {
            "leader_answers_fetch": (
                "continuing-requests-match",
                "requests-tell-the-truth",
                "one-epoch-one-log",
                "logs-match",
                "records-in-order",
            ),
            "leader_appends": ("records-are-named",),
            "*": ("requests-tell-the-truth",),
        },
    ),
    Conjunct(
        heard_do_not_diverge,
        {
            "leader_answers_diverging": (
                "heard-hold-prefixes",
                "requests-tell-the-truth",
                "records-in-order",
                "records-are-named",
            ),
            "*": ("requests-tell-the-truth",),
        },
    ),
    Conjunct(diverging_answers_cut, {"*": ("requests-tell-the-truth", "records-in-order", "records-are-named")}),
)
"""Conjuncts that the steps of the return take, with the lemmas of their proofs."""

FOLLOWS_IN_CALM: dict[str, dict[str, tuple[str, ...]]] = {
    "fetching-goes-on": {
        "*": (
            "heard-hold-prefixes",
            "answered-are-heard",
            "diverging-answers-cut",
            "heard-do-not-diverge",
            "requests-tell-the-truth",
            "continuing-requests-match",
        )
    },
    "seen-stays": {"*": ("heard-hold-prefixes", "acknowledged-is-there", "requests-tell-the-truth")},
    "follower-may-be-proposed": {"*": ("watermarks-are-committed",)},
}
"""What follows from all conjuncts together, and from which (isr_protocol.proof.invariant.FOLLOWS)."""

STEPS_OF_RETURN = (
    "followers-stay-healthy",
    "fetching-goes-on",
    "fetch-can-go-on",
    "seen-stays",
    "asking-goes-on",
    "decision-can-be-made",
    "follower-may-be-proposed",
    "proposal-is-eligible",
    "proposal-stays-eligible",
)
"""The promises of isr_protocol.designs.calm that are proved."""
