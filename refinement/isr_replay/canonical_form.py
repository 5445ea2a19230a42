"""The canonical form of cores: clocks, growing counters and unused copies are set to fixed values.

The model has none of these. With them a core would have infinitely many states; the replay needs finitely many. A core
is replaced by one that behaves the same in every comparison with the model. What is set here, and why it may be set:

- Times. Every stored time becomes NOW. Which timer fires first is the environment's choice: before a `Tick` the driver
  moves the time in question back (`with_session_expired` and others). Whether a follower ever caught up is kept.
- Broker epochs. They are numbered as in the model, by how often the broker registered before. Epochs are compared only
  between lives of one broker, so their order stays. The metadata log ends at offset WRITTEN after every step; a broker
  that has learned metadata has read it up to READ.
- Attempts of AlterPartition. Only one request is in flight, so the last attempt is the only one. The controller reads
  the broker epochs in it of joining members only.
- Copies of metadata. A replica reads leader and leader epoch in its copy. That of a leader has its replicas and their
  minimum, too, which stand in the leader's role in another form. A node reads its copies in two cases: when a log is
  opened, right after the metadata was learned again; and to refuse fetches of an earlier life, of which none is in
  flight here.
"""

from __future__ import annotations

from typing import Final

import attrs
from immutables import Map

from isr_broker.core import replica as replicas
from isr_broker.core.controller_state import Controller, Key
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    BrokerMetadata,
    FetchMetadata,
    Millis,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.node import Node
from isr_broker.core.replica_state import Follower, Following, Leading, PendingIsr, Replica, Waiting
from isr_replay.system_state import FAR, NOW, TP

READ: Final = 50
"""The offset up to which a broker that has learned metadata has read the metadata log."""
METADATA_END: Final = 100
"""The end of the metadata log."""


# The controller.


def controller(core: Controller) -> Controller:
    """The canonical form of the controller: everything is written, and every session has just been renewed."""
    keys: list[Key] = [*core.brokers, *core.partitions]
    partitions = Map({tp: attrs.evolve(p, replicas=tuple(sorted(p.replicas))) for tp, p in core.partitions.items()})
    return attrs.evolve(
        core,
        offset=METADATA_END,
        durable_offset=METADATA_END,
        change_offsets=Map(dict.fromkeys(keys, METADATA_END)),
        partitions=partitions,
        contacts=Map({broker: NOW for broker in core.contacts}),
        refused_requests=Map[TopicPartition, AlterPartitionRequest](),
        waiting_brokers=Map[BrokerId, FetchMetadata](),
        read=Map[BrokerId, int](),
        observers=frozenset(),
        next_balance=FAR,
    )


def with_session_expired(core: Controller, broker: BrokerId) -> Controller:
    """The controller's core, in which the session of this broker is over at the next tick, and no other."""
    if broker not in core.contacts:
        return core
    return attrs.evolve(core, contacts=core.contacts.set(broker, NOW - core.settings.broker_session_timeout_ms))


def with_nobody_behind(core: Controller) -> Controller:
    """The controller's core, to which no broker has said that it has read less than there is."""
    return attrs.evolve(core, read=Map[BrokerId, int]())


def with_first_assigned(core: Controller, broker: BrokerId) -> Controller:
    """The controller's core with this broker first in the assignment.

    The environment chooses that anew at each step.
    """
    return with_order(core, (broker,))


def with_order(core: Controller, first: tuple[BrokerId, ...]) -> Controller:
    """The controller's core with these brokers first in the assignment, as far as they have a replica."""
    partition = core.partitions[TP]
    order = (*(r for r in first if r in partition.replicas), *(r for r in partition.replicas if r not in first))
    return attrs.evolve(core, partitions=core.partitions.set(TP, attrs.evolve(partition, replicas=order)))


def with_next_broker_epoch(core: Controller, broker: BrokerId) -> Controller:
    """The controller's core with the end of its metadata log set, so that a registration gives the next broker
    epoch."""
    known = core.brokers.get(broker)
    end = known.epoch if known is not None else -1
    return attrs.evolve(core, offset=end, durable_offset=end)


# A broker.


