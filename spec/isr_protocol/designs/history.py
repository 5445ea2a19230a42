"""The designs: today's, those it replaced, and those proposed instead; each is another with a few parts replaced.

Read from the top: every design names the one it differs from, the actions and definitions that differ, and why.
Single rules are taken out in isr_protocol.designs.dropped_rules; isr_protocol.by_name has all designs by name.
"""

from __future__ import annotations

import attrs

from isr_lang import Bool, Set, define, forall, when
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.quorum import (
    broker_rejoins,
    leader_answers_for_majority,
    leader_appends_for_majority,
    majority_elects,
)
from isr_protocol.designs.zookeeper import (
    becomes_follower_at_watermark,
    becomes_follower_truncating,
    broker_restarts_unnoticed,
    follower_asks_for_epoch_end,
    follower_sends_fetch_when_truncated,
    follower_truncates_by_epoch,
    follower_truncates_to_offset,
    follower_truncates_to_watermark,
    in_range,
    leader_answers_epoch_end,
    leader_answers_next_epoch_start,
    leader_answers_out_of_range,
    leader_answers_undefined_epoch,
    leader_expands_isr,
    leader_shrinks_isr,
    past_epoch_start_of_leader,
    takes_any_epoch,
    waits_for_leader,
)
from isr_protocol.promises.safety import (
    acked_survives,
    acked_survives_clean_steps,
    committed_on_new_leader,
    committed_only_grows,
    fenced_out_of_isr,
    follower_log_shrinks,
    leaders_complete,
    no_divergence,
    one_leader_per_epoch,
    reads_committed,
    reads_stable,
    record_commits,
    strong_isr,
    watermark_goes_down,
    watermark_within_log,
    weak_isr,
)
from isr_protocol.state import REPLICAS, Replica, State

# Below metadata.version 3.6, on any release, every removal from the ISR also begins a new leader epoch of the same
# leader (KAFKA-15021; PartitionChangeBuilder of 3.3.0 to 4.3.1); here it does not, which fences less.
# Before eligible leader replicas: the ISR keeps its last member, and a returning member is trusted.


@define
def may_always_commit(s: State, isr: Set[Replica]) -> Bool:
    """The watermark moves however small the in-sync set is."""
    return Bool.true


@define
def no_elr(s: State, isr: Set[Replica]) -> Set[Replica]:
    """There is no ELR."""
    return blank(s.controller_elr)


@define
def isr_keeps_last(s: State, r: Replica) -> Set[Replica]:
    """The ISR when a broker is gone: its last member stays in it."""
    isr = s.controller_isr
    return when(isr == Set.of(r), isr, isr.excluding(r))


@define
def never_struck(s: State, r: Replica) -> Bool:
    """The controller trusts whatever log a returning member brings."""
    return Bool.false


KRAFT_3_5 = (
    KIP_966.replacing(
        "kraft-3.5",
        "KRaft before eligible leader replicas",
        because="KIP-966 keeps an ELR, holds the watermark under the minimum, and distrusts unclean shutdowns.",
        may_commit=may_always_commit,
        elr_beside=no_elr,
        isr_without=isr_keeps_last,
        struck=never_struck,
    )
    .without("controller_elects_last_known_leader")
    .with_defaults(min_insync=1)
)

KIP_903 = attrs.evolve(
    KRAFT_3_5,
    name="kip-903",
    summary="The controller compares broker epochs when a replica joins",
    because="the same protocol as kraft-3.5, under the name of the proposal that completed it.",
)


@define
def eligible_if_available(s: State, leader: Replica) -> Bool:
    """No proposed member is fenced or shutting down; which incarnation was seen, nobody asks."""
    return (s.alter_isr[leader] & (s.fenced | s.shutting_down)).is_empty()


@define
def always_eligible(s: State, leader: Replica) -> Bool:
    """Any replica may be a member."""
    return Bool.true


KIP_841 = KIP_903.replacing(
    "kip-841",
    "Fenced and shutting-down replicas stay out of the ISR",
    because="KIP-903 checks the broker epoch of a replica that joins.",
    eligible=eligible_if_available,
)

