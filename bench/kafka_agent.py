"""What our agent costs Apache Kafka's brokers: processor time for each write, with it and without.

    python bench/kafka_agent.py [--writes N] [--warm N] [--turns N]

Three brokers and a controller of one release on this machine, one partition on three, acks=all, each write a batch
of its own. JVMs are those of an experiment (`isr_kafka.node.JVM`: the first compiler only), warmed by `--warm` writes;
all kinds take turns. It prints the rows of docs/measurements/kafka-traces.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.kafka import KafkaProcesses, archive
from isr_cluster.ports import HOST, free_ports
from isr_kafka.node import NodeFiles, new_id, node_files

TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(cluster: KafkaProcesses) -> float:
    """Processor seconds of all brokers but the controller's."""
    total = 0
    for broker, process in cluster.running.items():
        if broker != 1:
            fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / TICKS


def writes(bootstrap: str, count: int) -> None:
    """So many acknowledged writes, each a batch."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "batch.num.messages": 1})
    for number in range(count):
        producer.produce("t", str(number).encode(), partition=0)
        producer.poll(0 if number % 20 else 0.05)
    if producer.flush(120):
        raise SystemExit("not every write was acknowledged")


def measure_writes(files: NodeFiles, with_trace: bool, warm: int, count: int) -> tuple[float, float]:
    """Processor milliseconds of the three brokers for one write, and lines of the trace for one."""
    with tempfile.TemporaryDirectory(prefix="insync-agent-") as root:
        *ports, controller = free_ports(5)
        at = (HOST, controller)
        cluster = KafkaProcesses(
            root=Path(root),
            ports=dict(enumerate(ports, 1)),
            cluster=new_id(),
            files=files,
            controller=(at, at),
            traces=Path(root) / "trace" if with_trace else None,
        )
        try:
            cluster.start_all()
            for _ in range(100):
                try:
                    with Admin(cluster.found_at(1), 5.0) as admin:
                        admin.create("t", -1, -1, {"min.insync.replicas": "2"}, [[2, 3, 4]])
                    break
                except RequestRefused:
                    time.sleep(0.2)
            writes(cluster.bootstrap, warm)
            before, began = _lines(Path(root)), processor_time(cluster)
            writes(cluster.bootstrap, count)
            spent = processor_time(cluster) - began
            return 1000 * spent / count, (_lines(Path(root)) - before) / count
        finally:
            cluster.kill_all()


def _lines(root: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in (root / "trace").glob("*.jsonl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=10_000)
    parser.add_argument("--warm", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    kinds: dict[str, tuple[NodeFiles, bool]] = {}
    for name, woven, with_trace in (("without", False, False), ("with, off", True, False), ("with", True, True)):
        kinds[name] = (node_files(noting=True, tracing=woven), with_trace)
        archive(kinds[name][0])
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(options.turns):
        for name, (files, with_trace) in kinds.items():
            found[name].append(measure_writes(files, with_trace, options.warm, options.writes))
    for name, rows in found.items():
        spent = [cost for cost, _ in rows]
        spread = f"{min(spent):.2f} to {max(spent):.2f}"
        print(f"| {name} | {median(spent):.2f} | {spread} | {median(lines for _, lines in rows):.1f} |")


if __name__ == "__main__":
    main()
