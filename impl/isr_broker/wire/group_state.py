"""One consumer group of the classic protocol: its members, and what they have in common (ClassicGroup).

A member that has been given its id and has not come back with it is `pending` (KIP-394): it counts for nothing but that
a rebalance waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeAlias

import attrs

from isr_broker.core.messages import Millis
from isr_broker.wire.protocol import Answer

Reply: TypeAlias = Callable[[Answer], None]

NEW_MEMBER_MS: Final[Millis] = 300_000
"""How long the first request of a new member waits (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS).

It does not know its id, so it cannot show that it lives.
"""


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

    `joining` and `syncing` answer the request that it waits for. Until its first rebalance is over it is `new`.
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
    new: bool = False

    def refuse_requests(self, error: int, identity: str | None = None) -> None:
        """Whatever it waits for will not come."""
        name = self.identity if identity is None else identity
        for reply in (self.joining, self.syncing):
            if reply is not None:
                reply({"error_code": error, "member_id": name, "generation_id": -1})
        self.joining = self.syncing = None

    def expires_at(self) -> Millis | None:
        """When its session is over; who waits for the others shows that it lives (hasSatisfiedHeartbeat)."""
        if self.new and self.joining is not None:
            return self.heard_at + NEW_MEMBER_MS
        return None if self.joining or self.syncing else self.heard_at + self.session_ms

    def wants_the_same(self, other: Member) -> bool:
        """Both have the same protocols, in the same order, and say the same of each (matches)."""
        return list(self.protocols.items()) == list(other.protocols.items())


@attrs.define
class Group:
    """One group.

    - `instances`: the members that have a name for life, by that. `add` and `remove` keep it.
    - `pending`: when each id is forgotten that nobody has joined with yet.
    - `partless`: who of this generation has not asked for its part; at `sync_deadline` they are out.
    - `first`: nobody was in it before this rebalance, so it ends at `not_before` and not sooner. `more` is whether
      somebody joined since that was set, `more_ms` how much longer it may become.
    - `deadline`: when any other rebalance goes on without those who have not joined.
    """

    kind: str = ""
    state: State = State.EMPTY
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    members: dict[str, Member] = attrs.field(factory=dict[str, Member])
    instances: dict[str, Member] = attrs.field(factory=dict[str, Member])
    pending: dict[str, Millis] = attrs.field(factory=dict[str, Millis])
    partless: set[str] = attrs.field(factory=set[str])
    sync_deadline: Millis = 0
    first: bool = False
    more: bool = False
    more_ms: Millis = 0
    not_before: Millis = 0
    deadline: Millis = 0

    def static(self, instance: str) -> Member | None:
        """The member that has this name for life; None if nobody has, or it is no name."""
        return self.instances.get(instance)

    def add(self, member: Member) -> None:
        """A member is in the group, behind all others."""
        self.members[member.identity] = member
        if member.instance:
            self.instances[member.instance] = member

    def replace(self, before: Member, member: Member) -> None:
        """A member is in the place of another that had its name for life."""
        self.members = {m.identity: m for m in (member if m is before else m for m in self.members.values())}
        self.instances[member.instance] = member

    def due(self) -> Millis | None:
        """When something happens to it if nobody asks for anything."""
        ends = (m.expires_at() for m in self.members.values())
        times = [*self.pending.values(), *(at for at in ends if at is not None)]
        if self.state is State.JOINING:
            times.append(self.not_before if self.first else self.deadline)
        elif self.partless:
            times.append(self.sync_deadline)
        return min(times, default=None)

    def everybody_joined(self) -> bool:
        """All members wait for the next generation, and nobody is expected (hasAllMembersJoined)."""
        return not self.pending and all(m.joining is not None for m in self.members.values())

    def rebalance_ms(self) -> Millis:
        """How long a rebalance may take: as long as the most patient member has."""
        return max((m.rebalance_ms for m in self.members.values()), default=0)

    def supports(self, kind: str, protocols: dict[str, bytes]) -> bool:
        """A protocol of these is one that all members have now (supportsProtocols)."""
        if self.state is State.EMPTY:
            return bool(kind and protocols)
        return self.kind == kind and any(all(p in m.protocols for m in self.members.values()) for p in protocols)

    def choose_protocol(self) -> str:
        """Of those that all members have the one that most of them like best (selectProtocol)."""
        members = list(self.members.values())
        common = set(members[0].protocols).intersection(*(m.protocols for m in members))
        votes = Counter(next(p for p in m.protocols if p in common) for m in members)
        return votes.most_common(1)[0][0]

    def rows(self) -> Sequence[Answer]:
        """All members, as the leader hears of them."""
        return [
            {"member_id": m.identity, "group_instance_id": m.instance or None, "metadata": m.protocols[self.protocol]}
            for m in self.members.values()
        ]

    def join_answer(self, member: Member, leader: str | None = None, skips: bool = False) -> Answer:
        """What a member is told of the generation that it is in; `skips`: a leader that has nothing to divide."""
        return {
            "generation_id": self.generation,
            "protocol_type": self.kind,
            "protocol_name": self.protocol,
            "leader": self.leader if leader is None else leader,
            "member_id": member.identity,
            "members": self.rows() if member.identity == self.leader and not skips else [],
        }

    def remove(self, identity: str) -> Member | None:
        """Without a member, or without an id that nobody has joined with; the longest member leads after the leader."""
        self.pending.pop(identity, None)
        self.partless.discard(identity)
        member = self.members.pop(identity, None)
        if member is not None and self.static(member.instance) is member:
            del self.instances[member.instance]
        if member is not None and identity == self.leader:
            self.leader = next(iter(self.members), "")
        return member

    def description(self, name: str) -> Answer:
        """The group as DescribeGroups tells of it; what members want and have once all have a part (describe)."""
        stable = self.state is State.STABLE
        members = [
            {
                "member_id": m.identity,
                "group_instance_id": m.instance or None,
                "client_id": m.client,
                "client_host": "",
                "member_metadata": m.protocols.get(self.protocol, b"") if stable else b"",
                "member_assignment": m.assignment if stable else b"",
            }
            for m in self.members.values()
        ]
        return {
            "group_id": name,
            "group_state": STATE_NAMES[self.state],
            "protocol_type": self.kind,
            "protocol_data": self.protocol if stable else "",
            "members": members,
        }
