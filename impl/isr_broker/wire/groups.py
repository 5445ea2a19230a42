"""Consumer groups: who is in one, who reads which partitions, and how far they have read (GroupCoordinator).

The classic protocol: members join, the coordinator waits for all of them, one of them divides the partitions, all learn
their part; whoever is not heard of is out, and they join again. No clock: `tick` and `deadline`.

A static member (KIP-345) has a name for life, `instance`: who joins by that name takes the place, and the part, of who
had it before, and nobody joins again for it.

What is committed is kept in a topic (`offsets_topic`). Who is in a group is not: when another broker becomes the
coordinator the members join again, where Kafka's would not notice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import Millis
from isr_broker.storage.offsets_topic import Committed
from isr_broker.wire.protocol import Answer

Reply: TypeAlias = Callable[[Answer], None]

NONE: Final = 0
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
FENCED_INSTANCE_ID: Final = 82

CONSUMERS: Final = "consumer"
"""What groups are called whose members say which topics they read (ConsumerProtocol.PROTOCOL_TYPE)."""


class State(Enum):
    """Where a group is (ClassicGroupState)."""

    EMPTY = "nobody is in it"
    JOINING = "it waits for its members to join again"
    SYNCING = "it waits for its leader to divide the partitions"
    STABLE = "everybody has a part"


STATE_NAMES: Final = {
    State.EMPTY: "Empty",
    State.JOINING: "PreparingRebalance",
    State.SYNCING: "CompletingRebalance",
    State.STABLE: "Stable",
}
"""What ListGroups and DescribeGroups call them."""


@attrs.define
class Member:
    """One member, `client` by its own name, `instance` if that is for life.

    `joining` and `syncing` answer the request that it waits for.
    """

    identity: str
    protocols: dict[str, bytes]
    session_ms: Millis
    rebalance_ms: Millis
    heard_at: Millis
    joining: Reply | None = None
    syncing: Reply | None = None
    assignment: bytes = b""
    client: str = ""
    instance: str = ""

    def refuse_requests(self, error: int) -> None:
        """Whatever it waits for will not come."""
        for reply in (self.joining, self.syncing):
            if reply is not None:
                reply({"error_code": error, "member_id": self.identity, "generation_id": -1})
        self.joining = self.syncing = None


@attrs.define
class Group:
    """One group."""

    kind: str = ""
    state: State = State.EMPTY
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    members: dict[str, Member] = attrs.field(factory=dict[str, Member])
    not_before: Millis = 0
    deadline: Millis = 0

    def static(self, instance: str) -> Member | None:
        """The member that has this name for life; None if nobody has, or it is no name."""
        return next((m for m in self.members.values() if instance and m.instance == instance), None)

    def due(self) -> Millis | None:
        """When something happens to it if nobody asks for anything."""
        times = [m.heard_at + m.session_ms for m in self.members.values() if m.joining is None]
        if self.state is State.JOINING:
            everybody = all(m.joining is not None for m in self.members.values())
            times.append(self.not_before if everybody else self.deadline)
        return min(times, default=None)

    def choose_protocol(self, members: Sequence[Member]) -> str:
        """The protocol that all of them have and the leader, or else the first of them, likes best."""
        common = set(members[0].protocols).intersection(*(m.protocols for m in members))
        first = self.members.get(self.leader, members[0])
        return next(p for p in first.protocols if p in common)


@attrs.define
class Groups:
    """The groups of one coordinator, with what they have `committed`.

    `initial_delay_ms` is how long the first member of a group waits for others. Until `wake` nothing is due; who is
    heard of again only puts off his own end, so that what runs with every request does not grow with members.
    """

    initial_delay_ms: Millis
    committed: Committed = attrs.field(factory=Committed)
    groups: dict[str, Group] = attrs.field(factory=dict[str, Group])
    members: int = 0
    wake: Millis | None = None

    # Questions

    def describe_group(self, name: str) -> Answer | None:
        """A group as DescribeGroups tells of it, what members want and have once all have a part; None if unknown.

        ClassicGroup.describe.
        """
        if not self.knows(name):
            return None
        group = self.groups.get(name, Group())
        stable = group.state is State.STABLE
        members = [
            {
                "member_id": m.identity,
                "group_instance_id": m.instance or None,
                "client_id": m.client,
                "client_host": "",
                "member_metadata": m.protocols.get(group.protocol, b"") if stable else b"",
                "member_assignment": m.assignment if stable else b"",
            }
            for m in group.members.values()
        ]
        return {
            "group_id": name,
            "group_state": STATE_NAMES[group.state],
            "protocol_type": group.kind,
            "protocol_data": group.protocol if stable else "",
            "members": members,
        }

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

    def reads(self, name: str, topic: str) -> bool:
        """A member of the group says that it reads the topic (ClassicGroup.isSubscribedToTopic)."""
        group = self.groups.get(name, Group())
        if group.kind != CONSUMERS or not group.members:
            return False
        told = [_subscribed(m.protocols.get(group.protocol, b"")) for m in group.members.values()]
        return any(topics is None or topic in topics for topics in told)

    # Requests of members

    def join(self, name: str, kind: str, member: Member, client: str, now: Millis, reply: Reply) -> None:
        """A member joins, for the first time or again; it is answered when all have (JoinGroup)."""
        group = self.groups.get(name, Group())
        before = group.static(member.instance)
        if before is not None and member.identity not in ("", before.identity):
            reply({"error_code": FENCED_INSTANCE_ID, "member_id": member.identity})
            return
        if member.identity and member.identity not in group.members:
            reply({"error_code": UNKNOWN_MEMBER_ID, "member_id": member.identity})
            return
        replaces = before if before is not None and not member.identity else None
        shared = [
            set(m.protocols) for m in group.members.values() if m is not replaces and m.identity != member.identity
        ]
        if not member.protocols or (shared and (group.kind != kind or not set(member.protocols).intersection(*shared))):
            reply({"error_code": INCONSISTENT_GROUP_PROTOCOL, "member_id": member.identity})
            return
        self.groups[name] = group
        if not member.identity:
            self.members += 1
            member.identity = f"{member.instance or client}-{now}-{self.members}"
        if replaces is not None:
            self._replaces(group, replaces, member, client, now, reply)
            return
        if not group.members:
            group.kind, group.not_before = kind, now + self.initial_delay_ms
        member.joining, member.heard_at, member.client = reply, now, client
        group.members[member.identity] = member
        self._rejoin(group, now)
        self._maybe_joined(group, now)

    def _replaces(self, group: Group, before: Member, member: Member, client: str, now: Millis, reply: Reply) -> None:
        """A static member is back: it has the part of who had its name, who is fenced (replaceStaticMember).

        All others join again only if another protocol is chosen for it, or the parts are being divided.
        """
        before.refuse_requests(FENCED_INSTANCE_ID)
        member.assignment, member.heard_at, member.client = before.assignment, now, client
        group.members = {m.identity: m for m in (member if m is before else m for m in group.members.values())}
        leader = group.leader
        if leader == before.identity:
            group.leader = member.identity
        if group.state is State.STABLE and group.choose_protocol(list(group.members.values())) == group.protocol:
            # A leader that has nothing to divide is told that it is none (before version 9).
            self._wakes(group)
            answer = {"generation_id": group.generation, "protocol_type": group.kind, "protocol_name": group.protocol}
            reply({**answer, "leader": leader, "member_id": member.identity, "members": []})
            return
        member.joining = reply
        self._rejoin(group, now)
        self._maybe_joined(group, now)

    def _rejoin(self, group: Group, now: Millis) -> None:
        """Everybody has to join again."""
        if group.state is State.JOINING:
            return
        for member in group.members.values():
            if member.syncing is not None:
                member.syncing({"error_code": REBALANCE_IN_PROGRESS})
                member.syncing = None
        group.state = State.JOINING
        group.deadline = now + max((m.rebalance_ms for m in group.members.values()), default=0)

    def _maybe_joined(self, group: Group, now: Millis) -> None:
        self._complete_join(group, now)
        self._wakes(group)

    def _complete_join(self, group: Group, now: Millis) -> None:
        """If all have joined, they are a generation; the leader learns of all others, to divide the partitions."""
        if group.state is not State.JOINING or now < group.not_before:
            return
        waiting = [m for m in group.members.values() if m.joining is not None]
        if len(waiting) < len(group.members) and now < group.deadline:
            return
        # Whoever has a name for life stays as long as its session does, though it has not joined again.
        group.members = {m.identity: m for m in group.members.values() if m.joining is not None or m.instance}
        if not waiting:
            group.state = State.JOINING if group.members else State.EMPTY
            group.deadline = now + max((m.rebalance_ms for m in group.members.values()), default=0)
            return
        group.generation += 1
        group.state = State.SYNCING
        group.deadline = now + max(m.rebalance_ms for m in waiting)
        if group.leader not in (m.identity for m in waiting):
            group.leader = waiting[0].identity
        group.protocol = group.choose_protocol(list(group.members.values()))
        everybody = [
            {"member_id": m.identity, "group_instance_id": m.instance or None, "metadata": m.protocols[group.protocol]}
            for m in group.members.values()
        ]
        for member in waiting:
            reply, member.joining, member.heard_at = member.joining, None, now
            answer: Answer = {
                "generation_id": group.generation,
                "protocol_type": group.kind,
                "protocol_name": group.protocol,
                "leader": group.leader,
                "member_id": member.identity,
                "members": everybody if member.identity == group.leader else [],
            }
            if reply is not None:
                reply(answer)

    def _find_member(self, name: str, identity: str, generation: int, instance: str = "") -> tuple[Group, Member] | int:
        group = self.groups.get(name, Group())
        member = group.static(instance) if instance else group.members.get(identity)
        if member is not None and member.identity != identity:
            return FENCED_INSTANCE_ID
        if member is None:
            return UNKNOWN_MEMBER_ID
        return ILLEGAL_GENERATION if generation != group.generation else (group, member)

    def sync(
        self,
        name: str,
        identity: str,
        generation: int,
        parts: dict[str, bytes],
        now: Millis,
        reply: Reply,
        instance: str = "",
    ) -> None:
        """A member wants its part; the leader brings the parts of all (SyncGroup)."""
        known = self._find_member(name, identity, generation, instance)
        if isinstance(known, int):
            reply({"error_code": known})
            return
        group, member = known
        member.heard_at = now
        if group.state is State.JOINING:
            reply({"error_code": REBALANCE_IN_PROGRESS})
            return
        member.syncing = reply
        if group.state is State.SYNCING and identity == group.leader:
            group.state = State.STABLE
            for other in group.members.values():
                other.assignment = parts.get(other.identity, b"")
        if group.state is State.STABLE:
            for other in group.members.values():
                said, other.syncing = other.syncing, None
                if said is not None:
                    said({"protocol_type": group.kind, "protocol_name": group.protocol, "assignment": other.assignment})

    def heartbeat(self, name: str, identity: str, generation: int, now: Millis, instance: str = "") -> int:
        """A member lives; an error code tells it what to do (Heartbeat)."""
        known = self._find_member(name, identity, generation, instance)
        if isinstance(known, int):
            return known
        group, member = known
        member.heard_at = now
        return REBALANCE_IN_PROGRESS if group.state is State.JOINING else NONE

    def leave(self, name: str, identity: str, now: Millis, instance: str = "") -> int:
        """A member leaves, or one that has a name for life is made to (LeaveGroup)."""
        group = self.groups.get(name, Group())
        member = group.static(instance) if instance else group.members.get(identity)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if instance and identity not in ("", member.identity):
            return FENCED_INSTANCE_ID
        del group.members[member.identity]
        member.refuse_requests(UNKNOWN_MEMBER_ID)
        self._rejoin(group, now)
        self._maybe_joined(group, now)
        if group.state is State.EMPTY:
            del self.groups[name]
        return NONE

    def may_commit(self, name: str, identity: str, generation: int, now: Millis, instance: str = "") -> int:
        """Whether a member, or somebody who only uses the group's name, may commit offsets (OffsetCommit)."""
        group = self.groups.get(name, Group())
        if generation >= 0 or group.members:
            known = self._find_member(name, identity, generation, instance)
            if isinstance(known, int):
                return known
            known[1].heard_at = now
        return NONE

    def give_up(self, error: int) -> None:
        """Another broker is the coordinator from now on: whoever waits is told."""
        for group in self.groups.values():
            for member in group.members.values():
                member.refuse_requests(error)
        self.groups.clear()

    # Time

    def _wakes(self, group: Group) -> None:
        times = [at for at in (self.wake, group.due()) if at is not None]
        self.wake = min(times, default=None)

    def deadline(self) -> Millis | None:
        """When `tick` is next wanted, or sooner."""
        return self.wake

    def tick(self, now: Millis) -> None:
        """Members that were not heard of are out; a group that has waited long enough goes on without the others."""
        if self.wake is None or now < self.wake:
            return
        self.wake = None
        for name, group in list(self.groups.items()):
            lost = [m for m in group.members.values() if m.joining is None and m.heard_at + m.session_ms <= now]
            for member in lost:
                del group.members[member.identity]
                member.refuse_requests(UNKNOWN_MEMBER_ID)
            if lost:
                self._rejoin(group, now)
            self._maybe_joined(group, now)
            if group.state is State.EMPTY:
                del self.groups[name]


def _subscribed(metadata: bytes) -> set[str] | None:
    """The topics that a member wants to read (ConsumerProtocolSubscription); None if it does not say so readably."""
    try:
        (count,) = struct.unpack_from(">i", metadata, 2)
        at, topics = 6, set[str]()
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, at)
            topics.add(metadata[at + 2 : at + 2 + size].decode())
            at += 2 + size
    except (struct.error, UnicodeDecodeError):
        return None
    return topics
