"""Metadata that come late: a broker learns of a leader that was replaced. In no design; `late` adds it to any.

The model's brokers learn the newest metadata only. Kafka's read the metadata log in order, each at its own pace
(BrokerMetadataPublisher.onMetadataUpdate, 4.3.1; before KRaft LeaderAndIsr requests that arrived late), and may follow
a leader while another is elected already.
"""

from __future__ import annotations

from isr_lang import Bool, Design, Maybe, Step, action, define, when
from isr_metadata import News, follows
from isr_state import Fetch, Replica, State, leads, log_end


@define
def learnable(s: State, r: Replica, leader: Replica) -> Bool:
    """The leader leads in an epoch that the replica has not reached yet, and that is over."""
    return (
        s.alive.has(r)
        & (leader != r)
        & leads(s, leader)
        & (s.leader_epoch[r] < s.leader_epoch[leader])
        & (s.leader_epoch[leader] < s.controller_epoch)
    )


@action
def follows_replaced_leader(old: State, new: State, r: Replica, leader: Replica) -> Step:
    """A replica learns of a leader that was replaced meanwhile, and fetches from it."""
    news = News(Maybe.of(leader), old.leader_epoch[leader])
    return (learnable(old, r, leader), *follows(old, new, r, old.log[r], Fetch.REQUESTED, news))


@action
def truncates_to_replaced_leader(old: State, new: State, r: Replica, leader: Replica) -> Step:
    """A replica learns of a leader that was replaced meanwhile, and asks it where to truncate, as before KIP-595."""
    news, asks = News(Maybe.of(leader), old.leader_epoch[leader]), log_end(old, r) > 0
    return (
        learnable(old, r, leader),
        *follows(old, new, r, old.log[r], when(asks, Fetch.ASKED, Fetch.REQUESTED), news),
        new.truncating == when(asks, old.truncating.including(r), old.truncating.excluding(r)),
    )


def late(design: Design) -> Design:
    """The design where brokers may also learn of leaders that were replaced meanwhile."""
    asks = any(a.name == "follower_asks_for_epoch_end" for a in design.actions)
    return design.adding(truncates_to_replaced_leader if asks else follows_replaced_leader)
