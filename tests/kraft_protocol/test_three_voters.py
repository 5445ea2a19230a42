"""Three voters, explored whole: as many states as an earlier statement of the same protocol has.

That statement was driven along Kafka's own classes (KafkaRaftClient 4.3.1 and 4.4.0). Without these counts this model
could leave it unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from isr_check import native
from isr_check.engine import Limits, Verdict
from isr_lang import Instance, Value
from kraft_model import KRAFT

pytestmark = [pytest.mark.explores, pytest.mark.slow]


@pytest.mark.parametrize(
    ("bounds", "orbits", "states"),
    [
        ({"epochs": 1, "restarts": 1}, 1_092_538, 6_550_470),
        ({"epochs": 2}, 2_921_152, 17_518_783),
    ],
)
def test_three_voters_have_as_many_states_as_they_had(bounds: Mapping[str, Value], orbits: int, states: int) -> None:
    exploration = native.explore(
        Instance(KRAFT, {"voters": 3, "log": 2, **bounds}), (), Limits(), lambda _: None, symmetry=True
    )
    assert exploration.complete
    assert (exploration.distinct, exploration.states_in_orbits) == (orbits, states)
    assert not [f.name for f in exploration.findings if f.verdict is Verdict.VIOLATED]
