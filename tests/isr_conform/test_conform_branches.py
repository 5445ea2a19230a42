"""Systems that answer `branch`: every edge from a saved state, whatever the system does at one of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import cast

import pytest
from tests.support.suts import SMALL, CoresInProcess, drive

from insync_cli.conformance.conform import result_line
from insync_cli.exits import Exit
from insync_cli.main import main
from isr_broker.snapshot import Json
from isr_conform.compared_run import ComparedRun
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import Limits
from isr_conform.edge_cover import ReachableStates, SpanningTree
from isr_conform.sut_messages import Place
from isr_conform.value_json import JsonObject
from isr_lang import Instance
from isr_model import KIP_966


class Branching(CoresInProcess):
    """The broker's cores, which answer `branch` by doing what it asks for one by one."""

    most = 0
    saved = 0

    def ask(self, do: str, **more: Json) -> JsonObject:
        if do == "hello":
            return super().ask(do, **more) | {"branches": True, "forgets": True}
        if do == "branch":
            return self.branch(more)
        self.saved = 0 if do == "reset" else self.saved + (do == "save")
        return super().ask(do, **more)

    def branch(self, asked: JsonObject) -> JsonObject:
        token, after = asked["token"], list[Json]()
        self.saved -= len(cast("list[Json]", asked["forget"]))
        super().ask("restore", token=token)
        said: JsonObject = super().ask("enabled") if asked["enabled"] else {}
        for step in cast("list[dict[str, Json]]", asked["steps"]):
            super().ask("restore", token=token)
            came = super().ask("step", action=step["action"], parameters=step["parameters"])
            if came.get("done") is True:
                came = came | super().ask("snapshot") | (self.ask("save") if step["save"] else {})
            after.append(came)
        self.most = max(self.most, self.saved)
        return {**said, "after": after}


@pytest.mark.explores
def test_a_system_that_branches_is_driven_along_the_same_edges() -> None:
    system = Branching()
    whole, branched = drive(CoresInProcess()), drive(system)
    assert branched.conforms, branched.differences
    assert branched.complete
    assert (branched.edges, branched.states) == (whole.edges, whole.states) == (whole.of_edges, whole.of_states)
    assert branched.actions == whole.actions
    assert system.most < 100


@pytest.mark.long
def test_a_sample_goes_no_edge_twice_on_its_ways() -> None:
    done = drive(Branching(), Limits(per_action=5, seed=3))
    assert done.conforms
    assert (done.drawn_edges, done.complete) == (done.of_drawn, True)
    assert done.steps == done.edges
    assert done.resets <= 2


@pytest.mark.explores
def test_states_behind_an_edge_that_is_not_passed_are_reached_another_way() -> None:
    """The system never asks for a shrink; what can be reached otherwise is driven in a second round."""

    class Stubborn(Branching):
        def ask(self, do: str, **more: Json) -> JsonObject:
            if do == "step" and more.get("action") == "leader_proposes_shrink":
                return {"cannot": "nobody lags"}
            return super().ask(do, **more)

        def branch(self, asked: JsonObject) -> JsonObject:
            steps = cast("list[dict[str, Json]]", asked["steps"])
            lags = [step["action"] == "leader_proposes_shrink" for step in steps]
            rest: JsonObject = {**asked, "steps": [s for s, lag in zip(steps, lags, strict=True) if not lag]}
            said = super().branch(rest)
            others = iter(cast("list[Json]", said["after"]))
            cannot: Json = {"cannot": "nobody lags"}
            return {**said, "after": [cannot if lag else next(others) for lag in lags]}

    by_branches, by_paths = drive(Stubborn()), drive(Stubborn(), Limits(paths=True))
    assert by_branches.cannot
    assert (by_branches.edges, by_branches.states) == (by_paths.edges, by_paths.states)
    assert by_branches.edges < (by_branches.of_edges or 0)


@pytest.mark.long
def test_the_first_difference_ends_it_with_answers_still_to_come() -> None:
    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        if do == "snapshot":
            state = cast("dict[str, Json]", answer["state"])
            return {"state": {**state, "high_watermark": {"r1": 0, "r2": 0}}}
        return answer

    done = drive(Branching(lie), Limits(stop_at_first=True))
    assert [place.partition("[")[0] for d in done.differences for place, _, _ in d.places] == ["high_watermark"]
    assert not done.complete


Known = tuple[str, str, Sequence[Place], Sequence[Place] | None]


def told_of(system: Branching, limits: Limits) -> list[Known]:
    """What somebody who knows all differences of a system is told of each."""
    known: list[Known] = []

    def explain(
        kind: str,
        before: JsonObject,
        action: str,
        parameters: JsonObject,
        places: Sequence[Place],
        own: Sequence[Place] | None,
    ) -> str:
        known.append((kind, action, places, own))
        return "known"

    run = ComparedRun(Instance(KIP_966, SMALL), system, limits, explain=explain)
    done = carried_out(run)
    assert done.conforms
    assert done.known_differences == {"known": len(known)}
    return known


