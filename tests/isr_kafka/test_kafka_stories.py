"""The table case x release: what is stored is what the page, the report and Kafka itself say."""

from pathlib import Path

import attrs
import pytest
from tests.isr_kafka.conftest import driven

from insync_cli.conformance.kafka import BEGIN, END, cases, table
from insync_cli.conformance.released_traces import as_released, needs_release
from insync_cli.registry import design_named
from insync_cli.tracefiles import load
from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits, Schedule
from isr_conform.stories import tell_all
from isr_kafka.system import DRIVEN_RELEASES, Kafka
from isr_lang import Instance
from isr_report.sections import conformance, kafka_stories
from isr_trace.trace import TraceError

TOP = Path(__file__).resolve().parents[2]
CASES = TOP / "counterexamples" / "cases"


def test_the_page_has_the_stored_table_of_all_cases_and_releases() -> None:
    rows = kafka_stories.read_stories()
    assert [row["case"] for row in rows] == sorted(path.parent.name for path in CASES.glob("*/trace.itf.json"))
    assert {tuple(row) for row in rows} == {("case", *DRIVEN_RELEASES)}
    page = (TOP / "docs" / "kafka-classes.md").read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == table(rows)


RELEASED = ("answered-before-metadata", "cleared-elr", "raised-min-insync", "removed-replica")


def test_traces_of_one_bug_are_told_as_behaviours_of_the_release() -> None:
    """Each step is one of kafka-4.4, and ends in the state of the trace; where it cannot be taken, that is said."""
    told = {name: instance.design.name for name, instance, _ in cases(CASES)}
    stored = {name: load(CASES / name / "trace.itf.json") for name in told}
    assert tuple(name for name, trace in stored.items() if needs_release(trace)) == RELEASED
    assert {name for name, trace in stored.items() if told[name] != trace.design} == set(RELEASED)
    assert {told[name] for name in RELEASED} == {"kafka-4.4"}
    removed = stored["removed-replica"]
    with pytest.raises(TraceError, match=r"kafka-4\.4 does not take the steps of this trace of kafka-removed-replica"):
        as_released(attrs.evolve(removed, steps=(removed.steps[-1], *removed.steps[1:])))


def test_the_report_shows_each_case_whatever_it_was_given() -> None:
    shown = conformance.section([])
    assert all(f"<code>{row['case']}</code>" in shown for row in kafka_stories.read_stories())
    assert all(f"Kafka {heading}" in shown for heading in kafka_stories.columns(kafka_stories.read_stories()))
    assert '<b class="flagged">takes it</b>' in shown
    assert "**" not in shown


def test_releases_that_say_the_same_share_a_column_and_no_others() -> None:
    first = {"case": "one", "4.3.0": "takes it", "4.2.0": "takes it", "4.1.0": "takes it"}
    second = {"case": "two", "4.3.0": "stops", "4.2.0": "stops", "4.1.0": "takes it"}
    assert kafka_stories.columns([first]) == {"4.3.0 to 4.1.0": "4.3.0"}
    assert kafka_stories.columns([first, second]) == {"4.3.0 to 4.2.0": "4.3.0", "4.1.0": "4.1.0"}
    told = table([first, second]).splitlines()
    assert told[0] == "| case | 4.3.0 to 4.2.0 | 4.1.0 |"
    assert told[-1] == "| two | stops | takes it |"


@pytest.mark.slow
@pytest.mark.kafka
def test_the_newest_release_still_says_what_is_stored(newest: Kafka) -> None:
    """Without it the table would go on telling what an older model, or an older adapter, found."""
    command = newest.command(properties={"insync.exact": "true"})
    told = {one.name: one.cell for one in tell_all(command, cases(CASES), patience=300.0)}
    assert told == {row["case"]: row[DRIVEN_RELEASES[0]] for row in kafka_stories.read_stories()}


