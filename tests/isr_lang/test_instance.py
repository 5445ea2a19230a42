"""An instance beyond the bounds of exploration: larger numbers for single steps, all else checked as always."""

from __future__ import annotations

import pytest

from isr_check.reference import Evaluator
from isr_lang import Instance, SettingError
from isr_lang.instance import UNBOUNDED
from isr_model import KIP_966


def test_an_unbounded_number_may_exceed_its_range_and_a_step_counts_on() -> None:
    with pytest.raises(SettingError):
        Instance(KIP_966, {"crashes": UNBOUNDED})
    instance = Instance(KIP_966, {"replicas": 2}, unbounded={"crashes": UNBOUNDED})
    assert instance.constants["crashes"] == UNBOUNDED
    steps = Evaluator(instance)
    ((_, start), *_) = steps.initial_states()
    place = [v.name for v in instance.variables].index("crashes")
    many = (*start[:place], UNBOUNDED - 1, *start[place + 1 :])
    crash = [action.name for action in instance.actions].index("broker_crashes")
    after = [state for _, state in steps.actions[crash](many, [0] * 999)]
    assert {state[place] for state in after} == {UNBOUNDED}
    assert not steps.actions[crash](after[0], [0] * 999), "the bound still is one"


@pytest.mark.parametrize("wrong", [{"crashes": -1}, {"no_such": 1}, {"unclean": 7}, {"replicas": 0}])
def test_unbounded_numbers_are_checked_in_all_else(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        Instance(KIP_966, unbounded=wrong)
