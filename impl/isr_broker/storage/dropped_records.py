"""Records that a truncation takes away, written down first: `dropped-records.jsonl` in the data directory, a line each.

With `insync.dropped.records=true`. Jepsen's second recommendation asks that what is dropped be dumped, so that somebody
may bring it back; Kafka drops it. The lines are durable before the log is cut, so a crash in between repeats them. Who
was told that a record is safe a log does not know: most of what a follower drops was never acknowledged.

What retention removes, and a replica that begins anew because its leader's log starts later, is not written down.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from isr_broker.core.effects import Slice
from isr_broker.core.messages import Offset, TopicPartition
from isr_broker.core.record_batch import Batch, base_timestamp, batches, key_and_value, record_places, zigzag
from isr_broker.storage.disk import ROOT, Disk
from isr_broker.storage.log import Log

FILE: Final = "dropped-records.jsonl"
_AT_A_TIME: Final = 1_048_576
"""Bytes of the log that are read at once."""


def note_dropped(disk: Disk, tp: TopicPartition, log: Log, offset: Offset) -> None:
    """Write down everything of the log from an offset on, durably; OSError where the disk does not take it."""
    at = max(offset, log.view.start)
    if at >= log.view.end:
        return
    file = disk.open(FILE)
    try:
        while at < log.view.end:
            data = log.read(Slice(offset=at, up_to=log.view.end, max_bytes=_AT_A_TIME))
            parsed_batches = list(batches(data))
            if not parsed_batches:
                break
            lines = (line for batch in parsed_batches for line in _lines(tp, data, batch))
            file.append("".join(json.dumps(line) + "\n" for line in lines).encode())
            at = parsed_batches[-1].next_offset
        file.flush()
    finally:
        file.close()
    disk.flush_folder(ROOT)


def _lines(tp: TopicPartition, data: bytes, batch: Batch) -> Iterator[dict[str, object]]:
    """Each record of a batch; a compressed one as a whole, for the broker has no codecs."""
    about: dict[str, object] = {"partition": str(tp), "leader_epoch": batch.leader_epoch}
    if batch.compressed or batch.control:
        whole = b64encode(data[batch.position : batch.position + batch.size]).decode()
        yield {**about, "offset": batch.base_offset, "last_offset": batch.last_offset, "batch_base64": whole}
        return
    base = base_timestamp(data, batch)
    for at in record_places(data, batch):
        timestamp, here = zigzag(data, at + 1)
        number, _ = zigzag(data, here)
        key, value = key_and_value(data, at)
        yield {
            **about,
            "offset": batch.base_offset + number,
            "timestamp": base + timestamp,
            **_text("key", key),
            **_text("value", value),
        }


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    """As text where it is UTF-8, else in base64 under a name that says so."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}
