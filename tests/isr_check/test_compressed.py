"""Compressed states: the table and its dictionaries against a set, and explorations that turn to them.

Without these, a state could be lost, be counted twice or be taken for another one where memory is short, and only the
explorations that need the most memory would be wrong.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest
from tests.support import expected
from tests.support.expected import Outcome, Run
from tests.support.models import copies, paxos, two_phase_commit
from tests.support.sample import sample

from isr_check import native
from isr_check.engine import DEADLOCK, Exploration, Limits
from isr_check.native import buffers, compressed, space
from isr_check.native.buffers import Words, Worker
from isr_check.native.compressed import Compressed
from isr_check.native.space import Space
from isr_check.native.team import Span, Team
from isr_lang import Design, Instance
from isr_lang.constants import Value


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments and dictionaries so small that they grow often."""
    sizes = {"SMALLEST": 20, "FEWEST": 4, "PLENTY": 4, "ROWS": 50, "BUCKETS": 64, "FULLEST": 0.75}
    for name, size in sizes.items():
        monkeypatch.setattr(compressed, name, size)


# The table


@attrs.frozen
class Sizes:
    words: int
    cells: int = 1
    most: int = 1
    guards: int = 1


def table(words: int, threads: int, affords: Callable[[int], bool] = lambda _: True) -> Compressed:
    return Compressed(words, Team([Worker(Sizes(words), 1, (0, 0)) for _ in range(threads)]), 1, affords)


def add(into: Compressed, states: Iterable[tuple[int, ...]], level: int, *, done: bool = False) -> bool:
    rows = np.array([*states], dtype=np.uint64).reshape(-1, into.words)

    def read(_: Worker, span: Span) -> Words:
        return rows[slice(*span)]

    return into.absorb(read, [(0, len(rows))], level, is_expanded=done)


def held(of: Compressed, level: int, done: bool | None = None) -> list[tuple[int, ...]]:
    return sorted(tuple(int(w) for w in row) for block in of.blocks(level, done) for row in block)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("words", [1, 2, 3, 5])
def test_the_states_are_those_that_were_added(words: int, threads: int) -> None:
    dice = random.Random(f"{words} {threads}")
    kinds = [3000] if words == 1 else [dice.choice((3, 40, 300)) for _ in range(words)]
    known = [[0, (1 << 64) - 1, *(dice.getrandbits(64) for _ in range(kind))] for kind in kinds]
    levels = [{tuple(dice.choice(w) for w in known) for _ in range(dice.choice((1, 500, 6000)))} for _ in range(4)]
    for n, level in enumerate(levels):
        level.difference_update(*levels[:n])
    found = table(words, threads)
    for n, level in enumerate(levels):
        twice = [*level] * 2
        dice.shuffle(twice)
        assert add(found, twice, n, done=n < 3)
        assert found.states_added == sum(map(len, levels[: n + 1]))
    for n, level in enumerate(levels):
        assert held(found, n) == sorted(level)
        assert held(found, n, True) == (sorted(level) if n < 3 else [])
        assert held(found, n, False) == (sorted(level) if n == 3 else [])
    found.team.close()


@pytest.mark.long
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_add_the_same_states_at_once_add_them_once(threads: int) -> None:
    """Every thread brings every state, in the same order, so that they often meet at one place."""
    states = [(n % 61, n % 67, n) for n in range(30_000)]
    rows = np.array(states, dtype=np.uint64)
    for _ in range(3):
        found = table(3, threads)
        assert found.make_room(0, len(rows))
        found.team.share(
            deque((0, len(rows)) for _ in range(threads)),
            partial(found._absorb, lambda _, span: rows[slice(*span)]),  # pyright: ignore[reportPrivateUsage]
        )
        assert found.states_added == len(states)
        assert held(found, 0) == sorted(states)
        found.team.close()


