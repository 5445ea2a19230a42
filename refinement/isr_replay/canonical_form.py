"""Cores without what no model has: clocks, counters that only grow, and what was learned of others and is not used.

A core is replaced by one that differs from it only in how numbers are chosen, so that finitely many are left. What is
set here, and why it may be:

- Times. Every stored time becomes NOW. Which timer fires first is the environment's choice: before a `Tick` the driver
  makes old whatever has to be old (`aged_...`). Whether a follower ever caught up in this epoch is kept.
- Broker epochs are those of the model: how often the broker registered before. They are compared only for one broker
  at a time. The metadata log ends at WRITTEN after every step; a broker that has learned metadata knows it up to READ.
- Attempts of AlterPartition: with one request in flight the last one is the only one. Of the incarnations in it the
  controller looks at those of who joins.
- Metadata that was handed on: a replica's copy of it is read for leader and leader epoch only; a node's copies are read
  when a log is opened, right after they were learned again, and to refuse fetches of earlier incarnations, of which
  none is in flight here.
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
WRITTEN: Final = 100


# The controller.


def controller(core: Controller) -> Controller:
    """The controller at rest: everything written, every session just renewed."""
    keys: list[Key] = [*core.brokers, *core.partitions]
    partitions = Map({tp: attrs.evolve(p, replicas=tuple(sorted(p.replicas))) for tp, p in core.partitions.items()})
    return attrs.evolve(
        core,
        offset=WRITTEN,
        written=WRITTEN,
        changed=Map(dict.fromkeys(keys, WRITTEN)),
        partitions=partitions,
        contacts=Map({broker: NOW for broker in core.contacts}),
        refused=Map[TopicPartition, AlterPartitionRequest](),
        parked=Map[BrokerId, FetchMetadata](),
        next_balance=FAR,
    )


def aged_session(core: Controller, broker: BrokerId) -> Controller:
    """Nothing was heard of this broker for as long as its session lasts; of all others something was."""
    if broker not in core.contacts:
        return core
    return attrs.evolve(core, contacts=core.contacts.set(broker, NOW - core.settings.broker_session_timeout_ms))


def assigned_first(core: Controller, broker: BrokerId) -> Controller:
    """The broker comes first in the order of assignment, which is the environment's choice at each step."""
    partition = core.partitions[TP]
    order = (broker, *(r for r in partition.replicas if r != broker))
    return attrs.evolve(core, partitions=core.partitions.set(TP, attrs.evolve(partition, replicas=order)))


def before_registration(core: Controller, broker: BrokerId) -> Controller:
    """The metadata log ends where the next record gives the broker its next broker epoch."""
    known = core.brokers.get(broker)
    end = known.epoch if known is not None else -1
    return attrs.evolve(core, offset=end, written=end)


# A broker.


def node(core: Node) -> Node:
    """The node at rest: nothing to do for itself, its replica to be woken when that wants it."""
    held, wake = core.held, Map[TopicPartition, Millis]()
    replica = held.get(TP)
    if replica is not None:
        replica = _replica(replica)
        held = held.set(TP, replica)
        at = replicas.deadline(replica)
        wake = wake.set(TP, at) if at is not None else wake
    return attrs.evolve(
        core,
        start=attrs.evolve(core.start, incarnation=core.broker_epoch) if core.start else None,
        fenced=False,
        metadata_offset=READ if core.metadata_offset > 0 else 0,
        brokers=Map[BrokerId, BrokerMetadata](),
        partitions=Map[TopicPartition, PartitionMetadata](),
        held=held,
        wake=wake,
        next_call=FAR,
        next_poll=FAR,
        next_checkpoint=FAR,
    )


def _replica(core: Replica) -> Replica:
    metadata = core.metadata
    if metadata is not None:
        metadata = PartitionMetadata(
            partition=metadata.partition,
            replicas=tuple(sorted(metadata.replicas)),
            isr=frozenset(),
            leader=metadata.leader,
            leader_epoch=metadata.leader_epoch,
        )
    leads = isinstance(core.role, Leading)
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


def _follower(known: Follower) -> Follower:
    if known.caught_up_at is not None:
        return attrs.evolve(known, caught_up_at=NOW, fetched_at=NOW, leader_end_then=0)
    return attrs.evolve(known, fetched_at=NOW)


def _pending(pending: PendingIsr | None, isr: frozenset[BrokerId]) -> PendingIsr | None:
    if pending is None:
        return None
    return attrs.evolve(pending, request=proposal(pending.request, isr), sent_at=NOW)


def proposal(request: AlterPartitionRequest, isr: frozenset[BrokerId]) -> AlterPartitionRequest:
    """An AlterPartition, of whose members only those outside the ISR come with the incarnation that was seen."""
    members = tuple((member, -1 if member in isr else seen) for member, seen in request.isr)
    return attrs.evolve(request, isr=members, attempt=1)


def _waiting(waiting: Waiting) -> Waiting:
    return attrs.evolve(waiting, deadline=FAR)


def with_role(core: Node, role: Leading | Following) -> Node:
    """The node with its replica's part changed, and woken when the replica then wants it."""
    replica = attrs.evolve(core.held[TP], role=role)
    at = replicas.deadline(replica)
    wake = core.wake.set(TP, at) if at is not None else core.wake
    return attrs.evolve(core, held=core.held.set(TP, replica), wake=wake)


def aged_followers(core: Node, lagging: frozenset[BrokerId]) -> Node:
    """It is time to look for members that lag, and these were at the log end too long ago, if they ever were."""
    replica = core.held[TP]
    role = replica.role
    assert isinstance(role, Leading)
    old = NOW - replica.settings.replica_lag_time_max_ms - 1
    followers = role.followers
    for broker in lagging:
        followers = followers.set(broker, attrs.evolve(followers[broker], caught_up_at=old))
    return with_role(core, attrs.evolve(role, followers=followers, next_lag_check=NOW))


def aged_fetch(core: Node) -> Node:
    """The follower has waited for an answer as long as it ever will."""
    role = core.held[TP].role
    assert isinstance(role, Following)
    patience = core.settings.replica_socket_timeout_ms + core.settings.replica_fetch_wait_max_ms
    return with_role(core, attrs.evolve(role, sent_at=NOW - patience, retry_at=NOW))


def calling(core: Node) -> Node:
    """It is time for a heartbeat."""
    return attrs.evolve(core, next_call=NOW)
