"""What a controller decides, as Kafka's records, and read again: nothing is changed on the way.

Without these a controller that begins with the log of another could take a partition for something else than was
decided.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isr_broker.core.controller_state import Controller, apply_records
from isr_broker.core.messages import (
    BrokerMetadata,
    MetadataPosition,
    MetadataRecord,
    PartitionMetadata,
    TopicPartition,
    removed_partition,
    unregistration,
)
from isr_broker.core.record_batch import batch_around, batches, encoded_record, key_and_value, record_places, stamped
from isr_broker.core.topics import uuid_of
from isr_broker.core.voter_state import fixed_voters
from isr_broker.metadata_image import TOPIC_RESOURCE, MetadataImage
from isr_broker.settings import Settings
from isr_broker.wire.control_records import leader_change
from isr_broker.wire.controller_records import LogImage, batch_of, replay
from isr_broker.wire.metadata_records import BadRecord, decode, encode

EMPTY = LogImage(controller=Controller(settings=Settings()))
ONE = BrokerMetadata(
    broker=1, epoch=2, incarnation=2**70, host="h", port=9092, rack="r", directory="A" * 21 + "g", peer_host="p"
)
FIRST = PartitionMetadata(
    partition=TopicPartition("t", 0),
    replicas=(1, 2),
    isr=frozenset({1, 2}),
    leader=1,
    topic_id=2**100,
    configs=(("max.message.bytes", "7"),),
)


def names(data: bytes) -> list[str]:
    """The types of the records of a batch."""
    values = (key_and_value(data, at)[1] for batch in batches(data) for at in record_places(data, batch))
    return [decode(value or b"").name for value in values]


def said(records: Sequence[MetadataRecord], image: LogImage = EMPTY) -> tuple[list[str], LogImage]:
    """What records are in Kafka's, after it was shown that the controller reads from these what it has decided."""
    data = batch_of(image, records, 5)
    after, end = replay(image, data)
    assert end == len(names(data))
    assert after.controller == apply_records(image.controller, tuple(records))
    return names(data), after


def test_each_decision_is_the_record_that_kafka_has_for_it() -> None:
    other = attrs.evolve(FIRST, partition=TopicPartition("t", 1))
    kinds, image = said([ONE, FIRST, other])
    settings = ["Config"] * 3
    assert kinds == ["RegisterBroker", "Topic", *settings, "Partition", "Partition"]
    shrunk = attrs.evolve(FIRST, isr=frozenset({1}), elr=frozenset({2}), partition_epoch=1)
    leaderless = attrs.evolve(
        shrunk, isr=frozenset(), leader=None, leader_epoch=1, partition_epoch=2, last_known_leader=1
    )
    kinds, image = said([attrs.evolve(ONE, fenced=False), shrunk, leaderless], image)
    assert kinds == ["BrokerRegistrationChange", "PartitionChange", "PartitionChange"]
    again = attrs.evolve(ONE, fenced=False, shutting_down=True)
    assert said([again], image)[0] == ["BrokerRegistrationChange"]
    kinds, image = said([removed_partition(FIRST.partition), removed_partition(other.partition)], image)
    assert kinds == ["RemoveTopic"], "one for all partitions"
    assert not image.configs
    assert not image.names
    assert said([unregistration(1)], image)[0] == ["UnregisterBroker"]


def test_what_no_change_says_is_written_whole() -> None:
    _, image = said([ONE, FIRST])
    jumped = attrs.evolve(FIRST, leader_epoch=7, partition_epoch=9)
    assert said([jumped], image)[0] == ["Partition"]
    with_minimum = attrs.evolve(FIRST, configs=(("min.insync.replicas", "2"),), min_insync_replicas=2)
    assert said([with_minimum], image)[0] == ["Config", "Config", "Partition"], "one setting comes, one goes"
    assert said([attrs.evolve(ONE, port=1)], image)[0] == ["RegisterBroker"]


