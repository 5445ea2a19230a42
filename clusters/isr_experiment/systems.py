"""The systems that an experiment can put under test.

Clients, faults, history and judges are the same for all. A system says which cells it cannot run, and why; how its
brokers are started; and how the decisions of its controller are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

import attrs

from isr_broker.core.messages import TopicPartition
from isr_broker.storage.metadata_log import NAME
from isr_cluster.identity import CONTROLLER_BROKER
from isr_cluster.kafka import KafkaProcesses
from isr_cluster.kafka_metadata import METADATA_LOG
from isr_cluster.processes import Processes, System
from isr_cluster.system_description import Description, GivenProcesses
from isr_experiment import nemesis, schedules
from isr_experiment.cells import REPLICAS, Cell
from isr_experiment.network import Network
from isr_experiment.power import record_of
from isr_experiment.recorder import PARTITION as NAME_OF_PARTITION
from isr_experiment.watch import AskingWatch, KafkaWatch, OurWatch, Watch
from isr_kafka.node import NodeFiles, new_id

BROKERS: Final = (CONTROLLER_BROKER, *REPLICAS)
TODAY: Final = "kip-966"
PARTITION: Final = TopicPartition(NAME_OF_PARTITION.rpartition("-")[0], int(NAME_OF_PARTITION.rpartition("-")[2]))

Tell = Callable[[str], None]


@attrs.frozen(kw_only=True)
class SystemUnderTest:
    """A system under test."""

    name: str
    traces: bool = False
    """Whether its brokers write traces that can be compared with the model."""
    brokers: tuple[int, ...] = (CONTROLLER_BROKER, *REPLICAS)

    def replicas(self, cell: Cell) -> tuple[int, ...]:
        """The brokers that have the topic's partition."""
        return REPLICAS[: cell.replicas]

    def lacks(self, cell: Cell) -> str:
        """Why a cell cannot be run on it; nothing if it can."""
        raise NotImplementedError

    def cannot(self) -> Iterable[str]:
        """The kinds of fault that cannot be done to it."""
        return ()

    def make_cluster(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
        """The cluster for one run, not yet started."""
        raise NotImplementedError

    def watch(self, cluster: System, began: int) -> Watch:
        """What sees the controller's decisions, in nanoseconds since `began`."""
        raise NotImplementedError

    def completes_traces(self, cluster: System, cell: Cell) -> None:
        """Add to the traces of a run what its brokers did not write themselves, once none of them runs."""


class OurBroker(SystemUnderTest):
    """Our reference broker, of whichever design."""

    def lacks(self, cell: Cell) -> str:
        """Nothing: the catalogue is made for it."""
        return ""

    def make_cluster(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
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

    def make_cluster(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
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
            traces=folder / "trace" if traces else None,
        )

    def completes_traces(self, cluster: System, cell: Cell) -> None:
        """What the controller decided, which is in `__cluster_metadata`."""
        given = cell.properties()
        known = {"insync.design": cell.design, "min.insync.replicas": str(cell.min_insync)}
        unclean = "unclean.leader.election.enable"
        if isinstance(cluster, KafkaProcesses):
            cluster.write_decisions(PARTITION, {**known, unclean: str(given.get(unclean, "false"))})

    def watch(self, cluster: System, began: int) -> Watch:
        """Its controller's `__cluster_metadata`."""
        return KafkaWatch(began, path=cluster.data(CONTROLLER_BROKER) / METADATA_LOG)


@attrs.frozen(kw_only=True)
class GivenSystem(SystemUnderTest):
    """Any broker that speaks Kafka's protocol, as a file describes it."""

    description: Description
    network: str
    """Over proxies links cannot be cut where brokers do not advertise the address that they are told."""

    def cannot(self) -> Mapping[str, str]:
        """As the file says, and what follows from the network."""
        reasons = dict(self.description.cannot)
        place = "host" if self.network == "namespaces" else "found_port"
        if not self.description.uses(place):
            reasons.setdefault("partition", f"its start command does not take {{{place}}}, over {self.network}")
        if len(self.brokers) == 1:
            reasons.setdefault("controller", "it is one process")
        return reasons

    def lacks(self, cell: Cell) -> str:
        """It has today's design, or so it should; as many brokers as it has; and the faults that it can have."""
        if cell.replicas > len(self.brokers):
            return f"{self.name} is one process, and the cell needs {cell.replicas} replicas"
        if cell.design != TODAY:
            return f"{self.name} has not the design {cell.design}"
        cannot = self.cannot()
        for fault in sorted(needs(cell, frozenset(cannot)) & set(cannot)):
            return f"{self.name} cannot have the fault '{fault}': {cannot[fault]}"
        return ""

    def replicas(self, cell: Cell) -> tuple[int, ...]:
        """Not the first broker, where there are more."""
        return (CONTROLLER_BROKER,) if len(self.brokers) == 1 else super().replicas(cell)

    def make_cluster(self, cell: Cell, folder: Path, network: Network, tell: Tell, traces: bool) -> System:
        """Processes of whatever the file starts."""
        settings = {k: v for k, v in cell.properties().items() if not k.startswith(NOT_KAFKA_S)}
        return GivenProcesses(
            root=folder,
            ports=network.ports,
            properties=settings,
            cluster=new_id(),
            tell=tell,
            own={b: {"broker.rack": f"rack-{b}"} for b in self.brokers},
            hosts=network.hosts,
            advertised=network.advertised,
            inside=network.inside,
            description=self.description,
            controller=network.controller,
            records={b: record_of(folder, b) for b in self.brokers},
        )

    def watch(self, cluster: System, began: int) -> Watch:
        """Its brokers are asked."""
        return AskingWatch(began, addresses={b: cluster.found_at(b) for b in self.brokers})


def needs(cell: Cell, cannot: frozenset[str]) -> frozenset[str]:
    """What has to be possible for a cell; a storm takes other kinds of fault, while there are any."""
    schedule = cell.schedule
    arguments: Mapping[str, object] = schedule.keywords if isinstance(schedule, partial) else {}
    function = schedule.func if isinstance(schedule, partial) else schedule
    if function is nemesis.storm:
        kinds = cast("tuple[str, ...]", arguments["kinds"])
        possible = [kind for kind in kinds if kind != "slow-link" and not nemesis.NEEDS[kind] & cannot]
        return frozenset() if possible else frozenset[str]().union(*(nemesis.NEEDS[kind] for kind in kinds))
    if function is schedules.restart_of_one:
        return frozenset({{"stopped": "stop", "killed": "kill", "paused": "pause"}[str(arguments["how"])]})
    return schedules.NEEDS[function]


OURS: Final = OurBroker(name="insync", traces=True)
