"""What one client can do to all others: memory of a broker, and the latency of a bystander's writes, under each load.

    python bench/limits.py [--only NAME]... [--json]

Three processes with files in a folder and Kafka's default settings, two in sync at least. A bystander, a process of its
own, writes one record after the other with acks=all to a partition that broker 1 leads, which has the controller, too.
Meanwhile a client does one of the things below to broker 1. Figures are of one run; `docs/broker.md` has the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from typing import Final, cast

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.clusters import three_processes

from isr_broker.core.record_batch import batch_around, crc32c, encoded_record, new_batch
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import Answer, Response

HOST: Final = "127.0.0.1"
BYSTANDER: Final = "bystander"
LARGE: Final = "large"
WIDE: Final = "wide"
WIDTH: Final = 500
PATIENCE: Final = 90.0
"""Seconds after which a client no longer waits for an answer."""


def record(size: int) -> bytes:
    """One encoded record with a value of so many bytes, of up to 2**20."""
    value = bytes(size)
    inner = b"\0\0\0\1" + varint(2 * len(value)) + value + b"\0"
    return varint(2 * len(inner)) + inner


def varint(value: int) -> bytes:
    """An unsigned number of variable size."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


@attrs.define
class Client:
    """A connection to one broker, one request at a time unless it only sends."""

    port: int
    connection: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.connection = socket.create_connection((HOST, self.port), timeout=PATIENCE)

    def send(self, key: int, version: int, fields: Answer) -> None:
        """A request."""
        self.connection.sendall(protocol.ask(key, version, 1, "limits", fields))

    def answer(self, key: int, version: int) -> Response:
        """The answer to it."""
        return protocol.parse_answer(key, version, self.take(int.from_bytes(self.take(4), "big")))

    def wait(self, key: int, version: int, fields: Answer) -> int:
        """A request; how many bytes its answer has, which nobody looks at."""
        self.send(key, version, fields)
        return len(self.take(int.from_bytes(self.take(4), "big")))

    def take(self, size: int) -> bytes:
        """So many bytes."""
        data = bytearray()
        while len(data) < size:
            more = self.connection.recv(min(size - len(data), 1 << 20))
            if not more:
                raise ConnectionError("the broker has closed the connection")
            data += more
        return bytes(data)

    def ask(self, key: int, version: int, fields: Answer) -> Response:
        """A request and its answer."""
        self.send(key, version, fields)
        return self.answer(key, version)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def produced(port: int, topic: str, batch: bytes, count: int = 1) -> int:
    """The last error code of so many writes of a batch."""
    rows = [{"index": 0, "records": batch}]
    fields: Answer = {"acks": -1, "timeout": 30_000, "topic_data": [{"name": topic, "partition_data": rows}]}
    error = -1
    with Client(port) as client:
        for _ in range(count):
            answer = client.ask(protocol.PRODUCE, 7, fields)
            error = answer.body.all("responses")[0].all("partition_responses")[0].number("error_code")
    return error


# The bystander


