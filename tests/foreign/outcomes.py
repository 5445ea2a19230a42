"""What the tests of a suite came to, held against what is expected of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override

EXPECTED: Final = Path(__file__).parent / "expected.toml"


class State(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@attrs.frozen
class Outcome:
    """One test of a suite; `why` is the last that a failed one said."""

    test: str
    state: State
    why: str = ""


@attrs.frozen(kw_only=True)
class Expected:
    """What is known of a suite, reason by test. An entry is for the tests below it, too (`TestX` for `TestX/one`).

    - `fails`: fails against our broker. If it passes, that is told.
    - `may_fail`: fails at times, because of what it measures and not of what it is answered.
    - `left_out`: not run at all, and counted as skipped.
    """

    fails: Mapping[str, str] = attrs.field(factory=dict[str, str])
    may_fail: Mapping[str, str] = attrs.field(factory=dict[str, str])
    left_out: Mapping[str, str] = attrs.field(factory=dict[str, str])


@attrs.frozen(kw_only=True)
class Judged:
    """A suite's row of the table, and what a person has to look at. `missing` says why it was not run."""

    suite: str
    passed: int = 0
    expected: int = 0
    skipped: int = 0
    unexpected: tuple[Outcome, ...] = ()
    better: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    missing: str = ""


def read_expected(path: Path = EXPECTED) -> dict[str, Expected]:
    """The lists of all suites; a key that means nothing is an error."""
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(
        Expected,
        make_dict_structure_fn(
            Expected, converter, may_fail=override(rename="may-fail"), left_out=override(rename="left-out")
        ),
    )
    return converter.structure(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, Expected])


def entry_for(test: str, entries: Iterable[str]) -> str | None:
    """The entry that a test falls under."""
    return next((e for e in entries if test == e or test.startswith(f"{e}/")), None)


def judge(suite: str, outcomes: Sequence[Outcome], expected: Expected, only: Sequence[str] = ()) -> Judged:
    """Hold outcomes to what is expected; `only` if no others were to be run. A suite without a test was not run."""
    failed = {o.test for o in outcomes if o.state is State.FAILED}
    forgiven = {test for test in failed if entry_for(test, [*expected.fails, *expected.may_fail]) is not None}
    seen = {entry_for(o.test, expected.fails) for o in outcomes if o.state is State.FAILED}
    run = {entry_for(o.test, expected.fails) for o in outcomes if o.state is not State.SKIPPED}
    named = [e for e in expected.fails if not only or entry_for(e, only) is not None]
    if all(o.state is State.SKIPPED for o in outcomes):
        return Judged(suite=suite, missing="no test of it was run")
    return Judged(
        suite=suite,
        passed=sum(o.state is State.PASSED for o in outcomes),
        expected=len(forgiven),
        skipped=sum(o.state is State.SKIPPED for o in outcomes) + (0 if only else len(expected.left_out)),
        unexpected=tuple(o for o in outcomes if o.test in failed - forgiven),
        better=tuple(e for e in named if e in run and e not in seen),
        absent=tuple(e for e in named if e not in run),
    )


def table(rows: Sequence[Judged]) -> str:
    """One line for each suite, and below it what is not as expected."""
    head = ("suite", "passed", "failed as expected", "skipped", "failed")
    lines = [head, *((r.suite, *(map(str, _counts(r)) if not r.missing else ("not run",))) for r in rows)]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(head))]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip() for line in lines]
    return "\n".join([*told, *(note for row in rows for note in _notes(row))])


def _counts(row: Judged) -> tuple[int, int, int, int]:
    return row.passed, row.expected, row.skipped, len(row.unexpected)


def _notes(row: Judged) -> list[str]:
    notes = [f"{row.suite}: not run: {row.missing}"] if row.missing else []
    notes += [f"{row.suite}: {o.test} failed, unexpectedly: {o.why or 'it does not say why'}" for o in row.unexpected]
    notes += [f"{row.suite}: {t} passed, though it is expected to fail: take it from the list" for t in row.better]
    return notes + [f"{row.suite}: {t} is expected to fail, and was not run" for t in row.absent]
