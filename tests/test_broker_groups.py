"""Consumer groups: the coordinator by itself, and real clients that share the partitions of a topic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests import clients
from tests.clusters import Cluster

from isr_broker.disk_memory import Everything, MemoryDisk, Nothing
from isr_broker.groups import (
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Groups,
    Member,
    Offsets,
)
from isr_broker.messages import TopicPartition
from isr_broker.wire import Answer

TP = TopicPartition("t", 0)


class Desk:
    """One group, and what each member was answered last."""

    def __init__(self, delay: int = 0) -> None:
        self.disk = MemoryDisk()
        self.groups = Groups(Offsets.open(self.disk), delay)
        self.said: dict[str, Answer] = {}

    def join(self, name: str, now: int = 0, identity: str = "", protocols: tuple[str, ...] = ("range",)) -> None:
        self.said.pop(name, None)
        member = Member(identity, {p: name.encode() for p in protocols}, session_ms=100, rebalance_ms=300, heard=now)
        self.groups.join("g", "consumer", member, name, now, lambda answer: self.said.__setitem__(name, answer))

    def sync(self, name: str, parts: dict[str, bytes] | None = None, now: int = 0) -> None:
        answer = self.said.pop(name)
        identity, generation = str(answer["member_id"]), int(str(answer["generation_id"]))
        self.groups.sync("g", identity, generation, parts or {}, now, lambda a: self.said.__setitem__(name, a))

    def identity(self, name: str) -> str:
        return str(self.said[name]["member_id"])


def two_members() -> tuple[Desk, str, str]:
    desk = Desk()
    desk.join("a")
    first = desk.identity("a")
    desk.join("b")
    desk.join("a", identity=first)
    return desk, first, desk.identity("b")


def test_all_members_are_one_generation_and_the_leader_learns_of_all() -> None:
    desk, first, second = two_members()
    assert {desk.said[m]["generation_id"] for m in "ab"} == {2}
    assert desk.said["a"]["leader"] == first
    assert desk.said["a"]["members"] == [
        {"member_id": first, "metadata": b"a"},
        {"member_id": second, "metadata": b"b"},
    ]
    assert desk.said["b"]["members"] == []


def test_everybody_gets_the_part_that_the_leader_gave_it() -> None:
    desk, first, second = two_members()
    desk.sync("b")
    assert "b" not in desk.said, "it waits for the leader"
    desk.sync("a", {first: b"1", second: b"2"})
    assert (desk.said["a"]["assignment"], desk.said["b"]["assignment"]) == (b"1", b"2")


def test_a_new_member_makes_the_others_join_again_and_may_wait_for_them() -> None:
    desk = Desk()
    desk.join("a")
    first = desk.identity("a")
    assert desk.groups.heartbeat("g", first, 1, 10) == NONE
    desk.join("b", now=20)
    assert desk.groups.heartbeat("g", first, 1, 30) == REBALANCE_IN_PROGRESS
    assert "b" not in desk.said
    assert desk.groups.deadline() == 130, "the session of the first"
    desk.groups.tick(130)
    assert desk.said["b"]["generation_id"] == 2, "without the first, which was not heard of"
    assert desk.groups.heartbeat("g", first, 1, 140) == UNKNOWN_MEMBER_ID


def test_the_first_member_waits_a_little_for_others() -> None:
    desk = Desk(delay=50)
    desk.join("a")
    desk.join("b", now=10)
    assert not desk.said
    assert desk.groups.deadline() == 50
    desk.groups.tick(50)
    assert {desk.said[m]["generation_id"] for m in "ab"} == {1}


def test_who_leaves_makes_the_others_join_again() -> None:
    desk, first, second = two_members()
    assert desk.groups.leave("g", second, 10) == NONE
    assert desk.groups.heartbeat("g", first, 2, 10) == REBALANCE_IN_PROGRESS
    assert desk.groups.leave("g", second, 10) == UNKNOWN_MEMBER_ID


def test_strangers_and_old_generations_are_refused() -> None:
    desk, first, _ = two_members()
    assert desk.groups.heartbeat("g", first, 1, 0) == ILLEGAL_GENERATION
    assert desk.groups.commit("g", first, 1, {TP: (5, "")}, 0) == ILLEGAL_GENERATION
    assert desk.groups.commit("g", "stranger", 2, {TP: (5, "")}, 0) == UNKNOWN_MEMBER_ID
    desk.join("c", protocols=("sticky",))
    assert desk.said["c"]["error_code"] == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("torn", [0, 1, 7])
def test_committed_offsets_survive_and_a_torn_one_is_none(torn: int) -> None:
    desk = Desk()
    assert desk.groups.commit("g", "", -1, {TP: (5, "note")}, 0) == NONE
    desk.disk.open("committed-offsets.log").append(b'["g", "t"'[:torn])
    desk.disk.crash(Everything() if torn else Nothing())
    offsets = Offsets.open(desk.disk)
    assert offsets.committed == {("g", TP): (5, "note")}
    offsets.commit("g", {TP: (6, "")})
    assert Offsets.open(desk.disk).committed == {("g", TP): (6, "")}


# Real clients


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        clients.create_topic(running.bootstrap, "t", 4, 2)
        running.in_sync("t")
        producer = clients.Confluent(running.bootstrap, {"acks": "all"})
        for number in range(400):
            producer.send("t", b"%d" % number, number % 4)
        assert producer.producer.flush(20) == 0
        yield running


@pytest.mark.parametrize("client", ["confluent", "kafka-python", "aiokafka"])
def test_a_group_reads_everything_once_and_goes_on_where_it_was(cluster: Cluster, client: str) -> None:
    read = {
        "confluent": clients.confluent_group,
        "kafka-python": clients.kafka_python_group,
        "aiokafka": clients.aiokafka_group,
    }[client]
    first = read(cluster.bootstrap, client, "t", 150)
    rest = read(cluster.bootstrap, client, "t", 400 - len(first))
    assert sorted(map(int, first + rest)) == list(range(400))


def test_two_members_share_the_partitions(cluster: Cluster) -> None:
    assert clients.confluent_shared(cluster.bootstrap, "shared", "t", 4) == [2, 2]
