"""Found in today's Kafka: two ways to lose an acknowledged record, and the rules that would mend them, as designs."""

from __future__ import annotations

import attrs

from isr_lang import NONE, Bool, Map, Set, Step, action, define, when
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.membership import current, eligible, hears, metadata_changes, no_alter
from isr_protocol.metadata import (
    answers_who_waited,
    away,
    becomes_leader,
    behind,
    fetch_in_new_epoch,
    leader_learns_brokers,
    takes_over,
)
from isr_protocol.promises.safety import (
    acked_survives,
    acks_meet_minimum,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
    weak_isr,
)
from isr_protocol.replication import advanced_watermark, commits, replicated
from isr_protocol.state import EPOCHS, Alter, Fetch, Replica, State, leads, log_end


def becomes_leader_with(old: State, new: State, r: Replica, keeps: Bool, replicas: Set[Replica] | None = None) -> Step:
    """A replica learns that it leads in a new epoch, and keeps its followers' positions or forgets them.

    It keeps those of `replicas` only, if not all are (Partition.updateAssignmentAndIsr).
    """
    isr, ends, epochs = old.controller_isr, old.follower_end[r], old.follower_broker_epoch[r]
    if replicas is not None:
        ends = Map.build(Replica, lambda f: when(replicas.has(f), ends[f], NONE))
        epochs = Map.build(Replica, lambda f: when(replicas.has(f), epochs[f], 0))
    positions = when(keeps, ends, blank(ends))
    up_to = replicated(old, r, log_end(old, r), positions, isr, away(old))
    watermark = advanced_watermark(old, r, up_to, isr, news=True)
    return (
        behind(old, r),
        old.controller_leader == r,
        *takes_over(old, new, r),
        new.follower_end[r] == positions,
        new.follower_broker_epoch[r] == when(keeps, epochs, blank(epochs)),
        new.isr[r] == isr,
        new.partition_epoch[r] == old.controller_partition_epoch,
        *fetch_in_new_epoch(old, new, r, Bool.false, old.log[r], Fetch.NONE),
        *commits(old, new, r, watermark),
        *answers_who_waited(old, new, r, watermark, isr),
    )


@action
def becomes_leader_keeping_positions(old: State, new: State, r: Replica) -> Step:
    """A replica learns that it leads in a new epoch; if it led before, it keeps its followers' positions.

    Partition.makeLeader calls Replica.resetReplicaState with isNewLeader = !isLeader (4.3.1), so also when another led
    in between and this replica never knew; it then moves the watermark, and DelayedProduce is answered.
    """
    return becomes_leader_with(old, new, r, leads(old, r))


@action
def becomes_leader_keeping_positions_of_the_epoch_before(old: State, new: State, r: Replica) -> Step:
    """A replica learns that it leads in a new epoch; it keeps positions if it led in the epoch right before."""
    return becomes_leader_with(old, new, r, leads(old, r) & (old.leader_epoch[r] + 1 == old.controller_epoch))


@action
def controller_begins_new_epoch(old: State, new: State) -> Step:
    """The controller begins a new leader epoch of the same leader.

    At the end of a reassignment, and before metadata version 3.6 whenever the ISR shrank (KAFKA-15021).
    PartitionChangeBuilder.triggerLeaderEpochBumpForReplicaReassignmentIfNeeded, ...ForIsrShrinkIfNeeded (4.3.1).
    """
    return (
        old.controller_leader != NONE,
        old.controller_epoch < EPOCHS,
        *metadata_changes(old, new, old.controller_isr, old.controller_elr),
        new.controller_epoch == old.controller_epoch + 1,
    )


KAFKA_KEEPS_POSITIONS = (
    KIP_966.replacing(
        "kafka-keeps-positions",
        "KIP-966 where a leader that is elected again keeps its followers' positions, as Kafka's code does",
        because="another may have led in between, and its followers have truncated, so positions must be forgotten.",
        becomes_leader=becomes_leader_keeping_positions,
    )
    .adding(controller_begins_new_epoch)
    .with_defaults(crashes=0, sessions_lost=1, epochs=2, isr_changes=2, producers_wait=True)
    .failing(
        "a position from before another leader's epoch counts for the watermark",
        leaders_complete,
        acks_meet_minimum,
        weak_isr,
        strong_isr,
    )
)

