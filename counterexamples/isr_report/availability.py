"""Availability against durability: a majority quorum and an in-sync set, by formula and by an exact Markov chain.

Nodes fail independently at one rate and are repaired at another; p is the part of its time that a node is down. A crash
keeps the disk; who fails is noticed, and who returns has caught up, in no time; the controller is always up; unclean
election is off. What this ideal hides, the stall until a failure is noticed, is computed beside it.

Sources: Barbara and Garcia-Molina (1987), Peleg and Wool (Information and Computation 123(2), 1995), KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from math import comb

import attrs

SECONDS_PER_YEAR = 365 * 24 * 3600


def majority_unavailable(n: int, p: Fraction) -> Fraction:
    """Exact: more nodes are down than a majority can spare."""
    return at_least_down(n, n - n // 2, p)


def at_least_down(n: int, k: int, p: Fraction) -> Fraction:
    """Exact: at least k of n nodes are down."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


def no_acks_nearly(n: int, minimum: int, p: Fraction) -> Fraction:
    """Nearly: fewer than the minimum are up, or, for a minimum of one, everybody waits for the last one to fail."""
    return at_least_down(n, n - minimum + 1, p) if minimum > 1 else no_leader_nearly(n, 1, p)


def no_leader_nearly(n: int, minimum: int, p: Fraction) -> Fraction:
    """Nearly: all are down, and of so many the last to fail must return (with a minimum of one: the very last)."""
    return Fraction(n, minimum) * p**n


@attrs.frozen
class Members:
    """How many nodes are up and in the ISR, up and outside, down and in the ELR, down and outside."""

    isr: int
    outside: int
    elr: int
    absent: int


@attrs.frozen
class Odds:
    """The part of all time without acknowledgements to acks=all, and without a leader."""

    no_acks: Fraction
    no_leader: Fraction


def in_sync_unavailable(n: int, minimum: int, p: Fraction) -> Odds:
    """Exact, by the stationary distribution of the chain."""
    chances = stationary(n, minimum, p)
    return Odds(
        no_acks=sum((c for s, c in chances.items() if s.isr < minimum), Fraction(0)),
        no_leader=sum((c for s, c in chances.items() if s.isr == 0), Fraction(0)),
    )


def moves(s: Members, minimum: int, failing: Fraction, repair: Fraction) -> Iterator[tuple[Members, Fraction]]:
    """Where the nodes can be next, and at which rate; who can follow a leader is in the ISR at once."""
    if s.isr:
        elr = s.isr - 1 < minimum  # KIP-966: who leaves an ISR that is under the minimum stays eligible
        yield settle(Members(s.isr - 1, 0, s.elr + elr, s.absent + (not elr)), minimum), s.isr * failing
    if s.outside:
        yield settle(Members(s.isr, s.outside - 1, s.elr, s.absent + 1), minimum), s.outside * failing
    if s.elr:
        yield settle(Members(s.isr + 1, s.outside, s.elr - 1, s.absent), minimum), s.elr * repair
    if s.absent:
        yield settle(Members(s.isr, s.outside + 1, s.elr, s.absent - 1), minimum), s.absent * repair


def settle(s: Members, minimum: int) -> Members:
    """With a leader everybody who is up joins; at the minimum the ELR is empty again."""
    if not s.isr:
        return s
    isr = s.isr + s.outside
    return Members(isr, 0, 0, s.elr + s.absent) if isr >= minimum else Members(isr, 0, s.elr, s.absent)


