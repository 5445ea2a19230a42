"""What is played to one broker: the only controller of its quorum, its peers, one topic at a time, its clients.

Requests of the broker that the controller or a peer would decide on are held here (`alter`, `fetches`) until somebody
answers them. All others are answered at once, as a quorum in good health would.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from isr_broker.core.messages import BrokerId, LeaderEpoch, Offset
from isr_broker.storage.meta_properties import new_id
from isr_broker.wire import kafka_brokers, protocol
from isr_broker.wire.encoder import Answer
from isr_broker.wire.protocol import Fields
from isr_cluster.ports import HOST, free_ports
from isr_twin import metadata_log
from isr_twin.broker_process import BrokerProcess
from isr_twin.metadata_log import MetadataLog
from isr_twin.sockets import Client, Link, Wire

CONTROLLER: Final = 3000
BROKER: Final = 1
FETCH_VERSION: Final = 17
METADATA_VERSION: Final = 21
"""3.9-IV0, which every release from 3.9 on can be at."""
FIRST_EPOCH: Final = 1000
"""Broker epochs of peers are so much more than the model's."""
QUIET: Final = 0.3
"""Seconds after which a Fetch of metadata is answered with nothing."""
START: Final = 240.0
PATIENCE: Final = 30.0
SOON: Final = 1.0
"""Seconds within which the broker does by itself what it does at once."""

VERSIONS: Final[Mapping[int, tuple[int, int]]] = {
    **{key: both for key, both in kafka_brokers.ASKED_VERSIONS.items() if key != protocol.ENVELOPE},
    protocol.API_VERSIONS: (0, 4),
}
"""What is answered; a client's requests, which come in an Envelope, are not."""


class BrokerStuck(Exception):
    """The broker does not do what everything else waits for; the message says what."""


@attrs.frozen
class HeldRequest:
    """A request of the broker that nobody has answered yet."""

    link: Link
    request: protocol.Request

    def answer(self, fields: Answer) -> None:
        """Answer it."""
        self.link.answer(self.request, fields)


@attrs.frozen
class Partition:
    """What the controller has decided about the partition."""

    leader: BrokerId | None
    epoch: LeaderEpoch
    version: int
    isr: tuple[BrokerId, ...]