def node(core: Node) -> Node:
    """The canonical form of a broker: no timer of its own, and its replica woken when the replica asks for it."""
    held_replicas, wake = core.replicas, Map[TopicPartition, Millis]()
    replica = held_replicas.get(TP)
    if replica is not None:
        replica = _replica(replica)
        held_replicas = held_replicas.set(TP, replica)
        at = replicas.deadline(replica)
        wake = wake.set(TP, at) if at is not None else wake
    return attrs.evolve(
        core,
        start=attrs.evolve(core.start, incarnation=core.broker_epoch) if core.start else None,
        fenced=False,
        metadata_offset=READ if core.metadata_offset > 0 else 0,
        brokers=Map[BrokerId, BrokerMetadata](),
        partitions=Map[TopicPartition, PartitionMetadata](),
        replicas=held_replicas,
        wake=wake,
        next_call=FAR,
        next_poll=FAR,
        next_checkpoint=FAR,
    )


def _replica(core: Replica) -> Replica:
    metadata, leads = core.metadata, isinstance(core.role, Leading)
    if metadata is not None:
        metadata = PartitionMetadata(
            partition=metadata.partition,
            replicas=tuple(sorted(metadata.replicas)) if leads else (),
            isr=frozenset(),
            leader=metadata.leader,
            leader_epoch=metadata.leader_epoch,
            min_insync_replicas=metadata.min_insync_replicas if leads else 1,
        )
    return attrs.evolve(
        core,
        metadata=metadata,
        partition_epoch=core.partition_epoch if leads else 0,
        log=attrs.evolve(core.log, flushed=0),
        role=_role(core.role),
    )


def _role(role: Leading | Following | None) -> Leading | Following | None:
    match role:
        case Leading():
            return attrs.evolve(
                role,
                followers=Map({b: _follower(f) for b, f in role.followers.items()}),
                next_lag_check=FAR,
                pending=_pending(role.pending, role.isr),
                attempts=0,
                waiting=tuple(_waiting(w) for w in role.waiting),
            )
        case Following():
            return attrs.evolve(role, sent_at=NOW if role.fetch else 0, retry_at=NOW)
        case None:
            return None


def _follower(follower: Follower) -> Follower:
    if follower.caught_up_at is not None:
        return attrs.evolve(follower, caught_up_at=NOW, fetched_at=NOW, leader_end_then=0)
    return attrs.evolve(follower, fetched_at=NOW)


def _pending(pending: PendingIsr | None, isr: frozenset[BrokerId]) -> PendingIsr | None:
    if pending is None:
        return None
    return attrs.evolve(pending, request=canonical_alter(pending.request, isr), sent_at=NOW)


def canonical_alter(request: AlterPartitionRequest, isr: frozenset[BrokerId]) -> AlterPartitionRequest:
    """An AlterPartition in which only members outside the ISR have a broker epoch."""
    members = tuple((member, -1 if member in isr else seen) for member, seen in request.isr)
    return attrs.evolve(request, isr=members, attempt=1)


def _waiting(waiting: Waiting) -> Waiting:
    return attrs.evolve(waiting, deadline=FAR)


def with_role(core: Node, role: Leading | Following) -> Node:
    """The node with another role of its replica, and the wake-up time that the role asks for."""
    replica = attrs.evolve(core.replicas[TP], role=role)
    at = replicas.deadline(replica)
    wake = core.wake.set(TP, at) if at is not None else core.wake
    return attrs.evolve(core, replicas=core.replicas.set(TP, replica), wake=wake)


def with_lagging_followers(core: Node, lagging: frozenset[BrokerId]) -> Node:
    """A leader that checks for lag at its next tick, and finds these followers caught up too long ago, or never."""
    replica = core.replicas[TP]
    role = replica.role
    assert isinstance(role, Leading)
    old = NOW - replica.settings.replica_lag_time_max_ms - 1
    followers = role.followers
    for broker in lagging:
        followers = followers.set(broker, attrs.evolve(followers[broker], caught_up_at=old))
    return with_role(core, attrs.evolve(role, followers=followers, next_lag_check=NOW))


def with_fetch_timed_out(core: Node) -> Node:
    """A follower whose fetch times out at the next tick."""
    role = core.replicas[TP].role
    assert isinstance(role, Following)
    patience = core.settings.replica_socket_timeout_ms + core.settings.replica_fetch_wait_max_ms
    return with_role(core, attrs.evolve(role, sent_at=NOW - patience, retry_at=NOW))


def with_heartbeat_due(core: Node) -> Node:
    """A broker that sends a heartbeat at its next tick."""
    return attrs.evolve(core, next_call=NOW)
