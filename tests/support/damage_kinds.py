"""What is done to processes, files and settings in `damage_runs`: each kind with its row in the table.

Whoever is hit, how it ends, which segment and which bit, a run's seed says. What is done stays within what is promised
with three replicas and `min.insync.replicas=2`: at most one copy of the records is damaged.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests.support.clients import Confluent, confluent_delete, confluent_set
from tests.support.damage_runs import FOLDER, TOPIC, Kind, NotDone, Run
from tests.support.wire_fuzz import Requests

from isr_broker.core.topics import FILE as PARTITION_METADATA
from isr_broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    EPOCHS,
    LOG_STARTS,
    POSITION,
    RECOVERY_POINTS,
    WATERMARKS,
)
from isr_broker.storage.metadata_end import END
from isr_broker.storage.metadata_log import NAME as METADATA_LOG
from isr_broker.storage.owner import META_PROPERTIES
from isr_broker.wire import protocol
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Mishap, Processes
from isr_sim.damage import Damage

MINIMUM: Final = "min.insync.replicas"
RETENTION: Final = 60_000
"""Bytes of a log that retention leaves."""
_SEGMENT: Final = "a segment"
_OF_CONTROLLER: Final = (METADATA_LOG, END)


# Files of a disk


def archive(run: Run, broker: int) -> Path:
    """A copy of a broker's folder, from when it had stopped in order; it runs again, and more has come since."""
    older = run.root / "older"
    run.ends(broker, in_order=True)
    shutil.copytree(run.data(broker), older)
    run.processes.start(broker)
    run.waits(run.is_well, "every replica is in sync after a copy was made")
    run.writes(500)
    return older


def victim(run: Run, name: str) -> int:
    """Whose file it is to be: the leader's or a follower's, or the controller's."""
    if name in _OF_CONTROLLER:
        return CONTROLLER_BROKER
    leader = run.leader()
    return leader if name == EPOCHS or run.chance.random() < 0.5 else run.chance.choice(sorted({1, 2, 3} - {leader}))


def a_file(run: Run, broker: int, name: str) -> str:
    """The path of a file in a broker's folder; of segments one that has records."""
    if name in (EPOCHS, PARTITION_METADATA):
        return f"{FOLDER}/{name}"
    if name != _SEGMENT:
        return name
    paths = sorted(path for path in (run.data(broker) / FOLDER).glob("*.log") if path.stat().st_size)
    return f"{FOLDER}/{run.chance.choice(paths).name}"


def of_another(run: Run, broker: int, name: str) -> tuple[str, bytes]:
    """The path of a file, and what it is at another broker; at one of another cluster if it is the controller's."""
    if name in _OF_CONTROLLER:
        return name, (run.root / "others" / str(CONTROLLER_BROKER) / name).read_bytes()
    mine = run.data(broker)
    paths = [f"{FOLDER}/{path.name}" for path in sorted((mine / FOLDER).glob("*.log"))]
    paths = paths if name == _SEGMENT else [a_file(run, broker, name)]
    donors = [run.data(donor) for donor in sorted({1, 2, 3} - {broker})]
    pairs = [(path, (donor / path).read_bytes()) for path in paths for donor in donors if (donor / path).exists()]
    different = [(path, contents) for path, contents in pairs if contents != (mine / path).read_bytes()]
    if not different:
        raise NotDone(f"{name} is the same at every broker")
    return run.chance.choice(different)


