"""Runs of the cores beyond the replay, for `coverage`: simulated runs with faults, and requests over sockets.

The requests are those of clients and admins, well formed and not. The brokers are servers in this process, on disks in
memory, so that the branches of their cores are counted; the requests cross a socket in Kafka's protocol.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import attrs

import isr_sim
from isr_broker.core.messages import BrokerId
from isr_broker.core.record_batch import new_batch
from isr_broker.designs import DESIGNS
from isr_broker.server import Server
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import Everything, MemoryDisk
from isr_broker.wire import protocol
from isr_cluster.admin import Address, Admin, RequestRefused, error_name
from isr_cluster.ports import HOST, free_ports
from isr_sim.scenario import parse, play
from isr_sim.simulate import QUICK, Config, simulate

Runs: TypeAlias = Callable[[str], object]
"""Runs the cores of a design, given by its name."""

SEEDS: Final = 12
SEEDS_OF_OTHERS: Final = 3


def run_simulations(design: str) -> None:
    """Runs with every fault and one or two partitions, fewer of other designs; and the scenarios on file."""
    for other in DESIGNS.values():
        settings = attrs.evolve(QUICK, insync_design=other)
        for seed in range(SEEDS if other.name == design else SEEDS_OF_OTHERS):
            simulate(seed, Config(settings=settings, partitions=1 + seed % 2))
    for file in sorted((Path(isr_sim.__file__).parent / "scenarios").glob("*.txt")):
        play(parse(file.read_text(encoding="utf-8")), 0)


SOURCES: Final[Mapping[str, Runs]] = {
    "simulated runs": run_simulations,
    "questions on sockets": lambda _: ask_over_sockets(),
}


T = TypeVar("T")

SETTINGS: Final = Settings(
    min_insync_replicas=2,
    default_replication_factor=3,
    message_max_bytes=2_000,
    replica_fetch_wait_max_ms=100,
    replica_fetch_backoff_ms=50,
    replica_socket_timeout_ms=500,
    controller_socket_timeout_ms=500,
    broker_session_timeout_ms=6_000,
    broker_heartbeat_interval_ms=200,
    offsets_topic_num_partitions=1,
)
PATIENCE: Final = 120.0
PREFERRED, UNCLEAN = 0, 1


@attrs.define
class Brokers:
    """Three servers in one thread; broker 1 has the controller."""

    ports: dict[BrokerId, int] = attrs.field(factory=lambda: dict(enumerate(free_ports(3), 1)))
    disks: dict[BrokerId, MemoryDisk] = attrs.field(factory=lambda: {b: MemoryDisk() for b in (1, 2, 3)})
    servers: dict[BrokerId, Server] = attrs.field(factory=dict[BrokerId, Server])
    loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.new_event_loop)

    def do(self, what: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the thread of the servers."""
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(PATIENCE)

    def at(self, broker: BrokerId) -> Address:
        """The address of a broker."""
        return HOST, self.ports[broker]

    def start(self, broker: BrokerId) -> None:
        """Start a broker on what is on its disk."""
        server = Server(broker, SETTINGS, self.disks[broker], self.at(broker), self.at(1), with_controller=broker == 1)
        self.servers[broker] = server
        self.do(server.start())

    def kill(self, broker: BrokerId) -> None:
        """End a broker at once."""
        self.do(self.servers.pop(broker).close())
        self.disks[broker].crash(Everything())

    def stop(self, broker: BrokerId) -> None:
        """Shut a broker down."""
        server = self.servers.pop(broker)
        self.loop.call_soon_threadsafe(server.shut_down)
        self.do(server.wait_for_end())


@contextmanager
def brokers() -> Generator[Brokers]:
    """Three brokers that have registered."""
    here = Brokers()
    thread = threading.Thread(target=here.loop.run_forever, daemon=True)
    thread.start()
    try:
        for broker in here.ports:
            here.start(broker)
        with Admin(here.at(1), PATIENCE) as admin:
            until(lambda: len(admin.brokers()) == len(here.ports))
        yield here
    finally:
        for broker in list(here.servers):
            here.kill(broker)
        here.loop.call_soon_threadsafe(here.loop.stop)
        thread.join(PATIENCE)


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds; AssertionError after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "the brokers do not come to it"
        time.sleep(0.02)


# Requests


def ask_over_sockets() -> dict[str, str]:
    """Ask brokers that run, are killed and shut down; the last error of each kind of request, by its description."""
    with brokers() as here, Admin(here.at(1), PATIENCE) as one, Admin(here.at(2), PATIENCE) as two:
        for topic in ("records", "kept", "lone"):
            on = [[2]] if topic == "lone" else [[1, 2, 3]] if topic == "records" else [[2, 3, 1]]
            one.create(topic, on=on)
            until(partial(_leads_everywhere, (one, two), topic, on[0][0]))
        answers = {**_topics(one), **_records(one), **_reads(one, two)}
        answers |= _elections(here, one) | _without_followers(here, one)
    return answers


def _leads_everywhere(admins: tuple[Admin, ...], topic: str, leader: BrokerId) -> bool:
    return all(_leads(admin, topic, leader) for admin in admins)


def _leads(admin: Admin, topic: str, leader: BrokerId) -> bool:
    try:
        return admin.partitions([topic])[0].leader == leader
    except RequestRefused:
        return False


def _code_name(code: int) -> str:
    return "NONE" if code == 0 else error_name(code)


