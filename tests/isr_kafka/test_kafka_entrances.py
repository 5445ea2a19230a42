"""The ways by which metadata and requests come to Kafka's classes: each is Kafka's own, and makes no difference.

Without these, what lies between a message and ReplicaManager (KafkaApis, MetadataLoader, BrokerMetadataPublisher,
NodeToControllerRequestThread) could do something that the model does not know.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from insync_cli.conformance.kafka import cases
from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits, Schedule, nothing_known
from isr_conform.control import agrees_there
from isr_kafka.mistakes import Mistake, plant
from isr_kafka.system import Kafka
from isr_lang import Instance
from isr_model import KIP_966
from isr_protocol.designs.releases import KAFKA_4_4

CASES = Path(__file__).resolve().parents[2] / "counterexamples" / "cases"

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

TWO: dict[str, int | str | bool] = {"replicas": 2}
SMALLEST = TWO | {"crashes": 0, "isr_changes": 1}
CONSUMERS = TWO | {"crashes": 0, "consumers": 1, "follower_reads": True}
APIS = {"insync.apis": "true"}


def driven(
    kafka: Kafka,
    constants: Mapping[str, int | str | bool],
    properties: Mapping[str, str],
    before: list[Path] | None = None,
    limits: Limits | None = None,
) -> ConformanceResult:
    command = kafka.command(before=before or [], properties=properties)
    return conform(Instance(KIP_966, dict(constants)), command, limits or Limits(), patience=120.0)


def agrees(done: ConformanceResult) -> None:
    assert done.conforms, done.differences
    assert done.edges == done.of_edges
    assert not done.cannot


AT_WORK = TWO | {"sessions_lost": 0, "epochs": 1, "log": 1, "records": 1}


@pytest.mark.parametrize(
    ("budgets", "action"),
    [
        ({"reassignments": 2, "isr_changes": 3}, "replica_is_deleted"),
        ({"reassignments": 0, "minimum_changes": 1, "isr_changes": 2}, "broker_learns_minimum"),
    ],
    ids=["reassignments", "minimum"],
)
def test_a_snapshot_knows_of_no_replica_before_it(budgets: dict[str, int], action: str, newest: Kafka) -> None:
    """TopicsDelta.replay of a TopicRecord: who is removed stays, and what a leader knows comes again."""
    some, instance = Limits(per_action=10, seed=1), Instance(KAFKA_4_4, AT_WORK | budgets)
    command = newest.command(properties={"insync.metadata": "snapshot"})
    done = conform(instance, command, some, patience=300.0, explain=newest.explain() or nothing_known)
    assert {d.action for d in done.differences} == {action}
    assert {place for d in done.differences for place, _, _ in d.places} <= {"pending_isr[r1]", "pending_isr[r2]"}


@pytest.mark.parametrize("reading", ["batches", "direct", "snapshot"])
def test_it_makes_no_difference_how_metadata_reaches_a_broker(newest: Kafka, reading: str) -> None:
    """All else drives MetadataLoader with all that is new in one delta."""
    agrees(driven(newest, TWO, {"insync.metadata": reading}))


@pytest.mark.parametrize("bounds", [TWO, CONSUMERS], ids=["crashes", "consumers"])
def test_every_edge_through_kafka_apis(newest: Kafka, bounds: Mapping[str, int | str | bool]) -> None:
    """Produce and Fetch are asked of KafkaApis, and each state of ListOffsets and OffsetForLeaderEpoch."""
    agrees(driven(newest, bounds, APIS))


def test_the_smallest_bounds_through_kafka_apis_in_each_release(each: Kafka) -> None:
    agrees(driven(each, SMALLEST, APIS))


HANDLERS = {
    "handleProduceRequest": {"leader_appends"},
    "handleFetchRequest": {"leader_answers_fetch"},
    "handleListOffsetRequest": None,
    "handleOffsetForLeaderEpochRequest": None,
}
"""A request that KafkaApis does not handle any more, and the actions that then are missing; None: a state differs."""


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_request_that_kafka_apis_does_not_handle_is_missed(newest: Kafka, handler: str, tmp_path: Path) -> None:
    planted = plant(newest, Mistake(handler, "kafka.server.KafkaApis", handler, "nothing", ""), tmp_path)
    (difference,) = driven(newest, SMALLEST, APIS, [planted], Limits(stop_at_first=True)).differences
    assert HANDLERS[handler] in (None, {difference.action})
    instance = Instance(KIP_966, dict(SMALLEST))
    assert agrees_there(instance, newest.command(properties=APIS), difference, patience=120.0), difference


def told(case: str) -> tuple[Instance, Limits]:
    """A stored counterexample, step by step."""
    instance, trace = next((instance, trace) for name, instance, trace in cases(CASES) if name == case)
    steps = tuple((step.action, step.parameters) for step in trace.steps)
    return instance, Limits(schedule=Schedule(initial=trace.initial, steps=steps))


def test_positions_are_kept_only_where_two_elections_come_as_one_delta(newest: Kafka) -> None:
    """Without it nobody would see that both ways of reading really differ."""
    instance, limits = told("kept-positions")
    assert conform(instance, newest.command(), limits, patience=120.0).conforms
    apart = conform(instance, newest.command(properties={"insync.metadata": "batches"}), limits, patience=120.0)
    (difference,) = apart.differences
    assert difference.action == "becomes_leader"
    assert ("follower_end[r1][r2]", 1, None) in difference.places


def test_copies_of_a_request_are_sent_by_kafkas_own_queue(newest: Kafka, tmp_path: Path) -> None:
    """Where NodeToControllerRequestThread drops what comes back to it, nothing is sent again."""
    name = "handleResponse"
    forgets = Mistake(name, "org.apache.kafka.server.NodeToControllerRequestThread", name, "nothing", "")
    instance, limits = told("overtaken-request")
    sent = conform(instance, newest.command(), limits, patience=120.0)
    assert "controller_refuses_later_copy" in sent.actions
    assert "controller_refuses_later_copy" not in {difference.action for difference in sent.differences}
    forgotten = conform(instance, newest.command(before=[plant(newest, forgets, tmp_path)]), limits, patience=120.0)
    assert [d.action for d in forgotten.differences if d.kind == "missing action"] == ["controller_refuses_later_copy"]
