"""Files that are not the broker's, in its data directory: none is removed, and none stops a start.

The control beside them is what a crash leaves of a log that was just made: that is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from tests.isr_broker.test_data_directory import directory, filled
from tests.isr_broker.test_log import FOLDER
from tests.isr_broker.test_losses import Elsewhere
from tests.support.brokers import TP, batch_at

from isr_broker.core.effects import CheckpointWatermarks
from isr_broker.core.messages import TopicPartition
from isr_broker.core.topics import FILE
from isr_broker.runtime import Runtime
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, LOG_STARTS, RECOVERY_POINTS, TEMPORARY, replace, write_offsets
from isr_broker.storage.disk import Disk
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.disk_memory import MemoryDisk
from isr_broker.storage.log_directory import STRAY, log_folders
from isr_broker.storage.segment import file_name

SEGMENT = file_name(0)
CONTENTS = b"of an operator"


def put(disk: Disk, path: str, contents: bytes = CONTENTS) -> None:
    disk.make_folder(path.rpartition("/")[0])
    replace(disk, path, contents)


MAKERS: list[Callable[[Path], Disk]] = [lambda path: MemoryDisk(), RealDisk]


@pytest.mark.parametrize("made_by", MAKERS)
@pytest.mark.parametrize(
    "path",
    [
        "backup-20261127/data.tar",
        f"{FOLDER}/{SEGMENT}.bak",
        f"{FOLDER}/copy.log",
        f"{FOLDER}/5.log",
        f"{FOLDER}/notes{TEMPORARY}",
        f"{FOLDER}/{SEGMENT}",
    ],
)
def test_a_folder_that_has_more_than_an_empty_log_is_left_as_it_is_and_named(
    tmp_path: Path, made_by: Callable[[Path], Disk], path: str
) -> None:
    disk, folder = made_by(tmp_path), path.split("/")[0]
    put(disk, path)
    name = folder
    for start in range(3):
        logs = directory(disk)
        assert logs.load() == (-1, [])
        (damage,) = logs.damages()
        assert f"{folder}/{FILE} is missing" in damage.why
        assert (path in damage.why) == (not path.endswith(SEGMENT))
        assert disk.names(folder) == [path.split("/")[1]]
        if start == 2:
            name = logs.set_aside(damage.partition)
        logs.close(7, CheckpointWatermarks(()))
    assert name.endswith(STRAY)
    assert disk.names(name) == [path.split("/")[1]]
    (kept,) = disk.names(name)
    assert disk.open(f"{name}/{kept}").read(0, 99) == CONTENTS
    assert directory(disk).load()[1] == []
    assert directory(disk).damages() == []


@pytest.mark.parametrize("names", [(), (SEGMENT,), (SEGMENT, EPOCHS, FILE), (EPOCHS + TEMPORARY,)])
def test_what_a_crash_leaves_of_a_log_that_was_just_made_is_removed(names: tuple[str, ...]) -> None:
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    for name in names:
        put(disk, f"{FOLDER}/{name}", b"")
    logs = directory(disk)
    assert logs.load() == (-1, [])
    assert (logs.damages(), disk.exists(FOLDER)) == ([], False)


@pytest.mark.parametrize("checkpoint", [RECOVERY_POINTS, LOG_STARTS])
def test_an_empty_log_that_had_records_is_no_such_rest(checkpoint: str) -> None:
    disk = MemoryDisk()
    put(disk, f"{FOLDER}/{SEGMENT}", b"")
    write_offsets(disk, checkpoint, [(TP, 3)])
    logs = directory(disk)
    assert logs.load() == (-1, [])
    assert [damage.partition for damage in logs.damages()] == [TP]
    assert disk.names(FOLDER) == [SEGMENT]


@attrs.define
class Lines(Elsewhere):
    """Has what the broker says."""

    lines: list[str] = attrs.field(factory=list[str])

    def log(self, line: str) -> None:
        self.lines.append(line)


def test_the_folder_of_an_operator_is_set_aside_and_the_broker_says_so() -> None:
    disk, outside = MemoryDisk(), Lines()
    put(disk, "backup-20261127/data.tar")
    runtime = Runtime(1, Settings(), disk, ("h", 1), ("h", 1), outside)
    runtime.start(1, 0, with_controller=True)
    for now in range(0, 5_000, 100):
        runtime.tick(now)
    (stray,) = (name for name in disk.names("") if name.endswith(STRAY))
    assert disk.names(stray) == ["data.tar"]
    assert any("and there is backup-20261127/data.tar" in line for line in outside.lines)
    assert any(f"the log backup-20261127: it is {stray} from now on" in line for line in outside.lines)


@pytest.mark.parametrize("made_by", MAKERS)
def test_an_odd_name_stops_no_start(tmp_path: Path, made_by: Callable[[Path], Disk]) -> None:
    """Files at the root, folders that no partition can have, and in a log what is no segment."""
    disk = made_by(tmp_path)
    filled(disk).close(17, CheckpointWatermarks(((TP, 6),)))
    files = ["backup-2026", "u-0.00112233445566778899aabbccddeeff-delete", f"{FOLDER}/copy.log", f"{FOLDER}/6.log"]
    folders = ["notes", "t-00", "t-2147483648", "t-\u0663", "..-0", f"{'x' * 250}-0", "lost+found"]
    for path in files:
        replace(disk, path, CONTENTS)
    for folder in [*folders, f"{FOLDER}/old", f"{FOLDER}/{file_name(9)}"]:
        put(disk, f"{folder}/x")
    logs = directory(disk)
    epoch, (opened,) = logs.load()
    assert (epoch, opened.log.end, logs.damages()) == (17, 6, [])
    assert log_folders(disk) == {TP: FOLDER}
    for path in [*files, *(f"{folder}/x" for folder in [*folders, f"{FOLDER}/old", f"{FOLDER}/{file_name(9)}"])]:
        assert disk.open(path).read(0, 99) == CONTENTS


def test_a_file_is_no_folder_on_either_disk(tmp_path: Path) -> None:
    for disk in (MemoryDisk(), RealDisk(tmp_path)):
        put(disk, "t-0/x", batch_at(0, epoch=0))
        assert (disk.is_folder("t-0"), disk.is_folder("t-0/x"), disk.is_folder("t-1")) == (True, False, False)
        assert disk.is_folder("")
        with pytest.raises(NotADirectoryError, match="t-0/x"):
            disk.names("t-0/x")
        assert log_folders(disk) == {TopicPartition("t", 0): "t-0"}
