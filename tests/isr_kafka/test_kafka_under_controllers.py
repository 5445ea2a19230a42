"""Unmodified brokers of Apache Kafka under three controllers of ours: each is killed, and nothing acknowledged is lost.

Without these a controller could be one for brokers of its own kind only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.isr_broker.test_controller_process import Traffic, active, created, in_time, leader
from tests.support.quorums import kafka_files

from isr_cluster.admin import Admin
from isr_cluster.identity import controller_numbers
from isr_cluster.kafka import KafkaProcesses
from isr_cluster.ports import HOST, free_ports
from isr_kafka.node import QUIETLY

pytestmark = [pytest.mark.kafka, pytest.mark.processes, pytest.mark.sockets, pytest.mark.slow]

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "controller.quorum.election.timeout.ms": "1000",
}


@pytest.fixture(params=["4.4.0", "4.0.1"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaProcesses]:
    ports = free_ports(6)
    controllers = {number: (HOST, port) for number, port in zip(controller_numbers(3), ports[3:], strict=True)}
    cluster = KafkaProcesses(
        tmp_path,
        dict(enumerate(ports[:3], 1)),
        SETTINGS,
        files=kafka_files(request.param),
        controller=((HOST, 0), (HOST, 0)),
        controllers=controllers,
        options=QUIETLY,
    )
    yield cluster
    cluster.kill_all()


def in_sync(nodes: KafkaProcesses) -> set[int]:
    broker = next(b for b in nodes.ports if b in nodes.running)
    with Admin(nodes.found_at(broker), 5.0) as admin:
        (partition,) = admin.partitions(["t"])
    return set(partition.isr)


def test_nothing_acknowledged_is_lost_while_brokers_and_controllers_are_killed(nodes: KafkaProcesses) -> None:
    nodes.start_all()
    in_time(lambda: created(nodes, "t"), "no topic is created")
    traffic = Traffic(nodes)
    traffic.goes_on(50)
    for _ in range(2):
        first = leader(nodes, "t")
        assert first is not None
        assert nodes.kill(first)
        in_time(lambda: leader(nodes, "t") not in (None, first), "nobody else is elected")  # noqa: B023
        traffic.goes_on(50)
        nodes.start(first)
        nodes.awaits(first)
        in_time(lambda: in_sync(nodes) == {1, 2, 3}, "it does not come back into the in-sync set")
        status = active(nodes)
        assert nodes.kill(status.leader)
        traffic.goes_on(20)
        after = active(nodes, status.leader)
        assert after.epoch > status.epoch
        in_time(lambda: created(nodes, f"t{after.epoch}"), "no controller creates a topic")  # noqa: B023
        nodes.start(status.leader)
        traffic.goes_on(20)
    assert nodes.stop(2) == 0
    traffic.goes_on(20)
    nodes.start(2)
    nodes.awaits(2)
    in_time(lambda: in_sync(nodes) == {1, 2, 3}, "it does not come back after it has stopped in order")
    assert not traffic.lost(nodes)
    assert not nodes.early_exits()
    assert set(nodes.stop_all().values()) == {0}
