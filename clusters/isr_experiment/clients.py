"""Ordinary clients of Kafka that note what they do and see: producers at a pace, consumers, a reader at the end."""

# The clients have no complete types of their own, so here, and only here, the checkers look less closely.
# pyright: basic

from __future__ import annotations

import contextlib
import importlib.util
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from isr_broker.wire import protocol
from isr_cluster.admin import Admin, RequestRefused
from isr_experiment.recorder import PARTITION, TOPIC, Recorder

NUMBER = 0
PATIENCE = 30
"""Seconds that a client waits for room, and at the end for the last answers."""
GIVES_UP = 300
"""Seconds after which a client gives a record up, longer than any run. An idempotent producer that does so goes on with
a higher epoch, and what it then sends again no broker can know to be a second time
(tests/isr_broker/test_client_gives_up.py)."""
MOST_WAITING = 4_000
SPACE = 10_000_000
"""Values of one producer lie below the next multiple of this."""

CLIENT_MODULES = {"confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}


class NoClient(Exception):
    """A client is not installed; the message says which."""


def check(clients: tuple[str, ...]) -> None:
    """NoClient if one of them is missing."""
    for name in clients:
        if importlib.util.find_spec(CLIENT_MODULES[name]) is None:
            raise NoClient(f"the client {name} is not installed; the experiments need it (pip install {name})")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it would tell of every connection that was refused


def _quiet() -> logging.Logger:
    """What a client says when it gives up is in the history, too."""
    logger = logging.getLogger("isr_experiment.clients")
    logger.disabled = True
    return logger


class Producing(Protocol):
    """One producer of some library."""

    def send(self, value: int) -> None:
        """Hand a value over."""
        ...

    def serve(self) -> None:
        """Let it call back."""
        ...

    def finish(self, patience: float) -> None:
        """Wait until every value was acknowledged or given up."""
        ...


def told_offset(acks: str, offset: int | None) -> int | None:
    """The offset that a broker told a client; with acks=0 nobody did, and clients make one up."""
    return offset if acks != "0" and offset is not None and offset >= 0 else None


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def __init__(
        self, name: str, bootstrap: str, acks: str, idempotent: bool, batches: bool, recorder: Recorder
    ) -> None:
        import confluent_kafka

        self.name, self.acks, self.recorder = name, acks, recorder
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "enable.idempotence": idempotent,
            "linger.ms": 5,
            "message.timeout.ms": GIVES_UP * 1000,
            "request.timeout.ms": 2_000,
            "socket.timeout.ms": 3_000,
            "socket.connection.setup.timeout.ms": 2_000,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        if not batches:
            settings["batch.num.messages"] = 1
        if not idempotent:
            settings["max.in.flight.requests.per.connection"] = 1
        self.producer = confluent_kafka.Producer(settings, logger=_quiet())
        self.error = confluent_kafka.KafkaException

    def send(self, value: int) -> None:
        def note_delivery(error, message) -> None:  # type: ignore[no-untyped-def]
            why = "" if error is None else str(error.name())
            self.recorder.note_outcome(self.name, value, told_offset(self.acks, message.offset()), why)

        while len(self.producer) >= MOST_WAITING:
            self.serve()
            time.sleep(0.02)
        self.recorder.sends(self.name, value, self.acks)
        try:
            self.producer.produce(self.recorder.topic, str(value).encode(), partition=NUMBER, on_delivery=note_delivery)
        except (self.error, BufferError) as refused:
            # Its own records went missing, and it takes no more.
            self.recorder.note_outcome(self.name, value, None, type(refused).__name__)

    def serve(self) -> None:
        with contextlib.suppress(self.error):  # a fatal error is told of each record, too
            self.producer.poll(0)

    def finish(self, patience: float) -> None:
        with contextlib.suppress(self.error):
            self.producer.flush(patience)


class KafkaPython:
    """kafka-python."""

    def __init__(
        self, name: str, bootstrap: str, acks: str, idempotent: bool, batches: bool, recorder: Recorder
    ) -> None:
        import kafka  # type: ignore[import-untyped]

        self.name, self.acks, self.recorder = name, acks, recorder
        self.producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_in_flight_requests_per_connection=5 if idempotent else 1,
            linger_ms=5 if batches else 0,
            batch_size=16_384 if batches else 0,
            delivery_timeout_ms=GIVES_UP * 1000,
            request_timeout_ms=3_000,
            reconnect_backoff_max_ms=200,
            metadata_max_age_ms=1_000,
            max_block_ms=PATIENCE * 1000,
        )

    def send(self, value: int) -> None:
        self.recorder.sends(self.name, value, self.acks)
        try:
            future = self.producer.send(self.recorder.topic, str(value).encode(), partition=NUMBER)
        except Exception as refused:
            self.recorder.note_outcome(self.name, value, None, type(refused).__name__)
            return
        future.add_callback(
            lambda told: self.recorder.note_outcome(self.name, value, told_offset(self.acks, told.offset))
        )
        future.add_errback(lambda error: self.recorder.note_outcome(self.name, value, None, type(error).__name__))

    def serve(self) -> None:
        """It has a thread of its own."""

    def finish(self, patience: float) -> None:
        with contextlib.suppress(Exception):
            self.producer.flush(patience)
        with contextlib.suppress(Exception):
            self.producer.close(timeout=5)


