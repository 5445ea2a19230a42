"""What there is: the bounds, the settings and the state of one partition of Kafka, at message grain.

Read this first, then isr_model (what happens), then promises.safety (what is promised), then designs.history
(what it replaced).

One partition, its replicas, the controller, a producer and a consumer. The controller is one reliable
node: KRaft's own consensus is not modelled, only its outcome, a sequence of changes of the partition's
metadata, each numbered by a partition epoch. A message may be delayed for as long as one likes, and not to act on it
is to have lost it, so loss needs no action; errors that only make the sender ask again are not sent. Time is
not modelled: whatever a timer could do may happen whenever its condition holds ("lagging" means: has not been
seen at the leader's log end). Nobody lies.

Three rules keep the state small, and nothing else is left out for size:
  - a value that nothing can observe any more is blank (a message once handled, the table of a former leader);
  - a record is named by the order in which it was produced, and what is known of it is a function of its name;
  - what survives a crash is chosen when the crash happens (how much of the log had reached the disk, which
    value of the high watermark had been checkpointed), for nothing can observe it earlier.
"""

from __future__ import annotations

from typing import ClassVar

from isr_lang import (
    NONE,
    Bool,
    Choice,
    Map,
    Maybe,
    Number,
    Seq,
    Set,
    Sort,
    Step,
    Struct,
    bound,
    define,
    exists,
    initial,
    largest,
    setting,
    smallest,
    switch,
    var,
    when,
)
from isr_lang.blank import blank

# Bounds: how large the explored world is.
REPLICAS = bound("replicas", "replicas of the partition", default=3, low=1, high=7)
LOG = bound("log", "records that fit into a log", default=1, low=1, high=6)
RECORDS = bound("records", "records that are produced", default=1, low=1, high=8)
EPOCHS = bound("epochs", "changes of the leader epoch after the first leader", default=1, high=8)
ISR_CHANGES = bound("isr_changes", "changes of the partition's metadata, elections included", default=2, high=12)

# Fault budgets: how often the environment may do its worst.
CRASHES = bound("crashes", "crashes that keep the disk", default=0, high=4, budget=True)
LOSSY_CRASHES = bound("lossy_crashes", "crashes that lose what was not flushed", default=0, high=4, budget=True)
SESSIONS_LOST = bound("sessions_lost", "sessions lost by brokers that are alive", default=0, high=4, budget=True)
UNNOTICED = bound("unnoticed", "restarts that nobody noticed (ZooKeeper era)", default=0, high=4, budget=True)
SHUTDOWNS = bound("shutdowns", "controlled shutdowns", default=0, high=4, budget=True)
CONSUMERS = bound("consumers", "consumers", default=0, high=1)
RESTARTS = CRASHES + LOSSY_CRASHES + SHUTDOWNS


class Acks(Choice):
    """What a producer waits for: nothing, the leader's append, or all in-sync replicas."""

    NONE: ClassVar[Acks]
    LEADER: ClassVar[Acks]
    ALL: ClassVar[Acks]


class Flush(Choice):
    """When a broker forces its log to disk: before it answers, or when the operating system likes."""

    ALWAYS: ClassVar[Flush]
    NEVER: ClassVar[Flush]


# Settings: Kafka's configuration.
MIN_INSYNC = bound("min_insync", "min.insync.replicas", default=1, low=1, high=7)
UNCLEAN = switch("unclean", "unclean.leader.election.enable", default=False)
ACKS = setting(
    "acks", "acks of the producer", values={"0": Acks.NONE, "1": Acks.LEADER, "all": Acks.ALL}, default="all"
)
FLUSH = setting(
    "flush",
    "flush.messages=1, or never",
    values={"always": Flush.ALWAYS, "never": Flush.NEVER},
    default="never",
)
FOLLOWER_READS = switch("follower_reads", "consumers may fetch from followers (KIP-392)", default=False)
PRODUCERS_WAIT = switch(
    "producers_wait",
    "producers wait for as long as their leader does not step down, also across its epochs",
    default=False,
)
OWN_VIEW = switch(
    "own_view", "a leader asks its own metadata whom to propose, and whom to wait for before it joins", default=False
)


class Replica(Sort, size=REPLICAS, prefix="r"):
    """A broker that hosts a replica of the partition."""


