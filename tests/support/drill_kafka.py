"""What becomes of a runbook on Apache Kafka: drilled on the live cluster as anybody would, and then carried out.

Six brokers in three racks, and a seventh node that is the controller, each a process. A client writes with acks=all all
the time. An acknowledged record counts as lost where the partition has a leader, and whoever reads it from the
beginning does not get the record; or where nobody leads, and no disk has it. Brokers that are down with their disks are
started before that is looked at.

A power failure is a kill, and a cut of each log to what its broker had flushed, where nodes note that; else it is a
kill alone, for the page cache outlives a process. A broker that is cut off stands still. With `more_controllers` three
nodes vote, of which two are controllers alone.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import confluent_kafka
from tests.support.drill_cases import random_case

from isr_audit.live import Unreachable, read_cluster
from isr_audit.live_replicas import with_replicas
from isr_audit.releases import running
from isr_broker.core.record_batch import batches, key_and_value, record_places
from isr_broker.wire import protocol
from isr_cluster.admin import Admin, PartitionSeen, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.kafka import KafkaProcesses
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Address, Mishap
from isr_drill.drill import Drill, Explorations, PartitionDrill, Records, drill
from isr_drill.quorum import Voters, quorum_of
from isr_drill.runbook import NOBODY_TOLD, RunbookStep, Stage, Surroundings, read_runbook
from isr_drill.situation import Situation
from isr_experiment.power import lose_power, record_of
from isr_kafka.node import QUIETLY, NodeFiles, new_id

RACKS: Final[Mapping[int, str]] = {2: "a", 3: "a", 4: "b", 5: "b", 6: "c", 7: "c"}
SETTINGS: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "500",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
}
PATIENCE: Final = 40.0
"""Seconds that a wait of a runbook, or what a story waits for, may take."""
READ_WITHIN: Final = 12.0
"""Seconds that a leader has to serve whoever reads."""
UNCLEAN: Final = 1
DESCRIBE_QUORUM: Final = 55
CONTROLLERS_ALONE: Final = (8, 9)
"""Nodes that vote with node 1, and are no brokers."""
ACTIVE: Final = "ACTIVE"
"""In a runbook: the controller that is active when it begins."""


@attrs.frozen
class KafkaCase:
    """A runbook that people use. `past`: what happened before it is drilled; `files`: the reassignments of its steps,
    as the replicas of the only partition."""

    name: str
    replicas: tuple[int, ...]
    minimum: int
    text: str
    past: str = ""
    files: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict[str, tuple[int, ...]])
    unclean: bool = False
    flushed: bool = False


USUAL: Final = (
    KafkaCase("rolling restart, with waits", (2, 4, 6), 2, "roll 2 3 4 5 6 7 wait in-sync"),
    KafkaCase("rolling restart, without waits", (2, 4, 6), 2, "roll 2 4 6"),
    KafkaCase("rolling restart of two replicas", (2, 4), 1, "roll 2 4 wait in-sync"),
    KafkaCase(
        "upgrade: a rack at a time",
        (2, 4, 6),
        2,
        "stop 2 3; start 2 3; wait in-sync; stop 4 5; start 4 5; wait in-sync",
    ),
    KafkaCase("zone drill", (2, 4, 6), 2, "kill 2 3; start 2 3; wait in-sync"),
    KafkaCase("zone drill that destroys the disks", (2, 4, 6), 2, "destroy 2 3; start 2 3; wait in-sync"),
    KafkaCase(
        "zone drill of three zones, disks destroyed, no waits",
        (2, 4, 6),
        2,
        "destroy 2; start 2; destroy 4; start 4; destroy 6; start 6",
    ),
    KafkaCase("decommission", (2, 4, 6), 2, "reassign away; wait reassigned; stop 2", files={"away": (3, 4, 6)}),
    KafkaCase("decommission without waiting", (2, 4), 1, "reassign away; destroy 2 4", files={"away": (3, 5)}),
    KafkaCase(
        "disks replaced one by one",
        (2, 4, 6),
        2,
        "replace 2; wait in-sync; replace 4; wait in-sync; replace 6; wait in-sync",
    ),
    KafkaCase("disks replaced all at once", (2, 4, 6), 2, "replace 2 4 6"),
    KafkaCase("disks replaced two at once, minimum 1", (2, 4, 6), 1, "replace 2 4; wait in-sync"),
    KafkaCase(
        "two replicas become three",
        (2, 4),
        1,
        "reassign more; wait reassigned; wait in-sync; stop 2",
        files={"more": (2, 4, 6)},
    ),
    KafkaCase(
        "three replicas become two", (2, 4, 6), 2, "reassign fewer; wait reassigned; kill 6", files={"fewer": (2, 4)}
    ),
    KafkaCase(
        "moved and moved back",
        (2, 4, 6),
        2,
        "reassign away; wait reassigned; reassign back; wait reassigned; stop 4",
        files={"away": (3, 4, 6), "back": (2, 4, 6)},
    ),
    KafkaCase(
        "scale in: two brokers leave",
        (2, 3, 4),
        2,
        "reassign away; wait reassigned; stop 2 3",
        files={"away": (4, 5, 6)},
    ),
    KafkaCase("the minimum is raised", (2, 4, 6), 1, "set t min.insync.replicas=2; wait in-sync; kill 2"),
    KafkaCase("the minimum is lowered, and a disk lost", (2, 4, 6), 2, "set t min.insync.replicas=1; destroy 2"),
    KafkaCase("a broker is down, and the next is destroyed", (2, 4), 1, "destroy 4; start 2", past="kill 2"),
    KafkaCase(
        "the last in sync is lost, unclean election",
        (2, 4, 6),
        1,
        "destroy 2; elect unclean",
        past="kill 4 6",
        unclean=True,
    ),
)
"""The twenty."""
POWER_FAILURES: Final = (
    KafkaCase("power failures one by one", (2, 4, 6), 2, "power-loss 2; start 2; wait in-sync; power-loss 4"),
    KafkaCase("a rack loses its power", (2, 4, 6), 2, "lose-rack a; start 2 3; wait in-sync"),
    KafkaCase("all lose their power at once", (2, 4, 6), 2, "power-loss 2 4 6; start 2 4 6"),
    KafkaCase("all lose their power, each record flushed", (2, 4, 6), 2, "power-loss 2 4 6; start 2 4 6", flushed=True),
    KafkaCase("two lose their power at once", (2, 4, 6), 2, "power-loss 2 4; start 2 4; wait in-sync"),
    KafkaCase("the only replica loses its power", (2,), 1, "power-loss 2; start 2"),
    KafkaCase("power failures without waits", (2, 4, 6), 1, "power-loss 2; start 2; power-loss 4; start 4"),
)
CONTROLLERS: Final = (
    KafkaCase(
        "controllers restarted one by one",
        (2, 4, 6),
        2,
        "controller stop 8; controller start 8; controller stop 9; controller start 9; kill 2",
    ),
    KafkaCase("the active controller is killed", (2, 4, 6), 2, "controller kill ACTIVE; kill 2; start 2; wait in-sync"),
    KafkaCase("a controller is killed, and a broker destroyed", (2, 4, 6), 2, "controller kill 9; destroy 2; start 2"),
    KafkaCase("a controller is down, and all disks go", (2, 4, 6), 2, "controller stop 8; replace 2 4 6"),
    KafkaCase("a controller's disk is replaced", (2, 4, 6), 2, "controller destroy 9; controller start 9; kill 2"),
    KafkaCase("no majority of controllers", (2, 4, 6), 2, "controller kill 8; controller kill 9; kill 2"),
)
LISTS: Final = {"usual": USUAL, "power failures": POWER_FAILURES, "controllers": CONTROLLERS}


@attrs.define
class Writer:
    """A client that writes with acks=all, one record after the other, and notes what was acknowledged."""

    bootstrap: str
    topic: str
    acked: set[bytes] = attrs.field(factory=set[bytes])
    over: bool = False
    thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self) -> None:
        settings = {"acks": "all", "linger.ms": 0, "delivery.timeout.ms": 4_000, "request.timeout.ms": 3_000}
        settings |= {"bootstrap.servers": self.bootstrap, "topic.metadata.refresh.interval.ms": 500, "log_level": 0}
        producer, number = confluent_kafka.Producer(settings), 0
        while not self.over:
            number += 1
            value = str(number).encode()

            def note(error: object, _: object, value: bytes = value) -> None:
                if error is None:
                    self.acked.add(value)

            producer.produce(self.topic, value, partition=0, on_delivery=note)
            producer.flush(4.5)
            time.sleep(0.05)

    def ends(self) -> None:
        self.over = True
        self.thread.join(10)


@attrs.frozen
class KafkaJudgement:
    """A case: what the drill said of its records, how each run lost one ("" where it did not), and what went wrong."""

    case: KafkaCase
    verdict: Records | None
    shown: tuple[str, ...] = ()
    mishap: str = ""
    seconds: float = 0.0

    @property
    def is_wrong(self) -> bool:
        """A record was lost that is called safe."""
        return self.verdict is Records.SAFE and any(self.shown)

    @property
    def is_shown(self) -> bool:
        return self.verdict is Records.MAY_BE_LOST and any(self.shown)


@attrs.define(kw_only=True)
class KafkaQuorum(KafkaProcesses):
    """Nodes of which node 1 and `controllers` vote, a static quorum; `controllers` are in `ports`, too."""

    controllers: Mapping[int, Address]

    @property
    def bootstrap(self) -> str:
        """Brokers alone."""
        return ",".join(f"{HOST}:{port}" for node, port in self.ports.items() if node not in self.controllers)

    def command(self, broker: int) -> list[str]:
        """The same with the quorum's voters; a controller has nothing of a broker."""
        data = self.data(broker)
        if broker in self.controllers and not data.exists():
            data.parent.mkdir(parents=True, exist_ok=True)
            self.files.new_folder(data, broker, self.cluster, True, self.elr)
        command = KafkaProcesses.command(self, broker)
        path = self.root / f".server-{broker}.properties"
        settings = dict(line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines())
        voters = {CONTROLLER_BROKER: self.controller[1], **self.controllers}.items()
        settings["controller.quorum.voters"] = ",".join(f"{node}@{host}:{port}" for node, (host, port) in voters)
        if broker in self.controllers:
            host, port = self.controllers[broker]
            settings |= {"process.roles": "controller", "listeners": f"CONTROLLER://{host}:{port}"}
            for name in ("advertised.listeners", "inter.broker.listener.name", "broker.rack"):
                settings.pop(name, None)
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        return command

    def serves(self, broker: int) -> bool:
        """A controller listens."""
        if broker not in self.controllers:
            return KafkaProcesses.serves(self, broker)
        with suppress(OSError), socket.create_connection(self.controllers[broker], 1):
            return True
        return False


