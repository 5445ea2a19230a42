"""What leaves its range is seen: by every engine, whatever is asked, and nothing beside it is said to hold.

All engines take the declared ranges for granted, for they share what `Instance` folds. Without this file a design
with an unguarded counter, or one that stores a value that its types cannot have, would be said to keep its promises.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import pytest
from tests.support import checkers
from tests.support.sample import sample
from tests.support.strategies import trace

from isr_check import explorer, native, simulation
from isr_check.best_first import best_first
from isr_check.engine import DEADLOCK, TYPE_OK, Exploration, Verdict
from isr_check.native import simulation as walks
from isr_check.smt import Counterexample, table
from isr_lang import Instance
from isr_lang.errors import ModelError

pytestmark = pytest.mark.explores

HEAD = """
from isr_lang import *
TOP = bound("top", "The highest.", default=2, low=0, high=4)
GATE = switch("gate", "Whether some things exist.", default=False)
SIZE = bound("size", "How many.", default=2, low=1, high=3)
class N(Number, high=TOP): "A number."
class M(Number, low=1, high=3): "Another one."
class P(Sort, size=SIZE, prefix="p", symmetric=True): "Names."
"""

STORES = {
    "number": ("N", "new.x == old.n + {d}"),
    "number that begins at 1": ("M", "new.x == old.m + ({d})"),
    "maybe": ("Maybe[N]", "new.x == Maybe.of(old.n + {d})"),
    "maybe that begins at 1": ("Maybe[M]", "new.x == Maybe.of(old.m + ({d}))"),
    "maybe by a definition": ("Maybe[N]", "new.x == some_of(old, old.n + {d})"),
    "maybe that may be none": ("Maybe[N]", "new.x == when(old.n == 0, Maybe.of(old.n + {d}), old.x)"),
    "map": ("Map[P, N]", "new.x == Map.build(P, lambda p: old.n + {d})"),
    "map at a key": ("Map[P, N]", "new.x[p] == old.n + {d}"),
    "map of maybe": ("Map[P, Maybe[N]]", "new.x[p] == Maybe.of(old.n + {d})"),
    "map of maps": ("Map[P, Map[P, M]]", "new.x[p][p] == old.m + ({d})"),
    "key": ("Map[N, Bool]", "new.x[old.n + {d}] == Bool.true"),
    "key of put": ("Map[N, N]", "new.x == old.x.put(old.n + {d}, old.n)"),
    "key of a key": ("Map[P, Map[M, N]]", "new.x[p][old.m + ({d})] == old.n"),
    "item": ("Seq[N, M]", "new.x == old.x.take(0).append(old.m + ({d}))"),
    "set": ("Set[N]", "new.x == old.x.including(old.n + {d})"),
    "set that begins at 1": ("Set[M]", "new.x == Set.of(old.m, old.m + ({d}))"),
    "set by a definition": ("Set[N]", "new.x == set_of(old, old.n + {d})"),
    "set for a moment": ("Bool", "new.x == set_of(old, old.n + {d}).is_empty()"),
    "set in a map": ("Map[P, Set[N]]", "new.x[p] == old.x[p].including(old.n + {d})"),
    "set under a quantifier": (
        "Bool",
        "new.x == exists(Set.empty(N).including(k + {d}).is_empty() for k in N.all())",
    ),
}
"""By what stores it: the type of a variable, and the update."""
FAR = 5000


def text_of(store: str, d: int) -> str:
    """A design that takes two steps in range, and then stores a number `d` away from one in range."""
    kind, update = STORES[store]
    return f"""{HEAD}
class State(Struct):
    x: {kind} = var("What is stored.")
    n: N = var("A number in range.")
    m: M = var("Another one.")
    k: N = var("How many steps were taken.")

@define
def some_of(s: State, n: N) -> Maybe[N]:
    return Maybe.of(n)
@define
def set_of(s: State, n: N) -> Set[N]:
    return Set.empty(N).including(n)

@initial
def init(new: State) -> Step:
    return (new.x == blank(new.x), new.n == 0, new.m == 1, new.k == 0)
@action
def waits(old: State, new: State) -> Step:
    return (old.k < 2, new.k == old.k + 1, new.n == 0)
@action
def goes(old: State, new: State, p: P) -> Step:
    return (old.k == 2, {update.format(d=d)})
@always
def fine(s: State) -> Bool:
    return (s.n <= TOP) & (s.k <= TOP)
@sometimes
def waited(s: State) -> Bool:
    return s.k == 1
@sometimes
def beyond(s: State) -> Bool:
    return s.n > TOP
@step
def grows(old: State, new: State) -> Bool:
    return old.k <= new.k
