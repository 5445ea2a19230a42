"""The state of one voter of the metadata quorum: its quorum-state, its log as it knows it, and its part.

Everything here is a value; `voter` says how it changes. Beside each field stands the variable of the model that it is
the concrete form of (`kraft_protocol.state`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

import attrs
from immutables import Map

from isr_broker.core.effects import Slice
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import Error, LeaderEpoch, Offset
from isr_broker.core.quorum_messages import (
    DirectoryId,
    FetchSnapshotResponse,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    SnapshotId,
    VoterId,
    VoterNode,
    VoterSet,
)

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
    """It fetches from the leader of its epoch; whether it has with success since it knows of it (has_fetched).

    `snapshot`: which one it fetches (fetching_snapshot).
    """

    has_fetched: bool = False
    snapshot: SnapshotId | None = None


@attrs.frozen(kw_only=True)
class QuorumLeader:
    """It leads its epoch; where each of the others fetched in it, and with which disk (follower_end, -_directory).

    `catch_up_ends`: where those have to fetch to have caught up once that have not (awaited_end).
    """

    ends: Map[VoterId, Offset] = attrs.field(factory=Map[VoterId, Offset])
    directories: Map[VoterId, DirectoryId | None] = attrs.field(factory=Map[VoterId, "DirectoryId | None"])
    catch_up_ends: Map[VoterId, Offset] = attrs.field(factory=Map[VoterId, Offset])


@attrs.frozen
class Resigned:
    """It led its epoch and does so no more; it neither votes nor leads in it."""


Part: TypeAlias = Unattached | Nominee | QuorumFollower | QuorumLeader | Resigned


@attrs.frozen(kw_only=True)
class QuorumState:
    """What the file `quorum-state` has (QuorumStateData): it is on disk before anybody hears of it.

    - `epoch`: the epoch of the voter (epoch). `vote`: for whom it voted in it, and with which disk (vote,
      vote_directory). `leader`: who leads it (leader).
    """

    epoch: LeaderEpoch = 0
    vote: VoterId | None = None
    leader: VoterId | None = None
    vote_directory: DirectoryId | None = None


@attrs.frozen
class VoterSets:
    """The voter sets of a log, each with the offset of its record (voters_at; VoterSetHistory).

    `first`: that with which the disk was formatted, or the fixed one of controller.quorum.voters (first_voters).
    """

    first: VoterSet
    records: tuple[tuple[Offset, VoterSet], ...] = ()

    @property
    def last(self) -> VoterSet:
        """(11) It counts as soon as its record is in the log, committed or not (lastVoterSet)."""
        return self.records[-1][1] if self.records else self.first

    @property
    def end(self) -> Offset:
        """The position after the last of these records, 0 if there is none; model: end_of_voters."""
        return self.records[-1][0] + 1 if self.records else 0

    def cut(self, end: Offset) -> VoterSets:
        """(11) Of a log that was cut: the sets before are back."""
        return attrs.evolve(self, records=tuple(record for record in self.records if record[0] < end))

    def from_start(self, start: Offset) -> VoterSets:
        """Of a log that begins there: of the sets before that the last stays, as the snapshot has it."""
        before, later = self.cut(start), tuple(record for record in self.records if record[0] >= start)
        kept = ((start - 1, before.last),) if before.records else ()
        return attrs.evolve(self, records=(*kept, *later))

    def appended(self, records: tuple[tuple[Offset, VoterSet], ...]) -> VoterSets:
        """Of a log to which these were appended."""
        return attrs.evolve(self, records=(*self.records, *records)) if records else self


def fixed_voters(voters: Iterable[VoterId]) -> VoterSets:
    """Voters that never change, whatever disk each has (kraft.version 0)."""
    return VoterSets(VoterSet({voter: VoterNode() for voter in voters}))


@attrs.frozen
class OpenRequest:
    """A request without an answer so far. An answer with another number is to one that was given up."""

    number: int
    request: QuorumRequest


@attrs.frozen(kw_only=True)
class Voter:
    """One voter.

    - `me`, `directory`: its id, and that of its disk, None where that does not count (directory).
    - `sets`: who votes, itself included if it does.
    - `quorum`: its quorum-state. `log`: where its log begins and ends, and its epochs (log, log_start).
    - `snapshot`: the last one that it has. A disk that was formatted with voters has one, of no records.
    - `high_watermark`: what is below it, it knows to be committed (high_watermark).
    - `part`: what it is in its epoch (role, and what belongs to that).
    - `requests`: its open requests, by whom it asks (request). `request_count`: how many it has sent in this life.
    """

    me: VoterId
    sets: VoterSets
    directory: DirectoryId | None = None
    quorum: QuorumState = attrs.field(factory=QuorumState)
    log: LogView = attrs.field(factory=LogView)
    snapshot: SnapshotId | None = None
    high_watermark: Offset | None = None
    part: Part = attrs.field(factory=Unattached)
    requests: Map[VoterId, OpenRequest] = attrs.field(factory=Map[VoterId, OpenRequest])
    request_count: int = 0

    @property
    def epoch(self) -> LeaderEpoch:
        """The epoch that it is in."""
        return self.quorum.epoch

    @property
    def voters(self) -> frozenset[VoterId]:
        """The ids of those that it takes for voters; model: electors."""
        return frozenset(self.sets.last)

    @property
    def votes(self) -> bool:
        """(10) It is a voter as far as it knows, with this disk; otherwise it is an observer. Model: is_voter."""
        return names(self.sets.last.get(self.me), self.directory)

    @property
    def is_alone(self) -> bool:
        """It is the only voter as far as it knows; model: is_only_voter."""
        return self.votes and len(self.sets.last) == 1

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, be that in the snapshot; 0 if there is none (OffsetAndEpoch of RaftLog)."""
        return max(self.log.last_epoch, 0 if self.snapshot is None else self.snapshot.epoch)


