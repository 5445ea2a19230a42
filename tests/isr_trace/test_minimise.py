"""A minimised trace is never longer, always decides the same property, and is the same every time."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.models import copied_log, thermostat
from tests.support.traces import evaluator, violation, wander

from isr_check.explorer import explore
from isr_check.reference import Evaluator
from isr_trace.minimise import minimise
from isr_trace.replay import Replay, check_goal, record, run_of
from isr_trace.trace import Minimisation, TraceError

pytestmark = pytest.mark.explores

SEEDS = st.integers(0, 2**32)


def unclean() -> Evaluator:
    return evaluator(copied_log.UNCLEAN, {"replicas": 3})


@pytest.mark.parametrize("effort", [0, 40, 20_000])
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_it_is_never_longer_and_still_violates(effort: int, seed: int) -> None:
    runs = unclean()
    trace = wander(runs, "acked-survives", seed)
    minimal = minimise(trace, runs, effort)
    assert len(minimal.steps) <= len(trace.steps)
    check_goal(run_of(minimal, Replay(runs)), runs, "acked-survives")
    assert minimal.minimisation is not None
    assert (minimal.minimisation.before, minimal.minimisation.after) == (len(trace.steps), len(minimal.steps))
    assert minimise(trace, runs, effort) == minimal


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_what_it_calls_shortest_is_as_short_as_what_breadth_first_search_finds(seed: int) -> None:
    runs = unclean()
    trace = wander(runs, "acked-survives", seed)
    found = explore(runs.instance, ("acked-survives",)).finding("acked-survives").path
    assert found is not None
    minimal = minimise(trace, runs)
    assert minimal.minimisation == Minimisation(len(trace.steps), len(found.steps), True)


@settings(max_examples=30, deadline=None)
@example(seed=44079123)  # in the calmest order one step less is enough
@given(seed=SEEDS)
def test_no_single_step_can_be_left_out_of_it(seed: int) -> None:
    runs = unclean()
    trace = wander(runs, "acked-survives", seed)
    minimal = minimise(trace, runs, 0)
    replay = Replay(runs)
    run = run_of(minimal, replay)
    for i in range(len(run.moves)):
        rest = replay.exact(run.initial, run.moves[:i] + run.moves[i + 1 :])
        if rest is not None:
            with pytest.raises(TraceError):
                check_goal(rest, runs, "acked-survives")


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_a_property_of_steps_is_still_broken_by_the_last_step(seed: int) -> None:
    runs = evaluator(thermostat.DESIGN)
    trace = wander(runs, "comfort-stays", seed)
    assert [s.action for s in minimise(trace, runs).steps] == ["heat"] * 3


def test_the_shortest_trace_stays_as_long_as_it_is() -> None:
    trace, runs = violation(copied_log.UNCLEAN), evaluator(copied_log.UNCLEAN)
    minimal = minimise(trace, runs)
    assert minimal.minimisation == Minimisation(5, 5, True)


# Calmer


def test_who_acts_goes_on_acting_and_names_come_in_order() -> None:
    runs = evaluator(thermostat.DESIGN)
    steps = [("heat", (2,)), ("enter", (1,)), ("heat", (0,)), ("enter", (2,)), ("heat", (2,)), ("heat", (2,))]
    trace = record(runs, (), steps[:4], property_name="at-most-one-is-warm", verdict="VIOLATED")
    assert minimise(trace, runs, 0).steps == minimise(trace, runs).steps
    calm = minimise(trace, runs).steps
    assert [(s.action, s.actor) for s in calm] == [("heat", "room1"), ("heat", "room2")]


def test_a_detour_that_no_single_step_explains_is_cut_short() -> None:
    runs = unclean()
    # r1 writes and leaves; r2 and r1 lead in turn before the write is acknowledged.
    names = "leader_appends replica_crashes replica_elected replica_crashes replica_restarts replica_elected"
    who = [0, 0, 1, 1, 0, 0]
    steps = list(zip(names.split(), ((w,) for w in who), strict=True))
    steps += [("high_watermark_advances", (0,)), ("replica_crashes", (0,)), ("replica_elected", (2,))]
    trace = record(runs, (0,), steps, property_name="acked-survives", verdict="VIOLATED")
    assert len(minimise(trace, runs, 0).steps) == 9, "every step of it is needed"
    assert len(minimise(trace, runs, 1000).steps) == 6


def test_calming_never_makes_more_changes_of_actor() -> None:
    runs = unclean()
    for seed in range(10):
        trace = wander(runs, "acked-survives", seed)
        actors = [s.actor for s in minimise(trace, runs).steps]
        assert sum(a != b for a, b in pairwise(actors)) <= 3


# What cannot be minimised


def test_a_passing_trace_is_refused() -> None:
    runs = evaluator(copied_log.UNCLEAN)
    passing = record(runs, (0,), [("leader_appends", (0,))], property_name="acked-survives")
    with pytest.raises(TraceError, match="does not end in a state that decides acked-survives"):
        minimise(passing, runs)
