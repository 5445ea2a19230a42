"""What there is: the bounds and the state of one quorum of voters, at message grain.

Each voter has what is on its disk (the quorum-state file and the log), the state that it is in, and one request to each
other voter. A request has no content of its own. What it says is a function of its sender's state, for a sender that
changes its state drops its requests. An answer has content, in the variables `answer_*`.

A record is the epoch in which it was written, and the first of an epoch is its leader's LeaderChange. A message may be
delayed for as long as one likes, and not to act on it is to have lost it, so loss needs no action. Time is not
modelled: a timer may fire whenever it runs. Nobody lies.

Logs and quorum-state are flushed within the step that changes them, so a restart keeps both. A lost disk takes both.
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
    smallest,
    switch,
    var,
    when,
)
from isr_lang.blank import blank

# Bounds: how large the explored world is.
VOTERS = bound("voters", "voters of the quorum", default=2, low=2, high=5)
EPOCHS = bound("epochs", "epochs after the first, in which nobody leads", default=1, low=1, high=5)
LOG = bound("log", "records that fit into a log, those of new leaders included", default=2, low=1, high=6)
WRITES = bound("writes", "records of clients", default=1, high=4)

# What may be different from a fixed set of voters.
DYNAMIC = switch(
    "dynamic", "kraft.version 1: the log has the voter sets, and a voter is its id and its directory", default=False
)
JOINERS = bound("joiners", "nodes that may be no voters at first", default=0, high=3)
CHANGES = bound("changes", "changes of the voter set", default=0, high=3, budget=True)
SNAPSHOTS = bound("snapshots", "snapshots that voters take", default=0, high=3, budget=True)

# Fault budgets: how often the environment may do its worst.
RESTARTS = bound("restarts", "crashes that keep the disk", default=0, high=4, budget=True)
LOST_DISKS = bound("lost_disks", "crashes that lose the disk", default=0, high=2, budget=True)


class Voter(Sort, size=VOTERS, prefix="v"):
    """A voter of the quorum: a controller, or a broker that is one, too."""


class Epoch(Number, high=EPOCHS):
    """Grows with every election; at most one voter leads in each."""


class Offset(Number, high=LOG):
    """A position in a log; as a log end offset or watermark, the position after the last record."""


class Writes(Number, high=WRITES):
    """How many records of clients were written."""


class Restarts(Number, high=RESTARTS):
    """How many crashes that kept the disk."""


class LostDisks(Number, high=LOST_DISKS):
    """How many crashes that lost it."""


class Snapshots(Number, high=SNAPSHOTS):
    """How many snapshots."""


class Changes(Number, high=CHANGES):
    """How many changes of the voter set."""


class Directory(Number, high=LOST_DISKS):
    """The directory id of a node: which of its disks it has. A lost one is replaced by another."""


VoterSet = Map[Voter, Maybe[Directory]]
"""The directory of each voter, none for who is no voter (VoterSet). Endpoints and versions of voters are left out."""


class Role(Choice):
    """The state that a voter is in: the classes below EpochState."""

    UNATTACHED: ClassVar[Role]
    PROSPECTIVE: ClassVar[Role]
    CANDIDATE: ClassVar[Role]
    FOLLOWER: ClassVar[Role]
    LEADER: ClassVar[Role]
    RESIGNED: ClassVar[Role]


class Request(Choice):
    """The one request from a voter to another. It stays until its answer is handled (RequestManager)."""

    NONE: ClassVar[Request]
    PRE_VOTE: ClassVar[Request]
    VOTE: ClassVar[Request]
    BEGIN: ClassVar[Request]
    END: ClassVar[Request]
    FETCH: ClassVar[Request]
    FETCH_SNAPSHOT: ClassVar[Request]


class Answer(Choice):
    """Its answer: none yet, a vote or none, an error with an epoch and a leader, or what a fetch brings."""

    NONE: ClassVar[Answer]
    GRANT: ClassVar[Answer]
    REJECTION: ClassVar[Answer]
    ERROR: ClassVar[Answer]
    DIVERGING: ClassVar[Answer]
    FETCHED: ClassVar[Answer]
    SNAPSHOT_ID: ClassVar[Answer]
    SNAPSHOT: ClassVar[Answer]


class State(Struct):
    """Everything is a function of a voter, of two, of an epoch, or of nothing; messages are variables, too."""

    # On the disk of each voter: the quorum-state file, and the log.
    epoch: Map[Voter, Epoch] = var("the epoch of each voter")
    vote: Map[Voter, Maybe[Voter]] = var("for whom it voted in that epoch")
    leader: Map[Voter, Maybe[Voter]] = var("who leads that epoch, if it knows")
    log: Map[Voter, Seq[Offset, Epoch]] = var("the records each voter holds, each the epoch in which it was written")
    voters_at: Map[Voter, Map[Offset, VoterSet]] = var(
        "the voter set that each of these records has, empty where it has none", when=DYNAMIC
    )
    log_start: Map[Voter, Offset] = var(
        "where each log begins; the records before that are in the snapshot which ends there", when=SNAPSHOTS > 0
    )
    fetching_snapshot: Map[Voter, Offset] = var(
        "where the snapshot ends that each follower fetches", when=SNAPSHOTS > 0
    )
    vote_directory: Map[Voter, Directory] = var("the directory of whom it voted for", when=DYNAMIC)
    directory: Map[Voter, Directory] = var("the directory of each node", when=DYNAMIC)

    # In its memory.
    alive: Set[Voter] = var("voters whose process runs")
    role: Map[Voter, Role] = var("the state that each voter is in")
    high_watermark: Map[Voter, Maybe[Offset]] = var("offsets below it are known by the voter to be committed")
    has_fetched: Set[Voter] = var("followers that have fetched from their leader with success")
    granting: Map[Voter, Set[Voter]] = var("who grants a nominee's vote")
    rejecting: Map[Voter, Set[Voter]] = var("who rejects it")
    follower_end: Map[Voter, Map[Voter, Maybe[Offset]]] = var("the offset at which each leader saw each follower fetch")

    follower_directory: Map[Voter, Map[Voter, Directory]] = var("the directory of the follower then", when=DYNAMIC)
    awaited_end: Map[Voter, Map[Voter, Maybe[Offset]]] = var(
        "where each follower has to fetch to have caught up with each leader once, none after that", when=CHANGES > 0
    )

    # One request from each voter to each other one, and its answer.
    request: Map[Voter, Map[Voter, Request]] = var("what the first asks the second")
    answer: Map[Voter, Map[Voter, Answer]] = var("the answer to it, none while there is none")
    answer_epoch: Map[Voter, Map[Voter, Epoch]] = var("answer: the epoch of who answers")
    answer_leader: Map[Voter, Map[Voter, Maybe[Voter]]] = var("answer: who leads that epoch")
    answer_record: Map[Voter, Map[Voter, Maybe[Epoch]]] = var("fetched: the record at that offset, if there is one")
    answer_last_epoch: Map[Voter, Map[Voter, Epoch]] = var(
        "diverging: the largest epoch of the leader's log that is not above that of the follower's last record"
    )
    answer_end: Map[Voter, Map[Voter, Offset]] = var("diverging: where that epoch ends in the leader's log")
    answer_watermark: Map[Voter, Map[Voter, Maybe[Offset]]] = var("fetched or diverging: the leader's high watermark")

    answer_voters: Map[Voter, Map[Voter, VoterSet]] = var("fetched: the voter set of that record", when=DYNAMIC)

    answer_log: Map[Voter, Map[Voter, Seq[Offset, Epoch]]] = var(
        "snapshot: the records that it stands for", when=SNAPSHOTS > 0
    )

    # Clients, faults so far, and history that no guard reads.
    writes: Writes = var("records of clients so far")
    restarts: Restarts = var("crashes so far that kept the disk")
    lost_disks: LostDisks = var("crashes so far that lost it")
    snapshots: Snapshots = var("snapshots so far", when=SNAPSHOTS > 0)
    joiners: Set[Voter] = var("nodes that were no voters at first", when=DYNAMIC)
    changes: Changes = var("changes of the voter set so far", when=DYNAMIC)
    leaders: Map[Epoch, Set[Voter]] = var("who has ever led each epoch", ghost=True)
    committed: Seq[Offset, Epoch] = var("the true committed sequence: all that any leader committed", ghost=True)
    committed_voters: Map[Offset, VoterSet] = var("the voter sets of these records", when=DYNAMIC, ghost=True)


@initial
def empty(new: State) -> Step:
    """Every voter runs with an empty disk, and nobody knows of anybody."""
    return (
        new.epoch == blank(new.epoch),
        new.vote == blank(new.vote),
        new.leader == blank(new.leader),
        new.log == blank(new.log),
        new.voters_at == blank(new.voters_at),
        new.log_start == blank(new.log_start),
        new.fetching_snapshot == blank(new.fetching_snapshot),
        new.vote_directory == blank(new.vote_directory),
        new.directory == blank(new.directory),
        new.alive == Voter.all(),
        new.role == blank(new.role),
        new.high_watermark == blank(new.high_watermark),
        new.has_fetched == blank(new.has_fetched),
        new.granting == blank(new.granting),
        new.rejecting == blank(new.rejecting),
        new.follower_end == blank(new.follower_end),
        new.follower_directory == blank(new.follower_directory),
        new.awaited_end == blank(new.awaited_end),
        new.request == blank(new.request),
        new.answer == blank(new.answer),
        new.answer_epoch == blank(new.answer_epoch),
        new.answer_leader == blank(new.answer_leader),
        new.answer_record == blank(new.answer_record),
        new.answer_last_epoch == blank(new.answer_last_epoch),
        new.answer_end == blank(new.answer_end),
        new.answer_watermark == blank(new.answer_watermark),
        new.answer_voters == blank(new.answer_voters),
        new.answer_log == blank(new.answer_log),
        new.writes == 0,
        new.restarts == 0,
        new.lost_disks == 0,
        new.snapshots == 0,
        new.joiners == blank(new.joiners),
        new.changes == 0,
        new.leaders == blank(new.leaders),
        new.committed == blank(new.committed),
        new.committed_voters == blank(new.committed_voters),
    )


# Definitions: what a state says about a voter.


@define
def leads(s: State, r: Voter) -> Bool:
    """The voter is alive, and the leader of its epoch as far as it knows."""
    return s.alive.has(r) & (s.role[r] == Role.LEADER)


@define
def log_end(s: State, r: Voter) -> Offset:
    """The log end offset: where the voter's next record goes."""
    return s.log[r].length()