KAFKA_RESETS_POSITIONS = KAFKA_KEEPS_POSITIONS.replacing(
    "kafka-resets-positions",
    "kafka-keeps-positions where a leader forgets all positions in every new epoch: proposed here",
    because="a position is an acknowledgement of the epoch in which it was sent, and of no other.",
    becomes_leader=becomes_leader,
).with_defaults(replicas=2, epochs=4, isr_changes=4)

KAFKA_RESETS_SKIPPED = KAFKA_KEEPS_POSITIONS.replacing(
    "kafka-resets-skipped",
    "kafka-keeps-positions where a leader forgets positions if it skipped an epoch: the narrower way",
    because="only in a skipped epoch can another have led; from one epoch of a leader to its next nobody truncates.",
    becomes_leader=becomes_leader_keeping_positions_of_the_epoch_before,
).with_defaults(replicas=2, epochs=4, isr_changes=4)


@define
def hears_what_it_waits_for(s: State, leader: Replica) -> Bool:
    """The leader still waits for the answer; that of a copy is lost with the connection on which it was sent."""
    return hears(s, leader) & ~s.pending_isr[leader].is_empty()


def refuses_overtaken(old: State, new: State, leader: Replica) -> Step:
    """The later copy of a request is refused and its leader has heard so; the earlier is still on its way."""
    return (
        old.alter[leader] == Alter.REQUESTED,
        current(old, leader),
        ~eligible(old, leader),
        hears_what_it_waits_for(old, leader),
        new.pending_isr[leader] == blank(new.controller_isr),
    )


@action
def controller_refuses_later_copy(old: State, new: State, leader: Replica) -> Step:
    """A request was sent again, and the later copy is refused first; the leader rolls back (in one step, for brevity).

    On a time-out the leader sends on another connection (NodeToControllerRequestThread.handleResponse); what it wrote
    to the first TCP may deliver later.
    """
    return refuses_overtaken(old, new, leader)


@action
def controller_refuses_later_copy_in_new_version(old: State, new: State, leader: Replica) -> Step:
    """The same, with a new version of the metadata, to which the earlier copy is stale."""
    return (
        *refuses_overtaken(old, new, leader),
        *metadata_changes(old, new, old.controller_isr, old.controller_elr),
    )


@action
def controller_refuses_later_copy_of_expired(old: State, new: State, leader: Replica) -> Step:
    """The same, where the earlier copy has expired with the connection on which it was sent, and is dropped."""
    return (*refuses_overtaken(old, new, leader), *no_alter(new, leader))


_LEADER_LOOKS = attrs.evolve(KIP_966, assumptions=KIP_966.assumptions[:1]).adding(leader_learns_brokers)
"""Today's design where a leader may be told who is fenced without a change of the partition."""

KAFKA_OVERTAKEN_REQUEST = (
    _LEADER_LOOKS.replacing(
        "kafka-overtaken-request",
        "KIP-966 where an AlterPartition is sent again, and the copies overtake each other",
        because="the leader rolls back what was refused, and an earlier copy of it is then accepted.",
        hears=hears_what_it_waits_for,
    )
    .adding(controller_refuses_later_copy)
    .with_defaults(
        replicas=2,
        crashes=0,
        sessions_lost=2,
        epochs=1,
        isr_changes=3,
        min_insync=1,
        own_view=True,
        producers_wait=True,
    )
    .failing(
        "the leader does not wait for a member that an overtaken copy of its request brought in",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
        maximal_isr_covers,
    )
)

REFUSAL_IN_NEW_VERSION = KAFKA_OVERTAKEN_REQUEST.replacing(
    "refusal-in-new-version",
    "kafka-overtaken-request where a refusal is a new version of the metadata: proposed here",
    because="then every earlier copy is stale.",
    controller_refuses_later_copy=controller_refuses_later_copy_in_new_version,
).with_defaults(epochs=2, isr_changes=4)

REQUEST_EXPIRES = KAFKA_OVERTAKEN_REQUEST.replacing(
    "request-expires",
    "kafka-overtaken-request where a request expires before it is sent again: proposed here",
    because="the controller drops what its sender has given up, so no copy is left that could overtake.",
    controller_refuses_later_copy=controller_refuses_later_copy_of_expired,
)

DESIGNS = (
    KAFKA_KEEPS_POSITIONS,
    KAFKA_RESETS_POSITIONS,
    KAFKA_RESETS_SKIPPED,
    KAFKA_OVERTAKEN_REQUEST,
    REFUSAL_IN_NEW_VERSION,
    REQUEST_EXPIRES,
)
