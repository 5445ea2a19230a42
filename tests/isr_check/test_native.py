"""The native engine answers exactly as the reference does."""

from __future__ import annotations

import attrs
import pytest
from tests.support.models import copied_log, copies, ticket_desk, two_phase_commit

from isr_check import explorer, native
from isr_check.engine import DEADLOCK, Exploration, Limits, Verdict
from isr_check.native.expressions import EMIT
from isr_check.native.layout import SLACKS
from isr_check.native.search import Means, Search
from isr_lang import OPERATORS, Design, Instance
from isr_lang.constants import Value


def same(design: Design, constants: dict[str, Value], wanted: tuple[str, ...] = ()) -> Exploration:
    instance = Instance(design, constants)
    expected = explorer.explore(instance, wanted)
    for workers in (1, 3):
        found = native.explore(instance, wanted, workers=workers)
        assert_same(found, expected)
    return expected


def assert_same(found: Exploration, expected: Exploration) -> None:
    for field in attrs.fields(Exploration):
        if field.name != "seconds":
            assert getattr(found, field.name) == getattr(expected, field.name), field.name


def test_every_operator_is_emitted() -> None:
    assert set(EMIT) == set(OPERATORS)


@pytest.mark.long
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("gossip", [False, True])
def test_every_part_of_the_language(nodes: int, length: int, gossip: bool) -> None:
    if nodes < 3 or not gossip or length < 1:
        same(copies.DESIGN, {"nodes": nodes, "length": length, "gossip": gossip})


@pytest.mark.parametrize("constants", [{"nodes": 2, "length": 1}, {"nodes": 2, "terms": 1}])
def test_values_out_of_range_are_found_as_the_reference_finds_them(constants: dict[str, Value]) -> None:
    found = same(copies.DESIGN, {**constants, "careless": True})
    assert found.finding("type-ok").path is not None


def test_what_grows_without_end_ends_where_it_leaves_its_range() -> None:
    found = same(copies.ENDLESS, {})
    assert not found.complete
    assert found.finding("type-ok").verdict is Verdict.VIOLATED
    assert found.finding("terms-grow").verdict is Verdict.UNKNOWN


def test_limits_end_a_search_honestly() -> None:
    instance = Instance(two_phase_commit.DESIGN, {"rms": 8})
    found = native.explore(instance, (), Limits(max_states=100_000))
    assert not found.complete
    assert 100_000 <= found.distinct < 1_000_000
    assert found.finding("consistent").verdict is Verdict.BUDGETED
    assert native.explore(instance, (), Limits(stop=lambda: True)).distinct == 1


def test_an_expansion_never_adds_more_states_than_it_may() -> None:
    instance = Instance(two_phase_commit.DESIGN, {"rms": 4})
    search = Search(instance, (), SLACKS[0], Means(workers=1), None)
    search.begin()
    (worker,) = search.workers
    done = worker.first
    while done < worker.next:
        worker.limit = worker.next + search.program.most + 1
        stopped = worker.run(search.machine.run["expand"], done, worker.next, 0)
        assert stopped > done
        assert worker.next <= worker.limit
        done = stopped
    assert worker.next - worker.first == explorer.explore(instance).distinct
    search.space.close(keep=False)


@pytest.mark.parametrize("wanted", ["logs-agree", "a-log-shrinks", "type-ok", DEADLOCK, "terms-grow"])
@pytest.mark.parametrize("careless", [False, True])
def test_the_search_ends_with_the_level_that_decides(wanted: str, careless: bool) -> None:
    same(copies.DESIGN, {"nodes": 2, "careless": careless}, (wanted,))


@pytest.mark.parametrize("design", [copied_log.CLEAN, copied_log.UNCLEAN])
@pytest.mark.parametrize("records", [1, 2])
def test_a_copied_log(design: Design, records: int) -> None:
    same(design, {"records": records})


@pytest.mark.parametrize("name", ticket_desk.DESIGNS)
def test_a_ticket_desk(name: str) -> None:
    same(ticket_desk.DESIGNS[name], {})