def test_a_minimum_of_the_cluster_is_a_setting_of_it() -> None:
    _, image = said([FIRST])
    assert dict(image.cluster_configs) == {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
    changed = attrs.evolve(FIRST, min_insync_replicas=2, unclean_leader_election=True, partition_epoch=1)
    kinds, image = said([changed], image)
    assert kinds == ["Config", "Config", "PartitionChange"]
    assert dict(image.cluster_configs) == {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}


def test_the_first_record_of_an_epoch_is_a_life_and_other_records_are_passed_over() -> None:
    data = leader_change(1, fixed_voters({1, 2}).last, [1, 2], 4, 0, 5)
    foreign = encoded_record(encode("FeatureLevel", 0, {"name": "metadata.version", "feature_level": 25}))
    data += stamped(batch_around(foreign), 1, 4)
    image, end = replay(EMPTY, data)
    assert image.controller.lives == (MetadataPosition(1, 4),)
    assert (image.controller.offset, end) == (1, 2)


def test_what_cannot_be_is_no_image() -> None:
    for name, fields in (
        ("Partition", {"topic_id": bytes(15) + b"\7", "partition_id": 0}),
        ("PartitionChange", {"topic_id": bytes(15) + b"\7", "partition_id": 0}),
        ("RemoveTopic", {"topic_id": bytes(15) + b"\7"}),
        ("BrokerRegistrationChange", {"broker_id": 4, "broker_epoch": 1}),
    ):
        with pytest.raises(BadRecord):
            replay(EMPTY, batch_around(encoded_record(encode(name, 0, fields))))


BROKER_IDS = st.integers(1, 3)
SETS = st.frozensets(BROKER_IDS)
LISTS = st.lists(BROKER_IDS, unique=True).map(tuple)
PARTITIONS = st.builds(
    PartitionMetadata,
    partition=st.builds(TopicPartition, topic=st.sampled_from(["a", "b"]), partition=st.integers(0, 1)),
    replicas=st.lists(BROKER_IDS, unique=True, min_size=1).map(tuple),
    isr=SETS,
    leader=st.none() | BROKER_IDS,
    leader_epoch=st.integers(0, 2),
    partition_epoch=st.integers(0, 3),
    elr=SETS,
    last_known_leader=st.none() | BROKER_IDS,
    adding_replicas=LISTS,
    removing_replicas=LISTS,
)
BROKERS = st.builds(
    BrokerMetadata,
    broker=BROKER_IDS,
    epoch=st.integers(1, 3),
    incarnation=st.integers(0, 2**127),
    fenced=st.booleans(),
    shutting_down=st.booleans(),
    host=st.just("h"),
    port=st.integers(0, 65535),
    rack=st.sampled_from(["", "r"]),
    directory=st.sampled_from(["", "A" * 21 + "g"]),
    peer_host=st.just("p"),
    peer_port=st.integers(0, 65535),
)
MINIMA = st.integers(1, 3)


@st.composite
def batches_of_records(draw: st.DrawFn) -> list[list[MetadataRecord]]:
    """Decisions of a controller, as far as a record of a partition goes with those before: its topic's settings."""
    drawn = draw(st.lists(st.lists(PARTITIONS | BROKERS, min_size=1, max_size=4), max_size=5))
    found: list[list[MetadataRecord]] = []
    for records in drawn:
        own, minimum, unclean = draw(st.none() | MINIMA), draw(MINIMA), draw(st.booleans())
        configs = () if own is None else (("min.insync.replicas", str(own)),)
        found.append(
            [
                attrs.evolve(
                    record,
                    topic_id=2**70 + ord(record.partition.topic),
                    configs=configs,
                    min_insync_replicas=own or minimum,
                    unclean_leader_election=unclean,
                )
                if isinstance(record, PartitionMetadata)
                else record
                for record in records
            ]
        )
    return found


@given(batches_of_records())
def test_whatever_is_decided_is_read_again(decisions: list[list[MetadataRecord]]) -> None:
    image = EMPTY
    for records in decisions:
        _, image = said(records, image)
    for broker in image.controller.brokers:
        _, image = said([unregistration(broker)], image)
    for topic in ("a", "b"):
        gone = [tp for tp in sorted(image.controller.partitions) if tp.topic == topic]
        if gone:
            _, image = said([removed_partition(tp) for tp in gone], image)
    assert not image.controller.partitions
    assert not image.names


@given(batches_of_records())
def test_another_reader_of_kafkas_records_sees_the_same(decisions: list[list[MetadataRecord]]) -> None:
    """The one that reads the files of Kafka's controllers, which was written beside it."""
    image, reader, end = EMPTY, MetadataImage(), 0
    for records in decisions:
        data = stamped(batch_of(image, records, 5), end, 1)
        reader.take_log(data)
        image, end = replay(image, data)
    for tp, partition in image.controller.partitions.items():
        fields = reader.partitions[uuid_of(partition.topic_id), tp.partition]
        members = [sorted(partition.isr), sorted(partition.elr), list(partition.replicas)]
        assert [fields["isr"], fields["eligible_leader_replicas"] or [], fields["replicas"]] == members
        assert fields["leader"] == (-1 if partition.leader is None else partition.leader)
        assert reader.configs.get((TOPIC_RESOURCE, tp.topic), {}) == dict(image.configs.get(tp.topic, {}))
    assert len(reader.partitions) == len(image.controller.partitions)
    brokers = {number: (b.fenced, b.shutting_down) for number, b in image.controller.brokers.items()}
    assert {number: (b.fenced, b.leaving) for number, b in reader.brokers.items()} == brokers


def no_words(_: PartitionMetadata) -> list[int]:
    return []


def test_a_change_that_says_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that loses something is not taken: the next one is, or none."""
    monkeypatch.setattr("isr_broker.wire.controller_records._last_known", no_words)
    _, image = said([FIRST])
    known = attrs.evolve(FIRST, last_known_leader=1, partition_epoch=1)
    with pytest.raises(BadRecord, match="no record of Kafka's says"):
        batch_of(image, [known], 5)
