"""Quorums whose voters stand in `controller.quorum.voters`, as processes of this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest

from isr_broker.core.messages import Error, error_of
from isr_broker.core.record_batch import batches, whole_batches
from isr_broker.storage.meta_properties import new_id
from isr_broker.storage.quorum_disk import FOLDER
from isr_broker.wire import protocol
from isr_broker.wire.controller_channels import directory_uuid
from isr_broker.wire.quorum_requests import TOPIC
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import controller_numbers
from isr_cluster.ports import HOST, free_ports, in_use
from isr_cluster.processes import Address, Processes, System, python_module
from isr_kafka import Unavailable, classpath, command_line, java
from isr_kafka.node import NodeFiles, controller_settings, node_files


def kafka_files(release: str) -> NodeFiles:
    """What nodes of a release are started from; a visible skip where it cannot be had, a failure under CI."""
    try:
        return node_files(release)
    except Unavailable as problem:
        unavailable(problem)
        raise


def kafka_tool(name: str, arguments: Sequence[str]) -> str:
    """What one of Kafka's own command line tools prints; a visible skip where it cannot be had."""
    try:
        command = [java(), "-cp", classpath(command_line()), f"org.apache.kafka.tools.{name}", *arguments]
    except Unavailable as problem:
        unavailable(problem)
        raise
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def unavailable(problem: Unavailable) -> None:
    """Kafka cannot be had here."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{problem}; under CI this is a failure, not a skip", pytrace=False)
    pytest.skip(str(problem))


@attrs.frozen(kw_only=True)
class QuorumStatus:
    """What a leader says of its quorum: its epoch, its high watermark, and where each voter's log ends.

    `directories` are those of its voters, and `observers` says where the logs of others end.
    """

    leader: int
    epoch: int
    watermark: int
    ends: Mapping[int, int]
    directories: Mapping[int, bytes]
    observers: Mapping[int, int]


def quorum_status(places: Mapping[int, Address], patience: float = 3.0) -> QuorumStatus | None:
    """What one of these says that leads; None if none does, or none has answered in time."""
    partition = {"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}
    for node, place in places.items():
        try:
            with Admin(place, patience) as admin:
                (topic,) = admin.ask(protocol.DESCRIBE_QUORUM, 2, {"topics": [partition]}).all("topics")
        except (RequestRefused, ValueError):
            continue
        (row,) = topic.all("partitions")
        if row.number("error_code", 0) == 0 and row.number("leader_id") == node:
            voters, observers = row.all("current_voters"), row.all("observers")
            return QuorumStatus(
                leader=node,
                epoch=row.number("leader_epoch"),
                watermark=row.number("high_watermark"),
                ends={v.number("replica_id"): v.number("log_end_offset") for v in voters},
                directories={v.number("replica_id"): v.data("replica_directory_id") or b"" for v in voters},
                observers={v.number("replica_id"): v.number("log_end_offset") for v in observers},
            )
    return None


@attrs.define
class DynamicControllers(Processes):
    """Controllers that are known by their disks, and brokers. `directories` are the ids of the disks that they have."""

    directories: dict[int, bytes] = attrs.field(factory=dict[int, bytes])
    first: str = ""
    lost_disks: dict[int, bytes] = attrs.field(factory=dict[int, bytes])

    @classmethod
    def of(cls, root: Path, properties: Mapping[str, str], of_voters: Mapping[str, str]) -> DynamicControllers:
        """Three of each, none of them started; the first are the settings of all, the others of the voters alone."""
        ports = free_ports(6)
        controllers = {number: (HOST, port) for number, port in zip(controller_numbers(3), ports[3:], strict=True)}
        ids = {number: new_id() for number in controllers}
        return cls(
            root,
            dict(enumerate(ports[:3], 1)),
            properties,
            own=dict.fromkeys(controllers, of_voters),
            controllers=controllers,
            directories={number: directory_uuid(text) for number, text in ids.items()},
            first=",".join(f"{number}@{HOST}:{port}:{ids[number]}" for number, (_, port) in controllers.items()),
        )

    def controller_command(self, number: int, properties: Mapping[str, str]) -> list[str]:
        """Its folder is formatted once, and the setting names servers and no voters."""
        if not self.data(number).exists():
            self.format(number)
        servers = ",".join(f"{host}:{port}" for host, port in self.controllers.values())
        host, port = self.controllers[number]
        settings = {
            **properties,
            **self.own.get(number, {}),
            "controller.quorum.bootstrap.servers": servers,
            "listeners": f"CONTROLLER://{host}:{port}",
        }
        return [*self._program(number), "--tied", *(f"{name}={value}" for name, value in settings.items())]

    def _program(self, number: int) -> list[str]:
        program = [*self.controller_program, "--id", str(number), "--data", str(self.data(number))]
        return [*program, "--cluster", self.cluster]

    def format(self, number: int) -> bytes:
        """A new folder is that of one of the first voters, and a later one that of none; its directory id."""
        first = ["--initial-controllers", self.first] if number not in self.lost_disks else []
        command = [*self._program(number), "--format", *first]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.directories[number] = directory_uuid(said.split()[-1])
        return self.directories[number]

    def loses_disk(self, number: int) -> None:
        """It is killed, if it runs, and its folder is destroyed."""
        if number in self.running:
            self.kill(number)
        self.lost_disks[number] = self.directories[number]
        shutil.rmtree(self.data(number))

    def changes(self, key: int, number: int, directory: bytes, patience: float = 60.0) -> Error:
        """What comes of an AddRaftVoter or RemoveRaftVoter, asked again while it is in vain."""
        host, port = self.controllers[number]
        fields = {
            "cluster_id": self.cluster,
            "timeout": 10_000,
            "voter_id": number,
            "voter_directory_id": directory,
            "listeners": [{"name": "CONTROLLER", "host": host, "port": port}],
        }
        until = time.monotonic() + patience
        while time.monotonic() < until:
            status = quorum_status({n: place for n, place in self.controllers.items() if n in self.running})
            if status is not None:
                with contextlib.suppress(RequestRefused), Admin(self.controllers[status.leader], 15.0) as admin:
                    error = error_of(admin.ask(key, 0, fields).number("error_code"))
                    if error not in (Error.REQUEST_TIMED_OUT, Error.NOT_LEADER_OR_FOLLOWER):
                        return error
            time.sleep(0.1)
        return Error.REQUEST_TIMED_OUT

    def puts_in_again(self, number: int) -> list[Error]:
        """Its lost disk is no voter any more, and the one that it has becomes one."""
        gone = self.changes(protocol.REMOVE_RAFT_VOTER, number, self.lost_disks[number])
        return [gone, self.changes(protocol.ADD_RAFT_VOTER, number, self.directories[number])]


@attrs.define(kw_only=True)
class StaticQuorum(System):
    """Voters of `controller.quorum.voters`, each ours or a controller of Apache Kafka of the release of `files`.

    A folder that is not there is formatted, each by its own tool. `program` is what runs a voter of ours.
    """

    ours: frozenset[int]
    files: NodeFiles | None = None
    kafka_properties: Mapping[str, str] = MappingProxyType({})
    program: Sequence[str] = attrs.field(factory=lambda: python_module("isr_broker.voter"))

    @classmethod
    def of(
        cls,
        root: Path,
        ours: Iterable[int],
        kafkas: Iterable[int] = (),
        files: NodeFiles | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
        kafka_properties: Mapping[str, str] = MappingProxyType({}),
    ) -> StaticQuorum:
        """These voters, none of them started; `properties` are the settings of ours."""
        nodes = sorted({*ours, *kafkas})
        ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))
        return cls(
            root=root,
            ports=ports,
            files=files,
            ours=frozenset(ours),
            properties=properties,
            kafka_properties=kafka_properties,
        )

    @property
    def voters(self) -> str:
        """The setting of all of them."""
        return ",".join(f"{node}@{HOST}:{port}" for node, port in self.ports.items())

    def command(self, broker: int) -> list[str]:
        """A voter of ours, or a JVM."""
        return self.own_command(broker) if broker in self.ours else self.kafka_command(broker)

    def own_command(self, node: int) -> list[str]:
        """Without its settings the first of these commands formats a folder."""
        command = [*self.program, "--id", str(node), "--data", str(self.data(node)), "--cluster", self.cluster]
        if not self.data(node).exists():
            subprocess.run([*command, "--format"], check=True, capture_output=True)
        settings = {**self.properties, "controller.quorum.voters": self.voters}
        return [*command, "--tied", *(f"{name}={value}" for name, value in settings.items())]

    def kafka_command(self, node: int) -> list[str]:
        """Its server.properties is written first."""
        assert self.files is not None
        path = self.root / f"{node}.properties"
        settings = {
            **controller_settings(node, self.listens_at(node), self.data(node)),
            "controller.quorum.voters": self.voters,
            **self.kafka_properties,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        if not self.data(node).exists():
            self.files.format(path, self.cluster)
        return self.files.command(path)

    def serves(self, broker: int) -> bool:
        """It listens."""
        return in_use(self.ports[broker])

    def log_bytes(self, node: int) -> bytes:
        """The log as it is on the disk."""
        return (self.data(node) / FOLDER / f"{0:020d}.log").read_bytes()

    def status(self) -> QuorumStatus | None:
        """What a leader says that the quorum takes for one; None while nobody does."""
        return quorum_status({node: self.found_at(node) for node in set(self.running) - set(self.early_exits())})

    def awaits_status(
        self, what: Callable[[QuorumStatus], bool] = lambda status: True, seconds: float = 60
    ) -> QuorumStatus:
        """The status once it is so; AssertionError if it is not in time."""
        until, status = time.monotonic() + seconds, None
        while time.monotonic() < until:
            status = self.status()
            if status is not None and what(status):
                return status
            time.sleep(0.05)
        ends = {node: list(self.running[node].last)[-1:] for node in self.early_exits()}
        raise AssertionError(f"within {seconds} s this did not come to pass, the last was {status}, and {ends} ended")

    def committed(self) -> bytes:
        """The bytes of the log that a leader knows to be committed."""
        status = self.awaits_status(lambda status: status.watermark > 0)
        data = whole_batches(self.log_bytes(status.leader))
        ends = [batch.position + batch.size for batch in batches(data) if batch.next_offset <= status.watermark]
        return data[: max(ends, default=0)]
