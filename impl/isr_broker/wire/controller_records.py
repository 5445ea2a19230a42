"""What the controller decides, as records of Kafka's `__cluster_metadata`, and what they say, read again.

Kafka: the `replay` methods of QuorumController's managers, PartitionRegistration.merge and
BrokerRegistration.cloneWith. A change is written as Kafka writes it wherever that says all of it, else the whole
partition or broker is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, cast

import attrs
from immutables import Map

from isr_broker import topic_configs
from isr_broker.core.controller_state import Controller, apply_records
from isr_broker.core.messages import (
    BrokerId,
    BrokerMetadata,
    ControllerLife,
    MetadataPosition,
    MetadataRecord,
    MetadataSnapshot,
    Offset,
    PartitionMetadata,
    TopicPartition,
    removed_partition,
    unregistration,
)
from isr_broker.core.record_batch import batch_around, batches, encoded_record, key_and_value, record_places
from isr_broker.core.topics import topic_id_of, uuid_of
from isr_broker.designs import Design
from isr_broker.settings import Settings
from isr_broker.wire.control_records import is_leader_change
from isr_broker.wire.controller_channels import (
    ELR,
    ELR_LEVEL,
    LISTENER,
    PEER_LISTENER,
    directory_of,
    directory_uuid,
    incarnation_id,
    incarnation_of,
)
from isr_broker.wire.decoder import Cursor
from isr_broker.wire.encoder import Answer, varint
from isr_broker.wire.metadata_records import BadRecord, decode, encode
from isr_broker.wire.metadata_records import MetadataRecord as KafkaRecord
from isr_broker.wire.protocol import NOBODY, Fields, number_of

Row: TypeAlias = tuple[str, Answer]
"""A record of Kafka's: the name of its type, and its fields."""
Meaning: TypeAlias = "tuple[LogImage, tuple[MetadataRecord, ...]]"

_VERSIONS: Final = {
    "Topic": 0,
    "Partition": 2,
    "PartitionChange": 2,
    "RemoveTopic": 0,
    "Config": 0,
    "RegisterBroker": 3,
    "BrokerRegistrationChange": 2,
    "UnregisterBroker": 0,
}
"""In which version each type is written: with the ELR, and with directories."""
METADATA_VERSION: Final = "metadata.version"
METADATA_LEVEL: Final = 25
"""4.0-IV3, the newest that 4.0 knows, with all that is written here (MetadataVersion)."""
FIRST_PRODUCER_ID: Final = 1 << 55
"""Of those that brokers of Apache Kafka ask for. The brokers here make smaller ones, each from its broker epoch."""
PRODUCER_IDS_AT_ONCE: Final = 1_000
"""ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE."""
_TOPIC, _BROKER = 2, 4
"""Of what a setting is (ConfigResource.Type). That of the broker with an empty name is the cluster's."""
_SAME_LEADER: Final = -2
_NO_DIRECTORY: Final = bytes(16)
"""DirectoryId.UNASSIGNED."""
_RECORDS_IN_BATCH: Final = 1_000
_POSITION_TAG: Final = 10_004
_NO_CONFIGS: Map[str, str] = Map()
_DEFAULTS: Final = Settings()


def _start_of_position() -> bytes:
    """A NoOp up to the size of its one tagged field."""
    out = bytearray(encode("NoOp", 0, {})[:-1])
    varint(out, 1)
    varint(out, _POSITION_TAG)
    return bytes(out)


_POSITION: Final = _start_of_position()


@attrs.frozen(kw_only=True)
class LogImage:
    """What a log of metadata says (MetadataImage).

    - `controller`: brokers and partitions, as the controller's core has them.
    - `names`: the topics by their ids. `configs`: the settings of each. `cluster_configs`: those of the cluster.
    - `features`: the level of each. `next_producer_id`: the first that no broker has been given.
    """

    controller: Controller
    names: Map[int, str] = attrs.field(factory=Map[int, str])
    configs: Map[str, Map[str, str]] = attrs.field(factory=Map[str, Map[str, str]])
    cluster_configs: Map[str, str] = attrs.field(factory=Map[str, str])
    features: Map[str, int] = attrs.field(factory=Map[str, int])
    next_producer_id: int = FIRST_PRODUCER_ID


