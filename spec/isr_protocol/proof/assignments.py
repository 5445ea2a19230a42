"""The inductive invariant, third part: who has a replica, where reassignments and min.insync.replicas change that.

For states with more variables (designs.wider_state). See isr_protocol.proof.invariant for the whole argument.
"""

from __future__ import annotations

from isr_lang import NONE, Bool, Set, always, define, exists, forall
from isr_protocol.designs.wider_state import Moving, Operating, Reassigned, knows_newest_version
from isr_protocol.promises.safety import leads_now
from isr_protocol.proof.sets import may_be_accepted
from isr_protocol.state import MIN_INSYNC, Replica, leads


@always
def asked_for_are_replicas(s: Reassigned) -> Bool:
    """Whom a request would bring in has a replica if the controller may yet accept it; so has who led last."""
    return forall(
        (
            (s.last_known_leader == r) | exists(may_be_accepted(s, q) & s.alter_isr[q].has(r) for q in Replica.all())
        ).implies(s.replicas.has(r))
        for r in Replica.all()
    )


@always
def newest_version_has_newest_replicas(s: Reassigned) -> Bool:
    """A leader that knows the newest version of the partition, or will by an answer, knows who has a replica."""
    return forall(
        (leads_now(s, q) & knows_newest_version(s, q)).implies(s.own_replicas[q] == s.replicas) for q in Replica.all()
    )


@always
def heard_are_replicas(s: Reassigned) -> Bool:
    """Whom the elected leader takes for a replica is one, and it has heard of no other."""
    return forall(
        leads_now(s, q).implies(
            (s.own_replicas[q] <= s.replicas)
            & forall((s.follower_end[q][f] != NONE).implies(s.own_replicas[q].has(f)) for f in Replica.all())
        )
        for q in Replica.all()
    )


@always
def nobody_in_both(s: Reassigned) -> Bool:
    """No replica is in ISR and ELR at once."""
    return (s.controller_isr & s.controller_elr).is_empty()


@always
def moved_are_replicas(s: Moving) -> Bool:
    """Whom a reassignment adds or removes has a replica until it is complete."""
    return (s.adding | s.removing) <= s.replicas


@define
def enough_of_replicas(s: Reassigned, isr: Set[Replica]) -> Bool:
    """The set has min.insync.replicas members, or as many as there are replicas."""
    return (isr.size() >= MIN_INSYNC) | (isr.size() >= s.replicas.size())


@define
def enough_of_newest_replicas(s: Operating, isr: Set[Replica]) -> Bool:
    """The same by the controller's min.insync.replicas, where it changes."""
    return (isr.size() >= s.minimum) | (isr.size() >= s.replicas.size())


@always
def heard_have_positions(s: Operating) -> Bool:
    """Of whom a leader has heard in this epoch it has a position."""
    return forall(
        (leads(s, q) & s.heard_of[q].has(f)).implies(s.follower_end[q][f] != NONE)
        for q in Replica.all()
        for f in Replica.all()
    )
