"""The broker's speed: produce and consume by batch size and acks, latency of acks=all, fail-over of many partitions.

    python bench/broker.py [--records N] [--partitions N] [--commits N] [--data FOLDER]

First three brokers in one process and on one loop, disks in memory, librdkafka as client: figures of the broker's code
and of the protocol, not of disks or of a network. Then a new coordinator of groups reads a log of so many commits. Then
three processes with files in a folder, and many partitions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import confluent_kafka
from confluent_kafka.admin import AdminClient
from tests.support.clients import Confluent, confluent_read, create_topic
from tests.support.clusters import Cluster, three_processes

from isr_broker.core.effects import Slice
from isr_broker.core.messages import BrokerMetadata, PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import stamped
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.log import Log
from isr_broker.storage.metadata_log import NAME, records_in
from isr_broker.storage.offsets_topic import TOPIC, Committed, batch_of, learn
from isr_broker.wire.committed_offsets import PIECE_BYTES


def produced(bootstrap: str, topic: str, count: int, size: int, acks: str, linger: int) -> float:
    """Records a second."""
    producer = Confluent(bootstrap, {"acks": acks, "linger.ms": linger, "queue.buffering.max.messages": 10**6})
    value, began = b"x" * size, time.perf_counter()
    for number in range(count):
        producer.producer.produce(topic, value, partition=0)
        if number % 1_000 == 0:
            producer.producer.poll(0)
    assert producer.producer.flush(60) == 0
    return count / (time.perf_counter() - began)


def latencies(bootstrap: str, topic: str, count: int, acks: str = "all") -> list[float]:
    """Seconds of each of so many writes, one after the other."""
    producer, durations = Confluent(bootstrap, {"acks": acks, "linger.ms": 0}), list[float]()
    for _ in range(count):
        began = time.perf_counter()
        producer.send(topic, b"x" * 100)
        assert producer.producer.flush(10) == 0
        durations.append(time.perf_counter() - began)
    return durations


def processor_seconds(pid: int) -> float:
    """What a process has used of a processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def written_after(bootstrap: str, topic: str, partitions: list[int], began: float) -> list[float]:
    """When one record to each of the partitions was acknowledged by all in sync, in seconds since `began`."""
    impatient = {"topic.metadata.refresh.fast.interval.ms": 50, "retry.backoff.ms": 50, "message.timeout.ms": 120_000}
    impatient |= {"retry.backoff.max.ms": 100, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100}
    producer, times = (
        confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all", **impatient}),
        list[float](),
    )

    def note_delivery(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        times.append(time.perf_counter() - began)

    for partition in partitions:
        producer.produce(topic, b"x" * 100, partition=partition, on_delivery=note_delivery)
    assert producer.flush(120) == 0
    return sorted(times)


def changes_without(root: Path, broker: int) -> tuple[int, int]:
    """In how many changes of the metadata how many partitions lost a leader, after that broker's session had ended."""
    records, _ = records_in(RealDisk(root / "1").open(NAME))
    fenced = max(n for n, r in enumerate(records) if isinstance(r, BrokerMetadata) and r.broker == broker and r.fenced)
    led = {r.partition: r.leader for r in records[:fenced] if isinstance(r, PartitionMetadata)}
    leader_losses = [
        n
        for n, r in enumerate(records)
        if n > fenced and isinstance(r, PartitionMetadata) and led[r.partition] == broker != r.leader
    ]
    following = [n for n, r in enumerate(records) if n > fenced and not isinstance(r, PartitionMetadata)]
    return len({sum(at < n for at in following) for n in leader_losses}), len(leader_losses)


def many(partitions: int, folder: str | None) -> None:
    """A topic of many partitions on three processes with Kafka's default settings, idle, and without a leader."""
    root = Path(tempfile.mkdtemp(dir=folder))
    defaults = Settings.from_properties({"min.insync.replicas": "2", "default.replication.factor": "3"})
    brokers = three_processes(root, defaults)
    try:
        brokers.start_all()
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        while len(admin.list_topics(timeout=30).brokers) < 3:
            time.sleep(0.1)
        began = time.perf_counter()
        create_topic(brokers.bootstrap, "many", partitions, 2)
        while True:
            topic = admin.list_topics(timeout=30).topics.get("many")
            if topic and sum(len(p.isrs) == 3 and p.leader > 0 for p in topic.partitions.values()) == partitions:
                break
            time.sleep(0.05)
        listed = time.perf_counter() - began
        wrote = written_after(brokers.bootstrap, "many", list(range(partitions)), began)[-1]
        print(f"{partitions} partitions, three replicas each, three processes, data in {folder or 'the disk'}")
        print(f"  created and in sync after {listed:.2f} s, each written to with acks=all after {wrote:.2f} s")
        time.sleep(3)
        before = {b: processor_seconds(p.process.pid) for b, p in brokers.running.items()}
        time.sleep(10)
        used = [(processor_seconds(p.process.pid) - before[b]) / 10 for b, p in brokers.running.items()]
        share = ", ".join(f"{u:.0%}" for u in used)
        print(f"  idle: {share} of a processor, {1e6 * sum(used) / 3 / partitions:.0f} us per replica and second")
        lost = [n for n, p in admin.list_topics(timeout=30).topics["many"].partitions.items() if p.leader == 3]
        began = time.perf_counter()
        brokers.kill(3)
        took = written_after(brokers.bootstrap, "many", lost, began)
        changes, moved = changes_without(root, 3)
        print(f"  a leader killed: {moved} partitions moved in {changes} change of the metadata; unavailable for")
        print(f"  {took[0]:.2f} s (first), {statistics.median(took):.2f} s (median), {took[-1]:.2f} s (last), with a")
        print(f"  session of {defaults.broker_session_timeout_ms / 1000:.0f} s")
    finally:
        for broker in list(brokers.running):
            brokers.kill(broker)
        shutil.rmtree(root)


def loading(commits: int) -> None:
    """What a new coordinator of a thousand groups would have to read, if nothing of it were ever forgotten."""
    log, group = Log.create(MemoryDisk(), f"{TOPIC}-0", Settings()), "group-%d"
    for first in range(0, commits, 1_000):
        offsets = range(first, min(first + 1_000, commits))
        batches = (batch_of(group % (o % 1_000), {TopicPartition("topic", o % 7): (o, "")}, o) for o in offsets)
        log.append(b"".join(stamped(batch, o, 0) for o, batch in zip(offsets, batches, strict=True)))
    known, at, turns = Committed(), 0, list[float]()
    while at < commits:
        began = time.process_time()
        at = learn(known, log.read(Slice(offset=at, up_to=commits, max_bytes=PIECE_BYTES)))
        turns.append(time.process_time() - began)
    print(f"{commits} commits of groups, {log.segments[0].size / 1e6:.1f} MB")
    print(f"  read in {sum(turns):.2f} s of a processor, in {len(turns)} turns, the longest {1e3 * max(turns):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--data", help="the folder for the data directories, instead of that for temporary files")
    options = parser.parse_args()
    records = int(options.records)
    with Cluster(3) as cluster:
        print("records of 100 bytes, one partition, three replicas")
        for acks in ("0", "1", "all"):
            for linger in (0, 5, 50):
                topic = f"t-{acks}-{linger}"
                create_topic(cluster.bootstrap, topic, 1, 2)
                cluster.in_sync(topic)
                speed = produced(cluster.bootstrap, topic, records, 100, acks, linger)
                print(f"  produce  acks={acks:3}  linger {linger:2} ms  {speed:10,.0f} records/s")
        began = time.perf_counter()
        # Without a commit when it ends, which would find the first coordinator of groups: two seconds, now and then.
        confluent_read(cluster.bootstrap, "t-all-50", records, settings={"enable.auto.commit": "false"})
        print(f"  consume                        {records / (time.perf_counter() - began):10,.0f} records/s")
        cuts = statistics.quantiles(latencies(cluster.bootstrap, "t-all-0", 500), n=100)
        print(f"  acks=all, one at a time: median {cuts[49] * 1e3:.2f} ms, 99 % below {cuts[98] * 1e3:.2f} ms")
    loading(int(options.commits))
    many(int(options.partitions), options.data)


if __name__ == "__main__":
    main()
