"""The quorum's log that is played to a broker: what a fetch of it finds."""

from __future__ import annotations

from typing import cast

from isr_broker.core.record_batch import batches, key_and_value, record_places
from isr_broker.wire.metadata_records import decode
from isr_twin.metadata_log import EPOCH, TOPIC, MetadataLog


def fetched(log: MetadataLog, offset: int) -> tuple[bytes, int]:
    (topic,) = cast("list[dict[str, object]]", log.answer(offset)["responses"])
    (partition,) = cast("list[dict[str, object]]", topic["partitions"])
    assert topic["topic_id"] == TOPIC
    return cast("bytes", partition["records"]), cast("int", partition["high_watermark"])


def test_a_fetch_finds_the_batches_from_its_offset_on_and_all_is_committed() -> None:
    log = MetadataLog(3000)
    log.append([("Topic", 0, {"name": "t", "topic_id": b"1" * 16}), ("NoOp", 0, {})])
    log.append([("RemoveTopic", 0, {"topic_id": b"1" * 16})])
    data, watermark = fetched(log, 0)
    found = list(batches(data, check=True))
    assert [(batch.base_offset, batch.count, batch.control) for batch in found] == [
        (0, 1, True),
        (1, 2, False),
        (3, 1, False),
    ]
    assert {batch.leader_epoch for batch in found} == {EPOCH}
    assert watermark == log.end == 4
    values = [key_and_value(data, at)[1] for batch in found[1:] for at in record_places(data, batch)]
    assert [decode(value or b"").name for value in values] == ["Topic", "NoOp", "RemoveTopic"]
    assert [batch.base_offset for batch in batches(fetched(log, 3)[0])] == [3]
    assert fetched(log, 4)[0] == b""
