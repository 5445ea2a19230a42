"""min.insync.replicas that changes while the cluster runs: found in today's Kafka, and what would mend it.

The controller knows the new value at once; every broker applies it to its logs when its metadata get there. So a
leader may reckon with one number and the controller with another: what the controller takes for too few members, so
that it keeps an ELR, the leader may still take for enough.
"""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Design, Map, Set, Step, action, define, initial, when
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.wider_state import Adjusted, Minimum
from isr_protocol.metadata import behind
from isr_protocol.promises.safety import (
    acked_survives,
    acks_meet_minimum,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
)
from isr_protocol.state import ISR_CHANGES, MIN_INSYNC, Replica, leads


@initial
def set_everywhere(new: Adjusted) -> Step:
    """Everybody has the value with which the topic was made."""
    return (
        new.minimum == Minimum.of(MIN_INSYNC),
        new.own_minimum == Map.build(Replica, lambda r: Minimum.of(MIN_INSYNC)),
    )


@define
def keeps_elr(s: Adjusted, value: Minimum) -> Bool:
    """A new min.insync.replicas leaves ELR and last leader as they are: in Kafka's code never."""
    return Bool.false


@define
def keeps_elr_below_minimum(s: Adjusted, value: Minimum) -> Bool:
    """They stay while the ISR is under the new value, for then nothing commits without the ELR's members."""
    return s.controller_isr.size() < value


def changes_minimum(old: Adjusted, new: Adjusted, value: Minimum) -> Step:
    """The controller has another min.insync.replicas, and perhaps no ELR and no last leader any more."""
    keeps = keeps_elr(old, value)
    return (
        value > 0,
        new.minimum == value,
        new.controller_elr == when(keeps, old.controller_elr, blank(old.controller_elr)),
        new.last_known_leader == when(keeps, old.last_known_leader, NONE),
    )


@action
def controller_sets_minimum(old: Adjusted, new: Adjusted, value: Minimum) -> Step:
    """Somebody sets min.insync.replicas, and the same batch empties the ELR, if only the same value is set again.

    Only where there was an ELR this is a new version of the partition. ConfigurationControlManager's
    createClearElrRecordsAsNeeded, ReplicationControlManager.removeTopicElrs, TopicDelta.maybeClearElr (4.3.1).
    """
    was_empty = old.controller_elr.is_empty() & (old.last_known_leader == NONE)
    empties = ~(was_empty | keeps_elr(old, value))
    version = old.controller_partition_epoch
    return (
        *changes_minimum(old, new, value),
        empties | (value != old.minimum),
        ~empties | (version < ISR_CHANGES),
        new.controller_partition_epoch == when(empties, version + 1, version),
    )


@action
def controller_sets_minimum_in_new_version(old: Adjusted, new: Adjusted, value: Minimum) -> Step:
    """The same, and always a new version of the partition, so that requests about the old one are refused."""
    return (
        *changes_minimum(old, new, value),
        value != old.minimum,
        old.controller_partition_epoch < ISR_CHANGES,
        new.controller_partition_epoch == old.controller_partition_epoch + 1,
    )


@action
def broker_learns_minimum(old: Adjusted, new: Adjusted, r: Replica) -> Step:
    """A broker that knows all else applies the newest value: metadata come in the order of their log."""
    version = old.partition_epoch[r] == old.controller_partition_epoch
    return (
        old.alive.has(r),
        old.own_minimum[r] != old.minimum,
        ~behind(old, r),
        leads(old, r).implies(version),
        new.own_minimum[r] == old.minimum,
    )


@action
def learns_minimum(old: Adjusted, new: Adjusted, r: Replica) -> Step:
    """Taken with whatever brings a broker newer metadata: it has the newest value after this step."""
    return (new.own_minimum[r] == old.minimum,)


@action
def leader_learns_minimum(old: Adjusted, new: Adjusted, leader: Replica) -> Step:
    """The same, of a leader."""
    return (new.own_minimum[leader] == old.minimum,)


