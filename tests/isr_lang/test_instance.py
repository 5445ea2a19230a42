"""An instance beyond the bounds of exploration: larger numbers for single steps, all else checked as always."""

from __future__ import annotations

import attrs
import pytest

from isr_check.reference import Evaluator
from isr_lang import Instance, SettingError
from isr_lang.instance import UNBOUNDED
from isr_model import KIP_966
from isr_protocol.promises.premises import PREMISES, record_is_acknowledged


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


def test_an_instance_that_promises_more_is_the_same_one_with_more() -> None:
    """Without the comparison, a probe could be folded with other constants than the actions beside it."""
    own = Instance(KIP_966, {"replicas": 2, "acks": "0"})
    off = (attrs.evolve(p, name=f"{p.name}-again") for p in KIP_966.properties if p.name in own.off_properties)
    more = (*dict.fromkeys(PREMISES.values()), *off)
    wider = own.promising(*more)
    anew = Instance(wider.design, own.constants)
    assert all(a is b for a, b in zip(own.actions, wider.actions, strict=True))
    assert wider.constants == anew.constants
    assert wider.off_properties == anew.off_properties != own.off_properties
    assert [(p.name, p.condition) for p in wider.properties] == [(p.name, p.condition) for p in anew.properties]
    assert record_is_acknowledged.name not in {p.name for p in own.properties}
