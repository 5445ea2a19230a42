"""Today's design with three replicas: everything in it happens somewhere, and every guard decides both ways.

No single exploration that ends soon has every fault at once, so the claim is about these together. By
symmetry one state per orbit is seen, which leaves out no action and no guard.

Without it an action could become impossible, or a guard useless, and every promise would go on to hold.
"""

from typing import ClassVar

import pytest

from isr_check import native
from isr_check.engine import Exploration, Limits
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.slow, pytest.mark.explores]

KIP_966 = DESIGNS["kip-966"]
RUNS: tuple[dict[str, Value], ...] = (
    {"crashes": 1, "epochs": 1, "isr_changes": 2},
    {"crashes": 2, "epochs": 0, "isr_changes": 1},
    {"crashes": 1, "shutdowns": 1, "epochs": 0, "isr_changes": 1, "min_insync": 1},
    {"crashes": 1, "unclean": True, "epochs": 2, "isr_changes": 3, "min_insync": 1},
    {"lossy_crashes": 2, "epochs": 0, "isr_changes": 1},
    {"lossy_crashes": 1, "epochs": 2, "isr_changes": 4, "min_insync": 1},
    {"sessions_lost": 1, "epochs": 2, "isr_changes": 3, "min_insync": 1},
    {"shutdowns": 2, "epochs": 0, "isr_changes": 2},
    {"shutdowns": 1, "consumers": 1, "follower_reads": True, "epochs": 1, "isr_changes": 1, "min_insync": 1},
)
NEVER_REFUSES = {
    # The controller elects whoever is eligible in the very step in which it loses the leader or gets a broker
    # back. Designs without an ELR need the guard.
    ("controller_elects_unclean", 3),
}


def explored(settings: dict[str, Value]) -> Exploration:
    instance = Instance(KIP_966, {"replicas": 3, "crashes": 0} | settings)
    found = native.explore(instance, (), Limits(), symmetry=True)
    assert found.complete
    return found


class TestTogether:
    found: ClassVar[list[Exploration]] = []

    @classmethod
    def setup_class(cls) -> None:
        cls.found = [explored(settings) for settings in RUNS]

    def test_every_action_is_taken(self) -> None:
        taken = {name for found in self.found for name, times in found.steps_by_action.items() if times}
        assert taken == {a.name for a in KIP_966.actions}

    def test_every_guard_lets_through_and_refuses(self) -> None:
        guards = [g for found in self.found for g in found.guards]
        named = {(g.action, g.index) for g in guards}
        assert {(g.action, g.index) for g in guards if g.passes} == named
        assert named - {(g.action, g.index) for g in guards if g.refusals} == NEVER_REFUSES

    def test_every_probe_has_a_witness(self) -> None:
        reached = {f.name for found in self.found for f in found.findings if f.kind[:9] == "sometimes" and f.path}
        assert reached == {p.name for p in KIP_966.properties if p.kind[:9] == "sometimes"}
