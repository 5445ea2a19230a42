"""Mistakes planted in Kafka's Raft, to see that the comparison with the model of the quorum finds them.

They are planted as those of `mistakes`, and driven by the adapter of the quorum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from isr_kafka.mistakes import Mistake

RAFT: Final = "org.apache.kafka.raft"
TWO: Final[Mapping[str, int]] = {"voters": 2, "epochs": 1, "log": 1, "writes": 0}
TWO_EPOCHS: Final[Mapping[str, int]] = {"voters": 2, "epochs": 2, "log": 2, "writes": 1}
THREE_VOTERS: Final[Mapping[str, int]] = {"voters": 3, "epochs": 2, "log": 2, "writes": 1, "restarts": 1}
"""By walks: with two voters a follower hears of nobody but its leader, and no two logs part."""
CHANGE: Final[Mapping[str, int]] = {"voters": 2, "epochs": 1, "log": 2}
SNAPSHOT: Final[Mapping[str, int]] = {"voters": 2, "epochs": 1, "log": 3, "snapshots": 1}
RESTART: Final[Mapping[str, int]] = {"voters": 2, "epochs": 1, "log": 1, "writes": 0, "restarts": 1}
JOINER: Final[Mapping[str, int]] = {"voters": 3, "epochs": 1, "log": 2, "joiners": 1}
"""By walks."""
TRUNCATION: Final[Mapping[str, int]] = {"voters": 3, "epochs": 2, "log": 3}
"""By walks."""


def _mistake(
    name: str, method: str, answers: str, says: str, bounds: Mapping[str, int] = TWO, design: str = "kraft"
) -> Mistake:
    type_name, _, of_type = method.rpartition(".")
    return Mistake(name, f"{RAFT}.{type_name}", of_type, answers, says, bounds, design)


def _of_voters(name: str, method: str, answers: str, says: str, bounds: Mapping[str, int] = CHANGE) -> Mistake:
    return _mistake(name, method, answers, says, bounds, "kraft-853")


def _of_waiting(name: str, method: str, says: str, bounds: Mapping[str, int] = TWO) -> Mistake:
    mistake = _mistake(name, f"internals.ThresholdPurgatory.{method}", "nothing", says, bounds, "kraft-waiting-fetches")
    return attrs.evolve(mistake, properties={"insync.waiting-fetches": "true"})


MISTAKES: Final = (
    _mistake(
        "any-pre-vote",
        "FollowerState.canGrantVote",
        "true",
        "a follower that has fetched from its leader grants pre-votes, and votes (KIP-996)",
        THREE_VOTERS,
    ),
    _mistake(
        "votes-again",
        "UnattachedState.canGrantVote",
        "true",
        "a voter votes for another in the same epoch, and for a log that is behind",
        TWO_EPOCHS,
    ),
    _mistake("one-vote-elects", "internals.EpochElection.isVoteGranted", "true", "a nominee needs no majority"),
    _mistake(
        "never-rejected",
        "internals.EpochElection.isVoteRejected",
        "nothing",
        "a prospective voter waits on where no majority is to be had",
    ),
    _mistake(
        "fetch-not-noted",
        "FollowerState.resetFetchTimeoutForSuccessfulFetch",
        "nothing",
        "a follower forgets that it has fetched from its leader, and grants pre-votes",
    ),
    _mistake("never-commits", "LeaderState.maybeUpdateHighWatermark", "nothing", "no high watermark ever moves"),
    _mistake(
        "watermark-not-taken",
        "FollowerState.updateHighWatermark",
        "nothing",
        "a follower does not take over the leader's high watermark",
    ),
    _mistake(
        "requests-not-dropped",
        "RequestManager.resetAll",
        "nothing",
        "a voter that enters another role waits for answers to its former requests (rule 9)",
        TWO_EPOCHS,
    ),
    _mistake(
        "never-truncates",
        "RaftLog.truncateToEndOffset",
        "nothing",
        "a follower keeps records that its leader does not have",
        THREE_VOTERS,
    ),
    _of_voters(
        "adds-who-lags",
        "LeaderState.isReplicaCaughtUp",
        "true",
        "a leader adds a node that has not caught up with it",
        JOINER,
    ),
    _of_voters(
        "removed-leader-stays",
        "internals.RemoveVoterHandler.highWatermarkUpdated",
        "nothing",
        "a leader that has removed itself does not resign when that is committed (rule 13)",
    ),
    _of_voters(
        "former-voters-count",
        "LeaderState.updateVoterAndObserverStates",
        "nothing",
        "a leader counts the voters that it had before (rule 11)",
    ),
    _of_voters(
        "removed-voter-stands",
        "VoterSet.isVoter",
        "true",
        "a node that is no voter stands for election",
    ),
    _of_voters(
        "voters-not-taken-back",
        "internals.VoterSetHistory.truncateNewEntries",
        "nothing",
        "a follower that has truncated a record with voters keeps these (rule 11)",
        TRUNCATION,
    ),
    _of_voters(
        "snapshot-not-fetched",
        "FollowerState.setFetchingSnapshot",
        "nothing",
        "a follower whose log ends before the leader's begins does not fetch the snapshot",
        SNAPSHOT,
    ),
    _of_waiting(
        "waits-on-without-leader",
        "completeAllExceptionally",
        "a fetch waits on at a voter that has resigned, or that follows another leader",
    ),
    _of_waiting(
        "waits-on-after-append",
        "maybeComplete",
        "a fetch waits on where the leader has appended a record",
        TWO_EPOCHS,
    ),
)
WAITS_ON_AFTER_COMMIT: Final = _of_waiting(
    "waits-on-after-commit",
    "completeAll",
    "a fetch waits on where the high watermark has moved (KIP-1166, since Kafka 4.1)",
    {"voters": 4, "epochs": 1, "log": 1, "writes": 0},
)
"""Along a few steps. With two or three voters a fetch that waits at the end of the log has made a majority."""
VOTE_NOT_SAVED: Final = _mistake(
    "vote-not-saved",
    "FileQuorumStateStore.writeElectionState",
    "nothing",
    "a voter does not write for whom it voted, nor its epoch, and has forgotten both when it starts again",
    RESTART,
)
LOG_NOT_TRUNCATED: Final = _mistake(
    "log-not-truncated",
    "internals.KafkaRaftLog.truncateTo",
    "nothing",
    "the files of a follower keep records that its leader does not have",
    THREE_VOTERS,
)
"""As the one before, in a class that only the adapter on files has."""
BY_WALKS: Final = (THREE_VOTERS, JOINER, TRUNCATION)
"""Bounds along which not every edge is driven."""
