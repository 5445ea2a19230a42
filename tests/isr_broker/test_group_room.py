"""What all groups of a broker may have together: how many, bytes of members and of committed offsets; it is given back.

Without these, names that take a client a few bytes could take the memory of a broker, and its time.
"""

from __future__ import annotations

import time
from random import Random

import attrs
import pytest
from tests.isr_broker.test_wire import asked, one_broker, said

from isr_broker.core.messages import Error, Millis, TopicPartition
from isr_broker.wire import protocol
from isr_broker.wire.group_room import OF_A_GROUP, GroupRoom, group_size, growth
from isr_broker.wire.group_state import Member
from isr_broker.wire.groups import (
    GROUP_MAX_SIZE_REACHED,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_SERVER_ERROR,
    Groups,
)
from isr_broker.wire.offset_retention import OffsetRetention
from isr_broker.wire.protocol import Answer
from isr_broker.wire.requests import Requests

SESSION: Millis = 100


class Coordinator:
    """Groups without a broker; `said` is what the last request was answered, empty if it waits."""

    def __init__(self, most_groups: int = 10**6, most_bytes: int = 10**9) -> None:
        self.groups = Groups(0, room=GroupRoom(most_groups, most_bytes))
        self.said: Answer = {}

    def _notes(self, answer: Answer) -> None:
        self.said = answer

    def join(
        self,
        name: str,
        metadata: bytes = b"",
        identity: str = "",
        now: Millis = 0,
        instance: str = "",
        new: bool = False,
    ) -> int:
        member = Member(identity, {"range": metadata}, SESSION, 300, now)
        self.said = {}
        self.groups.join(name, "consumer", member, "client", now, self._notes, needs_id=new)
        return int(str(self.said.get("error_code", 0)))

    def sync(self, name: str, identity: str, generation: int, parts: dict[str, bytes], now: Millis = 0) -> int:
        self.said = {}
        self.groups.sync(name, identity, generation, parts, now, self._notes)
        return int(str(self.said.get("error_code", 0)))

    @property
    def identity(self) -> str:
        return str(self.said["member_id"])


def test_so_many_groups_are_coordinated() -> None:
    """How many there are was bounded by nothing."""
    coordinator = Coordinator(most_groups=3)
    members: dict[str, str] = {}
    for name in ("a", "b", "c"):
        assert coordinator.join(name) == NONE
        members[name] = coordinator.identity
    assert coordinator.join("d") == GROUP_MAX_SIZE_REACHED
    assert coordinator.join("d", new=True) == GROUP_MAX_SIZE_REACHED
    assert coordinator.join("b", identity=members["b"]) == NONE, "who is in a group stays"
    assert coordinator.join("b") == NONE, "who joins one that is there begins none"
    assert coordinator.groups.leave("c", [(members["c"], "")], 0) == [NONE]
    assert coordinator.join("d") == NONE, "the place of a group without members is free"
    assert [*coordinator.groups.groups] == ["a", "b", "d"]


def test_members_of_all_groups_have_so_many_bytes() -> None:
    """Each of 1,000 groups had 900 KB of what its member said."""
    coordinator = Coordinator(most_bytes=500_000)
    codes = [coordinator.join(f"g{n}", bytes(100_000)) for n in range(6)]
    assert codes == [NONE] * 4 + [GROUP_MAX_SIZE_REACHED] * 2
    assert coordinator.join("small", bytes(10)) == NONE
    assert "g4" not in coordinator.groups.groups
    assert coordinator.groups.room.size <= 500_000


def test_a_member_that_says_more_than_there_is_room_for_stays_as_it_is() -> None:
    coordinator = Coordinator(most_bytes=200_000)
    assert coordinator.join("g", bytes(1_000)) == NONE
    identity = coordinator.identity
    assert coordinator.join("g", bytes(300_000), identity) == GROUP_MAX_SIZE_REACHED
    assert coordinator.groups.heartbeat("g", identity, 1, 0) == NONE
    assert coordinator.join("g", bytes(100_000), identity) == NONE
    assert coordinator.join("g", bytes(500), identity) == NONE, "less is always taken"


def test_parts_for_which_there_is_no_room_are_not_kept() -> None:
    coordinator = Coordinator(most_bytes=100_000)
    assert coordinator.join("g") == NONE
    identity = coordinator.identity
    assert coordinator.sync("g", identity, 1, {identity: bytes(200_000)}) == UNKNOWN_SERVER_ERROR
    assert coordinator.groups.heartbeat("g", identity, 1, 0) == REBALANCE_IN_PROGRESS
    assert coordinator.groups.room.size < 10_000
    assert coordinator.join("g", identity=identity) == NONE
    assert coordinator.sync("g", identity, 2, {identity: bytes(50_000)}) == NONE
    assert coordinator.groups.room.size > 50_000


