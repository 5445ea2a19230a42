"""An exploration that dies, or that memory cannot hold, answers what it would have answered otherwise.

Without these, states that went to a file or came back from a checkpoint could be lost or counted twice, and only the
explorations that run for hours would be wrong.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import attrs
import pytest
from tests.support.models import copies, two_phase_commit

from isr_check import native
from isr_check.engine import DEADLOCK, BadCheckpoint, Exploration, Limits
from isr_check.native import archive, space
from isr_check.native.space import Space
from isr_lang import Instance

pytestmark = [pytest.mark.explores, pytest.mark.processes]

SEVEN = Instance(two_phase_commit.DESIGN, {"rms": 7})
STATES = 296448
BIG = Instance(copies.DESIGN, {"nodes": 3, "length": 2, "terms": 1, "gossip": True, "careless": False})
LARGER = Instance(copies.DESIGN, {"nodes": 3, "length": 2, "terms": 2, "gossip": True, "careless": False})


def answer(found: Exploration) -> Exploration:
    return attrs.evolve(found, seconds=0)


@pytest.fixture(scope="module")
def whole() -> Exploration:
    found = native.explore(SEVEN)
    assert found.distinct == STATES
    return answer(found)


# Memory


def never(_: Space, __: int) -> bool:
    return False


def always(_: Space, __: int) -> bool:
    return True


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """No table grows, and candidates have half a megabyte; counts how often they are written out."""
    settle, flush, flushed = Space._settle_outside, Space.flush, list[int]()  # pyright: ignore[reportPrivateUsage]

    def flushes(self: Space) -> None:
        flush(self)
        flushed.append(self.distinct)

    monkeypatch.setattr(space, "LEAST", 0)
    monkeypatch.setattr(space, "BLOCK", 1000)

    def settles(self: Space, _: int) -> None:
        settle(self, 1 << 19)

    monkeypatch.setattr(Space, "_affords", never)
    monkeypatch.setattr(Space, "_settle_outside", settles)
    monkeypatch.setattr(Space, "flush", flushes)
    return flushed


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_memory_cannot_hold_is_explored_all_the_same(
    workers: int, whole: Exploration, little_memory: list[int]
) -> None:
    assert answer(native.explore(SEVEN, workers=workers)) == whole
    assert len(little_memory) > 30


def test_symmetry_and_deadlock_outside(little_memory: list[int]) -> None:
    instance = Instance(copies.DESIGN, {"nodes": 4, "length": 2, "terms": 3})
    wanted = (*(p.name for p in instance.properties), DEADLOCK)
    found = native.explore(instance, wanted, symmetry=True)
    assert little_memory
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "_affords", always)
        assert answer(native.explore(instance, wanted, symmetry=True)) == answer(found)


def test_no_files_are_left(tmp_path: Path, little_memory: list[int]) -> None:
    assert native.explore(SEVEN, folder=tmp_path / "kept").complete
    assert little_memory
    assert not (tmp_path / "kept").exists()


def test_a_full_disk_is_an_honest_end(
    monkeypatch: pytest.MonkeyPatch, little_memory: list[int], tmp_path: Path
) -> None:
    append = archive.Archive.append

    def full(self: archive.Archive, blocks: object) -> None:
        if self.size > 50_000:
            raise OSError(28, "No space left on device")
        append(self, blocks)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(archive.Archive, "append", full)
    found = native.explore(SEVEN, folder=tmp_path / "kept")
    assert not found.complete
    assert "No space left" in found.stopped
    assert {f.verdict for f in found.findings} >= {"BUDGETED"}
    assert little_memory


def test_too_little_memory_is_an_honest_end() -> None:
    found = native.explore(SEVEN, memory=1 << 20)
    assert not found.complete
    assert found.stopped == "the memory limit"


# Checkpoints


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_interrupted_again_and_again(
    outside: bool, symmetry: bool, whole: Exploration, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if outside:
        request.getfixturevalue("little_memory")
    folder, resumed = tmp_path / "kept", 0
    expected = answer(native.explore(SEVEN, symmetry=True)) if symmetry else whole
    found = native.explore(SEVEN, (), Limits(max_states=20), folder=folder, symmetry=symmetry)
    while not found.complete:
        resumed += 1
        limit = Limits(max_states=found.distinct + expected.distinct // 5)
        workers = 1 + resumed % 3
        found = native.explore(SEVEN, (), limit, folder=folder, resume=True, workers=workers, symmetry=symmetry)
    assert resumed > 2
    assert answer(found) == expected
    assert not folder.exists()


CHILD = """
import sys
from pathlib import Path
from tests.isr_check import test_native_checkpoints as here
from isr_check import native
folder, resume, instance = Path(sys.argv[1]), sys.argv[2] == "resume", getattr(here, sys.argv[4])
print(here.answer(native.explore(instance, folder=folder, resume=resume, every=float(sys.argv[3]), workers=1)))
"""


@pytest.mark.parametrize(
    ("name", "most", "longest"), [("BIG", 3, 0.03), pytest.param("LARGER", 6, 0.3, marks=pytest.mark.slow)]
)
def test_killed_at_random_moments(tmp_path: Path, name: str, most: int, longest: float) -> None:
    """Each kill waits for a checkpoint, and then for up to `longest` seconds, which leaves work for the next turn."""
    expected = answer(native.explore(BIG if name == "BIG" else LARGER))
    folder, dice = tmp_path / "kept", random.Random(3)
    kills, after = 0, list[int]()
    while True:
        resume = "resume" if (folder / archive.NAME).exists() else "begin"
        every = "0.02" if kills < most else "60"  # who is not killed any more need not write so often
        words = [sys.executable, "-c", CHILD, str(folder), resume, every, name]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        before = (folder / archive.NAME).stat().st_mtime_ns if resume == "resume" else 0
        while child.poll() is None and kills < most:
            time.sleep(0.01)
            written = (folder / archive.NAME).exists() and (folder / archive.NAME).stat().st_mtime_ns > before
            if written:  # so that every turn gets further
                time.sleep(dice.random() * longest)
                child.send_signal(signal.SIGKILL)
                kills += 1
                break
        said, _ = child.communicate()
        if child.returncode == 0:
            assert said.strip() == str(expected)
            if kills == most:
                break
            after.clear()  # it ended before it was killed, so all begins anew
            continue
        after.append(states_kept(folder))
    assert after == sorted(after)
    assert not folder.exists()


def states_kept(folder: Path) -> int:
    segments = cast("list[tuple[str, int, str]]", archive.read_checkpoint(folder)["segments"])
    return sum(count for _, count, _ in segments)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    native.explore(SEVEN, (), Limits(max_states=100_000), folder=folder)
    return folder


def resume(folder: Path, instance: Instance = SEVEN, symmetry: bool = False) -> Exploration:
    return native.explore(instance, folder=folder, resume=True, symmetry=symmetry)


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="there is no checkpoint in"):
        resume(tmp_path)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damaged_states_are_seen(damage: str, kept: Path) -> None:
    file = next(kept.glob("states-*.bin"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content if damage == "flip" else content[:-8])
    with pytest.raises(BadCheckpoint, match=r"states-000000\.bin (was changed or damaged|is missing)"):
        resume(kept)


def test_a_damaged_checkpoint_is_seen(kept: Path) -> None:
    file = kept / archive.NAME
    outer = json.loads(file.read_text())
    file.write_text(json.dumps({**outer, "checkpoint": outer["checkpoint"].replace('"seconds": ', '"seconds": 1')}))
    with pytest.raises(BadCheckpoint, match="was changed or damaged after it was written"):
        resume(kept)
    file.write_text(file.read_text()[:-10])
    with pytest.raises(BadCheckpoint, match="is not a checkpoint"):
        resume(kept)


def test_a_checkpoint_of_another_question_is_refused(kept: Path) -> None:
    with pytest.raises(BadCheckpoint, match="is of rms 7, not 6"):
        resume(kept, Instance(two_phase_commit.DESIGN, {"rms": 6}))
    with pytest.raises(BadCheckpoint, match="is of symmetry off, not on"):
        resume(kept, symmetry=True)
    with pytest.raises(BadCheckpoint, match=r"is of properties .*, not type-ok"):
        native.explore(SEVEN, ("type-ok",), folder=kept, resume=True)
    assert resume(kept).distinct == STATES


def test_checkpoints_that_cannot_be_written_do_not_stop_what_memory_holds(
    monkeypatch: pytest.MonkeyPatch, whole: Exploration, tmp_path: Path
) -> None:
    def full(_: object, __: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "save", full)
    assert answer(native.explore(SEVEN, folder=tmp_path / "kept", every=0.0)) == whole
