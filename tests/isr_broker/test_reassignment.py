"""Reassignment as the controller decides it, and as brokers carry it out: who is replica, member and leader, and when.

Without these a broker whose log was deleted could be elected, as in Kafka (found/removed-replica), a partition could
wait for ever for who is not coming back, or a log could be deleted on whose records somebody counts.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import cast
from unittest.mock import Mock

import attrs
import pytest
from tests.isr_broker.test_controller import TP, Quorum
from tests.isr_broker.test_wire import asked, one_broker
from tests.support import clients
from tests.support.brokers import fetch, leader_of, metadata, produce, tell
from tests.support.clients import Confluent, confluent_read
from tests.support.clusters import QUICK as QUICK_BROKERS

from isr_broker.core import node as nodes
from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import CONTROLLER, AnswerFetch, AppendMetadata, DeleteLog, OpenLog, Send, SetAside
from isr_broker.core.inputs import LearnMetadata, LogOpened, Received, Start, Tick
from isr_broker.core.log_view import LogView
from isr_broker.core.message_json import record_line, record_of
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    BrokerId,
    BrokerRegistered,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Error,
    ListReassignments,
    Metadata,
    PartitionMetadata,
    Reassignments,
    ReassignPartition,
    RegisterBroker,
    TopicPartition,
    UnregisterBroker,
)
from isr_broker.core.reassignments import PAGE, is_under_way
from isr_broker.core.replica_state import Step, leading
from isr_broker.designs import KIP_966, KRAFT_3_5, Design
from isr_broker.environment import Outside
from isr_broker.runtime import ClientRequest
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import Everything
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer
from isr_broker.wire.requests import Requests
from isr_cluster.admin import Admin
from isr_cluster.ports import HOST, free_ports
from isr_cluster.processes import Processes
from isr_sim.host import Host
from isr_sim.simulate import QUICK
from isr_sim.world import FAIR, Reply, Watcher, World

Replicas = tuple[BrokerId, ...]
COMPLETES_BELOW = attrs.evolve(KIP_966, completes_below_minimum=True)
"""Kafka's rule of when a reassignment is complete."""
KEEPS_REMOVED = attrs.evolve(COMPLETES_BELOW, keeps_removed_in_elr=True)
"""Kafka's code in these two places."""


class Moving(Quorum):
    """A controller, brokers 1 to 6, and a partition on some of them."""

    def __init__(self, *replicas: BrokerId, minimum: int = 2, **settings: bool | int | Design) -> None:
        base = Settings(min_insync_replicas=minimum)
        self.core = controller_from_records(attrs.evolve(base, **settings), [], 0)  # type: ignore[arg-type]
        self.effects, self.records, self.now = [], [], 0
        for broker in range(1, 7):
            self.starts(broker)
        self.hear(CreateTopic(request=0, topic="t", assignments=(replicas or (1, 2, 3),)))

    def loses(self, *brokers: BrokerId) -> list[str]:
        self.now += 9_000
        for broker in set(self.core.brokers) - set(brokers):
            if not self.core.brokers[broker].fenced:
                self.beats(broker)
        for _ in brokers:
            self.tell(Tick())
        return []

    def moves(self, *target: BrokerId, other_factor: bool = True) -> Error:
        return self.asks_for(target, other_factor)

    def cancels(self) -> Error:
        return self.asks_for(None)

    def asks_for(self, target: Replicas | None, other_factor: bool = True, tp: TopicPartition = TP) -> Error:
        request = ReassignPartition(request=7, partition=tp, replicas=target, allows_other_factor=other_factor)
        (answer,) = self.hear(request)
        assert isinstance(answer, AdminAnswer)
        return answer.error

    @property
    def assignment(self) -> tuple[Replicas, Replicas, Replicas]:
        """Replicas, who is added, who is removed."""
        return self.partition.replicas, self.partition.adding_replicas, self.partition.removing_replicas

    @property
    def versions(self) -> tuple[int, int]:
        """Leader epoch and partition epoch."""
        return self.partition.leader_epoch, self.partition.partition_epoch


# To begin. ReplicationControlManagerTest.testReassignPartitions, testCancelReassignPartitions


def test_another_order_is_one_record_and_nothing_is_under_way() -> None:
    moving = Moving()
    assert moving.moves(3, 2, 1) is Error.NONE
    assert (moving.assignment, moving.versions) == (((3, 2, 1), (), ()), (0, 1))
    assert moving.moves(3, 2, 1) is Error.NONE
    assert moving.versions == (0, 1), "nothing changes"


