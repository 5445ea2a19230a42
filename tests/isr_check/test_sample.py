"""Sampled behaviours are real, pass, differ, show many actions, and depend on the seed alone."""

from itertools import pairwise

import pytest
from tests.support.models import copied_log, thermostat, two_phase_commit
from tests.support.traces import evaluator

from isr_check.sample import Samples, sample
from isr_lang import Design
from isr_trace.replay import Replay, record, run_of

DESIGNS = pytest.mark.parametrize(
    "design",
    [copied_log.UNCLEAN, copied_log.CLEAN, thermostat.DESIGN, two_phase_commit.DESIGN],
    ids=lambda d: d.name,
)


def sampled(design: Design, seed: int = 1, n: int = 4, longest: int = 12) -> Samples:
    runs = evaluator(design)
    return sample(runs.instance, runs, seed, n, longest)


@DESIGNS
def test_every_sample_is_a_behaviour_that_breaks_nothing(design: Design) -> None:
    runs = evaluator(design)
    for path in sampled(design).paths:
        trace = record(runs, path.initial, path.steps, verdict="SAMPLED")
        states = run_of(trace, Replay(runs)).states
        for p in runs.instance.properties:
            if p.kind == "always":
                assert all(runs.holds(p, s) for s in states)
            elif p.kind == "step":
                assert all(runs.holds(p, a, b) for a, b in pairwise(states))
        assert len(set(states)) == len(states), "nothing comes twice"


@DESIGNS
def test_the_same_seed_gives_the_same_samples_and_another_seed_others(design: Design) -> None:
    assert sampled(design, seed=5) == sampled(design, seed=5)
    assert sampled(design, seed=5) != sampled(design, seed=6)


@DESIGNS
def test_samples_differ_and_are_no_longer_than_asked(design: Design) -> None:
    paths = sampled(design, n=5, longest=7).paths
    assert 0 < len(set(paths)) == len(paths) <= 5
    assert all(0 < len(p.steps) <= 7 for p in paths)


def test_every_action_is_shown_when_there_is_room_and_what_is_not_shown_is_listed() -> None:
    found = sampled(copied_log.UNCLEAN, n=6)
    assert found.missing == ()
    assert sum(found.steps_by_action.values()) == sum(len(p.steps) for p in found.paths)
    none = sampled(copied_log.UNCLEAN, n=1, longest=1)
    assert len(none.missing) == len(none.steps_by_action) - 1
