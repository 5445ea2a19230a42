"""What the simulator's clients did and saw, as a history that `isr_anomalies` and `insync history` read.

The clients are the simulator's own, with one record in each batch. A producer with acks=all tries until it has its
acknowledgement, as Kafka's does, so an operation is one record however often it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import AnswerConsume, Slice
from isr_broker.core.messages import BrokerId, Message, Metadata, Offset, TopicPartition
from isr_broker.core.record_batch import BadBatch, batches, value_of
from isr_broker.core.replica_state import Leading
from isr_broker.storage.disk import Disk
from isr_sim.clients import PAUSE_MS, Consumer, Producer
from isr_sim.host import Host
from isr_sim.invariants import Invariants
from isr_sim.simulate import Config, Run
from isr_sim.world import World

Record: TypeAlias = "list[int | str | None]"
NANOSECONDS: Final = 1_000_000
EVERYTHING: Final = 1 << 40


@attrs.define(kw_only=True)
class Silent(Invariants):
    """Nobody looks, so a run goes on whatever happens; `lines` is what its clients tell."""

    lines: list[str] = attrs.field(factory=list[str])

    def starts(self, broker: BrokerId, disk: Disk) -> None:
        """Not looked at."""

    def check_step(self, world: World) -> None:
        """Not looked at."""

    def check_metadata_log(self, world: World) -> None:
        """Not looked at."""

    def note_refusal(self, host: Host, why: str) -> None:
        """Not looked at."""

    def check_message(self, host: Host, message: Message) -> None:
        """Not looked at."""

    def check_controller(self, host: Host, core: Controller, by_clock: bool) -> None:
        """Not looked at."""

    def check_news(self, host: Host, news: Metadata) -> None:
        """Not looked at."""

    def acknowledged(self, tp: TopicPartition, offset: Offset, count: int, topic_id: int) -> None:
        """Not looked at."""

    def read(self, tp: TopicPartition, data: bytes, topic_id: int) -> None:
        """Not looked at."""

    def tells(self, world: World, kind: str, f: str, process: int, **more: object) -> None:
        """One line of an operation."""
        line = {"type": kind, "f": f, "process": process, "time": world.now * NANOSECONDS, **more}
        self.lines.append(json.dumps(line))


def _tells(client: Producer | Consumer) -> Silent:
    assert isinstance(client.invariants, Silent)
    return client.invariants


@attrs.define
class TellingProducer(Producer):
    """A producer that tells of each record when it begins with it, and how that ended.

    All are idempotent and wait for all in-sync replicas, so that what is claimed is claimed of the whole topic.
    """

    began_in: int = -1

    def __attrs_post_init__(self) -> None:
        self.acks = -1

    def next(self, world: World) -> None:
        """Begin with another record."""
        if self.stopped:
            return
        self.began_in = self.epoch
        value = f"{self.identity}/{self.batch_count + 1}"
        _tells(self).tells(world, "invoke", "produce", self.identity, partition=str(self.tp), value=value, acks="all")
        Producer.next(self, world)

    def _send(self, world: World) -> None:
        self.size = 1
        Producer._send(self, world)

    def _again(self, world: World) -> None:
        """Who gives a record up does not know what became of it; under another identity it would be another one."""
        if self.epoch == self.began_in:
            Producer._again(self, world)
            return
        _tells(self).tells(world, "info", "produce", self.identity)
        self._request = -1
        world.after(PAUSE_MS, lambda: self.next(world))

    def _acknowledged(self, world: World, offset: int, topic_id: int) -> None:
        _tells(self).tells(world, "ok", "produce", self.identity, offset=offset)
        Producer._acknowledged(self, world, offset, topic_id)


@attrs.define
class TellingConsumer(Consumer):
    """A consumer that tells of each poll."""

    def next(self, world: World) -> None:
        """Ask for what comes next."""
        if not self.stopped:
            _tells(self).tells(world, "invoke", "poll", self.identity)
        Consumer.next(self, world)

    def _gives_up(self, world: World, request: int) -> None:
        if request == self._request:
            _tells(self).tells(world, "info", "poll", self.identity)
        Consumer._gives_up(self, world, request)

    def take_answer(self, world: World, answer: AnswerConsume, records: bytes, topic_id: int) -> None:
        """What came of the poll."""
        rows = list(_records(records, self.position))
        if rows and rows[-1][1] is None:
            # A client cannot go on past bytes that are no record.
            self.stopped, self._request = True, -1
            _tells(self).tells(world, "ok", "poll", self.identity, records={str(self.tp): rows})
            return
        told = {"records": {str(self.tp): rows}} if rows else {}
        _tells(self).tells(world, "ok", "poll", self.identity, **told)
        Consumer.take_answer(self, world, answer, records, topic_id)


def _records(data: bytes, at: Offset) -> Iterator[Record]:
    """Offset, value and leader epoch of each record; where bytes are no batch, something that nobody sent."""
    try:
        for batch in batches(data, check=True):
            body = value_of(data, batch)
            for offset in range(batch.base_offset, batch.next_offset):
                yield [offset, body.decode("utf-8", "replace"), batch.leader_epoch]
            at = batch.next_offset
    except BadBatch:
        yield [at, None, -1]


@attrs.define
class TellingRun(Run):
    """A run at which nobody looks, and whose clients tell."""

    def _convergence_failure(self) -> str | None:
        """All are in sync and at their ends, as far as they know."""
        for tp, metadata in sorted(self.world.controller.partitions.items()):
            nodes = [self.world.hosts[broker].node for broker in metadata.replicas]
            held = [node.replicas.get(tp) if node is not None else None for node in nodes]
            ends = {(r.log.end, r.high_watermark) if r is not None else (-1, 0) for r in held}
            if metadata.isr != frozenset(metadata.replicas) or len({*ends, *((b, a) for a, b in ends)}) != 1:
                return f"{tp}: ISR {sorted(metadata.isr)}, log ends and watermarks {sorted(ends)}"
        return None


def telling(config: Config, seed: int, kind: type[World] = World) -> TellingRun:
    """Such a run, not yet begun."""
    return TellingRun(config, seed, invariants=Silent(), kind=kind, producer=TellingProducer, consumer=TellingConsumer)


def history(run: TellingRun) -> list[str]:
    """The lines of a run that has ended: what its clients told, what each replica has, and a last complete read."""
    silent, world = run.invariants, run.world
    assert isinstance(silent, Silent)
    minimum = world.settings.min_insync_replicas
    header = {"history": 1, "settings": {"acks": "all", "idempotence": True, "min_insync": minimum}}
    for tp, metadata in sorted(world.controller.partitions.items()):
        for broker in metadata.replicas:
            _dump(world, silent, tp, broker, broker in metadata.isr, broker == metadata.leader)
    return [json.dumps(header), *silent.lines]


def _dump(world: World, silent: Silent, tp: TopicPartition, broker: int, in_sync: bool, leads: bool) -> None:
    host = world.hosts[broker]
    replica = host.node.replicas.get(tp) if host.node is not None else None
    if replica is None or host.logs is None:
        return
    records: list[Record] = []
    while not records or int(records[-1][0] or 0) + 1 < replica.log.end:
        start = int(records[-1][0] or 0) + 1 if records else replica.log.start
        piece = host.logs.read(tp, Slice(offset=start, up_to=replica.log.end, max_bytes=EVERYTHING))
        more = [record for record in _records(piece, start) if record[1] is not None]
        if not more:
            break
        records += more
    epochs = [[e.epoch, e.start] for e in replica.log.epochs.entries]
    watermark = min(replica.high_watermark, replica.log.end)
    line = {"f": "replica", "node": str(broker), "partition": str(tp), "records": records, "in_sync": in_sync}
    silent.lines.append(json.dumps({**line, "leader": leads, "high_watermark": watermark, "epochs": epochs}))
    if leads and isinstance(replica.role, Leading):
        below = [record for record in records if int(record[0] or 0) < watermark]
        silent.tells(world, "invoke", "final-read", 999, partition=str(tp))
        silent.tells(world, "ok", "final-read", 999, partition=str(tp), records=below, end=watermark)