@define
def last_epoch(s: State, r: Voter) -> Epoch:
    """The epoch of the last record, 0 of an empty log."""
    return when(log_end(s, r) == 0, blank(s.epoch[r]), s.log[r][log_end(s, r) - 1])


@define
def has_first_voters(s: State, r: Voter) -> Bool:
    """The disk of the node was formatted with the first voters (kafka-storage format --initial-controllers)."""
    return (s.directory[r] == 0) & ~s.joiners.has(r)


@define
def epoch_not_above(s: State, r: Voter, e: Epoch) -> Epoch:
    """The largest epoch in the voter's log that is not above e.

    Where there is none it is 0 for a node that was formatted with voters, because that begins with a snapshot of epoch
    0, and e itself for any other. KafkaRaftLog.endOffsetForEpoch.
    """
    below = exists(s.log[r][o] <= e for o in Offset.below(log_end(s, r)))
    most = largest((when(s.log[r][o] <= e, s.log[r][o], blank(e)) for o in Offset.below(log_end(s, r))), or_else=0)
    return when(below | (DYNAMIC & has_first_voters(s, r)), most, e)


@define
def end_of_epoch(s: State, r: Voter, e: Epoch) -> Offset:
    """Where the records of epochs up to e end in the voter's log."""
    end = log_end(s, r)
    return smallest((when(s.log[r][o] > e, o, end) for o in Offset.below(end)), or_else=end)


