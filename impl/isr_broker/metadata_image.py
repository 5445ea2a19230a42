"""The cluster's metadata as the records of Kafka's controllers say it, from a checkpoint and the log behind it.

Kafka: MetadataDelta and MetadataImage (KIP-631), PartitionRegistration.merge, MetadataBatchLoader for transactions
(KIP-868).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

import attrs

from isr_broker.core.record_batch import Batch, batches, key_and_value, record_places
from isr_broker.wire.decoder import Plain
from isr_broker.wire.metadata_records import BadRecord, MetadataRecord, decode

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
"""Whose settings a Config record has (ConfigResource.Type)."""
_NO_CHANGE: Final = -2
"""The leader of a change that leaves the leader as it is (LeaderConstants.NO_LEADER_CHANGE)."""


def _records(data: bytes, batch: Batch) -> Iterator[tuple[int, MetadataRecord]]:
    """The records with their offsets; of Raft's own (leader changes, voters, a checkpoint's frame) there are none."""
    if batch.control:
        return
    if batch.compressed:
        raise BadRecord(f"at byte {batch.position}: a compressed batch, which Kafka's metadata have not")
    for number, at in enumerate(record_places(data, batch)):
        yield batch.base_offset + number, decode(key_and_value(data, at)[1] or b"")


@attrs.define
class RegisteredBroker:
    """`fenced` and `leaving`: whether it has no session, and whether it stops in order."""

    rack: str | None
    fenced: bool
    leaving: bool = False


@attrs.define
class MetadataImage:
    """What the records so far say, as Kafka's MetadataImage.

    - `topics`: names by id; `partitions`: the fields of the Partition record, changed since, by topic id and number.
    - `configs`: by kind of resource and name, which is "" for the default of all brokers.
    - `transaction`: the records of one that has not ended, None outside of one.
    - `end`: the offset after the last record, None before the first; `epoch`: the leader's epoch of it.
    """

    topics: dict[bytes, str] = attrs.field(factory=dict[bytes, str])
    partitions: dict[tuple[bytes, int], dict[str, Plain]] = attrs.field(
        factory=dict[tuple[bytes, int], dict[str, Plain]]
    )
    configs: dict[tuple[int, str], dict[str, str]] = attrs.field(factory=dict[tuple[int, str], dict[str, str]])
    brokers: dict[int, RegisteredBroker] = attrs.field(factory=dict[int, RegisteredBroker])
    features: dict[str, int] = attrs.field(factory=dict[str, int])
    transaction: list[MetadataRecord] | None = None
    end: int | None = None
    epoch: int = 0

    def take_checkpoint(self, data: bytes, end: int, epoch: int) -> None:
        """All that was so up to an offset; BadBatch or BadRecord where it is none."""
        for batch in batches(data, check=True):
            for _, record in _records(data, batch):
                self.take(record)
        self.end, self.epoch = end, epoch

    def take_log(self, data: bytes) -> None:
        """What a segment has behind `end`; BadBatch or BadRecord, after what is before that was taken."""
        for batch in batches(data, check=True):
            for offset, record in _records(data, batch):
                if offset >= (self.end or 0):
                    self.take(record)
            self.end, self.epoch = max(self.end or 0, batch.next_offset), batch.leader_epoch

    def take(self, record: MetadataRecord) -> None:
        """One record, now or when its transaction ends; BadRecord where it is of something that no record brought."""
        try:
            self._take(record)
        except KeyError:
            raise BadRecord(f"{record.name} of what is not there: {dict(record.fields)}") from None

    def _take(self, record: MetadataRecord) -> None:
        match record.name:
            case "BeginTransaction":
                self.transaction = []
            case "AbortTransaction":
                self.transaction = None
            case "EndTransaction":
                records, self.transaction = self.transaction or [], None
                for each in records:
                    self.apply(each)
            case _ if self.transaction is not None:
                self.transaction.append(record)
            case _:
                self.apply(record)

    def apply(self, record: MetadataRecord) -> None:
        """What a record changes; what no answer depends on is passed over."""
        fields = record.fields
        match record.name:
            case "Topic":
                self.topics[cast("bytes", fields["topic_id"])] = cast("str", fields["name"])
            case "RemoveTopic":
                self.forget(cast("bytes", fields["topic_id"]))
            case "Partition":
                self.partitions[_at(fields)] = dict(fields)
            case "PartitionChange":
                self.change(self.partitions[_at(fields)], fields)
            case "Config":
                self.set(fields)
            case "ClearElr":
                self.clear(cast("str", fields["topic_name"]))
            case "FeatureLevel":
                self.features[cast("str", fields["name"])] = cast("int", fields["feature_level"])
            case _:
                self.apply_broker(record)

    def apply_broker(self, record: MetadataRecord) -> None:
        """What a record says of a broker."""
        fields = record.fields
        broker = cast("int", fields.get("broker_id", fields.get("id", -1)))
        match record.name:
            case "RegisterBroker":
                leaving = bool(fields.get("in_controlled_shutdown"))
                self.brokers[broker] = RegisteredBroker(
                    cast("str | None", fields["rack"]), bool(fields["fenced"]), leaving
                )
            case "UnregisterBroker":
                self.brokers.pop(broker, None)
            case "FenceBroker" | "UnfenceBroker":
                self.brokers[broker].fenced = record.name == "FenceBroker"
            case "BrokerRegistrationChange":
                now, fenced = self.brokers[broker], cast("int", fields["fenced"])
                now.fenced = fenced > 0 if fenced else now.fenced
                now.leaving = now.leaving or fields.get("in_controlled_shutdown") == 1
            case _:
                pass

    def forget(self, topic_id: bytes) -> None:
        name = self.topics.pop(topic_id)
        self.configs.pop((TOPIC_RESOURCE, name), None)
        for at in [at for at in self.partitions if at[0] == topic_id]:
            del self.partitions[at]

    def change(self, partition: dict[str, Plain], fields: Mapping[str, Plain]) -> None:
        """A change has what it changes, as PartitionRegistration.merge takes it."""
        tagged = {k: v for k, v in fields.items() if k not in ("partition_id", "topic_id") and v is not None}
        if tagged.pop("leader_recovery_state") != -1:
            partition["leader_recovery_state"] = fields["leader_recovery_state"]
        if tagged.pop("leader") != _NO_CHANGE:
            partition["leader"] = fields["leader"]
        partition.update(tagged)

    def set(self, fields: Mapping[str, Plain]) -> None:
        whose = cast("int", fields["resource_type"]), cast("str", fields["resource_name"])
        name, value = cast("str", fields["name"]), fields["value"]
        if value is None:
            self.configs.get(whose, {}).pop(name, None)
        else:
            self.configs.setdefault(whose, {})[name] = cast("str", value)

    def clear(self, topic: str) -> None:
        """The ELR of a topic, or of all where it is not named (KIP-966)."""
        for (topic_id, _), partition in self.partitions.items():
            if topic in ("", self.topics[topic_id]):
                partition["eligible_leader_replicas"] = partition["last_known_elr"] = []


def _at(fields: Mapping[str, Plain]) -> tuple[bytes, int]:
    return cast("bytes", fields["topic_id"]), cast("int", fields["partition_id"])