@pytest.mark.parametrize("limits", [Limits(per_action=1, seed=1), Limits(walks=2, walk_length=10)])
def test_of_a_step_that_the_model_forbids_it_is_seen_what_comes(limits: Limits) -> None:
    """A system that fences r1 at any time, and whoever is asked for it stays as it was: the session is not lost."""
    fences: JsonObject = {"action": "controller_fences_outsider", "parameters": {"r": "r1"}}

    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        if do == "enabled":
            return {"enabled": [*cast("list[Json]", answer["enabled"]), fences]}
        return {"done": True} if request.get("action") == fences["action"] else answer

    known = told_of(Branching(lie), limits)
    assert len(known) > 3
    assert {(kind, action) for kind, action, _, _ in known} == {("unexpected action", fences["action"])}
    for _, _, places, own in known:
        assert not places
        assert own is not None
        assert [place for place, _, _ in own] == ["fenced", "sessions_lost"]


@pytest.mark.parametrize("limits", [Limits(per_action=1, seed=1), Limits(walks=4, walk_length=30)])
@pytest.mark.parametrize("tells", [True, False])
def test_in_place_of_a_step_that_is_missing_another_one_is_seen(limits: Limits, tells: bool) -> None:
    class LazyCores(CoresInProcess):
        def ask(self, do: str, **more: Json) -> JsonObject:
            if do == "step" and more.get("action") == "leader_appends":
                state = super().ask("snapshot")["state"]
                return {"done": False, "why": "later", **({"instead": state} if tells else {})}
            return super().ask(do, **more)

    class Lazy(Branching, LazyCores):
        pass

    known = told_of(Lazy(), limits)
    assert known
    for kind, action, places, own in known:
        assert (kind, action, list(places)) == ("missing action", "leader_appends", [])
        assert (own is not None) == tells
        assert {place.partition("[")[0] for place, _, _ in own or ()} >= ({"log"} if tells else set[str]())


@pytest.mark.parametrize(("left", "labels"), [([3], [7, 9]), ([2, 3], [7, 8, 9]), ([1, 5], [7]), ([], [])])
def test_a_tree_leads_to_what_is_left_and_to_nothing_else(left: list[int], labels: list[int]) -> None:
    tree = SpanningTree(ReachableStates({0: None, 1: (0, 7), 2: (1, 8), 3: (1, 9), 4: (0, 6)}), left)
    assert sorted(label for children in tree.children.values() for label in children) == labels
    assert (0 in tree.children) == bool(left)


@pytest.mark.explores
def test_edges_near_walks_are_all_those_of_the_states_that_walks_come_by() -> None:
    system = Branching()
    done = drive(system, Limits(near_walks=200, walk_length=10, seed=3))
    assert done.conforms
    assert done.complete
    assert 200 <= done.of_drawn == done.drawn_edges == done.edges == done.steps < 250
    assert done.resets <= 2
    assert system.most < 50


@pytest.mark.explores
def test_edges_near_walks_come_to_an_end_where_the_model_has_fewer() -> None:
    done = drive(Branching(), Limits(near_walks=100_000, walk_length=30))
    assert done.complete
    assert 1000 < done.edges == done.of_drawn < 100_000


def test_a_system_that_does_not_branch_is_driven_near_walks_too() -> None:
    done = drive(CoresInProcess(), Limits(near_walks=100, walk_length=10, seed=3))
    assert done.conforms
    assert done.drawn_edges == done.of_drawn >= 100


def test_a_lie_is_found_near_walks() -> None:
    def lie(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
        if do == "snapshot" and cast("dict[str, dict[str, Json]]", answer["state"])["high_watermark"]["r1"]:
            state = cast("dict[str, Json]", answer["state"])
            return {"state": {**state, "high_watermark": {"r1": 0, "r2": 0}}}
        return answer

    done = drive(Branching(lie), Limits(near_walks=600, walk_length=30))
    assert {place.partition("[")[0] for d in done.differences for place, _, _ in d.places} == {"high_watermark"}
    assert done.edges + done.count.total() < done.of_drawn, "what is behind a difference is not driven"


@pytest.mark.explores
def test_the_last_line_says_how_many_edges_near_walks_there_were() -> None:
    few = drive(Branching(), Limits(near_walks=100_000, walk_length=30))
    assert f"SAMPLED({few.drawn_edges} of 100000 edges near walks, seed 0)" in result_line(few)
    assert "SAMPLED(200 edges near walks, seed 3)" in result_line(
        drive(Branching(), Limits(near_walks=200, walk_length=10, seed=3))
    )


@pytest.mark.parametrize(
    ("first", "second"), combinations(("--sample 1", "--edges 1", "--near-walks 1", "--trace a.json"), 2)
)
def test_one_run_drives_one_kind_of_sample(first: str, second: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "--sut", "true", *first.split(), *second.split()]) == Exit.USAGE
    options = f"{first.split()[0]} and {second.split()[0]}"
    assert f"{options} exclude each other" in " ".join(capsys.readouterr().err.split())
