"""What an admin asks of the controller about topics: to create, extend, configure and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from immutables import Map

from isr_broker import topic_configs
from isr_broker.core.controller_state import Controller, ControllerStep, answers, decides, with_settings
from isr_broker.core.effects import Send
from isr_broker.core.elections import available
from isr_broker.core.messages import (
    AdminAnswer,
    AlterTopicConfigs,
    BrokerId,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Error,
    PartitionMetadata,
    TopicPartition,
    removed_partition,
)
from isr_broker.core.reassignments import target_replicas
from isr_broker.core.topics import may_be_called

_ALIKE: Final = frozenset("._")

MOST_PARTITIONS: Final = 10_000
"""In one request, as in Kafka (ReplicationControlManager.MAX_RECORDS_PER_BATCH)."""


def creates_topic(controller: Controller, source: BrokerId, request: CreateTopic) -> ControllerStep:
    """A topic is created; its replicas are placed on registered brokers, those with a session first (createTopics)."""
    settings = controller.settings
    copies = request.replication_factor if request.replication_factor != -1 else settings.default_replication_factor
    error = Error.NONE
    if _partitions_of(controller, request.topic):
        error = Error.TOPIC_ALREADY_EXISTS
    elif not may_be_called(request.topic) or _collides(controller, request.topic):
        error = Error.INVALID_TOPIC_EXCEPTION
    elif not _all_assignable(controller, request.assignments):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    elif (len(request.assignments) or request.partitions) > MOST_PARTITIONS:
        error = Error.POLICY_VIOLATION
    elif not request.assignments and request.partitions < 1:
        error = Error.INVALID_PARTITIONS
    elif not request.assignments and not _placeable(controller, copies):
        error = Error.INVALID_REPLICATION_FACTOR
    if error is not Error.NONE:
        return answers(controller, source, AdminAnswer(request=request.request, error=error))
    answer = AdminAnswer(
        request=request.request,
        partitions=len(request.assignments) or request.partitions,
        replication_factor=len(request.assignments[0]) if request.assignments else copies,
    )
    if request.only_asks:
        return answers(controller, source, answer)
    configs = dict(request.configs)
    if request.min_insync_replicas is not None:
        configs[topic_configs.MIN_ISR] = str(request.min_insync_replicas)
    if request.unclean_leader_election is not None:
        configs[topic_configs.UNCLEAN] = str(request.unclean_leader_election).lower()
    topic_id = request.topic_id or controller.offset + 1
    answer = attrs.evolve(answer, topic_id=topic_id)
    replicas = request.assignments or _place_replicas(controller, request.partitions, copies)
    return decides(
        controller,
        _new_partitions(controller, request.topic, topic_id, 0, replicas, configs),
        (),
        (Send(source, answer),),
    )


def _partitions_of(controller: Controller, topic: str) -> list[PartitionMetadata]:
    """The partitions of a topic, in their order: they have the numbers from 0 on."""
    partitions: list[PartitionMetadata] = []
    while (partition := controller.partitions.get(TopicPartition(topic, len(partitions)))) is not None:
        partitions.append(partition)
    return partitions


def _collides(controller: Controller, topic: str) -> bool:
    """Another topic's name differs only in dots and underscores, so metrics could not tell them apart (Topic)."""
    if not _ALIKE & set(topic):
        return False
    return _as_metric(topic) in {_as_metric(tp.topic) for tp in controller.partitions if tp.partition == 0}


def _as_metric(topic: str) -> str:
    return topic.replace(".", "_")


def _new_partitions(
    controller: Controller,
    topic: str,
    topic_id: int,
    first: int,
    placement: Sequence[tuple[BrokerId, ...]],
    configs: Mapping[str, str],
) -> list[PartitionMetadata]:
    """Partitions from number `first` on. Replicas whose broker has no session are not in the ISR from the beginning."""
    records: list[PartitionMetadata] = []
    for number, replicas in enumerate(placement, first):
        there = [r for r in replicas if available(controller.brokers, r)]
        records.append(
            PartitionMetadata(
                partition=TopicPartition(topic, number),
                replicas=replicas,
                isr=frozenset(there),
                leader=there[0],
                min_insync_replicas=topic_configs.minimum(configs, controller.settings),
                unclean_leader_election=topic_configs.unclean(configs, controller.settings),
                topic_id=topic_id,
                configs=tuple(sorted(configs.items())),
            )
        )
    return records


def _all_assignable(controller: Controller, assignments: Sequence[tuple[BrokerId, ...]]) -> bool:
    """Each is assignable, and all have as many replicas (validateManualPartitionAssignment)."""
    return len({len(r) for r in assignments}) <= 1 and all(_assignable(controller, r) for r in assignments)


