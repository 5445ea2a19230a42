"""QuorumController on KafkaRaftClient along the model of controllers on a quorum.

Without these, the model could say something of controllers that Kafka's own do not do.
"""

from pathlib import Path

import pytest
from tests.isr_kafka.test_kraft_classes import TOP, ends_as_on_the_page, is_found, is_of_another_family

from insync_cli.registry import design_named
from isr_conform.conformance import conform
from isr_conform.conformance_result import ConformanceResult, Limits
from isr_kafka.controller_mistakes import BOUNDS, MISTAKES
from isr_kafka.mistakes import Mistake
from isr_kafka.system import CONTROLLERS, Kafka
from isr_lang import Instance

pytestmark = [pytest.mark.kafka]


def walks(kafka: Kafka, design: str, walks: int, **more: int) -> ConformanceResult:
    limits = Limits(walks=walks, walk_length=40, seed=1)
    return conform(Instance(design_named(design), {**BOUNDS, **more}), kafka.command(), limits, patience=300.0)


@pytest.mark.slow
def test_walks_agree_in_each_release(each_controllers: Kafka) -> None:
    done = walks(each_controllers, "kraft-controllers", 6)
    assert done.conforms, done.differences
    assert done.name == f"QuorumController of Apache Kafka {each_controllers.release}"
    assert done.actions["controller_commits"] > 0


@pytest.mark.slow
def test_walks_with_a_lost_disk_agree(newest_controllers: Kafka) -> None:
    done = walks(newest_controllers, "kraft-controllers-static", 12, lost_disks=1)
    assert done.conforms, done.differences
    assert done.actions["controller_forgets"] > 0
    assert done.actions["controller_accepts_alter_partition"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_each_mistake_in_kafkas_controllers_is_found_where_kafka_agrees(
    mistake: Mistake, newest_controllers: Kafka, tmp_path: Path
) -> None:
    is_found(mistake, newest_controllers, tmp_path, 600)


@pytest.mark.slow
def test_a_lost_disk_takes_an_acknowledged_record_as_the_page_says(
    newest_controllers: Kafka, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-14077 for a partition, by the command of docs/kraft-classes.md and with its last line."""
    monkeypatch.chdir(TOP)
    ends_as_on_the_page("kraft-controllers-static", newest_controllers, capsys)


def test_controllers_are_not_driven_along_a_partition(capsys: pytest.CaptureFixture[str]) -> None:
    is_of_another_family("kafka-controllers", "kraft-controllers", capsys)


def test_controllers_are_driven_since_kafka_4_0() -> None:
    assert CONTROLLERS.releases[0] == "4.4.0"
    assert CONTROLLERS.releases[-1] == "4.0.0"
