"""Systems that are a part of the model: the rest is taken by the model alone, and the part is told of it."""

from __future__ import annotations

import json
from functools import cache
from typing import cast

import pytest
from tests.support.suts import SMALL

from isr_broker.snapshot import Json
from isr_check.reference import Evaluator, State
from isr_conform.compared_run import ComparedRun
from isr_conform.conformance import carried_out
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_conform.sut_client import AnsweredAtOnce, SutFailure
from isr_conform.value_json import JsonObject, parameters_json, state_json
from isr_lang import Instance
from isr_model import KIP_966
from isr_replay.replay import Kind

OWN = ("controller_leader", "controller_epoch", "controller_partition_epoch", "controller_isr", "fenced")


def text_of(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


@cache
def instance() -> Instance:
    return Instance(KIP_966, SMALL)


@cache
def states() -> dict[str, State]:
    """The states of the instance, by their JSON."""
    evaluator = Evaluator(instance())
    ahead = [state for _, state in evaluator.initial_states()]
    found = set(ahead)
    while ahead:
        for _, _, state in evaluator.successors(ahead.pop()):
            if state not in found:
                found.add(state)
                ahead.append(state)
    return {text_of(state_json(instance(), state)): state for state in found}


class ControllerAlone(AnsweredAtOnce):
    """The controller of the model as a system: it has five variables, and is told the others with each request.

    What it is told and what it has must be a state of the model together. So it notices what it is not told.
    """

    def __init__(self) -> None:
        super().__init__()
        self.instance, self.states, self.request_count = instance(), states(), 0
        self.evaluator = Evaluator(self.instance)
        self.actions = [a.name for a in self.instance.actions if a.name.startswith("controller_")]
        self.surroundings = [v.name for v in self.instance.variables if v.name not in OWN]
        self.own: JsonObject = {}
        self.asked = list[str]()

    def successors(self, given: JsonObject) -> dict[str, State]:
        """By the step in JSON what comes of each of its actions."""
        names = [v.name for v in self.instance.variables]
        state = self.states[text_of({name: {**given, **self.own}[name] for name in names})]
        return {
            text_of({"action": name, "parameters": parameters_json(self.instance, name, parameters)}): after
            for index, parameters, after in self.evaluator.successors(state)
            if (name := self.instance.actions[index].name) in self.actions
        }

    def keeps(self, state: JsonObject) -> None:
        self.own = {name: state[name] for name in OWN}

    def ask(self, do: str, **more: Json) -> JsonObject:
        self.request_count += 1
        match do:
            case "hello":
                told: JsonObject = {
                    "variables": list(OWN),
                    "actions": list(self.actions),
                    "surroundings": list(self.surroundings),
                }
                return {"protocol": "insync/conform/1", "name": "a controller", "enabled": True, **told}
            case "reset":
                self.keeps(cast("JsonObject", more["state"]))
                return {}
            case "snapshot":
                return {"state": dict(self.own)}
            case "enabled":
                steps = self.successors(cast("JsonObject", more["surroundings"]))
                return {"enabled": [cast("Json", json.loads(step)) for step in steps]}
            case _:
                return self.step(more)

    def step(self, more: JsonObject) -> JsonObject:
        self.asked.append(str(more["action"]))
        wanted = text_of({"action": more["action"], "parameters": more["parameters"]})
        after = self.successors(cast("JsonObject", more["surroundings"])).get(wanted)
        if after is None:
            return {"done": False}
        self.keeps(state_json(self.instance, after))
        return {"done": True}


class Forgetful(ControllerAlone):
    """It takes nobody out of the ISR."""

    def keeps(self, state: JsonObject) -> None:
        was = self.own.get("controller_isr")
        super().keeps(state)
        if was is not None and len(cast("list[Json]", was)) > len(cast("list[Json]", state["controller_isr"])):
            self.own["controller_isr"] = was


class LeaderAlone(AnsweredAtOnce):
    """One replica of the model as a system: of its state its own log and watermark show, at the second look."""

    def __init__(self, loses: bool = False, settles: float = 5.0) -> None:
        super().__init__()
        self.instance, self.request_count, self.loses, self.settles = instance(), 0, loses, settles
        self.evaluator, self.looks = Evaluator(self.instance), 0
        self.state: JsonObject = {}
        self.asked = list[JsonObject]()

    def ask(self, do: str, **more: Json) -> JsonObject:
        self.request_count += 1
        names: list[Json] = [v.name for v in self.instance.variables]
        match do:
            case "hello":
                told: JsonObject = {"variables": ["log", "high_watermark"], "surroundings": names, "node": "r1"}
                told |= {
                    "actions": ["leader_appends", "follower_appends", "leader_answers_fetch"],
                    "settles": self.settles,
                }
                return {"protocol": "insync/conform/1", "name": "a leader", **told}
            case "reset":
                self.state, self.looks = cast("JsonObject", more["state"]), 0
                return {}
            case "snapshot":
                self.looks += 1
                log: Json = cast("JsonObject", self.state["log"])["r1"] if self.looks > 1 else list[Json]([0])
                watermark = cast("JsonObject", self.state["high_watermark"])["r1"]
                shown: JsonObject = {"log": {"r1": log}}
                if log:
                    shown["high_watermark"] = {"r1": watermark}
                return {"state": shown}
            case _:
                self.asked.append(cast("JsonObject", more["parameters"]))
                before = states()[text_of(more["surroundings"])]
                after = next(
                    after
                    for index, parameters, after in self.evaluator.successors(before)
                    if (action := self.instance.actions[index].name) == more["action"]
                    and parameters_json(self.instance, action, parameters) == more["parameters"]
                )
                self.state, self.looks = state_json(self.instance, before if self.loses else after), 0
                return {"done": True}


def driven(system: ControllerAlone, limits: Limits | None = None) -> ConformanceResult:
    return carried_out(ComparedRun(system.instance, system, limits or Limits()))


@pytest.mark.explores
def test_a_part_is_driven_along_all_edges_of_its_actions() -> None:
    system = ControllerAlone()
    done = driven(system)
    assert done.conforms, done.differences
    assert done.complete
    assert done.edges == done.of_edges
    assert done.states == done.of_states == len(system.states)
    assert set(system.asked) <= set(system.actions)
    assert not done.left_out
    assert set(done.model_alone) == {a.name for a in system.instance.actions} - set(system.actions)


def test_walks_of_a_part_take_the_steps_of_the_rest_alone() -> None:
    system = ControllerAlone()
    done = driven(system, Limits(walks=6, walk_length=20, seed=1))
    assert done.conforms, done.differences
    assert 0 < done.edges < done.states


def test_a_part_that_differs_is_found_behind_steps_of_the_rest() -> None:
    done = driven(Forgetful(), Limits(walks=40, walk_length=20, seed=1, stop_at_first=True))
    (difference,) = done.differences
    assert difference.kind is Kind.INCONSISTENT
    assert difference.places[0][0].startswith("controller_isr")


def test_a_part_that_takes_more_is_found() -> None:
    class Eager(ControllerAlone):
        def successors(self, given: JsonObject) -> dict[str, State]:
            found = super().successors(given)
            extra = {"action": "controller_rejects_stale_alter_partition", "parameters": {"leader": "r2"}}
            return {**found, text_of(cast("Json", extra)): next(iter(self.states.values()))}

    done = driven(Eager(), Limits(walks=1, walk_length=1, seed=1, stop_at_first=True))
    (difference,) = done.differences
    assert (difference.kind, difference.action) == (Kind.UNEXPECTED, "controller_rejects_stale_alter_partition")


def test_a_part_saves_nothing() -> None:
    class Saving(ControllerAlone):
        def ask(self, do: str, **more: Json) -> JsonObject:
            return super().ask(do, **more) | ({"saves": True} if do == "hello" else {})

    with pytest.raises(SutFailure, match="a system with surroundings saves nothing"):
        driven(Saving())


def of_leader(system: LeaderAlone, limits: Limits) -> ConformanceResult:
    return carried_out(ComparedRun(system.instance, system, limits))


@pytest.mark.explores
def test_one_node_is_asked_for_its_own_steps_alone_and_settles() -> None:
    system = LeaderAlone()
    done = of_leader(system, Limits(walks=4, walk_length=20, seed=1))
    assert done.conforms, done.differences
    assert system.asked
    assert all(next(iter(parameters.values())) == "r1" for parameters in system.asked)
    assert done.of_edges is not None
    assert 0 < done.edges <= done.of_edges < len(states())


def test_one_node_that_loses_what_it_appends_is_found() -> None:
    done = of_leader(LeaderAlone(loses=True, settles=0.1), Limits(walks=40, walk_length=20, seed=1, stop_at_first=True))
    assert done.differences[0].places[0][0] in ("log[r1]", "high_watermark[r1]")


def test_a_node_has_surroundings() -> None:
    class Lonely(LeaderAlone):
        def ask(self, do: str, **more: Json) -> JsonObject:
            return super().ask(do, **more) | ({"surroundings": None} if do == "hello" else {})

    with pytest.raises(SutFailure, match="node is a name, of a system with surroundings"):
        of_leader(Lonely(), Limits(walks=1))
