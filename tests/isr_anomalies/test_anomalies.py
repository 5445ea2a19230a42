"""Every anomaly has a planted history with exactly that anomaly and what follows from it, and a near miss without."""

from collections.abc import Callable

import pytest
from tests.support.histories import P, Story, judged, with_word
from tests.support.planted_anomalies import ALLOWED, NEAR_MISSES, PERMITTED, PLANTED

from isr_anomalies import ANOMALIES
from isr_anomalies.results import Finding, Tally


@pytest.mark.parametrize(("name", "story", "implied"), PLANTED, ids=[case[0] for case in PLANTED])
def test_a_planted_anomaly_is_found_with_what_it_implies(
    name: str, story: Callable[[], Story], implied: set[str]
) -> None:
    assert with_word(judged(story().lines), "VIOLATED") == {name, *implied}


@pytest.mark.parametrize(("name", "story", "violated"), PERMITTED)
def test_what_the_claims_allow_is_found_and_no_error(name: str, story: Callable[[], Story], violated: set[str]) -> None:
    answer = judged(story().lines)
    assert name in with_word(answer, "PERMITTED")
    assert with_word(answer, "VIOLATED") == violated


@pytest.mark.parametrize(("name", "story"), NEAR_MISSES)
def test_a_near_miss_is_clean(name: str, story: Callable[[], Story]) -> None:
    answer = judged(story().lines)
    assert not with_word(answer, "VIOLATED")
    assert name in ALLOWED or name not in with_word(answer, "PERMITTED")


def test_of_many_findings_the_least_are_kept_in_any_order() -> None:
    found = [Finding(n % 2 == 0, (100 - n,), P, "", n) for n in range(40)]
    one, two, together = Tally(), Tally(), Tally()
    for n, finding in enumerate(found):
        (one if n % 3 else two).add(finding)
        together.add(finding)
    two.merge(one)
    assert two == together
    assert (together.finding_count, together.forbidden, together.largest) == (40, 20, 39)
    assert together.least == sorted(found, key=Finding.rank)[:8]


def test_all_29_are_planted_and_nearly_missed() -> None:
    names = {anomaly.name for anomaly in ANOMALIES}
    assert len(names) == len(ANOMALIES) == 29
    assert [anomaly.number for anomaly in ANOMALIES] == list(range(1, 30))
    assert {case[0] for case in (*PLANTED, *PERMITTED)} == names
    assert {case[0] for case in NEAR_MISSES} == names


@pytest.mark.parametrize(("name", "story", "implied"), PLANTED, ids=[case[0] for case in PLANTED])
def test_the_least_witness_quotes_lines_that_exist(name: str, story: Callable[[], Story], implied: set[str]) -> None:
    lines = story().lines
    [found] = [judgement for judgement in judged(lines).judgements if judgement.name == name]
    least = found.witnesses[0]
    assert least.lines
    assert all(1 <= line <= len(lines) for line in least.lines)
    assert least.rank() == min(witness.rank() for witness in found.witnesses)
