"""Brokers as processes of their own: killed with SIGKILL at any moment, stopped with SIGTERM, and started again.

Without these, a write could be acknowledged while it is still in the process's memory: tests whose brokers end in order
would never lose it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from tests.support.clients import Confluent, confluent_read, create_topic
from tests.support.clusters import QUICK, Cluster, three_processes
from tests.support.leaks import leaks

from isr_broker.settings import Settings
from isr_broker.storage.disk_files import InUse, RealDisk, open_data_directory
from isr_broker.storage.log import Log
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.ports import HOST
from isr_cluster.processes import Processes

pytestmark = [pytest.mark.processes, pytest.mark.sockets]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    brokers = three_processes(tmp_path)
    brokers.start_all()
    yield brokers
    brokers.kill_all()


def eventually(what: Callable[[], None]) -> None:
    """A cluster that has just started may not have all of its brokers yet."""
    end = time.monotonic() + 60
    while True:
        try:
            what()
            return
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_killed_brokers_lose_no_acknowledged_write(processes: Processes) -> None:
    eventually(lambda: create_topic(processes.bootstrap, "t", 1, 2))
    producer = Confluent(processes.bootstrap, {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
    sent = 0
    for victim in (2, 3, 1):
        for _ in range(120):
            producer.send("t", b"%06d" % sent)
            producer.producer.poll(0.001)
            sent += 1
        processes.stop(victim, signal.SIGKILL)
        for _ in range(30):
            producer.send("t", b"%06d" % sent)
            sent += 1
        processes.start(victim)
    assert producer.producer.flush(90) == 0
    assert producer.acked == [b"%06d" % n for n in range(sent)]
    assert confluent_read(processes.bootstrap, "t", sent) == producer.acked
    assert processes.stop(3, signal.SIGTERM) == 0
    assert processes.stop(2, signal.SIGTERM) == 0
    assert (processes.root / "3" / ".kafka_cleanshutdown").exists()
    log = Log.open(RealDisk(processes.root / "2"), "t-0", Settings())
    assert log.view.end == sent


def test_what_a_broker_holds_for_clients_is_told_and_found(processes: Processes) -> None:
    """Without this the assertion at the end of every test with processes could be one that never fails."""
    eventually(lambda: create_topic(processes.bootstrap, "t", 1, 2))
    Confluent(processes.bootstrap, {"acks": "all"}).send_all("t", [b"x"])
    rows = [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1_000}]
    waits: Answer = {"max_wait": 5_000, "min_bytes": 1, "topics": [{"topic": "t", "partitions": rows}]}
    frame = protocol.ask(protocol.FETCH, 4, 1, "test", {"replica_id": -1, "max_bytes": 10**6, **waits})
    with contextlib.ExitStack() as connections:
        for port in processes.ports.values():
            connections.enter_context(socket.create_connection((HOST, port))).sendall(frame)
        time.sleep(1)
        (line,) = leaks(processes, 0.5)
        assert "holds 1 requests, " in line, "of the leader; the others have answered"
    assert leaks(processes) == []


def test_a_broker_serves_nobody_before_it_has_a_session() -> None:
    # A session that ends while the machine is busy would be a true answer, and another one.
    cluster = Cluster(2, attrs.evolve(QUICK, broker_session_timeout_ms=60_000))
    cluster.thread.start()
    try:
        cluster.start(2)
        address = (HOST, cluster.ports[2])
        with pytest.raises(RequestRefused, match="timed out"):
            Admin(address, 0.7)
        cluster.start(1)
        with Admin(address, 30) as admin:
            assert 2 in admin.brokers(), "or a client would take all brokers for gone"
    finally:
        cluster.__exit__(None, None, None)


def test_brokers_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    program = "\n".join(
        (
            "import sys, time, pathlib",
            "from tests.support.clusters import three_processes",
            f"processes = three_processes(pathlib.Path({str(tmp_path)!r}))",
            "processes.start(1)",
            "print(processes.running[1].process.pid, flush=True)",
            "time.sleep(60)",
        )
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=here())
    assert starter.stdout is not None
    broker = int(starter.stdout.readline())
    os.kill(broker, 0)
    starter.kill()
    starter.wait(30)
    end = time.monotonic() + 30
    while Path(f"/proc/{broker}").exists() and "Z" not in Path(f"/proc/{broker}/stat").read_text().split()[2]:
        assert time.monotonic() < end, "it runs on, left alone"
        time.sleep(0.05)
    starter.stdout.close()


def here() -> dict[str, str]:
    """The environment in which a process of Python finds what this one finds."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_a_data_directory_has_one_user(tmp_path: Path) -> None:
    open_data_directory(str(tmp_path))
    with pytest.raises(InUse, match="is in use"):
        open_data_directory(str(tmp_path))


@pytest.mark.parametrize("bad", [["min.isr=2"], ["min.insync.replicas"], ["unclean.leader.election.enable=perhaps"]])
def test_bad_settings_are_wrong_usage(bad: list[str]) -> None:
    command = [sys.executable, "-m", "isr_broker", "--id", "1", "--port", "1", "--data", "d", "--controller", "h:1"]
    ended = subprocess.run([*command, *bad], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert "error:" in ended.stderr
