"""Whether bounds leave room for the faults is found without exploring everything, and found right.

Without these, HOLDS could stand where the bounds exclude the very faults that were asked for.
"""

from collections.abc import Iterable
from itertools import product

import pytest
from tests.support.sample import sample

from isr_check.best_first import best_first
from isr_check.engine import Limits, silent
from isr_check.explorer import explore
from isr_check.native import explore as native
from isr_check.reference import Evaluator
from isr_check.room import room
from isr_experiment.catalogue import EXPERIMENTS
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.premises import PREMISES
from isr_protocol.promises.room import MILESTONES, following, larger, observed
from isr_report.matrix.plan import Cell, cells, load_plan
from isr_trace.replay import record

KIP_966 = DESIGNS["kip-966"]
LAST = MILESTONES[-1]


def test_history_variables_change_no_behaviour() -> None:
    constants: dict[str, Value] = {"replicas": 2, "isr_changes": 1, "crashes": 0}
    own, more = Instance(KIP_966, constants), Instance(observed(KIP_966), constants)
    wanted = {p.name for p in own.properties}
    places = [i for i, v in enumerate(more.variables) if v.name in {w.name for w in own.variables}]
    seen: set[tuple[object, ...]] = set()
    evaluator = Evaluator(more)
    todo = [state for _, state in evaluator.initial_states()]
    known = set(todo)
    while todo:
        state = todo.pop()
        seen.add(tuple(state[i] for i in places))
        for _, _, after in evaluator.successors(state):
            if after not in known:
                known.add(after)
                todo.append(after)
    assert len(seen) == explore(own, ("acked-survives",)).distinct
    assert not wanted & {m.name for m in MILESTONES}


@pytest.mark.explores
@pytest.mark.parametrize(("epochs", "changes"), [*product((0, 1), (0, 1, 2, 3))])
@pytest.mark.parametrize("fault", ["crashes", "sessions_lost"])
def test_looking_for_a_witness_finds_one_where_there_is_one(epochs: int, changes: int, fault: str) -> None:
    given: dict[str, Value] = {"replicas": 2, "crashes": 0, "epochs": epochs, "isr_changes": changes, fault: 1}
    instance = Instance(observed(KIP_966), given)
    looked = best_first(instance, MILESTONES, 30_000)
    explored = native(instance, (LAST.name,), Limits(), silent).finding(LAST.name)
    assert (looked.milestones_passed == len(MILESTONES)) is (explored.path is not None)


def test_a_witness_is_a_behaviour_that_passes_the_last_milestone() -> None:
    instance = Instance(observed(KIP_966), {"replicas": 3})
    looked = best_first(instance, MILESTONES, 30_000)
    evaluator = Evaluator(instance)
    played = record(evaluator, looked.path.initial, looked.path.steps, property_name=LAST.name, verdict="HOLDS")
    assert len(played.steps) == len(looked.path.steps)
    assert "broker_crashes" in {name for name, _ in looked.path.steps}


@pytest.mark.explores
@pytest.mark.parametrize("name", sample(DESIGNS, 6))
def test_the_bounds_that_follow_one_fault_more_leave_room_for_it(name: str) -> None:
    design = DESIGNS[name]
    given: dict[str, Value] = {"replicas": 3, "crashes": 2}
    constants = Instance(design, following(design, given)).constants
    assert best_first(Instance(observed(design), constants), MILESTONES, 30_000).milestones_passed == len(MILESTONES)


def test_a_design_at_its_own_faults_has_its_own_bounds() -> None:
    assert following(KIP_966, {"min_insync": 1}) == {"min_insync": 1}
    assert following(KIP_966, {"crashes": 2})["epochs"] == 3
    assert following(KIP_966, {"crashes": 2, "epochs": 1})["epochs"] == 1


def test_larger_bounds_are_never_smaller() -> None:
    constants = Instance(KIP_966, {"epochs": 7, "isr_changes": 12}).constants
    assert larger(KIP_966, constants) == {"epochs": 7, "isr_changes": 12}


def test_every_premise_belongs_to_a_promise() -> None:
    promised = {p.name for p in KIP_966.properties if p.kind in ("always", "step")}
    assert set(PREMISES) <= promised
    assert not {p.name for p in PREMISES.values()} & {p.name for d in DESIGNS.values() for p in d.properties}


PLAN = load_plan()


def cells_without_room(of_design: Iterable[tuple[Cell, Instance]]) -> list[str]:
    """The names of those cells whose bounds leave no room for their faults."""
    lacking: list[str] = []
    for cell, instance in of_design:
        design, constants = DESIGNS[cell.design], instance.constants
        left = room(observed(design), MILESTONES, constants, larger(design, constants), native, Limits())
        lacking += [cell.name] if left.witness is None else []
    return lacking


@pytest.mark.explores
@pytest.mark.parametrize("name", PLAN.designs)
def test_a_sample_of_the_cells_of_the_matrix_has_room_for_its_faults(name: str) -> None:
    small = [(cell, instance) for cell, instance in cells(PLAN, DESIGNS[name]) if not cell.symmetry]
    assert small
    assert not cells_without_room(small[::20])


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAN.designs)
def test_every_cell_of_the_matrix_has_room_for_its_faults(name: str) -> None:
    """Else a design would seem to keep a promise under faults that never meet an election."""
    assert not cells_without_room(cells(PLAN, DESIGNS[name]))


@pytest.mark.explores
def test_every_question_of_the_experiment_has_room_for_its_faults() -> None:
    asked = {q.command(): q for e in EXPERIMENTS.values() for c in e.cells(1) for q in c.questions}
    assert len(asked) > 10
    for command, q in asked.items():
        instance = Instance(observed(DESIGNS[q.design]), dict(q.constants))
        assert best_first(instance, MILESTONES, 30_000).milestones_passed == len(MILESTONES), command
