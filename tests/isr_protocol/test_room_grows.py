"""No verdict gets better from two to three replicas, or with more room, at the bounds that insync chooses.

What is lost within bounds is lost within larger ones, too. So a promise that is broken, or of which bounds are too
small to say anything, holds nowhere further on. What holds at the bounds chosen is not broken where one is larger.
"""

from collections.abc import Mapping

import pytest

from isr_check.engine import Limits, Verdict, silent
from isr_check.native import explore
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.in_sync_replicas import IN_SYNC_REPLICAS

PROMISES = ("acked-survives", "leaders-complete", "no-divergence")
SETTINGS: tuple[Mapping[str, Value], ...] = ({}, {"unclean": True}, {"min_insync": 1}, {"acks": "1"})
SAMPLE = ("kip-966", "kraft-3.5", "kip-497", "kip-320", "jepsen-halt")
BOUNDS = ("epochs", "isr_changes")
"""Those that follow what is asked for."""
CASES = [(name, setting) for name in SAMPLE for setting in SETTINGS]


def verdicts(name: str, given: Mapping[str, Value], more: str = "") -> dict[str, Verdict]:
    """The verdict of each promise at the bounds that follow what is given, where one of them may be larger by one."""
    design = DESIGNS[name]
    chosen = Instance(design, IN_SYNC_REPLICAS.constants_with_room(design, given)).constants
    larger = {bound: int(chosen[bound]) + 1 for bound in (more,) if bound}
    instance = Instance(design, {**chosen, **larger})
    probes = IN_SYNC_REPLICAS.probes(PROMISES)
    names = (*PROMISES, *(p.name for p in probes))
    seen = explore(instance.promising(*probes), names, Limits(), silent, symmetry=True, reduction=True)
    judged = IN_SYNC_REPLICAS.worth(instance, seen, PROMISES, explore, Limits()).exploration
    return {f.name: f.verdict for f in judged.findings}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_no_verdict_gets_better_with_a_third_replica(name: str, setting: Mapping[str, Value]) -> None:
    two = verdicts(name, {"replicas": 2, **setting})
    three = verdicts(name, {"replicas": 3, **setting})
    assert not [p for p in PROMISES if two[p] is not Verdict.HOLDS and three[p] is Verdict.HOLDS]


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_no_verdict_gets_better_or_is_taken_back_with_more_room(
    name: str, setting: Mapping[str, Value], bound: str
) -> None:
    given: dict[str, Value] = {"replicas": 2, **setting}
    chosen, larger = verdicts(name, given), verdicts(name, given, bound)
    assert not [p for p in PROMISES if chosen[p] is not Verdict.HOLDS and larger[p] is Verdict.HOLDS]
    assert not [p for p in PROMISES if chosen[p] is Verdict.HOLDS and larger[p] is Verdict.VIOLATED]
