"""A design of somebody's own whose followers never compare epochs, with a promise of its own that this breaks."""

from isr_lang import Bool, always, define, forall
from isr_model import KIP_966
from isr_protocol.state import Offset, Replica, State


@define
def continues(s: State, leader: Replica, follower: Replica) -> Bool:
    """Whatever log a follower has, it goes on from there."""
    return Bool.true


@always
def logs_agree(s: State) -> Bool:
    """Two logs agree on every offset below both watermarks."""
    return forall(
        ((o < s.high_watermark[a]) & (o < s.high_watermark[b])).implies(s.log[a][o] == s.log[b][o])
        for a in Replica.all()
        for b in Replica.all()
        for o in Offset.all()
    )


NEVER_COMPARED = (
    KIP_966.replacing(
        "never-compared", "KIP-966 in which epochs are never compared", because="fewer rules.", continues=continues
    )
    .promising(logs_agree)
    .with_defaults(replicas=2)
)