def damage_of(name: str, how: Damage) -> Callable[[Run], None]:
    """A file of a broker that is down is damaged, while the others write or while all are down."""

    def strike(run: Run) -> None:
        broker, older = victim(run, name), None
        is_of_stop = name == CLEAN_SHUTDOWN and how is not Damage.OLDER
        all_down = run.chance.random() < 0.5 or (is_of_stop and how is Damage.FOREIGN)
        broker = CONTROLLER_BROKER if all_down else broker
        in_order = is_of_stop or (name != CLEAN_SHUTDOWN and run.chance.random() < 0.5)
        if name == LOG_STARTS:
            run.deletes_records()
        if how is Damage.OLDER:
            folder = archive(run, broker)
            older = None if name == _SEGMENT else (folder / a_file(run, broker, name)).read_bytes()
        if name == LOG_STARTS and how is Damage.OLDER:
            run.deletes_records()
        time.sleep(1.0)  # two checkpoints
        run.writes_on()
        time.sleep(run.chance.choice((0.0, 1.5)))
        if all_down:
            run.all_end(in_order)
        else:
            run.ends(broker, in_order)
        if name == CLEAN_SHUTDOWN and how is Damage.OLDER:
            (run.data(broker) / name).write_bytes(older or b"")
            last = sorted((run.data(broker) / FOLDER).glob("*.log"))[-1].name
            run.spoils(broker, f"{FOLDER}/{last}", Damage.SHORTER)
        elif how is Damage.FOREIGN:
            path, theirs = of_another(run, broker, name)
            run.spoils(broker, path, how, theirs)
        else:
            run.spoils(broker, a_file(run, broker, name), how, older)
        where = "all down" if all_down else "others up"
        run.tells(f"broker {broker} {'stopped' if in_order else 'killed'}, {where}, {how.name.lower()}")

    return strike


def older_metadata_and_end(run: Run) -> None:
    """Nothing on the controller's own disk says that there was more: only the brokers know."""
    run.ends(CONTROLLER_BROKER, in_order=True)
    older = {name: (run.data(CONTROLLER_BROKER) / name).read_bytes() for name in _OF_CONTROLLER}
    run.processes.start(CONTROLLER_BROKER)
    run.waits(run.is_well, "every replica is in sync after a copy was made")
    run.writes(500)
    run.ends(CONTROLLER_BROKER, in_order=False)
    for name in _OF_CONTROLLER:
        run.spoils(CONTROLLER_BROKER, name, Damage.OLDER, older[name])
    run.tells("broker 1 killed, both older")


def older_disk(of_controller: bool, run: Run) -> None:
    """A broker's whole folder is an older one, from an orderly stop."""
    broker = CONTROLLER_BROKER if of_controller else run.chance.choice((2, 3))
    older = archive(run, broker)
    run.writes_on()
    in_order = run.chance.random() < 0.5
    run.ends(broker, in_order)
    run.puts_aside(run.data(broker), older)
    run.names.add(METADATA_LOG)
    run.tells(f"broker {broker} {'stopped' if in_order else 'killed'}")


def wiped(of_controller: bool, run: Run) -> None:
    """A broker's folder is empty."""
    broker = CONTROLLER_BROKER if of_controller else run.chance.choice((2, 3))
    run.writes_on()
    run.ends(broker, in_order=False)
    run.puts_aside(run.data(broker))
    if of_controller:
        run.names.add(METADATA_LOG)
    run.tells(f"broker {broker} killed")


def without_log(run: Run) -> None:
    """The folder of the log is gone."""
    broker = run.chance.choice((1, 2, 3))
    run.writes_on()
    in_order = run.chance.random() < 0.5
    run.ends(broker, in_order)
    shutil.rmtree(run.data(broker) / FOLDER)
    run.tells(f"broker {broker} {'stopped' if in_order else 'killed'}")


# Processes


def leader_killed(run: Run) -> None:
    run.writes_on()
    time.sleep(0.5)
    leader = run.leader()
    run.ends(leader, in_order=False)
    time.sleep(run.chance.choice((0.0, 4.0)))
    run.tells(f"broker {leader}")


def all_killed(run: Run) -> None:
    run.writes_on()
    time.sleep(0.5)
    run.processes.kill_all()
    run.tells("at once")


def leader_paused(run: Run) -> None:
    run.writes_on()
    leader = run.leader()
    run.processes.pause(leader)
    time.sleep(5.0)
    run.processes.resume(leader)
    run.tells(f"broker {leader}, 5 s")


