"""What is found in one system counts only where another agrees: the control of a planted mistake."""

import shlex
import sys
from pathlib import Path

import attrs
import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits
from isr_conform.control import agrees_there
from isr_lang import Instance
from isr_model import KIP_966
from isr_replay import Kind

pytestmark = [pytest.mark.explores, pytest.mark.processes]

TOP = Path(__file__).resolve().parents[2]
NAIVE = f"{shlex.quote(sys.executable)} {TOP / 'docs' / 'examples' / 'naive_isr.py'}"
CORES = f"{shlex.quote(sys.executable)} -m isr_conform.core_sut"


def test_a_difference_counts_only_where_another_system_agrees() -> None:
    """Without it a mistake would be found wherever the system without it differs as well."""
    instance = Instance(KIP_966, {"replicas": 2, "crashes": 0, "isr_changes": 1})
    (difference,) = conform(instance, NAIVE, Limits(stop_at_first=True), patience=500.0).differences
    assert agrees_there(instance, CORES, difference, patience=500.0)
    assert not agrees_there(instance, NAIVE, difference, patience=500.0)
    listed = attrs.evolve(difference, kind=Kind.UNEXPECTED)  # then nobody asks for the step itself
    assert agrees_there(instance, CORES, listed, patience=500.0)
    other_way = attrs.evolve(difference, path=difference.path[:-1])  # the step is not allowed there
    assert not agrees_there(instance, CORES, other_way, patience=500.0)
