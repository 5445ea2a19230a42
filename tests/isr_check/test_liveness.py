"""Liveness: textbook examples, planted violations, and the native engine against the plain definitions."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from random import Random

import attrs
import numpy as np
import pytest
from tests.support.checkers import tlc
from tests.support.lassos import unfair_in
from tests.support.models import ewd840
from tests.support.sample import sample
from tests.support.strategies import numbered_model

from isr_check import explorer, native
from isr_check.engine import Finding, Limits, Path, Unsound, Verdict
from isr_check.liveness import Labels, Region, fair_components, strong_components
from isr_check.liveness_reference import Graph, lasso_search, tarjan
from isr_check.native import graph, space
from isr_check.native.buffers import Table
from isr_check.native.space import Space
from isr_lang import (
    NONE,
    Bool,
    Design,
    Instance,
    Maybe,
    Property,
    Set,
    Sort,
    Step,
    Struct,
    action,
    bound,
    initial,
    leads_to,
    var,
)
from isr_protocol.by_name import DESIGNS

CLIENTS = bound("clients", "Clients that want the lock.", default=2, low=1, high=3)


class Client(Sort, size=CLIENTS, prefix="c", symmetric=True):
    """Who wants the lock."""


class Lock(Struct):
    holder: Maybe[Client] = var("Who has the lock.")
    waiting: Set[Client] = var("Who asked for it.")
    lit: Bool = var("A lamp that anyone may switch.")


@initial
def free(new: Lock) -> Step:
    """Nobody wants it."""
    return (new.holder == NONE, new.waiting == Set.empty(Client), ~new.lit)


@action
def asks(old: Lock, new: Lock, c: Client) -> Step:
    """A client queues up."""
    return (old.holder != c, ~old.waiting.has(c), new.waiting == old.waiting.including(c))


@action
def acquires(old: Lock, new: Lock, c: Client) -> Step:
    """The lock goes to one of those who wait."""
    return (old.holder == NONE, old.waiting.has(c), new.holder == c, new.waiting == old.waiting.excluding(c))


@action
def releases(old: Lock, new: Lock, c: Client) -> Step:
    """The holder gives the lock back."""
    return (old.holder == c, new.holder == NONE)


@action
def blinks(old: Lock, new: Lock) -> Step:
    """Somebody switches the lamp."""
    return (new.lit == ~old.lit,)


@action
def idles(old: Lock, new: Lock) -> Step:
    """Somebody looks at the lock, which changes nothing."""
    return (old.holder == NONE, new.lit == old.lit)


def waits(s: Lock) -> Bool:
    return ~s.waiting.is_empty()


def held(s: Lock) -> Bool:
    return s.holder != NONE


def nobody_waits(s: Lock) -> Bool:
    return s.waiting.is_empty()


def dark(s: Lock) -> Bool:
    return ~s.lit


def lit(s: Lock) -> Bool:
    return s.lit


def never(s: Lock) -> Bool:
    return s.lit & ~s.lit


HELD = leads_to("held", "The lock is taken.", waits, held, state=Lock, fair=(acquires,))
SERVED = leads_to("served", "The queue gets empty.", waits, nobody_waits, state=Lock, fair=(acquires, releases))
LIT = leads_to("lit", "The lamp is lit.", dark, lit, state=Lock, fair=(blinks,))
VOID = leads_to("void", "Nothing leads to it.", never, lit, state=Lock, fair=(blinks,))
LOCK = Design("lock", "One lock.", Lock, free, (asks, acquires, releases, blinks, idles), (HELD, SERVED, LIT, VOID))


def both(design: Design, name: str, **constants: int) -> Finding:
    """The verdict and counterexample of both engines, with one worker and two, wherever states are; all the same."""
    instance = Instance(design, constants)
    expected = explorer.explore(instance, (name,)).finding(name)
    for workers in (1, 2):
        assert native.explore(instance, (name,), workers=workers).finding(name) == expected
        for elsewhere in (states_in_files, states_compressed):
            with elsewhere():
                assert native.explore(instance, (name,), workers=workers).finding(name) == expected
    if expected.path is not None:
        assert_counterexample(instance, name, expected.path)
    return expected


@contextmanager
def states_in_files() -> Generator[None]:
    """From the first states on; a megabyte of memory is for those found last, and for liveness."""
    make_room, settle, moved = Space.make_room, Space._settle_outside, list[Space]()  # pyright: ignore[reportPrivateUsage]

    def at_once(self: Space) -> None:
        if not self.outside:
            moved.append(self)
            self._move_out()  # pyright: ignore[reportPrivateUsage]
        make_room(self)

    def settles(self: Space, _: int) -> None:
        settle(self, 1 << 20)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space, "LEAST", 0)
        patch.setattr(space, "BLOCK", 1000)
        patch.setattr(Space, "make_room", at_once)
        patch.setattr(Space, "_settle_outside", settles)
        yield
    assert moved


@contextmanager
def states_compressed() -> Generator[None]:
    """From the first states on."""
    make_room, turned = Space.make_room, list[Space]()

    def at_once(self: Space) -> None:
        if self.compressed is None and not self.outside:
            turned.append(self)
            todo, fresh = [*self.todo], [*self.fresh, *self._new()]  # pyright: ignore[reportPrivateUsage]
            assert self._compress(self._from_memory, self.levels, todo, fresh)  # pyright: ignore[reportPrivateUsage]
        make_room(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space, "WORTH", 1e9)
        patch.setattr(Space, "make_room", at_once)
        yield
    assert turned


def assert_counterexample(instance: Instance, name: str, path: Path) -> None:
    p = next(p for p in instance.properties if p.name == name)
    assert unfair_in(instance, p, path) == []


# What fairness means


def test_without_fairness_nothing_has_to_happen() -> None:
    found = both(LOCK.with_fairness(unfair=("acquires",)), "held")
    assert found.verdict is Verdict.VIOLATED
    assert found.path == Path((), (("asks", (0,)),), loop=1)


@pytest.mark.long
def test_a_weakly_fair_action_that_stays_possible_is_taken() -> None:
    assert both(LOCK, "held").verdict is Verdict.HOLDS
    assert both(LOCK, "lit").verdict is Verdict.HOLDS


def test_weak_fairness_of_one_client_does_not_help_where_others_come_first() -> None:
    found = both(LOCK, "served")
    assert found.verdict is Verdict.VIOLATED
    assert found.path is not None
    assert found.path.loop is not None
    assert found.path.loop < len(found.path.steps)


@pytest.mark.long
def test_strong_fairness_lets_everybody_have_the_lock_but_not_the_queue_be_empty() -> None:
    """One client at a time waits for ever only if asking is faster than acquiring: then the queue never empties."""
    strong = LOCK.with_fairness(strong=("acquires",))
    assert both(strong, "served").verdict is Verdict.VIOLATED
    assert both(strong, "served", clients=1).verdict is Verdict.HOLDS


def test_fairness_is_asked_of_each_choice_of_parameters() -> None:
    """A client that is passed over for ever is a violation although the action is taken again and again."""
    first = leads_to(
        "all-served", "Nobody waits.", waits, nobody_waits, state=Lock, fair=(releases,), strong=(acquires,)
    )
    quiet = attrs.evolve(LOCK, properties=(first,))
    found = both(quiet, "all-served")
    assert found.path is not None
    taken = {step for step in found.path.steps[found.path.loop :] if step[0] == "acquires"}
    assert taken == {("acquires", (0,)), ("acquires", (1,))}


def test_a_step_that_changes_nothing_is_no_progress() -> None:
    """TLA+'s fairness is of steps that change something, so an idle one need not be taken, nor does it count."""
    looks = leads_to("looked", "Somebody holds it.", waits, held, state=Lock, fair=(idles,))
    found = both(attrs.evolve(LOCK, properties=(looks,)), "looked")
    assert found.path == Path((), (("asks", (0,)),), loop=1)


