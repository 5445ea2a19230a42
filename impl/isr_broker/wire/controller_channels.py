"""A broker's requests to the controller, in Kafka's protocol: AlterPartition, BrokerRegistration, BrokerHeartbeat.

Two conversations, as in Kafka: one that changes in-sync sets, many partitions in one request (AlterPartitionManager),
and one that keeps the broker registered and alive (BrokerLifecycleManager).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Final, cast

import attrs

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    BrokerId,
    BrokerRegistered,
    Error,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    MetadataPosition,
    RegisterBroker,
    TopicPartition,
    error_of,
)
from isr_broker.core.stamps import ALONE, Stamp, Stamped, bare, stamp_of, stamp_tags, stamps_in, with_stamp
from isr_broker.environment import Address
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import cluster_tags
from isr_broker.wire.decoder import BadFrame
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Fields, Tags

ALTER_VERSION: Final = 3
REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 1

ATTEMPTS: Final = 10_001
"""The tagged field of AlterPartition's header with the attempt of each partition, in their order, unless every one is
the first (docs/adr/0007)."""

POSITION: Final = 10_003
"""The tagged field of BrokerRegistration's header that says up to where the broker has read the metadata log, as JSON,
unless it has read nothing."""

LEADER_AT: Final = 10_004
"""The tagged field of an answer's header, with the error NOT_CONTROLLER of a voter: where the controller is, as JSON
[host, port], or null."""

LISTENER: Final = "PLAINTEXT"
ELR: Final = "eligible.leader.replicas.version"
ELR_LEVEL: Final = 1
"""The one feature of Kafka's that is here, and its level in designs that have the ELR."""
PEER_LISTENER: Final = "BROKERS"
"""The name under which a registration tells where brokers find a broker, whatever its listener is called."""

_INCARNATION_BYTES: Final = 16


@attrs.define
class AlterPartitions:
    """The conversation about in-sync sets; `topic_id` knows the ids of topics, `cluster` is this one's id."""

    me: BrokerId
    cluster: str
    topic_id: Callable[[str], bytes]
    waiting: dict[TopicPartition, Message | Stamped] = attrs.field(factory=dict[TopicPartition, Message | Stamped])
    in_flight: dict[tuple[bytes, int], Message | Stamped] = attrs.field(
        factory=dict[tuple[bytes, int], Message | Stamped]
    )
    correlation: int = 0
    elsewhere: Address | None = None
    """Where the controller is, as the one that was asked last has said."""

    def put(self, envelope: Message | Stamped) -> None:
        """A leader asks; what it asked before and is not sent yet is not sent any more."""
        self.waiting[_alter(envelope).partition] = envelope

    def next(self) -> bytes | None:
        """All that waits, in one request."""
        if not self.waiting:
            return None
        self.correlation += 1
        self.in_flight = {(self.topic_id(tp.topic), tp.partition): sent for tp, sent in self.waiting.items()}
        self.waiting.clear()
        topics: dict[bytes, list[tuple[Answer, int]]] = {}
        stamps: dict[tuple[str, int], Stamp] = {}
        for (topic_id, number), sent in self.in_flight.items():
            request, stamp = _alter(sent), stamp_of(sent)
            members = [{"broker_id": b, "broker_epoch": epoch} for b, epoch in request.isr]
            partition: Answer = {
                "partition_index": number,
                "leader_epoch": request.leader_epoch,
                "new_isr_with_epochs": members,
                "leader_recovery_state": 0,
                "partition_epoch": request.partition_epoch,
            }
            topics.setdefault(topic_id, []).append((partition, request.attempt))
            if stamp is not None:
                stamps[request.partition.topic, number] = stamp
        attempts = [attempt for partitions in topics.values() for _, attempt in partitions]
        fields: Answer = {
            "broker_id": self.me,
            "broker_epoch": _alter(next(iter(self.in_flight.values()))).broker_epoch,
            "topics": [{"topic_id": t, "partitions": [p for p, _ in rows]} for t, rows in topics.items()],
            HEADER_TAGS: {
                **stamp_tags(stamps),
                **({ATTEMPTS: json.dumps(attempts).encode()} if max(attempts) > 1 else {}),
                **cluster_tags(self.cluster),
            },
        }
        return protocol.ask(
            protocol.ALTER_PARTITION, ALTER_VERSION, self.correlation, f"broker-{self.me}-alter-partition", fields
        )

    def take_answer(self, frame: bytes) -> list[Parcel]:
        """What was decided about each; an error of the whole request is one of each."""
        response = _response(protocol.ALTER_PARTITION, ALTER_VERSION, frame, self.correlation)
        stamps, whole = stamps_in(response.tags), error_of(response.body.number("error_code", 0))
        if whole is Error.NOT_CONTROLLER:
            self.elsewhere = leader_in(response.tags)
            raise BadFrame("the controller is elsewhere")
        requests, self.in_flight = self.in_flight, {}
        decisions: dict[tuple[bytes, int], Fields] = {}
        if whole is not Error.NONE:
            decisions = dict.fromkeys(requests, Fields({"error_code": whole.value}))
        for topic in response.body.all("topics"):
            for p in topic.all("partitions"):
                decisions[topic.data("topic_id") or b"", p.number("partition_index")] = p
        parcels: list[Parcel] = []
        for key, p in decisions.items():
            if key not in requests:
                continue
            request = _alter(requests[key])
            stamp = stamps.get((request.partition.topic, request.partition.partition))
            error = error_of(p.number("error_code", 0))
            answer = request.answer(error, p.number("leader_epoch"), p.number("partition_epoch"))
            parcels.append((CONTROLLER, self.me, with_stamp(answer, stamp)))
        return parcels

    def take_loss(self) -> list[Parcel]:
        """What was asked may have been decided; its leader asks again in time."""
        lost = [*self.in_flight.values(), *self.waiting.values()]
        self.in_flight = {}
        self.waiting.clear()
        return [(self.me, CONTROLLER, sent) for sent in lost]

    def is_waiting(self) -> bool:
        """Whether there is something to say."""
        return bool(self.waiting)

    def again(self) -> None:
        """What has no answer is to be sent again, elsewhere, unless its leader has asked anew."""
        for sent in self.in_flight.values():
            self.waiting.setdefault(_alter(sent).partition, sent)
        self.in_flight = {}


