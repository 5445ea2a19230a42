"""Ordinary Kafka clients, each as two functions: send values to a partition, read values from it."""

# The clients have no complete types of their own, so here, and only here, the checkers look less closely.
# pyright: basic

from __future__ import annotations

import asyncio
import subprocess
from typing import Literal, Protocol, cast

import aiokafka  # type: ignore[import-untyped]
import confluent_kafka
import confluent_kafka.admin
import kafka  # type: ignore[import-untyped]
import kafka.admin  # type: ignore[import-untyped]
import kafka.record  # type: ignore[import-untyped]
import kafka.structs  # type: ignore[import-untyped]
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,  # pyright: ignore[reportPrivateImportUsage]
    ConfigEntry,  # pyright: ignore[reportPrivateImportUsage]
    ConfigResource,  # pyright: ignore[reportPrivateImportUsage]
    ConfigSource,  # pyright: ignore[reportPrivateImportUsage]
    NewPartitions,  # pyright: ignore[reportPrivateImportUsage]
    OffsetSpec,  # pyright: ignore[reportPrivateImportUsage]
    ResourceType,  # pyright: ignore[reportPrivateImportUsage]
)

Setting = str | int | bool
Codec = Literal["gzip", "snappy", "lz4", "zstd"] | None


def create_topic(bootstrap: str, topic: str, partitions: int, minimum: int) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    config = {"min.insync.replicas": str(minimum)}
    wanted = confluent_kafka.admin.NewTopic(topic, partitions, 3, config=config)  # type: ignore[attr-defined]
    for future in admin.create_topics([wanted]).values():
        future.result(10)


# confluent-kafka, which is librdkafka


class Confluent:
    """A producer; `acked` are the values that were acknowledged, in that order, `offsets` where they are."""

    def __init__(self, bootstrap: str, settings: dict[str, Setting] | None = None) -> None:
        impatient = {"linger.ms": 2, "reconnect.backoff.max.ms": 100, "retry.backoff.max.ms": 100}
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **impatient, **(settings or {})})
        self.acked: list[bytes] = []
        self.offsets: list[int] = []
        self.errors: list[str] = []

    def _told(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        value, offset = message.value(), message.offset()
        if error is not None:
            self.errors.append(error.name())
        elif isinstance(value, bytes):
            self.acked.append(value)
            self.offsets.append(-1 if offset is None else offset)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self.producer.produce(topic, value, partition=partition, on_delivery=self._told)
        self.producer.poll(0)

    def send_all(self, topic: str, values: list[bytes]) -> list[int]:
        for value in values:
            self.send(topic, value)
        assert self.producer.flush(30) == 0
        assert not self.errors
        return self.offsets


def confluent_read(
    bootstrap: str, topic: str, count: int, partition: int = 0, settings: dict[str, str] | None = None
) -> list[bytes]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **(settings or {})})
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(20)
        assert message is not None, f"{len(found)} of {count} came"
        assert message.error() is None, message.error()
        value = message.value()
        assert isinstance(value, bytes)
        found.append(value)
    consumer.close()
    return found