def test_what_waits_for_nothing_is_vacuous() -> None:
    assert both(LOCK, "void").verdict is Verdict.VACUOUS


def test_a_cut_exploration_decides_nothing() -> None:
    for explore in (explorer.explore, native.explore):
        found = explore(Instance(LOCK, {}), ("held",), Limits(max_states=3))
        assert found.finding("held") == Finding("held", "eventually", Verdict.BUDGETED)


def test_a_verdict_on_liveness_takes_every_state_even_when_all_else_is_decided() -> None:
    found = native.explore(Instance(LOCK, {}), ("held", "type-ok"))
    assert found.complete
    assert [f.name for f in found.findings] == ["type-ok", "held"]


@pytest.mark.explores
@pytest.mark.parametrize("elsewhere", [states_in_files, states_compressed])
def test_liveness_of_the_protocol_is_decided_wherever_states_are(
    elsewhere: Callable[[], AbstractContextManager[None]],
) -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    names = tuple(p.name for p in instance.properties if p.kind == "eventually")
    expected = native.explore(instance, names)
    with elsewhere():
        assert native.explore(instance, names).findings == expected.findings


def test_a_region_that_does_not_fit_beside_compressed_states_is_decided_when_they_are_in_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gather, tried = graph.GatheredRegion.gather, list[bool]()

    def without_room(self: graph.GatheredRegion, room: Callable[[int], bool]) -> None:
        tried.append(self.search.space.outside)
        if not self.search.space.outside:
            raise graph.TooMuch
        gather(self, room)

    expected = native.explore(Instance(LOCK, {"clients": 3}), ("served",))
    monkeypatch.setattr(graph.GatheredRegion, "gather", without_room)
    monkeypatch.setattr(space, "LEAST", 0)
    with states_compressed():
        found = native.explore(Instance(LOCK, {"clients": 3}), ("served",))
    assert found.findings == expected.findings
    assert tried == [False, True]


