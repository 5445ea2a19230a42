"""The native engine answers exactly as the reference does."""

from __future__ import annotations

import attrs
import pytest
from tests.models import copied_log, copies, ticket_desk, two_phase_commit

from isr_check import explorer, native
from isr_check.engine import DEADLOCK, Exploration
from isr_check.native.expressions import EMIT
from isr_lang import OPERATORS, Design, Instance
from isr_lang.constants import Value


def same(design: Design, constants: dict[str, Value], wanted: tuple[str, ...] = ()) -> Exploration:
    instance = Instance(design, constants)
    expected, found = explorer.explore(instance, wanted), native.explore(instance, wanted)
    for field in attrs.fields(Exploration):
        if field.name != "seconds":
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
    return found


def test_every_operator_is_emitted() -> None:
    assert set(EMIT) == set(OPERATORS)


@pytest.mark.parametrize(("managers", "distinct"), two_phase_commit.PUBLISHED.items())
def test_two_phase_commit(managers: int, distinct: int) -> None:
    assert same(two_phase_commit.DESIGN, {"rms": managers}).distinct == distinct


def test_the_published_count_of_two_phase_commit_with_seven() -> None:
    found = native.explore(Instance(two_phase_commit.DESIGN, {"rms": 7}))
    assert found.complete
    assert found.distinct == 296448


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