@attrs.define(eq=False)
class Surroundings:
    """Everything around one broker, which `command` starts; `peers` are the other replicas."""

    root: Path
    command: str
    peers: Sequence[BrokerId]
    lag: float = 0.7
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    wire: Wire = attrs.field(factory=Wire)
    log: MetadataLog = attrs.field(factory=lambda: MetadataLog(CONTROLLER))
    broker: BrokerProcess = attrs.field(init=False)
    cluster: str = attrs.field(factory=new_id)
    topic: str = ""
    topic_id: bytes = bytes(16)
    alter: HeldRequest | None = None
    fetches: list[HeldRequest] = attrs.field(factory=list[HeldRequest])
    caught_up: bool = False
    """Whether the broker is told that its metadata are the newest: before that it applies none when it starts."""
    metadata_offset: Offset = -1
    """Up to where the broker has applied metadata, as its last heartbeat says."""
    broker_epoch: int = -1
    strange: list[str] = attrs.field(factory=list[str])
    """Requests that nothing here plays an answer to."""
    _directories: list[bytes] = attrs.field(factory=list[bytes])
    _metadata_fetches: list[tuple[float, HeldRequest]] = attrs.field(factory=list["tuple[float, HeldRequest]"])
    _peer_ports: dict[BrokerId, int] = attrs.field(factory=dict[BrokerId, int])
    _clients: dict[str, Client] = attrs.field(factory=dict[str, Client])
    _topics: itertools.count[int] = attrs.field(factory=itertools.count)

    def __attrs_post_init__(self) -> None:
        port = self.wire.listen(HOST, self._receive)
        self._peer_ports = {peer: self.wire.listen(HOST, self._receive) for peer in self.peers}
        (own,) = free_ports(1)
        self.broker = BrokerProcess(
            command=self.command,
            root=self.root,
            node=BROKER,
            host=HOST,
            port=own,
            controller=(CONTROLLER, (HOST, port)),
            cluster=self.cluster,
            lag=self.lag,
            settings=self.settings,
        )
        level = {"name": "metadata.version", "feature_level": METADATA_VERSION}
        peers = [self.peer_registration(peer, FIRST_EPOCH, fenced=True) for peer in self.peers]
        self.log.append([("FeatureLevel", 0, level), *peers])

    # What the broker asks

    def _receive(self, link: Link, frame: bytes) -> None:
        request = protocol.parse(frame, VERSIONS)
        if isinstance(request, protocol.UnsupportedRequest):
            answer = protocol.answer_to_unsupported(request, VERSIONS)
            if answer is None:
                self.strange.append(f"API {request.key}, version {request.version}")
                self.wire.close(link)
            else:
                link.send(answer)
            return
        question = HeldRequest(link, request)
        match request.key:
            case protocol.API_VERSIONS:
                question.answer({"api_keys": protocol.api_keys(VERSIONS)})
            case protocol.BROKER_REGISTRATION:
                self._registers(question)
            case protocol.BROKER_HEARTBEAT:
                self._beats(question)
            case protocol.ALTER_PARTITION:
                self.alter = question
            case protocol.FETCH if any(t.data("topic_id") == metadata_log.TOPIC for t in request.body.all("topics")):
                self._metadata_fetches.append((time.monotonic() + QUIET, question))
                self._serve_metadata()
            case protocol.FETCH:
                self.fetches.append(question)
            case protocol.ALLOCATE_PRODUCER_IDS:
                question.answer({"producer_id_start": 0, "producer_id_len": 1000})
            case protocol.ASSIGN_REPLICAS_TO_DIRS:
                question.answer({"directories": request.body.values["directories"]})
            case _:
                self.strange.append(f"API {request.key}, version {request.version}")
                self.wire.close(link)

    def _registers(self, question: HeldRequest) -> None:
        body = question.request.body
        self._directories = body.uuids("log_dirs")
        self.broker_epoch = self.log.end
        fields = {
            "broker_id": BROKER,
            "incarnation_id": body.data("incarnation_id"),
            "broker_epoch": self.broker_epoch,
            "end_points": [
                {**listener.values, "security_protocol": listener.number("security_protocol", 0)}
                for listener in body.all("listeners")
            ],
            "features": [feature.values for feature in body.all("features")],
            "rack": None,
            "fenced": True,
            "log_dirs": self._directories,
        }
        self.log.append([("RegisterBroker", 3, fields)])
        question.answer({"broker_epoch": self.broker_epoch})

    def _beats(self, question: HeldRequest) -> None:
        body = question.request.body
        self.metadata_offset = body.number("current_metadata_offset")
        stops = bool(body.number("want_shut_down"))
        fenced = bool(body.number("want_fence")) or not self.caught_up
        question.answer({"is_caught_up": self.caught_up, "is_fenced": fenced, "should_shut_down": stops})

    def _serve_metadata(self) -> None:
        """Answer the fetches of metadata for which there is something, or that have waited long enough."""
        now, rest = time.monotonic(), list[tuple[float, HeldRequest]]()
        for until, question in self._metadata_fetches:
            partition = question.request.body.all("topics")[0].all("partitions")[0]
            offset = partition.number("fetch_offset")
            if offset < self.log.end or until <= now:
                question.answer(self.log.answer(offset))
            else:
                rest.append((until, question))
        self._metadata_fetches = rest

    def pump(self, seconds: float = 0.0) -> None:
        """Take what has come, and answer what can be answered."""
        self.wire.pump(seconds)
        self._serve_metadata()

    def waits(self, until: Callable[[], bool], seconds: float) -> bool:
        """Whether `until()` becomes true within so many seconds."""
        end = time.monotonic() + seconds
        while not until():
            rest = end - time.monotonic()
            if rest <= 0:
                return False
            self.pump(min(rest, 0.02))
        return True

    # What it is told

    def peer_registration(self, peer: BrokerId, epoch: int, fenced: bool) -> tuple[str, int, Answer]:
        """A peer's registration as a record."""
        end_point = {"name": "PLAINTEXT", "host": HOST, "port": self._peer_ports[peer], "security_protocol": 0}
        level = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": METADATA_VERSION}
        fields = {
            "broker_id": peer,
            "incarnation_id": (peer << 64 | epoch).to_bytes(16, "big"),
            "broker_epoch": epoch,
            "end_points": [end_point],
            "features": [level],
            "rack": None,
            "fenced": fenced,
            "log_dirs": [_directory(peer)],
        }
        return ("RegisterBroker", 3, fields)

    def tell(self, records: Sequence[tuple[str, int, Answer]]) -> None:
        """Write metadata, and wait until the broker has applied them."""
        offset = self.log.append(records) - 1
        self._serve_metadata()
        if not self.waits(lambda: self.metadata_offset >= offset, PATIENCE):
            raise BrokerStuck(f"the broker has applied metadata up to {self.metadata_offset}, not {offset}")

    def partition_record(self, partition: Partition) -> tuple[str, int, Answer]:
        """What was decided, as a record."""
        replicas = sorted([BROKER, *self.peers])
        fields = {
            "partition_id": 0,
            "topic_id": self.topic_id,
            "replicas": replicas,
            "isr": sorted(partition.isr),
            "leader": protocol.number_of(partition.leader),
            "leader_epoch": partition.epoch,
            "partition_epoch": partition.version,
            "directories": [self._directories[0] if r == BROKER else _directory(r) for r in replicas],
        }
        return ("Partition", 1, fields)

    def start(self) -> None:
        """Start the broker, and wait until it has registered; it is told no metadata yet."""
        self.caught_up, self.broker_epoch, self.metadata_offset = False, -1, -1
        self.broker.start()
        self._await(lambda: self.broker_epoch >= 0, START, "the broker does not register")

    def let_in(self) -> None:
        """Tell the broker that its metadata are the newest, and wait until it serves."""
        self.caught_up = True
        self._await(self._serves, START, "the broker does not serve")

    def _serves(self) -> bool:
        try:
            client = self._client("probe")
        except OSError:
            return False
        said = {"client_software_name": "insync", "client_software_version": "1"}
        number = client.send(protocol.API_VERSIONS, 3, said)
        return self.waits(lambda: number in client.answers or not client.link.open, PATIENCE) and client.link.open

    def _await(self, until: Callable[[], bool], seconds: float, problem: str) -> None:
        if not self.waits(lambda: until() or not self.broker.runs, seconds) or not self.broker.runs:
            raise BrokerStuck(f"{problem}: {self.broker.last_words()}")

    def crash(self, watermark: Offset) -> None:
        """Kill the broker; the watermark of the partition is what it had written last."""
        self.broker.kill({f"{self.topic} 0": watermark})
        for client in self._clients.values():
            self.wire.close(client.link)
        self._clients.clear()
        self.alter, self.broker_epoch = None, -1
        self.fetches.clear()
        self._metadata_fetches.clear()

    def new_topic(self, partition: Partition) -> None:
        """Forget the topic that there was, and tell the broker of a new one."""
        old = [("RemoveTopic", 0, {"topic_id": self.topic_id})] if self.topic else []
        self._let_go()
        self.topic = f"t{next(self._topics)}"
        self.topic_id = hashlib.sha256(f"{self.cluster} {self.topic}".encode()).digest()[:16]
        fields: Answer = {"name": self.topic, "topic_id": self.topic_id}
        self.tell([*old, ("Topic", 0, fields), self.partition_record(partition)])
        self._let_go()

    def _let_go(self) -> None:
        """Answer whatever is still held: that the topic is unknown."""
        if self.alter is not None:
            self.answer_alter(_UNKNOWN_TOPIC_ID)
        self.answer_fetches(_UNKNOWN_TOPIC_ID)

    # What is held

    def alter_partition(self) -> tuple[Fields, Fields] | None:
        """The AlterPartition that is held: the request and its one partition; None if there is none of this topic."""
        if self.alter is None:
            return None
        for topic in self.alter.request.body.all("topics"):
            if topic.data("topic_id") == self.topic_id:
                return self.alter.request.body, topic.all("partitions")[0]
        return None

    def answer_alter(self, error: int, partition: Partition | None = None) -> None:
        """Answer the AlterPartition that is held, with an error or what was decided."""
        assert self.alter is not None
        question, self.alter = self.alter, None
        row: dict[str, object] = {"partition_index": 0, "error_code": error}
        if partition is not None:
            row |= {
                "leader_id": protocol.number_of(partition.leader),
                "leader_epoch": partition.epoch,
                "isr": sorted(partition.isr),
                "partition_epoch": partition.version,
            }
        ids = [topic.data("topic_id") for topic in question.request.body.all("topics")]
        question.answer({"topics": [{"topic_id": topic, "partitions": [row]} for topic in ids]})

    def fetch(self, epoch: LeaderEpoch) -> tuple[HeldRequest, Fields] | None:
        """The fetch of this topic and epoch that is held, and its partition."""
        for question in self.fetches:
            for topic in question.request.body.all("topics") if question.link.open else ():
                for partition in topic.all("partitions") if topic.data("topic_id") == self.topic_id else ():
                    if partition.number("current_leader_epoch") == epoch:
                        return question, partition
        return None

    def answer_fetch(self, question: HeldRequest, row: Answer) -> None:
        """Answer a fetch about the partition."""
        self.fetches.remove(question)
        question.answer({"responses": [{"topic_id": self.topic_id, "partitions": [{"partition_index": 0, **row}]}]})

    def answer_fetches(self, error: int, but: LeaderEpoch | None = None) -> None:
        """Answer with an error all fetches that are held, but those of this epoch."""
        kept = self.fetch(but) if but is not None else None
        for question in list(self.fetches):
            if kept is None or question is not kept[0]:
                self.fetches.remove(question)
                responses = [
                    {
                        "topic_id": topic.data("topic_id"),
                        "partitions": [
                            {"partition_index": each.number("partition"), "error_code": error}
                            for each in topic.all("partitions")
                        ],
                    }
                    for topic in question.request.body.all("topics")
                ]
                question.answer({"responses": responses})

    # What is asked of it

    def _client(self, name: str) -> Client:
        client = self._clients.get(name)
        if client is None or not client.link.open:
            client = Client(self.wire, (HOST, self.broker.port), name)
            self._clients[name] = client
        return client

    def send(self, connection: str, key: int, version: int, fields: Answer) -> tuple[Client, int]:
        """Ask the broker something on a connection of this name; whom to ask for the answer, and its number."""
        client = self._client(connection)
        return client, client.send(key, version, fields)

    def answer_to(self, question: tuple[Client, int], seconds: float = PATIENCE) -> Fields | None:
        """The answer, if it comes within so many seconds."""
        client, number = question
        self.waits(lambda: number in client.answers or not client.link.open, seconds)
        return client.answers.pop(number, None)

    def close(self) -> None:
        """Kill the broker."""
        if self.broker.process is not None:
            self.broker.kill({})


_UNKNOWN_TOPIC_ID: Final = 100


def _directory(peer: BrokerId) -> bytes:
    return (peer << 96 | 1 << 32).to_bytes(16, "big")