def replay(image: LogImage, data: bytes) -> tuple[LogImage, Offset]:
    """The image after whole batches, and the offset after them; BadRecord where one says what cannot be.

    The first record of a leader's epoch begins a life of the controller. Records of which the controller knows nothing
    are passed over.
    """
    end = 0
    for batch in batches(data):
        end = batch.next_offset
        for at in record_places(data, batch):
            key, value = key_and_value(data, at)
            if not batch.control and value is not None and value.startswith(_POSITION):
                image = _with_position(image, value)
                continue
            if batch.control and is_leader_change(key):
                life = ControllerLife(batch.leader_epoch)
                image = attrs.evolve(image, controller=apply_records(image.controller, (life,)))
            elif not batch.control:
                image, _ = _replay_record(image, decode(value or b""))
    return image, end


def batch_of(image: LogImage, records: Sequence[MetadataRecord], wall: int, others: Sequence[bytes] = ()) -> bytes:
    """One batch with what is decided after an image; `wall` is its time, in milliseconds since 1970.

    Each record has the first form that says all of it, when it is read again. Before them it has `others`.
    """
    values = [*others]
    at = 0
    while at < len(records):
        form, image, count = _first_form(image, records, at)
        values += form
        at += count
    body = b"".join(encoded_record(value, number) for number, value in enumerate(values))
    return batch_around(body, len(values), wall)


def features_of(design: Design) -> dict[str, int]:
    """The features with which a log begins, and their levels (BootstrapMetadata)."""
    return {METADATA_VERSION: METADATA_LEVEL, **({ELR: ELR_LEVEL} if design.eligible_leader_replicas else {})}


def feature_records(image: LogImage, design: Design) -> list[bytes]:
    """What says the levels of features of which a log says nothing yet; without them no broker of Kafka's starts."""
    missing = {name: level for name, level in features_of(design).items() if name not in image.features}
    return [encode("FeatureLevel", 0, {"name": n, "feature_level": level}) for n, level in sorted(missing.items())]


def producer_ids(broker: BrokerId, epoch: int, after: int) -> bytes:
    """The record that a broker has been given producer ids, all before this one (ProducerIdControlManager)."""
    fields = {"broker_id": broker, "broker_epoch": epoch, "next_producer_id": after}
    return encode("ProducerIds", 0, fields)


def snapshot_of(image: LogImage, wall: int) -> bytes:
    """Batches that say all that an image says, from nothing on, and what no record of Kafka's says of it.

    That is how many decisions there were, and in which lives. It is in a tagged field of a NoOp, and Kafka passes over
    it.
    """
    core = image.controller
    others = [
        encode("FeatureLevel", 0, {"name": n, "feature_level": level}) for n, level in sorted(image.features.items())
    ]
    if image.next_producer_id != FIRST_PRODUCER_ID:
        others.append(producer_ids(NOBODY, NOBODY, image.next_producer_id))
    so_far = LogImage(controller=Controller(settings=core.settings, cluster=core.cluster))
    records: list[MetadataRecord] = [
        *(b for _, b in sorted(core.brokers.items())),
        *(p for _, p in sorted(core.partitions.items())),
    ]
    data = batch_of(so_far, (), wall, others) if others else b""
    for at in range(0, len(records), _RECORDS_IN_BATCH):
        batch = batch_of(so_far, records[at : at + _RECORDS_IN_BATCH], wall)
        so_far, _ = replay(so_far, batch)
        data += batch
    numbers = [core.offset, *(number for life in core.lives for number in (life.offset, life.life))]
    text = json.dumps(numbers, separators=(",", ":")).encode()
    out = bytearray(_POSITION)
    varint(out, len(text))
    return data + batch_around(encoded_record(bytes(out) + text), timestamp=wall)


def _with_position(image: LogImage, value: bytes) -> LogImage:
    """Its brokers and partitions are those after so many decisions."""
    cursor = Cursor(value, len(_POSITION))
    offset, *lives = cast("list[int]", json.loads(cursor.take(cursor.varint())))
    core = image.controller
    whole = MetadataSnapshot(
        offset=offset,
        brokers=tuple(core.brokers.values()),
        partitions=tuple(core.partitions.values()),
        lives=tuple(map(MetadataPosition, lives[::2], lives[1::2])),
    )
    return attrs.evolve(image, controller=apply_records(core, (whole,)))


