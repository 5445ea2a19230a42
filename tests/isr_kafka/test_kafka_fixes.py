"""Apache Kafka with our fixes in its byte code, along every edge of the model that has the same fix.

Without these a fix could mend the one story for which it was made and go wrong elsewhere, or mend nothing that the
model means by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_conform.control import agrees_there
from isr_found import fixed_classes
from isr_kafka.known_differences import explain
from isr_kafka.system import Kafka
from isr_lang import Design, Instance
from isr_model import KIP_966
from isr_protocol.designs.leader_bugs import KAFKA_RESETS_POSITIONS, KAFKA_RESETS_SKIPPED, controller_begins_new_epoch
from isr_protocol.designs.releases import KAFKA_4_4, enough_of_newest, with_mends

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

EVERYTHING = Limits()
REELECTED = {"replicas": 2, "crashes": 0, "sessions_lost": 0, "epochs": 2, "isr_changes": 2}
"""A leader may be elected again without having heard of the epoch in between: 16,346 edges."""


def driven(
    kafka: Kafka, design: Design, bounds: dict[str, int], before: tuple[Path, ...] = (), limits: Limits = EVERYTHING
) -> ConformanceResult:
    instance = Instance(design, bounds)
    return conform(instance, kafka.command(before=before), limits, patience=300.0, explain=explain)


@pytest.mark.parametrize(
    ("fix", "design"),
    [("positions-reset", KAFKA_RESETS_POSITIONS), ("positions-reset-after-gap", KAFKA_RESETS_SKIPPED)],
    ids=["positions-reset", "positions-reset-after-gap"],
)
def test_fixed_kafka_takes_every_edge_of_the_fixed_design(
    fix: str, design: Design, newest: Kafka, tmp_path: Path
) -> None:
    without = design.without(controller_begins_new_epoch.name)  # which the adapter has not
    done = driven(newest, without, REELECTED, fixed_classes(fix, None, None, tmp_path))
    assert done.conforms, done.differences
    assert not done.known_differences
    assert done.edges == done.of_edges == 16_346


def test_kafka_as_it_is_differs_from_the_fixed_design(newest: Kafka) -> None:
    done = driven(newest, KAFKA_RESETS_POSITIONS.without(controller_begins_new_epoch.name), REELECTED)
    assert {d.action for d in done.differences} == {"becomes_leader"}
    ((place, model, kafka),) = done.differences[0].places
    assert (place.partition("[")[0], model, kafka) == ("follower_end", None, 0)


WORK = {"replicas": 2, "sessions_lost": 0, "epochs": 1, "isr_changes": 2, "log": 1, "records": 1, "min_insync": 1}
OF_RELEASE: tuple[tuple[str, dict[str, int], set[str]], ...] = (
    ("proposal-kept", {"reassignments": 0, "isr_changes": 3, "late_news": 1}, {"leader_hears_known_version"}),
    ("proposal-kept", {"reassignments": 0, "isr_changes": 3, "snapshots_loaded": 1}, {"leader_loads_snapshot"}),
    (
        "elr-of-replicas",
        {"reassignments": 2, "isr_changes": 3, "min_insync": 2},
        {"controller_reassigns_at_once", "controller_accepts_and_completes"},
    ),
)
"""Fixes of what people and networks do: bounds at which they show, and the actions in which Kafka as it is differs."""
SOME = Limits(per_action=100, seed=1)


def mended(fix: str) -> Design:
    return with_mends(f"kafka-4.4-{fix}", f"kafka-4.4 with the mend {fix}", fix)


@pytest.mark.parametrize(("fix", "bounds", "actions"), OF_RELEASE)
def test_fixed_kafka_agrees_with_the_release_that_has_this_mend(
    fix: str, bounds: dict[str, int], actions: set[str], newest: Kafka, tmp_path: Path
) -> None:
    done = driven(newest, mended(fix), WORK | bounds, fixed_classes(fix, None, None, tmp_path), SOME)
    assert done.conforms, done.differences
    assert {why[:2] for why in done.known_differences} <= {"D:"}
    assert all(done.actions[action] for action in actions)


@pytest.mark.parametrize(("fix", "bounds", "actions"), OF_RELEASE)
def test_kafka_as_it_is_differs_from_the_release_that_has_this_mend(
    fix: str, bounds: dict[str, int], actions: set[str], newest: Kafka
) -> None:
    done = driven(newest, mended(fix), WORK | bounds, limits=SOME)
    assert {d.action for d in done.differences} == actions


MINIMUM_SET = WORK | {"reassignments": 0, "min_insync": 2, "minimum_changes": 1}
FEW = Limits(per_action=25, seed=1)
CONFIGURATION_FIRST = KAFKA_4_4.replacing(
    "kafka-4.4-configuration-first",
    "kafka-4.4 where a leader applies a new minimum before the version that comes with it",
    because="the fix `configuration-first` is one of two parts of what a mend does: only there is it another order.",
    enough_of_news=enough_of_newest,
)


def test_another_order_of_configuration_and_partitions_is_noticed(newest: Kafka, tmp_path: Path) -> None:
    """BrokerMetadataPublisher.onMetadataUpdate applies the partitions first, which a minimum of before lets commit."""
    done = driven(newest, KAFKA_4_4, MINIMUM_SET, fixed_classes("configuration-first", None, None, tmp_path), FEW)
    (difference,) = done.differences
    assert difference.action == "leader_learns_isr"
    control = agrees_there(Instance(KAFKA_4_4, MINIMUM_SET), newest.command(), difference, patience=300.0)
    assert control, difference


def test_with_that_order_kafka_agrees_with_a_design_that_has_it(newest: Kafka, tmp_path: Path) -> None:
    fixed = fixed_classes("configuration-first", None, None, tmp_path)
    done = driven(newest, CONFIGURATION_FIRST, MINIMUM_SET, fixed, FEW)
    assert done.conforms, done.differences
    assert {why[:2] for why in done.known_differences} <= {"D:"}


@pytest.mark.parametrize("fix", ["elr-of-replicas", "configuration-first", "proposal-kept"])
def test_a_fix_of_something_else_changes_nothing_here(fix: str, newest: Kafka, tmp_path: Path) -> None:
    done = driven(newest, KIP_966, {"replicas": 2, "crashes": 0}, fixed_classes(fix, None, None, tmp_path))
    assert done.conforms, done.differences
    assert done.edges == done.of_edges
