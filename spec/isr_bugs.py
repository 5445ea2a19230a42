"""Single rules taken out: no design that anybody proposed, but bugs that show what the rules are for."""

from __future__ import annotations

from isr_committed_log import implements_committed_log
from isr_history import KIP_279, KIP_320, KIP_497, joins_at_watermark, may_always_commit
from isr_lang import NONE, Bool, Maybe, Set, Step, action, define, when
from isr_lang.blank import blank
from isr_membership import (
    answers_who_waited,
    away,
    becomes_leader,
    behind,
    current,
    eligible,
    fetch_in_new_epoch,
    hears,
    makes_follower,
    metadata_changes,
    no_alter,
    takes_over,
)
from isr_model import KIP_966
from isr_properties import (
    acked_survives,
    acks_meet_minimum,
    committed_on_new_leader,
    fenced_out_of_isr,
    leaders_complete,
    maximal_isr_covers,
    no_divergence,
    reads_stable,
    strong_isr,
    weak_isr,
)
from isr_replication import advanced, answers_epoch_end, commits, continues, replicated, takes, waits
from isr_state import (
    CONSUMERS,
    EPOCHS,
    FOLLOWER_READS,
    Alter,
    Fetch,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    leads,
    log_end,
    smaller,
)
from isr_zookeeper import (
    follower_truncates_to_watermark,
    follows_up,
    leader_answers_undefined_epoch,
)


@define
def committed_isr_only(s: State, leader: Replica) -> Set[Replica]:
    """The leader counts only the in-sync set that it knows to be committed."""
    return s.isr[leader]


@define
def current_by_leader_epoch(s: State, leader: Replica) -> Bool:
    """The request is from the elected leader in its epoch; of which metadata it speaks, nobody asks."""
    return (s.controller_leader == leader) & (s.alter_leader_epoch[leader] == s.controller_epoch)


@action
def consumer_is_reset(old: State, new: State, r: Replica) -> Step:
    """A consumer past the watermark of the replica it asks is out of range, and starts again from there."""
    return (
        CONSUMERS > 0,
        old.alive.has(r),
        (old.leader[r] == r) | (FOLLOWER_READS & (old.leader[r] != NONE)),
        old.high_watermark[r] < old.position,
        new.position == old.high_watermark[r],
        new.consumed == old.consumed.take(old.high_watermark[r]),
    )