@attrs.define
class KafkaTrial:
    """A cluster that runs, for one case after the other. Its power fails as it should where `files` note flushes."""

    files: NodeFiles
    folder: Path
    more_controllers: tuple[int, ...] = ()
    racks: Mapping[int, str] = RACKS
    kind: type[KafkaQuorum] = KafkaQuorum
    kafka: KafkaQuorum = attrs.field(init=False)
    topics: int = 0
    paused: set[int] = attrs.field(factory=set[int])
    downs: list[int] = attrs.field(factory=list[int])
    empty: set[int] = attrs.field(factory=set[int])
    controller_lines: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=20))

    def __attrs_post_init__(self) -> None:
        nodes = (CONTROLLER_BROKER, *self.racks, *self.more_controllers)
        *ports, controller = free_ports(len(nodes) + 1)
        at, port_of = (HOST, controller), dict(zip(nodes, ports, strict=True))
        self.kafka = self.kind(
            self.folder,
            port_of,
            dict(SETTINGS),
            cluster=new_id(),
            own={b: {"broker.rack": rack} for b, rack in self.racks.items()},
            files=self.files,
            controller=(at, at),
            controllers={c: (HOST, port_of[c]) for c in self.more_controllers},
            records={b: record_of(self.folder, b) for b in self.racks} if self.files.noting else {},
            options=QUIETLY,
            tell=self.note,
        )
        self.kafka.start_all()
        self.wait(lambda: self.alive() >= set(self.racks))

    # Looking

    @property
    def brokers(self) -> list[int]:
        """Those that run and do not stand still, node 1 first."""
        return sorted({*self.kafka.running} - self.paused - {*self.more_controllers})

    def admin(self) -> Admin:
        return Admin(self.kafka.found_at(self.brokers[0]), 10.0)

    def active(self) -> int:
        """The controller that is active."""
        with self.admin() as admin:
            asked = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
            said = admin.ask(DESCRIBE_QUORUM, 0, {"topics": asked})
            return said.all("topics")[0].all("partitions")[0].number("leader_id")

    def alive(self) -> set[int]:
        with self.admin() as admin:
            return set(admin.brokers())

    def note(self, line: str) -> None:
        """Keep what the controller of node 1 says."""
        told = "QuorumController" in line or "FaultHandler" in line
        if told and f"broker {CONTROLLER_BROKER}:" in line[:40] and "\tat " not in line:
            self.controller_lines.append(line[:400])

    def partition(self, topic: str) -> PartitionSeen:
        with self.admin() as admin:
            return admin.partitions([topic])[0]

    def wait(self, until: Callable[[], bool], most: float = PATIENCE) -> bool:
        """Wait until something is so; False where it never is."""
        end = time.monotonic() + most
        while time.monotonic() < end:
            with suppress(RequestRefused):
                if until():
                    return True
            time.sleep(0.1)
        return False

    def is_in_sync(self, topic: str) -> bool:
        p = self.partition(topic)
        return set(p.isr) == set(p.replicas)

    def reassigned(self, topic: str) -> bool:
        with self.admin() as admin:
            said = admin.ask(
                protocol.LIST_PARTITION_REASSIGNMENTS,
                0,
                {"timeout_ms": 5_000, "topics": [{"name": topic, "partition_indexes": [0]}]},
            )
            return not said.all("topics")

    # What people do

    def does(self, deed: str, broker: int) -> None:
        """Something to one broker, by the names of stages of a runbook."""
        kafka = self.kafka
        match deed:
            case "STOP" if broker in kafka.running:
                self.goes_on(broker)
                self.downs.append(broker)
                kafka.stop(broker)
            case "KILL" | "POWER_LOSS" | "DESTROY" if broker in kafka.running:
                self.paused.discard(broker)
                self.downs.append(broker)
                kafka.kill(broker)
            case "PAUSE" if broker in kafka.running:
                self.paused.add(broker)
                kafka.pause(broker)
            case "RESUME":
                self.goes_on(broker)
            case "START" if broker in self.paused:
                self.goes_on(broker)
            case "START" if broker not in kafka.running:
                self.wait(lambda: broker not in self.alive())
                kafka.start(broker)
                kafka.awaits(broker)
                self.downs = [b for b in self.downs if b != broker]
                self.empty.discard(broker)
            case _:
                pass
        if deed == "DESTROY":
            shutil.rmtree(kafka.data(broker), ignore_errors=True)
            record_of(self.folder, broker).unlink(missing_ok=True)
            self.empty.add(broker)
        if deed == "POWER_LOSS" and broker in kafka.records:
            lose_power(kafka.data(broker), kafka.records[broker])

    def goes_on(self, broker: int) -> None:
        if broker in self.paused:
            self.paused.discard(broker)
            self.kafka.resume(broker)

    def does_to_controller(self, deed: str, controller: int) -> None:
        """A step on a controller, by its word in a runbook."""
        kafka = self.kafka
        if deed == "start" and controller not in kafka.running:
            kafka.start(controller)
            kafka.awaits(controller)
        elif deed == "stop" and controller in kafka.running:
            kafka.stop(controller)
        elif deed in ("kill", "destroy") and controller in kafka.running:
            kafka.kill(controller)
        if deed == "destroy":
            shutil.rmtree(kafka.data(controller), ignore_errors=True)

    def asks(self, key: int, version: int, fields: Mapping[str, object]) -> None:
        with self.admin() as admin:
            admin.ask(key, version, fields)

    def reassigns(self, topic: str, replicas: Sequence[int] | None) -> None:
        """To these replicas; None cancels what is under way."""
        partitions = [{"partition_index": 0, "replicas": None if replicas is None else list(replicas)}]
        self.asks(
            protocol.ALTER_PARTITION_REASSIGNMENTS,
            0,
            {"timeout_ms": 10_000, "topics": [{"name": topic, "partitions": partitions}]},
        )

    def sets(self, topic: str, minimum: int) -> None:
        configs = [{"name": "min.insync.replicas", "config_operation": 0, "value": str(minimum)}]
        resource = {"resource_type": 2, "resource_name": topic, "configs": configs}
        self.asks(protocol.INCREMENTAL_ALTER_CONFIGS, 0, {"resources": [resource], "validate_only": False})

    def elects(self, topic: str) -> None:
        wanted = [{"topic": topic, "partitions": [0]}]
        fields = {"election_type": UNCLEAN, "topic_partitions": wanted, "timeout_ms": 5_000}
        self.asks(protocol.ELECT_LEADERS, 1, fields)

    def stage(self, topic: str, stage: Stage, case: KafkaCase, step: RunbookStep) -> None:
        """One stage of a step, all of it."""
        match stage.kind:
            case "WAIT":
                self.wait(lambda: self.is_in_sync(topic))
            case "WAIT_REASSIGNED":
                self.wait(lambda: self.reassigned(topic))
            case "REASSIGN":
                self.reassigns(topic, case.files[step.text.split()[1]])
            case "CANCEL":
                self.reassigns(topic, None)
            case "SET":
                self.sets(topic, stage.minimum)
            case "ELECT":
                self.elects(topic)
            case kind:
                for broker in stage.brokers:
                    self.does(kind, broker)

    # A case

    def begins(self, case: KafkaCase) -> tuple[str, Writer]:
        """A new topic of the case, in sync, written to, and what happened before."""
        self.topics += 1
        topic = f"t{self.topics}"
        configs = {
            "min.insync.replicas": str(case.minimum),
            "unclean.leader.election.enable": str(case.unclean).lower(),
            **({"flush.messages": "1"} if case.flushed else {}),
        }
        with self.admin() as admin:
            admin.create(topic, config=configs, on=[list(case.replicas)])
        self.wait(lambda: self.is_in_sync(topic))
        writer = Writer(self.kafka.bootstrap, topic)
        self.wait(lambda: len(writer.acked) > 3)
        for step in self.steps(case, topic, case.past) if case.past else ():
            for stage in step.stages:
                self.stage(topic, stage, case, step)
        away = {b for b in case.replicas if b not in self.kafka.running or b in self.paused}
        self.wait(lambda: away.isdisjoint(self.alive()))
        self.wait(lambda: away.isdisjoint(self.partition(topic).isr) or len(away) == len(case.replicas), 15)
        seen, acked = self.partition(topic), len(writer.acked)
        if away and seen.leader is not None and len(seen.isr) >= case.minimum:
            # What was acknowledged before the past is on the disks of those that are away, too.
            self.wait(lambda: len(writer.acked) > acked, 15)
        return topic, writer

    def steps(self, case: KafkaCase, topic: str, text: str, quorum: Voters = NOBODY_TOLD) -> tuple[RunbookStep, ...]:
        def file(name: str) -> str:
            return json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": case.files[name]}]})

        around = Surroundings(set(self.racks), self.racks, [topic], file, quorum)
        return read_runbook(text.replace("set t ", f"set {topic} "), around)

    def drilled(self, case: KafkaCase, topic: str) -> Drill:
        """What `insync drill --bootstrap` says of the topic."""
        bootstrap = ",".join(f"{HOST}:{self.kafka.ports[b]}" for b in self.brokers)
        cluster = with_replicas(read_cluster(bootstrap, {}), bootstrap, {})
        cluster = attrs.evolve(cluster, topics=tuple(t for t in cluster.topics if t.name == topic))
        steps = self.steps(case, topic, case.text, quorum_of(cluster))
        return drill(cluster, running(cluster), steps, Explorations(60.0))

    def runs(self, case: KafkaCase, topic: str) -> None:
        """The steps, one after the other, as somebody does who waits for nothing else."""
        for step in self.steps(case, topic, case.text):
            if step.text.startswith("controller "):
                _, deed, controller = step.text.split()
                self.does_to_controller(deed, int(controller))
            for stage in step.stages:
                self.stage(topic, stage, case, step)
            time.sleep(0.3)

    def lost(self, topic: str, writer: Writer) -> str:
        """How a record is lost, "" where all that was acknowledged is read."""
        for broker in list(self.paused):
            self.goes_on(broker)
        for controller in (CONTROLLER_BROKER, *self.more_controllers):
            self.does_to_controller("start", controller)
        self.wait(lambda: self.alive() <= set(self.kafka.running))
        self.wait(lambda: self.partition(topic).leader is not None, 10)
        for broker in reversed(self.downs):
            if self.partition(topic).leader is not None:
                break
            if broker not in self.empty and broker not in self.kafka.running:
                self.does("START", broker)
                self.wait(lambda: self.partition(topic).leader is not None, 15)
        writer.ends()
        leader, there = self.read_in_time(topic)
        missing = len(writer.acked - there)
        who = "nobody leads" if leader is None else f"{leader} leads"
        return f"{who}, and {missing} of {len(writer.acked)} acknowledged are missing" if missing else ""

    def on_disks(self, topic: str, brokers: Iterable[int] | None = None) -> set[bytes]:
        """The values that any of these brokers has on its disk."""
        values = set[bytes]()
        for broker in self.racks if brokers is None else brokers:
            for file in self.kafka.data(broker).glob(f"{topic}-0/*.log"):
                data = file.read_bytes()
                places = (at for batch in batches(data) for at in record_places(data, batch))
                values |= {key_and_value(data, at)[1] or b"" for at in places}
        return values

    def read_in_time(self, topic: str) -> tuple[int | None, set[bytes]]:
        """Who leads, and the values that it serves; where nobody does, what is on disks.

        A client may be late to hear who leads, and is asked again. A leader that has too few in sync knows no
        watermark, and serves nobody: then what is on its disk counts, once all start that have one.
        """
        until = time.monotonic() + READ_WITHIN
        while True:
            leader = self.partition(topic).leader
            if leader is None:
                return None, self.on_disks(topic)
            try:
                return leader, self.read(topic)
            except confluent_kafka.KafkaException as problem:
                error = problem.args[0]
                if time.monotonic() > until:
                    if error.code() == confluent_kafka.KafkaError.OFFSET_NOT_AVAILABLE:
                        return leader, self.on_disks(topic, [leader])
                    raise
                for broker in {*self.downs} - self.empty:
                    self.does("START", broker)
                time.sleep(1)

    def read(self, topic: str) -> set[bytes]:
        """The values of a topic, up to its watermark."""
        settings = {"bootstrap.servers": self.kafka.bootstrap, "group.id": "judge", "log_level": 0}
        consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        place, values = confluent_kafka.TopicPartition(topic, 0, 0), set[bytes]()
        try:
            _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=10)
            consumer.assign([place])
            until, at = time.monotonic() + PATIENCE, 0
            while at < end and time.monotonic() < until:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None:
                    values.add(message.value() or b"")
                    at = (message.offset() or 0) + 1
            return values
        finally:
            consumer.close()

    def restores(self, topic: str) -> None:
        """All brokers run again, and the topic is gone."""
        for broker in list(self.paused):
            self.goes_on(broker)
        for controller in (CONTROLLER_BROKER, *self.more_controllers):
            self.does_to_controller("start", controller)
        for broker in self.racks:
            self.does("START", broker)
        self.downs.clear()
        self.empty.clear()
        self.wait(lambda: self.alive() >= set(self.racks))
        with self.admin() as admin:
            admin.delete(topic)

    def judge(self, case: KafkaCase) -> KafkaJudgement:
        """Drill the case, carry it out, and, where a loss that may be is not seen, once more by the story."""
        began = time.monotonic()
        try:
            judgement = self.judgement_of(case)
        except (Mishap, RequestRefused, Unreachable, confluent_kafka.KafkaException) as problem:
            judgement = KafkaJudgement(case, None, mishap=str(problem) or type(problem).__name__)
        return attrs.evolve(judgement, seconds=time.monotonic() - began)

    def judgement_of(self, case: KafkaCase) -> KafkaJudgement:
        """The same, as far as nothing goes wrong that is not about records."""
        shown, verdict = list[str](), None
        for way_is_steered in (False, True):
            topic, writer = self.begins(case)
            if ACTIVE in case.text:
                case = attrs.evolve(case, text=case.text.replace(ACTIVE, str(self.active())))
            try:
                whole = self.drilled(case, topic)
                partition = whole.partitions[0]
                verdict = min(o.records for o in partition.outcomes)
                if way_is_steered:
                    Story(self, topic, writer, partition).drive()
                else:
                    self.runs(case, topic)
                shown.append(self.lost(topic, writer))
            finally:
                writer.ends()
                self.restores(topic)
            if verdict is not Records.MAY_BE_LOST or shown[-1]:
                break
        return KafkaJudgement(case, verdict, tuple(shown))


