"""The runs of `bench/damage.py` can fail: with a planted bug they report a loss, and without it they do not.

Without these, damage to files of real processes could lose records while fifty runs of it say that all is well.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from tests.support.damage_kinds import DAMAGES, KINDS
from tests.support.damage_runs import Outcome, Run, perform, table

from isr_sim.damage import Damage

OUTCOME = Outcome(
    kind="segment: cut",
    seed=1,
    story="",
    acknowledged=1_000,
    found=1_000,
    missing=0,
    foreign=0,
    refusals=("a line",),
    failures=(),
    seconds=1.0,
)


def test_there_are_fifty_kinds_and_each_file_is_damaged_in_each_way_that_there_is() -> None:
    assert len(KINDS) >= 50
    assert {kind.row for kind in DAMAGES.values()} >= {"segment", "metadata.log", "meta.properties"}
    assert {"metadata.log: older", "segment: a flipped bit"} <= set(KINDS)


def test_a_loss_stands_in_the_table_and_makes_its_run_bad() -> None:
    lost = attrs.evolve(OUTCOME, found=999, missing=1, refusals=(), failures=("1 records lost",))
    assert (OUTCOME.good, lost.good) == (True, False)
    last = table([OUTCOME, lost], {OUTCOME.kind: "segment"}).splitlines()[-1]
    assert last == "| all | 2 | 2,000 | 1,999 | 1 | 1 | 1 |"
    assert "FAILED: 1 records lost" in str(lost)


@pytest.mark.sockets
def test_a_refusal_that_does_not_name_the_file_is_a_failure(tmp_path: Path) -> None:
    run = Run("segment: cut", 1, tmp_path)
    (folder := run.data(1)).mkdir()
    (folder / "some.log").write_bytes(bytes(100))
    run.spoils(1, "some.log", Damage.SHORTER)
    run.refuses("broker 1: some.log is cut")
    assert (len(run.refusals), run.failures) == (1, [])
    run.refuses("broker 1: something is cut")
    assert len(run.failures) == 1
    run.repairs()
    assert (folder / "some.log").read_bytes() == bytes(100)


@pytest.mark.processes
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "kind"),
    [
        ("keeps-elr-at-new-minimum", "default minimum lowered"),
        ("trusts-log-start", "log-start-offset-checkpoint: a flipped bit"),
    ],
)
def test_a_planted_bug_is_a_loss_and_without_it_there_is_none(tmp_path: Path, design: str, kind: str) -> None:
    bad = perform(kind, KINDS[kind], 1, tmp_path / "bad", design)
    assert bad.missing > 0
    assert not bad.good
    assert perform(kind, KINDS[kind], 1, tmp_path / "good").good
