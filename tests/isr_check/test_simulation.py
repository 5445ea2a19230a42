"""Random walks in place of all states: never a stronger word than SAMPLED, and what they find is real.

Two engines walk, and they have to make the same walks, to the number.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import attrs
import numpy as np
import pytest
from tests.support.models import copies, ticket_desk

from isr_check import explorer, simulation
from isr_check.engine import DEADLOCK, Exploration, Limits, Path, Verdict
from isr_check.native import simulation as native
from isr_check.reference import Evaluator, State
from isr_check.simulation import Dice
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS
from isr_protocol.planted.bugs import PLANTED

COPIES = Instance(copies.DESIGN, {"nodes": 3, "length": 1, "careless": True})


class Simulate(Protocol):
    def __call__(
        self, instance: Instance, property_names: tuple[str, ...], walks: int, seed: int, limits: Limits | None = None
    ) -> Exploration: ...


@pytest.fixture(params=["reference", "native"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    return {"reference": simulation.simulate, "native": native.simulate}[request.param]


def walked(instance: Instance, path: Path) -> list[State]:
    """The states of a path, which must be possible."""
    evaluator = Evaluator(instance)
    states = [next(s for p, s in evaluator.initial_states() if tuple(p) == path.initial)]
    names = [a.name for a in instance.actions]
    for name, parameters in path.steps:
        options = {(names[a], tuple(p)): s for a, p, s in evaluator.successors(states[-1])}
        states.append(options[name, parameters])
    return states


def test_the_same_seed_walks_alike_and_another_does_not(simulate: Simulate) -> None:
    one, again, other = (simulate(COPIES, (), 5, seed) for seed in (1, 1, 2))
    assert (one.findings, one.steps_by_action, one.generated) == (
        again.findings,
        again.steps_by_action,
        again.generated,
    )
    assert one.steps_by_action != other.steps_by_action


@pytest.mark.long
def test_what_a_walk_finds_is_so(simulate: Simulate) -> None:
    whole, found = explorer.explore(COPIES), simulate(COPIES, (), 300, 1)
    evaluator = Evaluator(COPIES)
    properties = {p.name: p for p in COPIES.properties}
    decided = [f for f in found.findings if f.path is not None]
    assert len(decided) > 5
    for f in decided:
        assert f.path is not None
        exact = whole.finding(f.name).path  # none where the exploration ended before, at the level that left its range
        assert len(f.path.steps) >= (len(exact.steps) if exact is not None else whole.depth)
        states = walked(COPIES, f.path)
        if f.name == "type-ok":
            assert not evaluator.in_range(states[-1])
            continue
        p = properties[f.name]
        of = states[-2:] if p.kind in ("step", "sometimes-step") else states[-1:]
        assert evaluator.holds(p, *of) is p.kind.startswith("sometimes")


def words(found: Exploration) -> dict[str, str]:
    return {f.name: f.verdict.value for f in found.findings}


def test_the_words(simulate: Simulate) -> None:
    found = simulate(COPIES, (), 300, 1)
    assert not found.complete
    assert words(found)["type-ok"] == Verdict.VIOLATED
    assert words(found)["terms-grow"] == Verdict.UNKNOWN, "a walk that left its range ended there"
    assert words(found)["never-so-many"] == Verdict.UNKNOWN
    careful = simulate(Instance(copies.DESIGN, {"nodes": 2, "length": 1}), (), 300, 1)
    assert words(careful)["terms-grow"] == Verdict.SAMPLED
    assert found.finding("a-log-shrinks").verdict is Verdict.SAMPLED
    assert found.finding("a-log-shrinks").path is not None


def test_fewer_walks_than_asked_for_are_no_sample(simulate: Simulate) -> None:
    found = simulate(Instance(copies.DESIGN), ("terms-grow",), 1000, 1, Limits(max_states=3))
    assert words(found) == {"terms-grow": Verdict.BUDGETED}


def test_a_simulation_ends_when_all_is_decided(simulate: Simulate) -> None:
    found = simulate(COPIES, ("type-ok",), 10**9, 1)
    assert words(found) == {"type-ok": Verdict.VIOLATED}


@pytest.mark.parametrize("name", ticket_desk.DESIGNS)
def test_a_deadlock_is_found_where_there_is_one(simulate: Simulate, name: str) -> None:
    instance = Instance(ticket_desk.DESIGNS[name])
    stuck = explorer.explore(instance, (DEADLOCK,)).finding(DEADLOCK).path is not None
    found = simulate(instance, (DEADLOCK,), 200, 1).finding(DEADLOCK)
    assert (found.path is not None) is stuck
    if found.path is not None:
        assert not list(Evaluator(instance).successors(walked(instance, found.path)[-1]))


def test_walks_end_so_they_say_nothing_of_liveness(simulate: Simulate) -> None:
    instance = Instance(ticket_desk.DESIGNS["careful"])
    live = next(p.name for p in instance.properties if p.kind == "eventually")
    assert words(simulate(instance, (live, "type-ok"), 3, 1)) == {"type-ok": Verdict.SAMPLED, live: Verdict.UNKNOWN}


# the same walks in both engines


def alike(instance: Instance, property_names: tuple[str, ...], walks: int, seed: int, workers: int = 2) -> Exploration:
    """What both engines answer, but for the seconds."""
    slow = simulation.simulate(instance, property_names, walks, seed)
    fast = native.simulate(instance, property_names, walks, seed, workers=workers)
    assert attrs.evolve(fast, seconds=0.0) == attrs.evolve(slow, seconds=0.0)
    return fast


MADE_UP = {"copies": COPIES, **{name: Instance(design) for name, design in ticket_desk.DESIGNS.items()}}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seed", [0, 1, 1 << 70])
@pytest.mark.parametrize("name", MADE_UP)
def test_both_engines_make_the_same_walks(name: str, seed: int, workers: int) -> None:
    alike(MADE_UP[name], (), 40, seed, workers)


@pytest.mark.long
@pytest.mark.parametrize("name", ["kip-966", "kafka-0.8", "kip-320"])
def test_both_engines_make_the_same_walks_of_the_protocol(name: str) -> None:
    found = alike(Instance(DESIGNS[name], {"replicas": 2}), (), 60, 7)
    assert found.depth > 20
    assert sum(n > 0 for n in found.steps_by_action.values()) > 10


def test_walks_reach_all_of_a_small_model() -> None:
    instance = Instance(ticket_desk.DESIGNS["careful"])
    assert native.simulate(instance, (), 5000, 1).distinct == explorer.explore(instance).distinct


def test_a_planted_bug_is_found_within_bounds_too_large_to_explore() -> None:
    bug = PLANTED["truncate-to-watermark"].design
    assert bug is not None
    bounds = {"replicas": 4, "log": 4, "records": 4, "epochs": 4, "isr_changes": 6, "crashes": 2}
    instance = Instance(bug, bounds)
    found = native.simulate(instance, ("acked-survives",), 4_000, 1).finding("acked-survives")
    assert found.verdict is Verdict.VIOLATED
    assert found.path is not None
    assert len(walked(instance, found.path)) == len(found.path.steps) + 1


# dice


def test_the_dice_are_splitmix64() -> None:
    dice = Dice(0, 0)
    dice.state = 1234567
    high = [6457827717110365317 >> 32, 3203168211198807973 >> 32, 9817491932198370423 >> 32]
    assert [dice.below(1 << 32) for _ in range(3)] == high


def test_every_face_falls_as_often() -> None:
    falls = Counter(Dice(seed, walk).below(6) for seed in range(10) for walk in range(6_000))
    assert sorted(falls) == list(range(6))
    assert all(abs(n - 10_000) < 400 for n in falls.values())  # more than four standard deviations


@pytest.mark.long
@pytest.mark.parametrize("count", [10, native.MOST_COUNTED - 1, 10 * native.MOST_COUNTED])
def test_distinct_states_are_counted_or_estimated(count: int) -> None:
    random, sketch = np.random.default_rng(1), native.Sketch()
    hashes = random.integers(0, native.LARGEST, count, dtype=np.int64)
    for start in range(0, count, 50_000):
        part = hashes[: start + 50_000][-80_000:]  # some of them again
        sketch.add([part[part < sketch.limit]])
    if count < native.MOST_COUNTED:
        assert sketch.count == count
    else:
        assert abs(sketch.count / count - 1) < 0.02
