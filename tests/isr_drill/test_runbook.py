"""Runbooks as people write them: what each step means, and a sentence for each that cannot be read."""

from __future__ import annotations

import attrs
import pytest

from isr_drill.quorum import Voters
from isr_drill.reassignments import Assignment, BadAssignment, BadRunbook
from isr_drill.runbook import (
    RunbookStep,
    Stage,
    Surroundings,
    backwards,
    no_file,
    one_by_one,
    read_runbook,
    with_returns,
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
        ("reassign", "names one file"),
        ("reassign plan.json", "there is no file 'plan.json'"),
        ("drain", "names at least one broker"),
        ("controller halt 1", "stop, kill, destroy or start"),
        ("controller stpo 1", "did you mean 'stop'"),
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


def test_a_setting_is_of_a_topic_or_of_all() -> None:
    one, every = read_runbook("set orders min.insync.replicas=2; set default min.insync.replicas=3", AROUND)
    assert one.stages == (Stage("SET", topic="orders", minimum=2),)
    assert every.stages == (Stage("SET", topic="", minimum=3),)


def with_file(text: str) -> Surroundings:
    def text_of(name: str) -> str:
        return text if name == "plan.json" else no_file(name)

    return attrs.evolve(AROUND, text_of=text_of)


PLAN = '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 9], "log_dirs": ["any", "any"]}]}'


def test_a_reassignment_is_read_from_its_file_and_brings_its_brokers() -> None:
    step, drain, wait, start = read_runbook("reassign plan.json; drain 3; wait reassigned; start 9", with_file(PLAN))
    assert step.stages == (Stage("REASSIGN", assignment=Assignment((("orders-0", (1, 9)),))),)
    assert drain.stages == (Stage("DRAIN", (3,)),)
    assert wait.stages == (Stage("WAIT_REASSIGNED"),)
    assert start.stages == (Stage("START", (9,)),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("orders", "plan.json is no JSON"),
        ("[]", "has no list of partitions"),
        ('{"partitions": []}', "names no partition"),
        ('{"partitions": [{"topic": "orders"}]}', "without a topic, a number or replicas"),
        ('{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 1]}]}', "brokers, each once"),
        ('{"partitions": [{"topic": "orders", "partition": 0, "replicas": ["a"]}]}', "brokers, each once"),
        (PLAN.replace("[{", '[{"topic": "orders", "partition": 0, "replicas": [2]}, {'), "two sets of replicas"),
    ],
)
def test_a_bad_file_of_a_reassignment_is_said_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(BadAssignment) as problem:
        read_runbook("reassign plan.json", with_file(text))
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


def gaps(text: str, voters: frozenset[int] | None) -> list[str]:
    return [step.gap for step in read_runbook(text, attrs.evolve(AROUND, quorum=Voters(voters)))]


VOTERS = frozenset({1, 2, 3})
APART = frozenset({100, 101, 102})


@pytest.mark.parametrize(
    ("text", "voters", "beyond"),
    [
        ("controller stop 100", APART, [""]),
        ("controller stop 100; controller kill 101", APART, ["", "no majority"]),
        ("controller stop 100; controller start 100; controller kill 101", APART, ["", "", ""]),
        ("controller destroy 100", APART, ["votes again"]),
        ("controller stop 100", None, ["who votes was not told"]),
        ("stop 1; start 1; kill 2", VOTERS, ["", "", ""]),
        ("stop 1; kill 2", VOTERS, ["", "no majority"]),
        ("roll 1 2 3", VOTERS, [""]),
        ("destroy 1", VOTERS, ["votes again"]),
        ("power-loss 1", VOTERS, ["with its power"]),
        ("destroy 1 2; power-loss 3", APART, ["", ""]),
    ],
)
def test_controllers_by_the_rule(text: str, voters: frozenset[int] | None, beyond: list[str]) -> None:
    for gap, words in zip(gaps(text, voters), beyond, strict=True):
        assert words in gap
        assert bool(words) is bool(gap)


def test_a_voter_that_is_known_by_its_disk_votes_no_more_without_it() -> None:
    dynamic = attrs.evolve(AROUND, quorum=Voters(VOTERS, dynamic=True))
    (step,) = read_runbook("destroy 1", dynamic)
    assert "votes no more until it is added again" in step.gap
    assert "format it with --no-initial-controllers" in step.gap


def test_who_is_cut_off_is_healed_before_it_stops_or_starts() -> None:
    assert stages("partition 1 2; heal 1") == [("PAUSE", (1, 2)), ("RESUME", (1,))]
    assert [bool(g) for g in gaps("partition 1; start 1; heal 1; stop 1", None)] == [False, True, False, False]
    assert gaps("partition 1; stop 1", None)[1]
    assert gaps("partition 1; kill 1", None)[1] == ""


def test_other_orders_of_the_same_steps() -> None:
    steps = read_runbook("destroy 1; start 1; replace 2", AROUND)
    assert texts(with_waits(steps)) == "destroy 1; start 1; wait in-sync; replace 2; wait in-sync"
    assert texts(backwards(steps)) == "replace 2; destroy 1; start 1"
    assert one_by_one(steps) is None
    both = read_runbook("destroy 1 2; start 1 2", AROUND)
    changed = read_runbook("drain 1; replace 1", AROUND)
    assert texts(with_waits(changed)) == "drain 1; wait reassigned; replace 1; wait in-sync"
    assert backwards(changed) == changed
    assert one_by_one(changed) is None
    assert texts(one_by_one(both)) == "destroy 1; start 1; wait in-sync; destroy 2; start 2; wait in-sync"
    (rolled,) = with_waits(read_runbook("roll 1 2", AROUND))
    assert rolled.text == "roll 1 2 wait in-sync"
    assert rolled.stages.count(Stage("WAIT")) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lose-rack a; roll 2 wait in-sync", "lose-rack a; start 1 3; roll 2 wait in-sync"),
        ("lose-rack a; start 1 3; roll 2 wait in-sync", "lose-rack a; start 1 3; roll 2 wait in-sync"),
        ("destroy 1 2; start 2; wait in-sync; stop 3", "destroy 1 2; start 2; start 1; wait in-sync; stop 3"),
        ("partition 1; stop 2; wait in-sync", "partition 1; stop 2; start 2; heal 1; wait in-sync"),
        ("stop 1; wait in-sync; stop 2; wait in-sync", "stop 1; start 1; wait in-sync; stop 2; start 2; wait in-sync"),
        ("kill 1; roll 1 2 wait in-sync", "kill 1; roll 1 2 wait in-sync"),
        ("kill 2; roll 1 2 wait in-sync", "kill 2; start 2; roll 1 2 wait in-sync"),
        ("replace 1; wait in-sync", "replace 1; wait in-sync"),
        ("stop 1; wait reassigned", "stop 1; wait reassigned"),
    ],
)
def test_who_is_waited_for_is_brought_back(text: str, expected: str) -> None:
    assert texts(with_returns(read_runbook(text, AROUND))) == expected
