"""The voter's core, held to the model of the quorum edge by edge, and mistakes planted in it."""

import shlex
import sys
from pathlib import Path

import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_conform.voter_sut import VoterSut
from isr_lang import Design, Instance
from kraft_model import KRAFT
from kraft_protocol.designs.voter_changes import KRAFT_853

CORE = [sys.executable, "-m", "isr_conform.voter_sut"]
TWO = {"voters": 2, "epochs": 2, "log": 2, "writes": 1}
RESTARTED = {"voters": 2, "restarts": 1}
LOST = {"voters": 2, "lost_disks": 1}
THREE = {"voters": 3, "epochs": 3, "log": 3, "writes": 2, "restarts": 1}
"""By walks: with two voters nobody with a shorter log has a majority."""


CHANGED = {"voters": 2}
LOST_AND_REPLACED = {"voters": 2, "log": 4, "changes": 2, "lost_disks": 1}
JOINED = {"voters": 2, "joiners": 1}
SNAPSHOTS = {"voters": 2, "snapshots": 1}
"""Of the design in which voters are known by their directory ids, and change."""


def driven(
    constants: dict[str, int], command: list[str], limits: Limits | None = None, design: Design = KRAFT
) -> ConformanceResult:
    return conform(Instance(design, constants), shlex.join(command), limits or Limits(), patience=60.0)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("constants", "edges"),
    [(TWO, 8_334), *(pytest.param(*row, marks=pytest.mark.slow) for row in ((RESTARTED, 26_836), (LOST, 61_520)))],
    ids=["neither", "restart", "lost disk"],
)
def test_the_core_takes_every_edge_of_two_voters_and_no_other(constants: dict[str, int], edges: int) -> None:
    done = driven(constants, CORE)
    assert done.conforms, done.differences
    assert done.edges == edges


@pytest.mark.processes
@pytest.mark.parametrize(
    ("constants", "edges"),
    [
        (CHANGED, 11_600),
        (JOINED, 13_904),
        pytest.param(LOST_AND_REPLACED, 72_702, marks=pytest.mark.slow),
        pytest.param({**JOINED, "writes": 1, "restarts": 1}, 144_108, marks=pytest.mark.slow),
    ],
    ids=["changed", "joined", "lost disk", "restart"],
)
def test_the_core_takes_every_edge_of_two_voters_that_change(constants: dict[str, int], edges: int) -> None:
    done = driven(constants, CORE, design=KRAFT_853)
    assert done.conforms, done.differences
    assert done.edges == edges


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize(("design", "edges"), [(KRAFT, 20_922), (KRAFT_853, 42_138)], ids=["fixed", "changing"])
def test_the_core_takes_every_edge_of_two_voters_with_a_snapshot(design: Design, edges: int) -> None:
    done = driven({"voters": 2, "snapshots": 1}, CORE, design=design)
    assert done.conforms, done.differences
    assert done.edges == edges


@pytest.mark.processes
def test_the_core_takes_walks_of_three_voters() -> None:
    done = driven(THREE, CORE, Limits(walks=8, walk_length=120, seed=1))
    assert done.conforms, done.differences
    assert done.edges > 500


MISTAKES = {
    "votes again": (TWO, "grants_vote = lambda voter, request: voter_module.up_to_date(voter, request)"),
    "every pre-vote": (TWO, "grants_pre_vote = lambda voter, request: voter_module.up_to_date(voter, request)"),
    "one vote elects": (TWO, "is_granted = lambda voter, part: True"),
    "waits without a majority": (TWO, "is_rejected = lambda voter, part: False"),
    "commits alone": (TWO, "majority_end = lambda voter, part: voter.log.end"),
    "a leader starts as one": (
        RESTARTED,
        "_resigns = lambda voter: voter_module._leads(voter, voter.epoch, voter.voters)",
    ),
    "the longer log wins": (THREE, "up_to_date = lambda voter, request: voter.log.end <= request.log_end"),
    "commits any epoch": (TWO, "may_commit = lambda voter, up_to: up_to > (voter.high_watermark or 0)"),
    "no vote is saved": (TWO, "SaveQuorumState = lambda quorum: voter_module.SendNothing"),
}
"""In which bounds, and what is put into the place of which function of the core."""

MISTAKES_OF_CHANGES = {
    "any disk acknowledges": (LOST_AND_REPLACED, "names = lambda node, directory: node is not None"),
    "any disk votes": (LOST_AND_REPLACED, "is_asked = lambda voter, request: True"),
    "changes at once": (LOST_AND_REPLACED, "may_change = lambda voter: voter.high_watermark is not None"),
    "changes early": (CHANGED, "may_change = lambda voter: True"),
    "sends no snapshot": (SNAPSHOTS, "needs_snapshot = lambda voter, request: False"),
    "keeps all voter sets": (SNAPSHOTS, "VoterSets.from_start = lambda sets, start: sets"),
    "adds who is behind": (JOINED, "has_caught_up = lambda part, change: change.voter in part.ends"),
}
"""The same for voters that change."""

PLANTED = """
import isr_broker.core.voter as voter_module
from isr_broker.core.voter_state import TruncateQuorumLog
voter_module.SendNothing = TruncateQuorumLog(99)
voter_module.{mistake}
from isr_conform.kit import run
from isr_conform.voter_sut import VoterSut
run(VoterSut())
"""


@pytest.mark.processes
@pytest.mark.parametrize("name", [*MISTAKES, *MISTAKES_OF_CHANGES])
def test_a_mistake_in_the_core_is_found(name: str, tmp_path: Path) -> None:
    design = KRAFT if name in MISTAKES else KRAFT_853
    constants, mistake = (MISTAKES | MISTAKES_OF_CHANGES)[name]
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED.format(mistake=mistake))
    limits = (
        Limits(walks=200, walk_length=120, seed=1, stop_at_first=True)
        if constants is THREE
        else Limits(stop_at_first=True)
    )
    assert not driven(constants, [sys.executable, str(planted)], limits, design).conforms


def test_a_design_that_is_not_the_cores_is_refused() -> None:
    sut = VoterSut()
    sut.design, sut.constants = "kafka-17426", {"dynamic": "on"}
    assert sut.refusal() == "the voter's core is compared with kraft and kraft-853, not with kafka-17426"
    sut.design, sut.constants = "kraft", {"dynamic": False, "snapshots": 1}
    assert sut.refusal() is None
