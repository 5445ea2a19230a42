"""What Apache Kafka does in smaller steps than the model, as a design: the model's own, with these parts replaced.

- The watermark. In the model a leader's step moves the watermark at once. In Kafka the same handler moves it later,
  and others see the older one meanwhile: the answer to a fetch carries the watermark from before that fetch
  (`Partition.fetchRecords` reads before `updateFollowerFetchState`). Here no other step moves a leader's watermark, and
  `leader_moves_watermark` may move it, up to what the model allows. It need not move all the way: Kafka waits for
  replicas that are about to join (`Partition.maybeIncrementLeaderHW`, `shouldWaitForReplicaToJoinIsr`).
- Metadata a second time. A leader that hears metadata of the partition epoch that it has already forgets what it has
  proposed (`Partition.makeLeader`, `updateAssignmentAndIsr`); in the model it learns newer ones only.

All names are of Kafka 4.4.0.
"""

from __future__ import annotations

from typing import Final

from isr_lang import Bool, Design, Set, Step, action, define
from isr_lang.blank import blank
from isr_protocol.metadata import answer_lapses
from isr_protocol.replication import commits, may_commit, replicated
from isr_protocol.state import Offset, Replica, State, leads, log_end, maximal_isr

KAFKA: Final = "apache-kafka/"
"""With this before its name a design is the one with Kafka's smaller steps."""


@define
def holds_watermark(s: State, leader: Replica, isr: Set[Replica]) -> Bool:
    """Never true: whether a step moves the watermark at once."""
    return Bool.false


@action
def leader_moves_watermark(old: State, new: State, leader: Replica, to: Offset) -> Step:
    """A leader's watermark moves, as far as the maximal in-sync set holds what is below it.

    Partition.maybeIncrementLeaderHW.
    """
    members = maximal_isr(old, leader)
    up_to = replicated(old, leader, log_end(old, leader), old.follower_end[leader], members)
    return (
        leads(old, leader),
        may_commit(old, old.isr[leader]),
        old.high_watermark[leader] < to,
        to <= up_to,
        *commits(old, new, leader, to),
    )


@action
def leader_hears_isr_again(old: State, new: State, leader: Replica) -> Step:
    """A leader hears the metadata that it has already, and forgets what it has proposed since.

    Partition.makeLeader, which skips only what is older.
    """
    return (
        leads(old, leader),
        old.leader_epoch[leader] == old.controller_epoch,
        old.partition_epoch[leader] == old.controller_partition_epoch,
        ~old.pending_isr[leader].is_empty(),
        new.pending_isr[leader] == blank(new.controller_isr),
        *answer_lapses(old, new, leader),
    )


def in_smaller_steps(design: Design) -> Design:
    """The design with Kafka's smaller steps."""
    apart = design.replacing(
        KAFKA + design.name,
        design.summary,
        because="Kafka's handlers move the watermark after the step that allows it.",
        may_advance=holds_watermark,
        may_advance_on_news=holds_watermark,
    )
    return apart.adding(leader_moves_watermark, leader_hears_isr_again)
