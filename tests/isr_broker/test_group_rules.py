"""The rules of the classic protocol that Kafka's tests assert (GroupMetadataManagerTest), one claim each.

MEMBER_ID_REQUIRED (KIP-394), the deadline of SyncGroup, members that join again unchanged, and bounds.
"""

from __future__ import annotations

from typing import cast

import attrs
import confluent_kafka
import pytest
from tests.isr_broker.test_groups import Desk, two_static
from tests.isr_broker.test_wire import asked, one_broker
from tests.support import clients
from tests.support.clusters import QUICK, Cluster

from isr_broker.wire import protocol
from isr_broker.wire.group_requests import COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT
from isr_broker.wire.group_state import NEW_MEMBER_MS
from isr_broker.wire.groups import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    Member,
)
from isr_broker.wire.protocol import Answer


class Room(Desk):
    """A group whose members are told their ids first, as all are that ask with a version since 4."""

    def enters(self, name: str, now: int = 0, **more: object) -> str:
        """A new member asks for its id, and joins with it."""
        self.ask(name, now)
        identity = self.identity(name)
        self.join(name, now, identity=identity)
        return identity

    def ask(self, name: str, now: int = 0, session: int = 100) -> None:
        member = Member("", {"range": name.encode()}, session_ms=session, rebalance_ms=300, heard_at=now)
        answer = self.said.__setitem__
        self.groups.join("g", "consumer", member, name, now, lambda a: answer(name, a), needs_id=True)

    def stable(self, *names: str, now: int = 0) -> list[str]:
        """So many members, each with a part; the first leads."""
        identities = [self.enters(name, now) for name in names]
        if len(names) > 1:
            self.join(names[0], now, identity=identities[0])
        generation = {int(str(self.said[name]["generation_id"])) for name in names}
        assert len(generation) == 1
        for name in reversed(names):
            self.sync(name, {i: n.encode() for i, n in zip(identities, names, strict=True)}, now)
        assert [self.said[name]["assignment"] for name in names] == [name.encode() for name in names]
        return identities

    @property
    def group_state(self) -> str:
        told = self.groups.describe_group("g")
        return "" if told is None else str(told["group_state"])


# MEMBER_ID_REQUIRED


def test_a_new_member_is_told_its_id_and_joins_with_it() -> None:
    """testDynamicMembersJoinGroup..., testJoinGroupUnknownMemberNewGroup."""
    room = Room()
    room.ask("a")
    assert room.error("a") == MEMBER_ID_REQUIRED
    assert room.group_state == "Empty", "it is no member yet"
    identity = room.identity("a")
    assert identity
    room.join("a", identity=identity)
    assert (room.said["a"]["member_id"], room.said["a"]["generation_id"]) == (identity, 1)


def test_a_client_that_asks_twice_leaves_nobody_behind() -> None:
    """What KIP-394 is for: a client that gave up waiting was a second member, for which all waited."""
    room = Room()
    first = room.stable("a")[0]
    for now in (1, 2, 3):
        room.ask("b", now)
    assert room.group_state == "Stable", "nobody joins again for one that has not joined"
    assert len(room.groups.groups["g"].members) == 1
    assert room.groups.heartbeat("g", first, 1, 5) == NONE


def test_an_id_that_nobody_joins_with_is_forgotten() -> None:
    """testHeartbeatExpirationShouldRemovePendingMember."""
    room = Room()
    room.ask("a")
    identity = room.identity("a")
    assert room.groups.deadline() == 100
    room.groups.tick(100)
    assert not room.groups.groups
    room.join("a", now=101, identity=identity)
    assert room.error("a") == UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_one_that_has_its_id_until_that_is_over() -> None:
    """testJoinGroupCompletionWhenPendingMemberJoins, ...TimesOut."""
    for joins in (True, False):
        room = Room()
        first = room.stable("a")[0]
        room.ask("b", 10)
        pending = room.identity("b")
        room.join("a", 20, identity=first)
        assert "a" not in room.said, "the leader has joined again, and another is expected"
        if joins:
            room.join("b", 30, identity=pending)
        else:
            room.groups.tick(109)
            assert "a" not in room.said
            room.groups.tick(110)
        assert room.said["a"]["generation_id"] == 2
        members = room.said["a"]["members"]
        assert isinstance(members, list)
        assert len(cast("list[object]", members)) == (2 if joins else 1)


def test_one_that_has_its_id_may_leave() -> None:
    """testPendingMembersLeaveGroup."""
    room = Room()
    first = room.stable("a")[0]
    room.ask("b", 10)
    assert room.groups.leave("g", [(room.identity("b"), "")], 11) == [NONE]
    assert room.group_state == "Stable"
    room.join("a", 20, identity=first)
    assert room.said["a"]["generation_id"] == 2


