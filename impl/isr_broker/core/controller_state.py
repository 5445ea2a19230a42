"""The controller's state, its metadata log, and when others may be told of it.

Whatever the controller decides is in its state at once, but nobody is told before the records are durable: answers
are held until `Written` (Kafka: QuorumController's deferred events), and metadata is handed out only when nothing is on
its way to the disk.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from immutables import Map

from isr_broker.core.effects import AppendMetadata, Effect, Send, Took
from isr_broker.core.elections import Brokers, Change
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    BrokerMetadata,
    FetchMetadata,
    FromController,
    Metadata,
    MetadataRecord,
    Millis,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.settings import Settings

Key = TopicPartition | BrokerId


@attrs.frozen(kw_only=True)
class Controller:
    """The controller's state.

    - `offset` and `written`: the end of the metadata log, and how much of it is durable.
    - `brokers` and `partitions`: the metadata (fenced, shutting_down, broker_epoch; controller_leader, controller_isr
      and the others of the model), `changed` when each of them changed last.
    - `contacts`: when each broker with a session was heard last.
    - `due`: partitions to look at again at once: without a leader, or with a replica that shuts down.
    - `refused`: the AlterPartition that was refused last; it dies with the process, as the connections do on which
      copies of it may still be on their way.
    - `held`: answers that wait for the metadata log; `parked`: brokers that wait for news.
    """

    settings: Settings = attrs.field(repr=False)
    offset: int = 0
    written: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    changed: Map[Key, int] = attrs.field(factory=Map[Key, int])
    contacts: Map[BrokerId, Millis] = attrs.field(factory=Map[BrokerId, Millis])
    due: frozenset[TopicPartition] = frozenset()
    refused: Map[TopicPartition, AlterPartitionRequest] = attrs.field(
        factory=Map[TopicPartition, AlterPartitionRequest]
    )
    held: tuple[tuple[int, Send], ...] = ()
    parked: Map[BrokerId, FetchMetadata] = attrs.field(factory=Map[BrokerId, FetchMetadata])
    next_balance: Millis = 0


@attrs.frozen
class ControllerStep:
    """The controller from now on, and what it asks for."""

    core: Controller
    effects: tuple[Effect, ...] = ()


def recovered(settings: Settings, records: Iterable[MetadataRecord], now: Millis) -> Controller:
    """The controller as its durable metadata log has it; every session begins anew."""
    controller = applied(Controller(settings=settings, next_balance=next_balance_after(settings, now)), tuple(records))
    contacts = {b: now for b, broker in controller.brokers.items() if not broker.fenced}
    due = frozenset(tp for tp, p in controller.partitions.items() if p.leader is None)
    return attrs.evolve(controller, written=controller.offset, contacts=Map(contacts), due=due)


def next_balance_after(settings: Settings, now: Millis) -> Millis:
    return now + 1000 * settings.leader_imbalance_check_interval_seconds


# The metadata log.


def applied(controller: Controller, records: tuple[MetadataRecord, ...]) -> Controller:
    brokers, partitions, changed = controller.brokers, controller.partitions, controller.changed
    offset = controller.offset
    for record in records:
        offset += 1
        match record:
            case PartitionMetadata():
                if record.replicas:
                    partitions = partitions.set(record.partition, record)
                elif record.partition in partitions:
                    partitions = partitions.delete(record.partition)
                changed = changed.set(record.partition, offset)
            case BrokerMetadata():
                brokers = brokers.set(record.broker, record)
                changed = changed.set(record.broker, offset)
    return attrs.evolve(controller, brokers=brokers, partitions=partitions, changed=changed, offset=offset)


def decides(
    controller: Controller,
    records: Iterable[MetadataRecord],
    changes: Iterable[Change] = (),
    answers: Iterable[Send] = (),
) -> ControllerStep:
    """Write records and the partitions of changes, note the actions, and answer when all of it is durable."""
    notes: list[Effect] = []
    changed: list[MetadataRecord] = list(records)
    due = set(controller.due)
    for change in changes:
        tp = change.partition.partition
        notes.append(Took(action=change.action, partition=tp, replica=change.replica))
        if change.partition != controller.partitions.get(tp):
            changed.append(change.partition)
        if change.partition.leader is None:
            due.add(tp)
    controller = applied(attrs.evolve(controller, due=frozenset(due)), tuple(changed))
    if changed:
        notes.append(AppendMetadata(offset=controller.offset, records=tuple(changed)))
    held = (*controller.held, *((controller.offset, answer) for answer in answers))
    step = released(attrs.evolve(controller, held=held))
    return ControllerStep(step.core, (*notes, *step.effects))


def released(controller: Controller) -> ControllerStep:
    """What may be said by now: answers whose records are durable, and news to brokers that wait for some."""
    said: list[Effect] = [answer for offset, answer in controller.held if offset <= controller.written]
    controller = attrs.evolve(controller, held=tuple(h for h in controller.held if h[0] > controller.written))
    if controller.written < controller.offset:
        return ControllerStep(controller, tuple(said))
    for source, request in sorted(controller.parked.items()):
        if request.offset < controller.offset:
            said.append(Send(source, news_since(controller, request.offset)))
            controller = attrs.evolve(controller, parked=controller.parked.delete(source))
    return ControllerStep(controller, tuple(said))


def news_since(controller: Controller, since: int) -> Metadata:
    """Everything that changed after an offset, as it is now."""
    new = [key for key, offset in controller.changed.items() if offset > since]
    return Metadata(
        since=since,
        offset=controller.offset,
        brokers=tuple(controller.brokers[b] for b in sorted(k for k in new if not isinstance(k, TopicPartition))),
        partitions=tuple(
            controller.partitions.get(tp) or removed(tp)
            for tp in sorted(k for k in new if isinstance(k, TopicPartition))
        ),
    )


def removed(tp: TopicPartition) -> PartitionMetadata:
    """The record of a partition that is no more."""
    return PartitionMetadata(partition=tp, replicas=(), isr=frozenset(), leader=None)


def answers(controller: Controller, to: BrokerId, message: FromController) -> ControllerStep:
    return decides(controller, (), (), (Send(to, message),))
