"""What the controller answers brokers: AlterPartition, BrokerRegistration, BrokerHeartbeat (ControllerApis).

The controller's core answers when its decision is durable; what it answers is matched with the request that it is to.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, Protocol, TypeAlias, cast

import attrs

from isr_broker.core.controller_state import Controller
from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import Parcel
from isr_broker.core.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerId,
    BrokerRegistered,
    Error,
    Heartbeat,
    HeartbeatAnswer,
    Message,
    Millis,
    Offset,
    RegisterBroker,
    TopicPartition,
)
from isr_broker.core.stamps import ALONE, Stamp, Stamped, bare, stamp_of, stamp_tags, stamps_in, with_stamp
from isr_broker.core.topics import Topics
from isr_broker.environment import Address
from isr_broker.wire import protocol
from isr_broker.wire.cluster_ids import is_of_ours, names_another_cluster
from isr_broker.wire.controller_channels import (
    ATTEMPTS,
    ELR,
    ELR_LEVEL,
    PEER_LISTENER,
    directory_of,
    incarnation_of,
    leader_tags,
    position_in,
)
from isr_broker.wire.protocol import HEADER_TAGS, Answer, Fields, Request, Tags

Reply: TypeAlias = Callable[[Answer], None]
Then: TypeAlias = Callable[[Message, Stamp | None], None]

SERVED_APIS: Final = (protocol.ALTER_PARTITION, protocol.BROKER_REGISTRATION, protocol.BROKER_HEARTBEAT)
_WITH_EPOCHS: Final = 3


class Host(Protocol):
    """Who has the controller, or may have it: a broker, or a voter."""

    @property
    def me(self) -> BrokerId:
        """Its number."""
        ...

    @property
    def cluster(self) -> str:
        """The id of the cluster."""
        ...

    @property
    def controller(self) -> Controller | None:
        """The controller's core, if it is here."""
        ...

    def receive_messages(self, parcels: Iterable[Parcel], now: Millis) -> None:
        """Messages arrived."""
        ...


