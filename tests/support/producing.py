"""Each client with what matters to a broker: how much is acknowledged, compression, idempotence, groups."""

# The clients have no complete types of their own, so here, and only here, the checkers look less closely.
# pyright: basic

from __future__ import annotations

import asyncio

import aiokafka  # type: ignore[import-untyped]
import kafka  # type: ignore[import-untyped]
from tests.support import clients
from tests.support.clients import Confluent

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat")
CODECS: dict[str, clients.Codec] = {"none": None, "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
"""In the order of their numbers in a batch's attributes."""


def produce(
    client: str,
    bootstrap: str,
    topic: str,
    values: list[bytes],
    acks: str = "all",
    codec: str = "none",
    once: bool = False,
) -> None:
    """Write values to partition 0; `once` is idempotence. Returns when all are acknowledged, or sent if acks=0."""
    match client:
        case "confluent-kafka":
            Confluent(bootstrap, {"acks": acks, "compression.type": codec, "enable.idempotence": once}).send_all(
                topic, values
            )
        case "kafka-python":
            producer = kafka.KafkaProducer(
                bootstrap_servers=bootstrap.split(","),
                acks=acks if acks == "all" else int(acks),
                compression_type=CODECS[codec],
                enable_idempotence=once,
                linger_ms=2,
            )
            futures = [producer.send(topic, value, partition=0) for value in values]
            producer.flush(20)
            assert not [future.exception for future in futures if future.failed()]
            producer.close()
        case "aiokafka":
            asyncio.run(_aiokafka(bootstrap, topic, values, acks, codec, once))
        case _:
            settings = [f"acks={acks}", f"enable.idempotence={str(once).lower()}"]
            options = [word for setting in settings for word in ("-X", setting)]
            options += [] if codec == "none" else ["-z", codec]
            text = b"".join(value + b"\n" for value in values).decode()
            clients.kcat(bootstrap, "-P", "-t", topic, "-p", "0", *options, text=text)


async def _aiokafka(bootstrap: str, topic: str, values: list[bytes], acks: str, codec: str, once: bool) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks=acks if acks == "all" else int(acks),
        compression_type=CODECS[codec],
        enable_idempotence=once,
        linger_ms=2,
    )
    await producer.start()
    futures = [await producer.send(topic, value, partition=0) for value in values]
    for future in futures:
        await future
    await producer.stop()


def read_as_group(client: str, bootstrap: str, group: str, topic: str, count: int) -> list[bytes]:
    """So many values as the only member of a group, which commits what it read and leaves."""
    match client:
        case "confluent-kafka":
            return clients.confluent_group(bootstrap, group, topic, count)
        case "kafka-python":
            return clients.kafka_python_group(bootstrap, group, topic, count)
        case "aiokafka":
            return clients.aiokafka_group(bootstrap, group, topic, count)
        case _:
            settings = ("-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=100")
            return clients.kcat(bootstrap, *settings, "-c", str(count), "-q", "-u", "-G", group, topic).encode().split()
