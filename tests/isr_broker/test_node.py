"""What a node tells its replicas, and when."""

from __future__ import annotations

import attrs

from isr_broker.core import node as nodes
from isr_broker.core.effects import AssignEpoch
from isr_broker.core.inputs import EpochAssigned, LogOpened, Received, Start, Tick
from isr_broker.core.log_view import Epochs, EpochStart, LogView
from isr_broker.core.messages import (
    BrokerMetadata,
    BrokerRegistered,
    Metadata,
    PartitionMetadata,
    TopicPartition,
)
from isr_broker.core.replica_state import Leading
from isr_broker.settings import Settings

TP = TopicPartition("t", 0)


def test_a_replica_that_waits_for_its_disk_to_lead_hears_who_has_a_session_again() -> None:
    """Else it would keep a follower out of the ISR that got its session just then, until something else changes."""
    first, second, third = (BrokerMetadata(broker=b, epoch=b, fenced=b == 3) for b in (1, 2, 3))
    partition = PartitionMetadata(partition=TP, replicas=(1, 2, 3), isr=frozenset({1, 2}), leader=1, topic_id=4)
    node = nodes.handle(nodes.Node(me=1, settings=Settings()), Start(7), 0).core
    node = nodes.handle(node, Received(-1, BrokerRegistered(broker=1, incarnation=7, broker_epoch=1)), 0).core
    known = Metadata(since=0, offset=4, brokers=(first, second, third), partitions=(partition,))
    node = nodes.handle(node, Received(-1, known), 0).core
    step = nodes.handle(node, LogOpened(partition=TP, log=LogView(), topic_id=4), 0)
    (note,) = [e for e in step.effects if isinstance(e, AssignEpoch)]

    back = Metadata(since=4, offset=5, brokers=(attrs.evolve(third, fenced=False),))
    node = nodes.handle(step.core, Received(-1, back), 0).core
    assert not isinstance(node.replicas[TP].role, Leading), "it waits for its disk still"
    node = nodes.handle(
        node, EpochAssigned(partition=TP, log=LogView(epochs=Epochs((EpochStart(note.epoch, note.start),)))), 0
    ).core
    node = nodes.handle(node, Tick(), 0).core

    role = node.replicas[TP].role
    assert isinstance(role, Leading)
    assert role.ineligible == frozenset()
