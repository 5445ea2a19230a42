"""What the replay has seen is counted truly, and docs/conformance.md says of how much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_broker import node as nodes
from isr_broker.messages import Error
from isr_check.native import explore
from isr_lang import Instance
from isr_model import KIP_966
from isr_refine.covered import BEGIN, END, Covered, answerable, coverage_of, guards_of, written_into

PAGE = Path(__file__).resolve().parent.parent / "docs" / "conformance.md"
SMALL = {"replicas": 2, "crashes": 0, "isr_changes": 1}


@pytest.fixture(scope="module")
def small() -> Covered:
    return coverage_of(KIP_966, [SMALL])


def test_each_part_is_x_of_y_and_says_what_is_missing(small: Covered) -> None:
    parts = {part.what: part for part in small.parts}
    assert list(parts) == [
        "actions",
        "guard conjuncts seen true",
        "guard conjuncts seen false",
        "error codes answered",
        "branches of the cores",
    ]
    for part in small.parts:
        assert 0 < part.seen < part.of
        if part.what != "branches of the cores":
            assert len(part.missing) == part.of - part.seen
    assert parts["actions"].of == len(KIP_966.actions)
    assert "broker_crashes" in parts["actions"].missing
    assert "leader_appends" not in parts["actions"].missing


def test_guards_are_those_that_an_exploration_sees(small: Covered) -> None:
    parts = {part.what: part for part in small.parts}
    found = explore(Instance(KIP_966, SMALL), ("type-ok",), workers=1)
    passed = {(g.action, g.index) for g in found.guards if g.passed} & guards_of(KIP_966).keys()
    refused = {(g.action, g.index) for g in found.guards if g.refused} & guards_of(KIP_966).keys()
    assert parts["guard conjuncts seen true"].seen == len(passed)
    assert parts["guard conjuncts seen false"].seen == len(refused)


def test_errors_are_those_that_the_cores_name_and_answer(small: Covered) -> None:
    (errors,) = [part for part in small.parts if part.what == "error codes answered"]
    possible = answerable()
    assert {"NONE", "FENCED_LEADER_EPOCH", "INELIGIBLE_REPLICA", "STALE_BROKER_EPOCH"} <= possible
    assert possible < {error.name for error in Error}
    assert "FENCED_LEADER_EPOCH" not in errors.missing
    assert "INELIGIBLE_REPLICA" in errors.missing, "nobody is fenced without crashes"


def test_the_cores_are_left_as_they_were(small: Covered) -> None:
    assert nodes.handle.__module__ == "isr_broker.node"


def test_the_report_goes_between_the_marks_of_a_page_and_nowhere_else(small: Covered, tmp_path: Path) -> None:
    once = written_into(f"before\n{BEGIN}\nyesterday\n{END}\nafter\n", small)
    assert once.startswith(f"before\n{BEGIN}\n\n| bounds |")
    assert once.endswith(f"{END}\nafter\n")
    assert "yesterday" not in once
    assert written_into(once, small) == once
    page = tmp_path / "page.md"
    page.write_text("no marks")
    assert main(["coverage", "--replicas", "2", "--crashes", "0", "--isr-changes", "1", "--write", str(page)]) == (
        Exit.INPUT
    )
    assert main(["coverage", "kafka-0.8", "--replicas", "2"]) == Exit.INPUT


def test_the_page_has_the_present_totals(small: Covered) -> None:
    """What is counted out of is found in no time; a page that was not written again after a change shows it."""
    told = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = {m[1]: int(m[3].replace(",", "")) for m in re.finditer(r"\| ([a-z ]+) \| ([\d,]+) \| ([\d,]+) \|", told)}
    wanted = {part.what: part.of for part in small.parts if part.what != "branches of the cores"}
    assert {what: rows.get(what) for what in wanted} == wanted, (
        "write it again: insync coverage --write docs/conformance.md"
    )