def answers_diverging(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """The leader's answer to a fetch that diverges, as in leader_answers_diverging."""
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.REQUESTED,
        takes(old, leader, follower),
        ~continues(old, leader, follower),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


@action
def leader_answers_diverging_and_counts(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells a follower where their logs part, and takes the fetch offset as acknowledged (KAFKA-13141)."""
    offset = smaller(old.fetch_offset[follower], log_end(old, leader))
    return (
        *answers_diverging(old, new, leader, follower),
        new.follower_end[leader][follower] == Maybe.of(offset),
        new.follower_broker_epoch[leader][follower] == old.broker_epoch[follower],
    )


@action
def leader_answers_diverging_with_watermark(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader tells a follower where their logs part, and its watermark with it."""
    waiting = waits(old, leader, follower)
    return (
        *answers_diverging(old, new, leader, follower),
        new.fetch_watermark[follower] == when(waiting, old.high_watermark[leader], 0),
    )


@action
def follower_raises_watermark_first(old: State, new: State, follower: Replica) -> Step:
    """A follower takes the watermark of a diverging answer before it has truncated (KAFKA-14704)."""
    known = smaller(old.fetch_watermark[follower], log_end(old, follower))
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        old.high_watermark[follower] < known,
        new.high_watermark[follower] == known,
    )


@action
def becomes_follower_truncating_for_a_new_leader(old: State, new: State, r: Replica) -> Step:
    """A replica learns of a new epoch; it truncates only if the leader is another one (KAFKA-7164)."""
    asks = (old.controller_leader != NONE) & (log_end(old, r) > 0) & (old.leader[r] != old.controller_leader)
    return (
        *makes_follower(old, new, r, old.log[r], when(asks, Fetch.ASKED, Fetch.REQUESTED)),
        new.truncating == when(asks, old.truncating.including(r), old.truncating.excluding(r)),
    )


@action
def no_start_of_epoch(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A leader answers where an epoch ends only if it wrote in it or later (KAFKA-7415)."""
    epoch = epoch_not_above(old, leader, old.fetch_last_epoch[follower])
    return (
        old.fetch[follower] == Fetch.ASKED,
        takes(old, leader, follower),
        follows_up(old, leader, old.fetch_last_epoch[follower]),
        *answers_epoch_end(old, new, leader, follower, end_of_epoch(old, leader, epoch), epoch),
    )


# One rule taken out.

KIP_320_JOINS_AT_WATERMARK = (
    KIP_320.replacing(
        "kip-320-joins-at-watermark",
        "KIP-320 without rule (4): a follower joins at the watermark (KAFKA-7128)",
        because="a follower at the watermark may lack what an earlier leader committed.",
        past_epoch_start=joins_at_watermark,
    )
    .with_defaults(crashes=0, epochs=2, isr_changes=4)
    .failing(
        "a follower joins below the start of the leader's epoch (KAFKA-7128)",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)

KIP_497_COMMITTED_ISR = (
    KIP_497.replacing(
        "kip-497-committed-isr",
        "KIP-497 without rule (1): the watermark counts the committed ISR only",
        because="the controller may have added a replica that the leader does not wait for.",
        maximal_isr=committed_isr_only,
    )
    .with_defaults(replicas=2, crashes=0)
    .failing(
        "the controller's ISR has a member for which the leader does not wait",
        leaders_complete,
        weak_isr,
        strong_isr,
        maximal_isr_covers,
    )
)

KIP_497_NO_PARTITION_EPOCH = (
    KIP_497.replacing(
        "kip-497-no-partition-epoch",
        "KIP-497 without the check of the partition epoch",
        because="an AlterPartition that was overtaken by a change of the controller takes effect all the same.",
        current=current_by_leader_epoch,
    )
    .with_defaults(crashes=0, sessions_lost=1, epochs=0)
    .failing(
        "an overtaken AlterPartition takes effect",
        leaders_complete,
        weak_isr,
        strong_isr,
        maximal_isr_covers,
    )
).failing("a fenced broker may be put back into the ISR (KIP-841)", fenced_out_of_isr)

KIP_392_NO_WAIT = (
    KIP_966.replacing(
        "kip-392-no-wait",
        "KIP-966 without KIP-392's rule: a consumer past a replica's watermark is out of range, and is reset",
        because="with the rule it waits until the watermark has come (OFFSET_NOT_AVAILABLE).",
    )
    .adding(consumer_is_reset)
    .with_defaults(crashes=0, consumers=1, follower_reads=True, epochs=0, isr_changes=0)
    .failing(
        "a consumer is reset to the watermark of a replica that lags",
        reads_stable,
        implements_committed_log,
    )
)


def becomes_leader_with(old: State, new: State, r: Replica, keeps: Bool) -> Step:
    """A replica learns that it leads in a new epoch, and keeps its followers' positions or forgets them."""
    isr, ends, epochs = old.controller_isr, old.follower_end[r], old.follower_broker_epoch[r]
    kept = when(keeps, ends, blank(ends))
    up_to = replicated(old, r, log_end(old, r), kept, isr, away(old))
    watermark = advanced(old, r, up_to, isr)
    return (
        behind(old, r),
        old.controller_leader == r,
        *takes_over(old, new, r),
        new.follower_end[r] == kept,
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
        acked_survives,
        committed_on_new_leader,
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
)

KAFKA_RESETS_SKIPPED = KAFKA_KEEPS_POSITIONS.replacing(
    "kafka-resets-skipped",
    "kafka-keeps-positions where a leader forgets positions if it skipped an epoch: the narrower way",
    because="only in a skipped epoch can another have led; from one epoch of a leader to its next nobody truncates.",
    becomes_leader=becomes_leader_keeping_positions_of_the_epoch_before,
)


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


KAFKA_OVERTAKEN_REQUEST = (
    KIP_966.replacing(
        "kafka-overtaken-request",
        "KIP-966 where an AlterPartition is sent again, and the copies overtake each other",
        because="the leader rolls back what was refused, and an earlier copy of it is then accepted.",
        hears=hears_what_it_waits_for,
    )
    .adding(controller_refuses_later_copy)
    .with_defaults(
        replicas=2, crashes=0, sessions_lost=2, epochs=1, isr_changes=3, min_insync=1, own_view=True, producers_wait=True
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

KAFKA_13141 = (
    KIP_966.replacing(
        "kafka-13141",
        "KIP-966 where a diverging fetch counts as an acknowledgement",
        because="its offset says nothing about records of the leader.",
        leader_answers_diverging=leader_answers_diverging_and_counts,
    )
    .with_defaults(replicas=2, records=2, crashes=0, sessions_lost=1, epochs=2, isr_changes=3, min_insync=1)
    .failing(
        "a diverging fetch counts as an acknowledgement",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)

KAFKA_14704 = (
    KIP_966.replacing(
        "kafka-14704",
        "KIP-966 where a follower takes the watermark from a diverging answer before it truncates",
        because="below that watermark it still has records that the leader never had.",
        leader_answers_diverging=leader_answers_diverging_with_watermark,
    )
    .adding(follower_raises_watermark_first)
    .with_defaults(replicas=2, records=2, crashes=0, sessions_lost=1, epochs=2, isr_changes=3, min_insync=1)
    .failing(
        "a follower's watermark covers records that it is about to truncate",
        no_divergence,
    )
)

KAFKA_15583 = (
    KIP_966.replacing(
        "kafka-15583",
        "KIP-966 without rule (2): the watermark moves while the ISR is under the minimum",
        because="a member of the ELR then lacks committed records.",
        may_commit=may_always_commit,
    )
    .with_defaults(replicas=2, crashes=0)
    .failing(
        "a member of the ELR lacks what was committed without it",
        leaders_complete,
    )
)

KAFKA_7164 = (
    KIP_279.replacing(
        "kafka-7164",
        "KIP-279 where a follower truncates only when the leader is another broker",
        because="a follower that missed an epoch may find the same leader again, and must truncate all the same.",
        becomes_follower=becomes_follower_truncating_for_a_new_leader,
    )
    .with_defaults(replicas=2, records=2, sessions_lost=1, epochs=3, isr_changes=4)
    .failing(
        "a follower that finds its leader again does not truncate",
        leaders_complete,
        no_divergence,
        weak_isr,
        strong_isr,
    )
).failing("a fenced broker may be put back into the ISR (KIP-841)", fenced_out_of_isr)

KAFKA_7415 = (
    KIP_320.replacing(
        "kafka-7415",
        "KIP-320 where a new leader does not write the start of its epoch before its first append",
        because="asked for an epoch later than its last record's it has no answer; the follower uses its watermark.",
        leader_answers_epoch_end=no_start_of_epoch,
    )
    .adding(leader_answers_undefined_epoch, follower_truncates_to_watermark)
    .with_defaults(replicas=2, log=2, records=2, crashes=0, epochs=3, isr_changes=3)
    .failing(
        "a follower falls back to its watermark where the leader does not know the epoch",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)
