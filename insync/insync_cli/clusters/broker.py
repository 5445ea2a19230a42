"""`insync broker`: one broker, in this process, until it is stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from insync_cli import options
from insync_cli.clusters.settings import BrokerSettings, address
from insync_cli.exits import Exit, UsageError
from insync_cli.options import Usage, group, option, positive, required_option
from insync_cli.terminal import Output
from isr_broker.server import run as run_broker
from isr_broker.settings import BadSetting, Settings
from isr_broker.storage.disk_files import InUse
from isr_broker.storage.meta_properties import NotOurs
from isr_cluster.ports import in_use

EXAMPLE = """\
insync broker --id 1 --port 9092 --data data/1 --cluster 4L6g3nShT-eMCtK--X86sw --set min.insync.replicas=2
insync broker --id 2 --port 9093 --data data/2 --cluster 4L6g3nShT-eMCtK--X86sw --controller 127.0.0.1:9092"""
USAGE = Usage("broker", "One broker for Kafka's clients; Ctrl-C stops it in order.", EXAMPLE)


@attrs.frozen(kw_only=True)
class Options:
    id: int = required_option("N", "the broker's number", positive)
    host: str = option("HOST", "the address to listen on and to advertise", str, "127.0.0.1")
    port: int = required_option("N", "the port to listen on", positive)
    data: str = required_option("DIR", "the data directory", str)
    cluster: str | None = option("ID", "the cluster that the data belong to; a new one without it", str)
    controller: str | None = option("HOST:PORT", "the broker that has the controller; without it, this one", str)
    settings: BrokerSettings = group(BrokerSettings)
    output: Output = group(Output)


def run(argv: Sequence[str]) -> int:
    invocation = options.read_options(Options, USAGE, argv)
    number, host, port, data = invocation.id, invocation.host, invocation.port, invocation.data
    properties = invocation.settings.properties()
    controller = (host, port) if invocation.controller is None else address(invocation.controller, "--controller")
    if in_use(port):
        raise UsageError(f"port {port} is in use; give another with --port")
    report = {"schema": "insync/broker/1", "broker": number, "listens": f"{host}:{port}", "pid": os.getpid()}
    invocation.output.write({**report, "data": data})
    try:
        why = run_broker(
            number, Settings.from_properties(properties), data, (host, port), controller, invocation.cluster
        )
    except (InUse, NotOurs, BadSetting) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"broker {number} cannot start on {host}:{port} with {data}: {error.strerror}") from None
    return Exit.HOLDS if why == "stopped in order" else Exit.ENDED
