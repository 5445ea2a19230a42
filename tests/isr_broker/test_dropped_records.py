"""What a truncation takes is written down first, if the broker is told to."""

import json
from base64 import b64decode

import attrs
import pytest
from tests.support.brokers import TP

from isr_broker.core.effects import AppendLog, TruncateLog
from isr_broker.core.inputs import DiskFailed, Truncated
from isr_broker.core.record_batch import batch_around, crc32c, stamped
from isr_broker.runtime import _ALARMS  # pyright: ignore[reportPrivateUsage]
from isr_broker.settings import Settings
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.dropped_records import FILE
from isr_broker.storage.log_directory import LogDirectory

ON = Settings(insync_dropped_records=True)


def varint(number: int) -> bytes:
    left, out = number << 1 ^ number >> 63, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def batch(*values: bytes | None, offset: int, epoch: int = 0, key: bytes | None = None) -> bytes:
    bodies = [
        b"\0" + varint(7 * n) + varint(n) + field(key) + field(value) + varint(0) for n, value in enumerate(values)
    ]
    records = b"".join(varint(len(body)) + body for body in bodies)
    return stamped(batch_around(records, count=len(values), timestamp=1_000), offset, epoch)


def directory(settings: Settings, *appended: bytes) -> LogDirectory:
    logs = LogDirectory(MemoryDisk(), settings)
    logs.open(TP, 1)
    for data in appended:
        logs.perform(AppendLog(partition=TP, records=data))
    return logs


def dropped(logs: LogDirectory) -> list[dict[str, object]]:
    if not logs.disk.exists(FILE):
        return []
    file = logs.disk.open(FILE)
    return [json.loads(line) for line in file.read(0, file.size()).decode().splitlines()]


FIRST, SECOND = batch(b"10", b"11", offset=0), batch(b"12", b"\xff", None, offset=2, epoch=3, key=b"k")


def test_every_record_from_the_cut_on_is_written_down() -> None:
    logs = directory(ON, FIRST, SECOND)
    done = logs.perform(TruncateLog(partition=TP, offset=2))
    assert isinstance(done, Truncated)
    assert done.log.end == 2
    about = {"partition": str(TP), "leader_epoch": 3, "key": "k"}
    assert dropped(logs) == [
        {**about, "offset": 2, "timestamp": 1_000, "value": "12"},
        {**about, "offset": 3, "timestamp": 1_007, "value_base64": "/w=="},
        {**about, "offset": 4, "timestamp": 1_014, "value": None},
    ]


def test_cuts_add_to_the_file() -> None:
    logs = directory(ON, FIRST, SECOND)
    for offset in (2, 0):
        logs.perform(TruncateLog(partition=TP, offset=offset))
    assert [line["offset"] for line in dropped(logs)] == [2, 3, 4, 0, 1]


def test_a_log_of_many_segments_is_written_down_whole() -> None:
    logs = directory(attrs.evolve(ON, log_segment_bytes=1), *(batch(b"%d" % n, offset=n) for n in range(5)))
    logs.perform(TruncateLog(partition=TP, offset=1))
    assert [line["value"] for line in dropped(logs)] == ["1", "2", "3", "4"]


def test_a_compressed_batch_is_written_down_as_it_is() -> None:
    squeezed = bytearray(SECOND)
    squeezed[22] |= 1  # gzip, says its header
    squeezed[17:21] = crc32c(bytes(squeezed[21:])).to_bytes(4, "big")
    logs = directory(ON, FIRST, bytes(squeezed))
    logs.perform(TruncateLog(partition=TP, offset=2))
    [line] = dropped(logs)
    assert (line["offset"], line["last_offset"]) == (2, 4)
    assert b64decode(str(line["batch_base64"])) == bytes(squeezed)


@pytest.mark.parametrize(
    ("settings", "cut"),
    [
        (Settings(), TruncateLog(partition=TP, offset=0)),
        (ON, TruncateLog(partition=TP, offset=5)),
        (ON, TruncateLog(partition=TP, offset=9, anew=True)),
    ],
    ids=["not asked for", "nothing is cut", "begun anew where the leader's log starts"],
)
def test_else_nothing_is_written_down(settings: Settings, cut: TruncateLog) -> None:
    logs = directory(settings, FIRST, SECOND)
    logs.perform(cut)
    assert dropped(logs) == []


def test_nothing_is_cut_that_could_not_be_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = directory(ON, FIRST, SECOND)

    def full(*written: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("isr_broker.storage.log_directory.note_dropped", full)
    assert isinstance(logs.perform(TruncateLog(partition=TP, offset=2)), DiskFailed)
    assert logs.logs[TP].view.end == 5


def test_alarms_are_named_as_the_model_names_the_steps() -> None:
    from isr_model import KIP_966

    assert set(_ALARMS) <= {action.name for action in KIP_966.actions}
