"""The log of `__cluster_metadata` in memory, as its leader has it, and the answers to those who fetch it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import attrs

from isr_broker.core.messages import Offset
from isr_broker.core.record_batch import batch_around, encoded_record, stamped
from isr_broker.core.voter_state import fixed_voters
from isr_broker.wire import control_records, metadata_records
from isr_broker.wire.encoder import Answer

TOPIC: Final = bytes(15) + b"\x01"
"""The topic id of `__cluster_metadata` (Uuid.METADATA_TOPIC_ID)."""
EPOCH: Final = 1
"""The one leader epoch of this quorum: nobody else ever leads it."""


@attrs.define(eq=False)
class MetadataLog:
    """Batches, each with the offset after it; `leader` is the number of the one controller."""

    leader: int
    batches: list[tuple[Offset, bytes]] = attrs.field(factory=list["tuple[Offset, bytes]"])

    def __attrs_post_init__(self) -> None:
        first = control_records.leader_change(
            self.leader, fixed_voters({self.leader}).last, [self.leader], EPOCH, 0, _now()
        )
        self.batches.append((1, first))

    @property
    def end(self) -> Offset:
        """The offset after the last record, all of which are committed."""
        return self.batches[-1][0]

    def append(self, records: Sequence[tuple[str, int, Answer]]) -> Offset:
        """Append records, each a type, a version and fields, as one batch; the offset after them."""
        parts = [
            encoded_record(metadata_records.encode(name, version, fields), number)
            for number, (name, version, fields) in enumerate(records)
        ]
        batch = batch_around(b"".join(parts), len(parts), _now())
        self.batches.append((self.end + len(parts), stamped(batch, self.end, EPOCH)))
        return self.end

    def answer(self, offset: Offset) -> Answer:
        """What a Fetch from this offset is answered; one from past the end finds nothing."""
        records = b"".join(batch for after, batch in self.batches if after > offset)
        partition = {
            "partition_index": 0,
            "high_watermark": self.end,
            "last_stable_offset": self.end,
            "log_start_offset": 0,
            "current_leader": {"leader_id": self.leader, "leader_epoch": EPOCH},
            "records": records,
        }
        return {"responses": [{"topic_id": TOPIC, "partitions": [partition]}]}


def _now() -> int:
    return int(time.time() * 1000)
