"""What random walks have not met: the estimate against its definition, against the truth, and in both engines.

Without it "no violation in 100,000 walks" could be read as HOLDS, beside a number that means nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.support.models import copies, ticket_desk

from isr_check import explorer, native, simulation
from isr_check.engine import Exploration, Limits
from isr_check.native import simulation as native_walks
from isr_check.reference import Evaluator, State
from isr_check.simulation import LONGEST_WALK, Dice
from isr_check.walk_estimate import WalkEstimate
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS

COPIES = Instance(copies.DESIGN, {"nodes": 3, "length": 1, "careless": True})
CAREFUL = Instance(ticket_desk.DESIGNS["careful"])

Simulate = Callable[[Instance, tuple[str, ...], int, int], Exploration]
ENGINES: dict[str, Simulate] = {"reference": simulation.simulate, "native": native_walks.simulate}


def states_of_walk(evaluator: Evaluator, dice: Dice) -> set[State]:
    """The states of one walk, by the words of isr_check.simulation and nothing of its code but the dice."""
    starts = evaluator.initial_states()
    state = starts[dice.below(len(starts))][1]
    states = {state}
    for _ in range(LONGEST_WALK):
        steps = [(action, successor) for action, _, successor in evaluator.successors(state)]
        actions = list(dict.fromkeys(action for action, _ in steps))
        if not actions or not evaluator.in_range(state):
            break
        action = actions[dice.below(len(actions))]
        options = [successor for a, successor in steps if a == action]
        state = options[dice.below(len(options))]
        states.add(state)
    return states


def counted(walks: list[set[State]]) -> WalkEstimate:
    times = Counter(state for walk in walks for state in walk)
    by_times = Counter(times.values())
    return WalkEstimate(len(walks), times.total(), len(times), by_times[1], by_times[2])


@pytest.mark.parametrize("walks", [1, 2, 50])
@pytest.mark.parametrize("instance", [COPIES, CAREFUL], ids=["copies", "careful"])
@pytest.mark.parametrize("engine", ENGINES)
def test_it_counts_in_how_many_walks_a_state_is(engine: str, instance: Instance, walks: int) -> None:
    evaluator = Evaluator(instance)
    made = [states_of_walk(evaluator, Dice(3, n)) for n in range(walks)]
    assert ENGINES[engine](instance, (), walks, 3).estimate == counted(made)


@pytest.mark.long
def test_the_last_walk_adds_what_one_more_would_in_the_mean() -> None:
    """Of a known distribution: no bias, whatever else is in the same walk."""
    random, walks, repetitions = Random(1), 12, 3_000
    chances = [1 / (2 + n) for n in range(40)]
    truth = sum(p * (1 - p) ** walks for p in chances)
    estimates: list[WalkEstimate] = []
    for _ in range(repetitions):
        luck = [random.random() for _ in range(walks)]  # one draw for all: the states of a walk come together
        met = [sum(u < p for u in luck) for p in chances]
        estimates.append(WalkEstimate(walks, sum(met), sum(n > 0 for n in met), met.count(1), met.count(2)))

    def mean(values: list[float]) -> float:
        return sum(values) / repetitions

    before = sum(p * (1 - p) ** (walks - 1) for p in chances)
    assert mean([e.new_per_walk for e in estimates]) == pytest.approx(before, rel=0.05)
    assert before == pytest.approx(truth, rel=0.1)


@pytest.mark.long
def test_there_are_as_many_states_as_estimated_or_more() -> None:
    random, walks, repetitions = Random(2), 12, 2_000
    chances = [1 / (2 + n) for n in range(40)]
    least, seen = 0, 0
    for _ in range(repetitions):
        met = [sum(random.random() < p for _ in range(walks)) for p in chances]
        e = WalkEstimate(walks, sum(met), sum(n > 0 for n in met), met.count(1), met.count(2))
        least, seen = least + e.least_states, seen + e.distinct
    assert 1.1 * seen / repetitions < least / repetitions < len(chances)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_new_where_all_was_seen(engine: str) -> None:
    whole = explorer.explore(CAREFUL)
    estimate = ENGINES[engine](CAREFUL, (), 1_000, 1).estimate
    assert estimate is not None
    assert estimate.new_share == estimate.once == 0
    assert estimate.least_states == estimate.distinct == whole.distinct


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_almost_all_is_new_after_few_walks(engine: str) -> None:
    estimate = ENGINES[engine](Instance(DESIGNS["kip-966"]), (), 10, 1).estimate
    assert estimate is not None
    assert 0.8 < estimate.new_share <= 1
    assert estimate.least_states > 2 * estimate.distinct


@pytest.mark.parametrize("engine", ENGINES)
def test_one_walk_met_nothing_twice(engine: str) -> None:
    estimate = ENGINES[engine](CAREFUL, (), 1, 1).estimate
    assert estimate is not None
    assert (estimate.new_share, estimate.least_states) == (1, estimate.distinct)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_that_is_cut_short_counts_the_walks_it_made(workers: int) -> None:
    found = native_walks.simulate(COPIES, ("terms-grow",), 1_000, 1, Limits(max_states=3), workers=workers)
    again = native_walks.simulate(COPIES, ("terms-grow",), native_walks.CHUNK, 1)
    assert found.estimate == again.estimate
    assert found.estimate is not None
    assert found.estimate.walks == native_walks.CHUNK


@pytest.mark.long
@pytest.mark.parametrize("count", [10, native_walks.MOST_COUNTED // 2, 6 * native_walks.MOST_COUNTED])
def test_how_often_a_state_was_met_is_counted_or_estimated(count: int) -> None:
    random, sketch = np.random.default_rng(1), native_walks.Sketch()
    hashes = random.integers(0, native_walks.LARGEST, count, dtype=np.int64)
    once, twice = hashes[: count // 2], hashes[count // 2 : count // 2 + count // 5]
    thrice = hashes[count // 2 + count // 5 :]
    meetings = random.permutation(np.concatenate([once, twice, twice, thrice, thrice, thrice]))
    for part in np.array_split(meetings, 20):
        sketch.add([part[part < sketch.limit]])
    for times, states in ((1, once), (2, twice), (3, thrice)):
        if count < native_walks.MOST_COUNTED:
            assert sketch.states_met(times) == len(states)
        else:
            assert abs(sketch.states_met(times) / len(states) - 1) < 0.03


# the table of docs/commands.md

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"
BEGIN, END = "<!-- walks: begin -->\n", "<!-- walks: end -->"
MODELS = {
    "kafka-0.8 --replicas 2": ("kafka-0.8", 2),
    "kip-966 --replicas 2": ("kip-966", 2),
    "kip-966 --replicas 3": ("kip-966", 3),
}
WALKS = (300, 3_000, 30_000)
HEAD = (
    "model",
    "walks",
    "states met",
    "states there are",
    "at least, by estimate",
    "new, by estimate",
    "new in a tenth more",
)


def rows(model: str) -> list[tuple[str, ...]]:
    """A row for each number of walks: the estimate beside the truth."""
    name, replicas = MODELS[model]
    instance = Instance(DESIGNS[name], {"replicas": replicas})
    whole, lines = native.explore(instance, ()).distinct, list[tuple[str, ...]]()
    for walks in WALKS:
        e, more = (native_walks.simulate(instance, (), n, 1).estimate for n in (walks, walks + walks // 10))
        assert e is not None
        assert more is not None
        new = (more.distinct - e.distinct) / (more.meetings - e.meetings)
        assert abs(e.new_share - new) < 0.1
        assert e.distinct <= e.least_states <= 1.1 * whole
        numbers = (f"{n:,}" for n in (walks, e.distinct, whole, e.least_states))
        lines.append((f"`{model}`", *numbers, f"{e.new_share:.2%}", f"{new:.2%}"))
    return lines


@pytest.mark.slow
@pytest.mark.explores
def test_the_table_of_estimates_beside_the_truth() -> None:
    head, *lines = (f"| {' | '.join(cells)} |\n" for cells in (HEAD, *(row for model in MODELS for row in rows(model))))
    text = "".join([head, "|" + "---|" * len(HEAD) + "\n", *lines])
    page = DOCS.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    now = before + BEGIN + text + END + rest.split(END)[1]
    if os.environ.get("INSYNC_REWRITE", "") not in ("", "0"):
        DOCS.write_text(now, encoding="utf-8")
    assert DOCS.read_text(encoding="utf-8") == now
