"""Who asks the wrong broker is told who leads, and where that is (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from tests.support import clients
from tests.support.brokers import metadata
from tests.support.clusters import Cluster

from isr_broker.core.messages import BrokerMetadata, Error, TopicPartition
from isr_broker.core.node import Node
from isr_broker.core.record_batch import new_batch
from isr_broker.core.topics import uuid_of
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.leader_hints import endpoints, leader_hint
from isr_broker.wire.protocol import Answer, Fields
from isr_cluster.admin import Admin
from isr_cluster.ports import HOST

pytestmark = [pytest.mark.sockets, pytest.mark.long]

TP = TopicPartition("hints", 0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = clients.kafka_python_admin(running.bootstrap)
        chosen = {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [2, 3, 1]}}
        admin.create_topics({TP.topic: chosen})
        admin.close()
        running.in_sync(TP.topic)
        running.wait(
            lambda: all(TP in server.runtime.node.replicas for server in running.servers.values()), "all have a replica"
        )
        yield running


def asked(cluster: Cluster, key: int, version: int, fields: Answer) -> tuple[Fields, Fields]:
    """The whole answer of a follower, and what it says of the partition."""
    with Admin((HOST, cluster.ports[1])) as admin:
        body = admin.ask(key, version, fields)
    (topic,) = body.all("responses")
    (partition,) = topic.all("partition_responses") or topic.all("partitions")
    return body, partition


def produced(cluster: Cluster, version: int) -> tuple[Fields, Fields]:
    rows = [{"index": 0, "records": new_batch(b"x")}]
    return asked(
        cluster,
        protocol.PRODUCE,
        version,
        {"acks": 1, "timeout": 1_000, "topic_data": [{"name": TP.topic, "partition_data": rows}]},
    )


def fetched(cluster: Cluster, version: int, epoch: int = -1) -> tuple[Fields, Fields]:
    known = cluster.partition(TP.topic)
    assert known is not None
    rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000, "current_leader_epoch": epoch}]
    topics = [{"topic": TP.topic, "topic_id": uuid_of(known.topic_id), "partitions": rows}]
    fields: Answer = {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1_000, "topics": topics}
    return asked(cluster, protocol.FETCH, version, {**fields, "session_epoch": -1})


def names_the_leader(cluster: Cluster, body: Fields, partition: Fields) -> bool:
    known = cluster.partition(TP.topic)
    assert known is not None
    assert known.leader is not None
    hint = partition.part("current_leader")
    assert (hint.number("leader_id"), hint.number("leader_epoch")) == (known.leader, known.leader_epoch)
    (where,) = body.all("node_endpoints")
    assert (where.number("node_id"), where.text("host")) == (known.leader, HOST)
    return where.number("port") == cluster.ports[known.leader]


def test_a_producer_at_a_follower_is_told_who_leads(cluster: Cluster) -> None:
    body, partition = produced(cluster, 12)
    assert partition.number("error_code") == Error.NOT_LEADER_OR_FOLLOWER.value
    assert names_the_leader(cluster, body, partition)


def test_a_consumer_at_a_follower_is_told_who_leads(cluster: Cluster) -> None:
    body, partition = fetched(cluster, 16)
    assert partition.number("error_code") == Error.NOT_LEADER_OR_FOLLOWER.value
    assert names_the_leader(cluster, body, partition)


def test_before_these_versions_nobody_is_named(cluster: Cluster) -> None:
    for body, partition in (produced(cluster, 9), fetched(cluster, 15)):
        assert partition.number("error_code") == Error.NOT_LEADER_OR_FOLLOWER.value
        assert partition.part("current_leader").number("leader_id") == -1
        assert not body.all("node_endpoints")


def test_an_old_epoch_is_told_the_new_one(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.wait(lambda: cluster.leads(TP.topic) == 1 and cluster.leader(TP.topic) == 3, "another leads")
    cluster.wait(lambda: all(s.runtime.node.partitions[TP].leader == 3 for s in cluster.servers.values()), "all know")
    body, partition = fetched(cluster, 16, epoch=0)
    assert partition.number("error_code") == Error.FENCED_LEADER_EPOCH.value
    assert names_the_leader(cluster, body, partition)


def test_a_leader_without_a_session_is_nowhere_and_no_leader_is_nobody() -> None:
    node = Node(me=1, settings=Settings())
    assert leader_hint(node, TP) == {"leader_id": -1, "leader_epoch": -1}
    node = attrs.evolve(node, partitions=node.partitions.set(TP, metadata(None, epoch=4)))
    assert leader_hint(node, TP) == {"leader_id": -1, "leader_epoch": 4}
    fenced = BrokerMetadata(broker=2, epoch=1, host="h", port=9)
    node = attrs.evolve(node, brokers=node.brokers.set(2, fenced).set(3, attrs.evolve(fenced, broker=3, fenced=False)))
    assert endpoints(node, [3, 2, 3, 7]) == [{"node_id": 3, "host": "h", "port": 9, "rack": None}]