def _assignable(controller: Controller, replicas: tuple[BrokerId, ...]) -> bool:
    """Nobody twice, all of them registered, and one of them with a session."""
    there = any(available(controller.brokers, r) for r in replicas)
    return there and len(replicas) == len(set(replicas)) and all(r in controller.brokers for r in replicas)


def _placeable(controller: Controller, copies: int) -> bool:
    """There are so many registered brokers, and one of them has a session (StripedReplicaPlacer)."""
    return 1 <= copies <= len(controller.brokers) and any(available(controller.brokers, b) for b in controller.brokers)


def _place_replicas(controller: Controller, partitions: int, copies: int) -> list[tuple[BrokerId, ...]]:
    """The replicas of new partitions; brokers without a session come last, and only where there are too few others."""
    there = sorted(b for b in controller.brokers if available(controller.brokers, b))
    away = sorted(b for b in controller.brokers if b not in there)
    chosen = place_replicas(there, partitions, min(copies, len(there)), len(controller.partitions))
    more = copies - min(copies, len(there))
    return [(*replicas, *(away[(n + i) % len(away)] for i in range(more))) for n, replicas in enumerate(chosen)]


def creates_partitions(controller: Controller, source: BrokerId, request: CreatePartitions) -> ControllerStep:
    """A topic gets more partitions, with as many replicas as its first has, or is to have (createPartitions)."""
    old = _partitions_of(controller, request.topic)
    copies = len(target_replicas(old[0])) if old else 0
    more, error = request.count - len(old), Error.NONE
    if not old:
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    elif more < 1 or more > MOST_PARTITIONS:
        error = Error.INVALID_PARTITIONS
    elif request.assignments and (
        len(request.assignments) != more
        or not all(_assignable(controller, r) and len(r) == copies for r in request.assignments)
    ):
        error = Error.INVALID_REPLICA_ASSIGNMENT
    elif not request.assignments and not _placeable(controller, copies):
        error = Error.INVALID_REPLICATION_FACTOR
    answer = AdminAnswer(request=request.request, error=error)
    if error is not Error.NONE or request.only_asks:
        return answers(controller, source, answer)
    replicas = request.assignments or _place_replicas(controller, more, copies)
    records = _new_partitions(controller, request.topic, old[0].topic_id, len(old), replicas, dict(old[0].configs))
    return decides(controller, records, (), (Send(source, answer),))


def alters_configs(controller: Controller, source: BrokerId, request: AlterTopicConfigs) -> ControllerStep:
    """Settings of a topic change, with what follows from them, in one batch.

    Where unclean election is allowed now, partitions without a leader may get one.
    """
    old = _partitions_of(controller, request.topic)
    error = Error.NONE if old else Error.UNKNOWN_TOPIC_OR_PARTITION
    answer = AdminAnswer(request=request.request, error=error)
    if not old or request.only_asks:
        return answers(controller, source, answer)
    configs = {} if request.replaces else dict(old[0].configs)
    for name, value in request.changes:
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value
    new = [with_settings(controller, p, configs) for p in old]
    leaderless = {p.partition for p in new if p.leader is None}
    controller = attrs.evolve(controller, due=controller.due | leaderless)
    return decides(controller, [p for p, q in zip(new, old, strict=True) if p != q], (), (Send(source, answer),))


def deletes_topic(controller: Controller, source: BrokerId, request: DeleteTopic) -> ControllerStep:
    """A topic is no more, and its brokers remove the logs (deleteTopics)."""
    deleted_partitions = [p.partition for p in _partitions_of(controller, request.topic)]
    error = Error.NONE if deleted_partitions else Error.UNKNOWN_TOPIC_OR_PARTITION
    refused_requests = controller.refused_requests
    if not controller.settings.insync_design.refusals_outlive_topics:
        # A topic of the same name begins with the same epochs, and its first request would count as an overtaken copy.
        deleted = set(deleted_partitions)
        refused_requests = Map({tp: request for tp, request in refused_requests.items() if tp not in deleted})
    controller = attrs.evolve(
        controller, due=controller.due - set(deleted_partitions), refused_requests=refused_requests
    )
    return decides(
        controller,
        map(removed_partition, deleted_partitions),
        (),
        (Send(source, AdminAnswer(request=request.request, error=error)),),
    )


def place_replicas(brokers: Sequence[BrokerId], partitions: int, copies: int, start: int) -> list[tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first; `start` says with whom to begin.

    The followers of one broker's partitions are spread over the others (StripedReplicaPlacer, without racks).
    """
    count = len(brokers)
    assert 1 <= copies <= count
    placement: list[tuple[BrokerId, ...]] = []
    for partition in range(start, start + partitions):
        shift = (partition // count) % max(1, count - 1)
        leader = partition % count
        followers = [(leader + 1 + (shift + i) % max(1, count - 1)) % count for i in range(copies - 1)]
        placement.append(tuple(brokers[b] for b in (leader, *followers)))
    return placement
