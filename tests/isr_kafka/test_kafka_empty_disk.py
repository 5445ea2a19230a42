"""A story of three replicas on Apache Kafka's classes: the ELR is emptied, and who led last has an empty disk."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.emptied_elr import BOUNDS, ELECTION, LEADER, PLACED, TO_THE_ELECTION, Named

from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits, Schedule
from isr_kafka.system import Kafka
from isr_lang import Design, Instance
from isr_protocol.designs.new_directory import KAFKA_4_4_NEW_DIRECTORY
from isr_protocol.designs.releases import KAFKA_4_4

pytestmark = [pytest.mark.slow, pytest.mark.kafka]


@pytest.mark.parametrize(
    ("design", "steps", "isr_changes"),
    [
        (KAFKA_4_4, (*TO_THE_ELECTION, *ELECTION), 5),
        (KAFKA_4_4_NEW_DIRECTORY, (*TO_THE_ELECTION, *PLACED, *ELECTION), 6),
    ],
    ids=["the same directory id", "another directory id"],
)
def test_kafka_elects_the_empty_disk(design: Design, steps: Sequence[Named], isr_changes: int, newest: Kafka) -> None:
    """Every step is taken, and every state on the way is the model's, in which acked-survives is broken at the end."""
    instance = Instance(design, {**BOUNDS, "isr_changes": isr_changes})
    schedule = Schedule(initial={"first": LEADER, "spares": 0}, steps=tuple((n, dict(p)) for n, p in steps))
    done = conform(instance, newest.command(), Limits(schedule=schedule), patience=120.0)
    assert done.conforms, done.differences
    assert done.steps == len(steps)
