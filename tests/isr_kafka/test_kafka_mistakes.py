"""Mistakes in Kafka's own classes are found: a comparison that cannot fail would show nothing."""

from pathlib import Path

import pytest

from insync_cli.exits import Exit
from insync_cli.main import main
from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits
from isr_kafka import Unavailable
from isr_kafka.known_differences import explain
from isr_kafka.mistakes import MISTAKES, Mistake, home_with, mistake_named, plant
from isr_kafka.system import Kafka
from isr_lang import Instance
from isr_model import KIP_966

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

FOUND_IN: dict[str, tuple[str, ...]] = {
    "follower-always-in-sync": ("leader_proposes_expansion",),
    "everybody-lags": ("leader_proposes_shrink",),
}
"""The action in which a mistake shows, where that is always the same."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_a_mistake_in_kafka_is_found(mistake: Mistake, newest: Kafka, tmp_path: Path) -> None:
    command = newest.command(before=[plant(newest, mistake, tmp_path)])
    instance, first = Instance(KIP_966, dict(mistake.bounds)), Limits(stop_at_first=True)
    done = conform(instance, command, first, patience=120.0, explain=explain)
    assert not done.conforms
    assert {d.action for d in done.differences} <= set(FOUND_IN.get(mistake.name, [d.action for d in done.differences]))


def test_a_build_with_a_mistake_is_found_by_its_jars(
    newest: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_with(newest, mistake_named("any-partition-epoch"), tmp_path / "kafka")
    given = ["conform", "--sut", "kafka", "--kafka-home", str(home), "--replicas", "2", "--crashes", "0", "--first"]
    code = main([*given, "--plain"])
    assert code == Exit.SAFETY, capsys.readouterr()
    assert "controller_" in capsys.readouterr().out


def test_what_a_release_does_not_have_cannot_be_planted(newest: Kafka, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no method dance"):
        plant(newest, Mistake("dance", "kafka.cluster.Partition", "dance", "true", ""), tmp_path)
