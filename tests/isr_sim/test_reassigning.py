"""Partitions move between brokers while everything else goes wrong, too: every promise is kept.

Without these a reassignment could lose what was acknowledged where it meets a crash, a lost session or a late message.
"""

from __future__ import annotations

import attrs
import pytest
from tests.support.sample import sample

from isr_broker.designs import KIP_966, KRAFT_3_5, Design
from isr_sim.faults import KEEPING
from isr_sim.reassigning import MovingRun
from isr_sim.simulate import QUICK, Config, Outcome, finish_run

pytestmark = pytest.mark.explores

CHUNK = 6
ACTIONS = (
    "controller_starts_reassignment",
    "controller_reassigns_at_once",
    "controller_accepts_and_completes",
    "controller_cancels_reassignment",
)


def moved(seed: int, design: Design = KIP_966) -> Outcome:
    settings = attrs.evolve(QUICK, insync_design=design)
    return finish_run(MovingRun(Config(settings=settings, brokers=4, kinds=KEEPING), seed))


@pytest.mark.parametrize("first", sample(range(0, 10 * CHUNK, CHUNK), 1))
@pytest.mark.parametrize("design", [KIP_966, KRAFT_3_5], ids=lambda design: design.name)
def test_every_promise_is_kept_while_partitions_move(design: Design, first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = moved(seed, design)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_300, 50))
def test_it_is_so_for_some_hundred_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        outcome = moved(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"


def test_reassignments_wait_and_end_in_every_way() -> None:
    taken = {action: 0 for action in ACTIONS}
    for seed in range(20):
        actions = moved(seed).actions
        taken |= {action: taken[action] + actions.get(action, 0) for action in ACTIONS}
        if all(taken.values()):
            return
    raise AssertionError(f"not in 20 seeds: {taken}")


def test_the_elr_as_kafka_leaves_it_is_noticed() -> None:
    design = attrs.evolve(KIP_966, name="keeps-removed-in-elr", keeps_removed_in_elr=True)
    promises = {moved(seed, design).promise for seed in range(12)}
    assert "members-are-replicas" in promises
