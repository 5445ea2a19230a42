"""The step table names every action and every variable of the model, and the page says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isr_broker.core import inputs, messages
from isr_lang import Instance
from isr_model import KIP_966
from isr_protocol.designs.releases import KAFKA_4_4_MENDED
from isr_replay.action_table import OPERATION_STEPS, OPERATION_VARIABLES, STEPS, STUTTERS, VARIABLES, tables
from isr_replay.environment import Environment

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")


def test_the_page_has_the_tables_as_they_are() -> None:
    assert tables() in PAGE


def test_every_action_has_its_input_and_nothing_else_has() -> None:
    assert list(STEPS) == [action.name for action in KIP_966.actions]


def test_every_variable_has_its_place_and_nothing_else_has() -> None:
    assert list(VARIABLES) == [variable.name for variable in KIP_966.variables]


def test_what_people_do_has_its_inputs_and_places_too() -> None:
    """All but late metadata and messages that come twice, which no core is given (`core_system.NOT_COMPARED`)."""
    instance = Instance(KAFKA_4_4_MENDED, dict.fromkeys(("copies", "late_news", "snapshots_loaded", "old_metadata"), 0))
    late = {"leader_learns_brokers", "leader_hears_known_version", "leader_loads_snapshot", "image_is_delayed"}
    late |= {"controller_refuses_later_copy", "becomes_replaced_leader"}
    late |= {a.name for a in KAFKA_4_4_MENDED.actions if "_old_" in a.name}
    assert set(STEPS) | set(OPERATION_STEPS) == {a.name for a in KAFKA_4_4_MENDED.actions} - late
    assert {v.name for v in instance.variables} <= set(VARIABLES) | set(OPERATION_VARIABLES)
    assert set(OPERATION_VARIABLES) <= {v.name for v in KAFKA_4_4_MENDED.variables}


def test_what_is_told_exists() -> None:
    every = [*STEPS.values(), *OPERATION_STEPS.values()]
    said = " ".join(f"{step.core_input} {step.composite}" for step in every)
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
