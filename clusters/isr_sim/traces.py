"""The simulator writes the event log that processes write (docs/trace-format.md): one life of each node in a file.

Chance is asked for nothing more, so a run is the same with a trace and without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from isr_broker.core.messages import BrokerId
from isr_broker.environment import Steps
from isr_broker.settings import Settings
from isr_broker.snapshot import Json
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.trace import Trace
from isr_sim.faults import Kind
from isr_sim.host import Host
from isr_sim.simulate import Config, Run, finish_run
from isr_sim.world import Weather, World


@attrs.define
class TracedWorld(World):
    """A world whose processes write what they do to `notes`."""

    notes: Disk = attrs.field(factory=MemoryDisk)
    origin: Mapping[str, Json] = attrs.field(factory=dict[str, Json])

    def _steps(self, host: Host, node: BrokerId) -> Steps | None:
        """A trace, as the server has one (`Server.start`)."""
        trace = Trace(node, self.notes)
        settings: dict[str, Json] = dict(self.settings.properties())
        told: dict[str, Json] = {"simulation": dict(self.origin)} if self.origin else {}
        trace.begins(host.clock.local(self.now), {"wall": self.now, "settings": settings, **told})
        return trace


# A run again


def run_with_traces(config: Config, seed: int) -> TracedWorld:
    """A run with its traces, whose first lines say how it was run."""
    run = Run(config, seed, kind=TracedWorld)
    world = run.world
    assert isinstance(world, TracedWorld)
    world.origin = origin_of(config, seed)
    finish_run(run)
    return world


def origin_of(config: Config, seed: int) -> dict[str, Json]:
    """A run but for its settings, as JSON."""
    weather: dict[str, Json] = dict(attrs.asdict(config.weather))
    return {
        "seed": seed,
        "brokers": config.brokers,
        "partitions": config.partitions,
        "kinds": [kind.name for kind in config.kinds],
        "wider": config.second_version,
        "weather": weather,
        "safety_ms": config.safety_ms,
        "every_ms": config.every_ms,
        "longest_ms": config.longest_ms,
        "bears": config.bears,
    }


def again(header: Mapping[str, Json]) -> tuple[Config, int] | None:
    """How the run was run whose trace begins with this line; None if it was none of the simulator."""
    origin, settings = header.get("simulation"), header.get("settings")
    if not isinstance(origin, dict) or not isinstance(settings, dict):
        return None
    config = Config(
        settings=Settings.from_properties({name: str(value) for name, value in settings.items()}),
        kinds=tuple(Kind[str(name)] for name in cast("list[str]", origin["kinds"])),
        wider=bool(origin.get("wider")),
        weather=Weather(**cast("dict[str, int]", origin["weather"])),
        longest_ms=cast("int", origin["longest_ms"]),
        bears=cast("int | None", origin["bears"]),
        brokers=cast("int", origin["brokers"]),
        partitions=cast("int", origin["partitions"]),
        safety_ms=cast("int", origin["safety_ms"]),
        every_ms=cast("int", origin["every_ms"]),
    )
    return config, cast("int", origin["seed"])
