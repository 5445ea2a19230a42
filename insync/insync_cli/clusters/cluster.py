"""`insync cluster up`: brokers as processes of their own, until they are stopped in order."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from insync_cli import options, terminal
from insync_cli.clusters.settings import BrokerSettings
from insync_cli.clusters.systems import UnderTest
from insync_cli.exits import Exit, UsageError
from insync_cli.options import Usage, argument, group, option, positive, required_option
from insync_cli.progress import ended_in_order
from insync_cli.terminal import Output
from isr_broker.storage.meta_properties import new_id
from isr_cluster.identity import CONTROLLER_BROKER, OtherData, cluster_of, controller_numbers
from isr_cluster.ports import HOST, free_ports, in_use
from isr_cluster.processes import Mishap, Processes, System, UnderControllers, apart

EXAMPLE = """\
insync cluster up --brokers 3 --data data --base-port 9092
insync cluster up --brokers 3 --data data --set min.insync.replicas=2 --trace trace
insync cluster up --brokers 3 --controllers 3 --data data
insync cluster up --system apache-kafka --data kafka-data
insync cluster up --system apache-kafka --controllers 3 --data mixed-data"""

MOST_BROKERS = 50
MOST_CONTROLLERS = 9
LISTENER_SETTINGS = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
}
"""Where brokers listen, and for whom, which `cluster up` says itself."""


USAGE = Usage(
    "cluster",
    "A cluster of real processes on this machine; the first broker has the controller, unless several are a quorum. "
    "Ctrl-C stops it in order, a second one at once.",
    EXAMPLE,
)


@attrs.frozen(kw_only=True)
class Options:
    what: str = argument("up", "start the brokers, and stay until they are stopped", str, choices=("up",))
    brokers: int = option("N", "how many", positive, 3)
    controllers: int = option(
        "N", "how many controllers of ours; more than one are a quorum, each a process", positive, 1
    )
    data: Path = required_option("DIR", "the folder for their data, one folder per broker", Path)
    base_port: int = option("N", "the first broker's port", positive, 9092)
    settings: BrokerSettings = group(BrokerSettings)
    under_test: UnderTest = group(UnderTest)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    processes = prepare_system(invocation)
    with ended_in_order() as asked:
        try:
            processes.start_all()
            _announce(processes, invocation.output)
            unasked = _watch(processes, asked)
            return _stopped(processes, unasked)
        except Mishap as mishap:
            raise UsageError(str(mishap)) from None
        finally:
            processes.kill_all()


def defaults(brokers: int, design: str = "") -> dict[str, str]:
    """What a cluster of so many has unless it was set: Kafka's default of one copy would survive nothing.

    `kafka-0.8` had no `min.insync.replicas` (it came with 0.8.2, KAFKA-1555), so that design gets none.
    """
    copies = min(3, brokers)
    minimum = {} if design == "kafka-0.8" else {"min.insync.replicas": str(max(1, copies - 1))}
    return {"default.replication.factor": str(copies), **minimum}


def prepare_system(invocation: Options) -> System:
    """The brokers, not yet started; UsageError if they cannot be."""
    brokers, first, root = invocation.brokers, invocation.base_port, invocation.data
    if brokers > MOST_BROKERS or first + brokers > 65_536:
        raise UsageError(
            f"--brokers {brokers} from port {first} on is too many; at most {MOST_BROKERS}, below port 65536"
        )
    ours = invocation.under_test.is_ours
    chosen = invocation.settings.properties() if ours else invocation.settings.not_ours()
    for name in sorted(LISTENER_SETTINGS & set(chosen)) if ours else ():
        raise UsageError(f"{name} is chosen by `cluster up`; `insync broker --set {name}=...` takes it")
    quorum = _quorum_size(invocation, chosen)
    properties = {**defaults(brokers, chosen.get("insync.design", "")), **chosen}
    try:
        cluster = cluster_of(root, brokers, ours, quorum) if invocation.under_test.file is None else None
    except OtherData as error:
        raise UsageError(str(error)) from None
    terminal.make_folder(root, "--data")
    ports = {broker: first + broker - 1 for broker in range(1, brokers + 1)}
    for broker, port in ports.items():
        if in_use(port):
            raise UsageError(f"port {port}, for broker {broker}, is in use; give another --base-port")
    places = [(HOST, port) for port in free_ports(quorum)] if quorum else []
    controllers = dict(zip(controller_numbers(quorum), places, strict=True))
    if ours:
        return _ours(root, ports, properties, cluster or new_id(), controllers)
    return _not_ours(invocation, ports, properties, cluster, controllers)


def _quorum_size(invocation: Options, properties: Mapping[str, str]) -> int:
    """How many controllers are a quorum, 0 where a broker has the one; UsageError if they cannot be so many."""
    count = invocation.controllers
    if count == 1:
        return 0
    if invocation.under_test.file is not None:
        raise UsageError("--controllers is for brokers of insync and of Apache Kafka")
    if count > MOST_CONTROLLERS:
        raise UsageError(f"--controllers {count} is too many; at most {MOST_CONTROLLERS}")
    if "insync.trace.dir" in properties:
        raise UsageError("--trace is for one controller: those of a quorum write no trace")
    return count


def _ours(
    root: Path,
    ports: Mapping[int, int],
    properties: Mapping[str, str],
    cluster: str,
    controllers: Mapping[int, tuple[str, int]],
) -> System:
    """Brokers that find each other, and the controller, on ports of their own, which only this machine reaches."""
    if controllers:
        return Processes(root, ports, properties, cluster, _say, controllers=controllers)
    controller = free_ports(1)[0]
    return Processes(
        root, ports, properties, cluster, _say, own=apart(ports, controller), controller=(HOST, controller)
    )


def _not_ours(
    invocation: Options,
    ports: Mapping[int, int],
    properties: Mapping[str, str],
    cluster: str | None,
    controllers: Mapping[int, tuple[str, int]],
) -> System:
    """Nodes of Apache Kafka, or what a file describes. A controller may listen on the port after the last broker."""
    from isr_cluster.kafka import KafkaProcesses
    from isr_cluster.system_description import GivenProcesses
    from isr_kafka.node import QUIETLY

    controller = (HOST, max(ports.values()) + 1)
    if in_use(controller[1]):
        raise UsageError(f"port {controller[1]}, for the controller, is in use; give another --base-port")
    if invocation.under_test.file is not None:
        return GivenProcesses(
            root=invocation.data,
            ports=ports,
            properties=properties,
            cluster=cluster or new_id(),
            tell=_say,
            description=invocation.under_test.read_description(),
            controller=(controller, controller),
        )
    return KafkaProcesses(
        root=invocation.data,
        ports=ports,
        properties=properties,
        cluster=cluster or new_id(),
        tell=_say,
        files=invocation.under_test.kafka_files(noting=False, tell=_say),
        controller=(controller, controller),
        controllers=controllers,
        options=QUIETLY,
    )


def _say(line: str) -> None:
    print(line, flush=True)


def _announce(processes: System, output: Output) -> None:
    pids = {broker: process.process.pid for broker, process in processes.running.items()}
    controllers: Mapping[int, tuple[str, int]] = (
        processes.controllers if isinstance(processes, UnderControllers) else {}
    )
    for number, (host, port) in controllers.items():
        print(f"controller {number}: {host}:{port}, process {pids[number]}")
    for broker, port in processes.ports.items():
        has = ", has the controller" if broker == CONTROLLER_BROKER and not controllers else ""
        print(f"broker {broker}: {HOST}:{port}, process {pids[broker]}{has}")
    print(f"bootstrap.servers={processes.bootstrap}   (Ctrl-C stops the cluster)", flush=True)
    brokers = [{"broker": b, "listens": f"{HOST}:{p}", "pid": pids[b]} for b, p in processes.ports.items()]
    report = {"schema": "insync/cluster/1", "cluster": processes.cluster, "bootstrap": processes.bootstrap}
    listed = [{"controller": n, "listens": f"{host}:{p}", "pid": pids[n]} for n, (host, p) in controllers.items()]
    output.write({**report, "brokers": brokers, **({"controllers": listed} if listed else {})})


def _watch(processes: System, stop_request: threading.Event) -> Mapping[int, int]:
    """Until somebody asks to stop, or no broker is left; those that ended by themselves, with their exit codes."""
    early_exits: dict[int, int] = {}
    while not stop_request.wait(0.2) and processes.running:
        for broker, code in processes.early_exits().items():
            early_exits[broker] = code
            processes.stop(broker)
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            left = ", ".join(map(str, processes.running)) or "none"
            _say(f"{time.strftime('%H:%M:%S')} {processes.name(broker)} has ended: {how}; running: {left}")
    return early_exits


def _stopped(processes: System, early_exits: Mapping[int, int]) -> int:
    codes = processes.stop_all()
    bad = {**early_exits, **{broker: code for broker, code in codes.items() if code}}
    if bad:
        names = ", ".join(f"{broker} ({code})" for broker, code in sorted(bad.items()))
        print(f"insync: not in order ended broker {names}", file=sys.stderr)
        return Exit.ENDED
    print("every broker has stopped in order")
    return Exit.HOLDS
