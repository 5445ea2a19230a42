"""Each file that a broker writes, damaged in each way: what the next start makes of it.

The table "When the disk fails" in docs/broker.md has the same rows. `test_damage` has what each of them is for.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from random import Random
from typing import Final

import attrs
import pytest
from tests.isr_broker.test_data_directory import directory
from tests.isr_broker.test_log import FOLDER
from tests.support.brokers import TP, batch_at
from tests.support.damage_kinds import DAMAGES, FILES, SAME_FILE

from isr_broker.core.effects import AdvanceLogStart, AppendLog, CheckpointWatermarks, Slice
from isr_broker.core.messages import BrokerMetadata, ControllerLife, MetadataPosition
from isr_broker.core.record_batch import BadBatch
from isr_broker.core.topics import FILE as PARTITION_METADATA
from isr_broker.core.topics import file_of, random_topic_id
from isr_broker.storage import checkpoints, dropped_records, quorum_disk, quorum_state, segment
from isr_broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    EPOCHS,
    LOG_STARTS,
    POSITION,
    RECOVERY_POINTS,
    WATERMARKS,
    read_position,
    write_position,
)
from isr_broker.storage.disk import ROOT
from isr_broker.storage.disk_files import open_data_directory
from isr_broker.storage.disk_memory import MemoryDisk, Nothing
from isr_broker.storage.log_directory import DELETION, STRAY
from isr_broker.storage.meta_properties import Claim, NotOurs, claim
from isr_broker.storage.metadata_end import END
from isr_broker.storage.metadata_log import NAME, DamagedMetadata, MetadataLog
from isr_broker.storage.owner import META_PROPERTIES
from isr_sim.damage import Damage, Purpose, files, purpose

SEGMENT: Final = "a segment of a log"
AT_ROOT: Final = (META_PROPERTIES, WATERMARKS, RECOVERY_POINTS, LOG_STARTS, CLEAN_SHUTDOWN, POSITION)
WRITTEN: Final = {*AT_ROOT, EPOCHS, PARTITION_METADATA, SEGMENT, NAME, END}
"""Whatever a broker writes and reads again."""
NEVER_READ: Final = {dropped_records.FILE, ".lock"}
LAST: Final = f"{FOLDER}/{segment.file_name(3)}"
TOPIC_ID: Final = random_topic_id(Random(1).getrandbits)
OLDER_TOPIC_ID: Final = random_topic_id(Random(2).getrandbits)


# Which files there are


def test_every_name_of_a_file_that_storage_has_is_damaged_in_each_way() -> None:
    """A file that is new has to be added here, to the table, to the simulator and to the runs on processes."""
    names = set[str]()
    for module in (Path(checkpoints.__file__).parent).glob("*.py"):
        for node in ast.parse(module.read_text()).body:
            value = node.value if isinstance(node, ast.AnnAssign) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and "[" not in value.value:
                names.add(value.value)
    endings = {segment.SUFFIX, STRAY, DELETION, checkpoints.TEMPORARY}
    of_voters = {quorum_disk.FOLDER, quorum_state.NAME}
    """A voter's files, each damaged in test_quorum_disk.py."""
    contents = {"1", "0", "crc32c", "node.id", "cluster.id", "system=insync", "4L6g3nShT-eMCtK--X86sw"}
    others = {"__consumer_offsets", ROOT}
    expected = (WRITTEN - {SEGMENT, PARTITION_METADATA}) | {dropped_records.FILE}
    assert names - endings - contents - others - of_voters == expected


