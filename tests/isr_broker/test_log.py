"""The log on disk: whatever happens, what is found again is the longest valid prefix, with everything flushed in it.

Every crash point of recorded sequences, every byte at which the last write may be torn, every single flipped bit, and
checkpoints that are missing, stale or nonsense.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.brokers import batch_at as batch

from isr_broker.core.effects import Slice
from isr_broker.core.messages import TopicPartition
from isr_broker.core.record_batch import Batch, batches
from isr_broker.settings import Settings
from isr_broker.storage.checkpoints import EPOCHS, read_epochs
from isr_broker.storage.disk_files import RealDisk
from isr_broker.storage.disk_memory import Everything, MemoryDisk, Nothing, Survival
from isr_broker.storage.log import Log

TP = TopicPartition("t", 0)
FOLDER = str(TP)
SMALL = Settings(log_segment_bytes=200, log_index_interval_bytes=70)
ALL = Slice(offset=0, up_to=10**9, max_bytes=10**9)


def contents(log: Log) -> bytes:
    """Everything that can be read, segment by segment."""
    out, offset = b"", log.view.start
    while offset < log.view.end:
        found = log.read(attrs.evolve(ALL, offset=offset))
        out += found
        offset = list(batches(found, check=True))[-1].next_offset
    return out


def test_what_is_appended_can_be_read_from_any_batch_on() -> None:
    log = Log.create(MemoryDisk(), FOLDER, SMALL)
    written = [batch(o) for o in range(20)]
    for records in written:
        log.append(records)
    assert len(log.segments) > 3, "several segments, or this tests little"
    assert contents(log) == b"".join(written)
    for offset in range(20):
        found = list(batches(log.read(attrs.evolve(ALL, offset=offset))))
        assert found[0].base_offset == offset


def test_a_slice_ends_with_whole_batches_below_its_bound_but_has_at_least_one() -> None:
    log = Log.create(MemoryDisk(), FOLDER, Settings(log_index_interval_bytes=70))
    for offset in range(0, 20, 2):
        log.append(batch(offset, count=2))

    def offsets(wanted: Slice) -> list[int]:
        return [b.base_offset for b in batches(log.read(wanted))]

    size = len(batch(0, count=2))
    assert offsets(Slice(offset=4, up_to=9, max_bytes=10**6)) == [4, 6]
    assert offsets(Slice(offset=5, up_to=20, max_bytes=2 * size)) == [4, 6], "an offset within a batch finds that batch"
    assert offsets(Slice(offset=4, up_to=20, max_bytes=1)) == [4]
    assert offsets(Slice(offset=20, up_to=20, max_bytes=1)) == []


def test_what_was_appended_last_is_read_without_a_look_at_what_is_before() -> None:
    """Followers ask for it after each append; the index has a batch in some 4,096 bytes alone."""
    reads: list[int] = []

    def count(_: str, found: bytes) -> bytes:
        reads.append(len(found))
        return found

    disk = MemoryDisk(reads=count)
    log = Log.create(disk, FOLDER, Settings())
    for offset in range(10):
        log.append(batch(offset))
    costs = {}
    for offset in (8, 9):
        reads.clear()
        assert [b.base_offset for b in batches(log.read(attrs.evolve(ALL, offset=offset)))] == [*range(offset, 10)]
        costs[offset] = len(reads)
    assert costs == {8: 9 + 2 + 1, 9: 1 + 1 + 1}
    log.truncate(9)
    assert log.read(attrs.evolve(ALL, offset=8)) == batch(8)
    log.append(batch(9) + batch(10))
    assert log.read(attrs.evolve(ALL, offset=10)) == batch(10)


# Sequences of operations, and what must be found after a crash in the middle


@attrs.frozen
class Appending:
    count: int
    epoch_step: int
    flush: bool


@attrs.frozen
class Truncating:
    back: int


@attrs.frozen
class Flushing:
    pass


Doing = Appending | Truncating | Flushing
DOINGS = st.lists(
    st.one_of(
        st.builds(Appending, st.integers(1, 3), st.integers(0, 1), st.booleans()),
        st.builds(Truncating, st.integers(1, 4)),
        st.just(Flushing()),
    ),
    min_size=1,
    max_size=10,
)


@attrs.define
class Recorder:
    """Does things to a log, and takes a picture of the disk before each of its operations."""

    disk: MemoryDisk = attrs.field(factory=MemoryDisk)
    expected: list[bytes] = attrs.field(factory=list[bytes])
    pictures: list[tuple[MemoryDisk, list[bytes], int]] = attrs.field(factory=list[tuple[MemoryDisk, list[bytes], int]])
    flushed: int = 0
    epoch: int = 0
    log: Log = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.log = Log.create(self.disk, FOLDER, SMALL)
        self.disk.hook = self.picture

    def picture(self, disk: MemoryDisk, operation: str, path: str) -> None:
        """The disk as it is, all batches that may be there, and how many of them must be."""
        self.pictures.append((disk.copy(), list(self.expected), self.flushed))

    def do(self, doing: Doing) -> None:
        match doing:
            case Appending(count, epoch_step, flush):
                self.epoch += epoch_step
                records = batch(self.log.view.end, self.epoch, count, sequence=self.log.view.end)
                self.expected.append(records)
                self.log.append(records, flush)
            case Truncating(back):
                self.cut(max(0, len(self.expected) - back))
            case Flushing():
                self.log.flush()
        again = Log.open(self.disk.copy(), FOLDER, SMALL).view
        found = attrs.evolve(again, flushed=self.log.view.flushed)
        assert found == self.log.view, "what the core is told is what is there"
        self.flushed = [end_of(self.expected[:n]) for n in range(len(self.expected) + 1)].index(self.log.view.flushed)

    def cut(self, keep: int) -> None:
        # While it goes on either may be found; what was flushed and is kept must be.
        before, self.flushed = self.expected, min(self.flushed, keep)
        self.log.truncate(end_of(before[:keep]))
        self.expected = before[:keep]


def end_of(written: Sequence[bytes]) -> int:
    return sum(b.count for records in written for b in batches(records))


def check_recovery(disk: MemoryDisk, expected: list[bytes], flushed: int) -> None:
    """The log that is found is the first n of the batches written, n being at least those flushed."""
    if not disk.exists(FOLDER):
        assert flushed == 0, "only a log without promises may be lost as a whole"
        disk.make_folder(FOLDER)
    log = Log.open(disk, FOLDER, SMALL)
    found = contents(log)
    prefixes = [b"".join(expected[:n]) for n in range(flushed, len(expected) + 1)]
    assert found in prefixes
    headers = list(batches(found))
    assert log.view.end == (headers[-1].next_offset if headers else 0)
    assert log.view.flushed == log.view.end
    assert [(e.epoch, e.start) for e in log.view.epochs.entries] == epoch_starts(headers)
    assert read_epochs(disk, f"{FOLDER}/{EPOCHS}") == log.view.epochs.entries
    sequences = [h.base_sequence for h in headers][-5:]
    assert [s.first_sequence for p in log.view.producers.values() for s in p.batches] == sequences
    # It can be written on, and found again.
    log.append(batch(log.view.end, 9))
    assert contents(Log.open(disk, FOLDER, SMALL)) == found + batch(log.view.end - 1, 9)


def epoch_starts(headers: list[Batch]) -> list[tuple[int, int]]:
    starts: dict[int, int] = {}
    for header in headers:
        starts.setdefault(header.leader_epoch, header.base_offset)
    return sorted(starts.items())


@attrs.frozen
class Share:
    """A part of everything that was pending survives: of names, and of each file's bytes, with zeros after them."""

    names_share: float
    bytes_share: float
    zeros: int = 0

    def names(self, pending: int) -> int:
        return round(pending * self.names_share)

    def bytes(self, path: str, pending: int) -> tuple[int, int]:
        return round(pending * self.bytes_share), self.zeros