def processor_seconds(pid: int) -> float:
    """What a process has used of a processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stands_by(port: int, pid: int) -> None:
    """Write until the standard input ends, then say what each write took, and how many were refused."""
    os.set_blocking(0, False)
    durations, turns, errors, batch = list[float](), list[float](), 0, new_batch(record(100))
    with Client(port) as client:
        rows = [{"index": 0, "records": batch}]
        fields: Answer = {"acks": -1, "timeout": 30_000, "topic_data": [{"name": BYSTANDER, "partition_data": rows}]}
        while True:
            try:
                if not os.read(0, 1):
                    break
            except BlockingIOError:
                pass
            began, processor_before = time.perf_counter(), processor_seconds(pid)
            try:
                answer = client.ask(protocol.PRODUCE, 7, fields)
            except OSError:
                durations.append(time.perf_counter() - began)
                errors += 1
                break
            durations.append(time.perf_counter() - began)
            if not turns:
                print("writes", flush=True)
            turns.append(processor_seconds(pid) - processor_before)
            errors += answer.body.all("responses")[0].all("partition_responses")[0].number("error_code") != 0
            time.sleep(0.01)
    print(json.dumps({"durations": durations, "turns": turns, "errors": errors}))


# What is done to the broker


def unknown_names(port: int) -> None:
    """Metadata of 6,000 topics that are not there, with auto-create."""
    topics = [{"name": f"t{n:04}"} for n in range(6_000)]
    with Client(port) as client:
        client.wait(protocol.METADATA, 4, {"topics": topics, "allow_auto_topic_creation": True})


def same_name(port: int) -> None:
    """Metadata of one topic of 500 partitions, named 2,000 times."""
    with Client(port) as client:
        client.wait(protocol.METADATA, 4, {"topics": [{"name": WIDE}] * 2_000, "allow_auto_topic_creation": False})


def tagged(port: int) -> None:
    """A frame of 20 MB that is all tagged fields."""
    count = 10_000_000
    head = struct.pack(">hhi", protocol.API_VERSIONS, 3, 1) + b"\0\1x\0" + b"\2a\2b" + varint(count)
    with Client(port) as client:
        client.connection.sendall(struct.pack(">i", len(head) + 2 * count) + head + b"\7\0" * count)
        try:
            client.take(4)
        except ConnectionError:
            return


def damaged_batches(port: int) -> None:
    """Batches that say what they are not, and ListOffsets by time over whatever was taken."""
    good = new_batch(b"\xff" * 39)
    many = bytearray(new_batch(b"\1" * 39, timestamp=1))
    struct.pack_into(">i", many, 23, 29_999_999)
    struct.pack_into(">i", many, 57, 30_000_000)
    struct.pack_into(">I", many, 17, crc32c(bytes(many[21:])))
    verdicts = [produced(port, LARGE, bytes(batch)) == 0 for batch in (many, good)]
    rows = [{"partition_index": 0, "timestamp": 10**13}, {"partition_index": 0, "timestamp": 1}]
    with Client(port) as client:
        for row in rows:
            client.wait(protocol.LIST_OFFSETS, 1, {"replica_id": -1, "topics": [{"name": LARGE, "partitions": [row]}]})
    print(f"    batches taken: {sum(verdicts)} of 2")


def fetch_fields(offset: int = 0) -> Answer:
    """A fetch of as much as there is."""
    rows = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 55_000_000}]
    waits: Answer = {"max_wait": 100, "min_bytes": 1, "max_bytes": 55_000_000}
    return {"replica_id": -1, **waits, "topics": [{"topic": LARGE, "partitions": rows}]}


def leave_answers_unread(port: int) -> None:
    """Twenty clients that each fetch 45 MB twice, and read nothing."""
    with ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(Client(port))
            client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.send(protocol.FETCH, 4, fetch_fields())
            client.send(protocol.FETCH, 4, fetch_fields())
        time.sleep(15)


def leave_frames_unsent(port: int) -> None:
    """Twenty clients that each send 60 MB of a frame of 100 MB, and no more."""
    with ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(Client(port))
            client.connection.settimeout(0.5)
            try:
                client.connection.sendall(struct.pack(">i", 100_000_000) + bytes(60_000_000))
            except OSError:
                continue
        time.sleep(5)


def partitions(key: int, version: int, fields: Callable[[list[dict[str, int]]], Answer]) -> Callable[[int], None]:
    """A request that names 45,000 partitions that are not there."""

    def load(port: int) -> None:
        row = {"timestamp": 1, "partition_max_bytes": 1_000_000, "fetch_offset": 0}
        rows = [{**row, "partition": n, "partition_index": n, "index": n} for n in range(45_000)]
        with Client(port) as client:
            try:
                client.wait(key, version, fields(rows))
            except ConnectionError as error:
                print(f"    {error}")

    return load


def topics(port: int) -> None:
    """CreateTopics with 6,000 names, then DeleteTopics with these and as many that are not there."""
    new = [{"name": f"n{n:04}", "num_partitions": 1, "replication_factor": 3} for n in range(4_900)]
    with Client(port) as client:
        client.wait(protocol.CREATE_TOPICS, 4, {"topics": new, "timeout": 60_000})
        client.wait(protocol.DELETE_TOPICS, 4, {"topic_names": [f"n{n:04}" for n in range(12_000)], "timeout": 60_000})


def by_time(port: int) -> None:
    """ListOffsets by time of 500 partitions, 10 times over in one request."""
    rows = [{"partition_index": n, "timestamp": 1} for n in range(WIDTH)] * 10
    with Client(port) as client:
        client.wait(protocol.LIST_OFFSETS, 1, {"replica_id": -1, "topics": [{"name": WIDE, "partitions": rows}]})


def large_batches(port: int) -> None:
    """Produce of ninety batches of 1 MB whose records are of several lengths, so that none tells of the next."""
    chance, records = Random(1), bytearray()
    count = 0
    while len(records) < 1_040_000:
        records += encoded_record(bytes(chance.randrange(4)), count)
        count += 1
    batch = batch_around(bytes(records), count)
    rows = [{"index": n, "records": batch} for n in range(90)]
    with Client(port) as client:
        topics = [{"name": WIDE, "partition_data": rows}]
        client.wait(protocol.PRODUCE, 7, {"acks": -1, "timeout": 60_000, "topic_data": topics})


def many_partial_frames(port: int) -> None:
    """4,000 connections that each send all of a request of 256 KiB but its last byte."""
    partial = struct.pack(">i", 1 << 18) + bytes((1 << 18) - 1)
    with ExitStack() as clients:
        for _ in range(4_000):
            client = clients.enter_context(Client(port))
            client.connection.settimeout(0.5)
            try:
                client.connection.sendall(partial)
            except OSError:
                continue
        time.sleep(5)


def many_groups(port: int) -> None:
    """Twenty clients that together join 1,000 groups, each with 900 KB of metadata, and wait for no answer."""
    with Client(port) as client:
        client.ask(protocol.FIND_COORDINATOR, 2, {"key": "g", "key_type": 0})
    time.sleep(5)
    errors: Counter[int] = Counter()

    def joins(first: int) -> None:
        with Client(port) as client:
            for n in range(first, first + 50):
                fields: Answer = {
                    "group_id": f"g{n}",
                    "session_timeout": 60_000,
                    "rebalance_timeout": 60_000,
                    "member_id": "",
                    "protocol_type": "consumer",
                    "protocols": [{"name": "range", "metadata": bytes(900_000)}],
                }
                errors[client.ask(protocol.JOIN_GROUP, 3, fields).body.number("error_code")] += 1

    threads = [Thread(target=joins, args=(50 * n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"    errors: {dict(errors)}")


LOADS: Final[dict[str, Callable[[int], None]]] = {
    "nothing": lambda port: time.sleep(5),
    "unknown-names": unknown_names,
    "same-name": same_name,
    "tagged-fields": tagged,
    "damaged-batches": damaged_batches,
    "unread-answers": leave_answers_unread,
    "unsent-frames": leave_frames_unsent,
    "fetch-of-many": partitions(
        protocol.FETCH,
        4,
        lambda rows: {"replica_id": -1, "max_bytes": 1, "topics": [{"topic": "none", "partitions": rows}]},
    ),
    "offsets-of-many": partitions(
        protocol.LIST_OFFSETS, 1, lambda rows: {"replica_id": -1, "topics": [{"name": "none", "partitions": rows}]}
    ),
    "produce-to-many": partitions(
        protocol.PRODUCE,
        7,
        lambda rows: {"acks": -1, "timeout": 1_000, "topic_data": [{"name": "none", "partition_data": rows}]},
    ),
    "many-topics": topics,
    "offsets-by-time": by_time,
    "large-batches": large_batches,
    "partial-frames": many_partial_frames,
    "many-groups": many_groups,
}


# Figures


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@contextmanager
def memory_samples(pid: int) -> Generator[list[int]]:
    """What a process has of memory, every 50 ms, by a process that this one's GIL does not hold up."""
    line = f"print(next(l for l in open('/proc/{pid}/status') if 'VmRSS' in l).split()[1])"
    program = f"import time\nwhile True:\n {line}\n time.sleep(.05)"
    samples: list[int] = []
    watcher = subprocess.Popen([sys.executable, "-P", "-u", "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        yield samples
    finally:
        watcher.kill()
        samples += [1024 * int(line) for line in watcher.communicate()[0].split()]


def figures(name: str, port: int, pid: int) -> dict[str, float | str]:
    """One load, with a bystander beside it."""
    before = resident(pid)
    command = [sys.executable, "-P", __file__, "--bystander", str(port), str(pid)]
    bystander = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert bystander.stdout is not None
    assert bystander.stdout.readline() == "writes\n"
    time.sleep(2)
    began = time.perf_counter()
    with memory_samples(pid) as samples:
        try:
            LOADS[name](port)
            took, end = time.perf_counter() - began, ""
        except (OSError, BadFrame) as error:
            took, end = time.perf_counter() - began, f" {error}"
        time.sleep(3)
    report = json.loads(bystander.communicate(timeout=2 * PATIENCE)[0])
    after = resident(pid)
    durations = cast("list[float]", report["durations"])
    return {
        "load": name + end,
        "answered after s": round(took, 2),
        "writes": len(durations),
        "median ms": round(1e3 * statistics.median(durations), 1),
        "longest ms": round(1e3 * max(durations)),
        "of the broker's processor ms": round(1e3 * max(report["turns"], default=0)),
        "refused": report["errors"],
        "MB before": round(before / 1e6),
        "MB most": round(max(samples) / 1e6),
        "MB after": round(after / 1e6),
    }


def prepare(port: int) -> None:
    """The topics, and 60 MB of records in one of them."""
    assigned = [{"partition_index": 0, "broker_ids": [1, 2, 3]}]
    topics = [
        {"name": n, "num_partitions": -1, "replication_factor": -1, "assignments": assigned} for n in (BYSTANDER, LARGE)
    ]
    wide = [{"partition_index": n, "broker_ids": [1, 2, 3]} for n in range(WIDTH)]
    topics.append({"name": WIDE, "num_partitions": -1, "replication_factor": -1, "assignments": wide})
    with Client(port) as client:
        while any(
            topic.number("error_code") not in (0, 36)
            for topic in client.ask(protocol.CREATE_TOPICS, 4, {"topics": topics, "timeout": 30_000}).body.all("topics")
        ):
            time.sleep(0.2)
    while produced(port, LARGE, new_batch(record(900_000))):
        time.sleep(0.2)
    while produced(port, BYSTANDER, new_batch(record(100))):
        time.sleep(0.2)
    produced(port, LARGE, new_batch(record(900_000)), 65)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(LOADS))
    parser.add_argument("--json", action="store_true", help="one line of JSON for each load")
    parser.add_argument("--bystander", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bystander:
        stands_by(*options.bystander)
        return
    defaults = Settings.from_properties({"min.insync.replicas": "2", "default.replication.factor": "3"})
    for name in options.only or LOADS:
        root = Path(tempfile.mkdtemp())
        brokers = three_processes(root, defaults)
        try:
            brokers.start_all()
            port = brokers.ports[1]
            prepare(port)
            row = figures(name, port, brokers.running[1].process.pid)
            print(json.dumps(row) if options.json else row, flush=True)
        finally:
            for broker in list(brokers.running):
                brokers.kill(broker)
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
