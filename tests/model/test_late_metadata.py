"""Today's designs keep their promises where metadata come late; rules that guard against it are found only there."""

from __future__ import annotations

import pytest

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_designs import DESIGNS
from isr_lang import Design, Instance, Maybe, Step, Value, action
from isr_late_metadata import late
from isr_replication import advanced, commits, replicated
from isr_state import Replica, State, leads, log_end, maximal_isr

ZOMBIE: dict[str, Value] = {"replicas": 3, "crashes": 0, "epochs": 2, "isr_changes": 2}


@action
def leader_counts_fetch_at_once(old: State, new: State, leader: Replica, follower: Replica) -> Step:
    """A follower's fetch is sent and counted in one step, whatever epoch the follower is in."""
    ends = old.follower_end[leader].put(follower, Maybe.of(log_end(old, follower)))
    up_to = replicated(old, leader, log_end(old, leader), ends, maximal_isr(old, leader))
    return (
        leads(old, leader),
        (old.alive - old.truncating).has(follower),
        old.leader[follower] == leader,
        log_end(old, follower) <= log_end(old, leader),
        new.follower_end[leader] == ends,
        *commits(old, new, leader, advanced(old, leader, up_to, old.isr[leader])),
    )


UNFENCED = (
    DESIGNS["kip-320"]
    .adding(leader_counts_fetch_at_once)
    .without("leader_proposes_shrink", "leader_proposes_expansion")
)
"""KIP-320 without its fence around fetches, where no fetch outlives the epoch in which it was sent."""


def strong(design: Design, constants: dict[str, Value]) -> Exploration:
    return explore(Instance(design, constants), ("strong-isr",))


@pytest.mark.parametrize("name", ["kip-966", "kip-497"])
def test_a_design_keeps_its_promises_where_metadata_come_late(name: str) -> None:
    design = DESIGNS[name].without("leader_proposes_shrink", "leader_proposes_expansion")
    found = explore(Instance(late(design), ZOMBIE))
    broken = {f.name for f in found.findings if f.verdict is Verdict.VIOLATED}
    assert found.complete
    assert found.generated > explore(Instance(design, ZOMBIE), ("type-ok",)).generated
    assert not broken


def test_a_fetch_that_is_not_fenced_is_found_only_where_metadata_come_late() -> None:
    newest = strong(UNFENCED, ZOMBIE)
    assert newest.complete
    assert newest.finding("strong-isr").verdict is Verdict.HOLDS
    assert strong(late(UNFENCED), ZOMBIE).finding("strong-isr").verdict is Verdict.VIOLATED
