"""Each broken promise in the table of releases has a case: a behaviour that breaks it in that design and those bounds.

Without these a cell could name a case that cannot happen there, or another fault than the one that breaks its promise.
"""

from collections.abc import Mapping
from functools import cache

import attrs
import pytest
from bench.release_cases import NO_CASE, TOP, Behaviour, BehaviourReplay, case_page, load_behaviours
from bench.releases import COLUMNS, PAGE, ROWS, CaseCells, broken_promises, cells_of_page, print_missing_cases

from isr_lang import Instance
from isr_protocol.designs.releases import MENDS, with_mends
from isr_trace.cases import load_cases

pytestmark = pytest.mark.explores

BEHAVIOURS = load_behaviours()
ON_PAGE = cells_of_page(PAGE.read_text(encoding="utf-8"))
CELLS = CaseCells(BEHAVIOURS)
PLACES = [(number, name) for number in range(1, len(ROWS) + 1) for name in COLUMNS]
MENDS_AGAINST: Mapping[str, tuple[str, ...]] = {
    "kept-positions": ("kafka-resets-positions",),
    "forgotten-proposal": ("proposal-kept",),
    "overtaken-request": ("refusal-in-new-version",),
    "raised-min-insync": ("minimum-in-new-version",),
    "answered-before-metadata": ("minimum-in-new-version",),
    "removed-replica": ("elr-of-replicas",),
    "cleared-elr": ("elr-kept-below-minimum", "minimum-in-new-version"),
    "removed-directory": ("mark-of-all-directories",),
    "replaced-target": ("target-written-whole",),
    "completed-below-minimum": ("completion-at-minimum",),
}
"""The mends of `kafka-4.4` against each case. The second against cleared-elr refuses the number that is set already."""


def on_page(number: int, name: str) -> str:
    return ON_PAGE[ROWS[number - 1].options, name]


def behaviours(number: int, name: str) -> dict[str, Behaviour]:
    return CELLS.behaviours(ROWS[number - 1], name)


@cache
def replay_of(number: int, name: str) -> BehaviourReplay:
    return BehaviourReplay(Instance(ROWS[number - 1].design(name), ROWS[number - 1].bounds(name)))


@pytest.mark.parametrize(("number", "name"), PLACES)
def test_a_cell_names_the_case_of_each_promise_that_is_broken_there(number: int, name: str) -> None:
    """No behaviour breaks more than the cell says, and none breaks anything in the mended design."""
    text = on_page(number, name)
    assert CELLS.cell(ROWS[number - 1], name, text) == text
    assert NO_CASE not in text
    assert set(behaviours(number, name)) == set(broken_promises(text))
    assert not (name == COLUMNS[-1] and broken_promises(text))


def test_each_behaviour_is_needed_for_a_cell_and_has_a_case() -> None:
    needed = {behaviour for place in PLACES for behaviour in behaviours(*place).values()}
    assert [b for b in BEHAVIOURS if b not in needed] == []
    corpus = {case.name for case in load_cases(TOP / "counterexamples" / "cases" / "cases.toml").cases}
    assert {b.case for b in BEHAVIOURS} <= corpus
    assert all(case_page(b.case).exists() for b in BEHAVIOURS)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda b: b.case)
def test_a_step_that_is_taken_out_is_noticed(behaviour: Behaviour) -> None:
    """With every step it breaks what its cells need it for, and without any one of them less."""
    needs = {place: {p for p, b in behaviours(*place).items() if b == behaviour} for place in PLACES}
    needs = {place: promises for place, promises in needs.items() if promises}
    assert all(promises <= replay_of(*place).broken_promises(behaviour) for place, promises in needs.items())
    for i, step in enumerate(behaviour.steps):
        shorter = attrs.evolve(behaviour, steps=behaviour.steps[:i] + behaviour.steps[i + 1 :])
        assert any(not promises <= replay_of(*place).broken_promises(shorter) for place, promises in needs.items()), (
            step
        )


@pytest.mark.parametrize("number", range(1, len(ROWS) + 1))
def test_a_promise_of_kafka_4_4_is_broken_by_what_its_case_tells_of(number: int) -> None:
    """With all mends but those against it the behaviour breaks it still, and with any of those alone it does not."""
    row, told = ROWS[number - 1], behaviours(number, "kafka-4.4")
    for case in {b.case for b in told.values()}:
        against = MENDS_AGAINST[case]
        others, *alone = (
            BehaviourReplay(Instance(with_mends("some", "", *mends).without(*row.left_out), row.bounds("kafka-4.4")))
            for mends in ([m for m in MENDS if m not in against], *([m] for m in against))
        )
        for promise, behaviour in told.items():
            if behaviour.case == case:
                assert promise in others.broken_promises(behaviour)
                assert not any(promise in replay.broken_promises(behaviour) for replay in alone)


def test_every_mend_of_kafka_4_4_is_against_a_case_of_it() -> None:
    told = {b.case for number, name in PLACES if name == "kafka-4.4" for b in behaviours(number, name).values()}
    assert told == set(MENDS_AGAINST)
    assert {mend for against in MENDS_AGAINST.values() for mend in against} == set(MENDS)


def test_a_promise_that_no_behaviour_breaks_has_no_case(capsys: pytest.CaptureFixture[str]) -> None:
    row, name, text = ROWS[1], "kafka-4.4", "**`acked-survives`, `no-divergence`**"
    found = "[forgotten-proposal](../../found/forgotten-proposal/README.md)"
    assert CELLS.cell(row, name, text) == f"**`acked-survives`**: {found}; **`no-divergence`**: no case"
    assert print_missing_cases(CELLS, {(row.options, name): text}) == 1
    assert capsys.readouterr().out == "row 2, kafka-4.4: no-divergence\n"


def test_behaviours_that_end_too_early_or_start_elsewhere_leave_a_cell_without_cases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside the control: with the behaviours as they are no case is missing."""
    row, name = ROWS[1], "kafka-4.4"
    cell = {(row.options, name): ON_PAGE[row.options, name]}
    early = CaseCells([attrs.evolve(b, steps=b.steps[:-1]) for b in BEHAVIOURS])
    elsewhere = CaseCells([attrs.evolve(b, start="first=r9, spares={}") for b in BEHAVIOURS])
    assert print_missing_cases(early, cell) == 1
    assert "row 2, kafka-4.4: acked-survives\n" in capsys.readouterr().out
    assert print_missing_cases(elsewhere, cell) == 1
    assert print_missing_cases(CELLS, cell) == 0
    assert capsys.readouterr().out.endswith("every broken promise has a case\n")
