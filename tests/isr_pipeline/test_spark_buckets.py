"""Exploration in buckets says what the native engine says, whoever does the tasks and whatever becomes of them.

Without these, a search that was killed, or a task that Spark runs twice, could lose or repeat states, and its counts
and verdicts would be wrong only on large models, where nothing else can check them.

Here all tasks are done by one process, which is what the engine does with small levels;
tests/isr_pipeline/test_spark.py has Spark do them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from tests.support.expected import outcome, table
from tests.support.models import copies, ticket_desk, two_phase_commit
from tests.support.sample import sample
from tests.support.sparks import answer, require_spark

from isr_check import native
from isr_check.engine import DEADLOCK, BadCheckpoint, Exploration, Failed, Limits, Progress, Unsound, Verdict
from isr_lang import Design, Instance
from isr_lang.constants import Value
from isr_pipeline import arrow_rows, counterexamples, session, store, tasks
from isr_pipeline.bucket_states import BucketStates
from isr_pipeline.explore import explore
from isr_pipeline.graph import owners_of
from isr_pipeline.locations import Location
from isr_pipeline.search import Search
from isr_pipeline.task_kernels import KernelWorker
from isr_protocol.by_name import DESIGNS

pytestmark = [pytest.mark.explores, pytest.mark.processes]

HERE = 1 << 60
"""No level is so large that Spark would be started."""
FIVE = Instance(two_phase_commit.DESIGN, {"rms": 5})
SMALL = [(run, said) for run, said, _ in table() if said.distinct < 20_000][::7]


@pytest.fixture(autouse=True)
def with_java() -> None:
    require_spark()


def same(
    design: Design, constants: dict[str, Value], wanted: tuple[str, ...] = (), *, symmetry: bool = False
) -> Exploration:
    instance = Instance(design, constants)
    expected = answer(native.explore(instance, wanted, symmetry=symmetry))
    for partitions in (1, 2, 7):
        assert answer(explore(instance, wanted, partitions=partitions, handover=HERE, symmetry=symmetry)) == expected
    return expected


@pytest.mark.parametrize("run", sample(((r,) for r, _ in SMALL), 3), ids=lambda r: r.name)
def test_what_is_expected_of_every_engine(run: object) -> None:
    known, said = next((r, s) for r, s in SMALL if r is run)
    found = explore(known.instance(), partitions=3, handover=HERE)
    assert outcome(found) == said
    assert answer(found) == answer(native.explore(known.instance()))


@pytest.mark.parametrize(
    ("constants", "wanted"),
    [
        ({"nodes": 3, "length": 1, "gossip": True}, ()),
        ({"nodes": 2, "careless": True}, ()),  # a value leaves its range: begun again with room for it
        ({"nodes": 2, "careless": True}, ("type-ok",)),
        ({"nodes": 2}, (DEADLOCK, "a-log-shrinks")),
    ],
)
def test_every_part_of_the_language(constants: dict[str, Value], wanted: tuple[str, ...]) -> None:
    assert any(f.path for f in same(copies.DESIGN, constants, wanted).findings)


def test_what_grows_without_end_is_cut_and_not_called_complete() -> None:
    found = explore(Instance(copies.ENDLESS), (), Limits(max_states=200), handover=HERE)
    assert not found.complete
    assert found.finding("type-ok").verdict is Verdict.VIOLATED


def test_symmetry_and_a_path_of_real_states() -> None:
    found = same(copies.DESIGN, {"nodes": 3, "length": 2, "terms": 2}, symmetry=True)
    assert found.states_in_orbits is not None
    assert found.states_in_orbits > found.distinct


def test_targets_are_looked_for_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterexamples, "SLICE", 7)
    same(ticket_desk.HASTY, {})
    same(copies.DESIGN, {"nodes": 2, "careless": True})


def test_a_task_with_little_room_sends_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SLOTS", 16)
    monkeypatch.setattr(arrow_rows, "PIECE", 100)
    sent = list[int]()
    send = tasks.send

    def counted(hand: KernelWorker, found: np.ndarray, end: int) -> Iterator[object]:
        sent.append(end)
        yield from send(hand, found, end)

    monkeypatch.setattr(tasks, "send", counted)
    expected = native.explore(FIVE)
    assert answer(explore(FIVE, partitions=2, handover=HERE)) == answer(expected)
    assert len(sent) > 2 * len(expected.levels) + 2


def test_liveness_is_refused_in_one_sentence() -> None:
    instance = Instance(DESIGNS["kip-966"], {"replicas": 2})
    live = next(p.name for p in instance.properties if p.kind == "eventually")
    with pytest.raises(Unsound, match="and Spark decides none; --engine native does"):
        explore(instance, (live,), handover=HERE)


def test_who_waits_for_spark_to_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise Failed("there is no Spark here")

    monkeypatch.setattr(session, "running", refuse)
    reports = list[Progress]()
    with pytest.raises(Failed, match="there is no Spark here"):
        explore(FIVE, (), None, reports.append, partitions=2, handover=100)
    assert len(reports) > 2
    assert [report.beside for report in reports if report.beside] == [("starting Spark",)]
    assert reports[-1].beside


# Interrupted


def test_interrupted_again_and_again(tmp_path: Path) -> None:
    expected, reports = answer(native.explore(FIVE)), list[Progress]()
    found = explore(FIVE, (), Limits(max_states=20), folder=tmp_path, handover=HERE)
    turns = 0
    while not found.complete:
        assert {f.verdict for f in found.findings} & {Verdict.BUDGETED}
        limit, turns = Limits(max_states=found.distinct + 900), turns + 1
        found = explore(FIVE, (), limit, reports.append, folder=tmp_path, resume=True, handover=HERE)
    assert turns > 2
    assert answer(found) == expected
    assert [p.depth for p in reports] == sorted(p.depth for p in reports)
    assert answer(explore(FIVE, folder=tmp_path, resume=True, handover=HERE)) == expected


class Killed(BaseException):
    """As if the process had ended here."""


def broken(original: Callable[..., object], after: int) -> Callable[..., object]:
    """The same function; after so many calls its process ends instead."""
    left = [after]

    def called(*given: object, **named: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return original(*given, **named)

    return called


@pytest.mark.parametrize(
    ("where", "name", "after"),
    [(BucketStates, "absorb", 21), (BucketStates, "keep", 12), (store, "write_states", 9), (store.Store, "commit", 7)],
)
def test_killed_in_the_middle_of_a_level(
    where: object, name: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(where, name, broken(getattr(where, name), after))
        with pytest.raises(Killed):
            explore(FIVE, folder=tmp_path, partitions=3, handover=HERE)
    kept = store.Store(Location.of(tmp_path)).commits()
    assert 0 < len(kept) < len(native.explore(FIVE).levels)
    assert answer(explore(FIVE, folder=tmp_path, resume=True, handover=HERE)) == answer(native.explore(FIVE))


def test_a_task_that_is_done_again_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark does a task again whose worker died; what it had added to the set must not count as known."""
    own, failed = tasks.AddStates.__call__, list[int]()

    def twice(self: tasks.AddStates, batches: arrow_rows.Batches) -> arrow_rows.Batches:
        kept = list(batches)
        if self.level % 3 == 1 and self.level not in failed:
            failed.append(self.level)
            with monkeypatch.context() as patch:
                patch.setattr(BucketStates, "keep", broken(BucketStates.keep, 1))
                with pytest.raises(Killed):
                    list(own(self, iter(kept)))
        yield from own(self, iter(kept))

    monkeypatch.setattr(tasks.AddStates, "__call__", twice)
    assert answer(explore(FIVE, folder=tmp_path, partitions=2, handover=HERE)) == answer(native.explore(FIVE))
    assert len(failed) > 2


