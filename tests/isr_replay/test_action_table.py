"""The step table names every action and every variable of the model, and the page says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isr_broker.core import inputs, messages
from isr_lang import Instance
from isr_model import KIP_966
from isr_replay.action_table import STEPS, STUTTERS, VARIABLES, tables
from isr_replay.environment import Environment

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")


def test_the_page_has_the_tables_as_they_are() -> None:
    assert tables() in PAGE


def test_every_action_has_its_input_and_nothing_else_has() -> None:
    assert list(STEPS) == [action.name for action in KIP_966.actions]


def test_every_variable_has_its_place_and_nothing_else_has() -> None:
    assert list(VARIABLES) == [variable.name for variable in KIP_966.variables]


def test_what_is_told_exists() -> None:
    said = " ".join(f"{step.core_input} {step.composite}" for step in STEPS.values())
    named = set(re.findall(r"`(\w+)`", said))
    known = {*vars(inputs), *vars(messages)}
    assert named
    assert named <= known
    asked = {"AppendLog", "TruncateLog", "AssignEpoch"}
    assert set(re.findall(r"`([A-Z]\w+)`", " ".join(STUTTERS))) <= known | asked


@pytest.mark.parametrize("replicas", [2, 3])
def test_the_abstraction_of_the_initial_states_is_initial(replicas: int) -> None:
    from isr_check.reference import Evaluator

    instance = Instance(KIP_966, {"replicas": replicas})
    world = Environment(instance, tuple(range(replicas)), own_look=False)
    found = [world.packing.unpack(world.bits(state)) for state in world.initial_states()]
    assert found == [state for _, state in Evaluator(instance).initial_states()]
