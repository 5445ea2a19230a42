"""A leader that forgets a proposal on its way: found in today's Kafka, and what would mend it.

A leader learns of a new version of its partition twice: from the answer to its AlterPartition, and from the log of
metadata, each in its own time. Where the answer comes first, the leader may have proposed the next in-sync set by the
time at which the log brings the version that it knows.
"""

from __future__ import annotations

from isr_lang import Step, action, initial
from isr_lang.blank import blank
from isr_model import KIP_966
from isr_protocol.designs.leader_bugs import hears_what_it_waits_for
from isr_protocol.designs.wider_state import Answered
from isr_protocol.metadata import answer_lapses
from isr_protocol.promises.safety import (
    acked_survives,
    committed_on_new_leader,
    leaders_complete,
    maximal_isr_covers,
    strong_isr,
    weak_isr,
)
from isr_protocol.replication import acknowledged, advanced_watermark, commits, replicated
from isr_protocol.state import Replica, leads, log_end


@initial
def nobody_ahead(new: Answered) -> Step:
    """All have read the metadata with which the partition was made."""
    return (new.ahead == blank(new.ahead),)


@action
def is_ahead(old: Answered, new: Answered, leader: Replica) -> Step:
    """Taken with the answer that an in-sync set was accepted: the log of metadata has yet to bring it."""
    return (new.ahead == old.ahead.including(leader),)


@action
def leader_has_read(old: Answered, new: Answered, leader: Replica) -> Step:
    """Taken where a leader reads newer metadata: what it knew from an answer came before them."""
    return (new.ahead == old.ahead.excluding(leader),)


@action
def has_read(old: Answered, new: Answered, r: Replica) -> Step:
    """Taken where a broker reads of a new leader epoch, or stops."""
    return (new.ahead == old.ahead.excluding(r),)


def hears_known_version(old: Answered, new: Answered, leader: Replica) -> Step:
    """The log brings the version that the leader knows from an answer, and it is the newest.

    Kafka's leader may hear it when there are newer ones, too: `old_metadata`.
    """
    return (
        leads(old, leader),
        old.ahead.has(leader),
        old.partition_epoch[leader] == old.controller_partition_epoch,
        new.ahead == old.ahead.excluding(leader),
    )


def forgets_proposal(old: Answered, new: Answered, leader: Replica) -> Step:
    """The leader is told of the version that it knows, and goes by its committed in-sync set."""
    isr, end = old.isr[leader], log_end(old, leader)
    up_to = replicated(old, leader, end, old.follower_end[leader], isr)
    watermark = advanced_watermark(old, leader, up_to, isr, news=True)
    return (
        new.pending_isr[leader] == blank(new.controller_isr),
        *answer_lapses(old, new, leader),
        *commits(old, new, leader, watermark),
        new.acked == old.acked | acknowledged(old, leader, watermark, isr, news=True),
    )


@action
def leader_hears_known_version(old: Answered, new: Answered, leader: Replica) -> Step:
    """The log brings the version that a leader knows from an answer; it forgets what it has proposed since.

    What it forgets it counts for the watermark no more, and the answer to it will be ignored. Partition.makeLeader
    skips only what is older, and updateAssignmentAndIsr replaces the pending state by the committed in-sync set;
    submitAlterPartition, `partitionState != proposedIsrState` (4.3.1 read, 4.4.0 run).
    """
    return (*hears_known_version(old, new, leader), *forgets_proposal(old, new, leader))


@action
def leader_hears_known_version_and_waits_on(old: Answered, new: Answered, leader: Replica) -> Step:
    """The log brings the version that a leader knows from an answer: nothing else changes."""
    return hears_known_version(old, new, leader)


KAFKA_FORGOTTEN_PROPOSAL = (
    KIP_966.in_state(Answered, nobody_ahead)
    .extending(
        leader_adopts_isr=is_ahead,
        leader_learns_isr=leader_has_read,
        becomes_leader=has_read,
        becomes_follower=has_read,
        broker_crashes=has_read,
        broker_loses_power=has_read,
        broker_shuts_down=has_read,
    )
    .replacing(
        "kafka-forgotten-proposal",
        "KIP-966 where a leader forgets its proposal when its metadata bring a version that it knows, as Kafka's does",
        because="the request is still on its way, and may be accepted: the leader does not wait for whom it asked for.",
        hears=hears_what_it_waits_for,
    )
    .adding(leader_hears_known_version)
    .with_defaults(replicas=2, crashes=0, sessions_lost=0, epochs=1, isr_changes=3, min_insync=1)
    .failing(
        "the leader does not wait for a member that it has proposed, and forgotten",
        acked_survives,
        committed_on_new_leader,
        leaders_complete,
        weak_isr,
        strong_isr,
        maximal_isr_covers,
    )
)

PROPOSAL_KEPT = KAFKA_FORGOTTEN_PROPOSAL.replacing(
    "proposal-kept",
    "kafka-forgotten-proposal where metadata of a version that the leader knows leave its proposal: proposed here",
    because="they say nothing of a request that was made on top of that version.",
    leader_hears_known_version=leader_hears_known_version_and_waits_on,
).with_defaults(epochs=2, isr_changes=4)

DESIGNS = (KAFKA_FORGOTTEN_PROPOSAL, PROPOSAL_KEPT)
