"""A fuzz of the wire that knows its structure: requests by Kafka's schemas, with values that somebody might not expect.

    python -m tests.support.wire_fuzz [--seconds N] [--seed N]

Three processes with Kafka's default settings, but for longer sessions, and with the listeners of `insync cluster up`.
Strangers send random requests of every API to every listener, and private frames of brokers (`peer_fuzz`). Some frames
have flipped bytes, some are cut, some are sent on and on without reading an answer. Beside them a bystander, a process
of its own, writes with acks=all, first alone, then beside the strangers, then alone again. The figures are how long its
longest write took, whether one was refused, and what the brokers have of memory. A seed has always the same frames.

It exits with 1, and says why, if a write was refused, if a broker has ended, if a write took more than a second, or if
a broker's memory grew by more than limits account for. Of a write it does not count for how long processes that could
go on waited for a processor: a busy machine is not what is looked for.

Whoever reaches the ports of brokers may do what brokers do, so frames are of a broker that there is not, or damaged.
The bystander's topic is not named, for a client may delete a topic. Nor is UnregisterBroker sent, which takes the
bystander's leader away, as it is meant to.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeAlias, cast

import attrs
from kio.index import load_request_schema
from tests.support.clusters import three_processes
from tests.support.peer_fuzz import OF_BROKERS, private_frame, request_of_a_broker
from tests.support.schema_values import Values

from isr_broker.core.message_json import PEER_API
from isr_broker.core.record_batch import new_batch
from isr_broker.settings import Settings
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Processes, apart

Harm: TypeAlias = Callable[[Processes], None]

APIS: Final = sorted(set(protocol.SERVED_VERSIONS) - {*OF_BROKERS, protocol.UNREGISTER_BROKER})
BYSTANDER: Final = "bystander"

MOST_SECONDS: Final = 1.0
"""A write of a bystander may take so long."""
MOST_GROWTH: Final = 400_000_000
"""Bytes: what is in flight, twice for the request that is being read, and what groups have."""
MOST_KEPT: Final = 150_000_000
"""Bytes that a broker may have more afterwards: what groups have is kept."""


@attrs.define
class Requests(Values):
    """Random requests, by Kafka's schemas; `cluster` is the id of the cluster that private frames name."""

    cluster: str = "insync"

    def frame(self) -> tuple[int, bytes]:
        """An API of clients, and a frame of it."""
        key = self.chance.choice(APIS)
        version = self.chance.randint(*protocol.SERVED_VERSIONS[key])
        fields = self.entity(load_request_schema(key, version), self.chance.choice((1, 1, 3, 3, 30, 1_000)))
        client = "c" * 32_760 if self.chance.random() < 0.2 else "fuzz"
        frame = bytearray(protocol.ask(key, version, self.chance.randrange(2**31), client, fields))
        if self.chance.random() < 0.3:
            for _ in range(self.chance.choice((1, 1, 3, 20))):
                frame[self.chance.randrange(4, len(frame))] = self.chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        return key, bytes(frame)

    def any_frame(self) -> tuple[int, bytes]:
        """An API, and a frame of it, of a client or of a broker."""
        match self.chance.randrange(8):
            case 0:
                return PEER_API, private_frame(self.chance, self.cluster)
            case 1:
                return request_of_a_broker(self.chance, self)
            case _:
                return self.frame()


