"""The table of expected outcomes: read, measured and written.

`INSYNC_REWRITE=1 pytest tests/isr_protocol/test_expected.py` makes `tests/expected.toml` from the list of runs that is
already in it (and the cases of `counterexamples/cases/cases.toml`). `tests/support/confirm.py` writes which engine
confirmed a row, and on which day; a row whose outcome changes loses that.
"""

import datetime
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
import pytest

from insync_cli.families import designs_of_all
from isr_check import native
from isr_check.engine import Engine, Exploration, Limits, Verdict
from isr_lang import Design, Instance, Value

EXPECTED = Path(__file__).parents[1] / "expected.toml"
CASES = Path(__file__).parents[2] / "counterexamples" / "cases" / "cases.toml"

IN_README = "kip-966"
"""The row whose counts the README shows."""

Settings = Mapping[str, Value]


@attrs.frozen
class Run:
    """A design, less some actions, at settings (those not given are the design's defaults)."""

    design: str
    settings: Settings
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        given = [f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in self.settings.items()]
        return " ".join([self.design, *given, *(f"without={a}" for a in self.without)])

    def chosen(self) -> Design:
        design = designs_of_all()[self.design]
        return design.without(*self.without) if self.without else design

    def instance(self) -> Instance:
        return Instance(self.chosen(), self.settings)


@attrs.frozen
class Outcome:
    """What every engine must say of a run. `violated` and `reached`: property -> steps of the shortest path."""

    distinct: int
    generated: int
    depth: int
    holds: tuple[str, ...]
    violated: dict[str, int]
    reached: dict[str, int]
    vacuous: tuple[str, ...]


def measure(run: Run, engine: Engine = native.explore) -> Outcome:
    found = engine(run.instance(), (), Limits(), lambda _: None)
    assert found.complete, run.name
    return outcome(found)


def outcome(found: Exploration) -> Outcome:
    def of(verdict: Verdict, *, sometimes: bool) -> list[tuple[str, int]]:
        return sorted(
            (f.name, len(f.path.steps) if f.path else 0)
            for f in found.findings
            if f.verdict is verdict and f.kind.startswith("sometimes") == sometimes
        )

    return Outcome(
        found.distinct,
        found.generated,
        found.depth,
        tuple(name for name, _ in of(Verdict.HOLDS, sometimes=False)),
        dict(of(Verdict.VIOLATED, sometimes=False)),
        dict(of(Verdict.HOLDS, sometimes=True)),
        tuple(name for name, _ in of(Verdict.VACUOUS, sometimes=True)),
    )


Confirmed = Mapping[str, datetime.date]
"""An engine that is not the native one -> the day on which it said the same of a row."""

Row = tuple[Run, Outcome, Confirmed]


def table(file: Path = EXPECTED) -> list[Row]:
    return [
        (
            Run(row["design"], row["settings"], tuple(row.get("without", ()))),
            Outcome(
                row["distinct"],
                row["generated"],
                row["depth"],
                tuple(row["holds"]),
                row["violated"],
                row["reached"],
                tuple(row["vacuous"]),
            ),
            row["confirmed"],
        )
        for row in tomllib.loads(file.read_text())["run"]
    ]


def case_runs() -> list[Run]:
    """Every case's violation and its fix."""
    runs: list[Run] = []
    for case in tomllib.loads(CASES.read_text())["case"]:
        without = tuple(case.get("without", ()))
        fixed = case["fixed_by"]
        runs.append(Run(case["design"], case["settings"], without))
        runs.append(Run(fixed.get("design", case["design"]), case["settings"] | fixed.get("settings", {}), without))
    return runs


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in pairs.items()) + " }" if pairs else "{}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, cast("tuple[object, ...]", value))) + "]"
    return str(value) if isinstance(value, int | datetime.date) else f'"{value}"'


HEAD = """\
# What every engine must say: design, less some actions, at settings -> distinct states, transitions, depth (steps of
# the longest shortest path), and per property its verdict, with the length of the shortest counterexample
# or witness. The native engine says all this; `confirmed` names the other engines that said the same of this row, and
# when. Made by tests/support/expected.py and tests/support/confirm.py; every engine reads it.
"""


def write(rows: list[Row], file: Path = EXPECTED) -> None:
    lines = [HEAD]
    for run, said, confirmed in rows:
        lines += ["[[run]]", f'design = "{run.design}"', f"settings = {_value(run.settings)}"]
        lines += [f"without = {_value(run.without)}"] * bool(run.without)
        lines += [f"{k} = {_value(v)}" for k, v in attrs.asdict(said, recurse=False).items()]
        lines += [f"confirmed = {_value(dict(sorted(confirmed.items())))}", ""]
    file.write_text("\n".join(lines))


def rewriting() -> bool:
    return os.environ.get("INSYNC_REWRITE", "") not in ("", "0")


def thinned(rows: list[tuple[Run, Outcome]], step: int, most: int | None = None) -> list[object]:
    """The rows as cases of a test: every so many of them always, the others only among the slow tests.

    So are those of more than `most` states, except the one of the README.
    """

    def slow(n: int, run: Run, said: Outcome) -> bool:
        large = most is not None and said.distinct > most and run.name != IN_README
        return bool(n % step) or large

    return [
        pytest.param(run, said, id=run.name, marks=pytest.mark.slow if slow(n, run, said) else ())
        for n, (run, said) in enumerate(rows)
    ]
