"""Consumer groups: the coordinator by itself, and real clients that share the partitions of a topic."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import clients
from tests.support.clusters import Cluster

from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import batches
from isr_broker.storage.offsets_topic import TOPIC, Committed, batch_of, learn, partition_of
from isr_broker.wire.groups import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Groups,
    Member,
)
from isr_broker.wire.protocol import Answer

pytestmark = pytest.mark.sockets

TP = TopicPartition("t", 0)


class Desk:
    """One group, and what each member was answered last."""

    def __init__(self, delay: int = 0) -> None:
        self.groups = Groups(delay)
        self.said: dict[str, Answer] = {}

    def join(
        self,
        name: str,
        now: int = 0,
        identity: str = "",
        protocols: tuple[str, ...] = ("range",),
        instance: str = "",
        session: int = 100,
    ) -> None:
        self.said.pop(name, None)
        wants = {p: name.encode() for p in protocols}
        member = Member(identity, wants, session_ms=session, rebalance_ms=300, heard_at=now, instance=instance)
        self.groups.join("g", "consumer", member, name, now, lambda answer: self.said.__setitem__(name, answer))

    def sync(self, name: str, parts: dict[str, bytes] | None = None, now: int = 0) -> None:
        answer = self.said.pop(name)
        identity, generation = str(answer["member_id"]), int(str(answer["generation_id"]))
        self.groups.sync("g", identity, generation, parts or {}, now, lambda a: self.said.__setitem__(name, a))

    def error(self, name: str) -> int:
        return int(str(self.said[name].get("error_code", 0)))

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
        {"member_id": first, "group_instance_id": None, "metadata": b"a"},
        {"member_id": second, "group_instance_id": None, "metadata": b"b"},
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
    desk.groups.tick(129)
    assert desk.groups.deadline() == 130, "the session of the first"
    desk.groups.tick(130)
    assert desk.said["b"]["generation_id"] == 2, "without the first, which was not heard of"
    assert desk.groups.heartbeat("g", first, 1, 140) == UNKNOWN_MEMBER_ID


def test_the_first_member_waits_a_little_for_others_and_longer_while_some_come() -> None:
    """testDelayInitialRebalance..., testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance."""
    desk = Desk(delay=50)
    desk.join("a")
    assert desk.groups.deadline() == 50
    desk.join("b", now=10)
    desk.groups.tick(50)
    assert not desk.said
    assert desk.groups.deadline() == 100
    desk.groups.tick(100)
    assert {desk.said[m]["generation_id"] for m in "ab"} == {1}


def test_the_first_rebalance_takes_no_longer_than_members_have() -> None:
    """testDelayRebalanceUptoRebalanceTimeout."""
    desk = Desk(delay=200)
    desk.join("a")
    desk.join("b", now=100)
    desk.groups.tick(200)
    desk.join("c", now=250)
    desk.groups.tick(299)
    assert not desk.said
    desk.groups.tick(300)
    assert {desk.said[m]["generation_id"] for m in "abc"} == {1}


def test_a_heartbeat_does_not_look_at_all_members() -> None:
    """Who is heard of puts off his own end: the others are looked at when the first of them may be over."""
    desk, first, _ = two_members()
    assert desk.groups.deadline() == 100
    assert desk.groups.heartbeat("g", first, 2, 60) == NONE
    assert desk.groups.deadline() == 100
    desk.groups.tick(99)
    assert len(desk.groups.groups["g"].members) == 2
    desk.groups.tick(100)
    assert list(desk.groups.groups["g"].members) == [first]
    assert desk.groups.deadline() == 160


def test_who_leaves_makes_the_others_join_again() -> None:
    desk, first, second = two_members()
    assert desk.groups.leave("g", [(second, "")], 10) == [NONE]
    assert desk.groups.heartbeat("g", first, 2, 10) == REBALANCE_IN_PROGRESS
    assert desk.groups.leave("g", [(second, "")], 10) == [UNKNOWN_MEMBER_ID]


def test_a_group_is_described_and_what_members_have_once_all_have_a_part() -> None:
    desk, first, second = two_members()
    told = desk.groups.describe_group("g")
    assert told is not None
    assert (told["group_state"], told["protocol_type"], told["protocol_data"]) == (
        "CompletingRebalance",
        "consumer",
        "",
    )
    desk.sync("b")
    desk.sync("a", {first: b"1", second: b"2"})
    told = desk.groups.describe_group("g")
    assert told is not None
    assert (told["group_state"], told["protocol_data"]) == ("Stable", "range")
    keys = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")
    rows = [(first, None, "a", "", b"a", b"1"), (second, None, "b", "", b"b", b"2")]
    assert told["members"] == [dict(zip(keys, row, strict=True)) for row in rows]
    assert desk.groups.describe_group("other") is None
    desk.groups.committed["other"] = {TP: (5, "")}
    empty = desk.groups.describe_group("other")
    assert empty is not None
    assert (empty["group_state"], empty["members"]) == ("Empty", [])


def test_strangers_and_old_generations_are_refused() -> None:
    desk, first, _ = two_members()
    assert desk.groups.heartbeat("g", first, 1, 0) == ILLEGAL_GENERATION
    assert desk.groups.may_commit("g", first, 1, 0) == ILLEGAL_GENERATION
    assert desk.groups.may_commit("g", "stranger", 2, 0) == UNKNOWN_MEMBER_ID
    assert desk.groups.may_commit("g", first, 2, 0) == REBALANCE_IN_PROGRESS, "its part is not known yet"
    desk.sync("a")
    assert desk.groups.may_commit("g", first, 2, 0) == NONE
    assert desk.groups.may_commit("g", "", -1, 0) == UNKNOWN_MEMBER_ID, "only members commit while there are any"
    assert desk.groups.may_commit("another", first, 2, 0) == ILLEGAL_GENERATION
    assert desk.groups.may_commit("another", "", -1, 0) == NONE, "only the name of a group is used"
    desk.join("c", protocols=("sticky",))
    assert desk.said["c"]["error_code"] == INCONSISTENT_GROUP_PROTOCOL


def test_who_waits_is_told_that_another_broker_coordinates() -> None:
    desk, _, _ = two_members()
    desk.sync("b")
    desk.groups.give_up(16)
    assert desk.said["b"]["error_code"] == 16
    assert not desk.groups.groups


# Static members


def two_static(session: int = 1_000) -> tuple[Desk, str, str]:
    """Stable, in generation 2; `a` leads."""
    desk = Desk()
    desk.join("a", instance="first", session=session)
    first = desk.identity("a")
    desk.join("b", instance="second", session=session)
    desk.join("a", identity=first, instance="first", session=session)
    second = desk.identity("b")
    desk.sync("b")
    desk.sync("a", {first: b"1", second: b"2"})
    return desk, first, second


@pytest.mark.parametrize(("name", "instance", "part"), [("a", "first", b"1"), ("b", "second", b"2")])
def test_a_static_member_that_is_back_has_its_part_and_nobody_joins_again(
    name: str, instance: str, part: bytes
) -> None:
    desk, first, second = two_static()
    old, other = (first, second) if name == "a" else (second, first)
    desk.join(name, now=10, instance=instance)
    new = desk.identity(name)
    assert new != old
    said = desk.said[name]
    assert (said["generation_id"], said["leader"], said["members"]) == (2, first, []), "none is told to divide anew"
    assert desk.groups.heartbeat("g", other, 2, 10) == NONE
    desk.sync(name)
    assert desk.said[name]["assignment"] == part
    assert desk.groups.heartbeat("g", old, 2, 10, instance) == FENCED_INSTANCE_ID
    assert desk.groups.may_commit("g", old, 2, 10, instance) == FENCED_INSTANCE_ID
    assert desk.groups.heartbeat("g", new, 2, 10, instance) == NONE
    desk.join(name, now=10, identity=old, instance=instance)
    assert desk.said[name]["error_code"] == FENCED_INSTANCE_ID


def test_who_had_the_name_and_waits_is_fenced() -> None:
    desk, first, _ = two_static()
    desk.join("c")
    desk.join("a", identity=first, instance="first")
    waits = desk.said
    desk.groups.join(
        "g", "consumer", Member("", {"range": b"z"}, 100, 300, 5, instance="first"), "z", 5, lambda answer: None
    )
    assert waits["a"]["error_code"] == FENCED_INSTANCE_ID


def test_a_static_member_may_be_away_while_the_others_join_again() -> None:
    desk, first, second = two_static()
    desk.join("c", now=10, session=1_000)
    desk.join("a", now=10, identity=first, instance="first", session=1_000)
    assert "c" not in desk.said
    desk.groups.tick(310)
    kept = [("first", first, "a"), ("second", second, "b"), (None, desk.identity("c"), "c")]
    assert desk.said["a"]["members"] == [
        {"member_id": identity, "group_instance_id": instance, "metadata": name.encode()}
        for instance, identity, name in kept
    ], "its part is kept for it"
    assert desk.groups.heartbeat("g", second, 2, 320, "second") == ILLEGAL_GENERATION
    desk.groups.tick(1_400)
    assert desk.groups.heartbeat("g", second, 3, 1_400, "second") == UNKNOWN_MEMBER_ID, "its session is over"


def test_an_admin_removes_a_static_member_by_its_name() -> None:
    desk, first, second = two_static()
    assert desk.groups.leave("g", [(first, "second")], 10) == [FENCED_INSTANCE_ID]
    assert desk.groups.leave("g", [("", "second")], 10) == [NONE]
    assert desk.groups.heartbeat("g", second, 2, 10, "second") == UNKNOWN_MEMBER_ID
    assert desk.groups.heartbeat("g", first, 2, 10) == REBALANCE_IN_PROGRESS


def test_members_that_are_out_are_told_whatever_they_wait_for() -> None:
    desk = Desk()
    desk.join("a")
    desk.join("b")
    desk.join("a", identity=next(iter(desk.groups.groups["g"].members)))
    desk.sync("b")
    assert "b" not in desk.said
    desk.groups.tick(200)
    assert desk.said["b"]["error_code"] == REBALANCE_IN_PROGRESS, "who waits for its part shows that it lives"
    assert desk.groups.leave("g", [(next(iter(desk.groups.groups["g"].members)), "")], 210) == [NONE]


# What is committed

NOTES = st.text(st.characters(codec="utf-8"), max_size=20)
OFFSETS = st.dictionaries(
    st.builds(TopicPartition, st.text(st.characters(codec="utf-8"), max_size=9), st.integers(0, 2**31 - 1)),
    st.tuples(st.integers(0, 2**63 - 1), NOTES),
    min_size=1,
    max_size=5,
)


@given(st.lists(st.tuples(NOTES, OFFSETS), max_size=4))
def test_what_is_committed_is_found_in_the_log_and_the_last_word_counts(
    commits: list[tuple[str, dict[TopicPartition, tuple[int, str]]]],
) -> None:
    log, expected, found = b"", Committed(), Committed()
    for group, new in commits:
        log += batch_of(group, new, 1_700_000_000_000)
        expected[group] = expected.get(group, {}) | new
    learn(found, log)
    assert found == expected


def test_a_committed_offset_is_a_record_as_kafka_writes_it() -> None:
    batch = batch_of("g", {TopicPartition("t", 7): (300, "note")}, 5)
    (header,) = batches(batch, check=True)
    assert header.max_timestamp == 5
    ((key, value),) = clients.kafka_python_records(batch)
    assert key == struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 7)
    assert value == struct.pack(">hqih4sq", 3, 300, -1, 4, b"note", 5)


@pytest.mark.parametrize(
    ("group", "code"), [("", 0), ("Aa", 2112), ("BB", 2112), ("hello", 99162322), ("polygenelubricants", 0)]
)
def test_a_group_belongs_to_the_partition_that_javas_hash_says(group: str, code: int) -> None:
    assert partition_of(group, 2**30) == code, "the last of them is Integer.MIN_VALUE, which has no absolute value"
    assert partition_of(group, 50) == code % 50


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


def test_committed_offsets_survive_the_coordinator() -> None:
    with Cluster() as cluster:
        clients.create_topic(cluster.bootstrap, "t", 1, 2)
        cluster.in_sync("t")
        clients.Confluent(cluster.bootstrap, {"acks": "all"}).send_all("t", [b"%d" % n for n in range(60)])
        first = clients.confluent_group(cluster.bootstrap, "first", "t", 5)
        assert len(first) == 5
        lost = next(n for n in range(3) if cluster.leader(TOPIC, n) == 3)
        group = next(name for name in (f"g{n}" for n in range(99)) if partition_of(name, 3) == lost)
        assert clients.confluent_group(cluster.bootstrap, group, "t", 20) == [b"%d" % n for n in range(20)]
        cluster.kill(3)
        assert clients.confluent_group(cluster.bootstrap, group, "t", 20) == [b"%d" % n for n in range(20, 40)]
        assert cluster.leader(TOPIC, lost) != 3
        cluster.start(3)
        cluster.wait(lambda: all(len(p.isr) == 3 for p in cluster.partitions(TOPIC)), "all are in sync")
        assert clients.confluent_elect(cluster.bootstrap, TOPIC, lost) == ""
        assert clients.confluent_group(cluster.bootstrap, group, "t", 20) == [b"%d" % n for n in range(40, 60)]


def test_nobody_else_writes_what_is_committed(cluster: Cluster) -> None:
    producer = clients.Confluent(cluster.bootstrap, {"acks": "all", "retries": 0})
    producer.send(TOPIC, b"x")
    producer.producer.flush(10)
    assert producer.errors == ["TOPIC_EXCEPTION"]


def test_groups_are_described_to_an_admin(cluster: Cluster) -> None:
    clients.confluent_group(cluster.bootstrap, "described", "t", 5)
    assert clients.confluent_group_state(cluster.bootstrap, "described") == "EMPTY"
    assert clients.confluent_group_state(cluster.bootstrap, "of nobody") == "DEAD"


def test_two_members_share_the_partitions(cluster: Cluster) -> None:
    assert clients.confluent_shared(cluster.bootstrap, "shared", "t", 4) == [2, 2]