class Offset(Number, high=LOG):
    """A position in a log; as a log end offset or watermark, the position after the last record."""


class Record(Number, high=RECORDS):
    """The name of a record: how many were produced before it."""


class LeaderEpoch(Number, high=EPOCHS):
    """Grows with every change of the leader."""


class PartitionEpoch(Number, high=ISR_CHANGES):
    """Grows with every change of the partition's metadata (before KIP-497: ZooKeeper's version of it)."""


class BrokerEpoch(Number, high=RESTARTS):
    """The incarnation of a broker: grows each time it registers with the controller."""


class Crashes(Number, high=CRASHES):
    """How many crashes that kept the disk."""


class LossyCrashes(Number, high=LOSSY_CRASHES):
    """How many crashes that lost a suffix of the log."""


class SessionsLost(Number, high=SESSIONS_LOST):
    """How many living brokers lost their session."""


class Unnoticed(Number, high=UNNOTICED):
    """How many restarts that nobody noticed."""


class Shutdowns(Number, high=SHUTDOWNS):
    """How many controlled shutdowns."""


class Fetch(Choice):
    """The one fetch of a follower: none in flight, the request, or one of two kinds of answer.

    ASKED is the older question, OffsetsForLeaderEpoch, which designs before truncation-on-fetch send first, and
    UNDEFINED the answer to it that no such epoch is known.
    """

    NONE: ClassVar[Fetch]
    REQUESTED: ClassVar[Fetch]
    ANSWERED: ClassVar[Fetch]
    DIVERGED: ClassVar[Fetch]
    ASKED: ClassVar[Fetch]
    UNDEFINED: ClassVar[Fetch]


class Alter(Choice):
    """The one AlterPartition of a leader: none in flight, the request, or one of two answers."""

    NONE: ClassVar[Alter]
    REQUESTED: ClassVar[Alter]
    ACCEPTED: ClassVar[Alter]
    REFUSED: ClassVar[Alter]


