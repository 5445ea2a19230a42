"""Differences of Kafka's Raft are known where they show, and nowhere else: beside each, a state that is no such one.

Without these a difference that nobody has seen before would be counted as a known one.
"""

from collections.abc import Mapping, Sequence

import pytest

from isr_kafka.known_differences import Place
from isr_kafka.known_raft_differences import explain

NONE = {"v1": None, "v2": None}
BOTH = {"v1": 0, "v2": 0}
ONLY_V1 = {"v1": 0, "v2": None}
STATE: Mapping[str, object] = {
    "epoch": {"v1": 1, "v2": 0},
    "leader": {"v1": "v1", "v2": None},
    "role": {"v1": "leader", "v2": "unattached"},
    "directory": {"v1": 0, "v2": 0},
    "joiners": [],
    "log_start": {"v1": 1, "v2": 0},
    "fetching_snapshot": {"v1": 0, "v2": 1},
    "request": {"v1": {"v1": "none", "v2": "end"}, "v2": {"v1": "none", "v2": "none"}},
    "voters_at": {"v1": {"0": BOTH, "1": ONLY_V1, "2": NONE}, "v2": {"0": NONE, "1": NONE, "2": NONE}},
}
BEGINS = {"r": "v2", "leader": "v1"}
FORGOTTEN = [("voters_at[v1][0][v1]", 0, None), ("voters_at[v1][0][v2]", 0, None)]
OTHER = [("follower_end[v1][v2]", 1, 0), ("follower_directory[v1][v2]", 0, 1), ("awaited_end[v1][v2]", None, 1)]


def known(
    kind: str, action: str, parameters: Mapping[str, object], places: Sequence[Place] = (), **changes: object
) -> str:
    """The letter of a difference in this state but for some variables; nothing where none is known."""
    return explain(kind, {**STATE, **changes}, action, parameters, places, None)[:1]


def test_an_acknowledgement_of_a_removed_voter_is_known() -> None:
    both_at_last = {"v1": {"0": BOTH, "1": NONE, "2": NONE}, "v2": {"0": NONE, "1": NONE, "2": NONE}}
    assert known("missing action", "voter_answers_begin", BEGINS) == "A"
    assert not known("missing action", "voter_answers_begin", BEGINS, voters_at=both_at_last)
    assert not known("missing action", "voter_answers_vote", BEGINS)
    assert not known("inconsistent state", "voter_answers_begin", BEGINS)


def test_voters_that_a_snapshot_forgets_are_known() -> None:
    assert known("inconsistent state", "voter_takes_snapshot", {"r": "v1", "end": 1}, FORGOTTEN) == "B"
    assert not known("inconsistent state", "voter_takes_snapshot", {"r": "v1", "end": 2}, FORGOTTEN)
    more = [*FORGOTTEN, ("high_watermark[v1]", 1, None)]
    assert not known("inconsistent state", "voter_takes_snapshot", {"r": "v1", "end": 1}, more)


def test_a_snapshot_that_is_gone_is_known() -> None:
    answers = {"r": "v1", "f": "v2"}
    assert known("missing action", "leader_answers_fetch_snapshot", answers) == "C"
    in_epoch = {"v1": 1, "v2": 1}
    assert not known("missing action", "leader_answers_fetch_snapshot", answers, epoch=in_epoch)


@pytest.mark.parametrize(
    ("kind", "action"), [("missing action", "voter_answers_end"), ("unexpected action", "voter_fails_at_request")]
)
def test_the_end_of_a_leader_without_endpoints_is_known(kind: str, action: str) -> None:
    new_disk = {"v1": 0, "v2": 1}
    assert known(kind, action, BEGINS, directory=new_disk) == "D"
    assert not known(kind, action, BEGINS)
    assert not known(kind, action, BEGINS, directory=new_disk, epoch={"v1": 1, "v2": 2})


def test_a_fetch_of_another_disk_is_known() -> None:
    assert known("inconsistent state", "leader_removes_voter", {"r": "v1", "v": "v2"}, OTHER) == "E"
    assert not known("inconsistent state", "leader_removes_voter", {"r": "v1", "v": "v2"}, [*OTHER, ("role[v1]", 0, 1)])
    assert not known("inconsistent state", "leader_removes_voter", {"r": "v1", "v": "v2"}, OTHER[:1])
