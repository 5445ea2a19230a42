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
    if is_refused and action == "leader_answers_fetch_snapshot" and _sends_no_snapshot(before, parameters):
        return NO_SNAPSHOT_ERROR
    if kind == "inconsistent state" and action == "voter_takes_snapshot" and _forgets(before, parameters, places):
        return FORGETS_VOTERS
    return ""


def explain_in(release: str) -> Explain:
    """The same of one release; all that are driven have these differences."""
    del release
    return explain


def _is_removed(before: Values, r: str, leader: str) -> bool:
    """Whether the last voter set in the leader's log is without this node, which is in no later epoch."""
    if "voters_at" not in before:
        return False
    voters_at = cast("Mapping[str, Values]", cast("Values", before["voters_at"])[leader])
    sets = [voters for _, voters in sorted(voters_at.items()) if any(d is not None for d in voters.values())]
    epochs = cast("Mapping[str, int]", before["epoch"])
    return bool(sets) and sets[-1][r] is None and epochs[r] <= epochs[leader]


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