def confluent_transaction(bootstrap: str, topic: str, values: list[bytes]) -> list[bytes]:
    """What the last that many committed records are, after one transaction that was aborted and one that was not."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"never", partition=0)
    producer.flush(20)
    producer.abort_transaction(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.commit_transaction(30)
    settings = {"group.id": "none", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        found.append(message.value() or b"")
    consumer.close()
    return found[-len(values) :]


# kafka-python


def kafka_python_send(bootstrap: str, topic: str, values: list[bytes], codec: Codec = None) -> list[int]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap.split(","), acks="all", linger_ms=2, compression_type=codec
    )
    futures = [producer.send(topic, value, partition=0) for value in values]
    offsets = [future.get(20).offset for future in futures]
    producer.close()
    return offsets


def kafka_python_read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap.split(","), auto_offset_reset="earliest")
    consumer.assign([kafka.structs.TopicPartition(topic, 0)])
    found: list[bytes] = []
    while len(found) < count:
        news = consumer.poll(10_000)
        assert news, f"{len(found)} of {count} came"
        for records in news.values():
            found += [record.value for record in records]
    consumer.close()
    return found


def kafka_python_records(batch: bytes) -> list[tuple[bytes, bytes]]:
    """Key and value of each record."""
    found = kafka.record.MemoryRecords(batch).next_batch()
    assert found is not None
    return [(record.key, record.value) for record in found]


# aiokafka


def aiokafka_send(bootstrap: str, topic: str, values: list[bytes], codec: Codec = None) -> list[int]:
    async def go() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, compression_type=codec
        )
        await producer.start()
        futures = [await producer.send(topic, value, partition=0) for value in values]
        offsets = [(await future).offset for future in futures]
        await producer.stop()
        return offsets

    return asyncio.run(go())


def aiokafka_read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    async def go() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        found = [(await asyncio.wait_for(consumer.getone(), 10)).value or b"" for _ in range(count)]
        await consumer.stop()
        return found

    return asyncio.run(go())


# kcat


def kcat(bootstrap: str, *arguments: str, text: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=30).stdout


# Groups: read so many values, commit, and leave


def _group_consumer(bootstrap: str, group: str) -> confluent_kafka.Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return confluent_kafka.Consumer({**settings, "enable.auto.commit": False})


def confluent_group(bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    consumer = _group_consumer(bootstrap, group)
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(15)
        assert message is not None, f"{len(found)} of {count} came"
        assert message.error() is None, message.error()
        value = message.value()
        assert isinstance(value, bytes)
        found.append(value)
        consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return found


def confluent_shared(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """How many partitions each of two members has, once they have all of them between them."""
    members = [_group_consumer(bootstrap, group) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    parts: list[int] = []
    for _ in range(200):
        for member in members:
            member.poll(0.05)
        parts = [len(member.assignment()) for member in members]
        if sum(parts) == partitions and 0 not in parts:
            break
    for member in members:
        member.close()
    return parts


def kafka_python_group(bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    found: list[bytes] = []
    while len(found) < count:
        news = consumer.poll(15_000, max_records=min(50, count - len(found)))
        assert news, f"{len(found)} of {count} came"
        for records in news.values():
            found += [record.value for record in records]
        consumer.commit()
    consumer.close()
    return found


def aiokafka_group(bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    async def go() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        found = [(await asyncio.wait_for(consumer.getone(), 15)).value or b"" for _ in range(count)]
        await consumer.commit()
        await consumer.stop()
        return found

    return asyncio.run(go())


# Admins: each as a function that gives plain values


def confluent_describe(bootstrap: str, topic: str) -> tuple[str, list[tuple[int, list[int], list[int]]]]:
    """The topic's id; leader, replicas and in-sync replicas of each partition."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    wanted = confluent_kafka.TopicCollection([topic])
    found = admin.describe_topics(wanted)[topic].result(10)
    partitions = [
        (p.leader.id if p.leader else -1, [r.id for r in p.replicas], sorted(r.id for r in p.isr))
        for p in found.partitions
    ]
    return str(found.topic_id), partitions


def confluent_configs(bootstrap: str, kind: str, name: str) -> dict[str, tuple[str, str]]:
    """The value of each setting of a topic or broker, and where it comes from."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.describe_configs([ConfigResource(ResourceType[kind], name)]).values()
    return {n: (entry.value, ConfigSource(entry.source).name) for n, entry in future.result(10).items()}


def confluent_set(bootstrap: str, topic: str, setting: str, value: str) -> None:
    """Changes one setting of a topic, with IncrementalAlterConfigs."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(30)


def confluent_grow(bootstrap: str, topic: str, partitions: int) -> None:
    """Adds partitions to a topic until it has that many."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.create_partitions([NewPartitions(topic, partitions)]).values()
    future.result(30)


def confluent_group_errors(bootstrap: str) -> list[str]:
    """What brokers answered instead of their groups."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    return [str(error) for error in admin.list_consumer_groups().result(30).errors]


def confluent_group_state(bootstrap: str, group: str) -> str:
    """What librdkafka's admin is told of a group's state (DescribeGroups)."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    return str(admin.describe_consumer_groups([group], request_timeout=30)[group].result(30).state.name)


def confluent_delete_group(bootstrap: str, group: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_consumer_groups([group], request_timeout=30).values():
        future.result(30)


def confluent_delete_records(bootstrap: str, topic: str, before: int) -> int:
    """Where every log of partition 0 starts then."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    wanted = confluent_kafka.TopicPartition(topic, 0, before)
    (future,) = admin.delete_records([wanted], request_timeout=30, operation_timeout=30).values()
    return int(future.result(30).low_watermark)


