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
    var,
    when,
)
from isr_lang.blank import blank

# Bounds: how large the explored world is.
VOTERS = bound("voters", "voters of the quorum", default=2, low=2, high=5)
EPOCHS = bound("epochs", "epochs after the first, in which nobody leads", default=1, low=1, high=5)
LOG = bound("log", "records that fit into a log, those of new leaders included", default=2, low=1, high=6)
WRITES = bound("writes", "records of clients", default=1, high=4)

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


class Answer(Choice):
    """Its answer: none yet, a vote or none, an error with an epoch and a leader, or what a fetch brings."""

    NONE: ClassVar[Answer]
    GRANT: ClassVar[Answer]
    REJECTION: ClassVar[Answer]
    ERROR: ClassVar[Answer]
    DIVERGING: ClassVar[Answer]
    FETCHED: ClassVar[Answer]


class State(Struct):
    """Everything is a function of a voter, of two, of an epoch, or of nothing; messages are variables, too."""

    # On the disk of each voter: the quorum-state file, and the log.
    epoch: Map[Voter, Epoch] = var("the epoch of each voter")
    vote: Map[Voter, Maybe[Voter]] = var("for whom it voted in that epoch")
    leader: Map[Voter, Maybe[Voter]] = var("who leads that epoch, if it knows")
    log: Map[Voter, Seq[Offset, Epoch]] = var("the records each voter holds, each the epoch in which it was written")

    # In its memory.
    alive: Set[Voter] = var("voters whose process runs")
    role: Map[Voter, Role] = var("the state that each voter is in")
    high_watermark: Map[Voter, Maybe[Offset]] = var("offsets below it are known by the voter to be committed")
    has_fetched: Set[Voter] = var("followers that have fetched from their leader with success")
    granting: Map[Voter, Set[Voter]] = var("who grants a nominee's vote")
    rejecting: Map[Voter, Set[Voter]] = var("who rejects it")
    follower_end: Map[Voter, Map[Voter, Maybe[Offset]]] = var("the offset at which each leader saw each follower fetch")

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

    # Clients, faults so far, and history that no guard reads.
    writes: Writes = var("records of clients so far")
    restarts: Restarts = var("crashes so far that kept the disk")
    lost_disks: LostDisks = var("crashes so far that lost it")
    leaders: Map[Epoch, Set[Voter]] = var("who has ever led each epoch", ghost=True)
    committed: Seq[Offset, Epoch] = var("the true committed sequence: all that any leader committed", ghost=True)


@initial
def empty(new: State) -> Step:
    """Every voter runs with an empty disk, and nobody knows of anybody."""
    return (
        new.epoch == blank(new.epoch),
        new.vote == blank(new.vote),
        new.leader == blank(new.leader),
        new.log == blank(new.log),
        new.alive == Voter.all(),
        new.role == blank(new.role),
        new.high_watermark == blank(new.high_watermark),
        new.has_fetched == blank(new.has_fetched),
        new.granting == blank(new.granting),
        new.rejecting == blank(new.rejecting),
        new.follower_end == blank(new.follower_end),
        new.request == blank(new.request),
        new.answer == blank(new.answer),
        new.answer_epoch == blank(new.answer_epoch),
        new.answer_leader == blank(new.answer_leader),
        new.answer_record == blank(new.answer_record),
        new.answer_last_epoch == blank(new.answer_last_epoch),
        new.answer_end == blank(new.answer_end),
        new.answer_watermark == blank(new.answer_watermark),
        new.writes == 0,
        new.restarts == 0,
        new.lost_disks == 0,
        new.leaders == blank(new.leaders),
        new.committed == blank(new.committed),
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
def epoch_not_above(s: State, r: Voter, e: Epoch) -> Epoch:
    """The largest epoch in the voter's log that is not above e, and e itself where there is none."""
    below = exists(s.log[r][o] <= e for o in Offset.below(log_end(s, r)))
    most = largest((when(s.log[r][o] <= e, s.log[r][o], blank(e)) for o in Offset.below(log_end(s, r))), or_else=0)
    return when(below, most, e)


@define
def end_of_epoch(s: State, r: Voter, e: Epoch) -> Offset:
    """Where the records of epochs up to e end in the voter's log."""
    end = log_end(s, r)
    return smallest((when(s.log[r][o] > e, o, end) for o in Offset.below(end)), or_else=end)