def names(node: VoterNode | None, directory: DirectoryId | None) -> bool:
    """(10) The entry of a voter set is that of this disk of its node, and of no other (VoterSet.VoterNode.isVoter)."""
    return node is not None and node.directory == directory


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


@attrs.frozen
class LeaderFound:
    """An observer has asked anybody, and heard of this epoch, and who leads it."""

    epoch: LeaderEpoch
    leader: VoterId | None


@attrs.frozen
class AddVoter:
    """A leader is to add a node that has caught up with it (AddVoterHandler)."""

    voter: VoterId
    node: VoterNode


@attrs.frozen
class RemoveVoter:
    """A leader is to remove this voter, which has this disk (RemoveVoterHandler)."""

    voter: VoterId
    directory: DirectoryId | None


@attrs.frozen
class UpdateVoter:
    """A leader is to note where a voter listens (UpdateVoterHandler)."""

    voter: VoterId
    node: VoterNode


@attrs.frozen
class TakeSnapshot:
    """A voter is to take a snapshot of what is before this offset, which is committed (createSnapshot)."""

    end: Offset


ChangeVoters: TypeAlias = AddVoter | RemoveVoter | UpdateVoter
VoterInput: TypeAlias = (
    Signal | RequestArrived | ResponseArrived | RequestExpired | Propose | LeaderFound | ChangeVoters | TakeSnapshot
)


# What a voter asks of its driver, in this order: whatever is for the disk is done, and flushed, before what follows.


@attrs.frozen
class SaveQuorumState:
    """Replace the file quorum-state (FileQuorumStateStore.writeElectionState)."""

    quorum: QuorumState


@attrs.frozen(kw_only=True)
class AppendLeaderChange:
    """Append a LeaderChange of this epoch at the log end (LeaderState.appendStartOfEpochControlRecords).

    It names whose votes made the leader, its own among them. `first_voters`: what the log has not yet, and is to have
    in the same batch, behind the version of that.
    """

    epoch: LeaderEpoch
    offset: Offset
    voters: VoterSet
    granting: frozenset[VoterId]
    first_voters: VoterSet | None = None

    @property
    def end(self) -> Offset:
        """The offset after the batch: a LeaderChange, and maybe a KRaftVersion and Voters."""
        return self.offset + (1 if self.first_voters is None else 3)


@attrs.frozen(kw_only=True)
class AppendVoters:
    """Append a voter set of this epoch at the log end."""

    epoch: LeaderEpoch
    offset: Offset
    voters: VoterSet


@attrs.frozen
class RefuseChange:
    """The voters are not changed, and why not."""

    error: Error


@attrs.frozen
class AppendQuorumLog:
    """Append batches, which have their offsets and epochs, at the log end."""

    records: bytes


@attrs.frozen
class TruncateQuorumLog:
    """Cut the log at this offset (RaftLog.truncateToEndOffset)."""

    end: Offset


@attrs.frozen
class KeepSnapshot:
    """Keep a snapshot of what was committed before its end, with these voters if they change; the log begins there.

    A log of which that is not a part is given up.
    """

    snapshot: SnapshotId
    voters: VoterSet


@attrs.frozen
class InstallSnapshot:
    """Put a snapshot that was fetched in the place of the log (truncateToLatestSnapshot)."""

    snapshot: SnapshotId
    contents: bytes


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


@attrs.frozen(kw_only=True)
class AnswerFetchSnapshot:
    """Send the answer to a request for a snapshot, with what that has."""

    to: VoterId
    number: int
    response: FetchSnapshotResponse


class Failure(Enum):
    """Why a process has to end: going on would break what was promised, or another voter has lost its disk."""

    IMPOSSIBLE_LEADER = "an epoch has another leader than the one that is known, or this voter, which does not lead"
    TRUNCATION_BELOW_WATERMARK = "the log is to be cut below the high watermark"
    SNAPSHOT_BEHIND = "the leader's snapshot does not end behind the log"
    WATERMARK_BACK = "the leader's high watermark is below the one that is known"


@attrs.frozen
class EndProcess:
    """End the process; what is on its disk stays (KafkaRaftClientDriver: a fatal fault)."""

    failure: Failure


VoterEffect: TypeAlias = (
    SaveQuorumState
    | AppendLeaderChange
    | AppendVoters
    | RefuseChange
    | AppendQuorumLog
    | TruncateQuorumLog
    | SendRequest
    | SendResponse
    | AnswerQuorumFetch
    | AnswerFetchSnapshot
    | KeepSnapshot
    | InstallSnapshot
    | EndProcess
)


@attrs.frozen
class VoterStep:
    """The voter after an input, and what it asks for."""

    voter: Voter
    effects: tuple[VoterEffect, ...] = ()