@attrs.define
class Figures:
    """What a run has seen: times in seconds, memory in bytes.

    - `beside`, `alone`: the longest write. `stall` is the longest without the time for which processes waited for a
      processor, `processor` what a broker used of one during one write at most.
    """

    frames: Counter[int] = attrs.field(factory=Counter[int])
    sent: int = 0
    closed: int = 0
    alone: float = 0.0
    beside: float = 0.0
    stall: float = 0.0
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
            f"{1e3 * self.alone:.0f} ms alone; without waits for a processor {1e3 * self.stall:.0f} ms, "
            f"of a broker's processor {1e3 * self.processor:.0f} ms",
            f"memory of the largest broker: {self.before / 1e6:.0f} MB, {self.peak / 1e6:.0f} MB at most, "
            f"{self.after / 1e6:.0f} MB afterwards",
            *self.ended,
        ]

    def complaints(self) -> list[str]:
        """What must not be, a sentence each; none if all is well."""
        grown, kept = self.peak - self.before, self.after - self.before
        options = [
            (not self.writes, "no write of the bystander was acknowledged"),
            (self.refused > 0, f"{self.refused} writes of the bystander were refused: {dict(self.errors)}"),
            (
                max(self.stall, self.processor) > MOST_SECONDS,
                f"a write of the bystander took {1e3 * max(self.stall, self.processor):,.0f} ms, it may take "
                f"{1e3 * MOST_SECONDS:,.0f} ms",
            ),
            (grown > MOST_GROWTH, f"a broker grew by {grown / 1e6:,.0f} MB, it may by {MOST_GROWTH / 1e6:,.0f} MB"),
            (kept > MOST_KEPT, f"a broker kept {kept / 1e6:,.0f} MB, it may keep {MOST_KEPT / 1e6:,.0f} MB"),
        ]
        return [*(sentence for is_so, sentence in options if is_so), *self.ended]


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
    sizes = [0]
    for running in brokers.running.values():
        with contextlib.suppress(OSError):  # it has ended
            text = Path(f"/proc/{running.process.pid}/status").read_text()
            sizes += [1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")]
    return max(sizes)


def seconds_of(pid: int) -> tuple[float, float]:
    """How long a process has run, and how long it has waited for a processor while it could go on."""
    fields = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(fields[0]) / 1e9, int(fields[1]) / 1e9


def stands_by(port: int, pids: Sequence[int]) -> None:
    """Write to the first of the processes until the input ends; then say what was seen, as JSON."""
    os.set_blocking(0, False)
    figures = Figures()
    try:
        _writes_on(port, pids, figures)
    except OSError:
        figures.refused += 1
        figures.errors[_UNKNOWN] += 1
    print(json.dumps(attrs.asdict(figures)))


def _writes_on(port: int, pids: Sequence[int], figures: Figures) -> None:
    batch = new_batch(b"x" * 100)
    with socket.create_connection((HOST, port), timeout=120) as connection:
        while not _input_has_ended():
            began, before = time.monotonic(), [seconds_of(pid) for pid in (os.getpid(), *pids)]
            try:
                error = _write(connection, batch)
            finally:
                took = time.monotonic() - began
                figures.beside = max(figures.beside, took)
            if not figures.writes:
                print("writes", flush=True)
            figures.writes += 1
            figures.refused += error != 0
            figures.errors[error] += error != 0
            used, waits = [*zip(*map(_less, [seconds_of(pid) for pid in (os.getpid(), *pids)], before), strict=True)]
            # Its own, that of the leader, and of the followers, which go on at the same time, the longer.
            figures.stall = max(figures.stall, took - waits[0] - waits[1] - max(waits[2:]))
            figures.processor = max(figures.processor, *used[1:])
            time.sleep(0.005)


_UNKNOWN: Final = -1
"""What a write is refused with whose connection is closed."""


def _less(now: tuple[float, float], before: tuple[float, float]) -> tuple[float, float]:
    return now[0] - before[0], now[1] - before[1]


def _input_has_ended() -> bool:
    try:
        return not os.read(0, 1)
    except BlockingIOError:
        return False


def _sends(ports: list[int], seed: int, cluster: str, figures: Figures, over: threading.Event) -> None:
    """One stranger: a connection with some frames, then the next; now and then it does not read."""
    try:
        _sends_on(ports, Requests(Random(seed), cluster), figures, over)
    except Exception as error:  # or the fuzz would go on without it, and find nothing
        figures.ended.append(f"a stranger has ended: {error!r}")


def _sends_on(ports: list[int], requests: Requests, figures: Figures, over: threading.Event) -> None:
    while not over.is_set():
        reads = requests.chance.random() < 0.8
        count = requests.chance.randint(1, 20)
        with (
            contextlib.suppress(OSError),
            socket.create_connection((HOST, requests.chance.choice(ports)), timeout=2) as connection,
        ):
            for _ in range(count):
                key, frame = requests.any_frame()
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


def cluster_of(root: Path) -> tuple[Processes, list[int]]:
    """Three brokers with the listeners of `insync cluster up`, and all their ports."""
    # A busy machine that lets no broker speak for nine seconds is not what is looked for.
    patient = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}
    settings = Settings.from_properties({"min.insync.replicas": "2", "default.replication.factor": "3", **patient})
    brokers = three_processes(root, settings)
    controller, *peers = free_ports(4)
    own = apart(brokers.ports, controller)
    for row, port in zip(own.values(), peers, strict=True):
        row["listeners"] = row["listeners"].replace(f"BROKERS://{HOST}:0", f"BROKERS://{HOST}:{port}")
    brokers.own, brokers.controller = own, (HOST, controller)
    return brokers, [*brokers.ports.values(), *peers, controller]


