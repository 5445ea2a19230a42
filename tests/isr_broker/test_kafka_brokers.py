"""What Kafka's brokers ask controllers, in simulated time: sessions, producer ids, directories, and Envelopes.

Without these a broker of Kafka's could have a session too early, or an id that another one has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, cast

import attrs
import pytest
from tests.isr_broker.test_controller_runtime import Controllers
from tests.isr_broker.test_voter_runtime import BUSY, World

from isr_broker.controller_runtime import ControllerRuntime
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import AlterPartitionRequest, Error, TopicPartition
from isr_broker.core.record_batch import batches, key_and_value, record_places
from isr_broker.core.topics import uuid_of
from isr_broker.voter_runtime import VoterRuntime
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import cluster_tags
from isr_broker.wire.controller_channels import ELR, ELR_LEVEL
from isr_broker.wire.controller_records import (
    FIRST_PRODUCER_ID,
    METADATA_LEVEL,
    METADATA_VERSION,
    PRODUCER_IDS_AT_ONCE,
)
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.kafka_brokers import ASKED_VERSIONS, enclosed_request, enclosing_answer
from isr_broker.wire.metadata_records import decode
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Fields, Request


def test_a_request_comes_out_of_its_envelope_and_its_answer_goes_into_one() -> None:
    asked = protocol.ask(protocol.CREATE_TOPICS, 7, 3, "admin", {"topics": [{"name": "t", "num_partitions": 2}]})
    body = {"request_data": asked[4:], "request_principal": b"", "client_host_address": b"\x7f\0\0\1"}
    envelope = protocol.parse(protocol.ask(protocol.ENVELOPE, 0, 9, "7", body)[4:], ASKED_VERSIONS)
    assert isinstance(envelope, Request)
    request = enclosed_request(envelope.body, {protocol.CREATE_TOPICS: (2, 7)})
    assert isinstance(request, Request)
    assert [(topic.text("name"), topic.number("num_partitions")) for topic in request.body.all("topics")] == [("t", 2)]
    frame = protocol.answer_to(envelope, enclosing_answer(request, {"topics": [{"name": "t", "error_code": 36}]}))
    outer = protocol.parse_answer(protocol.ENVELOPE, 0, frame[4:])
    inner = protocol.parse_answer(protocol.CREATE_TOPICS, 7, outer.body.data("response_data") or b"")
    assert (outer.correlation, inner.correlation) == (9, 3)
    assert [topic.number("error_code") for topic in inner.body.all("topics")] == [36]


def test_an_envelope_with_nothing_in_it_is_no_request() -> None:
    with pytest.raises(BadFrame):
        enclosed_request(Fields({}), protocol.SERVED_VERSIONS)


SOMEWHERE = [{"name": "PLAINTEXT", "host": "h", "port": 9, "security_protocol": 0}]
ELR_FEATURE = {"name": ELR, "min_supported_version": 0, "max_supported_version": ELR_LEVEL}


def directory(broker: int) -> bytes:
    return bytes([broker] * 16)


class Brokers(Controllers):
    """Controllers whom nobody calls but whoever `asks`."""

    def __attrs_post_init__(self) -> None:
        World.__attrs_post_init__(self)
        self.callers = {}

    @property
    def first(self) -> ControllerRuntime:
        """The active controller."""
        leader = self.leader()
        assert leader is not None
        return cast("ControllerRuntime", self.runtimes[leader])

    def asks(self, key: int, fields: Answer, to: int | None = None, version: int | None = None) -> Fields:
        """What a controller answers, as it is on the wire; the active one unless another is named."""
        high = ControllerRuntime.versions[key][1] if version is None else version
        frames = self.begins_to_ask(protocol.ask(key, high, 1, "11", fields), to)
        self.run(self.now + 1_000)
        (frame,) = frames
        return protocol.parse_answer(key, high, frame[4:]).body

    def begins_to_ask(self, frame: bytes, to: int | None = None) -> list[bytes]:
        """The frames of answers, once they come."""
        runtime, frames = self.first if to is None else self.runtimes[to], list[bytes]()
        request = protocol.parse(frame[4:], ControllerRuntime.versions)
        assert isinstance(request, Request)
        runtime.serve(request, lambda answer: frames.append(protocol.answer_to(request, answer)), self.now)
        return frames

    def registers(self, broker: int) -> int:
        """The broker epoch."""
        answer = self.asks(
            protocol.BROKER_REGISTRATION,
            {
                **{"broker_id": broker, "cluster_id": "c", "incarnation_id": directory(broker + 100)},
                **{"listeners": SOMEWHERE, "features": [ELR_FEATURE], "log_dirs": [directory(broker)]},
                "previous_broker_epoch": -1,
            },
        )
        assert answer.number("error_code") == 0
        return answer.number("broker_epoch")

    def beats(self, broker: int, epoch: int, applied: int) -> Fields:
        """A heartbeat of who has applied the log up to a record."""
        fields = {"broker_id": broker, "broker_epoch": epoch, "current_metadata_offset": applied}
        return self.asks(protocol.BROKER_HEARTBEAT, fields)

    def joins(self, broker: int) -> int:
        """A broker is registered, and has its session."""
        epoch = self.registers(broker)
        assert not self.beats(broker, epoch, self.watermark() - 1).number("is_fenced")
        return epoch

    def watermark(self) -> int:
        """How many records of the log are."""
        return self.first.voter.high_watermark or 0

    def records(self, name: str) -> list[Fields]:
        """Those of a type in the active controller's log."""
        data = self.first.files.log.contents()
        values = [
            decode(key_and_value(data, at)[1] or b"")
            for batch in batches(data)
            if not batch.control
            for at in record_places(data, batch)
        ]
        return [Fields(dict(record.fields)) for record in values if record.name == name]


