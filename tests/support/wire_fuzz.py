"""A fuzz of the wire that knows its structure: requests by Kafka's schemas, with values that somebody might not expect.

    python -m tests.support.wire_fuzz [--seconds N] [--seed N]

Three processes with Kafka's default settings, but for longer sessions. Clients send random requests of every API that
is a client's. Some frames have flipped bytes, some are cut, some are sent on and on without reading an answer. Beside
them a bystander writes with acks=all, first alone, then beside the clients, then alone again. The figures are how long
its longest write took, whether one was refused, and what the brokers have of memory. A seed has always the same frames.

Requests of brokers (AlterPartition, BrokerRegistration, BrokerHeartbeat) are left out: who may send them is another
question. The bystander's topic is not named, for a client may delete a topic. Nor is UnregisterBroker sent, which takes
the bystander's leader away, as it is meant to.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, cast

import attrs
from kio.index import load_request_schema
from kio.static.protocol import Entity
from tests.support.clusters import three_processes

from isr_broker.core.record_batch import batch_around, crc32c, new_batch
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.decoder import FIXED_SIZE_TYPES, Field, shape
from isr_broker.wire.protocol import Answer
from isr_cluster.ports import HOST
from isr_cluster.processes import Processes

_OF_BROKERS: Final = {protocol.ALTER_PARTITION, protocol.BROKER_REGISTRATION, protocol.BROKER_HEARTBEAT}
APIS: Final = sorted(set(protocol.SERVED_VERSIONS) - _OF_BROKERS - {protocol.UNREGISTER_BROKER})
BYSTANDER: Final = "bystander"
_NAMES: Final = ("t", "other", "a.b", "", "..", "x" * 249, "x" * 300, "ä", "n0", "n1", "n2", "n3", "g", "1", "2", "3")
_NUMBERS: Final = (-2, -1, 0, 1, 2, 3, 5, 10, 100, 1_000, 100_000)
_BITS: Final = {"b": 7, "h": 15, "i": 31, "q": 63, "H": 16, "I": 32}


@attrs.define
class Requests:
    """Random requests, by Kafka's schemas."""

    chance: Random

    def frame(self) -> tuple[int, bytes]:
        """An API, and a frame of it."""
        key = self.chance.choice(APIS)
        version = self.chance.randint(*protocol.SERVED_VERSIONS[key])
        fields = self.entity(load_request_schema(key, version), self.chance.choice((1, 1, 3, 3, 30, 1_000)))
        frame = bytearray(protocol.ask(key, version, self.chance.randrange(2**31), "fuzz", fields))
        if self.chance.random() < 0.3:
            for _ in range(self.chance.choice((1, 1, 3, 20))):
                frame[self.chance.randrange(4, len(frame))] = self.chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        return key, bytes(frame)

    def entity(self, schema: type[Entity], most: int) -> Answer:
        """Fields of an entity, with up to so many items in an array."""
        fields = (field for field in shape(schema) if field.tag is None or self.chance.random() < 0.5)
        return {field.name: self.value(field, most) for field in fields}

    def value(self, field: Field, most: int) -> object:
        """A value of a field."""
        if field.nullable and self.chance.random() < 0.1:
            return None
        if not field.array:
            return self.one(field, most)
        count = self.chance.randint(0, most)
        if self.chance.random() < 0.3:
            return [self.one(field, 2)] * count
        return [self.one(field, max(1, most // 10)) for _ in range(count)]

    def one(self, field: Field, most: int) -> object:
        """One value, not an array of them."""
        if field.holds is not None:
            return self.entity(field.holds, most)
        match field.kind:
            case "string":
                return self.chance.choice(_NAMES)
            case "records":
                return self.records()
            case "bytes":
                return self.chance.randbytes(self.chance.choice((0, 1, 50)))
            case "uuid":
                return self.chance.choice((bytes(16), self.chance.randbytes(16), b"insync\0\0" + bytes(7) + b"\5"))
            case "bool":
                return self.chance.random() < 0.5
            case "float64":
                return self.chance.random()
            case kind:
                return self.number(field.name, FIXED_SIZE_TYPES[kind or ""])

    def number(self, name: str, letter: str) -> int:
        """A number of a size; times to wait are short, so that not all clients only wait."""
        if name in ("max_wait", "timeout", "rebalance_timeout"):
            return self.chance.choice((-1, 0, 1, 100))
        bits = _BITS[letter]
        most, least = (1 << bits) - 1, -(1 << bits) if letter.islower() else 0
        number = self.chance.choice((*_NUMBERS, most, least))
        return min(max(number, least), most)

    def records(self) -> bytes:
        """A batch, or what is none."""
        good = bytearray(
            new_batch(self.chance.randbytes(self.chance.choice((1, 100))), self.chance.choice((1, 3, 300)))
        )
        match self.chance.randrange(4):
            case 0:
                return bytes(good)
            case 1:
                return batch_around(b"\xff" * self.chance.choice((39, 10_000)), self.chance.choice((1, 30_000_000)))
            case 2:
                good[self.chance.randrange(21, len(good))] = self.chance.choice((0, 1, 0x7F, 0x80, 0xFF))
                good[17:21] = crc32c(bytes(good[21:])).to_bytes(4, "big")
                return bytes(good)
            case _:
                return self.chance.randbytes(self.chance.choice((0, 10, 100)))


@attrs.define
class Figures:
    """What a run has seen: times in seconds, memory in bytes.

    `processor` is what a broker used of a processor during one write at most, whoever else wants the processor.
    """

    frames: Counter[int] = attrs.field(factory=Counter[int])
    sent: int = 0
    closed: int = 0
    alone: float = 0.0
    beside: float = 0.0
    processor: float = 0.0
    writes: int = 0
    errors: Counter[int] = attrs.field(factory=Counter[int])
    refused: int = 0
    before: int = 0
    peak: int = 0
    after: int = 0
    ended: list[str] = attrs.field(factory=list[str])

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"{sum(self.frames.values()):,} frames, {self.sent / 1e6:,.1f} MB, of {len(self.frames)} APIs; the broker "
            f"closed {self.closed:,} connections",
            f"{self.writes:,} writes of a bystander, {self.refused} refused {dict(self.errors)}; "
            f"the longest {1e3 * self.beside:.0f} ms, "
            f"{1e3 * self.alone:.0f} ms alone; of a broker's processor {1e3 * self.processor:.0f} ms",
            f"memory of the largest broker: {self.before / 1e6:.0f} MB, {self.peak / 1e6:.0f} MB at most, "
            f"{self.after / 1e6:.0f} MB afterwards",
            *self.ended,
        ]


def talk(port: int, key: int, version: int, fields: Answer) -> protocol.Fields:
    """One request on a connection of its own, and its answer."""
    with socket.create_connection((HOST, port), timeout=60) as connection:
        connection.sendall(protocol.ask(key, version, 1, "bystander", fields))
        return protocol.parse_answer(key, version, _take(connection, int.from_bytes(_take(connection, 4), "big"))).body


def _take(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def _write(connection: socket.socket, batch: bytes) -> int:
    rows = [{"index": 0, "records": batch}]
    fields: Answer = {"acks": -1, "timeout": 30_000, "topic_data": [{"name": BYSTANDER, "partition_data": rows}]}
    connection.sendall(protocol.ask(protocol.PRODUCE, 7, 1, "bystander", fields))
    answer = protocol.parse_answer(protocol.PRODUCE, 7, _take(connection, int.from_bytes(_take(connection, 4), "big")))
    return answer.body.all("responses")[0].all("partition_responses")[0].number("error_code")


def resident(brokers: Processes) -> int:
    """Bytes of memory of the broker that has most."""
    pids = [running.process.pid for running in brokers.running.values()]
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return max(1024 * int(text.split("VmRSS:")[1].split()[0]) for text in texts if "VmRSS:" in text)


def processor_seconds(brokers: Processes) -> list[float]:
    """What each broker has used of a processor so far."""
    stats = [Path(f"/proc/{running.process.pid}/stat").read_text() for running in brokers.running.values()]
    fields = [stat.rsplit(")", 1)[1].split() for stat in stats]
    return [(int(each[11]) + int(each[12])) / os.sysconf("SC_CLK_TCK") for each in fields]


def _stands_by(brokers: Processes, figures: Figures, over: Callable[[], bool]) -> float:
    """The longest write until it is over."""
    longest, batch = 0.0, new_batch(b"x" * 100)
    with socket.create_connection((HOST, brokers.ports[1]), timeout=120) as connection:
        while not over():
            began, used = time.monotonic(), processor_seconds(brokers)
            try:
                if (error := _write(connection, batch)) != 0:
                    figures.refused += 1
                    figures.errors[error] += 1
            except OSError:
                figures.refused += 1
                return max(longest, time.monotonic() - began)
            longest = max(longest, time.monotonic() - began)
            turns = (now - before for now, before in zip(processor_seconds(brokers), used, strict=True))
            figures.processor = max(figures.processor, *turns)
            figures.writes += 1
            time.sleep(0.005)
    return longest


def _sends(ports: list[int], seed: int, figures: Figures, over: Callable[[], bool]) -> None:
    """One client: a connection with some frames, then the next; now and then it does not read."""
    requests = Requests(Random(seed))
    while not over():
        reads = requests.chance.random() < 0.8
        count = requests.chance.randint(1, 20)
        with (
            contextlib.suppress(OSError),
            socket.create_connection((HOST, requests.chance.choice(ports)), timeout=2) as connection,
        ):
            for _ in range(count):
                key, frame = requests.frame()
                cut = len(frame) if requests.chance.random() < 0.95 else requests.chance.randrange(len(frame))
                figures.frames[key] += 1
                figures.sent += cut
                connection.sendall(frame[:cut])
                if reads and cut == len(frame) and not _reads(connection):
                    figures.closed += 1
                    break


def _reads(connection: socket.socket) -> bool:
    """Whether the connection goes on: an answer, or none in a while."""
    connection.settimeout(0.3)
    try:
        _take(connection, int.from_bytes(_take(connection, 4), "big"))
    except TimeoutError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(2)
    return True


def prepare(port: int) -> None:
    """The bystander's topic, led by broker 1, and some that are named."""
    topics: list[Answer] = [
        {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": n, "broker_ids": [1, 2, 3]} for n in range(count)],
        }
        for name, count in ((BYSTANDER, 1), ("t", 3), ("other", 20))
    ]
    end = time.monotonic() + 60
    with socket.create_connection((HOST, port), timeout=60) as connection:
        while True:
            talk(port, protocol.CREATE_TOPICS, 4, {"topics": topics, "timeout": 10_000})
            if _write(connection, new_batch(b"x")) == 0:
                return
            if time.monotonic() > end:
                raise TimeoutError("the bystander's topic is not written to")
            time.sleep(0.2)


def _note_longest(longest: list[float], brokers: Processes, figures: Figures, over: Callable[[], bool]) -> None:
    longest.append(_stands_by(brokers, figures, over))


def campaign(seconds: float, seed: int, root: Path, clients: int = 3) -> Figures:
    """So many clients for so long."""
    # A busy machine that lets no broker speak for nine seconds is not what is looked for.
    patient = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}
    settings = Settings.from_properties({"min.insync.replicas": "2", "default.replication.factor": "3", **patient})
    brokers, figures = three_processes(root, settings), Figures()
    try:
        brokers.start_all()
        port = brokers.ports[1]
        prepare(port)
        for phase in (5.0, seconds, 3.0):
            end = time.monotonic() + phase
            over = cast("Callable[[], bool]", lambda end=end: time.monotonic() > end)
            threads: list[threading.Thread] = []
            if phase == seconds:
                figures.before = resident(brokers)
                ports = list(brokers.ports.values())
                threads = [
                    threading.Thread(target=_sends, args=(ports, seed * 1_000 + n, figures, over))
                    for n in range(clients)
                ]
            for thread in threads:
                thread.start()
            longest: list[float] = []
            bystander = threading.Thread(target=_note_longest, args=(longest, brokers, figures, over))
            bystander.start()
            while bystander.is_alive():
                figures.peak = max(figures.peak, resident(brokers))
                bystander.join(0.2)
            for thread in threads:
                thread.join()
            if phase == seconds:
                figures.beside = longest[0]
            else:
                figures.alone = max(figures.alone, longest[0])
        figures.after = resident(brokers)
        figures.ended = [
            f"broker {broker} has ended: {running.last[-1]}"
            for broker, running in brokers.running.items()
            if running.exit_code is not None
        ]
    finally:
        for broker in list(brokers.running):
            brokers.kill(broker)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp())
    try:
        figures = campaign(options.seconds, options.seed, root)
    finally:
        shutil.rmtree(root)
    print("\n".join(figures.lines()))
    return 1 if figures.refused or figures.ended else 0


if __name__ == "__main__":
    sys.exit(main())
