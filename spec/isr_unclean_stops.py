"""Which unclean stops lose nothing: KIP-966's envelope as a condition on each stop, where it is usually a number.

A broker that stops without the mark of a clean shutdown leaves ISR and ELR when it is back, whatever it has kept, until
it has caught up (`struck` in isr_faults). While somebody is in either, nobody from outside is elected. So what counts
is not how many have stopped in all, nor which of them lost records, but that each unclean stop leaves another member of
ISR or ELR that has not stopped so. As nothing commits below min.insync.replicas, at least that many replicas are in
ISR or ELR, or have stopped uncleanly (`members_left`): fewer unclean stops than that always leave one.
"""

from __future__ import annotations

import attrs

from isr_lang import Bool, Design, Step, action, always, count, define, exists
from isr_model import KIP_966
from isr_properties import acked_survives, committed_on_new_leader, leaders_complete, no_divergence, strong_isr
from isr_state import MIN_INSYNC, Replica, State


@define
def stopped_uncleanly(s: State, r: Replica) -> Bool:
    """The broker is down, and left no mark of a clean shutdown."""
    return ~s.alive.has(r) & ~s.clean_shutdown.has(r)


@define
def member_stays(s: State, r: Replica) -> Bool:
    """Another member of ISR or ELR has not stopped uncleanly."""
    return exists(
        (s.controller_isr | s.controller_elr).has(q) & (q != r) & ~stopped_uncleanly(s, q) for q in Replica.all()
    )


@action
def leaves_a_member(old: State, new: State, r: Replica) -> Step:
    """Taken with an unclean stop: it leaves another member of ISR or ELR."""
    return (member_stays(old, r),)


@always
def members_left(s: State) -> Bool:
    """There are min.insync.replicas replicas that are in ISR or ELR and have not stopped, or that stopped some time.

    So the first min.insync.replicas - 1 unclean stops, however they come, each leave a member.
    """
    members = s.controller_isr | s.controller_elr
    ready = count(members.has(r) & ~stopped_uncleanly(s, r) for r in Replica.all())
    stopped = count(stopped_uncleanly(s, r) | (s.broker_epoch[r] > 0) for r in Replica.all())
    return ready + stopped >= MIN_INSYNC


def _within(name: str, summary: str, because: str, *stops: str) -> Design:
    """KIP-966 where these stops leave a member; defaults with room for two that lose records and one that does not."""
    bounded = KIP_966.extending(**dict.fromkeys(stops, leaves_a_member)).promising(members_left)
    named = attrs.evolve(bounded, name=name, summary=summary, because=because, based_on=KIP_966)
    return named.with_defaults(replicas=2, crashes=1, lossy_crashes=1, epochs=3, isr_changes=6)


KIP_966_WITHIN_ENVELOPE = _within(
    "kip-966-within-envelope",
    "KIP-966 where every unclean stop leaves another member of ISR or ELR, be records lost or not",
    "that is the envelope within which it keeps what is acknowledged.",
    "broker_crashes",
    "broker_loses_power",
)

KIP_966_LOSSES_WITHIN_ENVELOPE = _within(
    "kip-966-losses-within-envelope",
    "KIP-966 where every stop that loses records leaves another member of ISR or ELR, and others may not",
    "a stop that loses nothing costs membership all the same.",
    "broker_loses_power",
).failing(
    "a member that lost nothing is struck as well, and who led last is elected without what it lost",
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    no_divergence,
    strong_isr,
)
