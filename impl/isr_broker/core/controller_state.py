"""What the controller knows, and how a decision becomes part of it.

A decision is in the controller's state at once, but nobody is told of it before its records are durable. Answers wait
for `Written` (Kafka: the deferred events of QuorumController), and metadata is handed out only while no record is on
its way to the disk. Otherwise a controller that crashed could have told of a decision that it then forgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from immutables import Map

from isr_broker import topic_configs
from isr_broker.core.effects import AppendMetadata, Effect, Send, Took
from isr_broker.core.elections import Brokers, Change
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    BrokerMetadata,
    ControllerLife,
    FetchMetadata,
    FromController,
    Metadata,
    MetadataPosition,
    MetadataRecord,
    MetadataSnapshot,
    Millis,
    PartitionMetadata,
    TopicPartition,
    removed_partition,
    unregistration,
)
from isr_broker.settings import Settings

Key = TopicPartition | BrokerId


@attrs.frozen(kw_only=True)
class Controller:
    """The controller's state.

    - `cluster`: the id of the cluster, by which brokers of another one are refused.
    - `offset` and `durable_offset`: the end of the metadata log, and how much of it is durable.
    - `brokers` and `partitions`: the metadata (fenced, shutting_down, broker_epoch; controller_leader, controller_isr
      and the others of the model), `change_offsets` when each of them changed last.
    - `lives`: where each life of the controller begins in the metadata log; one that is older than this says none.
    - `whole_until`: what was removed before this offset is forgotten, so who knows less than that is told everything.
    - `contacts`: when each broker was heard last, that with a session and that which has yet to get one.
    - `due`: partitions to look at again at once: without a leader, or with a replica that shuts down.
    - `refused_requests`: the AlterPartition that was refused last; it dies with the process, as the connections do on
      which copies of it may still be on their way.
    - `settings_changed`: the controller started with other settings than the topics have that have none of their own.
    - `offline`: the partitions of each broker whose logs are damaged there, as far as it has said so to this process,
      and the number of that message. Such a replica is as good as one of a fenced broker.
    - `pending_answers`: answers that wait for the metadata log; `waiting_brokers`: brokers that wait for news.
    - `read`: up to where each broker has read the metadata log, as far as it has said so to this process.
    - `observers`: brokers that have read nothing but what this process has, as they asked it for news (as in KRaft).
    """

    settings: Settings = attrs.field(repr=False)
    cluster: str = ""
    offset: int = 0
    durable_offset: int = 0
    brokers: Brokers = attrs.field(factory=Map[BrokerId, BrokerMetadata])
    partitions: Map[TopicPartition, PartitionMetadata] = attrs.field(factory=Map[TopicPartition, PartitionMetadata])
    change_offsets: Map[Key, int] = attrs.field(factory=Map[Key, int])
    lives: tuple[MetadataPosition, ...] = ()
    whole_until: int = 0
    contacts: Map[BrokerId, Millis] = attrs.field(factory=Map[BrokerId, Millis])
    due: frozenset[TopicPartition] = frozenset()
    refused_requests: Map[TopicPartition, AlterPartitionRequest] = attrs.field(
        factory=Map[TopicPartition, AlterPartitionRequest]
    )
    settings_changed: bool = False
    offline: Map[BrokerId, tuple[int, frozenset[TopicPartition]]] = attrs.field(
        factory=Map[BrokerId, tuple[int, frozenset[TopicPartition]]]
    )
    pending_answers: tuple[tuple[int, Send], ...] = ()
    waiting_brokers: Map[BrokerId, FetchMetadata] = attrs.field(factory=Map[BrokerId, FetchMetadata])
    read: Map[BrokerId, int] = attrs.field(factory=Map[BrokerId, int])
    observers: frozenset[BrokerId] = frozenset()
    next_balance: Millis = 0


@attrs.frozen
class ControllerStep:
    """The controller from now on, and what it asks for."""

    core: Controller
    effects: tuple[Effect, ...] = ()


def apply_records(controller: Controller, records: tuple[MetadataRecord, ...]) -> Controller:
    brokers, partitions, change_offsets = controller.brokers, controller.partitions, controller.change_offsets
    offset, whole_until, lives = controller.offset, controller.whole_until, controller.lives
    for record in records:
        offset += 1
        match record:
            case MetadataSnapshot():
                offset = whole_until = record.offset
                lives = record.lives
                brokers = Map({b.broker: b for b in record.brokers})
                partitions = Map({p.partition: p for p in record.partitions})
                keys: list[Key] = [*brokers, *partitions]
                change_offsets = Map(dict.fromkeys(keys, offset))
            case PartitionMetadata():
                if record.replicas:
                    partitions = partitions.set(record.partition, record)
                elif record.partition in partitions:
                    partitions = partitions.delete(record.partition)
                change_offsets = change_offsets.set(record.partition, offset)
            case BrokerMetadata():
                if record.epoch >= 0:
                    brokers = brokers.set(record.broker, record)
                elif record.broker in brokers:
                    brokers = brokers.delete(record.broker)
                change_offsets = change_offsets.set(record.broker, offset)
            case ControllerLife():
                lives = (*lives, MetadataPosition(offset, record.life))
    return attrs.evolve(
        controller,
        brokers=brokers,
        partitions=partitions,
        change_offsets=change_offsets,
        offset=offset,
        whole_until=whole_until,
        lives=lives,
    )


def brokers_for(controller: Controller, tp: TopicPartition) -> Brokers:
    """The brokers as a partition has them: one whose log of it is damaged counts as fenced."""
    brokers = controller.brokers
    for broker, (_, offline) in controller.offline.items():
        if tp in offline and broker in brokers:
            brokers = brokers.set(broker, attrs.evolve(brokers[broker], fenced=True))
    return brokers


def end_of_log(controller: Controller) -> MetadataPosition:
    """The end of the metadata log."""
    return MetadataPosition(controller.offset, _life_at(controller, controller.offset))


def _life_at(controller: Controller, offset: int) -> int:
    """Which life of the controller has written the record at an offset; 0 where nobody has noted that."""
    return next((life.life for life in reversed(controller.lives) if life.offset <= offset), 0)


def has(controller: Controller, position: MetadataPosition) -> bool:
    """The metadata log has all that somebody has read up to a position; else it has lost records, or is another's."""
    if position.offset == 0:
        return True
    return position.offset <= controller.offset and _life_at(controller, position.offset) == position.life