def three(runs: type[ControllerRuntime] = ControllerRuntime) -> Brokers:
    world = Brokers(BUSY, VoterRuntime, runs=runs)
    world.run(5_000)
    return world


def creates(topic: str, **configs: str) -> bytes:
    rows = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    wanted: Answer = {"name": topic, "num_partitions": 2, "replication_factor": 2, "configs": rows}
    fields: Answer = {"topics": [wanted], "timeout_ms": 1_000}
    return protocol.ask(protocol.CREATE_TOPICS, 7, 3, "admin", fields)


def envelope(frame: bytes) -> Answer:
    return {"request_data": frame[4:], "request_principal": None, "client_host_address": b"\x7f\0\0\1"}


def is_early(runs: type[ControllerRuntime]) -> bool:
    """Whether a broker gets its session that has applied all but its registration."""
    world = three(runs)
    before = world.watermark()
    epoch = world.registers(11)
    early = world.beats(11, epoch, before - 1)
    late = world.beats(11, epoch, world.watermark() - 1)
    assert (late.number("is_fenced"), late.number("is_caught_up")) == (0, 1)
    return not early.number("is_fenced")


class CountsRecords(ControllerRuntime):
    """It takes an offset in the log for a number of decisions."""

    def decisions_read(self, offset: int) -> int:
        return offset


def test_a_broker_has_its_session_once_it_has_applied_its_registration() -> None:
    assert not is_early(ControllerRuntime)
    assert is_early(CountsRecords), "or the records of the log are as many as the decisions"


def blocks(runs: type[ControllerRuntime]) -> list[int]:
    """The first ids of the blocks that two brokers are given, also by the next controller."""
    world = three(runs)
    first, found = world.first.me, list[int]()
    epochs = {broker: world.joins(broker) for broker in (11, 12)}

    def allocates(broker: int) -> None:
        answer = world.asks(protocol.ALLOCATE_PRODUCER_IDS, {"broker_id": broker, "broker_epoch": epochs[broker]})
        assert (answer.number("error_code"), answer.number("producer_id_len")) == (0, PRODUCER_IDS_AT_ONCE)
        found.append(answer.number("producer_id_start"))

    for broker in (11, 12, 11):
        allocates(broker)
    world.crash(first)
    world.run(world.now + 10_000)
    allocates(12)
    stale = world.asks(protocol.ALLOCATE_PRODUCER_IDS, {"broker_id": 11, "broker_epoch": epochs[11] + 1})
    assert stale.number("error_code") == Error.STALE_BROKER_EPOCH.value
    return found


class Forgetful(ControllerRuntime):
    """It gives producer ids that others have."""

    def _allocates(self) -> list[bytes]:
        self.image = attrs.evolve(self.image, next_producer_id=FIRST_PRODUCER_ID)
        return ControllerRuntime._allocates(self)


def test_no_producer_id_is_given_twice_also_by_the_next_controller() -> None:
    assert blocks(ControllerRuntime) == [FIRST_PRODUCER_ID + 1_000 * number for number in range(4)]
    assert len(set(blocks(Forgetful))) < 4


def test_a_topic_is_created_by_an_envelope_and_its_replicas_are_in_the_directories_of_their_brokers() -> None:
    world = three()
    for broker in (11, 12):
        world.joins(broker)
    for error in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
        answer = world.asks(protocol.ENVELOPE, envelope(creates("t")))
        assert answer.number("error_code") == 0
        inner = protocol.parse_answer(protocol.CREATE_TOPICS, 7, answer.data("response_data") or b"")
        assert [topic.number("error_code") for topic in inner.body.all("topics")] == [error.value]
    partitions = world.records("Partition")
    assert len(partitions) == 2
    for partition in partitions:
        assert partition.uuids("directories") == [directory(broker) for broker in partition.numbers("replicas")]


def test_topics_of_kafkas_brokers_for_themselves_are_compacted_and_no_others() -> None:
    world = three()
    for broker in (11, 12):
        world.joins(broker)
    errors: list[int] = []
    for topic, minimum in (("t", "1"), ("__consumer_offsets", "no number"), ("__consumer_offsets", "1")):
        frame = creates(topic, cleanup_policy="compact", min_insync_replicas=minimum)
        answer = world.asks(protocol.ENVELOPE, envelope(frame))
        inner = protocol.parse_answer(protocol.CREATE_TOPICS, 7, answer.data("response_data") or b"")
        errors += [topic.number("error_code") for topic in inner.body.all("topics")]
    assert errors == [Error.INVALID_CONFIG.value] * 2 + [0]
    of_topics = [(c.text("resource_name"), c.text("name"), c.text("value")) for c in world.records("Config")]
    assert ("__consumer_offsets", "cleanup.policy", "compact") in of_topics


