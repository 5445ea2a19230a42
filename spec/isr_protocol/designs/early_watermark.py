"""Bugs in which a watermark covers what it may not yet cover: KAFKA-13141, KAFKA-14704 and KAFKA-15583."""

from __future__ import annotations

from isr_lang import Maybe, Step, action, when
from isr_model import KIP_966
from isr_protocol.designs.history import may_always_commit
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    no_divergence,
    strong_isr,
    weak_isr,
)
from isr_protocol.replication import answers_epoch_end, continues, takes, waits
from isr_protocol.state import (
    Fetch,
    Replica,
    State,
    end_of_epoch,
    epoch_not_above,
    log_end,
    smaller,
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

DESIGNS = (KAFKA_13141, KAFKA_14704, KAFKA_15583)
