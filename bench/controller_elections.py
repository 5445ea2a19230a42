"""How long does it take until another controller is active, when that is killed? Ours and Apache Kafka's.

    python bench/controller_elections.py [--kills N] [--release VERSION] [--write]

Three controllers and a broker, processes of this machine with default settings of the quorum. From each SIGKILL to two
events: another controller leads the quorum, and a topic is created, which somebody asks the broker for all the time.
`--write` puts the table into docs/broker.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.pages import markdown, put_between
from tests.support.quorums import StaticQuorum, quorum_status

from isr_broker.wire import protocol
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.kafka import archive
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import python_module
from isr_kafka.node import NodeFiles, node_files

DOCS: Final = Path(__file__).resolve().parent.parent / "docs" / "broker.md"
BEGIN: Final = "<!-- Made by bench/controller_elections.py --write: -->\n"
END: Final = "<!-- until here. -->\n"
HEAD: Final = ("the active controller is killed", "of", "median", "from", "to")
CONTROLLERS: Final = (101, 102, 103)
BROKER: Final = 1
_ATTEMPT: Final = 1.0


@attrs.define(kw_only=True)
class ControllersAndBroker(StaticQuorum):
    """Controllers of one kind, and a broker of the same."""

    @property
    def voters(self) -> str:
        """Those that are no broker."""
        return ",".join(f"{node}@{HOST}:{self.ports[node]}" for node in CONTROLLERS)

    def command(self, broker: int) -> list[str]:
        """A controller, or the broker."""
        if broker != BROKER:
            return StaticQuorum.command(self, broker)
        return self._kafka_broker() if self.files is not None else self._broker()

    def _broker(self) -> list[str]:
        places = ",".join(f"{HOST}:{self.ports[node]}" for node in CONTROLLERS)
        command = [*python_module("isr_broker"), "--id", str(BROKER), "--port", str(self.ports[BROKER])]
        return [*command, "--data", str(self.data(BROKER)), "--cluster", self.cluster, "--controller", places]

    def _kafka_broker(self) -> list[str]:
        assert self.files is not None
        path = self.root / f"{BROKER}.properties"
        at = f"PLAINTEXT://{HOST}:{self.ports[BROKER]}"
        settings = {
            "node.id": str(BROKER),
            "process.roles": "broker",
            "listeners": at,
            "advertised.listeners": at,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.voters": self.voters,
            "log.dirs": str(self.data(BROKER).resolve()),
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        if not self.data(BROKER).exists():
            self.files.format(path, self.cluster)
        return self.files.command(path)


@attrs.frozen
class Gap:
    """Seconds from a SIGKILL until another controller leads, and until a topic is created."""

    leader: float
    topic: float


class TopicCreation:
    """It asks the broker for a topic until there is one, in a thread of its own."""

    def __init__(self, quorum: ControllersAndBroker, topic: str) -> None:
        self.at = 0.0
        self._place, self._topic = quorum.found_at(BROKER), topic
        self.thread = threading.Thread(target=self._asks, daemon=True)
        self.thread.start()

    def _asks(self) -> None:
        fields = {"topics": [{"name": self._topic, "num_partitions": 1, "replication_factor": 1}], "timeout": 1_000}
        while not self.at:
            try:
                with Admin(self._place, _ATTEMPT) as admin:
                    (row,) = admin.ask(protocol.CREATE_TOPICS, 7, fields).all("topics")
                    if protocol.ERROR_NAMES[row.number("error_code")] in ("NONE", "TOPIC_ALREADY_EXISTS"):
                        self.at = time.monotonic()
            except (RequestRefused, ValueError):
                time.sleep(0.01)


def gap_after_kill(quorum: ControllersAndBroker, number: int) -> Gap:
    """The active controller is killed; it is back in the end, and has caught up."""
    first = quorum.awaits_status(lambda status: len(status.ends) == len(CONTROLLERS))
    places = {node: quorum.found_at(node) for node in CONTROLLERS if node != first.leader}
    began = time.monotonic()
    quorum.kill(first.leader)
    creation = TopicCreation(quorum, f"t{number}")
    while (status := quorum_status(places, 0.5)) is None or status.leader == first.leader:
        time.sleep(0.01)
    leads = time.monotonic()
    creation.thread.join(120)
    assert creation.at, "no controller creates a topic"
    quorum.start(first.leader)
    quorum.awaits(first.leader)
    quorum.awaits_status(lambda status: status.ends.get(first.leader, -1) >= status.watermark - 5)
    time.sleep(2)
    return Gap(leads - began, creation.at - began)


def gaps_of(root: Path, files: NodeFiles | None, kills: int) -> list[Gap]:
    """All of one kind."""
    ports: dict[int, int] = dict(zip((*CONTROLLERS, BROKER), free_ports(4), strict=True))
    quorum = ControllersAndBroker(
        root=root,
        ports=ports,
        files=files,
        ours=frozenset(CONTROLLERS) if files is None else frozenset(),
        program=python_module("isr_broker.controller"),
    )
    try:
        quorum.start_all()
        creation = TopicCreation(quorum, "first")
        creation.thread.join(120)
        assert creation.at, "no topic is created"
        return [gap_after_kill(quorum, number) for number in range(kills)]
    finally:
        quorum.kill_all()


def rows(gaps: Mapping[str, Sequence[Gap]]) -> list[tuple[str, ...]]:
    """The table: a row for each event and kind."""
    events = {"until another leads the quorum": "leader", "until a topic is created": "topic"}
    table = list[tuple[str, ...]]()
    for event, field in events.items():
        for kind, each in gaps.items():
            times = [float(getattr(gap, field)) for gap in each]
            figures = (statistics.median(times), min(times), max(times))
            table.append((event, kind, *(f"{figure:.2f} s" for figure in figures)))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--release", default="4.4.0")
    parser.add_argument("--write", action="store_true", help="put the table into docs/broker.md")
    options = parser.parse_args()
    files = node_files(str(options.release))
    archive(files)
    gaps = dict[str, Sequence[Gap]]()
    with tempfile.TemporaryDirectory(prefix="insync-elections-") as folder:
        for kind, of_kind in {"insync": None, f"Apache Kafka {files.release}": files}.items():
            root = Path(folder) / kind.split()[-1]
            root.mkdir()
            gaps[kind] = gaps_of(root, of_kind, int(options.kills))
            print(kind, *(f"{gap.leader:.2f}/{gap.topic:.2f}" for gap in gaps[kind]), flush=True)
    table = markdown(HEAD, rows(gaps))
    print(table)
    if options.write:
        put_between(DOCS, BEGIN, f"\n{table}\n\n", END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
