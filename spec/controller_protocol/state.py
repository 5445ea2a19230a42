"""What there is: a partition as `isr_protocol.state` has it, and the quorum of its controllers.

What `isr_protocol.state` calls the controller's (`controller_isr` and its kind, `fenced`) is what is committed: brokers
learn nothing else. Each voter of the quorum has a log. Each record of a log has the whole metadata as they are after
it, so that a controller that replays its log has them from its last record. Only the first record of a leader, its
LeaderChange, says nothing new.

A broker sends its AlterPartition to some controller. Who has applied it holds the request, and answers when that is
committed (ControllerWriteEvent and its DeferredEventQueue).
"""

from __future__ import annotations

from isr_lang import Bool, Map, Maybe, Set, Step, define, initial, var, when
from isr_lang.blank import blank
from isr_protocol import state as partition
from isr_protocol.state import RESTARTS, BrokerEpoch, LeaderEpoch, PartitionEpoch, Replica
from kraft_protocol.abstract_quorum import AbstractQuorum, Position, Term, end
from kraft_protocol.state import Voter


class State(AbstractQuorum, partition.State):
    """A partition, its brokers and its controllers."""

    # What each record of each voter's log makes of the metadata.
    record_leader: Map[Voter, Map[Position, Maybe[Replica]]] = var("the elected leader after this record")
    record_epoch: Map[Voter, Map[Position, LeaderEpoch]] = var("its leader epoch")
    record_partition_epoch: Map[Voter, Map[Position, PartitionEpoch]] = var("the partition epoch")
    record_isr: Map[Voter, Map[Position, Set[Replica]]] = var("the ISR")
    record_elr: Map[Voter, Map[Position, Set[Replica]]] = var("the ELR")
    record_last_leader: Map[Voter, Map[Position, Maybe[Replica]]] = var("who led when the ISR became empty")
    record_fenced: Map[Voter, Map[Position, Set[Replica]]] = var("brokers without a session")
    record_registration: Map[Voter, Map[Position, Map[Replica, BrokerEpoch]]] = var(
        "the incarnation of each broker that has registered", when=RESTARTS > 0
    )
    registration: Map[Replica, BrokerEpoch] = var("the same of what is committed", when=RESTARTS > 0)

    # The AlterPartition of each leader, where a controller has applied it.
    alter_holder: Map[Replica, Maybe[Voter]] = var("the controller that answers it at commit, none while nobody has it")
    alter_end: Map[Replica, Position] = var("the end of the log that is to be committed before that")
    alter_term: Map[Replica, Term] = var("the epoch of the last controller that had it")


@initial
def controllers_agree(new: State, first: Replica, active: Voter) -> Step:
    """One controller is active, and the only record, in which the partition was created, is in every log."""
    creation = blank(new.quorum_committed).append(Term.of(0))
    return (
        new.term == blank(new.term),
        new.support == Map.build(Voter, lambda r: Maybe.of(active)),
        new.quorum_leaders == Set.of(active),
        new.quorum_log == Map.build(Voter, lambda r: creation),
        new.quorum_end == Map.build(Voter, lambda r: when(r == active, creation.length(), 0)),
        new.quorum_committed == creation,
        new.lost_disks == 0,
        new.strangers == blank(new.strangers),
        new.record_leader
        == Map.build(Voter, lambda r: blank(new.record_leader[r]).put(Position.of(0), Maybe.of(first))),
        new.record_epoch == blank(new.record_epoch),
        new.record_partition_epoch == blank(new.record_partition_epoch),
        new.record_isr == Map.build(Voter, lambda r: blank(new.record_isr[r]).put(Position.of(0), Replica.all())),
        new.record_elr == blank(new.record_elr),
        new.record_last_leader == blank(new.record_last_leader),
        new.record_fenced == blank(new.record_fenced),
        new.record_registration == blank(new.record_registration),
        new.registration == blank(new.registration),
        new.alter_holder == blank(new.alter_holder),
        new.alter_end == blank(new.alter_end),
        new.alter_term == blank(new.alter_term),
    )


# Definitions


def last(s: State, c: Voter) -> Position:
    """The position of the last record of a voter."""
    return end(s, c) - 1


@define
def has_committed_in_term(s: AbstractQuorum, c: Voter) -> Bool:
    """The voter leads, and knows that a record of its epoch is committed."""
    known = s.quorum_end[c]
    return s.quorum_leaders.has(c) & (known > 0) & (s.quorum_log[c][known - 1] == s.term[c])


@define
def is_active(s: AbstractQuorum, c: Voter) -> Bool:
    """The controller has claimed: it leads, and knows that a record of its epoch is committed.

    RaftClient.Listener.handleLeaderChange comes when the listener is past the start of the epoch
    (KafkaRaftClient.ListenerContext.maybeFireLeaderChange),
    upon which QuorumController.claim makes it active.
    """
    return has_committed_in_term(s, c)


@define
def has_nothing_pending(s: State, c: Voter) -> Bool:
    """All that the controller has replayed is committed."""
    return s.quorum_end[c] == end(s, c)
