"""What the groups of one broker may have together: how many there are, and what they take of its memory.

Kafka bounds the members of one group, and the record that holds them. How many groups there are it does not bound, and
a name takes a client a few bytes. What members say and what groups have committed have a room each: who fills one of
them leaves the other to others. Sizes are estimates, from what the values take in this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Final

import attrs

from isr_broker.core.messages import TopicPartition
from isr_broker.settings import MAX_INT
from isr_broker.storage.offsets_topic import Committed, News
from isr_broker.wire.group_state import Group, Member

OF_A_GROUP: Final = 1_500
"""Bytes of a group in which nobody is."""
OF_A_MEMBER: Final = 1_000
"""Bytes of a member that says nothing, and of an id that nobody has joined with yet."""
OF_AN_OFFSET: Final = 400
"""Bytes of a committed offset beside its topic and its note."""


@attrs.define
class GroupRoom:
    """At most so many groups, of so many bytes together; `sizes` by group, `reservations` for what is being written."""

    most_groups: int = MAX_INT
    most_bytes: int = MAX_INT
    size: int = 0
    reservations: int = 0
    sizes: dict[str, int] = attrs.field(factory=dict[str, int])

    def has(self, group: str, more: int) -> bool:
        """Whether a group may begin, or grow by so many bytes. One that is there may always become smaller."""
        if group not in self.sizes and len(self.sizes) >= self.most_groups:
            return False
        return more <= 0 or self.size + self.reservations + more <= self.most_bytes

    def note(self, group: str, size: int) -> None:
        """A group has so many bytes now; it is gone if it has none."""
        self.size += size - self.sizes.pop(group, 0)
        if size:
            self.sizes[group] = size

    def add(self, group: str, more: int) -> None:
        """A group has so many bytes more, or fewer."""
        self.note(group, self.sizes.get(group, 0) + more)

    def forget(self, groups: Iterable[str]) -> None:
        """Another broker has these groups now."""
        for group in groups:
            self.note(group, 0)


def member_size(member: Member) -> int:
    """Bytes of a member: what it says of itself, and its part."""
    said = sum(getsizeof(name) + getsizeof(metadata) for name, metadata in member.protocols.items())
    names = len(member.identity) + len(member.instance) + len(member.client)
    return OF_A_MEMBER + said + getsizeof(member.assignment) + names


def group_size(group: Group) -> int:
    """Bytes of a group: its members, and the ids that nobody has joined with yet."""
    pending = sum(OF_A_MEMBER + len(identity) for identity in group.pending)
    return OF_A_GROUP + pending + sum(map(member_size, group.members.values()))


def growth(committed: Committed, group: str, new: News) -> int:
    """By how many bytes what is committed grows when a group commits something."""
    before: Mapping[TopicPartition, tuple[int, str]] = committed.get(group, {})
    return sum(_offset_size(tp, row) - _offset_size(tp, before.get(tp)) for tp, row in new.items())


def _offset_size(tp: TopicPartition, row: tuple[int, str] | None) -> int:
    return 0 if row is None else OF_AN_OFFSET + getsizeof(tp.topic) + getsizeof(row[1])
