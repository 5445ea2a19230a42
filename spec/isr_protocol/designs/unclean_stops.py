"""Which unclean stops lose nothing: KIP-966's envelope as a condition on each stop, where it is usually a number.

A broker that stops without the mark of a clean shutdown leaves ISR and ELR when it is back, whatever it has kept, until
it has caught up (`struck` in faults). As long as somebody of either is up, nobody from outside is elected. So each
unclean stop, be records lost or not, has to meet two conditions:

- fewer than min.insync.replicas brokers are down at once, itself among them. Else an ISR of that size may consist of
  brokers that are down; beside such an ISR there is no ELR, and who has everything is in neither;
- another member of ISR or ELR is up. Who came back and has not caught up yet is no member.

The first min.insync.replicas - 1 unclean stops meet both, however they come (`members_left`); so do any number of them,
if each broker is back in the ISR before the next one stops.
"""

from __future__ import annotations

import attrs

from isr_lang import Bool, Set, Step, action, always, count, define, exists
from isr_model import KIP_966
from isr_protocol.state import MIN_INSYNC, Replica, State


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
).with_defaults(replicas=2, crashes=1, lossy_crashes=1, epochs=2, isr_changes=6)

DESIGNS = (KIP_966_WITHIN_ENVELOPE,)