def test_a_broker_has_no_other_file(tmp_path: Path) -> None:
    open_data_directory(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    disk = newest(2)
    logs = directory(disk)
    logs.load()
    logs.take_offline(TP, "it cannot be read")
    MetadataLog.open(disk)
    paths = {path for path, image in disk.names_now.items() if image is not None}
    names = {SEGMENT if path.endswith(segment.SUFFIX) and "/" in path else path.rpartition("/")[2] for path in paths}
    assert names | {CLEAN_SHUTDOWN} == WRITTEN
    found = {path for role in Purpose for path in files(disk, role)}
    assert found == paths, "the simulator damages each"
    assert {purpose(path) for path in paths} == set(Purpose)


def test_the_table_and_the_runs_on_processes_have_every_file_and_every_way() -> None:
    page = (Path(__file__).parents[2] / "docs/broker.md").read_text()
    table = page.split("Each file of a data directory, and each kind of damage")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    ways = rows[0][1:]
    assert ways == ["missing", "older", "shorter or empty", "a flipped bit", "of another broker"]
    cells = {row[0].strip("`"): row[1:] for row in rows[2:]}
    assert {*cells} >= WRITTEN
    assert [file for file in WRITTEN if not all(cells[file])] == []
    assert all(any(f"`{name}`" in file or name in file for file in cells) for name in NEVER_READ)
    assert {SEGMENT if file == "segment" else file for file in FILES} == WRITTEN
    five = {Damage.ABSENT, Damage.OLDER, Damage.SHORTER, Damage.FLIP, Damage.FOREIGN}
    assert len(DAMAGES) == len(FILES) * len(five) - len(SAME_FILE)


def test_each_file_of_a_broker_says_that_the_data_directory_is_not_new() -> None:
    """Without meta.properties nobody knows whose it is, whichever file is the only one that is left."""
    for path in [*({*AT_ROOT, NAME, END} - {META_PROPERTIES}), LAST, f"{FOLDER}/{PARTITION_METADATA}"]:
        disk = MemoryDisk()
        disk.make_folder(path.rpartition("/")[0])
        disk.put(path, b"")
        with pytest.raises(NotOurs, match=f"{META_PROPERTIES} is missing, and there is {path.split('/')[0]}:"):
            claim(disk, Claim(2, "c"))
        assert not disk.exists(META_PROPERTIES), path


@pytest.mark.parametrize("path", ["backup-2026/data.tar", "notes", "backup-2026", "t-0/copy.log", "lost+found/x"])
def test_a_file_of_somebody_else_says_nothing(path: str) -> None:
    disk = MemoryDisk()
    disk.make_folder(path.rpartition("/")[0])
    disk.put(path, b"")
    assert claim(disk, Claim(2, "c")).directory


def test_a_log_without_any_checkpoint_is_no_new_data_directory() -> None:
    """A record is flushed long before the first checkpoint is written."""
    disk = MemoryDisk()
    mine = claim(disk, Claim(2, "c"))
    logs = directory(disk)
    logs.load()
    logs.open(TP, TOPIC_ID)
    logs.perform(AppendLog(partition=TP, records=batch_at(0, epoch=0), flush=True))
    assert claim(disk, Claim(2, "c")) == mine
    disk.lose(META_PROPERTIES)
    with pytest.raises(NotOurs, match=f"there is {FOLDER}"):
        claim(disk, Claim(2, "c"))


# What is made of each


def with_history(broker: int) -> tuple[MemoryDisk, MemoryDisk]:
    """The disk of a broker after its first orderly stop, and after its second.

    Up to offset 4 every broker has the same. Then broker 2 has two records of epoch 2, of which the last is not
    committed. Broker 3 has two others, of epoch 1, and has heard from its leader that much more is committed.
    """
    disk = MemoryDisk()
    claim(disk, Claim(broker, "c", f"the directory of broker {broker}"))
    logs = directory(disk)
    logs.load()
    logs.open(TP, TOPIC_ID)
    for offset in range(4):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset, epoch=offset // 2), flush=True))
    write_position(disk, MetadataPosition(5, 7))
    logs.close(16, CheckpointWatermarks(((TP, 4),)))
    disk.crash(Nothing())
    older, logs = disk.copy(), directory(disk)
    logs.load()
    for offset in (4, 5):
        logs.perform(AppendLog(partition=TP, records=batch_at(offset, epoch=2 if broker == 2 else 1), flush=True))
    logs.perform(AdvanceLogStart(partition=TP, offset=1 if broker == 2 else 3))
    write_position(disk, MetadataPosition(9, 7) if broker == 2 else MetadataPosition(30, 7))
    logs.close(17, CheckpointWatermarks(((TP, 5 if broker == 2 else 12),)))
    disk.crash(Nothing())
    return older, disk


def newest(broker: int) -> MemoryDisk:
    return with_history(broker)[1]


def damaged(path: str, how: Damage) -> MemoryDisk:
    """The disk of broker 2 after its second orderly stop, with one file damaged."""
    older, disk = with_history(2)
    contents = disk.image(path).durable
    match how:
        case Damage.ABSENT:
            disk.lose(path)
        case Damage.EMPTY:
            disk.put(path, b"")
        case Damage.SHORTER:
            disk.put(path, contents[:-1])
        case Damage.OLDER:
            disk.put(path, older.image(path).durable if older.exists(path) else contents[: len(contents) // 2])
        case Damage.FLIP:
            bit = 8 * (len(contents) // 2) + 1
            disk.flip(path, bit)
        case Damage.FOREIGN:
            disk.put(path, newest(3).image(path).durable)
    return disk


@attrs.frozen
class Start:
    """What a start makes of the files: whether the last stop counts as clean, and what the log is then.

    `offline` is whether the log is; the others are those of a log that is not.
    """

    clean: bool = True
    offline: bool = False
    start: int = 1
    watermark: int = 5
    position: int = 9


WHOLE: Final = Start()
REFUSED: Final = None
OFFLINE_LOG: Final = Start(clean=False, offline=True)


def is_claimed(disk: MemoryDisk) -> bool:
    """Whether the broker takes the files for its own; a refusal names the file."""
    refusals: list[str] = []
    try:
        claim(disk, Claim(2, "c"))
    except NotOurs as refusal:
        refusals.append(str(refusal))
    assert all(META_PROPERTIES in refusal for refusal in refusals)
    return not refusals


def start_of(disk: MemoryDisk, path: str) -> Start | None:
    """What a start makes of the files; None if the broker refuses, and names the file."""
    if not is_claimed(disk):
        return REFUSED
    logs = directory(disk)
    clean, opened = logs.load()
    if not opened:
        (damage,) = logs.damages()
        assert path in damage.why
        return Start(clean >= 0, offline=True)
    (log,) = opened
    assert log.log.end == 6, "no record is out of reach"
    return Start(clean >= 0, False, log.log.start, log.high_watermark, read_position(disk).offset)


NO_WATERMARK: Final = attrs.evolve(WHOLE, watermark=1)
NO_POINTS: Final = attrs.evolve(WHOLE, clean=False)
NO_START: Final = attrs.evolve(WHOLE, start=0)
NO_POSITION: Final = attrs.evolve(WHOLE, position=0)
TABLE: Final[dict[str, tuple[Start | None, Start | None, Start | None, Start | None, Start | None]]] = {
    META_PROPERTIES: (REFUSED, WHOLE, REFUSED, REFUSED, REFUSED),
    LAST: (OFFLINE_LOG, OFFLINE_LOG, OFFLINE_LOG, OFFLINE_LOG, NO_POINTS),
    f"{FOLDER}/{PARTITION_METADATA}": (OFFLINE_LOG, WHOLE, OFFLINE_LOG, OFFLINE_LOG, OFFLINE_LOG),
    f"{FOLDER}/{EPOCHS}": (NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS),
    WATERMARKS: (NO_WATERMARK, attrs.evolve(WHOLE, watermark=4), NO_WATERMARK, NO_WATERMARK, NO_WATERMARK),
    RECOVERY_POINTS: (NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS),
    LOG_STARTS: (NO_START, NO_START, NO_START, NO_START, NO_START),
    CLEAN_SHUTDOWN: (NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS, NO_POINTS),
    POSITION: (NO_POSITION, attrs.evolve(WHOLE, position=5), NO_POSITION, NO_POSITION, NO_POSITION),
}
WAYS: Final = (Damage.ABSENT, Damage.OLDER, Damage.SHORTER, Damage.FLIP, Damage.FOREIGN)


def test_without_damage_everything_is_as_it_was() -> None:
    assert start_of(newest(2), "") == WHOLE


@pytest.mark.parametrize("path", TABLE)
@pytest.mark.parametrize("how", WAYS)
def test_a_start_makes_of_a_damaged_file_what_the_table_says(path: str, how: Damage) -> None:
    assert start_of(damaged(path, how), path) == TABLE[path][WAYS.index(how)]


@pytest.mark.parametrize("path", TABLE)
def test_an_empty_file_is_as_a_shorter_one(path: str) -> None:
    assert start_of(damaged(path, Damage.EMPTY), path) == TABLE[path][WAYS.index(Damage.SHORTER)]


@pytest.mark.parametrize("path", [path for path in TABLE if "/" not in path or path.endswith(EPOCHS)])
def test_whatever_bit_flips_or_however_short_it_is_a_file_is_as_it_was_or_as_the_table_says(path: str) -> None:
    contents = newest(2).image(path).durable
    for bit in range(0, 8 * len(contents), 3):
        disk = newest(2)
        disk.flip(path, bit)
        assert start_of(disk, path) in (WHOLE, TABLE[path][WAYS.index(Damage.FLIP)]), bit
    for size in range(0, len(contents), 3):
        disk = newest(2)
        disk.put(path, contents[:size])
        assert start_of(disk, path) == TABLE[path][WAYS.index(Damage.SHORTER)], size


def test_a_bit_of_a_segment_that_flips_under_a_broker_is_found_when_it_is_read() -> None:
    disk = newest(2)
    logs = directory(disk)
    logs.load()
    disk.flip(LAST, 8 * len(disk.image(LAST).durable) - 8)
    with pytest.raises(BadBatch, match=segment.file_name(3)):
        logs.read(TP, Slice(offset=4, up_to=6, max_bytes=10**6))


def test_a_partition_metadata_of_an_older_topic_of_that_name_is_not_certain() -> None:
    """The recovery points say another topic. Were it certain the log would be set aside at once, though it is whole."""
    disk = newest(2)
    disk.put(f"{FOLDER}/{PARTITION_METADATA}", file_of(OLDER_TOPIC_ID))
    _, (opened,) = directory(disk).load()
    assert (opened.topic_id, opened.is_certain) == (OLDER_TOPIC_ID, False)
    _, (opened,) = directory(newest(2)).load()
    assert (opened.topic_id, opened.is_certain) == (TOPIC_ID, True)


# The controller's


def controller_disk(cluster: str, life: int, records: int) -> MemoryDisk:
    disk = MemoryDisk()
    claim(disk, Claim(1, cluster))
    log, _ = MetadataLog.open(disk)
    log.append((ControllerLife(life), *(BrokerMetadata(broker=n, epoch=n) for n in range(1, records))))
    return disk


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("path", "refused"), [(NAME, (True,) * 5), (END, (False, False, False, False, True))])
def test_the_controllers_log_is_refused_and_its_end_written_again(
    path: str, refused: tuple[bool, ...], how: Damage
) -> None:
    disk = controller_disk("c", 7, 5)
    contents = disk.image(path).durable
    half = contents[: contents.index(b"\n") + 1]
    spoiled = {
        Damage.OLDER: half,
        Damage.SHORTER: contents[:-9],
        Damage.FLIP: contents[:9] + bytes([contents[9] ^ 1]) + contents[10:],
        Damage.FOREIGN: controller_disk("other", 8, 9).image(path).durable,
    }
    if how is Damage.ABSENT:
        disk.lose(path)
    else:
        disk.put(path, spoiled[how])
    if refused[WAYS.index(how)]:
        with pytest.raises(DamagedMetadata, match=NAME):
            MetadataLog.open(disk)
        return
    assert len(MetadataLog.open(disk)[1]) == 5
    assert disk.image(END).durable.count(b"\n") == 1


def test_names_in_the_table_of_this_test_are_those_of_files() -> None:
    assert re.fullmatch(r"t-0/0{19}3\.log", LAST)
    assert {path.rpartition("/")[2] for path in TABLE} - {segment.file_name(3)} == WRITTEN - {
        SEGMENT,
        NAME,
        END,
    }
