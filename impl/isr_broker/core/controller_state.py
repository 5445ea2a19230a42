"""What the controller knows, and how a decision becomes part of it.

A decision is in the controller's state at once, but nobody is told of it before its records are durable. Answers wait
for `Written` (Kafka: the deferred events of QuorumController), and metadata is handed out only while no record is on
its way to the disk. Otherwise a controller that crashed could have told of a decision that it then forgets.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from immutables import Map

from isr_broker import topic_configs
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
    MetadataSnapshot,
    Millis,
    PartitionMetadata,
    TopicPartition,
    removed,
)
from isr_broker.settings import Settings

Key = TopicPartition | BrokerId


@attrs.frozen(kw_only=True)
class Controller:
    """The controller's state.

    - `offset` and `written`: the end of the metadata log, and how much of it is durable.
    - `brokers` and `partitions`: the metadata (fenced, shutting_down, broker_epoch; controller_leader, controller_isr
      and the others of the model), `changed` when each of them changed last.
    - `whole_until`: what was removed before this offset is forgotten, so who knows less than that is told everything.
    - `contacts`: when each broker with a session was heard last.
    - `due`: partitions to look at again at once: without a leader, or with a replica that shuts down.
    - `refused`: the AlterPartition that was refused last; it dies with the process, as the connections do on which
      copies of it may still be on their way.
    - `reconfigured`: the controller started with other settings than the topics have that have none of their own.
    - `held`: answers that wait for the metadata log; `parked`: brokers that wait for news.
    - `read`: up to where each broker has read the metadata log, as far as it has said so to this process.
    """

    settings: Settings = attrs.field(repr=False)
    offset: int = 0
    written: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    changed: Map[Key, int] = attrs.field(factory=Map[Key, int])
    whole_until: int = 0
    contacts: Map[BrokerId, Millis] = attrs.field(factory=Map[BrokerId, Millis])
    due: frozenset[TopicPartition] = frozenset()
    refused: Map[TopicPartition, AlterPartitionRequest] = attrs.field(
        factory=Map[TopicPartition, AlterPartitionRequest]
    )
    reconfigured: bool = False
    held: tuple[tuple[int, Send], ...] = ()
    parked: Map[BrokerId, FetchMetadata] = attrs.field(factory=Map[BrokerId, FetchMetadata])
    read: Map[BrokerId, int] = attrs.field(factory=Map[BrokerId, int])
    next_balance: Millis = 0


@attrs.frozen
class ControllerStep:
    """The controller from now on, and what it asks for."""

    core: Controller
    effects: tuple[Effect, ...] = ()


def applied(controller: Controller, records: tuple[MetadataRecord, ...]) -> Controller:
    brokers, partitions, changed = controller.brokers, controller.partitions, controller.changed
    offset, whole_until = controller.offset, controller.whole_until
    for record in records:
        offset += 1
        match record:
            case MetadataSnapshot():
                offset = whole_until = record.offset
                brokers = Map({b.broker: b for b in record.brokers})
                partitions = Map({p.partition: p for p in record.partitions})
                keys: list[Key] = [*brokers, *partitions]
                changed = Map(dict.fromkeys(keys, offset))
            case PartitionMetadata():
                if record.replicas:
                    partitions = partitions.set(record.partition, record)
                elif record.partition in partitions:
                    partitions = partitions.delete(record.partition)
                changed = changed.set(record.partition, offset)
            case BrokerMetadata():
                brokers = brokers.set(record.broker, record)
                changed = changed.set(record.broker, offset)
    return attrs.evolve(
        controller, brokers=brokers, partitions=partitions, changed=changed, offset=offset, whole_until=whole_until
    )


def snapshot(controller: Controller) -> MetadataSnapshot:
    """What may stand in the place of all its records."""
    return MetadataSnapshot(
        offset=controller.offset,
        brokers=tuple(b for _, b in sorted(controller.brokers.items())),
        partitions=tuple(p for _, p in sorted(controller.partitions.items())),
    )


def forgets(controller: Controller) -> Controller:
    """The log begins with a snapshot: nobody needs to know any longer what was removed before it."""
    there = {
        key: at for key, at in controller.changed.items() if key in controller.brokers or key in controller.partitions
    }
    return attrs.evolve(controller, changed=Map(there), whole_until=controller.offset)


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
    """Everything that changed after an offset, as it is now; or everything there is."""
    whole = since < controller.whole_until
    new = [key for key, offset in controller.changed.items() if whole or offset > since]
    return Metadata(
        since=since,
        offset=controller.offset,
        whole=whole,
        brokers=tuple(controller.brokers[b] for b in sorted(k for k in new if not isinstance(k, TopicPartition))),
        partitions=tuple(
            controller.partitions.get(tp) or removed(tp)
            for tp in sorted(k for k in new if isinstance(k, TopicPartition))
        ),
    )


def answers(controller: Controller, to: BrokerId, message: FromController) -> ControllerStep:
    return decides(controller, (), (), (Send(to, message),))


def configured(controller: Controller, partition: PartitionMetadata) -> PartitionMetadata:
    """A partition with what its topic's settings and the controller's come to; in the same partition epoch."""
    configs = dict(partition.configs)
    return attrs.evolve(
        partition,
        min_insync_replicas=topic_configs.minimum(configs, controller.settings),
        unclean_leader_election=topic_configs.unclean(configs, controller.settings),
    )