def test_a_static_member_needs_no_id_first() -> None:
    """testStaticMemberJoinAsFirstMember; one that says an id and a name is refused."""
    room = Room()
    member = Member("", {"range": b""}, session_ms=100, rebalance_ms=300, heard_at=0, instance="i")
    room.groups.join("g", "consumer", member, "a", 0, lambda a: room.said.__setitem__("a", a), needs_id=True)
    assert room.said["a"]["generation_id"] == 1
    room.ask("b")
    room.join("b", identity=room.identity("b"), instance="j")
    assert room.error("b") == UNKNOWN_SERVER_ERROR


# The deadline of SyncGroup


@pytest.mark.parametrize("silent", [("a",), ("b",), ("a", "b"), ("b", "c")])
def test_who_does_not_ask_for_its_part_in_time_is_out(silent: tuple[str, ...]) -> None:
    """testRebalanceTimesOutWhenSyncRequestIsNotReceived, ...FromFollowers, ...FromLeaders."""
    room = Room()
    names = ("a", "b", "c")
    identities = dict(zip(names, room.stable(*names), strict=True))
    for name in names:
        room.join(name, 10, identity=identities[name])
    generation = room.groups.groups["g"].generation
    for name in names:
        if name not in silent:
            room.sync(name, now=20)
    for now in (90, 180, 270):
        for identity in identities.values():
            assert room.groups.heartbeat("g", identity, generation, now) == NONE, "all of them live"
        room.groups.tick(now)
    assert room.group_state == ("CompletingRebalance" if "a" in silent else "Stable")
    room.groups.tick(310)
    assert room.group_state == "PreparingRebalance"
    for name in names:
        expected = UNKNOWN_MEMBER_ID if name in silent else REBALANCE_IN_PROGRESS
        assert room.groups.heartbeat("g", identities[name], generation, 311) == expected
        if "a" in silent and name not in silent:
            assert room.error(name) == REBALANCE_IN_PROGRESS


def test_no_deadline_is_left_when_all_have_their_parts() -> None:
    """testRebalanceDoesNotTimeOutWhenAllSyncAreReceived."""
    room = Room()
    first, second = room.stable("a", "b")
    for now in (90, 180, 270, 360):
        for identity in (first, second):
            assert room.groups.heartbeat("g", identity, room.groups.groups["g"].generation, now) == NONE
        room.groups.tick(now)
    assert room.group_state == "Stable"


def test_who_waits_for_the_leader_is_not_out_when_its_session_is_over() -> None:
    """ClassicGroupMember.hasSatisfiedHeartbeat; from its answer on its session begins anew."""
    room = Room()
    first, second = room.stable("a", "b")
    for name, identity in (("a", first), ("b", second)):
        room.join(name, 10, identity=identity)
    generation = room.groups.groups["g"].generation
    room.sync("b", now=20)
    for now in (100, 200):
        assert room.groups.heartbeat("g", first, generation, now) == NONE
        room.groups.tick(now)
    room.sync("a", {second: b"2"}, 205)
    assert room.said["b"]["assignment"] == b"2"
    room.groups.tick(290)
    assert room.groups.heartbeat("g", second, generation, 300) == NONE


def test_a_new_member_waits_five_minutes_and_not_for_ever() -> None:
    """testNewMemberJoinExpiration: it cannot show that it lives, for it does not know its id."""
    desk = Desk()
    desk.join("a", session=10**9)
    desk.groups.groups["g"].members[desk.identity("a")].rebalance_ms = 10**9
    desk.join("b", session=100)
    desk.groups.tick(NEW_MEMBER_MS - 1)
    assert "b" not in desk.said
    desk.groups.tick(NEW_MEMBER_MS)
    assert (desk.error("b"), desk.said["b"]["member_id"]) == (UNKNOWN_MEMBER_ID, "")


# Members that join again


def test_a_follower_that_wants_what_it_wanted_rebalances_nobody() -> None:
    """testJoinGroupFromUnchangedFollowerDoesNotRebalance, testJoinGroupExistingMemberDoesNotTriggerRebalance..."""
    room = Room()
    first, second = room.stable("a", "b")
    generation = room.groups.groups["g"].generation
    room.join("b", 10, identity=second)
    said = room.said["b"]
    assert (said["generation_id"], said["leader"], said["members"]) == (generation, first, [])
    assert room.group_state == "Stable"
    assert room.groups.heartbeat("g", first, generation, 20) == NONE
    room.sync("b", now=30)
    assert room.said["b"]["assignment"] == b"b"


def test_a_leader_that_joins_again_and_a_follower_that_wants_something_else_rebalance_all() -> None:
    """testJoinGroupFromUnchangedLeaderShouldRebalance, testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance."""
    for name, protocols in (("a", ("range",)), ("b", ("range", "sticky"))):
        room = Room()
        first, second = room.stable("a", "b")
        room.join(name, 10, identity=first if name == "a" else second, protocols=protocols)
        assert room.group_state == "PreparingRebalance"
        assert name not in room.said


