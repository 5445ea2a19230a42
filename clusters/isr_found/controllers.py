"""Faults of Apache Kafka's quorum that lose no record, shown on unchanged controllers, each in a JVM of its own.

    python -m isr_found.controllers removed-voter [--control] [--kafka RELEASE]

    from isr_found.controllers import FAULTS, QuorumReproduction
    from isr_kafka.jars import cached

    run = QuorumReproduction(FAULTS["removed-voter"], "4.4.0")
    assert run.fault.shows == "the process of the active controller ends"
    for line in run.lines() if cached("4.4.0") else ():
        print(line)

A story ends as those in Java do: with a line that names its verdict, and an exit code of its own.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from isr_cluster.admin import Admin, RequestRefused, error_name
from isr_cluster.ports import HOST, free_ports, in_use
from isr_cluster.processes import Mishap, System, python_module
from isr_found import VERDICT, Outcome, StoryReproduction, StoryRun
from isr_kafka.node import NodeFiles, controller_settings, initial_controllers, new_id, node_files

DESCRIBE_QUORUM: Final = 55
FETCH_SNAPSHOT: Final = 59
INCREMENTAL_ALTER_CONFIGS: Final = 44
OF_BROKERS: Final = 4
"""The type of a resource."""
REMOVE_RAFT_VOTER: Final = 81
METADATA_TOPIC: Final = "__cluster_metadata"
PATIENCE: Final = 90.0
"""Seconds that a step may take."""
STILL: Final = 10.0
"""Seconds after which what has not happened does not happen: five times the longest time-out of the quorum."""
STORY_PATIENCE: Final = 600.0
LOGS_OF_REQUESTS: Final = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.NetworkClient=debug"
"""With this a node says which requests it sends."""
SNAPSHOT_START: Final = "Creating new KRaft snapshot file"
SNAPSHOT_END: Final = "Successfully wrote snapshot"
BATCHES: Final = 20
BATCH: Final = 4000
"""Settings that are set at once; Kafka takes no more than 10,000 records."""
ELECTED_WITHIN: Final = 60.0
"""Seconds within which two voters of three have a leader, if they can: some thirty times the election time-out."""
FATAL: Final = "Encountered fatal fault"


class NotTried(Exception):
    """A story did not get to where its question is decided; the message says why."""


@attrs.define(kw_only=True)
class Controllers(System):
    """Controllers alone, which are voters by number and directory id (KIP-853); each line that they print is kept."""

    files: NodeFiles
    directories: Mapping[int, str]
    """Of the first voters."""
    joins: set[int] = attrs.field(factory=set[int])
    """Nodes whose next folder is formatted with `--no-initial-controllers`."""
    bootstrap_of: dict[int, tuple[int, ...]] = attrs.field(factory=dict[int, tuple[int, ...]])
    """The controllers in a node's `controller.quorum.bootstrap.servers`, where these are not all."""
    lines: list[str] = attrs.field(factory=list[str])

    @classmethod
    def of(
        cls, count: int, root: Path, files: NodeFiles, properties: Mapping[str, str] = MappingProxyType({})
    ) -> Controllers:
        """So many voters, none of them started."""
        ports = dict(enumerate(free_ports(count), 1))
        lines: list[str] = []
        return cls(
            root=root,
            ports=ports,
            properties=properties,
            cluster=new_id(),
            files=files,
            directories={node: new_id() for node in ports},
            tell=lines.append,
            lines=lines,
        )

    def command(self, broker: int) -> list[str]:
        """A JVM; a folder that is not there is formatted first."""
        path = self.root / f"{broker}.properties"
        bootstrap = [self.found_at(node) for node in self.bootstrap_of.get(broker, tuple(self.ports))]
        settings = {
            **controller_settings(broker, self.listens_at(broker), self.data(broker)),
            "controller.quorum.bootstrap.servers": ",".join(f"{host}:{port}" for host, port in bootstrap),
            **self.properties,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        if not self.data(broker).exists():
            initial = initial_controllers({node: (HOST, port) for node, port in self.ports.items()}, self.directories)
            voters = ["--no-initial-controllers"] if broker in self.joins else ["--initial-controllers", initial]
            self.files.format(path, self.cluster, *voters)
        return self.files.command(path, [LOGS_OF_REQUESTS])

    def serves(self, broker: int) -> bool:
        """It listens."""
        return in_use(self.ports[broker])

    def log_of(self, node: int, *words: str, since: int = 0) -> list[str]:
        """The lines of a node with all of these words, from a number of lines on."""
        mine = f"broker {node}: "
        own = [line.partition(mine)[2] for line in self.lines[since:] if mine in line]
        return [line for line in own if all(word in line for word in words)]

    def log_in_time(self, node: int, *words: str, since: int) -> list[str]:
        """The same, which may take a second to be printed."""
        awaits(lambda: bool(self.log_of(node, *words, since=since)), 1.0)
        return self.log_of(node, *words, since=since)

    def leader(self) -> int | None:
        """Whom the voters that answer take for the leader; None where none does."""
        partition = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
        for node in set(self.running) - set(self.early_exits()):
            try:
                with Admin(self.found_at(node), 3.0) as admin:
                    (topic,) = admin.ask(DESCRIBE_QUORUM, 0, {"topics": [partition]}).all("topics")
            except (RequestRefused, ValueError):
                continue
            (told,) = topic.all("partitions")
            if told.number("error_code", 0) == 0 and told.number("leader_id") in self.running:
                return told.number("leader_id")
        return None

    def start_quorum(self) -> int:
        """Start every node; who leads, once all follow."""
        self.start_all()
        wait("a leader", lambda: self.leader() is not None)
        leader = self.leader()
        assert leader is not None
        others = set(self.ports) - {leader}
        wait("the others follow", lambda: all(self.log_of(n, "Completed transition to FollowerState") for n in others))
        return leader

    def replaces_disk(self, node: int) -> None:
        """Remove a folder, and format another one that has no voters."""
        shutil.rmtree(self.data(node))
        self.joins.add(node)
        self.command(node)

    def removes(self, leader: int, voter: int) -> None:
        """Have the leader remove a voter, as `kafka-metadata-quorum.sh remove-controller` does."""
        with Admin(self.found_at(leader)) as admin:
            fields = {
                "cluster_id": self.cluster,
                "voter_id": voter,
                "voter_directory_id": base64.urlsafe_b64decode(self.directories[voter] + "=="),
            }
            code = admin.ask(REMOVE_RAFT_VOTER, 0, fields).number("error_code")
        if code:
            raise NotTried(f"the voter is not removed: {error_name(code)}")

    def configures(self, leader: int, names: Sequence[str]) -> None:
        """Set so many settings of all brokers, a record each; Kafka takes any name."""
        settings = [{"name": name, "config_operation": 0, "value": "x" * 20} for name in names]
        resource = {"resource_type": OF_BROKERS, "resource_name": "", "configs": settings}
        with Admin(self.found_at(leader), PATIENCE) as admin:
            told = admin.ask(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False})
        for answer in told.all("responses"):
            if code := answer.number("error_code", 0):
                raise NotTried(f"settings are not set: {error_name(code)}")

    def is_still(self, node: int) -> bool:
        """Whether a node has written as many snapshots as it has begun, and begins none for some seconds."""
        begun = len(self.log_of(node, SNAPSHOT_START))
        time.sleep(4)
        return begun == len(self.log_of(node, SNAPSHOT_START)) == len(self.log_of(node, SNAPSHOT_END))

    def asks_in_vain(self, leader: int, voter: int) -> None:
        """The same as `removes`, of a leader that has no majority: nobody answers in time."""
        with suppress(NotTried, RequestRefused):
            self.removes(leader, voter)

    def has_ended(self, node: int, seconds: float) -> bool:
        """Whether a process ends within that time, by a fault of its own; its lines of that are told."""
        ended = awaits(lambda: node in self.early_exits(), seconds)
        for fault in self.log_of(node, FATAL)[:1] + self.log_of(node, "java.lang.Illegal")[:1]:
            detail(f"controller {node}: {fault}")
        return ended and bool(self.log_of(node, FATAL))


