"""Ordinary Kafka clients against brokers on sockets: they produce, consume, and survive fail-overs.

Without these, the broker could speak a dialect of Kafka's protocol that only our own client understands.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import attrs
import pytest
from tests.support import clients
from tests.support.clients import Confluent, confluent_read, kcat
from tests.support.clusters import QUICK, Cluster

from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import batches
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.log import Log

pytestmark = [pytest.mark.processes, pytest.mark.sockets]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def create(cluster: Cluster, topic: str, partitions: int = 1, minimum: int = 2) -> None:
    clients.create_topic(cluster.bootstrap, topic, partitions, minimum)
    cluster.in_sync(topic)


def numbered(count: int) -> list[bytes]:
    return [b"%06d" % n for n in range(count)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_librdkafka_produces_and_consumes(cluster: Cluster, acks: str) -> None:
    topic = f"confluent-{acks}"
    create(cluster, topic)
    Confluent(cluster.bootstrap, {"acks": acks}).send_all(topic, numbered(500))
    assert confluent_read(cluster.bootstrap, topic, 500) == numbered(500)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_may_compress_and_be_idempotent(cluster: Cluster, codec: str) -> None:
    topic = f"confluent-{codec}"
    create(cluster, topic)
    producer = Confluent(cluster.bootstrap, {"compression.type": codec, "enable.idempotence": True})
    assert producer.send_all(topic, numbered(500)) == list(range(500))
    assert confluent_read(cluster.bootstrap, topic, 500) == numbered(500)


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_kafka_python_produces_and_consumes(cluster: Cluster, codec: clients.Codec) -> None:
    topic = f"kafka-python-{codec}"
    create(cluster, topic)
    assert clients.kafka_python_send(cluster.bootstrap, topic, numbered(300), codec) == list(range(300))
    assert clients.kafka_python_read(cluster.bootstrap, topic, 300) == numbered(300)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_aiokafka_produces_and_consumes(cluster: Cluster, codec: clients.Codec) -> None:
    topic = f"aiokafka-{codec}"
    create(cluster, topic)
    assert clients.aiokafka_send(cluster.bootstrap, topic, numbered(300), codec) == list(range(300))
    assert clients.aiokafka_read(cluster.bootstrap, topic, 300) == numbered(300)
    log = next(iter(cluster.servers[cluster.leader(topic)].runtime.logs.logs[tp] for tp in tps(cluster, topic)))
    kinds = {batch.attributes & 7 for batch in batches(log.contents(), check=True)}
    assert kinds == {[None, "gzip", "snappy", "lz4", "zstd"].index(codec)}, "passed through as it was sent"


def test_kcat_produces_consumes_and_lists(cluster: Cluster, needs_package: Callable[[str], None]) -> None:
    needs_package("kcat")
    create(cluster, "kcat")
    lines = "".join(f"{n}\n" for n in range(200))
    kcat(cluster.bootstrap, "-P", "-t", "kcat", "-p", "0", "-X", "acks=all", text=lines)
    assert kcat(cluster.bootstrap, "-C", "-t", "kcat", "-p", "0", "-o", "beginning", "-e", "-q") == lines
    assert 'topic "kcat" with 1 partitions' in kcat(cluster.bootstrap, "-L")
    assert "offset 200" in kcat(cluster.bootstrap, "-Q", "-t", "kcat:0:-1")


# What a client is told


def test_a_topic_is_created_when_it_is_first_written_to(cluster: Cluster) -> None:
    assert Confluent(cluster.bootstrap).send_all("by-itself", numbered(3)) == [0, 1, 2]


def test_under_the_minimum_a_producer_gets_not_enough_replicas_and_nothing_more_is_read() -> None:
    with Cluster(3) as cluster:
        create(cluster, "t", minimum=3)
        Confluent(cluster.bootstrap).send_all("t", numbered(3))
        cluster.kill(3)
        cluster.in_sync("t", 2)
        producer = Confluent(cluster.bootstrap, {"acks": "all", "retries": 0})
        producer.send("t", b"x")
        producer.producer.flush(10)
        assert producer.errors == ["NOT_ENOUGH_REPLICAS"]
        Confluent(cluster.bootstrap, {"acks": "1"}).send_all("t", numbered(2))
        held = cluster.servers[1].runtime.node.replicas
        assert [(r.log.end, r.high_watermark) for r in held.values()] == [(5, 3)]
        if shutil.which("kcat") is not None:
            read = kcat(cluster.bootstrap, "-C", "-t", "t", "-p", "0", "-o", "beginning", "-e", "-q")
            assert read.split() == ["000000", "000001", "000002"]
        cluster.start(3)
        cluster.in_sync("t")
        assert confluent_read(cluster.bootstrap, "t", 5) == numbered(3) + numbered(2)


# Fail-overs


def test_every_acknowledged_write_survives_fail_overs_once_and_in_order() -> None:
    with Cluster(3) as cluster:
        create(cluster, "t", partitions=3)
        partition = next(n for n in range(3) if cluster.leader("t", n) != 1)
        producer = Confluent(cluster.bootstrap, {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
        leader, sent = cluster.leader("t", partition), 0

        def some(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                producer.send("t", b"%06d" % sent, partition)
                producer.producer.poll(0.001)
                sent += 1

        for victim, _ in zip(cycle((leader, 5 - leader)), range(2), strict=False):
            some(150)
            cluster.kill(victim)
            some(150)
            cluster.wait(lambda: producer.producer.poll(0.01) >= 0 and len(producer.acked) == sent, "all are acked")
            cluster.start(victim)
            cluster.in_sync("t")
        some(100)
        assert producer.producer.flush(30) == 0
        assert producer.acked == numbered(sent)
        assert confluent_read(cluster.bootstrap, "t", sent, partition) == numbered(sent)
        found = cluster.partition("t", partition)
        assert found is not None
        assert found.leader_epoch > 0, "or nothing was survived"


def test_many_partitions_settle_without_patience_and_fail_over_in_one_change() -> None:
    # a session that a busy machine keeps: who is fenced for being slow changes every partition once more
    settings = attrs.evolve(QUICK, replica_socket_timeout_ms=30_000, broker_session_timeout_ms=3_000)
    with Cluster(3, settings) as cluster:
        create(cluster, "many", 150)
        producer = Confluent(cluster.bootstrap, {"acks": "all"})
        for number in range(150):
            producer.send("many", b"x", number)
        assert producer.producer.flush(25) == 0, "no follower waits for a fetch that was lost, which takes 30 s"
        assert not producer.errors
        cluster.kill(3)
        cluster.wait(
            lambda: cluster.leads("many") == 150 and all(set(p.isr) == {1, 2} for p in cluster.partitions("many")),
            "every partition has a leader that knows it, and nobody counts on who was killed",
        )
        controller = cluster.servers[1].runtime.controller
        assert controller is not None
        offsets = [controller.change_offsets[p.partition] for p in cluster.partitions("many")]
        assert (min(offsets), max(offsets)) == (controller.change_offsets[3] + 1, controller.change_offsets[3] + 150)
        cluster.start(3)
        cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions("many")), "all are in sync", 20)
        cluster.shut_down(3)
        cluster.start(3)
        cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions("many")), "no answer went astray", 20)


def test_a_broker_that_stops_in_order_is_relieved_first_and_comes_back_clean(tmp_path: Path) -> None:
    cluster = Cluster(3, attrs.evolve(QUICK, log_segment_bytes=5_000))
    cluster.disks = {broker: RealDisk(tmp_path / str(broker)) for broker in cluster.ports}
    mark = tmp_path / "2" / ".kafka_cleanshutdown"
    with cluster:
        create(cluster, "t")
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("t", numbered(500))
        assert cluster.shut_down(2) == "stopped in order"
        assert mark.exists()
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("t", numbered(100))
        cluster.start(2)
        assert not mark.exists()
        cluster.in_sync("t")
        assert confluent_read(cluster.bootstrap, "t", 600) == numbered(500) + numbered(100)
        cluster.wait(lambda: [log_end(cluster, b) for b in cluster.ports] == [600] * 3, "all brokers have all")
    logs = [Log.open(RealDisk(tmp_path / str(b)), "t-0", QUICK).contents() for b in cluster.ports]
    assert logs[0] == logs[1] == logs[2]
    assert sum(b.count for b in batches(logs[0], check=True)) == 600


def tps(cluster: Cluster, topic: str) -> list[TopicPartition]:
    return [tp for tp in cluster.servers[1].runtime.node.partitions if tp.topic == topic]


def log_end(cluster: Cluster, broker: int) -> int:
    return max(replica.log.end for replica in cluster.servers[broker].runtime.node.replicas.values())