class State(Struct):
    """Everything is a function from a replica, a record or nothing at all; messages are variables too."""

    # Each replica: what is on its disk, and what it believes.
    alive: Set[Replica] = var("brokers whose process runs")
    log: Map[Replica, Seq[Offset, Record]] = var("the records each replica holds, in order")
    high_watermark: Map[Replica, Offset] = var(
        "offsets below it are known by the replica to be committed; of a dead replica, its checkpoint"
    )
    leader: Map[Replica, Maybe[Replica]] = var("whom each replica believes to lead, none before it learns")
    leader_epoch: Map[Replica, LeaderEpoch] = var("the leader epoch each replica last learned")
    truncating: Set[Replica] = var("followers that must find their truncation point before they fetch (before KIP-595)")
    broker_epoch: Map[Replica, BrokerEpoch] = var("the incarnation of each broker", when=RESTARTS > 0)

    # Each leader: what it believes about the in-sync set and about its followers; blank elsewhere.
    isr: Map[Replica, Set[Replica]] = var("the in-sync set each leader takes to be committed")
    pending_isr: Map[Replica, Set[Replica]] = var("the in-sync set each leader has proposed and not yet seen decided")
    partition_epoch: Map[Replica, PartitionEpoch] = var("the partition epoch of that in-sync set")
    follower_end: Map[Replica, Map[Replica, Maybe[Offset]]] = var(
        "the log end offset at which each leader saw each follower fetch in this epoch; none before it did"
    )
    follower_broker_epoch: Map[Replica, Map[Replica, BrokerEpoch]] = var(
        "the incarnation of the follower in that fetch", when=RESTARTS > 0
    )

    leading_since: Map[Replica, LeaderEpoch] = var(
        "the epoch in which each leader began to lead without a break", when=PRODUCERS_WAIT, ghost=True
    )
    known_away: Map[Replica, Set[Replica]] = var(
        "brokers that each leader's own metadata calls fenced or shutting down", when=OWN_VIEW
    )

    # One fetch per follower, in either direction.
    fetch: Map[Replica, Fetch] = var("the fetch of each follower: request, answer or none in flight")
    fetch_to: Map[Replica, Maybe[Replica]] = var("the leader that is asked")
    fetch_epoch: Map[Replica, LeaderEpoch] = var("the current leader epoch in the request and its answer")
    fetch_offset: Map[Replica, Offset] = var(
        "request: the follower's log end; diverged: where the epoch in fetch_last_epoch ends in the leader's log"
    )
    fetch_last_epoch: Map[Replica, LeaderEpoch] = var(
        "request: the epoch of the follower's last record; diverged: the largest epoch of the leader not above it"
    )
    fetch_record: Map[Replica, Maybe[Record]] = var("answer: the record at that offset, if there is one")
    fetch_watermark: Map[Replica, Offset] = var("answer: the leader's high watermark")

    # One AlterPartition per leader, in either direction (KIP-497).
    alter: Map[Replica, Alter] = var("the AlterPartition of each leader: request, answer or none in flight")
    alter_isr: Map[Replica, Set[Replica]] = var("the in-sync set it proposes")
    alter_leader_epoch: Map[Replica, LeaderEpoch] = var("the leader epoch of the leader that proposes it")
    alter_partition_epoch: Map[Replica, PartitionEpoch] = var("the partition epoch that it would replace")
    alter_broker_epoch: Map[Replica, BrokerEpoch] = var(
        "the incarnation of the replica that it would add", when=RESTARTS > 0
    )

    # The controller: the partition's metadata, and the brokers' registrations.
    controller_leader: Maybe[Replica] = var("the elected leader")
    controller_epoch: LeaderEpoch = var("its leader epoch")
    controller_partition_epoch: PartitionEpoch = var("how often the metadata has changed")
    controller_isr: Set[Replica] = var("the in-sync replicas (ISR)")
    controller_elr: Set[Replica] = var("the eligible leader replicas (ELR, KIP-966)")
    last_known_leader: Maybe[Replica] = var("who led when the ISR became empty (LastKnownElr, KIP-966)")
    fenced: Set[Replica] = var("brokers without a session")
    shutting_down: Set[Replica] = var("brokers in controlled shutdown", when=SHUTDOWNS > 0)
    clean_shutdown: Set[Replica] = var("stopped brokers that left the mark of a clean shutdown", when=SHUTDOWNS > 0)

    # Clients, and history that no guard reads.
    written_in: Seq[Record, LeaderEpoch] = var("the leader epoch in which each record was written")
    acked: Set[Record] = var("records acknowledged to their producer", ghost=True)
    committed: Seq[Offset, Record] = var("the true committed sequence: all that any leader committed", ghost=True)
    position: Offset = var("the consumer's next offset", when=CONSUMERS > 0)
    consumed: Seq[Offset, Record] = var("what the consumer has read", when=CONSUMERS > 0, ghost=True)

    # Faults so far.
    crashes: Crashes = var("crashes so far")
    lossy_crashes: LossyCrashes = var("crashes so far that lost a suffix of a log")
    sessions_lost: SessionsLost = var("sessions lost so far by living brokers")
    unnoticed: Unnoticed = var("restarts so far that nobody noticed")
    shutdowns: Shutdowns = var("controlled shutdowns so far")


