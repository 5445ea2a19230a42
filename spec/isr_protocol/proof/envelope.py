"""The invariant where unclean stops may lose records, within an envelope (isr_protocol.designs.unclean_stops).

The same conjuncts, with another notion of who may be elected, of what a leader knows, and of who is left.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Conjunct, Design, Property, Set, always, define, exists, forall
from isr_lang.override import DefinitionFunction, Override, definition_of
from isr_protocol.membership import current
from isr_protocol.promises.safety import leads_now
from isr_protocol.proof.logs import acknowledges, firm, follows
from isr_protocol.proof.sets import candidates, may_be_accepted
from isr_protocol.state import MIN_INSYNC, RESTARTS, Alter, Replica, State, leads


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


@define
def few_are_down(s: State) -> Bool:
    """Fewer than min.insync.replicas brokers are down."""
    return (Replica.all() - s.alive - s.clean_shutdown).size() < MIN_INSYNC


@always
def somebody_is_up(s: State) -> Bool:
    """The elected leader is in the ISR; a member of ISR or ELR is up, and few brokers are down."""
    return (
        (s.controller_leader != NONE).implies(
            exists((s.controller_leader == r) & s.controller_isr.has(r) for r in Replica.all())
        )
        & exists((s.controller_isr | s.controller_elr).has(r) & s.alive.has(r) for r in Replica.all())
        & few_are_down(s)
        & ((RESTARTS > 0) | (s.alive == Replica.all()))
    )


@always
def incarnations_are_not_ahead(s: State) -> Bool:
    """No leader has heard of, and no request means, a later incarnation than there is; nor an earlier one than heard
    of, in the leader's own epoch. A leader that is down may have asked, too."""
    return forall(
        (s.follower_broker_epoch[q][f] <= s.broker_epoch[f])
        & ((s.alter[q] == Alter.REQUESTED) & current(s, q) & s.alter_isr[q].has(f) & ~s.controller_isr.has(f)).implies(
            s.alter_broker_epoch[q] <= s.broker_epoch[f]
        )
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
    return any(d.name == "member_stays" for d in design.definitions())


_INSTEAD = {
    "acknowledged-is-there": acknowledged_is_there_still,
    "somebody-may-be-elected": somebody_is_up,
}
_OF_SETS = ("leaders-count-candidates",)
_WHO = Override({definition_of(candidates): definition_of(candidates_up)})


def within_envelope(conjuncts: tuple[Conjunct, ...], few: DefinitionFunction = few_are_down) -> tuple[Conjunct, ...]:
    """The same invariant where unclean stops may lose records; conjuncts keep their names, for others name them.

    `few`: how few brokers are down.
    """
    how_few = Override({definition_of(few_are_down): definition_of(few)})

    def restate_conjunct(c: Conjunct) -> Conjunct:
        other: Property | None = _INSTEAD.get(c.name)
        if other is not None:
            return attrs.evolve(c, promise=attrs.evolve(how_few.property(other), name=c.name))
        return c if c.name in _OF_SETS else attrs.evolve(c, promise=_WHO.property(c.promise))

    return (
        *map(Conjunct, (incarnations_are_not_ahead, members_are_known_as_they_are)),
        *map(restate_conjunct, conjuncts),
    )
