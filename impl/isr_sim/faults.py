"""What goes wrong: each fault is one of a list, chosen and timed by the run's one source of chance.

A fault stays within what the design promises to bear. To the controller every crash is an unclean shutdown, for it
cannot know what was lost; where one of them did lose something, at most `min.insync.replicas` - 1 brokers may be
crashed and not yet in sync again (KIP-966). `bears` says otherwise, for designs that are to be seen failing.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import Enum

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.messages import BrokerId, Millis
from isr_broker.storage.disk_memory import Everything, Fault, MemoryDisk, Survival
from isr_sim.host import Died, Host
from isr_sim.invariants import Invariants
from isr_sim.world import World


class Kind(Enum):
    """The kinds of fault, with the model's action where it has one."""

    CRASH = "a process dies (broker_crashes)"
    POWER_LOSS = "a machine dies, and with it what was not flushed (broker_loses_power)"
    SHUTDOWN = "a process is stopped in order (broker_asks_to_shut_down, broker_shuts_down)"
    PAUSE = "a process does nothing for a while: its session may end (controller_fences_...)"
    CUT_ONE_WAY = "messages from one host to another are lost"
    ISOLATE = "a host hears nobody and is heard by nobody"
    CUT_FROM_CONTROLLER = "a broker and the controller lose each other, not the others (a zombie leader)"
    DISK = "a write to a log or checkpoint fails, by EIO or ENOSPC, and the process halts"
    CONTROLLER_RESTART = "the controller dies and comes back with its durable log"
    CONTROLLER_PAUSE = "the controller does nothing for a while"


ALL = tuple(Kind)
KEEPING = tuple(kind for kind in Kind if kind is not Kind.POWER_LOSS)


@attrs.define
class Survivors:
    """What is left of the unflushed: of every file some first part, torn anywhere, perhaps zeros after it."""

    world: World

    def names(self, pending: int) -> int:
        """Some first changes of names."""
        return self.world.random.randint(0, pending)

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        """Some first bytes, and sometimes zeros."""
        chance = self.world.random
        return chance.choice((0, pending, chance.randint(0, pending))), chance.choice((0, 0, chance.randint(0, 99)))