def test_a_region_that_memory_does_not_hold_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = graph.GatheredRegion.gather

    def without_room(self: graph.GatheredRegion, room: Callable[[int], bool]) -> None:
        monkeypatch.setattr(Table, "room", self.search.program.most + 2)  # room for two states and their successors
        gather(self, room)

    monkeypatch.setattr(graph.GatheredRegion, "gather", without_room)
    with states_in_files():
        found = native.explore(Instance(LOCK, {"clients": 3}), ("served",), workers=1)
    assert found.complete
    assert [f.verdict for f in found.findings] == [Verdict.BUDGETED]
    assert found.stopped == "the memory or the time that liveness takes"


def test_symmetry_is_refused() -> None:
    with pytest.raises(Unsound, match="liveness"):
        native.explore(Instance(LOCK, {}), ("held",), symmetry=True)


# Classic models


@pytest.mark.explores
def test_termination_is_detected_and_not_without_a_fair_token() -> None:
    name = next(p.name for p in ewd840.DESIGN.properties if p.kind == "eventually")
    assert both(ewd840.DESIGN, name).verdict is Verdict.HOLDS
    assert both(ewd840.DESIGN.with_fairness(unfair=("token_passes",)), name).verdict is Verdict.VIOLATED


# The algorithm against the definitions


def live(number: int) -> Instance:
    """A random model with random promises about its future."""
    model, rng = numbered_model(number, promises=6), Random(number)
    design = model.design
    conditions = [p for p in design.properties if p.kind in ("always", "sometimes")]
    promises: list[Property] = []
    for i in range(6 if conditions else 0):
        trigger, goal = rng.choice(conditions), rng.choice(conditions)
        how = {a.name: rng.choice("uwwws") for a in design.actions}
        weak, strong = (tuple(a for a, h in how.items() if h == kind) for kind in "ws")
        promises.append(
            attrs.evolve(
                goal,
                name=f"live-{i}",
                kind="eventually",
                when=None,
                trigger=trigger.condition,
                fair=weak,
                strongly_fair=strong,
            )
        )
    return Instance(attrs.evolve(design, properties=(*design.properties, *promises)), model.constants)


