"""What an exploration by Spark asks of the store where it lasts, and what it makes of a visited set that is gone.

Without these, an exploration could need what object stores lack (renames, locks, appending), take a file for whole that
was written by half, or go on with a visited set that lacks states or has too many. All tasks are done by one process
here; tests/isr_pipeline/test_spark_strangers.py has a cluster whose machines share nothing but a store.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import pyarrow as pa
import pytest
from pyarrow import fs
from tests.support.models import ticket_desk, two_phase_commit
from tests.support.sparks import answer, require_spark

from isr_check import native
from isr_check.engine import Exploration, Failed, Limits, Unavailable
from isr_lang import Instance
from isr_pipeline import locations, store, tasks
from isr_pipeline.arrow_rows import Batches
from isr_pipeline.explore import explore
from isr_pipeline.locations import Location
from isr_pipeline.search import Search
from isr_pipeline.store import Commit

pytestmark = [pytest.mark.explores, pytest.mark.processes]

HERE = 1 << 60
FOUR = Instance(two_phase_commit.DESIGN, {"rms": 4})


@pytest.fixture(autouse=True)
def with_java() -> None:
    require_spark()


def expected() -> Exploration:
    return answer(native.explore(FOUR))


# A store that can only put, read, list and delete


class Uploaded(io.BytesIO):
    """What is written to an object; the object is there, whole, once this is closed."""

    def __init__(self, objects: dict[str, bytes], name: str) -> None:
        super().__init__()
        self.objects, self.name = objects, name

    def close(self) -> None:
        if not self.closed:
            self.objects[self.name] = self.getvalue()
        super().close()


class ObjectsOnly(fs.FileSystemHandler):
    """Objects in memory. There are no folders, renames, copies or appending."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def open_output_stream(self, path: str, metadata: dict[str, str]) -> pa.NativeFile:
        del metadata
        return pa.PythonFile(Uploaded(self.objects, path), mode="w")

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pa.PythonFile(io.BytesIO(self.objects[path]), mode="r")

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        inside = [(name, held) for name, held in self.objects.items() if name.startswith(f"{selector.base_dir}/")]
        return [fs.FileInfo(name, fs.FileType.File, size=len(held)) for name, held in inside]

    def delete_file(self, path: str) -> None:
        if self.objects.pop(path, None) is None:
            raise FileNotFoundError(path)

    def delete_dir(self, path: str) -> None:
        for name in [name for name in self.objects if name.startswith(f"{path}/")]:
            del self.objects[name]

    def create_dir(self, path: str, recursive: bool) -> NoReturn:
        self._refuse("make folders", path, recursive)

    def move(self, src: str, dest: str) -> NoReturn:
        self._refuse("rename", src, dest)

    def copy_file(self, src: str, dest: str) -> NoReturn:
        self._refuse("copy", src, dest)

    def open_append_stream(self, path: str, metadata: dict[str, str]) -> NoReturn:
        self._refuse("append", path, metadata)

    def open_input_stream(self, path: str) -> NoReturn:
        self._refuse("stream", path)

    def get_file_info(self, paths: str | list[str]) -> NoReturn:
        self._refuse("look at one object", paths)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> NoReturn:
        self._refuse("empty folders", path, missing_dir_ok)

    def delete_root_dir_contents(self) -> NoReturn:
        self._refuse("forget everything")

    def _refuse(self, what: str, *given: object) -> NoReturn:
        raise OSError(f"this store does not {what}: {given}")


