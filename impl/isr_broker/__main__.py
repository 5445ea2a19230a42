"""One broker as a process: `python -m isr_broker --id 1 --port 9092 --data DIR --controller HOST:PORT name=value ...`.

The broker whose own address is the controller's has the controller, unless the controllers are several, each a process
of its own (`controller`). SIGTERM or SIGINT stops it in order; when it ends,
the exit code is 0 after an orderly stop and 1 otherwise. 2 is wrong usage, or that it cannot start: one sentence.
"""

from __future__ import annotations

import argparse
import sys

from isr_broker.runtime import Address
from isr_broker.server import run
from isr_broker.settings import BadSetting, Settings
from isr_broker.storage.disk_files import InUse
from isr_broker.storage.meta_properties import NotOurs
from isr_broker.storage.metadata_log import DamagedMetadata


def address_of(text: str) -> Address | None:
    """HOST:PORT, None for anything else."""
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host and port.isascii() and port.isdigit() else None


def addresses_of(text: str) -> tuple[Address, ...]:
    """One or more of them, with commas between; none if one of them is none."""
    found = [address_of(part) for part in text.split(",")]
    addresses = tuple(address for address in found if address is not None)
    return addresses if len(addresses) == len(found) else ()


def main(arguments: list[str]) -> int:
    """Parse the arguments and run until the broker ends."""
    parser = argparse.ArgumentParser(prog="isr_broker", description="One broker of insync.")
    parser.add_argument("--id", type=int, required=True, help="the broker's number")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on and to advertise")
    parser.add_argument("--port", type=int, required=True, help="the port to listen on")
    parser.add_argument("--advertise", metavar="HOST:PORT", help="where others find it, if somewhere else")
    parser.add_argument("--data", required=True, help="the data directory")
    parser.add_argument("--cluster", metavar="ID", help="the cluster's id, which the data carry")
    parser.add_argument(
        "--controller",
        required=True,
        metavar="HOST:PORT",
        help="the broker that has the controller, or all controllers of a quorum, with commas",
    )
    parser.add_argument("--tied", action="store_true", help="end at once when standard input does")
    parser.add_argument("settings", nargs="*", metavar="name=value", help="settings by Kafka's names")
    options = parser.parse_args(arguments)
    controllers, advertised = addresses_of(str(options.controller)), address_of(str(options.advertise or ""))
    try:
        settings = Settings.from_properties(dict(pair.split("=", 1) for pair in options.settings if "=" in pair))
    except BadSetting as error:
        parser.error(str(error))
    if not controllers or any("=" not in pair for pair in options.settings):
        parser.error("the controller is HOST:PORT, and settings are name=value")
    if options.advertise and advertised is None:
        parser.error("what is advertised is HOST:PORT")
    address, data = (str(options.host), int(options.port)), str(options.data)
    try:
        cluster = str(options.cluster) if options.cluster is not None else None
        why = run(
            int(options.id),
            settings,
            data,
            address,
            controllers[0],
            cluster,
            ends_with_stdin=bool(options.tied),
            advertised=advertised,
            controllers=controllers if len(controllers) > 1 else (),
        )
    except (InUse, NotOurs, DamagedMetadata, BadSetting) as error:
        print(f"isr_broker: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        why = error.strerror or str(error)
        print(f"isr_broker: cannot start on {address[0]}:{address[1]} with {data}: {why}", file=sys.stderr)
        return 2
    return 0 if why == "stopped in order" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