def test_another_controller_and_one_that_resigns_say_so_of_an_envelope() -> None:
    world = three()
    for broker in (11, 12):
        world.joins(broker)
    first = world.first.me
    other = next(me for me in world.runtimes if me != first)
    refused = world.asks(protocol.ENVELOPE, envelope(creates("t")), to=other)
    assert refused.number("error_code") == Error.NOT_CONTROLLER.value
    world.apart = {first}
    frames = world.begins_to_ask(protocol.ask(protocol.ENVELOPE, 0, 1, "11", envelope(creates("t"))))
    assert not frames
    world.run(world.now + 10_000)
    assert world.first.me != first
    (frame,) = frames
    assert (
        protocol.parse_answer(protocol.ENVELOPE, 0, frame[4:]).body.number("error_code") == Error.NOT_CONTROLLER.value
    )


def test_what_no_client_asks_is_refused_in_an_envelope() -> None:
    world = three()
    beat = {"broker_id": 11, "broker_epoch": 1, "current_metadata_offset": 1}
    heartbeat = protocol.ask(protocol.BROKER_HEARTBEAT, 1, 1, "11", beat)
    for frame in (b"", heartbeat, protocol.ask(protocol.ENVELOPE, 0, 1, "11", envelope(heartbeat))):
        said = world.asks(protocol.ENVELOPE, envelope(frame))
        assert said.number("error_code") == Error.INVALID_REQUEST.value


def test_the_levels_of_features_stand_once_in_the_log_and_every_controller_tells_them() -> None:
    world = three()
    world.crash(world.first.me)
    world.run(world.now + 5_000)
    written = [(record.text("name"), record.number("feature_level")) for record in world.records("FeatureLevel")]
    assert written == [(ELR, ELR_LEVEL), (METADATA_VERSION, METADATA_LEVEL)]
    for me in world.runtimes:
        told = world.asks(protocol.API_VERSIONS, {}, to=me, version=4).all("finalized_features")
        assert [(feature.text("name"), feature.number("max_version_level")) for feature in told] == written


def test_replicas_are_in_the_directory_that_their_broker_is_registered_with() -> None:
    world = three()
    epoch = world.joins(11)

    def assigned(where: bytes, broker_epoch: int) -> list[int]:
        rows: list[Answer] = [{"topic_id": bytes(16), "partitions": [{"partition_index": 3}]}]
        fields: Answer = {
            **{"broker_id": 11, "broker_epoch": broker_epoch},
            "directories": [{"id_": where, "topics": rows}],
        }
        answer = world.asks(protocol.ASSIGN_REPLICAS_TO_DIRS, fields)
        said = [p for d in answer.all("directories") for t in d.all("topics") for p in t.all("partitions")]
        return [answer.number("error_code"), *(p.number("error_code") for p in said)]

    assert assigned(directory(11), epoch) == [0, 0]
    assert assigned(directory(12), epoch) == [0, Error.INVALID_REQUEST.value]
    assert assigned(directory(11), epoch + 1) == [Error.STALE_BROKER_EPOCH.value]


class Notes(ControllerRuntime):
    """What it was told of, as attempts."""

    attempts: ClassVar[list[int]] = []

    def receive_messages(self, parcels: Iterable[Parcel], now: int) -> None:
        listed = list(parcels)
        self.attempts.extend(m.attempt for _, _, m in listed if isinstance(m, AlterPartitionRequest))
        ControllerRuntime.receive_messages(self, listed, now)


def test_each_alter_partition_of_kafka_counts_as_asked_after_those_before() -> None:
    world = three(Notes)
    epochs = {broker: world.joins(broker) for broker in (11, 12)}
    world.asks(protocol.ENVELOPE, envelope(creates("t")))
    partition = world.first.image.controller.partitions[TopicPartition("t", 0)]
    leader = partition.leader or 0
    row: Answer = {
        **{"partition_index": 0, "leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch},
        "new_isr_with_epochs": [{"broker_id": leader, "broker_epoch": epochs[leader]}],
    }
    fields: Answer = {
        **{"broker_id": leader, "broker_epoch": epochs[leader]},
        "topics": [{"topic_id": uuid_of(partition.topic_id), "partitions": [row]}],
    }
    errors: list[int] = []
    untagged: Mapping[int, bytes] = {}
    for tags in (untagged, untagged, cluster_tags("c")):
        answer = world.asks(protocol.ALTER_PARTITION, {**fields, HEADER_TAGS: tags})
        errors += [p.number("error_code") for topic in answer.all("topics") for p in topic.all("partitions")]
    first, second, ours = Notes.attempts
    assert first < second
    assert ours == 1
    assert errors == [0, Error.INVALID_UPDATE_VERSION.value, Error.INVALID_UPDATE_VERSION.value]
