"""Topic ids (KIP-516): the metadata offset at which a topic was created, as the UUID that Kafka's protocol wants.

A topic that is deleted and created again has another one, so that nobody takes the old one's log or offsets for its.
"""

from __future__ import annotations

import base64
import re
import struct
from typing import Final

_OURS: Final = b"insync\0\0"
_FORM: Final = struct.Struct(">8sQ")
_LINE: Final = re.compile(rb"topic_id: ([A-Za-z0-9_-]{22})\n")

FILE: Final = "partition.metadata"
"""In the folder of each log, as Kafka writes it (PartitionMetadataFile)."""


def uuid_of(topic_id: int) -> bytes:
    """The sixteen bytes; zeros for none."""
    return _FORM.pack(_OURS, topic_id) if topic_id else bytes(_FORM.size)


def topic_id_of(uuid: bytes) -> int:
    """The topic id in sixteen bytes; 0 if they are none of ours."""
    if len(uuid) != _FORM.size:
        return 0
    ours, topic_id = _FORM.unpack(uuid)
    return int(topic_id) if ours == _OURS else 0


def file_of(topic_id: int) -> bytes:
    """The contents of the file."""
    text = base64.urlsafe_b64encode(uuid_of(topic_id)).rstrip(b"=")
    return b"version: 0\ntopic_id: %s\n" % text


def in_file(contents: bytes | None) -> int:
    """The topic id in the file; 0 if it is missing or says nothing."""
    found = _LINE.search(contents or b"")
    return topic_id_of(base64.urlsafe_b64decode(found[1] + b"==")) if found else 0
