"""Whether bounds leave room for the faults is found without exploring everything, and found right.

Without these, HOLDS could stand where the bounds exclude the very faults that were asked for.
"""

from collections.abc import Iterable
from itertools import product

import pytest
from tests.support.sample import sample

from insync_cli import registry
from insync_cli.model import check
from insync_cli.model.exploration import engine_for_room
from insync_cli.options import read_options
from isr_check.best_first import best_first
from isr_check.engine import Limits, Verdict, silent
from isr_check.explorer import explore
from isr_check.native import explore as native
from isr_check.reference import Evaluator
from isr_check.room_search import MOST_STATES, find_room, room_limits
from isr_experiment.catalogue import EXPERIMENTS
from isr_lang import Instance, Value
from isr_protocol.by_name import DESIGNS
from isr_protocol.promises.allowances import Allowance, allowances
from isr_protocol.promises.premises import PREMISES
from isr_protocol.promises.room import MILESTONES, following, larger, observed, stories
from isr_protocol.promises.worth import room_left, without_bounds
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
    assert following(KIP_966, {}) == {}
    assert following(KIP_966, {"min_insync": 3}) == {"min_insync": 3}
    assert following(KIP_966, {"crashes": 2})["epochs"] == 3
    assert following(KIP_966, {"crashes": 2, "epochs": 1})["epochs"] == 1


@pytest.mark.parametrize(
    ("name", "setting"),
    [("kraft-3.5", {"unclean": True}), ("kip-966", {"min_insync": 1}), ("kip-966", {"acks": "1"})],
)
def test_bounds_follow_a_setting_that_allows_more(name: str, setting: dict[str, Value]) -> None:
    chosen = following(DESIGNS[name], setting)
    assert chosen == {**setting, "epochs": 2, "isr_changes": 4}
    assert following(DESIGNS[name], {**setting, "isr_changes": 2}) == {**chosen, "isr_changes": 2}


def test_a_design_that_elects_incomplete_leaders_has_room_for_an_election_more() -> None:
    """Else kip-279, which loses acknowledged records by an election more, would seem to keep them."""
    assert following(DESIGNS["kip-279"], {}) == {"epochs": 3, "isr_changes": 4}
    assert following(DESIGNS["kip-279"], {"epochs": 2}) == {"epochs": 2, "isr_changes": 4}


def test_a_setting_allows_what_the_designs_own_does_not() -> None:
    assert allowances(KIP_966, {"unclean": True, "min_insync": 1}) == (
        Allowance("unclean", action="controller_elects_unclean"),
        Allowance("min_insync", minimum=2),
    )
    assert allowances(KIP_966, {"acks": "1"}) == (Allowance("acks"),)
    without_epochs = DESIGNS["kip-497-no-partition-epoch"]
    assert allowances(without_epochs, {"unclean": True}) == (Allowance("unclean", action="controller_elects_unclean"),)
    assert not allowances(KIP_966, {"min_insync": 3, "flush": "always", "crashes": 2, "replicas": 5})
    assert not allowances(DESIGNS["kafka-0.8"], {"unclean": False})
    assert not allowances(KIP_966, {"replicas": 1, "min_insync": 1, "acks": "1"})


EXPOSED = ("kraft-3.5", "kip-903", "kip-841", "kip-497", "kip-320", "jepsen-halt", "kip-279", "kip-966")
"""Designs of three replicas, of which some once held everything with unclean election on, at bounds of one epoch."""


@pytest.mark.explores
@pytest.mark.parametrize("setting", [{"unclean": True}, {"min_insync": 1, "unclean": True}, {"acks": "1"}])
@pytest.mark.parametrize("name", sample(EXPOSED, 4))
def test_bounds_that_follow_a_setting_leave_room_for_what_it_allows(name: str, setting: dict[str, Value]) -> None:
    design = DESIGNS[name]
    constants = Instance(design, following(design, {"crashes": 1, **setting})).constants
    beside = [story for story in stories(design, constants) if story.allowance is not None]
    assert beside
    for story in beside:
        if constants["min_insync"] == 2 and story.allowance == UNCLEAN:
            continue  # one crash leaves somebody eligible, so no election is unclean
        looked = best_first(Instance(story.design, constants), story.milestones, 30_000)
        assert looked.milestones_passed == len(story.milestones)


UNCLEAN = Allowance("unclean", action="controller_elects_unclean")


@pytest.mark.explores
@pytest.mark.parametrize(("epochs", "changes"), [(1, 4), (2, 3)])
def test_smaller_bounds_leave_an_unclean_election_no_room(epochs: int, changes: int) -> None:
    constants = Instance(
        DESIGNS["kraft-3.5"], {"replicas": 2, "unclean": True, "epochs": epochs, "isr_changes": changes}
    ).constants
    left = room_left(DESIGNS["kraft-3.5"], constants, native, Limits())
    assert left.witness is None
    assert left.lacking is not None
    assert left.enough == {n: v for n, v in {"epochs": 2, "isr_changes": 4}.items() if v != constants[n]}


