"""Every engine says of every run what the table says.

Without it an engine could lose states, or a change of the model a promise of some design, and nobody would see which.
"""

import os
from pathlib import Path

import attrs
import pytest
from tests.support.expected import (
    EXPECTED,
    Outcome,
    Run,
    TlcOutcome,
    case_runs,
    measure,
    measure_tlc,
    rewriting,
    table,
    thinned,
    write,
)

from isr_check import explorer
from isr_designs import DESIGNS

pytestmark = pytest.mark.explores

# Two replicas and one fault each: small enough for TLC and for the reference engine.
SMALL = {"replicas": 2, "log": 1, "records": 1, "epochs": 1, "isr_changes": 2, "crashes": 1}
CHECKED_BY_TLC = (
    Run("kafka-0.8", SMALL | {"unnoticed": 0, "unclean": True}, tlc=True),
    Run("zookeeper", SMALL | {"unnoticed": 1}, tlc=True),
    Run("kip-101", {"replicas": 2, "log": 2, "records": 3, "epochs": 2, "isr_changes": 2, "crashes": 0}, tlc=True),
    Run("kip-279", SMALL | {"log": 2, "records": 2}, tlc=True),
    Run("kip-320-first-try", SMALL, tlc=True),
    Run("kip-320", SMALL | {"epochs": 2}, tlc=True),
    Run("kip-497", SMALL, tlc=True),
    Run("kip-841", SMALL | {"crashes": 0, "lossy_crashes": 1}, tlc=True),
    Run("kraft-3.5", SMALL | {"crashes": 0, "lossy_crashes": 1}, tlc=True),
    Run("kip-966", SMALL | {"min_insync": 2}, tlc=True),
    Run("kip-966", {"replicas": 2, "crashes": 0, "consumers": 1, "follower_reads": True, "shutdowns": 1}, tlc=True),
    Run("kip-966", {"replicas": 2, "crashes": 0, "lossy_crashes": 1, "min_insync": 1, "unclean": True}, tlc=True),
    Run("majority", {"replicas": 3, "crashes": 1}, tlc=False),
)
REFERENCE_STATES, SMALL_STATES, LARGE = 25_000, 8_000, 1_000_000
ROWS = table() if EXPECTED.exists() else []


def runs() -> list[Run]:
    """What the table is about: every design at its defaults, every case and its fix, and what TLC has checked."""
    listed = [*CHECKED_BY_TLC, *(Run(name, {}) for name in DESIGNS), *case_runs()]
    return list({run.name: run for run in reversed(listed)}.values())[::-1]


@pytest.mark.timeout(3600)  # with TLC
@pytest.mark.skipif(not rewriting(), reason="only INSYNC_REWRITE=1 rewrites the table")
def test_rewrite_the_table(tmp_path: Path) -> None:
    known = {run.name: tlc_said for run, _, tlc_said in ROWS}
    rows: list[tuple[Run, Outcome, TlcOutcome | None]] = []
    for run in runs():
        said, tlc_said = measure(run), known.get(run.name)
        if run.tlc and os.environ.get("TLA2TOOLS_JAR"):
            tlc_said = measure_tlc(run, tmp_path / str(len(rows)), said.generated, tuple(said.violated))
        rows.append((run, said, tlc_said))
    write(rows)


def test_the_table_is_about_every_design_case_and_fix() -> None:
    assert [run.name for run, _, _ in ROWS] == [run.name for run in runs()]


@pytest.mark.parametrize(("run", "said"), thinned([(r, o) for r, o, _ in ROWS], 1, LARGE))
def test_native_exploration_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run) == said


@pytest.mark.parametrize(
    ("run", "said"), thinned([(r, o) for r, o, _ in ROWS if o.distinct <= REFERENCE_STATES], 3, SMALL_STATES)
)
def test_the_reference_engine_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run, explorer.explore) == said


@pytest.mark.parametrize(("run", "said", "tlc_said"), [pytest.param(*row, id=row[0].name) for row in ROWS if row[2]])
def test_tlc_was_recorded_with_our_counts_and_verdicts(run: Run, said: Outcome, tlc_said: TlcOutcome) -> None:
    assert tlc_said == TlcOutcome(said.distinct, tuple(sorted(said.violated)))


@pytest.mark.tlc
@pytest.mark.parametrize(("run", "said", "tlc_said"), [pytest.param(*row, id=row[0].name) for row in ROWS if row[2]])
def test_tlc_says_what_is_recorded(run: Run, said: Outcome, tlc_said: TlcOutcome, tmp_path: Path) -> None:
    assert measure_tlc(run, tmp_path, said.generated, tlc_said.violated) == tlc_said


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_fails_at_its_defaults_where_it_says_so_and_nowhere_else(name: str) -> None:
    said = next(o for r, o, _ in ROWS if r.name == name)
    assert set(said.violated) == set(DESIGNS[name].expected)


def test_a_planted_difference_is_noticed() -> None:
    run, said, _ = min(ROWS, key=lambda row: row[1].distinct)
    assert measure(run) != attrs.evolve(said, distinct=said.distinct + 1)
