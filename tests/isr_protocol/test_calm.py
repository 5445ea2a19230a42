"""That a healthy follower is in the ISR again: proved step by step, also for any number of replicas, and explored.

Without these, a step of docs/proof.md's argument could be lost, or be true of designs in which no follower returns.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from isr_check.engine import Limits, Verdict
from isr_check.native import explore
from isr_check.smt.induction import Induction, Obligation
from isr_check.smt.obligations import Proved, decide
from isr_check.smt.strategy import Strategy
from isr_lang import Bool, Design, Instance, Step, action, define
from isr_model import KIP_966
from isr_protocol.designs.calm import DISTURBING, KIP_966_CALM, STEPS_OF_RETURN, healthy_follower_returns
from isr_protocol.proof.calm import BESIDES
from isr_protocol.proof.questions import FIXED_CONSTANTS, FOLLOWS, OF_DESIGNS, OPEN, invariant
from isr_protocol.replication import sends
from isr_protocol.state import Fetch, Replica, State, start_of_own_epoch

pytestmark = [pytest.mark.explores, pytest.mark.solver, pytest.mark.processes]

BOUNDS = {"replicas": 2, "crashes": 0, "sessions_lost": 1, "epochs": 2, "isr_changes": 4, "records": 2}
NAMES = [p.name for p in STEPS_OF_RETURN]
RETURNS = healthy_follower_returns.name
SECONDS = 20.0


def verdicts(design: Design, bounds: dict[str, int]) -> dict[str, Verdict]:
    """The verdicts on the steps, and on what they are steps of."""
    wanted = (*NAMES, RETURNS)
    found = explore(Instance(design, bounds), wanted, Limits(), lambda _: None)
    assert found.complete
    return {f.name: f.verdict for f in found.findings}


@pytest.mark.parametrize("bounds", [{}, pytest.param(BOUNDS, marks=pytest.mark.slow)])
def test_every_healthy_follower_returns_and_each_step_holds_wherever_one_can_get(bounds: dict[str, int]) -> None:
    assert verdicts(KIP_966_CALM, bounds) == dict.fromkeys([*NAMES, RETURNS], Verdict.HOLDS)


def test_every_step_is_among_what_is_proved() -> None:
    assert tuple(NAMES) == OF_DESIGNS


def test_a_calm_is_free_of_what_disturbs_and_of_nothing_else() -> None:
    guarded = {a.name for a in KIP_966_CALM.actions if len(a.guards) > len(_guards(a.name))}
    assert guarded == set(DISTURBING)
    assert {a.name for a in KIP_966_CALM.actions} == {*(a.name for a in KIP_966.actions), "calm_begins"}


def _guards(name: str) -> tuple[object, ...]:
    return KIP_966.action_named(name).guards if name != "calm_begins" else (None,)


# Designs in which a healthy follower does not return, and the step that says so.


@define
def strictly_past_epoch_start(s: State, leader: Replica, f: Replica) -> Bool:
    """Wrong: a leader that has not written in its epoch lets nobody in."""
    return start_of_own_epoch(s, leader) < s.follower_end[leader][f].or_else(0)


@action
def follower_keeps_its_log(old: State, new: State, follower: Replica) -> Step:
    """Wrong: the follower asks again without having cut anything, as in KAFKA-10706."""
    return (
        old.fetch[follower] == Fetch.DIVERGED,
        *sends(old, new, follower, old.leader[follower], old.log[follower], Fetch.REQUESTED),
    )


PLANTED: Mapping[str, Mapping[str, Any]] = {
    "follower-may-be-proposed": {"past_epoch_start": strictly_past_epoch_start},
    "fetching-goes-on": {"follower_truncates": follower_keeps_its_log},
}


@pytest.mark.parametrize("step", PLANTED)
def test_a_design_in_which_no_follower_returns_fails_at_its_step(step: str) -> None:
    planted = KIP_966_CALM.replacing("planted", "with one rule broken", because="it is planted", **PLANTED[step])
    found = verdicts(planted, BOUNDS)
    assert found[RETURNS] is Verdict.VIOLATED
    assert [name for name in NAMES if found[name] is Verdict.VIOLATED] == [step]


# By induction.


class Asked:
    """Obligations about the calm, everything unbounded; `replicas` None: any number."""

    def __init__(self, design: Design, replicas: int | None) -> None:
        open_bounds = dict.fromkeys(OPEN) | {"replicas": replicas}
        constants = Instance(design, FIXED_CONSTANTS).constants | open_bounds
        conjuncts = invariant(design)
        self.induction = Induction(design, constants, [design.restated_property(c.promise) for c in conjuncts])
        self.first = Strategy(self.induction, {**{c.name: c.by for c in conjuncts}, **FOLLOWS}).decide

    def about_the_return(self, actions: Sequence[str] = ()) -> list[Obligation]:
        """The obligations of the steps, and of the conjuncts that only they take."""
        names = [c.name for c in BESIDES]
        return [
            o for o in self.induction.obligations(STEPS_OF_RETURN, names, actions) if o.conjunct in {*names, *NAMES}
        ]

    def unproved(self, obligations: Iterable[Obligation]) -> list[str]:
        some = [o for o in obligations if o.queries]
        return [o.name for o in some if not isinstance(decide(self.induction, o, SECONDS, first=self.first), Proved)]


@pytest.mark.slow
def test_two_replicas_are_proved_to_return() -> None:
    asked = Asked(KIP_966_CALM, 2)
    some = asked.about_the_return()
    assert len(some) > 2 * len(KIP_966_CALM.actions)
    assert asked.unproved(some) == []


@pytest.mark.slow
@pytest.mark.parametrize("action", ["leader_answers_fetch", "leader_answers_diverging", "leader_learns_isr"])
def test_any_number_of_replicas_is_proved_to_return(action: str) -> None:
    asked = Asked(KIP_966_CALM, None)
    assert asked.unproved(asked.about_the_return([action])) == []
