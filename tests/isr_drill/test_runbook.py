"""Runbooks as people write them: what each step means, and a sentence for each that cannot be read."""

from __future__ import annotations

import pytest

from isr_drill.runbook import (
    BadRunbook,
    RunbookStep,
    Stage,
    Surroundings,
    backwards,
    one_by_one,
    read_runbook,
    with_waits,
)

AROUND = Surroundings({1, 2, 3, 7}, {1: "a", 2: "b", 3: "a", 7: "c"}, ["orders", "clicks"])


def stages(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(s.kind, s.brokers) for step in read_runbook(text, AROUND) for s in step.stages]


def texts(steps: tuple[RunbookStep, ...] | None) -> str | None:
    return None if steps is None else "; ".join(step.text for step in steps)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("destroy 3 7; start 3,7", [("DESTROY", (3, 7)), ("START", (3, 7))]),
        ("kill 1\n\n# a remark\npower-loss 2 # and another", [("KILL", (1,)), ("POWER_LOSS", (2,))]),
        ("replace 3 3", [("DESTROY", (3,)), ("START", (3,))]),
        ("lose-rack a", [("POWER_LOSS", (1, 3))]),
        ("roll 1 2", [("STOP", (1,)), ("START", (1,)), ("STOP", (2,)), ("START", (2,))]),
        ("roll b wait in-sync", [("STOP", (2,)), ("START", (2,)), ("WAIT", ())]),
        ("pause 1; wait 30; wait in-sync", [("PAUSE", (1,)), ("WAIT", ())]),
        ("elect preferred; elect unclean", [("ELECT", ())]),
    ],
)
def test_steps_become_stages(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert stages(text) == expected


def test_a_runbook_in_toml() -> None:
    steps = read_runbook('steps = ["stop 3", "start 3; wait in-sync"]\n', AROUND, is_toml=True)
    assert texts(steps) == "stop 3; start 3; wait in-sync"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("destory 3", "did you mean 'destroy'"),
        ("stop", "names at least one broker"),
        ("stop three", "by their numbers, not 'three'"),
        ("stop 8", "there is no broker 8"),
        ("lose-rack aa", "there is no rack 'aa'; did you mean 'a'"),
        ("lose-rack", "names at least one rack"),
        ("wait insync", "did you mean 'in-sync'"),
        ("wait", "wait is for in-sync"),
        ("elect cleanly", "elect is preferred or unclean"),
        ("set order min.insync.replicas=2", "did you mean 'orders'"),
        ("set orders retention.ms=2", "min.insync.replicas=N"),
        ("set orders min.insync.replicas=0", "above 0"),
        ("set orders", "(example: set orders min.insync.replicas=2)"),
        ("  # nothing", "at least one step"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadRunbook) as problem:
        read_runbook(text, AROUND)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("text", ["steps = 3", "steps = [3]", "stop 3", "other = []"])
def test_toml_that_is_no_runbook(text: str) -> None:
    with pytest.raises(BadRunbook):
        read_runbook(text, AROUND, is_toml=True)


@pytest.mark.parametrize(
    "text", ["reassign plan.json", "drain 3", "partition 1 2", "controller stop 1", "wait reassigned"]
)
def test_a_step_that_is_not_carried_has_a_gap(text: str) -> None:
    (step,) = read_runbook(text, AROUND)
    assert step.gap
    assert not step.stages


def test_a_setting_is_a_gap_of_its_topic() -> None:
    one, every = read_runbook("set orders min.insync.replicas=2; set default min.insync.replicas=2", AROUND)
    assert (one.topic, every.topic) == ("orders", "")
    assert one.gap
    assert every.gap


def test_other_orders_of_the_same_steps() -> None:
    steps = read_runbook("destroy 1; start 1; replace 2", AROUND)
    assert texts(with_waits(steps)) == "destroy 1; start 1; wait in-sync; replace 2; wait in-sync"
    assert texts(backwards(steps)) == "replace 2; destroy 1; start 1"
    assert one_by_one(steps) is None
    both = read_runbook("destroy 1 2; start 1 2", AROUND)
    assert texts(one_by_one(both)) == "destroy 1; start 1; wait in-sync; destroy 2; start 2; wait in-sync"
    (rolled,) = with_waits(read_runbook("roll 1 2", AROUND))
    assert rolled.text == "roll 1 2 wait in-sync"
    assert rolled.stages.count(Stage("WAIT")) == 2