def _first_form(image: LogImage, records: Sequence[MetadataRecord], at: int) -> tuple[list[bytes], LogImage, int]:
    for rows in _forms(image, records[at]):
        form = [encode(name, _VERSIONS[name], fields) for name, fields in rows]
        after, meaning = image, tuple[MetadataRecord, ...]()
        for value in form:
            after, more = _replay_record(after, decode(value))
            meaning += more
        if meaning and meaning == tuple(records[at : at + len(meaning)]):
            return form, after, len(meaning)
    raise BadRecord(f"no record of Kafka's says {records[at]}")


def _forms(image: LogImage, record: MetadataRecord) -> Iterator[list[Row]]:
    match record:
        case PartitionMetadata(partition=tp, replicas=()):
            removed = image.controller.partitions[tp]
            yield [("RemoveTopic", {"topic_id": uuid_of(removed.topic_id)})]
        case PartitionMetadata():
            first, old = _rows_of_topic(image, record), image.controller.partitions.get(record.partition)
            directories = _directories(image, record)
            if old is not None:
                yield [*first, ("PartitionChange", _partition_change(old, record, directories))]
            yield [*first, ("Partition", {**_partition_fields(record), "directories": directories})]
        case BrokerMetadata(broker=broker, epoch=epoch):
            before = image.controller.brokers.get(broker)
            if before is not None and epoch < 0:
                yield [("UnregisterBroker", {"broker_id": broker, "broker_epoch": before.epoch})]
            elif before is not None and before.epoch == epoch:
                yield [("BrokerRegistrationChange", _broker_change(before, record))]
            yield [("RegisterBroker", _broker_fields(record))]
        case _:
            return


def _replay_record(image: LogImage, record: KafkaRecord) -> Meaning:
    """The image after one record, and what that is to the controller's core."""
    values, meaning = Fields(dict(record.fields)), tuple[MetadataRecord, ...]()
    match record.name:
        case "Topic":
            topic_id = topic_id_of(values.data("topic_id") or b"")
            image = attrs.evolve(image, names=image.names.set(topic_id, values.text("name")))
        case "Config":
            image = _with_config(image, values)
        case "FeatureLevel":
            level = values.number("feature_level")
            image = attrs.evolve(image, features=image.features.set(values.text("name"), level))
        case "ProducerIds":
            image = attrs.evolve(image, next_producer_id=values.number("next_producer_id"))
        case "Partition":
            meaning = (_partition(image, values),)
        case "PartitionChange":
            meaning = (_changed_partition(image, values),)
        case "RemoveTopic":
            image, meaning = _without_topic(image, topic_id_of(values.data("topic_id") or b""))
        case "RegisterBroker":
            meaning = (_broker(values),)
        case "BrokerRegistrationChange":
            meaning = (_changed_broker(image, values),)
        case "UnregisterBroker":
            meaning = (unregistration(values.number("broker_id")),)
        case _:
            pass
    return attrs.evolve(image, controller=apply_records(image.controller, meaning)), meaning


# Topics and their settings


def _rows_of_topic(image: LogImage, partition: PartitionMetadata) -> list[Row]:
    """What has to be said of a topic before this partition of it has this form."""
    topic, own = partition.partition.topic, dict(partition.configs)
    rows: list[Row] = []
    known = image.configs.get(topic, _NO_CONFIGS)
    if image.names.get(partition.topic_id) != topic:
        rows.append(("Topic", {"name": topic, "topic_id": uuid_of(partition.topic_id)}))
    for name in sorted({*own, *known}):
        if own.get(name) != known.get(name):
            rows.append(("Config", _config(_TOPIC, topic, name, own.get(name))))
    effective = {
        topic_configs.MIN_ISR: str(partition.min_insync_replicas),
        topic_configs.UNCLEAN: str(partition.unclean_leader_election).lower(),
    }
    for name, value in effective.items():
        if name not in own and image.cluster_configs.get(name) != value:
            rows.append(("Config", _config(_BROKER, "", name, value)))
    return rows


def _config(kind: int, resource: str, name: str, value: str | None) -> Answer:
    return {"resource_type": kind, "resource_name": resource, "name": name, "value": value}


