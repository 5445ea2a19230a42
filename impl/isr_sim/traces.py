"""The simulator writes the event log that processes write (docs/trace-format.md): one life of each node in a file.

A core is a value, so each step is computed twice: once for its line, which comes before its effects as in a process,
and once by the world. Chance is asked for nothing more, so a run is the same with a trace and without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from isr_broker.core import controller as controllers
from isr_broker.core import node as nodes
from isr_broker.core.effects import CONTROLLER, DiskOperation
from isr_broker.core.inputs import ControllerInput, LogOpened, NodeInput, Received, Start
from isr_broker.core.messages import BrokerId, Message, Millis
from isr_broker.core.stamps import Stamp, Stamped
from isr_broker.settings import Settings
from isr_broker.snapshot import Json
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_memory import MemoryDisk, Survival
from isr_broker.trace import Trace
from isr_sim.faults import Kind
from isr_sim.simulate import Config, Run, finished
from isr_sim.world import Weather, World


@attrs.define
class TracedWorld(World):
    """A world whose nodes write what they do to `notes`."""

    notes: Disk = attrs.field(factory=MemoryDisk)
    traces: dict[BrokerId, Trace] = attrs.field(factory=dict[BrokerId, Trace])
    stamps: dict[int, tuple[NodeInput | ControllerInput, Stamp]] = attrs.field(
        factory=dict[int, tuple[NodeInput | ControllerInput, Stamp]]
    )
    starting: set[BrokerId] = attrs.field(factory=set[BrokerId])
    origin: Mapping[str, Json] = attrs.field(factory=dict[str, Json])

    def _begins(self, node: BrokerId, at: Millis) -> Trace:
        trace = self.traces[node] = Trace(node, self.notes)
        settings: dict[str, Json] = dict(self.settings.properties())
        told: dict[str, Json] = {"simulation": dict(self.origin)} if self.origin else {}
        trace.begins(at, {"wall": self.now, "settings": settings, **told})
        return trace

    def _hears(self, trace: Trace, told: NodeInput | ControllerInput) -> None:
        found = self.stamps.get(id(told))
        if found is not None:
            trace.hears(found[1])

    def send(self, source: BrokerId, to: BrokerId, told: NodeInput) -> None:
        """The message carries the stamp of the line that tells of it; the input itself is what arrives."""
        trace = self.traces.get(source)
        if trace is not None and isinstance(told, Received):
            stamped = trace.stamped(told.message)
            if isinstance(stamped, Stamped):
                self.stamps[id(told)] = (told, stamped.stamp)
        World.send(self, source, to, told)

    def start(self, broker: BrokerId) -> None:
        """A new life, with a file of its own."""
        self._begins(broker, self.hosts[broker].clock.local(self.now))
        self.starting.add(broker)
        World.start(self, broker)

    def stop(self, broker: BrokerId, survival: Survival) -> None:
        """The life ends; what its last step would yet have sent is lost."""
        World.stop(self, broker, survival)
        self.traces[broker].stamps.clear()

    def tell(self, broker: BrokerId, told: NodeInput, done: DiskOperation | None = None) -> None:
        """The line of the step, then the step."""
        host, trace = self.hosts[broker], self.traces[broker]
        if host.node is not None and host.paused_until <= self.now:
            at = host.clock.local(self.now)
            if isinstance(told, LogOpened) and broker in self.starting and host.logs is not None:
                trace.opened(told, host.logs.logs[told.partition].contents(), at)
            if isinstance(told, Start):
                self.starting.discard(broker)
            self._hears(trace, told)
            trace.node_stepped(host.node, told, nodes.handle(host.node, told, at), at)
        World.tell(self, broker, told, done)
        trace.stamps.clear()

    def tell_controller(self, told: ControllerInput) -> None:
        """The line of the step, then the step."""
        trace = self.traces.get(CONTROLLER) or self._begins(CONTROLLER, self.now)
        if self.controller_paused_until <= self.now:
            self._hears(trace, told)
            trace.controller_stepped(told, controllers.handle(self.controller, told, self.now), self.now)
        World.tell_controller(self, told)
        trace.stamps.clear()

    def restart_controller(self) -> None:
        """A new life of the controller."""
        self._begins(CONTROLLER, self.now)
        World.restart_controller(self)

    def _tell_broker(self, to: BrokerId, message: Message) -> None:
        """What goes to a client has its number too, and is read by nobody who writes a trace."""
        if to not in self.hosts:
            self.traces[CONTROLLER].stamped(message)
        World._tell_broker(self, to, message)


# A run again


def traced(config: Config, seed: int) -> TracedWorld:
    """A run with its traces, whose first lines say how it was run."""
    run = Run(config, seed, kind=TracedWorld)
    world = run.world
    assert isinstance(world, TracedWorld)
    world.origin = told(config, seed)
    finished(run)
    return world


def told(config: Config, seed: int) -> dict[str, Json]:
    """A run but for its settings, as JSON."""
    weather: dict[str, Json] = dict(attrs.asdict(config.weather))
    return {
        "seed": seed,
        "brokers": config.brokers,
        "partitions": config.partitions,
        "kinds": [kind.name for kind in config.kinds],
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
        weather=Weather(**cast("dict[str, int]", origin["weather"])),
        longest_ms=cast("int", origin["longest_ms"]),
        bears=cast("int | None", origin["bears"]),
        brokers=cast("int", origin["brokers"]),
        partitions=cast("int", origin["partitions"]),
        safety_ms=cast("int", origin["safety_ms"]),
        every_ms=cast("int", origin["every_ms"]),
    )
    return config, cast("int", origin["seed"])
