"""Stories of disks on Apache Kafka's classes: an empty one leads where the ELR was emptied, and a stray log goes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.emptied_elr import BOUNDS, ELECTION, LEADER, PLACED, TO_THE_ELECTION, Named

from isr_check.native import explore
from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits, Schedule
from isr_kafka.system import Kafka
from isr_lang import Design, Instance
from isr_protocol.designs.earlier_releases import KAFKA_4_2
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


STRAY: tuple[Named, ...] = (
    ("leader_appends", {"leader": 0}),
    ("leader_answers_fetch", {"leader": 0, "follower": 1}),
    ("follower_appends", {"follower": 1}),
    ("broker_crashes", {"r": 1, "checkpoint": 0}),
    ("controller_fences_follower", {"r": 1}),
    ("broker_restarts", {"r": 1}),
    ("controller_reassigns_at_once", {"target": 0b01, "leader": 0}),
    ("replica_is_deleted", {"r": 1}),
)
"""A broker starts with a log, and the first metadata that it reads have no replica of it."""


def test_a_log_without_a_replica_is_a_stray_to_a_process_that_starts(newest: Kafka) -> None:
    """The adapter had the log loaded before, and Kafka then deletes nothing."""
    bounds = {"replicas": 2, "min_insync": 1, "crashes": 1, "sessions_lost": 0, "reassignments": 1, "epochs": 1}
    instance = Instance(KAFKA_4_4, {**bounds, "isr_changes": 3, "log": 1, "records": 1})
    schedule = Schedule(initial={"first": 0, "spares": 0}, steps=tuple((n, dict(p)) for n, p in STRAY))
    done = conform(instance, newest.command(), Limits(schedule=schedule), patience=120.0)
    assert done.conforms, done.differences
    assert done.steps == len(STRAY)


def shortest(instance: Instance) -> Schedule:
    """The shortest way to lose an acknowledged record."""
    path = explore(instance, ("acked-survives",)).finding("acked-survives").path
    assert path is not None
    parameters = {a.name: [name for name, _ in a.parameters] for a in instance.actions}
    steps = tuple((name, dict(zip(parameters[name], values, strict=True))) for name, values in path.steps)
    first = dict(zip([name for name, _ in instance.initial.parameters], path.initial, strict=True))
    return Schedule(initial=first, steps=steps)


def test_kafka_elects_who_starts_without_the_directory_of_its_log(newest: Kafka) -> None:
    """The shortest way in which `kafka-4.4` loses a record so, with orderly stops only: found/removed-directory."""
    bounds = {"replicas": 2, "min_insync": 2, "crashes": 0, "shutdowns": 2, "sessions_lost": 0, "reassignments": 0}
    instance = Instance(
        KAFKA_4_4, {**bounds, "directories_removed": 1, "epochs": 2, "isr_changes": 3, "log": 1, "records": 1}
    )
    schedule = shortest(instance)
    assert "directory_is_removed" in {name for name, _ in schedule.steps}
    done = conform(instance, newest.command(), Limits(schedule=schedule), patience=120.0)
    assert done.conforms, done.differences
    assert done.steps == len(schedule.steps)


@pytest.mark.parametrize("release", ["4.2.2", "4.1.1", "4.3.1"])
def test_a_directory_that_is_told_of_empties_the_elr_up_to_4_2(release: str) -> None:
    """The last in sync gets an empty disk, tells of it, and is elected though another is in the ELR: `kafka-4.2`."""
    bounds = {"replicas": 2, "min_insync": 2, "crashes": 1, "shutdowns": 0, "sessions_lost": 1, "reassignments": 0}
    instance = Instance(
        KAFKA_4_2, {**bounds, "disks_replaced": 1, "epochs": 2, "isr_changes": 5, "log": 1, "records": 1}
    )
    schedule = shortest(instance)
    actions = [name for name, _ in schedule.steps]
    assert "controller_learns_directory" in actions
    done = conform(instance, Kafka(release).command(), Limits(schedule=schedule), patience=120.0)
    if release == "4.3.1":
        assert [d.action for d in done.differences] == ["controller_learns_directory"]
    else:
        assert done.conforms, done.differences
        assert done.steps == len(actions)
