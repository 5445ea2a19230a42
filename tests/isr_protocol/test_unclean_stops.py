"""The envelope of KIP-966: both of its conditions are needed, of stops that lose records and of those that do not.

Without these, docs/unclean-recovery.md could promise an operator too much: that two machines may fail where one may.
"""

from collections.abc import Mapping

import attrs
import pytest

from isr_check.engine import Limits
from isr_check.native import explore
from isr_lang import Action, Design, Instance, Step, action
from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS
from isr_protocol.designs.unclean_stops import few_down, keeps_to_envelope, member_stays
from isr_protocol.state import Replica, State

pytestmark = pytest.mark.explores

SURVIVES = "acked-survives"
TWO = {"replicas": 2, "crashes": 1, "lossy_crashes": 1, "epochs": 2, "isr_changes": 5}
BOTH_LOSE = TWO | {"crashes": 0, "lossy_crashes": 2}
THREE = {"replicas": 3, "crashes": 1, "lossy_crashes": 1, "sessions_lost": 1, "epochs": 2, "isr_changes": 6}
WITHOUT = ("leader_proposes_shrink", "leader_proposes_expansion", "controller_moves_leadership")


@action
def stops_where_few_are_down(old: State, new: State, r: Replica) -> Step:
    """The first condition alone."""
    return (few_down(old, r),)


@action
def stops_where_a_member_stays(old: State, new: State, r: Replica) -> Step:
    """The second condition alone."""
    return (member_stays(old, r),)


def with_stops(crash: Action | None, loss: Action | None) -> Design:
    """KIP-966 with these conditions on its stops."""
    parts: Mapping[str, Action | None] = {"broker_crashes": crash, "broker_loses_power": loss}
    return KIP_966.extending(**{name: part for name, part in parts.items() if part is not None})


def lost(design: Design, bounds: Mapping[str, int]) -> list[str] | None:
    """The actions of a shortest way to lose an acknowledged record; None if all states were seen and there is none."""
    found = explore(Instance(design, bounds), (SURVIVES,), Limits(), lambda _: None)
    path = found.finding(SURVIVES).path
    assert path is not None or found.complete
    return None if path is None else [name for name, _ in path.steps]


@pytest.mark.parametrize("bounds", [pytest.param(TWO, marks=pytest.mark.slow), BOTH_LOSE])
def test_within_the_envelope_nothing_is_lost_although_more_than_one_stops(bounds: dict[str, int]) -> None:
    design = DESIGNS["kip-966-within-envelope"]
    assert lost(design, bounds) is None
    assert lost(KIP_966, bounds) is not None


def test_who_is_back_is_no_member_yet() -> None:
    few = stops_where_few_are_down
    found = lost(with_stops(few, few), TWO)
    assert found is not None
    assert found.count("broker_restarts") == 2


def test_a_stop_that_loses_nothing_counts() -> None:
    found = lost(with_stops(None, keeps_to_envelope), TWO)
    assert found is not None
    assert {"broker_crashes", "broker_loses_power"} <= set(found)
    found = lost(with_stops(keeps_to_envelope, None), TWO)
    assert found is not None
    assert {"broker_crashes", "broker_loses_power"} <= set(found)


@pytest.mark.slow
def test_an_isr_of_brokers_that_are_down_leaves_out_who_has_everything() -> None:
    stays = stops_where_a_member_stays
    found = lost(with_stops(stays, stays).without(*WITHOUT), THREE)
    assert found is not None
    assert "controller_elects_last_known_leader" in found
    assert lost(DESIGNS["kip-966-within-envelope"].without(*WITHOUT), THREE) is None


def test_the_first_stops_under_the_minimum_are_within_it() -> None:
    found = explore(Instance(DESIGNS["kip-966-within-envelope"], BOTH_LOSE), ("members-left",))
    assert found.complete
    assert found.finding("members-left").path is None
    looser = attrs.evolve(DESIGNS["kip-966-within-envelope"], actions=KIP_966.actions)
    assert explore(Instance(looser, BOTH_LOSE), ("members-left",)).finding("members-left").path is None
