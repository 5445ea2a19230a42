"""Unmodified brokers of Apache Kafka under three controllers of ours, alone and beside brokers of ours, through faults.

Without these a controller, or a broker, could be one for its own kind only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import pytest
from tests.isr_broker.test_controller_process import Traffic, active, created, in_time, leader
from tests.support.clients import confluent_group, confluent_transaction
from tests.support.quorums import kafka_files, quorum_status

from isr_broker.wire import protocol
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import controller_numbers
from isr_cluster.kafka import KafkaProcesses
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Mishap, Processes
from isr_kafka.node import QUIETLY

pytestmark = [pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]

SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}
ALL: Final = (1, 2, 3)
Fault = Callable[["Mix"], None]


@attrs.define(kw_only=True)
class Mix(KafkaProcesses):
    """Three brokers, of which `brokers_of_ours` are, and a producer that goes on."""

    brokers_of_ours: frozenset[int] = frozenset()
    traffic: Traffic = attrs.field(init=False)

    def command(self, broker: int) -> list[str]:
        """A broker of ours listens at one port, as Kafka's do."""
        if broker not in self.brokers_of_ours:
            return KafkaProcesses.command(self, broker)
        ours = Processes(self.root, self.ports, self.properties, self.cluster, controllers=self.controllers)
        return ours.command(broker)

    def serves(self, broker: int) -> bool:
        """A broker of ours says that it listens."""
        if broker in self.brokers_of_ours:
            return self.running[broker].listens
        return KafkaProcesses.serves(self, broker)

    def back(self, *nodes: int) -> None:
        """They are started again, and serve."""
        for node in nodes:
            self.start(node)
        for node in nodes:
            self.awaits(node)

    def leads(self) -> int:
        """Who leads the partition."""
        in_time(lambda: leader(self, "t") is not None, "nobody leads")
        found = leader(self, "t")
        assert found is not None
        return found

    def follows(self) -> int:
        """Somebody who does not."""
        return next(broker for broker in ALL if broker != self.leads())

    def in_sync(self, broker: int = 2) -> set[int]:
        """Who is in sync, as a broker says."""
        try:
            with Admin(self.found_at(broker), 5.0) as admin:
                (partition,) = admin.partitions(["t"])
        except (RequestRefused, ValueError):
            return set()
        return set(partition.isr)

    def asks(self, key: int, version: int, fields: Mapping[str, object]) -> protocol.Fields:
        """What the third broker answers an admin."""
        with Admin(self.found_at(3), 20.0) as admin:
            return admin.ask(key, version, fields)


def mix_of(root: Path, release: str, ours: frozenset[int], program: list[str] | None = None) -> Mix:
    ports = free_ports(6)
    mix = Mix(
        root=root,
        ports=dict(zip(ALL, ports[:3], strict=True)),
        properties=SETTINGS,
        files=kafka_files(release),
        controller=((HOST, 0), (HOST, 0)),
        controllers={number: (HOST, port) for number, port in zip(controller_numbers(3), ports[3:], strict=True)},
        options=QUIETLY,
        brokers_of_ours=ours,
    )
    if program is not None:
        mix.controller_program = program
    return mix


# Faults. After each the partition has its three replicas in sync again


def leader_is_killed(mix: Mix) -> None:
    killed = mix.leads()
    assert mix.kill(killed)
    in_time(lambda: leader(mix, "t") not in (None, killed), "nobody else is elected")
    mix.traffic.goes_on(20)
    mix.back(killed)


def follower_is_killed(mix: Mix) -> None:
    killed = mix.follows()
    assert mix.kill(killed)
    mix.traffic.goes_on(20)
    mix.back(killed)


def leader_stands_still(mix: Mix) -> None:
    still = mix.leads()
    assert mix.pause(still)
    mix.traffic.goes_on(20)
    mix.resume(still)


def follower_stands_still(mix: Mix) -> None:
    still = mix.follows()
    assert mix.pause(still)
    mix.traffic.goes_on(20)
    mix.resume(still)


def leader_stops_in_order(mix: Mix) -> None:
    stopped = mix.leads()
    assert mix.stop(stopped) == 0
    mix.traffic.goes_on(20)
    mix.back(stopped)


def active_controller_is_killed(mix: Mix) -> None:
    status = active(mix)
    assert mix.kill(status.leader)
    mix.traffic.goes_on(20)
    after = active(mix, status.leader)
    assert after.epoch > status.epoch
    in_time(lambda: created(mix, f"killed{after.epoch}"), "no controller creates a topic")
    mix.back(status.leader)