# Definitions: who votes.


@define
def names(entry: Maybe[Directory], d: Directory) -> Bool:
    """(10) An entry of a voter set is this disk of its node, and no other (VoterSet.VoterNode.isVoter)."""
    return entry == d


@define
def end_of_voters(s: State, r: Voter) -> Offset:
    """The position after the last record with a voter set in the log of r, 0 where there is none."""
    none = blank(s.voters_at[r][Offset.of(0)])
    return largest((when(s.voters_at[r][o] != none, o + 1, blank(o)) for o in Offset.below(log_end(s, r))), or_else=0)


@define
def first_voters(s: State, r: Voter) -> VoterSet:
    """The voter set with which the node was formatted: all but the joiners. A joiner has none, nor has a later disk.

    The bootstrap checkpoint, as kafka-storage format writes it with --initial-controllers.
    """
    none = blank(s.voters_at[r][Offset.of(0)][r])
    has_them = has_first_voters(s, r)
    return Map.build(Voter, lambda q: when(has_them & ~s.joiners.has(q), Maybe.of(Directory.of(0)), none))


@define
def voter_set(s: State, r: Voter) -> VoterSet:
    """(11) The last voter set in the log of r, committed or not; without one, that with which it was formatted.

    KRaftControlRecordStateMachine.lastVoterSet.
    """
    end = end_of_voters(s, r)
    return when(end == 0, first_voters(s, r), s.voters_at[r][end - 1])


def members(voters: VoterSet) -> Set[Voter]:
    """The ids of a voter set; with a static quorum those of all."""
    return when(DYNAMIC, Voter.all().where(lambda q: voters[q] != NONE), Voter.all())


def electors(s: State, r: Voter) -> Set[Voter]:
    """Whom the voter r takes for voters, by their ids."""
    return members(voter_set(s, r))


def is_voter(s: State, r: Voter) -> Bool:
    """The node is a voter as far as it knows (QuorumState.isVoter)."""
    return ~DYNAMIC | names(voter_set(s, r)[r], s.directory[r])


def is_only_voter(s: State, r: Voter) -> Bool:
    """The node is the only voter as far as it knows (QuorumState.isOnlyVoter)."""
    return DYNAMIC & is_voter(s, r) & (electors(s, r).size() == 1)
