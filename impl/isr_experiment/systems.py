"""The systems that an experiment can put under test.

Clients, faults, history and judges are the same for all. A system says which cells it cannot run, and why; how its
brokers are started; and how the decisions of its controller are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import attrs

from isr_broker.storage.metadata_log import NAME
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.kafka import KafkaProcesses
from isr_cluster.kafka_metadata import METADATA_LOG
from isr_cluster.processes import Processes, System
from isr_experiment.cells import REPLICAS, Cell
from isr_experiment.network import Network
from isr_experiment.power import record_of
from isr_experiment.watch import KafkaWatch, OurWatch, Watch
from isr_kafka.node import NodeFiles, new_id

BROKERS: Final = (CONTROLLER_BROKER, *REPLICAS)
TODAY: Final = "kip-966"

Tell = Callable[[str], None]


@attrs.frozen(kw_only=True)
class SystemUnderTest:
    """A system under test."""

    name: str
    traces: bool = False
    """Whether its brokers write traces that can be compared with the model."""

    def lacks(self, cell: Cell) -> str:
        """Why a cell cannot be run on it; nothing if it can."""
        raise NotImplementedError

    def cannot(self) -> Iterable[str]:
        """The kinds of fault that cannot be done to it."""
        return ()

    def made(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
        """The cluster for one run, not yet started."""
        raise NotImplementedError

    def watch(self, cluster: System, began: int) -> Watch:
        """What sees the controller's decisions, in nanoseconds since `began`."""
        raise NotImplementedError


class OurBroker(SystemUnderTest):
    """Our reference broker, of whichever design."""

    def lacks(self, cell: Cell) -> str:
        """Nothing: the catalogue is made for it."""
        return ""

    def made(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
        """Processes of isr_broker; the first has the controller."""
        settings = cell.properties()
        if traces:
            settings["insync.trace.dir"] = str(folder / "trace")
        return Processes(
            folder,
            network.ports,
            settings,
            tell=tell,
            own={b: {"insync.flush.record": str(record_of(folder, b)), "broker.rack": f"rack-{b}"} for b in BROKERS},
            hosts=network.hosts,
            advertised=network.advertised,
            inside=network.inside,
        )

    def watch(self, cluster: System, began: int) -> Watch:
        """Its controller's log."""
        return OurWatch(began, path=cluster.data(CONTROLLER_BROKER) / NAME)


NOT_KAFKA_S: Final = "insync."
LEFT_TO_KAFKA: Final = ("controller.socket.timeout.ms",)
"""30 s by default: with one second an AlterPartition would time out where a machine is merely slow."""
ELR: Final = {TODAY: True, "kraft-3.5": False}
"""The designs that Apache Kafka 4 can show, by whether eligible.leader.replicas.version is 1."""


@attrs.frozen(kw_only=True)
class ApacheKafka(SystemUnderTest):
    """A release of Apache Kafka; `files` must note flushes, for else no power failure can be made."""

    files: NodeFiles

    def lacks(self, cell: Cell) -> str:
        """It has one design, with or without the ELR; ours of earlier years, and our planted bugs, are not in it."""
        return "" if cell.design in ELR else f"{self.name} has not the design {cell.design}"

    def made(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
        """Nodes of KRaft; the first is controller and broker in one."""
        given = cell.properties()
        settings = {k: v for k, v in given.items() if not k.startswith(NOT_KAFKA_S) and k not in LEFT_TO_KAFKA}
        settings["unclean.leader.election.interval.ms"] = "1000"  # else minutes
        return KafkaProcesses(
            root=folder,
            ports=network.ports,
            properties=settings,
            cluster=new_id(),
            tell=tell,
            own={b: {"broker.rack": f"rack-{b}"} for b in BROKERS},
            hosts=network.hosts,
            advertised=network.advertised,
            inside=network.inside,
            files=self.files,
            controller=network.controller,
            elr=ELR[cell.design],
            records={b: record_of(folder, b) for b in BROKERS},
        )

    def watch(self, cluster: System, began: int) -> Watch:
        """Its controller's `__cluster_metadata`."""
        return KafkaWatch(began, path=cluster.data(CONTROLLER_BROKER) / METADATA_LOG)


OURS: Final = OurBroker(name="insync", traces=True)
