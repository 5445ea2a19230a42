"""Single rules taken out: no design that anybody proposed, but bugs that show what the rules are for."""

from __future__ import annotations

from isr_lang import NONE, Bool, Set, Step, action, define, when
from isr_model import KIP_966
from isr_protocol.designs.history import KIP_320, KIP_497, joins_at_watermark
from isr_protocol.designs.zookeeper import (
    follower_truncates_to_watermark,
    follows_up,
    leader_answers_undefined_epoch,
)
from isr_protocol.metadata import makes_follower
from isr_protocol.promises.committed_log import implements_committed_log
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    fenced_out_of_isr,
    leaders_complete,
    maximal_isr_covers,
    no_divergence,
    reads_stable,
    strong_isr,
    weak_isr,
)
from isr_protocol.replication import answers_epoch_end, takes
from isr_protocol.state import (
    CONSUMERS,
    FOLLOWER_READS,
    Fetch,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    log_end,
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


@action
def becomes_follower_truncating_for_a_new_leader(old: State, new: State, r: Replica) -> Step:
    """A replica learns of a new epoch; it begins to truncate only if the leader is another one (KAFKA-7164).

    A truncation that it had begun goes on: where the leader is the same, Kafka left the fetcher thread and its state of
    the partition as they were (Partition.makeFollower returned false, ReplicaManager.makeFollowers passed over it).
    """
    same = old.leader[r] == old.controller_leader
    unfinished = ~same | old.truncating.has(r)
    asks = (old.controller_leader != NONE) & (log_end(old, r) > 0) & unfinished
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


KAFKA_7164 = (
    KIP_320.replacing(
        "kafka-7164",
        "KIP-320 where a follower truncates only when the leader is another broker",
        because="a follower that missed an epoch may find the same leader again, and must truncate all the same.",
        becomes_follower=becomes_follower_truncating_for_a_new_leader,
    )
    .with_defaults(replicas=3, records=2, crashes=0, epochs=2, isr_changes=2)
    .failing(
        "a follower that finds its leader again does not truncate",
        leaders_complete,
        no_divergence,
        weak_isr,
        strong_isr,
    )
)

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

DESIGNS = (
    KIP_320_JOINS_AT_WATERMARK,
    KIP_497_COMMITTED_ISR,
    KIP_497_NO_PARTITION_EPOCH,
    KIP_392_NO_WAIT,
    KAFKA_7164,
    KAFKA_7415,
)
