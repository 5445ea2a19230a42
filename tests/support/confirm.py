"""Other engines asked about the rows of the table, and the day written beside each row that they confirm.

    TLA2TOOLS_JAR=... python -m tests.support.confirm [ENGINE ...]

An engine is asked about every row that is not too large for it and that it has not confirmed yet, small rows first. If
it says anything else, that is printed, the row loses the engine's name, and the exit code is 1. Each engine checks what
it can express:

- `reference`, the evaluator in Python, and `spark` say all of a row: counts, depth, verdicts, lengths of paths;
- `tlc`, on the exported TLA+: distinct states, states generated, and which invariants and step properties are violated;
- `rumur`, on the exported Murphi: distinct states, rules fired, which invariants are violated, which probes are met.
"""

import datetime
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import attrs
from tests.support import checkers
from tests.support.expected import Confirmed, Outcome, Row, Run, measure, outcome, table, write
from tests.support.sparks import spark

from isr_check import explorer
from isr_check.export import write_tla
from isr_pipeline.explore import explore as explore_on_spark

STEPWISE = ("always", "step")
"""The kinds of properties of which TLC says whether they are violated."""


def reference_agrees(run: Run, said: Outcome, _folder: Path) -> None:
    assert measure(run, explorer.explore) == said


def spark_agrees(run: Run, said: Outcome, folder: Path) -> None:
    spark()
    assert outcome(explore_on_spark(run.instance(), partitions=2, folder=folder)) == said


def tlc_agrees(run: Run, said: Outcome, folder: Path) -> None:
    """TLC violates each property that the row calls violated, asked alone, and none of the others together."""
    checkers.tlc_jar()  # without it nothing need be written
    module, *_ = write_tla(run.chosen(), dict(run.settings), folder)
    names = [p.name for p in run.instance().properties if p.kind in STEPWISE]
    asked = {p: _asked(folder / f"{module.stem}_{camel(p)}.cfg") for p in names}
    head = (folder / f"{module.stem}_TypeOK.cfg").read_text()
    for name in said.violated:
        assert checkers.run_tlc(module, folder / f"{module.stem}_{camel(name)}.cfg").violated == camel(name), name
    rest = folder / "Rest.cfg"
    rest.write_text("\n".join([head, *(line for name, line in asked.items() if name not in said.violated)]))
    report = checkers.run_tlc(module, rest)
    assert report.violated is None
    assert (report.distinct, report.generated - report.initial) == (said.distinct, said.generated)


def _asked(configuration: Path) -> str:
    """The line of a configuration that names what is checked."""
    lines = configuration.read_text().splitlines()
    return next(line for line in lines if line.startswith(("INVARIANT", "PROPERTY")))


def camel(name: str) -> str:
    """The name of a property in the exported module."""
    return "".join(part.capitalize() for part in name.split("-"))


def rumur_agrees(run: Run, said: Outcome, folder: Path) -> None:
    """rumur violates each invariant that the row calls violated, asked alone, and none of the others together."""
    instance = run.instance()
    for p in instance.properties:
        if p.kind == "always" and p.name in said.violated:
            assert checkers.rumur(instance, folder, (p.name,)).failed == p.name
    report = checkers.rumur(instance, folder, tuple(p.name for p in instance.properties if p.name not in said.violated))
    assert report.failed is None
    assert (report.distinct, report.fired) == (said.distinct, said.generated)
    assert {name: n > 0 for name, n in report.covered.items()} == {
        name: name in said.reached for name in report.covered
    }


@attrs.frozen
class Confirming:
    """How an engine is asked, and about which rows."""

    agrees: Callable[[Run, Outcome, Path], None]
    """AssertionError if it says anything else; the folder is its own."""
    most: int
    """It is asked about rows of at most so many distinct states."""
    always: int = 0
    """Rows of at most so many distinct states must have its name."""


ENGINES: Mapping[str, Confirming] = MappingProxyType(
    {
        "reference": Confirming(reference_agrees, 100_000, always=100_000),
        "tlc": Confirming(tlc_agrees, 100_000),
        "rumur": Confirming(rumur_agrees, 100_000, always=15_000),
        "spark": Confirming(spark_agrees, 5_000_000),
    }
)


def confirm(rows: Iterable[Row], engines: Iterable[str], day: datetime.date) -> int:
    """How many answers differed. The table is written after each answer, so that what was confirmed is not lost."""
    rows, differed = list(rows), 0
    for engine in engines:
        asked = ENGINES[engine]
        for n in sorted(range(len(rows)), key=lambda n: rows[n][1].distinct):
            run, said, confirmed = rows[n]
            if said.distinct > asked.most or engine in confirmed:
                continue
            with TemporaryDirectory() as folder:
                kept: Confirmed = {k: v for k, v in confirmed.items() if k != engine}
                try:
                    asked.agrees(run, said, Path(folder))
                except AssertionError as problem:
                    differed += 1
                    print(f"{engine} differs: {run.name}: {problem}", flush=True)
                else:
                    print(f"{engine} confirms: {run.name}", flush=True)
                    kept = {**kept, engine: day}
            rows[n] = (run, said, kept)
            write(rows)
    return differed


if __name__ == "__main__":
    sys.exit(bool(confirm(table(), sys.argv[1:] or ENGINES, datetime.datetime.now(datetime.UTC).date())))
