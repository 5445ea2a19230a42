"""What brokers say to each other, as frames: the messages of `messages` as JSON, their records as they are behind it.

A private API of Kafka's frame format (its key is no key of Kafka's). Messages need no answer of their own: the cores
ask again, and an answer repeats what it answers.
"""

from __future__ import annotations

import json
import struct
from typing import Final, cast

import attrs
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from isr_broker.messages import BrokerId, FetchResponse, Message, MetadataRecord

PEER_API: Final = 32_000
_HEAD: Final = struct.Struct(">hhiii")

_converter = make_converter()
configure_tagged_union(Message, _converter)
configure_tagged_union(MetadataRecord, _converter)


class BadMessage(ValueError):
    """Bytes that are no message of a broker."""


def encode(source: BrokerId, to: BrokerId, message: Message) -> bytes:
    """The frame, with its length."""
    records = b""
    if isinstance(message, FetchResponse):
        records, message = message.records, attrs.evolve(message, records=b"")
    body = json.dumps(_converter.unstructure(message, unstructure_as=Message)).encode()
    size = _HEAD.size + len(body) + len(records)
    return struct.pack(">i", size) + _HEAD.pack(PEER_API, 0, source, to, len(body)) + body + records


def is_peer(frame: bytes) -> bool:
    """The frame, without its length, is of this API."""
    return len(frame) >= _HEAD.size and struct.unpack_from(">h", frame)[0] == PEER_API


def decode(frame: bytes) -> tuple[BrokerId, BrokerId, Message]:
    """From whom, to whom, and the message; BadMessage if it is none."""
    _, _, source, to, size = cast("tuple[int, int, int, int, int]", _HEAD.unpack_from(frame))
    try:
        body = json.loads(frame[_HEAD.size : _HEAD.size + size])
        message = cast("Message", _converter.structure(body, Message))  # type: ignore[arg-type]
    except Exception as error:
        # The converter wraps whatever it meets, and says what it could not make sense of.
        raise BadMessage(str(error)) from error
    if isinstance(message, FetchResponse):
        message = attrs.evolve(message, records=frame[_HEAD.size + size :])
    return source, to, message


def record_line(record: MetadataRecord) -> bytes:
    """A record of the metadata log as a line of JSON."""
    return json.dumps(_converter.unstructure(record, unstructure_as=MetadataRecord)).encode()


def record_of(line: bytes) -> MetadataRecord:
    """The record of a line; BadMessage if it is none."""
    try:
        return cast("MetadataRecord", _converter.structure(json.loads(line), MetadataRecord))  # type: ignore[arg-type]
    except Exception as error:
        raise BadMessage(str(error)) from error
