"""What a new min.insync.replicas does to the partitions it is about: one batch and one version, and which ELR is left.

Without this a replica that lacks what was committed by the new number would be elected as eligible by the old one, or a
partition would be left that waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from tests.isr_broker.test_controller import TP, Quorum
from tests.support import clients
from tests.support.clients import Confluent
from tests.support.clusters import Cluster

from isr_broker.core.controller import controller_from_records
from isr_broker.core.effects import AppendMetadata
from isr_broker.core.inputs import Tick
from isr_broker.core.messages import (
    AdminAnswer,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterTopicConfigs,
    Error,
)
from isr_broker.designs import KRAFT_3_5
from isr_broker.topic_configs import LARGEST, MIN_ISR

Way = Callable[[Quorum], None]


def sets(quorum: Quorum, *changes: tuple[str, str | None], replaces: bool = False) -> None:
    (answer,) = quorum.hear(AlterTopicConfigs(request=7, topic="t", changes=changes, replaces=replaces))
    assert isinstance(answer, AdminAnswer)
    assert answer.error is Error.NONE


def lowers_the_topics(quorum: Quorum) -> None:
    sets(quorum, (MIN_ISR, "1"))


def raises_the_topics(quorum: Quorum) -> None:
    sets(quorum, (MIN_ISR, "3"))


def says_the_default_of_the_topic(quorum: Quorum) -> None:
    """To Kafka this is a ConfigRecord like another, and clears the ELR, too."""
    sets(quorum, (MIN_ISR, "2"))


def starts_again_with_another_default(quorum: Quorum) -> None:
    settings = attrs.evolve(quorum.core.settings, min_insync_replicas=1)
    quorum.core = controller_from_records(settings, quorum.records, quorum.now)
    quorum.tell(Tick())


LOWERED: tuple[Way, ...] = (lowers_the_topics, starts_again_with_another_default)
"""One member is enough from then on."""
STILL_ABOVE: tuple[Way, ...] = (raises_the_topics, says_the_default_of_the_topic)
"""One member is not enough still."""


def below_the_minimum() -> Quorum:
    """Broker 2 leads alone under a minimum of two, and 1 is remembered."""
    quorum = Quorum()
    quorum.loses(3)
    quorum.loses(1)
    assert quorum.summary == [2, [2], [1]]
    return quorum


@pytest.mark.parametrize(
    ("way", "elr"), [*((way, list[int]()) for way in LOWERED), *((way, [1]) for way in STILL_ABOVE)]
)
def test_a_new_minimum_is_a_new_version_and_clears_the_elr_of_an_isr_that_it_makes_enough(
    way: Way, elr: list[int]
) -> None:
    """`elr-kept-below-minimum`: below the minimum nothing commits, so who was complete stays complete."""
    quorum = below_the_minimum()
    before = quorum.partition
    way(quorum)
    assert quorum.summary == [2, [2], elr]
    assert (quorum.partition.partition_epoch, quorum.partition.leader_epoch) == (
        before.partition_epoch + 1,
        before.leader_epoch,
    )
    (batch,) = (e for e in quorum.effects if isinstance(e, AppendMetadata))
    assert batch.records == (quorum.partition,), "the number and the ELR are one record"


@pytest.mark.parametrize("way", [*LOWERED, *STILL_ABOVE])
def test_a_partition_without_members_waits_for_whom_it_waited_for_before(way: Way) -> None:
    """In Kafka (ReplicationControlManager.removeTopicElrs) it waits for nobody from then on: `kafka-cleared-elr`."""
    quorum = below_the_minimum()
    quorum.loses(2)
    assert (quorum.summary, quorum.partition.last_known_leader) == ([None, [], [1, 2]], 2)
    way(quorum)
    assert (quorum.summary, quorum.partition.last_known_leader) == ([None, [], [1, 2]], 2)
    quorum.starts(2, incarnation=2, previous=quorum.core.brokers[2].epoch)
    assert quorum.partition.leader == 2


@pytest.mark.parametrize("way", LOWERED)
def test_who_was_eligible_by_the_old_minimum_is_not_elected_after_a_smaller_one(way: Way) -> None:
    """By the new number 2 alone commits what 1 lacks; then 2 dies and 1 is back."""
    quorum = below_the_minimum()
    epoch = quorum.core.brokers[1].epoch
    way(quorum)
    quorum.loses(2)
    quorum.starts(1, incarnation=2, previous=epoch)
    assert quorum.summary == [None, [], [2]]
    quorum.starts(2, incarnation=2, previous=-1)
    assert quorum.summary == [2, [2], []], "the last known leader has everything"


def test_a_setting_that_goes_is_a_change_and_another_setting_is_none() -> None:
    quorum = below_the_minimum()
    before = quorum.partition
    sets(quorum, (LARGEST, "1000"))
    assert (quorum.summary, quorum.partition.partition_epoch) == ([2, [2], [1]], before.partition_epoch)
    sets(quorum, (MIN_ISR, "3"), (LARGEST, "1000"))
    quorum.loses(2)
    assert quorum.summary == [None, [], [1, 2]]
    version = quorum.partition.partition_epoch
    sets(quorum, (LARGEST, "1000"), replaces=True)
    assert (quorum.partition.min_insync_replicas, quorum.summary) == (2, [None, [], [1, 2]])
    assert quorum.partition.partition_epoch == version + 1


def test_only_topics_without_a_number_of_their_own_follow_the_default() -> None:
    quorum = Quorum()
    sets(quorum, (MIN_ISR, "2"))
    quorum.loses(3)
    quorum.loses(1)
    starts_again_with_another_default(quorum)
    assert quorum.summary == [2, [2], [1]]


def test_before_kip_966_a_new_minimum_is_no_new_version() -> None:
    quorum = Quorum(insync_design=KRAFT_3_5)
    quorum.loses(3)
    before = quorum.partition
    sets(quorum, (MIN_ISR, "1"))
    assert quorum.partition == attrs.evolve(before, min_insync_replicas=1, configs=((MIN_ISR, "1"),))


# The second way of found/raised-min-insync: an answer to an AlterPartition that comes before the leader's metadata


def test_a_request_from_before_a_raised_minimum_is_refused() -> None:
    """Else the controller would put 2 into the ELR by the new number while the leader commits alone by the old one."""
    quorum = Quorum(minimum=1)
    quorum.loses(3)
    asks = AlterPartitionRequest(
        partition=TP,
        leader=1,
        broker_epoch=quorum.core.brokers[1].epoch,
        leader_epoch=quorum.partition.leader_epoch,
        partition_epoch=quorum.partition.partition_epoch,
        isr=((1, quorum.core.brokers[1].epoch),),
    )
    sets(quorum, (MIN_ISR, "2"))
    (answer,) = quorum.hear(asks, 1)
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error is Error.INVALID_UPDATE_VERSION
    assert quorum.summary == [1, [1, 2], []]


# On brokers


@pytest.mark.sockets
@pytest.mark.long
def test_what_is_written_under_a_lowered_minimum_outlives_its_leader() -> None:
    """ISR {2}, ELR {3}, the minimum from 2 to 1, five writes, 2 dies, 3 is back: 3 must not lead."""
    with Cluster() as cluster:
        admin = clients.kafka_python_admin(cluster.bootstrap)
        pair = {"num_partitions": -1, "replication_factor": -1, "assignments": {0: [2, 3]}, "configs": {MIN_ISR: "2"}}
        admin.create_topics({"lowered": pair})
        admin.close()
        cluster.in_sync("lowered", 2)
        values = [b"%d" % n for n in range(6)]
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("lowered", values[:1])
        assert cluster.shut_down(3) == "stopped in order"
        before = cluster.partition("lowered")
        assert before is not None
        assert (before.isr, before.elr) == (frozenset({2}), frozenset({3}))
        clients.confluent_set(cluster.bootstrap, "lowered", MIN_ISR, "1")
        Confluent(cluster.bootstrap, {"acks": "all"}).send_all("lowered", values[1:])
        cluster.kill(2)
        cluster.wait(lambda: cluster.unfenced() == [1], "the leader has no session")
        cluster.start(3)
        cluster.wait(lambda: set(cluster.unfenced()) == {1, 3}, "3 has a session")
        nobody = cluster.partition("lowered")
        assert nobody is not None
        assert nobody.leader is None, "3 lacks what was acknowledged"
        cluster.start(2)
        cluster.in_sync("lowered", 2)
        assert cluster.leader("lowered") == 2
        assert clients.confluent_read(cluster.bootstrap, "lowered", 6) == values