def is_observer(controller: Controller, broker: BrokerMetadata) -> bool:
    """Whether all that a broker has read is known to be in this log.

    One that this process has registered was asked then; of another a heartbeat says an offset, and not in which log.
    """
    begins = controller.lives[-1].offset if controller.lives else -1
    return broker.epoch > begins or broker.broker in controller.observers


def snapshot(controller: Controller) -> MetadataSnapshot:
    """What may stand in the place of all its records."""
    return MetadataSnapshot(
        offset=controller.offset,
        brokers=tuple(b for _, b in sorted(controller.brokers.items())),
        partitions=tuple(p for _, p in sorted(controller.partitions.items())),
        lives=controller.lives,
    )


def forgets(controller: Controller) -> Controller:
    """The log begins with a snapshot: nobody needs to know any longer what was removed before it."""
    there = {
        key: at
        for key, at in controller.change_offsets.items()
        if key in controller.brokers or key in controller.partitions
    }
    return attrs.evolve(controller, change_offsets=Map(there), whole_until=controller.offset)


def decides(
    controller: Controller,
    records: Iterable[MetadataRecord],
    changes: Iterable[Change] = (),
    answers: Iterable[Send] = (),
) -> ControllerStep:
    """Write records and the partitions of changes, note the actions, and answer when all of it is durable."""
    notes: list[Effect] = []
    new_records: list[MetadataRecord] = list(records)
    due = set(controller.due)
    for change in changes:
        tp = change.partition.partition
        notes.append(Took(action=change.action, partition=tp, replica=change.replica))
        if change.partition != controller.partitions.get(tp):
            new_records.append(change.partition)
        if change.partition.leader is None:
            due.add(tp)
    controller = apply_records(attrs.evolve(controller, due=frozenset(due)), tuple(new_records))
    if new_records:
        notes.append(AppendMetadata(offset=controller.offset, records=tuple(new_records)))
    held = (*controller.pending_answers, *((controller.offset, answer) for answer in answers))
    step = release_answers(attrs.evolve(controller, pending_answers=held))
    return ControllerStep(step.core, (*notes, *step.effects))


