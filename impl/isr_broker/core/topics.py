"""Topics by name and by id (KIP-516).

A topic id is a random UUID of version 4, as Kafka's, and a number here. A topic that is deleted and created again gets
another id, so that nobody takes the old topic's log or offsets for the new one's, even where the metadata were lost in
between. A core that nobody gives an id takes the metadata offset, whose UUID has a name of ours before it. So had every
topic once.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

import attrs
from immutables import Map

from isr_broker.core.messages import PartitionMetadata, TopicPartition
from isr_broker.core.record_batch import crc32c

_OURS: Final = b"insync\0\0"
_FORM: Final = struct.Struct(">8sQ")
_SMALL: Final = 2**64
_LINES: Final = re.compile(rb"(version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n)(?:crc32c ([0-9a-f]{8})\n)?")

FILE: Final = "partition.metadata"
"""In the folder of each log, as Kafka writes it (PartitionMetadataFile), and with a checksum."""


_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def may_be_called(name: str) -> bool:
    """Whether a topic may have this name, which becomes that of a folder (org.apache.kafka.common.internals.Topic)."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def random_topic_id(bits: Callable[[int], int]) -> int:
    """An id of a new topic, from a source of so many random bits (Uuid.randomUuid).

    Its text begins with no dash, which a command line would take for an option's.
    """
    while True:
        uuid = UUID(int=bits(128), version=4)
        if not uuid.bytes.startswith(_OURS) and not base64.urlsafe_b64encode(uuid.bytes).startswith(b"-"):
            return uuid.int


def uuid_of(topic_id: int) -> bytes:
    """The sixteen bytes; zeros for none."""
    if topic_id >= _SMALL:
        return topic_id.to_bytes(_FORM.size, "big")
    return _FORM.pack(_OURS, topic_id) if topic_id else bytes(_FORM.size)


def topic_id_of(uuid: bytes) -> int:
    """The topic id in sixteen bytes; 0 if they are none."""
    if len(uuid) != _FORM.size:
        return 0
    ours, topic_id = _FORM.unpack(uuid)
    return int(topic_id) if ours == _OURS else int.from_bytes(uuid, "big")


def text_of(topic_id: int) -> str:
    """The id as people read it, and files have it (Uuid.toString)."""
    return base64.urlsafe_b64encode(uuid_of(topic_id)).rstrip(b"=").decode()


def file_of(topic_id: int, owner: bytes = b"") -> bytes:
    """The contents of the file, of a broker and a cluster as `owner` says them."""
    lines = b"version: 0\ntopic_id: %s\n" % text_of(topic_id).encode()
    return lines + b"crc32c %08x\n" % crc32c(owner + lines)


def in_file(contents: bytes | None, owner: bytes = b"") -> int:
    """The topic id in the file; 0 if it is missing, damaged, of another owner, or says nothing.

    One whose checksum names no owner is from before, and taken.
    """
    found = _LINES.fullmatch(contents or b"")
    if found is None or (found[3] and int(found[3], 16) not in (crc32c(owner + found[1]), crc32c(found[1]))):
        return 0
    return topic_id_of(base64.urlsafe_b64decode(found[2] + b"=="))


def has_checksum(contents: bytes | None) -> bool:
    """Whether the file is as it was written, if it says a topic id. Of one without a checksum nobody knows."""
    found = _LINES.fullmatch(contents or b"")
    return found is not None and found[3] is not None


@attrs.define
class Topics:
    """An index of `partitions`, which is a value, so that whether it changed is a question of identity."""

    partitions: Map[TopicPartition, PartitionMetadata] | None = None
    by_name: dict[str, list[PartitionMetadata]] = attrs.field(factory=dict[str, list[PartitionMetadata]])
    names: dict[int, str] = attrs.field(factory=dict[int, str])

    def of(self, partitions: Map[TopicPartition, PartitionMetadata]) -> Topics:
        """The index, brought up to date."""
        if partitions is not self.partitions:
            self.partitions, self.by_name, self.names = partitions, {}, {}
            order = sorted(partitions.values(), key=lambda p: (p.partition.topic, p.partition.partition))
            for p in order:
                self.by_name.setdefault(p.partition.topic, []).append(p)
                self.names[p.topic_id] = p.partition.topic
        return self

    def uuid(self, name: str) -> bytes:
        """The id of a topic, zeros if there is no such topic."""
        found = self.by_name.get(name)
        return uuid_of(found[0].topic_id if found else 0)

    def name(self, uuid: bytes) -> str:
        """The name of the topic with an id, empty if there is none."""
        topic_id = topic_id_of(uuid)
        return self.names.get(topic_id, "") if topic_id else ""
