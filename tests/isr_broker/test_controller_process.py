"""Three controllers and three brokers as processes: the active controller is killed or paused, and then a leader is.

A producer with acks=all goes on, and all that it was told is read afterwards. Without these a cluster could depend on
one controller after all, or a new one could begin without what the last had decided.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.clients import Confluent, Setting, confluent_read, create_topic
from tests.support.quorums import QuorumStatus, quorum_status

from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import controller_numbers
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Processes, UnderControllers, python_module

pytestmark = [pytest.mark.processes, pytest.mark.sockets, pytest.mark.long]

QUICK = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "600",
}
"""Of the voters alone."""
OF_ALL = {
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "100",
    "replica.socket.timeout.ms": "1500",
    "controller.socket.timeout.ms": "1500",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "100",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
PATIENCE = 60.0


def cluster(root: Path, program: Sequence[str]) -> Processes:
    """Three controllers, which this program runs, and three brokers; none is started."""
    ports = free_ports(6)
    controllers = {number: (HOST, port) for number, port in zip(controller_numbers(3), ports[3:], strict=True)}
    return Processes(
        root,
        dict(enumerate(ports[:3], 1)),
        OF_ALL,
        own=dict.fromkeys(controllers, QUICK),
        controllers=controllers,
        controller_program=program,
    )


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    nodes = cluster(tmp_path, python_module("isr_broker.controller"))
    yield nodes
    nodes.kill_all()


def in_time(what: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.05)


def active(nodes: UnderControllers, but: int | None = None) -> QuorumStatus:
    """The active controller, once it is another one than this."""
    found: list[QuorumStatus] = []

    def is_there() -> bool:
        places = {n: place for n, place in nodes.controllers.items() if n in nodes.running and n != but}
        status = quorum_status(places, 1.0)
        found.extend([status] if status is not None else [])
        return status is not None

    in_time(is_there, f"no controller is active but {but}")
    return found[-1]


def leader(nodes: UnderControllers, topic: str) -> int | None:
    """Who leads its partition, as one of the brokers that run has it."""
    broker = next(b for b in nodes.ports if b in nodes.running)
    try:
        with Admin(nodes.found_at(broker), 2.0) as admin:
            (partition,) = admin.partitions([topic])
    except (RequestRefused, ValueError):
        return None
    return partition.leader


def created(nodes: UnderControllers, topic: str) -> bool:
    try:
        create_topic(nodes.bootstrap, topic, 1, 2)
    except Exception as error:  # the client has one kind for all that can be
        return "TOPIC_ALREADY_EXISTS" in str(error)
    return True


class Writes(Protocol):
    """A producer."""

    def goes_on(self, count: int) -> None:
        """So many more are acknowledged."""
        ...


class Traffic:
    """A producer that sends on, with acks=all."""

    def __init__(self, nodes: UnderControllers, settings: dict[str, Setting] | None = None) -> None:
        ordinary: dict[str, Setting] = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
        self.producer = Confluent(nodes.bootstrap, {**ordinary, **(settings or {})})
        self.sent = 0

    def goes_on(self, count: int) -> None:
        """So many more are acknowledged."""
        for _ in range(count):
            self.producer.send("t", b"%06d" % self.sent)
            self.sent += 1
        assert self.producer.producer.flush(PATIENCE) == 0, "nothing is acknowledged any more"
        assert not self.producer.errors

    def lost(self, nodes: UnderControllers) -> set[bytes]:
        """What was acknowledged, and is not read."""
        return set(self.producer.acked) - set(confluent_read(nodes.bootstrap, "t", self.sent))


def begins(nodes: UnderControllers) -> Traffic:
    nodes.start_all()
    in_time(lambda: created(nodes, "t"), "no topic is created")
    traffic = Traffic(nodes)
    traffic.goes_on(50)
    return traffic


def other_leader(nodes: UnderControllers, traffic: Writes) -> None:
    """The leader is killed, so that the controller has to elect another; then it is back."""
    first = leader(nodes, "t")
    assert first is not None
    assert nodes.kill(first)
    in_time(lambda: leader(nodes, "t") not in (None, first), "nobody else is elected")
    traffic.goes_on(50)
    nodes.start(first)


def test_active_controllers_are_killed_one_after_the_other(processes: Processes) -> None:
    traffic, epochs = begins(processes), list[int]()
    for number in range(3):
        status = active(processes)
        epochs.append(status.epoch)
        assert processes.kill(status.leader)
        traffic.goes_on(20)
        after = active(processes, status.leader)
        assert after.epoch > status.epoch
        in_time(lambda: created(processes, f"t{number}"), "no controller creates a topic")  # noqa: B023
        other_leader(processes, traffic)
        processes.start(status.leader)
        traffic.goes_on(20)
    assert epochs == sorted(set(epochs))
    assert not traffic.lost(processes)
    assert {leader(processes, f"t{number}") for number in range(3)} <= {1, 2, 3}, "topics of all controllers are there"
    assert not processes.early_exits()
    assert set(processes.stop_all().values()) == {0}


def test_a_paused_active_controller_is_followed_by_another_and_steps_down(processes: Processes) -> None:
    traffic = begins(processes)
    first = active(processes)
    assert processes.pause(first.leader)
    traffic.goes_on(20)
    second = active(processes, first.leader)
    assert second.epoch > first.epoch
    in_time(lambda: created(processes, "u"), "no controller creates a topic")
    other_leader(processes, traffic)
    processes.resume(first.leader)
    in_time(lambda: active(processes).epoch >= second.epoch, "the one that was paused still thinks that it leads")
    in_time(lambda: created(processes, "v"), "no controller creates a topic")
    traffic.goes_on(20)
    assert not traffic.lost(processes)
    assert not processes.early_exits()


def test_two_of_three_go_on_without_the_third_and_one_alone_decides_nothing(processes: Processes) -> None:
    traffic = begins(processes)
    first = active(processes)
    assert processes.kill(first.leader)
    traffic.goes_on(20)
    second = active(processes, first.leader)
    in_time(lambda: created(processes, "u"), "no controller creates a topic")
    assert processes.kill(second.leader)
    time.sleep(2)
    assert not created(processes, "v"), "a controller without a majority has decided"
    traffic.goes_on(20)
    processes.start(second.leader)
    in_time(lambda: created(processes, "w"), "no controller creates a topic")
    assert not traffic.lost(processes)


BEGINS_ANEW = """
import sys
from isr_broker import voter
from isr_broker.controller import controller_of
from isr_broker.controller_runtime import ControllerRuntime
from isr_broker.core.controller import controller_begins
from isr_broker.core.controller_state import Controller
claims = ControllerRuntime._claims
def begins_anew(self, now):
    claims(self, now)
    self.controller = controller_begins(Controller(settings=self.core_settings, cluster=self.cluster), now)
ControllerRuntime._claims = begins_anew
sys.exit(voter.main(sys.argv[1:], "isr_broker.controller", "", controller_of))
"""


def test_a_controller_that_begins_without_the_log_is_noticed(tmp_path: Path) -> None:
    planted = tmp_path / "begins_anew.py"
    planted.write_text(BEGINS_ANEW)
    nodes = cluster(tmp_path / "data", [sys.executable, str(planted)])
    try:
        begins(nodes)
        assert nodes.kill(active(nodes).leader)
        active(nodes)
        in_time(lambda: bool(set(nodes.early_exits()) & set(nodes.ports)), "no broker ends")
        said = " ".join(line for process in nodes.running.values() for line in process.last)
        assert "put the newest one back" in said or "has lost its metadata.log" in said
    finally:
        nodes.kill_all()
