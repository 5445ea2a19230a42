"""Consumer groups: who is in one, who reads which partitions, and how far they have read (GroupMetadataManager).

The classic protocol: members join, the coordinator waits for all of them, one of them divides the partitions, all learn
their part; whoever is not heard of is out, and they join again. No clock: `tick` and `deadline`.

A static member (KIP-345) has a name for life, `instance`: who joins by that name takes the place, and the part, of who
had it before, and nobody joins again for it.

What is committed is kept in a topic (`offsets_topic`). Who is in a group is not: when another broker becomes the
coordinator the members join again, where Kafka's would not notice.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import attrs

from isr_broker.core.messages import Millis
from isr_broker.storage.offsets_topic import Committed
from isr_broker.wire.group_room import OF_A_GROUP, GroupRoom, group_size, member_size
from isr_broker.wire.group_state import STATE_NAMES as STATE_NAMES
from isr_broker.wire.group_state import Group as Group
from isr_broker.wire.group_state import Member as Member
from isr_broker.wire.group_state import Reply as Reply
from isr_broker.wire.group_state import State
from isr_broker.wire.protocol import Answer

NONE: Final = 0
UNKNOWN_SERVER_ERROR: Final = -1
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82

CONSUMERS: Final = "consumer"
"""What groups are called whose members say which topics they read (ConsumerProtocol.PROTOCOL_TYPE)."""

_FEW_ALARMS: Final = 1_000
"""Alarms that are not wanted any more and yet kept, beside one for each group."""


@attrs.define
class Groups:
    """The groups of one coordinator, with what they have `committed`.

    - `initial_delay_ms`: how long the first member of a group waits for others.
    - `most_members`, `most_bytes`: of one group; bytes of what its members say and of their parts.
    - `room`: for the members of all groups of the broker.
    - `alarms`: a heap of when something is due in a group, or was to be; `next_alarm` is the earliest of each. Who is
      heard of again only puts off his own end, so that what runs with every request does not grow with members, nor
      what runs with every timer with groups.
    """

    initial_delay_ms: Millis
    committed: Committed = attrs.field(factory=Committed)
    most_members: int = 2**31 - 1
    most_bytes: int = 2**31 - 1
    groups: dict[str, Group] = attrs.field(factory=dict[str, Group])
    room: GroupRoom = attrs.field(factory=GroupRoom)
    members: int = 0
    alarms: list[tuple[Millis, str]] = attrs.field(factory=list[tuple[Millis, str]])
    next_alarm: dict[str, Millis] = attrs.field(factory=dict[str, Millis])

    # Questions

    def describe_group(self, name: str) -> Answer | None:
        """A group as DescribeGroups tells of it; None if unknown."""
        return self.groups.get(name, Group()).description(name) if self.knows(name) else None

    def knows(self, name: str) -> bool:
        """The group has members, or has committed something."""
        return name in self.groups or name in self.committed

    def may_be_deleted(self, name: str) -> int:
        """DeleteGroups: nobody may be in it (ClassicGroup.validateDeleteGroup)."""
        if not self.knows(name):
            return GROUP_ID_NOT_FOUND
        return NON_EMPTY_GROUP if self.groups.get(name, Group()).members else NONE

    def may_lose_offsets(self, name: str) -> int:
        """OffsetDelete: members may be in it if they say what they read (ClassicGroup.validateOffsetDelete)."""
        if not self.knows(name):
            return GROUP_ID_NOT_FOUND
        group = self.groups.get(name, Group())
        return NON_EMPTY_GROUP if group.members and group.kind != CONSUMERS else NONE

    def reads(self, name: str, topics: Collection[str]) -> set[str]:
        """Those of the topics that a member of the group says it reads (ClassicGroup.isSubscribedToTopic).

        All of them if a member does not say so readably. What members say is read once, however many topics there are.
        """
        group = self.groups.get(name, Group())
        if group.kind != CONSUMERS:
            return set()
        subscriptions = set[str]()
        for member in group.members.values():
            subscription = _subscribed(member.protocols.get(group.protocol, b""))
            if subscription is None:
                return set(topics)
            subscriptions |= subscription
        return subscriptions.intersection(topics)

    # Joining

    def join(
        self, name: str, kind: str, member: Member, client: str, now: Millis, reply: Reply, needs_id: bool = False
    ) -> None:
        """A member joins, for the first time or again; it is answered when all have (JoinGroup).

        `needs_id`: a new member is told its id first, and joins with that (KIP-394). A client that gives up waiting
        and joins once more is then the same member, and not another.
        """
        identity, group = member.identity, self.groups.get(name, Group())
        if identity and name not in self.groups:
            reply({"error_code": UNKNOWN_MEMBER_ID, "member_id": identity})
        elif not self._has_room(group, member):
            group.remove(identity)
            reply({"error_code": GROUP_MAX_SIZE_REACHED, "member_id": ""})
        elif not self.room.has(name, self._growth(name, group, member)):
            reply({"error_code": GROUP_MAX_SIZE_REACHED, "member_id": identity})
        elif not group.supports(kind, member.protocols):
            reply({"error_code": INCONSISTENT_GROUP_PROTOCOL, "member_id": identity})
        elif sum(_size(m) for m in group.members.values() if m.identity != identity) + _size(member) > self.most_bytes:
            reply({"error_code": UNKNOWN_SERVER_ERROR, "member_id": identity})
        else:
            self.groups[name] = group
            member.client = client
            if identity:
                self._joins_again(group, kind, member, now, reply)
            else:
                self._joins_first(group, kind, member, now, reply, needs_id)
        self._goes_on(name, group, now)

    def _has_room(self, group: Group, member: Member) -> bool:
        """Who is in the group stays, as long as it has not to join again; others find room or do not.

        group.max.size; GroupMetadataManager.acceptJoiningMember.
        """
        before = group.members.get(member.identity)
        if group.state is State.EMPTY:
            return True
        if group.state is State.JOINING:
            waiting = sum(m.joining is not None for m in group.members.values())
            return (before is not None and before.joining is not None) or waiting < self.most_members
        return before is not None or len(group.members) < self.most_members

    def _growth(self, name: str, group: Group, member: Member) -> int:
        """By how many bytes all groups grow when a member joins, for the first time or again."""
        before = group.members.get(member.identity) or group.static(member.instance)
        begins = OF_A_GROUP if name not in self.groups else 0
        return begins + member_size(member) - (member_size(before) if before is not None else 0)

    def _joins_first(self, group: Group, kind: str, member: Member, now: Millis, reply: Reply, needs_id: bool) -> None:
        self.members += 1
        member.identity = f"{member.instance or member.client}-{now}-{self.members}"
        before = group.static(member.instance)
        if before is not None:
            self._replaces(group, before, member, now, reply)
        elif needs_id and not member.instance:
            group.pending[member.identity] = now + member.session_ms
            reply({"error_code": MEMBER_ID_REQUIRED, "member_id": member.identity})
        else:
            self._adds(group, kind, member, now, reply)

    def _adds(self, group: Group, kind: str, member: Member, now: Millis, reply: Reply) -> None:
        """A new member (addMemberThenRebalanceOrCompleteJoin)."""
        if not group.members:
            group.kind = kind
        group.more = group.first and group.state is State.JOINING
        member.joining, member.heard_at, member.new = reply, now, True
        group.add(member)
        group.leader = group.leader or member.identity
        self._rejoin(group, now)

    def _joins_again(self, group: Group, kind: str, member: Member, now: Millis, reply: Reply) -> None:
        """A member that knows its id joins (classicGroupJoinExistingMember).

        Nobody else joins again for one that wants what it wanted, and may only have lost an answer; but a leader that
        does so has seen something that the others have not.
        """
        identity = member.identity
        if identity in group.pending:
            if member.instance:
                reply({"error_code": UNKNOWN_SERVER_ERROR, "member_id": identity})
                return
            del group.pending[identity]
            self._adds(group, kind, member, now, reply)
            return
        error = self._membership_error(group, identity, member.instance)
        before = group.members.get(identity)
        if error or before is None or group.state is State.EMPTY:
            reply({"error_code": error or UNKNOWN_MEMBER_ID, "member_id": identity})
            return
        leads = group.state is State.STABLE and identity == group.leader
        if group.state is not State.JOINING and not leads and before.wants_the_same(member):
            reply(group.join_answer(before))
            return
        before.protocols, before.joining = member.protocols, reply
        before.session_ms, before.rebalance_ms, before.client = member.session_ms, member.rebalance_ms, member.client
        self._rejoin(group, now)

    def _replaces(self, group: Group, before: Member, member: Member, now: Millis, reply: Reply) -> None:
        """A static member is back: it has the part of who had its name, who is fenced (replaceStaticMember).

        All others join again only if another protocol is chosen for it, or the parts are being divided.
        """
        before.refuse_requests(FENCED_INSTANCE_ID)
        member.assignment, member.heard_at = before.assignment, now
        group.replace(before, member)
        if before.identity in group.partless:
            group.partless = group.partless - {before.identity} | {member.identity}
        leader = group.leader
        if leader == before.identity:
            group.leader = member.identity
        if group.state is State.STABLE and group.choose_protocol() == group.protocol:
            # A leader that has nothing to divide is told that it is none (before version 9).
            reply(group.join_answer(member, leader, skips=True))
            return
        member.joining = reply
        self._rejoin(group, now)

    def _rejoin(self, group: Group, now: Millis) -> None:
        """Everybody has to join again (prepareRebalance)."""
        if group.state is State.JOINING:
            return
        for member in group.members.values():
            if group.state is State.SYNCING:
                member.assignment = b""
            if member.syncing is not None:
                member.syncing({"error_code": REBALANCE_IN_PROGRESS})
                member.syncing, member.heard_at = None, now
        group.partless.clear()
        group.first, group.state = group.state is State.EMPTY, State.JOINING
        group.deadline = now + group.rebalance_ms()
        if group.first:
            group.more, group.not_before = False, now + self.initial_delay_ms
            group.more_ms = max(group.rebalance_ms() - self.initial_delay_ms, 0)

    def _complete_join(self, group: Group, now: Millis) -> None:
        """If all have joined, they are a generation; the leader learns of all others, to divide the partitions.

        maybeCompleteJoinPhase, tryCompleteInitialRebalanceElseSchedule, completeClassicGroupJoin.
        """
        if group.state is not State.JOINING or (group.first and now < group.not_before):
            return
        if group.first and group.more and group.more_ms:
            # Somebody has come since: a group of many is not divided anew for each of them.
            group.more, group.not_before = False, now + min(self.initial_delay_ms, group.more_ms)
            group.more_ms = max(group.more_ms - self.initial_delay_ms, 0)
            if now < group.not_before:
                return
        if not group.first and not group.everybody_joined() and now < group.deadline:
            return
        # Whoever has a name for life stays as long as its session does, though it has not joined again.
        for away in [m for m in group.members.values() if m.joining is None and not m.instance]:
            group.remove(away.identity)
        waiting = [m for m in group.members.values() if m.joining is not None]
        if not waiting:
            group.first, group.deadline = False, now + group.rebalance_ms()
            group.state = State.JOINING if group.members else State.EMPTY
            return
        group.generation += 1
        group.state, group.first = State.SYNCING, False
        if group.leader not in (m.identity for m in waiting):
            group.leader = waiting[0].identity
        group.protocol = group.choose_protocol()
        group.partless, group.sync_deadline = set(group.members), now + group.rebalance_ms()
        for member in group.members.values():
            reply, member.joining, member.new, member.heard_at = member.joining, None, False, now
            if reply is not None:
                reply(group.join_answer(member))

    # Members

    def _membership_error(self, group: Group, identity: str, instance: str) -> int:
        """Whoever says a name for life has to be who has it now (ClassicGroup.validateMember)."""
        if instance:
            named = group.static(instance)
            if named is None:
                return UNKNOWN_MEMBER_ID
            if named.identity != identity:
                return FENCED_INSTANCE_ID
        return NONE if identity in group.members else UNKNOWN_MEMBER_ID

    def _find_member(self, name: str, identity: str, generation: int, instance: str = "") -> tuple[Group, Member] | int:
        group = self.groups.get(name, Group())
        error = self._membership_error(group, identity, instance)
        if error:
            return error
        return ILLEGAL_GENERATION if generation != group.generation else (group, group.members[identity])

    def sync(
        self,
        name: str,
        identity: str,
        generation: int,
        parts: dict[str, bytes],
        now: Millis,
        reply: Reply,
        instance: str = "",
        protocol: tuple[str, str] = ("", ""),
    ) -> None:
        """A member wants its part; the leader brings the parts of all (SyncGroup).

        `protocol`: type and name of the protocol that the member was told, since version 5 (KIP-559).
        """
        place = self._find_member(name, identity, generation, instance)
        if isinstance(place, int):
            reply({"error_code": place})
            return
        group, member = place
        if any(said and said != is_so for said, is_so in zip(protocol, (group.kind, group.protocol), strict=True)):
            reply({"error_code": INCONSISTENT_GROUP_PROTOCOL})
            return
        if group.state is State.JOINING:
            reply({"error_code": REBALANCE_IN_PROGRESS})
            return
        group.partless.discard(identity)
        if group.state is State.STABLE:
            reply(_part(group, member))
        else:
            member.syncing = reply
            if identity == group.leader:
                self._divides(name, group, parts, now)
        self._wakes(name, group)

    def _divides(self, name: str, group: Group, parts: dict[str, bytes], now: Millis) -> None:
        """The leader has brought the parts, and everybody who waits gets its own (setAndPropagateAssignment).

        What members say and have is one record in Kafka. If it is too large nobody gets a part, and all join again.
        """
        before = group_size(group)
        for member in group.members.values():
            member.assignment = parts.get(member.identity, b"")
        size = sum(len(m.protocols[group.protocol]) + len(m.assignment) for m in group.members.values())
        fits = size <= self.most_bytes and self.room.has(name, group_size(group) - before)
        for member in group.members.values():
            reply, member.syncing = member.syncing, None
            if not fits:
                member.assignment = b""
            if reply is not None:
                member.heard_at = now
                reply(_part(group, member) if fits else {"error_code": UNKNOWN_SERVER_ERROR})
        if fits:
            group.state = State.STABLE
        else:
            self._rejoin(group, now)
        self.room.note(name, group_size(group))

    def heartbeat(self, name: str, identity: str, generation: int, now: Millis, instance: str = "") -> int:
        """A member lives; an error code tells it what to do (Heartbeat)."""
        place = self._find_member(name, identity, generation, instance)
        if isinstance(place, int):
            return place
        group, member = place
        member.heard_at = now
        return REBALANCE_IN_PROGRESS if group.state is State.JOINING else NONE

    def leave(self, name: str, names: Sequence[tuple[str, str]], now: Millis) -> list[int]:
        """Members leave, by their ids, or by their names for life and no id; the error code of each (LeaveGroup).

        What follows for the others is found out once, when all of them are out.
        """
        group = self.groups.get(name, Group())
        before = len(group.members), len(group.pending)
        codes = [self._leaves(group, identity, instance) for identity, instance in names]
        if len(group.members) < before[0]:
            self._rejoin(group, now)
        if (len(group.members), len(group.pending)) != before:
            self._goes_on(name, group, now)
        return codes

    def _leaves(self, group: Group, identity: str, instance: str) -> int:
        if identity in group.pending:
            group.remove(identity)
            return NONE
        if instance and not identity:
            named = group.static(instance)
            identity = "" if named is None else named.identity
        error = self._membership_error(group, identity, instance)
        member = None if error else group.remove(identity)
        if member is not None:
            member.refuse_requests(UNKNOWN_MEMBER_ID)
        return error

    def may_commit(self, name: str, identity: str, generation: int, now: Millis, instance: str = "") -> int:
        """Whether a member, or somebody who only uses the group's name, may commit offsets (OffsetCommit).

        OffsetMetadataManager.validateOffsetCommit, ClassicGroup.validateOffsetCommit.
        """
        group = self.groups.get(name, Group())
        if generation < 0 and not group.members:
            return NONE
        if not self.knows(name):
            return ILLEGAL_GENERATION
        if generation < 0 and not identity and not instance:
            return UNKNOWN_MEMBER_ID
        place = self._find_member(name, identity, generation, instance)
        if isinstance(place, int):
            return place
        if group.state is State.SYNCING:
            return REBALANCE_IN_PROGRESS
        place[1].heard_at = now
        return NONE

    def give_up(self, error: int) -> None:
        """Another broker is the coordinator from now on: whoever waits is told."""
        for group in self.groups.values():
            for member in group.members.values():
                member.refuse_requests(error)
        self.room.forget(self.groups)
        self.groups.clear()
        self.alarms.clear()
        self.next_alarm.clear()

    # Time

    def _wakes(self, name: str, group: Group) -> None:
        at = group.due()
        if at is not None and at < self.next_alarm.get(name, at + 1):
            self.next_alarm[name] = at
            heappush(self.alarms, (at, name))
        if len(self.alarms) > 2 * len(self.next_alarm) + _FEW_ALARMS:
            self.alarms = [(at, name) for name, at in self.next_alarm.items()]
            heapify(self.alarms)

    def _goes_on(self, name: str, group: Group, now: Millis) -> None:
        """Somebody is in or out; a group without anybody is forgotten."""
        self._complete_join(group, now)
        if group.state is State.EMPTY and not group.pending:
            self.groups.pop(name, None)
        is_there = name in self.groups
        self.room.note(name, group_size(group) if is_there else 0)
        if is_there:
            self._wakes(name, group)
        else:
            self.next_alarm.pop(name, None)

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted, or sooner."""
        return self.alarms[0][0] if self.alarms else None

    def tick(self, now: Millis) -> None:
        """Members that were not heard of are out; a group that has waited long enough goes on without the others."""
        due: list[str] = []
        while self.alarms and self.alarms[0][0] <= now:
            at, name = heappop(self.alarms)
            if self.next_alarm.get(name) == at:
                del self.next_alarm[name]
                due.append(name)
        for name in due:
            group = self.groups[name]
            self._ends_sessions(group, now)
            self._goes_on(name, group, now)

    def _ends_sessions(self, group: Group, now: Millis) -> None:
        for identity in [i for i, at in group.pending.items() if at <= now]:
            group.remove(identity)
        ends = [(m, m.expires_at()) for m in group.members.values()]
        departures = [m.identity for m, at in ends if at is not None and at <= now]
        if group.state in (State.SYNCING, State.STABLE) and group.partless and group.sync_deadline <= now:
            # Who does not ask for its part keeps the others from theirs, or has one that it does not know of.
            departures += [identity for identity in group.partless if identity not in departures]
        for identity in departures:
            member = group.remove(identity)
            if member is not None:
                member.refuse_requests(UNKNOWN_MEMBER_ID, "")
        if departures:
            self._rejoin(group, now)


def _size(member: Member) -> int:
    """Bytes of what a member says of itself."""
    return sum(len(name) + len(metadata) for name, metadata in member.protocols.items())


def _part(group: Group, member: Member) -> Answer:
    return {"protocol_type": group.kind, "protocol_name": group.protocol, "assignment": member.assignment}


def _subscribed(metadata: bytes) -> set[str] | None:
    """The topics that a member wants to read (ConsumerProtocolSubscription); None if it does not say so readably.

    Each name takes bytes, so there are no more of them than bytes are left. A length that is negative is none.
    """
    try:
        (count,) = struct.unpack_from(">i", metadata, 2)
        at, topics = 6, set[str]()
        if not 0 <= count <= len(metadata) - at:
            return None
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, at)
            begin, at = at + 2, at + 2 + size
            if size < 0 or at > len(metadata):
                return None
            topics.add(metadata[begin:at].decode())
    except (struct.error, UnicodeDecodeError):
        return None
    return topics