def follower_paused_and_leader_killed(run: Run) -> None:
    leader = run.leader()
    follower = run.chance.choice(sorted({2, 3} - {leader}))
    run.processes.pause(follower)
    run.writes_on()
    time.sleep(5.0)
    run.processes.resume(follower)
    run.ends(leader, in_order=False)
    run.tells(f"broker {follower} paused 5 s, broker {leader} killed as it goes on")


def disk_full(run: Run) -> None:
    """Somebody else fills the disk of broker 2; its process ends, and starts again once there is room."""
    run.writes_on()
    filler, room = run.data(2) / "filler", shutil.disk_usage(run.data(2)).free
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    process = run.processes.running[2]
    run.waits(lambda: process.exit_code is not None, "the broker on the full disk ends")
    process.reader.join(5)
    run.processes.stop(2)
    run.names.add("No space left on device")
    run.refuses(process.last[-1])
    filler.unlink()
    run.tells(f"broker 2, {room // 1024:,} KiB were left")


def small_disk(run: Run) -> None:
    """Broker 2 gets a disk of its own."""
    folder = run.data(2)
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        raise NotDone("a tmpfs cannot be mounted here: it needs root")

    def unmounts() -> None:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # who read a log may have it open

    run.at_end = unmounts


# Settings and topics


def leader_alone(run: Run) -> None:
    """ISR {2}, ELR {3}: broker 4 stops, then broker 3."""
    for broker in (4, 3):
        run.ends(broker, in_order=True)

    def is_alone() -> bool:
        seen = run.seen()
        return seen is not None and seen.isr == (2,)

    run.waits(is_alone, "the leader is alone")


def leader_gone_and_eligible_back(run: Run) -> None:
    """The leader alone has acknowledged; it dies, and who was eligible by the old number is back before it."""
    run.writes(300)
    run.ends(2, in_order=False)
    run.processes.start(3)
    time.sleep(4.0)


def minimum_lowered(run: Run) -> None:
    leader_alone(run)
    confluent_set(run.processes.bootstrap, TOPIC, MINIMUM, "1")
    leader_gone_and_eligible_back(run)
    run.tells("2 to 1 with the leader alone in sync, 300 records, it is killed, the eligible one is back first")


def minimum_raised(run: Run) -> None:
    confluent_set(run.processes.bootstrap, TOPIC, MINIMUM, "2")
    run.writes(100)


def default_lowered(run: Run) -> None:
    leader_alone(run)
    controller_starts_with(run, "1")
    leader_gone_and_eligible_back(run)
    run.tells("2 to 1 with the leader alone in sync, then as above")


def controller_starts_with(run: Run, minimum: str) -> None:
    own = run.processes.own
    run.ends(CONTROLLER_BROKER, in_order=True)
    run.processes.own = {**own, CONTROLLER_BROKER: {**own[CONTROLLER_BROKER], MINIMUM: minimum}}
    run.processes.start(CONTROLLER_BROKER)


def default_raised(run: Run) -> None:
    controller_starts_with(run, "2")
    run.waits(run.is_well, "every replica is in sync")
    run.writes(100)


def topic_again(run: Run) -> None:
    """Deleted and created again, with the records of the first one still on a broker that is down."""
    broker = run.chance.choice((2, 3))
    run.ends(broker, in_order=run.chance.random() < 0.5)
    confluent_delete(run.processes.bootstrap, TOPIC)
    run.waits(lambda: run.seen() is None, "the topic is gone")
    others = sorted({1, 2, 3} - {broker})

    def created() -> bool:
        with contextlib.suppress(RequestRefused), Admin((HOST, run.processes.ports[CONTROLLER_BROKER])) as admin:
            admin.create(TOPIC, config={MINIMUM: "2"}, on=[[*others, broker]])
            return True
        return False

    run.waits(created, "the topic is created again")
    run.begins_anew()
    run.writes(1_000)
    run.writes_on()
    run.tells(f"while broker {broker} was down")