class KindsOfOffset(Protocol):
    """What is used of librdkafka's OffsetSpec, which has no types."""

    def earliest(self) -> OffsetSpec: ...
    def latest(self) -> OffsetSpec: ...
    def max_timestamp(self) -> OffsetSpec: ...


def confluent_offsets(bootstrap: str, topic: str) -> dict[str, int]:
    """What ListOffsets says of partition 0: where it starts, where it ends, and which record has the newest time."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    specs: KindsOfOffset = cast("KindsOfOffset", OffsetSpec)
    kinds = {"earliest": specs.earliest(), "latest": specs.latest(), "newest": specs.max_timestamp()}
    offsets: dict[str, int] = {}
    for kind, spec in kinds.items():
        (future,) = admin.list_offsets({confluent_kafka.TopicPartition(topic, 0): spec}).values()
        offsets[kind] = int(future.result(30).offset)
    return offsets


def confluent_delete(bootstrap: str, topic: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result(10)


def confluent_elect(bootstrap: str, topic: str, partition: int, unclean: bool = False) -> str:
    """The name of the error, empty for none."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    kind = confluent_kafka.ElectionType.UNCLEAN if unclean else confluent_kafka.ElectionType.PREFERRED
    wanted = [confluent_kafka.TopicPartition(topic, partition)]
    (error,) = admin.elect_leaders(kind, wanted).result(10).values()
    return "" if error is None else str(error.name())


class KafkaPythonAdmin(Protocol):
    """What is used of kafka-python's admin."""

    def create_topics(self, new_topics: object, *, validate_only: bool = False) -> object: ...
    def describe_topics(self, topics: list[str]) -> list[dict[str, list[dict[str, object]]]]: ...
    def delete_topics(self, topics: list[str]) -> object: ...
    def describe_configs(self, config_resources: object) -> dict[str, dict[str, dict[str, dict[str, str]]]]: ...
    def close(self) -> None: ...


def kafka_python_admin(bootstrap: str) -> KafkaPythonAdmin:
    return cast("KafkaPythonAdmin", kafka.KafkaAdminClient(bootstrap_servers=bootstrap.split(",")))


def kafka_python_changed(admin: KafkaPythonAdmin, topic: str) -> dict[str, str]:
    """The settings of a topic that are not the defaults."""
    resource = kafka.admin.ConfigResource("TOPIC", topic)  # pyright: ignore[reportArgumentType]
    found = admin.describe_configs([resource])["topic"][topic]
    return {name: entry["value"] for name, entry in found.items()}


def kafka_python_reassign(bootstrap: str, topic: str, replicas: list[int] | None) -> object:
    """Ask for other replicas of partition 0, or cancel what is under way; the error, None if it was taken."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    partition = kafka.structs.TopicPartition(topic, 0)
    errors = admin.alter_partition_reassignments({partition: replicas})  # pyright: ignore[reportAttributeAccessIssue]
    admin.close()
    return errors[partition]


def kafka_python_reassignments(bootstrap: str) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """Of each partition that is reassigned its replicas, those that are added, and those that are removed."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    under_way = admin.list_partition_reassignments()  # pyright: ignore[reportAttributeAccessIssue]
    admin.close()
    return {
        (tp.topic, tp.partition): (row["replicas"], row["adding_replicas"], row["removing_replicas"])
        for tp, row in under_way.items()
    }


Described = dict[str, list[tuple[int, int, list[int], list[int]]]]
"""Of each topic's partitions: the number, the leader, the in-sync replicas, and the eligible leader replicas."""


def kafka_python_page(
    bootstrap: str, topics: list[str], limit: int = 2000, cursor: object = None
) -> tuple[Described, object]:
    """One page of DescribeTopicPartitions, and where the next one begins."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    page = admin.describe_topic_partitions(topics, limit, cursor)  # pyright: ignore[reportAttributeAccessIssue]
    admin.close()
    found = {
        t["name"]: [
            (p["partition_index"], p["leader_id"], p["isr_nodes"], p["eligible_leader_replicas"] or [])
            for p in t["partitions"]
        ]
        for t in page["topics"]
    }
    return found, page["next_cursor"]
