"""The table of expected outcomes: read, measured and written.

`tests/expected.toml` is made by `INSYNC_REWRITE=1 pytest tests/model/test_expected.py` from the list of runs that is
already in it (and the cases of `counterexamples/cases.toml`); with TLA2TOOLS_JAR set, TLC's figures beside ours.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
import pytest
from tests.support.checkers import run_tlc

from isr_check import native
from isr_check.engine import Engine, Exploration, Limits, Verdict
from isr_check.export import write_tla
from isr_designs import DESIGNS
from isr_lang import Design, Instance, Value

EXPECTED = Path(__file__).parents[1] / "expected.toml"
CASES = Path(__file__).parents[2] / "counterexamples" / "cases.toml"

IN_README = "kip-966"
"""The row whose counts the README shows."""

Settings = Mapping[str, Value]


@attrs.frozen
class Run:
    """A design, less some actions, at settings (those not given are the design's defaults)."""

    design: str
    settings: Settings
    without: tuple[str, ...] = ()
    tlc: bool = False

    @property
    def name(self) -> str:
        given = [f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in self.settings.items()]
        return " ".join([self.design, *given, *(f"without={a}" for a in self.without)])

    def chosen(self) -> Design:
        design = DESIGNS[self.design]
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


@attrs.frozen
class TlcOutcome:
    """TLC on the export: its distinct states, and which of the properties it says are violated."""

    distinct: int
    violated: tuple[str, ...]


def measure_tlc(run: Run, folder: Path, generated: int, suspects: tuple[str, ...] = ()) -> TlcOutcome:
    """TLC's verdict on each suspect alone, and on all the rest together, which also gives the count.

    It must generate as many states as we say that there are steps, `generated`.

    What it says is violated among the rest becomes a suspect, and the rest is asked again.
    """
    module, *_ = write_tla(run.chosen(), dict(run.settings), folder)
    names = [p.name for p in run.instance().properties if p.kind in ("always", "step")]
    asked = {p: _asked(folder / f"{module.stem}_{camel(p)}.cfg") for p in names}
    head = (folder / f"{module.stem}_TypeOK.cfg").read_text()
    violated = [p for p in suspects if run_tlc(module, folder / f"{module.stem}_{camel(p)}.cfg").violated]
    rest = folder / "Rest.cfg"
    while True:
        rest.write_text("\n".join([head, *(line for p, line in asked.items() if p not in violated)]))
        report = run_tlc(module, rest)
        if report.violated is None:
            assert report.generated - report.initial == generated, run.name
            return TlcOutcome(report.distinct, tuple(sorted(violated)))
        violated.append(next(p for p in names if camel(p) == report.violated))


def _asked(configuration: Path) -> str:
    """The line of a configuration that names what is checked."""
    lines = configuration.read_text().splitlines()
    return next(line for line in lines if line.startswith(("INVARIANT", "PROPERTY")))


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def table() -> list[tuple[Run, Outcome, TlcOutcome | None]]:
    rows: list[tuple[Run, Outcome, TlcOutcome | None]] = []
    for row in tomllib.loads(EXPECTED.read_text())["run"]:
        run = Run(row["design"], row["settings"], tuple(row.get("without", ())), "tlc" in row)
        said = Outcome(
            row["distinct"],
            row["generated"],
            row["depth"],
            tuple(row["holds"]),
            row["violated"],
            row["reached"],
            tuple(row["vacuous"]),
        )
        tlc_said = TlcOutcome(row["tlc"]["distinct"], tuple(row["tlc"]["violated"])) if "tlc" in row else None
        rows.append((run, said, tlc_said))
    return rows


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
    return str(value) if isinstance(value, int) else f'"{value}"'


HEAD = """\
# What every engine must say: design, less some actions, at settings -> distinct states, transitions, depth (steps of
# the longest shortest path), and per property its verdict, with the length of the shortest counterexample
# or witness. `tlc`: what TLC says of the exported design. Made by tests/support/expected.py; every engine reads it.
"""


def write(rows: list[tuple[Run, Outcome, TlcOutcome | None]]) -> None:
    lines = [HEAD]
    for run, said, tlc_said in rows:
        lines += ["[[run]]", f'design = "{run.design}"', f"settings = {_value(run.settings)}"]
        lines += [f"without = {_value(run.without)}"] * bool(run.without)
        lines += [f"{k} = {_value(v)}" for k, v in attrs.asdict(said, recurse=False).items()]
        if tlc_said is not None:
            lines.append(f"tlc = {_value(attrs.asdict(tlc_said))}")
        lines.append("")
    EXPECTED.write_text("\n".join(lines))


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