def stationary(n: int, minimum: int, p: Fraction) -> dict[Members, Fraction]:
    """The stationary distribution in exact arithmetic (Grassmann, Taksar and Heyman: without any subtraction)."""
    start = Members(n, 0, 0, 0)
    states, rates = [start], dict[tuple[int, int], Fraction]()
    index = {start: 0}
    for i, state in enumerate(states):  # grows while it is walked
        for after, rate in moves(state, minimum, p, 1 - p):
            if after not in index:
                index[after] = len(states)
                states.append(after)
            rates[i, index[after]] = rates.get((i, index[after]), Fraction(0)) + rate
    size, zero = len(states), Fraction(0)
    for last in range(size - 1, 0, -1):
        away = sum((rates.get((last, j), zero) for j in range(last)), zero)
        for i in range(last):
            back = rates.get((i, last), zero) / away
            rates[i, last] = back
            for j in range(last):
                if back and i != j:
                    rates[i, j] = rates.get((i, j), zero) + back * rates.get((last, j), zero)
    weights = [Fraction(1)]
    for j in range(1, size):
        weights.append(sum((weights[i] * rates.get((i, j), zero) for i in range(j)), zero))
    total = sum(weights, zero)
    return {state: weight / total for state, weight in zip(states, weights, strict=True)}


def stall_fraction(n: int, failures_per_year: float, seconds: float, *, every_member: bool) -> float:
    """The part of all time for which acks=all waits until a failure is noticed: of any member, or of a leader only."""
    return (n if every_member else 1) * failures_per_year * seconds / SECONDS_PER_YEAR


def lost_per_year(copies: int, disks_lost_per_year: float, repair_years: float) -> float:
    """How often a record on so many disks is lost with all of them, disks failing independently."""
    return float(copies * disks_lost_per_year * (disks_lost_per_year * repair_years) ** (copies - 1))


# A minimum between one and all: a write that is refused against a record that is gone


def write_refused(n: int, minimum: int, p: Fraction) -> Fraction:
    """Exact: fewer than the minimum of n nodes are up, each being down with probability p on its own."""
    return at_least_down(n, n - minimum + 1, p)


def record_gone(minimum: int, p: Fraction) -> Fraction:
    """Exact: all nodes are down that a record was acknowledged on, when no more had it than had to."""
    return p**minimum


def either(n: int, minimum: int, p: Fraction) -> Fraction:
    """How many of the two harms there are on average, a refused write and a record that is gone counting alike."""
    return write_refused(n, minimum, p) + record_gone(minimum, p)


def best_minimum(n: int, p: Fraction) -> int:
    """The minimum with the least of both harms; the smaller one where two are alike."""
    return min(range(1, n + 1), key=lambda minimum: (either(n, minimum, p), minimum))


# The network in two


class Goes(Enum):
    """When writes that all replicas in sync have to have go on after the network has split in two."""

    AT_ONCE = "at once"
    AFTER_LAG = "after the lag"
    AFTER_SESSION = "after the session"
    AFTER_ELECTION = "after an election"
    NOT = "when it heals"


def split_majority(n: int, beside_leader: int) -> Goes:
    """A majority quorum whose leader can still reach so many of the n nodes, itself among them."""
    if 2 * beside_leader > n:
        return Goes.AT_ONCE
    return Goes.AFTER_ELECTION if 2 * (n - beside_leader) > n else Goes.NOT


class Controller(Enum):
    """Where the controller is when the network splits."""

    BESIDE = "on the leader's side"
    ACROSS = "on the other side"
    BOTH = "reached from both sides"


def split_in_sync(n: int, minimum: int, beside_leader: int, controller: Controller) -> Goes:
    """An in-sync set of all n replicas whose leader still reaches so many, itself among them; unclean election is off.

    Whoever loses the controller is fenced when its session ends (`broker.session.timeout.ms`): followers then leave the
    set, and for the leader a member of the set takes over. The leader that was can put nobody out, for that needs the
    controller, and so acknowledges nothing that the others lack. Where everybody reaches the controller, followers that
    the leader cannot reach leave when they have lagged (`replica.lag.time.max.ms`), and the leader goes on leading,
    though most replicas be on the other side.
    """
    if beside_leader == n:
        return Goes.AT_ONCE  # everybody has everything, and nobody has to ask the controller for anything
    left = n - beside_leader if controller is Controller.ACROSS else beside_leader
    if left < minimum:
        return Goes.NOT
    return Goes.AFTER_LAG if controller is Controller.BOTH else Goes.AFTER_SESSION
