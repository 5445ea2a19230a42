"""What an operator asks of a cluster, through Kafka's own protocol: topics, who leads them, who is in sync.

One connection and one request at a time; a tool, no client for records.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Final, TypeAlias

import attrs

from isr_broker.wire import protocol
from isr_broker.wire.decoder import BadFrame, Cursor, entity, tagged_fields
from isr_broker.wire.protocol import Answer, Fields

DELETE_TOPICS: Final = 20
DESCRIBE_TOPIC_PARTITIONS: Final = 75
"""KIP-966; the only one that says the ELR."""

Address: TypeAlias = tuple[str, int]


class RequestRefused(Exception):
    """A broker has answered with an error, or not at all; the message says which."""


@attrs.frozen(kw_only=True)
class PartitionSeen:
    """A partition as a broker describes it; `elr` is None if the broker does not say."""

    topic: str
    number: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    offline: tuple[int, ...] = ()


def error_name(code: int) -> str:
    """Kafka's name of an error, or its number."""
    return protocol.ERROR_NAMES.get(code, f"error {code}")


def _check(answer: Fields, what: str) -> None:
    code, why = answer.number("error_code"), answer.text("error_message")
    if code > 0:
        raise RequestRefused(f"{what}: {error_name(code)}{f', {why}' if why else ''}")


class Admin:
    """A connection to one broker; use it as a context."""

    def __init__(self, address: Address, patience: float = 10.0) -> None:
        self.address = address
        try:
            self._socket = socket.create_connection(address, patience)
        except OSError as error:
            why = error.strerror or str(error)
            raise RequestRefused(f"no broker answers at {address[0]}:{address[1]}: {why.lower()}") from error
        self._correlation_id = 0
        self.serves = self._supported_versions()

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def ask(self, key: int, version: int, fields: Answer) -> Fields:
        """One request and its answer."""
        self._correlation_id += 1
        try:
            self._socket.sendall(protocol.ask(key, version, self._correlation_id, "insync", fields))
            (size,) = struct.unpack(">i", self._read(4))
            cursor = Cursor(self._read(int(size)), 4)
            schema = protocol.response_schema(key, version)
            if schema.__header_schema__.__flexible__:
                tagged_fields(cursor)
            return Fields(entity(cursor, schema))
        except (OSError, BadFrame) as error:
            raise RequestRefused(
                f"{self.address[0]}:{self.address[1]} does not answer as a broker does: {error}"
            ) from error

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise OSError("it has closed the connection")
            data += more
        return bytes(data)

    def _supported_versions(self) -> dict[int, tuple[int, int]]:
        said = self.ask(protocol.API_VERSIONS, 0, {})
        return {k.number("api_key"): (k.number("min_version"), k.number("max_version")) for k in said.all("api_keys")}

    # Questions

    def partitions(self, topics: list[str] | None = None) -> list[PartitionSeen]:
        """The partitions of these topics, or of all, as this broker knows them; Refused if a topic is not there."""
        asked = None if topics is None else [{"name": name} for name in topics]
        said = self.ask(protocol.METADATA, 9, {"topics": asked, "allow_auto_topic_creation": False})
        descriptions: list[PartitionSeen] = []
        for topic in said.all("topics"):
            name = topic.text("name")
            _check(topic, f"topic {name}")
            descriptions += [_partition_seen(name, p) for p in topic.all("partitions")]
        return self._with_elr(sorted(descriptions, key=lambda p: (p.topic, p.number)))

    def _with_elr(self, descriptions: list[PartitionSeen]) -> list[PartitionSeen]:
        if DESCRIBE_TOPIC_PARTITIONS not in self.serves or not descriptions:
            return descriptions
        names = sorted({p.topic for p in descriptions})
        fields = {"topics": [{"name": name} for name in names], "response_partition_limit": 2_000}
        said = self.ask(DESCRIBE_TOPIC_PARTITIONS, 0, fields)
        elr = {
            (topic.text("name"), p.number("partition_index")): _numbers(p, "eligible_leader_replicas")
            for topic in said.all("topics")
            for p in topic.all("partitions")
        }
        return [attrs.evolve(p, elr=elr.get((p.topic, p.number))) for p in descriptions]

    def brokers(self) -> dict[int, Address]:
        """The brokers that have a session, and where they listen."""
        said = self.ask(protocol.METADATA, 9, {"topics": [], "allow_auto_topic_creation": False})
        return {b.number("node_id"): (b.text("host"), b.number("port")) for b in said.all("brokers")}

    def create(
        self,
        topic: str,
        partitions: int = -1,
        replicas: int = -1,
        config: dict[str, str] | None = None,
        on: list[list[int]] | None = None,
    ) -> None:
        """Create a topic; -1 leaves a number to the broker's settings. `on` are the brokers of each partition."""
        topic_request = {
            "name": topic,
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": [{"name": name, "value": value} for name, value in (config or {}).items()],
            "assignments": [{"partition_index": n, "broker_ids": ids} for n, ids in enumerate(on or [])],
        }
        version = min(7, self.serves[protocol.CREATE_TOPICS][1])
        said = self.ask(protocol.CREATE_TOPICS, version, {"topics": [topic_request], "timeout": 10_000})
        for answer in said.all("topics"):
            _check(answer, f"topic {topic} was not created")

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        if DELETE_TOPICS not in self.serves:
            raise RequestRefused("this broker deletes no topics")
        version = min(5, self.serves[DELETE_TOPICS][1])
        said = self.ask(DELETE_TOPICS, version, {"topic_names": [topic], "timeout": 10_000})
        for answer in said.all("responses"):
            _check(answer, f"topic {topic} was not deleted")


def _partition_seen(topic: str, partition: Fields) -> PartitionSeen:
    leader = partition.number("leader_id")
    return PartitionSeen(
        topic=topic,
        number=partition.number("partition_index"),
        leader=None if leader < 0 else leader,
        leader_epoch=partition.number("leader_epoch"),
        replicas=_numbers(partition, "replica_nodes"),
        isr=_numbers(partition, "isr_nodes"),
        offline=_numbers(partition, "offline_replicas"),
    )


def _numbers(fields: Fields, name: str) -> tuple[int, ...]:
    value = fields.values.get(name)
    return tuple(n for n in value if isinstance(n, int)) if isinstance(value, list) else ()
