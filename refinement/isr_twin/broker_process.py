"""The process of the broker under test: its settings, its folder, how it is started, killed and started again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from isr_broker.core.messages import Offset

SETTINGS: Final[Mapping[str, str]] = {
    "broker.heartbeat.interval.ms": "10",
    "broker.session.timeout.ms": "600000",
    "controller.socket.timeout.ms": "600000",
    "request.timeout.ms": "600000",
    "replica.socket.timeout.ms": "600000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "10",
    "replica.high.watermark.checkpoint.interval.ms": "600000",
    "min.insync.replicas": "2",
    "num.replica.fetchers": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.segment.delete.delay.ms": "0",
    "log.retention.check.interval.ms": "600000",
    "controlled.shutdown.enable": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
}
"""Nothing is to happen by itself: deadlines lie far away, and no checkpoint is written unless a step says so."""
WATERMARKS: Final = "replication-offset-checkpoint"


@attrs.define(eq=False)
class BrokerProcess:
    """One broker. `command` names {properties}, {data}, {port}, {controller} and {id}, which are put into each word."""

    command: str
    root: Path
    node: int
    host: str
    port: int
    controller: tuple[int, tuple[str, int]]
    cluster: str
    lag: float
    """replica.lag.time.max.ms, in seconds: after how long a member that lags is put out of the ISR."""
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The folder of its logs."""
        return self.root / "data"

    @property
    def output(self) -> Path:
        """The file with what it says."""
        return self.root / "output.txt"

    def start(self) -> None:
        """Start it; its folder is formatted before it is started first."""
        self._format()
        at = f"{self.controller[1][0]}:{self.controller[1][1]}"
        properties = self.root / "server.properties"
        settings = {
            **SETTINGS,
            "node.id": str(self.node),
            "process.roles": "broker",
            "controller.quorum.voters": f"{self.controller[0]}@{at}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data),
            "replica.lag.time.max.ms": str(round(self.lag * 1000)),
            **self.settings,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        places = {
            "properties": str(properties),
            "data": str(self.data),
            "port": str(self.port),
            "controller": at,
            "id": str(self.node),
        }
        words = [word.format_map(places) for word in shlex.split(self.command)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def _format(self) -> None:
        if self.data.exists():
            return
        self.data.mkdir(parents=True)
        mine = {"version": "1", "cluster.id": self.cluster, "node.id": str(self.node)}
        text = "".join(f"{name}={value}\n" for name, value in mine.items())
        (self.data / "meta.properties").write_text(text, encoding="utf-8")

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def kill(self, watermarks: Mapping[str, Offset]) -> None:
        """End it by SIGKILL, and leave these watermarks of `TOPIC PARTITION` as what it had written last."""
        if self.process is not None:
            if self.runs:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
        lines = [f"{name} {offset}\n" for name, offset in watermarks.items()]
        (self.data / WATERMARKS).write_text(f"0\n{len(lines)}\n{''.join(lines)}", encoding="utf-8")

    def last_words(self) -> str:
        """The last line that it said."""
        lines = self.output.read_text(errors="replace").splitlines() if self.output.exists() else []
        return lines[-1][:300] if lines else "it said nothing"
