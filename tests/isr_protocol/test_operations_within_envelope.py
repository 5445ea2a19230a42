"""The envelope while people work at a cluster: each condition on a deed is needed, and with all of them nothing is
lost.

Without these the proof of empty disks could rest on a condition that forbids every empty disk, or on too few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from isr_check.engine import Limits
from isr_check.native import explore
from isr_lang import Action, Design, Instance, Value
from isr_protocol.designs.operations_within_envelope import (
    CONDITIONS,
    KAFKA_4_4_MENDED_WITHIN_ENVELOPE,
    few_down_of_least,
)
from isr_protocol.designs.releases import KAFKA_4_4_MENDED

pytestmark = pytest.mark.explores

SURVIVES: Final = "acked-survives"
REST: Final[Mapping[str, Value]] = {
    **{"log": 1, "records": 1, "crashes": 0, "reassignments": 0, "sessions_lost": 0, "disks_replaced": 0},
    **{"replicas": 2, "min_insync": 2, "epochs": 2, "isr_changes": 5},
}
NEEDED: Final[Mapping[str, Mapping[str, Value]]] = {
    "broker_loses_power": {"lossy_crashes": 2},
    "disk_is_replaced": {"lossy_crashes": 1, "shutdowns": 1, "disks_replaced": 1},
    "directory_is_removed": {"lossy_crashes": 1, "shutdowns": 1, "directories_removed": 1},
    "controller_sets_minimum": {"lossy_crashes": 1, "minimum_changes": 1},
    "controller_reassigns_at_once": {"lossy_crashes": 1, "reassignments": 1, "epochs": 3, "isr_changes": 6},
    "controller_accepts_and_completes": {"lossy_crashes": 1, "reassignments": 2, "epochs": 3, "isr_changes": 7},
}
"""At which bounds a record is lost without the condition on this action, and with all others."""
LONG: Final = ("controller_accepts_and_completes",)
UNDECIDED: Final = ("broker_crashes", "controller_cancels_reassignment")
"""Conditions of which nothing shorter was found than what there is room for here; the proof asks for both."""


def design_with(conditions: Mapping[str, Action]) -> Design:
    """The mended design with these conditions on its actions."""
    made = KAFKA_4_4_MENDED.extending(**conditions)
    few = {"few_down": few_down_of_least} if any(d.name == "few_down" for d in made.definitions()) else {}
    return made.replacing("with-some", "kafka-4.4-mended with some conditions", because="one is left out.", **few)


def loses(design: Design, bounds: Mapping[str, Value]) -> bool:
    """Whether an acknowledged record is lost; every state is seen where it is not."""
    found = explore(Instance(design, {**REST, **bounds}), (SURVIVES,), Limits(), symmetry=True, reduction=True)
    lost = found.finding(SURVIVES).path is not None
    assert lost or found.complete
    return lost


@pytest.mark.parametrize(
    "action",
    [a if a != "controller_accepts_and_completes" else pytest.param(a, marks=pytest.mark.slow) for a in NEEDED],
)
def test_each_condition_is_needed_and_with_all_of_them_nothing_is_lost(action: str) -> None:
    others = {name: condition for name, condition in CONDITIONS.items() if name != action}
    assert loses(design_with(others), NEEDED[action])
    assert not loses(KAFKA_4_4_MENDED_WITHIN_ENVELOPE, NEEDED[action])


def test_every_condition_is_asked_for() -> None:
    assert {*NEEDED, *UNDECIDED} == set(CONDITIONS)


def test_an_empty_disk_is_within_it_and_its_broker_comes_back() -> None:
    """Else the design would keep its promises because no disk is ever lost."""
    bounds = {**REST, "disks_replaced": 1, "lossy_crashes": 1, "isr_changes": 6}
    instance = Instance(KAFKA_4_4_MENDED_WITHIN_ENVELOPE, bounds)
    found = explore(instance, ("type-ok",), Limits(), symmetry=True, reduction=True)
    assert found.complete
    assert found.steps_by_action["disk_is_replaced"] > 0
    assert found.steps_by_action["broker_restarts"] > 0
