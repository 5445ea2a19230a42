"""`insync graph`: the quotient has every state once, its arrows are steps, and broken states are marked."""

import json
from pathlib import Path

import pytest
from tests.conftest import require_package

from insync_cli.main import main
from insync_cli.registry import design_named, instance_of
from isr_check.reference import Evaluator
from isr_trace.replay import Replay
from isr_visual.state_graph import TooLarge, dot, state_graph

BOUNDS = {"replicas": 2, "log": 1, "records": 1, "epochs": 0, "isr_changes": 1, "crashes": 0}


def evaluator(design: str, **more: int) -> Evaluator:
    return Evaluator(instance_of(design_named(design), {**BOUNDS, **more}))


def test_the_quotient_has_every_state_once_and_every_action_on_an_arrow() -> None:
    runs = evaluator("kip-966")
    whole = state_graph(runs, whole=True, states_at_most=5_000)
    quotient = state_graph(runs, whole=False, states_at_most=5_000)
    assert whole.states == quotient.states == len(whole.groups) == sum(g.states for g in quotient.groups)
    assert len(quotient.groups) < whole.states / 5
    taken = {name for names in whole.arrows.values() for name in names}
    assert taken == {name for names in quotient.arrows.values() for name in names}
    assert taken <= {a.name for a in runs.instance.actions}
    assert 1 <= sum(g.initial for g in quotient.groups) <= len(Replay(runs).starts)
    assert any(g.label.startswith("r1 leads\\nISR of 2\\nall up") for g in quotient.groups)


def test_a_node_in_which_a_promise_is_broken_is_marked() -> None:
    assert not any(g.broken for g in state_graph(evaluator("kip-966"), whole=False, states_at_most=5_000).groups)
    found = state_graph(evaluator("kafka-15583"), whole=False, states_at_most=5_000)
    marked = [g for g in found.groups if g.broken]
    assert marked
    assert all("leaders-complete" in g.broken and 0 < g.breaking <= g.states for g in marked)
    assert dot(found).count("#fbeae8") == len(marked)


def test_a_world_that_is_too_large_is_not_drawn_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TooLarge):
        state_graph(evaluator("kip-966"), whole=False, states_at_most=10)
    assert main(["graph", "kip-966", "--states", "10"]) == 20
    assert "more than 10 states" in capsys.readouterr().err


@pytest.mark.processes
def test_the_picture_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_package("dot")
    target, told = tmp_path / "graph.svg", tmp_path / "graph.json"
    bounds = [f"--{name.replace('_', '-')}={value}" for name, value in BOUNDS.items()]
    assert main(["graph", "kip-966", *bounds, "--svg", str(target), "--json", str(told)]) == 0
    assert "no promise is broken" in capsys.readouterr().out
    assert "r1 leads" in target.read_text(encoding="utf-8")
    assert json.loads(told.read_text())["schema"] == "insync/graph/1"