DESIGN = Design("stores", "A model.", State, init, (waits, goes), (fine, waited, beyond, grows))
"""


def stores(store: str, d: int) -> Instance:
    return Instance(trace(text_of(store, d)))


ENGINES: dict[str, Callable[..., Exploration]] = {
    "native": partial(native.explore, workers=1),
    "two workers": partial(native.explore, workers=2),
    "reduction": partial(native.explore, reduction=True),
}
ASKED = [(), ("fine",), ("waited", "grows"), (DEADLOCK,)]


def same(found: Exploration, expected: Exploration) -> None:
    assert attrs.evolve(found, seconds=0.0) == attrs.evolve(expected, seconds=0.0)


def is_red(found: Exploration) -> None:
    """Only type-ok is violated, three steps from the beginning, and what is not decided by then is UNKNOWN."""
    verdicts = {f.name: f.verdict for f in found.findings}
    path = found.finding(TYPE_OK).path
    assert verdicts.pop(TYPE_OK) is Verdict.VIOLATED
    assert path is not None
    assert [action for action, _ in path.steps] == ["waits", "waits", "goes"]
    assert verdicts.pop("waited", Verdict.HOLDS) is Verdict.HOLDS, "a witness within the ranges is one"
    assert set(verdicts.values()) <= {Verdict.UNKNOWN}
    assert not found.complete


FAMILY = [(store, d) for store in STORES for d in (-1, 3, -FAR, FAR)]


@pytest.mark.parametrize(("store", "d"), sample(FAMILY, 7))
def test_every_engine_sees_what_is_stored_out_of_range(store: str, d: int) -> None:
    instance = stores(store, d)
    for asked in ASKED:
        expected = explorer.explore(instance, asked)
        is_red(expected)
        for name, engine in ENGINES.items():
            if name == "native" or asked == ASKED[1]:
                same(engine(instance, asked), expected)
    orbits = explorer.explore(instance, ("fine",), symmetry=True) if "P" in STORES[store][0] else None
    if orbits is not None:
        is_red(orbits)
        same(native.explore(instance, ("fine",), symmetry=True), orbits)


@pytest.mark.parametrize("store", STORES)
def test_what_is_in_range_holds(store: str) -> None:
    """Otherwise the test above would only say that everything is red."""
    instance = stores(store, 0)
    found = explorer.explore(instance)
    verdicts = {f.name: f.verdict for f in found.findings}
    assert verdicts == dict.fromkeys(("fine", "waited", "grows", TYPE_OK), Verdict.HOLDS) | {"beyond": Verdict.VACUOUS}
    same(native.explore(instance), found)


def test_an_exploration_that_leaves_checkpoints_sees_it() -> None:
    instance = stores("number", 3)
    with tempfile.TemporaryDirectory() as folder:
        is_red(native.explore(instance, ("fine",), folder=Path(folder), every=0.0))


@pytest.mark.parametrize(("store", "d"), sample(FAMILY, 13))
def test_walks_end_where_a_value_leaves_its_range(store: str, d: int) -> None:
    instance = stores(store, d)
    slow = simulation.simulate(instance, ("fine", "waited"), 5, 1)
    is_red(attrs.evolve(slow, findings=tuple(f for f in slow.findings if f.name != "waited")))
    assert slow.finding("waited").verdict is Verdict.SAMPLED
    assert slow.depth == 3
    same(walks.simulate(instance, ("fine", "waited"), 5, 1), slow)


def test_a_search_for_room_has_no_witness_beyond_the_ranges() -> None:
    instance = stores("number", 3)
    (beyond,) = (p for p in instance.properties if p.name == "beyond")
    found = best_first(instance, [beyond], 1000)
    assert (found.milestones_passed, found.complete) == (0, False)


@pytest.mark.processes
@pytest.mark.parametrize(("store", "d"), sample(FAMILY, 19))
def test_the_solver_does_not_prove_it(store: str, d: int) -> None:
    instance = stores(store, d)
    results = dict(table(instance.design, instance.constants, [], say=lambda _: None))
    assert any(isinstance(r, Counterexample) for o, r in results.items() if o.conjunct == TYPE_OK)


@pytest.mark.tlc
@pytest.mark.parametrize(("store", "d"), sample(FAMILY, 3))
def test_tlc_sees_it_in_the_export(store: str, d: int, tmp_path: Path) -> None:
    report = checkers.tlc(stores(store, d).design, {}, tmp_path)
    assert (report.violated, report.depth) == ("TypeOK", 4)


# what is never stored is exact, above and below the range

MAYBE = f"""{HEAD}
def all_of(parts):
    first, *rest = parts
    for part in rest:
        first = first & part
    return first
class State(Struct):
    n: N = var("A number.")
    m: Maybe[M] = var("Perhaps one.")
@initial
def init(new: State, n: N, m: M, empty: N) -> Step:
    return (new.n == n, new.m == when(empty == 0, blank(new.m), Maybe.of(m)))
@define
def same(s: State, a: M, b: M) -> Bool:
    return (Maybe.of(a) == Maybe.of(b)) == (a == b)
@always
def exact(s: State) -> Bool:
    m = s.m.or_else(0)
    return all_of(
        [(Maybe.of(s.n + d) != NONE) & (Maybe.of(s.n + d).or_else(9) == s.n + d) for d in range(-6, 7)]
        + [Maybe.of(m + d) != s.m for d in range(-6, 7) if d]
        + [same(s, m + d, m + e) for d in range(-3, 4) for e in range(-3, 4)]
    )
