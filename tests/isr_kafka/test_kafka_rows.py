"""What docs/kafka-classes.md and kraft-classes.md say was driven: rows are the command's, and take what they switch on.

Without these a row could speak of unclean elections in which nobody was ever elected so.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from insync_cli import options, registry
from insync_cli.conformance.conform import USAGE, Options
from insync_cli.conformance.kafka_rows import BEGIN, END, RAFT_ROWS, ROWS, WALKS, Row, cells, drive, page
from insync_cli.exits import InputError
from isr_conform.switches import switched_actions
from isr_kafka.mistakes import MISTAKES
from isr_kafka.system import DRIVEN_RELEASES, Kafka

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "kafka-classes.md").read_text(encoding="utf-8")
RAFT_PAGE = (DOCS / "kraft-classes.md").read_text(encoding="utf-8")


def table_rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def tables_of_rows(text: str) -> list[str]:
    """The two tables that the command writes."""
    return text.partition(BEGIN)[2].partition(END)[0].strip().split("\n\n")


TABLES = tables_of_rows(PAGE)


@pytest.mark.parametrize(("text", "rows"), [(PAGE, ROWS), (RAFT_PAGE, RAFT_ROWS)], ids=["kafka", "kafka-raft"])
def test_the_page_has_the_rows_of_the_command(text: str, rows: Sequence[Row]) -> None:
    driven, untaken = tables_of_rows(text)
    assert [(row[0], row[1]) for row in table_rows(driven)[2:]] == [(r.release, f"`{r.options}`") for r in rows]
    of_untaken = {options_text for row in table_rows(untaken)[2:] for options_text in row[0].split("<br>")}
    assert of_untaken == {f"`{r.options}`" for r in rows}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.release} {row.options}")
def test_a_row_takes_what_its_settings_switch_on(row: Row) -> None:
    words = ["--sut", f"kafka={row.release}", *row.options.split()]
    world = options.read_options(Options, USAGE, words).world
    switched = switched_actions(registry.instance_of(world.design, world.constants))
    (untaken,) = [cell[1] for cell in table_rows(TABLES[1])[2:] if f"`{row.options}`" in cell[0].split("<br>")]
    assert not [action for action in switched if f"`{action}`" in untaken]


def test_the_rows_have_an_unclean_election() -> None:
    assert any("--unclean on" in row.options for row in ROWS)


OPERATIONS = (
    *("controller_sets_minimum", "broker_learns_minimum", "controller_starts_reassignment"),
    *("controller_reassigns_at_once", "controller_cancels_reassignment", "controller_accepts_and_completes"),
    *("replica_is_deleted", "disk_is_replaced"),
    *("controller_refuses_later_copy", "leader_hears_known_version", "leader_loads_snapshot"),
)


WALKED = [row for row in ROWS if row.options.endswith(WALKS)]


def test_every_driven_release_has_a_row_of_walks() -> None:
    assert {row.release for row in WALKED} == set(DRIVEN_RELEASES)


@pytest.mark.parametrize("row", WALKED, ids=lambda row: f"{row.release} {row.options.split()[0]}")
def test_a_row_of_walks_takes_what_people_do(row: Row) -> None:
    (left_out,) = [cell[1] for cell in table_rows(TABLES[1])[2:] if f"`{row.options}`" in cell[0].split("<br>")]
    world = options.read_options(Options, USAGE, ["--sut", f"kafka={row.release}", *row.options.split()]).world
    names = {action.name for action in registry.instance_of(world.design, world.constants).actions}
    assert set(OPERATIONS) <= names
    assert not [name for name in (*OPERATIONS, "controller_learns_directory") if f"`{name}`" in left_out]


def test_rows_that_are_not_driven_stay_as_the_page_has_them() -> None:
    tables = "\n\n".join(TABLES)
    assert page(ROWS, [], tables) == tables
    driven, _ = page(ROWS[1:], [], tables).split("\n\n")
    assert [row[:2] for row in table_rows(driven)[2:]] == [[r.release, f"`{r.options}`"] for r in ROWS[1:]]


def test_the_page_tells_of_each_mistake() -> None:
    section = PAGE.partition("## Can it fail?")[2].partition("\n## ")[0]
    names = {row[0].strip("`") for row in table_rows(section)[2:]}
    assert names == {mistake.name for mistake in MISTAKES}


@pytest.mark.slow
@pytest.mark.kafka
def test_a_row_without_what_it_switches_on_is_refused(newest: Kafka) -> None:
    """The row of unclean elections as it once was: one epoch, and no such election."""
    options_text = "--replicas 2 --crashes 0 --isr-changes 1 --unclean on"
    with pytest.raises(InputError, match=r"takes no controller_elects_unclean \(unclean\): give it larger bounds"):
        drive(Row(newest.release, options_text))


@pytest.mark.slow
@pytest.mark.kafka
def test_a_row_is_driven_again_as_the_page_has_it(newest: Kafka) -> None:
    row = next(row for row in ROWS if row.options == "--replicas 2 --crashes 0 --acks 1")
    assert list(cells(row, drive(row))) in table_rows(TABLES[0])
    assert newest.release == row.release
