"""Metadata that come late: a broker learns of a leader that was replaced. In no design; `late` and `late_to_lead` add
it to any in which people do nothing. The designs of `releases` have `old_metadata`, which is all of it and more.

The model's brokers learn the newest metadata only. Kafka's read the metadata log in order, each at its own pace
(BrokerMetadataPublisher.onMetadataUpdate, 4.3.1; before KRaft LeaderAndIsr requests that arrived late), and may follow
a leader while another is elected already, or learn that they lead when they do no longer.
"""

from __future__ import annotations

from isr_lang import Bool, Design, Map, Maybe, Set, Step, action, define, initial, var, when
from isr_lang.blank import blank
from isr_protocol.metadata import News, answers_who_waited, enters_epoch, fetch_in_new_epoch, follows
from isr_protocol.replication import advanced_watermark, commits
from isr_protocol.state import Fetch, LeaderEpoch, PartitionEpoch, Replica, State, leads, log_end


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


# A broker learns that it led.


class Elected(State):
    """The state with what the controller wrote when it elected each replica last."""

    elected_epoch: Map[Replica, LeaderEpoch] = var("the leader epoch that began then; 0 if it was never elected")
    elected_isr: Map[Replica, Set[Replica]] = var("the ISR of that version")
    elected_version: Map[Replica, PartitionEpoch] = var("the partition epoch of that version")


@initial
def nobody_elected(new: Elected) -> Step:
    """The first leader knows."""
    return (
        new.elected_epoch == blank(new.elected_epoch),
        new.elected_isr == blank(new.elected_isr),
        new.elected_version == blank(new.elected_version),
    )


@action
def election_is_noted(old: Elected, new: Elected) -> Step:
    """Taken with every step: what the controller wrote in the step before, if it elected a leader."""

    def now(r: Replica) -> Bool:
        return (old.controller_leader == r) & (old.elected_epoch[r] < old.controller_epoch)

    return (
        new.elected_epoch == Map.build(Replica, lambda r: when(now(r), old.controller_epoch, old.elected_epoch[r])),
        new.elected_isr == Map.build(Replica, lambda r: when(now(r), old.controller_isr, old.elected_isr[r])),
        new.elected_version
        == Map.build(Replica, lambda r: when(now(r), old.controller_partition_epoch, old.elected_version[r])),
    )


@action
def replaced_leader_begins_to_lead(old: Elected, new: Elected, r: Replica) -> Step:
    """A replica learns that it leads, in an epoch that is over."""
    isr, epoch = old.elected_isr[r], old.elected_epoch[r]
    news = News(Maybe.of(r), epoch)
    up_to = when(isr == Set.of(r), log_end(old, r), old.high_watermark[r])
    watermark = advanced_watermark(old, r, up_to, isr, news=True)
    return (
        old.alive.has(r),
        old.leader_epoch[r] < epoch,
        epoch < old.controller_epoch,
        *enters_epoch(old, new, r, news),
        new.isr[r] == isr,
        new.partition_epoch[r] == old.elected_version[r],
        *fetch_in_new_epoch(old, new, r, Bool.false, old.log[r], Fetch.NONE, news),
        *commits(old, new, r, watermark),
        *answers_who_waited(old, new, r, watermark, isr),
    )


def late_to_lead(design: Design) -> Design:
    """The design where brokers may also learn that they led meanwhile.

    Of brokers that do not stop: one that starts has read all metadata before it serves (MetadataLoader, 4.3.1).
    """
    return (
        design.in_state(Elected, nobody_elected)
        .adding(replaced_leader_begins_to_lead)
        .extending(**{a.name: election_is_noted for a in (*design.actions, replaced_leader_begins_to_lead)})
    )