DESIGN = Design("exact", "A model.", State, init, (), (exact,))
"""


@pytest.mark.parametrize("engine", [explorer.explore, native.explore])
def test_a_maybe_of_any_number_has_that_number(engine: Callable[..., Exploration]) -> None:
    assert engine(Instance(trace(MAYBE))).finding("exact").verdict is Verdict.HOLDS


def test_a_map_of_one_value_has_it_at_its_keys_only() -> None:
    """Beyond them it has the first value of the type (isr_lang.nodes), also where both are known before a run."""
    source = f"""{HEAD}
class State(Struct):
    n: N = var("A number.")
@initial
def init(new: State) -> Step:
    return (new.n == 0,)
@sometimes
def at_a_key(s: State) -> Bool:
    return Map.build(N, lambda n: M.of(3))[N.of(2)] == 3
@sometimes
def beyond(s: State) -> Bool:
    return Map.build(N, lambda n: M.of(3))[N.of(3)] == 1
DESIGN = Design("constant", "A model.", State, init, (), (at_a_key, beyond))
"""
    found = explorer.explore(Instance(trace(source)))
    assert {f.verdict for f in found.findings} == {Verdict.HOLDS}


# variables that a setting leaves out


OFF = f"""{HEAD}
class State(Struct):
    n: N = var("A number.")
    x: N = var("Is there under a setting only.", when=GATE)
@initial
def init(new: State, p: N) -> Step:
    return (new.n == 0, new.x == VALUE)
@action
def takes(old: State, new: State, p: N) -> Step:
    return (old.x != p, new.n == p, new.x == 1)
@always
def fine(s: State) -> Bool:
    return s.x <= TOP
DESIGN = Design("off", "A model.", State, init, (takes,), (fine,))
"""


def test_the_first_value_of_a_variable_that_may_be_off_is_one_value() -> None:
    with pytest.raises(ModelError, match=r"'x' exists under a setting only, .* cannot depend on 'p', a parameter"):
        trace(OFF.replace("VALUE", "p"))


def test_a_variable_that_is_off_keeps_its_first_value_and_must_have_one() -> None:
    found = explorer.explore(Instance(trace(OFF.replace("VALUE", "N.of(0)"))))
    assert (found.distinct, found.finding("fine").verdict) == (3, Verdict.HOLDS)
    beyond = Instance(trace(OFF.replace("VALUE", "N.of(3)")))
    found = explorer.explore(beyond, ("fine",))
    assert {f.name: f.verdict for f in found.findings} == {"fine": Verdict.UNKNOWN, TYPE_OK: Verdict.VIOLATED}
    same(native.explore(beyond, ("fine",)), found)


# what a reduction leaves out

STALE = f"""{HEAD}
class State(Struct):
    now: M = var("The version.")
    asked: Map[P, M] = var("The version that each request names.")
    what: Map[P, N] = var("What it asks.")
    got: N = var("What was taken.")
@initial
def init(new: State) -> Step:
    return (new.now == 1, new.asked == blank(new.asked), new.what == blank(new.what), new.got == 0)
@action
def bumps(old: State, new: State) -> Step:
    return (old.now < 3, new.now == old.now + 1)
@action
def asks(old: State, new: State, p: P, v: M, n: N) -> Step:
    return (v <= old.now, new.asked[p] == v, new.what[p] == VALUE)
@action
def takes(old: State, new: State, p: P) -> Step:
    return (old.asked[p] == old.now, new.got == old.what[p])
@always
def fine(s: State) -> Bool:
    return s.got <= TOP
DESIGN = Design("stale", "A model.", State, init, (bumps, asks, takes), (fine,))
"""


@pytest.mark.parametrize("value", ["when(v < old.now, n + 1, n)", "when(v < old.now, n - 1, n)", "n"])
def test_a_reduction_leaves_a_value_out_of_range_where_it_is(value: str) -> None:
    instance = Instance(trace(STALE.replace("VALUE", value)))
    whole, reduced = explorer.explore(instance), explorer.explore(instance, reduction=True)
    assert reduced.distinct < whole.distinct, "the rule is found"
    assert (reduced.findings, reduced.complete) == (whole.findings, whole.complete)
    assert (whole.finding(TYPE_OK).verdict is Verdict.VIOLATED) is (value != "n")
    same(native.explore(instance, reduction=True), reduced)


def test_a_guard_that_reads_before_the_version_does_is_counted_alike() -> None:
    """Otherwise it would depend on a reduction, and on the engine, whether a guard is said never to refuse."""
    takes = "(old.asked[p] == old.now, new.got == old.what[p])"
    instance = Instance(trace(STALE.replace("VALUE", "n").replace(takes, f"(old.what[p] > 0, {takes[1:]}")))
    whole, reduced = (explorer.explore(instance, reduction=r) for r in (False, True))
    assert [bool(g.refusals) for g in reduced.guards] == [bool(g.refusals) for g in whole.guards]
    same(native.explore(instance, reduction=True), reduced)
