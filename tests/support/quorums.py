"""Quorums whose voters stand in `controller.quorum.voters`, as processes of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from isr_cluster.ports import HOST, free_ports, in_use
from isr_cluster.processes import System
from isr_kafka import Unavailable, classpath, command_line, java
from isr_kafka.node import NodeFiles, node_files


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


@attrs.define(kw_only=True)
class StaticQuorum(System):
    """Controllers of Apache Kafka. A folder that is not there is formatted by Kafka's tool."""

    files: NodeFiles

    @classmethod
    def of(cls, root: Path, files: NodeFiles, count: int) -> StaticQuorum:
        """So many voters, none of them started."""
        return cls(root=root, ports=dict(enumerate(free_ports(count), 1)), files=files)

    @property
    def voters(self) -> str:
        """The setting of all of them."""
        return ",".join(f"{node}@{HOST}:{port}" for node, port in self.ports.items())

    def command(self, broker: int) -> list[str]:
        """A JVM."""
        path = self.root / f"{broker}.properties"
        settings = {
            "node.id": str(broker),
            "process.roles": "controller",
            "controller.quorum.voters": self.voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": "CONTROLLER://{}:{}".format(*self.listens_at(broker)),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data(broker)),
            **self.properties,
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        if not self.data(broker).exists():
            self.files.format(path, self.cluster)
        return self.files.command(path)

    def serves(self, broker: int) -> bool:
        """It listens."""
        return in_use(self.ports[broker])
