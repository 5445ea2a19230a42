"""Who leads, beside an error that says that somebody else does: the client need not ask for metadata (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isr_broker.core.messages import BrokerId, Error, TopicPartition
from isr_broker.core.node import Node
from isr_broker.wire.protocol import Answer, number_of

PRODUCE_ERRORS: Final = frozenset({Error.NOT_LEADER_OR_FOLLOWER.value})
FETCH_ERRORS: Final = frozenset({Error.NOT_LEADER_OR_FOLLOWER.value, Error.FENCED_LEADER_EPOCH.value})
"""The errors beside which KafkaApis names the leader."""

SINCE_PRODUCE: Final = 10
SINCE_FETCH: Final = 16


def leader_hint(node: Node, tp: TopicPartition) -> Answer:
    """The leader and its epoch as this replica has them, else as the metadata do; -1 where nobody is known."""
    replica, metadata = node.replicas.get(tp), node.partitions.get(tp)
    known = (replica.metadata if replica is not None else None) or metadata
    if known is None:
        return {"leader_id": -1, "leader_epoch": -1}
    return {"leader_id": number_of(known.leader), "leader_epoch": known.leader_epoch}


def endpoints(node: Node, leaders: Iterable[BrokerId]) -> list[Answer]:
    """Where those are who have a session."""
    brokers = (node.brokers.get(leader) for leader in sorted(set(leaders)))
    return [
        {"node_id": b.broker, "host": b.host, "port": b.port, "rack": b.rack or None}
        for b in brokers
        if b is not None and not b.fenced
    ]
