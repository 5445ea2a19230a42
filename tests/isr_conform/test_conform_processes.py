"""Steps of the model on real broker processes, with real sockets, files and kills: each state is the model's.

`make test ARGS="-m slow -k processes"` drives many walks.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping

import attrs
import pytest
from tests.support.suts import processes, schedule

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_broker.trace_reader import read_life
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import Limits
from isr_lang.declare import Value
from isr_replay import Kind
from isr_validate import validate

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

R1, R2, R3 = range(3)
THREE: Mapping[str, Value] = {"replicas": 3, "log": 2, "records": 3, "epochs": 2, "isr_changes": 4, "crashes": 1}

STORY = (
    # A record is committed and acknowledged.
    ("leader_appends", {"leader": R1}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
    ("follower_appends", {"follower": R2}),
    ("leader_answers_fetch", {"leader": R1, "follower": R3}),
    ("follower_appends", {"follower": R3}),
    ("leader_answers_fetch", {"leader": R1, "follower": R2}),
    ("leader_answers_fetch", {"leader": R1, "follower": R3}),
    # The leader writes one more, which nobody gets, and is killed; its checkpoint is from before the commit.
    ("leader_appends", {"leader": R1}),
    ("broker_crashes", {"r": R1, "checkpoint": 0}),
    ("controller_fences_leader", {"r": R1, "successor": R2}),
    ("becomes_follower", {"r": R3}),
    ("becomes_leader", {"r": R2}),
    # It returns, and cuts what it alone had; then it joins the ISR.
    ("broker_restarts", {"r": R1}),
    ("becomes_follower", {"r": R1}),
    ("controller_unfences", {"r": R1}),
    ("leader_answers_fetch", {"leader": R2, "follower": R3}),
    ("leader_answers_diverging", {"leader": R2, "follower": R1}),
    ("follower_truncates", {"follower": R1}),
    ("leader_answers_fetch", {"leader": R2, "follower": R1}),
    ("leader_proposes_expansion", {"leader": R2, "f": R1}),
    ("controller_accepts_alter_partition", {"leader": R2}),
    ("leader_adopts_isr", {"leader": R2}),
    ("follower_appends", {"follower": R1}),
    # One more is written; the leader asks to drop who lags, but leadership is moved before that is decided.
    ("follower_appends", {"follower": R3}),
    ("leader_appends", {"leader": R2}),
    ("leader_proposes_shrink", {"leader": R2, "lagging": 1 << R1}),
    ("controller_moves_leadership", {"leader": R3}),
    ("controller_rejects_stale_alter_partition", {"leader": R2}),
    ("becomes_leader", {"r": R3}),
    ("becomes_follower", {"r": R2}),
    ("leader_answers_diverging", {"leader": R3, "follower": R2}),
    ("follower_truncates", {"follower": R2}),
)  # fmt: skip


def test_a_story_of_a_crash_an_election_and_a_return() -> None:
    with processes(THREE, schedule(R1, *STORY)) as (system, run):
        done = carried_out(run)
        assert done.differences == []
        assert done.skipped_steps == []
        assert done.edges == done.steps == len(STORY)
        assert system.sut.actions is not None
        assert system.sut.actions.history.acked == 0b1, "the second record was lost with its leader, unacknowledged"
        assert len(system.sut.actions.processes.running) == 4
        traces = [*(system.sut.actions.processes.root / "traces").glob("*.jsonl")]
        lives = [read_life(file.name.removesuffix(".jsonl"), file.read_bytes()) for file in traces]
    told = validate(sorted(lives, key=lambda life: (life.node, life.name)))
    assert told.rejected is None, "what the processes wrote meanwhile is a run of the model, too"
    assert told.events > 60
    assert system.sut.actions.processes.running == {}


def test_processes_that_forget_the_minimum_are_noticed() -> None:
    """Without a minimum there is no ELR, from which the model would still elect."""
    steps = [
        ("leader_appends", {"leader": R1}),
        ("leader_proposes_shrink", {"leader": R1, "lagging": 1 << R2}),
        ("controller_accepts_alter_partition", {"leader": R1}),
        ("leader_adopts_isr", {"leader": R1}),
    ]
    with processes({"replicas": 2, "crashes": 0}, schedule(R1, *steps)) as (system, run):
        real = system.sut.actions
        assert real is not None
        real.cores.settings = attrs.evolve(real.cores.settings, min_insync_replicas=1)
        done = carried_out(run)
    assert done.count == {Kind.INCONSISTENT: 1}
    (difference,) = done.differences
    assert (difference.action, len(difference.path)) == ("controller_accepts_alter_partition", 2)
    assert difference.places == (("controller_elr", ["r2"], []),)


def test_walks_through_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    sut = f"{shlex.quote(sys.executable)} -m isr_processes.process_sut"
    walks = ["--sample", "1", "--longest", "15", "--patience", "500", "--seed", "4"]
    code = main(["conform", "--sut", sut, "--replicas", "2", "--min-insync", "1", *walks, "--json", "-"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["differences"]) == (Exit.HOLDS, {})
    assert told["steps"] >= 15
    assert 10 <= told["edges"]["driven"] <= 15
    assert told["system"] == "real broker processes"


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"crashes": 1, "lossy_crashes": 1},
        {"crashes": 1, "sessions_lost": 1, "shutdowns": 1},
        {"crashes": 1, "unclean": True, "min_insync": 1, "consumers": 1, "follower_reads": True},
    ],
)
def test_many_walks_with_every_fault(more: Mapping[str, Value]) -> None:
    bounds = {**THREE, "epochs": 4, "isr_changes": 6, **more}
    with processes(bounds, Limits(walks=20, walk_length=60, seed=1)) as (_, run):
        done = carried_out(run)
    assert done.differences == []
    assert done.edges > 500
