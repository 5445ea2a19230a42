"""A simulated machine: a disk in memory, a clock that is wrong, and the broker that runs on it, if one does."""

from __future__ import annotations

from enum import Enum

import attrs

from isr_broker.core.messages import BrokerId, Millis, TopicPartition
from isr_broker.core.node import Node
from isr_broker.runtime import Runtime
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk, Survival
from isr_broker.storage.log_directory import LogDirectory
from isr_sim.damage import Archive, FileDamage


class MachineDeath(BaseException):
    """The process dies while it is about to use its disk, in the middle of a turn; no broker can catch that."""

    def __init__(self, survival: Survival) -> None:
        super().__init__()
        self.survival = survival


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


class Impostor(Enum):
    """What passes for a machine of this cluster while it is not."""

    FOREIGN = "it is of another cluster"
    BEHIND = "it is the controller as it was some time ago"


@attrs.define
class Host:
    """One machine. `runtime` is None while no process runs; `life` counts the processes, and how often they ended.

    - `busy_until`: the process is paused, or waits for its disk, until then.
    - `alarm`: the number of the timer that was set last; earlier ones are off.
    - `end_reason`: why the process wants to end, empty if it does not; it is gone at the end of the turn.
    - `rotten`: a fault has changed what was durable, so that a refusal to start is no wonder.
    - `wall_ahead`: how far the time that producers write into records is ahead here.
    - `settings`: those of the next process, if they are not those of all; `cluster`: which cluster it belongs to.
    - `versions`: earlier versions of its files; `damages`: what was damaged, by path, and not put right since.
    - `refusal`: why its last process did not start, empty if it did; `alarms`: what it told an operator.
    - `impostor`: what runs there passes for what should: it is of another cluster, or of an earlier time.
    """

    broker: BrokerId
    disk: MemoryDisk = attrs.field(factory=MemoryDisk)
    clock: Clock = attrs.field(factory=Clock)
    runtime: Runtime | None = None
    life: int = 0
    busy_until: Millis = 0
    alarm: int = 0
    end_reason: str = ""
    rotten: bool = False
    wall_ahead: Millis = 0
    settings: Settings | None = None
    cluster: str = ""
    versions: Archive = attrs.field(factory=Archive)
    damages: dict[str, FileDamage] = attrs.field(factory=dict[str, FileDamage])
    refusal: str = ""
    alarms: list[str] = attrs.field(factory=list[str])
    impostor: Impostor | None = None

    @property
    def alive(self) -> bool:
        """A process runs, though it may be paused."""
        return self.runtime is not None

    @property
    def node(self) -> Node | None:
        """The core of the process that runs."""
        return None if self.runtime is None else self.runtime.node

    @property
    def logs(self) -> LogDirectory | None:
        """The logs of the process that runs."""
        return None if self.runtime is None else self.runtime.logs

    def contents(self, tp: TopicPartition) -> bytes:
        """All batches of a log of the process that runs, as they are on the disk, however that reads now."""
        logs, reads = self.logs, self.disk.reads
        assert logs is not None
        self.disk.reads = None
        found = logs.logs[tp].contents()
        self.disk.reads = reads
        return found
