"""Settings by Kafka's names, and the designs behind `insync.design`."""

from __future__ import annotations

import attrs
import pytest

from isr_broker.designs import DESIGNS, KAFKA_0_8, KIP_966
from isr_broker.setting_docs import DOCUMENTATION
from isr_broker.settings import BadSetting, Settings


def test_names_and_defaults_are_kafkas() -> None:
    defaults = Settings().properties()
    assert defaults["min.insync.replicas"] == "1"
    assert defaults["replica.lag.time.max.ms"] == "30000"
    assert defaults["broker.session.timeout.ms"] == "9000"
    assert defaults["unclean.leader.election.enable"] == "false"
    assert defaults["log.flush.interval.messages"] == str(2**63 - 1)
    assert defaults["insync.design"] == "kip-966"


def test_what_is_printed_can_be_read() -> None:
    for design in DESIGNS.values():
        settings = Settings(insync_design=design, min_insync_replicas=3)
        assert Settings.from_properties(settings.properties()) == settings


def test_every_setting_is_documented_and_no_other() -> None:
    assert list(DOCUMENTATION) == list(Settings().properties())


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("min.isr", "2", "there is no setting 'min.isr'"),
        ("min.insync.replicas", "two", "whole number"),
        ("min.insync.replicas", "0", "at least 1"),
        ("unclean.leader.election.enable", "yes", "true or false"),
        ("insync.design", "kip-1", "one of kip-966"),
    ],
)
def test_a_bad_setting_says_what_is_wrong(name: str, text: str, complaint: str) -> None:
    with pytest.raises(BadSetting, match=complaint):
        Settings.from_properties({name: text})


def test_a_design_brings_the_defaults_of_its_time() -> None:
    old = Settings.from_properties({"insync.design": "kafka-0.8"})
    assert old.unclean_leader_election_enable
    assert not Settings.from_properties(
        {"insync.design": "kafka-0.8", "unclean.leader.election.enable": "false"}
    ).unclean_leader_election_enable


def test_designs_differ_in_what_they_say_they_do() -> None:
    assert attrs.evolve(KIP_966, name="x") != attrs.evolve(KAFKA_0_8, name="x")
    assert all(name == design.name for name, design in DESIGNS.items())


@pytest.mark.parametrize(
    ("design", "unclean", "lag", "session"),
    [
        ("kafka-0.8", True, 10_000, 6_000),
        ("zookeeper", True, 10_000, 6_000),
        ("kip-101", False, 10_000, 6_000),
        ("kip-320", False, 10_000, 6_000),
        ("kip-497", False, 30_000, 18_000),
        ("kip-841", False, 30_000, 9_000),
        ("kip-966", False, 30_000, 9_000),
    ],
)
def test_a_design_has_the_defaults_of_its_time(design: str, unclean: bool, lag: int, session: int) -> None:
    """KIP-106 (0.11) and KIP-537 (2.5) changed them; KRaft brought broker.session.timeout.ms."""
    settings = Settings.from_properties({"insync.design": design})
    found = (settings.unclean_leader_election_enable, settings.replica_lag_time_max_ms)
    assert found == (unclean, lag)
    assert settings.broker_session_timeout_ms == session
