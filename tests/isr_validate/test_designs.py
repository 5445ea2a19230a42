"""Traces of every design of Kafka's history are runs of its model, and with the rules of another they are not."""

from __future__ import annotations

import attrs
import pytest
from tests.support.sample import sample

from isr_broker.core import leader as leaders
from isr_broker.core.messages import Offset
from isr_broker.core.replica_state import Replica
from isr_broker.designs import DESIGNS, PLANTED
from isr_broker.snapshot import Json
from isr_broker.trace_reader import BadTrace, Life, read_lives
from isr_sim.simulate import QUICK, Config
from isr_sim.traces import run_with_traces as run_with_traces
from isr_sim.world import FAIR, Weather
from isr_validate import Level, validate
from isr_validate.model_step import TRACED_DESIGNS, traced_design

pytestmark = pytest.mark.explores


def a_run(cores: str, name: str, seed: int, weather: Weather | None = None) -> list[Life]:
    """The cores of a design that claim to be those of another."""
    design = attrs.evolve({**DESIGNS, **PLANTED}[cores], name=name)
    old = name in ("kafka-0.8", "zookeeper")
    settings = attrs.evolve(
        QUICK,
        insync_design=design,
        insync_waits_for_joiners=False,
        min_insync_replicas=1 if old or cores == "kip-279" else 2,
        unclean_leader_election_enable=old,
    )
    return list(read_lives(run_with_traces(Config(settings=settings, weather=weather or Weather()), seed).notes))


def test_every_design_that_a_broker_can_have_is_one_of_the_model() -> None:
    assert tuple(DESIGNS) == TRACED_DESIGNS
    for name in TRACED_DESIGNS:
        actions = [action.name for action in traced_design(name).actions]
        assert len(set(actions)) == len(actions)
        assert {"leader_proposes_shrink", "controller_accepts_alter_partition", "leader_adopts_isr"} <= {*actions}


OF_THE_DESIGN = {
    "kraft-3.5": ("leader_answers_diverging", "follower_truncates"),
    "kip-841": ("follower_truncates",),
    "kip-497": ("follower_truncates", "broker_restarts"),
    "kip-320": ("follower_asks_for_epoch_end", "leader_answers_epoch_end", "follower_truncates"),
    "kip-320-first-try": ("follower_truncates",),
    "kip-279": ("follower_asks_for_epoch_end", "leader_answers_epoch_end", "follower_truncates"),
    "kip-101": ("follower_asks_for_epoch_end", "leader_answers_epoch_end", "follower_truncates"),
    "zookeeper": ("becomes_follower", "broker_restarts"),
    "kafka-0.8": ("becomes_follower", "broker_restarts"),
}


SEEDS = {"kip-320": 3, "kip-279": 4, "kip-101": 3}
"""Where the run of the first seed does not take all of these steps."""


@pytest.mark.parametrize("name", sample(OF_THE_DESIGN, 3))
def test_a_run_of_an_older_design_is_one_of_its_model(name: str) -> None:
    done = validate(a_run(name, name, SEEDS.get(name, 0)))
    assert done.rejected is None
    assert done.accepted
    assert done.events > 200
    assert [action for action in OF_THE_DESIGN[name] if not done.steps[action]] == []


@pytest.mark.parametrize("name", ["kip-279", "kafka-0.8"])
def test_a_run_of_an_older_design_is_one_for_who_sees_clients_alone(name: str) -> None:
    assert validate(a_run(name, name, 1), Level.CLIENT).accepted


@pytest.mark.parametrize(
    ("cores", "name", "seed", "action", "differs"),
    [
        ("kraft-3.5", "kip-966", 1, "controller_fences_leader", {"controller_elr"}),
        ("kip-497", "kip-841", 0, "controller_accepts_alter_partition", set[str]()),
        ("kip-320", "kip-497", 0, "becomes_follower", {"truncating"}),
        ("kip-279", "kip-320", 5, "leader_answers_epoch_end", set[str]()),
        ("kip-101", "kip-279", 84, "leader_answers_epoch_end", {"fetch_last_epoch"}),
        ("zookeeper", "kip-101", 0, "becomes_follower", {"end", "truncating"}),
        ("kip-101", "kafka-0.8", 0, "becomes_follower", {"end", "truncating"}),
    ],
)
def test_the_rules_of_another_design_are_rejected(
    cores: str, name: str, seed: int, action: str, differs: set[str]
) -> None:
    rejected = validate(a_run(cores, name, seed)).rejected
    assert rejected is not None
    assert rejected.action == action
    assert set(rejected.differences) == differs


@pytest.mark.parametrize("name", ["kip-903", "kip-841", "kip-320-first-try", "kafka-0.8"])
def test_a_hasty_leader_is_rejected_in_older_designs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(replica: Replica, *_: object) -> Offset:
        return replica.log.end

    monkeypatch.setattr(leaders, "advance_watermark", hasty)
    rejected = validate(a_run(name, name, 0, FAIR)).rejected
    assert rejected is not None
    assert rejected.action.startswith("leader_")
    assert set(rejected.differences) == {"high_watermark"}


def test_a_planted_bug_is_compared_with_todays_model() -> None:
    """The header names the bug, not today's design."""
    rejected = validate(a_run("read-above-watermark", "read-above-watermark", 1, FAIR)).rejected
    assert rejected is not None
    assert rejected.action == "consumer_reads"
    assert "position < old.high_watermark" in rejected.guards[0]


def test_a_design_that_the_model_does_not_have_is_no_trace() -> None:
    life = a_run("kip-966", "kip-966", 0, FAIR)[0]
    header: dict[str, Json] = {**life.header, "settings": {"insync.design": "some-other"}}
    with pytest.raises(BadTrace, match="some-other"):
        validate([attrs.evolve(life, header=header)])
