"""What is promised at every step, checked on the cores as they are: the model's `promises.safety`, under their names.

A log is compared by a chain of hashes, one link per offset, so that two logs agree up to an offset if two numbers do.
The chain follows what the cores were told is done, and is made again from the disk when a process starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_
from typing import Final, TypeAlias

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AppendLog, AssignEpoch, DiskOperation, TruncateLog
from isr_broker.core.log_view import LogView
from isr_broker.core.messages import (
    BrokerId,
    FetchResponse,
    LeaderEpoch,
    Message,
    Metadata,
    Offset,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.reassignments import is_under_way
from isr_broker.core.record_batch import BadBatch, batches
from isr_broker.core.replica_state import Leading, Replica
from isr_broker.core.watermark import maximal_isr
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, RECOVERY_POINTS, WATERMARKS, is_whole
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.log_directory import STRAY
from isr_broker.storage.owner import META_PROPERTIES
from isr_sim.host import Host, Impostor
from isr_sim.world import STRANGE, World


class Violation(Exception):
    """A promise is broken: which one, and how."""

    def __init__(self, promise: str, how: str) -> None:
        super().__init__(f"{promise}: {how}")
        self.promise = promise


NOBODYS: Final = -1
"""Where a log says to have records that it was never given."""


@attrs.define
class Chain:
    """A log as links: `links[o]` says all that is before offset o, `records[o]` which record is at it.

    `batch_ids` has of each batch of an idempotent producer, by its first offset, that producer, its epoch and sequence.
    """

    links: list[int] = attrs.field(factory=lambda: [0])
    records: list[int] = attrs.field(factory=list[int])
    batch_ids: dict[Offset, tuple[int, int, int]] = attrs.field(factory=dict[Offset, tuple[int, int, int]])

    @property
    def end(self) -> Offset:
        """The log end offset."""
        return len(self.records)

    def append(self, record: int) -> None:
        """One more offset."""
        self.records.append(record)
        self.links.append(hash((self.links[-1], record)))

    def append_batches(self, data: bytes, before: Chain | None = None, epochs: Sequence[LeaderEpoch] = ()) -> None:
        """One link per offset of each batch; a batch is known by its CRC and leader epoch.

        No CRC covers the leader epoch. A batch that was there `before`, but for its epoch, counts as it was.
        """
        for batch in batches(data):
            if batch.idempotent:
                self.batch_ids[self.end] = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            was = before.records[self.end] if before is not None and self.end < before.end else None
            epoch = next((e for e in epochs if hash((batch.crc, e, 0)) == was), batch.leader_epoch)
            for number in range(batch.count):
                self.append(hash((batch.crc, epoch, number)))

    def cut(self, end: Offset) -> None:
        """Nothing from the offset on."""
        for offset in range(end, self.end):
            self.batch_ids.pop(offset, None)
        del self.records[end:]
        del self.links[end + 1 :]

    def copy_prefix(self, end: Offset, other: Chain) -> None:
        """Up to the offset it is as the other, and where that ends before as no log ever was."""
        self.cut(0)
        for record in other.records[:end]:
            self.append(record)
        while self.end < end:
            self.append(hash((end, self.end, NOBODYS)))

    def agrees(self, other: Chain, up_to: Offset, since: Offset = 0) -> bool:
        """Both have everything before the offset, and the same; or, of logs that reach so far, everything `since`."""
        if up_to > self.end or up_to > other.end:
            return False
        return self.links[up_to] == other.links[up_to] or (
            0 < since <= up_to and self.records[since:up_to] == other.records[since:up_to]
        )


Copy: TypeAlias = tuple[BrokerId, TopicPartition]
Leadership: TypeAlias = tuple[TopicPartition, LeaderEpoch]


@attrs.define
class Invariants:
    """All promises of one run, and the true committed sequence that they are about.

    `lossy` is whether unflushed records may have been lost by now: then no-divergence is promised only between a leader
    and the followers it has met, as in the model. `topics` are the ids of the topics that this is about: when one is
    made again everything begins anew. If it `forgives`, so does what is committed with an unclean leader, whose epoch
    is then in `fork_epochs`. `looked_at` is what each was when it was looked at last: the same again is as good.

    In a `strict` run (the second version) more is promised, of damaged disks and of strangers. Up to `retention_points`
    records were removed by retention. `damaged_files` are those that were harmed, `rotten_copies` those in which a bit
    has flipped, and `controller_behind` is what a controller has that is behind.
    """

    logs: dict[Copy, Chain] = attrs.field(factory=dict[Copy, Chain])
    committed: dict[TopicPartition, Chain] = attrs.field(factory=dict[TopicPartition, Chain])
    acked: dict[TopicPartition, dict[Offset, int]] = attrs.field(factory=dict[TopicPartition, dict[Offset, int]])
    leaders: dict[Leadership, BrokerId] = attrs.field(factory=dict[Leadership, BrokerId])
    batch_offsets: dict[TopicPartition, dict[tuple[int, int, int], Offset]] = attrs.field(
        factory=dict[TopicPartition, dict[tuple[int, int, int], Offset]]
    )
    kept_from: dict[TopicPartition, Offset] = attrs.field(factory=dict[TopicPartition, Offset])
    rulings: dict[TopicPartition, PartitionMetadata] = attrs.field(factory=dict[TopicPartition, PartitionMetadata])
    lossy: bool = False
    forgives: bool = False
    topics: dict[TopicPartition, int] = attrs.field(factory=dict[TopicPartition, int])
    fork_epochs: dict[TopicPartition, LeaderEpoch] = attrs.field(factory=dict[TopicPartition, LeaderEpoch])
    checks: int = 0
    looked_at: dict[TopicPartition, tuple[object, ...]] = attrs.field(factory=dict[TopicPartition, tuple[object, ...]])
    governed_up_to: int = 0
    strict: bool = False
    retention_points: dict[TopicPartition, Offset] = attrs.field(factory=dict[TopicPartition, Offset])
    damaged_files: set[tuple[BrokerId, str]] = attrs.field(factory=set[tuple[BrokerId, str]])
    controller_behind: Controller | None = None
    rotten_copies: set[Copy] = attrs.field(factory=set[Copy])

    def _chain(self, broker: BrokerId, tp: TopicPartition) -> Chain:
        chain = self.logs.get((broker, tp))
        if chain is None:
            chain = self.logs[broker, tp] = Chain()
        return chain

    def starts(self, broker: BrokerId, disk: Disk) -> None:
        """A process is about to load its logs: every checkpoint is whole, the newest or the one before.

        Nobody reads what was set aside, and a file that was damaged has another path there. What says whose they are
        is part of all of them, and read first.
        """
        if (broker, META_PROPERTIES) in self.damaged_files:
            return
        folders = [f"{name}/{EPOCHS}" for name in disk.names(ROOT) if not name.endswith(STRAY)]
        for path in (WATERMARKS, RECOVERY_POINTS, LOG_STARTS, *folders):
            if not is_whole(disk, path) and (broker, path) not in self.damaged_files:
                raise Violation("checkpoints-whole", f"broker {broker} finds half of {path}")

    def note_opened_log(self, broker: BrokerId, tp: TopicPartition, log: LogView, records: bytes) -> None:
        """A log was found on the disk. What it no longer has counts as what it had, if it ever had it."""
        found, first = list(batches(records)), log.end
        if found:
            first = found[0].base_offset
        before = self.logs.get((broker, tp), Chain())
        chain = self.logs[broker, tp] = Chain()
        chain.copy_prefix(first, before if before.end >= first else self.committed.get(tp, Chain()))
        # The broker has checked each CRC. Of a flipped bit in an epoch it may learn later.
        is_rotten, ruling = (broker, tp) in self.rotten_copies, self.rulings.get(tp)
        epochs = range(ruling.leader_epoch + 1) if is_rotten and ruling is not None else ()
        chain.append_batches(records, before, epochs)

    def note_disk_operation(self, broker: BrokerId, operation: DiskOperation, log: LogView) -> None:
        """A disk operation was reported done."""
        chain = self._chain(broker, operation.partition)
        match operation:
            case AppendLog(records=records):
                chain.append_batches(records)
            case TruncateLog(offset=offset):
                chain.cut(offset)
            case AssignEpoch():
                pass
        if log.start == log.end or chain.end != log.end:
            # It has begun anew, or it says to end where it never was.
            chain.copy_prefix(log.end, self._before(operation.partition, log))

    def _before(self, tp: TopicPartition, log: LogView) -> Chain:
        """What a log counts as having had that begins anew: as in Kafka, all that its leader has before its start."""
        committed, ruling = self.committed.get(tp, Chain()), self.rulings.get(tp)
        if log.start < log.end or committed.end >= log.end or ruling is None or ruling.leader is None:
            return committed
        return self._chain(ruling.leader, tp)

    def note_retention(self, tp: TopicPartition, topic_id: int, log: LogView) -> None:
        """A broker has removed what is too old: from then on any log may start there, if it is of this topic."""
        if topic_id == self.topics.get(tp):
            self.retention_points[tp] = max(self.retention_points.get(tp, 0), log.start)

    def check_message(self, host: Host, message: Message) -> None:
        """sends-whole-batches: what a leader sends a follower is as it was written."""
        if not self.strict or host.impostor is not None or not isinstance(message, FetchResponse):
            return
        try:
            list(batches(message.records, check=True))
        except BadBatch as error:
            raise Violation("sends-whole-batches", f"{message.partition}: broker {host.broker} sends {error}") from None

    def check_controller(self, host: Host, core: Controller, by_clock: bool) -> None:
        """strangers-kept-out: no controller has registered a broker of another cluster, nor one that knows more."""
        if not self.strict:
            return
        foreign = host.impostor is Impostor.FOREIGN
        for broker, known in core.brokers.items():
            if broker != host.broker and (foreign or STRANGE <= known.incarnation < 2 * STRANGE):
                raise Violation("strangers-kept-out", f"broker {broker} of another cluster is registered")
        if host.impostor is Impostor.BEHIND:
            self._obeys_nobody_behind(host, core, by_clock)

    def check_news(self, host: Host, news: Metadata) -> None:
        """metadata-survives, strangers-kept-out: no broker learns from a controller that is behind, or of others."""
        if not self.strict or host.impostor is not None or news.life < STRANGE:
            return
        promise = "strangers-kept-out" if self.controller_behind is None else "metadata-survives"
        raise Violation(promise, f"broker {host.broker} learns from a controller that is none of ours")

    def _obeys_nobody_behind(self, host: Host, core: Controller, by_clock: bool) -> None:
        """metadata-survives: while brokers know more, a controller that is behind registers and elects nobody.

        What it decides by the clock nobody has asked for. It is not kept from that, for until a broker is heard it
        knows no better; only nobody may learn of it.
        """
        if self.controller_behind is None:
            return
        if by_clock:
            self.controller_behind = attrs.evolve(self.controller_behind, partitions=core.partitions)
        for broker, known in core.brokers.items():
            if broker != host.broker and known.epoch > self.controller_behind.offset:
                raise Violation(
                    "metadata-survives", f"a controller that is behind registers broker {broker}, who knows more"
                )
        for tp, partition in core.partitions.items():
            before = self.controller_behind.partitions.get(tp)
            if before is None or before.leader_epoch != partition.leader_epoch:
                raise Violation("metadata-survives", f"{tp}: a controller that is behind elects {partition.leader}")

    def check_metadata_log(self, world: World) -> None:
        """metadata-survives: a controller finds in its log all that it has told of."""
        written = world.controller.durable_offset
        if written < self.governed_up_to:
            raise Violation("metadata-survives", f"{self.governed_up_to} records were durable, {written} are found")

    def note_refusal(self, host: Host, why: str) -> None:
        """metadata-survives: a controller whose disk nobody has harmed starts."""
        if not (host.rotten or host.damages or host.impostor):
            raise Violation("metadata-survives", f"broker {host.broker} does not start: {why}")

    def check_step(self, world: World) -> None:
        """Every promise, for every partition."""
        self.checks += 1
        self.governed_up_to = max(self.governed_up_to, world.controller.durable_offset)
        is_settled, brokers = world.controller.durable_offset == world.controller.offset, world.controller.brokers
        for tp, metadata in self._rulings(world, is_settled):
            if self.forgives:
                self._forks(tp, metadata)
            replicas = {b: r for b, r in _replicas(world, tp, metadata.topic_id)}
            looked_at = (metadata, brokers, is_settled, self.lossy, *replicas.values())
            if _same(self.looked_at.get(tp, ()), looked_at):
                continue
            self.looked_at[tp] = looked_at
            fork = self.fork_epochs.get(tp, 0)
            starts = [replica.log.start for replica in replicas.values() if replica.leader_epoch >= fork]
            self.kept_from[tp] = max([self.kept_from.get(tp, 0), *starts])
            for broker, replica in replicas.items():
                if isinstance(replica.role, Leading) and replica.leader_epoch >= self.fork_epochs.get(tp, 0):
                    self._commits(tp, broker, replica)
            self._leaders_are_complete(world, tp, metadata, replicas)
            self._no_divergence(tp, replicas)
            if self.rulings.get(tp) is not metadata:
                self._is_ruled_well(world, tp, metadata)
                self.rulings[tp] = metadata

    def _rulings(self, world: World, is_settled: bool) -> list[tuple[TopicPartition, PartitionMetadata]]:
        """The partitions as the controller has them; what goes on in one that it deletes counts until that is durable.

        Before that a crash takes a deletion back, and nobody has heard of it.
        """
        rulings = dict(world.controller.partitions)
        for tp in list(self.topics):
            metadata = rulings.get(tp)
            if metadata is not None and metadata.topic_id == self.topics[tp]:
                continue
            if is_settled:
                self._forgets(tp)
            else:
                rulings[tp] = self.rulings[tp]
        self.topics |= {tp: metadata.topic_id for tp, metadata in rulings.items()}
        return list(rulings.items())

    def _forgets(self, tp: TopicPartition) -> None:
        """The topic is no more, or another one: a broker that has not heard of that goes on, and nobody minds."""
        for partition_state in (
            self.topics,
            self.committed,
            self.acked,
            self.batch_offsets,
            self.rulings,
            self.fork_epochs,
            self.kept_from,
            self.retention_points,
        ):
            partition_state.pop(tp, None)
        for led in [led for led in self.leaders if led[0] == tp]:
            del self.leaders[led]

    def _forks(self, tp: TopicPartition, metadata: PartitionMetadata) -> None:
        """An unclean election: committed is what the new leader has, as far as it knows."""
        before, leader = self.rulings.get(tp), metadata.leader
        if before is None or leader is None or metadata.leader_epoch == before.leader_epoch:
            return
        if leader in (before.isr | before.elr or {before.last_known_leader}):
            return
        self.lossy, self.fork_epochs[tp] = True, metadata.leader_epoch
        self.acked.pop(tp, None)
        self.batch_offsets.pop(tp, None)
        self.kept_from[tp] = 0
        committed, chain = self.committed.setdefault(tp, Chain()), self._chain(leader, tp)
        agreed = next((o for o in range(min(committed.end, chain.end), 0, -1) if committed.agrees(chain, o)), 0)
        committed.cut(agreed)

    def _is_ruled_well(self, world: World, tp: TopicPartition, metadata: PartitionMetadata) -> None:
        """leader-in-isr, isr-and-elr-apart, members-are-replicas, fenced-out-of-isr, clean-election.

        To complete a reassignment whoever the same record brings in sync may be elected.
        """
        isr, before = metadata.isr, self.rulings.get(tp)
        strangers = (isr | metadata.elr) - set(metadata.replicas)
        if strangers:
            raise Violation("members-are-replicas", f"{tp}: {sorted(strangers)} are in ISR or ELR, and no replicas")
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
        if is_under_way(before) and not is_under_way(metadata):
            eligible = eligible | isr
        if metadata.leader not in eligible:
            raise Violation("clean-election", f"{tp}: {elected} is elected, ISR and ELR were {sorted(before.isr)}")

    def _commits(self, tp: TopicPartition, broker: BrokerId, replica: Replica) -> None:
        """committed-only-grows, one-leader-per-epoch."""
        first = self.leaders.setdefault((tp, replica.leader_epoch), broker)
        if first != broker:
            raise Violation("one-leader-per-epoch", f"{tp}: {first} and {broker} in epoch {replica.leader_epoch}")
        committed = self.committed.setdefault(tp, Chain())
        chain, watermark = self._chain(broker, tp), replica.high_watermark
        if not chain.agrees(committed, min(watermark, committed.end), self.kept_from[tp]):
            raise Violation("committed-only-grows", f"{tp}: leader {broker} commits other records below {watermark}")
        for offset in range(committed.end, watermark):
            committed.append(chain.records[offset])
            batch, batch_offsets = chain.batch_ids.get(offset), self.batch_offsets.setdefault(tp, {})
            if batch is not None and batch_offsets.get(batch, -1) >= self.kept_from.get(tp, 0):
                # Of a batch that some replica no longer has nobody need know who sent it.
                raise Violation("no-duplicates", f"{tp}: the batch at {offset} is committed a second time")
            if batch is not None:
                batch_offsets[batch] = offset

    def _leaders_are_complete(
        self, world: World, tp: TopicPartition, metadata: PartitionMetadata, replicas: dict[BrokerId, Replica]
    ) -> None:
        """committed-on-new-leader, acked-survives, leaders-complete, maximal-isr-covers.

        A process that is not registered yet may be in the ISR of the metadata by what it was before; as that it cannot
        lead, and when it registers it is struck (in the model both are one step).
        """
        is_settled = world.controller.durable_offset == world.controller.offset
        committed = self.committed.get(tp, Chain())
        for broker, replica in replicas.items():
            chain = self._chain(broker, tp)
            leads = isinstance(replica.role, Leading) and replica.leader_epoch == metadata.leader_epoch
            if leads and metadata.leader == broker:
                if not chain.agrees(committed, committed.end, self.kept_from[tp]):
                    self._names_what_is_lost(tp, broker, chain)
                if is_settled and not metadata.isr <= maximal_isr(replica):
                    counted = sorted(maximal_isr(replica))
                    raise Violation("maximal-isr-covers", f"{tp}: leader {broker} counts {counted}")
            known = world.controller.brokers.get(broker)
            current = known is not None and replica.broker_epoch == known.epoch
            eligible = broker in metadata.isr | metadata.elr and current
            if is_settled and eligible and not chain.agrees(committed, committed.end, self.kept_from[tp]):
                raise Violation("leaders-complete", f"{tp}: {broker} could lead and lacks committed records")
            if self.strict and eligible and tp not in self.fork_epochs:
                self._starts_by_retention(tp, broker, replica)

    def _starts_by_retention(self, tp: TopicPartition, broker: BrokerId, replica: Replica) -> None:
        """starts-by-retention: whoever may lead has all that nobody has removed for its age."""
        start, point = replica.log.start, self.retention_points.get(tp, 0)
        if start > point:
            raise Violation("starts-by-retention", f"{tp}: {broker} starts at {start}, removed is up to {point}")

    def _names_what_is_lost(self, tp: TopicPartition, leader: BrokerId, chain: Chain) -> None:
        for offset, record in self.acked.get(tp, {}).items():
            if chain.end <= offset or chain.records[offset] != record:
                raise Violation("acked-survives", f"{tp}: leader {leader} has lost what was acked at {offset}")
        raise Violation("committed-on-new-leader", f"{tp}: leader {leader} lacks committed records")

    def _no_divergence(self, tp: TopicPartition, replicas: dict[BrokerId, Replica]) -> None:
        """no-divergence, between all replicas, or with lost records between those that have met.

        What was given up (retention) is not compared. A follower that was away may hold other records there, for its
        leader no longer knows of their epoch (LeaderEpochFileCache.endOffsetFor); its next fetch gives them up.
        """
        for a, one in replicas.items():
            for b, other in replicas.items():
                if a == b or (a > b and not self.lossy) or (self.lossy and not _have_met(one, b, other)):
                    continue
                below = min(one.high_watermark, other.high_watermark)
                if below < self.kept_from[tp]:
                    continue
                if not self._chain(a, tp).agrees(self._chain(b, tp), below, self.kept_from[tp]):
                    raise Violation("no-divergence", f"{tp}: {a} and {b} differ below {below}")

    # From clients

    def acknowledged(self, tp: TopicPartition, offset: Offset, count: int, topic_id: int) -> None:
        """A producer was told, with acks=all, that its records are at the offset: they must be committed there."""
        if topic_id != self.topics.get(tp) or tp in self.fork_epochs:
            return
        committed = self.committed.get(tp, Chain())
        if committed.end < offset + count:
            raise Violation("acked-survives", f"{tp}: acknowledged at {offset}, committed up to {committed.end}")
        for o in range(offset, offset + count):
            self.acked.setdefault(tp, {})[o] = committed.records[o]

    def read(self, tp: TopicPartition, data: bytes, topic_id: int) -> None:
        """A consumer was given these batches: reads-committed, and so reads-stable."""
        if topic_id != self.topics.get(tp) or tp in self.fork_epochs:
            return
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


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """The very same values: a core that has taken an input and changed nothing keeps its own."""
    return len(one) == len(other) and all(map(is_, one, other))


def _replicas(world: World, tp: TopicPartition, topic_id: int) -> Iterator[tuple[BrokerId, Replica]]:
    """Those whose log is of this topic; for one that was deleted, some may still have one under its name."""
    for broker, host in world.hosts.items():
        node = host.node if host.impostor is None else None
        replica = node.replicas.get(tp) if node is not None else None
        # A log of which nobody noted the topic passes for one of this.
        ids = (topic_id, 0) if world.cluster else (topic_id,)
        if node is not None and replica is not None and node.topic_ids.get(tp) in ids:
            yield broker, replica


def _have_met(leader: Replica, broker: BrokerId, follower: Replica) -> bool:
    """The leader has taken a fetch of this incarnation of the follower, and both are in one epoch. Model: met."""
    if not isinstance(leader.role, Leading) or leader.leader_epoch != follower.leader_epoch:
        return False
    seen = leader.role.followers.get(broker)
    return seen is not None and seen.end is not None and seen.broker_epoch == follower.broker_epoch
