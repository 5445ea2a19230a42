"""A simulated process: a broker's core, its logs on a disk in memory, and a clock that is wrong."""

from __future__ import annotations

import attrs

from isr_broker.core.messages import BrokerId, Millis
from isr_broker.core.node import Node
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.log_directory import LogDirectory


@attrs.define
class Clock:
    """Local time from true time: `offset` milliseconds ahead, `rate` thousandths of the true speed."""

    offset: Millis = 0
    rate: int = 1000

    def local(self, now: Millis) -> Millis:
        """What this clock shows."""
        return self.offset + now * self.rate // 1000

    def true(self, local: Millis) -> Millis:
        """When it first shows that."""
        return -((self.offset - local) * 1000 // self.rate)


@attrs.define
class Host:
    """One broker's machine. `node` is None while no process runs; `life` counts the processes."""

    broker: BrokerId
    disk: MemoryDisk = attrs.field(factory=MemoryDisk)
    clock: Clock = attrs.field(factory=Clock)
    node: Node | None = None
    logs: LogDirectory | None = None
    life: int = 0
    paused_until: Millis = 0
    alarm: int = 0

    @property
    def alive(self) -> bool:
        """A process runs, though it may be paused."""
        return self.node is not None
