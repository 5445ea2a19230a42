"""The faults of the second version: settings change, single files of a disk are damaged, strangers call.

What a broker may lose is counted as before (`faults`), with three more rules, for what was a constant now changes:

- The minimum that counts is the least that was in force since all replicas were last in sync.
- Of those who may lead somebody must be left who lost nothing: the ELR is cleared when the minimum is set.
- A copy in which a bit has flipped is a lost one until it is whole again, however long nobody reads it.

A process that refuses to start must name a file that was damaged. An operator who has a copy puts that file right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import attrs

from isr_broker.core.messages import BrokerId, Millis, TopicPartition
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.replica_state import Leading
from isr_broker.core.topics import FILE as PARTITION_METADATA
from isr_broker.storage.disk_memory import Everything, Image, MemoryDisk
from isr_broker.storage.metadata_log import NAME as METADATA_LOG
from isr_broker.storage.owner import META_PROPERTIES
from isr_sim.changes import Changes
from isr_sim.damage import Damage, FileDamage, Purpose, files, partition_of, spoil_file
from isr_sim.damage import purpose as purpose_of
from isr_sim.faults import ALL, Faults, Kind
from isr_sim.host import Host, Impostor
from isr_sim.invariants import Chain, Violation
from isr_sim.strangers import OTHER_CLUSTER, Strangers, foreign_disk
from isr_sim.world import STRANGE

_PURPOSES: Final = {
    Kind.CHECKPOINT_DAMAGE: Purpose.CHECKPOINT,
    Kind.IDENTITY_DAMAGE: Purpose.IDENTITY,
    Kind.SEGMENT_DAMAGE: Purpose.RECORDS,
}
_OUTAGES: Final = (*_PURPOSES, Kind.RETENTION_SETTINGS, Kind.FOREIGN_BROKER)
"""For these a broker is taken down first."""

_LOSING: Final = (Kind.POWER_LOSS, Kind.LOST_TAIL, Kind.SEGMENT_DAMAGE, Kind.BIT_ROT)
_STEP_MS: Final[Millis] = 100
_STEPS: Final = 25
_WINDOW_MS: Final[Millis] = 3_000
"""How long a controller stands that is behind or of another cluster, while nothing else goes wrong."""

_FEW: Final = 10
"""How many records a controller that is behind lacks at most."""

_PATIENCE_MS: Final[Millis] = 1_500
"""How long a log may be offline before an operator starts its broker again."""

_LINE_END: Final = ord("\n")


@attrs.define
class WiderFaults(Faults):
    """The faults of a run of the second version.

    - `rotten_copies`: copies of which a bit has flipped, and are not known to be whole since; `mixed_copies`: the same
      of those with a segment of another broker.
    - `least_minimum`: the least minimum of each topic, by its id, since all replicas were in sync.
    - `quiet`: nothing else goes wrong for the moment.
    - `offline`: since when a process, by its life, has had logs that it found to be damaged.
    """

    changes: Changes = attrs.field(init=False)
    strangers: Strangers = attrs.field(init=False)
    rotten_copies: set[tuple[BrokerId, TopicPartition]] = attrs.field(factory=set[tuple[BrokerId, TopicPartition]])
    mixed_copies: set[tuple[BrokerId, TopicPartition]] = attrs.field(factory=set[tuple[BrokerId, TopicPartition]])
    least_minimum: dict[int, int] = attrs.field(factory=dict[int, int])
    quiet: bool = False
    offline: dict[tuple[BrokerId, int], Millis] = attrs.field(factory=dict[tuple[BrokerId, int], Millis])

    def __attrs_post_init__(self) -> None:
        self.changes, self.strangers = Changes(self.world, self.admin), Strangers(self.world)
        self.world.end_watcher = self._notes_end

    def _happens(self, kind: Kind, broker: BrokerId) -> bool:
        host = self.world.hosts[broker]
        self._notes_minima()
        self._replaces_offline()
        if self.quiet or host.impostor is not None or self.world.seat.impostor is not None:
            return False
        if kind in ALL:
            return Faults._happens(self, kind, broker)
        if kind in _OUTAGES:
            return self._takes_down(host, kind)
        match kind:
            case Kind.BIT_ROT:
                return host.alive and self._bearable(kind, broker) and self._rots(host)
            case Kind.STRANGER:
                self.strangers.guesses()
                return True
            case Kind.PARTITIONS:
                return self.changes.adds_partition()
            case Kind.UNCLEAN:
                self.changes.allows_unclean(self._lasting())
                return True
            case Kind.MINIMUM | Kind.DEFAULT_MINIMUM:
                return self._sets_minimum(kind)
            case _:
                return self._strikes_seat(kind)

    # What is borne

    def _notes_minima(self) -> None:
        """Keep the least minimum of each topic in mind, until all replicas are in sync and everybody knows it."""
        controller = self.world.controller
        topics: dict[int, list[int]] = {}
        whole: dict[int, bool] = {}
        for tp, partition in controller.partitions.items():
            minima = [partition.effective_min_isr, *self._minima_of_leaders(tp)]
            topics.setdefault(partition.topic_id, []).extend(minima)
            settled = len(set(minima)) == 1 and controller.durable_offset == controller.offset
            full = settled and partition.isr == frozenset(partition.replicas)
            whole[partition.topic_id] = whole.get(partition.topic_id, True) and full
        self.least_minimum = {
            topic: min(minima) if whole[topic] else min(self.least_minimum.get(topic, minima[0]), *minima)
            for topic, minima in topics.items()
        }

    def _minima_of_leaders(self, tp: TopicPartition) -> Iterator[int]:
        for host in self.world.hosts.values():
            replica = host.node.replicas.get(tp) if host.node is not None else None
            if replica is not None and isinstance(replica.role, Leading):
                yield replica.role.min_insync_replicas

    def _outstanding(self) -> set[BrokerId]:
        """Brokers whose disks have lost something that is not made good."""
        self.rotten_copies = {(b, tp) for b, tp in self.rotten_copies if not self._sound(b, tp)}
        self.mixed_copies = {(b, tp) for b, tp in self.mixed_copies if not self._sound(b, tp)}
        self.invariants.rotten_copies = self.rotten_copies
        return {*self.lossy, *(b for b, _ in self.rotten_copies | self.mixed_copies)}

    def _sound(self, broker: BrokerId, tp: TopicPartition) -> bool:
        """The log of a process that runs has every committed record, as it was written.

        A recovery cuts a log where a bit has flipped. What is left may be right, and a copy is lost all the same.
        """
        host = self.world.hosts[broker]
        if host.logs is None or tp not in host.logs.logs or host.impostor is not None:
            return tp not in self.world.controller.partitions
        log, chain = host.logs.logs[tp], Chain()
        if log.damage:
            return False
        try:
            contents = host.contents(tp)
            parsed_batches = list(batches(contents, check=True))
        except BadBatch:
            return False
        first = parsed_batches[0].base_offset if parsed_batches else log.view.end
        has_gaps = any(batch.next_offset != following.base_offset for batch, following in pairwise(parsed_batches))
        if first > log.view.end or has_gaps:
            return False
        committed = self.invariants.committed.get(tp, Chain())
        chain.copy_prefix(first, committed)
        chain.append_batches(contents)
        starts_well = first <= self.invariants.retention_points.get(tp, 0)
        is_whole = min(chain.end, log.view.end) >= committed.end
        return starts_well and is_whole and chain.records[: committed.end] == committed.records

    def _bearable(self, kind: Kind, broker: BrokerId) -> bool:
        losers = self._outstanding()
        if not Faults._bearable(self, kind, broker):
            return False
        if kind is Kind.PAUSE or (kind is Kind.SHUTDOWN and self._registered(broker)):
            return True
        if not losers and kind not in _LOSING:
            return True
        gone = {*self.crash_lives, *losers, broker}
        partitions = self.world.controller.partitions.values()
        least = min(self.least_minimum.values(), default=1)
        return len(gone) < least and all((p.isr | p.elr) - gone for p in partitions)

    def _sets_minimum(self, kind: Kind) -> bool:
        if self._outstanding() or not self.world.seat.alive or self.world.seat.busy_until > self.world.now:
            return False
        if kind is Kind.MINIMUM:
            self.changes.sets_minimum()
        else:
            self.changes.sets_default_minimum()
        self._notes_minima()
        return True

    # Brokers that are taken down

    def _takes_down(self, host: Host, kind: Kind) -> bool:
        """Stop a broker, in order or not; what is to happen to it happens once it is down."""
        if not self._bearable(Kind.CRASH, host.broker):
            return False
        life = host.life
        orderly = host.alive and self._registered(host.broker) and self.world.random.random() < 0.7
        if host.alive and orderly:
            self.world.shut_down(host)
        elif host.alive:
            self.counts(host)
            self.world.stop(host, Everything())

        def looks(steps: int) -> None:
            if host.life > life + 1 or host.impostor is not None or self.quiet:
                return
            if host.alive and steps > 0:
                self.world.after(_STEP_MS, lambda: looks(steps - 1))
                return
            if host.alive and not self._bearable(Kind.CRASH, host.broker):
                return
            if host.alive:
                self.counts(host)
                self.world.stop(host, Everything())
            self._befalls(host, kind)

        looks(_STEPS)
        return True

    def _befalls(self, host: Host, kind: Kind) -> None:
        """A broker is down: its disk is damaged, or another one is in its place for a while; then it comes back."""
        match kind:
            case Kind.RETENTION_SETTINGS:
                self.changes.sets_retention(host)
            case Kind.FOREIGN_BROKER:
                self._foreign_broker(host)
                return
            case _:
                if self.damages(host, _PURPOSES[kind]):
                    self.counts(host)
        self._returns(host)

    def _returns(self, host: Host) -> None:
        self.world.after(self._lasting(), lambda: self.starts(host))

    def damages(self, host: Host, purpose: Purpose) -> bool:
        """A file of a broker that is down is damaged, if that is to be borne."""
        chance, paths = self.world.random, files(host.disk, purpose)
        if not paths:
            return False
        path, how = chance.choice(paths), chance.choice((*Damage, Damage.FLIP))
        # A log that passes for one of another topic is set aside: that copy is lost as well.
        loses = purpose is not Purpose.CHECKPOINT and partition_of(path) is not None
        if loses and not self._bearable(Kind.SEGMENT_DAMAGE, host.broker):
            return False
        harm = self.damages_file(host, path, how)
        if harm is None or not loses:
            return harm is not None
        self.lossy.add(host.broker)
        self.invariants.lossy = True
        tp = partition_of(path)
        if how in (Damage.FLIP, Damage.FOREIGN) and purpose is Purpose.RECORDS and tp is not None:
            copies = self.rotten_copies if how is Damage.FLIP else self.mixed_copies
            copies.add((host.broker, tp))
            self._outstanding()
        return True

    def damages_file(self, host: Host, path: str, how: Damage) -> FileDamage | None:
        """One file of a machine whose process does not run; None where that changes nothing."""
        others = [other.durable for other in self._elsewhere(host, path)] if how is Damage.FOREIGN else []
        harm = spoil_file(host.disk, path, how, host.versions, self.world.random, others)
        if harm is not None:
            self.world.note(f"{path} at {host.broker}: {how.value}")
            earlier = host.damages.get(path)
            host.damages[path] = harm if earlier is None else earlier.after_another(harm)
            self.invariants.damaged_files.add((host.broker, path))
        return harm

    def _elsewhere(self, host: Host, path: str) -> Iterator[Image]:
        """The same file at other brokers; a segment only of the same topic.

        An older topic's records may have the same offsets and epochs, and then no file can tell.
        """
        topic = f"{path.rpartition('/')[0]}/{PARTITION_METADATA}"
        for other in self.world.hosts.values():
            image = other.disk.names_now.get(path)
            topics = [disk.names_now.get(topic) for disk in (host.disk, other.disk)]
            ids = {b"" if one is None else (one.durable or b"").partition(b"crc32c")[0] for one in topics}
            is_alike = purpose_of(path) is not Purpose.RECORDS or (len(ids) == 1 and b"" not in ids)
            if other is not host and other.impostor is None and image is not None and is_alike:
                yield image

    def _rots(self, host: Host) -> bool:
        """A bit of a segment flips under a broker that runs."""
        chance = self.world.random
        paths = [path for path in files(host.disk, Purpose.RECORDS) if host.disk.image(path).visible_bytes]
        if not paths:
            return False
        path = chance.choice(paths)
        image = host.disk.image(path)
        before = bytes(image.visible_bytes)
        bit = chance.randrange(8 * len(before))
        host.disk.flip(path, bit)
        self.world.note(f"bit {bit} of {path} at {host.broker} flips")
        host.damages[path] = FileDamage(Damage.FLIP, before, bytes(image.visible_bytes))
        tp = partition_of(path)
        assert tp is not None
        self.rotten_copies.add((host.broker, tp))
        self.invariants.lossy = True
        self._outstanding()
        return True

    # Processes that start, and that end by themselves

    def starts(self, host: Host) -> None:
        """Start a process; where it refuses, it must name what was damaged, and an operator puts that right.

        Nobody starts beside a controller that is behind, for he would know no better.
        """
        if host.alive or host.impostor is not None or self.world.seat.impostor is Impostor.BEHIND:
            return
        host.disk.room = None  # who starts it has made room
        self.world.start(host)
        if not host.refusal:
            return
        named_files = [path for path in host.damages if path.rpartition("/")[2] in host.refusal]
        if not named_files:
            raise Violation(
                "refusal-names-file",
                f"{host.broker}, of whose files {sorted(host.damages)} are damaged, does not start: {host.refusal}",
            )
        for path in named_files:
            self._repairs(host, path)
        if not self.over:
            self._returns(host)

    def _repairs(self, host: Host, path: str) -> None:
        now = host.disk.image(path).durable if path in host.disk.names_now else None
        harm = host.damages.pop(path)
        self.invariants.damaged_files.discard((host.broker, path))
        self.world.note(f"{path} at {host.broker} is put right")
        host.disk.put(path, harm.repair(now))

    def _notes_end(self, host: Host, why: str) -> None:
        """A process has ended by itself; somebody starts it again."""
        if host.refusal or host.impostor is not None or why == "stopped in order":
            return
        if host is not self.world.seat:
            self.counts(host)
        if not self.over:
            self._returns(host)

    def _replaces_offline(self) -> None:
        """A log that is damaged is offline until the process starts again: an operator sees to that, in time."""
        for host in self.world.hosts.values():
            offline = host.node is not None and host.impostor is None and bool(host.node.offline)
            since = self.offline.get((host.broker, host.life))
            if offline and since is None:
                self.offline[host.broker, host.life] = self.world.now
            elif offline and since is not None and self.world.now - since > _PATIENCE_MS and not self.quiet:
                self.counts(host)
                self.world.stop(host, Everything())
                for path in [path for path in host.damages if any(path in line for line in host.alarms)]:
                    self._repairs(host, path)
                self._returns(host)

    def revive(self) -> None:
        """Start what does not run; and start again where a log is offline."""
        self._replaces_offline()
        Faults.revive(self)

    # The machine of the controller, and machines of another cluster

    def _strikes_seat(self, kind: Kind) -> bool:
        seat = self.world.seat
        if not seat.alive or self._outstanding() or any(host.impostor for host in self.world.hosts.values()):
            return False
        match kind:
            case Kind.CONTROLLER_DAMAGE:
                self.world.stop(seat, Everything())
                self.damages_controller()
                self._returns(seat)
            case Kind.CONTROLLER_BEHIND:
                return self._falls_behind()
            case _:
                self._foreign_controller()
        return True

    def damages_controller(self) -> None:
        """A file of the controller that is down is gone, empty, shorter in the middle of a record, or has another bit.

        One that ends early, at the end of a record, is another fault: nothing in the file says that it was longer.
        """
        chance, seat = self.world.random, self.world.seat
        path = chance.choice((METADATA_LOG, METADATA_LOG, META_PROPERTIES))
        how = chance.choice((Damage.ABSENT, Damage.EMPTY, Damage.FLIP))
        if path in seat.disk.names_now:
            self.damages_file(seat, path, how)

    def _falls_behind(self) -> bool:
        """The controller comes back with a log that ends some records earlier, and a broker that leads dies then.

        The others know more, and live to say so. They are not started again before the controller has its own log.
        """
        world, seat = self.world, self.world.seat
        log = seat.disk.image(METADATA_LOG).durable
        ends = [at + 1 for at, byte in enumerate(log[:-1]) if byte == _LINE_END and not _more_follows(log, at)]
        leaders = sorted({p.leader for p in world.controller.partitions.values() if p.leader is not None})
        registered = all(host.alive and self._registered(broker) for broker, host in world.hosts.items())
        if not ends or not leaders or not registered or not self._bearable(Kind.CRASH, leaders[0]):
            return False
        at = world.random.choice(ends[-_FEW:])
        offset = world.controller.durable_offset - log[at:].count(b"\n")
        nodes = [host.node for host in world.hosts.values()]
        if any(node is None or node.metadata_offset <= offset for node in nodes):
            return False
        self.quiet = True
        world.stop(seat, Everything())
        own, seat.disk = seat.disk, seat.disk.copy()
        seat.disk.put(METADATA_LOG, log[:at])
        if world.random.random() < 0.5:
            for path in files(seat.disk, Purpose.CHECKPOINT):
                seat.disk.lose(path)
        seat.impostor = Impostor.BEHIND
        world.note(f"the controller's log ends at {at} of {len(log)} bytes")
        self.invariants.controller_behind = None
        world.start(seat)
        self.invariants.controller_behind = seat.runtime.controller if seat.runtime is not None else None
        self.counts(world.hosts[leaders[0]])
        world.stop(world.hosts[leaders[0]], Everything())
        world.after(_WINDOW_MS, lambda: self._own_disk(seat, own))
        return True

    def _foreign_controller(self) -> None:
        seat, own = self.world.seat, self.world.seat.disk
        self.quiet = True
        self.invariants.controller_behind = None
        self.world.stop(seat, Everything())
        disk = MemoryDisk()
        self.world.claims(disk, seat.broker, OTHER_CLUSTER)
        own = self.strangers.takes_place(seat, disk)
        self.world.after(_WINDOW_MS, lambda: self._own_disk(seat, own))

    def _foreign_broker(self, host: Host) -> None:
        """A broker of another cluster stands where one of ours was, under its number."""
        partitions = self.world.controller.partitions
        # Clusters that count their topics give the same numbers.
        topic_id = next((p.topic_id for _, p in sorted(partitions.items())), 1)
        topic_id = topic_id if topic_id < STRANGE else self.world.random.getrandbits(127)
        disk = foreign_disk(self.world, host.broker, sorted(partitions), topic_id)
        logs = {copy: chain for copy, chain in self.invariants.logs.items() if copy[0] == host.broker}
        own = self.strangers.takes_place(host, disk)

        def back() -> None:
            self.invariants.logs.update(logs)
            self._own_disk(host, own)

        self.world.after(self._lasting(), back)

    def _own_disk(self, host: Host, own: MemoryDisk) -> None:
        """The stranger is gone, and what was there before comes back."""
        if host.impostor is None:
            return
        self.strangers.leaves(host, own)
        self.quiet = False
        self.starts(host)
        for machine in self.world.machines:
            if not machine.alive and machine is not host and not self.over:
                self._returns(machine)


def _more_follows(log: bytes, end: int) -> bool:
    """The record whose line ends there is not the last of what was written together."""
    return log[log.rfind(b"\n", 0, end) + 1 :].startswith(b"+")
