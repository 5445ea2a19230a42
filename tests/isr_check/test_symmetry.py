"""By symmetry an exploration sees one state per orbit and answers the same."""

from __future__ import annotations

import attrs
import pytest
from tests.support.expected import EXPECTED, Outcome, Run, outcome, table, thinned
from tests.support.models import copied_log, copies, two_phase_commit
from tests.support.strategies import numbered_model, trace

from isr_check import explorer, native
from isr_check.engine import DEADLOCK, Exploration, Limits, Unsound, Verdict
from isr_check.native.renaming import exchanges, weave
from isr_check.symmetry import Symmetry
from isr_lang import Design, Instance
from isr_lang.constants import Value
from isr_protocol.by_name import DESIGNS

pytestmark = pytest.mark.explores

SMALL = Limits(max_states=300)
SOME_STATES = 500_000
ROWS = table() if EXPECTED.exists() else []


def answers(found: Exploration) -> object:
    """What must not depend on symmetry: verdicts, counterexamples and witnesses, depth."""
    return found.findings, found.complete, found.depth


def compare(instance: Instance, wanted: tuple[str, ...] = ()) -> tuple[Exploration, Exploration]:
    whole = explorer.explore(instance, wanted)
    return whole, compare_with(whole, instance, wanted)


def compare_with(whole: Exploration, instance: Instance, wanted: tuple[str, ...] = ()) -> Exploration:
    reduced = explorer.explore(instance, wanted, symmetry=True)
    assert answers(reduced) == answers(whole)
    assert reduced.states_in_orbits == whole.distinct
    for workers in (1, 2):
        found = native.explore(instance, wanted, workers=workers, symmetry=True)
        assert attrs.evolve(found, seconds=0) == attrs.evolve(reduced, seconds=0)
    return reduced


@pytest.mark.parametrize("size", range(6))
def test_the_walk_of_exchanges_passes_every_order_once(size: int) -> None:
    order = list(range(size))
    seen = [tuple(order)]
    for move in exchanges(size):
        order[move], order[move + 1] = order[move + 1], order[move]
        seen.append(tuple(order))
    expected = 1
    for n in range(2, size + 1):
        expected *= n
    assert len(set(seen)) == len(seen) == expected


def test_a_woven_walk_passes_every_pair_once() -> None:
    order = [0, 1, 2, 10, 11, 12]
    seen = [tuple(order)]
    for move in weave(exchanges(3), [3 + m for m in exchanges(3)]):
        order[move], order[move + 1] = order[move + 1], order[move]
        seen.append(tuple(order))
    assert len(set(seen)) == len(seen) == 36


@pytest.mark.parametrize(("managers", "orbits"), [(2, 34), (3, 80), (4, 166)])
def test_two_phase_commit(managers: int, orbits: int) -> None:
    _, reduced = compare(Instance(two_phase_commit.DESIGN, {"rms": managers}))
    assert reduced.distinct == orbits


def test_seven_managers_have_the_published_number_of_states() -> None:
    found = native.explore(Instance(two_phase_commit.DESIGN, {"rms": 7}), symmetry=True)
    assert found.states_in_orbits == 296448
    assert found.distinct < 1000


@pytest.mark.parametrize("wanted", [(), ("logs-agree",), ("a-log-shrinks",), (DEADLOCK,)])
@pytest.mark.parametrize(
    "constants",
    [{"nodes": 3, "length": 1}, {"nodes": 2, "gossip": True, "length": 1}, {"nodes": 2, "length": 1, "careless": True}],
)
def test_every_part_of_the_language(constants: dict[str, Value], wanted: tuple[str, ...]) -> None:
    compare(Instance(copies.DESIGN, constants), wanted)


def test_a_copied_log() -> None:
    compare(Instance(copied_log.UNCLEAN, {"records": 1}))


TWO_SORTS = """
from isr_lang import *
from isr_lang.blank import blank
LEFT = bound("left", "Left.", default=3, low=1, high=4)
RIGHT = bound("right", "Right.", default=3, low=1, high=4)
class L(Sort, size=LEFT, prefix="l"): "Left."
class R(Sort, size=RIGHT, prefix="r"): "Right."
class State(Struct):
    likes: Map[L, Set[R]] = var("Of the right whom each of the left likes.")
    met: Map[R, Map[L, Bool]] = var("Who met whom.")
    best: Map[L, Maybe[R]] = var("Of those whom each likes.")
    last: R = var("Who met last.")
    pair: Map[R, R] = var("Whom each follows.")
@initial
def init(new: State, first: R) -> Step:
    return (new.likes == Map.build(L, lambda l: Set.empty(R)), new.last == first,
            new.met == Map.build(R, lambda r: Map.build(L, lambda l: Bool.false)),
            new.best == blank(new.best), new.pair == Map.build(R, lambda r: first))
@action
def meets(old: State, new: State, l: L, r: R) -> Step:
    return (~old.met[r][l], old.likes[l].size() < 2, new.met[r][l], new.last == r,
            new.likes[l] == old.likes[l].including(r))
@action
def chooses(old: State, new: State, l: L, r: R) -> Step:
    return (old.likes[l].has(r), old.best[l] == NONE, new.best[l] == r, new.pair[r] == old.last)
@always
def nobody_twice(s: State) -> Bool:
    return forall((s.best[a] == s.best[b]).implies((a == b) | (s.best[a] == NONE)) for a in L.all() for b in L.all())
DESIGN = Design("two-sorts", "Two sorts.", State, init, (meets, chooses), (nobody_twice,))
"""