@attrs.define
class BrokerRequests:
    """The handlers of the controller's host; elsewhere every request is NOT_CONTROLLER.

    On a voter of a quorum `leader_address` says where the controller is, and `decisions_read` how many decisions
    somebody has read who has read the log up to an offset, as brokers of Apache Kafka do.
    """

    runtime: Host
    leader_address: Callable[[], Address | None] | None = None
    decisions_read: Callable[[Offset], Offset] | None = None
    index: Topics = attrs.field(factory=Topics)
    waiting: dict[Hashable, deque[Then]] = attrs.field(factory=dict[Hashable, deque[Then]])
    open_replies: dict[int, Reply] = attrs.field(factory=dict[int, Reply])
    count: int = 0

    def serves(self, key: int) -> bool:
        """Whether an API is one that brokers ask the controller with."""
        return key in SERVED_APIS

    def serve(self, request: Request, now: Millis, reply: Reply) -> None:
        """Answer a request when the controller has."""
        reply_once = self.admits(request, reply)
        if reply_once is None:
            return
        broker, stamps = request.body.number("broker_id"), stamps_in(request.tags)
        match request.key:
            case protocol.BROKER_REGISTRATION:
                self._registers(broker, request, stamps.get(ALONE), now, reply_once)
            case protocol.BROKER_HEARTBEAT:
                self._heartbeat(broker, request, stamps.get(ALONE), now, reply_once)
            case _:
                self._alters(request, now, reply_once)

    def admits(self, request: Request, reply: Reply) -> Reply | None:
        """What the controller is to answer a broker with, unless it has changed by then; None for who is refused."""
        broker = request.body.number("broker_id")
        error = self._refusal(request, broker) if broker >= 0 else Error.INVALID_REQUEST
        if error is Error.NONE:
            return self._once(reply)
        reply(self._refusal_answer(error))
        return None

    def _refusal_answer(self, error: Error) -> Answer:
        tags: Mapping[int, bytes] = {} if self.leader_address is None else leader_tags(self.leader_address())
        return {"error_code": error.value, "is_fenced": True, HEADER_TAGS: tags}

    def _once(self, reply: Reply) -> Reply:
        """The same, until it is called: so long it may be told that the controller is elsewhere."""
        self.count += 1
        number = self.count
        self.open_replies[number] = reply

        def answers(answer: Answer) -> None:
            if self.open_replies.pop(number, None) is not None:
                reply(answer)

        return answers

    def resigns(self) -> None:
        """The controller is here no more: whoever waits is to ask elsewhere."""
        replies, self.open_replies = list(self.open_replies.values()), {}
        self.waiting.clear()
        for reply in replies:
            reply(self._refusal_answer(Error.NOT_CONTROLLER))

    def _refusal(self, request: Request, broker: BrokerId) -> Error:
        """Why a request is nothing for the controller's core.

        The controller's own broker talks to it within the process: whoever else takes its number is not it.
        """
        registers = request.key == protocol.BROKER_REGISTRATION
        if self.runtime.controller is None:
            return Error.NOT_CONTROLLER
        if names_another_cluster(request, self.runtime.cluster):
            return Error.INCONSISTENT_CLUSTER_ID
        if broker == self.runtime.me:
            return Error.DUPLICATE_BROKER_REGISTRATION if registers else Error.STALE_BROKER_EPOCH
        if registers and not _is_directory(request.body.uuids("log_dirs")):
            return Error.INVALID_REGISTRATION
        has_elr = self.runtime.controller.settings.insync_design.eligible_leader_replicas
        if registers and has_elr and not _supports_elr(request.body):
            return Error.UNSUPPORTED_VERSION
        return Error.NONE

    def _tell(self, source: BrokerId, messages: list[tuple[Message, Stamp | None]], now: Millis) -> None:
        self.runtime.receive_messages(
            [(source, CONTROLLER, with_stamp(message, stamp)) for message, stamp in messages], now
        )

    def take_answer(self, to: BrokerId, envelope: Message | Stamped) -> None:
        """The controller's core has answered a broker: the oldest request that this is an answer to."""
        message = bare(envelope)
        waiting = self.waiting.get(_answer_to(to, message))
        if waiting:
            then = waiting.popleft()
            if not waiting:
                del self.waiting[_answer_to(to, message)]
            then(message, stamp_of(envelope))

    def _await(self, key: Hashable, then: Then) -> None:
        self.waiting.setdefault(key, deque()).append(then)

    # The life of a broker

    def _registers(self, broker: BrokerId, request: Request, stamp: Stamp | None, now: Millis, reply: Reply) -> None:
        body = request.body
        listeners = body.all("listeners")
        where = listeners[0] if listeners else Fields({})
        peers = next((one for one in listeners if one.text("name") == PEER_LISTENER), Fields({}))
        message = RegisterBroker(
            broker=broker,
            incarnation=incarnation_of(body.data("incarnation_id") or b""),
            previous_broker_epoch=body.number("previous_broker_epoch"),
            host=where.text("host"),
            port=max(where.number("port"), 0),
            rack=body.text("rack"),
            cluster=body.text("cluster_id"),
            directory=directory_of(body.uuids("log_dirs")[0]),
            peer_host=peers.text("host"),
            peer_port=max(peers.number("port"), 0),
            position=position_in(request.tags),
        )

        def then(answer: Message, stamp: Stamp | None) -> None:
            assert isinstance(answer, BrokerRegistered)
            reply({"error_code": answer.error.value, "broker_epoch": answer.broker_epoch, HEADER_TAGS: _alone(stamp)})

        self._await((broker, message.incarnation), then)
        self._tell(broker, [(message, stamp)], now)

    def _heartbeat(self, broker: BrokerId, request: Request, stamp: Stamp | None, now: Millis, reply: Reply) -> None:
        body, read = request.body, request.body.number("current_metadata_offset")
        reads_log = self.decisions_read is not None and not is_of_ours(request)
        message = Heartbeat(
            broker=broker,
            broker_epoch=body.number("broker_epoch"),
            metadata_offset=self.decisions_read(read) if self.decisions_read is not None and reads_log else read,
            wants_to_shut_down=bool(body.number("want_shut_down", 0)),
            reads_log=reads_log,
        )

        def then(answer: Message, stamp: Stamp | None) -> None:
            assert isinstance(answer, HeartbeatAnswer)
            fails = answer.error is not Error.NONE
            reply(
                {
                    "error_code": answer.error.value,
                    "is_caught_up": not fails and message.metadata_offset >= answer.broker_epoch,
                    "is_fenced": answer.fenced,
                    "should_shut_down": answer.may_shut_down,
                    HEADER_TAGS: _alone(stamp),
                }
            )

        self._await((broker, message.broker_epoch, "lives"), then)
        self._tell(broker, [(message, stamp)], now)

    # In-sync sets

    def _alters(self, request: Request, now: Millis, reply: Reply) -> None:
        """Every partition is decided by itself; all of them become durable, and are answered, together."""
        assert self.runtime.controller is not None
        body, broker = request.body, request.body.number("broker_id")
        topics, stamps = self.index.of(self.runtime.controller.partitions), stamps_in(request.tags)
        # Kafka's leaders do not count what they ask: each request counts as one that was asked after those before.
        attempts = _attempts(request.tags) if is_of_ours(request) else repeat(self.count)
        rows: list[tuple[bytes, Answer]] = []
        answer_stamps: dict[tuple[str, int], Stamp] = {}
        messages: list[tuple[Message, Stamp | None]] = []
        names: dict[str, bytes] = {}
        requests: dict[TopicPartition, AlterPartitionRequest] = {}

        def then(answer: Message, stamp: Stamp | None) -> None:
            assert isinstance(answer, AlterPartitionResponse)
            tp = answer.partition
            rows.append((names[tp.topic], _decision(requests[tp], answer)))
            if stamp is not None:
                answer_stamps[tp.topic, tp.partition] = stamp
            if len(rows) == total:
                reply(_answer(rows, answer_stamps))

        for topic in body.all("topics"):
            uuid = topic.data("topic_id") or b""
            name = topics.name(uuid)
            names[name] = uuid
            for p in topic.all("partitions"):
                tp, attempt = TopicPartition(name, p.number("partition_index")), next(attempts, 1)
                if not name or tp in requests:
                    error = Error.INVALID_REQUEST if name else Error.UNKNOWN_TOPIC_ID
                    rows.append((uuid, {"partition_index": tp.partition, "error_code": error.value}))
                    continue
                requests[tp] = AlterPartitionRequest(
                    partition=tp,
                    leader=broker,
                    broker_epoch=body.number("broker_epoch"),
                    leader_epoch=p.number("leader_epoch"),
                    partition_epoch=p.number("partition_epoch"),
                    isr=_proposed_members(request.version, p),
                    attempt=attempt,
                )
                messages.append((requests[tp], stamps.get((tp.topic, tp.partition))))
        total = len(rows) + len(messages)
        for tp, message in requests.items():
            self._await((broker, tp, message.leader_epoch, message.partition_epoch, message.attempt), then)
        self._tell(broker, messages, now)
        if not messages:
            reply(_answer(rows, answer_stamps))


