"""Our broker and Apache Kafka side by side: the same clients and the same questions, in turns on one machine.

    python bench/systems.py [--kafka RELEASE] [--warm SECONDS] [--turns N] [--records N] [--writes N] [--partitions N]

In each turn three processes of one system with default settings, Kafka's with the options of its own start script, are
written to and read for `--warm` seconds, so that a JVM has compiled what it runs; then come the measurements, each on a
topic of its own with three replicas and records of 100 bytes; then the other system's turn. A figure is the median of
the turns, and a ratio is Kafka's figure by ours.

Clients and brokers share the machine. What others took of it meanwhile is said; where that is over a
tenth nothing is to be published.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.broker import latencies, processor_seconds, produced, written_after
from bench.idle import cluster, in_sync, processor_shares
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from isr_cluster.admin import Admin
from isr_cluster.processes import System
from isr_kafka.node import QUIETLY

SETTINGS = {"log.cleaner.dedupe.buffer.size": "134217728", "num.io.threads": "8", "num.network.threads": "3"}
"""Kafka's defaults, where nodes that are started here have less."""
OPTIONS = (
    *("-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-XX:TieredStopAtLevel=4", "-Xms1G", "-Xmx1G"),
    *QUIETLY,
)
"""Those of kafka-server-start.sh and kafka-run-class.sh, over those of quick nodes (`isr_kafka.node.JVM`)."""
ACKS = ("0", "1", "all")
SETTLES = 10.0
"""Seconds between a topic of many partitions and the measurement of an idle cluster."""

Row = tuple[str, str]
"""What is measured, and its unit."""


def busy() -> float:
    """Processor seconds of the whole machine so far, of all that is not idle."""
    fields = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def resident(brokers: System) -> float:
    """MiB of memory that one broker has, on average (RSS)."""
    told = [Path(f"/proc/{p.process.pid}/status").read_text() for p in brokers.running.values()]
    sizes = [int(line.split()[1]) for text in told for line in text.splitlines() if line.startswith("VmRSS")]
    return statistics.mean(sizes) / 1024


def all_used(brokers: System) -> float:
    """Processor seconds of all brokers so far."""
    return sum(processor_seconds(p.process.pid) for p in brokers.running.values())


