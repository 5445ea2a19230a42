"""`insync broker`: one broker, in this process, until it is stopped."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from typing import cast

from insync_cli import old_options as options
from insync_cli import terminal
from insync_cli.clusters import settings
from insync_cli.exits import Exit, UsageError
from isr_broker.server import run as run_broker
from isr_broker.settings import Settings
from isr_broker.storage.disk_files import InUse
from isr_broker.storage.meta_properties import NotOurs
from isr_cluster.processes import in_use

EXAMPLE = """\
insync broker --id 1 --port 9092 --data data/1
insync broker --id 2 --port 9093 --data data/2 --controller 127.0.0.1:9092 --set min.insync.replicas=2"""


def parser(argv: Sequence[str]) -> Namespace:
    p = options.Parser("broker", "One broker for Kafka's clients; Ctrl-C stops it in order.", EXAMPLE)
    p.add_argument("--id", type=options.positive, required=True, metavar="N", help="the broker's number")
    p.add_argument("--host", default="127.0.0.1", help="the address to listen on and to advertise")
    p.add_argument("--port", type=options.positive, required=True, metavar="N", help="the port to listen on")
    p.add_argument("--data", required=True, metavar="DIR", help="the data directory")
    p.add_argument("--cluster", default="insync", metavar="NAME", help="the cluster that the data belong to")
    p.add_argument("--controller", metavar="HOST:PORT", help="the broker that has the controller (default: this one)")
    settings.add_to(p)
    p.add_json()
    return p.read(argv)


def run(given: Namespace) -> int:
    properties = settings.given(given)
    number, host, port, data = cast("int", given.id), str(given.host), cast("int", given.port), str(given.data)
    named = cast("str | None", given.controller)
    controller = (host, port) if named is None else settings.address(named, "--controller")
    if in_use(port):
        raise UsageError(f"port {port} is in use; give another with --port")
    target = cast("str | None", given.json)
    report = {"schema": "insync/broker/1", "broker": number, "listens": f"{host}:{port}", "pid": os.getpid()}
    terminal.write_json(target, {**report, "data": data})
    try:
        why = run_broker(
            number, Settings.from_properties(properties), data, (host, port), controller, str(given.cluster)
        )
    except (InUse, NotOurs) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"broker {number} cannot start on {host}:{port} with {data}: {error.strerror}") from None
    return Exit.HOLDS if why == "stopped in order" else Exit.ENDED
