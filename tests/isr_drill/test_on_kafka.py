"""What a drill calls safe stays on Apache Kafka, and what it says may be lost is lost there.

Without this the drill could be true of our own broker alone. `bench/drill_kafka.py` has all of it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.isr_audit.test_audit_kafka import with_archive
from tests.support.drill_faults import disks_that_survive
from tests.support.drill_kafka import USUAL, KafkaCase, KafkaTrial, random_kafka_case

from isr_drill.drill import Records

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Generator[KafkaTrial]:
    trial = KafkaTrial(with_archive(), Path(tmp_path_factory.mktemp("drill")))
    yield trial
    trial.kafka.kill_all()


def usual(name: str) -> KafkaCase:
    (case,) = (c for c in USUAL if c.name == name)
    return case


def test_a_disk_replaced_and_waited_for_is_safe_and_all_of_them_at_once_are_not(trial: KafkaTrial) -> None:
    one_by_one = trial.judge(usual("disks replaced one by one"))
    assert (one_by_one.verdict, one_by_one.mishap, any(one_by_one.shown)) == (Records.SAFE, "", False)
    at_once = trial.judge(usual("disks replaced all at once"))
    assert (at_once.verdict, at_once.mishap, any(at_once.shown)) == (Records.MAY_BE_LOST, "", True)


def test_a_drill_that_is_wrong_is_seen(trial: KafkaTrial) -> None:
    """The planted fault: to a drill a destroyed disk keeps all, so it calls safe what Kafka loses."""
    with disks_that_survive():
        judgement = trial.judge(KafkaCase("all disks destroyed", (2, 4, 6), 2, "destroy 2 4 6"))
    assert judgement.verdict is Records.SAFE
    assert judgement.is_wrong


def test_a_random_runbook_has_brokers_that_are_there() -> None:
    cases = [case for seed in range(1, 60) if (case := random_kafka_case(seed)) is not None]
    assert len(cases) > 20
    assert all(set(case.replicas) <= set(range(2, 8)) for case in cases)