def retention(run: Run) -> None:
    """The oldest segments go while the leader is killed; what is left has at least the bytes that are to be kept."""
    run.writes_on()
    time.sleep(1.5)
    run.ends(run.leader(), in_order=False)


def after_retention(run: Run) -> None:
    # Each log is looked at every second: a segment that goes after this would pass for lost.
    run.start, before = run.log_start(), -1
    while before != run.start:
        time.sleep(5)
        before, run.start = run.start, run.log_start()
    if not run.start:
        raise NotDone("retention has removed nothing")
    for broker in run.processes.ports:
        size = sum(path.stat().st_size for path in (run.data(broker) / FOLDER).glob("*.log"))
        if size < RETENTION:
            run.failures.append(f"broker {broker} has {size:,} bytes left, and {RETENTION:,} were to be kept")
    run.tells(f"up to offset {run.start}")


# Strangers


def another_cluster(run: Run) -> None:
    """A cluster of two, which has a topic of the same name with other records; its broker 2 is stopped."""
    ports = dict(enumerate(free_ports(2), 1))
    others = Processes(run.root / "others", ports, {"min.insync.replicas": "1"}, tell=run.hears)
    try:
        others.start_all()

        def is_created() -> bool:
            with contextlib.suppress(RequestRefused), Admin((HOST, ports[1])) as admin:
                admin.create(TOPIC, on=[[2]])
                return True
            return False

        run.waits(is_created, "the other cluster has a topic")
        client = Confluent(others.bootstrap, {"acks": "all"})
        client.send_all(TOPIC, [b"foreign %d" % number for number in range(100)])
        run.other_cluster = others.cluster
    finally:
        others.stop_all()


def stranger_in_place(run: Run) -> None:
    """The broker of another cluster is started where ours is down, first as its own, then as if it was ours."""
    ours = run.processes
    run.writes_on()
    run.ends(2, in_order=run.chance.random() < 0.5)
    theirs = Processes(
        run.root / "others",
        {1: ours.ports[1], 2: ours.ports[2]},
        ours.properties,
        cluster=run.other_cluster,
        tell=run.hears,
        own=ours.own,
        controller=ours.controller,
    )
    for cluster in (run.other_cluster, ours.cluster):
        theirs.cluster = cluster
        try:
            theirs.start(2)
            time.sleep(5.0)
            if theirs.running[2].exit_code is None:
                run.failures.append("the broker of another cluster goes on")
            line = theirs.running[2].last[-1]
        except Mishap as mishap:
            line = str(mishap)
        finally:
            theirs.kill_all()
        run.names.add("cluster")
        run.refuses(line)
    run.tells("in the place of broker 2")


def strangers(run: Run) -> None:
    """For five seconds three strangers send what they like to each port for clients, and one to the controller's."""
    over = time.monotonic() + 5.0
    controller = run.processes.controller
    assert controller is not None
    ports = [*run.processes.ports.values()]
    threads = [threading.Thread(target=_calls, args=(port, Random(run.seed + port), over)) for port in ports]
    threads.append(threading.Thread(target=_babbles, args=(controller[1], Random(run.seed), over)))
    run.writes_on()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.tells(f"frames of every API at {len(ports)} ports, noise at the controller's")


def _calls(port: int, chance: Random, over: float) -> None:
    requests = Requests(chance)
    while time.monotonic() < over:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1.0) as connection:
            connection.settimeout(0.2)
            for _ in range(5):
                connection.sendall(requests.frame()[1] if chance.random() < 0.8 else _of_a_broker(chance))
            connection.recv(1 << 16)
        time.sleep(0.02)


