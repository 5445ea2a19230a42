"""Every engine says of every run what the table says.

Without it an engine could lose states, or a change of the model a promise of some design, and nobody would see which.
"""

import datetime
from pathlib import Path

import attrs
import pytest
from tests.support import confirm
from tests.support.expected import (
    EXPECTED,
    Confirmed,
    Outcome,
    Row,
    Run,
    case_runs,
    measure,
    rewriting,
    table,
    thinned,
    write,
)

from isr_check import explorer
from isr_protocol.by_name import DESIGNS

pytestmark = pytest.mark.explores

# Small enough for every engine.
SMALL = {"replicas": 2, "log": 1, "records": 1, "epochs": 1, "isr_changes": 2, "crashes": 1}
SMALL_RUNS = (
    Run("kafka-0.8", SMALL | {"unnoticed": 0, "unclean": True}),
    Run("zookeeper", SMALL | {"unnoticed": 1}),
    Run("kip-101", {"replicas": 2, "log": 2, "records": 3, "epochs": 2, "isr_changes": 2, "crashes": 0}),
    Run("kip-279", SMALL | {"log": 2, "records": 2}),
    Run("kip-320-first-try", SMALL),
    Run("kip-320", SMALL | {"epochs": 2}),
    Run("kip-497", SMALL),
    Run("kip-841", SMALL | {"crashes": 0, "lossy_crashes": 1}),
    Run("kraft-3.5", SMALL | {"crashes": 0, "lossy_crashes": 1}),
    Run("kip-966", SMALL | {"min_insync": 2}),
    Run("kip-966", {"replicas": 2, "crashes": 0, "consumers": 1, "follower_reads": True, "shutdowns": 1}),
    Run("kip-966", {"replicas": 2, "crashes": 0, "lossy_crashes": 1, "min_insync": 1, "unclean": True}),
    Run("majority", {"replicas": 3, "crashes": 1}),
)
PROPOSED_RUNS = (
    Run("kafka-0.8", {"acks": "0"}),
    Run("kafka-0.8", {"acks": "1"}),
    *(
        Run("zookeeper", {"epochs": 2, "isr_changes": 3, "unnoticed": 0, "unclean": True, "min_insync": least})
        for least in (1, 2)
    ),
    Run("kip-966", SMALL | {"epochs": 2, "isr_changes": 5, "crashes": 0, "lossy_crashes": 2, "min_insync": 2}),
    Run("recovery-manual", SMALL | {"epochs": 2, "isr_changes": 5, "crashes": 0, "lossy_crashes": 2}),
    Run("recovery-balanced", SMALL | {"epochs": 2, "isr_changes": 5, "crashes": 0, "lossy_crashes": 2}),
    Run(
        "jepsen-bounded-struck",
        SMALL | {"epochs": 2, "isr_changes": 4, "crashes": 0, "lossy_crashes": 1, "sessions_lost": 1},
    ),
)
"""What docs/proposed.md and docs/unclean-recovery.md compare beside the cases."""
PROMISE_RUNS = (
    Run(
        "kip-966",
        {"replicas": 3, "crashes": 0, "sessions_lost": 2, "min_insync": 3},
        ("leader_proposes_shrink", "leader_proposes_expansion", "controller_moves_leadership"),
    ),
    Run(
        "kip-966",
        SMALL | {"epochs": 2, "isr_changes": 3, "crashes": 0, "sessions_lost": 1, "unclean": True, "min_insync": 1},
    ),
)
"""Where a promise says what no other does: an ELR beside a live ISR; what is kept since an unclean election."""
TINY = {"replicas": 2, "log": 1, "records": 1, "epochs": 1, "isr_changes": 2}
"""Of each design whose other rows are large, one for TLC and rumur; what is not given is its own."""
ONCE = TINY | {"isr_changes": 1}
CALM = ONCE | {"epochs": 0}
TINY_RUNS = (
    *(
        Run(name, TINY)
        for name in (
            "majority",
            "jepsen-bounded-isr",
            "jepsen-halt",
            "recovery-manual",
            "recovery-aggressive",
            "kip-320-joins-at-watermark",
            "kafka-7164",
            "kafka-keeps-positions",
            "kafka-resets-positions",
            "kafka-resets-skipped",
            "kafka-removed-replica",
            "elr-of-replicas",
            "proposal-kept",
        )
    ),
    *(
        Run(name, TINY | {"crashes": 0})
        for name in ("recovery-balanced", "recovery-asks-all", "kip-966-within-envelope")
    ),
    *(
        Run(name, TINY | {"sessions_lost": 1})
        for name in ("kafka-overtaken-request", "refusal-in-new-version", "request-expires")
    ),
    *(Run(name, ONCE) for name in ("kafka-16952", "kafka-18635", "clean-shutdown-kept")),
    *(Run(name, CALM) for name in ("kafka-16757", "registration-amended", "kafka-16297", "assignment-reverted")),
    *(
        Run(name, ONCE | {"sessions_lost": 1})
        for name in ("minimum-in-new-version", "kafka-cleared-elr", "elr-kept-below-minimum")
    ),
    *(Run(name, ONCE | {"records": 2}) for name in ("kafka-13141", "kafka-14704")),
    *(Run(name, CALM | {"sessions_lost": 1}) for name in ("kafka-raised-min-insync", "configuration-first")),
    *(Run(name, TINY | {"replicas": 3, "epochs": 0}) for name in ("kafka-15665", "reassigned-by-added")),
    Run("kafka-19975", TINY | {"replicas": 3, "epochs": 0, "isr_changes": 3}),
    Run("kafka-19522", TINY | {"sessions_lost": 0}),
    *(
        Run(name, TINY | {"sessions_lost": 0, "reassignments": 1})
        for name in ("kafka-4.4", "kafka-4.4-mended", "kafka-4.2", "kafka-4.0", "kafka-4.4-no-elr")
    ),
    Run("kip-497-no-partition-epoch", TINY | {"epochs": 0}),
    Run("kafka-7415", TINY | {"log": 2, "records": 2, "epochs": 2}),
)
REFERENCE_STATES, SMALL_STATES, LARGE = 25_000, 8_000, 1_000_000
ROWS = table() if EXPECTED.exists() else []


