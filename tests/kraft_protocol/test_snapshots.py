"""A node whose log ends before the leader's begins fetches the snapshot, and goes on behind it."""

from __future__ import annotations

import pytest

from isr_check.reference import Evaluator
from isr_lang import Instance
from isr_trace.replay import Move, Replay
from kraft_protocol.by_name import DESIGNS

pytestmark = pytest.mark.long

Steps = tuple[tuple[str, *tuple[int, ...]], ...]
BOUNDS = {"voters": 2, "epochs": 1, "log": 2, "joiners": 1, "changes": 1, "snapshots": 1}

BEFORE: Steps = (
    ("node_is_formatted_without_voters", 1),
    ("voter_stands", 0),
    ("voter_takes_snapshot", 0, 1),
    ("observer_finds_leader", 1, 0),
    ("leader_answers_fetch", 0, 1),
    ("follower_takes_fetch", 1, 0),
)
"""An only voter leads, and takes a snapshot; a joiner fetches, and hears that there is one."""
SNAPSHOT: Steps = (("leader_answers_fetch_snapshot", 0, 1), ("follower_takes_snapshot", 1, 0))
AFTER: Steps = (
    ("leader_answers_fetch", 0, 1),
    ("leader_adds_voter", 0, 1),
    ("follower_takes_fetch", 1, 0),
    ("leader_answers_fetch", 0, 1),
    ("follower_takes_fetch", 1, 0),
    ("leader_answers_fetch", 0, 1),
)
"""It fetches what comes after that, and the leader may make it a voter."""


def is_possible(steps: Steps) -> bool:
    run = Replay(Evaluator(Instance(DESIGNS["kraft-853"], BOUNDS))).exact((), [Move(a, tuple(p)) for a, *p in steps])
    return run is not None


def test_a_joiner_fetches_the_snapshot_and_becomes_a_voter() -> None:
    assert is_possible((*BEFORE, *SNAPSHOT, *AFTER))


def test_it_cannot_do_without() -> None:
    assert is_possible(BEFORE)
    assert not is_possible((*BEFORE, *AFTER[:1]))


def test_without_a_snapshot_there_is_none_to_fetch() -> None:
    others = tuple(s for s in BEFORE if s[0] != "voter_takes_snapshot")
    assert is_possible((*others, *AFTER[:2]))
    assert not is_possible((*others, *SNAPSHOT))
