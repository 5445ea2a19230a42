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
_KEY: Final = struct.pack(">h", PEER_API)
KEY_BYTES: Final = len(_KEY)
"""So much of a frame says whether it is of this API."""
_HEAD: Final = struct.Struct(">hhi")

MOST_MESSAGES: Final = 500
MOST_BYTES: Final = 1 << 20
"""After so many the next message goes in another frame, so that one destination's frames leave room for others."""

LONGEST: Final = 32 << 20
"""Bytes of a frame: the metadata of 100,000 partitions have as many, and they are one message."""
MOST_VALUES: Final = 2_500_000
"""In the JSON of a frame, roughly: a list in it takes three bytes, and a hundred times as much once it is read."""

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
    rows: list[bytes] = []
    records: list[bytes] = []
    size = 0
    for parcel in parcels:
        row, behind = _row(parcel)
        rows.append(row)
        records.append(behind)
        size += len(row) + len(behind)
        if size >= MOST_BYTES or len(rows) >= MOST_MESSAGES:
            yield _frame(rows, records, cluster)
            rows, records, size = [], [], 0
    if rows:
        yield _frame(rows, records, cluster)


def encode(parcels: Sequence[Parcel], cluster: str) -> bytes:
    """One frame, with its length."""
    pairs = [_row(parcel) for parcel in parcels]
    return _frame([row for row, _ in pairs], [behind for _, behind in pairs], cluster)


def _row(parcel: Parcel) -> tuple[bytes, bytes]:
    """A message as JSON, and its records."""
    source, to, envelope = parcel
    message, behind = bare(envelope), b""
    if isinstance(message, FetchResponse) and message.records:
        behind, message = message.records, attrs.evolve(message, records=b"")
    stamp = [[envelope.stamp.message, dict(envelope.stamp.clock)]] if isinstance(envelope, Stamped) else []
    row = [source, to, len(behind), _converter.unstructure(message, unstructure_as=Message), *stamp]
    return json.dumps(row).encode(), behind


def _frame(rows: Sequence[bytes], records: Sequence[bytes], cluster: str) -> bytes:
    body = b"[" + b", ".join([*rows, json.dumps(cluster).encode()]) + b"]"
    size = _HEAD.size + len(body) + sum(map(len, records))
    return b"".join((struct.pack(">i", size), _HEAD.pack(PEER_API, 0, len(body)), body, *records))


def is_peer(frame: bytes) -> bool:
    """The frame, or its beginning, without its length, is of this API."""
    return frame[:KEY_BYTES] == _KEY


def decode(frame: bytes, cluster: str) -> list[Parcel]:
    """The messages of a frame; BadMessage if it has anything else, or is of another cluster.

    How large it is, of which cluster, and of how many values is looked at before anything of it is read.
    """
    parcels: list[Parcel] = []
    try:
        _, _, size = cast("tuple[int, int, int]", _HEAD.unpack_from(frame))
        at = _HEAD.size + size
        body = frame[_HEAD.size : at]
        _look_at(body, cluster)
        *listed, whose = cast("list[object]", json.loads(body))
        if whose != cluster:
            raise BadMessage(f"a message of a broker of the cluster {str(whose)[:40]!r}, not of {cluster!r}")
        rows = cast("list[tuple[int, int, int, object, tuple[str, dict[str, int]]]]", listed)
        if len(rows) > MOST_MESSAGES:
            raise BadMessage(f"{len(rows):,} messages in one frame, a broker sends {MOST_MESSAGES} at most")
        for source, to, behind, inner, *stamp in rows:
            message = cast("Message", _converter.structure(inner, Message))  # type: ignore[arg-type]
            if isinstance(message, FetchResponse) and behind:
                if behind < 0:
                    raise BadMessage(f"{behind} bytes of records")
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


def _look_at(body: bytes, cluster: str) -> None:
    """BadMessage if the JSON of a frame is more than a broker sends, or of another cluster, by its bytes alone."""
    if len(body) > LONGEST:
        raise BadMessage(f"{len(body):,} bytes in one frame, a broker sends {LONGEST:,} at most")
    if not body.endswith(json.dumps(cluster).encode() + b"]"):
        whose = body[-60:].rpartition(b" ")[2].strip(b'[]"').decode(errors="replace")
        raise BadMessage(f"a message of a broker of the cluster {whose[:40]!r}, not of {cluster!r}")
    values = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if values > MOST_VALUES:
        raise BadMessage(f"{values:,} values in one frame, a broker sends {MOST_VALUES:,} at most")


def record_line(record: MetadataRecord) -> bytes:
    """A record of the metadata log as a line of JSON."""
    return json.dumps(_converter.unstructure(record, unstructure_as=MetadataRecord)).encode()


def record_of(line: bytes) -> MetadataRecord:
    """The record of a line; BadMessage if it is none."""
    try:
        return cast("MetadataRecord", _converter.structure(json.loads(line), MetadataRecord))  # type: ignore[arg-type]
    except Exception as error:
        raise BadMessage(str(error)) from error