def _phase(
    brokers: Processes,
    figures: Figures,
    seconds: float,
    strangers: Sequence[threading.Thread] = (),
    over: threading.Event | None = None,
    harm: Harm | None = None,
) -> Figures:
    """What the bystander sees for so long; the memory of brokers goes to the figures. Strangers end when it is over."""
    pids = [str(running.process.pid) for running in brokers.running.values()]
    command = [sys.executable, "-m", "tests.support.wire_fuzz", "--bystander", str(brokers.ports[1]), *pids]
    bystander = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert bystander.stdout is not None
    first = bystander.stdout.readline()
    for stranger in strangers:
        stranger.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        figures.peak = max(figures.peak, resident(brokers))
        time.sleep(0.2)
        if harm is not None and time.monotonic() > end - seconds / 2:
            harm(brokers)
            harm = None
    if over is not None:
        over.set()
    said, _ = bystander.communicate(timeout=300)
    for stranger in strangers:
        stranger.join()
    # Who could not write at all has said so at once.
    values = cast("dict[str, object]", json.loads(said or first))
    errors = Counter({int(code): count for code, count in cast("dict[str, int]", values["errors"]).items()})
    return cast("Callable[..., Figures]", Figures)(**{**values, "errors": errors})


def campaign(seconds: float, seed: int, root: Path, clients: int = 3, harm: Harm | None = None) -> Figures:
    """So many strangers for so long; `harm` is done to the brokers after half of it."""
    (brokers, ports), figures = cluster_of(root), Figures()
    try:
        brokers.start_all()
        prepare(brokers.ports[1])
        alone, over = _phase(brokers, figures, 5.0), threading.Event()
        figures.before = resident(brokers)
        strangers = [
            threading.Thread(target=_sends, args=(ports, seed * 1_000 + n, brokers.cluster, figures, over))
            for n in range(clients)
        ]
        beside = _phase(brokers, figures, seconds, strangers, over, harm)
        again = _phase(brokers, figures, 3.0)
        figures.after = resident(brokers)
        figures.alone, figures.beside = max(alone.beside, again.beside), beside.beside
        figures.stall, figures.processor = max(beside.stall, again.stall), max(beside.processor, again.processor)
        for each in (alone, beside, again):
            figures.writes += each.writes
            figures.refused += each.refused
            figures.errors += each.errors
        figures.ended += [
            f"broker {broker} has ended: {running.last[-1]}"
            for broker, running in brokers.running.items()
            if running.exit_code is not None
        ]
    finally:
        brokers.kill_all()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bystander", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bystander:
        stands_by(options.bystander[0], options.bystander[1:])
        return 0
    root = Path(tempfile.mkdtemp())
    try:
        figures = campaign(options.seconds, options.seed, root)
    finally:
        shutil.rmtree(root)
    print("\n".join(figures.lines()))
    complaints = figures.complaints()
    if complaints:
        print("wire_fuzz: " + "; ".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
