"""The broker's speed: produce and consume by batch size and acks, latency of acks=all, fail-over of many partitions.

    python bench/broker.py [--records N] [--partitions N]

Three brokers in one process and on one loop, disks in memory, librdkafka as client; so the figures are of the broker's
code and of the protocol, not of disks or of a network. A follower fetches each partition by itself as yet, so a
thousand partitions are too many for one loop.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.clients import Confluent, confluent_read, create_topic
from tests.clusters import Cluster


def produced(cluster: Cluster, topic: str, count: int, size: int, acks: str, linger: int) -> float:
    """Records a second."""
    producer = Confluent(cluster.bootstrap, {"acks": acks, "linger.ms": linger, "queue.buffering.max.messages": 10**6})
    value, began = b"x" * size, time.perf_counter()
    for number in range(count):
        producer.producer.produce(topic, value, partition=0)
        if number % 1_000 == 0:
            producer.producer.poll(0)
    assert producer.producer.flush(60) == 0
    return count / (time.perf_counter() - began)


def latencies(cluster: Cluster, topic: str, count: int) -> list[float]:
    """Seconds of each of so many writes, one after the other, with acks=all."""
    producer, found = Confluent(cluster.bootstrap, {"acks": "all", "linger.ms": 0}), list[float]()
    for _ in range(count):
        began = time.perf_counter()
        producer.send(topic, b"x" * 100)
        assert producer.producer.flush(10) == 0
        found.append(time.perf_counter() - began)
    return found


def fail_over(partitions: int) -> tuple[int, float]:
    """How many partitions changed hands when a broker was killed, and seconds until all had leaders that know it."""
    with Cluster(3) as cluster:
        create_topic(cluster.bootstrap, "many", partitions, 1)
        cluster.wait(lambda: cluster.leads("many") == partitions, "every partition has a leader that knows it", 60)
        lost = sum(p.leader == 3 for p in cluster.partitions("many"))
        began = time.perf_counter()
        cluster.kill(3)
        cluster.wait(lambda: cluster.leads("many") == partitions, "every partition has a leader that knows it", 60)
        return lost, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--partitions", type=int, default=60)
    options = parser.parse_args()
    records = int(options.records)
    with Cluster(3) as cluster:
        print("records of 100 bytes, one partition, three replicas")
        for acks in ("0", "1", "all"):
            for linger in (0, 5, 50):
                topic = f"t-{acks}-{linger}"
                create_topic(cluster.bootstrap, topic, 1, 2)
                cluster.in_sync(topic)
                speed = produced(cluster, topic, records, 100, acks, linger)
                print(f"  produce  acks={acks:3}  linger {linger:2} ms  {speed:10,.0f} records/s")
        began = time.perf_counter()
        confluent_read(cluster.bootstrap, "t-all-50", records)
        print(f"  consume                        {records / (time.perf_counter() - began):10,.0f} records/s")
        cuts = statistics.quantiles(latencies(cluster, "t-all-0", 500), n=100)
        print(f"  acks=all, one at a time: median {cuts[49] * 1e3:.2f} ms, 99 % below {cuts[98] * 1e3:.2f} ms")
    lost, seconds = fail_over(options.partitions)
    print(f"fail-over of {lost} of {options.partitions} partitions: {seconds:.2f} s, with a session of 0.7 s")


if __name__ == "__main__":
    main()
