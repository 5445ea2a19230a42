"""Which unclean stops lose nothing: KIP-966's envelope as a condition on each stop, where it is usually a number.

A broker that stops without the mark of a clean shutdown leaves ISR and ELR when it is back, whatever it has kept, until
it has caught up (`struck` in isr_faults). As long as somebody of either is up, nobody from outside is elected. So each
unclean stop, be records lost or not, has to meet two conditions:

- fewer than min.insync.replicas brokers are down at once, itself among them. Else an ISR of that size may consist of
  brokers that are down; beside such an ISR there is no ELR, and who has everything is in neither;
- another member of ISR or ELR is up. Who came back and has not caught up yet is no member.

The first min.insync.replicas - 1 unclean stops meet both, however they come (`members_left`); so do any number of them,
if each broker is back in the ISR before the next one stops.
"""

from __future__ import annotations

import attrs

from isr_invariant_logs import acknowledges, firm, follows
from isr_invariant_sets import candidates, may_be_accepted
from isr_lang import (
    NONE,
    Bool,
    Conjunct,
    Design,
    Property,
    Set,
    Step,
    action,
    always,
    count,
    define,
    exists,
    forall,
)
from isr_lang.override import Override, definition_of
from isr_membership import current
from isr_model import KIP_966
from isr_properties import leads_now
from isr_state import MIN_INSYNC, Alter, Replica, State, leads


@define
def down(s: State) -> Set[Replica]:
    """The brokers that stopped and left no mark of a clean shutdown."""
    return Replica.all() - s.alive - s.clean_shutdown


@define
def few_down(s: State, r: Replica) -> Bool:
    """With this one, fewer than min.insync.replicas brokers are down."""
    return down(s).including(r).size() < MIN_INSYNC


@define
def member_stays(s: State, r: Replica) -> Bool:
    """Another member of ISR or ELR is not down."""
    return exists(((s.controller_isr | s.controller_elr) - down(s)).has(q) & (q != r) for q in Replica.all())


@action
def keeps_to_envelope(old: State, new: State, r: Replica) -> Step:
    """Taken with an unclean stop: few are down, and a member is left."""
    return (few_down(old, r), member_stays(old, r))


@always
def members_left(s: State) -> Bool:
    """min.insync.replicas replicas are in ISR or ELR and up, or have stopped some time.

    So the first min.insync.replicas - 1 unclean stops, however they come, are within the envelope.
    """
    members = (s.controller_isr | s.controller_elr) - down(s)
    stopped = count(down(s).has(r) | (s.broker_epoch[r] > 0) for r in Replica.all())
    return members.size() + stopped >= MIN_INSYNC


KIP_966_WITHIN_ENVELOPE = attrs.evolve(
    KIP_966.extending(broker_crashes=keeps_to_envelope, broker_loses_power=keeps_to_envelope).promising(members_left),
    name="kip-966-within-envelope",
    summary="KIP-966 where an unclean stop leaves a member of ISR or ELR, and few are down at once",
    because="these are the unclean stops by which it loses nothing.",
    based_on=KIP_966,
).with_defaults(replicas=2, crashes=1, lossy_crashes=1, epochs=2, isr_changes=5)

# Why it holds: the invariant of isr_invariant, with another notion of who may be elected, and of what a leader knows.


@define
def candidates_up(s: State) -> Set[Replica]:
    """Who may be elected: members that are up, and who would join one, if it is the incarnation that is meant."""
    members = s.controller_isr | s.controller_elr
    return Replica.all().where(
        lambda r: (
            s.alive.has(r)
            & (
                members.has(r)
                | exists(
                    may_be_accepted(s, q) & s.alter_isr[q].has(r) & (s.alter_broker_epoch[q] == s.broker_epoch[r])
                    for q in Replica.all()
                )
            )
        )
    )


@define
def knows_incarnation(s: State, q: Replica, f: Replica) -> Bool:
    """What the leader knows of the follower's log it has from the process that runs now."""
    return s.alive.has(f) & ((s.follower_end[q][f] == NONE) | (s.follower_broker_epoch[q][f] == s.broker_epoch[f]))


@always
def acknowledged_is_there_still(s: State) -> Bool:
    """What a follower has acknowledged since it started is firmly in its log; to whom, as in acknowledged-is-there."""
    return forall(
        ((q != f) & leads(s, q) & (leads_now(s, q) | follows(s, f, q)) & knows_incarnation(s, q, f)).implies(
            s.log[q].take(acknowledges(s, q, f)).is_prefix_of(firm(s, f))
        )
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def somebody_is_up(s: State) -> Bool:
    """The elected leader is in the ISR; a member of ISR or ELR is up, and few brokers are down."""
    return (
        (s.controller_leader != NONE).implies(
            exists((s.controller_leader == r) & s.controller_isr.has(r) for r in Replica.all())
        )
        & exists((s.controller_isr | s.controller_elr).has(r) & s.alive.has(r) for r in Replica.all())
        & (down(s).size() < MIN_INSYNC)
    )


@always
def incarnations_are_not_ahead(s: State) -> Bool:
    """No leader has heard of, and no request means, a later incarnation than there is; nor an earlier one than heard
    of, in the leader's own epoch."""
    return forall(
        (s.follower_broker_epoch[q][f] <= s.broker_epoch[f])
        & (
            (s.alter[q] == Alter.REQUESTED)
            & leads(s, q)
            & (s.alter_leader_epoch[q] == s.leader_epoch[q])
            & current(s, q)
            & s.alter_isr[q].has(f)
            & ~s.controller_isr.has(f)
        ).implies((s.follower_end[q][f] != NONE) & (s.alter_broker_epoch[q] <= s.follower_broker_epoch[q][f]))
        for q in Replica.all()
        for f in Replica.all()
    )


@always
def members_are_known_as_they_are(s: State) -> Bool:
    """The elected leader knows of no earlier incarnation of a member of ISR or ELR that is up."""
    return forall(
        (leads_now(s, q) & ((s.controller_isr | s.controller_elr) & s.alive).has(f)).implies(knows_incarnation(s, q, f))
        for q in Replica.all()
        for f in Replica.all()
    )


def keeps_envelope(design: Design) -> bool:
    """Whether the design's unclean stops are within the envelope."""
    return any(d.name == member_stays.__name__ for d in design.definitions())


_INSTEAD = {
    "acknowledged-is-there": acknowledged_is_there_still,
    "somebody-may-be-elected": somebody_is_up,
}
_OF_SETS = ("leaders-count-candidates",)
_WHO = Override({definition_of(candidates): definition_of(candidates_up)})


def within_envelope(conjuncts: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """The same invariant where unclean stops may lose records; conjuncts keep their names, for others name them."""

    def restated(c: Conjunct) -> Conjunct:
        other: Property | None = _INSTEAD.get(c.name)
        if other is not None:
            return attrs.evolve(c, promise=attrs.evolve(other, name=c.name))
        return c if c.name in _OF_SETS else attrs.evolve(c, promise=_WHO.property(c.promise))

    return (*map(Conjunct, (incarnations_are_not_ahead, members_are_known_as_they_are)), *map(restated, conjuncts))