@attrs.define
class Faults:
    """The faults of one run: on average every `every_ms` one of `kinds`, which lasts `longest_ms` at most."""

    world: World
    invariants: Invariants
    kinds: tuple[Kind, ...]
    every_ms: Millis
    longest_ms: Millis
    bears: int | None = None
    happened: dict[Kind, int] = attrs.field(factory=dict[Kind, int])
    crashed: dict[BrokerId, int] = attrs.field(factory=dict[BrokerId, int])
    lossy: set[BrokerId] = attrs.field(factory=set[BrokerId])
    over: bool = False

    def next(self) -> None:
        """The next fault, some time from now."""
        self.world.after(self.world.random.randint(1, 2 * self.every_ms), self._strike)

    def _strike(self) -> None:
        if self.over:
            return
        kind = self.world.random.choice(self.kinds)
        broker = self.world.random.choice(sorted(self.world.hosts))
        if self._happens(kind, broker):
            self.happened[kind] = self.happened.get(kind, 0) + 1
        self.next()

    def _lasting(self) -> Millis:
        return self.world.random.randint(1, self.longest_ms)

    def _happens(self, kind: Kind, broker: BrokerId) -> bool:
        """Do it, if it can be done now."""
        world, host = self.world, self.world.hosts[broker]
        if kind in (Kind.CONTROLLER_RESTART, Kind.CONTROLLER_PAUSE):
            if kind is Kind.CONTROLLER_RESTART:
                world.restart_controller()
            else:
                world.pause(world.seat, self._lasting())
            return True
        if kind in (Kind.CUT_ONE_WAY, Kind.ISOLATE, Kind.CUT_FROM_CONTROLLER):
            self._cut(kind, broker)
            return True
        if not host.alive or not self._bearable(kind, broker):
            return False
        if kind is Kind.PAUSE:
            world.pause(host, self._lasting())
            return True
        before = self.crashed.get(broker)
        if kind is not Kind.SHUTDOWN or not self._registered(broker):
            self.crashed[broker] = host.life
        match kind:
            case Kind.CRASH:
                self._dies(host, Everything())
            case Kind.POWER_LOSS:
                self.lossy.add(broker)
                self.invariants.lossy = True
                self._dies(host, Survivors(world))
            case Kind.SHUTDOWN:
                world.shut_down(host)
            case _:
                host.disk.hook = self._failing_once()
        slowly = kind in (Kind.SHUTDOWN, Kind.DISK) or host.disk.hook is not None
        self._comes_back(broker, before, self.longest_ms if slowly else 0)
        return True

    def _comes_back(self, broker: BrokerId, before: int | None, at_least: Millis) -> None:
        """Start it again some time from now; `before` is the life in which it had crashed already, if it had."""
        host = self.world.hosts[broker]
        life = host.life

        def back() -> None:
            if not host.alive:
                self.world.start(host)
            elif host.life == life and host.disk.hook is not None:
                # The disk was not written to, so nothing has happened.
                host.disk.hook = None
                del self.crashed[broker]
                if before is not None:
                    self.crashed[broker] = before

        self.world.after(at_least + self._lasting(), back)

    def _dies(self, host: Host, survival: Survival) -> None:
        """Now, between two turns, or in the middle of one: when it is about to use its disk, soon."""
        left = [self.world.random.choice((0, 0, 0, 1, 2, 3, 5, 8))]
        if left[0] == 0:
            self.world.stop(host, survival)
            return

        def hook(disk: MemoryDisk, operation: str, path: str) -> Fault | None:
            left[0] -= 1
            if left[0] <= 0:
                raise Died(survival)
            return None

        host.disk.hook = hook

    def _failing_once(self) -> Callable[[MemoryDisk, str, str], Fault | None]:
        chance, left = self.world.random, [1]
        number = chance.choice((errno.EIO, errno.ENOSPC))
        written = chance.randint(0, 60)

        def hook(disk: MemoryDisk, operation: str, path: str) -> Fault | None:
            writes = path.endswith(".log") or "checkpoint" in path
            if left[0] and writes and operation in ("append", "flush"):
                left[0] = 0
                return Fault(OSError(number, "planted"), written)
            return None

        return hook

    def _registered(self, broker: BrokerId) -> bool:
        """The controller knows this very process. One that ends before has no broker epoch for its clean mark."""
        node, known = self.world.hosts[broker].node, self.world.controller.brokers.get(broker)
        return node is not None and known is not None and node.broker_epoch == known.epoch

    def _bearable(self, kind: Kind, broker: BrokerId) -> bool:
        """Whether the design promises to bear this fault on top of those that have not been made good."""
        partitions = self.world.controller.partitions.values()
        for other, life in list(self.crashed.items()):
            if self.world.hosts[other].life <= life or not self._registered(other):
                continue
            if all(other in p.isr for p in partitions if other in p.replicas):
                del self.crashed[other]
                self.lossy.discard(other)
        if kind is Kind.PAUSE or (kind is Kind.SHUTDOWN and self._registered(broker)):
            return True
        crashed, lossy = {*self.crashed, broker}, self.lossy or kind is Kind.POWER_LOSS
        minimum = min((p.min_insync_replicas for p in partitions), default=1)
        return not lossy or len(crashed) <= (minimum - 1 if self.bears is None else self.bears)

    def _cut(self, kind: Kind, broker: BrokerId) -> None:
        others = [CONTROLLER, *(b for b in sorted(self.world.hosts) if b != broker)]
        match kind:
            case Kind.CUT_ONE_WAY:
                pairs = {(broker, self.world.random.choice(others))}
            case Kind.ISOLATE:
                pairs = {(broker, o) for o in others} | {(o, broker) for o in others}
            case _:
                pairs = {(broker, CONTROLLER), (CONTROLLER, broker)}
        self.world.note(f"cut {sorted(pairs)}")
        self.world.cut |= pairs

        def heals() -> None:
            self.world.cut -= pairs

        self.world.after(self._lasting(), heals)

    def heal(self) -> None:
        """Everything works from here on, and every broker runs."""
        self.over = True
        self.world.note("heals")
        self.world.cut.clear()
        self.world.lag.clear()
        for host in self.world.machines:
            host.disk.hook = None
            host.busy_until = 0
        self.revive()

    def revive(self) -> None:
        """Start every broker that does not run; one that was shutting down may have ended since."""
        for host in self.world.machines:
            if not host.alive:
                self.world.start(host)
