"""A design and a promise of one's own: a follower may join the ISR while it is a record short (docs/own-design.md)."""

from __future__ import annotations

from isr_lang import NONE, Bool, always, bound, define, forall, sometimes
from isr_model import KIP_966
from isr_protocol.state import ACKS, Acks, Record, Replica, State, holds

SLACK = bound("slack", "records below the watermark that a follower may lack when it joins", default=1, high=2)


@define
def caught_up_but_for_slack(s: State, leader: Replica, f: Replica) -> Bool:
    """The follower was seen at most SLACK records below the leader's watermark in this epoch."""
    seen = s.follower_end[leader][f]
    return (seen != NONE) & (s.high_watermark[leader] <= seen.or_else(0) + SLACK)


@always(when=ACKS == Acks.ALL)
def members_have_acked(s: State) -> Bool:
    """Every member of the ISR that is up has every acknowledged record: whoever is elected loses none."""
    return forall(
        ((s.controller_isr & s.alive).has(r) & s.acked.has(m)).implies(holds(s, r, m))
        for r in Replica.all()
        for m in Record.all()
    )


@sometimes
def two_members_and_acked(s: State) -> Bool:
    """Two replicas are in the ISR while a record is acknowledged: else the promise above speaks of nothing."""
    return (s.controller_isr.size() > 1) & ~s.acked.is_empty()


JOINS_ONE_BEHIND = (
    KIP_966.replacing(
        "joins-one-behind",
        "KIP-966 where a follower joins the ISR while it is one record short of the watermark",
        because="a follower joins sooner; nobody waits for the last record.",
        caught_up=caught_up_but_for_slack,
    )
    .promising(members_have_acked, two_members_and_acked)
    .with_defaults(replicas=2, min_insync=1, isr_changes=3)
)