@pytest.mark.slow
@pytest.mark.kafka
def test_kafka_4_0_elects_a_last_known_leader_that_is_fenced() -> None:
    """KAFKA-19522, mended in 4.1: a bug of Kafka's own that the comparison finds, where releases differ."""
    instance, trace = next((instance, trace) for name, instance, trace in cases(CASES) if name == "minimum-of-one")
    steps = tuple((step.action, step.parameters) for step in trace.steps)
    limits = Limits(schedule=Schedule(initial=trace.initial, steps=steps))
    mended = conform(instance, driven(Kafka("4.1.1")).command(), limits, patience=120.0)
    assert mended.conforms, mended.differences
    wrong = conform(instance, driven(Kafka("4.0.1")).command(), limits, patience=120.0)
    (difference,) = wrong.differences
    assert difference.action == "broker_restarts"
    assert ("controller_leader", None, "r1") in difference.places
    assert "fenced" not in {place for place, _, _ in difference.places}  # it still is, and leads
    explain = Kafka("4.0.1").explain()
    assert explain is not None
    known = conform(instance, driven(Kafka("4.0.1")).command(), limits, explain=explain, patience=120.0)
    assert [why[0] for why in known.known_differences] == ["R"]


@pytest.mark.slow
@pytest.mark.kafka
def test_a_directory_that_is_told_empties_the_elr_where_the_leader_stops_later() -> None:
    """Told as it is stored, assigned-directory stops at difference F: the leader is shutting down already."""
    instance, trace = next((instance, trace) for name, instance, trace in cases(CASES) if name == "assigned-directory")
    steps = [(step.action, step.parameters) for step in trace.steps]
    assert [name for name, _ in steps[5:7]] == ["broker_asks_to_shut_down", "controller_fences_follower"]
    steps[5], steps[6] = steps[6], steps[5]
    limits = Limits(schedule=Schedule(initial=trace.initial, steps=tuple(steps)))
    wrong = conform(instance, driven(Kafka("4.2.2")).command(), limits, patience=120.0)
    assert wrong.conforms, wrong.differences
    assert (wrong.steps, wrong.skipped_steps) == (15, [])
    mended = conform(instance, driven(Kafka("4.3.0")).command(), limits, patience=120.0)
    (difference,) = mended.differences
    assert (difference.action, difference.places) == ("controller_learns_directory", (("controller_elr", [], ["r2"]),))


EARLIER_ANSWER = (
    ("leader_appends", {"leader": 0}),
    ("leader_answers_fetch", {"leader": 0, "follower": 1}),
    ("follower_appends", {"follower": 1}),
    ("leader_proposes_shrink", {"leader": 0, "lagging": 0b10}),
    ("controller_reassigns_at_once", {"target": 0b01, "leader": 0}),
    ("controller_starts_reassignment", {"target": 0b10}),
    ("becomes_follower", {"r": 1}),
    ("leader_answers_fetch", {"leader": 0, "follower": 1}),
)
"""The last answer is to a fetch of the epoch before."""


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize(("release", "known"), [("4.0.0", "Q"), ("4.0.1", "")])
def test_kafka_4_0_0_takes_the_answer_to_a_fetch_of_an_earlier_epoch(release: str, known: str) -> None:
    """KAFKA-18991, mended in 4.0.1."""
    work = {"sessions_lost": 0, "epochs": 1, "isr_changes": 3, "log": 1, "records": 1, "reassignments": 2}
    instance, kafka = Instance(design_named("kafka-4.0"), {"replicas": 2, **work}), driven(Kafka(release))
    limits = Limits(schedule=Schedule(initial={"first": 0, "spares": 0}, steps=EARLIER_ANSWER))
    explain = kafka.explain()
    assert explain is not None
    done = conform(
        instance, kafka.command(properties={"insync.no-elr": "true"}), limits, explain=explain, patience=120.0
    )
    assert done.conforms, done.differences
    assert done.steps == len(EARLIER_ANSWER)
    assert "".join(why[0] for why in done.known_differences) == known
