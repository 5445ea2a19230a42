"""What brokers say to each other, as frames: many messages of `messages` as JSON, their records as they are behind it.

A private API of Kafka's frame format (its key is no key of Kafka's). Messages need no answer of their own: the cores
ask again, and an answer repeats what it answers. All that one broker has for another at a moment goes in one frame, so
a thousand partitions are fetched with a few frames and not with a thousand.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, cast

import attrs
from cattrs.gen import make_dict_unstructure_fn, override
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from isr_broker.core.messages import BrokerId, FetchResponse, Message, MetadataRecord, PartitionMetadata
from isr_broker.core.stamps import Stamp, Stamped, bare

PEER_API: Final = 32_000
_HEAD: Final = struct.Struct(">hhi")

MOST_MESSAGES: Final = 500
MOST_BYTES: Final = 1 << 20
"""Of one frame, roughly, so that one destination's frames leave room for others."""

Parcel: TypeAlias = tuple[BrokerId, BrokerId, Message | Stamped]
"""From whom, to whom, and the message, which has a stamp when its sender writes a trace."""

_converter = make_converter()
# A partition that nobody reassigns is written as it was before there was reassignment.
_at_rest = override(omit_if_default=True)
_converter.register_unstructure_hook(
    PartitionMetadata,
    make_dict_unstructure_fn(PartitionMetadata, _converter, adding_replicas=_at_rest, removing_replicas=_at_rest),
)
configure_tagged_union(Message, _converter)
configure_tagged_union(MetadataRecord, _converter)


class BadMessage(ValueError):
    """Bytes that are no message of a broker."""


def frames(parcels: Sequence[Parcel], cluster: str) -> Iterator[bytes]:
    """As few frames as may be, with their lengths, in the order of the messages; each says of which cluster it is."""
    frame_start, size = 0, 0
    for at, (_, _, sent) in enumerate(parcels):
        message = bare(sent)
        size += len(message.records) if isinstance(message, FetchResponse) else 0
        if size >= MOST_BYTES or at + 1 - frame_start >= MOST_MESSAGES:
            yield encode(parcels[frame_start : at + 1], cluster)
            frame_start, size = at + 1, 0
    if frame_start < len(parcels):
        yield encode(parcels[frame_start:], cluster)


def encode(parcels: Sequence[Parcel], cluster: str) -> bytes:
    """One frame, with its length."""
    rows: list[tuple[object, ...]] = []
    records: list[bytes] = []
    for source, to, envelope in parcels:
        message, behind = bare(envelope), b""
        if isinstance(message, FetchResponse) and message.records:
            behind, message = message.records, attrs.evolve(message, records=b"")
            records.append(behind)
        stamp = [[envelope.stamp.message, dict(envelope.stamp.clock)]] if isinstance(envelope, Stamped) else []
        rows.append((source, to, len(behind), _converter.unstructure(message, unstructure_as=Message), *stamp))
    body = json.dumps([*rows, cluster]).encode()
    size = _HEAD.size + len(body) + sum(map(len, records))
    return b"".join((struct.pack(">i", size), _HEAD.pack(PEER_API, 0, len(body)), body, *records))


def is_peer(frame: bytes) -> bool:
    """The frame, without its length, is of this API."""
    return len(frame) >= _HEAD.size and struct.unpack_from(">h", frame)[0] == PEER_API


def decode(frame: bytes, cluster: str) -> list[Parcel]:
    """The messages of a frame; BadMessage if it has anything else, or is of another cluster."""
    _, _, size = cast("tuple[int, int, int]", _HEAD.unpack_from(frame))
    at = _HEAD.size + size
    parcels: list[Parcel] = []
    try:
        *listed, whose = cast("list[object]", json.loads(frame[_HEAD.size : at]))
        if whose != cluster:
            raise BadMessage(f"a message of a broker of the cluster {str(whose)[:40]!r}, not of {cluster!r}")
        rows = cast("list[tuple[int, int, int, object, tuple[str, dict[str, int]]]]", listed)
        if len(rows) > MOST_MESSAGES:
            raise BadMessage(f"{len(rows):,} messages in one frame, a broker sends {MOST_MESSAGES} at most")
        for source, to, behind, body, *stamp in rows:
            message = cast("Message", _converter.structure(body, Message))  # type: ignore[arg-type]
            if isinstance(message, FetchResponse) and behind:
                message = attrs.evolve(message, records=frame[at : at + behind])
                at += behind
            sent = Stamped(message, Stamp(stamp[0][0], stamp[0][1])) if stamp else message
            parcels.append((int(source), int(to), sent))
    except BadMessage:
        raise
    except Exception as error:
        # The converter wraps whatever it meets, and says what it could not make sense of.
        raise BadMessage(str(error)) from error
    if at != len(frame):
        raise BadMessage(f"{len(frame)} bytes, {at} expected")
    return parcels


def record_line(record: MetadataRecord) -> bytes:
    """A record of the metadata log as a line of JSON."""
    return json.dumps(_converter.unstructure(record, unstructure_as=MetadataRecord)).encode()


def record_of(line: bytes) -> MetadataRecord:
    """The record of a line; BadMessage if it is none."""
    try:
        return cast("MetadataRecord", _converter.structure(json.loads(line), MetadataRecord))  # type: ignore[arg-type]
    except Exception as error:
        raise BadMessage(str(error)) from error
