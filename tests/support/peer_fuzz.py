"""Random frames of brokers, for the fuzz of the wire: private frames, and requests that only brokers send.

Whoever reaches a port of brokers may do all that a broker may, so what is well formed would only show that. Messages
are of a broker that there is not, about a topic that nobody has, or of another cluster; and most of them are damaged:
a value of another kind, a field that is missing, JSON as deep as it is long, lengths that cannot be.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from random import Random
from typing import Final, cast

from kio.index import load_request_schema
from tests.support.schema_values import Values

from isr_broker.core.effects import CONTROLLER
from isr_broker.core.message_json import PEER_API, encode
from isr_broker.core.messages import (
    AlterPartitionRequest,
    CreateTopic,
    DeleteTopic,
    FetchMetadata,
    FetchRequest,
    Heartbeat,
    Message,
    TopicPartition,
)
from isr_broker.wire import protocol
from isr_broker.wire.protocol import Answer

OF_BROKERS: Final = sorted({protocol.ALTER_PARTITION, protocol.BROKER_REGISTRATION, protocol.BROKER_HEARTBEAT})
STRANGER: Final = 77
_NOBODY: Final = TopicPartition("nobody", 0)
_EMPTY: Final[tuple[list[object], dict[str, object]]] = ([], {})
_OTHER_KINDS: Final[Sequence[object]] = (None, "x", *_EMPTY, -1, 1.5, 10**30, True, [_EMPTY[0]], "ä" * 1_000)
_IDS: Final = (STRANGER, -1, 0, 2**31 - 1)


def messages(chance: Random) -> list[tuple[int, Message]]:
    """Some messages of a broker that there is not, and to whom."""
    number = chance.choice((0, 1, 10**9))
    fetch = FetchRequest(
        partition=_NOBODY, replica=STRANGER, broker_epoch=number, leader_epoch=0, offset=number, last_epoch=0
    )
    alter = AlterPartitionRequest(
        partition=_NOBODY, leader=STRANGER, broker_epoch=number, leader_epoch=0, partition_epoch=0, isr=((STRANGER, 1),)
    )
    options: list[tuple[int, Message]] = [
        (CONTROLLER, Heartbeat(broker=STRANGER, broker_epoch=number, metadata_offset=number)),
        (CONTROLLER, FetchMetadata(broker=STRANGER, broker_epoch=number, offset=number)),
        (CONTROLLER, DeleteTopic(request=number, topic="nobody")),
        (CONTROLLER, CreateTopic(request=number, topic=chance.choice(("n0", "n1", "")), partitions=number)),
        (CONTROLLER, alter),
        (1, fetch),
    ]
    return chance.choices(options, k=chance.choice((1, 1, 5, 600)))


def private_frame(chance: Random, cluster: str) -> bytes:
    """A frame of our own, mostly damaged; of this cluster or of another."""
    whose = cluster if chance.random() < 0.8 else "another"
    frame = encode([(STRANGER, to, message) for to, message in messages(chance)], whose)
    body = frame[12:]
    match chance.randrange(6):
        case 0:
            return frame
        case 1:
            body = json.dumps(_damaged(chance, cast("list[object]", json.loads(body)))).encode()
        case 2:
            depth = chance.choice((10, 100_000))
            body = b"[" * depth + b"]" * depth + json.dumps(whose).encode() + b"]"
        case 3:
            body = b"[" + b"9" * 10_000 + b", " + json.dumps(whose).encode() + b"]"
        case 4:
            size = chance.choice((-1, 0, len(body) - 1, 2**31 - 1))
            return struct.pack(">ihhi", len(body) + 8, PEER_API, 0, size) + body
        case _:
            out = bytearray(body)
            for _ in range(chance.choice((1, 3, 20))):
                out[chance.randrange(len(out))] = chance.choice((0, 0x22, 0x5B, 0x7B, 0xFF))
            body = bytes(out)
    behind = chance.randbytes(chance.choice((0, 0, 100)))
    return struct.pack(">ihhi", len(body) + len(behind) + 8, PEER_API, 0, len(body)) + body + behind


def _damaged(chance: Random, value: object) -> object:
    """The value with something else somewhere in it; who sends it, and of which cluster, is left."""
    if isinstance(value, list) and value:
        items = cast("list[object]", value)
        at = chance.randrange(len(items) - 1) if len(items) > 1 else 0
        return [*items[:at], _damaged(chance, items[at]), *items[at + 1 :]]
    if isinstance(value, dict) and value and chance.random() < 0.9:
        fields = cast("dict[str, object]", value)
        name = chance.choice([*fields])
        if chance.random() < 0.3:
            return {key: item for key, item in fields.items() if key != name}
        return {**fields, name: chance.choice(_OTHER_KINDS)}
    return chance.choice(_OTHER_KINDS)


def request_of_a_broker(chance: Random, values: Values) -> tuple[int, bytes]:
    """A request by Kafka's schemas that only brokers send; of nobody who is in the cluster."""
    key = chance.choice(OF_BROKERS)
    version = chance.randint(*protocol.SERVED_VERSIONS[key])
    fields: Answer = {
        **values.entity(load_request_schema(key, version), chance.choice((1, 3, 1_000))),
        "broker_id": chance.choice(_IDS),
    }
    return key, protocol.ask(key, version, chance.randrange(2**31), "broker-77", fields)