def test_two_sorts_at_once() -> None:
    whole, reduced = compare(Instance(trace(TWO_SORTS), {"left": 2, "right": 3}), (DEADLOCK, "nobody-twice"))
    assert whole.distinct > 5 * reduced.distinct


@pytest.mark.parametrize("number", range(10))
def test_random_models(number: int) -> None:
    compared = 0
    for n in range(number * 10, number * 10 + 10):
        instance = numbered_model(n, promises=3).instance()
        try:
            Symmetry(instance)
        except Unsound:
            continue
        expected = explorer.explore(instance, (), SMALL)
        if not any(f.verdict is Verdict.BUDGETED for f in expected.findings):
            compared += 1
            compare_with(expected, instance)
    assert compared


@pytest.mark.parametrize(("run", "said"), thinned([(r, o) for r, o, _ in ROWS if o.distinct <= SOME_STATES], 6))
def test_what_is_expected_of_every_engine_is_so_by_symmetry(run: Run, said: Outcome) -> None:
    found = native.explore(run.instance(), symmetry=True)
    assert found.states_in_orbits == said.distinct
    assert attrs.evolve(outcome(found), distinct=said.distinct, generated=said.generated) == said


def test_three_replicas_have_six_times_fewer_states() -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 3, "isr_changes": 1})
    whole, reduced = native.explore(instance), native.explore(instance, symmetry=True)
    assert answers(reduced) == answers(whole)
    assert reduced.states_in_orbits == whole.distinct
    assert whole.distinct > 4.5 * reduced.distinct


@pytest.mark.parametrize(("replicas", "times"), [(6, 200), pytest.param(7, 800, marks=pytest.mark.slow)])
def test_as_many_replicas_as_there_may_be(replicas: int, times: int) -> None:
    instance = Instance(DESIGNS["kip-320"], {"replicas": replicas, "isr_changes": 0, "epochs": 0, "crashes": 0})
    whole, reduced = native.explore(instance), native.explore(instance, symmetry=True)
    assert answers(reduced) == answers(whole)
    assert reduced.states_in_orbits == whole.distinct
    assert whole.distinct > times * reduced.distinct


@pytest.mark.parametrize("name", ["kafka-0.8", "kafka-7164"])
def test_counterexamples_are_the_same(name: str) -> None:
    instance = Instance(DESIGNS[name])
    promised = tuple(
        p.name for p in instance.properties if p.kind == "always" and p.name in dict(DESIGNS[name].expected)
    )
    whole = native.explore(instance, promised)
    assert [f.verdict for f in whole.findings] == [Verdict.VIOLATED] * len(promised)
    assert answers(native.explore(instance, promised, symmetry=True)) == answers(whole)


# What is refused

ODD = """
from isr_lang import *
SIZE = bound("size", "How many.", default=2, low=1, high=8)
class T(Sort, size=SIZE, prefix="t"): "A thing."
class N(Number, high=2): "A number."
class State(Struct):
    n: N = var("A number.")
    by: Map[N, T] = var("Things by number.")
    row: {row} = var("More things.")
@initial
def init(new: State, t: T) -> Step:
    return (new.n == 0, new.row == {empty}, new.by == Map.build(N, lambda n: t))
@action
def counts(old: State, new: State) -> Step:
    return (old.n < 2, new.n == old.n + 1, old.by[old.n {beyond}] == old.by[0])
DESIGN = Design("odd", "Odd.", State, init, (counts,), ())
"""
PLAIN = {"row": "Set[T]", "empty": "Set.empty(T)", "beyond": ""}


def odd(**parts: str) -> Design:
    return trace(ODD.format_map(PLAIN | parts))


def test_the_plain_model_is_not_refused() -> None:
    compare(Instance(odd(), {"size": 3}))


@pytest.mark.parametrize(
    ("parts", "size", "sentence"),
    [
        ({"beyond": "+ 1"}, 2, "'old.by[old.n + 1]' in counts can be one certain element"),
        ({"row": "Seq[N, T]", "empty": "Seq.empty(N, T)"}, 2, "row is a sequence of T"),
        ({}, 8, "40,320 renamings"),
        ({}, 1, "no symmetric sort"),
    ],
)
def test_a_model_that_tells_elements_apart_is_refused(parts: dict[str, str], size: int, sentence: str) -> None:
    instance = Instance(odd(**parts), {"size": size})
    for engine in (explorer, native):
        with pytest.raises(Unsound, match="cannot be explored by symmetry") as refused:
            engine.explore(instance, symmetry=True)
        assert sentence in str(refused.value)


def test_liveness_by_symmetry_is_refused() -> None:
    instance = Instance(DESIGNS["kip-966"])
    live = next(p.name for p in instance.properties if p.kind == "eventually")
    with pytest.raises(Unsound, match=live):
        native.explore(instance, (live,), symmetry=True)
