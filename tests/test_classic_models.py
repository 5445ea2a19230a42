"""Models that others published, with the numbers that others published."""

from types import ModuleType

import pytest
from tests.models import ewd840, philosophers, two_phase_commit

from isr_check.engine import Exploration, Verdict
from isr_check.explorer import explore
from isr_lang import Instance

CLASSICS = {two_phase_commit: "rms", ewd840: "last", philosophers: "seats"}
"""Each model with the bound by which it is published."""


def explored(model: ModuleType, size: int) -> Exploration:
    return explore(Instance(model.DESIGN, {CLASSICS[model]: size}))


@pytest.mark.parametrize(
    ("model", "size", "distinct"),
    [
        pytest.param(model, size, distinct, id=f"{model.DESIGN.name}-{size}")
        for model in CLASSICS
        for size, distinct in model.PUBLISHED.items()
    ],
)
def test_a_classic_has_as_many_states_as_published(model: ModuleType, size: int, distinct: int) -> None:
    found = explored(model, size)
    assert (found.complete, found.distinct) == (True, distinct)
    assert {f.verdict for f in found.findings} == {Verdict.EXHAUSTED}


def test_the_philosophers_also_take_as_many_steps_as_published() -> None:
    found = explored(philosophers, 5)
    assert (found.generated + found.levels[0], found.depth + 1) == (336, 29)
