"""Producers and consumers, as impatient as real ones: they time out, try again, and go by metadata that may be old."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from isr_broker.core.effects import AnswerConsume, AnswerProduce
from isr_broker.core.inputs import Consume, Produce
from isr_broker.core.messages import Admin as AdminRequest
from isr_broker.core.messages import (
    BrokerId,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectUncleanLeader,
    Error,
    Offset,
    TopicPartition,
)
from isr_broker.core.record_batch import BadBatch, batches, new_batch
from isr_sim.invariants import Invariants, Violation
from isr_sim.world import Reply, World

PATIENCE_MS: Final = 900
PAUSE_MS: Final = 40
PERSISTENCE: Final = 20
"""How often a producer takes an error about its sequence for a passing one, before it begins a new epoch."""

ADMIN: Final = 99
"""Where an admin is, to the network."""

ADMIN_PATIENCE_MS: Final = 300

_STARTS_AGAIN: Final = {Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.INVALID_PRODUCER_EPOCH}


def _believed_leader(world: World, tp: TopicPartition) -> BrokerId:
    """Whom some living broker believes to lead; anybody, if nobody knows."""
    alive = [h for h in world.hosts.values() if h.alive]
    asked = world.random.choice(alive) if alive else None
    metadata = asked.node.partitions.get(tp) if asked is not None and asked.node is not None else None
    if metadata is None or metadata.leader is None:
        return world.random.choice(sorted(world.hosts))
    return metadata.leader


@attrs.define
class Producer:
    """A producer with one batch in flight. With acks=all it is idempotent, so that trying again is safe.

    `batch_count` counts its batches, `acked` those that it knows to be in the log, `refusals` those for which
    there were not enough replicas; `request_count` its requests. Where it is `stopped` it begins with no other batch;
    where it is `silent`, it does not send its last one again either.
    """

    identity: int
    tp: TopicPartition
    acks: int
    invariants: Invariants
    request_count: int = 0
    sequence: int = 0
    epoch: int = 0
    batch_count: int = 0
    acked: int = 0
    refusals: int = 0
    size: int = 1
    stopped: bool = False
    silent: bool = False
    sequence_errors: int = 0
    _request: int = -1

    def next(self, world: World) -> None:
        """Begin with another batch."""
        if self.stopped:
            return
        self.batch_count += 1
        self.size = world.random.choice((1, 1, 1, 3))
        self._send(world)

    def _send(self, world: World) -> None:
        if self.silent:
            return
        identity = (self.identity, self.epoch, self.sequence) if self.acks == -1 else (-1, -1, -1)
        body = f"{self.identity}/{self.batch_count}".encode()
        batch = new_batch(body, count=self.size, timestamp=self.batch_count, producer=identity)
        self.request_count += 1
        request = self._request = self.request_count

        def asks(number: int) -> Produce:
            return Produce(request=number, partition=self.tp, records=batch, acks=self.acks, timeout_ms=PATIENCE_MS)

        leader = _believed_leader(world, self.tp)
        world.ask(self.identity, leader, asks, lambda reply: self._hears(world, request, reply))
        world.after(PATIENCE_MS + PAUSE_MS, lambda: self._gives_up(world, request))

    def _gives_up(self, world: World, request: int) -> None:
        if request == self._request:
            self._again(world)

    def _again(self, world: World) -> None:
        """The same batch, under the same sequence number; without one it is given up."""
        self._request = -1
        if self.acks == -1:
            world.after(PAUSE_MS, lambda: self._send(world))
        else:
            world.after(PAUSE_MS, lambda: self.next(world))

    def _hears(self, world: World, request: int, reply: Reply) -> None:
        if request == self._request and isinstance(reply.answer, AnswerProduce):
            self.take_answer(world, reply.answer, reply.topic_id)

    def take_answer(self, world: World, answer: AnswerProduce, topic_id: int) -> None:
        """An acknowledgement, or an error, to the request that is in flight."""
        if answer.error is Error.NONE:
            self._acknowledged(world, answer.offset, topic_id)
            return
        self.refusals += answer.error is Error.NOT_ENOUGH_REPLICAS
        if answer.error in _STARTS_AGAIN:
            # A zombie leader may not know what was acknowledged since; a true one that never learns it has lost it.
            self.sequence_errors += 1
            if self.sequence_errors > PERSISTENCE:
                self.epoch, self.sequence, self.sequence_errors = self.epoch + 1, 0, 0
        self._again(world)

    def _acknowledged(self, world: World, offset: Offset, topic_id: int) -> None:
        if self.acks == -1:
            self.invariants.acknowledged(self.tp, offset, self.size, topic_id)
            self.sequence += self.size
        self.acked += 1
        self.sequence_errors = 0
        self._request = -1
        world.after(world.random.randint(1, 2 * PAUSE_MS), lambda: self.next(world))


@attrs.define
class Consumer:
    """A consumer that reads from the beginning on; `position` is what it asks for next."""

    identity: int
    tp: TopicPartition
    invariants: Invariants
    request_count: int = 0
    position: Offset = 0
    max_bytes: int = 200
    stopped: bool = False
    _request: int = -1

    def next(self, world: World) -> None:
        """Ask for what comes next."""
        if self.stopped:
            return
        self.request_count += 1
        request, position = self.request_count, self.position
        self._request = request

        def asks(number: int) -> Consume:
            return Consume(
                request=number, partition=self.tp, offset=position, max_wait_ms=300, max_bytes=self.max_bytes
            )

        from_anybody = world.settings.insync_follower_reads
        to = world.random.choice(sorted(world.hosts)) if from_anybody else _believed_leader(world, self.tp)
        world.ask(self.identity, to, asks, lambda reply: self._hears(world, request, reply))
        world.after(PATIENCE_MS, lambda: self._gives_up(world, request))

    def _gives_up(self, world: World, request: int) -> None:
        if request == self._request:
            self._request = -1
            self.next(world)

    def _hears(self, world: World, request: int, reply: Reply) -> None:
        if request == self._request and isinstance(reply.answer, AnswerConsume):
            self.take_answer(world, reply.answer, reply.records, reply.topic_id)

    def take_answer(self, world: World, answer: AnswerConsume, records: bytes, topic_id: int) -> None:
        """Records, which must be committed, and continue what was read before (Fetcher, with check.crcs).

        Where there are none to be had at the position it goes to where the log starts (auto.offset.reset=earliest).
        """
        self._request = -1
        if answer.error is Error.OFFSET_OUT_OF_RANGE:
            self.position = _first_offset(world, self.tp)
        elif answer.error is Error.NONE and records and self._whole(records):
            self.invariants.read(self.tp, records, topic_id)
            found = list(batches(records))
            if found[0].base_offset > self.position:
                raise Violation("reads-stable", f"{self.tp}: asked for {self.position}, got {found[0].base_offset}")
            self.position = found[-1].next_offset
        world.after(PAUSE_MS, lambda: self.next(world))

    def _whole(self, records: bytes) -> bool:
        """Whether it can read them; in a strict run nobody is given what cannot be read."""
        try:
            return bool(list(batches(records, check=True)))
        except BadBatch as error:
            if self.invariants.strict:
                raise Violation("sends-whole-batches", f"{self.tp}: a consumer is given {error}") from None
            return False


def _first_offset(world: World, tp: TopicPartition) -> Offset:
    """Where the log that starts last does (ListOffsets)."""
    held = [
        host.node.replicas[tp] for host in world.hosts.values() if host.node is not None and tp in host.node.replicas
    ]
    return max((replica.log.start for replica in held), default=0)


@attrs.define
class Admin:
    """Wants a topic to be there, and asks one broker after the other until it is; `dislikes` the topic of this id.

    `grows` is told of partitions that the topic is to have from now on.
    """

    topic: str
    where: tuple[tuple[BrokerId, ...], ...]
    dislikes: int = 0
    grows: Callable[[range], object] = lambda numbers: None
    request_count: int = 0

    def next(self, world: World) -> None:
        """Look at what the controller has, and ask for what is not so."""
        there, where = self._there(world), self.where
        count = sum(tp.topic == self.topic for tp in world.controller.partitions)
        if not there:
            self._asks(world, lambda n: CreateTopic(request=n, topic=self.topic, assignments=where))
        elif there == self.dislikes:
            self._asks(world, lambda n: DeleteTopic(request=n, topic=self.topic))
        elif count < len(where):
            more = where[count:]
            self._asks(
                world,
                lambda n: CreatePartitions(request=n, topic=self.topic, count=len(where), assignments=more),
            )
        world.after(ADMIN_PATIENCE_MS, lambda: self.next(world))

    def _there(self, world: World) -> int:
        """The id of the topic; 0 if there is none."""
        return next((p.topic_id for tp, p in world.controller.partitions.items() if tp.topic == self.topic), 0)

    def wants_another(self, world: World) -> None:
        """Have the topic that is there deleted, and created again."""
        self.dislikes = self._there(world)

    def elects(self, world: World, tp: TopicPartition) -> None:
        """Have anybody lead who can, whatever he lacks."""
        self._asks(world, lambda n: ElectUncleanLeader(request=n, partition=tp))

    def _asks(self, world: World, make: Callable[[int], AdminRequest]) -> None:
        self.request_count += 1
        brokers = sorted(world.hosts)
        world.ask(ADMIN, brokers[(self.request_count - 1) % len(brokers)], make, lambda _: None)