@pytest.mark.explores
@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        ({}, None),
        ({"isr_changes": 5}, "follower-rejoins-after-them"),
        ({"reassignments": 0, "disks_replaced": 1}, "all-operations-happen"),
        ({"reassignments": 0, "disks_replaced": 1, "shutdowns": 1}, None),
        ({"reassignments": 0, "minimum_changes": 1}, None),
        ({"reassignments": 0, "copies": 1}, None),
        ({"reassignments": 0, "late_news": 1}, None),
        ({"reassignments": 0, "old_metadata": 1}, None),
        ({"reassignments": 0, "snapshots_loaded": 1}, None),
        ({"reassignments": 0, "directories_removed": 1}, "all-operations-happen"),
        ({"reassignments": 0, "directories_removed": 1, "shutdowns": 1}, None),
        ({"reassignments": 0, "unclean_switches": 1}, None),
    ],
)
def test_bounds_leave_room_for_what_people_do(given: dict[str, Value], lacking: str | None) -> None:
    """A reassignment that no behaviour has time for would lose nothing; no disk is replaced while nobody is down."""
    design = DESIGNS["kafka-4.4"]
    (story,) = stories(design, following(design, given))
    looked = best_first(Instance(story.design, following(design, given)), story.milestones, 30_000)
    missed = story.milestones[looked.milestones_passed :]
    assert (missed[0].name if missed else None) == lacking


@pytest.mark.explores
def test_an_action_that_the_faults_exclude_needs_no_room() -> None:
    """Without a fault nobody is lost, and no election is unclean: that says nothing against the bounds."""
    settings: dict[str, Value] = {"replicas": 2, "unclean": True, "crashes": 0}
    constants = Instance(DESIGNS["kraft-3.5"], following(DESIGNS["kraft-3.5"], settings)).constants
    seen = native(Instance(DESIGNS["kraft-3.5"], constants), ("type-ok",), Limits(), silent)
    assert room_left(DESIGNS["kraft-3.5"], constants, native, Limits(), steps_by_action=seen.steps_by_action).witness
    assert room_left(DESIGNS["kraft-3.5"], constants, native, Limits()).witness is None


@pytest.mark.explores
def test_an_action_that_bounds_exclude_is_not_excluded_by_faults() -> None:
    """The reassignments spend the leader epochs that an unclean election would take: larger bounds break promises."""
    design = DESIGNS["reassigned-by-added"]
    settings: dict[str, Value] = {"unclean": True, "epochs": 2, "isr_changes": 4}
    constants = Instance(design, settings).constants
    seen = native(Instance(design, constants), ("type-ok",), Limits(), silent)
    assert not seen.steps_by_action["controller_elects_unclean"]
    assert room_left(design, constants, native, Limits(), steps_by_action=seen.steps_by_action).witness is None


@pytest.mark.explores
@pytest.mark.parametrize(("crashes", "refused_by_bounds"), [(0, False), (1, True)])
def test_whether_bounds_refuse_an_action_is_seen_where_they_do_not(crashes: int, refused_by_bounds: bool) -> None:
    design = DESIGNS["kraft-3.5"]
    settings: dict[str, Value] = {"replicas": 2, "unclean": True, "crashes": crashes, "epochs": 1, "isr_changes": 2}
    for asked, taken in ((design, False), (without_bounds(design, "controller_elects_unclean"), refused_by_bounds)):
        seen = native(Instance(asked, settings), ("type-ok",), Limits(), silent)
        assert bool(seen.steps_by_action["controller_elects_unclean"]) is taken


@pytest.mark.explores
def test_no_unclean_election_takes_who_is_no_replica() -> None:
    """Kafka elects among the target replicas (PartitionChangeBuilder.electAnyLeader)."""
    instance = Instance(DESIGNS["reassigned-by-added"], {"unclean": True, "epochs": 3, "isr_changes": 4, "replicas": 2})
    seen = native(instance, ("leader-in-isr",), Limits(), silent)
    assert seen.steps_by_action["controller_elects_unclean"]
    assert seen.finding("leader-in-isr").verdict is Verdict.HOLDS


@pytest.mark.parametrize("name", ["kafka-removed-replica", "elr-of-replicas", "reassigned-by-added"])
def test_a_reassignment_without_a_budget_takes_an_election_of_its_own(name: str) -> None:
    before = Instance(KIP_966, {"replicas": 2, "crashes": 0, "sessions_lost": 1}).constants
    design = DESIGNS[name]
    constants = Instance(design, {"crashes": 0, "sessions_lost": 1, "epochs": 1, "isr_changes": 2}).constants
    assert larger(KIP_966, {**before, "epochs": 1, "isr_changes": 2}) == {"epochs": 2, "isr_changes": 4}
    assert larger(design, constants) == {"epochs": 3, "isr_changes": 6}


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
        left = find_room(observed(design), MILESTONES, constants, larger(design, constants), native, Limits())
        lacking += [cell.name] if left.witness is None else []
    return lacking


@pytest.mark.explores
@pytest.mark.parametrize("name", PLAN.designs)
def test_a_sample_of_the_cells_of_the_matrix_has_room_for_its_faults(name: str) -> None:
    small = [(cell, instance) for cell, instance in cells(PLAN, DESIGNS[name]) if not cell.fewer_states]
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


def test_a_search_for_room_ends_and_keeps_to_the_memory_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a check of 100 million states could end in a search that takes all memory, after it has its answer."""
    assert room_limits(Limits(), 1_000).max_states == 104_000
    assert room_limits(Limits(), 110_000_000).max_states == MOST_STATES
    limits: list[int | None] = []

    def engine(*question: object, memory: int | None = None) -> None:
        assert question
        limits.append(memory)

    def engine_named(name: str, workers: int) -> tuple[object, int]:
        assert name
        return engine, workers

    monkeypatch.setattr(registry, "engine_named", engine_named)
    for words in ([], ["--memory", "2G"]):
        exploring = read_options(check.Options, check.USAGE, ["kip-966", *words]).exploring
        engine_for_room(exploring, 1)(Instance(KIP_966, {}), (), Limits(), silent)
    assert limits == [None, 2 << 30]