def runs() -> list[Run]:
    """What the table is about: every design at its defaults, every case and its fix, and what TLC has checked."""
    listed = [
        *SMALL_RUNS,
        *(Run(name, {}) for name in DESIGNS),
        *case_runs(),
        *PROPOSED_RUNS,
        *PROMISE_RUNS,
        *TINY_RUNS,
    ]
    return list({run.name: run for run in reversed(listed)}.values())[::-1]


@pytest.mark.skipif(not rewriting(), reason="only INSYNC_REWRITE=1 rewrites the table")
def test_rewrite_the_table() -> None:
    known = {run.name: (said, confirmed) for run, said, confirmed in ROWS}
    unknown: tuple[None, Confirmed] = (None, {})
    rows: list[Row] = []
    for run in runs():
        said = measure(run)
        before, confirmed = known.get(run.name, unknown)
        rows.append((run, said, confirmed if said == before else {}))
    write(rows)


def test_the_table_is_about_every_design_case_and_fix() -> None:
    assert [run.name for run, _, _ in ROWS] == [run.name for run in runs()]


CASES_AND_DEFAULTS = {run.name for run in (*case_runs(), *(Run(name, {}) for name in DESIGNS))}
"""What a README or a design says; of the rest, which stands in the table for other engines, fewer say the same."""


@pytest.mark.parametrize(
    ("run", "said"),
    [
        *thinned([(r, o) for r, o, _ in ROWS if r.name in CASES_AND_DEFAULTS], 3, LARGE),
        *thinned([(r, o) for r, o, _ in ROWS if r.name not in CASES_AND_DEFAULTS], 6, LARGE),
    ],
)
def test_native_exploration_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run) == said


@pytest.mark.parametrize(
    ("run", "said"), thinned([(r, o) for r, o, _ in ROWS if o.distinct <= REFERENCE_STATES], 12, SMALL_STATES)
)
def test_the_reference_engine_says_what_is_expected(run: Run, said: Outcome) -> None:
    assert measure(run, explorer.explore) == said


TLC_ROWS = [(run, said) for run, said, _ in ROWS if run.name in {small.name for small in SMALL_RUNS}]


@pytest.mark.tlc
@pytest.mark.parametrize(("run", "said"), thinned(TLC_ROWS, 4))
def test_tlc_says_what_is_expected(run: Run, said: Outcome, tmp_path: Path) -> None:
    confirm.tlc_agrees(run, said, tmp_path)


def test_every_row_names_who_confirmed_it_and_when() -> None:
    """A row that only the engine which made it has seen would be that engine's word for itself."""
    for run, said, confirmed in ROWS:
        named = {name for name, engine in confirm.ENGINES.items() if said.distinct <= engine.always}
        assert confirmed.keys() >= named, f"{run.name}: ask {named - confirmed.keys()} (tests/support/confirm.py)"
    asked = [run.name for run, _ in TLC_ROWS]
    assert all("tlc" in confirmed for run, _, confirmed in ROWS if run.name in asked)


@pytest.mark.parametrize("engine", ["tlc", "rumur", "reference"])
def test_every_design_has_a_row_that_others_confirmed(engine: str) -> None:
    asked = {run.design for run, _, confirmed in ROWS if engine in confirmed}
    assert not DESIGNS.keys() - asked


def test_a_difference_takes_the_engines_name_from_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[list[Row]]()

    def noted(rows: list[Row]) -> None:
        written.append(list(rows))

    monkeypatch.setattr(confirm, "write", noted)
    run, said, _ = min(ROWS, key=lambda row: row[1].distinct)
    day = datetime.date(2026, 11, 22)
    rows: list[Row] = [(run, said, {}), (run, attrs.evolve(said, distinct=said.distinct + 1), {})]
    assert confirm.confirm(rows, ["reference"], day) == 1
    assert [confirmed for _, _, confirmed in written[-1]] == [{"reference": day}, {}]


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_fails_at_its_defaults_where_it_says_so_and_nowhere_else(name: str) -> None:
    said = next(o for r, o, _ in ROWS if r.name == name)
    assert set(said.violated) == set(DESIGNS[name].expected)


def test_a_planted_difference_is_noticed() -> None:
    run, said, _ = min(ROWS, key=lambda row: row[1].distinct)
    assert measure(run) != attrs.evolve(said, distinct=said.distinct + 1)