SURVIVALS = st.one_of(
    st.just(Nothing()),
    st.just(Everything()),
    st.builds(Share, st.floats(0, 1), st.floats(0, 1), st.sampled_from([0, 1, 61, 500])),
)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(DOINGS, st.data())
def test_every_crash_point_leads_to_the_longest_valid_prefix(doings: list[Doing], data: st.DataObject) -> None:
    recorder = Recorder()
    for doing in doings:
        recorder.do(doing)
    recorder.picture(recorder.disk, "end", "")
    survival: Survival = data.draw(SURVIVALS)
    for disk, expected, flushed in recorder.pictures:
        disk.crash(survival)
        check_recovery(disk, expected, flushed)


FLUSHES = [Appending(1 + n % 3, n % 2, True) for n in range(9)]
MIXED: list[Doing] = [
    *(Appending(1 + n % 2, 0, n % 4 == 3) for n in range(9)),
    Truncating(4),
    *(Appending(1, 1, False) for _ in range(5)),
    Flushing(),
    Truncating(2),
    Appending(3, 1, False),
]


@pytest.mark.parametrize("doings", [FLUSHES, MIXED], ids=["flushes", "mixed"])
@pytest.mark.parametrize(
    "survival",
    [Nothing(), Everything(), Share(0, 1), Share(1, 0), *(Share(s / 8, 1 - s / 8, 9 * s) for s in range(9))],
    ids=str,
)
def test_a_long_history_is_recovered_at_each_of_its_operations(doings: list[Doing], survival: Survival) -> None:
    recorder = Recorder()
    for doing in doings:
        recorder.do(doing)
    recorder.picture(recorder.disk, "end", "")
    assert len(recorder.pictures) > 30
    for disk, expected, flushed in recorder.pictures:
        disk.crash(survival)
        check_recovery(disk, expected, flushed)