def _with_config(image: LogImage, values: Fields) -> LogImage:
    kind, resource, name = values.number("resource_type"), values.text("resource_name"), values.text("name")
    value = values.text("value") if values.has("value") else None
    if kind == _TOPIC:
        changed = _with(image.configs.get(resource, _NO_CONFIGS), name, value)
        return attrs.evolve(image, configs=image.configs.set(resource, changed))
    if kind == _BROKER and not resource:
        return attrs.evolve(image, cluster_configs=_with(image.cluster_configs, name, value))
    return image


def _with(configs: Map[str, str], name: str, value: str | None) -> Map[str, str]:
    if value is not None:
        return configs.set(name, value)
    return configs.delete(name) if name in configs else configs


def _without_topic(image: LogImage, topic_id: int) -> Meaning:
    """The topic, its settings and all its partitions are no more."""
    topic = _name_of(image, topic_id)
    gone = sorted(tp for tp, p in image.controller.partitions.items() if p.topic_id == topic_id)
    configs = image.configs.delete(topic) if topic in image.configs else image.configs
    image = attrs.evolve(image, names=image.names.delete(topic_id), configs=configs)
    return image, tuple(map(removed_partition, gone))


def _name_of(image: LogImage, topic_id: int) -> str:
    if topic_id not in image.names:
        raise BadRecord(f"a record of a topic that there is not, of the id {topic_id}")
    return image.names[topic_id]


# Partitions


def _partition_fields(partition: PartitionMetadata) -> Answer:
    return {
        "partition_id": partition.partition.partition,
        "topic_id": uuid_of(partition.topic_id),
        "replicas": partition.replicas,
        "isr": sorted(partition.isr),
        "removing_replicas": partition.removing_replicas,
        "adding_replicas": partition.adding_replicas,
        "leader": number_of(partition.leader),
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "eligible_leader_replicas": sorted(partition.elr) or None,
        "last_known_elr": _last_known(partition) or None,
    }


def _directories(image: LogImage, partition: PartitionMetadata) -> list[bytes]:
    """Where each replica is: in the one directory that its broker has (ClusterControlManager.defaultDir)."""
    brokers = (image.controller.brokers.get(replica) for replica in partition.replicas)
    return [directory_uuid(broker.directory) if broker and broker.directory else _NO_DIRECTORY for broker in brokers]


def _partition_change(old: PartitionMetadata, new: PartitionMetadata, directories: list[bytes]) -> Answer:
    """What differs. A leader that is named begins an epoch."""
    fields: dict[str, object] = {"partition_id": new.partition.partition, "topic_id": uuid_of(new.topic_id)}
    if old.replicas != new.replicas:
        fields["directories"] = directories
    if (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch):
        fields["leader"] = number_of(new.leader)
    lists = {
        "isr": (sorted(old.isr), sorted(new.isr)),
        "replicas": (old.replicas, new.replicas),
        "removing_replicas": (old.removing_replicas, new.removing_replicas),
        "adding_replicas": (old.adding_replicas, new.adding_replicas),
        "eligible_leader_replicas": (sorted(old.elr), sorted(new.elr)),
        "last_known_elr": (_last_known(old), _last_known(new)),
    }
    return {**fields, **{name: after for name, (before, after) in lists.items() if before != after}}


def _leader(number: int) -> BrokerId | None:
    return None if number == NOBODY else number


def _last_known(partition: PartitionMetadata) -> list[BrokerId]:
    return [] if partition.last_known_leader is None else [partition.last_known_leader]


def _partition(image: LogImage, values: Fields) -> PartitionMetadata:
    topic_id = topic_id_of(values.data("topic_id") or b"")
    partition = PartitionMetadata(
        partition=TopicPartition(_name_of(image, topic_id), values.number("partition_id")),
        replicas=tuple(values.numbers("replicas")),
        isr=frozenset(values.numbers("isr")),
        leader=_leader(values.number("leader")),
        leader_epoch=values.number("leader_epoch"),
        partition_epoch=values.number("partition_epoch"),
        elr=frozenset(values.numbers("eligible_leader_replicas")),
        last_known_leader=next(iter(values.numbers("last_known_elr")), None),
        topic_id=topic_id,
        adding_replicas=tuple(values.numbers("adding_replicas")),
        removing_replicas=tuple(values.numbers("removing_replicas")),
    )
    return _with_settings(image, partition)


