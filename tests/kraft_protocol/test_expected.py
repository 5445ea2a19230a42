"""Every engine says of every run of the quorum what the table says.

Without it a change of the model could lose a promise, or an engine states, and nobody would see which.
"""

from pathlib import Path

import attrs
import pytest
from tests.support import confirm
from tests.support.expected import Outcome, Row, Run, measure, rewriting, table, write

from isr_check import explorer
from kraft_protocol.by_name import DESIGNS

pytestmark = pytest.mark.explores

EXPECTED = Path(__file__).with_name("expected.toml")
TWO = {"voters": 2, "epochs": 2, "log": 2, "writes": 1, "restarts": 0, "lost_disks": 0}
CHANGE = TWO | {"log": 3, "writes": 0, "changes": 1}
RUNS = (
    *(Run(name, TWO) for name in DESIGNS),
    Run("kraft", TWO | {"restarts": 1}),
    Run("kraft", TWO | {"lost_disks": 1}),
    Run("kraft-3.9", TWO | {"restarts": 1}),
    *(Run(name, TWO | {"restarts": 1}) for name in ("kafka-10533", "kraft-vote-not-flushed")),
    Run("kafka-12460", TWO | {"lost_disks": 1}),
    Run("kraft", TWO | {"dynamic": True}),
    Run("kraft-853", CHANGE),
    Run("kraft-853", CHANGE | {"joiners": 1}),
    Run("kraft-853", CHANGE | {"restarts": 1}),
    Run("kraft", TWO | {"snapshots": 1}),
    Run("kraft-853", CHANGE | {"snapshots": 1}),
    Run("kraft-waiting-fetches", TWO | {"restarts": 1}),
    Run("kraft-late-requests", TWO | {"epochs": 1, "log": 1, "writes": 0, "restarts": 1}),
    Run("kraft-formatted-alone", TWO | {"lost_disks": 1}),
    Run("kraft-version-upgrade", CHANGE),
)
"""Every design with two voters, and where it needs a fault or a change, with that; small enough for every engine."""
OTHERS = {"kraft", "kafka-10533", "kraft-waiting-fetches", "kraft-late-requests"}
"""The designs of which TLC is asked, too: today's, one that fails, and two with steps made of two actions."""
ROWS = table(EXPECTED) if EXPECTED.exists() else []
CASES = [pytest.param(run, said, id=run.name) for run, said, _ in ROWS]
OF_OTHERS = [pytest.param(run, said, id=run.name) for run, said, _ in ROWS if run.design in OTHERS]


@pytest.mark.skipif(not rewriting(), reason="only INSYNC_REWRITE=1 rewrites the table")
def test_rewrite_the_table() -> None:
    rows: list[Row] = [(run, measure(run), {}) for run in RUNS]
    write(rows, EXPECTED)


def test_the_table_is_about_every_design() -> None:
    assert [run.name for run, _, _ in ROWS] == [run.name for run in RUNS]


@pytest.mark.parametrize(("run", "said"), CASES)
def test_native_exploration_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run) == said


@pytest.mark.slow
@pytest.mark.parametrize(("run", "said"), CASES)
def test_the_reference_engine_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run, explorer.explore) == said


@pytest.mark.tlc
@pytest.mark.parametrize(("run", "said"), OF_OTHERS)
def test_tlc_says_what_is_expected(run: Run, said: Outcome, tmp_path: Path) -> None:
    confirm.tlc_agrees(run, said, tmp_path)


def test_a_planted_difference_is_noticed() -> None:
    run, said, _ = min(ROWS, key=lambda row: row[1].distinct)
    assert measure(run) != attrs.evolve(said, distinct=said.distinct + 1)


def test_with_voter_sets_in_the_log_that_never_change_nothing_else_happens() -> None:
    said = {run.name: outcome for run, outcome, _ in ROWS}
    static, dynamic = Run("kraft", TWO), Run("kraft", TWO | {"dynamic": True})
    assert said[static.name] == said[dynamic.name]
