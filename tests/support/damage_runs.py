"""A run of acknowledged records through one fault or damage, on real processes and disks, with an ordinary client.

Three brokers listen as `insync cluster up` has them listen. A client writes with acks=all, and notes what was
acknowledged. Then something is done to processes or their files (`damage_kinds`). Everything is brought back, by no
other means than an operator has: start what has ended, do what a refusal says, put a file back that a refusal names.
Then a consumer reads it all. A run is good if every acknowledged record is read, once and in order, if every refusal
named the file that was damaged, and if the replicas' logs are alike at the end.
"""

from __future__ import annotations

import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

import attrs
import confluent_kafka
from tests.support.clients import Confluent, confluent_delete_records, confluent_offsets
from tests.support.clusters import QUICK
from tests.support.faults import judged

from isr_broker.settings import Settings
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.log import Log
from isr_cluster.admin import Admin, PartitionSeen, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Mishap, Processes, System, apart
from isr_sim.damage import Damage, FileDamage, contents_after

TOPIC: Final = "orders"
"""No name that a fuzz of the wire knows, for it may delete what it names."""
FOLDER: Final = f"{TOPIC}-0"
FIRST: Final = 2_000
"""So many records are written before anything is done."""
PER_SECOND: Final = 150
PATIENCE: Final = 60.0
"""Seconds for everything to be well again, and then for a reading that has everything."""
LEADERLESS: Final = 8.0
"""After so many seconds without a leader an operator does what the brokers' lines say."""
OFFLINE: Final = f"ALARM {FOLDER} is offline here"
PROPERTIES: Final[dict[str, str]] = {
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "250",
    "replica.lag.time.max.ms": "4000",
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "2000",
    "log.segment.bytes": "20000",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
"""Beside QUICK: sessions that a busy machine keeps, several segments, and checkpoints that follow soon."""


class NotDone(Exception):
    """A run has not done what it is for; the message says what. It says nothing about the broker."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a run. `refusals` are the lines that named a file, `failures` what should not have been.

    `missing` and `foreign` are acknowledged records that were not read, and what was read and never sent.
    """

    kind: str
    seed: int
    story: str
    acknowledged: int
    found: int
    missing: int
    foreign: int
    refusals: tuple[str, ...]
    failures: tuple[str, ...]
    seconds: float

    @property
    def good(self) -> bool:
        """Every acknowledged record was read, and every refusal named the file."""
        return not self.failures

    def __str__(self) -> str:
        says = f"{self.kind} (seed {self.seed}, {self.seconds:.0f} s): {self.story}: {self.acknowledged:,} acknowledged"
        says += f", {self.found:,} of them read, {self.missing:,} lost"
        says += f"; refused: {self.refusals[0]}" if self.refusals else ""
        return says + "".join(f"\n  FAILED: {failure}" for failure in self.failures)


def table(outcomes: list[Outcome], rows: Mapping[str, str]) -> str:
    """What came of runs, with `rows` for their kinds: runs, records, runs with a refusal, and bad runs."""
    head = (
        "| what was damaged, or happened | runs | acknowledged | read back | lost | refused, by the file's name | bad |"
    )
    lines = [head, "|---|---|---|---|---|---|---|"]
    parts: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        parts.setdefault(rows[outcome.kind], []).append(outcome)
    for name, part in [*parts.items(), ("all", outcomes)]:
        sums = [len(part), sum(o.acknowledged for o in part), sum(o.found for o in part), sum(o.missing for o in part)]
        sums += [sum(bool(o.refusals) for o in part), sum(not o.good for o in part)]
        lines.append(" | ".join((f"| {name}", *(f"{number:,}" for number in sums))) + " |")
    return "\n".join(lines)


@attrs.define(eq=False)
class Writing:
    """A thread that sends records until it is to end; nobody else uses the producer meanwhile."""

    run: Run
    over: threading.Event = attrs.field(factory=threading.Event)
    thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.thread = threading.Thread(target=self._sends, daemon=True)
        self.thread.start()

    def _sends(self) -> None:
        while not self.over.wait(1 / PER_SECOND):
            self.run.sends()

    def end(self) -> None:
        self.over.set()
        self.thread.join(10)


@attrs.define(eq=False)
class Run:
    """The stage of a run: the cluster, the client, and what was done to which file.

    `damages` are the files that are not as they were, `copies` whole folders that somebody has put aside, by where they
    belong. `names` are what a refusal may name. `start` is the first offset that nobody has asked to be removed.
    """

    kind: str
    seed: int
    root: Path
    properties: dict[str, str] = attrs.field(factory=dict[str, str])
    brokers: int = 3
    chance: Random = attrs.field(init=False)
    lines: list[str] = attrs.field(factory=list[str])
    processes: Processes = attrs.field(init=False)
    client: Confluent = attrs.field(init=False)
    writing: Writing | None = None
    generation: int = 0
    attempted: list[bytes] = attrs.field(factory=list[bytes])
    start: int = 0
    damages: dict[Path, FileDamage] = attrs.field(factory=dict[Path, FileDamage])
    copies: dict[Path, Path] = attrs.field(factory=dict[Path, Path])
    names: set[str] = attrs.field(factory=set[str])
    story: list[str] = attrs.field(factory=list[str])
    refusals: list[str] = attrs.field(factory=list[str])
    failures: list[str] = attrs.field(factory=list[str])
    healed_until: int = 0
    other_cluster: str = ""
    at_end: Callable[[], None] | None = None

    def __attrs_post_init__(self) -> None:
        self.chance = Random(f"{self.kind} {self.seed}")
        *own, controller = free_ports(self.brokers + 1)
        ports = dict(enumerate(own, 1))
        defaults = Settings().properties()
        quick = {name: value for name, value in QUICK.properties().items() if value != defaults[name]}
        settings = {**quick, **PROPERTIES, **self.properties}
        at = (HOST, controller)
        self.processes = Processes(
            self.root, ports, settings, tell=self.hears, own=apart(ports, controller), controller=at
        )

    def hears(self, line: str) -> None:
        """A line of a broker; all of them stand in a file, too."""
        self.lines.append(line)
        with (self.root / "brokers.log").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    # The cluster

    def data(self, broker: int) -> Path:
        return self.processes.data(broker)

    def seen(self) -> PartitionSeen | None:
        """The partition as the controller's broker knows it, if it does. Others may know what is no more."""
        process = self.processes.running.get(CONTROLLER_BROKER)
        if process is None or process.exit_code is not None:
            return None
        try:
            with Admin((HOST, self.processes.ports[CONTROLLER_BROKER]), 2.0) as admin:
                return admin.partitions([TOPIC])[0]
        except RequestRefused:
            return None

    def leader(self) -> int:
        seen = self.seen()
        if seen is None or seen.leader is None:
            raise NotDone("there is no leader to begin with")
        return seen.leader

    def waits(self, until: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                raise NotDone(f"not in {seconds:.0f} s: {what}")
            time.sleep(0.1)

    def is_well(self) -> bool:
        """Everything runs, and every replica is in sync."""
        seen = self.seen()
        runs = not self.processes.early_exits() and len(self.processes.running) == self.brokers
        return runs and seen is not None and seen.leader is not None and len(seen.isr) == len(seen.replicas)

    def begins(self, on: list[int], config: dict[str, str]) -> None:
        """Start everything, and create the topic with these replicas."""
        self.brings([*self.processes.ports])
        self.creates(on, config)
        self.writes(FIRST)

    def creates(self, on: list[int], config: dict[str, str]) -> None:
        def created() -> bool:
            try:
                with Admin((HOST, self.processes.ports[CONTROLLER_BROKER])) as admin:
                    admin.create(TOPIC, config=config, on=[on])
            except RequestRefused as refusal:
                return "TOPIC_ALREADY_EXISTS" in str(refusal)
            return True

        self.waits(created, "the topic is created")
        self.waits(self.is_well, "every replica is in sync")
        self.begins_anew()

    def begins_anew(self) -> None:
        """A new client, and other records than before."""
        settings: dict[str, str | int | bool]
        settings = {"acks": "all", "enable.idempotence": True, "log_level": 0, "message.timeout.ms": 1000 * 90}
        self.client = Confluent(self.processes.bootstrap, settings)
        self.attempted, self.generation, self.start = [], self.generation + 1, 0

    # The client

    def sends(self) -> None:
        number = len(self.attempted)
        value = b"%d %06d " % (self.generation, number) + Random(number).randbytes(40).hex().encode()
        self.attempted.append(value)
        try:
            self.client.send(TOPIC, value)
        except (confluent_kafka.KafkaException, BufferError) as error:
            self.client.errors.append(str(error))

    def writes(self, count: int) -> None:
        """So many records, each acknowledged, in batches that are smaller than a segment."""
        for number in range(1, count + 1):
            self.sends()
            if number % 100 and number != count:
                continue
            if self.client.producer.flush(PATIENCE) or self.client.errors:
                raise NotDone(f"records that were to be acknowledged were not: {self.client.errors[:3]}")

    def writes_on(self) -> None:
        """From now on a thread writes."""
        self.writing = Writing(self)

    def ends_writing(self) -> None:
        if self.writing is not None:
            self.writing.end()
            self.writing = None
        self.client.producer.flush(PATIENCE)

    def deletes_records(self) -> None:
        """The first few hundred records are to go, as an operator asks."""
        before = self.chance.randrange(self.start + 50, self.start + 400)
        self.start = confluent_delete_records(self.processes.bootstrap, TOPIC, before)

    # Brokers that end and start

    def ends(self, broker: int, in_order: bool) -> None:
        """A broker is stopped, or killed."""
        if in_order and (code := self.processes.stop(broker)) != 0:
            self.failures.append(f"broker {broker} was to stop in order, and has ended with {code}")
        elif not in_order:
            self.processes.kill(broker)

    def all_end(self, in_order: bool) -> None:
        """All are stopped; the last is that of the controller, which may be killed. Nobody else is then in sync."""
        for broker in sorted(self.processes.running, reverse=True):
            self.ends(broker, in_order or broker != CONTROLLER_BROKER)

    def tells(self, what: str) -> None:
        self.story.append(what)

    # Files

    def spoils(self, broker: int, name: str, how: Damage, instead: bytes | None = None) -> None:
        """Damage a file of a broker that is down; `instead` is what an older one has, or that of another broker."""
        path = self.data(broker) / name
        if not path.exists():
            raise NotDone(f"{broker}/{name} is not there")
        before = path.read_bytes()
        others = [] if instead is None else [instead]
        tries = (contents_after(name, before, how, {name: others}, self.chance, others) for _ in range(50))
        after = next((contents for contents in tries if contents != before), before)
        if after == before:
            raise NotDone(f"{broker}/{name} is as before")
        path.unlink()
        if after is not None:
            path.write_bytes(after)
        self.damages[path] = FileDamage(how, before, after)
        self.names.add(path.name)

    def puts_aside(self, path: Path, instead: Path | None = None) -> None:
        """A whole folder goes, and another may take its place."""
        copy = self.root / f"aside-{len(self.copies)}"
        path.rename(copy)
        if instead is not None:
            shutil.copytree(instead, path)
        self.copies[path] = copy

    def repairs(self) -> None:
        """An operator puts back whatever was damaged, and has nobody use it meanwhile."""
        for path in (*self.damages, *self.copies):
            owner = int(path.relative_to(self.root).parts[0])
            if owner in self.processes.running:
                self.processes.kill(owner)
        for path, damage in self.damages.items():
            if path.parent.exists():
                path.write_bytes(damage.repair(path.read_bytes() if path.exists() else None))
        for path, copy in self.copies.items():
            shutil.rmtree(path, ignore_errors=True)
            copy.rename(path)
        self.damages.clear()
        self.copies.clear()

    # Back again

    def refuses(self, line: str) -> None:
        """A broker has said why it does not serve. It has to name a file that was damaged."""
        if any(name in line for name in self.names):
            self.refusals.append(line)
        else:
            self.failures.append(f"a refusal that names none of {sorted(self.names) or 'no file'}: {line}")

    def brings(self, brokers: list[int]) -> None:
        """Start brokers at once. One that refuses has done what it says, and is started again by `recovers`."""
        for broker in brokers:
            System.start(self.processes, broker)
        for broker in brokers:
            try:
                if broker in self.processes.running:
                    self.processes.awaits(broker)
            except Mishap as mishap:
                if not self.damages and not self.copies:
                    raise
                self.refuses(str(mishap))
                self.repairs()

    def recovers(self) -> None:
        """Bring everything back. What is never well again is a failure."""
        end, led = time.monotonic() + PATIENCE, time.monotonic()
        try:
            while not (self.is_well() and not self._offline()):
                if time.monotonic() > end:
                    raise Mishap(f"not well again in {PATIENCE:.0f} s: {self.seen()}, {self.processes.early_exits()}")
                for broker in sorted(self.processes.early_exits()):
                    self._ended(broker)
                self.brings([broker for broker in self.processes.ports if broker not in self.processes.running])
                seen = self.seen()
                led = time.monotonic() if seen is None or seen.leader is not None else led
                self._help_offline(seen, time.monotonic() - led > LEADERLESS)
                time.sleep(0.1)
        except Mishap as mishap:
            self.failures.append(str(mishap))

    def _ended(self, broker: int) -> None:
        ended = self.processes.running[broker]
        self.processes.stop(broker)
        self.refuses(ended.last[-1] if ended.last else f"broker {broker} ended without a word")
        self.repairs()

    def _offline(self) -> list[int]:
        """The brokers that have said that the replica is offline there, and have not been helped."""
        return [int(match[1]) for line in self.lines[self.healed_until :] if (match := _OFFLINE.search(line))]

    def _help_offline(self, seen: PartitionSeen | None, hopeless: bool) -> None:
        """The advice is to start the broker again once another leads. Without a leader its files are put back."""
        if not (offline := self._offline()) or seen is None:
            return
        if not hopeless and (seen.leader is None or seen.leader in offline):
            return
        for line in self.lines[self.healed_until :]:
            if _OFFLINE.search(line):
                self.refuses(line)
        self.healed_until = len(self.lines)
        if hopeless:
            self.repairs()
        for broker in sorted({*offline} & {*self.processes.running}):
            self.processes.stop(broker)
            self.brings([broker])

    # The verdict

    def reads(self) -> list[bytes]:
        """Everything from the beginning to the end, as a consumer reads it; AssertionError if it reads no end."""
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": self.processes.bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, confluent_kafka.OFFSET_BEGINNING)])
        values: list[bytes] = []
        end = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < end and not self.processes.early_exits():
                message = consumer.poll(1.0)
                if message is None:
                    continue
                error, value = message.error(), message.value()
                if error is None:
                    values.append(value if isinstance(value, bytes) else b"")
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:  # its name
                    return values
        finally:
            consumer.close()
        raise Mishap(f"the consumer came to no end in {PATIENCE:.0f} s, or a broker ended: {len(values):,} records")

    def reads_all(self, expected: list[bytes]) -> list[bytes]:
        """What a consumer reads once it has the last record, or when it has tried for long enough.

        The consumer or a broker may come upon damage that nobody has seen. Then an operator helps once more.
        """
        found: list[bytes] = []
        end = time.monotonic() + PATIENCE
        while True:
            why = ""
            try:
                found = self.reads()
            except Mishap as mishap:
                why = str(mishap)
            if self.failures:
                break
            if self.processes.early_exits() or self._offline():
                self.recovers()
            elif time.monotonic() > end:
                self.failures += [why] if why else []
                break
            elif not why and (not expected or expected[-1] in found):
                break
        return found

    def outcome(self, began: float) -> Outcome:
        """Read all, stop all, and say what is wrong."""
        expected = [v for v, at in zip(self.client.acked, self.client.offsets, strict=True) if at >= self.start]
        found = self.reads_all(expected)
        lost, doubled, late = judged(expected, found)
        sent = set(self.attempted)
        foreign = sum(value not in sent for value in found)
        wrong = {"lost": len(lost), "doubled": len(doubled), "out of order": len(late), "never sent": foreign}
        self.failures += [f"{count:,} records {what}" for what, count in wrong.items() if count]
        self.failures += [line for line in self.lines if "Traceback" in line]
        self._stops()
        return Outcome(
            kind=self.kind,
            seed=self.seed,
            story=", ".join(self.story),
            acknowledged=len(expected),
            found=len(expected) - len(lost),
            missing=len(lost),
            foreign=foreign,
            refusals=tuple(self.refusals),
            failures=tuple(self.failures),
            seconds=time.monotonic() - began,
        )

    def _stops(self) -> None:
        """Everything stops in order, and what the replicas have is the same, but for where it begins."""
        if self.failures:
            return
        replicas = [broker for broker in self.processes.ports if (self.data(broker) / FOLDER).exists()]
        codes = self.processes.stop_all()
        if set(codes.values()) != {0}:
            self.failures.append(f"orderly stops: {codes}")
        logs = sorted((_log(self.data(broker)) for broker in replicas), key=len)
        if len(replicas) != 3 or not all(logs[-1].endswith(log) for log in logs):
            self.failures.append(f"the replicas {replicas} have different logs")

    def log_start(self) -> int:
        """Where the leader's log starts."""
        return confluent_offsets(self.processes.bootstrap, TOPIC)["earliest"]


_OFFLINE: Final = re.compile(rf"broker (\d+): {OFFLINE}")


def _log(data: Path) -> bytes:
    log = Log.open(RealDisk(data), FOLDER, Settings())
    try:
        return log.contents()
    finally:
        log.close()


@attrs.frozen
class Kind:
    """A fault or damage: its row in the table, what does it, and what kind of cluster it needs.

    `prepare` comes before the brokers start. `strike` leaves brokers down or damaged, and `recovers` brings them back.
    `finish` is what comes after that.
    """

    row: str
    strike: Callable[[Run], None]
    finish: Callable[[Run], None] | None = None
    brokers: int = 3
    replicas: tuple[int, ...] = (1, 2, 3)
    config: dict[str, str] = attrs.field(factory=lambda: {"min.insync.replicas": "2"})
    properties: dict[str, str] = attrs.field(factory=dict[str, str])
    prepare: Callable[[Run], None] | None = None


def perform(name: str, kind: Kind, seed: int, root: Path, design: str = "") -> Outcome:
    """One run; all files go to `root`. NotDone if it has not done what it is for."""
    root.mkdir(parents=True)
    began = time.monotonic()
    properties = {**kind.properties, **({"insync.design": design} if design else {})}
    run = Run(name, seed, root, properties, kind.brokers)
    try:
        if kind.prepare is not None:
            kind.prepare(run)
        replicas = [*kind.replicas]
        if kind.brokers == 3:
            run.chance.shuffle(replicas)
        run.begins(replicas, kind.config)
        kind.strike(run)
        run.recovers()
        run.ends_writing()
        complaint = ""
        try:
            if kind.finish is not None and not run.failures:
                kind.finish(run)
        except (NotDone, confluent_kafka.KafkaException, SystemError) as error:
            complaint = str(error)  # a client that has noticed a loss writes no more
        outcome = run.outcome(began)
        if complaint and outcome.good:
            raise NotDone(complaint)
        return outcome
    finally:
        if run.writing is not None:
            run.writing.end()
        for process in run.processes.running.values():
            if process.exit_code is None:
                process.process.send_signal(signal.SIGCONT)
        run.processes.kill_all()
        if run.at_end is not None:
            run.at_end()
