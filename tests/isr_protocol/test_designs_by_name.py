"""The table of all designs: each is listed by its own name, and no other is imported with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isr_protocol.by_name import DESIGNS, FAMILIES


def test_every_design_of_a_family_is_listed_by_its_name() -> None:
    made = {family: [design.name for design in family()] for family in FAMILIES.values()}
    assert made == {family: [n for n, f in FAMILIES.items() if f is family] for family in made}


def test_a_design_is_made_once() -> None:
    assert DESIGNS["kip-320"] is DESIGNS["kip-320"]
    assert "kip-321" not in DESIGNS
    with pytest.raises(KeyError):
        DESIGNS["kip-321"]


@pytest.mark.processes
def test_whoever_asks_for_todays_design_does_not_wait_for_the_others() -> None:
    asked = "import sys; from isr_protocol.by_name import DESIGNS; DESIGNS['kip-966']; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert "isr_model" in ran.stdout.split()
    assert "isr_protocol.designs.history" not in ran.stdout.split()
