"""Availability: two ways to one number, and the numbers of the literature."""

from fractions import Fraction

import pytest

from isr_report.availability import (
    at_least_down,
    in_sync_unavailable,
    lost_per_year,
    majority_unavailable,
    no_acks_nearly,
    no_leader_nearly,
    stalled,
    stationary,
)

ONE, TEN = Fraction(1, 100), Fraction(1, 10)
# p, n -> majority, then per minimum of 1, 2, 3: no acks, no leader
KNOWN = {
    (ONE, 3): (2.98e-4, (2.99e-6, 2.99e-6), (2.98e-4, 1.50e-6), (2.97e-2, 1.00e-6)),
    (ONE, 5): (9.85e-6, (4.99e-10, 4.99e-10), (4.97e-8, 2.50e-10), (9.85e-6, 1.66e-10)),
    (TEN, 3): (2.80e-2, (2.885e-3, 2.885e-3), (2.80e-2, 1.47e-3), (2.71e-1, 1.00e-3)),
    (TEN, 5): (8.56e-3, (4.89e-5, 4.89e-5), (4.67e-4, 2.46e-5), (8.56e-3, 1.63e-5)),
}


@pytest.mark.parametrize(("p", "n"), KNOWN)
def test_the_chain_gives_the_known_values(p: Fraction, n: int) -> None:
    majority, *known = KNOWN[p, n]
    assert float(majority_unavailable(n, p)) == pytest.approx(majority, rel=4e-3)
    for minimum, odds in enumerate(known, 1):
        found = in_sync_unavailable(n, minimum, p)
        assert (float(found.no_acks), float(found.no_leader)) == pytest.approx(odds, rel=6e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_where_there_is_an_exact_formula_the_chain_equals_it(n: int) -> None:
    """With a minimum of all replicas, acks=all waits exactly while anybody is down; and chances add up to one."""
    assert in_sync_unavailable(n, n, TEN).no_acks == 1 - (1 - TEN) ** n == at_least_down(n, 1, TEN)
    assert sum(stationary(n, 1, TEN).values()) == 1


@pytest.mark.parametrize(("n", "minimum"), [(3, 1), (3, 2), (3, 3), (5, 1), (5, 2), (5, 3)])
def test_the_formulas_are_near_the_chain_where_failures_are_rare(n: int, minimum: int) -> None:
    found = in_sync_unavailable(n, minimum, ONE)
    assert float(no_acks_nearly(n, minimum, ONE)) == pytest.approx(float(found.no_acks), rel=0.02)
    assert float(no_leader_nearly(n, minimum, ONE)) == pytest.approx(float(found.no_leader), rel=0.02)


def test_an_in_sync_set_of_a_majority_waits_as_a_majority_does_and_stalls_more() -> None:
    assert in_sync_unavailable(3, 2, TEN).no_acks == majority_unavailable(3, TEN)
    assert stalled(3, 12, 9, every_member=True) * 365 * 24 * 3600 == pytest.approx(324)
    assert stalled(3, 12, 3, every_member=False) * 365 * 24 * 3600 == pytest.approx(36)


def test_each_copy_more_divides_the_losses_by_some_thousands() -> None:
    rates = [lost_per_year(copies, 0.04, 1 / 365) for copies in (1, 2, 3)]
    assert rates == pytest.approx([4e-2, 8.8e-6, 1.4e-9], rel=0.03)
