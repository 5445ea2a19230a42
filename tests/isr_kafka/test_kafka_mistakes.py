"""Mistakes in Kafka's own classes are found: a comparison that cannot fail would show nothing."""

from pathlib import Path

import pytest

from insync_cli.exits import Exit
from insync_cli.main import main
from insync_cli.registry import design_named
from isr_conform.conformance import conform
from isr_conform.conformance_result import Limits
from isr_conform.control import agrees_there
from isr_kafka import Unavailable
from isr_kafka.known_differences import explain
from isr_kafka.mistakes import ANSWER_FIRST, MISTAKES, Mistake, home_with, mistake_named, plant
from isr_kafka.system import Kafka
from isr_lang import Instance
from isr_model import KIP_966
from isr_protocol.designs.new_directory import KAFKA_4_4_NEW_DIRECTORY

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

FOUND_IN: dict[str, tuple[str, ...]] = {
    "follower-always-in-sync": ("leader_proposes_expansion",),
    "everybody-lags": ("leader_proposes_shrink",),
    "shrink-throws": ("leader_proposes_shrink",),
    "any-leader-epoch": ("leader_answers_fetch", "leader_answers_diverging"),
    "acknowledged-on-stepping-down": ("becomes_follower",),
    "commits-for-a-stranger": ("leader_answers_fetch", "leader_answers_diverging"),
    "no-mark-of-a-clean-stop": ("broker_shuts_down",),
    "clean-stop-not-told": ("broker_restarts",),
    "never-sent-again": ("controller_refuses_later_copy",),
    "directory-not-told": ("controller_learns_directory",),
    "any-directory": ("controller_moves_leadership",),
    "older-version-taken": ("leader_learns_old_isr",),
    "snapshot-not-read": ("leader_loads_snapshot",),
}
"""The action in which a mistake shows, where that is always the same."""
OWN_FILE = {KAFKA_4_4_NEW_DIRECTORY.name: KAFKA_4_4_NEW_DIRECTORY}
"""Designs that have their file, and no place among all designs."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_a_mistake_in_kafka_is_found_where_kafka_agrees(mistake: Mistake, newest: Kafka, tmp_path: Path) -> None:
    """The same steps are asked of Kafka as it is: at a difference that Kafka has itself, nothing was found."""
    instance = Instance(OWN_FILE.get(mistake.design) or design_named(mistake.design), dict(mistake.bounds))
    wrong = newest.command(before=[plant(newest, mistake, tmp_path)], properties=mistake.properties)
    limits = Limits(stop_at_first=True, per_action=mistake.edges, walks=mistake.walks, walk_length=60, seed=1)
    done = conform(instance, wrong, limits, patience=120.0, explain=explain)
    (difference,) = done.differences
    assert difference.action in FOUND_IN.get(mistake.name, (difference.action,))
    right = newest.command(properties=mistake.properties)
    assert agrees_there(instance, right, difference, patience=120.0, explain=explain), difference


def test_a_mistake_is_not_found_where_kafka_differs_itself(newest: Kafka, tmp_path: Path) -> None:
    """Of two leader epochs Kafka's classes say what KIP-966 does not (difference C): no catch of anything."""
    mistake = mistake_named("any-leader-epoch")
    instance = Instance(KIP_966, dict(mistake.bounds))
    wrong = newest.command(before=[plant(newest, mistake, tmp_path)])
    (difference,) = conform(instance, wrong, Limits(stop_at_first=True), patience=120.0, explain=explain).differences
    assert difference.action == "becomes_leader"
    assert not agrees_there(instance, newest.command(), difference, patience=120.0)


def test_an_older_version_is_never_heard_without_a_budget_for_it(newest: Kafka, tmp_path: Path) -> None:
    """So it takes the budget to see what a leader does with it."""
    wrong = newest.command(before=[plant(newest, mistake_named("older-version-taken"), tmp_path)])
    limits = Limits(per_action=25, seed=1)
    done = conform(Instance(design_named("kafka-4.4"), dict(ANSWER_FIRST)), wrong, limits, patience=120.0)
    assert done.conforms, done.differences


def test_an_epoch_that_stays_ends_no_run(newest: Kafka, tmp_path: Path) -> None:
    """The adapter lets a follower drop an epoch without a record. It asked for ever where Kafka dropped none."""
    bounds = {"replicas": 2, "crashes": 0, "sessions_lost": 0, "epochs": 2}
    instance = Instance(design_named("kafka-keeps-positions"), bounds)
    command = newest.command(before=[plant(newest, mistake_named("never-truncates"), tmp_path)])
    done = conform(instance, command, Limits(), patience=120.0, explain=explain)
    assert done.complete
    assert not done.conforms


def test_a_build_with_a_mistake_is_found_by_its_jars(
    newest: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_with(newest, mistake_named("any-partition-epoch"), tmp_path / "kafka")
    given = ["conform", "--sut", "kafka", "--kafka-home", str(home), "--replicas", "2", "--crashes", "0", "--first"]
    code = main([*given, "--plain"])
    out = capsys.readouterr().out
    assert code == Exit.SAFETY, out
    assert "controller_" in out
    as_it_is = ["conform", "--sut", f"kafka={newest.release}", "--replicas", "2", "--crashes", "0", "--first"]
    assert main([*as_it_is, "--plain"]) == Exit.HOLDS, capsys.readouterr().out


def test_what_a_release_does_not_have_cannot_be_planted(newest: Kafka, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no method dance"):
        plant(newest, Mistake("dance", "kafka.cluster.Partition", "dance", "true", ""), tmp_path)
