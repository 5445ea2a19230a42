"""The inductive invariant, last part: people work at a cluster, also within the envelope.

The state of what people do (isr_protocol.designs.releases) has a variable that the invariant does not know otherwise:
the fewest logs that an acknowledgement has taken.
"""

from __future__ import annotations

from isr_lang import Bool, Conjunct, Design, always, define, forall
from isr_protocol.designs.releases import Operations
from isr_protocol.designs.unclean_stops import down
from isr_protocol.proof import questions
from isr_protocol.state import Replica


@define
def fewer_than_least_are_down(s: Operations) -> Bool:
    """Fewer brokers are down than an acknowledgement has ever taken logs."""
    return down(s).size() < s.least


@always
def least_is_least(s: Operations) -> Bool:
    """Neither the controller nor any leader goes by a smaller minimum, nor by fewer replicas."""
    return (
        (s.least > 0)
        & (s.least <= s.minimum)
        & forall(s.least <= s.own_minimum[r] for r in Replica.all())
        & (s.least <= s.replicas.size())
    )


def invariant(design: Design) -> tuple[Conjunct, ...]:
    """The conjuncts for a design: one more where people work at a cluster."""
    if issubclass(design.state, Operations):
        return (*questions.invariant(design, fewer_than_least_are_down), Conjunct(least_is_least))
    return questions.invariant(design)