STRUCK: Final = ("broker_is_killed", "power_fails", "disk_is_destroyed")
NEEDED: Final = (
    *("isr_grows", "record_is_copied", "controller_elects_returned", "controller_moves_leadership"),
    *("controller_elects_last_known_leader", "controller_elects_unclean", "controller_elects_by_order"),
    *("controller_fences_leader", "isr_grows_and_completes", "controller_reassigns_at_once"),
)
"""Actions whose last parameter is a broker that has to run."""


@attrs.define
class Story:
    """The way to a loss that a drill tells, step by step: who is out of the ISR there stands still here."""

    trial: KafkaTrial
    topic: str
    writer: Writer
    partition: PartitionDrill

    @property
    def situation(self) -> Situation:
        return self.partition.situation

    def named(self, mask: object) -> set[int]:
        return {b for i, b in enumerate(self.situation.brokers) if int(str(mask)) >> i & 1}

    def actions(self) -> Iterator[tuple[str, tuple[object, ...]]]:
        way = self.partition.way
        for name, parameters in way.path.steps if way is not None else ():
            yield name, tuple(parameters)

    def drive(self) -> None:
        """Do what is to be done for each action, and wait until it has come to pass."""
        trial, whole = self.trial, list(self.actions())
        for place, (name, parameters) in enumerate(whole):
            first = parameters[0] if parameters else 0
            match name:
                case "isr_shrinks":
                    for broker in self.named(first):
                        trial.does("PAUSE", broker)
                    trial.wait(partial(self.are_out, self.named(first)), 20)
                case "record_is_acknowledged":
                    trial.wait(partial(self.has_written, len(self.writer.acked) + 2), 10)
                case "isr_grows":
                    broker = self.broker(first)
                    trial.does("RESUME", broker)
                    trial.wait(partial(self.is_in, broker), 20)
                case "controller_fences_leader" | "controller_fences_last_leader" | "controller_elects_returned":
                    trial.wait(partial(self.leads_no_more, trial.partition(self.topic).leader), 10)
                case "broker_restarts" if not self.is_needed(self.broker(first), whole[place + 1 :]):
                    # It is back in the story, and has fetched nothing yet: a start that takes its time.
                    pass
                case _:
                    self.strike(name, parameters)

    def is_needed(self, broker: int, rest: Sequence[tuple[str, tuple[object, ...]]]) -> bool:
        """Whether a broker does something in the rest of a story before it is struck again."""
        for name, parameters in rest:
            if name in NEEDED and broker in [self.broker(p) for p in parameters[-1:]]:
                return True
            if name in STRUCK and broker == self.broker(parameters[0]):
                return False
        return False

    def are_out(self, brokers: set[int]) -> bool:
        return brokers.isdisjoint(self.trial.partition(self.topic).isr)

    def is_in(self, broker: int) -> bool:
        return broker in self.trial.partition(self.topic).isr

    def has_written(self, least: int) -> bool:
        return len(self.writer.acked) >= least

    def leads_no_more(self, leader: int | None) -> bool:
        return self.trial.partition(self.topic).leader != leader

    def strike(self, name: str, parameters: tuple[object, ...]) -> None:
        """What people do, in the story's order."""
        trial, first = self.trial, parameters[0] if parameters else 0
        match name:
            case "broker_asks_to_shut_down":
                trial.does("STOP", self.broker(first))
            case "broker_is_killed":
                trial.does("KILL", self.broker(first))
            case "power_fails":
                trial.does("POWER_LOSS" if parameters[1] else "KILL", self.broker(first))
            case "disk_is_destroyed":
                trial.does("DESTROY", self.broker(first))
            case "broker_is_paused":
                trial.does("PAUSE", self.broker(first))
            case "broker_resumes":
                trial.does("RESUME", self.broker(first))
            case "broker_restarts":
                trial.does("START", self.broker(first))
            case "controller_starts_reassignment" | "controller_reassigns_at_once":
                trial.reassigns(self.topic, sorted(self.named(first)))
            case "controller_cancels_reassignment":
                trial.reassigns(self.topic, None)
            case "minimum_is_set":
                trial.sets(self.topic, int(str(first)))
            case "controller_elects_by_order":
                trial.elects(self.topic)
            case _:
                pass

    def broker(self, position: object) -> int:
        return self.situation.brokers[int(str(position))]


_BROKER: Final = re.compile(r"(?<![\w.=])\d+(?![\w.])")
"""A broker's number in a runbook; not the value of a setting."""


def random_kafka_case(seed: int) -> KafkaCase | None:
    """The random runbook of a seed, on brokers 2 to 7; None where it has a past that is not carried out here."""
    case = random_case(seed)
    if any(deed not in ("stop", "kill") for deed, _ in case.past):
        return None
    plans = {name: json.loads(text)["partitions"][0]["replicas"] for name, text in case.files.items()}
    return KafkaCase(
        f"seed {seed}",
        tuple(b + 1 for b in case.replicas),
        case.minimum,
        _BROKER.sub(lambda match: str(int(match[0]) + 1), case.text),
        "; ".join(f"{deed} {broker + 1}" for deed, broker in case.past),
        {name: tuple(b + 1 for b in replicas) for name, replicas in plans.items()},
        case.unclean,
        case.flushed,
    )