URL = "s3://bucket/some/run"


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The objects of a store that stands for every URL."""
    handler, real = ObjectsOnly(), locations.filesystem
    system = cast("locations.FileSystem", fs.PyFileSystem(handler))

    def chosen(root: str) -> tuple[locations.FileSystem, str]:
        return (system, "bucket") if root else real(root)

    monkeypatch.setattr(locations, "filesystem", chosen)
    return handler.objects


def test_a_store_that_only_puts_reads_lists_and_deletes(objects: dict[str, bytes], tmp_path: Path) -> None:
    found = explore(FOUR, (), Limits(max_states=400), folder=tmp_path, store=URL, partitions=3, handover=HERE)
    assert not found.complete
    whole = explore(FOUR, folder=tmp_path, store=URL, resume=True, handover=HERE, graph=True)
    assert answer(whole) == expected()
    kinds = {name.removeprefix("bucket/some/run/").split("/")[0] for name in objects}
    assert kinds == {"plan.json", "kernels.ll", "states", "actions", "commits", "graph"}
    assert not list(tmp_path.iterdir()), "nothing lasts here"


def test_counterexamples_by_a_store(objects: dict[str, bytes]) -> None:
    hasty = Instance(ticket_desk.HASTY, {})
    found = explore(hasty, store=URL, partitions=2, handover=HERE)
    assert answer(found) == answer(native.explore(hasty))
    assert any(f.path for f in found.findings)
    assert not any("/trace/" in name for name in objects)


def test_a_store_that_is_none_is_said_in_one_sentence() -> None:
    with pytest.raises(Unavailable, match=r"^ftp://host/run is no store; there are s3://, gs://, abfs://, hdfs://, fi"):
        Location.of("ftp://user:secret@host/run?password=secret")
    with pytest.raises(Unavailable, match=r"^s3:///run is no store"):
        Location.of("s3:///run")


@pytest.mark.parametrize("given", ["file:///some/folder", "/some/folder", Path("/some/folder")])
def test_a_folder_of_this_machine_is_a_store_like_others(given: str | Path) -> None:
    assert Location.of(given) / "states" == Location("", "/some/folder/states")


def test_no_secret_is_told() -> None:
    place = (
        Location.of("s3://key:secret@bucket/run?endpoint_override=localhost:9&scheme=http&region=here") / "plan.json"
    )
    assert str(place) == "s3://bucket/run/plan.json"


# Written by half


@pytest.mark.parametrize("by_half", [0.0, 0.5, 0.99])
def test_a_commit_written_by_half_is_none(by_half: float, tmp_path: Path) -> None:
    explore(FOUR, (), Limits(max_states=400), folder=tmp_path, partitions=2, handover=HERE)
    last = max((tmp_path / "commits").iterdir())
    content = last.read_bytes()
    last.write_bytes(content[: int(by_half * len(content))])
    assert [c.level for c in store.Store(Location.of(tmp_path)).commits()] == list(range(int(last.stem)))
    assert answer(explore(FOUR, folder=tmp_path, resume=True, handover=HERE)) == expected()


def test_states_that_no_commit_names_are_not_seen_and_removed(tmp_path: Path) -> None:
    explore(FOUR, (), Limits(max_states=400), folder=tmp_path, partitions=2, handover=HERE)
    known = next((tmp_path / "states" / "level=3").iterdir())
    for level in (3, 30):
        left = store.part(Location.of(tmp_path), level, 0, store.new_name())
        Path(left.path).parent.mkdir(exist_ok=True)
        shutil.copy(known, left.path)
    assert answer(explore(FOUR, folder=tmp_path, resume=True, handover=HERE)) == expected()
    assert len(list((tmp_path / "states" / "level=3").iterdir())) <= 2
    assert not list((tmp_path / "states" / "level=30").iterdir())


# Visited sets that are gone, behind, or ahead


def explored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[[int, Path], None]) -> list[Commit]:
    """Explore; before each level something is done to the visited sets. All is as expected; returns the commits."""
    level = Search.level

    def changed(self: Search) -> None:
        before(self.commits[-1].level + 1, next((tmp_path / "sets").iterdir()))
        level(self)

    monkeypatch.setattr(Search, "level", changed)
    assert answer(explore(FOUR, folder=tmp_path, partitions=2, handover=HERE)) == expected()
    return store.Store(Location.of(tmp_path)).commits()


def states_before(commits: list[Commit], level: int, bucket: int) -> int:
    return sum(c.sizes.get(bucket, 0) for c in commits if c.level < level)


def test_a_lost_visited_set_is_made_again_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(level: int, sets: Path) -> None:
        if level in (4, 7):
            shutil.rmtree(sets / "bucket-0001")

    commits = explored(tmp_path, monkeypatch, lose)
    assert {c.level: c.remade.states for c in commits if c.remade.buckets} == {
        level: states_before(commits, level, 1) for level in (4, 7)
    }
    assert all(c.remade.seconds > 0 for c in commits if c.remade.buckets)


def test_a_visited_set_of_an_earlier_level_gets_the_levels_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a bucket comes back to an executor after another one has had it."""

    def take_back(level: int, sets: Path) -> None:
        if level == 4:
            shutil.copytree(sets / "bucket-0000", tmp_path / "old")
        if level == 8:
            shutil.rmtree(sets / "bucket-0000")
            shutil.move(tmp_path / "old", sets / "bucket-0000")

    commits = explored(tmp_path, monkeypatch, take_back)
    since = states_before(commits, 8, 0) - states_before(commits, 4, 0)
    assert {c.level: c.remade.states for c in commits if c.remade.buckets} == {8: since}


def test_a_visited_set_that_an_attempt_left_that_does_not_count_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Spark does a whole stage again, or counts the other of two attempts at a task."""
    own, done = tasks.AddStates.__call__, list[int]()

    def twice(self: tasks.AddStates, batches: Batches) -> Batches:
        kept = list(batches)
        list(own(self, iter(kept)))
        done.append(self.level)
        yield from own(self, iter(kept))

    monkeypatch.setattr(tasks.AddStates, "__call__", twice)
    assert answer(explore(FOUR, folder=tmp_path, partitions=2, handover=HERE)) == expected()
    commits = store.Store(Location.of(tmp_path)).commits()
    assert len(done) == len(commits) - 1
    assert all(c.remade.buckets and not c.remade.states for c in commits[1:] if c.states)
    assert len([p for p in (tmp_path / "states").rglob("*.parquet")]) == sum(len(c.names) for c in commits)


def test_a_visited_set_of_a_dead_process_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()

    def leave(level: int, sets: Path) -> None:
        if level == 4:
            shutil.move(sets / "bucket-0000", sets / f"bucket-0000.{ended.pid}.5")
        if level > 4:
            assert not list(sets.glob("bucket-0000.*"))

    assert sum(c.remade.buckets for c in explored(tmp_path, monkeypatch, leave)) == 1


def test_a_store_that_lacks_states_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of states that tasks are told and what the store has must agree, or states would count as new."""
    counted = Search.before

    def more(self: Search) -> dict[int, int]:
        return {bucket: many + (bucket == 1) for bucket, many in counted(self).items()}

    explore(FOUR, (), Limits(max_states=400), folder=tmp_path, partitions=2, handover=HERE)
    monkeypatch.setattr(Search, "before", more)
    with pytest.raises(Failed, match=r"does not have the \d+ states that bucket 1 had"):
        explore(FOUR, folder=tmp_path, resume=True, handover=HERE)
    assert not (tmp_path / "sets").exists()


# Who does a level


def test_this_process_leaves_to_spark_what_it_would_have_to_read_first() -> None:
    """A small level at the end of a large exploration is no small work for who has no visited sets."""
    search = Search.__new__(Search)
    search.own = 3
    search.commits = [cast("Commit", SimpleNamespace(level=level, states=10**level)) for level in range(8)]
    assert search.behind() == 10**4 + 10**5 + 10**6 + 10**7