def _of_a_broker(chance: Random) -> bytes:
    """What only brokers may ask, and not here."""
    key = chance.choice((protocol.ALTER_PARTITION, protocol.BROKER_REGISTRATION, protocol.BROKER_HEARTBEAT))
    broker = chance.choice((-1, 1, 2, 3, 2**31 - 1))
    return protocol.ask(key, protocol.SERVED_VERSIONS[key][1], 1, "broker-2", {"broker_id": broker})


def _babbles(port: int, chance: Random, over: float) -> None:
    while time.monotonic() < over:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1.0) as connection:
            noise = chance.randbytes(chance.randrange(1, 2_000))
            connection.sendall(noise if chance.random() < 0.5 else struct.pack(">i", len(noise)) + noise)
        time.sleep(0.02)


# All of them

SHORT: Final = {
    Damage.FLIP: "a flipped bit",
    Damage.SHORTER: "cut",
    Damage.ABSENT: "missing",
    Damage.OLDER: "older",
    Damage.FOREIGN: "of another broker",
}
FILES: Final = {
    "segment": _SEGMENT,
    EPOCHS: EPOCHS,
    LOG_STARTS: LOG_STARTS,
    RECOVERY_POINTS: RECOVERY_POINTS,
    WATERMARKS: WATERMARKS,
    PARTITION_METADATA: PARTITION_METADATA,
    META_PROPERTIES: META_PROPERTIES,
    METADATA_LOG: METADATA_LOG,
    END: END,
    CLEAN_SHUTDOWN: CLEAN_SHUTDOWN,
    POSITION: POSITION,
}
SAME_FILE: Final = (
    (PARTITION_METADATA, Damage.OLDER),
    (META_PROPERTIES, Damage.OLDER),
    (PARTITION_METADATA, Damage.FOREIGN),
)
"""An older one, or that of another broker, is the same file."""


def _kind(file: str, name: str, how: Damage) -> Kind:
    is_of_another_cluster = how is Damage.FOREIGN and name in _OF_CONTROLLER
    return Kind(file, damage_of(name, how), prepare=another_cluster if is_of_another_cluster else None)


DAMAGES: Final[dict[str, Kind]] = {
    f"{file}: {said}": _kind(file, name, how)
    for file, name in FILES.items()
    for how, said in SHORT.items()
    if (name, how) not in SAME_FILE
}
OTHERS: Final[dict[str, Kind]] = {
    "metadata.log and metadata.end: older": Kind("metadata.log and metadata.end", older_metadata_and_end),
    "folder of a broker: older": Kind("folder of a broker", partial(older_disk, False)),
    "folder of the controller: older": Kind("folder of the controller", partial(older_disk, True)),
    "folder of a broker: missing": Kind("folder of a broker", partial(wiped, False)),
    "folder of the controller: missing": Kind("folder of the controller", partial(wiped, True)),
    "folder of a log: missing": Kind("folder of a log", without_log),
    "leader killed": Kind("killed", leader_killed),
    "all killed": Kind("killed", all_killed),
    "leader paused": Kind("paused", leader_paused),
    "follower paused, leader killed": Kind("paused", follower_paused_and_leader_killed),
    "disk full": Kind("disk full", disk_full, prepare=small_disk),
    "minimum lowered": Kind("min.insync.replicas", minimum_lowered, minimum_raised, brokers=4, replicas=(2, 3, 4)),
    "default minimum lowered": Kind(
        "min.insync.replicas", default_lowered, default_raised, brokers=4, replicas=(2, 3, 4), config={}
    ),
    "topic created again": Kind("topic created again", topic_again),
    "retention": Kind(
        "retention",
        retention,
        after_retention,
        properties={"log.retention.bytes": str(RETENTION), "log.retention.check.interval.ms": "1000"},
    ),
    "another cluster's broker": Kind("another cluster's broker", stranger_in_place, prepare=another_cluster),
    "strangers": Kind("strangers", strangers),
}
KINDS: Final = {**DAMAGES, **OTHERS}
"""Every kind by its name."""