@pytest.mark.explores
@pytest.mark.parametrize("tens", sample(range(6), 6))
def test_random_promises_are_decided_alike_and_their_lassos_are_fair(tens: int) -> None:
    verdicts: set[Verdict] = set()
    for number in range(10 * tens, 10 * tens + 10):
        instance = live(number)
        promises = [p for p in instance.properties if p.kind == "eventually"]
        names = tuple(p.name for p in promises)
        if not names or not explorer.explore(instance, ("none",), Limits(max_states=2000)).complete:
            continue
        expected = explorer.explore(instance, names)
        found = native.explore(instance, names, workers=1 + number % 2)
        assert found.findings == expected.findings
        with states_in_files():
            assert native.explore(instance, names, workers=2 - number % 2).findings == expected.findings
        for p in promises:
            path = found.finding(p.name).path
            verdicts.add(found.finding(p.name).verdict)
            assert path is None or unfair_in(instance, p, path) == []
    assert verdicts >= {Verdict.HOLDS, Verdict.VIOLATED}


@pytest.mark.parametrize("number", range(0, 30, 3))
def test_components_are_those_of_the_definition(number: int) -> None:
    instance = live(number)
    for p in (p for p in instance.properties if p.kind == "eventually"):
        graph = Graph.of(instance, p)
        behind, states = lasso_search(graph, p)
        component = fair_components(behind.region)
        members: dict[int, set[int]] = {}
        for i, c in enumerate(component.tolist()):
            if c >= 0:
                members.setdefault(c, set()).add(i)
        expected = [{states.index(s) for s in fair} for fair in graph.fair(states)]
        assert sorted(map(sorted, members.values())) == sorted(map(sorted, expected))


def test_strong_components_are_tarjans_also_where_steps_are_parallel() -> None:
    for seed in range(300):
        rng = Random(seed)
        n = rng.randint(1, 9)
        rows = [[rng.randrange(n) for _ in range(rng.randint(0, 4))] for _ in range(n)]
        origins = np.array([i for i, row in enumerate(rows) for _ in row], dtype=np.int32)
        targets = np.array([t for row in rows for t in row], dtype=np.int32)
        found: dict[int, set[int]] = {}
        for i, c in enumerate(strong_components(n, origins, targets).tolist()):
            found.setdefault(c, set()).add(i)
        successors = {(i,): [(t,) for t in row] for i, row in enumerate(rows)}
        expected = [{s[0] for s in c} for c in tarjan(set(successors), successors.__getitem__)]
        assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))


def test_an_unfair_loop_is_seen() -> None:
    """The check of counterexamples itself: a loop that starves somebody, one that is no loop, one past the goal."""
    instance = Instance(LOCK, {})
    p = next(p for p in instance.properties if p.name == "held")
    starved = Path((), (("asks", (0,)),), loop=1)
    assert unfair_in(instance, p, starved) == ["acquires(c=c1) is possible for ever and never taken"]
    assert unfair_in(instance, p, Path((), (("asks", (0,)), ("blinks", ())), loop=1)) == [
        "the loop does not close: T2 is another state than T1"
    ]
    assert unfair_in(instance, p, Path((), (("asks", (0,)), ("acquires", (0,))), loop=2)) == [
        "what was promised comes in the loop, at T2"
    ]


def test_a_region_of_nothing_has_no_counterexample() -> None:
    labels = Labels.of(Instance(LOCK, {}), HELD)
    none = np.zeros(0, dtype=np.int32)
    region = Region(labels, (0,), np.zeros(0, dtype=np.bool_), np.zeros(1, dtype=np.int64), none, none)
    assert not len(fair_components(region))


# Another checker


@pytest.mark.tlc
@pytest.mark.parametrize("strong", [(), ("acquires",)])
@pytest.mark.parametrize("clients", [1, 2])
def test_tlc_decides_alike(strong: tuple[str, ...], clients: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    design = LOCK.with_fairness(strong=strong)
    for name, shown in (("held", "Held"), ("served", "Served"), ("lit", "Lit")):
        report = tlc(design, {"clients": clients}, tmp_path_factory.mktemp(name), shown)
        found = both(design, name, clients=clients)
        assert (report.violated is not None) is (found.verdict is Verdict.VIOLATED), name
