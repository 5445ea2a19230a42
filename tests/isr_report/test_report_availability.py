"""Availability: two ways to one number, and the numbers of the literature."""

from fractions import Fraction

import pytest

from isr_report.availability import (
    Controller,
    Goes,
    at_least_down,
    best_minimum,
    either,
    in_sync_unavailable,
    lost_per_year,
    majority_unavailable,
    no_acks_nearly,
    no_leader_nearly,
    record_gone,
    split_in_sync,
    split_majority,
    stall_fraction,
    stationary,
    write_refused,
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
    assert stall_fraction(3, 12, 9, every_member=True) * 365 * 24 * 3600 == pytest.approx(324)
    assert stall_fraction(3, 12, 3, every_member=False) * 365 * 24 * 3600 == pytest.approx(36)


def test_each_copy_more_divides_the_losses_by_some_thousands() -> None:
    rates = [lost_per_year(copies, 0.04, 1 / 365) for copies in (1, 2, 3)]
    assert rates == pytest.approx([4e-2, 8.8e-6, 1.4e-9], rel=0.03)


# One node, a majority, and what is in between


@pytest.mark.parametrize("n", [3, 5, 7])
def test_at_one_half_a_majority_is_as_often_down_as_one_node_and_on_either_side_it_is_not(n: int) -> None:
    """Peleg and Wool: below one half the majority is the most available, above it a single node."""
    half = Fraction(1, 2)
    assert majority_unavailable(n, half) == half
    for p in (ONE, TEN, Fraction(49, 100)):
        assert majority_unavailable(n + 2, p) < majority_unavailable(n, p) < p
        assert majority_unavailable(n, 1 - p) > 1 - p


@pytest.mark.parametrize("n", [3, 5, 7])
def test_a_minimum_in_the_middle_is_the_best_while_nodes_are_up_more_often_than_not(n: int) -> None:
    """Each harm alone only grows, or only falls, with the minimum; together they are least in the middle."""
    for p in (ONE, TEN):
        refused = [write_refused(n, m, p) for m in range(1, n + 1)]
        gone = [record_gone(m, p) for m in range(1, n + 1)]
        assert refused == sorted(refused)
        assert gone == sorted(gone, reverse=True)
        assert 1 < best_minimum(n, p) < n
    assert best_minimum(n, ONE) == n // 2 + 1
    assert best_minimum(n, Fraction(7, 10)) == 1
    assert [either(n, m, ONE) for m in (1, n)] == [ONE + ONE**n, 1 - (1 - ONE) ** n + ONE**n]


# A network in two


def test_a_leader_in_the_minority_waits_where_a_majority_elects() -> None:
    assert split_majority(3, 1) is Goes.AFTER_ELECTION
    assert split_in_sync(3, 2, 1, Controller.BOTH) is Goes.NOT
    assert split_in_sync(3, 2, 1, Controller.ACROSS) is Goes.AFTER_SESSION
    assert split_in_sync(3, 1, 1, Controller.BOTH) is Goes.AFTER_LAG  # alone, as in 2013


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_who_goes_on_has_the_minimum_on_its_side_and_a_majority_at_most_one_side(n: int) -> None:
    for beside in range(1, n):
        for controller in Controller:
            left = n - beside if controller is Controller.ACROSS else beside
            for minimum in range(1, n + 1):
                goes = split_in_sync(n, minimum, beside, controller)
                assert (goes is Goes.NOT) is (left < minimum)
        assert (split_majority(n, beside) is Goes.NOT) is (2 * beside == n)
    assert split_in_sync(n, n, n, Controller.ACROSS) is split_majority(n, n) is Goes.AT_ONCE
