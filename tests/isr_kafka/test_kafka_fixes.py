"""Apache Kafka with our fixes in its byte code, along every edge of the model that has the same fix.

Without these a fix could mend the one story for which it was made and go wrong elsewhere, or mend nothing that the
model means by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_found import fixed_classes
from isr_kafka.known_differences import explain
from isr_kafka.system import Kafka
from isr_lang import Design, Instance
from isr_model import KIP_966
from isr_protocol.designs.leader_bugs import KAFKA_RESETS_POSITIONS, KAFKA_RESETS_SKIPPED, controller_begins_new_epoch

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

REELECTED = {"replicas": 2, "crashes": 0, "sessions_lost": 0, "epochs": 2, "isr_changes": 2}
"""A leader may be elected again without having heard of the epoch in between: 16,346 edges."""


def driven(kafka: Kafka, design: Design, bounds: dict[str, int], before: tuple[Path, ...] = ()) -> ConformanceResult:
    instance = Instance(design, bounds)
    return conform(instance, kafka.command(before=before), Limits(), patience=300.0, explain=explain)


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


@pytest.mark.parametrize("fix", ["elr-of-replicas", "configuration-first", "proposal-kept"])
def test_a_fix_of_something_else_changes_nothing_here(fix: str, newest: Kafka, tmp_path: Path) -> None:
    done = driven(newest, KIP_966, {"replicas": 2, "crashes": 0}, fixed_classes(fix, None, None, tmp_path))
    assert done.conforms, done.differences
    assert done.edges == done.of_edges
