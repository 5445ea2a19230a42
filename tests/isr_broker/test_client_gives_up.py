"""An idempotent producer that gave a record up sends others again, and no broker can know that they come twice.

Without this, a value that is there twice would look like a bug of the broker, although librdkafka has sent it twice.
"""

from __future__ import annotations

import time
from pathlib import Path

import attrs
import pytest
from tests.support.clients import Confluent, confluent_read
from tests.support.clusters import QUICK, three_processes
from tests.support.faults import TOPIC, partition, ready

pytestmark = [pytest.mark.processes, pytest.mark.sockets]

NOBODY_LEAVES = attrs.evolve(QUICK, broker_session_timeout_ms=60_000, replica_lag_time_max_ms=60_000)
IMPATIENT = {"message.timeout.ms": 8_000, "request.timeout.ms": 1_000, "socket.timeout.ms": 1_000}


def test_who_gives_a_record_up_sends_the_next_one_again_with_a_higher_epoch(tmp_path: Path) -> None:
    processes = three_processes(tmp_path, NOBODY_LEAVES)
    try:
        processes.start_all()
        ready(processes)
        known = partition(processes)
        assert known is not None
        followers = [broker for broker in known.isr if broker != known.leader]
        producer = Confluent(processes.bootstrap, {"enable.idempotence": True, **IMPATIENT})
        producer.send_all(TOPIC, [b"before"])
        for broker in followers:  # the leader appends, and cannot acknowledge
            processes.pause(broker)
        began = time.monotonic()
        producer.send(TOPIC, b"given up")
        while time.monotonic() < began + 5:
            producer.producer.poll(0.05)
        producer.send(TOPIC, b"acknowledged once")
        while not producer.errors:
            producer.producer.poll(0.05)
            assert time.monotonic() < began + 30
        for broker in followers:
            processes.resume(broker)
        assert producer.producer.flush(30) == 0
        assert producer.acked == [b"before", b"acknowledged once"]
        found = confluent_read(processes.bootstrap, TOPIC, 4)
        assert found == [b"before", b"given up", b"acknowledged once", b"acknowledged once"]
    finally:
        processes.kill_all()
