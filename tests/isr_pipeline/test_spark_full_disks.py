"""Visited sets that are together larger than the local disk: those that no task has in use make room.

Without these, an exploration could fail, or be killed while it writes to a mapped file (SIGBUS), as soon as an
executor's disk is full, though all that fills it is in the store as well. One process does a bucket's task after the
other here, as an executor of one core does; tests/isr_pipeline/test_spark_strangers.py has executors with small disks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
from tests.support.limits import small_disk
from tests.support.models import two_phase_commit
from tests.support.sparks import answer, require_spark

from isr_check import native
from isr_check.engine import Failed
from isr_lang import Instance
from isr_pipeline import mapped_files, search, store
from isr_pipeline.arrow_rows import Answer, Batches, answers, rows
from isr_pipeline.explore import explore
from isr_pipeline.locations import Location
from isr_pipeline.mapped_files import RECORD_FILE, DiskRoom
from isr_pipeline.runners import LocalRunner, Sink, Source
from isr_pipeline.store import Commit, Remaking

pytestmark = [pytest.mark.explores, pytest.mark.processes]

HERE = 1 << 60
FIVE = Instance(two_phase_commit.DESIGN, {"rms": 5})
BUCKETS = 9


class BucketAfterBucket(LocalRunner):
    """Runs the task of one bucket after that of another, as Spark does, so that one set is in use at a time."""

    def shuffle(self, source: Source, parts: Sequence[int], sink: Sink, what: str) -> list[Answer]:
        def of(bucket: int) -> Batches:
            for batch in kept:
                owners = [owner for owner, _, _ in rows(batch)]
                yield batch.filter([owner == bucket for owner in owners])

        kept = list(chain.from_iterable(map(source, parts)))
        owners = sorted({owner for batch in kept for owner, _, _ in rows(batch)})
        return [found for owner in owners for found in answers(sink(of(owner)))]


@pytest.fixture(autouse=True)
def one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    require_spark()
    monkeypatch.setattr(search, "LocalRunner", BucketAfterBucket)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run whose visited sets have a small disk, of 2 MiB."""
    (tmp_path / "run").mkdir()
    with small_disk(tmp_path / "run" / "sets", 2 << 20):
        yield tmp_path / "run"


def commits(run: Path) -> list[Commit]:
    return store.Store(Location.of(run)).commits()


def test_sets_that_no_task_uses_make_room(run: Path) -> None:
    found = explore(FIVE, folder=run, partitions=BUCKETS, handover=HERE)
    assert answer(found) == answer(native.explore(FIVE))
    again = sum((c.remade for c in commits(run)), Remaking())
    tasks = sum(len(c.sizes) for c in commits(run)[1:])
    assert again.states > found.distinct, "sets were made again level by level"
    assert again.buckets < tasks * 3 // 4, "those that fit stayed"


def test_without_room_for_two_sets_a_task_fails_in_one_sentence(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk does when nothing is removed; and nobody is killed for writing to a file without room."""

    def nothing(self: DiskRoom) -> bool:
        return False

    monkeypatch.setattr(DiskRoom, "_remove_one", nothing)
    with pytest.raises(Failed, match=r"has no room left for a visited set, and no other one to remove; more --partit"):
        explore(FIVE, folder=run, partitions=BUCKETS, handover=HERE)


def test_a_set_that_is_larger_than_the_disk(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "STEP", 4 << 20)
    with pytest.raises(Failed, match=r"has no room left"):
        explore(Instance(two_phase_commit.DESIGN, {"rms": 6}), folder=run, partitions=1, handover=HERE)


def made(folder: Path, level: int, at: int) -> Path:
    folder.mkdir(parents=True)
    said = folder / RECORD_FILE
    said.write_text(json.dumps({"level": level, "states": 1, "size": 1}), encoding="utf-8")
    os.utime(said, (at, at))
    return folder


def test_the_set_that_is_needed_last_goes_first(tmp_path: Path) -> None:
    home = tmp_path / "insync-1"
    used = [
        made(home / f"bucket-{n:04d}", level, at) for n, level, at in [(0, 7, 30), (1, 7, 40), (2, 6, 10), (3, 6, 20)]
    ]
    elsewhere = made(home / "bucket-0004", 3, 5)
    other = made(tmp_path / "insync-2" / "bucket-0000", 9, 50)
    busy = made(home / "bucket-0005.1.2", 6, 1)
    room, gone = DiskRoom(home, 7, 0), list[Path]()
    while room._remove_one():  # pyright: ignore[reportPrivateUsage]
        gone += [folder for folder in (*used, elsewhere, other) if not folder.exists() and folder not in gone]
    assert gone == [other, elsewhere, used[1], used[0], used[3], used[2]]
    assert busy.exists()


def test_room_is_left_for_what_spark_writes(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8 << 20):
        home = tmp_path / "disk" / "insync-1"
        idle = [made(home / f"bucket-{n:04d}", 1, n) for n in range(3)]
        for folder in idle:
            (folder / "states").write_bytes(bytes(2 << 20))
        file = os.open(home / "own", os.O_RDWR | os.O_CREAT)
        DiskRoom(home, 1, 0).take(file, 0, 1 << 18)
        assert all(folder.exists() for folder in idle)
        DiskRoom(home, 1, 2 << 20).take(file, 1 << 18, 1 << 19)
        assert [folder.exists() for folder in idle] == [True, True, False]
        DiskRoom(home, 1, 1 << 40).take(file, 1 << 19, 1 << 20)
        assert [folder.exists() for folder in idle] == [True, False, False], "half of the disk is enough"
        os.close(file)
