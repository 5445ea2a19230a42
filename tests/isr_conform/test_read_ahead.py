"""Walks whose steps are asked for ahead: the same walks, whatever the system does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.suts import CoresInProcess, drive

from isr_broker.snapshot import Json
from isr_conform import driving
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_conform.value_json import JsonObject

Lie = Callable[[str, JsonObject, JsonObject], JsonObject]
WALKS = Limits(walks=12, walk_length=40, seed=5)


class Cores(CoresInProcess):
    """The broker's cores, which cannot be brought to a step of the action `stubborn`."""

    def __init__(self, lie: Lie = lambda do, request, answer: answer, stubborn: str = "") -> None:
        super().__init__(lie)
        self.stubborn = stubborn

    def ask(self, do: str, **more: Json) -> JsonObject:
        if do == "step" and more.get("action") == self.stubborn:
            return {"cannot": "nobody lags"}
        return super().ask(do, **more)


def says_nothing(do: str, request: JsonObject, answer: JsonObject) -> JsonObject:
    return {"enabled": []} if do == "enabled" else answer


def same(done: ConformanceResult) -> tuple[object, ...]:
    """What does not depend on how many requests there were."""
    counts = done.edges, done.states, done.pairs, done.steps, done.actions, done.count, done.cannot
    return *counts, [(d.kind, d.action, d.path, d.places) for d in done.differences]


def along(system: Cores, monkeypatch: pytest.MonkeyPatch, stride: int) -> ConformanceResult:
    monkeypatch.setattr(driving, "STRIDE", stride)
    return drive(system, WALKS, crashes=1)


@pytest.mark.explores
@pytest.mark.parametrize(
    "make",
    [Cores, lambda: Cores(stubborn="leader_proposes_shrink"), lambda: Cores(says_nothing)],
    ids=["as the model", "cannot", "lists nothing"],
)
def test_the_walks_are_those_of_one_step_at_a_time(make: Callable[[], Cores], monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, one_by_one = along(make(), monkeypatch, 64), along(make(), monkeypatch, 1)
    assert same(ahead) == same(one_by_one)
    assert ahead.steps > 50


@pytest.mark.explores
def test_a_system_as_the_model_is_asked_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, one_by_one = along(Cores(), monkeypatch, 64), along(Cores(), monkeypatch, 1)
    assert ahead.requests == one_by_one.requests
    refused = along(Cores(stubborn="leader_proposes_shrink"), monkeypatch, 64)
    assert refused.cannot
