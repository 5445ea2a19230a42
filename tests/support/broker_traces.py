"""Traces of brokers for the tests: of a simulated run, and of a cluster in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs
from tests.support.clients import Confluent, create_topic
from tests.support.clusters import QUICK as QUICK_CLUSTER
from tests.support.clusters import Cluster

from isr_broker.storage.disk import ROOT
from isr_broker.storage.disk_files import RealDisk
from isr_broker.trace_reader import Life, read_lives
from isr_sim.simulate import QUICK, Config
from isr_sim.traces import TracedWorld, run_with_traces

AS_THE_MODEL: Final = attrs.evolve(QUICK, insync_waits_for_joiners=False)
"""Settings of simulated brokers under which a high watermark does not wait for joining followers, as in the model."""

WRITES: Final = 60
"""Records that `trace_of_cluster` produces."""


def simulate_traced(seed: int, config: Config | None = None) -> TracedWorld:
    """A simulated run, by default with the settings AS_THE_MODEL; its trace is on the disk `notes`."""
    return run_with_traces(config or Config(settings=AS_THE_MODEL), seed)


def write_trace(folder: Path, world: TracedWorld, torn: str = "") -> Path:
    """Write the trace of a simulated run into a folder, the file `torn` with half a line at its end."""
    for name in world.notes.names(ROOT):
        file = world.notes.open(name)
        data = file.read(0, file.size())
        (folder / name).write_bytes(data + b'{"n":99999,"at' if name == torn else data)
    return folder


def trace_of_cluster(folder: Path, snapshots: bool = True) -> list[Life]:
    """Three brokers, WRITES records, a leader killed and brought back, and the trace of it all."""
    settings = attrs.evolve(QUICK_CLUSTER, insync_trace_dir=str(folder), insync_trace_snapshots=snapshots)
    with Cluster(3, settings) as cluster:
        create_topic(cluster.bootstrap, "t", 1, 2)
        cluster.in_sync("t")
        victim = cluster.leader("t") if cluster.leader("t") != 1 else 2
        producer = Confluent(cluster.bootstrap, {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
        for number in range(WRITES):
            if number == WRITES // 2:
                assert producer.producer.flush(30) == 0
                cluster.kill(victim)
            producer.send("t", b"%d" % number)
            producer.producer.poll(0.001)
        assert producer.producer.flush(60) == 0
        cluster.start(victim)
        cluster.in_sync("t")
    return read_lives(RealDisk(folder))
