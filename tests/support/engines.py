"""Every way in which our engines explore, by name, with what its answers are compared by.

Memory is made to look small by the patches that its own tests use, so that a few dozen states turn to fewer bytes or to
files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import attrs
import pytest
from tests.support.interpreter import Scope, World
from tests.support.unfolded import Answers, behaviour

from isr_check import explorer, native
from isr_check.engine import DEADLOCK, TYPE_OK, Exploration, Limits, Unsound, Verdict
from isr_check.native import buffers, compressed, space
from isr_check.native.space import Space
from isr_lang import Instance

Explore = Callable[[Instance, tuple[str, ...], Limits], Exploration]


@attrs.frozen
class Way:
    """One way to explore. `counts_states`: it sees every state, or says of how many states its orbits are."""

    name: str
    explore: Explore
    counts_states: bool = True
    decides_futures: bool = True


def _affords_no_table(self: Space, _: int) -> bool:
    return not self.table.size


def _affords_nothing(_: Space, __: int) -> bool:
    return False


def in_compressed_memory(instance: Instance, names: tuple[str, ...], limits: Limits) -> Exploration:
    with small_memory(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "_affords", _affords_no_table)
        return native.explore(instance, names, limits, workers=2)


def in_files(instance: Instance, names: tuple[str, ...], limits: Limits) -> Exploration:
    settle = Space._settle_outside  # pyright: ignore[reportPrivateUsage]
    with small_memory(), pytest.MonkeyPatch.context() as patch:

        def settles(self: Space, _: int) -> None:
            for module in (space, buffers):
                patch.setattr(module, "FULLEST", 0.7)
            settle(self, 1 << 19)

        patch.setattr(space, "LEAST", 0)
        patch.setattr(space, "BLOCK", 1000)
        patch.setattr(Space, "_affords", _affords_nothing)
        patch.setattr(Space, "_settle_outside", settles)
        return native.explore(instance, names, limits, workers=2)


@contextmanager
def small_memory() -> Generator[None]:
    """Tables that are full soon, and compressed ones that grow often."""
    sizes = {"SMALLEST": 20, "FEWEST": 4, "PLENTY": 4, "ROWS": 50, "BUCKETS": 64, "FULLEST": 0.75}
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(compressed, name, size)
        for module in (space, buffers):
            patch.setattr(module, "FULLEST", 0.01)
        patch.setattr(space, "WORTH", 1000.0)
        yield


REFERENCE = Way("reference", lambda i, n, limits: explorer.explore(i, n, limits))
WAYS = (
    REFERENCE,
    Way("reference, symmetry", lambda i, n, limits: explorer.explore(i, n, limits, symmetry=True), True, False),
    Way("reference, reduction", lambda i, n, limits: explorer.explore(i, n, limits, reduction=True), False, False),
    Way("native, 1 worker", lambda i, n, limits: native.explore(i, n, limits, workers=1)),
    Way("native, 2 workers", lambda i, n, limits: native.explore(i, n, limits, workers=2)),
    Way("native, symmetry", lambda i, n, limits: native.explore(i, n, limits, workers=2, symmetry=True), True, False),
    Way(
        "native, symmetry and reduction",
        lambda i, n, limits: native.explore(i, n, limits, workers=1, symmetry=True, reduction=True),
        False,
        False,
    ),
    Way("native, fewer bytes", in_compressed_memory, decides_futures=False),
    Way("native, files", in_files),
)


def property_names(instance: Instance, way: Way) -> tuple[str, ...]:
    """What a way is asked: everything that it decides."""
    kinds = [(p.name, p.kind) for p in instance.properties]
    return (TYPE_OK, DEADLOCK, *(name for name, kind in kinds if way.decides_futures or kind != "eventually"))


def differences(instance: Instance, way: Way, world: World, expected: Answers, most: int) -> list[str]:
    """How a way's answers differ from these, a sentence each; none where it refuses, as it may by its contract."""
    try:
        exploration = way.explore(instance, property_names(instance, way), Limits(max_states=most))
    except Unsound:
        return []
    broken = expected.type_ok
    verdicts = _of_everything(exploration, expected, way)
    if broken is not None:
        verdicts = _of_broken_ranges(exploration, expected, broken)
    return [*verdicts, *_of_paths(exploration, instance, world)]


def _of_paths(exploration: Exploration, instance: Instance, world: World) -> Iterator[str]:
    """Counterexamples and witnesses that are none."""
    for finding in exploration.findings:
        if finding.path is None:
            continue
        try:
            states = behaviour(world, instance, finding.path)
        except ValueError as problem:
            yield f"the path of {finding.name}: {problem}"
            continue
        if finding.name in (TYPE_OK, DEADLOCK) or finding.kind == "eventually":
            continue
        old, new = (states[-2], states[-1]) if finding.kind.endswith("step") else (states[-1], states[-1])
        condition = world.design.property_named(finding.name).condition
        if Scope(world, old, new, {}).value(condition) is not finding.kind.startswith("sometimes"):
            yield f"the path of {finding.name} decides nothing"


def _of_everything(exploration: Exploration, expected: Answers, way: Way) -> Iterator[str]:
    if not exploration.complete and len(expected.lengths) < len(exploration.findings):
        yield f"an end before all {expected.states} states were seen: {exploration.stopped or exploration.distinct}"
        return
    for finding in exploration.findings:
        length = expected.lengths.get(finding.name)
        if finding.kind == "eventually":
            if (finding.verdict is Verdict.VIOLATED) is not (finding.name in expected.failing_futures):
                yield f"{finding.name} is {finding.verdict}"
        elif _length(finding.path) != length or finding.verdict is not _verdict(finding.kind, length):
            yield f"{finding.name} is {finding.verdict} in {_length(finding.path)} steps, not {length}"
    if not exploration.complete:
        return
    if way.counts_states:
        states = exploration.states_in_orbits or exploration.distinct
        if (states, exploration.depth) != (expected.states, expected.depth):
            found = f"{states} states to depth {exploration.depth}"
            yield f"{found}, not {expected.states} to depth {expected.depth}"
    if way.counts_states and exploration.states_in_orbits is None and exploration.generated != expected.steps:
        yield f"{exploration.generated} steps, not {expected.steps}"


def _of_broken_ranges(exploration: Exploration, expected: Answers, broken: int) -> Iterator[str]:
    """Where a range is left, the search ends with that level, and what is undecided then is UNKNOWN."""
    for finding in exploration.findings:
        length, own = expected.lengths.get(finding.name), _length(finding.path)
        length = None if length is not None and length > broken else length
        verdict = Verdict.UNKNOWN if length is None else _verdict(finding.kind, length)
        if (finding.verdict, own) != (verdict, length):
            yield f"{finding.name} is {finding.verdict} in {own} steps, not {verdict} in {length}"


def _length(path: object) -> int | None:
    steps = getattr(path, "steps", None)
    return None if steps is None else len(steps)


def _verdict(kind: str, length: int | None) -> Verdict:
    """Of a property that was decided in so many steps, or not at all."""
    if kind.startswith("sometimes"):
        return Verdict.VACUOUS if length is None else Verdict.HOLDS
    return Verdict.HOLDS if length is None else Verdict.VIOLATED