def read(bootstrap: str, topic: str, count: int) -> float:
    """Records a second, from the beginning."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    began, found = time.perf_counter(), 0
    while found < count:
        found += sum(message.error() is None for message in consumer.consume(5_000, 1.0))
    seconds = time.perf_counter() - began
    consumer.close()
    return count / seconds


class Measurement:
    """One system in one turn: its three brokers, and what was measured of them."""

    def __init__(self, brokers: System, options: argparse.Namespace) -> None:
        self.brokers, self.options = brokers, options
        self.admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        self.rows: dict[Row, float] = {}

    def create(self, topic: str, partitions: int = 1, leader: int = 2) -> None:
        """A topic with three replicas; one partition is led by the broker that is named."""
        order = [leader, *(b for b in self.brokers.ports if b != leader)]
        number, where = (-1, [order]) if partitions == 1 else (partitions, None)
        with Admin(self.brokers.found_at(1), 120.0) as admin:
            admin.create(topic, number, -1 if where else 3, {"min.insync.replicas": "2"}, where)
        in_sync(self.admin, topic, partitions)

    def warm(self) -> None:
        """Write and read for so many seconds, of everything that is measured, and not so fast that the disk fills."""
        bootstrap, until, turn = self.brokers.bootstrap, time.monotonic() + self.options.warm, 0
        self.create("warm")
        while time.monotonic() < until:
            acks = ACKS[turn % 3]
            produced(bootstrap, "warm", 20_000, 100, acks, 5)
            latencies(bootstrap, "warm", 300, acks)
            read(bootstrap, "warm", 20_000)
            turn += 1

    def spending(self, what: str, unit: str, count: int, scale: float, does: Callable[[], object]) -> None:
        """Do it, and note what the brokers' processors spent for one of so many."""
        before = all_used(self.brokers)
        does()
        self.rows[what, unit] = scale * (all_used(self.brokers) - before) / count

    def writes_and_reads(self) -> None:
        """Batches, one write after another, and reads."""
        bootstrap, records, writes = self.brokers.bootstrap, self.options.records, self.options.writes
        for acks in ACKS:
            topic, name = f"t-{acks}", f"acks={acks}"
            self.create(topic)

            def batches(topic: str = topic, acks: str = acks, name: str = name) -> None:
                speed = produced(bootstrap, topic, records, 100, acks, 5)
                self.rows[f"write batches, {name}", "records/s"] = speed

            def singles(topic: str = topic, acks: str = acks, name: str = name) -> None:
                cuts = statistics.quantiles(latencies(bootstrap, topic, writes, acks), n=100)
                self.rows[f"one write, {name}, p50", "ms"] = 1e3 * cuts[49]
                self.rows[f"one write, {name}, p99", "ms"] = 1e3 * cuts[98]

            def reads(topic: str = topic) -> None:
                self.rows["read", "records/s"] = read(bootstrap, topic, records)

            self.spending(f"write batches, {name}, processor", "us/record", records, 1e6, batches)
            self.spending(f"one write, {name}, processor", "ms", writes, 1e3, singles)
            if acks == "all":
                self.spending("read, processor", "us/record", records, 1e6, reads)

    def one_failover(self) -> None:
        """The leader of one partition is killed."""
        self.create("one", leader=3)
        written_after(self.brokers.bootstrap, "one", [0], time.perf_counter())
        began = time.perf_counter()
        self.brokers.kill(3)
        self.rows["fail-over of 1 partition", "s"] = written_after(self.brokers.bootstrap, "one", [0], began)[0]
        self.brokers.start(3)
        in_sync(self.admin, "one", 1)

    def many(self) -> None:
        """Many partitions: memory, idle, and a broker that leads some of them is killed."""
        partitions, bootstrap = self.options.partitions, self.brokers.bootstrap
        self.create("many", partitions)
        written_after(bootstrap, "many", list(range(partitions)), time.perf_counter())
        time.sleep(SETTLES)
        shares = processor_shares(self.brokers, 20)
        self.rows[f"idle with {partitions:,} partitions, a broker", "% of a core"] = 100 * statistics.mean(shares)
        self.rows[f"memory with {partitions:,} partitions, a broker", "MiB"] = resident(self.brokers)
        topic = self.admin.list_topics(timeout=60).topics["many"]
        count = min(300, 3 * partitions // 10)
        led = [n for n, p in topic.partitions.items() if p.leader == 3][:count]
        began = time.perf_counter()
        self.brokers.kill(3)
        took = written_after(bootstrap, "many", led, began)
        for name, value in (("first", took[0]), ("median", statistics.median(took)), ("last", took[-1])):
            self.rows[f"fail-over of {count} partitions, {name}", "s"] = value

    def all(self) -> dict[Row, float]:
        """Everything; what others took of the machine is without the brokers and this process."""
        self.rows["memory after its start, a broker", "MiB"] = resident(self.brokers)
        self.warm()
        began, machine, ours = time.perf_counter(), busy(), time.process_time() + all_used(self.brokers)
        self.writes_and_reads()
        self.rows["memory after these writes, a broker", "MiB"] = resident(self.brokers)
        others = busy() - machine - (time.process_time() + all_used(self.brokers) - ours)
        cores = (os.cpu_count() or 1) * (time.perf_counter() - began)
        self.rows["others on the machine during the writes and reads", "% of it"] = max(0.0, 100 * others / cores)
        self.one_failover()
        self.many()
        return self.rows


@contextmanager
def started(kafka: str | None) -> Generator[System]:
    """Three brokers that serve; they and their data are gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="insync-systems-"))
    brokers = cluster(root, kafka, SETTINGS, OPTIONS)
    try:
        brokers.start_all()
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        while len(admin.list_topics(timeout=60).brokers) < 3:
            time.sleep(0.1)
        yield brokers
    finally:
        brokers.kill_all()
        shutil.rmtree(root)


def table(kafka: str, turns: dict[str | None, list[dict[Row, float]]]) -> str:
    """Markdown, a row for each measurement, in the order in which they were made."""
    lines = [f"| | unit | ours | Apache Kafka {kafka} | ratio |", "|---|---|---|---|---|"]
    for what, unit in turns[None][0]:
        mine, theirs = (statistics.median(turn[what, unit] for turn in turns[system]) for system in (None, kafka))
        ratio = f"{theirs / mine:.2f}" if mine and "others" not in what else ""
        lines.append(f"| {what} | {unit} | {_number(mine)} | {_number(theirs)} | {ratio} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.4.0", help="the release")
    parser.add_argument("--warm", type=float, default=180.0, help="seconds; a JVM goes on compiling for minutes")
    parser.add_argument("--turns", type=int, default=2, help="of each system")
    parser.add_argument("--records", type=int, default=200_000, help="of each measurement in batches")
    parser.add_argument("--writes", type=int, default=1_000, help="one after another, of each acks")
    parser.add_argument("--partitions", type=int, default=1_000)
    options = parser.parse_args()
    turns: dict[str | None, list[dict[Row, float]]] = {None: [], options.kafka: []}
    load = os.getloadavg()[0]
    for turn in range(options.turns):
        for system in turns:
            with started(system) as brokers:
                turns[system].append(Measurement(brokers, options).all())
            print(f"turn {turn + 1} of {system or 'ours'} is done", file=sys.stderr)
    print(table(options.kafka, turns))
    print(f"\n{options.turns} turns of each, warmed for {options.warm:.0f} s; {os.cpu_count()} cores;", end=" ")
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {time.strftime('%d %B %Y')}")


if __name__ == "__main__":
    main()
