"""Mistakes that once slipped through every promise, as designs: each is found now, by the promise that is meant to.

Without it a promise could be weakened to where it forbids nothing that another does not, and nobody would see it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from isr_check.engine import Exploration, Verdict
from isr_check.native import explore
from isr_lang import Action, Bool, Design, Instance, Set, Step, Value, action, define, forall
from isr_lang.ranges import PROMISE, reading_in_range
from isr_model import KIP_966
from isr_protocol.by_name import DESIGNS
from isr_protocol.elections import available, departs, electable
from isr_protocol.membership import elects, elr_beside, isr_without
from isr_protocol.replication import follower_truncates
from isr_protocol.state import Replica, State

pytestmark = pytest.mark.explores

TWO: Mapping[str, Value] = {"replicas": 2, "min_insync": 1, "crashes": 0, "sessions_lost": 1, "epochs": 2}
UNCLEAN: Mapping[str, Value] = {**TWO, "isr_changes": 3, "unclean": True}
LEAVING: Mapping[str, Value] = {**TWO, "sessions_lost": 0, "shutdowns": 1}
THREE: Mapping[str, Value] = {
    "replicas": 3,
    "min_insync": 3,
    "crashes": 0,
    "sessions_lost": 2,
    "epochs": 1,
    "isr_changes": 2,
}
BY_LEADER = ("leader_proposes_shrink", "leader_proposes_expansion", "controller_moves_leadership")
"""Left out where three replicas would take long."""


def bug(what: str, **parts: object) -> Design:
    return KIP_966.replacing("bug", what, because="a bug planted on purpose.", **parts)  # type: ignore[arg-type]


# A watermark that stays where it was when the log is cut below it.

keeps_watermark: Action = attrs.evolve(
    follower_truncates, updates=tuple(u for u in follower_truncates.updates if u.variable != "high_watermark")
)
KEEPS_WATERMARK = bug("a follower cuts its log and keeps its watermark", follower_truncates=keeps_watermark)


# A leader from the ELR beside a live ISR.


@define
def electable_from_either(s: State, r: Replica, isr: Set[Replica], elr: Set[Replica]) -> Bool:
    """The broker is available, and in the ISR or the ELR."""
    return available(s, r) & (isr | elr).has(r)


@action
def controller_fences_leader_for_anyone(old: State, new: State, r: Replica, successor: Replica) -> Step:
    """The controller fences the leader and elects from ISR or ELR; whom it elects is in the ISR from then on."""
    isr, elr = isr_without(old, r), old.controller_elr.excluding(r)
    chosen = isr.including(successor)
    return (
        *departs(old, new, r),
        old.controller_leader == r,
        successor != r,
        electable(old, successor, isr, elr),
        *elects(old, new, successor, chosen, elr_beside(old, chosen)),
    )


BESIDE_ISR = bug(
    "a leader may come from the ELR beside the ISR",
    electable=electable_from_either,
    controller_fences_leader=controller_fences_leader_for_anyone,
)


# A broker that shuts down and joins.


@define
def eligible_unless_fenced(s: State, leader: Replica) -> Bool:
    """No proposed member is fenced, and none that joins is another incarnation; who is shutting down may join."""
    proposed = s.alter_isr[leader]
    return (proposed & s.fenced).is_empty() & forall(
        s.alter_broker_epoch[leader] == s.broker_epoch[f] for f in proposed - s.controller_isr
    )


JOINS_LEAVING = bug("a broker that is shutting down may join the ISR", eligible=eligible_unless_fenced)


# A rule taken out where unclean election is on: acked-survives fails with the rule, too.


@define
def committed_isr_only(s: State, leader: Replica) -> Set[Replica]:
    """The leader counts only the in-sync set that it knows to be committed."""
    return s.isr[leader]


COUNTS_COMMITTED_ISR = bug("the watermark counts the committed ISR only", maximal_isr=committed_isr_only)

KIP_966_BY_CONTROLLER = KIP_966.without(*BY_LEADER)

BATTERY = [
    pytest.param(KIP_966, KEEPS_WATERMARK, UNCLEAN, "watermark-within-log", id="watermark-not-lowered"),
    pytest.param(
        KIP_966_BY_CONTROLLER, BESIDE_ISR.without(*BY_LEADER), THREE, "clean-election", id="elected-beside-isr"
    ),
    pytest.param(KIP_966, JOINS_LEAVING, LEAVING, "leaving-does-not-join", id="leaving-joins"),
    pytest.param(KIP_966, COUNTS_COMMITTED_ISR, UNCLEAN, "acked-survives-clean-steps", id="committed-isr-with-unclean"),
]
"""The design, with a mistake, at these constants, and the promise that is kept without it and broken with it."""


def explored(design: Design, constants: Mapping[str, Value], *wanted: str) -> Exploration:
    found = explore(Instance(design, constants), wanted)
    assert found.complete or any(f.verdict is Verdict.VIOLATED for f in found.findings)
    return found


def broken(design: Design, constants: Mapping[str, Value]) -> set[str]:
    return {f.name for f in explored(design, constants).findings if f.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize(("design", "mistaken", "constants", "promise"), BATTERY)
def test_a_planted_mistake_is_found_by_the_promise_that_forbids_it(
    design: Design, mistaken: Design, constants: Mapping[str, Value], promise: str
) -> None:
    kept, found = broken(design, constants), broken(mistaken, constants)
    assert promise not in kept
    assert promise in found


def test_who_shuts_down_and_joins_or_is_elected_beside_the_isr_is_seen_by_no_other_promise() -> None:
    assert broken(JOINS_LEAVING, LEAVING) == {"leaving-does-not-join"}
    assert broken(BESIDE_ISR.without(*BY_LEADER), THREE) == {"clean-election"}


# Reads out of range.

SMALL: Mapping[str, Value] = {
    "replicas": 2,
    "log": 1,
    "records": 1,
    "crashes": 1,
    "epochs": 1,
    "isr_changes": 2,
    "consumers": 1,
}


def reads_out_of_range(design: Design, constants: Mapping[str, Value]) -> set[str]:
    known = {c.name for c in design.constants()}
    return broken(reading_in_range(design), {name: v for name, v in constants.items() if name in known})


QUICK = ("kip-966", "kip-320", "zookeeper", "majority")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in DESIGNS])
def test_no_design_and_none_of_its_promises_reads_out_of_range(name: str) -> None:
    assert not reads_out_of_range(DESIGNS[name], SMALL)


def test_a_watermark_above_the_log_is_a_read_out_of_range() -> None:
    assert reads_out_of_range(KEEPS_WATERMARK, UNCLEAN) == {PROMISE}
    assert not reads_out_of_range(KIP_966, UNCLEAN)