def test_who_lost_the_answer_gets_it_again_while_the_parts_are_divided() -> None:
    room = Room()
    first, second = room.stable("a", "b")
    room.join("a", 10, identity=first)
    room.join("b", 10, identity=second)
    told = dict(room.said)
    room.join("a", 20, identity=first)
    room.join("b", 20, identity=second)
    assert room.said == told, "the leader with all members, the other with none"
    assert room.group_state == "CompletingRebalance"


# What members have in common


def test_a_member_keeps_a_protocol_that_all_have() -> None:
    """ClassicGroup.supportsProtocols counts the member itself, too: testJoinGroupSecondJoinInconsistentProtocol."""
    room = Room()
    first = room.stable("a")[0]
    room.join("a", identity=first, protocols=("sticky",))
    assert room.error("a") == INCONSISTENT_GROUP_PROTOCOL
    room.join("a", identity=first, protocols=("sticky", "range"))
    assert room.said["a"]["protocol_name"] == "sticky"


def test_the_protocol_is_the_one_that_most_members_like_best() -> None:
    """ClassicGroup.selectProtocol."""
    desk = Desk(delay=10)
    desk.join("a", protocols=("range", "sticky"))
    desk.join("b", protocols=("sticky", "range"))
    desk.join("c", protocols=("sticky", "own", "range"))
    for now in (10, 20, 30):
        desk.groups.tick(now)
    assert {desk.said[name]["protocol_name"] for name in "abc"} == {"sticky"}


@pytest.mark.parametrize(("kind", "protocols"), [("", ("range",)), ("consumer", ()), ("connect", ("range",))])
def test_who_has_nothing_in_common_is_refused(kind: str, protocols: tuple[str, ...]) -> None:
    """testJoinGroupWithEmptyProtocolType, ...EmptyGroupProtocol, testClassicGroupJoinInconsistentProtocolType."""
    room = Room()
    if kind == "connect":
        room.stable("a")
    said: list[Answer] = []
    member = Member("", dict.fromkeys(protocols, b""), session_ms=100, rebalance_ms=300, heard_at=0)
    room.groups.join("g", kind, member, "b", 0, said.append)
    assert [a["error_code"] for a in said] == [INCONSISTENT_GROUP_PROTOCOL]


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        (("", ""), None),
        (("consumer", "range"), None),
        (("connect", "range"), INCONSISTENT_GROUP_PROTOCOL),
        (("consumer", "sticky"), INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_member_that_was_told_another_protocol_gets_no_part(chosen: tuple[str, str], error: int | None) -> None:
    """testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent, ...NameIsInconsistent (KIP-559)."""
    room = Room()
    first = room.stable("a")[0]
    said: list[Answer] = []
    room.groups.sync("g", first, 1, {}, 0, said.append, "", chosen)
    assert [a.get("error_code") for a in said] == [error]


def test_who_says_another_members_name_for_life_is_fenced_also_to_join_and_to_leave() -> None:
    """testStaticMemberRejoinAsFollowerWithMismatchedInstanceId, testLeaveGroupWithFencedInstanceId."""
    desk, first, second = two_static()
    desk.join("a", identity=first, instance="second")
    assert desk.error("a") == FENCED_INSTANCE_ID
    desk.join("a", identity=first, instance="third")
    assert desk.error("a") == UNKNOWN_MEMBER_ID
    assert desk.groups.leave("g", [(first, "second")], 0) == [FENCED_INSTANCE_ID]
    assert desk.groups.leave("g", [("", "third")], 0) == [UNKNOWN_MEMBER_ID]
    assert desk.groups.heartbeat("g", second, 1, 0, "second") == ILLEGAL_GENERATION


# Bounds


def test_a_full_group_takes_nobody_but_its_members() -> None:
    """testJoinGroupShouldReceiveErrorIfGroupOverMaxSize, testDynamicMembersJoinGroupWithMaxSizeAndRequired..."""
    room = Room()
    room.groups.most_members = 2
    first, second = room.stable("a", "b")
    room.ask("c")
    assert (room.error("c"), room.said["c"]["member_id"]) == (GROUP_MAX_SIZE_REACHED, "")
    room.join("b", 10, identity=second)
    assert room.said["b"]["generation_id"] == room.groups.groups["g"].generation
    room.join("a", 10, identity=first)
    room.ask("c", 11)
    assert room.error("c") == MEMBER_ID_REQUIRED, "while they join again there may be room"
    late = room.identity("c")
    room.join("b", 12, identity=second)
    room.join("c", 13, identity=late)
    assert room.error("c") == GROUP_MAX_SIZE_REACHED
    assert room.error("a") == NONE, "the two go on without the third, which nobody expects any more"


def test_the_last_to_join_again_is_out_where_a_group_has_become_too_large() -> None:
    """testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize."""
    room = Room()
    identities = dict(zip("abc", room.stable("a", "b", "c"), strict=True))
    room.groups.most_members = 2
    room.join("a", 10, identity=identities["a"])
    room.join("b", 10, identity=identities["b"])
    room.join("c", 10, identity=identities["c"])
    assert room.error("c") == GROUP_MAX_SIZE_REACHED
    assert len(room.groups.groups["g"].members) == 2
    assert room.said["a"]["generation_id"] == room.said["b"]["generation_id"]


def test_what_members_say_and_have_is_bounded() -> None:
    """In Kafka it is one record, which is no larger than the topic takes."""
    room = Room()
    room.groups.most_bytes = 100
    room.join("a", protocols=("x" * 200,))
    assert room.error("a") == UNKNOWN_SERVER_ERROR
    assert not room.groups.groups
    first, second = room.stable("a", "b")
    room.join("a", 10, identity=first)
    room.join("b", 10, identity=second)
    room.sync("b", now=10)
    room.sync("a", {first: b"p" * 60, second: b"p" * 60}, 20)
    assert {room.error(name) for name in "ab"} == {UNKNOWN_SERVER_ERROR}
    assert room.group_state == "PreparingRebalance"


# The requests


def code(key: int, version: int, **fields: object) -> int:
    requests = one_broker()
    row = {"group_id": "g", "member_id": "", "session_timeout": 6_000, "rebalance_timeout": 6_000, **fields}
    fields = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}], **row}
    return asked(requests, key, version, fields).number("error_code")


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (protocol.JOIN_GROUP, 4),
        (protocol.SYNC_GROUP, 3),
        (protocol.HEARTBEAT, 3),
        (protocol.LEAVE_GROUP, 2),
        (protocol.OFFSET_DELETE, 0),
    ],
)
def test_a_group_of_members_has_a_name(key: int, version: int) -> None:
    assert code(key, version, group_id="") == INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("session", "error"),
    [
        (5_999, INVALID_SESSION_TIMEOUT),
        (6_000, MEMBER_ID_REQUIRED),
        (1_800_000, MEMBER_ID_REQUIRED),
        (1_800_001, INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_session_is_as_long_as_the_broker_allows(session: int, error: int) -> None:
    assert code(protocol.JOIN_GROUP, 4, session_timeout=session) == error


def test_only_since_version_4_a_new_member_needs_an_id() -> None:
    requests = one_broker(changed={"group.initial.rebalance.delay.ms": "0"})
    row = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}], "member_id": ""}
    for version, error in ((3, 0), (4, MEMBER_ID_REQUIRED), (5, MEMBER_ID_REQUIRED)):
        fields: Answer = {"group_id": f"g{version}", "session_timeout": 6_000, "rebalance_timeout": 6_000, **row}
        assert asked(requests, protocol.JOIN_GROUP, version, fields).number("error_code") == error


