"""Differences between Kafka's Raft and the model of the quorum that are known, each by the state in which it shows.

docs/kraft-classes.md tells them by letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from isr_kafka.known_differences import Explain, Place, Values

NO_VOTER_ACKNOWLEDGES: Final = "A: a leader's process ends when a voter that was removed answers its BeginQuorumEpoch"
FORGETS_VOTERS: Final = "B: a snapshot that ends where a record with voters begins has its process forget those before"
NO_SNAPSHOT_ERROR: Final = "C: no error can be sent in answer to a FetchSnapshot"
NO_ENDPOINTS: Final = "D: an EndQuorumEpoch ends the process of a node whose voter set is without that leader"
OTHER_DISK: Final = "E: a leader has noted the fetch of another disk of the voter that it removes"


def explain(
    kind: str,
    before: Values,
    action: str,
    parameters: Values,
    places: Sequence[Place],
    own: Sequence[Place] | None = None,
) -> str:
    """What is known of a difference, in a few words; nothing if nothing is. Its arguments are those of
    `known_differences.explain`.
    """
    is_refused = kind == "missing action" and not places and own is None
    if (
        is_refused
        and action == "voter_answers_begin"
        and _is_removed(before, cast("str", parameters["r"]), cast("str", parameters["leader"]))
    ):
        return NO_VOTER_ACKNOWLEDGES
    if _has_unknown_end(kind, before, action, parameters) and not places and own is None:
        return NO_ENDPOINTS
    if (
        kind == "inconsistent state"
        and action == "leader_removes_voter"
        and _has_other_disk(before, parameters, places)
    ):
        return OTHER_DISK
    if is_refused and action == "leader_answers_fetch_snapshot" and _sends_no_snapshot(before, parameters):
        return NO_SNAPSHOT_ERROR
    if kind == "inconsistent state" and action == "voter_takes_snapshot" and _forgets(before, parameters, places):
        return FORGETS_VOTERS
    return ""


def explain_in(release: str) -> Explain:
    """The same of one release; all that are driven have these differences."""
    del release
    return explain


def _voters_of(before: Values, r: str) -> set[str]:
    """The last voter set in the log of a node, or the one with which it was formatted."""
    voters_at = cast("Mapping[str, Values]", cast("Values", before["voters_at"])[r])
    sets = [{v for v, d in voters.items() if d is not None} for _, voters in sorted(voters_at.items())]
    sets = [voters for voters in sets if voters]
    joiners = set(cast("Sequence[str]", before["joiners"]))
    has_first = cast("Values", before["directory"])[r] == 0 and r not in joiners
    return sets[-1] if sets else set(voters_at["0"]) - joiners if has_first else set()


def _has_unknown_end(kind: str, before: Values, action: str, parameters: Values) -> bool:
    """RaftUtil.singletonEndQuorumEpochRequest has no endpoints of the leader, so the voter set has to have them.

    Without them KafkaRaftClient.transitionToFollower throws an IllegalArgumentException. So Kafka does not take the
    message, and its process ends, of which the model knows for another reason only.
    """
    is_missing = kind == "missing action" and action == "voter_answers_end"
    is_unexpected = kind == "unexpected action" and action == "voter_fails_at_request"
    if "voters_at" not in before or not (is_missing or is_unexpected):
        return False
    r, leader = cast("str", parameters["r"]), cast("str", parameters["leader"])
    epochs, leaders = cast("Mapping[str, int]", before["epoch"]), cast("Values", before["leader"])
    hears_first = epochs[r] < epochs[leader] or (epochs[r] == epochs[leader] and leaders[r] is None)
    asks = cast("Values", cast("Values", before["request"])[leader])[r]
    return asks == "end" and hears_first and leader not in _voters_of(before, r)


def _has_other_disk(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """LeaderState.getOrCreateReplicaState notes a disk that is no voter as an observer. The model's leader does not
    note it while another disk of that node is a voter.
    """
    r, v = cast("str", parameters["r"]), cast("str", parameters["v"])
    of_fetches = {f"{name}[{r}][{v}]" for name in ("follower_end", "follower_directory", "awaited_end")}
    is_another = any(place == f"follower_directory[{r}][{v}]" for place, _, _ in places)
    return is_another and all(place in of_fetches for place, _, _ in places)


def _is_removed(before: Values, r: str, leader: str) -> bool:
    """Whether the last voter set in the leader's log is without this node, which is in no later epoch."""
    epochs = cast("Mapping[str, int]", before["epoch"])
    return "voters_at" in before and r not in _voters_of(before, leader) and epochs[r] <= epochs[leader]


def _sends_no_snapshot(before: Values, parameters: Values) -> bool:
    """FetchSnapshotResponseData cannot be written without records, and RaftUtil gives an error none."""
    r, f = cast("str", parameters["r"]), cast("str", parameters["f"])
    of = {name: cast("Values", before[name]) for name in ("role", "epoch", "log_start", "fetching_snapshot")}
    leads = of["role"][r] == "leader" and of["epoch"][r] == of["epoch"][f]
    return not leads or of["log_start"][r] != of["fetching_snapshot"][f]


def _forgets(before: Values, parameters: Values, places: Sequence[Place]) -> bool:
    """TreeMapLogHistory.truncateOldEntries counts the record at the end of the snapshot among those before it.

    So of the voter sets up to that record only its own stays.
    """
    r, end = cast("str", parameters["r"]), cast("int", parameters["end"])
    if "voters_at" not in before:
        return False
    next_set = cast("Mapping[str, Values]", cast("Values", before["voters_at"])[r]).get(str(end), {})
    forgotten = {f"voters_at[{r}][{end - 1}][{v}]" for v in next_set}
    return (
        any(d is not None for d in next_set.values())
        and bool(places)
        and all(place in forgotten and kafka is None for place, _, kafka in places)
    )