# What is kept


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    explore(FIVE, (), Limits(max_states=2000), folder=tmp_path, partitions=2, handover=HERE)
    return tmp_path


def files_of(folder: Path, level: int) -> dict[int, Location]:
    """The files of a level by bucket, as its commit names them."""
    place = Location.of(folder)
    commit = next(c for c in store.Store(place).commits() if c.level == level)
    return {bucket: commit.file(place, bucket) for bucket in commit.names}


def again(folder: Path, instance: Instance = FIVE, partitions: int | None = None) -> Exploration:
    return explore(instance, folder=folder, resume=True, partitions=partitions, handover=HERE)


def test_the_levels_are_a_dataset_with_the_counts_of_the_engine(tmp_path: Path) -> None:
    found = explore(FIVE, folder=tmp_path, partitions=2, handover=HERE)
    files = [files_of(tmp_path, level) for level in range(len(found.levels))]
    blocks = [block for level in files for file in level.values() for block in store.read_states(file, 1)]
    states = np.concatenate(blocks)
    assert len(states) == len(np.unique(states)) == found.distinct
    assert tuple(sum(map(store.count_states, level.values())) for level in files) == found.levels
    written = {path for path in tmp_path.rglob("*") if path.is_file() and path.parent.parent.name == "states"}
    assert {str(path) for path in written} == {str(file) for level in files for file in level.values()}
    assert not (tmp_path / "sets").exists()


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damaged_states_are_seen(damage: str, kept: Path) -> None:
    file = next((kept / "states" / "level=4").glob("bucket-*.parquet"))
    content = bytearray(file.read_bytes())
    content[40] ^= 4
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content if damage == "flip" else content[:-8])
    with pytest.raises(
        BadCheckpoint, match=r"bucket-000\d-\w+\.parquet (was changed or damaged|does not have the \d+ states)"
    ):
        again(kept)


def test_a_damaged_commit_is_seen(kept: Path) -> None:
    file = kept / "commits" / "0003.json"
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "expanded": said["expanded"] + 1}))
    with pytest.raises(BadCheckpoint, match=r"0003\.json was changed or damaged after it was written"):
        again(kept)
    file.unlink()
    with pytest.raises(BadCheckpoint, match="a level is missing"):
        again(kept)


def test_what_is_of_another_question_is_refused(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="is of rms 5, not 4"):
        again(kept, Instance(two_phase_commit.DESIGN, {"rms": 4}))
    with pytest.raises(BadCheckpoint, match="has 2 partitions, not 3"):
        again(kept, partitions=3)
    with pytest.raises(BadCheckpoint, match="there is no exploration by Spark"):
        again(tmp_path / "elsewhere")


def test_everybody_agrees_on_who_owns_a_state(tmp_path: Path) -> None:
    explore(FIVE, folder=tmp_path, partitions=5, handover=HERE)
    for bucket, file in files_of(tmp_path, 6).items():
        for block in store.read_states(file, 1):
            assert set(owners_of(block, 5).tolist()) == {bucket}


def test_a_search_begins_with_the_levels_that_are_there(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = list[int]()
    level = Search.level

    def counted(self: Search) -> None:
        levels.append(self.commits[-1].level)
        level(self)

    monkeypatch.setattr(Search, "level", counted)
    complete = len(store.Store(Location.of(kept)).commits())
    again(kept)
    assert levels[0] == complete - 1