@attrs.define
class Lifecycle:
    """The conversation that keeps a broker registered: the newest registration or heartbeat that waits is sent."""

    me: BrokerId
    cluster: str
    eligible_leader_replicas: bool = True
    """Whether the broker's design has them: the one feature that it says it supports."""
    waiting: Message | Stamped | None = None
    in_flight: Message | Stamped | None = None
    correlation: int = 0
    elsewhere: Address | None = None

    def put(self, envelope: Message | Stamped) -> None:
        """A broker's core wants to be heard."""
        self.waiting = envelope

    def next(self) -> bytes | None:
        """A BrokerRegistration or a BrokerHeartbeat."""
        envelope, self.waiting = self.waiting, None
        if envelope is None:
            return None
        self.in_flight = envelope
        self.correlation += 1
        stamp, message = stamp_of(envelope), bare(envelope)
        tags = {**stamp_tags({} if stamp is None else {ALONE: stamp}), **cluster_tags(self.cluster)}
        name = f"broker-{self.me}-lifecycle"
        match message:
            case RegisterBroker():
                tags |= _position_tag(message.position)
                fields = {**_registration(message, self.eligible_leader_replicas), HEADER_TAGS: tags}
                return protocol.ask(protocol.BROKER_REGISTRATION, REGISTRATION_VERSION, self.correlation, name, fields)
            case Heartbeat():
                fields = {**_heartbeat(message), HEADER_TAGS: tags}
                return protocol.ask(protocol.BROKER_HEARTBEAT, HEARTBEAT_VERSION, self.correlation, name, fields)
            case _:
                raise AssertionError(f"no message of a broker's life: {message}")

    def take_answer(self, frame: bytes) -> list[Parcel]:
        """Whether the broker is registered, or fenced."""
        message = bare(self.in_flight) if self.in_flight is not None else None
        answer: BrokerRegistered | HeartbeatAnswer
        match message:
            case RegisterBroker():
                response = _response(protocol.BROKER_REGISTRATION, REGISTRATION_VERSION, frame, self.correlation)
                answer = BrokerRegistered(
                    broker=message.broker,
                    incarnation=message.incarnation,
                    broker_epoch=response.body.number("broker_epoch"),
                    error=error_of(response.body.number("error_code", 0)),
                )
            case Heartbeat():
                response = _response(protocol.BROKER_HEARTBEAT, HEARTBEAT_VERSION, frame, self.correlation)
                answer = HeartbeatAnswer(
                    broker=message.broker,
                    broker_epoch=message.broker_epoch,
                    fenced=bool(response.body.number("is_fenced", 1)),
                    may_shut_down=bool(response.body.number("should_shut_down", 0)),
                    error=error_of(response.body.number("error_code", 0)),
                )
            case _:
                raise BadFrame("an answer to nothing")
        if answer.error is Error.NOT_CONTROLLER and LEADER_AT in response.tags:
            self.elsewhere = leader_in(response.tags)
            raise BadFrame("the controller is elsewhere")
        self.in_flight = None
        return [(CONTROLLER, self.me, with_stamp(answer, stamps_in(response.tags).get(ALONE)))]

    def take_loss(self) -> list[Parcel]:
        """The broker's core is heard again in time."""
        lost = [sent for sent in (self.in_flight, self.waiting) if sent is not None]
        self.in_flight = self.waiting = None
        return [(self.me, CONTROLLER, sent) for sent in lost]

    def is_waiting(self) -> bool:
        """Whether there is something to say."""
        return self.waiting is not None

    def again(self) -> None:
        """What has no answer is to be sent again, elsewhere, unless there is something newer."""
        self.waiting, self.in_flight = self.waiting or self.in_flight, None


