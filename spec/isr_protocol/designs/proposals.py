"""Proposed instead, or written down so: both of Jepsen's recommendations, and an eviction without the controller."""

from __future__ import annotations

import attrs

from isr_lang import Bool, Set, Step, action, define, forall, when
from isr_protocol.designs.history import JEPSEN_BOUNDED_ISR, KRAFT_3_5
from isr_protocol.membership import all_lag, free_to_ask
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
)
from isr_protocol.replication import acknowledged, advanced_watermark, commits, replicated
from isr_protocol.state import REPLICAS, Replica, State, log_end

JEPSEN_BOUNDED_HALT = attrs.evolve(
    JEPSEN_BOUNDED_ISR,
    name="jepsen-bounded-halt",
    summary="Both of Jepsen's recommendations: the ISR keeps a majority, and without it the partition halts",
    because="the same protocol as jepsen-bounded-isr, with unclean election off.",
    based_on=JEPSEN_BOUNDED_ISR,
).with_defaults(unclean=False)


@define
def majority_may_commit(s: State, isr: Set[Replica]) -> Bool:
    """The watermark is held while the ISR is no majority."""
    return isr.size() + isr.size() > REPLICAS


@define
def eligible_majority_or_grown(s: State, leader: Replica) -> Bool:
    """Eligible as today, and a majority, unless the proposal only adds to a set that is none."""
    proposed = s.alter_isr[leader]
    return (
        (proposed & (s.fenced | s.shutting_down)).is_empty()
        & forall(s.alter_broker_epoch[leader] == s.broker_epoch[f] for f in proposed - s.controller_isr)
        & ((s.controller_isr <= proposed) | (proposed.size() + proposed.size() > REPLICAS))
    )


@define
def isr_keeps_survivors(s: State, r: Replica) -> Set[Replica]:
    """The ISR when a broker is gone: the others, be they a majority or not; its last member stays in it."""
    isr = s.controller_isr
    return when(isr == Set.of(r), isr, isr.excluding(r))


JEPSEN_BOUNDED_STRUCK = JEPSEN_BOUNDED_HALT.replacing(
    "jepsen-bounded-struck",
    "jepsen-bounded-halt where a dead member is struck from the ISR, and nothing commits while the ISR is no majority",
    because="a dead member that stays in the ISR is trusted with whatever log it brings back.",
    eligible_majority=eligible_majority_or_grown,
    isr_keeps_majority=isr_keeps_survivors,
    may_always_commit=majority_may_commit,
)


@action
def leader_evicts_alone(old: State, new: State, leader: Replica, lagging: Set[Replica]) -> Step:
    """A leader takes the members that lag out of its own in-sync set, and commits without them; it asks nobody."""
    isr = old.isr[leader] - lagging
    up_to = replicated(old, leader, log_end(old, leader), old.follower_end[leader], isr)
    watermark = advanced_watermark(old, leader, up_to, isr)
    return (
        free_to_ask(old, leader),
        ~lagging.is_empty(),
        lagging <= old.isr[leader].excluding(leader),
        all_lag(old, leader, lagging),
        new.isr[leader] == isr,
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, isr),
    )


LEADER_EVICTS_ALONE = (
    KRAFT_3_5.replacing(
        "leader-evicts-alone",
        "kraft-3.5 where a leader evicts a slow follower by itself, as short descriptions of the ISR have it",
        because="the controller still takes the follower for a member, and may elect it.",
    )
    .without("leader_proposes_shrink")
    .adding(leader_evicts_alone)
    .with_defaults(replicas=2, crashes=0)
    .failing(
        "the controller elects a member that the leader has evicted",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        maximal_isr_covers,
        strong_isr,
    )
)

DESIGNS = (JEPSEN_BOUNDED_HALT, JEPSEN_BOUNDED_STRUCK, LEADER_EVICTS_ALONE)