def test_states_that_are_done_stay_done_when_the_table_grows() -> None:
    found = table(2, 1)
    add(found, [(n, 7) for n in range(100)], 0)
    done = {tuple(int(w) for w in row) for row in found.gather(found.team.workers[0], (0, found.buckets // 2), 0)[:30]}
    found.finish(found.team.workers[0], 30)
    add(found, [(n, n) for n in range(3000)], 1)
    assert set(held(found, 0, True)) == done
    assert len(done) == 30
    assert len(held(found, 0, False)) == 70


def test_too_many_words_for_an_entry_are_refused() -> None:
    found = table(4, 1)
    assert add(found, [(n, n, n, n) for n in range(3000)], 0)
    assert not add(found, [(n, n, n, n) for n in range(30_000)], 0)


def test_states_of_more_words_than_an_entry_has_bits_for_are_refused() -> None:
    assert not add(table(10, 1), [(n,) * 10 for n in range(100)], 0)


def test_too_little_memory_is_refused() -> None:
    assert not add(table(2, 1, lambda _: False), [(n, n) for n in range(30_000)], 0)


# Explorations


def answer(found: Exploration) -> Exploration:
    return attrs.evolve(found, seconds=0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """No table grows; the numbers of states at which explorations turned to compressed states."""
    compress, turned = Space._compress, list[int]()  # pyright: ignore[reportPrivateUsage]

    def compresses(self: Space, *parts: object) -> bool:
        done = compress(self, *parts)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        turned.append(self.states_in_memory if done else 0)
        return done

    monkeypatch.setattr(space, "FULLEST", 0.05)
    monkeypatch.setattr(buffers, "FULLEST", 0.05)
    monkeypatch.setattr(space, "WORTH", 1000.0)
    monkeypatch.setattr(Space, "_affords", afford_compressed)
    monkeypatch.setattr(Space, "_compress", compresses)
    return turned


def afford_compressed(self: Space, _: int) -> bool:
    """Nothing else: while there is a table of positions, no larger one."""
    return not self.table.size


def afford_all(_: Space, __: int) -> bool:
    return True


def both(instance: Instance, wanted: tuple[str, ...], turns: list[int], *, symmetry: bool = False) -> None:
    """An exploration in arrays and compressed ones with one worker and three are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "_affords", afford_all)
        whole = answer(native.explore(instance, wanted, symmetry=symmetry))
    assert not turns
    for workers in (1, 3):
        assert answer(native.explore(instance, wanted, symmetry=symmetry, workers=workers)) == whole
        assert 0 < turns.pop() < whole.distinct
        assert not turns


MODELS: list[tuple[Design, dict[str, Value]]] = [
    (two_phase_commit.DESIGN, {"rms": 5}),
    (copies.DESIGN, {"nodes": 3, "length": 2, "terms": 2}),
    (paxos.DESIGN, {}),
]
ROWS = {run.design: (run, outcome) for run, outcome, _ in expected.table() if 1500 < outcome.distinct < 12_000}
"""One row of each design."""


@pytest.mark.long
@pytest.mark.parametrize(("run", "outcome"), sample(ROWS.values(), 4), ids=ROWS)
def test_designs_that_turn_have_their_verdicts_and_counterexamples(
    run: Run, outcome: Outcome, turns: list[int]
) -> None:
    """Each row of the table of what every engine must say, violations and their lengths with it."""
    assert expected.measure(run) == outcome
    assert 0 < turns[0] < outcome.distinct


@pytest.mark.parametrize(("design", "constants"), MODELS)
@pytest.mark.parametrize("symmetry", [False, True])
def test_an_exploration_that_turns_answers_the_same(
    design: Design, constants: dict[str, Value], symmetry: bool, turns: list[int]
) -> None:
    instance = Instance(design, constants)
    wanted = (*(p.name for p in instance.properties if p.kind != "eventually"), DEADLOCK)
    both(instance, wanted, turns, symmetry=symmetry)


@pytest.mark.explores
def test_limits_and_resuming_from_a_checkpoint(turns: list[int], tmp_path: Path) -> None:
    """A compressed exploration is cut in the middle of levels, and goes on in either kind of memory."""
    instance, folder = Instance(copies.DESIGN, {"nodes": 3, "length": 2, "terms": 2}), tmp_path / "kept"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "_affords", afford_all)
        whole = answer(native.explore(instance))
    found = native.explore(instance, (), Limits(max_states=1500), folder=folder, workers=1)
    resumed = 0
    while not found.complete:
        resumed += 1
        limit = Limits(max_states=found.distinct + whole.distinct // 9)
        with pytest.MonkeyPatch.context() as patch:
            if resumed % 3 == 0:
                patch.setattr(Space, "_affords", afford_all)
            found = native.explore(instance, (), limit, folder=folder, resume=True, workers=1 + resumed % 3)
    assert resumed > 4
    assert len(turns) > 3
    assert answer(found) == whole
    assert not folder.exists()


@pytest.mark.parametrize("workers", [1, 3])
def test_what_memory_cannot_hold_compressed_goes_to_files(
    workers: int, turns: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    instance, moved = Instance(paxos.DESIGN), list[int]()
    move_out, settle = Space._move_out, Space._settle_outside  # pyright: ignore[reportPrivateUsage]
    whole = answer(native.explore(instance))
    assert turns

    def moves(self: Space) -> None:
        moved.append(self.states_in_memory)
        move_out(self)

    def little(self: Space, more: int) -> bool:
        return afford_compressed(self, more) and (self.compressed is None or self.states_in_memory < 1500)

    def settles(self: Space, _: int) -> None:
        settle(self, 1 << 22)

    monkeypatch.setattr(space, "LEAST", 0)
    monkeypatch.setattr(space, "BLOCK", 1000)
    monkeypatch.setattr(Space, "_settle_outside", settles)
    monkeypatch.setattr(Space, "_move_out", moves)
    monkeypatch.setattr(Space, "_affords", little)
    assert answer(native.explore(instance, workers=workers, folder=tmp_path / "kept", every=0.1)) == whole
    assert [1500 < n < whole.distinct for n in moved] == [True]
