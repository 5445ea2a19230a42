"""The topics of a broker's metadata, by name and by id; looked up again only when the metadata has changed."""

from __future__ import annotations

import attrs
from immutables import Map

from isr_broker.core.messages import PartitionMetadata, TopicPartition
from isr_broker.core.topic_ids import topic_id_of, uuid_of


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
