"""Random walks in place of all states: never a stronger word than SAMPLED, and what they find is real."""

from __future__ import annotations

import pytest
from tests.support.models import copies, ticket_desk

from isr_check import explorer
from isr_check.engine import DEADLOCK, Exploration, Limits, Path, Verdict
from isr_check.reference import Evaluator, State
from isr_check.sample import simulate
from isr_lang import Instance

COPIES = Instance(copies.DESIGN, {"nodes": 3, "length": 1, "careless": True})


def walked(instance: Instance, path: Path) -> list[State]:
    """The states of a path, which must be possible."""
    evaluator = Evaluator(instance)
    states = [next(s for p, s in evaluator.initial_states() if tuple(p) == path.initial)]
    names = [a.name for a in instance.actions]
    for name, parameters in path.steps:
        options = {(names[a], tuple(p)): s for a, p, s in evaluator.successors(states[-1])}
        states.append(options[name, parameters])
    return states


def test_the_same_seed_walks_alike_and_another_does_not() -> None:
    one, again, other = (simulate(COPIES, (), 5, seed) for seed in (1, 1, 2))
    assert (one.findings, one.taken, one.generated) == (again.findings, again.taken, again.generated)
    assert one.taken != other.taken


def test_what_a_walk_finds_is_so() -> None:
    whole, found = explorer.explore(COPIES), simulate(COPIES, (), 300, 1)
    evaluator = Evaluator(COPIES)
    properties = {p.name: p for p in COPIES.properties}
    decided = [f for f in found.findings if f.path is not None]
    assert len(decided) > 5
    for f in decided:
        assert f.path is not None
        exact = whole.finding(f.name).path
        assert exact is not None
        assert len(f.path.steps) >= len(exact.steps)
        states = walked(COPIES, f.path)
        if f.name == "type-ok":
            assert not evaluator.in_range(states[-1])
            continue
        p = properties[f.name]
        of = states[-2:] if p.kind in ("step", "sometimes-step") else states[-1:]
        assert evaluator.holds(p, *of) is p.kind.startswith("sometimes")


def words(found: Exploration) -> dict[str, str]:
    return {f.name: f.verdict.value for f in found.findings}


def test_the_words() -> None:
    found = simulate(COPIES, (), 300, 1)
    assert not found.complete
    assert words(found)["type-ok"] == Verdict.VIOLATED
    assert words(found)["terms-grow"] == Verdict.SAMPLED
    assert words(found)["never-so-many"] == Verdict.SAMPLED
    assert found.finding("a-log-shrinks").verdict is Verdict.SAMPLED
    assert found.finding("a-log-shrinks").path is not None


def test_fewer_walks_than_asked_for_are_no_sample() -> None:
    found = simulate(COPIES, ("terms-grow",), 1000, 1, Limits(max_states=3))
    assert words(found) == {"terms-grow": Verdict.BUDGETED}


def test_a_simulation_ends_when_all_is_decided() -> None:
    found = simulate(COPIES, ("type-ok",), 10**9, 1)
    assert words(found) == {"type-ok": Verdict.VIOLATED}


@pytest.mark.parametrize("name", ticket_desk.DESIGNS)
def test_a_deadlock_is_found_where_there_is_one(name: str) -> None:
    instance = Instance(ticket_desk.DESIGNS[name])
    stuck = explorer.explore(instance, (DEADLOCK,)).finding(DEADLOCK).path is not None
    found = simulate(instance, (DEADLOCK,), 200, 1).finding(DEADLOCK)
    assert (found.path is not None) is stuck
    if found.path is not None:
        assert not list(Evaluator(instance).successors(walked(instance, found.path)[-1]))


def test_walks_end_so_they_say_nothing_of_liveness() -> None:
    instance = Instance(ticket_desk.DESIGNS["careful"])
    live = next(p.name for p in instance.properties if p.kind == "eventually")
    assert words(simulate(instance, (live, "type-ok"), 3, 1)) == {"type-ok": Verdict.SAMPLED, live: Verdict.UNKNOWN}
