"""A bit in the last offset of a batch flips while a broker is stopped in order: its log ends nowhere else for that."""

from __future__ import annotations

import pytest

from isr_broker.core.effects import AppendLog, CheckpointWatermarks
from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import new_batch, stamped
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import Everything, MemoryDisk
from isr_broker.storage.log_directory import LogDirectory

TP = TopicPartition("t", 0)
LAST_OFFSET_DELTA = 23


@pytest.mark.parametrize("byte", range(4))
def test_a_log_ends_where_it_ended_or_is_offline(byte: int) -> None:
    """After a clean stop only headers are read, and one of them would be the word of a batch about its own offsets."""
    disk = MemoryDisk()
    logs = LogDirectory(disk, Settings())
    logs.load()
    logs.open(TP, 1)
    for offset in range(3):
        logs.perform(AppendLog(partition=TP, records=stamped(new_batch(b"x"), offset, 0), flush=True))
    logs.close(7, CheckpointWatermarks(((TP, 3),)))
    disk.crash(Everything())
    path = f"{TP}/{0:020d}.log"
    at = len(disk.image(path).durable) * 2 // 3 + LAST_OFFSET_DELTA + byte
    disk.flip(path, 8 * at + 2)
    clean, opened_logs = LogDirectory(disk, Settings()).load()
    assert [opened.log.end for opened in opened_logs if opened.log.end != 3] == []
    assert clean == -1
