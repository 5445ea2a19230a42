"""A reduction sees one state for all that differ in what makes no difference later, and answers the same.

Without this file a rule that is not sound would go unnoticed: it hides states, so what is violated there is said to
hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pytest
from tests.support.expected import EXPECTED, Outcome, Run, outcome, table, thinned
from tests.support.models import two_phase_commit

from isr_check import explorer, native, reduction, reduction_rules
from isr_check.engine import Exploration, Limits, Unsound, Verdict
from isr_check.native.layout import SLACKS
from isr_check.native.search import Means, Search
from isr_check.native.states import states
from isr_check.reduction import Reduction
from isr_check.reduction_rules import Model, VersionRule
from isr_check.reference import Evaluator, State
from isr_lang import Instance
from isr_protocol.by_name import DESIGNS

pytestmark = pytest.mark.explores

ROWS = [(run, said) for run, said, _ in table()] if EXPECTED.exists() else []
FEW = 400
"""States of a design whose steps are compared with those of the states that stand for them."""


def differences(instance: Instance, few: int = FEW) -> Iterator[str]:
    """The actions whose steps from a state and from the one that stands for it lead to states with different ones."""
    reduced, evaluator = Reduction(instance), Evaluator(instance)

    def steps(state: State) -> set[tuple[int, State]]:
        return {(action, reduced.representative(new)) for action, _, new in evaluator.successors(state)}

    for state in states(instance, Limits(max_states=50_000), few):
        stands = reduced.representative(state)
        yield from (instance.actions[action].name for action, _ in steps(state) ^ steps(stands))
        for p in instance.properties:
            if p.kind in ("always", "sometimes") and evaluator.holds(p, state) != evaluator.holds(p, stands):
                yield p.name


def answers(found: Exploration) -> object:
    """What must not depend on a reduction: verdicts, counterexamples and witnesses, to the step."""
    return found.findings, found.complete


def verdicts(found: Exploration) -> dict[str, tuple[Verdict, int]]:
    """By property, with the steps of its counterexample or witness."""
    return {f.name: (f.verdict, len(f.path.steps) if f.path else 0) for f in found.findings}


def test_the_rules_of_todays_design_are_found_in_its_expressions() -> None:
    found = Reduction(Instance(DESIGNS["kip-966"], {}))
    request = ("alter_isr", "alter_leader_epoch", "alter_partition_epoch", "alter_broker_epoch")
    assert [(r.versions, r.current, r.blank) for r in found.version_rules] == [
        ("alter_leader_epoch", "controller_epoch", request),
        ("alter_partition_epoch", "controller_partition_epoch", request),
    ]
    assert [(j.members, j.beside, j.phase) for j in found.join_rules] == [("pending_isr", "isr", "alter")]


def test_a_version_that_nobody_asks_for_makes_no_rule() -> None:
    assert not Reduction(Instance(DESIGNS["kip-497-no-partition-epoch"], {"isr_changes": 2})).version_rules


@pytest.mark.parametrize(
    "design", [pytest.param(d, marks=pytest.mark.slow if n % 8 else ()) for n, d in enumerate(DESIGNS)]
)
def test_a_state_and_the_one_that_stands_for_it_have_the_same_steps(design: str) -> None:
    assert list(differences(Instance(DESIGNS[design], {"replicas": 2}), FEW // 4)) == []


@pytest.mark.parametrize("symmetry", [False, True])
def test_three_replicas_have_fewer_states_and_the_same_counterexamples(symmetry: bool) -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 3, "isr_changes": 1})
    whole = native.explore(instance, symmetry=symmetry)
    reduced = native.explore(instance, symmetry=symmetry, reduction=True)
    assert answers(reduced) == answers(whole)
    assert whole.distinct > 1.8 * reduced.distinct


@pytest.mark.parametrize(("run", "said"), thinned(ROWS, 8, 30_000))
def test_what_is_expected_of_every_engine_is_so_by_reduction(run: Run, said: Outcome) -> None:
    found = native.explore(run.instance(), reduction=True)
    assert found.distinct <= said.distinct
    counted = attrs.evolve(outcome(found), distinct=said.distinct, generated=said.generated, depth=said.depth)
    assert counted == said


@pytest.mark.parametrize("symmetry", [pytest.param(False, marks=pytest.mark.slow), True])
def test_both_engines_see_the_same_states(symmetry: bool) -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    slow = explorer.explore(instance, symmetry=symmetry, reduction=True)
    for workers in (1, 2):
        fast = native.explore(instance, symmetry=symmetry, reduction=True, workers=workers)
        assert attrs.evolve(fast, seconds=0) == attrs.evolve(slow, seconds=0)


def test_native_code_merges_what_the_reference_merges() -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 3, "isr_changes": 1})
    reduced = Reduction(instance)
    for slack in SLACKS[:2]:
        search = Search(instance, (), slack, Means(1), None, reduced)
        for state in states(instance, Limits(max_states=50_000), 200):
            words = np.array(search.layout.pack(state), dtype=np.uint64)
            assert search.layout.unpack(tuple(map(int, search.representative(words)))) == reduced.representative(state)
        search.space.close(keep=False)


# planted: a rule without one of its conditions


def nothing(*_: object) -> Iterator[str]:
    return iter(())


def never(*_: object) -> bool:
    return False


def blank_requests(model: Model) -> list[VersionRule]:
    """As if the version of a request did not count: all that it says is blank as soon as anything was elected."""
    return [VersionRule("alter_broker_epoch", "controller_partition_epoch", ("alter_isr", "alter_leader_epoch"))]


def disagrees(instance: Instance, whole: Exploration) -> bool:
    """Whether the reduced exploration answers something else, or has a counterexample that is no behaviour."""
    try:
        return answers(native.explore(instance, reduction=True)) != answers(whole)
    except StopIteration:  # the reference evaluator finds no step where the path leads on
        return True


def test_a_planted_rule_is_caught_by_the_steps_and_by_the_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2, "isr_changes": 3})
    whole = native.explore(instance)
    assert not disagrees(instance, whole)
    monkeypatch.setattr(reduction, "passed_rules", blank_requests)
    assert "controller_accepts_alter_partition" in set(differences(instance))
    assert disagrees(instance, whole)


def test_what_an_action_reads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this condition every map that no property reads would be blank as soon as a leader is behind."""
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    whole = explorer.explore(instance)
    monkeypatch.setattr(reduction_rules, "_relevant_variables", nothing)
    assert list(differences(instance))
    assert verdicts(explorer.explore(instance, reduction=True)) != verdicts(whole)


def test_a_version_that_goes_back_makes_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    monkeypatch.setattr(reduction_rules, "_grows", never)
    assert not Reduction(instance).version_rules


def test_liveness_is_refused() -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    (live, *_) = (p.name for p in instance.properties if p.kind == "eventually")
    with pytest.raises(Unsound, match="liveness"):
        native.explore(instance, (live,), reduction=True)


def test_a_model_without_rules_is_explored_whole() -> None:
    instance = Instance(two_phase_commit.DESIGN, {"rms": 3})
    assert not Reduction(instance).version_rules
    assert native.explore(instance, reduction=True).distinct == native.explore(instance).distinct


def test_a_counterexample_is_the_one_of_the_full_exploration() -> None:
    instance = Instance(DESIGNS["kraft-3.5"], {"replicas": 2, "crashes": 0, "lossy_crashes": 1, "isr_changes": 2})
    whole, reduced = native.explore(instance), native.explore(instance, reduction=True)
    broken = [f for f in whole.findings if f.verdict is Verdict.VIOLATED]
    assert broken
    assert [f for f in reduced.findings if f.verdict is Verdict.VIOLATED] == broken
