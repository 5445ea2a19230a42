"""`leader.py` can be read beside the model: action for action the same names, in the same order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

from isr_broker.core import follower, leader, watermark
from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS

ONLY_HERE = {"leader_is_asked_to_append", "leader_hears", "follower_gets_answer", "follower_enters_epoch"}
"""What is told before the disk has done its part, and what hands an answer on to one of several actions."""

EARLIER = {action.name for design in DESIGNS.values() for action in design.actions} - {a.name for a in KIP_966.actions}
"""Actions of designs before today's."""


def steps(module: ModuleType) -> dict[str, Callable[..., object]]:
    """The functions of a module that are named as actions are, in their order."""
    found = {n: f for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__}
    return {n: f for n, f in found.items() if n.startswith(("leader_", "follower_", "becomes_", "consumer_"))}


@pytest.mark.parametrize(
    ("module", "begins"),
    [
        (leader, ("leader_", "becomes_leader")),
        (follower, ("follower_", "becomes_follower")),
        (watermark, ("consumer_",)),
    ],
    ids=["leader", "follower", "watermark"],
)
def test_action_for_action_the_same_names_in_the_same_order(module: ModuleType, begins: tuple[str, ...]) -> None:
    here = [name for name in steps(module) if name not in ONLY_HERE | EARLIER]
    assert here == [action.name for action in KIP_966.actions if action.name.startswith(begins)]


@pytest.mark.parametrize("module", [leader, follower, watermark], ids=lambda m: m.__name__)
def test_each_of_them_says_that_it_is_that_action(module: ModuleType) -> None:
    for name, function in steps(module).items():
        if name not in ONLY_HERE:
            assert f'"{name}"' in inspect.getsource(function), name
