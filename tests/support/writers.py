"""Ordinary Kafka clients as writers for long runs: acks=all, idempotent, patient; each says what was acknowledged.

A writer is sent values one by one while brokers come and go. It tries again by itself, as its users would have it do,
and gives a value up only after two minutes.
"""

# The clients have no complete types of their own, so here, and only here, the checkers look less closely.
# pyright: basic

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable
from typing import Protocol

import aiokafka  # type: ignore[import-untyped]
import confluent_kafka
import kafka  # type: ignore[import-untyped]
from tests.support import clients
from tests.support.clients import Confluent

PATIENCE = 120


class Writer(Protocol):
    """A producer; once `finish` has returned, `acked` are the values that were acknowledged, in that order."""

    acked: list[bytes]
    errors: list[str]

    def send(self, value: bytes) -> None:
        """Hand a value over; it may wait while too many are on their way."""
        ...

    def finish(self) -> None:
        """Wait until every value was acknowledged or given up."""
        ...


class ConfluentWriter:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings: dict[str, clients.Setting] = {"enable.idempotence": True, "acks": "all", "log_level": 0}
        self.client = Confluent(bootstrap, {**settings, "message.timeout.ms": PATIENCE * 1000})
        self.topic, self.acked, self.errors = topic, self.client.acked, self.client.errors

    def send(self, value: bytes) -> None:
        try:
            self.client.send(self.topic, value)
        except confluent_kafka.KafkaException as fatal:
            # It has seen that its own records went missing, and takes no more.
            self.errors.append(str(fatal))

    def finish(self) -> None:
        self.client.producer.flush(PATIENCE + 10)


class KafkaPythonWriter:
    """kafka-python."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.client = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=PATIENCE * 1000,
            reconnect_backoff_max_ms=200,
            max_block_ms=PATIENCE * 1000,
        )
        self.topic = topic
        self.acked: list[bytes] = []
        self.errors: list[str] = []

    def send(self, value: bytes) -> None:
        future = self.client.send(self.topic, value, partition=0)
        future.add_callback(lambda _: self.acked.append(value))
        future.add_errback(lambda error: self.errors.append(type(error).__name__))

    def finish(self) -> None:
        self.client.flush(PATIENCE + 10)
        self.client.close()


class AiokafkaWriter:
    """aiokafka, on a loop of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.acked: list[bytes] = []
        self.errors: list[str] = []
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._do(self._open(bootstrap))

    def _do(self, what) -> None:  # type: ignore[no-untyped-def]
        asyncio.run_coroutine_threadsafe(what, self.loop).result(PATIENCE + 20)

    async def _open(self, bootstrap: str) -> None:
        self.client = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, request_timeout_ms=PATIENCE * 1000
        )
        await self.client.start()

    async def _send(self, value: bytes) -> None:
        future = await self.client.send(self.topic, value, partition=0)
        future.add_done_callback(lambda done: self._told(value, done))

    def _told(self, value: bytes, done: asyncio.Future[object]) -> None:
        error = done.exception()
        if error is None:
            self.acked.append(value)
        else:
            self.errors.append(type(error).__name__)

    def send(self, value: bytes) -> None:
        self._do(self._send(value))

    def finish(self) -> None:
        self._do(self.client.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)


class KcatWriter:
    """kcat reads lines; it ends with exit code 0 when each of them was acknowledged, and names none of them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = ["acks=all", "enable.idempotence=true", f"message.timeout.ms={PATIENCE * 1000}"]
        settings += ["reconnect.backoff.max.ms=200", "retry.backoff.ms=50"]
        command = ["kcat", "-P", "-E", "-b", bootstrap, "-t", topic, "-p", "0"]
        command += [word for setting in settings for word in ("-X", setting)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.sent: list[bytes] = []
        self.acked: list[bytes] = []
        self.errors: list[str] = []
        self.said: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said += [line.decode(errors="replace").strip() for line in self.process.stderr]

    def send(self, value: bytes) -> None:
        assert self.process.stdin is not None
        self.sent.append(value)
        with contextlib.suppress(BrokenPipeError):  # its exit code will tell
            self.process.stdin.write(value + b"\n")
            self.process.stdin.flush()

    def finish(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(PATIENCE + 20)
        self.reader.join(5)
        self.errors += [line for line in self.said if "Delivery failed" in line]
        if code == 0 and not self.errors:
            self.acked += self.sent
        else:
            self.errors.append(f"exit code {code}: {self.said[-3:]}")


WRITERS: dict[str, Callable[[str, str], Writer]] = {
    "confluent-kafka": ConfluentWriter,
    "kafka-python": KafkaPythonWriter,
    "aiokafka": AiokafkaWriter,
    "kcat": KcatWriter,
}


def read(client: str, bootstrap: str, topic: str, count: int) -> list[bytes]:
    """So many values from the beginning of partition 0, with that client."""
    match client:
        case "confluent-kafka":
            return clients.confluent_read(bootstrap, topic, count)
        case "kafka-python":
            return clients.kafka_python_read(bootstrap, topic, count)
        case "aiokafka":
            return clients.aiokafka_read(bootstrap, topic, count)
        case _:
            told = clients.kcat(
                bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-q", "-u"
            )
            return told.encode().split()
