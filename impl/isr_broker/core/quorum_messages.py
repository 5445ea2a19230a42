"""What voters of the metadata quorum say to each other: KRaft's requests and their answers (KIP-595, KIP-996).

Every answer carries the epoch and the leader of whoever answers, for that is news to whoever has an older one. `error`
is NONE, or FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER where the request was in vain.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
from immutables import Map

from isr_broker.core.messages import EpochEnd, Error, LeaderEpoch, Offset

VoterId: TypeAlias = int
"""The `node.id` of a controller. With a static quorum it is all that a voter is (kraft.version 0)."""

DirectoryId: TypeAlias = bytes
"""The `directory.id` of a disk, 16 bytes. Where it is None, any disk of the node will do (kraft.version 0)."""


@attrs.frozen
class VoterNode:
    """One voter of a set: its disk, and where it listens, each with the listener's name (VoterSet.VoterNode)."""

    directory: DirectoryId | None = None
    endpoints: tuple[tuple[str, str, int], ...] = ()


VoterSet: TypeAlias = Map[VoterId, VoterNode]


@attrs.frozen(order=True)
class SnapshotId:
    """A snapshot has all records before its end; `epoch` is that of the last one (OffsetAndEpoch)."""

    epoch: LeaderEpoch
    end: Offset


@attrs.frozen(kw_only=True)
class VoteRequest:
    """May I lead this epoch? A pre-vote asks whether I could lead the next one (VoteRequest, `PreVote` from version 2).

    `last_epoch` and `log_end` say how far the log of the nominee reaches, `voter_directory` which disk is asked.
    """

    epoch: LeaderEpoch
    nominee: VoterId
    last_epoch: LeaderEpoch
    log_end: Offset
    pre_vote: bool
    nominee_directory: DirectoryId | None = None
    voter_directory: DirectoryId | None = None


@attrs.frozen(kw_only=True)
class BeginQuorumEpochRequest:
    """I lead this epoch."""

    epoch: LeaderEpoch
    leader: VoterId


@attrs.frozen(kw_only=True)
class EndQuorumEpochRequest:
    """I led this epoch, and resigned."""

    epoch: LeaderEpoch
    leader: VoterId


@attrs.frozen(kw_only=True)
class QuorumFetchRequest:
    """What comes after the end of my log? It acknowledges all before that, if the leader's log has its last epoch.

    Fetch of `__cluster_metadata-0`, with `CurrentLeaderEpoch`, `FetchOffset` and `LastFetchedEpoch`.
    """

    epoch: LeaderEpoch
    replica: VoterId
    last_epoch: LeaderEpoch
    log_end: Offset
    directory: DirectoryId | None = None


@attrs.frozen(kw_only=True)
class FetchSnapshotRequest:
    """May I have the snapshot with this id? It is sent in parts, which are one answer here."""

    epoch: LeaderEpoch
    replica: VoterId
    snapshot: SnapshotId
    directory: DirectoryId | None = None


QuorumRequest: TypeAlias = (
    VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | QuorumFetchRequest | FetchSnapshotRequest
)


@attrs.frozen(kw_only=True)
class VoteResponse:
    """Whether the vote, or the pre-vote, is granted."""

    error: Error = Error.NONE
    epoch: LeaderEpoch
    leader: VoterId | None
    vote_granted: bool = False


@attrs.frozen(kw_only=True)
class QuorumEpochResponse:
    """That a Begin- or EndQuorumEpoch was heard."""

    error: Error = Error.NONE
    epoch: LeaderEpoch
    leader: VoterId | None


@attrs.frozen(kw_only=True)
class QuorumFetchResponse:
    """Batches from the offset that was asked for, or where the follower's last epoch ends in the leader's log.

    - `records`: filled by the driver of the leader, which has the log, as the effect `AnswerQuorumFetch` asks.
    - `diverging`: set where the logs part, and then there are no records.
    - `voters`: the voter sets of these records, each with the offset of its record.
    - `snapshot`: set where the leader's log begins later, and then there are no records either.
    """

    error: Error = Error.NONE
    epoch: LeaderEpoch
    leader: VoterId | None
    high_watermark: Offset | None = None
    diverging: EpochEnd | None = None
    records: bytes = b""
    voters: tuple[tuple[Offset, VoterSet], ...] = ()
    snapshot: SnapshotId | None = None


@attrs.frozen(kw_only=True)
class FetchSnapshotResponse:
    """The snapshot that was asked for, with its voters if they change; SNAPSHOT_NOT_FOUND if the leader has it no more.

    `contents`: filled by the driver of the leader, as the effect `AnswerFetchSnapshot` asks.
    """

    error: Error = Error.NONE
    epoch: LeaderEpoch
    leader: VoterId | None
    snapshot: SnapshotId | None = None
    contents: bytes = b""
    voters: VoterSet | None = None


QuorumResponse: TypeAlias = VoteResponse | QuorumEpochResponse | QuorumFetchResponse | FetchSnapshotResponse
