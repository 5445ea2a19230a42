"""What partitions cost on which nothing happens: of three brokers' processors, ours and Apache Kafka's measured alike.

    python bench/idle.py [--kafka RELEASE] [--partitions N] [--settle SECONDS] [--seconds SECONDS] [--times N]

Three processes with default settings, one topic whose partitions have three replicas each, and no client. The first
broker has the controller, too. A JVM has to settle: until then it compiles what it runs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.broker import processor_seconds
from confluent_kafka.admin import AdminClient
from tests.support.clients import create_topic

from isr_cluster.kafka import KafkaProcesses
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Processes, System
from isr_kafka.node import new_id, node_files

SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2"}


def cluster(
    root: Path, kafka: str | None, more: Mapping[str, str] | None = None, options: Sequence[str] = ()
) -> System:
    """Three brokers with default settings; with Kafka `more` settings of its nodes, and `options` of their JVMs."""
    *ports, controller = free_ports(4)
    by_broker = dict(enumerate(ports, 1))
    if kafka is None:
        return Processes(root, by_broker, SETTINGS)
    at, settings = (HOST, controller), {**SETTINGS, **(more or {})}
    files = node_files(kafka)
    return KafkaProcesses(root, by_broker, settings, new_id(), files=files, controller=(at, at), options=options)


def in_sync(admin: AdminClient, name: str, partitions: int) -> None:
    """Wait until every replica is in sync."""
    while True:
        topic = admin.list_topics(timeout=60).topics.get(name)
        if topic and sum(len(p.isrs) == 3 and p.leader > 0 for p in topic.partitions.values()) == partitions:
            return
        time.sleep(0.2)


def processor_shares(brokers: System, seconds: float) -> list[float]:
    """The share of a processor that each broker takes."""
    before = {b: processor_seconds(p.process.pid) for b, p in brokers.running.items()}
    time.sleep(seconds)
    return [(processor_seconds(p.process.pid) - before[b]) / seconds for b, p in brokers.running.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", help="a release of Apache Kafka, in place of our broker")
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--settle", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp())
    brokers = cluster(root, options.kafka)
    try:
        brokers.start_all()
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        while len(admin.list_topics(timeout=60).brokers) < 3:
            time.sleep(0.1)
        create_topic(brokers.bootstrap, "idle", options.partitions, 2)
        in_sync(admin, "idle", options.partitions)
        del admin
        time.sleep(options.settle)
        for _ in range(options.times):
            shares = ", ".join(f"{share:.1%}" for share in processor_shares(brokers, options.seconds))
            print(f"{options.kafka or 'ours'}: {options.partitions} idle partitions, of a processor: {shares}")
    finally:
        brokers.kill_all()
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