@pytest.mark.parametrize("new", [False, True], ids=["members", "ids that nobody joins with"])
def test_what_nobody_is_heard_of_any_more_is_given_back(new: bool) -> None:
    coordinator = Coordinator(most_bytes=100_000)
    codes = [coordinator.join(f"g{n}", bytes(1_000), new=new) for n in range(100)]
    assert codes.count(GROUP_MAX_SIZE_REACHED) > 50
    assert codes[0] == (MEMBER_ID_REQUIRED if new else NONE)
    coordinator.groups.tick(SESSION)
    assert not coordinator.groups.groups
    assert (coordinator.groups.room.size, coordinator.groups.room.sizes) == (0, {})
    assert coordinator.join("g200") == NONE


def counted(coordinator: Coordinator) -> None:
    """The room is what the groups have, whatever was done to them."""
    groups = coordinator.groups
    sizes = {name: group_size(group) for name, group in groups.groups.items()}
    assert groups.room.sizes == sizes
    assert groups.room.size == sum(sizes.values())
    assert all(group.members or group.pending for group in groups.groups.values())


@pytest.mark.parametrize("seed", range(20))
def test_the_room_is_what_groups_have_whatever_is_done(seed: int) -> None:
    chance, coordinator, now = Random(seed), Coordinator(most_groups=4, most_bytes=60_000), 0
    groups, answers = coordinator.groups, list[Answer]()
    for _ in range(300):
        name = chance.choice("abcdef")
        group = groups.groups.get(name)
        members = [*group.members, *group.pending] if group is not None else []
        identity = chance.choice([*members, "", "nobody"])
        data = bytes(chance.choice((0, 10, 5_000, 40_000)))
        match chance.randrange(6):
            case 0 | 1:
                instance = chance.choice(("", "", "i", "j"))
                member = Member(identity, {"range": data}, SESSION, 300, now, instance=instance)
                groups.join(name, "consumer", member, "c", now, answers.append, needs_id=chance.random() < 0.5)
            case 2:
                generation = group.generation if group is not None else 1
                parts = dict.fromkeys(members, data)
                groups.sync(name, identity, generation, parts, now, answers.append)
            case 3:
                groups.leave(name, [(identity, ""), ("", "i")][: chance.randint(1, 2)], now)
            case 4:
                groups.heartbeat(name, identity, 1, now)
            case _:
                now += chance.choice((1, 30, 200))
                groups.tick(now)
        counted(coordinator)
    for _ in range(50):
        now += 1_000
        groups.tick(now)
    assert (groups.room.size, groups.groups, groups.next_alarm) == (0, {}, {})


def test_another_coordinator_takes_the_groups_and_the_room_is_given_back() -> None:
    coordinator = Coordinator()
    coordinator.join("g", bytes(1_000))
    coordinator.groups.give_up(16)
    assert coordinator.groups.room.size == 0
    assert coordinator.groups.deadline() is None


def test_a_timer_looks_at_the_group_that_it_is_for() -> None:
    """Every timer looked at all members of all groups: with 2,000 groups a broker did little else."""
    coordinator = Coordinator()
    for n in range(2_000):
        coordinator.join(f"g{n}", now=n)
    began, ticks = time.process_time(), 0
    while (at := coordinator.groups.deadline()) is not None:
        coordinator.groups.tick(at)
        ticks += 1
    assert not coordinator.groups.groups
    assert ticks >= 2_000
    assert time.process_time() - began < 2


def test_alarms_of_groups_that_are_gone_are_forgotten() -> None:
    coordinator = Coordinator()
    for n in range(5_000):
        coordinator.join(f"g{n}", now=n)
        coordinator.groups.leave(f"g{n}", [(coordinator.identity, "")], n)
    assert len(coordinator.groups.alarms) < 1_100
    assert not coordinator.groups.next_alarm


# What is committed


def commits(requests: Requests, group: str, rows: int = 1, note: str = "", now: Millis = 10_000) -> str:
    partitions = [{"partition_index": n, "committed_offset": 5, "committed_metadata": note} for n in range(rows)]
    fields: Answer = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "t", "partitions": partitions}],
    }
    frame = said(requests, protocol.ask(protocol.OFFSET_COMMIT, 2, 1, "test", fields), now)
    assert frame is not None
    answer = protocol.parse_answer(protocol.OFFSET_COMMIT, 2, frame[4:]).body
    return Error(answer.all("topics")[0].all("partitions")[0].number("error_code")).name