def test_who_is_added_is_a_replica_at_once_and_who_is_removed_still() -> None:
    moving = Moving()
    assert moving.moves(4, 2, 1) is Error.NONE
    assert moving.actions() == ["controller_starts_reassignment"]
    assert moving.assignment == ((4, 2, 1, 3), (4,), (3,))
    assert (moving.summary, moving.versions) == ([1, [1, 2, 3], []], (0, 1))


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ((), Error.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 9), Error.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 2), Error.INVALID_REPLICA_ASSIGNMENT),
        ((-1, 2), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_no_assignment_is_refused(target: Replicas, error: Error) -> None:
    moving = Moving()
    before = moving.partition
    assert moving.moves(*target) is error
    assert moving.partition == before
    assert not [e for e in moving.effects if isinstance(e, AppendMetadata)]


def test_a_partition_that_is_not_there_has_no_reassignment() -> None:
    moving = Moving()
    for tp in (TopicPartition("t", 1), TopicPartition("u", 0)):
        for target in ((1, 2), None):
            assert moving.asks_for(target, tp=tp) is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_without_a_session_may_get_a_replica() -> None:
    moving = Moving()
    moving.loses(4)
    assert moving.moves(4, 2, 3) is Error.NONE
    assert moving.assignment == ((4, 2, 3, 1), (4,), (1,))


def test_another_number_of_replicas_is_refused_where_it_is_not_allowed() -> None:
    """KIP-860. While a reassignment is under way the number is that of its target."""
    moving = Moving()
    assert moving.moves(4, 2, other_factor=False) is Error.INVALID_REPLICATION_FACTOR
    assert moving.moves(1, 2, 3, 4, other_factor=False) is Error.INVALID_REPLICATION_FACTOR
    assert moving.moves(4, 5, 6, other_factor=False) is Error.NONE
    assert moving.moves(4, 5, 1, other_factor=False) is Error.NONE
    assert moving.moves(4, 5, 6, 1, other_factor=False) is Error.INVALID_REPLICATION_FACTOR
    assert moving.moves(4, 5, 6, 1) is Error.NONE


# To be complete. PartitionReassignmentReplicasTest, PartitionChangeBuilderTest


@pytest.mark.parametrize(
    ("first", "target", "isr", "replicas"),
    [
        ((1, 2, 3), (1, 2, 4), (1, 2, 3), None),
        ((1, 2, 3), (1, 2, 4), (1, 2, 3, 4), (1, 2, 4)),
        ((1, 2, 3), (1, 2, 4), (1, 4), (1, 2, 4)),  # 2 stays and is out of sync: it holds up nothing (KAFKA-19975)
        ((1, 2, 3), (4, 5, 6), (1, 2, 3, 4, 5), None),
        ((1, 2, 3), (4, 5, 6), (1, 4, 5, 6), (4, 5, 6)),
        ((1, 2, 3), (1, 2, 3, 4), (1, 4), (1, 2, 3, 4)),
        ((1, 2, 3, 4, 5), (3, 4, 5, 6), (1, 2, 6), None),  # fewer: all who stay have to be in sync (KAFKA-15665)
        ((1, 2, 3, 4, 5), (3, 4, 5, 6), (1, 3, 4, 5, 6), (3, 4, 5, 6)),
    ],
)
def test_when_a_proposal_completes_it(
    first: Replicas, target: Replicas, isr: Replicas, replicas: Replicas | None
) -> None:
    moving = Moving(*first)
    moving.loses(*(r for r in first if r not in isr and r != moving.partition.leader))
    moving.moves(*target)
    error = moving.alter(*isr)
    if replicas is None:
        assert (error, is_under_way(moving.partition)) == (Error.NONE, True)
        return
    assert moving.actions() == ["controller_accepts_and_completes"]
    assert moving.assignment == (replicas, (), ())
    assert moving.partition.isr == set(isr) & set(replicas)
    assert error is (Error.NONE if 1 in replicas else Error.NEW_LEADER_ELECTED)


def test_fewer_replicas_are_complete_in_the_same_record_if_all_of_them_are_in_sync() -> None:
    moving = Moving()
    moving.loses(3)
    assert moving.moves(1, 2) is Error.NONE
    assert moving.actions() == ["controller_reassigns_at_once"]
    assert (moving.assignment, moving.summary, moving.versions) == (((1, 2), (), ()), [1, [1, 2], []], (1, 2))


def test_fewer_replicas_wait_for_who_stays() -> None:
    moving = Moving()
    moving.loses(3)
    assert moving.moves(1, 3) is Error.NONE
    assert moving.assignment == ((1, 3, 2), (), (2,))
    moving.starts(3, incarnation=2)
    assert moving.alter(1, 2, 3) is Error.NONE
    assert not is_under_way(moving.partition)
    assert (moving.partition.replicas, moving.summary) == ((1, 3), [1, [1, 3], []])


@pytest.mark.parametrize(("design", "waits"), [(KIP_966, True), (COMPLETES_BELOW, False)], ids=["meant", "as Kafka"])
def test_it_waits_where_too_few_would_be_left_in_sync(design: Design, waits: bool) -> None:
    """3 and 4 stay and are down. Without 2 there would be one member, under a minimum of two (KAFKA-15665)."""
    moving = Moving(2, 3, 4, insync_design=design)
    moving.loses(3, 4)
    moving.moves(1, 3, 4)
    assert moving.alter(1, 2) is (Error.NONE if waits else Error.NEW_LEADER_ELECTED)
    assert is_under_way(moving.partition) is waits
    assert moving.partition.isr == ({1, 2} if waits else {1})
    if waits:
        moving.starts(3, incarnation=2)
        assert moving.alter(1, 2, 3) is Error.NEW_LEADER_ELECTED
        assert (moving.assignment, moving.partition.isr) == (((1, 3, 4), (), ()), frozenset({1, 3}))


def test_who_is_under_the_minimum_already_may_be_complete() -> None:
    """Nobody in sync goes: 2 is removed, and was out before."""
    moving = Moving(1, 2, 3)
    moving.loses(2, 3)
    assert moving.moves(1, 3) is Error.NONE
    assert is_under_way(moving.partition), "there will be fewer, so 3 has to be in sync"
    assert moving.moves(1, 3, 4) is Error.NONE
    assert moving.alter(1, 4) is Error.NONE
    assert (moving.assignment, moving.partition.isr) == (((1, 3, 4), (), ()), frozenset({1, 4}))


def test_one_more_replica_is_complete_in_the_same_leader_epoch() -> None:
    moving = Moving()
    moving.moves(1, 2, 3, 4)
    assert moving.alter(1, 2, 3, 4) is Error.NONE
    assert (moving.assignment, moving.versions) == (((1, 2, 3, 4), (), ()), (0, 2))


def test_a_leader_that_is_removed_hands_over_and_is_told() -> None:
    moving = Moving()
    moving.moves(2, 3, 4)
    assert moving.alter(1, 2, 3, 4) is Error.NEW_LEADER_ELECTED
    assert (moving.assignment, moving.summary, moving.versions) == (((2, 3, 4), (), ()), [2, [2, 3, 4], []], (1, 2))


def test_a_removed_leader_leads_no_more_even_if_nobody_else_can() -> None:
    """testStoppedLeaderIsDemotedAfterReassignmentCompletesEvenIfNoNewEligibleLeaders: here all who stay shut down."""
    moving = Moving(1, insync_design=attrs.evolve(KIP_966, keeps_out_fenced=False))
    moving.moves(2)
    brokers = moving.core.brokers
    moving.core = attrs.evolve(moving.core, brokers=brokers.set(2, attrs.evolve(brokers[2], shutting_down=True)))
    assert moving.alter(1, 2) is Error.NEW_LEADER_ELECTED
    assert (moving.assignment, moving.summary) == (((2,), (), ()), [None, [2], []])


# To cancel


def test_what_is_not_under_way_cannot_be_cancelled() -> None:
    assert Moving().cancels() is Error.NO_REASSIGNMENT_IN_PROGRESS


def test_who_was_added_is_neither_replica_nor_member_after_it_is_cancelled() -> None:
    moving = Moving()
    moving.moves(4, 5, 2)
    moving.alter(1, 2, 3, 4)
    assert moving.cancels() is Error.NONE
    assert moving.actions() == ["controller_cancels_reassignment"]
    assert (moving.assignment, moving.summary, moving.versions) == (((2, 1, 3), (), ()), [1, [1, 2, 3], []], (1, 3))
    assert moving.cancels() is Error.NO_REASSIGNMENT_IN_PROGRESS


def test_nobody_was_added_so_the_leader_epoch_stays() -> None:
    moving = Moving()
    moving.loses(3)
    moving.moves(1, 3)
    assert moving.cancels() is Error.NONE
    assert (moving.assignment, moving.versions) == (((1, 3, 2), (), ()), (0, 3))


def test_an_added_leader_hands_over_when_it_is_cancelled() -> None:
    moving = Moving(1, 2)
    moving.moves(3, 4)
    moving.alter(1, 2, 3)
    moving.loses(1)
    moving.loses(2)
    assert moving.summary == [3, [3], [2]]
    assert moving.cancels() is Error.INVALID_REPLICA_ASSIGNMENT, "all members were added"
    moving.starts(2, incarnation=2, previous=moving.core.brokers[2].epoch)
    moving.alter(2, 3)
    assert moving.cancels() is Error.NONE
    assert (moving.assignment, moving.summary) == (((1, 2), (), ()), [2, [2], []])


@pytest.mark.parametrize("design", [KIP_966, KRAFT_3_5])
def test_where_unclean_elections_are_allowed_the_added_members_may_go(design: Design) -> None:
    moving = Moving(1, 2, unclean_leader_election_enable=True, insync_design=design)
    moving.moves(3, 4)
    moving.alter(1, 2, 3)
    moving.loses(1)
    moving.loses(2)
    moving.starts(2, incarnation=2)
    assert moving.cancels() is Error.NONE
    moving.tell(Tick())
    assert (moving.assignment, moving.summary) == (((1, 2), (), ()), [2, [2], []])


# In place of another. testReassignPartitionsHandlesNewReassignmentThatRemovesPreviouslyAddingReplicas


def test_a_new_target_takes_the_place_of_the_old_one() -> None:
    moving = Moving(1, 2)
    moving.moves(3, 4)
    moving.alter(1, 2, 3)
    moving.moves(5, 6)
    assert moving.assignment == ((5, 6, 1, 2, 3, 4), (5, 6), (1, 2, 3, 4))
    moving.alter(1, 2, 3, 5)
    assert is_under_way(moving.partition)
    assert moving.alter(1, 2, 3, 5, 6) is Error.NEW_LEADER_ELECTED
    assert not is_under_way(moving.partition)
    assert (moving.partition.replicas, moving.summary) == ((5, 6), [5, [5, 6], []])


def test_the_old_replicas_as_a_new_target_are_complete_at_once() -> None:
    """In Kafka 4.3 this waits for ever, for who is added and removed at a time cannot be in sync."""
    moving = Moving()
    moving.moves(2, 3, 4)
    assert moving.moves(1, 2, 3) is Error.NONE
    assert (moving.assignment, moving.summary) == (((1, 2, 3), (), ()), [1, [1, 2, 3], []])


def test_who_was_to_be_removed_stays_if_the_new_target_has_it() -> None:
    """In Kafka 4.3 it is removed all the same."""
    moving = Moving()
    moving.moves(2, 3, 4)
    moving.moves(1, 2, 3, 4)
    assert moving.assignment == ((1, 2, 3, 4), (4,), ())


def test_to_cancel_after_a_new_target_leaves_whom_an_earlier_target_added() -> None:
    """As Kafka does: they were replicas when the new target came. Whoever wants the first replicas asks for these."""
    moving = Moving(1, 2)
    moving.moves(3, 4)
    moving.alter(1, 2, 3)
    moving.moves(5, 6)
    assert moving.cancels() is Error.NONE
    assert (moving.assignment, moving.summary) == (((1, 2, 3, 4), (), ()), [1, [1, 2, 3], []])
    assert moving.moves(1, 2) is Error.NONE
    assert (moving.assignment, moving.summary) == (((1, 2), (), ()), [1, [1, 2], []])


# What is under way


def test_what_is_under_way_is_listed_page_by_page() -> None:
    moving = Moving()
    moving.hear(CreateTopic(request=0, topic="many", assignments=tuple((1, 2) for _ in range(PAGE + 1))))
    assert moving.hear(ListReassignments(request=5)) == [Reassignments(request=5)]
    moving.moves(2, 3, 4)
    for n in range(PAGE + 1):
        moving.asks_for((3, 4), tp=TopicPartition("many", n))
    (first,) = moving.hear(ListReassignments(request=5))
    assert isinstance(first, Reassignments)
    assert (len(first.partitions), first.are_more) == (PAGE, True)
    (second,) = moving.hear(ListReassignments(request=6, after=first.partitions[-1].partition))
    assert isinstance(second, Reassignments)
    assert [str(p.partition) for p in second.partitions] == [f"many-{PAGE}", "t-0"]
    assert (second.partitions[-1], second.are_more) == (moving.partition, False)


# Beside a reassignment


def test_an_added_broker_that_is_unregistered_or_a_deleted_topic_ends_no_controller() -> None:
    moving = Moving()
    moving.moves(2, 3, 4)
    moving.hear(UnregisterBroker(request=1, broker=4))
    assert is_under_way(moving.partition)
    assert moving.cancels() is Error.NONE
    assert moving.assignment == ((2, 3, 1), (), ())
    moving.moves(2, 3, 5)
    moving.hear(UnregisterBroker(request=1, broker=1))
    assert moving.summary == [2, [2, 3], []]
    assert moving.alter(2, 3, 5) is Error.NONE
    assert moving.assignment == ((2, 3, 5), (), ())
    moving.moves(4, 5, 6)
    assert moving.moves(3, 5, 6) is Error.NONE
    moving.hear(DeleteTopic(request=2, topic="t"))
    assert moving.hear(ListReassignments(request=5)) == [Reassignments(request=5)]


def test_new_partitions_get_as_many_replicas_as_the_first_is_to_have() -> None:
    moving = Moving()
    moving.moves(4, 5, 6)
    moving.hear(CreatePartitions(request=1, topic="t", count=2))
    assert len(moving.core.partitions[TopicPartition("t", 1)].replicas) == 3
    (answer,) = moving.hear(CreatePartitions(request=1, topic="t", count=3, assignments=((1, 2, 3, 4, 5, 6),)))
    assert answer == AdminAnswer(request=1, error=Error.INVALID_REPLICA_ASSIGNMENT)


def test_a_restarted_controller_goes_on() -> None:
    moving = Moving()
    moving.moves(2, 3, 4)
    lines = [record_line(record) for record in moving.records]
    records = [record_of(line) for line in lines]
    moving.core = controller_from_records(moving.core.settings, records, moving.now)
    assert moving.alter(1, 2, 3, 4) is Error.NEW_LEADER_ELECTED
    assert moving.assignment == ((2, 3, 4), (), ())
    assert b"adding" not in record_line(moving.partition), "a partition at rest is written as it always was"


# The ELR


def test_who_is_removed_leaves_the_elr() -> None:
    """PartitionChangeBuilder alone, as ElrOfRemoved.java asks it: [1,3,2] with ISR {2} and ELR {1,3} gets 4 for 2."""
    for design, elr in ((COMPLETES_BELOW, [1, 3]), (KEEPS_REMOVED, [1, 2, 3])):
        moving = Moving(2, 1, 3, insync_design=design)
        moving.loses(3)
        moving.alter(2)
        moving.moves(4, 1, 3)
        moving.core = attrs.evolve(moving.core, partitions=moving.core.partitions.set(TP, _with_elr(moving)))
        assert moving.alter(2, 4) is Error.NEW_LEADER_ELECTED
        assert (moving.assignment[0], moving.summary) == ((4, 1, 3), [4, [4], elr])


def _with_elr(moving: Moving) -> PartitionMetadata:
    return attrs.evolve(moving.partition, elr=frozenset({1, 3}))


# On the wire


def alters(
    requests: Requests, version: int, *rows: tuple[str, int, list[int] | None], allows: bool = True
) -> list[str]:
    """The errors of an AlterPartitionReassignments, in the order of the partitions."""
    topics: list[Answer] = [
        {"name": topic, "partitions": [{"partition_index": n, "replicas": replicas}]} for topic, n, replicas in rows
    ]
    fields: Answer = {"timeout": 100, "allow_replication_factor_change": allows, "topics": topics}
    answer = asked(requests, protocol.ALTER_PARTITION_REASSIGNMENTS, version, fields)
    parts = [p for topic in answer.all("responses") for p in topic.all("partitions")]
    assert all(p.has("error_message") == (p.number("error_code") != 0) for p in parts)
    return [Error(p.number("error_code")).name for p in parts]


def listed(requests: Requests, topics: list[Answer] | None = None) -> dict[tuple[str, int], tuple[list[int], ...]]:
    """Of each partition that is listed its replicas, those that are added, and those that are removed."""
    answer = asked(requests, protocol.LIST_PARTITION_REASSIGNMENTS, 0, {"timeout": 100, "topics": topics})
    assert answer.number("error_code") == 0
    return {
        (topic.text("name"), p.number("partition_index")): tuple(
            p.numbers(field) for field in ("replicas", "adding_replicas", "removing_replicas")
        )
        for topic in answer.all("topics")
        for p in topic.all("partitions")
    }


def with_registered(*brokers: BrokerId) -> Requests:
    """Broker 1, with the controller; of these others nobody is there."""
    requests = one_broker()
    more: Answer = {"topics": [{"name": "t", "count": 2, "assignments": None}], "timeout": 100}
    assert asked(requests, protocol.CREATE_PARTITIONS, 0, more).all("results")[0].number("error_code") == 0
    runtime = requests.runtime
    runtime.outside = cast("Outside", Mock())
    for broker in brokers:
        register = RegisterBroker(broker=broker, incarnation=1, cluster=runtime.cluster, host="h", port=1)
        runtime.receive_messages([(broker, CONTROLLER, register)], 10_300)
    return requests


def test_each_partition_of_a_request_has_its_answer() -> None:
    requests = with_registered(2, 3)
    assert alters(requests, 1, ("t", 0, [2]), ("t", 1, [2, 9]), ("u", 7, [2]), ("v", 1, None), ("t", 1, [])) == [
        "NONE",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICA_ASSIGNMENT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert alters(requests, 1, ("t", 1, None)) == ["NO_REASSIGNMENT_IN_PROGRESS"]
    assert alters(requests, 1, ("t", 1, [2, 3]), allows=False) == ["INVALID_REPLICATION_FACTOR"]
    assert alters(requests, 0, ("t", 1, [2, 3])) == ["NONE"]
    whole = {("t", 0): ([2, 1], [2], [1]), ("t", 1): ([2, 3, 1], [2, 3], [1])}
    assert listed(requests) == whole
    assert listed(requests, [{"name": "t", "partition_indexes": [1, 5]}]) == {("t", 1): whole["t", 1]}
    assert listed(requests, [{"name": "u", "partition_indexes": [0]}]) == {}
    assert listed(requests, []) == {}
    assert alters(requests, 1, ("t", 0, [3]), ("t", 1, None)) == ["NONE", "NONE"]
    assert listed(requests) == {("t", 0): ([3, 1, 2], [3], [1, 2])}, "who is added and removed is shown as removed"


def test_clients_see_replicas_of_a_reassignment_as_replicas() -> None:
    requests = with_registered(2)
    assert alters(requests, 1, ("t", 0, [2])) == ["NONE"]
    for key, version in ((protocol.METADATA, 12), (protocol.DESCRIBE_TOPIC_PARTITIONS, 0)):
        answer = asked(requests, key, version, {"topics": [{"name": "t", "topic_id": bytes(16)}]})
        (first, _) = answer.all("topics")[0].all("partitions")
        assert (first.numbers("replica_nodes"), first.numbers("isr_nodes")) == ([2, 1], [1])
        assert first.numbers("offline_replicas") == [2], "it has no session"


# A broker


def partition(replicas: Replicas, leader: BrokerId, epoch: int = 0, version: int = 0) -> PartitionMetadata:
    return PartitionMetadata(
        partition=TP,
        replicas=replicas,
        isr=frozenset(replicas),
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=version,
        topic_id=77,
    )


def broker_with_log(opened: bool = True, topic_id: int = 77) -> nodes.Node:
    """Broker 1, with an open log, which has been registered."""
    node = nodes.Node(me=1, settings=Settings())
    if opened:
        log = LogOpened(partition=TP, log=LogView(end=3), topic_id=topic_id, is_certain=True)
        node = nodes.handle(node, log, 0).core
    node = nodes.handle(node, Start(7), 0).core
    return nodes.handle(node, Received(CONTROLLER, BrokerRegistered(broker=1, incarnation=7, broker_epoch=1)), 0).core


def hears(node: nodes.Node, since: int, *partitions: PartitionMetadata) -> nodes.NodeStep:
    news = Metadata(since=since, offset=since + 1, partitions=partitions)
    return nodes.handle(node, Received(CONTROLLER, news), 0)


def logs_in(step: nodes.NodeStep) -> list[OpenLog | DeleteLog | SetAside]:
    return [e for e in step.effects if isinstance(e, OpenLog | DeleteLog | SetAside)]


def test_a_removed_broker_deletes_its_log_and_an_added_one_opens_an_empty_one() -> None:
    step = hears(broker_with_log(), 0, partition((1, 2), 2))
    assert logs_in(step) == []
    step = hears(step.core, 1, partition((2, 3), 2, 1, 1))
    assert logs_in(step) == [DeleteLog(TP)]
    assert TP not in step.core.replicas
    step = hears(step.core, 2, partition((2, 3, 1), 2, 1, 2))
    assert logs_in(step) == [OpenLog(TP, 77)]


def test_a_broker_that_was_away_deletes_the_log_when_it_is_back() -> None:
    assert logs_in(hears(broker_with_log(), 0, partition((2, 3), 2))) == [DeleteLog(TP)]


def test_a_log_of_another_topic_is_set_aside_and_not_deleted() -> None:
    """The metadata never had that topic: it may be they that were lost."""
    for topic_id in (78, 0):
        assert logs_in(hears(broker_with_log(topic_id=topic_id), 0, partition((2, 3), 2))) == [SetAside(TP)]


def test_a_broker_that_is_removed_while_its_log_is_opened_drops_it() -> None:
    step = hears(broker_with_log(opened=False), 0, partition((1, 2), 2))
    assert logs_in(step) == [OpenLog(TP, 77)]
    step = hears(step.core, 1, partition((2, 3), 2, 1, 1))
    assert logs_in(step) == []
    step = nodes.handle(step.core, LogOpened(partition=TP, log=LogView(), topic_id=77), 0)
    assert logs_in(step) == [DeleteLog(TP)]
    assert TP not in step.core.replicas


# A leader


def news(replicas: Replicas, version: int) -> LearnMetadata:
    isr = frozenset({1, 2, 3}) & set(replicas)
    return LearnMetadata(metadata=attrs.evolve(metadata(1, version=version), replicas=replicas, isr=isr))


def refusal(step: Step) -> Error:
    (answer,) = (e for e in step.effects if isinstance(e, AnswerFetch))
    return answer.response.error


def test_a_leader_hears_of_an_added_follower_in_the_epoch_in_which_it_leads() -> None:
    leader = tell(leader_of(), produce()).core
    assert refusal(tell(leader, fetch(4, 0))) is Error.UNKNOWN_LEADER_EPOCH
    state = leading(leader)
    leader = tell(leader, news((1, 2, 3, 4), 1)).core
    assert leading(leader).followers[2] == state.followers[2], "what it knows of the others stays"
    leader = tell(leader, fetch(4, 0)).core
    for follower in (2, 3, 4):
        leader = tell(leader, fetch(follower, 1, 0)).core
    step = tell(leader, Tick())
    (asks,) = (e.message for e in step.effects if isinstance(e, Send))
    assert isinstance(asks, AlterPartitionRequest)
    assert asks.members == {1, 2, 3, 4}


def test_a_leader_forgets_a_follower_that_is_none_any_more() -> None:
    leader = tell(leader_of(), news((1, 2, 3, 4), 1)).core
    leader = tell(leader, fetch(4, 0)).core
    assert leading(leader).joining == {4}
    leader = tell(leader, news((1, 2, 3), 2)).core
    assert set(leading(leader).followers) == {2, 3}
    assert refusal(tell(leader, fetch(4, 0))) is Error.UNKNOWN_LEADER_EPOCH
    tell(leader, Tick())


# The story of found/removed-replica, on brokers as they run in the simulator


class Story:
    """Four brokers and a controller on disks in memory, a fair network, and a partition with min.insync.replicas 2."""

    CLIENT = -2

    def __init__(self, design: Design, *replicas: BrokerId) -> None:
        settings = attrs.evolve(QUICK, insync_design=design, min_insync_replicas=2, offsets_topic_replication_factor=1)
        hosts = {b: Host(b) for b in range(1, 5)}
        self.world = World(settings, Random(1), hosts, cast("Watcher", Mock()), FAIR)
        for host in self.world.machines:
            self.world.start(host)
        self.passes(3_000)
        topic = CreateTopic(request=0, topic="t", assignments=(replicas,))
        assert self.asks(lambda number: attrs.evolve(topic, request=number)) is Error.NONE
        self.passes(2_000)

    def passes(self, duration: int) -> None:
        self.world.run(self.world.now + duration)

    def asks(self, make: Callable[[int], ClientRequest], to: BrokerId = 0) -> Error:
        errors: list[Error] = []

        def take(reply: Reply) -> None:
            assert not isinstance(reply.answer, Reassignments)
            errors.append(reply.answer.error)

        target = to or next(b for b, host in self.world.hosts.items() if host.alive)
        self.world.ask(self.CLIENT, target, make, take)
        self.passes(1_500)
        (error,) = errors
        return error

    def moves(self, *target: BrokerId) -> None:
        request = ReassignPartition(request=0, partition=TP, replicas=target or None)
        assert self.asks(lambda number: attrs.evolve(request, request=number)) is Error.NONE
        self.passes(2_000)

    def writes(self) -> None:
        """One record, acknowledged by all in sync."""
        leader = self.partition.leader
        assert leader is not None
        assert self.asks(lambda number: attrs.evolve(produce(), request=number), leader) is Error.NONE

    def stops(self, *brokers: BrokerId) -> None:
        for broker in brokers:
            self.world.shut_down(self.world.hosts[broker])
            self.passes(2_500)
            assert not self.world.hosts[broker].alive, "in order"

    def starts(self, *brokers: BrokerId) -> None:
        for broker in brokers:
            self.world.start(self.world.hosts[broker])
        self.passes(4_000)

    def holds_fetches(self, of: BrokerId, leader: BrokerId) -> None:
        self.world.cut.add((of, leader))

    def lets_go(self) -> None:
        self.world.cut.clear()

    @property
    def partition(self) -> PartitionMetadata:
        return self.world.controller.partitions[TP]

    def ends(self, brokers: Iterable[BrokerId]) -> dict[BrokerId, int]:
        """Where each of these brokers' logs ends, -1 if it has none."""
        nodes_of = {b: self.world.hosts[b].node for b in brokers}
        logs = {b: node.replicas.get(TP) for b, node in nodes_of.items() if node is not None}
        return {b: -1 if replica is None else replica.log.end for b, replica in logs.items()}


def as_many(design: Design) -> Story:
    """[2,3,4] to [1,3,4] and back, while 3 and 4 are down; then 1 stops before 2 has caught up."""
    story = Story(design, 2, 3, 4)
    story.writes()
    story.stops(3, 4)
    story.moves(1, 3, 4)
    assert (story.partition.replicas, story.partition.isr) == ((1, 3, 4), frozenset({1}))
    assert story.ends((1, 2)) == {1: 1, 2: -1}, "2 has deleted its log"
    story.holds_fetches(2, 1)
    story.moves(2, 3, 4)
    assert story.ends((2,)) == {2: 0}
    story.stops(1)
    story.starts(3, 4)
    story.lets_go()
    story.starts(1)
    story.passes(10_000)
    return story


def cancel(design: Design) -> Story:
    """[1,2] to [3,4] while 2 and 4 are down, cancelled, asked for again; then 1 stops before 3 has caught up."""
    story = Story(design, 1, 2)
    story.writes()
    story.stops(2, 4)
    story.moves(3, 4)
    assert story.partition.isr == {1, 3}
    story.moves()
    assert (story.partition.replicas, story.partition.isr) == ((1, 2), frozenset({1}))
    assert story.ends((1, 3)) == {1: 1, 3: -1}
    story.holds_fetches(3, 1)
    story.moves(3, 4)
    story.stops(1)
    story.lets_go()
    story.starts(1, 2, 4)
    story.passes(10_000)
    return story


@pytest.mark.parametrize(("way", "design"), [(as_many, COMPLETES_BELOW), (cancel, KIP_966)], ids=["as_many", "cancel"])
def test_who_gave_its_log_away_is_not_elected_when_it_is_a_replica_again(
    way: Callable[[Design], Story], design: Design
) -> None:
    """The first way cannot be gone with the broker's own rule, by which the first move waits for 3 or 4."""
    story = way(design)
    assert not is_under_way(story.partition)
    assert set(story.partition.replicas) == ({2, 3, 4} if way is as_many else {3, 4})
    assert story.partition.isr == set(story.partition.replicas)
    assert story.ends(story.partition.replicas) == dict.fromkeys(story.partition.replicas, 1), "the record is there"
    removed = {1, 2, 3, 4} - set(story.partition.replicas)
    assert story.ends(removed) == dict.fromkeys(removed, -1), "and nowhere else"


@pytest.mark.parametrize("way", [as_many, cancel])
def test_with_the_elr_as_kafka_leaves_it_the_record_is_lost(way: Callable[[Design], Story]) -> None:
    """The test above can fail: 2, or 3, leads with an empty log, and everybody truncates to it."""
    story = way(KEEPS_REMOVED)
    assert story.partition.leader is not None
    assert set(story.ends(story.partition.replicas).values()) == {0}


@pytest.mark.parametrize("killed", [(0,), (4,), (2, 4), (1, 3), (0, 1, 2, 3, 4)], ids=str)
def test_it_goes_on_after_any_of_them_was_killed_in_the_middle(killed: tuple[BrokerId, ...]) -> None:
    """0 is the controller, 1 leads and is removed, 4 is added."""
    story = Story(KIP_966, 1, 2, 3)
    story.writes()
    for leader in (1, 2, 3):
        story.holds_fetches(4, leader)
    story.moves(2, 3, 4)
    story.writes()
    for host in story.world.machines:
        if host.broker in killed:
            story.world.stop(host, Everything())
    story.passes(500)
    for host in story.world.machines:
        if not host.alive:
            story.world.start(host)
    story.passes(5_000)
    assert is_under_way(story.partition)
    story.lets_go()
    story.passes(10_000)
    assert (story.partition.replicas, story.partition.isr) == ((2, 3, 4), frozenset({2, 3, 4}))
    assert story.ends((1, 2, 3, 4)) == {1: -1, 2: 2, 3: 2, 4: 2}
    assert not story.world.hosts[1].disk.exists("t-0/partition.metadata"), "the old log is gone"
    assert story.world.hosts[4].disk.exists("t-0/partition.metadata")


# Processes, and ordinary clients


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Processes]:
    defaults = Settings().properties()
    changed = {n: v for n, v in QUICK_BROKERS.properties().items() if v != defaults[n]}
    brokers = Processes(tmp_path, dict(enumerate(free_ports(4), 1)), changed)
    brokers.start_all()
    yield brokers
    brokers.kill_all()


def moved(brokers: Processes, target: list[int] | None) -> None:
    """A client, of whatever broker, asks for other replicas of the partition, or cancels."""
    assert clients.kafka_python_reassign(brokers.bootstrap, "t", target) is None


def seen(brokers: Processes) -> tuple[tuple[int, ...], set[int]]:
    """Replicas and in-sync replicas, as broker 2 tells them to clients."""
    with Admin((HOST, brokers.ports[2])) as admin:
        (partition,) = admin.partitions(["t"])
    return partition.replicas, set(partition.isr)


def awaits(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.long
def test_a_partition_moves_while_it_is_written_and_brokers_die(four: Processes) -> None:
    """[1,2,3] to [2,3,4] and cancelled, again without its leader while a broker is killed, and back to an empty log."""
    with Admin((HOST, four.ports[1])) as admin:
        awaits("all brokers are there", lambda: len(admin.brokers()) == 4)
        admin.create("t", config={"min.insync.replicas": "2"}, on=[[1, 2, 3]])
    producer = Confluent(four.bootstrap, {"acks": "all", "enable.idempotence": True, "linger.ms": 0})
    sent: list[bytes] = []

    def writes() -> None:
        for _ in range(100):
            sent.append(b"%06d" % len(sent))
            producer.send("t", sent[-1])
            producer.producer.poll(0.001)

    writes()
    assert four.stop(4, signal.SIGTERM) == 0
    moved(four, [2, 3, 4])
    writes()
    assert clients.kafka_python_reassignments(four.bootstrap) == {("t", 0): ([2, 3, 4, 1], [4], [1])}
    moved(four, None)
    assert clients.kafka_python_reassignments(four.bootstrap) == {}
    writes()
    moved(four, [2, 3, 4])
    writes()
    four.start(4)
    four.stop(3, signal.SIGKILL)
    writes()
    awaits("4 is in sync, and 1 is no replica", lambda: seen(four)[0] == (2, 3, 4))
    writes()
    awaits("the old log is gone", lambda: not (four.root / "1" / "t-0").exists())
    four.start(3)
    awaits("3 is back in sync", lambda: seen(four) == ((2, 3, 4), {2, 3, 4}))
    moved(four, [1, 4, 3])
    writes()
    awaits("2 is no replica, and its log is gone", lambda: not (four.root / "2" / "t-0").exists())
    assert seen(four)[0] == (1, 4, 3)
    assert producer.producer.flush(90) == 0
    assert producer.acked == sent
    assert confluent_read(four.bootstrap, "t", len(sent)) == sent
    assert clients.kafka_python_reassignments(four.bootstrap) == {}
