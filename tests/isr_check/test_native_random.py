"""Random models: the native engine answers as the reference does, whatever the model says."""

import attrs
import pytest
from tests.support.sample import sample
from tests.support.strategies import numbered_model

from isr_check import explorer, native
from isr_check.engine import Limits, Verdict

pytestmark = pytest.mark.explores

SMALL = Limits(max_states=300)


@pytest.mark.parametrize("number", sample(range(10), 4))
def test_random_models_are_explored_alike(number: int) -> None:
    compared = sum(explored_alike(n) for n in range(number * 10, number * 10 + 10))
    assert compared > 5


def explored_alike(number: int) -> bool:
    """Whether the reference came to an end, with which the native engine then agrees."""
    instance = numbered_model(number, promises=6).instance()
    expected = explorer.explore(instance, (), SMALL)
    if any(f.verdict is Verdict.BUDGETED for f in expected.findings):
        return False
    found = native.explore(instance, workers=1 + number % 2)
    assert attrs.evolve(found, seconds=0) == attrs.evolve(expected, seconds=0)
    return True