def _with_settings(image: LogImage, partition: PartitionMetadata) -> PartitionMetadata:
    own = image.configs.get(partition.partition.topic, _NO_CONFIGS)
    effective = {**image.cluster_configs, **own}
    return attrs.evolve(
        partition,
        configs=tuple(sorted(own.items())),
        min_insync_replicas=topic_configs.minimum(effective, _DEFAULTS),
        unclean_leader_election=topic_configs.unclean(effective, _DEFAULTS),
    )


def _changed_partition(image: LogImage, values: Fields) -> PartitionMetadata:
    """PartitionRegistration.merge."""
    topic = _name_of(image, topic_id_of(values.data("topic_id") or b""))
    old = image.controller.partitions.get(TopicPartition(topic, values.number("partition_id")))
    if old is None:
        raise BadRecord(f"a change of a partition that there is not, {topic}-{values.number('partition_id')}")
    leader = values.number("leader", _SAME_LEADER)

    def members(name: str, before: Sequence[BrokerId]) -> tuple[BrokerId, ...]:
        return tuple(values.numbers(name)) if values.has(name) else tuple(before)

    last_known = members("last_known_elr", _last_known(old))
    new = attrs.evolve(
        old,
        leader=old.leader if leader == _SAME_LEADER else _leader(leader),
        leader_epoch=old.leader_epoch + (leader != _SAME_LEADER),
        partition_epoch=old.partition_epoch + 1,
        isr=frozenset(members("isr", tuple(old.isr))),
        replicas=members("replicas", old.replicas),
        removing_replicas=members("removing_replicas", old.removing_replicas),
        adding_replicas=members("adding_replicas", old.adding_replicas),
        elr=frozenset(members("eligible_leader_replicas", tuple(old.elr))),
        last_known_leader=next(iter(last_known), None),
    )
    return _with_settings(image, new)


# Brokers


def _broker_fields(broker: BrokerMetadata) -> Answer:
    places = {LISTENER: (broker.host, broker.port)}
    if broker.peer_host:
        places[PEER_LISTENER] = (broker.peer_host, broker.peer_port)
    return {
        "broker_id": broker.broker,
        "incarnation_id": incarnation_id(broker.incarnation),
        "broker_epoch": broker.epoch,
        "end_points": [
            {"name": name, "host": host, "port": port, "security_protocol": 0} for name, (host, port) in places.items()
        ],
        "rack": broker.rack or None,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.shutting_down,
        "log_dirs": [directory_uuid(broker.directory)] if broker.directory else [],
    }


def _broker(values: Fields) -> BrokerMetadata:
    places = {p.text("name"): (p.text("host"), p.number("port")) for p in values.all("end_points")}
    peer = places.pop(PEER_LISTENER, ("", 0))
    host, port = next(iter(places.values()), ("", 0))
    return BrokerMetadata(
        broker=values.number("broker_id"),
        epoch=values.number("broker_epoch"),
        incarnation=incarnation_of(values.data("incarnation_id") or b""),
        fenced=bool(values.number("fenced", 1)),
        shutting_down=bool(values.number("in_controlled_shutdown", 0)),
        host=host,
        port=port,
        rack=values.text("rack"),
        directory=directory_of(next(iter(values.uuids("log_dirs")), b"")),
        peer_host=peer[0],
        peer_port=peer[1],
    )


def _broker_change(old: BrokerMetadata, new: BrokerMetadata) -> Answer:
    """What begins or ends (BrokerRegistrationFencingChange): 1 begins, -1 ends, 0 stays; no shutdown ends so."""
    return {
        "broker_id": new.broker,
        "broker_epoch": new.epoch,
        "fenced": int(new.fenced) - int(old.fenced),
        "in_controlled_shutdown": max(0, int(new.shutting_down) - int(old.shutting_down)),
    }


def _changed_broker(image: LogImage, values: Fields) -> BrokerMetadata:
    old = image.controller.brokers.get(values.number("broker_id"))
    if old is None or old.epoch != values.number("broker_epoch"):
        raise BadRecord(f"a change of a broker that is not registered so, {values.number('broker_id')}")
    fenced = {0: old.fenced, 1: True, -1: False}[values.number("fenced", 0)]
    return attrs.evolve(
        old, fenced=fenced, shutting_down=old.shutting_down or bool(values.number("in_controlled_shutdown", 0))
    )
