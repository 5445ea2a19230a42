"""Scenarios as text: the classical ones end as they did in history, and generated ones shrink to a few lines.

Without these a scenario could stop showing the loss for which it was written, and nobody would notice.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from tests.support.sample import sample

import isr_sim
from isr_broker.core.effects import CONTROLLER
from isr_sim.scenario import BadScenario, Deed, Expectation, Scenario, parse, play

pytestmark = pytest.mark.explores

FOLDER = Path(isr_sim.__file__).parent / "scenarios"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("seed", sample(range(1, 4), 3))
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_scenario_expects_comes_to_pass_whatever_the_seed(file: Path, seed: int) -> None:
    scenario = parse(file.read_text(encoding="utf-8"))
    outcome = play(scenario, seed)
    assert [str(e) for e in scenario.expectations if not e.is_met_by(outcome)] == [], outcome.violation


def test_those_of_history_are_there() -> None:
    assert [file.stem for file in FILES] == [
        "fenced-rejoin",
        "full-disk",
        "jepsen-2013",
        "kip-320-first-try",
        "last-replica-standing",
        "lost-tail",
        "past-the-end",
        "remade-topic",
        "rotten-metadata",
        "stale-broker-epoch",
        "zombie-leader",
    ]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("jepsen-2013", {"design kafka-0.8": "design kip-966"}),
        ("last-replica-standing", {"design kraft-3.5": "design kip-966", "replicas 1": "replicas 2"}),
        ("last-replica-standing", {"lose-power 1": "crash 1"}),
    ],
)
def test_with_what_was_learned_since_every_promise_is_kept(name: str, changes: dict[str, str]) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    scenario = attrs.evolve(parse(text), expectations=(Expectation("kept"),))
    for seed in range(1, 4):
        outcome = play(scenario, seed)
        assert outcome.promise is None, outcome.violation


def test_the_same_seed_gives_the_same_history() -> None:
    scenario = parse(FILES[0].read_text(encoding="utf-8"))
    assert play(scenario, 5).trace == play(scenario, 5).trace != play(scenario, 6).trace


# What is no scenario


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("at 10 crush 1\nexpect kept", "line 1: nobody can 'crush'; did you mean 'crash'?"),
        ("desing kip-966\nexpect kept", "line 1: there is no statement 'desing'; did you mean 'design'?"),
        ("design kip-9\nexpect kept", "line 1: insync.design=kip-9: it must be one of kip-966"),
        ("\nset min.isr 2\nexpect kept", "line 2: there is no setting 'min.isr'; did you mean 'min.insync.replicas'?"),
        ("at soon crash 1\nexpect kept", "line 1: 'soon' is not a time"),
        ("at 10 crash 4\nexpect kept", "'at 10 crash 4': there are 3 brokers"),
        ("at 10 cut 1 => 2\nexpect kept", "line 1: 'cut 1 => 2' is not how cut is said"),
        ("at 10 cut 1 -> moon\nexpect kept", "line 1: 'moon' is not a broker"),
        ("at 10 slow 1 -> 2\nexpect kept", "line 1: 'slow 1 -> 2' is not how slow is said"),
        ("at 10 slow 1 -> 2 by far\nexpect kept", "line 1: 'far' is not a duration"),
        ("at 9000 crash 1\nend 8000\nexpect kept", "'at 9000 crash 1' is after the end, 8000"),
        ("at 10 crash 1", "nothing is expected of it"),
        ("expect the best", "line 1: expected is one of: kept"),
        ("brokers", "line 1: 'brokers' is incomplete"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(BadScenario) as said:
        parse(text)
    assert complaint in str(said.value)


# Generated ones: what Hypothesis finds and shrinks is a scenario file


TIMES = st.integers(0, 9).map(lambda n: 500 * n)
BROKERS = st.integers(1, 3)
ENDS = st.sampled_from([1, 2, 3, CONTROLLER])
LASTING = st.integers(1, 6).map(lambda n: 500 * n)
DEEDS = st.one_of(
    st.builds(Deed, TIMES, st.sampled_from(["crash", "start", "shut-down"]), BROKERS),
    st.builds(Deed, TIMES, st.just("pause"), ENDS, lasting=LASTING),
    st.builds(Deed, TIMES, st.just("cut"), ENDS, ENDS, both=st.booleans()),
    st.builds(Deed, TIMES, st.just("slow"), ENDS, ENDS, both=st.booleans(), lasting=LASTING),
    st.builds(Deed, TIMES, st.just("lead"), BROKERS),
    st.builds(Deed, TIMES, st.just("join"), ENDS, ENDS, both=st.booleans()),
    st.builds(Deed, TIMES, st.just("restart"), st.just(CONTROLLER)),
    st.builds(Deed, TIMES, st.just("retain"), BROKERS),
    st.builds(Deed, TIMES, st.sampled_from(["remake", "rot"])),
)


def scenarios(*head: tuple[str, str]) -> st.SearchStrategy[Scenario]:
    """Scenarios of a design with settings, in which no disk loses anything."""

    def built(deeds: list[Deed]) -> Scenario:
        return Scenario(settings=head, deeds=tuple(sorted(deeds, key=lambda deed: deed.at)), end=5_000)

    return st.lists(DEEDS, max_size=6).map(built)


TODAY = scenarios(("insync.design", "kip-966"), ("min.insync.replicas", "2"))


@given(TODAY)
@settings(max_examples=6, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_todays_design_keeps_its_promises_in_generated_scenarios(scenario: Scenario) -> None:
    keeps_its_promises(scenario)


@pytest.mark.slow
@given(TODAY)
@settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_todays_design_keeps_its_promises_in_many_generated_scenarios(scenario: Scenario) -> None:
    keeps_its_promises(scenario)


def keeps_its_promises(scenario: Scenario) -> None:
    assert parse(str(scenario)) == scenario
    outcome = play(scenario, 1)
    assert outcome.promise is None, f"{outcome.violation}\n{scenario}"


def test_a_lost_write_shrinks_to_a_scenario_of_few_lines() -> None:
    head = (("insync.design", "kafka-0.8"), ("min.insync.replicas", "1"))
    budget = settings(
        max_examples=60, derandomize=True, deadline=None, database=None, phases=(Phase.generate, Phase.shrink)
    )
    found = find(scenarios(*head), lambda scenario: play(scenario, 1).promise is not None, settings=budget)
    assert 1 <= len(found.deeds) <= 4, str(found)
    again = parse(str(found))
    assert play(again, 1).promise is not None
    for deed in found.deeds:
        fewer = attrs.evolve(again, deeds=tuple(d for d in again.deeds if d != deed))
        assert play(fewer, 1).promise is None, f"without '{deed}' it is lost, too"