SMALL = {"insync.offsets.max.bytes": "20000"}


def test_what_groups_have_committed_has_so_many_bytes() -> None:
    requests = one_broker(changed=SMALL)
    names = [f"g{n}" for n in range(30)]
    codes = [commits(requests, name, note="x" * 1_000) for name in names]
    refused = codes.count("INVALID_COMMIT_OFFSET_SIZE")
    assert codes == ["NONE"] * (30 - refused) + ["INVALID_COMMIT_OFFSET_SIZE"] * refused
    assert 10 < refused < 20
    _, room = requests.groups.rooms
    assert 15_000 < room.size <= 20_000
    assert room.reservations == 0
    assert commits(requests, "g0", note="y" * 1_000) == "NONE", "what is there may change"
    asked(requests, protocol.DELETE_GROUPS, 0, {"groups_names": names[:2]})
    assert commits(requests, "g29", note="x" * 1_000) == "NONE"


def test_what_is_on_its_way_counts_too() -> None:
    requests = one_broker(changed=SMALL)
    commits(requests, "first")
    _, room = requests.groups.rooms
    room.reservations = 20_000
    assert commits(requests, "g") == "INVALID_COMMIT_OFFSET_SIZE"
    assert commits(requests, "first") == "NONE"


def test_so_many_groups_have_committed_something() -> None:
    requests = one_broker(changed={"insync.groups.max": "2"})
    assert [commits(requests, name) for name in ("a", "b", "c", "a")] == [
        "NONE",
        "NONE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "NONE",
    ]


def test_the_next_coordinator_counts_what_it_reads() -> None:
    requests = one_broker()
    for n in range(20):
        commits(requests, f"g{n % 7}", note="x" * n)
    _, room = requests.groups.rooms
    (part,) = requests.groups.parts.values()
    assert room.size == sum(growth({}, name, offsets) for name, offsets in part.offsets.committed.items()) > 0
    size = room.size
    part.give_up()
    assert (room.size, room.sizes) == (0, {})
    requests.groups.parts.clear()
    assert commits(requests, "g0", note="x" * 14) == "NONE", "as it was"
    assert room.size == size


def test_what_nobody_uses_is_forgotten_after_its_time() -> None:
    """offsets.retention.minutes; or names that nobody will use again would fill the room for good."""
    minute = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    requests = one_broker(changed=minute)
    for name in ("idle", "busy", "member"):
        commits(requests, name)
    join: Answer = {
        "group_id": "member",
        "session_timeout": 1_800_000,
        "rebalance_timeout": 1_800_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    said(requests, protocol.ask(protocol.JOIN_GROUP, 2, 1, "a", join))
    (part,) = requests.groups.parts.values()

    def ticks(begin: Millis, end: Millis) -> None:
        for now in range(begin, end, 500):
            requests.groups.tick(now)
            requests.runtime.tick(now)

    ticks(10_000, 60_000)
    assert sorted(part.offsets.committed) == ["busy", "idle", "member"]
    commits(requests, "busy", now=60_000)
    ticks(60_000, 80_000)
    assert sorted(part.offsets.committed) == ["busy", "member"]
    ticks(80_000, 130_000)
    assert sorted(part.offsets.committed) == ["member"]
    assert [*requests.groups.rooms[1].sizes] == ["member"]


def test_a_group_is_in_use_as_long_as_it_has_members() -> None:
    retention, members = OffsetRetention(100, 10, 0), {"a"}
    assert retention.idle_groups(["a", "b"], members.__contains__, 0) == []
    assert retention.idle_groups(["a", "b"], members.__contains__, 5) == [], "once in an interval"
    assert retention.idle_groups(["a", "b"], members.__contains__, 100) == ["b"]
    members.clear()
    assert retention.idle_groups(["a"], members.__contains__, 199) == []
    assert retention.idle_groups(["a"], members.__contains__, 210) == ["a"]
    assert [*retention.used_at] == ["a"], "who is gone is forgotten"


def test_a_group_without_anybody_takes_what_a_group_takes() -> None:
    """The estimates are for what the values take: within a factor of two."""
    coordinator = Coordinator()
    coordinator.join("g", bytes(100))
    assert OF_A_GROUP < coordinator.groups.room.size < 4_000
    tp = TopicPartition("t", 0)
    assert 400 < growth({}, "g", {tp: (1, "")}) < 600
    assert growth({"g": {tp: (1, "note")}}, "g", {tp: None}) < 0
    room = attrs.evolve(coordinator.groups.room)
    room.add("h", 5)
    room.add("h", -5)
    assert "h" not in room.sizes
