"""Each planted fault is caught by the differential test, and the page says how many designs that took.

Without this file the differential test could pass because it compares nothing.

    INSYNC_REWRITE=1 .venv/bin/python -m pytest -m slow tests/isr_check/test_planted_faults.py
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.differential import question, question_of_case
from tests.support.expected import rewriting
from tests.support.planted_faults import (
    CAUGHT_BY_CASES,
    CONTROL,
    DESIGNS,
    FAULTS,
    GAPS,
    MOST,
    SEED,
    Catch,
    Fault,
    catches,
    planted_difference,
)

pytestmark = pytest.mark.explores

PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "differential.md"
BEGIN, END = "<!-- made by tests/isr_check/test_planted_faults.py -->\n", "<!-- end -->\n"
EARLY = ("steps are tested backwards", "states that differ in the last word are one", "maybes are not renamed")


def table(caught: dict[str, Catch]) -> str:
    rows = [f"| {f.layer} | {f.name} | {f.ways[0]} | {caught[f.name].designs} |\n" for f in FAULTS]
    return "| layer | fault | asked of | designs until it was caught |\n|---|---|---|---|\n" + "".join(rows)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_planted_fault_is_caught() -> None:
    caught = catches(FAULTS)
    assert [f"{f.layer}: {f.name}" for f in FAULTS if f.name not in caught] == []
    if rewriting():
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{table(caught)}{rest[rest.index(END) :]}", encoding="utf-8")


def test_some_are_caught_at_once_and_nothing_planted_is_not() -> None:
    """The faults that the first designs show, so that a differential test that compares nothing is seen early."""
    early = [f for f in FAULTS if f.name in EARLY]
    assert catches(early, 10).keys() == set(EARLY)
    subject = next(q for n in range(DESIGNS) if (q := question(SEED, n, MOST)) is not None)
    assert planted_difference(CONTROL, subject) == ""


@pytest.mark.parametrize(("fault", "stem"), CAUGHT_BY_CASES, ids=[f.name for f, _ in CAUGHT_BY_CASES])
def test_a_design_that_is_kept_catches_what_the_random_ones_find_late(fault: Fault, stem: str) -> None:
    subject = question_of_case(stem)
    assert planted_difference(fault, subject)
    assert planted_difference(CONTROL, subject) == ""


def test_the_page_has_a_row_of_each_fault() -> None:
    """Those that nothing catches yet with them, in a table of their own."""
    rows = re.findall(r"^\| ([a-z]+) \| (.*?) \|", PAGE.read_text(encoding="utf-8").split(BEGIN)[1], re.M)
    faults = (*FAULTS, *(f for f, _ in CAUGHT_BY_CASES), *GAPS)
    assert [row for row in rows if row[0] != "layer"] == [(f.layer, f.name) for f in faults]
    assert len({f.name for f in faults}) == len(faults)
