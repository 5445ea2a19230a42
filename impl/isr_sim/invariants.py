"""What is promised at every step, checked on the cores as they are: the model's `isr_properties`, under their names.

A log is compared by a chain of hashes, one link per offset, so that two logs agree up to an offset if two numbers do.
The chain follows what the cores were told is done, and is made again from the disk when a process starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from isr_broker.core.effects import AppendLog, AssignEpoch, DiskOperation, TruncateLog
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import BrokerId, LeaderEpoch, Offset, PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.watermark import maximal_isr
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, RECOVERY_POINTS, WATERMARKS, is_whole
from isr_broker.storage.disk import ROOT, Disk
from isr_sim.world import World


class Violation(Exception):
    """A promise is broken: which one, and how."""

    def __init__(self, promise: str, how: str) -> None:
        super().__init__(f"{promise}: {how}")
        self.promise = promise


@attrs.define
class Chain:
    """A log as links: `links[o]` says all that is before offset o, `records[o]` which record is at it.

    `sent` has of each batch of an idempotent producer, by its first offset, that producer, its epoch and sequence.
    """

    links: list[int] = attrs.field(factory=lambda: [0])
    records: list[int] = attrs.field(factory=list[int])
    sent: dict[Offset, tuple[int, int, int]] = attrs.field(factory=dict[Offset, tuple[int, int, int]])

    @property
    def end(self) -> Offset:
        """The log end offset."""
        return len(self.records)

    def append(self, record: int) -> None:
        """One more offset."""
        self.records.append(record)
        self.links.append(hash((self.links[-1], record)))

    def append_batches(self, data: bytes) -> None:
        """One link per offset of each batch; a batch is known by its CRC and leader epoch."""
        for batch in batches(data):
            if batch.idempotent:
                self.sent[self.end] = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            for number in range(batch.count):
                self.append(hash((batch.crc, batch.leader_epoch, number)))

    def cut(self, end: Offset) -> None:
        """Nothing from the offset on."""
        for offset in range(end, self.end):
            self.sent.pop(offset, None)
        del self.records[end:]
        del self.links[end + 1 :]

    def agrees(self, other: Chain, up_to: Offset) -> bool:
        """Both have everything before the offset, and the same."""
        return up_to <= self.end and up_to <= other.end and self.links[up_to] == other.links[up_to]


Copy: TypeAlias = tuple[BrokerId, TopicPartition]
Led: TypeAlias = tuple[TopicPartition, LeaderEpoch]


@attrs.define
class Invariants:
    """All promises of one run, and the true committed sequence that they are about.

    `lossy` is whether unflushed records may have been lost by now: then no-divergence is promised only between a leader
    and the followers it has met, as in the model.
    """

    logs: dict[Copy, Chain] = attrs.field(factory=dict[Copy, Chain])
    committed: dict[TopicPartition, Chain] = attrs.field(factory=dict[TopicPartition, Chain])
    acked: dict[TopicPartition, dict[Offset, int]] = attrs.field(factory=dict[TopicPartition, dict[Offset, int]])
    leaders: dict[Led, BrokerId] = attrs.field(factory=dict[Led, BrokerId])
    sent: dict[TopicPartition, set[tuple[int, int, int]]] = attrs.field(
        factory=dict[TopicPartition, set[tuple[int, int, int]]]
    )
    rulings: dict[TopicPartition, PartitionMetadata] = attrs.field(factory=dict[TopicPartition, PartitionMetadata])
    lossy: bool = False
    checks: int = 0
    governed_up_to: int = 0

    def _chain(self, broker: BrokerId, tp: TopicPartition) -> Chain:
        return self.logs.setdefault((broker, tp), Chain())

    def starts(self, broker: BrokerId, disk: Disk) -> None:
        """A process is about to load its logs: every checkpoint is whole, the newest or the one before."""
        folders = [f"{name}/{EPOCHS}" for name in disk.names(ROOT)]
        for path in (WATERMARKS, RECOVERY_POINTS, LOG_STARTS, *folders):
            if not is_whole(disk, path):
                raise Violation("checkpoints-whole", f"broker {broker} finds half of {path}")

    def opened(self, broker: BrokerId, tp: TopicPartition, log: LogView, records: bytes) -> None:
        """A log was found on the disk."""
        chain = self.logs[broker, tp] = Chain()
        chain.append_batches(records)

    def changed(self, broker: BrokerId, operation: DiskOperation, log: LogView) -> None:
        """A disk operation was reported done."""
        chain = self._chain(broker, operation.partition)
        match operation:
            case AppendLog(records=records):
                chain.append_batches(records)
            case TruncateLog(offset=offset):
                chain.cut(offset)
            case AssignEpoch():
                pass

    def governed(self, world: World) -> None:
        """metadata-survives: a controller finds in its log all that it has told of."""
        written = world.controller.written
        if written < self.governed_up_to:
            raise Violation("metadata-survives", f"{self.governed_up_to} records were durable, {written} are found")

    def stepped(self, world: World) -> None:
        """Every promise, for every partition."""
        self.checks += 1
        self.governed_up_to = max(self.governed_up_to, world.controller.written)
        for tp, metadata in world.controller.partitions.items():
            held = {b: r for b, r in _replicas(world, tp)}
            for broker, replica in held.items():
                if isinstance(replica.role, Leading):
                    self._commits(tp, broker, replica)
            self._leaders_are_complete(world, tp, metadata, held)
            self._no_divergence(tp, held)
            if self.rulings.get(tp) is not metadata:
                self._is_ruled_well(world, tp, metadata)
                self.rulings[tp] = metadata

    def _is_ruled_well(self, world: World, tp: TopicPartition, metadata: PartitionMetadata) -> None:
        """leader-in-isr, isr-and-elr-apart, fenced-out-of-isr, clean-election."""
        isr, before = metadata.isr, self.rulings.get(tp)
        if metadata.leader is not None and metadata.leader not in isr:
            raise Violation("leader-in-isr", f"{tp}: leader {metadata.leader}, ISR {sorted(isr)}")
        if isr & metadata.elr:
            raise Violation("isr-and-elr-apart", f"{tp}: ISR {sorted(isr)}, ELR {sorted(metadata.elr)}")
        gone = [b for b in isr if b in world.controller.brokers and world.controller.brokers[b].fenced]
        if gone and len(isr) > 1:
            raise Violation("fenced-out-of-isr", f"{tp}: {gone} are fenced, ISR {sorted(isr)}")
        elected = before is not None and metadata.leader_epoch == before.leader_epoch + 1 and metadata.leader
        if before is None or not elected or metadata.unclean_leader_election:
            return
        eligible = before.isr | before.elr or {before.last_known_leader}
        if metadata.leader not in eligible:
            raise Violation("clean-election", f"{tp}: {elected} is elected, ISR and ELR were {sorted(before.isr)}")

    def _commits(self, tp: TopicPartition, broker: BrokerId, replica: Replica) -> None:
        """committed-only-grows, one-leader-per-epoch."""
        first = self.leaders.setdefault((tp, replica.leader_epoch), broker)
        if first != broker:
            raise Violation("one-leader-per-epoch", f"{tp}: {first} and {broker} in epoch {replica.leader_epoch}")
        committed = self.committed.setdefault(tp, Chain())
        chain, watermark = self._chain(broker, tp), replica.high_watermark
        if not chain.agrees(committed, min(watermark, committed.end)):
            raise Violation("committed-only-grows", f"{tp}: leader {broker} commits other records below {watermark}")
        for offset in range(committed.end, watermark):
            committed.append(chain.records[offset])
            batch = chain.sent.get(offset)
            if batch is not None and batch in self.sent.setdefault(tp, set()):
                raise Violation("no-duplicates", f"{tp}: the batch at {offset} is committed a second time")
            if batch is not None:
                self.sent[tp].add(batch)

    def _leaders_are_complete(
        self, world: World, tp: TopicPartition, metadata: PartitionMetadata, held: dict[BrokerId, Replica]
    ) -> None:
        """committed-on-new-leader, acked-survives, leaders-complete, maximal-isr-covers.

        A process that is not registered yet may be in the ISR of the metadata by what it was before; as that it cannot
        lead, and when it registers it is struck (in the model both are one step).
        """
        settled = world.controller.written == world.controller.offset
        committed = self.committed.get(tp, Chain())
        for broker, replica in held.items():
            chain = self._chain(broker, tp)
            leads = isinstance(replica.role, Leading) and replica.leader_epoch == metadata.leader_epoch
            if leads and metadata.leader == broker:
                if not chain.agrees(committed, committed.end):
                    self._names_what_is_lost(tp, broker, chain)
                if settled and not metadata.isr <= maximal_isr(replica):
                    counted = sorted(maximal_isr(replica))
                    raise Violation("maximal-isr-covers", f"{tp}: leader {broker} counts {counted}")
            known = world.controller.brokers[broker]
            eligible = broker in metadata.isr | metadata.elr and replica.broker_epoch == known.epoch
            if settled and eligible and not chain.agrees(committed, committed.end):
                raise Violation("leaders-complete", f"{tp}: {broker} could lead and lacks committed records")

    def _names_what_is_lost(self, tp: TopicPartition, leader: BrokerId, chain: Chain) -> None:
        for offset, record in self.acked.get(tp, {}).items():
            if chain.end <= offset or chain.records[offset] != record:
                raise Violation("acked-survives", f"{tp}: leader {leader} has lost what was acked at {offset}")
        raise Violation("committed-on-new-leader", f"{tp}: leader {leader} lacks committed records")

    def _no_divergence(self, tp: TopicPartition, held: dict[BrokerId, Replica]) -> None:
        """no-divergence, between all replicas, or with lost records between those that have met."""
        for a, one in held.items():
            for b, other in held.items():
                if a == b or (a > b and not self.lossy) or (self.lossy and not _met(one, b, other)):
                    continue
                below = min(one.high_watermark, other.high_watermark)
                if not self._chain(a, tp).agrees(self._chain(b, tp), below):
                    raise Violation("no-divergence", f"{tp}: {a} and {b} differ below {below}")

    # From clients

    def acknowledged(self, tp: TopicPartition, offset: Offset, count: int, topic_id: int) -> None:
        """A producer was told, with acks=all, that its records are at the offset: they must be committed there."""
        committed = self.committed.get(tp, Chain())
        if committed.end < offset + count:
            raise Violation("acked-survives", f"{tp}: acknowledged at {offset}, committed up to {committed.end}")
        for o in range(offset, offset + count):
            self.acked.setdefault(tp, {})[o] = committed.records[o]

    def read(self, tp: TopicPartition, data: bytes, topic_id: int) -> None:
        """A consumer was given these batches: reads-committed, and so reads-stable."""
        committed = self.committed.get(tp, Chain())
        try:
            found = list(batches(data, check=True))
        except BadBatch as error:
            raise Violation("reads-committed", f"{tp}: what was read is no record batch: {error}") from None
        for batch in found:
            for number in range(batch.count):
                offset, record = batch.base_offset + number, hash((batch.crc, batch.leader_epoch, number))
                if committed.end <= offset or committed.records[offset] != record:
                    raise Violation("reads-committed", f"{tp}: what was read at {offset} is not committed there")


def _replicas(world: World, tp: TopicPartition) -> Iterator[tuple[BrokerId, Replica]]:
    for broker, host in world.hosts.items():
        replica = host.node.held.get(tp) if host.node is not None else None
        if replica is not None:
            yield broker, replica


def _met(leader: Replica, broker: BrokerId, follower: Replica) -> bool:
    """The leader has taken a fetch of this incarnation of the follower, and both are in one epoch. Model: met."""
    if not isinstance(leader.role, Leading) or leader.leader_epoch != follower.leader_epoch:
        return False
    seen = leader.role.followers.get(broker)
    return seen is not None and seen.end is not None and seen.broker_epoch == follower.broker_epoch
