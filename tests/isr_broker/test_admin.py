"""Admins: topics are created, described and deleted, settings shown, leaders elected, with real clients."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import kafka.errors  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaException
from tests.support import clients
from tests.support.clients import Confluent, confluent_read
from tests.support.clusters import Cluster

from isr_broker.core.messages import BrokerId, Error, PartitionMetadata, TopicPartition
from isr_broker.core.replica_state import Leading
from isr_broker.core.topics import FILE, file_of, in_file, topic_id_of, uuid_of
from isr_broker.storage.disk_files import RealDisk
from isr_broker.wire import protocol
from isr_broker.wire.admin_requests import TOPIC_NAMES

pytestmark = pytest.mark.sockets


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def known(cluster: Cluster, broker: BrokerId, topic: str) -> PartitionMetadata | None:
    return cluster.servers[broker].runtime.node.partitions.get(TopicPartition(topic, 0))


def create(cluster: Cluster, topic: str, partitions: int = 1, minimum: int = 2) -> None:
    clients.create_topic(cluster.bootstrap, topic, partitions, minimum)
    cluster.in_sync(topic)
    cluster.wait(lambda: all(known(cluster, b, topic) for b in cluster.servers), "all brokers know it")


def gone(cluster: Cluster, topic: str) -> None:
    def nowhere() -> bool:
        return not any(
            tp.topic == topic
            for server in cluster.servers.values()
            for found in (server.runtime.node.partitions, server.runtime.node.replicas, server.runtime.logs.logs)
            for tp in found
        )

    cluster.wait(nowhere, f"{topic} is nowhere")


# Topics


def test_confluent_describes_deletes_and_creates_a_topic_again(cluster: Cluster) -> None:
    create(cluster, "again", 2)
    first, partitions = clients.confluent_describe(cluster.bootstrap, "again")
    assert [(sorted(replicas), isr) for _, replicas, isr in partitions] == [([1, 2, 3], [1, 2, 3])] * 2
    Confluent(cluster.bootstrap, {"acks": "all"}).send_all("again", [b"old"] * 5)
    clients.confluent_delete(cluster.bootstrap, "again")
    gone(cluster, "again")
    create(cluster, "again")
    second, partitions = clients.confluent_describe(cluster.bootstrap, "again")
    assert len(partitions) == 1
    assert first != second
    assert Confluent(cluster.bootstrap, {"acks": "all"}).send_all("again", [b"new"]) == [0]
    assert confluent_read(cluster.bootstrap, "again", 1) == [b"new"]


def test_kafka_python_creates_describes_and_deletes(cluster: Cluster) -> None:
    admin = clients.kafka_python_admin(cluster.bootstrap)
    chosen = {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [3, 1], 1: [2, 3]}}
    admin.create_topics({"chosen": chosen})
    cluster.wait(lambda: all(known(cluster, b, "chosen") for b in cluster.servers), "all brokers know it")
    (found,) = admin.describe_topics(["chosen"])
    assert [p["replica_nodes"] for p in found["partitions"]] == [[3, 1], [2, 3]]
    assert [p["leader_id"] for p in found["partitions"]] == [3, 2]
    admin.delete_topics(["chosen"])
    gone(cluster, "chosen")
    with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["chosen"])
    admin.close()


def test_a_topic_that_is_only_asked_about_or_badly_asked_for_is_not_created(cluster: Cluster) -> None:
    admin = clients.kafka_python_admin(cluster.bootstrap)
    admin.create_topics({"asked": {"num_partitions": 1, "replication_factor": 3}}, validate_only=True)
    for bad, error in [
        ({"replication_factor": 4}, kafka.errors.InvalidReplicationFactorError),
        ({"configs": {"cleanup.policy": "compact"}}, kafka.errors.InvalidConfigurationError),
        ({"configs": {"min.insync.replicas": "many"}}, kafka.errors.InvalidConfigurationError),
        ({"assignments": {0: [1, 1]}}, kafka.errors.InvalidReplicationAssignmentError),
        ({"assignments": {0: [1], 2: [2]}}, kafka.errors.InvalidReplicationAssignmentError),
    ]:
        with pytest.raises(error):
            admin.create_topics({"asked": bad})
    admin.close()
    assert not cluster.partitions("asked")


def test_a_broker_that_was_away_removes_a_deleted_topic_and_takes_no_old_log_for_a_new_one(tmp_path: Path) -> None:
    cluster = Cluster(3)
    cluster.disks = {broker: RealDisk(tmp_path / str(broker)) for broker in cluster.ports}
    with cluster:
        for topic in ("deleted", "anew"):
            create(cluster, topic)
            Confluent(cluster.bootstrap, {"acks": "all"}).send_all(topic, [b"old"] * 50)
        cluster.kill(3)
        for topic in ("deleted", "anew"):
            clients.confluent_delete(cluster.bootstrap, topic)
        assert (tmp_path / "3" / "deleted-0").exists()
        cluster.wait(lambda: not (tmp_path / "2" / "deleted-0").exists(), "the folder is removed")
        cluster.wait(lambda: len(cluster.unfenced()) == 2, "the third broker is fenced")
        chosen = {"anew": {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [1, 2]}}}
        admin = clients.kafka_python_admin(cluster.bootstrap)
        admin.create_topics(chosen)
        admin.close()
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("anew", [b"new"])
        cluster.start(3)
        cluster.wait(lambda: not (tmp_path / "3" / "deleted-0").exists(), "the folder is removed")
        cluster.wait(lambda: not (tmp_path / "3" / "anew-0").exists(), "the old log is removed")
        assert confluent_read(cluster.bootstrap, "anew", 1) == [b"new"]
    found = partition_metadata(tmp_path / "2" / "anew-0")
    assert found > 0


def partition_metadata(folder: Path) -> int:
    return in_file((folder / FILE).read_bytes())


def test_a_topic_id_is_what_the_file_says() -> None:
    assert in_file(file_of(77)) == topic_id_of(uuid_of(77)) == 77
    assert in_file(None) == in_file(b"version: 0\n") == in_file(file_of(77)[:-1]) == topic_id_of(bytes(16)) == 0


def test_an_admin_is_told_when_there_is_no_controller() -> None:
    with Cluster(2) as cluster:
        cluster.wait(lambda: 2 in cluster.servers[2].runtime.node.brokers, "broker 2 knows that it lives")
        cluster.kill(1)
        frame = protocol.ask(protocol.DELETE_TOPICS, 5, 1, "test", {"topic_names": ["t"], "timeout": 1000})
        with socket.create_connection(("127.0.0.1", cluster.ports[2]), timeout=10) as connection:
            connection.sendall(frame)
            answer = connection.recv(100)
        name = answer.index(b"\x02t")
        assert struct.unpack_from(">h", answer, name + 2) == (7,), "REQUEST_TIMED_OUT"


# Settings


def test_confluent_shows_the_settings_of_topics_and_brokers(cluster: Cluster) -> None:
    create(cluster, "settings", minimum=1)
    topic = clients.confluent_configs(cluster.bootstrap, "TOPIC", "settings")
    assert set(topic) == set(TOPIC_NAMES)
    assert topic["min.insync.replicas"] == ("1", "DYNAMIC_TOPIC_CONFIG")
    assert topic["segment.bytes"] == ("1073741824", "DEFAULT_CONFIG")
    broker = clients.confluent_configs(cluster.bootstrap, "BROKER", "2")
    assert broker["min.insync.replicas"] == ("2", "STATIC_BROKER_CONFIG")
    assert broker["fetch.max.bytes"] == ("57671680", "DEFAULT_CONFIG")
    assert {n: v for n, (v, _) in broker.items()} == cluster.settings.properties()


def test_kafka_python_shows_what_was_changed(cluster: Cluster) -> None:
    create(cluster, "changed", minimum=1)
    admin = clients.kafka_python_admin(cluster.bootstrap)
    assert clients.kafka_python_changed(admin, "changed") == {"min.insync.replicas": "1"}
    admin.close()
    with pytest.raises(KafkaException, match="there is no topic 'nowhere'"):
        clients.confluent_configs(cluster.bootstrap, "TOPIC", "nowhere")


# Leaders


def test_the_preferred_leader_leads_again_when_an_admin_asks() -> None:
    with Cluster() as cluster:
        create(cluster, "t", 3)
        number = next(n for n in range(3) if cluster.leader("t", n) == 3)
        assert clients.confluent_elect(cluster.bootstrap, "t", number) == "ELECTION_NOT_NEEDED"
        assert cluster.shut_down(3) == "stopped in order"
        assert cluster.leader("t", number) != 3
        assert clients.confluent_elect(cluster.bootstrap, "t", number) == "PREFERRED_LEADER_NOT_AVAILABLE"
        cluster.start(3)
        cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions("t")), "it is in sync again")
        assert clients.confluent_elect(cluster.bootstrap, "t", number) == ""
        assert cluster.leader("t", number) == 3
        assert clients.confluent_elect(cluster.bootstrap, "nowhere", 0) == "UNKNOWN_TOPIC_OR_PART"


def test_eligible_replicas_are_shown_and_an_admin_may_have_anybody_lead() -> None:
    with Cluster(4) as cluster:
        chosen = {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [2, 3, 4]}}
        admin = clients.kafka_python_admin(cluster.bootstrap)
        admin.create_topics({"t": chosen})
        admin.close()
        cluster.in_sync("t")
        assert clients.confluent_elect(cluster.bootstrap, "t", 0, unclean=True) == "ELECTION_NOT_NEEDED"
        for broker, left in ((4, [2, 3]), (3, [2]), (2, [])):
            cluster.kill(broker)
            cluster.wait(lambda left=left: in_sync(cluster, "t") == left, f"without broker {broker}")  # type: ignore[misc]
        assert clients.confluent_elect(cluster.bootstrap, "t", 0, unclean=True) == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
        cluster.start(4)
        cluster.wait(lambda: 4 in cluster.unfenced(), "broker 4 is back")
        one = f"127.0.0.1:{cluster.ports[1]}"
        assert clients.kafka_python_page(one, ["t"])[0] == {"t": [(0, -1, [], [2, 3])]}, "broker 4 is not eligible"
        assert clients.confluent_elect(cluster.bootstrap, "t", 0) == "PREFERRED_LEADER_NOT_AVAILABLE"
        assert clients.confluent_elect(cluster.bootstrap, "t", 0, unclean=True) == ""
        led: clients.Described = {"t": [(0, 4, [4], [])]}
        cluster.wait(lambda: clients.kafka_python_page(one, ["t"])[0] == led, "broker 4 leads alone")


def in_sync(cluster: Cluster, topic: str) -> list[BrokerId]:
    found = cluster.partition(topic)
    assert found is not None
    return sorted(found.isr)


def test_partitions_are_described_page_by_page(cluster: Cluster) -> None:
    for topic, count in (("page-a", 3), ("page-b", 4)):
        create(cluster, topic, count)
    pages: list[list[tuple[str, list[int]]]] = []
    cursor: object = None
    while cursor is not None or not pages:
        found, cursor = clients.kafka_python_page(cluster.bootstrap, ["page-b", "page-a", "page-c"], 2, cursor)
        pages.append([(topic, [p[0] for p in partitions]) for topic, partitions in found.items()])
    assert pages == [
        [("page-a", [0, 1])],
        [("page-a", [2]), ("page-b", [0])],
        [("page-b", [1, 2])],
        [("page-b", [3]), ("page-c", [])],
    ]


# Fetch sessions, and topics by their ids


def asked(cluster: Cluster, version: int, fields: protocol.Answer) -> bytes:
    with socket.create_connection(("127.0.0.1", cluster.ports[cluster.leader("ids")]), timeout=5) as connection:
        connection.sendall(protocol.ask(protocol.FETCH, version, 7, "test", fields))
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        return connection.recv(size, socket.MSG_WAITALL)


def test_an_answer_is_no_larger_than_was_asked_for(cluster: Cluster) -> None:
    chosen = {"num_partitions": -1, "replication_factor": -1, "assignments": {n: [1, 2] for n in range(4)}}
    admin = clients.kafka_python_admin(cluster.bootstrap)
    admin.create_topics({"limits": chosen})
    admin.close()
    producer = Confluent(cluster.bootstrap, {"acks": "all"})
    for partition in range(4):
        producer.send("limits", b"x" * 1000, partition)
    assert producer.producer.flush(20) == 0
    partitions = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 10_000} for n in range(4)]
    topics = [{"topic": "limits", "partitions": partitions}]
    with socket.create_connection(("127.0.0.1", cluster.ports[1]), timeout=5) as connection:
        for limit, whole in ((1, 1), (1_500, 2), (100_000, 4)):
            fields = {"topics": topics, "max_bytes": limit, "min_bytes": 1, "max_wait": 0, "replica_id": -1}
            connection.sendall(protocol.ask(protocol.FETCH, 12, 7, "test", fields))
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            assert connection.recv(size, socket.MSG_WAITALL).count(b"x" * 1000) == whole, "the last may be too much"


def test_a_fetch_is_by_id_and_continues_no_session(cluster: Cluster) -> None:
    create(cluster, "ids")
    Confluent(cluster.bootstrap, {"acks": "all"}).send_all("ids", [b"found by its id"])
    found = known(cluster, 1, "ids")
    assert found is not None
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}

    def fetch(session: int, epoch: int, topic_id: int) -> tuple[int, int, bytes]:
        """The error, the session, and everything after them."""
        topics = [{"topic_id": uuid_of(topic_id), "partitions": [partition]}]
        fields = {"topics": topics, "session_id": session, "session_epoch": epoch, "max_bytes": 1000, "min_bytes": 1}
        # After the correlation, its tagged fields and the throttle time.
        answer = asked(cluster, 17, fields)
        error, given = struct.unpack_from(">hi", answer, 9)
        return error, given, answer[15:]

    for epoch in (0, -1):
        error, session, rest = fetch(0, epoch, found.topic_id)
        assert error == 0
        assert (session > 0) == (epoch == 0), "a session is given to whoever asks for one"
        assert b"found by its id" in rest
    assert fetch(0, 0, found.topic_id + 1000)[2][1 + 16 + 1 + 4 :][:2] == struct.pack(">h", 100), "UNKNOWN_TOPIC_ID"
    assert fetch(5, 1, found.topic_id)[:2] == (Error.FETCH_SESSION_ID_NOT_FOUND.value, 0)
    assert fetch(0, 3, found.topic_id)[:2] == (Error.FETCH_SESSION_ID_NOT_FOUND.value, 0)


# Settings that change, partitions that are added, what is where


def test_confluent_changes_settings_adds_partitions_and_lists_groups(cluster: Cluster) -> None:
    create(cluster, "changes", 1, minimum=1)
    clients.confluent_set(cluster.bootstrap, "changes", "min.insync.replicas", "3")

    def leads_with_three() -> bool:
        held = (server.runtime.node.replicas.get(TopicPartition("changes", 0)) for server in cluster.servers.values())
        return any(r is not None and isinstance(r.role, Leading) and r.role.min_insync_replicas == 3 for r in held)

    cluster.wait(leads_with_three, "the leader has another minimum")
    with pytest.raises(KafkaException, match="it can only be delete here"):
        clients.confluent_set(cluster.bootstrap, "changes", "cleanup.policy", "compact")
    clients.confluent_grow(cluster.bootstrap, "changes", 3)
    cluster.wait(
        lambda: all(TopicPartition("changes", 2) in s.runtime.node.partitions for s in cluster.servers.values()),
        "three partitions",
    )
    assert Confluent(cluster.bootstrap, {"acks": "all"}).send_all("changes", [b"x"])
    assert clients.confluent_group_errors(cluster.bootstrap) == []