KINDS: Mapping[str, Callable[[str, str, str, bool, bool, Recorder], Producing]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
}


class Writer:
    """A producer that sends 1, 2, 3 ... above `first` at a pace, in a thread, until it is told to stop."""

    def __init__(self, producer: Producing, first: int, per_second: float, most: int) -> None:
        self.producer, self.first, self.per_second, self.most = producer, first, per_second, most
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """No more values; those on their way go on."""
        self.over.set()

    def finish(self, patience: float) -> None:
        """Until all were acknowledged or given up."""
        self.stop()
        self.thread.join(patience)
        self.producer.finish(patience)

    def _run(self) -> None:
        began = time.monotonic()
        for n in range(1, self.most + 1):
            self.producer.send(self.first + n)
            while True:
                self.producer.serve()
                wait = began + n / self.per_second - time.monotonic()
                if self.over.is_set():
                    return
                if wait <= 0:
                    break
                time.sleep(min(wait, 0.02))
        while not self.over.wait(0.02):
            self.producer.serve()


def _value(data: object) -> int | None:
    return int(data) if isinstance(data, bytes) and data.isdigit() else None


class Reader:
    """A consumer with an assignment of its own, which polls from the beginning until it is told to stop."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder, rack: str = "") -> None:
        import confluent_kafka

        self.name, self.recorder = name, recorder
        self.place = confluent_kafka.TopicPartition
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": "experiment",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "socket.timeout.ms": 3_000,
            "socket.connection.setup.timeout.ms": 2_000,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 1_000,
            "fetch.wait.max.ms": 200,
            "client.rack": rack,
            "log_level": 0,
        }
        self.consumer = confluent_kafka.Consumer(settings)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.resets = 0

    def begin(self) -> None:
        self._assign()
        self.thread.start()

    def _assign(self) -> None:
        self.recorder.says("assign", "invoke", self.name, partitions=[self.recorder.partition], seek="beginning")
        self.consumer.assign([self.place(self.recorder.topic, NUMBER, 0)])
        self.recorder.says("assign", "ok", self.name)

    def finish(self) -> None:
        self.over.set()
        self.thread.join(20)

    def _run(self) -> None:
        while not self.over.is_set():
            self.recorder.says("poll", "invoke", self.name)
            messages = self.consumer.consume(500, 0.25)
            bad = [str(error.name()) for m in messages if (error := m.error()) is not None]
            good = [m for m in messages if m.error() is None]
            rows = [[m.offset(), _value(m.value()), _epoch(m)] for m in good]
            lost = [name for name in bad if name in ("_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE")]
            more = {"diverged": [self.recorder.partition]} if lost else {}
            self.recorder.says("poll", "ok", self.name, records={self.recorder.partition: rows}, **more)
            if lost:
                # The log ends before what it has read: it was told, and begins again.
                self.resets += 1
                self._assign()
        self.consumer.close()


def _epoch(message) -> int:  # type: ignore[no-untyped-def]
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


class FollowerReader:
    """A consumer that asks the followers by turns, never the leader (KIP-392; no client has to be told to).

    It fetches through Kafka's protocol itself: an ordinary client reads from a follower only while the leader sends it
    there, by its rack.
    """

    def __init__(
        self, name: str, addresses: Mapping[int, tuple[str, int]], leader: Callable[[], int | None], recorder: Recorder
    ) -> None:
        self.name, self.addresses, self.leader, self.recorder = name, addresses, leader, recorder
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.record_counts: dict[int, int] = {}
        """Records that each broker gave."""
        self.resets = 0

    def begin(self) -> None:
        self.thread.start()

    def finish(self) -> None:
        self.over.set()
        self.thread.join(20)

    def _assign(self) -> None:
        self.recorder.says("assign", "invoke", self.name, partitions=[PARTITION], seek="beginning")
        self.recorder.says("assign", "ok", self.name)

    def _run(self) -> None:
        turn = position = 0
        self._assign()
        while not self.over.wait(0.05):
            turn += 1
            brokers = [b for b in self.addresses if b != self.leader()]
            broker = brokers[turn % len(brokers)]
            self.recorder.says("poll", "invoke", self.name)
            try:
                with Admin(self.addresses[broker], 1.0) as admin:
                    code, rows = _fetched(admin, position)
            except RequestRefused:
                self.recorder.says("poll", "info", self.name, error="NETWORK_EXCEPTION")
                continue
            more = {"diverged": [PARTITION]} if code == OUT_OF_RANGE else {}
            self.recorder.says("poll", "ok", self.name, records={PARTITION: rows}, node=broker, **more)
            self.record_counts[broker] = self.record_counts.get(broker, 0) + len(rows)
            position = rows[-1][0] + 1 if rows else position
            if code == OUT_OF_RANGE and position:
                self.resets += 1
                position = 0
                self._assign()


OUT_OF_RANGE = 1


def _fetched(admin: Admin, offset: int) -> tuple[int, list[list[int]]]:
    """The error, and what is there from the offset on."""
    asked = {"partition": NUMBER, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    body = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 0}
    told = admin.ask(protocol.FETCH, 4, {**body, "topics": [{"topic": TOPIC, "partitions": [asked]}]})
    part = told.all("responses")[0].all("partitions")[0]
    code, data = part.number("error_code"), part.data("records") or b""
    return code, [[at, value] for at, value in records_of(data) if at >= offset and value is not None]


def records_of(data: bytes) -> list[tuple[int, int | None]]:
    """Offsets and values of whole batches."""
    from kafka.record import MemoryRecords  # type: ignore[import-untyped]

    found: list[tuple[int, int | None]] = []
    records = MemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        found += [(record.offset, _value(bytes(record.value))) for record in batch]
    return found


def read_all(bootstrap: str, recorder: Recorder, patience: float) -> list[tuple[int, int]] | None:
    """All of the partition with a new consumer, noted as the final read; None if its end was not reached in time."""
    import confluent_kafka

    settings: dict[str, str | int | bool] = {"bootstrap.servers": bootstrap, "group.id": "end", "log_level": 0}
    settings |= {"enable.auto.commit": False, "auto.offset.reset": "earliest", "reconnect.backoff.max.ms": 200}
    consumer = confluent_kafka.Consumer(settings)
    place = confluent_kafka.TopicPartition(recorder.topic, NUMBER, 0)
    until = time.monotonic() + patience
    records: list[tuple[int, int, int]] = []
    recorder.says("final-read", "invoke", "end", partition=recorder.partition)
    end = None
    while end is None and time.monotonic() < until:
        with contextlib.suppress(confluent_kafka.KafkaException):
            _, end = consumer.get_watermark_offsets(place, timeout=5, cached=False)
    consumer.assign([place])
    position = 0
    while end is not None and position < end and time.monotonic() < until:
        for message in consumer.consume(1_000, 0.5):
            offset, value = message.offset(), _value(message.value())
            if message.error() is None and offset is not None:
                records.append((offset, -1 if value is None else value, _epoch(message)))
                position = offset + 1
    consumer.close()
    if end is None or position < end:
        recorder.says("final-read", "info", "end", error="TIMED_OUT")
        return None
    rows = [[o, v if v >= 0 else None, e] for o, v, e in records]
    end = max(end, position)  # with acks=1 the watermark may have moved since it was asked for
    recorder.says("final-read", "ok", "end", partition=recorder.partition, records=rows, end=end)
    return [(o, v) for o, v, _ in records]
