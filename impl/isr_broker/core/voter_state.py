"""The state of one voter of the metadata quorum: its quorum-state, its log as it knows it, and its part.

Everything here is a value; `voter` says how it changes. Beside each field stands the variable of the model that it is
the concrete form of (`kraft_protocol.state`).
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import attrs
from immutables import Map

from isr_broker.core.effects import Slice
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import LeaderEpoch, Offset
from isr_broker.core.quorum_messages import QuorumFetchResponse, QuorumRequest, QuorumResponse, VoterId

# The part that a voter plays (Kafka: the classes below EpochState).


@attrs.frozen
class Unattached:
    """It knows no leader of its epoch, and waits for one, or to stand."""


@attrs.frozen(kw_only=True)
class Nominee:
    """It has asked the others for votes, or for pre-votes: a candidate, or a prospective voter.

    Who has granted and who has rejected that, itself among the first (granting, rejecting; EpochElection).
    """

    pre_vote: bool
    granting: frozenset[VoterId]
    rejecting: frozenset[VoterId] = frozenset()


@attrs.frozen(kw_only=True)
class QuorumFollower:
    """It fetches from the leader of its epoch; whether it has with success since it knows of it (has_fetched)."""

    has_fetched: bool = False


@attrs.frozen(kw_only=True)
class QuorumLeader:
    """It leads its epoch; where each of the others fetched in it (follower_end)."""

    ends: Map[VoterId, Offset] = attrs.field(factory=Map[VoterId, Offset])


@attrs.frozen
class Resigned:
    """It led its epoch and does so no more; it neither votes nor leads in it."""


Part: TypeAlias = Unattached | Nominee | QuorumFollower | QuorumLeader | Resigned


@attrs.frozen(kw_only=True)
class QuorumState:
    """What the file `quorum-state` has (QuorumStateData): it is on disk before anybody hears of it.

    - `epoch`: the epoch of the voter (epoch). `vote`: for whom it voted in it (vote). `leader`: who leads it (leader).
    """

    epoch: LeaderEpoch = 0
    vote: VoterId | None = None
    leader: VoterId | None = None


@attrs.frozen
class OpenRequest:
    """A request without an answer so far. An answer with another number is to one that was given up."""

    number: int
    request: QuorumRequest


@attrs.frozen(kw_only=True)
class Voter:
    """One voter.

    - `me`, `voters`: its id, and those of all voters, itself included (controller.quorum.voters).
    - `quorum`: its quorum-state. `log`: where its log ends, and its epochs (log).
    - `high_watermark`: what is below it, it knows to be committed (high_watermark).
    - `part`: what it is in its epoch (role, and what belongs to that).
    - `requests`: its open requests, by whom it asks (request). `request_count`: how many it has sent in this life.
    """

    me: VoterId
    voters: frozenset[VoterId]
    quorum: QuorumState = attrs.field(factory=QuorumState)
    log: LogView = attrs.field(factory=LogView)
    high_watermark: Offset | None = None
    part: Part = attrs.field(factory=Unattached)
    requests: Map[VoterId, OpenRequest] = attrs.field(factory=Map[VoterId, OpenRequest])
    request_count: int = 0

    @property
    def epoch(self) -> LeaderEpoch:
        """The epoch that it is in."""
        return self.quorum.epoch

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, 0 of an empty log (OffsetAndEpoch of RaftLog)."""
        return max(self.log.last_epoch, 0)


def part_name(voter: Voter) -> str:
    """What a voter is, in a word of Kafka's."""
    match voter.part:
        case Nominee(pre_vote=pre_vote):
            return "prospective" if pre_vote else "candidate"
        case QuorumFollower():
            return "follower"
        case QuorumLeader():
            return "leader"
        case Resigned():
            return "resigned"
        case Unattached():
            return "unattached"


# What a voter is told.


class Signal(Enum):
    """Inputs without content.

    - `TIMER`: the timer of its part has run out: it has heard too little of a leader, of voters or of followers.
    - `RESIGN`: a leader is to step down (KafkaRaftClient.resign).
    """

    TIMER = "timer"
    RESIGN = "resign"


@attrs.frozen(kw_only=True)
class RequestArrived:
    """A request of another voter, with the number that its answer is to bear."""

    sender: VoterId
    number: int
    request: QuorumRequest


@attrs.frozen(kw_only=True)
class ResponseArrived:
    """The answer of another voter to the request of this number."""

    sender: VoterId
    number: int
    response: QuorumResponse


@attrs.frozen
class RequestExpired:
    """The request to this voter is taken for lost (RequestManager.isResponseExpected)."""

    voter: VoterId


@attrs.frozen
class Propose:
    """Batches of the controller that a leader is to append (KafkaRaftClient.prepareAppend)."""

    records: bytes


VoterInput: TypeAlias = Signal | RequestArrived | ResponseArrived | RequestExpired | Propose


# What a voter asks of its driver, in this order: whatever is for the disk is done, and flushed, before what follows.


@attrs.frozen
class SaveQuorumState:
    """Replace the file quorum-state (FileQuorumStateStore.writeElectionState)."""

    quorum: QuorumState


@attrs.frozen(kw_only=True)
class AppendLeaderChange:
    """Append a LeaderChange of this epoch at the log end (LeaderState.appendStartOfEpochControlRecords).

    It names whose votes made the leader, its own among them.
    """

    epoch: LeaderEpoch
    offset: Offset
    granting: frozenset[VoterId]


@attrs.frozen
class AppendQuorumLog:
    """Append batches, which have their offsets and epochs, at the log end."""

    records: bytes


@attrs.frozen
class TruncateQuorumLog:
    """Cut the log at this offset (ReplicatedLog.truncateToEndOffset)."""

    end: Offset


@attrs.frozen(kw_only=True)
class SendRequest:
    """Send a request to another voter."""

    to: VoterId
    number: int
    request: QuorumRequest


@attrs.frozen(kw_only=True)
class SendResponse:
    """Send the answer to a request."""

    to: VoterId
    number: int
    response: QuorumResponse


@attrs.frozen(kw_only=True)
class AnswerQuorumFetch:
    """Send the answer to a fetch, with what the slice of the log has."""

    to: VoterId
    number: int
    response: QuorumFetchResponse
    slice: Slice


class Failure(Enum):
    """Why a process has to end: going on would break what was promised, or another voter has lost its disk."""

    IMPOSSIBLE_LEADER = "an epoch has another leader than the one that is known, or this voter, which does not lead"
    TRUNCATION_BELOW_WATERMARK = "the log is to be cut below the high watermark"
    WATERMARK_BACK = "the leader's high watermark is below the one that is known"


@attrs.frozen
class EndProcess:
    """End the process; what is on its disk stays (KafkaRaftClientDriver: a fatal fault)."""

    failure: Failure


VoterEffect: TypeAlias = (
    SaveQuorumState
    | AppendLeaderChange
    | AppendQuorumLog
    | TruncateQuorumLog
    | SendRequest
    | SendResponse
    | AnswerQuorumFetch
    | EndProcess
)


@attrs.frozen
class VoterStep:
    """The voter after an input, and what it asks for."""

    voter: Voter
    effects: tuple[VoterEffect, ...] = ()