@define
def enough_by_own(s: Adjusted, leader: Replica, members: Set[Replica]) -> Bool:
    """The set has as many members as the configuration of the leader's log asks for."""
    return members.size() >= s.own_minimum[leader]


@define
def may_advance_by_own(s: Adjusted, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by that configuration."""
    return enough_by_own(s, leader, isr)


@define
def enough_by_old(s: Adjusted, leader: Replica, members: Set[Replica]) -> Bool:
    """While a leader learns newer metadata, its configuration still is the one from before.

    BrokerMetadataPublisher.onMetadataUpdate calls ReplicaManager.applyDelta, and after it
    DynamicConfigPublisher.onMetadataUpdate (4.3.1).
    """
    return enough_by_own(s, leader, members)


@define
def may_advance_by_old(s: Adjusted, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by the configuration from before."""
    return enough_by_old(s, leader, isr)


@define
def enough_by_newest(s: Adjusted, leader: Replica, members: Set[Replica]) -> Bool:
    """While a leader learns newer metadata, it has their configuration already."""
    return members.size() >= s.minimum


@define
def may_advance_by_newest(s: Adjusted, leader: Replica, isr: Set[Replica]) -> Bool:
    """(2) The watermark is held by that configuration."""
    return enough_by_newest(s, leader, isr)


@define
def elr_beside_of_minimum(s: Adjusted, isr: Set[Replica]) -> Set[Replica]:
    """The ELR beside a new ISR, by the controller's value."""
    return when(isr.size() >= s.minimum, blank(s.controller_elr), (s.controller_elr | s.controller_isr) - isr)


def _adjusted_design() -> Design:
    wider = KIP_966.in_state(Adjusted, set_everywhere)
    # It speaks of one number, and the producer is promised the leader's.
    kept = tuple(p for p in wider.properties if p.name != acks_meet_minimum.name)
    return attrs.evolve(wider, properties=kept).extending(
        becomes_leader=learns_minimum,
        becomes_follower=learns_minimum,
        leader_learns_isr=leader_learns_minimum,
        broker_restarts=learns_minimum,
    )


_COMMITS_ALONE = "a leader commits under an old min.insync.replicas what a member of the ELR lacks"
_BREAKS = (acked_survives, committed_on_new_leader, leaders_complete, maximal_isr_covers, strong_isr)

KAFKA_RAISED_MIN_INSYNC = (
    _adjusted_design()
    .replacing(
        "kafka-raised-min-insync",
        "KIP-966 where min.insync.replicas changes, and a leader applies a new ISR before it, as Kafka's code does",
        because="a leader that goes by the old value commits alone, while the controller keeps an ELR by the new one.",
        enough=enough_by_own,
        may_advance=may_advance_by_own,
        enough_on_news=enough_by_old,
        may_advance_on_news=may_advance_by_old,
        elr_beside=elr_beside_of_minimum,
    )
    .adding(controller_sets_minimum, broker_learns_minimum)
    .with_defaults(replicas=2, min_insync=1, crashes=0, sessions_lost=2, epochs=1, isr_changes=2)
    .failing(_COMMITS_ALONE, *_BREAKS)
)

CONFIGURATION_FIRST = KAFKA_RAISED_MIN_INSYNC.replacing(
    "configuration-first",
    "kafka-raised-min-insync where a leader applies a new min.insync.replicas before the ISR that comes with it",
    because="this is not enough: an AlterPartition is answered before the leader's metadata are there.",
    enough_by_old=enough_by_newest,
    may_advance_by_old=may_advance_by_newest,
).failing(_COMMITS_ALONE, *_BREAKS)

MINIMUM_IN_NEW_VERSION = CONFIGURATION_FIRST.replacing(
    "minimum-in-new-version",
    "configuration-first where a new min.insync.replicas is a new version of the partition: proposed here",
    because="then what a leader asks before it knows the value is refused, and it commits alone by the new value only.",
    controller_sets_minimum=controller_sets_minimum_in_new_version,
).with_defaults(isr_changes=5)

DESIGNS = (KAFKA_RAISED_MIN_INSYNC, CONFIGURATION_FIRST, MINIMUM_IN_NEW_VERSION)