@initial
def healthy(new: State, first: Replica) -> Step:
    """All replicas are alive and in sync with an empty log, one of them leads, and the others fetch from it."""
    return (
        new.alive == Replica.all(),
        new.log == blank(new.log),
        new.high_watermark == blank(new.high_watermark),
        new.leader == Map.build(Replica, lambda r: Maybe.of(first)),
        new.leader_epoch == blank(new.leader_epoch),
        new.truncating == blank(new.truncating),
        new.broker_epoch == blank(new.broker_epoch),
        new.isr == Map.build(Replica, lambda r: when(r == first, Replica.all(), blank(new.controller_isr))),
        new.pending_isr == blank(new.pending_isr),
        new.partition_epoch == blank(new.partition_epoch),
        new.follower_end == blank(new.follower_end),
        new.follower_broker_epoch == blank(new.follower_broker_epoch),
        new.leading_since == blank(new.leading_since),
        new.known_away == blank(new.known_away),
        new.fetch == Map.build(Replica, lambda r: when(r == first, Fetch.NONE, Fetch.REQUESTED)),
        new.fetch_to == Map.build(Replica, lambda r: when(r == first, blank(new.controller_leader), Maybe.of(first))),
        new.fetch_epoch == blank(new.fetch_epoch),
        new.fetch_offset == blank(new.fetch_offset),
        new.fetch_last_epoch == blank(new.fetch_last_epoch),
        new.fetch_record == blank(new.fetch_record),
        new.fetch_watermark == blank(new.fetch_watermark),
        new.alter == blank(new.alter),
        new.alter_isr == blank(new.alter_isr),
        new.alter_leader_epoch == blank(new.alter_leader_epoch),
        new.alter_partition_epoch == blank(new.alter_partition_epoch),
        new.alter_broker_epoch == blank(new.alter_broker_epoch),
        new.controller_leader == first,
        new.controller_epoch == 0,
        new.controller_partition_epoch == 0,
        new.controller_isr == Replica.all(),
        new.controller_elr == blank(new.controller_elr),
        new.last_known_leader == NONE,
        new.fenced == blank(new.fenced),
        new.shutting_down == blank(new.shutting_down),
        new.clean_shutdown == blank(new.clean_shutdown),
        new.written_in == blank(new.written_in),
        new.acked == blank(new.acked),
        new.committed == blank(new.committed),
        new.position == 0,
        new.consumed == blank(new.consumed),
        new.crashes == 0,
        new.lossy_crashes == 0,
        new.sessions_lost == 0,
        new.unnoticed == 0,
        new.shutdowns == 0,
    )


# Definitions: what a state says about a replica.


@define
def leads(s: State, r: Replica) -> Bool:
    """The replica is alive and believes that it leads (a zombie does, too)."""
    return s.alive.has(r) & (s.leader[r] == r)


@define
def log_end(s: State, r: Replica) -> Offset:
    """The log end offset (LEO): where the replica's next record goes."""
    return s.log[r].length()


@define
def epoch_at(s: State, r: Replica, o: Offset) -> LeaderEpoch:
    """The leader epoch of the record at an offset of the replica's log."""
    return s.written_in[s.log[r][o]]


@define
def last_epoch(s: State, r: Replica) -> LeaderEpoch:
    """The leader epoch of the replica's last record, 0 for an empty log."""
    return when(log_end(s, r) == 0, blank(s.leader_epoch[r]), epoch_at(s, r, log_end(s, r) - 1))


@define
def epoch_not_above(s: State, r: Replica, e: LeaderEpoch) -> LeaderEpoch:
    """The largest leader epoch in the replica's log that is not above e, 0 when there is none (KIP-279)."""
    return largest((when(epoch_at(s, r, o) <= e, epoch_at(s, r, o), 0) for o in Offset.below(log_end(s, r))), or_else=0)


@define
def end_of_epoch(s: State, r: Replica, e: LeaderEpoch) -> Offset:
    """Where the records of epochs up to e end in the replica's log (LeaderEpochFileCache.endOffsetFor)."""
    return smallest(
        (when(epoch_at(s, r, o) > e, o, log_end(s, r)) for o in Offset.below(log_end(s, r))),
        or_else=log_end(s, r),
    )


@define
def start_of_own_epoch(s: State, leader: Replica) -> Offset:
    """Where the leader's own epoch starts in its log, its log end while it has not appended."""
    return smallest(
        (
            when(epoch_at(s, leader, o) == s.leader_epoch[leader], o, log_end(s, leader))
            for o in Offset.below(log_end(s, leader))
        ),
        or_else=log_end(s, leader),
    )


@define
def maximal_isr(s: State, leader: Replica) -> Set[Replica]:
    """The leader's in-sync set and what it has asked to add to it: all that may be in sync by now (KIP-497)."""
    return s.isr[leader] | s.pending_isr[leader]


@define
def enough(s: State, leader: Replica, members: Set[Replica]) -> Bool:
    """(7) The set has min.insync.replicas members, as the leader takes that number (Partition.effectiveMinIsr)."""
    return members.size() >= MIN_INSYNC


def smaller(a: Offset, b: Offset) -> Offset:
    """The lesser of two offsets."""
    return when(a <= b, a, b)


def larger(a: Offset, b: Offset) -> Offset:
    """The greater of two offsets."""
    return when(a >= b, a, b)


@define
def holds(s: State, r: Replica, m: Record) -> Bool:
    """The record is in the replica's log."""
    return exists(s.log[r][o] == m for o in Offset.below(log_end(s, r)))
