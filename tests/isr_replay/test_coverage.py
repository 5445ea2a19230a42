"""The coverage of the replay is counted truly, and docs/replay.md says it.

Without these, the page could claim guards, errors or edges that no replay has ever reached.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_broker.core import node as nodes
from isr_broker.core.messages import Error
from isr_check.native import explore
from isr_lang import Instance
from isr_model import KIP_966
from isr_replay.coverage import (
    BEGIN,
    END,
    CoverageReport,
    answerable_errors,
    guards_of,
    insert_tables,
    measure_coverage,
    tables,
    watch_answers,
)
from isr_replay.coverage_runs import ask_over_sockets
from isr_sim.simulate import simulate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "replay.md"

pytestmark = [pytest.mark.explores, pytest.mark.sockets]
SMALL = {"replicas": 2, "crashes": 0, "isr_changes": 1}


@pytest.fixture(scope="module")
def small() -> CoverageReport:
    return measure_coverage(KIP_966, [SMALL], more={})


def test_each_part_is_x_of_y_and_says_what_is_missing(small: CoverageReport) -> None:
    parts = {part.what: part for part in small.parts}
    assert list(parts) == [
        "actions",
        "guard conjuncts seen true",
        "guard conjuncts seen false",
        "error codes answered",
        "branches of the cores",
    ]
    for part in small.parts:
        assert 0 < part.covered < part.of
        if part.what != "branches of the cores":
            assert len(part.missing) == part.of - part.covered
    assert parts["actions"].of == len(KIP_966.actions)
    assert "broker_crashes" in parts["actions"].missing
    assert "leader_appends" not in parts["actions"].missing


def test_guards_are_those_that_an_exploration_sees(small: CoverageReport) -> None:
    parts = {part.what: part for part in small.parts}
    found = explore(Instance(KIP_966, SMALL), ("type-ok",), workers=1)
    passed = {(g.action, g.index) for g in found.guards if g.passes} & guards_of(KIP_966).keys()
    refused = {(g.action, g.index) for g in found.guards if g.refusals} & guards_of(KIP_966).keys()
    assert parts["guard conjuncts seen true"].covered == len(passed)
    assert parts["guard conjuncts seen false"].covered == len(refused)


def test_errors_are_those_that_the_cores_name_and_answer(small: CoverageReport) -> None:
    (errors,) = [part for part in small.parts if part.what == "error codes answered"]
    possible = answerable_errors()
    assert {"NONE", "FENCED_LEADER_EPOCH", "INELIGIBLE_REPLICA", "STALE_BROKER_EPOCH"} <= possible
    assert possible < {error.name for error in Error}
    assert "FENCED_LEADER_EPOCH" not in errors.missing
    assert "INELIGIBLE_REPLICA" in errors.missing, "nobody is fenced without crashes"


def test_who_asks_badly_on_a_socket_is_told_why() -> None:
    with watch_answers() as answered:
        told = ask_over_sockets()
    assert told == {
        "a topic called ..": "INVALID_TOPIC_EXCEPTION",
        "a topic that there is": "TOPIC_ALREADY_EXISTS",
        "a replica twice": "INVALID_REPLICA_ASSIGNMENT",
        "no partitions": "INVALID_PARTITIONS",
        "more replicas than brokers": "INVALID_REPLICATION_FACTOR",
        "whether a topic may be": "NONE",
        "a topic is deleted": "NONE",
        "a topic that there is not is deleted": "UNKNOWN_TOPIC_OR_PARTITION",
        "a record": "NONE",
        "a record to a leader alone": "NONE",
        "acks=5": "INVALID_REQUIRED_ACKS",
        "a flipped bit": "CORRUPT_MESSAGE",
        "two batches": "INVALID_RECORD",
        "too large a batch": "MESSAGE_TOO_LARGE",
        "a record to no topic": "UNKNOWN_TOPIC_OR_PARTITION",
        "a record to a follower": "NOT_LEADER_OR_FOLLOWER",
        "a producer's first": "NONE",
        "the same again": "NONE",
        "one out of order": "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "one of an older epoch": "INVALID_PRODUCER_EPOCH",
        "a new epoch that does not begin at 0": "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "a new epoch": "NONE",
        "a read": "NONE",
        "a read that waits": "NONE",
        "a read out of range": "OFFSET_OUT_OF_RANGE",
        "a read at a follower": "NOT_LEADER_OR_FOLLOWER",
        "a read of no topic": "UNKNOWN_TOPIC_OR_PARTITION",
        "its preferred leader leads": "ELECTION_NOT_NEEDED",
        "an unclean election with a leader": "ELECTION_NOT_NEEDED",
        "an election of no topic": "UNKNOWN_TOPIC_OR_PARTITION",
        "a record that a killed broker lacks": "REQUEST_TIMED_OUT",
        "a preferred leader that is away": "PREFERRED_LEADER_NOT_AVAILABLE",
        "an unclean election of nobody": "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "a record under the minimum": "NOT_ENOUGH_REPLICAS",
    }
    # A number of partitions that there cannot be is refused before a core is asked (admin_refusals).
    told_by_cores = set(told.values()) - {"NONE", "INVALID_PARTITIONS"}
    assert told_by_cores <= {error.name for error in answered}


def test_a_source_adds_to_what_the_ones_before_have_seen(small: CoverageReport) -> None:
    def one_run(design: str) -> None:
        assert design == "kip-966"
        simulate(3)

    done = measure_coverage(KIP_966, [SMALL], more={"a run": one_run})
    parts = {part.what: part for part in done.parts}
    for what in ("error codes answered", "branches of the cores"):
        first = parts[f"{what}: replay"]
        (alone,) = [part for part in small.parts if part.what == what]
        assert (first.covered, first.of) == (alone.covered, alone.of)
        assert parts[what].covered > first.covered
        assert first.passing
        assert not parts[what].passing
    assert "branches of the cores: replay |" in tables(done)


def test_the_cores_are_left_as_they_were(small: CoverageReport) -> None:
    assert nodes.handle.__module__ == "isr_broker.core.node"


def test_the_report_goes_between_the_marks_of_a_page_and_nowhere_else(small: CoverageReport, tmp_path: Path) -> None:
    once = insert_tables(f"before\n{BEGIN}\nyesterday\n{END}\nafter\n", small)
    assert once.startswith(f"before\n{BEGIN}\n\n| bounds |")
    assert once.endswith(f"{END}\nafter\n")
    assert "yesterday" not in once
    assert insert_tables(once, small) == once
    page = tmp_path / "page.md"
    page.write_text("no marks")
    assert main(["coverage", "--replicas", "2", "--crashes", "0", "--isr-changes", "1", "--write", str(page)]) == (
        Exit.INPUT
    )
    assert main(["coverage", "kafka-0.8", "--replicas", "2"]) == Exit.INPUT


def test_the_page_has_the_present_totals(small: CoverageReport) -> None:
    """What is counted out of is found in no time; a page that was not written again after a change shows it."""
    told = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = {m[1]: int(m[3].replace(",", "")) for m in re.finditer(r"\| ([a-z ]+) \| ([\d,]+) \| ([\d,]+) \|", told)}
    wanted = {part.what: part.of for part in small.parts if part.what != "branches of the cores"}
    assert {what: rows.get(what) for what in wanted} == wanted, "write it again: insync coverage --write docs/replay.md"