def _is_directory(ids: Sequence[bytes]) -> bool:
    """Whether these are the ids of the one data directory that our broker has, and none is reserved (DirectoryId)."""
    return len(ids) == 1 and int.from_bytes(ids[0], "big") >= _FIRST_FREE_ID


_FIRST_FREE_ID: Final = 100


def _supports_elr(body: Fields) -> bool:
    """Whether the broker supports the level of the ELR that holds here (processRegistrationFeature)."""
    ranges = [f for f in body.all("features") if f.text("name") == ELR]
    return any(f.number("min_supported_version") <= ELR_LEVEL <= f.number("max_supported_version") for f in ranges)


def _attempts(tags: Tags) -> Iterator[int]:
    """How often each partition's leader has asked, in the order of the partitions; once, if nothing is said."""
    try:
        said = cast("object", json.loads(tags.get(ATTEMPTS, b"[]")))
    except ValueError:
        said = []
    return iter([n for n in cast("list[object]", said) if isinstance(n, int)] if isinstance(said, list) else [])


def _answer_to(to: BrokerId, message: Message) -> Hashable:
    """What request an answer is to."""
    match message:
        case BrokerRegistered():
            return to, message.incarnation
        case HeartbeatAnswer():
            return to, message.broker_epoch, "lives"
        case AlterPartitionResponse():
            return to, message.partition, message.leader_epoch, message.partition_epoch, message.attempt
        case _:
            raise AssertionError(f"no answer of the controller to a request: {message}")


def _alone(stamp: Stamp | None) -> Tags:
    return stamp_tags({} if stamp is None else {ALONE: stamp})


def _proposed_members(version: int, p: Fields) -> tuple[tuple[BrokerId, int], ...]:
    """The proposed members with their broker epochs, which are not looked at before version 3 (KIP-903)."""
    if version < _WITH_EPOCHS:
        return tuple((b, -1) for b in p.numbers("new_isr"))
    return tuple((m.number("broker_id"), m.number("broker_epoch")) for m in p.all("new_isr_with_epochs"))


def _decision(request: AlterPartitionRequest, answer: AlterPartitionResponse) -> Answer:
    """The partition as it is with the change, or only why there is none."""
    if answer.error is not Error.NONE:
        return {"partition_index": request.partition.partition, "error_code": answer.error.value}
    return {
        "partition_index": request.partition.partition,
        "error_code": 0,
        "leader_id": request.leader,
        "leader_epoch": answer.new_leader_epoch,
        "isr": sorted(request.members),
        "leader_recovery_state": 0,
        "partition_epoch": answer.new_partition_epoch,
    }


def _answer(rows: list[tuple[bytes, Answer]], answer_stamps: dict[tuple[str, int], Stamp]) -> Answer:
    """All decisions; a stale broker epoch is an error of the whole request."""
    stale = Error.STALE_BROKER_EPOCH.value
    if rows and all(row["error_code"] == stale for _, row in rows):
        return {"error_code": stale, "topics": [], HEADER_TAGS: stamp_tags(answer_stamps)}
    topics: dict[bytes, list[Answer]] = {}
    for uuid, row in rows:
        topics.setdefault(uuid, []).append(row)
    return {
        "topics": [{"topic_id": t, "partitions": p} for t, p in topics.items()],
        HEADER_TAGS: stamp_tags(answer_stamps),
    }