def active_controller_stands_still(mix: Mix) -> None:
    status = active(mix)
    assert mix.pause(status.leader)
    after = active(mix, status.leader)
    assert after.epoch > status.epoch
    mix.traffic.goes_on(20)
    in_time(lambda: created(mix, f"still{after.epoch}"), "no controller creates a topic")
    mix.resume(status.leader)
    in_time(lambda: active(mix).epoch >= after.epoch, "the one that stood still thinks that it leads")


def all_brokers_are_killed(mix: Mix) -> None:
    for broker in ALL:
        assert mix.kill(broker)
    mix.back(*ALL)


def all_controllers_are_killed(mix: Mix) -> None:
    for controller in mix.controllers:
        assert mix.kill(controller)
    mix.traffic.goes_on(20)
    mix.back(*mix.controllers)


def leader_is_chosen_by_an_admin(mix: Mix) -> None:
    """The preferred one, which each of the three is in turn."""
    for first in ALL:
        replicas = (first, *(broker for broker in ALL if broker != first))
        reassigns(mix, replicas)
        rows = {"election_type": 0, "topic_partitions": [{"topic": "t", "partitions": [0]}], "timeout": 10_000}
        mix.asks(protocol.ELECT_LEADERS, 2, rows)
        in_time(lambda: leader(mix, "t") == first, "the preferred leader does not lead")  # noqa: B023
        mix.traffic.goes_on(20)


def replica_is_taken_away_and_added(mix: Mix) -> None:
    taken = mix.follows()
    left = tuple(broker for broker in ALL if broker != taken)
    reassigns(mix, left)
    in_time(lambda: mix.in_sync() == set(left), "it is a replica still")
    mix.traffic.goes_on(20)
    reassigns(mix, ALL)


def reassigns(mix: Mix, replicas: tuple[int, ...]) -> None:
    partition = {"partition_index": 0, "replicas": replicas}
    fields = {"timeout": 10_000, "topics": [{"name": "t", "partitions": [partition]}]}
    answer = mix.asks(protocol.ALTER_PARTITION_REASSIGNMENTS, 0, fields)
    assert answer.number("error_code", 0) == 0
    assert [p.number("error_code") for topic in answer.all("responses") for p in topic.all("partitions")] == [0]


FAULTS: Final[tuple[Fault, ...]] = (
    leader_is_killed,
    follower_is_killed,
    leader_stands_still,
    follower_stands_still,
    leader_stops_in_order,
    active_controller_is_killed,
    active_controller_stands_still,
    all_brokers_are_killed,
    all_controllers_are_killed,
    leader_is_chosen_by_an_admin,
    replica_is_taken_away_and_added,
)


@pytest.fixture(
    params=[("4.4.0", ()), ("4.0.1", ()), ("4.4.0", (1,)), ("4.4.0", (1, 2))], ids=lambda mix: f"{mix[0]}, {mix[1]}"
)
def mix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mix]:
    release, ours = request.param
    nodes = mix_of(tmp_path, release, frozenset(ours))
    yield nodes
    nodes.kill_all()


def test_nothing_acknowledged_is_lost_through_faults(mix: Mix) -> None:
    mix.start_all()
    in_time(lambda: created(mix, "t"), "no topic is created")
    mix.traffic = Traffic(mix, {"socket.timeout.ms": 5_000, "request.timeout.ms": 4_000})
    mix.traffic.goes_on(50)
    for fault in FAULTS:
        began = time.monotonic()
        fault(mix)
        in_time(lambda: mix.in_sync() == set(ALL), f"not all are in sync again: {fault.__name__}")
        mix.traffic.goes_on(20)
        print(f"{fault.__name__}: {time.monotonic() - began:.1f} s, {mix.traffic.sent} sent")
    assert not mix.traffic.lost(mix)
    if not mix.brokers_of_ours:
        assert confluent_transaction(mix.bootstrap, "t", [b"one", b"two"]) == [b"one", b"two"]
        expected = [*mix.traffic.producer.acked, b"one", b"two"]
        assert set(confluent_group(mix.bootstrap, "g", "t", len(expected))) == set(expected)
    assert not mix.early_exits()
    assert set(mix.stop_all().values()) == {0}


FEATURELESS = """
import sys
from isr_broker import controller_runtime, voter
from isr_broker.controller import controller_of
controller_runtime.feature_records = lambda image, design: []
sys.exit(voter.main(sys.argv[1:], "isr_broker.controller", "", controller_of))
"""


def test_without_levels_of_features_in_the_log_no_broker_of_kafka_serves(tmp_path: Path) -> None:
    planted = tmp_path / "featureless.py"
    planted.write_text(FEATURELESS)
    nodes = mix_of(tmp_path / "data", "4.4.0", frozenset(), [sys.executable, str(planted)])
    try:
        with pytest.raises(Mishap, match="does not listen"):
            nodes.start_all()
        assert quorum_status(nodes.controllers) is not None
    finally:
        nodes.kill_all()
