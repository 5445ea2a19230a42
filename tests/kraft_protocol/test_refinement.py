"""The quorum at message grain is a refinement of the abstract one, on every edge, and a planted mistake is none.

Without it what is explored on the abstract quorum could be untrue of Kafka's Raft, and nobody would see it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check import native
from isr_check.engine import Exploration, Limits, Progress, Verdict
from isr_lang import Instance, Value
from kraft_protocol.abstract_quorum import ABSTRACT_QUORUM
from kraft_protocol.by_name import DESIGNS
from kraft_protocol.refinement import implements_abstract_quorum, observed_quorum

pytestmark = pytest.mark.explores

Bounds = Mapping[str, Value]
PROMISE = implements_abstract_quorum.name
TWO: Bounds = {"voters": 2, "epochs": 2, "log": 2}
THREE: Bounds = {"voters": 3, "epochs": 1, "log": 1, "writes": 0}
"""The least bounds in which a vote that was given twice elects somebody."""


def explored(name: str, bounds: Bounds, steps: int | None = None) -> Exploration:
    """All states within the bounds, or all of so many steps, one for all that differ in names only."""
    depth = [0]

    def notes_depth(progress: Progress) -> None:
        depth[0] = progress.depth

    limits = Limits(stop=lambda: steps is not None and depth[0] > steps)
    instance = Instance(observed_quorum(DESIGNS[name]), bounds)
    return native.explore(instance, (PROMISE,), limits, notes_depth, symmetry=True)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({}, id="no fault"),
        pytest.param({"restarts": 1}, id="a restart", marks=pytest.mark.slow),
        pytest.param({"lost_disks": 1}, id="a lost disk", marks=pytest.mark.slow),
        pytest.param({"lost_disks": 1, "dynamic": True}, id="directory ids", marks=pytest.mark.slow),
    ],
)
def test_two_voters_take_steps_of_the_abstract_quorum_only(faults: Bounds) -> None:
    exploration = explored("kraft", {**TWO, **faults})
    assert exploration.complete
    assert exploration.finding(PROMISE).verdict is Verdict.HOLDS


@pytest.mark.slow
def test_three_voters_take_steps_of_the_abstract_quorum_only() -> None:
    exploration = explored("kraft", {"voters": 3, "epochs": 1, "log": 2})
    assert exploration.complete
    assert exploration.finding(PROMISE).verdict is Verdict.HOLDS


@pytest.mark.long
def test_a_vote_that_is_given_twice_is_no_step_of_it() -> None:
    finding = explored("kraft-votes-again", THREE, 8).finding(PROMISE)
    assert finding.verdict is Verdict.VIOLATED
    assert finding.path is not None
    assert len(finding.path.steps) == 8
    assert finding.path.steps[-1][0] == "voter_answers_vote"


@pytest.mark.long
def test_the_control_takes_as_many_steps() -> None:
    exploration = explored("kraft", THREE, 8)
    assert exploration.finding(PROMISE).verdict is not Verdict.VIOLATED
    assert exploration.complete or exploration.depth >= 8


# The abstract quorum itself


def verdicts(bounds: Bounds) -> dict[str, Verdict]:
    exploration = native.explore(Instance(ABSTRACT_QUORUM, bounds), (), Limits(), lambda _: None, symmetry=True)
    assert exploration.complete
    return {f.name: f.verdict for f in exploration.findings if f.kind in ("always", "step")}


def test_the_abstract_quorum_keeps_its_promises() -> None:
    assert set(verdicts({"voters": 3, "terms": 2}).values()) == {Verdict.HOLDS}


def test_a_lost_disk_breaks_all_of_them_but_its_types() -> None:
    broken = {name for name, v in verdicts({"voters": 3, "terms": 2, "lost_disks": 1}).items() if v is Verdict.VIOLATED}
    assert broken == {p.name for p in ABSTRACT_QUORUM.properties if p.kind in ("always", "step")}


def test_with_directory_ids_it_breaks_none() -> None:
    judged = verdicts({"voters": 3, "terms": 1, "lost_disks": 1, "dynamic": True})
    assert set(judged.values()) == {Verdict.HOLDS}