def test_a_heartbeat_is_well_while_the_coordinator_reads_its_log() -> None:
    """GroupCoordinatorServiceTest.testHeartbeatCoordinatorLoadInProgress...: else all would join again."""
    requests = one_broker()
    row: Answer = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    assert asked(requests, protocol.HEARTBEAT, 3, row).number("error_code") == UNKNOWN_MEMBER_ID
    for part in requests.groups.parts.values():
        part.offsets.end += 1
    assert asked(requests, protocol.SYNC_GROUP, 3, row).number("error_code") == COORDINATOR_LOAD_IN_PROGRESS
    assert asked(requests, protocol.HEARTBEAT, 3, row).number("error_code") == NONE


@pytest.mark.sockets
def test_librdkafka_is_told_that_a_group_is_full() -> None:
    with Cluster(settings=attrs.evolve(QUICK, group_max_size=1)) as cluster:
        clients.create_topic(cluster.bootstrap, "t", 2, 2)
        cluster.in_sync("t")
        consumers = [
            confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"}) for _ in range(2)
        ]
        consumers[0].subscribe(["t"])
        for _ in range(100):
            consumers[0].poll(0.1)
            if consumers[0].assignment():
                break
        assert len(consumers[0].assignment()) == 2
        consumers[1].subscribe(["t"])
        errors: list[str] = []
        for _ in range(100):
            for consumer in consumers:
                found = consumer.poll(0.05)
                error = found.error() if found is not None else None
                errors += [str(error.name())] if error is not None else []
            if errors:
                break
        assert errors[:1] == ["GROUP_MAX_SIZE_REACHED"]
        assert len(consumers[0].assignment()) == 2
        for consumer in consumers:
            consumer.close()
