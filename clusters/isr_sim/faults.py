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
from isr_broker.storage.metadata_log import NAME as METADATA_LOG
from isr_sim.clients import Admin
from isr_sim.host import Host, MachineDeath
from isr_sim.invariants import Invariants, Violation
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
    CONTROLLER_POWER_LOSS = "the controller's machine dies in the middle of a turn"
    CONTROLLER_ROT = "a bit of the metadata log flips while the controller is down; an operator mends it"
    FULL_DISK = "a disk is full until somebody makes room"
    READS = "for a while blocks of a log cannot be read, or are read as zeros"
    LOST_TAIL = "the end of a log is lost while its process is down, after whatever end"
    RETENTION = "on one broker old segments are removed"
    RECREATION = "the topic is deleted, and created again"
    MINIMUM = "min.insync.replicas of the topic is set"
    DEFAULT_MINIMUM = "the controller starts again with another default of min.insync.replicas"
    UNCLEAN = "for a while unclean.leader.election.enable of the topic is true"
    RETENTION_SETTINGS = "a broker starts again with another log.retention.bytes and log.segment.bytes"
    PARTITIONS = "the topic gets another partition"
    CHECKPOINT_DAMAGE = "a checkpoint of a broker that is down is gone, older, shorter or has another bit"
    IDENTITY_DAMAGE = "a file that says whose data these are is gone, older, shorter or has another bit"
    SEGMENT_DAMAGE = "a segment of a broker that is down is gone, older, shorter or has another bit"
    BIT_ROT = "a bit of a segment flips while its broker runs"
    CONTROLLER_DAMAGE = "a file of the controller that is down is gone, empty, or has another bit"
    CONTROLLER_BEHIND = "the controller comes back as it was some records ago, while all brokers know more"
    FOREIGN_BROKER = "a broker of another cluster is where one of ours was"
    FOREIGN_CONTROLLER = "a controller of another cluster is where ours was"
    STRANGER = "somebody sends what no broker has sent"


ALL = tuple(Kind)[: tuple(Kind).index(Kind.MINIMUM)]
"""The faults of the first version: runs with no others are the same, seed for seed, as they were before the second."""

WIDER = tuple(Kind)
"""Those of the second version, with which there is a cluster id, an operator, and more that is promised."""

OF_THE_MODEL = ALL[: ALL.index(Kind.CONTROLLER_POWER_LOSS)]
"""What the model knows; traces of runs with others are not to be validated."""

KEEPING = tuple(kind for kind in OF_THE_MODEL if kind is not Kind.POWER_LOSS)