def awaits(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it comes to pass within that time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait for it; NotTried if it does not come to pass."""
    if not awaits(condition, PATIENCE):
        raise NotTried(f"within {PATIENCE:.0f} s this did not happen: {what}")


def step(line: str) -> None:
    """One step of a story."""
    print(line, flush=True)


def detail(line: str) -> None:
    """Something that a step made visible."""
    print(f"    {line}", flush=True)


def removed_voter(quorum: Controllers, control: bool) -> bool:
    """A voter hangs, and is removed while a BeginQuorumEpoch is on its way to it. Then it answers.

    Control: it is killed instead.
    """
    leader = quorum.start_quorum()
    voter, other = sorted(set(quorum.ports) - {leader})
    step(f"three controllers; {leader} is active")
    began = len(quorum.lines)
    quorum.pause(voter)
    step(f"{voter} hangs, and fetches no more")
    sent = "Sending BEGIN_QUORUM_EPOCH request", f"to node {voter}"
    wait("a BeginQuorumEpoch to the voter", lambda: bool(quorum.log_of(leader, *sent, since=began)))
    quorum.removes(leader, voter)
    step(f"{leader} has sent {voter} a BeginQuorumEpoch. It removes {voter} from the voters, and answers that it has")
    if control:
        quorum.kill(voter)
        step(f"{voter} is killed")
    else:
        quorum.resume(voter)
        step(f"{voter} goes on, and answers the BeginQuorumEpoch")
    shows = quorum.has_ended(leader, STILL)
    if shows:
        step(f"the process of {leader} has ended. Two voters are left, {leader} and {other}")
        back = awaits(lambda: quorum.leader() not in (None, leader), STILL)
        step(f"{STILL:.0f} s later {'another' if back else 'no'} controller is active")
        quorum.kill(leader)
        quorum.start(leader)
        wait("a leader after the restart", lambda: quorum.leader() is not None)
        step(f"{leader} is started again, and {quorum.leader()} is active")
    return shows


def unknown_leader(quorum: Controllers, control: bool) -> bool:
    """A voter has a new disk, and hears first of all that its leader has resigned.

    Control: it has its own disk.
    """
    leader = quorum.start_quorum()
    (voter,) = set(quorum.ports) - {leader}
    step(f"two controllers; {leader} is active")
    began = len(quorum.lines)
    quorum.kill(voter)
    quorum.bootstrap_of[voter] = (voter,)
    wait("it resigns", lambda: bool(quorum.log_of(leader, "Completed transition to ResignedState", since=began)))
    quorum.pause(leader)
    step(f"{voter} is killed. {leader} has no majority any more, resigns, and hangs")
    if not control:
        quorum.replaces_disk(voter)
        step(f"the disk of {voter} is replaced by one formatted with --no-initial-controllers")
    quorum.start(voter)
    wait("it is up", lambda: bool(quorum.log_of(voter, "Kafka Server started", since=began)))
    step(f"{voter} starts. Its controller.quorum.bootstrap.servers lead to itself")
    up = len(quorum.lines)
    quorum.resume(leader)
    sent = "Sending END_QUORUM_EPOCH request", f"to node {voter}"
    wait("an EndQuorumEpoch", lambda: bool(quorum.log_of(leader, *sent, since=up)))
    step(f"{leader} goes on, and tells {voter} by EndQuorumEpoch that it has resigned")
    shows = quorum.has_ended(voter, STILL)
    if shows:
        step(f"the process of {voter} has ended")
    return shows


def forgotten_voters(quorum: Controllers, control: bool) -> bool:
    """A controller removes a voter while it writes a snapshot. Others are elected, who have no such record.

    Control: it has written the snapshot before.
    """
    leader = quorum.start_quorum()
    others = sorted(set(quorum.ports) - {leader})
    step(f"three controllers; {leader} is active")
    for batch in range(BATCHES):
        quorum.configures(leader, [f"insync.{batch}.{number}" for number in range(BATCH)])
    wait("its snapshots are written", lambda: quorum.is_still(leader))
    step(f"{BATCHES * BATCH:,} settings are set, so that a snapshot takes a while")
    began = len(quorum.lines)
    quorum.configures(leader, ["insync.last"])
    if control:
        wait("the last snapshot", lambda: bool(quorum.log_of(leader, SNAPSHOT_END, since=began)))
    for node in others:
        quorum.running[node].process.kill()
    asked = threading.Thread(target=quorum.asks_in_vain, args=(leader, others[0]), daemon=True)
    asked.start()
    wait("the record of the voters", lambda: bool(quorum.log_of(leader, "Latest set of voters is", since=began)))
    wait("the last snapshot", lambda: bool(quorum.log_of(leader, SNAPSHOT_END, since=began)))
    lines = [line for line in quorum.lines[began:] if f"broker {leader}: " in line]
    last = [n for n, line in enumerate(lines) if SNAPSHOT_END in line][-1]
    if (last < next(n for n, line in enumerate(lines) if "Latest set of voters is" in line)) is not control:
        raise NotTried("the snapshot was written too soon, or too late")
    quorum.pause(leader)
    step(f"one more is. The others are killed. {leader} appends that {others[0]} is no voter, and hangs")
    for node in others:
        quorum.kill(node)
        quorum.start(node)
    wait("another leader", lambda: any(quorum.log_of(n, "Completed transition to Leader", since=began) for n in others))
    quorum.resume(leader)
    wait("it truncates", lambda: bool(quorum.log_of(leader, "Truncated to offset", since=began)))
    new = quorum.leader()
    if new not in others:
        raise NotTried("the leader has changed again")
    step(f"the others start again, and {new} is active. {leader} goes on, and truncates that record")
    time.sleep(STILL)
    quorum.kill(new)
    (last_one,) = set(others) - {new}
    step(f"{new} is killed. {leader} and {last_one} are two of three voters")
    elected = awaits(lambda: quorum.leader() not in (None, new), ELECTED_WITHIN)
    step(f"{'one of them is active' if elected else f'after {ELECTED_WITHIN:.0f} s no controller is active'}")
    if not elected:
        quorum.kill(leader)
        quorum.start(leader)
        wait("a leader after the restart", lambda: quorum.leader() is not None)
        step(f"{leader} is started again, and {quorum.leader()} is active")
    return not elected


def unsent_error(quorum: Controllers, control: bool) -> bool:
    """A controller is asked for a snapshot that it cannot give. Control: by somebody of another cluster."""
    leader = quorum.start_quorum()
    (follower,) = set(quorum.ports) - {leader}
    step(f"two controllers; {leader} is active")
    outcomes = list[bool]()
    for node, which in ((leader, "that is not there"), (follower, "though it does not lead")):
        began = len(quorum.lines)
        snapshot = {"partition": 0, "current_leader_epoch": 1, "snapshot_id": {"end_offset": 9, "epoch": 1}}
        fields = {
            "cluster_id": new_id() if control else quorum.cluster,
            "replica_id": 9,
            "max_bytes": 1024,
            "topics": [{"name": METADATA_TOPIC, "partitions": [snapshot | {"position": 0}]}],
        }
        with Admin(quorum.found_at(node)) as admin:
            told = admin.ask(FETCH_SNAPSHOT, 1, fields)
        code, topics = told.number("error_code"), told.all("topics")
        step(f"{node} is asked for a snapshot {which}: {error_name(code)}, and {len(topics)} partitions")
        faults = quorum.log_in_time(node, "NullPointerException", since=began)
        for fault in faults[:1]:
            detail(f"controller {node}: {fault}")
        outcomes.append(bool(faults) and not topics)
    return all(outcomes)


@attrs.frozen
class QuorumFault:
    """One fault: what it shows and when, its story, with how many controllers and which settings.

    `seconds`: what its story takes where nothing else runs.
    """

    name: str
    shows: str
    when: str
    story: Callable[[Controllers, bool], bool]
    controllers: int
    seconds: int
    properties: Mapping[str, str] = attrs.field(factory=dict[str, str])


FAULTS: Final = {
    fault.name: fault
    for fault in (
        QuorumFault(
            "removed-voter",
            "the process of the active controller ends",
            "a voter that hangs is removed, and answers a BeginQuorumEpoch afterwards",
            removed_voter,
            3,
            30,
        ),
        QuorumFault(
            "forgotten-voters",
            "two voters of three elect nobody",
            "a record with new voters is appended while a snapshot is written that ends there, and is truncated later",
            forgotten_voters,
            3,
            120,
            {"metadata.max.idle.interval.ms": "0", "metadata.log.max.record.bytes.between.snapshots": "1"},
        ),
        QuorumFault(
            "unknown-leader",
            "the process of a controller ends",
            "a controller with a new disk hears that a leader has resigned before it hears of that leader otherwise",
            unknown_leader,
            2,
            25,
        ),
        QuorumFault(
            "unsent-error",
            "an error cannot be sent, and UNKNOWN_SERVER_ERROR is",
            "a controller is asked for a snapshot that it does not have, or that only a leader may give",
            unsent_error,
            2,
            15,
        ),
    )
}
"""Every fault, by name."""


@attrs.define
class QuorumReproduction(StoryReproduction):
    """A fault's story, on controllers of a release."""

    fault: QuorumFault
    release: str | None = None
    control: bool = False

    def story_run(self, stack: ExitStack) -> StoryRun:
        """What is to be run; Unavailable if something is missing."""
        release = node_files(self.release).release
        command = [*python_module("isr_found.controllers"), self.fault.name, "--kafka", release]
        return StoryRun(
            [*command, *(["--control"] if self.control else [])],
            self.fault.name,
            release,
            self.control,
            STORY_PATIENCE,
        )


def outcome_of(fault: QuorumFault, files: NodeFiles, control: bool) -> Outcome:
    """What comes of a story, on controllers of its own."""
    with tempfile.TemporaryDirectory(prefix="insync-controllers-") as root:
        quorum = Controllers.of(fault.controllers, Path(root), files, fault.properties)
        try:
            return Outcome.FAULT if fault.story(quorum, control) else Outcome.HELD
        except (NotTried, Mishap, RequestRefused) as problem:
            step(f"NOT TRIED: {problem}")
            return Outcome.NOT_TRIED
        finally:
            quorum.kill_all()


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell one story; the last line and the exit code are its verdict."""
    parser = argparse.ArgumentParser(prog="python -m isr_found.controllers", description=main.__doc__)
    parser.add_argument("fault", choices=tuple(FAULTS))
    parser.add_argument("--control", action="store_true", help="the same steps without the condition that decides")
    parser.add_argument("--kafka", metavar="RELEASE", help="which Kafka; the newest")
    options = parser.parse_args(arguments)
    files = node_files(options.kafka)
    outcome = outcome_of(FAULTS[options.fault], files, options.control)
    words = {
        "outcome": outcome.name,
        "story": options.fault,
        "control": options.control,
        "release": files.release,
    }
    step(VERDICT + json.dumps(words))
    return outcome.value


if __name__ == "__main__":
    sys.exit(main())
