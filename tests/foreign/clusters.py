"""The brokers that suites run against: processes of ours with Kafka's default settings, and what a suite changes."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import attrs
from tests.foreign.outcomes import Outcome, State

from isr_cluster.admin import Admin
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Mishap, Processes

_ALL_KNOWN_WITHIN = 60.0


@attrs.define
class Cluster:
    """Brokers that run. `data` is the folder with a folder for each of them."""

    processes: Processes
    data: Path

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return self.processes.bootstrap

    def ended(self) -> list[Outcome]:
        """Brokers that ended without having been asked are failures, whatever the suite made of it."""
        last = {broker: " / ".join(list(p.last)[-2:]) for broker, p in self.processes.running.items()}
        return [
            Outcome(f"broker {broker}", State.FAILED, f"it ended, exit code {code}: {last[broker]}")
            for broker, code in self.processes.early_exits().items()
        ]


@contextlib.contextmanager
def cluster(
    log: Path,
    properties: Mapping[str, str],
    *,
    ports: Mapping[int, int] | None = None,
    own: Mapping[int, Mapping[str, str]] | None = None,
    advertised: Mapping[int, tuple[str, int]] | None = None,
) -> Generator[Cluster]:
    """Brokers until the block ends; three, unless `ports` says otherwise. What they say is written to `log`."""
    with tempfile.TemporaryDirectory(prefix="insync-foreign-") as data, log.open("w", encoding="utf-8") as file:
        processes = Processes(
            Path(data),
            ports or dict(enumerate(free_ports(3), 1)),
            {"default.replication.factor": "3", "min.insync.replicas": "2", **properties},
            "insync-foreign",
            _writer(file.write),
            own=own or {},
            advertised=advertised or {},
        )
        try:
            processes.start_all()
            _wait(processes)
            yield Cluster(processes, Path(data))
        finally:
            processes.kill_all()


def _wait(processes: Processes) -> None:
    """Until every broker knows of all."""
    end = time.monotonic() + _ALL_KNOWN_WITHIN
    for broker, port in processes.ports.items():
        with Admin((HOST, port)) as admin:
            while len(admin.brokers()) < len(processes.ports):
                if time.monotonic() > end:
                    raise Mishap(f"broker {broker} does not know of all others after {_ALL_KNOWN_WITHIN:.0f} s")
                time.sleep(0.1)


def _writer(write: Callable[[str], int]) -> Callable[[str], None]:
    one = threading.Lock()  # a thread reads each broker, and a file is nothing that threads may share

    def tell(line: str) -> None:
        with one, contextlib.suppress(ValueError):  # the log is closed, and a broker that is killed still speaks
            write(f"{line}\n")

    return tell
