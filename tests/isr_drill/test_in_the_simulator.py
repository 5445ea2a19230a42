"""What a drill calls safe stays in the simulator, and what it says may be lost is lost there by some schedule.

Without this the model of a drill could be of another broker than that which runs. `bench/drill.py` has more of it.
"""

from __future__ import annotations

import attrs
import pytest
from tests.support.drill_cases import Case, drilled, random_case
from tests.support.drill_faults import disks_that_survive
from tests.support.drill_runs import begun, driven_run, judge, random_run, table

from isr_drill.drill import Records

ALL_DISKS = Case(0, "kip-966", 3, (1, 2, 3), 2, unclean=False, flushed=False, past=(), text="destroy 1; destroy 2")
"""Two of three disks, and two had to have the record."""
ONE_DISK = attrs.evolve(ALL_DISKS, text="destroy 1")


@pytest.mark.long
def test_two_disks_of_two_that_count() -> None:
    seen = begun(ALL_DISKS, "seen", (), 1_200).seen()
    answer = drilled(ALL_DISKS, seen).partitions[0]
    assert answer.outcomes[-1].records is Records.MAY_BE_LOST
    assert any(driven_run(ALL_DISKS, seen, answer, early=early, session_ms=9_000) for early in (False, True))


@pytest.mark.long
def test_one_disk_of_two_that_count() -> None:
    """The control: the same judge sees no loss where there is none."""
    seen = begun(ONE_DISK, "seen", (), 1_200).seen()
    assert drilled(ONE_DISK, seen).partitions[0].outcomes[-1].records is Records.SAFE
    assert [random_run(ONE_DISK, number, seen) for number in range(3)] == [""] * 3


@pytest.mark.long
def test_a_drill_that_is_wrong_is_seen() -> None:
    """The planted fault: to a drill a destroyed disk keeps all, so it calls safe what the simulator loses."""
    case = attrs.evolve(ALL_DISKS, text="destroy 1 2 3")
    seen = begun(case, "seen", (), 1_200).seen()
    with disks_that_survive():
        assert drilled(case, seen).partitions[0].outcomes[-1].records is Records.SAFE
    assert random_run(case, 0, seen) != ""


def test_a_seed_is_a_case() -> None:
    assert random_case(5) == random_case(5)
    assert len({str(random_case(seed)) for seed in range(50)}) == 50


@pytest.mark.slow
def test_random_runbooks() -> None:
    found = [judge(seed, safe_runs=2, lost_runs=12) for seed in range(1, 61)]
    assert [str(j) for j in found if j.is_wrong] == [], table(found)
    lost = [j for j in found if j.verdict is Records.MAY_BE_LOST]
    assert len(lost) > 15
    assert sum(j.is_unshown for j in lost) <= 0.05 * len(lost) + 1, table(found)