def _alter(envelope: Message | Stamped) -> AlterPartitionRequest:
    message = bare(envelope)
    assert isinstance(message, AlterPartitionRequest)
    return message


def _response(key: int, version: int, frame: bytes, correlation: int) -> protocol.Response:
    response = protocol.parse_answer(key, version, frame)
    if response.correlation != correlation:
        raise BadFrame(f"the answer to request {response.correlation}, {correlation} is expected")
    return response


def incarnation_id(incarnation: int) -> bytes:
    """The incarnation as the UUID that Kafka's protocol wants."""
    return incarnation.to_bytes(_INCARNATION_BYTES, "big")


def incarnation_of(uuid: bytes) -> int:
    """The incarnation in a UUID."""
    return int.from_bytes(uuid, "big")


def _registration(message: RegisterBroker, eligible_leader_replicas: bool) -> Answer:
    features: list[Answer] = [{"name": ELR, "min_supported_version": 0, "max_supported_version": ELR_LEVEL}]
    return {
        "broker_id": message.broker,
        "cluster_id": message.cluster,
        "incarnation_id": incarnation_id(message.incarnation),
        "listeners": _listeners(message),
        "rack": message.rack or None,
        "previous_broker_epoch": message.previous_broker_epoch,
        "features": features if eligible_leader_replicas else [],
        "log_dirs": [directory_uuid(message.directory)] if message.directory else [],
    }


def _position_tag(position: MetadataPosition) -> dict[int, bytes]:
    return {POSITION: json.dumps([position.offset, position.life]).encode()} if position.offset else {}


def position_in(tags: Mapping[int, bytes]) -> MetadataPosition:
    """The position in the tagged field; nothing if it is not there or is nothing of the kind."""
    try:
        offset, life = cast("list[int]", json.loads(tags.get(POSITION, b"[0, 0]")))
        return MetadataPosition(int(offset), int(life))
    except (ValueError, TypeError):
        return MetadataPosition()


def leader_tags(address: Address | None) -> Tags:
    """Where the controller is, as somebody says who is not it."""
    return {LEADER_AT: json.dumps(address).encode()}


def leader_in(tags: Tags) -> Address | None:
    """Where the controller is by the tagged field; None if that does not say."""
    try:
        host, port = cast("tuple[str, int]", json.loads(tags.get(LEADER_AT, b"null")))
        return str(host), int(port)
    except (ValueError, TypeError):
        return None


def directory_uuid(directory: str) -> bytes:
    """The id of a data directory as sixteen bytes."""
    return base64.urlsafe_b64decode(directory + "==")


def directory_of(uuid: bytes) -> str:
    """The id of a data directory, as it stands in `meta.properties`."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def _listeners(message: RegisterBroker) -> list[Answer]:
    """Where clients find it, and where brokers do if that is elsewhere."""
    places = {LISTENER: (message.host, message.port)}
    if message.peer_host:
        places[PEER_LISTENER] = (message.peer_host, message.peer_port)
    return [{"name": name, "host": host, "port": port, "security_protocol": 0} for name, (host, port) in places.items()]


def _heartbeat(message: Heartbeat) -> Answer:
    return {
        "broker_id": message.broker,
        "broker_epoch": message.broker_epoch,
        "current_metadata_offset": message.metadata_offset,
        "want_fence": False,
        "want_shut_down": message.wants_to_shut_down,
    }