KIP_497 = (
    KIP_841.replacing(
        "kip-497",
        "The leader asks the controller to change the ISR (AlterPartition); brokers still live in ZooKeeper",
        because="KIP-841 keeps fenced replicas out, and KRaft registers a broker only when its last session is over.",
        eligible_if_available=always_eligible,
    )
    .adding(broker_restarts_unnoticed)
    .failing("a fenced broker may be put back into the ISR (KIP-841)", fenced_out_of_isr)
)

# Before AlterPartition the leader writes the ISR itself.

ALTER_PARTITION = (
    "controller_accepts_alter_partition",
    "controller_refuses_alter_partition",
    "controller_rejects_stale_alter_partition",
    "leader_adopts_isr",
    "leader_rolls_back",
)
"""What becomes of a proposal since KIP-497."""

_LEADER_WRITES_ISR = KIP_497.replacing(
    "leader-writes-isr",
    "",
    because="KIP-497 lets the controller decide on the ISR, with a maximal ISR while it does.",
    leader_proposes_shrink=leader_shrinks_isr,
    leader_proposes_expansion=leader_expands_isr,
).without(*ALTER_PARTITION)

KIP_320_FIRST_TRY = (
    _LEADER_WRITES_ISR.replacing(
        "kip-320-first-try",
        "The first attempt at KIP-320: fetches name the epoch of the last record, but not the current one",
        because="a follower in an older epoch still counts; KIP-320 as adopted fences it by the current leader epoch.",
        takes=takes_any_epoch,
        waits=waits_for_leader,
        past_epoch_start=past_epoch_start_of_leader,
    )
    .with_defaults(crashes=0, epochs=2, isr_changes=3)
    .failing(
        "a follower in an older epoch counts for the watermark, and truncates later",
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)

KIP_320 = (
    _LEADER_WRITES_ISR.replacing(
        "kip-320",
        "Fetches and truncation are fenced by the leader epoch; a follower joins only past the start of the epoch",
        because="KIP-497 lets the controller decide on the ISR, and KIP-595 truncates on fetch instead of before it.",
        continues=in_range,
        leader_answers_diverging=leader_answers_out_of_range,
        becomes_follower=becomes_follower_truncating,
        follower_sends_fetch=follower_sends_fetch_when_truncated,
        follower_truncates=follower_truncates_by_epoch,
    )
    .adding(follower_asks_for_epoch_end, leader_answers_epoch_end)
    .failing("a fenced broker may be put back into the ISR (KIP-841)", fenced_out_of_isr)
)


@define
def joins_at_watermark(s: State, leader: Replica, f: Replica) -> Bool:
    """Reaching the watermark is enough to join."""
    return Bool.true


KIP_279 = (
    KIP_320.replacing(
        "kip-279",
        "Truncation by the largest epoch not above the asked one, however fast leaders follow each other",
        because="KIP-320 fences fetches and truncation by the leader epoch.",
        takes=takes_any_epoch,
        waits=waits_for_leader,
        past_epoch_start=joins_at_watermark,
    )
    .with_defaults(crashes=0, epochs=2, isr_changes=3)
    .failing(
        "a fetch from an older epoch counts for the watermark (KIP-320)",
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)

KIP_101 = (
    KIP_279.replacing(
        "kip-101",
        "Truncation by the leader epoch, looked up in the leader's log",
        because="KIP-279 answers with the epoch, too, so that a follower notices one that the leader never had.",
        leader_answers_epoch_end=leader_answers_next_epoch_start,
        follower_truncates=follower_truncates_to_offset,
    )
    .adding(leader_answers_undefined_epoch, follower_truncates_to_watermark)
    .with_defaults(replicas=2, log=2, records=3, isr_changes=2)
    .failing(
        "a follower does not notice an epoch that the leader never had (KIP-279)",
        leaders_complete,
        no_divergence,
        weak_isr,
        strong_isr,
    )
)

ZOOKEEPER = (
    KIP_101.replacing(
        "zookeeper",
        "Kafka 0.9 to 0.10: truncation to the follower's own watermark",
        because="KIP-101 truncates by leader epoch, since a follower's watermark lags.",
        becomes_follower=becomes_follower_at_watermark,
    )
    .without(
        "follower_asks_for_epoch_end",
        "leader_answers_epoch_end",
        "leader_answers_undefined_epoch",
        "follower_truncates_to_watermark",
    )
    .with_defaults(log=1, records=1, crashes=1, unnoticed=1, epochs=1, isr_changes=1)
    .failing(
        "a follower truncates to a watermark that lags (KAFKA-1211, KIP-101)",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
    )
)

KAFKA_0_8 = (
    attrs.evolve(
        ZOOKEEPER,
        name="kafka-0.8",
        summary="Kafka 0.8 as Jepsen found it in 2013: no minimum ISR, unclean election on",
        because="0.8.2 added min.insync.replicas and made unclean election a setting.",
        based_on=ZOOKEEPER,
    )
    .with_defaults(unclean=True, min_insync=1, unnoticed=0, epochs=2, isr_changes=3)
    .failing(
        "an unclean leader has not what the lost one acknowledged alone, and followers truncate to lagging watermarks",
        acked_survives,
        acked_survives_clean_steps,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
    )
).failing("a fenced broker may be put back into the ISR (KIP-841)", fenced_out_of_isr)

# Proposed instead.


@define
def eligible_majority(s: State, leader: Replica) -> Bool:
    """Eligible as today, and never fewer than a majority."""
    proposed = s.alter_isr[leader]
    return (
        (proposed & (s.fenced | s.shutting_down)).is_empty()
        & forall(s.alter_broker_epoch[leader] == s.broker_epoch[f] for f in proposed - s.controller_isr)
        & (proposed.size() + proposed.size() > REPLICAS)
    )


@define
def isr_keeps_majority(s: State, r: Replica) -> Set[Replica]:
    """The ISR when a broker is gone: at a bare majority the broker stays in it, dead as it is."""
    left = s.controller_isr.excluding(r)
    return when(left.size() + left.size() > REPLICAS, left, s.controller_isr)


JEPSEN_BOUNDED_ISR = (
    KRAFT_3_5.replacing(
        "jepsen-bounded-isr",
        "Jepsen's first recommendation: the ISR never shrinks below a majority",
        because="kraft-3.5 lets the ISR shrink to one; this trades its availability for a second copy.",
        eligible=eligible_majority,
        isr_keeps_last=isr_keeps_majority,
    )
    .with_defaults(unclean=True)
    .failing("at a bare majority a dead member stays in the ISR", fenced_out_of_isr)
)

JEPSEN_HALT = attrs.evolve(
    KRAFT_3_5,
    name="jepsen-halt",
    summary="Jepsen's second recommendation: without an in-sync replica the partition halts and alarms",
    because="kraft-3.5 with unclean election off, which is what Kafka has made the default since 0.11.",
    based_on=KRAFT_3_5,
).with_defaults(unclean=False, min_insync=1)

MAJORITY = attrs.evolve(
    KRAFT_3_5.replacing(
        "majority",
        "The quorum comparison: commit on a majority, elect the most complete log of a majority",
        because="not Kafka: 2f+1 replicas for f failures against the ISR's f+1.",
        leader_appends=leader_appends_for_majority,
        leader_answers_fetch=leader_answers_for_majority,
        broker_restarts=broker_rejoins,
    )
    .without(
        "leader_proposes_shrink",
        "leader_proposes_expansion",
        *ALTER_PARTITION,
        "becomes_leader",
        "leader_learns_isr",
        "controller_fences_outsider",
        "controller_fences_follower",
        "controller_fences_leader",
        "controller_fences_last_leader",
        "controller_unfences",
        "controller_elects_returned",
        "controller_moves_leadership",
        "controller_elects_unclean",
        "broker_asks_to_shut_down",
        "broker_shuts_down",
    )
    .adding(majority_elects),
    properties=(
        acked_survives,
        committed_on_new_leader,
        no_divergence,
        watermark_within_log,
        committed_only_grows,
        reads_committed,
        reads_stable,
        one_leader_per_epoch,
        record_commits,
        follower_log_shrinks,
        watermark_goes_down,
    ),
)

DESIGNS = (
    KRAFT_3_5,
    KIP_903,
    KIP_841,
    KIP_497,
    KIP_320,
    KIP_320_FIRST_TRY,
    KIP_279,
    KIP_101,
    ZOOKEEPER,
    KAFKA_0_8,
    MAJORITY,
    JEPSEN_BOUNDED_ISR,
    JEPSEN_HALT,
)