_OF_CONTROLLER = (Kind.CONTROLLER_RESTART, Kind.CONTROLLER_PAUSE, Kind.CONTROLLER_POWER_LOSS, Kind.CONTROLLER_ROT)


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
    admin: Admin
    kinds: tuple[Kind, ...]
    every_ms: Millis
    longest_ms: Millis
    bears: int | None = None
    occurrences: dict[Kind, int] = attrs.field(factory=dict[Kind, int])
    crash_lives: dict[BrokerId, int] = attrs.field(factory=dict[BrokerId, int])
    reasons: dict[tuple[BrokerId, int], tuple[int, int | None]] = attrs.field(
        factory=dict[tuple[BrokerId, int], tuple[int, int | None]]
    )
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
            self.occurrences[kind] = self.occurrences.get(kind, 0) + 1
        self.next()

    def _lasting(self) -> Millis:
        return self.world.random.randint(1, self.longest_ms)

    def _happens(self, kind: Kind, broker: BrokerId) -> bool:
        """Do it, if it can be done now."""
        world, host = self.world, self.world.hosts[broker]
        if kind in _OF_CONTROLLER:
            return self._strikes_controller(kind)
        if kind in (Kind.RETENTION, Kind.RECREATION):
            if kind is Kind.RETENTION:
                self.retains(host)
            else:
                self.admin.wants_another(world)
            return True
        if kind is Kind.LOST_TAIL:
            return not host.alive and self._bearable(kind, broker) and self.loses_tail(host)
        if kind in (Kind.CUT_ONE_WAY, Kind.ISOLATE, Kind.CUT_FROM_CONTROLLER):
            self._cut(kind, broker)
            return True
        if not host.alive or not self._bearable(kind, broker):
            return False
        if kind is Kind.PAUSE:
            world.pause(host, self._lasting())
            return True
        if kind is Kind.READS:
            return self.misreads(host)
        undo = None
        if kind is not Kind.SHUTDOWN or not self._registered(broker):
            undo = self.counts(host)
        match kind:
            case Kind.CRASH:
                self._dies(host, Everything())
            case Kind.POWER_LOSS:
                self.lossy.add(broker)
                self.invariants.lossy = True
                self._dies(host, Survivors(world))
            case Kind.SHUTDOWN:
                world.shut_down(host)
            case Kind.FULL_DISK:
                self.fills(host)
            case _:
                host.disk.hook = self._failing_once()
        slowly = kind in (Kind.SHUTDOWN, Kind.DISK, Kind.FULL_DISK) or host.disk.hook is not None
        self._comes_back(broker, undo, self.longest_ms if slowly else 0)
        return True

    def counts(self, host: Host) -> Callable[[], None]:
        """This life of a broker counts as crashed from now on; what is returned undoes it, if nothing has happened.

        Faults overlap: it is undone with the last of them, and only if nothing has happened of any.
        """
        key = (host.broker, host.life)
        reasons, before = self.reasons.get(key, (0, self.crash_lives.get(host.broker)))
        self.reasons[key] = (reasons + 1, before)
        self.crash_lives[host.broker] = host.life

        def undo() -> None:
            left = self.reasons[key][0] - 1
            self.reasons[key] = (left, before)
            if left or host.life != key[1]:
                return
            del self.reasons[key], self.crash_lives[host.broker]
            if before is not None:
                self.crash_lives[host.broker] = before

        return undo

    def _comes_back(self, broker: BrokerId, undo: Callable[[], None] | None, at_least: Millis) -> None:
        """Start it again some time from now; `undo` is called if it turns out that nothing has happened to it."""
        host = self.world.hosts[broker]
        life = host.life

        def back() -> None:
            full, host.disk.room = host.disk.room is not None, None
            if not host.alive:
                self.starts(host)
            elif host.life == life and (full or host.disk.hook is not None):
                # The disk was not written to, so nothing has happened.
                host.disk.hook = None
                if undo is not None:
                    undo()

        self.world.after(at_least + self._lasting(), back)

    def _strikes_controller(self, kind: Kind) -> bool:
        world, seat = self.world, self.world.seat
        if not seat.alive:
            return False
        match kind:
            case Kind.CONTROLLER_RESTART:
                world.restart_controller()
            case Kind.CONTROLLER_PAUSE:
                world.pause(seat, self._lasting())
            case Kind.CONTROLLER_ROT:
                self.rots_metadata()
            case _:
                self._dies(seat, Survivors(world))
                world.after(self._lasting(), self.revive_controller)
        return True

    def revive_controller(self) -> None:
        """Start the controller's process, if it has ended by now."""
        self.world.seat.disk.hook = None
        if not self.world.seat.alive:
            self.starts(self.world.seat)

    def starts(self, host: Host) -> None:
        """Start a process."""
        self.world.start(host)

    def rots_metadata(self) -> None:
        """The controller dies, and while it is down a bit of what was durable in its log flips.

        It must not start on that. Somebody who has a copy puts it back, soon.
        """
        world, seat = self.world, self.world.seat
        world.stop(seat, Everything())
        image = seat.disk.image(METADATA_LOG)
        good, at = image.durable, world.random.randrange(8 * max(1, len(image.durable)))
        if good:
            image.settle(good[: at // 8] + bytes([good[at // 8] ^ 1 << at % 8]) + good[at // 8 + 1 :])
        world.note(f"bit {at} of the metadata log flips")
        seat.rotten = True
        world.start(seat)
        seat.rotten = False
        if not seat.alive:
            left = len(seat.disk.image(METADATA_LOG).durable)
            if left != len(good):
                raise Violation("metadata-survives", f"of {len(good)} durable bytes {left} are left")
            seat.disk.image(METADATA_LOG).settle(good)
            world.after(self._lasting(), self.revive_controller)

    def fills(self, host: Host) -> None:
        """A disk has room for little more; somebody makes room when the process comes back."""
        host.disk.room = self.world.random.randint(0, 400)

    def retains(self, host: Host) -> None:
        """For a while everything old is too old: all segments but the last may go, as far as they are committed."""
        host.wall_ahead = 2 * self.world.settings.log_retention_ms

        def back() -> None:
            host.wall_ahead = 0

        self.world.after(2 * self.world.settings.log_retention_check_interval_ms, back)

    def misreads(self, host: Host) -> bool:
        """Some reads of a log fail, or give zeros from some byte on."""
        if host.disk.reads is not None:
            return False
        chance = self.world.random

        def reads(path: str, data: bytes) -> bytes:
            if not path.endswith(".log") or path == METADATA_LOG or chance.random() < 0.7:
                return data
            if chance.random() < 0.3:
                raise OSError(errno.EIO, "cannot be read")
            good = chance.randint(0, len(data))
            return data[:good] + bytes(len(data) - good)

        host.disk.reads = reads
        life, undo = host.life, self.counts(host)

        def heals() -> None:
            if host.disk.reads is reads:
                host.disk.reads = None
            if host.life != life:
                return
            if host.node is not None and host.node.offline:
                self.replaces_process(host)
                return
            undo()

        self.world.after(self._lasting(), heals)
        return True

    def replaces_process(self, host: Host) -> None:
        """Somebody starts a broker again whose replicas have gone offline: they come back with the next life only."""
        self.world.stop(host, Everything())
        self.world.after(self._lasting(), lambda: None if host.alive else self.starts(host))

    def loses_tail(self, host: Host) -> bool:
        """The newest bytes of one log are gone, though they were flushed, and though the stop may have been clean."""
        paths = sorted(p for p in host.disk.names_now if p.endswith(".log") and "/" in p)
        newest = [p for p in paths if host.disk.image(p).durable]
        if not newest:
            return False
        image, lost_bytes = (
            host.disk.image(newest[-1]),
            self.world.random.randint(1, self.world.random.choice((60, 300, 3_000))),
        )
        self.world.note(f"{newest[-1]} on {host.broker} loses {lost_bytes} bytes")
        image.settle(image.durable[:-lost_bytes])
        self.counts(host)
        self.lossy.add(host.broker)
        self.invariants.lossy = True
        return True

    def _dies(self, host: Host, survival: Survival) -> None:
        """Now, between two turns, or in the middle of one: when it is about to use its disk, soon."""
        operations_left = [self.world.random.choice((0, 0, 0, 1, 2, 3, 5, 8))]
        if operations_left[0] == 0:
            self.world.stop(host, survival)
            return

        def hook(disk: MemoryDisk, operation: str, path: str) -> Fault | None:
            operations_left[0] -= 1
            if operations_left[0] <= 0:
                raise MachineDeath(survival)
            return None

        host.disk.hook = hook

    def _failing_once(self) -> Callable[[MemoryDisk, str, str], Fault | None]:
        chance, failures_left = self.world.random, [1]
        number = chance.choice((errno.EIO, errno.ENOSPC))
        written_bytes = chance.randint(0, 60)

        def hook(disk: MemoryDisk, operation: str, path: str) -> Fault | None:
            writes = path.endswith(".log") or "checkpoint" in path
            if failures_left[0] and writes and operation in ("append", "flush"):
                failures_left[0] = 0
                return Fault(OSError(number, "planted"), written_bytes)
            return None

        return hook

    def _registered(self, broker: BrokerId) -> bool:
        """The controller knows this very process. One that ends before has no broker epoch for its clean mark."""
        node, known = self.world.hosts[broker].node, self.world.controller.brokers.get(broker)
        return node is not None and known is not None and node.broker_epoch == known.epoch

    def _bearable(self, kind: Kind, broker: BrokerId) -> bool:
        """Whether the design promises to bear this fault on top of those that have not been made good."""
        partitions = self.world.controller.partitions.values()
        for other, life in list(self.crash_lives.items()):
            if self.world.hosts[other].life <= life or not self._registered(other):
                continue
            if all(other in p.isr for p in partitions if other in p.replicas):
                del self.crash_lives[other]
                self.lossy.discard(other)
        if kind is Kind.PAUSE or (kind is Kind.SHUTDOWN and self._registered(broker)):
            return True
        crashed, lossy = {*self.crash_lives, broker}, self.lossy or kind in (Kind.POWER_LOSS, Kind.LOST_TAIL)
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
            host.disk.hook = host.disk.reads = host.disk.room = None
            host.busy_until = 0
            if host.node is not None and host.node.offline:
                self.world.stop(host, Everything())
        self.revive()

    def revive(self) -> None:
        """Start every broker that does not run; one that was shutting down may have ended since."""
        for host in self.world.machines:
            if not host.alive:
                self.starts(host)
