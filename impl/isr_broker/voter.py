"""One voter of the metadata quorum as a process: `python -m isr_broker.voter --id 1 --data DIR name=value ...`.

`--format` makes a new folder that of a node of a cluster, and ends. SIGTERM or SIGINT stops a voter in order: a leader
resigns. The exit code is 0 after that, and 1 otherwise. 2 is wrong usage, or that it cannot start: one sentence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

from isr_broker.quorum_settings import QuorumSettings, initial_controllers
from isr_broker.settings import BadSetting
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_files import InUse
from isr_broker.storage.meta_properties import NotOurs
from isr_broker.storage.quorum_disk import DamagedQuorum
from isr_broker.voter_runtime import STOPPED
from isr_broker.voter_server import VoterServer, format_folder, run
from isr_broker.wire.quorum_requests import Quorum

Make: TypeAlias = Callable[[Quorum, QuorumSettings, Disk], VoterServer]


def voter_of(properties: Mapping[str, str]) -> tuple[QuorumSettings, Make]:
    """The settings of a voter, and what makes one; BadSetting if they are not understood."""
    return QuorumSettings.from_properties(properties), VoterServer


def main(
    arguments: list[str],
    name: str = "isr_broker.voter",
    about: str = "One voter of a metadata quorum.",
    server_of: Callable[[Mapping[str, str]], tuple[QuorumSettings, Make]] = voter_of,
) -> int:
    """Parse the arguments, and format a folder or run until the voter ends."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--id", type=int, required=True, help="the node's number, as controller.quorum.voters has it")
    parser.add_argument("--data", required=True, help="the data directory")
    parser.add_argument("--cluster", metavar="ID", help="the cluster's id, which the data carry")
    parser.add_argument("--format", action="store_true", help="make a new data directory this node's, and end")
    parser.add_argument(
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY,...",
        help="with --format: the first voters, each with its directory id, where voters change",
    )
    parser.add_argument("--tied", action="store_true", help="end at once when standard input does")
    parser.add_argument("settings", nargs="*", metavar="name=value", help="settings by Kafka's names")
    options = parser.parse_args(arguments)
    me, data = int(options.id), str(options.data)
    cluster = str(options.cluster) if options.cluster is not None else None
    if any("=" not in pair for pair in options.settings):
        parser.error("settings are name=value")
    try:
        if options.format:
            if cluster is None:
                parser.error("--format needs --cluster")
            first = str(options.initial_controllers) if options.initial_controllers is not None else None
            voters = initial_controllers(first) if first is not None else None
            directory = format_folder(me, cluster, data, voters).directory
            print(f"{data} is that of node {me} of cluster {cluster}, with the directory id {directory}")
            return 0
        settings, make = server_of(dict(pair.split("=", 1) for pair in options.settings))
        why = run(me, cluster, settings, data, bool(options.tied), make)
    except (BadSetting, InUse, NotOurs, DamagedQuorum) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{name}: cannot start with {data}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0 if why == STOPPED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
