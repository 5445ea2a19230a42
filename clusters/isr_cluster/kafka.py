"""A cluster of Apache Kafka's own nodes, each a JVM: KRaft, the first of them controller and broker in one.

    files = node_files("4.4.0")
    archive(files)
    kafka = KafkaProcesses(root, ports, files=files, controller=(HOST, 9093))
    kafka.start_all()

What it knows of KRaft is in `node_settings`. A start does not wait (`System.start`): a node takes 4 s and more until it
serves, and a schedule that strikes again before that is to strike a node that does not serve yet.
"""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_broker.core.messages import TopicPartition
from isr_broker.quorum_settings import QuorumSettings
from isr_broker.settings import Settings, spelling
from isr_cluster.admin import Admin, RequestRefused
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.kafka_metadata import METADATA_LOG, PartitionDecision, Session, decisions
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Address, UnderControllers
from isr_kafka.node import NodeFiles, new_id

SIGTERM_EXIT: Final = 143
"""With which a JVM ends after its orderly end on SIGTERM."""
SMALL: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "4194304",  # else 128 MB of a heap of 256
    "num.io.threads": "4",
    "num.network.threads": "2",
}
"""What every node has unless it was set: a cluster for tests, on one machine."""
INTERNAL: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")


def node_settings(
    node: int, listens: Address, advertised_address: Address, controller: tuple[Address, Address] | str
) -> dict[str, str]:
    """What makes a node a member of the cluster: KRaft with a static quorum, by default of one.

    `controller` is where the controller listens and where it is found, which differ where a proxy stands before it; or
    the voters of a quorum, none of which is a node here.
    """
    listeners, advertised = [_listener("PLAINTEXT", listens)], [_listener("PLAINTEXT", advertised_address)]
    voters = controller if isinstance(controller, str) else "{}@{}:{}".format(CONTROLLER_BROKER, *controller[1])
    has_controller = False
    if node == CONTROLLER_BROKER and not isinstance(controller, str):
        has_controller = True
        listeners.append(_listener("CONTROLLER", controller[0]))
        advertised.append(_listener("CONTROLLER", controller[1]))
    return {
        "node.id": str(node),
        "process.roles": "broker,controller" if has_controller else "broker",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def _listener(name: str, at: Address) -> str:
    return "{}://{}:{}".format(name, *at)


@attrs.define(kw_only=True)
class KafkaProcesses(UnderControllers):
    """Nodes of one release. The first has the controller, at `controller`, unless there are `controllers` of ours.

    `elr` is whether eligible leader replicas (KIP-966) are switched on when it is formatted; `records` are the files
    into which nodes note what they flushed, `options` the JVM's.
    """

    files: NodeFiles
    controller: tuple[Address, Address]
    elr: bool = True
    records: Mapping[int, Path] = attrs.field(factory=dict[int, Path])
    options: Sequence[str] = ()
    traces: Path | None = None
    """Where nodes write their traces, if `files` have the agent."""

    def command(self, broker: int) -> list[str]:
        """A JVM, or a controller; the folder is formatted, if it is new, and server.properties written."""
        if broker in self.controllers:
            known = {spelling(field.name) for kind in (Settings, QuorumSettings) for field in attrs.fields(kind)}
            return self.controller_command(broker, {n: v for n, v in self.properties.items() if n in known})
        quorum = self.quorum if self.controllers else self.controller
        data = self.data(broker)
        if not data.exists() or not any(data.iterdir()):
            data.parent.mkdir(parents=True, exist_ok=True)
            if data.exists():
                data.rmdir()
            has_controller = broker == CONTROLLER_BROKER and not self.controllers
            self.files.new_folder(data, broker, self.cluster, has_controller, self.elr)
        copies = min(3, len(self.ports))
        internal = {f"{topic}.replication.factor": str(copies) for topic in INTERNAL}
        internal |= {f"{topic}.min.isr": str(max(1, copies - 1)) for topic in INTERNAL[1:]}
        whose = node_settings(broker, self.listens_at(broker), self.found_at(broker), quorum)
        settings = {**SMALL, **internal, **self.properties, **self.own.get(broker, {}), **whose}
        settings["log.dirs"] = str(data.resolve())
        properties = self.root / f".server-{broker}.properties"
        properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        notes = [f"-Dinsync.flush.record={self.records[broker].resolve()}"] if broker in self.records else []
        if self.traces is not None:
            notes += [f"-Dinsync.trace.dir={self.traces.resolve()}", f"-Dinsync.trace.node={broker}"]
        return self.files.command(properties, [*self.options, f"-Dinsync.logs={data.resolve()}", *notes])

    def write_decisions(self, partition: TopicPartition, settings: Mapping[str, str]) -> None:
        """Add to the traces what `__cluster_metadata` says of a partition, once no node runs."""
        log = self.data(CONTROLLER_BROKER) / METADATA_LOG
        if self.traces is not None and log.is_file():
            write_decisions(log, self.traces, partition, settings)

    def serves(self, broker: int) -> bool:
        """It says of itself that it is a broker with a session; a controller, that it listens."""
        if broker in self.controllers:
            return self.running[broker].listens
        try:
            with Admin(self.found_at(broker), 2.0) as admin:
                return broker in admin.brokers()
        except RequestRefused:
            return False

    def reason(self, lines: Sequence[str]) -> str:
        """Kafka's exception, which stands above its stack."""
        told = [line for line in lines if "Exception" in line and not line.lstrip().startswith("at ")]
        return (told or list(lines))[0][:400]

    def stop(self, broker: int, number: signal.Signals = signal.SIGTERM) -> int:
        """The same; a JVM's orderly end counts as 0."""
        code = super().stop(broker, number)
        return 0 if number is signal.SIGTERM and code == SIGTERM_EXIT else code


def write_decisions(log: Path, traces: Path, partition: TopicPartition, settings: Mapping[str, str]) -> None:
    """Add to the traces in a folder what a log of `__cluster_metadata` says of a partition.

    `settings` are those by which the traces are to be judged.
    """
    head = {"format": "insync/kafka-trace/1", "node": "controller", "life": 1, "at": 0, "settings": dict(settings)}
    lines: list[object] = [head]
    for number, told in enumerate(decisions(log.read_bytes(), partition), 1):
        lines.append({"n": number, "since": number - 1, "at": number, **_line(told, partition)})
    traces.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (traces / "controller.1.jsonl").write_text(text, encoding="utf-8")


def _line(decision: PartitionDecision | Session, partition: TopicPartition) -> dict[str, object]:
    """A decision of the controller as a line of a trace."""
    if isinstance(decision, Session):
        return {"what": "broker", **attrs.asdict(decision)}
    return {
        "what": "decides",
        "partition": str(partition),
        "leader": -1 if decision.leader is None else decision.leader,
        "leader_epoch": decision.epoch,
        "partition_epoch": decision.version,
        "isr": decision.isr,
        "elr": decision.elr,
        "last_known_elr": decision.last_known,
        "replicas": decision.replicas,
    }


def archive(files: NodeFiles) -> None:
    """Make the archive of classes of a release, once: one node is started, given a topic, and stopped in order."""

    def start_and_stop(options: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="insync-node-") as root:
            port, controller = free_ports(2)
            node = KafkaProcesses(
                Path(root),
                {CONTROLLER_BROKER: port},
                cluster=new_id(),
                files=files,
                controller=((HOST, controller), (HOST, controller)),
                options=options,
            )
            try:
                node.start_all()
                with Admin((HOST, port), 10.0) as admin:
                    admin.create("t", 1, 1)
                node.stop_all()
            finally:
                node.kill_all()

    files.train(start_and_stop)