def _topics(one: Admin) -> dict[str, str]:
    """Topics that cannot be, one that is only asked about, and one that is deleted."""
    requests: dict[str, tuple[str, dict[str, object]]] = {
        "a topic called ..": ("..", {}),
        "a topic that there is": ("records", {}),
        "a replica twice": ("other", {"assignments": [{"partition_index": 0, "broker_ids": [1, 1]}]}),
        "no partitions": ("other", {"num_partitions": 0}),
        "more replicas than brokers": ("other", {"replication_factor": 9}),
        "whether a topic may be": ("other", {}),
    }
    answers: dict[str, str] = {}
    for what, (name, more) in requests.items():
        fresh = {"num_partitions": 1, "replication_factor": 3} if "assignments" not in more else {}
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, **fresh, **more}
        fields = {"topics": [topic], "timeout": 10_000, "validate_only": "whether" in what}
        (answer,) = one.ask(protocol.CREATE_TOPICS, 5, fields).all("topics")
        answers[what] = _code_name(answer.number("error_code"))
    one.create("passing")
    for what, name in (("a topic is deleted", "passing"), ("a topic that there is not is deleted", "nowhere")):
        (answer,) = one.ask(protocol.DELETE_TOPICS, 5, {"topic_names": [name], "timeout": 10_000}).all("responses")
        answers[what] = _code_name(answer.number("error_code"))
    return answers


def _produced(admin: Admin, topic: str, records: bytes, acks: int = -1, timeout: int = 60_000) -> str:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    said = admin.ask(
        protocol.PRODUCE, 7, {"transactional_id": None, "acks": acks, "timeout": timeout, "topic_data": data}
    )
    (answer,) = said.all("responses")[0].all("partition_responses")
    return _code_name(answer.number("error_code"))


def _records(one: Admin) -> dict[str, str]:
    """Batches of idempotent producers in and out of order, and what is no batch."""
    good = new_batch(b"record")
    damaged_batch = good[:-1] + bytes([good[-1] ^ 1])

    def producer_answer(epoch: int, sequence: int, count: int = 1) -> str:
        return _produced(one, "records", new_batch(b"r" * count, count=count, producer=(7, epoch, sequence)))

    return {
        "a record": _produced(one, "records", good),
        "a record to a leader alone": _produced(one, "records", good, acks=1),
        "acks=5": _produced(one, "records", good, acks=5),
        "a flipped bit": _produced(one, "records", damaged_batch),
        "two batches": _produced(one, "records", good * 2),
        "too large a batch": _produced(one, "records", new_batch(b"r" * SETTINGS.message_max_bytes)),
        "a record to no topic": _produced(one, "nowhere", good),
        "a record to a follower": _produced(one, "kept", good),
        "a producer's first": producer_answer(epoch=1, sequence=0),
        "the same again": producer_answer(epoch=1, sequence=0),
        "one out of order": producer_answer(epoch=1, sequence=5),
        "one of an older epoch": producer_answer(epoch=0, sequence=0),
        "a new epoch that does not begin at 0": producer_answer(epoch=2, sequence=3),
        "a new epoch": producer_answer(epoch=2, sequence=0),
    }


def _fetched(admin: Admin, topic: str, offset: int, epoch: int = -1, wait: int = 0) -> str:
    asked = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": offset, "partition_max_bytes": 1_000}
    limits = {"replica_id": -1, "max_wait": wait, "min_bytes": 1, "max_bytes": 1_000, "isolation_level": 0}
    topics = [{"topic": topic, "partitions": [asked]}]
    said = admin.ask(protocol.FETCH, 11, {**limits, "session_id": 0, "session_epoch": -1, "topics": topics})
    (answer,) = said.all("responses")[0].all("partitions")
    return _code_name(answer.number("error_code"))


def _reads(one: Admin, two: Admin) -> dict[str, str]:
    """Consumers in and out of range, who wait, and at the wrong broker."""
    return {
        "a read": _fetched(one, "records", 0),
        "a read that waits": _fetched(two, "kept", 0, wait=50),
        "a read out of range": _fetched(one, "records", 1_000),
        "a read at a follower": _fetched(two, "records", 0),
        "a read of no topic": _fetched(one, "nowhere", 0),
    }


def _elected(admin: Admin, topic: str, kind: int) -> str:
    wanted = [{"topic": topic, "partitions": [0]}]
    fields = {"election_type": kind, "topic_partitions": wanted, "timeout": 10_000}
    (answer,) = admin.ask(protocol.ELECT_LEADERS, 1, fields).all("replica_election_results")
    return _code_name(answer.all("partition_result")[0].number("error_code"))


def _elections(here: Brokers, one: Admin) -> dict[str, str]:
    """The preferred leader leads, is away, is back; of a topic with one replica nobody is left."""
    answers = {
        "its preferred leader leads": _elected(one, "kept", PREFERRED),
        "an unclean election with a leader": _elected(one, "kept", UNCLEAN),
        "an election of no topic": _elected(one, "nowhere", PREFERRED),
    }
    here.kill(2)
    answers["a record that a killed broker lacks"] = _produced(one, "records", new_batch(b"r"), timeout=50)
    until(lambda: not _leads(one, "kept", 2) and not _leads(one, "lone", 2))
    answers["a preferred leader that is away"] = _elected(one, "kept", PREFERRED)
    answers["an unclean election of nobody"] = _elected(one, "lone", UNCLEAN)
    here.start(2)
    until(lambda: _leads(one, "lone", 2) and _elected(one, "kept", PREFERRED) == "NONE")
    until(lambda: _leads(one, "kept", 2))
    return answers


def _without_followers(here: Brokers, one: Admin) -> dict[str, str]:
    """The followers stop in order, and the minimum is missed."""
    here.stop(2)
    here.stop(3)
    until(lambda: one.partitions(["records"])[0].isr == (1,))
    return {"a record under the minimum": _produced(one, "records", new_batch(b"r"))}