def release_answers(controller: Controller) -> ControllerStep:
    """What may be said by now: answers whose records are durable, and news to brokers that wait for some."""
    effects: list[Effect] = [
        answer for offset, answer in controller.pending_answers if offset <= controller.durable_offset
    ]
    controller = attrs.evolve(
        controller, pending_answers=tuple(h for h in controller.pending_answers if h[0] > controller.durable_offset)
    )
    if controller.durable_offset < controller.offset:
        return ControllerStep(controller, tuple(effects))
    for source, request in sorted(controller.waiting_brokers.items()):
        if request.offset < controller.offset:
            effects.append(Send(source, news_since(controller, request.offset)))
            controller = attrs.evolve(controller, waiting_brokers=controller.waiting_brokers.delete(source))
    return ControllerStep(controller, tuple(effects))


def news_since(controller: Controller, since: int) -> Metadata:
    """Everything that changed after an offset, as it is now; or everything there is."""
    whole = since < controller.whole_until
    new = [key for key, offset in controller.change_offsets.items() if whole or offset > since]
    return Metadata(
        since=since,
        offset=controller.offset,
        whole=whole,
        life=end_of_log(controller).life,
        brokers=tuple(
            controller.brokers.get(b) or unregistration(b)
            for b in sorted(k for k in new if not isinstance(k, TopicPartition))
        ),
        partitions=tuple(
            controller.partitions.get(tp) or removed_partition(tp)
            for tp in sorted(k for k in new if isinstance(k, TopicPartition))
        ),
    )


def answers(controller: Controller, to: BrokerId, message: FromController) -> ControllerStep:
    return decides(controller, (), (), (Send(to, message),))


def with_settings(
    controller: Controller, partition: PartitionMetadata, configs: Mapping[str, str] | None = None
) -> PartitionMetadata:
    """A partition with what its topic's settings and the controller's come to; `configs`: the topic's from now on.

    Where min.insync.replicas is set anew, it is a new version of the partition, since KIP-966. ELR and last known
    leader were chosen by the old number. They go where the ISR is at the new one, for then the leader commits without
    them; else nothing commits, and they stay. Kafka clears them in any case, by a ClearElrRecord in the batch of the
    setting (ConfigurationControlManager.createClearElrRecordsAsNeeded, ReplicationControlManager.removeTopicElrs).
    There it is a new version only where there was something to clear. Here it always is, for an AlterPartition from
    before must not be decided by the new number while its leader goes by the old. Model: controller_sets_minimum in
    kafka-4.4-mended.
    """
    own = dict(partition.configs) if configs is None else configs
    new = attrs.evolve(
        partition,
        configs=tuple(sorted(own.items())),
        min_insync_replicas=topic_configs.minimum(own, controller.settings),
        unclean_leader_election=topic_configs.unclean(own, controller.settings),
    )
    same = (partition.min_insync_replicas, dict(partition.configs).get(topic_configs.MIN_ISR)) == (
        new.min_insync_replicas,
        own.get(topic_configs.MIN_ISR),
    )
    design = controller.settings.insync_design
    if same or not design.eligible_leader_replicas or design.keeps_elr_at_new_minimum:
        return new
    new = attrs.evolve(new, partition_epoch=partition.partition_epoch + 1)
    below = len(new.isr) < new.effective_min_isr
    return new if below else attrs.evolve(new, elr=frozenset[BrokerId](), last_known_leader=None)