def test_a_crash_during_recovery_loses_nothing_either() -> None:
    recorder = Recorder()
    for count in (1, 2, 3, 1, 2, 3):
        recorder.do(Appending(count, 1, False))
    torn = Share(1.0, 0.9)
    disk, expected, flushed = recorder.pictures[-1]
    disk.crash(torn)
    recoveries: list[MemoryDisk] = []
    disk.hook = lambda now, operation, path: recoveries.append(now.copy())
    Log.open(disk, FOLDER, SMALL)
    assert recoveries
    for again in recoveries:
        for survival in (Nothing(), Everything(), torn):
            once_more = again.copy()
            once_more.crash(survival)
            check_recovery(once_more, expected, flushed)


def test_the_last_batch_may_be_torn_at_every_byte() -> None:
    written = [batch(o, count=2) for o in (0, 2, 4)]
    for zeros in (0, 7, 200):
        for kept in range(len(written[-1])):
            disk = MemoryDisk()
            log = Log.create(disk, FOLDER, Settings())
            log.append(written[0] + written[1], flush=True)
            log.append(written[2])

            @attrs.frozen
            class Torn:
                kept: int
                zeros: int

                def names(self, pending: int) -> int:
                    return pending

                def bytes(self, path: str, pending: int) -> tuple[int, int]:
                    return self.kept, self.zeros

            disk.crash(Torn(kept, zeros))
            found = Log.open(disk, FOLDER, Settings())
            assert found.view.end == 4, (kept, zeros)
            assert contents(found) == written[0] + written[1]


EPOCH_FIELD = range(12, 16)
"""Outside the CRC, and nothing else says what it should be: a flipped bit there may go unseen, in Kafka too."""


def test_a_flipped_bit_anywhere_cuts_the_log_before_its_batch() -> None:
    written = [batch(0), batch(1, count=2), batch(3)]
    size = len(written[0])
    for position in range(sum(map(len, written))):
        for bit in (0, 3, 7):
            disk = MemoryDisk()
            Log.create(disk, FOLDER, Settings()).append(b"".join(written), flush=True)
            image = disk.image(f"{FOLDER}/{0:020d}.log")
            image.visible_bytes[position] ^= 1 << bit
            image.settle(bytes(image.visible_bytes))
            starts = [0, size, size + len(written[1])]
            damaged = max(i for i, start in enumerate(starts) if start <= position)
            opened = Log.open(disk, FOLDER, Settings())
            if position - starts[damaged] not in EPOCH_FIELD:
                assert contents(opened) == b"".join(written[:damaged]), (position, bit)
                continue
            # A smaller epoch shows at once, a larger one at the batch behind it.
            assert len(contents(opened)) in (starts[damaged], starts[damaged] + len(written[damaged]))


def test_segments_after_a_damaged_one_are_removed() -> None:
    disk = MemoryDisk()
    log = Log.create(disk, FOLDER, SMALL)
    for offset in range(12):
        log.append(batch(offset))
    names = [n for n in disk.names(FOLDER) if n.endswith(".log")]
    image = disk.image(f"{FOLDER}/{names[1]}")
    image.settle(b"")
    found = Log.open(disk, FOLDER, SMALL)
    assert found.view.end == int(names[1].removesuffix(".log"))
    assert [n for n in disk.names(FOLDER) if n.endswith(".log")] == names[:2]


# The real disk behaves as the one in memory


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(DOINGS)
def test_real_files_give_the_same_log(tmp_path_factory: pytest.TempPathFactory, doings: list[Doing]) -> None:
    root: Path = tmp_path_factory.mktemp("data")
    recorder = Recorder()
    real = Log.create(RealDisk(root), FOLDER, SMALL)
    for doing in doings:
        before = len(recorder.expected)
        recorder.do(doing)
        match doing:
            case Appending(flush=flush):
                real.append(recorder.expected[before], flush)
            case Truncating():
                real.truncate(recorder.log.view.end)
            case Flushing():
                real.flush()
        assert real.view == recorder.log.view
    assert contents(real) == contents(recorder.log) == b"".join(recorder.expected)
    real.close()
    again = Log.open(RealDisk(root), FOLDER, SMALL)
    assert contents(again) == b"".join(recorder.expected)
    again.close()
    Log.open(recorder.disk, FOLDER, SMALL)
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    assert names == sorted(p for p, image in recorder.disk.names_now.items() if image is not None)
